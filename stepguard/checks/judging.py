"""Judge claims: run every check of a step, and combine the verdicts into what stands behind the value."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from stepguard.checks.arithmetic import check_arithmetic, check_defined
from stepguard.checks.constraints import Requires
from stepguard.checks.expression_values import Evaluates
from stepguard.checks.user import Check, Patience, arun_check, run_check
from stepguard.core.verdicts import STRENGTHS, Claim, Strength, Verdict
from stepguard.errors import ValueRefused
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on one claim, and the value it holds (None where it could not be read)."""

    claim: Claim
    value: Value | None
    verdicts: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The one that decides: the first failure, else the first undecided, else a pass; None: no check applies.

        A wrong value goes before unfaithful working: told of the working alone, a model might just write another one.
        """
        # The usual case, asked several times for every claim: one verdict decides by itself.
        if len(self.verdicts) == 1 and self.verdicts[0].outcome in ("pass", "fail", "undecided"):
            return self.verdicts[0]
        best: Verdict | None = None
        failed = [verdict for verdict in self.verdicts if verdict.outcome == "fail"]
        if failed:
            return next((each for each in failed if each.kind != "unfaithful_work"), failed[0])
        for each in self.verdicts:
            if (each.outcome == "undecided" and (best is None or best.outcome == "pass")) or (
                each.outcome == "pass" and best is None
            ):
                best = each
        return best

    @property
    def strength(self) -> Strength:
        """What stands behind the value: the strongest pass where nothing failed or was undecided."""
        verdict = self.verdict
        if verdict is None or verdict.outcome != "pass":
            return "unverified"
        if len(self.verdicts) == 1 and verdict.strength is not None:
            return verdict.strength
        return max((each.strength for each in self.verdicts if each.strength is not None), key=STRENGTHS.index)


def find_hopeless(step: Step, values: Mapping[str, Value]) -> Verdict | None:
    """Find, from the values alone, the verdict on any claim about a step that no claim can fulfil; None where one can.

    The step has no exact value, or a precondition of it (`Requires`) does not hold.
    """
    undefined = check_defined(step, values)
    if undefined is not None:
        return undefined
    for check in step.checks:
        verdict = None
        if isinstance(check, Evaluates):
            verdict = check.precondition(step, values)
        elif isinstance(check, Requires):
            verdict = check.precondition(_as_written(step, values) if step.origin is not None else values)
        if verdict is not None:
            return verdict
    return None


def judge_claims(
    steps: Sequence[Step],
    claims: Sequence[Claim],
    values: Mapping[str, Value],
    *,
    beyond_failure: bool = False,
    independent: bool = False,
    timeout: float | None = None,
    remaining: float | None = None,
) -> tuple[Judgement, ...]:
    """Judge the claims of a segment in order, each against the values that hold when it is reached.

    Args:
        steps: the steps that were claimed, in order.
        claims: one claim for each of them.
        values: the verified values before the first step.
        beyond_failure: go on behind a claim that is not accepted, taking its value as it stands (for observing);
            otherwise the claims behind it are not judged, since they may rest on it.
        independent: go on behind it with the claims that do not rest on it; the judgement of one that does has neither
            a value nor verdicts.
        timeout: seconds that one check of the user's may take; None waits for as long as it takes.
        remaining: seconds that all of these checks may take together.
    """
    patience = Patience(timeout, remaining)
    judging = _judge(steps, claims, values, beyond_failure, independent)
    verdict: Verdict | None = None
    while True:
        try:
            verdict = run_check(*judging.send(verdict), patience)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            return cast("tuple[Judgement, ...]", end.value)


async def ajudge_claims(
    steps: Sequence[Step],
    claims: Sequence[Claim],
    values: Mapping[str, Value],
    *,
    beyond_failure: bool = False,
    independent: bool = False,
    timeout: float | None = None,
    remaining: float | None = None,
) -> tuple[Judgement, ...]:
    """As `judge_claims`, without blocking the event loop: async checks are awaited in it, others run in threads."""
    patience = Patience(timeout, remaining)
    judging = _judge(steps, claims, values, beyond_failure, independent)
    verdict: Verdict | None = None
    while True:
        try:
            due = judging.send(verdict)  # type: ignore[arg-type]
        except StopIteration as end:
            return cast("tuple[Judgement, ...]", end.value)
        verdict = await arun_check(*due, patience)


_Due = tuple[Check, "Step", Mapping[str, Value], Claim]


def _judge(
    steps: Sequence[Step], claims: Sequence[Claim], values: Mapping[str, Value], beyond_failure: bool, independent: bool
) -> Generator[_Due, Verdict, tuple[Judgement, ...]]:
    """Yield every user's check that is due, receive its verdict, and return the judgements."""
    state = dict(values)
    judged: list[Judgement] = []
    open_steps: set[str] = set()  # not accepted, or resting on such
    for step, claim in zip(steps, claims, strict=True):
        if not open_steps.isdisjoint(step.reads):
            # Passed on, so that what rests on this one is not judged either.
            open_steps.add(step.id)
            judged.append(Judgement(claim, None, ()))
            continue
        judgement = yield from _judge_one(step, state, claim)
        judged.append(judgement)
        verdict = judgement.verdict
        if judgement.value is None or (verdict is not None and verdict.outcome != "pass" and not beyond_failure):
            if not independent:
                break
            open_steps.add(step.id)
            continue
        state[step.id] = judgement.value
    return tuple(judged)


def _judge_one(step: Step, values: Mapping[str, Value], claim: Claim) -> Generator[_Due, Verdict, Judgement]:
    try:
        value = step.read(claim.value)
    except ValueRefused as error:
        # Where the step has no exact value, no other text can fare better.
        undefined = check_defined(step, values)
        return Judgement(claim, None, (undefined or Verdict("fail", "type", "malformed", str(error)),))
    verdicts: list[Verdict] = []
    if step.expression is not None:
        # Before the other checks: the first failure is the one that is reported.
        verdicts.append(check_arithmetic(step, values, claim, value))
    for check in step.checks:
        if step.origin is not None and not isinstance(check, Evaluates):
            # Users' checks were written for the step of the procedure, not for the run's copy with another id.
            written = step.origin.step
            read = MappingProxyType({**_as_written(step, values), written.id: value})
            verdicts.append((yield check, written, read, replace(claim, step=written.id)))
        else:
            read = MappingProxyType({**{name: values[name] for name in step.reads}, step.id: value})
            verdicts.append((yield check, step, read, claim))
    return Judgement(claim, value, tuple(verdicts))


def _as_written(step: Step, values: Mapping[str, Value]) -> dict[str, Value]:
    """The values that a step of a run reads, under the names that they have in its procedure."""
    assert step.origin is not None
    names = dict(step.origin.names)
    pairs = ((name, names.get(name, name)) for name in step.origin.step.reads)
    return {name: values[own] for name, own in pairs if own in values}
