"""What is tried next after a step was not accepted.

A repair policy looks at how a step has failed so far and names the next rung: a way of asking it again, always in a
clean context. None means that nothing is left to try; the run then abstains at that step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from stepguard.errors import ConfigError
from stepguard.verdicts import Deviation, DeviationKind

if TYPE_CHECKING:
    from stepguard.procedure import Step

__all__ = ["FIRST", "Failures", "Repair", "Repairs", "Retries", "Rung"]

_DOUBLINGS: Final = 4
"""How often the cap of a reply that was cut off is doubled before its step is given up."""


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
        choices: how many values the step can have, None where that is not limited.
        hopeless: whether a check said that no other claim can fare better.
        unread: whether the last reply said nothing that could be read, so that no step of it is to blame more than
            another. It is counted against the step that led it.
    """

    kinds: list[DeviationKind] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    choices: int | None = None
    hopeless: bool = False
    unread: bool = False


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

    Where nothing of a reply could be read, the whole segment is asked again first. A reply that was cut off is asked
    again as it was, with a higher cap. A refusal is not asked again, an empty reply once. A step with few possible
    values (a yes or no) gets no second guess after a wrong one: "wrong" would be the answer.
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
        if failures.kinds[-1] == "wrong_value" and failures.choices is not None:
            left = failures.choices - len(set(failures.wrong))
            if left <= 1:
                return None
        if failures.kinds[-1] == "truncated":
            return Rung("longer")
        if failures.wrong and max(Counter(failures.wrong).values()) >= self.same:
            return None
        # Alone: the steps behind it are not to be sampled at this temperature, nor paid for if it fails again.
        alone = not failures.unread or len(failures.kinds) > 1
        return Rung("resample", self.temperature, alone=alone)


class Repairs:
    """How the steps of one run have failed so far, and how each is asked next.

    Attributes:
        again: how the steps that were not accepted are asked next, by index.
    """

    def __init__(self, policy: Repair) -> None:
        self.again: dict[int, Rung] = {}
        self._policy = policy
        self._failures: dict[int, Failures] = {}
        self._deviations: dict[int, list[Deviation]] = {}

    def failures(self, index: int) -> Failures:
        """How a step has failed so far."""
        return self._failures.get(index) or Failures()

    def deviations(self, index: int) -> tuple[Deviation, ...]:
        """What was wrong about a step so far."""
        return tuple(self._deviations.get(index, ()))

    def note(self, index: int, deviation: Deviation) -> None:
        """Remember what was wrong about a step, whether it has to be asked again or not."""
        self._deviations.setdefault(index, []).append(deviation)

    def wrong(self, index: int, value: str) -> None:
        """Remember a value that was claimed and not accepted."""
        self._failures.setdefault(index, Failures()).wrong.append(value)

    def failed(self, index: int, step: Step, deviation: Deviation, *, hopeless: bool) -> None:
        """Count a reply that was not accepted against the step."""
        failures = self._failures.setdefault(index, Failures())
        failures.kinds.append(deviation.kind)
        failures.hopeless = hopeless
        failures.choices = step.type.choices
        failures.unread = deviation.step is None
        self.note(index, deviation)

    def decide(self, index: int) -> bool:
        """Whether a step that failed is asked again; `again` then says how.

        Raises:
            Exception: whatever the policy raises, and `TypeError` where it names no rung.
        """
        failures = self._failures[index]
        # A reply that is cut off at the highest cap will be cut off again.
        if failures.hopeless or failures.kinds.count("truncated") > _DOUBLINGS:
            return False
        seen = replace(failures, kinds=list(failures.kinds), wrong=list(failures.wrong))
        rung: object = self._policy.next(seen)
        if rung is None:
            return False
        if not isinstance(rung, Rung):
            raise TypeError(f"a Rung or None was expected, not {type(rung).__name__}")
        self.again[index] = rung
        return True

    def settled(self, index: int) -> None:
        """The step was accepted."""
        self._failures.pop(index, None)
        self._deviations.pop(index, None)
        self.again.pop(index, None)
