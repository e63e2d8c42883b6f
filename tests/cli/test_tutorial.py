"""The documents' tutorial gives the documents' rows, before and after a late and repeated batch."""

import subprocess

import pytest

from program import PROGRAM, ROOT, TUTORIAL, environment, run, sql, start

CURRENT = "SELECT * FROM users_current ORDER BY userId"
HISTORY = "SELECT * FROM users_history ORDER BY userId, __START_AT"

EXAMPLES = {
    "users_current": (
        "users_current", "create.sql", CURRENT,
        [(124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun")],
        [(124, "Raul", "Puebla"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun")],
    ),
    "users_current with TRUNCATE": (
        "users_current", "create_with_truncate.sql", CURRENT,
        [(125, "Mercedes", "Guadalajara")],
        [(124, "Raul", "Puebla"), (125, "Mercedes", "Guadalajara")],
    ),
    "users_history": (
        "users_history", "create.sql", HISTORY,
        [
            (123, "Isabel", "Monterrey", 1, 5), (123, "Isabel", "Chihuahua", 5, 6),
            (124, "Raul", "Oaxaca", 1, None),
            (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6),
            (125, "Mercedes", "Guadalajara", 6, None),
            (126, "Lily", "Cancun", 2, None),
        ],
        [
            (123, "Isabel", "Monterrey", 1, 3), (123, "Isabel", "Saltillo", 3, 5),
            (123, "Isabel", "Chihuahua", 5, 6),
            (124, "Raul", "Oaxaca", 1, 4), (124, "Raul", "Puebla", 4, None),
            (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6),
            (125, "Mercedes", "Guadalajara", 6, None),
            (126, "Lily", "Merida", 1, 2), (126, "Lily", "Cancun", 2, None),
        ],
    ),
    "users_history of all but city": (
        "users_history_except_city", "create.sql", HISTORY,
        [
            (123, "Isabel", "Chihuahua", 1, 6), (124, "Raul", "Oaxaca", 1, None),
            (125, "Mercedes", "Guadalajara", 2, None), (126, "Lily", "Cancun", 2, None),
        ],
        [
            (123, "Isabel", "Chihuahua", 1, 6), (124, "Raul", "Puebla", 1, None),
            (125, "Mercedes", "Guadalajara", 2, None), (126, "Lily", "Cancun", 1, None),
        ],
    ),
}


def load(warehouse, name):
    done = start("sql", "--warehouse", warehouse, "-f", TUTORIAL / "data" / name)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example, tmp_path):
    pipeline, data, query, first, second = EXAMPLES[example]
    warehouse = tmp_path / "warehouse"
    rows = lambda: [tuple(row.values()) for row in sql(warehouse, query)]

    load(warehouse, data)
    report = run(TUTORIAL / pipeline, "--warehouse", warehouse)
    assert report["status"] == "COMPLETED"
    assert rows() == first

    load(warehouse, "late_batch.sql")
    report = run(TUTORIAL / pipeline, "--warehouse", warehouse)
    assert report["flows"][0]["metrics"]["num_input_rows"] == 4
    assert rows() == second

    report = run(TUTORIAL / pipeline, "--warehouse", warehouse)
    assert report["flows"][0]["metrics"]["num_input_rows"] == 0
    assert rows() == second


def test_demo_runs_twice(tmp_path):
    for _ in range(2):
        done = subprocess.run(
            [TUTORIAL / "demo.sh"], text=True, capture_output=True, timeout=300,
            env=environment(STRANDLINE=str(PROGRAM.resolve()), DEMO_DIR=str(tmp_path / "demo")),
        )
        assert done.returncode == 0, done.stdout + done.stderr
    # The README shows what the demo prints.
    printed = set(done.stdout.splitlines())
    shown = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|  ")]
    assert len(shown) > 30 and [line for line in shown if line not in printed] == []
