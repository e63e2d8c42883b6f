"""What the benchmarks share: measured processes, copies of warehouses, live files, docs/BENCHMARKS.md."""

import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "bin" / "strandline"
PAGE = ROOT / "docs" / "BENCHMARKS.md"
TITLE = "# Benchmarks"

# Columns of a row with key `id` in its state `v`, as SQL for the engine that makes the data.
PAYLOAD = """
  (hash(id * 31 + v) % 1000000)::BIGINT AS amount_int,
  ((hash(id * 7 + v) % 10000000) / 100)::DECIMAL(12,2) AS price,
  (hash(id + v * 13) % 1000) / 7.0 AS score,
  'name of customer ' || (hash(id * 3 + v) % 5000000)::VARCHAR AS name,
  ['Lima', 'Oaxaca', 'Puebla', 'Cusco', 'Merida', 'Tijuana', 'Cancun', 'Quito'][1 + (hash(id * 5 + v) % 8)::INT] AS city,
  DATE '2015-01-01' + (hash(id * 11 + v) % 3650)::INT AS born,
  TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds((hash(id * 17 + v) % 30000000)::BIGINT) AS updated_at,
  hash(id * 19 + v) % 2 = 0 AS active,
  CASE WHEN hash(id * 23 + v) % 10 < 3 THEN NULL ELSE 'note ' || (hash(id * 29 + v) % 1000)::VARCHAR END AS note
"""


def connect(threads=2):
    """The engine for data and expected results, without a progress bar."""
    import duckdb
    connection = duckdb.connect(config={"threads": threads, "memory_limit": "4GB", "temp_directory": tempfile.gettempdir()})
    connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
    return connection


def apart(function, *arguments):
    """Calls a function in a process of its own: a measured process begins with the peak of the one that starts it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def measured(command, **options):
    """Seconds, peak memory in MB and processor seconds of a whole process, and what it printed."""
    begun = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    output = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{output.decode()}\n{errors.decode()}")
    return seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, output.decode()


def sql(warehouse, query, program=PROGRAM):
    """The rows of a query, as dicts."""
    process = subprocess.run([program, "sql", "--warehouse", warehouse, "--format", "ndjson", "-c", query],
                             capture_output=True, check=False)
    if process.returncode != 0:
        sys.exit(f"{query} failed:\n{process.stderr.decode()}")
    return [json.loads(line) for line in process.stdout.splitlines()]


def copy_warehouse(source, destination):
    """A copy for one measurement; data files are linked, they never change."""
    shutil.rmtree(destination, ignore_errors=True)
    link = lambda old, new: os.link(old, new) if old.endswith(".parquet") else shutil.copy2(old, new)
    shutil.copytree(source, destination, copy_function=link)


def versions(table):
    """Commits of a table's log, oldest first, as far as they are there."""
    return sorted((table / "_delta_log").glob("*.json"))


def actions(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def live_files(table):
    """The paths of a table's newest version."""
    import duckdb
    log = table / "_delta_log"
    files, checkpoint = set(), -1
    for path in sorted(log.glob("*.checkpoint*.parquet")):
        checkpoint = max(checkpoint, int(path.name[:20]))
    if checkpoint >= 0:
        rows = duckdb.sql(f"SELECT add.path FROM read_parquet('{log}/{checkpoint:020}.checkpoint*.parquet') WHERE add IS NOT NULL")
        files = {path for path, in rows.fetchall()}
    for path in versions(table):
        if int(path.name[:20]) <= checkpoint:
            continue
        for action in actions(path):
            if "add" in action:
                files.add(action["add"]["path"])
            elif "remove" in action:
                files.discard(action["remove"]["path"])
    return sorted(str(table / name) for name in files)


def batch_seconds(table):
    """Seconds of each batch of an AUTO CDC target: from one of its commits to the next, compaction included."""
    seconds, before = [], None
    for path in versions(table):
        info = next(action["commitInfo"] for action in actions(path) if "commitInfo" in action)
        if before is not None and info["operation"] == "AUTO CDC":
            seconds.append((info["timestamp"] - before) / 1000)
        if before is None or info["operation"] == "AUTO CDC":
            before = info["timestamp"]
    return seconds


def write_numbered(connection, query, folder):
    """The rows of a query as files by its column `file`, in that order of age. connection: of one thread."""
    made = folder.with_name(folder.name + ".part")
    shutil.rmtree(made, ignore_errors=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    connection.execute("SET partitioned_write_max_open_files = 1000")
    connection.execute(f"COPY ({query}) TO '{made}' (FORMAT parquet, PARTITION_BY (file))")
    for part in made.glob("file=*"):
        (data_file,) = part.iterdir()
        number = int(part.name[5:])
        path = made / f"{number:05}.parquet"
        data_file.rename(path)
        os.utime(path, (1_700_000_000 + number,) * 2)
        part.rmdir()
    made.rename(folder)


def middle(values):
    return statistics.median(values)


def processor():
    return next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("model name")), platform.machine())


def write_section(name, text):
    """Puts a section into docs/BENCHMARKS.md, in the place of the one of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = f"{begin}\n{text.strip()}\n{end}\n"
    page = PAGE.read_text("utf-8") if PAGE.exists() else TITLE + "\n"
    if begin in page:
        page = page[:page.index(begin)] + section + page[page.index(end) + len(end) + 1:]
    else:
        page = page.rstrip("\n") + "\n\n" + section
    PAGE.write_text(page, encoding="utf-8")
