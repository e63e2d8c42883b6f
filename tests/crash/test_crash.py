"""Processes that are killed, run twice, or find no room: a rerun always gives the right table."""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import model
import pytest
from harness import PROGRAM, query, rows_as_bag, run_pipeline, sql_text, write_json_lines

SEED = int(os.environ.get("STRANDLINE_SEED", 1))
SCHEMA = "k BIGINT, a STRING, b STRING, op STRING, s BIGINT"
TARGETS = {"one": 1, "two": 2}
MOST_TRIES = 100


def make_pipeline(folder):
    (folder / "p").mkdir()
    (folder / "in").mkdir()
    text = ""
    for target, storage in TARGETS.items():
        truncate = "APPLY AS TRUNCATE WHEN op = 'T' " if storage == 1 else ""
        where = "" if storage == 1 else " WHERE op <> 'T'"
        text += (f"CREATE STREAMING TABLE {target};\nCREATE FLOW {target} AS AUTO CDC INTO {target}\n"
                 f"FROM (SELECT * FROM STREAM read_files('{folder}/in', format => 'json', schema => '{SCHEMA}'){where})\n"
                 f"KEYS (k) APPLY AS DELETE WHEN op = 'D' {truncate}SEQUENCE BY s COLUMNS * EXCEPT (op, s)\n"
                 f"STORED AS SCD TYPE {storage};\n")
    (folder / "p" / "p.sql").write_text(text, encoding="utf-8")


def start(folder, **options):
    return subprocess.Popen([PROGRAM, "run", folder / "p", "--warehouse", folder / "w", "--json"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **options)


def started(process):
    """Once its first flow is at work, and by that the pipeline its own."""
    assert "started" in process.stderr.readline()
    return process


def kill_some(folder, rng, seconds, kills, check):
    """kill -9 at random moments of a run's first seconds, check() after each: that often, and until two runs were
    killed before they ended. Gives how many were."""
    killed = 0
    for tried in range(MOST_TRIES):
        if tried >= kills and killed >= 2:
            return killed
        process = start(folder)
        try:
            process.wait(rng.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            killed += 1
        process.kill()
        process.communicate()
        check()
    raise AssertionError(f"too few runs were killed to mean anything: {killed}")


def done_batches(folder):
    """The number of the latest finished batch of each flow, in all."""
    latest = {}
    for path in (folder / "w" / "_strandline").glob("**/done-*.json"):
        latest[path.parent] = max(latest.get(path.parent, 0), int(path.stem.split("-")[1]))
    return sum(latest.values())


def expected_rows(events, target):
    if TARGETS[target] == 2:
        events = [event for event in events if event["op"] != "T"]
    return rows_as_bag(model.fold(events, "k", ["a", "b"], TARGETS[target]))


def table(folder, target):
    return rows_as_bag(query(folder / "w", f"SELECT * FROM {target}"))


def test_kill_at_any_moment(tmp_path):
    """kill -9 again and again, a reader after each: it sees the table before the batch or after it."""
    print(f"STRANDLINE_SEED={SEED}")
    rng = random.Random(SEED)
    make_pipeline(tmp_path)
    batches, size, kills = 8, 1500, 4
    events = model.random_events(SEED, batches * size, 400, truncates=True)
    begun = time.monotonic()
    write_json_lines(tmp_path / "in" / "000.json", events[:size])
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    duration = time.monotonic() - begun
    for number in range(1, batches):
        before, after = events[:number * size], events[:(number + 1) * size]
        write_json_lines(tmp_path / "in" / f"{number:03d}.json", events[number * size:(number + 1) * size])

        def check(before=before, after=after, number=number):
            for target in TARGETS:
                assert table(tmp_path, target) in (expected_rows(before, target), expected_rows(after, target)), \
                    f"seed {SEED}: {target} is neither the table before batch {number} nor after it"

        kill_some(tmp_path, rng, duration * 1.1, kills, check)
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, f"seed {SEED}\n{run.explain()}"
        for target in TARGETS:
            assert table(tmp_path, target) == expected_rows(after, target), f"seed {SEED}: {target}, batch {number}"


def test_kill_a_stream_of_a_feed(tmp_path):
    """kill -9 between and inside the batches of a stream: in the end each change is there once."""
    print(f"STRANDLINE_SEED={SEED}")
    rng = random.Random(SEED)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "p.sql").write_text(
        "CREATE STREAMING TABLE archive AS SELECT * FROM STREAM t "
        "WITH (readChangeFeed=true, startingVersion=0, maxFilesPerTrigger=1);\n"
        "CREATE STREAMING TABLE copy;\n"
        "CREATE FLOW f AS AUTO CDC INTO copy FROM STREAM t "
        "WITH (readChangeFeed=true, startingVersion=0, maxFilesPerTrigger=1) KEYS (k) SEQUENCE BY _commit_version;\n",
        encoding="utf-8")
    rows = "SELECT id AS k, id AS v FROM range(0, 200)"
    statements = [f"CREATE TABLE t AS {rows}", f"INSERT INTO t SELECT k + 200, v FROM ({rows})"]
    for number in range(40):
        some = f"k % {rng.randint(3, 9)} = {rng.randint(0, 2)}"
        statements.append(rng.choice([f"UPDATE t SET v = {number} WHERE {some}", f"DELETE FROM t WHERE {some}",
                                      f"INSERT INTO t SELECT k + {1000 * (number + 1)}, v FROM ({rows})"]))
    sql_text(tmp_path / "w", "; ".join(statements))
    killed = 0
    for _ in range(12):
        # Some batches on, and somewhere in the next.
        goal = done_batches(tmp_path) + rng.randint(0, 5)
        process = start(tmp_path)
        while process.poll() is None and done_batches(tmp_path) < goal:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        killed += process.poll() is None
        process.kill()
        process.communicate()
    assert killed > 6, "too few runs were killed to mean anything"
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.ok, f"seed {SEED}\n{run.explain()}"
    columns = "SELECT k, v, _change_type AS c, _commit_version AS n FROM"
    assert rows_as_bag(query(tmp_path / "w", f"{columns} archive")) == \
        rows_as_bag(query(tmp_path / "w", f"{columns} table_changes('t', 0)")), f"seed {SEED}"
    assert table(tmp_path, "copy") == table(tmp_path, "t"), f"seed {SEED}"


def test_kill_while_snapshots_are_taken(tmp_path):
    """kill -9 again and again: each snapshot is in the table whole or not at all, and in the end once."""
    print(f"STRANDLINE_SEED={SEED}")
    rng = random.Random(SEED)
    (tmp_path / "p").mkdir()
    read = f"read_files('{tmp_path}/in', format => 'json', schema => 'k BIGINT, a STRING, b STRING, ver INT')"
    (tmp_path / "p" / "p.sql").write_text("".join(
        f"CREATE STREAMING TABLE {target};\nCREATE FLOW {target} AS AUTO CDC INTO {target}\n"
        f"FROM SNAPSHOT (SELECT k, a, b FROM {read}) WITH VERSION (SELECT max(ver) FROM {read})\n"
        f"KEYS (k) STORED AS SCD TYPE {storage};\n" for target, storage in TARGETS.items()), encoding="utf-8")
    rows, events, duration = {}, [], 0
    (tmp_path / "in").mkdir()
    for version in range(6):
        before, gone = list(events), [key for key in rows if rng.random() < 0.1]
        events += [{"k": key, "op": "D", "s": version} for key in gone]
        changed = {key: {"a": f"{rng.randrange(9)}", "b": None} for key in range(version * 200, version * 200 + 2000)
                   if key not in rows or rng.random() < 0.3}
        rows = {key: row for key, row in {**rows, **changed}.items() if key not in gone}
        events += [{"k": key, "op": "U", "s": version, **row} for key, row in rows.items()]
        write_json_lines(tmp_path / "new.json", [{"k": key, **row, "ver": version} for key, row in rows.items()])
        (tmp_path / "new.json").replace(tmp_path / "in" / "s.json")

        def check(before=before, after=tuple(events), version=version):
            for target in TARGETS:
                assert table(tmp_path, target) in (expected_rows(before, target), expected_rows(after, target)), \
                    f"seed {SEED}: {target} is neither the table before snapshot {version} nor after it"

        if version:
            kill_some(tmp_path, rng, duration * 1.1, 4, check)
        begun = time.monotonic()
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        duration = max(duration, time.monotonic() - begun) if version else time.monotonic() - begun
        assert run.ok, f"seed {SEED}\n{run.explain()}"
        for target in TARGETS:
            assert table(tmp_path, target) == expected_rows(events, target), f"seed {SEED}: {target}, snapshot {version}"


def big_batch(folder, name, count=300_000):
    """Upserts of new keys only."""
    line = '{{"k": {2}, "a": "some text that takes room {0}", "b": null, "op": "U", "s": {1}}}\n'
    write_json_lines(folder / "in" / name, (line.format(number, number, number + 1000) for number in range(count)))


def stopped_run(folder):
    """A run frozen in its middle."""
    process = started(start(folder))
    process.send_signal(signal.SIGSTOP)
    assert process.poll() is None, "the run ended before it could be stopped"
    return process


def test_two_updates_at_once(tmp_path):
    make_pipeline(tmp_path)
    big_batch(tmp_path, "1.json")
    first = stopped_run(tmp_path)
    try:
        second = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert second.exit_code == 1, "the second update must be refused"
        assert any("p" in error["message"] and error["code"] for error in second.report["errors"])
    finally:
        first.send_signal(signal.SIGCONT)
    output, _ = first.communicate(timeout=120)
    assert json.loads(output)["status"] == "COMPLETED"
    third = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert third.ok, third.explain()


def test_a_killed_update_leaves_no_lock(tmp_path):
    make_pipeline(tmp_path)
    big_batch(tmp_path, "1.json")
    process = stopped_run(tmp_path)
    process.kill()
    process.communicate()
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.ok, run.explain()
    assert query(tmp_path / "w", "SELECT count(*) AS n FROM one") == [{"n": 300_000}]


def test_interrupt_stops_cleanly(tmp_path):
    """Ctrl-C: one object on stdout all the same, and the next update goes on."""
    make_pipeline(tmp_path)
    big_batch(tmp_path, "1.json")
    process = started(start(tmp_path))
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    report = json.loads(output)
    assert (process.returncode, report["status"]) == (1, "CANCELED"), errors
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.ok, run.explain()
    assert query(tmp_path / "w", "SELECT count(*) AS n FROM two") == [{"n": 300_000}]


@contextlib.contextmanager
def small_disk(folder, size_mb):
    """A file system of its own, or a skip that says why there is none."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_disk_full(tmp_path):
    make_pipeline(tmp_path)
    write_json_lines(tmp_path / "in" / "1.json", model.random_events(1, 200, 50))
    with small_disk(tmp_path / "w", 16):
        assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
        before = {target: table(tmp_path, target) for target in TARGETS}
        filler = tmp_path / "w" / "filler"
        big_batch(tmp_path, "2.json", 200_000)
        failures = 0
        for free_kb in (0, 40, 400, 2000, 4000):
            space = os.statvfs(tmp_path / "w")
            filler.write_bytes(b"x" * max(0, space.f_bavail * space.f_frsize - free_kb * 1024))
            run = run_pipeline(tmp_path / "p", tmp_path / "w")
            filler.unlink()
            if run.ok:
                break
            failures += 1
            assert run.exit_code == 1 and run.report["errors"], run.explain()
            text = run.explain().lower()
            assert "space" in text or "disk" in text, f"the message must name the disk:\n{run.explain()}"
            for target in TARGETS:
                seen = query(tmp_path / "w", f"SELECT count(*) AS n FROM {target}")[0]["n"]
                assert seen in (len(before[target]), len(before[target]) + 200_000), f"{target} is half-written with {free_kb} KB free"
        assert failures >= 2
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, run.explain()
        assert query(tmp_path / "w", "SELECT count(*) AS n FROM one WHERE k >= 1000") == [{"n": 200_000}]


def test_file_size_limit(tmp_path):
    """A limit on the size of files stops a write in its middle, without root."""
    make_pipeline(tmp_path)
    write_json_lines(tmp_path / "in" / "1.json", model.random_events(1, 200, 50))
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    before = {target: table(tmp_path, target) for target in TARGETS}
    big_batch(tmp_path, "2.json", 200_000)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
    run = run_pipeline(tmp_path / "p", tmp_path / "w", preexec_fn=limit, restore_signals=False)
    assert run.exit_code == 1 and run.report["errors"], run.explain()
    for target in TARGETS:
        assert table(tmp_path, target) == before[target]
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.ok, run.explain()
    assert query(tmp_path / "w", "SELECT count(*) AS n FROM two WHERE k >= 1000") == [{"n": 200_000}]


@contextlib.contextmanager
def read_only(folder):
    if os.geteuid() == 0:
        source = subprocess.run(["mount", "--bind", folder, folder], capture_output=True)
        if source.returncode != 0:
            pytest.skip("root can write everywhere, and mounting is not allowed here")
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
        return
    modes = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")] if path.is_dir()}
    for path in modes:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_read_only_warehouse(tmp_path):
    make_pipeline(tmp_path)
    write_json_lines(tmp_path / "in" / "1.json", model.random_events(1, 200, 50))
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    before = {target: table(tmp_path, target) for target in TARGETS}
    write_json_lines(tmp_path / "in" / "2.json", model.random_events(2, 200, 50))
    with read_only(tmp_path / "w"):
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.exit_code == 1 and run.report["errors"], run.explain()
        assert "w" in run.report["errors"][0]["message"]
        for target in TARGETS:
            assert table(tmp_path, target) == before[target], "reading needs no rights to write"
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.ok, run.explain()


def test_warehouse_of_a_newer_version(tmp_path):
    make_pipeline(tmp_path)
    write_json_lines(tmp_path / "in" / "1.json", model.random_events(1, 20, 5))
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    mark = next(Path(tmp_path / "w").rglob("warehouse.json"))
    content = json.loads(mark.read_text("utf-8"))
    number = next(name for name, value in content.items() if isinstance(value, int))
    mark.write_text(json.dumps({**content, number: 999}), encoding="utf-8")
    run = run_pipeline(tmp_path / "p", tmp_path / "w")
    assert run.exit_code in (1, 2)
    assert "WAREHOUSE_TOO_NEW" in run.codes, run.explain()
