"""Metrics of the server for Prometheus: counts and durations, never content."""

from __future__ import annotations

from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stepguard.core.usage import Usage
from stepguard.results import Result
from stepguard.serve.admission import Gate

Handling = Literal["guarded", "passed", "kept", "refused"]
"""How a request was handled: run by the guard, passed on, about runs in the ledger, or refused."""

_NOTHING: Final = Usage()
# From what is passed on in milliseconds to runs of many minutes.
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """The counts of one server; `registry` holds them.

    Procedures are named as the operator named them; one that stood in a prompt counts as ``(prompt)``.
    """

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"stepguard_{name}", about, labels, registry=self.registry)

        self._requests: Final = counter(
            "requests", "Requests by endpoint, handling and HTTP status.", "endpoint", "handling", "outcome"
        )
        self._runs: Final = counter("runs", "Guarded runs by procedure and status.", "procedure", "status")
        self._tokens: Final = counter(
            "tokens", "Tokens spent at the upstream, where they were told.", "handling", "kind"
        )
        self._calls: Final = counter("model_calls", "Calls that guarded runs made to the upstream.")
        self._seconds: Final = Histogram(
            "stepguard_request_seconds",
            "From the first byte of a request to the last of its response.",
            ("handling",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._in_flight: Final = Gauge("stepguard_in_flight", "Requests that are worked on.", registry=self.registry)
        self._waiting: Final = Gauge("stepguard_waiting", "Requests that wait for their turn.", registry=self.registry)

    def watch(self, gate: Gate) -> None:
        """Update the gauges of this gate."""
        self._in_flight.set_function(lambda: gate.in_flight)
        self._waiting.set_function(lambda: gate.waiting)

    def request(self, endpoint: str, handling: Handling, outcome: str, seconds: float) -> None:
        """A request has ended: with this status, or ``"gone"`` where its caller had left."""
        self._requests.labels(endpoint, handling, outcome).inc()
        self._seconds.labels(handling).observe(seconds)

    def run(self, procedure: str, result: Result, *, earlier: Usage = _NOTHING, cancelled: bool = False) -> None:
        """A run has ended; what it had spent `earlier`, for other requests, was counted then."""
        self._runs.labels(procedure, "cancelled" if cancelled else result.status).inc()
        spent = Usage(*(getattr(result.usage, name) - getattr(earlier, name) for name in Usage.__slots__))
        self._calls.inc(spent.calls)
        self.tokens("guarded", spent)

    def tokens(self, handling: Handling, usage: Usage) -> None:
        """Tokens that were spent."""
        for kind in ("input", "output", "cached", "reasoning"):
            if count := getattr(usage, f"{kind}_tokens"):
                self._tokens.labels(handling, kind).inc(count)
