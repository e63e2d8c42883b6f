"""DataFrames: relations of the SQL surface as text."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from sqlframe.base.column import Column
from sqlglot import exp

from ._arguments import accept, accept_at_least, accept_one_of, flat, given
from ._columns import OF_FRAME, ColumnOrName, as_column, column_text, name_of
from ._grouped import GroupedData
from ._nulls import DataFrameNaFunctions
from ._row import Row
from ._session import Session
from ._text import late, literal, quote, split_name, table_name
from .errors import InvalidArgumentError, NotFoundError, StrandlineError, UnsupportedError

_MADE_ALIAS = re.compile(r"`__t\d+`")
_ids = itertools.count(1)


_JOINS = {
    "inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "leftouter": "LEFT JOIN", "right": "RIGHT JOIN",
    "rightouter": "RIGHT JOIN", "outer": "FULL JOIN", "full": "FULL JOIN", "fullouter": "FULL JOIN",
    "leftsemi": "LEFT SEMI JOIN", "semi": "LEFT SEMI JOIN", "leftanti": "LEFT ANTI JOIN", "anti": "LEFT ANTI JOIN",
}  # fmt: skip

# PySpark's methods that there are none of here: not columns by mistake.
_UNSUPPORTED = frozenset(
    """approxQuantile checkpoint colRegex corr cov createGlobalTempView crosstab cube describe
    foreachPartition freqItems groupingSets inputFiles localCheckpoint mapInArrow mapInPandas observe
    pandas_api randomSplit rdd registerTempTable repartitionByRange rollup sameSemantics sample sampleBy
    semanticHash sortWithinPartitions stat storageLevel summary to toJSON withMetadata withWatermark
    writeTo mergeInto lateralJoin scalar exists transpose plot executionInfo""".split()
)


class DataFrame:
    """A lazy relation. Methods give new frames; nothing is read before rows are asked for."""

    def __init__(self, spark: Session, relation: str, *, whole: bool = False) -> None:
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
        self._alias: Optional[str] = None  # of the relation; not beside sides

    # --- text

    def _query(self) -> str:
        if self._whole and self._items is None and not self._where and not self._tail and not self._distinct:
            return self._from[1:-1] if self._from.startswith("(") else f"SELECT * FROM {self._from}"
        items = "*" if self._items is None else ", ".join(self._items)
        where = f" WHERE {' AND '.join(self._where)}" if self._where else ""
        name = f" AS {quote(self._alias)}" if self._alias is not None else ""
        return f"SELECT {'DISTINCT ' if self._distinct else ''}{items} FROM {self._from}{name}{where}{self._tail}"

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
        made._items = [made._text(as_column("cols", one), top=True) for one in flat(cols)]
        if not made._items:
            raise InvalidArgumentError("select() names no column", "EMPTY_SELECT")
        return made

    def selectExpr(self, *expr: Any) -> DataFrame:
        """Items of a select list, as SQL text."""
        made = self._open()
        made._items = [accept("expr", one, str) for one in flat(expr)]
        return made

    def _known_columns(self, method: str) -> list[str]:
        try:
            return self.columns
        except StrandlineError as error:
            raise InvalidArgumentError(
                f"{method} needs the columns of the frame, which are not known here ({error.message}): name them with "
                "select()", "UNKNOWN_COLUMNS") from None  # fmt: skip

    def withColumn(self, colName: str, col: Column) -> DataFrame:
        return self.withColumns({colName: col})

    def withColumns(self, colsMap: Mapping[str, Column]) -> DataFrame:
        made = self._open()
        values = {
            accept("colName", name, str): made._text(accept(f"column {name!r}", column, Column))
            for name, column in colsMap.items()
        }
        made._items = late("with", *(text for name, value in values.items() for text in (literal(name), value)))
        return made

    def withColumnRenamed(self, existing: str, new: str) -> DataFrame:
        return self.withColumnsRenamed({existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str]) -> DataFrame:
        pairs = [(accept("existing", old, str), accept("new", new, str)) for old, new in colsMap.items()]
        return self._of_items(late("rename", *(literal(name) for pair in pairs for name in pair)))

    def toDF(self, *cols: str) -> DataFrame:
        return self._of_items(late("names", *(literal(accept("cols", name, str)) for name in cols)))

    def drop(self, *cols: Any) -> DataFrame:
        """Without these columns; names that the frame lacks are no matter."""
        gone = []
        for one in cols:
            column = as_column("cols", one).expression
            if not isinstance(column, exp.Column):
                raise InvalidArgumentError(f"drop() takes columns, not {given(one)}", "INVALID_COLUMN_NAME")
            if column.table:
                self._qualifier(column.table[len(OF_FRAME) :])
                if self._sides:
                    raise UnsupportedError("drop() of one side's column after a join: name what stays with select()",
                                           "UNSUPPORTED_METHOD")  # fmt: skip
            gone.append(literal(column.name))
        return self._of_items(late("drop", *gone))

    def filter(self, condition: ColumnOrName) -> DataFrame:
        """Rows for which the condition is true: a Column or SQL text."""
        made = self._open()
        made._where.append(made._condition("condition", condition))
        return made

    where = filter

    def alias(self, alias: str) -> DataFrame:
        made = self._closed() if not self._plain() or self._sides else self._copy()
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
        text = other._side(right, [name for name, _ in made._sides])
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

    def _side(self, sides: list[tuple[str, set[str]]], taken: Sequence[str] = ()) -> str:
        """A relation of a join, with its alias: another than those that are taken, where nobody gave it."""
        alias = self._alias or f"__t{self._id}"
        if self._alias is None and alias in taken:
            alias = f"__t{next(_ids)}"
        lineage = set(self._lineage)
        for _, one in self._sides:
            lineage |= one
        sides.append((alias, lineage))
        return f"{self._relation()} AS {quote(alias)}"

    def _combined(self, other: DataFrame, operation: str) -> DataFrame:
        if not isinstance(other, DataFrame):
            raise TypeError(f"other must be a DataFrame, not {given(other)}")
        text = f"({_inside(self)} {operation} {_inside(other)})"
        made = DataFrame(self._spark, text, whole=True)
        made._lineage |= self._lineage
        return made

    def union(self, other: DataFrame) -> DataFrame:
        """Rows of both, columns by place, repeated rows kept."""
        return self._combined(other, "UNION ALL")

    unionAll = union

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:
        """Rows of both, columns by name."""
        if not allowMissingColumns:
            self._check_same_columns(other)
        return self._combined(other, "UNION ALL BY NAME")

    def _check_same_columns(self, other: DataFrame) -> None:
        """As far as the columns are known before the query runs."""
        try:
            mine, theirs = self.columns, other.columns
        except StrandlineError:
            return
        sides = [{name.casefold(): name for name in names} for names in (mine, theirs)]
        if alone := [name for a, b in (sides, sides[::-1]) for key, name in a.items() if key not in b]:
            raise InvalidArgumentError(
                f"unionByName(): {', '.join(alone)} is on one side alone; allowMissingColumns=True makes it "
                "null on the other", "UNRESOLVED_COLUMN")  # fmt: skip

    def intersect(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "INTERSECT")

    def intersectAll(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "INTERSECT ALL")

    def subtract(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "EXCEPT")

    def exceptAll(self, other: DataFrame) -> DataFrame:
        return self._combined(other, "EXCEPT ALL")

    def distinct(self) -> DataFrame:
        made = self._copy() if not self._tail else self._closed()
        made._distinct = True
        return made

    def dropDuplicates(self, subset: Optional[list[str]] = None) -> DataFrame:
        """One row of those that are equal in these columns, in all by default: the one that comes
        first when the rows are sorted by all their columns."""
        if not subset:
            return self.distinct()
        parts = ", ".join(name_of("subset", one) for one in accept("subset", subset, list, tuple))
        number = f"__t{self._id}_number"
        inner = self._closed()
        inner._items = ["*", f"row_number() OVER (PARTITION BY {parts} ORDER BY struct(*)) AS {quote(number)}"]
        made = inner._closed()
        made._where = [f"{quote(number)} = 1"]
        made._items = [f"* EXCEPT ({quote(number)})"]
        return made

    drop_duplicates = dropDuplicates

    def orderBy(self, *cols: Any, ascending: Any = True) -> DataFrame:
        made = self._copy() if not self._tail and not self._distinct else self._closed()
        directions = ascending if isinstance(ascending, list) else None
        items = []
        for i, one in enumerate(flat(cols)):
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
        text = f" LIMIT {accept_at_least('num', num, 0, int)}"
        before, offset, skipped = made._tail.partition(" OFFSET ")
        made._tail = before + text + offset + skipped
        return made

    def offset(self, num: int) -> DataFrame:
        """Without the first rows."""
        made = self._copy() if " LIMIT " not in self._tail and " OFFSET " not in self._tail else self._closed()
        made._tail += f" OFFSET {accept_at_least('num', num, 0, int)}"
        return made

    def unpivot(
        self, ids: Any, values: Any, variableColumnName: str, valueColumnName: str
    ) -> DataFrame:  # fmt: skip
        """A row for each of the columns ``values``: its name, its value, and the columns ``ids``.

        :param values: None: all but ``ids``.
        """
        kept = [name_of("ids", one) for one in ([ids] if isinstance(ids, (str, Column)) else ids or [])]
        if values is None:
            names = [quote(name) for name in self._known_columns("unpivot()") if quote(name) not in kept]
        else:
            names = [name_of("values", one) for one in ([values] if isinstance(values, (str, Column)) else values)]
        if not names:
            raise InvalidArgumentError("unpivot() has no column to make rows of", "UNPIVOT_REQUIRES_VALUE_COLUMNS")
        whole: Optional[DataFrame] = None
        for name in names:
            one = self._closed()
            one._items = [*kept, f"{literal(split_name(name)[-1])} AS {quote(variableColumnName)}",
                          f"{name} AS {quote(valueColumnName)}"]  # fmt: skip
            whole = one if whole is None else whole.union(one)
        assert whole is not None
        return whole

    melt = unpivot

    @property
    def na(self) -> DataFrameNaFunctions:
        """Nulls: drop, fill, replace."""
        return DataFrameNaFunctions(self)

    def dropna(self, how: str = "any", thresh: Optional[int] = None, subset: Any = None) -> DataFrame:
        return self.na.drop(how, thresh, subset)

    def fillna(self, value: Any, subset: Any = None) -> DataFrame:
        return self.na.fill(value, subset)

    def replace(self, to_replace: Any, value: Any = None, subset: Any = None) -> DataFrame:
        return self.na.replace(to_replace, value, subset)

    def _of_items(self, items: list[str]) -> DataFrame:
        made = self._open()
        made._items = items
        return made

    def groupBy(self, *cols: Any) -> GroupedData:
        made = self._open()
        return GroupedData(made, [made._text(as_column("cols", one), top=True) for one in flat(cols)],
                           [made._text(as_column("cols", one)) for one in flat(cols)])  # fmt: skip

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

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a frame is a query: collect() gives its rows, columns their names")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _UNSUPPORTED:
            raise AttributeError(f"DataFrame.{name} is not supported; there are {_methods()}")
        try:
            known = self.columns
        except StrandlineError:
            return _Guessed(self._column(name), name)
        if name.casefold() in (one.casefold() for one in known):
            return self._column(name)
        if self._spark._in_pipeline:  # a flow before may add it
            return _Guessed(self._column(name), name)
        raise AttributeError(
            f"the frame has no column {name!r}, and DataFrame no such method{_nearest(name)}; the columns are "
            f"{', '.join(known)}; the methods are {_methods()}"
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
        return self.collect()[-num:] if accept_at_least("num", num, 0, int) else []

    def isEmpty(self) -> bool:
        return not self.take(1)

    def count(self) -> int:
        closed = self._closed()
        closed._items = ["count(*)"]
        return int(closed._result().fetchall()[0][0])

    def foreach(self, f: Callable[[Any], None]) -> None:
        """Calls the function with each row."""
        for row in self.collect():
            f(row)

    def explain(self, *args: Any, **kwargs: Any) -> None:
        """Prints the plan of the query."""
        text = self._spark._with_views(self._spark._expand(self._query(), as_table=self.isStreaming), set())
        for row in self._spark._engine().sql(f"EXPLAIN {text}"):
            print(*row)

    def toPandas(self) -> Any:
        return self._result().df()

    def toArrow(self) -> Any:
        return self._result().arrow()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._result().__arrow_c_stream__(requested_schema)

    def show(self, n: int = 20, truncate: Union[bool, int] = True, vertical: bool = False) -> None:
        accept_at_least("n", n, 0, int)
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


def _methods() -> str:
    return ", ".join(sorted(name for name in dir(DataFrame) if not name.startswith("_")))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, [one for one in dir(DataFrame) if not one.startswith("_")], 1)
    return f" (did you mean {near[0]}?)" if near else ""


class _Guessed(Column):
    """An attribute of a frame whose columns are not known yet: a column, unless it is called."""

    def __init__(self, column: Column, name: str) -> None:
        super().__init__(column)
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AttributeError(f"DataFrame.{self._name}() is not supported{_nearest(self._name)}; the methods are {_methods()}")


def _inside(frame: DataFrame) -> str:
    """A side of a set operation."""
    return f"({frame._query()})" if frame._tail or frame._whole else frame._query()


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
        self._frame._spark._refuse_effects("saveAsTable()")
        engine = self._frame._spark._engine()
        shown = table_name(name)
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
        self._frame._spark._refuse_effects("insertInto()")
        verb = "OVERWRITE" if overwrite or self._mode == "overwrite" else "INTO"
        engine = self._frame._spark._engine()
        engine.sql(f"INSERT {verb} {table_name(tableName)} {self._frame._spark._expand(self._frame._query())}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"df.write.{name} is not supported; there are mode, format, saveAsTable, insertInto")
