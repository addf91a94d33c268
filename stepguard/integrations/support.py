"""Find procedures whose runs can never be strong enough when they are given, not after a run is paid for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from stepguard.core.arguments import check_instance, check_mapping
from stepguard.core.verdicts import STRENGTHS, Strength, check_strength
from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

_MOST: Final = 5  # a message names a few steps, and says that there are more
_VOTED: Final = STRENGTHS.index("agreed")


def check_procedures(procedures: Mapping[str, Procedure] | None) -> dict[str, Procedure]:
    """The procedures that calls may name. Raises ConfigError: it is no mapping of names to procedures."""
    check_mapping(procedures, "procedures", what="a mapping of names to procedures", optional=True)
    named = dict(procedures or {})
    for name, procedure in named.items():
        check_instance(procedure, Procedure, "procedures", name=f"procedures[{name!r}]", what="a Procedure")
    return named


def _strongest(step: Step) -> Strength:
    """The strongest support a step can have. A check of your own may prove what it passes."""
    if step.expression is not None or step.performer != "model":  # who else performs it is taken at their word
        return "proved"
    return max(
        (getattr(each, "strongest", "proved") for each in step.checks), key=STRENGTHS.index, default="unverified"
    )


def find_weak(steps: Iterable[Step], at_least: Strength) -> dict[str, Strength]:
    """The steps behind which less than `at_least` can stand, each with the most that can."""
    wanted = STRENGTHS.index(at_least)
    supports = {step.id: _strongest(step) for step in steps}
    return {step: support for step, support in supports.items() if STRENGTHS.index(support) < wanted}


def check_support(procedures: Iterable[Procedure], at_least: Strength) -> None:
    """Refuse a procedure of which no run could be strong enough, before one is paid for.

    A lazy procedure is not looked through.

    Raises ConfigError: at most less than `at_least` can stand behind a step, or that is no strength.
    """
    check_strength(at_least)
    if STRENGTHS.index(at_least) <= _VOTED:  # votes can bring that
        return
    for procedure in procedures:
        if procedure.look_back is not None:
            continue
        # What stands in a branch or a loop may never come up.
        sure = procedure.steps if procedure.straight else [each for each in procedure.body if isinstance(each, Step)]
        if weak := find_weak(sure, at_least):
            names = ", ".join(list(weak)[:_MOST]) + (" ..." if len(weak) > _MOST else "")
            most = min(weak.values(), key=STRENGTHS.index)
            raise ConfigError(
                f"{procedure.name} can never be {at_least}, so that every run would be paid for and then refused: "
                f"{names} can be {most} at most. Give a check that shows more, or accept that: at_least={most!r}",
                option="procedure",
            )
