"""The interpreter of a pipeline's .py files: ``python -m strandline._declare FD``.

The program that runs the update starts it and talks with it over the file descriptor, one JSON
object a line each way; docs/decisions/0008-python-pipelines.md has the messages. It ends when the
other end closes.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import Any, Optional

from . import _core, _jdbc, pipelines
from ._extensions import extension_folders
from ._imports import resolving
from ._snapshots import SnapshotFunction
from ._spark import SparkSession
from ._volumes import DbUtils, Volumes
from ._warehouse import Warehouse, connect
from .errors import StrandlineError

_PACKAGE = str(Path(__file__).parent)


def user_frames(error: BaseException, files: Any) -> list[traceback.FrameSummary]:
    """Frames of the user's code, outermost first."""
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_PACKAGE) and not frame.filename.startswith("<frozen")
    ]


def describe(error: BaseException, files: dict[str, str], place: Optional[tuple[str, int]] = None) -> dict[str, Any]:
    """An exception as the error that the update reports: what it says, with the user's traceback."""
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
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
    if len(frames) > 1 or (frames and not isinstance(error, (StrandlineError, TypeError, ValueError))):
        lines = []
        for frame in frames:
            shown = files.get(frame.filename, frame.filename)
            lines.append(f"  {shown}:{frame.lineno} in {frame.name}")
            if frame.line:
                lines.append(f"    {frame.line}")
        message += "\n" + "\n".join(lines)
    message = _core.without_secrets(message)
    file, line = place if place is not None else ("", 0)
    return {"kind": kind, "code": code, "message": message, "file": files.get(file, file), "line": line}


class Declarer:
    """The files of one pipeline."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.files = {path: display for path, display in request["files"]}
        self.root = request["root"]
        configuration: dict[str, str] = request["configuration"]
        self.registry = pipelines.Registry()
        self.volumes = Volumes(configuration.get("strandline.volumes"), self.root)
        warehouse, catalog, schema = request["warehouse"], request["catalog"], request["schema"]

        def open_warehouse() -> Warehouse:
            return connect(warehouse, catalog=catalog, schema=schema)

        self.spark = SparkSession(open_warehouse, self.volumes, configuration, self.registry.views)
        self.functions: dict[str, SnapshotFunction] = {}

    def run(self) -> dict[str, Any]:
        errors = []
        for folder in dict.fromkeys([self.root, *(str(Path(path).parent) for path in self.files)]):
            sys.path.insert(0, folder)
        with pipelines.collecting(self.registry):
            for number, path in enumerate(self.files):
                try:
                    self._execute(path, number)
                except (Exception, SystemExit) as error:  # user code may do anything
                    errors.append(describe(error, self.files))
            statements = []
            for declared in self.registry.declared:
                place = (declared.file, declared.line)
                try:
                    statement = {"sql": declared.sql(), "file": self.files.get(declared.file, declared.file), "line": declared.line}
                    if declared.function is not None:
                        statement["function"] = f"f{len(self.functions)}"
                        self.functions[statement["function"]] = SnapshotFunction(declared.function, *place)
                    statements.append(statement)
                except (Exception, SystemExit) as error:
                    errors.append(describe(error, self.files, place))
        return {"statements": statements, "errors": errors}

    def next_snapshot(self, request: dict[str, Any]) -> dict[str, Any]:
        function = self.functions[request["function"]]
        self.spark.taking_snapshots = True
        try:
            return function(request["latest"])
        except (Exception, SystemExit) as error:  # user code may do anything
            return {"error": describe(error, self.files, function.place)}

    def _execute(self, path: str, number: int) -> None:
        text = Path(path).read_text(encoding="utf-8")
        code = compile(text, path, "exec")
        module = types.ModuleType(f"strandline_pipeline_{number}")
        module.__file__ = path
        module.__dict__.update(spark=self.spark, dbutils=DbUtils(self.volumes))
        sys.modules[module.__name__] = module
        exec(code, module.__dict__)


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


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
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
    os._exit(0)  # whatever threads user code started


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)
