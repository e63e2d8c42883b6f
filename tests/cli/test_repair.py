"""`strandline repair`: rows that an AUTO CDC target has more than once."""

import json
import shutil

import pytest
from harness import call, query, run_pipeline, sql_text, write_json_lines

SOURCE = "STREAM read_files('{0}/in', format => 'json', schema => 'k INT, v STRING, s INT, op STRING')"
FLOW = "CREATE STREAMING TABLE t{2};\nCREATE FLOW f AS AUTO CDC INTO t FROM " + SOURCE + \
       " KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY s {3}COLUMNS * EXCEPT (op, s) STORED AS {1};\n"
KINDS = ["SCD TYPE 1", "SCD TYPE 2", "BITEMPORAL"]


class Shop:
    def __init__(self, folder, kind, properties=""):
        self.folder, self.kind, self.warehouse = folder, kind, folder / "w"
        self.table = self.warehouse / "main" / "default" / "t"
        self.files = 0
        self.events = []
        (folder / "p").mkdir()
        (folder / "in").mkdir()
        system = "SYSTEM SEQUENCE BY s " if kind == "BITEMPORAL" else ""
        (folder / "p" / "p.sql").write_text(FLOW.format(folder, kind, properties, system), encoding="utf-8")

    def run(self, events):
        self.files += 1
        self.events += events
        write_json_lines(self.folder / "in" / f"{self.files}.json", events)
        return run_pipeline(self.folder / "p", self.warehouse)

    def repair(self, *arguments, exit_code=0, table="t"):
        done = call("repair", table, "--warehouse", self.warehouse, "--json", *arguments)
        assert done.returncode == exit_code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def rows(self):
        return sorted(json.dumps(row, sort_keys=True) for row in query(self.warehouse, "SELECT * FROM t"))

    def fresh_rows(self):
        """What the events alone give, in one batch."""
        other = Shop.__new__(Shop)
        folder = self.folder / "fresh"
        folder.mkdir()
        other.__init__(folder, self.kind)
        assert other.run(self.events).ok
        return other.rows()


def upsert(k, s, v):
    return {"k": k, "v": v, "s": s, "op": "U"}


def newest_commit(table):
    return sorted((table / "_delta_log").glob("*.json"))[-1]


def write_twice(table, by_us):
    """One file's rows once more: by another program, or by a faulty batch of the flow itself."""
    newest = newest_commit(table)
    lines = [json.loads(line) for path in sorted((table / "_delta_log").glob("*.json"))
             for line in path.read_text(encoding="utf-8").splitlines()]
    removed = {line["remove"]["path"] for line in lines if "remove" in line}
    add = [line["add"] for line in lines if "add" in line and line["add"]["path"] not in removed][-1]
    marks = [json.loads(line["domainMetadata"]["configuration"]) for line in lines
             if "domainMetadata" in line and line["domainMetadata"]["domain"] == "delta.rowTracking"]
    copy = "again-" + add["path"].split("/")[-1]
    shutil.copyfile(table / add["path"], table / copy)
    count = json.loads(add["stats"])["numRecords"]
    version = int(newest.stem) + 1
    following = dict(add, path=copy, defaultRowCommitVersion=version, baseRowId=marks[-1]["rowIdHighWaterMark"] + 1)
    time = [line["commitInfo"]["inCommitTimestamp"] for line in lines if "commitInfo" in line][-1] + 1
    actions = [{"commitInfo": {"timestamp": time, "inCommitTimestamp": time, "operation": "WRITE", "operationParameters": {}}},
               {"domainMetadata": {"domain": "delta.rowTracking", "removed": False, "configuration": json.dumps(
                   {"rowIdHighWaterMark": marks[-1]["rowIdHighWaterMark"] + count})}}]
    if by_us:
        actions.append([line for line in lines if "txn" in line][-1])
    actions.append({"add": following})
    newest.with_name(f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    return count


EVENTS = [upsert(k, 1, f"v{k}") for k in range(4)]


@pytest.mark.parametrize("by_us", [False, True], ids=["another_program", "a_fault"])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_rows_are_an_error_that_names_the_way_out(tmp_path, kind, by_us):
    shop = Shop(tmp_path, kind)
    assert shop.run(EVENTS).ok
    before = shop.rows()
    assert write_twice(shop.table, by_us) == len(EVENTS)
    run = shop.run([upsert(2, 5, "new"), upsert(9, 1, "other")])
    assert run.codes == ["AUTOCDC_INVALID_STATE.INVALID_TARGET_ROWS"], run.explain()
    assert "strandline repair t" in run.report["errors"][0]["message"].replace("main.default.", ""), run.explain()

    shown = shop.repair()
    assert (shown["repeated_rows"], shown["extra_rows"], shown["committed_version"]) == (4, 4, None), shown
    assert len(shop.rows()) == 8
    version = int(newest_commit(shop.table).stem)
    done = shop.repair("--apply")
    assert (done["extra_rows"], done["committed_version"]) == (4, version + 1), done
    assert shop.rows() == before
    assert shop.repair("--apply")["extra_rows"] == 0
    assert int(newest_commit(shop.table).stem) == version + 1

    # The change feed shows the rows that went, and nothing else.
    feed = query(shop.warehouse, f"SELECT k, _change_type FROM table_changes('t', {version + 1})")
    assert sorted((row["k"], row["_change_type"]) for row in feed) == [(k, "delete") for k in range(4)]

    # Nothing of it was a change by hand: events of the same sequence count as they always did.
    assert run_pipeline(shop.folder / "p", shop.warehouse).ok
    assert shop.run([upsert(1, 1, "z after v1"), upsert(3, 1, "a before v3"), upsert(0, 0, "late")]).ok
    assert shop.rows() == shop.fresh_rows()


@pytest.mark.parametrize("kind", KINDS[:2])
def test_rows_changed_by_hand_beside_the_repair_stay_so(tmp_path, kind):
    shop = Shop(tmp_path, kind)
    assert shop.run(EVENTS).ok
    write_twice(shop.table, True)
    sql_text(shop.warehouse, "DELETE FROM t WHERE k = 0")
    shop.repair("--apply")
    sql_text(shop.warehouse, "UPDATE t SET v = 'by hand' WHERE k = 1")
    assert run_pipeline(shop.folder / "p", shop.warehouse).ok
    assert shop.run([upsert(0, 1, "zz"), upsert(1, 1, "zz"), upsert(2, 1, "zz")]).ok
    assert {row["k"]: row["v"] for row in query(shop.warehouse, "SELECT k, v FROM t")} == {1: "by hand", 2: "zz", 3: "v3"}


def test_rows_that_differ_are_left(tmp_path):
    shop = Shop(tmp_path, "SCD TYPE 1")
    assert shop.run(EVENTS).ok
    write_twice(shop.table, False)
    sql_text(shop.warehouse, "INSERT INTO t VALUES (3, 'another')")
    report = shop.repair("--apply", exit_code=1)
    assert report["conflicting_keys"] == 1 and report["key"] == ["k"], report
    assert report["conflicting"] == ["k = 3, v = another", "k = 3, v = v3"], report
    assert report["errors"][0]["code"] == "REPAIR_ROWS_DIFFER", report
    for way in ("DELETE FROM t WHERE", "--full-refresh t"):
        assert way in report["errors"][0]["message"], report
    assert len(shop.rows()) == 5
    sql_text(shop.warehouse, "DELETE FROM t WHERE k = 3 AND v = 'another'")
    assert shop.repair()["conflicting_keys"] == 0
    assert shop.run([upsert(3, 2, "later")]).ok
    assert shop.rows() == shop.fresh_rows()


@pytest.mark.parametrize("properties", ["", " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
                                        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"],
                         ids=["default", "recorded_feed", "no_deletion_vectors"])
def test_two_thousand_of_a_hundred_thousand_rows(tmp_path, properties):
    shop = Shop(tmp_path, "SCD TYPE 2", properties)
    assert shop.run([upsert(k, 1, None if k % 7 == 0 else f"v{k}") for k in range(100_000)]).ok
    sql_text(shop.warehouse, "INSERT INTO t SELECT * FROM t WHERE k < 2048")
    assert query(shop.warehouse, "SELECT count(*) AS n FROM t")[0]["n"] == 102_048
    done = shop.repair("--apply")
    assert (done["repeated_rows"], done["extra_rows"]) == (2048, 2048), done
    rows = query(shop.warehouse, "SELECT count(*) AS n, count(DISTINCT k) AS k, count(v) AS v FROM t")
    assert rows == [{"n": 100_000, "k": 100_000, "v": 85_714}]
    assert run_pipeline(shop.folder / "p", shop.warehouse).ok
    assert shop.run([upsert(k, 2, "w") for k in range(100)]).ok
    assert query(shop.warehouse, "SELECT count(*) AS n FROM t")[0]["n"] == 100_100


def test_rows_of_other_tables_may_be_equal(tmp_path):
    sql_text(tmp_path / "w", "CREATE TABLE t (k INT); INSERT INTO t VALUES (1), (1)")
    done = call("repair", "t", "--warehouse", tmp_path / "w")
    assert done.returncode == 1 and "REPAIR_NOT_OF_AUTO_CDC" in done.stderr, done.stderr
    assert "INSERT OVERWRITE t SELECT DISTINCT * FROM t" in done.stderr, done.stderr
    sql_text(tmp_path / "w", "INSERT OVERWRITE t SELECT DISTINCT * FROM t")
    assert query(tmp_path / "w", "SELECT k FROM t") == [{"k": 1}]


def test_what_it_prints(tmp_path):
    shop = Shop(tmp_path, "SCD TYPE 1")
    assert shop.run(EVENTS[:1]).ok
    write_twice(shop.table, False)
    assert call("repair", "t", "--warehouse", shop.warehouse).stdout.splitlines() == [
        "t, version 2: of 1 rows there are 1 too many", "  k = 0, v = v0 (2 times)",
        "Nothing was changed. With --apply each of them stays once."]
    assert call("repair", "t", "--warehouse", shop.warehouse, "--apply").stdout.splitlines()[-1] == \
        "Each of them stands there once from version 3 on."
    assert call("repair", "t", "--warehouse", shop.warehouse).stdout == "t, version 3: no row stands there twice\n"
