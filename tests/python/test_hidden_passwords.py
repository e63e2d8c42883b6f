"""Passwords in Python files stand in nothing that is said of them: messages, lines of tracebacks, JSON."""

from pathlib import Path

import harness
import pytest

HUSH = "qu4gg4mire"
READS = [
    f'spark.read.format("jdbc").option("url", "jdbc:postgresql://bob:{HUSH}@h/db").option("dbtable", "t").load()',
    f'spark.read.jdbc("jdbc:postgresql://h/db?sslpassword={HUSH}", "t", properties={{"pwd": "{HUSH}"}})',
    f'spark.read.format("jdbc").options(url="jdbc:oracle:thin", password="{HUSH}").option("dbtable", "t").load()',
    f'spark.read.parquet("s3://key:{HUSH}@bucket/x").count()',
    f'spark.sql("SELECT * FROM delta.`s3://key:{HUSH}@bucket/x`").count()',
    f'(_ for _ in ()).throw(RuntimeError("cannot open postgresql://bob:{HUSH}@h/db"))',
]


@pytest.mark.parametrize("read", READS)
def test_no_error_of_a_python_file_tells_a_password(tmp_path: Path, read: str) -> None:
    (tmp_path / "p.py").write_text(f"from pyspark import pipelines as dp\n\n@dp.table\ndef t():\n    return {read}\n")
    (tmp_path / "s.py").write_text(read + "\n")
    for words in (["run", tmp_path], ["run", "--json", tmp_path], ["plan", tmp_path], ["python", tmp_path / "s.py"]):
        done = harness.call(*words)
        assert done.returncode != 0
        assert HUSH not in done.stdout + done.stderr, done.stdout + done.stderr
        assert words[0] != "python" or "***" in done.stderr
    assert not any(HUSH in path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".py")
