"""Tests of the Python package. scripts/python.sh builds it into build/python, which build/venv finds."""

import pytest

try:
    import strandline
except ImportError as missing:
    pytest.exit(f"the Python package is not built: run `make python` ({missing})", returncode=1)


@pytest.fixture
def warehouse(tmp_path):
    return strandline.connect(tmp_path / "warehouse")
