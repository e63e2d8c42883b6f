"""``spark``: lazy DataFrames that are relations of the SQL surface.

A DataFrame is the text of a query. Sources that are streams have two texts: as a flow reads them
(``STREAM(t)``) and as their table, by which columns are found out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Optional

from ._arguments import accept
from ._frames import DataFrame, DataFrameWriter
from ._grouped import GroupedData
from ._large import Files
from ._readers import DataFrameReader, DataStreamReader
from ._session import Source
from ._text import quote
from ._volumes import Volumes
from ._warehouse import Warehouse
from .errors import NotFoundError, UnsupportedError

__all__ = [
    "DataFrame", "DataFrameReader", "DataFrameWriter", "DataStreamReader", "GroupedData", "Source", "SparkSession",
]  # fmt: skip

_SOURCE = re.compile("\x00(\\d+)\x00")
_STREAM_WORD = re.compile(r"\bstream\b\s*[(`\w]", re.IGNORECASE)
_COMMENTS_BEFORE = re.compile(r"\A(?:\s+|--[^\n]*|/\*.*?\*/)+", re.DOTALL)


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
        self._files = Files()
        self.taking_snapshots = False  # functions of snapshots run
        self.conf = Configuration(configuration or {}, self._tell)

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
        text = _COMMENTS_BEFORE.sub("", accept("sqlQuery", sqlQuery, str)).strip().rstrip(";").strip()
        if args:
            raise UnsupportedError("args of spark.sql(): put the values into the text", "UNSUPPORTED_ARGUMENT")
        if re.match(r"(select|with|values|from|table|\()", text, re.IGNORECASE) is None:
            if re.match(r"(describe|desc|show|explain|set|reset|use)\b", text, re.IGNORECASE) is None:
                self._refuse_effects(f"spark.sql('{text.split(None, 1)[0].upper() if text else ''} …')")
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

    def _refuse_effects(self, what: str) -> None:
        """Files of a pipeline declare. What they did at their top would happen whenever the pipeline is looked at, by
        --dry-run and plan too, and again with each update.

        :raises UnsupportedError: this is a pipeline's file; functions of snapshots run in updates alone.
        """
        if self._in_pipeline and not self.taking_snapshots:
            raise UnsupportedError(
                f"{what} changes something, and a pipeline's file only declares: declare a table or a view, or run it "
                "in a script (strandline python) or with strandline sql", "EFFECT_IN_PIPELINE_FILE")  # fmt: skip

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

        # The text of a declared dataset is what the next update finds again; a file would be gone.
        files = self._files if not self._in_pipeline or self.taking_snapshots else None
        return DataFrame(self, f"({values_query(data, schema, files)})", whole=True)

    def createOrReplaceTempView(self, name: str, frame: DataFrame) -> None:
        self._temporary[accept("name", name, str)] = frame

    # --- what PySpark programs ask a session for

    version = "4.0.0"

    @property
    def catalog(self) -> Any:
        raise UnsupportedError("spark.catalog is not supported: use spark.sql('SHOW TABLES')", "UNSUPPORTED_METHOD")

    def stop(self) -> None:
        """Nothing: the session ends with the program."""

    def _end(self) -> None:
        self._files.remove()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"spark.{name} is not supported; there are read, readStream, table, sql, range, createDataFrame, conf"
        )

    # --- engine

    def _engine(self) -> Warehouse:
        if self._warehouse is None:
            self._warehouse = self._open()
            for key, value in self.conf.items():
                self._tell(key, value)
        return self._warehouse

    def _tell(self, key: str, value: str) -> None:
        """The engine replaces ${key} in SQL texts, too, if SET can say the value."""
        if self._warehouse is not None and re.fullmatch(r"[\w.]+", key) and not re.search(r"[;\n'\"`]|--|/\*", value):
            self._warehouse.sql(f"SET {key} = {value}")

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

    def __init__(self, values: Mapping[str, str], tell: Callable[[str, str], None]) -> None:
        self._values = dict(values)
        self._tell = tell

    def items(self) -> list[tuple[str, str]]:
        return list(self._values.items())

    def get(self, key: str, default: Optional[str] = None) -> Optional[str]:
        """:raises NotFoundError: nothing is set and no default is given."""
        if key in self._values or default is not None:
            return self._values.get(key, default)
        raise NotFoundError(f"'{key}' is not set: write it into 'configuration' of the pipeline's spec file",
                            "SQL_CONF_NOT_FOUND")  # fmt: skip

    def set(self, key: str, value: Any) -> None:
        self._values[key] = str(value)
        self._tell(key, self._values[key])
