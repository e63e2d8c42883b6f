"""Many literal rows as a file: text of SQL grows with them, and is read slowly."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

from sqlglot import exp

from ._text import literal, quote

LARGE = 2000  # rows

Type = exp.DataType.Type
Writer = Callable[[Any], str]


class Unfit(Exception):
    """A value that is not just of its column's type: SQL casts it."""


def _whole(bits: int) -> Writer:
    def write(value: Any) -> str:
        if type(value) is not int or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise Unfit
        return str(value)

    return write


def _double(value: Any) -> str:
    if type(value) is not float:
        raise Unfit
    if math.isnan(value):
        return '"NaN"'
    return repr(value) if math.isfinite(value) else f'"{"-" if value < 0 else ""}Infinity"'


def _text(value: Any) -> str:
    if type(value) is not str or "\0" in value:
        raise Unfit
    return json.dumps(value, ensure_ascii=False)


def _truth(value: Any) -> str:
    if type(value) is not bool:
        raise Unfit
    return "true" if value else "false"


def _date(value: Any) -> str:
    if type(value) is not datetime.date:
        raise Unfit
    return f'"{value.isoformat()}"'


def _time(with_zone: bool) -> Writer:
    def write(value: Any) -> str:
        if type(value) is not datetime.datetime or (value.tzinfo is not None and not with_zone):
            raise Unfit
        if value.tzinfo is not None:
            # Times that UTC does not have are told by who writes them as text.
            if not 1 < value.year < 9999:
                raise Unfit
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return f'"{value.isoformat(" ")}{"Z" if with_zone else ""}"'

    return write


def _decimal(precision: int, scale: int) -> Writer:
    def write(value: Any) -> str:
        if type(value) is not decimal.Decimal or not value.is_finite():
            raise Unfit
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int) or -exponent > scale or len(digits) + exponent > precision - scale:
            raise Unfit
        return format(value, "f")

    return write


def _writer(type_: exp.DataType) -> Writer:
    plain: dict[Any, Writer] = {
        Type.TINYINT: _whole(8), Type.SMALLINT: _whole(16), Type.INT: _whole(32), Type.BIGINT: _whole(64),
        Type.DOUBLE: _double, Type.TEXT: _text, Type.VARCHAR: _text, Type.BOOLEAN: _truth, Type.DATE: _date,
        Type.TIMESTAMPNTZ: _time(False), Type.TIMESTAMPLTZ: _time(True), Type.TIMESTAMPTZ: _time(True),
        Type.TIMESTAMP: _time(True),
    }  # fmt: skip
    if type_.this in plain and not type_.expressions:
        return plain[type_.this]
    if type_.this == Type.DECIMAL and len(type_.expressions) == 2:
        precision, scale = (int(one.name) for one in type_.expressions)
        return _decimal(precision, scale)
    raise Unfit


class Files:
    """The files of one session, in a folder that goes with it."""

    def __init__(self) -> None:
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._count = 0

    def query(self, rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[exp.DataType]) -> Optional[str]:
        """A query that gives the rows, or None: they are few, or not just of their types."""
        if len(rows) < LARGE or len({name.casefold() for name in names}) < len(names):
            return None
        try:
            writers = [(json.dumps(name, ensure_ascii=False) + ":", _writer(type_)) for name, type_ in zip(names, types)]
            lines = [
                "{" + ",".join(key + write(value) for (key, write), value in zip(writers, row) if value is not None) + "}\n"
                for row in rows
            ]
            data = "".join(lines).encode()
        except (Unfit, UnicodeEncodeError):
            return None
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="strandline-")
        self._count += 1
        path = Path(self._folder.name) / f"{self._count}.json"
        path.write_bytes(data)
        schema = ", ".join(f"{quote(name)} {type_.sql(dialect='spark')}" for name, type_ in zip(names, types))
        return f"SELECT * FROM read_files({literal(str(path))}, format => 'json', schema => {literal(schema)})"

    def remove(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
