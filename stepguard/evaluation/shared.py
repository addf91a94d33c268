"""One reply for one question: greedy requests that are the same get the same reply, asked once."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from stepguard.backends.base import Backend, Completion, Request, ask

__all__ = ["SharedReplies"]


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    completion: Completion | None = None


class SharedReplies:
    """A backend that asks another one, but never the same greedy question twice.

    Arms that ask the same thing are then compared on the same reply: greedy decoding is not repeatable on real
    servers, and what it varies is not to be mistaken for an effect. Usage is booked for each arm as if it had asked
    itself. Requests at another temperature are all sent.

    Args:
        backend: the model that is asked.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._entries: dict[object, _Entry] = {}

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the model's, where it has such."""
        session = getattr(self._backend, "session", None)
        return nullcontext() if session is None else session()

    async def acomplete(self, request: Request) -> Completion:
        """The reply, from the model or from an earlier request that was the same."""
        if request.temperature != 0:
            return await ask(self._backend, request)
        shape = None if request.reply_format is None else tuple(step.id for step in request.steps)
        key = (request.messages, shape, request.reply_format, request.max_tokens)
        entry = self._entries.setdefault(key, _Entry())
        async with entry.lock:
            if entry.completion is None:  # whoever asked before may have failed
                entry.completion = await ask(self._backend, request)
        return entry.completion
