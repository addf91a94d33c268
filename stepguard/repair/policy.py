"""What is tried next after a step was not accepted.

A repair policy looks at how a step has failed so far and names the next rung: a way of asking it again, always in a
clean context. None means that nothing is left to try; the run then abstains at that step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from stepguard.core.verdicts import Deviation, DeviationKind
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import Rung, Vote

if TYPE_CHECKING:
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step

__all__ = ["Failures", "Repair", "Repairs"]

_DOUBLINGS: Final = 4
"""How often the cap of a reply that was cut off is doubled before its step is given up."""


@dataclass(slots=True)
class Failures:
    """How one step has failed so far, oldest first.

    Attributes:
        step: the step.
        values: what it reads.
        kinds: the kind of deviation of each failure.
        rungs: the way of asking that each of them came after.
        wrong: the values that were claimed and not accepted, as normalised text.
        last_wrong: the one that the last failure claimed, None where it claimed none.
        advanced: for each of them, whether smaller steps that were asked in the place of this one were verified that
            had not been: what is left of it is smaller.
        hopeless: whether a check said that no other claim can fare better.
        unread: whether the last reply said nothing that could be read, so that no step of it is to blame more than
            another. It is counted against the step that led it.
        echoes: how often in a row, the last failure included, the very same reply came in which no claim could be
            read; 0 where one could.
        isolated: whether it was asked by itself and greedily before, as it stands: the same would come back.
        useless: the names of rungs that seldom cured steps of its kind; see `stepguard.core.profile`.
    """

    step: Step
    values: Mapping[str, Value]
    kinds: list[DeviationKind] = field(default_factory=list)
    rungs: list[Rung] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    last_wrong: str | None = None
    advanced: list[bool] = field(default_factory=list)
    hopeless: bool = False
    unread: bool = False
    echoes: int = 0
    isolated: bool = False
    useless: frozenset[str] = frozenset()

    @property
    def choices(self) -> int | None:
        """How many values the step can have, None where that is not limited."""
        return self.step.type.choices

    def can(self, rung: Rung) -> bool:
        """Whether a rung asks anything, and anything that was not asked before."""
        if self.isolated and rung.plain and not rung.temperature:
            return False
        return rung.applies(self.step, self.values)


class Repair(Protocol):
    """Decides what is tried after a failure."""

    def next(self, failures: Failures, /) -> Rung | None:
        """The next rung for a step that has failed at least once; None to give up."""
        ...


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
        self._votes: dict[int, Counter[str]] = {}
        self._parts: dict[int, list[tuple[StandIn, dict[str, Value]]]] = {}
        self._said: dict[int, object] = {}
        vote: object = getattr(policy, "vote", None)
        self.vote: Final = vote if isinstance(vote, Vote) else None

    def elects(self, index: int, value: str) -> bool:
        """Whether one more vote for the value of a step decides it."""
        assert self.vote is not None
        votes = self._votes.setdefault(index, Counter())
        votes[value] += 1
        others = max((count for other, count in votes.items() if other != value), default=0)
        return votes[value] - others >= self.vote.ahead

    def parts(self, index: int, stand_in: StandIn) -> Mapping[str, Value]:
        """The values that are verified of what is asked in the place of a step."""
        return next((found for asked, found in self._parts.get(index, ()) if asked == stand_in), {})

    def advance(self, index: int, stand_in: StandIn, values: Mapping[str, Value]) -> bool:
        """Keep verified values of what was asked in the place of a step; whether there are any."""
        if values:
            held = self._parts.setdefault(index, [])
            known = {**self.parts(index, stand_in), **values}
            held[:] = [*(each for each in held if each[0] != stand_in), (stand_in, known)]
        return bool(values)

    def tries(self, index: int) -> int:
        """How often a step has failed so far."""
        failures = self._failures.get(index)
        return 0 if failures is None else len(failures.kinds)

    def last(self, index: int) -> DeviationKind | None:
        """What was wrong about a step the last time, None where nothing was."""
        failures = self._failures.get(index)
        return None if failures is None else failures.kinds[-1]

    def deviations(self, index: int) -> tuple[Deviation, ...]:
        """What was wrong about a step so far."""
        return tuple(self._deviations.get(index, ()))

    def note(self, index: int, deviation: Deviation) -> None:
        """Remember what was wrong about a step, whether it has to be asked again or not."""
        self._deviations.setdefault(index, []).append(deviation)

    def failed(
        self,
        index: int,
        step: Step,
        values: Mapping[str, Value],
        deviation: Deviation,
        *,
        rung: Rung,
        alone: bool,
        unread: object,
        wrong: str | None,
        advanced: bool,
        hopeless: bool,
        useless: frozenset[str],
    ) -> None:
        """Count a reply that was not accepted against the step.

        Args:
            index: the step's index.
            step: the step.
            values: what it reads.
            deviation: why the reply was not accepted.
            rung: how it was asked.
            alone: whether nothing else was asked.
            unread: all that the reply said where no claim could be read in it, else None.
            wrong: the value that was claimed, None where there was none.
            advanced: see `Failures`.
            hopeless: see `Failures`.
            useless: see `Failures`.
        """
        failures = self._failures.get(index)
        if failures is None:
            failures = self._failures[index] = Failures(step, values)
        failures.kinds.append(deviation.kind)
        failures.rungs.append(rung)
        failures.advanced.append(advanced)
        # A reply that was cut off says nothing of how it would have ended.
        said = None if unread is None or deviation.kind == "truncated" else (deviation.kind, unread)
        again = said is not None and said == self._said.get(index)
        failures.echoes = failures.echoes + 1 if again else int(said is not None)
        self._said[index] = said
        failures.last_wrong = wrong
        if wrong is not None:
            failures.wrong.append(wrong)
        failures.hopeless = hopeless
        failures.unread = deviation.step is None
        failures.isolated = failures.isolated or (alone and rung.plain and not rung.temperature)
        failures.useless = useless
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
        seen = replace(
            failures,
            kinds=list(failures.kinds),
            rungs=list(failures.rungs),
            wrong=list(failures.wrong),
            advanced=list(failures.advanced),
        )
        rung: object = self._policy.next(seen)
        if rung is None:
            return False
        if not isinstance(rung, Rung):
            raise TypeError(f"a Rung or None was expected, not {type(rung).__name__}")
        if not rung.applies(failures.step, failures.values):
            raise ValueError(f"the rung {rung.name!r} does not apply to step {failures.step.id!r}")
        self.again[index] = rung
        return True

    def settled(self, index: int) -> None:
        """The step was accepted."""
        self._failures.pop(index, None)
        self._deviations.pop(index, None)
        self._votes.pop(index, None)
        self._parts.pop(index, None)
        self._said.pop(index, None)
        self.again.pop(index, None)
