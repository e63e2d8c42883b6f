"""The contract of `strandline run`: exit codes, one JSON object, progress, Ctrl-C."""

import json
import os
import pty
import shutil
import signal
import subprocess
import time

import pytest

from program import PROGRAM, environment, run, sql, start

REPORT_KEYS = {"update_id", "status", "flows", "errors", "warnings"}
METRICS = {
    "num_upserted_rows", "num_deleted_rows", "num_input_rows", "num_late_rows",
    "num_sequence_conflicts", "num_skipped_snapshots",
}


@pytest.fixture
def pipeline(tmp_path):
    done = start("init", tmp_path / "my_pipeline")
    assert done.returncode == 0, done.stderr
    return tmp_path / "my_pipeline"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_new_pipeline_just_works(pipeline):
    report = run(pipeline)
    assert set(report) == REPORT_KEYS
    assert report["status"] == "COMPLETED" and report["errors"] == []
    assert [flow["status"] for flow in report["flows"]] == ["COMPLETED", "COMPLETED"]
    for flow in report["flows"]:
        assert METRICS <= set(flow["metrics"])
        assert flow["metrics"]["num_input_rows"] == 8
    warehouse = pipeline / "warehouse"
    assert sql(warehouse, "SELECT * FROM customers ORDER BY id") == [
        {"id": 1, "name": "Ana", "city": "Coimbra"},
        {"id": 2, "name": "Bruno", "city": "Braga"},
        {"id": 4, "name": "Duarte", "city": "Évora"},
    ]
    assert [
        (row["id"], row["city"], row["__START_AT"], row["__END_AT"])
        for row in sql(warehouse, "SELECT * FROM customers_history ORDER BY id, __START_AT")
    ] == [
        (1, "Lisbon", "2026-01-05T09:00:00Z", "2026-01-08T11:00:00Z"),
        (1, "Coimbra", "2026-01-08T11:00:00Z", None),
        (2, "Porto", "2026-01-05T09:05:00Z", "2026-01-07T16:00:00Z"),
        (2, "Braga", "2026-01-07T16:00:00Z", None),
        (3, "Faro", "2026-01-06T14:30:00Z", "2026-01-12T08:00:00Z"),
        (4, "Évora", "2026-01-11T10:00:00Z", None),
    ]


def test_a_second_run_reads_only_new_files(pipeline):
    run(pipeline)
    versions = len(sql(pipeline / "warehouse", "DESCRIBE HISTORY customers"))
    again = run(pipeline)
    assert [flow["metrics"]["num_input_rows"] for flow in again["flows"]] == [0, 0]
    assert len(sql(pipeline / "warehouse", "DESCRIBE HISTORY customers")) == versions
    write(
        pipeline / "data/customers/2026-01-20.json",
        '{"id": 9, "name": "Inês", "city": "Faro", "operation": "INSERT", "changed_at": "2026-01-20T00:00:00Z"}\n',
    )
    assert [flow["metrics"]["num_input_rows"] for flow in run(pipeline)["flows"]] == [1, 1]
    assert len(sql(pipeline / "warehouse", "SELECT * FROM customers")) == 4


def test_dry_run_touches_nothing(pipeline):
    done = start("run", pipeline, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "customers_history" in done.stdout
    assert not (pipeline / "warehouse").exists()


def test_full_refresh_gives_the_same_rows(pipeline):
    run(pipeline)
    before = sql(pipeline / "warehouse", "SELECT * FROM customers ORDER BY id")
    report = run(pipeline, "--full-refresh", "customers")
    inputs = {flow["target"].split(".")[-1].strip("`"): flow["metrics"]["num_input_rows"]
              for flow in report["flows"]}
    assert inputs == {"customers": 8, "customers_history": 0}
    assert sql(pipeline / "warehouse", "SELECT * FROM customers ORDER BY id") == before


def test_a_reader_that_leaves_does_not_end_the_update(pipeline):
    process = subprocess.Popen(
        [PROGRAM, "run", pipeline], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
    )
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert len(sql(pipeline / "warehouse", "SELECT * FROM customers")) == 3


def test_closed_streams_do_no_harm(pipeline):
    shell = subprocess.run(["sh", "-c", f"'{PROGRAM}' run '{pipeline}' <&- >&- 2>&-"], env=environment())
    assert shell.returncode == 0
    assert len(sql(pipeline / "warehouse", "SELECT * FROM customers")) == 3


def test_output_that_cannot_be_written_is_a_failure(tmp_path):
    shell = subprocess.run(
        ["sh", "-c", f"'{PROGRAM}' sql -c 'SELECT 1' >/dev/full"], cwd=tmp_path, env=environment(),
        capture_output=True, text=True,
    )
    assert shell.returncode == 1 and "cannot be written" in shell.stderr


def test_an_empty_directory_is_named(tmp_path):
    report = run(code=2, cwd=tmp_path)
    assert "'.'" in report["errors"][0]["message"]


def test_text_output_has_progress_on_stderr_only(pipeline):
    done = start("run", pipeline)
    assert done.returncode == 0
    assert "COMPLETED" in done.stdout
    assert "customers_cdc: started" in done.stderr
    assert "\033" not in done.stdout + done.stderr and "\r" not in done.stderr


def test_all_mistakes_are_reported_at_once(tmp_path):
    path = write(
        tmp_path / "p/transformations/bad.sql",
        "CREATE OR REFRESH STREAMING TABLE t;\n"
        "CREATE FLOW f AS AUTO CDC INTO missing FROM stream(t2) KEYS (id) SEQUENCE BY s;\n"
        "CREATE STREAMING TABL u;\n",
    )
    report = run(tmp_path / "p", code=2)
    assert report["status"] == "INVALID"
    assert len(report["errors"]) >= 2
    for error in report["errors"]:
        assert set(error) == {"code", "message", "file", "line", "column"}
    syntax = [error for error in report["errors"] if error["code"] == "PARSE_SYNTAX_ERROR"]
    assert [(error["line"], error["file"].endswith("bad.sql")) for error in syntax] == [(3, True)]

    done = start("run", path.parents[1])
    assert done.returncode == 2
    assert "CREATE STREAMING TABL u" in done.stderr and "^" in done.stderr


def test_a_failed_update_exits_1(pipeline):
    write(pipeline / "data/customers/bad.json", '{"id": null, "changed_at": "2026-02-01T00:00:00Z"}\n')
    report = run(pipeline, code=1)
    assert report["status"] == "FAILED"
    assert {error["code"] for error in report["errors"]} == {"AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"}
    assert sql(pipeline / "warehouse", "SELECT * FROM customers") == []


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--warehose", "x"], "--warehouse"),
        (["--refresh", "a", "--full-refresh", "b"], "excludes"),
        (["--memory-limit", "lots"], "2GB"),
        (["--memory-limit", "1KB"], "250MB"),
        (["--threads", "0"], "threads"),
        (["--full-refresh", " , "], "names no table"),
        (["no_such_directory"], "no_such_directory"),
    ],
)
def test_usage_errors_are_json_too(arguments, said, tmp_path):
    report = run(*arguments, code=2, cwd=tmp_path)
    assert set(report) == REPORT_KEYS
    assert report["status"] == "INVALID" and report["flows"] == []
    assert said in report["errors"][0]["message"]


def test_an_unknown_table_to_refresh_is_named(pipeline):
    report = run(pipeline, "--full-refresh", "custmers", code=2)
    assert "'custmers'" in report["errors"][0]["message"]
    assert "did you mean customers?" in report["errors"][0]["message"]
    assert not (pipeline / "warehouse/main").exists()


def test_quoted_names_are_refreshed(tmp_path):
    names = ["`ta ble.ü`", "`o``d, or not`", "plain"]
    views = "".join(f"CREATE MATERIALIZED VIEW {name} AS SELECT 1 AS a;\n" for name in names)
    write(tmp_path / "p/t.sql", views)
    run("p", cwd=tmp_path)
    report = run("p", "--refresh", "`TA BLE.ü`, main.default.`o``d, or not`", cwd=tmp_path)
    done = {flow["name"]: flow["status"] for flow in report["flows"]}
    assert list(done.values()) == ["COMPLETED", "COMPLETED", "EXCLUDED"], done
    run("p", "--full-refresh", "`ta ble.ü`,plain", cwd=tmp_path)


def test_a_name_is_one_pipeline_of_a_warehouse(tmp_path):
    view = "CREATE MATERIALIZED VIEW {} AS SELECT 1 AS a;"
    write(tmp_path / "here/p/t.sql", view.format("t"))
    write(tmp_path / "there/p/u.sql", view.format("u"))
    lake = tmp_path / "lake"
    run("here/p", "--warehouse", lake, cwd=tmp_path)
    for more in ([], ["--dry-run"]):
        error = run("there/p", "--warehouse", lake, *more, code=1, cwd=tmp_path)["errors"][0]
        assert error["code"] == "PIPELINE_NAME_TAKEN"
        for said in (tmp_path / "here/p", tmp_path / "there/p", "name: ", "moved"):
            assert str(said) in error["message"]
    assert not (lake / "main/default/u").exists()
    run("here/p", "--warehouse", lake, cwd=tmp_path)

    # A copy of the whole place, warehouse and all, is on its own.
    shutil.copytree(lake, tmp_path / "copy")
    run("there/p", "--warehouse", tmp_path / "copy", cwd=tmp_path)

    # Another name is another pipeline; a folder that is gone has moved.
    write(tmp_path / "there/p/pipeline.yml", "name: other\n")
    run("there/p", "--warehouse", lake, cwd=tmp_path)
    shutil.move(tmp_path / "here/p", tmp_path / "p")
    run("p", "--warehouse", lake, cwd=tmp_path)
    write(tmp_path / "here/p/t.sql", view.format("t"))
    assert run("here/p", "--warehouse", lake, code=1, cwd=tmp_path)["errors"][0]["code"] == "PIPELINE_NAME_TAKEN"


def on_terminal(arguments, **changes):
    """Everything a terminal would show."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
        env=environment(**changes),
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    assert process.wait(timeout=60) == 0
    return shown.decode()


def test_colours_only_where_wanted(pipeline):
    assert "\033[32mCOMPLETED" in on_terminal(["run", pipeline])
    assert "\033" not in on_terminal(["run", pipeline], NO_COLOR="1")
    dumb = on_terminal(["run", pipeline], TERM="dumb")
    assert "\033" not in dumb and "customers_cdc: started" in dumb


def slow_pipeline(tmp_path):
    """One flow whose source query takes minutes."""
    numbers = ", ".join(f"({i})" for i in range(3000))
    sql(tmp_path / "p/warehouse", f"CREATE TABLE n AS SELECT * FROM VALUES {numbers} AS v(id)", "csv")
    write(
        tmp_path / "p/transformations/t.sql",
        "CREATE STREAMING TABLE t;\n"
        "CREATE FLOW f AS AUTO CDC INTO t FROM (\n"
        "  SELECT a.id, sqrt(a.id + b.id * c.id) AS x\n"
        "  FROM STREAM(n) AS a CROSS JOIN n AS b CROSS JOIN n AS c\n"
        "  WHERE sqrt(a.id + b.id * c.id) < -1\n"
        ") KEYS (id) SEQUENCE BY x;\n",
    )
    return tmp_path / "p"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly(stop, tmp_path):
    pipeline = slow_pipeline(tmp_path)
    process = subprocess.Popen(
        [PROGRAM, "run", pipeline, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment(),
    )
    assert "started" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(stop)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert json.loads(out)["status"] == "CANCELED"
