"""Values of Arrow columns as Python's own types; called by the extension for each value."""

from __future__ import annotations

import datetime
import decimal as _decimal

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.timezone.utc)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EXACT = _decimal.Context(prec=40)


def decimal(little_endian: bytes, scale: int) -> _decimal.Decimal:
    return _decimal.Decimal(int.from_bytes(little_endian, "little", signed=True)).scaleb(-scale, _EXACT)


def date(days: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise ValueError(f"a date {days} days from 1970-01-01 is outside of Python's range: use arrow()") from None


def timestamp(microseconds: int, with_zone: bool) -> datetime.datetime:
    try:
        return (_EPOCH_UTC if with_zone else _EPOCH) + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        raise ValueError(f"a timestamp {microseconds} microseconds from 1970 is outside of Python's range: use arrow()") from None


def time(microseconds: int) -> datetime.time:
    return (_EPOCH + datetime.timedelta(microseconds=microseconds)).time()
