"""Field cases: keys and content are in nothing that a run leaves, and one event is one line."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Mapping

import guard_harness
import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from guard_harness import Command
from harness import DRIVERS, P2, driven
from openai_harness import INPUTS, KEY, PROCEDURE, backend_at

from stepguard import Guard, Input, Procedure, Result, RetryPolicy, Step, guarded, wrap
from stepguard.backends import Completion, Request
from stepguard.cli import main
from stepguard.core.verdicts import Claim
from stepguard.errors import BackendError, RateLimited, RunFailed
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend

steps_file = guard_harness.steps_file
command = guard_harness.command

pytestmark = pytest.mark.once

AT_ONCE = RetryPolicy(retries=2, first_wait=0.0)
ECHO = (
    f"Incorrect API key provided: {KEY}; got Authorization: Bearer {KEY} at https://host/v1?key=AIzaSECRET12345&alt=1, "
    '{"x-api-key": "SECRET-of-somebody"}'
)
PEM = BackendError("parameters: ('private_key', '-----BEGIN-----\n" + "MIIEvQIB\n" * 9 + "-----END-----')")


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
    result = driven(Guard(backend_at(chat_server), retry=AT_ONCE), PROCEDURE, driver, INPUTS)
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
    [OwnError(ECHO), BackendError(ECHO), BackendError(ECHO, retryable=False), RateLimited(ECHO, retry_after=1e6), PEM],
)
def test_a_key_that_another_client_shows_is_in_no_report(driver: str, error: Exception) -> None:
    """Backends and functions of the user's that quote a key do not bring it into problems, attempts and JSON."""

    @guarded(PROCEDURE, retry=AT_ONCE)
    def asks(messages: list[dict[str, str]]) -> str:
        raise error

    results = [driven(Guard(Foreign(error), retry=AT_ONCE), PROCEDURE, driver, INPUTS), asks(**INPUTS)]
    for result in results:
        assert result.status == "failed"
        assert "[redacted]" in told_of(result)
        assert not any(part in told_of(result) for part in ("SECRET", "MIIE"))


@DRIVERS
def test_a_check_that_fails_on_a_key_does_not_tell_it(driver: str) -> None:
    """What a check of the user's raises is a reason without what looks like a key."""

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        raise OwnError(ECHO)

    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), repair=0)
    result = driven(guard, Procedure([Step("a", "2 * 3", checks=[check])]), driver)
    assert "OwnError" in result.to_json()
    assert "SECRET" not in result.to_json()


@DRIVERS
@pytest.mark.parametrize("error", [Unspeakable(), OwnError("x" * 5_000_000), OwnError("\ud800")])
def test_an_error_of_any_kind_ends_in_a_readable_result(driver: str, error: Exception) -> None:
    """An error that has no text, megabytes of it, or what cannot be encoded makes a failed result of bounded size."""
    result = driven(Guard(Foreign(error)), P2, driver)
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


SLOW = pytest.param("both apart", "after", marks=pytest.mark.slow)


@pytest.mark.parametrize(("how", "order"), [("structlog", "after"), ("both", "before"), SLOW])
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


# Progress


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_progress_looks_at_the_stream_that_it_is_written_to(
    steps_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where only stdout is a terminal, stderr gets plain lines."""
    import pty

    monkeypatch.setenv("CI", "")
    monkeypatch.setenv("TERM", "xterm")
    control, terminal = pty.openpty()
    with os.fdopen(control, "rb"), os.fdopen(terminal, "w") as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert main(["run", steps_file, "--input=x=12", "--input=y=7", "--json"]) == 0
    shown = capsys.readouterr().err
    assert not {"\r", "\x1b"} & set(shown)
    assert "sums on SIMULATED MODEL: 2 of 2 steps" in shown
