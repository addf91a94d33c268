"""Bounds how long a call is waited for, by a thread or by an event loop, whatever the call does."""

from __future__ import annotations

import contextvars
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeGuard, TypeVar

_Returned = TypeVar("_Returned")

_GRACE: Final = 1.0
"""Seconds that a cancelled coroutine has to clean up. One that swallows its cancellation is left behind then."""
_IDLE: Final = 5.0
"""Seconds that an idle thread waits for its next call before it ends."""


def is_seconds(value: object) -> TypeGuard[int | float]:
    """Whether this is a span of time: a finite number of 0 or more, and no integer that a float cannot hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


_GIVEN_UP: Final[contextvars.ContextVar[threading.Event | None]] = contextvars.ContextVar("given_up", default=None)
"""Set once nobody waits any more for the call that runs in this context."""


def stop_if_given_up() -> None:
    """Raise `Overrun` where the call that this is part of was given up: long loops ask now and then."""
    event = _GIVEN_UP.get()
    if event is not None and event.is_set():
        raise Overrun


class Overrun(TimeoutError):
    """The call has not returned in time; a `TimeoutError` of another class is one that it has raised itself."""


def gave_up(error: BaseException) -> bool:
    """Whether an error is a `CancelledError` of what was called itself, as of a request that it gave up.

    It is not where somebody has cancelled the task that runs here.
    """
    import asyncio

    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs here, so that nobody can have cancelled anything
        return True
    return task is None or task.cancelling() == 0


class StandingThreads:
    """Threads that do one thing after the other: starting one takes longer than the rest of a short call.

    One is started where none is idle. Those that have had nothing to do for some seconds end.
    """

    def __init__(self) -> None:
        # Each of its operations is one of the interpreter's: a lock could stay locked in a process that was forked.
        self._idle: list[tuple[int, SimpleQueue[_Work]]] = []

    def start(self, work: _Work, name: str) -> None:
        """Have something done; what it returns is called when its thread can take the next. Neither may raise.

        A thread that is started for it has this name.
        """
        process = os.getpid()
        with suppress(IndexError):  # none is idle
            while True:
                owner, works = self._idle.pop()
                if owner == process:  # after a fork those of the other process are not here
                    works.put(work)
                    return
        works = SimpleQueue()
        works.put(work)
        threading.Thread(target=self._stand, args=((process, works),), name=name, daemon=True).start()

    def _stand(self, place: tuple[int, SimpleQueue[_Work]]) -> None:
        while True:
            try:
                work = place[1].get(timeout=_IDLE)
            except Empty:
                with suppress(ValueError):  # something was handed over just now
                    self._idle.remove(place)
                    return
                continue
            done = work()
            # Marked idle before the caller is released, which may hand over its next call at once.
            self._idle.append(place)
            done()
            del work, done  # nothing is kept alive by a thread that waits


_Work = Callable[[], Callable[[], None]]


def within(
    seconds: float | None, call: Callable[[], _Returned], *, name: str, threads: StandingThreads | None = None
) -> _Returned:
    """What a call returns, or raises, if it does so in time.

    With a limit it runs in another thread, with the caller's context variables. Python cannot stop a thread: a
    call that is given up runs on by itself until it asks `stop_if_given_up`, and does not keep the program from ending.

    Args:
        seconds: how long it is waited for; None waits for as long as it takes, in the caller's thread.
        name: what the thread is called.
        threads: where the thread is from; None starts one for this call alone.

    Raises:
        Overrun: it has not returned by then.
    """
    if seconds is None:
        return call()
    if seconds <= 0:
        raise Overrun
    outcome: list[tuple[_Returned | None, BaseException | None]] = []

    returned = threading.Lock()
    returned.acquire()

    def work() -> Callable[[], None]:
        try:
            outcome.append((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it was called
            outcome.append((None, error))
        return returned.release

    context = contextvars.copy_context()
    given_up = threading.Event()
    context.run(_GIVEN_UP.set, given_up)
    if threads is None:
        threading.Thread(target=lambda: work()(), name=name, daemon=True).start()
    else:
        threads.start(work, name)
    # A longer time-out raises OverflowError. What came in between the time-out and now is still used.
    if not returned.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)) and not outcome:
        given_up.set()
        raise Overrun
    value, error = outcome[0]
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


async def awithin(seconds: float | None, call: Callable[[], _Returned], *, name: str, daemon: bool = True) -> _Returned:
    """As `within`, without blocking the event loop; the call always has a thread of its own.

    The thread keeps neither other calls waiting nor the event loop from ending, also where this is cancelled. With
    `daemon` it does not keep the program alive either; a library in C that calls back must not be torn away like that.
    """
    import asyncio

    if seconds is not None and seconds <= 0:
        raise Overrun
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[_Returned | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()
    given_up = threading.Event()
    context.run(_GIVEN_UP.set, given_up)

    def settle(value: _Returned | None, error: BaseException | None) -> None:
        if not outcome.done():  # it is when nobody waits any more
            outcome.set_result((value, error))  # a future takes no StopIteration as its exception

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, value, error)

    # `asyncio.to_thread` shares a few threads, and the loop would wait for them before it ends.
    threading.Thread(target=work, name=name, daemon=daemon).start()
    try:
        await asyncio.wait((outcome,), timeout=seconds)
    finally:
        if not outcome.done():
            given_up.set()
    if not outcome.done():
        outcome.cancel()
        raise Overrun
    value, error = outcome.result()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


async def awaited(seconds: float | None, found: Awaitable[_Returned]) -> _Returned:
    """What an awaitable gives, or raises, if it does so in time.

    It has a task of its own, which is cancelled where the time is up or nobody waits any more. One that goes on all
    the same is left behind.

    Args:
        seconds: how long it is waited for; None waits for as long as it takes.
        found: what is awaited.

    Raises:
        Overrun: it has given nothing by then.
    """
    import asyncio

    async def settle() -> tuple[_Returned | None, BaseException | None]:
        try:
            return await found, None
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited; SystemExit ends the loop here
            return None, error

    task = asyncio.create_task(settle())
    try:
        in_time, _ = await asyncio.wait((task,), timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_GRACE)
        if inspect.iscoroutine(found) and inspect.getcoroutinestate(found) == inspect.CORO_CREATED:
            found.close()  # it had no turn, and would be warned of
    if not in_time:
        raise Overrun
    value, error = task.result()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
