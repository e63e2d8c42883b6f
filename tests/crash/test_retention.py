"""Deletes that are forgotten (pipelines.cdc.tombstoneGCThresholdInSeconds): while events come in the order of their
sequences, tables are what they are without forgetting."""

import os

import model
import pytest
from harness import query, rows_as_bag, run_pipeline, sql_text, write_json_lines

SEED = int(os.environ.get("STRANDLINE_SEED", 1))
SCHEMA = "k BIGINT, a STRING, b STRING, op STRING, s BIGINT"


@pytest.mark.parametrize("storage", [1, 2])
def test_forgetting_changes_no_table(tmp_path, storage):
    print(f"STRANDLINE_SEED={SEED}")
    (tmp_path / "p").mkdir()
    text = ""
    for target, seconds in (("forgets", 0), ("keeps", 1_000_000)):
        text += (f"CREATE STREAMING TABLE {target} TBLPROPERTIES "
                 f"('pipelines.cdc.tombstoneGCThresholdInSeconds' = '{seconds}');\n"
                 f"CREATE FLOW {target} AS AUTO CDC INTO {target}\n"
                 f"FROM STREAM read_files('{tmp_path}/in', format => 'json', schema => '{SCHEMA}')\n"
                 f"KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT (op, s)\n"
                 f"STORED AS SCD TYPE {storage};\n")
    (tmp_path / "p" / "p.sql").write_text(text, encoding="utf-8")
    events = sorted(model.random_events(SEED, 1500, 150), key=lambda event: event["s"])
    batches = 6
    for number in range(batches):
        low, high = number * 1500 // batches, (number + 1) * 1500 // batches
        write_json_lines(tmp_path / "in" / f"{number}.json", [event for event in events if low <= event["s"] < high])
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, f"seed {SEED}\n{run.explain()}"
        expected = rows_as_bag(model.fold([event for event in events if event["s"] < high], "k", ["a", "b"], storage))
        for target in ("forgets", "keeps"):
            assert rows_as_bag(query(tmp_path / "w", f"SELECT * FROM {target}")) == expected, \
                f"seed {SEED}: {target} after batch {number}"

    def deletes(target):
        state = f"{tmp_path}/w/main/default/{target}/_strandline_state"
        return query(tmp_path / "w", f"SELECT count(*) AS n FROM delta.`{state}` WHERE `__strandline_kind` = 0")[0]["n"]

    if storage == 1:
        assert deletes("forgets") < deletes("keeps"), "nothing was forgotten"


@pytest.mark.parametrize("updates", ["", " IGNORE NULL UPDATES"])
def test_what_a_hand_superseded_is_forgotten(tmp_path, updates):
    """Known events that a row changed by hand covers are remembered only so that they change nothing when they come
    again; after the threshold they need not be."""
    (tmp_path / "p").mkdir()
    text = ""
    for target, seconds in (("forgets", 0), ("keeps", 1_000_000)):
        text += (f"CREATE STREAMING TABLE {target} TBLPROPERTIES "
                 f"('pipelines.cdc.tombstoneGCThresholdInSeconds' = '{seconds}');\n"
                 f"CREATE FLOW {target} AS AUTO CDC INTO {target}\n"
                 f"FROM STREAM read_files('{tmp_path}/in', format => 'json', schema => '{SCHEMA}')\n"
                 f"KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s COLUMNS * EXCEPT (b, op, s){updates}\n"
                 f"STORED AS SCD TYPE 2;\n")
    (tmp_path / "p" / "p.sql").write_text(text, encoding="utf-8")

    def batch(number, *events):
        write_json_lines(tmp_path / "in" / f"{number}.json", [dict(zip(("k", "a", "op", "s"), event)) for event in events])
        run = run_pipeline(tmp_path / "p", tmp_path / "w")
        assert run.ok, run.explain()

    def superseded(target):
        state = f"{tmp_path}/w/main/default/{target}/_strandline_state"
        return query(tmp_path / "w", f"SELECT count(*) AS n FROM delta.`{state}` WHERE `__strandline_kind` >= 6")[0]["n"]

    batch(1, (1, "a", "U", 1), (1, "a", "U", 3), (2, "b", "U", 1), (2, "b", "U", 4))
    for target in ("forgets", "keeps"):
        sql_text(tmp_path / "w", f"UPDATE {target} SET a = 'mine'")
    batch(2, (1, "late", "U", 2))
    assert superseded("keeps") == 2
    # Each batch that writes the state forgets.
    batch(3, (3, "c", "U", 1), (3, "c", "U", 2))
    batch(4, (3, "d", "U", 3), (3, "d", "U", 4))
    assert superseded("forgets") == 0 and superseded("keeps") == 2
    rows = {target: rows_as_bag(query(tmp_path / "w", f"SELECT * FROM {target}")) for target in ("forgets", "keeps")}
    assert rows["forgets"] == rows["keeps"]
    assert query(tmp_path / "w", "SELECT a FROM forgets WHERE k = 2") == [{"a": "mine"}]
    # What comes again within the threshold still changes nothing.
    batch(5, (2, "b", "U", 4))
    assert query(tmp_path / "w", "SELECT a FROM keeps WHERE k = 2") == [{"a": "mine"}]
