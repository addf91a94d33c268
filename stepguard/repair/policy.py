"""What is tried next after a step was not accepted.

A repair policy looks at how a step has failed so far and names the next rung: a way of asking it again, always in a
clean context. None means that nothing is left to try; the run then abstains at that step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from stepguard.core.verdicts import DeviationKind
from stepguard.language.expressions import Chain
from stepguard.language.values import is_document
from stepguard.repair.rewriting import is_plain_percentage
from stepguard.repair.rungs import Rung, Split

if TYPE_CHECKING:
    from stepguard.backends.base import Backend
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step

__all__ = ["Failures", "Repair", "counts_days", "way_at_first"]

_EQUALS: Final = 3
"""How often in a row the same unreadable reply shows that it does not depend on how the step is asked."""
_RUNAWAYS: Final = 3
"""How often a model may run away at a step before it is not asked it again."""
_OF_DAYS: Final = frozenset({"date", "duration", "number", "integer"})
_SPLIT: Final = Split()
SOMEBODY_ELSE: Final = "have somebody else answer it: another_model(...) or person(...), a rung of repair=Ladder(...)"


@dataclass(slots=True)
class Failures:
    """How one step has failed so far, oldest first.

    Attributes:
        step: the step.
        values: what it reads.
        kinds: the kind of deviation of each failure.
        rungs: the way of asking that each of them came after.
        wrong: the values that were claimed and not accepted, as normalised text.
        refused: those of them that a check found wrong, whatever stands behind them.
        last_wrong: the one that the last failure claimed, None where it claimed none.
        advanced: for each of them, whether smaller steps that were asked in the place of this one were verified that
            had not been: what is left of it is smaller.
        hopeless: whether a check said that no other claim can fare better.
        unread: whether the last reply said nothing that could be read, so that no step of it is to blame more than
            another. It is counted against the step that led it.
        echoes: how often in a row, the last failure included, the same reply came in which no claim could be read,
            but for white space; 0 where one could.
        runaways: how many replies ran on and on at this step; once one has that was no draft, all that were cut off
            there count.
        ran_on: whether one of them was no draft, so that small steps will be run on at, too. What ran on behind a draft
            says that of drafts alone: small steps are asked without the text.
        isolated: whether it was asked by itself and greedily before, as it stands: the same would come back.
        useless: the names of rungs that seldom cured steps of its kind; see `stepguard.core.profile`.
        passed: other models that did not answer in this run, or that stand in for its own by now.
    """

    step: Step
    values: Mapping[str, Value]
    kinds: list[DeviationKind] = field(default_factory=list)
    rungs: list[Rung] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    last_wrong: str | None = None
    advanced: list[bool] = field(default_factory=list)
    hopeless: bool = False
    unread: bool = False
    echoes: int = 0
    runaways: int = 0
    ran_on: bool = False
    isolated: bool = False
    useless: frozenset[str] = frozenset()
    passed: tuple[Backend, ...] = ()

    @property
    def choices(self) -> int | None:
        """How many values the step can have; None where that is not limited, and for a copy, which is no choice."""
        return None if self.step.copied else self.step.type.choices

    @property
    def hard_as_it_stands(self) -> bool:
        """Whether a model that fails at it fails again: it wants a calendar, or a number written as a percentage."""
        if self.step.expression is not None:
            return is_plain_percentage(self.step)
        return _calendar(self.step) and _SPLIT.applies(self.step, self.values)

    @property
    def reads_document(self) -> bool:
        """Whether each request that asks the step sends a document along."""
        return any(map(is_document, self.values.values()))

    @property
    def futile(self) -> str | None:
        """Why asking the run's own model again is of no use, whatever the policy says; None where it may be."""
        own = [rung for rung in self.rungs[len(self.rungs) - self.echoes :] if not rung.independent]
        if len(own) >= _EQUALS:
            return f"the same reply came {len(own)} times in a row: nothing changed"
        if self.runaways >= _RUNAWAYS:
            return f"{self.runaways} replies ran on like that, which more tokens would only make longer"
        return None

    def outcomes(self, rung: Rung) -> int | None:
        """In how many ways what a rung asks can be answered, of which one is right; None where that is not limited."""
        stand_in = rung.stand_in(self.step, self.values)
        return self.choices if stand_in is None else stand_in.outcomes

    def has_erred(self, rung: Rung) -> bool:
        """Whether a value from a rung was found wrong: being asked again gives that away."""
        return any(each == rung and kind == "wrong_value" for each, kind in zip(self.rungs, self.kinds, strict=True))

    def ran_on_like(self, rung: Rung) -> bool:
        """Whether replies that ran on say that those to a rung will, which has the model write more than the step."""
        return self.runaways > 0 and (rung.draft or (rung.assistance == "split" and self.ran_on))

    def can(self, rung: Rung) -> bool:
        """Whether a rung asks something, and something new, of a model or a person that may answer."""
        if self.isolated and rung.plain and not rung.temperature:
            return False
        if rung.backend in self.passed:
            return False
        return rung.applies(self.step, self.values)


def _calendar(step: Step) -> bool:
    return step.expression is None and step.exact is not None


def counts_days(step: Step) -> bool:
    """Whether a step may be asked as a sum of days at once: its value is a date, a span or a number of days."""
    return _calendar(step) and step.type.kind in _OF_DAYS and isinstance(step.exact, Chain)


def way_at_first(step: Step, values: Mapping[str, Value]) -> Rung | None:
    """How a step is asked at once that models do not get right as it stands; None where it is asked itself.

    Of the dates and spans of ``benchmarks/branches.py`` Qwen2.5-Coder got 23 of 98 (1.5B) and 5 of 56 (0.5B) right as
    they stand; all of the other 75, and 44 of the other 51, as sums of days.
    """
    return _SPLIT if counts_days(step) and _SPLIT.applies(step, values) else None


class Repair(Protocol):
    """Decides what is tried after a failure.

    A policy may have a method ``explain`` beside, which takes the failures of a step that it gave up and says in a few
    words why, and what to do; or None. The result's reason ends on that.
    """

    def next(self, failures: Failures, /) -> Rung | None:
        """The next rung for a step that has failed at least once; None to give up."""
        ...
