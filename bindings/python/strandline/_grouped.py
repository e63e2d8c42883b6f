"""``df.groupBy()``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from sqlframe.base.column import Column
from sqlglot import exp

from ._arguments import accept, flat
from ._columns import expr, functions, name_of
from ._literals import _inferred, _typed
from ._text import quote
from .errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from ._frames import DataFrame


class GroupedData:
    """``groupBy()``: what aggregates are made of."""

    def __init__(
        self, frame: DataFrame, items: list[str], keys: list[str], pivot: Optional[tuple[str, list[Any]]] = None
    ) -> None:
        self._frame = frame
        self._group_items = items
        self._keys = keys
        self._pivot = pivot  # a column and its values, each of which gets columns of its own

    def agg(self, *exprs: Any) -> DataFrame:
        """:param exprs: columns, or one dict of column names to functions."""
        made = self._frame._copy()
        if len(exprs) == 1 and isinstance(exprs[0], Mapping):
            columns = [expr(f"{how}({'*' if name == '*' else name_of('exprs', name)}) AS {quote(f'{how}({name})')}")
                       for name, how in exprs[0].items()]  # fmt: skip
        else:
            columns = [accept("exprs", one, Column) for one in flat(exprs)]
        made._items = self._group_items + (
            [made._text(column, top=True) for column in columns] if self._pivot is None else self._pivoted(made, columns)
        )
        made._tail = f" GROUP BY {', '.join(self._keys)}" if self._keys else ""
        return made._closed()

    def pivot(self, pivot_col: str, values: Optional[Sequence[Any]] = None) -> GroupedData:
        """Columns for each value of a column: what follows is computed of its rows alone.

        :param values: the values; None: those that are there now, in order.
        """
        if self._pivot is not None:
            raise UnsupportedError("a second pivot() is not supported: pivot by struct or concat of both columns",
                                   "UNSUPPORTED_METHOD")  # fmt: skip
        column = name_of("pivot_col", pivot_col)
        if values is None:
            there = self._frame._copy()
            there._items, there._distinct = [column], True
            found = [row[0] for row in there.collect()]
            values = sorted(found, key=lambda value: (value is not None, value))
        return GroupedData(self._frame, self._group_items, self._keys, (column, list(accept("values", values, list, tuple))))

    def _pivoted(self, frame: DataFrame, columns: list[Column]) -> list[str]:
        assert self._pivot is not None
        by, values = self._pivot
        items = []
        for value in values:
            shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            condition = f"{by} <=> {_typed(value, _inferred('values', [value]))}"
            for column in columns:
                expression = column.expression
                inner = expression.this if isinstance(expression, exp.Alias) else expression
                if not isinstance(inner, exp.Func):
                    raise UnsupportedError(
                        f"pivot() takes one aggregate a column, not {inner.sql(dialect='spark')}: compute with the result's "
                        "columns", "UNSUPPORTED_METHOD")  # fmt: skip
                text = frame._text(column)
                name = expression.alias if isinstance(expression, exp.Alias) and expression.alias else text
                items.append(f"{text} FILTER (WHERE {condition}) AS {quote(shown if len(columns) == 1 else f'{shown}_{name}')}")
        return items

    def count(self) -> DataFrame:
        return self.agg(functions.count("*").alias("count"))

    def _each(self, how: str, cols: tuple[str, ...]) -> DataFrame:
        if not cols:
            raise InvalidArgumentError(f"{how}() names no column", "EMPTY_SELECT")
        return self.agg(*[expr(f"{how}({name_of('cols', one)}) AS {quote(f'{how}({one})')}") for one in cols])

    def sum(self, *cols: str) -> DataFrame:
        return self._each("sum", cols)

    def avg(self, *cols: str) -> DataFrame:
        return self._each("avg", cols)

    mean = avg

    def min(self, *cols: str) -> DataFrame:
        return self._each("min", cols)

    def max(self, *cols: str) -> DataFrame:
        return self._each("max", cols)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"groupBy().{name} is not supported; there are agg, count, sum, avg, min, max, pivot")
