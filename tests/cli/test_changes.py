"""`strandline changes`: the change data feed of a table, once or followed."""

import json
import os
import signal
import subprocess

import pytest
from harness import PROGRAM, call, sql_text


@pytest.fixture
def lake(tmp_path):
    sql_text(tmp_path / "lake", "CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a');"
                                "UPDATE t SET v = 'b' WHERE id = 1; DELETE FROM t")
    return tmp_path / "lake"


def changes(lake, *arguments):
    return call("changes", "t", "--warehouse", lake, *arguments)


def kinds(text):
    return [(row["_change_type"], row["_commit_version"]) for row in map(json.loads, text.splitlines())]


def test_a_range(lake):
    process = changes(lake, "--from", 2, "--to", 3, "--format", "ndjson")
    assert process.returncode == 0, process.stderr
    assert sorted(kinds(process.stdout)) == [("delete", 3), ("update_postimage", 2), ("update_preimage", 2)]
    assert kinds(changes(lake, "--from", "2000-01-01", "--to", 1, "--format", "ndjson").stdout) == [("insert", 1)]
    assert "update_preimage" in changes(lake, "--from", 0).stdout
    path = lake / "main" / "default" / "t"
    process = call("changes", f"delta.`{path}`", "--warehouse", lake, "--from", 3, "--format", "csv")
    assert process.stdout.splitlines()[0] == "id,v,_change_type,_commit_version,_commit_timestamp"


@pytest.mark.parametrize("arguments, code, text", [
    (["--from", "9"], 1, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
    (["--from", "-1"], 1, "DELTA_VERSION_INVALID"),
    (["--from", "1", "--to", "-1"], 1, "DELTA_VERSION_INVALID"),
    (["--from", "yesterday"], 1, "DELTA_TIMESTAMP_INVALID"),
    (["--from", "0", "--follow", "--format", "json"], 1, "ndjson"),
    (["--from", "0", "--follow", "--to", "1"], 2, "--to"),
    ([], 2, "--from"),
])
def test_mistakes(lake, arguments, code, text):
    process = changes(lake, *arguments)
    assert process.returncode == code
    assert text in process.stderr


@pytest.fixture
def follow(lake):
    started = []

    def start(*arguments):
        started.append(subprocess.Popen(
            [str(PROGRAM), "changes", "t", "--warehouse", str(lake), "--follow", "--interval", "0.1", "--format",
             "ndjson", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def stop(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == ""


def test_follow_prints_each_commit_and_stops_when_asked(lake, follow):
    process = follow("--from", "3")
    assert kinds(process.stdout.readline()) == [("delete", 3)]
    sql_text(lake, "INSERT INTO t VALUES (2, 'c')")
    assert kinds(process.stdout.readline()) == [("insert", 4)]
    stop(process)


def test_follow_goes_on_with_the_next_commit(lake, follow):
    process = follow("--from", "4")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    sql_text(lake, "INSERT INTO t VALUES (2, 'c')")
    assert kinds(process.stdout.readline()) == [("insert", 4)]
    stop(process)
    process = follow("--from", "6")
    assert process.wait(timeout=30) == 1
    assert "DELTA_CDC_START_VERSION_AFTER_LATEST" in process.stderr.read()


# With fewer versions than before, as many, and more.
@pytest.mark.parametrize("versions", [2, 4, 6])
def test_follow_notices_a_table_that_was_made_anew(lake, follow, versions):
    process = follow("--from", "3")
    assert kinds(process.stdout.readline()) == [("delete", 3)]
    path = lake / "main" / "default" / "t"
    call("sql", "--warehouse", lake.parent / "other", "-c", "CREATE TABLE t (id INT, v STRING);" + ";".join(
        f"INSERT INTO t VALUES ({i}, 'n')" for i in range(1, versions)))
    process.send_signal(signal.SIGSTOP)  # it never sees that there is no table for a moment
    path.rename(lake.parent / "before")
    (lake.parent / "other" / "main" / "default" / "t").rename(path)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=30) == 1
    assert "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE" in process.stderr.read()
    assert process.stdout.read() == ""
