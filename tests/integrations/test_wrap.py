"""`wrap` against a real HTTP server on loopback: guarded where a procedure is asked for, untouched everywhere else."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import operator
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import instructor
import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai_harness import GOOD, KEY, PROCEDURE
from pydantic import BaseModel

from stepguard import Budget, Guard, Procedure, RetryPolicy
from stepguard.errors import ConfigError, InputError, ProcedureError, RunFailed, StepNotVerified
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.client import ClientCall, result_of
from stepguard.integrations.openai.client import wrap as wrap_client

VALUES = "inputs: x, y\nx = 12\ny = 7\n"
ASKED: list[dict[str, str]] = [{"role": "user", "content": f"{VALUES}t2 = x + y\nt1 = t2 * 3"}]
TRUST = Trust(procedures=("user",), inputs=("user",))
CHAT = [{"role": "user", "content": "Tell me of patient John Doe."}]
WRONG = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}'

Create = Callable[..., Any]


def wrap(client: Any, **options: Any) -> Any:
    """A wrapped client whose users are trusted with procedures and inputs, where nothing else is said."""
    return wrap_client(client, **{"trust": TRUST, **options})


@pytest.fixture(params=["sync", "async"])
def create(request: pytest.FixtureRequest, chat_server: ChatServer) -> Callable[..., Create]:
    """Makes ``create`` of a wrapped client at the server, blocking or awaited; options are those of `wrap`."""
    options_of_client: dict[str, Any] = {"base_url": chat_server.url, "api_key": KEY}

    def make(**options: Any) -> Create:
        if request.param == "sync":
            client = openai.OpenAI(**options_of_client)
            request.addfinalizer(client.close)
            return wrap(client, **options).chat.completions.create  # type: ignore[no-any-return]

        async def main(arguments: dict[str, Any]) -> Any:
            async with openai.AsyncOpenAI(**options_of_client) as client:
                return await wrap(client, **options).chat.completions.create(**arguments)

        return lambda **arguments: asyncio.run(main(arguments))

    return make


@pytest.fixture
def client(chat_server: ChatServer) -> Iterator[openai.OpenAI]:
    chat_server.play(Reply(completion_body(GOOD)))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as made:
        yield made


# Guarded calls


@pytest.mark.parametrize(
    "call",
    [
        {"messages": ASKED},
        {"procedure": PROCEDURE, "inputs": {"x": 12, "y": 7}},
        {"procedure": str(PROCEDURE), "messages": [{"role": "user", "content": '{"x": 12, "y": 7}'}]},
        {"procedure": "sums", "inputs": {"x": 12, "y": 7}, "messages": CHAT},
    ],
)
def test_a_call_that_asks_for_a_procedure_is_guarded(
    create: Callable[..., Create], chat_server: ChatServer, call: dict[str, Any]
) -> None:
    """Named or in the prompt, the procedure is run, a slip asked again, and the answer is the SDK's own type."""
    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body('{"t1": "19 * 3 = 57"}'))])
    response = create(procedures={"sums": PROCEDURE})(model="gpt-x", **call)
    assert isinstance(response, ChatCompletion)
    assert response.choices[0].message.content == "t2 = 19\nt1 = 57\nanswer: 57"
    assert response.usage is not None
    assert response.usage.total_tokens == 30
    assert result_of(response).answer == 57  # type: ignore[union-attr]
    assert json.loads(response.model_dump_json())["stepguard"]["status"] == "verified"
    assert pickle.loads(pickle.dumps(response)).stepguard.answer == 57
    assert [received.body["model"] for received in chat_server.requests] == ["gpt-x"] * 2
    assert "John Doe" not in str(chat_server.requests)


@pytest.mark.parametrize("reply", [WRONG, "nope"])
def test_what_is_not_verified_raises_with_the_result(
    create: Callable[..., Create], chat_server: ChatServer, reply: str
) -> None:
    """By default a run that is not verified is an exception that holds what was verified and spent."""
    chat_server.play(Reply(completion_body(reply)))
    with pytest.raises(StepNotVerified) as caught:
        create(repair=1)(model="m", messages=ASKED)
    assert caught.value.result.usage.calls == len(chat_server.requests) > 1


def test_what_is_not_verified_can_be_returned_and_is_no_answer(
    create: Callable[..., Create], chat_server: ChatServer
) -> None:
    """With on_unverified="return" the completion has no content, a refusal, and the result."""
    chat_server.play(Reply(completion_body(WRONG)))
    response = create(repair=1, on_unverified="return")(model="m", messages=ASKED)
    assert response.choices[0].message.content is None
    assert "step t1" in response.choices[0].message.refusal
    assert response.choices[0].finish_reason == "content_filter"
    assert response.stepguard.values["t2"] == 19


def test_more_can_be_asked_of_an_answer(create: Callable[..., Create], chat_server: ChatServer) -> None:
    """`at_least` decides what an answer is, as with `raise_for_status`."""
    said = '{"t1": {"work": "as it says", "value": "France"}}'
    chat_server.play(Reply(completion_body(said)))
    words = 'inputs: c: text\nt1: text = "Name the country in c." (reads c)'
    asked = {"model": "m", "procedure": words, "inputs": {"c": "Lyon, France"}}
    with pytest.raises(ConfigError, match="t1 can be unverified at most"):
        create()(**asked)
    assert not chat_server.requests
    content = create(at_least="unverified")(**asked).choices[0].message.content
    assert content == "t1 = France  (not verified)\nanswer: France  (not verified)"


def test_a_failing_server_is_asked_as_often_as_the_client_would(
    create: Callable[..., Create], chat_server: ChatServer
) -> None:
    """One layer repeats requests: the client's two retries make three requests, and a refusal is not repeated."""
    chat_server.play(Reply({"error": {"message": f"bad {KEY}"}}, status=500, headers={"retry-after-ms": "1"}))
    with pytest.raises(RunFailed) as caught:
        create(retry=RetryPolicy(first_wait=0))(model="m", messages=ASKED)
    assert len(chat_server.requests) == 3
    assert KEY not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.result.to_json()}"
    chat_server.requests.clear()
    chat_server.play(Reply({"error": {"message": "no such model"}}, status=404))
    with pytest.raises(RunFailed):
        create()(model="m", messages=ASKED)
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([{"role": "user", "content": "inputs: x\nx = 1\nt = x +"}], ProcedureError),
        ([{"role": "user", "content": "inputs: x\nt = x + 1"}], InputError),
    ],
)
def test_a_mistake_costs_no_request(
    create: Callable[..., Create], chat_server: ChatServer, messages: Any, error: type[Exception]
) -> None:
    """A procedure or value that cannot be right is told before any model is asked."""
    with pytest.raises(error):
        create()(model="m", messages=messages)
    assert not chat_server.requests


# Streams


def test_a_guarded_answer_can_be_streamed(client: openai.OpenAI) -> None:
    """stream=True gives the SDK's chunks of the finished answer, and the result beside them."""
    guarded = wrap(client).chat.completions
    asked: dict[str, Any] = {"model": "m", "messages": ASKED, "stream": True}
    with guarded.create(**asked, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    assert all(isinstance(chunk, ChatCompletionChunk) for chunk in chunks)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == "t2 = 19\nt1 = 57\nanswer: 57"
    assert chunks[-1].usage.total_tokens == 15
    assert result_of(stream).verified  # type: ignore[union-attr]
    stopped = guarded.create(**asked)
    next(stopped)
    stopped.close()
    assert list(stopped) == []


def test_an_async_guarded_answer_can_be_streamed(chat_server: ChatServer) -> None:
    """The same for a client that is awaited."""
    chat_server.play(Reply(completion_body(GOOD)))

    async def main() -> None:
        async with wrap(openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY)) as guarded:
            stream = await guarded.chat.completions.create(model="m", messages=ASKED, stream=True)
            async with stream:
                parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(parts).endswith("answer: 57")
            assert [chunk async for chunk in stream] == []
        assert guarded.is_closed()

    asyncio.run(main())


# Parameters


def test_parameters_of_a_guarded_call_reach_the_model_or_the_guard(
    client: openai.OpenAI, chat_server: ChatServer
) -> None:
    """What the guard need not own is sent as it is; a cap holds; a seed makes the run's own seeds repeatable."""
    create = wrap(client).chat.completions.create
    for _ in range(2):
        create(
            model="m",
            messages=ASKED,
            temperature=0.25,
            top_p=0.5,
            user="somebody",
            n=1,
            stop=None,
            tools=[],
            seed=5,
            max_completion_tokens=33,
            timeout=20,
            response_format={"type": "text"},
            extra_body={"cache": True},
            extra_headers={"X-Ours": "yes"},
            logit_bias=openai.NOT_GIVEN,
        )
    first, second = chat_server.requests
    assert first.body == second.body
    assert first.body.items() >= {"temperature": 0.25, "top_p": 0.5, "user": "somebody", "cache": True}.items()
    assert first.body["max_completion_tokens"] == 33
    assert first.headers["x-ours"] == "yes"
    assert first.body["response_format"]["type"] == "json_schema"
    assert not {"max_tokens", "tools", "stop", "n", "procedure", "logit_bias"} & first.body.keys()
    assert first.body["seed"] != 5


def test_the_answer_can_be_asked_for_as_json(client: openai.OpenAI) -> None:
    """response_format={"type": "json_object"} gives the answer as one JSON object."""
    asked: Any = {"model": "m", "messages": ASKED, "response_format": {"type": "json_object"}}
    response = wrap(client).chat.completions.create(**asked)
    assert json.loads(response.choices[0].message.content)["answer"] == 57


@pytest.mark.parametrize(
    "parameter",
    [
        *({"n": 2}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"tool_choice": "auto"}),
        *({"functions": [{"name": "f"}]}, {"stop": "\n"}, {"logprobs": True}),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}},
        *({"modalities": ["audio"]}, {"stream_options": {"include_usage": True}}),
        *({"stream_options": [1], "stream": True}, {"stream_options": "x", "stream": True}, {"seed": "5"}),
        *({"max_tokens": 0}, {"timeout": "soon"}, {"model": None}),
    ],
)
def test_what_a_guarded_call_cannot_honour_is_refused(
    client: openai.OpenAI, chat_server: ChatServer, parameter: dict[str, Any]
) -> None:
    """No parameter is silently dropped: each that the guard cannot honour is named, before anything is sent."""
    name = next(iter(parameter))
    with pytest.raises(ConfigError, match=name):
        wrap(client).chat.completions.create(**{"model": "m", "messages": ASKED, **parameter})
    assert not chat_server.requests


def test_a_request_has_the_time_out_of_the_client(chat_server: ChatServer) -> None:
    """A server that never answers is given up when the client would have, and after no more requests."""
    chat_server.play(Reply(completion_body(GOOD), delay=30))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, timeout=0.2, max_retries=0) as client:
        with pytest.raises(RunFailed, match="time-out"):
            wrap(client).chat.completions.create(model="m", messages=ASKED)
        with pytest.raises(RunFailed, match="time-out"):
            wrap(client.with_options(timeout=60)).chat.completions.create(model="m", messages=ASKED, timeout=0.2)
    assert len(chat_server.requests) == 2


# Everything else


def test_other_calls_are_passed_on_byte_for_byte(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """A call without a procedure sends what the client alone would send, and returns what it returns."""
    asked: Any = {"model": "m", "messages": CHAT, "temperature": 0.1, "tools": [], "n": 2, "stop": ["x"]}
    returned = [each.chat.completions.create(**asked) for each in (client, wrap(client))]
    assert returned[0] == returned[1]
    assert type(returned[0]) is type(returned[1])
    assert result_of(returned[1]) is None
    assert chat_server.requests[0].body == chat_server.requests[1].body
    assert chat_server.requests[0].headers == chat_server.requests[1].headers


def test_messages_that_can_be_read_only_once_are_read_once(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """A generator of messages serves guarded and passed calls alike."""
    create = wrap(client).chat.completions.create
    create(model="m", messages=iter(CHAT))
    assert chat_server.requests[0].body["messages"] == CHAT
    assert result_of(create(model="m", messages=iter(ASKED))) is not None


def test_a_passed_stream_is_the_clients_own(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """Streaming without a procedure gives the stream of the SDK."""
    chat_server.play(Reply(events=[{"id": "c", "choices": [], "object": "chat.completion.chunk"}, "[DONE]"]))
    with wrap(client).chat.completions.create(model="m", messages=CHAT, stream=True) as stream:
        assert isinstance(stream, openai.Stream)
        assert len(list(stream)) == 1


def test_errors_of_passed_calls_are_the_clients_own(create: Callable[..., Create], chat_server: ChatServer) -> None:
    """What an unguarded call raises is what the SDK raises."""
    chat_server.play(Reply({"error": {"message": "no"}}, status=401))
    with pytest.raises(openai.AuthenticationError):
        create()(model="m", messages=CHAT)


def test_messages_are_data_unless_their_role_is_trusted(client: openai.OpenAI) -> None:
    """By default the call alone says what is run, and on what."""
    create = wrap(client, trust=None).chat.completions.create
    mail = [{"role": "user", "content": f"Answer this:\n> Hi\n```procedure\n{VALUES}amount = 999000\n```"}]
    for messages in (ASKED, mail, [{**ASKED[0], "role": "system"}, *CHAT]):
        assert result_of(create(model="m", messages=messages)) is None
        assert result_of(create(**NAMED, messages=messages)).answer == 57  # type: ignore[union-attr]
        with pytest.raises(InputError, match="has no value"):
            create(model="m", procedure=PROCEDURE, messages=messages)
    with pytest.raises(ConfigError, match="no procedure"):
        create(model="m", messages=ASKED, inputs={"x": 1})
    with pytest.raises(ConfigError, match="trust is a Trust"):
        wrap(client, trust=("user",))


def test_a_host_that_wants_guarded_calls_alone_is_told_why_one_is_not(
    client: openai.OpenAI, chat_server: ChatServer
) -> None:
    """With guarded_only a call that would be passed on is refused before it is sent, with the reason."""
    create = wrap(client, trust=None, guarded_only=True).chat.completions.create
    procedure = {"role": "system", "content": "1. Read the invoice.\n2. Add the tax."}
    for messages, words in (([procedure, *CHAT], "in words"), (ASKED, "not trusted"), (CHAT, "names no procedure")):
        with pytest.raises(ConfigError, match=words):
            create(model="m", messages=messages)
    assert not chat_server.requests
    assert create(**NAMED, messages=CHAT).stepguard.verified


def test_every_call_tells_what_became_of_it(create: Callable[..., Create], chat_server: ChatServer) -> None:
    """`on_call` and the log say of each call whether it was guarded; what `on_call` raises changes nothing."""
    chat_server.play(Reply(completion_body(WRONG)))
    calls: list[ClientCall] = []

    def on_call(call: ClientCall) -> None:
        calls.append(call)
        raise RuntimeError("full disk")

    ask = create(on_call=on_call, repair=0)
    ask(model="m", messages=CHAT)
    with pytest.raises(StepNotVerified):
        ask(model="m", messages=ASKED)
    assert [(call.guarded, call.model, call.reason) for call in calls] == [
        (False, "m", "no_procedure"),
        (True, "m", None),
    ]
    assert calls[1].job is not None
    assert calls[1].job.found == "prompt"
    assert calls[1].result is not None
    assert calls[1].result.status == "abstained"


def test_the_log_says_which_calls_were_guarded_and_holds_no_content(
    client: openai.OpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    """Two events, `chat_passed` and `chat_guarded`, without prompts, values or keys."""
    create = wrap(client).chat.completions.create
    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        create(model="m", messages=CHAT)
        create(model="m", messages=ASKED)
    records = [record.getMessage() for record in caplog.records if record.name == "stepguard"]
    events = [record.split()[0] for record in records]
    assert "reason='no_procedure'" in records[0]
    assert events == ["event='chat_passed'", *["event='step_done'"] * 2, "event='run_done'", "event='chat_guarded'"]
    told = re.sub(r"run_id='\w+'", "", "".join(records))
    assert not any(word in told for word in ("John", "inputs", "57", KEY, "t1", "t2"))


def test_a_cancelled_call_tells_what_was_verified(chat_server: ChatServer) -> None:
    """Cancelling propagates, sends nothing more, and `on_call` gets the part that was verified and paid for."""
    first = Reply(completion_body('{"t2": "12 + 7 = 19"}'))
    chat_server.play([first, Reply(completion_body(GOOD), delay=30)])
    calls: list[ClientCall] = []

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY) as client:
            guarded = wrap(client, on_call=calls.append, segment=1)
            task = asyncio.create_task(guarded.chat.completions.create(model="m", messages=ASKED))
            while len(chat_server.requests) < 2 and not task.done():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert len(chat_server.requests) == 2
    (call,) = calls
    assert call.result is not None
    assert (call.result.status, call.result.values["t2"], call.result.usage.calls) == ("failed", 19, 2)


# Clients


def test_all_else_is_the_clients_own(client: openai.OpenAI) -> None:
    """Attributes, resources and the context manager are the client's, which stays as it is."""
    before = dict(vars(client))
    assert isinstance(wrap(client), openai.OpenAI)
    guarded = wrap(client)
    assert guarded.unguarded is client
    assert guarded.api_key == KEY
    assert guarded.models is client.models
    assert guarded.chat.completions.messages is client.chat.completions.messages
    assert "embeddings" in dir(guarded)
    assert "create" in dir(guarded.chat.completions)
    assert KEY not in repr(guarded)
    guarded.chat.completions.create(model="m", messages=ASKED)
    assert {name: value for name, value in vars(client).items() if name in before} == before
    with pytest.raises(AttributeError, match="bananas"):
        _ = guarded.bananas
    guarded.timeout = 7
    assert client.timeout == 7
    with guarded as same:
        assert same is guarded
    assert client.is_closed()


def test_a_shallow_copy_is_guarded_too(client: openai.OpenAI) -> None:
    """copy.copy() gives another wrapped client around the same client."""
    guarded = copy.copy(wrap(client))
    assert guarded.unguarded is client
    assert guarded.chat.completions.create(model="m", messages=ASKED).stepguard.verified


@pytest.mark.parametrize("copied", ["with_options", "copy"])
def test_a_copy_with_other_options_is_guarded_too(client: openai.OpenAI, chat_server: ChatServer, copied: str) -> None:
    """with_options() does not lose the guard, and its options hold."""
    guarded = getattr(wrap(client), copied)(default_headers={"X-Ours": "yes"}, max_retries=0)
    assert result_of(guarded.chat.completions.create(model="m", messages=ASKED)) is not None
    assert chat_server.requests[0].headers["x-ours"] == "yes"
    chat_server.play(Reply("busy", status=503))
    with pytest.raises(RunFailed):
        guarded.chat.completions.create(model="m", messages=ASKED)
    assert len(chat_server.requests) == 2


def test_azure_clients_are_asked_at_their_own_addresses(chat_server: ChatServer) -> None:
    """An Azure client keeps its deployment, version and header."""
    chat_server.play(Reply(completion_body(GOOD)))
    base = chat_server.url.removesuffix("/v1")
    with openai.AzureOpenAI(azure_endpoint=base, api_key=KEY, api_version="2026-01-01") as client:
        assert wrap(client).chat.completions.create(model="ours", messages=ASKED).stepguard.verified
    assert chat_server.requests[0].path == "/openai/deployments/ours/chat/completions?api-version=2026-01-01"
    assert chat_server.requests[0].headers["api-key"] == KEY


NAMED: dict[str, Any] = {"model": "m", "procedure": PROCEDURE, "inputs": {"x": 12, "y": 7}}
WAYS = [
    *(
        "chat.completions.with_raw_response.create",
        "chat.with_raw_response.completions.create",
        "beta.chat.completions",
    ),
    *("with_raw_response.chat.completions.create", "with_streaming_response.chat.completions.create"),
    *("completions.create", "responses.create", "responses.with_raw_response.create", "responses.connect"),
    *("conversations.create", "realtime.connect", "beta.threads.create"),
]


@pytest.mark.parametrize("way", ["parse", "stream"])
def test_ways_that_cannot_be_guarded_refuse_a_procedure(
    client: openai.OpenAI, chat_server: ChatServer, way: str
) -> None:
    """What takes the arguments of `create` refuses a call that asks for a procedure, and is as ever otherwise."""
    completions = wrap(client).chat.completions
    for arguments in ({"model": "m", "messages": ASKED}, {**NAMED, "messages": CHAT}):
        with pytest.raises(ConfigError, match=f"{way} cannot run guarded: use create"):
            getattr(completions, way)(**arguments)
    assert not chat_server.requests
    assert completions.parse(model="m", messages=CHAT).choices[0].message.content == GOOD


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, {"trust": None, "guarded_only": True}], ids=["trusting", "guarded-only"])
def test_where_what_is_said_would_have_to_be_read_other_ways_are_refused(
    client: openai.OpenAI, way: str, options: dict[str, Any]
) -> None:
    """A host that trusts messages, or wants guarded calls alone, learns at once what leads to a model unread."""
    with pytest.raises(ConfigError, match=r"cannot run guarded: use chat.completions.create, or .unguarded"):
        operator.attrgetter(way)(wrap(client, **options))


@pytest.mark.parametrize(
    ("way", "more"),
    [
        ("chat.completions.with_raw_response.create", {"messages": CHAT}),
        ("with_raw_response.chat.completions.create", {"messages": CHAT}),
        ("completions.create", {"prompt": "Hi"}),
        ("responses.create", {"input": "Hi"}),
        ("responses.with_raw_response.create", {"input": "Hi"}),
        ("responses.parse", {"input": "Hi"}),
    ],
)
def test_otherwise_they_are_the_clients_own(
    client: openai.OpenAI, chat_server: ChatServer, way: str, more: dict[str, Any]
) -> None:
    """They take no procedure: it is the SDK that says so, and nothing is sent."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'procedure'"):
        operator.attrgetter(way)(wrap(client, trust=None))(**NAMED, **more)
    assert not chat_server.requests


def test_raw_responses_are_the_clients_own(client: openai.OpenAI) -> None:
    """A call that names no procedure is answered as without the guard."""
    raw = wrap(client, trust=None).chat.completions.with_raw_response.create(model="m", messages=CHAT)
    assert raw.headers["content-type"] == "application/json"
    assert raw.parse().choices[0].message.content == GOOD
    assert wrap(client, trust=None).responses is client.responses


def test_a_client_without_responses_gets_none() -> None:
    """What the client cannot do, the wrapped one does not claim to."""
    double = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: None)))
    assert not hasattr(wrap(double), "responses")


def test_instructor_goes_on_top(client: openai.OpenAI, chat_server: ChatServer) -> None:
    """instructor takes a wrapped client and works as before; a client of instructor's is refused with the remedy."""
    chat_server.play(Reply(completion_body('{"name": "John"}')))

    class Patient(BaseModel):
        name: str

    patched = instructor.from_openai(wrap(client), mode=instructor.Mode.JSON)
    found = patched.chat.completions.create(model="m", messages=CHAT, response_model=Patient)
    assert found.name == "John"
    with pytest.raises(ConfigError, match="pass the one inside"):
        wrap(instructor.from_openai(client))


def test_a_wrapped_client_is_not_wrapped_again(client: openai.OpenAI) -> None:
    """Two guards over each other are a mistake; one over the client inside is not."""
    with pytest.raises(ConfigError, match="unguarded"):
        wrap(wrap(client))
    assert wrap(wrap(client).unguarded).chat.completions.create(model="m", messages=ASKED).stepguard.verified


def test_a_guard_may_stand_on_a_wrapped_client(client: openai.OpenAI) -> None:
    """The requests of a guard hold no procedure that a wrapped client would take for one."""
    assert Guard(wrap(client), model="m").run(PROCEDURE, {"x": 12, "y": 7}).verified


def test_anything_with_chat_completions_can_be_wrapped(client: openai.OpenAI) -> None:
    """Doubles and clients of other vendors are wrapped alike; a tool that replaces `create` later is still asked."""
    double = MagicMock()
    double.chat.completions.create.return_value = completion_body(GOOD)
    assert wrap(double).chat.completions.create(model="m", messages=ASKED).stepguard.verified
    other = wrap(double).chat.completions.create(model="m", messages=CHAT)
    assert other is double.chat.completions.create.return_value
    guarded = wrap(client)
    traced = MagicMock(side_effect=client.chat.completions.create)
    client.chat.completions.create = traced  # type: ignore[method-assign]
    for messages in (ASKED, CHAT):
        guarded.chat.completions.create(model="m", messages=messages)
    assert traced.call_count == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client": "openai/gpt-x"}, "has no chat.completions.create"),
        ({"client": SimpleNamespace(chat=SimpleNamespace())}, "has no chat.completions.create"),
        *(({"on_unverified": "ignore"}, "on_unverified"), ({"at_least": "sure"}, "at_least")),
        *(({"on_call": 3}, "on_call"), ({"procedures": {"sums": "inputs: x"}}, "is a Procedure")),
        *(({"segment": 0}, "segment"), ({"budget": 3}, "Budget"), ({"observe": True}, "observe")),
        ({"mode": "xml"}, "mode"),
    ],
)
def test_what_cannot_work_is_told_when_the_client_is_wrapped(
    client: openai.OpenAI, options: dict[str, Any], words: str
) -> None:
    """A wrong option is an error at once, not at three in the morning."""
    with pytest.raises(ConfigError, match=words):
        wrap(**{"client": client, **options})


def test_a_budget_is_that_of_one_call(client: openai.OpenAI) -> None:
    """Options of the guard hold for each call by itself."""
    create = wrap(client, budget=Budget(calls=1)).chat.completions.create
    for _ in range(3):
        assert create(model="m", messages=ASKED).stepguard.usage.calls == 1


# Concurrency and cost


def answer_of(received: Received) -> Reply:
    """A right answer, from the values in the prompt, the larger ones later: shows whose request it was."""
    lines = received.body["messages"][-1]["content"].splitlines()
    (x,) = (int(line.removeprefix("x = ")) for line in lines if line.startswith("x = "))
    content = json.dumps({"t2": f"{x} + 7 = {x + 7}", "t1": f"{x + 7} * 3 = {3 * (x + 7)}"})
    return Reply(completion_body(content), delay=0.03 if x % 2 else 0.0)


def test_threads_share_a_wrapped_client(chat_server: ChatServer) -> None:
    """Eight threads ask at once, guarded and not, and nobody gets another's answer."""
    chat_server.play(answer_of)
    barrier = threading.Barrier(8)
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client:
        create = wrap(client).chat.completions.create

        def work(number: int) -> None:
            barrier.wait()
            for x in range(number * 10, number * 10 + 4):
                asked = [{"role": "user", "content": ASKED[0]["content"].replace("12", str(x))}]
                assert create(model="m", messages=asked).stepguard.answer == 3 * (x + 7)
                chat = [{"role": "user", "content": f"x = {x}"}]
                assert str(3 * (x + 7)) in create(model="m", messages=chat).choices[0].message.content

        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(work, number) for number in range(8)]:
                future.result()


def test_many_calls_on_one_loop(chat_server: ChatServer) -> None:
    """Twenty calls at once keep their answers apart, whatever the order in which replies come."""
    chat_server.play(answer_of)

    async def main() -> list[Any]:
        async with wrap(openai.AsyncOpenAI(base_url=chat_server.url, api_key=KEY)) as client:
            create = client.chat.completions.create
            inputs = [{"x": x, "y": 7} for x in range(20)]
            return await asyncio.gather(*(create(model="m", procedure=PROCEDURE, inputs=each) for each in inputs))

    assert [each.stepguard.answer for each in asyncio.run(main())] == [3 * (x + 7) for x in range(20)]


def test_a_blocking_client_works_inside_a_running_loop(client: openai.OpenAI) -> None:
    """In a notebook or an async function the blocking client still blocks and answers."""

    async def main() -> Any:
        return wrap(client).chat.completions.create(model="m", messages=ASKED)

    assert asyncio.run(main()).stepguard.verified


def test_the_drop_ins_load_nothing_that_is_not_used() -> None:
    """Importing them loads neither openai nor pydantic, and wrapping nothing more than the client itself."""
    code = (
        "import sys\n"
        "import stepguard.integrations.openai.client, stepguard.integrations.decorator\n"
        "loaded = {'openai', 'instructor', 'pydantic', 'structlog', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_a_procedure_object_serves_many_calls(client: openai.OpenAI) -> None:
    """Procedures are values: one from a file, named for all calls."""
    sums = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
    create = wrap(client, procedures={sums.name: sums}).chat.completions.create
    for _ in range(2):
        assert create(model="m", procedure="sums", inputs={"x": 12, "y": 7}).stepguard.procedure == "sums"
