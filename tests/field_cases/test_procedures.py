"""Procedures that were read otherwise than they are written: a line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tables import all_rows

from stepguard import Guard, Input, Procedure, Step
from stepguard.checks import Holds, Range
from stepguard.cli import main
from stepguard.errors import ExpressionError, ProcedureError, UsageError
from stepguard.language.value_types import ValueType
from stepguard.language.values import to_exact
from stepguard.procedure.descriptions import UnclearWords
from stepguard.testing import SimulatedModel

_INPUTS = "inputs: x, fee, age, price, members: boolean\n"

REFUSED = {
    "P01-if": "If x > 3: t1 = x + 1",
    "P01-otherwise": "Otherwise: t2 = x - 1",
    "P01-clause": "1. If age is under 18, halve the fee: fee1 = fee * 0.5",
    "P01-behind": "1. Halve the fee if age is under 18: fee1 = fee * 0.5",
    "P01-repeat": "Repeat 3 times: b = x * 1.1",
    "P01-each": "For each item: t = x + 1",
    "P01-ban": "Do not do this: t = x * 2",
    "P01-do not, in one word": "Don't do this: t = x * 2",
    "P01-brackets": "Add one (only for members): t = x + 1",
    "P01-group": "Members: t = x * 0.9",
    "P01-group that something is changed for": "Halve the fee for children: t = fee / 2",
    "P01-steps that are optional": "1. The next step is optional.\n2. t = x + 1",
    "P01-day": "Add the fee tomorrow: t = x + fee",
    "P01-enumerated group": "a) Members: t = x * 0.9",
    "P01-time": "Weekends, double the price: t = price * 2",
    "P01-comparison": "x > 3: t = x + 1",
    "P01-bound": "Age under 18: t = fee / 2",
    "P01-case": "Case A: t = x + 1",
    "P01-count": "Add the fee 3 times: t = x + fee",
    "P01-how often": "Add 5 monthly: t = x + 5",
    "P01-emphasis": "**If** it rains: t = x + 1",
    "P01-full width": "\uff29\uff46 it rains: t = x + 1",
    "P01-letters of two alphabets": "\u0406f it rains: t = x + 1",
    "P01-hidden in a word": "I\u200bf it rains: t = x + 1",
    "P01-German": "Falls es regnet: t = x + 1",
    "P01-French": "Sinon: t = x + 1",
    "P01-Spanish": "Cuando llueve: t = x + 1",
    "P01-Chinese": "\u5982\u679c\u4e0b\u96e8: t = x + 1",
    "P01-heading": "## Only for members\nt = x + 1",
    "P01-heading of a group": "## For members\nt = x + 1",
    "P01-parent line": "1. If x is large:\n   2. Add one: t = x + 1",
    "P01-condition without an end": "1. If x is large\n2. Add one: t = x + 1",
    "P01-other steps": "1. Repeat steps 2 to 4.\n2. Add one: t = x + 1",
    "P01-stop": "1. If not, stop here.\n2. Add one: t = x + 1",
    "P01-quoted": '"If x is large": t = x + 1',
    "P01-struck": "~~t = x + 1~~\nu = x + 2",
    "P01-struck step of a list": "1. ~~Add one: t = x + 1~~\n2. u = x + 2",
    "P01-HTML comment": "1. <!-- Add one: t = x + 1 -->\n2. u = x + 2",
    "P01-block quote": "> t = x + 1",
    "P01-unseen in a name": "1. t\u200b = x + 1\n2. u = x + 2",
    "P01-full-width formula": "1. \uff54\uff11 \uff1d x \uff0b 1\n2. u = x + 2",
    "P01-rounded by words": 't = x / 3  "Divide by three, rounded up"',
    "P01-rounded in another direction": 't: decimal(2, down) = x / 3  "The third, rounded up"',
    "P01-figure that the formula lacks": 't = x + 5  "Add 7"',
    "P01-figure longer than numbers are": 't = x + 5  "add ' + "1" * 5000 + '"',
    "P01-percentage that the formula lacks": 't = price * 1.2  "Add 10%"',
    "P01-permission": 't = x + 1  "You may add one"',
    "P01-Danish": 't = x + 1  "N\u00e5r det regner"',
    "P01-Spanish otherwise": 't = x + 1  "De lo contrario"',
    "P01-figure with the other sign": 't = x - 7  "Add 7"',
    "P01-figure that divides": 't = x / 4  "Multiply it by 4"',
    "P01-percentage the other way": 't = price * 1.1  "Reduce by 10%"',
    "P01-rounded to places": 't = x / 3  "Divide by 3, to two decimal places"',
    "P01-round alone": 't = x / 3  "Divide by three and round"',
    "P01-key of two options": 'table f: k -> number\n  a or b: 5\n  otherwise: 2\nt = f["b"]',
    "P01-key that is a denial": 'table f: k -> number\n  not a: 5\n  otherwise: 2\nt = f["b"]',
    "P01-range of texts": 'table f: k -> number\n  over 5: 5\n  otherwise: 2\nt = f["7"]',
    "P02-of": "t = 10 % of price",
    "P02-two readings": "t = 10%x",
    "P02-remainder of two numbers": "t = 5%3",
    "P02-one blank": "t = x %3",
    "P01-Arabic": "\u0625\u0630\u0627 x: t = x + 1",
    "P01-Ukrainian": "\u042f\u043a\u0449\u043e x: t = x + 1",
    "P01-Finnish": "Toista x: t = x + 1",
    "P01-Chinese members": "\u4f1a\u5458: t = x + 1",
    "P01-Japanese each month": "\u6bce\u6708 x: t = x + 1",
    "P01-Thai": "\u0e17\u0e33\u0e0b\u0e49\u0e33 x: t = x + 1",
    "P01-unknown words beside a letter": "Ledenkorting x: t = x + 1",
    "P01-group with a verb": "Members pay half: t = x / 2",
    "P02-sign apart": "t = price * 10 % + x",
    "P02-minus apart": "t = price * 10 % \u2013 x",
    "P02-behind a name": "t = x%",
    "P02-added": "t = price + 10%",
    "P02-full width": "t = price * 10\uff05",
    "P02-per mille": "t = price * 5\u2030",
    "P03-a step for a title": "t1 = x + 1\nName: result = t1 * 2",
    "P03-a step for a title, first": "Name: result = x * 2\nt1 = x + 1",
    "P03-a title behind steps": "t1 = x + 1\nname: invoice",
    "P03-a step for an answer": "t1 = x + 1\nAnswer: result = t1 * 2",
    "P04-goes on, indented": "1. Read the gauge and wait until it\n   settles: v = x",
    "P04-goes on behind a blank line": "1. Read the gauge.\n\n   settles: v = x",
    "P04-goes on, wrapped": "1. Read the gauge as soon as it\nsettles: v = x",
    "P04-formula under an item": "1. Work out the total:\n   t = x + 1",
    "P05-typed words": "1. Read the amount asked for: amount: money(USD)",
    "P05-typed alone": "1. amount: money(USD)",
    "P09-comparison computed with": "both = min(x > 600, price > 3)",
    "P09-numbers joined": "both = x and price",
    "P09-two joints": "both = x > 1 and price > 1 or fee > 1",
    "P12-point of print": "dose = x * 0\u00b75",
    "P12-another": "dose = x * 0\u22c55",
    "P12-dot of lists": "dose = x * 0\u20275",
    "P12-Arabic": "dose = x * 0\u066b5",
    "P12-point that groups": "dose = x * 1.000",
    "P12-points that group": "if x > 10.500.000:\n  t = 1\nelse:\n  t = 2",
    "P12-point that groups in a table": "table f: k: number -> number\n  1: 2.000\nt = f[x]",
    "P12-group in front of an argument": "t = max(1,000, x)",
    "P12-group behind an argument": "t = max(x, 2,500)",
    "P12-decimal comma among arguments": "t = max(2,5, x)",
    "P12-blanks": "dose = x * 0 . 5",
}

READ: dict[str, tuple[str, float]] = {
    "P01-verb": ('t = x - fee  "Take off the fee"', 5),
    "P01-noun": ('t = x + fee  "Subtotal"', 15),
    "P01-quantity of a group": ('price_members = price * 0.9  "Price for members"', 45),
    "P01-group in the name": ('fee_children = fee / 2  "Halve the fee for children"', 2.5),
    "P01-Chinese": ('t = x + fee  "\u8ba1\u7b97\u603b\u4ef7"', 15),
    "P01-Dutch": ('t = x + fee  "Bereken het totaal"', 15),
    "P01-Russian": ('t = x + fee  "\u0421\u0443\u043c\u043c\u0430"', 15),
    "P01-times": ('t = 3 * fee  "Three times the fee"', 15),
    "P01-sequence": ('t = x + fee  "Finally, add the fee"', 15),
    "P01-bound that the formula has": ('t = min(x, fee)  "The fee, but never more than the largest"', 5),
    "P01-bound in front": ('t = max(x, 20)  "At least 20"', 20),
    "P01-bound by a figure": ('t = min(x, 8)  "Cap it at 8"', 8),
    "P01-test that the formula is": ('t = x > 3  "Whether x is over 3"', True),
    "P01-question": ('t = x > 3  "Is it over 3?"', True),
    "P01-quoted words": ('"Trim the fee": t = fee - 1', 4),
    "P01-commented out": ("# If x > 3: t1 = x + 1\nt = x", 10),
    "P01-rounded as the type does": ('t: decimal(2) = x / 3  "Divide by three, rounded to 2 places"', 3.33),
    "P01-rounded by the formula": ('t = ceil(x / 3)  "Divide by three and round up"', 4),
    "P01-figure of the formula": ('t = x + 1,000  "Add 1,000"', 1010),
    "P01-percentage of the formula": ('t = price * 1.1  "Add 10%"', 55),
    "P01-percentage as it is": ('t = price - price * 10%  "Subtract 10%"', 45),
    "P01-percentage over 100": ('t = price + price * 10 / 100  "Add 10%"', 55),
    "P01-rounding as a noun": ('t = x - fee  "Subtract the rounding difference"', 5),
    "P01-before rounding": ('t = price * 1.1  "Price before rounding"', 55),
    "P12-arguments without blanks": ("t = max(x,100,200)", 200),
    "P12-arguments with blanks": ("t = max(x, min(1,2), 12)", 12),
    "P01-quoted key": ('table f: k -> number\n  "a or b": 5\n  otherwise: 2\nt = f["a or b"]', 5),
    "P02-product": ("total = price * 10% + x", 15),
    "P02-by code": ("total = by code price * 10% + x", 15),
    "P02-minus": ("t = 10%-x", -9.9),
    "P02-whole": ("t = x * (1 + 5%)", 10.5),
    "P02-remainder": ("t = x % 3", 1),
    "P09-and": ("t = x > 3 and price > 600", False),
    "P09-not": ("t = not (x > 30 or members)", True),
    "P09-percentage": ("rate = 5%", 0.05),
    "P12-product of the dot": ("t = x \u00b7 5", 50),
    "P01-if": ("if x > 3:\n  t = x + 1\nelse:\n  t = x - 1\nanswer: t", 11),
    "P01-else": ("if x > 30:\n  t = x + 1\nelse:\n  t = x - 1\nanswer: t", 9),
    "P01-repeat": ("repeat at most 9 times until x > 13:\n  x = x + 2\nanswer: x", 14),
    "P01-comment behind": ("t = x + 1  # only if x > 3", 11),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_refused_with_its_line(text: str) -> None:
    """A line that a careful reader reads otherwise than as a step carried out always and once is refused by name."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(_INPUTS + text)
    assert refused.value.line is not None
    assert refused.value.line >= 2


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ)
def test_what_is_understood_is_carried_out(text: str, value: float) -> None:
    """Plain descriptions stay what they are, and the formula beside them has the value that a reader gives it."""
    procedure = Procedure.parse(_INPUTS + text)
    assert Procedure.parse(str(procedure)) == procedure
    given = {"x": 10, "fee": 5, "age": 20, "price": 50, "members": False}
    result = Guard(SimulatedModel(seed=1)).run(procedure, given)
    assert result.status == "verified"
    found = result.values[procedure.answer]
    assert found is value if isinstance(value, bool) else float(to_exact(found)) == pytest.approx(value)


@all_rows("words, formula", [
    # Another figure, another sign, another direction, another power.
    *(("Double the fee", formula) for formula in ("fee / 2", "fee * 3", "fee + 2")), ("Halve it", "x * 2"),
    *(("Add five", formula) for formula in ("x - 5", "x + 6", "x * 5", "x - -6")), ("Divide by a hundred", "x / 10"),
    *(("Add 5%", formula) for formula in ("x * 0.95", "x * 1.5", "x + 5")), ("Deduct a third", "x - x / 4"),
    *((words, "price * 0.2") for words in ("10% of the price", "Half of the price", "Take 30% of it")),
    *(("Square x", formula) for formula in ("x * 2", "x ^ 3")), ("Rounded to 2 decimals", "round(x, 1)"),
    # Another operation on the names of the step, or the other way round.
    *((words, "x - fee") for words in ("Add x and fee", "Sum of x and fee", "Subtract x from the fee", "x times fee")),
    *((words, "fee / x") for words in ("Divide x by fee", "Quotient of x and fee", "Multiply it by x", "fee plus x")),
    ("Subtract 3 from x", "3 - x"), ("The larger of x and fee", "min(x, fee)"), ("Minus the fee", "x + fee"),
    # As a whole another operation.
    *((words, "x + fee") for words in ("Average of both", "The product", "Negate the sum", "The larger of the two")),
    *((words, "x") for words in ("Negate x", "Square root of x", "Take the reciprocal of it", "The absolute value")),
    *((words, "x + 5") for words in ("Add 10 dollars", "Add a fee of 10 EUR", "Add 10 euros to x", "Divide it")),
    *((words, "x * fee") for words in ("Add them up", "Find the difference", "Remainder of both")),
    *((words, "x + fee") for words in ("Average of x and fee", "Square root of x")),
    *((words, "x - fee") for words in ("Absolute difference", "Number of full boxes")),
    # Another bound, line or rate, or none.
    *((words, "x * 2") for words in ("Fee, capped at 50", "Limit it to 50", "Total, min. 5", "Max. of 5", "VAT 9%")),
    *((words, "max(x, 50)") for words in ("Cap at 50", "At least 5", "At most 50")), ("At least 50", "min(x, 50)"),
    *((words, "x > 50") for words in ("Is x at least 50?", "Is x over 60?", "Is x less than 50?", "Not more than 60")),
    *(("VAT of 19%", formula) for formula in ("x * 0.07", "x * fee")), ("Truncate it", "round(x)"),
    *((words, "round(x, 2)") for words in ("Rounded half even", "Round it down")),
])  # fmt: skip
def test_words_that_say_another_operation_than_the_formula_are_refused(words: str, formula: str) -> None:
    """What a description says that is done with a figure or with names of the step, the formula does."""
    for sentence in (words, f"{words}.", f"{words}, please."):
        with pytest.raises(UnclearWords, match="not what its formula does"):
            Step("t", formula, instruction=sentence)


@all_rows("words, formula", [
    *(("Add 5", formula) for formula in ("x + 5", "x - -5", "5 + x", "x + 10 / 2")), ("Subtract 5", "x + -5"),
    *(("Divide by 2", formula) for formula in ("x / 2", "x * 0.5", "x * 50%")), ("Multiply by 1.5", "x * 3 / 2"),
    *(("Double x", formula) for formula in ("x * 2", "x + x", "x / 0.5")), ("Square x", "x * x"),
    *(("Deduct 20%", formula) for formula in ("x * 0.8", "x - x / 5", "x * 80 / 100", "x * (100 - 20) / 100")),
    *(("Subtract the fee from x", formula) for formula in ("x - fee", "-fee + x", "x * (1 - fee)", "(x - fee) * 2")),
    ("Multiply x by fee", "fee * x + 3"), ("Divide 100 by x", "100 / x"), ("Round x to 2 decimals", "round(x, 2)"),
    *((words, "(x + fee) / 2") for words in ("Average of x and fee", "Mean of both")), ("Square root of x", "x^(1/2)"),
    *((words, "min(max(x, 5), 50)") for words in ("At least 5", "Cap at 50", "Minimum 5, max. 50")),
    *((words, "x >= 50") for words in ("Is x at least 50?", "Is x less than 50?")), ("Over 5 or 10%", "x * 10% > 5"),
    *(("VAT of 19%", formula) for formula in ("x * 0.19", "x * 1.19", "x * 19 / 100", "x - x / 1.19")),
    *((words, "x // 3") for words in ("Number of full boxes", "Round it down")), ("Largest of 3", "max(x, fee)"),
    *(("Add VAT", formula) for formula in ("x * 1.19", "x * fee")), ("Deduct the deposit", "x + -2 * fee"),
    ("Absolute difference", "abs(x - fee)"), ("Rounded half even", "round(x, 2, half_even)"), ("100%", "x / fee"),
    ("Price of a double room", "x + fee"), ("Second half of the year", "x * 3"), ("Difference of x and fee", "fee - x"),
    ("Average of both", "(x + fee) / 2"), ("Negate x", "0 - x"), ("Square root of x", "x ^ 0.5"), ("Mean", "x * 0.5"),
    ("Add 5 dollars", "x + 5"), ("Add them up", "x + fee * 2"), ("The product", "x * x"), ("Average price", "x + fee"),
    ("The larger of the two", "max(x, fee)"), ("Take the absolute value", "abs(x)"), ("Sum of both", "x + fee"),
])  # fmt: skip
def test_words_are_held_against_what_a_formula_does(words: str, formula: str) -> None:
    """However it is written: the same effect is the same operation."""
    for sentence in (words, f"{words}."):
        assert Step("t", formula, instruction=sentence).instruction == sentence


@all_rows("words, formula, said", [
    *(("Sum of xs", formula, "Sum") for formula in ("max of xs", "count of xs")), ("The largest", "max of xs", None),
    ("The smallest of xs", "max of xs", "smallest"), ("Average of xs", "sum of xs", "Average"),
    ("Average of xs", "(sum of xs) / 3", None), ("Cap at 5", "min(sum of xs, 5)", None),
    ("5% of it", "xs[0] * 5%", None),
])  # fmt: skip
def test_words_are_held_against_aggregates_and_choices(words: str, formula: str, said: str | None) -> None:
    """Another aggregate than the words name is refused; what stands in a choice or a row may be what they say."""
    text = f'inputs: xs: list of number, n\nt = {formula}  "{words}"'
    if said is None:
        Procedure.parse(text)
    else:
        with pytest.raises(ProcedureError, match=f"line 2: .*{said}"):
            Procedure.parse(text)


@pytest.mark.parametrize(
    "words", ["If x > 3, add one", "Repeat 3 times", "For each item", "Add one ~~never~~", "Halve it for children"]
)
def test_words_beside_an_expression_are_held_to_the_same_wherever_a_step_comes_from(words: str, tmp_path: Path) -> None:
    """In YAML, JSON and Python an instruction beside an expression describes it; alone it may say what it likes."""
    with pytest.raises(UnclearWords):
        Step("t", "x + 1", instruction=words)
    assert Step("t", instruction=words).instruction == words
    step = {"id": "t", "instruction": words, "expression": "x + 1"}
    file = tmp_path / "one.yaml"
    file.write_text(json.dumps({"inputs": ["x"], "steps": [step]}), encoding="utf-8")
    with pytest.raises(ProcedureError, match="t") as refused:
        Procedure.load(file)
    assert refused.value.line == 1


@all_rows("formula", ["x * 1.000", "x + 25.000.000", "max(x, 100.000)"])
def test_points_that_may_group_are_refused_wherever_a_formula_stands(formula: str, tmp_path: Path) -> None:
    """In Python, in YAML and in a relation of a check, as in the text of a procedure."""
    with pytest.raises(ExpressionError, match="may group thousands"):
        Step("t", formula)
    with pytest.raises(ExpressionError, match="may group thousands"):
        Holds(f"t == {formula}")
    file = tmp_path / "one.yaml"
    file.write_text(json.dumps({"inputs": ["x"], "steps": [{"id": "t", "expression": formula}]}), "utf-8")
    with pytest.raises(ProcedureError, match="may group thousands"):
        Procedure.load(file)


@pytest.mark.parametrize(
    "words",
    [
        "If the customer is a member, answer yes, otherwise no.",
        "What is the customer's country?",
        "Name the city of the letter.",
        "Repeat the customer's name.",
    ],
)
def test_a_question_of_its_own_may_hold_a_condition(words: str) -> None:
    """Words alone are put to the model, which can answer them; they steer no other step."""
    assert Procedure.parse(f't = "{words}"').steps[0].instruction == words


def test_p06_many_inputs_are_read_in_one_pass() -> None:
    """Thousands of names are declared, given and looked up without comparing each with each."""
    names = [f"v{number}" for number in range(15_000)]
    text = f"inputs: {', '.join(names[:5_000])}\nt = v0 + 1"
    assert len(Procedure.parse(text).inputs) == 5_000
    procedure = Procedure([Step("t", "v0 + 1")], inputs=names)
    assert len(procedure.accept_inputs(dict.fromkeys(names, 1))) == 15_000
    with pytest.raises(ProcedureError, match="too long"):
        Procedure.parse(f"inputs: {', '.join(names)}\nt = v0 + 1")


def test_p07_printing_shows_what_text_cannot_hold() -> None:
    """Checks print behind their step and read back; what text cannot hold is shown, and its text is refused."""
    checked = Procedure([Step("t", "x + 1", checks=[Range(1, 20)])], inputs=["x"])
    assert "t = x + 1  check: range(least=1, most=20)" in str(checked)
    assert Procedure.parse(str(checked)) == checked
    steps = [Step("u", instruction="Read it.", reads=["x"], with_next=True), Step("v", "x + 1", show_work=False)]
    shown = str(Procedure(steps, inputs=["x"]))
    assert "(with_next true: text cannot hold it, YAML can)" in shown
    with pytest.raises(ProcedureError, match="opens no block"):
        Procedure.parse(shown)


def test_p08_a_function_for_an_expression_is_told_where_it_belongs() -> None:
    """A step says what it takes, and where a function can stand."""
    with pytest.raises(ProcedureError, match=r"an expression is text .* not a function: .* checks=\[function\]"):
        Step("rate", lambda score: 5, reads=["score"])  # type: ignore[arg-type]


def test_p09_a_check_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    """A file whose check does not fit its step names step and check."""
    file = tmp_path / "one.yaml"
    file.write_text("steps:\n  - id: t\n    instruction: Read.\n    checks:\n      - range: {least: 1}\n", "utf-8")
    with pytest.raises(ProcedureError, match=r"step 't': a range is for numbers.*the check Range"):
        Procedure.load(file)


class _Scalar:
    """What a scalar of numpy looks like from outside."""

    ndim = 0

    def __init__(self, value: object, kind: str) -> None:
        self._value = value
        self.dtype = type("dtype", (), {"kind": kind})

    def __int__(self) -> int:
        return int(str(self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return str(self._value)


_Scalar.__module__ = "numpy"


@all_rows(
    "kind, value, expected",
    [
        ("number", _Scalar(3, "i"), 3),
        ("number", _Scalar(3, "u"), 3),
        ("decimal(1)", _Scalar("0.1", "f"), 0.1),
        ("boolean", _Scalar(1, "b"), True),
        ("text", _Scalar("a", "U"), "a"),
    ],
)
def test_p10_scalars_of_numpy_are_the_values_that_they_are(kind: str, value: object, expected: object) -> None:
    """Numbers, truth values and texts of numpy are accepted, without numpy."""
    accepted = ValueType.parse(kind).accept(value)
    assert float(to_exact(accepted)) == expected if kind.startswith("decimal") else accepted == expected


def test_p11_inputs_come_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`NAME=@FILE` takes the text of a file, `@@` is an @ of its own, and `--inputs` a JSON object."""
    procedure, letter, others = tmp_path / "post.txt", tmp_path / "letter.txt", tmp_path / "others.json"
    procedure.write_text(
        "record Item:\n  n: number\ninputs: letter: text, sign: text, xs: list of Item\n"
        "t = sum of xs.n\nu: text = letter\nv: text = sign\n",
        "utf-8",
    )
    letter.write_text("Dear Ms Ode", encoding="utf-8")
    others.write_text('{"xs": [{"n": 12.5}, {"n": "1"}]}', encoding="utf-8")
    given = ["--input", f"letter=@{letter}", "--input", "sign=@@home", "--inputs", str(others)]
    assert main(["run", str(procedure), *given, "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["procedure"] == "post"  # as its file: it declares no name
    shown = {step["step"]: step["value"] for step in found["steps"]}
    assert shown == {"t": "13.5", "u": "Dear Ms Ode", "v": "@home"}


def test_s09_a_file_without_a_name_gives_its_own(tmp_path: Path) -> None:
    """What declares no name is called as its file; a name that is declared stays."""
    for suffix, text in {".txt": "inputs: x\nt = x + 1", ".yaml": "inputs: [x]\nsteps: [t = x + 1]"}.items():
        file = tmp_path / f"refund{suffix}"
        file.write_text(text, encoding="utf-8")
        assert Procedure.load(file).name == "refund"
        file.write_text(f"name: other\n{text}", encoding="utf-8")
        assert Procedure.load(file).name == "other"


def test_every_refusal_can_be_caught_as_a_mistake_of_the_caller() -> None:
    """All of them are usage errors, so that a caller catches one class."""
    with pytest.raises(UsageError):
        Procedure([Step("t", "x + 1", instruction="Unless it is paid")], inputs=[Input("x")])
