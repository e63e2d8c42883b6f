"""The C++ example of docs/cpp.md is the file that is built, and does what it says."""

import re
import subprocess
from pathlib import Path

from harness import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/cpp/orders.cc"


def test_document_shows_the_very_file():
    blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/cpp.md").read_text(encoding="utf-8"), re.S)
    assert blocks == [EXAMPLE.read_text(encoding="utf-8")]


def test_example_runs(tmp_path):
    done = subprocess.run([PROGRAM.parent / "orders_example", tmp_path / "warehouse"], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "main.default.orders version 2: id INT, item STRING, price DECIMAL(10,2)",
        "2 UPDATE", "1 WRITE", "0 CREATE TABLE",
        "1 tea 3.50 ", "2 cake 4.25 ",
        "dear: 1",
    ]
    again = subprocess.run([PROGRAM.parent / "orders_example", tmp_path / "warehouse"], capture_output=True, encoding="utf-8")
    assert again.returncode == 1 and "TABLE_OR_VIEW_ALREADY_EXISTS" in again.stderr


def test_the_change_feed_example_runs(tmp_path):
    done = subprocess.run([PROGRAM.parent / "changes_example", tmp_path / "warehouse", tmp_path / "pipeline"],
                          capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "versions 0 to 2: insert 2 update_postimage 1 update_preimage 1",
        "from version 0: delete 1 insert 2 update_postimage 1 update_preimage 1",
        "from a time: delete 1 insert 2 update_postimage 1 update_preimage 1",
        "between two times: delete 1 insert 2 update_postimage 1 update_preimage 1",
        "odd names: insert 1",
        "target_table: insert 2",
        "rest: delete 1 insert 1",
    ]
