"""Random histories declared in Python, against a model of a few lines."""

import json
import shutil
import tempfile
from pathlib import Path

import harness
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strandline

EXAMPLES = 3  # each some updates of three flows; large numbers of histories are in tests/property

KEYS = st.integers(1, 6)
VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", "c'd"]))


@st.composite
def histories(draw):
    """Events with distinct sequences, in batches of any order, some delivered twice."""
    numbers = draw(st.lists(st.integers(0, 90), unique=True, min_size=6, max_size=40))
    events = [{"id": draw(KEYS), "v": draw(VALUES), "w": draw(st.one_of(st.none(), st.integers(0, 2))),
               "gone": draw(st.integers(0, 4)) == 0, "seq": number} for number in numbers]  # fmt: skip
    again = draw(st.lists(st.sampled_from(events), max_size=3))
    shuffled = draw(st.permutations(events + again))
    cuts = sorted(draw(st.lists(st.integers(0, len(shuffled)), max_size=2)))
    return [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(shuffled)])]


def latest(events):
    """SCD type 1: the last event of each key."""
    last = {}
    for event in sorted(events, key=lambda one: one["seq"]):
        last[event["id"]] = event
    return sorted((e["id"], e["v"], e["w"]) for e in last.values() if not e["gone"])


def versions(events, tracked):
    """SCD type 2: a new version where a tracked column changes, each with what came last."""
    rows = []
    for key in {event["id"] for event in events}:
        open_ = None
        unique = {event["seq"]: event for event in events if event["id"] == key}
        for seq in sorted(unique):
            event = unique[seq]
            if event["gone"]:
                if open_ is not None:
                    rows.append((*open_[:4], seq))
                open_ = None
            elif open_ is not None and all(open_[1 + i] == event[c] for i, c in enumerate("vw") if c in tracked):
                open_ = (key, event["v"], event["w"], open_[3])
            else:
                if open_ is not None:
                    rows.append((*open_[:4], seq))
                open_ = (key, event["v"], event["w"], seq)
        if open_ is not None:
            rows.append((*open_, None))
    return rows


CODE = """
from pyspark import pipelines as dp
from pyspark.sql.functions import col

@dp.view
def source():
    return spark.readStream.schema("id INT, v STRING, w INT, gone BOOLEAN, seq INT").json({landing!r})

for name, options in {{
    "one": dict(stored_as_scd_type=1),
    "two": dict(stored_as_scd_type="2"),
    "some": dict(stored_as_scd_type=2, track_history_column_list=[col("v")]),
}}.items():
    dp.create_streaming_table(name)
    dp.create_auto_cdc_flow(target=name, source="source", keys=["id"], sequence_by=col("seq"), apply_as_deletes=col("gone"),
                            except_column_list=["gone", "seq"], **options)
"""


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(histories())
def test_histories_declared_in_python(batches):
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "p").mkdir()
        (folder / "landing").mkdir()
        (folder / "p" / "a.py").write_text(CODE.format(landing=str(folder / "landing")))
        for number, batch in enumerate(batches):
            harness.write_json_lines(folder / "landing" / f"{number}.json", batch)
            strandline.Pipeline(folder / "p", warehouse=folder / "w").run()
        w = strandline.connect(folder / "w")
        events = [event for batch in batches for event in batch]
        shown = json.dumps(batches)
        assert sorted(w.sql("SELECT * FROM one").fetchall()) == latest(events), shown
        for name, tracked in (("two", "vw"), ("some", "v")):
            got = w.sql(f"SELECT * FROM {name}").fetchall()
            assert sorted(got, key=repr) == sorted(versions(events, tracked), key=repr), shown
    finally:
        shutil.rmtree(folder)
