"""The contract of `strandline sql`, and of the commands beside run."""

import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from program import PROGRAM, environment, sql, start

VALUES = """
SELECT
  CAST(1 AS TINYINT) AS tiny, 9007199254740993 AS big, CAST(1.50 AS DECIMAL(10,2)) AS money,
  CAST('NaN' AS DOUBLE) AS nan, CAST(0.5 AS DOUBLE) AS half, true AS yes,
  TIMESTAMP'2024-02-29 12:30:00' AS instant, TIMESTAMP_NTZ'2024-02-29 12:30:00' AS wall,
  DATE'2024-02-29' AS day, X'00FF10' AS bytes, named_struct('a', 1, 'b', array('x', null)) AS pair,
  map('k', 2) AS pairs, CAST(NULL AS STRING) AS nothing, 'comma, "quote" | bar' AS text
"""


def test_json_forms(tmp_path):
    assert sql(tmp_path / "w", VALUES) == [
        {
            "tiny": 1, "big": 9007199254740993, "money": "1.50", "nan": "NaN", "half": 0.5, "yes": True,
            "instant": "2024-02-29T12:30:00Z", "wall": "2024-02-29T12:30:00", "day": "2024-02-29",
            "bytes": "AP8Q", "pair": {"a": 1, "b": ["x", None]}, "pairs": {"k": 2}, "nothing": None,
            "text": 'comma, "quote" | bar',
        }
    ]


def test_formats(tmp_path):
    query = "SELECT * FROM VALUES (1, 'a|b'), (22, NULL) AS t(id, name) ORDER BY id"
    assert sql(tmp_path, query, "csv") == "id,name\n1,a|b\n22,\n"
    assert sql(tmp_path, query, "ndjson") == '{"id":1,"name":"a|b"}\n{"id":22,"name":null}\n'
    table = sql(tmp_path, query, "table")
    assert [line for line in table.splitlines() if "a|b" in line and "1" in line]
    markdown = sql(tmp_path, query, "markdown").splitlines()
    assert re.fullmatch(r"\|\s*id\s*\|\s*name\s*\|", markdown[0])
    assert r"a\|b" in markdown[2]


def test_statements_come_from_c_f_and_stdin(tmp_path):
    warehouse = tmp_path / "w"
    script = tmp_path / "s.sql"
    script.write_text("CREATE TABLE t (a INT); -- a comment; with a semicolon\nINSERT INTO t VALUES (1)")
    assert start("sql", "--warehouse", warehouse, "-f", script).returncode == 0
    piped = start("sql", "--warehouse", warehouse, "--format", "csv", stdin="SELECT a FROM t")
    assert (piped.returncode, piped.stdout) == (0, "a\n1\n")
    dash = start("sql", "--warehouse", warehouse, "--format", "csv", "-f", "-", stdin="SELECT a FROM t;")
    assert dash.stdout == "a\n1\n"


def test_errors_show_the_line_with_a_caret(tmp_path):
    script = tmp_path / "s.sql"
    script.write_text("SELECT 1;\nSELECT * FROM\n  custmers;\n")
    done = start("sql", "--warehouse", tmp_path / "w", "--format", "csv", "-f", script)
    assert done.returncode == 1
    assert done.stdout == "1\n1\n"
    lines = done.stderr.splitlines()
    assert "TABLE_OR_VIEW_NOT_FOUND" in done.stderr and "s.sql:3:3" in done.stderr
    at = next(i for i, line in enumerate(lines) if line.rstrip().endswith("custmers;"))
    assert lines[at + 1].index("^") == lines[at].index("custmers")

    typed = start("sql", "-c", "SELEC 1", cwd=tmp_path)
    assert typed.returncode == 1 and "^" in typed.stderr


def test_the_default_warehouse(tmp_path):
    nowhere = start("sql", "-c", "SELECT * FROM t", cwd=tmp_path)
    assert nowhere.returncode == 1 and "--warehouse" in nowhere.stderr
    assert start("sql", "-c", "SELECT 1", cwd=tmp_path).returncode == 0

    (tmp_path / "warehouse").mkdir()
    assert start("sql", "-c", "CREATE TABLE t AS SELECT 5 AS a", cwd=tmp_path).returncode == 0
    assert (tmp_path / "warehouse/main/default/t/_delta_log").is_dir()

    (tmp_path / "p").mkdir()
    (tmp_path / "p/spark-pipeline.yml").write_text("name: p\nstorage: ../lake\n")
    made = start("sql", "-c", "CREATE TABLE t AS SELECT 5 AS a", cwd=tmp_path / "p")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "lake/main/default/t/_delta_log").is_dir()


def test_a_path_needs_no_warehouse(tmp_path):
    sql(tmp_path / "w", "CREATE TABLE t AS SELECT 5 AS a", "csv")
    (tmp_path / "elsewhere").mkdir()
    table = tmp_path / "w/main/default/t"
    for name in (table, f"{table}/", "../w/main/default/t"):
        done = start("sql", "--format", "csv", "-c", f"SELECT a FROM delta.`{name}`; DESCRIBE delta.`{name}`",
                     cwd=tmp_path / "elsewhere")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "a\n5\ncol_name,data_type,comment\na,int,\n"
    gone = start("sql", "-c", f"SELECT 1 FROM delta.`{table}s`", cwd=tmp_path / "elsewhere")
    assert gone.returncode == 1 and "DELTA_TABLE_NOT_FOUND" in gone.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_names_in_a_pipelines_folder_are_the_pipelines(tmp_path):
    pipeline = tmp_path / "p"
    start("init", pipeline)
    spec = next(pipeline.glob("*.yml"))
    lines = [line for line in spec.read_text().splitlines() if not line.startswith(("catalog:", "schema:", "database:"))]
    spec.write_text("\n".join([*lines, "catalog: lake", "schema: silver", ""]))
    done = start("run", pipeline)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = start("sql", "--format", "csv", "-c", "SHOW TABLES; SELECT count(*) > 0 AS found FROM customers", cwd=pipeline)
    assert shown.returncode == 0, shown.stderr
    assert "silver,customers" in shown.stdout and "true" in shown.stdout
    there = sql(pipeline / "warehouse", "SELECT count(*) > 0 AS found FROM lake.silver.customers")
    assert there == [{"found": True}]


@pytest.mark.parametrize("word", ["exit", " quit;", "\\q"])
def test_a_word_leaves_the_terminal(word, tmp_path):
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, "sql"], cwd=tmp_path, stdin=slave, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment())
    os.write(master, f"SELECT 41 + 1 AS n;\n{word}\n".encode())
    out, err = process.communicate(timeout=20)
    os.close(slave)
    os.close(master)
    assert process.returncode == 0 and "42" in out and err == ""


@pytest.mark.parametrize("name", ["select", "a.b", "über tisch", "50%", "x/y", "..", "t'q", "🙂"])
def test_odd_table_names(name, tmp_path):
    warehouse = tmp_path / "w"
    quoted = "`" + name + "`"
    sql(warehouse, f"CREATE TABLE {quoted} (a INT); INSERT INTO {quoted} VALUES (1)", "csv")
    assert sql(warehouse, f"SELECT * FROM {quoted}") == [{"a": 1}]
    assert [row["tableName"] for row in sql(warehouse, "SHOW TABLES")] == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


def test_usage_errors(tmp_path):
    both = start("sql", "-c", "SELECT 1", "-f", "x.sql")
    assert both.returncode == 2 and "excludes" in both.stderr
    assert start("sql", "--format", "xml", "-c", "SELECT 1").returncode == 2
    assert start("sql", "-f", tmp_path / "none.sql").returncode == 2
    word = start("rnu")
    assert word.returncode == 2 and "did you mean run?" in word.stderr
    assert start().returncode == 2


@pytest.mark.parametrize("command", ["", "run", "sql", "init", "events"])
def test_help_has_examples(command):
    done = start(*command.split(), "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout and f"strandline {command}".strip() in done.stdout


def test_version():
    assert re.fullmatch(r"strandline \d+\.\d+\.\d+ \(DuckDB v\d+\.\d+\.\d+\)\n", start("--version").stdout)


def test_a_signal_stops_a_query(tmp_path):
    numbers = ", ".join(f"({i})" for i in range(3000))
    query = (
        f"WITH n AS (SELECT * FROM VALUES {numbers} AS v(x)) SELECT count(*) FROM n a "
        "CROSS JOIN n b CROSS JOIN n c WHERE sqrt(a.x + b.x * c.x) < -1"
    )
    process = subprocess.Popen(
        [PROGRAM, "sql", "--format", "csv", "-c", "SELECT 'ready' AS now; " + query], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment(),
    )
    assert [process.stdout.readline() for _ in range(2)] == ["now\n", "ready\n"]
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1 and err


def test_init_refuses_a_used_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    done = start("init", tmp_path)
    assert done.returncode == 1 and "not empty" in done.stderr


def test_events_show_what_runs_did(tmp_path):
    start("init", tmp_path / "p")
    assert start("run", tmp_path / "p").returncode == 0
    assert start("run", tmp_path / "p").returncode == 0
    show = lambda *more: start("events", tmp_path / "p", "--format", "ndjson", *more)
    everything = [json.loads(line) for line in show("--limit", "0").stdout.splitlines()]
    assert start("run", tmp_path / "p").returncode == 0
    assert start("run", tmp_path / "p").returncode == 0
    everything = [json.loads(line) for line in show("--limit", "0").stdout.splitlines()]
    assert len({event["update_id"] for event in everything}) == 4
    times = [event["timestamp"] for event in everything]
    assert times == sorted(times)
    starts = [event["event_type"] for event in everything].count("create_update")
    changes = sum(a["update_id"] != b["update_id"] for a, b in zip(everything, everything[1:]))
    assert starts == 4 and changes == 3 and everything[0]["event_type"] == "create_update"
    latest = [json.loads(line) for line in show("--update", "latest", "--limit", "0").stdout.splitlines()]
    assert {event["update_id"] for event in latest} == {everything[-1]["update_id"]}
    flow = [json.loads(line) for line in show("--flow", "customers_cdc").stdout.splitlines()]
    assert flow and {event["flow_name"] for event in flow} == {"customers_cdc"}
    assert [json.loads(line) for line in show("--limit", "3").stdout.splitlines()] == everything[-3:]
    other = start("events", "--warehouse", tmp_path / "p/warehouse", "--pipeline", "p", "--format", "ndjson")
    assert other.returncode == 0 and other.stdout


def test_a_mistyped_warehouse_is_not_an_empty_one(tmp_path):
    for statement in ("SHOW TABLES", "SHOW SCHEMAS"):
        done = start("sql", "--warehouse", str(tmp_path / "nowhere"), "-c", statement)
        assert done.returncode == 1
        assert "WAREHOUSE_NOT_FOUND" in done.stderr and "nowhere" in done.stderr


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "bad.sql").write_bytes(b"SELECT 1;\nSELECT '\xff'")
    done = start("sql", "--warehouse", str(tmp_path), "-f", str(tmp_path / "bad.sql"))
    assert done.returncode == 1
    assert "not UTF-8" in done.stderr and "bad.sql:2:9" in done.stderr
