"""Damaged and hostile tables through the program: an error that leads to the place, or all rows."""

import shutil

import pytest
from damages import DAMAGES, SAME_ROWS
from harness import call, query, quote, rows_as_bag

TABLES = {
    # Commits 0 to 4; each insert makes one file.
    "plain": "CREATE TABLE plain (id BIGINT, p STRING) PARTITIONED BY (p); " + "".join(
        f"INSERT INTO plain VALUES ({n}, 'a'), ({n + 10}, 'a'); " for n in range(4)),
    # Commit 4 brings a deletion vector.
    "vectors": "CREATE TABLE vectors (id BIGINT, p STRING); " + "".join(
        f"INSERT INTO vectors SELECT id, 'x' FROM range({n * 100}, {n * 100 + 100}); " for n in range(3)) +
        "DELETE FROM vectors WHERE id IN (5, 7, 99)",
    # A checkpoint at version 10, two commits after it.
    "checkpointed": "CREATE TABLE checkpointed (id BIGINT, p STRING); " + "".join(
        f"INSERT INTO checkpointed VALUES ({n}, 'a'); " for n in range(12)),
    # The same with its files in a sidecar.
    "sidecars": "CREATE TABLE sidecars (id BIGINT, p STRING) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2'); " + "".join(
        f"INSERT INTO sidecars VALUES ({n}, 'a'); " for n in range(12)),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Name -> folder and rows of the table before any damage."""
    warehouse = tmp_path_factory.mktemp("whole")
    query(warehouse, ";".join(TABLES.values()))
    folder = warehouse / "main" / "default"
    assert list((folder / "vectors").glob("**/deletion_vector_*.bin"))
    assert list((folder / "checkpointed" / "_delta_log").glob("*.checkpoint*.parquet"))
    assert list((folder / "sidecars" / "_delta_log" / "_sidecars").glob("*.parquet"))
    return {name: (folder / name, rows_as_bag(query(warehouse, f"SELECT * FROM {name}"))) for name in TABLES}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_damage(whole, damage, tmp_path):
    source, rows = whole[damage.table]
    path = tmp_path / "t"
    shutil.copytree(source, path)
    damage.change(path)
    done = call("sql", "--format", "ndjson", "-c", f"SELECT * FROM delta.{quote(str(path))}", cwd=tmp_path)
    if damage.code == SAME_ROWS:
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(rows_of(source)), "other rows"
        return
    assert done.returncode == 1, f"exit {done.returncode} with {len(done.stdout.splitlines())} of {len(rows)} rows\n{done.stderr}"
    assert f"[{damage.code}" in done.stderr, done.stderr
    assert "INTERNAL" not in done.stderr and "ENGINE_ERROR" not in done.stderr, done.stderr
    for word in damage.words:
        assert word in done.stderr, f"{word!r} is not in: {done.stderr}"


def rows_of(path):
    return call("sql", "--format", "ndjson", "-c", f"SELECT * FROM delta.{quote(str(path))}").stdout.splitlines()
