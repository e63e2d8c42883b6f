"""The floor of a snapshot: DuckDB's own full anti-join diff of two files, all columns compared.

Rows of the new file that the old one does not have, and rows of the old one that the new one does not have; nothing
is written. Prints the numbers of both.

Usage: snapshot_floor.py OLD.parquet NEW.parquet MEMORY_LIMIT THREADS
"""

import sys

import duckdb

old, new, memory, threads = sys.argv[1:]
connection = duckdb.connect(config={"memory_limit": memory, "threads": int(threads)})
connection.execute("SET preserve_insertion_order = false")
names = [name for name, *_ in connection.execute(f"DESCRIBE FROM read_parquet('{old}')").fetchall()]
same = " AND ".join(f'a."{name}" IS NOT DISTINCT FROM b."{name}"' for name in names)
for table, one, other in (("came", new, old), ("gone", old, new)):
    connection.execute(f"CREATE TEMP TABLE {table} AS SELECT a.* FROM read_parquet('{one}') a "
                       f"ANTI JOIN read_parquet('{other}') b ON {same}")
    print(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
