"""OpenAIBackend against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body

from stepguard import Guard, Procedure, Transport
from stepguard.backends import Completion, Message, Request, ToolCall
from stepguard.backends.base import as_backend
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, ConfigError, RateLimited
from stepguard.reply_formats import EquationFormat
from stepguard.usage import Usage

KEY = "sk-SECRET123"
PROCEDURE = Procedure.parse("inputs: x, y\nt2 = x + y\nt1 = t2 * 3")
STEPS = tuple(PROCEDURE.steps)
INPUTS = {"x": 12, "y": 7}
GOOD = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'
MESSAGES = (
    Message("system", "Answer with one JSON object. {{ x }} \\frac{1}{2}"),
    Message("user", "first\n"),
    Message("user", "  second: \u2212\u00e9\U0001f600\t{% raw %}"),
)
REQUEST = Request(MESSAGES, STEPS, reply_format=EquationFormat(), timeout=20)


@pytest.fixture(autouse=True)
def _no_key_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[[OpenAIBackend, Request], Completion]:
    """Both faces of the backend."""
    if request.param == "sync":
        return OpenAIBackend.complete
    return lambda backend, asked: asyncio.run(backend.acomplete(asked))


Ask = Callable[[OpenAIBackend, Request], Completion]


def backend_at(server: ChatServer, **options: Any) -> OpenAIBackend:
    return OpenAIBackend("some-model", base_url=server.url, api_key=KEY, **options)


def failure(ask: Ask, backend: OpenAIBackend, request: Request = REQUEST) -> BackendError:
    with pytest.raises(BackendError) as caught:
        ask(backend, request)
    return caught.value


# The request


def test_json_schema_request(chat_server: ChatServer, ask: Ask) -> None:
    """One request goes out, with a strict schema of exactly the asked steps in order, and the messages as they are."""
    chat_server.play(Reply(completion_body(GOOD)))
    request = Request(
        MESSAGES, STEPS, reply_format=EquationFormat(), temperature=0.0, max_tokens=99, seed=7, timeout=20
    )
    assert ask(backend_at(chat_server, extra={"top_p": 0.5}), request).text == GOOD

    (received,) = chat_server.requests
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    body = dict(received.body)
    assert body.pop("messages") == request.chat()
    schema = body["response_format"]["json_schema"].pop("schema")
    assert body == {
        "model": "some-model",
        "temperature": 0.0,
        "max_tokens": 99,
        "seed": 7,
        "top_p": 0.5,
        "response_format": {"type": "json_schema", "json_schema": {"name": "Steps", "strict": True}},
    }
    assert list(schema["properties"]) == schema["required"] == ["t2", "t1"]
    assert schema["additionalProperties"] is False


def test_tools_request_and_reply(chat_server: ChatServer, ask: Ask) -> None:
    """In tools mode one tool is offered and demanded, and its calls come back with names and arguments as sent."""
    twice = '{"t2": "1", "t2": "2"}'
    calls = [
        {"id": "a", "type": "function", "function": {"name": "Steps", "arguments": GOOD}},
        {"id": "b", "type": "function", "function": {"name": "final_answer", "arguments": twice}},
    ]
    chat_server.play(Reply(completion_body(None, tool_calls=calls)))
    completion = ask(backend_at(chat_server, mode="tools", strict=False), REQUEST)

    assert completion.text is None
    assert completion.tool_calls == (ToolCall("Steps", GOOD), ToolCall("final_answer", twice))
    (received,) = chat_server.requests
    (tool,) = received.body["tools"]
    assert tool["function"]["name"] == "Steps"
    assert list(tool["function"]["parameters"]["properties"]) == ["t2", "t1"]
    assert "strict" not in tool["function"]
    assert received.body["tool_choice"] == {"type": "function", "function": {"name": "Steps"}}
    assert received.body["messages"] == REQUEST.chat()
    assert "response_format" not in received.body


def test_strict_tools(chat_server: ChatServer) -> None:
    """A tool is strict unless it is switched off."""
    chat_server.play(Reply(completion_body(GOOD)))
    backend_at(chat_server, mode="tools").complete(REQUEST)
    assert chat_server.requests[0].body["tools"][0]["function"]["strict"] is True


def test_json_request(chat_server: ChatServer) -> None:
    """In json mode only the response format is added: the library's own prompt does not reach the messages."""
    chat_server.play(Reply(completion_body(GOOD)))
    backend_at(chat_server, mode="json").complete(REQUEST)
    body = chat_server.requests[0].body
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"] == REQUEST.chat()


def test_free_text(chat_server: ChatServer, ask: Ask) -> None:
    """Without a reply format a plain chat completion is asked for, and what is None is not sent."""
    chat_server.play(Reply(completion_body("19, I think")))
    assert ask(backend_at(chat_server), Request(MESSAGES)).text == "19, I think"
    assert chat_server.requests[0].body == {"model": "some-model", "messages": Request(MESSAGES).chat()}


def test_extra_parameters_win(chat_server: ChatServer) -> None:
    """An extra parameter replaces the request's, None drops it, and later changes of the mapping change nothing."""
    chat_server.play(Reply(completion_body(GOOD)))
    extra: dict[str, Any] = {"temperature": None, "seed": 1, "extra_body": {"top_k": 40}}
    backend = backend_at(chat_server, extra=extra, max_tokens_parameter="max_completion_tokens")
    extra["extra_body"]["top_k"] = 1
    backend.complete(Request(MESSAGES, temperature=0.8, seed=5, max_tokens=30))
    body = chat_server.requests[0].body
    assert {name: body[name] for name in body.keys() - {"model", "messages"}} == {
        "seed": 1,
        "top_k": 40,
        "max_completion_tokens": 30,
    }


def test_proxies_of_the_environment(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    """A proxy in the environment is used, and NO_PROXY keeps an endpoint from it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    chat_server.play(Reply(completion_body(GOOD)))
    monkeypatch.setenv("NO_PROXY", "")
    assert failure(ask, backend_at(chat_server)).retryable
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert ask(backend_at(chat_server), REQUEST).text == GOOD


def test_import_is_light() -> None:
    """Importing the backend and making one loads neither the SDK nor instructor nor pydantic."""
    code = (
        "import sys, stepguard.backends.openai as o; o.OpenAIBackend.from_name('openai/m');"
        "sys.exit(', '.join({'openai', 'instructor', 'pydantic'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The reply


@pytest.mark.parametrize("mode", ["json_schema", "tools", "json"])
def test_raw_text_is_kept(chat_server: ChatServer, ask: Ask, mode: Any) -> None:
    """Text that the library's parser would refuse, mend or misread comes back untouched, after one request."""
    texts = [
        '{"t2": "1", "t2": "12 + 7 = 19", "t1": "57"}',
        '<think>{"t2": "no"',
        '```json\n{"t2": 19, "extra": NaN}\n```',
        "",
        "   \n",
        None,
    ]
    chat_server.play([Reply(completion_body(text)) for text in texts])
    backend = backend_at(chat_server, mode=mode)
    assert [ask(backend, REQUEST).text for _ in texts] == texts
    assert len(chat_server.requests) == len(texts)


def test_all_fields(chat_server: ChatServer, ask: Ask) -> None:
    """Every field of a completion is mapped, hidden and cached tokens included."""
    body = completion_body("", reasoning_content=GOOD, refusal="cannot help")
    body["choices"][0]["finish_reason"] = "content_filter"
    body["usage"] |= {
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    chat_server.play(Reply(body))
    assert ask(backend_at(chat_server), REQUEST) == Completion(
        text="",
        finish_reason="content_filter",
        refusal="cannot help",
        reasoning=GOOD,
        usage=Usage(1, 10, 5, 4, 3),
        model="served-model",
        fingerprint="fp_1",
    )


def test_cut_reply(chat_server: ChatServer, ask: Ask) -> None:
    """A reply that was cut off comes back as far as it got, with the reason."""
    body = completion_body('{"t2": "12')
    body["choices"][0]["finish_reason"] = "length"
    chat_server.play(Reply(body))
    completion = ask(backend_at(chat_server), REQUEST)
    assert (completion.text, completion.finish_reason) == ('{"t2": "12', "length")


def test_sparse_and_odd_fields(chat_server: ChatServer) -> None:
    """Missing usage, other names of the reasoning and content in parts are read without guessing."""
    body = completion_body([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], reasoning="hm")
    body["usage"] = {"prompt_tokens": None, "prompt_tokens_details": None}
    chat_server.play([Reply(body), Reply({"choices": [{"message": {"content": {"t2": 1}}}]})])
    completion = backend_at(chat_server).complete(REQUEST)
    assert (completion.text, completion.reasoning, completion.usage) == ("a", "hm", Usage(calls=1))
    with pytest.raises(BackendError, match="the content is dict, not text") as caught:
        backend_at(chat_server).complete(REQUEST)
    assert not caught.value.retryable


def test_tool_arguments_that_are_no_text(chat_server: ChatServer, ask: Ask) -> None:
    """Arguments that a server has parsed already are refused: what the model wrote is lost."""
    call = {"type": "function", "function": {"name": "Steps", "arguments": {"t2": 1.10}}}
    chat_server.play(Reply(completion_body(None, tool_calls=[call])))
    assert "arguments of a tool call are not text" in str(failure(ask, backend_at(chat_server, mode="tools")))


@pytest.mark.parametrize(
    ("body", "kind", "status", "retryable"),
    [
        ({"choices": None, "error": {"code": 429, "message": "slow down"}}, RateLimited, 429, True),
        ({"choices": [], "error": {"code": "402", "message": "slow down"}}, BackendRejected, 402, False),
        ({"choices": None, "error": {"code": 502, "message": "slow down"}}, BackendError, 502, True),
        ({"error": {"code": "overloaded", "message": "slow down"}}, BackendError, None, True),
        ({"error": "slow down"}, BackendError, None, True),
        ({"message": "slow down", "choices": [{"message": None}]}, BackendError, None, True),
        ("<html>slow down</html>", BackendError, None, True),
        ({"choices": []}, BackendError, None, True),
        ({"choices": [None]}, BackendError, None, True),
    ],
)
def test_status_200_without_an_answer(
    chat_server: ChatServer, ask: Ask, body: Any, kind: type[BackendError], status: int | None, retryable: bool
) -> None:
    """A body without an answer is an error that carries the body's message, whatever the status says."""
    chat_server.play(Reply(body))
    error = failure(ask, backend_at(chat_server))
    assert (type(error), error.status, error.retryable) == (kind, status, retryable)
    assert "slow down" in str(error) or "slow down" not in json.dumps(body)


# Errors


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, BackendRejected, False),
        (401, BackendRejected, False),
        (403, BackendRejected, False),
        (404, BackendRejected, False),
        (422, BackendRejected, False),
        (413, BackendRejected, False),
        (408, BackendError, True),
        (409, BackendError, True),
        (429, RateLimited, True),
        (500, BackendError, True),
        (503, BackendError, True),
    ],
)
def test_status_errors(
    chat_server: ChatServer, ask: Ask, status: int, kind: type[BackendError], retryable: bool
) -> None:
    """Every status becomes its own error after one request, with the server's words and the SDK's error as cause."""
    chat_server.play(Reply({"error": {"message": "these words", "type": "t"}}, status))
    error = failure(ask, backend_at(chat_server))
    assert (type(error), error.status, error.retryable) == (kind, status, retryable)
    assert str(error) == f"some-model: HTTP {status}: these words"
    assert isinstance(error.__cause__, openai.APIStatusError)
    assert len(chat_server.requests) == 1
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.retryable) == (str(error), status, retryable)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "3", "Retry-After-Ms": "1500"}, 1.5),
        ({"Retry-After": formatdate(time.time() - 100, usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after(chat_server: ChatServer, headers: dict[str, str], expected: float | None) -> None:
    """The wait that the endpoint asks for is read from seconds, milliseconds or a date, and never guessed."""
    chat_server.play(Reply({"error": {"message": "slow"}}, 429, headers))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited)
    assert error.retry_after == expected


def test_retry_after_date(chat_server: ChatServer) -> None:
    """A date is turned into the seconds until then; a 503 that names one is a rate limit, too."""
    chat_server.play(Reply({}, 503, {"Retry-After": formatdate(time.time() + 100, usegmt=True)}))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited)
    assert error.retry_after is not None
    assert 90 < error.retry_after <= 100


def test_spent_quota_is_not_retried(chat_server: ChatServer) -> None:
    """A 429 that says the account is out of money cannot be waited out."""
    chat_server.play(Reply({"error": {"message": "pay", "code": "insufficient_quota"}}, 429))
    error = failure(OpenAIBackend.complete, backend_at(chat_server))
    assert isinstance(error, RateLimited)
    assert not error.retryable


def test_timeout(chat_server: ChatServer, ask: Ask) -> None:
    """An endpoint that does not answer in time is a time-out, after one request and soon."""
    chat_server.play(Reply(completion_body(GOOD), delay=30))
    backend = backend_at(chat_server)
    request = Request(MESSAGES, timeout=0.2)
    started = time.perf_counter()
    error = failure(ask, backend, request)
    assert isinstance(error, BackendTimeout)
    assert error.retryable
    assert time.perf_counter() - started < 5
    assert len(chat_server.requests) == 1


def test_no_connection(ask: Ask) -> None:
    """A port where nobody listens is an error that may pass, and says what the system said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(ask, OpenAIBackend("m", base_url=f"http://127.0.0.1:{port}/v1"))
    assert type(error) is BackendError
    assert error.retryable
    assert error.status is None
    assert str(error).startswith("m: no connection: ")


def test_unknown_parameter(chat_server: ChatServer, ask: Ask) -> None:
    """A parameter that the SDK does not take is an error that is not retried and names it; nothing is sent."""
    error = failure(ask, backend_at(chat_server, extra={"top_q": 1}))
    assert not error.retryable
    assert "top_q" in str(error)
    assert chat_server.requests == []


def test_body_that_is_no_json(chat_server: ChatServer, ask: Ask) -> None:
    """A body that claims to be JSON and is not is an error that may pass."""
    chat_server.play(Reply("{", headers={"Content-Type": "application/json"}))
    assert failure(ask, backend_at(chat_server)).retryable


def test_long_messages_are_cut(chat_server: ChatServer, ask: Ask) -> None:
    """A message of the server is cut to 500 characters, in an error status and in a body with status 200 alike."""
    chat_server.play([Reply({"error": {"message": "x" * 5000}}, 500), Reply({"error": {"message": "x" * 5000}})])
    for _ in range(2):
        assert len(str(failure(ask, backend_at(chat_server)))) == 500


# Retries


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize(("status", "requests"), [(429, 3), (500, 3), (401, 1), (404, 1)])
@pytest.mark.parametrize("own_client", [True, False])
def test_one_layer_retries(chat_server: ChatServer, driver: str, status: int, requests: int, own_client: bool) -> None:
    """Two retries of the transport make three requests, whatever retries a client brings; a refusal makes one."""
    chat_server.play(Reply({"error": {"message": "no"}}, status))
    transport = Transport(retries=2, first_wait=0.01)
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, max_retries=2) as client:
        if own_client:
            guard = Guard(backend_at(chat_server), transport=transport)
        else:
            guard = Guard(client, model="some-model", transport=transport)
        result = guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))
        assert client.max_retries == 2
    assert result.status == "failed"
    assert len(chat_server.requests) == requests
    assert result.usage.calls == requests


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


def test_asyncio_run_twice(chat_server: ChatServer) -> None:
    """One guard serves one event loop after the other; each client is closed on the loop it lived on."""
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
        async with backend.session() as inner:
            assert inner is outer
            raise ZeroDivisionError

    async def main() -> None:
        async with backend.session() as outer:
            with pytest.raises(ZeroDivisionError):
                await fail(outer)
            await backend.acomplete(REQUEST)
            assert not outer.is_closed()
        assert outer.is_closed()
        async with backend.session() as later:
            assert later is not outer

    asyncio.run(main())
    assert backend._lent == {}


def test_cancelled_run(chat_server: ChatServer) -> None:
    """Cancelling a run while the model is thinking leaves no client, no task and no further request behind."""
    chat_server.play(Reply(completion_body(GOOD), delay=30))
    backend = backend_at(chat_server)

    async def main() -> None:
        task = asyncio.create_task(Guard(backend).arun(PROCEDURE, INPUTS))
        while not chat_server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert backend._lent == {}
    assert len(chat_server.requests) == 1


def answer_of(received: Received) -> Reply:
    """A right answer to `PROCEDURE`, from the values in the prompt: shows whose request it was."""
    lines = received.body["messages"][-1]["content"].splitlines()
    x, y = (int(line.removeprefix(f"{name} = ")) for name in "xy" for line in lines if line.startswith(f"{name} = "))
    content = json.dumps({"t2": f"{x} + {y} = {x + y}", "t1": f"{x + y} * 3 = {3 * (x + y)}"})
    body = completion_body(content)
    body["usage"] = {"prompt_tokens": 1000 + x, "completion_tokens": 1}
    return Reply(body, delay=0.01)


def test_threads(chat_server: ChatServer) -> None:
    """Eight threads share one guard, from the first use on, and nobody gets another's reply or usage."""
    chat_server.play(answer_of)
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
    chat_server.play(answer_of)
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
    chat_server.play(answer_of)
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


def test_traced_client(chat_server: ChatServer) -> None:
    """A client whose create was replaced, as tracing tools do, is asked through the replacement."""
    chat_server.play(Reply(completion_body(GOOD)))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client:
        traced = MagicMock(side_effect=client.chat.completions.create)
        client.chat.completions.create = traced  # type: ignore[method-assign]
        assert OpenAIBackend("m", client=client).complete(REQUEST).text == GOOD
    traced.assert_called_once()


# Secrets


def secrets_in(error: BaseException, backend: OpenAIBackend) -> list[str]:
    texts = [str(error), repr(error), "".join(traceback.format_exception(error)), repr(vars(error)), repr(backend)]
    texts += [repr(error.__cause__), repr(error.__context__), repr(vars(backend)), repr(pickle.dumps(error))]
    return [text for text in texts for secret in ("SECRET", "AIzaXYZ") if secret in text]


ECHOES = [
    f"Incorrect API key provided: {KEY}",
    "Authorization: Bearer sk-SECRET123",
    "{'authorization': 'Bearer eySECRET.abc'}",
    '{"Authorization": "Basic SECRET=="}',
    "got bearer hf_SECRET123 from you",
    "POST https://host/v1?alt=1&key=AIzaXYZ12345&b=2 failed",
    "api_key='SECRET' is wrong",
    "x-api-key: SECRET",
]


@pytest.mark.parametrize("status", [401, 500, 200])
def test_secrets_of_a_server(chat_server: ChatServer, ask: Ask, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """A key that a server echoes is in no text, cause, context or attribute of an error, and in no log record."""
    caplog.set_level(logging.DEBUG)
    chat_server.play([Reply({"error": {"message": words}}, status) for words in ECHOES])
    backend = backend_at(chat_server)
    for _ in ECHOES:
        error = failure(ask, backend)
        assert secrets_in(error, backend) == []
        assert "[redacted]" in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None
    assert "SECRET" not in caplog.text


def test_key_of_any_shape(chat_server: ChatServer, ask: Ask) -> None:
    """The client's own key is hidden whatever it looks like."""
    chat_server.play(Reply({"error": {"message": "who is 0123SECRET4567?"}}, 403))
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="0123SECRET4567")
    error = failure(ask, backend)
    assert str(error) == "m: HTTP 403: who is [redacted]?"
    assert secrets_in(error, backend) == []


def test_nothing_is_logged_at_warning_or_above(
    chat_server: ChatServer, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad replies and errors make no noise in the log: both are the caller's to see, in the result."""
    chat_server.play([Reply(completion_body("nope")), Reply({"error": {"message": "no"}}, 500)])
    backend = backend_at(chat_server)
    ask(backend, REQUEST)
    failure(ask, backend)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# Misuse


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-4.1-mini", "write 'openai/gpt-4.1-mini'"),
        ("anthropic/claude", "'anthropic'.*'openai/...'"),
        ("openai/", "names no model"),
        ("", "names no provider"),
    ],
)
def test_names_that_cannot_work(name: str, words: str) -> None:
    """A name that cannot work is refused with what to write instead."""
    with pytest.raises(ConfigError, match=words):
        OpenAIBackend.from_name(name)


def test_from_name() -> None:
    """Everything behind the provider is the model's name."""
    backend = as_backend("openai/org/some-model")
    assert repr(backend) == "OpenAIBackend('org/some-model', mode='json_schema')"


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"model": " "}, "model"),
        ({"mode": "markdown"}, "mode"),
        ({"max_tokens_parameter": "n_predict"}, "max_tokens_parameter"),
        ({"api_key": ""}, "api_key"),
        ({"extra": {"stream": True}}, "extra"),
        ({"client": object()}, "client"),
        ({"client": MagicMock(), "base_url": "http://127.0.0.1"}, "client"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], option: str) -> None:
    """An option that cannot work is refused at construction, by name."""
    with pytest.raises(ConfigError) as caught:
        OpenAIBackend(**{"model": "m", **options})
    assert caught.value.option == option


def test_wrapped_client() -> None:
    """A client that instructor has wrapped is refused: it would parse and retry by itself."""
    import instructor

    with openai.OpenAI(api_key=KEY) as client, pytest.raises(ConfigError, match="the one inside"):
        OpenAIBackend("m", client=instructor.from_openai(client))


def test_no_key(ask: Ask) -> None:
    """Without any key the first use says what to set."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        ask(OpenAIBackend("m"), REQUEST)


def test_local_endpoint_needs_no_key(chat_server: ChatServer) -> None:
    """An endpoint that is named needs no key."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert OpenAIBackend("m", base_url=chat_server.url).complete(REQUEST).text == GOOD
