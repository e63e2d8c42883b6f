"""The oracle of the volume test against the rules read one by one: one key's events sorted and folded, in Python."""

import random
from collections import defaultdict

import duckdb
import pytest
from kinds import VALUES
from oracle import Column, Target, cells_of, rank_of, table

STRUCT = next(kind for kind in VALUES if kind.fields)
COLUMNS = [Column("zeta", VALUES[0], 0), Column("Beta", STRUCT, 1), Column("alpha", VALUES[1], 2)]


def height(rank):
    return -1 if rank is None else rank


def given(target, event, column):
    """Leaf -> rank of what an event gives of a column."""
    rank = event[column.name]
    if target.updates == "ignore" and event["kind"] != "H":
        if column.kind.fields:
            parts = {"a": (rank or 0) // 4, "b": (rank or 0) % 4}
            return {(column.name, part): n for part, n in parts.items() if n}
        return {column.name: rank} if rank is not None or column.name in target.always else {}
    if target.updates == "ignore" and column.kind.fields:
        return {(column.name, "a"): (rank or 0) // 4, (column.name, "b"): (rank or 0) % 4}
    if target.updates == "named" and event["kind"] != "H" and event["mask"] is not None and not event["mask"] >> column.place & 1:
        return {}
    return {column.name: rank}


def row_of(target, life):
    row = {}
    for column in target.columns:
        if target.updates == "ignore" and column.kind.fields:
            rank = life.get((column.name, "a"), 0) * 4 + life.get((column.name, "b"), 0)
            row[column.name] = rank or None
        else:
            row[column.name] = life.get(column.name)
    return tuple(row[column.name] for column in target.columns)


def history(target, events):
    """Sequence -> row or None, of one key's events."""
    results, life = {}, {}
    order = sorted({(event["sn"], event["yn"]) for event in events})
    for moment in order:
        at_once = [event for event in events if (event["sn"], event["yn"]) == moment]
        if any(event["kind"] == "D" for event in at_once):
            life = {}
        upserts = [event for event in at_once if event["kind"] in "UH"]
        if target.updates == "whole" and upserts:
            by_name = sorted(target.columns, key=lambda column: column.name.lower())
            upserts = [max(upserts, key=lambda event: [height(event[column.name]) for column in by_name])]
        patch = {}
        for event in upserts:
            for column in target.columns:
                for leaf, rank in given(target, event, column).items():
                    patch[leaf] = max(rank, patch.get(leaf, rank), key=height)
        life = {**life, **patch}
        results[moment[0]] = row_of(target, life) if upserts else None
    return results


def versions(target, events):
    rows, current = [], None
    for sequence, row in sorted(history(target, events).items()):
        tracked = row and tuple(rank for rank, column in zip(row, target.columns) if target.tracked is None or column.name in target.tracked)
        if current and row and current["tracked"] == tracked and not (target.keeps_sequence and target.sequence_tracked):
            current.update(row=row, last=sequence)
            continue
        if current:
            current["end"] = sequence
        current = row and {"row": row, "tracked": tracked, "start": sequence, "end": None, "last": sequence}
        if current:
            rows.append(current)
    return rows


def expected(target, events):
    mark = max((event["sn"] for event in events if event["kind"] == "T"), default=-1) if target.truncates else -1
    by_key = defaultdict(list)
    for event in events:
        if event["kind"] != "T" and event["sn"] >= mark:
            by_key[event["kn"]].append(event if target.storage == 3 else {**event, "yn": 0})
    for kn, known in by_key.items():
        if target.storage == 1:
            found = sorted(history(target, known).items())[-1]
            if found[1]:
                yield (kn, *found[1], None, None, None, None)
            continue
        if target.storage == 2:
            for row in versions(target, known):
                yield (kn, *row["row"], row["start"], row["end"], None, None)
            continue
        times = sorted({event["yn"] for event in known})
        believed = [{(row["row"], row["start"], row["end"]) for row in versions(target, [event for event in known if event["yn"] <= s])}
                    for s in times]
        for n, rows in enumerate(believed):
            for row, start, end in rows if n == 0 else rows - believed[n - 1]:
                gone = next((times[m] for m in range(n, len(times)) if (row, start, end) not in believed[m]), None)
                yield (kn, *row, start, end, times[n], gone)


def random_events(rng, count):
    return [{"arrival": n, "kn": rng.randrange(4), "sn": rng.randrange(12) + 2, "yn": rng.randrange(4),
             "kind": rng.choices("UDTH", [70, 20, 2, 3])[0], "mask": rng.choice([None, 0, 1, 2, 3, 5, 6, 7]),
             **{column.name: rng.choice([None, *range(3)]) if column.kind is not STRUCT else rng.choice([None, *range(16)])
                for column in COLUMNS}} for n in range(count)]


def targets(rng):
    for storage in (1, 2, 3):
        for updates in ("whole", "ignore", "named"):
            target = Target("t", storage, rng.sample(COLUMNS, rng.randint(1, 3)), updates)
            if updates == "ignore":
                target.always = frozenset(column.name for column in target.columns if not column.kind.fields and rng.random() < 0.4)
            if storage > 1 and rng.random() < 0.5:
                target.tracked = frozenset(rng.sample([column.name for column in target.columns], 1))
            target.keeps_sequence = storage == 2 and rng.random() < 0.2
            target.sequence_tracked = rng.random() < 0.5
            target.truncates = storage == 1
            yield target


@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_says_what_the_rules_say(seed):
    rng = random.Random(seed)
    events = random_events(rng, 60)
    connection = duckdb.connect()
    names = list(events[0])
    types = ["VARCHAR" if name == "kind" else "BIGINT" for name in names]
    connection.execute(f"CREATE TABLE events ({', '.join(map(' '.join, zip(names, types)))})")
    connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * len(names))})", [list(event.values()) for event in events])
    for target in targets(rng):
        # A row by hand stands alone at its moment: what else was there is taken out by who asks the oracle.
        cells = cells_of(target)
        ranks = ", ".join(rank_of(target, cells, column, "row") for column in target.columns)
        chosen = events if target.storage < 3 else [event for event in events if event["kind"] != "H"]
        relation = "events" if target.storage < 3 else "(SELECT * FROM events WHERE kind <> 'H')"
        found = connection.execute(f"SELECT kn, {ranks}, start_sn, end_sn, start_yn, end_yn FROM ({table(target, relation)})").fetchall()
        assert sorted(found, key=repr) == sorted(expected(target, chosen), key=repr), target
