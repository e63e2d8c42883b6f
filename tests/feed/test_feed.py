"""The change data feed of random histories: what was there before a version, and the feed of that
version, give what is there after it. Both feeds; with and without deletion vectors, partitions and
column mapping."""

import collections
import json
import os
import random

import pytest
from harness import SqlError, query, rows_as_bag, run_pipeline, sql_text, write_json_lines

PROPERTIES = {
    "automatic": {"delta.enableRowTracking": "true"},
    "recorded": {"delta.enableRowTracking": "false", "delta.enableChangeDataFeed": "true"},
}
STATEMENTS = 14


def statement(rng, table, step):
    """One random statement; ids from ten times the step on are new."""
    next_id = step * 10
    some = f"id % {rng.randint(2, 5)} = {rng.randint(0, 1)}"
    value, part = rng.randint(0, 3), rng.choice("abc")
    rows = ", ".join(f"({next_id + i}, {rng.randint(0, 3)}, '{rng.choice('abc')}')" for i in range(4))
    known = f"({rng.randint(1, next_id - 1)}, {value})"
    return rng.choice([
        f"INSERT INTO {table} VALUES {rows}",
        f"INSERT INTO {table} VALUES {rows}",
        f"UPDATE {table} SET v = v + 1 WHERE {some}",
        f"UPDATE {table} SET v = v WHERE id < 3",
        f"UPDATE {table} SET p = '{part}' WHERE {some}",
        f"DELETE FROM {table} WHERE {some}",
        f"DELETE FROM {table} WHERE p = '{part}'",
        f"MERGE INTO {table} AS t USING (SELECT id, v FROM VALUES {known}, ({next_id}, 9) AS s(id, v)) AS s "
        f"ON t.id = s.id WHEN MATCHED AND t.v > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        f"WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, s.v, '{part}') "
        f"WHEN NOT MATCHED BY SOURCE AND t.v = 1 THEN UPDATE SET v = 8",
        f"INSERT OVERWRITE {table} SELECT id, v, p FROM {table} WHERE {some}",
        f"TRUNCATE TABLE {table}",
        f"OPTIMIZE {table}",
        f"RESTORE TABLE {table} TO VERSION AS OF 1",
    ])


def history(seed, table):
    rng = random.Random(seed)
    made = [f"INSERT INTO {table} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 0, 'a')"]
    for step in range(1, STATEMENTS):
        made.append(statement(rng, table, step))
    return made


def create(table, feed, vectors, layout):
    properties = {**PROPERTIES[feed], "delta.enableDeletionVectors": str(vectors).lower()}
    if layout == "mapped":
        properties["delta.columnMapping.mode"] = "name"
    text = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    by = "" if layout == "plain" else " PARTITIONED BY (p)"
    return f"CREATE TABLE {table} (id INT, v INT, p STRING){by} TBLPROPERTIES ({text})"


COLUMNS = "id, v, p"


def differing_rows(table, version, columns=COLUMNS):
    """Before and what came, against after and what went: empty when the feed tells the change."""
    feed = f"SELECT {columns}, _change_type AS c FROM table_changes('{table}', {version}, {version})"
    came = f"SELECT {columns} FROM ({feed}) WHERE c IN ('insert', 'update_postimage')"
    went = f"SELECT {columns} FROM ({feed}) WHERE c IN ('delete', 'update_preimage')"
    before = f"SELECT {columns} FROM {table} VERSION AS OF {version - 1}"
    after = f"SELECT {columns} FROM {table} VERSION AS OF {version}"
    left = f"({before} UNION ALL {came})"
    right = f"({after} UNION ALL {went})"
    return (f"SELECT {version} AS version, count(*) AS n FROM "
            f"(({left} EXCEPT ALL {right}) UNION ALL ({right} EXCEPT ALL {left}))")


@pytest.mark.parametrize("feed", PROPERTIES)
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("layout, seed", [("plain", 0), ("partitioned", 1), ("mapped", 2)])
def test_the_feed_tells_what_changed(tmp_path, feed, vectors, layout, seed):
    sql_text(tmp_path, ";\n".join([create("t", feed, vectors, layout), *history(seed, "t")]))
    changes = query(tmp_path, f"SELECT {COLUMNS}, _change_type AS c, _commit_version AS n FROM table_changes('t', 0)")
    last = max(row["n"] for row in changes)
    assert last > STATEMENTS // 2
    checks = query(tmp_path, ";\n".join(differing_rows("t", version) for version in range(1, last + 1)))
    assert [row for row in checks if row["n"] != 0] == []
    for version in range(1, last + 1):
        here = [row for row in changes if row["n"] == version]
        assert {row["c"] for row in here} <= {"insert", "delete", "update_preimage", "update_postimage"}
        # No statement above changes an id by UPDATE: both images of a row have the same one.
        images = [sorted(row["id"] for row in here if row["c"] == c) for c in ("update_preimage", "update_postimage")]
        assert images[0] == images[1], f"version {version}"


def net(rows, columns):
    """The rows that come and go in each version, those that do both left out."""
    counts = collections.Counter()
    for row in rows:
        sign = 1 if row["c"] in ("insert", "update_postimage") else -1
        counts[(row["n"], *(row[column] for column in columns))] += sign
    return {row: count for row, count in counts.items() if count}


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("layout, seed", [("plain", 7), ("partitioned", 8), ("mapped", 9)])
def test_both_feeds_tell_the_same(tmp_path, vectors, layout, seed):
    feeds = {}
    for table, feed in (("a", "automatic"), ("r", "recorded")):
        sql_text(tmp_path, ";\n".join([create(table, feed, vectors, layout), *history(seed, table)]))
        feeds[table] = query(tmp_path, f"SELECT {COLUMNS}, _change_type AS c, _commit_version AS n "
                                       f"FROM table_changes('{table}', 0)")
    columns = COLUMNS.split(", ")
    assert net(feeds["a"], columns) == net(feeds["r"], columns)
    # Apart from what was brought back, which keeps its ids, the types are the same, too.
    restored = {row["version"] for row in query(tmp_path, "DESCRIBE HISTORY a") if row["operation"] == "RESTORE"}
    bags = [sorted(map(str, (tuple(row.values()) for row in rows if row["n"] not in restored)))
            for rows in feeds.values()]
    assert bags[0] == bags[1]


STORAGES = {"one": "SCD TYPE 1", "two": "SCD TYPE 2", "both": "BITEMPORAL SYSTEM SEQUENCE BY s"}


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("layout, seed", [("plain", 21), ("partitioned", 22), ("mapped", 23)])
def test_feeds_of_random_targets(tmp_path, vectors, layout, seed):
    """Each batch of AUTO CDC: the table before it and its feed give the table after it, in both feeds alike, and a
    stream of the feed into another table, by key, gives the table again."""
    rng = random.Random(seed)
    warehouse, text = tmp_path / "w", ""
    for name, storage in STORAGES.items():
        for feed in PROPERTIES:
            target = f"{name}_{feed}"
            properties = {**PROPERTIES[feed], "delta.enableDeletionVectors": str(vectors).lower()}
            if layout == "mapped":
                properties["delta.columnMapping.mode"] = "name"
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            by = " PARTITIONED BY (p)" if layout == "partitioned" else ""
            kept = "op, s" if name != "both" else "op"
            text += (f"CREATE STREAMING TABLE {target}{by} TBLPROPERTIES ({listed});\n"
                     f"CREATE FLOW to_{target} AS AUTO CDC INTO {target} FROM STREAM read_files('{tmp_path}/in', "
                     f"format => 'json', schema => 'k INT, v INT, p STRING, op STRING, s INT') KEYS (k) "
                     f"APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT ({kept}) STORED AS {storage};\n")
    text += ("CREATE STREAMING TABLE copy;\nCREATE FLOW to_copy AS AUTO CDC INTO copy FROM STREAM one_automatic "
             "WITH (readChangeFeed=true, startingVersion=0) KEYS (k) SEQUENCE BY _commit_version;\n")
    pipeline(tmp_path, text)
    batches = 5
    for batch in range(batches):
        events = [{"k": rng.randint(1, 12), "v": rng.randint(0, 3), "p": rng.choice("ab"),
                   "op": rng.choice("UUUD"), "s": rng.randint(1, 60)} for _ in range(15)]
        write_json_lines(tmp_path / "in" / f"{batch}.json", events)
        run = run_pipeline(tmp_path / "p", warehouse)
        assert run.ok, f"seed {seed}\n{run.explain()}"
    ends = {"one": "k, v, p", "two": "k, v, p, __START_AT, __END_AT",
            "both": "k, v, p, s, __START_AT, __END_AT, __SYSTEM_START_AT, __SYSTEM_END_AT"}
    for name, columns in ends.items():
        nets = []
        for feed in PROPERTIES:
            rows = query(warehouse, f"SELECT {columns}, _change_type AS c, _commit_version AS n "
                                    f"FROM table_changes('{name}_{feed}', 0)")
            last = max(row["n"] for row in rows)
            checks = query(warehouse, ";\n".join(differing_rows(f"{name}_{feed}", version, columns)
                                                 for version in range(1, last + 1)))
            assert [row for row in checks if row["n"] != 0] == [], f"seed {seed}: {name}, {feed}"
            nets.append(sorted(map(str, (tuple(row.values()) for row in rows))))
        assert nets[0] == nets[1], f"seed {seed}: {name}"
    assert rows_as_bag(query(warehouse, "SELECT * FROM copy")) == rows_as_bag(query(warehouse, "SELECT * FROM one_automatic"))


def test_times_grow_with_versions(tmp_path):
    sql_text(tmp_path, "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false');"
                       "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)")
    log = tmp_path / "main" / "default" / "t" / "_delta_log"
    for version in range(4):
        os.utime(log / f"{version:020}.json", (1_700_000_000 - version, 1_700_000_000 - version))
    times = query(tmp_path, "SELECT _commit_version AS n, unix_millis(_commit_timestamp) AS ms "
                            "FROM table_changes('t', 0) ORDER BY n")
    assert [(row["n"], row["ms"]) for row in times] == [(v, 1_700_000_000_000 + v) for v in (1, 2, 3)]


def test_a_file_that_is_gone_is_named_with_its_version(tmp_path):
    sql_text(tmp_path, "CREATE TABLE t (id INT); INSERT INTO t VALUES (1); INSERT OVERWRITE t VALUES (2)")
    table = tmp_path / "main" / "default" / "t"
    actions = map(json.loads, (table / "_delta_log" / f"{1:020}.json").read_text("utf-8").splitlines())
    first = table / next(action["add"]["path"] for action in actions if "add" in action)
    first.unlink()
    with pytest.raises(SqlError, match=f"DELTA_CHANGE_DATA_FILE_NOT_FOUND.*version 1.*{first.name}"):
        query(tmp_path, "SELECT * FROM table_changes('t', 0)")


def test_the_documents_queries(tmp_path):
    """The documents' SQL as printed, over tables whose commits are of 2021."""
    create = "(id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false')"
    inserts = "; ".join("INSERT INTO {0} VALUES (%d)" % i for i in range(1, 11))
    for name in ("tableName", "`schema`.`dotted.tableName`"):
        before = "" if name == "tableName" else "CREATE SCHEMA `schema`; "
        sql_text(tmp_path, f"{before}CREATE TABLE {name} {create}; " + inserts.format(name))
    for log in tmp_path.glob("main/*/*/_delta_log"):
        for version in range(11):
            # 21 April 2021, 06:00, and every four days: versions 0 to 7 until 21 May.
            time = 1_618_984_800 + version * 4 * 86_400
            os.utime(log / f"{version:020}.json", (time, time))
    ids = {
        "SELECT * FROM table_changes('tableName', 0, 10)": range(1, 11),
        "SELECT * FROM table_changes('tableName', '2021-04-21 05:45:46', '2021-05-21 12:00:00')": range(1, 8),
        "SELECT * FROM table_changes('tableName', 0)": range(1, 11),
        "SELECT * FROM table_changes('`schema`.`dotted.tableName`', '2021-04-21 06:45:46', '2021-05-21 12:00:00')":
            range(1, 8),
    }
    for text, expected in ids.items():
        assert sorted(row["id"] for row in query(tmp_path, text)) == list(expected), text
    beyond = "SELECT * FROM table_changes('tableName', 11)"
    with pytest.raises(SqlError, match="timestampGreaterThanLatestCommit"):
        query(tmp_path, beyond)
    setting = "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled = true;"
    assert query(tmp_path, setting + beyond) == []


def pipeline(folder, text):
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "p.sql").write_text(text, encoding="utf-8")


def test_a_stream_names_the_file_and_version_that_vacuum_took(tmp_path):
    """Rows that were inserted and deleted again: their file goes with VACUUM, and the feed with it."""
    warehouse = tmp_path / "w"
    sql_text(warehouse, "CREATE TABLE t (id INT); INSERT INTO t VALUES (1); INSERT OVERWRITE t VALUES (2); "
                        "SET spark.databricks.delta.retentionDurationCheck.enabled = false; VACUUM t RETAIN 0 HOURS")
    pipeline(tmp_path, "CREATE STREAMING TABLE f AS SELECT * FROM STREAM t WITH (readChangeFeed=true, startingVersion=1);"
                       "CREATE STREAMING TABLE a AS SELECT * FROM STREAM t "
                       "WITH (startingVersion=1, skipChangeCommits=true);")
    run = run_pipeline(tmp_path / "p", warehouse)
    assert sorted(run.codes) == ["DELTA_CHANGE_DATA_FILE_NOT_FOUND", "DELTA_FILE_NOT_FOUND"], run.explain()
    for error in run.report["errors"]:
        assert "version" in error["message"] and ".parquet" in error["message"], error
    # What is still there can be read from a later start on.
    pipeline(tmp_path, "CREATE STREAMING TABLE g AS SELECT * FROM STREAM t WITH (readChangeFeed=true);")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    assert [row["id"] for row in query(warehouse, "SELECT id FROM g")] == [2]


def test_versions_that_the_log_lost(tmp_path):
    warehouse = tmp_path / "w"
    sql_text(warehouse, "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.checkpointInterval' = '3'); "
                        + "; ".join(f"INSERT INTO t VALUES ({i})" for i in range(1, 7)))
    log = warehouse / "main" / "default" / "t" / "_delta_log"
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    text = "CREATE STREAMING TABLE {0} AS SELECT id FROM STREAM t WITH (startingVersion=1, {1});"
    pipeline(tmp_path, text.format("f", "readChangeFeed=true") + text.format("a", "readChangeFeed=false"))
    run = run_pipeline(tmp_path / "p", warehouse)
    assert not run.ok and all("version" in error["message"] for error in run.report["errors"]), run.explain()
    assert "DELTA_MISSING_FILES_UNEXPECTED_VERSION" in run.codes, run.explain()
    pipeline(tmp_path, text.format("f", "readChangeFeed=true, failOnDataLoss=false")
             + text.format("a", "failOnDataLoss=false"))
    run = run_pipeline(tmp_path / "p", warehouse)
    for table in ("f", "a") if run.ok else ("a",):
        assert sorted(row["id"] for row in query(warehouse, f"SELECT id FROM {table}")) == [3, 4, 5, 6], run.explain()
    assert run.ok, run.explain()


def test_many_commits_in_little_memory(tmp_path):
    """A feed and a stream over as many commits as a batch looks at twice: the log of each is copied from one."""
    warehouse = tmp_path / "w"
    sql_text(warehouse, "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false', "
                        "'delta.enableRowTracking' = 'false', 'delta.enableChangeDataFeed' = 'true'); "
                        "INSERT INTO t VALUES (1)")
    table = warehouse / "main" / "default" / "t"
    first = (table / "_delta_log" / f"{1:020}.json").read_text(encoding="utf-8")
    file = next(table.glob("*.parquet"))
    versions = 2000
    for version in range(2, versions + 1):
        name = f"copy-{version}.parquet"
        os.link(file, table / name)
        (table / "_delta_log" / f"{version:020}.json").write_text(first.replace(file.name, name), encoding="utf-8")
    little = ["--memory-limit", "300MB"]
    assert query(warehouse, "SELECT count(*) AS n, max(_commit_version) AS v FROM table_changes('t', 0)",
                 arguments=little) == [{"n": versions, "v": versions}]
    pipeline(tmp_path, "CREATE STREAMING TABLE s AS SELECT * FROM STREAM t WITH (readChangeFeed=true, startingVersion=0)")
    run = run_pipeline(tmp_path / "p", warehouse, *little)
    # A thousand versions at a time, the first of which, CREATE TABLE, has no file.
    assert run.ok and run.flow("s")["metrics"]["num_batches"] == 3, run.explain()
    assert query(warehouse, "SELECT count(DISTINCT _commit_version) AS n FROM s") == [{"n": versions}]

@pytest.mark.parametrize("own", ["true", "false"])
def test_the_times_of_the_history_are_those_of_time_travel(tmp_path, own):
    warehouse = tmp_path / "w"
    sql_text(warehouse, f"CREATE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = '{own}'); "
                        + "; ".join(f"INSERT INTO t VALUES ({i})" for i in range(4)))
    log = warehouse / "main" / "default" / "t" / "_delta_log"
    if own == "false":  # as a copy of the table: files of other times, one older than the one before
        for version, time in enumerate([100, 200, 150, 300, 400]):
            os.utime(log / f"{version:020}.json", (time, time))
    history = query(warehouse, "DESCRIBE HISTORY t")
    assert [row["version"] for row in history] == [4, 3, 2, 1, 0]
    for row in history:
        found = query(warehouse, f"SELECT count(*) AS n FROM t TIMESTAMP AS OF '{row['timestamp']}'")
        assert found == [{"n": row["version"]}], row
    feed = query(warehouse, "SELECT id, _commit_timestamp AS at FROM table_changes('t', 1) ORDER BY id")
    assert [row["at"] for row in feed] == [row["timestamp"] for row in reversed(history[:-1])]
