"""The ladder: what is tried when a step is not accepted, rung by rung, until it is or nothing is left.

The whole policy stands on this page. It is a function of how the step has failed: what was wrong, in which way it was
asked, and what the run (or an earlier one) has learned about steps of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from stepguard.core.arguments import check_count
from stepguard.core.verdicts import FORMAL
from stepguard.errors import ConfigError
from stepguard.repair.policy import SOMEBODY_ELSE, Failures
from stepguard.repair.rungs import (
    FIRST,
    Draft,
    Eliminate,
    Fields,
    Parts,
    Passage,
    Question,
    Reorder,
    Resample,
    Rewrite,
    Rung,
    Split,
    Vote,
)

DEFAULT_RUNGS: Final[tuple[Rung, ...]] = (
    Resample(),
    Rewrite(),
    Split(),
    Reorder(),
    Passage(),
    Fields(),
    Question(),
    Parts(),
    Eliminate(),
    Question(temperature=0.8),
    Rewrite(temperature=0.8, turned=True),
    Split(temperature=0.8, way="round_numbers", times=2),
    Split(way="compensation"),
    Resample(temperature=1.0, times=3),
    Draft(),
    Split(temperature=0.8),
    Split(way="whole_numbers"),
    Split(way="thousands"),
    Split(temperature=0.8, way="thousands", times=2),
    Split(way="thousands", wording="question"),
)
"""The order follows from what cured steps that a real model had failed on (``benchmarks/results``, 117 steps).

Asking the step by itself cures 93 % of what was looked up wrongly and 55 % of sums that came out wrong, without help.
Of what that leaves, rewriting the sum cures 70 % for as many tokens, splitting it 86 % for three times as many, a plain
question 41 %. Each of these ways comes once more, with some randomness, the numbers of a sum in the other order and
the small steps finer. What is left then are sums that a small model gets wrong in every order and digit by digit, such
as ``94 + 204``; it finds ``204 + 100`` and ``304 - 6``. Working freely first cured three quarters of what it was tried
on, for ten times as many tokens, and comes last. What is behind it is for steps of which nothing else may be asked
again, such as the difference that decides a comparison, where the first reply to it had a slip of its own, and formulas
with decimal places or long numbers: of 23 sums and products that a 1.5B model got wrong as they stand, it found 13 in
whole numbers at once, and of 22 others with numbers of 5 to 7 digits all with those parted, 12 at once. It rounds
215.997 to 215.99 in a step, and rightly in a plain question.
"""

_CUTS: Final = 3
"""How many replies cut off at a step show that it is not the cap."""
_WHOLE_SEGMENT: Final = Resample(alone=False)
_LONGER: Final = Rung("longer")


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs in order. A plain number stands for so many resamples: ``Guard(..., repair=2)``.

    Args:
        rungs: what is tried, the first one first.
        same: a rung is left at once when the same wrong value has been claimed this often: what repeats is
            systematic, and asking the same way again only costs.
        few: a step is not asked again after a wrong value when fewer values than this are left that it can have:
            "wrong" would be half of the answer. A truth value has two, so it gets no second guess, nor does a step
            with up to `few` options. Rungs that ask something else in its place are tried all the same, where a guess
            would be right no more often: the difference whose sign decides a comparison (`Split`), three options and
            more each by itself (`Eliminate`). So are those on which somebody else answers, until they err, too.

    Raises:
        ConfigError: the rungs are no rungs, or a number is out of range.
    """

    rungs: tuple[Rung, ...]
    same: int
    few: int

    def __init__(self, rungs: Iterable[Rung] = DEFAULT_RUNGS, *, same: int = 2, few: int = 4) -> None:
        if isinstance(rungs, Rung) or not isinstance(rungs, Iterable):
            raise ConfigError(f"a ladder has rungs such as [Resample()], not {rungs!r}", option="repair")
        entries: tuple[object, ...] = tuple(rungs)
        for rung in entries:
            if not isinstance(rung, Rung):
                raise ConfigError(f"a ladder has rungs such as Resample(), not {rung!r}", option="repair")
            if isinstance(rung, Vote) and sum(isinstance(entry, Vote) for entry in entries) > 1:
                raise ConfigError("one vote is enough: a ladder has at most one Vote", option="repair")
            if entries.count(rung) > 1:
                raise ConfigError(f"{rung.name} stands twice in the ladder: give it times=2", option="repair")
        check_count(same, "repair", name="same")
        check_count(few, "repair", name="few")
        object.__setattr__(self, "rungs", entries)
        object.__setattr__(self, "same", same)
        object.__setattr__(self, "few", few)

    @classmethod
    def of(cls, retries: int) -> Ladder:
        """A ladder that only asks again, at most `retries` times; three equal wrong values end it earlier."""
        check_count(retries, "repair", least=0, name="the number of retries")
        return cls([Resample(times=retries)] if retries else [], same=3)

    @property
    def vote(self) -> Vote | None:
        """The rung that decides where no check does, None where there is none."""
        return next((rung for rung in self.rungs if isinstance(rung, Vote)), None)

    def next(self, failures: Failures) -> Rung | None:
        """See `stepguard.repair.policy.Repair.next`."""
        last, rung = failures.kinds[-1], failures.rungs[-1]
        if failures.hopeless or not self.rungs:
            return None
        # Before the rungs: a reply that was cut off says nothing of how it would have ended.
        if last == "truncated" and not failures.runaways and failures.kinds.count(last) < _CUTS:
            return _LONGER if rung in (FIRST, _LONGER, _WHOLE_SEGMENT) else rung  # as it was, with a higher cap
        if failures.advanced[-1]:
            return rung  # and what is left of the step is smaller
        if failures.unread and len(failures.kinds) == 1 and last != "refused":
            return _WHOLE_SEGMENT  # nothing could be read: no step is to blame more than another
        # A vote whose reply had a wrong form is cast again: it said nothing of the value.
        vote = self.vote if last == "undecided" or (rung == self.vote and last in FORMAL) else None
        if vote is not None and failures.rungs.count(vote) < vote.times:
            return vote
        others_only = vote is not None or self._declines(failures) or failures.futile is not None
        guessing = self._values_left(failures) is not None
        for rung in self._open(failures):
            own = not rung.independent
            if own and (others_only or failures.ran_on_like(rung)):
                continue
            if guessing and (self._would_guess(rung, failures) if own else failures.has_erred(rung)):
                continue
            if failures.can(rung):
                return _WHOLE_SEGMENT if self._is_dear(rung, failures) else rung
        return None

    def _is_dear(self, rung: Rung, failures: Failures) -> bool:
        """Whether asking the step by itself first, and what is behind it then, would send its document twice."""
        first = rung == self.rungs[0] and len(failures.kinds) == 1 and not failures.isolated
        resampled = isinstance(rung, Resample) and rung.temperature == _WHOLE_SEGMENT.temperature
        return first and resampled and failures.reads_document

    def explain(self, failures: Failures) -> str | None:
        """Why a step that was given up was not asked again, where that is not for want of rungs, and what to do."""
        remaining = self._values_left(failures)
        if remaining is not None and self.rungs:
            many = {0: "no value is left", 1: "1 value is left"}.get(remaining, f"{remaining} values are left")
            return (
                f"it was not asked again as it stands: {many}, so that the next one would be a guess that a check "
                f"lets through; {SOMEBODY_ELSE}, or let what decides it be steps of their own"
            )
        if not self._declines(failures):
            return None
        # An empty reply is as likely a server's limit or a stop word as a model that will not answer.
        silent = "the reply was empty more than once: look at the limits and stop words of the server, or"
        return f"{'the model declines;' if 'refused' in failures.kinds else silent} {SOMEBODY_ELSE}"

    def _values_left(self, failures: Failures) -> int | None:
        """How many values are left after a wrong one, where these are so few that the next would be a guess."""
        if failures.choices is None or not failures.refused:
            return None
        remaining = max(failures.choices - len(set(failures.refused)), 0)
        return remaining if remaining < self.few else None

    def _would_guess(self, rung: Rung, failures: Failures) -> bool:
        """Whether so few answers to what a rung asks are left that one of them would be a guess."""
        outcomes = failures.outcomes(rung)
        return outcomes is not None and outcomes - len(set(failures.refused)) < self.few

    def _declines(self, failures: Failures) -> bool:
        """Whether the run's own model will not answer: it has refused, or has said nothing twice."""
        own = [kind for kind, rung in zip(failures.kinds, failures.rungs, strict=True) if not rung.independent]
        return "refused" in own or own.count("empty") > 1

    def _open(self, failures: Failures) -> list[Rung]:
        """The rungs that are left: the last one again while its bound allows, and those that were not used.

        Among rungs that follow each other, and on which the run's own model is asked, those that seldom cured such
        steps come last; nobody else is asked earlier for that. A step that is hard as it stands is not asked again so
        before what can be asked in its place was.
        """
        tried = zip(failures.rungs, failures.kinds, failures.advanced, strict=True)
        # A rung is not used up by a reply that was cut off, nor by one that got further.
        used = [rung for rung, kind, advanced in tried if kind != "truncated" and not advanced]
        if isinstance(self.rungs[0], Resample):  # asking the whole segment again was one
            used = [self.rungs[0] if rung is _WHOLE_SEGMENT else rung for rung in used]
        repeats = sum(each == failures.last_wrong for each in failures.wrong) >= self.same
        climbed = [rung for rung in used if rung in self.rungs]
        last = [] if repeats else climbed[-1:]
        candidates = [
            rung
            for rung in self.rungs
            if not isinstance(rung, Vote) and (used.count(rung) < rung.times if rung in last else rung not in used)
        ]

        def seldom(rung: Rung) -> bool:
            return rung.name in failures.useless and rung not in last and not rung.independent

        hard = "wrong_value" in failures.kinds and failures.hard_as_it_stands

        def late(rung: Rung) -> tuple[bool, bool]:
            again = hard and rung not in last and rung.stand_in(failures.step, failures.values) is None
            return again, seldom(rung)

        groups = groupby(candidates, key=lambda rung: rung.independent)
        return [rung for _, group in groups for rung in sorted(group, key=late)]
