"""Kinds of steps: what the slips of real models were seen to depend on.

The kind of a step of arithmetic is up to three words, ``"OPERATION SIGNS SIZE"``:

==========  ==========================================================================================
operation   ``+``, ``-``, ``*`` or ``/``
signs       ``plain``: neither an operand nor the result is negative; ``crossing``: only the result is;
            ``negative``: an operand is; ``double``: what is added or subtracted is, as in ``3 - (-4)``
size        of the largest of the operands and the result: ``ones``, ``tens``, ``hundreds``, ``thousands``
            (and more)
==========  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from stepguard.errors import EvaluationError
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import TRUTHS, Chain, Expression, Name, Number
from stepguard.language.values import Value
from stepguard.procedure.steps import Step

OPERATIONS: Final = ("+", "-", "*", "/")
SIGNS: Final = ("plain", "crossing", "negative", "double")
SIZES: Final = ("ones", "tens", "hundreds", "thousands")

Numeric = int | Decimal | Fraction

Rates = tuple[tuple[str, float], ...]
"""Probabilities by kind of step; see `rate_in`."""


def arithmetic_kind(step: Step, values: Mapping[str, Value]) -> str | None:
    """The kind of a step that does one operation on two numbers, as three words; None for any other step."""
    work = step.expression
    if not isinstance(work, Chain) or len(work.operands) != 2 or work.operators[0] not in OPERATIONS:
        return None
    try:
        left, right = (_number(evaluate(operand, values)) for operand in work.operands)
        result = _number(evaluate(work, values))
    except (EvaluationError, KeyError):
        return None
    if left is None or right is None or result is None:
        return None
    sign = work.operators[0]
    digits = len(str(int(max(abs(left), abs(right), abs(result)))))
    return f"{sign} {_signs(sign, left, right)} {SIZES[min(digits, len(SIZES)) - 1]}"


def step_kind(step: Step, values: Mapping[str, Value]) -> str:
    """What kind of step this is: what a run learns about one step, it learns for all of its kind.

    The operation and the signs of a step that does one operation on two numbers (``"- double"``), ``"formula"`` or
    ``"comparison"`` for other expressions, ``"words"`` for steps in words; behind it the type, where that is no plain
    number or text.

    Args:
        values: what it reads; it is enough that they are there for a step with an expression.
    """
    work, kind = step.expression, step.type.kind
    if work is None:
        name = "words"
    elif isinstance(work, TRUTHS):
        name = "comparison"
    else:
        name = _operation(work, values) or "formula"
    return name if kind in ("number", "integer", "text") or name == "comparison" else f"{name} {kind}"


def _operation(work: Expression, values: Mapping[str, Value]) -> str | None:
    if not isinstance(work, Chain) or len(work.operands) != 2 or work.operators[0] not in OPERATIONS:
        return None
    left, right = _leaf(work.operands[0], values), _leaf(work.operands[1], values)
    if left is None or right is None:
        return work.operators[0]
    return f"{work.operators[0]} {_signs(work.operators[0], left, right)}"


def _leaf(node: Expression, values: Mapping[str, Value]) -> Numeric | None:
    value = values.get(node.name) if type(node) is Name else node.value if type(node) is Number else None
    if type(value) is int:
        return value
    return value if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool) else None


def _signs(sign: str, left: Numeric, right: Numeric) -> str:
    if sign in "+-" and right < 0:
        return "double"
    if left < 0 or right < 0:
        return "negative"
    return "crossing" if sign == "-" and left < right else "plain"


def rate_in(rates: Rates, kind: str | None, otherwise: float) -> float:
    """The probability that holds for a kind of step.

    An entry holds for all kinds that begin with its words, so ``("+", 0.02), ("+ double", 0.07)`` says 7 % for
    what adds a negative number and 2 % for other sums; of several entries the one with most words counts.

    Args:
        rates: probabilities by kind.
        kind: see `arithmetic_kind`; None where there is none.
        otherwise: the probability where no entry holds.
    """
    if kind is None:
        return otherwise
    words = kind.split()
    by_kind = dict(rates)
    for count in range(len(words), 0, -1):
        rate = by_kind.get(" ".join(words[:count]))
        if rate is not None:
            return rate
    return otherwise


def _number(value: Value) -> Fraction | None:
    return Fraction(value) if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool) else None
