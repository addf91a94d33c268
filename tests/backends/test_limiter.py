"""Calls at the same time: never more than the endpoint bears, and no storm after it asks to slow down."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from stepguard import Guard, Procedure, Result
from stepguard.backends import Completion, Message, Request
from stepguard.backends.limiter import LimitedBackend
from stepguard.errors import BackendError, RateLimited
from stepguard.testing import SimulatedModel, Slips

HELLO = Request(messages=(Message("user", "hello"),))


class Endpoint:
    """Answers when it is let, and refuses what comes beside too many others."""

    name = "endpoint"
    signature = {"model": "endpoint"}  # noqa: RUF012

    def __init__(self, bears: int = 1000, retry_after: float | None = None) -> None:
        self.bears = bears
        self.retry_after = retry_after
        self.active = self.most = self.calls = self.refused = 0

    async def acomplete(self, request: Request) -> Completion:
        self.calls += 1
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            refuses = self.active > self.bears
            await asyncio.sleep(0.001)
            if refuses:
                self.refused += 1
                raise RateLimited("slow down", retry_after=self.retry_after)
        finally:
            self.active -= 1
        return Completion("hi")


async def insist(backend: LimitedBackend) -> None:
    """Ask until there is an answer, as a retry policy does."""
    while True:
        try:
            await backend.acomplete(HELLO)
        except RateLimited:
            await asyncio.sleep(0)
            continue
        return


def together(backend: LimitedBackend, count: int) -> None:
    async def main() -> None:
        await asyncio.gather(*(insist(backend) for _ in range(count)))

    asyncio.run(main())


def test_never_more_calls_than_allowed() -> None:
    """However many runs ask, no more than the given number of calls are on their way."""
    endpoint = Endpoint()
    together(LimitedBackend(endpoint, most=5), 100)
    assert (endpoint.calls, endpoint.most) == (100, 5)


def test_the_limit_finds_what_the_endpoint_bears() -> None:
    """After rate limits no more is sent than is borne: of the calls that follow a twentieth is refused at most."""
    endpoint = Endpoint(bears=3)
    backend = LimitedBackend(endpoint, most=64)
    together(backend, 200)
    refused = endpoint.refused
    assert refused < 150
    together(backend, 600)
    assert endpoint.refused - refused <= 30


def test_the_limit_recovers() -> None:
    """Where no more rate limits come, it grows back to what was allowed at first, and not beyond."""
    endpoint = Endpoint(bears=2)
    backend = LimitedBackend(endpoint, most=8)

    async def main() -> None:
        await asyncio.gather(*(insist(backend) for _ in range(20)))
        assert backend.limit < 8
        endpoint.bears = 100
        for _ in range(10):
            await asyncio.gather(*(insist(backend) for _ in range(500)))
            if backend.limit == 8:
                break

    asyncio.run(main())
    assert backend.limit == 8


def test_one_burst_halves_the_limit_once() -> None:
    """Calls that were on their way when the limit was halved do not halve it again."""
    endpoint = Endpoint(bears=0)
    backend = LimitedBackend(endpoint, most=16)

    async def main() -> None:
        done = await asyncio.gather(*(backend.acomplete(HELLO) for _ in range(16)), return_exceptions=True)
        assert all(isinstance(each, RateLimited) for each in done)

    asyncio.run(main())
    assert backend.limit == 8


@pytest.mark.parametrize(("retry_after", "waits"), [(0.05, True), (3600.0, False), (None, False)])
def test_nobody_asks_while_the_endpoint_says_to_wait(retry_after: float | None, waits: bool) -> None:
    """After a Retry-After the next call of anybody waits for it; a wait of an hour is left to the retry policy."""
    endpoint = Endpoint(bears=0, retry_after=retry_after)
    backend = LimitedBackend(endpoint, most=4)

    async def main() -> float:
        with pytest.raises(RateLimited):
            await backend.acomplete(HELLO)
        endpoint.bears = 10
        loop = asyncio.get_running_loop()
        started = loop.time()
        await backend.acomplete(HELLO)
        return loop.time() - started

    assert (asyncio.run(main()) >= 0.04) is waits


def test_other_errors_change_nothing() -> None:
    """A call that fails for another reason gives its place free and leaves the limit."""

    class Broken(Endpoint):
        async def acomplete(self, request: Request) -> Completion:
            raise BackendError("503")

    backend = LimitedBackend(Broken(), most=2)

    async def main() -> None:
        for _ in range(5):
            with pytest.raises(BackendError, match="503"):
                await asyncio.wait_for(backend.acomplete(HELLO), 5)

    asyncio.run(main())
    assert backend.limit == 2


def test_a_cancelled_call_gives_its_place_free() -> None:
    """Cancelling a call that waits, or one on its way, leaves room for the next."""
    endpoint = Endpoint()
    backend = LimitedBackend(endpoint, most=1)

    async def main() -> None:
        tasks = [asyncio.create_task(backend.acomplete(HELLO)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(backend.acomplete(HELLO), 5)

    asyncio.run(main())


def test_it_stands_for_the_model_behind_it() -> None:
    """Its name and signature are the model's."""
    backend = LimitedBackend(Endpoint(), most=1)
    assert backend.name == "endpoint"
    assert backend.signature == {"model": "endpoint"}


class OneAtATime:
    """A right model that answers one request at a time, and writes down whose it was."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.backend = LimitedBackend(self, most=1)
        self._model = SimulatedModel(slips=Slips.none())

    async def acomplete(self, request: Request) -> Completion:
        self.asked.append(request.steps[0].id[0])
        await asyncio.sleep(0)
        return self._model.complete(request)


@pytest.mark.parametrize("rivals", [1, 3])
def test_a_run_that_asks_much_at_once_starves_no_other(rivals: int) -> None:
    """Between two requests of the large run each of the others gets a turn, whenever it comes."""
    model = OneAtATime()

    def run(name: str, width: int) -> Coroutine[Any, Any, Result]:
        before = ["x" if width > 3 or not number else f"{name}{number - 1}" for number in range(width)]
        steps = "\n".join(f"{name}{number} = {other} + {number}" for number, other in enumerate(before))
        guard = Guard(model.backend, segment=1, parallel=width)
        return guard.arun(Procedure.parse(f"inputs: x\n{steps}"), {"x": 1})

    async def main() -> list[Result]:
        return await asyncio.gather(run("l", 40), *(run(name, 3) for name in "abc"[:rivals]))

    assert {each.status for each in asyncio.run(main())} == {"verified"}
    others = [at for at, name in enumerate(model.asked) if name != "l"]
    assert len(model.asked) == 40 + 3 * rivals
    assert max(others) < 8 * rivals + 8
