"""Two runs of a benchmark to look at closely: a guarded one with its repairs, and an unguarded one that failed.

Outcomes hold the raw replies. Everything else is made again: the task from its seed by its family, and what the guard
asked and accepted by running it on the recorded replies. What comes out otherwise than recorded is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from stepguard.auditing import audit
from stepguard.backends.base import Completion, Request
from stepguard.errors import BackendError, StepguardError
from stepguard.evaluation.arms import TaskOutcome, kind_of, read_run
from stepguard.evaluation.arms.reading import read_entries, same
from stepguard.evaluation.families import Family, Task, family_named
from stepguard.guard import Guard
from stepguard.repair.ladder import Ladder
from stepguard.results import Result

_LONGEST_TEXT: Final = 200_000
"""Longer texts are not read line by line."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A guarded run over recorded replies: its result, and the request of every call."""

    task: Task
    result: Result
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One line of a transcript.

    Attributes:
        judged: how the step it writes down ends; None where it writes down none.
        step: that step.
        note: why it is judged so.
    """

    text: str
    judged: Literal["right", "slip", "carried", "unread"] | None = None
    step: str | None = None
    note: str = ""


def choose_guarded(outcomes: Iterable[TaskOutcome]) -> TaskOutcome | None:
    """The guarded run with most deviations that ended verified, else one that abstained, else any."""
    guarded = [outcome for outcome in outcomes if outcome.arm == "guard" and any(outcome.texts)]
    for wanted in (lambda each: each.verified, lambda each: each.abstained, lambda each: True):
        candidates = [each for each in guarded if wanted(each)]
        if candidates:
            return min(candidates, key=lambda each: (-sum(each.deviations.values()), each.length, each.task, each.seed))
    return None


def choose_failed(outcomes: Iterable[TaskOutcome], beside: TaskOutcome | None) -> TaskOutcome | None:
    """An unguarded run that ended wrong: of the same program as `beside` if there is one, else the longest.

    Free transcripts go before structured replies.
    """
    failed = [outcome for outcome in outcomes if _failed(outcome)]
    if not failed:
        return None

    def order(each: TaskOutcome) -> tuple[bool, bool, int, str, int, str]:
        same = beside is not None and (each.task, each.length, each.seed) == (beside.task, beside.length, beside.seed)
        return not is_transcript(each), not same, -each.length, each.task, each.seed, each.arm

    return min(failed, key=order)


def _failed(outcome: TaskOutcome) -> bool:
    if outcome.right or outcome.verified or outcome.abstained or outcome.error is not None:
        return False
    return kind_of(outcome.arm) == "unguarded" and any(text.strip() for text in outcome.texts)


def is_transcript(outcome: TaskOutcome) -> bool:
    """Whether a run is one free text."""
    return len(outcome.texts) == 1 and bool(outcome.texts[0].strip()) and read_entries(outcome.texts[0]) is None


def make_task(outcome: TaskOutcome, family: Family | None = None) -> Task | None:
    """The task of an outcome, made again from its seed; None where its family is not known here.

    Args:
        family: the one that its task is from, where that has no name of its own (`stepguard.evaluation.cases.cases`).
    """
    if family is not None and family.name == outcome.task:
        return family.make(outcome.seed, outcome.length)
    return _task_made_again(outcome.task, outcome.seed, outcome.length)


@lru_cache(maxsize=256)  # long programs take long to find, and the arms share them
def _task_made_again(family: str, seed: int, length: int) -> Task | None:
    try:
        return family_named(family).make(seed, length)
    except StepguardError:
        return None


class RecordedTexts:
    """Answers call after call with recorded replies, and keeps the requests."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.requests: list[Request] = []
        self._texts = texts

    def complete(self, request: Request) -> Completion:
        if len(self.requests) == len(self._texts):
            raise BackendError("no more replies are recorded", retryable=False)
        self.requests.append(request)
        return Completion(self._texts[len(self.requests) - 1])


def replay(outcome: TaskOutcome, meta: Mapping[str, Any], family: Family | None = None) -> Replay | None:
    """Run the guard on the recorded replies; None where that does not end as recorded."""
    task = make_task(outcome, family)
    if task is None:
        return None
    backend = RecordedTexts(outcome.texts)
    try:
        guard = Guard(
            backend,
            segment=meta.get("segment", 10),
            repair=Ladder() if meta.get("retries") is None else meta["retries"],
            prompts=meta.get("prompts", "full"),
            history=None,
            seed=outcome.seed,
        )
        result = guard.run(task.procedure, task.inputs)
    except StepguardError:
        return None
    values = {record.occurrence.step: record.value for record in result.steps}
    right = sum(values.get(name) == value for name, value in task.truth.items())
    kinds: dict[str, int] = {}
    for deviation in (each for attempt in result.attempts for each in attempt.deviations):
        kinds[deviation.kind] = kinds.get(deviation.kind, 0) + 1
    made = (result.status, len(result.attempts), right, kinds)
    if made != (outcome.status, len(outcome.texts), outcome.steps_right, dict(outcome.deviations)):
        return None
    return Replay(task, result, tuple(backend.requests))


def mark(outcome: TaskOutcome, task: Task) -> tuple[list[TranscriptLine], list[str]] | None:
    """The lines of a transcript, each judged by the truth, and the steps that it never writes down.

    Every step is read as the benchmark reads it. A wrong value that follows from wrong values before it is told from
    one that does not. None where the reading is not the recorded one (the truth is then another program's), and for
    texts that are too long.
    """
    text = _transcript(outcome)
    if len(text) > _LONGEST_TEXT:
        return None
    reading = read_run(task, text)
    if sum(reading.right(task)) != outcome.steps_right:
        return None
    if is_transcript(outcome) and same(reading.strict, task.answer) != outcome.right:
        return None
    audited = audit(task.procedure, task.inputs, text)
    at_line = {step.place.line: step for step in audited.steps if step.place is not None}
    lines: list[TranscriptLine] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        each = at_line.get(number)
        if each is None:
            lines.append(TranscriptLine(line))
            continue
        name = each.step
        truth = task.truth.get(name)
        if truth is None:  # not known
            lines.append(TranscriptLine(line))
        elif name not in reading.values:
            lines.append(TranscriptLine(line, "unread", name, f"no value can be read; right is {truth}"))
        elif same(reading.values[name], truth):
            lines.append(TranscriptLine(line, "right", name))
        else:
            judged: Literal["carried", "slip"] = "slip" if name in reading.slips else "carried"
            lines.append(TranscriptLine(line, judged, name, f"right is {truth}"))
    return lines, [step.step for step in audited.steps if step.place is None and step.step in task.truth]


def _transcript(outcome: TaskOutcome) -> str:
    """The text of a run; structured replies with one line for each entry."""
    if is_transcript(outcome):
        return outcome.texts[0]
    replies = [read_entries(text) for text in outcome.texts]
    if None in replies:
        return "\n".join(outcome.texts)
    return "\n".join(f"{name} = {entry}" for entries in replies if entries for name, entry in entries.items())


def counts_of_judgements(lines: Sequence[TranscriptLine]) -> dict[str, int]:
    """How many lines are judged in each way."""
    counts: dict[str, int] = {}
    for line in lines:
        if line.judged is not None:
            counts[line.judged] = counts.get(line.judged, 0) + 1
    return counts
