"""The floor of a small batch: what DuckDB needs to find the rows of its keys and to read them.

Of a table's files: one statement that scans the key column and reads the rows whose keys are in the
batch, all columns and their positions. No logic, nothing is written.
Prints the seconds of its statements, one number for each table.

Usage: keys_floor.py CHANGES.parquet MEMORY_LIMIT THREADS LIST_OF_FILES...
"""

import sys
import time
from pathlib import Path

import duckdb

changes, memory, threads, *tables = sys.argv[1:]
connection = duckdb.connect(config={"memory_limit": memory, "threads": int(threads)})
connection.execute("SET preserve_insertion_order = false")
connection.execute(f"CREATE TEMP TABLE changes AS SELECT * FROM read_parquet('{changes}')")
for table in tables:
    files = Path(table).read_text("utf-8").split("\n")
    begun = time.perf_counter()
    if files != [""]:
        source = "read_parquet([" + ", ".join(f"'{name}'" for name in files) + "])"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE fetched AS SELECT *, file_index, file_row_number FROM {source} "
                           "WHERE id IN (SELECT id FROM changes)")
    print(f"{time.perf_counter() - begun:.4f}")
