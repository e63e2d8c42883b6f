"""``df.na``: what becomes of nulls, and values put in place of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ._arguments import accept, accept_one_of, given
from ._literals import _inferred, _typed
from ._text import late, literal, quote
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._frames import DataFrame


def _text(parameter: str, value: Any) -> str:
    return "NULL" if value is None else _typed(value, _inferred(parameter, [value]))


class DataFrameNaFunctions:
    """``df.na``: drop, fill and replace. Types of the columns decide, when the query runs."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def _chosen(self, subset: Any) -> Optional[list[str]]:
        """Columns by name; None: all. In a pipeline there may be more when the query runs."""
        if subset is None:
            return None
        names = [subset] if isinstance(subset, str) else list(accept("subset", subset, list, tuple, str))
        chosen = [accept("subset", name, str) for name in names]
        if not self._frame._spark._in_pipeline:
            known = self._frame.columns
            folded = {name.casefold() for name in known}
            if missing := [name for name in chosen if name.casefold() not in folded]:
                raise InvalidArgumentError(
                    f"subset: there is no column {', '.join(missing)}; the columns are {', '.join(known)}",
                    "UNRESOLVED_COLUMN")  # fmt: skip
        return chosen

    def drop(self, how: str = "any", thresh: Optional[int] = None, subset: Any = None) -> DataFrame:
        """Without rows that have nulls or NaN: in ``any`` or in ``all`` of the columns; or with fewer
        than ``thresh`` values that are neither."""
        accept_one_of("how", how, ("any", "all"))
        chosen = self._chosen(subset)
        columns = "*" if chosen is None else ", ".join(map(quote, chosen))
        if thresh is not None:
            return self._frame.filter(f"__strandline_present({columns}) >= {accept('thresh', thresh, int)}")
        return self._frame.filter(f"__strandline_{'missing' if how == 'any' else 'present'}({columns}) "
                                  f"{'= 0' if how == 'any' else '> 0'}")  # fmt: skip

    def fill(self, value: Any, subset: Any = None) -> DataFrame:
        """Values in place of nulls (of NaN too), in the columns that take them; ``value`` may be a
        dict of one for each column."""
        if isinstance(value, Mapping):
            self._chosen(list(value))
            return self._changed("filled", {accept("value (its names)", name, str): [_text("value", accept(
                f"value of {name!r}", one, bool, int, float, str))] for name, one in value.items()})  # fmt: skip
        arguments = [_text("value", accept("value", value, bool, int, float, str))]
        chosen = self._chosen(subset)
        return self._changed("filled", arguments if chosen is None else dict.fromkeys(chosen, arguments))

    def replace(self, to_replace: Any, value: Any = None, subset: Any = None) -> DataFrame:
        """Values in place of others: one by one, lists of the same length, or a dict of both."""
        arguments: list[str] = []
        for old, new in _pairs(to_replace, value):
            accept("to_replace", old, bool, int, float, str)
            arguments += [_text("to_replace", old), _text("value", new)]
        chosen = self._chosen(subset)
        return self._changed("replaced", arguments if chosen is None else dict.fromkeys(chosen, arguments))

    def _changed(self, how: str, arguments: Any) -> DataFrame:
        """Columns as __strandline_filled or _replaced makes them: all with the same arguments, or some
        with theirs."""
        if isinstance(arguments, list):
            return self._frame._of_items(late("each", literal(how), *arguments))
        pairs = [(literal(name), f"__strandline_{how}({', '.join([quote(name), *own])})") for name, own in arguments.items()]
        return self._frame._of_items(late("set", *(text for pair in pairs for text in pair)))


def _pairs(to_replace: Any, value: Any) -> list[tuple[Any, Any]]:
    if isinstance(to_replace, Mapping):
        return list(to_replace.items())
    olds = list(to_replace) if isinstance(to_replace, (list, tuple)) else [to_replace]
    news = list(value) if isinstance(value, (list, tuple)) else [value] * len(olds)
    if len(olds) != len(news):
        raise ValueError(f"value must have {len(olds)} values, as many as to_replace, not {given(value)}")
    return list(zip(olds, news))
