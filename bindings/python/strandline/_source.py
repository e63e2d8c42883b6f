"""Files of user code."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

from .errors import InvalidArgumentError


def source_text(path: str, shown: str) -> str:
    """:raises InvalidArgumentError: it is not of its encoding: UTF-8, or what its first lines say (PEP 263)."""
    data = Path(path).read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            raise InvalidArgumentError(f"{shown}: {error}", "PYTHON_SYNTAX") from None
        encoding = "utf-8"  # told below
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgumentError(
            f"{shown} is not {encoding.removesuffix('-sig').upper()}: line {line} has the byte 0x{data[error.start]:02x}; save "
            "it as UTF-8", "PYTHON_SYNTAX") from None  # fmt: skip
