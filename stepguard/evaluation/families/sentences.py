"""Operations in English sentences, and the check of a step that only a sentence describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from stepguard.core.verdicts import Claim
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Expression
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "+": (
        "Add {right} to {left}.",
        "Work out the sum of {left} and {right}.",
        "Put {left} and {right} together.",
        "Increase {left} by {right}.",
    ),
    "-": (
        "Subtract {right} from {left}.",
        "Take {right} away from {left}.",
        "Work out {left} less {right}.",
        "Reduce {left} by {right}.",
    ),
    "*": (
        "Multiply {left} by {right}.",
        "Take {left} {right} times.",
        "Work out the product of {left} and {right}.",
        "Make {left} {right} times as large.",
    ),
    "/": (
        "Divide {left} by {right}.",
        "Split {left} into {right} equal parts and take one of them.",
        "Work out the quotient of {left} and {right}.",
        "Share {left} out equally among {right}.",
    ),
}
"""By operation; `left` and `right` as in ``left - right``."""


@dataclass(frozen=True, slots=True)
class FormulaCheck:
    """The check of a step that is asked in a sentence alone: the formula behind it, evaluated exactly.

    The step has no expression of its own, which a prompt would show beside the sentence.
    """

    expression: Expression

    __name__: ClassVar[str] = "formula"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether the value is the formula's, rounded as the step declares."""
        return values[step.id] == step.type.convert(evaluate(self.expression, values))
