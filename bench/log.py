"""Open tables with long logs and large checkpoints, next to the floor of the embedded engine.

Makes the logs itself (no data files: only metadata is read) and measures whole processes: `strandline
sql` with DESCRIBE DETAIL, which needs a full snapshot. The floor reads the same bytes and does nothing
with them. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import json
import os
import statistics
import sys
import time
import uuid
from pathlib import Path

import duckdb

from shared import PROGRAM, ROOT, measured, write_section

AIMS = {"long": (5.0, 1000), "json": (10.0, 1000), "struct": (10.0, 1000), "removes": (10.0, 1000)}
LONG_AGO = 1_700_000_000_000
FIELDS = [("id", "long"), ("amount", "long"), ("price", "decimal(12,2)"), ("name", "string"), ("city", "string"),
          ("born", "date"), ("updated_at", "timestamp"), ("note", "string"), ("day", "string")]
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": name, "type": type, "nullable": True, "metadata": {}}
                                                   for name, type in FIELDS]})
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METADATA = {"id": str(uuid.UUID(int=7)), "format": {"provider": "parquet", "options": {}}, "schemaString": SCHEMA,
            "partitionColumns": ["day"], "configuration": {}, "createdTime": LONG_AGO}
# One file's words, as SQL over its number `n`.
PATH = "'day=' || {day} || '/part-' || printf('%05d', n % 1000) || '-' || md5(n::VARCHAR)[:8] || '-4a1b-4c2d-8e3f-' || md5((n + 1)::VARCHAR)[:12] || '.c000.snappy.parquet'"
DAY = "strftime(DATE '2024-01-01' + (n % 700)::INT, '%Y-%m-%d')"
LOW = ("{'id': n * 1000, 'amount': n % 977, 'price': (n % 5000 / 100)::DECIMAL(12,2), 'name': 'name of customer ' || n, "
       "'city': 'Cancun', 'born': DATE '1990-01-01' + (n % 999)::INT, "
       "'updated_at': TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds(n), 'note': 'note ' || n % 1000}")
HIGH = LOW.replace("n * 1000", "n * 1000 + 999").replace("Cancun", "Tijuana")
NULLS = "{" + ", ".join(f"'{name}': n % 3" for name, _ in FIELDS[:-1]) + "}"
PARSED = f"{{'numRecords': 1000::BIGINT, 'minValues': {LOW}, 'maxValues': {HIGH}, 'nullCount': {NULLS}}}"
# The log writes instants in ISO form.
TEXT = f"to_json({PARSED})::VARCHAR".replace(
    "TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds(n)",
    "strftime(TIMESTAMP '2024-01-01' + to_seconds(n), '%Y-%m-%dT%H:%M:%S.000Z')")


def add_rows(files, form):
    stats = {"json": f"'stats': {TEXT}", "struct": f"'stats_parsed': {PARSED}"}[form]
    return (f"SELECT {{'path': {PATH.format(day=DAY)}, 'partitionValues': MAP {{'day': {DAY}}}, 'size': 5000000 + n, "
            f"'modificationTime': {LONG_AGO} + n, 'dataChange': false, {stats}}} AS add, NULL AS remove "
            f"FROM (SELECT range AS n FROM range({files[0]}, {files[1]}))")


def remove_rows(files):
    now = int(time.time() * 1000)
    return (f"SELECT NULL AS add, {{'path': {PATH.format(day=DAY)}, 'deletionTimestamp': {now}, 'dataChange': false, "
            f"'extendedFileMetadata': true, 'partitionValues': MAP {{'day': {DAY}}}, 'size': 5000000 + n}} AS remove "
            f"FROM (SELECT range AS n FROM range({files[0]}, {files[1]}))")


def write_checkpoint(connection, path, rows):
    protocol = "{'minReaderVersion': 1, 'minWriterVersion': 2}"
    metadata = (f"{{'id': '{METADATA['id']}', 'format': {{'provider': 'parquet', 'options': MAP {{}}::MAP(VARCHAR, VARCHAR)}}, "
                f"'schemaString': '{SCHEMA}', 'partitionColumns': ['day'], "
                f"'configuration': MAP {{}}::MAP(VARCHAR, VARCHAR), 'createdTime': {LONG_AGO}}}")
    query = (f"SELECT {protocol} AS protocol, NULL AS \"metaData\" UNION ALL BY NAME SELECT NULL AS protocol, {metadata} AS \"metaData\" "
             + "".join(f" UNION ALL BY NAME {part}" for part in rows))
    connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")


def large_checkpoint(work, name, count):
    """One checkpoint of `count` files (and as many removes for `removes`), and no commit after it."""
    log = work / name / "_delta_log"
    if not (log / "done").exists():
        log.mkdir(parents=True, exist_ok=True)
        rows = [add_rows((0, count), "struct" if name == "struct" else "json")]
        if name == "removes":
            rows.append(remove_rows((count, 2 * count)))
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        write_checkpoint(connection, log / f"{10:020}.checkpoint.parquet", rows)
        (log / f"{10:020}.json").write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
        (log / "done").touch()
    return log.parent


def long_log(work, commits, interval, live=1000):
    """`commits` commits: each adds a file and removes the one `live` versions older. Checkpoints each
    `interval` versions; all but the newest are links to it, since only their names are ever looked at."""
    log = work / "long" / "_delta_log"
    if (log / "done").exists():
        return log.parent
    log.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    last = commits - 1
    newest = last // interval * interval
    if newest == last:
        newest -= interval
    write_checkpoint(connection, log / f"{newest:020}.checkpoint.parquet",
                     [add_rows((newest - live + 1, newest + 1), "json"), remove_rows((newest - live - 10_000, newest - live + 1))])
    rows = connection.execute(f"SELECT {PATH.format(day=DAY)}, {DAY}, {TEXT} FROM (SELECT range AS n FROM range({commits}))").fetchall()
    for version, (path, day, stats) in enumerate(rows):
        actions = [{"commitInfo": {"timestamp": LONG_AGO + version, "operation": "WRITE", "operationParameters": {"mode": "Append"}}}]
        if version == 0:
            actions += [{"protocol": PROTOCOL}, {"metaData": METADATA}]
        if version >= live:
            old, old_day, _ = rows[version - live]
            actions.append({"remove": {"path": old, "deletionTimestamp": LONG_AGO + version, "dataChange": True,
                                       "extendedFileMetadata": True, "partitionValues": {"day": old_day}, "size": 5_000_000}})
        actions.append({"add": {"path": path, "partitionValues": {"day": day}, "size": 5_000_000, "dataChange": True,
                                "modificationTime": LONG_AGO + version, "stats": stats}})
        (log / f"{version:020}.json").write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions) + "\n")
        if version > 0 and version % interval == 0 and version != newest:
            os.link(log / f"{newest:020}.checkpoint.parquet", log / f"{version:020}.checkpoint.parquet")
    (log / "done").touch()
    return log.parent


# Lists the log, then reads the newest checkpoint's file columns with the engine and the bytes of the
# commits after it.
FLOOR = """
import os, sys, duckdb
log = sys.argv[1]
names = sorted(entry.name for entry in os.scandir(log) if entry.stat())
newest = max(name for name in names if 'checkpoint' in name)
connection = duckdb.connect()
connection.execute("SET preserve_insertion_order = false")
source = f"read_parquet('{log}/{newest}')"
for column in ('add', 'remove'):
    connection.execute(f"SELECT count(*), max(hash({column})) FROM {source} WHERE {column} IS NOT NULL").fetchall()
for name in names:
    if name.endswith('.json') and name[:20] > newest[:20]:
        open(os.path.join(log, name), 'rb').read()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--interval", type=int, default=10, help="commits between checkpoints")
    parser.add_argument("--files", type=int, default=1_000_000, help="live files of the large checkpoints")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=tuple(AIMS), default=tuple(AIMS))
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    work = options.work.resolve() / f"log-{options.commits}-{options.interval}-{options.files}"
    work.mkdir(parents=True, exist_ok=True)
    names = {"long": f"{options.commits:,} commits, a checkpoint every {options.interval}",
             "json": f"{options.files:,} files, statistics as JSON",
             "struct": f"{options.files:,} files, statistics as structs only",
             "removes": f"{options.files:,} files and as many removed ones"}
    lines = ["| | open, s | processor s | peak MB | floor, s | floor processor s | floor peak MB | aim |", "|---|---|---|---|---|---|---|---|"]
    for name in options.tables:
        table = long_log(work, options.commits, options.interval) if name == "long" else large_checkpoint(work, name, options.files)
        wanted = 1000 if name == "long" else options.files
        ours, floors = [], []
        for _ in range(options.times):
            seconds, peak, cpu, output = measured([options.program, "sql", "--format", "ndjson", "-c", f"DESCRIBE DETAIL delta.`{table}`"])
            if int(json.loads(output)["numFiles"]) != wanted:
                sys.exit(f"{name}: wrong number of files: {output}")
            ours.append((seconds, peak, cpu))
            floors.append(measured([sys.executable, "-c", FLOOR, table / "_delta_log"])[:3])
        aim_seconds, aim_mb = AIMS[name]
        middle = lambda rows, column: statistics.median(row[column] for row in rows)
        lines.append(f"| {names[name]} | {middle(ours, 0):.2f} | {middle(ours, 2):.2f} | {max(row[1] for row in ours):.0f} | "
                     f"{middle(floors, 0):.2f} | {middle(floors, 2):.2f} | {max(row[1] for row in floors):.0f} | "
                     f"{aim_seconds:.0f} s, {aim_mb} MB |")
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    if options.write:
        write_section("log", f"""
## Logs and checkpoints

Seconds and peak memory of a whole process that opens a table and prints `DESCRIBE DETAIL`, which takes
every live file into account; median of {options.times}. A file has eight columns of statistics. The floor is a
Python process that lists the log, has DuckDB read the checkpoint's file columns and reads the bytes of
the commits after it.

{text}

Processor seconds tell what a busy machine does not. Make it again with `bench/run.sh log --write`.""")


if __name__ == "__main__":
    main()
