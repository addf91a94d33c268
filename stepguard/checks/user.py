"""Checks of the user's own: plain callables, called within a time limit, whatever they do."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from stepguard.deadlines import Overrun, within
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

    def __init__(self, each: float | None, together: float | None) -> None:
        self._each = each
        self._end = None if together is None else time.monotonic() + together

    def left(self) -> float | None:
        """Seconds for the next check, None where that is not limited."""
        bounds = (self._each, None if self._end is None else self._end - time.monotonic())
        return min((bound for bound in bounds if bound is not None), default=None)


def run_check(check: Check, step: Step, values: Mapping[str, Value], claim: Claim, patience: Patience) -> Verdict:
    """What a check says. Where it raises, returns something else or takes too long it did not decide.

    A check with a time limit runs in a thread of its own: see `stepguard.deadlines`.
    """
    named: object = getattr(check, "__name__", None)
    name = named if isinstance(named, str) else type(check).__name__
    seconds = patience.left()
    try:
        found: object = within(seconds, lambda: check(step, values, claim), name="stepguard-check")
    except Overrun:
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
