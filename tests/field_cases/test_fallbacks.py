"""R14: a model is down, and the user has given another one."""

from __future__ import annotations

import asyncio
import json

import pytest
from conftest import ChatServer, Reply, completion_body
from harness import DRIVERS

from stepguard import Budget, Guard, Ladder, Procedure, Result, RetryPolicy
from stepguard.backends import AsyncBackend, Completion, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import BackendError, BackendRejected, ConfigError
from stepguard.repair.rungs import Resample, another_model, person
from stepguard.testing import ScriptedBackend

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
INPUTS = {"x": 6, "y": 7}
AFTER = '{"t2": "42 + 5 = 47"}'
GOOD = '{"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}'
AT_ONCE = RetryPolicy(retries=1, first_wait=0.0)


class Down:
    """A model that never answers."""

    name = "down"

    def __init__(self, error: BackendError | None = None) -> None:
        self.asked = 0
        self._error = error

    def complete(self, _: Request) -> Completion:
        self.asked += 1
        raise self._error or BackendError("connection refused")


class Named(ScriptedBackend):
    """A scripted model that has a name of its own."""

    name = ""


def named(name: str, *replies: str) -> ScriptedBackend:
    backend = Named(*replies)
    backend.name = name
    return backend


def run(guard: Guard, driver: str = "run") -> Result:
    return guard.run(PROCEDURE, INPUTS) if driver == "run" else asyncio.run(guard.arun(PROCEDURE, INPUTS))


@DRIVERS
def test_the_fallback_is_asked_where_a_model_is_down(driver: str) -> None:
    """The run goes on with it, keeps to it, and the attempts say who was asked."""
    down, second = Down(), named("second", '{"t1": "6 * 7 = 42"}', '{"t2": "42 + 5 = 47"}')
    result = run(Guard(down, segment=1, fallback=second, retry=AT_ONCE), driver)
    assert (result.status, down.asked) == ("verified", 2)
    assert [attempt.backend for attempt in result.attempts] == [None, None, "second", "second"]
    assert [each["backend"] for each in json.loads(result.to_json())["attempts"]] == [None, None, "second", "second"]


@DRIVERS
def test_fallbacks_come_in_their_order(driver: str) -> None:
    """The next one is asked where the one before it is down, too; where all are, the run fails with the last error."""
    first, second = Down(), Down(BackendRejected("no such model"))
    result = run(Guard(first, fallback=[second, named("third", GOOD)], retry=AT_ONCE), driver)
    assert (result.status, first.asked, second.asked) == ("verified", 2, 1)
    assert result.attempts[-1].backend == "third"
    failed = run(Guard(Down(), fallback=[Down(BackendRejected("no such model"))], retry=AT_ONCE), driver)
    assert failed.status == "failed"
    assert "no such model" in str(failed.problem)


@DRIVERS
def test_another_model_of_the_ladder_stands_in(driver: str) -> None:
    """R14: it was given for steps that are not accepted, and is asked before the run is given up; a person is not."""
    ladder = Ladder(rungs=(Resample(), another_model(named("other", GOOD))))
    assert run(Guard(Down(), repair=ladder, retry=AT_ONCE), driver).status == "verified"
    asked: list[str] = []
    ladder = Ladder(rungs=(person(lambda step, values: asked.append(step.id)),))
    assert run(Guard(Down(), repair=ladder, retry=AT_ONCE), driver).status == "failed"
    assert asked == []


@DRIVERS
def test_the_budget_binds_all_of_them_together(driver: str) -> None:
    """A fallback is asked only as far as the budget goes."""
    second = named("second", GOOD)
    result = run(Guard(Down(), fallback=second, retry=AT_ONCE, budget=Budget(calls=2)), driver)
    assert (result.status, result.usage.calls) == ("exhausted", 2)


def test_what_a_server_does_wrong_is_an_outage_too() -> None:
    """Replies that nobody can use, by no fault of the model, go to the fallback after one call."""
    call = json.dumps({"name": "Steps", "arguments": json.loads(GOOD)})
    result = run(Guard(named("first", f"<tool_call>{call}</tool_call>"), fallback=named("second", GOOD)))
    assert (result.status, result.usage.calls) == ("verified", 2)
    assert [attempt.outcome for attempt in result.attempts] == ["error", "accepted"]


def test_what_a_model_does_wrong_is_none() -> None:
    """A wrong step is asked again of the same model: the fallback is for outages."""
    second = named("second", GOOD)
    result = run(Guard(named("first", GOOD.replace("42", "41"), '{"t1": "6 * 7 = 42"}', AFTER), fallback=second))
    assert result.status == "verified"
    assert {attempt.backend for attempt in result.attempts} == {None}


def test_calls_at_the_same_time_move_on_together(chat_server: ChatServer) -> None:
    """Flights whose model is down go to the one fallback, not each to a further one."""
    procedure = Procedure.parse("inputs: x, y\na = x * y\nb = x + y\nc = x - y\nt = a + b + c")
    rows = {"a": "6 * 7 = 42", "b": "6 + 7 = 13", "c": "6 - 7 = -1", "t": "42 + 13 + -1 = 54"}

    def answer(messages: list[dict[str, str]]) -> str:
        return json.dumps(
            {name: row for name, row in rows.items() if f"\n{name} = " in messages[-1]["content"]} or rows
        )

    chat_server.play(Reply({"error": {"message": "down"}}, 503))
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key="k")
    guard = Guard(backend, segment=1, parallel=3, fallback=[answer, Down()], retry=RetryPolicy(retries=0))
    result = asyncio.run(guard.arun(procedure, INPUTS))
    assert {attempt.backend for attempt in result.attempts} == {None, "answer"}


def test_a_fallback_over_real_sockets(chat_server: ChatServer) -> None:
    """An endpoint that refuses every key, and one that answers."""
    chat_server.play(
        lambda received: Reply(completion_body(GOOD)) if "right" in received.body["model"] else Reply({}, 401)
    )
    wrong, right = (OpenAIBackend(name, base_url=chat_server.url, api_key="k") for name in ("wrong", "right"))
    result = run(Guard(wrong, fallback=right), "arun")
    assert (result.status, [attempt.backend for attempt in result.attempts]) == ("verified", [None, "right"])


def test_a_fallback_that_cannot_work_is_refused_at_once() -> None:
    """It is named when the guard is made, or when it is run in a way that it does not know."""

    class Awaited:
        async def acomplete(self, _: Request) -> Completion:
            return Completion(GOOD)

    assert isinstance(Awaited(), AsyncBackend)
    with pytest.raises(ConfigError):
        Guard(Down(), fallback=5)
    with pytest.raises(ConfigError, match="can only be awaited"):
        run(Guard(Down(), fallback=Awaited()))
