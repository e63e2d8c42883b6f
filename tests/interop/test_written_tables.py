"""Tables that pipelines write, read by an independent Delta reader."""

import json
from pathlib import Path

import independent
import model
import pytest
from harness import query, quote, run_pipeline, sql_text, write_json_lines

BATCHES = 14  # beyond the checkpoint at every tenth commit

EVENT_SCHEMA = "k BIGINT, a STRING, b STRING, op STRING, s BIGINT"


def flow(target, folder, storage, schema=EVENT_SCHEMA, keys="k", clauses="", properties=""):
    return (f"CREATE STREAMING TABLE {target}{properties};\n"
            f"CREATE FLOW {target} AS AUTO CDC INTO {target}\n"
            f"FROM STREAM read_files('{folder}', format => 'json', schema => '{schema}')\n"
            f"KEYS ({keys}) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT (op, s)\n"
            f"STORED AS SCD TYPE {storage} {clauses};\n")


def table_path(warehouse, name):
    return Path(warehouse) / "main" / "default" / name


def assert_same(warehouse, name, version=None):
    """Both readers agree; returns our rows."""
    at = "" if version is None else f" VERSION AS OF {version}"
    ours = query(warehouse, f"SELECT * FROM {quote(name)}{at}")
    theirs = independent.rows(table_path(warehouse, name), version)
    assert independent.bag(ours) == independent.bag(theirs), f"{name}{at}"
    return ours


VARIANTS = {
    "plain1": (1, "", ""),
    "plain2": (2, "", ""),
    "tracked2": (2, "TRACK HISTORY ON (a)", ""),
    "partitioned1": (1, "", " PARTITIONED BY (a)"),
    "partitioned2": (2, "", " PARTITIONED BY (b)"),
    "no_vectors1": (1, "", " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"),
    "no_vectors2": (2, "", " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Seven targets after many batches of random changes."""
    folder = tmp_path_factory.mktemp("history")
    pipeline = folder / "p"
    pipeline.mkdir()
    (folder / "in").mkdir()
    text = "".join(flow(name, folder / "in", storage, clauses=clauses, properties=properties)
                   for name, (storage, clauses, properties) in VARIANTS.items())
    (pipeline / "p.sql").write_text(text, encoding="utf-8")
    events = model.random_events(7, 60 * BATCHES, 50)
    for number in range(BATCHES):
        write_json_lines(folder / "in" / f"{number:03d}.json", events[number * 60:(number + 1) * 60])
        run = run_pipeline(pipeline, folder / "w", timeout=600)  # seven targets, on a machine that may do much else
        assert run.ok, run.explain()
    return folder / "w", events


@pytest.mark.parametrize("name", VARIANTS)
def test_after_many_batches(history, name):
    warehouse, events = history
    storage, clauses, _ = VARIANTS[name]
    ours = assert_same(warehouse, name)
    expected = model.fold(events, "k", ["a", "b"], storage, ["a"] if "TRACK" in clauses else None)
    assert independent.bag(ours) == independent.bag(expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_earlier_versions(history, name):
    warehouse, _ = history
    versions = [int(path.stem) for path in (table_path(warehouse, name) / "_delta_log").glob("*.json")]
    assert len(versions) > 10
    for version in (min(versions), 1, 5, 10, 11, max(versions)):
        assert_same(warehouse, name, version)


def test_deletion_vectors_and_checkpoints_are_there(history):
    """The files that the tests above are about exist, and where they are turned off they do not."""
    warehouse, _ = history
    for name, (_, _, properties) in VARIANTS.items():
        log = table_path(warehouse, name) / "_delta_log"
        adds = [json.loads(line)["add"] for commit in log.glob("*.json")
                for line in commit.read_text("utf-8").splitlines() if '"add"' in line]
        with_vectors = [add for add in adds if add.get("deletionVector")]
        assert bool(with_vectors) == ("enableDeletionVectors" not in properties), name
        assert list(log.glob("*.checkpoint*.parquet")), f"{name}: no checkpoint"
        assert (log / "_last_checkpoint").exists()
        for add in adds:
            stats = json.loads(add["stats"])
            assert stats["numRecords"] >= 1 and "minValues" in stats and "nullCount" in stats


def test_row_tracking_ids_are_unique(history):
    """baseRowId ranges of all files ever added never overlap and stay below the high-water mark."""
    warehouse, _ = history
    for name in VARIANTS:
        log = table_path(warehouse, name) / "_delta_log"
        spans, mark = {}, -1
        for commit in sorted(log.glob("*.json")):
            for line in commit.read_text("utf-8").splitlines():
                action = json.loads(line)
                if "add" in action:
                    add = action["add"]
                    assert add.get("defaultRowCommitVersion") is not None, f"{name}: {add['path']}"
                    spans[add["path"]] = (add["baseRowId"], json.loads(add["stats"])["numRecords"])
                if action.get("domainMetadata", {}).get("domain") == "delta.rowTracking":
                    mark = json.loads(action["domainMetadata"]["configuration"])["rowIdHighWaterMark"]
        end = -1
        for base, count in sorted(spans.values()):
            assert base > end, f"{name}: row ids overlap"
            end = base + count - 1
        assert end <= mark, f"{name}: ids above the high-water mark"


ODD = "`user-id` INT, `a.b` STRING, `größe` DOUBLE, `日本` STRING, file_row_number INT, `select` STRING, op STRING, s BIGINT"


def test_odd_names(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "p.sql").write_text(
        flow("`odd name ☃`", tmp_path / "in", 2, ODD, "`user-id`, `a.b`", properties=" PARTITIONED BY (`日本`)"), encoding="utf-8")
    for number in range(3):
        write_json_lines(tmp_path / "in" / f"{number}.json", [
            {"user-id": key, "a.b": "x y", "größe": number + key / 2, "日本": "本/=%☃ "[number:], "file_row_number": 5,
             "select": "s", "s": number + 1, "op": "U"} for key in range(5)])
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, run.explain()
    ours = query(tmp_path / "w", "SELECT * FROM `odd name ☃`")
    folder = next(path for path in (tmp_path / "w" / "main" / "default").iterdir() if (path / "_delta_log").exists())
    assert independent.bag(ours) == independent.bag(independent.rows(folder))
    assert len(ours) == 15


TYPES = ("k BIGINT, b BOOLEAN, ti TINYINT, sm SMALLINT, i INT, f FLOAT, d DOUBLE, m DECIMAL(20,3), t STRING, bin BINARY, "
         "da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, st STRUCT<x: INT, y: STRUCT<z: STRING>>, ar ARRAY<STRUCT<q: INT>>, "
         "ma MAP<STRING, INT>, op STRING, s BIGINT")


def test_all_types(tmp_path):
    (tmp_path / "p").mkdir()
    text = "".join(flow(f"t{storage}", tmp_path / "in", storage, TYPES) for storage in (1, 2))
    (tmp_path / "p" / "p.sql").write_text(text, encoding="utf-8")
    full = {"k": 1, "b": True, "ti": -128, "sm": 32767, "i": -2147483648, "f": 1.5, "d": 1e300, "m": 1234567.125, "t": "☃\u0000'",
            "bin": "AP8=", "da": "0001-01-01", "ts": "2024-02-29T23:59:59.123456+02:00", "tn": "2024-02-29T23:59:59.123456",
            "st": {"x": 1, "y": {"z": "q"}}, "ar": [{"q": 1}, {"q": None}], "ma": {"a": 1, "b": None}, "op": "U", "s": 1}
    batches = [[full, {"k": 2, "op": "U", "s": 1}, {"k": 3, "d": "NaN", "f": "Infinity", "st": {}, "ar": [], "ma": {}, "t": "",
                                                     "bin": "", "op": "U", "s": 1}],
               [{**full, "m": 0.001, "s": 2}, {**full, "k": 2, "s": 2, "da": "9999-12-31"}]]
    for number, batch in enumerate(batches):
        write_json_lines(tmp_path / "in" / f"{number}.json", batch)
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, run.explain()
    assert len(assert_same(tmp_path / "w", "t1")) == 3
    assert len(assert_same(tmp_path / "w", "t2")) == 5


def test_a_column_added_later(tmp_path):
    (tmp_path / "p").mkdir()
    for number, schema in enumerate((EVENT_SCHEMA, EVENT_SCHEMA + ", n STRUCT<x: INT>", EVENT_SCHEMA + ", n STRUCT<x: INT, y: INT>")):
        (tmp_path / "p" / "p.sql").write_text(flow("t", tmp_path / "in", 2, schema), encoding="utf-8")
        write_json_lines(tmp_path / "in" / f"{number}.json", [
            {"k": key, "a": str(number), "n": {"x": number, "y": 7}, "op": "U", "s": number} for key in range(number, 4)])
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, run.explain()
    rows = assert_same(tmp_path / "w", "t")
    assert list(rows[0]) == ["k", "a", "b", "n", "__START_AT", "__END_AT"]


def test_sql_tables(tmp_path):
    """CREATE TABLE AS and INSERT write tables that others read."""
    query(tmp_path / "w", "CREATE TABLE t AS SELECT 1 AS id, 'a' AS name; INSERT INTO t VALUES (2, NULL), (3, 'c')")
    assert len(assert_same(tmp_path / "w", "t")) == 3


def test_the_state_is_not_in_the_way(history):
    """What lies in _strandline_state is a Delta table of its own that other readers of the target never see."""
    warehouse, _ = history
    for name in VARIANTS:
        state = table_path(warehouse, name) / "_strandline_state"
        assert (state / "_delta_log").exists()
        assert len(independent.rows(state)) >= 0


def test_version_two_checkpoints_with_struct_statistics(tmp_path):
    """The checkpoint alone, with statistics in columns only, is enough for both readers."""
    warehouse = tmp_path / "w"
    sql_text(warehouse, """
        CREATE TABLE t (id BIGINT, name STRING, d DECIMAL(12,2), ts TIMESTAMP, p INT) PARTITIONED BY (p)
        TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1',
                       'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false');
        INSERT INTO t VALUES (1, 'x"y', 1.5, TIMESTAMP '2024-01-01 00:00:00.123456Z', 1);
        INSERT INTO t VALUES (2, NULL, 2.5, NULL, 2);""")
    log = table_path(warehouse, "t") / "_delta_log"
    assert len(list((log / "_sidecars").iterdir())) == 2
    for commit in log.glob(f"{'[0-9]' * 20}.json"):
        commit.unlink()
    assert sorted(row["name"] or "" for row in assert_same(warehouse, "t")) == ["", 'x"y']
