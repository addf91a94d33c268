"""Reading answers for scoring: a designated answer counts, nothing else does, and one comparer judges all arms."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tables import all_rows

from stepguard import Procedure
from stepguard.evaluation.arms import read_run
from stepguard.evaluation.families import Demonstration, Task
from stepguard.language.values import Value


def task(formula: str, truth: Value, kind: str = "number") -> Task:
    procedure = Procedure.parse(f"inputs: x, y\nt1: {kind} = {formula}")
    shown = Demonstration("", "", "")
    return Task(
        family="f", seed=0, procedure=procedure, inputs={"x": 2, "y": 4}, truth={"t1": truth},
        statement="", demonstration=shown,
    )  # fmt: skip


@all_rows(
    "text, strict, lenient",
    [
        *(("Answer: 18", 18, 18), ("#### 18", 18, 18), (r"\boxed{18}", 18, 18), ("The final answer is 18.", 18, 18)),
        *(("18", 18, 18), (" 18 \n", 18, 18), (r"**Answer: \$18 per day.**", None, 18)),
        *(
            ("Answer: 18 dollars per day", None, 18),
            ("Answer: 18 apples a day", None, 18),
            ("Answer: 18 per Bob", None, None),
        ),
        *(("Answer: 18 apples", None, 18), ("18 apples. Question: Tom has 3 apples. How many are left?", None, None)),
        *(("Answer: **18**", 18, 18), ("**Answer:** 18", 18, 18), ("answer: t1 = 18.", 18, 18)),
        *(("Answer: 7\nWait.\nAnswer: 18", 18, 18), ("Answer: 6 or 7", None, None)),
        *(("It is 6, not 18.", None, None), ("The result should be near 18", None, None)),
        *(("Answer: 18 or 19", None, None), ("Answer: 17, not 18", None, 17), ("Answer: eighteen", None, None)),
        *(("Answer: 24\n\nt1 = 2 + 16 = 18\nAnswer: 18", 18, 18), ("t1 = 2 + 16 = 18", None, 18), ("", None, None)),
    ],
)
def test_only_a_designated_answer_counts(text: str, strict: int | None, lenient: int | None) -> None:
    """An answer is marked, or is all that is said; words around it are allowed in the lenient reading alone."""
    found = read_run(task("x + 16", 18), text)
    assert (found.strict, found.lenient) == (strict, lenient)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *(("<think>5</think>5", 5), ("<think>\nAnswer: 6\n</think>\nAnswer: 5", 5), ("I don't know", None), ("5", 5)),
        *(("<think>Answer: 5", None), ("Answer: 6</think>5", 5)),
    ],
)
def test_thoughts_are_no_answers(text: str, answer: int | None) -> None:
    """What stands in a think block is no answer, and where one is never closed there is none."""
    assert read_run(task("x + 3", 5), text).strict == answer


@all_rows("written", ["1/2", "0.5", r"\frac{1}{2}", " 0.50 ", "2/4", r"$\frac{1}{2}$", "**0.5**"])
@all_rows("form", ["Answer: {}", "t1 = {}\nAnswer: {}", "{}"])
def test_a_value_is_right_however_it_is_written(written: str, form: str) -> None:
    """Notation costs no point: an answer is compared as the guard compares values."""
    found = read_run(task("x / y", Fraction(1, 2)), form.replace("{}", written))
    assert found.strict == Fraction(1, 2)


@pytest.mark.parametrize(("kind", "written"), [("boolean", "true"), ("decimal(2)", "6.00"), ("percent", "600%")])
def test_an_answer_is_of_the_declared_type(kind: str, written: str) -> None:
    """An answer is read as the type of its step: a number is no truth value."""
    truth: dict[str, Value] = {"boolean": True, "decimal(2)": 6, "percent": 6}
    formula = "x < y" if kind == "boolean" else "x + y"
    made = task(formula, truth[kind], kind)
    assert read_run(made, f"Answer: {written}").strict == truth[kind]
    if kind == "boolean":
        assert read_run(made, "Answer: 6").strict is None
