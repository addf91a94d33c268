"""The ladder: how a step that was not accepted is asked again, rung by rung, and what records say of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from evidence_harness import FunctionModel, reply
from harness import P2
from ladder_harness import INPUTS, MINUS, Stubborn, never
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Result, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.engine.actions import Ask, Replied
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.repair.ladder import DEFAULT_RUNGS
from stepguard.repair.rungs import Draft, Isolate, Question, Resample, Rung, Split, Vote, another_model
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once

WAYS: list[tuple[str, Callable[[Request], bool], str]] = [
    ("resample", lambda request: bool(request.temperature), "none"),
    ("question", lambda request: request.messages[-1].content.startswith("Subtract"), "rephrased"),
    ("rewrite", lambda request: [step.formula for step in request.steps] == ["106 - 96"], "rewritten"),
    ("split", lambda request: len(request.steps) > 1 and request.steps[0].id == "p1", "split"),
    ("draft", lambda request: "\nWorking:\nt1 = " in request.messages[-1].content, "rephrased"),
]


@all_rows("rung, way, assistance", WAYS)
def test_every_rung_of_the_default_ladder_cures_what_only_it_can(
    rung: str, way: Callable[[Request], bool], assistance: str
) -> None:
    """A step that is right in one way of asking only is had, the attempt names the rung, the record the assistance."""
    model = Stubborn(way)
    result = Guard(model, segment=1).run(MINUS, INPUTS)
    assert (result.status, result.answer) == ("verified", 30)
    first, second = result.steps
    assert (first.value, first.assistance, second.assistance) == (10, assistance, "none")
    assert result.assisted == ({} if assistance == "none" else {assistance: 1})
    accepted = [attempt for attempt in result.attempts if attempt.outcome == "accepted"]
    assert accepted[0].rung == rung
    assert first.tries == len([a for a in result.attempts if a.outcome != "draft"]) - 1 == 1 + len(first.deviations)
    assert result.usage.calls == len(model.requests) == len(result.attempts)


def test_the_default_ladder_ends_and_names_the_step() -> None:
    """A step that comes right in no way is given up after each rung has been used as often as its bound says.

    A split is used once more where small steps are verified: here the first one of two, in two ways, and three of four.
    """
    result = Guard(Stubborn(never, "t1", "p4"), segment=1).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"
    assert not any(word in str(result.problem) for word in ("declines", "left", "guess"))  # that is no reason here
    names = [attempt.rung for attempt in result.attempts if attempt.outcome != "draft"]
    assert names[0] == "ask"
    for rung in {each.name for each in DEFAULT_RUNGS if each.applies(MINUS.steps[0], INPUTS)}:
        bound = sum(each.times for each in DEFAULT_RUNGS if each.name == rung)
        assert 1 <= names.count(rung) <= bound + 3 * (rung == "split")
    assert result.assisted == {}


def test_no_rung_of_the_default_ladder_lets_code_or_others_answer() -> None:
    """By default the run's own model performs every step, or it is not performed."""
    assert not any(rung.independent for rung in DEFAULT_RUNGS)
    assert {rung.assistance for rung in DEFAULT_RUNGS} == {"none", "rephrased", "rewritten", "split"}


def test_equal_wrong_answers_move_up_at_once() -> None:
    """The same wrong value twice is systematic: the rung is left although its bound allows more."""
    model = Stubborn(lambda request: request.messages[-1].content.startswith("Subtract"))
    result = Guard(model, segment=1, repair=Ladder([Resample(times=8), Question()])).run(MINUS, INPUTS)
    assert [attempt.rung for attempt in result.attempts[:3]] == ["ask", "resample", "question"]


def test_different_wrong_answers_use_the_bound() -> None:
    """Wrong values that differ are drawn anew: the rung is used as often as it says."""
    replies = [{"a": f"2 * 3 = {value}"} for value in (7, 8, 9, 10)]
    with ScriptedBackend(*replies, {"a": "2 * 3 = 6"}, {"b": "6 + 4 = 10"}) as model:
        result = Guard(model, segment=1, repair=Ladder([Resample(times=3), Question()])).run(P2)
    assert [attempt.rung for attempt in result.attempts] == ["ask", *["resample"] * 3, "question", "ask"]


def test_isolating_is_no_second_time_the_same_question() -> None:
    """A step that was asked alone and greedily is not asked so again; one out of a segment is."""
    model = Stubborn(never)
    ladder = Ladder([Isolate(), Resample()])
    alone = Guard(model, segment=1, repair=ladder).run(MINUS, INPUTS)
    assert [attempt.rung for attempt in alone.attempts] == ["ask", "resample"]
    together = Guard(model, segment=2, repair=ladder).run(MINUS, INPUTS)
    assert [attempt.rung for attempt in together.attempts] == ["ask", "isolate", "resample"][: len(together.attempts)]
    assert together.attempts[1].rung == "isolate"


def test_what_one_step_needed_the_next_of_its_kind_gets_first() -> None:
    """Within a run a rung that did not cure a kind of step is not tried first for the next one."""
    procedure = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = x - t1\nt3 = t2 - y")
    model = Stubborn(lambda request: request.messages[-1].content.startswith("Subtract"), "t1", "t3")
    result = Guard(model, segment=1).run(procedure, INPUTS)
    assert result.verified
    rungs = {name: [a.rung for a in result.attempts if a.steps[0].step == name] for name in ("t1", "t3")}
    tried = ["ask", "resample", "rewrite", "split", "split", "question"]  # split once more: its first part was right
    assert rungs == {"t1": tried, "t3": ["ask", "question"]}


def test_a_profile_carries_it_to_the_next_run() -> None:
    """A run with the profile of another begins where that one ended, says so, and leaves guard and profile alone."""
    model = Stubborn(lambda request: request.messages[-1].content.startswith("Subtract"))
    first = Guard(model, segment=1).run(MINUS, INPUTS)
    guard = Guard(model, segment=1, profile=first.profile)
    again = [guard.run(MINUS, INPUTS) for _ in range(2)]
    assert not first.profiled
    assert all(each.profiled for each in again)
    for each in again:
        assert [attempt.rung for attempt in each.attempts] == ["ask", "question", "ask"]
        assert each.profile.rungs["- double, wrong_value"]["question"].made == 1
    assert (first.profile + again[0].profile).rungs["- double, wrong_value"]["question"].made == 2


def test_a_profile_never_takes_the_ladder_away() -> None:
    """Where every rung was seen to be useless they are all tried all the same, the most hopeful first."""
    guard = Guard(Stubborn(never), segment=1)
    result = guard.run(MINUS, INPUTS)
    sobered = Guard(Stubborn(never), segment=1, profile=result.profile).run(MINUS, INPUTS)
    assert sobered.usage.calls == result.usage.calls > 5
    retried = Guard(Stubborn(lambda request: bool(request.temperature)), segment=1, repair=2, profile=result.profile)
    assert retried.run(MINUS, INPUTS).verified


def test_a_number_of_retries_stays_one_for_every_step() -> None:
    """Plain retries are made for each step anew, whatever they did for others of its kind."""
    tries = iter([7, 8, 9, 10, 11, 6])
    procedure = Procedure.parse("a = 2 * 3\nb = 2 * 4")

    def model(messages: list[dict[str, str]]) -> str:
        if "b = 2 * 4" in messages[-1]["content"]:
            return json.dumps({"b": f"2 * 4 = {next(wrong)}"})
        return json.dumps({"a": f"2 * 3 = {next(tries)}"})

    wrong = iter([1, 2, 3, 4, 5, 8])
    assert Guard(model, segment=1, repair=5).run(procedure).verified


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Ladder(Resample()), "a ladder has rungs such as [Resample()]"),  # type: ignore[arg-type]
    (lambda: Ladder(3), "a ladder has rungs such as [Resample()]"),  # type: ignore[arg-type]
    (lambda: Ladder([Resample(), "question"]), "a ladder has rungs such as Resample(), not 'question'"),  # type: ignore[list-item]
    (lambda: Ladder([Vote(), Vote(times=3)]), "one vote is enough: a ladder has at most one Vote"),
    (lambda: Ladder([Resample(), Question(), Resample()]), "resample stands twice in the ladder: give it times=2"),
    (lambda: Ladder(same=0), "same is a whole number of 1 or more"),
    (lambda: Ladder(few=0), "few is a whole number of 1 or more"),
    (lambda: Resample(temperature=2.5), "resample: temperature is a number from 0 to 2"),
    (lambda: Split(temperature=2.5), "split: temperature is a number from 0 to 2"),
    (lambda: Split(way="halves"), "split: way is one of 'digits', "),  # type: ignore[arg-type]
    (lambda: Question(times=0), "question: times is a whole number of 1 or more"),
    (lambda: Vote(temperature=2.5), "vote: temperature is a number from 0 to 2"),
    (lambda: Vote(ahead=10), "vote: ahead is a whole number from 1 to 9"),
    (lambda: another_model(Stubborn(never), timeout=0), "another_model: timeout is in seconds, above 0"),
    (lambda: Ladder.of(-1), "the number of retries is a whole number of 0 or more"),
]


@all_rows("made, message", WRONG)
def test_a_ladder_that_cannot_be_climbed_is_refused(made: Callable[[], object], message: str) -> None:
    """Whatever is wrong with it, the error says so and names the option."""
    with pytest.raises(ConfigError) as refused:
        made()
    assert str(refused.value).startswith(message)
    assert refused.value.option == "repair"


OPTIONS = ["a", "b", "c", "d", "e"]


@all_rows(
    "options, few, else_said, said",
    [
        (2, {}, [], "1 value is left"),
        (2, {}, ["b"], "no value is left"),
        (2, {"few": 1}, [], None),
        (3, {}, [], "2 values are left"),
        (4, {}, [], "3 values are left"),
        (5, {}, [], None),
        (5, {}, ["b"], "3 values are left"),
        (5, {"few": 5}, [], "4 values are left"),
    ],
)
def test_an_option_is_asked_for_again_where_enough_are_left(
    options: int, few: dict[str, int], else_said: list[str], said: str | None
) -> None:
    """Where fewer values than `few` are left the model gets no second guess, and the reason says how many."""
    step = Step("t", instruction="Which?", type=f"one_of({', '.join(OPTIONS[:options])})", checks=[_refuses])
    asked = ["a", "a"] if said is None else ["a"]
    others = another_model(ScriptedBackend(*[{"t": {"work": "", "value": value}} for value in else_said]))
    rungs = [others, Resample()] if else_said else [Resample()]
    with ScriptedBackend(*[{"t": {"work": "", "value": value}} for value in asked]) as model:
        result = Guard(model, repair=Ladder(rungs, **few)).run(Procedure([step]))
    assert result.status == "abstained"
    assert (said in str(result.problem)) if said else ("left" not in str(result.problem))


def _refuses(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
    return False


def test_without_rungs_a_step_is_given_up_without_a_word_on_them() -> None:
    """``repair=0`` asks once, and nothing is said of values that are left."""
    step = Step("t", instruction="Is it?", type="boolean", checks=[_refuses])
    with ScriptedBackend({"t": {"work": "", "value": "true"}}) as model:
        result = Guard(model, repair=0).run(Procedure([step]))
    assert "asked again" not in str(result.problem)


CUT = Completion('{"t": "106 -', finish_reason="length")
RIGHT = {"t": "106 - 96 = 10"}
SLIPS = [{"t": f"106 - 96 = {value}"} for value in (9, 8, 7, 6)]
SMALLER = [{"p1": "106 - 90 = 16", "t": "16 - 6 = 9"}, {"t": "16 - 6 = 8"}, {"t": "16 - 6 = 7"}]
OTHERS = [Resample(), Question(), Draft()]


@all_rows(
    "rungs, replies, status, said",
    [
        (OTHERS, [SLIPS[0], "", RIGHT], "verified", ""),
        (OTHERS, [SLIPS[0], "", ""], "abstained", "of the server, or have somebody else answer it"),
        (OTHERS, [Completion(None, refusal="no")], "abstained", "the model declines; have somebody else answer it"),
        (OTHERS, [CUT, CUT, SLIPS[0], CUT, RIGHT], "verified", ""),
        ([Resample(times=2)], [SLIPS[0], CUT, *SLIPS[1:3]], "abstained", ""),
        ([Split(times=2)], [SLIPS[0], *SMALLER], "abstained", ""),
        ([Resample(times=3)], [SLIPS[0], SLIPS[1], SLIPS[0]], "abstained", ""),
    ],
)
def test_how_long_the_model_is_asked(rungs: list[Rung], replies: list[Any], status: str, said: str) -> None:
    """One empty reply is no refusal, and what was cut off or got further no try; equal values end a rung."""
    with ScriptedBackend(*replies) as model:
        result = Guard(model, repair=Ladder(rungs)).run(Procedure.parse("t = 106 - 96"))
    assert (result.status, result.usage.calls) == (status, len(replies))
    assert said in str(result.problem)


def test_a_yes_that_could_not_be_read_is_asked_for_again() -> None:
    """Nothing was refused, so that the next answer is no guess."""
    step = Step("t", instruction="Is it?", type="boolean")
    with ScriptedBackend(*[{"t": {"work": "", "value": value}} for value in ("?", "!", "true")]) as model:
        assert Guard(model).run(Procedure([step])).values["t"] is True


DOCUMENT = Procedure.parse(
    'inputs: letter: text\na: text = "Copy the name." (reads letter)  check: grounded(letter)\n'
    'b: text = "Copy the city." (reads letter, a)  check: grounded(letter)'
)


@all_rows(
    "segment, rungs, steps",
    [
        (2, [Resample(), Question()], ["ask 0 ab", "resample 0.8 ab", "question 0 a", "ask 0 b"]),
        (1, [Resample(), Question()], ["ask 0 a", "resample 0.8 a", "question 0 a", "ask 0 b"]),
        (2, [Resample(temperature=1.0), Question()], ["ask 0 ab", "resample 1 a", "question 0 a", "ask 0 b"]),
        (2, [Isolate(), Resample()], ["ask 0 ab", "isolate 0 a", "resample 0.8 a", "ask 0 b"]),
        (2, [Resample(times=2)], ["ask 0 ab", "resample 0.8 ab", "resample 0.8 a", "ask 0 b"]),
    ],
)
def test_a_step_that_reads_a_document_leads_its_segment_once_more(
    segment: int, rungs: list[Rung], steps: list[str]
) -> None:
    """Asking it by itself would send the document twice; only then is it asked alone, in the ways of the ladder."""
    names = iter(["Bert", "Carl", "Anna"])
    model = FunctionModel(lambda step, request: reply(next(names) if step.id == "a" else "Rome"))
    result = Guard(model, segment=segment, repair=Ladder(rungs)).run(
        DOCUMENT, {"letter": "I am Anna, from Rome. " * 12}
    )
    made = zip(result.attempts, model.requests, strict=True)
    found = [f"{a.rung} {r.temperature:g} {''.join(step.id for step in r.steps)}" for a, r in made]
    assert (found, result.values["a"]) == (steps, "Anna")


# Many runs


def _run(seed: int, length: int = 12, **options: Any) -> tuple[Result, Mapping[str, Value]]:
    task = Arithmetic().make(seed, length)
    slips = Slips(wrong_value=0.25, systematic=0.5, malformed=0.03, unfaithful_work=0.03)
    guard = Guard(SimulatedModel(seed, slips=slips), seed=seed, **options)
    return guard.run(task.procedure, task.inputs), task.truth


@pytest.mark.slow
def test_on_a_bad_model_every_rung_is_used_and_nothing_wrong_is_verified() -> None:
    """Whatever the rung: what is committed is right, and tries, attempts, usage and assistance agree."""
    used: set[str] = set()
    kinds: set[str] = set()
    for seed in range(120):
        result, truth = _run(seed, segment=1 + seed % 5, parallel=1 + seed % 3)
        used |= {attempt.rung for attempt in result.attempts}
        kinds |= set(result.assisted)
        assert all(truth[record.occurrence.step] == record.value for record in result.steps)
        assert result.usage.calls == len(result.attempts)
        for each in ("rephrased", "rewritten", "split"):
            count = sum(record.assistance == each for record in result.steps)
            assert count == result.assisted.get(each, 0)
        assert result.profile.hard.well <= result.profile.hard.made
    assert used >= {rung.name for rung in DEFAULT_RUNGS} - {
        "reorder",
        "passage",
        "fields",
        "parts",
        "eliminate",
    }  # in words
    assert kinds == {"rephrased", "rewritten", "split"}


@pytest.mark.slow
def test_the_ladder_finishes_what_retries_do_not() -> None:
    """On a model whose slips are mostly systematic the ladder verifies more runs than plain retries."""
    ladder = sum(_run(seed, 20)[0].verified for seed in range(40))
    retries = sum(_run(seed, 20, repair=4)[0].verified for seed in range(40))
    assert ladder > retries + 10


def test_a_run_by_hand_meets_the_others_who_are_asked() -> None:
    """An `Ask` names the backend where it is not the run's own."""
    helper = Stubborn(lambda request: True)
    run = Guard(Stubborn(never), segment=1, repair=Ladder([another_model(helper)])).start(MINUS, INPUTS)
    own = Stubborn(never)
    while not run.done:
        for action in run.actions():
            if isinstance(action, Ask):
                backend = own if action.backend is None else helper
                run.send(Replied(action.id, backend.complete(action.request)))
            else:
                run.send(run.perform(action))
    assert run.result().verified
    assert len(helper.requests) == 1
