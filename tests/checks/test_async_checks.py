"""Async checks: awaited in the loop of an async run, in a loop of their own otherwise, and never left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from stepguard import Claim, Guard, Procedure, Result, Step, Verdict
from stepguard.checks import Check, ajudge_claims, judge_claims
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend

MODES = pytest.mark.parametrize("mode", ["run", "arun", "run in a loop"])
CLAIM = Claim("a", ("2 * 3",), "6", "2 * 3 = 6")


def run(check: Check, mode: str = "run", **options: Any) -> Result:
    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), repair=0, **options)
    procedure = Procedure([Step("a", "2 * 3", checks=[check])])

    async def within_a_loop() -> Result:
        return guard.run(procedure)

    match mode:
        case "run":
            return guard.run(procedure)
        case "arun":
            return asyncio.run(guard.arun(procedure))
        case _:
            return asyncio.run(within_a_loop())


class Method:
    """A check whose call is a coroutine."""

    async def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        await asyncio.sleep(0)
        return values["a"] == 6


async def function(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
    await asyncio.sleep(0)
    return values["a"] == 6


def returning(step: Step, values: Mapping[str, Value], claim: Claim) -> Any:
    return function(step, values, claim)


@MODES
@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("check", [function, Method(), returning])
def test_an_async_check_decides(check: Check, mode: str, limit: float | None) -> None:
    """A coroutine function, an object with one, and a function that returns one are checks like any other."""
    assert run(check, mode, check_timeout=limit).status == "verified"


@MODES
@pytest.mark.parametrize("found", [False, Verdict("fail", "mine", "wrong_value"), 1, "yes"])
def test_an_async_check_passes_only_by_saying_so(found: Any, mode: str) -> None:
    """What is neither True nor a passing verdict is no pass."""

    async def check(*_: object) -> Any:
        return found

    assert run(check, mode).status == "abstained"


@MODES
@pytest.mark.parametrize("error", [ValueError("odd"), TimeoutError("mine"), StopIteration()])
def test_an_async_check_that_raises_did_not_decide(error: Exception, mode: str) -> None:
    """The reason is the error's own, also where that is a time-out of the check's."""

    async def check(*_: object) -> bool:
        await asyncio.sleep(0)
        raise error

    result = run(check, mode)
    assert result.problem is not None
    assert result.problem.reason.startswith("undecided: ")
    assert "did not answer" not in result.problem.reason


@MODES
def test_an_async_check_that_will_not_be_cancelled_did_not_decide(mode: str) -> None:
    """Its time is up, whatever it says behind that."""

    async def check(*_: object) -> bool:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        return True

    result = run(check, mode, check_timeout=0.02)
    assert result.status == "abstained"
    assert "did not answer within" in str(result.problem)


@MODES
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
def test_a_check_cannot_end_the_run(error: BaseException, limit: float | None, waits: bool, mode: str) -> None:
    """One that exits, or is cancelled by itself, did not decide, and what was verified before it is kept."""

    def check(*_: object) -> bool:
        raise error

    async def waiting(*_: object) -> bool:
        await asyncio.sleep(0)
        raise error

    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6", "b": "6 + 1 = 7"}), repair=0, check_timeout=limit)
    procedure = Procedure([Step("a", "2 * 3"), Step("b", "a + 1", checks=[waiting if waits else check])])

    async def within_a_loop() -> Result:
        return guard.run(procedure)

    match mode:
        case "run":
            result = guard.run(procedure)
        case "arun":
            result = asyncio.run(guard.arun(procedure))
        case _:
            result = asyncio.run(within_a_loop())
    assert (result.status, dict(result.values)) == ("abstained", {"a": 6})
    assert result.problem is not None
    assert type(error).__name__ in result.problem.reason


@MODES
def test_an_interrupt_ends_the_run(mode: str) -> None:
    """Ctrl-C is the user's, also while a check is at work."""

    def check(*_: object) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(check, mode)


def test_a_run_that_is_cancelled_ends() -> None:
    """A cancellation of the run's own task is none of the check's, and is passed on."""

    async def main() -> None:
        started = asyncio.Event()

        async def check(*_: object) -> bool:
            started.set()
            await asyncio.sleep(3600)
            return True

        guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), repair=0)
        task = asyncio.create_task(guard.arun(Procedure([Step("a", "2 * 3", checks=[check])])))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@MODES
def test_an_async_check_that_takes_too_long_is_cancelled(mode: str) -> None:
    """It is undecided, and learns that nobody waits for it any more."""
    ended: list[bool] = []

    async def endless(*_: object) -> bool:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)
        return True

    result = run(endless, mode, check_timeout=0.05)
    assert result.problem is not None
    assert result.problem.reason == "undecided: endless did not answer within 0.05 s"
    until = time.monotonic() + 30
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    assert ended == [True]


def test_an_async_check_can_use_what_belongs_to_the_loop_of_its_caller() -> None:
    """An async run awaits it in its own loop: locks, sessions and tasks made there work."""

    async def main() -> Result:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(0.01, ready.set)

        async def check(*_: object) -> bool:
            await ready.wait()
            return asyncio.get_running_loop() is loop

        guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), repair=0)
        return await guard.arun(Procedure([Step("a", "2 * 3", checks=[check])]))

    assert asyncio.run(main()).status == "verified"


def test_waiting_for_a_check_keeps_no_other_run_waiting() -> None:
    """Many runs whose checks wait take hardly longer than one."""

    async def check(*_: object) -> bool:
        await asyncio.sleep(0.2)
        return True

    async def main() -> list[Result]:
        guard = Guard(lambda messages: '{"a": "2 * 3 = 6"}', repair=0)
        procedure = Procedure([Step("a", "2 * 3", checks=[check])])
        return await asyncio.gather(*(guard.arun(procedure) for _ in range(100)))

    started = time.monotonic()
    assert {each.status for each in asyncio.run(main())} == {"verified"}
    assert time.monotonic() - started < 15  # one after the other they take 20 s


@pytest.mark.parametrize("check", [function, lambda *_: True])
def test_judging_async_gives_the_same(check: Check) -> None:
    """`judge_claims` and `ajudge_claims` judge alike."""
    steps = [Step("a", "2 * 3", checks=[check])]
    assert asyncio.run(ajudge_claims(steps, [CLAIM], {})) == judge_claims(steps, [CLAIM], {})
