"""DataFrames: each method gives what PySpark gives; what there is not says what there is."""

import datetime
from decimal import Decimal

import pytest

import strandline
from strandline import _imports, _spark, _volumes


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What user code sees."""
    folder = tmp_path_factory.mktemp("frames")
    warehouse = strandline.connect(folder / "warehouse")
    warehouse.sql("CREATE TABLE users AS SELECT * FROM VALUES (1,'a',10), (2,'b',20), (3,NULL,30) AS t(userId, name, amt)")
    warehouse.sql("CREATE TABLE orders AS SELECT * FROM VALUES (1, 5.5D), (1, 6.5D), (3, 7.5D) AS t(userId, price)")
    spark = _spark.SparkSession(lambda: warehouse, _volumes.Volumes(None, str(folder)))
    with _imports.resolving(spark):
        from pyspark.sql import Row, Window
        from pyspark.sql import functions as F

        yield {"spark": spark, "F": F, "Row": Row, "Window": Window, "col": F.col, "datetime": datetime,
               "Decimal": Decimal, "u": spark.read.table("users"), "o": spark.table("main.default.orders")}  # fmt: skip


def rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


SAME = {
    "u.select('userId', col('name').alias('nN')).filter('nN = \"a\"')": [(1, "a")],
    "u.select('*', F.lit(1).alias('one')).where(col('name').isNull())": [(3, None, 30, 1)],
    "u.selectExpr('userId + 1 AS x', 'upper(name) AS y').limit(9)": [(2, "A"), (3, "B"), (4, None)],
    "u.withColumn('x', F.expr('userId + 1')).withColumn('AMT', F.lit('z')).filter(u.userId == 1)": [(1, "a", "z", 2)],
    "u.withColumns({'a': col('amt') * 2, 'b': -col('amt')}).select('a', 'b').filter('a = 20')": [(20, -10)],
    "o.groupBy('userId').pivot('price', [5.5, 7.5]).count()": [(1, 1, 0), (3, 0, 1)],
    "o.groupBy('userId').pivot('price').sum('price').select('userId', '`6.5`')": [(1, 6.5), (3, None)],
    "u.groupBy().pivot('name', ['a', None]).agg(F.sum('amt').alias('s'), F.max('userId').alias('m')).select('a_s', 'a_m', 'null_s')":
        [(10, 1, 30)],
    "u.groupBy('name').agg({'amt': 'sum', '*': 'count'}).filter('name = \"a\"')": [("a", 10, 1)],
    "u.dropna()": [(1, "a", 10), (2, "b", 20)],
    "u.na.drop('all', subset=['name'])": [(1, "a", 10), (2, "b", 20)],
    "u.na.drop(thresh=3)": [(1, "a", 10), (2, "b", 20)],
    "o.union(spark.createDataFrame([(9, float('nan'))], 'userId INT, price DOUBLE')).dropna()": [(1, 5.5), (1, 6.5), (3, 7.5)],
    "u.fillna('?').filter('userId = 3')": [(3, "?", 30)],
    "u.na.fill({'name': 'x', 'amt': 0}).filter('userId = 3')": [(3, "x", 30)],
    "u.fillna(0)": [(1, "a", 10), (2, "b", 20), (3, None, 30)],
    "spark.createDataFrame([(None,), (float('nan'),), (1.5,)], 'x DOUBLE').na.fill(0)": [(0.0,), (0.0,), (1.5,)],
    "u.replace(['a', 'b'], ['x', None]).select('name')": [("x",), (None,), (None,)],
    "u.na.replace({10: 11, 30: 33}, subset=['amt']).select('amt')": [(11,), (20,), (33,)],
    "u.dropDuplicates(['userId']).union(u).dropDuplicates(['amt']).select('amt')": [(10,), (20,), (30,)],
    "o.dropDuplicates(['userId'])": [(1, 5.5), (3, 7.5)],
    "u.orderBy('userId').offset(1).limit(1).select('userId')": [(2,)],
    "u.orderBy('userId').limit(2).offset(1).select('userId')": [(2,)],
    "u.filter('userId = 1').unpivot('userId', ['amt', col('userId')], 'k', 'v')": [(1, "amt", 10), (1, "userId", 1)],
    "u.filter('userId = 2').select('userId', 'amt').melt(['userId'], None, 'k', 'v')": [(2, "amt", 20)],
    "u.select('userId').union(u.select('userId')).intersectAll(o.select('userId'))": [(1,), (1,), (3,)],
    "u.drop('name', 'nope')": [(1, 10), (2, 20), (3, 30)],
    "u.withColumnRenamed('name', 'n').select('n').distinct()": [("a",), ("b",), (None,)],
    "u.toDF('x', 'y', 'z').filter('x = 1').select('z')": [(10,)],
    "u.filter((col('amt') > 10) & ~col('userId').isin(3))": [(2, "b", 20)],
    "u.where(u.name.like('a%') | (u['amt'] == 30)).select('userId')": [(1,), (3,)],
    "u.join(o, 'userId', 'left').select('userId', 'price')": [(1, 5.5), (1, 6.5), (2, None), (3, 7.5)],
    "u.join(o, ['userId']).join(u.select('userId', col('amt').alias('again')), 'userId').select('price', 'again')":
        [(5.5, 10), (6.5, 10), (7.5, 30)],
    "u.join(o, u.userId == o.userId).select(u.userId, (o.price * 2).alias('p')).filter('p > 12')": [(1, 13.0), (3, 15.0)],
    "u.join(o, u.userId == o.userId, 'left_anti')": [(2, "b", 20)],
    "u.join(o, u.userId == o.userId, 'semi').select('userId')": [(1,), (3,)],
    "u.alias('a').join(u.alias('b'), F.expr('a.userId = b.userId + 1')).select('a.userId', col('b.name').alias('n'))":
        [(2, "a"), (3, "b")],
    "u.select('userId').join(u.select('userId', 'name'), 'userId').filter('userId = 1')": [(1, "a")],
    "u.join(u, 'userId').filter('userId = 2')": [(2, "b", 20, "b", 20)],
    "u.join(u, 'userId').join(u, 'userId').select('userId')": [(1,), (2,), (3,)],
    "u.join(u, 'userId', 'semi').select('userId')": [(1,), (2,), (3,)],
    "u.alias('x').filter('x.userId = 1').select('x.userId', col('x.name'))": [(1, "a")],
    "u.filter('userId > 1').alias('x').orderBy('x.amt').limit(1).select('x.amt').distinct()": [(20,)],
    "u.alias('x').alias('y').groupBy('y.name').agg(F.max('y.amt').alias('m')).filter('m > 10')": [("b", 20), (None, 30)],
    "u.select('userId').alias('x').withColumn('n', col('x.userId') + 1).filter('x.n = 2')": [(1, 2)],
    "spark.table('users').alias('x').join(o.alias('y'), 'userId').filter('x.amt > y.price AND y.price < 6').select('x.amt')":
        [(10,)],
    "u.crossJoin(o).select('price').distinct()": [(5.5,), (6.5,), (7.5,)],
    "u.join(o, 'userId').groupBy('name').agg(F.count('*').alias('c'), F.sum('price').alias('s'))": [("a", 2, 12.0), (None, 1, 7.5)],
    "o.groupBy('userId').count().filter('count > 1')": [(1, 2)],
    "o.groupBy(col('userId')).agg({'price': 'max', '*': 'count'})": [(1, 6.5, 2), (3, 7.5, 1)],
    "o.agg(F.max('price'), F.avg('price'))": [(7.5, 6.5)],
    "o.groupBy().sum('price')": [(19.5,)],
    "u.select('userId').union(o.select('userId')).dropDuplicates()": [(1,), (2,), (3,)],
    "u.unionByName(u.select('name', 'userId'), allowMissingColumns=True).filter('amt IS NULL').select('userId', 'name')":
        [(1, "a"), (2, "b"), (3, None)],
    "u.select('userId').intersect(o.select('userId'))": [(1,), (3,)],
    "u.select('userId').subtract(o.select('userId'))": [(2,)],
    "u.orderBy(col('amt').desc()).limit(1).select('userId')": [(3,)],
    "u.sort('amt', ascending=False).limit(2).orderBy('amt').limit(1).select('amt')": [(20,)],
    "u.select(F.when(col('amt') > 15, 'hi').otherwise('lo').alias('k')).distinct()": [("hi",), ("lo",)],
    "u.select(F.struct('userId', 'name').alias('s')).select('s.name', col('s.userId')).filter('userId = 1')": [("a", 1)],
    "o.withColumn('n', F.row_number().over(Window.partitionBy('userId').orderBy(F.desc('price')))).filter('n = 1').drop('n')":
        [(1, 6.5), (3, 7.5)],
    "spark.createDataFrame([([1, 2],)], ['a']).select(F.explode('a').alias('e'))": [(1,), (2,)],
    "spark.sql('SELECT * FROM users WHERE userId = 1;').select('name')": [("a",)],
    "(u.createOrReplaceTempView('uu'), spark.sql('WITH x AS (SELECT 1) SELECT count(*) FROM uu'))[1]": [(3,)],
    "u.transform(lambda f, n: f.filter(f.userId == n), 2).select('userId')": [(2,)],
    "u.select(col('amt').cast('string'), F.coalesce('name', F.lit('-')), F.concat_ws('/', 'name', col('amt').cast('string'))).limit(9)":
        [("10", "a", "a/10"), ("20", "b", "b/20"), ("30", "-", "30")],
    "u.select(F.to_date(F.lit('2026-01-31')).alias('d'), F.date_add(F.lit('2026-01-31').cast('date'), 1)).limit(1)":
        [(datetime.date(2026, 1, 31), datetime.date(2026, 2, 1))],
    "spark.range(2, 5)": [(2,), (3,), (4,)],
    "spark.read.option('versionAsOf', 0).table('users').select('userId')": [(1,), (2,), (3,)],
    "u.cache().repartition(4).persist().select('userId').limit(0)": [],
}  # fmt: skip


@pytest.mark.parametrize("code", SAME)
def test_methods(code, names):
    assert rows(eval(code, dict(names))) == sorted(SAME[code], key=repr)


def test_the_same_frame_is_the_same_text(names):
    code = "u.join(o, u.userId == o.userId).select(u.userId)._statement()"
    assert eval(code, dict(names)) == eval(code, dict(names))


CREATED = {
    "[(1, 'x', None)], 'id INT, s STRING, d DOUBLE'": [(1, "x", None)],
    "[Row(a=1, b=[1, 2], c={'k': 1.5})]": [(1, [1, 2], {"k": 1.5})],
    "[{'b': 'x', 'a': 1}, {'a': 2}]": [("x", 1), (None, 2)],
    "[{'a': 1}, {'a': 2, 'b': 'x'}, {'c': 1.5}]": [(1, None, None), (2, "x", None), (None, None, 1.5)],
    "[('7', ' 1.5', 'NaN')], 'a INT, b DECIMAL(3,1), c DOUBLE'": [(7, Decimal("1.5"), float("nan"))],
    "[(2**40, Decimal('1.50'), b'\\x00')], 'a: bigint, b: decimal(10,2), c: binary'": [(2**40, Decimal("1.50"), b"\x00")],
    "[(datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12))], 'd DATE, t TIMESTAMP_NTZ'":
        [(datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12))],
    "[((1, ['q']),), (None,)], 's STRUCT<x: INT, y: ARRAY<STRING>>'": [({"x": 1, "y": ["q"]},), (None,)],
    "[], 'a INT NOT NULL, `odd name` MAP<STRING, STRUCT<z: INT>>'": [],
    "[(\"it's \\\\ \\n\", True)], ['s', 'b']": [("it's \\ \n", True)],
    "[(float('nan'),), (float('-inf'),), (1e300,)], 'd DOUBLE'": [(1e300,), (float("-inf"),), (float("nan"),)],
    "[1, 2], 'int'": [(1,), (2,)],
    # Digits behind the scale are rounded half up, NaN is null.
    "[(Decimal(one),) for one in '1.235 -1.235 1.245 0.004 999.994 1e-90 NaN'.split()], 'd DECIMAL(5,2)'":
        [(Decimal(one),) for one in "1.24 -1.24 1.25 0.00 999.99 0.00".split()] + [(None,)],
    "[([Decimal('1.235'), Decimal('NaN')],)], 'd ARRAY<DECIMAL(5,2)>'": [([Decimal("1.24"), None],)],
    "[(1, None), (2, None)], 'a INT, b BINARY'": [(1, None), (2, None)],
    "[('a\\0b', {'\\0': 1}), (None, None)], 's STRING, m MAP<STRING, INT>'": [("a\0b", {"\0": 1}), (None, None)],
}  # fmt: skip


@pytest.mark.parametrize("arguments", CREATED)
def test_create_data_frame(arguments, names):
    found = rows(eval(f"spark.createDataFrame({arguments})", dict(names)))
    assert repr(found) == repr(sorted(CREATED[arguments], key=repr))


@pytest.mark.parametrize("schema, required", [
    ("a STRUCT<x: INT NOT NULL, y: STRING COMMENT 'q'>", False), ("a: STRUCT<`NOT NULL`: INT, y: STRING>  not  null comment 'x'", True),
    ("a STRUCT<x: INT, y: STRING> COMMENT 'is, they say, NOT NULL (or so'", False),
])  # fmt: skip
def test_what_a_schema_says_of_a_column(schema, required, names):
    create = names["spark"].createDataFrame
    assert tuple(create([((1, "q"),)], schema).first().a.values()) == (1, "q")
    if not required:
        assert create([(None,)], schema).collect() == [(None,)]
        return
    with pytest.raises(strandline.InvalidArgumentError, match="column a is NOT NULL"):
        create([(None,)], schema)


def test_create_from_pandas_and_arrow(names):
    import pandas
    import pyarrow

    spark = names["spark"]
    assert rows(spark.createDataFrame(pandas.DataFrame({"a": [1, 2], "b": ["x", None]}))) == [(1, "x"), (2, None)]
    frame = spark.createDataFrame(pandas.DataFrame({
        "n": pandas.array([1, None], "Int64"), "t": pandas.to_datetime(["2026-01-31 12:00:00.000001", None]),
        "none": pandas.array([None, None], "Int64"), "b": pandas.array([True, None], "boolean"),
    }))  # fmt: skip
    assert [type_ for _, type_ in frame.dtypes] == ["BIGINT", "TIMESTAMP", "BIGINT", "BOOLEAN"]
    time = datetime.datetime(2026, 1, 31, 12, 0, 0, 1, datetime.timezone.utc)
    assert rows(frame) == [(1, time, None, True), (None, None, None, None)]
    with pytest.raises(strandline.InvalidArgumentError, match="column t: .* has nanoseconds, and TIMESTAMP holds microseconds"):
        spark.createDataFrame(pandas.DataFrame({"t": pandas.to_datetime(["2026-01-31 12:00:00.000000001"])}))
    assert rows(spark.createDataFrame(pyarrow.table({"a": [1]}))) == [(1,)]


def test_actions(names, capsys):
    u = names["u"]
    assert u.count() == 3 and u.first().userId == 1 and u.columns == ["userId", "name", "amt"]
    assert u.orderBy("userId").take(1)[0]["name"] == "a" and not u.isEmpty() and u.head(2)[1].amt == 20
    assert u.schema.simpleString() == "struct<userId:int,name:string,amt:int>" or "userId" in str(u.schema)
    assert len(u.toPandas()) == 3 and u.toArrow().num_rows == 3 and "<table>" in u._repr_html_()
    seen = []
    u.foreach(lambda row: seen.append(row.amt))
    assert sorted(seen) == [10, 20, 30]
    u.filter("amt > 10").explain()
    assert "read 1 of 1" in capsys.readouterr().out
    u.printSchema()
    assert " |-- userId: int" in capsys.readouterr().out
    names["spark"].createDataFrame([(9,)], "id INT").write.mode("append").saveAsTable("made")
    names["spark"].createDataFrame([(8,)], "id INT").write.mode("append").saveAsTable("made")
    assert rows(names["spark"].table("made")) == [(8,), (9,)]
    names["spark"].sql("DROP TABLE made")
    assert "SELECT" in repr(u) and not u.isStreaming


def test_reading_files(names, tmp_path):
    spark = names["spark"]
    (tmp_path / "a.csv").write_text("id,name\n1,x\n2,\n")
    frame = spark.read.format("csv").option("header", True).load(str(tmp_path / "a.csv"))
    assert frame.dtypes == [("id", "STRING"), ("name", "STRING")] and rows(frame) == [("1", "x"), ("2", None)]
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    assert rows(spark.read.schema("id BIGINT").json(str(tmp_path / "a.json"))) == [(1,)]


WRONG = {
    "u.nosuch": (AttributeError, "the columns are userId, name, amt"),
    "u.sample(0.5)": (AttributeError, "DataFrame.sample is not supported; there are agg, alias,"),
    "u.fillna([1])": (TypeError, "value must be bool or int or float or str, not [1]"),
    "u.dropna(subset=['nope'])": (strandline.InvalidArgumentError, "there is no column nope; the columns are userId, name, amt"),
    "u.replace([1, 2], [3])": (ValueError, "value must have 2 values"),
    "u.unpivot(['userId', 'name', 'amt'], None, 'k', 'v')": (strandline.InvalidArgumentError, "no column to make rows of"),
    "u.groupBy('name').first()": (AttributeError, "there are agg, count, sum, avg, min, max, pivot"),
    "u.groupBy('name').pivot('amt', [10]).agg(F.sum('amt') + 1)": (strandline.UnsupportedError, "one aggregate a column"),
    "u.select(o.price)": (strandline.InvalidArgumentError, "belongs to another DataFrame"),
    "u.join(u, u.userId == u.userId)": (strandline.InvalidArgumentError, "AMBIGUOUS_COLUMN_REFERENCE"),
    "u.select(1)": (TypeError, "cols must be str or Column, not 1"),
    "u.join(o, 'userId', 'sideways')": (ValueError, "how must be one of 'inner'"),
    "u.unionByName(o)": (strandline.InvalidArgumentError, "allowMissingColumns=True"),
    "spark.streams": (AttributeError, "there are read, readStream, table"),
    "spark.read.format('xml').load('x')": (strandline.UnsupportedError, "csv, json, parquet, delta and (not as a stream) jdbc are"),
    "spark.read.option('nope', 1).table('users')": (strandline.InvalidArgumentError, "no option 'nope'"),
    "spark.read.option('readChangeFeed', 'true').table('users')": (strandline.InvalidArgumentError, "startingVersion"),
    "spark.read.table('nowhere').collect()": (strandline.NotFoundError, "nowhere"),
    "spark.readStream.table('users').collect()": (strandline.InvalidArgumentError, "STREAMING_READ_AS_BATCH"),
    "spark.createDataFrame([(1, 2)], ['a'])": (strandline.InvalidArgumentError, "has 2 values for the columns a"),
    "spark.createDataFrame([(300,)], 'a TINYINT')": (strandline.InvalidArgumentError, "column a: 300 (int) is out of the range of TINYINT"),
    "spark.createDataFrame([(2**70,)])": (strandline.InvalidArgumentError, "NUMERIC_VALUE_OUT_OF_RANGE"),
    "spark.createDataFrame([([1, -129],)], 'a ARRAY<TINYINT>')": (strandline.InvalidArgumentError, "-129 (int) is out of the range"),
    "spark.createDataFrame([(__import__('decimal').Decimal('1000'),)], 'a DECIMAL(5,2)')": (strandline.InvalidArgumentError, "out of the range of DECIMAL(5, 2)"),
    "spark.createDataFrame([(__import__('decimal').Decimal('999.995'),)], 'a DECIMAL(5,2)')": (strandline.InvalidArgumentError, "column a: Decimal('999.995') (Decimal) is out of the range of DECIMAL(5, 2)"),
    "spark.createDataFrame([([__import__('decimal').Decimal('1e30')],)], 'a ARRAY<DECIMAL(5,2)>')": (strandline.InvalidArgumentError, "out of the range of DECIMAL(5, 2)"),
    "spark.createDataFrame([(None,)], 'a INT NOT NULL')": (strandline.InvalidArgumentError, "column a is NOT NULL, and a row has None"),
    "spark.createDataFrame([((1, 2),)], 'a STRUCT<x: INT>')": (strandline.InvalidArgumentError, "give a dict, or a tuple of its 1 fields"),
    "spark.createDataFrame([(5,)], 'a STRUCT<x: INT>')": (strandline.InvalidArgumentError, "5 (int) is not a value of STRUCT<`x`: INT>"),
    "spark.createDataFrame([()])": (strandline.InvalidArgumentError, "the rows have no columns"),
    "spark.createDataFrame(5)": (TypeError, "data must be rows (a list of tuples, dicts or Rows, a pandas frame or Arrow data), not 5 (int)"),
    "spark.createDataFrame('abc', ['a'])": (TypeError, "data must be rows"),
    "spark.read.csv(5)": (TypeError, "path must be str or PathLike, not 5 (int)"),
    "spark.read.option('versionAsOf', 'x').table('o')": (strandline.InvalidArgumentError, "versionAsOf must be the number of a version, not 'x'"),
    "spark.createDataFrame([])": (strandline.InvalidArgumentError, "CANNOT_INFER_EMPTY_SCHEMA"),
    "spark.createDataFrame([(1,), ('x',)])": (strandline.InvalidArgumentError, "give a schema"),
    "spark.createDataFrame([('x',)], 'a INT')": (strandline.InvalidArgumentError, "column a: 'x' (str) is not a value of INT"),
    "col('amt').cast('strng')": (strandline.InvalidArgumentError, "cast('strng'): that is no type"),
    "list(u)": (TypeError, "collect() gives its rows"),
    "u.show('x')": (TypeError, "n must be int, not 'x'"),
    "u.first()['nope']": (KeyError, "the row has no 'nope'; there are userId, name, amt"),
    "u.filter(u.amt > 1 and u.userId)": (strandline.InvalidArgumentError, " amt > 1 is a column"),
    "F.udf(lambda x: x)": (strandline.UnsupportedError, "functions in Python are not supported"),
    "F.input_file_name()": (strandline.UnsupportedError, "_metadata.file_path"),
    "F.no_such_function('a')": (AttributeError, "expr('SQL')"),
    "u.filtr('userId > 1')": (AttributeError, "(did you mean filter?); the columns are userId, name"),
    "u.filtr": (AttributeError, "the methods are agg, alias, "),
    "u.cube": (AttributeError, "DataFrame.cube is not supported; there are agg, alias, "),
    "spark.read.table('later').filtr('a > 1')": (AttributeError, "DataFrame.filtr() is not supported (did you mean filter?)"),
    "u.limit(-1)": (ValueError, "num must be 0 or more, not -1 (int)"),
    "u.offset(-1)": (ValueError, "num must be 0 or more, not -1 (int)"),
    "u.tail(-1)": (ValueError, "num must be 0 or more, not -1 (int)"),
    "u.withColumn('x', 1)": (TypeError, "must be Column, not 1"),
    "u.filter((u.userId > 1) and (col('amt') < 5))": (strandline.InvalidArgumentError, "write '&' for 'and'"),
    "u.filter(1 < col('amt') < 5)": (strandline.InvalidArgumentError, "CANNOT_CONVERT_COLUMN_INTO_BOOL"),
    "u.filter(not u.amt)": (strandline.InvalidArgumentError, "'~' for 'not'"),
}


@pytest.mark.parametrize("code", WRONG)
def test_what_there_is_not(code, names):
    kind, message = WRONG[code]
    with pytest.raises(kind) as caught:
        eval(code, dict(names))
    assert message in str(caught.value)


def test_python_floats_are_doubles(names):
    F, one = names["F"], names["u"].filter("userId = 1")
    frame = one.select(
        F.lit(2.5), F.lit(-0.5), F.lit(float("inf")), F.lit(1e300), F.col("amt") / 0.3, F.when(F.col("amt") == 1.0, 1.5).otherwise(0.25),
        F.lit(Decimal("2.50")))  # fmt: skip
    assert [kind for _, kind in frame.dtypes] == ["DOUBLE"] * 6 + ["DECIMAL(3,2)"]
    assert tuple(frame.collect()[0]) == (2.5, -0.5, float("inf"), 1e300, 10 / 0.3, 0.25, Decimal("2.50"))
    assert frame.columns[:2] == ["2.5", "-0.5"]


def test_values_are_no_configuration(names):
    spark, F = names["spark"], names["F"]
    spark.conf.set("env", "prod")
    frame = spark.createDataFrame([("${env}", {"it's": "\\${env}"})], "a STRING, m MAP<STRING, STRING>")
    got = frame.filter(F.col("a") == "${env}").select("a", "m", F.lit("${none}"), F.expr("'${env}'")).collect()
    assert [tuple(row) for row in got] == [("${env}", {"it's": "\\${env}"}, "${none}", "prod")]


@pytest.mark.parametrize("count", [1, 3000])
def test_names_are_no_configuration(count, names):
    spark, F = names["spark"], names["F"]
    spark.conf.set("env", "prod")
    frame = spark.createDataFrame([(1, "x")] * count, "`a${env}` INT, `${none}` STRING")
    frame = frame.withColumn("b${env}", F.col("`a${env}`") + 1).withColumnRenamed("${none}", "c${env}").distinct()
    assert frame.columns == ["a${env}", "c${env}", "b${env}"]
    assert rows(frame.filter(frame["a${env}"] == 1).groupBy("`c${env}`").agg(F.max("`b${env}`").alias("m${env}"))) == [("x", 2)]
    assert rows(frame.unpivot("`c${env}`", ["`a${env}`"], "k", "v")) == [("x", "a${env}", 1)]
    assert frame.drop("`b${env}`").toDF("${a}", "b").columns == ["${a}", "b"]


def test_struct_fields_are_no_configuration(names):
    spark, Row = names["spark"], names["Row"]
    spark.conf.set("env", "prod")
    for frame in (spark.createDataFrame([({"${env}": 1},)], "s STRUCT<`${env}`: INT>"),
                  spark.createDataFrame([Row(s=Row("${env}")(1))])):  # fmt: skip
        assert rows(frame.select("s.`${env}`", "s")) == [(1, {"${env}": 1})]


def test_tables_are_no_configuration(names, tmp_path):
    warehouse = strandline.connect(tmp_path / "warehouse")
    spark = _spark.SparkSession(lambda: warehouse, _volumes.Volumes(None, str(tmp_path)))
    spark.conf.set("env", "prod")
    spark.createDataFrame([(1,)], "id INT").write.saveAsTable("`t${env}`")
    spark.sql("CREATE TABLE u${env} AS SELECT '${env}' AS v")
    assert rows(spark.read.table("`t${env}`")) == [(1,)] and rows(spark.table("uprod")) == [("prod",)]
    assert sorted(row.tableName for row in spark.sql("SHOW TABLES").collect()) == ["t${env}", "uprod"]
    table = warehouse.table("`t${env}`")
    assert table.rows().fetchall() == [(1,)] and len(table.changes(0).fetchall()) == 1
    assert [batch.fetchall()[0][:2] for batch in table.change_batches()] == [(1, "insert")]
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 0).table("`t${env}`")
    assert [row._change_type for row in feed.collect()] == ["insert"]


def test_columns_show_as_sql(names):
    u, F = names["u"], names["F"]
    shown = [u.userId, u["odd name"], (u.amt > 5) & ~F.col("name").isNull(), F.upper("name").alias("n"), F.col("a").astype("int")]
    assert [repr(one) for one in shown] == [
        "Column<'userId'>", "Column<'`odd name`'>", "Column<'(amt > 5 AND NOT (name IS NULL))'>", "Column<'UPPER(name) AS n'>",
        "Column<'CAST(a AS INT)'>"]  # fmt: skip


def test_names_resolve_only_inside(names):
    import sys

    ours = sys.modules["pyspark"]
    with _imports.resolving(names["spark"]):
        import pyspark

        assert pyspark is not ours and pyspark.__version__
        with pytest.raises(ModuleNotFoundError, match="there are dlt, pyspark"):
            import pyspark.ml
        assert pyspark.sql.functions is sys.modules["pyspark.sql.functions"] and pyspark.errors.PySparkException
        assert pyspark.sql.utils.AnalysisException is pyspark.errors.AnalysisException
        with pytest.raises(AttributeError, match="'pyspark' has no attribute 'ml'"):
            pyspark.ml
        for wrong in ("SELECT nope FROM users", "SELECT * FROM nowhere", "SELEC 1"):
            with pytest.raises(pyspark.errors.AnalysisException):
                names["spark"].sql(wrong).collect()
    assert sys.modules["pyspark"] is ours


@pytest.fixture
def stream(tmp_path):
    warehouse = strandline.connect(tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE s (id INT); INSERT INTO s VALUES (1)")
    spark = _spark.SparkSession(lambda: warehouse, _volumes.Volumes(None, str(tmp_path)))
    return spark, warehouse, spark.readStream.table("s").filter("id > 0")


def test_a_stream_that_goes_on(stream, tmp_path):
    spark, warehouse, frame = stream
    writer = frame.writeStream.format("delta").outputMode("append").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(processingTime="100 milliseconds").toTable("copy")
    query.processAllAvailable()
    assert warehouse.sql("SELECT * FROM copy").fetchall() == [(1,)] and query.isActive
    warehouse.sql("INSERT INTO s VALUES (2)")
    query.processAllAvailable()
    query.stop()
    assert sorted(warehouse.sql("SELECT * FROM copy").fetchall()) == [(1,), (2,)] and not query.isActive
    # The same checkpoint goes on, for this table alone.
    warehouse.sql("INSERT INTO s VALUES (3)")
    writer.trigger(availableNow=True).toTable("main.default.copy").awaitTermination()
    assert sorted(warehouse.sql("SELECT * FROM copy").fetchall()) == [(1,), (2,), (3,)]
    with pytest.raises(strandline.InvalidArgumentError, match="belongs to a stream into main.default.copy"):
        writer.toTable("other")


def test_wrong_streams(stream, tmp_path):
    spark, warehouse, frame = stream
    with pytest.raises(strandline.InvalidArgumentError, match="checkpointLocation"):
        frame.writeStream.toTable("t")
    with pytest.raises(strandline.UnsupportedError, match="appended"):
        frame.writeStream.outputMode("complete")
    with pytest.raises(strandline.InvalidArgumentError, match="'10 seconds'"):
        frame.writeStream.trigger(processingTime="soon")
    with pytest.raises(AttributeError, match="foreachBatch is not supported"):
        frame.writeStream.foreachBatch(print)
    with pytest.raises(strandline.InvalidArgumentError, match="WRITE_STREAM_NOT_ALLOWED"):
        spark.read.table("s").writeStream
    warehouse.sql("CREATE TABLE mine (id INT)")
    query = frame.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(once=True).toTable("mine")
    with pytest.raises(strandline.UpdateError, match="mine"):
        query.awaitTermination()
    assert query.exception() is not None
