"""A damaged table as the source of a pipeline: the error leads to the file, and nothing of it lands."""

import pytest
from damages import cut, newest_data_file, other_data_file, remove
from harness import query, run_pipeline, sql_text

DAMAGES = {
    "missing": (remove(newest_data_file), ["DELTA_FILE_NOT_FOUND", "DELTA_CHANGE_DATA_FILE_NOT_FOUND"]),
    "cut": (cut(newest_data_file), ["DELTA_DATA_FILE_DAMAGED"]),
    "of_another_table": (other_data_file(fits=False), ["DELTA_DATA_FILE_DAMAGED"]),
    "of_another_table_and_size": (other_data_file(fits=True), ["DELTA_DATA_FILE_DAMAGED"]),
}
FLOWS = {
    "append": "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(src);",
    "feed": "CREATE STREAMING TABLE t AS SELECT * FROM STREAM src WITH (readChangeFeed=true);",
    "auto_cdc": "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM(src) KEYS (id) SEQUENCE BY s STORED AS SCD TYPE 1;",
    "view": "CREATE MATERIALIZED VIEW t AS SELECT * FROM src;",
}


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("name", DAMAGES)
def test_source(tmp_path, flow, name):
    change, codes = DAMAGES[name]
    sql_text(tmp_path / "w", "CREATE TABLE src (id BIGINT, s INT); " + "".join(
        f"INSERT INTO src VALUES ({n}, 1), ({n + 10}, 1); " for n in range(4)))
    change(tmp_path / "w" / "main" / "default" / "src")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "p.sql").write_text(FLOWS[flow], encoding="utf-8")
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.exit_code == 1 and set(run.codes) & set(codes), run.explain()
    assert ".parquet" in run.explain()
    assert "ENGINE_ERROR" not in run.codes
    tables = [row for row in query(tmp_path / "w", "SHOW TABLES") if "t" in row.values()]
    assert not tables or query(tmp_path / "w", "SELECT * FROM t") == []
