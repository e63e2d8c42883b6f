"""What lies in the folder where one types a command, and what a file of a pipeline does by itself, happens to nobody."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "bin" / "strandline"
# Of modules that Python has loaded before it looks into any folder, files are of no account in plain Python either.
NAMES = sorted({*sys.stdlib_module_names, "strandline", "sqlframe", "sqlglot", "duckdb", "numpy", "pandas"})

PIPELINE = """
from pyspark import pipelines as dp
import random, json, helper_of_mine

@dp.table
def t():
    return spark.range(helper_of_mine.COUNT)
"""


def strandline(*words: str, cwd: Path, code: int = 0) -> str:
    environment = {**os.environ, "STRANDLINE_PYTHON": sys.executable}
    done = subprocess.run([PROGRAM, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "t.py").write_text(PIPELINE)
    (folder / "helper_of_mine.py").write_text("COUNT = 3\n")
    (folder / "spark-pipeline.yml").write_text("name: p\nlibraries: [{glob: {include: t.py}}]\n")
    return folder


def trap(folder: Path) -> Path:
    """A file for each name, which says that it ran."""
    folder.mkdir(exist_ok=True)
    marker = folder.parent / "ran"
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r} + ' ')\nraise RuntimeError({name!r})\n")
    return marker


def ran(marker: Path) -> str:
    return marker.read_text() if marker.exists() else ""


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["plan"]])
def test_no_file_of_the_current_folder_runs(pipeline: Path, tmp_path: Path, command: list[str]) -> None:
    marker = trap(tmp_path / "here")
    strandline(*command, str(pipeline), cwd=tmp_path / "here")
    assert ran(marker) == ""


def test_no_file_of_the_current_folder_runs_for_a_script(tmp_path: Path) -> None:
    marker = trap(tmp_path / "here")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "s.py").write_text("import random, mine\nprint('rows', spark.range(mine.N).count())\n")
    (scripts / "mine.py").write_text("N = 4\n")
    said = strandline("python", "--warehouse", str(tmp_path / "w"), str(scripts / "s.py"), cwd=tmp_path / "here")
    assert "rows 4" in said
    assert ran(marker) == ""


def test_files_of_a_pipeline_called_as_modules_of_python_are_nobodys_modules(pipeline: Path, tmp_path: Path) -> None:
    marker = trap(pipeline)
    strandline("run", ".", cwd=pipeline)
    assert ran(marker) == ""
    assert '"c":3' in strandline("sql", "--warehouse", "warehouse", "--format", "json", "-c", "SELECT count(*) AS c FROM t", cwd=pipeline)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size if path.is_file() else 0)
        for path in [folder, *sorted(folder.rglob("*"))]
        if "__pycache__" not in path.parts
    }


EFFECTS = [
    'spark.sql("CREATE TABLE made (id INT)")',
    'spark.sql("INSERT INTO there VALUES (1)")',
    'spark.sql("DELETE FROM there")',
    'spark.sql("  drop table there")',
    'spark.sql("-- why\\n/* SELECT */ DELETE FROM there")',
    'spark.range(3).write.saveAsTable("made")',
    'spark.range(3).write.mode("append").insertInto("there")',
]


def test_statements_with_effects_are_refused_in_files_of_a_pipeline(pipeline: Path) -> None:
    def tables() -> list[str]:
        return [
            strandline("sql", "--warehouse", "warehouse", "-c", query, cwd=pipeline)
            for query in ("SHOW TABLES", "DESCRIBE HISTORY there")
        ]

    strandline("run", ".", cwd=pipeline)
    strandline("sql", "--warehouse", "warehouse", "-c", "CREATE TABLE there (id BIGINT)", cwd=pipeline)
    before = tables()
    for number, effect in enumerate(EFFECTS):
        (pipeline / "t.py").write_text(PIPELINE + effect + "\n")
        command = [["run"], ["run", "--dry-run"], ["plan"]][number % 3]
        said = strandline(*command, ".", cwd=pipeline, code=2)
        assert "EFFECT_IN_PIPELINE_FILE" in said and "t.py:8" in said, effect
    assert tables() == before
    (pipeline / "t.py").write_text(PIPELINE + 'print(spark.sql("SHOW TABLES").count(), spark.sql("-- why\\n/* not */ SELECT 1").count())\n')
    strandline("run", ".", cwd=pipeline)


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("command", [["run", "--dry-run"], ["plan"]])
def test_plan_and_dry_run_leave_everything_as_it_is(pipeline: Path, runs: bool, command: list[str]) -> None:
    (pipeline / "in").mkdir()
    (pipeline / "in" / "1.json").write_text('{"id": 1, "seq": 1}\n')
    (pipeline / "c.sql").write_text(textwrap.dedent("""
        CREATE OR REFRESH STREAMING TABLE c;
        CREATE FLOW c AS AUTO CDC INTO c FROM STREAM read_files('in', format => 'json', schema => 'id INT, seq INT')
        KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2;
    """))
    (pipeline / "spark-pipeline.yml").write_text("name: p\nlibraries: [{glob: {include: 't.py'}}, {glob: {include: 'c.sql'}}]\n")
    if runs:
        strandline("run", ".", cwd=pipeline)
        (pipeline / "in" / "2.json").write_text('{"id": 2, "seq": 1}\n')
    before = tree(pipeline)
    strandline(*command, ".", cwd=pipeline)
    assert tree(pipeline) == before


@pytest.mark.parametrize("end, code", [("1/0", 1), ("import sys; sys.exit(3)", 3), ("raise KeyboardInterrupt", 130)])
def test_a_script_that_ends_early_stops_its_streams(tmp_path: Path, end: str, code: int) -> None:
    (tmp_path / "s.py").write_text(textwrap.dedent(f"""
        spark.sql("CREATE TABLE IF NOT EXISTS s AS SELECT 1 AS id")
        q = spark.readStream.table("s").writeStream.option("checkpointLocation", "c").toTable("o")
        {end}
    """))
    for _ in range(4):
        said = strandline("python", "--warehouse", "w", "s.py", cwd=tmp_path, code=code)
        assert "terminate called" not in said


def test_threads_of_a_script_that_ends_are_stopped(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(textwrap.dedent("""
        import sys, threading, time, strandline
        warehouse = strandline.connect()

        def work():
            while True:
                warehouse.sql("SELECT sum(id) AS s FROM range(300000000)").fetchall()

        threading.Thread(target=work, daemon=True).start()
        time.sleep(float(sys.argv[1]))
        1 / 0
    """))
    for pause in (0.05, 0.1, 0.2, 0.4):
        done = subprocess.run([sys.executable, "s.py", str(pause)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "terminate" not in done.stderr, done.stderr
        assert "nanobind" not in done.stderr, done.stderr
