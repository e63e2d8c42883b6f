"""Runs cases on Spark beside the embedded engine: before each update of a pipeline its programs are
printed as the warehouse stands, and Spark runs them on the events of that update."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import cases as loader
import runner
from backend import Backend, CheckFailed, Tables
from harness import call, quote, run_pipeline, sql_text

WORKERS = 2  # Spark jobs at once
WAY = "way_to_run"  # a key column that keeps ways to run cases apart in one table


@dataclass
class Job:
    """One way to run a case, or many of cases with one declaration, side by side as rows of
    different keys: the name of each is in a key column."""

    case: loader.Case
    steps: list
    target: str
    ways: dict  # name -> case
    is_merged: bool = False
    backend: object = None
    tables: Tables = field(default_factory=Tables.empty)
    problems: list = field(default_factory=list)
    after: dict = field(default_factory=dict)  # step number -> Spark's rows
    rows: list = field(default_factory=list)
    embedded_rows: list = field(default_factory=list)

    @property
    def variant(self):
        return ", ".join(self.ways)

    def ways_of(self, case):
        return [way for way, of in self.ways.items() if of.name == case.name]

    def rows_of(self, rows, way):
        if not self.is_merged:
            return rows
        return [{name: value for name, value in row.items() if name != WAY} for row in rows if row[WAY] == way]


def with_way(flow):
    clauses = tuple(clause.replace("COLUMNS (", f"COLUMNS ({quote(WAY)}, ", 1) if clause.startswith("COLUMNS (") else clause
                    for clause in flow.clauses)
    return replace(flow, schema={**flow.schema, WAY: "STRING"}, keys=(*flow.keys, WAY), clauses=clauses)


def can_be_merged(case):
    """Its rows do not depend on what arrives with which: a truncate would end the rows of all."""
    return case.reorder and not any(step.maintenance or step.after for step in case.steps) and not any(
        "TRUNCATE" in clause for step in case.steps for flow in step.flows for clause in flow.clauses)


def merged_job(case_list, target):
    ways = {f"{case.name} / {variant}": (case, steps) for case in case_list for variant, steps in loader.variants(case)}
    flow = with_way(case_list[0].steps[-1].flows[-1])
    steps = []
    for number in range(max(len(steps) for _, steps in ways.values())):
        steps.append(loader.Step([flow], [{**event, WAY: way} for way, (_, of_way) in ways.items()
                                          if number < len(of_way) for event in of_way[number].events]))
    clauses = case_list[0].target_clauses
    if clauses.startswith(" ("):
        clauses = f" ({quote(WAY)} STRING, " + clauses[2:]
    return Job(replace(case_list[0], target_clauses=clauses), steps, target, {way: case for way, (case, _) in ways.items()}, True)


def jobs_of(case_list):
    jobs, alike = [], {}
    for case in case_list:
        flow = case.steps[-1].flows[-1]
        if can_be_merged(case):
            alike.setdefault((repr(flow), case.target_clauses), []).append(case)
            continue
        jobs += [Job(case, steps, f"t{len(jobs) + place:04d}", {name: case})
                 for place, (name, steps) in enumerate(loader.variants(case))]
    return jobs + [merged_job(cases, f"t{len(jobs) + place:04d}") for place, cases in enumerate(alike.values())]


def spark_events(job, number, program, folder):
    """The step's events as the program's source relation."""
    step, ddl = job.steps[number], next(r["columns"] for r in program["reads"] if r["name"] == "strandline_source")
    schema = {**{name: "STRING" for event in step.events for name in event}, **step.flows[-1].schema}
    names = {name.lower(): name for name in step.flows[-1].schema}
    file = folder / f"{job.target}-{number}.json"
    file.write_text("".join(loader.json_line({names.get(name.lower(), name): value for name, value in event.items()}, schema)
                            for event in step.events), encoding="utf-8")
    return job.backend.events(file, ddl)


def run_step(job, number, programs, folder):
    """Runs the step's batch; its metrics, when it got there."""
    step = job.steps[number]
    if not step.events or job.problems:
        return None
    metrics = None
    program = programs[f"{job.target}_{step.flows[-1].name}"]
    try:
        metrics = job.backend.run(program, spark_events(job, number, program, folder), job.tables)
    except CheckFailed as failed:
        job.problems.append(f"step {number}: {failed}")
    except Exception as problem:  # Spark's own words
        job.problems.append(f"step {number}: {str(problem)[:3000]}")
    if step.after is not None and not job.problems:
        job.after[number] = job.backend.rows(job.tables.target)
    return metrics


def compare_metrics(job, number, metrics, report):
    name = f"{job.target}_{job.steps[number].flows[-1].name}"
    ours = next(flow["metrics"] for flow in report["flows"] if flow["name"].split(".")[-1] == name)
    wrong = {key: (value, ours[key]) for key, value in metrics.items() if key.startswith("num_") and value != ours[key]}
    if wrong:
        job.problems.append(f"step {number}: metrics of Spark and of the embedded engine: {wrong}")


def run_group(jobs, folder, spark):
    """Runs the jobs side by side, one update a step, and fills in what they gave."""
    for job in jobs:
        job.backend = Backend(spark.newSession())
    pipeline, landing, warehouse = folder / "pipeline", folder / "landing", folder / "warehouse"
    pipeline.mkdir(parents=True)
    jobs, number = list(jobs), 0
    while jobs and number < max(len(job.steps) for job in jobs):
        current = [job for job in jobs if number < len(job.steps)]
        for job in current:
            runner.deliver(job, number, landing)
        runner.write_pipeline(jobs, number, pipeline, landing)
        printed = call("plan", pipeline, "--warehouse", warehouse, "--dialect", "spark", "--json", timeout=600)
        plan = json.loads(printed.stdout)
        assert printed.returncode == 0 and not plan["errors"], json.dumps(plan["errors"], indent=1)
        programs = {program["flow"].split(".")[-1]: program for program in plan["programs"]}
        with ThreadPoolExecutor(WORKERS) as pool:
            metrics = list(pool.map(lambda job: run_step(job, number, programs, folder), current))  # noqa: B023 - run at once
        run = run_pipeline(pipeline, warehouse, "--threads", "1", timeout=600)
        assert run.ok, run.explain()
        for job, of_job in zip(current, metrics):
            if of_job is not None:
                compare_metrics(job, number, of_job, run.report)
            if job.steps[number].maintenance:
                sql_text(warehouse, runner.maintenance_of(job.target, warehouse))
        number += 1
    found, errors = runner.rows_of(jobs, warehouse)
    for job in jobs:
        job.embedded_rows = found.get(job.target, [])
        if job.target in errors:
            job.problems.append(errors[job.target])
        if not job.problems:
            job.rows = job.backend.rows(job.tables.target)
        job.backend, job.tables = None, None  # a session's tables live as long as somebody knows it
    spark.sparkContext._jvm.System.gc()
    shutil.rmtree(folder, ignore_errors=True)
