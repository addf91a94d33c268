"""Learning: what the run shows of the model, from which the length of segments and the order of rungs follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from stepguard.core.profile import Learner, Profile
from stepguard.core.verdicts import Deviation, DeviationKind
from stepguard.engine.flights import Flight, Rejection, Reply
from stepguard.engine.segments import SegmentLength, Segments
from stepguard.engine.step_kinds import step_kind
from stepguard.language.values import Value
from stepguard.repair.books import Repairs
from stepguard.repair.rungs import FIRST
from stepguard.results import StepRecord

_PAYS: Final = 0.01
"""From 1 step in 100 on, what is not written behind refused steps takes a model longer than a stream takes us."""


class Learning:
    """Turns what happens to flights into counts.

    Args:
        known: a profile from before.
        repairs: how often steps have failed; it is only read.
    """

    def __init__(self, segments: Segments, profile: Profile | None, repairs: Repairs) -> None:
        self._length = SegmentLength(segments, profile)
        self._learner = Learner(profile)
        self._repairs = repairs

    @property
    def profile(self) -> Profile:
        """What the run has shown so far."""
        return self._learner.profile()

    def size(self, remaining: int) -> int:
        """The most steps of the next segment, with `remaining` steps left."""
        return self._length.size(remaining)

    @property
    def slips(self) -> bool:
        """Whether so many steps are refused that it pays to stop replies there."""
        return self._learner.refused_share >= _PAYS

    def useless(self, kind: str, deviation: Deviation) -> frozenset[str]:
        """The names of the rungs that seldom cured steps of a kind of what is wrong now."""
        return self._learner.useless(_failed(kind, deviation.kind))

    def called(self, flight: Flight, reply: Reply, *, fixed: float, right: int = 0) -> None:
        """A call was answered and judged.

        Args:
            fixed: the share of its prompt that every prompt begins with.
            right: how many of its steps were accepted before the first that deviated.
        """
        if flight.rung.backend is not None:  # a profile is about the guard's own model
            return
        # Repairs ask one step in other words: only plain calls tell how long segments may be.
        steps, first = len(flight.segment.steps), flight.rung is FIRST
        self._learner.called(reply.usage, steps=steps, seconds=reply.seconds, fixed=fixed, again=not first)
        if first:
            self._length.add_reply(reply.usage, steps=steps, accepted=right, fixed=fixed)

    def cut_off(self, flight: Flight) -> None:
        """A reply was cut off: a segment of several steps was too long."""
        if len(flight.segment.steps) > 1:
            self._length.cut_off()

    def accepted(self, flight: Flight, records: Sequence[StepRecord], values: Mapping[str, Value]) -> None:
        """Steps of a flight are done; `values` is what all its steps read."""
        if flight.request is None:
            if flight.rung.assistance == "code" and self._repairs.tries(flight.first.index):
                self._learner.settled(well=True)
            return
        verified = dict(values)
        steps = dict(zip(flight.segment.indices, flight.segment.steps, strict=True))
        for record in records:  # steps between them may not be accepted
            step = steps[record.occurrence.index]
            kind = step_kind(step, verified)
            verified[step.id] = record.value
            if flight.rung.backend is None and not self._repairs.tries(record.occurrence.index):
                self._learner.asked(kind, well=True)
                continue
            self._tried(kind, flight, record.occurrence.index, well=True)
            self._learner.settled(well=True)

    def refused(self, flight: Flight, rejection: Rejection, kind: str) -> None:
        """A step of a kind was not accepted."""
        index = rejection.where.index
        if flight.request is None:
            return
        if self._repairs.tries(index):
            if rejection.deviation.step is None or rejection.advanced:
                return  # no step is to blame, or the rung is not at its end
            self._tried(kind, flight, index, well=False)
        else:
            self._learner.asked(kind, well=False)

    def _tried(self, kind: str, flight: Flight, index: int, *, well: bool) -> None:
        last = self._repairs.last(index)
        if last is not None:
            self._learner.tried(_failed(kind, last), flight.rung.name, well=well)

    def abandoned(self) -> None:
        """A step that was not accepted is not asked again."""
        self._learner.settled(well=False)


def _failed(kind: str, deviation: DeviationKind) -> str:
    """Steps of a kind that failed alike: a number that was looked up wrongly asks for another cure than a hard sum."""
    return f"{kind}, {deviation}"
