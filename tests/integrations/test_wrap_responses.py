"""`wrap` over the Responses API: create, parse and stream run guarded where they ask for a procedure."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
import wrap_harness
from conftest import ChatServer, Reply
from openai.types.responses import ParsedResponse, Response
from openai_harness import GOOD, KEY, PROCEDURE
from responses_harness import response
from wrap_harness import TRUST, wrap

from stepguard import Trust
from stepguard.errors import ConfigError, StepNotVerified
from stepguard.integrations.openai.client import result_of

client = wrap_harness.client

TEXT = "t2 = 19\nt1 = 57\nanswer: 57"
NAMED: dict[str, Any] = {"model": "gpt-x", "procedure": PROCEDURE, "inputs": {"x": 12, "y": 7}}
WRONG = GOOD.replace("= 57", "= 58")


@pytest.fixture(autouse=True)
def answers(chat_server: ChatServer, client: openai.OpenAI) -> None:
    chat_server.play([Reply(response(WRONG)), Reply(response('{"t1": "19 * 3 = 57"}'))])


def test_create(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """A call is guarded, a slip asked again, and the answer is a response of the SDK's with the cost of all calls."""
    given = wrap(client).responses.create(
        **NAMED,
        input="Tell me of patient John Doe.",
        reasoning={"effort": "low"},
        max_output_tokens=50,
        text={"verbosity": "low"},
        metadata={"a": "b"},
        store=True,
    )
    assert isinstance(given, Response)
    assert (given.output_text, given.status, given.model) == (TEXT, "completed", "gpt-x")
    assert given.usage is not None
    assert (given.usage.input_tokens, given.usage.output_tokens_details.reasoning_tokens) == (80, 18)
    assert result_of(given).answer == 57  # type: ignore[union-attr]
    assert given.model_dump(mode="json")["stepguard"]["status"] == "verified"
    for received in chat_server.requests:
        assert received.path == "/v1/responses"
        sent = {name: received.body[name] for name in ("reasoning", "max_output_tokens", "metadata", "store")}
        assert sent == {"reasoning": {"effort": "low"}, "max_output_tokens": 50, "metadata": {"a": "b"}, "store": True}
        assert received.body["text"]["verbosity"] == "low"
        assert received.body["text"]["format"]["type"] == "json_schema"
    assert "John Doe" not in str(chat_server.requests)


SAID = [
    {"instructions": str(PROCEDURE), "input": '{"x": 12, "y": 7}'},
    {
        "input": [
            {"role": "system", "content": [{"type": "input_text", "text": str(PROCEDURE)}]},
            {"type": "function_call_output", "call_id": "c", "output": "x = 1"},
            {"role": "user", "content": [{"type": "input_text", "text": "x = 12\ny = 7"}]},
        ]
    },
]


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_is_read_where_it_is_trusted(client: openai.OpenAI, said: dict[str, Any]) -> None:
    """Instructions are a system message; a procedure and values are read of roles that are trusted with them."""
    wrapped = wrap(client, trust=Trust(procedures=("system",), inputs=("user",)))
    given = wrapped.responses.create(model="m", **said)
    assert given.stepguard.answer == 57


def test_parse(client: openai.OpenAI) -> None:
    """Parse gives the type that it gives; a schema of one's own cannot be filled."""
    given = wrap(client).responses.parse(**NAMED, input="Hi", text={"format": {"type": "json_object"}})
    assert isinstance(given, ParsedResponse)
    assert given.stepguard.answer == 57  # type: ignore[attr-defined]
    assert given.output_parsed is None
    assert '"answer": 57' in given.output_text
    with pytest.raises(ConfigError, match="cannot fill a schema of yours"):
        wrap(client).responses.parse(**NAMED, input="Hi", text_format=ParsedResponse)


def test_streams(client: openai.OpenAI) -> None:
    """A stream has the SDK's events, the whole answer at its end, and the result."""
    with wrap(client).responses.stream(**NAMED, input="Hi") as events:
        seen = list(events)
        final = events.get_final_response()
    assert [event.type for event in seen[:2]] == ["response.created", "response.in_progress"]
    assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == TEXT
    assert seen[-1].response.output_text == final.output_text == TEXT
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert result_of(final) is result_of(events)


def test_create_with_stream(client: openai.OpenAI) -> None:
    """Create may stream, too."""
    events = wrap(client).responses.create(**NAMED, input="Hi", stream=True)
    assert list(events)[-1].type == "response.completed"
    assert events.stepguard.answer == 57


def test_async(chat_server: ChatServer) -> None:
    """All of it is awaited where the client is."""
    chat_server.play(Reply(response(GOOD)))

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY) as inner:
            wrapped = wrap(inner)
            given = await wrapped.responses.create(**NAMED, input="Hi")
            assert given.output_text == TEXT
            assert (await wrapped.responses.parse(**NAMED, input="Hi")).output_text == TEXT
            async with wrapped.responses.stream(**NAMED, input="Hi") as events:
                assert [event.type async for event in events][-1] == "response.completed"
            assert (await events.get_final_response()).output_text == TEXT

    asyncio.run(main())


def test_a_run_that_falls_short(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """It raises, or is a response that is incomplete, with a refusal that tells no value."""
    chat_server.play(Reply(response(WRONG)))
    with pytest.raises(StepNotVerified):
        wrap(client, repair=0).responses.create(**NAMED, input="Hi")
    given = wrap(client, repair=0, on_unverified="return").responses.create(**NAMED, input="Hi")
    assert (given.status, given.incomplete_details.reason) == ("incomplete", "content_filter")
    assert given.output_text == ""
    assert given.output[0].content[0].refusal.startswith("stepguard gives no answer")
    events = wrap(client, repair=0, on_unverified="return").responses.create(**NAMED, input="Hi", stream=True)
    assert [event.type for event in events][-4:-1] == [
        "response.refusal.done",
        "response.content_part.done",
        "response.output_item.done",
    ]


def test_calls_without_a_procedure_are_passed_on(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """What asks for no procedure goes to the model as it came; where only guarded calls are wanted it is refused."""
    chat_server.play(Reply(response("Hello")))
    wrapped = wrap(client, trust=None)
    for given in (wrapped.responses.create(model="m", input="Hi"), wrapped.responses.parse(model="m", input="Hi")):
        assert (given.output_text, result_of(given)) == ("Hello", None)
    assert chat_server.requests[0].body == {"model": "m", "input": "Hi"}
    assert wrapped.responses.retrieve.__self__ is client.responses
    with pytest.raises(ConfigError):
        wrap(client, trust=TRUST, guarded_only=True).responses.create(model="m", input="Hi")


@pytest.mark.parametrize(
    "parameter",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": "c"},
        {"prompt": {"id": "p"}},
        {"background": True},
        {"tools": [{"type": "web_search"}]},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}},
    ],
    ids=lambda parameter: next(iter(parameter)),
)
def test_parameters_that_cannot_be_honoured(
    client: openai.OpenAI, chat_server: ChatServer, parameter: dict[str, Any]
) -> None:
    """They are refused before anything is sent."""
    with pytest.raises(ConfigError):
        wrap(client).responses.create(**NAMED, input="Hi", **parameter)
    assert not chat_server.requests
