"""Delta types as other programs spell them, and values in one exact form for all of them.

A type is what `schemaString` of the log holds: a name, or an object for struct, array and map.
"""

import base64
import json
import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

SQL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
ARROW = {"long": "Int64", "integer": "Int32", "short": "Int16", "byte": "Int8", "float": "Float32", "double": "Float64",
         "string": "Utf8", "binary": "Binary", "boolean": "Boolean", "date": "Date32",
         "timestamp": 'Timestamp(µs, "UTC")', "timestamp_ntz": "Timestamp(µs)"}
DUCKDB = {"long": "BIGINT", "integer": "INTEGER", "short": "SMALLINT", "byte": "TINYINT", "float": "FLOAT",
          "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "boolean": "BOOLEAN", "date": "DATE",
          "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ntz": "TIMESTAMP"}


def kind(type):
    return type if isinstance(type, str) else type["type"]


def sql(type):
    """As DESCRIBE prints it, in lower case and without spaces and quotes."""
    if kind(type) == "struct":
        return "struct<" + ",".join(f"{field['name']}:{sql(field['type'])}" for field in type["fields"]).lower() + ">"
    if kind(type) == "array":
        return f"array<{sql(type['elementType'])}>"
    if kind(type) == "map":
        return f"map<{sql(type['keyType'])},{sql(type['valueType'])}>"
    return SQL.get(type, type)


def arrow(type):
    """As deltalake's query engine prints it, without marks of nullability and of the element's name."""
    if kind(type) == "struct":
        return "Struct(" + ", ".join(f'"{field["name"]}": {arrow(field["type"])}' for field in type["fields"]) + ")"
    if kind(type) == "array":
        return f"List({arrow(type['elementType'])})"
    if kind(type) == "map":
        return f'Map("key_value": Struct("key": {arrow(type["keyType"])}, "value": {arrow(type["valueType"])}), unsorted)'
    return "Decimal128" + type[7:].replace(",", ", ") if type.startswith("decimal") else ARROW[type]


def duckdb(type):
    """As DuckDB's DESCRIBE prints it, without quotes."""
    if kind(type) == "struct":
        return "STRUCT(" + ", ".join(f"{field['name']} {duckdb(field['type'])}" for field in type["fields"]) + ")"
    if kind(type) == "array":
        return duckdb(type["elementType"]) + "[]"
    if kind(type) == "map":
        return f"MAP({duckdb(type['keyType'])}, {duckdb(type['valueType'])})"
    return type.upper() if type.startswith("decimal") else DUCKDB[type]


def bare(type):
    """The type without metadata: what two programs must agree on."""
    if kind(type) == "struct":
        return {"type": "struct", "fields": [{"name": field["name"], "type": bare(field["type"]),
                                              "nullable": field["nullable"]} for field in type["fields"]]}
    if kind(type) == "array":
        return {**type, "elementType": bare(type["elementType"])}
    if kind(type) == "map":
        return {**type, "keyType": bare(type["keyType"]), "valueType": bare(type["valueType"])}
    return type


def logged_schema(path, version=None):
    """The schema that the table's commits declare last (up to a version)."""
    found = None
    for commit in sorted(commit for commit in (Path(path) / "_delta_log").glob("*.json") if commit.stem.isdigit()):
        if version is not None and int(commit.stem) > version:
            break
        for line in commit.read_text("utf-8").splitlines():
            action = json.loads(line)
            if "metaData" in action:
                found = json.loads(action["metaData"]["schemaString"])
    assert found is not None, f"{path}: no metaData in its commits"
    return found


def instant(value, zoned):
    """Microseconds since 1970. Text must say whether it is an instant or a wall clock, as its type does."""
    if isinstance(value, str):
        assert value.endswith("Z") == zoned, f"{value}: wrong kind of timestamp"
        value = datetime.fromisoformat(value.removesuffix("Z"))
    if value.tzinfo is not None:
        assert zoned, f"{value}: a zone where none belongs"
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    passed = value - datetime(1970, 1, 1)
    return (passed.days * 86400 + passed.seconds) * 1000000 + passed.microseconds


def canonical(value, type):
    """Equal for equal values only, whoever read them: JSON of `strandline sql` or Python objects."""
    name = kind(type)
    if value is None:
        return None
    if name == "struct":
        value = value.asDict() if hasattr(value, "asDict") else value
        names = [field["name"] for field in type["fields"]]
        assert list(value) == names, f"fields {list(value)} instead of {names}"
        return {field["name"]: canonical(value[field["name"]], field["type"]) for field in type["fields"]}
    if name == "array":
        return [canonical(item, type["elementType"]) for item in value]
    if name == "map":
        pairs = value.items() if isinstance(value, dict) else value
        return sorted(([canonical(key, type["keyType"]), canonical(item, type["valueType"])] for key, item in pairs), key=repr)
    if name in ("long", "integer", "short", "byte"):
        return int(value)
    if name in ("float", "double"):
        return struct.pack(">f" if name == "float" else ">d", float(value)).hex()
    if name.startswith("decimal"):
        return format(Decimal(value), "f")
    if name == "binary":
        return base64.b64decode(value).hex() if isinstance(value, str) else bytes(value).hex()
    if name == "date":
        return (date.fromisoformat(value) if isinstance(value, str) else value).isoformat()
    if name in ("timestamp", "timestamp_ntz"):
        return instant(value, name == "timestamp")
    assert isinstance(value, bool if name == "boolean" else str), f"{value!r} is no {name}"
    return value


def bag(rows, schema):
    """Rows (dictionaries with all columns in order) without their order."""
    return sorted(json.dumps(canonical(row, schema), ensure_ascii=False) for row in rows)
