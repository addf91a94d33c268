"""What is tried next after a step was not accepted.

A repair policy looks at how a step has failed so far and names the next rung: a way of asking it again, always in a
clean context. None means that nothing is left to try; the run then abstains at that step.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from stepguard.core.verdicts import Deviation, DeviationKind
from stepguard.language.expressions import Chain
from stepguard.language.unseen import without_unseen
from stepguard.language.values import is_document
from stepguard.repair.rewriting import StandIn, is_plain_percentage
from stepguard.repair.rungs import FIRST, Rung, Split, Vote

if TYPE_CHECKING:
    from stepguard.backends.base import Backend
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step
    from stepguard.repair.fallbacks import Fallbacks

__all__ = ["Failures", "Repair", "Repairs", "counts_days", "way_at_first"]

_DOUBLINGS: Final = 4
"""How often the cap of a reply that was cut off is doubled before its step is given up."""
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
        if rung.backend is not None and rung.backend in self.passed:
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


@dataclass(slots=True)
class StepBook:
    """Everything that is kept of one step until it is accepted.

    Attributes:
        deviations: what was wrong about it so far, also where an observing run took it all the same.
        failures: how it has failed, None where no reply about it was refused yet.
        rung: how it is asked next, None where it is asked for the first time.
        votes: how often each of its values was claimed, where no check decides.
        parts: what was asked in its place, with the values of that which are verified.
        unread: what the last reply said, where no claim could be read in it.
        passed_over: how often it was refused behind another step, and is asked as if for the first time all the same.
    """

    deviations: list[Deviation] = field(default_factory=list)
    failures: Failures | None = None
    rung: Rung | None = None
    votes: Counter[str] = field(default_factory=Counter)
    parts: list[tuple[StandIn, dict[str, Value]]] = field(default_factory=list)
    unread: str | None = None
    passed_over: int = 0


class Repairs:
    """How the steps of one run have failed so far, and how each is asked next: a book for each that is not accepted.

    Args:
        policy: decides how a step is asked again.
        fallbacks: who is asked a step that the policy gives up.

    Attributes:
        vote: the rung that decides where no check does, None where the policy has none.
    """

    def __init__(self, policy: Repair, fallbacks: Fallbacks) -> None:
        self._policy = policy
        self._fallbacks = fallbacks
        self._books: dict[int, StepBook] = {}
        self._unwritten: Final = StepBook()  # of most steps: one is made for all, and only read
        # No part of the protocol: a policy of the caller's own need not have one.
        vote: object = getattr(policy, "vote", None)
        self.vote: Final = vote if isinstance(vote, Vote) else None

    def _book(self, index: int) -> StepBook:
        """The book of a step, a new one where it has none."""
        return self._books.setdefault(index, StepBook())

    def _seen(self, index: int) -> StepBook:
        """The book of a step to read in, an empty one where it has none."""
        return self._books.get(index, self._unwritten)

    def rung(self, index: int) -> Rung | None:
        """How a step that was not accepted is asked next; None for a step that is asked for the first time."""
        return self._seen(index).rung

    def named(self, names: Iterable[str]) -> list[Rung]:
        """The rungs of the policy that go by these names, in the order in which they came to be used."""
        rungs: object = getattr(self._policy, "rungs", ())
        known = [rung for rung in rungs if isinstance(rung, Rung)] if isinstance(rungs, Iterable) else []
        known += self._fallbacks.rungs
        used: list[Rung] = []
        for name in names:
            # Another model or a person errs only once, which tells two of one name apart.
            same = [each for each in known if each.name == name and not (each.independent and each in used)]
            used.append(same[0] if same else FIRST)
        return used

    def elects(self, index: int, value: str) -> bool:
        """Whether one more vote for the value of a step decides it."""
        assert self.vote is not None
        votes = self._book(index).votes
        votes[value] += 1
        others = max((count for other, count in votes.items() if other != value), default=0)
        return votes[value] - others >= self.vote.ahead

    def parts(self, index: int, stand_in: StandIn) -> Mapping[str, Value]:
        """The values that are verified of what is asked in the place of a step."""
        return next((values for replaced, values in self._seen(index).parts if replaced == stand_in), {})

    def advance(self, index: int, stand_in: StandIn, values: Mapping[str, Value]) -> bool:
        """Keep verified values of what was asked in the place of a step; whether there are any."""
        if values:
            parts = self._book(index).parts
            verified = {**self.parts(index, stand_in), **values}
            parts[:] = [*(part for part in parts if part[0] != stand_in), (stand_in, verified)]
        return bool(values)

    def tries(self, index: int) -> int:
        """How often a step has failed so far."""
        failures = self._seen(index).failures
        return 0 if failures is None else len(failures.kinds)

    def passed_over(self, index: int) -> int:
        """How often a step was refused behind another one without that being counted as a try."""
        return self._seen(index).passed_over

    def pass_over(self, index: int, deviation: Deviation) -> None:
        """A step was refused behind another one, and is asked as if for the first time."""
        self._book(index).passed_over += 1
        self.note(index, deviation)

    def refusals(self, index: int) -> int:
        """How often a step was not accepted so far, in whatever place of a reply."""
        return self.tries(index) + self.passed_over(index)

    def last(self, index: int) -> DeviationKind | None:
        """What was wrong about a step the last time, None where nothing was."""
        failures = self._seen(index).failures
        return None if failures is None else failures.kinds[-1]

    def deviations(self, index: int) -> tuple[Deviation, ...]:
        """What was wrong about a step so far."""
        return tuple(self._seen(index).deviations)

    def note(self, index: int, deviation: Deviation) -> None:
        """Remember what was wrong about a step, whether it has to be asked again or not."""
        self._book(index).deviations.append(deviation)

    def failed(
        self,
        index: int,
        step: Step,
        values: Mapping[str, Value],
        deviation: Deviation,
        *,
        rung: Rung,
        alone: bool,
        unread: str | None,
        runaway: bool,
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
            runaway: whether it ran on and on.
            wrong: the value that was claimed, None where there was none.
            advanced: see `Failures`.
            hopeless: see `Failures`.
            useless: see `Failures`.
        """
        book = self._book(index)
        if book.failures is None:
            book.failures = Failures(step, values)
        failures = book.failures
        failures.kinds.append(deviation.kind)
        failures.rungs.append(rung)
        failures.advanced.append(advanced)
        # A reply that was cut off says nothing of how it would have ended.
        reply = None if unread is None or deviation.kind == "truncated" else _gist(unread)
        again = reply is not None and reply == book.unread
        failures.echoes = failures.echoes + 1 if again else int(reply is not None)
        book.unread = reply
        if not rung.independent:
            failures.runaways += runaway
            failures.ran_on = failures.ran_on or (runaway and not rung.draft)
        if failures.ran_on:
            own = zip(failures.kinds, failures.rungs, strict=True)
            cut = sum(kind == "truncated" and not each.independent for kind, each in own)
            # Once a model has run away at a step, replies that were only cut off count as the same.
            failures.runaways = max(failures.runaways, cut)
        failures.last_wrong = None if wrong is None else " ".join(wrong.split())
        if failures.last_wrong is not None:
            failures.wrong.append(failures.last_wrong)
            if deviation.kind == "wrong_value":
                failures.refused.append(failures.last_wrong)
        failures.hopeless = hopeless
        failures.unread = deviation.step is None
        failures.isolated = failures.isolated or (alone and rung.plain and not rung.temperature)
        failures.useless = useless
        self.note(index, deviation)

    def decide(self, index: int) -> bool:
        """Whether a step that failed is asked again; `rung` then says how.

        Raises:
            Exception: whatever the policy raises, and `TypeError` where it names no rung.
        """
        book = self._books[index]
        failures = book.failures
        assert failures is not None
        if failures.hopeless:
            return False
        failures.passed = self._fallbacks.passed
        rung = self._next(failures) or self._fallbacks.next(failures)
        if rung is not None:
            book.rung = rung
        return rung is not None

    def _next(self, failures: Failures) -> Rung | None:
        """What the policy names, where that is of use."""
        cut = failures.kinds.count("truncated")
        # A reply that is cut off at the highest cap will be cut off again; and a fallback stands behind the policy.
        if cut > _DOUBLINGS or (failures.kinds[-1] != "truncated" and self._fallbacks.is_own(failures.rungs[-1])):
            return None
        rung: object = self._policy.next(_copied(failures))
        if rung is None:
            return None
        if not isinstance(rung, Rung):
            raise TypeError(f"a Rung or None was expected, not {type(rung).__name__}")
        if not rung.applies(failures.step, failures.values):
            raise ValueError(f"the rung {rung.name!r} does not apply to step {failures.step.id!r}")
        return None if failures.futile and not rung.independent else rung

    def explain(self, index: int) -> str | None:
        """Why a step that was given up is not asked again, and what to do; None where its last failure says it all.

        Raises:
            Exception: whatever the policy raises.
        """
        failures = self._seen(index).failures
        assert failures is not None
        if failures.hopeless:
            return None
        if failures.futile is not None:
            return f"{failures.futile}; {SOMEBODY_ELSE}"
        explain = getattr(self._policy, "explain", None)
        reason: object = explain(_copied(failures)) if callable(explain) else None
        return reason if isinstance(reason, str) else None

    def has_run_away(self, index: int) -> bool:
        """Whether replies ran on and on at a step: a higher cap would only be hit later."""
        failures = self._seen(index).failures
        return failures is not None and failures.runaways > 0

    def settled(self, index: int) -> None:
        """The step was accepted."""
        self._books.pop(index, None)


def _copied(failures: Failures) -> Failures:
    """As a policy may see them, which cannot change them so."""
    return replace(
        failures,
        kinds=list(failures.kinds),
        rungs=list(failures.rungs),
        wrong=list(failures.wrong),
        refused=list(failures.refused),
        advanced=list(failures.advanced),
    )


def _gist(said: str) -> str:
    """What a reply says, apart from white space, capitals, fences, signs that nobody sees, apostrophes and the order of
    its keys."""
    # Some models vary nothing else: with ten retries, each variant of one unreadable reply was paid for.
    text = without_unseen(unicodedata.normalize("NFKC", said)).casefold().strip("`~ \t\r\n").removeprefix("json")
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text, object_pairs_hook=lambda pairs: sorted(pairs, key=repr)))
    return "".join(text.replace("\u2019", "'").split())
