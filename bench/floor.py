"""The floor: what DuckDB needs for the bare reading and writing of one batch, with no logic.

Scans the changes; the target's keys, sequences and row positions; for type 2 the payload of the rows
whose key has changes; and writes as many rows as the batch wrote. Prints the seconds of its
statements, so that the start of Python and of the engine can be told apart.

Usage: floor.py {1|2} CHANGES.parquet TARGET_FOLDER OUTPUT_FOLDER ROWS MEMORY_LIMIT THREADS
"""

import shutil
import sys
import time
from pathlib import Path

import duckdb

storage, changes, target, output, rows, memory, threads = sys.argv[1:]
connection = duckdb.connect(config={"memory_limit": memory, "threads": int(threads)})
connection.execute("SET preserve_insertion_order = false")
shutil.rmtree(output, ignore_errors=True)
Path(output).mkdir(parents=True)
begun = time.perf_counter()
connection.execute(f"CREATE TEMP TABLE changes AS SELECT * FROM read_parquet('{changes}')")
left_out = ("op", "seq") if storage == "1" else ("op", "seq", "seq_kept")
shown = ", ".join(name for name, *_ in connection.execute("DESCRIBE changes").fetchall() if name not in left_out)
position = "max(file_row_number), max(file_index)"
sequence = "max(seq_kept)" if storage == "1" else 'max(__START_AT), max(__END_AT)'
connection.execute(f"SELECT max(id), {sequence}, {position} FROM read_parquet('{target}/*.parquet')").fetchall()
if storage == "1":
    written = f"SELECT {shown} FROM changes WHERE rowid < {rows}"
else:
    # Files of a tracked table also hold row ids; the floor reads what the target shows.
    connection.execute(f"CREATE TEMP TABLE touched AS SELECT {shown}, __START_AT, __END_AT FROM read_parquet('{target}/*.parquet') "
                       "WHERE id IN (SELECT id FROM changes)")
    (found,) = connection.execute("SELECT count(*) FROM touched").fetchone()
    rest = max(0, int(rows) - found)
    written = (f"SELECT * FROM touched WHERE rowid < {rows} UNION ALL "
               f"SELECT {shown}, seq, NULL FROM changes WHERE rowid < {rest}")
connection.execute(f"COPY ({written}) TO '{output}/out.parquet' (FORMAT parquet, COMPRESSION snappy)")
print(f"{time.perf_counter() - begun:.4f}")
