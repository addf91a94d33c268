"""Many runs at once: on one event loop, on several, on threads, cancelled, and in parallel segments."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from harness import GOOD, P2, P6, PAIR, without_time

from stepguard import Budget, Claim, Guard, Procedure, Result, RetryPolicy, Step
from stepguard.backends import Completion, Request, as_backend
from stepguard.backends.limiter import EndpointLimiter
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips


class _Async:
    """An async model that answers rightly when it is let."""

    def __init__(self, *, held: bool = False) -> None:
        self.calls = 0
        self.held = held
        self.asked = asyncio.Event()
        self._right = SimulatedModel(slips=Slips.none())

    async def acomplete(self, request: Request) -> Completion:
        self.calls += 1
        self.asked.set()
        if self.held:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return self._right.complete(request)


def test_an_async_backend_needs_arun() -> None:
    """`run` and `drive` say so at once, before any call."""

    async def model(messages: object) -> str:
        raise NotImplementedError

    for backend in (_Async(), model):
        guard = Guard(backend)
        with pytest.raises(ConfigError, match="arun"):
            guard.run(P2)
        with pytest.raises(ConfigError, match="arun"):
            guard.drive(guard.start(P2))


def test_one_guard_on_two_event_loops() -> None:
    """`asyncio.run` twice with the same guard works."""
    for backend in (_Async(), SimulatedModel(slips=Slips.none())):
        guard = Guard(backend)
        for _ in range(2):
            assert asyncio.run(guard.arun(P2)).answer == 10


@pytest.mark.parametrize("parallel", [1, 2])
def test_cancelling_arun_leaves_nothing_behind(parallel: int) -> None:
    """CancelledError comes through, no task stays, no further call is made."""

    async def main() -> int:
        backend = _Async(held=True)
        task = asyncio.create_task(Guard(backend, segment=1, parallel=parallel).arun(PAIR, {"x": 1, "y": 2}))
        await backend.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for _ in range(5):
            await asyncio.sleep(0)
        return backend.calls

    assert asyncio.run(main()) == parallel


@dataclass(frozen=True)
class _Blocking:
    """A backend that can only block, and does."""

    wait: Callable[..., str]

    def complete(self, request: Request) -> Completion:
        return Completion(self.wait())


def _client(wait: Callable[..., str]) -> object:
    chat = SimpleNamespace(completions=SimpleNamespace(create=wait))
    return OpenAIBackend("m", client=SimpleNamespace(chat=chat), limiter=EndpointLimiter(first=100))


@pytest.mark.parametrize("make", [as_backend, _Blocking, _client], ids=["function", "backend", "client"])
@pytest.mark.parametrize("given_up", ["cancelled", "late"])
def test_calls_that_block_hold_nothing_up(make: Callable[[Any], object], given_up: str) -> None:
    """Calls that were given up and do not return keep neither the runs behind them nor the end of the loop waiting."""
    free, ended = threading.Event(), threading.Event()
    begun = threading.Semaphore(0)
    many = 40  # more than a pool of threads holds

    def wait(*_: object, **__: object) -> str:
        begun.release()
        free.wait(60)
        ended.set()
        return "{}"

    def right(messages: object) -> str:
        return json.dumps(GOOD)

    async def main() -> Result:
        budget = Budget(seconds=0.2) if given_up == "late" else None
        stuck = [asyncio.create_task(Guard(make(wait), budget=budget).arun(P2)) for _ in range(many)]
        if given_up == "cancelled":
            for _ in stuck:
                while not begun.acquire(blocking=False):
                    await asyncio.sleep(0.01)
            for task in stuck:
                task.cancel()
        await asyncio.wait(stuck)  # on a slow machine some have no time left to call
        return await Guard(right).arun(P2)

    try:
        assert asyncio.run(main()).verified
        assert not ended.is_set()
    finally:
        free.set()


def test_a_cancelled_run_stays_readable() -> None:
    """With `start` and `adrive` the caller keeps the run: its values, and books that count the call in flight."""

    async def main() -> None:
        backend = _Async()
        guard = Guard(backend, segment=1)
        run = guard.start(P2)
        task = asyncio.create_task(guard.adrive(run))
        while "a" not in run.values:
            await asyncio.sleep(0)
        backend.held = True
        while backend.calls < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.done
        assert dict(run.values) == {"a": 6}
        result = run.result()
        assert result.status == "failed"
        assert str(result.problem) == "step b: cancelled"
        assert result.usage.calls == len(result.attempts) == 2

    asyncio.run(main())


def test_cancelling_while_waiting_for_the_transport() -> None:
    """A back-off is cancelled as well, and nothing is sent afterwards."""

    async def main() -> None:
        backend = ScriptedBackend(BackendError("503"))
        task = asyncio.create_task(Guard(backend, retry=RetryPolicy(first_wait=30.0)).arun(P2))
        while not (backend.requests or task.done()):
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(backend.requests) == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_fatal_error_does_not_wait_for_a_back_off() -> None:
    """When one segment ends the run, another one's back-off is not sat out."""

    async def main() -> Result:
        backend = ScriptedBackend(BackendError("503"), BackendRejected("401"))
        guard = Guard(backend, segment=1, parallel=2, retry=RetryPolicy(first_wait=30.0))
        return await asyncio.wait_for(guard.arun(PAIR, {"x": 1, "y": 2}), 10)

    result = asyncio.run(main())
    assert result.status == "failed"
    assert result.usage.calls == 2


@pytest.mark.slow
def test_a_thousand_runs_on_one_loop() -> None:
    """A thousand runs of one guard at a time do not mix their values, and leave no task and no thread behind."""
    threads = threading.active_count()

    async def main() -> list[Result]:
        guard = Guard(_Async(), segment=2)
        results = await asyncio.gather(*(guard.arun(P6, {"x": number}) for number in range(1000)))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return results

    results = asyncio.run(main())
    assert threading.active_count() == threads
    assert len({result.run_id for result in results}) == 1000
    for number, result in enumerate(results):
        assert result.status == "verified"
        assert result.answer == ((2 * (number + 1) - 3) + (number + 1)) * 2 - (number + 1)
        assert result.usage.calls == 3


def test_segments_of_one_run_are_really_asked_at_the_same_time() -> None:
    """With `parallel`, a slow reply does not hold up what does not read it."""

    async def main() -> list[str]:
        order: list[str] = []
        last = asyncio.Event()

        class Slow(_Async):
            async def acomplete(self, request: Request) -> Completion:
                name = request.steps[0].id
                if name == "t1":
                    await last.wait()
                order.append(name)
                if name == "t4":
                    last.set()
                return await super().acomplete(request)

        chain = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = x + 2\nt3 = t2 + 1\nt4 = t3 + 1\nt5 = t1 + t4")
        result = await Guard(Slow(), segment=1, parallel=2).arun(chain, {"x": 1})
        assert result.status == "verified"
        return order

    assert asyncio.run(main()) == ["t2", "t3", "t4", "t1", "t5"]


def test_a_blocking_check_does_not_block_the_loop() -> None:
    """While a check of the user's blocks, other tasks on the loop go on."""
    release = threading.Event()

    def blocking(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return release.wait(20)

    async def main() -> Result:
        procedure = Procedure([Step("a", "2 * 3", checks=[blocking])])
        with ScriptedBackend({"a": "2 * 3 = 6"}) as backend:
            task = asyncio.create_task(Guard(backend).arun(procedure))
            for _ in range(50):  # reached only if the loop goes on
                await asyncio.sleep(0)
            release.set()
            return await task

    assert asyncio.run(main()).status == "verified"


def test_code_alone_does_not_block_the_loop() -> None:
    """A long run of code steps lets other tasks have their turn, and can be cancelled."""

    async def main() -> int:
        procedure = Procedure.lazy(
            lambda index: Step(f"t{index}", f"t{index - 1} + 1" if index else "1", performer="code"),
            1_000_000,
            look_back=1,
        )
        guard = Guard(SimulatedModel(), history=10)
        run = guard.start(procedure)
        task = asyncio.create_task(guard.adrive(run))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run.result().completed

    assert 0 < asyncio.run(main()) < 1_000_000


def test_run_inside_a_running_loop() -> None:
    """`run` may be called where a loop is running: it blocks, and works."""

    async def main() -> Result:
        return Guard(SimulatedModel(slips=Slips.none())).run(P2)

    assert asyncio.run(main()).answer == 10


def test_a_session_is_held_for_the_length_of_a_run() -> None:
    """A backend with a session has it opened before the first call and closed after the last, also on a failure."""
    events: list[str] = []

    class WithSession(_Async):
        def session(self) -> WithSession:
            return self

        async def __aenter__(self) -> None:
            events.append("open")

        async def __aexit__(self, *_: object) -> None:
            events.append("close")

        async def acomplete(self, request: Request) -> Completion:
            events.append("call")
            if len(events) > 3:
                raise BackendRejected("401")
            return await super().acomplete(request)

    guard = Guard(WithSession())
    assert asyncio.run(guard.arun(P2)).status == "verified"
    assert asyncio.run(guard.arun(P2)).status == "failed"
    assert events == ["open", "call", "close"] * 2


def test_a_session_that_cannot_be_opened_ends_the_run() -> None:
    """What it raises comes through, no call is made, and the run is over."""

    class Closed(_Async):
        def session(self) -> object:
            raise ConfigError("no proxy of this kind")

    guard = Guard(Closed())
    run = guard.start(P2)
    with pytest.raises(ConfigError, match="proxy"):
        asyncio.run(guard.adrive(run))
    assert (run.done, run.result().status, run.result().usage.calls) == (True, "failed", 0)


def test_a_session_that_cannot_be_closed_costs_no_result(caplog: pytest.LogCaptureFixture) -> None:
    """What was verified and paid for is handed over; the log says what failed."""

    class Open(_Async):
        @asynccontextmanager
        async def session(self) -> AsyncIterator[None]:
            yield
            raise OSError("no route")

    assert asyncio.run(Guard(Open()).arun(P2)).verified
    assert "session of the backend could not be closed" in caplog.text


def test_a_call_that_will_not_be_cancelled_is_given_up_all_the_same() -> None:
    """A backend that goes on when its time is up has not answered."""

    class Deaf(_Async):
        async def acomplete(self, request: Request) -> Completion:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
            return await super().acomplete(request)

    result = asyncio.run(Guard(Deaf(), retry=RetryPolicy(timeout=0.01, retries=0)).arun(P2))
    assert (result.status, type(result.error)) == ("failed", BackendTimeout)


def test_eight_threads_share_a_guard() -> None:
    """Runs of one guard on many threads do not mix state or usage."""
    guard = Guard(SimulatedModel(1, slips=replace(Slips.none(), wrong_value=0.1)), segment=3, seed=1)
    tasks = [Arithmetic().make(seed, 6) for seed in range(15)]
    alone = [without_time(guard.run(task.procedure, task.inputs)) for task in tasks]

    def work(_: int) -> list[Result]:
        return [without_time(guard.run(task.procedure, task.inputs)) for task in tasks]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(work, range(8)):
            assert results == alone


def test_each_reply_lands_in_its_own_run() -> None:
    """Two runs whose replies overtake each other keep their own values; a reply for the other run is refused."""

    async def main() -> list[Result]:
        order: list[str] = []
        second = asyncio.Event()

        class Swapped(_Async):
            async def acomplete(self, request: Request) -> Completion:
                order.append(request.messages[-1].content)
                if len(order) == 1:
                    await second.wait()
                else:
                    second.set()
                return await super().acomplete(request)

        guard = Guard(Swapped())
        return list(await asyncio.gather(guard.arun(P6, {"x": 1}), guard.arun(P6, {"x": 100})))

    assert [result.answer for result in asyncio.run(main())] == [4, 499]


def test_two_hundred_runs_with_checks_that_block() -> None:
    """Checks of the user's that take their time are waited for side by side, whatever the number of runs."""

    def patient(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        threading.Event().wait(0.05)
        return True

    async def main() -> list[Result]:
        procedure = Procedure([Step("a", "x + 1", checks=[patient])], inputs=["x"])
        guard = Guard(_Async())
        return await asyncio.gather(*(guard.arun(procedure, {"x": number}) for number in range(200)))

    assert [result.answer for result in asyncio.run(main())] == list(range(1, 201))
