"""Readers that are not ours. Each gives a table's column types, in its own words, and its rows."""

import re
from collections import Counter
from pathlib import Path

import delta_types
import duckdb
import duckdb_extension_delta
from deltalake import DeltaTable, QueryBuilder
from harness import query, quote

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
EXTENSION = next(Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension"))


class Deltalake:
    """PyPI's deltalake through its query engine, which knows deletion vectors."""

    name = "deltalake"
    spelling = staticmethod(delta_types.arrow)

    def read(self, path, version=None):
        table = DeltaTable(str(path), version=version)
        result = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
        types = {field.name: self._plain(str(field.type)) for field in result.schema}
        maps = {name for name, type in types.items() if type.startswith("Map(")}
        rows = []
        for batch in result.to_batches():
            columns = [(name, batch.column(place)) for place, name in enumerate(batch.schema.names)]
            for row in range(batch.num_rows):
                values = {name: column[row].as_py() for name, column in columns}
                # An empty map comes as an empty list of pairs.
                rows.append({name: {} if name in maps and value == [] else value for name, value in values.items()})
        return types, rows

    @staticmethod
    def _plain(text):
        text = re.sub(r", metadata: \{[^}]*\}", "", text.strip().removeprefix("arro3.core.DataType<").removesuffix(">"))
        for noise in ("non-null ", ", field: 'element'", ", field: 'item'"):
            text = text.replace(noise, "")
        return text.replace("Utf8View", "Utf8").replace("BinaryView", "Binary").replace("LargeUtf8", "Utf8")


class DuckDb:
    """DuckDB's own delta extension."""

    name = "duckdb"

    def __init__(self):
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self._connection.execute(f"LOAD '{EXTENSION}'")
        self._connection.execute("SET TimeZone = 'UTC'")

    @staticmethod
    def spelling(type):
        return delta_types.duckdb(type)

    def read(self, path, version=None):
        at = "" if version is None else f", version = {version}"
        relation = f"delta_scan('{str(path).replace(chr(39), chr(39) * 2)}'{at})"
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        types = {column[0]: column[1].replace('"', "") for column in described}
        found = self._connection.execute(f"SELECT * FROM {relation}").fetchall()
        return types, [dict(zip(types, row)) for row in found]


class Ours:
    """`strandline sql`."""

    name = "strandline"
    spelling = staticmethod(delta_types.sql)

    def __init__(self, warehouse):
        self._warehouse = warehouse

    def run(self, statements):
        query(self._warehouse, statements)

    def read(self, path, version=None):
        at = "" if version is None else f" VERSION AS OF {version}"
        described = query(self._warehouse, f"DESCRIBE delta.{quote(str(path))}")
        types = {}
        for column in described:
            if not column["col_name"]:
                break
            types[column["col_name"]] = column["data_type"].lower().replace(", ", ",").replace(": ", ":").replace("`", "")
        return types, query(self._warehouse, f"SELECT * FROM delta.{quote(str(path))}{at}")


def assert_reads(reader, path, expected_rows, version=None):
    """The reader sees the types that the log declares and exactly the expected rows."""
    schema = delta_types.logged_schema(path, version)
    types, rows = reader.read(path, version)
    if version is None or reader.name != "strandline":  # DESCRIBE knows the latest version only
        wanted = {field["name"]: reader.spelling(field["type"]) for field in schema["fields"]}
        if reader.name == "strandline":  # and of a CHAR or VARCHAR column its length
            wanted |= {field["name"]: field["metadata"][LENGTH] for field in schema["fields"] if LENGTH in field["metadata"]}
        assert types == wanted, f"{reader.name}: types of {path}"
    found, wanted = Counter(delta_types.bag(rows, schema)), Counter(delta_types.bag(expected_rows, schema))
    surplus, missing = list((found - wanted).elements()), list((wanted - found).elements())
    assert not surplus and not missing, (f"{reader.name}: rows of {path}\n{len(surplus)} only there, as {surplus[:2]}\n"
                                         f"{len(missing)} missing there, as {missing[:2]}")
