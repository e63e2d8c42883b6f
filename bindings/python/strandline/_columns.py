"""Columns of DataFrames: sqlframe makes the expressions, here they become text of the SQL surface."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, Optional, Union

from sqlframe.standalone import StandaloneSession
from sqlframe.standalone import functions as _functions
from sqlframe.base.column import Column
from sqlglot import exp
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from ._arguments import accept
from ._text import literal, plain, quote, sql_name
from .errors import InvalidArgumentError, UnsupportedError

# Names keep their case.
StandaloneSession.builder.config("sqlframe.input.dialect", "spark, normalization_strategy=case_sensitive").getOrCreate()

ColumnOrName = Union[Column, str]

# Names that sqlframe gives calls without alias; the SQL front has Spark's own.
_MADE_UP = re.compile(r"^\w+__\w*__$")
_PLAIN = re.compile(r"^\w+$")


# Marks a column that was taken from a DataFrame: df.id, df["id"].
OF_FRAME = "__strandline_frame_"


def shown(column: Column) -> str:
    """A column as people write it."""
    expression = column.expression.copy()
    for node in expression.find_all(exp.Column):
        if node.table.startswith(OF_FRAME):
            node.set("table", None)
    for name in expression.find_all(exp.Identifier):
        name.set("quoted", not _PLAIN.match(name.name))
    return str(expression.sql(dialect="spark"))


def _no_truth(column: Column) -> bool:
    raise InvalidArgumentError(
        f"{shown(column)} is a column, not true or false: write '&' for 'and', '|' for 'or', "
        "'~' for 'not', with brackets around comparisons, and col.between(1, 3) for 1 <= col <= 3",
        "CANNOT_CONVERT_COLUMN_INTO_BOOL",
    )


_lit = Column._lit


def _literal(value: Any) -> Column:
    """As sqlframe's, but a float is a DOUBLE, as in PySpark; the SQL number 2.5 is a DECIMAL."""
    if not isinstance(value, float):
        return _lit(value)
    if not math.isfinite(value):
        return Column(exp.cast(exp.Literal.string(float.__repr__(value)), "double"))
    number = exp.Var(this=float.__repr__(abs(value)).upper() + "D")
    return Column(number if math.copysign(1, value) > 0 else exp.Neg(this=number))


_cast = Column.cast


def _checked_cast(column: Column, dataType: Any, dialect: Any = None) -> Column:
    try:
        return _cast(column, dataType, dialect)
    except SqlglotError:
        raise InvalidArgumentError(
            f"cast({dataType!r}): that is no type; write it as in SQL: 'int', 'decimal(10,2)', 'array<string>'",
            "PARSE_SYNTAX_ERROR",
        ) from None


# Without it Python takes every column for true, and `a and b` is b alone.
Column.__bool__ = _no_truth  # type: ignore[attr-defined]
Column._lit = staticmethod(_literal)  # type: ignore[method-assign]
Column.cast = _checked_cast  # type: ignore[method-assign, assignment]
Column.astype = _checked_cast  # type: ignore[attr-defined]
Column.__repr__ = lambda column: f"Column<'{shown(column)}'>"  # type: ignore[method-assign]


def expr(str: str) -> Column:
    """A column from SQL text, which is taken as it is."""
    text = accept("str", str, type("")).strip()
    try:
        parsed: Any = parse_one(text, read="spark")
    except SqlglotError:
        parsed = None  # more of Spark's SQL is understood here than sqlglot reads
    if isinstance(parsed, (exp.Alias, exp.Star)):
        for name in parsed.find_all(exp.Identifier):
            name.set("this", name.name.replace("${$}", "$"))
        return Column(parsed)
    if isinstance(parsed, exp.Column) and _PLAIN.match(text):
        return _functions.col(text)
    return Column(exp.Paren(this=exp.Var(this=text)))


def _input_file_name(*args: Any) -> Column:
    raise UnsupportedError("input_file_name(): select _metadata.file_path", "UNSUPPORTED_FUNCTION")


_OURS: dict[str, Callable[..., Any]] = {"expr": expr, "input_file_name": _input_file_name}


class Functions(ModuleType):
    """``pyspark.sql.functions``: sqlframe's, which print Spark SQL."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Functions.__doc__)
        self.__all__ = sorted(n for n in dir(_functions) if not n.startswith("_") and callable(getattr(_functions, n)))

    def __getattr__(self, name: str) -> Any:
        if name in _OURS:
            return _OURS[name]
        if name in ("udf", "pandas_udf", "udtf"):
            raise UnsupportedError(
                f"{name}: functions in Python are not supported; use the functions of pyspark.sql.functions "
                "or expr('SQL')", "UNSUPPORTED_FUNCTION")  # fmt: skip
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(_functions, name)
        except AttributeError:
            raise AttributeError(
                f"pyspark.sql.functions.{name} is not available here; expr('SQL') takes any function of the SQL surface"
            ) from None


functions = Functions("pyspark.sql.functions")


def as_column(parameter: str, value: Any) -> Column:
    """A str is a column's name."""
    if isinstance(value, Column):
        return value
    accept(parameter, value, str, Column)
    if value == "*":
        return Column(exp.Star())
    return _functions.col(value)


def _verbatim(node: exp.Expression) -> exp.Expression:
    return exp.Var(this=literal(node.name)) if isinstance(node, exp.Literal) and node.is_string and "${" in node.name else node


def spelled(expression: exp.Expression) -> str:
    """SQL of an expression or a type, which it changes."""
    for name in expression.find_all(exp.Identifier):
        name.set("this", plain(name.name))
    return str(expression.sql(dialect="spark", identify=True))


def column_text(column: Column, qualifier_of: Callable[[str], Optional[str]], *, top: bool = False) -> str:
    """SQL of a column. qualifier_of tells what stands for a frame's id; None: nothing. top: in a
    select list."""
    expression = column.expression.copy()
    if isinstance(expression, exp.Alias) and (not top or _MADE_UP.match(expression.alias)):
        if not top or _MADE_UP.match(expression.alias):
            expression = expression.this
    for node in list(expression.find_all(exp.Column)):
        table = node.args.get("table")
        if table is not None and table.name.startswith(OF_FRAME):
            qualifier = qualifier_of(table.name[len(OF_FRAME) :])
            node.set("table", exp.to_identifier(qualifier, quoted=True) if qualifier else None)
    return spelled(expression.transform(_verbatim, copy=False))


def _no_frame(_: str) -> Optional[str]:
    return None


def expression_text(parameter: str, value: Any) -> str:
    """SQL of an expression given as a Column or as SQL text."""
    if isinstance(value, Column):
        return column_text(value, _no_frame)
    text = accept(parameter, value, str, Column).strip()
    if not text:
        raise ValueError(f"{parameter} is empty: give a column or an SQL expression")
    return str(text)


def name_of(parameter: str, value: Any) -> str:
    """A column's name in SQL, given as str or Column."""
    if isinstance(value, Column):
        expression = value.expression
        if not isinstance(expression, exp.Column):
            raise InvalidArgumentError(
                f"{parameter} takes columns by name, not the expression {expression.sql(dialect='spark')}",
                "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER" if parameter == "keys" else "INVALID_COLUMN_NAME")  # fmt: skip
        return ".".join(quote(part.name) for part in expression.parts)
    return sql_name(parameter, accept(parameter, value, str, Column), most=99)


def names_of(parameter: str, value: Any) -> list[str]:
    """A list of columns; None and an empty list are the same: nothing."""
    if value is None:
        return []
    return [name_of(parameter, one) for one in accept(parameter, value, list, tuple)]
