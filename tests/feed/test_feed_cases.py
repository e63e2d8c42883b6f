"""The shared cases about change feeds: their steps on a table or a target, their reads, their rows or error."""

import json
import time

import pytest
from harness import ROOT, SqlError, literal, query, run_pipeline, sql_text, write_json_lines

RAW = [case for name in ("bug-log", "reference-cases", "spark-cases")
       for case in json.loads((ROOT / "tests" / "cases" / "data" / f"{name}.json").read_text("utf-8"))]
CASES = {case.get("name") or case["id"]: case for case in RAW
         if case.get("kind") == "cdf" or "native changelog" in case.get("name", "")}
NOT_OURS = {
    "scd1 native changelog: carry-over rows kept fails": "an option of Spark's changelogs; a feed never has copied rows",
    "scd1 native changelog: updates as delete+insert without computeUpdates fails":
        "an option of Spark's changelogs; a feed always tells updates as such",
}
TOLERANT = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"


def value(one):
    return "NULL" if one is None else str(one) if isinstance(one, int) else literal(one)


def condition(where):
    if isinstance(where, str):
        return where
    return " AND ".join(f"{name} <=> {value(one)}" for name, one in where.items())


def steps_of(case):
    """(action, rows, where, set) by version; one action a version, but for deletes of several rows."""
    steps = {}
    for number, batch in enumerate(case["batches"]):
        changes = batch["changes"] if isinstance(batch, dict) else [
            {key.lstrip("_"): one for key, one in change.items()} | {"action": change.get("_op")} for change in batch]
        steps[batch["version"] if isinstance(batch, dict) else number] = changes
    return steps


class Table:
    """What a case is played on. versions: the table's version after each step of the case."""

    def __init__(self, folder, case, feed):
        self.warehouse = folder / "warehouse"
        self.folder, self.case, self.feed, self.versions = folder, case, feed, {}
        self.steps = steps_of(case)
        self.rows = [row for changes in self.steps.values() for change in changes for row in change.get("rows", [])]
        self.toggled = any("cdf_enabled" in change or change["action"] == "enable_cdf"
                           for changes in self.steps.values() for change in changes if change["action"] != "create")
        self.is_target = "auto_cdc" in case["options"].get("via", "") or "on an AUTO CDC target" in case.get("note", "") or any(
            change["action"] in ("auto_cdc", "upsert", "rewrite") for changes in self.steps.values() for change in changes)
        self.played = 0

    def sql(self, text):
        sql_text(self.warehouse, text)

    def columns(self):
        types = {}
        for row in self.rows or [{"id": 1, "v": "a"}]:
            for name, one in row.items():
                if one is not None and name != "new_name":
                    types[name] = "BIGINT" if isinstance(one, int) else "STRING"
        return types

    def create(self):
        options = self.case["options"]
        on = {"delta.enableRowTracking": self.feed == "automatic", "delta.enableChangeDataFeed": self.feed == "recorded"}
        if self.toggled:
            on = {"delta.enableChangeDataFeed": False, "delta.enableRowTracking": False}
        on |= {"delta.enableDeletionVectors": options.get("deletion_vectors", False)}
        if "column_mapping" in options:
            on |= {"delta.columnMapping.mode": options["column_mapping"]}
        properties = ", ".join(f"'{key}' = '{str(one).lower()}'" for key, one in on.items())
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns().items())
        by = f" PARTITIONED BY ({', '.join(options['partition_by'])})" if "partition_by" in options else ""
        self.sql(f"CREATE TABLE t ({columns}){by} TBLPROPERTIES ({properties})")

    def target_step(self, rows):
        """One update of an AUTO CDC target."""
        self.played += 1
        pipeline = self.folder / "pipeline"
        (pipeline / "in").mkdir(parents=True, exist_ok=True)
        write_json_lines(pipeline / "in" / f"{self.played}.json", [{"seq": self.played} | row for row in rows])
        types = ", ".join(f"{name} {kind}" for name, kind in ({"seq": "BIGINT"} | self.columns()).items())
        history = "start_at" in self.case.get("name", "")
        (pipeline / "t.sql").write_text(
            f"CREATE STREAMING TABLE t TBLPROPERTIES ('delta.enableChangeDataFeed' = '{str(self.feed == 'recorded').lower()}');"
            f"CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('{pipeline / 'in'}', format => 'json', schema => '{types}')"
            f" KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE {2 if history else 1};", "utf-8")
        assert run_pipeline(pipeline, self.warehouse).ok

    def version(self):
        if self.is_target and self.played == 0:
            return -1
        return max(row["version"] for row in query(self.warehouse, "DESCRIBE HISTORY t"))

    def play(self, number):
        for change in self.steps[number]:
            action, rows = change["action"], change.get("rows", [])
            names = list(rows[0]) if rows else []
            values = ", ".join("(" + ", ".join(value(row[name]) for name in names) + ")" for row in rows)
            if action == "create":
                continue
            if action in ("rewrite", "optimize"):
                self.sql("OPTIMIZE t")
            elif self.is_target and action in ("auto_cdc", "insert", "upsert"):
                self.target_step(rows)
            elif action == "insert":
                self.sql(f"INSERT INTO t ({', '.join(names)}) VALUES {values}")
            elif action == "update":
                sets = ", ".join(f"{name} = {value(one)}" for name, one in change["set"].items())
                self.sql(f"UPDATE t SET {sets} WHERE {condition(change['where'])}")
            elif action == "delete" and len(self.steps[number]) == 1:
                self.sql(f"DELETE FROM t WHERE {condition(change['where'])}")
            elif action == "rename_column":
                self.sql(f"ALTER TABLE t RENAME COLUMN {change['from']} TO {change['to']}")
            elif action in ("enable_cdf", "disable_cdf"):
                self.sql(f"ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{str(action == 'enable_cdf').lower()}')")
            elif action != "delete":
                raise AssertionError(f"no such action: {action}")
        if len(self.steps[number]) > 1:  # one commit
            self.sql("DELETE FROM t WHERE " + " OR ".join(f"({condition(change['where'])})" for change in self.steps[number]))
        self.versions[number] = self.version()
        return self.versions[number]

    def play_all(self):
        if not self.is_target:
            self.create()
            self.versions[0] = 0
        for number in self.steps:
            self.play(number)
            if any("between" in str(one) or "before" in str(one) for one in self.case["options"].get("read", {}).values()):
                time.sleep(1.1)

    def read(self):
        options = self.case["options"]
        read = options["read"] if "read" in options else dict(zip(("start", "end"), options["range"]))
        tolerant = f"SET {TOLERANT} = true; " if read.get("conf", {}).get(TOLERANT) else ""
        if "startingVersion" in read:
            return self.stream("startingVersion=1, startingTimestamp='2021-04-21 05:45:46'")
        if "startingTimestamp" in read:
            second = max(row["timestamp"] for row in query(self.warehouse, "DESCRIBE HISTORY t") if row["version"] == self.versions[1])
            return query(self.warehouse, f"SELECT * FROM table_changes('t', CAST('{second}' AS TIMESTAMP) + INTERVAL 300 MILLISECONDS,"
                                         f" CAST('{second}' AS TIMESTAMP) + INTERVAL 600 MILLISECONDS)")
        if "start" not in read:
            return query(self.warehouse, "SELECT * FROM table_changes('t')")
        if read["start"] is None:
            return query(self.warehouse, "SELECT * FROM table_changes('t', NULL)")
        first = self.versions.get(read["start"] - 1, read["start"] - 1) + 1
        end = read.get("end")
        last = self.versions.get(end, end)
        if last is not None and last < first and end >= read["start"]:
            return []  # the steps made no commit
        bounds = f"{first}" if end is None else f"{first}, {last}"
        return query(self.warehouse, f"{tolerant}SELECT * FROM table_changes('t', {bounds})")

    def stream(self, options=""):
        pipeline = self.folder / "history"
        pipeline.mkdir(exist_ok=True)
        (pipeline / "h.sql").write_text(
            "CREATE STREAMING TABLE h AS SELECT id, v, _change_type AS change, _commit_version AS version "
            f"FROM STREAM t WITH (readChangeFeed=true{', ' + options if options else ''});", "utf-8")
        report = run_pipeline(pipeline, self.warehouse)
        if not report.ok:
            raise SqlError(" ".join(report.codes))
        return [{"id": row["id"], "v": row["v"], "_change_type": row["change"], "_commit_version": row["version"]}
                for row in query(self.warehouse, "SELECT * FROM h")]


def plain(rows, versions=None):
    return sorted(json.dumps({key: versions.get(one, one) if versions and key == "_commit_version" else one
                              for key, one in row.items() if key != "_commit_timestamp"}, sort_keys=True) for row in rows)


def expectation(case):
    """(rows, errors): what may come."""
    expected = case["expected"]
    choices = expected.get("any_of", [expected]) if isinstance(expected, dict) else [expected]
    rows, errors = [], []
    for one in choices:
        if isinstance(one, dict) and "error" in one:
            errors.append(one["error"])
        elif isinstance(one, list) and one and "error" in one[0]:
            errors.append(one[0]["error"])
        else:
            rows.append(one["changes"] if isinstance(one, dict) else one)
    return rows, errors


# Names of ours for what a case names in general.
OUR_ERRORS = {
    "CDF_SCHEMA_CHANGE": "SCHEMA_CHANGE",
    "DELTA_MULTIPLE_CDC_BOUNDARY": "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",  # the name for streams
    "DELTA_NO_START_FOR_CDC_READ": "WRONG_NUM_ARGS",  # of the function; the reader in Python names startingVersion
}


@pytest.mark.parametrize("feed", ["automatic", "recorded"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.get("kind") == "cdf"])
def test_feed(name, feed, tmp_path):
    case = CASES[name]
    table = Table(tmp_path, case, feed)
    rows, errors = expectation(case)
    if case["options"].get("read", {}).get("stream"):
        table.create()
        for number in (0, 1, 2):
            table.play(number)
        table.stream()
        table.play(3)
        assert plain(table.stream()) == plain(rows[0], table.versions)
        return
    table.play_all()
    try:
        got = table.read()
    except SqlError as error:
        assert any(OUR_ERRORS.get(one, one) in str(error) for one in errors), f"{error}; expected {rows or errors}"
    else:
        assert plain(got) in [plain(one, table.versions) for one in rows]


def test_auto_cdc_of_a_feed(tmp_path):
    case = CASES["scd1 native changelog: pre-images dropped, deletes derived"]
    warehouse = tmp_path / "warehouse"
    sql_text(warehouse, "CREATE TABLE s (id BIGINT, name STRING); INSERT INTO s VALUES (1, 'alice'), (2, 'bob');"
                        "UPDATE s SET name = 'alice2' WHERE id = 1; DELETE FROM s WHERE id = 2")
    (tmp_path / "t.sql").write_text(
        "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s WITH (readChangeFeed=true, startingVersion=0) "
        "KEYS (id) SEQUENCE BY _commit_version STORED AS SCD TYPE 1;", "utf-8")
    assert run_pipeline(tmp_path, warehouse).ok
    expected = [{key: one for key, one in row.items() if not key.startswith("@")} for row in case["expected"]]
    assert query(warehouse, "SELECT id, name FROM t") == expected


def test_every_case_is_accounted_for():
    assert set(NOT_OURS) | {name for name, case in CASES.items() if case.get("kind") == "cdf"} | {
        "scd1 native changelog: pre-images dropped, deletes derived"} == set(CASES)
