"""The package as a whole: its types, its program, its version."""

import re
import subprocess
import sys
from pathlib import Path

import strandline

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings" / "python" / "strandline"


def test_types_are_strict():
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", "--cache-dir",
         ROOT / "build" / "mypy", PACKAGE],
        capture_output=True, text=True)  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_program_comes_with_the_package():
    done = subprocess.run([sys.executable, "-m", "strandline._program", "--version"], capture_output=True, text=True)
    assert done.stdout == f"strandline {strandline.__version__}\n"


def test_one_version():
    assert f'version = "{strandline.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_extensions_fit_the_embedded_engine():
    """DuckDB loads an extension of its own version only."""
    version = re.search(r"^DUCKDB_VERSION=(\S+)", (ROOT / "scripts" / "deps.env").read_text(), re.MULTILINE).group(1)
    for file in (ROOT / "pyproject.toml", ROOT / "tests" / "requirements.txt"):
        pinned = dict(re.findall(r"duckdb-extension-(\w+)-scanner==([\d.]+)", file.read_text()))
        assert pinned == dict.fromkeys(("postgres", "mysql", "sqlite"), version), file
