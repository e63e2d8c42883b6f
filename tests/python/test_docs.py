"""The examples of docs/python.md run, in order, as one program."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_examples_run(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    (tmp_path / "page.py").write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert "| cake | 4.00  |" in out and "3 id INT, item STRING, price DECIMAL(10,2) MERGE" in out
    assert "[(1, 'Ann', 1, 2), (1, 'Anna', 2, None), (2, 'Bob', 1, 3)]" in out
    assert "2 ['Ann', 'Anna']" in out
    assert "3.0 snapshots" in out and "| nut  | 8  | 2          | NULL     |" in out
    assert "TABLE_OR_VIEW_NOT_FOUND" in out and "name='named'" in out
