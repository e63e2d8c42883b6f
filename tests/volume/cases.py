"""Random cases: what is declared and what comes in. A case is made of its seed alone."""

import random
from dataclasses import dataclass, field
from typing import Optional

from kinds import COUNTED, KEYS, NUMBER, SEQUENCES, VALUES, WIDE, Kind
from oracle import Column, Target

NAMES = ["zeta", "Beta", "alpha", "Gamma", "eps", "Delta"]  # whose lower-cased order is not theirs
MEBIBYTE = 1 << 20
VECTOR, ROW_GROUP = 2048, 122_880


@dataclass
class Batch:
    events: int
    threads: int
    keys: str  # how events spread over keys: runs, distinct, flat, skewed, hot
    key_count: int
    order: str  # where events lie in time: time, wide, ties
    late: int  # of 100 events of `time`
    deletes: int  # of 100
    again: int  # of 100: events of this and of earlier batches that come once more
    files: int
    truncates: int
    shuffled: bool
    memory_limit: int = 0
    optimize: list = field(default_factory=list)  # targets, before it


@dataclass
class Case:
    seed: int
    kind: str  # changes, edits, snapshots
    keys: list  # of Kind
    sequence: Kind
    columns: list  # of Column
    targets: list
    batches: list
    domain: int  # how many ranks of a column are used at most
    nulls: int  # of 100
    from_table: bool  # the source is a Delta table instead of files
    views: bool
    copy: Optional[str]  # the target whose feed another table follows
    feeds: frozenset  # targets whose feed is held against what changed

    @property
    def number(self):
        return next(column for column in self.columns if column.kind is NUMBER)


def near(rng, scale):
    """A number of events, mostly between 10^4 and 6 * 10^4, often where chunks or row groups of the engine end."""
    draw = rng.random()
    if draw < 0.40:
        size = VECTOR * rng.randint(5, 10) + rng.randint(-2, 2)
    elif draw < 0.48:
        size = (26 + 51 * rng.choice([0] * 14 + [1])) * VECTOR - rng.choice([0, 1, 2, 3, 1024, 1247, 2046, 2047])
    elif draw < 0.49:
        size = ROW_GROUP * rng.choice([1, 1, 1, 2]) + rng.randint(-2, 2)
    elif draw < 0.50:
        size = rng.randint(100_000, 300_000)
    elif draw < 0.501:
        size = 1_000_000 + rng.randint(-2, 2)
    else:
        size = rng.randint(10_000, 16_000)
    return max(1, int(size * scale))


def make_columns(rng):
    kinds = [NUMBER, *rng.sample([kind for kind in VALUES if kind is not NUMBER], rng.randint(1, 4))]
    rng.shuffle(kinds)
    return [Column(name, kind, place) for place, (name, kind) in enumerate(zip(rng.sample(NAMES, len(kinds)), kinds))]


def make_target(rng, name, columns, storages, updates, keeps_sequence):
    if rng.random() < 0.3:
        columns = [column for column in columns if column.kind is NUMBER or rng.random() < 0.5]
    target = Target(name, rng.choice(storages), columns)
    if updates:
        target.updates = rng.choice(["whole", "whole", "ignore", "named"] if target.storage != 3 else ["whole", "ignore"])
    if target.updates == "ignore" and rng.random() < 0.4:
        plain = [column.name for column in columns if column.kind.fields is None]
        target.always = frozenset(rng.sample(plain, rng.randint(1, len(plain))))
    if target.storage != 1 and rng.random() < 0.45:
        names = [column.name for column in columns]
        target.tracked = frozenset(rng.sample(names, rng.randint(1, len(names))))
        target.sequence_tracked = rng.random() < 0.5
    target.keeps_sequence = keeps_sequence and target.storage != 3 and rng.random() < 0.2
    target.options = {"recorded": rng.random() < 0.3, "vectors": rng.random() < 0.7, "except": rng.random() < 0.5}
    return target


def make_batch(rng, number, case_kind, key_count, scale, tight, truncates):
    events = near(rng, scale) if number == 0 or rng.random() < 0.25 else max(1, int(rng.randint(300, 8_000) * scale))
    if case_kind == "edits":
        events = min(events, int(60_000 * scale))
    return Batch(
        events=events, threads=rng.choice([1, 1, 2, 8]), keys=rng.choice(["runs", "distinct", "flat", "flat", "skewed", "hot"]),
        key_count=key_count, order=rng.choice(["time", "time", "wide", "ties"]), late=rng.choice([0, 5, 20]),
        deletes=rng.choice([0, 0, 5, 25]), again=rng.choice([0, 0, 2, 10]), files=rng.choice([1, 1, 1, 3]),
        truncates=rng.choice([0, 1, 3]) if truncates else 0, shuffled=rng.random() < 0.4,
        memory_limit=rng.choice([24, 32, 48]) * MEBIBYTE if tight and events >= 5_000 * scale else 0)


def make_keys(rng):
    if rng.random() < 0.7:
        return [rng.choice(KEYS)]
    return rng.sample(KEYS, 2)


def make_case(seed, scale=1.0):
    rng = random.Random(seed)
    kind = rng.choices(["changes", "edits", "snapshots"], [72, 12, 16])[0]
    columns = make_columns(rng)
    key_count = min(WIDE - 1000, max(3, int(rng.choice([20, 1000, 10_000, 30_000, 60_000]) * scale)))
    truncates = kind == "changes" and rng.random() < 0.2
    storages = [1, 2, 2, 3] if kind == "changes" else [1, 2, 2]
    targets = [make_target(rng, f"t{number}", columns, storages, kind != "snapshots", kind == "changes")
               for number in range(rng.randint(2, 4) if kind == "changes" else 2)]
    for target in targets:
        target.truncates = truncates and target.storage == 1
    tight = rng.random() < 0.08
    batches = [make_batch(rng, number, kind, key_count, scale, tight, truncates) for number in range(rng.randint(2, 4))]
    if kind == "edits":
        for batch in batches:
            batch.order = rng.choice(["time", "wide"])
    names = [target.name for target in targets]
    for batch in batches[1:]:
        batch.optimize = [name for name in names if rng.random() < 0.08]
    firsts = [target.name for target in targets if target.storage == 1]
    return Case(
        seed=seed, kind=kind, keys=make_keys(rng), sequence=COUNTED if kind == "snapshots" else rng.choice(SEQUENCES),
        columns=columns, targets=targets, batches=batches, domain=rng.choice([2, 4, WIDE, WIDE]), nulls=rng.choice([0, 10, 40]),
        from_table=kind == "changes" and rng.random() < 0.15, views=rng.random() < 0.12,
        copy=rng.choice(firsts) if firsts and rng.random() < 0.15 else None,
        feeds=frozenset(name for name in names if rng.random() < 0.3))


def known_bad(events, threads):
    """The sizes that rows came twice at: distinct events, four of a key, into plain, tracked and nested histories."""
    struct = next(kind for kind in VALUES if kind.fields)
    columns = [Column("zeta", NUMBER, 0), Column("Beta", struct, 1)]
    targets = [Target("plain", 2, columns[:1]), Target("tracked", 2, columns, tracked=frozenset(["zeta"])),
               Target("nested", 2, columns)]
    for target in targets:
        target.options = {"recorded": False, "vectors": True, "except": False}
    batches = [Batch(events, threads, "runs", events, "time", 0, 0, 0, 1, 0, False),
               Batch(3000, threads, "flat", events // 4, "time", 10, 10, 5, 1, 0, False)]
    return Case(seed=events, kind="changes", keys=[KEYS[0]], sequence=SEQUENCES[0], columns=columns, targets=targets,
                batches=batches, domain=WIDE, nulls=0, from_table=False, views=False, copy=None, feeds=frozenset(["plain"]))
