"""Starts the built program as a user does."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRANDLINE_PROGRAM", ROOT / "build/bin/strandline"))
TUTORIAL = ROOT / "examples/tutorial"


def environment(**changes):
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    return {**env, "TERM": "xterm-256color", **changes}


def start(*arguments, cwd=None, stdin=None, **changes):
    """A finished process with text output."""
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], cwd=cwd, input=stdin, text=True, capture_output=True,
        env=environment(**changes), timeout=120,
    )


def sql(warehouse, text, format="json", cwd=None):
    """The rows of the one query in text; fails the test when the program does."""
    done = start("sql", "--warehouse", warehouse, "--format", format, "-c", text, cwd=cwd)
    assert done.returncode == 0, done.stderr
    if format != "json":
        return done.stdout
    return json.loads(done.stdout) if done.stdout.strip() else []


def run(*arguments, code=0, cwd=None):
    """The JSON object of a run."""
    done = start("run", *arguments, "--json", cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)
