"""Streams of tables of which VACUUM took a part: full refreshes, and ways to go on."""

import json

import pytest
from harness import query, run_pipeline, sql_text

NO_CHECK = "SET spark.databricks.delta.retentionDurationCheck.enabled = false; "
VACUUM = NO_CHECK + "VACUUM src RETAIN 0 HOURS;"


class Follower:
    """A pipeline of one flow that reads `src`."""

    def __init__(self, folder, text):
        self.pipeline, self.warehouse = folder / "p", folder / "w"
        self.pipeline.mkdir()
        self.declare(text)

    def declare(self, text):
        (self.pipeline / "t.sql").write_text(text, encoding="utf-8")

    def sql(self, text):
        sql_text(self.warehouse, text)

    def run(self, *arguments):
        return run_pipeline(self.pipeline, self.warehouse, *arguments)

    def completes(self, *arguments):
        run = self.run(*arguments)
        assert run.ok, run.explain()
        return run

    def rows(self, text):
        return [tuple(row.values()) for row in query(self.warehouse, text)]


HISTORY = """CREATE STREAMING TABLE h;
CREATE FLOW f AS AUTO CDC INTO h FROM STREAM src WITH (readChangeFeed=true, startingVersion=0)
KEYS (id) SEQUENCE BY _commit_version STORED AS SCD TYPE 2;"""
ALL = "SELECT id, v, __START_AT, __END_AT FROM h ORDER BY id, __START_AT"
SOURCE = ("CREATE TABLE src (id INT, v INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false'); "
          "INSERT INTO src VALUES (1, 1); INSERT OVERWRITE src VALUES (1, 2); INSERT INTO src VALUES (2, 1);")


def test_a_full_refresh_of_a_feed_that_vacuum_took_begins_nothing(tmp_path):
    p = Follower(tmp_path, HISTORY)
    p.sql(SOURCE)
    p.completes()
    p.sql(VACUUM)
    before = p.rows(ALL)
    for arguments in (("--full-refresh", "h"), ("--full-refresh-all",)):
        run = p.run(*arguments)
        assert run.codes == ["MISSING_SOURCE"], run.explain()
        message = run.report["errors"][0]["message"]
        assert "version 1" in message and ".parquet" in message and "to read from version 3 on" in message
    # The flow goes on as if nothing had been asked; VACUUM made two versions.
    p.sql("INSERT INTO src VALUES (3, 1);")
    p.completes()
    assert p.rows(ALL) == [*before, (3, 1, 6, None)]


def test_without_what_is_missing_a_full_refresh_begins_after_it(tmp_path):
    p = Follower(tmp_path, HISTORY)
    p.sql(SOURCE + VACUUM)
    # Nor does it matter that the flow never got that far.
    assert p.run().codes == ["DELTA_CHANGE_DATA_FILE_NOT_FOUND"]
    run = p.completes("--full-refresh", "h", "--allow-missing-sources")
    assert [warning["code"] for warning in run.report["warnings"]] == ["STREAM_DATA_LOSS"]
    assert "from version 3 on" in run.report["warnings"][0]["message"]
    logged = p.rows("SELECT message FROM event_log('p') WHERE level = 'WARN'")
    assert len(logged) == 1 and "from version 3 on" in logged[0][0]
    assert p.rows(ALL) == [(2, 1, 3, None)]
    p.sql("INSERT INTO src VALUES (3, 1);")
    assert p.completes().report["warnings"] == []
    assert p.rows(ALL) == [(2, 1, 3, None), (3, 1, 6, None)]


def test_a_later_start_outlives_a_failed_update(tmp_path):
    text = HISTORY.replace("TABLE h;", "TABLE h (CONSTRAINT c EXPECT (v < 5) ON VIOLATION FAIL UPDATE);")
    p = Follower(tmp_path, text)
    p.sql(SOURCE + "INSERT INTO src VALUES (3, 9);" + VACUUM)
    assert not p.run("--full-refresh", "h", "--allow-missing-sources").ok
    p.declare(HISTORY)
    p.completes()
    assert p.rows(ALL) == [(2, 1, 3, None), (3, 9, 4, None)]


def test_versions_that_the_log_no_longer_has(tmp_path):
    p = Follower(tmp_path, HISTORY)
    p.sql("CREATE TABLE src (id INT, v INT) TBLPROPERTIES ('delta.checkpointInterval' = '3'); "
          + "; ".join(f"INSERT INTO src VALUES ({i}, 1)" for i in range(1, 7)))
    p.completes()
    before = p.rows(ALL)
    log = p.warehouse / "main" / "default" / "src" / "_delta_log"
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    run = p.run("--full-refresh", "h")
    assert run.codes == ["MISSING_SOURCE"] and "to read from version 3 on" in run.explain(), run.explain()
    p.completes()
    assert p.rows(ALL) == before
    p.completes("--full-refresh", "h", "--allow-missing-sources")
    assert p.rows("SELECT id FROM h ORDER BY id") == [(3,), (4,), (5,), (6,)]


def test_the_same_of_streams_of_what_is_appended(tmp_path):
    p = Follower(tmp_path, "CREATE STREAMING TABLE h AS SELECT * FROM STREAM src WITH (startingVersion=0);")
    p.sql("CREATE TABLE src (id INT, v INT); INSERT INTO src VALUES (1, 1); INSERT INTO src VALUES (2, 1);")
    p.completes()
    p.sql("OPTIMIZE src; INSERT INTO src VALUES (3, 1);" + VACUUM)
    p.completes()
    run = p.run("--full-refresh", "h")
    assert run.codes == ["MISSING_SOURCE"] and "to read from version 3 on" in run.explain(), run.explain()
    p.completes()
    ids = "SELECT id FROM h ORDER BY id"
    assert p.rows(ids) == [(1,), (2,), (3,)]
    p.completes("--full-refresh", "h", "--allow-missing-sources")
    assert p.rows(ids) == [(3,)]


def test_a_stream_that_begins_with_the_table_as_it_stands_misses_nothing(tmp_path):
    p = Follower(tmp_path, HISTORY.replace(", startingVersion=0", ""))
    p.sql(SOURCE + VACUUM)
    p.completes()
    p.sql("INSERT OVERWRITE src VALUES (1, 3);" + VACUUM)
    p.completes("--full-refresh", "h")
    assert p.rows("SELECT id, v FROM h") == [(1, 3)]


ARCHIVE = """CREATE STREAMING TABLE h AS SELECT id, v, _change_type AS c, _commit_version AS n
FROM STREAM src WITH (readChangeFeed=true, startingVersion=0{});"""
ARCHIVED = "SELECT id, v, c, n FROM h ORDER BY n, id, c"


@pytest.mark.parametrize("files", [1, 1000])
def test_an_archive_passes_over_what_vacuum_took(tmp_path, files):
    """From its place on, without a full refresh, which would lose what it has."""
    p = Follower(tmp_path, ARCHIVE.format(""))
    p.sql("CREATE TABLE src (id INT, v INT); INSERT INTO src VALUES (1, 1);")
    p.completes()
    p.sql("INSERT INTO src VALUES (2, 1); INSERT OVERWRITE src VALUES (3, 1); INSERT INTO src VALUES (4, 1);" + VACUUM)
    for _ in range(2):
        run = p.run()
        assert run.codes == ["DELTA_CHANGE_DATA_FILE_NOT_FOUND"], run.explain()
        assert "failOnDataLoss=false" in run.report["errors"][0]["message"]
        assert "start after" not in run.report["errors"][0]["message"]
    p.declare(ARCHIVE.format(f", failOnDataLoss=false, maxFilesPerTrigger={files}"))
    run = p.completes()
    told = [warning["message"] for warning in run.report["warnings"] if warning["code"] == "STREAM_DATA_LOSS"]
    assert [text.split(":")[0].split("over ")[1] for text in told] == ["version 2", "version 3"], told
    assert len(p.rows("SELECT message FROM event_log('p') WHERE level = 'WARN'")) == 2
    assert p.rows(ARCHIVED) == [(1, 1, "insert", 1), (4, 1, "insert", 4)]
    assert p.completes().report["warnings"] == []
    p.declare(ARCHIVE.format(""))
    p.sql("INSERT INTO src VALUES (5, 1);")
    p.completes()
    assert p.rows(ARCHIVED)[-1] == (5, 1, "insert", 7)


def test_a_gap_in_the_middle_is_passed_over_alone(tmp_path):
    p = Follower(tmp_path, ARCHIVE.format(", failOnDataLoss=false"))
    p.sql("CREATE TABLE src (id INT, v INT);" + "".join(f"INSERT INTO src VALUES ({i}, 1);" for i in range(1, 6)))
    table = p.warehouse / "main" / "default" / "src"
    actions = map(json.loads, (table / "_delta_log" / f"{3:020}.json").read_text("utf-8").splitlines())
    (table / next(action["add"]["path"] for action in actions if "add" in action)).unlink()
    p.completes()
    assert [row[0] for row in p.rows(ARCHIVED)] == [1, 2, 4, 5]


def test_an_archive_goes_on_after_columns_it_cannot_read(tmp_path):
    p = Follower(tmp_path, ARCHIVE.format(""))
    p.sql("CREATE TABLE src (id INT, v INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); INSERT INTO src VALUES (1, 1);")
    p.completes()
    p.sql("INSERT INTO src VALUES (2, 1); ALTER TABLE src ALTER COLUMN id TYPE BIGINT; INSERT INTO src VALUES (3, 1);")
    run = p.run()
    assert run.codes == ["DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE"], run.explain()
    message = run.report["errors"][0]["message"]
    assert "failOnDataLoss=false" in message and "checkpoint" not in message
    # Its own column has to hold them, too.
    p.declare("CREATE STREAMING TABLE h AS SELECT CAST(id AS INT) AS id, v, _change_type AS c, _commit_version AS n "
              "FROM STREAM src WITH (readChangeFeed=true, startingVersion=0, failOnDataLoss=false);")
    p.completes()
    assert p.rows(ARCHIVED) == [(1, 1, "insert", 1), (3, 1, "insert", 4)]


def test_streams_of_what_is_appended_pass_over_lost_files(tmp_path):
    text = "CREATE STREAMING TABLE h AS SELECT id FROM STREAM src WITH (startingVersion=0{});"
    p = Follower(tmp_path, text.format(""))
    p.sql("CREATE TABLE src (id INT, v INT); INSERT INTO src VALUES (1, 1);")
    p.completes()
    p.sql("INSERT INTO src VALUES (2, 1); OPTIMIZE src; INSERT INTO src VALUES (3, 1);" + VACUUM)
    run = p.run()
    assert run.codes == ["DELTA_FILE_NOT_FOUND"] and "failOnDataLoss=false" in run.explain(), run.explain()
    p.declare(text.format(", failOnDataLoss=false"))
    run = p.completes()
    assert [warning["code"] for warning in run.report["warnings"]] == ["STREAM_DATA_LOSS"]
    assert p.rows("SELECT id FROM h ORDER BY id") == [(1,), (3,)]
    assert p.completes().report["warnings"] == []


def test_a_bitemporal_target_of_a_feed_ends_what_another_time_replaces(tmp_path):
    """A delete whose key comes again in its commit: nothing at the same business time, else a delete."""
    p = Follower(tmp_path, """CREATE STREAMING TABLE b;
CREATE FLOW f AS AUTO CDC INTO b FROM STREAM src WITH (readChangeFeed=true, startingVersion=0)
KEYS (id) SEQUENCE BY t SYSTEM SEQUENCE BY _commit_version COLUMNS (id, v) STORED AS BITEMPORAL;""")
    p.sql("CREATE TABLE src (id INT, v INT, t INT); INSERT INTO src VALUES (1, 1, 30); INSERT OVERWRITE src VALUES (1, 2, 50)")
    p.completes()
    now = "SELECT v, __START_AT, __END_AT FROM b WHERE __SYSTEM_END_AT IS NULL ORDER BY __START_AT"
    assert p.rows(now) == [(2, 50, None)]
    p.sql("INSERT OVERWRITE src VALUES (1, 3, 50)")
    p.completes()
    assert p.rows(now) == [(3, 50, None)]
    # What is updated goes on until its new time.
    p.sql("UPDATE src SET v = 4, t = 70")
    p.completes()
    assert p.rows(now) == [(3, 50, 70), (4, 70, None)]
