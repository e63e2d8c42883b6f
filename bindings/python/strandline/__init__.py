"""Strandline: AUTO CDC pipelines into Delta Lake tables, on one machine.

::

    import strandline

    warehouse = strandline.connect("warehouse")
    warehouse.sql("SELECT * FROM users").df()
    strandline.Pipeline("my_pipeline").run()

Pipelines are folders of ``.sql`` and ``.py`` files; see :mod:`strandline.pipelines`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import __version__
from ._history import History
from ._pipeline import Expectation, Flow, Pipeline, Progress, Update
from ._result import Result
from ._warehouse import Field, Table, Version, Warehouse, connect
from .errors import (
    AlreadyExistsError,
    BusyError,
    CancelledError,
    ConflictError,
    CorruptError,
    InternalError,
    InvalidArgumentError,
    InvalidDataError,
    IoError,
    NotFoundError,
    Place,
    StrandlineError,
    UnsupportedError,
    UpdateError,
)

if TYPE_CHECKING:
    from ._spark import DataFrame, SparkSession

__all__ = [
    "AlreadyExistsError", "BusyError", "CancelledError", "ConflictError", "CorruptError", "DataFrame", "Expectation",
    "Field", "Flow", "History", "InternalError", "InvalidArgumentError", "InvalidDataError", "IoError", "NotFoundError",
    "Pipeline", "Place", "Progress", "Result", "SparkSession", "StrandlineError", "Table", "UnsupportedError", "Update",
    "UpdateError", "Version", "Warehouse", "__version__", "connect",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("DataFrame", "SparkSession"):  # of use for types; what makes them takes a while to import
        from . import _spark

        return getattr(_spark, name)
    raise AttributeError(f"strandline.{name} is not there; there are {', '.join(__all__)}")
