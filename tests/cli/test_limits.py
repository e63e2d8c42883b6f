"""What the system refuses the program: an error that names it, and nothing left of the attempt."""

import resource

import pytest
from harness import SqlError, query

CREATE = """CREATE TABLE t (id BIGINT, s STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
            INSERT INTO t SELECT id, md5(CAST(id AS STRING)) FROM range(5000)"""
STATEMENTS = {
    # The limit, in bytes, lets a commit through but no file of data, or no vector.
    "insert": (8192, "INSERT INTO t SELECT id, md5(CAST(id AS STRING)) FROM range(10000, 40000)"),
    "delete": (512, "DELETE FROM t WHERE id % 2 = 0"),
    # Not even a commit.
    "commit": (64, "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')"),
}


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", STATEMENTS)
def test_limit_of_file_sizes(tmp_path, name):
    limit, statement = STATEMENTS[name]
    query(tmp_path, CREATE)
    folder = tmp_path / "main" / "default" / "t"
    before = files_of(folder)
    with pytest.raises(SqlError) as refused:
        query(tmp_path, statement, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    for word in ("[FILE_TOO_LARGE]", str(folder), "ulimit -f"):
        assert word in str(refused.value)
    assert files_of(folder) == before
    assert query(tmp_path, "SELECT count(*) AS n, sum(id) AS s FROM t") == [{"n": 5000, "s": 12497500}]
    query(tmp_path, statement)


def test_out_of_memory(tmp_path):
    with pytest.raises(SqlError) as refused:
        query(tmp_path, "SELECT collect_list(id) AS l FROM range(100000000)", arguments=["--memory-limit", "250MB"])
    for word in ("[OUT_OF_MEMORY]", "--memory-limit", "--threads"):
        assert word in str(refused.value)
