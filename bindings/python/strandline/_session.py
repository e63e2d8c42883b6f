"""What DataFrames and readers need of ``spark``."""

from __future__ import annotations

from typing import Any, Protocol

from ._volumes import Volumes
from ._warehouse import Warehouse


class Source:
    """A relation at the bottom of a query."""

    def __init__(self, text: str, table: str, streaming: bool) -> None:
        self.text = text
        self.table = table  # the same columns, read as a table
        self.streaming = streaming


class Session(Protocol):
    """The session that a frame belongs to: :class:`strandline.SparkSession`. Queries hold marks where
    their sources stand."""

    _volumes: Volumes
    _in_pipeline: bool
    _temporary: dict[str, Any]  # views: name -> DataFrame

    def _engine(self) -> Warehouse: ...
    def _refuse_effects(self, what: str) -> None:
        """Nothing but an error in a pipeline's file."""

    def _source(self, source: Source) -> str:
        """The mark of a source."""

    def _expand(self, text: str, *, as_table: bool = False) -> str:
        """The query with its sources; as_table: streams read as their tables."""

    def _uses_stream(self, text: str) -> bool: ...
    def _columns_of(self, query: str) -> list[tuple[str, str]]:
        """Names and types."""

    def _with_views(self, text: str, open_: set[str]) -> str:
        """An expanded query with the pipeline's views that it names."""

    def createOrReplaceTempView(self, name: str, frame: Any) -> None: ...
