"""Procedures: what is refused when they are made, and their text."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepguard import Guard, Procedure, Step, audit
from stepguard.checks import Holds, Range, Requires
from stepguard.errors import ConfigError, ExpressionError, InputError, ProcedureError
from stepguard.language.expressions import RESERVED, parse_expression
from stepguard.language.value_types import ValueType
from stepguard.procedure.steps import Input, Performer, UnclearWords
from stepguard.testing import SimulatedModel, Slips

INVOICE = """
name: invoice
# The order as it came in.
inputs: x, y, rate: decimal(2, half_even)

t1 = x + y
t2: integer = t1 * 3   # three boxes
Step 3: t3 = t2 * 4
4. Take off the fee: t4 = t3 - 5
5) Name the customer's country.
- t6: decimal(2, half_up) = by code t4 / 3
**Step 7:** `t7 = t6 * rate`
answer: t4
"""

REFUSED: list[tuple[str, int, str]] = [
    ("", 1, "no step"),
    ("# nothing\n\n", 1, "no step"),
    ("inputs: x\nt1 = x + q", 2, "'q', which is no input"),
    ("inputs: x\nt1 = t2\nt2 = x", 2, "only a later step sets"),
    ("inputs: x\nt1 = x\n\nt2 = t2 + 1", 4, "its own value"),
    ("inputs: x\nt1 = x\nt2 = 1\nt1 = 2", 4, "duplicate"),
    ("inputs: x\nx = 1", 2, "already an input"),
    ("inputs: x\nx = 1\nx = 2", 2, "already an input"),
    ("t1 = 1\nanswer: t9\n", 2, "unreachable answer"),
    ("answer: t9\nt1 = 1", 1, "unreachable answer"),
    ("t1 = 1\nanswer: t1\nanswer: t1", 3, "already declared"),
    ("t1 = 1\nanswer:", 2, "nothing follows"),
    ("inputs: x, y, x\nt1 = x\nt2 = y", 1, "duplicate input"),
    ("inputs: x,, y\nt1 = x", 1, "cannot be an input"),
    ("inputs: 2x\nt1 = 1", 1, "cannot be an input"),
    ("inputs: max\nt1 = 1", 1, "word of the expression language"),
    ("inputs: x: money\nt1 = x", 1, "money needs its currency"),
    ("inputs: x\ninputs: y\nt1 = x", 2, "once"),
    ("t1 = 1\ninputs: y", 2, "before the first step"),
    ("t1 = 1\nt2: intger = t1", 2, "unknown type"),
    ("t1 = 1\nt2: decimal = t1", 2, "places"),
    ("t1 = 1\nt2: decimal(2, nearest) = t1", 2, "rounding mode"),
    ("t1 = 1\nt2: float = t1", 2, "unknown type"),
    ("t1 = 1\nt2: money = t1", 2, "money needs its currency"),
    ("t1 = 1\nt2: boolean = t1 + 1", 2, "no boolean"),
    ("t1 = 1\nt2: integer = t1 > 1", 2, "no integer"),
    ("t1 = 1\n\nt2 = 2(t1)", 3, "multiplication"),
    ("t1 = 1\nt2 = t1 +", 2, "missing"),
    ("t1 = 1\nt2 = ", 2, "nothing follows"),
    ("t1 = 1\nt2 := t1", 2, "write ="),
    ("t1 = 1\nt2 = __import__('os')", 2, "not"),
    ("t1 = 1\nmin = t1", 2, "word of the expression language"),
    ("t1 = 1\nround = t1", 2, "word of the expression language"),
    ("t1 = 1\nsome words", 2, "neither a formula"),
    ("2. t1 = 1\n1. t2 = 2", 2, "must increase"),
    ("1. t1 = 1\n1. t2 = 2", 2, "must increase"),
    ('t1 = 1\n"not closed: t2 = 1', 2, "not closed"),
    ("t1 = 1\nt2 = " + "1+" * 9000 + "1", 2, "too long"),
    ("t1 = 1\n" + "a" * 70 + " = 1", 2, "at most 64"),
    ("t1 = 1\r\nt2 = q\r\n", 2, "'q'"),
    ("t1 = 1\x0c\u2028\nt2 = q", 2, "'q'"),
    ("inputs: x, y,\nt1 = x", 1, "leave out the comma"),
    ("name: a\nt1 = 1\nname: b", 3, "already has the name 'a'"),
    ("inputs: x\n1. t1 == x", 2, "write = for =="),
]


@pytest.mark.parametrize(("text", "line", "message"), REFUSED, ids=lambda each: repr(each)[:40])
def test_a_wrong_procedure_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    """What cannot be right is refused when it is read, and the error names the line."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(text)
    assert refused.value.line == line
    assert message in refused.value.message
    assert str(refused.value).startswith(f"line {line}: ")


@pytest.mark.parametrize(
    "line",
    [
        "## Step 2: total = gross + 5",
        "### total = gross + 5",
        "## **Step 2:** `total = gross + 5`",
        "## 2. Name the customer's country.",
        "## Then total = gross + 5",
        "## answer: gross",
        "##inputs: rate",
    ],
)
def test_a_heading_does_not_swallow_a_step(line: str) -> None:
    """A heading of two or more signs that holds a step or a declaration is refused, and not taken for a comment."""
    with pytest.raises(ProcedureError, match="would be left out") as refused:
        Procedure.parse(f"inputs: net\nStep 1: gross = net * 2\n{line}")
    assert refused.value.line == 3


@pytest.mark.parametrize(
    "line", ["# Step 2: total = gross + 5", "## Step 2", "## The discount", "######", "## Inputs:"]
)
def test_a_comment_or_a_heading_of_words_is_skipped(line: str) -> None:
    """One sign makes a comment of anything; a heading without a step says nothing that is to be done."""
    text = "inputs: net\ngross = net * 2\ntotal = gross + 5"
    assert Procedure.parse(text.replace("total", f"{line}\ntotal")) == Procedure.parse(text)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("2. Then total = gross + 5", "`Work it out: total = gross + 5`"),
        ("2. Let total = gross + 5, then stop.", "`Work it out: total = gross + 5`"),
        ("2. Then total = gross + 5 and write it down", "`Work it out: total = gross + 5`"),
        ("2. Then total: decimal(2) = gross * 2", "`Work it out: total: decimal(2) = gross * 2`"),
        ("2. total \u2190 gross", "`Work it out: total = gross`"),
        ("2. total \uff1d gross", "`Work it out: total = gross`"),
        ("2. $total = gross + 5$", "`Work it out: total = gross + 5`"),
        ("Then total = gross + 5", "`Work it out: total = gross + 5`"),
        ("2. gross + 5.", "`result = gross + 5`"),
        ("2. `gross`", "`result = gross`"),
        ("2. 3 * 4", "`result = 3 * 4`"),
        ("2. gross > 5", "`ok = gross > 5`"),
    ],
)
def test_a_formula_among_words_is_refused(line: str, hint: str) -> None:
    """Words that hold a formula over known values would go unchecked; the error says how to write it."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(f"inputs: net\n1. gross = net * 2\n{line}")
    assert refused.value.line == 3
    assert hint in refused.value.message


@pytest.mark.parametrize(
    "words",
    [
        "Name the customer's country.",
        "Is net > gross?",
        "Multiply net by two",
        "Find the slope of y = 2 * z + 1.",
        "Take pi = 3.14 for the area",
        "Take g = 9.81 m/s^2",
        "Use a discount of r = 5% of the price",
        "Say whether the colour = red",
        "Double-check the read-out",
        "Pros / cons",
        "Gross",
    ],
)
def test_words_without_a_formula_are_an_instruction(words: str) -> None:
    """Signs of arithmetic among words, and formulas over what is no value of the procedure, are words."""
    procedure = Procedure.parse(f"inputs: net\n1. gross = net * 2\n2. {words}")
    assert procedure.steps[1] == Step("step2", instruction=words)
    assert Procedure.parse(str(procedure)) == procedure


@pytest.mark.parametrize("given_", [None, b"t1 = 5", Path("invoice.txt"), ["t1 = 5"]])
def test_only_text_is_parsed(given_: object) -> None:
    """Anything else is refused with what to write."""
    with pytest.raises(ProcedureError, match=r"Procedure\.load takes the path"):
        Procedure.parse(given_)  # type: ignore[arg-type]


def test_the_notation() -> None:
    """Labels, instructions, types, comments and who performs a step are read as the notation says."""
    procedure = Procedure.parse(INVOICE)
    assert procedure == Procedure(
        [
            Step("t1", "x + y"),
            Step("t2", "t1 * 3", type="integer"),
            Step("t3", "t2 * 4"),
            Step("t4", "t3 - 5", instruction="Take off the fee"),
            Step("step5", instruction="Name the customer's country."),
            Step("t6", "t4 / 3", type="decimal(2)", performer="code"),
            Step("t7", "t6 * rate"),
        ],
        inputs=["x", "y", Input("rate", "decimal(2, half_even)")],
        answer="t4",
        name="invoice",
    )
    assert Procedure.parse(str(procedure)) == procedure


@pytest.mark.parametrize("change", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r"),
    lambda text: "\ufeff" + text,
    lambda text: "\ufeff" + text.lstrip(),
    lambda text: f"```text\n{text}\n```\n",
    lambda text: "\n".join(f"   {line}\t" for line in text.split("\n")),
])  # fmt: skip
def test_line_ends_and_frames_do_not_matter(change: object) -> None:
    """Windows and old line ends, a byte order mark, a code fence and indentation change nothing."""
    assert callable(change)
    assert Procedure.parse(change(INVOICE)) == Procedure.parse(INVOICE)


ONE_STEP: list[tuple[str, Step]] = [
    ("0. t = 1", Step("t", "1")),
    ("12.t = 1", Step("t", "1")),
    ("* t = 1", Step("t", "1")),
    ("• t = 1", Step("t", "1")),
    ("Subtotal: t = 1", Step("t", "1", instruction="Subtotal")),
    ("Mix 3:4, then: note: t: decimal(1) = 1", Step("t", "1", instruction="Mix 3:4, then: note", type="decimal(1)")),
    ('"x = 1: y": t = 1', Step("t", "1", instruction="x = 1: y")),
    ("7. Read the page.", Step("step7", instruction="Read the page.")),
    ("Add up: `t = 1`", Step("t", "1", instruction="Add up")),
    ("t = 1 < 2", Step("t", "1 < 2", type="boolean")),
    ("t: Integer = 1", Step("t", "1", type="integer")),
    ('t: integer = "How many?"', Step("t", instruction="How many?", type="integer")),
    ("answer: integer = 3", Step("answer", "3", type="integer")),
    ('name: text = "Who?"', Step("name", instruction="Who?")),
    ("inputs = 3", Step("inputs", "3")),
    ("step = 5", Step("step", "5")),
    ("t = 1 # one", Step("t", "1")),
    ("1. \u8ba1\u7b97\uff1at = 1", Step("t", "1", instruction="\u8ba1\u7b97")),
    ("t\uff1ainteger = 1", Step("t", "1", type="integer")),
    ("Step 1\uff1aRead the page.", Step("step1", instruction="Read the page.")),
    ("t: decimal (2) = 1", Step("t", "1", type="decimal(2)")),
    ("Step 1.1: t = 1", Step("t", "1", instruction="Step 1.1")),
]


@pytest.mark.parametrize(("text", "step"), ONE_STEP, ids=lambda each: repr(each)[:40])
def test_one_line_is_one_step(text: str, step: Step) -> None:
    """Each form of a line is read as the step it looks like."""
    procedure = Procedure.parse(text)
    assert list(procedure.steps) == [step]
    assert Procedure.parse(str(procedure)) == procedure


@pytest.mark.parametrize(
    "name", ["E = mc2", "integer = x", 'say "so"', '"', "name: x", "a: b", "# 1", "naïve ✓", "a\x1fb"]
)
def test_any_line_may_be_a_name(name: str) -> None:
    """A procedure's name survives printing, whatever it looks like."""
    procedure = Procedure([Step("t", "1")], name=name)
    assert Procedure.parse(str(procedure)).name == name


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\rb", "a\u2028b"])
def test_a_name_is_one_line(name: str) -> None:
    """A name that is empty or longer than a line is refused."""
    with pytest.raises(ProcedureError):
        Procedure([Step("t", "1")], name=name)


def test_a_long_sum_survives_printing() -> None:
    """Five thousand terms print to text that is read as the same procedure."""
    procedure = Procedure([Step("t", "+".join(["1"] * 5000))])
    assert Procedure.parse(str(procedure)) == procedure


identifiers = st.text(string.ascii_letters + "_", min_size=1, max_size=6).filter(
    lambda name: name not in RESERVED
) | st.sampled_from(
    ["name", "inputs", "input", "answer", "Answer", "step", "step1", "by", "code", "lambda", "E", "integer", "half_up"]
)
wordy = st.lists(
    st.sampled_from([
        *("take", "Step 3:", "12.", "answer:", "name: x", "t = 1", ":", "=", '"', "'", "\\", "#", " # ", "-", "*", "`"),
        *("\n", "\r\n", "\u2028", "\x0c", "é", "漢", "\ufeff", "{", "inputs: a", "x: integer = ", "\ud800"),
        *("(reads x)", " ", "3:4", "```", "if ", "~~", "\u200b"),
    ]),
    min_size=1,
    max_size=6,
).map("".join)  # fmt: skip
instructions = (wordy | st.text(max_size=12)).map(str.strip).filter(bool)
types = st.sampled_from([
    *("number", "integer", "decimal(2, half_up)", "decimal(0, floor)", "number(within 0.01)", "number(within 2%)"),
    *("percent", "percent(1, half_up)", "money(EUR, 2, half_up)", "money(EUR, 0, up)"),
])  # fmt: skip
options = st.sampled_from(["one_of(yes, no)", 'one_of("a, b", "c = (1)", d e)'])


@st.composite
def procedures(draw: st.DrawFn) -> Procedure:
    """Any procedure that text can hold."""
    names = draw(st.lists(identifiers, min_size=2, max_size=8, unique=True))
    cut = draw(st.integers(0, len(names) - 1))
    inputs = [Input(name, draw(types | options | st.just("boolean") | st.just("text"))) for name in names[:cut]]
    steps: list[Step] = []
    known = names[:cut]
    numbers = [each.name for each in inputs if each.type.numeric]
    for name in names[cut:]:
        operand = st.sampled_from([*numbers, "1", "2.5"])
        if draw(st.integers(0, 2)) == 0:
            reads = draw(st.lists(st.sampled_from(known), unique=True, max_size=2)) if known else []
            kind = draw(types | options | st.just("text") | st.just("boolean"))
            steps.append(Step(name, instruction=draw(instructions), type=kind, reads=reads))
        else:
            operator = draw(st.sampled_from(["+", "-", "*", "/", "//", "%", "^", "<", "=="]))
            text = f"{draw(operand)} {operator} -({draw(operand)})"
            kind = "boolean" if operator in ("<", "==") else draw(types)
            performer: Performer = "code" if draw(st.booleans()) else "model"
            try:
                step = Step(name, text, instruction=draw(st.none() | instructions), type=kind, performer=performer)
            except UnclearWords:
                step = Step(name, text, type=kind, performer=performer)
            steps.append(step)
        known = [*known, name]
        numbers += [name] if steps[-1].type.numeric else []
    title = draw(st.just("procedure") | instructions.filter(lambda text: len(text.splitlines()) == 1))
    return Procedure(steps, inputs=inputs, answer=draw(st.sampled_from(known)), name=title)


@given(procedures())
@settings(max_examples=200, deadline=None)
def test_printing_and_parsing_give_an_equal_procedure(procedure: Procedure) -> None:
    """Whatever a procedure's words look like, its text is read as an equal procedure."""
    assert Procedure.parse(str(procedure)) == procedure


@given(st.lists(wordy | st.text(max_size=10), max_size=5).map("\n".join))
@settings(max_examples=250, deadline=None)
def test_any_text_is_a_procedure_or_is_refused(text: str) -> None:
    """Arbitrary text gives a procedure that prints and parses to itself, or a ProcedureError with a line."""
    try:
        procedure = Procedure.parse(text)
    except ProcedureError as error:
        line = error.line
    else:
        assert Procedure.parse(str(procedure)) == procedure
        return
    assert line is not None
    assert 1 <= line <= text.count("\n") + text.count("\r") + 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "max", "expression": "1"},
        {"id": "2t", "expression": "1"},
        {"id": "é", "expression": "1"},
        {"id": "t" * 65, "expression": "1"},
        {"id": "t"},
        {"id": "t", "instruction": "  "},
        {"id": "t", "instruction": "Read.", "performer": "code"},
        {"id": "t", "instruction": "Read.", "show_work": True},
        {"id": "t", "instruction": "Read.", "reads": ["2x"]},
        {"id": "t", "expression": "x", "reads": ["y"]},
        {"id": "t", "expression": "x", "performer": "someone"},
        {"id": "t", "expression": "1 < 2", "type": "number"},
        {"id": "t", "expression": "1 + 2", "type": "text"},
        {"id": "t", "instruction": "Read.", "reads": "letter"},
        {"id": "t", "expression": "x", "reads": "x"},
        {"id": "t", "instruction": "Read.", "checks": Range(1, 2)},
        {"id": "t", "instruction": "Read.", "checks": [Range]},
    ],
)
def test_a_step_that_cannot_be_right_is_refused(arguments: dict[str, object]) -> None:
    """A step is checked when it is made."""
    with pytest.raises(ProcedureError):
        Step(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "expression",
    ["1 + (x > 2)", "-(x > 2)", "min(x > 2, 3)", "max((x > 2))", "(x > 2) == (x > 3)", "(x > 2)^2", "2^(x > 2)"],
)
def test_an_expression_that_computes_with_a_comparison_is_refused(expression: str) -> None:
    """A truth value is no number, so that no reply could ever be right; a comparison in brackets is one."""
    with pytest.raises(ProcedureError, match=r"'x > [23]', a truth value, which is no number: join those"):
        Procedure.parse(f"inputs: x\nt = {expression}")
    assert Step("t", "((x > 2))").type.kind == "boolean"


@pytest.mark.parametrize("check", [lambda claim: None, lambda: None, lambda step, values, claim, more: None])
def test_a_check_that_cannot_be_called_is_refused(check: Callable[..., Any]) -> None:
    """Its parameters are compared with what it will be given, before any model is asked."""
    with pytest.raises(ProcedureError, match=r"cannot be called as check\(step, values, claim\)"):
        Step("t", instruction="Name it.", checks=[check])
    for fitting in (lambda *given: None, lambda step, values, claim, more=1: None):
        Step("t", instruction="Name it.", checks=[fitting])


def test_a_decorated_check_is_called_as_its_decorator_wants() -> None:
    """What the decorator hands on to the function that it wraps is its own affair."""

    def known(stock: set[str], step: Step, values: object, claim: object) -> bool:
        return True

    @wraps(known)
    def check(step: Step, values: object, claim: object) -> bool:
        return known({"bolt"}, step, values, claim)

    assert Step("t", instruction="Name it.", checks=[check]).checks == (check,)


def test_a_step_of_wrong_type_or_expression_is_refused() -> None:
    """An unknown type is a configuration error, text outside the language an expression error."""
    with pytest.raises(ConfigError):
        Step("t", "1", type="money")
    with pytest.raises(ConfigError, match="written as text"):
        Step("t", "1", type=int)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError):
        Step("t", "2x")


def test_what_a_step_reads_follows_from_its_expression() -> None:
    """A step reads the variables of its expression, in order, and may be given as a parsed expression."""
    step = Step("t", parse_expression("b * a + b"))
    assert step.reads == ("b", "a")
    assert step.formula == "b * a + b"
    assert step.checkable
    assert not Step("t", instruction="Read.").checkable


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ([], {}),
        ([Step("t", "q")], {}),
        ([Step("t", "t")], {}),
        ([Step("t", "u"), Step("u", "1")], {}),
        ([Step("t", "1"), Step("t", "2")], {}),
        ([Step("t", "1")], {"inputs": ["t"]}),
        ([Step("t", "1")], {"inputs": ["x", "x"]}),
        ([Step("t", "1")], {"inputs": ["floor"]}),
        ([Step("t", "1")], {"answer": "u"}),
        ([Step("t", "x + y")], {"inputs": "xy"}),
        ([Step("t", "x")], {"inputs": {"x": "decimal(2)"}}),
        (Step("t", "1"), {}),
        (["t = 1"], {}),
        ("t = 1", {}),
    ],
)
def test_a_procedure_that_cannot_be_right_is_refused(steps: Any, options: dict[str, Any]) -> None:
    """A procedure is checked as a whole when it is made."""
    with pytest.raises(ProcedureError):
        Procedure(steps, **options)


WORDED = Step("a", instruction="Read it.")


@pytest.mark.parametrize(
    ("source", "step", "message"),
    [
        (WORDED, Step("t", "a * 2"), 'declare `a: number = "..."`'),
        (WORDED, Step("t", "a"), "`t: text` where it is not"),
        (WORDED, Step("t", "a == 3"), "compares numbers only"),
        (Step("a", "1 > 2"), Step("t", "a + 1"), "which is boolean"),
        (Step("a", "1 > 2"), Step("t", "a"), "declare `t: boolean`"),
        (Input("a", "one_of(low, high)"), Step("t", "-a"), "which is one_of(low, high)"),
        (Input("a", "one_of(low, high)"), Step("t", "a", type="one_of(x, y)"), "which is one_of(low, high)"),
        (Input("a", "text"), Step("t", "max(a, 1)", performer="code"), "declare `a: number`"),
        (Input("a", "text"), Step("t", "a != a"), "which is text"),
        (Input("a"), Step("t", "a", type="text"), "declare `t: number`"),
        (Input("a"), Step("t", "a", type="boolean"), "declare `t: number`"),
    ],
)
def test_a_step_that_could_never_have_a_value_is_refused(source: Input | Step, step: Step, message: str) -> None:
    """An expression over values that it cannot compute with is refused when a procedure, or a lazy step, is made."""
    steps = [source if isinstance(source, Step) else Step("b", "1"), step, Step("c", "3")]
    inputs = [] if isinstance(source, Step) else [source]
    with pytest.raises(ProcedureError) as refused:
        Procedure(steps, inputs=inputs)
    assert refused.value.step == "t"
    assert message in refused.value.message
    lazy = Procedure.lazy(steps.__getitem__, 3, look_back=1, inputs=inputs)
    assert lazy.steps[0] == steps[0]
    with pytest.raises(ProcedureError) as refused:
        list(lazy.steps)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("source", "target"),
    [("number", "decimal(2)"), ("percent", "integer"), ("text", "one_of(a, b)"), ("one_of(a, b)", "text"),
     ("one_of(a, b)", "one_of(b, c)"), ("boolean", "boolean")],
)  # fmt: skip
def test_a_copy_may_have_another_type_that_can_hold_it(source: str, target: str) -> None:
    """Whether a copied value fits is only known from the value, as long as any could."""
    procedure = Procedure([Step("t", "a", type=target)], inputs=[Input("a", source)])
    assert Procedure.parse(str(procedure)) == procedure


def test_the_line_of_a_step_over_words_is_named() -> None:
    """The error names the line that computes with the words, not the last one."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse("1. Read the price.\n2. total = step1 * 2\n3. t3 = 4")
    assert refused.value.line == 2


def test_values_live_until_they_are_last_read() -> None:
    """A value is live while a step to come, or the answer, can read it."""
    procedure = Procedure([Step("a", "x"), Step("b", "a"), Step("c", "b")], inputs=["x"], answer="a")
    assert [procedure.live("x", index) for index in range(4)] == [True, False, False, False]
    assert [procedure.live("a", index) for index in range(4)] == [True, True, True, True]
    assert [procedure.live("b", index) for index in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("given_", [{}, {"x": 1, "q": 2}, {"x": True}, {"x": "2,34"}, {"x": None}])
def test_inputs_that_do_not_fit_are_refused(given_: dict[str, object]) -> None:
    """Missing, unknown and unreadable inputs are named before any model is asked."""
    with pytest.raises(InputError) as refused:
        Procedure([Step("t", "x")], inputs=["x"]).accept_inputs(given_)
    assert refused.value.name in ("x", "q")


def test_inputs_are_a_mapping() -> None:
    """Inputs that name nothing are refused as such, and not letter by letter."""
    with pytest.raises(InputError, match="a mapping from name to value, not a str"):
        Procedure([Step("t", "x")], inputs=["x"]).accept_inputs('{"x": 1}')  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "use",
    [
        lambda given: Guard(lambda _: "").run(given),
        lambda given: Guard(lambda _: "").start(given),
        lambda given: Guard(lambda _: "").forecast(given),
        lambda given: audit(given, {}, "t = 1"),
    ],
)
def test_what_takes_a_procedure_says_how_text_becomes_one(use: Callable[[Any], object]) -> None:
    """The text of a procedure is refused where a procedure is needed, with the way to make one."""
    with pytest.raises(ConfigError, match=r"Procedure\.parse"):
        use("t = 1")


def test_a_file_is_loaded(tmp_path: Path) -> None:
    """A text file with a byte order mark and Windows line ends is read; another encoding is refused."""
    path = tmp_path / "invoice.txt"
    path.write_bytes(INVOICE.replace("\n", "\r\n").encode("utf-8-sig"))
    assert Procedure.load(path) == Procedure.parse(INVOICE)
    path.write_bytes("1. Naïve: t = 1".encode("latin-1"))
    with pytest.raises(ProcedureError, match="UTF-8"):
        Procedure.load(path)
    with pytest.raises(FileNotFoundError):
        Procedure.load(tmp_path / "invoice.yaml")


def counting(made: list[int]) -> Procedure:
    """A million additions, noting which steps are made."""

    def step_at(index: int) -> Step:
        made.append(index)
        return Step(f"t{index}", "x + 1" if index == 0 else f"t{index - 1} + x")

    return Procedure.lazy(step_at, 1_000_000, look_back=1, inputs=["x"])


def test_a_lazy_procedure_makes_only_the_steps_it_is_asked_for() -> None:
    """A million steps are made when they are reached, not before."""
    made: list[int] = []
    procedure = counting(made)
    assert len(procedure) == 1_000_000
    assert procedure.answer == "t999999"
    assert procedure.steps[500_000].formula == "t499999 + x"
    assert [step.id for step in procedure.steps[10:13]] == ["t10", "t11", "t12"]
    assert procedure.steps[-1].id == "t999999"
    assert len(made) < 20
    steps: Iterator[Step] = iter(procedure.steps)
    assert next(steps).id == "t0"
    with pytest.raises(IndexError):
        procedure.steps[1_000_000]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("t2 + 1", "look_back"),
        ("t6 + 1", "look_back"),
        ("t5 + 1", "its own value"),
        ("nowhere + 1", "look_back"),
    ],
)
def test_the_look_back_is_checked_when_a_step_is_reached(expression: str, message: str) -> None:
    """A step of a lazy procedure that reads too far back, ahead or itself is refused when it is made."""
    procedure = Procedure.lazy(
        lambda index: Step(f"t{index}", expression if index == 5 else "x"), 100, look_back=2, inputs=["x"]
    )
    assert procedure.steps[4].id == "t4"
    with pytest.raises(ProcedureError, match=message) as refused:
        procedure.steps[5]
    assert refused.value.step == "t5"


def test_a_lazy_step_is_not_named_like_an_input() -> None:
    """An id that is an input is refused when the step is reached."""
    procedure = Procedure.lazy(
        lambda index: Step("x" if index == 5 else f"t{index}", "x * 2" if index != 5 else "1"),
        10,
        look_back=2,
        inputs=["x"],
    )
    with pytest.raises(ProcedureError, match="duplicate"):
        procedure.steps[5]


@pytest.mark.parametrize(("length", "look_back"), [(0, 1), (1, 0), (-1, 1)])
def test_a_lazy_procedure_needs_a_length_and_a_look_back(length: int, look_back: int) -> None:
    """A length or look-back below one is refused."""
    with pytest.raises(ProcedureError):
        Procedure.lazy(lambda index: Step(f"t{index}", "1"), length, look_back=look_back)


# Currencies

EUR_AND_USD = [Input("e", "money(EUR)"), Input("u", "money(USD)"), Input("rate")]


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("u + e", None),
        ("u - e", "money(USD)"),
        ("e", "money(USD)"),
        ("u > e", None),
        ("max(u, 3, e)", None),
        ("round(-e)", "money(USD)"),
        ("(u + e) * rate", None),
        ("1 + (u - 5) / (e + u)", None),
        ("rate * abs(u - e) > 3", None),
    ],
)
def test_currencies_are_not_mixed(expression: str, type: str | None) -> None:
    """A sum or comparison of amounts in two currencies, or an amount taken for one in another, is no procedure."""
    with pytest.raises(ProcedureError, match=r"step 't' mixes currencies: .* in (USD|EUR)\. Convert one by"):
        Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    with pytest.raises(ProcedureError, match="mixes currencies"):
        Procedure.lazy(lambda at: Step("t", expression, type=type), 1, look_back=1, inputs=EUR_AND_USD)


@pytest.mark.parametrize("check", [Holds("t == e"), Holds("t >= 0", "t - e <= 5"), Requires("u > e")])
def test_relations_of_a_check_do_not_mix_currencies(check: Holds | Requires) -> None:
    """An amount in one currency proves none in another; where a product converts it, it may."""

    def made(check: Holds | Requires) -> Procedure:
        step = Step("t", instruction="The total.", type="money(USD)", reads=["e", "u", "rate"], checks=[check])
        return Procedure([step], inputs=EUR_AND_USD)

    with pytest.raises(ProcedureError, match=r"step 't' mixes currencies: .* is in EUR\. Convert one by"):
        made(check)
    for fitting in (Holds("t == e * rate"), Holds("t >= u", "t > 5"), Requires("u > e * rate")):
        assert made(fitting).steps[0].checks == (fitting,)


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("u * rate", "money(EUR)"),
        ("u * rate + e", "money(EUR)"),
        ("u / rate", "money(EUR)"),
        ("u / e", "percent(1)"),
        ("u + u / e", "money(USD)"),
        ("u + 5", "money(USD)"),
        ("u", "number"),
        ("u > 5", None),
        ("e + 1", None),
        ("5 * rate", "money(JPY)"),
    ],
)
def test_a_product_converts_an_amount(expression: str, type: str | None) -> None:
    """What is multiplied or divided is in no currency until a type says so, nor is a number without one."""
    made = Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    given = {"e": "1", "u": "20", "rate": "0.5"}
    assert Guard(SimulatedModel(slips=Slips.none())).run(made, given).verified


@pytest.mark.parametrize("check", [Holds("t >= note"), Requires("note > 0"), Requires("ok == 1"), Holds("t > -score")])
def test_a_relation_over_what_is_no_number_is_refused(check: Holds | Requires) -> None:
    """No claim could ever pass it, so that nothing is asked; the message says how to declare a number."""
    inputs = [Input("note", "text"), Input("ok", "boolean")]
    words = [Step("score", instruction="Rate it from 1 to 10.")]
    reads = ["note", "ok", "score"]
    with pytest.raises(
        ProcedureError, match=r"compares numbers only, and reads '(note|ok|score)'.*: declare `(\1): number"
    ):
        Procedure([*words, Step("t", instruction="Count.", type="number", reads=reads, checks=[check])], inputs=inputs)


@pytest.mark.parametrize(
    "written",
    [
        "Step('t', 'x + 1')",
        "Step('t', 'x / 3', type='decimal(2, half_up)', performer='code', show_work=False)",
        "Step('t', 'x > 3')",
        "Step('t', instruction='Name it.')",
        "Step('t', instruction=\"Rate the customer's tone:\", type='integer', reads=['x'], checks=[Holds('t > 0')])",
        "Step('t', 'x', instruction='Copy', with_next=True)",
        "Input('x')",
        "Input('x', 'one_of(yes, no)')",
        "ValueType.parse('money(USD, 2, half_up)')",
    ],
)
def test_what_a_prompt_shows_can_be_typed_again(written: str) -> None:
    """Steps, inputs and types are shown as they are written, and nothing that goes without saying."""
    known = {"Step": Step, "Input": Input, "ValueType": ValueType, "Holds": Holds}
    assert repr(eval(written, known)) == written


def test_procedures_and_guards_are_shown_in_a_line() -> None:
    """What they are and how much is in them; the steps of a lazy procedure are not made for it."""
    made = Procedure([Step("t", "x + y")], inputs=["x", "y"], name="sum")
    assert repr(made) == "<Procedure 'sum': 1 step from x, y to t>"
    lazy = Procedure.lazy(lambda at: Step(f"t{at}", "1"), 10**9, look_back=1)
    assert repr(lazy) == "<Procedure 'procedure': 1000000000 steps to t999999999>"
    assert repr(Guard(SimulatedModel())) == "<Guard of simulated>"
