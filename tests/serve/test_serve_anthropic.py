"""Anthropic's SDK as a client of the server: guarded and passed on, whole and as a stream, right and wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import ChatServer, Reply, completion_body
from serve_harness import GOOD, KEY, MODEL, VALUES, WRONG, Served, fixtures_of_a_server, serving

from stepguard.serve import Limits

MESSAGES: Any = [{"role": "user", "content": VALUES}]
TEXT = "t2 = 19\nt1 = 57\nanswer: 57"

endpoint, chat_server, running, served = fixtures_of_a_server(guard={"repair": 0})


@pytest.fixture(scope="module", autouse=True)
def anthropic() -> Any:
    """The SDK, which takes seconds to import: not while tests are collected."""
    return pytest.importorskip("anthropic")


def client_of(served: Served) -> Any:
    """The SDK, as a user has it."""
    return pytest.importorskip("anthropic").Anthropic(
        base_url=served.url.removesuffix("/v1"), api_key=KEY, max_retries=0
    )


def test_a_guarded_message(chat_server: ChatServer, served: Served) -> None:
    """The SDK gets a verified answer, and the upstream is asked in OpenAI's protocol with the caller's key."""
    body = completion_body(GOOD)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 4}
    chat_server.play(Reply(body))
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": VALUES}]}]
    with client_of(served) as client:
        answer = client.messages.create(model=MODEL, messages=parts, max_tokens=100, system="Be exact")
    assert answer.content[0].text == TEXT
    assert (answer.stop_reason, answer.role, answer.model) == ("end_turn", "assistant", MODEL)
    usage = answer.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (6, 4, 5)
    (received,) = chat_server.requests
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body["max_tokens"] == 100


def test_a_guarded_stream(chat_server: ChatServer) -> None:
    """The SDK puts the answer together from the events, with comments between them while the run goes on."""
    chat_server.play(Reply(completion_body(GOOD), delay=0.2))
    with (
        serving(chat_server.url, limits=Limits(keep_alive_seconds=0.05)) as served,
        client_of(served) as client,
        client.messages.stream(model=MODEL, messages=MESSAGES, max_tokens=100) as stream,
    ):
        assert "".join(stream.text_stream) == TEXT
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 5)


def test_a_procedure_in_the_system_prompt(chat_server: ChatServer, served: Served) -> None:
    """A procedure in the system prompt is run with the values of the user."""
    chat_server.play(Reply(completion_body(GOOD)))
    system = "inputs: x, y\nt2 = x + y\nt1 = t2 * 3"
    with client_of(served) as client:
        answer = client.messages.create(model="m", messages=MESSAGES, max_tokens=100, system=system)
    assert answer.content[0].text == TEXT


@pytest.mark.parametrize("late", [False, True], ids=["before", "within"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_message_that_is_not_verified(chat_server: ChatServer, stream: bool, late: bool, anthropic: Any) -> None:
    """The SDK raises for a run that abstains, in its own shape, whether or not a stream had begun."""
    chat_server.play(Reply(completion_body(WRONG), delay=0.2 if late else 0))
    limits = Limits(keep_alive_seconds=0.05 if late else 20)
    with serving(chat_server.url, guard={"repair": 0}, limits=limits) as served, client_of(served) as client:
        with pytest.raises(anthropic.APIStatusError) as caught:
            list(client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=9, stream=stream))
        assert caught.value.body["error"]["type"] == "step_not_verified"
        assert caught.value.body["error"]["stepguard"]["problem"]["step"] == "t2"


def test_a_tool_is_refused(chat_server: ChatServer, served: Served, anthropic: Any) -> None:
    """What a guarded run cannot give is refused by name, in the SDK's shape."""
    tools: Any = [{"name": "f", "input_schema": {"type": "object"}}]
    with client_of(served) as client, pytest.raises(anthropic.BadRequestError, match="tools"):
        client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=9, tools=tools)
    assert not chat_server.requests


def test_other_messages_are_passed_on(chat_server: ChatServer, served: Served) -> None:
    """A message that asks for no procedure goes to the upstream's own messages, headers and all."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    chat_server.play(Reply(body))
    with client_of(served) as client:
        assert client.messages.create(model="m", messages=MESSAGES, max_tokens=9).content[0].text == "hello"
    (received,) = chat_server.requests
    assert received.path == "/v1/messages"
    assert KEY in received.headers.get("x-api-key", received.headers.get("authorization", ""))
    assert "anthropic-version" in received.headers
    assert served.metrics()['stepguard_tokens_total{handling="passed",kind="input"}'] % 3 == 0


def test_a_key_in_its_own_header(chat_server: ChatServer, served: Served) -> None:
    """A key that comes as x-api-key asks the upstream in OpenAI's way, where the run is guarded."""
    chat_server.play(Reply(completion_body(GOOD)))
    headers = {"x-api-key": "sk-other-1", "Authorization": "", "anthropic-version": "2023-06-01"}
    body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 100}
    assert served.request("POST", "/v1/messages", body, headers).status == 200
    assert chat_server.requests[0].headers["authorization"] == "Bearer sk-other-1"


def test_errors_have_its_shape(chat_server: ChatServer, served: Served, anthropic: Any) -> None:
    """Errors of an upstream, of the server and of a broken stream are raised by the SDK under its own names."""
    start = {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}}
    chat_server.play(
        [Reply("<html>", status=429), Reply({"detail": "no such thing"}, status=404), Reply(events=[start])]
    )
    with client_of(served) as client:
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(model="m", messages=MESSAGES, max_tokens=9)
        with pytest.raises(anthropic.NotFoundError, match="no such thing"):
            client.messages.create(model="m", messages=MESSAGES, max_tokens=9)
        with pytest.raises(anthropic.APIStatusError, match="ended"):
            list(client.messages.create(model="m", messages=MESSAGES, max_tokens=9, stream=True))
    broken = served.request("POST", "/v1/messages", b"{", {"anthropic-version": "2023-06-01"})
    assert json.loads(broken.body)["type"] == "error"
