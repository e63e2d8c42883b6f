"""What the second and later updates say of a table that is as it is."""

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
