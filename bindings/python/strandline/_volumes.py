"""``/Volumes/catalog/schema/volume/…`` mapped to a folder, and ``dbutils.fs``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ._arguments import accept_at_least, accept_path
from .errors import NotFoundError, UnsupportedError

_PREFIXES = ("/Volumes", "dbfs:/Volumes")


class Volumes:
    """The folder that stands for ``/Volumes``: configuration ``strandline.volumes``, else the
    environment's STRANDLINE_VOLUMES, else ``Volumes`` in the pipeline's folder."""

    def __init__(self, folder: Optional[str], root: str) -> None:
        chosen = folder or os.environ.get("STRANDLINE_VOLUMES") or "Volumes"
        self.folder = Path(root) / chosen
        self.root = root

    def mapped(self, path: str) -> str:
        """The path on this machine; others than ``/Volumes/…`` as they are."""
        for prefix in _PREFIXES:
            if path == prefix or path.startswith(prefix + "/"):
                tail = path[len(prefix) :].lstrip("/")
                return str(self.folder / tail) + ("/" if path.endswith("/") and tail else "")
        return path

    def on_disk(self, path: str) -> Path:
        mapped = self.mapped(path)
        for scheme in ("file://", "file:", "dbfs:"):
            if mapped.startswith(scheme):
                mapped = mapped[len(scheme) :]
        return Path(self.root) / mapped


class FileInfo(NamedTuple):
    """A file or folder. ``size`` in bytes, ``modificationTime`` in milliseconds since 1970, UTC."""

    path: str
    name: str  # of folders with "/" at the end
    size: int
    modificationTime: int

    def isDir(self) -> bool:
        return self.name.endswith("/")

    def isFile(self) -> bool:
        return not self.isDir()


class Files:
    """``dbutils.fs``."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def ls(self, path: str) -> list[FileInfo]:
        """Files and folders of a folder, by name. :raises NotFoundError: there is no such folder."""
        folder = self._volumes.on_disk(accept_path("path", path))
        if not folder.exists():
            mapped = "" if str(folder) == path else f", which is '{folder}' here"
            raise NotFoundError(
                f"there is no '{path}'{mapped}; configuration 'strandline.volumes' names the folder that stands for "
                "/Volumes", "PATH_NOT_FOUND")  # fmt: skip
        entries = [folder] if folder.is_file() else sorted(folder.iterdir())
        infos = []
        for entry in entries:
            state = entry.stat()
            name = entry.name + ("/" if entry.is_dir() else "")
            shown = path if folder.is_file() else path.rstrip("/") + "/" + name
            infos.append(FileInfo(shown, name, 0 if entry.is_dir() else state.st_size, int(state.st_mtime * 1000)))
        return infos

    def head(self, path: str, max_bytes: int = 65536) -> str:
        """The beginning of a text file."""
        accept_at_least("max_bytes", max_bytes, 0, int)
        return self._volumes.on_disk(accept_path("path", path)).read_bytes()[:max_bytes].decode("utf-8", "replace")

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"dbutils.fs.{name} is not supported; there are ls and head", "UNSUPPORTED_METHOD")


class DbUtils:
    """``dbutils``."""

    def __init__(self, volumes: Volumes) -> None:
        self.fs = Files(volumes)

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"dbutils.{name} is not supported; there is dbutils.fs", "UNSUPPORTED_METHOD")
