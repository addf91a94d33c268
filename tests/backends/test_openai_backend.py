"""OpenAIBackend against a real HTTP server on loopback: what is sent, what comes back, what is refused."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, INPUTS, KEY, MESSAGES, PROCEDURE, REQUEST, STEPS, Ask, backend_at, failure

from stepguard import Guard
from stepguard.backends import Completion, Request, ToolCall
from stepguard.backends.making import as_backend
from stepguard.backends.openai import OpenAIBackend
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, BackendRejected, ConfigError, RateLimited
from stepguard.replies.formats import EquationFormat

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


REASONED = [
    # where it stands, the fields of the message, the text that is handed on
    ("the whole", {"content": "", "reasoning_content": f"\n{GOOD} "}, f"\n{GOOD} "),
    ("no content", {"content": None, "reasoning": GOOD}, GOOD),
    ("blank content", {"content": " \n", "reasoning_content": GOOD}, GOOD),
    ("words around it", {"content": "", "reasoning_content": f"So: {GOOD}"}, ""),
    ("two documents", {"content": "", "reasoning_content": f"{GOOD}\n{GOOD}"}, ""),
    ("a cut document", {"content": "", "reasoning_content": GOOD[:-1]}, ""),
    ("no JSON", {"content": "", "reasoning_content": '{"t2": NaN}'}, ""),
    ("no reasoning", {"content": None}, None),
    ("a content", {"content": "{}", "reasoning_content": GOOD}, "{}"),
    ("a tool call", {"content": None, "reasoning_content": GOOD, "tool_calls": [{"function": {"name": "f"}}]}, None),
]


@pytest.mark.parametrize(("message", "text"), [case[1:] for case in REASONED], ids=[case[0] for case in REASONED])
def test_answer_in_reasoning(chat_server: ChatServer, ask: Ask, message: dict[str, Any], text: str | None) -> None:
    """With the option a reasoning that is one JSON document is the text, but only where there is no other answer."""
    chat_server.play(Reply(completion_body(**message)))
    completion = ask(backend_at(chat_server, answer_in_reasoning=True), REQUEST)
    assert completion.text == text
    assert completion.reasoning == message.get("reasoning_content", message.get("reasoning"))


def test_run_with_the_answer_in_the_reasoning(chat_server: ChatServer) -> None:
    """By default an answer in the reasoning is an empty reply that says how much reasoning there is."""
    chat_server.play(Reply(completion_body("", reasoning_content=GOOD)))
    result = Guard(backend_at(chat_server), repair=0).run(PROCEDURE, INPUTS)
    assert result.status == "abstained"
    (deviation,) = result.attempts[0].deviations
    assert deviation.kind == "empty"
    assert deviation.reason == f"the content is empty; {len(GOOD)} characters of reasoning are present"
    assert Guard(backend_at(chat_server, answer_in_reasoning=True)).run(PROCEDURE, INPUTS).status == "verified"


def test_cut_reply(chat_server: ChatServer, ask: Ask) -> None:
    """A reply that was cut off comes back as far as it got, with the reason."""
    body = completion_body('{"t2": "12')
    body["choices"][0]["finish_reason"] = "length"
    chat_server.play(Reply(body))
    completion = ask(backend_at(chat_server), REQUEST)
    assert (completion.text, completion.finish_reason) == ('{"t2": "12', "length")


def test_sparse_and_odd_fields(chat_server: ChatServer) -> None:
    """Other names of the reasoning and content in parts are read without guessing."""
    body = completion_body([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], reasoning="hm")
    chat_server.play([Reply(body), Reply({"choices": [{"message": {"content": 5}}]})])
    completion = backend_at(chat_server).complete(REQUEST)
    assert (completion.text, completion.reasoning) == ("a", "hm")
    with pytest.raises(BackendError, match="the content is int, not text") as caught:
        backend_at(chat_server).complete(REQUEST)
    assert not caught.value.retryable


ASKED, SAID = -(-sum(len(each.content) for each in MESSAGES) // 4), -(-len(GOOD) // 4)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, (ASKED, SAID)),
        ({}, (ASKED, SAID)),
        ({"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None}, (ASKED, SAID)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (ASKED, SAID)),
        ({"prompt_tokens": "many", "completion_tokens": "few"}, (ASKED, SAID)),
        ({"prompt_tokens": 70}, (70, SAID)),
        ({"input_tokens": 70, "output_tokens": 30}, (70, 30)),
        ({"prompt_tokens": 70, "total_tokens": 100}, (70, 30)),
        ({"completion_tokens": 30, "total_tokens": 100}, (70, 30)),
        ({"total_tokens": 1000}, (ASKED, 1000 - ASKED)),
    ],
)
def test_tokens_that_nobody_counts(
    chat_server: ChatServer, ask: Ask, told: dict[str, object] | None, expected: tuple[int, int]
) -> None:
    """Tokens are taken from what the endpoint tells, and estimated where it does not, so that a budget holds."""
    chat_server.play(Reply({**completion_body(GOOD), "usage": told}))
    usage = ask(backend_at(chat_server), REQUEST).usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, *expected)


def test_tool_arguments_that_are_no_text(chat_server: ChatServer, ask: Ask) -> None:
    """Arguments that a server has read already are refused where it lost what the model wrote."""
    call = {"type": "function", "function": {"name": "Steps", "arguments": {"t2": 1.10}}}
    chat_server.play(Reply(completion_body(None, tool_calls=[call])))
    error = failure(ask, backend_at(chat_server, mode="tools"))
    assert ("digits are not the model's" in str(error), error.retryable) == (True, False)
    call["function"] = {"name": "Steps", "arguments": {"t2": "12 + 7 = 19"}}
    chat_server.play(Reply(completion_body(None, tool_calls=[call])))
    assert ask(backend_at(chat_server, mode="tools"), REQUEST).tool_calls[0].arguments == '{"t2": "12 + 7 = 19"}'


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


# Misuse


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-4.1-mini", "write 'openai/gpt-4.1-mini'"),
        ("anthropic/claude", "'anthropic' is asked through its own SDK"),
        *(("openai/", "names no model"), ("", "names no provider")),
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


def test_wrapped_client() -> None:
    """A client that instructor has wrapped has a backend of its own, which is named."""
    import instructor

    with openai.OpenAI(api_key=KEY) as client, pytest.raises(ConfigError, match="InstructorBackend"):
        OpenAIBackend("m", client=instructor.from_openai(client))


def test_no_key(ask: Ask) -> None:
    """Without any key the first use says what to set."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        ask(OpenAIBackend("m"), REQUEST)


def test_local_endpoint_needs_no_key(chat_server: ChatServer) -> None:
    """An endpoint that is named needs no key."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert OpenAIBackend("m", base_url=chat_server.url).complete(REQUEST).text == GOOD
