"""How an audit reads tables, and what stands above, below and beside claims as structure and not as words."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard import Procedure, audit

pytestmark = pytest.mark.once

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5\nt3 = t2 * 2")
INPUTS = {"x": 6, "y": 7}
MONEY = Procedure.parse(
    "inputs: net: money(USD)\ninterest: money(USD) = net * 5 / 100\nbalance: money(USD) = net + interest"
)

Rows = Sequence[Sequence[str]]


def markdown(rows: Rows) -> str:
    head, *below = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *below])


def html(rows: Rows) -> str:
    cells = (("th" if number == 0 else "td", row) for number, row in enumerate(rows))
    lines = ("<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>" for tag, row in cells)
    return "\n".join(["<table>", *lines, "</table>"])


def latex(rows: Rows) -> str:
    lines = [" & ".join(row) + r" \\" for row in rows]
    columns = "|".join("l" * len(rows[0]))
    return "\n".join([rf"\begin{{tabular}}{{|{columns}|}}", r"\hline", *lines, r"\hline", r"\end{tabular}"])


def boxed(rows: Rows) -> str:
    lines = ["\u2502 " + " \u2502 ".join(row) + " \u2502" for row in rows]
    return "\n".join(
        ["\u250c\u2500\u2500\u2510", lines[0], "\u251c\u2500\u2500\u2524", *lines[1:], "\u2514\u2500\u2500\u2518"]
    )


def grid(rows: Rows) -> str:
    rule = "+" + "------+" * len(rows[0])
    return "\n".join(itertools.chain([rule], *(("| " + " | ".join(row) + " |", rule) for row in rows)))


def ruled(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def separated(delimiter: str) -> Callable[[Rows], str]:
    return lambda rows: "\n".join(delimiter.join(row) for row in rows)


SHAPES = {
    "markdown": markdown,
    "html": html,
    "latex": latex,
    "boxed": boxed,
    "grid": grid,
    "ruled": ruled,
    "tabs": separated("\t"),
    "semicolons": separated(";"),
    "commas": separated(","),
}
shapes = st.sampled_from(sorted(SHAPES))


def verdicts(text: str) -> list[str]:
    return [step.verdict for step in audit(PROCEDURE, INPUTS, text).steps]


@examples(60)
@given(shapes, st.permutations(["working", "value"]), st.lists(st.integers(-1, 1), min_size=3, max_size=3))
def test_a_table_is_read_alike_in_every_shape(shape: str, heads: list[str], off: list[int]) -> None:
    """Whatever parts the cells of a table, and wherever its value stands, a step is right where its value is."""
    works, values = ["6 * 7", "42 + 5", "47 * 2"], [42, 47, 94]
    rows = [["step", *heads]]
    for number, (work, value) in enumerate(zip(works, values, strict=True)):
        cells = {"working": work, "value": str(value + off[number])}
        rows.append([f"t{number + 1}", *(cells[head] for head in heads)])
    found = audit(PROCEDURE, INPUTS, SHAPES[shape](rows))
    for step, wrong in zip(found.steps, off, strict=True):
        assert (step.verdict == "right") is (wrong == 0 and step.verdict != "wrong"), found.steps
        assert not (wrong and step.verdict == "right"), found.steps
    if not any(off):
        assert all(step.verdict == "right" for step in found.steps), found.steps


@examples(60)
@given(
    shapes,
    st.sampled_from([
        *("value (thousands)", "value in hundreds", "estimate", "deviation", "delta", "error", "expected", "guess"),
        *("old value", "Bob", "value in %", "difference", "reference", "draft", "Value in millions"),
    ]),
)  # fmt: skip
def test_the_head_of_a_column_may_take_its_values_back(shape: str, head: str) -> None:
    """Values under a head that scales, estimates, compares or gives them to others are not the writer's own."""
    rows = [["step", head], ["t1", "42"], ["t2", "47"], ["t3", "94"]]
    assert "right" not in verdicts(SHAPES[shape](rows))


@examples(60)
@given(
    shapes,
    st.sampled_from([
        *(("value", "correct"), ("value", "corrected"), ("result", "right value"), ("old", "new"), ("draft", "final")),
        *(("value", "should be"), ("value", "fix"), ("value", "book"), ("from", "to"), ("value", "factor")),
        *(("2023", "2024"), ("run 1", "run 2"), ("theirs", "mine"), ("wrong", "right"), ("value", "actual value")),
    ]),
)  # fmt: skip
def test_another_column_may_contradict_a_value(shape: str, heads: tuple[str, str]) -> None:
    """Where two columns hold different values of a step, the one that is not said to be its own makes none right."""
    rows = [["step", *heads], ["t1", "42", "43"], ["t2", "47", "48"], ["t3", "94", "96"]]
    assert "right" not in verdicts(SHAPES[shape](rows))


@all_rows(
    "text, expected",
    [
        ("| t1 | t2 | t3 |\n|---|---|---|\n| 42 | 47 | 94 |", "right right right"),
        ("| | t1 | t2 | t3 |\n|---|---|---|---|\n| value | 42 | 47 | 94 |", "right right right"),
        ("| x | y | t1 | t2 | t3 |\n|---|---|---|---|---|\n| 6 | 7 | 42 | 48 | 96 |", "right wrong wrong"),
        ("| | t1 | t2 | t3 |\n|---|---|---|---|\n| error | 42 | 47 | 94 |", "not_judged " * 3),
        ("| in thousands | t1 | t2 | t3 |\n|---|---|---|---|\n| value | 42 | 47 | 94 |", "not_judged " * 3),
        ("| | t1 | t2 | t3 |\n|---|---|---|---|\n| old | 42 | 47 | 94 |\n| new | 43 | 48 | 96 |", "wrong wrong wrong"),
        ("| t1 | t2 | t3 |\n|---|---|---|\n| 42 | 47 | 94 |\n| 43 | 48 | 96 |", "not_judged " * 3),
        ("| Bob | t1 | t2 | t3 |\n|---|---|---|---|\n| value | 42 | 47 | 94 |", "not_judged " * 3),
        ("| t1 | t2 | t3 |\n|---|---|---|\n| 42 | 47 | 94 |\n| in thousands | | |", "not_judged " * 3),
        ("Rejected values:\n\n| t1 | t2 | t3 |\n|---|---|---|\n| 42 | 47 | 94 |", "not_judged " * 3),
        ("| t1 | t2 | t3 |\n|---|---|---|\n| 42 | 47 | 94 |\n\nKidding!", "not_judged " * 3),
    ],
)
def test_steps_may_head_the_columns(text: str, expected: str) -> None:
    """A table whose heads are steps has one row of values; several rows, or another label, leave them unjudged."""
    assert verdicts(text) == expected.split()


@all_rows(
    "text",
    [
        "| Step | Result |\n|---|---|\n| t1 | 42 |\n| t1 (corrected) | 43 |",
        "| Step | Result |\n|---|---|\n| t1 | 42 |\n| t1, revised | 43 |",
        "t1 = 42\nt2 = 47\n\nIn row 1 the result should read 43.",
        "t1 = 42\nt2 = 47\nKidding!",
        "t1 = 42\nt2 = 47\n\nThe first row is wrong.",
        "t1 = 42\nt2 = 47\n\nAll figures in thousands.",
        "Figures in thousands:\n\nt1 = 42",
        "(values are estimates)\nt1 = 42",
        "(these are Bob's)\nt1 = 42",
        "Assuming x = 5:\n  t1 = 42",
        "<table><caption>Values from the wrong run</caption>\n<tr><td>t1</td><td>42</td></tr></table>",
        "\\caption{Rejected values}\n\\begin{tabular}{lr}\nt1 & 42 \\\\\n\\end{tabular}",
        "/* t2 = 47\nt1 = 42\nt3 = 94 */",
        '"""\nt1 = 42\n"""',
        "t1 = (42)",
        "t1 = 42*\n* rounded up from 41",
        "t1 = 42\u00b2\n\n\u00b2 x times y",
        "\\begin{tabular}{lr}\n\\multicolumn{2}{c}{in thousands} \\\\\nt1 & 42 \\\\\n\\end{tabular}",
        "t1 = 42 (excluding 5 = 37)",
        "t1 = 42, without the 3 that are left",
    ],
)
def test_what_stands_around_may_take_a_claim_back(text: str) -> None:
    """A row, a caption, a mark or a later sentence that corrects or scales a claim, or gives it to others, counts."""
    assert verdicts(text)[0] in ("not_judged", "wrong")


@all_rows(
    "text, expected",
    [
        ("| | USD |\n|---|---|\n| Interest | 60.00 |\n| Balance | 1,260.00 |", "right"),
        ("| | EUR |\n|---|---|\n| Interest | 60.00 |\n| Balance | 1,260.00 |", "not_judged"),
        ("Interest: 60.00\nBalance: 1,260.00\n(all amounts in EUR)", "not_judged"),
        ("Interest: 60.00\nBalance: 1,260.00\n(all amounts in USD)", "right"),
        ("All amounts in thousands.\nInterest: 60.00\nBalance: 1,260.00", "not_judged"),
    ],
)
def test_a_head_or_a_caption_says_the_currency(text: str, expected: str) -> None:
    """Amounts under or beside another currency or a scale are not those of the step."""
    assert {step.verdict for step in audit(MONEY, {"net": "1200 USD"}, text).steps} == {expected}


def test_the_writers_own_formula_in_a_table_is_its_working() -> None:
    """A cell of working may begin with the name of its step."""
    rows = [("#", "Step", "Result"), ("1", "t1 = 6 * 7", "42"), ("2", "t2 = 42 + 5", "47"), ("3", "t3 = 47 * 2", "94")]
    text = markdown(rows)
    assert verdicts(text) == ["right"] * 3


def test_quantities_of_the_procedure_may_head_columns() -> None:
    """Columns that are headed by inputs hold no working of the step."""
    procedure = Procedure.parse("inputs: units, price\nrevenue = units * price")
    text = "| | Units | Price | Total |\n|---|---|---|---|\n| revenue | 1250 | 40 | 50000 |"
    assert audit(procedure, {"units": 1250, "price": 40}, text).steps[0].verdict == "right"


MARKS = ("[1]", "[^1]", "[^a]", "*", "\u00b9", "\u00b2", "\u2020")


@examples(60)
@given(
    st.sampled_from(MARKS).filter("\u00b2".__ne__),
    st.sampled_from(["x times y", "6 * 7", "the product of x and y"]),
    st.integers(-1, 1),
)
def test_a_footnote_that_is_understood_changes_nothing(mark: str, note: str, off: int) -> None:
    """A mark at a number, and what is said behind it below, is no part of the number where all of it is understood."""
    text = f"t1 = {42 + off}{mark}\nt2 = {47 + off}\nt3 = {94 + 2 * off}\n\n{mark} {note}"
    assert verdicts(text)[0] == ("wrong" if off else "right")


@examples(60)
@given(
    st.sampled_from(MARKS),
    st.sampled_from([
        *("wrong, should be 43", "in thousands", "estimated", "Bob's value", "I am unsure of this one.", "Kidding!"),
        *("not verified", "it may be 48", "taken from the book", "all amounts in thousands", "43"),
    ]),
    st.sampled_from(["t1 = 42{}\nt2 = 47", "| t1 | 42{} |\n| t2 | 47 |", "t2 = 47\nt1 is 42{}.", "t1 = 6 * 7 = 42 {}"]),
)  # fmt: skip
def test_a_footnote_may_take_a_number_back(mark: str, note: str, text: str) -> None:
    """A number whose footnote is not understood, or has none, is not read."""
    assert verdicts(f"{text.format(mark)}\n\n{mark} {note}")[0] != "right"
    assert verdicts(text.format(mark))[0] != "right" or mark == "*"
    answered = audit(PROCEDURE, INPUTS, f"t1 = 42\nt2 = 47\nt3 = 94\nAnswer: 94{mark}\n\n{mark} {note}")
    assert not answered.answer_right


@all_rows(
    "text",
    [
        "t1\n42\nt2\n47\nt3\n94",
        "- t1\n  - 6 * 7 = 42\n- t2\n  - 42 + 5 = 47\n- t3\n  - 47 * 2 = 94",
        "**t1**\n6 * 7 = 42\n\n**t2**\n42 + 5 = 47\n\n**t3**\n47 * 2 = 94",
        "1. Compute t1:\n   - x * y = 6 * 7 = 42\n2. Compute t2:\n   - 42 + 5 = 47\n3. Compute t3:\n   - 47 * 2 = 94",
        "42 = t1\n47 = t2\n94 = t3",
        "6 * 7 = 42 -> t1\n42 + 5 = 47 -> t2\n47 * 2 = 94 -> t3",
        "t1    42\nt2    47\nt3    94",
        "t1 ........ 42\nt2 ........ 47\nt3 ........ 94",
        "<b>t1</b> = 42<br>\n<b>t2</b> = 47<br>\n<b>t3</b> = 94",
        "i. t1 = 42\nii. t2 = 47\niii. t3 = 94",
        "t1 = 42.4, rounded to 42\nt2 = 47\nt3 = 94",
    ],
)
def test_a_name_may_stand_apart_from_its_value(text: str) -> None:
    """A name above, in front of dots or blanks, or behind its value names it, and another value is not right."""
    found = verdicts(text)
    assert found[1:] == ["right"] * 2
    assert (found[0] == "right") is ("rounded" not in text)
    assert verdicts(text.replace("42", "43"))[0] == "wrong"


@all_rows(
    "text",
    ["Rejected t1\n42", "t1\n42\n43", "## Bob's t1\n6 * 7 = 42", "42 = t1?", "expected t1    42", "-t1 ... 42 or 43"],
)
def test_a_name_apart_may_be_anothers(text: str) -> None:
    """A name apart from its value is read with the words around it, and never where several values may be meant."""
    assert verdicts(text)[0] != "right"


@all_rows(
    "written, expected",
    [
        ("forty-two", "right"),
        ("forty two", "right"),
        ("forty-three", "wrong"),
        ("42 (forty-two)", "right"),
        ("42 (forty-three)", "not_judged"),
        ("42 (one hundred and two)", "not_judged"),
        ("forty-two thousand", "wrong"),
        ("two and forty", "not_judged"),
        ("forty-two or so", "not_judged"),
        ("(42)'", "not_judged"),
    ],
)
def test_numbers_may_be_spelled_out(written: str, expected: str) -> None:
    """A number in words is that number, alone and beside one in digits."""
    assert verdicts(f"t1 = {written}\nt2 = 47")[0] == expected


@all_rows(
    "text, expected",
    [
        ("t1* = 42", "not_judged"),
        ("*t1* = 42", "right"),
        ("  t1   42\n+ t2    47", "right"),
        ("<ol>\n<li>t1 = 42</li>\n<li>t2 = 47</li>\n</ol>", "right"),
        ("loss: t1 = 42", "not_judged"),
    ],
)
def test_marks_at_a_name_may_make_it_another(text: str, expected: str) -> None:
    """A star behind a name names another quantity, unless it closes markup; markup of lists and sums is none."""
    assert verdicts(text)[0] in (expected, "missing" if expected == "not_judged" else expected)


def test_a_column_of_corrections_counts_in_loops_too() -> None:
    """Rounds of a table whose next column corrects them are not right."""
    procedure = Procedure.parse("inputs: items: list of number\nfor each item in items:\n    paid = min(item, 60)")
    text = "| item | paid | corrected |\n|---|---|---|\n| 1 | 30 | 31 |\n| 2 | 60 | 60 |"
    assert audit(procedure, {"items": [30, 80]}, text).steps[0].verdict == "not_judged"


def test_a_fraction_in_one_sign_and_rounding_in_words_are_read() -> None:
    """A mixed number in one sign is its value, and words that say how a step rounds change nothing."""
    procedure = Procedure.parse("inputs: x, y\nf = x / y\nh: decimal(2) = (f + 1) / 3")
    for text in ("f = 2\u00bd\nh = 1.17 (rounded)", "f = 2.5\nh = 1.1666, rounded to 1.17"):
        assert all(step.verdict == "right" for step in audit(procedure, {"x": 10, "y": 4}, text).steps)


@pytest.mark.parametrize("piece", ["42* ", "5[1] ", "42\u2020, "])
def test_footnotes_at_many_numbers_of_one_line_are_looked_up_near_them(piece: str) -> None:
    """The work does not grow with the line in front of each mark."""
    mark = piece.strip("0123456789, ")
    assert "right" not in verdicts(f"{piece * 20_000}\n{mark} all of it is guessed\n")
