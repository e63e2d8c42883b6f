"""Spark is heavy: `make test-spark` installs it; elsewhere these tests skip."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cases")]
REASON = os.environ.get("STRANDLINE_SPARK_MISSING") or "Spark is a part of `make test-spark`"


def pytest_collection_modifyitems(items):
    if os.environ.get("STRANDLINE_SPARK"):
        return
    for item in items:
        if Path(item.fspath).is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from backend import start

    session = start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
