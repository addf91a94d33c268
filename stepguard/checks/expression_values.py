"""The check of a step whose value follows exactly from others, but not by arithmetic: dates, texts, records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepguard.checks.built import BuiltCheck
from stepguard.core.verdicts import Claim, Verdict
from stepguard.errors import EvaluationError
from stepguard.language.expressions import Expression, format_expression
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.operands import variables_in
from stepguard.language.values import Value, show_value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step


@dataclass(frozen=True, slots=True)
class Evaluates(BuiltCheck):
    """The value is what an expression comes to, exactly. A pass is ``"proved"``."""

    expression: Expression

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in the expression."""
        return variables_in(self.expression)

    def precondition(self, step: Step, values: Mapping[str, Value]) -> Verdict | None:
        """The verdict on every claim where the expression has no value of the step's type; None where it has one."""
        expected = self._expected(step, values)
        return expected if isinstance(expected, Verdict) else None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        expected = self._expected(step, values)
        if isinstance(expected, Verdict):
            return expected
        if values[step.id] == expected:
            return self._pass(strength="proved")
        text = format_expression(self.expression)
        return self._fail(f"{text} is {show_value(expected)}, not {show_value(values[step.id])}")

    def _expected(self, step: Step, values: Mapping[str, Value]) -> Value | Verdict:
        try:
            return step.type.convert(evaluate_term(self.expression, values, {}))
        except EvaluationError as error:
            text = format_expression(self.expression)
            return self._undecided(f"{text} has no value of type {step.type}: {error}", retry=False)
