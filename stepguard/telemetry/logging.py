"""Events for logs: what happened, by stable names and ids, never what was said.

=================  ==========  ===============================================================================
event              level       with
=================  ==========  ===============================================================================
``step_done``      info        run_id, procedure, step, index, verified, strength, tries, assistance, deviations (kinds)
``call_failed``    warning     run_id, procedure, steps (how many were asked), error (the name of its class)
``run_done``       info        run_id, procedure, status, completed, total, calls, tokens, seconds, step, index, kind
``chat_guarded``   info        run_id, procedure, found, left_out; of a chat call that became a run
``chat_passed``    info        reason; of a chat call that was passed on as it came
``output_judged``  info        procedure, verified, step, kind; of the output of an agent or a tool
``call_judged``    info        policy, tool, number, outcome, reasons (kinds), rules; of a call at a `ToolGate`
``request_done``   info        endpoint, handling, outcome, seconds, run_id, left_out; of `stepguard serve`
=================  ==========  ===============================================================================

Prompts, replies, values, inputs and the texts of errors are not logged: they may hold what must not be in logs. The
names of a procedure that stood in a prompt, and of its steps, are part of it: ``(prompt)`` is logged instead, and the
index of a step. `stepguard.telemetry.hooks` has them.

Where the application has configured structlog, events go through it, as configured at that moment. Otherwise they go
to the logger ``stepguard`` of the standard library, as one line of ``key=value``, and are dropped unless the
application handles them. Nothing here configures anything.

Where the application has set up a tracer provider of OpenTelemetry, every run is also a span with its verdicts: see
`stepguard.telemetry.opentelemetry`.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import Any, Final, Literal

from stepguard.engine.actions import Action, Ask, Commit, Event, Failed
from stepguard.engine.run import Run
from stepguard.results import Result
from stepguard.telemetry.hooks import Hooks, Observer

_NAME: Final = "stepguard"
_NO_CONTEXT: Final = nullcontext()
_LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING}

_LOG: Final = logging.getLogger(_NAME)
# Or Python would print warnings to stderr where the application handles no logs.
_LOG.addHandler(logging.NullHandler())


class Telemetry:
    """Reports one run to logs and observers. What those raise is logged and does not stop the run."""

    def __init__(self, run: Run, observers: Sequence[Observer] = ()) -> None:
        self._run: Final = run
        self._ids: Final = {"run_id": run.id, "procedure": run.label}
        self._about: Final = f"run {run.id}"
        self._observers: Final = [*observers, *_tracing(observers)]
        self._hooks: Final = [observer for observer in self._observers if isinstance(observer, Hooks)]
        self._last_attempt: int | None = None

    def started(self) -> None:
        """Report that the run is driven from here."""
        if self._hooks:
            earlier = self._run.attempts(after=0)[-1:]  # of a run that was begun elsewhere
            self._last_attempt = earlier[0].number if earlier else 0
        for hooks in self._hooks:
            call_safely(hooks.started, self._run, about=self._about)

    def performing(self, action: Action) -> AbstractContextManager[object]:
        """The context to perform an action in."""
        return _Contexts(self._hooks, self._run, action, self._about) if self._hooks else _NO_CONTEXT

    def performed(self, action: Action, event: Event) -> None:
        """Report an action that was performed, and the calls that it ended."""
        call_safely(self._log_performed, action, event, about=self._about)
        for observer in self._observers:
            if isinstance(observer, Hooks):
                call_safely(observer.performed, self._run, action, event, about=self._about)
            else:
                call_safely(observer, action, event, about=self._about)
        self._notify_attempts()

    def done(self, result: Result) -> None:
        """Report the end of the run."""
        call_safely(self._log_done, result, about=self._about)
        self._notify_done(result)

    def unclosed(self, error: Exception) -> None:
        """Log that the session of the backend could not be closed."""
        log_fault(f"the session of the backend could not be closed after {self._about}", error)

    def detached(self) -> None:
        """Report that the run has not ended, and is no longer driven here."""
        self._notify_done(self._run.result())

    def _notify_attempts(self) -> None:
        if self._last_attempt is None:
            return
        for attempt in self._run.attempts(after=self._last_attempt):
            self._last_attempt = attempt.number
            for hooks in self._hooks:
                call_safely(hooks.attempted, self._run, attempt, about=self._about)

    def _notify_done(self, result: Result) -> None:
        self._notify_attempts()
        for hooks in self._hooks:
            call_safely(hooks.done, self._run, result, about=self._about)

    def _log_performed(self, action: Action, event: Event) -> None:
        if isinstance(action, Commit) and (log := self._logger("info")) is not None:
            for record in action.records:
                log.info(
                    "step_done",
                    step=str(record.occurrence) if self._run.names_steps else None,
                    index=record.occurrence.index,
                    verified=record.verified,
                    strength=record.strength,
                    tries=record.tries,
                    assistance=record.assistance,
                    deviations=[deviation.kind for deviation in record.deviations],
                )
        elif isinstance(action, Ask) and isinstance(event, Failed) and (log := self._logger("warning")) is not None:
            log.warning("call_failed", steps=len(action.request.steps), error=type(event.error).__name__)

    def _log_done(self, result: Result) -> None:
        if (log := self._logger("info")) is None:
            return
        problem = result.problem
        log.info(
            "run_done",
            status=result.status,
            completed=result.completed,
            total=result.total,
            calls=result.usage.calls,
            tokens=result.usage.tokens,
            seconds=round(result.seconds, 3),
            step=str(problem.occurrence) if problem and self._run.names_steps else None,
            index=problem.occurrence.index if problem else None,
            kind=problem.deviation.kind if problem and problem.deviation else None,
        )

    def _logger(self, level: Literal["info", "warning"]) -> Any:
        log = _logger(level)
        return None if log is None else log.bind(**self._ids)


class _Contexts:
    """The contexts of several hooks around one action; whatever they raise or swallow changes nothing."""

    def __init__(self, hooks: Sequence[Hooks], run: Run, action: Action, about: str) -> None:
        self._hooks: Final = hooks
        self._of: Final = (run, action)
        self._about: Final = about
        self._entered: Final[list[AbstractContextManager[object]]] = []

    def __enter__(self) -> None:
        for hooks in self._hooks:
            call_safely(self._enter, hooks, about=self._about)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._entered:
            call_safely(self._entered.pop().__exit__, kind, error, traceback, about=self._about)

    def _enter(self, hooks: Hooks) -> None:
        context = hooks.performing(*self._of)
        if context is not None:
            context.__enter__()
            self._entered.append(context)


def call_safely(function: Callable[..., object], *arguments: object, about: str) -> None:
    """Call what may be foreign code; what it raises is logged and changes nothing."""
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        log_fault(f"a log handler or observer failed on {about}", error)


def log_fault(event: str, error: Exception) -> None:
    """Log that something failed which changes nothing: where, and not the text of the error, which may hold content."""
    with suppress(Exception):  # the same handler may fail on this as well
        where = "".join(traceback.format_tb(error.__traceback__))
        _LOG.error("%s: %s\n%s", event, type(error).__name__, where)


def log_event(event: str, **facts: object) -> None:
    """An event outside of a run, of level info."""

    def log() -> None:
        if (logger := _logger("info")) is not None:
            logger.info(event, **facts)

    call_safely(log, about=event)


def _tracing(observers: Sequence[Observer]) -> list[Hooks]:
    """What makes spans, where the application has set OpenTelemetry up and has not given its own."""
    hooks: list[Hooks] = []

    def look() -> None:
        from stepguard.telemetry.opentelemetry import OpenTelemetry, is_set_up

        if is_set_up() and not any(isinstance(observer, OpenTelemetry) for observer in observers):
            hooks.append(OpenTelemetry())

    if "opentelemetry.trace" in sys.modules:  # whoever has set it up has imported it
        call_safely(look, about="OpenTelemetry")
    return hooks


def _logger(level: Literal["info", "warning"]) -> Any:
    """Where an event of this level goes now; None where nobody would see it."""
    configured: Any = sys.modules.get("structlog")  # whoever has configured it has imported it
    if configured is not None and configured.is_configured():
        return configured.get_logger(_NAME)
    return _KeyValues(_LOG) if _LOG.isEnabledFor(_LEVELS[level]) else None


class _KeyValues:
    """Writes events to a logger of the standard library as ``event='run_done' status='verified'``."""

    def __init__(self, logger: logging.Logger, **bound: object) -> None:
        self._logger = logger
        self._bound = bound

    def bind(self, **facts: object) -> _KeyValues:
        """The same, with facts that stand in every event."""
        return _KeyValues(self._logger, **{**self._bound, **facts})

    def info(self, event: str, **facts: object) -> None:
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Write an event that somebody should look at."""
        self._write(logging.WARNING, event, facts)

    def _write(self, level: int, event: str, facts: dict[str, object]) -> None:
        pairs = {"event": event, **self._bound, **facts}
        # The line is attributed to the caller of `info` or `warning`.
        self._logger.log(level, "%s", " ".join(f"{name}={value!r}" for name, value in pairs.items()), stacklevel=3)
