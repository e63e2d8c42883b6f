"""The shared cases, run through the program: rows in every order and batching, and errors.

expectations.json lists what is not run yet, what is judged otherwise by our rules, and what is
known to fail, each with its reason. An entry that is no longer needed fails a test.
"""

from collections import Counter

import cases as loader
import declarations
import pytest
import runner
import values
from harness import ROOT, SqlError, run_pipeline, sql_text
from selection import (
    ALL,
    COVERED_ELSEWHERE,
    ELSEWHERE,
    ERROR_CASES,
    FAILING,
    NOT_OURS,
    NOT_YET,
    OTHERWISE,
    RAW_NAMES,
    ROW_CASES,
    ROW_TESTS,
    RUN,
    SKIPPED,
)


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    return runner.run_all(ROW_CASES, tmp_path_factory.mktemp("cases"))


def expected_failure(name, request):
    if name in FAILING:
        request.applymarker(pytest.mark.xfail(reason=FAILING[name], strict=True))


def types_of(case):
    types = {**case.steps[-1].flows[-1].schema}
    for step in case.steps:
        types = {**{name: kind for flow in step.flows for name, kind in flow.schema.items()}, **types}
    return {**{name: loader.base_type(kind) for name, kind in types.items()},
            "__START_AT": case.sequence_type, "__END_AT": case.sequence_type,
            "__SYSTEM_START_AT": case.system_type, "__SYSTEM_END_AT": case.system_type}


def target_columns(case):
    """Selected columns in source order, then the interval; None when schemas change on the way."""
    flow = case.steps[-1].flows[-1]
    if case.columns is not None:
        return case.columns
    if loader.columns_vary([step.events for step in case.steps]) or "(" in case.target_clauses.split("PARTITIONED")[0]:
        return None
    only = next((c for c in flow.clauses if c.startswith("COLUMNS (")), None)
    without = next((c for c in flow.clauses if c.startswith("COLUMNS * EXCEPT")), "")
    names = [name for name in flow.schema if loader.quote(name).lower() not in without.lower()
             and (only is None or loader.quote(name).lower() in only.lower())]
    intervals = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"]
    return names + intervals[:{1: 0, 2: 2}.get(case.storage, 4)]


@pytest.mark.parametrize("case,variant", ROW_TESTS, ids=[f"{case.name} / {variant}" for case, variant in ROW_TESTS])
def test_rows(case, variant, outcomes, request):
    expected_failure(case.name, request)
    outcome = outcomes[case.name, variant].outcome
    assert not outcome.problems, "\n".join(outcome.problems)
    wrong = values.differences(outcome.rows, case.expected, types_of(case))
    assert not wrong, f"rows differ:\n{wrong}"
    for number, rows in outcome.after.items():
        wrong = values.differences(rows, case.steps[number].after, types_of(case))
        assert not wrong, f"rows after step {number} differ:\n{wrong}"
    columns = target_columns(case)
    if outcome.rows and columns is not None:
        assert list(outcome.rows[0]) == columns


def code_fits(code, expected):
    """The files name errors in full, by their last part, or not at all."""
    return expected == "*" or code == expected or code.split(".")[-1] == expected.split(".")[-1]


@pytest.mark.parametrize("case", ERROR_CASES, ids=[case.name for case in ERROR_CASES])
def test_errors(case, tmp_path, request):
    expected_failure(case.name, request)
    run, rows = runner.run_alone(case, tmp_path)
    assert not run.ok, "must fail"
    assert any(code_fits(code, case.error) for code in run.codes), run.explain()
    if case.expected is not None:
        wrong = values.differences(rows or [], case.expected, types_of(case))
        assert not wrong, f"rows after the failed batch differ:\n{wrong}"


@pytest.mark.parametrize("declaration", declarations.ALL, ids=[d.name for d in declarations.ALL])
def test_declarations(declaration, tmp_path, request):
    expected_failure(declaration.name, request)
    run = declaration.run(tmp_path)
    if declaration.error is None:
        assert run.ok, run.explain()
    else:
        assert not run.ok, "must be refused"
        assert any(code_fits(code, declaration.error) for code in run.codes), run.explain()


@pytest.mark.parametrize("feature", sorted(NOT_YET))
def test_feature_is_still_missing(feature, tmp_path):
    """Fails once the feature is built: then its cases must run."""
    probe = NOT_YET[feature]["probe"]
    works_now = f"{feature} works now: drop it from expectations.json and run its cases"
    sql = probe.get("sql") or probe.get("then_sql")
    if "pipeline" in probe:
        (tmp_path / "landing").mkdir()
        (tmp_path / "pipeline").mkdir()
        text = probe["pipeline"].replace("${landing}", str(tmp_path / "landing"))
        (tmp_path / "pipeline" / "probe.sql").write_text(text, encoding="utf-8")
        run = run_pipeline(tmp_path / "pipeline", tmp_path / "warehouse", *([] if sql else ["--dry-run"]))
        assert run.exit_code == (0 if sql else 2), works_now
    if sql:
        with pytest.raises(SqlError):
            sql_text(tmp_path / "warehouse", sql)
            pytest.fail(works_now, pytrace=False)


def test_expectations_are_needed():
    """Every name in the list is a case's, and no case is listed twice or for nothing."""
    known = RAW_NAMES | {d.name for d in declarations.ALL}
    listed = Counter([*NOT_OURS, *OTHERWISE, *FAILING])
    assert not set(listed) - known, "names of no case"
    assert not [name for name, times in listed.items() if times > 1], "listed twice"
    assert {need for case in ALL for need in case.needs} == set(NOT_YET) | set(COVERED_ELSEWHERE), \
        "features listed and features needed"
    assert not set(NOT_YET) & set(COVERED_ELSEWHERE), "both missing and run elsewhere"
    assert not [file for file in COVERED_ELSEWHERE.values() if not (ROOT / file).is_file()], "files that are not there"
    unrunnable = {case.name for case in ALL if case.why_not} - set(declarations.COVERED)
    assert unrunnable <= set(NOT_OURS), "cases that cannot be run must each be listed with the reason"


def test_every_case_is_accounted_for():
    assert len(RUN) + len(SKIPPED) + len(ELSEWHERE) + len(declarations.COVERED) + len(NOT_OURS) == len(ALL)
