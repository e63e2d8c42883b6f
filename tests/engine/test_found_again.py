"""Rows are found by BINARY values, by -0.0 and by NaN, whatever dictionaries, Bloom filters and
statistics the files have: ours, those of earlier times and those of other programs."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import (WRITERS, delta_table, deltalake_table, has_bloom_filters, write_anew_with_bloom_filters,
                           write_with_arrow)
from harness import query, run_pipeline, sql_text, write_json_lines

NAN = float("nan")
MINUS_NAN = math.copysign(NAN, -1)
KEY = bytes.fromhex("cd01")


def count(warehouse, condition, table="t"):
    return query(warehouse, f"SELECT count(*) AS n FROM {table} WHERE {condition}")[0]["n"]


# --- our own tables ----------------------------------------------------------------------------


def test_equal_binary_values_of_our_own_table(tmp_path):
    sql_text(tmp_path, """CREATE TABLE t AS SELECT unhex('cd01') AS b, id AS n FROM range(5000);
        CREATE TABLE k AS SELECT unhex('cd01') AS b;
        CREATE MATERIALIZED VIEW of_b AS SELECT n FROM t WHERE b = unhex('cd01')""")
    assert count(tmp_path, "b = unhex('cd01')") == 5000
    assert count(tmp_path, "b IN (unhex('cd01'), unhex('cd02'))") == 5000
    assert query(tmp_path, "SELECT count(*) AS n FROM t JOIN k USING (b)") == [{"n": 5000}]
    assert query(tmp_path, "SELECT count(*) AS n FROM t LEFT SEMI JOIN k ON t.b <=> k.b") == [{"n": 5000}]
    assert query(tmp_path, "SELECT count(*) AS n FROM of_b") == [{"n": 5000}]
    sql_text(tmp_path, "UPDATE t SET n = n + 10000 WHERE b = unhex('cd01') AND n < 100")
    assert count(tmp_path, "n >= 10000") == 100
    sql_text(tmp_path, """MERGE INTO t USING k ON t.b = k.b AND t.n >= 10000 WHEN MATCHED THEN DELETE""")
    assert count(tmp_path, "true") == 4900
    sql_text(tmp_path, "DELETE FROM t WHERE b = unhex('cd01')")
    assert count(tmp_path, "true") == 0


def test_minus_zero_of_our_own_table(tmp_path):
    sql_text(tmp_path, """CREATE TABLE t AS SELECT CAST('-0.0' AS DOUBLE) AS d, CAST('-0.0' AS FLOAT) AS f, id AS n
        FROM range(3000); CREATE TABLE k AS SELECT CAST(0.0 AS DOUBLE) AS d""")
    assert count(tmp_path, "d = 0.0") == 3000
    assert count(tmp_path, "f = 0.0") == 3000
    assert query(tmp_path, "SELECT count(*) AS n FROM t JOIN k ON t.d = k.d") == [{"n": 3000}]
    sql_text(tmp_path, "MERGE INTO t USING k ON t.d = k.d AND t.n < 1000 WHEN MATCHED THEN UPDATE SET n = -1")
    assert count(tmp_path, "n = -1") == 1000
    sql_text(tmp_path, "DELETE FROM t WHERE d = 0.0 AND n >= 0")
    assert count(tmp_path, "true") == 1000
    sql_text(tmp_path, "DELETE FROM t WHERE f = 0")
    assert count(tmp_path, "true") == 0


def test_files_of_ours_have_no_bloom_filters(tmp_path):
    sql_text(tmp_path, """CREATE TABLE t TBLPROPERTIES ('delta.checkpointInterval' = '1') AS
        SELECT unhex('cd01') AS b, 'x' AS s FROM range(5000); INSERT INTO t VALUES (unhex('00'), 'y')""")
    files = list(tmp_path.rglob("*.parquet"))
    assert any("_delta_log" in path.parts for path in files) and len(files) > 2
    assert [path for path in files if has_bloom_filters(path)] == []


# --- AUTO CDC ----------------------------------------------------------------------------------


class Flow:
    """A pipeline whose events come as JSON, with BINARY as base64 text."""

    def __init__(self, folder, schema, clauses):
        self.folder, self.warehouse = folder, folder / "w"
        (folder / "p").mkdir()
        (folder / "p" / "t.sql").write_text(f"""CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t
FROM STREAM read_files('{folder}/in', format => 'json', schema => '{schema}') {clauses}""", encoding="utf-8")
        self.batches = 0

    def batch(self, rows):
        self.batches += 1
        write_json_lines(self.folder / "in" / f"{self.batches}.json", rows)
        run = run_pipeline(self.folder / "p", self.warehouse)
        assert run.ok, run.explain()


def older_files(flow):
    """Gives the target and its state the files that versions with Bloom filters left."""
    target = next(path.parent for path in flow.warehouse.rglob("_delta_log") if path.parent.name == "t")
    state = target / "_strandline_state"
    return write_anew_with_bloom_filters(target) + (write_anew_with_bloom_filters(state) if state.exists() else 0)


# Commits of a target that were written anew would be told as TARGET_BEHIND; files of others are read above.
@pytest.mark.parametrize("older", [False], ids=["own"])
def test_a_binary_key_of_many_versions_has_one_that_is_open(tmp_path, older):
    flow = Flow(tmp_path, "k BINARY, v INT, s INT", "KEYS (k) SEQUENCE BY s COLUMNS * EXCEPT (s) STORED AS SCD TYPE 2;")
    flow.batch([{"k": "zQE=", "v": n, "s": n} for n in range(299)])
    if older:
        assert older_files(flow) > 0
    flow.batch([{"k": "zQE=", "v": 299, "s": 299}])
    assert count(flow.warehouse, "true") == 300
    assert query(flow.warehouse, "SELECT v FROM t WHERE __END_AT IS NULL") == [{"v": 299}]
    assert count(flow.warehouse, "k = unhex('cd01') AND __END_AT = __START_AT + 1") == 299


# Commits of a target that were written anew would be told as TARGET_BEHIND; files of others are read above.
@pytest.mark.parametrize("older", [False], ids=["own"])
def test_updates_and_deletes_reach_rows_of_a_key_with_a_binary_part(tmp_path, older):
    flow = Flow(tmp_path, "k BINARY, n INT, v INT, op STRING, s INT",
                "KEYS (k, n) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY s COLUMNS * EXCEPT (op, s);")
    flow.batch([{"k": "zQE=", "n": n, "v": n, "op": "u", "s": 1} for n in range(299)])
    if older:
        assert older_files(flow) > 0
    flow.batch([{"k": "zQE=", "n": 7, "v": 700, "op": "u", "s": 2}, {"k": "zQE=", "n": 8, "op": "d", "s": 2}])
    assert count(flow.warehouse, "true") == 298
    assert query(flow.warehouse, "SELECT v FROM t WHERE n = 7") == [{"v": 700}]
    # Late: the state knows of the delete.
    flow.batch([{"k": "zQE=", "n": 8, "v": 800, "op": "u", "s": 1}])
    assert count(flow.warehouse, "n = 8") == 0


# Commits of a target that were written anew would be told as TARGET_BEHIND; files of others are read above.
@pytest.mark.parametrize("older", [False], ids=["own"])
def test_minus_zero_in_a_key_of_many_rows(tmp_path, older):
    flow = Flow(tmp_path, "k DOUBLE, n INT, v INT, s INT", "KEYS (k, n) SEQUENCE BY s COLUMNS * EXCEPT (s);")
    flow.batch([{"k": -0.0, "n": n, "v": n, "s": 1} for n in range(3000)])
    if older:
        assert older_files(flow) > 0
    flow.batch([{"k": 0.0, "n": n, "v": -1, "s": 2} for n in range(0, 3000, 2)])
    assert count(flow.warehouse, "true") == 3000
    assert count(flow.warehouse, "v = -1 AND k = 0.0") == 1500


def test_snapshots_with_binary_keys(tmp_path):
    sql_text(tmp_path / "w", "CREATE TABLE src AS SELECT unhex('cd01') AS k, id AS n, 1 AS v FROM range(300)")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "t.sql").write_text("""CREATE STREAMING TABLE t;
CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (src) KEYS (k, n) STORED AS SCD TYPE 2;""", encoding="utf-8")
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    sql_text(tmp_path / "w", "UPDATE src SET v = 2 WHERE n < 10; DELETE FROM src WHERE k = unhex('cd01') AND n >= 290")
    assert run_pipeline(tmp_path / "p", tmp_path / "w").ok
    assert count(tmp_path / "w", "__END_AT IS NULL AND v = 1") == 280
    assert count(tmp_path / "w", "__END_AT IS NULL AND v = 2") == 10
    assert count(tmp_path / "w", "__END_AT IS NOT NULL") == 20


# --- files of other programs -------------------------------------------------------------------


def foreign_rows():
    """5,000 rows: four of five BINARY values and zeros alike, NaN of either sign among them."""
    values = [NAN if n == 5 else MINUS_NAN if n == 6 else -0.0 if n % 5 else 1.0 for n in range(5000)]
    return pa.table({"n": pa.array(range(5000), pa.int64()), "b": pa.array([KEY] * 5000, pa.binary()),
                     "d": pa.array(values, pa.float64()), "f": pa.array(values, pa.float32())})


CONDITIONS = {
    "b = unhex('cd01')": 5000, "b = unhex('cd02')": 0, "b >= unhex('cd01')": 5000, "b <=> unhex('cd01')": 5000,
    "d = 'NaN'": 2, "f = 'NaN'": 2, "d > 1": 2, "f > 1": 2, "d <> 0": 1001, "isnan(d)": 2, "d <=> 0": 3999, "d = 0.0": 3999,
    "f = 0.0": 3999, "d IN (0.0, 7.0)": 3999, "d = 1": 999, "d = 5": 0,
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Folder of a warehouse, and the file or table of each writer."""
    folder = tmp_path_factory.mktemp("foreign")
    rows = foreign_rows()
    places = {}
    for name, write in WRITERS.items():
        path = delta_table(folder / name, rows, write)
        assert has_bloom_filters(path)
        places[name] = folder / name
    assert has_bloom_filters(deltalake_table(folder / "deltalake", rows))
    places["deltalake"] = folder / "deltalake"
    return places


@pytest.mark.parametrize("writer", ["duckdb", "arrow", "deltalake"])
def test_conditions_on_tables_of_other_programs(foreign, tmp_path, writer):
    table = f"delta.`{foreign[writer]}`"
    found = {condition: count(tmp_path, condition, table) for condition in CONDITIONS}
    assert found == CONDITIONS
    joined = query(tmp_path, f"""SELECT count(DISTINCT t.n) AS n FROM {table} AS t
        JOIN (SELECT unhex('cd01') AS b, CAST(0 AS DOUBLE) AS d UNION ALL
              SELECT unhex('cd01'), CAST('NaN' AS DOUBLE)) AS k ON t.b = k.b AND t.d = k.d""")
    assert joined == [{"n": 4001}]


@pytest.mark.parametrize("writer", ["duckdb", "arrow", "deltalake"])
def test_conditions_on_files_of_other_programs(foreign, tmp_path, writer):
    path = next(foreign[writer].glob("*.parquet"))
    files = f"read_files('{path}', format => 'parquet')"
    assert {condition: count(tmp_path, condition, files) for condition in CONDITIONS} == CONDITIONS
    # One row to join with is a condition that the engine makes while the statement runs.
    sql_text(tmp_path, "CREATE TABLE k AS SELECT unhex('cd01') AS b, CAST(0 AS DOUBLE) AS d, CAST(0 AS FLOAT) AS f")
    for column, rows in {"b": 5000, "d": 3999, "f": 3999}.items():
        joined = query(tmp_path, f"SELECT count(*) AS n FROM {files} AS t JOIN k ON t.{column} = k.{column}")
        assert joined == [{"n": rows}], column


def test_changes_of_a_table_of_another_program(tmp_path):
    delta_table(tmp_path / "t", foreign_rows(), WRITERS["duckdb"])
    table = f"delta.`{tmp_path / 't'}`"
    sql_text(tmp_path / "w", f"""UPDATE {table} SET n = -1 WHERE d = 0.0 AND n < 100;
        DELETE FROM {table} WHERE b = unhex('cd01') AND n >= 1000;
        MERGE INTO {table} AS t USING (SELECT CAST('NaN' AS DOUBLE) AS d) AS k ON t.d = k.d WHEN MATCHED THEN DELETE""")
    assert count(tmp_path / "w", "true", table) == 998
    assert count(tmp_path / "w", "n = -1", table) == 79


def test_nan_inside_structs_and_arrays_of_arrow_files(tmp_path):
    values = [NAN if n == 17 else 1.0 for n in range(3000)]
    rows = pa.table({"n": pa.array(range(3000), pa.int64()), "d": pa.array(values),
                     "s": pa.array([{"d": v} for v in values]), "l": pa.array([[v] for v in values])})
    pq.write_table(rows, tmp_path / "x.parquet")
    files = f"read_files('{tmp_path}/x.parquet', format => 'parquet')"
    for condition in ("d > 1", "d <> 1", "s.d > 1", "s.d <> 1", "l[0] > 1", "s.d = 'NaN'"):
        assert query(tmp_path / "w", f"SELECT n FROM {files} WHERE {condition}") == [{"n": 17}], condition


def test_columns_of_numbers_and_texts_still_leave_row_groups_unread(tmp_path):
    """The price of the above is paid by columns of BINARY, DOUBLE and FLOAT alone."""
    pq.write_table(foreign_rows(), tmp_path / "x.parquet", row_group_size=1000)
    plan = sql_text(tmp_path / "w", f"EXPLAIN FORMATTED SELECT d FROM read_files('{tmp_path}/x.parquet', "
                    "format => 'parquet') WHERE n = 4321 AND d = 0.0")
    assert "n=4321" in plan.replace(" ", "").replace('"', ""), plan


def test_what_arrow_leaves_out_of_its_statistics_is_there(tmp_path):
    """The premise of the tests above: the file's own statistics say nothing of NaN."""
    write_with_arrow(foreign_rows(), tmp_path / "x.parquet")
    statistics = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0).column(2).statistics
    assert (statistics.min, statistics.max) == (-0.0, 1.0), json.dumps(str(statistics))
