"""Deletes that are forgotten (pipelines.cdc.tombstoneGCThresholdInSeconds): while events come in the order of their
sequences, tables are what they are without forgetting."""

import os
import time

import model
import pytest
from harness import query, rows_as_bag, run_pipeline, write_json_lines

SEED = int(os.environ.get("STRANDLINE_SEED", time.time_ns() % 1_000_000))
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
