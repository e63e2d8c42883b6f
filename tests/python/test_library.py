"""strandline as a library: results, tables, writing, errors, Ctrl-C."""

import datetime
import os
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import strandline
from strandline import errors

TYPES = """
SELECT true AS b, CAST(1 AS TINYINT) AS i8, CAST(2 AS SMALLINT) AS i16, 3 AS i32, 4L AS i64,
  CAST(1.5 AS FLOAT) AS f, 2.5D AS d, CAST('-1234567890123456789012345678.91' AS DECIMAL(38, 2)) AS dec,
  'grün' AS s, X'00ff' AS bin, DATE'2026-01-31' AS day, TIMESTAMP'2026-01-31 12:00:00.000001' AS ts,
  CAST('2026-01-31 12:00:00' AS TIMESTAMP_NTZ) AS ntz, array(1, NULL) AS arr,
  named_struct('x', 1, 'y', array('a')) AS st, map('k', 1) AS m, CAST(NULL AS STRING) AS nothing
"""
VALUES = (
    True, 1, 2, 3, 4, 1.5, 2.5, Decimal("-1234567890123456789012345678.91"), "grün", b"\x00\xff",
    datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 0, 0, 1, datetime.timezone.utc),
    datetime.datetime(2026, 1, 31, 12), [1, None], {"x": 1, "y": ["a"]}, {"k": 1}, None,
)  # fmt: skip


def test_values_of_every_type(warehouse):
    result = warehouse.sql(TYPES)
    assert result.fetchall() == [VALUES]
    assert result.types[:4] == ["BOOLEAN", "TINYINT", "SMALLINT", "INT"]
    assert result.types[7] == "DECIMAL(38,2)"


def test_many_batches_with_nulls_and_nested_values(warehouse):
    rows = warehouse.sql(
        "SELECT id, IF(id % 3 = 0, NULL, id) AS n, array(id, id + 1) AS a,"
        " named_struct('s', CAST(id AS STRING)) AS st, IF(id % 2 = 0, NULL, map(id, 'v')) AS m FROM range(5000)"
    ).fetchall()
    expected = [
        (i, None if i % 3 == 0 else i, [i, i + 1], {"s": str(i)}, None if i % 2 == 0 else {i: "v"})
        for i in range(5000)
    ]
    assert sorted(rows, key=lambda row: row[0]) == expected


def test_results_go_to_other_libraries(warehouse):
    import duckdb
    import polars

    result = warehouse.sql("SELECT id, CAST(id AS STRING) AS s FROM range(3000)")
    assert result.arrow().num_rows == 3000
    assert result.reader().read_all().column_names == ["id", "s"]
    assert len(result.df()) == 3000 and list(result.to_pandas().columns) == ["id", "s"]
    assert result.pl().select(polars.col("id").sum()).item() == sum(range(3000))
    assert pa.table(result).num_rows == 3000
    assert duckdb.sql("SELECT count(*), max(s) FROM result").fetchall() == [(3000, "999")]


def test_integers_stay_integers_in_pandas(warehouse):
    big = 2**53 + 1
    frame = warehouse.sql(
        f"SELECT * FROM VALUES ({big}L, {big}L, CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, array({big}L, NULL),"
        f" named_struct('i', {big}L), map('k', {big}L), 0.5D, true),"
        f" (4L, NULL, NULL, NULL, NULL, NULL, named_struct('i', CAST(NULL AS BIGINT)), map('k', NULL), NULL, NULL)"
        " AS t(whole, l, t, s, i, a, st, m, d, b)"
    ).df()
    assert [str(type_) for type_ in frame.dtypes[:5]] == ["int64", "Int64", "Int8", "Int16", "Int32"]
    assert str(frame.dtypes["d"]) == "float64"
    row = frame.iloc[0].to_dict()
    assert row["whole"] == row["l"] == big and (row["t"], row["s"], row["i"], row["d"], row["b"]) == (1, 2, 3, 0.5, True)
    assert list(row["a"]) == [big, None] and row["st"] == {"i": big} and row["m"] == [("k", big)]
    assert frame["l"].isna().tolist() == [False, True] and frame["b"].tolist() == [True, None]
    # Names that come twice, no rows, and nulls alone.
    twice = warehouse.sql(f"SELECT * FROM (SELECT CAST(NULL AS BIGINT) AS a) CROSS JOIN (SELECT {big}L AS a)").df()
    assert list(twice.columns) == ["a", "a"] and twice.iloc[0, 1] == big and [str(type_) for type_ in twice.dtypes] == ["Int64", "int64"]
    none = warehouse.sql("SELECT CAST(id AS BIGINT) AS a FROM range(0)").df()
    assert list(none.columns) == ["a"] and len(none) == 0 and str(none.dtypes["a"]) == "int64"


def test_a_result_reads_the_tables_anew_each_time(warehouse):
    warehouse.sql("CREATE TABLE t (id INT)")
    result = warehouse.sql("SELECT * FROM t")
    assert result.fetchall() == []
    warehouse.sql("INSERT INTO t VALUES (1), (2)")
    assert sorted(result.fetchall()) == [(1,), (2,)]
    cursor = warehouse.sql("SELECT id FROM t ORDER BY id")
    assert cursor.fetchone() == (1,) and cursor.fetchmany(5) == [(2,)] and cursor.fetchone() is None


def test_statements_run_once(warehouse):
    result = warehouse.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1); OPTIMIZE t")
    assert len(result.fetchall()) == 1
    with pytest.raises(strandline.InvalidArgumentError, match="RESULT_READ"):
        result.fetchall()
    done = warehouse.sql("INSERT INTO t VALUES (2)")
    assert done.fetchall() == [] and done.columns == [] and "without rows" in repr(done) and "done" in done._repr_html_()
    with pytest.raises(strandline.InvalidArgumentError, match="NOT_A_QUERY"):
        warehouse.sql("INSERT INTO t VALUES (2)").arrow()
    warehouse.sql("DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2)")
    assert warehouse.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_showing(warehouse, capsys):
    result = warehouse.sql("SELECT 1 AS `a<b`, NULL AS n UNION ALL SELECT 22, true")
    result.show()
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "| a<b | n    |", "+-----+------+", "| 1   | NULL |"]  # fmt: skip
    page = result._repr_html_()
    assert "<th title=\"INT\">a&lt;b</th>" in page and "<td>22</td><td>true</td>" in page
    assert "the first 20 rows" in warehouse.sql("SELECT * FROM range(21)")._repr_html_()
    assert "a<b INT" in repr(result)


@pytest.mark.parametrize("source", ["result", "pyarrow", "reader", "pandas", "polars", "duckdb"])
def test_writing_from_anything_with_an_arrow_stream(warehouse, source):
    import duckdb
    import pandas
    import polars

    warehouse.sql("CREATE TABLE t (id BIGINT, name STRING)")
    data = {"name": ["a", None], "id": [1, 2]}
    rows = {
        "result": lambda: warehouse.sql("SELECT 'a' AS name, 1L AS id UNION ALL SELECT NULL, 2L"),
        "pyarrow": lambda: pa.table(data),
        "reader": lambda: pa.table(data).to_reader(),
        "pandas": lambda: pandas.DataFrame(data),
        "polars": lambda: polars.DataFrame(data),
        "duckdb": lambda: duckdb.sql("SELECT 'a' AS name, 1::BIGINT AS id UNION ALL SELECT NULL, 2"),
    }[source]()
    warehouse.write("t", rows)
    assert sorted(warehouse.sql("SELECT * FROM t").fetchall()) == [(1, "a"), (2, None)]


def test_overwriting_and_registering(warehouse):
    warehouse.sql("CREATE TABLE t (id INT)")
    warehouse.write("t", pa.table({"id": pa.array([1, 2], pa.int32())}))
    warehouse.write("t", pa.table({"id": pa.array([3], pa.int32())}), mode="overwrite")
    warehouse.register("source", pa.table({"id": pa.array([4], pa.int32())}))
    warehouse.sql("INSERT INTO t SELECT * FROM source")
    assert sorted(warehouse.sql("SELECT * FROM t").fetchall()) == [(3,), (4,)]
    with pytest.raises(ValueError, match="mode"):
        warehouse.write("t", pa.table({}), mode="replace")
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        warehouse.write("t", [(1,)])


NO_COLUMNS = {
    "halves": (lambda: pa.table({"a": pa.array([1.5], pa.float16())}), "UNSUPPORTED_TYPE", "column 'a' has floats of 16 bits"),
    "inside": (lambda: pa.table({"a": pa.array([[1.5]], pa.list_(pa.float16()))}), "UNSUPPORTED_TYPE", "column 'a' has floats"),
    "wide": (lambda: pa.table({"a": pa.array([5], pa.decimal256(60, 2))}), "UNSUPPORTED_TYPE", "60 digits and scale 2 in 256 bits"),
    "negative": (lambda: pa.table({"a": pa.array([Decimal(100)], pa.decimal128(5, -2))}), "UNSUPPORTED_TYPE", "scale -2"),
    "twice": (lambda: pa.table([[1], [2]], names=["i", "I"]), "COLUMN_ALREADY_EXISTS", "the columns 'i' and 'I'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_COLUMNS)
def test_arrow_types_that_no_column_has(kind, warehouse):
    rows, code, message = NO_COLUMNS[kind]
    warehouse.sql("CREATE TABLE t (i INT)")
    for give in (lambda: warehouse.register("r", rows()), lambda: warehouse.write("t", rows())):
        with pytest.raises(strandline.StrandlineError) as caught:
            give()
        assert caught.value.code == code and message in caught.value.message, caught.value


NANOSECONDS = [1_700_000_000_123_456_000, None, 1_700_000_000_123_456_789]


@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("nested", [False, True])
def test_nanoseconds_are_never_cut(warehouse, zone, nested):
    times = pa.array(NANOSECONDS, pa.timestamp("ns", zone))
    if nested:
        times = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.StructArray.from_arrays([times], ["at"]))
    rows = pa.table({"id": [1, 2, 3], "seen": times})
    warehouse.register("whole", rows.slice(0, 2))
    got = [row[1][0]["at"] if nested else row[1] for row in warehouse.sql("SELECT * FROM whole ORDER BY id").fetchall()]
    assert [at and at.microsecond for at in got] == [123_456, None]
    with pytest.raises(ValueError, match="column 'seen' has a time of 1700000000123456789 nanoseconds"):
        warehouse.register("finer", rows)


def test_parquet_values_beyond_deltas_types_are_refused(warehouse, tmp_path):
    columns = {
        "seen": (pa.array(NANOSECONDS[:1], pa.timestamp("ns", "UTC")), "times of nanoseconds with a zone"),
        "big": (pa.array([Decimal(5)], pa.decimal256(50, 0)), "decimals of 50 digits"),
    }
    for name, (values, reason) in columns.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"id": [1], "s": pa.StructArray.from_arrays([values], ["x"])}), path)
        with pytest.raises(errors.UnsupportedError, match=f"column 's' of Parquet file .*{name}.parquet' has {reason}"):
            warehouse.sql(f"SELECT * FROM read_files('{path}')").fetchall()
        assert warehouse.sql(f"SELECT * FROM read_files('{path}', schema => 'id BIGINT')").fetchall() == [(1,)]


def test_int96_of_parquet_is_an_instant(warehouse, tmp_path):
    """Written by Spark's older versions, Hive and Impala; read without a schema, as Spark does it."""
    at = pa.array([1_700_000_000_123_456, None], pa.timestamp("us"))
    rows = {"at": at, "s": pa.StructArray.from_arrays([at], ["x"]), "a": pa.array([[1_700_000_000_123_456], []], pa.list_(at.type))}
    for name, int96 in (("old", True), ("new", False)):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet", use_deprecated_int96_timestamps=int96)
    old = warehouse.sql(f"SELECT * FROM read_files('{tmp_path}/old.parquet')")
    assert list(zip(old.columns, old.types))[:3] == [
        ("at", "TIMESTAMP"), ("s", "STRUCT<x: TIMESTAMP>"), ("a", "ARRAY<TIMESTAMP>")]  # fmt: skip
    then = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, datetime.timezone.utc)
    assert old.fetchall()[0][:3] == (then, {"x": then}, [then]) and old.fetchall()[1][:3] == (None, {"x": None}, [])
    new = warehouse.sql(f"SELECT at FROM read_files('{tmp_path}/new.parquet')")
    assert new.types == ["TIMESTAMP_NTZ"] and new.fetchall()[0] == (then.replace(tzinfo=None),)


def test_a_table(warehouse):
    warehouse.sql("CREATE TABLE s (id INT NOT NULL COMMENT 'key', name STRING) TBLPROPERTIES ('a' = 'b')")
    warehouse.sql("INSERT INTO s VALUES (1, 'x'), (2, 'y')")
    table = warehouse.table("s")
    assert (table.name, table.version, table.row_count, table.file_count) == ("main.default.s", 1, 2, 1)
    assert table.schema == [
        strandline.Field("id", "INT", False, "key"), strandline.Field("name", "STRING", True, None)]  # fmt: skip
    assert table.schema_text == "id INT NOT NULL, name STRING"
    assert table.properties["a"] == "b" and table.partition_columns == [] and table.size_bytes > 0
    assert os.path.isdir(os.path.join(table.path, "_delta_log")) and len(table.id) == 36
    warehouse.sql("UPDATE s SET name = 'z' WHERE id = 1")
    assert table.version == 1 and sorted(table.rows().fetchall()) == [(1, "x"), (2, "y")]
    assert table.refresh().version == 2
    history = table.history()
    assert [version.version for version in history] == [2, 1, 0] and len(table.history(limit=1)) == 1
    assert history[0].operation == "UPDATE" and history[0].timestamp.tzinfo is datetime.timezone.utc


def test_changes_of_a_table(warehouse):
    warehouse.sql("CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a'); UPDATE t SET v = 'b'")
    table = warehouse.table("t")
    rows = table.changes(1).fetchall()
    assert sorted((row[0], row[1], row[2], row[3]) for row in rows) == [
        (1, "a", "insert", 1), (1, "a", "update_preimage", 2), (1, "b", "update_postimage", 2)]  # fmt: skip
    assert len(table.changes(1, 1).fetchall()) == 1
    times = {version.version: version.timestamp for version in table.history()}
    assert len(table.changes(times[2]).fetchall()) == 2
    assert len(table.changes(times[2].isoformat(" ", "milliseconds")[:23]).fetchall()) == 2
    with pytest.raises(strandline.StrandlineError) as caught:
        table.changes(9)
    assert caught.value.code == "DELTA_CDC_START_VERSION_AFTER_LATEST"
    with pytest.raises(TypeError, match="from_ must be int or str or datetime, not 1.5"):
        table.changes(1.5)


def test_errors_are_classes_with_code_and_place(warehouse):
    with pytest.raises(strandline.NotFoundError) as caught:
        warehouse.sql("SELECT 1;\nSELECT * FROM nowhere")
    error = caught.value
    assert error.code == "TABLE_OR_VIEW_NOT_FOUND" and error.place.line == 2 and error.kind == "not_found"
    assert isinstance(error, LookupError) and str(error).startswith("[TABLE_OR_VIEW_NOT_FOUND] ")
    with pytest.raises(strandline.InvalidArgumentError):
        warehouse.sql("SELEC 1")
    with pytest.raises(strandline.StrandlineError, match="nowhere"):
        warehouse.table("nowhere")
    assert len(errors._BY_KIND) == 11


@pytest.mark.parametrize("read", ["arrow", "df", "pl", "fetchall", "show"])
def test_errors_of_the_data_are_the_librarys_own(warehouse, read):
    result = warehouse.sql("SELECT CAST(IF(id = 9000, 'x', '1') AS INT) FROM range(10000)")
    with pytest.raises(strandline.StrandlineError) as caught:
        getattr(result, read)(*([20000] if read == "show" else []))
    # As the cast says it, or the expression around it, whichever the engine comes to first.
    said = ("the text 'x' is no INT: use try_cast", "'x' is not a whole number: use ")
    assert caught.value.code == "CAST_INVALID_INPUT" and caught.value.message.startswith(said), caught.value


def test_errors_while_rows_are_read_name_their_cause(warehouse, tmp_path):
    """Though the warehouse may be gone by then."""
    warehouse.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n{"id": "x"}\n')
    overflow = warehouse.sql("SELECT CAST(id * 100 AS TINYINT) FROM range(5)")
    files = warehouse.sql(f"SELECT * FROM read_files('{tmp_path}/in', format => 'json', schema => 'id INT', mode => 'FAILFAST')")
    table, changes = warehouse.sql("SELECT * FROM t"), next(warehouse.table("t").change_batches())
    for path in (tmp_path / "warehouse" / "main" / "default" / "t").glob("*.parquet"):
        path.unlink()
    del warehouse
    for result, code in ((overflow, "CAST_OVERFLOW"), (table, "DELTA_FILE_NOT_FOUND"), (changes, "DELTA_CHANGE_DATA_FILE_NOT_FOUND")):
        with pytest.raises(strandline.StrandlineError) as caught:
            result.fetchall()
        assert caught.value.code == code, caught.value
    with pytest.raises(strandline.StrandlineError, match="a.json.*2"):
        files.fetchall()


SLOW = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.id * b.id % 7 = 3"


def test_cancel_from_another_thread(warehouse):
    result = warehouse.sql(SLOW)
    rows = result._rows
    timer = threading.Timer(0.3, rows.cancel)
    timer.start()
    with pytest.raises(strandline.CancelledError):
        result.fetchall()


@pytest.mark.parametrize("read", ["fetchall", "arrow"])
def test_ctrl_c_stops_a_query(read):
    code = f"""
import signal, strandline
signal.signal(signal.SIGINT, signal.default_int_handler)
w = strandline.connect()
print("ready", flush=True)
try:
    w.sql({SLOW!r}).{read}()
except KeyboardInterrupt:
    print("stopped", w.sql("SELECT 42").fetchall())
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "stopped [(42,)]\n" and child.returncode == 0


def test_ctrl_c_stops_a_script(tmp_path):
    (tmp_path / "s.py").write_text(f"print('ready', flush=True)\nspark.sql({SLOW!r}).show()\n")
    child = subprocess.Popen([sys.executable, "-m", "strandline._program", "python", tmp_path / "s.py"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, told = child.communicate(timeout=60)
    assert child.returncode == 130 and out == "" and "s.py\", line 2" in told and told.endswith("stopped by Ctrl-C\n")
    assert "_result.py" not in told


def test_other_threads_run_while_a_query_does(warehouse):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    # The fewest rows that take some time here.
    for rows in (30_000, 300_000, 3_000_000):
        before = len(ticks)
        warehouse.sql(f"SELECT sum(a.id * b.id % 7) FROM range(3000) a, range({rows}) b").fetchall()
        if len(ticks) - before > 5:
            break
    stop.set()
    thread.join()
    assert len(ticks) - before > 5


def test_arguments_are_checked():
    with pytest.raises(TypeError, match=r"threads must be int, not 'two' \(str\)"):
        strandline.connect(threads="two")
    with pytest.raises(TypeError, match="text must be str"):
        strandline.connect().sql(1)
    for parameter in ("threads", "memory_limit_bytes"):
        with pytest.raises(ValueError, match=rf"{parameter} must be 0 or more, not -1 \(int\)"):
            strandline.connect(**{parameter: -1})


WRONG_ARGUMENTS = {
    "strandline.connect('')": (ValueError, "warehouse is empty"),
    "strandline.Pipeline('')": (ValueError, "path is empty"),
    "strandline.Pipeline(5)": (TypeError, "path must be str or PathLike, not 5 (int)"),
    "w.sql(chr(0xd800))": (ValueError, "text must be Unicode"),
    "w.table('odd name')": (strandline.InvalidArgumentError, "'odd name' is not the name of a table: write it as in SQL"),
    "w.write('t', None)": (TypeError, "rows must have __arrow_c_stream__"),
    "w.register('my rows', w.sql('SELECT 1'))": (strandline.InvalidArgumentError, "a plain name, 'my rows' is none"),
    "w.sql('SELECT 1').fetchmany(-1)": (ValueError, "size must be 0 or more"),
    "w.sql('SELECT 1').show('x')": (TypeError, "limit must be int"),
    "w.table('t')": (strandline.InvalidArgumentError, "as in strandline.connect('warehouse')"),
}  # fmt: skip


@pytest.mark.parametrize("code", WRONG_ARGUMENTS, ids=ascii)
def test_wrong_arguments_say_what_is_taken(code):
    kind, message = WRONG_ARGUMENTS[code]
    with pytest.raises(kind) as caught:
        eval(code, {"strandline": strandline, "w": strandline.connect()})
    assert message in str(caught.value)


def test_places_that_are_no_warehouse(tmp_path):
    with pytest.raises(TypeError, match=r"warehouse must be str or PathLike, not 5 \(int\)"):
        strandline.connect(5)
    with pytest.raises(strandline.UnsupportedError, match="UNSUPPORTED_PATH_SCHEME.*s3://a/b"):
        strandline.connect("s3://a/b")
    (tmp_path / "file").write_text("")
    with pytest.raises(strandline.InvalidArgumentError, match="INVALID_WAREHOUSE"):
        strandline.connect(tmp_path / "file")


@pytest.mark.parametrize("column", ["INTERVAL 1 DAY", "array(INTERVAL 1 DAY)"])
def test_intervals_have_no_value(column):
    result = strandline.connect().sql(f"SELECT 1 AS `INTERVAL`, {column} AS i")
    with pytest.raises(strandline.UnsupportedError, match=r"column i is .*INTERVAL.*: read the result with arrow\(\)"):
        result.fetchall()
    assert "read the result with arrow()" in result._repr_html_()
    assert strandline.connect().sql("SELECT named_struct('interval', 1) AS s").fetchall() == [({"interval": 1},)]


WRONG_BATCHES = {
    "max_files=0": (ValueError, "max_files must be 1 or more, not 0"),
    "max_files=-5": (ValueError, "max_files must be 1 or more, not -5"),
    "poll_seconds='x'": (TypeError, "poll_seconds must be int or float, not 'x'"),
    "poll_seconds=-1": (ValueError, "poll_seconds must be 0 or more"),
    "follow=1": (TypeError, "follow must be bool, not 1"),
    "checkpoint=''": (ValueError, "checkpoint is empty: name a file"),
    "from_='\\ud800'": (ValueError, "from_ must be Unicode"),
}


@pytest.mark.parametrize("arguments", WRONG_BATCHES)
def test_arguments_of_change_batches(arguments, warehouse):
    warehouse.sql("CREATE TABLE t (id INT)")
    kind, message = WRONG_BATCHES[arguments]
    with pytest.raises(kind, match=message):
        warehouse.table("t").change_batches(**eval(f"dict({arguments})"))
    with pytest.raises(ValueError, match="to must be Unicode"):
        warehouse.table("t").changes(0, "\ud800")


@pytest.mark.parametrize("options", [{"full_refresh": True}, {"refresh": "t"}, {"refresh": [1]}])
def test_what_is_refreshed_is_a_list(options, tmp_path):
    with pytest.raises(TypeError, match="refresh must be a list of names of tables, not .*; full_refresh_all=True"):
        strandline.Pipeline(tmp_path).run(**options)


def test_change_batches_go_on_from_the_checkpoint(warehouse, tmp_path):
    warehouse.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2)")
    table = warehouse.table("t")
    checkpoint = tmp_path / "progress" / "t.json"
    first = [batch.fetchall() for batch in table.change_batches(checkpoint)]
    assert [(row[0], row[1]) for batch in first for row in batch] == [(1, "insert"), (2, "insert")]
    warehouse.sql("INSERT INTO t VALUES (3); DELETE FROM t WHERE id = 1")
    assert list(table.change_batches(checkpoint, max_files=1)) != []
    assert list(table.change_batches(checkpoint)) == []
    warehouse.sql("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5)")
    for batch in table.change_batches(checkpoint, max_files=1):
        assert [row[0] for row in batch] == [4]
        break  # stopped in its handling: it comes again
    again = [[row[0] for row in batch] for batch in table.change_batches(checkpoint, max_files=1)]
    assert again == [[4], [5]]


def test_change_batches_from_a_start_and_following(warehouse, tmp_path):
    warehouse.sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
    table = warehouse.table("t")
    assert [row[0] for batch in table.change_batches(from_=2) for row in batch] == [2]
    assert list(table.change_batches(from_="latest")) == []
    with pytest.raises(strandline.StrandlineError, match="99"):
        list(table.change_batches(from_=99))
    following = table.change_batches(from_=2, follow=True, poll_seconds=0.05)
    assert [row[0] for row in next(following)] == [2]
    writer = threading.Timer(0.3, lambda: strandline.connect(warehouse.path).sql("INSERT INTO t VALUES (7)"))
    writer.start()
    assert [row[0] for row in next(following)] == [7]


def test_a_checkpoint_of_another_table_is_refused(warehouse, tmp_path):
    warehouse.sql("CREATE TABLE a (id INT); CREATE TABLE b (id INT); INSERT INTO b VALUES (1)")
    list(warehouse.table("a").change_batches(tmp_path / "c"))
    with pytest.raises(strandline.InvalidDataError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        list(warehouse.table("b").change_batches(tmp_path / "c"))
    (tmp_path / "c").write_text("not json")
    with pytest.raises(strandline.CorruptError, match="DELTA_INVALID_SOURCE_OFFSET_FORMAT"):
        list(warehouse.table("a").change_batches(tmp_path / "c"))
