"""How a double carries out one step rightly."""

from __future__ import annotations

from collections.abc import Mapping

from stepguard.errors import ConfigError, EvaluationError, ValueRefused
from stepguard.exact import evaluate, substitute
from stepguard.procedure import Step
from stepguard.values import Value

__all__ = ["work_out", "written"]

_DONE = "done"


def work_out(step: Step, values: Mapping[str, Value], answers: Mapping[str, object]) -> tuple[str, Value] | None:
    """Working and value of a step; None where a value that it needs is not there or makes no sense.

    Args:
        step: the step.
        values: what it reads.
        answers: what to say for steps that only words describe; ``"done"`` for the others.

    Raises:
        ConfigError: an answer is no value of its step, or the step has a formula.
    """
    if step.expression is None:
        try:
            return "as asked", step.type.accept(answers[step.id]) if step.id in answers else _DONE
        except ValueRefused as error:
            raise ConfigError(f"the answer for {step.id!r} is no {step.type}: {error}", option="answers") from None
    if step.id in answers:
        raise ConfigError(
            f"step {step.id!r} has a formula, which is carried out: answers= is for steps in words", option="answers"
        )
    try:
        value = step.type.convert(evaluate(step.expression, values))
        return substitute(step.expression, values), value
    except (EvaluationError, KeyError):
        return None


def written(step: Step, value: Value) -> str:
    """A value as a reply writes it."""
    # What is made up need not be of the step's type.
    return value if isinstance(value, str) else step.type.write(value)
