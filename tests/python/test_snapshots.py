"""AUTO CDC FROM SNAPSHOT from Python: functions that give snapshots, their versions and mistakes."""

import datetime
import json
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
import servers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strandline

HEAD = """
import datetime, decimal, json, pathlib
import numpy
from pyspark import pipelines as dp
dp.create_streaming_table("t")
"""
# Snapshots stand in a file: a list of [version as Python, rows]; the function gives the first above the latest.
FUNCTION = HEAD + """
def next_snapshot(latest):
    for version, rows in json.loads(pathlib.Path({file!r}).read_text()):
        version = eval(version)
        if latest is None or version > latest:
            return spark.createDataFrame([tuple(row) for row in rows], schema="id INT, v STRING"), version

dp.create_auto_cdc_from_snapshot_flow(target="t", source=next_snapshot, keys=["id"], stored_as_scd_type={scd})
"""


class Waiting:
    """The snapshots that a function finds."""

    def __init__(self, pipeline, warehouse, tmp_path, scd=2):
        self.file = tmp_path / "snapshots.json"
        self.known = []
        self.warehouse = warehouse
        self.folder = pipeline({"a.py": FUNCTION.format(file=str(self.file), scd=scd)})

    def update(self, *snapshots, **options):
        self.known += snapshots
        self.file.write_text(json.dumps(self.known))
        return strandline.Pipeline(self.folder, warehouse=self.warehouse.path).run(**options)

    def rows(self, what="*"):
        return sorted(self.warehouse.sql(f"SELECT {what} FROM t").fetchall(), key=repr)


@pytest.fixture
def waiting(pipeline, warehouse, tmp_path):
    return Waiting(pipeline, warehouse, tmp_path)


def test_many_snapshots_in_one_update(waiting):
    update = waiting.update(("1", [(1, "a"), (2, "b")]), ("3", [(1, "c"), (2, "b")]), ("7", [(2, "b")]))
    assert waiting.rows() == [(1, "a", 1, 3), (1, "c", 3, 7), (2, "b", 1, None)]
    flow = update.flows[0].metrics
    assert flow["num_batches"] == 3 and flow["num_input_rows"] == 5
    # Nothing newer: nothing is written. Then one more.
    version = waiting.warehouse.table("t").version
    waiting.update()
    assert waiting.warehouse.table("t").version == version
    waiting.update(("8", [(2, "b"), (1, "z")]))
    assert (1, "z", 8, None) in waiting.rows() and len(waiting.rows()) == 4


TYPES = {
    "int": (["1", "2", "10"], "BIGINT", 1),
    "datetime": (["datetime.datetime(2024, 1, 31, 12)", "datetime.datetime(2024, 1, 31, 12, 0, 0, 1)", "datetime.datetime(2025, 1, 1)"],
                 "TIMESTAMP", datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.timezone.utc)),
    "datetime of a zone": (
        [f"datetime.datetime(2024, 1, {day}, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))" for day in (1, 2, 3)],
        "TIMESTAMP", datetime.datetime(2023, 12, 31, 23, tzinfo=datetime.timezone.utc)),
    "date": (["datetime.date(2024, 1, 31)", "datetime.date(2024, 2, 1)", "datetime.date(2025, 1, 1)"], "DATE", datetime.date(2024, 1, 31)),
    "numpy": (["numpy.int64(1)", "numpy.int32(5)", "numpy.int64(2**40)"], "BIGINT", 1),
    "str": (["'2024-01'", "'2024-02'", "'it\\'s ü'"], "STRING", "2024-01"),
    "Decimal": (["decimal.Decimal('1.5')", "decimal.Decimal('1.50000001')", "decimal.Decimal('12')"], "DECIMAL(38,18)", Decimal("1.5")),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_types_of_versions(kind, waiting):
    """Two snapshots in one update, a third in the next: the version comes back as what was given."""
    versions, type_, first = TYPES[kind]
    waiting.update((versions[0], [(1, "a")]), (versions[1], [(1, "b")]))
    waiting.update((versions[2], [(1, "c")]))
    field = next(field for field in waiting.warehouse.table("t").schema if field.name == "__START_AT")
    assert field.type == type_
    rows = sorted(waiting.rows(), key=lambda row: row[1])
    assert [row[1] for row in rows] == ["a", "b", "c"] and rows[0][2] == first and rows[0][3] == rows[1][2]


@pytest.mark.parametrize("version, code", [
    ("1.5", "INVALID_SNAPSHOT_VERSION_TYPE"), ("True", "INVALID_SNAPSHOT_VERSION_TYPE"), ("2**70", "INVALID_SNAPSHOT_VERSION_TYPE"),
    ("(1, 2)", "INVALID_SNAPSHOT_VERSION_TYPE"), ("None", "NULL_SNAPSHOT_VERSION"),
])  # fmt: skip
def test_versions_that_are_none(version, code, waiting):
    update = waiting.update((version, [(1, "a")]), check=False)
    assert update.status == "FAILED" and update.errors[0].code == f"APPLY_CHANGES_FROM_SNAPSHOT_ERROR.{code}", update.errors


def test_an_exception_keeps_what_was_committed(pipeline, warehouse, tmp_path):
    broken = tmp_path / "broken"
    broken.touch()
    folder = pipeline({"a.py": HEAD + f"""
def next_snapshot(latest):
    if latest is None:
        return spark.createDataFrame([(1, "a")], schema="id INT, v STRING"), 1
    if latest == 1:
        return load(), 2

def load():
    if pathlib.Path({str(broken)!r}).exists():
        raise ConnectionError("no route to the source")
    return spark.createDataFrame([(1, "b")], schema="id INT, v STRING")

dp.create_auto_cdc_from_snapshot_flow(target="t", source=next_snapshot, keys=["id"])
"""})  # fmt: skip
    update = strandline.Pipeline(folder, warehouse=warehouse.path).run(check=False)
    assert update.status == "FAILED"
    error = update.errors[0]
    assert error.code == "PYTHON_ERROR" and "ConnectionError: no route to the source" in error.message
    assert "in next_snapshot" in error.message and "in load" in error.message and error.place.line == 15, error
    assert warehouse.sql("SELECT * FROM t").fetchall() == [(1, "a")]
    broken.unlink()
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    assert warehouse.sql("SELECT * FROM t").fetchall() == [(1, "b")]


def test_a_version_that_is_late(waiting, pipeline, warehouse):
    waiting.update(("5", [(1, "a")]))
    waiting.folder.joinpath("a.py").write_text(HEAD + """
def next_snapshot(latest):
    return spark.createDataFrame([(1, "old")], schema="id INT, v STRING"), 4

dp.create_auto_cdc_from_snapshot_flow(target="t", source=next_snapshot, keys=["id"], stored_as_scd_type=2)
""")
    update = strandline.Pipeline(waiting.folder, warehouse=warehouse.path).run()
    assert update.flows[0].metrics["num_skipped_snapshots"] == 1 and "OUT_OF_ORDER" in update.warnings[0].code
    assert waiting.rows("v") == [("a",)]


def test_a_function_that_remembers(pipeline, warehouse):
    """It is called in one interpreter until it has no more, and may return frames made in many ways."""
    warehouse.sql("CREATE TABLE a AS SELECT 1 AS id, 'x' AS v; CREATE TABLE b AS SELECT 2 AS id, 'y' AS v")
    folder = pipeline({"a.py": HEAD + """
class Source:
    def __init__(self):
        self.calls = 0

    def next(self, latest=None):
        self.calls += 1
        frames = [
            lambda: spark.read.table("a"),
            lambda: spark.sql("SELECT * FROM a UNION ALL SELECT * FROM b"),
            lambda: spark.read.table("a").unionByName(spark.read.table("b")).withColumn("v", spark_upper("v")),
        ]
        if latest is None or latest < 3:
            return frames[self.calls - 1](), self.calls

from pyspark.sql.functions import upper as spark_upper
import dlt
dlt.apply_changes_from_snapshot("t", snapshot_and_version=Source().next, keys=["id"], stored_as_scd_type="1", name="by_hand")
"""})  # fmt: skip
    update = strandline.Pipeline(folder, warehouse=warehouse.path).run()
    assert update.flow("by_hand").metrics["num_batches"] == 3
    assert sorted(warehouse.sql("SELECT * FROM t").fetchall()) == [(1, "X"), (2, "Y")]
    shown = update._repr_html_()
    assert "<td>by_hand</td><td>main.default.t</td><td>COMPLETED</td><td>5</td>" in shown, shown


def test_options_of_the_flow(pipeline, warehouse):
    warehouse.sql("CREATE TABLE s (id INT, v STRING, w INT); INSERT INTO s VALUES (1, 'a', 1), (2, 'b', 1)")
    flows = {
        "tracked": "stored_as_scd_type=2, track_history_column_list=['v']",
        "others": "stored_as_scd_type='2', track_history_except_column_list=['w']",
        "first": "once=True, name='only_once'", "one": "stored_as_scd_type='1'",
    }  # fmt: skip
    code = HEAD.replace('dp.create_streaming_table("t")', "")
    for name, options in flows.items():
        code += f"dp.create_streaming_table('{name}')\ndp.create_auto_cdc_from_snapshot_flow('{name}', 's', ['id'], {options})\n"
    folder = pipeline({"a.py": code})
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    warehouse.sql("UPDATE s SET w = 2 WHERE id = 1; UPDATE s SET v = 'c' WHERE id = 2")
    strandline.Pipeline(folder, warehouse=warehouse.path).run()
    expected = [(1, "a", 2, 0, None), (2, "b", 1, 0, 1), (2, "c", 1, 1, None)]
    for name in ("tracked", "others"):
        assert sorted(warehouse.sql(f"SELECT * FROM {name}").fetchall(), key=repr) == expected, name
    assert sorted(warehouse.sql("SELECT * FROM first").fetchall()) == [(1, "a", 1), (2, "b", 1)]
    assert sorted(warehouse.sql("SELECT * FROM one").fetchall()) == [(1, "a", 2), (2, "c", 1)]


def test_snapshots_of_postgres(pipeline, warehouse, postgres, monkeypatch):
    """A changing table of a real server; numbers, bytes and times compare exactly."""
    monkeypatch.setenv("SHOP_PASSWORD", servers.PASSWORD)
    postgres.run("CREATE TABLE users (id int PRIMARY KEY, name text, n numeric, f float8, at timestamptz, raw bytea);"
                 "INSERT INTO users VALUES (1, 'Ann', 0.1, 'NaN', '2024-01-01', '\\x00'), (2, 'Bob', NULL, 1.5, NULL, NULL)")  # fmt: skip
    folder = pipeline({"a.py": HEAD + f"""
import os

@dp.view(name="source")
def source():
    return (spark.read.format("jdbc").option("url", {postgres.url!r}).option("dbtable", "users")
            .option("user", "me").option("password", os.environ["SHOP_PASSWORD"]).load())

dp.create_auto_cdc_from_snapshot_flow(target="t", source="source", keys=["id"], stored_as_scd_type=2)
"""})  # fmt: skip
    run = lambda: strandline.Pipeline(folder, warehouse=warehouse.path).run().flows[0].metrics
    assert run()["num_upserted_rows"] == 2
    version = warehouse.table("t").version
    assert run()["num_upserted_rows"] == 0 and warehouse.table("t").version == version
    postgres.run("UPDATE users SET n = 0.10000000000000001 WHERE id = 1; DELETE FROM users WHERE id = 2;"
                 "INSERT INTO users VALUES (3, 'Cy', 1, 2, NULL, NULL)")  # fmt: skip
    run()
    rows = sorted(warehouse.sql("SELECT id, n, __START_AT, __END_AT FROM t").fetchall(), key=repr)
    assert rows == [(1, Decimal("0.1"), 0, 2), (1, Decimal("0.10000000000000001"), 2, None), (2, None, 0, 2),
                    (3, Decimal("1"), 2, None)]  # fmt: skip


def test_a_function_that_asks_a_database(pipeline, warehouse, postgres):
    """Versions and rows of a server; the password goes to the program with the answer."""
    postgres.run("CREATE TABLE days (day date, id int, v text); INSERT INTO days VALUES ('2024-01-01', 1, 'a'),"
                 "('2024-01-02', 1, 'b'), ('2024-01-02', 2, 'c'), ('2024-01-05', 2, 'c')")  # fmt: skip
    folder = pipeline({"a.py": HEAD + f"""
def read(query):
    options = dict(url={postgres.url!r}, user="me", password={servers.PASSWORD!r}, query=query)
    return spark.read.format("jdbc").options(**options).load()

def next_snapshot(latest):
    after = "" if latest is None else f"WHERE day > '{{latest}}'"
    day = read(f"SELECT min(day) AS day FROM days {{after}}").first().day
    if day is not None:
        return read(f"SELECT id, v FROM days WHERE day = '{{day}}'"), day

dp.create_auto_cdc_from_snapshot_flow(target="t", source=next_snapshot, keys=["id"], stored_as_scd_type=2)
"""})  # fmt: skip
    assert strandline.Pipeline(folder, warehouse=warehouse.path).run().flows[0].metrics["num_batches"] == 3
    first, second, last = (datetime.date(2024, 1, day) for day in (1, 2, 5))
    assert sorted(warehouse.sql("SELECT * FROM t").fetchall(), key=repr) == sorted(
        [(1, "a", first, second), (1, "b", second, last), (2, "c", second, None)], key=repr)  # fmt: skip


EXAMPLES = 3  # each one update with all its snapshots

CELLS = st.tuples(st.one_of(st.none(), st.sampled_from(["a", "b", "c'd"])), st.one_of(st.none(), st.integers(0, 2)))
SNAPSHOTS = st.lists(st.dictionaries(st.integers(1, 6), CELLS, max_size=6), min_size=2, max_size=6).filter(lambda all_: all_[0])

BOTH = """
import json, pathlib
from pyspark import pipelines as dp
from pyspark.sql.functions import col

SNAPSHOTS = json.loads(pathlib.Path({file!r}).read_text())

def next_snapshot(latest):
    number = 0 if latest is None else latest + 1
    if number < len(SNAPSHOTS):
        return spark.createDataFrame([tuple(row) for row in SNAPSHOTS[number]], schema="id INT, v STRING, w INT"), number

@dp.temporary_view
def events():
    return spark.readStream.schema("id INT, v STRING, w INT, gone BOOLEAN, seq BIGINT").json({events!r})

for name, options in {{"one": dict(), "two": dict(stored_as_scd_type=2),
                       "some": dict(stored_as_scd_type=2, track_history_column_list=["v"])}}.items():
    dp.create_streaming_table(name)
    dp.create_auto_cdc_from_snapshot_flow(name, next_snapshot, ["id"], **options)
    dp.create_streaming_table(name + "_of_events")
    dp.create_auto_cdc_flow(name + "_of_events", "events", ["id"], "seq", apply_as_deletes="gone",
                            except_column_list=["gone", "seq"], **options)
"""


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(SNAPSHOTS)
def test_snapshots_are_the_events_of_their_differences(snapshots):
    folder = Path(tempfile.mkdtemp())
    try:
        events, before = [], {}
        for number, now in enumerate(snapshots):
            for key in before.keys() | now.keys():
                if key not in now:
                    events.append({"id": key, "gone": True, "seq": number})
                elif before.get(key) != now[key]:
                    events.append({"id": key, "v": now[key][0], "w": now[key][1], "gone": False, "seq": number})
            before = now
        (folder / "p").mkdir()
        (folder / "events").mkdir()
        (folder / "events" / "e.json").write_text("".join(json.dumps(event) + "\n" for event in events))
        (folder / "s.json").write_text(json.dumps([[[key, *cells] for key, cells in one.items()] for one in snapshots]))
        (folder / "p" / "a.py").write_text(BOTH.format(file=str(folder / "s.json"), events=str(folder / "events")))
        strandline.Pipeline(folder / "p", warehouse=folder / "w").run()
        w = strandline.connect(folder / "w")
        read = lambda name: sorted(w.sql(f"SELECT * FROM {name}").fetchall(), key=repr)
        assert read("one") == sorted(((key, *cells) for key, cells in snapshots[-1].items()), key=repr)
        for name in ("one", "two", "some"):
            assert read(name) == read(name + "_of_events"), (name, snapshots)
    finally:
        shutil.rmtree(folder)
