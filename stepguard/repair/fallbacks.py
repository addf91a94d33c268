"""Fallbacks: who is asked where a model does not answer, declines, or a step would be given up."""

from __future__ import annotations

from collections.abc import Sequence

from stepguard.backends.base import Backend
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import Rung, another_model


class Fallbacks:
    """The models of one run, in the order in which they stand in for each other.

    One that did not answer, or declined, is not asked again in this run: every further call would wait for its failure
    first. A step that nobody else is left for goes to those that were not asked it, each once.

    Args:
        backends: those behind the guard's own.
        timeout: seconds that a call of theirs may take.

    Attributes:
        current: who is asked now; None for the guard's own.
    """

    def __init__(self, backends: Sequence[Backend], *, timeout: float | None) -> None:
        self.current: Backend | None = None
        self.rungs = tuple(another_model(backend, timeout=timeout) for backend in backends)
        self._backends = tuple(backends)
        self._passed = 0

    @property
    def passed(self) -> tuple[Backend, ...]:
        """The fallbacks that did not answer, or that stand in for the guard's own model by now."""
        return self._backends[: self._passed]

    def move_on(self, failed: Backend | None) -> bool:
        """Move on from a model that did not answer; whether another one is asked from now on."""
        # Otherwise another flight has seen the same model fail, and has moved on already.
        if failed is self.current:
            if self._passed == len(self._backends):
                return False
            self.current = self._backends[self._passed]
            self._passed += 1
        return True

    def is_own(self, rung: Rung) -> bool:
        """Whether a rung is one of these fallbacks, and none of a policy."""
        return any(rung is own for own in self.rungs)

    def next(self, failures: Failures) -> Rung | None:
        """The rung of a fallback for a step that would be given up; None where none is left."""
        asked = [rung.backend for rung in failures.rungs]
        return next((rung for rung in self.rungs if failures.can(rung) and rung.backend not in asked), None)


def name_of(backend: Backend | None) -> str | None:
    """The name in records of a backend that was asked in place of the guard's own; None for that one."""
    return None if backend is None else str(getattr(backend, "name", type(backend).__name__))
