"""What AUTO CDC says of all events of a target, as plain SQL: GROUP BY, and windows that all have PARTITION BY and
ORDER BY. It shares nothing with the programs: it sees ranks (kinds.py) instead of values, packs a row into one number
whose order is the order of rows, and computes the table anew from every event there ever was.

A relation of events has: arrival (a number of its own), kn (key), sn (sequence), yn (system sequence, 0 … 7),
kind ('U' upsert, 'D' delete, 'T' truncate, 'H' a whole row by hand), mask (bits of the columns that COLUMNS TO UPDATE
names; null: all) and the ranks of the columns.

A cell is the rank of a column plus one, and 0 for null; SQL's null is "not given"."""

from dataclasses import dataclass, field
from typing import Optional

from kinds import Kind

ORDER_BITS = 3  # of yn beside sn


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    place: int  # in the mask of an event


@dataclass
class Target:
    name: str
    storage: int  # 1, 2, or 3: bitemporal
    columns: list  # of Column, those of the events that it selects
    updates: str = "whole"  # whole, ignore (IGNORE NULL UPDATES), named (COLUMNS TO UPDATE)
    always: frozenset = frozenset()  # of IGNORE NULL UPDATES: columns whose nulls count
    tracked: Optional[frozenset] = None  # names; None: all
    keeps_sequence: bool = False  # the sequence is a column of the target, too
    sequence_tracked: bool = True
    truncates: bool = False
    options: dict = field(default_factory=dict)  # how it is declared; nothing that changes its rows


@dataclass(frozen=True)
class Cell:
    """A part of the row that is given or not: a column, or a field of a struct under IGNORE NULL UPDATES."""

    column: Column
    bits: int
    value: str  # SQL over an event
    given: str


def cells_of(target):
    """In the order of the lower-cased names of the columns, then of the fields."""
    found = []
    for column in sorted(target.columns, key=lambda one: one.name.lower()):
        name, bits = column.name, column.kind.ranks.bit_length()
        if target.updates == "ignore" and column.kind.fields:
            # Fields count one by one, and a struct without any is null: how it arrived is no matter.
            for part in (f"({name} // 4)", f"({name} % 4)"):
                given = "true" if column.name in target.always else f"coalesce({part}, 0) > 0"
                found.append(Cell(column, 2 if "%" in part else bits - 2, f"coalesce({part}, 0)", given))
            continue
        given = {"whole": "true", "named": f"(mask IS NULL OR (mask >> {column.place}) & 1 = 1)",
                 "ignore": "true" if name in target.always else f"{name} IS NOT NULL"}[target.updates]
        found.append(Cell(column, bits, f"coalesce({name} + 1, 0)", given))
    assert sum(cell.bits for cell in found) <= 61, [cell.bits for cell in found]
    return found


def packed(values, cells):
    """One number for a row, the first cell highest."""
    text = "0::BIGINT"
    for value, cell in zip(values, cells):
        text = f"(({text}) << {cell.bits}) + {value}"
    return text


def unpacked(row, cells, number):
    below = sum(cell.bits for cell in cells[number + 1:])
    return f"(({row} >> {below}) & {(1 << cells[number].bits) - 1})"


def rank_of(target, cells, column, row):
    """SQL of the rank that a column has in a packed row; null for null."""
    parts = [unpacked(row, cells, number) for number, cell in enumerate(cells) if cell.column is column]
    if len(parts) == 1:
        return f"nullif({parts[0]}, 0) - 1"
    return f"nullif({parts[0]} * 4 + {parts[1]}, 0)"


def moments(target, events, cells):
    """kn, sn, yn, up, del and the packed row, or the cells c0, c1, … of partial updates."""
    chosen = "*" if target.storage == 3 else "* REPLACE (0 AS yn)"
    kept = f"SELECT {chosen} FROM {events} WHERE kind <> 'T'"
    if target.truncates:
        kept += f" AND sn >= coalesce((SELECT max(sn) FROM {events} WHERE kind = 'T'), -9)"
    if target.updates == "whole":
        row = packed([cell.value for cell in cells], cells)
        rows = f"max({row}) FILTER (WHERE kind IN ('U', 'H')) AS row"
    else:
        rows = ", ".join(f"max({cell.value}) FILTER (WHERE kind = 'H' OR (kind = 'U' AND {cell.given})) AS c{number}"
                         for number, cell in enumerate(cells))
    return (f"kept AS ({kept}), moments AS MATERIALIZED (SELECT kn, sn, yn, bool_or(kind IN ('U', 'H')) AS up, "
            f"bool_or(kind = 'D') AS del, {rows} FROM kept GROUP BY kn, sn, yn)")


def filled(target, cells, part):
    """`moments` (or what bitemporal makes of them) with whole rows: what is not given comes from before, in one life."""
    if target.updates == "whole":
        return ""
    place = f"((sn << {ORDER_BITS}) + yn)"
    window = f"(PARTITION BY {part}, life ORDER BY sn, yn ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    last = []
    for number, cell in enumerate(cells):
        mask = (1 << cell.bits) - 1
        last.append(f"coalesce(max(({place} << {cell.bits}) + c{number}) OVER {window} & {mask}, 0)")
    return (f", lives AS (SELECT *, sum(del::INTEGER) OVER (PARTITION BY {part} ORDER BY sn, yn ROWS BETWEEN UNBOUNDED "
            f"PRECEDING AND CURRENT ROW) AS life FROM known), "
            f"rows AS (SELECT {part}, sn, yn, up, {packed(last, cells)} AS row FROM lives)")


def last_of(part):
    """Of the moments of one business time the last one counts."""
    return (f", settled AS (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {part}, sn ORDER BY yn DESC) AS n "
            f"FROM rows) WHERE n = 1)")


def versions(target, cells, part):
    """Rows of type 2: part, start_sn, end_sn, row, last_sn."""
    tracked = [number for number, cell in enumerate(cells) if target.tracked is None or cell.column.name in target.tracked]
    text = packed([unpacked("row", cells, number) for number in tracked], [cells[number] for number in tracked])
    differs = f"{text} IS DISTINCT FROM before"
    if target.keeps_sequence and target.sequence_tracked:
        differs = "true"
    window = f"(PARTITION BY {part} ORDER BY sn)"
    return (f", looked AS (SELECT *, lag(up) OVER {window} AS was_up, lag({text}) OVER {window} AS before, "
            f"lead(sn) OVER {window} AS next_sn FROM settled), "
            f"opened AS (SELECT *, up AND (was_up IS DISTINCT FROM true OR {differs}) AS opens FROM looked), "
            f"runs AS (SELECT *, sum(opens::INTEGER) OVER (PARTITION BY {part} ORDER BY sn ROWS BETWEEN UNBOUNDED PRECEDING "
            f"AND CURRENT ROW) AS run FROM opened), "
            f"versions AS (SELECT {part}, min(sn) AS start_sn, max(sn) AS last_sn, "
            f"nullif(arg_max(coalesce(next_sn, -9), sn), -9) AS end_sn, arg_max(row, sn) AS row FROM runs WHERE up "
            f"GROUP BY {part}, run)")


def table(target, events):
    """A query of the target's rows: kn, row (packed), last_sn, start_sn, end_sn, start_yn, end_yn."""
    cells = cells_of(target)
    text = "WITH " + moments(target, events, cells)
    if target.storage == 3:
        part = "kn, s"
        text += (", times AS (SELECT kn, s, row_number() OVER (PARTITION BY kn ORDER BY s) AS nth, lead(s) OVER (PARTITION "
                 "BY kn ORDER BY s) AS next_s FROM (SELECT DISTINCT kn, yn AS s FROM moments)), "
                 "known AS (SELECT s, moments.* FROM times JOIN moments USING (kn) WHERE yn <= s)")
    else:
        part = "kn"
        text += ", known AS (SELECT * FROM moments)"
    text += filled(target, cells, part) or ", rows AS (SELECT * FROM known)"
    text += last_of(part)
    if target.storage == 1:
        return text + (" SELECT kn, row, sn AS last_sn, NULL::BIGINT AS start_sn, NULL::BIGINT AS end_sn, NULL::BIGINT AS "
                       "start_yn, NULL::BIGINT AS end_yn FROM (SELECT *, row_number() OVER (PARTITION BY kn ORDER BY sn "
                       "DESC) AS from_last FROM settled) WHERE from_last = 1 AND up")
    text += versions(target, cells, part)
    if target.storage == 2:
        return text + (" SELECT kn, row, last_sn, start_sn, end_sn, NULL::BIGINT AS start_yn, NULL::BIGINT AS end_yn "
                       "FROM versions")
    same = "kn, start_sn, end_sn, row" + (", last_sn" if target.keeps_sequence else "")
    return text + (f", stretches AS (SELECT *, nth - row_number() OVER (PARTITION BY {same} ORDER BY s) AS stretch FROM "
                   f"versions JOIN times USING (kn, s)) SELECT kn, row, max(last_sn) AS last_sn, start_sn, end_sn, min(s) AS start_yn, "
                   f"nullif(arg_max(coalesce(next_s, -9), s), -9) AS end_yn FROM stretches GROUP BY {same}, stretch")
