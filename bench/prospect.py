"""Snapshots into history (SCD type 2), derived from the Prospect file of TPC-DI; not a TPC result.

A file of 4,994 SF prospects, then files in each of which 6 SF of them are replaced: half have other values, half are gone
and others stand in their place. Each file is compared with the history that there is. Beside ours, on the same files and
in the same run: dbt's snapshots (check strategy, all columns) and dlt's scd2, both on DuckDB, each with the threads given;
and the floor, DuckDB's full join of two files by key that finds what differs and writes nothing.

Seconds and memory are those of whole processes, one for each file. At the end every history must have the rows
of an independent query, or the benchmark fails; dbt and dlt have their own columns of time, so that of theirs the number of
versions and the open rows are compared. `--write` puts the table into docs/BENCHMARKS.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from shared import PROGRAM, ROOT, actions, apart, connect, measured, middle, processor, versions, write_section
from tpcdi import CITIES, FIRST_NAMES, LAST_NAMES, STATES, STREETS

PER_SCALE = 4994
CHURN = 6  # per scale factor and file
AIM_RATIO, AIM_PEAK_MB = 2.5, 2000
ENGINES = ("strandline", "dbt", "dlt")
PEERS = ROOT / "build" / "peers-venv"
FORMATS = ("csv", "parquet")

COLUMNS = [
    ("agency_id", "VARCHAR"), ("last_name", "VARCHAR"), ("first_name", "VARCHAR"), ("middle_initial", "VARCHAR"),
    ("gender", "VARCHAR"), ("address_line_1", "VARCHAR"), ("address_line_2", "VARCHAR"), ("postal_code", "VARCHAR"),
    ("city", "VARCHAR"), ("state", "VARCHAR"), ("country", "VARCHAR"), ("phone", "VARCHAR"), ("income", "INTEGER"),
    ("number_cars", "INTEGER"), ("number_children", "INTEGER"), ("marital_status", "VARCHAR"), ("age", "INTEGER"),
    ("credit_rating", "INTEGER"), ("own_or_rent", "VARCHAR"), ("employer", "VARCHAR"), ("number_credit_cards", "INTEGER"),
    ("net_worth", "INTEGER"),
]  # fmt: skip
NAMES = ", ".join(name for name, _ in COLUMNS)
SPARK_TYPES = {"VARCHAR": "STRING", "INTEGER": "INT"}


def one_of(words, salt):
    return f"{list(words)!r}[1 + (hash(id * {salt} + v * 3) % {len(words)})::INT]"


def snapshot_query(scale, number):
    """The file of that number: a slot has an entity, replaced or changed in every file that picks it."""
    count = PER_SCALE * scale
    half = CHURN * scale // 2

    def times(low, high):
        """How often a slot was picked so far, at places of a permutation that each file turns further."""
        picked = [f"((slot * 7919 + {b} * 104729 * {scale}) % {count})" for b in range(1, number + 1)]
        return " + ".join(["0", *(f"({one} >= {low} AND {one} < {high})::INT" for one in picked)])

    return f"""
SELECT printf('%s%07d', chr(65 + (id % 26)::INT), id) AS agency_id, {one_of(LAST_NAMES, 3)} AS last_name,
  {one_of(FIRST_NAMES, 5)} AS first_name, CASE WHEN hash(id) % 4 = 0 THEN NULL ELSE chr(65 + (hash(id * 7) % 26)::INT) END AS middle_initial,
  CASE WHEN hash(id * 11) % 20 = 0 THEN NULL WHEN hash(id * 11) % 2 = 0 THEN 'F' ELSE 'M' END AS gender,
  (hash(id * 13 + v) % 900 + 1) || ' ' || {one_of(STREETS, 17)} AS address_line_1,
  CASE WHEN hash(id * 19) % 10 = 0 THEN 'Apt. ' || (hash(id * 19 + v) % 90) END AS address_line_2,
  printf('%05d', (hash(id * 23 + v) % 99999)::INT) AS postal_code, {one_of(CITIES, 29)} AS city, {one_of(STATES, 31)} AS state,
  CASE WHEN hash(id * 37) % 5 = 0 THEN 'Canada' ELSE 'United States of America' END AS country,
  CASE WHEN hash(id * 41) % 10 > 0 THEN printf('(%03d) %03d-%04d', (hash(id) % 900 + 100)::INT, (hash(id * 2) % 900 + 100)::INT, (hash(id * 3 + v) % 10000)::INT) END AS phone,
  (hash(id * 43 + v) % 400000)::INT AS income, (hash(id * 47) % 5)::INT AS number_cars, (hash(id * 53) % 6)::INT AS number_children,
  {one_of(["S", "M", "D", "W", "U"], 59)} AS marital_status, (18 + hash(id * 61) % 80)::INT AS age,
  (300 + hash(id * 67 + v) % 550)::INT AS credit_rating, {one_of(["O", "R", "U"], 71)} AS own_or_rent,
  CASE WHEN hash(id * 73) % 8 > 0 THEN {one_of(LAST_NAMES, 79)} || ' and Sons' END AS employer,
  (hash(id * 83) % 8)::INT AS number_credit_cards, (hash(id * 89 + v) % 2000000)::INT - 100000 AS net_worth
FROM (SELECT slot + {count} * ({times(0, half)}) AS id, {times(half, 2 * half)} AS v FROM range({count}) AS s(slot)) ORDER BY agency_id"""


def prepare(folder, scale, files, form):
    connection = connect()
    for number in range(files):
        path = folder / f"{number}.{form}"
        if not path.exists():
            how = "FORMAT csv, HEADER" if form == "csv" else "FORMAT parquet"
            connection.execute(f"COPY ({snapshot_query(scale, number)}) TO '{path}.part' ({how})")
            Path(f"{path}.part").rename(path)


def reading(path, form):
    if form == "parquet":
        return f"read_parquet('{path}')"
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS)
    return f"read_csv('{path}', header = true, auto_detect = false, quote = '\"', columns = {{{types}}})"


def history_query(folder, files, form):
    """agency_id and all columns, first file, first file without it; from the files alone."""
    rows = " UNION ALL ".join(f"SELECT {number} AS f, {NAMES} FROM {reading(folder / f'{number}.{form}', form)}" for number in range(files))
    differs = " OR ".join(f"{name} IS DISTINCT FROM lag({name}) OVER w" for name, _ in COLUMNS[1:])
    return f"""
WITH all_rows AS MATERIALIZED ({rows}),
marked AS (SELECT *, lag(f) OVER w IS DISTINCT FROM f - 1 OR {differs} AS starts FROM all_rows WINDOW w AS (PARTITION BY agency_id ORDER BY f)),
runs AS (SELECT *, count_if(starts) OVER (PARTITION BY agency_id ORDER BY f) AS run FROM marked)
SELECT {', '.join(f'any_value({name}) AS {name}' if name != 'agency_id' else name for name, _ in COLUMNS)},
  min(f) AS __START_AT, CASE WHEN max(f) < {files - 1} THEN max(f) + 1 END AS __END_AT
FROM runs GROUP BY agency_id, run"""


def put(folder, number, form):
    """The file that all engines read, as it comes from outside: another one under the same name."""
    current = folder / "current" / f"prospect.{form}"
    current.parent.mkdir(exist_ok=True)
    shutil.copyfile(folder / f"{number}.{form}", current.with_suffix(".part"))
    current.with_suffix(".part").rename(current)
    return current


class Strandline:
    def __init__(self, place, current, form, options):
        self.options, self.place, self.warehouse = options, place, place / "warehouse"
        (place / "pipeline").mkdir(parents=True)
        schema = ", ".join(f"{name} {SPARK_TYPES[kind]}" for name, kind in COLUMNS)
        more = f", header => true, schema => '{schema}'" if form == "csv" else ""
        (place / "pipeline" / "prospect.sql").write_text(f"""
CREATE STREAMING TABLE prospect;
CREATE FLOW prospect AS AUTO CDC INTO prospect FROM SNAPSHOT (SELECT * FROM read_files('{current}', format => '{form}'{more}))
KEYS (agency_id) STORED AS SCD TYPE 2;
""", encoding="utf-8")  # fmt: skip

    def command(self):
        return [PROGRAM, "run", self.place / "pipeline", "--warehouse", self.warehouse, "--threads", self.options.threads,
                "--memory-limit", self.options.memory_limit], {}

    def check(self, expected):
        exported = self.place / "rows.csv"
        with exported.open("wb") as out:
            subprocess.run([PROGRAM, "sql", "--warehouse", self.warehouse, "--format", "csv", "-c", "SELECT * FROM prospect"],
                           stdout=out, check=True)
        types = ", ".join(f"'{name}': '{kind}'" for name, kind in [*COLUMNS, ("__START_AT", "BIGINT"), ("__END_AT", "BIGINT")])
        connection = connect()
        connection.execute(f"CREATE VIEW got AS SELECT * FROM read_csv('{exported}', header = true, auto_detect = false, quote = '\"', columns = {{{types}}})")
        connection.execute(f"CREATE VIEW wanted AS SELECT * FROM '{expected}'")
        return connection.execute("SELECT (SELECT count(*) FROM (FROM wanted EXCEPT ALL FROM got)) + "
                                  "(SELECT count(*) FROM (FROM got EXCEPT ALL FROM wanted)), (SELECT count(*) FROM got)").fetchone()

    def written_mb(self):
        table = self.warehouse / "main" / "default" / "prospect"
        return [sum(action["add"]["size"] for action in actions(path)
                    if "add" in action and not action["add"].get("deletionVector")) / 1e6 for path in versions(table)]


def of_peer(place, table, end, expected):
    """How far versions and open rows are from what they should be, and how many versions there are."""
    connection = connect()
    connection.execute(f"ATTACH '{place}' AS peer (READ_ONLY)")
    return connection.execute(
        f"WITH got AS (SELECT {NAMES} FROM peer.{table} WHERE {end} IS NULL), "
        f"wanted AS (SELECT {NAMES} FROM '{expected}' WHERE __END_AT IS NULL) "
        f"SELECT (SELECT count(*) FROM (FROM wanted EXCEPT ALL FROM got)) + (SELECT count(*) FROM (FROM got EXCEPT ALL FROM wanted)) + "
        f"abs((SELECT count(*) FROM peer.{table}) - (SELECT count(*) FROM '{expected}')), (SELECT count(*) FROM peer.{table})").fetchone()


class Dbt:
    def __init__(self, place, current, form, options):
        self.place = place
        (place / "snapshots").mkdir(parents=True)
        (place / "dbt_project.yml").write_text("name: prospect\nversion: '1.0.0'\nprofile: prospect\nsnapshot-paths: [snapshots]\n"
                                               "flags: {send_anonymous_usage_stats: false}\n")
        (place / "profiles.yml").write_text(
            f"prospect:\n  target: t\n  outputs:\n    t: {{type: duckdb, path: '{place / 'db.duckdb'}', threads: {options.threads},\n"
            f"        settings: {{memory_limit: '{options.memory_limit}', threads: {options.threads}}}}}\n")
        (place / "snapshots" / "prospect.sql").write_text(
            "{% snapshot prospect %}\n{{ config(schema='main', unique_key='agency_id', strategy='check', check_cols='all', "
            "hard_deletes='invalidate') }}\n" + f"select {NAMES} from {reading(current, form)}\n" + "{% endsnapshot %}\n")

    def command(self):
        return [PEERS / "bin" / "dbt", "--quiet", "snapshot", "--project-dir", self.place, "--profiles-dir", self.place], {
            "cwd": self.place}

    def check(self, expected):
        return of_peer(self.place / "db.duckdb", "main_main.prospect", "dbt_valid_to", expected)


DLT = '''
import sys
import dlt, duckdb
from dlt.sources.helpers.transform import add_row_hash_to_table
place, query, threads, memory = sys.argv[1:]

@dlt.resource(name="prospect", write_disposition={"disposition": "merge", "strategy": "scd2", "row_version_column_name": "row_hash"})
def prospect():
    yield duckdb.sql(query).df()

pipeline = dlt.pipeline("prospect", pipelines_dir=place + "/state", dataset_name="d",
                        destination=dlt.destinations.duckdb(duckdb.connect(place + "/db.duckdb", config={"threads": threads, "memory_limit": memory})))
pipeline.run(prospect().add_map(add_row_hash_to_table("row_hash"))).raise_on_failed_jobs()
'''


class Dlt:
    def __init__(self, place, current, form, options):
        self.place, self.options = place, options
        self.query = f"SELECT {NAMES} FROM {reading(current, form)}"
        place.mkdir(parents=True)
        (place / "load.py").write_text(DLT)

    def command(self):
        words = [PEERS / "bin" / "python", self.place / "load.py", self.place, self.query, self.options.threads, self.options.memory_limit]
        return words, {"cwd": self.place, "env": {**os.environ, "RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR"}}

    def check(self, expected):
        return of_peer(self.place / "db.duckdb", "d.prospect", "_dlt_valid_to", expected)


FLOOR = """
import sys, time
import duckdb
query, threads, memory = sys.argv[1:]
connection = duckdb.connect(config={"threads": threads, "memory_limit": memory})
begun = time.perf_counter()
connection.execute(query).fetchall()
print(time.perf_counter() - begun)
"""


def floor(folder, number, form, options):
    """Seconds, peak and processor seconds of the engine alone: which rows two files do not share."""
    differs = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name, _ in COLUMNS[1:])
    query = (f"SELECT count(*) FROM {reading(folder / f'{number}.{form}', form)} AS a FULL JOIN "
             f"{reading(folder / f'{number - 1}.{form}', form)} AS b USING (agency_id) "
             f"WHERE a.agency_id IS NULL OR b.agency_id IS NULL OR {differs}")
    return measured([sys.executable, "-c", FLOOR, query, options.threads, options.memory_limit])[:3]


def install_peers():
    stamp, wanted = PEERS / ".installed", ROOT / "bench" / "peers.txt"
    if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
        return
    subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    subprocess.run([PEERS / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted], check=True)
    shutil.copy(wanted, stamp)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=100, help="scale factor: 4,994 rows each")
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench-data")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--write", action="store_true", help="write docs/BENCHMARKS.md")
    options = parser.parse_args()
    if {"dbt", "dlt"} & set(options.engines):
        install_peers()
    form = options.format
    folder = options.work.resolve() / f"prospect-{options.scale}-{form}"
    folder.mkdir(parents=True, exist_ok=True)
    apart(prepare, folder, options.scale, options.files, form)
    expected = folder / f"expected-{options.files}.parquet"
    if not expected.exists():
        apart(connect_and_copy, history_query(folder, options.files, form), expected)
    kinds = {"strandline": Strandline, "dbt": Dbt, "dlt": Dlt}
    runs = {}
    for name in options.engines:
        shutil.rmtree(folder / name, ignore_errors=True)
        runs[name] = kinds[name](folder / name, folder / "current" / f"prospect.{form}", form, options)
    figures = {name: [] for name in [*options.engines, "floor"]}
    for number in range(options.files):  # in turns, so that all see the same machine
        put(folder, number, form)
        for name, run in runs.items():
            words, more = run.command()
            figures[name].append(measured(words, **more)[:3])
        if number:
            figures["floor"].append(floor(folder, number, form, options))
    lines = ["| | first file, s | later files, s | processor s, later | peak MB | later, of the floor | versions |", "|---|---|---|---|---|---|---|"]
    missed = []
    base = middle([one[0] for one in figures["floor"]])
    for name in [*options.engines, "floor"]:
        found = figures[name]
        later = found if name == "floor" else found[1:]
        seconds, cpu, peak = middle([one[0] for one in later]), middle([one[2] for one in later]), max(one[1] for one in found)
        rows = ""
        if name != "floor":
            wrong, rows = apart(runs[name].check, expected)
            if wrong:
                sys.exit(f"{name}: {wrong} rows differ from what the files say")
            rows = f"{rows:,}"
        first = "" if name == "floor" else f"{found[0][0]:.2f}"
        lines.append(f"| {name} | {first} | {seconds:.2f} | {cpu:.2f} | {peak:.0f} | {seconds / base:.2f} | {rows} |")
        if name == "strandline" and (seconds / base > AIM_RATIO or peak > AIM_PEAK_MB):
            missed.append(f"{seconds / base:.2f} of the floor, {peak:.0f} MB")
    text = "\n".join(lines)
    if "strandline" in runs:
        sizes = runs["strandline"].written_mb()
        written = [size for size in sizes if size > 0]
        text += f"\n\nOurs wrote {written[0]:.1f} MB of the first file, then {', '.join(f'{size:.2f}' for size in written[1:])} MB."
    print(text)
    if missed:
        print(f"\naims missed ({AIM_RATIO} times the floor, {AIM_PEAK_MB} MB): {', '.join(missed)}")
    if options.write:
        write_section(f"prospect-{options.scale}-{form}", f"""
## Snapshots into history: {PER_SCALE * options.scale:,} prospects, {form}

{options.files} files derived from the Prospect file of TPC-DI (not a TPC result), in each {CHURN * options.scale:,} rows replaced
({100 * CHURN / PER_SCALE:.2f} %), each compared whole with a history of SCD type 2. dbt's snapshots and dlt's scd2 run on DuckDB, in turns with
ours on the same files; the floor is DuckDB's full join of two files. Whole processes, median of the files after the first;
`bench/prospect.py` says the rest. Aims: {AIM_RATIO} times the floor, {AIM_PEAK_MB} MB. `--memory-limit {options.memory_limit}`, {options.threads} threads,
{processor()}. {options.note}

{text}

Make it again with `bench/run.sh prospect --scale {options.scale} --format {form} --write`.""")


def connect_and_copy(query, path):
    connect().execute(f"COPY ({query}) TO '{path}.part' (FORMAT parquet)")
    Path(f"{path}.part").rename(path)


if __name__ == "__main__":
    main()
