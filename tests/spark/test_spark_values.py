"""Values that engines see differently - NaN, -0.0, nulls inside structs and lists, maps, bytes - as
keys, sequences and columns: Spark's rows and metrics against the embedded engine's."""

import json
from datetime import datetime

import pytest
import values
from backend import Backend, Tables
from harness import call, query, run_pipeline, write_json_lines

TYPES = {
    "k": "STRUCT<a: DOUBLE, b: STRING>", "d": "DOUBLE", "n": "DECIMAL(20,4)", "b": "BINARY", "day": "DATE",
    "at": "TIMESTAMP", "wall": "TIMESTAMP_NTZ", "l": "ARRAY<STRUCT<x: FLOAT, y: STRING>>", "m": "MAP<STRING, DOUBLE>",
    "s": "STRUCT<p: STRUCT<q: DOUBLE>, r: ARRAY<STRING>>", "major": "INT", "minor": "DOUBLE",
}
FLOW = """
CREATE OR REFRESH STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t
FROM STREAM read_files('{landing}', format => 'json', schema => '{schema}')
KEYS (k) {clauses} SEQUENCE BY STRUCT(major, minor) COLUMNS * EXCEPT (major, minor) STORED AS {stored};
"""
A = {"k": {"a": 0.0, "b": "é"}, "d": -0.0, "n": 12345678901234.5678, "b": "/w==", "day": "2025-02-28",
     "at": "2025-03-30T01:30:00.000001Z", "wall": "2025-03-30T02:30:00.000001", "l": [{"x": None, "y": "a"}, None],
     "m": {"x": 1.0, "y": None}, "s": {"p": {"q": "NaN"}, "r": [None, "b"]}}
B = {**A, "k": {"a": -0.0, "b": "é"}, "d": "NaN", "b": "AA==", "m": {"y": None, "x": 1.0}}
C = {**A, "k": {"a": "NaN", "b": None}, "d": "NaN", "n": None, "s": None, "l": []}
D = {**C, "d": 1.5, "n": 0.0001, "b": None, "s": {"p": None, "r": None}}
BATCHES = [  # (major, minor) orders: null lowest, NaN greatest
    [(A, 1, 0.0), (B, 1, 0.0), (C, 2, None), (D, 2, "NaN"), (C, 2, 7.5)],
    [(B, 1, -0.0), (A, 1, None), (D, 2, 7.5), (C, 3, "-Infinity"), ({"k": A["k"], "d": 3.5}, 1, "Infinity")],
    [(A, 1, 0.5), (A, 2, 0.0), (D, 2, None), (C, 3, "-Infinity")],
]
MODES = {
    "type 1": ("", "SCD TYPE 1"),
    "type 2": ("", "SCD TYPE 2"),
    "type 1, partial": ("IGNORE NULL UPDATES", "SCD TYPE 1"),
    "type 2, partial": ("IGNORE NULL UPDATES", "SCD TYPE 2"),
}
SEQUENCE = "STRUCT<major: INT, minor: DOUBLE>"


def plain(row):
    wall = row["wall"]
    return {**row, "wall": wall and datetime.fromisoformat(wall.rstrip("Z")).isoformat(timespec="microseconds")}


@pytest.mark.parametrize("mode", MODES)
def test_values(mode, spark, tmp_path):
    clauses, stored = MODES[mode]
    pipeline, landing, warehouse = tmp_path / "pipeline", tmp_path / "landing", tmp_path / "warehouse"
    pipeline.mkdir()
    landing.mkdir()
    schema = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    (pipeline / "f.sql").write_text(FLOW.format(landing=landing, schema=schema, clauses=clauses, stored=stored), encoding="utf-8")
    backend, tables = Backend(spark.newSession()), Tables.empty()
    types = {**TYPES, "m": "STRUCT<x: DOUBLE, y: DOUBLE>", "__START_AT": SEQUENCE, "__END_AT": SEQUENCE}
    for number, batch in enumerate(BATCHES):
        file = landing / f"{number}.json"
        write_json_lines(file, [{**row, "major": major, "minor": minor} for row, major, minor in batch])
        printed = call("plan", pipeline, "--warehouse", warehouse, "--dialect", "spark", "--json")
        [program] = json.loads(printed.stdout)["programs"]
        metrics = backend.run(program, backend.events(file, program["reads"][0]["columns"]), tables)
        run = run_pipeline(pipeline, warehouse)
        assert run.ok, run.explain()
        ours = query(warehouse, "SELECT * FROM t")
        assert len(ours) >= 2
        wrong = values.differences(map(plain, backend.rows(tables.target)), map(plain, ours), types)
        assert not wrong, f"after batch {number}:\n{wrong}"
        of_flow = run.report["flows"][0]["metrics"]
        assert {name: of_flow[name] for name in metrics if name.startswith("num_")} == {
            name: value for name, value in metrics.items() if name.startswith("num_")}
