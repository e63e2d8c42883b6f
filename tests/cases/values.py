"""Compares a table's rows as the program prints them with a case's rows, by value of the type."""

import base64
import json
import re
from datetime import datetime, timezone
from decimal import Decimal


def split_fields(text):
    """Parts of `a: INT, b: STRUCT<c: INT>` at the commas of the outer level."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def canonical(value, kind):
    """One spelling for equal values. `kind` is the SQL type; structs may be lists of their parts."""
    if value is None:
        return None
    kind = kind.strip()
    head = kind.upper()
    if head.startswith("STRUCT<"):
        fields = [re.match(r"(`(?:[^`]|``)+`|[^:\s]+)\s*:\s*(.*)$", part, re.S).groups()
                  for part in split_fields(kind[7:-1])]
        values = value if isinstance(value, list) else [
            next((inner for key, inner in value.items() if key.lower() == name.strip("`").lower()), None)
            for name, _ in fields]
        return [canonical(inner, inner_kind) for inner, (_, inner_kind) in zip(values, fields)]
    if head.startswith("ARRAY<"):
        return [canonical(item, kind[6:-1]) for item in value]
    if head.startswith("DECIMAL"):
        return "decimal " + str(Decimal(str(value)).normalize())
    if head == "TIMESTAMP":
        instant = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return "instant " + instant.astimezone(timezone.utc).isoformat(timespec="microseconds")
    if head in ("DOUBLE", "FLOAT"):
        return "float " + repr(float(value))
    if head == "BINARY":
        return value if not value.startswith("0x") else base64.b64encode(bytes.fromhex(value[2:])).decode()
    return value


def canonical_row(row, types):
    by_name = {name.lower(): kind for name, kind in types.items()}
    return json.dumps({name.lower(): canonical(value, by_name.get(name.lower(), "STRING"))
                       for name, value in row.items()}, sort_keys=True, ensure_ascii=False)


def differences(got, expected, types):
    """Text of what is missing and what is too much, empty when the bags of rows are equal."""
    left = sorted(canonical_row(row, types) for row in got)
    right = sorted(canonical_row(row, types) for row in expected)
    lines = []
    for row in left:
        if row in right:
            right.remove(row)
        else:
            lines.append(f"  not expected: {row}")
    return "\n".join(lines + [f"  missing:      {row}" for row in right])
