"""`strandline python file.py`: programs with spark and dbutils."""

import os
import sys

import harness

from strandline import _script


def test_modules_of_a_script(warehouse, tmp_path):
    """What a script imports from its folder has the session, and is read anew in each run."""
    warehouse.sql("CREATE TABLE t AS SELECT 1 AS id")
    (tmp_path / "lib").mkdir()
    (tmp_path / "read.py").write_text("from lib.count import count\nprint('n', count())\n")
    shared = tmp_path / "lib" / "count.py"
    for more in (1, 2):
        shared.write_text(f"def count():\n    dbutils.fs.ls('.')\n    return spark.table('t').count() + {more}\n")
        os.utime(shared, (1_700_000_000, 1_700_000_000))
        done = harness.call("python", "--warehouse", warehouse.path, tmp_path / "read.py")
        assert done.returncode == 0 and done.stdout == f"n {1 + more}\n", done.stdout + done.stderr


def test_packages_of_an_environment_in_the_folder_are_left_alone(warehouse, tmp_path):
    package = tmp_path / "env" / "site-packages" / "theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("mine = 'spark' in globals()\n")
    (tmp_path / "read.py").write_text(
        f"import sys\nsys.path.append({str(package.parent)!r})\nimport theirs\nprint(theirs.mine, __name__)\n")
    done = harness.call("python", "--warehouse", warehouse.path, tmp_path / "read.py")
    assert done.stdout == "False __main__\n", done.stderr


def test_display_shows_frames_as_tables(warehouse, tmp_path):
    (tmp_path / "one.py").write_text("display(spark.range(1))\ndisplay(spark.range(1).count())\n")
    done = harness.call("python", "--warehouse", warehouse.path, tmp_path / "one.py")
    assert done.stdout == "+----+\n| id |\n+----+\n| 0  |\n+----+\n1\n", done.stdout + done.stderr


def test_a_script_leaves_the_imports_as_they_were(warehouse, tmp_path):
    (tmp_path / "one.py").write_text("import sys\nfrom pyspark.sql import functions\nsys.path[0]\n")
    before = list(sys.path), list(sys.meta_path)
    assert _script.run(str(tmp_path / "one.py"), warehouse) == str(tmp_path)
    assert before == (list(sys.path), list(sys.meta_path))
