"""The guard with its retries where it had made them on another instance: what re-asking is worth without a checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepguard.backends.base import Backend
from stepguard.checks import Judgement
from stepguard.core.verdicts import DeviationKind, Verdict
from stepguard.engine.actions import CheckClaims
from stepguard.errors import ConfigError
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, TaskOutcome, nothing
from stepguard.evaluation.arms.guarded import check_knobs, plainly, with_knobs
from stepguard.evaluation.arms.guarded_run import ClaimCounts, make_guard, run_guarded
from stepguard.evaluation.arms.limited import judged_by
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.procedure.steps import Step
from stepguard.repair.ladder import Ladder
from stepguard.repair.policy import Failures, Repair
from stepguard.repair.rungs import Resample, Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind(Named):
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
        check_knobs(self.segment, self.retries)

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        mine = plainly(with_knobs(options, self.segment, self.retries))
        try:
            other = neighbour()
        except ConfigError as error:
            return nothing(self.name, task, status="error", error=f"there is no other instance to learn from: {error}")
        counts = ClaimCounts(other)
        guard = make_guard(other, backend, mine, counts)
        result = await guard.arun(other.procedure, other.inputs)
        if result.status == "failed":
            return nothing(self.name, task, status="error", error=f"the other instance failed: {result.problem}")
        schedule = dict(counts.refused)
        if result.problem is not None and result.problem.occurrence.index in schedule:
            schedule[result.problem.occurrence.index] -= 1  # after the last one it was not asked again
        policy = Ladder.of(mine.repair) if isinstance(mine.repair, int) else mine.repair
        patient = replace(mine, repair=_Patient(policy))
        outcome = await run_guarded(self.name, task, backend, patient, _Scheduled(schedule, task))
        return replace(outcome, verified=False, silent_errors=0)  # a schedule vouches for nothing


@dataclass(frozen=True, slots=True)
class _Patient:
    """Asks again whatever a schedule refuses; what cannot be read it meets as another policy does."""

    policy: Repair

    def next(self, failures: Failures) -> Rung | None:
        if failures.kinds[-1] == "wrong_value":
            return Resample()
        unread = [at for at, kind in enumerate(failures.kinds) if kind != "wrong_value"]
        kinds: list[DeviationKind] = [failures.kinds[at] for at in unread]
        rungs = [failures.rungs[at] for at in unread]
        advanced = [failures.advanced[at] for at in unread]
        seen = replace(failures, kinds=kinds, rungs=rungs, advanced=advanced, wrong=[], refused=[], last_wrong=None)
        return self.policy.next(seen)


class _Scheduled:
    """Refuses claims where a schedule says so, whatever they are."""

    def __init__(self, refusals: Mapping[int, int], task: Task) -> None:
        self._refusals = dict(refusals)
        self._places = {step.id: at for at, step in enumerate(task.procedure.steps)}

    def judge(self, action: CheckClaims) -> tuple[Judgement, ...]:
        return judged_by(action, self._verdict)

    def _verdict(self, step: Step, _: Judgement) -> Verdict:
        place = self._places[step.id]
        if self._refusals.get(place, 0) <= 0:
            return Verdict("pass", "schedule")
        self._refusals[place] -= 1
        return Verdict("fail", "schedule", "wrong_value", "asked again by schedule")
