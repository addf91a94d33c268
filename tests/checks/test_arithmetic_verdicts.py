"""What the check of arithmetic says: links of a working, roundings, tolerances, and which fault is named."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tables import all_rows

from stepguard import Step
from stepguard.checks import judge_claims
from stepguard.checks.arithmetic import check_defined
from stepguard.core.verdicts import Claim, Verdict
from stepguard.language.values import Value
from stepguard.replies.formats import EquationFormat

VALUES: dict[str, Value] = {
    "x": 12, "y": 7, "n": 2, "zero": 0, "third": Fraction(1, 3), "big": Fraction(24691, 20), "flag": True,
    "word": "blue", "huge": 10**1999,
}  # fmt: skip


def verdict(expression: str, type_: str, reply: str) -> Verdict:
    step = Step("t", expression, type=type_)
    claim = EquationFormat().claim(step, reply)
    assert isinstance(claim, Claim)
    (judgement,) = judge_claims([step], [claim], VALUES)
    assert judgement.verdict is not None
    assert judgement.verdict.check in ("arithmetic", "type")
    return judgement.verdict


CASES: list[tuple[str, str, list[tuple[str, str]]]] = [
    # expression, type, and replies, each with the kind of its failure, or how it passes
    ("x + y", "number", [
        ("12 + 7 = 19", "pass"), ("12 + 7 = 10 + 9 = 19", "pass"), ("12 + 7 = 20 - 1 = 38 / 2 = 19", "pass"),
        ("12 + 7 = 20 - 1 = 39 / 2 = 19", "unfaithful_work"), ("12 + 7 = 20 - 1 = 39 / 2 = 20", "wrong_value"),
        ("12 + 7 = x + y = 19", "pass"), ("12 + 7 = 12 + n = 19", "wrong_operand"),
        ("12 + 7 = 12 + n = 14", "wrong_operand"), ("12 + 7 = twelve and 7 = 20", "malformed"),
        ("10 + 9 = 20", "wrong_value"), ("12 - 7 = 5", "wrong_value"), ("12 - 7 = 19", "unfaithful_work"),
        ("12 + 6 = 18", "wrong_operand"), ("10 + 9 = 19", "unfaithful_work"), ("12 + 7 = 1/0 = 19", "unfaithful_work"),
        ("1/0 = 19", "wrong_operand"),
    ]),
    ("x", "number", [("12", "pass"), ("x = 12", "pass"), ("7 = 12", "wrong_operand")]),
    ("12", "number", [("12", "pass")]),
    ("-x", "number", [("-12", "unfaithful_work")]),
    ("x + 0", "number", [("12", "unfaithful_work")]),
    ("word", "text", [("blue", "pass"), ("green", "wrong_value")]),
    ("flag", "boolean", [("false", "wrong_value")]),
    # a truth value is no number
    ("x > y", "boolean", [("12 > 7 = 7 < 12 = true", "pass"), ("12 > 7 = 1 = true", "unfaithful_work")]),
    ("x < y", "boolean", [("12 < 7 = 0 = false", "unfaithful_work")]),
    ("y - 6", "number", [("7 - 6 = 12 > 7 = 1", "unfaithful_work")]),
    ("zero * x", "number", [("0 * 12 = 12 < 7 = 0", "unfaithful_work")]),
    # signs that only typeset
    ("n * 6", "number", [
        ("2 x 6 = 12", "pass"), ("2 x 6 = 26", "wrong_value"), ("2x 6 = 12", "malformed"), ("6x = 12", "malformed"),
        ("n X 6 = 24", "malformed"),
    ]),
    ("x * y", "number", [("12 x 7 = 84", "malformed")]),
    ("x + y", "number", [("12 \u2011 -7 = 12 \u2012 \ufe637 = 12 \u2010 \uff0d7 = 19", "pass")]),
    ("x - y", "number", [("12 \u2011 7 = 12 \u2012 7 = 12 \ufe63 7 = 12 \uff0d 7 = 5", "pass")]),
    ("x * 1000 + y", "number", [("12 * 1\u202f000 + 7 = 12\u00a0000 + 7 = 12\u202f007.0 = 12\u202f007", "pass")]),
    ("x * 1000", "number", [
        (r"12 * 1{,}000 = 12{,}000 = 12000", "pass"), ("12 * 1\u202f0000 = 12000", "malformed"),
        ("12 * 1.0\u00a0000 = 12000", "malformed"),
    ]),
    ("x ^ 2", "number", [("12² = 144", "pass"), ("x² = 12^2 = 144", "pass"), ("12²^1 = 144", "malformed")]),
    ("sqrt(x * 3)", "number", [
        ("√(12 * 3) = √36 = 6", "pass"), ("√(12 * 3) = √36^2 = 6", "malformed"), ("√(12 * 3) = 2√9 = 6", "malformed"),
    ]),
    ("x * 0.75", "number", [
        ("12 * 0.75 = ¾ * 12 = 9", "pass"), ("12 * 0.75 = 2¾ * 12 = 9", "unfaithful_work"),
        ("12 * 0.75 = 2 ¾ * 12 = 9", "unfaithful_work"),
    ]),
    ("(x + y) / n", "number", [(r"\left(12 + 7\right) \div 2 = 9.5", "pass")]),
    ("x * y", "number", [
        (r"12 \cdot 7 = 7 \times 12 = 84", "pass"), (r"12 \timesx 7 = 84", "malformed"), (r"12 \ast 7 = 84", "pass"),
    ]),
    ("x + y", "number", [("€ 12 + €7 = €19", "pass"), (r"\$12 + $ 7 = 19", "pass"), ("12$ + 7 = 19", "pass")]),
    ("x * 0.5", "number", [("12 * 50% = 6", "pass"), ("50% of 12 = 6", "pass"), ("(50%) * 12 = 6", "pass")]),
    ("50 % x", "number", [("50 % 12 = 2", "pass"), ("50% 12 = 2", "pass")]),
    ("x * 0.5", "number", [("12 * 5,0% = 6", "malformed")]),
    ("x", "number", [("12 1.2.3% = 12", "malformed")]),
    # roundings that the type declares
    ("x / y", "decimal(2)", [
        ("12 / 7 = 1.71", "pass"), ("12 / 7 = 12/7 = 1.71", "pass"), ("12 / 7 = 1.714 = 1.71", "pass"),
        ("12 / 7 = 1.71428571 = 1.71", "pass"), ("12 / 7 = 1.71428572 = 1.71", "unfaithful_work"),
        ("12 / 7 = 1.7143 = 1.71", "pass"), ("12 / 7 = 1.71 = 1.71", "pass"),
        ("12 / 7 = 1.715 = 1.71", "unfaithful_work"), ("12 / 7 = 1.713 = 1.71", "unfaithful_work"),
        ("12 / 7 = 1.7 = 1.71", "unfaithful_work"), ("12 / 7 = 2 = 1.71", "unfaithful_work"),
        ("12 / 7 = 1.714e0 = 1.71", "unfaithful_work"),
    ]),
    ("x / y", "decimal(0)", [("12 / 7 = 2 = 2", "pass"), ("12 / 7 = 1.7 = 2", "pass")]),
    ("third", "decimal(1, up)", [
        ("1/3 = 0.34 = 0.4", "pass"), ("1/3 = 0.33 = 0.4", "pass"), ("1/3 = 0.35 = 0.4", "unfaithful_work"),
    ]),
    ("third", "decimal(1)", [("1/3 = 0.34 = 0.3", "unfaithful_work")]),
    ("2.665", "decimal(1)", [
        ("2.665 = 2.67 = 2.7", "pass"), ("2.665 = 2.66 = 2.7", "pass"), ("2.665 = 2.7 = 2.7", "pass"),
    ]),
    ("2.675", "decimal(1, down)", [("2.675 = 2.68 = 2.6", "pass")]),
    # roundings that the expression declares
    ("round(x / y, 2)", "number", [
        ("round(12 / 7, 2) = 1.71", "pass"), ("12 / 7 = 1.714 = 1.71", "pass"), ("12 / 7 = 12/7 = 1.71", "pass"),
        ("12 / 7 = 1.7 = 1.71", "unfaithful_work"), ("12 / 8 = 1.71", "wrong_operand"),
        ("7 / 12 = 1.71", "unfaithful_work"),
    ]),
    ("round(big, -2)", "number", [
        ("1234.55 = 1234 = 1200", "pass"), ("1234.55 = 1235 = 1200", "pass"),
        ("1234.55 = 1230 = 1200", "unfaithful_work"),
    ]),
    ("floor(x / y)", "number", [("12 / 7 = 1", "unfaithful_work"), ("floor(12 / 7) = 1", "pass")]),
    ("third", "number", [("1/3 = 0.333333 = 1/3", "unfaithful_work")]),
    ("x / 48", "number", [("12 / 48 * 100 = 0.25", "wrong_operand")]),
    ("x + y", "money(USD)", [("€12 + €7 = $19", "wrong_operand")]),
    # amounts in another currency, which only a product converts
    ("max(x, y)", "money(EUR)", [("max($12, $7) = 12", "wrong_operand"), ("max(€12, €7) = 12", "pass")]),
    ("round(x + y, 2)", "money(EUR)", [("round($12 + $7, 2) = 19", "wrong_operand")]),
    ("abs(x)", "money(EUR)", [("abs(12 USD) = 12", "wrong_operand")]),
    ("floor(x)", "money(EUR)", [("floor(-(-$12)) = 12", "wrong_operand")]),
    ("x + y * 1", "money(EUR)", [
        ("12 USD + 7 USD * 1 = 19", "wrong_operand"), ("12 + 7 USD * 1 = 19", "pass"),
        ("12 EUR + 7 EUR * 1 = 19 EUR", "pass"),
    ]),
    ("x * y", "money(EUR)", [("$12 * 7 = 84", "pass"), ("max($12 * 7, 0) = 84", "unfaithful_work")]),
    ("x - y", "money(EUR)", [("12 - -(-$7) = 5", "wrong_operand")]),
    ("x + y", "money(EUR)", [("12 + 7 = 12 USD + 7 USD = 19", "wrong_operand")]),
    ("x + y", "money(CAD)", [("$12 + 7 CAD = 19", "pass")]),
    # tolerances
    ("x / y", "number(within 0.01)", [
        ("12 / 7 = 1.71", "within 0.01"), ("12 / 7 = 1.714 = 1.71", "within 0.01"),
        ("12 / 7 = 1.72 = 1.71", "within 0.01"), ("12 / 7 = 1.73 = 1.71", "unfaithful_work"),
        ("12 / 7 = 1.70 + 0.01 = 1.71", "unfaithful_work"), ("7 / 12 = 1.71", "unfaithful_work"),
        ("12 / 7 = 1.73", "wrong_value"),
    ]),
    ("x / y", "number(within 1%)", [("12 / 7 = 1.73", "within 1%"), ("12 / 7 = 1.74", "wrong_value")]),
    ("x - y", "number(within 0.01)", [("12 - 7 = 5", "within 0.01")]),
    # percentages
    ("x / 48", "percent", [
        ("12 / 48 = 25%", "pass"), ("12 / 48 * 100 = 25", "pass"), ("12 / 48 = 0.25 * 100 = 25", "pass"),
        ("12 / 48 = 2.5 = 25", "unfaithful_work"), ("48 / 12 = 25%", "unfaithful_work"),
    ]),
    # one reading for the whole chain, until a link multiplies by 100
    ("x / 48", "percent", [
        ("12 / 48 * 100 = 0.25 = 25%", "unfaithful_work"), ("12 / 48 = 25 = 25%", "unfaithful_work"),
        ("12 / 48 = 0.25 = 25%", "pass"), ("12 / 48 = 25% = 25%", "pass"), ("12 / 48 * 100 = 25 = 25%", "pass"),
        ("12 / 48 = 100 * 0.25 = 25 = 25%", "pass"), ("12 / 48 = 0.25 * 100 = 0.25 = 25%", "unfaithful_work"),
        ("12 / 48 = 2500 / 100 = 25%", "unfaithful_work"), ("12 / 48 = 20 + 5 = 25%", "unfaithful_work"),
    ]),
    ("third", "percent(1)", [
        ("1/3 = 0.333 = 33.3%", "pass"), ("1/3 = 0.33 = 33.3%", "unfaithful_work"),
        ("1/3 * 100 = 33.3 = 33.3%", "pass"), ("1/3 * 100 = 33 = 33.3%", "unfaithful_work"),
    ]),
    ("huge", "percent", [("huge = 5%", "wrong_value")]),
]  # fmt: skip


@all_rows(
    "expression, type_, reply, found", [(expression, type_, *row) for expression, type_, rows in CASES for row in rows]
)
def test_working_and_value_are_judged_together(expression: str, type_: str, reply: str, found: str) -> None:
    """Every link must be true and the first this step's; of several faults the one to mend first is named."""
    given = verdict(expression, type_, reply)
    if given.outcome == "pass":
        assert (given.kind, given.reason or "pass") == (None, found)
    else:
        assert (given.outcome, given.kind) == ("fail", found)
        assert given.reason


@all_rows(
    "expression, type_, reply, mode",
    [
        *(("5 / 3", "decimal(0)", "5 / 3 = 1", "down"), ("5 / 3", "decimal(1)", "5 / 3 = 1.6", "down")),
        *(("4 / 3", "decimal(0)", "4 / 3 = 2", "up"), ("2.5", "decimal(0)", "2", "half_down")),
        ("-2.5", "decimal(0, half_down)", "-2.5 = -3", "half_up"),
        *(("5 / 2", "decimal(0, half_even)", "5 / 2 = 3", "half_up"), ("-5 / 3", "decimal(0)", "-5 / 3 = -1", "down")),
        *(("-4 / 3", "decimal(0)", "-4 / 3 = -2", "up"), ("round(5 / 3)", "number", "5 / 3 = 1", "down")),
        *(("round(5 / 3, 1)", "number", "5 / 3 = 1.6", "down"), ("round(1.95, 1)", "integer", "1.95 = 3", None)),
        *(("round(5 / 3)", "number", "5 / 3 = 3", None), ("5 / 3", "decimal(0)", "5 / 3 = 3", None)),
        *(("5 / 4", "number", "5 / 4 = 1", None), ("floor(5 / 3)", "number", "floor(5 / 3) = 2", None)),
    ],
)
def test_a_value_of_another_rounding_mode_is_explained(
    expression: str, type_: str, reply: str, mode: str | None
) -> None:
    """A wrong value that another rounding mode would give is told apart from one that none would."""
    given = verdict(expression, type_, reply)
    assert given.kind == "wrong_value"
    assert given.reason.startswith("rounding mode") == (mode is not None)
    assert f"({mode} would give it)" in given.reason or mode is None


def test_the_first_foreign_name_is_told() -> None:
    """Working that reads what the step does not is refused with the first such name."""
    assert (
        verdict("x + y", "number", "12 + huge + n = 19").reason == "the working reads 'huge', which this step does not"
    )


def test_the_working_of_a_percentage_is_compared_with_its_formula() -> None:
    """What refuses the working of a percentage names the formula of the step, and not a hundred times as much."""
    assert verdict("x / 48", "percent", "48 / 12 = 25%").reason == "the working '48 / 12' is not 'x / 48'"
    assert verdict("x / 48", "percent", "12 / 48 = 2.5 = 25").reason == "'2.5' is not equal to 'x / 48'"


@pytest.mark.parametrize("expression", ["x / zero", "sqrt(n)", "word + 1"])
def test_a_step_without_a_value_has_a_verdict_before_any_claim(expression: str) -> None:
    """That no claim can be right is known from the step and its values alone, and asking again is useless."""
    found = check_defined(Step("t", expression), VALUES)
    assert found is not None
    assert (found.outcome, found.kind, found.retry, found.check) == ("undecided", "undecided", False, "arithmetic")
    assert "no exact value" in found.reason


def test_a_step_with_a_value_has_no_verdict_before_a_claim() -> None:
    """A step that has a value, or is in words, waits for its claim."""
    assert check_defined(Step("t", "x / y"), VALUES) is None
    assert check_defined(Step("t", instruction="Name it."), VALUES) is None
    assert check_defined(Step("t", "x / y", type="integer"), VALUES) is not None
