"""A guard that stops replies without being told to: at servers of one's own, once the model is known to slip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import KEY, REQUEST, Ask, backend_at
from stopping_harness import answering, events, stopping
from tables import all_rows

from stepguard import Guard, Procedure, Result, Usage
from stepguard.backends import Backend
from stepguard.backends.base import Stopping, stopping_of
from stepguard.backends.circuit import CircuitBreaker
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.core.completions import STOPPED_EARLY
from stepguard.testing import ScriptedBackend

STEPS = {f"s{number}": f"{number} + 1 = {number + 1}" for number in range(1, 13)}
PROCEDURE = Procedure.parse("s1 = 1 + 1\n" + "\n".join(f"s{number} = s{number - 1} + 1" for number in range(2, 13)))
"""Twelve steps in a row, asked four at a time."""
WRONG_ONES = {**STEPS, "s2": "2 + 1 = 4", "s5": "5 + 1 = 7"}


def slipping(asked: Sequence[str]) -> dict[str, str]:
    """Wrong at two of the steps, as long as several are asked."""
    return {step: (WRONG_ONES if len(asked) > 1 else STEPS)[step] for step in asked}


def right(asked: Sequence[str]) -> dict[str, str]:
    return {step: STEPS[step] for step in asked}


def result_of(backend: Backend, driver: str = "run", **options: Any) -> Result:
    guard = Guard(backend, segment=4, seed=1, **options)
    return guard.run(PROCEDURE) if driver == "run" else asyncio.run(guard.arun(PROCEDURE))


def streamed(server: ChatServer) -> list[int]:
    """The places of the requests whose replies were streamed."""
    return [place for place, each in enumerate(server.requests) if each.body.get("stream")]


@pytest.mark.parametrize("driver", ["run", "arun"])
def test_replies_are_stopped_once_a_step_was_refused(chat_server: ChatServer, driver: str) -> None:
    """The first reply comes whole; behind the first slip a reply ends at its wrong step, and the run is the same."""
    chat_server.play(answering(slipping))
    whole = result_of(backend_at(chat_server), stop_early=False)
    assert not streamed(chat_server)
    before = len(chat_server.requests)
    stopped = result_of(backend_at(chat_server), driver)
    assert streamed(chat_server)[0] == before + 2  # behind the slip, and its step that is asked again
    assert stopped.status == whole.status == "verified"
    assert stopped.values == whole.values
    assert [each.steps for each in stopped.attempts] == [each.steps for each in whole.attempts]
    assert stopped.attempts[0].finish_reason == "stop"
    assert [each.finish_reason for each in stopped.attempts].count(STOPPED_EARLY) == 1
    assert sum(len(each.text or "") for each in stopped.attempts) < sum(len(each.text or "") for each in whole.attempts)


def test_a_model_that_is_right_is_never_streamed(chat_server: ChatServer) -> None:
    """Where nothing is wrong there is nothing to save."""
    chat_server.play(answering(right))
    assert result_of(backend_at(chat_server)).verified
    assert not streamed(chat_server)


def test_a_profile_says_from_the_start_that_a_model_slips(chat_server: ChatServer) -> None:
    """What was seen in earlier runs counts."""
    chat_server.play(answering(slipping))
    profile = result_of(backend_at(chat_server), stop_early=False).profile
    chat_server.play(answering(slipping))
    result = result_of(backend_at(chat_server), profile=profile)
    assert (result.status, result.attempts[0].finish_reason) == ("verified", STOPPED_EARLY)


@pytest.mark.parametrize("wrapped", ["recording", "circuit", "observed", "told"])
def test_who_may_stop_replies(chat_server: ChatServer, tmp_path: Path, wrapped: str) -> None:
    """A recording, and a guard that observes or is told so, hears whole replies; what stands before a model does not
    matter."""
    chat_server.play(answering(slipping))
    backend: Backend = backend_at(chat_server)
    if wrapped == "circuit":
        result_of(CircuitBreaker(backend))
    elif wrapped == "recording":
        with RecordedBackend(tmp_path / "replies.sqlite", backend) as recording:
            result_of(recording)
    else:
        told: dict[str, Any] = {"observe": True} if wrapped == "observed" else {"stop_early": False}
        result_of(backend, **told)
    assert bool(streamed(chat_server)) == (wrapped == "circuit")


def test_a_fallback_is_asked_as_it_is_by_itself(chat_server: ChatServer) -> None:
    """That the guard's own model may be stopped says nothing of another one."""

    class Elsewhere(OpenAIBackend):
        @property
        def stopping(self) -> Stopping:
            return "never"

    def script(received: Received) -> Reply:
        if received.body["model"] == "some-model" and received.body.get("stream"):
            return Reply({"error": {"message": "down"}}, 401)
        return answering(slipping)(received)

    chat_server.play(script)
    result = result_of(
        Elsewhere("some-model", base_url=chat_server.url, api_key=KEY),
        fallback=Elsewhere("other", base_url=chat_server.url, api_key=KEY),
    )
    assert (result.status, streamed(chat_server)) == ("verified", [])


REFUSED = Reply({"error": {"message": "stream is not supported"}}, 400)
ENDLESS = Reply(events=[*events('{"s3": "3 + 1 = 4"', finish=None), "[DONE]"])
BROKEN = Reply(events=events('{"s3": "3 + 1 = 4"', finish=None))


@pytest.mark.parametrize("driver", ["run", "arun"])
@pytest.mark.parametrize("failing", [REFUSED, ENDLESS, BROKEN])
def test_a_server_that_cannot_stream_is_asked_for_whole_replies(
    chat_server: ChatServer, failing: Reply, driver: str
) -> None:
    """What nobody asked for costs a run one request at most, and never its result."""

    def script(received: Received) -> Reply:
        return failing if received.body.get("stream") else answering(slipping)(received)

    chat_server.play(script)
    result = result_of(backend_at(chat_server), driver)
    assert (result.status, len(streamed(chat_server))) == ("verified", 1)
    assert [each.outcome for each in result.attempts].count("error") == 1


def test_who_asks_for_streams_is_told_that_there_are_none(chat_server: ChatServer) -> None:
    """An option is not given up quietly."""
    chat_server.play(REFUSED)
    result = result_of(backend_at(chat_server), stop_early=True)
    assert (result.status, len(chat_server.requests)) == ("failed", 1)
    assert "stream is not supported" in str(result.problem)


def test_what_nobody_counts_is_estimated_as_the_endpoint_counted_before(ask: Ask, chat_server: ChatServer) -> None:
    """A prompt that a whole reply said to be 900 tokens is no less where the next reply is stopped."""
    body = completion_body('{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}')
    body["usage"] = {"prompt_tokens": 900, "completion_tokens": 420, "total_tokens": 1320}
    chat_server.play([Reply(body), Reply(events=events('{"t2": "12 + 7 = 18", "t1": "1"}'))])
    backend = backend_at(chat_server)
    ask(backend, REQUEST)
    completion = ask(backend, stopping(replace(REQUEST, values={"x": 12, "y": 7})))
    assert completion.finish_reason == STOPPED_EARLY
    assert completion.text is not None
    assert completion.usage == Usage(1, 900, len(completion.text) * 10)


@all_rows(
    "address, stopping",
    [
        ("http://127.0.0.1:8080/v1", "slips"),
        ("http://localhost:8000/v1", "slips"),
        ("http://[::1]:8000/v1", "slips"),
        ("http://192.168.1.20:11434/v1", "slips"),
        ("http://vllm:8000/v1", "slips"),
        ("http://llm.models.svc.cluster.local/v1", "slips"),
        ("https://api.openai.com/v1", "never"),
        ("https://8.8.8.8/v1", "never"),
        ("https://llm.example.com/v1", "never"),
        ("nowhere", "never"),
        ("http://[::1", "never"),
    ],
)
def test_servers_of_ones_own_are_told_by_their_address(address: str, stopping: str) -> None:
    """Who bills what, and when it notices that nobody listens, is known of these alone."""
    assert OpenAIBackend("m", base_url=address, api_key=KEY).stopping == stopping


def test_backends_that_say_nothing_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one that has no key yet."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert stopping_of(ScriptedBackend({})) == "never"
    assert OpenAIBackend("m").stopping == "never"
    assert OpenAIBackend("m", provider="ollama").stopping == "slips"
