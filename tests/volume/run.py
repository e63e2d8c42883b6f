"""The volume test: random pipelines over many events, held against the oracle after every batch.

    run.py [--seed 1] [--batches 100 | --cases 1] [--scale 1.0] [--known-bad] [--keep FOLDER]

A batch is one batch of one flow. Cases have seeds of their own, one after the other: a run can be split, or go on
with the seed it told last. What differs is printed with the command that repeats it alone; then the exit code is 1.
The oracle's engine is whatever `import duckdb` finds; scripts/volume.sh gives it another version than the product's."""

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import duckdb
import pyarrow

import cases as making
import statements as text
from kinds import NUMBER
from oracle import table as oracle_table

SCRATCH = Path(os.environ.get("STRANDLINE_VOLUME_SCRATCH", "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()))


class Difference(AssertionError):
    """The product and the oracle do not give the same."""


class Figures:
    """What was run, by kind: batches and the events in them, tables and feeds held against the oracle and the rows in
    them, batches during which the engine spilled, and updates that needed more memory than they were given."""

    def __init__(self):
        self.lines = collections.defaultdict(collections.Counter)
        self.threads = collections.Counter()

    def add(self, kind, **counts):
        self.lines[kind].update(counts)

    @property
    def batches(self):
        return sum(counts["batches"] for counts in self.lines.values())

    def print(self):
        names = ["batches", "events", "checks", "rows", "spilled", "refused"]
        print(f"{'kind':<44}" + "".join(f"{name:>15}" for name in names))
        total = collections.Counter()
        for kind in sorted(self.lines):
            total.update(self.lines[kind])
            print(f"{kind:<44}" + "".join(f"{self.lines[kind][name]:>15,}" for name in names))
        print(f"{'all':<44}" + "".join(f"{total[name]:>15,}" for name in names))
        print("batches by threads: " + ", ".join(f"{threads}: {count:,}" for threads, count in sorted(self.threads.items())), flush=True)


def kind_of(case, target):
    stored = {1: "SCD 1", 2: "SCD 2", 3: "BITEMPORAL"}[target.storage]
    updates = {"whole": "whole rows", "ignore": "IGNORE NULL UPDATES" + (" ON" if target.always else ""),
               "named": "COLUMNS TO UPDATE"}[target.updates]
    return f"{case.kind}, {stored}, {updates}" + (", TRACK HISTORY" if target.tracked is not None else "")


class CaseRun:
    def __init__(self, case, oracle, folder, figures):
        import strandline

        self.case, self.oracle, self.folder, self.figures = case, oracle, folder, figures
        (folder / "p").mkdir(parents=True)
        (folder / "in").mkdir()
        (folder / "p" / "p.sql").write_text(text.pipeline(case, folder), encoding="utf-8")
        self.pipeline = strandline.Pipeline(folder / "p", warehouse=folder / "w")
        self.versions = {}
        self.spilled = False
        self.before = 0  # events so far
        self.by_hand = 0
        oracle.execute(f"CREATE OR REPLACE TABLE events {text.events_table(case)}")
        for target in case.targets:
            oracle.execute(f"CREATE OR REPLACE TABLE hand_{target.name} {text.events_table(case)}")
            oracle.execute(f"CREATE OR REPLACE TABLE dead_{target.name} (arrival BIGINT)")

    # --- one batch

    def run(self):
        for number, batch in enumerate(self.case.batches):
            if number:
                for name in batch.optimize:
                    self.warehouse().sql(f"OPTIMIZE {name}")
                if self.case.kind == "edits":
                    for target in self.case.targets:
                        self.edit(target, number)
            self.bring(number, batch)
            self.update(batch)
            for target in self.case.targets:
                if self.is_checked(target, number):
                    self.check(target, number)
            self.check_others()

    def warehouse(self):
        return self.pipeline.warehouse()

    def bring(self, number, batch):
        case, folder = self.case, self.folder
        if case.kind == "snapshots":
            self.oracle.execute(text.make_snapshot(case, number))
            rows = text.rows_of_source(case, f"(SELECT * FROM events WHERE batch = {number})")
            self.oracle.execute(f"COPY ({rows}) TO '{folder}/in/snapshot.parquet' (FORMAT parquet)")
            return
        self.oracle.execute(text.make_events(case, number, self.before))
        self.before += batch.events
        again = f"{text.draw(case, 60 + number, 'arrival')} % 100 < {batch.again}"
        came = f"(SELECT * FROM events WHERE batch = {number} UNION ALL SELECT * FROM events WHERE {again})"
        if batch.shuffled:
            came = f"(SELECT * FROM {came} ORDER BY {text.draw(case, 70, 'arrival')})"
        rows = text.rows_of_source(case, came)
        if case.from_table:
            warehouse = self.warehouse()
            warehouse.register("new_rows", self.oracle.sql(rows))
            warehouse.sql("INSERT INTO source SELECT * FROM new_rows" if number else "CREATE TABLE source AS SELECT * FROM new_rows")
            return
        for part in range(batch.files):
            chosen = f"{came} WHERE arrival % {batch.files} = {part}" if batch.files > 1 else came
            self.oracle.execute(f"COPY ({text.rows_of_source(case, chosen)}) TO '{folder}/in/{number}-{part}.parquet' (FORMAT parquet)")

    def update(self, batch):
        limit, refused = batch.memory_limit, 0
        self.spilled = False
        while True:
            outcome = self.pipeline.run(threads=batch.threads, memory_limit_bytes=limit, check=False,
                                        progress=self.look if limit else None)
            if outcome.ok:
                break
            if limit and refused < 6 and any(error.code == "OUT_OF_MEMORY" for error in outcome.errors):
                limit, refused = limit * 2, refused + 1
                continue
            raise Difference("the update failed: " + "; ".join(map(str, outcome.errors)))
        for target in self.case.targets:
            self.figures.add(kind_of(self.case, target), batches=1, events=batch.events, spilled=int(self.spilled), refused=refused)
            self.figures.threads[batch.threads] += 1

    def look(self, _):
        """While an update runs: the engine makes its folder in TMPDIR when it first spills."""
        self.spilled = self.spilled or any(name.startswith("strandline-") for name in os.listdir(os.environ["TMPDIR"]))

    # --- what came of it

    def events_of(self, target):
        if self.case.kind != "edits":
            return "events"
        return (f"(SELECT * FROM (SELECT * FROM events UNION ALL SELECT * FROM hand_{target.name}) AS every ANTI JOIN "
                f"dead_{target.name} USING (arrival))")

    def ask(self, relation):
        """Makes the product's rows the relation `came` of the oracle's engine, to be read once; their columns' names."""
        rows = pyarrow.RecordBatchReader.from_stream(self.warehouse().sql(f"SELECT * FROM {relation}"))
        self.oracle.register("came", rows)
        return rows.schema.names

    def is_checked(self, target, number):
        """After its last batch every target; before that where something needs its rows, and now and then."""
        case, name = self.case, target.name
        if case.kind == "edits" or name in case.feeds or name == case.copy or (case.views and target is case.targets[0]):
            return True
        return number + 1 == len(case.batches) or random.Random(f"{case.seed} {name} {number}").random() < 0.4

    def check(self, target, number):
        name, case, oracle = target.name, self.case, self.oracle
        if number and name in case.feeds:
            oracle.execute(f"DROP TABLE IF EXISTS old_{name}; ALTER TABLE expected_{name} RENAME TO old_{name}")
        oracle.execute(f"CREATE OR REPLACE TABLE ranks_{name} AS {oracle_table(target, self.events_of(target))}")
        oracle.execute(f"CREATE OR REPLACE TABLE expected_{name} AS {text.expected_rows(case, target, f'ranks_{name}')}")
        self.ask(name)
        oracle.execute(f"CREATE OR REPLACE TEMP TABLE found AS {text.found_rows(case, target, 'came')}")
        where = f"{name} after batch {number}"
        rows = self.compare(f"SELECT * FROM expected_{name}", "SELECT * FROM found", where)
        self.figures.add(kind_of(case, target), checks=1, rows=rows)
        self.check_feed(target, number, where)

    def check_feed(self, target, number, where):
        """What was there and what came is what is there and what went."""
        name = target.name
        if name not in self.case.feeds:
            return
        version = self.warehouse().table(name).version
        old = self.versions.get(name, -1)
        self.versions[name] = version
        if version == old:
            return
        self.ask(f"table_changes('{name}', {old + 1}, {version})")
        self.oracle.execute("CREATE OR REPLACE TEMP TABLE changes AS " + text.found_rows(self.case, target, "came", ", _change_type"))
        before = f"SELECT * FROM old_{name}" if number else f"SELECT * FROM expected_{name} WHERE false"
        came = "SELECT * EXCLUDE (_change_type) FROM changes WHERE _change_type IN ('insert', 'update_postimage')"
        went = "SELECT * EXCLUDE (_change_type) FROM changes WHERE _change_type IN ('delete', 'update_preimage')"
        rows = self.compare(f"SELECT * FROM ({before}) UNION ALL {came}", f"SELECT * FROM expected_{name} UNION ALL {went}",
                            f"the feed of {where}, versions {old + 1} to {version}")
        recorded = "recorded" if target.options["recorded"] else "automatic"
        self.figures.add(f"feed, {recorded}", checks=1, rows=rows)

    def check_others(self):
        case, first = self.case, self.case.targets[0].name
        if case.copy:
            followed = next(target for target in case.targets if target.name == case.copy)
            self.ask("copied")
            self.oracle.execute("CREATE OR REPLACE TEMP TABLE found AS " + text.found_rows(case, followed, "came"))
            rows = self.compare(f"SELECT * FROM expected_{case.copy}", "SELECT * FROM found", f"what followed {case.copy} by its feed")
            self.figures.add("AUTO CDC from a feed", batches=1, checks=1, rows=rows)
        if not case.views:
            return
        plain = {name: kind.plain for name, kind in zip(text.key_names(case), case.keys)}
        group = text.grouping_column(case)
        plain["g"] = group.kind.plain if group else None
        for name, query in text.views(case).items():
            columns = ", ".join(f"{plain.get(each, str)(each)} AS {each}" for each in self.ask(name))
            self.oracle.execute(f"CREATE OR REPLACE TEMP TABLE found AS SELECT {columns} FROM came")
            rows = self.compare(query.format(table=f"expected_{first}"), "SELECT * FROM found", f"the view {name}")
            self.figures.add("materialized view", batches=1, checks=1, rows=rows)

    def number(self, query):
        return self.oracle.execute(query).fetchall()[0][0]

    def compare(self, expected, found, where):
        """Both as bags; how many rows there are."""
        oracle = self.oracle
        types = [[row[:2] for row in oracle.execute(f"DESCRIBE {query}").fetchall()] for query in (expected, found)]
        if types[0] != types[1]:
            raise Difference(f"{where}: columns {types[1]}, expected {types[0]}")
        weighed = (f"SELECT *, sum(w) AS times FROM (SELECT *, 1 AS w FROM ({expected}) UNION ALL SELECT *, -1 FROM ({found})) "
                   "GROUP BY ALL HAVING sum(w) <> 0")
        grouped = weighed.replace("SELECT *, sum(w)", f"SELECT {', '.join(one[0] for one in types[0])}, sum(w)", 1)
        wrong, missing, surplus = oracle.execute(
            f"SELECT count(*), sum(times) FILTER (WHERE times > 0), sum(-times) FILTER (WHERE times < 0) FROM ({grouped})").fetchall()[0]
        total = self.number(f"SELECT count(*) FROM ({found})")
        if wrong:
            rows = oracle.execute(f"SELECT * FROM ({grouped}) ORDER BY 1, 2, times LIMIT 8").fetchall()
            raise Difference(f"{where}: of {total} rows {missing or 0} are missing and {surplus or 0} are too many, such as "
                             "(last: 1 missing, -1 too many)\n  " + "\n  ".join(map(str, rows)))
        return total

    # --- rows changed by hand

    def edit(self, target, number):
        """Changes and deletes some rows of the target, and tells the oracle what that says of the events."""
        case, oracle, name = self.case, self.oracle, target.name
        every = self.events_of(target)
        oracle.execute(f"CREATE OR REPLACE TEMP TABLE seen AS SELECT * FROM {every}")
        chance = text.draw(case, 80 + number, "kn", "coalesce(start_sn, 0)")
        share = max(2, self.number(f"SELECT count(*) // 150 FROM ranks_{name}"))
        parts = {part: rank for part, _, rank in text.parts_of_row(case, target)}
        ranks = ", ".join(f"{parts.get(column.name, 'NULL')} AS {column.name}" for column in case.columns)
        changed = case.number.name
        oracle.execute(f"CREATE OR REPLACE TEMP TABLE edited AS SELECT *, {chance} // {share} % 3 = 0 AS gone FROM (SELECT kn, "
                       f"start_sn, end_sn, {ranks} FROM ranks_{name}) WHERE {chance} % {share} = 0")
        oracle.execute(f"UPDATE edited SET {changed} = CASE WHEN {changed} IS NULL THEN 0 ELSE ({changed} + 1) % {NUMBER.ranks} END")
        if target.storage == 1:
            spans = ("SELECT e.*, m.sn AS place FROM edited e JOIN (SELECT kn, max(sn) AS sn FROM seen GROUP BY kn) m USING (kn)")
            oracle.execute(f"INSERT INTO dead_{name} SELECT s.arrival FROM seen s JOIN edited e USING (kn)")
        else:
            spans = "SELECT *, start_sn AS place FROM edited"
            oracle.execute(f"INSERT INTO dead_{name} SELECT s.arrival FROM seen s JOIN edited e ON s.kn = e.kn AND s.sn >= e.start_sn "
                           "AND (e.end_sn IS NULL OR s.sn < e.end_sn)")
        columns = ", ".join(column.name for column in case.columns)
        self.by_hand += 1
        arrival = f"-({self.by_hand} * 1000000 + row_number() OVER (ORDER BY kn, place))"
        oracle.execute(f"INSERT INTO hand_{name} SELECT {arrival}, {number}, kn, place, 0, CASE WHEN gone THEN 'D' ELSE 'H' END, NULL, 0, "
                       f"{columns} FROM ({spans})")
        if target.storage == 2:
            self.by_hand += 1
            arrival = f"-({self.by_hand} * 1000000 + row_number() OVER (ORDER BY kn, end_sn))"
            stands = (f"SELECT kn, start_sn FROM ranks_{name} ANTI JOIN (SELECT kn, start_sn FROM edited WHERE gone) USING (kn, start_sn)")
            oracle.execute(f"INSERT INTO hand_{name} SELECT {arrival}, {number}, kn, end_sn, 0, 'D', NULL, 0, {columns} FROM edited e "
                           f"WHERE NOT gone AND end_sn IS NOT NULL AND (kn, end_sn) NOT IN ({stands})")
        self.merge(target)

    def merge(self, target):
        case = self.case
        names = text.key_names(case)
        keys = [f"{value} AS {key}" for key, value in zip(names, text.key_values(case, "kn", "kn"))]
        changed = case.number
        rows = f"SELECT {', '.join(keys)}, gone, {changed.kind.value(changed.name, '0')} AS made"
        on = [f"t.{key} <=> e.{key}" for key in names]
        if target.storage == 2:
            rows += f", {case.sequence.value('start_sn', 'start_sn')} AS place"
            on.append("t.__START_AT <=> e.place")
        warehouse = self.warehouse()
        warehouse.register("edits", self.oracle.sql(rows + " FROM edited"))
        warehouse.sql(f"MERGE INTO {target.name} AS t USING edits AS e ON {' AND '.join(on)} WHEN MATCHED AND e.gone THEN DELETE "
                      f"WHEN MATCHED THEN UPDATE SET {changed.name} = e.made")


def describe(case):
    lines = [f"  keys {'+'.join(kind.name for kind in case.keys)}, sequence {case.sequence.name}, columns "
             + ", ".join(f"{column.name} {column.kind.name}" for column in case.columns)]
    lines += [f"  {batch}" for batch in case.batches]
    lines.append("  " + text.pipeline(case, "FOLDER").replace("\n", "\n  "))
    return "\n".join(lines)


def run_case(case, oracle, figures, keep=None):
    """What is wrong, or nothing."""
    folder = Path(tempfile.mkdtemp(prefix="volume-", dir=SCRATCH))
    os.environ["TMPDIR"] = str(folder / "tmp")
    (folder / "tmp").mkdir()
    try:
        CaseRun(case, oracle, folder, figures).run()
        return None
    except Exception as problem:
        if keep:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
        return str(problem) if isinstance(problem, Difference) else traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--batches", type=int, default=100, help="end after so many")
    parser.add_argument("--cases", type=int, default=0, help="or after so many cases")
    parser.add_argument("--seconds", type=float, default=0, help="or after so long")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of events; a part of a failing case")
    parser.add_argument("--known-bad", action="store_true", help="first the sizes that went wrong once")
    parser.add_argument("--keep", help="folder for what a failing case left")
    parser.add_argument("--failures", type=int, default=5, help="end after so many")
    parser.add_argument("--verbose", action="store_true", help="say what every case is")
    options = parser.parse_args()
    oracle = duckdb.connect(config={"threads": 1})
    oracle.execute("SET TimeZone = 'UTC'")
    figures, failures, begun = Figures(), 0, time.monotonic()
    print(f"the oracle runs on DuckDB {duckdb.__version__}", flush=True)

    def queue():
        if options.known_bad:
            for events, threads in ((51_201, 1), (52_000, 1), (53_247, 1), (155_649, 1), (53_247, 2), (53_247, 8)):
                yield f"--known-bad ({events} events, threads {threads})", making.known_bad(events, threads)
        seed = options.seed
        while True:
            yield f"--seed {seed} --cases 1", making.make_case(seed, options.scale)
            seed += 1

    told = cases = 0
    stopped = []

    def stop(*_):
        stopped.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGUSR1, lambda *_: figures.print())
    # Stopped by hand or by its end a run tells what it did; with SIGUSR1 what it did so far.
    with contextlib.suppress(KeyboardInterrupt):
        for command, case in queue():
            is_enough = cases >= options.cases if options.cases else figures.batches >= options.batches
            is_late = options.seconds and time.monotonic() - begun > options.seconds
            if is_late or (is_enough and not command.startswith("--known-bad")) or failures >= options.failures:
                break
            if options.verbose:
                print(command, describe(case), sep="\n", flush=True)
            problem = run_case(case, oracle, figures, options.keep)
            if stopped:  # while an update ran, which then was canceled
                break
            cases += not command.startswith("--known-bad")
            if problem:
                failures += 1
                print(f"DIFFERENT: {problem}\n{describe(case)}\nrepeat it: scripts/volume.sh {command}"
                      + (f" --scale {options.scale}" if options.scale != 1 else ""), flush=True)
            if figures.batches // 100 > told:
                told = figures.batches // 100
                print(f"{figures.batches:,} batches in {time.monotonic() - begun:,.0f} s, {failures} failures; next seed {case.seed + 1}", flush=True)
    figures.print()
    print(f"{cases} cases in {time.monotonic() - begun:,.0f} s, {failures} failures; next seed {options.seed + cases}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
