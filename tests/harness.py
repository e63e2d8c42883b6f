"""What every Python test needs: the program, a pipeline run, a query, an events file.

Tests see the program only through its command line. STRANDLINE_PROGRAM names another build,
STRANDLINE_SHARED the folder that holds conformance/ (default: shared/ beside the repository).
"""

import functools
import importlib.metadata
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("STRANDLINE_PROGRAM", ROOT / "build" / "bin" / "strandline"))
SHARED = Path(os.environ.get("STRANDLINE_SHARED", ROOT.parent / "shared"))
TIMEOUT_SECONDS = 120

STATUS_OF_EXIT = {0: ("COMPLETED",), 1: ("FAILED", "CANCELED"), 2: ("INVALID",)}


@dataclass
class Run:
    """One `strandline run --json`."""

    exit_code: int
    report: dict
    stderr: str

    @property
    def ok(self):
        return self.exit_code == 0

    @property
    def codes(self):
        return [error["code"] for error in self.report.get("errors", [])]

    def flow(self, name):
        return next(flow for flow in self.report["flows"] if flow["name"].split(".")[-1] == name)

    def explain(self):
        return json.dumps(self.report.get("errors"), indent=1, ensure_ascii=False) + "\n" + self.stderr


class SqlError(Exception):
    """A statement was refused or failed; the text is what the program wrote to stderr."""


def call(*arguments, cwd=None, env=None, timeout=TIMEOUT_SECONDS, stdin=None, **options):
    """Runs the program; returns the finished process with text output."""
    full_env = {**os.environ, "NO_COLOR": "1", "TZ": "America/New_York", **(env or {})}
    return subprocess.run([str(PROGRAM), *map(str, arguments)], cwd=cwd, env=full_env, input=stdin,
                          capture_output=True, encoding="utf-8", timeout=timeout, **options)


@functools.cache
def engine_version():
    """Of the DuckDB that the program runs with: "1.5.5"."""
    return re.search(r"\(DuckDB v([0-9.]+)\)", call("--version").stdout).group(1)


def missing_extension(name):
    """Why one of DuckDB's extensions, such as "sqlite_scanner", is not to be had; None where it is. Its package fits one
    version of DuckDB alone."""
    package = f"duckdb-extension-{name.replace('_', '-')}"
    fits = importlib.metadata.version(package)
    if fits == engine_version():
        return None
    return f"needs DuckDB's extension {name}, which is there as a package ({package}) for {fits} and not for {engine_version()}"


def run_pipeline(pipeline, warehouse=None, *arguments, **options):
    """Runs one update and checks what the contract says of every run: one JSON object, whose
    status fits the exit code."""
    where = ["--warehouse", warehouse] if warehouse else []
    process = call("run", pipeline, *where, "--json", *arguments, **options)
    try:
        report = json.loads(process.stdout)
    except json.JSONDecodeError as error:
        raise AssertionError(f"`run --json` must print one object (exit {process.returncode}): {error}\n"
                             f"stdout: {process.stdout[:2000]}\nstderr: {process.stderr[:4000]}") from None
    assert report["status"] in STATUS_OF_EXIT.get(process.returncode, ()), \
        f"exit {process.returncode} with status {report['status']}\n{process.stderr[:4000]}"
    return Run(process.returncode, report, process.stderr)


def sql_text(warehouse, text, format="ndjson", **options):
    """Runs statements and returns what they print. Raises SqlError with stderr."""
    arguments = options.pop("arguments", [])
    process = call("sql", "--warehouse", warehouse, "--format", format, *arguments, "-c", text, **options)
    if process.returncode != 0:
        raise SqlError(f"exit {process.returncode}: {process.stderr}")
    return process.stdout


def query(warehouse, text, **options):
    """The rows of one query as dictionaries."""
    return [json.loads(line) for line in sql_text(warehouse, text, **options).splitlines() if line.strip()]


def quote(name):
    return "`" + name.replace("`", "``") + "`"


def literal(text):
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_json_lines(path, rows):
    """A new file of change events; it appears under its name only when it is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name + ".part")
    hidden.write_text("".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) + "\n"
                              for row in rows), encoding="utf-8")
    hidden.rename(path)


def rows_as_bag(rows):
    """Rows in a comparable form that ignores their order."""
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
