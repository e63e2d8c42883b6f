"""``pyspark.sql.Row``."""

from __future__ import annotations

from typing import Any


class Row(tuple[Any, ...]):
    """A row: a tuple whose values have names too. ``Row(a=1, b=2)`` is one; ``Row("a", "b")`` makes
    rows with these names."""

    __fields__: list[str]

    def __new__(cls, *values: Any, **named: Any) -> Row:
        if values and named:
            raise ValueError("Row takes values or named values, not both")
        if named:
            row = tuple.__new__(cls, named.values())
            row.__fields__ = list(named)
            return row
        return tuple.__new__(cls, values)

    def __call__(self, *values: Any) -> Row:
        if len(values) > len(self):
            raise ValueError(f"{len(values)} values for the {len(self)} names {', '.join(map(str, self))}")
        row = tuple.__new__(Row, values)
        row.__fields__ = [str(name) for name in self]
        return row

    def _names(self) -> list[str]:
        names: list[str] = self.__dict__.get("__fields__", [])
        return names

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The values by name; rows inside too, if recursive."""
        if "__fields__" not in self.__dict__:
            raise TypeError("the row has no names")
        return {
            name: value.asDict(True) if recursive and isinstance(value, Row) else value
            for name, value in zip(self._names(), self)
        }

    def __contains__(self, item: object) -> bool:
        names = self._names()
        return item in names if names else super().__contains__(item)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, (int, slice)):
            return super().__getitem__(item)
        try:
            return super().__getitem__(self._names().index(item))
        except ValueError:
            raise KeyError(f"the row has no {item!r}; there are {', '.join(self._names())}") from None

    def __getattr__(self, item: str) -> Any:
        if item.startswith("__"):
            raise AttributeError(item)
        try:
            return super().__getitem__(self._names().index(item))
        except ValueError:
            raise AttributeError(f"the row has no {item!r}; there are {', '.join(self._names())}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (tuple(self), self.__dict__.get("__fields__"))

    def __repr__(self) -> str:
        if self._names():
            return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self._names(), self))})"
        return f"<Row({', '.join(map(repr, self))})>"


def _restored(values: tuple[Any, ...], names: Any) -> Row:
    row: Row = tuple.__new__(Row, values)
    if names is not None:
        row.__fields__ = names
    return row
