"""The probe of self-conditioning: does a model slip more often once wrong values stand in its context?

The first half of a transcript is given, with wrong values planted in it at a rate, everything after them following
from them; the model goes on, and only its own lines are judged, each by the values that stand in front of it. Without
the guard that half is the model's own earlier turn. With it the same values are offered to the guard as the model's
first replies; what it makes of them, and of the second half, is the guard's own business.

(The effect was described by A. Sinha and others, "The illusion of diminishing returns", arXiv 2509.09677.)
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from stepguard.backends.base import Backend, Completion, Message, Request, ask
from stepguard.core.arguments import check_flag, check_number
from stepguard.errors import EvaluationError
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, TaskOutcome, nothing, send
from stepguard.evaluation.arms.floor import reply_with
from stepguard.evaluation.arms.guarded_run import run_guarded
from stepguard.evaluation.arms.reading import read_run
from stepguard.evaluation.arms.transcripts import outcome_of, request_like
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.language.digits import exact
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.testing.working import wrong_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Primed(Named):
    """The second half of a transcript, after a first half with wrong values in it.

    ``steps_judged`` of its outcomes are the model's own claims about the second half (with the guard: its claims that
    rest on right values), ``steps_right`` those of them that are right by what they rest on. Without the guard
    ``right`` says that all are. The two are not to be compared with each other, but each with itself at other rates:
    what is not written counts as wrong without the guard, and is asked again with it.

    Args:
        rate: the probability of a wrong value, for each step of the first half.
        guarded: whether the guard runs it.

    Raises:
        ConfigError: the rate is no probability.
    """

    rate: float = 0.0
    guarded: bool = False

    def __post_init__(self) -> None:
        check_number(self.rate, "rate", high=1, what="a probability")
        check_flag(self.guarded, "guarded")

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        segments = options.settings().segments
        steps = segments.size or segments.first
        half = _FirstHalf(task, self.rate, steps)
        if not half.planted:
            return replace(nothing(self.name, task, status="abstained", stopped_at="no first half"), steps_judged=0)
        if self.guarded:
            # Its first calls are to ask for what was planted and for nothing else.
            whole_segments = replace(options, segment=min(steps, len(half.planted)))
            outcome = await run_guarded(self.name, task, _Offered(half, backend), whole_segments, only=half.rest)
            return replace(outcome, steps_judged=outcome.claims, steps_right=outcome.claims - outcome.wrong_claims)
        plain = request_like(task.demonstration, task, options)
        ahead = f"Go on from {half.rest[0]}: write the remaining lines in the same way, and then the answer."
        turns = Message("assistant", half.text), Message("user", ahead)
        rest = [step for step in task.procedure.steps if step.id in half.rest]
        request = replace(
            plain, messages=(*plain.messages, *turns), steps=tuple(rest), values={**plain.values, **half.planted}
        )
        sent = await send(backend, request, options.retry)
        reading = read_run(task, f"{half.text}\n{sent.text}")
        right = sum(name in reading.values and name not in reading.slips for name in half.rest)
        whole = right == len(half.rest)
        slips = {name: kind for name, kind in reading.slips.items() if name in half.rest}
        return replace(
            outcome_of(self.name, task, [sent], replace(reading, slips=slips)),
            steps_judged=len(half.rest), steps_right=right, trace_right=whole, right=whole, right_lenient=whole,
            prefix=0,
        )  # fmt: skip


class _FirstHalf:
    """The first half of a task as a transcript, with wrong values in it.

    Attributes:
        planted: the value of each step, the wrong ones among them.
        text: their lines.
        rest: the steps of the second half.
    """

    def __init__(self, task: Task, rate: float, segment: int) -> None:
        chance = random.Random(f"primed:{rate}:{task.seed}")
        names = [step.id for step in task.procedure.steps]
        half = len(names) // 2
        # The guard asks whole segments: a half that ends with one can be offered to it.
        size = half - half % segment if half > segment else half
        self.planted: Final[dict[str, Value]] = {}
        state: dict[str, Value] = dict(task.procedure.accept_inputs(task.inputs))
        lines: list[str] = []
        for step in list(task.procedure.steps)[:size]:
            shown = [step.id]
            try:
                if step.expression is not None:
                    value: Value | None = step.type.convert(evaluate(step.expression, state))
                    shown += [step.formula or "", substitute(step.expression, state)]
                elif step.id in task.solvers:
                    value = task.solvers[step.id](state)
                else:
                    value = task.truth.get(step.id)
            except (EvaluationError, LookupError, TypeError, ValueError):
                break  # behind a wrong value there may be none, as in a division by zero
            if value is None:
                break  # nobody knows what could stand there
            if chance.random() < rate:
                value = _wrong(step, value, chance)
            state[step.id] = self.planted[step.id] = value
            lines.append(" = ".join([*shown, step.type.write(value)]))
        self.rest: Final = tuple(names[len(self.planted) :])
        self.text: Final = "\n".join(lines)


def _wrong(step: Step, value: Value, chance: random.Random) -> Value:
    """Another value of the step's type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        others = [each for each in step.type.options if each != value]
        words = value.split(", ")
        return chance.choice(others) if others else ", ".join([*words[1:], words[0]]) if len(words) > 1 else f"{value}s"
    number = to_exact(value)
    if not isinstance(number, int | Fraction):  # a date, a record, a list
        return wrong_value(step.type, value, chance)
    return step.type.convert(exact(Fraction(number) + chance.choice([-10, -2, -1, 1, 2, 10])))


class _Offered:
    """Gives the first half for the model's first replies, and asks the model for everything else."""

    def __init__(self, half: _FirstHalf, backend: Backend) -> None:
        self.name = "primed"
        self._planted: Final[Mapping[str, Value]] = half.planted
        self._backend: Final = backend

    async def acomplete(self, request: Request) -> Completion:
        if request.attempt > 1 or any(step.id not in self._planted for step in request.steps):
            return await ask(self._backend, request)
        return reply_with(request, lambda step, values: self._planted[step.id])
