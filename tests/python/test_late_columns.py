"""Methods of frames that go by the columns there are, in pipelines whose updates add columns on the way."""

import json

import pytest

import strandline

HEAD = "from pyspark import pipelines as dp\nfrom pyspark.sql.functions import *\n"

# A table of files, and everything else made of it in the same update.
BASE = """
dp.create_streaming_table("base")
@dp.append_flow(target="base")
def load():
    return spark.readStream.format("json").load("{files}")
"""


class Files:
    def __init__(self, folder):
        self._folder = folder
        folder.mkdir()
        self._count = 0

    def add(self, **values):
        self._count += 1
        (self._folder / f"{self._count}.json").write_text(json.dumps(values) + "\n")


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "files")


@pytest.fixture
def run(pipeline, warehouse, tmp_path, files):
    def once(code, **options):
        folder = pipeline({"a.py": HEAD + BASE.format(files=tmp_path / "files") + code})
        return strandline.Pipeline(folder, warehouse=warehouse.path).run(**options)

    return once


def table(warehouse, name):
    """Its rows as dicts, without what SCD type 2 adds."""
    result = warehouse.sql(f"SELECT * FROM {name} ORDER BY 1")
    return [dict(zip(result.columns, row)) for row in result]


# What is done with a row of base, and what row 2, which brings a column e, becomes.
CHANGES = {
    "df.withColumn('z', col('id') + 1)": {"id": 2, "s": 1, "e": 5, "z": 3},
    "df.withColumn('ID', col('id') * 10).withColumn('q', col('id') + 1)": {"ID": 20, "s": 1, "e": 5, "q": 21},
    "df.withColumns({'a': df.id, 'S': col('s') + 0})": {"id": 2, "S": 1, "e": 5, "a": 2},
    "df.withColumnRenamed('id', 'key')": {"key": 2, "s": 1, "e": 5},
    "df.withColumnRenamed('no', 'key').drop('no')": {"id": 2, "s": 1, "e": 5},
    "df.withColumn('z', lit(1)).drop('z', 's').select('*').withColumnRenamed('id', 'i')": {"i": 2, "e": 5},
    "df.select('*', (col('id') + 1).alias('n')).drop(df.s)": {"id": 2, "e": 5, "n": 3},
    "df.fillna(7)": {"id": 2, "s": 1, "e": 5},
    "df.fillna({'s': 9}).replace(5, 6)": {"id": 2, "s": 1, "e": 6},
    "df.filter('id > 0').na.drop(subset=['id'])": {"id": 2, "s": 1, "e": 5},
    "df.withColumn('x', explode(array('id'))).filter(col('x') == col('id'))": {"id": 2, "s": 1, "e": 5, "x": 2},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_column_that_the_update_adds(change, run, files, warehouse):
    """The first update has no table to ask for columns, the second adds one to it."""
    code = f"""
@dp.temporary_view
def v():
    df = spark.readStream.table("base")
    return {change}
@dp.temporary_view
def whole():
    df = spark.read.table("base")
    return {change}
@dp.table
def added():
    return spark.readStream.table("v")
@dp.materialized_view
def computed():
    df = spark.read.table("base")
    return {change}
"""
    expected = CHANGES[change]
    key, sequence = list(expected)[0], list(expected)[1] if "e" != list(expected)[1] else list(expected)[0]
    code += f"""
dp.create_streaming_table("cdc")
dp.create_auto_cdc_flow("cdc", "v", ["{key}"], "{sequence}")
dp.create_streaming_table("snapshots")
dp.create_auto_cdc_from_snapshot_flow("snapshots", "whole", ["{key}"])
"""
    files.add(id=1, s=1)
    run(code)
    files.add(id=2, s=1, e=5)
    run(code)
    for name in ("added", "cdc", "snapshots", "computed"):
        rows = [row for row in table(warehouse, name) if row["e"] in (5, 6)]
        assert rows == [expected], name
        assert sorted(rows[0]) == sorted(expected), name
    # Rows of before lack it, or have what fills it.
    (before,) = [row for row in table(warehouse, "computed") if row["e"] not in (5, 6)]
    assert before["e"] == (7 if change == "df.fillna(7)" else None)


def test_a_replaced_column_keeps_its_place(run, files, warehouse):
    files.add(a="x", b=2.5, c=True)
    run("""
@dp.materialized_view
def m():
    return spark.read.table("base").withColumn("n", lit(1)).withColumn("A", upper("a"))
@dp.materialized_view
def named():
    return spark.read.table("base").toDF("x", "y", "z")
""")
    assert list(table(warehouse, "m")[0].items()) == [("A", "X"), ("b", 2.5), ("c", True), ("n", 1)]
    assert table(warehouse, "named") == [{"x": "x", "y": 2.5, "z": True}]


def test_sides_by_name_and_rows_that_are_one(run, files, warehouse):
    code = """
@dp.materialized_view
def both():
    base = spark.read.table("base")
    return base.unionByName(base.select((col("id") + 10).alias("id")), allowMissingColumns=True)
@dp.materialized_view
def one():
    return spark.read.table("both").dropDuplicates(["s"])
@dp.materialized_view
def without_nulls():
    return spark.read.table("both").dropna()
@dp.materialized_view
def some():
    return spark.read.table("both").dropna("all", subset=["s", "id"]).na.drop(thresh=2)
"""
    files.add(id=1, s="a")
    run(code)
    files.add(id=2, s="a", e=[5])
    run(code)
    first, second = {"id": 1, "s": "a", "e": None}, {"id": 2, "s": "a", "e": [5]}
    assert table(warehouse, "both") == [first, second] + [{"id": n, "s": None, "e": None} for n in (11, 12)]
    assert table(warehouse, "one") == [first, {"id": 11, "s": None, "e": None}]
    assert table(warehouse, "without_nulls") == [second]
    assert table(warehouse, "some") == [first, second]


WRONG = {
    "df.withColumn('z', col('nope') + 1)": ("UNRESOLVED_COLUMN", "nope"),
    "df.drop('s').withColumn('z', col('s'))": ("UNRESOLVED_COLUMN", "s"),
    "df.fillna(1, subset=['nope'])": ("UNRESOLVED_COLUMN", "nope"),
    "df.dropna(subset='nope')": ("UNRESOLVED_COLUMN", "nope"),
    "df.select(df.nope)": ("UNRESOLVED_COLUMN", "nope"),
    "df.toDF('a')": ("NUM_COLUMNS_MISMATCH", "the frame has 2 columns, not 1"),
    "df.withColumnRenamed('s', 'ID')": ("COLUMN_ALREADY_EXISTS", "'ID'"),
    "df.alias('a').join(df.alias('b'), expr('a.id = b.id')).withColumn('z', lit(1))": ("AMBIGUOUS_REFERENCE", "2 columns 'id'"),
}


@pytest.mark.parametrize("change", WRONG)
def test_mistakes_are_told(change, run, files):
    code, message = WRONG[change]
    files.add(id=1, s=1)
    update = run(f"@dp.materialized_view\ndef m():\n    df = spark.read.table('base')\n    return {change}\n", check=False)
    assert not update.ok
    (error,) = update.errors
    assert error.code == code and message in error.message and error.place.line == 8, (error, error.place)


def test_frames_of_scripts_print_what_they_are(warehouse):
    """Outside of pipelines, too, columns are those of the time when the rows are read."""
    from strandline._spark import SparkSession
    from strandline._volumes import Volumes

    spark = SparkSession(lambda: warehouse, Volumes(None, "."))
    warehouse.sql("CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    frame = spark.table("t").drop("nope").fillna("-").orderBy("id")
    warehouse.sql("ALTER TABLE t ADD COLUMN w STRING")
    assert [tuple(row) for row in frame.collect()] == [(1, "a", "-"), (2, "-", "-")]
