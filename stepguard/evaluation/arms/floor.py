"""The floor: what the guard makes of models that know nothing.

``guess``  a model that writes the right working and a random value
``copy``   a model that writes the right working and the value of an operand

Both run under the whole guard, retries included. What they get right, chance or copying gets right: a step with few
possible values can be guessed, and a task in which such runs end right measures nothing. No real model is asked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.backends.base import Backend, Completion, Request
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, TaskOutcome
from stepguard.evaluation.arms.guarded_run import run_guarded
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.language.evaluation import substitute
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat

_FORMAT: Final = EquationFormat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess(Named):
    """The guard over a model that guesses: numbers of the size that the task's results have, options, yes or no."""

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        return await run_guarded(self.name, task, _Ignorant(self.word, task), options)


class Copy(Guess):
    """The guard over a model that copies: the value of the first operand that has the step's type."""

    __slots__ = ()


def reply_with(request: Request, value_of: Callable[[Step, Mapping[str, Value]], Value]) -> Completion:
    """A reply with the right working of every step, and whatever value is given for it."""
    reply_format = request.reply_format or _FORMAT
    values = dict(request.values)
    fields: dict[str, object] = {}
    for step in request.steps:
        work = "as asked" if step.expression is None else substitute(step.expression, values)
        values[step.id] = value_of(step, values)
        fields[step.id] = reply_format.answer(step, work, step.type.write(values[step.id]))
    return Completion(json.dumps(fields))


class _Ignorant:
    """Answers every step that is asked without working anything out."""

    def __init__(self, way: str, task: Task) -> None:
        self.name = way
        self._seed: Final = task.seed
        sizes = [abs(int(to_exact(value))) for value in task.truth.values() if not isinstance(value, bool | str)]
        self._largest: Final = max(sizes, default=9) + 1

    def complete(self, request: Request) -> Completion:
        chance = random.Random(f"{self.name}:{self._seed}:{request.seed}:{[step.id for step in request.steps]}")
        return reply_with(request, lambda step, values: self._value(step, values, chance))

    def _value(self, step: Step, state: Mapping[str, Value], chance: random.Random) -> Value:
        if self.name == "copy":
            for name in step.reads:
                if step.type.holds(state[name]):
                    return state[name]
        if step.type.kind == "boolean":
            return chance.random() < 0.5
        if step.type.options:
            return chance.choice(step.type.options)
        if not step.type.numeric:
            return chance.choice([value for value in state.values() if isinstance(value, str)] or ["?"])
        return step.type.convert(chance.randint(-self._largest, self._largest))
