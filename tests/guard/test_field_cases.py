"""Field cases: repeated requests, time, cancelling, several answers, proxies and clients."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import guard_harness
import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from guard_harness import Command
from harness import DRIVERS, PAIR, driven
from openai_harness import GOOD, INPUTS, KEY, PROCEDURE, backend_at

from stepguard import Budget, Guard, Procedure, Result, RetryPolicy, Step, guarded, wrap
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.errors import BackendError, BackendTimeout, RunFailed
from stepguard.language.values import Value
from stepguard.testing import SimulatedModel, Slips

command = guard_harness.command
steps_file = guard_harness.steps_file

pytestmark = pytest.mark.once

ASKED: dict[str, Any] = {"model": "m", "messages": [], "procedure": PROCEDURE, "inputs": INPUTS}


# One layer repeats requests


@pytest.mark.usefixtures("at_once")
def test_the_command_repeats_a_request_twice(chat_server: ChatServer, command: Command) -> None:
    """An endpoint that is always busy gets three requests from the command, and one that refuses gets one."""
    for status, requests in ((429, 3), (404, 1)):
        chat_server.requests.clear()
        chat_server.play(Reply({"error": {"message": "no"}}, status))
        code, out, _ = command("--json")
        assert code == 5
        assert len(chat_server.requests) == requests
        assert json.loads(out)["usage"]["calls"] == requests


def test_what_a_function_repeats_is_not_repeated_again(chat_server: ChatServer) -> None:
    """A guarded function whose client repeats requests by itself makes as many as that client does, and no more."""
    chat_server.play(Reply({"error": {"message": "no"}}, 429, headers={"retry-after-ms": "1"}))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, max_retries=2) as client:

        @guarded(PROCEDURE)
        def asks(messages: Any) -> str:
            return client.chat.completions.create(model="m", messages=messages).choices[0].message.content or ""

        result = asks(**INPUTS)
    assert (result.status, result.usage.calls) == ("failed", 1)
    assert len(chat_server.requests) == 3


@pytest.mark.slow
def test_many_runs_come_back_when_they_may_and_not_before(chat_server: ChatServer) -> None:
    """Fifty runs that are told to wait each wait at least so long, and each makes two requests in all."""
    seconds = 0.4
    asked: defaultdict[str, list[float]] = defaultdict(list)
    lock = threading.Lock()

    def answer(received: Received) -> Reply:
        x = received.body["messages"][-1]["content"].removeprefix("Steps:\nt = ").removesuffix(" + 1")
        with lock:
            asked[x].append(time.monotonic())
            if len(asked[x]) == 1:
                return Reply({"error": {"message": "slow down"}}, 429, headers={"retry-after-ms": str(seconds * 1000)})
        return Reply(completion_body(json.dumps({"t": f"{x} + 1 = {int(x) + 1}"})))

    chat_server.play(answer)
    procedure = Procedure.parse("inputs: x\nt = x + 1")
    guard = Guard(backend_at(chat_server), retry=RetryPolicy(first_wait=0.0))

    async def main() -> list[Result]:
        return await asyncio.gather(*(guard.arun(procedure, {"x": x}) for x in range(100, 150)))

    assert [result.answer for result in asyncio.run(main())] == list(range(101, 151))
    assert len(asked) == 50
    assert all(len(times) == 2 and times[1] - times[0] >= seconds for times in asked.values())


@DRIVERS
@pytest.mark.parametrize("wait", ["86400", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_an_endpoint_that_is_closed_for_a_day_is_not_waited_for(
    chat_server: ChatServer, driver: str, wait: str
) -> None:
    """A wait that nobody sits out ends the run at once, after one request, by either road and through a client."""
    chat_server.play(Reply({"error": {"message": "tomorrow"}}, 429, headers={"retry-after": wait}))
    result = driven(Guard(backend_at(chat_server)), PROCEDURE, driver, INPUTS)
    assert result.status == "failed"
    assert "next try would be in" in str(result.problem)
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client, pytest.raises(RunFailed):
        wrap(client).chat.completions.create(**ASKED)
    assert len(chat_server.requests) == 2


# Time


@DRIVERS
def test_a_server_that_never_answers_costs_the_time_of_its_requests(chat_server: ChatServer, driver: str) -> None:
    """The time-out holds for each request and is named as such; the seconds of a budget bound them together."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert driven(
        Guard(backend_at(chat_server)), PROCEDURE, driver, INPUTS
    ).verified  # what is imported once is imported
    chat_server.play(Reply(completion_body(GOOD), delay=60))
    chat_server.requests.clear()
    retry = RetryPolicy(retries=1, first_wait=0.0, timeout=0.2)
    result = driven(Guard(backend_at(chat_server), retry=retry), PROCEDURE, driver, INPUTS)
    assert (result.status, result.usage.calls, len(chat_server.requests)) == ("failed", 2, 2)
    assert isinstance(result.error, BackendTimeout)
    assert all("no answer within" in (attempt.error or "") for attempt in result.attempts)
    bounded = Guard(backend_at(chat_server), retry=RetryPolicy(retries=50, first_wait=0.0), budget=Budget(seconds=0.3))
    result = driven(bounded, PROCEDURE, driver, INPUTS)
    assert (result.status, result.usage.calls, len(chat_server.requests)) == ("exhausted", 1, 3)


# Cancelling


def _moment(when: int) -> tuple[bool, int, list[dict[str, Any]], int]:
    """Cancel a run after so many turns of the loop: whether it was, what tasks and complaints stay, and later calls."""
    complaints: list[dict[str, Any]] = []
    right = SimulatedModel(slips=Slips.none())
    calls = 0

    class Model:
        async def acomplete(self, request: Request) -> Completion:
            nonlocal calls
            calls += 1
            for _ in range(calls % 3):
                await asyncio.sleep(0)
            if calls == 2:
                raise BackendError("busy")
            return right.complete(request)

    async def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        await asyncio.sleep(0)
        return True

    steps = [*PAIR.steps[:2], Step("t3", "t1 * t2", checks=[check])]
    procedure = Procedure(steps, inputs=["x", "y"])
    guard = Guard(Model(), segment=1, parallel=2, retry=RetryPolicy(first_wait=0.0))

    async def main() -> tuple[bool, int, int]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        going = guard.start(procedure, {"x": 1, "y": 2})
        task = asyncio.create_task(guard.adrive(going))
        for _ in range(when):
            await asyncio.sleep(0)
        cancelled = task.cancel()
        try:
            result = await task
        except asyncio.CancelledError:
            result = going.result()
        assert going.done
        assert result.usage.calls == len(result.attempts) == calls
        left = len(asyncio.all_tasks()) - 1
        made = calls
        for _ in range(10):
            await asyncio.sleep(0)
        return cancelled, left, calls - made

    cancelled, left, later = asyncio.run(main())
    return cancelled, left, complaints, later


def test_a_run_can_be_cancelled_at_every_moment() -> None:
    """Wherever the cancellation strikes, it comes through, every call is in the books, and nothing is left behind."""
    moments = [_moment(when) for when in range(1, 60)]
    assert {(left, len(complaints), later) for _, left, complaints, later in moments} == {(0, 0, 0)}
    assert [cancelled for cancelled, *_ in moments] == sorted((cancelled for cancelled, *_ in moments), reverse=True)
    assert moments[0][0]
    assert not moments[-1][0]


def test_a_guarded_function_blocks_and_answers_inside_a_running_loop() -> None:
    """In a notebook a plain guarded function is called as anywhere else, more than once and beside other tasks."""

    @guarded(PROCEDURE, returns="answer")
    def asks(messages: object) -> str:
        return GOOD

    async def main() -> list[Any]:
        other = asyncio.create_task(asyncio.sleep(0))
        answers = [asks(**INPUTS), await asyncio.to_thread(lambda: asks(**INPUTS)), asks(**INPUTS)]
        await other
        return answers

    for _ in range(2):
        assert asyncio.run(main()) == [57, 57, 57]


# Several answers in one reply


def other(answer: str) -> dict[str, Any]:
    """The steps in a tool call, with another answer."""
    arguments = json.dumps({"t2": "12 + 7 = 19", "t1": answer})
    return {"id": "a", "type": "function", "function": {"name": "Steps", "arguments": arguments}}


@DRIVERS
def test_a_reply_that_says_two_things_is_asked_again(chat_server: ChatServer, driver: str) -> None:
    """Content and a tool call with different answers are no answer; nobody picks the one that happens to be right."""
    both = [completion_body(GOOD, tool_calls=[other(said)]) for said in ("19 * 3 = 58", "57", "19 * 3 = 57")]
    for body, calls in zip(both, (2, 2, 1), strict=True):
        chat_server.requests.clear()
        chat_server.play([Reply(body), Reply(completion_body(None, tool_calls=[other("19 * 3 = 57")]))])
        result = driven(Guard(backend_at(chat_server, mode="tools")), PROCEDURE, driver, INPUTS)
        assert (result.status, result.answer) == ("verified", 57)
        assert len(chat_server.requests) == calls


def _pieces(*texts: str) -> list[object]:
    """A stream of several answers at once, a character of each in turn, the later ones first."""
    events: list[object] = []
    for at in range(max(map(len, texts))):
        for index in reversed(range(len(texts))):
            delta = {"content": texts[index][at : at + 1]}
            choice = {"index": index, "delta": delta, "finish_reason": None}
            events.append(
                {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            )
    ends = [{"index": index, "delta": {}, "finish_reason": "stop"} for index in range(len(texts))]
    return [
        *events,
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": ends},
        "[DONE]",
    ]


@DRIVERS
def test_of_several_answers_the_first_counts_alone(chat_server: ChatServer, driver: str) -> None:
    """Where a server gives more choices than were asked for, the others are not looked at, whole or in pieces."""
    body = completion_body(GOOD)
    body["choices"].append({"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}})
    chat_server.play(Reply(body))
    assert driven(Guard(backend_at(chat_server)), PROCEDURE, driver, INPUTS).answer == 57
    chat_server.play(Reply(events=_pieces(GOOD, "x" * len(GOOD))))
    result = driven(Guard(backend_at(chat_server), stop_early=True), PROCEDURE, driver, INPUTS)
    assert (result.answer, result.usage.calls) == (57, 1)
    assert len(chat_server.requests) == 2


# Proxies and clients


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment names a proxy where nobody listens."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return monkeypatch


@pytest.mark.usefixtures("at_once")
def test_drop_ins_honour_the_proxies_of_the_environment(
    chat_server: ChatServer, dead_proxy: pytest.MonkeyPatch, command: Command
) -> None:
    """A wrapped client and the command go around a proxy where NO_PROXY says so, and through it otherwise."""
    chat_server.play(Reply(completion_body(GOOD)))
    for excepted, code in (("127.0.0.1", 0), ("example.org", 5)):
        dead_proxy.setenv("NO_PROXY", excepted)
        assert command("--json")[0] == code
        with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client:
            ask = wrap(client, retry=RetryPolicy(retries=0)).chat.completions.create
            if code:
                with pytest.raises(RunFailed):
                    ask(**ASKED)
            else:
                assert ask(**ASKED).stepguard.answer == 57
    assert len(chat_server.requests) == 2


def test_the_server_honours_the_proxies_of_the_environment(
    chat_server: ChatServer, dead_proxy: pytest.MonkeyPatch
) -> None:
    """Guarded and passed calls of the server go around a proxy where NO_PROXY says so, and through it otherwise."""
    pytest.importorskip("uvicorn")
    from serve_harness import MODEL, serving

    chat_server.play(Reply(completion_body(GOOD)))
    for excepted, answered in (("127.0.0.1", True), ("example.org", False)):
        dead_proxy.setenv("NO_PROXY", excepted)
        with serving(chat_server.url, guard={"retry": RetryPolicy(retries=0)}) as served:
            assert all((served.chat(model=model).status == 200) is answered for model in (MODEL, "m"))
    assert len(chat_server.requests) == 2


@pytest.mark.parametrize("how", ["guard", "wrap"])
def test_the_http_client_of_the_user_is_used_and_left_open(chat_server: ChatServer, how: str) -> None:
    """Every request goes through the client that the user set up, as it is, and nobody closes it."""
    chat_server.play(Reply(completion_body(GOOD)))
    seen: list[str] = []
    http = openai.DefaultHttpxClient(event_hooks={"request": [lambda request: seen.append(str(request.url))]})
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY, http_client=http) as client:
        for count in (1, 2):
            if how == "guard":
                assert Guard(client, model="m").run(PROCEDURE, INPUTS).answer == 57
            else:
                assert wrap(client).chat.completions.create(**ASKED).stepguard.answer == 57
            assert len(seen) == count
            assert not http.is_closed
