"""Modules of a pipeline or a script: its files, and what they import from its folders. In all of them ``spark``
and ``dbutils`` are there; a file of a pipeline runs once, by itself or by the first import of it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any, Optional

from ._source import source_text

MODULE = "strandline_pipeline_"  # and a number: of a file that none imports
_PACKAGES = f"{os.sep}site-packages{os.sep}"  # of an environment below the folder
_NOT_THEIRS = sys.stdlib_module_names | {
    "strandline", "sqlframe", "sqlglot", "prettytable", "wcwidth", "more_itertools", "typing_extensions",
    "duckdb", "numpy", "pandas", "pyarrow", "polars", "matplotlib", "PIL", "dateutil", "pytz", "six",
}  # fmt: skip
_OURS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "")


class Modules(importlib.abc.MetaPathFinder):
    """files: path to the name that is shown. names: what each module has."""

    def __init__(self, files: Mapping[str, str], root: str, names: Mapping[str, Any]) -> None:
        self._shown = files
        self._names = names
        self._paths = {os.path.realpath(path): path for path in files}
        self._ran: dict[str, ModuleType] = {}  # or runs
        self._failed: dict[str, BaseException] = {}
        self.folders = list(dict.fromkeys([root, *map(os.path.dirname, files)]))
        self._inside = tuple(os.path.join(os.path.realpath(folder), "") for folder in self.folders)

    def install(self) -> None:
        """The folders are searched first, but for names of Python's own modules and of what this package is made of:
        a file of the user called ``random.py`` is nobody's ``random``."""
        sys.path[:0] = reversed(self.folders)
        finder = importlib.machinery.PathFinder
        at = sys.meta_path.index(finder) if finder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, self)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """As install(), for the block."""
        before = list(sys.path)
        self.install()
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            sys.path[:] = before

    def run(self, path: str) -> None:
        """Runs a file, unless an import did. Whatever it raises or raised passes through."""
        module = ModuleType(f"{MODULE}{list(self._shown).index(path)}")
        if path not in self._ran:
            sys.modules[module.__name__] = module
            module.__package__ = self._package_of(path)
        self.execute(path, module)

    def _package_of(self, path: str) -> Optional[str]:
        """The package below the root that the file is in: what ``from . import`` means there."""
        names: list[str] = []
        folder = os.path.dirname(path)
        while folder != self.folders[0] and os.path.exists(os.path.join(folder, "__init__.py")):
            folder, name = os.path.split(folder)
            names.insert(0, name)
        return ".".join(names) or None

    def known(self, path: str) -> Optional[ModuleType]:
        return self._ran.get(path)

    def execute(self, path: str, module: ModuleType) -> None:
        if path in self._failed:
            raise self._failed[path]
        if path in self._ran:
            return
        self._ran[path] = module
        module.__file__ = path
        module.__dict__.update(self._names)
        try:
            exec(compile(source_text(path, self._shown[path]), path, "exec"), module.__dict__)
        except BaseException as error:
            self._failed[path] = error
            raise

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if path is None and fullname in _NOT_THEIRS:
            elsewhere = [place for place in sys.path if place not in self.folders]
            found = importlib.machinery.PathFinder.find_spec(fullname, elsewhere, target)
            if found is not None and found.loader is not None:
                return found
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        place = os.path.realpath(spec.loader.path)
        if place in self._paths:
            spec.loader = _File(self, self._paths[place])
        elif place.startswith(self._inside) and not place.startswith(_OURS) and _PACKAGES not in place:
            spec.loader = _Helper(self._names, spec.loader.name, spec.loader.path)
        return spec


class _File(importlib.abc.Loader):
    def __init__(self, modules: Modules, path: str) -> None:
        self._modules = modules
        self._path = path

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        return self._modules.known(self._path)

    def exec_module(self, module: ModuleType) -> None:
        self._modules.execute(self._path, module)


class _Helper(importlib.machinery.SourceFileLoader):
    def __init__(self, names: Mapping[str, Any], fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._names = names

    def get_code(self, fullname: str) -> Optional[CodeType]:
        """Of the file as it is: what Python caches it takes for new in the second that the file is written anew."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self._names)
        super().exec_module(module)
