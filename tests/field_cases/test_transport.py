"""Endpoints of the field, over real sockets: what they send for a reply, what it costs, when to ask again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest
from conftest import ChatServer, Reply, completion_body
from harness import DRIVERS
from tables import all_rows

from stepguard import Budget, Guard, Procedure, Result, RetryPolicy
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.completion_streams import CompletionStream
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.retry_delays import asked_delay
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, RateLimited
from stepguard.testing import ScriptedBackend

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
INPUTS = {"x": 6, "y": 7}
GOOD = '{"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}'
AT_ONCE = RetryPolicy(first_wait=0.0)
USED = {"prompt_tokens": 500, "completion_tokens": 900, "total_tokens": 1400}


def guard_at(server: ChatServer, *, mode: Any = None, **options: Any) -> Guard:
    backend = OpenAIBackend("m", base_url=server.url, api_key="k", mode=mode)
    return Guard(backend, **{"retry": AT_ONCE, **options})


def run(guard: Guard, driver: str = "run") -> Result:
    return guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))


def body(*, finish: object = "stop", usage: object = USED, error: object = None, **message: object) -> dict[str, Any]:
    made = completion_body(**message)
    made["choices"][0]["finish_reason"] = finish
    made["usage"] = usage
    if error is not None:
        made["choices"][0]["error"] = error
    return made


def pieces(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True) -> list[object]:
    """The events of a stream."""
    chunks: list[object] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish is not None:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*chunks, {"choices": [], "usage": USED}, *(["[DONE]"] if done else [])]


def call(arguments: object, name: str = "Steps", index: int = 0) -> dict[str, Any]:
    return {"index": index, "id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


# R01: paid is paid


@DRIVERS
@pytest.mark.parametrize(
    "reply",
    [Reply({"usage": USED}), Reply({**body(), "choices": []}), Reply(body(content=5)), Reply(body(finish="error"))],
    ids=["R01-no-choices", "R01-empty-choices", "R01-unreadable-content", "R01-broken-off"],
)
def test_what_cannot_be_read_was_paid_for(chat_server: ChatServer, driver: str, reply: Reply) -> None:
    """The tokens of a reply that nobody can read count, and a limit on them holds."""
    chat_server.play(reply)
    result = run(guard_at(chat_server, budget=Budget(tokens=1000)), driver)
    assert (result.usage, len(chat_server.requests)) == (Usage(1, 500, 900), 1)
    assert result.attempts[0].usage == result.usage


@DRIVERS
@pytest.mark.parametrize(
    "reply",
    [
        Reply(events=pieces({"content": GOOD * 9}, finish=None, done=False)[:1], cut=1),
        Reply(events=[*pieces({"content": GOOD * 9})[:1], {"error": {"code": 502, "message": "bad gateway"}}]),
        Reply(events=pieces({"content": GOOD * 9})[:1], pause=9.0),
    ],
    ids=["R01-cut-stream", "R01-error-in-stream", "R01-stream-too-slow"],
)
def test_a_stream_that_breaks_was_paid_for(chat_server: ChatServer, driver: str, reply: Reply) -> None:
    """The prompt and what came of the reply are estimated where the server did not get to count them."""
    chat_server.play([Reply(events=pieces({"content": GOOD})), reply])
    warm = run(guard_at(chat_server, stop_early=True), driver)
    assert warm.usage == Usage(1, 500, 900)
    retry = RetryPolicy(retries=0, timeout=2.0)
    result = run(guard_at(chat_server, stop_early=True, retry=retry), driver)
    assert result.status == "failed"
    assert result.usage.input_tokens > 50
    assert result.usage.output_tokens >= 9 * len(GOOD) // 4


@DRIVERS
def test_a_call_that_is_given_up_costs_its_prompt(chat_server: ChatServer, driver: str) -> None:
    """R01: the endpoint goes on with a request that was given up, and charges for it."""
    chat_server.play([Reply(body(content=GOOD)), Reply(body(content=GOOD), delay=9.0)])
    run(guard_at(chat_server), driver)
    result = run(guard_at(chat_server, retry=RetryPolicy(retries=0, timeout=0.2)), driver)
    assert (result.status, result.usage.calls, result.usage.output_tokens) == ("failed", 1, 0)
    assert result.usage.input_tokens > 50


def test_a_cancelled_call_costs_its_prompt() -> None:
    """R01: also where the caller has ended the run."""
    guard = Guard(ScriptedBackend(GOOD))
    running = guard.start(PROCEDURE, INPUTS)
    running.actions()
    running.cancel()
    assert running.result().usage.input_tokens > 50


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_a_refusal_costs_nothing(chat_server: ChatServer, status: int) -> None:
    """R01, the other side: an endpoint that refuses a request does not charge for it."""
    chat_server.play(Reply({"error": {"message": "no"}}, status))
    result = run(guard_at(chat_server, retry=RetryPolicy(retries=0)))
    assert result.usage == Usage(calls=1)


@all_rows(
    "usage",
    [
        *({"prompt_tokens": "500", "completion_tokens": "900"}, {"prompt_tokens": 500.0, "completion_tokens": 900.0}),
        {"prompt_tokens": "0,500", "input_tokens": 500, "completion_tokens": 1e30, "output_tokens": "900"},
        *([USED], {"input_tokens": 500, "output_tokens": 900}, {"completion_tokens": 900, "total_tokens": 1400}),
    ],
)
def test_tokens_are_counted_in_whatever_form_they_are_sent(usage: object) -> None:
    """R01: counts as text, with decimals and in a list are counts; zeros behind them are none."""
    counted = read_completion(body(content=GOOD, usage=usage), str, asked=40).usage
    assert (counted.input_tokens, counted.output_tokens) == (500, 900)
    stream = CompletionStream(_request())
    for each in (
        *pieces({"content": GOOD})[:2],
        {"choices": [], "usage": usage},
        {"choices": [], "usage": {"total": 0}},
    ):
        stream.take(each)
    assert stream.usage() == Usage(1, 500, 900)


# R02, R03, R09: one reader for plain and streamed replies

TOOL_STREAMS: list[tuple[str, Sequence[dict[str, Any]]]] = [
    ("R02-name-in-every-piece", [{"tool_calls": [call(part)]} for part in (GOOD[:9], GOOD[9:30], GOOD[30:])]),
    ("R02-name-that-grows", [{"tool_calls": [call(GOOD[:9], "St")]}, {"tool_calls": [call(GOOD[9:], "Steps")]}]),
    ("R02-name-in-pieces", [{"tool_calls": [call("", "St")]}, {"tool_calls": [call(GOOD, "eps")]}]),
    ("R03-arguments-as-object", [{"tool_calls": [call(json.loads(GOOD))]}]),
    ("R03-one-call-not-in-a-list", [{"tool_calls": call(GOOD)}]),
    (
        "R09-legacy-call",
        [{"function_call": {"name": "Steps", "arguments": GOOD[:9]}}, {"function_call": {"arguments": GOOD[9:]}}],
    ),
]


@DRIVERS
@pytest.mark.parametrize(("deltas"), [case[1] for case in TOOL_STREAMS], ids=[case[0] for case in TOOL_STREAMS])
def test_tool_calls_of_a_stream(chat_server: ChatServer, driver: str, deltas: Sequence[dict[str, Any]]) -> None:
    """A tool call is read however its pieces are cut and named."""
    chat_server.play(Reply(events=pieces(*deltas, finish="tool_calls")))
    result = run(guard_at(chat_server, mode="tools", stop_early=True), driver)
    assert (result.status, result.usage) == ("verified", Usage(1, 500, 900)), result.problem


MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("text", {"content": GOOD}),
    ("parts", {"content": [{"type": "thinking", "thinking": "no"}, {"type": "text", "text": GOOD}]}),
    ("content-as-object", {"content": json.loads(GOOD)}),
    ("tool-call", {"content": None, "tool_calls": [call(GOOD)]}),
    ("arguments-as-object", {"content": None, "tool_calls": [call(json.loads(GOOD))]}),
    ("flat-call", {"content": None, "tool_calls": [{"name": "Steps", "arguments": GOOD}]}),
    ("custom-call", {"content": None, "tool_calls": [{"type": "custom", "custom": {"name": "Steps", "input": GOOD}}]}),
    ("legacy-call", {"content": None, "function_call": {"name": "Steps", "arguments": GOOD}}),
    ("reasoning", {"content": GOOD, "reasoning": "so"}),
]


WAYS = ["plain", "body-to-a-stream", "stream", "stream-to-a-plain", "last-piece-in-full"]


@pytest.mark.parametrize("number", range(len(MESSAGES)), ids=[f"R03-{each[0]}" for each in MESSAGES])
@pytest.mark.parametrize("way", WAYS)
def test_a_reply_is_the_same_whichever_way_it_comes(chat_server: ChatServer, number: int, way: str) -> None:
    """One body, sent as it is and as a stream, asked for as the one and as the other, by either driver in turn."""
    message, driver = MESSAGES[number][1], ("run", "arun")[(number + WAYS.index(way)) % 2]
    whole = body(**message)
    streamed = pieces(message)
    if way == "last-piece-in-full":
        streamed = [
            {"choices": [{"index": 0, "message": whole["choices"][0]["message"], "finish_reason": "stop"}]},
            *streamed[2:],
        ]
    reply = Reply(whole) if way in ("plain", "body-to-a-stream") else Reply(events=streamed)
    chat_server.play(reply)
    stop_early = way in ("body-to-a-stream", "stream", "last-piece-in-full")
    result = run(guard_at(chat_server, stop_early=stop_early), driver)
    assert chat_server.requests[0].body.get("stream", False) is stop_early
    assert (result.status, result.usage) == ("verified", Usage(1, 500, 900)), result.problem


@DRIVERS
@pytest.mark.parametrize(
    "noise",
    ["", " ", "\n: ping\n\n", "\n: keep-alive\nevent: ping\n\n"],
    ids=["R03-empty", "R03-blank", "R03-comment", "R03-ping"],
)
def test_heartbeats_are_skipped(chat_server: ChatServer, driver: str, noise: str) -> None:
    """Empty data and comments between the pieces of a stream keep the connection alive and say nothing."""
    events = pieces({"content": GOOD[:20]}, {"content": GOOD[20:]})
    chat_server.play(Reply(events=[noise, events[0], noise, noise, *events[1:]]))
    result = run(guard_at(chat_server, stop_early=True), driver)
    assert (result.status, result.usage.calls) == ("verified", 1), result.problem


OTHER = GOOD.replace("42", "41")


@DRIVERS
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    ("content", "older", "status"),
    [(GOOD, OTHER, "abstained"), (OTHER, GOOD, "abstained"), (GOOD, GOOD, "verified"), (None, GOOD, "verified")],
    ids=["R09-conflict", "R09-conflict-the-other-way", "R09-the-same", "R09-alone"],
)
def test_a_legacy_call_beside_the_content(
    chat_server: ChatServer, driver: str, streamed: bool, content: str | None, older: str, status: str
) -> None:
    """Neither goes before the other: where they differ, none is taken."""
    message = {"content": content, "function_call": {"name": "Steps", "arguments": older}}
    chat_server.play(Reply(events=pieces(message)) if streamed else Reply(body(**message)))
    assert run(guard_at(chat_server, stop_early=streamed, repair=0), driver).status == status


@all_rows(
    "choices, text",
    [
        ([{"index": "1", "message": {"content": OTHER}}, {"index": "0", "message": {"content": GOOD}}], GOOD),
        ([{"index": 1, "message": {"content": GOOD}}], GOOD),
        ([{"index": 0, "message": {"content": [{"text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]}]}}], GOOD),
        ([{"index": 0, "message": {"content": GOOD, "refusal": {"reason": "policy"}}}], None),
    ],
)
def test_choices_and_parts_in_odd_shapes(choices: list[dict[str, Any]], text: str | None) -> None:
    """R03: the first choice is told by its number however that is written; a refusal is one in whatever form."""
    completion = read_completion({"choices": choices, "usage": USED}, str, asked=40)
    assert completion.text == GOOD
    assert (completion.refusal is None) is (text is not None)


@pytest.mark.parametrize("reason", ["length", "content_filter", "error", "MAX_TOKENS"])
def test_a_bad_reason_is_not_made_good_by_a_later_piece(reason: str) -> None:
    """R04: the piece that counts the tokens often says "stop" once more."""
    stream = CompletionStream(_request())
    events = pieces({"content": GOOD}, finish=reason)
    for each in (*events[:2], {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USED}):
        stream.take(each)
    assert stream.body()["choices"][0]["finish_reason"] == reason


def test_a_server_that_goes_on_beyond_the_limit_is_left() -> None:
    """R16: some servers do not know the parameter that bounds a reply, and would be paid for what rambles."""
    stream = CompletionStream(replace(_request(), max_tokens=10, stop=lambda text: False))
    taken = 0
    while not stream.take({"choices": [{"index": 0, "delta": {"content": "1 + 1 = 2, "}}]}):
        taken += 1
        assert taken < 20
    assert stream.body()["choices"][0]["finish_reason"] == "length"


def test_a_reply_in_one_piece_of_a_stream_is_estimated_whole() -> None:
    """R01: a server that counts no tokens may send its message at the end instead of in pieces."""
    stream = CompletionStream(_request())
    stream.take({"choices": [{"index": 0, "message": {"content": GOOD * 9}, "finish_reason": "stop"}]})
    assert stream.usage().output_tokens >= len(GOOD)


@DRIVERS
@pytest.mark.parametrize(
    "reply",
    [
        Reply(events=[{"choices": [{"index": 0, "text": GOOD, "finish_reason": "stop"}], "usage": USED}, "[DONE]"]),
        Reply({"choices": [{"index": 0, "message": [{"content": GOOD}], "finish_reason": "stop"}], "usage": USED}),
    ],
    ids=["R04-another-protocol", "R04-message-as-list"],
)
def test_a_body_without_a_message_is_the_servers_fault(chat_server: ChatServer, driver: str, reply: Reply) -> None:
    """It is not held against the model as an empty reply, and what it cost is counted."""
    chat_server.play(reply)
    retry = RetryPolicy(retries=0)
    result = run(guard_at(chat_server, stop_early=reply.events is not None, retry=retry), driver)
    assert (result.status, result.usage, result.attempts[0].deviations) == ("failed", Usage(1, 500, 900), ())


# R04, R06: a failure of the server is not the model's

FAILURES: list[tuple[str, dict[str, Any]]] = [
    ("R04-error-in-choice", body(content=GOOD[:20], error={"code": 502, "message": "upstream"}, finish=None)),
    ("R04-finish-error", body(content=GOOD[:20], finish="error")),
    ("R04-finish-abort", body(content=GOOD, finish="abort")),
    ("R04-out-of-resources", body(content="", finish="insufficient_system_resource")),
    ("R04-error-in-body", {**body(content=GOOD[:20]), "error": {"message": "overloaded", "type": "server_error"}}),
    ("R04-error-as-text", {"error": "overloaded"}),
]


@DRIVERS
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("failed", [each[1] for each in FAILURES], ids=[each[0] for each in FAILURES])
def test_a_failure_with_status_200_is_tried_again(
    chat_server: ChatServer, driver: str, streamed: bool, failed: dict[str, Any]
) -> None:
    """It is waited for and tried again, and no deviation of the model."""
    first = Reply(failed)
    if streamed:
        choice: dict[str, Any] = dict(failed.get("choices", [{"message": {}, "finish_reason": None}])[0])
        choice["delta"] = choice.pop("message")
        first = Reply(events=[{"choices": [choice], "error": failed.get("error")}])
    chat_server.play([first, Reply(events=pieces({"content": GOOD})) if streamed else Reply(body(content=GOOD))])
    result = run(guard_at(chat_server, stop_early=streamed), driver)
    assert (result.status, len(chat_server.requests)) == ("verified", 2)
    assert [(attempt.outcome, attempt.deviations) for attempt in result.attempts] == [("error", ()), ("accepted", ())]


@pytest.mark.parametrize("error", [None, {}, "", {"message": "", "code": 0}, {"code": None, "message": None}])
def test_an_error_that_says_nothing_is_none(chat_server: ChatServer, error: object) -> None:
    """R04, the other side: some servers send the field with every reply."""
    chat_server.play(Reply({**body(content=GOOD), "error": error}))
    assert run(guard_at(chat_server)).status == "verified"


@DRIVERS
def test_a_stream_without_a_finish_reason_is_named_once(chat_server: ChatServer, driver: str) -> None:
    """R06: a server that never says why its reply ended would never say it: one call, and what is to be mended."""
    chat_server.play(Reply(events=pieces({"content": GOOD}, finish=None)))
    result = run(guard_at(chat_server, stop_early=True), driver)
    assert (result.status, result.usage, result.attempts[0].deviations) == ("failed", Usage(1, 500, 900), ())
    assert "finish_reason" in str(result.error)


# R05: how long to wait

DELAYS: list[tuple[dict[str, str], object, str, float | None]] = [
    ({}, {"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}]}}, "", 3.0),
    ({}, [{"error": {"code": 429, "details": [{"retryDelay": "34.074824224s"}]}}], "", 34.074824224),
    ({}, {"error": {"details": [{"retryDelay": {"seconds": 3, "nanos": 500_000_000}}]}}, "", 3.5),
    ({}, {"retry_after": 7}, "", 7.0),
    ({}, {"error": {"metadata": {"retry_after_ms": 1500}}}, "", 1.5),
    ({}, {"parameters": {"retry-after-seconds": "4"}}, "", 4.0),
    ({}, None, "Rate limit reached. Please try again in 1.2s. Visit", 1.2),
    ({}, None, "Please try again in 6m0s.", 360.0),
    ({}, None, "Please try again in 120ms.", 0.12),
    ({}, None, "try again in 1h2m3.5s", 3723.5),
    ({}, None, "Please retry after 20 seconds.", 20.0),
    ({}, None, "Please retry in 34.07s.", 34.07),
    ({}, None, "Too many requests, please wait 5 seconds", 5.0),
    ({}, None, "limit resets in 2 minutes and 5 seconds", 125.0),
    ({"retry-after-ms": "1500"}, {"retryDelay": "9s"}, "try again in 8s", 1.5),
    ({"retry-after": "2m30s"}, None, "", 150.0),
    ({"retry-after": "PT1M30S"}, None, "", 90.0),
    ({}, {"retry_after": "P1DT0.5S"}, "", 86400.5),
    ({}, None, "Please retry in 1,200 ms", 1.2),
    ({"retry-after": "P"}, None, "", None),
    ({}, {"error": {"metadata": {"raw": '{"error": {"details": [{"retryDelay": "3s"}]}}'}}}, "", 3.0),
    *(({}, {name: 3}, "", 3.0) for name in ("retry_after_s", "waitTime", "estimated_time", "cooldown_seconds")),
    ({}, None, "Retry-After: 5", 5.0),
    ({"x-ratelimit-reset-requests": "2s", "x-ratelimit-remaining-requests": "0"}, None, "", 2.0),
    ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "12"}, None, "", None),
    ({"ratelimit": '"default";r=0;t=7'}, None, "", 7.0),
    ({}, {"retry": {"after": 3}}, "", None),
    ({"retry-after": "3, 5"}, None, "", 5.0),
    ({}, None, "try again in 3 attempts", None),
    ({}, None, "the limit is 30 requests in 60s", None),
    ({}, None, "You used 3 s of audio; try again later", None),
    ({}, {"retryDelay": {"seconds": 10**400}}, "", None),
    ({}, {"error": {"retry_after": "Mon, 01 Jan 299999999999999024 00:00:00 GMT"}}, "", None),
    ({}, {"error": {"quota": {"reset_at": "2999-12-31T00:00:00Z"}}}, "", None),  # an account begins anew, no limit
    ({}, {"retryDelay": "soon", "retryable": True, "retries": 3}, "", None),
    ({}, {"retry_after": float("nan")}, "", None),
    ({"retry-after": "nan"}, None, "", None),
]


@all_rows("headers, given, words, seconds", DELAYS)
def test_the_wait_that_is_asked_for(headers: dict[str, str], given: object, words: str, seconds: float | None) -> None:
    """R05: it is read from the headers, from any place of the body, and from the words of the error; never guessed."""
    assert asked_delay(headers, given, words) == pytest.approx(seconds)


@all_rows("seconds", [30.0, 3000.0])
def test_a_moment_to_wait_for_is_read_in_every_place_and_form(seconds: float) -> None:
    """R05: dates and seconds since 1970, in headers, in the body and in headers that a gateway quotes in it."""
    then = time.time() + seconds
    for moment in (formatdate(then, usegmt=True), datetime.fromtimestamp(then, UTC).isoformat(), str(int(then))):
        quoted = {"X-RateLimit-Reset": moment, "X-RateLimit-Remaining": "0"}
        places: list[tuple[dict[str, str], object]] = [({"retry-after": moment}, None), ({}, {"reset_at": moment})]
        places += [({name.lower(): text for name, text in quoted.items()}, None), ({}, {"error": {"headers": quoted}})]
        for headers, given in places:
            assert asked_delay(headers, given) == pytest.approx(seconds, abs=20)
    assert asked_delay({}, {"resets_at": int(then * 1000)}) == pytest.approx(seconds, abs=20)


@DRIVERS
@pytest.mark.parametrize(
    "refusal",
    [
        Reply({"error": {"message": "slow", "details": [{"retryDelay": "3s"}]}}, 429),
        Reply([{"error": {"message": "slow", "details": [{"retryDelay": "3s"}]}}], 429),
        Reply({"error": {"message": "Please try again in 3s"}}, 429),
        Reply({"error": {"message": "overloaded", "retry_after": 3}}, 503),
        Reply({"error": {"code": 429, "message": "try again in 3s"}}),
        Reply({"error": {"message": "slow"}}, 529, {"Retry-After": "3"}),
        Reply({"error": "slow", "retry_after": 3}, 429),
        Reply({"error": {"message": "slow"}, "retry_after_ms": 3000}, 429),
    ],
    ids=[
        *("R05-google", "R05-google-list", "R05-words", "R05-503", "R05-status-200", "R05-529"),
        *("R05-beside-words", "R05-beside-an-error"),
    ],
)
def test_a_wait_that_the_budget_does_not_leave_ends_the_run(
    chat_server: ChatServer, driver: str, refusal: Reply
) -> None:
    """R05: a run with less time left than the endpoint asks for does not wait for nothing."""
    chat_server.play(refusal)
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="of somebody else")
    with pytest.raises(RateLimited) as limited:
        backend.complete(_request())
    assert limited.value.retry_after == 3.0
    result = run(guard_at(chat_server, budget=Budget(seconds=2.9)), driver)
    assert (result.status, len(chat_server.requests)) == ("exhausted", 2)
    assert isinstance(result.error, BackendError)


def _request() -> Any:
    running = Guard(ScriptedBackend(GOOD)).start(PROCEDURE, INPUTS)
    (asked,) = running.actions()
    return replace(asked.request, timeout=20)  # type: ignore[union-attr]
