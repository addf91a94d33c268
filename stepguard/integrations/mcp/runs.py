"""Run beside an MCP client: progress that delays nothing, and a single, clean cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from stepguard.engine.actions import Action, Commit, Event
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.results import Result

_LAST_SECONDS: Final = 5.0
"""How long a client may take for the last progress, and a run for its cancellation."""


class Progress:
    """Tells a client of every step that was committed, beside the run: a slow or broken client does not delay it.

    Args:
        total: how many steps there are, None where that shows as it goes.
    """

    def __init__(self, context: Any, total: int | None) -> None:
        self._context: Final = context
        self._total: Final = total
        self._done = 0
        self._due: Final[asyncio.Queue[tuple[int, str] | None]] = asyncio.Queue()
        self._telling: asyncio.Task[None] | None = None

    def observe(self, action: Action, event: Event) -> None:
        """The observer for the guard."""
        if isinstance(action, Commit):
            for record in action.records:
                self._done += 1
                outcome = "verified" if record.verified else "done, with no check"
                self._due.put_nowait((self._done, f"{record.occurrence} {outcome}"))

    async def __aenter__(self) -> None:
        self._telling = asyncio.create_task(self._send_progress())

    async def __aexit__(self, *_: object) -> None:
        assert self._telling is not None
        self._due.put_nowait(None)
        try:
            await asyncio.wait({self._telling}, timeout=_LAST_SECONDS)
        finally:
            self._telling.cancel()

    async def _send_progress(self) -> None:
        while (news := await self._due.get()) is not None:
            try:
                await self._context.report_progress(news[0], self._total, news[1])
            except Exception:  # noqa: BLE001 - the client's or the library's; the run goes on without it
                return


async def to_its_end(running: Coroutine[Any, Any, Result]) -> Result:
    """Await a run so that a cancellation reaches it once.

    The library cancels again at every await; like this the calls in flight and the clients are closed in peace.
    """
    task = asyncio.create_task(running)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        import anyio  # comes with the library that cancels

        # Shielded: in a cancelled scope of anyio every further await raises at once.
        with anyio.move_on_after(_LAST_SECONDS, shield=True):
            await asyncio.wait({task})
        if task.done() and not task.cancelled():
            task.exception()  # it is read, so that nobody complains
        raise
    return task.result()


@contextmanager
def plain_conflicts() -> Iterator[None]:
    """Turn errors of a ledger into messages without the path of its file."""
    try:
        yield
    except RunConflict as error:
        what = "this run is under way: call again when it has ended"
        if not error.under_way:
            what = "this run_id was used for another procedure or other inputs, or its run was erased: use another"
        raise ConfigError(what, option="run_id") from error
    except LedgerError as error:
        raise ConfigError("the ledger of this server cannot be read or written", option="run_id") from error
