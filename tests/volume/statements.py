"""A case as text: the pipeline in Spark SQL, and its events in the oracle's SQL."""

from kinds import SYSTEM, WIDE
from oracle import cells_of, rank_of

BATCH_BITS = 3  # sequences of cases with edits by hand tell their batch: what is new is never at a sequence known


def quoted(name):
    return f"`{name}`"


def key_names(case):
    return ["K1", "k2"][: len(case.keys)]


def key_values(case, kn, noise):
    if len(case.keys) == 1:
        return [case.keys[0].value(kn, noise)]
    return [case.keys[0].value(f"({kn} // 13)", noise), case.keys[1].value(f"({kn} % 13)", noise)]


# --- the pipeline


def flow_clauses(case, target):
    names = [column.name for column in target.columns]

    def listed(chosen, word):
        if target.options["except"]:
            rest = [name for name in names if name not in chosen]
            return f"{word} ON * EXCEPT ({', '.join(rest)})" if rest else ""
        return f"{word} ON ({', '.join(name for name in names if name in chosen)})"

    text = f"KEYS ({', '.join(key_names(case))})"
    if target.updates == "named":
        text += " COLUMNS TO UPDATE given"
    if target.updates == "ignore":
        ignored = [name for name in names if name not in target.always]
        if ignored != names and not target.options["except"] and ignored:
            text += f" IGNORE NULL UPDATES ON ({', '.join(ignored)})"
        elif ignored != names:
            text += f" IGNORE NULL UPDATES ON * EXCEPT ({', '.join(sorted(target.always))})"
        else:
            text += " IGNORE NULL UPDATES"
    if case.kind != "snapshots":
        text += " APPLY AS DELETE WHEN op = 'D'"
        if target.truncates:
            text += " APPLY AS TRUNCATE WHEN op = 'T'"
        left_out = ["op", "given", "sys"] + ([] if target.keeps_sequence else ["seq"])
        left_out += [column.name for column in case.columns if column not in target.columns]
        text += f" SEQUENCE BY seq COLUMNS * EXCEPT ({', '.join(left_out)})"
    text += " STORED AS " + {1: "SCD TYPE 1", 2: "SCD TYPE 2", 3: "BITEMPORAL SYSTEM SEQUENCE BY sys"}[target.storage]
    if target.tracked is not None:
        chosen = set(target.tracked)
        if target.keeps_sequence:
            names = names + ["seq"]
            chosen |= {"seq"} if target.sequence_tracked else set()
        text += " " + listed(chosen, "TRACK HISTORY")
    return text


def source_of(case, target, folder):
    if case.kind == "snapshots":
        names = ", ".join(key_names(case) + [column.name for column in target.columns])
        return f"SNAPSHOT (SELECT {names} FROM read_files('{folder}/in', format => 'parquet'))"
    stream = "STREAM source" if case.from_table else f"STREAM read_files('{folder}/in', format => 'parquet')"
    if any(batch.truncates for batch in case.batches) and not target.truncates:
        return f"(SELECT * FROM {stream} WHERE op <> 'T')"
    return stream


def pipeline(case, folder):
    text = ""
    for target in case.targets:
        properties = {"delta.enableDeletionVectors": str(target.options["vectors"]).lower()}
        if target.options["recorded"]:
            properties["delta.enableChangeDataFeed"] = "true"
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        text += f"CREATE STREAMING TABLE {target.name} TBLPROPERTIES ({listed});\n"
        text += (f"CREATE FLOW f_{target.name} AS AUTO CDC INTO {target.name} FROM {source_of(case, target, folder)} "
                 f"{flow_clauses(case, target)};\n")
    if case.copy:
        text += (f"CREATE STREAMING TABLE copied;\nCREATE FLOW f_copied AS AUTO CDC INTO copied FROM STREAM {case.copy} "
                 f"WITH (readChangeFeed = true) KEYS ({', '.join(key_names(case))}) SEQUENCE BY _commit_version;\n")
    if case.views:
        for name, query in views(case).items():
            text += f"CREATE MATERIALIZED VIEW {name} AS {query.format(table=case.targets[0].name)};\n"
    return text


def grouping_column(case):
    """Of the first target, one whose values group alike everywhere, or none."""
    fitting = ("STRING", "STRING wide", "BINARY", "DECIMAL(12,3)", "DATE", "BOOLEAN", "DOUBLE")
    return next((column for column in case.targets[0].columns if column.kind.name in fitting), None)


def views(case):
    number, group = case.number.name, grouping_column(case)
    made = {"chosen": f"SELECT {', '.join(key_names(case))}, {number} FROM {{table}} WHERE {number} > 4"}
    if group:
        made["grouped"] = (f"SELECT {group.name} AS g, count(*) AS n, CAST(sum({number}) AS BIGINT) AS s FROM {{table}} "
                           f"GROUP BY {group.name}")
    return made


# --- events


def draw(case, *parts):
    """A number of 63 bits for every event and purpose."""
    return f"(hash({', '.join(str(part) for part in (case.seed, *parts))}) >> 1)::BIGINT"


def rank_drawn(case, column, number, *of):
    ranks = min(case.domain, column.kind.ranks)
    null = f"{draw(case, 10 + number, *of)} % 100 < {case.nulls}"
    return f"CASE WHEN {null} THEN NULL ELSE {draw(case, 30 + number, *of)} % {ranks} END AS {column.name}"


def make_events(case, number, before):
    """INSERT of the events of batch `number`; `before` events were there, of all batches."""
    batch, i = case.batches[number], f"(i + {before})"
    noise, other = draw(case, 1, i), draw(case, 2, i)
    keys = {"runs": f"({i} // 4) % {WIDE - 1000}", "distinct": f"{i} % {WIDE - 1000}", "flat": f"{other} % {batch.key_count}",
            "skewed": f"floor({batch.key_count} * pow(({other} % 1000003) / 1000003.0, 4))::BIGINT",
            "hot": f"CASE WHEN {other} % 3 = 0 THEN 7 ELSE {draw(case, 3, i)} % {batch.key_count} END"}[batch.keys]
    late = f"CASE WHEN {draw(case, 4, i)} % 100 < {batch.late} THEN {draw(case, 5, i)} % {before + batch.events} ELSE {i} END"
    order = {"time": late, "wide": f"{draw(case, 6, i)} % {4 * (before + batch.events)}", "ties": f"{draw(case, 6, i)} % 24"}[batch.order]
    sequence = f"({order} << {BATCH_BITS}) + {number + 2}" if case.kind == "edits" else f"{order} + 2"
    deleted = f"{draw(case, 7, i)} % 100 < {batch.deletes}"
    truncated = f"i % {batch.events // batch.truncates + 1} = 17 AND {number} < 3" if batch.truncates else "false"
    # Not the newest events: else nothing is left of most tables.
    mark = f"({order}) * ({draw(case, 8, i)} % 100) // 200 + 2" if batch.truncates else "0"
    mask = f"CASE {draw(case, 9, i)} % 8 WHEN 0 THEN NULL WHEN 1 THEN 0 ELSE {other} // 7 % {1 << len(case.columns)} END"
    ranks = ", ".join(rank_drawn(case, column, place, i) for place, column in enumerate(case.columns))
    return (f"INSERT INTO events SELECT {i} AS arrival, {number} AS batch, {keys} AS kn, "
            f"CASE WHEN {truncated} THEN {mark} ELSE {sequence} END AS sn, {draw(case, 50, i)} % 6 AS yn, "
            f"CASE WHEN {truncated} THEN 'T' WHEN {deleted} THEN 'D' ELSE 'U' END AS kind, {mask} AS mask, {noise} AS h, "
            f"{ranks} FROM range({batch.events}) AS all_events(i)")


def make_snapshot(case, number):
    """The same of a snapshot: of every key an upsert, or a delete where it is missing."""
    batch = case.batches[number]
    there = f"{draw(case, 1, 'i', number)} % 10 > {batch.late % 4} AND i < {batch.events}"
    # A row changes now and then.
    state = f"{number} // (1 + {draw(case, 2, 'i')} % 4)"
    ranks = ", ".join(rank_drawn(case, column, place, "i", state) for place, column in enumerate(case.columns))
    most = max(each.events for each in case.batches)
    return (f"INSERT INTO events SELECT i + {number * most} AS arrival, {number} AS batch, i AS kn, {number} AS sn, 0 AS yn, "
            f"CASE WHEN {there} THEN 'U' ELSE 'D' END AS kind, NULL AS mask, {draw(case, 3, 'i', number)} AS h, {ranks} "
            f"FROM range({most}) AS all_keys(i)")


def events_table(case):
    ranks = ", ".join(f"{column.name} BIGINT" for column in case.columns)
    return f"(arrival BIGINT, batch INTEGER, kn BIGINT, sn BIGINT, yn BIGINT, kind VARCHAR, mask BIGINT, h BIGINT, {ranks})"


def rows_of_source(case, events):
    """Events as a source has them."""
    is_key = [f"CASE WHEN kind <> 'T' THEN {value} END AS {name}" for name, value in zip(key_names(case), key_values(case, "kn", "h"))]
    columns = [f"{column.kind.value(column.name, 'h')} AS {column.name}" for column in case.columns]
    if case.kind == "snapshots":
        return f"SELECT {', '.join([*columns, *is_key])} FROM {events} WHERE kind = 'U'"
    # NULL among the names, a key, and a name twice mean nothing.
    named = [f"CASE WHEN (mask >> {place}) & 1 = 1 THEN '{column.name}' END" for place, column in enumerate(case.columns)]
    given = f"CASE WHEN mask IS NOT NULL THEN [{', '.join(named + [named[0]])}, '{key_names(case)[0]}'] END AS given"
    sequence = f"{case.sequence.value('sn', 'h')} AS seq"
    system = f"{SYSTEM.value('yn', 'h')} AS sys"
    return f"SELECT {', '.join([*columns[:1], given, *is_key, sequence, *columns[1:], 'kind AS op', system])} FROM {events}"


# --- rows of targets


def interval_names(target):
    return {1: [], 2: ["__START_AT", "__END_AT"], 3: ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"]}[target.storage]


def parts_of_row(case, target):
    """Name, kind and SQL of the rank over the oracle's rows, of what both engines are to give."""
    cells = cells_of(target)
    parts = [(column.name, column.kind, rank_of(target, cells, column, "row")) for column in target.columns]
    if target.keeps_sequence:
        parts.append(("seq", case.sequence, "last_sn"))
    for name, rank in zip(interval_names(target), ["start_sn", "end_sn", "start_yn", "end_yn"]):
        parts.append((name, SYSTEM if "SYSTEM" in name else case.sequence, rank))
    return parts


def expected_rows(case, target, relation):
    keys = [f"{kind.plain(value)} AS {name}" for kind, name, value in zip(case.keys, key_names(case), key_values(case, "kn", "0"))]
    ranks = [f"{rank} AS r{place}" for place, (_, _, rank) in enumerate(parts_of_row(case, target))]
    values = [f"{kind.plain(kind.value(f'r{place}', '0'))} AS {name}"
              for place, (name, kind, _) in enumerate(parts_of_row(case, target))]
    return f"SELECT {', '.join(keys + values)} FROM (SELECT kn, {', '.join(ranks)} FROM {relation})"


def found_rows(case, target, relation, more=""):
    names = [(name, kind) for kind, name in zip(case.keys, key_names(case))]
    names += [(name, kind) for name, kind, _ in parts_of_row(case, target)]
    return f"SELECT {', '.join(f'{kind.plain(name)} AS {name}' for name, kind in names)}{more} FROM {relation}"
