#!/usr/bin/env python3
"""Checks what the compiler cannot: who may include whom, and what tracked files may not name.

Usage: tidy.py ROOT        prints one line per finding, exits 1 when there is one
"""

import re
import subprocess
import sys
from pathlib import Path

# Folder of src/ -> folders of src/ it may include. Dependencies point inward; a new edge is a design
# decision: change docs/ARCHITECTURE.md, this table and the folder's CMakeLists.txt together.
ALLOWED = {
    "base": set(),
    "storage": {"base"},
    "delta": {"base", "storage"},
    "cdf": {"base", "storage", "delta"},
    "sql": {"base"},
    "cdc": {"base", "sql"},
    "catalog": {"base", "storage", "delta", "sql"},
    "duck": {"base", "storage", "delta", "cdf", "sql", "cdc"},
    "pipeline": {"base", "storage", "delta", "cdf", "sql", "cdc", "catalog", "duck"},
    "engine": {"base", "storage", "delta", "cdf", "sql", "cdc", "catalog", "duck", "pipeline"},
}

# Folders that use the library as its users do: include/ only.
OUTSIDE = {"cli", "bench", "bindings", "examples"}

SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
DUCKDB_HEADER = re.compile(r"^duckdb(\.h|\.hpp|/.*)$")

# Spelled in pieces so that this file passes its own check.
FORBIDDEN_TEXT = {
    "an absolute path of one machine": re.compile(
        r"(?<![\w.$}])/(?:" + "|".join(["work/", "root/", r"home/\w", r"Users/\w"]) + ")"
    ),
    "the host of a package registry": re.compile(
        "|".join(
            re.escape(host).replace("@", r"\.")
            for host in [
                "pypi@org", "python" "hosted@org", "npmjs@org", "npmjs@com", "crates@io",
                "proxy@golang@org", "maven@org", "deb@debian@org", "security@debian@org",
            ]
        )
    ),
}


def tracked_files(root):
    """Files git tracks or would track, relative to root; every file when root is no repository."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted({name for name in names if (root / name).is_file()})


def check_include(name, quote, header):
    """Why this include is wrong, or None."""
    parts = Path(name).parts
    top, first = parts[0], header.split("/")[0]
    folder = parts[1] if top == "src" and len(parts) > 2 else None

    if DUCKDB_HEADER.match(header) and folder != "duck":
        if quote == "<" or not header.startswith("duckdb/"):
            return "only src/duck touches DuckDB: use the ports it implements"
    if top == "include":
        if quote == '"':
            return "include/ includes with <strandline/…> only"
        if not header.startswith("strandline/") and not re.fullmatch(r"[a-z_0-9]+", header):
            return "include/ is the public API: standard headers and <strandline/…> only"
    if top in OUTSIDE and first in ALLOWED and "/" in header:
        return f"{top}/ sees include/ only: use <strandline/…>"
    if folder is not None:
        if folder not in ALLOWED:
            return f"src/{folder} is not in the table of tests/tidy/tidy.py"
        if first in ALLOWED and "/" in header and first != folder and first not in ALLOWED[folder]:
            may = ", ".join(sorted(ALLOWED[folder])) or "nothing"
            return f"src/{folder} may not include src/{first} (it may include: {may})"
    return None


def check_file(root, name):
    data = (root / name).read_bytes()
    if b"\0" in data:
        return
    text = data.decode("utf-8", errors="replace")
    if Path(name).suffix in SOURCE_SUFFIXES:
        for match in INCLUDE.finditer(text):
            why = check_include(name, match[1], match[2])
            if why:
                line = text.count("\n", 0, match.start(1)) + 1
                yield f"{name}:{line}: #include {match[2]}: {why}"
    for what, pattern in FORBIDDEN_TEXT.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: names {what}: {match[0]}"


def findings(root):
    root = Path(root)
    return [finding for name in tracked_files(root) for finding in check_file(root, name)]


if __name__ == "__main__":
    found = findings(sys.argv[1])
    print("\n".join(found) or "tidy")
    sys.exit(1 if found else 0)
