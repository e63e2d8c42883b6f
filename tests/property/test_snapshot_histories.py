"""A sequence of snapshots gives the table that the events derived from their differences give."""

import json
import os
import random

import pytest
from harness import literal, query, quote, rows_as_bag, run_pipeline, write_json_lines

SEED = int(os.environ.get("STRANDLINE_SEED", 1))
SCENARIOS, SNAPSHOTS = 14, 5

# Few values of each type, so that they meet: nulls, look-alikes, nested nulls.
VALUES = {
    "INT": [None, 0, 1, -5],
    "STRING": [None, "", "a", "a ", "Ä"],
    "DOUBLE": [None, 0.0, -0.0, 1.5, "NaN", "Infinity"],
    "DECIMAL(10, 2)": [None, 1.5, 0, -12345678.91],
    "BOOLEAN": [None, True, False],
    "TIMESTAMP": [None, "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000001Z"],
    "STRUCT<a: INT, b: ARRAY<DOUBLE>>": [None, {"a": None, "b": None}, {"a": 1, "b": [1.0, "NaN", None]}, {"a": 1, "b": []}],
    "ARRAY<STRING>": [None, [], [None], ["x"], ["x", "y"]],
    "MAP<STRING, INT>": [None, {}, {"x": 1}, {"x": 1, "y": None}, {"y": None, "x": 1}],
}
KEYS = {
    "INT": list(range(12)),
    "STRING": [f"k{number}" for number in range(12)],
    "STRUCT<a: INT, b: STRING>": [{"a": a, "b": b} for a in (None, 1, 2) for b in (None, "x", "y", "z")],
    "DOUBLE": [0.0, "NaN", 1.5, -1.5, "Infinity", 2.5, 3.5, 4.5],
}
VERSIONS = {"INT": lambda n: str(n), "DATE": lambda n: f"DATE '2024-01-{n + 1:02d}'",
            "DECIMAL(5, 2)": lambda n: f"CAST({n}.5 AS DECIMAL(5, 2))", "STRING": lambda n: f"'v{n}'"}


class Scenario:
    def __init__(self, rng, number):
        self.name, self.storage = f"t{number}", rng.choice([1, 2, 2])
        key_types = rng.sample(list(KEYS), rng.choice([1, 1, 2]))
        self.keys = {f"k{i}": kind for i, kind in enumerate(key_types)}
        self.columns = {f"c{i}": kind for i, kind in enumerate(rng.sample(list(VALUES), rng.randint(1, 4)))}
        self.new_at = rng.choice([None, None, 2, 3])  # the last column comes with this snapshot
        self.version_type = rng.choice([None, *VERSIONS])  # None: counted
        self.track = ""
        if self.storage == 2 and rng.random() < 0.6:
            there = list(self.columns_at(0))  # a list names what every snapshot has
            some = rng.sample(there, rng.randint(1, len(there)))
            self.track = f"TRACK HISTORY ON {rng.choice(['', '* EXCEPT '])}({', '.join(some)})"
        self.snapshots, table = [], {}
        for _ in range(SNAPSHOTS):
            table = self.next(rng, dict(table))
            self.snapshots.append(table)

    def next(self, rng, table):
        draw = rng.random()
        if draw < 0.1 and self.snapshots:
            return {} if rng.random() < 0.5 else table
        for key in list(table):
            if rng.random() < 0.2:
                del table[key]
            elif rng.random() < 0.5:
                column = rng.choice(list(self.columns))
                table[key] = {**table[key], column: rng.choice(VALUES[self.columns[column]])}
        for _ in range(rng.randint(1, 6)):
            key = {name: rng.choice(KEYS[kind]) for name, kind in self.keys.items()}
            table[json.dumps(key)] = {name: rng.choice(VALUES[kind]) for name, kind in self.columns.items()}
        return table

    def columns_at(self, number):
        last = list(self.columns)[-1]
        gone = self.new_at is not None and number < self.new_at and len(self.columns) > 1
        return {name: kind for name, kind in self.columns.items() if not (gone and name == last)}

    def version(self, number):
        return str(number) if self.version_type is None else VERSIONS[self.version_type](number)

    def rows(self, number):
        columns = self.columns_at(number)
        return [{**json.loads(key), **{name: values[name] for name in columns}}
                for key, values in self.snapshots[number].items()]

    def clauses(self):
        return f"STORED AS SCD TYPE {self.storage} {self.track};\n"

    def snapshot_flow(self, folder, number, rng):
        schema = list({**self.keys, **self.columns_at(number)}.items())
        write_json_lines(folder / self.name / f"{number}.json", self.rows(number))
        file = folder / self.name / f"{number}.json"
        if number >= 1:
            rng.shuffle(schema)  # the order of a snapshot's columns says nothing
        version = "" if self.version_type is None else f"WITH VERSION (SELECT {self.version(number)})"
        return (f"CREATE STREAMING TABLE s_{self.name};\nCREATE FLOW s_{self.name} AS AUTO CDC INTO s_{self.name} FROM "
                f"SNAPSHOT (SELECT * FROM read_files({literal(file)}, format => 'json', schema => {literal(ddl(schema))})) "
                f"{version} KEYS ({', '.join(self.keys)}) {self.clauses()}")

    def change_flow(self, folder, number):
        """Every row of each snapshot is an upsert, every key that is missing since the one before a delete."""
        kind = self.version_type or "BIGINT"
        schema = [*self.keys.items(), *self.columns_at(number).items(), ("op", "STRING"), ("at", "INT")]
        before = self.snapshots[number - 1] if number else {}
        events = [{**row, "op": "U", "at": number} for row in self.rows(number)]
        events += [{**json.loads(key), "op": "D", "at": number} for key in before if key not in self.snapshots[number]]
        write_json_lines(folder / f"{self.name}-changes" / f"{number}.json", events)
        at = " ".join(f"WHEN {n} THEN {self.version(n)}" for n in range(SNAPSHOTS))
        return (f"CREATE STREAMING TABLE c_{self.name};\nCREATE FLOW c_{self.name} AS AUTO CDC INTO c_{self.name} FROM "
                f"(SELECT * EXCEPT (at), CAST(CASE at {at} END AS {'BIGINT' if kind == 'INT' else kind}) AS at FROM STREAM "
                f"read_files({literal(folder / (self.name + '-changes'))}, format => 'json', schema => {literal(ddl(schema))})) "
                f"KEYS ({', '.join(self.keys)}) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) "
                f"{self.clauses()}")


def bag(folder, table):
    """Rows under the equality of AUTO CDC, where -0.0 is 0.0."""
    def plain(value):
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        return 0.0 if value == 0 and isinstance(value, float) else value
    return rows_as_bag([plain(row) for row in query(folder / "w", f"SELECT * FROM {table}")])


def ddl(schema):
    return ", ".join(f"{quote(name)} {kind}" for name, kind in schema)


@pytest.mark.parametrize("turn", [0, 1])
def test_snapshots_equal_their_differences(turn, tmp_path):
    seed = SEED + turn
    print(f"STRANDLINE_SEED={seed}")
    rng = random.Random(seed)
    scenarios = [Scenario(rng, number) for number in range(SCENARIOS)]
    for name in ("snapshots", "changes"):
        (tmp_path / name).mkdir()
    for scenario in scenarios:
        (tmp_path / scenario.name).mkdir()
        (tmp_path / f"{scenario.name}-changes").mkdir()
    for number in range(SNAPSHOTS):
        text = "".join(scenario.snapshot_flow(tmp_path, number, rng) for scenario in scenarios)
        (tmp_path / "snapshots" / "p.sql").write_text(text, encoding="utf-8")
        text = "".join(scenario.change_flow(tmp_path, number) for scenario in scenarios)
        (tmp_path / "changes" / "p.sql").write_text(text, encoding="utf-8")
        for name in ("snapshots", "changes"):
            run = run_pipeline(tmp_path / name, tmp_path / "w")
            assert run.ok, f"seed {seed}, {name}, snapshot {number}\n{run.explain()}"
        for scenario in scenarios:
            ours, theirs = (bag(tmp_path, f"{kind}_{scenario.name}") for kind in "sc")
            assert ours == theirs, f"seed {seed}, {scenario.name} after snapshot {number}: {scenario.__dict__}"
