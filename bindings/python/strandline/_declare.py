"""The interpreter of a pipeline's .py files: ``python -m strandline._declare FD``.

The program that runs the update starts it and talks with it over the file descriptor, one JSON
object a line each way; docs/decisions/0008-python-pipelines.md has the messages. It ends when the
other end closes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Optional

from . import _core, _jdbc, pipelines
from ._extensions import extension_folders
from ._imports import is_ours, resolving
from ._modules import MODULE, Modules
from ._snapshots import SnapshotFunction
from ._spark import SparkSession
from ._volumes import DbUtils, Volumes
from ._warehouse import Warehouse, connect
from .errors import StrandlineError

_PACKAGE = str(Path(__file__).parent)
_MOST_FRAMES = 10
_end = os._exit


def user_frames(error: BaseException, files: Any) -> list[traceback.FrameSummary]:
    """Frames of the user's code, outermost first."""
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, "<frozen", "<string>"))
    ]


def _said(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        if isinstance(error, ImportError) and is_ours(error.name or "") and error.name in sys.modules:
            there = getattr(sys.modules[error.name], "__all__", None)
            text += f"; there are {', '.join(there)}" if there else ""
        return re.sub(rf"^{MODULE}\d+\.(.*<locals>\.)?", "", text)
    except RecursionError:
        return type(error).__name__


def _cause(error: BaseException) -> Optional[BaseException]:
    """What it was raised from, or while handling which user code raised it."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__ if error.__context__ is not None and user_frames(error.__context__, {}) else None


def _shown(frames: list[traceback.FrameSummary], files: dict[str, str]) -> str:
    """A traceback as lines; of a long one its two ends."""
    text = ""
    for i, frame in enumerate(frames):
        if len(frames) > _MOST_FRAMES and i == _MOST_FRAMES // 2:
            text += f"\n  ... {len(frames) - _MOST_FRAMES} more calls"
        if _MOST_FRAMES // 2 <= i < len(frames) - _MOST_FRAMES // 2:
            continue
        text += f"\n  {files.get(frame.filename, frame.filename)}:{frame.lineno} in {frame.name}"
        if frame.line:
            text += f"\n    {frame.line}"
    return text


def describe(
    error: BaseException, files: dict[str, str], place: Optional[tuple[str, int]] = None, called: bool = False
) -> dict[str, Any]:
    """An exception as the error that the update reports: what it says, with the user's traceback.

    called: by the update, long after the files ran; else one line alone that declares wrongly is its place.
    """
    frames = user_frames(error, files)
    own = [frame for frame in frames if frame.filename in files]
    if isinstance(error, SyntaxError) and error.filename in files:
        place = (error.filename, error.lineno or 0)
    elif own:
        place = (own[-1].filename, own[-1].lineno or 0)
    if isinstance(error, StrandlineError):
        kind, code, message = error.kind, error.code, error.message
    else:
        kind = "invalid_argument"
        code = "PYTHON_SYNTAX" if isinstance(error, SyntaxError) else "PYTHON_ERROR"
        message = _said(error)
    if len(frames) > 1 or (frames and (called or not isinstance(error, (StrandlineError, TypeError, ValueError)))):
        message += _shown(frames, files)
    seen = {id(error)}
    cause = _cause(error)
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        message += f"\ncaused by {_said(cause)}{_shown(user_frames(cause, files), files)}"
        cause = _cause(cause)
    message = _core.without_secrets(message.encode("utf-8", "backslashreplace").decode())
    file, line = place if place is not None else ("", 0)
    return {"kind": kind, "code": code, "message": message, "file": files.get(file, file), "line": line}


def _names_in(path: str) -> list[str]:
    """What a file that failed may have meant to declare: its words and texts. Others that name one of
    these are no mistakes yet."""
    text = Path(path).read_bytes().decode("utf-8", "replace")
    return sorted({*re.findall(r"\w+", text), *(found[1] for found in re.findall(r"""(["'])(.+?)\1""", text))})


class Declarer:
    """The files of one pipeline."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.files = dict(request["files"])
        self.root = request["root"]
        configuration: dict[str, str] = request["configuration"]
        self.registry = pipelines.Registry()
        self.volumes = Volumes(configuration.get("strandline.volumes"), self.root)
        warehouse, catalog, schema = request["warehouse"], request["catalog"], request["schema"]

        def open_warehouse() -> Warehouse:
            return connect(warehouse, catalog=catalog, schema=schema)

        self.spark = SparkSession(open_warehouse, self.volumes, configuration, self.registry.views)
        self.modules = Modules(self.files, self.root, {"spark": self.spark, "dbutils": DbUtils(self.volumes)})
        self.functions: dict[str, SnapshotFunction] = {}

    def run(self) -> dict[str, Any]:
        errors, doubtful = [], []
        told: list[BaseException] = []
        self.modules.install()
        with pipelines.collecting(self.registry):
            for path in self.files:
                try:
                    self.modules.run(path)
                except BaseException as error:  # user code may do anything
                    _pass_on(error)
                    if not any(error is one for one in told):  # of a file that this one imports
                        errors.append(describe(error, self.files, (path, 0)))
                    told.append(error)
                    doubtful += _names_in(path)
            statements = []
            for declared in self.registry.declared:
                place = (declared.file, declared.line)
                try:
                    statement = {
                        "sql": declared.sql(),
                        "file": self.files.get(declared.file, declared.file),
                        "line": declared.line,
                    }
                    if declared.function is not None:
                        statement["function"] = f"f{len(self.functions)}"
                        self.functions[statement["function"]] = SnapshotFunction(declared.function, *place)
                    statements.append(statement)
                except BaseException as error:
                    _pass_on(error)
                    errors.append(describe(error, self.files, place))
                    if declared.dataset:
                        doubtful.append(declared.dataset)
        return {"statements": statements, "errors": errors, "doubtful": doubtful}

    def next_snapshot(self, request: dict[str, Any]) -> dict[str, Any]:
        function = self.functions[request["function"]]
        self.spark.taking_snapshots = True
        try:
            return function(request["latest"])
        except BaseException as error:  # user code may do anything
            _pass_on(error)
            return {"error": describe(error, self.files, function.place, called=True)}


def answer(request: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    if request.get("do") == "declare":
        declarer = state["declarer"] = Declarer(request)
        state["imports"] = resolving(declarer.spark)
        state["imports"].__enter__()  # functions may import later, too
        return declarer.run()
    if request.get("do") == "next_snapshot":
        asked: Declarer = state["declarer"]
        return asked.next_snapshot(request)
    return {"errors": [{"kind": "unsupported", "code": "PYTHON_PROTOCOL",
                        "message": f"the package does not know the request {request.get('do')!r}: it and the program "
                                   "are of different versions"}]}  # fmt: skip


def _refuse_exit(process: int) -> Callable[[int], NoReturn]:
    """os._exit of user code: an error of theirs, but in the processes and threads that they start."""

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process or threading.current_thread() is not threading.main_thread():
            _end(status)
        raise SystemExit(f"os._exit({status}) would end the update: raise an exception")

    return refuse


_interrupted = False  # by Ctrl-C, not by code that raises KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    global _interrupted
    _interrupted = True
    signal.default_int_handler(number, frame)


def _pass_on(error: BaseException) -> None:
    """Ctrl-C goes through; anything else of user code is an error to tell."""
    if _interrupted and isinstance(error, KeyboardInterrupt):
        raise error


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    os._exit = _refuse_exit(os.getpid())  # type: ignore[assignment]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # who starts it blocks it meanwhile
    state: dict[str, Any] = {}
    with channel.makefile("rwb") as lines:
        for line in lines:
            said = answer(json.loads(line), state)
            if _jdbc.kept:
                said.update(secrets=_jdbc.kept, extensions=extension_folders())
            lines.write(json.dumps(said).encode() + b"\n")
            lines.flush()
    if "declarer" in state:
        state["declarer"].spark._end()
    _end(0)  # whatever threads user code started


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        _end(130)
