"""What goes wrong in earnest use: keys in reports, storms, doubled lines, tasks left behind, proxies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from harness import P2, PAIR
from openai_harness import GOOD, INPUTS, KEY, PROCEDURE, backend_at

from stepguard import Budget, Guard, Input, Procedure, Result, RetryPolicy, Step, guarded, wrap
from stepguard.backends import Completion, Request
from stepguard.cli import main
from stepguard.core.verdicts import Claim
from stepguard.errors import BackendError, BackendTimeout, RateLimited, RunFailed
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once

Command = Callable[..., tuple[int, str, str]]
DRIVERS = pytest.mark.parametrize("driver", ["run", "arun"])
AT_ONCE = RetryPolicy(retries=2, first_wait=0.0)
ASKED: dict[str, Any] = {"model": "m", "messages": [], "procedure": PROCEDURE, "inputs": INPUTS}
ECHO = (
    f"Incorrect API key provided: {KEY}; got Authorization: Bearer {KEY} at https://host/v1?key=AIzaSECRET12345&alt=1, "
    '{"x-api-key": "SECRET-of-somebody"}'
)


def run(guard: Guard, procedure: Procedure, driver: str, inputs: Mapping[str, object] | None = None) -> Result:
    if driver == "run":
        return guard.run(procedure, inputs)
    return asyncio.run(guard.arun(procedure, inputs))


@pytest.fixture
def steps_file(tmp_path: Path) -> str:
    file = tmp_path / "sums.txt"
    file.write_text("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3\n", encoding="utf-8")
    return str(file)


@pytest.fixture
def command(
    chat_server: ChatServer, steps_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`stepguard run` of the file at the server: its exit code, and what it prints to either stream."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    given = ["run", steps_file, "--input=x=12", "--input=y=7", "--model=some-model", f"--base-url={chat_server.url}"]

    def run(*more: str) -> tuple[int, str, str]:
        code = main([*given, *more])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def script(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8", check=False
    )


# Secrets


def told_of(result: Result) -> str:
    """Everything that a host may write down of a result."""
    texts = [result.to_json(), str(result.problem), repr(result.attempts), repr(result.problem), result.procedure]
    with pytest.raises(RunFailed) as caught:
        result.raise_for_status()
    return "\n".join([*texts, str(caught.value), repr(caught.value.args)])


@DRIVERS
@pytest.mark.parametrize("status", [401, 500])
def test_a_key_that_a_server_echoes_is_in_nothing_that_a_run_leaves(
    chat_server: ChatServer, driver: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the report, the history, the error with its traceback, a pickle nor a log at DEBUG holds it."""
    caplog.set_level(logging.DEBUG)
    chat_server.play(Reply({"error": {"message": ECHO}}, status))
    result = run(Guard(backend_at(chat_server), retry=AT_ONCE), PROCEDURE, driver, INPUTS)
    assert result.status == "failed"
    assert "[redacted]" in told_of(result)
    with pytest.raises(RunFailed) as caught:
        result.raise_for_status()
    everything = [told_of(result), repr(result), "".join(traceback.format_exception(caught.value)), caplog.text]
    assert "SECRET" not in "".join(everything)
    assert b"SECRET" not in pickle.dumps(result)


@pytest.mark.parametrize("how", [["--json"], []])
def test_a_key_that_a_server_echoes_is_not_printed(chat_server: ChatServer, command: Command, how: list[str]) -> None:
    """The command prints an error of the server without the key, to either stream, in either form."""
    chat_server.play(Reply({"error": {"message": ECHO}}, 401))
    code, out, err = command(*how)
    assert code == 5
    assert "[redacted]" in out
    assert "SECRET" not in out + err
    assert len(chat_server.requests) == 1


class OwnError(Exception):
    """What a backend of the user's raises."""


class Unspeakable(Exception):
    """An error whose text fails."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class Foreign:
    """A backend of the user's that passes on what its client said."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def complete(self, request: Request) -> Completion:
        raise self._error


@DRIVERS
@pytest.mark.parametrize(
    "error",
    [OwnError(ECHO), BackendError(ECHO), BackendError(ECHO, retryable=False), RateLimited(ECHO, retry_after=1e6)],
)
def test_a_key_that_another_client_shows_is_in_no_report(driver: str, error: Exception) -> None:
    """Backends and functions of the user's that quote a key do not bring it into problems, attempts and JSON."""

    @guarded(PROCEDURE, retry=AT_ONCE)
    def asks(messages: list[dict[str, str]]) -> str:
        raise error

    results = [run(Guard(Foreign(error), retry=AT_ONCE), PROCEDURE, driver, INPUTS), asks(**INPUTS)]
    for result in results:
        assert result.status == "failed"
        assert "[redacted]" in told_of(result)
        assert "SECRET" not in told_of(result)


@DRIVERS
def test_a_check_that_fails_on_a_key_does_not_tell_it(driver: str) -> None:
    """What a check of the user's raises is a reason without what looks like a key."""

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise OwnError(ECHO)

    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), repair=0)
    result = run(guard, Procedure([Step("a", "2 * 3", checks=[check])]), driver)
    assert "OwnError" in result.to_json()
    assert "SECRET" not in result.to_json()


@DRIVERS
@pytest.mark.parametrize("error", [Unspeakable(), OwnError("x" * 5_000_000), OwnError("\ud800")])
def test_an_error_of_any_kind_ends_in_a_readable_result(driver: str, error: Exception) -> None:
    """An error that has no text, megabytes of it, or what cannot be encoded makes a failed result of bounded size."""
    result = run(Guard(Foreign(error)), P2, driver)
    assert result.status == "failed"
    assert result.error is error
    assert len(result.to_json().encode()) < 40_000
    assert type(error).__name__ in str(result.problem)


def test_a_key_in_an_address_that_cannot_be_reached_is_not_told() -> None:
    """A client that puts its key into the address fails without showing it."""
    with openai.OpenAI(
        base_url="http://127.0.0.1:9/v1", api_key="-", default_query={"key": "AIzaSECRET12345"}, max_retries=0
    ) as client:
        result = Guard(client, model="m", retry=RetryPolicy(retries=0)).run(PROCEDURE, INPUTS)
    assert "SECRET" not in told_of(result)


def test_a_trace_with_content_holds_no_key(chat_server: ChatServer) -> None:
    """Where content is traced, errors are still told without the key."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from stepguard.telemetry.opentelemetry import OpenTelemetry

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    chat_server.play([Reply({"error": {"message": ECHO}}, 500), Reply({"error": {"message": ECHO}}, 401)])
    observer = OpenTelemetry(content=True, tracer_provider=provider)
    Guard(backend_at(chat_server), retry=AT_ONCE, observer=observer).run(PROCEDURE, INPUTS)
    told = "".join(span.to_json() for span in kept.get_finished_spans())
    assert "[redacted]" in told
    assert "SECRET" not in told


# Content in logs


def test_no_log_of_ours_holds_content(chat_server: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    """With everything logged at DEBUG, no record of ours holds a prompt, an input, a reply or what a check raised."""
    caplog.set_level(logging.DEBUG)

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise ValueError("not for John Doe")

    words = Procedure(
        [Step("name", instruction="Name the patient of note.", reads=["note"], checks=[check])],
        inputs=[Input("note", "text")],
    )
    chat_server.play(Reply(completion_body('{"name": {"work": "-", "value": "John Doe"}}')))
    Guard(backend_at(chat_server), repair=1).run(words, {"note": "patient John Doe"})
    chat_server.play(Reply({"error": {"message": "no John Doe"}}, 500))
    Guard(backend_at(chat_server), retry=AT_ONCE).run(words, {"note": "patient John Doe"})
    chat_server.play(Reply(completion_body("Hello, John Doe.")))
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client:
        wrap(client).chat.completions.create(model="m", messages=[{"role": "user", "content": "I am John Doe."}])
    ours = [record for record in caplog.records if record.name.split(".")[0] == "stepguard"]
    assert len(ours) >= 4
    shown = [f"{record.getMessage()}{record.exc_text}{record.__dict__}" for record in ours]
    assert not any("John" in each or "Doe" in each for each in shown)


# One line for one event


LOGGED = (
    "import importlib, logging, sys\n"
    "import structlog\n"
    "from stepguard import Guard, Procedure\n"
    "from stepguard.testing import ScriptedBackend\n"
    "procedure = Procedure.parse('t = 1 + 1')\n"
    "def go(): assert Guard(ScriptedBackend({'t': '1 + 1 = 2'})).run(procedure).verified\n"
)
SET_UPS = {
    "structlog": "structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))\n",
    "both": (
        "logging.basicConfig(level=logging.INFO)\n"
        "structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), processors=["
        "structlog.stdlib.add_log_level, structlog.processors.KeyValueRenderer(key_order=['event'])])\n"
    ),
    "both apart": (
        "logging.basicConfig(level=logging.INFO)\n"
        "structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))\n"
    ),
}


@pytest.mark.parametrize(("how", "order"), [("structlog", "after"), ("both", "before"), ("both apart", "after")])
def test_every_event_is_one_line(how: str, order: str) -> None:
    """Whatever an application configures, before or after a run, and with the module loaded again: one line each."""
    first, second = (SET_UPS[how], "go()\n") if order == "before" else ("go()\n", SET_UPS[how])
    code = (
        LOGGED
        + first
        + second
        + (
            "import stepguard.telemetry.logging\n"
            "importlib.reload(stepguard.telemetry.logging)\n"
            "sys.stderr.write('=====\\n')\n"
            "go()\n"
            "ours = logging.getLogger('stepguard').handlers\n"
            "assert all(isinstance(each, logging.NullHandler) for each in ours), ours\n"
        )
    )
    done = script(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    lines = done.stderr.partition("=====\n")[2].splitlines()
    assert [sum(event in line for line in lines) for event in ("step_done", "run_done")] == [1, 1]
    assert len(lines) == 2


def test_events_follow_a_later_configuration() -> None:
    """Where structlog caches its loggers, events still go where the application sends them now, and can be captured."""
    done = script(
        LOGGED
        + "first, second = [], []\n"
        + "def into(kept):\n"
        + "    def keep(logger, name, event):\n"
        + "        kept.append(event['event'])\n"
        + "        raise structlog.DropEvent\n"
        + "    return keep\n"
        + "for kept in (first, second):\n"
        + "    structlog.configure(processors=[into(kept)], cache_logger_on_first_use=True)\n"
        + "    go()\n"
        + "assert first == second == ['step_done', 'run_done'], (first, second)\n"
        + "with structlog.testing.capture_logs() as captured:\n"
        + "    go()\n"
        + "assert [event['event'] for event in captured] == ['step_done', 'run_done']\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


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
        prompt = received.body["messages"][-1]["content"]
        x = next(line.removeprefix("x = ") for line in prompt.splitlines() if line.startswith("x = "))
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
    result = run(Guard(backend_at(chat_server)), PROCEDURE, driver, INPUTS)
    assert result.status == "failed"
    assert "next try would be in" in str(result.problem)
    with openai.OpenAI(base_url=chat_server.url, api_key=KEY) as client, pytest.raises(RunFailed):
        wrap(client).chat.completions.create(**ASKED)
    assert len(chat_server.requests) == 2


# Time


@DRIVERS
def test_a_server_that_never_answers_costs_the_time_of_its_requests(chat_server: ChatServer, driver: str) -> None:
    """The time-out holds for each request and is named as such; the seconds of a budget bound them together."""
    chat_server.play(Reply(completion_body(GOOD), delay=60))
    retry = RetryPolicy(retries=1, first_wait=0.0, timeout=0.2)
    result = run(Guard(backend_at(chat_server), retry=retry), PROCEDURE, driver, INPUTS)
    assert (result.status, result.usage.calls, len(chat_server.requests)) == ("failed", 2, 2)
    assert isinstance(result.error, BackendTimeout)
    assert all("no answer within" in (attempt.error or "") for attempt in result.attempts)
    bounded = Guard(backend_at(chat_server), retry=RetryPolicy(retries=50, first_wait=0.0), budget=Budget(seconds=0.3))
    result = run(bounded, PROCEDURE, driver, INPUTS)
    assert result.status == "exhausted"
    assert len(chat_server.requests) == 3


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
        result = run(Guard(backend_at(chat_server, mode="tools")), PROCEDURE, driver, INPUTS)
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
    assert run(Guard(backend_at(chat_server)), PROCEDURE, driver, INPUTS).answer == 57
    chat_server.play(Reply(events=_pieces(GOOD, "x" * len(GOOD))))
    result = run(Guard(backend_at(chat_server), stop_early=True), PROCEDURE, driver, INPUTS)
    assert (result.answer, result.usage.calls) == (57, 1)
    assert len(chat_server.requests) == 2


# Progress


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_progress_looks_at_the_stream_that_it_is_written_to(steps_file: str) -> None:
    """Where only stdout is a terminal, stderr gets plain lines."""
    import pty

    control, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "stepguard.cli", "run", steps_file, "--input=x=12", "--input=y=7", "--json"],
            env={**os.environ, "CI": "", "TERM": "xterm"},
            stdout=terminal,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(control)
    assert not {b"\r", b"\x1b"} & {bytes([byte]) for byte in done.stderr}
    assert b"sums on SIMULATED MODEL: 2 of 2 steps" in done.stderr


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
