"""The ladder: how a step that was not accepted is asked again, rung by rung, and what records say of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from harness import GOOD, P2

from stepguard import Budget, Guard, Ladder, Procedure, Result, RetryPolicy, Step, Usage
from stepguard.backends import Completion, Request, ToolCall
from stepguard.core.verdicts import Claim
from stepguard.engine.actions import Ask, Replied
from stepguard.errors import BackendError, ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.repair.ladder import DEFAULT_RUNGS
from stepguard.repair.policy import Failures
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import (
    Code,
    Draft,
    Isolate,
    Question,
    Resample,
    Rewrite,
    Rung,
    Split,
    Vote,
    another_model,
    person,
)
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once

MINUS = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = t1 * 3")
INPUTS = {"x": -96, "y": -106}


class Stubborn:
    """Right about everything, but for the steps named, which it gets wrong unless they are asked in one way."""

    def __init__(self, way: Callable[[Request], bool], *steps: str) -> None:
        self.way = way
        self.steps = steps or ("t1",)
        self.right = SimulatedModel(slips=Slips.none())
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        completion = self.right.complete(request)
        if request.reply_format is None or self.way(request):
            return completion
        said: dict[str, Any] = json.loads(completion.text or "")
        for step in self.steps:
            if step in said:
                work, _, value = said[step].rpartition(" = ")
                said[step] = f"{work} = {int(value) + 1}"
        return Completion(json.dumps(said), usage=completion.usage)


def never(request: Request) -> bool:
    return False


WAYS: list[tuple[str, Callable[[Request], bool], str]] = [
    ("resample", lambda request: bool(request.temperature), "none"),
    ("question", lambda request: request.messages[-1].content.startswith("Subtract"), "rephrased"),
    ("rewrite", lambda request: [step.formula for step in request.steps] == ["106 - 96"], "rewritten"),
    ("split", lambda request: len(request.steps) > 1 and request.steps[0].id == "p1", "split"),
    ("draft", lambda request: "\nWorking:\nt1 = " in request.messages[-1].content, "rephrased"),
]


@pytest.mark.parametrize(("rung", "way", "assistance"), WAYS, ids=[each[0] for each in WAYS])
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

    A split is used once more for every small step that is verified: here the first one of two, in two ways.
    """
    result = Guard(Stubborn(never), segment=1).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"
    names = [attempt.rung for attempt in result.attempts if attempt.outcome != "draft"]
    assert names[0] == "ask"
    for rung in {each.name for each in DEFAULT_RUNGS}:
        bound = sum(each.times for each in DEFAULT_RUNGS if each.name == rung)
        assert 1 <= names.count(rung) <= bound + 2 * (rung == "split")
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


# Others who answer


def test_another_model_is_asked_and_named() -> None:
    """What the run's own model cannot do another one does: checked all the same, and told."""
    helper = Stubborn(lambda request: True)
    result = Guard(Stubborn(never), segment=1, repair=Ladder([another_model(helper)])).run(MINUS, INPUTS)
    assert result.verified
    assert result.assisted == {"model": 1}
    assert [attempt.rung for attempt in result.attempts] == ["ask", "another_model", "ask"]
    assert len(helper.requests) == 1
    assert result.usage.calls == 3
    stubborn = Guard(Stubborn(never), segment=1, repair=Ladder([another_model(Stubborn(never))])).run(MINUS, INPUTS)
    assert stubborn.status == "abstained"


@pytest.mark.parametrize("answer", [10, "10", "10.0"])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_person_is_asked_and_named(answer: object, kind: str) -> None:
    """A callback gives a value for the step, which is checked; the record says that a person gave it."""
    seen: list[tuple[str, Mapping[str, Value]]] = []

    def ask(step: Step, values: Mapping[str, Value]) -> object:
        seen.append((step.id, dict(values)))
        return answer

    async def ask_later(step: Step, values: Mapping[str, Value]) -> object:
        await asyncio.sleep(0)
        return ask(step, values)

    ladder = Ladder([person(ask if kind == "plain" else ask_later)])
    guard = Guard(Stubborn(never), segment=1, repair=ladder)
    if kind == "async":
        with pytest.raises(ConfigError, match="arun"):
            guard.run(MINUS, INPUTS)
    result = asyncio.run(guard.arun(MINUS, INPUTS))
    assert result.verified
    assert result.assisted == {"person": 1}
    assert seen == [("t1", {"x": -96, "y": -106})]


async def _raises(step: Step, values: Mapping[str, Value]) -> object:
    raise TimeoutError


def _fails(step: Step, values: Mapping[str, Value]) -> object:
    raise ValueError("I am out")


@pytest.mark.parametrize(
    "ask", [lambda step, values: None, lambda step, values: 11, _fails, _raises, lambda s, v: _raises(s, v)]
)
def test_a_person_who_is_no_help_ends_the_rung_and_not_the_run(ask: Callable[..., object]) -> None:
    """Not knowing, a wrong value and an exception lead to the next rung; nothing wrong is taken."""
    guard = Guard(Stubborn(never), segment=1, repair=Ladder([person(ask), Code()]))
    result = asyncio.run(guard.arun(MINUS, INPUTS))
    assert result.verified
    assert result.assisted == {"code": 1}
    assert [attempt.rung for attempt in result.attempts] == ["ask", "person", "ask"]


def test_a_person_is_waited_for_only_so_long() -> None:
    """The time-out of a person holds without a loop as well, and the person is not asked again."""
    asked: list[str] = []

    def slow(step: Step, values: Mapping[str, Value]) -> object:
        asked.append(step.id)
        time.sleep(5)
        return 10

    result = Guard(Stubborn(never), segment=1, repair=Ladder([person(slow, timeout=0.05), Code()])).run(MINUS, INPUTS)
    assert result.verified
    assert asked == ["t1"]
    assert result.attempts[1].outcome == "error"
    assert result.seconds < 4


def test_a_model_that_does_not_answer_ends_the_rung_and_not_the_run() -> None:
    """Where another model is down the ladder goes on; the failed calls are told."""

    class Down:
        def complete(self, request: Request) -> Completion:
            raise BackendError("it is down", retryable=True)

    guard = Guard(
        Stubborn(never),
        segment=1,
        retry=RetryPolicy(retries=1, first_wait=0),
        repair=Ladder([another_model(Down()), Code()]),
    )
    result = guard.run(MINUS, INPUTS)
    assert result.verified
    assert [attempt.rung for attempt in result.attempts] == ["ask", "another_model", "another_model", "ask"]


def test_after_a_refusal_others_are_asked() -> None:
    """The model that declined is not asked again; another one is. One that declines keeps nobody else from it."""
    declining = ScriptedBackend(Completion(None, refusal="no"), {"t2": "10 * 3 = 30"})
    with declining:
        result = Guard(declining, segment=1, repair=Ladder([Resample(), Code()])).run(MINUS, INPUTS)
    assert result.verified
    assert result.assisted == {"code": 1}
    ladder = Ladder([person(lambda step, values: None), Resample()])
    result = Guard(Stubborn(lambda request: bool(request.temperature)), segment=1, repair=ladder).run(MINUS, INPUTS)
    assert result.verified
    assert [attempt.rung for attempt in result.attempts] == ["ask", "person", "resample", "ask"]


def test_code_performs_what_no_rung_cured_and_says_so() -> None:
    """The last rung may be code: the step is verified, and counted as code's."""
    result = Guard(Stubborn(never), segment=2, repair=Ladder([Resample(), Code()])).run(MINUS, INPUTS)
    assert result.verified
    assert (result.steps[0].assistance, result.steps[0].claim) == ("code", None)
    assert result.assisted == {"code": 1}
    assert result.profile.hard.made == result.profile.hard.well == 1


def test_a_policy_that_names_a_rung_that_does_not_apply_ends_the_run_as_failed() -> None:
    """Code cannot perform words: a policy that wants it is at fault, and nothing is lost."""

    class Wrong:
        def next(self, failures: Failures) -> Rung | None:
            return Code()

    step = Step("pick", instruction="Which?", type="one_of(a, b)", checks=[lambda step, values, claim: False])
    with ScriptedBackend({"pick": {"work": "", "value": "a"}}) as model:
        result = Guard(model, repair=Wrong()).run(Procedure([step]))
    assert result.status == "failed"
    assert result.problem is not None
    assert "does not apply" in result.problem.reason


class _Misused:
    def complete(self, request: Request) -> Completion:
        raise ConfigError("no key is set")


class _Garbled:
    def complete(self, request: Request) -> Completion:
        return Completion(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("helper", [_Misused(), _Garbled()])
@pytest.mark.parametrize("driver", ["run", "arun"])
def test_a_helper_that_is_set_up_wrongly_ends_the_rung_and_not_the_run(helper: Any, driver: str) -> None:
    """A missing key or a made-up completion of somebody else loses nothing of the run."""
    guard = Guard(Stubborn(never), segment=1, repair=Ladder([another_model(helper), Code()]))
    result = guard.run(MINUS, INPUTS) if driver == "run" else asyncio.run(guard.arun(MINUS, INPUTS))
    assert result.verified
    assert [attempt.outcome for attempt in result.attempts] == ["rejected", "error", "accepted"]


def test_a_garbled_reply_of_a_helper_counts_against_its_step() -> None:
    """The budget for one step is spent by what somebody else was asked in vain, too."""
    ladder, budget = Ladder([another_model(_Garbled(), times=9)]), Budget(per_step=Budget(calls=3))
    result = Guard(Stubborn(never), segment=1, repair=ladder, budget=budget).run(MINUS, INPUTS)
    assert (result.status, result.usage.calls) == ("exhausted", 3)


def test_a_rung_of_your_own_that_raises_ends_the_run_as_failed() -> None:
    """Nothing is raised, and what was verified is kept."""

    class Broken(Rewrite):
        def stand_in(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
            if values.get("t1") == 10:
                raise ZeroDivisionError("a fault")
            return None

        def applies(self, step: Step, values: Mapping[str, Value]) -> bool:
            return True

    result = Guard(Stubborn(never, "t2"), segment=1, repair=Ladder([Broken()])).run(MINUS, INPUTS)
    assert (result.status, result.values["t1"], result.usage.calls) == ("failed", 10, 2)
    assert isinstance(result.error, ZeroDivisionError)


def test_others_are_asked_no_earlier_for_what_was_learned() -> None:
    """What seldom cured is put behind the other ways of asking the run's own model, not behind code or a person."""
    procedure = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = x - t1\nt3 = t2 - y")
    model = Stubborn(never, "t1", "t3")
    result = Guard(model, segment=1, repair=Ladder([Resample(), Code()])).run(procedure, INPUTS)
    assert [attempt.rung for attempt in result.attempts] == ["ask", "resample", "ask", "ask", "resample"]
    assert result.assisted == {"code": 2}


def test_rungs_of_your_own_are_held_to_what_they_say() -> None:
    """Help by others is called so, a question asks one step, and code performs no words."""
    with pytest.raises(ConfigError, match="assistance"):
        Rung("x", backend=Stubborn(never))
    helper = Stubborn(lambda request: True)
    ladder = Ladder([Rung("helper", backend=helper, assistance="model")])
    result = Guard(Stubborn(never), segment=3, repair=ladder).run(MINUS, INPUTS)
    assert result.assisted == {"model": 1}
    assert [len(request.steps) for request in helper.requests] == [1]
    assert not Rung("q", wording="question").plain
    assert not Rung("c", assistance="code").applies(Step("a", instruction="Say it."), {})


# Votes


WORDS = Procedure([Step("city", instruction="Which city is meant?")])


def said(*answers: str) -> list[dict[str, object]]:
    return [{"city": {"work": "", "value": answer}} for answer in answers]


def test_votes_decide_where_no_check_does() -> None:
    """Without a check the value that is ahead is taken; it is completed, and not verified."""
    with ScriptedBackend(*said("Lyon", "Paris", "Lyon", "Lyon")) as model:
        result = Guard(model, repair=Ladder([Vote(ahead=2)])).run(WORDS)
    assert (result.status, result.answer) == ("checked", "Lyon")
    assert result.weak == {"city": "agreed"}
    assert [attempt.rung for attempt in result.attempts] == ["ask", "vote", "vote", "vote"]


def test_a_vote_without_a_winner_ends_in_abstention() -> None:
    """Where nobody gets ahead the step is given up after as many votes as the bound allows."""
    with ScriptedBackend(*said("a", "b", "a", "b")) as model:
        result = Guard(model, repair=Ladder([Vote(ahead=2, times=3)])).run(WORDS)
    assert result.status == "abstained"


def test_a_vote_that_cannot_be_read_is_given_again() -> None:
    """A malformed reply is no vote, and the vote goes on."""
    with ScriptedBackend(*said("a", "b"), "nonsense", *said("b", "b")) as model:
        result = Guard(model, repair=Ladder([Vote(ahead=2)])).run(WORDS)
    assert (result.status, result.answer) == ("checked", "b")


def test_who_is_behind_an_undecided_vote_is_asked() -> None:
    """Where no value gets ahead others decide, and what they say is not outvoted."""
    for rungs in (
        [Vote(ahead=2, times=3), person(lambda step, values: "Lyon")],
        [person(lambda s, v: "Lyon"), Vote(times=3)],
    ):
        with ScriptedBackend(*said("a", "b", "a", "b")) as model:
            result = Guard(model, repair=Ladder(rungs)).run(WORDS)
        assert (result.status, result.answer) == ("unverified", "Lyon")


def test_a_vote_gives_no_second_guess() -> None:
    """A check that decides later ends the vote: a truth value that it found wrong is not guessed again."""
    calls = 0

    def shaky(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("not now")
        return values["ok"] is True

    step = Step("ok", instruction="Is it?", type="boolean", checks=[shaky])
    replies = [{"ok": {"work": "", "value": value}} for value in ("false", "false", "true")]
    result = Guard(ScriptedBackend(*replies), repair=Ladder([Vote()])).run(Procedure([step]))
    assert result.status == "abstained"


def test_what_a_check_decides_is_not_put_to_the_vote() -> None:
    """A wrong value stays wrong, however many say it."""
    model = Stubborn(never)
    result = Guard(model, segment=1, repair=Ladder([Resample(), Vote()])).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert [attempt.rung for attempt in result.attempts] == ["ask", "resample"]


# What it costs, and what it says


@pytest.mark.parametrize(
    ("budget", "outcomes"),
    [
        (Budget(calls=2), ["rejected"]),
        (Budget(per_step=Budget(calls=2)), ["rejected"]),
        (Budget(calls=3), ["rejected", "draft", "rejected"]),
        (Budget(tokens=200), ["rejected", "draft"]),
    ],
)
def test_a_draft_is_not_asked_for_where_the_reply_made_of_it_cannot_be(budget: Budget, outcomes: list[str]) -> None:
    """It takes two calls; other limits hold between them, too, and the draft is kept."""
    spent = Usage(calls=1, input_tokens=100)
    model = ScriptedBackend(*(Completion(text, usage=spent) for text in ('{"t1": "-96 - (-106) = 11"}', "9", "{}")))
    result = Guard(model, segment=1, repair=Ladder([Draft()]), budget=budget).run(MINUS, INPUTS)
    assert [attempt.outcome for attempt in result.attempts] == outcomes
    assert result.status == ("abstained" if len(outcomes) > 2 else "exhausted")


DRAFTS: list[tuple[Completion, str]] = [
    (Completion("  "), "empty"),
    (Completion("First, -96", finish_reason="length"), "truncated"),
    (Completion(None, refusal="no"), "refused"),
    (Completion("", finish_reason="content_filter"), "refused"),
]


@pytest.mark.parametrize(("draft", "kind"), DRAFTS)
def test_a_draft_that_is_none_is_not_used(draft: Completion, kind: str) -> None:
    """Working that is empty, cut off or declined is no ground for a reply."""
    model = ScriptedBackend({"t1": "-96 - (-106) = 11"}, *[draft] * 6)
    result = Guard(model, segment=1, repair=Ladder([Draft()])).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert next(each.kind for attempt in result.attempts[1:] for each in attempt.deviations) == kind
    assert all(request.reply_format is None for request in model.requests[1:])


def test_a_draft_may_hold_anything() -> None:
    """Lone surrogates, control characters and endless working make the next request neither fail nor grow."""
    for draft in ("\ud800 is it", "x" * 100_000, "<think>hm</think>ten\x00"):
        model = ScriptedBackend({"t1": "-96 - (-106) = 11"}, draft, {"t1": "-96 - (-106) = 10"}, {"t2": "10 * 3 = 30"})
        with model:
            assert Guard(model, segment=1, repair=Ladder([Draft()])).run(MINUS, INPUTS).verified
        text = model.requests[2].messages[-1].content
        text.encode()
        assert len(text) < 5_000
        assert "<think>" not in text


def test_a_stand_in_that_fails_is_told_once() -> None:
    """What is wrong with a part is told as a deviation of the step, once, and nothing of it is taken."""
    with ScriptedBackend({"t1": "-96 - (-106) = 11"}, {"p1": "106 - 90 = 15", "t1": "15 - 6 = 9"}) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(MINUS, INPUTS)
    assert result.status == "abstained"
    assert [(each.step, each.kind) for each in result.attempts[1].deviations] == [("t1", "wrong_value")]
    assert "p1" in result.attempts[1].deviations[0].reason


def test_a_wrong_part_cannot_make_a_right_step() -> None:
    """The parts are checked one by one: two errors that cancel are two errors."""
    with ScriptedBackend({"t1": "-96 - (-106) = 11"}, {"p1": "106 - 90 = 15", "t1": "15 - 6 = 10"}) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(MINUS, INPUTS)
    assert result.status == "abstained"


def test_checks_of_yours_judge_what_a_stand_in_leads_to() -> None:
    """A check on the step is asked about its value, whichever way that was had."""
    seen: list[Value] = []

    def below(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        seen.append(values["t1"])
        return len(seen) > 2

    procedure = Procedure([Step("t1", "x - y", checks=[below])], inputs=["x", "y"])
    model = Stubborn(lambda request: True)
    result = Guard(model, repair=Ladder([Rewrite(), Split()])).run(procedure, INPUTS)
    assert result.verified
    assert seen == [10, 10, 10]
    assert result.steps[0].assistance == "split"


def test_an_observing_run_is_not_assisted() -> None:
    """It takes claims as they stand; a ladder that would help is refused when the guard is made."""
    with pytest.raises(ConfigError, match="observing"):
        Guard(Stubborn(never), observe=True, repair=Ladder())
    result = Guard(Stubborn(never), segment=1, observe=True).run(MINUS, INPUTS)
    assert (result.status, result.answer, result.assisted) == ("unverified", 33, {})


def test_a_run_says_where_the_form_costs_more_than_the_content() -> None:
    """A model that cannot keep to the form is told apart from one that is wrong."""
    procedure = Procedure.parse("a = 1 + 1\nb = a + 1\nc = b + 1")
    entries = {"a": "1 + 1 = 2", "b": "2 + 1 = 3", "c": "3 + 1 = 4"}
    replies: list[str | Mapping[str, object]] = []
    for name, entry in entries.items():
        replies += ["no JSON at all", {name: entry}]
    with ScriptedBackend(*replies) as model:
        result = Guard(model, segment=1).run(procedure)
    assert result.verified
    assert len(result.notes) == 1
    assert "malformed 3" in result.notes[0]
    assert "3 of 6 replies" in result.notes[0]
    assert Guard(SimulatedModel(slips=Slips.none())).run(procedure).notes == ()


def test_a_reply_that_was_cut_off_is_asked_again_in_the_same_way() -> None:
    """A question, a stand-in and another model get a higher cap where theirs was too low; none changes the segments."""
    cut = Completion('{"t1": "-96', finish_reason="length")
    for rung in (Question(), Rewrite(), another_model(ScriptedBackend(cut, {"t1": "-96 - (-106) = 10"}))):
        own: list[Completion | Mapping[str, object]] = [{"t1": "-96 - (-106) = 11"}]
        if rung.backend is None:
            own += [cut, {"t1": "106 - 96 = 10"}]
        model = ScriptedBackend(*own, {"t2": "10 * 3 = 30"})
        result = Guard(model, segment=1, repair=Ladder([rung])).run(MINUS, INPUTS)
        assert result.verified
        assert [attempt.rung for attempt in result.attempts] == ["ask", rung.name, rung.name, "ask"]


def test_a_reply_that_never_ends_is_asked_for_in_other_ways() -> None:
    """After two higher caps the ladder goes on: sampled, a model that loops may come to an end."""

    class Looping(Stubborn):
        def complete(self, request: Request) -> Completion:
            self.requests.append(request)
            if not request.temperature:
                return Completion('{"t1": "1 1 1 1', finish_reason="length")
            return self.right.complete(request)

    model = Looping(never)
    result = Guard(model, segment=1).run(Procedure.parse("inputs: x, y\nt1 = x - y"), INPUTS)
    assert result.verified
    assert [attempt.rung for attempt in result.attempts] == ["ask", "longer", "longer", "resample"]


def test_a_cap_is_not_raised_for_ever() -> None:
    """However many replies are cut off in a run, none is allowed more than sixteen times what it may take at first."""
    right = SimulatedModel(slips=Slips.none())
    caps: list[int] = []
    seen = 0

    class Cutting:
        def complete(self, request: Request) -> Completion:
            nonlocal seen
            seen += 1
            caps.append(request.max_tokens or 0)
            return Completion("{", finish_reason="length") if seen % 4 == 0 else right.complete(request)

    task = Arithmetic().make(1, 60)
    assert Guard(Cutting(), segment=4).run(task.procedure, task.inputs).verified
    assert max(caps) <= 16 * (64 + 96 * 4)


# The same reply again and again


WRONG_TOOL = Completion(None, "tool_calls", tool_calls=(ToolCall("final_answer", '{"a": "2 * 3 = 6"}'),))


@pytest.mark.parametrize(
    "said",
    [WRONG_TOOL, "I would rather talk about it.", {"answer": 10}, {"a": None}],
    ids=["tool", "prose", "key", "form"],
)
@pytest.mark.parametrize("segment", [1, 2])
def test_the_same_reply_that_cannot_be_read_ends_the_climb(said: Any, segment: int) -> None:
    """What comes back in three ways of asking, word for word, is not asked for in the others."""
    with ScriptedBackend(*[said] * 3) as model:
        result = Guard(model, segment=segment).run(P2)
    assert (result.status, result.usage.calls) == ("abstained", 3)


@pytest.mark.parametrize("said", [lambda at: f"I would rather talk: {at}", lambda at: {"a": f"2 * 3 = {at}"}])
def test_replies_that_differ_climb_to_the_end(said: Callable[[int], object]) -> None:
    """Replies that cannot be read but differ, and wrong values, use the rungs that there are."""
    replies: Any = [said(7 + at % 2) for at in range(40)]
    result = Guard(ScriptedBackend(*replies), segment=1).run(P2)
    assert result.status == "abstained"
    assert result.usage.calls > 6


def test_behind_the_same_reply_others_are_asked() -> None:
    """A model that is deaf to every way of asking does not keep code from answering."""
    rungs = [Resample(), Question(), Draft(), Code()]
    result = Guard(ScriptedBackend(*["no"] * 3, GOOD), segment=2, repair=Ladder(rungs)).run(P2)
    assert result.attempts[2].rung == "question"
    assert result.values["a"] == 6
    assert result.assisted["code"] >= 1


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
    assert used >= {rung.name for rung in DEFAULT_RUNGS}
    assert kinds == {"rephrased", "rewritten", "split"}


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
