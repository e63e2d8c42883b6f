"""What Spark with Delta writes, read by us at every version and changed by us."""

import pytest
from harness import SqlError, quote
from readers import Ours, assert_reads
from spark_tables import TABLES


@pytest.fixture
def written(spark, tmp_path):
    def build(wanted):
        path = tmp_path / "t"
        table = f"delta.{quote(str(path))}"
        for key, value in wanted.settings.items():
            spark.session.conf.set(key, value)
        try:
            spark.run(*(statement.replace("{t}", table).replace("{{", "{").replace("}}", "}") for statement in wanted.statements))
        finally:
            for key in wanted.settings:
                spark.session.conf.unset(key)
        return path, table

    return build


def versions(path):
    return sorted(int(commit.stem) for commit in (path / "_delta_log").glob("*.json") if commit.stem.isdigit())


@pytest.mark.parametrize("wanted", TABLES, ids=lambda table: table.name)
def test_spark_table(spark, written, wanted, tmp_path):
    path, table = written(wanted)
    ours = Ours(tmp_path / "w")
    if wanted.we_refuse:
        with pytest.raises(SqlError, match=wanted.we_refuse):
            ours.read(path)
        return
    latest = spark.read(path)[1]
    assert latest
    assert_reads(ours, path, latest)
    for version in versions(path)[-4:-1]:
        assert_reads(ours, path, spark.read(path, version)[1], version)
    for statement in wanted.ours:
        before = spark.row_ids(path, wanted.key) if wanted.key else {}
        ours.run(statement.replace("{t}", table))
        rows = ours.read(path)[1]
        assert_reads(spark, path, rows)
        if wanted.key:
            after = spark.row_ids(path, wanted.key)
            kept = set(before) & set(after)
            assert kept and {key: before[key][0] for key in kept} == {key: after[key][0] for key in kept}
            assert len({id for id, _ in after.values()}) == len(after), "row ids repeat"
            changed = {key for key in kept if before[key] != after[key]}
            assert all(after[key][1] == versions(path)[-1] for key in changed)
            assert changed == ({2, 7} & kept if statement.startswith("UPDATE") else set())
    if wanted.name != "append_only":  # Spark goes on with what we left
        column = next(iter(rows[0]))
        spark.run(f"DELETE FROM {table} WHERE {column} IN (2, 900)" if wanted.key else f"DELETE FROM {table} WHERE false")
        assert_reads(ours, path, spark.read(path)[1])
