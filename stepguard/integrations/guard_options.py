"""The options of a guard that drop-ins take and hand on, and what else is refused alike in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from stepguard.core.verdicts import STRENGTHS
from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from stepguard.backends.retry import RetryPolicy
    from stepguard.core.profile import Profile
    from stepguard.engine.budget import Budget
    from stepguard.engine.segments import Segments
    from stepguard.repair.policy import Repair
    from stepguard.replies.formats import ReplyFormat
    from stepguard.telemetry.hooks import Observer

__all__ = ["GuardOptions", "check_inputs", "check_options", "check_strength"]


class GuardOptions(TypedDict, total=False):
    """Those of `stepguard.Guard`, but for the backend, and for `observe`, whose results nobody may take for answers."""

    segment: int | Segments | None
    repair: int | Repair | None
    budget: Budget | None
    retry: RetryPolicy | None
    reply_format: ReplyFormat | None
    parallel: int
    check_timeout: float | None
    stop_early: bool
    history: int | None
    profile: Profile | None
    seed: int | None
    observer: Observer | Sequence[Observer] | None


def check_options(given: Iterable[str], *, of: str) -> None:
    """Refuse names that are no options of a guard; `of` is what was given them.

    Raises:
        ConfigError: one is unknown.
    """
    if unknown := sorted(set(given) - GuardOptions.__annotations__.keys()):
        raise ConfigError(f"{unknown[0]!r} is no option of {of}", option=unknown[0])


def check_inputs(inputs: object, procedure: object) -> None:
    """Refuse inputs that are neither values nor a function that returns them, and inputs of no procedure.

    Raises:
        ConfigError: they are.
    """
    if inputs is not None and not callable(inputs) and not isinstance(inputs, Mapping):
        raise ConfigError(f"inputs is a mapping or a function, not {type(inputs).__name__}", option="inputs")
    if inputs is not None and procedure is None:
        raise ConfigError("inputs are given, and no procedure: name one", option="inputs")


def check_strength(at_least: object) -> None:
    """Refuse what is no strength.

    Raises:
        ConfigError: it is none.
    """
    if at_least not in STRENGTHS:
        raise ConfigError(f"{at_least!r} is no strength: use one of {', '.join(STRENGTHS)}", option="at_least")
