"""Recalling: reuses what earlier processes made durable of a run, instead of asking or calling again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from stepguard.checks import Judgement
from stepguard.engine.actions import OperationCall, deviation_of
from stepguard.engine.journal import Journal, KeptStep, place_of, step_digest
from stepguard.engine.schedule import Schedule, Segment
from stepguard.errors import ValueRefused
from stepguard.language.values import Value
from stepguard.procedure.operations import Operation
from stepguard.procedure.steps import Step
from stepguard.results import Occurrence

_MOST_STEPS: Final = 5
_OF_PARTS: Final = frozenset({"split", "rewrite", "fields", "parts"})
"""Rungs whose wrong values are those of smaller steps."""
_TRUTHS: Final = {"yes": True, "no": False}

CallState = Literal["new", "returned", "other", "unsettled"]
"""What is known of a call of a tool: nothing, or that it may be made again; what it gave; that it was made with other
arguments; that it was begun, and nobody knows what came of it."""


class Recall:
    """What is durable of a run and was not used yet.

    Attributes:
        refused: the steps that were durable and no longer hold: they, or what they read, are other than then.
    """

    def __init__(self, journal: Journal, schedule: Schedule) -> None:
        self._steps: Final = dict(journal.steps)
        self._calls: Final = dict(journal.calls)
        self._answers: Final = dict(journal.answers)
        self._guesses: Final[dict[str, list[str]]] = {}
        for attempt in journal.attempts:
            wrong = {deviation.step for deviation in attempt.deviations if deviation.kind == "wrong_value"}
            for where in attempt.steps if wrong and attempt.rung not in _OF_PARTS else ():
                if where.step in wrong:
                    self._guesses.setdefault(place_of(where), []).append(attempt.rung)
        self._schedule: Final = schedule
        self.refused: Final[list[Occurrence]] = []
        self._faults: Final[list[str]] = []

    def match(self, segment: Segment) -> tuple[Segment, tuple[KeptStep, ...]]:
        """The beginning of a segment: steps that are durable, with what is, or steps that are not, with nothing."""
        if segment.steps[0].performer in ("code", "tool"):  # they are performed one by one
            return segment, ()
        if kept := self._matching(segment):
            return _first(segment, len(kept)), kept
        if place_of(segment.occurrences[0]) in self._steps:
            # What is durable of the first step is not what the step is now: it is asked.
            self.drop(segment.occurrences[0], refused=True)
        for number, where in enumerate(segment.occurrences):
            if place_of(where) in self._steps:
                # Ask only up to the next durable step: that one is reused when its turn comes.
                return _first(segment, number), ()
        return segment, ()

    def _matching(self, segment: Segment) -> tuple[KeptStep, ...]:
        values = dict(self._schedule.read(segment.steps))
        kept: list[KeptStep] = []
        for step, where in zip(segment.steps, segment.occurrences, strict=True):
            entry = self._steps.get(place_of(where))
            if entry is None or entry.digest != step_digest(step, values):
                break
            if entry.claim is None and kept:  # no claim to judge: it goes by itself
                break
            kept.append(entry)
            if entry.claim is None:
                break
            values[step.id] = entry.value
        return tuple(kept)

    def guesses(self, segment: Segment) -> tuple[Segment, Sequence[str]]:
        """The beginning of a segment up to the first step of few values that was guessed wrongly in earlier processes.

        Where that step leads the segment, also the rungs of those guesses, once. Otherwise a model that tosses a coin
        would get another toss with every process.
        """
        for number, (step, where) in enumerate(zip(segment.steps, segment.occurrences, strict=True)):
            few = step.type.choices is not None and step.performer == "model"
            if not few or place_of(where) not in self._guesses:
                continue
            rungs = [] if number else self._guesses.pop(place_of(where))
            return _first(segment, max(number, 1)), rungs
        return segment, ()

    def drop(self, where: Occurrence, *, refused: bool = False) -> None:
        """A durable step was used, or is `refused`: it is not what it was, or no longer passes."""
        self._steps.pop(place_of(where), None)
        if refused:
            self.refused.append(where)

    def answer(self, step: Step, where: Occurrence, question: str) -> Value | None:
        """What a person has answered to this question meanwhile; None where nobody has, or it is no value of the step.

        The newest answer counts; one to another question, with other values in it, is none.
        """
        asked, value = self._answers.get(str(where), (None, None))
        if value is None or asked != question:
            return None
        # People answer yes or no.
        if isinstance(value, str) and step.type.kind == "boolean":
            value = _TRUTHS.get(value.strip().lower(), value)
        try:
            return step.read(value) if isinstance(value, str) else step.type.accept(value)
        except ValueRefused as error:
            self._faults.append(f"the answer to {where} cannot be taken: {error}")
            return None

    def call(self, call: OperationCall, operation: Operation) -> tuple[CallState, OperationCall]:
        """What is known of a call that is due."""
        kept = self._calls.get(call.key)
        if kept is None:
            return "new", call
        # A service that honours the key would return its result for the earlier arguments.
        if kept.digest != call.digest:
            return "other", call
        if kept.returned:
            return "returned", replace(call, returned=True, value=kept.value)
        return ("new" if operation.repeatable else "unsettled"), call

    def notes(self) -> tuple[str, ...]:
        """What the caller should know: that durable steps were asked again, or an answer is none."""
        if not self.refused:
            return tuple(self._faults)
        names = ", ".join(map(str, self.refused[:_MOST_STEPS])) + (" ..." if len(self.refused) > _MOST_STEPS else "")
        note = f"{len(self.refused)} steps of the ledger no longer pass their checks and were asked again: {names}"
        return (note, *self._faults)


def holds(kept: KeptStep, judgement: Judgement) -> bool:
    """Whether a durable step still passes: the checks accept the claim, and it has the value that it had."""
    if judgement.value is None or judgement.value != kept.value:
        return False
    if deviation_of(judgement) is None:
        return True
    verdict = judgement.verdict  # where no check decides, votes have
    return kept.strength == "agreed" and verdict is not None and verdict.outcome == "undecided" and verdict.retry


def _first(segment: Segment, count: int) -> Segment:
    if count == len(segment.steps):
        return segment
    return replace(
        segment, indices=segment.indices[:count], steps=segment.steps[:count], occurrences=segment.occurrences[:count]
    )
