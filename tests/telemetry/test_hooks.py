"""Hooks: a host is told of a run from its start to its end, and may set the context in which calls are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest
from harness import DRIVERS, GOOD, P2, PAIR, driven

from stepguard import Guard, Procedure, Result, RetryPolicy, Run, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.engine.actions import Action, Ask, Event
from stepguard.errors import BackendError, ConfigError, UsageError
from stepguard.language.values import Value, to_exact
from stepguard.results import Attempt
from stepguard.telemetry.hooks import Hooks
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

HERE: ContextVar[str] = ContextVar("here", default="nowhere")


class Diary(Hooks):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Any]] = []

    def started(self, run: Run) -> None:
        self.told.append((run.id, "started", None))

    def performing(self, run: Run, action: Action) -> None:
        self.told.append((run.id, "performing", type(action).__name__))

    def performed(self, run: Run, action: Action, event: Event) -> None:
        self.told.append((run.id, "performed", type(action).__name__))

    def attempted(self, run: Run, attempt: Attempt) -> None:
        self.told.append((run.id, "attempted", attempt))

    def done(self, run: Run, result: Result) -> None:
        self.told.append((run.id, "done", result))

    def of(self, kind: str) -> list[Any]:
        return [fact for _, name, fact in self.told if name == kind]


class Place(Hooks):
    """Has every action performed with a context variable set to the id of the run."""

    @contextmanager
    def performing(self, run: Run, action: Action) -> Iterator[None]:
        before = HERE.set(run.id)
        try:
            yield
        finally:
            HERE.reset(before)


@DRIVERS
def test_hooks_are_told_of_a_run_in_its_order(driver: str) -> None:
    """The start, each action before and after it, each attempt when it is done with, and the end with the result."""
    diary = Diary()
    with ScriptedBackend(GOOD) as backend:
        result = driven(Guard(backend, observer=diary), P2, driver)
    assert [(kind, fact) for _, kind, fact in diary.told] == [
        ("started", None),
        ("performing", "Ask"),
        ("performed", "Ask"),
        ("performing", "CheckClaims"),
        ("performed", "CheckClaims"),
        ("performing", "Commit"),
        ("performed", "Commit"),
        ("attempted", result.attempts[0]),
        ("done", result),
    ]
    assert {id for id, _, _ in diary.told} == {result.run_id}


@DRIVERS
def test_every_attempt_is_told_once(driver: str) -> None:
    """Replies accepted in part, empty ones and those that never came are told, also with a history of 1."""
    diary = Diary()
    script = ({"a": "2 * 3 = 6", "b": "6 + 4 = 11"}, "", BackendError("busy"), {"b": "6 + 4 = 10"})
    with ScriptedBackend(*script) as backend:
        guard = Guard(backend, observer=diary, history=1, retry=RetryPolicy(first_wait=0.0))
        assert driven(guard, P2, driver).answer == 10
    told = diary.of("attempted")
    assert [attempt.number for attempt in told] == [1, 2, 3, 4]
    assert [attempt.outcome for attempt in told] == ["partly", "rejected", "error", "accepted"]
    assert [[each.kind for each in attempt.deviations] for attempt in told] == [["wrong_value"], ["empty"], [], []]


@DRIVERS
def test_several_observers_are_all_told(driver: str) -> None:
    """Hooks and functions of action and event stand beside each other."""
    diaries, seen = [Diary(), Diary()], []
    with ScriptedBackend(GOOD) as backend:
        guard = Guard(backend, observer=[diaries[0], lambda action, event: seen.append(type(action)), diaries[1]])
        driven(guard, P2, driver)
    assert diaries[0].told == diaries[1].told
    assert len(seen) == len(diaries[0].of("performed")) == 3


class Broken(Hooks):
    """Fails wherever it is called."""

    def __init__(self, *, entered: bool) -> None:
        self._entered = entered

    def _fail(self, *what: object) -> Any:
        raise ZeroDivisionError("a fault")

    started = performed = attempted = done = _fail

    def performing(self, run: Run, action: Action) -> AbstractContextManager[None]:
        @contextmanager
        def broken() -> Iterator[None]:
            if not self._entered:
                raise ZeroDivisionError("a fault")
            yield
            raise ZeroDivisionError("a fault")

        return broken()


@DRIVERS
@pytest.mark.parametrize("entered", [False, True])
def test_hooks_that_raise_cost_nothing(driver: str, entered: bool, caplog: pytest.LogCaptureFixture) -> None:
    """What a hook or its context raises is logged; the run and the other hooks go on."""
    diary = Diary()
    with caplog.at_level(logging.ERROR, "stepguard"), ScriptedBackend(GOOD) as backend:
        result = driven(Guard(backend, observer=[Broken(entered=entered), diary, Place()]), P2, driver)
    assert result.verified
    assert len(diary.told) == 9
    assert len(caplog.records) == 9


@DRIVERS
def test_a_context_cannot_swallow_what_is_raised_in_it(driver: str) -> None:
    """A hook that suppresses everything does not keep an exception from the caller."""

    class Swallows(Hooks):
        @contextmanager
        def performing(self, run: Run, action: Action) -> Iterator[None]:
            with suppress(BaseException):
                yield

    with pytest.raises(ConfigError, match="a mistake"):
        driven(Guard(ScriptedBackend(ConfigError("a mistake")), observer=Swallows()), P2, driver)


def blocking(seen: list[str]) -> Callable[[list[dict[str, str]]], Completion]:
    return lambda messages: _noted(seen, '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}')


def awaited(seen: list[str]) -> Callable[[list[dict[str, str]]], Any]:
    async def model(messages: list[dict[str, str]]) -> Completion:
        await asyncio.sleep(0)
        return _noted(seen, '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}')

    return model


def _noted(seen: list[str], text: str) -> Completion:
    seen.append(HERE.get())
    return Completion(text)


@pytest.mark.parametrize(("driver", "model"), [("run", blocking), ("arun", blocking), ("arun", awaited)])
@pytest.mark.parametrize("check_timeout", [None, 30.0])
def test_a_context_holds_in_calls_and_checks(driver: str, model: Any, check_timeout: float | None) -> None:
    """What a hook sets holds inside the model's call and inside checks of the user's, in whatever thread they run."""
    asked: list[str] = []
    checked: list[str] = []

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        checked.append(HERE.get())
        return True

    procedure = Procedure([Step("a", "2 * 3"), Step("b", "a + 4", checks=[check])])
    result = driven(Guard(model(asked), observer=Place(), check_timeout=check_timeout), procedure, driver)
    assert result.verified
    assert {*asked, *checked} == {result.run_id}
    assert HERE.get() == "nowhere"


def test_contexts_of_runs_at_the_same_time_do_not_mix() -> None:
    """Runs and parallel segments on one loop each have the context of their own run."""
    right = SimulatedModel(slips=Slips.none())
    seen: dict[int, set[str]] = {}

    class Model:
        async def acomplete(self, request: Request) -> Completion:
            x = next((value for name, value in request.values.items() if name in "xy"), None)
            await asyncio.sleep(0.001 * (int(to_exact(x)) % 3) if x is not None else 0)
            if x is not None:
                seen.setdefault(int(to_exact(x)), set()).add(HERE.get())
            return right.complete(request)

    guard = Guard(Model(), observer=Place(), segment=1, parallel=2)

    async def both() -> list[Result]:
        return await asyncio.gather(*(guard.arun(PAIR, {"x": n, "y": n}) for n in range(20)))

    results = asyncio.run(both())
    assert seen == {n: {result.run_id} for n, result in enumerate(results)}


@DRIVERS
def test_a_hook_may_end_the_run(driver: str) -> None:
    """A host that has seen enough cancels from a hook: nothing more is asked, and the verified part is there."""

    class Enough(Hooks):
        def attempted(self, run: Run, attempt: Attempt) -> None:
            run.cancel("seen enough")

    with ScriptedBackend({"a": "2 * 3 = 6"}) as backend:
        result = driven(Guard(backend, segment=1, observer=Enough()), P2, driver)
    assert (result.status, dict(result.values)) == ("failed", {"a": 6})
    assert "seen enough" in str(result.problem)


def test_a_cancelled_run_is_told_to_its_end() -> None:
    """The attempt in flight is told with the cancellation, and then the end, once."""
    diary = Diary()
    asked = asyncio.Event()

    async def model(messages: object) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def cancelled() -> None:
        task = asyncio.create_task(Guard(model, observer=diary).arun(P2))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [kind for _, kind, _ in diary.told] == ["started", "performing", "attempted", "done"]
    assert diary.of("attempted")[0].error == "cancelled"
    assert diary.of("done")[0].usage.calls == 1


@DRIVERS
def test_an_exception_that_leaves_the_run_is_told_as_its_end(driver: str) -> None:
    """What is raised through the driver ends the run, and hooks learn of it."""
    diary = Diary()
    with pytest.raises(ConfigError):
        driven(Guard(ScriptedBackend(ConfigError("a mistake")), observer=diary), P2, driver)
    assert diary.told[-1][1] == "done"
    assert diary.of("done")[0].status == "failed"


def test_a_run_that_goes_on_elsewhere_is_left_and_taken_up_again() -> None:
    """Where actions are outstanding elsewhere `done` is told of a run that is not done; driving it starts anew."""
    diary = Diary()
    guard = Guard(ScriptedBackend(), observer=diary)
    going = guard.start(P2)
    (ask,) = going.actions()
    assert isinstance(ask, Ask)
    assert [each.step for each in ask.occurrences] == ["a", "b"]
    with pytest.raises(UsageError):
        guard.drive(going)
    assert not going.done
    going.cancel()
    guard.drive(going)
    assert [kind for _, kind, _ in diary.told] == ["started", "done", "started", "done"]


def test_a_run_tells_its_attempts() -> None:
    """`Run.attempts` gives those after a number, for loops of one's own."""
    with ScriptedBackend({"a": "2 * 3 = 6"}, {"b": "6 + 4 = 10"}) as backend:
        guard = Guard(backend, segment=1)
        going = guard.start(P2)
        guard.drive(going)
    assert going.attempts() == going.result().attempts
    assert [each.number for each in going.attempts(after=1)] == [2]
    assert going.attempts(after=2) == ()
