"""spark.read.format("jdbc") and read_jdbc: SQLite, a real PostgreSQL, a real MariaDB."""

import datetime
import os
from decimal import Decimal
from urllib.parse import quote

import harness
import pytest
import servers
from servers import PASSWORD

import strandline
from strandline import _jdbc, _spark, _volumes


@pytest.fixture
def spark(warehouse, tmp_path):
    return _spark.SparkSession(lambda: warehouse, _volumes.Volumes(None, str(tmp_path)))


@pytest.fixture(scope="module")
def mariadb():
    if why := harness.missing_extension("mysql_scanner"):
        pytest.skip(why)
    try:
        with servers.mariadb() as server:
            yield server
    except servers.Missing as why:
        pytest.skip(str(why))


def reader(spark, server, **options):
    return spark.read.format("jdbc").options(url=server.url, user="me", password=PASSWORD, **options)


@pytest.fixture
def sqlite():
    """Skips tests that read SQLite files where DuckDB's extension for them is missing."""
    if why := harness.missing_extension("sqlite_scanner"):
        pytest.skip(why)


def test_sqlite(spark, warehouse, tmp_path, sqlite):
    sqlite3 = pytest.importorskip("sqlite3", reason="this CPython was built without SQLite, which makes the file")
    path = tmp_path / "a file.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, score REAL, raw BLOB)")
        db.executemany("INSERT INTO users VALUES (?, ?, ?, ?)", [(1, "Ann", 1.5, b"\x01"), (2, "O'Neil", None, None)])
    db.close()
    read = spark.read.format("jdbc").option("url", f"jdbc:sqlite:{path}").option("driver", "org.sqlite.JDBC")
    frame = read.option("dbtable", "users").load()
    assert frame.dtypes == [("id", "BIGINT"), ("name", "STRING"), ("score", "DOUBLE"), ("raw", "BINARY")]
    assert sorted(frame.collect()) == [(1, "Ann", 1.5, b"\x01"), (2, "O'Neil", None, None)]
    assert spark.read.jdbc(f"jdbc:sqlite:{path}", 'main."users"').count() == 2
    text = warehouse.sql(f"SELECT name FROM read_jdbc(url => 'jdbc:sqlite:{path}', dbtable => 'users') WHERE id = 2")
    assert text.fetchall() == [("O'Neil",)]
    # What changed there is seen, new columns too.
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE users ADD COLUMN city TEXT DEFAULT 'Rome'")
    db.close()
    assert frame.columns[-1] == "city" and frame.first().city == "Rome"
    with pytest.raises(strandline.NotFoundError, match="there is no SQLite file"):
        spark.read.jdbc("jdbc:sqlite:/nowhere/x.db", "t").collect()
    with pytest.raises(strandline.InvalidArgumentError, match="JDBC_QUERY_FAILED"):
        spark.read.jdbc(f"jdbc:sqlite:{path}", "nothing").collect()


SQLITE_VALUES = {
    ("DATETIME", "'2024-02-29T01:02:03+05:00'"): ("VALUE_OUT_OF_TYPE", "column 'a' of t in "),
    ("TIMESTAMP", "'2024-02-29 01:02:03.1 -07'"): ("VALUE_OUT_OF_TYPE", "has '2024-02-29 01:02:03.1 -07', of which TIMESTAMP_NTZ"),
    ("TIMESTAMP", "'2024-02-29 01:02:03.123456789'"): ("VALUE_OUT_OF_TYPE", "CAST(a AS TEXT) and datetime(a)"),
    ("DATE", "'2024-02-29 01:02:03'"): ("VALUE_OUT_OF_TYPE", "of which DATE would lose a part"),
    ("TIMESTAMP", "'2024-02-29 01:02:03.123456000'"): datetime.datetime(2024, 2, 29, 1, 2, 3, 123456),
    ("TIMESTAMP", "'2024-02-29T01:02:03Z'"): datetime.datetime(2024, 2, 29, 1, 2, 3),
    ("TIMESTAMP", "'2024-02-29 01:02:03+00:00'"): datetime.datetime(2024, 2, 29, 1, 2, 3),
    ("TIMESTAMP", "'2024-02-29'"): datetime.datetime(2024, 2, 29),
    ("DATE", "'2024-02-29 00:00:00'"): datetime.date(2024, 2, 29),
    ("INTEGER", "'it''s \"abc\"'"): ("VALUE_OUT_OF_TYPE", "column 'a' is declared as integer, and a row of that database has the text"),
    ("TEXT", "CAST(X'61ff' AS TEXT)"): ("INVALID_UTF8_STRING", "column 'a' has text whose bytes are not UTF-8"),
    ("TEXT", "CAST(X'c3a9' AS TEXT)"): "é",
}  # fmt: skip


@pytest.mark.parametrize("given", SQLITE_VALUES, ids=" ".join)
def test_values_that_sqlite_keeps_in_any_column(given, warehouse, tmp_path, sqlite):
    sqlite3 = pytest.importorskip("sqlite3", reason="this CPython was built without SQLite, which makes the file")
    path, expected = tmp_path / "a.db", SQLITE_VALUES[given]
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE t (a {given[0]})")
        db.execute(f"INSERT INTO t VALUES (NULL), ({given[1]})")
    db.close()

    def read():
        return warehouse.sql(f"SELECT a FROM read_jdbc(url => 'jdbc:sqlite:{path}', dbtable => 't') ORDER BY a NULLS FIRST").fetchall()

    if not isinstance(expected, tuple):
        assert read() == [(None,), (expected,)]
        return
    with pytest.raises(strandline.StrandlineError) as caught:
        read()
    assert caught.value.code == expected[0] and expected[1] in caught.value.message, caught.value


TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'fine');
CREATE SCHEMA sales;
CREATE TABLE sales."Types" (
  a smallint, b integer, c bigint, d real, e double precision, f numeric(10,2), g numeric, h boolean, i text, "J j" varchar(9),
  k date, l timestamp, m timestamptz, n bytea, o uuid, p json, q mood, r integer[], s time);
INSERT INTO sales."Types" VALUES
  (1, 2, 3, 1.5, 2.5, 3.25, 12345678901234567890.123456789, true, 'x''y', 'z', '2024-02-29', '2024-02-29 01:02:03.5',
   '2024-02-29 01:02:03+02', '\\x00ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', 'fine', '{1,2}', '01:02:03'),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""


def test_postgres_types(spark, postgres):
    postgres.run(TYPES)
    frame = reader(spark, postgres, dbtable='sales."Types"').load()
    assert dict(frame.dtypes) == {
        "a": "SMALLINT", "b": "INT", "c": "BIGINT", "d": "FLOAT", "e": "DOUBLE", "f": "DECIMAL(10,2)", "g": "DECIMAL(38,18)",
        "h": "BOOLEAN", "i": "STRING", "J j": "STRING", "k": "DATE", "l": "TIMESTAMP_NTZ", "m": "TIMESTAMP", "n": "BINARY",
        "o": "STRING", "p": "STRING", "q": "STRING", "r": "ARRAY<INT>", "s": "STRING"}  # fmt: skip
    full, empty = sorted(frame.collect(), key=lambda row: row.a is None)
    assert tuple(empty) == (None,) * 19
    assert tuple(full) == (
        1, 2, 3, 1.5, 2.5, Decimal("3.25"), Decimal("12345678901234567890.123456789"), True, "x'y", "z",
        datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 500000),
        datetime.datetime(2024, 2, 28, 23, 2, 3, tzinfo=datetime.timezone.utc), b"\x00\xff",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '{"a": 1}', "fine", [1, 2], "01:02:03")  # fmt: skip


# What is refused, as which type.
POSTGRES_MISFITS = {
    "'NaN'::numeric": "NaN, which does not fit DECIMAL(38,18)", "'NaN'::numeric(10,2)": "DECIMAL(10,2)",
    "'Infinity'::numeric": "Infinity, which does not fit DECIMAL(38,18)", "1e-19::numeric": "DECIMAL(38,18)",
    "1.23456789012345678951::numeric": "DECIMAL(38,18)", "-1e20::numeric": "-100000000000000000000, which",
    "ARRAY['NaN'::numeric(10,2), 1]": "{NaN,1}, which does not fit ARRAY<DECIMAL(38,18)>",
    "ARRAY[1e-19::numeric]": "ARRAY<DECIMAL(38,18)>", "1e30::numeric(45,0)": "DECIMAL(38,18)", "1e22::numeric(5,-20)": "DECIMAL(38,18)",
    "'NaN'::digits": "NaN, which does not fit DECIMAL(38,18)", "1.2345678901234567891::digits": "DECIMAL(38,18)",
    "'294247-01-10 04:00:55+00'::timestamptz": "TIMESTAMP", "'294276-12-31'::timestamp": "TIMESTAMP_NTZ",
    "ARRAY[NULL, '294276-12-31'::timestamptz]": "ARRAY<TIMESTAMP>",
    "'infinity'::date": "infinity, which does not fit DATE", "'-infinity'::date": "-infinity, which does not fit DATE",
    "'infinity'::day": "infinity, which does not fit DATE", "ARRAY['-infinity'::date]": "{-infinity}, which does not fit ARRAY<DATE>",
    "'infinity'::timestamp": "infinity, which does not fit TIMESTAMP_NTZ", "'-infinity'::timestamp": "-infinity, which",
    "'infinity'::timestamptz": "infinity, which does not fit TIMESTAMP", "'-infinity'::timestamptz": "-infinity, which",
    "ARRAY['infinity'::timestamp]": "ARRAY<TIMESTAMP_NTZ>", "ARRAY[NULL, 'infinity'::timestamptz]": "ARRAY<TIMESTAMP>",
    "ARRAY[[1, 2], [3, 4]]": "{{1,2},{3,4}}, which does not fit ARRAY<INT>", "ARRAY[['a']]": "{{a}}, which does not fit ARRAY<STRING>",
    "ARRAY[[1.5]]": "{{1.5}}, which does not fit ARRAY<DECIMAL(38,18)>", "ARRAY[['NaN'::float8]]": "{{NaN}}, which"}  # fmt: skip


@pytest.fixture(scope="module")
def domains(postgres):
    postgres.run("CREATE DOMAIN digits AS numeric; CREATE DOMAIN day AS date; CREATE DOMAIN few AS digits CHECK (VALUE < 9)")
    return postgres


@pytest.mark.parametrize("value", POSTGRES_MISFITS)
def test_values_of_postgres_that_delta_lacks(value, spark, domains):
    for query in (f"SELECT {value} AS x", f"SELECT i, {value} AS x FROM generate_series(1, 3) AS i"):
        with pytest.raises(strandline.InvalidDataError, match="VALUE_OUT_OF_TYPE") as caught:
            reader(spark, domains, query=query).load().collect()
        assert caught.value.message.startswith("column 'x' of that database has "), caught.value
        assert POSTGRES_MISFITS[value] in caught.value.message


# One column beyond what a message shows of a query.
def test_a_misfit_among_many_columns(spark, postgres):
    columns = ", ".join(f"'2024-01-01'::timestamp AS c{i}" for i in range(40))
    with pytest.raises(strandline.InvalidDataError, match="column 'x' of that database has infinity"):
        reader(spark, postgres, query=f"SELECT {columns}, 'infinity'::date AS x").load().collect()


def test_what_postgres_says_of_a_query_that_fails(spark, postgres):
    for query, says in {
        "SELECT 1 / (i - 2) AS x FROM generate_series(1, 3) AS i": "division by zero",
        "SELECT 10::numeric(2,2) AS x": "numeric field overflow",
    }.items():
        with pytest.raises(strandline.InvalidArgumentError, match="JDBC_QUERY_FAILED") as caught:
            reader(spark, postgres, query=query).load().collect()
        assert says in caught.value.message and "COPY" not in caught.value.message


def test_values_of_postgres_that_just_fit(spark, domains):
    query = ("SELECT 0.1234567890123456780::numeric AS a, ARRAY[12345678901234567890.123::numeric, NULL] AS b, NULL::numeric AS c, "
             "ARRAY[1.5::float8] AS d, '294247-01-10 04:00:53.999999'::timestamp::text AS e, 1.5::few AS f, "
             "12345::numeric(5,-2) AS g, 0.00012::numeric(3,5) AS h, ARRAY[700]::numeric(3,-2)[] AS i, ARRAY['12:30'::time, NULL] AS j, "
             "99999999999999999999.5::numeric(40,1) AS k, '[0:1]={1,2}'::int[] AS l, '{}'::date[] AS m")
    frame = reader(spark, domains, query=query).load()
    assert [type for _, type in frame.dtypes] == [
        "DECIMAL(38,18)", "ARRAY<DECIMAL(38,18)>", "DECIMAL(38,18)", "ARRAY<DOUBLE>", "STRING", "DECIMAL(38,18)", "DECIMAL(38,18)",
        "DECIMAL(5,5)", "ARRAY<DECIMAL(38,18)>", "ARRAY<STRING>", "DECIMAL(38,18)", "ARRAY<INT>", "ARRAY<DATE>"]
    assert tuple(frame.first()) == (
        Decimal("0.123456789012345678"), [Decimal("12345678901234567890.123"), None], None, [1.5], "294247-01-10 04:00:53.999999",
        Decimal("1.5"), Decimal(12300), Decimal("0.00012"), [Decimal(700)], ["12:30:00", None], Decimal("99999999999999999999.5"),
        [1, 2], [])


def test_postgres_tables_and_queries(spark, postgres):
    postgres.run("CREATE TABLE people (id int, name text); INSERT INTO people SELECT i, 'n' || i FROM generate_series(1, 5000) i;"
                 "CREATE SCHEMA other; CREATE TABLE other.people AS SELECT 7 AS id;")  # fmt: skip
    hints = {"fetchsize": 100, "partitionColumn": "id", "lowerBound": 1, "upperBound": 9, "numPartitions": 2}
    frame = reader(spark, postgres, dbtable="people", driver="org.postgresql.Driver", **hints).load()
    assert frame.count() == 5000 and frame.filter("id = 77").collect() == [(77, "n77")]
    assert reader(spark, postgres, dbtable="(SELECT id FROM people WHERE id < 3) AS few").load().count() == 2
    assert reader(spark, postgres, query="SELECT max(id) AS m FROM people;").load().collect() == [(5000,)]
    with_schema = spark.read.jdbc(
        f"{postgres.url}?currentSchema=other&user=me&password={quote(PASSWORD)}&ApplicationName=x", "people")
    assert with_schema.collect() == [(7,)]
    # Two tables of one database in one query.
    assert frame.join(with_schema, "id").collect() == [(7, "n7")]
    # What changes there is seen.
    postgres.run("ALTER TABLE people ADD COLUMN age int; UPDATE people SET age = 3 WHERE id = 1; DELETE FROM people WHERE id > 2")
    assert sorted(map(tuple, frame.collect())) == [(1, "n1", 3), (2, "n2", None)]


def test_passwords_are_not_told(spark, warehouse, postgres, pipeline, tmp_path, capfd):
    frame = reader(spark, postgres, dbtable="no_such_table").load()
    assert PASSWORD not in repr(frame)
    with pytest.raises(strandline.InvalidArgumentError, match="no_such_table") as caught:
        frame.collect()
    assert PASSWORD not in str(caught.value)
    closed = postgres.url.replace(str(postgres.port), str(servers.free_port()))
    with pytest.raises(strandline.IoError, match="JDBC_CONNECTION_FAILED") as caught:
        spark.read.jdbc(closed, "t", properties={"user": "me", "password": PASSWORD}).collect()
    assert PASSWORD not in str(caught.value)
    with pytest.raises(strandline.IoError, match="me") as caught:
        spark.read.jdbc(postgres.url, "t", properties={"user": "me", "password": "wrong-" + PASSWORD}).collect()
    assert PASSWORD not in str(caught.value)
    # In a pipeline: not in reports, the event log, or anything else on disk; nor does a traceback show the line.
    code = f"""
from pyspark import pipelines as dp

@dp.materialized_view
def copy():
    return spark.read.format("jdbc").option("url", {postgres.url!r}).option("user", "me").option("password", {PASSWORD!r}).option("dbtable", "gone").load()

@dp.materialized_view
def bad():
    return spark.read.jdbc("jdbc:oracle:thin", "t", properties={{"password": {PASSWORD!r}}})
"""
    folder = pipeline({"a.py": code})
    done = harness.call("run", folder, "--warehouse", warehouse.path, "--json", env={"STRANDLINE_PYTHON": os.sys.executable})
    assert "jdbc:oracle" in done.stdout and PASSWORD not in done.stdout + done.stderr
    alone = pipeline({"a.py": "from pyspark import pipelines as dp\n" + code[code.index("@dp.materialized_view\ndef bad") :]}, "alone")
    done = harness.call("run", alone, "--warehouse", warehouse.path, "--json", env={"STRANDLINE_PYTHON": os.sys.executable})
    assert "jdbc:oracle" in done.stdout and PASSWORD not in done.stdout + done.stderr
    (folder / "a.py").write_text(code[: code.index("@dp.materialized_view\ndef bad")])
    done = harness.call("run", folder, "--warehouse", warehouse.path, "--json", env={"STRANDLINE_PYTHON": os.sys.executable})
    assert "gone" in done.stdout and PASSWORD not in done.stdout + done.stderr
    for place in (tmp_path / "warehouse").rglob("*"):
        assert not place.is_file() or PASSWORD.encode() not in place.read_bytes(), place


def test_in_a_pipeline(warehouse, postgres, pipeline, monkeypatch):
    """A materialized view and a ONCE flow, in Python and in SQL."""
    postgres.run("CREATE TABLE shops (id int, city text); INSERT INTO shops VALUES (1, 'Rome'), (2, 'Oslo')")
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    folder = pipeline({
        "a.py": f"""
import os
from pyspark import pipelines as dp

@dp.view(name="source")
def source():
    return (spark.read.format("jdbc").option("url", {postgres.url!r}).option("dbtable", "shops").option("user", "me")
            .option("password", os.environ["SHOP_PASSWORD"]).load())

@dp.materialized_view
def shops():
    return spark.read.table("source").filter("id > 0")

dp.create_streaming_table("first")

@dp.append_flow(target="first", once=True)
def load():
    return spark.read.table("source")
""",
        "b.sql": f"CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM read_jdbc(url => '{postgres.url}', user => 'me', "
                 "dbtable => 'shops', password => secret('SHOP_PASSWORD'));",
    })  # fmt: skip
    run = lambda: strandline.Pipeline(folder, warehouse=warehouse.path).run()
    run()
    assert sorted(warehouse.sql("SELECT * FROM shops").fetchall()) == [(1, "Rome"), (2, "Oslo")]
    assert warehouse.sql("SELECT n FROM n").fetchall() == [(2,)]
    version = warehouse.table("shops").version
    run()  # nothing changed: nothing is written
    assert warehouse.table("shops").version == version
    postgres.run("DELETE FROM shops WHERE id = 1; INSERT INTO shops VALUES (3, 'Lima')")
    run()
    assert sorted(warehouse.sql("SELECT * FROM shops").fetchall()) == [(2, "Oslo"), (3, "Lima")]
    assert sorted(warehouse.sql("SELECT * FROM first").fetchall()) == [(1, "Rome"), (2, "Oslo")]
    # Streams would differ when they run again.
    bad = pipeline({"a.sql": "CREATE STREAMING TABLE t AS SELECT s.* FROM STREAM(first) s JOIN "
                             f"read_jdbc(url => '{postgres.url}', dbtable => 'shops') USING (id)"}, "bad")  # fmt: skip
    with pytest.raises(strandline.UpdateError, match="JDBC_IN_STREAM"):
        strandline.Pipeline(bad, warehouse=warehouse.path).run()


def test_passwords_in_sql_are_secrets(warehouse, postgres, monkeypatch):
    read = f"SELECT 1 FROM read_jdbc(url => '{postgres.url}', query => 'SELECT 1 AS one', user => 'me', password => {{}})"
    with pytest.raises(strandline.InvalidArgumentError, match="does not belong into SQL text"):
        warehouse.sql(read.format(f"'{PASSWORD}'"))
    with pytest.raises(strandline.NotFoundError, match="SECRET_NOT_FOUND"):
        warehouse.sql(read.format("secret('NO_SUCH_PASSWORD')"))
    monkeypatch.setenv("TEST_DB_PASSWORD", PASSWORD)
    assert warehouse.sql(read.format("secret('TEST_DB_PASSWORD')")).fetchall() == [(1,)]
    monkeypatch.setenv("TEST_DB_PASSWORD", "another-one")
    with pytest.raises(strandline.IoError) as caught:
        warehouse.sql(read.format("secret('TEST_DB_PASSWORD')"))
    assert "another-one" not in str(caught.value)
    with pytest.raises(strandline.InvalidArgumentError, match="does not belong into SQL text") as caught:
        warehouse.sql(f"SELECT * FROM read_jdbc(url => '{postgres.url}?user=me&password=abc', dbtable => 't')")
    assert "abc" not in str(caught.value)
    for password in (f"password => '{PASSWORD}'", f"url => 'jdbc:postgresql://h/d?user=me&password={quote(PASSWORD)}'"):
        done = harness.call("sql", "-c", f"SELECT * FROM read_jdbc(dbtable => 't', {password})")
        assert done.returncode != 0 and "password" in done.stderr
        assert PASSWORD not in done.stderr and quote(PASSWORD) not in done.stderr


def test_mariadb(spark, mariadb):
    mariadb.run("CREATE TABLE t (id INT UNSIGNED, name VARCHAR(20), price DECIMAL(8,2), at DATETIME, flag TINYINT(1), big BIGINT UNSIGNED);"
                "INSERT INTO t VALUES (1, 'Ann', 2.50, '2024-01-02 03:04:05', 1, 18446744073709551615), (2, NULL, NULL, NULL, NULL, NULL)")  # fmt: skip
    frame = reader(spark, mariadb, dbtable="t").load()
    assert dict(frame.dtypes) == {"id": "BIGINT", "name": "STRING", "price": "DECIMAL(8,2)", "at": "TIMESTAMP_NTZ",
                                  "flag": "BOOLEAN", "big": "DECIMAL(20,0)"}  # fmt: skip
    assert sorted(map(tuple, frame.collect())) == [
        (1, "Ann", Decimal("2.50"), datetime.datetime(2024, 1, 2, 3, 4, 5), True, Decimal(2**64 - 1)),
        (2, None, None, None, None, None)]  # fmt: skip
    other = spark.read.jdbc(mariadb.url.replace("mysql", "mariadb") + "?useSSL=false", "t",
                            properties={"user": "me", "password": PASSWORD})  # fmt: skip
    assert other.count() == 2
    with pytest.raises(strandline.IoError) as caught:
        spark.read.jdbc(mariadb.url, "t", properties={"user": "me", "password": "wrong" + PASSWORD}).collect()
    assert PASSWORD not in str(caught.value)


# A column's type there, a value, and what it is here: a type and a value, or what is said of it.
MARIADB_VALUES = {
    ("DATE", "'0000-00-00'"): "0000-00-00, which does not fit DATE",
    ("DATE", "'2024-05-00'"): "2024-05-00, which does not fit DATE",
    ("DATETIME", "'0000-00-00 00:00:00'"): "0000-00-00 00:00:00, which does not fit TIMESTAMP_NTZ",
    ("DATETIME", "'2024-00-10 01:02:03'"): "2024-00-10 01:02:03, which does not fit TIMESTAMP_NTZ",
    ("TIMESTAMP NULL", "'0000-00-00 00:00:00'"): "0000-00-00 00:00:00, which does not fit TIMESTAMP_NTZ",
    ("DATE", "'9999-12-31'"): ("DATE", datetime.date(9999, 12, 31)),
    ("DATETIME(6)", "'2024-01-01 00:00:00.123456'"): ("TIMESTAMP_NTZ", datetime.datetime(2024, 1, 1, 0, 0, 0, 123456)),
    ("TIMESTAMP NULL", "'2024-06-01 12:00:00'"): ("TIMESTAMP_NTZ", datetime.datetime(2024, 6, 1, 12)),
    ("TINYINT(1)", "5"): "5, which does not fit BOOLEAN: give it as a number",
    ("TINYINT(1)", "-1"): "-1, which does not fit BOOLEAN",
    ("TINYINT(1)", "0"): ("BOOLEAN", False),
    ("BIT(1)", "1"): ("BOOLEAN", True),
    ("BIT(8)", "b'10100001'"): ("BINARY", b"\xa1"),
    ("TINYINT UNSIGNED", "255"): ("SMALLINT", 255),
    ("DECIMAL(65,30)", "1.000000000000000000000000000001"): "1.000000000000000000000000000001, which does not fit DECIMAL(38,18)",
    ("DECIMAL(65,0)", "100000000000000000000"): "100000000000000000000, which does not fit DECIMAL(38,18)",
    ("DECIMAL(65,30)", "-99999999999999999999.123456789012345678"): ("DECIMAL(38,18)", Decimal("-99999999999999999999.123456789012345678")),
    ("DECIMAL(38,10)", "1.5"): ("DECIMAL(38,10)", Decimal("1.5")),
    ("DECIMAL(10,2) UNSIGNED", "99999999.99"): "99999999.99, which does not fit DECIMAL(9,2): give it as text, or as another DECIMAL",
    ("DECIMAL(10,2) ZEROFILL", "1.5"): ("DECIMAL(9,2)", Decimal("1.5")),
    ("DOUBLE", "1.7976931348623157e308"): ("DOUBLE", 1.7976931348623157e308),
    ("DOUBLE(20,10)", "0.1"): ("DOUBLE", 0.1),
    ("FLOAT", "16777215"): ("FLOAT", 16777215.0),
    ("TIME", "'-838:59:59'"): ("STRING", "-838:59:59"),
    ("YEAR", "2024"): ("INT", 2024),
    ("JSON", "'{\"a\": 1}'"): ("STRING", '{"a": 1}'),
    ("VARCHAR(9) COLLATE utf8mb4_bin", "'x'"): ("STRING", "x"),
    ("UUID", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"): ("STRING", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("SET('a','b')", "'a,b'"): ("STRING", "a,b"),
    ("ENUM('x','y')", "'y'"): ("STRING", "y"),
    ("BINARY(5)", "'ab'"): ("BINARY", b"ab\0\0\0"),
    ("BLOB", "x'00ff'"): ("BINARY", b"\0\xff"),
    ("CHAR(5)", "'ab '"): ("STRING", "ab"),
    ("VARCHAR(5)", "'ab '"): ("STRING", "ab "),
    ("TEXT CHARACTER SET utf8mb4", "CONVERT(x'F09F9880' USING utf8mb4)"): ("STRING", "\U0001f600"),
}  # fmt: skip


@pytest.mark.parametrize("given", MARIADB_VALUES, ids=" ".join)
def test_values_of_mariadb(given, spark, mariadb):
    expected = MARIADB_VALUES[given]
    mariadb.run(f"SET sql_mode = ''; CREATE OR REPLACE TABLE v (i INT, `a ``\"'b` {given[0]}); INSERT INTO v VALUES (1, NULL), (2, {given[1]})")
    frame = reader(spark, mariadb, dbtable="v").load()
    if isinstance(expected, tuple):
        assert frame.dtypes[1] == ("a `\"'b", expected[0])
        assert sorted(map(tuple, frame.collect())) == [(1, None), (2, expected[1])]
        return
    with pytest.raises(strandline.InvalidDataError, match="VALUE_OUT_OF_TYPE") as caught:
        frame.collect()
    assert f"column 'a `\"'b' of that database has {expected}" in caught.value.message


def test_what_is_said_of_a_query_that_fails_in_mariadb(spark, mariadb):
    with pytest.raises(strandline.InvalidArgumentError, match="JDBC_QUERY_FAILED.*failed in a row of it"):
        reader(spark, mariadb, query="SELECT (SELECT 1 UNION SELECT seq) AS x FROM seq_1_to_3").load().collect()


def encrypted(spark, url, user="me"):
    """How a connection to a server is encrypted, as the server sees it: "" if it is not."""
    postgres = "postgresql" in url
    query = ("SELECT coalesce(version, '') AS v FROM pg_stat_ssl WHERE pid = pg_backend_pid()" if postgres else
             "SELECT variable_value AS v FROM information_schema.session_status WHERE variable_name = 'ssl_version'")  # fmt: skip
    return spark.read.format("jdbc").options(url=url, user=user, password=PASSWORD, query=query).load().first().v


def refused(spark, url, user="me"):
    """What is said of a connection that cannot be had."""
    with pytest.raises(strandline.IoError, match="JDBC_CONNECTION_FAILED") as caught:
        encrypted(spark, url, user)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def test_tls_of_postgres(spark, postgres, mariadb):
    plain = postgres.url
    guarded, elsewhere = plain.replace("/test", "/guarded"), plain.replace("127.0.0.1", "127.0.0.2")
    ca, another = (quote(str(one.ca)) for one in (postgres, mariadb))
    assert encrypted(spark, f"{plain}?sslmode=disable") == ""
    for parameters in ("", "?ssl=false", "?sslmode=require", "?sslmode=Prefer", f"?ssl=true&sslrootcert={ca}",
                       f"?sslmode=verify-ca&sslrootcert={ca}", f"?sslmode=verify-full&sslrootcert={ca}&connectTimeout=9",
                       "?ssl=true&sslfactory=org.postgresql.ssl.NonValidatingFactory"):  # fmt: skip
        assert encrypted(spark, guarded + parameters).startswith("TLSv1."), parameters
    assert "pg_hba" in refused(spark, f"{guarded}?sslmode=disable")
    # The certificate: signed by another, of another address, nothing to hold it against.
    assert "certificate verify failed" in refused(spark, f"{plain}?ssl&sslrootcert={another}")
    assert "certificate verify failed" in refused(spark, f"{plain}?sslmode=verify-ca&sslrootcert={another}")
    assert encrypted(spark, f"{elsewhere}?sslmode=verify-ca&sslrootcert={ca}").startswith("TLSv1.")
    assert "does not match" in refused(spark, f"{elsewhere}?sslmode=verify-full&sslrootcert={ca}")
    assert "/no/such.pem" in refused(spark, f"{plain}?sslmode=verify-ca&sslrootcert=/no/such.pem")


def test_tls_of_mariadb(spark, postgres, mariadb):
    ca, another = (quote(str(one.ca)) for one in (mariadb, postgres))
    elsewhere = mariadb.url.replace("127.0.0.1", "127.0.0.2")
    assert encrypted(spark, f"{mariadb.url}?sslMode=DISABLED") == ""
    for parameters in ("", "?sslMode=REQUIRED", "?useSSL=true", f"?sslMode=VERIFY_CA&serverSslCert={ca}",
                       f"?sslMode=VERIFY_IDENTITY&serverSslCert={ca}", f"?useSSL=true&verifyServerCertificate=true&serverSslCert={ca}"):  # fmt: skip
        assert encrypted(spark, mariadb.url + parameters, "guarded").startswith("TLSv1."), parameters
    theirs = mariadb.url.replace("mysql", "mariadb")
    for parameters in ("?sslMode=trust", f"?sslMode=verify-full&serverSslCert={ca}", f"?useSsl=true&serverSslCert=file:{ca}"):
        assert encrypted(spark, theirs + parameters, "guarded").startswith("TLSv1."), parameters
    refused(spark, f"{mariadb.url}?useSSL=false", "guarded")
    assert "certificate" in refused(spark, f"{mariadb.url}?sslMode=VERIFY_CA&serverSslCert={another}")
    # The reader looks at the address in both.
    for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
        assert "Hostname verification failed" in refused(spark, f"{elsewhere}?sslMode={mode}&serverSslCert={ca}")


WRONG = {
    "read.load()": "needs the option url",
    "read.option('url', 'jdbc:sqlserver://h;database=x').load()": "'jdbc:sqlserver:…' is not supported",
    "read.option('url', 'jdbc:postgresql://h/d').load()": "dbtable",
    "read.option('url', 'jdbc:postgresql://h').option('dbtable', 't').load()": "names no database",
    "read.option('url', 'jdbc:postgresql://h:x/d').option('dbtable', 't').load()": "has a port that is no number",
    "read.option('url', 'jdbc:postgresql://h/d?targetServerType=any').option('dbtable', 't').load()":
        "'targetServerType', which is not supported; there are user, password, ssl",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', query='SELECT 1').load()": "give one of them",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', driver='org.sqlite.JDBC').load()": "leave it out",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', customSchema='a INT').load()": "no option 'customschema'; there are url",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', sessionInitStatement='x').load()": "sessioninitstatement",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', preferTimestampNTZ=False).load()": "TIMESTAMP_NTZ",
    "read.options(url='jdbc:postgresql://h/d', dbtable='t', queryTimeout=5).load()": "queryTimeout = 5",
    "read.options(url='jdbc:mysql://h/d?sslMode=maybe', dbtable='t').load()": "sslMode = maybe is not one of DISABLED",
    "read.options(url='jdbc:mysql://h/d?sslMode=VERIFY_CA', dbtable='t').load()": "nothing says by what",
    "read.options(url='jdbc:postgresql://h/d?sslmode=full', dbtable='t').load()": "sslmode = full is not one of disable",
    "read.options(url='jdbc:sqlite:', dbtable='t').load()": "names no file",
    "read.options(url='jdbc:sqlite:x', query='SELECT 1').load()": "of SQLite a table or view is read",
    "read.options(url='jdbc:sqlite:x', dbtable='(SELECT 1) x').load()": "of SQLite a table or view is read",
    "read.load('/some/path')": "takes no path",
    "read.schema('a INT').load()": "takes no schema()",
    "spark.read.jdbc('jdbc:postgresql://h/d', 't', predicates=['a'])": "filter() the frame",
    "spark.readStream.format('jdbc').load('x')": "not as a stream",
}  # fmt: skip


@pytest.mark.parametrize("code", WRONG)
def test_wrong_options_raise_at_the_call(code, spark):
    with pytest.raises((strandline.InvalidArgumentError, strandline.UnsupportedError)) as caught:
        eval(code, {"spark": spark, "read": spark.read.format("jdbc")})
    assert WRONG[code] in str(caught.value)


def test_the_text_holds_no_password():
    text = _jdbc.read_text({"url": "jdbc:postgresql://h/d?password=pa%24%24&ssl=false", "dbtable": "t"})
    assert text.startswith("read_jdbc(url => 'jdbc:postgresql://h/d?ssl=false', dbtable => 't', password => secret('jdbc_")
    name = text.split("'")[-2]
    assert _jdbc.kept[name] == "pa$$"
    again = _jdbc.read_text({"url": "jdbc:postgresql://h/d?ssl=false", "dbtable": "t", "password": "other"})
    assert again == text  # the same text whatever the password


def test_a_missing_extension_is_named(tmp_path):
    code = ("import strandline._extensions as e; e.extension_folders = lambda: ()\n"
            "import strandline; strandline.connect().sql(\"SELECT * FROM read_jdbc(url => 'jdbc:sqlite:x', dbtable => 't')\")")  # fmt: skip
    script = tmp_path / "a.py"
    script.write_text(code)
    import subprocess
    import sys

    done = subprocess.run([sys.executable, script], capture_output=True, text=True,
                          env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})  # fmt: skip
    assert "JDBC_EXTENSION_MISSING" in done.stderr and "pip install 'strandline[jdbc]'" in done.stderr, done.stderr
