"""The drivers: `run`, `arun`, and a caller's own loop around the guard's backend."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import pytest
from harness import DRIVERS, GOOD, P2, P6, PAIR, driven, ids, reply, without_time

from stepguard import Budget, Guard, Ladder, Price, Procedure, RetryPolicy, Segments, Step, Usage
from stepguard.backends import Completion, Request, ToolCall
from stepguard.core.verdicts import Claim, Deviation
from stepguard.engine.actions import Action, Ask, CheckClaims, Commit, Event, Replied
from stepguard.errors import BackendError, BackendRejected, ConfigError, InputError, UnexpectedRequest, UsageError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

FAST = RetryPolicy(retries=2, first_wait=0.0)


# Options


def test_scalars_stand_for_small_objects() -> None:
    """A number is a segment size and a number of retries."""
    choices: list[dict[str, Any]] = [{"segment": 1, "repair": 1}, {"segment": Segments(1), "repair": Ladder.of(1)}]
    for options in choices:
        backend = ScriptedBackend({"a": "2 * 3 = 7"}, {"a": "2 * 3 = 8"})
        with backend:
            assert Guard(backend, **options).run(P2).status == "abstained"
        assert [len(request.steps) for request in backend.requests] == [1, 1]


@DRIVERS
def test_inputs_that_do_not_fit_are_refused_before_any_call(driver: str) -> None:
    """A missing or unknown input raises and names it."""
    with ScriptedBackend() as backend:
        for inputs in ({}, {"x": 1, "z": 2}, {"x": "many"}):
            with pytest.raises(InputError):
                driven(Guard(backend), P6, driver, inputs)


# Both drivers


@DRIVERS
def test_a_verified_run(driver: str) -> None:
    """Right replies are taken in one call a segment."""
    with ScriptedBackend({"a": "2 * 3 = 6"}, {"b": "6 + 4 = 10"}) as backend:
        result = driven(Guard(backend, segment=1), P2, driver)
    assert result.raise_for_status().answer == 10
    assert [[step.id for step in request.steps] for request in backend.requests] == [["a"], ["b"]]


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("seed", range(12))
def test_both_drivers_do_the_same(seed: int, parallel: int) -> None:
    """With one seed `run` and `arun` make the same calls and end alike; in parallel both commit nothing wrong."""
    task = Arithmetic().make(seed, 12)
    guard = Guard(SimulatedModel(seed, slips=Slips.all(0.03)), segment=4, parallel=parallel, seed=seed)
    one = without_time(guard.run(task.procedure, task.inputs))
    other = without_time(asyncio.run(guard.arun(task.procedure, task.inputs)))
    if parallel == 1:
        assert one == other
    for result in (one, other):
        assert all(record.value == task.truth[record.occurrence.step] for record in result.steps)


@DRIVERS
@pytest.mark.parametrize("parallel", [1, 4])
def test_parallel_segments(driver: str, parallel: int) -> None:
    """Independent steps may be asked at the same time by either driver, with the same values."""
    guard = Guard(SimulatedModel(slips=Slips.none()), segment=1, parallel=parallel)
    result = driven(guard, PAIR, driver, x=1, y=2)
    assert result.status == "verified"
    assert dict(result.values) == {"x": 1, "y": 2, "t1": 2, "t2": 4, "t3": 8}


@DRIVERS
def test_errors_of_the_backend_end_in_the_result(driver: str) -> None:
    """A backend error is retried where it may help, and is the error of the failed result where it does not."""
    error = BackendError("503")
    with ScriptedBackend(error, GOOD) as backend:
        assert driven(Guard(backend, retry=FAST), P2, driver).status == "verified"
    with ScriptedBackend(error, error, error) as backend:
        result = driven(Guard(backend, retry=FAST), P2, driver)
    assert (result.status, result.error) == ("failed", error)
    rejected = BackendRejected("401", status=401)
    with ScriptedBackend({"a": "2 * 3 = 6"}, rejected) as backend:
        result = driven(Guard(backend, segment=1, retry=FAST), P2, driver)
    assert (result.status, result.error, dict(result.values)) == ("failed", rejected, {"a": 6})


class _Odd:
    """A backend that breaks the contract."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def complete(self, request: Request) -> Completion:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@DRIVERS
@pytest.mark.parametrize(
    "answer",
    [ZeroDivisionError("a bug"), OSError("no route"), TimeoutError("mine"), "text", None, Completion(12)],  # type: ignore[arg-type]
)
def test_a_backend_that_breaks_its_contract_fails_the_run(driver: str, answer: object) -> None:
    """Any exception of a backend, and anything that is no completion, ends in a failed result after one call."""
    result = driven(Guard(_Odd(answer), retry=FAST), P2, driver)
    assert result.status == "failed"
    assert result.usage.calls == len(result.attempts) == 1
    assert result.problem is not None
    assert result.problem.occurrence.step == "a"
    if isinstance(answer, Exception):
        assert result.error is answer


@DRIVERS
@pytest.mark.parametrize(
    ("parts", "says"),
    [
        *(({"text": b"{}"}, "its text is bytes"), ({"finish_reason": 5}, "its finish_reason is int")),
        *(({"refusal": ["no"]}, "its refusal is list"), ({"reasoning": {"a": 1}}, "its reasoning is dict")),
        *(({"tool_calls": None}, "tool_calls"), ({"tool_calls": ({"name": "Steps"},)}, "tool_calls")),
        ({"text": None, "tool_calls": (ToolCall("Steps", {"a": 6}),)}, "tool_calls"),  # type: ignore[arg-type]
        ({"usage": None}, "its usage is no Usage"),
        ({"usage": {"prompt_tokens": 5}}, "its usage is no Usage"),
        ({"usage": Usage(calls=1, input_tokens=None)}, "its usage is no Usage"),  # type: ignore[arg-type]
        ({"usage": Usage(calls=1, input_tokens=1.5)}, "its usage is no Usage"),  # type: ignore[arg-type]
        ({"usage": Usage(calls=1, output_tokens=-5)}, "its usage is no Usage"),
        ({"usage": Usage(calls=1, output_tokens=10**5000)}, "its usage is no Usage"),
    ],
)
def test_a_completion_of_wrong_parts_fails_the_run_with_nothing_lost(
    driver: str, parts: dict[str, Any], says: str
) -> None:
    """A completion that a foreign backend put together wrongly ends the run; what was had before stays, and is told."""
    wrong = Completion(**{"text": "{}", "usage": Usage(calls=1, input_tokens=10), **parts})
    with ScriptedBackend({"a": "2 * 3 = 6"}, wrong) as backend:
        budget = Budget(price=Price(input=1, output=1))
        result = driven(Guard(backend, segment=1, budget=budget, retry=FAST), P2, driver)
    assert (result.status, dict(result.values)) == ("failed", {"a": 6})
    assert result.problem is not None
    assert says in result.problem.reason
    assert result.usage.calls == 2
    spent = result.usage.tokens - result.attempts[0].usage.tokens
    assert spent == result.attempts[1].usage.tokens == (0 if "usage" in parts else 10)
    assert json.loads(result.to_json())["attempts"][1]["error"]


@DRIVERS
def test_a_call_that_a_backend_cancels_itself_is_an_error_of_the_backend(driver: str) -> None:
    """It is tried again and ends in a result, since nobody has asked the run to end."""
    cancelled = asyncio.CancelledError("another run had asked the same")

    def cancel(request: Request) -> str:
        raise cancelled

    with ScriptedBackend({"a": "2 * 3 = 6"}, cancel, {"b": "6 + 4 = 10"}) as backend:
        assert driven(Guard(backend, segment=1, retry=FAST), P2, driver).status == "verified"
    result = driven(Guard(_Odd(cancelled), retry=FAST), P2, driver)
    assert (result.status, result.usage.calls) == ("failed", 3)
    assert result.error is not None
    assert result.error.__cause__ is cancelled


@DRIVERS
@pytest.mark.parametrize("error", [ConfigError("no key"), UnexpectedRequest("not in the script")])
def test_what_the_caller_is_to_mend_is_raised(driver: str, error: Exception) -> None:
    """A wrong configuration, and the complaint of a test double, are raised and end in no result."""
    with pytest.raises(type(error), match=str(error)):
        driven(Guard(_Odd(error)), P2, driver)


@DRIVERS
def test_an_assertion_of_a_backend_loses_nothing(driver: str) -> None:
    """It fails the run, as any other fault of a backend does, and what was verified before it is kept."""

    def assert_so(request: Request) -> str:
        raise AssertionError("the pool is closed")

    with ScriptedBackend({"a": "2 * 3 = 6"}, assert_so) as backend:
        result = driven(Guard(backend, segment=1), P2, driver)
    assert (result.status, result.usage.calls, dict(result.values)["a"]) == ("failed", 2, 6)
    assert isinstance(result.error, AssertionError)


@DRIVERS
@pytest.mark.parametrize(
    "made",
    [
        ZeroDivisionError("a fault"),
        *(None, "2 * 3 = 6"),
        Claim("b", ("2 * 3",), "6", "2 * 3 = 6"),
        Claim("a", ("2 * 3",), 6, "2 * 3 = 6"),  # type: ignore[arg-type]
        Claim("a", (6,), "6", "2 * 3 = 6"),  # type: ignore[arg-type]
        Deviation("nothing", "a"),  # type: ignore[arg-type]
    ],
)
def test_a_reply_format_that_breaks_its_contract_fails_the_run(driver: str, made: object) -> None:
    """A reply format of the user's that raises, or makes no claim of text, ends the run with the call in its books."""
    from stepguard.replies.formats import EquationFormat

    class Broken(EquationFormat):
        def claim(self, step: Step, field: object) -> Claim | Deviation:
            if isinstance(made, Exception):
                raise made
            return made  # type: ignore[return-value]

    with ScriptedBackend(GOOD) as backend:
        result = driven(Guard(backend, reply_format=Broken()), P2, driver)
    assert result.status == "failed"
    assert isinstance(result.error, ZeroDivisionError | TypeError)
    assert result.usage.tokens == result.attempts[0].usage.tokens > 0


@DRIVERS
def test_an_observer_sees_every_action_with_its_event(driver: str) -> None:
    """The observer is called once for each action, in the order in which they were answered."""
    seen: list[tuple[Action, Event]] = []
    with ScriptedBackend(GOOD) as backend:
        driven(Guard(backend, observer=lambda action, event: seen.append((action, event))), P2, driver)
    assert [type(action) for action, _ in seen] == [Ask, CheckClaims, Commit]
    assert all(getattr(event, "id", None) == action.id for action, event in seen)


@DRIVERS
def test_an_observer_that_raises_costs_nothing(driver: str, caplog: pytest.LogCaptureFixture) -> None:
    """What an observer raises is logged; the run goes on."""

    def broken(action: Action, event: Event) -> None:
        raise ZeroDivisionError("a fault")

    with caplog.at_level(logging.ERROR, "stepguard"), ScriptedBackend(GOOD) as backend:
        result = driven(Guard(backend, observer=broken), P2, driver)
    assert result.status == "verified"
    assert len(caplog.records) == 3
    assert "a fault" in caplog.text


@DRIVERS
def test_a_user_check_that_raises_is_undecided(driver: str) -> None:
    """A check that crashes neither passes nor stops the program: the step is not verified."""

    def broken(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise ZeroDivisionError("a fault")

    procedure = Procedure([Step("a", "2 * 3", checks=[broken])])
    with ScriptedBackend({"a": "2 * 3 = 6"}) as backend:
        result = driven(Guard(backend, repair=0), procedure, driver)
    assert result.status == "abstained"
    assert [each.kind for each in result.attempts[0].deviations] == ["undecided"]


def test_a_user_check_that_returns_no_verdict_is_told_what_to_return() -> None:
    """What a check returned is undecided where it is no verdict, and the reason says what one is."""

    def says(*_: object) -> Any:
        return "yes"

    procedure = Procedure([Step("a", "2 * 3", checks=[says])])
    with ScriptedBackend({"a": "2 * 3 = 6"}) as backend:
        result = Guard(backend, repair=0).run(procedure)
    assert result.status == "abstained"
    assert "returned str, not True, False, None or a Verdict" in result.attempts[0].deviations[0].reason


# The caller's own loop


def test_the_loop_of_the_documentation() -> None:
    """A run can be driven by hand, with another model than the guard's; the guard's is never called."""
    with ScriptedBackend() as unused:
        run = Guard(unused).start(P2)
        while not run.done:
            for action in run.actions():
                if isinstance(action, Ask):
                    run.send(Replied(action.id, reply(GOOD)))
                else:
                    run.send(run.perform(action))
    assert run.result().answer == 10


def test_perform_makes_no_model_call() -> None:
    """An ask is the caller's to answer."""
    run = Guard(ScriptedBackend()).start(P2)
    (ask,) = run.actions()
    with pytest.raises(UsageError, match="no model call"):
        run.perform(ask)


@DRIVERS
def test_a_run_can_be_handed_to_the_guard(driver: str) -> None:
    """A run that was begun by hand can be carried to its end by the guard; a finished one is left as it is."""
    with ScriptedBackend({"b": "6 + 4 = 10"}) as backend:
        guard = Guard(backend, segment=1)
        run = guard.start(P2)
        (ask,) = run.actions()
        run.send(Replied(ask.id, reply({"a": "2 * 3 = 6"})))
        for _ in range(2):
            result = guard.drive(run) if driver == "run" else asyncio.run(guard.adrive(run))
            assert result.status == "verified"
            assert result.usage.calls == 2


@DRIVERS
def test_a_run_whose_actions_are_elsewhere_cannot_be_driven(driver: str) -> None:
    """Instead of waiting for ever for an event that only the caller can send, driving it raises; the run goes on."""
    guard = Guard(ScriptedBackend())
    run = guard.start(P2)
    (ask,) = run.actions()
    with pytest.raises(UsageError, match="outstanding elsewhere"):
        _ = guard.drive(run) if driver == "run" else asyncio.run(guard.adrive(run))
    run.send(Replied(ask.id, reply(GOOD)))
    assert guard.drive(run).answer == 10


def test_an_interrupted_run_keeps_what_it_had() -> None:
    """KeyboardInterrupt goes through `drive`, and the run holds what was verified and spent."""
    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}, lambda request: _interrupt()), segment=1)
    run = guard.start(P2)
    with pytest.raises(KeyboardInterrupt):
        guard.drive(run)
    assert run.done
    assert dict(run.values) == {"a": 6}
    result = run.result()
    assert (result.status, result.usage.calls) == ("failed", 2)
    assert str(result.problem) == "step b: interrupted"


def _interrupt() -> str:
    raise KeyboardInterrupt


def test_a_deadline_holds_in_real_time() -> None:
    """A model that is too slow exhausts the run after the call in flight."""

    def slow(messages: object) -> str:
        time.sleep(0.5)
        return '{"t1": "1 + 1 = 2"}'

    result = Guard(slow, segment=1, budget=Budget(seconds=0.4)).run(P6, {"x": 1})
    assert result.status == "exhausted"
    assert result.usage.calls == 1
    assert dict(result.values) == {"x": 1, "t1": 2}


def test_the_request_holds_what_is_asked() -> None:
    """A backend finds in the request the steps, the values they read, the way of sampling and the try."""
    with ScriptedBackend({"a": "2 * 3 = 5"}, {"a": "2 * 3 = 6"}, {"b": "6 + 4 = 10"}) as backend:
        Guard(backend, segment=1).run(P2)
    first, again, last = backend.requests
    assert (first.temperature, first.attempt, dict(first.values)) == (0.0, 1, {})
    assert (again.temperature, again.attempt) == (0.8, 2)
    assert again.seed != first.seed
    assert (last.temperature, last.attempt, dict(last.values)) == (0.0, 1, {"a": 6})
    assert ids(Ask("", last)) == ["b"]
