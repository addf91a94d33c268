"""Runs as OpenTelemetry spans, with every verdict on a step as an event `gen_ai.evaluation.result`.

::

    invoke_workflow loan                        the run: its status, what it cost, where it stopped
    |-- stepguard.attempt                       one model call, until its reply is checked and committed
    |   |   gen_ai.evaluation.result            t1 verified 1
    |   |   gen_ai.evaluation.result            t2 wrong_value 0
    |   `-- chat gpt-4.1-mini                   of the instrumentation of your client, where you have one
    `-- stepguard.attempt
        ...

Nothing has to be turned on: where the application has set up a tracer provider, as with structlog, every run of every
guard is traced, those of `stepguard.wrap` and ``stepguard serve`` included. Where it has not, nothing is imported and
nothing is done; a provider that samples a run out has its calls sampled out as well. To choose what is shown, hand
`OpenTelemetry` to a guard, which then replaces the one that comes by itself: ``observer=OpenTelemetry(content=True)``.
A guard is left out with ``tracer_provider=opentelemetry.trace.NoOpTracerProvider()``, and everything of stepguard by a
sampler or a view of your own on the tracer `stepguard`.

The context of a run is attached while its model calls and the checks of yours are performed, on both roads and in
parallel segments, so that spans made there are its children. ``chat`` spans are left to the instrumentation of the
client: there is none from here, so that no call stands twice. ``gen_ai.usage.*`` is on the span of the run only, summed
over all attempts, and is what the ``chat`` spans below it say one by one.

=======================================  ===========================================================================
on the span of a run
=======================================  ===========================================================================
stepguard.run.id                         as in the events of `stepguard.telemetry.logging`
gen_ai.operation.name                    ``invoke_workflow``
gen_ai.workflow.name                     the name of the procedure; ``(prompt)`` where it stood in a prompt
stepguard.steps.total, .completed        how many steps there are, and how many were completed
stepguard.status, .strength              as in the result
stepguard.calls, .cost                   model calls, and their price where one is declared
gen_ai.usage.*                           input_tokens, output_tokens, cache_read.input_tokens, reasoning.output_tokens
stepguard.problem.step, .index, .kind    where a run stopped, and the kind of deviation
error.type                               of a run that did not complete: the class of its error, or of what
                                         `Result.raise_for_status` raises; ``cancelled`` or ``interrupted``
stepguard.events.dropped                 events beyond the limit, where there were any
stepguard.attempts.dropped               attempts beyond the limit, where there were any
---------------------------------------  ---------------------------------------------------------------------------
on the span of an attempt
---------------------------------------  ---------------------------------------------------------------------------
stepguard.run.id                         that of the run
stepguard.step.id, .index                the first step that was asked
stepguard.steps.asked, .committed        how many were asked, and how many of those committed
stepguard.attempt.number, .outcome       as in `stepguard.results.Attempt`
stepguard.rung                           the way of asking
stepguard.tokens.input, .output          of this call
error.type                               the class of the error, where there was no reply
---------------------------------------  ---------------------------------------------------------------------------
on an event ``gen_ai.evaluation.result``
---------------------------------------  ---------------------------------------------------------------------------
gen_ai.evaluation.name                   ``stepguard.step``
gen_ai.evaluation.score.label            ``verified``, ``unverified``, or the kind of deviation
gen_ai.evaluation.score.value            1 for verified, 0 otherwise
stepguard.step.id, .index                which step; left out where the reply as a whole deviates
stepguard.step.strength, .tries          of a step that was committed
=======================================  ===========================================================================

Attempts, and verdicts on steps that code performs, beyond the limits are counted and not shown, so that a run of a
million steps does not make a trace of a million parts. The span of a run that abstained, was exhausted or failed has
the status ERROR; a completed one has none, verified or not.

With ``content=True`` the following is shown as well, each cut to a length: ``stepguard.inputs``, ``stepguard.answer``
and ``stepguard.problem.reason`` of a run, ``stepguard.prompt``, ``stepguard.reply`` and ``stepguard.error`` of an
attempt, ``stepguard.step.value`` and ``gen_ai.evaluation.explanation`` of a verdict, and the ids of steps that stood in
a prompt, which are shown by their index alone otherwise. Reasons may name the right value: who shows traces to a model
leaves content off.

The names of the ``gen_ai`` conventions are those of their development in 2026 and may change there. Verdicts are span
events, because the logs of OpenTelemetry's Python are not stable yet and need a pipeline of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from stepguard.core.arguments import check_count
from stepguard.engine.actions import Action, Ask, CheckClaims, Commit, Committed, Event, Failed
from stepguard.engine.run import Run
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.language.values import show_value
from stepguard.results import Attempt, Result, StepRecord
from stepguard.telemetry.hooks import Hooks
from stepguard.telemetry.spans import (
    LimitedSpan,
    RunTrace,
    SpanAttributes,
    encodable,
    error_type,
    outside,
    span_name,
    step_attributes,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetry", "is_set_up"]

_UNLIMITED: Final = sys.maxsize


class OpenTelemetry(Hooks):
    """Makes a span of every run, and of every attempt in it; see `stepguard.telemetry.opentelemetry`.

    One may be shared by many guards, threads and event loops.

    Args:
        content: whether prompts, replies, values, inputs and reasons are shown.
        longest: how many characters of each of those; the rest is cut.
        events: how many events one span may have; None for no limit.
        attempts: how many attempts of one run have a span; None for no limit.
        tracer_provider: where spans go; by default to the provider that the application has set.

    Raises:
        MissingExtraError: opentelemetry-api is not installed.
        ConfigError: a limit is no whole number of 1 or more.
    """

    def __init__(
        self,
        *,
        content: bool = False,
        longest: int = 2_000,
        events: int | None = 100,
        attempts: int | None = 1_000,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import trace
        except ImportError as missing:
            raise MissingExtraError("stepguard.telemetry.opentelemetry", extra="otel") from missing
        check_count(longest, "longest")
        check_count(events, "events", optional=True)
        check_count(attempts, "attempts", optional=True)
        if tracer_provider is not None and not callable(getattr(tracer_provider, "get_tracer", None)):
            raise ConfigError(
                f"tracer_provider is a TracerProvider of OpenTelemetry, not {tracer_provider!r:.60}",
                option="tracer_provider",
            )
        self._trace: Final = trace
        self._tracer: Final = trace.get_tracer("stepguard", tracer_provider=tracer_provider)
        self._content: Final = content
        self._longest: Final = longest
        self._events: Final = _UNLIMITED if events is None else events
        self._attempts: Final = _UNLIMITED if attempts is None else attempts
        self._runs: Final[dict[str, RunTrace]] = {}  # those that are going on

    def started(self, run: Run, /) -> None:
        """Begin the span of a run, in the context of its caller."""
        name = span_name(run.label)
        attributes: SpanAttributes = {
            "stepguard.run.id": run.id,
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": name,
        }
        if run.procedure.straight:  # how many steps others have shows as they run
            attributes["stepguard.steps.total"] = len(run.procedure)
        if self._content:
            values = (f"{name} = {show_value(value)[: self._longest]}" for name, value in run.values.items())
            attributes["stepguard.inputs"] = self._encodable("\n".join(values))
        self._runs[run.id] = RunTrace(
            LimitedSpan(
                self._tracer.start_span(f"invoke_workflow {name}", attributes=attributes),
                self._events,
                self._content or run.names_steps,
            )
        )

    def performing(self, run: Run, action: Action, /) -> AbstractContextManager[object] | None:
        """Attach the span of the attempt or of the run."""
        going = self._runs.get(run.id)
        # Checks of our own make no spans; those of the user may.
        if going is None or not (isinstance(action, Ask) or (isinstance(action, CheckClaims) and action.foreign)):
            return None
        span = going.span.span
        if isinstance(action, Ask) and span.is_recording():
            span = self._attempt(going, run, action)
        # The text of an exception may hold contents: `performed` notes its class alone.
        return self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)

    def performed(self, run: Run, action: Action, event: Event, /) -> None:
        """Add the verdicts on what was committed; remember the class of an error."""
        going = self._runs.get(run.id)
        if going is None or not going.span.span.is_recording():
            return
        if isinstance(action, Commit) and isinstance(event, Committed):
            span = going.attempts.get(action.records[0].occurrence.index, going.span)
            for record in action.records:
                self._add_committed(span, record)
        elif isinstance(action, Ask) and isinstance(event, Failed):
            # The attempt may have ended already: an error closes it.
            going.errors[action.occurrences[0].index] = type(event.error).__name__

    def attempted(self, run: Run, attempt: Attempt, /) -> None:
        """End the span of an attempt."""
        going = self._runs.get(run.id)
        if going is None:
            return
        first = attempt.steps[0].index
        error = going.errors.pop(first, None)
        span = going.attempts.pop(first, None)
        if span is not None:
            self._end_attempt(span, attempt, error)
        elif going.span.span.is_recording():
            # An attempt beyond the limit has no span of its own.
            self._add_deviations(going.span, attempt)

    def done(self, run: Run, result: Result, /) -> None:
        """End the span of a run, and what is left of it."""
        going = self._runs.pop(run.id, None)
        if going is None:
            return
        for span in going.attempts.values():  # where the history was too short to tell what came of them
            span.end()
        span = going.span
        if span.span.is_recording():
            span.span.set_attributes(self._outcome(result, named=span.named))
            if going.dropped:
                span.span.set_attribute("stepguard.attempts.dropped", going.dropped)
            if (kind := error_type(result)) is not None:
                place = result.problem.occurrence if result.problem else None
                where = "" if place is None else f" at step {span_name(str(place)) if span.named else place.index}"
                span.span.set_attribute("error.type", kind)
                self._fail(span.span, f"{result.status}{where}")
        span.end()

    def _attempt(self, going: RunTrace, run: Run, ask: Ask) -> Span:
        """The span of a new attempt, or that of the run where there are too many."""
        if going.count >= self._attempts:
            going.dropped += 1
            return going.span.span
        going.count += 1
        attributes: SpanAttributes = {
            "stepguard.run.id": run.id,
            **step_attributes(ask.occurrences[0], named=going.span.named),
            "stepguard.steps.asked": len(ask.occurrences),
        }
        if self._content:
            sent = ask.request.messages
            prompt = "\n\n".join(f"{message.role}: {message.content[: self._longest]}" for message in sent)
            attributes["stepguard.prompt"] = self._encodable(prompt)
        parent = self._trace.set_span_in_context(going.span.span)
        span = self._tracer.start_span("stepguard.attempt", context=parent, attributes=attributes)
        going.attempts[ask.occurrences[0].index] = LimitedSpan(span, self._events, going.span.named)
        return span

    def _end_attempt(self, span: LimitedSpan, attempt: Attempt, error: str | None) -> None:
        if span.span.is_recording():
            self._add_deviations(span, attempt)
            attributes: SpanAttributes = {
                "stepguard.attempt.number": attempt.number,
                "stepguard.attempt.outcome": attempt.outcome,
                "stepguard.rung": span_name(attempt.rung),
                "stepguard.steps.committed": attempt.committed,
                "stepguard.tokens.input": attempt.usage.input_tokens,
                "stepguard.tokens.output": attempt.usage.output_tokens,
            }
            if self._content and attempt.text is not None:
                attributes["stepguard.reply"] = self._encodable(attempt.text)
            if self._content and attempt.error is not None:
                attributes["stepguard.error"] = self._encodable(attempt.error)
            if attempt.outcome == "error":
                attributes["error.type"] = error or outside(attempt.error) or "_OTHER"
                self._fail(span.span, "no reply that could be used")
            span.span.set_attributes(attributes)
        span.end()

    def _add_committed(self, span: LimitedSpan, record: StepRecord) -> None:
        failed = next((verdict.kind for verdict in record.verdicts if verdict.outcome == "fail"), None)
        label = "verified" if record.verified else failed or "unverified"  # an observing run commits what failed
        attributes: SpanAttributes = {
            **step_attributes(record.occurrence, named=span.named),
            "stepguard.step.strength": record.strength,
            "stepguard.step.tries": record.tries,
        }
        if self._content:
            attributes["stepguard.step.value"] = self._encodable(show_value(record.value))
        self._verdict(span, label, (verdict.reason for verdict in record.verdicts), attributes)

    def _add_deviations(self, span: LimitedSpan, attempt: Attempt) -> None:
        occurrences = {occurrence.step: occurrence for occurrence in attempt.steps}
        for deviation in attempt.deviations:
            # A reply may name steps that nobody asked: what a model made up is no id.
            occurrence = occurrences.get(deviation.step or "")
            attributes = {} if occurrence is None else step_attributes(occurrence, named=span.named)
            self._verdict(span, deviation.kind, (deviation.reason,), attributes)

    def _verdict(self, span: LimitedSpan, label: str, reasons: Iterable[str], attributes: SpanAttributes) -> None:
        if self._content and (explanation := "; ".join(reason for reason in reasons if reason)):
            attributes["gen_ai.evaluation.explanation"] = self._encodable(explanation)
        span.add(
            {
                "gen_ai.evaluation.name": "stepguard.step",
                "gen_ai.evaluation.score.label": label,
                "gen_ai.evaluation.score.value": int(label == "verified"),
                **attributes,
            }
        )

    def _outcome(self, result: Result, *, named: bool) -> SpanAttributes:
        usage, problem = result.usage, result.problem
        attributes: SpanAttributes = {
            "stepguard.status": result.status,
            "stepguard.strength": result.strength,
            "stepguard.steps.completed": result.completed,
            "stepguard.calls": usage.calls,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
        if result.cost is not None:
            attributes["stepguard.cost"] = float(result.cost)
        if problem is not None:
            if named:
                attributes["stepguard.problem.step"] = span_name(str(problem.occurrence))
            attributes["stepguard.problem.index"] = problem.occurrence.index
            if problem.deviation is not None:
                attributes["stepguard.problem.kind"] = problem.deviation.kind
            if self._content:
                attributes["stepguard.problem.reason"] = self._encodable(problem.reason)
        if self._content and result.answer is not None:
            attributes["stepguard.answer"] = self._encodable(show_value(result.answer))
        return attributes

    def _encodable(self, text: str) -> str:
        return encodable(text, self._longest)

    def _fail(self, span: Span, why: str) -> None:
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, why))


def is_set_up() -> bool:
    """Whether the application has set a tracer provider; nothing is imported to find out."""
    api: Any = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
