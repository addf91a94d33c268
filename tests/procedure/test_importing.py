"""Import: procedures as people write them, and a note on every line that is not read for certain."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import all_rows

from stepguard import Procedure, Step
from stepguard.procedure.importing import import_procedure


def read(text: str) -> Procedure:
    """The procedure that a text comes to."""
    found = import_procedure(text)
    assert found.procedure is not None, found.notes
    assert all(note.kind != "refused" for note in found.notes)
    return found.procedure


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
        "# Step 2: total = gross + 5",
        "# 2. total = gross + 5",
        "# - total = gross + 5",
        "# 2) Name the customer's country.",
    ],
)
def test_a_heading_does_not_swallow_a_step(line: str) -> None:
    """A heading that holds a step or a declaration, or is numbered as one, is refused, and not taken for a comment."""
    notes = import_procedure(f"inputs: net\nStep 1: gross = net * 2\n{line}").notes
    assert [(note.line, note.kind) for note in notes] == [(3, "refused")]


@pytest.mark.parametrize("line", ["# total = gross + 5", "## Step 2", "## The discount", "######", "## Inputs:"])
def test_a_comment_or_a_heading_of_words_is_skipped(line: str) -> None:
    """One sign makes a comment of what is not numbered; a heading without a step says nothing that is to be done."""
    text = "inputs: net\ngross = net * 2\ntotal = gross + 5"
    assert read(text.replace("total", f"{line}\ntotal")) == read(text)


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
    (note,) = import_procedure(f"inputs: net\n1. gross = net * 2\n{line}").notes
    assert (note.line, note.kind) == (3, "refused")
    assert hint in note.message


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
    procedure = read(f"inputs: net\n1. gross = net * 2\n2. {words}")
    assert procedure.steps[1] == Step("step2", instruction=words)
    assert Procedure.parse(str(procedure)) == procedure


INVOICE = """
Name: invoice
# The order as it came in.
Inputs: x, y, rate: decimal(2, half_even)

t1 = x + y
t2: integer = t1 * 3   # three boxes
Step 3: t3 = t2 * 4
4. Take off the fee: t4 = t3 - 5
5) Name the customer's country.
- [ ] t6: decimal(2, half_up) = by code t4 / 3
**Step 7:** `t7 = t6 * rate`
answer: t4
"""


def test_a_list_of_steps_becomes_a_procedure_of_the_language() -> None:
    """Labels, words in front, check boxes and Markdown are read; words alone are put to the model, with a note."""
    found = import_procedure(INVOICE)
    assert found.procedure == Procedure.parse(
        """
        name: invoice
        inputs: x, y, rate: decimal(2, half_even)
        t1 = x + y
        t2: integer = t1 * 3
        t3 = t2 * 4
        t4 = t3 - 5  "Take off the fee"
        step5 = "Name the customer's country."
        t6: decimal(2, half_up) = by code t4 / 3
        t7 = t6 * rate
        answer: t4
        """
    )
    assert [(note.line, note.kind) for note in found.notes if note.kind != "left_out"] == [(10, "words")]
    assert not found.complete


BRANCHES: dict[str, tuple[str, str]] = {
    "one line": ("1. If x is more than 3, t = x + 1", "if x > 3:\n  t = x + 1"),
    "words and a formula": ("1. If x exceeds 3, add one: t = x + 1", 'if x > 3:\n  t = x + 1  "add one"'),
    "then": ("- If x >= 3 then t = x + 1", "if x >= 3:\n  t = x + 1"),
    "both": (
        "1. If x is at least 3: t = x + 1\n2. Otherwise: t = x - 1",
        "if x >= 3:\n  t = x + 1\nelse:\n  t = x - 1",
    ),
    "three cases": (
        "1. If x is over 3: t = x + 1\n2. Otherwise, if x is no less than 1: t = x\n3. Else: t = 0",
        "if x > 3:\n  t = x + 1\nelse if x >= 1:\n  t = x\nelse:\n  t = 0",
    ),
    "lists below both": (
        "Steps:\n1. If x > 3:\n   - t = x\n   - u = t\n2. Otherwise:\n   - t = 0\n   - u = 1\n3. v = u",
        "if x > 3:\n  t = x\n  u = t\nelse:\n  t = 0\n  u = 1\nv = u",
    ),
    "a list in a list": (
        "1. If x > 3:\n   1. If x > 9: t = x\n   2. Otherwise: t = 9\n2. Else:\n   1. t = 0",
        "if x > 3:\n  if x > 9:\n    t = x\n  else:\n    t = 9\nelse:\n  t = 0",
    ),
    "thousands": ("1. If x is not more than 1,000, t = x + 1", "if x <= 1000:\n  t = x + 1"),
    "a list below": ("1. If x > 3:\n   - t = x + 1\n   - u = t\n2. v = x", "if x > 3:\n  t = x + 1\n  u = t\nv = x"),
}


@pytest.mark.parametrize(("text", "written"), BRANCHES.values(), ids=BRANCHES)
def test_a_condition_in_words_becomes_a_branch(text: str, written: str) -> None:
    """A condition over known values is carried out as one, and the formula behind it only where it holds."""
    found = import_procedure(f"inputs: x\n{text}\nanswer: x")
    assert found.procedure == Procedure.parse(f"inputs: x\n{written}\nanswer: x")
    assert found.complete


REFUSED = [
    *("If it rains: t = x + 1", "Otherwise: t = x - 1", "Repeat 3 times: t = x * 1.1", "For each item: t = x + 1"),
    *("Do not do this: t = x * 2", "Add one (only for members): t = x + 1", "Members: t = x * 0.9", "x > 3: t = x + 1"),
    *("1. The next step is optional.", "Add one unless paid: t = x + 1", "t = x + 1  # only if x > 3", "~~t = x + 1~~"),
    *("> t = x + 1", "t = z + 1", "| a | b |", "Falls es regnet: t = x + 1", "\u5982\u679c\u4e0b\u96e8: t = x + 1"),
    *("Fee for the first 30 days: t = x * 2", "VAT of 19%: t = x * 0.07", "Total at 5 a day: t = x * 4"),
    *("Total of step 7: t = x * 2", "Step 1a: t = x * 2", "- [x] Total: t = x + 1", "Get approval: t = x + 1"),
    *("Negotiate the price: t = x * 2", "The clerk sets the price: t = x * 2", "Let the manager check the fee: t = x"),
    *("order: 17", "year: 2019", "Convert to cents", "Convert it to cents: t = x * 2", "Double it, line 7: t = x * 2"),
    *("Answer: 42", "1. <!-- t = x + 1 -->", "If y is more than 3, t = x + 1", "t := x", "t = 1.000 + x"),
]


@all_rows("line", REFUSED)
def test_what_is_not_certain_is_refused_with_a_note_and_left_out(line: str) -> None:
    """Nothing that is not understood becomes a step, and its line is named with the reason."""
    found = import_procedure(f"inputs: x\nbefore = x * 2\n{line}\nafter = before + 1")
    refused = [note for note in found.notes if note.kind == "refused"]
    assert [note.line for note in refused] == [3]
    assert refused[0].message
    assert not found.complete
    assert found.procedure == Procedure.parse("inputs: x\nbefore = x * 2\nafter = before + 1")


@all_rows("line", [
    *("2. Look up Form 1040 and double it: t = before * 2", "2. Double it, see page 12: t = before * 2"),
    *("2. Convert it to cents: t = before * 100", "2. Convert it to cents: t = before * x"),
    *("2. Add 30: t = before + 30", "2. Take step 1 and double it: t = before * 2", "2. Sum 7: t7 = before + x"),
    *("2. VAT (19%): t = before * 0.19", "- [ ] Total: t = before + 1", "2. The fee of the order: t = before * 2"),
])  # fmt: skip
def test_figures_and_steps_that_the_formula_has_may_be_named(line: str) -> None:
    """The words are a description then, and the step is the formula."""
    assert import_procedure(f"inputs: x\n1. before = x * 2\n{line}").complete


@all_rows("declared", ["Inputs:\n- x\n- fee: money(EUR) = 5 EUR", "Inputs:\nx\nfee: money(EUR) = 5 EUR\n\nSteps:"])
def test_inputs_may_stand_in_a_list(declared: str) -> None:
    """Below a line that says so, with their types and defaults, up to the steps; the answer may stand so, too."""
    found = import_procedure(f"# Bill\n{declared}\n- t = x + 1\nAnswer:\n- t")
    assert found.procedure == Procedure.parse("name: Bill\ninputs: x, fee: money(EUR) = 5 EUR\nt = x + 1")
    assert found.complete


@all_rows("line", ["1. If it rains:", "For members:", "1. Only on Fridays:", "<!-- no longer done:"])
def test_what_stands_below_a_refused_line_is_refused(line: str) -> None:
    """A step below a condition that was not understood, or in a comment, is not carried out without it."""
    text = f"inputs: x\nbefore = x * 2\n{line}\n   - t = x + 1\n   - u = t -->\nafter = before + 1"
    found = import_procedure(text.replace(" -->", " -->" if line.startswith("<") else ""))
    assert [(note.line, note.kind) for note in found.notes] == [(at, "refused") for at in (3, 4, 5)]
    assert found.procedure == Procedure.parse("inputs: x\nbefore = x * 2\nafter = before + 1")


@all_rows("text", [
    "Members only:\nt = x * 0.9", "If x > 3:\nt = x", "1. If it rains:\n2. t = x", "When it rains,\n\nt = x",
    "## Only for members\nt = x + 1\n### Then\n1. u = t",
    "## For others\nt = x",
    "# Second procedure\n1. t = x\n2. u = t",
    "2. t = x\n3. End.",
])  # fmt: skip
def test_what_stands_below_a_heading_that_may_govern_it_is_refused(text: str) -> None:
    """Under a condition, or the title of a second procedure, no step is proposed as one that is always carried out."""
    first, last = "# First procedure\ninputs: x\n1. before = x\n3. other = x + 1\n", "## Last\nlast = x"
    found = import_procedure(f"{first}{text}\n{last}")
    kept = first if text.startswith("# ") else first + last  # which is below a title of its own
    assert str(found.procedure) == str(import_procedure(kept).procedure)
    assert {note.kind for note in found.notes if note.line > 4 and "Last" not in note.text} == {"refused"}


@all_rows("text", [
    *("If it rains:\n- t = x + 1\n- u = t", "If it rains\n   t = x + 1", "1. For members\n   - t = x + 1\n   - u = t"),
    "If it rains: t = 5\nOtherwise:\n   t = x",
    "If it rains:\n   t = 5\nOtherwise: t = x",
])  # fmt: skip
def test_nothing_hangs_on_another_line_than_it_was_written_for(text: str) -> None:
    """Lists, deeper lines and other cases below a line that was refused are refused, whatever stands above it."""
    found = import_procedure(f"inputs: x\nIf x > 3:\n- s = x + 1\n{text}\nafter = x")
    assert found.procedure == Procedure.parse("inputs: x\nif x > 3:\n  s = x + 1\nafter = x")
    assert {note.kind for note in found.notes} == {"refused"}


@all_rows("text", [
    "# Order\ninputs: x, y\n# Steps\n1. t1 = x + y\n# Answer\nt1",
    "inputs: x, y\n1. t1 = x + y\n2. t2 = t1\n## Result\n- t1",
    "## Inputs\n- x\n- y\n## Steps\n1. t1 = x + y", "## Inputs:\ninputs: x, y\n1. t1 = x + y\n## Answer:\nanswer: t1",
])  # fmt: skip
def test_a_heading_may_be_a_header(text: str) -> None:
    """What stands below a heading of one such word is what would stand behind it, and no second procedure."""
    found = import_procedure(text)
    assert found.procedure is not None
    assert (found.complete, found.procedure.answer, len(found.procedure.inputs)) == (True, "t1", 2)


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.procedure"))
WITH_UNITS = [path for path in EXAMPLES if "quantity(" in path.read_text(encoding="utf-8")]


@all_rows("path", [path for path in EXAMPLES if path not in WITH_UNITS])
def test_a_text_of_the_language_is_imported_as_it_is(path: Path) -> None:
    """With records, tables, loops and persons; only its comments have notes."""
    _imported_as_it_is(path)


@all_rows("path", WITH_UNITS)
def test_a_text_with_units_is_imported_as_it_is(path: Path) -> None:
    """The same where its values have units."""
    pytest.importorskip("pint")
    _imported_as_it_is(path)


def _imported_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = import_procedure(text)
    assert found.procedure is not None
    assert str(found.procedure) == str(Procedure.parse(text))
    assert all("#" in text.split("\n")[note.line - 1] for note in found.notes)


def test_what_makes_no_procedure_is_told() -> None:
    """Where too little was understood there is no proposal."""
    found = import_procedure("Be nice to the customer.\n")
    assert found.procedure is None
    assert [note.kind for note in found.notes] == ["refused", "refused"]


def test_the_language_is_imported_as_it_is() -> None:
    """A straight procedure of the language comes out as itself, without a note."""
    text = "name: order\ninputs: price, quantity: integer\ngoods = price * quantity\ntotal = by code goods * 1.19\n"
    found = import_procedure(text)
    assert found.complete
    assert str(found.procedure) == text


@pytest.mark.parametrize(
    "text",
    [
        "inputs: a: date, b: date\n1. If a is older than b: fee = 1\n",
        "# Not used any more\ninputs: a\n1. t = a * 2\n",
        "title: only for members\ninputs: a\n1. t = a * 2\n",
        "title: one\ntitle: two\ninputs: a\n1. t = a * 2\n",
        "inputs: a\nt = a * 2\nu = a\nanswer: t\nanswer: u\n",
        f"inputs: a\n1. t = a * 2{' ' * 50_000}# only on Mondays\n",
        f"inputs: a\nif a{' ' * 30_000}q\n",
    ],
)
def test_what_may_mean_something_else_is_told(text: str) -> None:
    """A comparison of ages, words in a title, a second declaration, a line that is too long to be read."""
    assert not import_procedure(text).complete
