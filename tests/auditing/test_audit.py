"""Audits of unguarded runs: a verdict for every step, and what went wrong with its place."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from audit_harness import INPUTS, PROCEDURE, RIGHT, TOLD
from tables import all_rows
from transcripts import STYLES, Answer, StepLine, Style, write_transcript

from stepguard import Procedure, Step, audit
from stepguard.auditing import FINDING_KINDS, Audit
from stepguard.errors import InputError

pytestmark = pytest.mark.once

REMARKABLE = [style for style in STYLES if style not in ("json", "array")]

styles = pytest.mark.parametrize("style", STYLES)
texts = pytest.mark.parametrize("style", REMARKABLE)


def told(*changes: tuple[int, str, str]) -> list[StepLine]:
    """The steps, some with another calculation and value."""
    found = list(TOLD)
    for at, filled, value in changes:
        found[at] = StepLine(TOLD[at].name, TOLD[at].number, TOLD[at].formula, filled, value)
    return found


def audited(style: Style, items: list[StepLine | Answer | str]) -> Audit:
    return audit(PROCEDURE, INPUTS, write_transcript(style, items))


def kinds(found: Audit) -> list[tuple[str, str | None]]:
    return [(each.kind, each.step) for each in found.findings]


@styles
def test_a_right_transcript_has_no_finding(style: Style) -> None:
    """Whatever the style, a right run is right at every step and in its answer."""
    found = audited(style, [*TOLD, Answer("43")])
    assert found.ok
    assert not found.wrong
    assert [step.verdict for step in found.steps] == ["right"] * 4
    assert found.answer_right is found.answer_right_lenient is True
    assert found.first_error is None


@styles
def test_an_error_is_told_from_what_follows_from_it(style: Style) -> None:
    """A wrong value is the step's own error; later steps that use it rightly inherit it."""
    wrong = told((1, "19 * 3", "58"), (2, "58 - 19", "39"), (3, "39 + 5", "44"))
    found = audited(style, [*wrong, Answer("44")])
    assert [(step.verdict, step.kind) for step in found.steps] == [
        ("right", None),
        ("wrong", "wrong_value"),
        ("wrong", "inherited"),
        ("wrong", "inherited"),
    ]
    assert found.first_error is found.steps[1]
    assert found.answer_right is False
    assert ("wrong_answer", None) in kinds(found)


@styles
def test_another_operand_is_a_look_back_error(style: Style) -> None:
    """Working with another value than the step names is a wrong operand."""
    wrong = told((2, "57 - 12", "45"), (3, "45 + 5", "50"))
    found = audited(style, [*wrong, Answer("50")])
    assert [step.kind for step in found.steps] == [None, None, "wrong_operand", "inherited"]


@styles
def test_a_right_value_by_other_working_is_unfaithful(style: Style) -> None:
    """The right value with working that is not this step's is not right."""
    found = audited(style, [*told((2, "30 + 8", "38")), Answer("43")])
    assert kinds(found) == [("unfaithful_work", "t3")]


@styles
def test_a_step_left_out_is_missing(style: Style) -> None:
    """A step that is not there is missing, and the others are judged all the same."""
    found = audited(style, [TOLD[0], TOLD[1], TOLD[3], Answer("43")])
    assert kinds(found) == [("missing_step", "t3")]
    assert [step.verdict for step in found.steps] == ["right", "right", "missing", "right"]


@all_rows("style", [style for style in STYLES if style != "json"])
def test_an_answer_that_is_not_marked_is_missing(style: Style) -> None:
    """Without a marked answer there is none, and the last step's value counts leniently."""
    found = audited(style, [*TOLD])
    assert kinds(found) == [("missing_answer", None)]
    assert (found.answer, found.answer_right, found.answer_right_lenient) == (None, False, True)


def test_a_reply_to_the_guard_needs_no_answer() -> None:
    """The guard asks for steps only, so nothing is missing in its own form of reply."""
    assert audited("json", [*TOLD]).ok


@all_rows("style", [style for style in STYLES if style != "array"])
def test_an_answer_before_the_steps_are_done_is_premature(style: Style) -> None:
    """A final answer with steps behind it is premature, even if it is right."""
    found = audited(style, [TOLD[0], TOLD[1], Answer("43"), TOLD[2], TOLD[3]])
    assert kinds(found) == [("premature_answer", None)]


@all_rows(
    "step", ["t2: -6 * 3 = -18 points", "t2: 3 * (-6) = -18 points", "Step 2: work out t1 * 3\n-6 * 3\n= -18 points"]
)
def test_a_step_behind_an_answer_says_nothing_of_it(step: str) -> None:
    """Another calculation behind an answer leaves it an answer, with any unit, negative numbers and signs below."""
    found = audit(
        Procedure.parse("inputs: x\nt1 = x - 8\nt2 = t1 * 3"), {"x": 2}, f"t1: 2 - 8 = -6\nFinal answer: -18\n{step}"
    )
    assert kinds(found)[0] == ("premature_answer", None)


@styles
def test_a_second_value_is_a_self_correction(style: Style) -> None:
    """A step that gets two values is corrected, and judged by the last one."""
    slip = told((1, "19 * 3", "56"))[1]
    found = audited(style, [TOLD[0], slip, *TOLD[1:], Answer("43")])
    assert kinds(found) == [("self_correction", "t2")]
    assert found.steps[1].verdict == "right"


@texts
@pytest.mark.parametrize("remark", ["Wait, that is wrong.", "Actually, let me redo this.", "Oops, I made a mistake."])
def test_taking_back_in_words_is_a_self_correction(style: Style, remark: str) -> None:
    """Words that take something back count once, with the value that follows them."""
    slip = told((1, "19 * 3", "56"))[1]
    assert kinds(audited(style, [TOLD[0], slip, remark, *TOLD[1:], Answer("43")])) == [("self_correction", "t2")]
    assert kinds(audited(style, [*TOLD[:2], remark, *TOLD[2:], Answer("43")])) == [("self_correction", "t2")]


@styles
def test_a_step_that_the_procedure_does_not_have_is_extra(style: Style) -> None:
    """A step behind the last one is extra."""
    found = audited(style, [*TOLD, StepLine("t5", 5, "7 + 8", "7 + 8", "15"), Answer("43")])
    name = "step 5" if style in ("steps", "round", "blocks") else "t5"
    assert kinds(found) == [("extra_step", name)]


@styles
def test_a_step_worked_out_twice_is_a_duplicate(style: Style) -> None:
    """The same step with the same working and value is a duplicate."""
    assert kinds(audited(style, [*TOLD[:3], TOLD[1], TOLD[3], Answer("43")])) == [("duplicate_step", "t2")]


@styles
def test_steps_in_another_order_are_found(style: Style) -> None:
    """A step that stands behind a later one is out of order."""
    found = audited(style, [TOLD[1], TOLD[0], TOLD[2], TOLD[3], Answer("43")])
    assert kinds(found) == [("wrong_order", "t1")]


def test_a_transcript_that_breaks_off_is_truncated() -> None:
    """What ends in the middle of a step is truncated; that step is not judged, and what follows is missing."""
    found = audit(PROCEDURE, INPUTS, RIGHT.partition("t4")[0] + "t4 = t3 + 5 = 38 +")
    assert kinds(found) == [("truncated", "t4"), ("missing_answer", None)]
    assert found.steps[3].verdict == "not_judged"


def test_json_that_breaks_off_is_truncated() -> None:
    """Entries in front of the break are judged."""
    found = audit(PROCEDURE, INPUTS, '{"t1": "12 + 7 = 19", "t2": "19 * 3 = 57", "t3": "57 - 1')
    assert [step.verdict for step in found.steps] == ["right", "right", "missing", "missing"]
    assert "truncated" in [kind for kind, _ in kinds(found)]


@all_rows(
    "line, strict",
    [
        *(("Answer: 43", True), ("**Answer: 43**", True), ("**Final Answer:** 43", True), ("Final answer = 43", True)),
        *(("So the answer is 43.", True), ("The final answer is $\\boxed{43}$.", True), ("\\boxed{43}", True)),
        *(("#### 43", True), ("### Final Answer\n43", True), ("Answer: t4 = 43", True)),
        *(("Answer: 43 apples in total", False), ("The answer is 38 + 5 = 43 (see above)", False)),
        ("The answer is therefore 43 apples.", False),
    ],
)
def test_answers_are_read_from_their_markers(line: str, strict: bool) -> None:
    """A marker with the value alone is read strictly, one with words around it leniently."""
    found = audit(PROCEDURE, INPUTS, RIGHT + line)
    assert found.answer is not None
    assert (found.answer.value, found.answer.strict) == (43, strict)
    assert (found.answer_right, found.answer_right_lenient) == (strict, True)
    assert found.ok


@pytest.mark.parametrize("head", ["Answer:\n", "Answer: Let us go through the 4 steps one by one.\n", "**Answer**\n\n"])
def test_a_heading_is_no_answer(head: str) -> None:
    """A word that only announces the steps is not taken for a premature answer."""
    assert audit(PROCEDURE, INPUTS, f"{head}{RIGHT}Answer: 43").ok


def test_places_are_those_of_the_text() -> None:
    """Every verdict and finding can be shown in the text."""
    text = f"Let me see.\r\n\r\n{RIGHT}".replace("38 + 5 = 43", "38 + 5 = 44") + "Answer: 44"
    found = audit(PROCEDURE, INPUTS, text)
    step = found.steps[3]
    assert step.place is not None
    assert text[step.place.start : step.place.end] == "t4 = t3 + 5 = 38 + 5 = 44"
    assert (step.place.line, step.claimed, step.expected) == (6, "44", "43")
    assert [each.place.line if each.place else None for each in found.findings] == [6, 7]


@all_rows(
    "text, verdict",
    [
        *(("t1 = 12 + 7 = 19 units", "right"), ("t1 := 19", "right"), ("t1 \u2192 19", "right")),
        *(("The value of t1 is 19.", "right"), ("t1: integer = 12 + 7 = 19", "right")),
        *(("T1 = 12 + 7 = **19** \u2713", "right"), ("t1 = 12 plus 7 equals 19", "right")),
        *(("t1 = x + y\nt1 = 12 + 7\nt1 = 19", "right"), ("t1 = 19 thousand", "not_judged")),
        *(("t1 = nineteen", "right"), ("t1 = 12 + 7", "not_judged"), ("t1 is the sum of x and y", "not_judged")),
        *(("the sum of t1 and t2 is 20", "missing"), ("t1 = x + y", "missing"), ("t1 = 12 + 7 = 20", "wrong")),
    ],
)
def test_one_step_in_many_words(text: str, verdict: str) -> None:
    """A claim is read where it is certain what it says, and not judged where it is not."""
    assert audit(PROCEDURE, INPUTS, text).steps[0].verdict == verdict


def test_restating_changes_nothing() -> None:
    """A list of the formulas in front, the inputs, and a summary behind are no claims of their own."""
    listed = "\n".join(f"{step.id} = {step.formula}" for step in PROCEDURE.steps)
    summary = "In summary: t1 = 19, t2 = 57, t3 = 38, t4 = 43."
    assert audit(PROCEDURE, INPUTS, f"x = 12, y = 7\n{listed}\n\n{RIGHT}{summary}\nAnswer: 43").ok


def test_a_transcript_without_names_is_not_judged() -> None:
    """Calculations that belong to no step are not taken for steps that are missing."""
    found = audit(PROCEDURE, INPUTS, "12 + 7 = 19\n19 * 3 = 57\nAnswer: 43")
    assert {step.verdict for step in found.steps} == {"not_judged"}
    assert not found.wrong
    assert not found.ok


def test_rounding_and_money_are_those_of_the_steps() -> None:
    """Types are read and rounded as the procedure declares them."""
    procedure = Procedure.parse(
        "inputs: price: decimal(2)\ntax: decimal(2) = price * 8.25 / 100\nrate: percent = tax / price"
    )
    inputs = {"price": "74.70"}
    right = "tax = 74.70 * 8.25 / 100 = $6.16\nrate = 6.16 / 74.70 = 616/7470\nAnswer: 88%"
    found = audit(procedure, inputs, right)
    assert found.steps[0].verdict == "right"
    assert audit(procedure, inputs, "tax = 74.70 * 8.25 / 100 = 6.17").steps[0].kind == "wrong_value"
    assert found.expected_answer == Fraction(616, 7470)


def test_words_alone_are_judged_by_the_checks_of_the_user() -> None:
    """A step in words is judged by its checks, and what follows from it by its claimed value."""
    steps = [
        Step(
            "ordered",
            instruction="How many?",
            type="integer",
            checks=[lambda step, values, claim: values["ordered"] < 9],
        ),
        Step("named", instruction="Who?"),
        Step("cost", "ordered * 5"),
    ]
    procedure = Procedure(steps)
    found = audit(procedure, {}, "ordered = 4\nnamed = Ada Lovelace.\ncost = 4 * 5 = 20\nAnswer: 20")
    assert [step.verdict for step in found.steps] == ["right", "not_judged", "right"]
    assert audit(procedure, {}, "ordered = 12").steps[0].verdict == "wrong"


def test_a_step_without_a_value_is_not_judged() -> None:
    """Where the procedure itself has no exact value nothing is called wrong."""
    found = audit(Procedure.parse("inputs: x\nt1 = 1 / x"), {"x": 0}, "t1 = 1 / 0 = 0")
    assert found.steps[0].verdict == "not_judged"


def test_a_lazy_procedure_is_audited_by_occurrence() -> None:
    """Names that are set again and again are matched in the order of the text."""
    procedure = Procedure.lazy(
        lambda at: Step(f"t{at % 2}", "x + 1" if at == 0 else f"t{(at - 1) % 2} + 1"), 4, look_back=1, inputs=["x"]
    )
    found = audit(procedure, {"x": 1}, "t0 = 1 + 1 = 2\nt1 = 2 + 1 = 3\nt0 = 3 + 1 = 5\nt1 = 5 + 1 = 6\nAnswer: 6")
    assert [step.kind for step in found.steps] == [None, None, "wrong_value", "inherited"]


def test_inputs_are_checked() -> None:
    """Misuse is refused as in a run."""
    with pytest.raises(InputError):
        audit(PROCEDURE, {"x": 1}, RIGHT)


def test_an_audit_is_json() -> None:
    """Everything in an audit can be written as JSON."""
    found = audit(PROCEDURE, INPUTS, RIGHT.replace("= 57\n", "= 58\n") + "Answer: 44")
    data = json.loads(found.to_json())
    assert data["steps"][1]["kind"] == "wrong_value"
    assert {each["kind"] for each in data["findings"]} <= set(FINDING_KINDS)
    assert data["answer"]["value"] == "44"
    assert found.of("wrong_answer")[0].place is not None
