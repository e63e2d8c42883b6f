"""Rows changed by hand between batches: Spark's rows against the embedded engine's."""

import json

import pytest
import values
from backend import Backend, Tables
from harness import call, query, run_pipeline, sql_text, write_json_lines

FLOW = """
CREATE OR REFRESH STREAMING TABLE t{columns};
CREATE FLOW f AS AUTO CDC INTO t
FROM STREAM read_files('{landing}', format => 'json', schema => 'id BIGINT, v STRING, op STRING, seq BIGINT')
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE {storage};
"""
BATCHES = [
    [(1, "a", "I", 1), (1, "b", "U", 5), (2, "c", "I", 2), (3, "d", "I", 3), (4, "e", "I", 4), (4, None, "D", 6)],
    [(1, "late", "U", 3), (2, "early", "U", 1), (3, "new", "U", 9), (4, "back", "U", 5), (5, "y", "U", 0), (6, "z", "I", 1)],
    [(2, "again", "U", 20), (5, None, "D", 30), (1, "b", "U", 5), (3, None, "D", 10), (3, "anew", "U", 11)],
]
# As statements for the embedded engine, and as the rows Spark's table then has. `note` is the table's own column.
EDITS = {
    1: (["UPDATE t SET v = 'by hand'{set} WHERE id = 1", "UPDATE t SET v = 'd'{set} WHERE id = 3", "DELETE FROM t WHERE id = 2",
         "INSERT INTO t VALUES (5, 'x'{value})"],
        "SELECT id, CASE WHEN id = 1 THEN 'by hand' ELSE v END AS v{changed} FROM edited WHERE id <> 2 "
        "UNION ALL SELECT 5L, 'x'{value}"),
    2: (["UPDATE t SET v = 'by hand'{set} WHERE id = 1 AND __END_AT IS NULL", "UPDATE t SET v = 'd'{set} WHERE id = 3",
         "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (5, 'x'{value}, 7, NULL)"],
        "SELECT id, CASE WHEN id = 1 AND __END_AT IS NULL THEN 'by hand' ELSE v END AS v{changed}, __START_AT, __END_AT "
        "FROM edited WHERE id <> 2 UNION ALL SELECT 5L, 'x'{value}, 7L, NULL"),
}
NOTES = {
    False: {"set": "", "value": "", "changed": ""},
    True: {"set": ", note = 'mine'", "value": ", 'mine'",
           "changed": ", CASE WHEN id = 3 OR (id = 1 AND v = 'b') THEN 'mine' ELSE note END AS note"},
}
TYPES = {"id": "BIGINT", "v": "STRING", "note": "STRING", "__START_AT": "BIGINT", "__END_AT": "BIGINT"}


@pytest.mark.parametrize("storage", [1, 2])
@pytest.mark.parametrize("has_notes", [False, True])
def test_rows_changed_by_hand(storage, has_notes, spark, tmp_path):
    pipeline, landing, warehouse = tmp_path / "pipeline", tmp_path / "landing", tmp_path / "warehouse"
    pipeline.mkdir()
    landing.mkdir()
    intervals = ", __START_AT BIGINT, __END_AT BIGINT" if storage == 2 else ""
    columns = f" (id BIGINT, v STRING, note STRING DEFAULT 'new'{intervals})" if has_notes else ""
    (pipeline / "f.sql").write_text(FLOW.format(landing=landing, storage=storage, columns=columns), encoding="utf-8")
    backend, tables = Backend(spark.newSession()), Tables.empty()
    for number, batch in enumerate(BATCHES):
        file = landing / f"{number}.json"
        write_json_lines(file, [dict(zip(("id", "v", "op", "seq"), event)) for event in batch])
        printed = call("plan", pipeline, "--warehouse", warehouse, "--dialect", "spark", "--json")
        [program] = json.loads(printed.stdout)["programs"]
        backend.run(program, backend.events(file, program["reads"][0]["columns"]), tables)
        assert run_pipeline(pipeline, warehouse).ok
        wrong = values.differences(backend.rows(tables.target), query(warehouse, "SELECT * FROM t"),
                                   {name: kind for name, kind in TYPES.items() if has_notes or name != "note"})
        assert not wrong, f"after batch {number}:\n{wrong}"
        if number == 0:
            statements, rows = EDITS[storage]
            sql_text(warehouse, ";".join(statements).format(**NOTES[has_notes]))
            backend.edit(tables.target, rows.format(**NOTES[has_notes]))
