"""What `strandline sql` writes, read by Spark with Delta and changed by it."""

import delta_types
import pytest
from harness import query, quote, run_pipeline, write_json_lines
from readers import Ours, assert_reads
from scenarios import FED, SCENARIOS, auto_cdc_targets, feed_bag


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_spark_reads_the_same(spark, scenario, tmp_path):
    path = scenario.build(tmp_path)
    if "spark" in scenario.refused_by:
        with pytest.raises(Exception, match=scenario.refused_by["spark"]):
            spark.read(path)
        return
    ours = Ours(tmp_path)
    assert_reads(spark, path, ours.read(path)[1])
    versions = sorted(int(commit.stem) for commit in (path / "_delta_log").glob("*.json") if commit.stem.isdigit())
    if len(versions) > 1:
        assert_reads(spark, path, ours.read(path, versions[-2])[1], versions[-2])


BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

# Scenario -> statements that Spark runs on the table {t}.
CHANGES = {
    "deletion_vectors": ["UPDATE {t} SET g = 100 WHERE id < 8", "DELETE FROM {t} WHERE id BETWEEN 100 AND 120",
                         "INSERT INTO {t} VALUES (2000, 1)",
                         "MERGE INTO {t} USING (SELECT id, -5L AS g FROM range(50, 60)) s ON {t}.id = s.id "
                         "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT *", "OPTIMIZE {t}"],
    "checkpoint": ["DELETE FROM {t} WHERE p IS NULL AND id < 105", "INSERT INTO {t} VALUES (500, 'neu/☃')"],
    "v2_checkpoint": ["UPDATE {t} SET id = id + 1000 WHERE id = 5"],
    "clustered": ["UPDATE {t} SET g = 'x' WHERE id = 3", "OPTIMIZE {t}"],
    "no_deletion_vectors": ["UPDATE {t} SET g = 'again' WHERE id = 7"],
    "all_types": ["UPDATE {t} SET te = 'changed' WHERE k = 2"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_spark_changes_our_table(spark, name, tmp_path):
    """Both sides agree after each statement of Spark, and after one more of ours."""
    path = BY_NAME[name].build(tmp_path)
    table, ours = f"delta.{quote(str(path))}", Ours(tmp_path)
    before = ours.read(path)[1]
    for statement in CHANGES[name]:
        spark.run(statement.replace("{t}", table))
        assert_reads(ours, path, spark.read(path)[1])
    schema = delta_types.logged_schema(path)
    assert delta_types.bag(before, schema) != delta_types.bag(ours.read(path)[1], schema)
    key = schema["fields"][0]["name"]
    ours.run(f"DELETE FROM {table} WHERE {key} = 2; UPDATE {table} SET {key} = {key} + 7000 WHERE {key} = 1")
    assert_reads(spark, path, ours.read(path)[1])


def test_spark_reads_auto_cdc_targets(spark, tmp_path):
    for path in auto_cdc_targets(tmp_path).values():
        ours = Ours(path.parent)
        assert_reads(spark, path, ours.read(path)[1])
        assert_reads(spark, path, ours.read(path, 2)[1], 2)
        ids = spark.query(f"SELECT count(DISTINCT _metadata.row_id) AS ids, count(*) AS rows FROM delta.{quote(str(path))}")[0]
        assert ids["ids"] == ids["rows"] > 5


def test_spark_reads_feeds_of_auto_cdc_targets(spark, tmp_path):
    for name, path in auto_cdc_targets(tmp_path, FED).items():
        assert any((path / "_change_data").rglob("*.parquet"))
        frame = spark.session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(str(path))
        theirs = [row.asDict(recursive=True) for row in frame.collect()]
        ours = query(path.parent, f"SELECT * FROM table_changes_by_path('{path}', 0)")
        assert feed_bag(theirs, path) == feed_bag(ours, path), name
        assert {row["_change_type"] for row in ours} >= {"insert", "update_preimage", "update_postimage"}, name


def test_row_ids_survive_our_merge(spark, tmp_path):
    ours = Ours(tmp_path)
    ours.run(BY_NAME["merged"].script.split("MERGE")[0])
    path = tmp_path / "main" / "default" / "t"
    before = spark.row_ids(path, "id")
    ours.run("MERGE" + BY_NAME["merged"].script.split("MERGE")[1])
    after = spark.row_ids(path, "id")
    kept = set(before) & set(after)
    assert kept == set(range(20)) - {16}
    assert {key: after[key][0] for key in kept} == {key: before[key][0] for key in kept}
    changed = {key for key in kept if after[key][1] != before[key][1]}
    assert changed == {0, 1, 2, 15, 17, 18, 19}
    assert len({id for id, _ in after.values()}) == len(after)


def test_row_ids_survive_our_changes(spark, tmp_path):
    """A row keeps its id through UPDATE and DELETE of ours; its commit version changes only if the row does."""
    ours = Ours(tmp_path)
    ours.run("CREATE TABLE t AS SELECT id, id % 3 AS g FROM range(20); INSERT INTO t SELECT id + 100, 5 FROM range(5)")
    path = tmp_path / "main" / "default" / "t"
    before = spark.row_ids(path, "id")
    assert len({id for id, _ in before.values()}) == 25
    ours.run("UPDATE t SET g = -1 WHERE id IN (3, 101); DELETE FROM t WHERE id = 4")
    after = spark.row_ids(path, "id")
    assert set(after) == set(before) - {4}
    for key, (id, version) in after.items():
        assert id == before[key][0], key
        assert version == (2 if key in (3, 101) else before[key][1]), key


def test_spark_renames_and_drops_columns_of_ours(spark, tmp_path):
    """Column mapping of ours carries Spark's changes of names, and our writes after them."""
    path = BY_NAME["mapped_by_name"].build(tmp_path)
    table, ours = f"delta.{quote(str(path))}", Ours(tmp_path)
    for statement in ("ALTER TABLE {t} RENAME COLUMN `user id` TO `the user`", "ALTER TABLE {t} DROP COLUMN mm",
                      "ALTER TABLE {t} RENAME COLUMN s.`a b` TO c", "ALTER TABLE {t} ADD COLUMNS (mm STRING, s.`new one` DATE)",
                      "UPDATE {t} SET mm = 'again' WHERE `the user` = 1"):
        spark.run(statement.replace("{t}", table))
        assert_reads(ours, path, spark.read(path)[1])
    ours.run(f"INSERT INTO {table} VALUES ('neu', 77, NULL, 'x'); DELETE FROM {table} WHERE `the user` = 3")
    assert_reads(spark, path, ours.read(path)[1])


def test_spark_goes_on_after_dropped_features(spark, tmp_path):
    """DROP FEATURE of ours leaves a table that Spark reads and changes, at old versions too, with the ids of its rows."""
    ours = Ours(tmp_path)
    ours.run("CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true',"
             " 'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true', 'delta.checkpointPolicy' = 'v2');"
             " INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'); ALTER TABLE t RENAME COLUMN v TO w; ALTER TABLE t ALTER COLUMN id TYPE BIGINT;"
             " DELETE FROM t WHERE id = 2; UPDATE t SET w = 'A' WHERE id = 1")
    path = tmp_path / "main" / "default" / "t"
    table, before = f"delta.{quote(str(path))}", spark.row_ids(path, "id")
    for feature in ("deletionVectors", "columnMapping", "typeWidening", "v2Checkpoint"):
        ours.run(f"ALTER TABLE t DROP FEATURE {feature}")
        assert_reads(spark, path, ours.read(path)[1])
    assert spark.row_ids(path, "id") == before
    features = spark.query(f"DESCRIBE DETAIL {table}")[0]["tableFeatures"]
    assert sorted(features) == ["appendOnly", "checkpointProtection", "domainMetadata", "inCommitTimestamp", "invariants", "rowTracking"]
    for version in (1, 4, 5):
        assert_reads(spark, path, ours.read(path, version)[1], version)
    spark.run(f"INSERT INTO {table} VALUES (9, 'spark')", f"UPDATE {table} SET w = 'S' WHERE id = 3")
    ours.run("ALTER TABLE t DROP FEATURE rowTracking; ALTER TABLE t DROP FEATURE inCommitTimestamp; ALTER TABLE t DROP FEATURE domainMetadata")
    assert_reads(spark, path, ours.read(path)[1])
    spark.run(f"INSERT INTO {table} VALUES (10, 'again')", f"RESTORE {table} TO VERSION AS OF 5")
    assert_reads(ours, path, spark.read(path)[1])


def test_spark_reads_what_auto_cdc_widened(spark, tmp_path):
    """Types that AUTO CDC widened are recorded as Spark wants them."""
    (tmp_path / "p").mkdir()
    (tmp_path / "in").mkdir()
    for number, (types, row) in enumerate((
            ("n INT, b TINYINT, m DECIMAL(5,2), d DATE, s STRUCT<a: INT, l: ARRAY<SMALLINT>>",
             {"n": 1, "b": 2, "m": 3.25, "d": "2024-02-29", "s": {"a": 4, "l": [5]}}),
            ("n BIGINT, b DECIMAL(4,1), m DECIMAL(9,4), d TIMESTAMP_NTZ, s STRUCT<a: BIGINT, l: ARRAY<INT>>",
             {"n": 9000000000, "b": 2.5, "m": 3.2525, "d": "2024-02-29 12:00:00", "s": {"a": 9000000000, "l": [70000]}}))):
        (tmp_path / "p" / "t.sql").write_text(
            "CREATE STREAMING TABLE t TBLPROPERTIES ('delta.enableTypeWidening' = 'true');\n"
            f"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('{tmp_path / 'in'}', format => 'json', "
            f"schema => 'id INT, {types}') KEYS (id) SEQUENCE BY id;\n", encoding="utf-8")
        write_json_lines(tmp_path / "in" / f"{number}.json", [{"id": number, **row}])
        assert run_pipeline(tmp_path / "p", tmp_path / "w").exit_code == 0
    path = tmp_path / "w" / "main" / "default" / "t"
    assert_reads(spark, path, Ours(tmp_path / "w").read(path)[1])
