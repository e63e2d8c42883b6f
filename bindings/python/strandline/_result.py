"""Results of SQL."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from . import _core
from ._arguments import accept_at_least
from .errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")

_SHOWN_ROWS = 20


def _need(module: str, extra: str) -> Any:
    try:
        return __import__(module)
    except ImportError:
        raise ImportError(f"this needs {module}: pip install 'strandline[{extra}]'") from None


class Nothing:
    """Of a statement that gives no rows."""

    columns: list[tuple[str, str]] = []

    def next_batch(self) -> list[tuple[Any, ...]]:
        return []

    def capsule(self) -> object:
        raise InvalidArgumentError("the statement gives no rows", "NOT_A_QUERY")

    def raise_failure(self) -> None:
        pass


Rows = Union[_core.Rows, Nothing]


class Result:
    """Rows of a query, computed while they are read.

    Nothing is read before you ask for rows. Each of the reading methods runs the query (again), so
    that it sees the tables as they are then. Results of statements that do something (``OPTIMIZE``,
    for instance) are read once.

    The object is an Arrow stream (``__arrow_c_stream__``): pyarrow, polars, pandas, DuckDB and
    :meth:`Warehouse.write` take it as it is, without a copy of the data.
    """

    def __init__(self, rows: Rows, again: Optional[Callable[[], _core.Rows]] = None) -> None:
        self._rows: Optional[Rows] = rows
        self._again = again
        self._columns = rows.columns
        self._reader: Optional[Iterator[tuple[Any, ...]]] = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [name for name, _ in self._columns]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL spells them: ``"DECIMAL(10,2)"``."""
        return [type_ for _, type_ in self._columns]

    def _open(self) -> Rows:
        rows, self._rows = self._rows, None
        if rows is not None:
            return rows
        if self._again is None:
            raise InvalidArgumentError(
                "the rows were read already, and running the statement again would repeat what it did",
                "RESULT_READ",
            )
        return self._again()

    # --- other libraries

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows as an Arrow C stream, in a capsule. The requested schema is not looked at."""
        return self._open().capsule()

    def _through(self, read: Callable[[_Stream], T]) -> T:
        rows = self._open()
        try:
            return read(_Stream(rows))
        except BaseException:
            rows.raise_failure()  # the library's error says less
            raise

    def reader(self) -> pyarrow.RecordBatchReader:
        """A ``pyarrow.RecordBatchReader``: batches of at most 2048 rows, as they are computed."""
        _need("pyarrow", "arrow")
        from pyarrow import RecordBatchReader

        return RecordBatchReader.from_stream(self)

    def arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``. TIMESTAMP is in microseconds, UTC."""
        pa = _need("pyarrow", "arrow")
        table: pyarrow.Table = self._through(pa.table)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas frame. An integer column that has nulls is of one of pandas' nullable
        types (``Int64`` for BIGINT), as a float does not hold every integer."""
        pd = _need("pandas", "pandas")
        table = self.arrow()
        import pyarrow as pa

        whole = {pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
        nullable = {
            i: column.to_pandas(types_mapper=whole.get)
            for i, column in enumerate(table.columns)
            if column.type in whole and column.null_count
        }
        for i in nullable:
            table = table.set_column(i, table.field(i).name, pa.nulls(table.num_rows))
        # Integers inside of arrays, maps and structs stay what they are, too.
        frame: pandas.DataFrame = table.to_pandas(integer_object_nulls=True)
        for i, series in nullable.items():
            frame.isetitem(i, series)
        return frame

    df = to_pandas

    def pl(self) -> polars.DataFrame:
        """All rows as a polars frame."""
        pl = _need("polars", "polars")
        frame: polars.DataFrame = self._through(pl.DataFrame)
        return frame

    # --- Python values

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples: DECIMAL is ``decimal.Decimal``, TIMESTAMP a ``datetime`` in UTC,
        TIMESTAMP_NTZ one without zone, STRUCT and MAP ``dict``, ARRAY ``list``."""
        for name, type_ in self._columns:
            if "INTERVAL" in re.split(r"\W+", re.sub(r"`[^`]*`|\w+:", "", type_)):
                raise UnsupportedError(
                    f"column {name} is {type_}, of which Python has no value: read the result with arrow()", "UNSUPPORTED_TYPE"
                )
        rows = self._open()
        while batch := rows.next_batch():
            yield from batch

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        return list(self)

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        """The next row, or None after the last. The first call runs the query."""
        if self._reader is None:
            self._reader = iter(self)
        return next(self._reader, None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most ``size``; fewer are the last."""
        accept_at_least("size", size, 0, int)
        rows: list[tuple[Any, ...]] = []
        while len(rows) < size and (row := self.fetchone()) is not None:
            rows.append(row)
        return rows

    # --- people

    def _head(self, limit: int) -> tuple[list[tuple[Any, ...]], bool]:
        rows: list[tuple[Any, ...]] = []
        for row in self:
            if len(rows) == limit:
                return rows, True
            rows.append(row)
        return rows, False

    def show(self, limit: int = _SHOWN_ROWS) -> None:
        """Prints the first ``limit`` rows as a table."""
        accept_at_least("limit", limit, 0, int)
        if not self._columns:
            print("(done; the statement gives no rows)")
            return
        rows, more = self._head(limit)
        cells = [[_text(value) for value in row] for row in rows]
        widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(self.columns)]
        rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

        def line(values: list[str]) -> str:
            return "|" + "|".join(f" {v.ljust(w)} " for v, w in zip(values, widths)) + "|"

        print("\n".join([rule, line(self.columns), rule, *map(line, cells), rule]))
        if more:
            print(f"(the first {limit} rows)")

    def __repr__(self) -> str:
        if not self._columns:
            return "<strandline.Result: done, without rows>"
        inside = ", ".join(f"{name} {type_}" for name, type_ in self._columns)
        return f"<strandline.Result ({inside}): read it with show(), arrow(), df(), pl() or fetchall()>"

    def _repr_html_(self) -> str:
        if not self._columns or (self._rows is None and self._again is None):
            return html.escape(repr(self))
        try:
            rows, more = self._head(_SHOWN_ROWS)
        except UnsupportedError as error:  # of a type that Python has no value of
            return html.escape(f"{self!r}: {error.message}")
        head = "".join(f'<th title="{html.escape(type_)}">{html.escape(name)}</th>' for name, type_ in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows)
        note = f"<p>the first {_SHOWN_ROWS} rows</p>" if more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


class _Stream:
    """Hands one set of rows over."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._rows.capsule()


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
