"""Percentages, money, listed options and tolerances: what is read, refused, rounded, asked for and accepted."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Result, Step, ValueType
from stepguard.errors import ConfigError, InexactError, InputError, ProcedureError, ValueRefused
from stepguard.language.tolerances import Tolerance
from stepguard.language.values import Rounding, Value
from stepguard.repair.rungs import Resample
from stepguard.testing import ScriptedBackend


def run(step: str, claim: object, **inputs: object) -> Result:
    """One try at a procedure of one step whose inputs are what the step reads, if it declares none itself."""
    procedure = Procedure.parse(step if step.startswith("inputs: ") else f"inputs: {', '.join(inputs)}\n{step}")
    model = ScriptedBackend({procedure.steps[0].id: claim})
    return Guard(model, repair=0).run(procedure, inputs)


def kind(result: Result) -> str:
    """``ok``, or the kind of deviation the run stopped at."""
    if result.status == "verified":
        return "ok"
    assert result.problem is not None
    assert result.problem.deviation is not None
    return result.problem.deviation.kind


@pytest.mark.parametrize(
    "text",
    [
        *("number(within 0.01)", "number(within 2.5%)", "percent", "percent(1, half_up)", "percent(0, half_even)"),
        *("money(USD, 2, half_up)", "money(JPY, 0, half_up)", "money(EUR, 4, down)", "decimal(100, up)"),
        *("number", "integer", "boolean", "text", *(f"decimal(3, {mode})" for mode in get_args(Rounding))),
        *("one_of(yes, no)", 'one_of(low, very high, "a, b", "say \\"x\\"", "f(x) = 1")'),
    ],
)
def test_a_type_is_what_its_text_says(text: str) -> None:
    """The text of a type parses to a type with the same text, also inside a procedure."""
    parsed = ValueType.parse(text)
    assert str(parsed) == text
    assert ValueType.parse(str(parsed)) == parsed
    procedure = Procedure.parse(f"inputs: x: {text}, y\nt1: {text} = x\nt2 = y")
    assert procedure.inputs[0].type == procedure.steps[0].type == parsed
    assert Procedure.parse(str(procedure)) == procedure


@pytest.mark.parametrize(
    ("text", "full"),
    [
        *(("money(usd)", "money(USD, 2, half_up)"), ("Money( KWD )", "money(KWD, 3, half_up)")),
        *(("money(CHF, 2, HALF_EVEN)", "money(CHF, 2, half_even)"), ("percent(2)", "percent(2, half_up)")),
        ("decimal(2)", "decimal(2, half_up)"),
        *(('one_of("yes",no)', "one_of(yes, no)"), ("one_of('yes', 'very high')", "one_of(yes, very high)")),
    ],
)
def test_what_is_left_out_has_a_documented_default(text: str, full: str) -> None:
    """Places follow from the currency, the mode is half_up, case and quotes do not matter."""
    assert str(ValueType.parse(text)) == full


@all_rows(
    "text, says",
    [
        *(("money", "needs its currency"), ("money(XYZ)", "ISO 4217"), ("money(2)", "ISO 4217")),
        *(("money(USD, 101)", "0 to 100"), ("money(USD, -1)", "places and a mode")),
        *(("money(USD, 2, halfup)", "rounding mode"), ("money(USD, 2, up, 3)", "places and a mode")),
        *(("percent(x)", "places and a mode"), ("percent()", "is not a type"), ("percent(1,)", "is not a type")),
        *(("integer(2)", "takes nothing"), ("boolean(2)", "takes nothing"), ("number(0.01)", "takes nothing")),
        *(("number(within -1)", "tolerance"), ("number(within nan)", "tolerance"), ("number(within 0)", "tolerance")),
        *(("number(within 1)", "tolerance"), ("number(within 1000)", "tolerance")),
        *(("number(within 11%)", "tolerance"), ("number(within $0.01)", "currency")),
        *(("number(within 0.01, 2)", "takes nothing"), ("one_of", "needs its options"), ("one_of(yes)", "2 to 100")),
        *(("one_of(yes, Yes)", "twice"), ('one_of(yes, "yes.")', "twice"), ('one_of(yes, "")', "cannot be an option")),
        *(('one_of(yes, "a\\nb")', "cannot be an option"), ('one_of(yes, " no")', "cannot be an option")),
        *(('one_of(yes, "\\x")', "JSON string"), (f"one_of(yes, {'n' * 101})", "cannot be an option")),
        (f"one_of({', '.join(f'o{n}' for n in range(101))})", "2 to 100"),
        *(("one_of(yes, \ud800)", "cannot be an option"), ("choice(yes, no)", "unknown type 'choice'")),
        *(
            ("", "is not a type"),
            ("int", "unknown type 'int'"),
            ("decimal", "needs its places"),
            ("decimal()", "is not a"),
        ),
        *(("decimal(-1)", "places and a mode"), ("decimal(101)", "0 to 100"), ("text(1)", "takes nothing")),
        *(("decimal(2, nearest)", "rounding mode"), ("number; drop", "is not a type"), ("decimal(2", "is not a type")),
        (f"decimal({'9' * 5000})", "is not a type"),
    ],
)
def test_a_type_that_cannot_work_is_refused(text: str, says: str) -> None:
    """A wrong type is refused when it is made, with what is wrong about it."""
    with pytest.raises(ConfigError, match=says) as refused:
        ValueType.parse(text)
    assert refused.value.option in ("type", "within")


@all_rows(
    "parts",
    [
        *({"kind": "fraction"}, {"kind": "integer", "places": 2}, {"kind": "integer", "rounding": "up"}),
        *({"kind": "percent", "rounding": "up"}, {"kind": "decimal", "places": True}),
        *({"kind": "decimal", "places": -1}, {"kind": "decimal", "places": 2.0}),
        *({"kind": "decimal", "places": 2, "currency": "USD"}, {"kind": "money"}),
        *({"kind": "text", "options": ("a", "b")}, {"kind": "one_of", "options": ("a", 2)}),
        {"kind": "integer", "within": Tolerance(Fraction(1, 100))},
    ],
)
def test_parts_that_do_not_go_together_are_refused(parts: dict[str, object]) -> None:
    """A type made from parts is checked like one made from text."""
    with pytest.raises(ConfigError):
        ValueType(**parts)  # type: ignore[arg-type]


@all_rows("amount", [0.5, float("nan"), True, "0.1", Decimal("0.1")])
def test_a_tolerance_is_an_exact_number(amount: object) -> None:
    """A tolerance made from a float, which is not what it seems to be, is refused."""
    with pytest.raises(ConfigError):
        Tolerance(amount)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount", "relative", "fits"),
    [
        *((Fraction(1, 1000), False, True), (Fraction(1, 2), False, True), (Fraction(99, 100), False, True)),
        *((1, False, False), (Fraction(3, 2), False, False), (0, False, False), (Fraction(-1, 2), False, False)),
        *((Fraction(1, 1000), True, True), (Fraction(1, 10), True, True), (Fraction(11, 100), True, False)),
        *((Fraction(1, 2), True, False), (0, True, False)),
    ],
)
def test_a_tolerance_is_narrow(amount: int | Fraction, relative: bool, fits: bool) -> None:
    """A difference is above 0 and below 1, a share of the result at most a tenth."""
    if fits:
        assert Tolerance(amount, relative).amount == amount
    else:
        with pytest.raises(ConfigError, match="is no tolerance"):
            Tolerance(amount, relative)


def test_a_tolerance_is_a_difference_unless_it_says_otherwise() -> None:
    """A tolerance made from its amount alone is absolute."""
    assert Tolerance(Fraction(1, 100)) == Tolerance.parse("0.01")


def test_a_list_may_be_a_hundred_options_long() -> None:
    """The largest number of options, each of the largest length, makes a type."""
    options = tuple(f"{index:0100}" for index in range(100))
    assert ValueType(kind="one_of", options=options).options == options


@pytest.mark.parametrize(
    ("type_", "choices"), [("boolean", 2), ("one_of(a, b, c)", 3), ("text", None), ("integer", None)]
)
def test_how_many_values_a_type_has(type_: str, choices: int | None) -> None:
    """A truth value has two, a list as many as it holds; all others are not limited."""
    assert ValueType.parse(type_).choices == choices


# What is read


@all_rows(
    "type_, text, value",
    [
        *(("percent", "28%", Fraction(7, 25)), ("percent", "28", Fraction(7, 25))),
        *(("percent", "28 percent", Fraction(7, 25)), ("percent", "0.28", Fraction(7, 2500))),
        *(("money(EUR)", "0.500", Decimal("0.50")), ("money(EUR)", "1000.000", Decimal("1000.00"))),
        *(("money(KWD)", "1.500", Decimal("1.500")), ("number", "1.250", Fraction(5, 4))),
        *(("percent", "-5 %", Fraction(-1, 20)), ("percent", "200%", 2), ("percent", "1/3%", Fraction(1, 300))),
        *(("percent(1)", "28.5%", Decimal("0.285")), ("percent(1)", "28", Decimal("0.280"))),
        *(("percent(1)", "28.50%", Decimal("0.285")), ("percent(0)", "28%", Decimal("0.28"))),
        *(("money(USD)", "$18", Decimal("18.00")), ("money(USD)", "18.5 USD", Decimal("18.50"))),
        *(("money(USD)", "US$18", Decimal("18.00")), ("money(USD)", "1,018.50", Decimal("1018.50"))),
        *(("money(USD)", "18 dollars", Decimal("18.00")), ("money(CAD)", "$18", Decimal("18.00"))),
        *(("money(GBP)", "£18", Decimal("18.00")), ("money(CNY)", "¥18", Decimal("18.00"))),
        *(("money(JPY)", "¥1,800", Decimal(1800)), ("money(KWD)", "1.234 KWD", Decimal("1.234"))),
        *(("boolean", "**True.**", True), ("boolean", '"false"', False), ("one_of(yes, No)", " yes\n", "yes")),
        *(("one_of(yes, No)", "NO", "No"), ("one_of(yes, No)", '"No."', "No"), ("one_of(yes, No)", "**no**", "No")),
        ("one_of(very high, low)", "Very  High", "very high"),
        *(("integer", "130,000", 130000), ("integer", "2.0", 2), ("integer", "€18.00", 18), ("number", "2.0", 2)),
        *(("number", "0.5", Fraction(1, 2)), ("number", "28%", Fraction(7, 25))),
        *(("decimal(2)", "18", Decimal("18.00")), ("decimal(2)", "2.5000", Decimal("2.50"))),
        *(("decimal(2)", "-0.00", Decimal("0.00")), ("decimal(0)", "3", Decimal(3)), ("boolean", " True ", True)),
        *(("boolean", "false", False), ("text", " as it is ", " as it is ")),
    ],
)
def test_reads_a_value_as_it_is_usually_written(type_: str, text: str, value: Value) -> None:
    """Text is read as the declared type says, exactly."""
    found = ValueType.parse(type_).read(text)
    assert found == value
    assert type(found) is type(value)
    if type(value) is Decimal:
        assert found.as_tuple() == value.as_tuple()  # type: ignore[union-attr]
    assert ValueType.parse(type_).holds(found)


@all_rows(
    "type_, text, says",
    [
        *(("percent", "$28", "percentage was expected"), ("percent", "abc", "number")),
        ("percent(1)", "28.55%", "more than 1 decimal place"),
        *(("money(USD)", "€18", "in USD was expected, found EUR"), ("money(USD)", "18 CAD", "found CAD")),
        *(("money(EUR)", "$18", "found"), ("money(EUR)", "¥18", "found"), ("money(USD)", "18%", "found %")),
        ("money(USD)", "18.005", "more than 2 decimal places"),
        *(("money(EUR)", text, "groups thousands") for text in ("1.000 EUR", "2.500", "€ 12.340", "-1.000")),
        *(("integer", "12.000", "groups thousands"), ("decimal(2)", "1.250", "groups thousands")),
        *(("decimal(1)", "70.300e3", "groups thousands"), ("decimal(1)", "7.030e", "groups thousands")),
        *(("money(JPY)", "1.000", "groups thousands"), ("list of money(EUR)", '["1.000"]', "groups thousands")),
        *(("money(JPY)", "18.50", "more than 0 decimal places"), ("boolean", "not true", "true or false")),
        *(("one_of(yes, no)", "maybe", "one of yes, no"), ("one_of(yes, no)", "yes no", "one of")),
        *(("one_of(yes, no)", "", "one of"), ("one_of(1, 10)", "1.0", "one of"), ("one_of(1, 10)", "true", "one of")),
        *(("integer", "2.5", "is not an integer"), ("integer", "28%", "%"), ("integer", "true", "truth value")),
        *(("number", "True", "truth value"), ("number", "NaN", "finite"), ("number", "2==2", "relation")),
        *(("decimal(2)", "2.675", "more than 2"), ("decimal(2)", "1/3", "more than 2"), ("number", "inf", "finite")),
        *(("boolean", text, "true or false") for text in ("1", "yes", "")),
    ],
)
def test_refuses_what_is_no_value_of_the_type(type_: str, text: str, says: str) -> None:
    """Another unit, more places or an option that is not listed is refused, never converted, rounded or guessed."""
    with pytest.raises(ValueRefused, match=says):
        ValueType.parse(type_).read(text)


@pytest.mark.parametrize(
    ("type_", "given_", "value"),
    [
        *(("percent", "5%", Fraction(1, 20)), ("percent(1)", "5.5 %", Decimal("0.055"))),
        *(("money(USD)", "$5", Decimal("5.00")), ("money(USD)", 5, Decimal("5.00"))),
        *(("decimal(1)", "7.030e3", Decimal("7030.0")), ("integer", "-2.500 x 10^4", -25000)),
        *(("money(EUR)", Decimal("1.000"), Decimal("1.00")), ("money(USD)", 5.25, Decimal("5.25"))),
        ("money(USD)", Fraction(1, 4), Decimal("0.25")),
        *(("number", 0.1, Fraction(1, 10)), ("number", 2.0, 2), ("number", Decimal("0.30"), Fraction(3, 10))),
        ("number", Decimal("0.12345678901234567890"), Fraction(1234567890123456789, 10**19)),
        *(("number", Fraction(4, 2), 2), ("number", "3/4", Fraction(3, 4)), ("number", 10**999, 10**999)),
        *(("integer", 9007199254740993, 9007199254740993), ("decimal(2)", 5, Decimal("5.00"))),
        *(("decimal(2)", 2.5, Decimal("2.50")), ("boolean", True, True), ("text", "x", "x")),
        *(("one_of(a, b)", "A", "a"), ("number(within 0.1)", "1/3", Fraction(1, 3))),
    ],
)
def test_accepts_what_a_caller_gives(type_: str, given_: object, value: Value) -> None:
    """An input of the caller becomes an exact value of its type; a float is the decimal that Python prints for it."""
    found = ValueType.parse(type_).accept(given_)
    assert found == value
    assert type(found) is type(value)


@all_rows(
    "type_, given_, says",
    [
        *(("percent", "5", "without its sign"), ("percent", 5, "as text such as '5%'")),
        *(("percent", 0.05, "as text such as '5%'"), ("percent", Fraction(1, 20), "as text such as '5%'")),
        *(("money(USD)", "5%", "percent sign"), ("money(USD)", "€5", "found EUR")),
        *(("money(USD)", 0.001, "decimal places"), ("money(USD)", True, "truth value")),
        *(("text", "a\ud800", "lone surrogate"), ("one_of(a, b)", "c", "one of a, b")),
        *(("one_of(a, b)", 1, "was expected"), ("boolean", 1, "a value of type boolean was expected, found int")),
        ("text", 1.5, "a value of type text was expected, found float"),
    ],
)
def test_an_input_that_could_be_meant_otherwise_is_refused(type_: str, given_: object, says: str) -> None:
    """A caller's value is refused where its unit is missing or another one, and the error names the input."""
    with pytest.raises(InputError, match=says) as refused:
        Procedure.parse(f"inputs: x: {type_}\nt1: {type_} = x").accept_inputs({"x": given_})
    assert refused.value.name == "x"


def test_what_was_refused_can_be_printed() -> None:
    """The text of an input that cannot be sent is given with its lone surrogate escaped."""
    with pytest.raises(ValueRefused) as refused:
        ValueType.parse("text").accept("a\ud800b")
    assert refused.value.text == "a\\ud800b"


# What is accepted of a model


RATE = "inputs: price, rate: percent"
SHARES = "inputs: p: percent, q: percent"
RISK = "inputs: risk: one_of(low, very high)"
ANSWERS = {
    "share: percent": Fraction(19, 100),
    "share: percent(1)": Decimal("0.333"),
    "half: money(USD)": Decimal("6.18"),
}


@all_rows("step, inputs, claim, found", [
    # A percentage may be worked out as a ratio or times 100; a bare ratio, or another percentage, is not it.
    *(("share: percent = part / whole", {"part": "22.8", "whole": 120}, claim, found) for claim, found in (
        *(("22.8 / 120 = 19%", "ok"), ("22.8 / 120 = 0.19 = 19%", "ok"), ("22.8 / 120 * 100 = 19", "ok")),
        *(("(22.8 / 120) * 100 = 19%", "ok"), ("100 * 22.8 / 120 = 19%", "ok")),
        *(("22.8 / 120 = 0.19 * 100 = 19%", "ok"), ("22.8 / 120 = 19% = 19 percent", "ok")),
        *(("22.8 / 120 = 0.19", "wrong_value"), ("22.8 / 120 * 100 = 20%", "wrong_value")),
        *(("22.8 / 120 = 190%", "wrong_value"), ("22.8 / 120 * 10 = 19%", "wrong_operand")),
        *(("19 / 100 = 19%", "unfaithful_work"), ("22.8 / 120 = 0.2 = 19%", "unfaithful_work")),
        *(("22.8 / 12 * 100 = 19%", "wrong_operand"), ("22.8 / 120 = $19", "malformed")),
    )),
    # Places of a percentage are those of the percentage, not of the ratio.
    *(("share: percent(1) = part / whole", {"part": 1, "whole": 3}, claim, found) for claim, found in (
        *(("1 / 3 = 33.3%", "ok"), ("1 / 3 = 0.3333 = 33.3%", "ok"), ("1 / 3 * 100 = 33.33 = 33.3%", "ok")),
        *(("1 / 3 = 33.33% = 33.3%", "ok"), ("1 / 3 = 0.33 = 33.3%", "unfaithful_work")),
        *(("1 / 3 = 33.4%", "wrong_value"), ("1 / 3 = 33%", "wrong_value"), ("1 / 3 = 33.33%", "malformed")),
    )),
    # An amount in another currency is no pass, whatever its number.
    *(("half: money(USD) = price * 0.5", {"price": "12.35"}, claim, found) for claim, found in (
        *(("12.35 * 0.5 = 6.18", "ok"), ("$12.35 * 0.5 = $6.175 = $6.18", "ok"), ("12.35 * 0.5 = 6.18 USD", "ok")),
        *(("12.35 * 0.5 = 6.17", "wrong_value"), ("12.35 * 0.5 = €6.18", "malformed")),
        ("12.35 * 0.5 = 6.175", "malformed"),
    )),
    # A claim within the tolerance passes; one percent of -200 is 2, in both directions.
    *(("third: number(within 0.01) = whole / 3", {"whole": 100}, claim, found) for claim, found in (
        *(("100 / 3 = 33.33", "ok"), ("100 / 3 = 33.333 = 33.33", "ok"), ("100 / 3 = 33.3433", "ok")),
        *(("100 / 3 = 100/3", "ok"), ("100 / 3 = 33.32", "wrong_value"), ("100 / 3 = 33.344", "wrong_value")),
        *(("100 / 3 = 33 = 33.33", "unfaithful_work"), ("99.99 / 3 = 33.33", "wrong_operand")),
    )),
    *(("t1: number(within 1%) = x * 2", {"x": -100}, f"-100 * 2 = {value}", found) for value, found in (
        ("-198", "ok"), ("-202", "ok"), ("-197.99", "wrong_value"), ("-202.01", "wrong_value"),
    )),
    # A value that is near but not equal fails by default.
    ("t1 = x / 3", {"x": 1}, "1 / 3 = 0.333333", "wrong_value"),
    ("t1: decimal(6) = x / 3", {"x": 1}, "1 / 3 = 0.333333", "ok"),
    ("t1: decimal(6) = x / 3", {"x": 1}, "1 / 3 = 0.33", "wrong_value"),
    # A percent sign behind a number is a hundredth where it cannot be a remainder; between numbers it is one.
    *((f"{RATE}\nfee = price * rate", {"price": 50, "rate": "10%"}, claim, found) for claim, found in (
        *(("50 * 0.1 = 5", "ok"), ("50 * 10% = 5", "ok"), ("50 * 10 % = 5", "ok"), (r"50 \times 10\% = 5", "ok")),
        *(("10% of 50 = 5", "ok"), ("$50 * 10% = $5", "ok"), ("50 * 10% = 10% * 50 = 5", "ok")),
        *(("50 * 10 / 100 = 5", "ok"), ("50 * 1% = 5", "wrong_operand")),
        *(("50 * 10% = 50", "wrong_value"), ("50 * 10 = 5", "wrong_operand"), ("50 % 10 = 5", "wrong_operand")),
        *(("50 * 10%3 = 5", "wrong_operand"), ("50 * 1,0% = 5", "malformed"), ("10 percent of 50 = 5", "ok")),
    )),
    *((f"{SHARES}\n{step}", {"p": "5%", "q": "12.5%"}, claim, found) for step, claim, found in (
        *(("t1: percent = p + q", "5% + 12.5% = 17.5%", "ok"), ("t1: percent = p - q", "5% - 12.5% = -7.5%", "ok")),
        ("t1: percent = p - q", "0.05 - 0.125 = -0.075 = -7.5%", "ok"),
        ("t1: percent = p + q", "5 + 12.5 = 17.5", "wrong_operand"),
        ("t1: percent = p + q", "5% + 12.5% = 0.175", "ok"),
        *(
            ("t1: percent = p + q", "5% + 12.5% = 0.175%", "wrong_value"),
            ("t1: percent = p * 2", "5% * 2 = 10", "wrong_value"),
        ),
        *(("t1 = max(p, q)", "max(5%, 12.5%) = 12.5%", "ok"), ("t1 = p < q", "5% < 12.5% = true", "ok")),
        *(("t1 = p >= q", "5% ≥ 12.5% = false", "ok"), ("t1 = 7 % 3", "7 % 3 = 1", "ok")),
        *(("t1 = 7 % (-3)", "7 % -3 = -2", "ok"), ("t1 = 7 % (-3)", "7%-3 = -2", "ok")),
        *(("t1 = 7 % 3", "7% 3 = 1", "ok"), ("t1 = 7 - 3", "700% - 300% = 4", "ok")),
        ("t1 = 7 % 3", "7% - 3 = 1", "wrong_operand"),
    )),
    ("t1 = x % 5", {"x": 17}, "17 mod 5 = 2", "ok"),
    # A step that copies an option is verified by equality, and another option is a wrong value.
    *((f"{RISK}\nt1: one_of(low, very high) = risk", {"risk": "very high"}, claim, found) for claim, found in (
        ("very high", "ok"), ("t1 = risk = Very high", "ok"), ("low", "wrong_value"),
    )),
])  # fmt: skip
def test_a_claim_is_held_to_the_type_of_its_step(step: str, inputs: dict[str, object], claim: str, found: str) -> None:
    """Units, places, tolerances and options of a step decide what its claim says, and whether it is right."""
    result = run(step, claim, **inputs)
    assert kind(result) == found
    if found == "ok" and step.partition(" = ")[0] in ANSWERS:
        assert result.answer == ANSWERS[step.partition(" = ")[0]]
    if found == "ok" and "third" in step:
        (verdict,) = result.steps[0].verdicts
        assert verdict.reason == "within 0.01"


def test_the_wrong_rounding_mode_of_a_percentage_is_named() -> None:
    """A percentage rounded in another mode fails, and the reason says so."""
    result = run("share: percent(0, half_even) = part / whole", "1 / 8 = 13%", part=1, whole=8)
    assert kind(result) == "wrong_value"
    assert "rounding mode" in str(result.problem)


@all_rows(
    "expression, value",
    [("-7 // 2", "-4"), ("-7 % 3", "2"), ("-7 mod 3", "2"), ("7 mod -3", "-2"), ("trunc(-7 / 2)", "-3"),
     ("-7 - 3 * trunc(-7 / 3)", "-1")],
)  # fmt: skip
def test_the_convention_of_integer_division_is_declared_by_the_step(expression: str, value: str) -> None:
    """Floor and truncation are different steps; the value of the one is wrong for the other."""
    for claim in {"-4", "-3", "2", "-1", "-2"}:
        result = Guard(ScriptedBackend({"t1": f"{expression} = {claim}"}), repair=0).run(
            Procedure.parse(f"t1: integer = {expression}")
        )
        assert (result.status == "verified") == (claim == value)


# Options


def test_an_option_is_read_as_it_is_declared_and_asked_by_name() -> None:
    """A step in words with listed options says them in the prompt and the schema, and takes no other answer."""
    procedure = Procedure.parse(
        'inputs: letter: text\nmood: one_of(calm, angry) = "How does the customer sound?" (reads letter)'
    )
    model = ScriptedBackend({"mood": {"work": "polite", "value": "polite"}}, {"mood": {"work": "", "value": "Calm."}})
    result = Guard(model).run(procedure, {"letter": "Dear all"})
    assert result.values["mood"] == "calm"
    assert result.status == "unverified"
    assert [each.kind for each in result.steps[0].deviations] == ["malformed"]
    assert 'one of: "calm", "angry"' in model.requests[0].messages[-1].content
    model_type = model.requests[0].response_model
    assert model_type is not None
    assert ["calm", "angry"] in [
        each["properties"]["value"].get("enum") for each in model_type.model_json_schema()["$defs"].values()
    ]


@pytest.mark.parametrize(("few", "calls"), [(1, 3), (2, 2), (3, 1), (4, 1)])
def test_a_step_with_few_options_gets_no_blind_guess(few: int, calls: int) -> None:
    """Where few options are left, "wrong" would be half of the answer: the run abstains."""

    def right(step: Step, values: object, claim: object) -> bool:
        return False

    step = Step("pick", instruction="Which?", type="one_of(a, b, c)", checks=[right])
    with ScriptedBackend(*[{"pick": {"work": "", "value": value}} for value in "abc"[:calls]]) as model:
        result = Guard(model, repair=Ladder([Resample(times=2)], few=few)).run(Procedure([step]))
    assert result.status == "abstained"
    assert result.usage.calls == calls


def test_a_copy_into_options_that_do_not_hold_it_has_no_value() -> None:
    """Copying a text that is no option is undecidable, whatever is claimed."""
    with pytest.raises(InexactError):
        ValueType.parse("one_of(a, b)").convert("c")
    procedure = Procedure.parse("inputs: x: text\nt1: one_of(a, b) = x")
    result = Guard(ScriptedBackend(), repair=3).run(procedure, {"x": "c"})
    assert result.status == "abstained"
    assert result.usage.calls == 0


def test_a_sum_is_no_option() -> None:
    """An expression that gives a number cannot set one of a list."""
    with pytest.raises(ProcedureError, match="no one_of"):
        Procedure.parse("inputs: x\nt1: one_of(1, 2) = x + 1")


# What is asked and shown


@all_rows(
    "type_, asked",
    [
        ("percent", "t1 = x / 4, as a percentage "),
        ("percent(1)", "t1 = x / 4, as a percentage, rounded to 1 decimal place "),
        ("money(EUR)", "t1 = x / 4, in EUR, rounded to 2 decimal places "),
        ("money(EUR, 2, down)", "t1 = x / 4, in EUR, rounded to 2 decimal places (down) "),
        ("number(within 0.5%)", "t1 = x / 4, at most 0.5% from the exact value "),
    ],
)
def test_the_prompt_says_what_the_value_is_to_look_like(type_: str, asked: str) -> None:
    """What the checker will hold an answer to stands beside the step."""
    model = ScriptedBackend({"t1": ""})
    Guard(model, repair=0).run(Procedure.parse(f"inputs: x\nt1: {type_} = x / 4"), {"x": 3})
    assert asked in model.requests[0].messages[-1].content


@given(st.integers(-(10**6), 10**6), st.integers(0, 4))
def test_what_is_written_is_read_back(number: int, places: int) -> None:
    """`write` and `read` are inverse to each other."""
    for text in ("percent", f"percent({places})", f"money(EUR, {places})", f"decimal({places})", "number"):
        kind_ = ValueType.parse(text)
        value = kind_.convert(Fraction(number, 7))
        assert kind_.read(kind_.write(value)) == value


def test_a_percentage_is_shown_as_one() -> None:
    """A ratio is written with its sign and the declared places."""
    assert ValueType.parse("percent(1)").write(Decimal("0.285")) == "28.5%"
    assert ValueType.parse("percent(1)").write(Decimal("0.280")) == "28.0%"
    assert ValueType.parse("percent(0)").write(Decimal("-0.05")) == "-5%"
    assert ValueType.parse("percent").write(Fraction(1, 3)) == "100/3%"
    assert ValueType.parse("percent").write(2) == "200%"


def test_code_that_is_checked_may_set_any_type() -> None:
    """A step by code with a check of the user's own is judged on the value it computed."""

    def below(step: Step, values: dict[str, Value], claim: object) -> bool:
        return values["share"] == Decimal("0.333")

    step = Step("share", "x / 3", type="percent(1)", performer="code", checks=[below])  # type: ignore[list-item]
    result = Guard(ScriptedBackend()).run(Procedure([step], inputs=["x"]), {"x": 1})
    assert result.status == "verified"
    assert result.answer == Decimal("0.333")
