"""The assertion that no real model was asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ChatServer, Reply, completion_body
from harness import GOOD, P2

from stepguard import Guard
from stepguard.backends import Completion, Message, Request
from stepguard.backends.local import LocalBackend
from stepguard.backends.openai import OpenAIBackend
from stepguard.testing import ScriptedBackend, no_real_requests

REQUEST = Request((Message("user", "?"),))


class Client:
    """An OpenAI-style client that counts what is sent."""

    def __init__(self) -> None:
        self.sent = 0
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **_: object) -> object:
        self.sent += 1
        raise ValueError("not here")


@pytest.fixture(params=["name", "client", "local"])
def real(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every backend that reaches a real model."""
    if request.param == "name":
        return OpenAIBackend("some-model", base_url="http://127.0.0.1:9")
    if request.param == "client":
        return OpenAIBackend("some-model", client=Client())
    params = SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())
    llama = SimpleNamespace(CommonParams=lambda: params, Server=lambda _: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "xllamacpp", llama)
    file = tmp_path / "some-model.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00")
    return LocalBackend(file)


WAYS: dict[str, Callable[[Any], object]] = {
    "complete": lambda backend: backend.complete(REQUEST),
    "acomplete": lambda backend: asyncio.run(backend.acomplete(REQUEST)),
    "to_thread": lambda backend: asyncio.run(asyncio.to_thread(backend.complete, REQUEST)),
    "run": lambda backend: Guard(backend).run(P2),
    "arun": lambda backend: asyncio.run(Guard(backend).arun(P2)),
    "run in a thread": lambda backend: asyncio.run(asyncio.to_thread(Guard(backend).run, P2)),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_to_a_real_model(real: Any, way: str) -> None:
    """Whichever backend, and however it is asked: the error names the model, and nothing is sent."""
    with pytest.raises(AssertionError, match="the model 'some-model' was about to be asked"), no_real_requests():
        WAYS[way](real)


@pytest.mark.parametrize("way", WAYS)
def test_no_key_is_needed_to_be_stopped(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no key, as in CI, the error is the same."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AssertionError, match="the model 'some-model' was about to be asked"), no_real_requests():
        WAYS[way](OpenAIBackend("some-model"))


def test_nothing_is_sent() -> None:
    """A client of the caller's counts as real and is not called."""
    client = Client()
    with pytest.raises(AssertionError), no_real_requests():
        Guard(client, model="some-model").run(P2)
    assert client.sent == 0


def test_an_error_that_was_swallowed_comes_back() -> None:
    """Code that catches everything does not hide the request: leaving the block names its model."""
    backend = OpenAIBackend("some-model", base_url="http://127.0.0.1:9")

    def careless(_: object) -> str:
        try:
            return str(backend.complete(REQUEST).text)
        except AssertionError:
            return ""

    with pytest.raises(AssertionError, match=r"real models .*: some-model"), no_real_requests():
        Guard(careless, repair=0).run(P2)


def test_another_error_in_the_block_is_not_hidden() -> None:
    """What a test raises itself goes before the reminder."""
    backend = OpenAIBackend("some-model", base_url="http://127.0.0.1:9")

    def careless() -> None:
        with pytest.raises(AssertionError):
            backend.complete(REQUEST)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), no_real_requests():
        careless()


def test_doubles_and_functions_are_allowed() -> None:
    """Neither a double nor a plain function is a real model."""
    with no_real_requests(), ScriptedBackend(GOOD) as backend:
        assert Guard(backend).run(P2).verified
        assert Guard(lambda messages: "no").run(P2).status == "abstained"


def test_behind_the_block_requests_are_made_again(chat_server: ChatServer) -> None:
    """The block ends with its last line, also where another one stands around it."""
    chat_server.play(Reply(completion_body("hello")))
    backend = OpenAIBackend("some-model", base_url=chat_server.url)
    with no_real_requests():
        with no_real_requests():
            pass
        with pytest.raises(AssertionError), no_real_requests():
            backend.complete(REQUEST)
    assert backend.complete(REQUEST).text == "hello"


def test_tasks_outside_of_the_block_go_on(chat_server: ChatServer) -> None:
    """What another task asks at the same time is its own business."""
    chat_server.play(Reply(completion_body("hello")))
    backend = OpenAIBackend("some-model", base_url=chat_server.url)

    async def guarded(inside: asyncio.Event, done: asyncio.Event) -> None:
        with no_real_requests():
            inside.set()
            await done.wait()

    async def both() -> Completion:
        inside, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(guarded(inside, done))
        await inside.wait()
        completion = await backend.acomplete(REQUEST)
        done.set()
        await task
        return completion

    assert asyncio.run(both()).text == "hello"


def test_a_thread_that_takes_the_context_over_is_held_to_it() -> None:
    """A pool is held to the block where its work runs in a copy of the context."""
    backend = OpenAIBackend("some-model", base_url="http://127.0.0.1:9")
    with ThreadPoolExecutor(1) as pool, pytest.raises(AssertionError, match="some-model"), no_real_requests():
        pool.submit(copy_context().run, backend.complete, REQUEST).result()
