"""A guarded run as OpenTelemetry spans: what was asked, what each step was judged, and where it stopped.

python examples/opentelemetry_spans.py

It needs ``pip install "stepguard[otel]" opentelemetry-sdk``, and no key: the model is a double that slips once. An
application that has set up tracing, with an exporter of its own, has these spans without a further line.
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stepguard import Guard, Procedure
from stepguard.testing import ScriptedBackend

LOAN = Procedure.parse(
    """
    name: loan
    inputs: principal, rate
    interest: decimal(2) = principal * rate
    balance: decimal(2) = principal + interest
    """
)


def show(span: ReadableSpan) -> None:
    """Print what matters of a span: none of it is content."""
    told = span.attributes or {}
    print(span.name, told.get("stepguard.status") or told.get("stepguard.attempt.outcome"))
    for event in span.events:
        verdict = event.attributes or {}
        score = "gen_ai.evaluation.score"
        print(f"  {event.name}:", verdict["stepguard.step.id"], verdict[f"{score}.label"], verdict[f"{score}.value"])


def main() -> None:
    """Set up tracing as an application does, run, and look at what was exported."""
    exported = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    trace.set_tracer_provider(provider)

    model = ScriptedBackend(
        {"interest": "12000 * 0.045 = 540.00", "balance": "12000 + 540.00 = 12450.00"},
        {"balance": "12000 + 540.00 = 12540.00"},
    )
    Guard(model).run(LOAN, {"principal": 12000, "rate": "0.045"})
    for span in sorted(exported.get_finished_spans(), key=lambda span: span.start_time or 0):
        show(span)


if __name__ == "__main__":
    main()
