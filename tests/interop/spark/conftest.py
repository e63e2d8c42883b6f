"""Spark is heavy: `make test-interop` installs it and says where its jars are; elsewhere its tests skip."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
REASON = os.environ.get("STRANDLINE_SPARK_MISSING") or "Spark is a part of `make test-interop`"


def pytest_collection_modifyitems(items):
    if os.environ.get("STRANDLINE_SPARK_JARS"):
        return
    for item in items:
        if Path(item.fspath).is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from session import Spark

    started = Spark(tmp_path_factory.mktemp("spark"))
    yield started
    started.session.stop()
