"""How many calls may be on their way at once: fewer after the endpoint asks to slow down, slowly more afterwards.

The limit is halved by a rate limit and grows by one for every four full rounds of calls that came through, as
congestion control does (additive increase, multiplicative decrease; Chiu and Jain, 1989). While an endpoint says how
long to wait, no new call is sent by anybody.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from stepguard.backends.base import Backend, Completion, Request, ask
from stepguard.core.arguments import check_count
from stepguard.errors import RateLimited

__all__ = ["LimitedBackend"]

_GROWTH: Final = 0.25
_LONGEST_PAUSE: Final = 60.0
"""A pause that would be longer is left to the retry policy of each run, which gives up then."""


class LimitedBackend:
    """A backend that asks another one, never more often at once than the endpoint bears.

    It is for one event loop.

    Args:
        backend: the model that is asked.
        most: calls at the same time at first, and at most.

    Raises:
        ConfigError: `most` is no whole number of 1 or more.
    """

    def __init__(self, backend: Backend, *, most: int) -> None:
        check_count(most, "concurrency", name="the number of calls at the same time")
        self._backend: Final = backend
        self._most: Final = most
        self._limit = float(most)
        self._active = 0
        self._not_before = 0.0
        self._slowed_at = -math.inf
        self._free = asyncio.Condition()

    @property
    def limit(self) -> int:
        """How many calls may be on their way now."""
        return int(self._limit)

    @property
    def name(self) -> str:
        """What the model is called."""
        return str(getattr(self._backend, "name", type(self._backend).__name__))

    @property
    def signature(self) -> object:
        """That of the model: how many calls run at once shapes no reply."""
        return getattr(self._backend, "signature", None)

    @property
    def can_stop(self) -> bool:
        """Whether the model can stop a reply at its first wrong step."""
        return bool(getattr(self._backend, "can_stop", False))

    async def acomplete(self, request: Request) -> Completion:
        """The model's reply, when it is this call's turn.

        Raises:
            BackendError: the model did not answer.
        """
        async with self._free:
            await self._free.wait_for(lambda: self._active < self.limit)
            self._active += 1
        try:
            if (pause := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            sent = time.monotonic()
            completion = await ask(self._backend, request)
        except RateLimited as error:
            self._slow_down(sent, error.retry_after)
            raise
        finally:
            async with self._free:
                self._active -= 1
                self._free.notify_all()
        self._limit = min(float(self._most), self._limit + _GROWTH / self._limit)
        return completion

    def _slow_down(self, sent: float, retry_after: float | None) -> None:
        if sent > self._slowed_at:  # calls that were sent before the limit was halved say nothing about it
            self._limit = max(1.0, self._limit / 2)
            self._slowed_at = time.monotonic()
        if retry_after is not None and retry_after <= _LONGEST_PAUSE:
            self._not_before = max(self._not_before, time.monotonic() + retry_after)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the model's, where it has such."""
        session = getattr(self._backend, "session", None)
        return nullcontext() if session is None else session()
