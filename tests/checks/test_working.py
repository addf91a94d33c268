"""The check of steps with an expression: the value must be right and the working this step's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard import Step
from stepguard.checks import judge_claims
from stepguard.core.verdicts import Claim, Verdict
from stepguard.errors import EvaluationError
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Call, Chain, Expression, Name, Negate, Number, Power, format_expression
from stepguard.language.same_working import normal_form
from stepguard.language.values import Value, show_value
from stepguard.replies.formats import EquationFormat

STATE: dict[str, Value] = {
    "x": 12, "y": 7, "z": 7, "a": -96, "b": -106, "zero": 0, "third": Fraction(1, 3), "rate": Fraction(3, 20),
    "price": Decimal("2.50"), "n": 2, "flag": True, "E": 4, "I": 2, "S": 3, "label": "blue",
}  # fmt: skip


def verdict_on(step: Step, reply: str, values: Mapping[str, Value] = STATE) -> Verdict:
    """What is said of a reply's equation for a step."""
    claim = EquationFormat().claim(step, reply)
    assert isinstance(claim, Claim)
    (judgement,) = judge_claims([step], [claim], values)
    assert judgement.verdict is not None
    return judgement.verdict


ACCEPTED: list[tuple[str, str, str]] = [
    # expression, type, reply
    *(("a - b", "number", "-96 - (-106) = 10"), ("a - b", "number", "-96 + 106 = 10")),
    *(("a - b", "number", "106 - 96 = 10"), ("a - b", "number", "106 + (-96) = 10")),
    *(("a - b", "number", "a - b = -96 - (-106) = 10"), ("a - b", "number", "−96 + 106 = 10")),
    *(("x + y", "number", "12 + 7 = 19"), ("x + y", "number", "7 + 12 = 19")),
    *(("x + y", "number", "x + y = 12 + 7 = 19"), ("x + y", "number", "t3 = x + y = 12 + 7 = 19")),
    *(("x + y", "number", "x + y = 10 + 9 = 19"), ("x + y", "number", "(12) + (7) = 19.0")),
    *(("x + (y - z)", "number", "12 + 7 - 7 = 12"), ("x - (y - z)", "number", "12 - 7 + 7 = 12")),
    *(("x * y", "number", "7×12 = 84"), ("x * (y * z)", "number", "12 * 7 * 7 = 588")),
    *(("-x * y", "number", "-(12 * 7) = -84"), ("-x * y", "number", "12 * -7 = -84")),
    *(("a * b", "number", "96 * 106 = 10,176"), ("x^2", "number", "12 * 12 = 144"), ("x^2", "number", "12^2 = 144")),
    *(("x * x", "number", "12**2 = 144"), ("x^n", "number", "12^2 = 144"), ("x^n", "number", "12 * 12 = 144")),
    *(("(x - y) * n", "number", "-(7 - 12) * 2 = 10"), ("(y - z) * n", "number", "-(7 - 7) * 2 = 0")),
    *(("x / y", "number", "12 / 7 = 12/7"), ("x / y / n", "number", "12 / (7 * 2) = 6/7")),
    *(("x / (y / n)", "number", "12 / 7 * 2 = 24/7"), ("x * third", "number", "12 * (1/3) = 4")),
    *(("x * rate", "number", "12 * 15 / 100 = 1.8"), ("x * rate", "number", "12 / 100 * 15 = 1.8")),
    *(("x * (1 - rate)", "number", "12 * (1 - 15/100) = 10.2"), ("x * 7.5%", "number", "7.5 / 100 * 12 = 0.9")),
    *(("x * third", "number", "12 / 3 * 1 = 4"), ("price * n", "number", "2.5 * 2 = 5")),
    *(("price * n", "number", "2.50 * 2 = $5.00"), ("x * 0.5", "number", "12 * 1/2 = 6")),
    *(("x * y // 5", "number", "7 * 12 // 5 = 16"), ("(x // 5) * y", "number", "7 * (12 // 5) = 14")),
    *(("x // 5 * y", "number", "(12 // 5) * 7 = 14"), ("-y // 2", "integer", "-7 // 2 = -4")),
    *(("x - zero", "number", "12 + 0 = 12"), ("-zero", "number", "-0 = 0"), ("-zero * x", "number", "0 * 12 = 0")),
    *(("max(x, y)", "number", "max(12, 7) = 12"), ("max(100, 200)", "number", "max(100,200) = 200")),
    *(("max(x, y)", "number", "max(7, 12) = 12"), ("x > y", "boolean", "12 > 7 = true")),
    *(("x > y", "boolean", "7 < 12 = true"), ("x == y", "boolean", "12 == 7 = false")),
    *(("x / y", "decimal(2)", "12 / 7 = 1.71"), ("x / y", "decimal(2)", "12 / 7 = 1.714285 = 1.71")),
    *(("x / y", "decimal(2)", "12 / 7 ≈ 1.7143 ≈ 1.71"), ("x / 8", "decimal(2)", "12 / 8 = 1.5 = 1.50")),
    ("round(x / y, 2)", "number", "12 / 7 = 1.7142 = 1.71"),
    *(("round(x / y, 2)", "number", "round(12 / 7, 2) = 1.71"), ("2.675", "decimal(2)", "2.68")),
    *(("1/3", "decimal(6)", "1/3 = 0.333333"), ("0.1*3", "number", "0.1 * 3 = 0.3")),
    *(("0.1 + 0.2", "number", "0.1 + 0.2 = 0.3"), ("7 / 25", "number", "7 / 25 = 28%")),
    *(("E*I + S", "number", "4*2 + 3 = 11"), ("x", "number", "12"), ("x", "number", "x = 12"), ("5", "number", "5")),
    *(("flag", "boolean", "true"), ("label", "text", "blue")),
]

FAILED: list[tuple[str, str, str, str]] = [
    # expression, type, reply, kind
    ("a - b", "number", "5 + 5 = 10", "unfaithful_work"),
    ("a - b", "number", "-106 - (-96) = 10", "unfaithful_work"),
    *(("a - b", "number", "-96 + 106 = -202", "wrong_value"), ("a - b", "number", "-96 - 106 = -202", "wrong_value")),
    *(("a - b", "number", "10", "unfaithful_work"), ("a - b", "number", "= 10", "malformed")),
    *(("x + y", "number", "12 + 7 = 20", "wrong_value"), ("x + y", "number", "12 + 7 = 18 = 19", "unfaithful_work")),
    ("x + y", "number", "x + y = 12 + 8 = 19", "unfaithful_work"),
    *(("x + y", "number", "12 + 8 = 20", "wrong_operand"), ("x + y", "number", "12 + 8 = 19", "wrong_operand")),
    *(("x + y", "number", "x + z = 19", "wrong_operand"), ("x + y", "number", "x + y = x + z = 19", "wrong_operand")),
    ("x + y", "number", "x + y = x + unknown = 19", "wrong_operand"),
    ("x + y", "number", "12 + 7 + 0 = 19", "unfaithful_work"),
    ("x + y", "number", "twelve plus seven = 19", "malformed"),
    ("x + y", "number", "__import__('os').getpid() = 19", "malformed"),
    *(("x + y", "number", "9^9^9 = 19", "wrong_operand"), ("x + y", "number", "1/0 = 19", "wrong_operand")),
    ("x + y", "number", "12 + 7 = 9^9^9 = 19", "unfaithful_work"),
    *(("x + y", "number", "12 + 7 = nineteen", "malformed"), ("x + y", "number", "12 + 7 = t1", "malformed")),
    *(("x * y", "number", "12 + 72 = 84", "unfaithful_work"), ("x + x", "number", "2 * 12 = 24", "unfaithful_work")),
    ("x * (y + n)", "number", "12 * 7 + 12 * 2 = 108", "unfaithful_work"),
    ("x * (y - n)", "number", "12 * (2 - 7) = 60", "unfaithful_work"),
    ("y - z", "number", "7 * 0 = 0", "unfaithful_work"),
    ("x / y", "decimal(2)", "12 / 7 = 1.72 = 1.71", "unfaithful_work"),
    ("x / y", "decimal(2)", "12 / 7 = 1.7 = 1.71", "unfaithful_work"),
    ("x / y", "decimal(2)", "12 / 7 = 2 = 1.71", "unfaithful_work"),
    *(("x / y", "decimal(2)", "12 / 7 = 1.714", "malformed"), ("1/3", "number", "1/3 = 0.33", "wrong_value")),
    ("1/3", "number", "1/3 = 0.333333 = 1/3", "unfaithful_work"),
    *(("1/3", "decimal(6)", "1/3 = 0.33", "wrong_value"), ("7 / 25", "number", "7 / 25 = 28", "wrong_value")),
    *(("28", "number", "28%", "wrong_value"), ("-y // 2", "integer", "-7 // 2 = -3", "wrong_value")),
    ("-y // 2", "integer", "-(7 // 2) = -4", "unfaithful_work"),
    ("(x - y)^3", "number", "(7 - 12)^3 = 125", "unfaithful_work"),
    ("max(x, y)", "number", "max(12, 7, 3) = 12", "unfaithful_work"),
    ("max(x, y)", "number", "min(12, 7) = 12", "unfaithful_work"),
    ("x > y", "boolean", "12 > 7 = false", "wrong_value"),
    *(("x > y", "boolean", "12 >= 7 = true", "unfaithful_work"), ("x > y", "boolean", "12 > 7 = 1", "malformed")),
    *(("x - y - 4", "number", "12 - 7 - 4 = true", "malformed"), ("x", "number", "13", "wrong_value")),
    ("9007199254740993", "number", "9007199254740992", "wrong_value"),
    ("0.29999999999999998", "number", "0.3", "wrong_value"),
    ("x", "number", "9" * 5000, "malformed"),
    ("label", "text", "red", "wrong_value"),
]


@all_rows("expression, type_, reply", ACCEPTED)
def test_harmless_rewriting_passes(expression: str, type_: str, reply: str) -> None:
    """A right value with this step's working, harmlessly rewritten or not, is accepted."""
    verdict = verdict_on(Step("t3", expression, type=type_), reply)
    assert verdict.outcome == "pass", verdict.reason


@all_rows("expression, type_, reply, kind", FAILED)
def test_anything_else_fails(expression: str, type_: str, reply: str, kind: str) -> None:
    """A wrong value, another working, a false link or a foreign operand fails under its own name."""
    step = Step("t3", expression, type=type_)
    claim = EquationFormat().claim(step, reply)
    if not isinstance(claim, Claim):
        assert claim.kind == kind
        return
    verdict = verdict_on(step, reply)
    assert (verdict.outcome, verdict.kind) == ("fail", kind), verdict.reason


@pytest.mark.parametrize(
    ("expression", "type_", "reply"),
    [
        *(("2.675", "decimal(2)", "2.67"), ("2.5", "decimal(0)", "2"), ("-245162.5", "decimal(0)", "-245162")),
        *(("5 / 2", "decimal(0, half_even)", "5 / 2 = 3"), ("round(5 / 2)", "number", "5 / 2 = 2.5 = 2")),
        ("round(2.675, 2)", "number", "2.675 = 2.67"),
        ("round(5 / 2, half_even)", "integer", "round(5 / 2, 0, half_even) = 3"),
    ],
)
def test_the_other_rounding_mode_is_named(expression: str, type_: str, reply: str) -> None:
    """A value rounded in another mode than declared is wrong, and the reason says that the mode is why."""
    verdict = verdict_on(Step("t", expression, type=type_), reply)
    assert verdict.kind == "wrong_value"
    assert verdict.reason.startswith("rounding mode")


@all_rows("expression", ["1/(3-3)", "x // zero", "x % zero", "zero^zero", "sqrt(n)", "9^9^9", "label + 1"])
@all_rows("reply", ["0", "x / 0 = 0", "1/(3-3) = 0", "12"])
def test_a_step_without_value_is_undecided(expression: str, reply: str) -> None:
    """Where a step has no exact value no claim passes or fails, and asking again is known to be useless."""
    verdict = verdict_on(Step("t", expression), reply)
    assert (verdict.outcome, verdict.kind, verdict.retry) == ("undecided", "undecided", False)


@all_rows("reply", ["inf", "undefined", "zoo", "NaN", "1/0"])
def test_no_text_passes_for_an_undefined_value(reply: str) -> None:
    """No word for infinity is accepted where a step divides by zero."""
    assert verdict_on(Step("t", "1/(3-3)"), reply).outcome != "pass"


def test_a_fraction_is_no_integer() -> None:
    """A step whose exact value is not of its declared type is undecided."""
    assert verdict_on(Step("t", "7/2", type="integer"), "7/2 = 3").outcome == "undecided"


def test_working_is_not_asked_for_where_the_step_does_not() -> None:
    """Without show_work the value alone is judged."""
    step = Step("t", "x + y", show_work=False)
    for value, outcome in (("19", "pass"), ("20", "fail")):
        (judgement,) = judge_claims([step], [Claim("t", (), value, value)], STATE)
        assert judgement.verdict is not None
        assert judgement.verdict.outcome == outcome


def test_a_step_is_judged_by_the_claims_before_it() -> None:
    """Each claim of a segment is judged with the values accepted before it; behind a failure none is judged."""
    steps = [Step("t1", "x + y"), Step("t2", "t1 * 2"), Step("t3", "t2 - 1")]
    claims = [
        Claim("t1", ("12 + 7",), "19", ""),
        Claim("t2", ("19 * 2",), "39", ""),
        Claim("t3", ("39 - 1",), "38", ""),
    ]
    judged = judge_claims(steps, claims, STATE)
    assert [each.verdict.outcome for each in judged if each.verdict] == ["pass", "fail"]
    observed = judge_claims(steps, claims, STATE, beyond_failure=True)
    assert [each.verdict.outcome for each in observed if each.verdict] == ["pass", "fail", "pass"]


DIFFERENT: list[tuple[str, str]] = [
    *(("x - y", "y - x"), ("n * (x - y)", "n * (y - x)"), ("(x - y)^3", "(y - x)^3"), ("x - (y - n)", "x - y - n")),
    *(("x / (y / n)", "x / y / n"), ("x / y", "y / x"), ("x // y", "x / y"), ("x // y // n", "x // (y * n)")),
    *(("x * (y // n)", "x * y // n"), ("x * (y % n)", "x * y % n"), ("-x // y", "-(x // y)"), ("-x % y", "-(x % y)")),
    *(("-x^2", "(-x)^2"), ("x^y", "y^x"), ("x^(n * n)", "(x^n)^n"), ("2^3^2", "(2^3)^2"), ("x + y", "x + y + 0")),
    *(("x + x", "2 * x"), ("x + y - y", "x"), ("x * y / y", "x"), ("x - max(1 * 0 * 3, 5)", "x + max(1 * 0 * 3, 5)")),
    *(("x - (n - 3 * 1)^y", "x + (n - 3 * 1)^y"), ("x * (y + n)", "x * y + x * n"), ("abs(x - y)", "abs(y - x)")),
    *(("round(x, 1)", "round(x, 2)"), ("round(x, 1, up)", "round(x, 1, down)"), ("x < y", "x <= y")),
    *(("x < y", "y < x"), ("max(x, y)", "min(x, y)"), ("x - y", "x + y"), ("label", "blue")),
]


@all_rows("one, other", DIFFERENT)
def test_different_work_has_different_normal_forms(one: str, other: str) -> None:
    """Work with other signs, operators, operands or order of steps is not the same, whatever its value."""
    values: dict[str, Value] = {**STATE, "blue": 5}
    assert normal_form(parse_expression(one), values) != normal_form(parse_expression(other), values)


@pytest.mark.parametrize(
    "text", ["((" * 12 + "9" + "^8)^8)" * 12, "(" * 39 + "x" + "^100)" * 39, "-(1*-(2+" * 19 + "3" + "))" * 19]
)
def test_a_normal_form_is_no_longer_than_its_expression_makes_it(text: str) -> None:
    """Nested powers are counted, not written out."""
    assert len(normal_form(parse_expression(text), STATE)) < 2000


# Random steps, and replies to them that are right, harmlessly rewritten or wrong.

NAMES = ["x", "y", "a", "price", "third", "zero"]
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.integers(-20, 20).map(Number), st.sampled_from(NAMES).map(Name), st.just(parse_expression("0.25"))
)


def chains(operands: st.SearchStrategy[Expression], operators: list[str]) -> st.SearchStrategy[Expression]:
    def build(first: Expression, rest: list[tuple[str, Expression]]) -> Expression:
        return Chain((first, *(operand for _, operand in rest)), tuple(operator for operator, _ in rest))

    return st.builds(build, operands, st.lists(st.tuples(st.sampled_from(operators), operands), min_size=1, max_size=3))


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        chains(inner, ["+", "-"]),
        chains(inner, ["*", "/"]),
        chains(inner, ["*", "/", "//", "%"]),
        inner.map(Negate),
        st.builds(Power, inner, st.integers(2, 3).map(Number)),
        st.builds(lambda one, two: Call("max", (one, two)), inner, inner),
        st.builds(lambda one: Call("abs", (one,)), inner),
    ),
    max_leaves=7,
)
types = st.sampled_from(["number", "decimal(0)", "decimal(2)", "decimal(3, floor)"])


class Rewriter:
    """Rewrites an expression harmlessly, at random: every rule is one that a reader would wave through."""

    def __init__(self, chance: random.Random, values: Mapping[str, Value]) -> None:
        self.chance = chance
        self.values = values

    def coin(self) -> bool:
        return self.chance.random() < 0.5

    def rewrite(self, tree: Expression) -> Expression:
        match tree:
            case Name(name) if self.coin():
                # Written as a prompt shows it, and bracketed so that a minus or slash stays with it.
                return parse_expression(f"({show_value(self.values[name])})")
            case Negate(operand):
                return Negate(self.rewrite(operand))
            case Power(base, Number(exponent)) if self.coin():
                assert type(exponent) is int
                factor = self.rewrite(base)
                return Chain((factor,) * exponent, ("*",) * (exponent - 1))
            case Power(base, power):
                return Power(self.rewrite(base), power)
            case Call(function, arguments, mode):
                shuffled = [self.rewrite(argument) for argument in arguments]
                self.chance.shuffle(shuffled)
                return Call(function, tuple(shuffled), mode)
            case Chain(operands, operators):
                return self.chain([self.rewrite(operand) for operand in operands], list(operators))
            case _:
                return tree

    def chain(self, operands: list[Expression], operators: list[str]) -> Expression:
        if {"//", "%"} & set(operators):
            last = max(at for at, operator in enumerate(operators) if operator in ("//", "%"))
            # Brackets around what is computed first anyway.
            if self.coin() and last < len(operators) - 1:
                first = Chain(tuple(operands[: last + 2]), tuple(operators[: last + 1]))
                return self.chain([first, *operands[last + 2 :]], operators[last + 1 :])
            return Chain(tuple(operands), tuple(operators))
        plus, minus = ("+", "-") if operators[0] in "+-" else ("*", "/")
        signed: list[tuple[str, Expression]] = list(zip([plus, *operators], operands, strict=True))
        self.chance.shuffle(signed)
        while signed[0][0] == minus:
            self.chance.shuffle(signed)
        if plus == "+" and self.coin():
            # Every term with its sign turned around twice.
            signed = [(minus if sign == plus else plus, Negate(operand)) for sign, operand in signed]
            return Chain((Negate(signed[0][1]), *(each for _, each in signed[1:])), tuple(s for s, _ in signed[1:]))
        cut = self.chance.randrange(len(signed))
        if 0 < cut < len(signed) - 1 and self.coin():
            # a - b - c as a - (b + c), a / b / c as a / (b * c)
            sign, head = signed[cut]
            inner = [(plus if each == sign else minus, operand) for each, operand in signed[cut + 1 :]]
            bracket: Expression = Chain((head, *(operand for _, operand in inner)), tuple(each for each, _ in inner))
            signed = [*signed[:cut], (sign, bracket)]
        return Chain(tuple(operand for _, operand in signed), tuple(sign for sign, _ in signed[1:]))


@given(trees, types, st.randoms(use_true_random=False))
@examples(200)
def test_harmlessly_rewritten_working_is_accepted(tree: Expression, type_: str, chance: random.Random) -> None:
    """The right value is accepted with any working that harmless rewriting makes of the step's expression."""
    step = Step("t", format_expression(tree), type=type_)
    assert step.expression is not None
    try:
        value = step.type.convert(evaluate(step.expression, STATE))
        working = format_expression(Rewriter(chance, STATE).rewrite(step.expression))
        evaluate(parse_expression(working), STATE)  # 0 / 1 * 0 is defined, 0 / (1 / 0) is not
    except EvaluationError:
        assume(False)
        raise
    verdict = verdict_on(step, f"{working} = {show_value(value)}")
    assert verdict.outcome == "pass", (step.formula, working, verdict.reason)


@given(trees, trees)
@examples(200)
def test_equal_normal_forms_have_equal_values(one: Expression, other: Expression) -> None:
    """Expressions of different value never have the same normal form."""
    one, other = (parse_expression(format_expression(each)) for each in (one, other))
    try:
        values = evaluate(one, STATE), evaluate(other, STATE)
    except EvaluationError:
        return
    if values[0] != values[1]:
        assert normal_form(one, STATE) != normal_form(other, STATE)


@given(trees, st.data())
@examples(200)
def test_one_changed_operator_or_operand_changes_the_normal_form(tree: Expression, data: st.DataObject) -> None:
    """Where one token of an expression is changed so that its value changes, its normal form changes."""
    tokens = format_expression(tree).split(" ")
    at = data.draw(st.integers(0, len(tokens) - 1))
    tokens[at] = data.draw(st.sampled_from(["+", "-", "*", "/", "//", "%", "13", "-1", "y", "zero"]))
    changed = " ".join(tokens)
    try:
        other = parse_expression(changed)
        one = parse_expression(format_expression(tree))
        values = evaluate(one, STATE), evaluate(other, STATE)
    except (ValueError, EvaluationError):
        return
    if values[0] != values[1]:
        assert normal_form(one, STATE) != normal_form(other, STATE), changed


signed_numbers = st.lists(st.tuples(st.sampled_from(["+", "-"]), st.integers(-3, 3)), min_size=2, max_size=4)


@given(signed_numbers, signed_numbers)
@examples(200)
def test_sums_and_products_are_multisets_of_signed_operands(
    one: list[tuple[str, int]], other: list[tuple[str, int]]
) -> None:
    """Two sums are the same work if their signed terms are, two products if their factors but ones and their sign."""

    def terms(numbers: list[tuple[str, int]]) -> list[int]:
        return sorted(number if sign == "+" else -number for sign, number in numbers)

    def factors(numbers: list[tuple[str, int]]) -> tuple[list[tuple[bool, int]], int]:
        held = [(sign, number) if at else ("+", number) for at, (sign, number) in enumerate(numbers)]
        sides = sorted((sign == "-", abs(number)) for sign, number in held if abs(number) != 1)
        sign = 0 if (False, 0) in sides else sum(number < 0 for _, number in numbers) % 2
        return sides, sign

    def text(numbers: list[tuple[str, int]], plus: str, minus: str) -> Expression:
        rest = [f"{plus if sign == '+' else minus} ({number})" for sign, number in numbers[1:]]
        first = f"-({numbers[0][1]})" if plus == "+" and numbers[0][0] == "-" else f"({numbers[0][1]})"
        return parse_expression(" ".join([first, *rest]))

    sums = [normal_form(text(each, "+", "-"), {}) for each in (one, other)]
    assert (sums[0] == sums[1]) == (terms(one) == terms(other))
    products = [normal_form(text(each, "*", "/"), {}) for each in (one, other)]
    assert (products[0] == products[1]) == (factors(one) == factors(other))
