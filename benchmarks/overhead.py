"""What the guard itself costs, without a model: engine, prompts, extraction and checks.

    python benchmarks/overhead.py [--steps 100000] [--segment 10] [--repeat 3]

A backend that knows every reply in advance answers at once; the time spent in it is subtracted. Printed are
microseconds of the processor a step, beside those of a loop that every machine can be compared by, the peak memory at a
tenth of the steps and at all of them, what `import stepguard` costs, and how long each kind of check takes
(`check_times.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
import timeit

from check_times import print_times

from stepguard import Guard, Procedure, Step
from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.values import Value, show_value

PATTERN = [
    "{p1} * 3", "{p1} - x", "{p1} - {p2}", "{p2} + {p4}", "{p1} - 4", "{p2} - {p1}", "{p3} + 12", "{p1} - {p4}",
    "x - {p1}", "{p2} + y",
]  # fmt: skip
"""Ten steps over the last four values; values are kept small by starting anew from x and y twice in the pattern."""


def make_procedure(length: int) -> Procedure:
    """A straight line of small sums with a look-back of four."""
    cycle = 2 * len(PATTERN)

    def build(index: int, *, start: bool) -> Step:
        names = {f"p{back}": "y" if start and back > index else f"t{(index - back) % cycle}" for back in range(1, 5)}
        return Step(f"t{index % cycle}", PATTERN[index % len(PATTERN)].format(**names), type="integer")

    first = [build(index, start=True) for index in range(4)]
    steps = [build(index, start=False) for index in range(cycle)]
    return Procedure.lazy(
        lambda index: first[index] if index < 4 else steps[index % cycle], length, look_back=4, inputs=["x", "y"]
    )


class Oracle:
    """Answers every request rightly and at once; counts its own time, so that it can be subtracted."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._known: dict[str, Completion] = {}

    def complete(self, request: Request) -> Completion:
        """The right reply."""
        started = time.process_time()
        asked = request.messages[-1].content
        completion = self._known.get(asked)
        if completion is None:
            state: dict[str, Value] = dict(request.values)
            fields: dict[str, str] = {}
            for step in request.steps:
                assert step.expression is not None
                value = step.type.convert(evaluate(step.expression, state))
                fields[step.id] = f"{substitute(step.expression, state)} = {show_value(value)}"
                state[step.id] = value
            completion = Completion(json.dumps(fields), usage=Usage(1, 400, 180))
        self.seconds += time.process_time() - started
        return completion


def measure(steps: int, segment: int) -> float:
    """Microseconds a step."""
    procedure = make_procedure(steps)
    oracle = Oracle()
    guard = Guard(oracle, segment=segment, history=100, seed=0)
    started = time.process_time()
    result = guard.run(procedure, {"x": 12, "y": 7})
    seconds = time.process_time() - started - oracle.seconds
    assert result.verified, result.problem
    assert result.completed == steps
    return seconds / steps * 1e6


def loop_microseconds() -> float:
    """The least that adding up the numbers below 1,000 takes."""
    return min(timeit.repeat("sum(range(1000))", number=200, repeat=50)) / 200 * 1e6


def peak_mib() -> float:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def import_milliseconds(statement: str, repeat: int) -> list[float]:
    """What a fresh interpreter takes longer with a statement than with nothing."""
    found = []
    for _ in range(repeat):
        times = []
        for code in ("pass", statement):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - started)
        found.append((times[1] - times[0]) * 1e3)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--segment", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(f"{platform.system()} {platform.machine()}, Python {platform.python_version()}")
    measure(args.steps // 10, args.segment)
    gc.collect()
    early = peak_mib()
    times = [measure(args.steps, args.segment) for _ in range(args.repeat)]
    print(
        f"guard: {statistics.median(times):.1f} us a step (min {min(times):.1f}, max {max(times):.1f}; "
        f"{args.steps:,} steps, segments of {args.segment}, {args.repeat} runs); sum(range(1000)): "
        f"{loop_microseconds():.1f} us"
    )
    print(f"peak memory: {early:.1f} MiB after {args.steps // 10:,} steps, {peak_mib():.1f} MiB after {args.steps:,}")
    for statement in ("import stepguard", "from stepguard import Guard, Procedure"):
        found = import_milliseconds(statement, max(5, args.repeat))
        print(f"{statement}: {statistics.median(found):.0f} ms (min {min(found):.0f}, max {max(found):.0f})")
    print_times(args.repeat)


if __name__ == "__main__":
    main()
