"""Books: how each step of a run that is not accepted has failed so far, and how it is asked next."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from stepguard.core.verdicts import Deviation, DeviationKind
from stepguard.language.unseen import without_unseen
from stepguard.repair.policy import SOMEBODY_ELSE, Failures, Repair
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import FIRST, Rung, Vote

if TYPE_CHECKING:
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step
    from stepguard.repair.fallbacks import Fallbacks

_DOUBLINGS: Final = 4
"""How often the cap of a reply that was cut off is doubled before its step is given up."""


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
        # Ahead of every other, and no majority of a fixed number: as sure with fewer votes, since most agree at once.
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
        book.rung = self._next(failures) or self._fallbacks.next(failures)
        return book.rung is not None

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
        self._books.pop(index, None)  # no mutate: only room


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
