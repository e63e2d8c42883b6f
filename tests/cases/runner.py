"""Runs many cases as flows of few pipelines: one file of statements and one target each."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import cases as loader
from harness import SqlError, query, quote, run_pipeline, sql_text, write_json_lines

GROUP_SIZE = 60  # cases a pipeline: large enough to be quick, small enough for several processes
WORKERS = 2


@dataclass
class Outcome:
    """What one way of running one case gave."""

    rows: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    codes: list = field(default_factory=list)
    after: dict = field(default_factory=dict)  # step number -> rows


@dataclass
class Job:
    case: loader.Case
    variant: str
    steps: list
    target: str
    outcome: Outcome = field(default_factory=Outcome)


def jobs_of(case_list):
    jobs = []
    for case in case_list:
        for variant, steps in loader.variants(case):
            jobs.append(Job(case, variant, steps, f"t{len(jobs):04d}"))
    return jobs


def deliver(job, number, landing):
    step = job.steps[number]
    for flow in step.flows:
        (landing / job.target / flow.name).mkdir(parents=True, exist_ok=True)
    if step.events:
        flow = step.flows[-1]
        schema = {**{name: "STRING" for event in step.events for name in event}, **flow.schema}
        lines = [loader.json_line(event, schema) for event in step.events]
        write_json_lines(landing / job.target / flow.name / f"batch-{number:03d}.json", lines)


def write_pipeline(jobs, number, folder, landing):
    for job in jobs:
        step = job.steps[min(number, len(job.steps) - 1)]
        text = f"-- {job.case.name} ({job.variant})\n" + loader.step_sql(job.case, step, job.target, landing / job.target)
        (folder / f"{job.target}.sql").write_text(text, encoding="utf-8")


def maintenance_of(target, warehouse):
    """Everything that tidies a table, done to a target and its state."""
    state = warehouse / "main" / "default" / target / "_strandline_state"
    tables = [quote(target), *([f"delta.`{state}`"] if state.is_dir() else [])]
    return "SET spark.databricks.delta.retentionDurationCheck.enabled = false;\n" + "".join(
        f"OPTIMIZE {table};\nREORG TABLE {table} APPLY (PURGE);\nVACUUM {table} RETAIN 0 HOURS;\n" for table in tables)


def rows_of(jobs, warehouse):
    """Rows of many targets with few processes; a target that cannot be read has its own error."""
    try:
        text = ";\n".join(f"SELECT '{job.target}' AS `#`, t.* FROM {quote(job.target)} AS t" for job in jobs)
        found = {job.target: [] for job in jobs}
        for line in sql_text(warehouse, text).splitlines():
            row = json.loads(line)
            found[row.pop("#")].append(row)
        return found, {}
    except SqlError as error:
        if len(jobs) == 1:
            return {}, {jobs[0].target: str(error)}
        half = len(jobs) // 2
        (left, left_errors), (right, right_errors) = rows_of(jobs[:half], warehouse), rows_of(jobs[half:], warehouse)
        return {**left, **right}, {**left_errors, **right_errors}


def run_group(jobs, folder):
    """Runs the jobs side by side, one update a step, and fills in their outcomes."""
    pipeline, landing, warehouse = folder / "pipeline", folder / "landing", folder / "warehouse"
    pipeline.mkdir(parents=True)
    jobs = list(jobs)
    number = 0
    while jobs and number < max(len(job.steps) for job in jobs):
        current = [job for job in jobs if number < len(job.steps)]
        for job in current:
            deliver(job, number, landing)
        arguments = ["--threads", "1"]
        refreshed = [job for job in current if job.steps[number].full_refresh]
        for job in refreshed:  # as if the source had been emptied before
            for old in (landing / job.target).rglob("*.json"):
                if f"batch-{number:03d}" not in old.name:
                    old.unlink()
        if refreshed:
            arguments += ["--full-refresh", ",".join(job.target for job in refreshed), "--allow-missing-sources"]
        write_pipeline(jobs, number, pipeline, landing)
        run = run_pipeline(pipeline, warehouse, *arguments, timeout=600)
        if run.exit_code == 2:
            # One refused declaration stops them all: leave out those it names and go on.
            blamed = [job for job in jobs
                      if any(Path(error.get("file") or "").stem == job.target for error in run.report["errors"])]
            assert blamed, f"invalid, and no case to blame:\n{run.explain()}"
            for job in blamed:
                errors = [e for e in run.report["errors"] if Path(e.get("file") or "").stem == job.target]
                job.outcome.problems.append(f"step {number} is refused: {json.dumps(errors, ensure_ascii=False)}")
                next(pipeline.glob(f"{job.target}.*")).unlink()
            jobs = [job for job in jobs if job not in blamed]
            continue
        for flow in run.report["flows"]:
            name = flow["name"].split(".")[-1]
            job = next(job for job in jobs if name.startswith(job.target))
            if flow["status"] != "COMPLETED":
                about = [e for e in run.report["errors"] if job.target in json.dumps(e)]
                job.outcome.problems.append(f"step {number}: flow {flow['status']}: "
                                            f"{json.dumps(about or run.codes, ensure_ascii=False)}")
        for job in current:
            if job.steps[number].maintenance:
                sql_text(warehouse, maintenance_of(job.target, warehouse))
        stated = [job for job in current if job.variant == "forwards" and job.steps[number].after is not None]
        if stated:
            found, errors = rows_of(stated, warehouse)
            for job in stated:
                job.outcome.after[number] = found.get(job.target)
                if job.target in errors:
                    job.outcome.problems.append(errors[job.target])
        number += 1
    if jobs:
        found, errors = rows_of(jobs, warehouse)
        for job in jobs:
            job.outcome.rows = found.get(job.target, [])
            if job.target in errors:
                job.outcome.problems.append(errors[job.target])
    shutil.rmtree(folder, ignore_errors=True)


def run_all(case_list, folder):
    """Outcomes by (case name, variant)."""
    jobs = jobs_of(case_list)
    jobs.sort(key=lambda job: len(job.steps))  # groups with equally many updates
    groups = [jobs[start:start + GROUP_SIZE] for start in range(0, len(jobs), GROUP_SIZE)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda item: run_group(item[1], folder / f"group{item[0]}"), enumerate(groups)))
    return {(job.case.name, job.variant): job for job in jobs}


def run_alone(case, folder):
    """A case that must fail: its steps one by one. Returns the last run and the table's rows."""
    pipeline, landing, warehouse = folder / "pipeline", folder / "landing", folder / "warehouse"
    pipeline.mkdir(parents=True)
    job = Job(case, "forwards", case.steps, "target_table")
    run = None
    for number, step in enumerate(case.steps):
        deliver(job, number, landing)
        write_pipeline([job], number, pipeline, landing)
        run = run_pipeline(pipeline, warehouse)
        if step.error:
            break
        assert run.ok, f"step {number} must pass:\n{run.explain()}"
    try:
        rows = query(warehouse, f"SELECT * FROM {quote(job.target)}")
    except SqlError:
        rows = None  # no table: nothing was ever written
    return run, rows
