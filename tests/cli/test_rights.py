"""Folders that the caller may not write to, or not read."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from harness import SqlError, call, query

NOBODY = 65534


@pytest.fixture
def stranger(tmp_path_factory):
    """A warehouse that this user made, and options of call() that make the caller one without rights to it."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-rights-"))
    folder.chmod(0o755)
    warehouse = folder / "w"
    query(warehouse, "CREATE TABLE t AS SELECT 1 AS a")
    options = {"cwd": "/"}
    if os.geteuid() == 0:
        options |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    else:
        for path in [*warehouse.rglob("*"), warehouse]:
            path.chmod(path.stat().st_mode & ~0o222)
    try:
        started = call("--version", **options).returncode == 0
    except OSError:
        started = False
    if not started:
        shutil.rmtree(folder)
        pytest.skip("the program cannot be started as a user without rights, who cannot reach it")
    yield warehouse, options
    if os.geteuid() != 0:
        for path in [warehouse, *warehouse.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o700)
    shutil.rmtree(folder)


def test_without_the_right_to_write(stranger):
    warehouse, options = stranger
    assert query(warehouse, "SELECT a FROM t", **options) == [{"a": 1}]
    for statement in ("INSERT INTO t VALUES (2)", "DELETE FROM t", "UPDATE t SET a = 3", "CREATE TABLE u (a INT)",
                      "ALTER TABLE t ADD COLUMNS (b INT)", "DROP TABLE t", "CREATE SCHEMA s"):
        with pytest.raises(SqlError) as refused:
            query(warehouse, statement, **options)
        assert "WAREHOUSE_NOT_WRITABLE" in str(refused.value), f"{statement}: {refused.value}"
    assert query(warehouse, "SELECT a FROM t") == [{"a": 1}]
    assert query(warehouse, "SHOW TABLES", **options) == query(warehouse, "SHOW TABLES")


def test_without_the_right_to_read(stranger):
    warehouse, options = stranger
    log = warehouse / "main" / "default" / "t" / "_delta_log"
    log.chmod(0)
    try:
        with pytest.raises(SqlError) as refused:
            query(warehouse, "SELECT a FROM t", **options)
    finally:
        log.chmod(0o755)
    assert "PERMISSION_DENIED" in str(refused.value), str(refused.value)
