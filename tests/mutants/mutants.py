#!/usr/bin/env python3
"""Whether the tests bite: one-word mutations of the code, each of which a test has to catch.

The tables beside this file (*.tsv) have a mutant per line, its fields parted by tabs:

    file     under src/
    text     what is replaced, within one line; `2§text` is its second place in the file, where it has several
    becomes  what stands there in the mutant
    caught   the programs that should catch it, the cheapest first; `cdf_test:StreamTest.*` chooses tests
             as --gtest_filter does, `logic:ties` is tests/logic/ties.test, `cases` all of tests/cases,
             `pytest:tests/crash/test_crash.py` a file of Python tests
    why      empty; or why the mutant is the same program: nothing can catch it then, and nothing may

A mutant is its object file, compiled from a changed copy, in a copy of its folder's shared library that
the programs load instead of their own (preset `mutants`): the checkout is never touched, and no test is
built again. Tests that compare texts of programs with tests/golden do not count.

Usage: mutants.py [--check] [--fresh] [WORD…]
  WORD     chooses mutants: a part of their file, text or mutation, or a line as file.tsv:12
  --check  only looks whether every text still stands where the table says
  --fresh  asks no earlier run; else what was judged is judged again once its file or its tests changed

Exits 1 if a mutant survives, does not compile, or has lost its text.
"""

import argparse
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build-mutants"
RESULTS = BUILD / "mutants.json"
WORKERS = int(os.environ.get("STRANDLINE_MUTANT_WORKERS", "2"))
# What a mutant breaks, few histories show.
ENVIRONMENT = {
    "STRANDLINE_PROPERTY_HISTORIES": "1500",
    "STRANDLINE_PROPERTY_SHRINK": "0",
    "STRANDLINE_CRASH_HISTORIES": "10",
    "CCACHE_MAXSIZE": os.environ.get("CCACHE_MAXSIZE", "5G"),
}
GOLDEN = "*GoldenTest*"
CANNOT_START = (126, 127)  # as a library that does not fit; no test has run then
FAILED = re.compile(r"^\[  FAILED  \] ([\w./]+)|^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    table: str
    line: int
    file: str
    text: str
    becomes: str
    caught: tuple
    why: str

    @property
    def place(self):
        return f"{self.table}:{self.line}"

    @property
    def name(self):
        return f"src/{self.file}: {self.text}  ->  {self.becomes}"

    @property
    def folder(self):
        return self.file.split("/")[0]

    @property
    def identity(self):
        return digest("\t".join([self.file, self.text, self.becomes]).encode())

    def mutated(self, source):
        """The file's text with the mutation; a ValueError where the place is not found."""
        number, _, text = self.text.rpartition("§")
        found = [match.start() for match in re.finditer(re.escape(text), source)]
        if not found:
            raise ValueError("its text is no longer found")
        if not number and len(found) > 1:
            raise ValueError(f"its text stands in {len(found)} places: say which")
        if number and int(number) > len(found):
            raise ValueError(f"its text stands in {len(found)} places only")
        at = found[int(number or 1) - 1]
        return source[:at] + self.becomes + source[at + len(text) :]


@dataclass
class Verdict:
    outcome: str  # killed, survived, hung, invalid, lost
    by: str = ""
    key: str = ""
    seconds: float = 0
    detail: str = field(default="", compare=False)


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def read_tables():
    mutants, mistakes, seen = [], [], {}
    for table in sorted(HERE.glob("*.tsv")):
        for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            fields = line.split("\t")
            if len(fields) == 4:
                fields.append("")
            place = f"{table.name}:{number}"
            if len(fields) != 5 or not all(fields[:2]) or not fields[3]:
                mistakes.append(f"{place}: not five fields parted by tabs")
                continue
            file, text, becomes, caught, why = fields
            mutant = Mutant(table.name, number, file, text, becomes, tuple(caught.split()), why)
            if mutant.identity in seen:
                mistakes.append(f"{place}: the same mutant as {seen[mutant.identity]}")
            seen[mutant.identity] = place
            if not file.endswith(".cc"):
                mistakes.append(f"{place}: {file} is no .cc file: tests have copies of what headers hold")
            mutants.append(mutant)
    return mutants, mistakes


def find_lost(mutants):
    lost = []
    for mutant in mutants:
        try:
            mutant.mutated((ROOT / "src" / mutant.file).read_text(encoding="utf-8"))
        except (ValueError, FileNotFoundError) as error:
            lost.append(f"{mutant.place}: {mutant.name}: {error}")
    return lost


# --- building ---------------------------------------------------------------------------------------------


def programs_of(mutants):
    wanted = {catcher.split(":")[0] for mutant in mutants for catcher in mutant.caught}
    return sorted({name if name.endswith("_test") else "strandline" for name in wanted})


def build(mutants):
    subprocess.run(["cmake", "--preset", "mutants"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "mutants", "--target", *programs_of(mutants)], cwd=ROOT,
                   check=True, stdout=subprocess.DEVNULL)


class Commands:
    """How the build compiles a file, and links its folder's library."""

    def __init__(self):
        listed = json.loads((BUILD / "compile_commands.json").read_text())
        self.compile = {entry["file"]: entry["command"] for entry in listed}
        self.links = {}
        self.lock = threading.Lock()

    def link_of(self, folder):
        with self.lock:
            if folder not in self.links:
                library = f"lib/libstrandline_{folder}.so"
                listed = subprocess.run(["ninja", "-t", "commands", "-s", library], cwd=BUILD, check=True,
                                        capture_output=True, text=True)
                self.links[folder] = (library, listed.stdout.strip())
            return self.links[folder]

    def make_library(self, mutant, source, folder):
        """The mutant's library in `folder`; what the compiler says if it does not compile."""
        original = ROOT / "src" / mutant.file
        changed = folder / original.name
        changed.write_text(source, encoding="utf-8")
        words = shlex.split(self.compile[str(original)])
        old_object = words[words.index("-o") + 1]
        new_object = folder / (original.name + ".o")
        words = [str(changed) if word == str(original) else word for word in words]
        words[words.index("-o") + 1] = str(new_object)
        words = ["-O0" if word == "-O2" else word for word in words] + ["-w"]
        compiled = subprocess.run(words, cwd=BUILD, capture_output=True, text=True)
        if compiled.returncode != 0:
            return compiled.stderr
        library, link = self.link_of(mutant.folder)
        if f" {old_object} " not in link:
            raise SystemExit(f"{old_object} is not in the command that links {library}")
        link = link.replace(f" {old_object} ", f" {shlex.quote(str(new_object))} ")
        link = link.replace(f"-o {library} ", f"-o {shlex.quote(str(folder / Path(library).name))} ")
        linked = subprocess.run(["sh", "-c", link], cwd=BUILD, capture_output=True, text=True)
        return "" if linked.returncode == 0 else linked.stderr


# --- running ----------------------------------------------------------------------------------------------


def command_of(catcher):
    program, _, choice = catcher.partition(":")
    if program.endswith("_test"):
        chosen = f"{choice}:{GOLDEN}" if "-" in choice else f"{choice or '*'}-{GOLDEN}"
        return [str(BUILD / "tests" / program), f"--gtest_filter={chosen}", "--gtest_fail_fast", "--gtest_brief=1"]
    if program == "logic":
        chosen = [f"tests/logic/test_logic.py::test_logic[{choice}-default]"]
    elif program == "cases":
        chosen = ["tests/cases/test_cases.py", *(["-k", choice] if choice else [])]
    elif program == "pytest":
        file, _, names = choice.partition(":")
        chosen = [file, *(["-k", names] if names else [])]
    else:
        raise SystemExit(f"'{catcher}' is no test that can catch a mutant")
    return [sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", *chosen]


def run_catcher(catcher, folder, limit):
    """(outcome, test that failed, output) of one run with the library in `folder`, if any."""
    with tempfile.TemporaryDirectory(prefix="strandline-mutant-") as scratch:
        environment = {**os.environ, **ENVIRONMENT, "TMPDIR": scratch, "HOME": os.environ.get("HOME", scratch),
                       "STRANDLINE_PROGRAM": str(BUILD / "bin" / "strandline")}
        if folder:
            # The mutant first, then what it needs itself.
            environment["LD_LIBRARY_PATH"] = f"{folder}:{BUILD / 'lib'}"
        process = subprocess.Popen(command_of(catcher), cwd=ROOT, env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "hung", catcher, ""
    if process.returncode == 0:
        return "passed", "", output
    if process.returncode in CANNOT_START:
        raise SystemExit(f"{catcher} does not start:\n{output[-3000:]}")
    failed = FAILED.search(output)
    test = next((name for name in failed.groups() if name), "") if failed else ""
    return "failed", test or f"exit {process.returncode}", output


class Baselines:
    """How long each catcher takes when nothing is wrong; it has to pass then."""

    def __init__(self):
        self.seconds = {}
        self.locks = {}
        self.lock = threading.Lock()

    def limit(self, catcher):
        with self.lock:
            own = self.locks.setdefault(catcher, threading.Lock())
        with own:
            if catcher not in self.seconds:
                start = time.monotonic()
                outcome, test, output = run_catcher(catcher, None, 1800)
                if outcome != "passed":
                    raise SystemExit(f"{catcher} does not pass as it is ({test}):\n{output[-3000:]}")
                if not re.search(r"\b[1-9]\d* (tests|passed)\b", output):
                    raise SystemExit(f"{catcher} chooses no tests")
                self.seconds[catcher] = time.monotonic() - start
            return 60 + 10 * self.seconds[catcher]


def source_of_tests(catcher):
    """The files that decide what a catcher says, but for the library."""
    program, _, choice = catcher.partition(":")
    if program == "logic":
        return [HERE.parent / "logic" / f"{choice}.test", HERE.parent / "logic" / "test_logic.py"]
    if program == "cases":
        return sorted((HERE.parent / "cases").glob("*.py"))
    if program == "pytest":
        return [ROOT / choice.partition(":")[0]]
    name = program.removesuffix("_test")
    folders = {"cdc_program": "tests/cdc"}
    beside = sorted((ROOT / "src" / name).glob("*_test.cc"))
    return beside or sorted((ROOT / folders.get(name, f"tests/{name}")).glob("*.cc"))


@functools.cache
def texts_of_tests(catcher):
    return [path.read_text(encoding="utf-8") for path in source_of_tests(catcher) if path.exists()]


def text_of_test(catcher, test):
    """The test that killed, as it is written; all of the catcher's files where that is not to be told."""
    texts = texts_of_tests(catcher)
    named = re.search(r"(\w+)\.(\w+)", test)
    if catcher.split(":")[0].endswith("_test") and named:
        begins = re.compile(r"^TEST(?:_[FP])?\(" + named[1] + r",\s*" + named[2] + r"\)", re.MULTILINE)
        for text in texts:
            if begin := begins.search(text):
                end = re.compile(r"^(?:TEST|INSTANTIATE)", re.MULTILINE).search(text, begin.end())
                return text[begin.start() : end.start() if end else len(text)]
    return "".join(texts)


class Keys:
    """A verdict holds while its key is the same: a kill while the mutated file and the test that killed
    are, a survival while all code and all tests that were asked are."""

    def __init__(self, mutants):
        # As they were built: what is written while mutants run counts the next time.
        for mutant in mutants:
            for catcher in mutant.caught:
                texts_of_tests(catcher)
        self.files = {mutant.file: (ROOT / "src" / mutant.file).read_text(encoding="utf-8") for mutant in mutants}
        self.code = digest(b"".join(path.read_bytes() for path in sorted((ROOT / "src").rglob("*"))
                                    if path.is_file() and not path.name.endswith("_test.cc")))

    def of(self, mutant, outcome, by):
        if outcome in ("killed", "hung"):
            catcher, _, test = by.partition(" ")
            parts = [self.files[mutant.file], text_of_test(catcher, test)]
        else:
            tests = [text_of_test(catcher, "") for catcher in mutant.caught]
            parts = [self.code, *mutant.caught, *tests]
        return digest("\n".join(parts).encode())


def read_results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


class Judge:
    def __init__(self, mutants, fresh):
        self.commands = Commands()
        self.baselines = Baselines()
        self.keys = Keys(mutants)
        self.lock = threading.Lock()
        self.fresh = fresh
        self.known = read_results()
        self.left = len(mutants)

    def before(self, mutant):
        found = self.known.get(mutant.identity)
        return Verdict(**found) if found else None

    def judge(self, mutant):
        old = self.before(mutant)
        if old and not self.fresh and old.key == self.keys.of(mutant, old.outcome, old.by):
            verdict = old
        else:
            start = time.monotonic()
            verdict = self.try_out(mutant, old)
            verdict.seconds = round(time.monotonic() - start, 1)
            verdict.key = self.keys.of(mutant, verdict.outcome, verdict.by)
            self.keep(mutant, verdict)
        with self.lock:
            self.left -= 1
            if verdict is not old:
                print(f"{verdict.outcome:9}{verdict.seconds:6.0f} s  {mutant.place}  {mutant.name}  [{verdict.by}]"
                      f"  ({self.left} left)", flush=True)
        return verdict

    def keep(self, mutant, verdict):
        # Two runs may go on at a time.
        with self.lock, open(RESULTS.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = read_results()
            known[mutant.identity] = {"outcome": verdict.outcome, "by": verdict.by, "key": verdict.key,
                                      "seconds": verdict.seconds}
            scratch = RESULTS.with_suffix(".new")
            scratch.write_text(json.dumps(known, indent=1))
            scratch.replace(RESULTS)

    def try_out(self, mutant, old):
        try:
            source = mutant.mutated(self.keys.files[mutant.file])
        except ValueError as error:
            return Verdict("lost", str(error))
        with tempfile.TemporaryDirectory(prefix="strandline-mutant-") as name:
            folder = Path(name)
            problem = self.commands.make_library(mutant, source, folder)
            if problem:
                return Verdict("invalid", problem.strip().split("\n")[0])
            catchers = list(mutant.caught)
            # What killed it before comes first.
            last = old.by.split(" ")[0] if old and old.outcome == "killed" else ""
            if last in catchers:
                catchers.remove(last)
                catchers.insert(0, last)
            for catcher in catchers:
                outcome, test, _ = run_catcher(catcher, folder, self.baselines.limit(catcher))
                if outcome == "hung":
                    return Verdict("hung", catcher)
                if outcome == "failed":
                    return Verdict("killed", f"{catcher} {test}")
        return Verdict("survived")


def choose(mutants, words):
    if not words:
        return mutants
    return [m for m in mutants if any(word == m.place or (not re.fullmatch(r"[\w.]+:\d+", word) and
                                                          (word in m.name or word == m.table)) for word in words)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("words", nargs="*")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--fresh", action="store_true")
    options = arguments.parse_args()

    mutants, mistakes = read_tables()
    if options.check:
        lost = find_lost(mutants)
        for line in mistakes + lost:
            print(line)
        print(f"{len(mutants)} mutants, {len(mistakes)} mistakes in the tables, {len(lost)} texts no longer found")
        return 1 if mistakes or lost else 0

    mutants = choose(mutants, options.words)
    if mistakes or not mutants:
        print("\n".join(mistakes) or "no mutant is chosen")
        return 1
    if lost := find_lost(mutants):
        print("\n".join(lost))
        return 1
    build(mutants)
    judge = Judge(mutants, options.fresh)
    with ThreadPoolExecutor(WORKERS) as pool:
        verdicts = list(pool.map(judge.judge, mutants))

    def those(*outcomes, same_program=False):
        return [(m, v) for m, v in zip(mutants, verdicts) if v.outcome in outcomes and bool(m.why) == same_program]

    wrong = those("killed", "hung", same_program=True)
    for title, found in (("lost its text", those("lost") + those("lost", same_program=True)),
                         ("does not compile", those("invalid") + those("invalid", same_program=True)),
                         ("is called the same program, but a test catches it", wrong),
                         ("hung until the time limit", those("hung")),
                         ("SURVIVED", those("survived"))):
        for mutant, verdict in found:
            print(f"{title}: {mutant.place}  {mutant.name}  [{verdict.by or ' '.join(mutant.caught)}]")
    counts = {outcome: len(those(outcome)) + len(those(outcome, same_program=True)) for outcome in ("lost", "invalid")}
    survivors = len(those("survived"))
    print(f"{len(mutants)} mutants: {len(those('killed'))} killed, {len(those('hung'))} hung, "
          f"{len(those('survived', same_program=True))} equivalent, {len(wrong)} wrongly called equivalent, "
          f"{counts['invalid']} invalid, {counts['lost']} lost, {survivors} survivors")
    return 1 if survivors or wrong or counts["invalid"] or counts["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
