"""EXPLAIN of statements that change rows: which files they read, without running them."""

import pytest

from program import sql, start

TABLES = """
CREATE TABLE t (k INT, v INT, p STRING) PARTITIONED BY (p);
INSERT INTO t VALUES (1, 1, 'a');
INSERT INTO t VALUES (2, 2, 'b');
INSERT INTO t VALUES (3, 3, 'b');
CREATE TABLE s (k INT, v INT);
INSERT INTO s VALUES (3, 30)
"""


@pytest.fixture
def warehouse(tmp_path):
    sql(tmp_path, TABLES, "csv")
    return tmp_path


def explained(warehouse, statement):
    return sql(warehouse, "EXPLAIN " + statement, "csv")


def test_files_of_statements(warehouse):
    by_partition = "version 3: files: read 1 of 3 (partition values skipped 2, statistics skipped 0)"
    assert by_partition in explained(warehouse, "DELETE FROM t WHERE p = 'a'")
    by_statistics = "version 3: files: read 2 of 3 (partition values skipped 0, statistics skipped 1)"
    assert by_statistics in explained(warehouse, "UPDATE t SET v = 0 WHERE k > 1")
    assert by_partition in explained(warehouse, "INSERT INTO t REPLACE WHERE p = 'a' SELECT 1, 2, 'a'")
    appended = explained(warehouse, "INSERT INTO t SELECT k, v, 'c' FROM s WHERE k = 1")
    assert "files: only new ones are written" in appended
    assert "files: read 0 of 1" in appended
    with_query = explained(warehouse, "WITH c AS (SELECT * FROM s) INSERT INTO t SELECT k, v, 'c' FROM c")
    assert "files: read 1 of 1" in with_query
    assert [row["k"] for row in sql(warehouse, "SELECT k FROM t ORDER BY k")] == [1, 2, 3]


def test_files_of_merge(warehouse):
    merge = explained(
        warehouse,
        "MERGE INTO t USING s ON t.k = s.k AND t.p = 'b' WHEN MATCHED THEN DELETE",
    )
    assert "version 3: files: read 2 of 3 (partition values skipped 1, statistics skipped 0)" in merge
    assert "left out as well when it runs, by: k" in merge
    both = explained(warehouse, "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert "WHEN NOT MATCHED BY SOURCE reads every file" in both


@pytest.mark.parametrize(
    "statement, says",
    [
        ("DELETE FROM t WHERE k", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("UPDATE t SET v = 1 WHERE nosuch = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("MERGE INTO nosuch USING s ON true WHEN MATCHED THEN DELETE", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DROP TABLE t", "expected a query, INSERT, UPDATE, DELETE or MERGE"),
    ],
)
def test_mistakes(warehouse, statement, says):
    done = start("sql", "--warehouse", str(warehouse), "-c", "EXPLAIN " + statement)
    assert done.returncode == 1
    assert says in done.stderr
