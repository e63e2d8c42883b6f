"""A part of `make test-volume`: the sizes of batches that rows once came twice at, and some random pipelines."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def volume(*arguments):
    """Its output; the oracle's engine is another version than the one that the other tests import."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run([str(ROOT / "scripts" / "volume.sh"), *arguments], capture_output=True, encoding="utf-8", env=environment)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-6000:]
    return run.stdout


def batches(output):
    return int(re.search(r"^all +([\d,]+)", output, re.MULTILINE)[1].replace(",", ""))


def test_sizes_at_which_streaming_windows_gave_rows_twice():
    output = volume("--known-bad", "--batches", "0")
    assert "SCD 2, whole rows, TRACK HISTORY" in output and batches(output) >= 36


def test_random_pipelines_of_many_events():
    assert batches(volume("--seed", "1", "--batches", "50", "--scale", "0.3")) >= 50
