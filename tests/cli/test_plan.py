"""`strandline plan`: the programs of a pipeline's AUTO CDC flows."""

import json

import pytest
from harness import call, run_pipeline, sql_text, write_json_lines

FLOW = """
CREATE OR REFRESH STREAMING TABLE users{table};
CREATE FLOW users_cdc AS AUTO CDC INTO users
FROM STREAM read_files('{landing}', format => 'json', schema => '{schema}')
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op{left_out}) STORED AS {stored};
"""


@pytest.fixture
def pipeline(tmp_path):
    def make(table="", schema="id BIGINT, name STRING, op STRING, seq BIGINT", stored="SCD TYPE 1", left_out=""):
        folder, landing = tmp_path / "pipeline", tmp_path / "landing"
        folder.mkdir(exist_ok=True)
        landing.mkdir(exist_ok=True)
        (folder / "users.sql").write_text(FLOW.format(table=table, schema=schema, stored=stored, landing=landing,
                                                      left_out=left_out), encoding="utf-8")
        return folder, landing, tmp_path / "warehouse"

    return make


def plan(folder, warehouse, *arguments):
    process = call("plan", folder, "--warehouse", warehouse, "--json", *arguments)
    return process.returncode, json.loads(process.stdout)


def test_a_first_batch_reads_the_source_alone_and_nothing_is_touched(pipeline):
    folder, _, warehouse = pipeline()
    code, printed = plan(folder, warehouse, "--dialect", "spark")
    assert code == 0 and printed["dialect"] == "spark" and printed["errors"] == []
    [program] = printed["programs"]
    assert program["flow"].endswith("users_cdc") and program["stored_as"] == "SCD TYPE 1"
    assert [relation["name"] for relation in program["reads"]] == ["strandline_source"]
    assert program["reads"][0]["columns"] == "id BIGINT, name STRING, op STRING, seq BIGINT"
    assert program["target_columns"] == "id BIGINT, name STRING, seq BIGINT"
    assert program["source_query"].startswith("SELECT * FROM STREAM read_files(")
    assert {step["kind"] for step in program["steps"]} == {"make", "change", "check"}
    assert not warehouse.exists()


def test_later_batches_read_target_and_state_as_they_stand(pipeline):
    folder, landing, warehouse = pipeline(stored="SCD TYPE 2", left_out=", seq")
    write_json_lines(landing / "1.json", [{"id": 1, "name": "Ana", "op": "I", "seq": 1},
                                          {"id": 2, "op": "D", "seq": 2}])
    assert run_pipeline(folder, warehouse).ok
    names = lambda: [relation["name"] for relation in plan(folder, warehouse)[1]["programs"][0]["reads"]]
    assert names() == ["strandline_source", "strandline_target", "strandline_state"]
    sql_text(warehouse, "UPDATE users SET name = 'Bea'")
    assert names() == ["strandline_source", "strandline_target", "strandline_state", "strandline_edits"]


def test_the_text_names_its_dialect(pipeline):
    folder, _, warehouse = pipeline()
    assert "CREATE OR REPLACE TEMP TABLE" in call("plan", folder, "--warehouse", warehouse).stdout
    spark = call("plan", folder, "--warehouse", warehouse, "--dialect", "spark").stdout
    assert "monotonically_increasing_id()" in spark and "TEMP TABLE" not in spark


@pytest.mark.parametrize("what, declared", [
    ("expectations", {"table": " (CONSTRAINT named EXPECT (name IS NOT NULL))"}),
    ("'long'", {"table": " (id BIGINT, name STRING, seq BIGINT, long BOOLEAN GENERATED ALWAYS AS (length(name) > 9))"}),
])
def test_what_spark_sql_cannot_say_is_refused_by_name(pipeline, what, declared):
    folder, _, warehouse = pipeline(**declared)
    code, printed = plan(folder, warehouse, "--dialect", "spark")
    assert code == 1 and printed["programs"] == []
    [error] = printed["errors"]
    assert error["code"] == "UNSUPPORTED_IN_DIALECT" and what in error["message"] and "users_cdc" in error["message"]
    assert plan(folder, warehouse, "--dialect", "duckdb")[0] == 0


def test_snapshots(tmp_path):
    folder, warehouse = tmp_path / "p", tmp_path / "w"
    folder.mkdir()
    (folder / "p.sql").write_text("CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT "
                                  "(SELECT 1 AS k, 'a' AS v) KEYS (k) STORED AS SCD TYPE 2;\n", encoding="utf-8")
    reads = lambda: [(relation["name"], relation["columns"]) for relation in plan(folder, warehouse)[1]["programs"][0]["reads"]]
    source = [("strandline_source", "k INT, v STRING"), ("strandline_version", "version BIGINT")]
    assert reads() == source
    assert run_pipeline(folder, warehouse).ok
    assert reads()[:2] == source and reads()[2][0] == "strandline_target"
    code, printed = plan(folder, warehouse, "--dialect", "spark")
    assert code == 1 and printed["programs"] == [] and printed["errors"][0]["code"] == "UNSUPPORTED_IN_DIALECT"


def test_an_invalid_pipeline(pipeline):
    folder, _, warehouse = pipeline(stored="SCD TYPE 2", left_out=", id")
    code, printed = plan(folder, warehouse)
    assert code == 2 and [error["code"] for error in printed["errors"]] == ["AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA"]
    assert call("plan", folder, "--dialect", "oracle").returncode == 2
