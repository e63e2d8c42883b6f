"""Turns the three case files into steps of a pipeline: what the flow says, and what arrives.

A Case is a list of Steps. One step is one pipeline update: the flows as they stand, the events
that arrive before it, perhaps a full refresh, perhaps the error it must give.
"""

import base64
import json
import random
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness import literal, quote

DATA = Path(__file__).resolve().parent / "data"
FILES = ("reference-cases", "spark-cases", "bug-log")


@dataclass(frozen=True)
class Flow:
    """An AUTO CDC flow; `schema` maps a source column to its type, in source order."""

    schema: dict
    keys: tuple
    sequence: str
    clauses: tuple = ()
    storage: int | str = 1  # 1, 2, "bitemporal"
    once: bool = False
    name: str = "changes"  # each name has its own folder of events
    version: str | None = None  # of a snapshot flow, an expression; "" for ingestion time


@dataclass
class Step:
    flows: list
    events: list  # of the last flow
    full_refresh: bool = False
    error: str = ""  # public code, or "*" for any
    after: list | None = None  # rows of the target after this step, when stated
    maintenance: bool = False  # then the target and its state are compacted and vacuumed


@dataclass
class Case:
    name: str
    source: str
    storage: int | str
    steps: list
    expected: list | None = None
    sequence_type: str = "BIGINT"
    system_type: str = "BIGINT"
    columns: list | None = None
    target_clauses: str = ""
    reorder: bool = False  # any order, batching and redelivery must give the same rows
    needs: set = field(default_factory=set)
    why_not: str = ""  # no pipeline can be made of it

    @property
    def error(self):
        return next((step.error for step in self.steps if step.error), "")


# --- Types of values -------------------------------------------------------------------------

def infer(values):
    """The narrowest type of our surface that holds all values."""
    values = [value for value in values if value is not None]
    if not values:
        return "STRING"
    first = values[0]
    if isinstance(first, bool):
        return "BOOLEAN"
    if isinstance(first, dict):
        fields = {name: None for value in values for name in value}
        inner = ", ".join(f"{quote(name)}: {infer([value.get(name) for value in values])}" for name in fields)
        return f"STRUCT<{inner}>"
    if isinstance(first, list):
        return f"ARRAY<{infer([item for value in values for item in value])}>"
    if isinstance(first, str):
        return "STRING"
    return "DOUBLE" if any(isinstance(value, float) for value in values) else "BIGINT"


def schema_of(events, given=None):
    """Column types of events, in order of first appearance."""
    names = {name: None for event in events for name in event}
    given = {name.lower(): kind for name, kind in (given or {}).items()}
    return {name: given.get(name.lower()) or infer([event.get(name) for event in events]) for name in names}


def base_type(kind):
    return re.sub(r"\s+not null$", "", kind.strip(), flags=re.I)


def encode(value, kind):
    """A case's value as it stands in a JSON change file of that column type."""
    kind = base_type(kind).upper()
    if value is None:
        return None
    if kind == "BINARY":
        return base64.b64encode(bytes.fromhex(value.removeprefix("0x"))).decode()
    if kind == "DOUBLE" and isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value


def json_line(event, schema):
    """One event as a JSON line; decimals are numbers of unlimited digits."""
    parts = []
    for name, value in event.items():
        kind = next(kind for column, kind in schema.items() if column.lower() == name.lower())
        text = json.dumps(encode(value, kind), ensure_ascii=False)
        if base_type(kind).upper().startswith("DECIMAL") and isinstance(value, str):
            text = value
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: {text}")
    return "{" + ", ".join(parts) + "}\n"


# --- SQL of a flow ---------------------------------------------------------------------------

def column(name):
    return name if name.startswith("`") else quote(name)


def column_list(names):
    return "(" + ", ".join(column(name) for name in names) + ")"


def sequence_expression(sequence):
    """A list is one column or a STRUCT of several; text is an expression, or a column's name."""
    if isinstance(sequence, list):
        return column(sequence[0]) if len(sequence) == 1 else f"STRUCT{column_list(sequence)}"
    return sequence if re.search(r"[( ]", sequence) else column(sequence)


def clauses_of(options):
    """The clauses that options named like the Python parameters stand for."""
    clauses = []
    if options.get("ignore_null_updates"):
        clauses.append("IGNORE NULL UPDATES")
    if options.get("ignore_null_updates_column_list"):
        clauses.append("IGNORE NULL UPDATES ON " + column_list(options["ignore_null_updates_column_list"]))
    if options.get("apply_as_deletes"):
        clauses.append(f"APPLY AS DELETE WHEN {options['apply_as_deletes']}")
    if options.get("apply_as_truncates"):
        clauses.append(f"APPLY AS TRUNCATE WHEN {options['apply_as_truncates']}")
    if options.get("system_sequence_by"):
        clauses.append(f"SYSTEM SEQUENCE BY {sequence_expression(options['system_sequence_by'])}")
    if options.get("columns_to_update"):
        clauses.append(f"COLUMNS TO UPDATE {column(options['columns_to_update'])}")
    if options.get("column_list"):
        clauses.append("COLUMNS " + column_list(options["column_list"]))
    if options.get("except_column_list"):
        clauses.append("COLUMNS * EXCEPT " + column_list(options["except_column_list"]))
    if options.get("track_history_column_list"):
        clauses.append("TRACK HISTORY ON " + column_list(options["track_history_column_list"]))
    if options.get("track_history_except_column_list"):
        clauses.append("TRACK HISTORY ON * EXCEPT " + column_list(options["track_history_except_column_list"]))
    return tuple(clauses)


def ddl(schema):
    return ", ".join(f"{quote(name)} {base_type(kind)}" for name, kind in schema.items())


def snapshot_sql(flow, target, folder):
    version = f" WITH VERSION (SELECT {flow.version})" if flow.version else ""
    return (
        f"CREATE FLOW {quote(target + '_snapshots')} AS AUTO CDC INTO {quote(target)}\nFROM SNAPSHOT (SELECT * FROM read_files("
        f"{literal(folder / flow.name)}, format => 'json', schema => {literal(ddl(flow.schema))})){version}\n"
        f"KEYS {column_list(flow.keys)}\nSTORED AS SCD TYPE {flow.storage}\n" + "\n".join(flow.clauses) + ";\n"
    )


def flow_sql(flow, flow_name, target, folder):
    if flow.version is not None:
        return snapshot_sql(flow, target, folder)
    stored = "STORED AS BITEMPORAL" if flow.storage == "bitemporal" else f"STORED AS SCD TYPE {flow.storage}"
    lines = [
        f"CREATE FLOW {quote(flow_name)} AS AUTO CDC {'ONCE ' if flow.once else ''}INTO {quote(target)}",
        f"FROM STREAM read_files({literal(folder / flow.name)}, format => 'json', schema => {literal(ddl(flow.schema))})",
        f"KEYS {column_list(flow.keys)}",
        *[clause for clause in flow.clauses if not clause.startswith("TRACK")],
        f"SEQUENCE BY {flow.sequence}",
        stored,
        *[clause for clause in flow.clauses if clause.startswith("TRACK")],
    ]
    return "\n".join(lines) + ";\n"


def step_sql(case, step, target, folder):
    text = f"CREATE OR REFRESH STREAMING TABLE {quote(target)}{case.target_clauses};\n"
    for flow in step.flows:
        text += flow_sql(flow, f"{target}_{flow.name}", target, folder)
    return text


# --- Loading ---------------------------------------------------------------------------------

def columns_vary(batches):
    """Whether the batches do not all have the same columns: a schema change between them."""
    shapes = {json.dumps(schema_of(batch).keys().__repr__() + nested_names(batch)) for batch in batches if batch}
    return len(shapes) > 1


def nested_names(batch):
    names = set()

    def walk(value, path):
        if isinstance(value, dict):
            for name, inner in value.items():
                names.add(f"{path}.{name}")
                walk(inner, f"{path}.{name}")
        elif isinstance(value, list):
            for item in value:
                walk(item, path + "[]")

    for event in batch:
        for name, value in event.items():
            if not isinstance(value, str):
                walk(value, name)
    return repr(sorted(names))


def plain(row):
    return {name: value for name, value in row.items() if not name.startswith("@")}


def steps_of(batches, make_flow, given_types=None, per_batch=None):
    """One step a batch. Where columns change between batches each step has its own schema."""
    everything = [event for batch in batches for event in batch]
    whole = schema_of(everything, given_types)
    steps, changing = [], columns_vary(batches) or per_batch
    for number, batch in enumerate(batches):
        schema = whole
        if changing and batch:
            types = {**whole, **(per_batch[number] if per_batch else {})} if not nested_changes(batches) else given_types
            schema = schema_of(batch, types)
        steps.append(Step([make_flow(schema)], batch))
    return steps


def nested_changes(batches):
    return len({nested_names(batch) for batch in batches if batch}) > 1


def needs_of(options, kind):
    needs = set()
    if kind == "cdf" or options.get("source") == "changelog":
        needs.add("change feed")
    return needs


def sequence_kind(sequence, schema):
    """The type of SEQUENCE BY: a column's own, a struct of columns, or BIGINT for expressions."""
    names = sequence if isinstance(sequence, list) else [sequence]
    types = {name.lower(): base_type(kind) for name, kind in schema.items()}
    found = [types.get(str(name).strip("`").lower()) for name in names]
    if len(found) > 1:
        return "STRUCT<" + ", ".join(f"{quote(name)}: {kind}" for name, kind in zip(names, found)) + ">"
    return found[0] or "BIGINT"


STORAGE = {"scd2": 2, "bitemporal": "bitemporal"}


def version_sql(version, kind):
    if version is None or kind == "BIGINT":
        return "CAST(NULL AS BIGINT)" if version is None else str(version)
    zoned = re.search(r"(Z|[+-]\d\d:\d\d)$", version)
    return f"TIMESTAMP {literal(version if zoned else version + 'Z')}"


def snapshot_case(case, keys, snapshots, options, expected):
    """snapshots: pairs of version and rows. A snapshot is a folder of its own, read whole."""
    versions = [version for version, _ in snapshots]
    case.storage = int(options.get("stored_as_scd_type", options.get("stored_as", 2)))
    case.sequence_type = "TIMESTAMP" if any(isinstance(version, str) for version in versions) else "BIGINT"
    counted = options.get("mode") == "ingestion_time" and versions == list(range(len(versions)))
    types = schema_of([row for _, rows in snapshots for row in rows])
    if any(re.search(r"[ ,;{}()=\t\n]", name) for name in types):
        case.target_clauses = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    schema = types
    for number, (version, rows) in enumerate(snapshots):
        schema = schema_of(rows, types) if rows else schema
        flow = Flow(schema, tuple(keys), "", clauses_of(options), case.storage, name=f"snapshot-{number}",
                    version="" if counted else version_sql(version, case.sequence_type))
        case.steps.append(Step([flow], rows))
    case.expected = expected
    if expected and "error" in expected[0]:
        case.steps[-1].error, case.expected = expected[0]["error"], []
    return case


def reference_case(raw):
    options, batches, expected = raw["options"], raw["batches"], raw["expected"]
    if raw["kind"] == "snapshot":
        case = Case(raw["name"], "reference", 2, [])
        return snapshot_case(case, raw["keys"], list(zip(options["snapshot_versions"], batches)), options, expected)
    case = Case(raw["name"], "reference", STORAGE.get(raw["kind"], 1), [], needs=needs_of(options, raw["kind"]))
    if case.needs:
        return case
    if "dml" in options:
        case.why_not = "a statement between updates; tests/logic/hand_edits.test runs it and has its rows"
        return case
    schema = schema_of([event for batch in batches for event in batch])
    flow = Flow(schema, tuple(raw["keys"]), sequence_expression(raw["sequence_by"]), clauses_of(options), case.storage)
    case.sequence_type = sequence_kind(raw["sequence_by"], schema)
    case.system_type = sequence_kind(options.get("system_sequence_by", ""), schema)
    case.steps = steps_of(batches, lambda columns: replace(flow, schema=columns))
    case.expected = expected
    if "flows" in options:  # the ONCE flow reads what is there at its first run, so it comes with its batch
        once, changes = replace(flow, name="snapshot", once=True), replace(flow, name="feed")
        order = [once, changes] if raw["name"] == "replication_once_then_changes" else [changes, once]
        case.steps = [Step(order[:1], batches[0]), Step(order, batches[1])]
    elif expected and "error" in expected[0]:
        case.steps[-1].error, case.expected = expected[0]["error"], []
    else:
        case.reorder = not columns_vary(batches)
    return case


def bug_log_case(raw):
    options, expected = raw["options"], raw["expected"]
    if raw["kind"] == "snapshot":
        snapshots = [(batch["version"], batch["rows"]) for batch in raw["batches"]]
        case = snapshot_case(Case(raw["id"], "bug-log", 2, []), raw["keys"], snapshots, options, expected.get("rows"))
        if "error" in expected:
            case.steps[-1].error = expected["error"]
        return case
    case = Case(raw["id"], "bug-log", STORAGE.get(raw["kind"], 1), [], needs=needs_of(options, raw["kind"]))
    if raw["kind"] == "source":
        case.needs.add("source adapters")
    if case.needs:
        return case
    batches = raw["batches"]
    events = [event for batch in batches for event in batch]
    source_types = {**{name: re.sub(r":", ": ", kind) for name, kind in options.get("schema", {}).items()},
                    **options.get("source_schema", {})}
    system = [options["system_sequence_by"]] if "system_sequence_by" in options else []
    excepted = options.get("except_columns", ["op", *raw["sequence_by"], *system])
    partial = ("ignore_null_updates", "ignore_null_updates_column_list", "columns_to_update", "system_sequence_by")
    clauses = [*clauses_of({name: options[name] for name in partial if name in options}),
               "APPLY AS DELETE WHEN op = 'D'"]
    if any(event.get("op") == "T" for event in events):
        clauses.append("APPLY AS TRUNCATE WHEN op = 'T'")
    clauses.append("COLUMNS * EXCEPT " + column_list(excepted))
    schema = schema_of(events, source_types)
    flow = Flow(schema, tuple(raw["keys"]), sequence_expression(raw["sequence_by"]), tuple(clauses), case.storage)
    case.sequence_type = sequence_kind(raw["sequence_by"], schema)
    case.system_type = sequence_kind(options.get("system_sequence_by", ""), schema)
    case.steps = steps_of(batches, lambda columns: replace(flow, schema=columns), source_types,
                          options.get("schema_batches"))
    for number in options.get("maintenance_after_batch", []):
        case.steps[number].maintenance = True
    case.expected, case.columns = expected.get("rows"), expected.get("target_columns")
    if options.get("partition_by"):
        case.target_clauses = " PARTITIONED BY " + column_list(options["partition_by"])
    if options.get("type_widening"):
        case.target_clauses += " TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    declared = {name: kind for name, kind in options.get("schema", {}).items()
                if "not null" in kind.lower() or name in options.get("source_schema", {})}
    if declared:
        names = [name for name in schema if name not in excepted]
        parts = [f"{quote(name)} {declared.get(name) or schema[name]}" for name in names]
        if case.storage == 2:
            parts += [f"{end} {case.sequence_type}" for end in ("__START_AT", "__END_AT")]
        case.target_clauses = f" ({', '.join(parts)})" + case.target_clauses
    if "error" in expected:
        case.steps[-1].error = expected["error"]
    else:
        case.reorder = "any_order" in options.get("invariant", []) and not columns_vary(batches)
    return case


def spark_state_events(raw, sequence):
    """Events that lead to a stated target and hidden state, or None when no events do.

    A row becomes an upsert at the sequence it was recorded at, a hidden delete a delete, an end
    where no row follows a delete.
    """
    deletes = raw["options"].get("apply_as_deletes", "").lower()
    rows = raw.get("initial_target", []) + raw.get("initial_aux", [])
    at = lambda row: row.get("@record_start_at", row.get("@upsert_seq"))
    events = []

    def event(row, seq, delete):
        values = {name: value for name, value in plain(row).items() if name not in ("__START_AT", "__END_AT")}
        made = {**values, sequence: values.get(sequence, seq)}
        if deletes:
            made["is_delete"] = delete
        events.append(made)

    for row in rows:
        if "@delete_seq" in row:
            event(row, row["@delete_seq"], True)
        elif row.get("__END_AT") is not None and row["__END_AT"] == row["__START_AT"]:
            event(row, row["__END_AT"], True)
        else:
            event(row, at(row), False)
            end = row.get("__END_AT")
            same_key = [other for other in rows if all(other.get(key) == row.get(key) for key in raw["keys"])]
            if end is not None and not any(at(other) == end for other in same_key):
                event({**row, **{name: None for name in plain(row) if name not in raw["keys"]}}, end, True)
    return events


def spark_case(raw):
    options, level = raw["options"], raw["level"]
    case = Case(raw["name"], "spark", raw["scd_type"] or 1, [], needs=needs_of(options, ""))
    if level == "api":
        case.needs.add("python pipelines")
    if case.needs:
        return case
    if level in ("config", "parser", "schema"):
        case.why_not = f"not a row case ({level})"
        return case
    if level.startswith("stage (") and level != "stage (dedup)":
        case.why_not = f"pins an inner step of Spark's implementation: {level}"
        return case
    error = raw.get("expected_error")
    sequence = raw["sequence_by"]
    column_name = sequence.strip("`")
    if column_name == "SEQ":
        column_name = "seq"
    batches = list(raw["batches"])
    before = spark_state_events(raw, column_name)
    if before:
        batches.insert(0, before)
    structured = any(isinstance(event.get(column_name), list) for batch in batches for event in batch)
    if structured:  # arrays stand for structs
        as_struct = lambda value: value if value is None else {"major": value[0], "minor": value[1]}
        batches = [[{**event, column_name: as_struct(event[column_name])} for event in batch] for batch in batches]
    types = {}
    if any(isinstance(event.get(column_name), dict) for batch in batches for event in batch) and not structured:
        types[column_name] = "MAP<STRING, INT>"
    whole = schema_of([event for batch in batches for event in batch], types)
    if not whole:
        whole = {"id": "BIGINT", "value": "STRING", "seq": "BIGINT", "is_delete": "BOOLEAN"}
    if "is_delete" in whole:
        types["is_delete"] = "BOOLEAN"
    keys = tuple(key.strip("`") for key in raw["keys"])
    flow = Flow(whole, keys, sequence_expression(sequence), clauses_of(options), case.storage)
    case.sequence_type = sequence_kind(column_name, whole)
    case.steps = steps_of(batches, lambda columns: replace(flow, schema=columns or whole), types)
    for step in case.steps:
        if not step.events:
            step.flows = [replace(flow, schema=whole)]
    if "MAP" in types.get(column_name, ""):  # the table existed before its sequence became a map
        for step in case.steps[:-1]:
            step.flows = [replace(flow, schema={**whole, column_name: "BIGINT"})]
    if raw.get("expected_after"):
        for step, stated in zip(case.steps[len(case.steps) - len(raw["batches"]):], raw["expected_after"]):
            step.after = None if stated is None else [plain(row) for row in stated["target"]]
        for step, crashed in zip(case.steps[len(case.steps) - len(raw["batches"]):], raw.get("crash_after_aux", [])):
            if crashed:  # what Spark shows between its two merges
                step.after = None
    if "case_sensitive" in options and options["case_sensitive"]:
        case.why_not = "case_sensitive=true is refused"
    if options.get("existing_target_columns"):
        case.target_clauses = " (" + ", ".join(f"{quote(name)} {whole.get(name, whole.get(name.title()))}"
                                               for name in options["existing_target_columns"]) + ")"
    if options.get("format"):
        case.target_clauses = f" USING {options['format']}"
    if error:
        case.steps[-1].error = error.get("condition") or "*"
        if " or " in case.error:
            case.steps[-1].error = "*"
    if raw.get("between_batches") == ["full refresh"]:
        case.steps[-1].full_refresh = True
    case.expected = None if raw["expected"] is None else [plain(row) for row in raw["expected"]]
    if case.expected is None and raw.get("expected_any_of"):
        case.expected = [plain(row) for row in max(raw["expected_any_of"], key=lambda rows: json.dumps(rows))]
    if "expected_columns" in raw:
        case.columns = [name for name in raw["expected_columns"] if not name.startswith("__spark")]
    case.reorder = not (error or before or not raw["batches"][0] or "initial_target" in raw or raw.get("between_batches")
                        or raw.get("expected_after") or columns_vary(batches))
    return case


def load():
    makers = {"reference-cases": reference_case, "spark-cases": spark_case, "bug-log": bug_log_case}
    cases = [makers[name](raw) for name in FILES for raw in json.loads((DATA / f"{name}.json").read_text("utf-8"))]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), "case names must be unique"
    return cases


# --- Orders and batchings --------------------------------------------------------------------

def variants(case):
    """Name and steps of each way to run a case."""
    yield "forwards", case.steps
    if not case.reorder:
        return
    flow = case.steps[-1].flows[-1]
    events = [event for step in case.steps for event in step.events]
    sizes = [len(step.events) for step in case.steps]

    def split(ordered, lengths):
        steps, start = [], 0
        for length in lengths:
            steps.append(Step([flow], ordered[start:start + length]))
            start += length
        return steps

    rng = random.Random(case.name)
    shuffled = rng.sample(events, len(events))
    lengths = []
    while sum(lengths) < len(events):
        lengths.append(rng.randint(1, min(3, len(events) - sum(lengths))))
    yield "reversed", split(events[::-1], sizes[::-1])
    yield "shuffled", split(shuffled, lengths)
    yield "one event a batch", split(events, [1] * len(events))
    yield "replayed twice", split(events, sizes) + [Step([flow], events), Step([flow], events)]
