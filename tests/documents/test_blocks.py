"""Every block of code in the documents is run by a test, or has a reason here; README.md has the rules."""

import re
import sys
from pathlib import Path

import pytest
from harness import SHARED

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(TESTS / "python"))

import seed_blocks  # noqa: E402

DOCUMENTS = SHARED / "seeds"
SQL_STARTS = ("CREATE ", "INSERT ", "SELECT ", "ALTER ", "SHOW ", "SET ", "TRUNCATE ", "DROP ", "UPDATE ", "DELETE ",
              "MERGE ", "DESCRIBE ", "APPLY CHANGES ")
FRAGMENT_STARTS = ("SEQUENCE BY ",)
OTHER_STARTS = ("from pyspark", "dp.", "@dp.", "spark.read", "(spark", "sequence_by =", "def ")
LATER = {
    "scala": "there is no Scala interface",
}


def blocks_of(text):
    """(first line, kind, text) of each run of lines that begins like code and ends at ';' or a blank line."""
    blocks, start, kind, lines = [], 0, "", []
    section = ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        content = line.strip()
        if content in ("SQL", "Python", "Scala"):
            section = content.lower()
        if not lines:
            starts = content.startswith
            if starts(SQL_STARTS):
                kind = "sql"
            elif starts(FRAGMENT_STARTS):
                kind = "fragment"
            elif starts(OTHER_STARTS):
                kind = "scala" if section == "scala" else "python"
            else:
                continue
            start = number
        if content:
            lines.append(line)
        if not content or (kind == "sql" and content.endswith(";")):
            blocks.append((start, kind, "\n".join(lines)))
            lines = []
    return blocks


def listed():
    rows = [line.split("\t") for line in (HERE / "blocks.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["document", "line", "kind", "run by"]
    return rows[1:]


def plain(text):
    """Without layout, the last ';' and the marks of placeholders."""
    return re.sub(r"\s+", " ", re.sub(r"<(\w+)>", r"\1", text)).strip().rstrip(";").strip()


def test_the_list_names_tests_or_reasons():
    for document, line, kind, run_by in listed():
        if run_by.startswith("later: "):
            assert LATER.get(kind) == run_by.removeprefix("later: "), f"{document}:{line}: no reason for {kind}"
        else:
            assert (TESTS / run_by).is_file(), f"{document}:{line} names {run_by}"


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"no documents in {DOCUMENTS}: set STRANDLINE_SHARED")
def test_every_block_is_run_as_printed():
    found = {}
    for path in sorted(DOCUMENTS.glob("*.txt")):
        for line, kind, text in blocks_of(path.read_text(encoding="utf-8")):
            found[path.stem, str(line), kind] = text
    known = {(document, line, kind): run_by for document, line, kind, run_by in listed()}
    assert list(known) == list(found), "blocks.tsv and the documents list different blocks"
    held = {run_by: plain((TESTS / run_by).read_text(encoding="utf-8"))
            for run_by in set(known.values()) if not run_by.startswith("later: ")}
    # It cuts its blocks out of the documents, and lists which of them it runs.
    held["python/test_seeds.py"] = plain("\n".join(block.text for block in seed_blocks.blocks()))
    for place, text in found.items():
        run_by = known[place]
        if not run_by.startswith("later: "):
            assert plain(text) in held[run_by], f"{place} is not in {run_by} as printed:\n{text}"


def test_the_check_sees_a_changed_block():
    text = "Prose.\n\nSQL\n\nSELECT a\nFROM t;\n\nSequence\n\nPython\n\ndp.create_streaming_table(\"t\")\n"
    assert blocks_of(text) == [(5, "sql", "SELECT a\nFROM t;"), (12, "python", 'dp.create_streaming_table("t")')]
    assert plain("SELECT a\n FROM  <t>;") == "SELECT a FROM t"
    assert plain("SELECT a FROM t") not in plain("SELECT b FROM t;")
