"""Schedule: which steps of a run are done, which are on their way, and which can be asked next.

The committed set is closed under what steps read: a step is only ever asked when everything it reads is committed, or
set by a step before it in the same segment. A lazy procedure is too long to keep every value: those that no later step
may read are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from types import MappingProxyType

from stepguard.core.verdicts import Strength, weakest
from stepguard.engine.control import Pending, StepSource, Straight, Unfolding
from stepguard.errors import ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import EFFECTIVE, Step
from stepguard.repair.policy import counts_days
from stepguard.repair.rungs import Rung
from stepguard.results import Occurrence

_LOOK_AHEAD = 4
"""With parallel segments: how far to look beyond the first open step, in multiples of what can be asked at once."""

_MOST_BEFORE = 20
"""The most earlier steps that are shown before a segment because their text leads into it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps that can be asked together, with their indices.

    `before` are completed steps whose text leads into that of the first one, `occurrences` the places of the steps.
    """

    indices: tuple[int, ...]
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """The step at `index` cannot be had: a lazy procedure turned out wrong, or no way leads on from a place."""

    index: int
    error: Exception
    place: tuple[str, str] = ("", "")


class Schedule:
    """Which steps are done, with their values, and which can be asked.

    Attributes:
        values: the inputs and the values of the completed steps, by name.
        completed: how many steps are completed.
        frontier: the index of the first step that is not completed.
        source: gives the steps, as far as they are decided.

    Args:
        parallel: how many segments may be on their way at the same time.
    """

    def __init__(self, procedure: Procedure, inputs: Mapping[str, Value], *, parallel: int) -> None:
        self.values: dict[str, Value] = dict(inputs)
        self.completed = 0
        self.frontier = 0
        self._look_back = procedure.look_back
        self._mixed = not procedure.straight
        self._parallel = parallel
        self._ahead: set[int] = set()  # completed steps behind the frontier
        self._flying: dict[int, str] = {}  # the ids of the steps on their way, by index
        self._weak: dict[str, Strength] = {}  # what stands behind the values that are less than proved
        self._retained: list[tuple[int, str]] = []  # of a lazy procedure: a heap of the steps whose values are kept
        self._control: dict[int, Strength] = {}  # what stands behind the coming up of steps, where less than proved
        self.source: StepSource = Straight(procedure, self) if procedure.straight else Unfolding(procedure, self)

    @property
    def finished(self) -> bool:
        """Whether every step is completed, and no more will come up."""
        return self.completed == self.source.known and self.source.ended and self.source.failure is None

    @property
    def unordered(self) -> bool:
        """Whether steps may be completed before others in front of them."""
        return self._mixed or self._parallel > 1

    def separable(self, steps: Iterable[Step]) -> bool:
        """Whether claims of one reply about these steps are judged apart from refused ones that they do not rest on.

        A straight line of formulas is a chain, of which nothing behind a refused one is kept; and words that lead on
        from other words, or that name nothing they read, may rest on any step before them.
        """
        steps = tuple(steps)
        in_words = [step for step in steps if step.expression is None]
        if any(step.with_next for step in steps) or not all(step.reads or step.exact for step in in_words):
            return False
        return self.unordered or bool(in_words)

    @property
    def remaining(self) -> int:
        """How many of the steps that have come up are not completed."""
        return self.source.known - self.completed

    def where(self, index: int) -> Occurrence:
        """The step at an index, also where a lazy procedure is wrong there, or it is not decided which one it is."""
        if index >= self.source.known:
            return Occurrence(index, f"#{index + 1}")
        try:
            pending = self.source.at(index)
        except ProcedureError as broken:
            return Occurrence(index, broken.step or f"#{index + 1}")
        return pending.occurrence(index)

    def read(self, steps: Iterable[Step]) -> Mapping[str, Value]:
        """The verified values that `steps` read."""
        values = self.values
        return MappingProxyType({name: values[name] for step in steps for name in step.reads if name in values})

    def support(self, names: Iterable[str]) -> Strength:
        """What stands behind the weakest of these values and all they rest on; inputs are taken as given."""
        if not self._weak:
            return "proved"
        return weakest(self._weak[name] for name in names if name in self._weak)

    def next_segment(self, size: int, way: Callable[[int, Step], Rung | None]) -> Segment | Broken | None:
        """The next steps that can be asked together, None where there are none for now.

        Args:
            way: how a step is to be asked that was not accepted, or that is not asked as it stands at first; None for
                any other. Such a step leads its segment.
        """
        strict = not self.unordered
        self.source.advance(self.frontier + _LOOK_AHEAD * size * self._parallel + _MOST_BEFORE)
        end = self.source.known
        if not strict:
            end = min(end, self.frontier + _LOOK_AHEAD * size * self._parallel)
        if self.frontier == end and (failure := self.source.failure) is not None:
            return Broken(end, failure, self.source.place)
        indices: list[int] = []
        steps: list[Step] = []
        places: list[Occurrence] = []
        ids: set[str] = set()
        leading: Rung | None = None  # how the first of them is asked
        waiting: set[str] = set()  # steps that are not asked yet: an id that is used again has to wait for them
        for index in range(self.frontier, end):
            if index in self._flying or index in self._ahead:
                continue
            # The text of the last step leads into a step that is under way or done: nothing else may take its place.
            if steps and steps[-1].with_next and index != indices[-1] + 1:
                break
            try:
                pending = self._come_up(index, ids)
            except ProcedureError as error:
                if indices:
                    break
                return Broken(index, error)
            step = pending.step
            if step.id in waiting:
                break
            unread = [name for name in step.reads if name not in self.values]
            # Beside what it reads, but for a sum of days: how that is asked hangs on the values.
            readable = not unread or (ids.issuperset(unread) and not counts_days(step))
            # A step with effects waits for all before it: a step that is given up ends the run before any later effect.
            readable &= index == self.frontier or step.performer not in EFFECTIVE
            # A lookup is free, and steps to be asked may read it: it goes first, or waits for what it reads.
            if steps and not strict and step.performer == "code" and step.copied:
                if self.values.keys() >= set(step.reads):
                    return Segment((index,), (step,), (), (pending.occurrence(index),))
                waiting.add(step.id)
                continue
            # Small models lose the form of a reply that mixes equations and objects: of those that come up on the way
            # the ones of one kind are asked together, and the others after them.
            if self._mixed and steps and (step.expression is None) != (steps[0].expression is None):
                waiting.add(step.id)
                continue
            # Code, functions, tools and persons perform one step at a time.
            if not readable or (indices and (step.performer != "model" or way(index, step) is not None)):
                if strict or (indices and readable):
                    break
                waiting.add(step.id)
                continue
            indices.append(index)
            steps.append(step)
            places.append(pending.occurrence(index))
            ids.add(step.id)
            if len(steps) == 1:
                leading = way(index, step)
            if step.performer != "model" or (leading is not None and not leading.plain):
                break
            alone = leading is not None and leading.alone
            leads_on = step.with_next and len(indices) < size + _MOST_BEFORE
            if (alone or len(indices) >= size) and not leads_on:
                break
        if not indices:
            return None
        return Segment(tuple(indices), tuple(steps), self._before(indices[0]), tuple(places))

    def _before(self, index: int) -> tuple[Step, ...]:
        """The completed steps whose text leads into that of the step at `index`."""
        before: list[Step] = []
        try:
            while (
                len(before) < _MOST_BEFORE
                and (index <= self.frontier or index - 1 in self._ahead)
                and index > 0
                and (step := self.source.at(index - 1).step).with_next
            ):
                before.append(step)
                index -= 1
        except ProcedureError:  # a lazy procedure does not give it again
            pass
        return tuple(reversed(before))

    def _come_up(self, index: int, before: set[str]) -> Pending:
        pending = self.source.at(index)
        step = pending.step
        if pending.control != "proved":
            self._control[index] = pending.control
        if self._look_back is None:
            return pending
        # A lazy procedure is not checked as a whole: an id that is still in use would be mistaken for the other step.
        if step.id in self.values or step.id in before or step.id in self._flying.values():
            raise ProcedureError(f"duplicate id: {step.id!r} is already an earlier step", step=step.id)
        return pending

    def control(self, index: int) -> Strength:
        """What stands behind the conditions and lists because of which a step came up."""
        return self._control.get(index, "proved")

    def define(self, name: str, value: Value, support: Strength) -> None:
        """Give a value that follows from others a name of its own."""
        self.values[name] = value
        if support != "proved":
            self._weak[name] = support

    def drop(self, names: Iterable[str]) -> None:
        """These values are read by no later step."""
        for name in names:
            self.values.pop(name, None)
            self._weak.pop(name, None)

    def start(self, segment: Segment) -> None:
        """These steps are on their way."""
        self._flying.update(zip(segment.indices, (step.id for step in segment.steps), strict=True))

    def land(self, segment: Segment) -> None:
        """These steps are on their way no longer; those that were not completed can be asked again."""
        for index in segment.indices:
            self._flying.pop(index, None)

    def complete(self, occurrence: Occurrence, value: Value, support: Strength) -> None:
        """A step has its value."""
        self.values[occurrence.step] = value
        # A lazy procedure may use an id again: the strength of its earlier value is not that of this one.
        self._weak.pop(occurrence.step, None)
        if support != "proved":
            self._weak[occurrence.step] = support
        self._ahead.add(occurrence.index)
        self.completed += 1
        while self.frontier in self._ahead:
            self._ahead.remove(self.frontier)
            self.frontier += 1
        self._control.pop(occurrence.index, None)
        look_back = self._look_back
        if look_back is not None:
            heappush(self._retained, (occurrence.index, occurrence.step))
            # By index, not by age: the first open step may be asked again long after later ones were completed.
            while self._retained and self._retained[0][0] < self.frontier - look_back:
                _, name = heappop(self._retained)
                self.values.pop(name, None)
                self._weak.pop(name, None)
