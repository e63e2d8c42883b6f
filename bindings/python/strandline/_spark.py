"""``spark``: lazy DataFrames that are relations of the SQL surface.

A DataFrame is the text of a query. Sources that are streams have two texts: as a flow reads them
(``STREAM(t)``) and as their table, by which columns are found out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional, Union

from sqlframe.base.column import Column
from sqlglot import exp

from ._arguments import accept, accept_one_of, given
from ._columns import (
    OF_FRAME, ColumnOrName, as_column, column_text, expr, functions, literal, name_of, quote, split_name, sql_name,
)  # fmt: skip
from ._row import Row
from ._volumes import Volumes
from ._warehouse import Warehouse
from .errors import InvalidArgumentError, NotFoundError, StrandlineError, UnsupportedError

_SOURCE = re.compile("\x00(\\d+)\x00")
_STREAM_WORD = re.compile(r"\bstream\b\s*[(`\w]", re.IGNORECASE)
_MADE_ALIAS = re.compile(r"`__t\d+`")
_ids = itertools.count(1)


class Source:
    """A relation at the bottom of a query."""

    def __init__(self, text: str, table: str, streaming: bool) -> None:
        self.text = text
        self.table = table  # the same columns, read as a table
        self.streaming = streaming


class SparkSession:
    """What ``spark`` is while our engine runs user code."""

    def __init__(
        self,
        warehouse: Callable[[], Warehouse],
        volumes: Volumes,
        configuration: Optional[Mapping[str, str]] = None,
        views: Optional[Mapping[str, Callable[[], Any]]] = None,
    ) -> None:
        self._open = warehouse
        self._warehouse: Optional[Warehouse] = None
        self._volumes = volumes
        self._sources: list[Source] = []
        self._in_pipeline = views is not None
        self._views = views if views is not None else {}  # of the pipeline: name -> its function
        self._temporary: dict[str, DataFrame] = {}
        self.conf = Configuration(configuration or {})

    # --- sources

    @property
    def read(self) -> DataFrameReader:
        """Reads tables and files."""
        return DataFrameReader(self)

    @property
    def readStream(self) -> DataStreamReader:
        """Reads tables and files as streams."""
        return DataStreamReader(self)

    def table(self, tableName: str) -> DataFrame:
        """A table or view."""
        return self.read.table(tableName)

    def sql(self, sqlQuery: str, args: Any = None) -> DataFrame:
        """A query; its text is taken as it is. Statements that are no query run now."""
        text = accept("sqlQuery", sqlQuery, str).strip().rstrip(";").strip()
        if args:
            raise UnsupportedError("args of spark.sql(): put the values into the text", "UNSUPPORTED_ARGUMENT")
        if re.match(r"\s*(select|with|values|from|table|\()", text, re.IGNORECASE) is None:
            return self._rows(self._engine().sql(text))
        if self._temporary:
            used = [name for name in self._temporary if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
            ctes = ", ".join(f"{quote(name)} AS ({self._temporary[name]._query()})" for name in used)
            if ctes:
                rest = re.match(r"with\s+", text, re.IGNORECASE)
                text = f"WITH {ctes}, {text[rest.end() :]}" if rest else f"WITH {ctes} {text}"
        streaming = _STREAM_WORD.search(text) is not None
        table = re.sub(r"\bstream\b\s*(?=[(`\w])", "", text, flags=re.IGNORECASE) if streaming else text
        return DataFrame(self, self._source(Source(f"({text})", f"({table})", streaming)), whole=True)

    def _rows(self, result: Any) -> DataFrame:
        """What a statement gave, as constant rows."""
        if not result.columns:
            return DataFrame(self, "(SELECT true AS done WHERE false)", whole=True)
        schema = ", ".join(f"{quote(name)} {type_}" for name, type_ in zip(result.columns, result.types))
        return self.createDataFrame(result.fetchall(), schema=schema)

    def range(self, start: int, end: Optional[int] = None, step: int = 1) -> DataFrame:
        """Numbers in a column id."""
        numbers = range(start) if end is None else range(start, end, step)
        return self.createDataFrame([(number,) for number in numbers], schema="id BIGINT")

    def createDataFrame(self, data: Any, schema: Any = None, samplingRatio: Any = None, verifySchema: bool = True) -> DataFrame:
        """Rows that are written out: tuples, lists, dicts or Rows; or a pandas frame or Arrow data.

        :param schema: DDL (``"id INT, x STRING"``), a StructType, or a list of names.
        """
        from ._literals import values_query

        return DataFrame(self, f"({values_query(data, schema)})", whole=True)

    def createOrReplaceTempView(self, name: str, frame: DataFrame) -> None:
        self._temporary[accept("name", name, str)] = frame

    # --- what PySpark programs ask a session for

    version = "4.0.0"

    @property
    def catalog(self) -> Any:
        raise UnsupportedError("spark.catalog is not supported: use spark.sql('SHOW TABLES')", "UNSUPPORTED_METHOD")

    def stop(self) -> None:
        """Nothing: the session ends with the program."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"spark.{name} is not supported; there are read, readStream, table, sql, range, createDataFrame, conf"
        )

    # --- engine

    def _engine(self) -> Warehouse:
        if self._warehouse is None:
            self._warehouse = self._open()
        return self._warehouse

    def _source(self, source: Source) -> str:
        self._sources.append(source)
        return f"\x00{len(self._sources) - 1}\x00"

    def _expand(self, text: str, *, as_table: bool = False) -> str:
        def one(match: re.Match[str]) -> str:
            source = self._sources[int(match.group(1))]
            return self._expand(source.table if as_table else source.text, as_table=as_table)

        return _SOURCE.sub(one, text)

    def _uses_stream(self, text: str) -> bool:
        return any(self._sources[int(number)].streaming for number in _SOURCE.findall(text))

    def _columns_of(self, query: str) -> list[tuple[str, str]]:
        """Names and types, by asking the engine; views of the pipeline count."""
        text = self._expand(query, as_table=True)
        with_views = self._with_views(text, set())
        result = self._engine().sql(f"SELECT * FROM ({with_views}) WHERE false")
        return list(zip(result.columns, result.types))

    def _with_views(self, text: str, open_: set[str]) -> str:
        ctes = []
        for name, function in self._views.items():
            plain = name.strip("`")
            if plain.casefold() in open_ or not re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text, re.IGNORECASE):
                continue
            frame = function()
            if isinstance(frame, DataFrame):
                inside = self._expand(frame._query(), as_table=True)
                ctes.append(f"{name} AS ({self._with_views(inside, open_ | {plain.casefold()})})")
        return f"WITH {', '.join(ctes)} SELECT * FROM ({text})" if ctes else text


class Configuration:
    """``spark.conf``: the pipeline's configuration."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def get(self, key: str, default: Optional[str] = None) -> Optional[str]:
        """:raises NotFoundError: nothing is set and no default is given."""
        if key in self._values or default is not None:
            return self._values.get(key, default)
        raise NotFoundError(f"'{key}' is not set: write it into 'configuration' of the pipeline's spec file",
                            "SQL_CONF_NOT_FOUND")  # fmt: skip

    def set(self, key: str, value: Any) -> None:
        self._values[key] = str(value)


# --- readers


def _option_text(key: str, value: Any) -> str:
    accept(f"option {key!r}", value, str, int, float, bool)
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Reader:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._format: Optional[str] = None
        self._options: dict[str, str] = {}
        self._schema: Optional[str] = None

    def format(self, source: str) -> Any:
        """csv, json, parquet, delta, ..."""
        self._format = accept("format", source, str)
        return self

    def option(self, key: str, value: Any) -> Any:
        """One option; keys are case-insensitive."""
        key = accept("key", key, str)
        for known in [one for one in self._options if one.casefold() == key.casefold()]:
            del self._options[known]
        if value is not None:
            self._options[key] = _option_text(key, value)
        return self

    def options(self, **options: Any) -> Any:
        for key, value in options.items():
            self.option(key, value)
        return self

    def schema(self, schema: Any) -> Any:
        """Columns of the files: DDL or a StructType."""
        from .pipelines import _schema

        self._schema = _schema(schema)
        return self

    def _take(self, *names: str) -> Optional[str]:
        for key in list(self._options):
            if key.casefold() in (name.casefold() for name in names):
                return self._options.pop(key)
        return None

    def _refuse_rest(self, what: str, accepted: str) -> None:
        if self._options:
            raise InvalidArgumentError(
                f"{what} has no option {', '.join(map(repr, self._options))}; there are {accepted}", "UNKNOWN_OPTION"
            )

    def _files(self, path: Any, stream: bool) -> DataFrame:
        if path is None:
            path = self._take("path")
        if path is None:
            raise InvalidArgumentError("load() needs the path of the files", "PATH_MISSING")
        if isinstance(path, (list, tuple)):
            raise UnsupportedError("load() takes one path here: use a pattern such as 'dir/*.csv'", "SEVERAL_PATHS")
        place = self._spark._volumes.mapped(str(path))
        format_ = (self._format or "parquet").lower()
        if format_ == "cloudfiles":
            chosen = self._take("cloudFiles.format")
            if chosen is None:
                raise InvalidArgumentError("give option cloudFiles.format: csv, json or parquet", "OPTION_MISSING")
            format_ = chosen.lower()
            for key in list(self._options):
                if key.casefold().startswith("cloudfiles."):
                    self._options[key[len("cloudFiles.") :]] = self._options.pop(key)
        if format_ == "delta":
            return self._table_text(f"delta.{quote(place)}", stream)
        if format_ not in ("csv", "json", "parquet"):
            raise UnsupportedError(
                f"format({format_!r}) is not supported: csv, json, parquet and delta are", "UNSUPPORTED_FORMAT"
            )
        arguments = [literal(place), f"format => {literal(format_)}"]
        if self._schema is not None:
            arguments.append(f"schema => {literal(self._schema)}")
        for key, value in self._options.items():
            accept_key = key if re.fullmatch(r"\w+", key) else quote(key)
            arguments.append(f"{accept_key} => {literal(value)}")
        call = f"read_files({', '.join(arguments)})"
        source = Source(f"STREAM {call}" if stream else call, call, stream)
        return DataFrame(self._spark, self._spark._source(source))

    def _table_text(self, name: str, stream: bool) -> DataFrame:
        raise NotImplementedError


class DataFrameReader(_Reader):
    """``spark.read``."""

    def table(self, tableName: str) -> DataFrame:
        """A table or view; options: readChangeFeed with its range, versionAsOf, timestampAsOf."""
        text = accept("tableName", tableName, str)
        view = self._spark._temporary.get(text)
        if view is not None:
            return view
        return self._table_text(_table_name(text), False, text)

    def _table_text(self, name: str, stream: bool, plain: str = "") -> DataFrame:
        feed = self._take("readChangeFeed", "readChangeData")
        version, time = self._take("versionAsOf"), self._take("timestampAsOf")
        if feed is not None and feed.lower() == "true":
            start = self._bound("startingVersion", "startingTimestamp")
            end = self._bound("endingVersion", "endingTimestamp")
            if start is None:
                raise InvalidArgumentError(
                    "reading the change feed as a batch needs startingVersion or startingTimestamp",
                    "DELTA_NO_START_FOR_CDC_READ")  # fmt: skip
            self._refuse_rest("reading a change feed", "readChangeFeed, startingVersion, startingTimestamp, "
                              "endingVersion, endingTimestamp")  # fmt: skip
            bounds = ", ".join([start] + ([end] if end is not None else []))
            name = f"table_changes({literal(name)}, {bounds})"
        elif version is not None:
            name += f" VERSION AS OF {int(version)}"
        elif time is not None:
            name += f" TIMESTAMP AS OF {literal(time)}"
        self._refuse_rest(
            "reading a table", "readChangeFeed, startingVersion, startingTimestamp, endingVersion, endingTimestamp, "
            "versionAsOf, timestampAsOf")  # fmt: skip
        return DataFrame(self._spark, self._spark._source(Source(name, name, False)))

    def _bound(self, version: str, time: str) -> Optional[str]:
        number, text = self._take(version), self._take(time)
        if number is not None and text is not None:
            raise InvalidArgumentError(f"give {version} or {time}, not both", "CANNOT_SET_TOGETHER")
        if number is not None:
            return str(int(number)) if number.isdigit() else literal(number)
        return literal(text) if text is not None else None

    def load(self, path: Any = None, format: Optional[str] = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        """Files of the format; a folder, a file or a pattern."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if (self._format or "").lower() == "jdbc":
            raise UnsupportedError("format('jdbc') is not supported yet: copy the table into files or a Delta table",
                                   "UNSUPPORTED_FORMAT")  # fmt: skip
        return self._files(path, False)

    def csv(self, path: Any, **options: Any) -> DataFrame:
        return self.format("csv").options(**options).load(path)  # type: ignore[no-any-return]

    def json(self, path: Any, **options: Any) -> DataFrame:
        return self.format("json").options(**options).load(path)  # type: ignore[no-any-return]

    def parquet(self, path: Any, **options: Any) -> DataFrame:
        return self.format("parquet").options(**options).load(path)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"spark.read.{name} is not supported; there are table, load, csv, json, parquet, format, option, options, schema")


class DataStreamReader(_Reader):
    """``spark.readStream``."""

    def table(self, tableName: str) -> DataFrame:
        """A table or view as a stream; options go to ``STREAM name WITH (...)``."""
        return self._table_text(_table_name(accept("tableName", tableName, str)), True)

    def _table_text(self, name: str, stream: bool) -> DataFrame:
        options = ", ".join(f"{key} = {literal(value)}" for key, value in self._options.items())
        for key in self._options:
            if not re.fullmatch(r"\w+", key):
                raise InvalidArgumentError(f"a streaming read has no option {key!r}", "UNKNOWN_OPTION")
        text = f"STREAM {name} WITH ({options})" if options else f"STREAM({name})"
        feed = next((v for k, v in self._options.items() if k.casefold() == "readchangefeed"), "false")
        table = f"table_changes({literal(name)}, 0)" if feed.lower() == "true" else name
        return DataFrame(self._spark, self._spark._source(Source(text, table, True)))

    def load(self, path: Any = None, format: Optional[str] = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        """Files as a stream: each is read once."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        return self._files(path, True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"spark.readStream.{name} is not supported; there are table, load, format, option, options, schema")


def _table_name(text: str) -> str:
    match = re.fullmatch(r"\s*delta\s*\.\s*(`.*`)\s*", text, re.IGNORECASE)
    return f"delta.{match.group(1)}" if match else sql_name("tableName", text)


# --- frames

_JOINS = {
    "inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "leftouter": "LEFT JOIN", "right": "RIGHT JOIN",
    "rightouter": "RIGHT JOIN", "outer": "FULL JOIN", "full": "FULL JOIN", "fullouter": "FULL JOIN",
    "leftsemi": "LEFT SEMI JOIN", "semi": "LEFT SEMI JOIN", "leftanti": "LEFT ANTI JOIN", "anti": "LEFT ANTI JOIN",
}  # fmt: skip

# PySpark's methods that there are none of here: not columns by mistake.
_UNSUPPORTED = frozenset(
    """approxQuantile checkpoint colRegex corr cov createGlobalTempView crosstab cube describe dropna explain fillna
    foreach foreachPartition freqItems groupingSets inputFiles localCheckpoint mapInArrow mapInPandas melt na observe
    offset pandas_api randomSplit rdd registerTempTable repartitionByRange replace rollup sameSemantics sample sampleBy
    semanticHash sortWithinPartitions stat storageLevel summary to toJSON unpivot withMetadata withWatermark
    writeTo mergeInto lateralJoin scalar exists transpose plot executionInfo""".split()
)


class DataFrame:
    """A lazy relation. Methods give new frames; nothing is read before rows are asked for."""

    def __init__(self, spark: SparkSession, relation: str, *, whole: bool = False) -> None:
        self._spark = spark
        self._from = relation  # what follows FROM
        self._whole = whole  # it is a query in parentheses, and nothing was done to it
        self._items: Optional[list[str]] = None  # None: *
        self._where: list[str] = []
        self._tail = ""  # GROUP BY, ORDER BY, LIMIT
        self._distinct = False
        self._id = str(next(_ids))
        self._lineage = {self._id}  # frames whose columns these are
        self._sides: list[tuple[str, set[str]]] = []  # of joins: alias, lineage
        self._alias: Optional[str] = None

    # --- text

    def _query(self) -> str:
        if self._whole and self._items is None and not self._where and not self._tail and not self._distinct:
            return self._from[1:-1] if self._from.startswith("(") else f"SELECT * FROM {self._from}"
        items = "*" if self._items is None else ", ".join(self._items)
        where = f" WHERE {' AND '.join(self._where)}" if self._where else ""
        return f"SELECT {'DISTINCT ' if self._distinct else ''}{items} FROM {self._from}{where}{self._tail}"

    def _statement(self) -> str:
        """The query as flows and views take it: the same text for the same frame, whatever else the
        program makes."""
        numbers: dict[str, str] = {}
        return _MADE_ALIAS.sub(
            lambda match: numbers.setdefault(match.group(), f"`__t{len(numbers) + 1}`"),
            self._spark._expand(self._query()),
        )

    def _plain(self) -> bool:
        """Nothing but a relation."""
        return self._items is None and not self._where and not self._tail and not self._distinct

    def _relation(self) -> str:
        return self._from if self._plain() and not self._sides else f"({self._query()})"

    def _copy(self) -> DataFrame:
        made = DataFrame(self._spark, self._from, whole=self._whole)
        made._items, made._where, made._tail = self._items, list(self._where), self._tail
        made._distinct, made._sides, made._alias = self._distinct, list(self._sides), self._alias
        made._lineage = self._lineage | {made._id}
        return made

    def _closed(self) -> DataFrame:
        """Itself as the relation of a new query."""
        made = DataFrame(self._spark, self._relation(), whole=not self._plain() or self._whole)
        made._lineage = self._lineage | {made._id}
        made._alias = self._alias
        for _, lineage in self._sides:
            made._lineage |= lineage
        if self._alias is not None:
            made._from = f"{made._from} AS {quote(self._alias)}"
            made._whole = False
        return made

    def _open(self) -> DataFrame:
        """A copy whose select list can still be set."""
        return self._copy() if self._items is None and not self._tail and not self._distinct else self._closed()

    def _text(self, column: Column, *, top: bool = False) -> str:
        return column_text(column, self._qualifier, top=top)

    def _qualifier(self, id_: str) -> Optional[str]:
        holders = [alias for alias, lineage in self._sides if id_ in lineage]
        if len(holders) > 1:
            raise InvalidArgumentError(
                "both sides of the join come from the frame that a column was taken of: give them names with "
                "alias() and write col('name.column')", "AMBIGUOUS_COLUMN_REFERENCE")  # fmt: skip
        if holders:
            return holders[0]
        if id_ in self._lineage:
            return None
        raise InvalidArgumentError("a column belongs to another DataFrame: join it first", "MISSING_ATTRIBUTES")

    def _condition(self, parameter: str, condition: ColumnOrName) -> str:
        if isinstance(condition, str):
            return f"({condition})"
        accept(parameter, condition, Column, str)
        return f"({self._text(condition)})"

    # --- projections

    def select(self, *cols: Any) -> DataFrame:
        made = self._open()
        made._items = [made._text(as_column("cols", one), top=True) for one in _flat(cols)]
        if not made._items:
            raise InvalidArgumentError("select() names no column", "EMPTY_SELECT")
        return made

    def selectExpr(self, *expr: Any) -> DataFrame:
        """Items of a select list, as SQL text."""
        made = self._open()
        made._items = [accept("expr", one, str) for one in _flat(expr)]
        return made

    def _known_columns(self, method: str) -> list[str]:
        try:
            return self.columns
        except StrandlineError as error:
            raise InvalidArgumentError(
                f"{method} needs the columns of the frame, which are not known here ({error.message}): name them with "
                "select()", "UNKNOWN_COLUMNS")  # fmt: skip

    def withColumn(self, colName: str, col: Column) -> DataFrame:
        return self.withColumns({colName: col})

    def withColumns(self, colsMap: Mapping[str, Column]) -> DataFrame:
        known = self._known_columns("withColumn()")
        made = self._open()
        texts = {
            accept("colName", name, str): made._text(accept(f"column {name!r}", column, Column))
            for name, column in colsMap.items()
        }
        folded = {name.casefold(): name for name in texts}
        items = []
        for name in known:
            new = folded.pop(name.casefold(), None)
            items.append(quote(name) if new is None else f"{texts[new]} AS {quote(new)}")
        made._items = items + [f"{texts[name]} AS {quote(name)}" for name in folded.values()]
        return made

    def withColumnRenamed(self, existing: str, new: str) -> DataFrame:
        return self.withColumnsRenamed({existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str]) -> DataFrame:
        folded = {accept("existing", old, str).casefold(): accept("new", new, str) for old, new in colsMap.items()}
        made = self._open()
        made._items = [
            f"{quote(name)} AS {quote(folded[name.casefold()])}" if name.casefold() in folded else quote(name)
            for name in self._known_columns("withColumnRenamed()")
        ]
        return made

    def toDF(self, *cols: str) -> DataFrame:
        known = self._known_columns("toDF()")
        if len(cols) != len(known):
            raise InvalidArgumentError(f"toDF() needs {len(known)} names, not {len(cols)}", "NUM_COLUMNS_MISMATCH")
        made = self._open()
        made._items = [f"{quote(old)} AS {quote(new)}" for old, new in zip(known, cols)]
        return made

    def drop(self, *cols: Any) -> DataFrame:
        """Without these columns; names that the frame lacks are no matter."""
        gone = set()
        for one in cols:
            column = as_column("cols", one).expression
            if not isinstance(column, exp.Column):
                raise InvalidArgumentError(f"drop() takes columns, not {given(one)}", "INVALID_COLUMN_NAME")
            if column.table:
                self._qualifier(column.table[len(OF_FRAME) :])
                if self._sides:
                    raise UnsupportedError("drop() of one side's column after a join: name what stays with select()",
                                           "UNSUPPORTED_METHOD")  # fmt: skip
            gone.add(column.name.casefold())
        made = self._open()
        made._items = [quote(name) for name in self._known_columns("drop()") if name.casefold() not in gone]
        return made

    def filter(self, condition: ColumnOrName) -> DataFrame:
        """Rows for which the condition is true: a Column or SQL text."""
        made = self._open()
        made._where.append(made._condition("condition", condition))
        return made

    where = filter

    def alias(self, alias: str) -> DataFrame:
        made = self._closed() if not self._plain() or self._alias or self._sides else self._copy()
        made._alias = accept("alias", alias, str)
        return made

    # --- whole relations

    def join(self, other: DataFrame, on: Any = None, how: Optional[str] = None) -> DataFrame:
        """:param on: a name, a list of names (each column once in the result), or a condition."""
        if not isinstance(other, DataFrame):
            raise TypeError(f"other must be a DataFrame, not {given(other)}")
        kind = "inner" if how is None else accept("how", how, str).lower().replace("_", "")
        accept_one_of("how", kind, tuple(_JOINS))
        open_join = bool(self._sides) and self._plain() and self._alias is None
        left: list[tuple[str, set[str]]] = []
        right: list[tuple[str, set[str]]] = []
        if open_join:
            made = self._copy()
        else:
            made = DataFrame(self._spark, self._side(left))
            made._sides = left
            made._lineage |= self._lineage
        made._whole = False
        text = other._side(right)
        made._sides = made._sides + right
        join = _JOINS[kind]
        if on is None:
            if kind not in ("inner", "cross"):
                raise InvalidArgumentError(f"a {kind} join needs on", "JOIN_CONDITION_MISSING")
            made._from += f" CROSS JOIN {text}"
            return made
        conditions: list[Any] = [on] if isinstance(on, (str, Column)) else list(on)
        if all(isinstance(one, str) for one in conditions):
            names = ", ".join(quote(one) for one in conditions)
            made._from += f" {join} {text} USING ({names})"
        else:
            texts = [made._text(accept("on", one, Column)) for one in conditions]
            made._from += f" {join} {text} ON {' AND '.join(texts)}"
        if kind in ("leftsemi", "semi", "leftanti", "anti"):
            made._sides = made._sides[:-1]
        return made

    def crossJoin(self, other: DataFrame) -> DataFrame:
        return self.join(other, how="cross")

    def _side(self, sides: list[tuple[str, set[str]]]) -> str:
        """A relation of a join, with its alias."""
        alias = self._alias or f"__t{self._id}"
        lineage = set(self._lineage)
        for _, one in self._sides:
            lineage |= one
        sides.append((alias, lineage))
        return f"{self._relation()} AS {quote(alias)}"

    def _combined(self, other: DataFrame, operation: str, right: Optional[str] = None) -> DataFrame:
        if not isinstance(other, DataFrame):
            raise TypeError(f"other must be a DataFrame, not {given(other)}")
        text = f"({_inside(self)} {operation} {right or _inside(other)})"
        made = DataFrame(self._spark, text, whole=True)
        made._lineage |= self._lineage
        return made

    def union(self, other: DataFrame) -> DataFrame:
        """Rows of both, columns by place, repeated rows kept."""
        return self._combined(other, "UNION ALL")

    unionAll = union

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:
        """Rows of both, columns by name."""
        mine = self._known_columns("unionByName()")
        theirs = {name.casefold(): name for name in other._known_columns("unionByName()")}
        missing = [name for name in mine if name.casefold() not in theirs]
        folded = {name.casefold() for name in mine}
        extra = [name for name in theirs.values() if name.casefold() not in folded]
        if (missing or extra) and not allowMissingColumns:
            raise InvalidArgumentError(
                f"unionByName(): {', '.join(missing + extra)} is on one side alone; allowMissingColumns=True makes it "
                "null on the other", "UNRESOLVED_COLUMN")  # fmt: skip
        right = [quote(theirs[n.casefold()]) if n.casefold() in theirs else f"NULL AS {quote(n)}" for n in mine]
        left = [quote(name) for name in mine] + [f"NULL AS {quote(name)}" for name in extra]
        a, b = self._closed(), other._closed()
        a._items, b._items = left, right + [quote(name) for name in extra]
        return a._combined(b, "UNION ALL")

    def intersect(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "INTERSECT")

    def subtract(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "EXCEPT")

    def exceptAll(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "EXCEPT ALL")

    def distinct(self) -> DataFrame:
        made = self._copy() if not self._tail else self._closed()
        made._distinct = True
        return made

    def dropDuplicates(self, subset: Optional[list[str]] = None) -> DataFrame:
        if subset:
            raise UnsupportedError(
                "dropDuplicates() of some columns keeps any row of several: say which with row_number() over a window, "
                "or group with max_by()", "UNSUPPORTED_METHOD")  # fmt: skip
        return self.distinct()

    drop_duplicates = dropDuplicates

    def orderBy(self, *cols: Any, ascending: Any = True) -> DataFrame:
        made = self._copy() if not self._tail and not self._distinct else self._closed()
        directions = ascending if isinstance(ascending, list) else None
        items = []
        for i, one in enumerate(_flat(cols)):
            text = made._text(as_column("cols", one))
            up = directions[i] if directions is not None else ascending
            items.append(text if up else f"{text} DESC")
        if not items:
            raise InvalidArgumentError("orderBy() names no column", "EMPTY_ORDER")
        made._tail = f" ORDER BY {', '.join(items)}"
        return made

    sort = orderBy

    def limit(self, num: int) -> DataFrame:
        made = self._copy() if " LIMIT " not in self._tail else self._closed()
        made._tail += f" LIMIT {accept('num', num, int)}"
        return made

    def groupBy(self, *cols: Any) -> GroupedData:
        made = self._open()
        return GroupedData(made, [made._text(as_column("cols", one), top=True) for one in _flat(cols)],
                           [made._text(as_column("cols", one)) for one in _flat(cols)])  # fmt: skip

    groupby = groupBy

    def agg(self, *exprs: Any) -> DataFrame:
        return self.groupBy().agg(*exprs)

    def transform(self, func: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> DataFrame:
        made = func(self, *args, **kwargs)
        if not isinstance(made, DataFrame):
            raise TypeError(f"transform(): the function must return a DataFrame, not {given(made)}")
        return made

    # --- hints for a cluster change nothing here

    def _same(self, *args: Any, **kwargs: Any) -> DataFrame:
        """The frame itself: one machine has nothing to place or keep."""
        return self

    cache = persist = unpersist = repartition = coalesce = hint = _same

    # --- columns

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            return self._column(item)
        if isinstance(item, Column):
            return self.filter(item)
        if isinstance(item, (list, tuple)):
            return self.select(*item)
        raise TypeError(f"a frame is indexed with a column's name, not {given(item)}")

    def _column(self, name: str) -> Column:
        parts = split_name(name)
        column: Any = exp.column(exp.to_identifier(parts[0], quoted=True), table=f"{OF_FRAME}{self._id}")
        if len(parts) > 1:
            column = exp.Dot.build([column, *(exp.to_identifier(part, quoted=True) for part in parts[1:])])
        return Column(column)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _UNSUPPORTED:
            supported = ", ".join(sorted(n for n in dir(DataFrame) if not n.startswith("_")))
            raise AttributeError(f"DataFrame.{name} is not supported; there are {supported}")
        try:
            known = self.columns
        except StrandlineError:
            return self._column(name)
        if name.casefold() in (one.casefold() for one in known):
            return self._column(name)
        raise AttributeError(
            f"the frame has no column {name!r}, and DataFrame no such method; the columns are {', '.join(known)}"
        )

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self.dtypes]

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names and types of the columns."""
        return self._spark._columns_of(self._query())

    @property
    def schema(self) -> Any:
        from ._literals import struct_type

        return struct_type(self.dtypes)

    def printSchema(self) -> None:
        print("root")
        for name, type_ in self.dtypes:
            print(f" |-- {name}: {type_.lower()}")

    @property
    def isStreaming(self) -> bool:
        """It reads a stream."""
        return self._spark._uses_stream(self._query())

    # --- rows

    def _result(self) -> Any:
        if self.isStreaming:
            raise InvalidArgumentError(
                "a stream is read by a flow of a pipeline, or written with writeStream; read the table with spark.read",
                "STREAMING_READ_AS_BATCH")  # fmt: skip
        text = self._spark._with_views(self._spark._expand(self._query()), set())
        return self._spark._engine().sql(text)

    def collect(self) -> list[Any]:
        """All rows."""
        result = self._result()
        make = Row(*result.columns)
        return [make(*row) for row in result]

    def toLocalIterator(self) -> Iterator[Any]:
        return iter(self.collect())

    def take(self, num: int) -> list[Any]:
        return self.limit(num).collect()

    def head(self, n: Optional[int] = None) -> Any:
        if n is not None:
            return self.take(n)
        return next(iter(self.take(1)), None)

    def first(self) -> Any:
        return self.head()

    def tail(self, num: int) -> list[Any]:
        return self.collect()[-num:]

    def isEmpty(self) -> bool:
        return not self.take(1)

    def count(self) -> int:
        closed = self._closed()
        closed._items = ["count(*)"]
        return int(closed._result().fetchall()[0][0])

    def toPandas(self) -> Any:
        return self._result().df()

    def toArrow(self) -> Any:
        return self._result().arrow()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._result().__arrow_c_stream__(requested_schema)

    def show(self, n: int = 20, truncate: Union[bool, int] = True, vertical: bool = False) -> None:
        self._result().show(n)

    def _repr_html_(self) -> Optional[str]:
        return None if self.isStreaming else str(self._result()._repr_html_())

    def __repr__(self) -> str:
        return f"<DataFrame: {self._spark._expand(self._query())}>"

    def createOrReplaceTempView(self, name: str) -> None:
        self._spark.createOrReplaceTempView(name, self)

    createTempView = createOrReplaceTempView

    # --- writing

    @property
    def write(self) -> DataFrameWriter:
        return DataFrameWriter(self)

    @property
    def writeStream(self) -> Any:
        from ._streams import DataStreamWriter

        if self._spark._in_pipeline:
            raise UnsupportedError(
                "writeStream is not for a pipeline's files: declare a streaming table (dp.table, dp.append_flow)",
                "UNSUPPORTED_WRITE_STREAM")  # fmt: skip
        return DataStreamWriter(self)


def _inside(frame: DataFrame) -> str:
    """A side of a set operation."""
    return f"({frame._query()})" if frame._tail else frame._query()


def _flat(cols: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols


class GroupedData:
    """``groupBy()``: what aggregates are made of."""

    def __init__(self, frame: DataFrame, items: list[str], keys: list[str]) -> None:
        self._frame = frame
        self._group_items = items
        self._keys = keys

    def agg(self, *exprs: Any) -> DataFrame:
        """:param exprs: columns, or one dict of column names to functions."""
        made = self._frame._copy()
        if len(exprs) == 1 and isinstance(exprs[0], Mapping):
            columns = [functions.expr(f"{how}({'*' if name == '*' else name_of('exprs', name)})")
                       for name, how in exprs[0].items()]  # fmt: skip
        else:
            columns = [accept("exprs", one, Column) for one in _flat(exprs)]
        made._items = self._group_items + [made._text(column, top=True) for column in columns]
        made._tail = f" GROUP BY {', '.join(self._keys)}" if self._keys else ""
        return made._closed()

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
        raise AttributeError(f"groupBy().{name} is not supported; there are agg, count, sum, avg, min, max")


class DataFrameWriter:
    """``df.write``: into tables of the warehouse."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._mode = "errorifexists"

    def mode(self, saveMode: str) -> DataFrameWriter:
        self._mode = accept_one_of("saveMode", accept("saveMode", saveMode, str).lower(),
                                   ("append", "overwrite", "error", "errorifexists", "ignore"))  # fmt: skip
        return self

    def format(self, source: str) -> DataFrameWriter:
        if source.lower() != "delta":
            raise UnsupportedError(f"tables are Delta tables, not {source}", "UNSUPPORTED_FORMAT")
        return self

    def saveAsTable(self, name: str) -> None:
        engine = self._frame._spark._engine()
        shown = _table_name(name)
        text = self._frame._spark._expand(self._frame._query())
        try:
            engine.table(shown)
            exists = True
        except NotFoundError:
            exists = False
        if not exists:
            engine.sql(f"CREATE TABLE {shown} AS {text}")
        elif self._mode in ("append", "overwrite"):
            engine.sql(f"INSERT {'INTO' if self._mode == 'append' else 'OVERWRITE'} {shown} BY NAME {text}")
        elif self._mode != "ignore":
            engine.sql(f"CREATE TABLE {shown} AS {text}")  # says that it exists

    def insertInto(self, tableName: str, overwrite: bool = False) -> None:
        verb = "OVERWRITE" if overwrite or self._mode == "overwrite" else "INTO"
        engine = self._frame._spark._engine()
        engine.sql(f"INSERT {verb} {_table_name(tableName)} {self._frame._spark._expand(self._frame._query())}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"df.write.{name} is not supported; there are mode, format, saveAsTable, insertInto")
