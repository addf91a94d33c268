"""The ways in which models write right working, and the ways that stay refused."""

from __future__ import annotations

from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Procedure
from stepguard.testing import ScriptedBackend

PRODUCT = "decimal(2) = x * y"
PROCEDURE = Procedure.parse(f"inputs: x, y\nt1: {PRODUCT}")
INPUTS = {"x": "12.50", "y": 3}


@all_rows("step, inputs, entry, accepted", [
    # Markup, currency signs, LaTeX operators and the step's own name in front do not make right working wrong.
    *((PRODUCT, INPUTS, entry, True) for entry in (
        *("12.50 * 3 = 37.50", "12.5 * 3 = 37.5", "x * y = 12.50 * 3 = 37.50", "t1 = x * y = 12.50 * 3 = 37.50"),
        *("t1: 12.50 * 3 = 37.50", "$12.50 * 3 = $37.50", "3 * $12.50 = $37.50", "\u20ac12.50 \u00d7 3 = \u20ac37.50"),
        *("12.50$ * 3 = 37.50$", "US$12.50 * 3 = US$37.50", "USD 12.50 * 3 = USD 37.50", "12.50 USD * 3 = 37.50 USD"),
        *("12.50 dollars * 3 = 37.50 dollars", "$12.50 * 3 = $37.50 USD", "\u20a912.50 * 3 = \u20a937.50"),
        *("12.50 \\times 3 = 37.50", "12.50 \\cdot 3 = 37.50", "\\( 12.50 \\times 3 = 37.50 \\)"),
        *("$12.50 * 3 = 37.50$", "$$12.50 * 3 = 37.50$$", "**12.50 * 3 = 37.50**", "`12.50 * 3 = 37.50`"),
        *("(12.50) * (3) = 37.50", "12.50*3=37.50"),
    )),
    # A missing working, prose, another step's name and other working are refused, however right the value.
    *((PRODUCT, INPUTS, entry, False) for entry in (
        *("37.50", "12.50 -> 3 -> 37.50", "12.50 * 3 = 37.50 apples", "12.50 * 3 = 37.50, which is right"),
        *("12.50 * 3 = ", "t2: 12.50 * 3 = 37.50", "30 + 7.50 = 37.50", "12.50 * 3 = $37.60"),
        *("12.50 USD6 * 3 = 37.50", "12 \u20ac.50 * 3 = 37.50", "12.50 ABC * 3 = 37.50", "12.50% * 3 = 37.50"),
        "\\sqrt{12.50} * 3 = 37.50",
    )),
    # The words of the step's own rounding may stand behind what is rounded; those of another may not.
    *((f"{kind} = x * y", {"x": "8.205", "y": 3}, entry, accepted) for kind, entry, accepted in (
        ("decimal(2)", "8.205 * 3 = 24.615 rounded to 2 decimal places = 24.62", True),
        ("decimal(2)", "8.205 * 3, rounded to 2 decimal places = 24.62", True),
        ("decimal(1)", "8.205 * 3 = 24.615 (rounded to 1 decimal place) = 24.6", True),
        ("money(EUR)", "8.205 * 3 = 24.615, in EUR, rounded to 2 decimal places = 24.62", True),
        ("money(EUR)", "8.205 * 3 in EUR, rounded to 2 decimal places = 24.615 EUR = 24.62", True),
        ("money(EUR)", "8.205 * 3 = 24.615, in USD, rounded to 2 decimal places = 24.62", False),
        ("decimal(2)", "8.205 * 3 = 24.615, rounded to 1 decimal place = 24.62", False),
        ("number", "8.205 * 3 = 24.615, rounded to 3 decimal places = 24.615", False),
        ("decimal(2)", "8.205 * 3 = 24.635 rounded to 2 decimal places = 24.62", False),
        ("decimal(2)", "8.205 * 2 rounded to 2 decimal places = 24.62", False),
        ("decimal(2)", "8.205 * 3 = 24.615 rounded to 2 decimal places = 24.61", False),
        ("decimal(2)", "rounded to 2 decimal places = 24.62", False),
    )),
    # Fractions and roots of LaTeX are read as what they say, and checked like any other working.
    *((f"decimal(2) = {expression}", INPUTS, entry, accepted) for expression, entry, accepted in (
        *(("x / y", "\\frac{12.50}{3} = 4.17", True), ("x / y", "\\dfrac{x}{y} = \\frac{12.50}{3} = 4.17", True)),
        ("x / (y / 2)", "\\frac{12.50}{\\frac{3}{2}} = 8.33", True),
        ("x / (y / 2)", "\\frac{12.50}{\\frac32} = 8.33", True),
        *(("sqrt(x * 2) * y", "\\sqrt{12.50 \\cdot 2} \\times 3 = 15", True), ("y % 2", "3 \\bmod 2 = 1", True)),
        *(("2 ^ y", "2 \\times\\times 3 = 8", False), ("2 ^ y", "2 \\times* 3 = 8", False)),
        *(("7 // y", "7 \\div/ 3 = 2", False), ("x / y", "\\frac{3}{12.50} = 4.17", False)),
        *(("x / y", "\\frac{12.50}{3} = 4.16", False), ("x / y", "\\frac{12.50}{} = 4.17", False)),
        *(("x / y", "\\frac{12.50} = 4.17", False), ("x + y / 2", "12.50\\frac{3}{2} = 14", False)),
    )),
    # What sizes a bracket leaves it a bracket, of numbers and of arguments.
    *(("number = max(x, 2 * y) - x", {"x": 12, "y": 7}, entry, True) for entry in (
        "max\\left(12, 2 * 7\\right) - 12 = 2", "max(\\left(12\\right), 2 \\times 7) - \\left[12\\right] = 2",
    )),
    # Adding up amounts in another currency is no working of a step, while a product may convert one.
    *((f"money(USD) = {expression}", INPUTS, entry, accepted) for expression, entry, accepted in (
        *(("x + y", "$12.50 + $3 = $15.50", True), ("x + y", "12.50 USD + 3 USD = $15.50", True)),
        *(("x + y", "\u20ac12.50 + \u20ac3 = $15.50", False), ("x + y", "$12.50 + \u00a33 = $15.50", False)),
        *(("x + y", "x + y = 12.50 CAD + 3 CAD = 15.50", False), ("x + y", "12.50 + 3 = \u20ac15.50 = 15.50", False)),
        *(("-x", "-(USD 12.50) = -12.50", True), ("-x", "-(EUR 12.50) = -12.50", False)),
        *(("-(x + y)", "-($12.50 + $3) = -15.50", True), ("-(x + y)", "-(\u20ac12.50 + \u20ac3) = -15.50", False)),
        *(("y - x", "-($12.50) + 3 = -9.50", True), ("y - x", "-(\u20ac12.50) + 3 = -9.50", False)),
        *(("x", "\u20ac12.50 = $12.50", False), ("x * y", "\u20ac12.50 * 3 = $37.50", True)),
    )),
    # A verb of equality, and a code of a currency, that are names of the step stay those variables.
    ("number = is * y", {"is": 10, "y": 3}, "is * y = 10 * 3 = 30", True),
    ("number = 2 * USD + EUR * 3", {"USD": 5, "EUR": 4}, "2 * USD + EUR * 3 = 2 * 5 + 4 * 3 = 22", True),
])  # fmt: skip
def test_right_working_passes_in_any_style(step: str, inputs: dict[str, Any], entry: str, accepted: bool) -> None:
    """Working is read in the ways of models, and is refused where it says anything else than that of the step."""
    procedure = Procedure.parse(f"inputs: {', '.join(inputs)}\nt1: {step}")
    with ScriptedBackend({"t1": entry}) as backend:
        result = Guard(backend, repair=0).run(procedure, inputs)
    assert (result.status, result.completed) == (("verified", 1) if accepted else ("abstained", 0))


EQUALITIES = ("is", "->", "\u2192", "=>", "\u21d2", "gives", "equals", "is equal to", "ist", "ergibt", "fait", "es")
ROUNDINGS_SHOWN = (" (rounded)", " (rounded to 2 decimals)", ", rounded to 2 decimal places", " (gerundet)")
AFFIRMED = ("", " \u2713", " \u2705", " \u2714\ufe0f", " (verified)", " (correct)")


@all_rows("sign", EQUALITIES)
@all_rows("remark", AFFIRMED)
@all_rows("rounding", ("", *ROUNDINGS_SHOWN))
def test_signs_of_equality_and_remarks_that_affirm_leave_what_is_claimed(sign: str, remark: str, rounding: str) -> None:
    """What means equality parts working and value, and a tick or the step's own rounding says nothing else of it."""
    right = {"10 / 3 {} 3.33": True, "10 / 3 {} 3.34": False, "3 / 10 {} 3.33": False, "10 {0} 3 {0} 3.33": False}
    procedure = Procedure.parse("inputs: x, y\nt1: decimal(2) = x / y")
    for entry, accepted in right.items():
        with ScriptedBackend({"t1": f"{entry.format(sign)}{rounding}{remark}"}) as backend:
            assert Guard(backend, repair=0).run(procedure, {"x": 10, "y": 3}).verified is accepted


@all_rows("entry", [
    *(f"10 * 3 {sign} {denial} 30" for sign in EQUALITIES for denial in ("not", "about", "less than", "nicht", "pas")),
    *(f"10 * 3 {sign} 30{more}" for sign in EQUALITIES for more in ("?", " or 31", " is false", f" {sign} 31")),
    *(f"10 * 3 = 30 {mark}" for mark in ("\u2717", "\u274c", "\u2713?", "\u2713\u2717", "\u2713 31", "(\u2717)")),
    *(f"10 * 3 = 30 ({word})" for word in (
    "not verified", "unverified", "verified?", "to be verified", "check", "incorrect", "nicht gepr\u00fcft",
    "non v\u00e9rifi\u00e9", "no verificado", "falsch", "estimated", "rounded", "rounded to 2 decimals",
    )),
    *("10 * 3 n'est pas 30", "10 * 3 no es 30", "10 * 3 <=> 30", "10 * 3 <- 30"),
    *("10 * 3 \u21cf 30", "10 * 3 is", "is 30"),
])  # fmt: skip
def test_a_denial_a_doubt_and_a_foreign_rounding_stay_refused(entry: str) -> None:
    """Whatever else stands between working and value, or behind it, is not passed over, however right the value."""
    with ScriptedBackend({"t1": entry}) as backend:
        result = Guard(backend, repair=0).run(Procedure.parse("inputs: x, y\nt1 = x * y"), {"x": 10, "y": 3})
    assert result.status == "abstained"


@all_rows("value, instruction, accepted", [
    ("30 \u2713", "Multiply x by 3.", True), ("30 (verified)", "Multiply x by 3.", True),
    ("30 (verified)", "Count the verified accounts in x.", False), ("30 (rounded)", "Multiply x by 3.", False),
    ("30 (not verified)", "Multiply x by 3.", False), ("30 \u2717", "Multiply x by 3.", False),
])  # fmt: skip
def test_a_value_in_words_may_be_affirmed(value: str, instruction: str, accepted: bool) -> None:
    """The value of a step in words may end in a remark that affirms it, unless the step asks for what that says."""
    procedure = Procedure.parse(f'inputs: x\nt1: number = "{instruction}"')
    with ScriptedBackend({"t1": {"work": "", "value": value}}) as backend:
        assert (Guard(backend, repair=0).run(procedure, {"x": 10}).problem is None) is accepted


@pytest.mark.parametrize(
    "between", ["\\left", "\\right", "\\times", "\\left\\right", " ", "\u2009", "$", "\u200b", "{}", "_"]
)
@pytest.mark.parametrize("links", ["1{}2 + 7", "12 + 7 = 1{}9", "1{}1 + 8 = 12 + 7"])
def test_what_stands_between_two_digits_never_goes_away(between: str, links: str) -> None:
    """Digits with a command, a sign or a blank between them are not one number: such working is refused."""
    procedure = Procedure.parse("inputs: x, y\nt1 = x + y")
    with ScriptedBackend({"t1": f"{links.replace('{}', between)} = 19"}) as backend:
        assert not Guard(backend, repair=0).run(procedure, {"x": 12, "y": 7}).verified


@all_rows("working, code", [
    ("$12 + $3", "USD"), ("12$ + 3 $", "MXN"), ("\\$12 + \\$ 3", "USD"), ("US$12 + 3 US$", "USD"),
    ("CA$12 + 3 CA$", "CAD"), ("AU$12 + 3 AU$", "AUD"), ("NZ$12 + 3 NZ$", "NZD"), ("HK$12 + 3 HK$", "HKD"),
    ("R$12 + 3 R$", "BRL"), ("\u20ac12 + 3\u20ac", "EUR"), ("\u00a312 + 3 \u00a3", "GBP"),
    ("\u00a512 + 3\u00a5", "JPY"), ("\u00a512 + 3\u00a5", "CNY"), ("\u20b912 + 3 \u20b9", "INR"),
    ("\u20a912 + 3 \u20a9", "KRW"), ("\u20bd12 + 3 \u20bd", "RUB"), ("\u20ba12 + 3 \u20ba", "TRY"),
    ("\u20ab12 + 3 \u20ab", "VND"), ("\u20aa12 + 3 \u20aa", "ILS"), ("12 dollars + 3 dollars", "AUD"),
    ("12 dollar + 3 dollar", "CAD"), ("12 euros + 3 euro", "EUR"),
    ("12 pounds + 3 pounds", "GBP"), ("12 XAF + XAF 3", "XAF"), ("12 KWD + KWD 3", "KWD"),
])  # fmt: skip
def test_every_mark_of_a_currency_is_taken_for_that_currency(working: str, code: str) -> None:
    """Signs, codes and names next to amounts stand for their currency, before and behind, and for no other one."""
    for own, accepted in ((code, True), ("CHF", False)):
        procedure = Procedure.parse(f"inputs: x, y\nt1: money({own}) = x + y")
        with ScriptedBackend({"t1": f"{working} = 15"}) as backend:
            assert Guard(backend, repair=0).run(procedure, {"x": 12, "y": 3}).verified is accepted


def test_a_later_correction_of_a_part_is_not_ignored() -> None:
    """A full answer followed by another version of a part of it is refused as a self-correction."""
    text = Procedure.parse('inputs: x\na = x + 1\nb: text = "Name it."')
    reply = '{"a": "1 + 1 = 2", "b": {"work": "", "value": "cat"}} Correction: {"b": {"work": "", "value": "dog"}}'
    result = Guard(ScriptedBackend(reply), repair=0).run(text, {"x": 1})
    assert result.problem is not None
    assert result.problem.deviation is not None
    assert result.problem.deviation.kind == "self_correction"


def test_an_untyped_division_is_asked_for_exactly() -> None:
    """Where a quotient need not come out, the prompt asks for a fraction, and a fraction passes."""
    procedure = Procedure.parse("inputs: x\nt1 = x / 7")
    with ScriptedBackend({"t1": "58 / 7 = 58/7"}) as backend:
        assert Guard(backend).run(procedure, {"x": 58}).verified
    assert "as a fraction" in backend.requests[0].messages[-1].content


def test_a_percent_sign_on_an_input_is_refused() -> None:
    """An input of 10% is not silently taken as 0.1 by a procedure that divides by 100 itself."""
    with pytest.raises(ValueError, match="percent sign"):
        Guard(ScriptedBackend()).start(PROCEDURE, {"x": "10%", "y": 1})
