"""The trees that formulas are read into, and how they are built, searched and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from stepguard.language.digits import format_exact
from stepguard.language.expressions import Name, Number

MAX_NODES: Final = 4000
"""The largest formula, in nodes, that a check works with."""


@dataclass(frozen=True, slots=True)
class Constant:
    """``pi`` or Euler's number."""

    name: Literal["pi", "e"]


@dataclass(frozen=True, slots=True)
class Sum:
    """At least two terms. A difference holds its second term times -1."""

    terms: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """At least two factors. A quotient holds its divisor to the power of -1."""

    factors: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class PowerOf:
    """``base ^ exponent``. A square root is a power of 1/2, ``exp(x)`` one of Euler's number."""

    base: Formula
    exponent: Formula


@dataclass(frozen=True, slots=True)
class CallOf:
    """A function of one argument."""

    function: str
    argument: Formula


Formula = Number | Name | Constant | Sum | Product | PowerOf | CallOf


def negative(tree: Formula) -> Formula:
    """Minus a formula."""
    if isinstance(tree, Number):
        return Number(-tree.value)
    if isinstance(tree, Product) and isinstance(tree.factors[0], Number):
        return product((Number(-tree.factors[0].value), *tree.factors[1:]))
    return product((Number(-1), tree))


def total(terms: Iterable[Formula]) -> Formula:
    """A sum; 0 without terms."""
    flat: list[Formula] = []
    for term in terms:
        flat += term.terms if isinstance(term, Sum) else (term,)
    return Number(0) if not flat else flat[0] if len(flat) == 1 else Sum(tuple(flat))


def product(factors: Iterable[Formula]) -> Formula:
    """A product; 1 without factors."""
    flat: list[Formula] = []
    for factor in factors:
        flat += factor.factors if isinstance(factor, Product) else (factor,)
    return Number(1) if not flat else flat[0] if len(flat) == 1 else Product(tuple(flat))


def quotient(over: Formula, under: Formula) -> Formula:
    """One formula divided by another."""
    return product((over, PowerOf(under, Number(-1))))


def difference(left: Formula, right: Formula) -> Formula:
    """One formula minus another."""
    return total((left, negative(right)))


def root(tree: Formula, degree: int) -> Formula:
    return PowerOf(tree, Number(Fraction(1, degree)))


def symbols_in(*trees: Formula) -> frozenset[str]:
    return frozenset(node.name for tree in trees for node in walk(tree) if isinstance(node, Name))


def count_nodes(tree: Formula) -> int:
    """How many nodes a formula has."""
    return sum(1 for _ in walk(tree))


def walk(tree: Formula) -> Iterator[Formula]:
    """A formula and everything in it."""
    stack: list[Formula] = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def children(node: Formula) -> tuple[Formula, ...]:
    match node:
        case Sum(terms):
            return terms
        case Product(factors):
            return factors
        case PowerOf(base, exponent):
            return base, exponent
        case CallOf(_, argument):
            return (argument,)
        case _:
            return ()


def rebuilt(node: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """A node with its children changed."""
    match node:
        case Sum(terms):
            return Sum(tuple(change(term) for term in terms))
        case Product(factors):
            return Product(tuple(change(factor) for factor in factors))
        case PowerOf(base, exponent):
            return PowerOf(change(base), change(exponent))
        case CallOf(function, argument):
            return CallOf(function, change(argument))
        case _:
            return node


def replace_names(tree: Formula, values: Mapping[str, Formula]) -> Formula:
    """A formula with other formulas in the place of symbols, all at once."""
    if isinstance(tree, Name):
        return values.get(tree.name, tree)
    return rebuilt(tree, lambda node: replace_names(node, values))


def format_formula(tree: Formula) -> str:
    """A formula as text; read again, it has the same value."""
    match tree:
        case Number(value):
            return format_exact(value)
        case Name(name) | Constant(name):
            return name
        case Sum(terms):
            shown = [
                format_formula(term) if not isinstance(term, Sum) else f"({format_formula(term)})" for term in terms
            ]
            return shown[0] + "".join(f" - {each[1:]}" if each[0] == "-" else f" + {each}" for each in shown[1:])
        case Product(factors):
            return _format_product(factors)
        case PowerOf(base, exponent):
            return f"{_tight(base)}^{_tight(exponent)}"
        case CallOf(function, argument):
            return f"{function}({format_formula(argument)})"


def _format_product(factors: tuple[Formula, ...]) -> str:
    sign = ""
    if factors[0] == Number(-1):
        sign, factors = "-", factors[1:]
    text = ""
    for factor in factors:
        inverse = isinstance(factor, PowerOf) and factor.exponent == Number(-1)
        if inverse:
            assert isinstance(factor, PowerOf)
            text += f"{'/' if text else '1/'}{_tight(factor.base)}"
        else:
            shown = _tight(factor) if not isinstance(factor, PowerOf) else format_formula(factor)
            text += f"*{shown}" if text else shown
    return sign + text


def _tight(tree: Formula) -> str:
    text = format_formula(tree)
    plain = isinstance(tree, Name | Constant | CallOf) or (isinstance(tree, Number) and text.replace(".", "").isdigit())
    return text if plain else f"({text})"


def to_data(tree: Formula) -> list[Any]:
    """A formula as JSON data, which the worker process reads."""
    match tree:
        case Number(value):
            return ["n", value.numerator, value.denominator]
        case Name(name):
            return ["v", name]
        case Constant(name):
            return ["c", name]
        case Sum(terms):
            return ["+", *(to_data(term) for term in terms)]
        case Product(factors):
            return ["*", *(to_data(factor) for factor in factors)]
        case PowerOf(base, exponent):
            return ["^", to_data(base), to_data(exponent)]
        case CallOf(function, argument):
            return ["f", function, to_data(argument)]
