"""Arms that go through the guard: the guard itself, and what it would be without a part of it.

``guard``  the guard; with ``checker=...`` one whose checker knows less
``chunk``  the guard's own segments and prompts with the checker off: every claim that can be read is taken as it
           stands. Only what cannot be read at all (no JSON, a step left out) is asked again, as the guard would
``blind``  the guard with its retries where the guard had made them on another instance: as many, but without knowing
           where they are needed
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from stepguard.actions import Action, Ask, Check, Checked, Event, Failed, Replied, Wait, Woke, deviation_of
from stepguard.backends.base import Backend, Completion, ask
from stepguard.checks import Judgement, judge_claims
from stepguard.errors import BackendTimeout, ConfigError
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, Outcome, nothing, served_by
from stepguard.evaluation.arms.limited import Judging, Limited
from stepguard.evaluation.arms.reading import same
from stepguard.evaluation.arms.wording import Decision, Reworded, check_decision, without_working
from stepguard.evaluation.families import Task
from stepguard.evaluation.families.base import check_whole
from stepguard.evaluation.knobs import full_name
from stepguard.guard import Guard
from stepguard.ladder import Ladder
from stepguard.repair import Failures, Repair
from stepguard.results import Result
from stepguard.rungs import Resample, Rung
from stepguard.runs import Run
from stepguard.transport import Transport
from stepguard.values import Value
from stepguard.verdicts import DeviationKind, Verdict

__all__ = ["Blind", "Chunk", "Guarded", "run_guarded"]

_RETRIES: Final = 4

Checker = Literal["full", "operands", "range", "residue", "noisy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """The guard, or one with a checker that knows less.

    Args:
        segment: steps a call; None as the benchmark's options say.
        retries: so many plain retries a step; None as the benchmark's options say.
        checker: ``full`` is the guard's own; any other is retried plainly, 4 times unless `retries` says otherwise.
            ``operands`` knows what is to be worked out, and no results; ``range``
            how large results can be, ``residue`` their remainder modulo `modulus`; ``noisy`` notices a wrong claim
            with probability `catch`.
        catch: see `checker`.
        modulus: see `checker`.
        without: a decision of the prompts that is left out; see `stepguard.evaluation.arms.wording`.
        adaptive: choose the length of segments by what the run shows, as `stepguard.Guard` does by default.
        stop_early: have a reply stopped at its first wrong step, where the model's backend can.

    Raises:
        ConfigError: a knob is out of range.
    """

    segment: int | None = None
    retries: int | None = None
    adaptive: bool = False
    stop_early: bool = False
    without: Decision | None = None
    checker: Checker = "full"
    catch: float = 0.9
    modulus: int = 9

    def __post_init__(self) -> None:
        _check_knobs(self.segment, self.retries)
        if self.checker not in get_args(Checker):
            raise ConfigError(
                f"checker is one of {', '.join(get_args(Checker))}, not {self.checker!r}", option="checker"
            )
        if type(self.catch) not in (int, float) or not 0 <= self.catch <= 1:
            raise ConfigError(f"catch is a probability from 0 to 1, not {self.catch!r}", option="catch")
        check_whole(self.modulus, "modulus", 2, 10**6)
        check_decision(self.without)
        for knob in ("adaptive", "stop_early"):
            if type(getattr(self, knob)) is not bool:
                raise ConfigError(f"{knob} is true or false, not {getattr(self, knob)!r}", option=knob)
        if self.adaptive and self.segment is not None:
            raise ConfigError("adaptive chooses the length of segments: leave segment out", option="adaptive")
        if self.stop_early and self.checker != "full":
            raise ConfigError("only the guard's own checker stops replies: leave stop_early out", option="stop_early")

    @property
    def name(self) -> str:
        """See `Arm.name`."""
        return full_name(self, "guard")

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
        """See `Arm.run`."""
        mine = replace(_with(options, self.segment, self.retries), adaptive=self.adaptive)
        task, backend = _worded(task, backend, self.without)
        if self.checker == "full":
            return await run_guarded(self.name, task, backend, replace(mine, stop_early=self.stop_early))
        judging = Limited(self.checker, task, catch=self.catch, modulus=self.modulus)
        return await run_guarded(self.name, task, backend, _plainly(mine), judging)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The guard without its checker.

    Args:
        segment: steps a call; None as the benchmark's options say.
        without: a decision of the prompts that is left out; see `stepguard.evaluation.arms.wording`.
    """

    segment: int | None = None
    without: Decision | None = None

    def __post_init__(self) -> None:
        _check_knobs(self.segment, None)
        check_decision(self.without)

    @property
    def name(self) -> str:
        """See `Arm.name`."""
        return full_name(self, "chunk")

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
        """See `Arm.run`."""
        mine = _plainly(_with(options, self.segment, None))
        task, backend = _worded(task, backend, self.without)
        return await run_guarded(self.name, task, backend, mine, observe=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """Retries without the checker's knowledge.

    The guard runs the neighbouring instance of the cell first, which costs nothing that counts here. Where it asked a
    step again, so does this arm, as often and in the same way, whatever the claim; everything else is accepted. It
    never abstains for a wrong value.

    Args:
        segment: steps a call; None as the benchmark's options say.
        retries: retries a step; None as the benchmark's options say.
    """

    segment: int | None = None
    retries: int | None = None

    def __post_init__(self) -> None:
        _check_knobs(self.segment, self.retries)

    @property
    def name(self) -> str:
        """See `Arm.name`."""
        return full_name(self, "blind")

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
        """See `Arm.run`."""
        mine = _plainly(_with(options, self.segment, self.retries))
        try:
            other = neighbour()
        except ConfigError as error:
            return nothing(self.name, task, status="error", error=f"there is no other instance to learn from: {error}")
        seen = _Seen(other)
        guard = _guard(other, backend, mine, observer=seen)
        result = await guard.arun(other.procedure, other.inputs)
        if result.status == "failed":
            return nothing(self.name, task, status="error", error=f"the other instance failed: {result.problem}")
        schedule = dict(seen.refused)
        if result.problem is not None and result.problem.occurrence.index in schedule:
            schedule[result.problem.occurrence.index] -= 1  # after the last one it was not asked again
        policy = Ladder.of(mine.repair) if isinstance(mine.repair, int) else mine.repair
        patient = replace(mine, repair=_Patient(policy))
        made = await run_guarded(self.name, task, backend, patient, _Scheduled(schedule, task))
        return replace(made, verified=False, silent_errors=0)  # a schedule vouches for nothing


def _check_knobs(segment: int | None, retries: int | None) -> None:
    if segment is not None:
        check_whole(segment, "segment", 1, 10**6)
    if retries is not None:
        check_whole(retries, "retries", 0, 1000)


def _worded(task: Task, backend: Backend, without: Decision | None) -> tuple[Task, Backend]:
    """The task and the model, where a decision of the prompts is left out."""
    if without is None:
        return task, backend
    task = without_working(task) if without == "working" else task
    return task, Reworded(backend, without, task.procedure)


def _with(options: ArmOptions, segment: int | None, retries: int | None) -> ArmOptions:
    segment = options.segment if segment is None else segment
    repair: int | Repair = options.repair if retries is None else retries
    return replace(options, segment=segment, repair=repair)


def _plainly(options: ArmOptions) -> ArmOptions:
    """The same with plain retries in place of a ladder, whose rungs ask for more than the step itself."""
    return replace(options, repair=Ladder.of(_RETRIES)) if isinstance(options.repair, Ladder) else options


def _guard(
    task: Task,
    backend: Backend,
    options: ArmOptions,
    *,
    observe: bool = False,
    observer: Callable[[Action, Event], None] | None = None,
) -> Guard:
    return Guard(
        backend,
        segment=None if options.adaptive else options.segment,
        repair=options.repair,
        observe=observe,
        stop_early=options.stop_early,
        history=None,
        profile=options.profile,
        transport=Transport(timeout=options.timeout),
        seed=task.seed,
        observer=observer,
    )


@dataclass(slots=True)
class _Seen:
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
        if not isinstance(action, Check) or not isinstance(event, Checked) or action.stand_in:
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


@dataclass(frozen=True, slots=True)
class _Patient:
    """Asks again whatever a schedule refuses; what cannot be read it meets as another policy does."""

    policy: Repair

    def next(self, failures: Failures) -> Rung | None:
        """See `Repair.next`."""
        if failures.kinds[-1] == "wrong_value":
            return Resample()
        unread = [at for at, kind in enumerate(failures.kinds) if kind != "wrong_value"]
        kinds: list[DeviationKind] = [failures.kinds[at] for at in unread]
        rungs = [failures.rungs[at] for at in unread]
        return self.policy.next(replace(failures, kinds=kinds, rungs=rungs, wrong=[], last_wrong=None))


class _Scheduled:
    """Refuses claims where a schedule says so, whatever they are."""

    def __init__(self, refusals: Mapping[int, int], task: Task) -> None:
        self._left = dict(refusals)
        self._places = {step.id: at for at, step in enumerate(task.procedure.steps)}

    def judge(self, action: Check) -> tuple[Judgement, ...]:
        judged: list[Judgement] = []
        for each in judge_claims(action.steps, action.claims, action.values, beyond_failure=True):
            if each.value is None:
                return (*judged, each)
            place = self._places[each.claim.step]
            if self._left.get(place, 0) > 0:
                self._left[place] -= 1
                verdict = Verdict("fail", "schedule", "wrong_value", "asked again by schedule")
                return (*judged, replace(each, verdicts=(verdict,)))
            judged.append(replace(each, verdicts=(Verdict("pass", "schedule"),)))
        return tuple(judged)


async def run_guarded(
    arm: str,
    task: Task,
    backend: Backend,
    options: ArmOptions,
    judging: Judging | None = None,
    *,
    observe: bool = False,
    only: Collection[str] | None = None,
) -> Outcome:
    """Run a task through the guard, with another judgement of claims where one is given.

    Args:
        arm: what the outcome is called.
        task: what is run.
        backend: the model.
        options: the guard's.
        judging: another judgement of claims.
        observe: whether claims are taken as they stand.
        only: the steps whose claims are counted; None: all of them.
    """
    seen = _Seen(task, only)
    guard = _guard(task, backend, options, observe=observe, observer=seen)
    started = time.monotonic()
    if judging is None:
        result = await guard.arun(task.procedure, task.inputs)
    else:
        run = guard.start(task.procedure, task.inputs)
        await _drive(run, backend, judging, seen)
        result = run.result()
    made = _outcome(arm, task, result, time.monotonic() - started, observe=observe)
    made = replace(made, served_by=served_by(seen.completions))
    if observe:
        return made
    return replace(made, claims=seen.claims, wrong_claims=seen.wrong, wrong_accepted=seen.accepted)


async def _drive(run: Run, backend: Backend, judging: Judging, seen: _Seen) -> None:
    """Carry a run to its end, one action after the other, with claims judged otherwise than the guard does."""
    while (action := run.next_action()) is not None:
        event: Event
        if isinstance(action, Ask):
            try:
                async with asyncio.timeout(action.request.timeout):
                    event = Replied(action.id, await ask(action.backend or backend, action.request))
            except TimeoutError:
                event = Failed(action.id, BackendTimeout(f"no answer within {action.request.timeout:.6g} s"))
            except Exception as error:  # noqa: BLE001 - it costs one outcome, not the benchmark
                event = Failed(action.id, error)
        elif isinstance(action, Wait):
            await asyncio.sleep(action.seconds)
            event = Woke(action.id)
        elif isinstance(action, Check):
            event = Checked(action.id, judging.judge(action))
        else:
            event = run.perform(action)
        run.send(event)
        seen(action, event)


def _outcome(arm: str, task: Task, result: Result, seconds: float, *, observe: bool) -> Outcome:
    values = {record.occurrence.step: record.value for record in result.steps}
    right = {name: same(value, task.truth[name]) for name, value in values.items() if name in task.truth}
    answered = same(result.answer, task.answer)
    wrong_vouched = any(record.verified and not right.get(record.occurrence.step, True) for record in result.steps)
    counts: dict[str, int] = {}
    found = [each for attempt in result.attempts for each in attempt.deviations]
    if observe:
        found += [each for record in result.steps for each in record.deviations]
    for deviation in found:
        counts[deviation.kind] = counts.get(deviation.kind, 0) + 1
    wrong = [at for at, name in enumerate(task.truth) if not right.get(name, False)]
    return Outcome(
        arm=arm,
        task=task.family,
        length=len(task.procedure),
        seed=task.seed,
        status=result.status,
        right=answered,
        right_lenient=answered,
        trace_right=task.whole and result.completed == result.total and all(right.values()),
        steps_right=sum(right.values()),
        verified=result.verified,
        abstained=result.status in ("abstained", "exhausted"),
        silent_errors=int(wrong_vouched or (result.verified and not answered)),
        error=str(result.problem) if result.status == "failed" else None,
        calls=result.usage.calls,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cached_tokens=result.usage.cached_tokens,
        seconds=round(seconds, 3),
        deviations=counts,
        stopped_at=None if result.problem is None else str(result.problem),
        texts=tuple(attempt.text or "" for attempt in result.attempts),
        assisted={str(kind): count for kind, count in result.assisted.items()},
        steps_judged=None if task.whole else len(task.truth),
        prefix=wrong[0] if wrong else len(task.truth),
    )
