"""``writeStream``: streams into tables, outside of a pipeline.

Streams into one table are flows of one small pipeline in the warehouse, so that their progress,
exactly-once commits and recovery are those of every pipeline. A checkpoint folder holds the name of
its flow: another checkpoint is another flow, which begins anew.

    <warehouse>/_strandline/streams/<catalog.schema.table>/     the pipeline's spec and SQL
    <checkpoint>/metadata                                       {"id": …, "target": …}
"""

from __future__ import annotations

import atexit
import json
import threading
import uuid
from pathlib import Path
from typing import Any, Optional

from . import _core
from ._arguments import accept, given
from ._pipeline import Pipeline, Update
from ._text import quote, split_name, sql_name
from .errors import CorruptError, InvalidArgumentError, UnsupportedError

_active: list[StreamingQuery] = []


class DataStreamWriter:
    """``df.writeStream``: options, a trigger, then :meth:`toTable`."""

    def __init__(self, frame: Any) -> None:
        if not frame.isStreaming:
            raise InvalidArgumentError("writeStream writes a stream: read it with spark.readStream, or use df.write",
                                       "WRITE_STREAM_NOT_ALLOWED")  # fmt: skip
        self._frame = frame
        self._checkpoint: Optional[str] = None
        self._interval_seconds: Optional[float] = 1.0  # None: what is there, then stop
        self._name: Optional[str] = None

    def option(self, key: str, value: Any) -> DataStreamWriter:
        """``checkpointLocation``: the folder that remembers what was done."""
        if accept("key", key, str).casefold() != "checkpointlocation":
            raise UnsupportedError(f"writeStream has no option {key!r}; there is checkpointLocation", "UNKNOWN_OPTION")
        self._checkpoint = accept("checkpointLocation", value, str)
        return self

    def options(self, **options: Any) -> DataStreamWriter:
        for key, value in options.items():
            self.option(key, value)
        return self

    def format(self, source: str) -> DataStreamWriter:
        if accept("format", source, str).lower() != "delta":
            raise UnsupportedError(f"streams are written into Delta tables, not {source}", "UNSUPPORTED_FORMAT")
        return self

    def outputMode(self, outputMode: str) -> DataStreamWriter:
        if accept("outputMode", outputMode, str).lower() != "append":
            raise UnsupportedError(f"outputMode({outputMode!r}) is not supported: rows are appended", "UNSUPPORTED_MODE")
        return self

    def queryName(self, queryName: str) -> DataStreamWriter:
        self._name = accept("queryName", queryName, str)
        return self

    def trigger(
        self,
        *,
        processingTime: Optional[str] = None,
        once: Optional[bool] = None,
        continuous: Optional[str] = None,
        availableNow: Optional[bool] = None,
    ) -> DataStreamWriter:
        """``availableNow`` (or ``once``): what is there, in as many batches as the limits ask for.
        ``processingTime="10 seconds"``: then goes on at this interval. Without: every second."""
        if sum(one is not None for one in (processingTime, once, continuous, availableNow)) != 1:
            raise InvalidArgumentError("trigger() takes one of processingTime, once and availableNow",
                                       "ONLY_ALLOW_SINGLE_TRIGGER")  # fmt: skip
        if continuous is not None:
            raise UnsupportedError("trigger(continuous=…) is not supported: use processingTime", "UNSUPPORTED_TRIGGER")
        self._interval_seconds = None if processingTime is None else _seconds(processingTime)
        return self

    def toTable(self, tableName: str) -> StreamingQuery:
        """Starts the stream into a table, which is made if it is not there. With availableNow it
        runs in the background until everything is there: ``awaitTermination()`` waits for it."""
        if self._checkpoint is None:
            raise InvalidArgumentError("writeStream needs .option('checkpointLocation', folder)",
                                       "CHECKPOINT_LOCATION_MISSING")  # fmt: skip
        query = StreamingQuery(self._frame, sql_name("tableName", tableName), self._checkpoint, self._name,
                               self._interval_seconds)  # fmt: skip
        _active.append(query)
        query._thread.start()
        return query

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"writeStream.{name} is not supported; there are option, options, format, outputMode, queryName, trigger, toTable"
        )


def _seconds(text: str) -> float:
    units = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "millisecond": 0.001, "day": 86400.0}
    number, _, unit = accept("processingTime", text, str).strip().partition(" ")
    try:
        return float(number) * units[unit.strip().rstrip("s")]
    except (ValueError, KeyError):
        raise InvalidArgumentError(f"processingTime: {given(text)} is no interval; write one such as '10 seconds'",
                                   "INVALID_INTERVAL") from None  # fmt: skip


class StreamingQuery:
    """A stream that runs in the background."""

    def __init__(self, frame: Any, target: str, checkpoint: str, name: Optional[str], interval: Optional[float]) -> None:
        engine = frame._spark._engine()
        warehouse, catalog, schema = engine._options[0], engine._options[1], engine._options[2]
        if not warehouse:
            raise InvalidArgumentError("writeStream needs a warehouse: connect(folder)", "WAREHOUSE_NOT_GIVEN")
        parts = split_name(target)
        full = ".".join(([catalog, schema] + parts)[-3:]).casefold()
        self.id = _checkpoint_id(Path(_core.local_path(frame._spark._volumes.mapped(checkpoint))), full)
        self.name = name
        self._interval = interval
        folder = Path(warehouse) / "_strandline" / "streams" / full
        spec = {"name": f"stream_into.{full}", "catalog": catalog, "schema": schema,
                "storage": str(Path(warehouse).resolve()), "libraries": [{"glob": {"include": "stream.sql"}}]}  # fmt: skip
        statements = (
            f"CREATE STREAMING TABLE {target};\n"
            f"CREATE FLOW {quote('stream_' + self.id)} AS INSERT INTO {target} BY NAME {frame._statement()};\n"
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spark-pipeline.yml").write_text(json.dumps(spec), encoding="utf-8")
        self._place = folder
        self._statements = statements
        self._stop = threading.Event()
        self._turn = threading.Condition()
        self._turns = 0  # updates that ended
        self._error: Optional[BaseException] = None
        self.lastProgress: Optional[dict[str, Any]] = None
        self._thread = threading.Thread(target=self._run, name=f"stream into {full}", daemon=True)

    def _run(self) -> None:
        try:
            while True:
                (self._place / "stream.sql").write_text(self._statements, encoding="utf-8")
                update: Update = Pipeline(self._place).run()
                self.lastProgress = dict(update.flows[0].metrics)
                with self._turn:
                    self._turns += 1
                    self._turn.notify_all()
                if self._interval is None or self._stop.wait(self._interval):
                    return
        except BaseException as error:
            self._error = error
        finally:
            with self._turn:
                self._turns += 2
                self._turn.notify_all()
            if self in _active:
                _active.remove(self)

    @property
    def isActive(self) -> bool:
        return self._thread.is_alive()

    def exception(self) -> Optional[BaseException]:
        """What ended it, if something did."""
        return self._error

    def awaitTermination(self, timeout: Optional[float] = None) -> Optional[bool]:
        """Waits until it ends, at most ``timeout`` seconds. :raises UpdateError: it failed."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return None if timeout is None else not self.isActive

    def processAllAvailable(self) -> None:
        """Waits until everything that is there now is written. :raises UpdateError: it failed."""
        with self._turn:
            # An update that runs already may have looked before.
            wanted = self._turns + 2
            self._turn.wait_for(lambda: self._turns >= wanted or not self._thread.is_alive())
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ends it after the update that runs."""
        self._stop.set()
        self._thread.join()

    def __repr__(self) -> str:
        return f"<StreamingQuery {self._thread.name}: {'active' if self.isActive else 'ended'}>"


def _checkpoint_id(folder: Path, target: str) -> str:
    place = folder / "metadata"
    if place.exists():
        try:
            known = json.loads(place.read_text(encoding="utf-8"))
            stored, id_ = known["target"], str(known["id"])
        except (ValueError, KeyError, TypeError):
            raise CorruptError(f"'{place}' is not a file of this program", "CHECKPOINT_CORRUPT") from None
        if stored != target:
            raise InvalidArgumentError(
                f"the checkpoint '{folder}' belongs to a stream into {stored}: give this one into {target} another",
                "CHECKPOINT_OF_ANOTHER_STREAM")  # fmt: skip
        return id_
    folder.mkdir(parents=True, exist_ok=True)
    id_ = uuid.uuid4().hex
    part = folder / ".metadata.part"
    part.write_text(json.dumps({"id": id_, "target": target}), encoding="utf-8")
    part.replace(place)
    return id_


def stop_all() -> None:
    """Where a program ends early: streams stop after the updates that run. A thread that is inside of an update while
    Python goes away would take the whole process with it."""
    queries = list(_active)
    for query in queries:
        query._stop.set()
    for query in queries:
        if query._thread is not threading.current_thread():
            query._thread.join()


atexit.register(stop_all)


def finish_all() -> None:
    """At the end of a script: streams that run take what is there, then stop."""
    for query in list(_active):
        if query._interval is not None:
            query.processAllAvailable()
            query.stop()
        query.awaitTermination()
