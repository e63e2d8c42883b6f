"""Several programs write one table at the same time: every commit lands once or says why not."""

import subprocess
import threading
from pathlib import Path

import pytest
from harness import PROGRAM, call, query, run_pipeline, write_json_lines

WRITERS = 4
COMMITS = 5


def start(warehouse, text):
    return subprocess.Popen([str(PROGRAM), "sql", "--warehouse", str(warehouse), "-c", text],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out + err


def versions(warehouse, table="t"):
    log = Path(warehouse) / "main" / "default" / table / "_delta_log"
    return sorted(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_appends_all_land_exactly_once(tmp_path, level):
    warehouse = tmp_path / "w"
    query(warehouse, f"CREATE TABLE t (writer INT, number INT) TBLPROPERTIES ('delta.isolationLevel' = '{level}')")
    writers = [start(warehouse, "; ".join(f"INSERT INTO t VALUES ({writer}, {number})" for number in range(COMMITS)))
               for writer in range(WRITERS)]
    for writer in writers:
        code, text = finish(writer)
        assert code == 0, text
    rows = query(warehouse, "SELECT writer, number, count(*) AS n FROM t GROUP BY ALL ORDER BY ALL")
    assert rows == [{"writer": writer, "number": number, "n": 1}
                    for writer in range(WRITERS) for number in range(COMMITS)]
    assert versions(warehouse) == list(range(WRITERS * COMMITS + 1))


def test_deletes_of_different_partitions_all_land(tmp_path):
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE t (p INT, number INT) PARTITIONED BY (p)")
    for writer in range(WRITERS):
        query(warehouse, f"INSERT INTO t SELECT {writer}, id FROM range(10)")
    writers = [start(warehouse, "; ".join(f"DELETE FROM t WHERE p = {writer} AND number = {number}"
                                          for number in range(3))) for writer in range(WRITERS)]
    for writer in writers:
        code, text = finish(writer)
        assert code == 0, text
    assert query(warehouse, "SELECT p, count(*) AS n FROM t GROUP BY ALL ORDER BY ALL") == [
        {"p": writer, "n": 7} for writer in range(WRITERS)]


def test_changes_of_one_row_win_or_name_the_conflict(tmp_path):
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE t AS SELECT 0 AS n")
    changes = 3
    writers = [start(warehouse, "; ".join(["UPDATE t SET n = n + 1"] * changes)) for _ in range(WRITERS)]
    for writer in writers:
        code, text = finish(writer)
        if code != 0:
            assert "DELTA_CONCURRENT_" in text, text
    rows = query(warehouse, "SELECT n FROM t")
    done = versions(warehouse)[-1]
    assert rows == [{"n": done}], "every commit counted once, no lost one did"
    assert done >= changes, "the first to commit never loses"


@pytest.mark.parametrize("storage", ["SCD TYPE 1", "SCD TYPE 2", "SCD TYPE 2 IGNORE NULL UPDATES"])
def test_updates_beside_changes_by_hand(tmp_path, storage):
    """An update that loses a race repeats its batch, and what others change meanwhile is taken in."""
    keys, by_hand, batches = 40, 12, 6
    (tmp_path / "p").mkdir()
    stored_as = storage.replace(" IGNORE NULL UPDATES", "")
    nulls = "IGNORE NULL UPDATES" if "IGNORE" in storage else ""
    (tmp_path / "p" / "p.sql").write_text(
        "CREATE STREAMING TABLE h;\nCREATE FLOW f AS AUTO CDC INTO h FROM STREAM "
        f"read_files('{tmp_path}/in', format => 'json', schema => 'id INT, name STRING, s INT')\n"
        f"KEYS (id) SEQUENCE BY s COLUMNS * EXCEPT (s) STORED AS {stored_as} {nulls};\n", encoding="utf-8")
    warehouse = tmp_path / "w"

    def update(number, events):
        write_json_lines(tmp_path / "in" / f"{number}.json", events)
        return run_pipeline(tmp_path / "p", warehouse)

    first = update(0, ({"id": key, "name": "a", "s": s} for key in range(keys) for s in (4, 6)))
    assert first.ok, first.explain()
    changed, failed = set(), []

    def change_by_hand():
        for key in range(by_hand):
            process = call("sql", "--warehouse", warehouse, "-c", f"UPDATE h SET name = 'hand' WHERE id = {key}")
            if process.returncode == 0:
                changed.add(key)
            else:
                failed.append(process.stderr)

    hand = threading.Thread(target=change_by_hand)
    hand.start()
    runs = [update(number, [{"id": 30 + number, "name": f"b{number}", "s": 10}]) for number in range(1, batches)]
    hand.join()
    for run in runs:
        assert run.ok, run.explain()
    for text in failed:
        assert "DELTA_CONCURRENT_" in text, text
    assert changed
    late = update(99, ({"id": key, "name": "late", "s": 5} for key in range(keys)))
    assert late.ok, late.explain()
    rows = query(warehouse, "SELECT * FROM h")
    for key in changed:
        mine = [row for row in rows if row["id"] == key]
        if stored_as == "SCD TYPE 1":
            assert [row["name"] for row in mine] == ["hand"], f"the change of row {key} is lost: {mine}"
        else:
            assert next(row["name"] for row in mine if row["__START_AT"] == 4) == "hand", \
                f"the change of row {key} is lost: {mine}"
    for number in range(1, batches):
        assert any(row["id"] == 30 + number and row["name"] == f"b{number}" for row in rows)


def test_identity_values_are_given_once(tmp_path):
    """Two INSERTs at once cannot both have the next values: the one that lost runs again by itself."""
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, writer INT)")
    writers = [start(warehouse, "; ".join([f"INSERT INTO t (writer) VALUES ({writer})"] * COMMITS))
               for writer in range(WRITERS)]
    for writer in writers:
        code, text = finish(writer)
        assert code == 0, text
    rows = query(warehouse, "SELECT id, writer FROM t")
    assert len({row["id"] for row in rows}) == len(rows) == WRITERS * COMMITS
    assert {row["id"] for row in rows} == set(range(1, WRITERS * COMMITS + 1))


def test_merges_into_a_table_with_identity_values_all_land(tmp_path):
    """Each gives out values of its own: one that loses the race takes later ones."""
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE t (i BIGINT GENERATED ALWAYS AS IDENTITY, writer INT, number INT)")
    writers = [start(warehouse, "; ".join(
        f"MERGE INTO t USING (SELECT {writer} AS w, {number} AS n) s ON t.writer = s.w AND t.number = s.n "
        "WHEN NOT MATCHED THEN INSERT (writer, number) VALUES (s.w, s.n)" for number in range(3)))
        for writer in range(WRITERS)]
    for writer in writers:
        code, text = finish(writer)
        assert code == 0, text
    assert query(warehouse, "SELECT count(*) AS n, count(DISTINCT i) AS i, count(DISTINCT writer, number) AS w "
                            "FROM t") == [{"n": WRITERS * 3, "i": WRITERS * 3, "w": WRITERS * 3}]


def test_tables_replaced_at_once(tmp_path):
    """Of several CREATE OR REPLACE TABLE each makes its version, on a new name too."""
    warehouse = tmp_path / "w"
    for table in ("t", "u"):
        writers = [start(warehouse, f"CREATE OR REPLACE TABLE {table} AS SELECT {writer} AS writer, id FROM range(3)")
                   for writer in range(WRITERS)]
        for writer in writers:
            code, text = finish(writer)
            assert code == 0, text
        rows = query(warehouse, f"SELECT DISTINCT writer FROM {table}")
        assert len(rows) == 1
        assert versions(warehouse, table) == list(range(WRITERS))
