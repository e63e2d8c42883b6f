"""OPTIMIZE runs while others write: nothing they wrote is lost, and rows keep their ids."""

import threading

import model
import pytest
from harness import call, query, run_pipeline, write_json_lines

ROUNDS = 6
MOST_ROUNDS = 40


def attempt(warehouse, statement):
    """Whether the statement committed; a lost race names the conflict."""
    done = call("sql", "--warehouse", warehouse, "-c", statement)
    if done.returncode != 0:
        assert "[DELTA_CONCURRENT_" in done.stderr, done.stderr
    return done.returncode == 0


def optimize_until(stop, warehouse, failures, statement="OPTIMIZE t"):
    """OPTIMIZE again and again in a thread of its own; what is no lost race goes to failures."""

    def work():
        while not stop.is_set():
            try:
                attempt(warehouse, statement)
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def operations(warehouse, table="t"):
    return [row["operation"] for row in query(warehouse, f"DESCRIBE HISTORY {table}")]


CHANGES = {
    "delete": ("DELETE FROM t WHERE id = {n}", lambda rows, n: rows.pop(n)),
    "update": ("UPDATE t SET v = 'u{n}' WHERE id = {n}", lambda rows, n: rows.update({n: f"u{n}"})),
    "merge": ("MERGE INTO t USING (SELECT {n} AS id, 'm{n}' AS v UNION ALL SELECT {n} + 1000, 'new') AS s ON t.id = s.id "
              "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
              lambda rows, n: rows.update({n: f"m{n}", n + 1000: "new"})),
    "insert": ("INSERT INTO t VALUES ({n} + 1000, 'new')", lambda rows, n: rows.update({n + 1000: "new"})),
}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("name", CHANGES)
def test_statements(tmp_path, name, vectors):
    warehouse = tmp_path / "w"
    statement, change = CHANGES[name]
    query(warehouse, f"CREATE TABLE t (id BIGINT, v STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}'); " + "".join(
        f"INSERT INTO t SELECT id, 'old' FROM range({10 * n}, {10 * n + 10}); " for n in range(4)))
    rows = dict.fromkeys(range(40), "old")
    stop, failures = threading.Event(), []
    optimizer = optimize_until(stop, warehouse, failures)
    landed = 0
    try:
        for n in range(MOST_ROUNDS):
            # Two that were at work at once can be seen to have lost to one another, but not all of them.
            if n >= ROUNDS and landed > 0 and "OPTIMIZE" in operations(warehouse):
                break
            id = n * 7 % 40
            if attempt(warehouse, statement.format(n=id)):
                change(rows, id)
                landed += 1
            # Something to merge, whatever came of the statement.
            assert attempt(warehouse, f"INSERT INTO t VALUES ({2000 + n}, 'more')"), "an append loses no race to OPTIMIZE"
            rows[2000 + n] = "more"
    finally:
        stop.set()
        optimizer.join()
    assert not failures, failures
    assert landed > 0 and "OPTIMIZE" in operations(warehouse), f"{landed} landed: {operations(warehouse)}"
    assert {row["id"]: row["v"] for row in query(warehouse, "SELECT * FROM t")} == rows
    assert query(warehouse, "SELECT count(*) AS n FROM t") == [{"n": len(rows)}]


@pytest.mark.parametrize("storage", [1, 2])
def test_auto_cdc(tmp_path, storage):
    """A batch that loses to OPTIMIZE runs again by itself."""
    warehouse, pipeline = tmp_path / "w", tmp_path / "p"
    pipeline.mkdir()
    (pipeline / "p.sql").write_text(
        "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t\n"
        f"FROM STREAM read_files('{tmp_path / 'in'}', format => 'json', schema => 'k BIGINT, a STRING, op STRING, s BIGINT')\n"
        "KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT (op, s) "
        f"STORED AS SCD TYPE {storage};\n", encoding="utf-8")
    events = model.random_events(storage, 40 * MOST_ROUNDS, 30, columns=("a",))
    write_json_lines(tmp_path / "in" / "0.json", events[:40])
    assert run_pipeline(pipeline, warehouse).ok
    stop, failures = threading.Event(), []
    optimizer = optimize_until(stop, warehouse, failures)
    try:
        for n in range(1, MOST_ROUNDS):
            if n >= ROUNDS and "OPTIMIZE" in operations(warehouse):
                break
            taken = n + 1
            write_json_lines(tmp_path / "in" / f"{n}.json", events[40 * n:40 * n + 40])
            run = run_pipeline(pipeline, warehouse)
            assert run.ok, run.explain()
    finally:
        stop.set()
        optimizer.join()
    assert not failures, failures
    assert "OPTIMIZE" in operations(warehouse)
    expected = model.fold(events[:40 * taken], "k", ["a"], storage)

    def bag(rows):
        return sorted(str(sorted(row.items())) for row in rows)

    assert bag(query(warehouse, "SELECT * FROM t")) == bag(expected)
