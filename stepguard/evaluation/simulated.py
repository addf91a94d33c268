"""The model that the benchmark runs on where none is named."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepguard.backends.base import Backend, Completion, Request
from stepguard.evaluation.families import Task
from stepguard.testing import SimulatedModel, Slips


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTasks:
    """A `SimulatedModel` for each task, which is told how the steps are done that only words describe.

    It computes them from the values it believes, and slips there as everywhere else. What it is told goes from the
    task to this model and nowhere else: requests are made without it.

    Args:
        seed: decides every slip.
        slips: how often it slips, as in `stepguard.testing.profiles`; None as `SimulatedModel` does by default.
    """

    seed: int = 0
    slips: Slips | None = None

    def for_task(self, task: Task) -> Backend:
        """The model for one task."""
        model = SimulatedModel(self.seed, slips=self.slips, answers=task.solvers)
        steps = task.procedure.steps
        return model if task.procedure.answer == steps[len(steps) - 1].id else _UpToAnswer(model, task.procedure.answer)


class _UpToAnswer:
    """A model that ends a free transcript on the step that is asked for, which need not be the last one."""

    name = SimulatedModel.name

    def __init__(self, model: SimulatedModel, answer: str) -> None:
        self._model = model
        self._answer = answer

    def complete(self, request: Request) -> Completion:
        completion = self._model.complete(request)
        rows, ends, _ = (completion.text or "").rpartition("\nAnswer: ")
        lines = [row for row in rows.split("\n") if row.startswith(f"{self._answer} = ")]
        if request.reply_format is not None or not ends or not lines:
            return completion
        return replace(completion, text=f"{rows}{ends}{lines[-1].rpartition(' = ')[2]}")

    async def acomplete(self, request: Request) -> Completion:
        return self.complete(request)
