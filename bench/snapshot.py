"""One snapshot of which few rows changed, next to DuckDB's own diff of the two files.

A target follows a first snapshot; the measured update takes the second, of which 0.12 % of the rows changed: two thirds
updated, the rest new or gone, its rows in another order. Everything is measured as whole processes, in turns: `strandline run`
of the update, and DuckDB's full anti-join diff of the two files (snapshot_floor.py). An unchanged snapshot must commit nothing; results are held against the second file. Data is
generated and the same every time. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from shared import PAYLOAD, PROGRAM, ROOT, actions, apart, connect, copy_warehouse, measured, middle, processor, sql, versions, write_section

AIM, AIM_MB = 2.5, 2000
# Of 2,500 rows two are updated; one of 10,000 is new and one is gone.
UPDATED, GONE = "hash(id * 3) % 1250 = 0", "hash(id * 5) % 5000 = 0"


def generate(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    connection = connect()

    def write(name, query):
        path = folder / name
        if not path.exists():
            connection.execute(f"COPY ({query}) TO '{path}.part' (FORMAT parquet, COMPRESSION zstd)")
            Path(f"{path}.part").rename(path)

    payload = lambda source: f"SELECT id, {PAYLOAD} FROM ({source})"
    write("old.parquet", payload(f"SELECT range AS id, 0 AS v FROM range({rows})"))
    # The other order: by blocks of keys, last first.
    write("new.parquet", payload(
        f"SELECT id, CASE WHEN {UPDATED} THEN 1 ELSE 0 END AS v FROM (SELECT {rows} - 1 - range AS id FROM range({rows})) "
        f"WHERE NOT ({GONE}) UNION ALL SELECT {rows} + range AS id, 0 AS v FROM range({rows // 5000})"))


def pipeline_text(storage, files):
    return ("CREATE STREAMING TABLE target;\nCREATE FLOW target AS AUTO CDC INTO target\n"
            f"FROM SNAPSHOT (SELECT * FROM read_files('{files}', format => 'parquet'))\n"
            f"KEYS (id) STORED AS SCD TYPE {storage};\n")


class Target:
    """A pipeline and its warehouse after the first snapshot; made once."""

    def __init__(self, folder, storage, options):
        self.storage, self.options = storage, options
        self.files, self.pipeline = folder / f"in{storage}", folder / f"pipeline{storage}"
        self.warehouse = folder / f"warehouse{storage}"
        done = folder / f"loaded{storage}"
        if done.exists():
            return
        for path in (self.files, self.pipeline, self.warehouse):
            shutil.rmtree(path, ignore_errors=True)
        self.files.mkdir()
        self.pipeline.mkdir()
        (self.pipeline / "target.sql").write_text(pipeline_text(storage, self.files), encoding="utf-8")
        self.take(folder / "old.parquet")
        seconds, peak, _, _ = self.run(self.warehouse)
        print(f"type {storage}: first snapshot in {seconds:.1f} s, peak {peak:.0f} MB", flush=True)
        done.touch()

    def take(self, path):
        (self.files / "snapshot.parquet").unlink(missing_ok=True)
        os.link(path, self.files / "snapshot.parquet")

    def run(self, warehouse):
        seconds, peak, cpu, output = measured([
            PROGRAM, "run", self.pipeline, "--warehouse", warehouse, "--memory-limit", self.options.memory_limit,
            "--threads", self.options.threads, "--json"])
        return seconds, peak, cpu, json.loads(output)["flows"][0]["metrics"]


def check(target, warehouse, folder):
    """The current rows are those of the second file; the history has the old ones beside them."""
    sums = "count(*) AS n, sum(id) AS ids, sum(amount_int) AS amounts, sum(length(name)) AS names, sum(length(note)) AS notes"
    connection = connect()
    current = "" if target.storage == 1 else " WHERE __END_AT IS NULL"
    wanted = connection.execute(f"SELECT {sums} FROM '{folder}/new.parquet'").fetchone()
    (row,) = sql(warehouse, f"SELECT {sums} FROM target{current}")
    if tuple(int(value) for value in row.values()) != tuple(int(value) for value in wanted):
        sys.exit(f"type {target.storage}: wrong result: {row}, expected {wanted}")
    if target.storage == 2:
        ended = connection.execute(f"SELECT count(*) FROM '{folder}/old.parquet' WHERE {UPDATED} OR {GONE}").fetchone()
        (row,) = sql(warehouse, "SELECT count(*) AS n FROM target WHERE __START_AT = 0 AND __END_AT = 1")
        if row["n"] != ended[0]:
            sys.exit(f"type 2: {row['n']} rows ended, expected {ended[0]}")


def measure(target, folder, options, checked):
    """One turn: the update, an unchanged one, the floor."""
    copy = target.warehouse.parent / "measured"
    copy_warehouse(target.warehouse, copy)
    table = copy / "main" / "default" / "target"
    known = len(versions(table))
    target.take(folder / "new.parquet")
    seconds, peak, cpu, metrics = target.run(copy)
    added = [action["add"] for path in versions(table)[known:] for action in actions(path) if "add" in action]
    written = sum((add["deletionVector"]["sizeInBytes"] if add.get("deletionVector") else add["size"]) for add in added)
    if not checked:
        apart(check, target, copy, folder)
    known = len(versions(table))
    again = target.run(copy)[0]
    if len(versions(table)) != known:
        sys.exit(f"type {target.storage}: an unchanged snapshot committed something")
    floor = measured([sys.executable, ROOT / "bench" / "snapshot_floor.py", folder / "old.parquet", folder / "new.parquet",
                      options.memory_limit, options.threads])
    shutil.rmtree(copy)
    return {"seconds": seconds, "peak": peak, "cpu": cpu, "written": written, "rows": metrics["num_upserted_rows"]
            + metrics["num_deleted_rows"], "again": again, "floor": floor[0], "floor cpu": floor[2], "floor peak": floor[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="rows of the snapshots")
    parser.add_argument("--times", type=int, default=3, help="measurements of each kind, in turns")
    parser.add_argument("--memory-limit", default="1500MB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--types", type=int, nargs="+", choices=(1, 2), default=(1, 2))
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    lines = ["| rows | type | update, s | diff, s | ratio | processor seconds, ratio | rows written | MB written | peak MB | "
             "diff's peak MB | unchanged, s |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for rows in options.rows:
        folder = options.work.resolve() / f"snapshot-{rows}"
        apart(generate, folder, rows)
        targets = {storage: Target(folder, storage, options) for storage in options.types}
        results = {storage: [] for storage in options.types}
        for turn in range(options.times):
            for storage, target in targets.items():
                result = measure(target, folder, options, turn > 0)
                results[storage].append(result)
                print(f"turn {turn + 1}, {rows:,} rows, type {storage}: "
                      + ", ".join(f"{key} {value:.4g}" for key, value in result.items()), flush=True)
        for storage, found in results.items():
            get = lambda key, found=found: middle([one[key] for one in found])
            lines.append(
                f"| {rows:,} | {storage} | {get('seconds'):.2f} | {get('floor'):.2f} | {get('seconds') / get('floor'):.2f} | "
                f"{get('cpu'):.2f} / {get('floor cpu'):.2f} = {get('cpu') / get('floor cpu'):.2f} | {get('rows'):.0f} | "
                f"{get('written') / 1e6:.1f} | {max(one['peak'] for one in found):.0f} | "
                f"{max(one['floor peak'] for one in found):.0f} | {get('again'):.2f} |")
    text = "\n".join(lines)
    print("\n" + text)
    if options.write:
        write_section("snapshot", f"""
## Snapshots

A snapshot of which 0.12 % of the rows changed (updated, new, gone), in another order than the target's, from a Parquet
file into a target that followed the one before; ten columns of numbers, texts and times. The update as a whole process,
and as another one DuckDB's full anti-join diff of the two files with all columns compared (`bench/snapshot_floor.py`); median of
{options.times} in turns, `--memory-limit {options.memory_limit}`, {options.threads} threads, {processor()}; peak is the
greatest. Aims: {AIM:g} times the diff, peak under {AIM_MB} MB. "Unchanged" is the same snapshot once more, which commits
nothing (checked, as is the result). {options.note}

{text}

Make it again with `bench/run.sh snapshot --write`.""")


if __name__ == "__main__":
    main()
