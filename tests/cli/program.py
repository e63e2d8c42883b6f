"""The program as a user types it: what harness.py has, and terminals."""

import json
import os

from harness import PROGRAM, ROOT, call

TUTORIAL = ROOT / "examples/tutorial"

__all__ = ["PROGRAM", "ROOT", "TUTORIAL", "environment", "run", "sql", "start"]


def environment(**changes):
    """Of a terminal that takes colours."""
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    return {**env, "TERM": "xterm-256color", **changes}


def start(*arguments, **options):
    """A finished process with text output."""
    return call(*arguments, **options)


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
