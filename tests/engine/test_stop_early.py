"""Replies that are stopped at their first wrong step: what is saved, and that nothing else changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Reply
from harness import without_time
from hypothesis import given
from hypothesis import strategies as st
from openai_harness import PROCEDURE, REQUEST, Ask, backend_at
from stopping_harness import answering, chunk, events, stopping
from tables import all_rows

from stepguard import Guard, Procedure, Result, RetryPolicy, Step
from stepguard.backends import Completion
from stepguard.backends.recorded import RecordedBackend
from stepguard.cli import main
from stepguard.core.completions import STOPPED_EARLY
from stepguard.engine.stopping import WrongStepWatch
from stepguard.errors import BackendError, BackendTimeout, ConfigError
from stepguard.replies.formats import EquationFormat
from stepguard.replies.partial import PartialReply, complete_entries
from stepguard.replies.reading import read_reply
from stepguard.testing import ScriptedBackend

LONG = Procedure.parse("inputs: x\na = x + 1\nb = a * 2\nc = b - 3\nd = c + a")
RIGHT = {"a": "4 + 1 = 5", "b": "5 * 2 = 10", "c": "10 - 3 = 7", "d": "7 + 5 = 12"}
WRONG = {**RIGHT, "b": "5 * 2 = 11"}


def first_wrong(asked: Sequence[str]) -> dict[str, str]:
    """Wrong at b as long as several steps are asked."""
    return {step: (WRONG if len(asked) > 3 else RIGHT)[step] for step in asked}


# Over the wire


def test_a_stream_is_read_as_its_body_would_be(ask: Ask, chat_server: ChatServer) -> None:
    """A right reply comes whole, with the counts that the server gives at the end."""
    text = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'
    chat_server.play(Reply(events=events(text)))
    request = stopping(replace(REQUEST, values={"x": 12, "y": 7}))
    completion = ask(backend_at(chat_server), request)
    assert (completion.text, completion.finish_reason, completion.model) == (text, "stop", "served")
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (70, 30)
    sent = chat_server.requests[0].body
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


def test_a_wrong_step_ends_the_reply(ask: Ask, chat_server: ChatServer) -> None:
    """The connection is closed at once, and the server writes no more than what was on its way."""
    text = '{"t2": "12 + 7 = 18", "t1": "' + "9" * 40_000 + '"}'
    chat_server.play(Reply(events=events(text), pause=0.002))
    completion = ask(backend_at(chat_server), stopping(replace(REQUEST, values={"x": 12, "y": 7})))
    assert completion.finish_reason == STOPPED_EARLY
    assert completion.text is not None
    assert completion.text.startswith('{"t2": "12 + 7 = 18"')
    assert len(completion.text) < 60
    time.sleep(0.2)
    assert chat_server.events < 1000  # of 10,010


def test_a_stopped_reply_is_counted(ask: Ask, chat_server: ChatServer) -> None:
    """Its tokens are estimated where nobody counts them, and taken from the chunks where the server does."""
    text = '{"t2": "12 + 7 = 18", "t1": "1"}'
    request = stopping(replace(REQUEST, values={"x": 12, "y": 7}))
    chat_server.play(Reply(events=events(text)))
    usage = ask(backend_at(chat_server), request).usage
    assert (usage.calls, usage.input_tokens) == (1, -(-sum(len(each.content) for each in request.messages) // 4))
    assert usage.output_tokens == 5  # pieces
    timed = [{**each, "timings": {"prompt_n": 50, "cache_n": 20, "predicted_n": at}} for at, each in _dicts(text)]
    chat_server.play(Reply(events=timed))
    usage = ask(backend_at(chat_server), request).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (70, 20, 5)
    told = [{**each, "usage": {"prompt_tokens": 33, "completion_tokens": at}} for at, each in _dicts(text)]
    chat_server.play(Reply(events=told))
    usage = ask(backend_at(chat_server), request).usage
    assert (usage.input_tokens, usage.output_tokens) == (33, 5)


def _dicts(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for at, each in enumerate(events(text)):
        if isinstance(each, dict):
            yield at, each


BEGUN = chunk('{"t2": ')


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize(
    ("broken", "told", "requests"),
    [
        (Reply(events=[BEGUN], cut=0), "", 2),
        (Reply(events=[BEGUN]), "the stream ended before the reply did", 2),
        (Reply(events=[BEGUN, "{"]), "", 2),
        (Reply(events=[BEGUN, {"error": {"message": "overloaded", "code": 503}}]), "HTTP 503: overloaded", 2),
        (Reply(events=[BEGUN, {"error": {"message": "overloaded", "code": "429"}}]), "HTTP 429: overloaded", 2),
        (Reply(events=[BEGUN, {"error": {"message": "overloaded", "type": "server_error"}}]), "overloaded", 2),
        (Reply(events=[BEGUN, {"error": {"message": "no", "code": 401}}]), "HTTP 401: no", 1),
        (Reply(events=[BEGUN, {"error": {"message": "pay", "code": "insufficient_quota"}}]), "pay", 1),
    ],
)
def test_a_stream_that_breaks_is_asked_for_again(
    chat_server: ChatServer, driver: str, broken: Reply, told: str, requests: int
) -> None:
    """What breaks a stream is met as the same is without one: it is asked for again, where that can help."""
    right = Reply(events=events('{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'))
    chat_server.play([broken, right])
    guard = Guard(backend_at(chat_server), stop_early=True, retry=RetryPolicy(first_wait=0.01))
    inputs = {"x": 12, "y": 7}
    result = guard.run(PROCEDURE, inputs) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, inputs))
    assert (result.status, len(chat_server.requests)) == ("verified" if requests == 2 else "failed", requests)
    assert told in (result.attempts[0].error or "no error")


def test_the_arguments_of_a_tool_call_are_watched(ask: Ask, chat_server: ChatServer) -> None:
    """In mode tools the answer stands in the call."""
    backend = backend_at(chat_server, mode="tools")
    request = stopping(replace(REQUEST, values={"x": 12, "y": 7}))
    for value, finish in (("19", "tool_calls"), ("18", STOPPED_EARLY)):
        text = f'{{"t2": "12 + 7 = {value}", "t1": "19 * 3 = 57"}}'
        chat_server.play(Reply(events=events(text, finish="tool_calls", tool=True)))
        completion = ask(backend, request)
        assert completion.finish_reason == finish
        assert completion.tool_calls[0].name == "Response"
        assert (completion.tool_calls[0].arguments == text) == (value == "19")


@pytest.mark.parametrize("body", [events('{"t2": "12 +', finish=None), [], ["[DONE]"]])
def test_a_stream_that_breaks_off_is_no_reply(ask: Ask, chat_server: ChatServer, body: list[object]) -> None:
    """Without a finish reason nothing says that it is whole: the transport may try again."""
    chat_server.play(Reply(events=body))
    with pytest.raises(BackendError, match="ended before") as failed:
        ask(backend_at(chat_server), stopping())
    assert failed.value.retryable


def test_an_error_in_a_stream_is_one_of_ours(ask: Ask, chat_server: ChatServer) -> None:
    """Servers report trouble in the middle of a stream as an event."""
    chat_server.play(Reply(events=[*events('{"t2"', finish=None), {"error": {"message": "overloaded", "code": 500}}]))
    with pytest.raises(BackendError, match="overloaded"):
        ask(backend_at(chat_server), stopping())


def test_a_stream_is_bounded_by_the_time_out(ask: Ask, chat_server: ChatServer) -> None:
    """However steadily its pieces come."""
    chat_server.play(Reply(events=events("x" * 4000), pause=0.02))
    with pytest.raises(BackendTimeout):
        ask(backend_at(chat_server), replace(stopping(), timeout=0.3))


# Through the guard


@pytest.mark.parametrize("mode", ["run", "arun"])
def test_a_run_is_the_same_and_costs_less(chat_server: ChatServer, mode: str) -> None:
    """The accepted steps, the deviations and the values are those of a run that reads whole replies."""
    results = {}
    for stop in (False, True):
        chat_server.play(answering(first_wrong))
        guard = Guard(backend_at(chat_server), segment=4, stop_early=stop, seed=1)
        results[stop] = guard.run(LONG, {"x": 4}) if mode == "run" else _arun(guard)
    whole, stopped = results[False], results[True]
    assert whole.status == stopped.status == "verified"
    assert whole.values == stopped.values
    assert _story(whole) == _story(stopped)
    assert stopped.attempts[0].finish_reason == STOPPED_EARLY
    assert [each.kind for each in stopped.attempts[0].deviations] == ["wrong_value"]
    assert len(stopped.attempts[0].text or "") < len(whole.attempts[0].text or "")
    assert stopped.usage.output_tokens < whole.usage.output_tokens


def _arun(guard: Guard) -> Result:
    import asyncio

    return asyncio.run(guard.arun(LONG, {"x": 4}))


def _story(result: Result) -> list[object]:
    return [
        [(record.value, record.tries, record.assistance, record.deviations) for record in result.steps],
        [(each.steps, each.rung, each.outcome, each.committed) for each in result.attempts],
    ]


def test_single_steps_and_observed_runs_are_not_streamed(chat_server: ChatServer) -> None:
    """There is nothing to save at the only step, and an observing run wants it all."""
    chat_server.play(answering(first_wrong))
    Guard(backend_at(chat_server), segment=1, stop_early=True).run(LONG, {"x": 4})
    Guard(backend_at(chat_server), segment=4, stop_early=True, observe=True).run(LONG, {"x": 4})
    assert not any(each.body.get("stream") for each in chat_server.requests)


def test_a_backend_that_cannot_stop_is_refused() -> None:
    """An option that would do nothing is refused."""
    with pytest.raises(ConfigError) as refused:
        Guard(ScriptedBackend(RIGHT), stop_early=True)
    assert refused.value.option == "stop_early"


@pytest.mark.parametrize("arm", ["guard(stop_early=true)", "guard(stop_early=true, without=operands)"])
def test_the_benchmark_stops_replies_of_an_endpoint(chat_server: ChatServer, tmp_path: Path, arm: str) -> None:
    """Its arm with stop_early streams, through all that stands between it and the model, and keeps what came."""
    chat_server.play(answering(lambda asked: dict.fromkeys(asked, "1 + 1 = 3")))
    given = ["--model", "m", "--base-url", chat_server.url, "--out", str(tmp_path), "--json"]
    full = ["--prompts", "full"]  # what can be left out are decisions of those
    assert main(["bench", *given, "--lengths", "8", "-n", "1", "--retries", "0", "--arms", arm, *full]) == 0
    assert [each.body.get("stream") for each in chat_server.requests] == [True]
    outcome = json.loads((tmp_path / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert outcome["texts"][0].count("=") < 8


def test_a_recording_keeps_stopped_replies_apart(chat_server: ChatServer, tmp_path: Path) -> None:
    """A run that wants whole replies is never given a stopped one; replays are exact."""
    chat_server.play(answering(first_wrong))
    with RecordedBackend(tmp_path / "replies.sqlite", backend_at(chat_server)) as backend:
        stopped = Guard(backend, segment=4, stop_early=True, seed=1).run(LONG, {"x": 4})
        observed = Guard(backend, segment=4, observe=True, seed=1).run(LONG, {"x": 4})
        assert [each.finish_reason for each in observed.attempts] == ["stop"]
    with RecordedBackend(tmp_path / "replies.sqlite") as replay:
        again = Guard(replay, segment=4, stop_early=True, seed=1).run(LONG, {"x": 4})
    assert _story(without_time(again)) == _story(without_time(stopped))


# What is read of a reply while it is written


@all_rows(
    "text, keys",
    [
        ("", []),
        ('{"a": "1', []),
        ('{"a": "1"', ["a"]),
        ('{"a": "1", ', ["a"]),
        ('{"a": 1', []),
        ('{"a": 1 ', []),
        ('{"a": 1,', ["a"]),
        ('{"a": true', []),
        ('{"a": {"work": "x", "value": "1"}', ["a"]),
        ('{"a": {"work": "x", "value": "1"', []),
        (' \n```json\n{"a": "1", "b": "2"}\n```', ["a", "b"]),
        ('{"a": "1"} {"b": "2"}', ["a"]),
        ('Here it is: {"a": "1"}', []),
        ('<think>{"a": "1"}</think>', []),
        ('["a", {"a": "1"}]', []),
        ('{"a": "1" "b": "2"', ["a"]),
        ('{"a": "1", 3: "2", "c": "3"', ["a"]),
        ('{"a": "\\ud83d\\ude00", "b": "2"', ["a", "b"]),
        ('{"a": "x' + "y" * 20_000 + '"', []),
    ],
)
def test_only_complete_entries_count(text: str, keys: list[str]) -> None:
    """An entry counts when nothing behind it can change it, and only at the beginning of the reply."""
    reply = PartialReply()
    found = [key for at in range(0, len(text) + 7, 7) for key, _ in reply.entries(text[:at])]
    assert found == keys
    if len(text) < 10_000:
        assert list(complete_entries(text)[0]) == keys


ENTRY = st.sampled_from(
    ["5", "6", "7", "10", "12", "4 + 1 = 5", "5 * 2 = 10", "10 - 3 = 7", "7 + 5 = 12", "5 * 2 = 11", ""]
)
KEYS = st.sampled_from(["a", "b", "c", "d", "e", "answer"])


@given(st.lists(st.tuples(KEYS, ENTRY | st.integers(0, 20)), max_size=6), st.data())
def test_nothing_is_stopped_that_would_be_accepted(pairs: list[tuple[str, object]], data: st.DataObject) -> None:
    """Where a reply is stopped, the whole of it would be judged to fail at the same step, and so is its beginning."""
    inside = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs)
    text = f"{{{inside}}}"
    steps = tuple(LONG.steps)
    wrong = WrongStepWatch(steps, {"x": 4}, EquationFormat())
    size = data.draw(st.integers(1, 9))
    at = next((end for end in range(1, len(text) + size, size) if wrong(text[:end])), None)
    if at is None:
        return
    beginning = _judged(Completion(text[:at], STOPPED_EARLY), steps)
    whole = _judged(Completion(text), steps)
    assert beginning is not None
    if whole is not None and not (len({key for key, _ in pairs}) < len(pairs)):
        assert beginning == whole


def _judged(completion: Completion, steps: Sequence[Step]) -> str | None:
    """The step that is to blame for a reply, None where none is."""
    from stepguard.checks import judge_claims

    reading = read_reply(completion, steps, EquationFormat())
    judged = judge_claims(steps[: len(reading.claims)], reading.claims, {"x": 4})
    for each in judged:
        if each.verdict is not None and each.verdict.outcome != "pass":
            return each.claim.step
    return None if reading.failed is None else reading.failed.step


def test_a_broken_reply_format_does_not_stop_a_reply() -> None:
    """What it does wrong is told when the reply has ended."""

    class Broken(EquationFormat):
        def claim(self, step: Step, field: object) -> Any:
            raise RuntimeError("odd")

    wrong = WrongStepWatch(tuple(PROCEDURE.steps), {"x": 12, "y": 7}, Broken())
    assert not wrong('{"t2": "12 + 7 = 18", ')
