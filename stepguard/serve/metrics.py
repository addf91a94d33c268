"""What the server has done, in the text format of Prometheus: counts and durations, never any content."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from stepguard.core.usage import Usage
from stepguard.results import Result
from stepguard.serve.limits import Gate

__all__ = ["CONTENT_TYPE", "Handling", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Handling = Literal["guarded", "passed", "refused"]
"""What became of a request: a run of the guard, passed on to the upstream, or neither."""

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """The counts of one server.

    Procedures are named as the operator named them; one that stood in a prompt counts as ``(prompt)``.
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._runs: Counter[tuple[str, ...]] = Counter()
        self._tokens: Counter[tuple[str, ...]] = Counter()
        self._calls = 0
        self._seconds: dict[str, tuple[list[int], float]] = {}

    def request(self, endpoint: str, handling: Handling, outcome: str, seconds: float) -> None:
        """A request has ended: with this status, or ``"gone"`` where its caller had left."""
        self._requests[endpoint, handling, outcome] += 1
        counts, total = self._seconds.get(handling) or ([0] * (len(_BUCKETS) + 1), 0.0)
        counts[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[handling] = (counts, total + seconds)

    def run(self, procedure: str, result: Result, *, cancelled: bool = False) -> None:
        """A run has ended."""
        self._runs[procedure, "cancelled" if cancelled else result.status] += 1
        self._calls += result.usage.calls
        self.tokens("guarded", result.usage)

    def tokens(self, handling: Handling, usage: Usage) -> None:
        """Tokens that were spent."""
        for kind, count in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached", usage.cached_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            if count:
                self._tokens[handling, kind] += count

    def render(self, gate: Gate) -> str:
        """All of it, with what is the case now."""
        lines = [
            *_family("requests_total", "counter", "Requests by endpoint, handling and HTTP status."),
            *_samples("requests_total", ("endpoint", "handling", "outcome"), self._requests),
            *_family("runs_total", "counter", "Guarded runs by procedure and status."),
            *_samples("runs_total", ("procedure", "status"), self._runs),
            *_family("tokens_total", "counter", "Tokens spent at the upstream, where they were told."),
            *_samples("tokens_total", ("handling", "kind"), self._tokens),
            *_family("model_calls_total", "counter", "Calls that guarded runs made to the upstream."),
            f"stepguard_model_calls_total {self._calls}",
            *_family("in_flight", "gauge", "Requests that are worked on."),
            f"stepguard_in_flight {gate.in_flight}",
            *_family("waiting", "gauge", "Requests that wait for their turn."),
            f"stepguard_waiting {gate.waiting}",
            *_family("request_seconds", "histogram", "From the first byte of a request to the last of its response."),
            *self._histogram(),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> Iterator[str]:
        for handling, (counts, total) in sorted(self._seconds.items()):
            so_far = 0
            for bound, count in zip((*_BUCKETS, None), counts, strict=True):
                so_far += count
                le = "+Inf" if bound is None else f"{bound:g}"
                yield f'stepguard_request_seconds_bucket{{handling="{handling}",le="{le}"}} {so_far}'
            yield f'stepguard_request_seconds_sum{{handling="{handling}"}} {total:.6f}'
            yield f'stepguard_request_seconds_count{{handling="{handling}"}} {so_far}'


def _family(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP stepguard_{name} {told}"
    yield f"# TYPE stepguard_{name} {kind}"


def _samples(name: str, labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    for values, count in sorted(counts.items()):
        shown = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
        yield f"stepguard_{name}{{{shown}}} {count}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
