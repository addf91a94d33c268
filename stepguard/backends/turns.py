"""Requests that wait for their turn at an endpoint, shared out fairly between the runs that they are of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from stepguard.backends.base import ASKING_RUN


@dataclass(slots=True, eq=False)
class Waiter:
    """A request that wants a turn.

    Attributes:
        wake: called when its turn has come, from any thread.
        tokens: what it is thought to cost.
        paced: whether it may be sent as far as the pace goes.
        granted: whether it has its turn.
        prompt: whether it did not have to wait.
        sent: when it was sent.
        beside: how many were on their way then, this one included.
        run: the run that it is of; by default one of its own.
    """

    wake: Callable[[], None]
    tokens: int = 0
    paced: bool = False
    granted: bool = False
    prompt: bool = True
    sent: float | None = None
    beside: int = 0
    run: object = field(default_factory=lambda: ASKING_RUN.get() or object())


class WaitingTurns:
    """The requests that wait, in the order of their turns: the next one of each run, run by run."""

    def __init__(self) -> None:
        self._runs: Final[OrderedDict[object, OrderedDict[Waiter, None]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def add(self, waiter: Waiter) -> None:
        self._runs.setdefault(waiter.run, OrderedDict())[waiter] = None

    def discard(self, waiter: Waiter) -> None:
        waiting = self._runs.get(waiter.run)
        if waiting is not None:
            waiting.pop(waiter, None)
            if not waiting:
                del self._runs[waiter.run]

    def pop(self) -> Waiter:
        run, waiting = self._runs.popitem(last=False)
        waiter, _ = waiting.popitem(last=False)
        if waiting:
            self._runs[run] = waiting
        return waiter
