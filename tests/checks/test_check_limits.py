"""Checks of the user's own that take too long: they are given up, nothing waits for them, and nothing passes."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from stepguard import Budget, Claim, Guard, Procedure, Result, Step
from stepguard.checks import judge_claims
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend

CheckFunction = Callable[[Step, Mapping[str, Value], Claim], bool]


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """An event to wait for in a check that hangs; set when the test is over, so that no thread outlives it."""
    over = threading.Event()
    yield over
    over.set()


def checked(*checks: CheckFunction) -> Procedure:
    return Procedure([Step("a", "2 * 3", checks=checks)])


def reply() -> ScriptedBackend:
    return ScriptedBackend({"a": "2 * 3 = 6"})


def either(guard: Guard, procedure: Procedure, mode: str) -> Result:
    return guard.run(procedure) if mode == "run" else asyncio.run(guard.arun(procedure))


@pytest.mark.parametrize("mode", ["run", "arun"])
def test_a_check_that_takes_too_long_is_undecided(mode: str, hang: threading.Event) -> None:
    """A check that does not answer in time never passes, and the reason names it and the limit."""

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return hang.wait()

    result = either(Guard(reply(), repair=0, check_timeout=0.05), checked(endless), mode)
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.reason == "undecided: endless did not answer within 0.05 s"


def test_a_check_that_was_given_up_did_not_decide(hang: threading.Event) -> None:
    """The verdict of a check that takes too long says that nothing was decided, and that asking again may help."""

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return hang.wait()

    step = Step("a", instruction="Say it.", checks=[endless])
    (judgement,) = judge_claims([step], [Claim("a", (), "six", "six")], {}, timeout=0.01)
    assert judgement.verdict is not None
    assert (judgement.verdict.outcome, judgement.verdict.kind, judgement.verdict.retry) == (
        "undecided",
        "undecided",
        True,
    )


@pytest.mark.parametrize("mode", ["run", "arun"])
@pytest.mark.parametrize("options", [{"check_timeout": 1e300}, {"budget": Budget(seconds=1e300)}])
def test_a_limit_of_more_than_a_lifetime_is_as_good_as_any(mode: str, options: dict[str, Any]) -> None:
    """A limit that no clock can count to does not keep a check from deciding."""
    assert either(Guard(reply(), repair=0, **options), checked(lambda step, values, claim: True), mode).verified


def test_a_check_that_raises_a_time_out_of_its_own_is_told_apart() -> None:
    """A `TimeoutError` from inside a check is what the check raised."""

    def network(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise TimeoutError("no route")

    result = Guard(reply(), repair=0).run(checked(network))
    assert "TimeoutError: no route" in str(result.problem)


def test_the_next_check_is_not_affected(hang: threading.Event) -> None:
    """After a check was given up, others run as before; a step passes only where all of its checks did."""
    slow = iter([True, False])

    def sometimes(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return hang.wait() if next(slow) else True

    backend = ScriptedBackend({"a": "2 * 3 = 6"}, {"a": "2 * 3 = 6"})
    result = Guard(backend, check_timeout=0.05).run(checked(sometimes))
    assert result.status == "verified"
    assert [each.kind for each in result.steps[0].deviations] == ["undecided"]


@pytest.mark.parametrize("mode", ["run", "arun"])
def test_what_the_budget_has_left_bounds_checks(mode: str, hang: threading.Event) -> None:
    """A deadline of the run holds for a check without a limit of its own, and the run is exhausted."""

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return hang.wait()

    guard = Guard(reply(), check_timeout=None, budget=Budget(seconds=0.1))
    result = either(guard, checked(endless), mode)
    assert result.status == "exhausted"
    assert "0.1 seconds" in str(result.problem)


def test_all_checks_of_a_reply_share_what_is_left(hang: threading.Event) -> None:
    """Of several hanging checks only the first one is waited for; the others are not begun."""
    begun: list[str] = []

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        begun.append(step.id)
        return hang.wait()

    guard = Guard(reply(), check_timeout=30, budget=Budget(seconds=0.1))
    assert guard.run(checked(endless, endless, endless)).status == "exhausted"
    assert begun == ["a"]


def test_a_check_sees_the_context_of_its_caller() -> None:
    """Context variables that were set around the run hold inside a check."""
    tenant = contextvars.ContextVar("tenant", default="nobody")

    def whose(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return tenant.get() == "acme"

    tenant.set("acme")
    assert Guard(reply()).run(checked(whose)).status == "verified"
    assert asyncio.run(Guard(reply()).arun(checked(whose))).status == "verified"


def test_without_a_limit_a_check_runs_in_the_thread_of_its_caller() -> None:
    """With None a check may use what belongs to the caller's thread."""
    threads: list[threading.Thread] = []

    def where(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        threads.append(threading.current_thread())
        return True

    Guard(reply(), check_timeout=None).run(checked(where))
    Guard(reply(), check_timeout=5).run(checked(where))
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()
    assert threads[1].name == "stepguard-check"


def test_claims_are_judged_without_a_limit_unless_one_is_given() -> None:
    """Judging claims by hand calls a check as it is, and with a limit on one or on all of them in a thread."""
    threads: list[threading.Thread] = []

    def where(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        threads.append(threading.current_thread())
        return True

    steps, claims = [Step("a", "2 * 3", checks=[where])], [Claim("a", ("2 * 3",), "6", "2 * 3 = 6")]
    judge_claims(steps, claims, {})
    judge_claims(steps, claims, {}, timeout=5)
    judge_claims(steps, claims, {}, remaining=5)
    assert [thread is threading.current_thread() for thread in threads] == [True, False, False]


def test_what_ends_a_program_ends_it_from_inside_a_check() -> None:
    """`KeyboardInterrupt` is no verdict: it leaves the run, which keeps its books."""

    def leave(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise KeyboardInterrupt

    for limit in (None, 5.0):
        guard = Guard(reply(), check_timeout=limit)
        run = guard.start(checked(leave))
        with pytest.raises(KeyboardInterrupt):
            guard.drive(run)
        assert run.result().usage.calls == 1


def test_cancelling_a_run_does_not_wait_for_its_check(hang: threading.Event) -> None:
    """A task that is cancelled during a check that hangs ends at once and leaves no task behind."""
    inside = threading.Event()

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        inside.set()
        return hang.wait()

    async def main() -> None:
        guard = Guard(reply(), check_timeout=None)
        run = guard.start(checked(endless))
        task = asyncio.create_task(guard.adrive(run))
        while not (inside.is_set() or task.done()):
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert run.result().usage.calls == 1

    asyncio.run(main())


def test_hanging_checks_do_not_keep_other_runs_waiting(hang: threading.Event) -> None:
    """However many checks hang on a loop, the check of another run is answered."""

    def endless(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return hang.wait()

    def easy(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return True

    async def main() -> Result:
        hanging = [asyncio.create_task(Guard(reply(), check_timeout=None).arun(checked(endless))) for _ in range(64)]
        await asyncio.sleep(0.01)
        result = await Guard(reply()).arun(checked(easy))
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        return result

    assert asyncio.run(main()).status == "verified"


def test_a_check_that_hangs_does_not_keep_the_program_alive() -> None:
    """After its run is over, a program ends although a check of it never returns."""
    code = (
        "import threading\n"
        "from stepguard import Guard, Procedure, Step\n"
        "def endless(step, values, claim): threading.Event().wait()\n"
        'guard = Guard(lambda messages: \'{"a": "2 * 3 = 6"}\', repair=0, check_timeout=0.05)\n'
        "print(guard.run(Procedure([Step('a', '2 * 3', checks=[endless])])).status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "abstained\n"), done.stderr


def test_the_time_of_checks_counts(hang: threading.Event) -> None:
    """The seconds of a run hold the time that its checks took."""

    def slow(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        time.sleep(0.05)
        return True

    assert Guard(reply()).run(checked(slow)).seconds >= 0.05
