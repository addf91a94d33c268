"""Arms in which an interpreter does the sums, so that nobody is fooled about pure arithmetic.

``offload``  the interpreter performs the steps; no model is asked
``program``  the model writes the steps down as a formal program in one call, and the interpreter runs it
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from stepguard.backends.base import Backend
from stepguard.errors import StepguardError
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, TaskOutcome, authors_scores, nothing, send_with_room
from stepguard.evaluation.arms.reading import TranscriptReading, same
from stepguard.evaluation.arms.transcripts import outcome_of, request_like
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.language.evaluation import evaluate
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.replies.thinking import without_thinking

_SYSTEM: Final = (
    "Write the procedure down as a program. One line for each step, in order: its name, an equals sign, and its "
    "formula over the names of values and earlier steps, with + - * / and brackets. Do not compute anything, and write "
    "nothing else."
)
_FENCE: Final = re.compile(r"^```[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload(Named):
    """No model at all. Where a step has no formula, there is nothing to interpret: it abstains there."""

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        started = time.monotonic()
        values, problem = _interpreted(task, task.procedure)
        return _outcome(self.name, task, values, problem, seconds=time.monotonic() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCode(Named):
    """The model only translates. Families without a formal program of their demonstration cannot be asked so.

    A program that cannot be read, or has no value, is no answer; the values of its steps are compared by name.
    """

    word: ClassVar[str] = "program"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        shown = task.demonstration
        if shown.program is None:
            missing = f"the steps of {task.family} have no formulas to write down"
            return nothing(self.name, task, status="abstained", stopped_at=missing)
        request = request_like(replace(shown, system=_SYSTEM, answer=shown.program), task, options)
        sent = await send_with_room(backend, request, options.retry, lambda text: False)
        problem: str | None = None
        values: dict[str, Value] = {}
        try:
            values, problem = _interpreted(task, _program_of(task, sent.text))
        except StepguardError as error:
            problem = f"its program cannot be read: {error}"
        answer = values.get(task.procedure.answer)
        if answer is None and problem is None:
            problem = f"its program has no {task.procedure.answer}"
        reading = TranscriptReading(answer, answer, values, {}, {}, sound=False, proved=False)
        outcome = outcome_of(self.name, task, [sent], reading)
        status = outcome.status if outcome.status in ("error", "truncated") or problem is None else "no_answer"
        return replace(outcome, status=status, stopped_at=problem)


def _program_of(task: Task, text: str) -> Procedure:
    """The program of a reply, with the task's inputs and the types of its steps."""
    spoken = without_thinking(text)
    body = _FENCE.sub("", spoken if isinstance(spoken, str) else "").strip()
    types = {step.id: step.type for step in task.procedure.steps}
    lines = [f"inputs: {', '.join(f'{each.name}: {each.type}' for each in task.procedure.inputs)}"]
    for line in body.splitlines():
        name, sign, formula = line.partition("=")
        name = name.strip()
        lines.append(f"{name}: {types[name]} = {formula}" if sign and name in types else line)
    return Procedure.parse("\n".join(lines))


def _interpreted(task: Task, procedure: Procedure) -> tuple[dict[str, Value], str | None]:
    """The values of a procedure's steps, and why it stopped where it did not get to its end."""
    state = dict(task.procedure.accept_inputs(task.inputs))
    values: dict[str, Value] = {}
    for step in procedure.steps:
        if step.expression is None:
            return values, f"{step.id} is described in words: there is nothing to interpret"
        try:
            state[step.id] = values[step.id] = step.type.convert(evaluate(step.expression, state))
        except (StepguardError, KeyError) as error:
            return values, f"{step.id} has no value: {error}"
    return values, None


def _outcome(arm: str, task: Task, values: dict[str, Value], problem: str | None, *, seconds: float) -> TaskOutcome:
    """The outcome of an arm that asked nobody."""
    right = [same(values.get(name), value) for name, value in task.truth.items()]
    answered = same(values.get(task.procedure.answer), task.answer)
    return replace(
        nothing(arm, task, status="abstained" if problem else "completed", stopped_at=problem),
        right=answered, right_lenient=answered, trace_right=task.whole and all(right), steps_right=sum(right),
        seconds=round(seconds, 3), prefix=[*right, False].index(False), authors=authors_scores(task, values),
    )  # fmt: skip
