"""Spans with a limited number of events, and what of a run stands on them; see `stepguard.telemetry.opentelemetry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stepguard.errors import BudgetExhausted, RunError, RunFailed, RunWaiting, StepNotVerified
from stepguard.results import Occurrence, Result

if TYPE_CHECKING:
    from opentelemetry.trace import Span

VERDICT_EVENT: Final = "gen_ai.evaluation.result"
_NAME_LENGTH: Final = 200
"""The most characters of a name or an id."""
_STOPPED: Final[Mapping[str, type[RunError]]] = {
    "waiting": RunWaiting,
    "abstained": StepNotVerified,
    "exhausted": BudgetExhausted,
    "failed": RunFailed,
}
_ENDED_FROM_OUTSIDE: Final = ("cancelled", "interrupted")

SpanAttributes = dict[str, str | int | float]


@dataclass(slots=True)
class LimitedSpan:
    """A span that takes a limited number of events and counts the others."""

    span: Span
    room: int
    named: bool
    """Whether steps may be named on it."""
    dropped: int = 0

    def add(self, attributes: Mapping[str, str | int | float]) -> None:
        if self.room:
            self.room -= 1
            self.span.add_event(VERDICT_EVENT, attributes)
        else:
            self.dropped += 1

    def end(self) -> None:
        if self.dropped:
            self.span.set_attribute("stepguard.events.dropped", self.dropped)
        self.span.end()


@dataclass(slots=True)
class RunTrace:
    """A run that goes on: its span, and those of the calls on their way by the index of the step that leads them.

    No two calls of a run are on their way for one step.
    """

    span: LimitedSpan
    attempts: dict[int, LimitedSpan] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    count: int = 0
    dropped: int = 0


def step_attributes(place: Occurrence, *, named: bool) -> SpanAttributes:
    attributes: SpanAttributes = {"stepguard.step.id": span_name(str(place))} if named else {}
    return {**attributes, "stepguard.step.index": place.index}


def span_name(name: str) -> str:
    return encodable(name, _NAME_LENGTH)


def encodable(text: str, length: int) -> str:
    cut = text if len(text) <= length else f"{text[: max(0, length - 3)]}..."[:length]
    # Lone surrogates can be sent by no exporter.
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")


def error_type(result: Result) -> str | None:
    """The class of the error of a run, or of what `Result.raise_for_status` raises; None of one that has completed."""
    if result.status not in _STOPPED:
        return None
    if result.error is not None:
        return type(result.error).__name__
    return outside(result.problem.reason if result.problem else None) or _STOPPED[result.status].__name__


def outside(reason: str | None) -> str | None:
    return reason if reason in _ENDED_FROM_OUTSIDE else None
