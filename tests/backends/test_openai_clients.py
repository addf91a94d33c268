"""OpenAIBackend against a real HTTP server on loopback: whole runs, and the clients they use."""

from __future__ import annotations

import asyncio
import functools
import gc
import operator
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, INPUTS, KEY, PROCEDURE, REQUEST, backend_at, failure, good_answer

from stepguard import Guard
from stepguard.backends.making import as_backend
from stepguard.backends.openai import OpenAIBackend
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, BackendTimeout, ConfigError, RateLimited

pytestmark = pytest.mark.usefixtures("quick_collections")

# Whole runs


def test_usage_of_a_run(chat_server: ChatServer) -> None:
    """A bad reply is asked again, and its tokens count, cached ones included."""
    bad, good = completion_body("nope"), completion_body(GOOD)
    bad["usage"] |= {"prompt_tokens_details": {"cached_tokens": 4}}
    good["usage"] = {
        "prompt_tokens": 12,
        "completion_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    chat_server.play([Reply(bad), Reply(good)])
    result = Guard(backend_at(chat_server)).run(PROCEDURE, INPUTS)
    assert result.status == "verified"
    assert result.answer == 57
    assert result.usage == Usage(calls=2, input_tokens=22, output_tokens=11, cached_tokens=12, reasoning_tokens=2)


def test_a_run_in_tools_mode(chat_server: ChatServer) -> None:
    """Tool calls are read; one by another name is not accepted."""

    def reply(name: str) -> Reply:
        call = {"id": "a", "type": "function", "function": {"name": name, "arguments": GOOD}}
        return Reply(completion_body(None, tool_calls=[call]))

    chat_server.play([reply("final_answer"), reply("Steps")])
    result = Guard(backend_at(chat_server, mode="tools")).run(PROCEDURE, INPUTS)
    assert result.status == "verified"
    assert [deviation.kind for deviation in result.attempts[0].deviations] == ["malformed"]


@pytest.mark.parametrize("mode", ["json_schema", "tools", "json"])
def test_bad_reply_changes_no_mode(chat_server: ChatServer, mode: Any) -> None:
    """After a reply that cannot be read the same model is asked in the same form; only the sampling differs."""
    chat_server.play([Reply(completion_body("nope")), Reply(completion_body(GOOD))])
    result = Guard(backend_at(chat_server, mode=mode), stop_early=False).run(PROCEDURE, INPUTS)
    assert [attempt.outcome for attempt in result.attempts] == ["rejected", "accepted"]
    first, second = ({**each.body, "temperature": None, "seed": None} for each in chat_server.requests)
    assert first == second


def test_rejected_tool_call_is_not_sent_back(chat_server: ChatServer) -> None:
    """No request holds a tool call of the model's, which a server would want answered, or anything of a bad reply."""
    call = {"id": "call-77", "type": "function", "function": {"name": "Steps", "arguments": '{"t2": "12 + 7 = 18"}'}}
    chat_server.play([Reply(completion_body(None, tool_calls=[call])), Reply(completion_body(GOOD))])
    Guard(backend_at(chat_server, mode="tools"), segment=1, repair=1).run(PROCEDURE, INPUTS)
    messages = chat_server.requests[1].body["messages"]
    assert all(set(message) == {"role", "content"} and message["role"] != "tool" for message in messages)
    assert "call-77" not in str(messages)
    assert "= 18" not in str(messages)


def test_asyncio_run_twice(chat_server: ChatServer) -> None:
    """One guard serves one event loop after the other; each client is closed on the loop it lived on."""
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests left open is theirs
    chat_server.play(Reply(completion_body(GOOD)))
    backend = backend_at(chat_server)
    guard = Guard(backend)
    for _ in range(2):
        assert asyncio.run(guard.arun(PROCEDURE, INPUTS)).status == "verified"
        gc.collect()
    assert backend._lent == {}


def test_own_sync_client_is_closed(chat_server: ChatServer) -> None:
    """The sync client of a backend is made once, and closed when the backend is gone."""
    chat_server.play(Reply(completion_body(GOOD)))
    backend = backend_at(chat_server)
    backend.complete(REQUEST)
    client = backend._sync_client()
    backend.complete(REQUEST)
    assert backend._sync_client() is client
    assert not client.is_closed()
    del backend
    gc.collect()
    assert client.is_closed()


def test_sessions_share_a_client(chat_server: ChatServer) -> None:
    """Sessions on one loop share a client, which is closed when the last of them ends, also by an error."""
    chat_server.play(Reply(completion_body(GOOD)))
    backend = backend_at(chat_server)

    async def fail(outer: object) -> None:
        async with backend.session():
            assert await backend._async_client() is outer
            raise ZeroDivisionError

    async def main() -> None:
        async with backend.session():
            outer = await backend._async_client()
            with pytest.raises(ZeroDivisionError):
                await fail(outer)
            await backend.acomplete(REQUEST)
            assert not outer.is_closed()
        assert outer.is_closed()
        async with backend.session():
            assert await backend._async_client() is not outer

    asyncio.run(main())
    assert backend._lent == {}


def test_cancelled_run(chat_server: ChatServer) -> None:
    """Cancelling a run while the model is thinking leaves no client, no task and no further request behind."""
    chat_server.play(Reply(completion_body(GOOD), delay=30))
    backend = backend_at(chat_server)

    async def main() -> None:
        task = asyncio.create_task(Guard(backend).arun(PROCEDURE, INPUTS))
        while not (chat_server.requests or task.done()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert backend._lent == {}
    assert len(chat_server.requests) == 1


def test_threads(chat_server: ChatServer) -> None:
    """Eight threads share one guard, from the first use on, and nobody gets another's reply or usage."""
    chat_server.play(good_answer)
    guard = Guard(backend_at(chat_server))
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for x in range(number * 10, number * 10 + 4):
            result = guard.run(PROCEDURE, {"x": x, "y": 1})
            assert result.answer == 3 * (x + 1)
            assert result.usage.input_tokens == 1000 + x

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number) for number in range(8)]:
            future.result()
    assert len(chat_server.requests) == 32


def test_many_runs_on_one_loop(chat_server: ChatServer) -> None:
    """Twenty runs at once share one client and keep their replies and usage apart."""
    chat_server.play(good_answer)
    backend = backend_at(chat_server)
    guard = Guard(backend)

    async def main() -> None:
        results = await asyncio.gather(*(guard.arun(PROCEDURE, {"x": x, "y": 1}) for x in range(20)))
        assert [result.answer for result in results] == [3 * (x + 1) for x in range(20)]
        assert [result.usage.input_tokens for result in results] == [1000 + x for x in range(20)]

    asyncio.run(main())
    assert backend._lent == {}


def test_loops_in_threads(chat_server: ChatServer) -> None:
    """Event loops in several threads use one guard at the same time, each with a client of its own."""
    chat_server.play(good_answer)
    guard = Guard(backend_at(chat_server))

    def work(x: int) -> object:
        return asyncio.run(guard.arun(PROCEDURE, {"x": x, "y": 1})).answer

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [3, 6, 9, 12]


# Clients of the user's


def test_sync_client_of_the_user(chat_server: ChatServer) -> None:
    """A sync client serves run and arun, is left as it was, and stays open."""
    chat_server.play(Reply(completion_body(GOOD)))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, max_retries=2) as client:
        before = dict(vars(client))
        guard = Guard(client, model="some-model")
        assert guard.run(PROCEDURE, INPUTS).status == "verified"
        assert asyncio.run(guard.arun(PROCEDURE, INPUTS)).status == "verified"
        del guard
        gc.collect()
        assert {name: value for name, value in vars(client).items() if name in before} == before
        assert not client.is_closed()
        assert client.chat.completions.create(model="m", messages=[]).choices


def test_async_client_of_the_user(chat_server: ChatServer) -> None:
    """An async client serves arun and stays open; run says what to do instead, before anything is sent."""
    chat_server.play(Reply(completion_body(GOOD)))

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY) as client:
            guard = Guard(client, model="some-model")
            for _ in range(2):
                assert (await guard.arun(PROCEDURE, INPUTS)).status == "verified"
            assert not client.is_closed()
            assert client.max_retries == openai.DEFAULT_MAX_RETRIES
            with pytest.raises(ConfigError, match="arun"):
                guard.run(PROCEDURE, INPUTS)
            with pytest.raises(ConfigError, match="arun"):
                as_backend(client, model="m").complete(REQUEST)  # type: ignore[union-attr]

    asyncio.run(main())
    assert len(chat_server.requests) == 2


def test_duck_typed_clients() -> None:
    """Anything with chat.completions.create will do: it gets the request once, and dictionaries are read too."""
    asked: list[dict[str, Any]] = []

    def create(**arguments: Any) -> object:
        asked.append(arguments)
        return completion_body(GOOD)

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    assert OpenAIBackend("m", client=client).complete(REQUEST).text == GOOD
    assert asked[0]["messages"] == REQUEST.chat()
    assert asked[0]["timeout"] == 20

    mock = MagicMock()
    mock.chat.completions.create.return_value = completion_body(GOOD)
    assert OpenAIBackend("m", client=mock).complete(REQUEST).text == GOOD
    mock.chat.completions.create.assert_called_once()

    awaited = MagicMock()
    awaited.chat.completions.create = AsyncMock(return_value=completion_body(GOOD))
    backend = OpenAIBackend("m", client=awaited)
    assert backend.is_async
    assert asyncio.run(backend.acomplete(REQUEST)).text == GOOD


def test_client_of_another_vendor() -> None:
    """Errors of other clients are told by status and name; what is neither is a mistake that no retry mends."""

    class APITimeoutError(Exception):
        pass

    class Busy(Exception):
        status_code = 429

    def backend(error: Exception) -> OpenAIBackend:
        client = MagicMock()
        client.chat.completions.create.side_effect = error
        return OpenAIBackend("m", client=client)

    def kinds(error: Exception) -> tuple[type[BackendError], bool]:
        found = failure(OpenAIBackend.complete, backend(error))
        return type(found), found.retryable

    assert kinds(APITimeoutError("late")) == (BackendTimeout, True)
    assert kinds(Busy("slow")) == (RateLimited, True)
    assert kinds(TypeError("no such argument")) == (BackendError, False)
    with pytest.raises(ConfigError, match="theirs"):
        backend(ConfigError("theirs")).complete(REQUEST)


@pytest.mark.parametrize(
    ("place", "method"),
    [("object", "chat.completions.create"), *(("class", n) for n in ("chat.completions.create", "request", "post"))],
)
def test_whatever_method_was_replaced_sees_the_request(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, method: str, place: str
) -> None:
    """Also where all clients were replaced, those made here among them; what comes of the reply is the same."""
    chat_server.play(Reply(completion_body(GOOD)))
    calls: list[str] = []
    *path, name = method.split(".")
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, max_retries=3) as client:
        owner: Any = operator.attrgetter(".".join(path))(client) if path else client
        owner = owner if place == "object" else type(owner)
        original = getattr(owner, name)

        @functools.wraps(original)
        def traced(*arguments: Any, **named: Any) -> Any:
            calls.append(method)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, traced)
        plain = backend_at(chat_server).complete(REQUEST) if place == "class" else None
        completion = OpenAIBackend("some-model", client=client).complete(REQUEST)
    assert plain in (None, completion)
    assert completion.text == GOOD
    assert len(calls) == len(chat_server.requests) == (1 if plain is None else 2)


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
def test_the_sdk_is_not_asked_to_take_a_request_apart(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, api: Any
) -> None:
    """What goes over the wire is what its create would have sent; with parameters of your own it still goes there."""
    chat_server.play(Reply(completion_body(GOOD)))
    for extra in ({}, {"temperature": None}, {"extra_headers": {"x-mine": "1"}}):
        backend = backend_at(chat_server, api=api, extra=extra)
        assert backend.complete(REQUEST).text == GOOD
    short, empty, whole = chat_server.requests
    assert short.body == empty.body == whole.body
    mine = {"x-mine", "x-stainless-raw-response"}
    assert {n: v for n, v in whole.headers.items() if n.lower() not in mine}.keys() == short.headers.keys()
    for module in ("chat.completions.completions", "responses.responses"):
        monkeypatch.setattr(f"openai.resources.{module}.maybe_transform", MagicMock(side_effect=AssertionError))
    assert backend_at(chat_server, api=api).complete(REQUEST).text == GOOD


_REPLACED = """\
import functools, sys, types
import openai
from stepguard.backends import Message, Request
from stepguard.backends.openai import OpenAIBackend

class Completions:
    def create(self, **_):
        return {"choices": [{"finish_reason": "stop", "message": {"content": "replaced"}}]}

part = types.SimpleNamespace(completions=Completions())

class Cached(openai.OpenAI):
    chat = functools.cached_property(lambda self: part)

class Plain(openai.OpenAI):
    chat = part

given = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
given.chat = part
for client in (*(cls(api_key="k", base_url="http://127.0.0.1:9/v1") for cls in (Cached, Plain)), given):
    backend = OpenAIBackend("m", client=client)
    assert "openai.resources.chat" not in sys.modules
    assert backend.complete(Request(messages=(Message("user", "?"),))).text == "replaced"
"""


def test_a_part_of_a_client_that_was_replaced_sees_the_request() -> None:
    """Also where nothing has imported the SDK's own yet."""
    subprocess.run([sys.executable, "-c", _REPLACED], check=True, timeout=60)


def test_the_parts_of_a_client_are_looked_up_off_the_event_loop() -> None:
    """A client's parts import what is heavy when they are first looked at: that happens in a thread."""
    looked_at: set[str] = set()

    class Looked:
        """A client that notes in which thread its parts are looked up."""

        max_retries = 0

        @property
        def chat(self) -> object:
            looked_at.add(threading.current_thread().name)
            return SimpleNamespace(completions=SimpleNamespace(create=create))

    async def create(**_: object) -> object:
        return {"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]}

    backend = OpenAIBackend("m", client=Looked())
    looked_at.clear()
    asyncio.run(backend.acomplete(REQUEST))
    assert looked_at
    assert threading.main_thread().name not in looked_at
