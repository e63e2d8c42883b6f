"""Strandline: AUTO CDC pipelines into Delta Lake tables, on one machine.

::

    import strandline

    warehouse = strandline.connect("warehouse")
    warehouse.sql("SELECT * FROM users").df()
    strandline.Pipeline("my_pipeline").run()

Pipelines are folders of ``.sql`` and ``.py`` files; see :mod:`strandline.pipelines`.
"""

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

__all__ = [
    "AlreadyExistsError", "BusyError", "CancelledError", "ConflictError", "CorruptError", "Expectation",
    "Field", "Flow", "History", "InternalError", "InvalidArgumentError", "InvalidDataError", "IoError", "NotFoundError",
    "Pipeline", "Place", "Progress", "Result", "StrandlineError", "Table", "UnsupportedError", "Update",
    "UpdateError", "Version", "Warehouse", "__version__", "connect",
]  # fmt: skip
