"""Tables of other writers: read with the expected rows, or refused by the name of a feature.

docs/conformance.md holds the outcome of every table; a test fails when it changes. `--update`
rewrites it.
"""

import base64
import json
import re

import independent
import pytest
from harness import ROOT, SHARED, SqlError, query

FOLDER = SHARED / "conformance"
REPORT = ROOT / "docs" / "conformance.md"
NAMES = sorted(path.name for path in FOLDER.iterdir() if (path / "delta").is_dir()) if FOLDER.is_dir() else []
WHY_SKIPPED = f"no conformance tables: {FOLDER.name}/ is not beside the repository (STRANDLINE_SHARED names another place)"
OUTCOMES = {}


def conformance_bag(rows):
    """Rows as the expected files print them: nested decimals as numbers, nested binary as \\x text,
    columns that a file lacks left out."""

    def nested(value):
        if isinstance(value, dict):
            return {name: nested(inner) for name, inner in value.items() if inner is not None}
        if isinstance(value, list):
            return [nested(item) for item in value]
        if isinstance(value, str) and re.fullmatch(r"(\\x[0-9A-F]{2})+", value):
            return base64.b64encode(bytes.fromhex(value.replace("\\x", ""))).decode()
        if isinstance(value, str) and independent.NUMBER.match(value) and not isinstance(value, bool):
            return float(value)
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    return independent.bag({name: nested(value) if isinstance(value, (dict, list)) else value
                            for name, value in row.items() if value is not None} for row in rows)


def features(name):
    """All names of features and of what else a reader may refuse, from the table's own log."""
    found = set()
    for path in (FOLDER / name / "delta" / "_delta_log").glob("*.json"):
        text = path.read_text("utf-8", errors="replace")
        for listed in re.findall(r'"(?:readerFeatures|writerFeatures)"\s*:\s*\[(.*?)\]', text):
            found |= set(re.findall(r'"([^"]+)"', listed))
        if "delta.columnMapping.mode" in text:
            found.add("columnMapping")
    return found


def notes():
    """What the index says of each folder."""
    lines = [line for line in (FOLDER / "INDEX.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    return {line.split("|")[1].strip(): line for line in lines}


def outcome_of(name, tmp_path):
    path = FOLDER / name / "delta"
    expected = FOLDER / name / "expected" / "latest.ndjson"
    try:
        rows = query(tmp_path / "w", f"SELECT * FROM delta.`{path}`")
    except SqlError as error:
        named = sorted(feature for feature in features(name) if feature in str(error))
        return ("refused: " + ", ".join(named)) if named else "error", str(error)
    if not expected.exists():
        return "read, nothing to compare with", ""
    wanted = [json.loads(line) for line in expected.read_text("utf-8").splitlines() if line]
    left, right = conformance_bag(rows), conformance_bag(wanted)
    if left == right:
        return f"read: {len(rows)} rows", ""
    return "wrong rows", f"got {len(left)}, expected {len(right)}; first of ours: {left[:2]}; first expected: {right[:2]}"


@pytest.mark.skipif(not NAMES, reason=WHY_SKIPPED)
@pytest.mark.parametrize("name", NAMES)
def test_table(name, tmp_path):
    outcome, detail = outcome_of(name, tmp_path)
    note = notes().get(name, "")
    OUTCOMES[name] = outcome
    if "must fail" in note:
        assert not outcome.startswith("read"), f"must be refused: {note}"
        OUTCOMES[name] = outcome if outcome.startswith("refused") else "refused: broken table"
        return
    if "log only" in note or not (FOLDER / name / "expected" / "latest.ndjson").exists():
        if not outcome.startswith(("read", "refused")):
            OUTCOMES[name] = "no data files to read"
        return
    assert outcome.startswith(("read", "refused")), f"{outcome}: {detail}"


def report():
    lines = ["# Tables of other writers", "",
             "What `strandline sql` makes of the tables of public Delta test suites: `read` means that all rows are as expected,",
             "`refused` that the error names the feature. Made by `tests/interop/test_conformance.py`.", "",
             "| table | outcome |", "|---|---|"]
    lines += [f"| {name} | {OUTCOMES[name]} |" for name in sorted(OUTCOMES)]
    read = sum(1 for outcome in OUTCOMES.values() if outcome.startswith("read"))
    refused = sum(1 for outcome in OUTCOMES.values() if outcome.startswith("refused"))
    lines += ["", f"{len(OUTCOMES)} tables: {read} read, {refused} refused by name, {len(OUTCOMES) - read - refused} without data files."]
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(not NAMES, reason=WHY_SKIPPED)
def test_report_is_up_to_date(request):
    """Runs last: the page in docs/ says what is."""
    if len(OUTCOMES) < len(NAMES):
        pytest.skip("only a part of the tables was run")
    if request.config.getoption("--update"):
        REPORT.write_text(report(), encoding="utf-8")
    assert REPORT.exists() and REPORT.read_text("utf-8") == report(), "outcomes changed: read the diff after --update"
