"""Driving: performs the actions of a run until it has ended, one after the other or on an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Final

from stepguard.backends.base import ASKING_RUN, Backend, SyncBackend, session_of
from stepguard.engine.actions import Action, Ask, Commit, Event, Wait
from stepguard.engine.run import Run
from stepguard.errors import UsageError
from stepguard.guard.calls import aperform, ask_model, is_quick
from stepguard.results import Result
from stepguard.telemetry.hooks import Observer

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor
    from types import TracebackType

    from stepguard.telemetry.logging import Telemetry

_BREATH: Final = 64
"""After how many actions without any waiting the event loop gets a turn, for whatever else runs on it."""


def drive(
    run: Run,
    backend: SyncBackend,
    observers: Sequence[Observer],
    *,
    stopped: Callable[[], bool] | None,
    asking: Callable[[Ask], None] | None,
) -> Result:
    """See `stepguard.guard.guard.Guard.drive`."""
    telemetry = _telemetry(run, observers)
    try:
        telemetry.started()
        while not run.done:
            action = run.next_action()
            if action is None:
                break
            # Called before `stopped` is asked, which may have changed while it waited.
            if asking is not None and isinstance(action, Ask):
                asking(action)
            if stopped is not None and _begins(action) and stopped():
                run.cancel()
                break
            with telemetry.performing(action):
                event = ask_model(backend, action) if isinstance(action, Ask) else run.perform(action)
            run.send(event)
            telemetry.performed(action, event)
    except BaseException:
        run.cancel("interrupted")
        telemetry.done(run.result())
        raise
    return _ended(run, telemetry)


async def adrive(run: Run, backend: Backend, observers: Sequence[Observer], writers: Executor | None) -> Result:
    """See `stepguard.guard.guard.Guard.adrive`; `writers` are the threads that wait for the disk."""
    import asyncio  # importing it takes longer than the rest of this package

    loop, telemetry = asyncio.get_running_loop(), _telemetry(run, observers)
    tasks: dict[asyncio.Task[Event], Action] = {}
    quick = 0

    def finish(action: Action, event: Event) -> None:
        # Settling waits for the disk: it is left to a writer thread, below.
        run.send(event, settle=False)
        telemetry.performed(action, event)

    async def perform(action: Action) -> Event:
        ASKING_RUN.set(run)  # in the context of this task
        with telemetry.performing(action):
            if isinstance(action, Commit):  # it writes to a file, and waits for the disk
                return await loop.run_in_executor(writers, run.perform, action)
            return await aperform(backend, action)

    async with AsyncExitStack() as stack:
        try:
            telemetry.started()
            await _open(session_of(backend), stack, telemetry)
            while not run.done:
                action = run.next_action(settle=False)
                if action is None and not tasks:
                    break
                if action is None:
                    finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in finished:
                        finish(tasks.pop(task), task.result())
                elif is_quick(action, kept=run.kept):
                    with telemetry.performing(action):
                        event = run.perform(action)
                    finish(action, event)
                    quick += 1
                    if quick % _BREATH == 0:
                        await asyncio.sleep(0)
                else:
                    tasks[asyncio.create_task(perform(action))] = action
            if run.kept:
                await loop.run_in_executor(writers, run.settle)
        except BaseException:
            _abandon(run, tasks)
            telemetry.done(run.result())
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return _ended(run, telemetry)


def _telemetry(run: Run, observers: Sequence[Observer]) -> Telemetry:
    from stepguard.telemetry.logging import Telemetry  # with logging, which importing stepguard need not pay for

    return Telemetry(run, observers)


async def _open(session: AbstractAsyncContextManager[object], stack: AsyncExitStack, telemetry: Telemetry) -> None:
    """Hold the session of a backend until the stack is left. That it cannot be closed costs no result."""

    async def close(
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await session.__aexit__(kind, error, traceback)
        except Exception as failed:  # noqa: BLE001 - a backend may be foreign code
            if failed is not error:
                telemetry.unclosed(failed)

    await session.__aenter__()
    stack.push_async_exit(close)


def _abandon(run: Run, tasks: Iterable[asyncio.Task[Event]]) -> None:
    """End a run that is not driven on, with all that it has spent booked."""
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is None:
            run.send(task.result())  # it came in at the last moment, and was paid for
    run.cancel()


def _ended(run: Run, telemetry: Telemetry) -> Result:
    if not run.done:
        telemetry.detached()
        raise UsageError(f"actions of run {run.id} are outstanding elsewhere: answer them with send()")
    result = run.result()
    telemetry.done(result)
    return result


def _begins(action: Action) -> bool:
    """Whether an action begins something that costs or has effects: not where it ends a call, or keeps what is done."""
    return isinstance(action, Ask | Wait) or (
        isinstance(action, Commit) and action.call is not None and not action.call.returned
    )
