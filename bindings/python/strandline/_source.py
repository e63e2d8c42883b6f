"""Files of user code."""

from __future__ import annotations

from pathlib import Path

from .errors import InvalidArgumentError


def source_text(path: str, shown: str) -> str:
    """:raises InvalidArgumentError: it is not UTF-8."""
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgumentError(
            f"{shown} is not UTF-8: line {line} has the byte 0x{data[error.start]:02x}; save it as UTF-8", "PYTHON_SYNTAX"
        ) from None
