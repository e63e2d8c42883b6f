"""``spark.read`` and ``spark.readStream``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional, TypeVar

from ._arguments import accept, accept_one_of, accept_path
from ._frames import DataFrame
from ._session import Session, Source
from ._text import literal, quote, schema_text, table_name
from .errors import InvalidArgumentError, UnsupportedError

R = TypeVar("R", bound="_Reader")


def _option_text(key: str, value: Any) -> str:
    accept(f"option {key!r}", value, str, int, float, bool)
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Reader:
    def __init__(self, spark: Session) -> None:
        self._spark = spark
        self._format: Optional[str] = None
        self._options: dict[str, str] = {}
        self._schema: Optional[str] = None

    def format(self: R, source: str) -> R:
        """csv, json, parquet, delta, ..."""
        self._format = accept("format", source, str)
        return self

    def option(self: R, key: str, value: Any) -> R:
        """One option; keys are case-insensitive."""
        key = accept("key", key, str)
        for known in [one for one in self._options if one.casefold() == key.casefold()]:
            del self._options[known]
        if value is not None:
            self._options[key] = _option_text(key, value)
        return self

    def options(self: R, **options: Any) -> R:
        for key, value in options.items():
            self.option(key, value)
        return self

    def schema(self: R, schema: Any) -> R:
        """Columns of the files: DDL or a StructType."""
        self._schema = schema_text(schema)
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
        place = self._spark._volumes.mapped(accept_path("path", path))
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
                f"format({format_!r}) is not supported: csv, json, parquet, delta and (not as a stream) jdbc are",
                "UNSUPPORTED_FORMAT",
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

    def load(self, path: Any = None) -> DataFrame:
        raise NotImplementedError

    def csv(self, path: Any, **options: Any) -> DataFrame:
        return self.format("csv").options(**options).load(path)

    def json(self, path: Any, **options: Any) -> DataFrame:
        return self.format("json").options(**options).load(path)

    def parquet(self, path: Any, **options: Any) -> DataFrame:
        return self.format("parquet").options(**options).load(path)


class DataFrameReader(_Reader):
    """``spark.read``."""

    def table(self, tableName: str) -> DataFrame:
        """A table or view; options: readChangeFeed with its range, versionAsOf, timestampAsOf."""
        text = accept("tableName", tableName, str)
        view: Optional[DataFrame] = self._spark._temporary.get(text)
        if view is not None:
            return view
        return self._table_text(table_name(text), False, text)

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
            if not version.isdigit():
                raise InvalidArgumentError(
                    f"versionAsOf must be the number of a version, not {version!r}", "DELTA_VERSION_INVALID"
                )
            name += f" VERSION AS OF {version}"
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

    def load(self, path: Any = None, format: Optional[str] = None, schema: Any = None, **options: Any) -> DataFrame:
        """Files of the format; a folder, a file or a pattern."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if (self._format or "").lower() == "jdbc":
            return self._jdbc(path)
        return self._files(path, False)

    def _jdbc(self, path: Any) -> DataFrame:
        from . import _jdbc

        if path is not None:
            raise InvalidArgumentError("load() of format('jdbc') takes no path: give the options url and dbtable",
                                       "JDBC_OPTION")  # fmt: skip
        if self._schema is not None:
            raise UnsupportedError("format('jdbc') takes no schema(): the database has one; cast columns with select()",
                                   "JDBC_OPTION")  # fmt: skip
        text = _jdbc.read_text(self._options)
        return DataFrame(self._spark, self._spark._source(Source(text, text, False)))

    def jdbc(self, url: str, table: str, *rest: Any, properties: Optional[Mapping[str, str]] = None,
             predicates: Optional[list[str]] = None, **options: Any) -> DataFrame:  # fmt: skip
        """A table of another database; ``properties``: user, password and the like."""
        if predicates is not None:
            raise UnsupportedError("predicates of jdbc() are not supported: filter() the frame", "UNSUPPORTED_ARGUMENT")
        names = ("column", "lowerBound", "upperBound", "numPartitions")
        if len(rest) > len(names):
            raise TypeError("jdbc() takes url, table, column, lowerBound, upperBound and numPartitions by position; "
                            "give properties by name")  # fmt: skip
        for name, value in {**dict(zip(names, rest)), **options}.items():
            accept_one_of("jdbc() parameter", name, names)
            self.option("partitionColumn" if name == "column" else name, value)
        for key, value in (properties or {}).items():
            self.option(key, value)
        return self.format("jdbc").option("url", url).option("dbtable", table).load()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"spark.read.{name} is not supported; there are table, load, csv, json, parquet, jdbc, format, option, options, schema"
        )


class DataStreamReader(_Reader):
    """``spark.readStream``."""

    def table(self, tableName: str) -> DataFrame:
        """A table or view as a stream; options go to ``STREAM name WITH (...)``."""
        return self._table_text(table_name(accept("tableName", tableName, str)), True)

    def _table_text(self, name: str, stream: bool) -> DataFrame:
        options = ", ".join(f"{key} = {literal(value)}" for key, value in self._options.items())
        for key in self._options:
            if not re.fullmatch(r"\w+", key):
                raise InvalidArgumentError(f"a streaming read has no option {key!r}", "UNKNOWN_OPTION")
        text = f"STREAM {name} WITH ({options})" if options else f"STREAM({name})"
        feed = next((v for k, v in self._options.items() if k.casefold() == "readchangefeed"), "false")
        table = f"table_changes({literal(name)}, 0)" if feed.lower() == "true" else name
        return DataFrame(self._spark, self._spark._source(Source(text, table, True)))

    def load(self, path: Any = None, format: Optional[str] = None, schema: Any = None, **options: Any) -> DataFrame:
        """Files as a stream: each is read once."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        return self._files(path, True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"spark.readStream.{name} is not supported; there are table, load, csv, json, parquet, format, option, options, schema"
        )
