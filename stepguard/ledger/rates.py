"""A rate of calls to an endpoint that all processes count together, in the ledger that they share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from stepguard.backends.base import Completion, Request, ask, endpoint_of
from stepguard.backends.making import as_backend
from stepguard.backends.wrapped import WrappedBackend
from stepguard.core.arguments import check_count, check_instance, check_seconds
from stepguard.core.usage import Usage
from stepguard.errors import BackendTimeout, ConfigError
from stepguard.ledger.ledger import Ledger

_LOOK_SECONDS: Final = 1.0
"""The longest wait before looking again: others may have given up their turns."""


def check_rate(rate: object) -> None:
    """Refuse what is no number of calls and of seconds. Raises ConfigError: it is none."""
    if not isinstance(rate, tuple) or len(rate) != 2:
        raise ConfigError(
            f"rate is a number of calls and of seconds such as (60, 60.0), not {rate!r:.40}", option="rate"
        )
    check_count(rate[0], "rate")
    check_seconds(rate[1], "rate", positive=True)


class RatedBackend(WrappedBackend):
    """A backend that asks another one as often as a rate allows, which all who share the ledger count together.

    For models that are asked outside of the runs of a worker, which count theirs by themselves: by the judge of a gate,
    a server of several processes, a tool; or for a fallback or a rung with a rate of its own. All backends of one
    endpoint share its turns, whatever rate each has been given.

    Args:
        backend: the model that is asked, as a guard's own is given.
        ledger: where calls are counted: the path or address of a ledger, or an open one.
        rate: how many calls in how many seconds; they are spread evenly.
        model: which model to ask for; goes with a client.

    Raises:
        ConfigError: an argument is none of those, or the backend cannot be asked.
        LedgerError: the ledger cannot be opened.
    """

    endpoint = ""
    """Nobody else counts its calls."""

    def __init__(
        self, backend: object, *, ledger: str | Path | Ledger, rate: tuple[int, float], model: str | None = None
    ) -> None:
        check_rate(rate)
        check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger")
        super().__init__(as_backend(backend, model=model))
        self._ledger: Final = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._rate: Final = rate
        self._counted: Final = endpoint_of(self._backend)
        if not self._counted:
            what = f"no calls of {self.name} are counted: it is a person, a replay, or has a rate already"
            raise ConfigError(what, option="backend")

    def complete(self, request: Request) -> Completion:
        """The model's reply, when it is this call's turn.

        Raises:
            BackendError: the model did not answer, or the time was over before it was this call's turn.
            ConfigError: the model can only be awaited.
            LedgerError: the call could not be counted.
        """
        backend = self._blocking()
        started = time.monotonic()
        for seconds in self._waits(request, started):
            time.sleep(seconds)
        return backend.complete(_within(request, started))

    async def acomplete(self, request: Request) -> Completion:
        import asyncio  # importing it takes longer than the rest of this package

        started = time.monotonic()
        waits = self._waits(request, started)
        # In a thread, since every look writes to the ledger.
        while (seconds := await asyncio.to_thread(next, waits, None)) is not None:
            await asyncio.sleep(seconds)
        return await ask(self._backend, _within(request, started))

    def _waits(self, request: Request, started: float) -> Iterator[float]:
        """The seconds to wait before each look whether it is this call's turn, which it is behind them."""
        calls, seconds = self._rate
        while wait := self._ledger.take_turn(self._counted, calls=calls, seconds=seconds):
            if request.timeout is not None and time.monotonic() - started + wait > request.timeout:
                late = BackendTimeout("the time is over before it is this call's turn: the rate is used up")
                late.usage = Usage(calls=1)
                raise late
            yield min(wait, _LOOK_SECONDS)


def _within(request: Request, started: float) -> Request:
    """The request in the time that is left of its own."""
    if request.timeout is None:
        return request
    return replace(request, timeout=max(0.001, request.timeout - (time.monotonic() - started)))
