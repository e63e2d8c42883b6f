"""Apply 10,000 changes to tables of several sizes, next to the floor of the embedded engine.

The tables are made the way they come to be: by many batches of AUTO CDC with automatic compaction,
keys growing with time, one event in ten about an older key. A measured batch has random keys, or keys
of the newest fiftieth of the table. Everything is measured as whole processes, in turns: `strandline
run` of the batch, and DuckDB finding and reading the rows of its keys in the same files of target and
state (keys_floor.py). A batch that repeats what was applied must commit nothing. Data is generated and
the same every time. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from shared import (PAYLOAD, PROGRAM, ROOT, actions, apart, connect, copy_warehouse, live_files, measured, middle, processor, sql,
                    versions, write_section)

AIM_RANDOM, AIM_GROWTH, AIM_MB = 2.0, 2.5, 2000
COLUMNS = ("id BIGINT, amount_int BIGINT, price DECIMAL(12,2), score DOUBLE, name STRING, city STRING, born DATE, "
           "updated_at TIMESTAMP, active BOOLEAN, note STRING, op STRING, seq BIGINT")
# Of a hundred events ninety bring a key, nine change one, every other of them in nothing but the
# untracked note, and one deletes one. Key and state of event n, and what is done:
NEW_KEYS = "n // 10 * 9 + least(n % 10, 9)"
EVENT = f"""
SELECT n AS seq, CASE WHEN n % 10 < 9 THEN {NEW_KEYS} ELSE (hash(n) % greatest(n // 10 * 9, 1))::BIGINT END AS id,
       CASE WHEN n % 10 < 9 OR n % 20 = 9 THEN 0 ELSE n END AS v, CASE WHEN n % 100 = 99 THEN 'D' ELSE 'U' END AS op
FROM (SELECT range AS n FROM range({{}}, {{}}))"""


def rows_of(events):
    note = "'note ' || seq::VARCHAR AS note"
    return f"SELECT * REPLACE ({note}) FROM (SELECT id, {PAYLOAD}, op, seq FROM ({events}))"


def generate(folder, rows, changes, loads):
    """load/: the files of the first batches; random.parquet and newest.parquet: the measured ones."""
    load = folder / "load"
    load.mkdir(parents=True, exist_ok=True)
    connection = connect()

    def write(path, query):
        if not path.exists():
            connection.execute(f"COPY ({query}) TO '{path}.part' (FORMAT parquet, COMPRESSION zstd)")
            Path(f"{path}.part").rename(path)

    events = rows * 100 // 89
    for i in range(loads):
        # In the order of a hash: a source hands its rows out in no order.
        write(load / f"{i:03}.parquet",
              rows_of(EVENT.format(events * i // loads, events * (i + 1) // loads)) + " ORDER BY hash(seq)")
        os.utime(load / f"{i:03}.parquet", (1_700_000_000 + i, 1_700_000_000 + i))
    keys = events // 10 * 9
    for name, first in (("random", 0), ("newest", keys - keys // 50)):
        # 85 % of the changes are updates, 10 % new keys, 5 % deletes.
        write(folder / f"{name}.parquet", rows_of(f"""
SELECT {events} + n AS seq, CASE WHEN n % 20 < 2 THEN {keys} + n ELSE {first} + (hash(n * 43) % {keys - first})::BIGINT END AS id,
       {events} + n AS v, CASE WHEN n % 20 = 19 THEN 'D' ELSE 'U' END AS op
FROM (SELECT range AS n FROM range({changes}))"""))
    return load


def pipeline_text(storage, folder):
    history = " TRACK HISTORY ON * EXCEPT (note)" if storage == 2 else ""
    return (f"CREATE STREAMING TABLE target;\nCREATE FLOW target AS AUTO CDC INTO target\n"
            f"FROM STREAM read_files('{folder}', format => 'parquet', maxFilesPerTrigger => 1, schema => '{COLUMNS}')\n"
            f"KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq\n"
            f"COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE {storage}{history};\n")


class Table:
    """A pipeline and its warehouse after the first batches; made once."""

    def __init__(self, folder, storage, load, options):
        self.storage = storage
        self.options = options
        self.load = load
        self.folder = folder / f"in{storage}"
        self.pipeline = folder / f"pipeline{storage}"
        self.warehouse = folder / f"warehouse{storage}"
        done = folder / f"loaded{storage}"
        if done.exists():
            return
        for path in (self.folder, self.pipeline, self.warehouse):
            shutil.rmtree(path, ignore_errors=True)
        self.folder.mkdir()
        self.pipeline.mkdir()
        (self.pipeline / "target.sql").write_text(pipeline_text(storage, self.folder), encoding="utf-8")
        for path in sorted(load.iterdir()):
            os.link(path, self.folder / path.name)
        seconds, peak, _, _ = self.run(self.warehouse)
        print(f"type {storage}: {options.loads} batches in {seconds:.1f} s, peak {peak:.0f} MB", flush=True)
        done.touch()

    def run(self, warehouse):
        seconds, peak, cpu, output = measured([
            PROGRAM, "run", self.pipeline, "--warehouse", warehouse, "--memory-limit", self.options.memory_limit,
            "--threads", self.options.threads, "--json"])
        return seconds, peak, cpu, json.loads(output)

    @staticmethod
    def places(warehouse):
        target = warehouse / "main" / "default" / "target"
        return target, target / "_strandline_state"

    def add(self, name, path):
        (self.folder / name).unlink(missing_ok=True)
        os.link(path, self.folder / name)

    def remove(self, name):
        os.unlink(self.folder / name)


def bytes_written(table, known):
    """Of the commits after `known` ones: data files and deletion vectors."""
    total = 0
    for path in versions(table)[known:]:
        for action in actions(path):
            vector = action.get("add", {}).get("deletionVector")
            if vector:
                total += vector["sizeInBytes"]
            elif "add" in action:
                total += action["add"]["size"]
    return total


def check(table, warehouse, changes, rows):
    """Every so many keys have just the rows that plain SQL over all events gives them."""
    step = max(1, rows // 1_000_000)
    connection = connect()
    events = (f"SELECT id, seq, op, amount_int, price, note FROM read_parquet(['{table.load}/*.parquet', '{changes}']) "
              f"WHERE id % {step} = 0")
    sums = "count(*) AS n, sum(id) AS ids, sum(amount_int) AS amounts, sum(length(note)) AS notes"
    if table.storage == 1:
        expected = (f"SELECT {sums} FROM (SELECT * FROM ({events}) QUALIFY row_number() OVER (PARTITION BY id ORDER BY seq "
                    "DESC) = 1) WHERE op = 'U'")
        query = f"SELECT {sums} FROM target WHERE id % {step} = 0"
    else:
        # A row is a run of equal tracked values; the last event gives the rest, the next one its end.
        expected = (f"SELECT {sums}, sum(begin) AS begins, sum(stop) AS stops FROM ("
                    "SELECT id, run, any_value(amount_int) AS amount_int, arg_max(note, seq) AS note, min(seq) AS begin, "
                    "arg_max_null(next, seq) AS stop FROM (SELECT *, sum(starts::INT) OVER (PARTITION BY id ORDER BY seq) AS run FROM ("
                    "SELECT *, lead(seq) OVER w AS next, coalesce(lag(op) OVER w = 'D' OR lag(amount_int) OVER w <> amount_int "
                    "OR lag(price) OVER w <> price, true) AS starts "
                    f"FROM ({events}) WINDOW w AS (PARTITION BY id ORDER BY seq))) WHERE op = 'U' GROUP BY id, run)")
        query = f"SELECT {sums}, sum(__START_AT) AS begins, sum(__END_AT) AS stops FROM target WHERE id % {step} = 0"
    names = [name for name, *_ in connection.execute(f"DESCRIBE {expected}").fetchall()]
    wanted = [int(value) for value in connection.execute(expected).fetchone()]
    (row,) = sql(warehouse, query)
    got = [int(row[name]) for name in names]
    if got != wanted:
        sys.exit(f"type {table.storage}: wrong result: {dict(zip(names, got))}, expected {dict(zip(names, wanted))}")


def measure(table, name, changes, rows, options, checked):
    """One turn: the batch, its repetition, the floor."""
    copy = table.warehouse.parent / "measured"
    copy_warehouse(table.warehouse, copy)
    places = table.places(copy)
    known = [len(versions(place)) for place in places]
    lists = []
    for place in places:
        lists.append(copy.parent / f"{place.name}.files")
        lists[-1].write_text("\n".join(live_files(table.warehouse / place.relative_to(copy))), encoding="utf-8")
    table.add("x1.parquet", changes)
    seconds, peak, cpu, report = table.run(copy)
    written = sum(bytes_written(place, count) for place, count in zip(places, known))
    metrics = report["flows"][0]["metrics"]
    if not checked:
        apart(check, table, copy, changes, rows)
    known = [len(versions(place)) for place in places]
    table.add("x2.parquet", changes)
    again = table.run(copy)[0]
    if [len(versions(place)) for place in places] != known:
        sys.exit(f"type {table.storage}, {name} keys: a batch of duplicates committed something")
    table.remove("x1.parquet")
    table.remove("x2.parquet")
    floor = measured([sys.executable, ROOT / "bench" / "keys_floor.py", changes, options.memory_limit, options.threads,
                      *lists])
    statements = [float(line) for line in floor[3].split()]
    shutil.rmtree(copy)
    return {"seconds": seconds, "peak": peak, "cpu": cpu, "written": written, "read": metrics["num_files_read"],
            "files": metrics["num_files_read"] + metrics["num_files_skipped"], "again": again, "floor": floor[0],
            "floor cpu": floor[2], "floor peak": floor[1], "floor target": statements[0], "floor state": statements[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 50_000_000], help="rows of the targets")
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=100, help="batches that make a table")
    parser.add_argument("--times", type=int, default=5, help="measurements of each kind, in turns")
    parser.add_argument("--memory-limit", default="1500MB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--types", type=int, nargs="+", choices=(1, 2), default=(1, 2))
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    lines = ["| rows | type | keys | run, s | floor, s | ratio | its statements: target + state, s | processor seconds, ratio | files read | MB written | "
             "peak MB | repeated, s |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    newest = {}  # seconds and processor seconds
    for rows in options.rows:
        folder = options.work.resolve() / f"keys-{rows}-{options.changes}"
        load = apart(generate, folder, rows, options.changes, options.loads)
        tables = {storage: Table(folder, storage, load, options) for storage in options.types}
        kinds = [(storage, name) for storage in options.types for name in ("random", "newest")]
        results = {kind: [] for kind in kinds}
        for turn in range(options.times):
            for kind in kinds:
                storage, name = kind
                result = measure(tables[storage], name, folder / f"{name}.parquet", rows, options, turn > 0)
                results[kind].append(result)
                print(f"turn {turn + 1}, {rows:,} rows, type {storage}, {name}: "
                      + ", ".join(f"{key} {value:.4g}" for key, value in result.items()), flush=True)
        for (storage, name), found in results.items():
            get = lambda key, found=found: middle([one[key] for one in found])
            newest[rows, storage, name] = get("seconds"), get("cpu")
            lines.append(
                f"| {rows:,} | {storage} | {name} | {get('seconds'):.2f} | {get('floor'):.2f} | {get('seconds') / get('floor'):.2f} | "
                f"{get('floor target'):.2f} + {get('floor state'):.2f} | {get('cpu'):.2f} / {get('floor cpu'):.2f} = "
                f"{get('cpu') / get('floor cpu'):.2f} | {get('read'):.0f} of {get('files'):.0f} | {get('written') / 1e6:.1f} | "
                f"{max(one['peak'] for one in found):.0f} | {get('again'):.2f} |")
    text = "\n".join(lines)
    small, large = min(options.rows), max(options.rows)
    if small < large:
        grown = lambda storage, place: newest[large, storage, "newest"][place] / newest[small, storage, "newest"][place]
        growth = ", ".join(f"type {storage} {grown(storage, 0):.2f} (processor seconds {grown(storage, 1):.2f})"
                           for storage in options.types)
        text += f"\n\nFrom {small:,} to {large:,} rows the batch of newest keys takes so many times as long: {growth}; aim {AIM_GROWTH}."
    print("\n" + text)
    if options.write:
        write_section("keys", f"""
## Small batches into large tables

{options.changes:,} changes (85 % updates, 10 % new keys, 5 % deletes) into tables made by {options.loads} batches of AUTO CDC with automatic
compaction; keys grow with time, one event in ten is about an older key. Keys of the batch are random, or
among the newest 2 % of the table. Type 1 does not keep its sequence, so its state has a row for each key; type 2 does
not track one column, so its state has the events folded away. Whole processes, median of {options.times} in turns,
`--memory-limit {options.memory_limit}`, {options.threads} threads, {processor()}; peak is the greatest. {options.note}

The floor is DuckDB alone: of the same files of target and state it scans the keys and reads the rows of the batch's
keys, one statement each (`bench/keys_floor.py`). Aims: random keys {AIM_RANDOM:g} times the floor, peak under {AIM_MB} MB. "Repeated" is the same
batch once more, which commits nothing (checked, as is the result).

{text}

Make it again with `bench/run.sh keys --write`.""")


if __name__ == "__main__":
    main()
