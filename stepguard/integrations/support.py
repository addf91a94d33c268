"""What could stand behind the steps of a procedure at most: told where it is given, and not after a run is paid for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stepguard.core.verdicts import STRENGTHS, Strength
from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

__all__ = ["check_support", "strongest_support"]

_MOST: Final = 5
_VOTED: Final = STRENGTHS.index("agreed")


def strongest_support(step: Step) -> Strength:
    """The most that can stand behind a step. A check of your own may prove what it passes."""
    if step.expression is not None:
        return "proved"
    return max(
        (getattr(each, "strongest", "proved") for each in step.checks), key=STRENGTHS.index, default="unverified"
    )


def check_support(procedures: Iterable[Procedure], at_least: Strength) -> None:
    """Refuse a procedure of which no run could be strong enough, before one is paid for.

    A lazy procedure is not looked through.

    Raises:
        ConfigError: at most less than `at_least` can stand behind a step.
    """
    wanted = STRENGTHS.index(at_least)
    if wanted <= _VOTED:  # votes can bring that
        return
    for procedure in procedures:
        if procedure.look_back is not None:
            continue
        supports = {step.id: strongest_support(step) for step in procedure.steps}
        weak = {step: support for step, support in supports.items() if STRENGTHS.index(support) < wanted}
        if weak:
            names = ", ".join(list(weak)[:_MOST]) + (" ..." if len(weak) > _MOST else "")
            most = min(weak.values(), key=STRENGTHS.index)
            raise ConfigError(
                f"{procedure.name} can never be {at_least}, so that every run would be paid for and then refused: "
                f"{names} can be {most} at most. Give a check that shows more, or accept that: at_least={most!r}",
                option="procedure",
            )
