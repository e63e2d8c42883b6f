"""Errors: one class for each kind, which says what the caller can do.

Every error has ``code`` (the public name, such as ``"AUTOCDC_EMPTY_KEYS"``), ``message`` and
``place`` (where in the user's text or file, if known). All derive from :class:`StrandlineError`.
"""

from __future__ import annotations

from typing import NamedTuple, Optional


class Place(NamedTuple):
    """Where in a file. Lines and columns count from 1; 0 means unknown."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        parts = [self.file or "<sql>", *(str(n) for n in (self.line, self.column) if n > 0)]
        return ":".join(parts)


class StrandlineError(Exception):
    """Anything the library reports. Catch a subclass to handle one kind."""

    kind: str = "internal"

    def __init__(self, message: str, code: str = "ERROR", place: Optional[Place] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.place = place

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"[{self.code}] {self.message}{where}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.code, self.place)


class AnalysisError(StrandlineError):
    """What is asked for is wrong: the classes that say how. PySpark's ``AnalysisException``."""


class InvalidArgumentError(AnalysisError, ValueError):
    """The request or pipeline text is wrong: change it."""

    kind = "invalid_argument"


class InvalidDataError(StrandlineError):
    """The data broke a rule: fix or filter the rows."""

    kind = "invalid_data"


class NotFoundError(AnalysisError, LookupError):
    """The named thing does not exist."""

    kind = "not_found"


class AlreadyExistsError(AnalysisError):
    """The name is taken."""

    kind = "already_exists"


class UnsupportedError(AnalysisError):
    """A named feature that is not built: use what the message offers."""

    kind = "unsupported"


class CorruptError(StrandlineError):
    """Stored bytes contradict the format: restore them."""

    kind = "corrupt"


class ConflictError(StrandlineError):
    """Another writer won: start again from the newest version."""

    kind = "conflict"


class IoError(StrandlineError):
    """The operating system said no: check disk, rights and space."""

    kind = "io"


class BusyError(StrandlineError):
    """Held by another process: wait and try again."""

    kind = "busy"


class CancelledError(StrandlineError):
    """It was stopped."""

    kind = "cancelled"


class InternalError(StrandlineError):
    """A bug of Strandline."""

    kind = "internal"


class UpdateError(StrandlineError):
    """An update of a pipeline did not complete. ``update`` is its whole outcome; the first of its
    errors is this error's cause."""

    kind = "update"
    update: object = None

    def __str__(self) -> str:
        return self.message  # has the codes of all its errors


_BY_KIND = {
    cls.kind: cls
    for cls in (
        InvalidArgumentError, InvalidDataError, NotFoundError, AlreadyExistsError, UnsupportedError,
        CorruptError, ConflictError, IoError, BusyError, CancelledError, InternalError,
    )
}  # fmt: skip


def _make(kind: str, code: str, message: str, file: str, line: int, column: int) -> StrandlineError:
    place = Place(file, line, column) if file or line else None
    if code == "WAREHOUSE_NOT_GIVEN":  # the C++ text speaks of the command line
        message = "there is no warehouse here: name its directory, as in strandline.connect('warehouse')"
    return _BY_KIND.get(kind, InternalError)(message, code, place)
