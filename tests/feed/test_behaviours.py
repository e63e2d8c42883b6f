"""What other engines' suites ask of a change data feed, case by case; behaviours.json says which test shows which."""

import json
import os
import re

import pytest
from harness import ROOT, SHARED, SqlError, query, run_pipeline, sql_text

MODES = [(feed, vectors) for feed in ("automatic", "recorded") for vectors in (False, True)]
every_mode = pytest.mark.parametrize("feed, vectors", MODES, ids=[f"{f}-{'dv' if v else 'cow'}" for f, v in MODES])


def properties(feed, vectors, **more):
    all = {"delta.enableRowTracking": feed == "automatic", "delta.enableChangeDataFeed": feed == "recorded",
           "delta.enableDeletionVectors": vectors, **more}
    return "TBLPROPERTIES (" + ", ".join(f"'{key}' = '{str(value).lower()}'" for key, value in all.items()) + ")"


def feed_of(warehouse, table, start=0, end=None, columns="id, v"):
    """Rows of the feed as texts: '3 delete 1 a'."""
    rows = query(warehouse, f"SELECT _commit_version, _change_type, {columns} FROM "
                            f"table_changes('{table}', {start}{'' if end is None else f', {end}'})")
    return sorted(" ".join(str(value) for value in row.values()) for row in rows)


def make(warehouse, feed, vectors, *statements, partitioned=False, columns="id INT, v STRING"):
    by = " PARTITIONED BY (v)" if partitioned else ""
    sql_text(warehouse, "; ".join([f"CREATE TABLE t ({columns}){by} {properties(feed, vectors)}", *statements]))


ROWS = "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"


@every_mode
def test_appends(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, *[f"INSERT INTO t SELECT id + {10 * i}, 'x' FROM range(0, 10)" for i in range(3)])
    for function, name in (("table_changes", "t"), ("table_changes_by_path", tmp_path / "main" / "default" / "t")):
        rows = query(tmp_path, f"SELECT id, _change_type AS c, _commit_version AS n FROM {function}('{name}', 0, 2)")
        assert sorted((row["id"], row["c"], row["n"]) for row in rows) == \
            [(i, "insert", 1 + i // 10) for i in range(20)]


@every_mode
def test_deletes(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, ROWS, "INSERT INTO t VALUES (5, 'e')", "DELETE FROM t WHERE id IN (1, 5)",
         "DELETE FROM t WHERE id = 99", "DELETE FROM t WHERE id < 100", ROWS, "DELETE FROM t")
    changes = feed_of(tmp_path, "t", 3)
    last = max(int(row.split()[0]) for row in changes)
    everything = [f"{last} delete {i} {v}" for i, v in enumerate("abcd", 1)]
    assert changes[:2] == ["3 delete 1 a", "3 delete 5 e"]
    assert [row.split(maxsplit=1)[1] for row in changes[2:5]] == ["delete 2 b", "delete 3 c", "delete 4 d"]
    assert changes[-4:] == everything and len(changes) == 2 + 3 + 4 + 4


@every_mode
def test_deletes_of_partitions(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, ROWS, "INSERT INTO t VALUES (5, 'a')", "DELETE FROM t WHERE v = 'a'",
         "DELETE FROM t WHERE id IN (SELECT 2)", "DELETE FROM t", partitioned=True)
    assert feed_of(tmp_path, "t", 3) == ["3 delete 1 a", "3 delete 5 a", "4 delete 2 b", "5 delete 3 c", "5 delete 4 d"]


@every_mode
def test_deletes_on_one_file(tmp_path, feed, vectors):
    """Each commit tells its own rows, however often the file was touched before."""
    make(tmp_path, feed, vectors, ROWS, "DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 2",
         "DELETE FROM t WHERE id > 2")
    rows = ["1 insert 1 a", "1 insert 2 b", "1 insert 3 c", "1 insert 4 d", "2 delete 1 a", "3 delete 2 b",
            "4 delete 3 c", "4 delete 4 d"]
    for start in range(1, 5):
        for end in range(start, 5):
            assert feed_of(tmp_path, "t", start, end) == [row for row in rows if start <= int(row[0]) <= end]


@every_mode
def test_updates(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "UPDATE t SET v = 'x' WHERE id = 1",
         "UPDATE t SET v = 'y' WHERE id = 1", "UPDATE t SET v = v WHERE id = 2", "UPDATE t SET v = 'z'",
         "UPDATE t SET v = 'w' WHERE id < 100")
    assert feed_of(tmp_path, "t", 2) == [
        "2 update_postimage 1 x", "2 update_preimage 1 a", "3 update_postimage 1 y", "3 update_preimage 1 x",
        "4 update_postimage 2 b", "4 update_preimage 2 b",
        "5 update_postimage 1 z", "5 update_postimage 2 z", "5 update_preimage 1 y", "5 update_preimage 2 b",
        "6 update_postimage 1 w", "6 update_postimage 2 w", "6 update_preimage 1 z", "6 update_preimage 2 z"]


@every_mode
def test_updates_of_partitions(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "UPDATE t SET id = 10 WHERE v = 'a'",
         "UPDATE t SET v = NULL WHERE id = 2", partitioned=True)
    assert feed_of(tmp_path, "t", 2) == ["2 update_postimage 10 a", "2 update_preimage 1 a",
                                         "3 update_postimage 2 None", "3 update_preimage 2 b"]
    files = [path.relative_to(tmp_path / "main" / "default" / "t") for path in tmp_path.glob("**/_change_data/**/*.parquet")]
    if feed == "recorded":
        # Under the old value of the partition before, under the new one after.
        assert {path.parts[1].split("=")[1] for path in files} >= {"a", "b", "__HIVE_DEFAULT_PARTITION__"}
        assert all(re.fullmatch(r"_change_data/v=[^/]+/cdc-.*\.parquet", str(path)) for path in files), files
    else:
        assert files == []
    for path in (tmp_path / "main" / "default" / "t").glob("v=*/*.parquet"):
        columns = query(tmp_path, f"SELECT * FROM read_parquet('{path}') LIMIT 1")
        assert all("_change_type" not in row for row in columns), "no marker in a data file"


@every_mode
def test_merges(tmp_path, feed, vectors):
    source = "MERGE INTO t USING (SELECT * FROM VALUES {0} AS s(id, v)) AS s ON t.id = s.id "
    make(tmp_path, feed, vectors, ROWS,
         source.format("(5, 'e'), (1, 'x')") + "WHEN NOT MATCHED THEN INSERT *",
         source.format("(5, 'E'), (9, 'x')") + "WHEN MATCHED THEN UPDATE SET v = s.v",
         source.format("(5, 'E'), (9, 'x')") + "WHEN MATCHED THEN DELETE",
         source.format("(1, 'A'), (2, 'B'), (6, 'f')") + "WHEN MATCHED AND t.id = 1 THEN DELETE "
         "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE",
         source.format("(100, 'x')") + "WHEN MATCHED THEN DELETE",
         source.format("(6, 'x'), (6, 'y')") + "WHEN MATCHED THEN DELETE",
         source.format("(7, 'x'), (7, 'x')") + "WHEN NOT MATCHED THEN INSERT *")
    assert feed_of(tmp_path, "t", 2) == [
        "2 insert 5 e", "3 update_postimage 5 E", "3 update_preimage 5 e", "4 delete 5 E",
        "5 delete 1 a", "5 delete 3 c", "5 insert 6 f", "5 update_postimage 2 B", "5 update_preimage 2 b",
        "6 delete 6 f", "7 insert 7 x", "7 insert 7 x"]
    with pytest.raises(SqlError, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
        sql_text(tmp_path, source.format("(2, 'x'), (2, 'y')") + "WHEN MATCHED THEN UPDATE SET *")


@every_mode
def test_a_merge_that_adds_a_column(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
         "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id, 'x' AS v, 7 AS more) AS s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET *")
    assert feed_of(tmp_path, "t", 2, columns="id, v, more") == ["2 update_postimage 1 x 7", "2 update_preimage 1 a None"]


@every_mode
def test_overwrites_and_optimize(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, "INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'a'), (3, 'b')", "OPTIMIZE t",
         "SET spark.sql.sources.partitionOverwriteMode = dynamic", "INSERT OVERWRITE t VALUES (4, 'a')",
         "INSERT OVERWRITE t SELECT * FROM t WHERE id > 1000", partitioned=True)
    changes = feed_of(tmp_path, "t", 3)
    assert [row.split(maxsplit=1)[1] for row in changes] == ["delete 1 a", "delete 2 a", "insert 4 a"]


@every_mode
def test_a_restore(tmp_path, feed, vectors):
    make(tmp_path, feed, vectors, ROWS, "UPDATE t SET v = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2",
         "RESTORE TABLE t TO VERSION AS OF 1")
    back = [row.split(maxsplit=1)[1] for row in feed_of(tmp_path, "t", 4)]
    if feed == "automatic":
        assert back == ["insert 2 b", "update_postimage 1 a", "update_preimage 1 x"]
        return
    net = {}
    for row in back:
        kind, values = row.split(maxsplit=1)
        net[values] = net.get(values, 0) + (1 if kind in ("insert", "update_postimage") else -1)
    assert {values: n for values, n in net.items() if n} == {"1 a": 1, "1 x": -1, "2 b": 1}


@pytest.mark.parametrize("feed", ["automatic", "recorded"])
def test_vectors_of_two_files_in_one_commit(tmp_path, feed):
    make(tmp_path, feed, True, ROWS, "INSERT INTO t VALUES (11, 'a'), (12, 'b'), (13, 'c')",
         "DELETE FROM t WHERE id IN (1, 11)", "DELETE FROM t WHERE id IN (2, 12)")
    assert feed_of(tmp_path, "t", 3) == ["3 delete 1 a", "3 delete 11 a", "4 delete 12 b", "4 delete 2 b"]


def test_an_update_with_vectors_records_its_images(tmp_path):
    make(tmp_path, "recorded", True, "INSERT INTO t SELECT id, 'x' FROM range(0, 5)",
         "INSERT INTO t SELECT id, 'x' FROM range(5, 10)", "UPDATE t SET v = 'y' WHERE id % 4 = 0")
    log = (tmp_path / "main" / "default" / "t" / "_delta_log" / f"{3:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in log]
    with_vectors = [action["add"] for action in actions if "add" in action and "deletionVector" in action["add"]]
    assert len(with_vectors) == 2 and any("cdc" in action for action in actions)
    assert len(feed_of(tmp_path, "t", 3)) == 6


def test_odd_column_names_and_structs(tmp_path):
    sql_text(tmp_path, "CREATE TABLE t (`a.b` INT, `c``d` STRING, s STRUCT<x: INT, `y.z`: STRING>); "
                       "INSERT INTO t VALUES (1, 'one', named_struct('x', 1, 'y.z', 'p')); UPDATE t SET `a.b` = 2")
    rows = query(tmp_path, "SELECT `a.b`, `c``d`, s.`y.z` AS f, _change_type AS c FROM table_changes('t', 2) ORDER BY 1")
    assert [list(row.values()) for row in rows] == [[1, "one", "p", "update_preimage"], [2, "one", "p", "update_postimage"]]


def test_odd_paths(tmp_path):
    path = tmp_path / "a b%20c#d" / "t"
    sql_text(tmp_path / "w", f"CREATE TABLE delta.`{path}` (id INT, p STRING) PARTITIONED BY (p); "
                             f"INSERT INTO delta.`{path}` VALUES (1, 'x y%#'), (2, 'x y%#'); "
                             f"DELETE FROM delta.`{path}` WHERE id = 1")
    rows = query(tmp_path / "w", f"SELECT id, p, _change_type AS c FROM table_changes_by_path('{path}', 2)")
    assert [list(row.values()) for row in rows] == [[1, "x y%#", "delete"]]


def test_the_hour_that_comes_twice(tmp_path):
    sql_text(tmp_path, "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false'); "
                       "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
    log = tmp_path / "main" / "default" / "t" / "_delta_log"
    for version, time in enumerate((1_572_700_000, 1_572_770_564, 1_572_774_164)):  # 08:42:44 and 09:42:44 UTC
        os.utime(log / f"{version:020}.json", (time, time))
    for offset, ids in (("-0700", [1, 2]), ("-0800", [2])):
        rows = query(tmp_path, f"SELECT id FROM table_changes('t', '2019-11-03 01:42:44 {offset}')")
        assert sorted(row["id"] for row in rows) == ids
    texts = {sql_text(tmp_path, "SELECT _commit_timestamp FROM table_changes('t', 1, 1)", env={"TZ": zone})
             for zone in ("UTC", "America/Los_Angeles", "Asia/Kolkata")}
    assert len(texts) == 1


def test_no_time_travel_besides(tmp_path):
    make(tmp_path, "automatic", True, ROWS)
    with pytest.raises(SqlError, match="found .VERSION., expected"):
        query(tmp_path, "SELECT * FROM table_changes('t', 0) VERSION AS OF 1")


# --- streams --------------------------------------------------------------------------------------


def stream(folder, table, options, select="*"):
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "p.sql").write_text(
        f"CREATE STREAMING TABLE {table} AS SELECT {select} FROM STREAM t WITH ({options})", encoding="utf-8")
    return run_pipeline(folder / "p", folder / "w")


def streamed(folder, table, columns="id, v"):
    rows = query(folder / "w", f"SELECT _commit_version, _change_type, {columns} FROM {table}")
    return sorted(" ".join(str(value) for value in row.values()) for row in rows)


def test_a_stream_of_a_feed_that_was_just_switched_on(tmp_path):
    sql_text(tmp_path / "w", "CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'false'); "
                             "INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b')")
    run = stream(tmp_path, "early", "readChangeFeed=true")
    assert run.codes == ["DELTA_MISSING_CHANGE_DATA"], run.explain()
    sql_text(tmp_path / "w", "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    assert stream(tmp_path, "now", "readChangeFeed=true").ok
    sql_text(tmp_path / "w", "DELETE FROM t WHERE id = 1")
    assert stream(tmp_path, "now", "readChangeFeed=true").ok
    assert streamed(tmp_path, "now") == ["3 insert 1 a", "3 insert 2 b", "4 delete 1 a"]
    run = stream(tmp_path, "before", "readChangeFeed=true, startingVersion=1")
    assert run.codes == ["DELTA_MISSING_CHANGE_DATA"] and "[1]" in run.report["errors"][0]["message"], run.explain()


@every_mode
def test_streams_that_start_at_a_change(tmp_path, feed, vectors):
    make(tmp_path / "w", feed, vectors, ROWS, "DELETE FROM t WHERE id = 1", "UPDATE t SET v = 'x' WHERE id = 2",
         "DELETE FROM t WHERE id = 3")
    assert stream(tmp_path, "removes", "readChangeFeed=true, startingVersion=2, maxFilesPerTrigger=1").ok
    assert streamed(tmp_path, "removes") == ["2 delete 1 a", "3 update_postimage 2 x", "3 update_preimage 2 b",
                                             "4 delete 3 c"]
    assert stream(tmp_path, "images", "readChangeFeed=true, startingVersion=3").ok
    assert streamed(tmp_path, "images") == ["3 update_postimage 2 x", "3 update_preimage 2 b", "4 delete 3 c"]


def test_a_stream_of_a_mapped_and_partitioned_table(tmp_path):
    sql_text(tmp_path / "w", "CREATE TABLE t (id INT, `odd name` STRING, v STRING) PARTITIONED BY (v) "
                             "TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); "
                             "INSERT INTO t VALUES (1, 'o', 'a'), (2, 'p', 'b'); DELETE FROM t WHERE id = 1")
    select = "id, `odd name` AS n, v, _change_type, _commit_version"
    assert stream(tmp_path, "s", "readChangeFeed=true, startingVersion=1", select).ok
    assert streamed(tmp_path, "s", "id, n, v") == ["1 insert 1 o a", "1 insert 2 p b", "2 delete 1 o a"]
    run = stream(tmp_path, "ids", "readChangeFeed=true", "id, _metadata.row_id")
    assert not run.ok, "row ids are no columns of a feed"


def test_every_behaviour_has_a_test():
    """behaviours.json: number -> tests that show it, as file or file::name; or why there is none."""
    listed = json.loads((ROOT / "tests" / "feed" / "behaviours.json").read_text(encoding="utf-8"))
    assert list(listed) == [str(number) for number in range(1, len(listed) + 1)]
    for number, entry in listed.items():
        assert entry["what"] and (entry.get("tests") or entry.get("why_not")), number
        for test in entry.get("tests", []):
            file, _, name = test.partition("::")
            path = ROOT / file
            assert path.is_file(), f"{number}: {file}"
            assert re.search(rf"\b{re.escape(name)}\b", path.read_text(encoding="utf-8")), f"{number}: {test}"
    source = SHARED / "research" / "cdf-semantics.md"
    if not source.is_file():
        pytest.skip(f"the list of behaviours is not at {source}")
    cases = source.read_text(encoding="utf-8").split("## 8.")[1]
    assert {int(n) for n in re.findall(r"^(\d+)\. ", cases, re.M)} == {int(n) for n in listed}
