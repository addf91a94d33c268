"""What a run asks, how often, and what it says when it stops: cases from the field, one row each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Input, Ladder, Procedure, Step, Usage
from stepguard.backends import Completion, Request, ToolCall
from stepguard.core.verdicts import Claim
from stepguard.language.values import Value
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import FIRST, Draft, Resample, Rung, Split, another_model, person
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

PAIR = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
GOOD: Mapping[str, object] = {"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}
INPUTS = {"x": 6, "y": 7}


class Endless:
    """Gives replies of one shape, each with other white space, and counts what it was asked."""

    def __init__(self, shape: Callable[[str], Completion]) -> None:
        self.calls = 0
        self._shape = shape

    def complete(self, request: Request) -> Completion:
        self.calls += 1
        return self._shape(" \n"[self.calls % 2] * self.calls)


SAME: Mapping[str, Callable[[str], Completion]] = {
    "R10-prose": lambda gap: Completion(f"I would{gap}rather not."),
    "R10-object": lambda gap: Completion(f'{{{gap}"answer":{gap}42}}'),
    "R10-broken": lambda gap: Completion(f'{{"t1":{gap}"6 * 7 ='),
    "R10-null": lambda gap: Completion(f'{{"t1":{gap}null,{gap}"t2": "1"}}'),
    "R10-form": lambda gap: Completion(f'{{"t1": {{"work":{gap}"6 * 7", "value": "42"}}}}'),
    "R10-fence": lambda gap: Completion(f'```json\n{gap}{{"t0": "1"}}{gap}```'),
    "R10-empty-side": lambda gap: Completion(f'{{"t1": "6 *{gap.replace(chr(10), " ")}7 ="}}'),
    "R10-taken-back": lambda gap: Completion(f'{{"t1": "6 * 7 = 41, wait, 42"{gap}}}'),
    "R10-wrong": lambda gap: Completion(f'{{"t1":{gap}"6 * 7 = 41"}}'),
    "R10-no-number": lambda gap: Completion(f'{{"t1": "6 * 7 = forty{gap.replace(chr(10), " ")}two"}}'),
    "R10-tool": lambda gap: Completion(None, "tool_calls", tool_calls=(ToolCall("Steps", f'{{{gap}"a": 1}}'),)),
    "R10-other-tool": lambda gap: Completion(None, "tool_calls", tool_calls=(ToolCall("final", f'{{"a":{gap}1}}'),)),
    "R10-keys": lambda gap: Completion('{"a": 1, "b": 2}' if len(gap) % 2 else '```json\n{"b": 2, "A": 1}\n```'),
    "R10-capitals": lambda gap: Completion("No idea." if len(gap) % 2 else "no\u200b idea."),
    "R10-thinking": lambda gap: Completion(
        f"<think>{len(gap)} ways</think>" + ("I can't", "I can\u2019t")[len(gap) % 2]
    ),
    "R10-stopped": lambda gap: Completion(f'{{"t0":{gap}"1"', "stopped_early"),
}


class Again:
    """A policy that asks in the same way for ever."""

    def next(self, failures: Failures) -> Rung | None:
        return Rung("again", temperature=0.5)


READABLE = {"R10-wrong", "R10-no-number"}
"""Claims that can be read: how often one is asked for again is for the policy to say."""

PAID = [
    (shape, repair)
    for name, shape in SAME.items()
    for kind, repair in (("number", 10), ("ladder", Ladder([Resample(times=10)], same=3)), ("policy", Again()))
    if kind != "policy" or name not in READABLE
]


@all_rows("shape, repair", PAID)
def test_the_same_reply_is_paid_three_times(shape: Callable[[str], Completion], repair: Any) -> None:
    """Replies that are equal but for white space end a step after the third."""
    model = Endless(shape)
    result = Guard(model, repair=repair).run(PAIR, INPUTS)
    assert (result.status, model.calls) == ("abstained", 3)
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"


@pytest.mark.parametrize("repair", [10, Ladder(), Again()], ids=["number", "ladder", "policy"])
def test_the_reason_says_that_nothing_changed(repair: Any) -> None:
    """R10: so that nobody raises the number of retries."""
    result = Guard(Endless(SAME["R10-prose"]), repair=repair).run(PAIR, INPUTS)
    assert result.problem is not None
    assert "the same reply came 3 times in a row: nothing changed; have somebody else" in result.problem.reason
    assert "another_model" in result.problem.reason


def test_replies_that_differ_are_asked_for_again() -> None:
    """R10, the other side: ten retries are ten where each reply is another one, and the last may be right."""
    replies: list[Any] = [f"No, {number}." for number in range(10)]
    with ScriptedBackend(*replies, GOOD, {"t2": "42 + 5 = 47"}) as model:
        assert Guard(model, repair=10).run(PAIR, INPUTS).status == "verified"


# A model that rambles


class Rambling:
    """Writes on inside the string of the first step until it is cut or stopped; a word is a token."""

    can_stop = True

    def __init__(self, words: Callable[[int], str], *, opening: str = '{"t1": "', closing: str = "") -> None:
        self.written = 0
        self._closing = closing
        self.caps: list[int] = []
        self._words = words
        self._opening = opening

    def complete(self, request: Request) -> Completion:
        assert request.max_tokens is not None
        self.caps.append(request.max_tokens)
        text, spent, finish = self._opening, 0, "length"
        while spent < request.max_tokens:
            text += self._words(spent)
            spent += 1
            if request.stop is not None and request.stop(text):
                finish = "stopped_early"
                break
        self.written += spent
        if self._closing and finish == "length":
            text, finish = text + self._closing, "stop"
        return Completion(text, finish, usage=Usage(calls=1, output_tokens=spent))


RAMBLES: Mapping[str, Callable[[int], str]] = {
    "R16-loop": lambda at: ("so ", "we ", "multiply ", "again ")[at % 4],
    "R16-words": lambda at: f"word{at * at} ",
    "R16-digits": lambda at: "0",
    "R16-blanks": lambda at: "\n",
    "R16-sums": lambda at: f"{at} + {at} = ",
}


@pytest.mark.parametrize("cuts", [0, 1, 2])
def test_a_draft_that_ran_on_leaves_the_small_steps(cuts: int) -> None:
    """Replies that were only cut off before it were no rambling, and small steps are asked without the draft."""
    cut, draft = Completion('{"t1": "12 *', "length"), Completion("Twelve times thirty, let me think", "length")
    replies = [*[cut] * cuts, Completion('{"t1": "12 * 34 = 468"}'), draft]

    class Model(SimulatedModel):
        def complete(self, request: Request) -> Completion:
            return replies.pop(0) if replies else super().complete(request)

    procedure = Procedure.parse("inputs: x, y\nt1 = x * y")
    result = Guard(Model(slips=Slips.none()), repair=Ladder([Draft(), Split()])).run(procedure, {"x": 12, "y": 34})
    assert (result.status, result.steps[0].assistance) == ("verified", "split"), result.problem


@pytest.mark.parametrize("words", RAMBLES.values(), ids=RAMBLES)
@pytest.mark.parametrize("repair", [None, 10, Again()], ids=["ladder", "number", "policy"])
def test_a_model_that_rambles_is_recognised_at_its_first_step(words: Callable[[int], str], repair: Any) -> None:
    """Five steps cost less than 1,000 output tokens, no cap is raised, and the reason says what to do."""
    procedure = Procedure.parse(
        "inputs: x\n" + "\n".join(f"t{n} = {f't{n - 1}' if n > 1 else 'x'} + {n}" for n in range(1, 6))
    )
    model = Rambling(words)
    options = {} if repair is None else {"repair": repair}
    result = Guard(model, **options).run(procedure, {"x": 1})
    assert result.status == "abstained"
    assert result.usage.output_tokens == model.written < 1_000
    assert max(model.caps) == model.caps[0]
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"
    assert "ran on" in result.problem.reason
    assert "another_model" in result.problem.reason


@pytest.mark.parametrize("name", ["R16-loop", "R16-words"])
def test_a_model_that_rambles_to_the_end_of_its_reply_is_recognised_too(name: str) -> None:
    """A string that is closed at last is no better than one that is cut off."""
    procedure = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 + 2\nt3 = t2 + 3\nt4 = t3 + 4\nt5 = t4 + 5")
    result = Guard(Rambling(RAMBLES[name], closing='"}')).run(procedure, {"x": 1})
    assert (result.status, result.usage.output_tokens < 1_000) == ("abstained", True)
    assert "ran on" in str(result.problem)


@pytest.mark.parametrize("words", RAMBLES.values(), ids=RAMBLES)
def test_a_reply_that_rambles_is_ended_while_it_streams(words: Callable[[int], str]) -> None:
    """Where the backend can stop, forty steps at once cost no more than five."""
    procedure = Procedure.parse(
        "inputs: x\n" + "\n".join(f"t{n} = {f't{n - 1}' if n > 1 else 'x'} + {n}" for n in range(1, 41))
    )
    model = Rambling(words)
    result = Guard(model, segment=40, stop_early=True).run(procedure, {"x": 1})
    assert (result.status, result.usage.output_tokens < 1_000) == ("abstained", True)


def test_steps_in_words_may_be_rambled_at_as_well() -> None:
    """A step whose working is in words is given more room, and a loop in it is known all the same."""
    steps = [Step(f"t{n}", instruction="How many?", type="integer", checks=[lambda s, v, c: True]) for n in range(1, 6)]
    model = Rambling(RAMBLES["R16-loop"], opening='{"t1": {"work": "')
    result = Guard(model).run(Procedure(steps))
    assert (result.status, result.usage.output_tokens < 1_000) == ("abstained", True)


class DraftRambling(Rambling):
    """Short and wrong where it is asked for a form, and writes on and on where it works freely."""

    def complete(self, request: Request) -> Completion:
        if request.reply_format is None:
            return super().complete(request)
        text = json.dumps({step.id: f"{self.written} + 1 = {self.written + 2}" for step in request.steps})
        self.written += len(text) // 3
        return Completion(text, usage=Usage(calls=1, output_tokens=len(text) // 3))


FREELY: list[Procedure] = [
    Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 + 2"),
    Procedure.parse("inputs: x\nt1: boolean = x > 3"),
    Procedure([Step("t1", instruction="How many?", type="integer", checks=[lambda s, v, c: False])]),
]


@pytest.mark.parametrize("words", RAMBLES.values(), ids=RAMBLES)
@pytest.mark.parametrize("procedure", FREELY)
def test_working_that_runs_on_is_asked_for_once(procedure: Procedure, words: Callable[[int], str]) -> None:
    """Its cap is not raised, and no further draft of that step is asked for: with all rungs less than 1,000 tokens."""
    for ladder in (Ladder(), Ladder([Draft(), Resample(), Draft(temperature=0.5)])):
        model = DraftRambling(words, opening="")
        result = Guard(model, repair=ladder).run(procedure, {"x": 52658} if procedure.inputs else {})
        assert (result.status, len(model.caps)) == ("abstained", 1)
        assert result.usage.output_tokens == model.written < 1_000


def test_working_that_loops_is_ended_while_it_streams() -> None:
    """Where the backend can stop, long before its cap; and it is no ground for a reply."""
    model = DraftRambling(RAMBLES["R16-loop"], opening="")
    result = Guard(model, repair=Ladder([Draft()]), stop_early=True).run(FREELY[0], {"x": 1})
    assert result.status == "abstained"
    assert 2 * model.written < model.caps[0]
    assert [each.kind for each in result.attempts[-1].deviations] == ["truncated"]


def test_words_that_run_on_are_recognised_at_one_step_alone() -> None:
    """What was cut off before counts as well, once it is clear that more room is only filled."""
    step = Step("t1", instruction="How many?", type="integer", checks=[lambda step, values, claim: True])
    model = Rambling(RAMBLES["R16-words"], opening='{"t1": {"work": "')
    result = Guard(model).run(Procedure([step]))
    assert (result.status, result.usage.output_tokens < 1_000) == ("abstained", True)


def test_long_replies_that_say_something_are_given_more_room() -> None:
    """R16, the other side: a letter, and working in words, that hit the cap are asked for again with a higher one."""
    letter = " ".join(f"In the {n}th place we thank {n * n} people." for n in range(60))
    working = "; ".join(f"case {n} holds {n * 7 % 13}" for n in range(50))
    steps = [
        Step("t1", instruction="Write a letter.", type="text"),
        Step("t2", instruction="How many?", type="integer", checks=[lambda step, values, claim: True]),
    ]
    replies = {"t1": {"work": "", "value": letter}, "t2": {"work": working, "value": "7"}}
    seen: list[int] = []

    def model(request: Request) -> Completion:
        assert request.max_tokens is not None
        seen.append(request.max_tokens)
        text = json.dumps({step.id: replies[step.id] for step in request.steps})
        cut = len(text) // 4 > request.max_tokens
        return Completion(text[: 4 * request.max_tokens] if cut else text, "length" if cut else "stop")

    class Backend:
        complete = staticmethod(model)

    result = Guard(Backend(), segment=1).run(Procedure(steps))
    assert (result.status, result.values["t2"]) == ("unverified", 7)
    assert max(seen) > 160


def test_long_numbers_take_long_replies() -> None:
    """R16, the other side: numbers of hundreds of digits are no rambling; the cap that they hit is raised."""
    procedure = Procedure.parse("inputs: x, y\nt1 = x * y")
    values = {"x": 10**299 + 7, "y": 10**299 + 9}
    right = SimulatedModel(slips=Slips.none())

    class Digits:
        def complete(self, request: Request) -> Completion:
            assert request.max_tokens is not None
            text = right.complete(request).text or ""
            cut = len(text) > request.max_tokens
            return Completion(text[: request.max_tokens] if cut else text, "length" if cut else "stop")

    result = Guard(Digits(), segment=1).run(procedure, values)
    assert (result.status, result.answer) == ("verified", values["x"] * values["y"])


# Decisions


COMPARISONS = [(-140, -50), (3, 4), (4, 4), (-7, 7), (120, 99), (0, -1)]


class Guessing:
    """Right about numbers, wrong about every truth value."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._right = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        completion = self._right.complete(request)
        turned = re.sub(r"true|false", lambda word: "true" if word[0] == "false" else "false", completion.text or "")
        return Completion(turned, usage=completion.usage)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize(("x", "y"), COMPARISONS)
def test_a_wrong_comparison_is_had_by_the_difference_of_its_sides(operator: str, x: int, y: int) -> None:
    """R13: no truth value is asked a second time; a difference is, checked as any sum, and its sign decides."""
    procedure = Procedure.parse(f"inputs: x, y\nt1: boolean = x {operator} y\nt2 = x + 1")
    model = Guessing()
    result = Guard(model, segment=1).run(procedure, {"x": x, "y": y})
    assert result.status == "verified"
    assert result.values["t1"] is eval(f"{x} {operator} {y}")
    assert result.steps[0].assistance == "split"
    asked = [step.formula for request in model.requests for step in request.steps]
    assert asked[0] == f"x {operator} y"
    assert asked.count(asked[0]) == 1
    assert len(asked) == 3


def test_a_longer_comparison_is_taken_apart_without_a_truth_value() -> None:
    """R13: both sides are worked out, and their difference last."""
    procedure = Procedure.parse("inputs: x, y\nt1: boolean = x * 2 + 1 > y - 3")
    model = Guessing()
    result = Guard(model, segment=1).run(procedure, {"x": 2, "y": 9})
    assert (result.status, result.answer) == ("verified", False)
    assert [step.formula for step in model.requests[1].steps] == ["2 * 2", "p1 + 1", "9 - 3", "p2 - p3"]


def test_a_difference_that_is_wrong_decides_nothing() -> None:
    """R13: where the sign cannot be had either the step is named; whatever went wrong last, nothing is guessed."""
    procedure = Procedure.parse("inputs: x, y\nt1: boolean = x > y")
    for failing in ({"t1": "-140 + 50 = 90"}, "nonsense", {"t1": {"work": "", "value": 3}}):
        replies: list[Any] = [{"t1": "-140 > -50 = true"}, *[failing] * 9]
        model = ScriptedBackend(*replies)
        result = Guard(model, segment=1).run(procedure, {"x": -140, "y": -50})
        assert result.status == "abstained"
        assert not any(step.formula == "x > y" for request in model.requests[1:] for step in request.steps)


def _refuses(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
    return False


DECISIONS: list[tuple[str, Step, str]] = [
    ("R13-boolean", Step("ok", instruction="Is it?", type="boolean", checks=[_refuses]), "true"),
    ("R13-one-of", Step("ok", instruction="Which?", type="one_of(a, b)", checks=[_refuses]), "a"),
]


@pytest.mark.parametrize(("step", "value"), [row[1:] for row in DECISIONS], ids=[row[0] for row in DECISIONS])
@pytest.mark.parametrize("repair", [None, 4])
def test_the_reason_says_why_a_decision_is_not_asked_again(step: Step, value: str, repair: int | None) -> None:
    """R13: one call, and what to do instead."""
    options: dict[str, Any] = {} if repair is None else {"repair": repair}
    with ScriptedBackend({"ok": {"work": "", "value": value}}) as model:
        result = Guard(model, **options).run(Procedure([step]))
    assert (result.status, result.usage.calls) == ("abstained", 1)
    assert result.problem is not None
    for part in ("it was not asked again as it stands", "would be a guess", "another_model(...)", "person(...)"):
        assert part in result.problem.reason


def test_who_else_answers_a_decision_is_no_second_guess_of_the_model() -> None:
    """R13: another model and a person are asked; where they are no help, the run's own model is still not."""
    seen: Iterator[bool] = iter([False, False, True])
    step = Step("ok", instruction="Is it?", type="boolean", checks=[lambda step, values, claim: next(seen)])
    helper = ScriptedBackend({"ok": {"work": "", "value": "true"}})
    ladder = Ladder([Resample(), another_model(helper), person(lambda step, values: False)])
    with ScriptedBackend({"ok": {"work": "", "value": "true"}}) as model, helper:
        result = Guard(model, repair=ladder).run(Procedure([step]))
    assert (result.values["ok"], result.assisted) == (False, {"person": 1})
    silent = ScriptedBackend(Completion(""))
    ladder = Ladder([another_model(silent), Resample()])
    step = Step("ok", instruction="Is it?", type="boolean", checks=[_refuses])
    with ScriptedBackend({"ok": {"work": "", "value": "true"}}) as model, silent:
        assert Guard(model, repair=ladder).run(Procedure([step])).status == "abstained"


def test_what_is_asked_in_place_of_a_decision_does_not_order_its_sides() -> None:
    """R13: which side is larger is what the step asks, so that no request gives it away."""
    step = Procedure.parse("inputs: x, y\nt1: boolean = x > y").steps[0]
    shapes = set()
    for x, y in ((3, 4), (4, 3), (5, 5)):
        made = Split().stand_in(step, {"x": x, "y": y})
        assert made is not None
        shapes.add(
            (made.steps[0].formula or "").replace(str(x), "x", 1).replace(str(y), "y", 1).replace("x - x", "x - y")
        )
    assert shapes == {"x - y"}
    assert FIRST.stand_in(step, {"x": 3, "y": 4}) is None


# Documents


def test_a_document_stands_in_each_request_once() -> None:
    """G01: seven steps over 20,198 characters; see tests/engine/test_documents_in_prompts.py for the rest."""
    document = ("No. 17 | widgets | 12.00 EUR\n" * 697)[:20_198]
    steps = [Step(f"a{n}", instruction="Copy an amount.", type="integer", reads=["document"]) for n in range(1, 8)]
    sizes: list[int] = []

    class Backend:
        def complete(self, request: Request) -> Completion:
            sizes.append(sum(len(message.content) for message in request.messages))
            return Completion(json.dumps({step.id: {"work": "", "value": "12"} for step in request.steps}))

    procedure = Procedure(steps, inputs=[Input("document", "text")])
    assert Guard(Backend()).run(procedure, {"document": document}).status == "unverified"
    assert len(sizes) == 1
    assert sizes[0] < 1.15 * len(document) + 1_000
