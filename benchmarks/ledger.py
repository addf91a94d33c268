"""What a ledger costs: time and room for each step, the time until a long run has gone on, and runs by several workers.

    python benchmarks/ledger.py                                     # 2,000 steps, 50 runs at a time, 500 procedures
    python benchmarks/ledger.py --steps 100000 --runs 1000 --procedures 100000 --workers 1,2,4 --repeat 3
    python benchmarks/ledger.py --steps 0 --procedures 100000 --workers 1,2,4    # what more workers give, alone

The same chain of sums is run on a model that answers at once and rightly, without a ledger, with one, and with one
that syncs the disk for each segment. `step_ms` is the processor time that a step takes more than without, `wall_ms`
the time by the clock, waiting for the disk included. `resume_s` is how long running the finished run again takes, in
which every step is read, judged again and none asked. `runs_s` is how long that many short runs at a time take, into
one file, `bare_runs_s` without one.

`workers N` is how many short procedures N processes carry out in a second, each with a part of the rows, all into one
file, which syncs; `workers N cpu_ms` the processor time that each of them takes in its process (least and most: of the
process that takes least, or most). As many processors as there are, over that, is what so many workers can do.
`workers N cpu_of_one` is that of one process over it: 1 is linear to the cores, however many of them the machine has
free. `... busy` is how many cores they kept busy, `... MB` the most memory that any of the processes held. `bare N` is
the same without a ledger, of 5,000 procedures at most, run right before, and so what the cores of the machine give;
`workers N gain` and `bare N gain` are how many times as much N processes carry out as one does, and `workers N of bare`
the first over the second: 1 is as linear as the machine, whatever else runs on it. `write_ms` is the processor time for
which one short procedure has the file for itself: 1,000 / that of them in a second is what any number of workers can
do. `sync_ms` is how long it waits for the disk, as others may then as well. Each figure is the least, the middle and
the most of the repetitions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.core.usage import Usage
from stepguard.ledger import Ledger, verify_ledger

_LOOK_BACK: Final = 2
_SHORT: Final = 20
_AT_A_TIME: Final = 16
_BARE: Final = 5_000


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


def _short() -> Procedure:
    return Procedure.parse("inputs: x\nt0 = x + 0\n" + "\n".join(f"t{n} = t{n - 1} + {n}" for n in range(1, _SHORT)))


def _together(path: Path | None, count: int) -> float:
    procedure, guard = _short(), Guard(_Right(), segment=5, ledger=path)

    async def together() -> None:
        names = (str(number) if path is not None else None for number in range(count))
        runs = (guard.arun(procedure, {"x": number}, run_id=name) for number, name in enumerate(names))
        assert all(result.verified for result in await asyncio.gather(*runs))

    started = time.perf_counter()
    asyncio.run(together())
    return time.perf_counter() - started


def _work(path: Path | None, worker: int, count: int, ready: Any, start: Any, spent: Any) -> None:
    procedure, guard = _short(), Guard(_Right(), segment=5, ledger=path)
    ready.release()
    start.wait()
    rows, began = ({"x": number} for number in range(count)), time.process_time()
    name = None if path is None else f"w{worker}"
    assert all(row.status == "verified" for row in guard.map(procedure, rows, concurrency=_AT_A_TIME, run_id=name))
    spent.put((1e3 * (time.process_time() - began) / count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def _shared(path: Path | None, workers: int, procedures: int) -> dict[str, float]:
    """Procedures a second by several processes, from when all are there, and what one takes of processor and memory."""
    context = multiprocessing.get_context("spawn")
    ready, start, spent = context.Semaphore(0), context.Event(), context.Queue()
    count = procedures // workers
    if path is not None:
        Ledger(path).close()
    running = [context.Process(target=_work, args=(path, each, count, ready, start, spent)) for each in range(workers)]
    for process in running:
        process.start()
    for _ in running:
        ready.acquire()
    started = time.perf_counter()
    start.set()
    for process in running:
        process.join()
        assert process.exitcode == 0
    rate = count * workers / (time.perf_counter() - started)
    if path is not None:
        with Ledger(path, read_only=True) as ledger:
            ended = ledger.file.read("select count(*) from runs where status = 'verified'")
        assert ended == [(count * workers,)], ended
    each, held = zip(*(spent.get() for _ in running), strict=True)
    mean = statistics.mean(each)
    cpu = {"cpu_ms": mean, "cpu_ms least": min(each), "cpu_ms most": max(each), "busy": rate * mean / 1e3}
    return {"": rate, **cpu, "MB": max(held)}


def _waited(path: Path, count: int = 100) -> tuple[float, float]:
    """The processor time for which a procedure has the file for itself, and how long it waits for the disk, in ms."""
    procedure, writing, syncing = _short(), [0.0], [0.0]
    with Ledger(path) as ledger:
        file = ledger.file
        write, sync = file.writing, file.sync

        @contextmanager
        def timed() -> Iterator[Any]:
            began = time.process_time()
            with write() as transaction:
                yield transaction
            writing[0] += time.process_time() - began

        def timed_sync() -> None:
            began = time.perf_counter()
            sync()
            syncing[0] += time.perf_counter() - began

        file.writing, file.sync = timed, timed_sync  # type: ignore[method-assign]
        guard = Guard(_Right(), segment=5, ledger=ledger)
        for number in range(count):
            assert guard.run(procedure, {"x": number}, run_id=str(number)).verified
    return 1e3 * writing[0] / count, 1e3 * syncing[0] / count


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The figures of one repetition."""
    steps, procedure = options.steps, _chain(options.steps)
    _together(folder / "warm.db", 1)  # what is imported, and worked out once, is no part of a step
    shape: dict[str, Any] = {"segment": options.segment, "history": 100}
    bare = _timed(Guard(_Right(), **shape), procedure)
    figures = {"bare_ms": 1e3 * bare[1] / steps}
    for name, full in (("wal", False), ("full", True)):
        ledger = Ledger(folder / f"{name}.db", full_sync=full)
        wall, cpu = _timed(Guard(_Right(), ledger=ledger, **shape), procedure, "run")
        figures[f"{name}_step_ms"], figures[f"{name}_wall_ms"] = (
            1e3 * (cpu - bare[1]) / steps,
            1e3 * (wall - bare[0]) / steps,
        )
        ledger.close()
    figures["bytes_per_step"] = _size(folder, "wal.db") / steps
    resumed = _timed(Guard(_Right(), ledger=folder / "wal.db", **shape), procedure, "run")
    figures["resume_s"], figures["resume_cpu_s"] = resumed
    with Ledger(folder / "wal.db", read_only=True) as ledger:
        started = time.perf_counter()
        assert verify_ledger(ledger, procedures=[procedure]).right
        figures["verify_s"] = time.perf_counter() - started
    figures["runs_s"] = _together(folder / "many.db", options.runs)
    figures["bare_runs_s"] = _together(None, options.runs)
    return figures


def measure_workers(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The figures of one repetition that are about several processes."""
    figures = dict[str, float]()
    figures["write_ms"], figures["sync_ms"] = _waited(folder / "alone.db")
    for workers in options.workers:
        for name, count in (("bare", min(options.procedures, _BARE)), ("workers", options.procedures)):
            path = None if name == "bare" else folder / f"by{workers}.db"
            found = _shared(path, workers, count)
            figures |= {f"{name} {workers} {what}".strip(): figure for what, figure in found.items()}
            print(f"{name} {workers}: {json.dumps(_rounded(found))}", file=sys.stderr, flush=True)
            for file in folder.glob(f"by{workers}.db*"):
                file.unlink()  # of 100,000 procedures it is more than a gigabyte
    least = min(options.workers)
    for workers in set(options.workers) - {least}:
        gains = [figures[f"{name} {workers}"] / figures[f"{name} {least}"] for name in ("bare", "workers")]
        figures[f"bare {workers} gain"], figures[f"workers {workers} gain"] = gains
        figures[f"workers {workers} of bare"] = gains[1] / gains[0]
        one = figures[f"workers {least} cpu_ms"]
        figures[f"workers {workers} cpu_of_one"] = one / figures[f"workers {workers} cpu_ms"]
    return figures


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.3g}") for name, value in figures.items()}


def _spread(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.3g}") for value in (min(values), statistics.median(values), max(values))]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # 0 steps, or procedures, leave that part out
    for name, default in (("steps", 2_000), ("runs", 50), ("procedures", 500), ("segment", 10), ("repeat", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--workers", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2], metavar="N,N"
    )
    options = parser.parse_args()
    repetitions = []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            alone = measure(options, Path(folder)) if options.steps else {}
            repetitions.append({**alone, **(measure_workers(options, Path(folder)) if options.procedures else {})})
        print(_rounded(repetitions[-1]), file=sys.stderr, flush=True)
    figures = {name: _spread([each[name] for each in repetitions]) for name in repetitions[0]}
    print(json.dumps({**vars(options), **figures}))


if __name__ == "__main__":
    main()
