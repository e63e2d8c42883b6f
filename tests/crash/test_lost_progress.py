"""Progress that is not the table's own: a renamed table, a folder that is gone, one of yesterday."""

import shutil

import pytest
from harness import query, run_pipeline, write_json_lines

KINDS = {
    "scd1": "AUTO CDC INTO {0} FROM {1} KEYS (k) SEQUENCE BY s STORED AS SCD TYPE 1",
    "scd2": "AUTO CDC INTO {0} FROM {1} KEYS (k) SEQUENCE BY s STORED AS SCD TYPE 2",
    "insert": "INSERT INTO {0} BY NAME SELECT * FROM {1}",
}


class Shop:
    """One flow `f` that reads a folder of files into a table."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder, KINDS[kind]
        self.warehouse = folder / "w"
        self.checkpoints = self.warehouse / "_strandline" / "pipelines" / "p" / "checkpoints"
        (folder / "p").mkdir()
        (folder / "in").mkdir()
        self.count = 0
        self.declare("t")

    def declare(self, table):
        self.table = table
        source = f"STREAM read_files('{self.folder}/in', format => 'json', schema => 'k INT, v INT, s INT')"
        (self.folder / "p" / "p.sql").write_text(f"CREATE STREAMING TABLE {table};\nCREATE FLOW f AS "
                                                 f"{self.kind.format(table, source)};\n", encoding="utf-8")

    def run(self, *arguments, new=True):
        if new:
            self.count += 1
            write_json_lines(self.folder / "in" / f"{self.count}.json", [{"k": self.count, "v": self.count, "s": self.count}])
        return run_pipeline(self.folder / "p", self.warehouse, *arguments)

    def keys(self):
        return sorted(row["k"] for row in query(self.warehouse, f"SELECT k FROM {self.table}"))

    def expect_behind(self, run):
        assert run.codes == ["CHECKPOINT_BEHIND"], run.explain()
        assert str(self.checkpoints) in run.report["errors"][0]["message"], run.explain()

    def expect_all(self, run):
        assert run.ok and self.keys() == list(range(1, self.count + 1)), (run.explain(), self.keys())


@pytest.fixture(params=KINDS)
def shop(request, tmp_path):
    shop = Shop(tmp_path, request.param)
    shop.expect_all(shop.run())
    return shop


@pytest.mark.parametrize("refreshed", [False, True], ids=["first", "refreshed"])
def test_renamed_table(shop, refreshed):
    if refreshed:
        shop.expect_all(shop.run("--full-refresh", "t"))
    tables = shop.warehouse / "main" / "default"
    (tables / "t").rename(tables / "u")
    shop.declare("u")
    run = shop.run()
    assert not run.ok and set(run.codes) <= {"CHECKPOINT_BEHIND", "AUTOCDC_INVALID_STATE.STATE_MISSING"}, run.explain()
    assert shop.keys() == list(range(1, shop.count))
    if refreshed:
        shop.expect_all(shop.run("--full-refresh", "u"))
        return
    shop.expect_behind(run)
    # What the message advises.
    shutil.rmtree(shop.checkpoints / "main.default.u", ignore_errors=True)
    (shop.checkpoints / "main.default.t").rename(shop.checkpoints / "main.default.u")
    shop.expect_all(shop.run())


def test_progress_that_is_gone(shop):
    shop.expect_all(shop.run("--full-refresh", "t"))
    shutil.rmtree(shop.checkpoints)
    assert not shop.run().ok
    assert shop.keys() == list(range(1, shop.count))
    shop.expect_all(shop.run("--full-refresh", "t", new=False))
    shop.expect_all(shop.run())


def test_progress_of_yesterday(shop):
    shutil.copytree(shop.checkpoints, shop.folder / "copy")
    shop.expect_all(shop.run())
    shop.expect_all(shop.run())
    shutil.rmtree(shop.checkpoints)
    (shop.folder / "copy").rename(shop.checkpoints)
    shop.expect_behind(shop.run())
    assert shop.keys() == list(range(1, shop.count))
    shop.expect_all(shop.run("--full-refresh", "t", new=False))
