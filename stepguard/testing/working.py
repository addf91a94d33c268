"""How a double carries out one step rightly."""

from __future__ import annotations

from collections.abc import Mapping

from stepguard.errors import ConfigError, EvaluationError
from stepguard.exact import evaluate, substitute
from stepguard.procedure import Step
from stepguard.values import Value

__all__ = ["work_out"]


def work_out(step: Step, values: Mapping[str, Value], answers: Mapping[str, Value]) -> tuple[str, Value] | None:
    """Working and value of a step; None where a value that it needs is not there or makes no sense.

    Args:
        step: the step.
        values: what it reads.
        answers: what to say for steps that only words describe; ``"done"`` for the others.

    Raises:
        ConfigError: there is an answer for a step that has a formula.
    """
    if step.expression is None:
        return "as asked", answers.get(step.id, "done")
    if step.id in answers:
        raise ConfigError(
            f"step {step.id!r} has a formula, which is carried out: answers= is for steps in words", option="answers"
        )
    try:
        value = step.type.convert(evaluate(step.expression, values))
        return substitute(step.expression, values), value
    except (EvaluationError, KeyError):
        return None
