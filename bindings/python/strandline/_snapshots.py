"""Functions that give the snapshots of AUTO CDC FROM SNAPSHOT, and how versions travel:
docs/decisions/0008-python-pipelines.md."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Callable
from typing import Any, Optional

from ._arguments import given
from ._frames import DataFrame
from ._text import is_unicode
from .errors import InvalidArgumentError

UTC = datetime.timezone.utc


def _wrong(version: Any, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{given(version)} is no version of a snapshot: {why}",
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE")  # fmt: skip


def version_out(version: Any) -> Optional[dict[str, str]]:
    """A version as type and text. Types that are no versions go under their Python name, by which
    the program refuses them."""
    if version is None:
        return None
    if isinstance(version, bool):
        return {"type": "bool", "value": repr(version)}
    if isinstance(version, numbers.Integral):  # numpy's, too
        return {"type": "BIGINT", "value": str(int(version))}
    if isinstance(version, datetime.datetime):
        if getattr(version, "nanosecond", 0):  # pandas
            raise _wrong(version, "versions that are times have microseconds; cut it with floor('us')")
        # With its zone, so that it comes back as what it can be compared with.
        if version.tzinfo is not None:
            try:
                version = version.astimezone(UTC)
            except OverflowError:
                raise _wrong(version, "in UTC it is outside of the years 1 to 9999") from None
        return {"type": "TIMESTAMP", "value": version.isoformat(" ")}
    if isinstance(version, datetime.date):
        return {"type": "DATE", "value": version.isoformat()}
    if isinstance(version, str):
        if not is_unicode(version):
            raise _wrong(version, "it is not text: half of a surrogate pair stands alone")
        return {"type": "STRING", "value": str(version)}
    if isinstance(version, decimal.Decimal) and version.is_finite():
        return {"type": "DECIMAL", "value": format(version, "f")}
    return {"type": type(version).__name__, "value": repr(version)}


def version_in(version: Optional[dict[str, str]]) -> Any:
    """The version as the function gave it."""
    if version is None:
        return None
    kind, text = version["type"], version["value"]
    if kind == "BIGINT":
        return int(text)
    if kind == "TIMESTAMP":
        # Written by a query it may have a shorter fraction and zone than Python 3.10 reads.
        text = re.sub(r"\.(\d{1,6})", lambda found: "." + found.group(1).ljust(6, "0"), text)
        return datetime.datetime.fromisoformat(re.sub(r"([+-]\d\d)$", r"\1:00", text) if ":" in text else text)
    if kind == "DATE":
        return datetime.date.fromisoformat(text)
    if kind == "DECIMAL":
        return decimal.Decimal(text)
    return text


class SnapshotFunction:
    """A function of the user's, called until it has no newer snapshot."""

    def __init__(self, function: Callable[[Any], Any], file: str, line: int) -> None:
        self._function = function
        code = getattr(function, "__code__", None)
        self.place = (file, line) if code is None else (code.co_filename, code.co_firstlineno)
        self._last: Any = None  # what it gave last

    def __call__(self, latest: Optional[dict[str, str]]) -> dict[str, Any]:
        """The answer to one request; whatever the function raises passes through."""
        # Its own object where there is one: a subclass, a time zone.
        known = self._last if latest == version_out(self._last) else version_in(latest)
        name = getattr(self._function, "__name__", "the function")
        made = self._function(known)
        if made is None:
            return {"done": True}
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise InvalidArgumentError(
                f"{name}() must return (DataFrame, version), or None when there is no newer snapshot, not {given(made)}",
                "INVALID_SNAPSHOT_FUNCTION_RESULT")  # fmt: skip
        frame, self._last = made
        if not isinstance(frame, DataFrame):
            raise InvalidArgumentError(
                f"{name}() must return (DataFrame, version), and the first is {given(frame)}: make rows a DataFrame with "
                "spark.createDataFrame(rows)",
                "INVALID_SNAPSHOT_FUNCTION_RESULT")  # fmt: skip
        if frame.isStreaming:
            raise InvalidArgumentError(
                f"{name}() returns a stream: a snapshot is all rows of its time, read with spark.read",
                "SNAPSHOT_IS_A_STREAM")  # fmt: skip
        return {"query": frame._statement(), "version": version_out(self._last)}
