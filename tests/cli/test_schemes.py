"""Addresses of other stores are refused wherever a path is asked for, and leave nothing on the disk; file: URIs are paths."""

import subprocess
from pathlib import Path

import pytest

from program import PROGRAM

ADDRESSES = ["s3://bucket/lake", "S3A://b/x", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x", "hdfs://n/x", "dbfs:/x", "http://h/x"]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *words], cwd=cwd, capture_output=True, text=True, timeout=120)


def write_pipeline(folder: Path, source: str = "in", spec: str = "") -> None:
    folder.mkdir()
    (folder / "spark-pipeline.yml").write_text("name: p\n" + spec)
    (folder / "transformations").mkdir()
    (folder / "transformations" / "t.sql").write_text(
        f"CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM read_files('{source}', format => 'json', schema => 'id INT');\n"
    )
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text('{"id": 1}\n')


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_are_refused_and_nothing_is_made(tmp_path: Path, address: str) -> None:
    write_pipeline(tmp_path / "p")
    write_pipeline(tmp_path / "stored", spec=f"storage: {address}\n")
    write_pipeline(tmp_path / "reads", source=address)
    write_pipeline(tmp_path / "includes", spec=f"libraries: [{{glob: {{include: '{address}/*.sql'}}}}]\n")
    before = names(tmp_path)
    commands = [
        ("run", "p", "--warehouse", address),
        ("plan", "p", "--warehouse", address),
        ("run", "stored"),
        ("run", "reads", "--dry-run"),
        ("run", "includes"),
        ("run", address),
        ("plan", address),
        ("events", address),
        ("events", "stored"),
        ("init", address),
        ("sql", "--warehouse", address, "-c", "SELECT 1"),
        ("sql", "--warehouse", address, "-c", "CREATE TABLE t (id INT)"),
        ("changes", "--warehouse", address, "--from", "0", "t"),
        ("sql", "--warehouse", "w", "-c", f"SELECT * FROM delta.`{address}`"),
        ("sql", "--warehouse", "w", "-c", f"CREATE TABLE delta.`{address}` (id INT)"),
        ("sql", "--warehouse", "w", "-c", f"CREATE TABLE t (id INT) LOCATION '{address}'"),
        ("sql", "--warehouse", "w", "-c", f"SELECT * FROM read_files('{address}', format => 'json')"),
        ("sql", "--warehouse", "w", "-c", f"SELECT * FROM table_changes_by_path('{address}', 0)"),
    ]
    for command in commands:
        done = run(*command, cwd=tmp_path)
        said = done.stdout + done.stderr
        assert done.returncode != 0 and "UNSUPPORTED_PATH_SCHEME" in said and address in said, f"{command}: {said}"
        assert names(tmp_path) == before, command


def test_file_uris_are_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    write_pipeline(folder, spec=f"storage: {(tmp_path / 'a lake').as_uri()}\n")
    assert run("run", folder.as_uri(), cwd=tmp_path).returncode == 0
    assert run("events", folder.as_uri(), cwd=tmp_path).returncode == 0
    asked = run("sql", "--warehouse", (tmp_path / "a lake").as_uri(), "--format", "csv", "-c", "SELECT id FROM t", cwd=tmp_path)
    assert asked.stdout.split() == ["id", "1"]
    assert not (tmp_path / "file:").exists() and (tmp_path / "a lake").is_dir()
    assert "INVALID_PATH" in run("sql", "--warehouse", "file://elsewhere/x", "-c", "SELECT 1", cwd=tmp_path).stderr


def test_a_colon_in_a_name_is_no_scheme(tmp_path: Path) -> None:
    assert run("sql", "--warehouse", "a:b", "-c", "CREATE TABLE t (id INT)", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a:b").is_dir()
