"""Python values as SQL: ``createDataFrame``."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional

from sqlframe.standalone import types as spark_types
from sqlglot import exp

from ._arguments import given
from ._columns import spelled
from ._large import Files
from ._text import is_unicode, literal, quote
from .errors import InvalidArgumentError

Type = exp.DataType


def parse_ddl(text: str) -> list[tuple[str, Type, bool]]:
    """``"id INT, name: STRING NOT NULL"`` as names, types and whether nulls are allowed."""
    columns = []
    for piece in _pieces(text):
        piece = piece.strip()
        if piece.startswith("`"):
            end = piece.index("`", 1)
            while piece[end + 1 : end + 2] == "`":
                end = piece.index("`", end + 2)
            name, rest = piece[1:end].replace("``", "`"), piece[end + 1 :]
        else:
            cut = next((i for i, c in enumerate(piece) if c in " :\t\n"), len(piece))
            name, rest = piece[:cut], piece[cut:]
        words = rest.strip().lstrip(":").strip()
        words, rest = _cut(words)
        comment = re.search(r"\bCOMMENT\b", rest, re.IGNORECASE)
        nullable = re.search(r"\bNOT\s+NULL\b", rest[: comment.start()] if comment else rest, re.IGNORECASE) is None
        if not name or not words:
            raise InvalidArgumentError(
                f"schema: '{piece}' is not a column; write it as in 'id INT, name STRING'", "PARSE_SYNTAX_ERROR"
            )
        columns.append((name, _type(words), nullable))
    return columns


def _cut(text: str) -> tuple[str, str]:
    """A type, and what is said of its column behind it."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if depth == 0 and re.match(r"\s(NOT\s+NULL|COMMENT)\b", text[i:], re.IGNORECASE):
            return text[:i], text[i:]
    return text, ""


def _pieces(text: str) -> Iterable[str]:
    depth, begin, quoted = 0, 0, ""
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "`'\"":
            quoted = c
        elif c in "<(":
            depth += 1
        elif c in ">)":
            depth -= 1
        elif c == "," and depth == 0:
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def _type(text: str) -> Type:
    try:
        return exp.DataType.build(text, dialect="spark")
    except Exception:
        raise InvalidArgumentError(f"schema: '{text}' is not a type", "PARSE_SYNTAX_ERROR") from None


def columns_of(schema: Any) -> tuple[Optional[list[str]], Optional[list[Type]], set[int]]:
    """Names and types, as far as the schema says them, and the places of columns without nulls."""
    if schema is None:
        return None, None, set()
    if isinstance(schema, str):
        if not any(c in schema for c in " :\t\n"):
            return ["value"], [_type(schema)], set()
        columns = parse_ddl(schema)
        required = {i for i, (_, _, nullable) in enumerate(columns) if not nullable}
        return [name for name, _, _ in columns], [type_ for _, type_, _ in columns], required
    if hasattr(schema, "fields"):
        required = {i for i, field in enumerate(schema.fields) if not field.nullable}
        return [f.name for f in schema.fields], [_type(f.dataType.simpleString()) for f in schema.fields], required
    if isinstance(schema, (list, tuple)) and all(isinstance(name, str) for name in schema):
        return list(schema), None, set()
    raise TypeError(f"schema must be DDL such as 'id INT, x STRING', a StructType or a list of names, not {given(schema)}")


def values_query(data: Any, schema: Any, files: Optional[Files] = None) -> str:
    """A query that gives the rows. files: where many of them may go."""
    names, types, required = columns_of(schema)
    if isinstance(data, (str, bytes)) or not (hasattr(data, "__iter__") or hasattr(data, "to_pylist")):
        raise TypeError(f"data must be rows (a list of tuples, dicts or Rows, a pandas frame or Arrow data), not {given(data)}")
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a pandas frame
        names = names or [str(name) for name in data.columns]
        if types is None and len(names) == len(data.columns):
            types = _types_of_frame(data, names)
        data = [tuple(_from_pandas(name, value) for name, value in zip(names, row))
                for row in data.astype(object).itertuples(index=False)]  # fmt: skip
    elif hasattr(data, "to_pylist"):  # Arrow data
        names = names or list(data.schema.names)
        data = [tuple(row.values()) for row in data.to_pylist()]
    rows, names = _rows(list(data), names)
    if not names:
        raise InvalidArgumentError("createDataFrame(): the rows have no columns", "CANNOT_INFER_EMPTY_SCHEMA")
    for i in required:
        if any(row[i] is None for row in rows):
            raise InvalidArgumentError(f"createDataFrame(): column {names[i]} is NOT NULL, and a row has None there",
                                       "FIELD_NOT_NULLABLE")  # fmt: skip
    if types is None:
        if not rows:
            raise InvalidArgumentError("createDataFrame() of no rows needs a schema with types, as in 'id INT'",
                                       "CANNOT_INFER_EMPTY_SCHEMA")  # fmt: skip
        types = [_inferred(names[i], [row[i] for row in rows]) for i in range(len(names))]
    if len(types) != len(names):
        raise InvalidArgumentError(f"schema has {len(types)} types for {len(names)} columns", "NUM_COLUMNS_MISMATCH")
    if files is not None and (text := files.query(rows, names, types)) is not None:
        return text
    _refuse_half_letters(names, rows)
    if not rows:
        nulls = ", ".join(f"{_typed(None, type_)} AS {quote(name)}" for name, type_ in zip(names, types))
        return f"SELECT {nulls} WHERE false"
    # A value is cast where it stands if the column's values are no literals of one type.
    writers = [_typed if _has_struct(type_) or _is_mixed([row[i] for row in rows]) else value_text
               for i, type_ in enumerate(types)]  # fmt: skip
    items = ", ".join(
        (f"col{i + 1}" if writers[i] is _typed else f"CAST(col{i + 1} AS {_spelled(type_)})") + f" AS {quote(name)}"
        for i, (name, type_) in enumerate(zip(names, types))
    )
    texts = [[_in_column(name, write, row[i], type_) for row in rows]
             for i, (name, write, type_) in enumerate(zip(names, writers, types))]  # fmt: skip
    return f"SELECT {items} FROM VALUES {', '.join('(' + ', '.join(row) + ')' for row in zip(*texts))}"


def _in_column(name: str, write: Callable[[Any, Type], str], value: Any, type_: Type) -> str:
    try:
        return write(value, type_)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"createDataFrame(): column {name}: {error.message}", error.code) from None


_FRAME_TYPES = {"i": "BIGINT", "u": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "M": "TIMESTAMP"}


def _types_of_frame(frame: Any, names: list[str]) -> list[Type]:
    """By the columns' own types where these say one, so that a column of nulls keeps its type."""
    types = []
    for i, name in enumerate(names):
        column = frame.iloc[:, i]
        plain = _FRAME_TYPES.get(getattr(column.dtype, "kind", "O"))
        values = [] if plain else [_from_pandas(name, value) for value in column.astype(object)]
        types.append(_type(plain) if plain else _inferred(name, values))
    return types


def _from_pandas(name: str, value: Any) -> Any:
    """A cell of a pandas frame as Python's own value; what pandas calls missing is null."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, datetime.datetime) and hasattr(value, "to_pydatetime"):
        if value.nanosecond:  # type: ignore[attr-defined]
            raise InvalidArgumentError(
                f"column {name}: {value} has nanoseconds, and TIMESTAMP holds microseconds: cut them with dt.floor('us')",
                "CANNOT_CONVERT_TYPE")  # fmt: skip
        return value.to_pydatetime()
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return value.tolist()
    return value


def _refuse_half_letters(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    for row in rows:
        for name, value in zip(names, row):
            if isinstance(value, str) and not value.isascii() and not is_unicode(value):
                raise InvalidArgumentError(
                    f"column {name}: {given(value)} is not text: half of a surrogate pair stands alone", "INVALID_TEXT"
                )


def _rows(data: list[Any], names: Optional[list[str]]) -> tuple[list[tuple[Any, ...]], list[str]]:
    rows: list[tuple[Any, ...]] = []
    if names is None and data and all(isinstance(one, Mapping) for one in data):
        names = list(dict.fromkeys(name for one in data for name in one))
    for one in data:
        fields = getattr(one, "__fields__", None)
        if isinstance(one, Mapping) or (isinstance(fields, (list, tuple)) and not isinstance(one, Mapping)):
            record = dict(one) if isinstance(one, Mapping) else dict(zip(fields, one))  # type: ignore[arg-type]
            names = names if names is not None else list(record)
            if isinstance(one, Mapping) or set(names) == set(record):
                rows.append(tuple(record.get(name) for name in names))
            else:
                rows.append(tuple(one))
        elif isinstance(one, (list, tuple)):
            rows.append(tuple(one))
        else:
            rows.append((one,))
    width = len(rows[0]) if rows else len(names or [])
    if names is None:
        names = [f"_{i + 1}" for i in range(width)]
    for row in rows:
        if len(row) != len(names):
            raise InvalidArgumentError(
                f"createDataFrame(): the row {row!r} has {len(row)} values for the columns {', '.join(names)}",
                "AXIS_LENGTH_MISMATCH")  # fmt: skip
    return rows, names


def _inferred(name: str, values: Sequence[Any]) -> Type:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return _type("STRING")
    if kinds <= {int, float} and len(kinds) == 2:
        return _type("DOUBLE")
    if len(kinds) > 1:
        raise InvalidArgumentError(
            f"column {name} has values of {', '.join(sorted(kind.__name__ for kind in kinds))}: give a schema",
            "CANNOT_DETERMINE_TYPE")  # fmt: skip
    kind = kinds.pop()
    present = [value for value in values if value is not None]
    plain = {
        bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING", bytes: "BINARY", bytearray: "BINARY",
        datetime.date: "DATE", datetime.datetime: "TIMESTAMP", decimal.Decimal: "DECIMAL(38,18)",
    }  # fmt: skip
    if kind in plain:
        return _type(plain[kind])
    if issubclass(kind, (list, tuple)) and not hasattr(present[0], "__fields__"):
        return _type(f"ARRAY<{_sql(_inferred(name, [item for value in present for item in value]))}>")
    if issubclass(kind, Mapping):
        keys = _inferred(name, [key for value in present for key in value])
        items = _inferred(name, [item for value in present for item in value.values()])
        return _type(f"MAP<{_sql(keys)}, {_sql(items)}>")
    if hasattr(present[0], "__fields__"):
        fields = present[0].__fields__
        inside = ", ".join(
            f"{_named(field)}: {_sql(_inferred(field, [value[i] for value in present]))}" for i, field in enumerate(fields)
        )
        return _type(f"STRUCT<{inside}>")
    raise InvalidArgumentError(f"column {name} has values of type {kind.__name__}: give a schema", "CANNOT_DETERMINE_TYPE")


def _named(name: str) -> str:
    """A name as _type reads it."""
    return "`" + name.replace("`", "``") + "`"


def _sql(type_: Type) -> str:
    """A type as _type reads it."""
    return str(type_.sql(dialect="spark", identify=True))


def _spelled(type_: Type) -> str:
    return spelled(type_.copy())


_BITS = {Type.Type.TINYINT: 8, Type.Type.SMALLINT: 16, Type.Type.INT: 32, Type.Type.BIGINT: 64}


_NUMBERS = {*_BITS, Type.Type.DECIMAL, Type.Type.FLOAT, Type.Type.DOUBLE}


def _is_number(text: str) -> bool:
    try:
        decimal.Decimal(text)
        return True
    except decimal.InvalidOperation:
        return False


def _is_out_of_range(value: Any, type_: Type) -> bool:
    """A number that its column cannot hold."""
    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
        return False
    if (bits := _BITS.get(type_.this)) is not None:
        return not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    if type_.this == Type.Type.DECIMAL and decimal.Decimal(value).is_finite():
        precision, scale = [int(one.name) for one in type_.expressions] or (10, 0)
        return abs(_rounded(decimal.Decimal(value), scale)) >= decimal.Decimal(10).scaleb(precision - scale - 1)
    return False


_HALF_UP = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, rounding=decimal.ROUND_HALF_UP)


def _rounded(value: decimal.Decimal, scale: int) -> decimal.Decimal:
    """To the digits of a DECIMAL, as Spark does it."""
    if value.adjusted() > 50 or -value.as_tuple().exponent <= scale:  # type: ignore[operator]
        return value
    return value.quantize(decimal.Decimal(1).scaleb(-scale), context=_HALF_UP)


def value_text(value: Any, type_: Type) -> str:
    """A literal that CAST makes a value of the type."""
    if value is None:
        return "NULL"
    if _is_out_of_range(value, type_):
        raise InvalidArgumentError(f"{given(value)} is out of the range of {_spelled(type_)}", "NUMERIC_VALUE_OUT_OF_RANGE")
    kind = type_.this
    if kind in (Type.Type.ARRAY, Type.Type.LIST) and isinstance(value, (list, tuple)):
        return f"array({', '.join(_typed(item, type_.expressions[0]) for item in value)})"
    if kind == Type.Type.MAP and isinstance(value, Mapping):
        pairs = ((_typed(k, type_.expressions[0]), _typed(v, type_.expressions[1])) for k, v in value.items())
        return f"map({', '.join(f'{k}, {v}' for k, v in pairs)})"
    if kind == Type.Type.STRUCT:
        fields = [(one.name, one.args["kind"]) for one in type_.expressions]
        if not isinstance(value, (Mapping, tuple, list)) or (not isinstance(value, Mapping) and len(value) != len(fields)):
            raise InvalidArgumentError(f"{given(value)} is not a value of {_spelled(type_)}: give a dict, or a tuple of its "
                                       f"{len(fields)} fields", "CANNOT_CONVERT_TYPE")  # fmt: skip
        items = [value.get(name) for name, _ in fields] if isinstance(value, Mapping) else list(value)
        return "named_struct(" + ", ".join(
            f"{literal(name)}, {_typed(item, inner)}" for (name, inner), item in zip(fields, items)) + ")"  # fmt: skip
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**31) < value < 2**31 else literal(str(value))
    if isinstance(value, float):
        if math.isnan(value):
            return literal("NaN")
        return literal("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else literal(repr(value))
    if isinstance(value, decimal.Decimal):
        if kind == Type.Type.DECIMAL and not value.is_finite():
            return "NULL"  # as in PySpark
        return literal(format(value, "f"))
    if isinstance(value, str):
        if kind in _NUMBERS and not _is_number(value):
            raise InvalidArgumentError(f"{given(value)} is not a value of {_spelled(type_)}", "CANNOT_CONVERT_TYPE")
        return literal(value)
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            try:
                value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
            except OverflowError:
                raise InvalidArgumentError(f"{given(value)} is outside of the years 1 to 9999 in UTC",
                                           "DATETIME_OVERFLOW") from None  # fmt: skip
        return literal(value.isoformat(" "))
    if isinstance(value, datetime.date):
        return literal(value.isoformat())
    if hasattr(value, "item"):  # numpy's scalars
        return value_text(value.item(), type_)
    raise InvalidArgumentError(f"{given(value)} is not a value of a column", "CANNOT_CONVERT_TYPE")


def _is_mixed(values: Sequence[Any]) -> bool:
    kinds = {type(value) if type(value) is not int else -(2**31) < value < 2**31 for value in values if value is not None}
    return len(kinds) > 1


def _has_struct(type_: Type) -> bool:
    return any(node.this == Type.Type.STRUCT for node in type_.find_all(Type))


def _typed(value: Any, type_: Type) -> str:
    """A value of the type. Structs are built: there is no CAST to one."""
    if not _has_struct(type_):
        return f"CAST({value_text(value, type_)} AS {_spelled(type_)})"
    return value_text(value, type_) if value is not None else f"IF(false, {_sample(type_)}, NULL)"


def _sample(type_: Type) -> str:
    """Some value of the type, made of nulls."""
    if type_.this == Type.Type.STRUCT:
        fields = ((one.name, one.args["kind"]) for one in type_.expressions)
        return "named_struct(" + ", ".join(f"{literal(name)}, {_typed(None, inner)}" for name, inner in fields) + ")"
    inner = [_typed(None, one) for one in type_.expressions]
    return f"{'map' if type_.this == Type.Type.MAP else 'array'}({', '.join(inner)})"


_PLAIN_TYPES = {
    "BOOLEAN": "BooleanType", "TINYINT": "ByteType", "SMALLINT": "ShortType", "INT": "IntegerType", "BIGINT": "LongType",
    "FLOAT": "FloatType", "DOUBLE": "DoubleType", "STRING": "StringType", "BINARY": "BinaryType", "DATE": "DateType",
    "TIMESTAMP": "TimestampType", "TIMESTAMP_NTZ": "TimestampNTZType",
}  # fmt: skip


def struct_type(columns: Sequence[tuple[str, str]]) -> Any:
    """A StructType of names and types as SQL spells them."""
    return spark_types.StructType([spark_types.StructField(name, _data_type(type_), True) for name, type_ in columns])


def _data_type(text: str) -> Any:
    upper = text.upper()
    if upper in _PLAIN_TYPES:
        return getattr(spark_types, _PLAIN_TYPES[upper])()
    if upper.startswith("DECIMAL"):
        precision, scale = (int(part) for part in upper[len("DECIMAL(") : -1].split(","))
        return spark_types.DecimalType(precision, scale)
    inside = text[text.index("<") + 1 : -1]
    if upper.startswith("ARRAY<"):
        return spark_types.ArrayType(_data_type(inside.strip()), True)
    if upper.startswith("MAP<"):
        key, value = _pieces(inside)
        return spark_types.MapType(_data_type(key.strip()), _data_type(value.strip()), True)
    fields = [(piece.partition(":")[0].strip().strip("`"), piece.partition(":")[2].strip()) for piece in _pieces(inside)]
    return struct_type(fields)
