"""``spark.read.format("jdbc")``: options checked at the call, passwords kept out of SQL text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Optional
from urllib.parse import unquote

from . import _core
from ._extensions import use_extensions
from ._text import literal, quote

# What this process keeps, for the program that runs it as the interpreter of its .py files.
kept: dict[str, str] = {}


def _without_password(url: str) -> tuple[str, Optional[str]]:
    """The URL, and the password that was among its parameters."""
    head, mark, tail = url.partition("?")
    password = None
    parameters = []
    for parameter in tail.split("&") if mark else ():
        key, _, value = parameter.partition("=")
        if unquote(key).casefold() == "password":
            password = unquote(value)
        else:
            parameters.append(parameter)
    return head + (f"?{'&'.join(parameters)}" if parameters else ""), password


def read_text(options: Mapping[str, str]) -> str:
    """The call of read_jdbc that reads what the options say.

    :raises InvalidArgumentError: an option is wrong. :raises UnsupportedError: one is not known.
    """
    use_extensions()
    _core.check_jdbc(dict(options))
    arguments = []
    password = None
    said = []  # what tells one connection from another
    for key, value in options.items():
        if key.casefold() == "password":
            password = value
            continue
        if key.casefold() == "url":
            value, inside = _without_password(value)
            password = inside if password is None else password
        if key.casefold() in ("url", "user"):
            said.append(value)
        arguments.append(f"{key if re.fullmatch(r'[A-Za-z_]+', key) else quote(key)} => {literal(value)}")
    if password is not None:
        name = "jdbc_" + hashlib.sha256("\x00".join(said).encode()).hexdigest()[:16]
        kept[name] = password
        _core.keep_secret(name, password)
        arguments.append(f"password => secret({literal(name)})")
    return f"read_jdbc({', '.join(arguments)})"
