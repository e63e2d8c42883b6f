"""Pipelines of .py and .sql files: what they declare, and how mistakes are told."""

import os
import signal
import subprocess
import time

import harness
import pytest

import strandline

HEAD = "from pyspark import pipelines as dp\nfrom pyspark.sql.functions import *\n"
EVENTS = "CREATE TABLE events (id INT, v STRING, kind STRING, seq INT); INSERT INTO events VALUES {rows}"
ROWS = "(1, 'a', 'I', 1), (2, 'b', 'I', 1), (1, 'c', 'U', 2), (2, NULL, 'D', 3)"


@pytest.fixture
def events(warehouse):
    warehouse.sql(EVENTS.format(rows=ROWS))
    return warehouse


def run(folder, warehouse, **options):
    return strandline.Pipeline(folder, warehouse=warehouse.path).run(**options)


def invalid(folder, warehouse):
    """The errors of a pipeline that is refused."""
    update = run(folder, warehouse, check=False)
    assert update.status == "INVALID", update
    return update.errors


def test_python_and_sql_files_mixed(pipeline, events):
    folder = pipeline({
        "a.sql": "CREATE TEMPORARY VIEW wanted AS SELECT * FROM STREAM(events) WHERE id > 0;\n"
                 "CREATE OR REFRESH STREAMING TABLE by_python; CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM by_sql",
        "sub/b.py": HEAD + "dp.create_streaming_table('by_sql')\n"
                    "dp.create_auto_cdc_flow('by_sql', 'wanted', ['id'], 'seq', apply_as_deletes='kind = \"D\"',\n"
                    "  column_list=['id', 'v'], name='py')\n"
                    "@dp.append_flow(target='by_python')\ndef add():\n  return spark.readStream.table('events').select('id', 'v')\n",
    })  # fmt: skip
    update = run(folder, events)
    assert [flow.name for flow in update.flows].index("py") < [flow.name for flow in update.flows].index("n")
    assert events.sql("SELECT * FROM by_sql").fetchall() == [(1, "c")]
    assert len(events.sql("SELECT * FROM by_python").fetchall()) == 4
    assert events.sql("SELECT n FROM n").fetchall() == [(1,)]
    assert update.flow("py").metrics["num_upserted_rows"] == 1 and "py  [AUTO CDC" in update.graph
    # The next update takes what is new.
    events.sql("INSERT INTO events VALUES (3, 'x', 'I', 9)")
    assert run(folder, events).flow("add").metrics["num_input_rows"] == 1


def test_tables_and_views_by_decorators(pipeline, events):
    folder = pipeline({"a.py": HEAD + """
@dp.table
def streamed():
    return spark.readStream.table("events").withColumn("big", col("seq") > 1)

@dp.table(name="main.default.whole", comment="all of it", table_properties={"a": "b", "c": True})
def anything():
    return spark.read.table("events").groupBy("id").agg(max("seq").alias("last")).orderBy("id")

@dp.materialized_view(cluster_by=["id"])
def joined():
    return spark.read.table("helper").join(spark.read.table("whole"), "id")

@dp.temporary_view(comment="a step")
def helper():
    return spark.read.table("events").drop("kind").dropDuplicates()

@dp.table(partition_cols=["kind"], schema="id BIGINT, kind STRING")
def parts():
    return spark.readStream.table("events").select("id", "kind")
"""})  # fmt: skip
    run(folder, events)
    assert sorted(events.sql("SELECT id, big FROM streamed").fetchall()) == [(1, False), (1, True), (2, False), (2, True)]
    assert sorted(events.sql("SELECT * FROM whole").fetchall()) == [(1, 2), (2, 3)]
    assert len(events.sql("SELECT id, v, seq, last FROM joined").fetchall()) == 4
    assert events.table("parts").partition_columns == ["kind"] and "id BIGINT" in events.table("parts").schema_text
    assert events.table("whole").properties["c"] == "true"
    with pytest.raises(strandline.NotFoundError):
        events.table("helper")


def test_expectations(pipeline, events):
    folder = pipeline({"a.py": HEAD + """
@dp.table
@dp.expect("small", "seq < 3")
@dp.expect_all_or_drop({"has_v": col("v").isNotNull()})
def checked():
    return spark.readStream.table("events")

dp.create_streaming_table("target", expect_all={"even": "seq % 2 = 0"}, expect_all_or_drop={"no_deletes": "kind <> 'D'"})
dp.create_auto_cdc_flow(target="target", source="events", keys=[col("id")], sequence_by=struct("seq", "v"))

@dp.expect_or_fail("never", "false")
@dp.table(name="failing")
def failing():
    return spark.readStream.table("events")
"""})  # fmt: skip
    update = run(folder, events, check=False)
    found = {e.name: (e.passed_records, e.failed_records, e.dropped_records) for f in update.flows for e in f.expectations}
    assert found["small"] == (3, 1, 0) and found["has_v"] == (3, 1, 1)
    assert found["even"] == (1, 3, 0) and found["no_deletes"] == (3, 1, 1)
    assert update.status == "FAILED" and update.flow("failing").status == "FAILED"
    with pytest.raises(strandline.UpdateError) as caught:
        update.raise_for_status()
    assert caught.value.update is update and "never" in str(caught.value)


@pytest.mark.parametrize("imports", ["import dlt as dp", "from strandline import pipelines as dp", "import dlt\ndp = dlt"])
def test_other_names_of_the_module(imports, pipeline, events):
    folder = pipeline({"a.py": imports + """
dp.create_target_table(name="t")
dp.apply_changes(target="t", source="events", keys=["id"], sequence_by="seq", stored_as_scd_type="2",
                 track_history_column_list=["v"], except_column_list=["kind"], ignore_null_updates=True)
"""})  # fmt: skip
    run(folder, events)
    assert len(events.sql("SELECT * FROM t").fetchall()) == 3


def test_readers_of_dlt(pipeline, events):
    folder = pipeline({"a.py": """
import dlt
@dlt.view
def v(): return dlt.read_stream("events")
@dlt.table
def streamed(): return dlt.read_stream("v")
@dlt.table
def counted(): return dlt.read("streamed").groupBy().count()
"""})  # fmt: skip
    run(folder, events)
    assert events.sql("SELECT count FROM counted").fetchall() == [(4,)]


PARAMETERS = {
    "ignore_null_updates_column_list=['v']": "IGNORE NULL UPDATES ON (v)",
    "ignore_null_updates_except_column_list=['v']": "IGNORE NULL UPDATES ON * EXCEPT (v)",
    "ignore_null_updates=True": "IGNORE NULL UPDATES",
    "column_list=['id', 'v'], except_column_list=[]": "COLUMNS (id, v)",
    "except_column_list=('kind',), stored_as_scd_type=2": "COLUMNS * EXCEPT (kind) STORED AS SCD TYPE 2",
    "stored_as_scd_type='2', track_history_column_list=[col('v')]": "STORED AS SCD TYPE 2 TRACK HISTORY ON (v)",
    "stored_as_scd_type=2, track_history_except_column_list=['kind']": "STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (kind)",
    "apply_as_deletes=col('kind') == 'D', apply_as_truncates=\"id = 77\"": "APPLY AS DELETE WHEN kind = 'D' APPLY AS TRUNCATE WHEN id = 77",
    "stored_as_scd_type='bitemporal', system_sequence_by=col('seq') + 1": "STORED AS BITEMPORAL SYSTEM SEQUENCE BY seq + 1",
    "once=True": None,
}  # fmt: skip


@pytest.mark.parametrize("python", PARAMETERS)
def test_parameters_mean_their_clauses(python, pipeline, events):
    clauses = PARAMETERS[python]
    folder = pipeline({
        "a.py": HEAD + "dp.create_streaming_table('by_python')\n"
                f"dp.create_auto_cdc_flow('by_python', 'events', ['id'], col('seq'), {python})",
        "b.sql": "CREATE STREAMING TABLE by_sql; CREATE FLOW by_sql AS AUTO CDC "
                 f"{'ONCE ' if clauses is None else ''}INTO by_sql FROM STREAM(events) KEYS (id) SEQUENCE BY seq {clauses or ''}",
    })  # fmt: skip
    run(folder, events)
    assert events.table("by_python").schema_text == events.table("by_sql").schema_text
    rows = events.sql("SELECT * FROM by_python").fetchall()
    assert rows and sorted(map(repr, rows)) == sorted(map(repr, events.sql("SELECT * FROM by_sql").fetchall()))


WRONG = [
    ("dp.create_auto_cdc_flow('t', 'events', [], 'seq')", "AUTOCDC_EMPTY_KEYS", "keys is empty"),
    ("dp.create_auto_cdc_flow('t', 'events', 'id', 'seq')", "PYTHON_ERROR", "keys must be list or tuple, not 'id' (str)"),
    ("dp.create_auto_cdc_flow('t', 'events', ['id'], None)", "PYTHON_ERROR", "sequence_by must be str or Column, not None"),
    ("dp.create_auto_cdc_flow('t', 'events', ['id'], 'seq', stored_as_scd_type=3)", "PYTHON_ERROR",
     "stored_as_scd_type must be one of 1, '1', 2, '2', 'bitemporal', not 3 (int)"),
    ("dp.create_auto_cdc_flow('t', 'events', ['id'], 'seq', column_list=['v'], except_column_list=['v'])",
     "CANNOT_SET_TOGETHER", "give column_list or except_column_list, not both"),
    ("dp.create_auto_cdc_flow('t', 'events', [col('id') + 1], 'seq')", "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER", "keys takes columns"),
    ("dp.create_auto_cdc_flow('t', 'events', ['id'], 'seq', sequence='x')", "PYTHON_ERROR", "has no parameter sequence;"),
    ("dp.create_streaming_table('t', spark_conf={'a': 'b'})", "UNSUPPORTED_ARGUMENT", "spark_conf={'a': 'b'} is not supported"),
    ("dp.create_sink('s', 'kafka', {})", "UNSUPPORTED_SINK", "create_sink('s', 'kafka')"),
    ("dp.create_streaming_table('a..b')", "PYTHON_ERROR", "name: 'a..b' is not a name"),
    ("dp.create_auto_cdc_from_snapshot_flow('t', 3, ['id'])", "PYTHON_ERROR", "source must be the name of a table or view"),
    ("@dp.table\nasync def f(): return spark.range(1)", "PYTHON_ERROR", "f is an async function, and nothing awaits it"),
    ("@dp.append_flow(target='t')\ndef f(): yield spark.range(1)", "PYTHON_ERROR", "f has yield"),
    ("async def f(latest): return None\ndp.create_auto_cdc_from_snapshot_flow('t', f, ['id'])", "PYTHON_ERROR", "f is an async"),
    ("from pyspark.pipelines import tabel", "PYTHON_ERROR", "cannot import name 'tabel' from 'pyspark.pipelines'"),
    ("from dlt import tabel", "PYTHON_ERROR", "; there are append_flow,"),
    ("dp.tabel", "PYTHON_ERROR", "pyspark.pipelines.tabel is not there; there are append_flow,"),
    ("import dlt; dlt.raed('x')", "PYTHON_ERROR", "dlt.raed is not there; there are append_flow,"),
    ("x = 1 / 0", "PYTHON_ERROR", "ZeroDivisionError"),
    ("def f(:", "PYTHON_SYNTAX", "SyntaxError"),
    ("import pyspark.ml", "PYTHON_ERROR", "pyspark.ml is not part of what Strandline"),
]  # fmt: skip


@pytest.mark.parametrize("line, code, message", WRONG)
def test_mistakes_are_told_with_their_line(line, code, message, pipeline, events):
    error = invalid(pipeline({"a.py": HEAD + "\n" + line + "\n"}), events)[0]
    # CPython 3.10 has the call of a decorator at the function, later ones where it stands.
    lines = (4, 5) if line.startswith("@") else (4 + ("\ndp." in line),)
    assert error.code == code and error.place.line in lines and message in error.message, error
    assert error.place.file.endswith("p/a.py")


def test_a_file_that_is_not_utf8(pipeline, events):
    folder = pipeline({"a.py": HEAD, "b.py": HEAD})
    (folder / "b.py").write_bytes(b"# one\nname = 'caf\xe9'\n")
    (error,) = invalid(folder, events)
    assert error.place.file.endswith("p/b.py") and "b.py is not UTF-8: line 2 has the byte 0xe9" in error.message
    (folder / "b.py").write_bytes(b"\xef\xbb\xbf# a mark of the order of bytes\n")
    assert not [error for error in run(folder, events, check=False).errors if "b.py" in str(error.place)]
    view = HEAD + "@dp.materialized_view\ndef v():\n    return spark.createDataFrame([('caf\xe9',)], 'a STRING')\n"
    (folder / "b.py").write_bytes(("# -*- coding: latin-1 -*-\n" + view).encode("latin-1"))
    run(folder, events)
    assert events.sql("SELECT * FROM v").fetchall() == [("caf\xe9",)]
    (folder / "b.py").write_text("# coding: nonsense\n")
    (error,) = invalid(folder, events)
    assert "b.py: unknown encoding: nonsense" in error.message


def test_all_mistakes_at_once_with_the_users_traceback(pipeline, events):
    errors = invalid(pipeline({
        "a.py": HEAD + "@dp.table\ndef one():\n  return helper()\n\ndef helper():\n  return spark.readStream.table('events').nope()\n"
                "@dp.table\ndef two():\n  return 42\n"
                "dp.create_streaming_table('t')\ndp.create_auto_cdc_flow('t', 'events', [], 'seq')\n",
        "b.py": "raise SystemExit(3)",
    }), events)  # fmt: skip
    by_line = {(error.place.file.rsplit("/", 1)[1], error.place.line): error for error in errors}
    assert set(by_line) == {("a.py", 8), ("a.py", 9), ("a.py", 13), ("b.py", 1)}, errors
    assert "in one" in by_line["a.py", 8].message and "in helper" in by_line["a.py", 8].message
    assert "two() must return a DataFrame, not 42 (int)" in by_line["a.py", 9].message
    assert by_line["a.py", 13].code == "AUTOCDC_EMPTY_KEYS"


def test_mistakes_that_the_sql_front_finds_have_the_line_too(pipeline, events):
    errors = invalid(pipeline({
        "a.py": HEAD + "dp.create_streaming_table('t')\n"
                "dp.create_auto_cdc_flow('t', 'events', ['id'], 'seqq', apply_as_deletes='kind = ')\n"
                "dp.create_streaming_table('T')\n"
                "@dp.table\ndef u():\n  return spark.sql('SELECT nope FROM STREAM(events)')\n",
    }), events)  # fmt: skip
    assert [(error.code, error.place.line) for error in errors] == [
        ("PARSE_SYNTAX_ERROR", 4), ("DUPLICATE_DATASET", 5), ("UNRESOLVED_COLUMN", 6)], errors  # fmt: skip
    assert "a.py:3" in errors[1].message
    errors = invalid(pipeline({
        "a.py": HEAD + "dp.create_streaming_table('t')\ndp.create_auto_cdc_flow('t', 'events', ['id'], 'seqq')\n"
                "@dp.table\ndef u():\n  return spark.sql('SELECT nope FROM STREAM(events)')\n",
    }), events)  # fmt: skip
    assert [(error.code, error.place.line) for error in errors] == [
        ("UNRESOLVED_COLUMN", 4), ("UNRESOLVED_COLUMN", 5)], errors  # fmt: skip


def test_the_command_line_shows_the_line(pipeline, events):
    folder = pipeline({"a.py": HEAD + "print('hello from user code')\ndp.create_streaming_table('t')\n"
                       "dp.create_auto_cdc_flow('t', 'nowhere', ['id'], 'seq')"})  # fmt: skip
    done = harness.run_pipeline(folder, events.path)
    assert done.codes == ["TABLE_OR_VIEW_NOT_FOUND"] and done.report["errors"][0]["line"] == 5
    assert "hello from user code" in done.stderr
    told = harness.call("run", folder, "--warehouse", events.path).stderr
    assert "a.py:5: [TABLE_OR_VIEW_NOT_FOUND]" in told


def test_a_dataset_that_fails_is_not_unknown_too(pipeline, events):
    errors = invalid(pipeline({"a.py": HEAD + """
@dp.temporary_view
def broken():
    raise ValueError("no")
dp.create_streaming_table("t")
dp.create_auto_cdc_from_snapshot_flow("t", "broken", ["id"], 1)
dp.create_streaming_table("u")
dp.create_auto_cdc_flow("u", "Broken", ["id"], "seq")
"""}), events)  # fmt: skip
    assert ["no" in error.message for error in errors] == [True], errors


@pytest.mark.parametrize("mistake", ["1 / 0", "def f(:"])
def test_what_a_file_that_fails_may_declare_is_not_unknown_too(mistake, pipeline, events):
    declares = (HEAD + mistake + "\n@dp.table\ndef users(): return spark.readStream.table('events')\n"
                "dp.create_streaming_table('odd name')\ndp.create_streaming_table('main.default.two')\n")  # fmt: skip
    sql = ("CREATE FLOW f AS AUTO CDC INTO `odd name` FROM STREAM(users) KEYS (id) SEQUENCE BY seq;\n"
           "CREATE FLOW g AS INSERT INTO two BY NAME SELECT * FROM STREAM(users);\n")  # fmt: skip
    (error,) = invalid(pipeline({"a.py": declares, "b.sql": sql}), events)
    assert error.place.file.endswith("a.py") and error.place.line == 3, error
    # What it never says is.
    errors = invalid(pipeline({"a.py": declares, "b.sql": sql.replace("INTO two", "INTO tow")}), events)
    assert {error.code for error in errors} == {"PYTHON_SYNTAX" if ":" in mistake else "PYTHON_ERROR", "UNKNOWN_TARGET"}


def test_plan_tells_places_of_the_program(pipeline, events):
    folder = pipeline({"a.py": HEAD + "dp.create_streaming_table('t')\n"
                       "dp.create_auto_cdc_from_snapshot_flow('t', lambda latest: None, ['id'], 1)"})  # fmt: skip
    done = harness.call("plan", folder, "--warehouse", events.path)
    assert done.returncode == 1 and "a.py:4: [SOURCE_SCHEMA_UNKNOWN]" in done.stderr, done.stderr


def test_an_interpreter_without_the_package(pipeline, events, tmp_path):
    folder = pipeline({"a.py": HEAD})
    for python, code in (("no-such-python", "PYTHON_NOT_FOUND"), ("false", "PYTHON_FAILED")):
        done = harness.run_pipeline(folder, events.path, env={"STRANDLINE_PYTHON": python})
        assert done.codes == [code] and "STRANDLINE_PYTHON" in done.report["errors"][0]["message"]


@pytest.mark.parametrize("how, code", [
    ("signal 9", "os.kill(os.getpid(), 9)"),
    ("exit code 7", "def f(latest): t = threading.Thread(target=lambda: os._exit(7)); t.start(); t.join()\ndp.create_streaming_table('t')\n"
    "dp.create_auto_cdc_from_snapshot_flow('t', f, ['id'])"),
])  # fmt: skip
def test_code_that_ends_the_interpreter(how, code, pipeline, events):
    """It is not the installation that is wrong then."""
    (error,) = run(pipeline({"a.py": f"import os, threading\n{HEAD}{code}\n"}), events, check=False).errors
    assert error.code == "PYTHON_FAILED" and f"while it ran code of the pipeline's .py files ({how})" in error.message


def test_configuration_volumes_and_helpers(pipeline, events):
    folder = pipeline({
        "spark-pipeline.yml": "name: p\nconfiguration:\n  suffix: _x\n  strandline.volumes: vols\nlibraries:\n- glob: {include: t/**}\n",
        "vols/main/in/a.json": '{"id": 1, "n": "\\u00fc"}\n',
        "t/a.py": HEAD + """
import shared
names = [f.name for f in dbutils.fs.ls("/Volumes/main/in/")]
assert names == ["a.json"] and dbutils.fs.ls("/Volumes/main/in")[0].size > 0, names
@dp.table(name="t" + spark.conf.get("suffix"))
def t():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, n STRING")
    return reader.load("/Volumes/main/in").withColumn("twice", shared.twice(col("id")))
@dp.materialized_view
def said():
    return spark.sql("SELECT '${suffix}' AS a").withColumn("b", lit("${suffix}"))
""",
        "t/shared.py": "def twice(column):\n    return column * 2\n",
    })  # fmt: skip
    run(folder, events)
    assert events.sql("SELECT * FROM t_x").fetchall() == [(1, "ü", 2)]
    assert events.sql("SELECT * FROM said").fetchall() == [("_x", "${suffix}")]


VIEW = HEAD + "@dp.materialized_view\ndef one():\n    return spark.range(2)\n"


@pytest.mark.parametrize("importing", ["a.py", "z.py"])
@pytest.mark.parametrize("name", ["shared", "lib.shared"])
def test_a_file_that_another_imports_runs_once(importing, name, pipeline, events):
    """Whichever of the two comes first."""
    folder = pipeline({
        "lib/shared.py": VIEW,
        importing: HEAD + f"""
import {name} as shared
import lib.shared as again
assert shared is again
@dp.materialized_view
def two():
    return shared.spark.table("one").union(spark.table("one"))
""",
    })  # fmt: skip
    update = run(folder, events)
    assert sorted(flow.name for flow in update.flows) == ["one", "two"]
    assert events.sql("SELECT count(*) FROM two").fetchall() == [(4,)]


@pytest.mark.parametrize("importing", ["a.py", "z.py"])
def test_files_of_a_package(importing, pipeline, events):
    """They run with their package, whichever of them is the first."""
    folder = pipeline({
        "lib/__init__.py": "from .made import frame, NAMES\nNAMES.append(__name__)\n",
        "lib/inner/__init__.py": "",
        "lib/inner/more.py": HEAD + "from ..made import frame\n@dp.materialized_view\ndef more():\n    return frame()\n",
        "lib/made.py": "NAMES = []\ndef frame():\n    return spark.range(2)\n",
        importing: HEAD + "import lib\nassert len(lib.NAMES) == 1\n"
                          "@dp.materialized_view\ndef one():\n    return lib.frame()\n",
    })  # fmt: skip
    run(folder, events)
    assert events.sql("SELECT count(*) FROM one, more").fetchall() == [(4,)]


def test_imported_modules_have_the_session(pipeline, events):
    """Files that are none of the pipeline's, too; what they import of each other is half there, as in Python."""
    folder = pipeline({
        "spark-pipeline.yml": "name: p\nlibraries:\n- glob: {include: t/**}\n",
        "parts/__init__.py": "from .rows import some\n",
        "parts/rows.py": "import dataclasses\nimport parts\n@dataclasses.dataclass\nclass Some:\n    n: int\n"
                         "def some():\n    return spark.range(Some(len(dbutils.fs.ls('.')) * 0 + 3).n)\n",
        "t/a.py": HEAD + "import parts\n@dp.materialized_view\ndef one():\n    return parts.some()\n",
    })  # fmt: skip
    run(folder, events)
    assert events.sql("SELECT count(*) FROM one").fetchall() == [(3,)]


@pytest.mark.parametrize("importing", ["a.py", "z.py"])
def test_a_mistake_in_an_imported_file_is_told_once(importing, pipeline, events):
    folder = pipeline({"shared.py": "x = 1\nraise ValueError('bad')\n", importing: "import shared\n"})
    (error,) = run(folder, events, check=False).errors
    assert error.message.startswith("ValueError: bad") and error.place.line == 2
    assert error.place.file.endswith("shared.py")


def test_an_imported_file_whose_mistake_is_caught(pipeline, events):
    folder = pipeline({"a.py": "try:\n    import shared\nexcept ValueError:\n    pass\n", "shared.py": "raise ValueError('bad')\n"})
    (error,) = run(folder, events, check=False).errors
    assert error.place.file.endswith("shared.py") and error.place.line == 1


def test_dataset_functions_see_columns_of_views_and_tables(pipeline, events):
    folder = pipeline({"a.py": HEAD + """
@dp.view
def base():
    return spark.readStream.table("events").withColumnRenamed("v", "value")
@dp.table
def t():
    frame = spark.readStream.table("base")
    assert frame.columns == ["id", "value", "kind", "seq"], frame.columns
    return frame.drop("kind").withColumn("value", upper("value")).filter(frame.seq < 3)
"""})  # fmt: skip
    run(folder, events)
    assert sorted(events.sql("SELECT * FROM t").fetchall()) == [(1, "A", 1), (1, "C", 2), (2, "B", 1)]


def test_progress_and_dry_run(pipeline, events):
    folder = pipeline({"a.py": HEAD + "@dp.table\ndef t():\n  return spark.readStream.table('events')\n"})
    seen = []
    update = run(folder, events, dry_run=True)
    assert update.ok and update.flow("t").status == "EXCLUDED" and "flow t" in update.graph
    run(folder, events, progress=seen.append)
    kinds = [one.kind for one in seen]
    assert kinds[0] == "update_started" and kinds[-1] == "update_done" and "flow_started" in kinds
    assert [one.stage for one in seen if one.kind == "flow_done"] == ["COMPLETED"]
    events.sql("INSERT INTO events VALUES (5, 'x', 'I', 5)")

    def stop(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(folder, events, progress=stop)
    assert run(folder, events, refresh=["t"]).ok
    assert len(events.sql("SELECT * FROM t").fetchall()) == 5
    assert run(folder, events, full_refresh_all=True).flow("t").metrics["num_input_rows"] == 5
    with pytest.raises(ValueError, match="give one of"):
        run(folder, events, refresh=["t"], full_refresh=["t"])


def test_ctrl_c_ends_user_code(pipeline, events):
    folder = pipeline({"a.py": "import time\nprint('sleeping', flush=True)\ntime.sleep(60)\n"})
    child = subprocess.Popen([str(harness.PROGRAM), "run", str(folder), "--warehouse", events.path, "--json"],
                             stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    while "sleeping" not in child.stderr.readline():
        pass
    os.killpg(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=20)
    assert '"status": "CANCELED"' in out and child.returncode == 1


def test_ctrl_c_while_the_package_is_imported(pipeline, events, tmp_path):
    """Nothing is printed but what became of the update."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text("import sys, time\nprint('starting', file=sys.stderr, flush=True)\ntime.sleep(2)\n")
    path = os.pathsep.join([str(slow), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen([str(harness.PROGRAM), "run", str(pipeline({"a.py": "x = 1\n"})), "--warehouse", events.path],
                             env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             text=True, start_new_session=True)  # fmt: skip
    while "starting" not in child.stderr.readline():
        pass
    os.killpg(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert "Traceback" not in said and "KeyboardInterrupt" not in said, said


def test_the_interpreter_ends_with_the_program(pipeline, events):
    folder = pipeline({"a.py": "import time, os\nprint('pid', os.getpid(), flush=True)\ntime.sleep(1)\n"})
    child = subprocess.Popen([str(harness.PROGRAM), "run", str(folder), "--warehouse", events.path],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)  # fmt: skip
    while "pid" not in (line := child.stderr.readline()):
        pass
    child.kill()
    child.wait()
    python = int(line.split()[1])
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{python}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{python}")


def test_declarations_outside_of_a_pipeline():
    from strandline import pipelines as dp

    with pytest.raises(strandline.InvalidArgumentError, match="NOT_IN_A_PIPELINE"):
        dp.create_streaming_table("t")
    with pytest.raises(ImportError):
        import dlt  # noqa: F401
