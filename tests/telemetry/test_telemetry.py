"""Events: once, by stable names, without content, wherever the application sends them, and nothing configured."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from stepguard import Guard, Procedure
from stepguard.errors import BackendError
from stepguard.testing import ScriptedBackend

PROCEDURE = Procedure.parse("name: secretive\ninputs: x\nt1 = x + 1\nt2 = t1 * 2")
REPLIES = (
    {"t1": "12345 + 1 = 12347", "t2": "12347 * 2 = 24694"},
    {"t1": "12345 + 1 = 12346"},
    {"t2": "12346 * 2 = 24692"},
)


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def run() -> None:
    Guard(ScriptedBackend(*REPLIES), segment=2).run(PROCEDURE, {"x": 12345})


def test_a_configured_structlog_gets_one_event_a_step_and_one_a_run() -> None:
    """Where structlog is configured, also after stepguard was imported, events follow it with run and step ids."""
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    with structlog.testing.capture_logs() as events:
        run()
    assert [event["event"] for event in events] == ["step_done", "step_done", "run_done"]
    assert [event.get("step") for event in events] == ["t1", "t2", None]
    assert events[0]["deviations"] == ["wrong_value"]
    assert events[0]["tries"] == 2
    assert len({event["run_id"] for event in events}) == 1
    assert events[2]["status"] == "verified"
    assert events[2]["calls"] == 3


def test_an_unconfigured_structlog_goes_to_the_standard_library_once(caplog: pytest.LogCaptureFixture) -> None:
    """Without structlog's configuration each event is one record of the logger `stepguard`."""
    with caplog.at_level(logging.INFO, logger="stepguard"):
        run()
    assert [record.name for record in caplog.records] == ["stepguard"] * 3
    assert [record.getMessage().split()[0] for record in caplog.records] == [
        "event='step_done'",
        "event='step_done'",
        "event='run_done'",
    ]


def test_events_hold_no_content(caplog: pytest.LogCaptureFixture) -> None:
    """Values, replies and prompts stay out of the events, whatever the level."""
    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        run()
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert not any(number in text for number in ("12345", "12346", "12347", "24692", "Values"))


def test_a_failed_call_is_a_warning_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """A transport error is logged by the name of its class; its text may hold secrets."""
    backend = ScriptedBackend(BackendError("sk-SECRET123", retryable=False))
    with caplog.at_level(logging.INFO, logger="stepguard"):
        Guard(backend).run(PROCEDURE, {"x": 1})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "error='BackendError'" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_logger_that_fails_does_not_stop_the_run() -> None:
    """What raises in the application's logging is reported and the run goes on."""

    def broken(*_: object) -> dict[str, object]:
        raise RuntimeError("full disk")

    structlog.configure(processors=[broken])
    result = Guard(ScriptedBackend(*REPLIES), segment=2).run(PROCEDURE, {"x": 12345})
    assert result.verified


def test_a_handler_that_always_fails_does_not_stop_the_run() -> None:
    """A handler of the standard library that raises on the report of its own failure as well costs nothing."""

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("full disk")

    logger = logging.getLogger("stepguard")
    handler, level = Broken(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        assert Guard(ScriptedBackend(*REPLIES), segment=2).run(PROCEDURE, {"x": 12345}).verified
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_the_text_of_what_an_observer_raises_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An observer that fails is reported by the class of its error and where it was raised: the text may be content."""

    def failing(action: object, event: object) -> None:
        raise ValueError(f"cannot store {event}")

    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        assert Guard(ScriptedBackend(*REPLIES), segment=2, observer=failing).run(PROCEDURE, {"x": 12345}).verified
    assert "ValueError" in caplog.text
    assert "in failing" in caplog.text
    assert not any(number in caplog.text for number in ("12345", "12346", "24692"))


def test_a_run_may_have_another_name_in_logs(caplog: pytest.LogCaptureFixture) -> None:
    """The label of a run stands in its events in the place of the procedure's name, and nowhere else."""
    guard = Guard(ScriptedBackend(*REPLIES), segment=2)
    with caplog.at_level(logging.DEBUG, logger="stepguard"):
        result = guard.drive(guard.start(PROCEDURE, {"x": 12345}, label="(hidden)"))
    assert result.procedure == "secretive"
    assert "procedure='(hidden)'" in caplog.text
    assert "secretive" not in caplog.text


def test_nothing_is_printed_or_configured_by_default() -> None:
    """An application that says nothing about logging sees nothing, and finds its logging as it was."""
    code = (
        "import logging, sys\n"
        "from stepguard import Guard, Procedure\n"
        "from stepguard.testing import ScriptedBackend\n"
        "p = Procedure.parse('inputs: x\\nt = x + 1')\n"
        "assert Guard(ScriptedBackend({'t': '1 + 1 = 2'})).run(p, {'x': 1}).verified\n"
        "assert not logging.getLogger().handlers\n"
        "assert 'structlog' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
