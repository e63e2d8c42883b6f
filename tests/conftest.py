"""Shared by all Python tests; harness.py is importable because this folder holds conftest.py."""

import pytest
from harness import PROGRAM


def pytest_sessionstart(session):
    if not session.config.option.collectonly and not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} does not exist: run `make build` first", returncode=1)


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite the expected rows of tests/logic")
