"""A table that is declared as another kind of table than it was made: AUTO CDC flows, INSERT flows
and views do not write on in each other's rows."""

import pytest
from harness import query, run_pipeline, write_json_lines

KINDS = {
    "type1": "a table that AUTO CDC flows fill",
    "type2": "a table that AUTO CDC flows fill",
    "snapshots": "a table that AUTO CDC flows fill",
    "inserts": "a table that INSERT flows fill",
    "other inserts": "a table that INSERT flows fill",
    "view": "a materialized view",
}
# What is in it after a rebuild.
ROWS = {
    "type1": [(1, 2)],
    "type2": [(1, 1), (1, 2)],
    "snapshots": [(5, 6)],
    "inserts": [(1, 1), (1, 2)],
    "other inserts": [(1, 1), (1, 2)],
    "view": [(7, 8)],
}


class Declared:
    def __init__(self, folder):
        self.pipeline, self.warehouse, self.data = folder / "p", folder / "w", folder / "data"
        self.pipeline.mkdir()
        self.data.mkdir()

    def event(self, number):
        write_json_lines(self.data / f"{number}.json", [{"id": 1, "v": number, "s": number}])

    def declare(self, kind, properties=""):
        files = f"STREAM read_files('{self.data}', format => 'json', schema => 'id INT, v INT, s INT')"
        cdc = f"CREATE FLOW f AS AUTO CDC INTO t FROM {files} KEYS (id) SEQUENCE BY s COLUMNS (id, v)"
        flow = {
            "type1": cdc,
            "type2": f"{cdc} STORED AS SCD TYPE 2",
            "snapshots": "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT 5 AS id, 6 AS v) KEYS (id)",
            "inserts": f"CREATE FLOW f AS INSERT INTO t BY NAME SELECT id, v FROM {files}",
            "other inserts": f"CREATE FLOW g AS INSERT INTO t BY NAME SELECT id, v FROM {files}",
            "view": "CREATE MATERIALIZED VIEW t AS SELECT 7 AS id, 8 AS v",
        }[kind]
        table = "" if kind == "view" else f"CREATE STREAMING TABLE t {properties};\n"
        (self.pipeline / "t.sql").write_text(f"{table}{flow};", encoding="utf-8")

    def run(self, *arguments):
        run = run_pipeline(self.pipeline, self.warehouse, *arguments)
        assert run.ok, run.explain()

    def rows(self):
        return sorted((row["id"], row["v"]) for row in query(self.warehouse, "SELECT * FROM t"))

    def properties(self):
        kept = {row["key"]: row["value"] for row in query(self.warehouse, "SHOW TBLPROPERTIES t")}
        return {key: value for key, value in kept.items()
                if key.startswith(("strandline.", "pipelines.cdc.")) and key != "strandline.pipelineName"}


@pytest.mark.parametrize(("was", "becomes"), [
    ("type1", "inserts"), ("type2", "other inserts"), ("type1", "view"), ("snapshots", "inserts"), ("view", "inserts"),
    ("view", "type2"), ("inserts", "view"), ("inserts", "type1"),
])
def test_only_a_full_refresh_makes_another_kind(tmp_path, was, becomes):
    p = Declared(tmp_path)
    p.event(1)
    p.declare(was)
    p.run()
    before = p.rows()
    p.event(2)
    p.declare(becomes)
    for arguments in (("--dry-run",), (), ()):
        run = run_pipeline(p.pipeline, p.warehouse, *arguments)
        assert run.codes == ["TARGET_OF_OTHER_KIND"], run.explain()
        message = run.report["errors"][0]["message"]
        assert f"'t' is {KINDS[was]} and is declared as {KINDS[becomes]}" in message and "--full-refresh t" in message
        assert p.rows() == before
    # Back again nothing was lost.
    p.declare(was)
    p.run()
    assert p.rows() == ROWS[was]
    p.declare(becomes)
    p.run("--full-refresh", "t")
    assert p.rows() == ROWS[becomes]
    p.run()
    assert p.rows() == ROWS[becomes]
    # As if it had been made so: nothing of the old kind is left.
    (tmp_path / "anew").mkdir()
    anew = Declared(tmp_path / "anew")
    anew.declare(becomes)
    anew.event(1)
    anew.run()
    assert p.properties() == anew.properties()


def test_what_the_declaration_says_itself_stays(tmp_path):
    p = Declared(tmp_path)
    p.event(1)
    p.declare("snapshots", "TBLPROPERTIES ('pipelines.cdc.snapshot.maxDeleteRatio' = '0.5')")
    p.run()
    p.declare("inserts", "TBLPROPERTIES ('quality' = 'silver')")
    p.run("--full-refresh", "t")
    assert p.properties() == {}
    assert query(p.warehouse, "SHOW TBLPROPERTIES t ('quality')")[0]["value"] == "silver"


def test_a_refresh_without_rows_changes_the_kind_too(tmp_path):
    p = Declared(tmp_path)
    p.declare("type1")
    p.run()
    p.declare("inserts")
    p.run("--full-refresh", "t")
    assert p.properties() == {}
    p.event(1)
    p.run()
    assert p.rows() == [(1, 1)]
