"""Files whose row count the log does not know, as some writers leave them: every statement works on them."""

import json

import pytest
from harness import query, sql_text

STATEMENTS = {
    "delete": ("DELETE FROM t WHERE id = 3", [0, 1, 2, 4, 5]),
    "delete_all_of_a_file": ("DELETE FROM t WHERE id < 3", [3, 4, 5]),
    "update": ("UPDATE t SET id = 10 WHERE id = 3", [0, 1, 2, 4, 5, 10]),
    "merge": ("MERGE INTO t USING (SELECT 3 AS id UNION ALL SELECT 7) AS s ON t.id = s.id "
              "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", [0, 1, 2, 4, 5, 7]),
    "twice": ("DELETE FROM t WHERE id = 3; DELETE FROM t WHERE id = 4; DELETE FROM t WHERE id = 5", [0, 1, 2]),
    "optimize": ("OPTIMIZE t; DELETE FROM t WHERE id = 3", [0, 1, 2, 4, 5]),
    "purge": ("DELETE FROM t WHERE id = 3; REORG TABLE t APPLY (PURGE)", [0, 1, 2, 4, 5]),
    "tracked": ("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true'); UPDATE t SET id = 10 WHERE id = 3",
                [0, 1, 2, 4, 5, 10]),
}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("stats", [None, "{}", "no json", '{"nullCount":{"id":0}}'])
@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(tmp_path, name, stats, vectors):
    statements, expected = STATEMENTS[name]
    sql_text(tmp_path, "CREATE TABLE t (id BIGINT) TBLPROPERTIES ('delta.enableRowTracking' = 'false', "
             f"'delta.enableDeletionVectors' = '{vectors}'); INSERT INTO t SELECT id FROM range(3); INSERT INTO t SELECT id + 3 FROM range(3)")
    log = tmp_path / "main" / "default" / "t" / "_delta_log"
    for version in (1, 2):
        commit = log / f"{version:020}.json"
        actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["stats"] = stats
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    sql_text(tmp_path, statements)
    assert [row["id"] for row in query(tmp_path, "SELECT id FROM t ORDER BY id")] == expected
    # Readers of a deletion vector need the count, and that bounds are wide.
    for commit in log.glob("*.json"):
        for line in commit.read_text("utf-8").splitlines():
            add = json.loads(line).get("add", {})
            if add.get("deletionVector"):
                assert json.loads(add["stats"])["numRecords"] == (6 if name == "optimize" else 3)
                assert json.loads(add["stats"])["tightBounds"] is False
