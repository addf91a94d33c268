"""The checks that are attached to a step, as objects that can be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isclass, signature
from typing import TYPE_CHECKING

from stepguard.errors import ProcedureError
from stepguard.procedure.inputs import listed

if TYPE_CHECKING:
    from stepguard.checks import Check


def attached(checks: Iterable[Check], step: str, reads: tuple[str, ...]) -> tuple[Check, ...]:
    """The checks of a step that reads these variables.

    Raises ProcedureError: one is no check, or needs what the step does not read.
    """
    checked = listed(checks, f"step {step!r}: checks", "[Range(1, 10)]")
    for check in checked:
        # A class is callable too: calling it would make an instance, which counts as no verdict.
        if isclass(check):
            raise ProcedureError(f"step {step!r}: {check.__name__} is a class: pass an instance of it", step=step)
        if not callable(check):
            raise ProcedureError(f"step {step!r}: {check!r} is no check: it cannot be called", step=step)
        if not callable(getattr(check, "misfit", None)):  # one of your own
            _check_call(check, step)
        lacking = [name for name in getattr(check, "reads", ()) if name != step and name not in reads]
        if lacking:
            raise ProcedureError(
                f"step {step!r}: the check {check!r} needs {lacking[0]!r}, which the step does not read", step=step
            )
    return checked


def _check_call(check: Callable[..., object], step: str) -> None:
    """Refuse a check that cannot be called with a step, its values and a claim, before a model is asked."""
    try:
        parameters = signature(check, follow_wrapped=False)  # what a decorator takes is what counts, not what it wraps
    except (TypeError, ValueError):  # of something that is not written in Python
        return
    try:
        parameters.bind(None, {}, None)
    except TypeError as error:
        raise ProcedureError(
            f"step {step!r}: the check {check!r} cannot be called as check(step, values, claim): {error}", step=step
        ) from None
