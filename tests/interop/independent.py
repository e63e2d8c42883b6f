"""Rows of a Delta table as an independent reader sees them (deltalake, through its query engine)."""

import base64
import json
import math
import re
from datetime import date, datetime, timezone
from decimal import Decimal

from deltalake import DeltaTable, QueryBuilder


def plain(value):
    """A value in the JSON form of `strandline sql`."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        if value.tzinfo:
            return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {name: plain(inner) for name, inner in value}
        return [plain(item) for item in value]
    return value


def rows(path, version=None):
    table = DeltaTable(str(path), version=version)
    result = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    found = []
    for batch in result.to_batches():
        names = batch.schema.names
        columns = [batch.column(place) for place in range(batch.num_columns)]
        maps = {name for name in names if "<Map(" in str(batch.schema.field(name).type)}
        for row in range(batch.num_rows):
            values = {name: plain(column[row].as_py()) for name, column in zip(names, columns)}
            # An empty map comes as an empty list of pairs.
            found.append({name: {} if name in maps and value == [] else value for name, value in values.items()})
    return found


TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:\d\d)?)?$")
NUMBER = re.compile(r"-?\d+(\.\d+)?$")


def comparable(value):
    """Equal values of different spelling become equal: fractions of seconds, trailing zeros."""
    if isinstance(value, str) and TIMESTAMP.match(value):
        text = value.replace(" ", "T").replace("Z", "+00:00")
        text = re.sub(r"([+-]\d\d)$", r"\1:00", text)
        return "time " + datetime.fromisoformat(text).isoformat(timespec="microseconds")
    if isinstance(value, str) and NUMBER.match(value) and "." in value:
        return "number " + format(Decimal(value).normalize(), "f")
    if isinstance(value, float):
        return f"float {value:.6g}"
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def bag(some_rows):
    return sorted(json.dumps({name: comparable(value) for name, value in row.items()}, sort_keys=True,
                             ensure_ascii=False) for row in some_rows)
