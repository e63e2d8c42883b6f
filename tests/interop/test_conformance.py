"""Tables of other writers: read with the expected rows, or refused by the name of a feature.

docs/conformance.md holds the outcome of every table; a test fails when it changes. `--update`
rewrites it.
"""

import base64
import json
import re

import duckdb
import independent
import pytest
from harness import ROOT, SHARED, SqlError, query, sql_text

FOLDER = SHARED / "conformance"
REPORT = ROOT / "docs" / "conformance.md"
NAMES = sorted(path.name for path in FOLDER.iterdir() if (path / "delta").is_dir()) if FOLDER.is_dir() else []
WHY_SKIPPED = f"no conformance tables: {FOLDER.name}/ is not beside the repository (STRANDLINE_SHARED names another place)"
OUTCOMES = {}
NOT_TABLES = {
    "iceberg-deletes-bin": "bitmaps and deletion vector blobs, read by `tests/conformance/bitmaps_test.cc`",
    "iceberg-puffin-v1": "Puffin containers, which no Delta table has",
    "iceberg-table-metadata": "Iceberg metadata, which no Delta table has",
    "parquet-encodings": "Parquet files, read by `tests/interop/test_conformance.py`",
}
NO_COMMIT = ("krs-crc-malformed",)  # checksum files alone


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


def index_cell(name, position):
    line = notes().get(name)
    return line.split("|")[position].strip() if line else ""


def plain_times(rows):
    """Upstream Parquet has instants without a zone."""

    def bare(value):
        if isinstance(value, str) and independent.TIMESTAMP.match(value):
            return value.removesuffix("Z")
        if isinstance(value, dict):
            return {name: bare(inner) for name, inner in value.items()}
        return [bare(item) for item in value] if isinstance(value, list) else value

    return [{name: bare(value) for name, value in row.items()} for row in rows]


def upstream_rows(folder):
    """The rows of the Parquet files that the suites themselves expect."""
    files = sorted(str(path) for path in folder.glob("**/*.parquet"))
    relation = duckdb.sql("SET TimeZone = 'UTC'; SELECT * FROM read_parquet($1, union_by_name = true)", params=[files])
    return [dict(zip(relation.columns, map(independent.plain, row))) for row in relation.fetchall()]


def compare(what, rows, wanted):
    """Words of what differs; None when nothing does."""
    left, right = conformance_bag(rows), conformance_bag(wanted)
    if left == right:
        return None
    return f"{what}: got {len(left)}, expected {len(right)}; first of ours: {left[:2]}; first expected: {right[:2]}"


# Whose upstream Parquet is not what the table's own log says, and why (INDEX.md).
NOT_AS_UPSTREAM = {"golden-data-reader-partition-values": "a timestamp partition in the local time of its writer"}
TOO_LARGE_FOR_TEXT = 100_000  # rows; compared inside DuckDB


def compare_large(path, upstream, folder):
    ours = folder / "ours.csv"
    ours.write_text(sql_text(folder / "w", f"SELECT * FROM delta.`{path}`", format="csv"), encoding="utf-8")
    theirs = f"(FROM read_parquet('{upstream}/*.parquet'))"
    types = {column[0]: column[1] for column in duckdb.sql(f"DESCRIBE {theirs}").fetchall()}
    mine = f"(FROM read_csv('{ours}', header = true, columns = {types}))"
    differing = duckdb.sql(f"SELECT count(*) FROM (({mine} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {mine}))").fetchone()[0]
    return duckdb.sql(f"SELECT count(*) FROM {mine}").fetchone()[0], f"{differing} rows differ" if differing else None


def versions_with_results(name):
    """Version -> folder of its rows, and version -> number of its rows."""
    folders = {int(path.name[1:].removesuffix("_parquet")): path for path in (FOLDER / name / "expected").glob("v*_parquet")}
    counted = re.search(r"Row counts v(\d+)\.\.v\d+: ([\d, ]+)", notes().get(name, ""))
    counts = {}
    if counted:
        counts = {int(counted[1]) + place: int(count) for place, count in enumerate(re.findall(r"\d+", counted[2]))}
    return folders, counts


def compare_versions(name, path, warehouse):
    """The outcome of every earlier version whose result is known, and what differs."""
    folders, counts = versions_with_results(name)
    for version, folder in sorted(folders.items()):
        rows = query(warehouse, f"SELECT * FROM delta.`{path}` VERSION AS OF {version}")
        differs = compare(f"version {version}", plain_times(rows), plain_times(upstream_rows(folder)))
        if differs:
            return "", differs
    for version, count in sorted(counts.items()):
        found = query(warehouse, f"SELECT count(*) AS n FROM delta.`{path}` VERSION AS OF {version}")[0]["n"]
        if found != count:
            return "", f"version {version} has {found} rows instead of {count}"
    known = sorted({*folders, *counts})
    return f", versions {known[0]} to {known[-1]}" if known else "", None


def outcome_of(name, tmp_path):
    path, expected = FOLDER / name / "delta", FOLDER / name / "expected"
    warehouse = tmp_path / "w"
    active = re.match(r"(\d+) active adds", index_cell(name, 5))
    if "log only" in notes().get(name, ""):
        files = query(warehouse, f"DESCRIBE DETAIL delta.`{path}`")[0]["numFiles"]
        wanted = 0 if name.startswith("golden-canonicalized-paths") else int(active[1])
        return (f"log only: {files} files" if files == wanted else "wrong files"), f"{files} live files instead of {wanted}"
    try:
        large = re.match(r"(\d+) rows", index_cell(name, 5))
        if large and int(large[1]) > TOO_LARGE_FOR_TEXT:
            count, differs = compare_large(path, expected / "latest_parquet", tmp_path)
            return f"rows equal: {count}" if differs is None else "wrong rows", differs
        rows = query(warehouse, f"SELECT * FROM delta.`{path}`")
    except SqlError as error:
        named = sorted(feature for feature in features(name) if feature in str(error))
        code = re.search(r"\[([A-Z_.]+)\]", str(error))
        return ("refused: " + ", ".join(named) if named else f"refused: {code[1]}" if code else "error"), str(error)
    ndjson, upstream = expected / "latest.ndjson", expected / "latest_parquet"
    differs = None
    if ndjson.exists():
        differs = compare("latest", rows, [json.loads(line) for line in ndjson.read_text("utf-8").splitlines() if line])
    if differs is None and upstream.is_dir() and name not in NOT_AS_UPSTREAM:
        differs = compare("upstream", plain_times(rows), plain_times(upstream_rows(upstream)))
    if differs is None and not ndjson.exists() and not upstream.is_dir():
        return ("rows equal: 0" if not rows else "nothing to compare with"), "no expected rows"
    earlier = ""
    if differs is None:
        earlier, differs = compare_versions(name, path, warehouse)
    return (f"rows equal: {len(rows)}{earlier}" if differs is None else "wrong rows"), differs


# Tables of another kind than their names in INDEX.md tell: what they must come to.
BROKEN = re.compile(r"must fail|unsupported protocol|without (protocol|metaData)|no (protocol|metaData) action|not a Delta table|gap in the log|^first version: reject")


@pytest.mark.skipif(not NAMES, reason=WHY_SKIPPED)
@pytest.mark.parametrize("name", NAMES)
def test_table(name, tmp_path):
    outcome, detail = outcome_of(name, tmp_path)
    OUTCOMES[name] = outcome
    if name in NO_COMMIT or BROKEN.search(index_cell(name, 6)) or "must fail" in notes().get(name, ""):
        assert outcome.startswith("refused: "), f"must be refused: {outcome}: {detail}"
        return
    assert outcome.startswith(("rows equal", "log only")), f"{outcome}: {detail}"


@pytest.mark.skipif(not NAMES, reason=WHY_SKIPPED)
def test_every_folder_is_known():
    """What is not a Delta table is named here, so that a new folder is not passed over."""
    others = {path.name for path in FOLDER.iterdir() if path.is_dir()} - set(NAMES)
    assert others == set(NOT_TABLES)


ENCODED = sorted(path for path in (FOLDER / "parquet-encodings").glob("*/*.parquet") if path.parent.name != "PLAIN")


@pytest.mark.skipif(not ENCODED, reason=WHY_SKIPPED)
def test_parquet_encodings(tmp_path):
    """Every encoding holds what the same values hold in plain form, or the engine names the one it lacks."""
    read = 0
    for path in ENCODED:
        plain = FOLDER / "parquet-encodings" / "PLAIN" / path.name
        try:
            rows = query(tmp_path / "w", f"SELECT * FROM read_files('{path}', format => 'parquet')")
        except SqlError as error:
            assert f"{path.parent.name} encoding is only supported for" in str(error), path
            continue
        assert rows == query(tmp_path / "w", f"SELECT * FROM read_files('{plain}', format => 'parquet')"), path
        assert len(rows) > 100
        read += 1
    assert read >= 20


def report():
    lines = ["# Tables of other writers", "",
             "What `strandline sql` makes of the tables of public Delta test suites. `rows equal`: all rows of the latest version,",
             "and of the earlier ones that are named, are as expected; `refused`: the error names this feature or has this code;",
             "`log only`: the table has no data files, its log has the expected number of live files.",
             "Made by `tests/interop/test_conformance.py`.", "",
             "| table | outcome |", "|---|---|"]
    lines += [f"| {name} | {OUTCOMES[name]} |" for name in sorted(OUTCOMES)]
    lines += [f"| {name} | no Delta table: {what} |" for name, what in sorted(NOT_TABLES.items())]
    counts = [sum(1 for outcome in OUTCOMES.values() if outcome.startswith(start)) for start in ("rows equal", "refused", "log only")]
    lines += ["", f"{len(OUTCOMES)} tables: {counts[0]} with equal rows, {counts[1]} refused, {counts[2]} of which there is a log only."]
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(not NAMES, reason=WHY_SKIPPED)
def test_report_is_up_to_date(request):
    """Runs last: the page in docs/ says what is."""
    if len(OUTCOMES) < len(NAMES):
        pytest.skip("only a part of the tables was run")
    if request.config.getoption("--update"):
        REPORT.write_text(report(), encoding="utf-8")
    assert REPORT.exists() and REPORT.read_text("utf-8") == report(), "outcomes changed: read the diff after --update"
