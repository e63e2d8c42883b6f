"""The shared cases about the arguments of create_auto_cdc_flow: accepted, or refused at the call with an error of ours."""

import ast
import json
import sys
from dataclasses import dataclass

import harness
import pytest

import strandline
from strandline import pipelines

sys.path.insert(0, str(harness.ROOT / "tests" / "cases"))

import cases as loader

PREFIX = "python: "
RAW = {raw["name"]: raw for raw in json.loads((loader.DATA / "spark-cases.json").read_text("utf-8")) if raw["level"] == "api"}
OUTSIDE = "python: called outside a pipeline"


@dataclass(frozen=True)
class Answer:
    """What we say to a case: nothing where Spark accepts, else an error whose text has these words."""

    condition: str | None  # Spark's, as the case states it
    why: str
    kind: type | None = None
    words: tuple = ()
    code: str = ""  # of a StrandlineError


ANSWERS = {
    "type 1, 2, '1', '2' accepted": Answer(None, "the number and its text mean the same"),
    "type 3 rejected": Answer(
        "NOT_EXPECTED_TYPE", "the type is right and the value is not: Python's error for that", ValueError,
        ("stored_as_scd_type", "not 3")),
    "non-string target": Answer(
        "NOT_EXPECTED_TYPE", "Python's error for an argument of a wrong type", TypeError, ("target", "123 (int)")),
    "non-string, non-Column key element": Answer(
        "NOT_EXPECTED_TYPE", "Python's error for an argument of a wrong type", TypeError, ("keys", "123 (int)")),
    "column_list with except_column_list": Answer(
        "CANNOT_SET_TOGETHER", "the same condition, as the code", strandline.InvalidArgumentError,
        ("column_list", "except_column_list", "not both"), "CANNOT_SET_TOGETHER"),
    "empty column_list with non-empty except list is fine": Answer(None, "an empty list counts as absent"),
    "both track-history lists": Answer(
        "CANNOT_SET_TOGETHER", "the same condition, as the code", strandline.InvalidArgumentError,
        ("track_history_column_list", "track_history_except_column_list", "not both"), "CANNOT_SET_TOGETHER"),
    "track history without type 2": Answer(
        "INVALID_MULTIPLE_ARGUMENT_CONDITIONS", "the same condition, as the code", strandline.InvalidArgumentError,
        ("track_history_column_list", "stored_as_scd_type=2"), "INVALID_MULTIPLE_ARGUMENT_CONDITIONS"),
    "empty track-history lists without type 2 are fine": Answer(None, "an empty list counts as absent"),
    "name defaults to target": Answer(None, "the flow that the update reports has the target's name"),
    "called outside a pipeline": Answer(
        "GRAPH_ELEMENT_DEFINED_OUTSIDE_OF_DECLARATIVE_PIPELINE", "no parameter is wrong, so the text says where such calls stand",
        strandline.InvalidArgumentError, ("declared in the .py files of a pipeline",), "NOT_IN_A_PIPELINE"),
}  # fmt: skip


def calls(raw):
    """The arguments of each call of a case: `1|2` stands for one call with each."""
    for value in str(raw["options"].get("stored_as_scd_type", "")).split("|"):
        yield {**raw["options"], **({"stored_as_scd_type": ast.literal_eval(value)} if value else {})}


CALLS = [(name, arguments) for name, raw in RAW.items() for arguments in calls(raw)]
ACCEPTED = [(name, arguments) for name, arguments in CALLS if RAW[name]["expected_error"] is None]
REFUSED = [(name, arguments) for name, arguments in CALLS if RAW[name]["expected_error"] is not None]


def test_every_case_has_its_answer():
    conditions = {name: (raw["expected_error"] or {}).get("condition") for name, raw in RAW.items()}
    assert conditions == {PREFIX + name: answer.condition for name, answer in ANSWERS.items()}
    assert all((answer.kind is None) == (answer.condition is None) for answer in ANSWERS.values())
    assert OUTSIDE in RAW and all(answer.why for answer in ANSWERS.values())


@pytest.mark.parametrize("name, arguments", ACCEPTED, ids=[f"{name} {number}" for number, (name, _) in enumerate(ACCEPTED)])
def test_accepted(name, arguments, pipeline, warehouse):
    warehouse.sql("CREATE TABLE s (k INT, id INT, val STRING, op STRING, seq INT)")
    folder = pipeline({"a.py": "from pyspark import pipelines as dp\n"
                       f"dp.create_streaming_table({arguments['target']!r})\ndp.create_auto_cdc_flow(**{arguments!r})\n"})  # fmt: skip
    update = strandline.Pipeline(folder, warehouse=warehouse.path).run(dry_run=True)
    assert update.ok and [flow.name for flow in update.flows] == [arguments["target"]], update
    kind = str(arguments.get("stored_as_scd_type", 1))
    registry = pipelines.Registry()
    with pipelines.collecting(registry):
        pipelines.create_auto_cdc_flow(**arguments)
    (statement,) = [declared.sql() for declared in registry.declared]
    assert ("SCD TYPE 2" in statement) == (kind == "2") and "TRACK HISTORY" not in statement, statement
    assert ("COLUMNS * EXCEPT" in statement) == bool(arguments.get("except_column_list")), statement


@pytest.mark.parametrize("name, arguments", REFUSED, ids=[name for name, _ in REFUSED])
def test_refused_at_the_call(name, arguments):
    answer = ANSWERS[name.removeprefix(PREFIX)]
    registry = pipelines.Registry()
    with pytest.raises(answer.kind) as caught:
        if name == OUTSIDE:
            pipelines.create_auto_cdc_flow(**arguments)
        else:
            with pipelines.collecting(registry):
                pipelines.create_auto_cdc_flow(**arguments)
    assert all(word in str(caught.value) for word in answer.words), caught.value
    assert getattr(caught.value, "code", "") == answer.code
    assert not registry.declared
