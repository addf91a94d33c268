"""What a ledger costs: time and room for each step, and the time until a long run has gone on.

    python benchmarks/ledger.py                                     # 2,000 steps, 50 runs at a time
    python benchmarks/ledger.py --steps 100000 --runs 1000

The same chain of sums is run on a model that answers at once and rightly, without a ledger, with one, and with one
that syncs the disk for each segment. `step_ms` is the processor time that a step takes more than without, `wall_ms` the
time by the clock, waiting for the disk included. `resume_s` is how long running the finished run again takes, in which
every step is read, judged again and none asked. `runs` is that many short runs at a time into one file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.core.usage import Usage
from stepguard.ledger import Ledger, verify_ledger

_LOOK_BACK: Final = 2
_SHORT: Final = 20


class _Right:
    """Answers every sum of two whole numbers."""

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        values: dict[str, Any] = dict(request.values)
        entries = {}
        for step in request.steps:
            left, right = (step.formula or "").split(" + ")
            before = values[left]
            values[step.id] = before + int(right)
            entries[step.id] = f"{before} + {right} = {values[step.id]}"
        return Completion(json.dumps(entries), "stop", usage=Usage(1, 100, 10 * len(entries)))

    async def acomplete(self, request: Request) -> Completion:
        """See `AsyncBackend.acomplete`."""
        return self.complete(request)


def _chain(steps: int) -> Procedure:
    def step_at(index: int) -> Step:
        return Step(f"t{index}", f"{'x' if index == 0 else f't{index - 1}'} + {index % 9}")

    return Procedure.lazy(step_at, steps, look_back=_LOOK_BACK, inputs=["x"])


def _timed(guard: Guard, procedure: Procedure, run_id: str | None = None) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = guard.run(procedure, {"x": 1}, run_id=run_id)
    assert result.verified, result
    return time.perf_counter() - wall, time.process_time() - cpu


def _size(folder: Path, name: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(f"{name}*"))


def _together(path: Path, count: int) -> float:
    procedure = Procedure.parse(
        "inputs: x\nt0 = x + 0\n" + "\n".join(f"t{n} = t{n - 1} + {n}" for n in range(1, _SHORT))
    )
    guard = Guard(_Right(), segment=5, ledger=path)

    async def together() -> None:
        results = await asyncio.gather(
            *(guard.arun(procedure, {"x": number}, run_id=str(number)) for number in range(count))
        )
        assert all(result.verified for result in results)

    started = time.perf_counter()
    asyncio.run(together())
    return time.perf_counter() - started


def measure(steps: int, runs: int, segment: int, folder: Path) -> dict[str, Any]:
    """The figures, as JSON data."""
    procedure = _chain(steps)
    shape: dict[str, Any] = {"segment": segment, "history": 100}
    bare = _timed(Guard(_Right(), **shape), procedure)
    figures: dict[str, Any] = {"steps": steps, "segment": segment, "bare_ms": round(1e3 * bare[0] / steps, 4)}
    for name, full in (("wal", False), ("full", True)):
        ledger = Ledger(folder / f"{name}.db", full_sync=full)
        wall, cpu = _timed(Guard(_Right(), ledger=ledger, **shape), procedure, "run")
        figures[name] = {
            "step_ms": round(1e3 * (cpu - bare[1]) / steps, 4),
            "wall_ms": round(1e3 * (wall - bare[0]) / steps, 4),
        }
        ledger.close()
    figures["bytes_per_step"] = round(_size(folder, "wal.db") / steps)
    wall, cpu = _timed(Guard(_Right(), ledger=folder / "wal.db", **shape), procedure, "run")
    figures["resume_s"], figures["resume_cpu_s"] = round(wall, 2), round(cpu, 2)
    with Ledger(folder / "wal.db", read_only=True) as ledger:
        started = time.perf_counter()
        assert verify_ledger(ledger, procedures=[procedure]).right
        figures["verify_s"] = round(time.perf_counter() - started, 2)
    figures["runs"] = {"runs": runs, "steps": runs * _SHORT, "s": round(_together(folder / "many.db", runs), 2)}
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--segment", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(options.steps, options.runs, options.segment, Path(folder)), indent=1))


if __name__ == "__main__":
    main()
