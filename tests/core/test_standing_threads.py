"""Calls that are bounded in time, in threads that do one after the other."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepguard.core import deadlines
from stepguard.core.deadlines import Overrun, StandingThreads, within


def ask(threads: StandingThreads, seconds: float = 20.0) -> int:
    """In which thread a call is made."""
    return within(seconds, threading.get_ident, name="standing", threads=threads)


def test_one_call_after_the_other_needs_one_thread() -> None:
    """Also where one of them raises: what was raised is raised where it was called."""
    threads = StandingThreads()
    first = ask(threads)
    with pytest.raises(SystemExit):
        within(20.0, lambda: sys.exit(3), name="standing", threads=threads)
    assert {ask(threads) for _ in range(200)} == {first}
    assert first != threading.get_ident()


def test_a_call_that_is_given_up_keeps_its_thread() -> None:
    """The next one is not kept waiting; when it has returned, its thread takes calls again."""
    threads, go_on = StandingThreads(), threading.Event()
    seen: list[int] = []

    def late() -> None:
        seen.append(threading.get_ident())
        go_on.wait(20)

    with pytest.raises(Overrun):
        within(0.05, late, name="standing", threads=threads)
    other = ask(threads)
    assert other != seen[0]
    go_on.set()
    while len(threads._idle) < 2:
        time.sleep(0.001)
    assert ask(threads) in (seen[0], other)


def test_many_callers_at_once() -> None:
    """Every one gets its own answer, of threads that are never more than the callers."""
    threads = StandingThreads()
    with ThreadPoolExecutor(8) as callers:
        numbers = range(2000)
        answers = callers.map(
            lambda n: within(20.0, lambda: (n, threading.get_ident()), name="x", threads=threads), numbers
        )
        pairs = list(answers)
    assert [number for number, _ in pairs] == list(numbers)
    assert len({thread for _, thread in pairs}) <= 16


def test_a_thread_that_waits_keeps_nothing_alive_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what was called nor what it gave; some seconds later it is gone, and the next call has a new one."""
    monkeypatch.setattr(deadlines, "_IDLE", 0.02)
    threads = StandingThreads()

    class Big:
        pass

    gone = weakref.ref(within(20.0, Big, name="standing", threads=threads))
    gc.collect()
    assert gone() is None
    while any(thread.name == "standing" for thread in threading.enumerate()):
        time.sleep(0.001)
    assert threads._idle == []
    assert ask(threads) != threading.get_ident()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork_nobody_waits_for_threads_of_the_other_process() -> None:
    """The child starts its own."""
    threads = StandingThreads()
    ask(threads)
    child = os.fork()
    if not child:
        try:
            ask(threads, 10.0)
        except BaseException:  # noqa: BLE001 - the parent says so
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
