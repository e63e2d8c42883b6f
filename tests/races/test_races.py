"""Several programs write one table at the same time: every commit lands once or says why not."""

import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, call, query

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
