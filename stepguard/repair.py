"""What is tried next after a step was not accepted.

A repair policy looks at how a step has failed so far and names the next rung: a way of asking it again, always in a
clean context. None means that nothing is left to try; the run then abstains at that step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Protocol

from stepguard.errors import ConfigError
from stepguard.verdicts import DeviationKind

__all__ = ["FIRST", "Failures", "Repair", "Retries", "Rung"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way of asking a step.

    Attributes:
        name: what records call it.
        temperature: sampling temperature of the call.
        alone: whether the step is asked by itself instead of leading a segment.
    """

    name: str
    temperature: float = 0.0
    alone: bool = False


FIRST: Final = Rung("ask")
"""How a step is asked for the first time: as it stands, greedily."""


@dataclass(slots=True)
class Failures:
    """How one step has failed so far, oldest first.

    Attributes:
        kinds: the kind of deviation of each failure.
        wrong: the values that were claimed and not accepted, as normalised text.
        hopeless: whether a check said that no other claim can fare better.
    """

    kinds: list[DeviationKind] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hopeless: bool = False


class Repair(Protocol):
    """Decides what is tried after a failure."""

    def next(self, failures: Failures, /) -> Rung | None:
        """The next rung for a step that has failed at least once; None to give up."""
        ...


@dataclass(frozen=True, slots=True)
class Retries:
    """Ask the step again by itself, in a clean context, with some randomness.

    Args:
        limit: how often a step is asked again. A plain number stands for this object: ``Guard(..., repair=2)``.
        same: give up when the same wrong value has been claimed this often; what repeats is systematic, and asking
            the same way again only costs.
        temperature: sampling temperature of every retry.

    A refusal is not asked again, an empty reply once.
    """

    limit: int = 4
    same: int = 3
    temperature: float = 0.8

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 0:
            raise ConfigError(f"the number of retries is 0 or more, not {self.limit!r}", option="repair")
        if self.same < 1:
            raise ConfigError(f"same is 1 or more, not {self.same!r}", option="repair")
        if not 0 <= self.temperature <= 2:
            raise ConfigError(f"a temperature is between 0 and 2, not {self.temperature!r}", option="repair")

    def next(self, failures: Failures) -> Rung | None:
        """See `Repair.next`."""
        if failures.hopeless or len(failures.kinds) > self.limit:
            return None
        if failures.kinds[-1] == "refused" or failures.kinds.count("empty") > 1:
            return None
        if failures.wrong and max(Counter(failures.wrong).values()) >= self.same:
            return None
        # Alone: the steps behind it are not to be sampled at this temperature, nor paid for if it fails again.
        return Rung("resample", self.temperature, alone=True)
