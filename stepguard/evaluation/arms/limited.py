"""Checkers that know less than everything: what a guard is worth where no exact check is to be had."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from typing import Final, Protocol

from stepguard.checks import Judgement, judge_claims
from stepguard.core.verdicts import Claim, Verdict
from stepguard.engine.actions import CheckClaims
from stepguard.errors import EvaluationError
from stepguard.evaluation.families import Task
from stepguard.language.evaluation import evaluate
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step


class ClaimChecker(Protocol):
    """Another judgement of claims than the guard's."""

    def judge(self, action: CheckClaims) -> tuple[Judgement, ...]:
        """The judgements, as `stepguard.checks.judge_claims` returns them."""


def judged_by(action: CheckClaims, verdict: Callable[[Step, Judgement], Verdict]) -> tuple[Judgement, ...]:
    """The judgements of claims by somebody else; what cannot be read is refused as the guard does.

    Each claim is judged against what was accepted before it, wrong or not.
    """
    judged: list[Judgement] = []
    refused: set[str] = set()
    claims = judge_claims(
        action.steps, action.claims, action.values, beyond_failure=True, independent=action.independent
    )
    for step, full in zip(action.steps, claims, strict=False):
        if not refused.isdisjoint(step.reads):
            refused.add(step.id)
            judged.append(replace(full, value=None, verdicts=()))
            continue
        if full.value is not None:
            full = replace(full, verdicts=(verdict(step, full),))
        judged.append(full)
        if full.value is None or full.verdicts[0].outcome != "pass":
            if not action.independent:
                break
            refused.add(step.id)
    return tuple(judged)


class Limited:
    """A checker that lets some wrong claims pass. What cannot be read it refuses as the full one does.

    Args:
        knows: ``operands``: the working must be the step's, whatever it is said to give; ``range``: a number must not
            be larger in magnitude than the largest of the task; ``residue``: it must leave the right remainder;
            ``noisy``: a wrong claim is noticed with probability `catch`, drawn anew for each claim; ``form``: of a
            published item, whether a value can be one of the step at all, as its family knows it.
        task: what is run; its seed decides what a noisy checker overlooks.
        catch: see `knows`.
        modulus: see `knows`.
    """

    def __init__(self, knows: str, task: Task, *, catch: float, modulus: int) -> None:
        self._knows: Final = knows
        self._task: Final = task
        self._catch: Final = catch
        self._modulus: Final = modulus
        numbers = [number for each in task.truth.values() if (number := _number(each)) is not None]
        self._largest: Final[int | Fraction] = max([*numbers, *(-number for number in numbers)], default=0)
        self._accepted: Final[dict[str, Value]] = {}
        self._chance: Final = random.Random(f"limited:{knows}:{catch}:{task.seed}")

    def judge(self, action: CheckClaims) -> tuple[Judgement, ...]:
        known: dict[str, Value] = dict(action.values)

        def verdict(step: Step, full: Judgement) -> Verdict:
            fault = self._fault(step, full, known)
            if fault is None:
                assert full.value is not None
                known[step.id] = self._accepted[step.id] = full.value
            return fault or Verdict("pass", self._knows)

        return judged_by(action, verdict)

    def _fault(self, step: Step, full: Judgement, known: dict[str, Value]) -> Verdict | None:
        verdict, value = full.verdict, full.value
        wrong = verdict is not None and verdict.outcome != "pass"
        fault = Verdict("fail", self._knows, "wrong_value", f"by its {self._knows} the value cannot be right")
        if self._knows == "noisy":
            return verdict if wrong and self._chance.random() < self._catch else None
        if self._knows == "form":
            return None if self._plausible(step, value, known) else fault
        if self._knows == "operands":
            return self._misworked(step, full, known)
        number: int | Fraction | None = None if value is None else _number(value)
        if number is None:
            return None
        if self._knows == "range":
            return None if -self._largest <= number <= self._largest else fault
        expected = _expected(step, known)
        if expected is None or (number - expected) % self._modulus == 0:
            return None
        return fault

    def _plausible(self, step: Step, value: Value | None, known: Mapping[str, Value]) -> bool:
        published = self._task.published
        assert published is not None
        assert published.plausible is not None
        before = takewhile(lambda each: each.id != step.id, self._task.procedure.steps)
        if value is None or any(each.performer == "model" and each.id not in self._accepted for each in before):
            return False  # in which state the step would be taken is not known yet
        return published.plausible(step.id, value, {**known, **self._accepted})

    def _misworked(self, step: Step, full: Judgement, known: dict[str, Value]) -> Verdict | None:
        """What is wrong with the working, were the result right."""
        if step.expression is None:
            return None
        try:
            right = step.type.write(step.type.convert(evaluate(step.expression, known)))
        except EvaluationError:
            return full.verdict
        claim = Claim(step.id, full.claim.work, right, full.claim.text)
        verdict = judge_claims((step,), (claim,), known)[0].verdict
        return None if verdict is None or verdict.outcome == "pass" else verdict


def _expected(step: Step, known: dict[str, Value]) -> int | Fraction | None:
    if step.expression is None:
        return None
    try:
        return _number(step.type.convert(evaluate(step.expression, known)))
    except EvaluationError:
        return None


def _number(value: Value) -> int | Fraction | None:
    number = to_exact(value)
    return number if isinstance(number, int | Fraction) and not isinstance(number, bool) else None
