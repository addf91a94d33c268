"""Procedures from YAML and JSON files: the same procedure as from text, and errors that name the line."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from stepguard import Procedure
from stepguard.errors import ProcedureError
from stepguard.procedure import yaml_format

TEXT = """\
name: loan
inputs: principal: decimal(2), rate
interest: decimal(2) = principal * rate / 100  "Work out the interest"
total: decimal(2) = by code principal + interest
country: text = "Name the country: where does rate apply?" (reads rate)
answer: total
"""

YAML = """\
name: loan
inputs:
  principal: decimal(2)
  rate: number
steps:
  - id: interest
    instruction: Work out the interest
    expression: principal * rate / 100
    type: decimal(2)
  - total: decimal(2) = by code principal + interest
  - id: country
    instruction: "Name the country: where does rate apply?"
    type: text
    reads: [rate]
answer: total
"""


def load(folder: Path, text: str, suffix: str = ".yaml") -> Procedure:
    path = folder / f"procedure{suffix}"
    path.write_text(text, encoding="utf-8")
    return Procedure.load(path)


def test_yaml_and_text_give_the_same_procedure(tmp_path: Path) -> None:
    """The same procedure written as YAML, as YAML lines, as JSON and as text is equal."""
    wanted = Procedure.parse(TEXT)
    assert load(tmp_path, YAML) == wanted
    assert load(tmp_path, YAML, ".yml") == wanted
    as_json = {
        "name": "loan",
        "inputs": ["principal: decimal(2)", "rate"],
        "steps": [
            {
                "id": "interest",
                "instruction": "Work out the interest",
                "expression": "principal * rate / 100",
                "type": "decimal(2)",
            },
            {"id": "total", "expression": "principal + interest", "type": "decimal(2)", "performer": "code"},
            {"id": "country", "instruction": "Name the country: where does rate apply?", "reads": ["rate"]},
        ],
        "answer": "total",
    }
    assert load(tmp_path, json.dumps(as_json, indent="\t"), ".json") == wanted
    assert load(tmp_path, TEXT, ".txt") == wanted


def test_scalars_mean_the_text_that_stands_there(tmp_path: Path) -> None:
    """Words and numbers that YAML has types of its own for stay names and digits."""
    procedure = load(tmp_path, "inputs: [no, on]\nsteps:\n  - {id: yes, expression: no + on * 1e2 - 010}\n")
    assert [each.name for each in procedure.inputs] == ["no", "on"]


def test_json_characters_beyond_the_basic_plane_survive(tmp_path: Path) -> None:
    """A character that JSON writes as two escapes is one character again."""
    text = json.dumps({"steps": [{"id": "a", "instruction": "Count the \U0001f600."}]})
    assert load(tmp_path, text, ".json").steps[0].instruction == "Count the \U0001f600."


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("- a = 1", 1, "mapping"),
        ("name: x", 1, "steps: is missing"),
        ("steps: []", 1, "at least one"),
        ("steps:\n  a: 1", 2, "list"),
        ("steps:\n  - a = 1\nstpes: 3", 3, "did you mean 'steps'"),
        ("steps:\n  - id: a\n    expresion: 1 + 1", 3, "did you mean 'expression'"),
        ("steps:\n  - id: a\n    expression: 1 +", 3, "missing"),
        ("steps:\n  - id: a\n    id: b\n    expression: 1", 3, "twice"),
        ("steps:\n  - a = 1\n  - b = c", 3, "reads 'c'"),
        ("steps:\n  - a = 1\n  - b = 2\n  - a = 3", 4, "duplicate id"),
        ("inputs:\n  x: intger\nsteps:\n  - a = x", 2, "intger"),
        ("inputs: [x, x]\nsteps:\n  - a = x", 1, "duplicate input"),
        ("steps:\n  - a = 1\nanswer: b", 3, "unreachable answer"),
        ("steps:\n  - expression: 1 + 1\n    type: number", 2, "id: is missing"),
        ("steps:\n  - id: a\n    expression: 1\n    show_work: maybe", 4, "show_work"),
        ("steps:\n  - id: a\n    expression: 1\n    performer: magic", 2, "performer"),
        ("steps:\n  - id: a\n    expression: [1]", 3, "text"),
        ("steps:\n  - id: a\n    expression:", 3, "text"),
        ("steps:\n  - 'unclosed", 2, "not valid YAML"),
        ("steps:\n  - a = 1\n---\nsteps: []", 3, "not valid YAML"),
        ("steps: &a [*a]", 1, "an alias may hold itself"),
        (
            "inputs: [x]\nsteps:\n  - id: a\n    expression: x\n    checks:\n      - holds: &a [*a]",
            6,
            "may hold itself",
        ),
        ("inputs: [x]\nsteps:\n  - id: a\n    expression: x\n    checks:\n      - range: &a {least: *a}", 6, "itself"),
        ("steps:\n  - a = 1\n  - b = \x01", 3, "0x1 cannot stand here"),
        ("steps:\n  - 2. a = 1\n  - 1. b = 2", 3, "must increase"),
        ("steps:\n  - Read the total", 2, "words in quotes"),
        ("inputs: [x]\nsteps:\n  - 1. Then total = x + 1", 3, "not expected"),
        ('steps:\n  - step1 = "Read it"\n  - total = step1 * 2', 3, "declare `step1: number"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    """What is wrong in a document is refused with the line and what to do."""
    with pytest.raises(ProcedureError) as caught:
        load(tmp_path, text)
    assert caught.value.line == line, str(caught.value)
    assert words in str(caught.value)


def test_aliases_that_stand_for_very_much_are_refused(tmp_path: Path) -> None:
    """Aliases of aliases grow by a factor with each level; what they stand for is counted before it is built."""
    levels = "".join(f"        - &b{at} [{', '.join([f'*b{at - 1}'] * 8)}]\n" for at in range(1, 30))
    text = f"inputs: [x]\nsteps:\n- id: t\n  expression: x\n  checks:\n    - holds:\n        - &b0 [x]\n{levels}"
    with pytest.raises(ProcedureError, match="too large once its aliases are filled in") as refused:
        load(tmp_path, text)
    assert refused.value.line is not None


def test_labels_and_one_input_a_line_are_read(tmp_path: Path) -> None:
    """Numbered lines mean in YAML what they mean in text, and a list of inputs may give their types."""
    lines = "  - 1. a = 1\n  - '2. b = x'\n  - 3. c = 2 * b"
    found = load(tmp_path, f"inputs:\n  - x: decimal(2)\n  - y\nsteps:\n{lines}\n")
    assert found == Procedure.parse("inputs: x: decimal(2), y\n1. a = 1\n2. b = x\n3. c = 2 * b")


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    """A JSON file that is none is refused with the line."""
    with pytest.raises(ProcedureError, match="line 2: not valid JSON"):
        load(tmp_path, '{"steps": [\n"a = 1"', ".json")


FLOW = """
name: claim
inputs:
  items: list of Item
  limit: {type: money(EUR), default: 500 EUR}
records:
  Item: {amount: money(EUR), country: text}
tables:
  daily: {keys: {country: text}, value: money(EUR), rows: {DE: 28, otherwise: 24}}
procedures:
  doubled: {inputs: [n], steps: [m = n * 2]}
steps:
  - for each: item in items
    do:
      - paid: money(EUR) = min(item.amount, daily[item.country])
  - total: money(EUR) = sum of paid
  - if: total > limit
    then:
      - {id: approved, ask person: "Approve {total}?", type: boolean}
    else if:
      - if: total > 10 EUR
        then: [approved = true]
    else: [approved = false]
  - {id: twice, call: doubled, with: {n: "4"}}
  - {id: receipt, tool: pay, with: {amount: total}, type: text}
  - repeat: 9
    until: twice > 100
    do: [twice = twice * 2]
answer: "{total, approved}"
"""

WRITTEN = """
name: claim
inputs: items: list of Item, limit: money(EUR) = 500 EUR
record Item:
  amount: money(EUR)
  country: text
table daily: country -> money(EUR)
  DE: 28
  otherwise: 24
procedure doubled:
  inputs: n
  m = n * 2
for each item in items:
  paid: money(EUR) = min(item.amount, daily[item.country])
total: money(EUR) = sum of paid
if total > limit:
  approved: boolean = ask person "Approve {total}?"
else if total > 10 EUR:
  approved = true
else:
  approved = false
twice = call doubled(n=4)
receipt: text = tool pay(amount=total)
repeat at most 9 times until twice > 100:
  twice = twice * 2
answer: {total, approved}
"""


def test_branches_loops_tables_and_calls_mean_the_same_in_yaml(tmp_path: Path) -> None:
    """Every construct of the language has its form in YAML, and both give equal procedures, which print and parse."""
    found = load(tmp_path, FLOW)
    assert found == Procedure.parse(WRITTEN)
    assert Procedure.parse(str(found)) == found


def test_the_schema_has_the_keys_that_are_read() -> None:
    """What editors complete is what is read, and the schema takes documents and refuses unknown keys."""
    pytest.importorskip("jsonschema")
    import yaml

    schema = json.loads(Path(yaml_format.__file__).with_name("schema.json").read_text(encoding="utf-8"))
    read = {
        **{"procedure": yaml_format.TOP, "input": yaml_format.INPUT, "table": yaml_format.TABLE, "if": yaml_format.IF},
        **{"else_if": yaml_format.ELSE_IF, "for_each": yaml_format.FOR_EACH, "repeat": yaml_format.REPEAT},
        "step": yaml_format.STEP,
    }
    assert {name: set(schema["$defs"][name]["properties"]) for name in read} == {key: set(read[key]) for key in read}
    validator = import_module("jsonschema").Draft202012Validator(schema)
    for text in (YAML, FLOW):
        assert validator.is_valid(yaml.safe_load(text))
    wrong: list[object] = [{"stpes": []}, {"steps": [{"id": "t", "expresion": "1"}]}, {"steps": [{"if": "a"}]}]
    assert not any(validator.is_valid(each) for each in wrong)


def test_units_with_signs_of_their_own_are_read_as_in_text(tmp_path: Path) -> None:
    """An expression of YAML or Python is read as the same one in a line of the language."""
    pytest.importorskip("pint")
    wanted = Procedure.parse("inputs: t: quantity(degC)\nfever: boolean = t >= 38 \u00b0C")
    text = "inputs: {t: quantity(degC)}\nsteps: [{id: fever, expression: t >= 38 \u00b0C, type: boolean}]"
    assert load(tmp_path, text) == wanted
