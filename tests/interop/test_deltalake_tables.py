"""What deltalake writes, read by us at every version and changed by us; it reads what came of it and goes on."""

from dataclasses import dataclass, field

import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from harness import quote
from readers import Deltalake, Ours, assert_reads


def rows(sql):
    """Arrow data of a query, without a table. What a LEFT JOIN gives may be null, as the columns of most tables."""
    return QueryBuilder().execute(f"SELECT q.* FROM (SELECT 1 AS one) AS o LEFT JOIN ({sql}) AS q ON o.one = 1").read_all()


def numbers(first, last, g="'a'"):
    return rows(f"SELECT arrow_cast(value, 'Int64') AS id, arrow_cast({g}, 'Utf8') AS g FROM generate_series({first}, {last - 1}) AS s(value)")


@dataclass
class Written:
    name: str
    build: object  # of a path
    ours: list = field(default_factory=lambda: CHANGES_OF_OURS)
    goes_on: bool = True  # deltalake can write the table that we leave


CHANGES_OF_OURS = [
    "INSERT INTO {t} (id, g) VALUES (900, 'new'), (901, NULL)",
    "UPDATE {t} SET g = 'ours' WHERE id IN (2, 7)",
    "DELETE FROM {t} WHERE id = 5",
    "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (3, 'merged'), (902, 'merged') AS v(id, g)) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, s.g)",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} ADD COLUMNS (later STRUCT<x: INT, y: STRING>)",
    "INSERT INTO {t} (id, g, later) VALUES (903, 'n', named_struct('x', 1, 'y', 'z'))",
    "DELETE FROM {t} WHERE id = 900",
]
WITH_VECTORS = ["ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')", *CHANGES_OF_OURS]


def plain(path):
    write_deltalake(path, numbers(0, 10))
    write_deltalake(path, numbers(10, 20, "concat('g', value)"), mode="append")


def partitioned(path):
    write_deltalake(path, numbers(0, 10, "CASE value % 4 WHEN 0 THEN 'a/b=c' WHEN 1 THEN 'größe %' WHEN 2 THEN NULL ELSE 'x y' END"), partition_by=["g"])
    write_deltalake(path, numbers(20, 25, "'late'"), mode="append")


def changed(path):
    """Everything that deltalake can do to rows."""
    plain(path)
    table = DeltaTable(path)
    table.delete("id = 3")
    table.update(updates={"g": "'u'"}, predicate="id > 15")
    table.merge(numbers(18, 25, "'m'"), "t.id = s.id", source_alias="s", target_alias="t").when_matched_update_all() \
        .when_not_matched_insert_all().execute()
    table.optimize.compact()
    table.delete("id = 24")
    table.restore(4)
    write_deltalake(path, numbers(5, 6, "'twice'"), mode="append")


def checkpointed(path):
    for number in range(6):
        write_deltalake(path, numbers(number, number + 1), mode="append")
    table = DeltaTable(path)
    table.delete("id = 3")
    table.create_checkpoint()
    table.cleanup_metadata()
    write_deltalake(path, numbers(7, 9), mode="append")


def fed(path):
    write_deltalake(path, numbers(0, 10), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).update(updates={"g": "'u'"}, predicate="id < 4")


def constrained(path):
    plain(path)
    DeltaTable(path).alter.add_constraint({"small": "id < 1000"})


def ordered(path):
    plain(path)
    DeltaTable(path).optimize.z_order(["g", "id"])


def overwritten(path):
    plain(path)
    write_deltalake(path, rows("SELECT 1 AS id, 'x' AS g, 2.5 AS d"), mode="overwrite", schema_mode="overwrite")
    write_deltalake(path, rows("SELECT 2 AS id, 'y' AS g, CAST(NULL AS DOUBLE) AS d, 'more' AS e"), mode="append", schema_mode="merge")


TYPES = """SELECT arrow_cast({n}, 'Int64') AS id, arrow_cast('t', 'Utf8') AS g, {n} % 2 = 0 AS bo, arrow_cast({n}, 'Int8') AS ti, arrow_cast({n}, 'Int16') AS sm,
  arrow_cast({n}, 'Int32') AS i, arrow_cast({n} / 3.0, 'Float32') AS f, {n} / 7.0 AS d, arrow_cast('1234567890.{n}25', 'Decimal128(20, 3)') AS m,
  arrow_cast('00ff', 'Binary') AS bi, DATE '2024-02-29' AS da, arrow_cast('2024-02-29T12:30:00.123456Z', 'Timestamp(Microsecond, Some("UTC"))') AS ts,
  [1.5, NULL] AS ar, named_struct('x', {n}, 'y', named_struct('z', 'q')) AS st, [named_struct('q', [1, 2])] AS deep"""


def typed(path):
    write_deltalake(path, rows(TYPES.format(n=1)))
    write_deltalake(path, rows(TYPES.format(n=2)), mode="append")
    write_deltalake(path, rows("SELECT arrow_cast(3, 'Int64') AS id"), mode="append", schema_mode="merge")


TABLES = [
    Written("plain", plain), Written("plain_with_vectors", plain, WITH_VECTORS, goes_on=False),
    Written("partitioned", partitioned), Written("partitioned_with_vectors", partitioned, WITH_VECTORS, goes_on=False),
    Written("changed", changed), Written("checkpointed", checkpointed), Written("change_feed", fed), Written("constrained", constrained),
    Written("ordered", ordered), Written("overwritten", overwritten), Written("types", typed),
]


def versions(path):
    return sorted(int(commit.stem) for commit in (path / "_delta_log").glob("*.json") if commit.stem.isdigit())


@pytest.mark.parametrize("wanted", TABLES, ids=lambda wanted: wanted.name)
def test_deltalake_table(wanted, tmp_path):
    path = tmp_path / "t"
    wanted.build(str(path))
    table = f"delta.{quote(str(path))}"
    ours, theirs = Ours(tmp_path / "w"), Deltalake()
    assert_reads(ours, path, theirs.read(path)[1])
    for version in versions(path)[:-1]:
        assert_reads(ours, path, theirs.read(path, version)[1], version)
    before = versions(path)[-1]
    for statement in wanted.ours:
        ours.run(statement.replace("{t}", table))
        assert_reads(theirs, path, ours.read(path)[1])
    assert versions(path)[-1] >= before + 7, "most statements changed something"
    left = ours.read(path)[1]
    assert {"merged", "ours", "n"} & {row["g"] for row in left}
    if wanted.goes_on:
        write_deltalake(str(path), numbers(700, 703, "'theirs'"), mode="append", schema_mode="merge")
        DeltaTable(str(path)).delete("id = 701")
        after = theirs.read(path)[1]
        assert len(after) == len(left) + 2
        assert_reads(ours, path, after)
