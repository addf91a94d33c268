"""Final answers as models mark them: which value is meant, and where that would be a guess."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from tables import all_rows

from stepguard import Procedure, audit
from stepguard.language.values import Value

pytestmark = pytest.mark.once


def answered(text: str, gold: Value = 7, kind: str = "") -> tuple[Value | None, bool, bool | None]:
    """The marked answer of a transcript, whether it is all that stands there, and whether it is right."""
    procedure = Procedure.parse(f"inputs: x\nt1{kind} = x + 3")
    assert isinstance(gold, int | Fraction | Decimal)
    found = audit(procedure, {"x": Fraction(gold) - 3}, text)
    if found.answer is None:
        return None, False, found.answer_right
    return found.answer.value, found.answer.strict, found.answer_right


@all_rows("text, gold, kind, found", [
    # A value behind a marker is the answer, in the many ways of models.
    *((text, 7, "", (7, True, True)) for text in (
        *("Answer: 7", "Answer:7", "Final answer:7.", "Answer=7", "Answer\uff1a7", "**Answer:** 7", "Answer: **7**."),
        *("Answer: $7$", "Answer:\n7", "Answer:\n\n**7**", "<answer>7</answer>", "#### 7", "#### **7**", "\\boxed{7}"),
        *("The final answer is $\\boxed{7}$.", "Answer: \\[ 7 \\]", "Answer: t1 = 7.", "Answer: 4 + 3 = 7"),
        "Answer: t1 = 4 + 3 = 7",
    )),
    # What has words around it counts for the lenient reading only.
    *((text, 7, "", (7, False, False)) for text in (
        *("Answer: 7. This is the total.", "The answer is $7$ apples.", "Answer: 7 (rounded)", "Answer: 7km"),
        "Answer: 7 - the sum",
    )),
    # What a document does not hold as this number, a transcript does not answer either.
    *((f"Answer: {text}", 7, "", (None, False, False)) for text in (
        "7 lakh", "7 crore", "7 Mio.", "7\u4e07", "7 bps", "7 \u2030", "7 milliards", "7 in hex",
    )),
    # An amount in another currency, or in small coin, is not the amount; its own may stand with it, and so may a scale.
    *((f"Answer: {text}", 18, ": money(USD)", (None,)) for text in (
        "18 EUR", "18 \u20ac", "18 euros", "18 cents", "C$18", "\u00a518 each", "18 pence",
    )),
    *((f"Answer: {text}", 18, ": money(USD)", (Decimal("18.00"),)) for text in (
        "18", "$18", "18 dollars", "USD 18", "US$18 in total",
    )),
    ("Answer: $18k", 18, ": money(USD)", (Decimal("18000.00"),)),
])  # fmt: skip
def test_a_marked_answer_is_read(text: str, gold: Value, kind: str, found: tuple[object, ...]) -> None:
    """What stands behind a marker is the answer where it is one value, in the unit that is asked for."""
    assert answered(text, gold, kind)[: len(found)] == found


@all_rows(
    "written, gold",
    [(".5", Fraction(1, 2)), ("-.5", Fraction(-1, 2)), ("$.50", Fraction(1, 2)), ("7{,}000", 7000), ("7\\,000", 7000)],
)
@all_rows("marked", ["Answer: {}", "\\boxed{{{}}}", "t1 = {0}\nAnswer: {0}."])
def test_no_sign_of_an_answer_is_stripped(written: str, gold: Value, marked: str) -> None:
    """A leading point, a sign and the groups of a number belong to the answer."""
    assert answered(marked.format(written), gold) == (gold, True, True)
    assert answered(marked.format(".5"), 5)[2] is False


@all_rows(
    "text",
    [
        *("t1 = x != 7", "t1 = 6 <= 7", "!= 7", "\u2260 7", "6 != 7", "> 7", "less than 7", "at least 7"),
        *("7 ... 9", "7? Or 9", "7. Or maybe 9", "7... no, 9", "7, maybe 8", "7 vs 8", "7, 8", "7 or 8"),
        *("7 is wrong", "7 (wrong)", "minus 7", "negative 7", "anything but 7", "not 7", "half of 7"),
        *(
            *("7 thousand", "7k", "7 million", "7^2", "7\u00b2", "7 + 3", "7 * 2", "7 - 8", "7\u20138", "7:30"),
            "7 (mod 10)",
        ),
        *("7 000", "7'500", "7_000", "t7", "see step 7", "six", "I am not sure"),
    ],
)
@all_rows("before", ["", "t1 = 7\n", "Answer: 7\n"])
def test_no_answer_is_guessed(before: str, text: str) -> None:
    """Denied, scaled, bounded, one of several, or a part of more: no value is given, and no earlier one is taken."""
    value, strict, right = answered(f"{before}Answer: {text}")
    assert (value, strict, right) == (None, False, False)
    assert answered(f"{before}\\boxed{{{text}}}")[0] is None


@pytest.mark.parametrize(
    "heading", ["#### 2. Compute the total", "#### 1) Start", "The answer is found by adding 3 and 4."]
)
def test_words_about_an_answer_are_none(heading: str) -> None:
    """A heading, or a sentence about how the answer is found, takes no answer away."""
    assert answered(heading)[0] is None
    assert answered(f"Answer: 7\n{heading}")[0] == 7


def test_steps_may_follow_the_word_answer() -> None:
    """Where the steps begin behind "Answer:", the last one is the answer's own."""
    found = audit(
        Procedure.parse("inputs: x\nt1 = x + 3\nt2 = t1 * 2"), {"x": 4}, "Answer: t1 = 4 + 3 = 7\nt2 = 7 * 2 = 14"
    )
    assert found.answer is None
    assert [step.verdict for step in found.steps] == ["right", "right"]
