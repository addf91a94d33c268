"""Checks: is this claim about this step right?

A check is a function of the step, the values it reads and the claim. It says pass, fail, undecided or not
applicable. A step is verified when at least one check applies and all that apply pass; a check that raises is
undecided, never a pass and never a crash.

A check of your own is a plain callable::

    def in_stock(step, values, claim):
        return values["ordered"] <= values["stock"]     # True: pass, False: fail, None: not applicable

    Step("ordered", instruction="How many does the customer want?", reads=["stock"], type="integer", checks=[in_stock])
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from stepguard.checks.arithmetic import check_arithmetic, check_defined
from stepguard.errors import ValueRefused
from stepguard.values import Value
from stepguard.verdicts import Claim, Verdict, shorten

if TYPE_CHECKING:
    from stepguard.procedure import Step

__all__ = ["Check", "Judgement", "judge_claims"]


class Check(Protocol):
    """A check of one step.

    Returns True (pass), False (fail), None (not applicable) or a `Verdict`. `values` holds what the step reads and,
    under its own id, the value it would get; `claim` holds what was written.
    """

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> Verdict | bool | None: ...


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


def judge_claims(
    steps: Sequence[Step], claims: Sequence[Claim], values: Mapping[str, Value], *, beyond_failure: bool = False
) -> tuple[Judgement, ...]:
    """Judge the claims of a segment in order, each against the values that hold when it is reached.

    Args:
        steps: the steps that were claimed, in order.
        claims: one claim for each of them.
        values: the verified values before the first step.
        beyond_failure: go on behind a claim that is not accepted, taking its value as it stands (for observing);
            otherwise the claims behind it are not judged, since they may rest on it.
    """
    state = dict(values)
    judged: list[Judgement] = []
    for step, claim in zip(steps, claims, strict=True):
        judgement = _judge(step, state, claim)
        judged.append(judgement)
        verdict = judgement.verdict
        if judgement.value is None or (verdict is not None and verdict.outcome != "pass" and not beyond_failure):
            break
        state[step.id] = judgement.value
    return tuple(judged)


def _judge(step: Step, values: Mapping[str, Value], claim: Claim) -> Judgement:
    try:
        value = step.type.read(claim.value)
    except ValueRefused as error:
        # Where the step has no exact value, no other text can fare better.
        undefined = check_defined(step, values)
        return Judgement(claim, None, (undefined or Verdict("fail", "type", "malformed", str(error)),))
    verdicts: list[Verdict] = []
    if step.expression is not None:
        verdicts.append(check_arithmetic(step, values, claim, value))
    if step.checks:
        read = MappingProxyType({**{name: values[name] for name in step.reads}, step.id: value})
        verdicts += [_user_verdict(check, step, read, claim) for check in step.checks]
    return Judgement(claim, value, tuple(verdicts))


def _user_verdict(check: Check, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
    named: object = getattr(check, "__name__", None)
    name = named if isinstance(named, str) else type(check).__name__
    try:
        found: object = check(step, values, claim)
    except Exception as error:  # noqa: BLE001 - a check is foreign code: whatever it raises, it did not decide
        import traceback  # it also knows what to say of an error whose own text fails

        reason = "".join(traceback.format_exception_only(error)).strip()
        return Verdict("undecided", name, "undecided", shorten(reason, 500))
    if isinstance(found, Verdict):
        return found
    if found is True:
        return Verdict("pass", name)
    if found is False:
        return Verdict("fail", name, "wrong_value", f"{name} says no")
    if found is None:
        return Verdict("not_applicable", name)
    if inspect.iscoroutine(found):
        found.close()
        return Verdict("undecided", name, "undecided", f"{name} is async; a check is a plain function", retry=False)
    return Verdict("undecided", name, "undecided", f"{name} returned {type(found).__name__}, not a verdict")
