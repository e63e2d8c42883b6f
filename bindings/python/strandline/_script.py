"""``strandline python file.py``: a program with ``spark`` and ``dbutils`` over a warehouse."""

from __future__ import annotations

import argparse
import ast
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from . import _core, _streams
from ._frames import DataFrame
from ._imports import resolving
from ._modules import Modules
from ._source import source_text
from ._spark import SparkSession
from ._volumes import DbUtils, Volumes
from ._warehouse import Warehouse, connect
from .errors import StrandlineError

_PACKAGE = str(Path(__file__).parent)


def run(path: str, warehouse: Warehouse, root: str = ".", name: str = "__main__") -> Any:
    """Runs a file; gives the value of its last statement, if that is an expression. Streams that it
    leaves running take what is there and stop."""
    text = source_text(path, path)
    volumes = Volumes(None, root)
    spark = SparkSession(lambda: warehouse, volumes)
    names = {"spark": spark, "dbutils": DbUtils(volumes), "display": _display}
    module = types.ModuleType(name)
    module.__file__ = str(path)
    if name == "__main__":
        sys.modules[name] = module
    module.__dict__.update(names)
    tree = ast.parse(text, path)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    try:
        with resolving(spark), Modules({}, str(Path(path).resolve().parent), names).installed():
            exec(compile(tree, path, "exec"), module.__dict__)
            if last is not None:
                assert isinstance(last, ast.Expr)
                value = eval(compile(ast.Expression(last.value), path, "eval"), module.__dict__)
        _streams.finish_all()
    finally:
        _streams.stop_all()
    return value


def _display(value: Any, *rest: Any, **options: Any) -> None:
    """What notebooks show as a table."""
    if isinstance(value, DataFrame):
        value.show()
    else:
        print(value)


def main() -> None:
    parser = argparse.ArgumentParser("strandline python")
    parser.add_argument("--warehouse")
    parser.add_argument("--catalog", default="main")
    parser.add_argument("--schema", default="default")
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    sys.argv = [given.file, *given.arguments]
    try:
        run(given.file, connect(given.warehouse, catalog=given.catalog, schema=given.schema))
    except StrandlineError as error:
        _tell(error)
        print(_core.without_secrets(f"error: {error}"), file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt as error:
        _tell(error)
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        _tell(error)
        print(_core.without_secrets("".join(traceback.format_exception_only(type(error), error)).rstrip()), file=sys.stderr)
        sys.exit(1)


def _tell(error: BaseException) -> None:
    """The user's part of the traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    if frames:
        sys.stdout.flush()
        print("Traceback (most recent call last):", file=sys.stderr)
        print(_core.without_secrets("".join(traceback.format_list(frames)).rstrip()), file=sys.stderr)


if __name__ == "__main__":
    main()
