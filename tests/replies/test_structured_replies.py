"""Replies whose values have parts: records as objects, lists as arrays, dates and amounts as they are written."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.core.verdicts import Claim, Deviation
from stepguard.errors import ValueRefused
from stepguard.language.records import RecordType
from stepguard.language.strict_json import decode
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.replies.formats import EquationFormat
from stepguard.testing import SimulatedModel
from stepguard.testing.working import wrong_value

pytest.importorskip("pint")  # the harness makes quantities
from values_harness import typed_values

parse = ValueType.parse
ITEM = RecordType("Item", (("what", parse("text")), ("amount", parse("money(EUR)")), ("late", parse("boolean"))))
ITEMS = parse("list of Item", records={"Item": ITEM})
FORMAT = EquationFormat()
STEP = Step("items", instruction="List the items of claim.", reads=["claim"], type=ITEMS)
TAXI = {"what": "taxi", "amount": "12.50", "late": False}


def claimed(step: Step, field: object, form: EquationFormat = FORMAT) -> Claim | Deviation:
    return form.claim(step, decode(json.dumps(field)))


@examples(300)
@given(typed_values, st.sampled_from([FORMAT, EquationFormat(decimal=",")]))
def test_a_right_answer_of_every_type_is_read_as_it_was_given(
    pair: tuple[ValueType, Value], form: EquationFormat
) -> None:
    """What the format writes for a value fits its own schema and reads as the value."""
    kind, value = pair
    if kind.kind in ("text", "quantity") or (kind.structured and form.decimal == ","):
        return
    step = Step("s", instruction="Say it.", type=kind)
    field = form.answer(step, "as asked", kind.write(value))
    claim = claimed(step, field, form)
    assert isinstance(claim, Claim)
    assert kind.read(claim.value) == value
    form.response_model([step]).model_validate({"s": field}, strict=True)


@examples(300)
@given(typed_values, st.integers(0, 2**32))
def test_a_wrong_leaf_is_never_read_as_the_right_value(pair: tuple[ValueType, Value], seed: int) -> None:
    """Whatever part of a value is changed, the claim holds another value."""
    kind, value = pair
    wrong = wrong_value(kind, value, random.Random(seed))
    if wrong == value or not kind.structured:
        return
    step = Step("s", instruction="Say it.", type=kind)
    try:
        claim = claimed(step, FORMAT.answer(step, "", kind.write(wrong)))
        assert isinstance(claim, Claim)
        assert kind.read(claim.value) != value
    except ValueRefused:
        pass


@all_rows(
    "field",
    [
        {"work": "a taxi", "value": [TAXI]},
        {"value": [TAXI]},
        [TAXI],
        {"work": "", "value": json.dumps([TAXI])},
        json.dumps([TAXI]),
        {"work": "", "value": [{"what": "taxi", "amount": 12.50, "late": "false"}]},
    ],
)
def test_a_list_is_read_in_every_form_that_means_it(field: object) -> None:
    """With its work or alone, as JSON or as JSON in a text, numbers as text or as they are."""
    claim = claimed(STEP, field)
    assert isinstance(claim, Claim)
    assert ITEMS.write(ITEMS.read(claim.value)) == json.dumps([TAXI])


@all_rows(
    "field",
    [
        {"work": "", "value": "a taxi for 12.50"},
        {"work": ["a"], "value": [TAXI]},
        {"work": "", "value": None},
        {"work": "", "value": 12.5},
        {"work": "", "value": [{**TAXI, "what": "a\u0000b"}]},
        TAXI | {"work": "", "value": []},
        {"work": "", "value": json.loads("[" * 400 + "]" * 400)},
    ],
)
def test_what_is_no_list_is_malformed(field: object) -> None:
    """An entry that is something else is a deviation of the step, or refused when it is read."""
    found = claimed(STEP, field)
    if isinstance(found, Claim):
        with pytest.raises(ValueRefused):
            ITEMS.read(found.value)
    else:
        assert found.kind == "malformed"


def test_a_decimal_comma_is_read_in_every_number_of_a_record() -> None:
    """Numbers that a model writes as text have its separator, JSON's own have a point."""
    step = Step("item", instruction="Read it.", type=ValueType(kind="record", record=ITEM))
    form = EquationFormat(decimal=",")
    for amount in ("12,50", 12.5):
        claim = claimed(step, {"work": "", "value": {**TAXI, "amount": amount}}, form)
        assert isinstance(claim, Claim)
        assert step.type.write(step.type.read(claim.value)) == json.dumps(TAXI)
    assert form.answer(step, "", json.dumps(TAXI)) == {"work": "", "value": {**TAXI, "amount": "12,50"}}


def test_an_entry_with_a_key_twice_is_refused_as_a_whole() -> None:
    """Inside a list, too: none of the two silently wins."""
    field = decode('{"work": "", "value": [{"what": "a", "what": "b", "amount": 1, "late": true}]}')
    claim = FORMAT.claim(STEP, field)
    assert isinstance(claim, Claim)
    with pytest.raises(ValueRefused, match="stands twice"):
        ITEMS.read(claim.value)


def test_a_run_commits_records_lists_and_dates() -> None:
    """What a model answers is a value that later steps read, shown as JSON on one line, and comes out as JSON."""
    steps = [
        STEP,
        Step("day", instruction="When was the claim made?", reads=["claim"], type="date"),
        Step("count", instruction="How many items are late?", reads=["items", "day"], type="integer"),
    ]

    def count(values: Any) -> int:
        return sum(item["late"] for item in values["items"])

    model = SimulatedModel(answers={"items": [TAXI, {**TAXI, "late": True}], "day": "2026-01-31", "count": count})
    run = Guard(model, segment=1).run(Procedure(steps, inputs=["claim"]), {"claim": 5})
    assert run.status == "unverified"
    assert run.answer == 1
    assert run.to_dict()["values"]["items"] == [
        {"what": "taxi", "amount": "12.50", "late": False},
        {"what": "taxi", "amount": "12.50", "late": True},
    ]
