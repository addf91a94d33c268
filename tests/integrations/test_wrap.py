"""`wrap` against a real HTTP server on loopback: what is asked for as a procedure is guarded."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
import wrap_harness
from conftest import ChatServer, Reply, completion_body
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai_harness import GOOD, INPUTS, KEY, PROCEDURE, good_answer
from wrap_harness import ASKED, CHAT, WRONG, Create, wrap

from stepguard import Procedure, RetryPolicy
from stepguard.errors import ConfigError, InputError, ProcedureError, RunConflict, RunFailed, StepNotVerified
from stepguard.integrations.openai.client import result_of

create = wrap_harness.create
client = wrap_harness.client


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


# Concurrency and cost


def test_threads_share_a_wrapped_client(chat_server: ChatServer) -> None:
    """Eight threads ask at once, guarded and not, and nobody gets another's answer."""
    chat_server.play(good_answer)
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
    chat_server.play(good_answer)

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


def test_a_procedure_object_serves_many_calls(client: openai.OpenAI) -> None:
    """Procedures are values: one from a file, named for all calls."""
    sums = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
    create = wrap(client, procedures={sums.name: sums}).chat.completions.create
    for _ in range(2):
        assert create(model="m", procedure="sums", inputs={"x": 12, "y": 7}).stepguard.procedure == "sums"


def test_a_call_with_a_key_is_kept_and_goes_on(
    create: Callable[..., Create], chat_server: ChatServer, tmp_path: Path
) -> None:
    """Under its Idempotency-Key a run is kept in the ledger; the same call again asks no model, another is refused."""
    chat_server.play([Reply(completion_body(WRONG)), Reply({"error": {"message": "out"}}, status=400)])
    call: dict[str, Any] = {"model": "m", "procedure": PROCEDURE, "inputs": INPUTS}
    call["extra_headers"] = {"idempotency-KEY": "sum 17", "X-Trace": "a"}
    asking = create(ledger=tmp_path / "runs.db")
    with pytest.raises(RunFailed):
        asking(**call)
    chat_server.play(Reply(completion_body('{"t1": "19 * 3 = 57"}')))
    for _ in range(2):
        response = create(ledger=tmp_path / "runs.db")(**call)
        assert (response.choices[0].message.content, response.stepguard.run_id) == (
            "t2 = 19\nt1 = 57\nanswer: 57",
            "sum 17",
        )
    assert len(chat_server.requests) == 3
    sent = [{name.lower() for name in received.headers} for received in chat_server.requests]
    assert all("x-trace" in names and "idempotency-key" not in names for names in sent)
    with pytest.raises(RunConflict, match="other inputs"):
        asking(**{**call, "inputs": {"x": 1, "y": 7}})
    with pytest.raises(ConfigError, match="Idempotency-Key is a text"):
        asking(**{**call, "extra_headers": {"Idempotency-Key": ""}})
    with pytest.raises(ConfigError, match="names a run in a ledger"):
        create()(**call)
