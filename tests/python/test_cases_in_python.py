"""Row cases of the shared files declared in Python: every snapshot case, and a few of each other kind, on the paths of the
SQL cases."""

import re
import sys

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "tests" / "cases"))
sys.path.insert(0, str(harness.ROOT / "tests" / "python"))

import cases as loader
import runner
import test_cases as rows_of
import values
from selection import FAILING, ROW_CASES

EVERY = 4  # of how many other cases one runs

CLAUSES_OF_TABLES = {
    "": "",
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')": "table_properties={'delta.columnMapping.mode': 'name'}",
}

KNOWN = [case for case in ROW_CASES if case.target_clauses in CLAUSES_OF_TABLES and case.name not in FAILING]
OF_SNAPSHOTS = [case for case in KNOWN if case.steps[0].flows[0].version is not None]
CASES = OF_SNAPSHOTS + [case for case in KNOWN if case not in OF_SNAPSHOTS][::EVERY]

CLAUSES = {
    "IGNORE NULL UPDATES ON": "ignore_null_updates_column_list",
    "IGNORE NULL UPDATES": "ignore_null_updates",
    "APPLY AS DELETE WHEN": "apply_as_deletes",
    "APPLY AS TRUNCATE WHEN": "apply_as_truncates",
    "SYSTEM SEQUENCE BY": "system_sequence_by",
    "COLUMNS TO UPDATE": "columns_to_update",
    "COLUMNS * EXCEPT": "except_column_list",
    "COLUMNS": "column_list",
    "TRACK HISTORY ON * EXCEPT": "track_history_except_column_list",
    "TRACK HISTORY ON": "track_history_column_list",
}


def names(text):
    return re.findall(r"`(?:[^`]|``)*`|[^\s,()]+", text)


def parameter(clause):
    """The Python parameter and value that a clause stands for."""
    start = next(one for one in sorted(CLAUSES, key=len, reverse=True) if clause.startswith(one))
    rest, name = clause[len(start) :].strip(), CLAUSES[start]
    if name == "ignore_null_updates":
        return name, True
    return name, names(rest) if name.endswith("_list") else rest


def version_python(version):
    """An SQL literal of a version as Python."""
    time = re.fullmatch(r"TIMESTAMP '(.*)'", version)
    return f"datetime.datetime.fromisoformat({time.group(1).replace('Z', '+00:00')!r})" if time else version


def snapshot_python(flow, name, target, folder, options):
    read = f"spark.read.schema({loader.ddl(flow.schema)!r}).json({str(folder / flow.name)!r})"
    if flow.version:
        source = f"{name}_next"
        text = f"""
calls = []
def {source}(latest):
    calls.append(latest)
    if len(calls) == 1:
        return {read}, {version_python(flow.version)}
"""
    else:
        source = repr(f"{name}_source")
        text = f"""
@dp.view(name={source})
def source():
    return {read}
"""
    return text + f"""
dp.create_auto_cdc_from_snapshot_flow(target={target!r}, source={source}, keys={[loader.column(key) for key in flow.keys]!r},
                                      stored_as_scd_type={flow.storage!r}, name={target + "_snapshots"!r}, **{options!r})
"""


def flow_python(flow, name, target, folder):
    options = dict(parameter(clause) for clause in flow.clauses)
    if flow.version is not None:
        return snapshot_python(flow, f"{target}_snapshots", target, folder, options)
    schema = loader.ddl(flow.schema)
    return f"""
@dp.temporary_view(name={name + "_source"!r})
def {name}_source():
    return spark.readStream.schema({schema!r}).json({str(folder / flow.name)!r})

dp.create_auto_cdc_flow(target={target!r}, source={name + "_source"!r}, keys={[loader.column(key) for key in flow.keys]!r},
                        sequence_by={flow.sequence!r}, stored_as_scd_type={flow.storage!r}, name={name!r},
                        once={flow.once!r}, **{options!r})
"""


def write_pipeline(jobs, number, folder, landing):
    for job in jobs:
        step = job.steps[min(number, len(job.steps) - 1)]
        clauses = CLAUSES_OF_TABLES[job.case.target_clauses]
        text = f"# {job.case.name}\nimport datetime\nfrom pyspark import pipelines as dp\n"
        text += f"dp.create_streaming_table({job.target!r}, {clauses})\n"
        for flow in step.flows:
            text += flow_python(flow, f"{job.target}_{flow.name}", job.target, landing / job.target)
        (folder / f"{job.target}.py").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "write_pipeline", write_pipeline)
        jobs = [runner.Job(case, "forwards", case.steps, f"t{i:04d}") for i, case in enumerate(CASES)]
        jobs.sort(key=lambda job: len(job.steps))
        runner.run_group(jobs, tmp_path_factory.mktemp("cases"))
    return {job.case.name: job.outcome for job in jobs}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_rows(case, outcomes):
    outcome = outcomes[case.name]
    assert not outcome.problems, "\n".join(outcome.problems)
    wrong = values.differences(outcome.rows, case.expected, rows_of.types_of(case))
    assert not wrong, f"rows differ:\n{wrong}"


def test_there_are_cases_of_each_kind():
    assert {case.storage for case in CASES} == {1, 2, "bitemporal"} and len(CASES) > 60
    assert {case.storage for case in OF_SNAPSHOTS} == {1, 2} and len(OF_SNAPSHOTS) > 25
    assert {name for case in CASES for step in case.steps for flow in step.flows for name, _ in map(parameter, flow.clauses)}
