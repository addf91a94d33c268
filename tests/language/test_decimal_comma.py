"""Replies with a decimal comma, for models that write so."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from stepguard import Guard, Procedure
from stepguard.errors import ConfigError
from stepguard.language.decimal_comma import with_point
from stepguard.replies.formats import EquationFormat
from stepguard.testing import ScriptedBackend

PRICE = Procedure.parse("inputs: price, quantity\ntotal: decimal(2) = price * quantity")
COMMA = EquationFormat(decimal=",")


def answer(reply: str, *, comma: bool = True) -> object:
    """The answer to 1234.56 times 2, or the kind of deviation."""
    model = ScriptedBackend({"total": reply})
    guard = Guard(model, repair=0, reply_format=COMMA if comma else None)
    result = guard.run(PRICE, {"price": "1234.56", "quantity": 2})
    return result.answer if result.problem is None else result.problem.deviation.kind  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "reply",
    [
        *("1234,56 * 2 = 2469,12", "1.234,56 * 2 = 2.469,12", "1.234,56 × 2 = 2.469,12 €"),
        *("1.234,56 € × 2 = 2.469,12 €", "total = price * quantity = 1234,56 * 2 = 2469,12"),
    ],
)
def test_a_decimal_comma_is_read_where_it_is_configured(reply: str) -> None:
    """With a comma configured, commas are decimal and points group, in the working and in the value."""
    assert answer(reply) == Decimal("2469.12")


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        *(("1,234.56 * 2 = 2,469.12", "malformed"), ("1234.56 * 2 = 2469.12", "malformed")),
        *(("1234,56 * 2 = 2.469", "wrong_value"), ("1234,56 * 2 = 246912", "wrong_value")),
        *(("1,23456 * 2 = 2469,12", "wrong_operand"), ("1234,56 * 2 = 2;469,12", "malformed")),
        ("1;234,56 * 2 = 2469,12", "malformed"),
    ],
)
def test_a_decimal_point_is_not_guessed_at_where_a_comma_is_configured(reply: str, found: str) -> None:
    """The other notation is refused or read as the rule says, never as what would be right."""
    assert answer(reply) == found


@pytest.mark.parametrize("reply", ["1234,56 * 2 = 2469,12", "1.234,56 * 2 = 2.469,12", "1234.56 * 2 = 2469,12"])
def test_a_decimal_comma_is_refused_by_default(reply: str) -> None:
    """Without being told, a comma never separates decimals."""
    assert answer(reply, comma=False) == "malformed"


def test_numbers_of_json_itself_have_a_point() -> None:
    """A bare JSON number is read as JSON writes it, also where text has commas."""
    procedure = Procedure.parse('inputs: x\nstep1 = "Read the weight"\nweight: decimal(2) = "Read it" (reads x)')
    model = ScriptedBackend(
        '{"step1": {"work": "", "value": "a, b.c"}, "weight": {"work": "2.5 kg, so", "value": 2.5}}'
    )
    result = Guard(model, reply_format=COMMA).run(procedure, {"x": 1})
    assert result.values["weight"] == Decimal("2.50")
    assert result.values["step1"] == "a, b.c"


def test_digits_alone_are_left_as_they_are() -> None:
    """Digits without a comma or a point are the same number in both notations, however many they are."""
    for text in ("007", "1" * 5000, "x1 + 20"):
        assert with_point(text) == text


@pytest.mark.parametrize("encoded", [False, True])
def test_numbers_of_an_object_that_was_encoded_twice_have_a_point(encoded: bool) -> None:
    """A JSON number is 1.234 also where the object around it came as text, and never 1234."""
    procedure = Procedure.parse('weight: number = "Read it."')
    entry = '{"work": "", "value": 1.234}'
    model = ScriptedBackend(json.dumps({"weight": entry}) if encoded else f'{{"weight": {entry}}}')
    assert Guard(model, reply_format=COMMA).run(procedure).values["weight"] == Fraction("1.234")


def test_arguments_are_separated_by_a_blank_or_a_semicolon() -> None:
    """In ``max(1,5; 2)`` and ``max(1,5, 2)`` the first comma is decimal."""
    procedure = Procedure.parse("t1 = max(1.5, 2) + 0.5")
    for work in ("max(1,5; 2) + 0,5", "max(1,5, 2) + 0,5"):
        model = ScriptedBackend({"t1": f"{work} = 2,5"})
        assert Guard(model, reply_format=COMMA).run(procedure).answer == Fraction(5, 2)
    model = ScriptedBackend({"t1": "max(1,5,2) + 0,5 = 2,5"})
    assert Guard(model, reply_format=COMMA, repair=0).run(procedure).status == "abstained"


def test_the_demonstration_is_written_with_a_comma() -> None:
    """The model is told, and shown, to write decimals with a comma."""
    model = ScriptedBackend({"total": "1234,56 * 2 = 2469,12"})
    Guard(model, reply_format=COMMA).run(PRICE, {"price": "1234.56", "quantity": 2})
    system, _, shown = model.requests[0].messages[:3]
    assert "comma" in system.content
    assert "1,83" in shown.content
    assert "1.83" not in shown.content


def test_any_other_separator_is_refused() -> None:
    """Only a point or a comma separates decimals."""
    with pytest.raises(ConfigError):
        EquationFormat(decimal="'")  # type: ignore[arg-type]
