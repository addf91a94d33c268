"""Checks of the user's own: callables, sync or async, called within a time limit, whatever they do."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from stepguard.core.deadlines import Overrun, awaited, awithin, gave_up, within
from stepguard.core.redaction import redact
from stepguard.core.verdicts import Claim, Verdict, shorten
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_THREAD: Final = "stepguard-check"


class Check(Protocol):
    """A check of one step.

    Returns True (pass), False (fail), None (not applicable) or a `Verdict`. `values` holds what the step reads and,
    under its own id, the value it would get; `claim` holds what was written. A check that needs variables may name
    them in an attribute ``reads``: a step that does not read them is refused. It may also have a method
    ``misfit(step)`` that says why it cannot judge a step at all, None where it can: such a step is refused, too.
    """

    def __call__(
        self, step: Step, values: Mapping[str, Value], claim: Claim, /
    ) -> Verdict | bool | Awaitable[Verdict | bool | None] | None: ...


class Patience:
    """How long checks may take.

    Args:
        each: seconds for one check; None waits for as long as it takes.
        together: seconds for all of them, from now on; None likewise.
    """

    def __init__(self, each: float | None, together: float | None) -> None:
        self._each = each
        self._end = None if together is None else time.monotonic() + together

    def left(self) -> float | None:
        """Seconds for the next check, None where that is not limited."""
        bounds = (self._each, None if self._end is None else self._end - time.monotonic())
        return min((bound for bound in bounds if bound is not None), default=None)


def run_check(check: Check, step: Step, values: Mapping[str, Value], claim: Claim, patience: Patience) -> Verdict:
    """Call a check. Where it raises, returns something else or takes too long, it did not decide.

    Only what asks the run itself to end passes through: an interrupt, or a cancellation of its task.

    A check with a time limit runs in a thread of its own (see `stepguard.core.deadlines`), an async one in an event
    loop of its own.
    """
    seconds = patience.left()

    def call() -> object:
        found = check(step, values, claim)
        return _settle(found, seconds) if inspect.isawaitable(found) else found

    try:
        return _verdict(check, within(seconds, call, name=_THREAD))
    except Overrun:
        return _late(check, seconds)
    except BaseException as error:
        if _stops(error):
            raise
        return _raised(check, error)


async def arun_check(
    check: Check, step: Step, values: Mapping[str, Value], claim: Claim, patience: Patience
) -> Verdict:
    """As `run_check`: an async check is awaited in this event loop, any other runs in a thread."""
    seconds = patience.left()
    try:
        found: object
        # An async check is called here and not in a thread: what it awaits may belong to this loop.
        if inspect.iscoroutinefunction(check) or inspect.iscoroutinefunction(getattr(check, "__call__", None)):  # noqa: B004
            found = check(step, values, claim)
        else:
            found = await awithin(seconds, lambda: check(step, values, claim), name=_THREAD)
        if inspect.isawaitable(found):
            found = await awaited(seconds, found)
        return _verdict(check, found)
    except Overrun:
        return _late(check, seconds)
    except BaseException as error:
        if _stops(error):
            raise
        return _raised(check, error)


def _stops(error: BaseException) -> bool:
    """Whether an error must end the run; not `SystemExit`, which may come from a command line that the check calls."""
    return not isinstance(error, Exception | SystemExit) and not gave_up(error)


def _settle(found: Awaitable[object], seconds: float | None) -> object:
    """Await an async check in an event loop of its own."""
    import asyncio

    def run() -> object:
        return asyncio.run(awaited(seconds, found))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    # The limit is kept inside, by `awaited`; this one only has to wait for it.
    return within(threading.TIMEOUT_MAX, run, name=_THREAD)  # one loop cannot run inside another


def _verdict(check: Check, found: object) -> Verdict:
    name = _name(check)
    if isinstance(found, Verdict):
        return found
    if found is True:
        return Verdict("pass", name)
    if found is False:
        return Verdict("fail", name, "wrong_value", f"{name} says no")
    if found is None:
        return Verdict("not_applicable", name)
    returned = f"{name} returned {type(found).__name__}, not True, False, None or a Verdict"
    return Verdict("undecided", name, "undecided", returned)


def _late(check: Check, seconds: float | None) -> Verdict:
    name = _name(check)
    return Verdict("undecided", name, "undecided", f"{name} did not answer within {max(seconds or 0, 0):.3g} s")


def _raised(check: Check, error: BaseException) -> Verdict:
    import traceback  # it also knows what to say of an error whose own text fails

    reason = "".join(traceback.format_exception_only(error)).strip()
    # Errors of foreign code may quote a key, which must not get into a log.
    return Verdict("undecided", _name(check), "undecided", shorten(redact(reason[:10_000]), 500))


def _name(check: Check) -> str:
    named: object = getattr(check, "__name__", None)
    return named if isinstance(named, str) else type(check).__name__
