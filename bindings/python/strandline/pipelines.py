"""Datasets and flows of a pipeline, declared in Python.

::

    from pyspark import pipelines as dp        # or: from strandline import pipelines as dp

    @dp.temporary_view
    def users():
        return spark.readStream.table("main.cdc_tutorial.users_cdf")

    dp.create_streaming_table("users_current")
    dp.create_auto_cdc_flow(target="users_current", source="users", keys=["userId"], sequence_by="sequenceNum")

The calls declare; nothing is read or written before the update runs (``strandline run``). Functions
give a DataFrame. Where a parameter takes a column, a condition or a sequence, it takes a str (SQL)
or a Column. An empty list counts as absent. Wrong arguments raise at the call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional, TypeVar, Union, cast, overload

from ._arguments import accept, accept_one_of, given, known_parameters
from ._columns import ColumnOrName, expression_text, name_of, names_of
from ._text import literal, quote, schema_text, split_name, sql_name
from .errors import InvalidArgumentError, UnsupportedError

F = TypeVar("F", bound=Callable[..., Any])
Columns = Sequence[ColumnOrName]

__all__ = [
    "append_flow", "apply_changes", "apply_changes_from_snapshot", "create_auto_cdc_flow",
    "create_auto_cdc_from_snapshot_flow", "create_sink", "create_streaming_live_table", "create_streaming_table",
    "create_target_table", "expect", "expect_all",
    "expect_all_or_drop", "expect_all_or_fail", "expect_or_drop", "expect_or_fail", "materialized_view",
    "table", "temporary_view", "view",
]  # fmt: skip

_PACKAGE = str(Path(__file__).parent)
_EXPECTATIONS = "__strandline_expectations__"


# --- what the calls fill


class Declared:
    """A dataset or flow: its SQL is made when every file has run."""

    def __init__(
        self, sql: Callable[[], str], file: str, line: int, function: Optional[Callable[..., Any]] = None, dataset: str = ""
    ):
        self.sql = sql
        self.file = file
        self.line = line
        self.function = function  # the source of a snapshot flow
        self.dataset = dataset.replace("`", "")  # that it declares, for what else names it


class Registry:
    """The declarations of one pipeline, in order."""

    def __init__(self) -> None:
        self.declared: list[Declared] = []
        self.views: dict[str, Callable[[], Any]] = {}  # folded name -> what makes its DataFrame

    def add(
        self, sql: Callable[[], str], of: Optional[Callable[..., Any]] = None, function: Any = None, dataset: str = ""
    ) -> None:
        file, line = _place(of)
        self.declared.append(Declared(sql, file, line, function, dataset))


_registry: Optional[Registry] = None


@contextmanager
def collecting(registry: Registry) -> Iterator[Registry]:
    """Declarations go to this registry meanwhile."""
    global _registry
    before, _registry = _registry, registry
    try:
        yield registry
    finally:
        _registry = before


def _current() -> Registry:
    if _registry is None:
        raise InvalidArgumentError(
            "datasets and flows are declared in the .py files of a pipeline: run it with 'strandline run'",
            "NOT_IN_A_PIPELINE")  # fmt: skip
    return _registry


def _place(function: Optional[Callable[..., Any]]) -> tuple[str, int]:
    code = getattr(function, "__code__", None)
    if code is not None:
        return code.co_filename, code.co_firstlineno
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


# --- pieces of SQL


def _conditions(parameter: str, value: Any, violation: str) -> list[tuple[str, str, str]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise TypeError(f"{parameter} must be a dict of names to conditions, not {given(value)}")
    return [
        (accept(f"{parameter} (its names)", name, str), expression_text(f"{parameter}[{name!r}]", text), violation)
        for name, text in value.items()
    ]


def _constraint(expectation: tuple[str, str, str]) -> str:
    name, condition, violation = expectation
    return f"CONSTRAINT {quote(name)} EXPECT ({condition}){violation}"


def _properties(value: Any) -> str:
    if not value:
        return ""
    if not isinstance(value, Mapping):
        raise TypeError(f"table_properties must be a dict, not {given(value)}")
    texts = []
    for key, one in value.items():
        accept("table_properties (its keys)", key, str)
        accept(f"table_properties[{key!r}]", one, str, int, float, bool)
        texts.append(f"{literal(key)} = {literal(str(one).lower() if isinstance(one, bool) else str(one))}")
    return f" TBLPROPERTIES ({', '.join(texts)})"


def _refuse(**unknown: Any) -> None:
    reasons = {
        "spark_conf": "settings of Spark have no counterpart here",
        "row_filter": "row filters are a matter of a catalog with users",
        "cluster_by_auto": "name the columns with cluster_by",
    }
    for name, value in unknown.items():
        if value:
            raise UnsupportedError(f"{name}={value!r} is not supported: {reasons[name]}; leave it out",
                                   "UNSUPPORTED_ARGUMENT")  # fmt: skip


def _table_text(
    kind: str, name: str, *, comment: Any, table_properties: Any, path: Any, partition_cols: Any,
    cluster_by: Any, schema: Any,
) -> Callable[[list[tuple[str, str, str]]], str]:  # fmt: skip
    """The statement up to AS, given the expectations. Arguments are checked now."""
    columns = schema_text(schema)
    tail = ""
    if partitions := names_of("partition_cols", partition_cols):
        tail += f" PARTITIONED BY ({', '.join(partitions)})"
    if clusters := names_of("cluster_by", cluster_by):
        tail += f" CLUSTER BY ({', '.join(clusters)})"
    if path is not None:
        tail += f" LOCATION {literal(accept('path', path, str))}"
    if comment is not None:
        tail += f" COMMENT {literal(accept('comment', comment, str))}"
    tail += _properties(table_properties)

    def text(expectations: list[tuple[str, str, str]]) -> str:
        inside = ", ".join(([columns] if columns else []) + [_constraint(one) for one in expectations])
        return f"CREATE OR REFRESH {kind} {name}{f' ({inside})' if inside else ''}{tail}"

    return text


# --- datasets


@known_parameters
def create_streaming_table(
    name: str,
    *,
    comment: Optional[str] = None,
    spark_conf: Optional[Mapping[str, str]] = None,
    table_properties: Optional[Mapping[str, Any]] = None,
    path: Optional[str] = None,
    partition_cols: Optional[Columns] = None,
    cluster_by: Optional[Columns] = None,
    schema: Any = None,
    expect_all: Optional[Mapping[str, ColumnOrName]] = None,
    expect_all_or_drop: Optional[Mapping[str, ColumnOrName]] = None,
    expect_all_or_fail: Optional[Mapping[str, ColumnOrName]] = None,
    cluster_by_auto: bool = False,
    row_filter: Optional[str] = None,
) -> None:
    """A streaming table without rows of its own: the target of flows.

    :param schema: its columns as DDL or a StructType; None: what the flows give.
    :param expect_all: conditions by name; rows that fail are counted and kept.
    :param expect_all_or_drop: as expect_all; rows that fail are dropped.
    :param expect_all_or_fail: as expect_all; a row that fails fails the update.
    """
    _refuse(spark_conf=spark_conf, row_filter=row_filter, cluster_by_auto=cluster_by_auto)
    expectations = (
        _conditions("expect_all", expect_all, "")
        + _conditions("expect_all_or_drop", expect_all_or_drop, " ON VIOLATION DROP ROW")
        + _conditions("expect_all_or_fail", expect_all_or_fail, " ON VIOLATION FAIL UPDATE")
    )
    text = _table_text(
        "STREAMING TABLE", sql_name("name", name), comment=comment, table_properties=table_properties, path=path,
        partition_cols=partition_cols, cluster_by=cluster_by, schema=schema,
    )(expectations)  # fmt: skip
    _current().add(lambda: text)


# Its older names.
create_target_table = create_streaming_live_table = create_streaming_table


def _frame_of(function: Callable[[], Any]) -> Any:
    from ._frames import DataFrame

    frame = function()
    if not isinstance(frame, DataFrame):
        raise TypeError(f"{function.__name__}() must return a DataFrame, not {given(frame)}")
    return frame


def _expectations(function: Callable[..., Any]) -> list[tuple[str, str, str]]:
    return list(getattr(function, _EXPECTATIONS, []))


def _decorated(query_function: Any, declare: Callable[[Callable[[], Any]], None]) -> Any:
    """For decorators with and without arguments."""

    def decorate(function: F) -> F:
        if not callable(function):
            raise TypeError(f"a function that returns a DataFrame is declared, not {given(function)}")
        _plain_function(function)
        declare(function)
        return function

    return decorate if query_function is None else decorate(query_function)


def _plain_function(function: Callable[..., Any]) -> None:
    """Refuses functions whose call gives no result of theirs yet."""
    name = getattr(function, "__name__", "the function")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is an async function, and nothing awaits it: declare a plain one, def {name}(...)")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{name} has yield, which makes it a generator: it must return its DataFrame")


def _named(name: Any, function: Callable[..., Any]) -> str:
    return sql_name("name", name) if name is not None else quote(function.__name__)


@overload
def table(query_function: F) -> F: ...
@overload
def table(
    *, name: Optional[str] = None, comment: Optional[str] = None, spark_conf: Optional[Mapping[str, str]] = None,
    table_properties: Optional[Mapping[str, Any]] = None, path: Optional[str] = None,
    partition_cols: Optional[Columns] = None, cluster_by: Optional[Columns] = None, schema: Any = None,
    temporary: bool = False, private: bool = False, cluster_by_auto: bool = False,
    row_filter: Optional[str] = None,
) -> Callable[[F], F]: ...  # fmt: skip
@known_parameters
def table(
    query_function: Any = None,
    *,
    name: Optional[str] = None,
    comment: Optional[str] = None,
    spark_conf: Optional[Mapping[str, str]] = None,
    table_properties: Optional[Mapping[str, Any]] = None,
    path: Optional[str] = None,
    partition_cols: Optional[Columns] = None,
    cluster_by: Optional[Columns] = None,
    schema: Any = None,
    temporary: bool = False,
    private: bool = False,
    cluster_by_auto: bool = False,
    row_filter: Optional[str] = None,
) -> Any:
    """A table of what the function's DataFrame gives: a streaming table if it reads a stream, else a
    materialized view. The name is the function's unless one is given."""
    _refuse(spark_conf=spark_conf, row_filter=row_filter, cluster_by_auto=cluster_by_auto)
    return _decorated(
        query_function,
        lambda function: _declare_table(
            None, function, name, private or temporary, comment=comment, table_properties=table_properties,
            path=path, partition_cols=partition_cols, cluster_by=cluster_by, schema=schema,
        ),
    )  # fmt: skip


@overload
def materialized_view(query_function: F) -> F: ...
@overload
def materialized_view(
    *, name: Optional[str] = None, comment: Optional[str] = None, spark_conf: Optional[Mapping[str, str]] = None,
    table_properties: Optional[Mapping[str, Any]] = None, path: Optional[str] = None,
    partition_cols: Optional[Columns] = None, cluster_by: Optional[Columns] = None, schema: Any = None,
    private: bool = False, cluster_by_auto: bool = False, row_filter: Optional[str] = None,
) -> Callable[[F], F]: ...  # fmt: skip
@known_parameters
def materialized_view(
    query_function: Any = None,
    *,
    name: Optional[str] = None,
    comment: Optional[str] = None,
    spark_conf: Optional[Mapping[str, str]] = None,
    table_properties: Optional[Mapping[str, Any]] = None,
    path: Optional[str] = None,
    partition_cols: Optional[Columns] = None,
    cluster_by: Optional[Columns] = None,
    schema: Any = None,
    private: bool = False,
    cluster_by_auto: bool = False,
    row_filter: Optional[str] = None,
) -> Any:
    """A table that each update makes equal to the function's DataFrame."""
    _refuse(spark_conf=spark_conf, row_filter=row_filter, cluster_by_auto=cluster_by_auto)
    return _decorated(
        query_function,
        lambda function: _declare_table(
            "MATERIALIZED VIEW", function, name, private, comment=comment, table_properties=table_properties,
            path=path, partition_cols=partition_cols, cluster_by=cluster_by, schema=schema,
        ),
    )  # fmt: skip


def _declare_table(kind: Optional[str], function: Callable[[], Any], name: Any, private: bool, **options: Any) -> None:
    shown = _named(name, function)
    accept("private", private, bool)
    makers = {
        one: _table_text(("PRIVATE " if private else "") + one, shown, **options)
        for one in ("STREAMING TABLE", "MATERIALIZED VIEW")
    }

    def text() -> str:
        frame = _frame_of(function)
        chosen = kind or ("STREAMING TABLE" if frame.isStreaming else "MATERIALIZED VIEW")
        return f"{makers[chosen](_expectations(function))} AS {frame._statement()}"

    _current().add(text, function, dataset=shown)


@overload
def temporary_view(query_function: F) -> F: ...
@overload
def temporary_view(
    *, name: Optional[str] = None, comment: Optional[str] = None, spark_conf: Optional[Mapping[str, str]] = None
) -> Callable[[F], F]: ...
@known_parameters
def temporary_view(
    query_function: Any = None,
    *,
    name: Optional[str] = None,
    comment: Optional[str] = None,
    spark_conf: Optional[Mapping[str, str]] = None,
) -> Any:
    """A view that the pipeline alone sees, of the function's DataFrame."""
    _refuse(spark_conf=spark_conf)
    if comment is not None:
        accept("comment", comment, str)

    def declare(function: Callable[[], Any]) -> None:
        shown = _named(name, function)

        def text() -> str:
            frame = _frame_of(function)
            constraints = ", ".join(map(_constraint, _expectations(function)))
            inside = f" ({constraints})" if constraints else ""
            said = f" COMMENT {literal(comment)}" if comment is not None else ""
            return f"CREATE TEMPORARY VIEW {shown}{inside}{said} AS {frame._statement()}"

        registry = _current()
        registry.views[shown.casefold()] = function
        registry.add(text, function, dataset=shown)

    return _decorated(query_function, declare)


view = temporary_view


# --- expectations


def _expecting(conditions: list[tuple[str, str, str]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        # The lowest decorator is the first one.
        setattr(function, _EXPECTATIONS, _expectations(function) + conditions)
        return function

    return decorate


def expect(name: str, inv: ColumnOrName) -> Callable[[F], F]:
    """An expectation on the dataset: rows for which ``inv`` is not true are counted and kept."""
    return _expecting(_conditions("expect", {name: inv}, ""))


def expect_or_drop(name: str, inv: ColumnOrName) -> Callable[[F], F]:
    """As :func:`expect`; such rows are dropped."""
    return _expecting(_conditions("expect_or_drop", {name: inv}, " ON VIOLATION DROP ROW"))


def expect_or_fail(name: str, inv: ColumnOrName) -> Callable[[F], F]:
    """As :func:`expect`; such a row fails the update."""
    return _expecting(_conditions("expect_or_fail", {name: inv}, " ON VIOLATION FAIL UPDATE"))


def expect_all(expectations: Mapping[str, ColumnOrName]) -> Callable[[F], F]:
    """Several of :func:`expect`, conditions by name."""
    return _expecting(_conditions("expectations", expectations, ""))


def expect_all_or_drop(expectations: Mapping[str, ColumnOrName]) -> Callable[[F], F]:
    """Several of :func:`expect_or_drop`, conditions by name."""
    return _expecting(_conditions("expectations", expectations, " ON VIOLATION DROP ROW"))


def expect_all_or_fail(expectations: Mapping[str, ColumnOrName]) -> Callable[[F], F]:
    """Several of :func:`expect_or_fail`, conditions by name."""
    return _expecting(_conditions("expectations", expectations, " ON VIOLATION FAIL UPDATE"))


# --- flows


@known_parameters
def append_flow(
    *,
    target: str,
    name: Optional[str] = None,
    comment: Optional[str] = None,
    spark_conf: Optional[Mapping[str, str]] = None,
    once: bool = False,
) -> Callable[[F], F]:
    """A flow that appends what the function's DataFrame gives to a streaming table.

    :param once: it reads all there is, in the first update alone; the DataFrame may then be one
        that is no stream.
    :param name: of the flow; None: the function's.
    """
    _refuse(spark_conf=spark_conf)
    into = sql_name("target", target)
    accept("once", once, bool)
    said = f" COMMENT {literal(accept('comment', comment, str))}" if comment is not None else ""

    def declare(function: Callable[[], Any]) -> None:
        flow = _flow_name(name) if name is not None else quote(function.__name__)

        def text() -> str:
            frame = _frame_of(function)
            return f"CREATE FLOW {flow}{said} AS INSERT INTO {'ONCE ' if once else ''}{into} BY NAME {frame._statement()}"

        _current().add(text, function)

    decorated: Callable[[F], F] = _decorated(None, declare)
    return decorated


def _one_of(first: str, a: Any, second: str, b: Any) -> None:
    if a and b:
        raise InvalidArgumentError(f"give {first} or {second}, not both", "CANNOT_SET_TOGETHER")


def _plain_names(parameter: str, value: Any) -> list[str]:
    """Names of columns as the lists of AUTO CDC take them: of one part, each once."""
    names = names_of(parameter, value)
    for i, name in enumerate(names):
        if len(split_name(name)) > 1:
            raise InvalidArgumentError(
                f"{parameter}: {name} has several parts, but the list takes plain column names; one that contains a dot "
                f"is written '{quote('a.b')}'", "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER")  # fmt: skip
        if name.casefold() in (one.casefold() for one in names[:i]):
            raise InvalidArgumentError(f"{parameter} names {name} twice: write it once", "AUTOCDC_DUPLICATE_COLUMN")
    return names


def _keys(keys: Any, target: str) -> str:
    names = _plain_names("keys", keys)
    if not names:
        raise InvalidArgumentError(
            f"keys is empty: name the columns that identify a row of {target}, as in keys=['id']", "AUTOCDC_EMPTY_KEYS"
        )
    return f" KEYS ({', '.join(names)})"


def _lists(clause: str, names: list[str], except_names: list[str]) -> str:
    if names:
        return f" {clause} ({', '.join(names)})"
    return f" {clause} * EXCEPT ({', '.join(except_names)})" if except_names else ""


_SCD_TYPES = {1: "SCD TYPE 1", "1": "SCD TYPE 1", 2: "SCD TYPE 2", "2": "SCD TYPE 2", "bitemporal": "BITEMPORAL"}


def _stored_as(value: Any, accepted: tuple[Any, ...]) -> str:
    if value is None:
        return ""
    folded = value.lower() if isinstance(value, str) else value
    accept_one_of("stored_as_scd_type", folded, accepted)
    return f" STORED AS {_SCD_TYPES[folded]}"


def _flow_name(name: Any) -> str:
    if not accept("name", name, str).strip():
        raise ValueError("name is empty: leave it out, or name the flow")
    return quote(name)


def _flow_head(name: Any, target: str, once: bool, source: str) -> str:
    # Without a name the flow has that of its target.
    flow = target if name is None else _flow_name(name)
    return f"CREATE FLOW {flow} AS AUTO CDC{' ONCE' if once else ''} INTO {target} FROM {source}"


@known_parameters
def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Columns,
    sequence_by: ColumnOrName,
    ignore_null_updates: bool = False,
    apply_as_deletes: Optional[ColumnOrName] = None,
    apply_as_truncates: Optional[ColumnOrName] = None,
    column_list: Optional[Columns] = None,
    except_column_list: Optional[Columns] = None,
    stored_as_scd_type: Union[int, str, None] = None,
    track_history_column_list: Optional[Columns] = None,
    track_history_except_column_list: Optional[Columns] = None,
    name: Optional[str] = None,
    once: bool = False,
    *,
    ignore_null_updates_column_list: Optional[Columns] = None,
    ignore_null_updates_except_column_list: Optional[Columns] = None,
    columns_to_update: Optional[ColumnOrName] = None,
    system_sequence_by: Optional[ColumnOrName] = None,
) -> None:
    """A flow that applies changes to a streaming table: AUTO CDC.

    :param target: the streaming table, declared with :func:`create_streaming_table`.
    :param source: a table or view, which is read as a stream.
    :param keys: the columns that identify a row; not empty.
    :param sequence_by: what orders the changes of a key: a column, or ``struct(a, b)``.
    :param ignore_null_updates: a null means "not given".
    :param apply_as_deletes: a change for which this is true is a delete.
    :param apply_as_truncates: one for which this is true empties the table (SCD type 1).
    :param column_list: columns that land in the target; or ``except_column_list``: all but these.
    :param stored_as_scd_type: 1 (default), 2 or ``"bitemporal"``.
    :param track_history_column_list: columns that open a new version (SCD type 2); or
        ``track_history_except_column_list``: all but these.
    :param name: of the flow; None: the target's.
    :param once: it reads what is there in the first update alone.
    :param columns_to_update: an ``array<string>`` column that names the columns a change gives.
    :param system_sequence_by: the second time axis of a bitemporal table.
    :raises InvalidArgumentError: with the documents' error names as codes.
    """
    into = sql_name("target", target)
    read = sql_name("source", source)
    text = _keys(keys, into)
    if sequence_by is None:
        raise TypeError("sequence_by must be str or Column, not None: name the column that orders the changes of a key")
    text += f" SEQUENCE BY ({expression_text('sequence_by', sequence_by)})"
    if apply_as_deletes is not None:
        text += f" APPLY AS DELETE WHEN ({expression_text('apply_as_deletes', apply_as_deletes)})"
    if apply_as_truncates is not None:
        text += f" APPLY AS TRUNCATE WHEN ({expression_text('apply_as_truncates', apply_as_truncates)})"
    _one_of("column_list", column_list, "except_column_list", except_column_list)
    text += _lists("COLUMNS", _plain_names("column_list", column_list), _plain_names("except_column_list", except_column_list))
    text += _stored_as(stored_as_scd_type, (1, "1", 2, "2", "bitemporal"))
    text += _track_history(track_history_column_list, track_history_except_column_list, stored_as_scd_type)
    nulls = _plain_names("ignore_null_updates_column_list", ignore_null_updates_column_list)
    all_but = _plain_names("ignore_null_updates_except_column_list", ignore_null_updates_except_column_list)
    _one_of("ignore_null_updates_column_list", nulls, "ignore_null_updates_except_column_list", all_but)
    if nulls or all_but:
        text += _lists("IGNORE NULL UPDATES ON", nulls, all_but)
    elif accept("ignore_null_updates", ignore_null_updates, bool):
        text += " IGNORE NULL UPDATES"
    if columns_to_update is not None:
        text += f" COLUMNS TO UPDATE {name_of('columns_to_update', columns_to_update)}"
    if system_sequence_by is not None:
        text += f" SYSTEM SEQUENCE BY ({expression_text('system_sequence_by', system_sequence_by)})"
    statement = _flow_head(name, into, accept("once", once, bool), f"STREAM({read})") + text
    _current().add(lambda: statement)


def _track_history(names: Any, except_names: Any, scd_type: Any) -> str:
    _one_of("track_history_column_list", names, "track_history_except_column_list", except_names)
    text = _lists(
        "TRACK HISTORY ON",
        _plain_names("track_history_column_list", names),
        _plain_names("track_history_except_column_list", except_names),
    )
    if text and scd_type in (None, 1, "1"):
        raise InvalidArgumentError(
            f"track_history_{'' if names else 'except_'}column_list needs stored_as_scd_type=2, not {scd_type!r}: SCD type 1 "
            "keeps no history", "INVALID_MULTIPLE_ARGUMENT_CONDITIONS")  # fmt: skip
    return text


@known_parameters
def create_auto_cdc_from_snapshot_flow(
    target: str,
    source: Union[str, Callable[[Any], Any]],
    keys: Columns,
    stored_as_scd_type: Union[int, str, None] = None,
    track_history_column_list: Optional[Columns] = None,
    track_history_except_column_list: Optional[Columns] = None,
    name: Optional[str] = None,
    once: bool = False,
) -> None:
    """A flow that makes a streaming table follow snapshots of a source.

    :param source: a table or view, of which each update takes one snapshot; or a function that is
        called with the latest processed version (None at first) and returns
        ``(DataFrame, version)``, or None when there is no newer snapshot.
    :param keys: the columns that identify a row; not empty.
    :param stored_as_scd_type: 1 (default) or 2.

    The other parameters are those of :func:`create_auto_cdc_flow`.
    """
    into = sql_name("target", target)
    text = _keys(keys, into) + _stored_as(stored_as_scd_type, (1, "1", 2, "2"))
    text += _track_history(track_history_column_list, track_history_except_column_list, stored_as_scd_type)
    function = None
    if isinstance(source, str):
        snapshot = f"SNAPSHOT (SELECT * FROM {sql_name('source', source)})"
    elif callable(source):
        try:
            inspect.signature(source).bind(None)
        except TypeError:
            raise TypeError(
                f"source must take one argument, the latest processed version (None at first), not {given(source)}; "
                "of a view give the name, as in source='users'"
            ) from None
        except ValueError:
            pass  # a function of C code, which does not say
        _plain_function(source)
        function = source
        snapshot = "SNAPSHOT (SELECT 1 AS given_by_a_function)"
    else:
        raise TypeError(f"source must be the name of a table or view, or a function, not {given(source)}")
    statement = _flow_head(name, into, accept("once", once, bool), snapshot) + text
    _current().add(lambda: statement, function=function)


# The old names.
apply_changes = create_auto_cdc_flow


@known_parameters
def apply_changes_from_snapshot(
    target: str,
    source: Union[str, Callable[[Any], Any], None] = None,
    keys: Optional[Columns] = None,
    stored_as_scd_type: Union[int, str, None] = None,
    track_history_column_list: Optional[Columns] = None,
    track_history_except_column_list: Optional[Columns] = None,
    name: Optional[str] = None,
    once: bool = False,
    *,
    snapshot_and_version: Union[str, Callable[[Any], Any], None] = None,
) -> None:
    """The old name of :func:`create_auto_cdc_from_snapshot_flow`; ``snapshot_and_version`` is its
    old name of ``source``."""
    _one_of("source", source, "snapshot_and_version", snapshot_and_version)
    create_auto_cdc_from_snapshot_flow(
        target, cast(Any, source if source is not None else snapshot_and_version), cast(Any, keys), stored_as_scd_type,
        track_history_column_list, track_history_except_column_list, name, once,
    )  # fmt: skip


@known_parameters
def create_sink(name: str, format: str, options: Optional[Mapping[str, str]] = None) -> None:
    """Sinks are not supported: flows write into streaming tables."""
    raise UnsupportedError(
        f"create_sink({name!r}, {format!r}) is not supported: flows write into streaming tables, whose change feed "
        "other programs can read", "UNSUPPORTED_SINK")  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(f"pipelines.{name} is not there; there are {', '.join(__all__)}")
