"""One task through the guard, watched: what was claimed, what of it was wrong, and what came out."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any

from stepguard.backends.base import Backend, Completion, ask
from stepguard.engine.actions import Action, Ask, CheckClaims, Checked, Event, Failed, Replied, Wait, Woke, deviation_of
from stepguard.engine.run import Run
from stepguard.errors import BackendTimeout
from stepguard.evaluation.arms.base import ArmOptions, TaskOutcome, authors_scores, nothing, served_by, spent
from stepguard.evaluation.arms.limited import ClaimChecker
from stepguard.evaluation.arms.reading import same
from stepguard.evaluation.families import Task
from stepguard.guard import Guard
from stepguard.language.values import Value
from stepguard.results import Result
from stepguard.telemetry.hooks import as_observers
from stepguard.telemetry.logging import Telemetry


def make_guard(task: Task, backend: Backend, options: ArmOptions, counts: ClaimCounts) -> Guard:
    """The guard that the options of an arm describe, watched."""
    settings: dict[str, Any] = {option.name: getattr(options, option.name) for option in fields(options)}
    settings["observer"] = [counts, *as_observers(options.observer)]
    if options.seed is None:
        settings["seed"] = task.seed
    return Guard(backend, **settings)


@dataclass(slots=True)
class ClaimCounts:
    """Watches a run and counts its claims by the truth.

    Attributes:
        completions: what was answered.
        refused: how often a claim of each step was not accepted, by the step's place.
    """

    task: Task
    only: Collection[str] | None = None
    claims: int = 0
    wrong: int = 0
    accepted: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    completions: list[Completion] = field(default_factory=list)
    _right: dict[str, Value] = field(init=False)
    _places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._right = {**self.task.procedure.accept_inputs(self.task.inputs), **self.task.truth}
        self._places = {step.id: at for at, step in enumerate(self.task.procedure.steps)}

    def __call__(self, action: Action, event: Event) -> None:
        if isinstance(event, Replied):
            self.completions.append(event.completion)
        if not isinstance(action, CheckClaims) or not isinstance(event, Checked) or action.stand_in:
            return
        known: dict[str, Value] = dict(action.values)
        for step, judgement in zip(action.steps, event.judgements, strict=False):
            if judgement.value is None:
                return
            accepted = deviation_of(judgement) is None
            counts = self.only is None or step.id in self.only
            counts = counts and all(name in self._right for name in (step.id, *step.reads))
            if counts and all(same(known.get(name), self._right[name]) for name in step.reads):
                wrong = not same(judgement.value, self._right[step.id])
                self.claims += 1
                self.wrong += wrong
                self.accepted += wrong and accepted
            if not accepted:
                place = self._places[step.id]
                self.refused[place] = self.refused.get(place, 0) + 1
                return
            known[step.id] = judgement.value


async def run_guarded(
    arm: str,
    task: Task,
    backend: Backend,
    options: ArmOptions,
    judging: ClaimChecker | None = None,
    *,
    only: Collection[str] | None = None,
) -> TaskOutcome:
    """Run a task through the guard, with another judgement of claims where one is given.

    Args:
        only: the steps whose claims are counted; None: all of them.
    """
    counts = ClaimCounts(task, only)
    if judging is not None:  # replies are stopped by the guard's own checker
        options = replace(options, stop_early=False)
    guard = make_guard(task, backend, options, counts)
    started = time.monotonic()
    if judging is None:
        result = await guard.arun(task.procedure, task.inputs)
    else:
        run = guard.start(task.procedure, task.inputs)
        await _drive(run, backend, judging, Telemetry(run, [counts, *as_observers(options.observer)]))
        result = run.result()
    outcome = _outcome(arm, task, result, time.monotonic() - started, observe=options.observe)
    outcome = replace(outcome, served_by=served_by(counts.completions))
    if options.observe:
        return outcome
    return replace(outcome, claims=counts.claims, wrong_claims=counts.wrong, wrong_accepted=counts.accepted)


async def _drive(run: Run, backend: Backend, judging: ClaimChecker, telemetry: Telemetry) -> None:
    """Carry a run to its end, one action after the other, with claims judged otherwise than the guard does."""
    telemetry.started()
    while (action := run.next_action()) is not None:
        with telemetry.performing(action):
            event = await _performed(run, action, backend, judging)
        run.send(event)
        telemetry.performed(action, event)
    telemetry.done(run.result())


async def _performed(run: Run, action: Action, backend: Backend, judging: ClaimChecker) -> Event:
    if isinstance(action, Ask):
        try:
            async with asyncio.timeout(action.request.timeout):
                return Replied(
                    action.id, await ask(backend if action.backend is None else action.backend, action.request)
                )
        except TimeoutError:
            return Failed(action.id, BackendTimeout(f"no answer within {action.request.timeout:.6g} s"))
        except Exception as error:  # noqa: BLE001 - it costs one outcome, not the benchmark
            return Failed(action.id, error)
    if isinstance(action, Wait):
        await asyncio.sleep(action.seconds)
        return Woke(action.id)
    if isinstance(action, CheckClaims):
        return Checked(action.id, judging.judge(action))
    return run.perform(action)


def _outcome(arm: str, task: Task, result: Result, seconds: float, *, observe: bool) -> TaskOutcome:
    values = {record.occurrence.step: record.value for record in result.steps}
    right = {name: same(value, task.truth[name]) for name, value in values.items() if name in task.truth}
    answered = same(result.answer, task.answer)
    handed_on = [record.occurrence.step for record in result.steps if record.support != "unverified"]
    wrong_vouched = not all(right.get(step, True) for step in handed_on)
    vouched = result.status in ("verified", "checked")
    deviations = [deviation for attempt in result.attempts for deviation in attempt.deviations]
    if observe:
        deviations += [deviation for record in result.steps for deviation in record.deviations]
    problem = None if result.problem is None else str(result.problem)
    error = problem if result.status == "failed" else None
    wrong = [at for at, name in enumerate(task.truth) if not right.get(name, False)]
    return replace(
        nothing(arm, task, status=result.status, error=error, stopped_at=problem),
        right=answered,
        right_lenient=answered,
        trace_right=task.whole and result.completed == result.total and all(right.values()),
        steps_right=sum(right.values()),
        verified=vouched,
        abstained=result.status in ("abstained", "exhausted"),
        silent_errors=int(wrong_vouched or (vouched and not answered)),
        **spent(result.usage, seconds),
        deviations=dict(Counter(deviation.kind for deviation in deviations)),
        texts=tuple(attempt.text or "" for attempt in result.attempts),
        assisted={str(kind): count for kind, count in result.assisted.items()},
        prefix=wrong[0] if wrong else len(task.truth),
        authors=authors_scores(task, values),
    )
