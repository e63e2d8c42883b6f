"""CREATE and REFRESH of tables declared outside of a pipeline, as a user types them."""

import json
import os
import signal
import subprocess
import time

import pytest
from program import PROGRAM, environment, sql, start

SOURCE = "CREATE TABLE src (id INT, name STRING, s INT); INSERT INTO src VALUES (1, 'a', 1), (2, 'b', 1), (1, 'c', 2)"
CREATE = "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(src) KEYS (id) SEQUENCE BY s STORED AS SCD TYPE 2"


@pytest.fixture
def warehouse(tmp_path):
    folder = tmp_path / "w"
    sql(folder, SOURCE, "ndjson")
    return folder


def typed(warehouse, text, *arguments):
    return start("sql", "--warehouse", warehouse, *arguments, "-c", text)


def described(warehouse, table):
    rows = sql(warehouse, f"DESCRIBE EXTENDED {table}")
    return {row["col_name"]: row["data_type"] for row in rows}


def newest_version(warehouse, table):
    return max(row["version"] for row in sql(warehouse, f"DESCRIBE HISTORY {table}"))


def test_the_metrics_stand_where_people_read(warehouse):
    done = typed(warehouse, CREATE)
    assert done.returncode == 0, done.stderr
    assert "t -> main.default.t: COMPLETED (rows in: 3, upserted: 3)" in done.stdout
    assert "t: COMPLETED" in done.stderr, "progress"
    done = typed(warehouse, "REFRESH STREAMING TABLE t; SELECT count(*) AS n FROM t", "--format", "ndjson")
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"n":3}\n' or json.loads(done.stdout) == {"n": 3}, "rows alone"
    assert "t -> main.default.t: COMPLETED (rows in: 0)" in done.stderr


def test_every_mistake_of_a_statement_is_told(warehouse):
    done = typed(warehouse, "SELECT 1;\nCREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM(src)\n"
                            "KEYS (nobody) SEQUENCE BY s\nCOLUMNS * EXCEPT (nothing)")
    assert done.returncode == 1
    assert "line 3, column 7: [AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA]" in done.stderr
    assert "3 | KEYS (nobody) SEQUENCE BY s\n   |       ^" in done.stderr
    assert "line 4, column 19: [AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA]" in done.stderr


def test_a_kept_statement_is_a_place_of_its_own(warehouse):
    assert typed(warehouse, "\n\n   " + CREATE).returncode == 0
    sql(warehouse, "DROP TABLE src", "ndjson")
    done = typed(warehouse, "REFRESH STREAMING TABLE t")
    assert done.returncode == 1
    assert "table.sql:2:" in done.stderr and "[TABLE_OR_VIEW_NOT_FOUND]" in done.stderr
    assert f"2 | {CREATE}" in done.stderr


def test_describe_tells_where_a_table_comes_from(warehouse):
    assert typed(warehouse, CREATE + "; CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t").returncode == 0
    table, view = described(warehouse, "t"), described(warehouse, "v")
    assert (table["Type"], table["Pipeline"], table["Declaration"]) == ("STREAMING_TABLE", "main.default.t", CREATE)
    assert table["Declared In"] == os.getcwd()
    assert (view["Type"], view["Pipeline"]) == ("MATERIALIZED_VIEW", "main.default.v")
    assert described(warehouse, "src")["Type"] == "TABLE"


def test_a_refresh_without_news_commits_nothing(warehouse):
    assert typed(warehouse, CREATE).returncode == 0
    before = newest_version(warehouse, "t")
    assert typed(warehouse, "REFRESH STREAMING TABLE t; REFRESH STREAMING TABLE t").returncode == 0
    assert newest_version(warehouse, "t") == before


# --- several processes ---------------------------------------------------------------------------


def make_big(warehouse, rows=2_000_000):
    sql(warehouse, f"CREATE TABLE big AS SELECT id, id % 7 AS v, 1 AS s FROM range({rows})", "ndjson")


BIG = "CREATE STREAMING TABLE b FLOW AUTO CDC FROM STREAM(big) KEYS (id) SEQUENCE BY s"


def begin(warehouse, text):
    return subprocess.Popen([PROGRAM, "sql", "--warehouse", warehouse, "--format", "ndjson", "-c", text],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment())


def wait_for(path, process):
    """Until the batch is planned, which is the moment after which there is something to break."""
    for _ in range(12000):
        if any(path.glob("**/plan-*.json")):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError("no batch was planned")


def test_two_refreshes_at_once(warehouse):
    make_big(warehouse)
    first = begin(warehouse, BIG)
    wait_for(warehouse / "_strandline", first)
    first.send_signal(signal.SIGSTOP)
    try:
        for text in ("REFRESH STREAMING TABLE b", "DROP TABLE b", BIG.replace("CREATE", "CREATE OR REFRESH")):
            done = typed(warehouse, text)
            assert done.returncode == 1
            assert "[PIPELINE_BUSY]" in done.stderr and "main.default.b" in done.stderr, done.stderr
    finally:
        first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    assert sql(warehouse, "SELECT count(*) AS n FROM b") == [{"n": 2_000_000}]
    assert typed(warehouse, "REFRESH STREAMING TABLE b").returncode == 0


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2, 0.4])
def test_kill_in_the_first_load(warehouse, after):
    """A killed CREATE leaves a table that REFRESH finishes, and that a second CREATE does not hide."""
    make_big(warehouse, 1_000_000)
    process = begin(warehouse, BIG)
    wait_for(warehouse / "_strandline", process)
    time.sleep(after)
    process.kill()
    process.communicate()
    again = typed(warehouse, BIG)
    assert again.returncode == 1 and "TABLE_OR_VIEW_ALREADY_EXISTS" in again.stderr, again.stderr
    changed = typed(warehouse, BIG.replace("CREATE", "CREATE OR REFRESH").replace("SEQUENCE BY s", "SEQUENCE BY v"))
    assert changed.returncode == 1 and ("UNFINISHED_BATCH" in changed.stderr
                                        or "DRIFT" in changed.stderr), changed.stderr
    done = typed(warehouse, "REFRESH STREAMING TABLE b")
    assert done.returncode == 0, done.stderr
    assert sql(warehouse, "SELECT count(*) AS n, sum(v) AS v FROM b") == \
        sql(warehouse, "SELECT count(*) AS n, sum(v) AS v FROM big")


def test_kill_in_a_refresh(warehouse):
    assert typed(warehouse, CREATE).returncode == 0
    for number in range(6):
        sql(warehouse, f"INSERT INTO src SELECT id, 'n{number}', {number + 5} FROM range(300000)", "ndjson")
        process = begin(warehouse, "REFRESH STREAMING TABLE t")
        time.sleep(0.1 + 0.08 * number)
        process.kill()
        process.communicate()
    done = typed(warehouse, "REFRESH STREAMING TABLE t")
    assert done.returncode == 0, done.stderr
    rows = sql(warehouse, "SELECT name, count(*) AS n FROM t WHERE __END_AT IS NULL GROUP BY name")
    assert rows == [{"name": "n5", "n": 300000}]
    assert sql(warehouse, "SELECT count(*) AS n FROM t WHERE id = 77") == [{"n": 6}]
