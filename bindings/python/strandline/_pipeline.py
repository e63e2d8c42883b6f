"""Updates of pipelines, and what they gave."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _core
from ._arguments import accept, accept_at_least, accept_path, given
from ._extensions import use_extensions
from ._warehouse import Warehouse, connect
from .errors import CancelledError, NotFoundError, StrandlineError, UpdateError


@dataclass(frozen=True)
class Expectation:
    """What an expectation said of the rows that a flow brought in this update."""

    name: str
    dataset: str  # the table or view that declares it
    passed_records: int
    failed_records: int  # false or null, kept or dropped
    dropped_records: int  # of the failed ones


@dataclass(frozen=True)
class Flow:
    """One flow in one update."""

    name: str
    target: str
    status: str  # COMPLETED, FAILED, SKIPPED, CANCELED, EXCLUDED (not selected)
    metrics: dict[str, float]  # num_input_rows, num_upserted_rows, ...: rows, bytes, seconds
    expectations: list[Expectation]
    dropped_records: int  # rows, whichever expectations dropped them


@dataclass(frozen=True)
class Update:
    """The outcome of one update of a pipeline."""

    update_id: str
    status: str  # COMPLETED, FAILED, INVALID, CANCELED
    flows: list[Flow]
    errors: list[StrandlineError] = field(default_factory=list)
    warnings: list[StrandlineError] = field(default_factory=list)
    graph: str = ""  # text picture: sources -> flows -> targets

    @property
    def ok(self) -> bool:
        """It completed."""
        return self.status == "COMPLETED"

    def flow(self, name: str) -> Flow:
        """A flow by its name. :raises KeyError: there is none."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise KeyError(f"no flow {name!r}; there are {', '.join(flow.name for flow in self.flows)}")

    def _repr_html_(self) -> str:
        """Its flows as a table, then what went wrong."""
        metrics = {"num_input_rows": "rows in", "num_upserted_rows": "upserted", "num_deleted_rows": "deleted",
                   "duration_seconds": "seconds"}  # fmt: skip
        head = "".join(f"<th>{text}</th>" for text in ("flow", "target", "status", *metrics.values()))
        body = ""
        for flow in self.flows:
            cells = [flow.name, flow.target, flow.status, *(f"{flow.metrics.get(name, 0):,.10g}" for name in metrics)]
            body += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        told = "".join(f"<pre>{html.escape(str(one))}</pre>" for one in (*self.errors, *self.warnings))
        return (f"<p>update {html.escape(self.status)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
                f"{told}")  # fmt: skip

    def raise_for_status(self) -> Update:
        """Itself, if it completed. :raises UpdateError: else; the first error is its cause."""
        if self.ok:
            return self
        text = "; ".join(map(str, self.errors)) or f"the update is {self.status}"
        error: StrandlineError
        if self.status == "CANCELED":
            error = CancelledError(text, "CANCELED")
        else:
            error = UpdateError(text, self.errors[0].code if self.errors else "UPDATE_FAILED")
            error.update = self
        raise error from (self.errors[0] if self.errors else None)


@dataclass(frozen=True)
class Progress:
    """Something that happened while an update runs."""

    kind: str  # update_started, flow_started, stage, rows, flow_done, update_done
    flow: str
    stage: str  # of flow_done: the flow's status
    rows: int  # so far in this flow
    elapsed_seconds: float  # of this flow
    fraction: Optional[float]  # of the running statement; None: not known


class Pipeline:
    """A pipeline: a directory of ``.sql`` and ``.py`` files, or its spec file.

    :raises NotFoundError: there is none. :raises InvalidArgumentError: a broken spec file.
    """

    def __init__(self, path: Any, *, warehouse: Any = None) -> None:
        self._path = accept_path("path", path)
        self._given = None if warehouse is None else accept_path("warehouse", warehouse)
        try:
            place = _core.locate_pipeline(self._path)
        except NotFoundError:
            folder = os.path.abspath(self._path)
            if not os.path.isdir(folder):
                raise
            # A plain folder of files, with nothing that says more.
            place = (os.path.basename(folder), folder, os.path.join(folder, "warehouse"), "main", "default")
        self.name, self.directory, self.warehouse_path, *self._defaults = place
        if self._given is not None:
            self.warehouse_path = self._given

    def run(
        self,
        *,
        refresh: Optional[Sequence[str]] = None,
        full_refresh: Optional[Sequence[str]] = None,
        full_refresh_all: bool = False,
        allow_missing_sources: bool = False,
        dry_run: bool = False,
        progress: Optional[Callable[[Progress], object]] = None,
        memory_limit_bytes: int = 0,
        threads: int = 0,
        check: bool = True,
    ) -> Update:
        """Runs one update: every flow takes what is new. Ctrl-C stops it; the next one goes on.

        :param refresh: update only these tables.
        :param full_refresh: rebuild these tables from their sources, update the others.
        :param full_refresh_all: rebuild every table.
        :param allow_missing_sources: a full refresh goes on without source files that are gone.
        :param dry_run: check everything, touch nothing.
        :param progress: called as things happen; what it raises stops the update.
        :param check: False gives the outcome whatever it is, else failures are raised.
        :raises UpdateError: the update failed or the pipeline is invalid; ``.update`` has all.
        """
        chosen = [refresh is not None, full_refresh is not None, full_refresh_all]
        if sum(chosen) > 1:
            raise ValueError("give one of refresh, full_refresh and full_refresh_all")
        kind = ["selected", "full_selected", "full_all"][chosen.index(True)] if any(chosen) else "update"
        tables = refresh if refresh is not None else full_refresh
        if tables is not None:
            parameter = "refresh" if refresh is not None else "full_refresh"
            if not isinstance(tables, (list, tuple, set, frozenset)) or not all(isinstance(one, str) for one in tables):
                raise TypeError(f"{parameter} must be a list of names of tables, not {given(tables)}; full_refresh_all=True "
                                "rebuilds every table")  # fmt: skip

        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be a function of one event, not {given(progress)}")
        for parameter, flag in (("full_refresh_all", full_refresh_all), ("allow_missing_sources", allow_missing_sources),
                                ("dry_run", dry_run), ("check", check)):  # fmt: skip
            accept(parameter, flag, bool)

        # Its .py files run with this interpreter.
        os.environ.setdefault("STRANDLINE_PYTHON", sys.executable)
        use_extensions()

        def tell(kind: str, flow: str, stage: str, rows: int, elapsed: float, fraction: float) -> None:
            if progress is not None:
                progress(Progress(kind, flow, stage, rows, elapsed, fraction if fraction >= 0 else None))

        report = _core.run_update(
            self._path, self._given, kind, list(tables or []), allow_missing_sources, dry_run,
            accept_at_least("memory_limit_bytes", memory_limit_bytes, 0, int), accept_at_least("threads", threads, 0, int),
            tell if progress is not None else None,
        )  # fmt: skip
        update = Update(
            report["update_id"], report["status"],
            [
                Flow(one["name"], one["target"], one["status"], one["metrics"],
                     [Expectation(*each) for each in one["expectations"]], one["dropped_records"])
                for one in report["flows"]
            ],
            report["errors"], report["warnings"], report["graph"],
        )  # fmt: skip
        return update.raise_for_status() if check else update

    def warehouse(self) -> Warehouse:
        """Its warehouse, with the pipeline's catalog and schema for names that name none."""
        catalog, schema = self._defaults
        return connect(self.warehouse_path, catalog=catalog, schema=schema)

    def __repr__(self) -> str:
        return f"<strandline.Pipeline {self.name!r} in {self.directory!r}>"
