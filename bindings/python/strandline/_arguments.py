"""Arguments are checked where they are given: the parameter's name, what was given, what is accepted."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def given(value: object) -> str:
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"


def accept(parameter: str, value: T, *types: type) -> T:
    """The value, if it is of one of the types; a bool is not an int."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        names = " or ".join(one.__name__ for one in types)
        raise TypeError(f"{parameter} must be {names}, not {given(value)}")
    return value


def accept_text(parameter: str, value: Any) -> str:
    """A str that is Unicode."""
    accept(parameter, value, str)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{parameter} must be Unicode, and half of a surrogate pair stands alone in {given(value)}") from None
    return str(value)


def accept_path(parameter: str, value: Any, what: str = "a directory, '.' for the present one") -> str:
    """A str or path that names something."""
    text = accept_text(parameter, os.fspath(accept(parameter, value, str, os.PathLike)))
    if not text:
        raise ValueError(f"{parameter} is empty: name {what}")
    return text


def accept_one_of(parameter: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise ValueError(f"{parameter} must be one of {', '.join(map(repr, choices))}, not {given(value)}")
    return value


def accept_at_least(parameter: str, value: Any, least: float, *types: type) -> Any:
    """A number that is not too small. least: the smallest one."""
    accept(parameter, value, *types)
    if not value >= least:
        raise ValueError(f"{parameter} must be {least:g} or more, not {given(value)}")
    return value


def known_parameters(function: F) -> F:
    """Says of keywords that the function does not have which there are."""
    there = [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if unknown := [name for name in kwargs if name not in there]:
            raise TypeError(f"{function.__name__}() has no parameter {', '.join(unknown)}; there are {', '.join(there)}")
        return function(*args, **kwargs)

    return cast(F, checked)


def flat(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """``f(a, b)`` and ``f([a, b])`` are the same."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
