"""Both change data feeds of one table against DuckDB scanning the changed columns of the same files.

Usage: bench/run.sh feed [--rows 10000000] [--versions 20] [--memory 1GB]
Each version updates 1 % of the rows. Prints a row for each feed and layout: seconds, peak memory, ratio in one run.
"""

import argparse
import tempfile
import time
from pathlib import Path

from shared import PROGRAM, apart, connect, measured

LAYOUTS = {
    "automatic, deletion vectors": {"delta.enableDeletionVectors": "true"},
    "automatic, copy on write": {"delta.enableDeletionVectors": "false"},
    "recorded, deletion vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "recorded, copy on write": {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"},
}


def sql(warehouse, text, memory):
    """Output, seconds and peak memory in MB of one call."""
    seconds, peak_mb, _, output = measured([PROGRAM, "sql", "--warehouse", warehouse, "--memory-limit", memory,
                                            "--format", "csv", "-c", text])
    return output, seconds, peak_mb


def scan(files):
    connection = connect()
    before = time.monotonic()
    connection.execute("SELECT count(*), sum(v) FROM read_parquet(?, union_by_name = true)", [files]).fetchall()
    return time.monotonic() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--memory", default="1GB")
    options = parser.parse_args()
    print("| feed | changes | s | scan, s | ratio | peak MB |\n|---|--:|--:|--:|--:|--:|")
    for name, properties in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            updates = [f"UPDATE t SET v = v + 1 WHERE id % 100 = {n % 100}" for n in range(options.versions)]
            sql(folder, ";".join([
                f"CREATE TABLE t (id BIGINT, v BIGINT, w STRING, x DOUBLE) TBLPROPERTIES ({listed})",
                f"INSERT INTO t SELECT id, id, concat('text of row ', id), CAST(id AS DOUBLE) / 7e0 FROM range(0, {options.rows})",
                *updates]), "4GB")
            table = Path(folder) / "main" / "default" / "t"
            recorded = "delta.enableChangeDataFeed" in properties
            files = [str(path) for path in (table / "_change_data" if recorded else table).glob("*.parquet")]
            output, seconds, peak_mb = sql(folder, "SELECT count(*), sum(v) FROM table_changes('t', 2)", options.memory)
            changes = int(output.splitlines()[1].split(",")[0])
            assert changes == 2 * sum(len(range(n % 100, options.rows, 100)) for n in range(options.versions)), changes
            floor = min(apart(scan, files) for _ in range(3))
            print(f"| {name} | {changes:,} | {seconds:.2f} | {floor:.2f} | {seconds / floor:.1f} | {peak_mb:.0f} |", flush=True)


if __name__ == "__main__":
    main()
