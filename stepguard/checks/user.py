"""Checks of the user's own: plain callables, called within a time limit, whatever they do."""

from __future__ import annotations

import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from stepguard.values import Value
from stepguard.verdicts import Claim, Verdict, shorten

if TYPE_CHECKING:
    from stepguard.procedure import Step

__all__ = ["Check", "Patience", "run_check"]


class Check(Protocol):
    """A check of one step.

    Returns True (pass), False (fail), None (not applicable) or a `Verdict`. `values` holds what the step reads and,
    under its own id, the value it would get; `claim` holds what was written.
    """

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> Verdict | bool | None: ...


class Patience:
    """How long checks may take.

    Args:
        each: seconds for one check; None waits for as long as it takes.
        together: seconds for all of them, from now on; None likewise.
    """

    def __init__(self, each: float | None = None, together: float | None = None) -> None:
        self._each = each
        self._end = None if together is None else time.monotonic() + together

    def left(self) -> float | None:
        """Seconds for the next check, None where that is not limited."""
        bounds = (self._each, None if self._end is None else self._end - time.monotonic())
        return min((bound for bound in bounds if bound is not None), default=None)


def run_check(check: Check, step: Step, values: Mapping[str, Value], claim: Claim, patience: Patience) -> Verdict:
    """What a check says. Where it raises, returns something else or takes too long it did not decide.

    A check with a time limit runs in a thread of its own, with the caller's context variables. Python cannot stop a
    thread: one that is given up runs on by itself, and does not keep the program from ending.
    """
    named: object = getattr(check, "__name__", None)
    name = named if isinstance(named, str) else type(check).__name__
    seconds = patience.left()
    try:
        found = _within(seconds, lambda: check(step, values, claim))
    except _TookTooLong:
        return Verdict("undecided", name, "undecided", f"{name} did not answer within {max(seconds or 0, 0):.3g} s")
    except Exception as error:  # noqa: BLE001 - a check is foreign code: whatever it raises, it did not decide
        import traceback  # it also knows what to say of an error whose own text fails

        reason = "".join(traceback.format_exception_only(error)).strip()
        return Verdict("undecided", name, "undecided", shorten(reason, 500))
    if isinstance(found, Verdict):
        return found
    if found is True:
        return Verdict("pass", name)
    if found is False:
        return Verdict("fail", name, "wrong_value", f"{name} says no")
    if found is None:
        return Verdict("not_applicable", name)
    if inspect.iscoroutine(found):
        found.close()
        return Verdict("undecided", name, "undecided", f"{name} is async; a check is a plain function", retry=False)
    return Verdict("undecided", name, "undecided", f"{name} returned {type(found).__name__}, not a verdict")


class _TookTooLong(Exception):
    """Not `TimeoutError`, which a check may raise by itself."""


def _within(seconds: float | None, call: Callable[[], object]) -> object:
    if seconds is None:
        return call()
    if seconds <= 0:
        raise _TookTooLong
    outcome: list[tuple[object, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again where the check was called
            outcome.append((None, error))

    context = contextvars.copy_context()
    thread = threading.Thread(target=work, name="stepguard-check", daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if not outcome:
        raise _TookTooLong
    found, error = outcome[0]
    if error is not None:
        raise error
    return found
