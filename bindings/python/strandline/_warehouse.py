"""A warehouse: SQL over its tables, and the tables as objects."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from . import _core
from ._arguments import accept, accept_at_least, accept_path, accept_text, given
from ._extensions import use_extensions
from ._result import Nothing, Result
from ._text import literal, plain

if TYPE_CHECKING:
    from ._history import History

_COMMITS = object()  # no key was given

VersionOrTime = Union[int, str, datetime.datetime]


def connect(
    warehouse: Any = None,
    *,
    catalog: str = "main",
    schema: str = "default",
    memory_limit_bytes: int = 0,
    threads: int = 0,
) -> Warehouse:
    """Opens a warehouse: a directory of Delta tables, ``catalog/schema/table``.

    :param warehouse: the directory, as str or path; it is made by the first table, and statements that need it before say
        that it is missing. None: queries without tables.
    :param catalog: of names that name none.
    :param schema: of names that name none.
    :param memory_limit_bytes: memory the engine aims to stay under; 0: its default.
    :param threads: threads the engine uses; 0: all cores.
    :raises InvalidArgumentError: it is a file. :raises UnsupportedError: an address such as ``s3://…``.
    """
    if warehouse is not None:
        warehouse = _core.local_path(accept_path("warehouse", warehouse))
    accept_at_least("memory_limit_bytes", memory_limit_bytes, 0, int)
    accept_at_least("threads", threads, 0, int)
    path = "" if warehouse is None else warehouse
    options = (path, accept_text("catalog", catalog), accept_text("schema", schema), "", memory_limit_bytes, threads)
    use_extensions()
    return Warehouse(_core.open_session(*options), options)


@dataclass(frozen=True)
class Field:
    """A column of a table; ``type`` as SQL spells it."""

    name: str
    type: str
    nullable: bool
    comment: Optional[str]


@dataclass(frozen=True)
class Version:
    """One commit of a table."""

    version: int
    timestamp: datetime.datetime  # UTC
    operation: str  # "WRITE", "MERGE", "AUTO CDC", ...
    metrics: dict[str, str] = field(default_factory=dict)


class Warehouse:
    """An open warehouse. Not thread-safe, but for :meth:`cancel`; see :func:`connect`."""

    def __init__(self, session: _core.Session, options: tuple[str, str, str, str, int, int]) -> None:
        self._session = session
        self._options = options
        self.path = options[0]

    def sql(self, text: str) -> Result:
        """Runs SQL and gives the rows of its last statement.

        Statements that change something run now, all of them; a query at the end runs when its rows
        are read. A statement that gives no rows gives a result without columns.

        :raises StrandlineError: of the statement, with its public name in ``code``. Errors of a
            query's data are raised when its rows are read.
        """
        accept_text("text", text)
        rows, repeatable = self._session.answer(text)
        if rows is None:
            return Result(Nothing())
        return Result(rows, (lambda: self._session.query(text)) if repeatable else None)

    def table(self, name: str) -> Table:
        """A table by its name as in SQL: ``"t"``, ``"main.s.t"``, ``"delta.`/path`"``.

        :raises NotFoundError: there is none.
        """
        accept_text("name", name)
        return Table(self, self._session.table(name), name)

    def write(self, table: str, rows: Any, *, mode: Literal["append", "overwrite"] = "append") -> None:
        """Writes rows into a table in one commit, columns by name.

        :param rows: anything with ``__arrow_c_stream__``: a :class:`Result`, a pyarrow table or
            reader, a pandas or polars frame, a DuckDB relation.
        :raises StrandlineError: as of INSERT.
        """
        accept_text("table", table)
        if mode not in ("append", "overwrite"):
            raise ValueError(f"mode: 'append' or 'overwrite', not {mode!r}")
        self._session.write(table, _stream("rows", rows), mode == "overwrite")

    def register(self, name: str, rows: Any) -> None:
        """Reads rows and makes them a relation of this warehouse object under a plain name: a source
        for SELECT, INSERT and MERGE. ``rows`` as for :meth:`write`."""
        self._session.register_stream(accept_text("name", name), _stream("rows", rows))

    def cancel(self) -> None:
        """Stops the statement that runs, from any thread; it raises :class:`CancelledError`."""
        self._session.cancel()

    def __repr__(self) -> str:
        return f"<strandline.Warehouse {self.path!r}>"


class Table:
    """A Delta table as it was when the object was made, or last refreshed."""

    def __init__(self, warehouse: Warehouse, table: _core.Table, text: str) -> None:
        self._warehouse = warehouse
        self._table = table
        self._text = text

    @property
    def name(self) -> str:
        """``catalog.schema.table``, or ``delta.`/path```."""
        return self._table.name

    @property
    def path(self) -> str:
        """Its directory."""
        return self._table.path

    @property
    def id(self) -> str:
        """The id in its metadata: a table that was dropped and made again has another."""
        return self._table.id

    @property
    def version(self) -> int:
        """Number of the commit that it shows."""
        return self._table.version

    @property
    def schema(self) -> list[Field]:
        """Its columns in order."""
        return [Field(*one) for one in self._table.fields]

    @property
    def schema_text(self) -> str:
        """The columns as DDL: ``"id INT NOT NULL, name STRING"``."""
        return self._table.schema_text

    @property
    def partition_columns(self) -> list[str]:
        return self._table.partition_columns

    @property
    def properties(self) -> dict[str, str]:
        """Table properties."""
        return self._table.properties

    @property
    def file_count(self) -> int:
        """Data files of this version."""
        return self._table.file_count

    @property
    def size_bytes(self) -> int:
        """Of its data files."""
        return self._table.size_bytes

    @property
    def row_count(self) -> Optional[int]:
        """Rows; None when a file has no statistics."""
        return self._table.row_count

    def refresh(self) -> Table:
        """Moves to the newest version. :raises NotFoundError: the table is gone."""
        self._table.refresh()
        return self

    @overload
    def history(self, *, limit: int = 0) -> list[Version]: ...
    @overload
    def history(self, key: Any) -> History: ...
    def history(self, key: Any = _COMMITS, *, limit: int = 0) -> Union[list[Version], History]:
        """Without a key: the commits, newest first, as far as the log is kept; at most ``limit``, 0
        for all.

        With the key of a row: its versions in this table, the target of AUTO CDC with SCD type 2 or
        bitemporal; ``history(key).plot()`` draws them.

        :param key: the key's value; a tuple or a dict of names where keys are several columns.
        :raises InvalidArgumentError: the table keeps no history of its rows.
        """
        if key is not _COMMITS:
            from ._history import history_of

            return history_of(self, key)
        return [
            Version(version, _EPOCH + datetime.timedelta(milliseconds=ms), operation, metrics)
            for version, ms, operation, metrics in self._table.history(accept_at_least("limit", limit, 0, int))
        ]

    def rows(self) -> Result:
        """All rows of this version."""
        return self._warehouse.sql(f"SELECT * FROM {plain(self._text)} VERSION AS OF {self.version}")

    def changes(self, from_: VersionOrTime, to: Optional[VersionOrTime] = None) -> Result:
        """The change data feed between two commits, both inclusive.

        Rows have the table's columns, then ``_change_type`` (insert, update_preimage,
        update_postimage, delete), ``_commit_version`` and ``_commit_timestamp``.

        :param from_: a version, or a time: ``datetime`` (UTC without zone) or
            ``"2026-01-31 12:00:00"`` (UTC). The first commit at or after it.
        :param to: the same; the last commit at or before it. None: the newest.
        :raises StrandlineError: as of ``table_changes`` in SQL, with its code.
        """
        bounds = [_bound("from_", from_)] + ([] if to is None else [_bound("to", to)])
        texts = [literal(one) if isinstance(one, str) else str(one) for one in bounds]
        return self._warehouse.sql(f"SELECT * FROM table_changes({literal(self.name)}, {', '.join(texts)})")

    def change_batches(
        self,
        checkpoint: Any = None,
        from_: Optional[VersionOrTime] = None,
        *,
        follow: bool = False,
        poll_seconds: float = 1.0,
        max_files: int = 1000,
    ) -> Iterator[Result]:
        """The change data feed as batches, to read on from where a program stopped.

        Each batch is a :class:`Result` with the rows of :meth:`changes`. When the next one is asked
        for, the batches before it are done, which the checkpoint remembers; a batch in whose
        handling the program stopped comes again.

        :param checkpoint: a file; None: nothing is remembered.
        :param from_: the first commit, without a checkpoint there: a version, a time, or
            ``"latest"`` for what comes from now on. None: this table's rows as inserts, then what
            comes.
        :param follow: then waits for commits, without end; else it ends when nothing is new.
        :param poll_seconds: how often it looks for one.
        :param max_files: data files of one batch; the first commit is taken whatever its size.
        :raises CorruptError: the checkpoint is not one. :raises InvalidDataError: of another table.
        """
        accept("follow", follow, bool)
        accept_at_least("poll_seconds", poll_seconds, 0, int, float)
        accept_at_least("max_files", max_files, 1, int)
        start = None if from_ is None else str(_bound("from_", from_))
        path = "" if checkpoint is None else os.path.abspath(accept_path("checkpoint", checkpoint, "a file"))
        reader = _core.open_changes(*self._warehouse._options, self.name, start, path, max_files)
        return _batches(reader, follow, poll_seconds)

    def __repr__(self) -> str:
        return f"<strandline.Table {self.name} version {self.version}: {self.schema_text}>"


def _batches(reader: _core.ChangeReader, follow: bool, poll_seconds: float) -> Iterator[Result]:
    while True:
        rows = reader.next()
        if rows is not None:
            yield Result(rows)
        reader.commit()
        if rows is None:
            if not follow:
                return
            time.sleep(poll_seconds)


def _stream(parameter: str, rows: Any) -> Any:
    if not hasattr(rows, "__arrow_c_stream__"):
        raise TypeError(f"{parameter} must have __arrow_c_stream__, as results of sql(), pyarrow tables and readers, pandas and "
                        f"polars frames and DuckDB relations have, not {given(rows)}")  # fmt: skip
    return rows


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _bound(parameter: str, value: VersionOrTime) -> Union[int, str]:
    """A version, or a time as text."""
    accept(parameter, value, int, str, datetime.datetime)
    if isinstance(value, str):
        return accept_text(parameter, value)
    if isinstance(value, int):
        return value
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value.isoformat(" ", "microseconds")
