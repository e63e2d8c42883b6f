"""A DROP TABLE that was killed after the table's name was gone: what it left goes with the next statement of its kind."""

import uuid

import pytest
from harness import query


@pytest.mark.parametrize("statement", ["DROP TABLE IF EXISTS t", "DROP TABLE other", "CREATE TABLE t (id BIGINT)"])
def test_leftovers_of_a_drop(tmp_path, statement):
    query(tmp_path, "CREATE TABLE t AS SELECT 1 AS id; CREATE TABLE other AS SELECT 2 AS id; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 3 AS id")
    schema = tmp_path / "main" / "default"
    left = [tmp_path / "main" / folder / f".strandline_dropped_{uuid.uuid4()}" for folder in ("default", "s")]
    (schema / "t").rename(left[0])
    (tmp_path / "main" / "s" / "t").rename(left[1])
    assert [row["tableName"] for row in query(tmp_path, "SHOW TABLES")] == ["other"]
    query(tmp_path, statement)
    assert [folder.exists() for folder in left] == [False, True]
    assert not list(schema.glob(".*"))
    assert query(tmp_path, "SHOW TABLES IN s") == []
