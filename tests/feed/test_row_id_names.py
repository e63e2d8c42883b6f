"""The hidden columns of row ids: what Strandline makes anew keeps their names, and where another writer gave new ones,
every file is read by those it has."""

import json
import uuid

import pytest
from harness import query, sql_text

ROWS = "id, s, _change_type AS c, _commit_version AS n"
LAYOUTS = {"plain": "", "mapped": ", 'delta.columnMapping.mode' = 'name'"}
NAMES = {"delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
         "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-"}


def create(vectors, layout, verb="CREATE TABLE"):
    return (f"{verb} q (id INT, s INT) TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}'"
            f"{LAYOUTS[layout]})")


def log_file(warehouse, version):
    return warehouse / "main" / "default" / "q" / "_delta_log" / f"{version:020}.json"


def newest(warehouse):
    return max(row["version"] for row in query(warehouse, "DESCRIBE HISTORY q"))


def names(warehouse):
    """The names of every version that says some, oldest first."""
    found = []
    for file in sorted(log_file(warehouse, 0).parent.glob("*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if metadata := json.loads(line).get("metaData"):
                found.append(tuple(metadata["configuration"].get(key) for key in NAMES))
    return found


def rename(warehouse, version):
    """The newest version gives the columns names of its own, as other writers may."""
    lines = []
    for line in log_file(warehouse, version).read_text(encoding="utf-8").splitlines():
        action = json.loads(line)
        if "metaData" in action:
            for key, prefix in NAMES.items():
                action["metaData"]["configuration"][key] = prefix + str(uuid.uuid4())
        lines.append(json.dumps(action))
    log_file(warehouse, version).write_text("\n".join(lines) + "\n", encoding="utf-8")


def changes(warehouse, first, last=None):
    end = "" if last is None else f", {last}"
    rows = query(warehouse, f"SELECT {ROWS} FROM table_changes('q', {first}{end})")
    return sorted((row["n"], row["id"], row["c"], row["s"]) for row in rows)


def pair(version, key, before, after):
    return [(version, key, "update_postimage", after), (version, key, "update_preimage", before)]


def check_ranges(warehouse, first):
    """Every range tells of its versions what they tell alone."""
    last = newest(warehouse)
    alone = {version: changes(warehouse, version, version) for version in range(first, last + 1)}
    for start in range(first, last + 1):
        assert changes(warehouse, start) == [row for v in range(start, last + 1) for row in alone[v]], start
    for end in range(first, last + 1):
        assert changes(warehouse, first, end) == [row for v in range(first, end + 1) for row in alone[v]], end
    return alone


UPDATES = ("INSERT INTO q VALUES (1, 5), (2, 5), (3, 5); UPDATE q SET s = 6 WHERE id = 2; "
           "UPDATE q SET s = 7 WHERE id = 2")


@pytest.mark.parametrize("renames", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("vectors", [False, True])
def test_a_table_that_is_replaced_and_restored(tmp_path, vectors, layout, renames):
    sql_text(tmp_path, f"{create(vectors, layout)}; {UPDATES}")
    early = changes(tmp_path, 2, 3)
    assert early == pair(2, 2, 5, 6) + pair(3, 2, 6, 7)
    # A mapped table has other columns once it is made anew; a feed over that is refused.
    spans = layout == "plain"
    sql_text(tmp_path, create(vectors, layout, "CREATE OR REPLACE TABLE"))
    if renames:
        rename(tmp_path, 4)
    sql_text(tmp_path, "INSERT INTO q VALUES (1, 1), (2, 2), (3, 3), (4, 4); UPDATE q SET s = 20 WHERE id = 2; "
                       "DELETE FROM q WHERE id = 3; MERGE INTO q AS t USING (SELECT 4 AS id, 40 AS s) AS u "
                       "ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s; OPTIMIZE q; "
                       "UPDATE q SET s = 10 WHERE id = 1")
    # 5 INSERT, 6 UPDATE, 7 DELETE, 8 MERGE, then OPTIMIZE where there is something to do, and the last UPDATE.
    last = newest(tmp_path)
    assert changes(tmp_path, 6) == sorted(pair(6, 2, 2, 20) + [(7, 3, "delete", 3)] + pair(8, 4, 4, 40)
                                          + pair(last, 1, 1, 10))
    if spans:
        check_ranges(tmp_path, 2)
    sql_text(tmp_path, "RESTORE TABLE q TO VERSION AS OF 2; UPDATE q SET s = 60 WHERE id = 2; OPTIMIZE q; "
                       "DELETE FROM q WHERE id = 1; UPDATE q SET s = 30 WHERE id = 3")
    restore = last + 1
    end = newest(tmp_path)
    assert changes(tmp_path, restore + 1) == (pair(restore + 1, 2, 6, 60) + [(end - 1, 1, "delete", 5)]
                                              + pair(end, 3, 5, 30))
    if spans:
        alone = check_ranges(tmp_path, 2)
        assert alone[2] + alone[3] == early
    # What is left of the files is read as before.
    sql_text(tmp_path, "SET spark.databricks.delta.retentionDurationCheck.enabled = false; OPTIMIZE q; "
                       "VACUUM q RETAIN 0 HOURS; UPDATE q SET s = 61 WHERE id = 2")
    assert changes(tmp_path, newest(tmp_path)) == pair(newest(tmp_path), 2, 60, 61)
    assert len(set(names(tmp_path))) == (2 if renames else 1)


def test_whatever_is_made_anew_keeps_the_names(tmp_path):
    """Also while rows are not tracked, and back to before they were."""
    tracked = "TBLPROPERTIES ('delta.enableRowTracking' = '{}')"
    sql_text(tmp_path, f"CREATE TABLE q (id INT, s INT) {tracked.format('false')}; INSERT INTO q VALUES (1, 1)")
    assert names(tmp_path) == [(None, None)]
    sql_text(tmp_path, f"ALTER TABLE q SET {tracked.format('true')}; INSERT OVERWRITE q VALUES (2, 2)")
    kept = names(tmp_path)[-1]
    assert all(kept)
    for statement in (f"CREATE OR REPLACE TABLE q (id INT) {tracked.format('false')}",
                      "CREATE OR REPLACE TABLE q AS SELECT 3 AS id, 3 AS s",
                      "RESTORE TABLE q TO VERSION AS OF 1",
                      f"ALTER TABLE q SET {tracked.format('true')}"):
        sql_text(tmp_path, statement)
        assert names(tmp_path)[-1] == kept, statement
    first = newest(tmp_path) + 1
    sql_text(tmp_path, "UPDATE q SET s = 4")
    assert changes(tmp_path, first) == pair(first, 1, 1, 4)


@pytest.mark.parametrize("vectors", [False, True])
def test_names_that_change_under_files(tmp_path, vectors):
    """A file that was added under one definition and goes under another has the columns of the first."""
    sql_text(tmp_path, f"{create(vectors, 'plain')}; {UPDATES}; ALTER TABLE q SET TBLPROPERTIES ('my' = 'one')")
    rename(tmp_path, 4)
    sql_text(tmp_path, "TRUNCATE TABLE q; RESTORE TABLE q TO VERSION AS OF 3; UPDATE q SET s = 8 WHERE id = 2")
    alone = check_ranges(tmp_path, 2)
    gone = [(key, s) for _, key, c, s in alone[5] if c == "delete"]
    assert gone == [(1, 5), (2, 7), (3, 5)]
    assert alone[7] == pair(7, 2, 7, 8)
