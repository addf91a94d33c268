"""Runs every cell of a benchmark, and keeps what it has when it is killed.

Every reply of the model is kept in ``replies.sqlite`` in the output folder as it comes in, and every finished outcome
in ``outcomes.jsonl``. A run that is started again with ``resume`` does only what is missing and pays for no reply
twice; the configuration must be the same, since outcomes of different prompts or models do not belong in one table.
From the replies alone a run can be done again without the model.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from stepguard.backends.base import Backend, Completion, Request
from stepguard.backends.limiter import LimitedBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.engine.prompts import Prompter
from stepguard.errors import BackendError, ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, arm_named
from stepguard.evaluation.families import Family, Task
from stepguard.replies.formats import EquationFormat
from stepguard.testing import SimulatedModel, Slips

ProgressCallback = Callable[[int, int, TaskOutcome], None]
"""Called with how many outcomes there are, how many there will be, and the newest."""

_OUTCOMES: Final = "outcomes.jsonl"
_IN_VAIN: Final = 3
"""So many runs at least may end in errors before any other: behind them nobody is there to be asked."""
REPLIES: Final = "replies.sqlite"
_ONE_CALL: Final = ("program", "direct", "cot", "trace", "primed(rate=1)")


class PlanStopped(BaseException):
    """Raised by a backend to end a plan: runs that need a further call are given up, calls on their way are kept.

    It is no `Exception`, which arms and guards take for a failure of the model.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run.

    Args:
        cells: length -> how many instances.
        arms: names of arms, knobs included.
        seed: the first instance's seed; instance i of a length has seed + i.
        items: (length, seed) of every instance, where they are fixed items of others; `cells` counts them then.
    """

    family: Family
    cells: Mapping[int, int]
    arms: Sequence[str]
    seed: int
    options: ArmOptions
    items: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", tuple(arm_named(name).name for name in self.arms))

    def neighbour(self, seed: int, length: int) -> Task:
        """The instance behind another one of its cell; the first one behind the last.

        Raises ConfigError: the cell has no other.
        """
        if self.items:
            others = [item for item in self.items if item != (length, seed)]
            if not others:
                raise ConfigError("no other item is run", option="n")
            # The next one of its length, or of one near it.
            steps, number = min(others, key=lambda item: (abs(item[0] - length), item[1] < seed, item[1]))
            return self.family.make(number, steps)
        after = seed + 1 - self.seed
        count = self.cells[length]
        return self.family.make(self.seed + (after % count if count > 1 else after), length)

    @property
    def total(self) -> int:
        """How many outcomes there will be."""
        return sum(self.cells.values()) * len(self.arms)

    def jobs(self) -> Iterator[tuple[str, int, int]]:
        """(arm, length, seed) of every outcome; the arms side by side, so that a part of a run compares them too."""
        for length, seed in self.items or self._made():
            for arm in self.arms:
                yield arm, length, seed

    def _made(self) -> Iterator[tuple[int, int]]:
        for length, count in self.cells.items():
            for seed in range(self.seed, self.seed + count):
                yield length, seed


@runtime_checkable
class TaskBackend(Protocol):
    """A model that is made anew for each task: a simulated one, which has to be told how steps in words are done."""

    def for_task(self, task: Task) -> Backend:
        """The model to ask about this task, the same in all arms."""


async def run_plan(
    plan: Plan,
    backend: Backend | TaskBackend,
    *,
    configuration: Mapping[str, Any],
    concurrency: int,
    folder: Path | None = None,
    resume: bool = False,
    progress: ProgressCallback | None = None,
    taken_over: Callable[[Sequence[TaskOutcome]], None] | None = None,
    damaged: Callable[[int], None] | None = None,
) -> list[TaskOutcome]:
    """Run a plan and return its outcomes, sorted by cell, instance and arm: all of them unless the backend stops it.

    Args:
        backend: the model; greedy questions that are the same are asked once. A `RecordedBackend` is used as it is,
            to replay a run.
        configuration: everything that shapes a reply; kept beside the outcomes and compared on resume.
        concurrency: how many instances run at the same time; fewer calls are made at once while the endpoint asks to
            slow down.
        folder: where outcomes and replies are kept; None keeps them in memory only.
        resume: take over the outcomes that are there; what ended in an error is run again.
        progress: called after every outcome.
        taken_over: called once, with the outcomes that were there.
        damaged: called once where lines could not be read, with how many; their runs are done again.

    Raises:
        ConfigError: the folder holds outcomes and `resume` is not set, or they are of another configuration.
        BackendError: the first runs all ended in errors without an answer of the model.
    """
    store = _Store(folder, configuration, resume=resume)
    done = dict(store.outcomes)
    arms = {name: arm_named(name) for name in plan.arms}
    queue = [job for job in plan.jobs() if job not in done]
    queue.reverse()
    left = len(queue)
    make = lru_cache(maxsize=concurrency + 1)(plan.family.make)  # the arms of a program come one after another
    if store.damaged and damaged is not None:
        damaged(store.damaged)
    if taken_over is not None:
        taken_over(list(done.values()))
    shared = None if isinstance(backend, TaskBackend) else _recorded(backend, folder, concurrency)

    reached = bool(done)
    replayed = isinstance(backend, RecordedBackend)
    in_vain = min(max(_IN_VAIN, concurrency), plan.total)

    async def work() -> None:
        nonlocal left, reached
        while queue:
            job = queue.pop()
            arm, length, seed = job
            task = make(seed, length)
            asked = backend.for_task(task) if isinstance(backend, TaskBackend) else shared
            assert asked is not None
            try:
                outcome = await arms[arm].run(task, asked, plan.options, partial(plan.neighbour, seed, length))
            except PlanStopped:
                queue.clear()
                return
            store.add(outcome)
            done[job] = outcome
            left -= 1
            if progress is not None:
                progress(plan.total - left, plan.total, outcome)
            reached = reached or outcome.error is None or outcome.output_tokens > 0
            if not reached and not replayed and plan.total - left - len(store.outcomes) >= in_vain:
                raise BackendError(
                    f"no run has reached the model: {outcome.error}. What it is asked by, and where, has to be mended "
                    "first; the same command with --resume goes on",
                    retryable=False,
                )

    async with nullcontext() if shared is None else shared.session():
        workers = [asyncio.create_task(work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return [done[job] for job in plan.jobs() if job in done]


class _Overheard:
    """Keeps what it is asked, and answers nothing."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def complete(self, request: Request) -> Completion:
        self.prompts += [message.content for message in request.messages]
        raise BackendError("prompts are only listened to", retryable=False)


def hash_prompts(task: Task, options: ArmOptions) -> str:
    """A hash of what every arm asks first about a task: another one where the wording of any prompt has changed."""
    overheard = _Overheard()
    for name in _ONE_CALL:
        asyncio.run(arm_named(name).run(task, overheard, options, lambda: task))
    # A guard that nobody answers would leave its complaints in the log.
    prompter = Prompter(task.procedure, EquationFormat(), wording=options.prompts)
    guarded = prompter.messages(task.procedure.steps, task.inputs)
    schema = EquationFormat().response_model(task.procedure.steps).model_json_schema()
    own = [] if task.published is None else [task.published.prompt]
    prompts = [*overheard.prompts, *own, *(message.content for message in guarded), json.dumps(schema)]
    return hashlib.sha256("\n".join(prompts).encode("utf-8", "replace")).hexdigest()[:16]


def _recorded(backend: Backend, folder: Path | None, concurrency: int) -> RecordedBackend:
    if isinstance(backend, RecordedBackend):
        return backend
    path = ":memory:" if folder is None else folder / REPLIES
    return RecordedBackend(path, LimitedBackend(backend, most=concurrency))


class _Store:
    """Outcomes on disk: one line each, appended and flushed; a line that is cut off or damaged is run again."""

    def __init__(self, folder: Path | None, configuration: Mapping[str, Any], *, resume: bool) -> None:
        self.outcomes: dict[tuple[str, int, int], TaskOutcome] = {}
        self.damaged = 0
        self._path = None if folder is None else folder / _OUTCOMES
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps({"configuration": configuration}, sort_keys=True)
        kept: list[str] = []
        if self._path.exists() and self._path.stat().st_size:
            if not resume:
                raise ConfigError(
                    f"{self._path} exists: pass --resume to go on with it, or another --out", option="out"
                )
            # What stands behind the last line end was cut off by a kill.
            whole = self._path.read_bytes().removeprefix(BOM_UTF8).split(b"\n")[:-1]
            if whole and _value(whole[0]) is None:
                raise ConfigError(
                    f"the first line of {self._path} is damaged, and it says what the outcomes belong to: use another "
                    "--out",
                    option="out",
                )
            if whole and _value(whole[0]) != json.loads(head):
                raise ConfigError(
                    f"{self._path} was made with another configuration (model, prompts, cases, options or version): "
                    "use another --out",
                    option="out",
                )
            for line in whole[1:]:
                outcome = _outcome(line)
                if outcome is None:
                    self.damaged += bool(line.strip())
                elif outcome.error is None:  # otherwise the endpoint may be well again
                    kept.append(line.decode())
                    self.outcomes[outcome.arm, outcome.length, outcome.seed] = outcome
        # A kill while this is written leaves the old file as it was.
        new = self._path.with_name(f"{_OUTCOMES}.new")
        new.write_text("".join(f"{line}\n" for line in [head, *kept]), encoding="utf-8")
        new.replace(self._path)

    def add(self, outcome: TaskOutcome) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome.to_dict()) + "\n")


def _value(line: bytes) -> Any:
    """What JSON a line holds; None where it is damaged."""
    try:
        return json.loads(line.decode())
    except ValueError:
        return None


def _outcome(line: bytes) -> TaskOutcome | None:
    data = _value(line)
    try:
        return TaskOutcome.from_dict(data)
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTasks:
    """A `SimulatedModel` for each task, which is told how the steps are done that only words describe.

    It computes them from the values it believes, and slips there as everywhere else. What it is told goes from the
    task to this model and nowhere else: requests are made without it.

    Args:
        seed: decides every slip.
        slips: how often it slips, as in `stepguard.testing.profiles`; None as `SimulatedModel` does by default.
    """

    seed: int = 0
    slips: Slips | None = None

    def for_task(self, task: Task) -> Backend:
        """The model for one task."""
        model = SimulatedModel(self.seed, slips=self.slips, answers=task.solvers)
        steps = task.procedure.steps
        return model if task.procedure.answer == steps[len(steps) - 1].id else _UpToAnswer(model, task.procedure.answer)


class _UpToAnswer:
    """A model that ends a free transcript on the step that is asked for, which need not be the last one."""

    name = SimulatedModel.name

    def __init__(self, model: SimulatedModel, answer: str) -> None:
        self._model = model
        self._answer = answer

    def complete(self, request: Request) -> Completion:
        completion = self._model.complete(request)
        rows, ends, _ = (completion.text or "").rpartition("\nAnswer: ")
        lines = [row for row in rows.split("\n") if row.startswith(f"{self._answer} = ")]
        if request.reply_format is not None or not ends or not lines:
            return completion
        return replace(completion, text=f"{rows}{ends}{lines[-1].rpartition(' = ')[2]}")

    async def acomplete(self, request: Request) -> Completion:
        return self.complete(request)
