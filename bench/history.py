"""Histories of customers and accounts (SCD type 2), derived from TPC-DI; tpcdi.py makes the actions.

Runs, each into a warehouse of its own:
  one       ten years of whole rows in one batch, in the order of time
  shuffled  the same in no order
  windows   the first block and 434 windows as batches
  daily     nine years in one batch, then 365 daily batches, then two days more
  late      the daily batches with 5 % of the events delayed by 1 to 30 days and 2 % delivered twice
  sparse    late, with updates that give only what they change (IGNORE NULL UPDATES)
Every run must give exactly the rows that an independent query of the embedded engine gives over all
actions (last_value, comparison of neighbours, lead), or the benchmark fails. After `one`, a
materialized view joins both histories: a change of a customer starts a version of each open account.
The seconds of a batch are those between the commits of the target, compaction included.
`--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import os
import shutil
import statistics
import subprocess
from pathlib import Path

import tpcdi
from shared import (PROGRAM, ROOT, actions, apart, batch_seconds, connect, live_files, measured, processor, versions,
                    write_numbered, write_section)

RUNS = ("one", "shuffled", "windows", "daily", "late", "sparse")
DAILY_RUNS = ("daily", "late", "sparse")
AIM_GROWTH = 1.2
AT_BOTH_ENDS = 30  # days that are compared
TABLES = {"customers": "dim_customer", "accounts": "dim_account"}

# Which file of a run an action is in, by its number n, its day and its window.
DAY = f"CASE WHEN day < DATE '{tpcdi.FIRST_DAY}' THEN 0 ELSE least(day - DATE '{tpcdi.FIRST_DAY}', {tpcdi.DAILY}) + 1 END"
LATER = f"least({DAY} + 1 + (hash(n * 5 + {{}}) % 30)::INT, {tpcdi.DAILY + 1})"
PLACES = {
    "one": ["0"], "shuffled": ["0"], "windows": ["win"], "daily": [DAY],
    "late": [f"CASE WHEN {DAY} > 0 AND hash(n * 3 + 1) % 100 < 5 THEN {LATER.format(1)} ELSE {DAY} END",
             f"CASE WHEN {DAY} > 0 AND hash(n * 3 + 2) % 100 < 2 THEN {LATER.format(2)} END"],
}
PLACES["sparse"] = PLACES["late"]


def rows_query(entity, form):
    """The history of all actions, as SQL that shares nothing with the program."""
    key, columns = tpcdi.ENTITIES[entity][:2]
    names = [name for name, *_ in columns]
    filled = ", ".join(f"last_value({name} IGNORE NULLS) OVER w AS {name}" for name in names)
    differs = " OR ".join(f"{name} IS DISTINCT FROM lag({name}) OVER w" for name in names)
    return f"""
SELECT {key}, {', '.join(names)}, day AS __START_AT, lead(day) OVER (PARTITION BY {key} ORDER BY day) AS __END_AT
FROM (SELECT *, row_number() OVER w = 1 OR {differs} AS starts
      FROM (SELECT {key}, day, {filled} FROM '{form}'
            WINDOW w AS (PARTITION BY {key} ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
      WINDOW w AS (PARTITION BY {key} ORDER BY day))
WHERE starts"""


# In both dialects. A closed account has no versions after it was closed.
CASCADE = """
SELECT a.ca_id, a.ca_c_id, a.ca_name, a.ca_st_id, c.c_tier, c.c_city, c.c_status,
       greatest(a.__START_AT, c.__START_AT) AS effective_date,
       coalesce(CASE WHEN a.ca_st_id = 'CLSD' THEN a.__END_AT ELSE least(a.__END_AT, c.__END_AT) END, DATE '9999-12-31') AS end_date
FROM {} AS a JOIN {} AS c ON c.c_id = a.ca_c_id
WHERE a.__START_AT < coalesce(c.__END_AT, DATE '9999-12-31')
  AND c.__START_AT < coalesce(a.__END_AT, DATE '9999-12-31')
  AND (a.ca_st_id = 'ACTV' OR c.__START_AT <= a.__START_AT)
"""


def prepare(folder, scale):
    """Actions, expected rows, the files of every run."""
    data = folder / "data"
    tpcdi.events(data, scale)
    connection = connect(threads=1)
    for entity in TABLES:
        expected = data / f"{entity}_expected.parquet"
        if not expected.exists():
            connection.execute(f"COPY ({rows_query(entity, f'{data}/{entity}_sparse.parquet')}) TO '{expected}.part' (FORMAT parquet)")
            Path(f"{expected}.part").rename(expected)
        for run in RUNS:
            target = folder / run / entity
            if target.exists():
                continue
            form = data / f"{entity}_{'sparse' if run == 'sparse' else 'full'}.parquet"
            parts = " UNION ALL ".join(f"SELECT * EXCLUDE (win), {place} AS file FROM '{form}'" for place in PLACES[run])
            order = "hash(n)" if run == "shuffled" else "n"
            write_numbered(connection, f"SELECT * FROM ({parts}) WHERE file IS NOT NULL ORDER BY file, {order}", target)


def pipeline_text(folder, run):
    text = ""
    for entity, table in TABLES.items():
        key = tpcdi.ENTITIES[entity][0]
        nulls = " IGNORE NULL UPDATES" if run == "sparse" else ""
        text += (f"CREATE STREAMING TABLE {table};\nCREATE FLOW {table} AS AUTO CDC INTO {table}\n"
                 f"FROM STREAM read_files('{folder / run / entity}', format => 'parquet', maxFilesPerTrigger => 1, "
                 f"schema => '{tpcdi.schema(entity)}')\nKEYS ({key}){nulls} SEQUENCE BY day COLUMNS * EXCEPT (n, day) STORED AS SCD TYPE 2;\n")
    return text


def compare(table, warehouse, columns, expected):
    """The table's rows are just those of the query `expected`."""
    names = ", ".join(name for name, _ in columns)
    exported = warehouse.parent / f"{table}.csv"
    with exported.open("wb") as out:
        subprocess.run([PROGRAM, "sql", "--warehouse", warehouse, "--format", "csv", "-c", f"SELECT {names} FROM {table}"],
                       stdout=out, check=True)
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns)
    connection = connect()
    connection.execute(f"CREATE VIEW got AS SELECT * FROM read_csv('{exported}', header = true, auto_detect = false, quote = '\"', columns = {{{types}}})")
    connection.execute(f"CREATE VIEW wanted AS SELECT {names} FROM ({expected})")
    missing, extra, rows = connection.execute(
        "SELECT (SELECT count(*) FROM (FROM wanted EXCEPT ALL FROM got)), (SELECT count(*) FROM (FROM got EXCEPT ALL FROM wanted)), "
        "(SELECT count(*) FROM got)").fetchone()
    if missing or extra:
        raise SystemExit(f"{table} in {warehouse}: {missing} rows are missing, {extra} are wrong")
    exported.unlink()
    return rows


def check(folder, warehouse):
    rows = 0
    for entity, table in TABLES.items():
        key, described = tpcdi.ENTITIES[entity][:2]
        columns = [(key, "BIGINT")] + [(name, kind) for name, kind, *_ in described]
        columns += [("__START_AT", "DATE"), ("__END_AT", "DATE")]
        rows += compare(table, warehouse, columns, f"FROM '{folder}/data/{entity}_expected.parquet'")
    return rows


def check_cascade(folder, warehouse):
    columns = [("ca_id", "BIGINT"), ("ca_c_id", "BIGINT"), ("ca_name", "VARCHAR"), ("ca_st_id", "VARCHAR"), ("c_tier", "INT"),
               ("c_city", "VARCHAR"), ("c_status", "VARCHAR"), ("effective_date", "DATE"), ("end_date", "DATE")]
    tables = [f"'{folder}/data/{entity}_expected.parquet'" for entity in ("accounts", "customers")]
    return compare("account_history", warehouse, columns, CASCADE.format(*tables))


def written_bytes(table):
    return sum(action["add"]["size"] for path in versions(table) for action in actions(path)
               if "add" in action and not action["add"].get("deletionVector"))


def live_bytes(table):
    """Bytes of the live files after each batch."""
    live, found = {}, []
    for path in versions(table):
        commit = actions(path)
        for action in commit:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        for action in commit:
            if "add" in action:
                live[action["add"]["path"]] = action["add"]["size"]
        if any(action.get("commitInfo", {}).get("operation", "").startswith("AUTO CDC") for action in commit):
            found.append(sum(live.values()))
    return found


def last_to_first(days):
    return statistics.median(days[-AT_BOTH_ENDS:]) / statistics.median(days[:AT_BOTH_ENDS])


def state_of(place):
    """The table and, if there is one, its state."""
    state = place / "_strandline_state"
    return [place, state] if (state / "_delta_log").exists() else [place]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def strandline(pipeline, warehouse, options):
    return measured([PROGRAM, "run", pipeline, "--warehouse", warehouse, "--memory-limit", options.memory_limit,
                     "--threads", options.threads])


def one_run(folder, run, options):
    """The run's line of the table, and how its last days compare with its first."""
    place = folder / run
    pipeline, warehouse = place / "pipeline", place / "warehouse"
    for path in (pipeline, warehouse):
        shutil.rmtree(path, ignore_errors=True)
    pipeline.mkdir()
    (pipeline / "history.sql").write_text(pipeline_text(folder, run), encoding="utf-8")
    seconds, peak, cpu, _ = strandline(pipeline, warehouse, options)
    rows = apart(check, folder, warehouse)
    events = apart(count_events, place)
    line = [run, f"{events:,}", f"{seconds:.1f}", f"{cpu:.1f}", f"{events / seconds:,.0f}"]
    batches, growth, read = [], [], []
    tables = [warehouse / "main" / "default" / table for table in TABLES.values()]
    for place in tables:
        found = batch_seconds(place)
        batches.append(found)
        # The first is nine years, or the beginning; the last, two days more.
        days = found[1:tpcdi.DAILY + 1]
        if run in DAILY_RUNS and len(days) >= 2 * AT_BOTH_ENDS:
            growth.append(last_to_first(days))
            # What the day before has left.
            sizes = [live_bytes(one)[:tpcdi.DAILY] for one in state_of(place)]
            read.append(last_to_first([sum(day) for day in zip(*sizes)]))
    many = [one for found in batches for one in found[1:]]
    line.append(f"{sum(len(found) for found in batches)}")
    line.append(" / ".join(f"{percentile(many, share) * 1000:.0f}" for share in (0.5, 0.95, 0.99)) if many else "")
    line += [", ".join(f"{one:.2f}" for one in ratios) for ratios in (growth, read)]
    places = [one for place in tables for one in state_of(place)]
    written = sum(written_bytes(place) for place in places)
    files = [Path(name) for place in places for name in live_files(place)]
    line.append(f"{written / 1e6:.0f} / {sum(path.stat().st_size for path in files) / 1e6:.0f}")
    line += [f"{len(files)}", f"{peak:.0f}"]
    print(f"{run}: {rows:,} rows are as expected; " + ", ".join(line[1:]), flush=True)
    return "| " + " | ".join(line) + " |", growth


def count_events(place):
    connection = connect()
    return sum(connection.sql(f"SELECT count(*) FROM '{place}/{entity}/*.parquet'").fetchone()[0] for entity in TABLES)


def cascade(folder, options):
    warehouse, pipeline = folder / "one" / "warehouse", folder / "cascade"
    shutil.rmtree(pipeline, ignore_errors=True)
    pipeline.mkdir()
    view = CASCADE.format(TABLES["accounts"], TABLES["customers"])
    (pipeline / "view.sql").write_text(f"CREATE MATERIALIZED VIEW account_history AS {view};\n", encoding="utf-8")
    seconds = strandline(pipeline, warehouse, options)[0]
    rows = apart(check_cascade, folder, warehouse)
    return f"After `one`, the view that cascades changes of customers to their open accounts: {rows:,} rows in {seconds:.1f} s."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=100, help="scale factor: 5,000 actions each; even")
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=RUNS)
    parser.add_argument("--memory-limit", default="1500MB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    folder = options.work.resolve() / f"history-{options.scale}"
    folder.mkdir(parents=True, exist_ok=True)
    apart(prepare, folder, options.scale)
    lines = ["| run | events | s | processor s | events/s | batches | batch p50 / p95 / p99, ms | last 30 days / first 30, customers, accounts | "
             "the same of live bytes | MB written / live | live files | peak MB |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    missed = []
    for run in options.runs:
        line, growth = one_run(folder, run, options)
        lines.append(line)
        missed += [f"{run}: {one:.2f}" for one in growth if one > AIM_GROWTH]
    text = "\n".join(lines)
    if "one" in options.runs:
        text += "\n\n" + cascade(folder, options)
    print("\n" + text)
    if missed:
        print(f"\nlast days over {AIM_GROWTH} times the first: {', '.join(missed)}")
    if options.write:
        write_section(f"history-{options.scale}", f"""
## Ten years of customers and accounts, scale factor {options.scale:,}

{5000 * options.scale:,} actions derived from TPC-DI (not a TPC result) into two SCD type 2 tables; `bench/history.py` says what the
runs are and `bench/tpcdi.py` how actions are made. Every run gave exactly the rows of an independent query. The seconds
of a batch lie between two commits of its table, compaction included; aim: the median of the last 30 days at most
{AIM_GROWTH} times that of the first 30. `--memory-limit {options.memory_limit}`, {options.threads} threads, {processor()}. {options.note}

{text}

What grows over the year is what a batch reads: its keys lie anywhere, so that nearly every page of target and state holds
a row of one, and under partial updates the state has all that was ever given, beside the target's rows. Files do not add
up: every 16 versions the small ones are merged. "The same of live bytes" is the share by which target and state
grew; more than that would be a cost of the number of batches.

Make it again with `bench/run.sh history --scale {options.scale} --write`.""")


if __name__ == "__main__":
    main()
