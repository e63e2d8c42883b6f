"""Every Python block of the documents, run as printed from a file, or listed with the reason why not
yet. Placeholders are filled; each example is one pipeline."""

import harness
import pytest
import seed_blocks
import servers

import strandline
from strandline import _script

if not (harness.SHARED / "seeds").is_dir():
    pytest.skip(f"no documents at {harness.SHARED / 'seeds'} (STRANDLINE_SHARED names the folder)",
                allow_module_level=True)  # fmt: skip

BLOCKS = {block.id: block.text for block in seed_blocks.blocks()}

# Blocks that the tests below run.
RUN = {"000-1", "000-2", "000-3", "000-4", "000-5", "000-6", "000-7", "000-8", "000-9", "001-1", "002-1", "002-2", "004-1", "004-2", "004-3", "004-4", "004-5", "004-6", "004-7", "004-8"}

USERS_CDF = """
CREATE SCHEMA IF NOT EXISTS main.cdc_tutorial;
CREATE TABLE main.cdc_tutorial.users_cdf
AS SELECT col1 AS userId, col2 AS name, col3 AS city, col4 AS operation, col5 AS sequenceNum
FROM (VALUES
  (124, "Raul", "Oaxaca", "INSERT", 1), (123, "Isabel", "Monterrey", "INSERT", 1),
  (125, "Mercedes", "Tijuana", "INSERT", 2), (126, "Lily", "Cancun", "INSERT", 2),
  (123, null, null, "DELETE", 6), (125, "Mercedes", "Guadalajara", "UPDATE", 6),
  (125, "Mercedes", "Mexicali", "UPDATE", 5), (123, "Isabel", "Chihuahua", "UPDATE", 5){more});
"""


def run(folder, warehouse):
    return strandline.Pipeline(folder, warehouse=warehouse.path).run()


def test_every_block_is_run():
    assert set(BLOCKS) == RUN


OAXACA = [(1, "Oaxaca"), (2, "Monterrey"), (3, "Tijuana")]
CARMEL = [(2, "Carmel"), (3, "Los Angeles"), (4, "Death Valley"), (6, "Kings Canyon")]
BOTH_SNAPSHOTS = [
    (1, "Oaxaca", 0, 1), (2, "Carmel", 1, None), (2, "Monterrey", 0, 1), (3, "Los Angeles", 1, None),
    (3, "Tijuana", 0, 1), (4, "Death Valley", 1, None), (6, "Kings Canyon", 1, None)]  # fmt: skip


def test_snapshots_of_a_table(pipeline, warehouse):
    warehouse.sql("CREATE SCHEMA main.cdc_tutorial; CREATE TABLE main.cdc_tutorial.snapshot (userId INT, city STRING)")
    folder = pipeline({"a.py": BLOCKS["000-5"] + "\n" + BLOCKS["000-8"]})
    for rows in (OAXACA, CARMEL):
        values = ", ".join(str(row) for row in rows)
        warehouse.sql(f"INSERT OVERWRITE main.cdc_tutorial.snapshot VALUES {values}")
        run(folder, warehouse)
    assert sorted(warehouse.sql("SELECT * FROM target").fetchall(), key=str) == BOTH_SNAPSHOTS


def of_csv(rows):
    """CSV without inferSchema has STRING columns."""
    return sorted([(str(key), *rest) for key, *rest in rows], key=str)


def test_snapshots_of_files(pipeline, warehouse, tmp_path):
    (tmp_path / "in").mkdir()
    text = BLOCKS["000-6"].replace("<snapshot-path>", str(tmp_path / "in"))
    folder = pipeline({"a.py": text + "\n" + BLOCKS["000-8"]})
    for rows in (OAXACA, CARMEL):
        lines = "".join(f"{key},{city}\n" for key, city in rows)
        (tmp_path / "in" / "snapshot.csv").write_text("userId,city\n" + lines)
        run(folder, warehouse)
    assert sorted(warehouse.sql("SELECT * FROM target").fetchall(), key=str) == of_csv(BOTH_SNAPSHOTS)


def test_snapshots_of_another_database(pipeline, warehouse, postgres):
    text = BLOCKS["000-7"].replace("<jdbc-url>", postgres.url).replace("<table-name>", "users")
    text = text.replace("<username>", "me").replace("<password>", servers.PASSWORD)
    folder = pipeline({"a.py": text + "\n" + BLOCKS["000-8"]})
    postgres.run('CREATE TABLE users ("userId" int, city text)')
    for rows in (OAXACA, CARMEL):
        values = ", ".join(str(row) for row in rows)
        postgres.run(f"DELETE FROM users; INSERT INTO users VALUES {values}")
        run(folder, warehouse)
    assert sorted(warehouse.sql("SELECT * FROM target").fetchall(), key=str) == BOTH_SNAPSHOTS


def test_snapshots_of_a_function(pipeline, warehouse, tmp_path):
    """Two snapshots wait for the first update; the third comes after the fourth and is never asked for."""
    folder = tmp_path / "vols" / "main" / "cdc_tutorial" / "snapshots"
    folder.mkdir(parents=True)
    warehouse.sql("CREATE SCHEMA main.cdc_tutorial")

    def deliver(version, rows):
        lines = "".join(f"{key},{city}\n" for key, city in rows)
        (folder / f"snapshot_{version}.csv").write_text("userId,city\n" + lines)

    settings = "name: p\nconfiguration:\n  strandline.volumes: ../vols\nlibraries:\n- glob: {include: '*.py'}\n"
    flows = pipeline({"a.py": BLOCKS["000-9"], "spark-pipeline.yml": settings})
    deliver(1, OAXACA)
    deliver(2, CARMEL[:3])
    assert run(flows, warehouse).flows[0].metrics["num_input_rows"] == 6
    after_two = [
        (1, "Oaxaca", 1, 2), (2, "Carmel", 2, None), (2, "Monterrey", 1, 2), (3, "Los Angeles", 2, None),
        (3, "Tijuana", 1, 2), (4, "Death Valley", 2, None)]  # fmt: skip
    read = "SELECT * FROM main.cdc_tutorial.target_versioned"
    assert sorted(warehouse.sql(read).fetchall(), key=str) == of_csv(after_two)
    assert run(flows, warehouse).flows[0].metrics["num_input_rows"] == 0
    deliver(4, [(2, "Carmel"), (7, "Sedona")])
    run(flows, warehouse)
    deliver(3, [(9, "Never")])
    run(flows, warehouse)
    assert sorted(warehouse.sql(read).fetchall(), key=str) == of_csv(
        [(key, city, start, end if end or key == 2 else 4) for key, city, start, end in after_two]
        + [(7, "Sedona", 4, None)])  # fmt: skip


def test_sequence_by_struct(pipeline, warehouse):
    """The fragment, in the smallest call that holds it."""
    warehouse.sql("CREATE TABLE changes (id INT, v STRING, timestamp_col INT, id_col INT)")
    warehouse.sql("INSERT INTO changes VALUES (1, 'late', 1, 2), (1, 'first', 1, 1), (1, 'last', 2, 0)")
    call = "dp.create_auto_cdc_flow(target='t', source='changes', keys=['id'], sequence_by=sequence_by)"
    head = "from pyspark import pipelines as dp\nfrom pyspark.sql.functions import struct\ndp.create_streaming_table('t')\n"
    run(pipeline({"a.py": head + BLOCKS["000-1"] + call}), warehouse)
    assert [row[:2] for row in warehouse.sql("SELECT * FROM t").fetchall()] == [(1, "last")]


def test_scd_type_1(pipeline, warehouse):
    warehouse.sql(USERS_CDF.format(more=""))
    update = run(pipeline({"transformations/users.py": BLOCKS["000-2"]}), warehouse)
    assert sorted(warehouse.sql("SELECT * FROM users_current").fetchall()) == [
        (124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun")]  # fmt: skip
    assert update.flow("users_current").metrics["num_input_rows"] == 8


def test_scd_type_1_with_truncate(pipeline, warehouse):
    warehouse.sql(USERS_CDF.format(more=', (null, null, null, "TRUNCATE", 3)'))
    run(pipeline({"users.py": BLOCKS["000-2"]}), warehouse)
    assert warehouse.sql("SELECT * FROM users_current").fetchall() == [(125, "Mercedes", "Guadalajara")]


def test_scd_type_2(pipeline, warehouse):
    warehouse.sql(USERS_CDF.format(more=""))
    run(pipeline({"users.py": BLOCKS["000-3"]}), warehouse)
    assert sorted(warehouse.sql("SELECT * FROM users_history").fetchall(), key=lambda row: (row[0], row[3])) == [
        (123, "Isabel", "Monterrey", 1, 5), (123, "Isabel", "Chihuahua", 5, 6), (124, "Raul", "Oaxaca", 1, None),
        (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6),
        (125, "Mercedes", "Guadalajara", 6, None), (126, "Lily", "Cancun", 2, None)]  # fmt: skip


def test_scd_type_2_tracking_some_columns(pipeline, warehouse):
    warehouse.sql(USERS_CDF.format(more=""))
    run(pipeline({"users.py": BLOCKS["000-4"]}), warehouse)
    assert sorted(warehouse.sql("SELECT * FROM users_history").fetchall(), key=lambda row: (row[0], row[3])) == [
        (123, "Isabel", "Chihuahua", 1, 6), (124, "Raul", "Oaxaca", 1, None),
        (125, "Mercedes", "Guadalajara", 2, None), (126, "Lily", "Cancun", 2, None)]  # fmt: skip


@pytest.mark.parametrize("block", ["001-1", "002-1"])
def test_columns_to_update(block, pipeline, warehouse):
    warehouse.sql("CREATE TABLE cdc_source (id INT, a STRING, b STRING, sequenceNum INT, columnsToUpdate ARRAY<STRING>)")
    warehouse.sql("INSERT INTO cdc_source VALUES (1, 'a1', 'b1', 1, NULL), (1, NULL, NULL, 2, array('b'))")
    run(pipeline({"a.py": BLOCKS[block]}), warehouse)
    assert warehouse.sql("SELECT id, a, b FROM target").fetchall() == [(1, "a1", None)]


def test_bitemporal(pipeline, warehouse):
    run(pipeline({"a.py": BLOCKS["002-2"]}), warehouse)
    rows = warehouse.sql(
        "SELECT id, x, __START_AT, __END_AT, __SYSTEM_START_AT, __SYSTEM_END_AT FROM target_bitemporal").fetchall()
    assert sorted(rows, key=lambda row: (row[2], row[4])) == [
        (1, "x10", 10, None, 100, 200), (1, "x10", 10, 20, 200, None), (1, "x20", 20, None, 200, None)]  # fmt: skip
    # Once is once.
    again = run(pipeline({"a.py": BLOCKS["002-2"]}), warehouse)
    assert again.flow("load_cdc_source").metrics["num_input_rows"] == 0
    assert warehouse.sql("SELECT count(*) FROM cdc_source").fetchall() == [(2,)]


@pytest.fixture
def fed(warehouse):
    for table in ("myDeltaTable", "myTable", "filled"):
        warehouse.sql(f"CREATE TABLE {table} (id INT)")
        for i in range(12):
            warehouse.sql(f"INSERT INTO {table} VALUES ({i})")
    return warehouse


@pytest.mark.parametrize("block, ids", [("004-1", range(12)), ("004-6", range(10)), ("004-8", range(12))])
def test_reading_a_change_feed(block, ids, fed, tmp_path):
    script = tmp_path / "read.py"
    script.write_text(BLOCKS[block].replace("<table_name>", "filled"))
    rows = _script.run(script, fed).collect()
    assert sorted(row.id for row in rows) == list(ids)
    assert {row._change_type for row in rows} == {"insert"}
    # The program runs the file as it is.
    done = harness.call("python", "--warehouse", fed.path, script)
    assert done.returncode == 0, done.stderr


def test_reading_a_change_feed_between_timestamps(fed, tmp_path):
    """The table is younger than the documents' times, which its feed says."""
    script = tmp_path / "read.py"
    script.write_text(BLOCKS["004-7"])
    with pytest.raises(strandline.StrandlineError) as caught:
        _script.run(script, fed).collect()
    assert "2021-05-21" in str(caught.value)
    version = fed.table("myDeltaTable").history()
    times = [one.timestamp.isoformat(" ", "milliseconds")[:23] for one in version]
    script.write_text(BLOCKS["004-7"].replace("2021-04-21 05:45:46", times[5]).replace("2021-05-21 12:00:00", times[2]))
    assert sorted(row._commit_version for row in _script.run(script, fed).collect()) == [7, 8, 9, 10]


@pytest.mark.parametrize("block", ["004-2", "004-3"])
def test_streaming_a_change_feed(block, fed, pipeline, tmp_path):
    """The printed expression, as the source of a flow."""
    text = BLOCKS[block].replace("<table_name>", "filled").strip()
    code = f"from pyspark import pipelines as dp\n@dp.table\ndef copy():\n  return {text}.select('id', '_change_type')\n"
    run(pipeline({"a.py": code}), fed)
    assert sorted(fed.sql("SELECT * FROM copy").fetchall()) == [(i, "insert") for i in range(12)]


def test_archiving_a_change_feed(warehouse, tmp_path):
    """The archive block, twice; then the block that goes on from a version with a new checkpoint."""
    script = tmp_path / "archive.py"
    script.write_text(BLOCKS["004-4"].replace("<checkpoint-path>", repr(str(tmp_path / "checkpoint"))))
    warehouse.sql("CREATE TABLE source_table (id INT); INSERT INTO source_table VALUES (1), (2)")
    query = _script.run(script, warehouse)
    assert not query.isActive and query.lastProgress["num_input_rows"] == 2
    warehouse.sql("UPDATE source_table SET id = 3 WHERE id = 1")
    done = harness.call("python", "--warehouse", warehouse.path, script)
    assert done.returncode == 0, done.stderr
    read = "SELECT id, _change_type, _commit_version FROM target_table ORDER BY _commit_version, id, _change_type"
    archived = [(1, "insert", 1), (2, "insert", 1), (1, "update_preimage", 2), (3, "update_postimage", 2)]
    assert warehouse.sql(read).fetchall() == archived
    for i in range(3, 78):
        warehouse.sql(f"INSERT INTO source_table VALUES ({i + 100})")
    script.write_text(BLOCKS["004-5"].replace("<new-checkpoint-path>", str(tmp_path / "new")))
    done = harness.call("python", "--warehouse", warehouse.path, script)
    assert done.returncode == 0, done.stderr
    assert warehouse.sql(read).fetchall() == archived + [(176, "insert", 76), (177, "insert", 77)]
