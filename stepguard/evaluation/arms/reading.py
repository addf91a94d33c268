"""What a transcript says, read for every arm alike, and judged by the task's own truth."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from stepguard.auditing import audit
from stepguard.auditing.lenient import bare, last_side
from stepguard.errors import EvaluationError, ValueRefused
from stepguard.evaluation.families import Task
from stepguard.language.evaluation import evaluate
from stepguard.language.prose.struck_text import without_struck
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.replies.thinking import without_thinking

_LINE: Final = re.compile(r"^[\s*\-\u2022`]*([A-Za-z_]\w*)[\s*`]*[:=](.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TranscriptReading:
    """One transcript against its task.

    Attributes:
        strict: the answer that is marked as such, with nothing around it; None where there is none.
        lenient: the same with words around the value; where nothing is marked, the value of the answer's own step.
        values: the value of every step that has one.
        deviations: how often each kind of finding was made.
        slips: the steps that are wrong in themselves, and do not follow from an earlier wrong value, and what is
            wrong with each. ``wrong_value``: the right operation with the right operands, and another result; ``wrong``
            where the audit cannot say, or no working of a formula is shown.
        sound: whether the audit calls no step wrong or missing, and no other answer is given.
        proved: whether it calls every step right, too.
    """

    strict: Value | None
    lenient: Value | None
    values: Mapping[str, Value]
    deviations: Mapping[str, int]
    slips: Mapping[str, str]
    sound: bool
    proved: bool

    @property
    def misdone(self) -> int:
        """How many slips name the right operation with the right operands, and give another result."""
        return sum(kind == "wrong_value" for kind in self.slips.values())

    def right(self, task: Task) -> list[bool]:
        """Which of the task's steps are right."""
        return [same(self.values.get(name), value) for name, value in task.truth.items()]

    def prefix(self, task: Task) -> int:
        """How many steps are right before the first that is not."""
        return sum(takewhile(bool, self.right(task)))


def read_run(task: Task, text: str) -> TranscriptReading:
    """Read the transcript of an unguarded run.

    A step's value is the right end of the last line that starts with its name, or its entry in JSON, as the arms ask
    for them; where there is no such, what the audit finds. An answer is the last one that is marked (``Answer: 7``, a
    box, ``#### 7``), or a reply that is a value and nothing else. What stands in think blocks does not count; where one
    is never closed, nothing does.
    """
    outside = without_thinking(text)
    spoken = without_struck(outside.replace("\0", "\n")) if isinstance(outside, str) else ""
    steps = {step.id: step for step in task.procedure.steps}
    audited = audit(task.procedure, task.inputs, spoken)
    values: dict[str, Value] = {}
    for each in audited.steps:
        if each.claimed is not None and (value := _read_value(steps[each.step].type, each.claimed)) is not None:
            values[each.step] = value
    values |= _lines(spoken, steps)
    own = values.get(task.procedure.answer)
    strict = lenient = None
    if audited.answer is not None:
        lenient = audited.answer.value
        strict = lenient if audited.answer.strict else None
    elif not any(finding.kind == "missing_answer" for finding in audited.findings):
        strict = lenient = own  # a reply in JSON: its last step is the answer
    else:
        strict = _read_value(steps[task.procedure.answer].type, spoken.strip())
        lenient = strict if strict is not None else own
    kinds = {each.step: each.kind for each in audited.steps if each.verdict == "wrong"}
    worked = {step.id for step in task.procedure.steps if step.expression is not None} & _worked(spoken)
    wrong = any(finding.kind == "wrong_answer" for finding in audited.findings)
    sound = not wrong and all(each.verdict in ("right", "not_judged") for each in audited.steps)
    sound = sound and any(each.verdict == "right" for each in audited.steps)
    return TranscriptReading(
        strict=strict,
        lenient=lenient,
        values=values,
        deviations=dict(Counter(finding.kind for finding in audited.findings)),
        slips={name: (kinds.get(name) if name in worked else None) or "wrong" for name in _slips(task, values)},
        sound=sound,
        proved=sound and all(each.verdict == "right" for each in audited.steps),
    )


def reads_back(step: Step, value: Value) -> bool:
    """Whether a transcript that gives a step this value, and the same as its answer, is read so."""
    written = step.type.write(value)
    text = f"{step.id} = {written}\nAnswer: {written}"
    single = Procedure([Step(step.id, instruction="Give it.", type=step.type)])
    answer = audit(single, {}, text).answer
    if answer is None or not answer.strict or answer.value is None or not same(answer.value, value):
        return False
    return same(_lines(text, {step.id: step}).get(step.id), value)


def read_entries(text: str) -> dict[str, str] | None:
    """What a structured reply says about each step, as text; None where it is not a JSON object."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict):
        return None
    return {name: entry if isinstance(entry, str) else json.dumps(entry) for name, entry in entries.items()}


def same(value: Value | None, truth: Value) -> bool:
    """Whether a value is the true one; True is not 1."""
    return value is not None and isinstance(value, bool) == isinstance(truth, bool) and value == truth


def _worked(text: str) -> set[str]:
    """The steps with more in their line than a value."""
    return {name for name, rest in _named_lines(text) if "=" in rest}


def _named_lines(text: str) -> Iterable[tuple[str, str]]:
    """The lines that begin with a name, or the entries of a structured reply, each with what stands behind it."""
    entries = read_entries(text)
    return _LINE.findall(text) if entries is None else entries.items()


def _lines(text: str, steps: Mapping[str, Step]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, rest in _named_lines(text):
        if name in steps:
            kind = steps[name].type
            side = last_side(rest) if kind.numeric else bare(rest.rsplit("=", 1)[-1])
            if (value := _read_value(kind, side or "")) is not None:
                values[name] = value
    return values


def _slips(task: Task, values: Mapping[str, Value]) -> list[str]:
    """The steps that are not what they should be by the values that the transcript itself gives, or that are true."""
    state = {**task.procedure.accept_inputs(task.inputs), **task.truth, **values}
    slips: list[str] = []
    for step in task.procedure.steps:
        if step.id not in values:
            continue
        try:
            if step.expression is not None:
                expected = step.type.convert(evaluate(step.expression, state))
            else:
                expected = task.solvers[step.id](state)
        except (EvaluationError, LookupError, TypeError, ValueError):
            continue  # what it rests on makes no sense
        if not same(values[step.id], expected):
            slips.append(step.id)
    return slips


def _read_value(kind: ValueType, text: str) -> Value | None:
    try:
        return kind.read(text.strip("\"'") if kind.kind == "text" else text) if text else None
    except ValueRefused:
        return None
