"""Slips in formulas: what a model writes that is nearly right. Whether it is wrong, the values say."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Final

from certification.formula_trees import Node, add, changes, div, minus, mul, num, power, var

__all__ = ["SLIPS", "slip"]

_OTHER: Final = {"sin": "cos", "cos": "sin", "tan": "sin", "log": "exp", "exp": "log", "sqrt": "abs", "abs": "sqrt"}


def _number(node: Node) -> Iterator[Node]:
    if node.op == "n":
        yield from (num(node.number + each) for each in (-1, 1, 10))
        if node.number:
            yield num(1 / node.number)


def _sign(node: Node) -> Iterator[Node]:
    if node.op == "n":
        yield num(-node.number)
    elif node.op == "-":
        yield node.parts[0]
    elif node.op == "+":
        for at, part in enumerate(node.parts):
            yield replace(node, parts=(*node.parts[:at], minus(part), *node.parts[at + 1 :]))


def _lost(node: Node) -> Iterator[Node]:
    if node.op in "+*" and len(node.parts) > 1:
        for at in range(len(node.parts)):
            rest = (*node.parts[:at], *node.parts[at + 1 :])
            yield rest[0] if len(rest) == 1 else replace(node, parts=rest)
    if node.op == "f":
        yield node.parts[0]


def _function(node: Node) -> Iterator[Node]:
    if node.op == "f" and node.name in _OTHER:
        yield replace(node, name=_OTHER[node.name])


def _exponent(node: Node) -> Iterator[Node]:
    if node.op == "^":
        base, exponent = node.parts
        yield base
        yield from (power(base, add(exponent, num(each))) for each in (-1, 1) if exponent.op != "n")
        if exponent.op == "n":
            yield from (power(base, exponent.number + each) for each in (-1, 1, 2))
            yield mul(exponent, base)


def _turned(node: Node) -> Iterator[Node]:
    if node.op in "/^":
        yield replace(node, parts=node.parts[::-1])
    if node.op == "/":
        yield mul(*node.parts)


def _factor(tree: Node, chance: random.Random) -> Iterator[Node]:
    factors = [Fraction(each) for each in ("2", "3", "-1", "10", "1/2", "1/3")]
    yield mul(num(chance.choice(factors)), tree)


def _near(tree: Node, chance: random.Random) -> Iterator[Node]:
    yield add(tree, num(Fraction(1, 10 ** chance.randint(4, 20))))
    yield mul(num(Fraction(10**9 + 1, 10**9)), tree)


def _beside(tree: Node, chance: random.Random) -> Iterator[Node]:
    yield from (add(tree, num(each)) for each in (1, -1))
    yield add(tree, var("x"))
    yield div(num(1), tree)
    yield power(tree, 2)


_Slip = Callable[[Node, random.Random], Iterator[Node]]


def _inside(change: Callable[[Node], Iterator[Node]]) -> _Slip:
    return lambda tree, chance: changes(tree, change)


SLIPS: Final[dict[str, _Slip]] = {
    "a number changed": _inside(_number),
    "a sign changed": _inside(_sign),
    "a term or factor lost": _inside(_lost),
    "another function": _inside(_function),
    "an exponent changed": _inside(_exponent),
    "turned upside down": _inside(_turned),
    "off by a factor": _factor,
    "off by very little": _near,
    "something added to it": _beside,
}


def slip(name: str, tree: Node, chance: random.Random) -> Node | None:
    """One formula with a slip of a kind, None where this formula allows none."""
    found = list(SLIPS[name](tree, chance))
    return chance.choice(found) if found else None
