"""Runs every *.test file under every configuration; README.md has the format."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness import call, run_pipeline

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("**/*.test"))
KEYWORDS = ("skip", "file", "run", "statement", "query", "output", "shell")
BARE_TABLE = re.compile(r"(CREATE\s+(?:OR\s+REFRESH\s+)?STREAMING\s+TABLE\s+(?:`[^`]+`|[\w.])+)(?=\s*(?:;|AS\b))", re.I)


@dataclass
class Configuration:
    arguments: list = field(default_factory=list)
    properties: str = ""  # given to streaming tables that state none
    one_session: bool = False  # statements before a query run in the query's process


CONFIGURATIONS = {
    "default": Configuration(),
    "one-session": Configuration(one_session=True),
    "one-thread": Configuration(["--threads", "1"]),
    "tiny-memory": Configuration(["--memory-limit", "250MB"]),
    "no-deletion-vectors": Configuration(properties="'delta.enableDeletionVectors' = 'false'"),
    "checkpoint-each-commit": Configuration(properties="'delta.checkpointInterval' = '1'"),
}


@dataclass
class Directive:
    line: int
    head: str
    body: list
    expected: list | None = None
    expected_at: int = 0  # first line of the expectation, from 0

    @property
    def word(self):
        return self.head.split()[0]

    @property
    def rest(self):
        return self.head.split(maxsplit=1)[1] if " " in self.head else ""


def parse(text):
    lines = text.split("\n")
    directives, place = [], 0
    while place < len(lines):
        line = lines[place]
        if not line.strip() or line.startswith("#"):
            place += 1
            continue
        word = line.split()[0]
        assert word in KEYWORDS, f"line {place + 1}: unknown directive {word!r}"
        directive = Directive(place + 1, line, [])
        place += 1
        if word == "file":
            while lines[place] != "~~~":
                directive.body.append(lines[place])
                place += 1
            place += 1
        elif word in ("run", "statement", "query", "output"):
            while place < len(lines) and lines[place].strip() and lines[place] != "----":
                directive.body.append(lines[place])
                place += 1
            if place < len(lines) and lines[place] == "----":
                place += 1
                directive.expected, directive.expected_at = [], place
                while place < len(lines) and lines[place].strip():
                    directive.expected.append(lines[place])
                    place += 1
        directives.append(directive)
    return directives


class Story:
    """One file under one configuration."""

    def __init__(self, folder, configuration, update):
        self.folder, self.configuration, self.update = folder, configuration, update
        self.warehouse = folder / "warehouse"
        self.pending = []
        self.rewrites = {}  # directive -> new expected lines

    def expand(self, text):
        return text.replace("${dir}", str(self.folder))

    def sql(self, text, format):
        text = "\n".join([*self.pending, self.expand(text)])
        self.pending = []
        return call("sql", "--warehouse", self.warehouse, "--format", format, *self.configuration.arguments,
                    "-c", text, cwd=self.folder)

    def flush(self):
        if self.pending:
            process = self.sql("", "ndjson")
            assert process.returncode == 0, process.stderr

    def check_text(self, text, lines):
        for line in lines or []:
            line = self.expand(line)
            found = re.search(line[3:].strip(), text, re.S) if line.startswith("re:") else line.strip("\n") in text
            assert found, f"not in the message: {line}\n--- message ---\n{text}"

    def file(self, directive):
        path = self.folder / directive.rest.strip()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.expand("\n".join(directive.body) + "\n")
        if self.configuration.properties and path.suffix == ".sql":
            text = BARE_TABLE.sub(rf"\1 TBLPROPERTIES ({self.configuration.properties})", text)
        path.write_text(text, encoding="utf-8")

    def shell(self, directive):
        self.flush()
        done = subprocess.run(self.expand(directive.rest), shell=True, cwd=self.folder, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"

    def run(self, directive):
        words = directive.rest.split()
        wanted = {"fails": 1, "invalid": 2}.get(words[1] if len(words) > 1 else "", 0)
        arguments = words[2:] if wanted else words[1:]
        self.flush()
        run = run_pipeline(self.folder / words[0], self.warehouse, *self.configuration.arguments, *arguments,
                           cwd=self.folder)
        assert run.exit_code == wanted, f"exit {run.exit_code}\n{run.explain()}"
        text = run.stderr + "".join(f"\n{e['code']}: {e['message']} ({e.get('file')}:{e.get('line')}:{e.get('column')})"
                                    for e in run.report["errors"])
        for line in directive.expected or []:
            if line.startswith("expectation "):
                _, name, expectation, *counts = line.split()
                got = next(e for e in run.flow(name)["expectations"] if e["name"] == expectation)
                found = [f"{key}={got[key + '_records']}" for key in ("passed", "failed", "dropped")]
                assert found == counts, f"{name}: {expectation} has {found}, not {counts}"
                continue
            if not line.startswith("flow "):
                self.check_text(text, [line])
                continue
            _, name, *metrics = line.split()
            got = run.flow(name)
            for metric in metrics:
                key, value = metric.split("=")
                found = got["status"] if key == "status" else got["metrics"][key]
                assert str(found) == value or float(found) == float(value), f"{name}: {key} is {found}, not {value}"

    def statement(self, directive):
        text = "\n".join(directive.body)
        if directive.rest.strip() == "ok":
            if self.configuration.one_session:
                self.pending.append(self.expand(text).rstrip().rstrip(";") + ";")
                return
            process = self.sql(text, "ndjson")
            assert process.returncode == 0, process.stderr
            return
        assert directive.rest.strip() == "error" and directive.expected, "say `statement ok`, or `error` and what it says"
        self.flush()
        process = self.sql(text, "ndjson")
        assert process.returncode in (1, 2), f"must fail, printed: {process.stdout}"
        self.check_text(process.stderr, directive.expected)

    def query(self, directive):
        process = self.sql("\n".join(directive.body), "ndjson")
        assert process.returncode == 0, process.stderr
        got = [json.dumps(json.loads(line), ensure_ascii=False) for line in process.stdout.splitlines()]
        expected = [json.dumps(json.loads(self.expand(line)), ensure_ascii=False) for line in directive.expected or []]
        ordered = directive.rest.strip() == "ordered"
        if (got if ordered else sorted(got)) == (expected if ordered else sorted(expected)):
            return
        if self.update:
            self.rewrites[directive.line] = (directive, got if ordered else sorted(got))
            return
        raise AssertionError("rows differ\n--- got ---\n" + "\n".join(got) + "\n--- expected ---\n" + "\n".join(expected))

    def output(self, directive):
        process = self.sql("\n".join(directive.body), directive.rest.strip())
        assert process.returncode == 0, process.stderr
        got = [line.rstrip() for line in process.stdout.rstrip("\n").split("\n")]
        if got == directive.expected:
            return
        if self.update:
            self.rewrites[directive.line] = (directive, got)
            return
        raise AssertionError("output differs\n--- got ---\n" + "\n".join(got))


def rewritten(text, rewrites):
    lines = text.split("\n")
    for directive, new in sorted(rewrites.values(), key=lambda item: -item[0].line):
        if directive.expected is None:
            after = directive.line + len(directive.body)
            lines[after:after] = ["----", *new]
        else:
            lines[directive.expected_at:directive.expected_at + len(directive.expected)] = new
    return "\n".join(lines)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(HERE).with_suffix("")) for path in FILES])
def test_logic(path, configuration, tmp_path, request):
    update = request.config.getoption("--update") and configuration == "default"
    text = path.read_text(encoding="utf-8")
    story = Story(tmp_path, CONFIGURATIONS[configuration], update)
    directives = parse(text)
    for directive in directives:
        if directive.word == "skip" and directive.rest.split()[0] == configuration:
            reason = directive.rest.split(maxsplit=1)[1]
            pytest.skip(reason)
    for directive in directives:
        if directive.word == "skip":
            assert directive.rest.split()[0] in CONFIGURATIONS, f"line {directive.line}: no such configuration"
            continue
        try:
            getattr(story, directive.word)(directive)
        except AssertionError as error:
            raise AssertionError(f"{path.name}:{directive.line}: {directive.head}\n{error}") from None
    story.flush()
    if story.rewrites:
        path.write_text(rewritten(text, story.rewrites), encoding="utf-8")


def test_the_runner_notices_wrong_rows(tmp_path):
    """The runner itself must fail where it should."""
    good = Story(tmp_path, CONFIGURATIONS["default"], False)
    good.query(parse("query\nSELECT 1 AS a\n----\n{\"a\": 1}\n")[0])
    with pytest.raises(AssertionError, match="rows differ"):
        good.query(parse("query\nSELECT 1 AS a\n----\n{\"a\": 2}\n")[0])
    with pytest.raises(AssertionError, match="must fail"):
        good.statement(parse("statement error\nSELECT 1 AS a\n----\nx\n")[0])
    with pytest.raises(AssertionError, match="not in the message"):
        good.statement(parse("statement error\nSELECT nothing_there\n----\nquite another text\n")[0])
