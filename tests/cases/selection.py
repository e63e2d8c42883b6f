"""Which cases run, which do not and why: the case files together with expectations.json."""

import json
from pathlib import Path

import cases as loader
import declarations

EXPECTATIONS = json.loads((Path(__file__).parent / "expectations.json").read_text("utf-8"))
NOT_YET, OTHERWISE = EXPECTATIONS["features"], EXPECTATIONS["overridden"]
NOT_OURS, FAILING = EXPECTATIONS["skipped"], EXPECTATIONS["failing"]
COVERED_ELSEWHERE = {  # feature -> the file that runs the cases that need it
    "change feed": "tests/feed/test_feed_cases.py",
    "python pipelines": "tests/python/test_declaration_cases.py",
}


def overridden(case):
    """The case with our rules' answer in place of its own."""
    ours = OTHERWISE.get(case.name)
    if ours is None:
        return case
    assert ours.get("expected") != case.expected or "error" in ours or "step" in ours or ours.get("reorder") is not None, \
        f"{case.name}: the override says what the case says"
    if "expected" in ours:
        case.expected = ours["expected"]
    for step in case.steps:
        if "error" in ours or "expected" in ours:
            step.error = ""
    if ours.get("error"):
        case.steps[ours.get("step", -1)].error = ours["error"]
        case.reorder = False
    if "reorder" in ours:
        case.reorder = ours["reorder"]
    if "columns" in ours:
        case.columns = ours["columns"]
    return case


ALL = loader.load()
RAW_NAMES = {case.name for case in ALL}
NEEDY = {case.name: sorted(case.needs - set(COVERED_ELSEWHERE)) or sorted(case.needs)
         for case in ALL if case.needs and case.name not in NOT_OURS}
SKIPPED = {name: needs[0] for name, needs in NEEDY.items() if needs[0] not in COVERED_ELSEWHERE}
ELSEWHERE = {name: COVERED_ELSEWHERE[needs[0]] for name, needs in NEEDY.items() if name not in SKIPPED}
RUN = [overridden(case) for case in ALL
       if not case.needs and not case.why_not and case.name not in NOT_OURS]
ROW_CASES = [case for case in RUN if not case.error]
ERROR_CASES = [case for case in RUN if case.error]
ROW_TESTS = [(case, variant) for case in ROW_CASES for variant, _ in loader.variants(case)]


def summary():
    """What is not run, by name, and the counts."""
    lines = ["Cases not run yet:"]
    lines += [f"  {name}: needs {feature}"
              for name, feature in sorted(SKIPPED.items(), key=lambda item: (item[1], item[0]))]
    lines += ["Cases run elsewhere:"]
    lines += [f"  {name}: {file}" for name, file in sorted(ELSEWHERE.items(), key=lambda item: (item[1], item[0]))]
    lines += ["Cases that are not for us:", *(f"  {name}: {why}" for name, why in sorted(NOT_OURS.items()))]
    lines += ["Cases judged by our own rules:", *(f"  {name}: {ours['why']}" for name, ours in sorted(OTHERWISE.items()))]
    lines += [f"  FAILS {name}: {why}" for name, why in sorted(FAILING.items())]
    lines.append(f"{len(ALL)} cases: {len(RUN)} run in {len(ROW_TESTS) + len(ERROR_CASES)} ways, "
                 f"{len(declarations.COVERED)} as declarations, {len(ELSEWHERE)} elsewhere, {len(SKIPPED)} not yet, {len(NOT_OURS)} not for us, "
                 f"{len(OTHERWISE)} judged otherwise.")
    return lines
