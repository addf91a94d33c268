"""The server over a real socket, with the SDK as client: what is guarded, what is passed on, and what it says."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from serve_harness import (
    GOOD,
    KEY,
    MODEL,
    PROCEDURE,
    VALUES,
    WRONG,
    Answer,
    Served,
    chunk,
    events_of,
    fixtures_of_a_server,
    serving,
)

from stepguard import Budget, Procedure
from stepguard.errors import ConfigError, ProcedureError
from stepguard.serve import Limits, create_app

PROMPT = "inputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3\n"
MESSAGES: Any = [{"role": "user", "content": VALUES}]


endpoint, chat_server, running, served = fixtures_of_a_server(guard={"repair": 1})


# Guarded: chat completions


def test_a_model_behind_a_procedure_is_guarded(chat_server: ChatServer, served: Served) -> None:
    """The SDK names PROCEDURE@MODEL, and gets a verified answer that cost what all attempts together did."""
    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body(GOOD))])
    with served.client() as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=MESSAGES)
    answer = raw.parse()
    assert answer.choices[0].message.content == "t2 = 19\nt1 = 57\nanswer: 57"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == MODEL
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (30, 15, 45)
    told = answer.model_extra["stepguard"] if answer.model_extra else {}
    assert (told["status"], told["answer"], told["usage"]["calls"]) == ("verified", 57, 3)
    assert raw.headers["x-stepguard"] == "guarded"
    assert raw.headers["x-stepguard-run"] == told["run_id"]
    assert {each.body["model"] for each in chat_server.requests} == {"some-model"}
    assert {each.headers["authorization"] for each in chat_server.requests} == {f"Bearer {KEY}"}


def test_a_procedure_in_the_prompt_is_guarded(chat_server: ChatServer, served: Served) -> None:
    """A prompt that holds a procedure runs it on the model that is named."""
    chat_server.play(Reply(completion_body(GOOD)))
    answer = served.chat(PROMPT, model="some-model")
    assert answer.status == 200
    assert answer.headers["x-stepguard"] == "guarded"
    assert answer.json["stepguard"]["found"] == "prompt"
    assert "inputs:" not in json.dumps(chat_server.requests[0].body)


def test_inputs_may_stand_in_lines(chat_server: ChatServer, served: Served) -> None:
    """A named procedure takes its inputs from lines of the prompt as well."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert served.chat("x = 12\ny = 7").json["stepguard"]["answer"] == 57


def test_messages_are_data_unless_their_role_is_trusted(chat_server: ChatServer) -> None:
    """By default a request alone says what is run, and on what; a header tells why one was passed on."""
    chat_server.play(Reply(completion_body(GOOD)))
    words = {"role": "system", "content": "1. Read it.\n2. Add it."}
    with serving(chat_server.url, trust=None) as served:
        for content, reason in ((PROMPT, "not_trusted"), ("Hi", "no_procedure")):
            headers = served.chat(content, model="m").headers
            assert (headers["x-stepguard"], headers["x-stepguard-reason"]) == ("passed", reason)
        headers = served.chat(model="m", messages=[words, *MESSAGES]).headers
        assert headers["x-stepguard-reason"] == "steps_in_words"
        assert served.chat().status == 400
        answer = served.chat(PROMPT.replace("7", "999000"), inputs={"x": 12, "y": 7})
        assert answer.json["stepguard"]["answer"] == 57
        assert "x-stepguard-reason" not in answer.headers
    assert "inputs" not in chat_server.requests[-1].body


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
def test_a_request_brings_its_procedure_and_its_inputs(chat_server: ChatServer, path: str) -> None:
    """In every protocol two fields of a request say what is run; numbers keep the digits as they are written."""
    chat_server.play(Reply(completion_body('{"t": "0.1000000000000000000001 * 2 = 0.2000000000000000000002"}')))
    body = (
        b'{"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Go."}], "input": "Go.", '
        b'"procedure": "inputs: x\\nt = x * 2", "inputs": {"x": 0.1000000000000000000001}}'
    )
    with serving(chat_server.url, trust=None) as served:
        answer = served.request("POST", f"/v1/{path}", body)
        assert answer.json["stepguard"]["answer"] == "0.2000000000000000000002"
        for field in (b'"x": 1, "x"', b'"z": 1, "x"'):
            assert served.request("POST", f"/v1/{path}", body.replace(b'"x"', field)).status == 400
        for more in ({"procedure": "sums"}, {"procedure": 3}, {"inputs": [1]}, {"inputs": {"x": 12}}):
            assert served.chat(**more).status == 400
        assert served.chat(model="m", inputs={"x": 1}).error["param"] == "inputs"
    assert len(chat_server.requests) == 1


def test_a_host_that_wants_guarded_requests_alone(chat_server: ChatServer) -> None:
    """With guarded_only a chat that would be passed on is refused, with the reason, at every path where one is had."""
    with serving(chat_server.url, trust=None, guarded_only=True) as served:
        answer = served.chat(model="m", messages=[{"role": "system", "content": "1. Read it.\n2. Add it."}])
        assert (answer.status, answer.error["code"]) == (400, "not_guarded")
        assert "in words" in answer.error["message"]
        assert served.request("POST", "/v1/completions", {"model": "m", "prompt": "Hi"}).status == 400
        assert not chat_server.requests


@pytest.mark.parametrize("asks_usage", [True, False])
def test_a_streamed_answer_of_the_guard(chat_server: ChatServer, served: Served, asks_usage: bool) -> None:
    """The SDK reads a guarded answer as a stream: role, content, finish, the usage where it asks for it."""
    chat_server.play(Reply(completion_body(GOOD)))
    more: Any = {"stream_options": {"include_usage": True}} if asks_usage else {}
    with served.client() as client:
        chunks = list(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, **more))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == "t2 = 19\nt1 = 57\nanswer: 57"
    finishes = [each.choices[0].finish_reason for each in chunks if each.choices]
    assert finishes[-1] == "stop"
    assert not any(finishes[:-1])
    usages = [each.usage.total_tokens for each in chunks if each.usage]
    assert usages == ([15] if asks_usage else [])


def test_comments_keep_a_stream_alive(chat_server: ChatServer) -> None:
    """While a run goes on its stream holds comments, which the SDK passes over."""
    chat_server.play(Reply(completion_body(GOOD), delay=0.4))
    with serving(chat_server.url, limits=Limits(keep_alive_seconds=0.05)) as served:
        body = served.chat(stream=True).body
        assert body.startswith(b": ")
        assert body.endswith(b"data: [DONE]\n\n")
        with served.client() as client:
            chunks = list(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True))
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_an_answer_as_json(chat_server: ChatServer, served: Served) -> None:
    """A request for a JSON object gets one; one for a schema of its own is refused before anything is spent."""
    chat_server.play(Reply(completion_body(GOOD)))
    answer = served.chat(response_format={"type": "json_object"})
    assert json.loads(answer.json["choices"][0]["message"]["content"])["answer"] == 57
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    refused = served.chat(response_format=schema)
    assert (refused.status, refused.error["param"]) == (400, "response_format")
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize(
    "more",
    [
        *({"n": 2}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"logprobs": True}, {"stop": ["x"]}),
        *({"max_tokens": 0}, {"seed": "1"}, {"modalities": ["audio"]}, {"stream_options": [1], "stream": True}),
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_a_run_cannot_give_is_refused(chat_server: ChatServer, served: Served, more: Any) -> None:
    """A parameter that a guarded run cannot honour is refused by name, and nothing is sent."""
    answer = served.chat(**more)
    assert answer.status == 400
    assert answer.error["param"] in more
    assert not chat_server.requests


def test_other_parameters_go_with_every_call_or_are_told(chat_server: ChatServer, served: Served) -> None:
    """What does not touch the guard's work is sent along, also what nobody here knows."""
    chat_server.play(Reply(completion_body(GOOD)))
    answer = served.chat(top_p=0.9, chat_template_kwargs={"thinking": False}, n=1, temperature=0.3, max_tokens=90)
    sent = chat_server.requests[0].body
    assert (sent["top_p"], sent["chat_template_kwargs"]) == (0.9, {"thinking": False})
    assert (sent["temperature"], sent["max_tokens"]) == (0.3, 90)
    assert answer.status == 200


def test_what_a_run_has_no_use_for_is_told(chat_server: ChatServer, served: Served) -> None:
    """Parameters of another protocol that mean nothing to a run are named in the answer."""
    chat_server.play(Reply(completion_body(GOOD)))
    body = {"model": MODEL, "input": VALUES, "truncation": "auto", "reasoning": {"effort": "low"}, "store": False}
    answer = served.request("POST", "/v1/responses", body)
    assert answer.json["stepguard"]["set_aside"] == ["store", "truncation"]
    assert chat_server.requests[0].body["reasoning_effort"] == "low"


# Guarded: not verified


def test_a_step_that_is_not_verified_is_an_error(chat_server: ChatServer, served: Served) -> None:
    """A run that abstains is status 422: the step is named, the spent tokens and the verified part are there."""
    half = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 54"}'
    chat_server.play([Reply(completion_body(half)), Reply(completion_body('{"t1": "19 * 3 = 54"}'))])
    with served.client(max_retries=2) as client, pytest.raises(openai.UnprocessableEntityError) as caught:
        client.chat.completions.create(model=MODEL, messages=MESSAGES)
    error: Any = caught.value.body
    assert (error["type"], error["code"], error["param"]) == ("step_not_verified", "abstained", "t1")
    assert "t1" in error["message"]
    told = error["stepguard"]
    assert "57" not in error["message"].replace(told["run_id"], "")
    assert told["values"] == {"x": 12, "y": 7, "t2": 19}
    assert told["usage"]["calls"] == len(chat_server.requests) == 2
    assert told["usage"]["input_tokens"] == 20


@pytest.mark.parametrize("late", [False, True], ids=["before", "within"])
def test_a_stream_that_is_not_verified_is_an_error(chat_server: ChatServer, late: bool) -> None:
    """The SDK raises for a streamed run that abstains, whether or not the stream had begun; no content comes."""
    chat_server.play(Reply(completion_body(WRONG), delay=0.2 if late else 0))
    limits = Limits(keep_alive_seconds=0.05 if late else 20)
    with (
        serving(chat_server.url, guard={"repair": 0}, limits=limits) as served,
        served.client() as client,
        pytest.raises(openai.APIError) as caught,
    ):
        next(iter(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)))
    assert isinstance(caught.value, openai.UnprocessableEntityError) is not late
    body: Any = caught.value.body
    assert body["type"] == "step_not_verified"


def test_a_budget_that_is_spent_is_an_error(chat_server: ChatServer) -> None:
    """A run that a budget ended is status 422, of a type of its own."""
    chat_server.play(Reply(completion_body(WRONG)))
    with serving(chat_server.url, guard={"budget": Budget(calls=1)}) as served:
        answer = served.chat()
    assert (answer.status, answer.error["type"], answer.headers["x-should-retry"]) == (422, "budget_exhausted", "false")


def test_an_error_tells_the_right_value_only_where_reasons_are_asked_for(chat_server: ChatServer) -> None:
    """Clients that are agents give errors to their models: kinds and steps alone, unless the operator wants more."""
    chat_server.play(Reply(completion_body(WRONG)))
    with serving(chat_server.url, guard={"repair": 0}) as served:
        told = served.chat()
    assert told.error["stepguard"]["problem"]["kind"] == "wrong_value"
    assert b"19" not in told.body.replace(told.error["stepguard"]["run_id"].encode(), b"").split(b'"seconds"')[0]
    with serving(chat_server.url, guard={"repair": 0}, reasons=True) as served:
        told = served.chat()
    assert "19" in told.error["stepguard"]["problem"]["reason"]


def test_what_nothing_vouches_for_is_an_answer_only_where_that_is_allowed(chat_server: ChatServer) -> None:
    """A procedure with an unchecked step is refused by default, and its answer is marked where it is let through."""
    words = Procedure.parse('step1 = "Say which colour it is"')
    chat_server.play(Reply(completion_body('{"step1": {"work": "", "value": "red"}}')))
    with pytest.raises(ConfigError, match="step1 can be unverified at most"):
        create_app(chat_server.url, procedures={"words": words})
    with serving(chat_server.url, procedures={"words": words}, at_least="unverified") as served:
        answer = served.chat("x", model="words@m")
    assert (answer.status, answer.headers["x-stepguard-status"]) == (200, "unverified")
    assert answer.json["stepguard"]["unverified"] == ["step1"]


@pytest.mark.parametrize(
    ("model", "content", "code"),
    [
        *(("other@m", VALUES, "model_not_found"), ("sums@", VALUES, "model_not_found")),
        *((MODEL, "nothing", "invalid_procedure"), (MODEL, '{"x": 12}', "invalid_procedure")),
        (MODEL, '{"x": 12, "y": "seven"}', "invalid_procedure"),
        ("m", "inputs: x\nx = 1\nt = z + 1", "invalid_procedure"),
    ],
    ids=["unknown-name", "no-model", "no-inputs", "an-input-missing", "a-wrong-input", "a-wrong-procedure"],
)
def test_what_cannot_be_run_is_never_answered_unguarded(
    chat_server: ChatServer, served: Served, model: str, content: str, code: str
) -> None:
    """A request that means the guard and cannot be run is an error, and nothing is sent."""
    answer = served.chat(content, model=model)
    assert answer.status in (400, 404)
    assert answer.error["code"] == code
    assert not chat_server.requests


@pytest.mark.parametrize("model", ["@cf/meta/llama", "some-model@20260601", "some-model@latest"])
def test_an_at_sign_of_a_provider_is_no_procedure(chat_server: ChatServer, served: Served, model: str) -> None:
    """Models that providers name with an @ are passed on."""
    chat_server.play(Reply(completion_body("hello")))
    assert served.chat("hi", model=model).headers["x-stepguard"] == "passed"
    assert chat_server.requests[0].body["model"] == model


# Passed on


def test_what_asks_for_no_procedure_is_passed_on_unchanged(chat_server: ChatServer, served: Served) -> None:
    """Body, headers and query go to the upstream as they came, and its body comes back as it is."""
    chat_server.play(Reply(completion_body("hello"), headers={"x-request-id": "r1"}))
    sent = b'{"model":"m",  "messages":[{"role":"user","content":"\\u00e9 1e5"}], "n":2, "seed":12345678901234567890}'
    headers = {"OpenAI-Organization": "org-1", "X-Own": "1", "Connection": "close, x-hop", "X-Hop": "1"}
    answer = served.request("POST", "/v1/chat/completions?q=a%20b", sent, headers)
    assert answer.json == completion_body("hello")
    assert (answer.headers["x-stepguard"], answer.headers["x-request-id"]) == ("passed", "r1")
    (received,) = chat_server.requests
    assert received.path == "/v1/chat/completions?q=a%20b"
    assert received.body == json.loads(sent)
    assert received.headers["content-length"] == str(len(sent))
    assert received.headers["openai-organization"] == "org-1"
    assert received.headers["x-own"] == "1"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert "x-hop" not in received.headers
    assert received.headers["host"] in chat_server.url


def test_a_stream_is_passed_on(chat_server: ChatServer, served: Served) -> None:
    """The SDK reads a stream of the upstream through the server, event by event."""
    chat_server.play(Reply(events=[chunk("he"), chunk("llo"), chunk(finish="stop"), "[DONE]"]))
    with served.client() as client:
        chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "hello"


def test_other_paths_are_passed_on(chat_server: ChatServer, served: Served) -> None:
    """The SDK reaches what the server knows nothing of."""
    body = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": "e"}
    chat_server.play(Reply(body))
    with served.client() as client:
        assert client.embeddings.create(model="e", input="x", encoding_format="float").data[0].embedding == [0.5]
    assert chat_server.requests[0].path == "/v1/embeddings"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings"])
@pytest.mark.parametrize("model", [MODEL, "nope@m"])
def test_no_procedure_is_asked_elsewhere(chat_server: ChatServer, served: Served, path: str, model: str) -> None:
    """NAME@MODEL at a path where nothing is guarded is an error: no upstream gets to answer it unguarded."""
    answer = served.request("POST", path, {"model": model, "prompt": VALUES})
    assert (answer.status, answer.error["type"]) == (404, "invalid_request_error")
    assert not chat_server.requests


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions/", "/v1//chat/completions", "//v1/chat/completions", "/v1/chat/%63ompletions"]
)
def test_a_slash_too_many_does_not_lose_the_guard(chat_server: ChatServer, served: Served, path: str) -> None:
    """What is guarded has one path, however it was written: a run there is guarded, and all else goes there."""
    chat_server.play(Reply(completion_body(GOOD)))
    messages = [{"role": "user", "content": VALUES}]
    answer = served.request("POST", path, {"model": MODEL, "messages": messages})
    assert (answer.status, answer.headers["x-stepguard"]) == (200, "guarded")
    served.request("POST", path, {"model": "m", "messages": messages})
    assert {each.path for each in chat_server.requests} == {"/v1/chat/completions"}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/completions/", "/v1/openai/deployments/d/chat/completions"])
@pytest.mark.parametrize("name", ["prompt", "messages"])
def test_no_completion_elsewhere_answers_a_procedure(chat_server: ChatServer, path: str, name: str) -> None:
    """Completions that are not guarded refuse a prompt that holds a procedure, and pass every other one on."""
    chat_server.play(Reply({"choices": []}))
    with serving(chat_server.url, more_paths=["POST /openai/deployments/{id}/chat/completions"]) as served:

        def ask(content: str) -> Answer:
            given = content if name == "prompt" else [{"role": "user", "content": content}]
            return served.request("POST", path, {"model": "m", name: given})

        refused = ask(PROMPT)
        assert (refused.status, refused.error["code"]) == (404, "unknown_path")
        assert not chat_server.requests
        assert ask("Hello.").headers["x-stepguard"] == "passed"


def test_models_are_listed_behind_every_procedure(chat_server: ChatServer, served: Served) -> None:
    """The SDK lists the upstream's models, and each of them behind the procedure; either can be looked up."""
    entry = {"id": "a/b", "object": "model", "created": 1, "owned_by": "them"}
    chat_server.play(
        lambda received: Reply({"object": "list", "data": [entry]} if received.path == "/v1/models" else entry)
    )
    with served.client() as client:
        listed = [(each.id, each.owned_by) for each in client.models.list()]
        assert listed == [("a/b", "them"), ("sums@a/b", "stepguard")]
        assert client.models.retrieve("sums@a/b").id == "sums@a/b"
        assert client.models.retrieve("a/b").id == "a/b"
    assert len(chat_server.requests) == 3


# Responses


def test_responses(chat_server: ChatServer, served: Served) -> None:
    """The SDK's responses are guarded, whole and as a stream, with instructions beside the input."""
    chat_server.play(Reply(completion_body(GOOD)))
    with served.client() as client:
        answer = client.responses.create(model=MODEL, input=VALUES, instructions="Be exact")
        assert answer.output_text == "t2 = 19\nt1 = 57\nanswer: 57"
        assert answer.usage is not None
        assert (answer.status, answer.usage.total_tokens) == ("completed", 15)
        parts: Any = [{"role": "user", "content": [{"type": "input_text", "text": VALUES}]}]
        with client.responses.stream(model=MODEL, input=parts) as stream:
            kinds = [event.type for event in stream]
            assert stream.get_final_response().output_text == answer.output_text
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_a_response_that_is_not_verified_is_an_error(chat_server: ChatServer) -> None:
    """The SDK raises for a response that abstains, whole, and as a stream that had begun."""
    chat_server.play(Reply(completion_body(WRONG), delay=0.2))
    limits = Limits(keep_alive_seconds=0.05)
    with serving(chat_server.url, guard={"repair": 0}, limits=limits) as served, served.client() as client:
        with pytest.raises(openai.UnprocessableEntityError):
            client.responses.create(model=MODEL, input=VALUES)
        with pytest.raises(openai.APIError, match="t2"):
            list(client.responses.create(model=MODEL, input=VALUES, stream=True))


def test_a_response_that_builds_on_another_is_refused(chat_server: ChatServer, served: Served) -> None:
    """Nothing is stored, so a guarded response on top of another is refused by name."""
    body = {"model": MODEL, "input": VALUES, "previous_response_id": "resp_1"}
    answer = served.request("POST", "/v1/responses", body)
    assert (answer.status, answer.error["param"]) == (400, "previous_response_id")


# Keys and the server itself


def test_a_key_of_the_server(chat_server: ChatServer) -> None:
    """With keys of its own the server lets in who shows one, and asks the upstream with the other."""
    chat_server.play([Reply(completion_body("hello")), Reply(completion_body(GOOD))])
    with serving(chat_server.url, api_key="own-key-1 ", upstream_key="up-key-1\n") as served:  # as out of a file
        refused = served.chat()
        assert (refused.status, refused.error["code"]) == (401, "invalid_api_key")
        assert not chat_server.requests
        with served.client(api_key="own-key-1") as client:
            client.chat.completions.create(model="m", messages=MESSAGES)
            client.chat.completions.create(model=MODEL, messages=MESSAGES)
    assert [each.headers["authorization"] for each in chat_server.requests] == ["Bearer up-key-1"] * 2


def test_a_caller_without_a_key_sends_none(
    chat_server: ChatServer, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment of the server holds for the SDK is not used in a caller's name."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-operator")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-operator")
    chat_server.play(Reply(completion_body(GOOD)))
    body = {"model": MODEL, "messages": MESSAGES}
    for name in (MODEL, "m"):
        answer = served.request("POST", "/v1/chat/completions", {**body, "model": name}, {"Authorization": ""})
        assert answer.status == 200
    assert "operator" not in str([each.headers for each in chat_server.requests])


def test_metrics(chat_server: ChatServer) -> None:
    """Counts by outcome, runs, calls and tokens; nothing of what was said."""
    chat_server.play([Reply(completion_body(GOOD)), Reply(completion_body("hello"))])
    with serving(chat_server.url) as served:
        served.chat()
        served.chat("hi", model="m")
        served.chat(model="nope@m")
        found = served.metrics()
    assert found['stepguard_requests_total{endpoint="chat",handling="guarded",outcome="200"}'] == 1
    assert found['stepguard_requests_total{endpoint="chat",handling="passed",outcome="200"}'] == 1
    assert found['stepguard_requests_total{endpoint="chat",handling="refused",outcome="404"}'] == 1
    assert found['stepguard_runs_total{procedure="sums",status="verified"}'] == 1
    assert found['stepguard_tokens_total{handling="guarded",kind="input"}'] == 10
    assert found['stepguard_tokens_total{handling="passed",kind="output"}'] == 5
    assert found["stepguard_model_calls_total"] == 1
    assert found['stepguard_request_seconds_count{handling="guarded"}'] == 1
    assert not any(word in name for name in found for word in (KEY, "some-model", "t1", "57"))


def test_a_path_outside_of_the_api_is_an_error(served: Served) -> None:
    """A forgotten /v1 is told in the shape that the SDK reads."""
    with (
        served.client(base_url=served.url.removesuffix("/v1")) as client,
        pytest.raises(openai.NotFoundError) as caught,
    ):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert "/v1" in caught.value.message


# Wrong configuration


def test_procedures_of_a_folder(tmp_path: Any, chat_server: ChatServer) -> None:
    """Each file is a procedure, named as the file; one that holds none is named at the start."""
    (tmp_path / "sums.txt").write_text(str(PROCEDURE), encoding="utf-8")
    (tmp_path / ".hidden.txt").write_text("?", encoding="utf-8")
    (tmp_path / "README.md").write_text("# about", encoding="utf-8")
    chat_server.play(Reply(completion_body(GOOD)))
    with serving(chat_server.url, procedures=tmp_path) as served:
        assert served.chat().status == 200
    (tmp_path / "wrong.txt").write_text("t = z + 1", encoding="utf-8")
    with pytest.raises(ProcedureError, match=r"wrong\.txt"):
        create_app(chat_server.url, procedures=tmp_path)


def test_events_of_the_guard_end_with_done(chat_server: ChatServer, served: Served) -> None:
    """A streamed answer ends with [DONE], and the field stepguard stands in its last chunk with a choice."""
    chat_server.play(Reply(completion_body(GOOD)))
    events = events_of(served.chat(stream=True).body)
    assert events[-1] == (None, "[DONE]")
    assert json.loads(events[-2][1])["stepguard"]["status"] == "verified"
