"""Folders put back from a copy, one without the others: an error that names what is older and the way
out, before anything is written. All mixtures at random: tests/fault/backup_test.cc."""

import json
import shutil

import pytest
from harness import SqlError, query, run_pipeline, sql_text, write_json_lines

SOURCE = "STREAM read_files('{0}/in', format => 'json', schema => 'k INT, v INT, s INT')"
KINDS = {
    "scd1": "CREATE FLOW f AS AUTO CDC INTO t FROM {0} KEYS (k) SEQUENCE BY s COLUMNS * EXCEPT (s)",
    "scd2": "CREATE FLOW f AS AUTO CDC INTO t FROM {0} KEYS (k) SEQUENCE BY s COLUMNS * EXCEPT (s) STORED AS SCD TYPE 2 "
            "TRACK HISTORY ON (k)",
    "bitemporal": "CREATE FLOW f AS AUTO CDC INTO t FROM {0} KEYS (k) SEQUENCE BY s SYSTEM SEQUENCE BY s "
                  "COLUMNS * EXCEPT (s) STORED AS BITEMPORAL",
    "insert": "CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM {0}",
}
AUTO_CDC = [kind for kind in KINDS if kind != "insert"]


class Shop:
    """One flow `f` that reads a folder of files into a table `t`."""

    def __init__(self, folder, text):
        self.folder = folder
        self.warehouse = folder / "w"
        self.table = self.warehouse / "main" / "default" / "t"
        self.state = self.table / "_strandline_state"
        self.progress = self.warehouse / "_strandline" / "pipelines" / "p" / "checkpoints"
        self.count = 0
        (folder / "p").mkdir()
        (folder / "in").mkdir()
        (folder / "p" / "p.sql").write_text(text, encoding="utf-8")

    def run(self, *arguments, new=True):
        if new:
            self.count += 1
            write_json_lines(self.folder / "in" / f"{self.count}.json",
                             [{"k": self.count, "v": 1, "s": 7}, {"k": 0, "v": self.count, "s": self.count}])
        return run_pipeline(self.folder / "p", self.warehouse, *arguments)

    def keys(self):
        return sorted({row["k"] for row in query(self.warehouse, "SELECT k FROM t")})

    def expect_all(self, run):
        assert run.ok and self.keys() == list(range(self.count + 1)), (run.explain(), self.keys())

    def expect_refusal(self, code, *words):
        """The error in a run and in a dry run, nothing written, and the way out."""
        before = commits(self.table) + (commits(self.state) if self.state.exists() else [])
        for arguments in (["--dry-run"], []):
            run = self.run(*arguments)
            assert run.codes == [code], run.explain()
            message = run.report["errors"][0]["message"]
            for word in ("'main.default.t'", "flow 'f'", "--full-refresh", *words):
                assert word.replace("main.default.", "") in message.replace("main.default.", ""), message
        assert before == commits(self.table) + (commits(self.state) if self.state.exists() else [])
        self.expect_all(self.run("--full-refresh", "t", new=False))
        self.expect_all(self.run())


def commits(table):
    return sorted(path.name for path in (table / "_delta_log").glob("*.json"))


def put_back(copy, folder):
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


@pytest.fixture
def shop(request, tmp_path):
    text = f"CREATE STREAMING TABLE t;\n{KINDS[request.param].format(SOURCE.format(tmp_path))};\n"
    shop = Shop(tmp_path, text)
    shop.expect_all(shop.run())
    return shop


def with_kinds(kinds):
    return pytest.mark.parametrize("shop", kinds, indirect=True)


@with_kinds(KINDS)
def test_table_of_yesterday(shop):
    shutil.copytree(shop.table, shop.folder / "copy")
    shop.expect_all(shop.run())
    shop.expect_all(shop.run())
    put_back(shop.folder / "copy", shop.table)
    shop.expect_refusal("TARGET_BEHIND", "2 versions before version", "batch 2")


@with_kinds(AUTO_CDC)
def test_table_of_yesterday_with_the_state_of_today(shop):
    shutil.copytree(shop.table, shop.folder / "copy")
    shop.expect_all(shop.run())
    shutil.rmtree(shop.folder / "copy" / "_strandline_state")
    shutil.copytree(shop.state, shop.folder / "copy" / "_strandline_state")
    put_back(shop.folder / "copy", shop.table)
    shop.expect_refusal("TARGET_BEHIND", "1 version before version", "batch 1")


@with_kinds(AUTO_CDC)
def test_state_of_yesterday(shop):
    shutil.copytree(shop.state, shop.folder / "copy")
    shop.expect_all(shop.run())
    put_back(shop.folder / "copy", shop.state)
    shop.expect_refusal("STATE_BEHIND", "the state of", "1 version before version")


@with_kinds(AUTO_CDC)
def test_state_and_progress_of_yesterday(shop):
    for folder, name in [(shop.state, "state"), (shop.progress, "progress")]:
        shutil.copytree(folder, shop.folder / name)
    shop.expect_all(shop.run())
    put_back(shop.folder / "state", shop.state)
    put_back(shop.folder / "progress", shop.progress)
    shop.expect_refusal("CHECKPOINT_BEHIND", str(shop.progress))


@with_kinds(KINDS)
def test_all_of_yesterday(shop):
    shutil.copytree(shop.warehouse, shop.folder / "copy")
    shop.expect_all(shop.run())
    shop.expect_all(shop.run())
    put_back(shop.folder / "copy", shop.warehouse)
    shop.expect_all(shop.run(new=False))
    shop.expect_all(shop.run())


@with_kinds(KINDS)
def test_log_that_lost_its_newest_commit(shop):
    shop.expect_all(shop.run())
    log = shop.table / "_delta_log"
    newest = commits(shop.table)[-1]
    for path in log.glob(f"{newest.split('.')[0]}.*"):
        path.unlink()
    shop.expect_refusal("TARGET_BEHIND", "1 version before version")


@with_kinds(KINDS)
def test_table_of_yesterday_that_was_written_since(shop):
    """As many versions as the flow knows, and other ones."""
    shutil.copytree(shop.table, shop.folder / "copy")
    shop.expect_all(shop.run())
    put_back(shop.folder / "copy", shop.table)
    newest = shop.table / "_delta_log" / commits(shop.table)[-1]
    following = newest.with_name(f"{int(newest.stem) + 1:020d}.json")
    info = json.loads(newest.read_text(encoding="utf-8").splitlines()[0])
    info["commitInfo"]["inCommitTimestamp"] += 1
    following.write_text(json.dumps(info) + "\n", encoding="utf-8")
    shop.expect_refusal("TARGET_BEHIND", "put back and written since", "another commit")


@with_kinds(["insert", "scd1"])
def test_progress_of_before_a_full_refresh(shop):
    shutil.copytree(shop.progress, shop.folder / "copy")
    shop.expect_all(shop.run("--full-refresh", "t"))
    put_back(shop.folder / "copy", shop.progress)
    shop.expect_refusal("CHECKPOINT_BEHIND", "was fully refreshed since", str(shop.progress))


@with_kinds(["scd1"])
def test_what_others_do_to_a_table_goes_on(shop):
    shop.expect_all(shop.run())
    sql_text(shop.warehouse, "OPTIMIZE t; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (1, 9)")
    shop.expect_all(shop.run())
    sql_text(shop.warehouse, "SET spark.databricks.delta.retentionDurationCheck.enabled = false; "
                             "VACUUM t RETAIN 0 HOURS; OPTIMIZE t")
    shop.expect_all(shop.run())


@with_kinds(["insert", "scd1"])
def test_progress_of_earlier_programs_is_read(shop):
    """They noted nothing about the tables."""
    shop.expect_all(shop.run())
    for path in shop.progress.glob("**/done-*.json"):
        path.write_text("{}", encoding="utf-8")
    for path in shop.progress.glob("**/plan-*.json"):
        plan = json.loads(path.read_text(encoding="utf-8"))
        del plan["marks"], plan["pinned_commits"]
        path.write_text(json.dumps(plan), encoding="utf-8")
    shop.expect_all(shop.run())


FEED = "WITH (readChangeFeed=true)"


@pytest.mark.parametrize("options", ["", FEED], ids=["stream", "feed"])
@pytest.mark.parametrize("written", [False, True], ids=["behind", "written_since"])
def test_source_of_yesterday(tmp_path, options, written):
    def source(text):
        return sql_text(tmp_path / "w", text)

    source("CREATE TABLE s (k INT, v INT); INSERT INTO s VALUES (1, 1)")
    shop = Shop(tmp_path, f"CREATE STREAMING TABLE t;\nCREATE FLOW f AS INSERT INTO t BY NAME SELECT k, v FROM STREAM s {options};\n")
    folder = tmp_path / "w" / "main" / "default" / "s"
    assert shop.run(new=False).ok
    shutil.copytree(folder, tmp_path / "copy")
    source("INSERT INTO s VALUES (2, 2)")
    assert shop.run(new=False).ok and shop.keys() == [1, 2]
    put_back(tmp_path / "copy", folder)
    if written:
        source("INSERT INTO s VALUES (3, 3)")
    run = shop.run(new=False)
    assert run.codes == ["SOURCE_BEHIND"], run.explain()
    assert "'s'" in run.report["errors"][0]["message"], run.explain()
    assert shop.keys() == [1, 2]
    # One way out, with a warning of what is between.
    pipeline = tmp_path / "p" / "p.sql"
    text = pipeline.read_text(encoding="utf-8")
    more = f"{FEED[:-1]}, failOnDataLoss=false)" if options else "WITH (failOnDataLoss=false)"
    pipeline.write_text(text.replace(f"STREAM s {options}", f"STREAM s {more}"), encoding="utf-8")
    run = shop.run(new=False)
    assert run.ok and [warning["code"] for warning in run.report["warnings"]] == ["STREAM_DATA_LOSS"], run.explain()
    source("INSERT INTO s VALUES (4, 4)")
    assert shop.run(new=False).ok and 4 in shop.keys()
    # Another.
    pipeline.write_text(text, encoding="utf-8")
    run = shop.run("--full-refresh", "t", new=False)
    assert run.ok and shop.keys() == ([1, 3, 4] if written else [1, 4]), (run.explain(), shop.keys())


def test_view_of_a_source_of_yesterday_is_what_its_source_is(tmp_path):
    """Written since, as many versions and other rows: no difference is to be told from those."""
    def source(text):
        return sql_text(tmp_path / "w", text)

    source("CREATE TABLE s (k INT, v INT); INSERT INTO s VALUES (1, 1)")
    shop = Shop(tmp_path, "CREATE MATERIALIZED VIEW t AS SELECT k, sum(v) AS v FROM s GROUP BY k;\n")
    folder = tmp_path / "w" / "main" / "default" / "s"
    assert shop.run(new=False).ok
    shutil.copytree(folder, tmp_path / "copy")
    source("INSERT INTO s VALUES (2, 2)")
    assert shop.run(new=False).ok and shop.keys() == [1, 2]
    put_back(tmp_path / "copy", folder)
    source("INSERT INTO s VALUES (3, 3)")
    assert shop.run(new=False).ok and shop.keys() == [1, 3]
    put_back(tmp_path / "copy", folder)
    source("INSERT INTO s VALUES (4, 4); INSERT INTO s VALUES (5, 5)")
    assert shop.run(new=False).ok and shop.keys() == [1, 4, 5]


def test_table_declared_on_its_own(tmp_path):
    def sql(text):
        return sql_text(tmp_path / "w", text)

    sql("CREATE TABLE s (k INT); INSERT INTO s VALUES (1); CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM s")
    folder = tmp_path / "w" / "main" / "default" / "t"
    shutil.copytree(folder, tmp_path / "copy")
    sql("INSERT INTO s VALUES (2); REFRESH STREAMING TABLE t")
    put_back(tmp_path / "copy", folder)
    with pytest.raises(SqlError, match=r"TARGET_BEHIND(.|\n)*REFRESH STREAMING TABLE main.default.t FULL"):
        sql("INSERT INTO s VALUES (3); REFRESH STREAMING TABLE t")
    sql("REFRESH STREAMING TABLE t FULL")
    assert sorted(row["k"] for row in query(tmp_path / "w", "SELECT k FROM t")) == [1, 2, 3]
