"""`strandline run --continuous`: update after update until stopped."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from harness import PROGRAM, call, query, run_pipeline, sql_text, write_json_lines

PATIENCE_SECONDS = 60


def make(folder, text):
    (folder / "p").mkdir(exist_ok=True)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "p" / "p.sql").write_text(text, encoding="utf-8")


@contextlib.contextmanager
def continuous(folder, *arguments):
    process = subprocess.Popen([PROGRAM, "run", folder / "p", "--warehouse", folder / "w", "--continuous", *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                               env={**os.environ, "NO_COLOR": "1"})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition, process, pause_seconds=0.1):
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(Exception):
            if condition():
                return
        time.sleep(pause_seconds)
    raise AssertionError("nothing came")


def count(folder, table):
    return query(folder / "w", f"SELECT count(*) AS n FROM {table}")[0]["n"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_news_of_every_kind(tmp_path, number):
    sql_text(tmp_path / "w", "CREATE TABLE src (k INT); INSERT INTO src VALUES (1)")
    make(tmp_path, f"""
        CREATE STREAMING TABLE files AS SELECT * FROM STREAM read_files('{tmp_path}/in', format => 'json', schema => 'k INT');
        CREATE STREAMING TABLE appends AS SELECT * FROM STREAM src WITH (skipChangeCommits=true);
        CREATE STREAMING TABLE changes AS SELECT * FROM STREAM src WITH (readChangeFeed=true);
        CREATE MATERIALIZED VIEW total AS SELECT sum(k) AS s FROM src;
        CREATE STREAMING TABLE totals AS SELECT * FROM STREAM total WITH (readChangeFeed=true)""")
    with continuous(tmp_path, "--interval", "200ms", "--json") as process:
        wait_for(lambda: count(tmp_path, "changes") == 1, process)
        write_json_lines(tmp_path / "in" / "1.json", [{"k": 1}, {"k": 2}])
        wait_for(lambda: count(tmp_path, "files") == 2, process)
        sql_text(tmp_path / "w", "INSERT INTO src VALUES (2); UPDATE src SET k = 3 WHERE k = 2")
        wait_for(lambda: count(tmp_path, "changes") == 4 and count(tmp_path, "appends") == 2, process)
        wait_for(lambda: query(tmp_path / "w", "SELECT s FROM total") == [{"s": 4}], process)
        wait_for(lambda: query(tmp_path / "w", "SELECT s FROM totals WHERE _change_type IN ('insert', 'update_postimage') "
                                               "ORDER BY _commit_version DESC LIMIT 1") == [{"s": 4}], process)
        time.sleep(1)  # idle updates
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    reports = [json.loads(line) for line in output.splitlines()]
    assert {report["status"] for report in reports} == {"COMPLETED"}
    metrics = [{flow["name"]: flow["metrics"] for flow in report["flows"]} for report in reports]
    assert all(any(flow["num_batches"] > 0 for flow in update.values()) for update in metrics), "idle updates are silent"
    assert sum(update["changes"]["num_output_rows"] for update in metrics) == 4
    # The log has the updates that found something, and no others.
    logged = query(tmp_path / "w", "SELECT count(*) AS n FROM event_log('p') WHERE event_type = 'create_update'")
    assert logged == [{"n": len(reports)}]


def test_stop_lets_the_batch_in_hand_finish(tmp_path):
    """One file a batch: what is there at the stop are whole batches, and the next run goes on."""
    make(tmp_path, f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{tmp_path}/in', format => 'json', "
                   "schema => 'k INT', maxFilesPerTrigger => 1)")
    for number in range(200):
        write_json_lines(tmp_path / "in" / f"{number:03}.json", [{"k": number}])
    with continuous(tmp_path, "--json") as process:
        wait_for(lambda: any((tmp_path / "w" / "_strandline").glob("**/done-*.json")), process, 0.001)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    report = json.loads(output)
    done = count(tmp_path, "t")
    assert report["status"] == "COMPLETED" and 0 < done < 200
    assert report["flows"][0]["metrics"]["num_batches"] == done
    plans = list((tmp_path / "w" / "_strandline").glob("**/plan-*.json"))
    finished = {path.name.replace("done", "plan") for path in (tmp_path / "w" / "_strandline").glob("**/done-*.json")}
    assert {path.name for path in plans} == finished, "no batch is half done"
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    assert count(tmp_path, "t") == 200


def test_a_failure_ends_it(tmp_path):
    make(tmp_path, f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{tmp_path}/in', format => 'json', "
                   "schema => 'k INT')")
    with continuous(tmp_path, "--interval", "100ms") as process:
        time.sleep(0.5)
        write_json_lines(tmp_path / "in" / "bad.json", ["{no json\n"])
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert "bad.json" in errors and "FAILED" in output


def test_a_full_refresh_is_made_once(tmp_path):
    make(tmp_path, f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{tmp_path}/in', format => 'json', "
                   "schema => 'k INT')")
    write_json_lines(tmp_path / "in" / "1.json", [{"k": 1}])
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    with continuous(tmp_path, "--interval", "50ms", "--full-refresh-all", "--json") as process:
        assert json.loads(process.stdout.readline())["status"] == "COMPLETED"
        time.sleep(1)  # further updates
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert output == "" and count(tmp_path, "t") == 1


def test_arguments(tmp_path):
    make(tmp_path, "CREATE MATERIALIZED VIEW t AS SELECT 1 AS a")
    for arguments, said in ((["--interval", "5s"], "--continuous"), (["--continuous", "--dry-run"], "--dry-run"),
                            (["--continuous", "--interval", "soon"], "write a time such as 5s")):
        process = call("run", tmp_path / "p", *arguments)
        assert process.returncode == 2 and said in process.stderr, process.stderr


def test_an_update_that_finds_nothing_is_silent_from_the_first(tmp_path):
    make(tmp_path, f"""
        CREATE STREAMING TABLE files AS SELECT * FROM STREAM read_files('{tmp_path}/in', format => 'json', schema => 'k INT')""")
    write_json_lines(tmp_path / "in" / "1.json", [{"k": 1}])
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    with continuous(tmp_path, "--interval", "200ms", "--json") as process:
        time.sleep(2)
        write_json_lines(tmp_path / "in" / "2.json", [{"k": 2}])
        wait_for(lambda: count(tmp_path, "files") == 2, process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    [report] = [json.loads(line) for line in output.splitlines()]
    assert report["flows"][0]["metrics"]["num_output_rows"] == 1
