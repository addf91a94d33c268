"""OpenAIBackend through the Responses API: what is sent, what is read, what a stream may do."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply
from openai_harness import GOOD, INPUTS, KEY, MESSAGES, PROCEDURE, REQUEST, STEPS, Ask, backend_at, failure
from responses_harness import response

from stepguard import Guard
from stepguard.backends import Request, ToolCall
from stepguard.backends.openai import OpenAIBackend
from stepguard.core.usage import Usage
from stepguard.errors import BackendRejected, RateLimited
from stepguard.replies.formats import EquationFormat

WRONG = GOOD.replace("= 19", "= 18")


def events(text: str, *, last: dict[str, Any] | None = None, size: int = 7) -> list[dict[str, Any]]:
    """The events of a response; without `last` it is complete in the end."""
    at = {"output_index": 1, "content_index": 0, "item_id": "msg_1"}
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    return [
        {"type": "response.created", "response": {**response(None), "status": "in_progress", "usage": None}},
        {"type": "response.reasoning_summary_text.delta", "delta": "add", "output_index": 0},
        *({"type": "response.output_text.delta", "delta": piece, **at} for piece in pieces),
        {"type": "response.output_text.done", "text": text, **at},
        last or {"type": "response.completed", "response": response(text)},
    ]


def backend(server: ChatServer, **options: Any) -> OpenAIBackend:
    return backend_at(server, api="responses", **options)


def test_what_is_sent(chat_server: ChatServer, ask: Ask) -> None:
    """The messages are the input as they are, the schema stands under text, and nothing is stored."""
    chat_server.play(Reply(response(GOOD)))
    request = Request(MESSAGES, STEPS, reply_format=EquationFormat(), temperature=0.0, max_tokens=99, seed=7, timeout=9)
    extra = {"text": {"verbosity": "low"}, "prompt_cache_key": "k"}
    assert ask(backend(chat_server, reasoning_effort="low", extra=extra), request).text == GOOD
    (received,) = chat_server.requests
    assert received.path == "/v1/responses"
    body = dict(received.body)
    schema = body["text"]["format"].pop("schema")
    assert list(schema["properties"]) == ["t2", "t1"]
    assert body == {
        "model": "some-model",
        "input": request.chat(),
        "temperature": 0.0,
        "max_output_tokens": 99,
        "reasoning": {"effort": "low"},
        "store": False,
        "prompt_cache_key": "k",
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "Steps", "strict": True}},
    }


def test_a_run(chat_server: ChatServer) -> None:
    """A slip is asked again, and every token counts, those of a cache and of reasoning apart."""
    chat_server.play([Reply(response(WRONG)), Reply(response(GOOD))])
    result = Guard(backend(chat_server)).run(PROCEDURE, INPUTS)
    assert (result.status, result.answer) == ("verified", 57)
    assert result.usage == Usage(calls=3, input_tokens=120, output_tokens=75, cached_tokens=96, reasoning_tokens=27)
    assert result.usage.cached_share == 0.8


@pytest.mark.parametrize("mode", ["json", "tools"])
def test_other_modes(chat_server: ChatServer, ask: Ask, mode: Any) -> None:
    """An object may be asked for, or a call of one tool, which is read as it was sent."""
    call = {"type": "function_call", "name": "Steps", "arguments": GOOD, "call_id": "c", "id": "fc_1"}
    chat_server.play(Reply(response(GOOD) if mode == "json" else {**response(None), "output": [call]}))
    completion = ask(backend(chat_server, mode=mode), REQUEST)
    body = chat_server.requests[0].body
    if mode == "json":
        assert body["text"] == {"format": {"type": "json_object"}}
        assert completion.text == GOOD
    else:
        assert body["tool_choice"] == {"type": "function", "name": "Steps"}
        assert body["tools"][0]["strict"] is True
        assert completion.tool_calls == (ToolCall("Steps", GOOD),)


def test_what_is_read(chat_server: ChatServer, ask: Ask) -> None:
    """Reasoning and comments before the answer are not the answer; the model that answered is known."""
    body = response(GOOD)
    note = {"type": "output_text", "text": '{"t2": "no"}', "annotations": []}
    body["output"].insert(1, {"type": "message", "role": "assistant", "phase": "commentary", "content": [note]})
    chat_server.play(Reply(body))
    completion = ask(backend(chat_server), REQUEST)
    assert (completion.text, completion.finish_reason, completion.model) == (GOOD, "stop", "served-model")
    assert completion.reasoning == 'add, then multiply\n{"t2": "no"}'


INCOMPLETE = {"status": "incomplete"}
ENDINGS = [
    ("a refusal", {"refusal": "I cannot help"}, {}, "refused"),
    ("a limit", {"text": '{"t2":'}, INCOMPLETE | {"incomplete_details": {"reason": "max_output_tokens"}}, "truncated"),
    ("a filter", None, INCOMPLETE | {"incomplete_details": {"reason": "content_filter"}}, "refused"),
    ("no JSON", {"text": "nineteen"}, {}, "malformed"),
    ("twice", {"text": '{"t2": "12 + 7 = 19", "t2": "12 + 7 = 18"}'}, {}, "duplicate_step"),
    ("nothing", None, {}, "empty"),
]


@pytest.mark.parametrize(("part", "fields", "kind"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS])
def test_endings(chat_server: ChatServer, part: Any, fields: dict[str, Any], kind: str) -> None:
    """What is no answer is a deviation of its own kind; the next try is answered, but for a model that declines."""
    bad = response(None, **fields)
    if part is not None:
        name = "refusal" if "refusal" in part else "output_text"
        bad["output"][1]["content"] = [{"type": name, **part}]
    chat_server.play([Reply(bad), Reply(response(GOOD))])
    result = Guard(backend(chat_server)).run(PROCEDURE, INPUTS)
    assert result.status == ("abstained" if kind == "refused" else "verified")
    assert result.attempts[0].deviations[0].kind == kind


def test_failures(chat_server: ChatServer, ask: Ask) -> None:
    """A response that failed, a refused request and a rate limit are told apart, with the delay that is asked for."""
    failed = response(None, status="failed", error={"code": "server_error", "message": "it broke"})
    slow = response(None, status="failed", error={"code": "rate_limit_exceeded", "message": "try again in 0.1s"})
    chat_server.play(
        [
            Reply(failed),
            Reply(slow),
            Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "0.2"}),
            Reply({"error": {"message": "no such model"}}, 404),
            Reply(response(None, status="in_progress")),
        ]
    )
    asked = backend(chat_server)
    broken = failure(ask, asked)
    assert "it broke" in str(broken)
    assert broken.retryable
    for seconds in (0.1, 0.2):
        limited = failure(ask, asked)
        assert isinstance(limited, RateLimited)
        assert limited.retry_after == seconds
    assert isinstance(failure(ask, asked), BackendRejected)
    assert failure(ask, asked).retryable


# Streams


def test_stream_is_stopped(chat_server: ChatServer) -> None:
    """A stream is closed at its first wrong step, and what has come of it counts; a right one is read to its end."""
    chat_server.play([Reply(events=[*events(WRONG)[:-1], *events(" " * 900)], pause=0.002), Reply(events=events(GOOD))])
    result = Guard(backend(chat_server), stop_early=True).run(PROCEDURE, INPUTS)
    assert (result.status, result.answer) == ("verified", 57)
    assert [each.body.get("stream") for each in chat_server.requests] == [True, None, None]
    assert [each.finish_reason for each in result.attempts] == ["stopped_early", "stop", "stop"]
    assert result.usage.output_tokens < 2 * 25 + 30
    assert result.usage.reasoning_tokens == 2 * 9


def test_a_stream_that_was_not_asked_for(chat_server: ChatServer, ask: Ask) -> None:
    """A server that streams all the same is read to the end of its events."""
    chat_server.play(Reply(events=events(GOOD)))
    assert ask(backend(chat_server), REQUEST).text == GOOD


STREAMS: list[tuple[str, list[Any], bool]] = [
    ("cut", events(GOOD)[:5], True),
    ("an error", [*events(GOOD)[:5], {"type": "error", "code": "server_error", "message": "it broke"}], True),
    ("failed", events(GOOD, last={"type": "response.failed", "response": response(None, status="failed")}), True),
    ("no JSON", [*events(GOOD)[:5], "{"], True),
    ("another text", events(GOOD, last={"type": "response.completed", "response": response(WRONG)}), False),
]


@pytest.mark.parametrize("answers", [row[1] for row in STREAMS], ids=[row[0] for row in STREAMS])
def test_broken_streams(chat_server: ChatServer, ask: Ask, answers: list[Any]) -> None:
    """A stream that breaks off, or does not say in the end what it said before, is no answer."""
    chat_server.play(Reply(events=answers))
    request = Request(MESSAGES, STEPS, reply_format=EquationFormat(), timeout=20, stop=lambda text: False)
    error = failure(ask, backend(chat_server), request)
    assert error.retryable == next(row[2] for row in STREAMS if row[1] is answers)
    assert error.usage is not None
    assert error.usage.calls == 1


def test_a_document_in_the_place_of_a_stream(chat_server: ChatServer, ask: Ask) -> None:
    """A server that does not stream is read all the same."""
    chat_server.play(Reply(response(GOOD)))
    request = Request(MESSAGES, STEPS, reply_format=EquationFormat(), timeout=20, stop=lambda text: False)
    assert ask(backend(chat_server), request).text == GOOD


# Clients and options


def test_clients_of_the_user(chat_server: ChatServer) -> None:
    """A client of one's own is asked once, whatever its retries are."""
    chat_server.play([Reply({"error": {"message": "busy"}}, 500), Reply(response(GOOD))])
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client:
        given = OpenAIBackend("m", client=client, api="responses")
        assert failure(OpenAIBackend.complete, given).status == 500
        assert len(chat_server.requests) == 1

    async def main() -> str | None:
        async with openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY) as client:
            given = OpenAIBackend("m", client=client, api="responses")
            assert given.is_async
            return (await given.acomplete(REQUEST)).text

    assert asyncio.run(main()) == GOOD


def test_effort_in_chat_completions(chat_server: ChatServer) -> None:
    """The effort is a parameter of chat completions, too, and shapes a reply: a recording tells it apart."""
    chat_server.play(Reply(response(GOOD)))
    asked = backend_at(chat_server, reasoning_effort="low", max_tokens_parameter="max_completion_tokens")
    asked.complete(REQUEST)
    assert chat_server.requests[0].body["reasoning_effort"] == "low"
    assert asked.signature != backend_at(chat_server, max_tokens_parameter="max_completion_tokens").signature
    assert repr(backend(chat_server)) == "OpenAIBackend('some-model', api='responses', mode='json_schema')"
