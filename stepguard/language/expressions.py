"""The expression language: what it means for a step to be arithmetic.

One small exact language serves procedures and the working that models write. It is parsed by an allow-list over
tokens; nothing here evaluates Python, and names mean variables of the procedure only.

===================  ==========================================================================================
``+ - * /``          exact; ``/`` of integers is a fraction. Also ``× · ÷ −``
``//`` ``%``         floor division and its remainder: ``-7 // 2`` is -4, ``-7 % 3`` is 2; ``mod`` is ``%``
``^`` or ``**``      power, right-associative, binds tighter than a leading minus: ``-2^2`` is -4
``%`` at a number    a percentage, where nothing stands right behind it: ``10%`` is 1/10, ``price * 10% + 7``
``< <= > >= == !=``  a truth value; not chained
``and or not``       join truth values, which may be variables; ``and`` and ``or`` together need brackets
functions            ``min max abs floor ceil trunc sqrt`` (exact only), ``round(x, places, mode)``
===================  ==========================================================================================

``round`` takes 0 places and ``half_up`` (ties away from zero) unless told otherwise. Division that cuts off towards
zero is ``trunc(a / b)``, and ``a - b * trunc(a / b)`` its remainder: ``trunc(-7 / 2)`` is -3. Multiplication is always
written (``2x`` and ``2(3+4)`` are errors, not guesses), and so is what could be read in two ways: ``10%x``, ``x %3``,
``0·5`` (a decimal point in print).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.values import Rounding

FUNCTIONS: Final[dict[str, int | None]] = {
    "min": None, "max": None, "abs": 1, "floor": 1, "ceil": 1, "trunc": 1, "sqrt": 1, "round": 3,
}  # fmt: skip
"""Function name -> the most arguments it takes (None: no limit); every one takes at least one."""

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"==": operator.eq, "!=": operator.ne},
}
"""Comparison operator -> its meaning for two values of one kind."""

MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""Comparison operator -> the one that says the same with the sides swapped."""

RESERVED: Final = frozenset(
    {*FUNCTIONS, "mod", "and", "or", "not", "if", "else", "for", "in", "where", "true", "false"}
)
"""Names that cannot be variables."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; `percent`: it was written as a percentage, ``5%``, which says no more than its value does."""

    value: Exact
    percent: bool = field(default=False, compare=False, repr=False)

    @property
    def negated(self) -> Number:
        """The same with the other sign."""
        return Number(-self.value, self.percent)


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    """A leading minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands of one precedence level, ``+ -`` or ``* / // %``, computed from left to right.

    Flat, so that a sum of thousands of terms is not thousands of levels deep. ``len(operators)`` is one less than
    ``len(operands)``.
    """

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]

    @property
    def additive(self) -> bool:
        """Whether this is a sum (or difference), not a product."""
        return self.operators[0] in "+-"


@dataclass(frozen=True, slots=True)
class Power:
    """``base ^ exponent``."""

    base: Expression
    exponent: Expression


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two numbers."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language. `mode` is the rounding mode of ``round``, None for every other function."""

    function: str
    arguments: tuple[Expression, ...]
    mode: Rounding | None = None


@dataclass(frozen=True, slots=True)
class Logic:
    """Truth values joined by ``and``, or by ``or``; all of them are worked out."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a truth value."""

    operand: Expression


Expression = Number | Name | Negate | Chain | Power | Compare | Call | Logic | Not

TRUTHS: Final = (Compare, Logic, Not)
"""The expressions whose value is a truth value. A variable may hold one, too."""


def names_in(tree: Expression) -> tuple[str, ...]:
    """The variables an expression reads, each once, in the order they first appear."""
    found: dict[str, None] = {}
    stack: list[Expression] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found[node.name] = None
        stack.extend(reversed(parts_of(node)))
    return tuple(found)


def truths_in(tree: Expression) -> frozenset[str]:
    """The variables that stand where a truth value is needed."""
    joined = [part for node in walk(tree) if isinstance(node, Logic | Not) for part in parts_of(node)]
    return frozenset(each.name for each in joined if isinstance(each, Name))


def parts_of(tree: Expression) -> tuple[Expression, ...]:
    """The direct children of an expression."""
    match tree:
        case Negate(operand) | Not(operand):
            return (operand,)
        case Chain(operands, _) | Call(_, operands, _) | Logic(_, operands):
            return operands
        case Power(base, exponent):
            return (base, exponent)
        case Compare(_, left, right):
            return (left, right)
        case Number() | Name():
            return ()


def map_parts(tree: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same expression, with something else in the place of each of its direct children."""
    match tree:
        case Negate(operand):
            return Negate(change(operand))
        case Not(operand):
            return Not(change(operand))
        case Chain(operands, operators):
            return Chain(tuple(map(change, operands)), operators)
        case Call(function, operands, mode):
            return Call(function, tuple(map(change, operands)), mode)
        case Logic(operator, operands):
            return Logic(operator, tuple(map(change, operands)))
        case Power(base, exponent):
            return Power(change(base), change(exponent))
        case Compare(operator, left, right):
            return Compare(operator, change(left), change(right))
        case Number() | Name():
            return tree


def walk(tree: Expression) -> Iterator[Expression]:
    """Yield an expression and all of its parts."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(parts_of(node))


def inner_comparison(tree: Expression) -> Expression | None:
    """Find a comparison that is computed with or compared, which leaves the whole expression without a value."""
    return next(
        (
            part
            for node in walk(tree)
            if not isinstance(node, Logic | Not)
            for part in parts_of(node)
            if isinstance(part, TRUTHS)
        ),
        None,
    )


def format_expression(tree: Expression, *, percentages: bool = False) -> str:
    """Write an expression as text; parsing it gives an equal tree.

    Args:
        percentages: whether a percentage keeps its sign where nothing is computed with it: alone, compared, or an
            argument of a function.
    """
    if type(tree) is Chain and (flat := _flat(tree)) is not None:  # no mutate: only faster, the text is the same below
        return flat
    match tree:
        case Number(value, percent):
            return f"{format_exact(exact(Fraction(value) * 100))}%" if percent and percentages else format_exact(value)
        case Name(name):
            return name
        case Negate(operand):
            return f"-{_bracketed(operand, tight=True)}"
        case Chain(operands, operators):
            pieces = [_operand(operands[0], tree, first=True)]
            for operator, operand in zip(operators, operands[1:], strict=True):
                pieces += [operator, _operand(operand, tree, first=False)]
            return " ".join(pieces)
        case Power(base, exponent):
            return f"{_bracketed(base, tight=False)}^{_bracketed(exponent, tight=True)}"
        case Compare(operator, left, right):
            return f"{_side(left, percentages)} {operator} {_side(right, percentages)}"
        case Logic(operator, operands):
            joined = [
                _side(each, percentages) if type(each) is Logic else format_expression(each, percentages=percentages)
                for each in operands
            ]
            return f" {operator} ".join(joined)
        case Not(operand):
            plain = isinstance(operand, Name | Not)
            shown = format_expression(operand, percentages=percentages) if plain else _side(operand, percentages)
            return f"not {shown}"
        case Call(function, arguments, mode):
            given = [format_expression(argument, percentages=percentages) for argument in arguments]
            return f"{function}({', '.join(given + ([mode] if mode else []))})"


def format_value(tree: Expression) -> str:
    """Write an expression of a procedure: as `format_expression`, with the signs of percentages."""
    return format_expression(tree, percentages=True)


def _side(node: Expression, percentages: bool) -> str:
    text = format_expression(node, percentages=percentages)
    return f"({text})" if isinstance(node, TRUTHS) else text


def _flat(tree: Chain) -> str | None:
    """The fast path for a chain of names and plain numbers, which most steps are; None for any other."""
    pieces: list[str] = []
    for operand in tree.operands:
        if pieces:
            pieces.append(tree.operators[len(pieces) // 2])
        if type(operand) is Name:  # no mutate: likewise
            pieces.append(operand.name)
        elif type(operand) is Number and type(operand.value) is int and operand.value >= 0:
            pieces.append(str(operand.value))
        else:
            return None
    return " ".join(pieces)


def _operand(node: Expression, parent: Chain, *, first: bool) -> str:
    text = format_expression(node)
    inner_product = type(node) is Chain and not node.additive and parent.additive
    loose = isinstance(node, TRUTHS) or (type(node) is Chain and not inner_product)
    negative = (type(node) is Negate or (type(node) is Number and node.value < 0)) and not first
    # A product that starts with a minus reads as `a - -b * c` without brackets.
    leading = inner_product and not first and text.startswith("-")
    # A value that is no decimal is shown as a fraction: `58 / (8/7)`.
    quotient = type(node) is Number and "/" in text and not first and not parent.additive
    return f"({text})" if loose or negative or leading or quotient else text


def _bracketed(node: Expression, *, tight: bool) -> str:
    text = format_expression(node)
    # -2 and 1/3 need brackets as a base: -2^2 and 1/3^2 read as something else.
    plain = type(node) in (Name, Call) or (type(node) is Number and text.replace(".", "", 1).isdigit())
    return text if plain or (tight and type(node) is Power) else f"({text})"
