"""Updates under a clock that was put back, as time servers and suspended machines do."""

import os
import subprocess

import pytest
from harness import query, run_pipeline, sql_text

SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec* out) {
  int (*real)(clockid_t, struct timespec*) = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(id, out);
  if (id == CLOCK_REALTIME) out->tv_sec += atol(getenv("CLOCK_SHIFT_SECONDS"));
  return result;
}
"""


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """The environment of a program whose clock is off by a number of seconds."""
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(SHIFTED_CLOCK)
    library = folder / "clock.so"
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-o", library, folder / "clock.c", "-ldl"], check=True)
    return lambda seconds: {"LD_PRELOAD": str(library), "CLOCK_SHIFT_SECONDS": str(seconds)}


def test_snapshots_by_time_go_on_after_the_clock_went_back(tmp_path, shifted):
    warehouse, pipeline = tmp_path / "w", tmp_path / "p"
    pipeline.mkdir()
    (pipeline / "t.sql").write_text("""
CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.cdc.snapshot.version' = 'timestamp');
CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (source) KEYS (k) STORED AS SCD TYPE 2;""")
    sql_text(warehouse, "CREATE TABLE source AS SELECT 1 AS k, 'first' AS v")
    runs = [run_pipeline(pipeline, warehouse)]
    for value, shift in [("an hour back", -3600), ("a day back", -86400), ("right again", 0)]:
        sql_text(warehouse, f"UPDATE source SET v = '{value}'")
        runs.append(run_pipeline(pipeline, warehouse, env=shifted(shift)))
    for run in runs:
        assert run.ok, run.explain()
        assert run.report.get("warnings", []) == []
    rows = query(warehouse, """SELECT v, __END_AT IS NULL AS open,
        unix_micros(__START_AT) - lag(unix_micros(__START_AT)) OVER (ORDER BY __START_AT) AS micros FROM t ORDER BY __START_AT""")
    assert [row["v"] for row in rows] == ["first", "an hour back", "a day back", "right again"]
    assert [row["open"] for row in rows] == [False, False, False, True]
    # The first instants after the latest version, while the clock is behind it.
    assert [row["micros"] for row in rows][1:3] == [1, 1]
    assert rows[3]["micros"] > 1
