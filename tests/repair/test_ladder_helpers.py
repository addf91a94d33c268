"""Others who answer on the ladder: another model, a person, code, rungs of one's own, and votes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ladder_harness import INPUTS, MINUS, Stubborn, never, said
from tables import all_rows

from stepguard import Budget, Guard, Ladder, Procedure, RetryPolicy, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.errors import BackendError, ConfigError
from stepguard.language.values import Value
from stepguard.repair.policy import Failures
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import Code, Resample, Rewrite, Rung, Vote, another_model, person
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once


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


@all_rows("answer", [10, "10", "10.0"])
@all_rows("kind", ["plain", "async"])
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
    guard = Guard(Stubborn(never), segment=2, repair=ladder)
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


@all_rows("ask", [lambda step, values: None, lambda step, values: 11, _fails, _raises, lambda s, v: _raises(s, v)])
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
    assert "the rung 'code' does not apply to step 'pick'" in result.problem.reason


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


def test_votes_decide_where_no_check_does() -> None:
    """Without a check the value that is ahead is taken; it is completed, and not verified."""
    with ScriptedBackend(*said("Lyon", "Paris", "Lyon", "Lyon")) as model:
        result = Guard(model, repair=Ladder([Vote(ahead=2)])).run(WORDS)
    assert (result.status, result.answer) == ("checked", "Lyon")
    assert result.weak == {"city": "agreed"}
    assert [attempt.rung for attempt in result.attempts] == ["ask", "vote", "vote", "vote"]


def test_a_vote_ends_as_soon_as_one_value_is_ahead() -> None:
    """Two that agree, with nobody against them, are two ahead."""
    with ScriptedBackend(*said("Lyon", "Lyon")) as model:
        result = Guard(model, repair=Ladder([Vote(ahead=2)])).run(WORDS)
    assert (result.answer, result.usage.calls) == ("Lyon", 2)


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
