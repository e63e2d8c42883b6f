"""Passwords stand in nothing that is said or written down, wherever in a statement or a file they were."""

import json
from pathlib import Path

import pytest

import harness

HUSH = "qu4gg4mire"
FORMS = (HUSH, "qu4gg4%6Dire")

STATEMENTS = [
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://bob:{HUSH}@h/db', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://bob:{FORMS[1]}@h/db', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:mysql:bob:{HUSH}@h/db', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:oracle:thin:bob/{HUSH}@h', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db?user=me&password={HUSH}', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db?%70assword={FORMS[1]}', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db?sslpassword={HUSH}', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:mysql://h/db?trustCertificateKeyStorePassword={HUSH}', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:sqlserver://h;user=me;pwd={HUSH}', dbtable => 't')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db', dbtable => 't', password => '{HUSH}')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db', dbtable => 't', sslPassword => '{HUSH}')",
    f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/db', dbtable => 't', pwd => '{HUSH}', oops)",
    f"SELECT * FROM read_files('https://bob:{HUSH}@h/x', format => 'json')",
    f"SELECT * FROM read_files('in', format => 'json', password => '{HUSH}')",
    f"SELECT * FROM delta.`s3://key:{HUSH}@bucket/x`",
    f"CREATE TABLE j USING jdbc OPTIONS (url 'jdbc:postgresql://h/db', password '{HUSH}')",
    f"CREATE TABLE j (id INT) LOCATION 's3://key:{HUSH}@bucket/x'",
    f"CREATE TABLE j (id INT) TBLPROPERTIES ('delta.password' = '{HUSH}') oops",
    f"SELECT CAST('postgresql://bob:{HUSH}@h/db' AS INT)",
    f"SELECT CAST(concat('{{\"password\":\"{HUSH}', '\"}}') AS INT)",
    f"SELECT missing, 'postgresql://bob:{HUSH}@h/db'",
]


def assert_hushed(said: str, of: str) -> None:
    assert not any(form in said for form in FORMS), f"{of}:\n{said}"


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_error_of_a_statement_tells_a_password(tmp_path: Path, statement: str) -> None:
    done = harness.call("sql", "--warehouse", tmp_path / "w", "-c", statement)
    assert done.returncode != 0, done.stdout
    assert "***" in done.stderr
    assert_hushed(done.stdout + done.stderr, statement)


def write(folder: Path, text: str, name: str = "p.sql", spec: str = "") -> Path:
    folder.mkdir()
    (folder / name).write_text(text)
    (folder / "spark-pipeline.yml").write_text(f"name: p\n{spec}libraries: [{{glob: {{include: {name}}}}}]\n")
    return folder


@pytest.mark.parametrize("statement", [each for each in STATEMENTS if each.startswith("SELECT")])
def test_nothing_that_a_pipeline_says_tells_a_password(tmp_path: Path, statement: str) -> None:
    pipeline = write(tmp_path / "p", f"CREATE MATERIALIZED VIEW v AS\n{statement};\nCREATE MATERIALIZED VIEW good AS SELECT 1 AS one;\n")
    for words in (["run"], ["run", "--json"], ["run", "--dry-run", "--json"], ["plan"], ["plan", "--json"], ["events"]):
        done = harness.call(*words, pipeline)
        if words[0] == "run":
            assert done.returncode in (1, 2), done.stderr
            assert "***" in done.stdout + done.stderr or "--json" in words  # which quotes no lines
        if words[0] != "plan" or "CAST" not in statement:  # a plan gives programs as they run
            assert_hushed(done.stdout + done.stderr, f"{words} {statement}")


def test_event_logs_tell_no_password_of_the_data(tmp_path: Path) -> None:
    pipeline = write(tmp_path / "p", "CREATE MATERIALIZED VIEW v AS SELECT CAST(u AS INT) AS u FROM read_files('in', format => 'csv', header => true)")
    (pipeline / "in").mkdir()
    (pipeline / "in" / "1.csv").write_text(f"u\npostgresql://bob:{HUSH}@h/db\n")
    ran = harness.call("run", "--json", pipeline)
    assert json.loads(ran.stdout)["errors"]
    events = harness.call("sql", "--warehouse", pipeline / "warehouse", "-c",
                          f"SELECT * FROM delta.`{pipeline}/warehouse/_strandline/pipelines/p/event_log`")  # fmt: skip
    assert "bob:***@h" in ran.stdout and "bob:***@h" in events.stdout
    assert_hushed(ran.stdout + ran.stderr + events.stdout, "events")


@pytest.mark.parametrize("spec", [
    f"storage: s3://key:{HUSH}@bucket/x\n",
    f"configuration:\n  password: {HUSH}\n  - oops\n",
    f"configuration: {{password: {HUSH}, x: [}}\n",
    f"configuration: {{x: 1, password: {HUSH}, y: [}}\n",
])  # fmt: skip
def test_no_error_of_a_spec_file_tells_a_password(tmp_path: Path, spec: str) -> None:
    pipeline = write(tmp_path / "p", "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one", spec=spec)
    for words in (["run"], ["run", "--json"], ["plan"]):
        done = harness.call(*words, pipeline)
        assert done.returncode == 2, done.stderr
        assert "***" in done.stdout + done.stderr or "--json" in words or "- oops" in spec
        assert_hushed(done.stdout + done.stderr, spec)


@pytest.mark.parametrize("address", [f"s3://key:{HUSH}@bucket/x", f"https://h/x?password={HUSH}"])
def test_addresses_on_the_command_line(tmp_path: Path, address: str) -> None:
    pipeline = write(tmp_path / "p", "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one")
    for words in (["run", pipeline, "--warehouse", address], ["run", "--json", pipeline, "--warehouse", address],
                  ["sql", "--warehouse", address, "-c", "SELECT 1"]):  # fmt: skip
        done = harness.call(*words)
        assert done.returncode != 0 and "***" in done.stdout + done.stderr
        assert_hushed(done.stdout + done.stderr, address)


def test_properties_that_are_passwords_are_shown_as_such(tmp_path: Path) -> None:
    def sql(text: str) -> str:
        done = harness.call("sql", "--warehouse", tmp_path / "w", "-c", text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sql(f"CREATE TABLE t (id INT) TBLPROPERTIES ('db.password' = '{HUSH}', 'db.url' = 'x://u:{HUSH}@h', 'db.user' = 'me')")
    sql(f"ALTER TABLE t SET TBLPROPERTIES ('db.password' = '{HUSH}2')")
    for statement in ("SHOW TBLPROPERTIES t", "SHOW TBLPROPERTIES t ('db.password')", "SHOW CREATE TABLE t",
                      "DESCRIBE EXTENDED t", "DESCRIBE DETAIL t", "DESCRIBE HISTORY t"):  # fmt: skip
        said = sql(statement)
        assert_hushed(said, statement)
        assert "***" in said, statement
        if "password" not in statement and "HISTORY" not in statement:
            assert "db.user" in said
    for log in (tmp_path / "w").rglob("_delta_log/*.json"):
        for line in log.read_text().splitlines():
            assert "commitInfo" not in line or HUSH not in line


@pytest.mark.parametrize("password", ["a", "e", "w-", "SQL"])
def test_a_short_password_hides_no_letters(password: str) -> None:
    done = harness.call("sql", "-c", f"SELECT * FROM read_jdbc(url => 'jdbc:postgresql://h/d?password={password}', dbtable => 't')")
    assert "has a password, which does not belong into SQL text: write password => secret('NAME')" in done.stderr
    assert "'jdbc:postgresql://h/d?password=***', dbtable => 't')" in done.stderr
    done = harness.call("sql", "-c", f"SELECT * FROM read_jdbc(password => '{password}', url => 'jdbc:x')")
    assert "a password does not belong into SQL text" in done.stderr and "password => '***', url" in done.stderr


def test_the_caret_stands_under_its_character(tmp_path: Path) -> None:
    done = harness.call("sql", "--warehouse", tmp_path / "w", "-c", f"SELECT 'x://bob:{HUSH}@h' AS u, missing")
    line, caret = done.stderr.splitlines()[-2:]
    assert line.index("missing") == caret.index("^") and "bob:***@h" in line
