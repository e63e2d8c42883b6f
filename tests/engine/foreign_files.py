"""Parquet files as other programs write them, as plain files and as Delta tables: with Bloom filters,
dictionaries and statistics that leave NaN out."""

import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake

SPARK_TYPES = {pa.int64(): "long", pa.float64(): "double", pa.float32(): "float", pa.binary(): "binary",
               pa.string(): "string"}


def write_with_duckdb(table, path):
    """Its defaults: a Bloom filter beside every dictionary."""
    with duckdb.connect() as connection:
        connection.register("source", table)
        connection.execute(f"COPY source TO '{path}' (FORMAT parquet)")


def write_with_arrow(table, path):
    names = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
    pq.write_table(table, path, bloom_filter_options=dict.fromkeys(names, True))


WRITERS = {"duckdb": write_with_duckdb, "arrow": write_with_arrow}


def has_bloom_filters(path):
    return any(row[0] for row in duckdb.sql(
        f"SELECT bloom_filter_offset IS NOT NULL FROM parquet_metadata('{path}')").fetchall())


def delta_table(folder, table, write):
    """A Delta table of one file, with the log that any writer could have made: no statistics."""
    (folder / "_delta_log").mkdir(parents=True)
    path = folder / "part-0.parquet"
    write(table, path)
    fields = [{"name": field.name, "type": SPARK_TYPES[field.type], "nullable": True, "metadata": {}}
              for field in table.schema]
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "0b7a6a52-93b1-4c5e-a2a5-2f8f8d2c9f01", "format": {"provider": "parquet", "options": {}},
                      "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                      "configuration": {}, "createdTime": 0}},
        {"add": {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 0,
                 "dataChange": True}},
    ]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / f"{0:020}.json").write_text(text, encoding="utf-8")
    return path


def deltalake_table(folder, table):
    """As the deltalake package writes it when it is asked for Bloom filters."""
    bloom = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, fpp=0.01, ndv=100))
    write_deltalake(str(folder), table, writer_properties=WriterProperties(default_column_properties=bloom))
    return next(folder.glob("*.parquet"))


def write_anew_with_bloom_filters(table_folder):
    """What an engine with default settings would have left in a table's folder: the same rows in the
    same order, under the same names. Returns how many files have a Bloom filter now."""
    changed = {}
    for path in table_folder.rglob("*.parquet"):
        if "_delta_log" in path.parts or "_strandline_state" in path.relative_to(table_folder).parts:
            continue
        rows = pq.read_table(path)
        write_with_duckdb(rows, path)
        changed[path.name] = path
    for log in (table_folder / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            add = action.get("add")
            if add and add["path"].split("/")[-1] in changed:
                add["size"] = changed[add["path"].split("/")[-1]].stat().st_size
        log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    return sum(has_bloom_filters(path) for path in changed.values())
