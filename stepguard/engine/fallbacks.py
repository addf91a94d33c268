"""Fallbacks: who is asked where a model does not answer at all."""

from __future__ import annotations

from collections.abc import Sequence

from stepguard.backends.base import Backend


class Fallbacks:
    """The models of one run, in the order in which they stand in for each other.

    One that did not answer is not asked again in this run: every further call would wait for its failure first.

    Args:
        backends: those behind the guard's own.

    Attributes:
        current: who is asked now; None for the guard's own.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        self.current: Backend | None = None
        self._untried = list(backends)

    def move_on(self, failed: Backend | None) -> bool:
        """Whether somebody else is asked from now on than the one who failed to answer."""
        if failed is self.current:
            if not self._untried:
                return False
            self.current = self._untried.pop(0)
        return True


def name_of(backend: Backend | None) -> str | None:
    """What records call somebody who was asked in the place of the guard's own model; None for that."""
    return None if backend is None else str(getattr(backend, "name", type(backend).__name__))
