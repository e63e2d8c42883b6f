"""The plain meaning of SCD type 1 and 2 for whole-row events, and a generator of change files.

An event is {"k": key, …values, "op": "U" | "D" | "T", "s": sequence}. Only what the Python tests
need; the property tests have their own model.
"""

import random
from collections import defaultdict


def order(value):
    """Null lowest; values of one type otherwise."""
    return (value is not None, value if value is not None else 0)


def fold(events, key, values, storage, tracked=None):
    """Rows of the target. `values` are the selected columns besides the key."""
    tracked = tracked or values
    mark = max((event["s"] for event in events if event["op"] == "T"), default=None)
    by_key = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event["op"] != "T" and (mark is None or event["s"] >= mark):
            by_key[event[key]][event["s"]].append(event)
    rows = []
    for name, at in by_key.items():
        runs, last = [], None  # a run: [start, end, values]
        for sequence in sorted(at):
            upserts = [event for event in at[sequence] if event["op"] == "U"]
            if not upserts:
                if last:
                    last[1] = sequence
                last = None
                continue
            best = max(upserts, key=lambda event: [order(event.get(column)) for column in sorted(values)])
            now = {column: best.get(column) for column in values}
            if last and all(last[2][column] == now[column] for column in tracked):
                last[2] = now
                continue
            if last:
                last[1] = sequence
            last = [sequence, None, now]
            runs.append(last)
        if storage == 1:
            rows += [{key: name, **last[2]}] if last else []
        else:
            rows += [{key: name, **now, "__START_AT": start, "__END_AT": end} for start, end, now in runs]
    return rows


def random_events(seed, count, keys, sequences=None, truncates=False, columns=("a", "b")):
    """Events with late ones, ties, deletes, nulls and repeats."""
    rng = random.Random(seed)
    events = []
    for _ in range(count):
        if events and rng.random() < 0.1:
            events.append(dict(rng.choice(events)))
            continue
        draw = rng.random()
        op = "D" if draw < 0.2 else "T" if truncates and draw < 0.205 else "U"
        event = {"k": rng.randrange(keys), "op": op, "s": rng.randrange(sequences or count)}
        for column in columns:
            event[column] = rng.choice([None, "x", "y", "z"]) if op == "U" else None
        events.append(event)
    return events
