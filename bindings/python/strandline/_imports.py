"""While our engine runs user code, ``pyspark`` and ``dlt`` are ours, whether or not they are installed."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Optional

_NAMES = ("pyspark", "dlt")


def is_ours(name: str) -> bool:
    return name.split(".")[0] in _NAMES


def _contents(spark: Any) -> dict[str, dict[str, Any]]:
    """What each module holds."""
    from sqlframe.base.column import Column
    from sqlframe.standalone import Window, types

    from . import errors, pipelines
    from ._columns import functions
    from ._row import Row
    from ._spark import DataFrame, DataFrameReader, DataFrameWriter, DataStreamReader, GroupedData, SparkSession
    from ._streams import DataStreamWriter, StreamingQuery

    class Builder:
        """``SparkSession.builder``: there is one session, ``spark``."""

        def __getattr__(self, name: str) -> Any:
            if name in ("getOrCreate", "create"):
                return lambda: spark
            if name.startswith("_"):
                raise AttributeError(name)
            return lambda *args, **kwargs: self

    class Session(SparkSession):
        builder = Builder()

        @staticmethod
        def getActiveSession() -> Any:
            return spark

        active = getActiveSession

    Session.__name__ = "SparkSession"
    declarations = {name: getattr(pipelines, name) for name in pipelines.__all__}
    # Of dlt alone.
    readers = {"read": spark.read.table, "read_stream": spark.readStream.table}
    sql = {
        "Column": Column, "DataFrame": DataFrame, "DataFrameReader": DataFrameReader,
        "DataFrameWriter": DataFrameWriter, "GroupedData": GroupedData, "Row": Row, "SparkSession": Session,
        "Window": Window,
    }  # fmt: skip
    exceptions = {
        "AnalysisException": errors.AnalysisError, "IllegalArgumentException": errors.InvalidArgumentError,
        "ParseException": errors.InvalidArgumentError, "PySparkException": errors.StrandlineError,
        "PySparkTypeError": TypeError, "PySparkValueError": ValueError,
    }  # fmt: skip
    return {
        "dlt": {
            **declarations,
            **readers,
            "__doc__": pipelines.__doc__,
            "__all__": [*pipelines.__all__, *readers],
            "__getattr__": _missing("dlt", [*pipelines.__all__, *readers]),
        },
        "pyspark": {"Row": Row, "__version__": spark.version, "__path__": [], "__getattr__": _submodule("pyspark")},
        "pyspark.errors": exceptions,
        "pyspark.pipelines": {
            **declarations,
            "__doc__": pipelines.__doc__,
            "__all__": pipelines.__all__,
            "__getattr__": _missing("pyspark.pipelines", pipelines.__all__),
        },
        "pyspark.sql": {**sql, "__path__": [], "__getattr__": _submodule("pyspark.sql")},
        "pyspark.sql.column": {"Column": Column},
        "pyspark.sql.dataframe": {"DataFrame": DataFrame},
        "pyspark.sql.functions": {name: getattr(functions, name) for name in functions.__all__}
        | {"expr": functions.expr, "__getattr__": functions.__getattr__, "__all__": functions.__all__},
        "pyspark.sql.readwriter": {"DataFrameReader": DataFrameReader, "DataFrameWriter": DataFrameWriter},
        "pyspark.sql.session": {"SparkSession": Session},
        "pyspark.sql.streaming": {
            "DataStreamReader": DataStreamReader,
            "DataStreamWriter": DataStreamWriter,
            "StreamingQuery": StreamingQuery,
        },
        "pyspark.sql.types": {name: getattr(types, name) for name in dir(types) if name[0].isupper()} | {"Row": Row},
        "pyspark.sql.utils": exceptions,
        "pyspark.sql.window": {"Window": Window},
    }


def _submodule(package: str) -> Callable[[str], Any]:
    """A module of a package that only the package was imported of."""

    def load(name: str) -> Any:
        if not name.startswith("_"):
            try:
                return importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError:
                pass
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def _missing(module: str, there: list[str]) -> Callable[[str], Any]:
    """What a module says of a name that it lacks."""

    def refuse(name: str) -> Any:
        raise AttributeError(f"{module}.{name} is not there; there are {', '.join(there)}")

    return refuse


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._modules: Optional[dict[str, dict[str, Any]]] = None

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if not is_ours(fullname):
            return None
        if self._modules is None:
            self._modules = _contents(self._spark)
        if fullname not in self._modules:
            there = ", ".join(sorted(self._modules))
            raise ModuleNotFoundError(
                f"{fullname} is not part of what Strandline runs pipelines with; there are {there}", name=fullname
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package="__path__" in self._modules[fullname])

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert self._modules is not None
        module.__dict__.update(self._modules[module.__name__])


@contextmanager
def resolving(spark: Any) -> Iterator[None]:
    """``pyspark`` and ``dlt`` are ours inside; outside they are what they were."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if is_ours(name)}
    finder = _Finder(spark)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if is_ours(name)]:
            del sys.modules[name]
        sys.modules.update(before)
