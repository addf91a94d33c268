"""Claims that solve equations, systems and inequalities; judged by putting the values in, and piece by piece."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from certification.check_formulas import polynomial, some
from certification.families import Family, Problem, Said
from certification.formula_slips import slip
from certification.formula_trees import Node, add, call, div, minus, mul, num, power, show, sub, value, var
from stepguard.checks.formulas.solving import Solves, SolvesSystem

__all__: list[str] = []

_X, _Y, _Z = var("x"), var("y"), var("z")
_CLOSE: Final = 1e-25
EVERYTHING: Final = "every number"

# Equations: what is said is a list of formulas, in its order, or that every number solves it


@dataclass(frozen=True, slots=True)
class _Equation:
    left: Node
    right: Node
    roots: tuple[Node, ...]
    """All real solutions, ascending."""
    all: bool = True
    ordered: bool = False
    everything: bool = False
    extraneous: tuple[Node, ...] = ()
    """Values that a usual way of solving leads to and that do not solve it."""


def _numbers(trees: Sequence[Node]) -> list[Any]:
    return [value(each, {}) for each in trees]


def _near(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(abs(one - other) <= _CLOSE * max(1, abs(one)))


def _is_solved(problem: Problem, said: object) -> bool:
    equation: _Equation = problem.truth
    if said == EVERYTHING or equation.everything:
        return said == EVERYTHING and equation.everything
    assert isinstance(said, tuple)
    found = _numbers(said)
    for each in found:
        if each is None:
            return False
        left, right = (value(side, {"x": each}) for side in (equation.left, equation.right))
        # A root of many digits does not put the sides nearer than its own digits allow.
        if left is None or right is None or abs(left - right) > 1e-20 * max(1, abs(left)):
            return False
    roots = _numbers(equation.roots)
    if any(not any(_near(each, root) for root in roots) for each in found):
        return False
    once = all(sum(_near(each, root) for each in found) <= 1 for root in roots)
    whole = all(any(_near(each, root) for each in found) for root in roots)
    ascending = not equation.ordered or all(one < other for one, other in pairwise(found))
    return once and ascending and (whole if equation.all or not found else True)


def _sorted(roots: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(sorted(roots, key=lambda each: value(each, {})))


def _fractional(chance: random.Random) -> Fraction:
    return Fraction(chance.choice([each for each in range(-12, 13) if each]), chance.choice([1, 1, 1, 2, 3]))


def _equation(chance: random.Random) -> _Equation:
    p, q = chance.sample(range(-9, 10), 2)
    n = chance.choice([2, 3, 5, 6, 7, 10])
    k = chance.randint(1, 9)
    a = some(chance)
    root, r = call("sqrt", num(n)), _fractional(chance)
    two = _sorted([num(p), num(q)])
    zero = num(0)
    cases = [
        lambda: _Equation(polynomial([a, -a * (p + q), a * p * q]), zero, two, extraneous=(num(-p), num(-q))),
        lambda: _Equation(polynomial([1, -(p + q), 0]), num(-p * q), two, extraneous=(num(-p), num(p + q))),
        lambda: _Equation(polynomial([a, -2 * a * p, a * (p * p - n)]), zero, (sub(num(p), root), add(num(p), root))),
        lambda: _Equation(power(_X, 2), num(n), (minus(root), root), extraneous=(num(Fraction(n, 2)),)),
        lambda: _Equation(mul(num(r.denominator), _X), num(r.numerator), (num(r),), extraneous=(num(1 / r), num(-r))),
        lambda: _Equation(polynomial([1, 0, k]), zero, (), extraneous=(num(k), num(-k))),
        lambda: _Equation(polynomial([1, -2 * p, p * p]), zero, (num(p),), extraneous=(num(-p),)),
        lambda: _Equation(call("abs", _shift(-p)), num(k), (num(p - k), num(p + k)), extraneous=(num(k - p),)),
        lambda: _Equation(call("abs", _shift(p)), num(-k), (), extraneous=(num(k - p), num(-k - p))),
        lambda: _Equation(div(polynomial([1, 0, -k * k]), _shift(-k)), zero, (num(-k),), extraneous=(num(k),)),
        lambda: _Equation(power(_X, 3), mul(num(k * k), _X), (num(-k), num(0), num(k)), extraneous=(num(k * k),)),
        lambda: _Equation(div(num(a), _shift(-p)), num(k), (num(p + Fraction(a, k)),), extraneous=(num(p),)),
        lambda: _Equation(mul(num(2), add(_X, num(k))), polynomial([2, 2 * k]), (), everything=True),
        lambda: _Equation(add(_X, num(k)), add(_X, num(k + 1)), (), extraneous=(num(0), num(k))),
        lambda: _Equation(power(_X, 4), num(n * n), (minus(root), root), extraneous=(num(n), num(-n))),
        # sqrt(x + k(k+1)) = x has k + 1 only: squaring adds -k.
        lambda: _Equation(call("sqrt", add(_X, num(k * (k + 1)))), _X, (num(k + 1),), extraneous=(num(-k),)),
        lambda: _Equation(power(num(2), _X), num(2**k), (num(k),), extraneous=(num(2 * k), num(-k))),
        lambda: _Equation(call("log", _X), num(0), (num(1),), extraneous=(num(0), var("e"))),
    ]
    weights = [3] * 15 + [1, 1, 1]  # the last ones need sympy
    return chance.choices(cases, weights)[0]()


def _shift(number: int) -> Node:
    return _X if not number else add(_X, num(number)) if number > 0 else sub(_X, num(-number))


def _solves(chance: random.Random) -> Problem:
    found = _equation(chance)
    all_ = found.everything or not found.roots or chance.random() < 0.85
    ordered = chance.random() < 0.15
    equation = _Equation(found.left, found.right, found.roots, all_, ordered, found.everything, found.extraneous)
    check = Solves(f"{show(found.left)} = {show(found.right)}", "x", all=all_, ordered=ordered)
    return Problem((check,), equation)


SOLVES = Family("Solves", _solves, _is_solved, share=3)
_NONE = ("no solution", "no real solutions", "There are no real solutions.", "none", "∅", "{}", "There is no solution")
_ALL = ("all real numbers", "x ∈ ℝ", "every real number", "all reals", "(-∞, ∞)")


def _listed(chance: random.Random, values: Sequence[Node]) -> Said:
    """A list of solutions in one of the ways of models."""
    said = tuple(values)
    if not said:
        return Said(chance.choice(_NONE), said)
    texts = [show(each) for each in said]
    ways = [
        ", ".join(texts),
        f"{{{', '.join(texts)}}}",
        " or ".join(f"x = {text}" for text in texts),
        ", ".join(f"x = {text}" for text in texts),
        " and ".join(texts),
        ", ".join(f"x_{at} = {text}" for at, text in enumerate(texts, 1)),
        "; ".join(texts),
        f"x = {texts[0]}" if len(texts) == 1 else f"${', '.join(texts)}$",
        f"x ∈ {{{', '.join(texts)}}}",
    ]
    return Said(chance.choice(ways), said)


@SOLVES.put("right", "all solutions")
def _all(chance: random.Random, problem: Problem) -> Said | None:
    equation: _Equation = problem.truth
    if equation.everything:
        return Said(chance.choice(_ALL), EVERYTHING)
    roots = list(equation.roots)
    if not equation.ordered:
        chance.shuffle(roots)
    return _listed(chance, roots)


@SOLVES.put("right", "with plus or minus")
def _plus_minus(chance: random.Random, problem: Problem) -> Said | None:
    equation: _Equation = problem.truth
    if len(equation.roots) != 2 or equation.ordered:
        return None
    low, high = _numbers(equation.roots)
    root = show(equation.roots[1])
    if not _near(low, -high):
        return None
    return Said(chance.choice([f"±{root}", f"x = ±{root}", f"x = \\pm {root}"]), equation.roots)


@SOLVES.put("right", "one is enough")
def _one(chance: random.Random, problem: Problem) -> Said | None:
    equation: _Equation = problem.truth
    return None if equation.all or not equation.roots else _listed(chance, [chance.choice(equation.roots)])


def _roots_kind(name: str, change: Callable[[random.Random, _Equation], Sequence[Node] | None]) -> None:
    @SOLVES.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        found = change(chance, problem.truth)
        return None if found is None else _listed(chance, found)


def _changed(chance: random.Random, equation: _Equation, change: Callable[[Node], Node | None]) -> list[Node] | None:
    if not equation.roots:
        return None
    at = chance.randrange(len(equation.roots))
    other = change(equation.roots[at])
    return None if other is None else [*equation.roots[:at], other, *equation.roots[at + 1 :]]


def _decimal(tree: Node, places: int) -> Node:
    return num(Fraction(str(round(float(value(tree, {})), places))))


_roots_kind("one missing", lambda chance, eq: chance.sample(eq.roots, len(eq.roots) - 1) if eq.roots else None)
_roots_kind("one too many", lambda chance, eq: [*eq.roots, num(_fractional(chance))])
_roots_kind(
    "one that does not solve it",
    lambda chance, eq: [*eq.roots, chance.choice(eq.extraneous)] if eq.extraneous else None,
)
_roots_kind("only that does not solve it", lambda chance, eq: [chance.choice(eq.extraneous)] if eq.extraneous else None)
_roots_kind("one twice", lambda chance, eq: [*eq.roots, chance.choice(eq.roots)] if eq.roots else None)
_roots_kind("a sign changed", lambda chance, eq: _changed(chance, eq, minus))
_roots_kind("all signs changed", lambda chance, eq: [minus(each) for each in eq.roots])
_roots_kind(
    "a number changed", lambda chance, eq: _changed(chance, eq, lambda each: slip("a number changed", each, chance))
)
_roots_kind("rounded", lambda chance, eq: _changed(chance, eq, lambda each: _decimal(each, chance.randint(0, 9))))
_roots_kind(
    "off by very little",
    lambda chance, eq: _changed(chance, eq, lambda each: add(each, num(Fraction(1, 10 ** chance.randint(5, 15))))),
)
_roots_kind("none", lambda chance, eq: [])
_roots_kind("in another order", lambda chance, eq: chance.sample(eq.roots, len(eq.roots)) if eq.ordered else None)


@SOLVES.put("wrong", "every number")
def _every(chance: random.Random, problem: Problem) -> Said | None:
    return Said(chance.choice(_ALL), EVERYTHING)


@SOLVES.put("wrong", "no solutions, but something else")
def _no_list(chance: random.Random, problem: Problem) -> Said | None:
    equation: _Equation = problem.truth
    left, right = show(equation.left), show(equation.right)
    ways = [
        "",
        f"{left} = {right}",
        "x",
        "x = x",
        "y = 2",
        "x > 1",
        "x = 1/0",
        "two solutions",
        "x ≈ 2",
        "x = 2 = 3",
        "i",
        "x = sqrt(-1)",
    ]
    return Said(chance.choice(ways)) if not equation.everything else None


# Systems: what is said is a list of points


@dataclass(frozen=True, slots=True)
class _System:
    names: tuple[str, ...]
    sides: tuple[tuple[Node, Node], ...]
    point: tuple[Fraction, ...] | None
    """The one solution; None where there is none."""
    all: bool = True


def _system(chance: random.Random) -> Problem:
    kind = chance.random()
    names = ("x", "y") if kind < 0.7 else ("x", "y", "z")
    symbols = [var(name) for name in names]
    point = tuple(_fractional(chance) for _ in names)
    sides: tuple[tuple[Node, Node], ...]
    if kind < 0.12:
        # x y = p q and x + y = p + q: two solutions, of which one is enough.
        p, q = chance.sample(range(1, 9), 2)
        sides = ((mul(_X, _Y), num(p * q)), (add(_X, _Y), num(p + q)))
        truth = _System(names, sides, (Fraction(p), Fraction(q)), all=False)
    else:
        rows = [[some(chance, -5, 5) for _ in names] for _ in names]
        if kind < 0.2:
            rows[1] = [2 * each for each in rows[0]]
        determinant = _determinant([[Fraction(each) for each in row] for row in rows])
        if (determinant == 0) != (kind < 0.2):
            return _system(chance)
        totals = [sum((Fraction(a) * b for a, b in zip(row, point, strict=True)), Fraction(0)) for row in rows]
        if kind < 0.2:
            totals[1] += 1
        sides = tuple(
            (add(*(mul(num(a), symbol) for a, symbol in zip(row, symbols, strict=True))), num(total))
            for row, total in zip(rows, totals, strict=True)
        )
        truth = _System(names, sides, None if kind < 0.2 else point)
    equations = [f"{show(left)} = {show(right)}" for left, right in sides]
    return Problem((SolvesSystem(equations, names, all=truth.all),), truth)


def _determinant(rows: list[list[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    parts = (
        (-1) ** at * each * _determinant([row[:at] + row[at + 1 :] for row in rows[1:]])
        for at, each in enumerate(rows[0])
    )
    return sum(parts, Fraction(0))


def _is_system_solved(problem: Problem, said: tuple[tuple[Fraction, ...], ...]) -> bool:
    system: _System = problem.truth
    for point in said:
        at = dict(zip(system.names, (value(num(each), {}) for each in point), strict=True))
        if any(not _near(value(left, at), value(right, at)) for left, right in system.sides):
            return False
    if system.point is None:
        return not said
    return len(said) == 1 if system.all else len(said) > 0


SYSTEM = Family("SolvesSystem", _system, _is_system_solved)


def _points(chance: random.Random, system: _System, points: Sequence[tuple[Fraction, ...]]) -> Said:
    said = tuple(points)
    if not said:
        return Said(chance.choice(_NONE), said)
    texts = [[show(num(each)) for each in point] for point in said]
    named = [", ".join(f"{name} = {text}" for name, text in zip(system.names, each, strict=True)) for each in texts]
    bare = [f"({', '.join(each)})" for each in texts]
    ways = [
        " or ".join(named),
        " or ".join(bare),
        "; ".join(bare),
        " or ".join(each.replace(", ", " and ") for each in named),
    ]
    if len(said) == 1:
        ways += [f"({', '.join(system.names)}) = {bare[0]}", f"${named[0]}$", f"{{{named[0]}}}"]
    return Said(chance.choice(ways), said)


@SYSTEM.put("right", "the solution")
def _solution(chance: random.Random, problem: Problem) -> Said | None:
    system: _System = problem.truth
    return _points(chance, system, [] if system.point is None else [system.point])


def _point_kind(name: str, change: Callable[[random.Random, tuple[Fraction, ...]], list[tuple[Fraction, ...]]]) -> None:
    @SYSTEM.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        system: _System = problem.truth
        point = system.point or tuple(_fractional(chance) for _ in system.names)
        return _points(chance, system, change(chance, point))


def _with(
    chance: random.Random, point: tuple[Fraction, ...], change: Callable[[Fraction], Fraction]
) -> list[tuple[Fraction, ...]]:
    at = chance.randrange(len(point))
    return [(*point[:at], change(point[at]), *point[at + 1 :])]


_point_kind("swapped", lambda chance, point: [point[::-1]])
_point_kind("a sign changed", lambda chance, point: _with(chance, point, lambda each: -each))
_point_kind(
    "one of them off", lambda chance, point: _with(chance, point, lambda each: each + chance.choice([-1, 1, 10]))
)
_point_kind(
    "one of them rounded", lambda chance, point: _with(chance, point, lambda each: round(each, chance.randint(0, 6)))
)
_point_kind("off by very little", lambda chance, point: _with(chance, point, lambda each: each + Fraction(1, 10**12)))
_point_kind(
    "turned upside down", lambda chance, point: _with(chance, point, lambda each: 1 / each if each else each + 1)
)
_point_kind("one too many", lambda chance, point: [point, tuple(each + 1 for each in point)])
_point_kind("twice", lambda chance, point: [point, point])
_point_kind("none", lambda chance, point: [])


@SYSTEM.put("wrong", "one unknown left out, named twice or free")
def _partial(chance: random.Random, problem: Problem) -> Said | None:
    system: _System = problem.truth
    point = system.point or (Fraction(1),) * len(system.names)
    one, two = (show(num(each)) for each in point[:2])
    ways = [f"x = {one}", f"x = {one}, x = {two}", f"y = {two}", f"x = y, y = {two}", f"({one})", "", "x, y", "many",
            f"x = {one}, y = y", "x = 1/0, y = 1"]  # fmt: skip
    return Said(chance.choice(ways))
