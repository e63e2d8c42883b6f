"""The package as a whole: its types, its program, its version."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import strandline

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings" / "python" / "strandline"
# Some builds of CPython lack SQLite.
MYPY = (sys.executable, "-m", "mypy", "--strict", "--no-sqlite-cache")


def test_types_are_strict():
    checked = subprocess.run(
        [*MYPY, "--config-file", ROOT / "pyproject.toml", "--cache-dir",
         ROOT / "build" / "mypy", PACKAGE],
        capture_output=True, text=True)  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_users_file_is_strict_too(tmp_path):
    (tmp_path / "user.py").write_text("""
from typing import Optional
import strandline
from strandline import pipelines as dp

spark: strandline.SparkSession

@dp.table
def a() -> strandline.DataFrame:
    return spark.read.table("x").where("id > 1")

@dp.table(name="x", comment="y")
@dp.expect("a", "b")
def c() -> strandline.DataFrame:
    return spark.range(3)

def following(latest: Optional[int]) -> Optional[tuple[strandline.DataFrame, int]]:
    return None

dp.create_streaming_table("t", table_properties={"a": "b"})
dp.create_auto_cdc_from_snapshot_flow(target="t", source=following, keys=["id"])
dp.apply_changes(target="t", source="s", keys=["id"], sequence_by="n")
dp.apply_changes_from_snapshot(target="t", snapshot_and_version=following, keys=["id"])
dp.apply_changes_from_snapshot(bogus=5)
for batch in strandline.connect("w").table("t").change_batches("x"):
    rows: list[tuple[object, ...]] = batch.fetchall()
""")
    checked = subprocess.run(
        [*MYPY, "--cache-dir", ROOT / "build" / "mypy", "user.py"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})  # fmt: skip
    wrong = [line for line in checked.stdout.splitlines() if line.startswith("user.py") and "error:" in line]
    assert len(wrong) == 1 and wrong[0].startswith("user.py:24: error: Unexpected keyword argument"), checked.stdout
    with pytest.raises(AttributeError, match="strandline.conect is not there; there are .*, connect"):
        strandline.conect


@pytest.mark.parametrize("command", ["check .", "format --check bindings"])
def test_python_files_are_tidy(command):
    """What `make lint` runs, too."""
    done = subprocess.run([sys.executable, "-m", "ruff", *command.split(), "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_comes_with_the_package():
    done = subprocess.run([sys.executable, "-m", "strandline._program", "--version"], capture_output=True, text=True)
    assert re.fullmatch(rf"strandline {re.escape(strandline.__version__)} \(DuckDB v[0-9.]+\)\n", done.stdout)


def test_one_version():
    assert f'version = "{strandline.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_extensions_fit_the_embedded_engine():
    """DuckDB loads an extension of its own version only."""
    version = re.search(r"^DUCKDB_DEFAULT_VERSION=(\S+)", (ROOT / "scripts" / "deps.env").read_text(), re.MULTILINE).group(1)
    for file in (ROOT / "pyproject.toml", ROOT / "tests" / "requirements.txt"):
        pinned = dict(re.findall(r"duckdb-extension-(\w+)-scanner==([\d.]+)", file.read_text()))
        assert pinned == dict.fromkeys(("postgres", "mysql", "sqlite"), version), file
