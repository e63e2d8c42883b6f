"""Tests of the Python package. scripts/python.sh builds it into build/python, which build/venv finds."""

import os
import sys

import pytest
from harness import missing_extension

try:
    import strandline
except ImportError as missing:
    pytest.exit(f"the Python package is not built: run `make python` ({missing})", returncode=1)

os.environ["STRANDLINE_PYTHON"] = sys.executable


def skip_without_extension(name):
    if why := missing_extension(name):
        pytest.skip(why)


@pytest.fixture
def warehouse(tmp_path):
    return strandline.connect(tmp_path / "warehouse")


@pytest.fixture(scope="module")
def postgres():
    """A real server, from scripts/install_deps.sh test."""
    import servers

    skip_without_extension("postgres_scanner")
    try:
        with servers.postgres() as server:
            yield server
    except servers.Missing as why:
        pytest.skip(str(why))


@pytest.fixture
def pipeline(tmp_path):
    """A pipeline of files given by name: pipeline({"a.py": "…"}) is its folder."""

    def write(files, name="p"):
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / name

    return write
