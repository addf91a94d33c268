"""The server under faults: every answer is an OpenAI-shaped success or error, and callers are kept apart."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import logging
import socket
import ssl
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import good_answer
from serve_harness import GOOD, KEY, MODEL, VALUES, Served, chunk, events_of, fixtures_of_a_server, serving

from stepguard.backends.retry import RetryPolicy
from stepguard.serve import Limits

pytestmark = pytest.mark.once

MESSAGES: Any = [{"role": "user", "content": VALUES}]
AT_ONCE = {"retry": RetryPolicy(retries=2, first_wait=0, longest_wait=5)}


endpoint, chat_server, running, served = fixtures_of_a_server(guard={"repair": 1, **AT_ONCE})


@pytest.fixture(params=["passed", "guarded"])
def model(request: pytest.FixtureRequest) -> str:
    """A model with and without a procedure before it."""
    return MODEL if request.param == "guarded" else "some-model"


# Upstreams


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
@pytest.mark.parametrize("body", [{"error": {"message": "no", "type": "t", "param": None, "code": "c"}}, "<html>no"])
def test_an_error_of_the_upstream_keeps_its_status(
    chat_server: ChatServer, served: Served, model: str, status: int, body: object
) -> None:
    """Whatever form an upstream's error has, the caller gets its status and Retry-After, in OpenAI's shape."""
    chat_server.play(Reply(body, status=status, headers={"Retry-After": "1000"}))
    answer = served.chat(model=model)
    assert answer.status == status
    assert answer.error
    if model != MODEL or status == 429:
        assert answer.headers["retry-after"] == "1000"
    if model != MODEL and isinstance(body, dict):
        assert answer.json == body


def test_one_layer_repeats_requests(chat_server: ChatServer, served: Served) -> None:
    """With the retries of the SDK on, a guarded call that fails for good sends three requests, a passed one three."""
    chat_server.play(Reply({"error": {"message": "no"}}, status=500, headers={"retry-after-ms": "1"}))
    with served.client(max_retries=2) as client:
        for name in (MODEL, "m"):
            before = len(chat_server.requests)
            with pytest.raises(openai.InternalServerError):
                client.chat.completions.create(model=name, messages=MESSAGES)
            assert len(chat_server.requests) - before == 3


NO_ANSWERS = {
    "html": Reply("<html>welcome</html>"),
    "cut-json": Reply("{"),
    "list": Reply("[]"),
    "empty": Reply(""),
    "nan": Reply('{"choices": [NaN]}'),
    "no-choices": Reply({"choices": None, "error": {"code": 429, "message": "slow down"}}),
    "other": Reply({"object": "list", "data": []}),
    "deep": Reply("{" * 100_000),
}


@pytest.mark.parametrize("reply", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_becomes_an_error(chat_server: ChatServer, served: Served, reply: Reply) -> None:
    """An upstream's success that no run can read is an error of the upstream."""
    chat_server.play(reply)
    answer = served.chat()
    assert answer.status in (422, 429, 500, 502)
    assert len(answer.error["message"]) < 600


@pytest.mark.parametrize("reply", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_passed_on_is_not_judged(chat_server: ChatServer, served: Served, reply: Reply) -> None:
    """A success of the upstream that nobody here has to read goes to the caller byte by byte."""
    chat_server.play(reply)
    answer = served.chat(model="some-model")
    assert answer.status == 200
    assert answer.body == (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(completion_body("x" * 1000), cut=100),
        Reply(completion_body("x"), status=302, headers={"Location": "http://127.0.0.1:9/"}),
        Reply(completion_body("x"), headers={"Content-Encoding": "gzip"}),
        Reply(completion_body("x"), headers={"Content-Encoding": "br"}),
    ],
    ids=["cut", "redirect", "wrong-encoding", "no-encoding"],
)
def test_what_breaks_becomes_an_error(chat_server: ChatServer, served: Served, model: str, reply: Reply) -> None:
    """A response that cannot be handed on whole is an error of the upstream."""
    chat_server.play(reply)
    answer = served.chat(model=model)
    assert answer.status in ((502,) if model != MODEL else (422, 429, 500, 502))
    assert answer.error


@pytest.mark.parametrize("status", [204, 302, 304, 307, 600, 999])
@pytest.mark.parametrize("form", ["an-error", "nothing"])
def test_a_status_that_is_none_of_an_answer_becomes_502(
    chat_server: ChatServer, served: Served, model: str, status: int, form: str
) -> None:
    """What is neither a success with a body nor an error of HTTP is no status that a caller could do anything with."""
    bare = status in (204, 304)  # they have no body
    body: object = {"error": {"message": "hm"}} if form == "an-error" and not bare else ""
    chat_server.play(Reply(body, status=status))
    answer = served.chat(model=model)
    assert (answer.status, answer.error["type"]) == (502, "upstream_error")


def test_a_status_that_is_none_is_not_passed_on(chat_server: ChatServer) -> None:
    """At paths where nothing is read a redirection is the caller's, and a number that is no status is status 502."""
    chat_server.play([Reply("", status=302, headers={"Location": "/x"}), Reply("", status=999)])
    with serving(chat_server.url, more_paths=["GET /files/{id}/content"]) as served:
        assert served.request("GET", "/v1/files/f/content").status == 302
        assert served.request("GET", "/v1/files/f/content").status == 502


def test_an_upstream_that_is_not_there(model: str) -> None:
    """Nobody listens: status 502."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with serving(f"http://127.0.0.1:{held.getsockname()[1]}/v1", guard=AT_ONCE) as served:
            answer = served.chat(model=model)
    assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")


def test_an_upstream_that_is_silent(chat_server: ChatServer, model: str) -> None:
    """An upstream that says nothing for too long: status 504."""
    chat_server.play(Reply(completion_body(GOOD), delay=20))
    limits = Limits(upstream_seconds=0.3)
    with serving(chat_server.url, guard={"retry": RetryPolicy(retries=0, timeout=0.3)}, limits=limits) as served:
        answer = served.chat(model=model)
        assert (answer.status, answer.error["type"]) == (504, "timeout_error")


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_drips(chat_server: ChatServer, model: str, stream: bool) -> None:
    """An upstream that sends a byte now and then does not outlast the time of a request: status 504."""
    chat_server.play(Reply(completion_body(GOOD), drip=0.05))
    with serving(chat_server.url, limits=Limits(seconds=0.2)) as served:
        answer = served.chat(model=model, stream=stream)
        assert (answer.status, answer.error["code"]) == (504, "timeout")
        if model == MODEL:
            assert answer.error["stepguard"]["usage"]["calls"] == 1
            assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("events", [[chunk("he")], []], ids=["no-end", "nothing"])
def test_a_stream_that_ends_too_early_ends_with_an_error(
    chat_server: ChatServer, served: Served, events: list[Any]
) -> None:
    """A stream that ends before its answer raises in the SDK after what was right."""
    chat_server.play(Reply(events=events))
    got: list[str | None] = []
    with served.client() as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises(openai.APIError):
            got.extend(each.choices[0].delta.content for each in stream)
    assert got == ["he"][: len(events)]


def test_a_stream_is_passed_on_as_it_comes(chat_server: ChatServer, served: Served) -> None:
    """Heartbeats, numbers that JSON does not know and names that stand twice in an event stay what they are."""
    events = ["", "{", '{"id": "c", "id": "d", "v": -Infinity}', "9" * 5000, json.dumps(chunk(finish="stop"))]
    chat_server.play(Reply(events=events))
    answer = served.chat(model="m", stream=True)
    assert answer.body == "".join(f"data: {each}\n\n" for each in events).encode()
    assert answer.headers["content-type"] == "text/event-stream"


def test_a_stream_that_takes_too_long_ends_with_an_error(chat_server: ChatServer) -> None:
    """The time of a request bounds its stream, which then ends with an error event."""
    chat_server.play(Reply(events=[chunk("a")] * 1000, pause=0.05))
    with serving(chat_server.url, limits=Limits(seconds=0.4)) as served:
        events = events_of(served.chat(model="m", stream=True).body)
    assert json.loads(events[-1][1])["error"]["code"] == "timeout"
    assert 1 < len(events) < 100


def test_a_stream_without_done_is_whole(chat_server: ChatServer, served: Served) -> None:
    """Some servers leave out [DONE]: a stream that told why it finished is no broken one."""
    chat_server.play(Reply(events=[chunk("a"), chunk(finish="stop")]))
    assert len(events_of(served.chat(model="m", stream=True).body)) == 2


# Callers


@pytest.mark.slow
def test_bodies_of_eight_megabytes(chat_server: ChatServer, model: str) -> None:
    """A large request is passed on or run; one above the limit is refused, and its caller gets to read that."""
    chat_server.play(good_answer if model == MODEL else Reply(completion_body("hello")))
    filling = "a word or two, " * 560_000
    with serving(chat_server.url) as served:
        more = {"inputs": {"x": 12, "y": 7}} if model == MODEL else {}
        answer = served.chat(filling, model=model, **more)
        assert answer.status == 200
    with serving(chat_server.url, limits=Limits(body=2**20)) as served:
        answer = served.chat(filling, model=model)
        assert (answer.status, answer.error["code"]) == (413, "request_too_large")
        with served.client() as client, pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": filling}])
        assert caught.value.status_code == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe{}", b'{"model": NaN}', b"[" * 100_000, b"9" * 5000, b'{"a":' * 9999],
    ids=["empty", "cut", "list", "null", "text", "bytes", "nan", "deep", "digits", "deep-objects"],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_bad_json_is_an_error(chat_server: ChatServer, served: Served, body: bytes, path: str) -> None:
    """A body that is no JSON object is status 400, and nothing is sent."""
    answer = served.request("POST", path, body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")
    assert not chat_server.requests


@pytest.mark.parametrize("messages", [None, "x", [1], [{"role": 1, "content": {}}], [{"content": [None]}], {}])
def test_odd_messages_of_a_guarded_call_are_an_error(chat_server: ChatServer, served: Served, messages: object) -> None:
    """Messages of any other form give no inputs, which is said."""
    answer = served.request("POST", "/v1/chat/completions", {"model": MODEL, "messages": messages})
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
    assert not chat_server.requests


@pytest.mark.parametrize("path", ["chat/completions", "responses", "completions"])
def test_a_compressed_body_is_refused(served: Served, path: str) -> None:
    """A body that would have to be unpacked first is status 415, wherever a procedure might stand in it."""
    answer = served.request("POST", f"/v1/{path}", b"x", {"Content-Encoding": "gzip"})
    assert (answer.status, answer.error["code"]) == (415, "content_encoding")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("completions", b'\xef\xbb\xbf{"model": "m", "prompt": "inputs:\\nt = 1 + 1"}'),
        ("responses/compact", {"model": "m", "input": "inputs:\nt = 1 + 1"}),
        ("conversations", {"items": [{"role": "user", "content": "inputs:\nt = 1 + 1"}]}),
        ("threads/t/messages", {"role": "user", "content": "inputs:\nt = 1 + 1"}),
        ("threads/runs", {"thread": {"messages": [{"role": "user", "content": "inputs:\nt = 1 + 1"}]}}),
    ],
)
def test_a_procedure_at_a_path_that_cannot_be_guarded_is_refused(chat_server: ChatServer, path: str, body: Any) -> None:
    """Whatever could say a procedure to a model is read, with a mark of its encoding or without, and not passed on."""
    added = ["responses/compact", "conversations", "threads/{id}/messages", "threads/runs"]
    with serving(chat_server.url, more_paths=[f"POST /{each}" for each in added]) as served:
        answer = served.request("POST", f"/v1/{path}", body)
    assert (answer.status, answer.error["code"]) == (404, "unknown_path")
    assert not chat_server.requests


def test_a_caller_that_sends_slowly(chat_server: ChatServer) -> None:
    """Who does not send what was announced is told so after a while: status 408."""
    with (
        serving(chat_server.url, limits=Limits(upload_seconds=0.2)) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=20) as caller,
    ):
        caller.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert caller.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_wrong_key_is_told_by_the_upstream(chat_server: ChatServer, served: Served, model: str) -> None:
    """The SDK raises for a key that the upstream refuses, and the key stands in no answer."""
    words = f"Incorrect API key provided: {KEY}."
    chat_server.play(Reply({"error": {"message": words, "code": "invalid_api_key"}}, status=401))
    with served.client() as client, pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(model=model, messages=MESSAGES)
    if model == MODEL:
        assert KEY not in str(caught.value.body)
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_leaves_cancels_its_run(chat_server: ChatServer, stream: bool) -> None:
    """When a caller hangs up its run and the call in flight are cancelled, and what they cost is counted."""
    chat_server.play(Reply(completion_body(GOOD), drip=0.02))
    with serving(chat_server.url, limits=Limits(keep_alive_seconds=0.05)) as served:
        leave(served, {"model": MODEL, "messages": MESSAGES, "stream": stream}, chat_server)
        served.settle('stepguard_runs_total{procedure="sums",status="cancelled"}', 1)
        served.settle('stepguard_requests_total{endpoint="chat",handling="guarded",outcome="gone"}', 1)
        assert served.metrics()["stepguard_in_flight"] == 0
        assert served.metrics()["stepguard_model_calls_total"] == 1
    assert len(chat_server.requests) == 1


def test_a_caller_that_leaves_ends_the_stream_of_the_upstream(chat_server: ChatServer) -> None:
    """When a caller hangs up the upstream is left, too, and stops paying for words that nobody reads."""
    chat_server.play(Reply(events=[chunk("a")] * 100_000, pause=0.01))
    with serving(chat_server.url) as served:
        leave(served, {"model": "m", "messages": MESSAGES, "stream": True}, chat_server)
        served.settle('stepguard_requests_total{endpoint="chat",handling="passed",outcome="gone"}', 1)
    deadline = time.monotonic() + 20
    while True:
        before = chat_server.events
        time.sleep(0.1)
        if chat_server.events == before:
            break
        assert time.monotonic() < deadline


def leave(served: Served, body: object, chat_server: ChatServer) -> None:
    """Send a request, and hang up once it has reached the upstream."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    deadline = time.monotonic() + 20
    try:
        while not chat_server.requests:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        connection.close()


# Many


@pytest.mark.slow
def test_two_hundred_at_once(chat_server: ChatServer) -> None:
    """Two hundred callers with keys and values of their own, guarded and not: nobody gets another's answer or key."""

    def script(received: Received) -> Reply:
        key = received.headers["authorization"].removeprefix("Bearer sk-caller-")
        content = received.body["messages"][-1]["content"]
        if received.body["model"] == "plain":
            return Reply(completion_body(f"{key}/{content}"), headers={"Set-Cookie": f"who={key}"})
        assert f"t2 = {key} + " in content
        reply = good_answer(received)
        return Reply(reply.body, headers={"Set-Cookie": f"who={key}"})

    chat_server.play(script)
    certificates = ssl.create_default_context()  # reading them takes longer than all the rest

    async def main(served: Served) -> None:
        async def one(number: int) -> None:
            http = openai.DefaultAsyncHttpxClient(verify=certificates)
            async with openai.AsyncOpenAI(
                base_url=served.url, api_key=f"sk-caller-{number}", max_retries=0, timeout=60, http_client=http
            ) as client:
                guarded = number % 2 == 0
                messages: Any = [
                    {"role": "user", "content": json.dumps({"x": number, "y": 1}) if guarded else str(number)}
                ]
                answer = await client.chat.completions.create(model=MODEL if guarded else "plain", messages=messages)
                wanted = f"answer: {3 * (number + 1)}" if guarded else f"{number}/{number}"
                assert (answer.choices[0].message.content or "").endswith(wanted)

        await asyncio.gather(*(one(number) for number in range(200)))

    with serving(chat_server.url, limits=Limits(concurrent=40)) as served:
        asyncio.run(main(served))
        assert served.metrics()["stepguard_in_flight"] == 0
    assert len(chat_server.requests) == 200
    assert not any("cookie" in each.headers for each in chat_server.requests)


def test_too_many_at_once_are_told(chat_server: ChatServer) -> None:
    """Who finds no room is told at once or after a while, with status 429 and when to come again."""
    chat_server.play(Reply(completion_body("hello"), delay=20))
    with serving(chat_server.url, limits=Limits(concurrent=1, waiting=1, wait_seconds=0.2, seconds=0.6)) as served:

        async def main() -> list[int]:
            async def one() -> int:
                async with openai.AsyncOpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
                    with pytest.raises(openai.APIStatusError) as caught:
                        await client.chat.completions.create(model="m", messages=MESSAGES)
                    if caught.value.status_code == 429:
                        assert caught.value.response.headers["retry-after"] == "1"
                    return caught.value.status_code

            return await asyncio.gather(*(one() for _ in range(4)))

        assert sorted(asyncio.run(main())) == [429, 429, 429, 504]
        assert served.metrics()["stepguard_waiting"] == 0


@pytest.mark.slow
def test_memory_stays_flat(chat_server: ChatServer) -> None:
    """Requests of every kind leave nothing behind; the full version is in benchmarks/serving.py."""
    replies: list[Callable[[Received], Reply]] = [
        good_answer,
        lambda received: Reply({"error": {"message": "no"}}, status=500),
    ]

    def script(received: Received) -> Reply:
        chat_server.requests.clear()
        return replies["fail" in str(received.body)](received)

    chat_server.play(script)
    with serving(chat_server.url, guard={"retry": RetryPolicy(retries=0)}) as served:

        def ask(times: int) -> None:
            for number in range(times):
                assert served.chat(json.dumps({"x": number % 7, "y": 1}), stream=number % 2 == 0).status == 200
                assert served.chat("fail", model="m").status == 500
                assert served.chat("fail", model="nope@m").status == 404
                assert served.request("POST", "/v1/chat/completions", b"{").status == 400

        ask(30)
        tracemalloc.start()
        try:
            ask(10)
            gc.collect()
            first = tracemalloc.take_snapshot()
            ask(60)
            gc.collect()
            second = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
    ours = [tracemalloc.Filter(True, "*/stepguard/*")]
    grown = second.filter_traces(ours).compare_to(first.filter_traces(ours), "filename")
    assert sum(each.size_diff for each in grown) < 50_000, grown[:5]


# Logs


def test_logs_hold_no_content(chat_server: ChatServer, served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """What the server logs holds neither keys nor prompts, replies, values or addresses, at any level."""
    refusal = Reply({"error": {"message": f"bad {KEY}"}}, status=401)
    chat_server.play(lambda received: refusal if received.body["model"] == "m" else good_answer(received))
    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        assert served.chat('{"x": 12345678, "y": 1}').status == 200
        served.request("POST", f"/v1/chat/completions?key={KEY}", {"model": "m", "messages": MESSAGES})
        served.metrics()  # what stood behind the last response is done once another is answered
    told = [record.getMessage() for record in caplog.records if record.name.startswith("stepguard")]
    assert sum("request_done" in each for each in told) == 2
    assert any("procedure='sums'" in each for each in told)
    assert not any(
        word in each for word in (KEY, "12345678", "12345679", "t2 =", "?key", "some-model") for each in told
    )


def test_logs_do_not_hold_the_name_of_a_procedure_of_a_prompt(
    chat_server: ChatServer, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """A name that stood in a prompt is content: it is in the answer, and not in the logs."""
    chat_server.play(Reply(completion_body(GOOD)))
    prompt = "name: patient John Doe\ninputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3"
    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        answer = served.chat(prompt, model="m")
        served.metrics()
    assert answer.json["stepguard"]["procedure"] == "patient John Doe"
    told = [record.getMessage() for record in caplog.records if record.name.startswith("stepguard")]
    assert any("procedure='(prompt)'" in each for each in told)
    assert not any("John" in each for each in told)
