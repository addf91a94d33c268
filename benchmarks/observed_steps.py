"""The steps of recorded runs, each judged by the values that the model itself had at that point.

What the guard and the unchecked chunks asked is made again by running them on the recorded replies. Replies to equal
questions are taken once: the arms share them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stepguard.engine.step_kinds import arithmetic_kind
from stepguard.errors import ValueRefused
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.arms.reading import read_entries
from stepguard.evaluation.arms.wording import without_working
from stepguard.evaluation.families import Task
from stepguard.evaluation.report.examples import RecordedTexts, make_task
from stepguard.guard import Guard
from stepguard.language.numerals import read_numeral
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rungs import FIRST
from stepguard.testing.working import work_out

__all__ = ["Observations", "Observed", "observe", "read_recording"]

STRUCTURED: Final = ("chunk", "guard")
FREE: Final = "cot"


@dataclass(frozen=True, slots=True)
class Observed:
    """One step of one reply, asked for the first time.

    Attributes:
        program: which program it is of.
        kind: see `stepguard.engine.step_kinds`.
        origin: ``given`` where the request holds all operands, else ``structured`` or ``free``, as the reply is.
        slip: ``wrong_value`` where the working has the right operands and the value is wrong, ``wrong_operand`` where
            both are wrong or no working is shown, ``unread`` where no value can be read; None where it is right.
        share: of the values before it in the reply, how many are wrong, slips or not.
    """

    program: tuple[str, int, int]
    kind: str | None
    origin: str
    slip: str | None
    share: float

    @property
    def slipped(self) -> bool:
        """Whether the value is wrong, given the values before it."""
        return self.slip in ("wrong_value", "wrong_operand")


@dataclass(slots=True)
class Observations:
    """What was seen in a recording.

    Attributes:
        steps: every step that was carried out when it was asked first.
        missing: steps that were asked first and left out.
        replies: structured replies to first questions; `texts`: free transcripts.
        deviations: of the structured replies, how many had one of each kind.
        repeats: of the wrong values that were asked again, how often the same one came, and how many there were.
        unstopped: free transcripts that made up steps behind the last one.
        whole: free transcripts with every step right, and how many of those gave another answer.
        skipped: outcomes that could not be made again.
    """

    steps: list[Observed] = field(default_factory=list)
    missing: int = 0
    replies: int = 0
    texts: int = 0
    deviations: Counter[str] = field(default_factory=Counter)
    repeats: tuple[int, int] = (0, 0)
    unstopped: int = 0
    whole: tuple[int, int] = (0, 0)
    skipped: int = 0


def read_recording(folder: Path) -> tuple[list[TaskOutcome], dict[str, Any]]:
    """The outcomes of a benchmark, and what made them.

    Raises:
        OSError: there is no ``outcomes.jsonl`` in the folder.
    """
    first, *lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    return [TaskOutcome.from_dict(json.loads(line)) for line in lines], json.loads(first)["configuration"]


def read_repeats(file: Path) -> tuple[int, int]:
    """How often the control of `rungs.py` claimed the same wrong value again, and of how many, by its ``failed.jsonl``.

    Raises:
        OSError: the file is not there.
    """
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    pairs = [(row["claim"], row["again"] or "") for row in rows if row["deviation"] == "wrong_value"]
    same = sum(one.rpartition("=")[2].strip() == other.rpartition("=")[2].strip() for one, other in pairs)
    return same, len(pairs)


def observe(
    outcomes: Iterable[TaskOutcome], meta: Mapping[str, Any], *, repeats: tuple[int, int] = (0, 0)
) -> Observations:
    """Judge the steps of recorded outcomes; arms other than those above are left out.

    Args:
        outcomes: of one model.
        meta: the options of the guarded arms, ``segment`` and ``retries``.
        repeats: see `Observations`.
    """
    seen = Observations(repeats=repeats)
    asked: set[str] = set()
    for outcome in outcomes:
        arm, _, without = outcome.arm.rstrip(")").partition("(without=")
        if arm not in (FREE, *STRUCTURED) or outcome.error is not None:
            continue
        task = make_task(outcome)
        if task is not None and without == "working":
            task = without_working(task)
        if task is None or any(step.expression is None for step in task.procedure.steps):
            seen.skipped += 1
        elif arm == FREE:
            _transcript(seen, outcome, task)
        else:
            _guarded(seen, outcome, task, meta, asked)
    return seen


def _judge(step: Step, values: Mapping[str, Value], entry: str) -> tuple[str | None, Value | None]:
    """What is wrong about an entry ``working = value``, and its value."""
    parts = [part.strip() for part in entry.split("=")]
    expected = work_out(step, values, {})
    try:
        value = read_numeral(parts[-1].strip(" `*_.")).value
    except ValueRefused:
        return "unread", None
    if expected is None:
        return "unread", value
    work, right = expected
    if value == right:
        return None, value
    return "wrong_value" if len(parts) > 1 and parts[-2] == work else "wrong_operand", value


def _steps(seen: Observations, program: tuple[str, int, int], request: _Asked, entries: Mapping[str, str]) -> list[str]:
    """Judge the steps of one reply in their order; returns the slip or "" of each step that is there."""
    said, right = dict(request.values), dict(request.values)
    wrong = made = 0
    slips: list[str] = []
    for step in request.steps:
        if (found := work_out(step, right, {})) is not None:
            right[step.id] = found[1]
        if step.id not in entries:
            seen.missing += 1
            continue
        if any(name not in said for name in step.reads):  # it reads what was left out
            continue
        origin = request.origin if any(name not in request.values for name in step.reads) else "given"
        slip, value = _judge(step, said, entries[step.id])
        share = wrong / made if made else 0.0
        seen.steps.append(Observed(program, arithmetic_kind(step, said), origin, slip, share))
        slips.append(slip or "")
        if value is not None:
            said[step.id] = value
        made += 1
        wrong += value != right.get(step.id)
    return slips


@dataclass(frozen=True, slots=True)
class _Asked:
    steps: Sequence[Step]
    values: Mapping[str, Value]
    origin: str


def _transcript(seen: Observations, outcome: TaskOutcome, task: Task) -> None:
    entries: dict[str, str] = {}
    unstopped = False
    ids = set(task.truth)
    for line in outcome.texts[0].splitlines() if outcome.texts else ():
        name, equals, rest = line.strip(" *-`").partition("=")
        if not equals or not name.strip().isidentifier():
            continue
        if name.strip() in ids:
            entries.setdefault(name.strip(), rest)
        else:
            unstopped = True
    seen.texts += 1
    seen.unstopped += unstopped
    values = task.procedure.accept_inputs(task.inputs)
    program = (outcome.task, outcome.length, outcome.seed)
    _steps(seen, program, _Asked(tuple(task.procedure.steps), values, "free"), entries)
    if outcome.trace_right:
        seen.whole = seen.whole[0] + 1, seen.whole[1] + (not outcome.right)


def _guarded(seen: Observations, outcome: TaskOutcome, task: Task, meta: Mapping[str, Any], asked: set[str]) -> None:
    backend = RecordedTexts(outcome.texts)
    guard = Guard(
        backend,
        segment=meta.get("segment", 10),
        repair=meta.get("retries", 4),
        observe=outcome.arm.startswith("chunk"),
        history=None,
        seed=outcome.seed,
    )
    result = guard.run(task.procedure, task.inputs)
    if (result.status, len(result.attempts)) != (outcome.status, len(outcome.texts)):
        seen.skipped += 1
        return
    program = (outcome.task, outcome.length, outcome.seed)
    for attempt, request, text in zip(result.attempts, backend.requests, outcome.texts, strict=True):
        entries = read_entries(text) or {}
        question = "\n".join(message.content for message in request.messages)
        if attempt.rung == FIRST.name and question not in asked:
            asked.add(question)
            seen.replies += 1
            seen.deviations.update({deviation.kind for deviation in attempt.deviations})
            _steps(seen, program, _Asked(request.steps, request.values, "structured"), entries)
