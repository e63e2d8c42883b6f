"""What the second and later updates say of a table that is as it is."""

import shutil

import pytest
from harness import query, run_pipeline, sql_text

FLOW = "CREATE FLOW g AS AUTO CDC INTO parts FROM STREAM src KEYS (id) SEQUENCE BY s;"


def test_a_partitioned_table_stays_as_it_is(tmp_path):
    """A declaration that says nothing of partitions is not told at every run that they stay."""
    warehouse = tmp_path / "w"
    sql_text(warehouse, "CREATE TABLE parts (id INT, v STRING, s INT) PARTITIONED BY (v); INSERT INTO parts VALUES (1, 'a', 1);"
                        "CREATE TABLE src (id INT, v STRING, s INT); INSERT INTO src VALUES (2, 'b', 1)")
    (tmp_path / "p").mkdir()
    for partitioned, told in (("", []), ("", []), (" PARTITIONED BY (s)", ["PARTITIONING_FIXED"])):
        (tmp_path / "p" / "t.sql").write_text(f"CREATE STREAMING TABLE parts{partitioned};\n{FLOW}\n", encoding="utf-8")
        run = run_pipeline(tmp_path / "p", warehouse)
        assert run.ok, run.explain()
        assert [warning["code"] for warning in run.report["warnings"]] == told
    assert query(warehouse, "SELECT count(*) AS n FROM parts") == [{"n": 2}]


def test_a_feature_asked_for_is_not_told_again(tmp_path):
    warehouse = tmp_path / "w"
    sql_text(warehouse, "CREATE TABLE src (id INT, v STRING, s INT); INSERT INTO src VALUES (2, 'b', 1)")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "t.sql").write_text(
        "CREATE STREAMING TABLE parts TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');\n" + FLOW, encoding="utf-8")
    for _ in range(2):
        run = run_pipeline(tmp_path / "p", warehouse)
        assert run.ok and run.report["warnings"] == [], run.explain()


FLOWS = {
    "changes": "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM src KEYS (id) SEQUENCE BY s STORED AS SCD TYPE 2;",
    "snapshots": "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM src) KEYS (id) STORED AS SCD TYPE 2;",
}
WIDE = 3_000_000_000


@pytest.mark.parametrize("flow", list(FLOWS))
def test_type_widening_may_be_declared_later(tmp_path, flow):
    warehouse = tmp_path / "w"
    (tmp_path / "p").mkdir()

    def run(properties=""):
        text = f"CREATE STREAMING TABLE t {properties};\n{FLOWS[flow]}\n"
        (tmp_path / "p" / "t.sql").write_text(text, encoding="utf-8")
        return run_pipeline(tmp_path / "p", warehouse)

    sql_text(warehouse, "CREATE TABLE src (id INT, v INT, s INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); "
                        "INSERT INTO src VALUES (1, 1, 1)")
    assert run().ok
    sql_text(warehouse, f"ALTER TABLE src ALTER COLUMN v TYPE BIGINT; INSERT INTO src VALUES (2, {WIDE}, 1)")
    refused = run()
    assert refused.codes == ["CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"], refused.explain()
    assert "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')" in refused.report["errors"][0]["message"]
    for _ in range(2):
        done = run("TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        assert done.ok and done.report["warnings"] == [], done.explain()
        history = query(warehouse, "DESCRIBE HISTORY t")
        assert len(history) == 4, history  # made, filled, widening switched on, filled
    assert [row["v"] for row in query(warehouse, "SELECT v FROM t ORDER BY v")] == [1, WIDE]


@pytest.mark.parametrize("flow", list(FLOWS))
def test_other_properties_of_delta_are_told_with_the_statement(tmp_path, flow):
    """By flows that fail, too."""
    warehouse = tmp_path / "w"
    (tmp_path / "p").mkdir()
    sql_text(warehouse, "CREATE TABLE src (id INT, v INT, s INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); "
                        "INSERT INTO src VALUES (1, 1, 1)")
    told = []
    for properties in ("", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"):
        text = f"CREATE STREAMING TABLE t {properties};\n{FLOWS[flow]}\n"
        (tmp_path / "p" / "t.sql").write_text(text, encoding="utf-8")
        run = run_pipeline(tmp_path / "p", warehouse)
        told.append([warning["code"] for warning in run.report["warnings"]])
        sql_text(warehouse, "ALTER TABLE src ALTER COLUMN v TYPE BIGINT")
    assert not run.ok and told == [[], ["TABLE_PROPERTY_FIXED"]], run.explain()
    statement = run.report["warnings"][0]["message"].split(": ")[1].removesuffix(" changes it")
    assert statement == "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    sql_text(warehouse, statement)
    assert run_pipeline(tmp_path / "p", warehouse).report["warnings"] == []


def test_progress_that_is_gone_is_told_as_that(tmp_path):
    warehouse = tmp_path / "w"
    (tmp_path / "p").mkdir()
    sql_text(warehouse, "CREATE TABLE src (id INT, v STRING, s INT); INSERT INTO src VALUES (2, 'b', 1)")
    (tmp_path / "p" / "t.sql").write_text("CREATE STREAMING TABLE parts;\n" + FLOW, encoding="utf-8")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    shutil.move(warehouse / "_strandline" / "pipelines" / "p", tmp_path / "kept")
    run = run_pipeline(tmp_path / "p", warehouse)
    assert run.codes == ["TARGET_OF_OTHER_PIPELINE"], run.explain()
    message = run.report["errors"][0]["message"]
    assert "whose progress" in message and "_strandline/pipelines/p" in message, message
    shutil.rmtree(warehouse / "_strandline" / "pipelines" / "p")
    shutil.move(tmp_path / "kept", warehouse / "_strandline" / "pipelines" / "p")
    assert run_pipeline(tmp_path / "p", warehouse).ok
