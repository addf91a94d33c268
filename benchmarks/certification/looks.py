"""How an expression is written: operators, brackets, blanks, LaTeX, with names or with numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from certification.truth import Bin, Cmp, Fn, Lit, Neg, Tree, Truth, Undefined, Var, compute, number_text

__all__ = ["Look", "leaf_reduced", "show"]

_CMP, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)
_MINUS = "-\u2212"


def _plain(value: Fraction, inside: bool) -> str:
    return number_text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A way of writing expressions.

    Attributes:
        signs: what stands for an operator; itself where it is not listed.
        blank: what stands around operators.
        leaf: the text of a number, and whether it is among the arguments of a function.
        names: whether variables are shown by their names.
        bare: whether a negative number goes without brackets behind an operator.
        boxed: whether every number has brackets.
        latex: whether divisions are fractions of LaTeX.
        brackets: the opening and the closing one.
    """

    signs: Mapping[str, str] = field(default_factory=dict)
    blank: str = " "
    leaf: Callable[[Fraction, bool], str] = _plain
    names: bool = False
    bare: bool = False
    boxed: bool = False
    latex: bool = False
    brackets: tuple[str, str] = ("(", ")")


def show(tree: Tree, state: Mapping[str, Truth], look: Look | None = None) -> str:
    """The text of an expression; where `look` has no names, with the values of `state` in it."""
    return _Show(look or Look(), state).text(tree, first=True, inside=False)[0]


class _Show:
    def __init__(self, look: Look, state: Mapping[str, Truth]) -> None:
        self.look = look
        self.state = state

    def text(self, tree: Tree, *, first: bool, inside: bool) -> tuple[str, int]:
        """The text, and how tightly it holds together."""
        look = self.look
        match tree:
            case Lit(value):
                return self.number(value, inside)
            case Var(name):
                value_ = self.state.get(name)
                return self.number(value_, inside) if isinstance(value_, Fraction) and not look.names else (name, _ATOM)
            case Neg(operand):
                inner = self.within(operand, _POWER, first=False, inside=inside)
                return look.signs.get("-", "-") + inner, _SIGN
            case Bin("^", base, exponent):
                below = self.within(base, _ATOM, first=False, inside=inside)
                above = self.within(exponent, _SIGN, first=False, inside=inside)
                return f"{below}{look.signs.get('^', '^')}{above}", _POWER
            case Bin("/", left, right) if look.latex:
                over = self.within(left, _SUM, first=True, inside=inside)
                return f"\\frac{{{over}}}{{{self.within(right, _SUM, first=True, inside=inside)}}}", _ATOM
            case Bin(operator, left, right):
                level = _SUM if operator in "+-" else _PRODUCT
                one = self.within(left, level, first=first, inside=inside)
                two = self.within(right, level + 1, first=False, inside=inside)
                return f"{one}{self.sign(operator)}{two}", level
            case Cmp(operator, left, right):
                one, two = (self.within(each, _SUM, first=True, inside=inside) for each in (left, right))
                return f"{one}{self.sign(operator)}{two}", _CMP
            case Fn(name, arguments, mode, places):
                shown = [self.text(each, first=True, inside=True)[0] for each in arguments]
                more = [str(places), mode] if name == "round" else []
                return f"{name}({', '.join(shown + more)})", _ATOM

    def sign(self, operator: str) -> str:
        # Two signs without a blank would be another operator, and `%` next to a digit is read as percent.
        blank = " " if operator in ("%", "==", "!=", "<=", ">=") else self.look.blank
        return f"{blank}{self.look.signs.get(operator, operator)}{blank}"

    def number(self, value: Fraction, inside: bool) -> tuple[str, int]:
        text = self.look.leaf(value, inside)
        if self.look.boxed:
            return self.bracketed(text), _ATOM
        return text, _PRODUCT if "/" in text else _SIGN if text[0] in _MINUS else _ATOM

    def within(self, tree: Tree, level: int, *, first: bool, inside: bool) -> str:
        text, own = self.text(tree, first=first, inside=inside)
        starts = text[0] in _MINUS and not first
        return self.bracketed(text) if own < level or (starts and not (self.look.bare and own >= _PRODUCT)) else text

    def bracketed(self, text: str) -> str:
        return f"{self.look.brackets[0]}{text}{self.look.brackets[1]}"


def leaf_reduced(tree: Tree, state: Mapping[str, Truth]) -> Tree | None:
    """The expression with its first innermost operation carried out, None where only a number is left."""
    match tree:
        case Lit() | Var():
            return None
        case Cmp(operator, left, right):
            one, two = leaf_reduced(left, state), leaf_reduced(right, state)
            if one is not None:
                return Cmp(operator, one, right)
            return None if two is None else Cmp(operator, left, two)
        case Bin(operator, left, right):
            one, two = leaf_reduced(left, state), leaf_reduced(right, state)
            if one is not None:
                return Bin(operator, one, right)
            if two is not None:
                return Bin(operator, left, two)
        case Neg(operand):
            inner = leaf_reduced(operand, state)
            if inner is not None:
                return Neg(inner)
        case Fn(name, arguments, mode, places):
            for at, each in enumerate(arguments):
                inner = leaf_reduced(each, state)
                if inner is not None:
                    return Fn(name, (*arguments[:at], inner, *arguments[at + 1 :]), mode, places)
    found = compute(tree, state)
    if not isinstance(found, Fraction):
        raise Undefined("no number")
    return Lit(found)
