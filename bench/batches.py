"""Thousands of small batches into one table: the number of files and the time of a batch stay bounded.

Each batch is a file of 100 events, every other one about an older key, none of which the target keeps
the sequence of, so that target and state both gain files. One process runs them all. The log tells how
many files there were after each version and when each batch was committed (compaction included). The
rows are checked against plain SQL over all events. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from shared import (PROGRAM, ROOT, actions, apart, batch_seconds, connect, measured, middle, processor, sql, versions,
                    write_numbered, write_section)

EVENTS = 100
PARTS = 8  # of the run, one line each


def generate(folder, batches):
    if folder.exists():
        return
    connection = connect(threads=1)
    write_numbered(connection, f"""
SELECT n // {EVENTS} AS file, CASE WHEN n % 2 = 0 THEN n // 2 ELSE (hash(n) % (n // 2 + 1))::BIGINT END AS id,
       (hash(n * 3) % 1000000)::BIGINT AS amount, 'name ' || hash(n * 5) % 5000 AS name,
       CASE WHEN n % 50 = 49 THEN 'D' ELSE 'U' END AS op, n AS seq
FROM (SELECT range AS n FROM range({batches * EVENTS}))""", folder)


def file_counts(table):
    """Live files after each version."""
    counts, count = [], 0
    for path in versions(table):
        for action in actions(path):
            if "add" in action:
                count += 1
            elif "remove" in action:
                count -= 1
        counts.append(count)
    return counts


def check(folder, warehouse, storage):
    connection = connect()
    events = f"'{folder}/*.parquet'"
    sums = "count(*) AS n, sum(id) AS ids, sum(amount) AS amounts"
    if storage == 1:
        wanted = connection.execute(f"SELECT {sums} FROM (FROM {events} QUALIFY row_number() OVER (PARTITION BY id ORDER BY seq "
                                    "DESC) = 1) WHERE op = 'U'").fetchone()
    else:
        wanted = connection.execute(f"SELECT {sums} FROM (SELECT *, op = 'U' AND coalesce(lag(op) OVER w = 'D' OR lag(amount) OVER w <> amount "
                                    f"OR lag(name) OVER w <> name, true) AS starts FROM {events} WINDOW w AS (PARTITION BY id ORDER BY seq)) "
                                    "WHERE starts").fetchone()
    (row,) = sql(warehouse, f"SELECT {sums} FROM target")
    if [int(row[name]) for name in ("n", "ids", "amounts")] != [int(value) for value in wanted]:
        sys.exit(f"type {storage}: wrong result: {row}, expected {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=2400)
    parser.add_argument("--types", type=int, nargs="+", choices=(1, 2), default=(1, 2))
    parser.add_argument("--memory-limit", default="1500MB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    folder = options.work.resolve() / f"batches-{options.batches}"
    data = folder / "in"
    apart(generate, data, options.batches)
    lines = ["| type | batches | batch, median ms | slowest, ms | files of the target, most | files of the state, most |", "|---|---|---|---|---|---|"]
    for storage in options.types:
        pipeline, warehouse = folder / f"pipeline{storage}", folder / f"warehouse{storage}"
        for path in (pipeline, warehouse):
            shutil.rmtree(path, ignore_errors=True)
        pipeline.mkdir()
        (pipeline / "target.sql").write_text(
            f"CREATE STREAMING TABLE target;\nCREATE FLOW target AS AUTO CDC INTO target FROM STREAM read_files('{data}', "
            "format => 'parquet', maxFilesPerTrigger => 1, schema => 'id BIGINT, amount BIGINT, name STRING, op STRING, seq BIGINT')\n"
            "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) "
            f"STORED AS SCD TYPE {storage};\n", encoding="utf-8")
        seconds, peak, cpu, _ = measured([PROGRAM, "run", pipeline, "--warehouse", warehouse, "--memory-limit",
                                          options.memory_limit, "--threads", options.threads])
        apart(check, data, warehouse, storage)
        table = warehouse / "main" / "default" / "target"
        times = batch_seconds(table)
        counts = [file_counts(table), file_counts(table / "_strandline_state")]
        for part in range(PARTS):
            cut = lambda values, part=part: values[len(values) * part // PARTS:len(values) * (part + 1) // PARTS]
            lines.append(f"| {storage} | {len(times) * part // PARTS + 1:,} to {len(times) * (part + 1) // PARTS:,} | "
                         f"{middle(cut(times)) * 1000:.0f} | {max(cut(times)) * 1000:.0f} | "
                         + " | ".join(str(max(cut(count), default=0)) for count in counts) + " |")
            print(lines[-1], flush=True)
        lines.append(f"| {storage} | all: {seconds:.1f} s, {cpu:.1f} processor s, peak {peak:.0f} MB | {middle(times) * 1000:.0f} | "
                     f"{max(times) * 1000:.0f} | " + " | ".join(str(max(count, default=0)) for count in counts) + " |")
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    if options.write:
        write_section("batches", f"""
## Thousands of small batches

{options.batches:,} batches of {EVENTS} events in one process, every other event about an older key, sequence not kept; files are live
ones, a batch's time is that between two commits of the target, automatic compaction included. `--memory-limit
{options.memory_limit}`, {options.threads} threads, {processor()}. {options.note}

{text}

Make it again with `bench/run.sh batches --write`.""")


if __name__ == "__main__":
    main()
