"""Is this working the same expression, up to harmless rewriting?

Two expressions are the same working when their normal forms are equal: values stand for names, signs are folded
into terms and factors, sums and products are unordered, brackets around sums and products are dissolved. So
``-96 + 106`` is the working of ``-96 - (-106)``, and ``5 + 5`` is not, although all three are 10.

A normal form is text: cheap to build, to compare and to read in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from stepguard.expressions import Call, Chain, Compare, Expression, Name, Negate, Number, Power
from stepguard.numerals import Exact
from stepguard.values import Value, show_value, to_exact

__all__ = ["normal_form", "operands_of"]

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_UNORDERED: Final = frozenset({"min", "max"})
_MAX_REPEATED: Final = 8

_Signed = tuple[bool, str]  # negative, text


def normal_form(tree: Expression, values: Mapping[str, Value]) -> str:
    """The normal form of `tree` with `values` in place of its variables.

    Raises:
        KeyError: a variable has no value.
    """
    negative, text = _Form(values).signed(tree)
    return f"-{text}" if negative else text


def operands_of(tree: Expression, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The magnitudes of the numbers in an expression, sorted: two workings differ in operands when these differ."""
    found: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        match node:
            case Number(value):
                found.append(str(abs(value)))
            case Name(name):
                found.append(_leaf(to_exact(values[name]))[1])
            case Negate(operand):
                stack.append(operand)
            case Chain(operands, _) | Call(_, operands, _):
                stack.extend(operands)
            case Power(base, exponent):
                stack += [base, exponent]
            case Compare(_, left, right):
                stack += [left, right]
    return tuple(sorted(found))


def _leaf(value: Exact | bool | str) -> _Signed:
    if type(value) is int:
        return value < 0, str(abs(value))
    if type(value) is Fraction:
        # A fraction as the product that a division would give: 1/3 and `1 / 3` are the same working.
        return value < 0, "*".join(sorted((str(abs(value.numerator)), f"/{value.denominator}")))
    return False, show_value(value)  # type: ignore[arg-type]


class _Form:
    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values

    def text(self, tree: Expression) -> str:
        negative, text = self.signed(tree)
        return f"-{text}" if negative else text

    def signed(self, tree: Expression) -> _Signed:
        match tree:
            case Number(value):
                return _leaf(value)
            case Name(name):
                return _leaf(to_exact(self.values[name]))
            case Negate(operand):
                if _is_sum(operand):
                    return False, self.sum(tree)
                negative, text = self.signed(operand)
                return not negative, text
            case Chain():
                if tree.additive:
                    return False, self.sum(tree)
                return self.product([tree])
            case Power(base, exponent):
                if _repeated(tree):
                    return self.product([tree])
                return False, f"({self.text(base)})^({self.text(exponent)})"
            case Compare(operator, left, right):
                sides = self.text(left), self.text(right)
                flipped = sides[::-1]
                ways = [f"{sides[0]}{operator}{sides[1]}", f"{flipped[0]}{_FLIPPED[operator]}{flipped[1]}"]
                return False, min(ways)
            case Call(function, arguments, mode):
                shown = [self.text(argument) for argument in arguments]
                if function in _UNORDERED:
                    shown.sort()
                return False, f"{function}({','.join(shown)}{',' + mode if mode else ''})"

    def sum(self, tree: Expression) -> str:
        terms: list[str] = []
        self.add_terms(tree, False, terms)
        terms.sort()
        return f"({''.join(terms)})"

    def add_terms(self, tree: Expression, negative: bool, terms: list[str]) -> None:
        if type(tree) is Chain and tree.additive:
            self.add_terms(tree.operands[0], negative, terms)
            for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
                self.add_terms(operand, negative ^ (operator == "-"), terms)
        elif type(tree) is Negate:
            self.add_terms(tree.operand, not negative, terms)
        else:
            sign, text = self.signed(tree)
            # Zero has no sign: 5 - 0 and 5 + 0 are the same working.
            terms.append(f"+{text}" if sign == negative or text == "0" else f"-{text}")

    def product(self, factors: list[Expression]) -> _Signed:
        over: list[str] = []
        negative = False
        for factor in factors:
            negative ^= self.add_factors(factor, over)
        over.sort()
        return negative, "*".join(over) if len(over) > 1 else over[0]

    def add_factors(self, tree: Expression, found: list[str]) -> bool:
        """Add the factors of `tree`; return whether their signs make it negative."""
        if type(tree) is Negate:
            return not self.add_factors(tree.operand, found)
        if type(tree) is Chain and not tree.additive:
            if any(operator in ("//", "%") for operator in tree.operators):
                # Not a product: what stands left of it is one operand, in order.
                found.append(self.ordered(tree))
                return False
            negative = self.add_factors(tree.operands[0], found)
            for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
                inner: list[str] = []
                negative ^= self.add_factors(operand, inner)
                found += inner if operator == "*" else [_inverse(factor) for factor in inner]
            return negative
        if type(tree) is Chain:
            return self.add_sum(tree, found)
        if type(tree) is Power and (times := _repeated(tree)):
            negative = False
            for _ in range(times):
                negative ^= self.add_factors(tree.base, found)
            return negative
        negative, text = self.signed(tree)
        found += text.split("*") if type(tree) in (Number, Name) else [text]
        return negative

    def add_sum(self, tree: Chain, found: list[str]) -> bool:
        """A sum as a factor, with the sign that makes `a - b` and `-(b - a)` the same factor."""
        terms: list[str] = []
        self.add_terms(tree, False, terms)
        flip = min((t for t in terms if t != "+0"), key=lambda term: (term[1:], term), default="+0")[0] == "-"
        if flip:
            terms = [t if t == "+0" else ("-" if t[0] == "+" else "+") + t[1:] for t in terms]
        found.append(f"({''.join(sorted(terms))})")
        return flip

    def ordered(self, tree: Chain) -> str:
        text = self.text(tree.operands[0])
        for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
            text = f"({text} {operator} {self.text(operand)})"
        return text


def _is_sum(tree: Expression) -> bool:
    while type(tree) is Negate:
        tree = tree.operand
    return type(tree) is Chain and tree.additive


def _repeated(tree: Power) -> int:
    """How many times the base is multiplied where that may as well be written out, otherwise 0."""
    exponent = tree.exponent
    if type(exponent) is Number and type(exponent.value) is int and 2 <= exponent.value <= _MAX_REPEATED:
        return exponent.value
    return 0


def _inverse(factor: str) -> str:
    return factor[1:] if factor.startswith("/") else f"/{factor}"
