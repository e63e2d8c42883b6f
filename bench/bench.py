"""Apply one batch of changes to a large table, next to the floor of the embedded engine.

Everything is measured as whole processes: `strandline run` of the second batch with a memory limit,
and DuckDB doing only the reading and writing (floor.py), in turns. Data is generated and the same
every time. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from shared import PAYLOAD, PROGRAM, ROOT, apart, connect, copy_warehouse, measured, middle, processor, sql, write_section

AIMS = {1: 2.0, 2: 2.5}
COLUMNS = ("id BIGINT, amount_int BIGINT, price DECIMAL(12,2), score DOUBLE, name STRING, city STRING, born DATE, "
           "updated_at TIMESTAMP, active BOOLEAN, note STRING, op STRING, seq BIGINT, seq_kept BIGINT")


def generate(work, rows, changes):
    """first1/first2: the initial load; second: the batch. Keys are spread over the whole range."""
    for storage in (1, 2):
        for step in ("first", "second"):
            (work / f"{step}{storage}").mkdir(parents=True, exist_ok=True)
    connection = connect()
    current = rows * 8 // 10

    def write(name, query):
        path = work / name
        if not path.exists():
            connection.execute(f"COPY ({query}) TO '{path}.part' (FORMAT parquet, COMPRESSION zstd)")
            Path(f"{path}.part").rename(path)

    columns = f"SELECT id, {PAYLOAD}, 'U' AS op, seq, seq AS seq_kept"
    # 7919 is a prime, so multiplying by it gives every key once, in no order.
    write("first1/load.parquet",
          f"{columns} FROM (SELECT (range * 7919) % {rows} AS id, 1 AS v, range AS seq FROM range({rows}))")
    write("first2/load.parquet",
          f"{columns} FROM (SELECT (range * 7919) % {current} AS id, range // {current} AS v, range AS seq "
          f"FROM range({rows}))")
    for storage, keys in ((1, rows), (2, current)):
        # Of 12 events two are repeats: one key in ten has three events.
        events = (f"SELECT range AS n, range - CASE WHEN range % 12 >= 10 THEN range % 12 ELSE 0 END AS base "
                  f"FROM range({changes})")
        write(f"second{storage}/changes.parquet",
              f"SELECT * EXCLUDE (n) REPLACE (CASE WHEN hash(n * 41 + 5) % 100 < 5 THEN 'D' ELSE 'U' END AS op) FROM "
              f"({columns}, n FROM (SELECT n, CASE WHEN hash(base * 43 + 1) % 100 < 20 THEN {keys} + base "
              f"ELSE hash(base * 47 + 3) % {keys} END::BIGINT AS id, n + 100 AS v, {rows} + n AS seq FROM ({events})))")
    return {storage: (work / f"first{storage}" / "load.parquet", work / f"second{storage}" / "changes.parquet")
            for storage in (1, 2)}


def pipeline_text(storage, folder):
    # Type 1 keeps its sequence in the target, as tables with an updated_at do.
    return (f"CREATE STREAMING TABLE target;\nCREATE FLOW target AS AUTO CDC INTO target\n"
            f"FROM STREAM read_files('{folder}', format => 'parquet', schema => '{COLUMNS}')\n"
            f"KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY {'seq_kept' if storage == 1 else 'seq'}\n"
            f"COLUMNS * EXCEPT (op, seq{', seq_kept' if storage == 2 else ''}) STORED AS SCD TYPE {storage};\n")


def prepare(work, storage, load, memory, threads):
    """A warehouse after the first batch; made once."""
    folder = work / f"in{storage}"
    pipeline, warehouse = work / f"pipeline{storage}", work / f"warehouse{storage}"
    if (work / f"loaded{storage}").exists():
        return pipeline, warehouse, folder
    for path in (folder, pipeline, warehouse):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir()
    pipeline.mkdir()
    (pipeline / "target.sql").write_text(pipeline_text(storage, folder), encoding="utf-8")
    os.link(load, folder / "1.parquet")
    seconds, peak, _, _ = measured([PROGRAM, "run", pipeline, "--warehouse", warehouse, "--memory-limit", memory,
                                 "--threads", threads])
    print(f"first batch of type {storage}: {seconds:.1f} s, peak {peak:.0f} MB", flush=True)
    (work / f"loaded{storage}").write_text(f"{seconds:.1f} {peak:.0f}\n")
    return pipeline, warehouse, folder


def rows_written(table):
    """Rows in the files that the last commit added."""
    last = max((table / "_delta_log").glob("*.json"))
    adds = [json.loads(line)["add"] for line in last.read_text("utf-8").splitlines() if line.startswith('{"add"')]
    stats = [json.loads(add["stats"]) for add in adds if add.get("stats")]
    # A file that only got a deletion vector is listed again without new rows.
    return sum(stat["numRecords"] for add, stat in zip(adds, stats) if not add.get("deletionVector"))


def check(work, storage, load, changes, warehouse):
    """The result has as many rows, and the same keys, as plain SQL over all events says."""
    connection = connect()
    events = f"(SELECT id, seq, op FROM '{load}' UNION ALL SELECT id, seq, op FROM '{changes}')"
    latest = f"SELECT id, arg_max(op, seq) AS op FROM {events} GROUP BY id"
    keys, total = connection.execute(f"SELECT count(*), sum(id) FROM ({latest}) WHERE op = 'U'").fetchone()
    where = "" if storage == 1 else " WHERE __END_AT IS NULL"
    query = f"SELECT count(*) AS n, sum(id) AS s FROM target{where}"
    (got,) = sql(warehouse, query)
    if (int(got["n"]), int(got["s"])) != (keys, int(total)):
        sys.exit(f"type {storage}: wrong result: {got}, expected {keys} rows")


def tutorial(work, times):
    """Seconds of one update of the documents' tutorial, SCD type 2, over a fresh warehouse each time."""
    folder = ROOT / "examples" / "tutorial"
    seconds = []
    for _ in range(times):
        warehouse = work / "tutorial"
        shutil.rmtree(warehouse, ignore_errors=True)
        measured([PROGRAM, "sql", "--warehouse", warehouse, "-f", folder / "data" / "create.sql"])
        seconds.append(measured([PROGRAM, "run", folder / "users_history", "--warehouse", warehouse])[0])
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the target")
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5, help="measurements of each kind, in turns")
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--types", type=int, nargs="+", choices=(1, 2), default=(1, 2))
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    work = options.work.resolve() / f"{options.rows}-{options.changes}"
    work.mkdir(parents=True, exist_ok=True)
    data = apart(generate, work, options.rows, options.changes)
    prepared = {storage: prepare(work, storage, data[storage][0], options.memory_limit, options.threads)
                for storage in options.types}

    ours = {storage: [] for storage in options.types}
    floors = {storage: [] for storage in options.types}
    written = {}
    for turn in range(options.times):
        for storage in options.types:
            pipeline, warehouse, folder = prepared[storage]
            copy = work / "measured"
            copy_warehouse(warehouse, copy)
            if not (folder / "2.parquet").exists():
                os.link(data[storage][1], folder / "2.parquet")
            seconds, peak, cpu, _ = measured([PROGRAM, "run", pipeline, "--warehouse", copy, "--memory-limit",
                                              options.memory_limit, "--threads", options.threads, "--json"])
            ours[storage].append((seconds, peak, cpu))
            table = copy / "main" / "default" / "target"
            written[storage] = rows_written(table)
            if turn == 0:
                apart(check, work, storage, *data[storage], copy)
            os.unlink(folder / "2.parquet")
            shutil.rmtree(copy)
            seconds, peak, cpu, output = measured(
                [sys.executable, ROOT / "bench" / "floor.py", storage, data[storage][1],
                 warehouse / "main" / "default" / "target", work / "floor", written[storage], options.memory_limit,
                 options.threads])
            floors[storage].append((seconds, cpu, float(output)))
            print(f"turn {turn + 1}, type {storage}: {ours[storage][-1][0]:.2f} s ({ours[storage][-1][1]:.0f} MB), "
                  f"floor {seconds:.2f} s", flush=True)
    walls = tutorial(work, 10)

    lines = ["| | rows written | strandline run, s | peak MB | floor, s | its statements alone, s | ratio | aim | "
             "processor seconds, ratio |", "|---|---|---|---|---|---|---|---|---|"]
    for storage in options.types:
        seconds, peaks, cpu = zip(*ours[storage])
        floor_seconds, floor_cpu, floor_statements = zip(*floors[storage])
        ratio = middle(seconds) / middle(floor_seconds)
        lines.append(f"| SCD type {storage} | {written[storage]:,} | {middle(seconds):.2f} | {max(peaks):.0f} | "
                     f"{middle(floor_seconds):.2f} | {middle(floor_statements):.2f} | {ratio:.2f} | {AIMS[storage]} | "
                     f"{middle(cpu):.2f} / {middle(floor_cpu):.2f} = {middle(cpu) / middle(floor_cpu):.2f} |")
    if walls:
        lines += ["", f"One update of the tutorial (`users_history`): {middle(walls) * 1000:.0f} ms, median of {len(walls)}; aim 500 ms."]
    text = "\n".join(lines)
    print("\n" + text)
    if options.write:
        write_section("bench", f"""
## One large batch

One batch of {options.changes:,} changes (20 % inserts, 75 % updates, 5 % deletes, random keys, three events for one key
in ten) into a table of {options.rows:,} rows (type 2: eight in ten current, two closed), `--memory-limit {options.memory_limit}`,
{options.threads} threads, {processor()}. Whole processes, median of {options.times} in turns with the floor; peak is the greatest.

The floor is DuckDB alone: it scans the changes, the target's keys, sequences and positions, for type 2 the
payload of the rows whose keys change, and writes as many rows, with no logic (`bench/floor.py`).

{text}

Make it again with `bench/run.sh bench --write`; `--rows`, `--changes` and `--times` change the size.""")


if __name__ == "__main__":
    main()
