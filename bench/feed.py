"""Both change data feeds of one table against DuckDB scanning the changed columns of the same files.

Usage: bench/run.sh feed [--rows 10000000] [--versions 20] [--memory 1GB] [--write]
Each version updates 1 % of the rows. Prints a row for each feed and layout: seconds of the whole program, of one that does
nothing, of the scan in an engine that is open already; the ratio is between the first less the second, and the third.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from shared import PROGRAM, apart, connect, measured, processor, write_section

SECTION = """
## Change data feeds

`SELECT count(*), sum(v) FROM table_changes('t', 2)` of a table of {rows:,} rows, {versions} versions after the first each
updating 1 % of them; whole programs with `--memory-limit {memory}`, best of 3, {processor}. The floor is DuckDB, open already,
scanning that column of the same files once: the data files, or of a recorded feed its files. Ratios are without what the
program needs to start; where the machine is busy with other work, processor seconds mean more. The automatic feed also reads
what tells which rows changed: with copy on write row ids and versions of the row groups that hold changed rows, with deletion
vectors statistics of the new files and the vectors. Aim: 2.

{table}

With copy on write the feed reads less than the floor: of the new files only the row groups that hold changed rows, of the old
rows the file where each was last changed. With deletion vectors no row id is read; over the floor are the condition on each
row of the scan (the engine's own filter on row numbers takes 1.4 times its scan), the vectors and the list of changed rows.

Make it again with `bench/run.sh feed --write`.
"""

LAYOUTS = {
    "automatic, deletion vectors": {"delta.enableDeletionVectors": "true"},
    "automatic, copy on write": {"delta.enableDeletionVectors": "false"},
    "recorded, deletion vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "recorded, copy on write": {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"},
}


def sql(warehouse, text, memory):
    """Seconds, processor seconds, peak memory in MB and output of one call."""
    seconds, peak_mb, processor_seconds, output = measured([PROGRAM, "sql", "--warehouse", warehouse, "--memory-limit", memory,
                                                            "--format", "csv", "-c", text])
    return seconds, processor_seconds, peak_mb, output


def processor_seconds_so_far():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def scan(files):
    """Seconds and processor seconds."""
    connection = connect()
    before, used = time.monotonic(), processor_seconds_so_far()
    connection.execute("SELECT count(*), sum(v) FROM read_parquet(?, union_by_name = true)", [files]).fetchall()
    return time.monotonic() - before, processor_seconds_so_far() - used


def best(calls):
    """The fastest by each measure."""
    calls = list(calls)
    return min(call[0] for call in calls), min(call[1] for call in calls)


def measure(name, properties, options):
    recorded = "delta.enableChangeDataFeed" in properties
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    updates = [f"UPDATE t SET v = v + 1 WHERE id % 100 = {n % 100}" for n in range(options.versions)]
    with tempfile.TemporaryDirectory() as folder:
        sql(folder, ";".join([
            f"CREATE TABLE t (id BIGINT, v BIGINT, w STRING, x DOUBLE) TBLPROPERTIES ({listed})",
            f"INSERT INTO t SELECT id, id, concat('text of row ', id), CAST(id AS DOUBLE) / 7e0 FROM range(0, {options.rows})",
            *updates]), "4GB")
        table = Path(folder) / "main" / "default" / "t"
        files = [str(path) for path in (table / "_change_data" if recorded else table).glob("*.parquet")]
        runs = [sql(folder, "SELECT count(*), sum(v) FROM table_changes('t', 2)", options.memory) for _ in range(3)]
        changes = int(runs[0][3].splitlines()[1].split(",")[0])
        assert changes == 2 * sum(len(range(n % 100, options.rows, 100)) for n in range(options.versions)), changes
        seconds, used = best(runs)
        start, start_used = best(sql(folder, "SELECT 1", options.memory) for _ in range(3))
        floor, floor_used = best(apart(scan, files) for _ in range(3))
        peak_mb = max(run[2] for run in runs)
        return (f"| {name} | {changes:,} | {seconds:.2f} | {start:.2f} | {floor:.2f} | {(seconds - start) / floor:.1f} | "
                f"{used - start_used:.2f} / {floor_used:.2f} = {(used - start_used) / floor_used:.1f} | {peak_mb:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/BENCHMARKS.md")
    options = parser.parse_args()
    table = ["| feed | changes | s | start, s | scan, s | ratio | processor seconds, ratio | peak MB |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    print(*table, sep="\n")
    for name, properties in LAYOUTS.items():
        table.append(measure(name, properties, options))
        print(table[-1], flush=True)
    if options.write:
        write_section("feed", SECTION.format(rows=options.rows, versions=options.versions, memory=options.memory,
                                             processor=processor(), table="\n".join(table)))


if __name__ == "__main__":
    main()
