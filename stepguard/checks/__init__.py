"""Checks: is this claim about this step right?

A check is a function of the step, the values it reads and the claim. It says pass, fail, undecided or not
applicable. A step is verified when at least one check applies and all that apply pass; a check that raises, or takes
longer than ``Guard(check_timeout=...)``, is undecided: never a pass, never a crash, never a hang.

A check of your own is a plain callable::

    def in_stock(step, values, claim):
        return values["ordered"] <= values["stock"]     # True: pass, False: fail, None: not applicable

    Step("ordered", instruction="How many does the customer want?", reads=["stock"], type="integer", checks=[in_stock])

It may be async: an async run awaits it in its own event loop, any other run in a loop of the check's.

Checks that are here, each in a module of its own and, in a file, under a name (`stepguard.checks.registry`):

=====================================================  ===============================================================
`Range`, `Holds`, `Requires`, `Distinct`               bounds, relations between values, preconditions, uniqueness
`DateIs`, `DateHolds`, `DaysBetween`, `DurationIs`     dates and durations
`Quantity`, `Measured`                                 amounts with units (extra ``units``)
`Grounded`                                             what is read from a document stands there
`Pattern`, `OneOf`, `Schema`, `Forbidden`, `Length`    text, and JSON in it (a JSON Schema needs the extra ``schema``)
`Equivalent`, `Derivative`, `Integral`, `Substituted`  formulas
`Solves`, `SolvesSystem`, `SolvesInequality`           solutions
`SameMatrix`                                           matrices
=====================================================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from stepguard.checks.arithmetic import check_arithmetic, check_defined
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.user import Check, Patience, arun_check, run_check
from stepguard.errors import ValueRefused
from stepguard.values import Value
from stepguard.verdicts import STRENGTHS, Claim, Strength, Verdict

if TYPE_CHECKING:
    from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
    from stepguard.checks.durations import DurationIs
    from stepguard.checks.grounding import Grounded
    from stepguard.checks.matrices import SameMatrix
    from stepguard.checks.schema import Schema
    from stepguard.checks.solving import Solves, SolvesInequality, SolvesSystem
    from stepguard.checks.symbolic import Derivative, Equivalent, Integral, Substituted
    from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
    from stepguard.checks.units import Measured, Quantity
    from stepguard.steps import Step

__all__ = [
    "Check",
    "DateHolds",
    "DateIs",
    "DaysBetween",
    "Derivative",
    "Distinct",
    "DurationIs",
    "Equivalent",
    "Forbidden",
    "Grounded",
    "Holds",
    "Integral",
    "Judgement",
    "Length",
    "Measured",
    "OneOf",
    "Pattern",
    "Quantity",
    "Range",
    "Requires",
    "SameMatrix",
    "Schema",
    "Solves",
    "SolvesInequality",
    "SolvesSystem",
    "Substituted",
    "ajudge_claims",
    "find_hopeless",
    "judge_claims",
]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on one claim, and the value it holds (None where it could not be read)."""

    claim: Claim
    value: Value | None
    verdicts: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The one that decides: the first failure, else the first undecided, else a pass; None: no check applies."""
        best: Verdict | None = None
        for each in self.verdicts:
            if each.outcome == "fail":
                return each
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
        return max((each.strength for each in self.verdicts if each.strength is not None), key=STRENGTHS.index)


def find_hopeless(step: Step, values: Mapping[str, Value]) -> Verdict | None:
    """The verdict on every claim about a step where none can be accepted, from the values alone; None where one can.

    The step has no exact value, or a precondition of it (`Requires`) does not hold.
    """
    undefined = check_defined(step, values)
    if undefined is not None:
        return undefined
    conditions = (check for check in step.checks if isinstance(check, Requires))
    return next((found for check in conditions if (found := check.precondition(values)) is not None), None)


def judge_claims(
    steps: Sequence[Step],
    claims: Sequence[Claim],
    values: Mapping[str, Value],
    *,
    beyond_failure: bool = False,
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
        timeout: seconds that one check of the user's may take; None waits for as long as it takes.
        remaining: seconds that all of these checks may take together.
    """
    patience = Patience(timeout, remaining)
    judging = _judge(steps, claims, values, beyond_failure)
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
    timeout: float | None = None,
    remaining: float | None = None,
) -> tuple[Judgement, ...]:
    """As `judge_claims`, without blocking the event loop: async checks are awaited in it, others run in threads."""
    patience = Patience(timeout, remaining)
    judging = _judge(steps, claims, values, beyond_failure)
    verdict: Verdict | None = None
    while True:
        try:
            due = judging.send(verdict)  # type: ignore[arg-type]
        except StopIteration as end:
            return cast("tuple[Judgement, ...]", end.value)
        verdict = await arun_check(*due, patience)


_Due = tuple[Check, "Step", Mapping[str, Value], Claim]


def _judge(
    steps: Sequence[Step], claims: Sequence[Claim], values: Mapping[str, Value], beyond_failure: bool
) -> Generator[_Due, Verdict, tuple[Judgement, ...]]:
    """Yields every check of the user's that is due, takes in its verdict, and returns the judgements."""
    state = dict(values)
    judged: list[Judgement] = []
    for step, claim in zip(steps, claims, strict=True):
        judgement = yield from _judge_one(step, state, claim)
        judged.append(judgement)
        verdict = judgement.verdict
        if judgement.value is None or (verdict is not None and verdict.outcome != "pass" and not beyond_failure):
            break
        state[step.id] = judgement.value
    return tuple(judged)


def _judge_one(step: Step, values: Mapping[str, Value], claim: Claim) -> Generator[_Due, Verdict, Judgement]:
    try:
        value = step.type.read(claim.value)
    except ValueRefused as error:
        # Where the step has no exact value, no other text can fare better.
        undefined = check_defined(step, values)
        return Judgement(claim, None, (undefined or Verdict("fail", "type", "malformed", str(error)),))
    verdicts: list[Verdict] = []
    if step.expression is not None:
        verdicts.append(check_arithmetic(step, values, claim, value))
    for check in step.checks:
        read = MappingProxyType({**{name: values[name] for name in step.reads}, step.id: value})
        verdicts.append((yield check, step, read, claim))
    return Judgement(claim, value, tuple(verdicts))


if not TYPE_CHECKING:  # a type checker is to complain about names that are not there

    def __getattr__(name: str) -> object:
        from stepguard.checks.registry import CHECKS

        for module, attribute in CHECKS.bundled.values():
            if attribute == name:
                found: object = getattr(import_module(module), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
