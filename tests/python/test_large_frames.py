"""createDataFrame of many rows goes through a file: the same rows, types and mistakes as through text."""

import datetime
from decimal import Decimal

import pytest

import strandline
from strandline import _large, _spark, _volumes

UTC = datetime.timezone.utc
SCHEMA = ("a TINYINT, b SMALLINT, c INT, d BIGINT, e DOUBLE, f STRING, g BOOLEAN, h DATE, i TIMESTAMP, j TIMESTAMP_NTZ, "
          "k DECIMAL(10,2), `l, m` DECIMAL(38,18)")  # fmt: skip
ROWS = [
    (1, -2, 3, 2**63 - 1, 0.1, "it's \"ü\" \\ \n\t", True, datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 5, UTC),
     datetime.datetime(1, 1, 1), Decimal("-1.50"), Decimal("12345678901234567890.123456789012345678")),
    (None,) * 12,
    (-128, -(2**15), -(2**31), -(2**63), float("inf"), "", False, datetime.date(1, 1, 1), datetime.datetime(2024, 1, 1, 12),
     datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), Decimal("0"), Decimal("1E+3")),
    (127, 2**15 - 1, 2**31 - 1, 0, float("-inf"), "null", None, None, None, None, Decimal("99999999.99"), None),
    (0, 0, 0, 0, -0.0, "1", None, None, datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5))), None,
     None, None),
    (0, 0, 0, 0, 5e-324, "a,b", None, None, None, None, None, None),
]  # fmt: skip


@pytest.fixture
def spark(warehouse, tmp_path):
    return _spark.SparkSession(lambda: warehouse, _volumes.Volumes(None, str(tmp_path)))


def both(spark, rows, schema, monkeypatch):
    """The rows through a file and through text."""
    monkeypatch.setattr(_large, "LARGE", 1)
    through_file = spark.createDataFrame(rows, schema=schema)
    monkeypatch.setattr(_large, "LARGE", 10**9)
    return through_file, spark.createDataFrame(rows, schema=schema)


def test_the_same_rows(spark, monkeypatch):
    a, b = both(spark, ROWS, SCHEMA, monkeypatch)
    assert "read_files" in repr(a) and "VALUES" in repr(b)
    assert a.dtypes == b.dtypes and repr(sorted(a.collect(), key=repr)) == repr(sorted(b.collect(), key=repr))
    nan = both(spark, [(float("nan"),)], "x DOUBLE", monkeypatch)
    assert [repr(frame.collect()) for frame in nan] == ["[Row(x=nan)]"] * 2


@pytest.mark.parametrize("value, type_", [("7", "INT"), (True, "INT"), (3, "DOUBLE"), (1.5, "INT"), ("a\0b", "STRING"),
                                          (Decimal("1.239"), "DECIMAL(10,2)"), ("2024-01-01", "DATE"), ([1], "ARRAY<INT>"), (b"x", "BINARY"),
                                          (1.5, "FLOAT")])  # fmt: skip
def test_what_must_be_cast_stays_text(value, type_, spark, monkeypatch):
    a, b = both(spark, [(value,)], f"x {type_}", monkeypatch)
    assert "VALUES" in repr(a)
    assert repr(a) == repr(b)


@pytest.mark.parametrize("values, type_", [([1, 2**40], "BIGINT"), ([1, 2.5], "DOUBLE"), ([1, Decimal("2.5")], "DECIMAL(5,1)"), ([1, "2"], "INT")])
def test_values_of_several_kinds(values, type_, spark):
    frame = spark.createDataFrame([(value,) for value in values], schema=f"x {type_}")
    assert [row.x for row in frame.orderBy("x").collect()] == [1, spark.sql(f"SELECT CAST('{values[1]}' AS {type_}) AS x").first().x]


def test_many_rows(spark, tmp_path):
    rows = [(i, f"name {i}", None if i % 3 else i / 7) for i in range(20_000)]
    frame = spark.createDataFrame(rows, schema="id INT, name STRING, x DOUBLE")
    assert frame.count() == 20_000 and frame.filter("id = 777").collect() == [(777, "name 777", 111.0)]
    folder = spark._files._folder.name
    spark._end()
    import os

    assert not os.path.exists(folder)


def test_snapshots_of_many_rows(pipeline, warehouse, tmp_path):
    folder = pipeline({"a.py": """
from pyspark import pipelines as dp

def next_snapshot(latest):
    number = 0 if latest is None else latest + 1
    if number < 3:
        return spark.createDataFrame([(i, f"v{number if i < 10 else 0}") for i in range(5000)], schema="id INT, v STRING"), number

dp.create_streaming_table("t")
dp.create_auto_cdc_from_snapshot_flow("t", next_snapshot, ["id"], 2)
"""})  # fmt: skip
    assert strandline.Pipeline(folder, warehouse=warehouse.path).run().flows[0].metrics["num_upserted_rows"] >= 5020
    assert warehouse.sql("SELECT count(*), count(__END_AT) FROM t").fetchall() == [(5020, 20)]
