"""Procedures: what is refused when they are made, and their text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, Step, audit
from stepguard.errors import ConfigError, InputError, ProcedureError
from stepguard.procedure.inputs import Input

INVOICE = """
name: invoice
# The order as it came in.
inputs: x, y, rate: decimal(2, half_even)

t1 = x + y
t2: integer = t1 * 3   # three boxes
3. t3 = t2 * 4
4. t4 = t3 - 5  "Take off the fee"
5) step5 = "Name the customer's country."
t6: decimal(2, half_up) = by code t4 / 3
7. t7 = t6 * rate
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
    ("inputs: x,, y\nt1 = x", 1, "leave out the comma"),
    ("inputs: 2x\nt1 = 1", 1, "inputs are declared as"),
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
    (
        "t1 = 1\ncheck: range(1, 2)",
        2,
        "a check stands behind its step, in the same line: `t = x + 1  check: range(1, 2)`",
    ),
    ("t1 = 1\n  check: range(least=1); whole", 2, "a check stands behind its step"),
    ("if 1 < 2:\n  t1 = 1\n  check: whole\nt2 = 1", 3, "a check stands behind its step"),
    ("t1 = 1\ncheck: decimal(2) = t1 +", 2, "missing"),
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
    ("t1 = 1\nt2\u2028= q", 2, "not expected"),
    ("inputs: x, y,\nt1 = x", 1, "leave out the comma"),
    ("name: a\nt1 = 1\nname: b", 3, "already has the name 'a'"),
    ("inputs: x\n1. t1 == x", 2, "write = for =="),
    ("inputs: x\nt = 1\nif x > 3:\n  t = 2", 4, "choose its value in one step (`t = a if c else b`)"),
    ("inputs: xs: list of number\nt = 0\nfor each x in xs:\n  t = t + x", 4, "`sum of` what a loop sets"),
    ("inputs: a: date, b: date\ndays: integer = a - b", 2, "declare `days: duration`, or divide it by `1 days`"),
    ('inputs: a: text\nt: text = by code "Dear {a}"', 2, "'{a}' in 'Dear {a}' would stand there as it is"),
    ('inputs: a: text\nt: text = tool mail(text="Dear { a }")', 2, "let a function write the text"),
    ('inputs: a: text\nt: text = "Dear {a}" if a != "x" else "y"', 2, "braces are filled in for a person"),
    ('inputs: a: text\nt = 1\nanswer: {t, words: "Dear {a}"}', 3, "let a function write the text"),
    (
        'record R:\n  a: text\ninputs: r: R\nt: text = "Copy it." (reads r)  check: cites(r)',
        4,
        "'r' is R: give it a text",
    ),
    ("inputs: x\nt = x / 0", 2, "'x / 0' divides by 0"),
    ("inputs: a: date, b: date\nt: date = a + b", 2, "two of them have a difference, such as `due - today`"),
    ("inputs: a: date, b: date\nt: boolean = a - b > 1 month", 2, "`due <= bought + 1 month`, or count days"),
    ("inputs: a: date, b: date\nt = (a - b) / 1 year", 2, "how long months and working days are depends on the date"),
    ("inputs: born: date\nyear: integer = born.year + 1", 2, "compare dates, such as `born + 18 years <= today`"),
]


@all_rows("text, line, message", REFUSED)
def test_a_wrong_procedure_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    """What cannot be right is refused when it is read, and the error names the line."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(text)
    assert refused.value.line == line
    assert message in refused.value.message
    assert str(refused.value).startswith(f"line {line}: ")


def test_what_may_be_the_rest_of_a_unit_is_named_as_one() -> None:
    """`w / 5 kg/L` divides by 5 kg, and then by something called L."""
    pytest.importorskip("pint")
    with pytest.raises(ProcedureError, match="'L', which is no input and set by no step: a unit") as refused:
        Procedure.parse("inputs: w: quantity(kg)\nt: quantity(L) = w / 5 kg/L")
    assert refused.value.line == 2


SIGNED = (
    "record R:\n  p: percent\nprocedure f:\n  inputs: p: percent\n  q = p * 2\n  answer: q\n"
    "inputs: p: percent, m: money(EUR), n: integer, xs: list of number\n"
    "table band: s: number -> text\n  under 10: low\n  at least 10: high\n"
    "table share: s: percent -> text\n  under 10%: low\n  at least 10%: high"
)


@all_rows("line, message", [
    ("t: boolean = p > 10", "'p' is a percentage, and 10 is 1000%: write 10%"),
    ("t: boolean = p > 1.5 or n > 3", "1.5 is 150%"),
    ("t: boolean = p in [5%, 10]", "write 10%"),
    ("t: percent = min(p, 5)", "write 5%"),
    ("t = 100 - p", "write 100%"),
    ("t = m + p", "'m' is money(EUR, 2, half_up): of what? write `m + m * p`"),
    ("t = p + n", "of what? write `n + n * p`"),
    ("t: boolean = m > p", "of what? write `m * p`"),
    ("t: money(EUR) = m * p / 100", "leave `/ 100` out, or write it in front of 'p'"),
    ("t: list of percent = [5%, 10]", "10 is 1000%"),
    ("t: R = {p: 5}", "5 is 500%"),
    ("t = call f(p=5)", "5 is 500%"),
    ("if p > 10:\n  t = 1\nelse:\n  t = 2", "write 10%"),
    ("t = 1 if p > 10 else 2", "write 10%"),
    ("t: boolean = m > 10%", "of what? write `m * 10%`"),
    ("t = 10% + m", "of what? write `m + m * 10%`"),
    ("t = max(n, 50%)", "of what? write `n * 50%`"),
    ("t: boolean = 15% in [15, n]", "write 15%"),
    ("t: percent = n", "declare `t: integer`"),
    ("t: money(EUR) = p", "declare `t: percent`"),
    ("t: list of percent = [n, n]", "its expression gives list of integer"),
    ("t = xs[5%]", "told by one whole number, counted from 0, and '5%' is percent"),
    ("t = xs[100%]", "'100%' is percent"),
    ("t: text = band[p]", "such as `table band: s: percent -> ...`"),
    ("t: text = band[15%]", "the key s of the table band is number, and '15%' is percent"),
    ("t: boolean = p in band", "the key s of the table band is number"),
    ("t: text = share[15]", "the key s of the table share is a percentage, and 15 is 1500%: write 15%"),
    ("t: text = share[n]", "the key s of the table share is percent, and 'n' is integer"),
])  # fmt: skip
def test_a_percentage_has_its_sign_and_is_one_of_something(line: str, message: str) -> None:
    """A bare number above 1 beside a percentage, and an amount that one is added to, can be meant in two ways."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(f"{SIGNED}\n{line}")
    assert message in refused.value.message
    assert refused.value.line == 14


@all_rows("line", [
    *("t: boolean = p > 10%", "t: boolean = p > 300% and p < 500%", "t: percent = min(p, 300%)", "t = m * (1 - p)"),
    *("t: boolean = not (p > 200%)", "t = 1 if p >= 200% else 2", "t: boolean = p in [300%, 5%]", "t = n / 100 * p"),
    *("t: text = share[p]", "t: text = share[15%]", "t: percent = n / 100", "t: text = share[n / 100]", "t = xs[n]"),
    *("if p > 200%:\n  t = 1\nelse:\n  t = 2", "t = call f(p=200%)", "t = p * 100", "t: boolean = p <= 1 and p > 0.5"),
])  # fmt: skip
def test_a_percentage_with_its_sign_prints_with_it(line: str) -> None:
    """What is read is printed so that it is read again, also above 100%."""
    procedure = Procedure.parse(f"{SIGNED}\n{line}")
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


@all_rows("change", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r"),
    lambda text: "\ufeff" + text,
    lambda text: "\ufeff" + text.lstrip(),
    lambda text: "\n".join(f"   {line}\t" for line in text.split("\n")),
])  # fmt: skip
def test_line_ends_and_frames_do_not_matter(change: object) -> None:
    """Windows and old line ends, a byte order mark, a code fence and indentation change nothing."""
    assert callable(change)
    assert Procedure.parse(change(INVOICE)) == Procedure.parse(INVOICE)


ONE_STEP: list[tuple[str, Step]] = [
    ("0. t = 1", Step("t", "1")),
    ("12.t = 1", Step("t", "1")),
    ('t = 1  "Subtotal"', Step("t", "1", instruction="Subtotal")),
    ('"x = 1: y": t = 1', Step("t", "1", instruction="x = 1: y")),
    ('7. t = "Read the page."', Step("t", instruction="Read the page.")),
    ("t = 1 < 2", Step("t", "1 < 2", type="boolean")),
    ("t: Integer = 1", Step("t", "1", type="integer")),
    ('t: integer = "How many?"', Step("t", instruction="How many?", type="integer")),
    ("answer: integer = 3", Step("answer", "3", type="integer")),
    ('name: text = "Who?"', Step("name", instruction="Who?")),
    ("inputs = 3", Step("inputs", "3")),
    ("step = 5", Step("step", "5")),
    ("t = 1 # one", Step("t", "1")),
    ("t: decimal (2) = 1", Step("t", "1", type="decimal(2)")),
]


@all_rows("text, step", ONE_STEP)
def test_one_line_is_one_step(text: str, step: Step) -> None:
    """Each form of a line is read as the step it looks like."""
    procedure = Procedure.parse(text)
    assert list(procedure.steps) == [step]
    assert Procedure.parse(str(procedure)) == procedure


@all_rows(
    "steps, options",
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


@all_rows(
    "option, given_",
    [
        (option, given_)
        for option in ("answer", "name", "tables", "records", "functions", "tools")
        for given_ in (1, 1.5, True, b"x", [1], object())
    ],
)
def test_what_is_of_another_type_is_refused_by_its_name(option: str, given_: object) -> None:
    """No option of a procedure fails with an error of Python's own."""
    options: dict[str, Any] = {option: given_}
    with pytest.raises((ProcedureError, ConfigError)) as refused:
        Procedure([Step("t1", "5")], **options)
    assert {"answer": "an expression", "name": "the name"}.get(option, option) in str(refused.value)


@all_rows("given_", [{}, {"x": 1, "q": 2}, {"x": True}, {"x": "2,34"}, {"x": None}])
def test_inputs_that_do_not_fit_are_refused(given_: dict[str, object]) -> None:
    """Missing, unknown and unreadable inputs are named before any model is asked."""
    with pytest.raises(InputError) as refused:
        Procedure([Step("t", "x")], inputs=["x"]).accept_inputs(given_)
    assert refused.value.name in ("x", "q")


def test_inputs_are_a_mapping() -> None:
    """Inputs that name nothing are refused as such, and not letter by letter."""
    with pytest.raises(InputError, match="a mapping from name to value, not a str"):
        Procedure([Step("t", "x")], inputs=["x"]).accept_inputs('{"x": 1}')  # type: ignore[arg-type]
    empty: Any
    for empty in ("", 0, []):
        with pytest.raises(InputError, match="a mapping from name to value"):
            Guard(lambda _: "").run(Procedure([Step("t", "5")]), empty)


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
    path.write_bytes("# Naïve\nt = 1".encode("latin-1"))
    with pytest.raises(ProcedureError, match="UTF-8"):
        Procedure.load(path)
    with pytest.raises(FileNotFoundError):
        Procedure.load(tmp_path / "invoice.yaml")
