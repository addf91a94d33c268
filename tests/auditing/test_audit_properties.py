"""What holds of an audit whatever is written."""

from __future__ import annotations

import time

import pytest
from audit_harness import INPUTS, PROCEDURE, RIGHT
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from transcripts import STYLES, Answer, StepLine, Style, write_transcript, written_correctly

from stepguard import audit
from stepguard.auditing import check_links
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import to_exact

pytestmark = pytest.mark.once

words = st.sampled_from(
    [
        *(
            "t1",
            "t2",
            "t3",
            "t4",
            "t9",
            "x",
            "=",
            " = ",
            ":",
            "12 + 7",
            "19",
            "57",
            "(",
            ")",
            "\n",
            "\n\n",
            " ",
            ", ",
            ".",
        ),
        *(
            "Step 1:",
            "**",
            "|",
            "- ",
            "1. ",
            "answer",
            "Answer: ",
            "is",
            "the",
            "and",
            "Wait, ",
            "\\boxed{",
            "}",
            "```",
        ),
        *('{"t1":', '"', "[", "]", "\\frac{1}{2}", "_", "\\\\", "&", "%", "$", "\r\n", "\u2212", "\ud800", "\0", "~~"),
    ]
)


@examples(300)
@given(st.one_of(st.text(max_size=300), st.lists(words, max_size=60).map("".join)))
def test_any_text_ends_in_an_audit(text: str) -> None:
    """No transcript makes the audit raise, every step has a verdict, and every place lies within the text."""
    found = audit(PROCEDURE, INPUTS, text)
    assert [step.step for step in found.steps] == ["t1", "t2", "t3", "t4"]
    places = [step.place for step in found.steps] + [each.place for each in found.findings]
    assert all(0 <= place.start <= place.end <= len(text) and place.line >= 1 for place in places if place is not None)
    found.to_json()


@examples(60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(STYLES))
def test_a_right_run_has_no_finding(seed: int, length: int, style: Style) -> None:
    """A right transcript of any program in any style is right."""
    task = Arithmetic().make(seed, length)
    told, _ = written_correctly(task.procedure, task.inputs)
    found = audit(task.procedure, task.inputs, write_transcript(style, [*told, Answer(str(task.answer))]))
    assert found.ok, found.findings


@examples(60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(STYLES), st.data())
def test_a_wrong_value_is_never_called_right(seed: int, length: int, style: Style, data: st.DataObject) -> None:
    """Whatever else is written, a value that is not the true one is not judged right."""
    task = Arithmetic().make(seed, length)
    told, _ = written_correctly(task.procedure, task.inputs)
    at = data.draw(st.integers(0, length - 1))
    off = data.draw(st.integers(-300, 300).filter(bool))
    old = told[at]
    told[at] = StepLine(old.name, old.number, old.formula, old.filled, str(int(to_exact(task.truth[old.name])) + off))
    found = audit(task.procedure, task.inputs, write_transcript(style, [*told, Answer(str(task.answer))]))
    assert found.steps[at].verdict == "wrong"
    assert found.wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *(
            *("t1 = ", "1=", "1+", "(", "\n", " ", "|", "**", "Wait, ", "answer: ", "\\boxed{", '{"a":', "[[", '["'),
            "Step 1: ",
        ),
        *(
            *("\\", " and t1 is 9", "\\frac{1}{", "= 1\n", "so 3 + 4 = 8 apples ", "1x", "~~", "answer is is "),
            "t1 is t2 ",
        ),
    ],
)
def test_long_texts_take_time_in_proportion(piece: str) -> None:
    """A text of repetitions takes no more than in proportion to its length, whatever is repeated."""

    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        started = time.process_time()
        audit(PROCEDURE, INPUTS, text)
        check_links(text)
        return time.process_time() - started

    seconds(1000)
    small, large = min(seconds(5000) for _ in range(2)), seconds(40_000)
    assert large < 40 * small + 1.0


def test_a_huge_right_transcript_is_right() -> None:
    """Text without end around a transcript, as far as it is understood, changes nothing."""
    noise = "We go on with the next step.\n" * 2000
    assert audit(PROCEDURE, INPUTS, noise + RIGHT + "Answer: 43\n" + noise).ok
