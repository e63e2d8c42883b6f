"""DuckDB's extensions that read other databases: packages of their own, pip install 'strandline[jdbc]'."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

_NAMES = ("postgres_scanner", "mysql_scanner", "sqlite_scanner")


@functools.lru_cache(maxsize=None)
def extension_folders() -> tuple[str, ...]:
    """Where the packages that DuckDB's extensions come in put them."""
    folders = []
    for name in _NAMES:
        found = importlib.util.find_spec(f"duckdb_extension_{name}")
        for place in (found.submodule_search_locations or ()) if found is not None else ():
            folders += [str(file.parent) for file in sorted(Path(place).glob(f"**/{name}.duckdb_extension"))]
    return tuple(dict.fromkeys(folders))


def use_extensions() -> None:
    """Tells the engine of this process, and programs that it starts, where the extensions are."""
    known = os.environ.get("STRANDLINE_EXTENSIONS", "")
    new = [folder for folder in extension_folders() if folder not in known.split(":")]
    if new:
        os.environ["STRANDLINE_EXTENSIONS"] = ":".join([*filter(None, [known]), *new])
