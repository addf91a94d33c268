"""Steps that are made on demand, for procedures too long to hold in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from stepguard.errors import ProcedureError
from stepguard.procedure.inputs import Input
from stepguard.procedure.operands import check_operands, unknown_name
from stepguard.procedure.steps import Step, check_step

_AT_ONCE = 256
"""How many steps a run keeps beyond its look-back."""


class LazySteps(Sequence[Step]):
    """Steps by index, each checked against its look-back when it is made.

    Args:
        memory: how many of the steps that were made last are held; nothing is by default, so that all who share a
            procedure can read it at the same time.
    """

    def __init__(
        self, step_at: Callable[[int], Step], length: int, look_back: int, inputs: tuple[Input, ...], *, memory: int = 0
    ) -> None:
        self._step_at = step_at
        self._length = length
        self._look_back = look_back
        self._declared = inputs
        self._inputs = {declared.name: declared for declared in inputs}
        self._memory = memory
        self._cache: dict[int, Step] = {}

    def for_one_run(self) -> LazySteps:
        """The same steps with a cache, for a single run (the cache is not safe to share)."""
        memory = self._look_back + _AT_ONCE
        return LazySteps(self._step_at, self._length, self._look_back, self._declared, memory=memory)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._length))]
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(index)
        step = self._make(at)
        if step.id in self._inputs:
            raise ProcedureError(f"duplicate id: {step.id!r} is already an input", step=step.id)
        if step.id in step.reads:
            raise unknown_name(step, step.id, ())
        sources: dict[str, Input | Step] = {**self._inputs}
        missing = set(step.reads) - self._inputs.keys()
        back, oldest = at, max(0, at - self._look_back)
        # Backwards, so that the nearest step of a name is the one that is read; usually a few suffice.
        while missing and back > oldest:
            back -= 1
            earlier = self._cache.get(back) or self._make(back)
            if earlier.id == step.id:
                raise ProcedureError(f"duplicate id: {step.id!r} is already an earlier step", step=step.id)
            missing.discard(earlier.id)
            sources[earlier.id] = earlier
        if missing:
            raise ProcedureError(
                f"step {step.id!r} reads {sorted(missing)[0]!r}, which is no input and not set by the "
                f"{self._look_back} steps before it (its look_back)",
                step=step.id,
            )
        check_operands(step, sources)
        return step

    def _make(self, at: int) -> Step:
        if (cached := self._cache.get(at)) is not None:
            return cached
        try:
            step: object = self._step_at(at)
        except ProcedureError:
            raise
        except Exception as error:  # the caller's code, long after the procedure was made
            raise ProcedureError(f"step {at + 1} cannot be made: {type(error).__name__}: {error}") from error
        checked = check_step(step, at + 1)
        if self._memory:
            self._cache[at] = checked
            if len(self._cache) > self._memory:
                # The oldest: a dictionary keeps the order of insertion.
                del self._cache[next(iter(self._cache))]
        return checked
