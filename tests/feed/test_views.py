"""Materialized views that follow their sources: after every refresh a view is what its query gives, whichever way it was
refreshed; its feed tells just what differs, changed rows as updates where it is known which is which."""

import collections
import json
import random

import pytest
from harness import query, rows_as_bag, run_pipeline

VIEWS = {
    # name -> query, whether it can follow its sources
    "rows": ("SELECT id, v * 2 AS w, upper(p) AS p FROM main.default.a WHERE v > 0", True),
    "everything": ("SELECT * FROM main.default.a", True),
    "no_key": ("SELECT p FROM main.default.a", True),
    "joined": ("SELECT a.id, a.v, b.v AS bv, b.p FROM main.default.a AS a JOIN main.default.b AS b ON a.p = b.p AND a.v >= b.v", True),
    "itself": ("SELECT x.id, y.id AS other FROM main.default.a AS x, main.default.a AS y WHERE x.v = y.v AND x.id < y.id", True),
    "nested": ("WITH c AS (SELECT id, p, v FROM main.default.a WHERE v <> 1) SELECT c.id, d.v FROM c JOIN (SELECT p, v FROM main.default.b) d USING (p)", True),
    "grouped": ("SELECT p, count(*) AS n, sum(v) AS s, min(v) AS low, max(id) AS high, avg(v) AS mean FROM main.default.a GROUP BY p", True),
    "by_expression": ("SELECT v % 3 AS r, count(DISTINCT p) AS n FROM main.default.a GROUP BY ALL HAVING count(*) > 1", True),
    "by_alias": ("SELECT concat(p, '!') AS q, sum(v) AS s FROM main.default.a WHERE id % 2 = 0 GROUP BY q", True),
    "grouped_join": ("SELECT b.p, count(*) AS n, sum(a.v) AS s FROM main.default.a AS a JOIN main.default.b AS b ON a.p = b.p GROUP BY b.p", True),
    "total": ("SELECT count(*) AS n, sum(v) AS s FROM main.default.a", False),
    "outer_join": ("SELECT a.id, b.v FROM main.default.a AS a LEFT JOIN main.default.b AS b ON a.p = b.p", False),
    "latest": ("SELECT id, v FROM (SELECT id, v, row_number() OVER (PARTITION BY p ORDER BY id) AS n FROM main.default.a) WHERE n = 1", False),
    "different": ("SELECT DISTINCT p, v FROM main.default.a", True),
    "both": ("SELECT id, v FROM main.default.a WHERE v > 0 UNION ALL SELECT b.v + 0L, c.id FROM main.default.b AS b JOIN main.default.b AS c USING (p)", True),
    "as_sets": ("SELECT id FROM main.default.a UNION SELECT id FROM main.default.b", False),
    "chosen": ("SELECT id FROM main.default.a WHERE v IN (SELECT v FROM main.default.b)", False),
}


def statement(rng, table, step):
    new = step * 10
    some = f"id % {rng.randint(2, 4)} = {rng.randint(0, 1)}"
    rows = ", ".join(f"({new + i}, {rng.choice(['NULL', 0, 1, 2, 3])}, {rng.choice(['NULL', quote('a'), quote('b'), quote('c')])})"
                     for i in range(rng.randint(1, 3)))
    return rng.choice([
        f"INSERT INTO {table} VALUES {rows}", f"INSERT INTO {table} VALUES {rows}",
        f"INSERT INTO {table} SELECT id + {new}, v, p FROM {table} WHERE {some} LIMIT 3",
        f"UPDATE {table} SET v = v + 1 WHERE {some}", f"UPDATE {table} SET p = '{rng.choice('abc')}' WHERE {some}",
        f"UPDATE {table} SET v = v", f"DELETE FROM {table} WHERE {some}", f"DELETE FROM {table} WHERE p = '{rng.choice('abc')}'",
        f"MERGE INTO {table} AS t USING (SELECT id, v + 5 AS v, p FROM {table} WHERE {some}) AS s ON t.id = s.id "
        f"WHEN MATCHED AND s.v > 6 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v",
        f"OPTIMIZE {table}", f"RESTORE TABLE {table} TO VERSION AS OF 1",
    ])


def quote(text):
    return f"'{text}'"


def properties(vectors, feed):
    return (f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}'" +
            (", 'delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'false')" if feed == "recorded" else ")"))


def pipeline(folder, views, kind):
    (folder / "p").mkdir(exist_ok=True)
    (folder / "p" / "views.sql").write_text(";\n".join(
        f"CREATE MATERIALIZED VIEW {name} {kind} AS {text}" for name, (text, _) in views.items()) + ";\n", encoding="utf-8")


def chosen(warehouse):
    """View -> how its last refresh was planned, as the event log has it."""
    events = query(warehouse, f"SELECT origin, message FROM delta.`{warehouse}/_strandline/pipelines/p/event_log` "
                              "WHERE event_type = 'planning_information' ORDER BY timestamp")
    return {json.loads(event["origin"])["flow_name"].split(".")[-1]: event["message"] for event in events}


def feed_of(warehouse, name, first):
    return query(warehouse, f"SELECT * FROM table_changes('main.default.{name}', {first})")


def version(warehouse, name):
    return max(int(commit.stem) for commit in (warehouse / "main" / "default" / name / "_delta_log").glob("*.json"))


def bag(rows):
    return collections.Counter(rows_as_bag(rows))


def difference(left, right):
    return f"(({left}) EXCEPT ALL ({right})) UNION ALL (({right}) EXCEPT ALL ({left}))"


def wrong(name, text, columns, before, now):
    """Queries of what is wrong with a view, each with a name for it: its rows, and what its feed tells from a version on."""
    yield "rows", difference(f"SELECT {columns} FROM main.default.{name}", f"SELECT {columns} FROM ({text})")
    if before is None or now == before:
        return
    changes = f"SELECT {columns} FROM table_changes('main.default.{name}', {before + 1}) WHERE _change_type IN"
    came, went = f"{changes} ('insert', 'update_postimage')", f"{changes} ('delete', 'update_preimage')"
    yield "feed", difference(f"SELECT {columns} FROM main.default.{name} VERSION AS OF {before} UNION ALL {came}",
                             f"SELECT {columns} FROM main.default.{name} UNION ALL {went}")
    yield "feed of what did not change", f"({came}) INTERSECT ({went})"


@pytest.mark.parametrize("vectors, feed, seed", [(True, "automatic", 0), (False, "automatic", 1), (True, "recorded", 2), (False, "recorded", 3)])
def test_views_are_what_their_queries_give(tmp_path, vectors, feed, seed):
    rng = random.Random(seed)
    warehouse = tmp_path / "w"
    options = properties(vectors, feed)
    query(warehouse, ";".join(
        f"CREATE TABLE main.default.{table} (id INT, v INT, p STRING) {options};"
        f"INSERT INTO main.default.{table} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c'), (4, 0, NULL), (5, 1, 'a'), (6, 2, 'a')"
        for table in "ab"))
    pipeline(tmp_path, VIEWS, options)
    columns, at, incremental = {}, {}, collections.Counter()
    for step in range(1, 8):
        made = [statement(rng, f"main.default.{rng.choice('aab')}", step * 3 + n) for n in range(rng.randint(1, 3))]
        if step > 1:
            query(warehouse, ";".join(made))
        run = run_pipeline(tmp_path / "p", warehouse)
        assert run.ok, run.explain()
        how = chosen(warehouse)
        checks = []
        for name, (text, follows) in VIEWS.items():
            if name not in columns:
                columns[name] = ", ".join(row["col_name"] for row in query(warehouse, f"DESCRIBE main.default.{name}"))
            now = version(warehouse, name)
            for what, rows in wrong(name, text, columns[name], at.get(name), now):
                checks.append(f"SELECT '{name}' AS view, '{what}' AS what, count(*) AS n FROM ({rows})")
            at[name] = now
            if step > 1 and " INCREMENTAL: " in how.get(name, ""):
                assert follows, (name, how[name])
                incremental[name] += 1
        found = query(warehouse, "SELECT * FROM (" + " UNION ALL ".join(checks) + ") WHERE n > 0")
        assert not found, (step, made, [(row, how.get(row["view"])) for row in found])
    assert set(incremental) == {name for name, (_, follows) in VIEWS.items() if follows}, incremental


def test_changed_rows_are_updates(tmp_path):
    """Of one table by the row, of groups by their key."""
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE main.default.a (id INT, v INT, p STRING);"
                     "INSERT INTO main.default.a VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'b')")
    pipeline(tmp_path, {"rows": ("SELECT v, p FROM main.default.a WHERE v < 9", True),
                        "grouped": ("SELECT p, sum(v) AS s FROM main.default.a GROUP BY p", True)}, "")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    at = {name: version(warehouse, name) for name in ("rows", "grouped")}
    query(warehouse, "UPDATE main.default.a SET v = v + 1 WHERE id = 2; UPDATE main.default.a SET v = v + 1 WHERE id = 2;"
                     "UPDATE main.default.a SET v = 9 WHERE id = 3; INSERT INTO main.default.a VALUES (4, 7, 'c')")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    told = {name: sorted(f"{row['_change_type']} {row.get('v', row.get('s'))} {row['p']}" for row in feed_of(warehouse, name, at[name] + 1))
            for name in at}
    assert told["rows"] == ["delete 3 b", "insert 7 c", "update_postimage 4 b", "update_preimage 2 b"]
    assert told["grouped"] == ["insert 7 c", "update_postimage 13 b", "update_preimage 5 b"]
    assert chosen(warehouse)["rows"].endswith("planned to be executed as INCREMENTAL: from the rows that changed in its sources.")
    # Refreshed in full the groups are known too.
    query(warehouse, "DROP TABLE main.default.a; CREATE TABLE main.default.a (id INT, v INT, p STRING);"
                     "INSERT INTO main.default.a VALUES (1, 1, 'a'), (2, 8, 'b'), (3, 7, 'c')")
    now = version(warehouse, "grouped")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    assert "FULL: main.default.a was made anew" in chosen(warehouse)["grouped"]
    assert sorted(f"{row['_change_type']} {row['s']} {row['p']}" for row in feed_of(warehouse, "grouped", now + 1)) == [
        "update_postimage 8 b", "update_preimage 13 b"]


def test_why_a_view_is_computed_anew(tmp_path):
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE main.default.a (id INT, v INT); INSERT INTO main.default.a VALUES (1, 1), (2, 2)")
    views = {"rows": ("SELECT id, v FROM main.default.a", True)}
    pipeline(tmp_path, views, "")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    assert "FULL: it is new" in chosen(warehouse)["rows"]

    def refreshed(change):
        query(warehouse, change)
        run = run_pipeline(tmp_path / "p", warehouse)
        assert run.ok, run.explain()
        assert bag(query(warehouse, "SELECT * FROM main.default.rows")) == bag(query(warehouse, views["rows"][0]))
        return chosen(warehouse)["rows"]

    assert "INCREMENTAL" in refreshed("INSERT INTO main.default.a VALUES (3, 3)")
    assert "INCREMENTAL" in refreshed("OPTIMIZE main.default.rows; UPDATE main.default.a SET v = 8 WHERE id = 3")
    assert "what changed in main.default.a is not known (DELTA_MISSING_CHANGE_DATA)" in refreshed(
        "ALTER TABLE main.default.a SET TBLPROPERTIES ('delta.enableRowTracking' = 'false'); INSERT INTO main.default.a VALUES (4, 4)")
    views["rows"] = ("SELECT id, v + 1 AS v FROM main.default.a", True)
    pipeline(tmp_path, views, "")
    assert "its definition changed" in refreshed("SELECT 1")


def test_a_view_of_the_warehouse_is_defined_anew(tmp_path):
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE main.default.a (id INT, p STRING); INSERT INTO main.default.a VALUES (1, 'a'), (2, 'b'); "
                     "CREATE VIEW main.default.inner_view AS SELECT id, p FROM main.default.a WHERE p = 'a'; "
                     "CREATE VIEW main.default.outer_view AS SELECT id FROM main.default.inner_view")
    views = {"rows": ("SELECT id FROM main.default.outer_view", True)}
    pipeline(tmp_path, views, "")
    assert run_pipeline(tmp_path / "p", warehouse).ok

    def refreshed(change):
        query(warehouse, change)
        assert run_pipeline(tmp_path / "p", warehouse).ok
        assert bag(query(warehouse, "SELECT * FROM main.default.rows")) == bag(query(warehouse, views["rows"][0]))
        return chosen(warehouse)["rows"]

    anew = "FULL: a view that it reads was defined anew"
    assert "INCREMENTAL" in refreshed("INSERT INTO main.default.a VALUES (3, 'a')")
    assert anew in refreshed("CREATE OR REPLACE VIEW main.default.inner_view AS SELECT id, p FROM main.default.a WHERE p = 'b'")
    assert "INCREMENTAL" in refreshed("INSERT INTO main.default.a VALUES (4, 'b'), (5, 'a')")
    assert anew in refreshed("DROP VIEW main.default.outer_view; "
                             "CREATE VIEW main.default.outer_view AS SELECT id + 10 AS id FROM main.default.inner_view; "
                             "INSERT INTO main.default.a VALUES (6, 'b')")
    assert "INCREMENTAL" in refreshed("UPDATE main.default.a SET p = 'b' WHERE id = 1")
    assert anew in refreshed("CREATE OR REPLACE VIEW main.default.outer_view (id) AS SELECT 1 - id FROM main.default.inner_view")


def test_what_changes_by_itself_is_computed_anew(tmp_path):
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE main.default.a (id INT, ts TIMESTAMP); "
                     "INSERT INTO main.default.a SELECT 1, current_timestamp() + INTERVAL 4 SECONDS; "
                     "INSERT INTO main.default.a SELECT 2, current_timestamp() + INTERVAL 1 DAY; "
                     "CREATE VIEW main.default.coming AS SELECT id FROM main.default.a WHERE ts > now(); "
                     "CREATE VIEW main.default.chance AS SELECT id, uuid() AS u FROM main.default.a")
    views = {
        "later": ("SELECT id FROM main.default.a WHERE ts > current_timestamp", True),
        "later_by_view": ("SELECT id FROM main.default.coming", True),
        "chosen_by_view": ("SELECT id, u FROM main.default.chance", True),
        "still": ("SELECT id FROM main.default.a", True),
    }
    pipeline(tmp_path, views, "")

    def rows(name):
        return query(warehouse, f"SELECT * FROM main.default.{name} ORDER BY id")

    assert run_pipeline(tmp_path / "p", warehouse).ok
    assert all("FULL: it is new" in plan for plan in chosen(warehouse).values())
    chance, still = rows("chosen_by_view"), version(warehouse, "still")
    while query(warehouse, "SELECT id FROM main.default.coming WHERE id = 1"):
        pass
    assert run_pipeline(tmp_path / "p", warehouse).ok
    assert [row["id"] for row in rows("later")] == [2]
    assert [row["id"] for row in rows("later_by_view")] == [2]
    assert not bag(rows("chosen_by_view")) & bag(chance)
    assert version(warehouse, "still") == still
    plans = chosen(warehouse)
    assert "FULL: it asks for the time (current_timestamp)" in plans["later"]
    assert "FULL: it asks for the time (now)" in plans["later_by_view"]
    assert "FULL: it calls uuid()" in plans["chosen_by_view"]
    assert "FULL: it is new" in plans["still"]  # that of its first load, since nothing was to be done


def test_expectations_of_the_time_are_put_to_the_rows_again(tmp_path):
    """Of the view itself and of a view that it reads: though no table has changed, rows may fail by now."""
    warehouse = tmp_path / "w"
    query(warehouse, "CREATE TABLE main.default.a (id INT, ts TIMESTAMP); "
                     "INSERT INTO main.default.a SELECT 1, current_timestamp() + INTERVAL 5 SECONDS; "
                     "INSERT INTO main.default.a SELECT 2, current_timestamp() + INTERVAL 1 DAY")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "views.sql").write_text("""
        CREATE MATERIALIZED VIEW own (CONSTRAINT coming EXPECT (ts > now()) ON VIOLATION DROP ROW) AS SELECT * FROM main.default.a;
        CREATE TEMPORARY VIEW inner_view (CONSTRAINT coming EXPECT (ts > current_timestamp) ON VIOLATION DROP ROW) AS SELECT * FROM main.default.a;
        CREATE MATERIALIZED VIEW of_view AS SELECT id FROM inner_view;
        CREATE MATERIALIZED VIEW still (CONSTRAINT some EXPECT (id > 0)) AS SELECT id FROM main.default.a;
    """, encoding="utf-8")
    assert run_pipeline(tmp_path / "p", warehouse).ok
    still = version(warehouse, "still")
    while query(warehouse, "SELECT id FROM main.default.a WHERE id = 1 AND ts > now()"):
        pass
    run = run_pipeline(tmp_path / "p", warehouse)
    assert run.ok, run.explain()
    for name in ("own", "of_view"):
        assert [row["id"] for row in query(warehouse, f"SELECT id FROM main.default.{name}")] == [2]
    assert run.flow("still")["metrics"]["num_batches"] == 0 and version(warehouse, "still") == still
