"""R11, R15: a first call in a fresh process, and many runs at once on an endpoint that allows few."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ChatServer, Received, Reply, completion_body

from stepguard import Guard, Procedure, Result
from stepguard.backends.limiter import EndpointLimiter, LimiterRegistry
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import BackendTimeout, RateLimited

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
INPUTS = {"x": 6, "y": 7}
GOOD = '{"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}'


class Narrow:
    """Answers so many requests at once, and the others with status 429."""

    def __init__(self, most: int, headers: dict[str, str] | None = None) -> None:
        self.refused = self.active = 0
        self._most, self._headers = most, headers or {}
        self._lock = threading.Lock()

    @contextmanager
    def _inside(self) -> Iterator[bool]:
        with self._lock:
            self.active += 1
            free = self.active <= self._most
            self.refused += not free
        yield free
        with self._lock:
            self.active -= 1

    def __call__(self, _: Received) -> Reply:
        with self._inside() as free:
            if not free:
                return Reply({"error": {"message": "slow down"}}, 429, self._headers)
            threading.Event().wait(0.02)
        return Reply(completion_body(GOOD))


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["R15-one-guard", "R15-a-guard-for-each-run"])
def test_two_hundred_runs_at_once(chat_server: ChatServer, own: bool) -> None:
    """None of them fails, and few requests are refused, whether the runs share a guard or not."""
    narrow = Narrow(8)
    chat_server.play(narrow)

    def guard() -> Guard:
        return Guard(OpenAIBackend("m", base_url=chat_server.url, api_key=f"k{own}"))

    async def main() -> list[Result]:
        shared = guard()
        return await asyncio.gather(*((guard() if own else shared).arun(PROCEDURE, INPUTS) for _ in range(count)))

    count = 50 if own else 200  # every guard of its own opens connections of its own
    results = asyncio.run(main())
    assert {result.status for result in results} == {"verified"}
    assert narrow.refused <= count // 5


def test_threads_and_loops_share_a_limiter(chat_server: ChatServer) -> None:
    """R15: runs of several threads and of several event loops wait for each other, and leave nothing behind."""
    narrow = Narrow(3)
    chat_server.play(narrow)
    limiter = EndpointLimiter(first=3, most=3)
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="k", limiter=limiter)

    async def several() -> list[Result]:
        return await asyncio.gather(*(Guard(backend).arun(PROCEDURE, INPUTS) for _ in range(6)))

    with ThreadPoolExecutor(12) as pool:
        blocking = [pool.submit(Guard(backend).run, PROCEDURE, INPUTS) for _ in range(8)]
        awaited = [pool.submit(asyncio.run, several()) for _ in range(3)]
        statuses = {each.result().status for each in blocking} | {
            result.status for each in awaited for result in each.result()
        }
    assert statuses == {"verified"}
    assert narrow.refused <= 3  # the server may count a request for a moment longer than its client
    assert (limiter.active, len(limiter._queue)) == (0, 0)


def test_a_pause_holds_for_everybody() -> None:
    """R15: what one request was told, the others keep to; one that has not the time does not wait for nothing."""
    limiter = EndpointLimiter()
    with pytest.raises(RateLimited), limiter.turn():
        raise RateLimited("slow down", retry_after=30.0)
    with pytest.raises(RateLimited) as told, limiter.turn(5.0):
        raise AssertionError("it was sent")
    assert told.value.retry_after is not None
    assert 25 < told.value.retry_after <= 30
    assert limiter.limit == 4


@pytest.mark.slow
def test_fifty_procedures_that_are_told_to_wait_wait(chat_server: ChatServer) -> None:
    """B05: only what was in flight is refused, nobody asks before the time is over, and all of them end well."""
    began: list[float] = []
    refused: list[float] = []

    def busy(_: Received) -> Reply:
        began.append(time.monotonic())
        if began[-1] - began[0] < 1.0:
            refused.append(began[-1])
            return Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "2"})
        return Reply(completion_body(GOOD))

    chat_server.play(busy)
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="k", limiter=EndpointLimiter())
    results = list(Guard(backend).map(PROCEDURE, [INPUTS] * 50, concurrency=50))
    assert {each.status for each in results} == {"verified"}
    assert len(refused) <= 8  # so many are sent at a time at first
    assert min(each for each in began if each not in refused) - refused[0] >= 2.0
    assert len(began) == 50 + len(refused)


def test_turns_are_given_in_their_order() -> None:
    """R15: first come, first served; who gives up loses no turn of the others."""
    limiter, order = EndpointLimiter(first=1, most=1), []

    async def take(name: int, timeout: float | None = None) -> None:
        async with limiter.aturn(timeout):
            order.append(name)
            await asyncio.sleep(0.02)

    async def main() -> None:
        tasks = [asyncio.create_task(take(number)) for number in range(6)]
        await asyncio.sleep(0.01)
        tasks[2].cancel()
        with pytest.raises(BackendTimeout):
            await take(9, timeout=0.01)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    assert order == [0, 1, 3, 4, 5]
    assert limiter.active == 0


def test_limiters_are_told_apart_by_endpoint_and_key() -> None:
    """R15: another key is another account; what was not used for longest is forgotten, unless it is in use."""
    registry = LimiterRegistry(most=2)
    first = registry.of("http://a", "1")
    assert registry.of("http://a", "1") is first
    assert registry.of("http://a", "2") is not first
    with first.turn():
        registry.of("http://b", "1")
        assert registry.of("http://a", "1") is first
    registry.of("http://b", "1")
    registry.of("http://c", "1")
    assert registry.of("http://a", "1") is not first


FRESH = """
    import asyncio, importlib.abc, sys, threading, time
    from stepguard import Budget, Guard, Procedure

    class Seen(importlib.abc.MetaPathFinder):
        '''Sees where what is heavy is imported.'''
        def find_spec(self, name, path, target=None):
            if name in ("openai", "instructor", "pydantic", "httpx"):
                threads.add(threading.current_thread() is threading.main_thread())

    threads = set()
    sys.meta_path.insert(0, Seen())
    sys.path.insert(0, sys.argv[2])
    procedure = Procedure.parse("inputs: x, y\\nt1 = x * y\\nt2 = t1 + 5")
    from stepguard.backends.openai import OpenAIBackend
    backend = OpenAIBackend("m", base_url=sys.argv[1], api_key="k")
    guard = Guard(backend, budget=Budget(seconds=2))
    inputs, started = {"x": 6, "y": 7}, time.monotonic()
    result = guard.run(procedure, inputs) if sys.argv[3] == "run" else asyncio.run(guard.arun(procedure, inputs))
    assert time.monotonic() - started < 20, "it waited for what it was preparing"
    assert threads == {False}, "something heavy was imported in the thread of the event loop, or nothing was"
    print(result.status)
    sys.stdout.flush()
    import os
    os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("slow", ["openai", "instructor", "server"], ids="R11-slow-{}".format)
@pytest.mark.parametrize("driver", ["run", "arun"])
def test_the_deadline_includes_what_a_first_call_prepares(
    chat_server: ChatServer, tmp_path: Path, slow: str, driver: str
) -> None:
    """A fresh process with a slow import, or a slow server, ends within its budget, and its loop imports nothing."""
    chat_server.play(Reply(completion_body(GOOD), delay=60.0))
    (tmp_path / f"{slow}.py").write_text("import time\ntime.sleep(30)\n", encoding="utf-8")
    command = [sys.executable, "-c", textwrap.dedent(FRESH), chat_server.url, str(tmp_path), driver]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "exhausted"), done.stderr
