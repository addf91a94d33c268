"""The model that the benchmark runs on where none is named."""

from __future__ import annotations

from dataclasses import dataclass

from stepguard.backends.base import Backend
from stepguard.evaluation.families import Task
from stepguard.testing import SimulatedModel, Slips

__all__ = ["SimulatedTasks"]


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
        return SimulatedModel(self.seed, slips=self.slips, answers=task.solvers)
