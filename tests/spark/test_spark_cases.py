"""Every row case of the shared cases on Spark: the program of its flow, printed for Spark, must give
the rows that the case states and the embedded engine gives, in every order and batching."""

import lockstep
import pytest
import values
from selection import FAILING, ROW_CASES
from test_cases import expected_failure, types_of

GROUP_SIZE = 12  # jobs a pipeline
# Not a matter of a batch's program.
NOT_OF_A_PROGRAM = {case.name: "a full refresh, which the pipeline does" for case in ROW_CASES
                    if any(step.full_refresh for step in case.steps)}
NOT_OF_A_PROGRAM |= {case.name: "a snapshot, whose programs are not printed" for case in ROW_CASES
                     if any(flow.version is not None for step in case.steps for flow in step.flows)}
RUN = [case for case in ROW_CASES if case.name not in NOT_OF_A_PROGRAM]


@pytest.fixture(scope="session")
def outcome_of(request, spark, tmp_path_factory):
    """Runs the chosen cases, group by group, when the first of a group is asked for."""
    chosen = {item.callspec.params["case"].name for item in request.session.items
              if getattr(item, "callspec", None) and "case" in item.callspec.params}
    jobs = sorted(lockstep.jobs_of([case for case in RUN if case.name in chosen]), key=lambda job: len(job.steps))
    groups = [jobs[start:start + GROUP_SIZE] for start in range(0, len(jobs), GROUP_SIZE)]
    done = set()

    def run_until(case):
        for number, group in enumerate(groups):
            if number not in done and any(job.ways_of(case) for job in group):
                lockstep.run_group(group, tmp_path_factory.mktemp(f"group{number}") / "run", spark)
                done.add(number)
        return [job for job in jobs if job.ways_of(case)]

    return run_until


@pytest.mark.parametrize("case", RUN, ids=[case.name for case in RUN])
def test_rows(case, outcome_of, request):
    expected_failure(case.name, request)
    types = types_of(case)
    for job in outcome_of(case):
        assert not job.problems, "\n".join(job.problems)
        for way in job.ways_of(case):
            rows = job.rows_of(job.rows, way)
            wrong = values.differences(rows, case.expected, types)
            assert not wrong, f"{way}: rows differ:\n{wrong}"
            wrong = values.differences(rows, job.rows_of(job.embedded_rows, way), types)
            assert not wrong, f"{way}: rows differ from the embedded engine's:\n{wrong}"
        for number, rows in job.after.items():
            wrong = values.differences(rows, job.steps[number].after, types)
            assert not wrong, f"rows after step {number} differ:\n{wrong}"


def test_what_is_left_out_is_listed():
    assert set(NOT_OF_A_PROGRAM) <= {case.name for case in ROW_CASES} - set(FAILING)
    print("\n".join(f"not a matter of a program: {name}: {why}" for name, why in NOT_OF_A_PROGRAM.items()))
