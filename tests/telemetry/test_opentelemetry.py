"""Runs as OpenTelemetry spans: one tree a run, verdicts as events, no content, and no more of it than is useful."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from harness import DRIVERS, P2, PAIR, driven
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NoOpTracerProvider, StatusCode, get_current_span

from stepguard import Budget, Guard, Price, Procedure, Result, RetryPolicy, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.errors import BackendError, StepNotVerified
from stepguard.language.values import Value
from stepguard.telemetry.opentelemetry import OpenTelemetry
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

pytestmark = pytest.mark.once

SECRETIVE = Procedure.parse("name: secretive\ninputs: x\nt1 = x + 1\nt2 = t1 * 2")
SLIPS = (
    {"t1": "12345 + 1 = 12347", "t2": "12347 * 2 = 24694"},
    BackendError("sk-SECRET123"),
    {"t1": "12345 + 1 = 12346"},
    {"t2": "12346 * 2 = 24692"},
)
"""A wrong value, a failed call, and two right replies."""


class Traced:
    """A tracer provider that keeps what was exported."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def observer(self, **options: Any) -> OpenTelemetry:
        return OpenTelemetry(tracer_provider=self.provider, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.split()[0] == name]

    @property
    def run(self) -> ReadableSpan:
        (span,) = self.named("invoke_workflow")
        return span


@pytest.fixture
def traced() -> Traced:
    return Traced()


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.span_id
    return found


def verdicts(span: ReadableSpan) -> list[tuple[Any, ...]]:
    """Step, label and score of every verdict on a span."""
    assert all(event.name == "gen_ai.evaluation.result" for event in span.events)
    found = [dict(event.attributes or {}) for event in span.events]
    assert all(each["gen_ai.evaluation.name"] == "stepguard.step" for each in found)
    return [
        (each.get("stepguard.step.id"), each["gen_ai.evaluation.score.label"], each["gen_ai.evaluation.score.value"])
        for each in found
    ]


def said(spans: list[ReadableSpan]) -> str:
    """Everything that spans say."""
    return "\n".join(span.to_json() for span in spans)


@DRIVERS
def test_a_run_is_a_span_with_its_attempts_and_verdicts(traced: Traced, driver: str) -> None:
    """The run tells its outcome and what it cost, each attempt its own, and each verdict stands with its attempt."""
    guard = Guard(
        ScriptedBackend(*SLIPS),
        segment=2,
        observer=traced.observer(),
        retry=RetryPolicy(first_wait=0.0),
        budget=Budget(price=Price(input=1, output=2)),
    )
    result = driven(guard, SECRETIVE, driver, x=12345)
    assert result.verified
    attempts = traced.named("stepguard.attempt")
    assert [verdicts(span) for span in attempts] == [
        [("t1", "wrong_value", 0)],
        [],
        [("t1", "verified", 1)],
        [("t2", "verified", 1)],
    ]
    told = [facts(span) for span in attempts]
    assert [each["stepguard.attempt.number"] for each in told] == [1, 2, 3, 4]
    assert [each["stepguard.attempt.outcome"] for each in told] == ["rejected", "error", "accepted", "accepted"]
    assert [each.get("error.type") for each in told] == [None, "BackendError", None, None]
    assert [span.status.status_code for span in attempts] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        *[StatusCode.UNSET] * 2,
    ]
    assert {span.parent.span_id for span in attempts if span.parent} == {id_of(traced.run)}
    assert facts(traced.run) == {
        "stepguard.run.id": result.run_id,
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "secretive",
        "stepguard.steps.total": 2,
        "stepguard.steps.completed": 2,
        "stepguard.status": "verified",
        "stepguard.strength": "proved",
        "stepguard.calls": 4,
        "stepguard.cost": float(result.cost or 0),
        "gen_ai.usage.input_tokens": result.usage.input_tokens,
        "gen_ai.usage.output_tokens": result.usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.reasoning.output_tokens": 0,
    }
    assert sum(each["stepguard.tokens.output"] for each in told) == result.usage.output_tokens
    assert traced.run.name == "invoke_workflow secretive"
    assert traced.run.status.status_code is StatusCode.UNSET
    assert traced.run.parent is None


def chat(provider: TracerProvider, model: Callable[[Request], Completion]) -> Callable[[Request], Completion]:
    """A model whose client is instrumented: each call makes a span where it happens."""
    tracer = provider.get_tracer("a client")

    def asked(request: Request) -> Completion:
        with tracer.start_as_current_span("chat", attributes={"step": request.steps[0].id}):
            return model(request)

    return asked


class Blocking:
    def __init__(self, complete: Callable[[Request], Completion]) -> None:
        self.complete = complete


class Awaited:
    def __init__(self, complete: Callable[[Request], Completion]) -> None:
        self._complete = complete

    async def acomplete(self, request: Request) -> Completion:
        await asyncio.sleep(0.002 * (len(request.values) % 2))
        return self._complete(request)


@pytest.mark.parametrize(
    ("driver", "model", "parallel"),
    [("run", Blocking, 1), ("arun", Blocking, 2), ("arun", Awaited, 1), ("arun", Awaited, 2)],
)
def test_spans_of_the_client_are_children_of_their_attempt(
    traced: Traced, driver: str, model: Callable[..., Any], parallel: int
) -> None:
    """Wherever a call is made, in a thread, a task or beside another one, its span hangs below its attempt."""
    right = SimulatedModel(slips=Slips.none())
    backend = model(chat(traced.provider, right.complete))
    guard = Guard(backend, segment=1, parallel=parallel, observer=traced.observer())
    assert driven(guard, PAIR, driver, x=1, y=2).verified
    attempts = {id_of(span): facts(span)["stepguard.step.id"] for span in traced.named("stepguard.attempt")}
    calls = traced.named("chat")
    assert len(calls) == 3
    assert all(span.parent and attempts[span.parent.span_id] == facts(span)["step"] for span in calls)


@DRIVERS
def test_a_run_hangs_below_the_span_of_its_caller(traced: Traced, driver: str) -> None:
    """The span that is current when a run starts is its parent, and current again behind it."""
    tracer = traced.provider.get_tracer("a host")
    guard = Guard(SimulatedModel(slips=Slips.none()), observer=traced.observer())
    with tracer.start_as_current_span("request") as outer:
        driven(guard, P2, driver)
        assert get_current_span() is outer
    assert traced.run.parent is not None
    assert traced.run.parent.span_id == outer.get_span_context().span_id


@pytest.mark.parametrize("check_timeout", [None, 30.0])
@DRIVERS
def test_spans_of_a_check_are_children_of_the_run(traced: Traced, driver: str, check_timeout: float | None) -> None:
    """A check of the user's that makes spans makes them below its run, in whatever thread it runs."""
    tracer = traced.provider.get_tracer("a check")

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        with tracer.start_as_current_span("looking-up"):
            return True

    procedure = Procedure([Step("a", "2 * 3", checks=[check])])
    guard = Guard(ScriptedBackend({"a": "2 * 3 = 6"}), observer=traced.observer(), check_timeout=check_timeout)
    assert driven(guard, procedure, driver).verified
    (looked,) = traced.named("looking-up")
    assert looked.parent is not None
    assert looked.parent.span_id == id_of(traced.run)


def test_runs_at_the_same_time_do_not_mix(traced: Traced) -> None:
    """Runs of one guard on one loop and on threads each have their own tree, with the calls they made."""
    right = SimulatedModel(slips=Slips.none())
    guard = Guard(Awaited(chat(traced.provider, right.complete)), segment=1, parallel=2, observer=traced.observer())

    async def many() -> list[Result]:
        return await asyncio.gather(*(guard.arun(PAIR, {"x": n, "y": n}) for n in range(10)))

    with ThreadPoolExecutor(4) as pool:
        results = [result for batch in pool.map(lambda _: asyncio.run(many()), range(4)) for result in batch]
    runs = {facts(span)["stepguard.run.id"]: span for span in traced.named("invoke_workflow")}
    assert set(runs) == {result.run_id for result in results}
    traces = {span.context.trace_id: name for name, span in runs.items() if span.context}
    assert len(traces) == 40
    for span in traced.named("stepguard.attempt"):
        assert span.context
        assert facts(span)["stepguard.run.id"] == traces[span.context.trace_id]
    assert len(traced.named("chat")) == len(traced.named("stepguard.attempt")) == 120


@DRIVERS
def test_no_content_by_default(traced: Traced, driver: str) -> None:
    """Neither values, replies, prompts, reasons nor texts of errors are in a span, right or wrong ones."""
    guard = Guard(ScriptedBackend(*SLIPS), segment=2, observer=traced.observer(), retry=RetryPolicy(first_wait=0.0))
    driven(guard, SECRETIVE, driver, x=12345)
    assert len(traced.spans) == 5
    ours = [
        *(span.attributes for span in traced.spans),
        *(each.attributes for span in traced.spans for each in span.events),
    ]
    text = str([dict(each or {}) for each in ours])
    assert not any(part in text for part in ("12345", "12346", "12347", "24692", "SECRET"))


@pytest.mark.parametrize("content", [False, True])
def test_steps_that_stood_in_a_prompt_are_named_only_with_content(traced: Traced, content: bool) -> None:
    """Where the name of a procedure is not for traces, neither are the ids of its steps: their index tells them."""
    guard = Guard(ScriptedBackend({"johns_debt": "1 + 1 = 3"}), repair=0, observer=traced.observer(content=content))
    guard.drive(guard.start(Procedure.parse("johns_debt = 1 + 1"), label="(prompt)"))
    told = " ".join(f"{each.attributes} {each.status.description}" for each in traced.spans)
    told += " ".join(str(event.attributes) for each in traced.spans for event in each.events)
    assert ("johns_debt" in told) is content
    assert traced.run.attributes is not None
    assert traced.run.attributes["stepguard.problem.index"] == 0


def test_an_id_that_a_model_made_up_is_no_id(traced: Traced) -> None:
    """What a reply adds of its own is a verdict on the reply as a whole, and its name is told nowhere."""
    guard = Guard(
        ScriptedBackend({"a": "2 * 3 = 6", "patient_doe": "1", "b": "6 + 4 = 10"}), observer=traced.observer()
    )
    guard.run(P2)
    assert (None, "extra_step", 0) in verdicts(traced.named("stepguard.attempt")[0])
    assert "doe" not in said(traced.spans)


def test_content_is_told_where_it_is_asked_for_and_cut(traced: Traced) -> None:
    """With content=True prompts, replies, values and reasons are told, none longer than the limit."""
    long = "x" * 1_000_000
    procedure = Procedure.parse("inputs: note: text\ncopy: text = note")
    guard = Guard(
        ScriptedBackend('{"copy": "wrong"}', {"copy": long}), observer=traced.observer(content=True, longest=500)
    )
    result = guard.run(procedure, {"note": long})
    assert result.verified
    for span in traced.spans:
        for told in (facts(span), *(dict(event.attributes or {}) for event in span.events)):
            assert len(told) <= 32
            assert all(len(str(value)) <= 500 for value in told.values())
    assert facts(traced.run)["stepguard.inputs"].startswith("note = xxx")
    assert facts(traced.run)["stepguard.answer"].endswith("xxx...")
    first, second = map(facts, traced.named("stepguard.attempt"))
    assert first["stepguard.reply"] == '{"copy": "wrong"}'
    assert "system:" in first["stepguard.prompt"]
    assert second["stepguard.attempt.number"] == 2
    reasons = [dict(each.attributes or {}) for each in traced.named("stepguard.attempt")[0].events]
    assert reasons[0]["gen_ai.evaluation.explanation"]


def test_text_that_no_exporter_can_send_is_escaped(traced: Traced) -> None:
    """A lone surrogate in a reply does not cost the span."""
    guard = Guard(ScriptedBackend('"\ud800"'), repair=0, observer=traced.observer(content=True))
    guard.run(P2)
    assert facts(traced.named("stepguard.attempt")[0])["stepguard.reply"].encode("utf-8")


def test_a_long_run_makes_no_endless_trace(traced: Traced) -> None:
    """Beyond the limits attempts and verdicts are counted and not told, and the calls stay below the run."""
    lines = [f"t{n} = x + {n}" for n in range(300)]
    procedure = Procedure.parse("inputs: x\n" + "\n".join(lines))
    right = SimulatedModel(slips=Slips.none())
    backend = Blocking(chat(traced.provider, right.complete))
    guard = Guard(backend, segment=1, observer=traced.observer(events=50, attempts=20))
    assert guard.run(procedure, {"x": 1}).verified
    assert len(traced.named("stepguard.attempt")) == 20
    assert len(traced.run.events) == 50
    assert facts(traced.run)["stepguard.attempts.dropped"] == 280
    assert facts(traced.run)["stepguard.events.dropped"] == 230
    below = [span for span in traced.named("chat") if span.parent and span.parent.span_id == id_of(traced.run)]
    assert len(below) == 280


def test_steps_of_code_are_verdicts_on_the_run(traced: Traced) -> None:
    """Where no model was asked the verdict stands with the run; beyond the limit it is counted."""
    procedure = Procedure([Step(f"t{n}", f"{n} + 1", performer="code") for n in range(2_000)])
    Guard(ScriptedBackend(), observer=traced.observer()).run(procedure)
    assert verdicts(traced.run)[:2] == [("t0", "verified", 1), ("t1", "verified", 1)]
    assert len(traced.run.events) == 100
    assert facts(traced.run)["stepguard.events.dropped"] == 1_900


def test_a_wide_reply_is_held_to_the_limit_of_its_span(traced: Traced) -> None:
    """An attempt with more verdicts than a span may have says how many are not told."""
    lines = [f"t{n} = x + {n}" for n in range(150)]
    guard = Guard(SimulatedModel(slips=Slips.none()), segment=150, observer=traced.observer())
    assert guard.run(Procedure.parse("inputs: x\n" + "\n".join(lines)), {"x": 1}).verified
    (attempt,) = traced.named("stepguard.attempt")
    assert len(attempt.events) == 100
    assert facts(attempt)["stepguard.events.dropped"] == 50


@pytest.mark.parametrize(
    ("backend", "options", "status", "kind", "error"),
    [
        (
            lambda: ScriptedBackend(*[{"a": "2 * 3 = 7"}] * 9),
            {"repair": 2},
            *("abstained", "wrong_value", "StepNotVerified"),
        ),
        (
            lambda: ScriptedBackend({"a": "2 * 3 = 6"}),
            {"budget": Budget(calls=1)},
            *("exhausted", None, "BudgetExhausted"),
        ),
        (lambda: ScriptedBackend(BackendError("sk-SECRET", retryable=False)), {}, "failed", None, "BackendError"),
    ],
)
@DRIVERS
def test_a_run_that_stops_has_the_status_of_an_error(
    traced: Traced, driver: str, backend: Any, options: dict[str, Any], status: str, kind: str | None, error: str
) -> None:
    """Where a run stopped is told by step and kind, without reasons and without the right value."""
    result = driven(Guard(backend(), segment=1, observer=traced.observer(), **options), P2, driver)
    assert result.status == status
    told = facts(traced.run)
    assert traced.run.status.status_code is StatusCode.ERROR
    assert traced.run.status.description == f"{status} at step {told['stepguard.problem.step']}"
    assert told["stepguard.status"] == status
    assert told.get("stepguard.problem.kind") == kind
    assert told["error.type"] == error
    assert "SECRET" not in said(traced.spans)


def test_a_completed_run_without_checks_is_no_error_and_not_verified(traced: Traced) -> None:
    """A step that nothing vouches for has the label unverified and no score."""
    procedure = Procedure([Step("a", instruction="Say something.", type="text")])
    Guard(ScriptedBackend({"a": {"work": "-", "value": "well"}}), observer=traced.observer()).run(procedure)
    assert facts(traced.run)["stepguard.status"] == "unverified"
    assert traced.run.status.status_code is StatusCode.UNSET
    assert verdicts(traced.named("stepguard.attempt")[0]) == [("a", "unverified", 0)]


def test_what_an_observing_run_takes_is_told_as_it_was_judged(traced: Traced) -> None:
    """A wrong value that is only observed has the label of its deviation."""
    guard = Guard(ScriptedBackend({"a": "2 * 3 = 7", "b": "7 + 4 = 11"}), observe=True, observer=traced.observer())
    guard.run(P2)
    assert verdicts(traced.named("stepguard.attempt")[0])[:2] == [("a", "wrong_value", 0), ("b", "unverified", 0)]


def test_cancelling_ends_every_span(traced: Traced) -> None:
    """A cancelled run has its span and those of its attempts, as errors, with what it had cost."""
    tracer = traced.provider.get_tracer("a client")
    asked = asyncio.Event()

    async def model(messages: object) -> str:
        with tracer.start_as_current_span("chat"):
            asked.set()
            await asyncio.Event().wait()
        raise AssertionError("never")

    async def cancelled() -> None:
        task = asyncio.create_task(Guard(model, observer=traced.observer()).arun(P2))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (attempt,) = traced.named("stepguard.attempt")
    (call,) = traced.named("chat")
    assert call.parent is not None
    assert call.parent.span_id == id_of(attempt)
    assert [facts(span)["error.type"] for span in (attempt, traced.run)] == ["cancelled", "cancelled"]
    assert [span.status.status_code for span in (attempt, traced.run)] == [StatusCode.ERROR] * 2
    assert facts(traced.run)["stepguard.calls"] == 1


def test_an_interrupt_ends_every_span(traced: Traced) -> None:
    """KeyboardInterrupt leaves no span open."""

    def model(messages: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guard(model, observer=traced.observer()).run(P2)
    assert facts(traced.run)["error.type"] == "interrupted"
    assert len(traced.named("stepguard.attempt")) == 1


def test_many_attempts_in_flight_beside_a_short_history_all_end(traced: Traced) -> None:
    """Spans end also where the history cannot tell what became of their attempts."""

    async def model(messages: object) -> str:
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def cancelled() -> None:
        guard = Guard(model, segment=1, parallel=2, history=1, observer=traced.observer())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(guard.arun(PAIR, {"x": 1, "y": 2}), 0.05)

    asyncio.run(cancelled())
    assert len(traced.named("stepguard.attempt")) == 2
    assert len(traced.spans) == 3


def test_a_run_that_is_sampled_out_has_its_calls_sampled_out() -> None:
    """The decision of a sampler for the run holds for what happens in it, and nothing is collected."""
    traced = Traced(sampler=ALWAYS_OFF)
    recording: list[bool] = []

    def model(messages: object) -> str:
        span = get_current_span()
        recording.append(span.is_recording())
        assert span.get_span_context().is_valid
        return '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}'

    assert Guard(model, observer=traced.observer()).run(P2).verified
    assert recording == [False]
    assert traced.spans == []


def test_a_wrapped_client_is_traced_as_well(traced: Traced) -> None:
    """Options of the guard reach it through `wrap`; a refused answer leaves the trace of a run that abstained."""
    from types import SimpleNamespace

    from stepguard import wrap

    def create(**_: object) -> dict[str, object]:
        message = {"role": "assistant", "content": '{"t": "1 + 1 = 3"}'}
        return {"model": "a", "choices": [{"message": message, "finish_reason": "stop"}]}

    double: Any = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    client = wrap(double, repair=1, observer=traced.observer())
    with pytest.raises(StepNotVerified):
        client.chat.completions.create(model="a", messages=[], procedure="t = 1 + 1")
    assert facts(traced.run)["stepguard.problem.kind"] == "wrong_value"


def python(code: str) -> None:
    """Run code in a process of its own, which ends well and says nothing on stderr."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")


GUARDED = (
    "from stepguard import Guard, Procedure\n"
    "from stepguard.testing import ScriptedBackend\n"
    "p = Procedure.parse('inputs: x\\nt = x + 1')\n"
    "def go(**options): assert Guard(ScriptedBackend({'t': '1 + 1 = 2'}), **options).run(p, {'x': 1}).verified\n"
)
SET_UP = (
    "from opentelemetry import trace\n"
    "from opentelemetry.sdk.trace import TracerProvider\n"
    "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
    "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
    "kept = InMemorySpanExporter()\n"
    "provider = TracerProvider()\n"
    "provider.add_span_processor(SimpleSpanProcessor(kept))\n"
    "trace.set_tracer_provider(provider)\n"
)


def test_where_the_application_has_set_it_up_every_run_is_traced() -> None:
    """Nothing is turned on: a guard made before or after the set-up is traced once, as its own observer says."""
    code = GUARDED + (
        "import opentelemetry.trace\n"
        "from stepguard.telemetry.opentelemetry import OpenTelemetry\n"
        "early = OpenTelemetry(content=True)\n"
        "go()\n" + SET_UP + "go()\n"
        "assert [s.name for s in kept.get_finished_spans()] == ['stepguard.attempt', 'invoke_workflow procedure']\n"
        "assert 'stepguard.answer' not in kept.get_finished_spans()[1].attributes\n"
        "kept.clear()\n"
        "go(observer=early)\n"
        "assert [s.attributes.get('stepguard.answer') for s in kept.get_finished_spans()] == [None, '2']\n"
        "kept.clear()\n"
        "go(observer=OpenTelemetry(tracer_provider=trace.NoOpTracerProvider()))\n"
        "assert not kept.get_finished_spans()\n"
    )
    python(code)


def test_where_nobody_uses_it_nothing_is_imported() -> None:
    """A run imports nothing of OpenTelemetry that the application has not; the API alone makes no span."""
    code = GUARDED + (
        "import sys\n"
        "go()\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "import opentelemetry.trace\n"
        "go()\n"
        "assert not any(name.startswith('opentelemetry.sdk') for name in sys.modules)\n"
    )
    python(code)


def test_a_provider_that_does_nothing_leaves_the_context_as_it_is() -> None:
    """With a provider without effect the span of the caller stays current in the calls."""
    traced = Traced()
    tracer = traced.provider.get_tracer("a host")
    seen: list[int] = []

    def model(messages: object) -> str:
        seen.append(get_current_span().get_span_context().span_id)
        return '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}'

    with tracer.start_as_current_span("request") as outer:
        Guard(model, observer=OpenTelemetry(tracer_provider=NoOpTracerProvider())).run(P2)
    assert seen == [outer.get_span_context().span_id]
