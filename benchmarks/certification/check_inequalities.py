"""Claims of ranges in which an inequality holds; judged on the pieces that the bounds cut the numbers into."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from certification.check_formulas import polynomial, some
from certification.families import Family, Problem, Said
from certification.formula_trees import Node, call, div, mul, num, show, sub, value, var
from certification.truth import number_text
from stepguard.checks.formulas.solving import SolvesInequality

__all__: list[str] = []

_X = var("x")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of numbers; None is no end."""

    low: Fraction | None = None
    low_in: bool = False
    high: Fraction | None = None
    high_in: bool = False

    def holds(self, at: Fraction) -> bool:
        """Whether a number is in it."""
        above = self.low is None or at > self.low or (at == self.low and self.low_in)
        below = self.high is None or at < self.high or (at == self.high and self.high_in)
        return above and below


Region = tuple[_Piece, ...]


@dataclass(frozen=True, slots=True)
class _Inequality:
    tree: Node
    operator: str
    cuts: tuple[Fraction, ...]
    region: Region

    def holds(self, at: Fraction) -> bool:
        """Whether it holds at a number."""
        found = value(self.tree, {"x": value(num(at), {})})
        if found is None:
            return False
        found = 0 if abs(found) < 1e-25 else found
        return {"<": found < 0, "<=": found <= 0, ">": found > 0, ">=": found >= 0, "!=": found != 0}[self.operator]


def _shift(number: Fraction) -> Node:
    shown = num(abs(number))
    return _X if not number else sub(_X, shown) if number > 0 else Node("+", (_X, shown))


def _inequality(chance: random.Random) -> Problem:
    p, q, r = sorted(Fraction(each, chance.choice([1, 1, 2])) for each in chance.sample(range(-9, 10), 3))
    if p == q or q == r:
        return _inequality(chance)
    a, k = some(chance), Fraction(chance.randint(1, 6))
    b = some(chance)
    trees: list[tuple[Node, tuple[Fraction, ...]]] = [
        (polynomial([Fraction(a), a * -(p + q), a * p * q]), (p, q)),
        (mul(_shift(p), _shift(q)), (p, q)),
        (mul(num(a), _shift(p)), (p,)),
        (div(_shift(p), _shift(q)), (p, q)),
        (mul(_shift(p), _shift(q), _shift(r)), (p, q, r)),
        (sub(call("abs", _shift(q)), num(k)), (q - k, q + k)),
        (polynomial([Fraction(1), Fraction(0), k]), ()),
        (div(num(b), _shift(p)), (p,)),
        (Node("^", (_shift(p), num(2))), (p,)),
        (div(mul(_shift(p), _shift(r)), _shift(q)), (p, q, r)),
    ]
    tree, cuts = chance.choice(trees)
    operator = chance.choice(["<", "<=", ">", ">=", "<", ">", "!="])
    bare = _Inequality(tree, operator, cuts, ())
    check = SolvesInequality(f"{show(tree)} {operator} 0", "x")
    return Problem((check,), replace(bare, region=_region(bare)))


def _region(asked: _Inequality) -> Region:
    """Where it holds, from what holds between the cuts and at them."""
    ends: list[Fraction | None] = [None, *asked.cuts, None]
    pieces: list[_Piece] = []
    for low, high in itertools.pairwise(ends):
        middle = _middle(low, high)
        if low is not None and asked.holds(low):
            if pieces and pieces[-1].high == low:
                pieces[-1] = replace(pieces[-1], high_in=True)
            else:
                pieces.append(_Piece(low, True, low, True))
        if asked.holds(middle):
            last = pieces[-1] if pieces else None
            if last is not None and last.high == low and last.high_in and low is not None:
                pieces[-1] = replace(last, high=high, high_in=False)
            else:
                pieces.append(_Piece(low, False, high, False))
    return tuple(pieces)


def _middle(low: Fraction | None, high: Fraction | None) -> Fraction:
    if low is None:
        return Fraction(0) if high is None else high - 1
    return low + 1 if high is None else (low + high) / 2


def _is_region(problem: Problem, region: Region) -> bool:
    asked: _Inequality = problem.truth
    ends = sorted({*asked.cuts, *(end for piece in region for end in (piece.low, piece.high) if end is not None)})
    bounds: list[Fraction | None] = [None, *ends, None]
    places = [*ends, *(_middle(low, high) for low, high in itertools.pairwise(bounds))]
    return all(asked.holds(at) == any(piece.holds(at) for piece in region) for at in places)


INEQUALITY = Family("SolvesInequality", _inequality, _is_region)


def _comparison(piece: _Piece, chance: random.Random) -> str:
    low, high = (None if each is None else number_text(each) for each in (piece.low, piece.high))
    if low is None and high is None:
        return "all real numbers"
    if piece.low == piece.high:
        return f"x = {low}"
    over, under = (">=" if piece.low_in else ">"), ("<=" if piece.high_in else "<")
    if high is None:
        return f"x {over} {low}"
    if low is None:
        return f"x {under} {high}"
    turned = "<=" if piece.low_in else "<"
    return chance.choice([f"{low} {turned} x {under} {high}", f"x {over} {low} and x {under} {high}"])


def _interval(piece: _Piece) -> str:
    if piece.low == piece.high and piece.low is not None:
        return f"{{{number_text(piece.low)}}}"
    low = "-∞" if piece.low is None else number_text(piece.low)
    high = "∞" if piece.high is None else number_text(piece.high)
    return f"{'[' if piece.low_in else '('}{low}, {high}{']' if piece.high_in else ')'}"


def _said(chance: random.Random, region: Region) -> Said:
    if not region:
        return Said(chance.choice(["no solution", "no real solutions", "∅", "none"]), region)
    if region == (_Piece(),):
        return Said(chance.choice(["all real numbers", "(-∞, ∞)", "x ∈ ℝ"]), region)
    words = " or ".join(_comparison(piece, chance) for piece in region)
    signs = " ∪ ".join(_interval(piece) for piece in region)
    latex = signs.replace("∪", "\\cup").replace("∞", "\\infty").replace("{", "\\{").replace("}", "\\}")
    ways = [words, signs, f"x ∈ {signs}", f"${latex}$", words.replace(">=", "≥").replace("<=", "≤")]
    return Said(chance.choice(ways), region)


@INEQUALITY.put("right", "where it holds")
def _right(chance: random.Random, problem: Problem) -> Said | None:
    return _said(chance, problem.truth.region)


def _kind(name: str, change: Callable[[random.Random, _Inequality], Region | None]) -> None:
    @INEQUALITY.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        found = change(chance, problem.truth)
        return None if found is None else _said(chance, found)


def _moved(chance: random.Random, region: Region, change: Callable[[_Piece], _Piece]) -> Region | None:
    if not region:
        return None
    at = chance.randrange(len(region))
    return (*region[:at], change(region[at]), *region[at + 1 :])


def _end(piece: _Piece, step: Fraction) -> _Piece:
    if piece.low is not None and (piece.high is None or piece.low + step < piece.high):
        return replace(piece, low=piece.low + step)
    return piece if piece.high is None else replace(piece, high=piece.high + abs(step))


_OTHER = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "<"}
_CLOSED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "!=": ">="}


_kind("turned around", lambda chance, asked: _region(replace(asked, operator=_OTHER[asked.operator])))
_kind("its ends in or out", lambda chance, asked: _region(replace(asked, operator=_CLOSED[asked.operator])))
_kind(
    "one end in or out",
    lambda chance, asked: _moved(
        chance,
        asked.region,
        lambda piece: replace(piece, low_in=not piece.low_in) if piece.low is not None and piece.low != piece.high
        else replace(piece, high_in=not piece.high_in) if piece.high is not None and piece.low != piece.high else piece,
    ),
)  # fmt: skip
_kind(
    "an end moved",
    lambda chance, asked: _moved(chance, asked.region, lambda piece: _end(piece, Fraction(chance.choice([-1, 1, 2])))),
)
_kind(
    "an end moved by very little",
    lambda chance, asked: _moved(
        chance, asked.region, lambda piece: _end(piece, Fraction(1, 10 ** chance.randint(4, 14)))
    ),
)
_kind("a piece left out", lambda chance, asked: asked.region[1:] if len(asked.region) > 1 else None)
_kind(
    "from one cut to another only",
    lambda chance, asked: (_Piece(asked.cuts[0], False, asked.cuts[-1], False),) if len(asked.cuts) > 1 else None,
)
_kind(
    "solved as if all factors were positive",
    lambda chance, asked: (_Piece(low=asked.cuts[-1]),) if asked.cuts else None,
)
_kind("everything", lambda chance, asked: (_Piece(),))
_kind("nothing", lambda chance, asked: ())
_kind("the ends themselves", lambda chance, asked: tuple(_Piece(each, True, each, True) for each in asked.cuts) or None)


@INEQUALITY.put("wrong", "no range")
def _no_range(chance: random.Random, problem: Problem) -> Said | None:
    tree = show(problem.truth.tree)
    return Said(
        chance.choice(
            [
                "",
                f"{tree} {problem.truth.operator} 0",
                "x",
                "y > 1",
                "x > x",
                "x > 1/0",
                "large x",
                "x < 1, x > 3",
                "[3, 1)x",
            ]
        )
    )
