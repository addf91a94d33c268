"""The floor: what the guard makes of models that know nothing.

``guess``  a model that writes the right working and a random value
``copy``   a model that writes the right working and the value of an operand

Both run under the whole guard, retries included. What they get right, chance or copying gets right: a step with few
possible values can be guessed, and a task in which such runs end right measures nothing. No real model is asked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from stepguard.backends.base import Backend, Completion, Request
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, Outcome
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

    word: ClassVar[str] = "guess"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
        """See `Arm.run`."""
        return await run_guarded(self.name, task, _Ignorant("guess", task), options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Named):
    """The guard over a model that copies: the value of the first operand that has the step's type."""

    word: ClassVar[str] = "copy"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
        """See `Arm.run`."""
        return await run_guarded(self.name, task, _Ignorant("copy", task), options)


class _Ignorant:
    """Answers every step that is asked without working anything out."""

    def __init__(self, way: Literal["guess", "copy"], task: Task) -> None:
        self.name = way
        self._way: Final = way
        self._seed: Final = task.seed
        sizes = [abs(int(to_exact(value))) for value in task.truth.values() if not isinstance(value, bool | str)]
        self._largest: Final = max(sizes, default=9) + 1

    def complete(self, request: Request) -> Completion:
        """See `stepguard.backends.base.SyncBackend`."""
        chance = random.Random(f"{self._way}:{self._seed}:{request.seed}:{[step.id for step in request.steps]}")
        reply_format = request.reply_format or _FORMAT
        state = dict(request.values)
        fields: dict[str, object] = {}
        for step in request.steps:
            value = self._value(step, state, chance)
            work = "as asked" if step.expression is None else substitute(step.expression, state)
            state[step.id] = value
            fields[step.id] = reply_format.answer(step, work, step.type.write(value))
        return Completion(json.dumps(fields))

    def _value(self, step: Step, state: Mapping[str, Value], chance: random.Random) -> Value:
        if self._way == "copy":
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
