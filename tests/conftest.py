"""Shared by all Python tests; harness.py is importable because this folder holds conftest.py."""

import sys
from pathlib import Path

import pytest
from harness import PROGRAM

HERE = Path(__file__).resolve().parent


def pytest_sessionstart(session):
    if not session.config.option.collectonly and not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} does not exist: run `make build` first", returncode=1)


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite the expected rows of tests/logic")


def pytest_terminal_summary(terminalreporter, config):
    """The cases that are not run, by name, after every run that had them."""
    if any("test_cases.py" in str(report.nodeid) for reports in terminalreporter.stats.values() for report in reports
           if hasattr(report, "nodeid")):
        sys.path.insert(0, str(HERE / "cases"))
        import selection

        terminalreporter.section("shared cases")
        for line in selection.summary():
            terminalreporter.write_line(line)
