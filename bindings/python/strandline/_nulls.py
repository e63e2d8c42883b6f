"""``df.na``: what becomes of nulls, and values put in place of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ._arguments import accept, accept_one_of, given
from ._literals import _inferred, _typed
from ._text import quote
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._frames import DataFrame

_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def _family(type_: str) -> str:
    """Values of which Python types a column takes here: PySpark leaves the others alone."""
    word = type_.partition("(")[0].upper()
    return "number" if word in _NUMBERS else {"STRING": "text", "BOOLEAN": "truth"}.get(word, word)


def _family_of(parameter: str, value: Any) -> str:
    accept(parameter, value, bool, int, float, str)
    return "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _text(value: Any, type_: str) -> str:
    if value is None:
        return f"CAST(NULL AS {type_})"
    return f"CAST({_typed(value, _inferred('value', [value]))} AS {type_})"


class DataFrameNaFunctions:
    """``df.na``: drop, fill and replace."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def _chosen(self, subset: Any, columns: Sequence[str]) -> set[str]:
        if subset is None:
            return {name.casefold() for name in columns}
        names = [subset] if isinstance(subset, str) else list(accept("subset", subset, list, tuple, str))
        folded = {accept("subset", name, str).casefold() for name in names}
        if missing := folded - {name.casefold() for name in columns}:
            raise InvalidArgumentError(
                f"subset: there is no column {', '.join(sorted(missing))}; the columns are {', '.join(columns)}",
                "UNRESOLVED_COLUMN")  # fmt: skip
        return folded

    def _columns(self, method: str) -> list[tuple[str, str]]:
        self._frame._known_columns(method)
        return self._frame.dtypes

    def drop(self, how: str = "any", thresh: Optional[int] = None, subset: Any = None) -> DataFrame:
        """Without rows that have nulls or NaN: in ``any`` or in ``all`` of the columns; or with fewer
        than ``thresh`` values that are neither."""
        accept_one_of("how", how, ("any", "all"))
        columns = self._columns("dropna()")
        chosen = self._chosen(subset, [name for name, _ in columns])
        present = []
        for name, type_ in columns:
            if name.casefold() in chosen:
                nan = f" AND NOT isnan({quote(name)})" if type_ in ("FLOAT", "DOUBLE") else ""
                present.append(f"({quote(name)} IS NOT NULL{nan})")
        if thresh is None:
            return self._frame.filter((" AND " if how == "any" else " OR ").join(present))
        count = " + ".join(f"IF({one}, 1, 0)" for one in present)
        return self._frame.filter(f"{count} >= {accept('thresh', thresh, int)}")

    def fill(self, value: Any, subset: Any = None) -> DataFrame:
        """Values in place of nulls (of NaN too), in the columns that take them; ``value`` may be a
        dict of one for each column."""
        columns = self._columns("fillna()")
        names = [name for name, _ in columns]
        if isinstance(value, Mapping):
            self._chosen(list(value), names)
            values = {name.casefold(): one for name, one in value.items()}
        else:
            _family_of("value", value)
            values = dict.fromkeys(self._chosen(subset, names), value)
        items = []
        for name, type_ in columns:
            text = quote(name)
            if name.casefold() in values:
                new = values[name.casefold()]
                if _family_of(f"value of {name!r}", new) == _family(type_):
                    old = f"nanvl({text}, NULL)" if type_ in ("FLOAT", "DOUBLE") else text
                    text = f"coalesce({old}, {_text(new, type_)}) AS {text}"
            items.append(text)
        return self._frame._of_items(items)

    def replace(self, to_replace: Any, value: Any = None, subset: Any = None) -> DataFrame:
        """Values in place of others: one by one, lists of the same length, or a dict of both."""
        pairs = _pairs(to_replace, value)
        columns = self._columns("replace()")
        chosen = self._chosen(subset, [name for name, _ in columns])
        items = []
        for name, type_ in columns:
            text = quote(name)
            mine = [(old, new) for old, new in pairs if _family_of("to_replace", old) == _family(type_)]
            if name.casefold() in chosen and mine:
                cases = " ".join(f"WHEN {text} = {_typed(old, _inferred('value', [old]))} THEN {_text(new, type_)}"
                                 for old, new in mine)  # fmt: skip
                text = f"CASE {cases} ELSE {text} END AS {text}"
            items.append(text)
        return self._frame._of_items(items)


def _pairs(to_replace: Any, value: Any) -> list[tuple[Any, Any]]:
    if isinstance(to_replace, Mapping):
        return list(to_replace.items())
    olds = list(to_replace) if isinstance(to_replace, (list, tuple)) else [to_replace]
    news = list(value) if isinstance(value, (list, tuple)) else [value] * len(olds)
    if len(olds) != len(news):
        raise ValueError(f"value must have {len(olds)} values, as many as to_replace, not {given(value)}")
    return list(zip(olds, news))
