"""Spark's cases about declarations: what a flow may say, and what it may not change later.

Each becomes a pipeline that is validated (`--dry-run`), or two updates with a change between.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import cases as loader
from harness import literal, query, run_pipeline, sql_text, write_json_lines

HERE = Path(__file__).resolve().parent
EXPECTATIONS = json.loads((HERE / "expectations.json").read_text("utf-8"))
RAW = {raw["name"]: raw for raw in json.loads((HERE / "data" / "spark-cases.json").read_text("utf-8"))}

TYPES = {"id": "BIGINT", "seq": "BIGINT", "version": "BIGINT", "seq_long": "BIGINT", "seq_int": "INT",
         "amount": "BIGINT", "a": "BIGINT", "b": "BIGINT", "key1": "BIGINT", "key2": "BIGINT", "ts": "BIGINT",
         "v": "STRING", "__START_AT": "BIGINT", "__END_AT": "BIGINT"}


@dataclass
class Declaration:
    """Texts of the pipeline update by update; the last one must pass or give the error."""

    name: str
    texts: list
    error: str | None = None
    dry_run: bool = True
    events: list = field(default_factory=list)
    between: str = ""  # SQL before the last update
    types: dict = field(default_factory=dict)  # of target columns, afterwards

    def run(self, folder):
        pipeline, warehouse = folder / "pipeline", folder / "warehouse"
        pipeline.mkdir()
        for name in ("changes", "a", "b"):
            (folder / name).mkdir()
        run = None
        for number, text in enumerate(self.texts):
            (pipeline / "flow.sql").write_text(text.replace("@folder", str(folder)), encoding="utf-8")
            if self.events:
                write_json_lines(folder / "changes" / f"{number}.json", self.events[min(number, len(self.events) - 1)])
            if number and self.between:
                sql_text(warehouse, self.between)
            run = run_pipeline(pipeline, warehouse, *(["--dry-run"] if self.dry_run else []))
            if number + 1 < len(self.texts):
                assert run.ok, f"update {number} must pass:\n{run.explain()}"
        if self.types and run.ok:
            found = {row["col_name"]: row["data_type"].lower() for row in query(warehouse, "DESCRIBE t")}
            for column, kind in self.types.items():
                assert found[column].replace(" ", "") == kind, f"{column} is {found[column]}"
        return run


def pipeline(storage, schema, keys, sequence, clauses=(), target_clauses=""):
    return (f"CREATE STREAMING TABLE t{target_clauses};\n"
            "CREATE FLOW f AS AUTO CDC INTO t\n"
            f"FROM STREAM read_files('@folder/changes', format => 'json', schema => {literal(loader.ddl(schema))})\n"
            f"KEYS ({', '.join(keys)})\nSEQUENCE BY {sequence}\n"
            + "".join(f"{clause}\n" for clause in clauses if not clause.startswith("TRACK"))
            + f"STORED AS SCD TYPE {storage}\n"
            + "".join(f"{clause}\n" for clause in clauses if clause.startswith("TRACK")) + ";\n")


def typed(names):
    return {name: TYPES.get(name, "STRING") for name in names}


def event_of(schema):
    values = {"BIGINT": 1, "INT": 1, "STRING": "x"}
    return {name: values.get(kind) for name, kind in schema.items()}


def by_run(raw):
    """Two updates that differ in one thing."""
    options, storage = raw["options"], raw["scd_type"]
    texts, events = [], []
    for number in (0, 1):
        schema = typed(["id", "name", "amount", "seq"])
        keys, sequence, clauses = ["id"], "seq", []
        if "sequence_by_batch" in options:
            sequence = options["sequence_by_batch"][number]
            schema = typed(["id", "name", "seq", "seq_long", "seq_int"])
        if "source_columns_by_batch" in options:
            schema = typed(options["source_columns_by_batch"][number])
        if "track_by_batch" in options:
            track = options["track_by_batch"][number]
            clauses = [] if track is None else [
                f"TRACK HISTORY ON {track}" if isinstance(track, str) else f"TRACK HISTORY ON ({', '.join(track)})"]
        if "keys_by_run" in options:
            keys = options["keys_by_run"][number]
            schema = typed(["id", "region", "country", "a", "b", "seq"])
        if "recorded" in options:
            schema["id"] = (options["recorded"], options["declared"])[number].split()[1]
        if "column_type_by_run" in options:
            schema["value"] = options["column_type_by_run"][number]
        texts.append(pipeline(storage, schema, keys, sequence, clauses))
        events.append([event_of({**schema, **({"value": ""} if "value" in schema else {})})])
    between = "DROP TABLE t" if options.get("between") == "drop target" else ""
    return texts, events, between


def validation(raw):
    options = raw["options"]
    keys = options.get("keys", raw["keys"])
    return pipeline(raw["scd_type"], typed(options.get("source_columns", ["id", "name", "seq"])), keys,
                    raw["sequence_by"], loader.clauses_of(options))


def parsed(raw):
    """A statement of the parser tests amid the sources and targets that it names."""
    sql = raw["options"]["sql"]
    columns = literal("id BIGINT, key1 BIGINT, key2 BIGINT, ts BIGINT, ts2 BIGINT, name STRING, v STRING, op STRING")
    read = f"STREAM read_files('@folder/changes', format => 'json', schema => {columns})"
    text = ""
    for source in ("source", "changes", "a", "b"):
        if f"STREAM({source})" in sql or f"STREAM {source} " in sql or "FROM source" in sql and source == "source":
            text += f"CREATE STREAMING TABLE {source} AS SELECT * FROM {read};\n"
    if "a.b.s" in sql:
        text += f"CREATE STREAMING TABLE a.b.s AS SELECT * FROM {read};\nCREATE STREAMING TABLE a.b.t;\n"
    elif "INTO target" in sql:
        text += "CREATE STREAMING TABLE target;\n"
    return text + sql + ";\n"


def struct_schema(raw):
    schema = {"id": "INT", "name": "STRING", "seq1": "INT", "seq2": "BIGINT"}
    return pipeline(2, schema, ["id"], "struct(seq1, seq2)"), [[{"id": 1, "name": "a", "seq1": 1, "seq2": 2}]]


def nested_field_dropped(raw):
    array = "array" in raw["name"]
    inner = ["STRUCT<a: BIGINT, b: STRUCT<c: BIGINT, d: BIGINT>>", "STRUCT<a: BIGINT, b: STRUCT<c: BIGINT>>"]
    values = [{"a": 1, "b": {"c": 10, "d": 100}}, {"a": 2, "b": {"c": 20}}]
    texts = [pipeline(1, {"id": "BIGINT", "version": "BIGINT", "v": f"ARRAY<{kind}>" if array else kind}, ["id"],
                      "version") for kind in inner]
    events = [[{"id": 1, "version": number, "v": [value] if array else value}] for number, value in enumerate(values)]
    return texts, events


def make(raw):
    ours = EXPECTATIONS["overridden"].get(raw["name"], {})
    expected = raw.get("expected_error") or {}
    error = (expected.get("condition") or "*") if expected else None
    error = ours["error"] if "error" in ours else error
    options = raw["options"]
    if raw["level"] == "parser":
        return Declaration(raw["name"], [parsed(raw)], error)
    if raw["level"] == "schema":
        text, events = struct_schema(raw)
        struct = "struct<seq1:int,seq2:bigint>"
        return Declaration(raw["name"], [text], error, False, events, "", {"__START_AT": struct, "__END_AT": struct})
    if "inside a" in raw["name"]:
        texts, events = nested_field_dropped(raw)
        return Declaration(raw["name"], texts, error, False, events)
    if "flow validation" in raw["name"]:
        return Declaration(raw["name"], [validation(raw)], error)
    texts, events, between = by_run(raw)
    if "column_type_by_run" in options:
        for number, kind in enumerate(options["column_type_by_run"]):
            events[number][0]["value"] = "2024-01-01T00:00:00Z" if kind in ("TIMESTAMP", "STRING") else number + 1
    return Declaration(raw["name"], texts, error, False, events, between)


ALL = [make(raw) for raw in RAW.values()
       if raw["level"] in ("config", "parser", "schema") and raw["name"] not in EXPECTATIONS["skipped"]
       and raw["options"].get("source") != "changelog"]
COVERED = [declaration.name for declaration in ALL]
