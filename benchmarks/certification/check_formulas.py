"""Claims of formulas: equal ones, derivatives, integrals, substitutions; judged by values at random points."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped, unused-ignore]

from certification.families import Family, Problem, Said
from certification.formula_slips import SLIPS, slip
from certification.formula_trees import (
    Node,
    add,
    at_points,
    call,
    derived,
    div,
    equal,
    minus,
    mul,
    names,
    num,
    power,
    show,
    styled,
    sub,
    value,
    var,
)
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral, Substituted

__all__ = ["polynomial", "some"]

_X, _Y, _A = var("x"), var("y"), var("a")
_CLOSE = 1e-11


def some(chance: random.Random, low: int = -9, high: int = 9) -> int:
    """A number other than zero and one."""
    return chance.choice([each for each in range(low, high + 1) if each not in (0, 1)])


def polynomial(coefficients: Sequence[int | Fraction], symbol: Node = _X) -> Node:
    """A polynomial from its coefficients, the highest first."""
    terms: list[Node] = []
    for place, given in enumerate(coefficients):
        factor = Fraction(given)
        degree = len(coefficients) - 1 - place
        if not factor:
            continue
        body = symbol if degree == 1 else power(symbol, degree)
        term = num(abs(factor)) if not degree else body if abs(factor) == 1 else mul(num(abs(factor)), body)
        terms.append(minus(term) if factor < 0 else term)
    return terms[0] if len(terms) == 1 else add(*terms)


@dataclass(frozen=True, slots=True)
class _Asked:
    wanted: Node
    right: tuple[Node, ...]
    """Right answers in the form that is asked for."""
    given: Node | None = None
    """What must not be repeated as the answer, None where it may."""


def _shift(number: int) -> Node:
    return add(_X, num(number)) if number > 0 else sub(_X, num(-number))


def _linear(a: int, b: int) -> Node:
    return polynomial([a, b])


def _identities(chance: random.Random) -> tuple[_Asked, str | None]:
    a, b, c, d = (some(chance) for _ in range(4))
    n = abs(c) + 1
    square = chance.choice([2, 3, 5, 7])
    two_x = mul(num(2), _X)
    expanded = polynomial([a * c, a * d + b * c, b * d])
    factors = mul(_linear(a, b), _linear(c, d))
    quad = polynomial([1, b + d, b * d])
    cases: list[tuple[Node, tuple[Node, ...], str | None]] = [
        (factors, (expanded,), "expanded"),
        (factors, (expanded, mul(_linear(c, d), _linear(a, b))), None),
        (quad, (mul(_shift(b), _shift(d)), mul(_shift(d), _shift(b))), "factored"),
        (power(_linear(a, b), 2), (polynomial([a * a, 2 * a * b, b * b]),), "expanded"),
        (power(add(_X, _Y), 2), (add(power(_X, 2), mul(num(2), _X, _Y), power(_Y, 2)),), "expanded"),
        (div(polynomial([1, 0, -n * n]), _shift(-n)), (_shift(n), add(num(n), _X)), None),
        (call("sqrt", num(square * n * n)), (mul(num(n), call("sqrt", num(square))),), None),
        (
            add(num(Fraction(a, n)), num(Fraction(b, n + 1))),
            (num(Fraction(a * (n + 1) + b * n, n * (n + 1))),),
            "number",
        ),
        (mul(_X, add(_X, num(n)), _Y), (add(mul(power(_X, 2), _Y), mul(num(n), _X, _Y)),), None),
        (add(power(call("sin", _X), 2), power(call("cos", _X), 2)), (num(1),), None),
        (call("sin", two_x), (mul(num(2), call("sin", _X), call("cos", _X)),), None),
        (call("sqrt", power(_X, 2)), (call("abs", _X),), None),
        (div(num(n), call("sqrt", num(square))), (div(mul(num(n), call("sqrt", num(square))), num(square)),), None),
        (add(div(num(1), _X), div(num(n), _Y)), (div(add(_Y, mul(num(n), _X)), mul(_X, _Y)),), None),
        (call("exp", mul(num(2), _X)), (power(call("exp", _X), 2), power(var("e"), mul(num(2), _X))), None),
        (power(power(_X, 2), n), (power(_X, 2 * n),), None),
        (mul(_A, add(_X, _Y)), (add(mul(_A, _X), mul(_A, _Y)),), "expanded"),
    ]
    wanted, right, form = chance.choice(cases)
    if form == "expanded" and right[0] == wanted:
        form = None
    return _Asked(wanted, right, wanted if form in ("expanded", "factored") else None), form


def _equivalent(chance: random.Random) -> Problem:
    asked, form = _identities(chance)
    return Problem((Equivalent(show(asked.wanted), form=form),), asked)  # type: ignore[arg-type]


EQUIVALENT = Family("Equivalent", _equivalent, lambda problem, tree: equal(problem.truth.wanted, tree), share=3)


# Derivatives


def _function(chance: random.Random) -> Node:
    a, b, c = (some(chance) for _ in range(3))
    n = chance.randint(2, 6)
    return chance.choice(
        [
            polynomial([a, b, 0, c]),
            mul(_X, call("sin", mul(num(n), _X))),
            power(_linear(a, b), n),
            call("exp", mul(num(a), _X)),
            mul(num(a), call("log", _X)),
            div(_linear(a, b), _linear(n, c)) if a * c != b * n else polynomial([a, b, c]),
            call("sqrt", add(power(_X, 2), num(n))),
            add(mul(num(a), call("cos", _X)), mul(num(b), power(_X, n))),
            mul(power(_X, n), call("exp", _X)),
            add(div(num(a), _X), mul(num(b), _X)),
            call("log", add(power(_X, 2), num(n))),
            mul(_A, power(_X, n)),
        ]
    )


def _rule(tree: Node) -> Node:
    """The derivative by x, by the rules of school."""
    zero = num(0)
    if "x" not in names(tree):
        return zero
    match tree.op:
        case "v":
            return num(1)
        case "-":
            return minus(_rule(tree.parts[0]))
        case "+":
            kept = [found for each in tree.parts if (found := _rule(each)) != zero]
            return kept[0] if len(kept) == 1 else add(*kept)
        case "*":
            terms = []
            for at, part in enumerate(tree.parts):
                inner = _rule(part)
                if inner != zero:
                    rest = [each for index, each in enumerate(tree.parts) if index != at]
                    terms.append(_times([*rest, inner]))
            return terms[0] if len(terms) == 1 else add(*terms)
        case "/":
            over, under = tree.parts
            top = sub(_times([_rule(over), under]), _times([over, _rule(under)]))
            return div(top, power(under, 2))
        case "^":
            base, exponent = tree.parts
            lowered = base if exponent.number == 2 else power(base, exponent.number - 1)
            return _times([exponent, lowered, _rule(base)])
        case _:
            (inside,) = tree.parts
            outer = {
                "sin": lambda: call("cos", inside),
                "cos": lambda: minus(call("sin", inside)),
                "exp": lambda: tree,
                "log": lambda: div(num(1), inside),
                "sqrt": lambda: div(num(1), mul(num(2), tree)),
            }[tree.name]()
            return _times([_rule(inside), outer])


def _times(parts: list[Node]) -> Node:
    number = Fraction(1)
    rest = []
    for each in parts:
        if each.op == "n":
            number *= each.number
        else:
            rest.append(each)
    if not number or not rest:
        return num(number)
    if number != 1:
        rest.insert(0, num(number))
    return rest[0] if len(rest) == 1 else mul(*rest)


def _is_slope(tree: Node, of: Node, order: int = 1) -> bool:
    """Whether a formula has the values of the derivative of another one, worked out from differences."""
    seen = 0
    base = of if order == 1 else _rule(of)
    for point in at_points(names(tree) | names(of), f"{tree}{of}"):
        wanted, found = derived(base, "x", point), value(tree, point)
        if wanted is None:  # only where the other one has a value: of 1/x both log(x) and log(|x|) are right
            continue
        seen += 1
        if found is None or abs(wanted - found) > _CLOSE * max(1, abs(wanted)):
            return False
    return seen > 0


@dataclass(frozen=True, slots=True)
class _Slope:
    of: Node
    right: tuple[Node, ...]
    order: int = 1


def _derivative(chance: random.Random) -> Problem:
    tree = _function(chance)
    order = chance.choice([1, 1, 1, 2])
    right = _rule(tree) if order == 1 else _rule(_rule(tree))
    return Problem((Derivative(show(tree), "x", order=order),), _Slope(tree, (right,), order))


DERIVATIVE = Family(
    "Derivative", _derivative, lambda problem, tree: _is_slope(tree, problem.truth.of, problem.truth.order), share=2
)


@DERIVATIVE.put("right", "behind its name")
def _labelled(chance: random.Random, problem: Problem) -> Said | None:
    tree = problem.truth.right[0]
    if problem.truth.order == 2:
        return Said(f"{chance.choice(['f', 'y'])}'' = {show(tree)}", tree)
    label = chance.choice(["f'(x)", "y'", "dy/dx", "f'", "t", "\\frac{dy}{dx}"])
    return Said(f"{label} = {show(tree)}", tree)


@DERIVATIVE.put("wrong", "the function itself, or its antiderivative")
def _itself(chance: random.Random, problem: Problem) -> Said | None:
    tree = problem.truth.of
    other = chance.choice([tree, mul(_X, tree), _rule(_rule(tree)), _rule(_rule(_rule(tree)))])
    return Said(styled(other, chance), other)


@DERIVATIVE.put("wrong", "a constant behind it")
def _constant(chance: random.Random, problem: Problem) -> Said | None:
    tree = add(problem.truth.right[0], var(chance.choice(["C", "c"])))
    return Said(show(tree), tree)


# Integrals


@dataclass(frozen=True, slots=True)
class _Area:
    of: Node
    right: tuple[Node, ...]
    limits: tuple[int, int] | None
    area: Any = None


def _integral(chance: random.Random) -> Problem:
    whole = _function(chance)
    a, b = some(chance), some(chance)
    if chance.random() < 0.6:
        of = _rule(whole)
        if "x" not in names(of):
            return _integral(chance)
        return Problem((Integral(show(of), "x"),), _Area(of, (whole,), None))
    low = chance.randint(1, 3)
    high = low + chance.randint(1, 4)
    numbers = [a, b, some(chance)]
    pairs = [
        (polynomial(numbers), polynomial([Fraction(a, 3), Fraction(b, 2), Fraction(numbers[2]), Fraction(0)])),
        (div(num(a), _X), mul(num(a), call("log", _X))),
        (mul(num(a), call("cos", _X)), mul(num(a), call("sin", _X))),
        (mul(num(a), call("exp", _X)), mul(num(a), call("exp", _X))),
    ]
    of, upper = chance.choice(pairs)
    ends = [_put_in(upper, {"x": num(each)}) for each in (high, low)]
    right = sub(*ends)
    with mpmath.workdps(30):
        area = mpmath.quad(lambda at: value(of, {"x": at}), [low, high])
    check = Integral(show(of), "x", low=str(low), high=str(high))
    return Problem((check,), _Area(of, (right,), (low, high), area))


def _put_in(tree: Node, values: dict[str, Node]) -> Node:
    if tree.op == "v" and tree.name in values:
        return values[tree.name]
    return Node(tree.op, tuple(_put_in(each, values) for each in tree.parts), tree.number, tree.name)


def _is_integral(problem: Problem, tree: Node) -> bool:
    area: _Area = problem.truth
    if area.limits is None:
        # Its slope has the values of the formula; the constant may be any symbol.
        return _is_slope(area.of, tree)
    found = None if names(tree) else value(tree, {})
    return found is not None and abs(found - area.area) <= _CLOSE * max(1, abs(area.area))


INTEGRAL = Family("Integral", _integral, _is_integral, share=2)


@INTEGRAL.put("right", "with a constant")
def _plus_constant(chance: random.Random, problem: Problem) -> Said | None:
    area: _Area = problem.truth
    if area.limits is not None:
        return None
    constant = chance.choice([var("C"), num(some(chance)), var("K"), num(Fraction(1, 3))])
    tree = add(area.right[0], constant)
    text = styled(tree, chance)
    return Said(f"F(x) = {show(tree)}" if chance.random() < 0.3 else text, tree)


@INTEGRAL.put("wrong", "the formula itself, or its derivative")
def _same(chance: random.Random, problem: Problem) -> Said | None:
    of = problem.truth.of
    other = chance.choice([of, mul(_X, of), _rule(of), mul(num(Fraction(1, 2)), power(of, 2))])
    return Said(styled(other, chance), other)


@INTEGRAL.put("wrong", "a constant where there are limits, or at the wrong limit")
def _at_limits(chance: random.Random, problem: Problem) -> Said | None:
    area: _Area = problem.truth
    if area.limits is None:
        return None
    right = area.right[0]
    others = [
        add(right, var("C")),
        minus(right),
        right.parts[0],
        add(right, area.right[0].parts[0]),
        mul(num(2), right),
    ]
    other = chance.choice(others)
    return Said(styled(other, chance), other)


@INTEGRAL.put("wrong", "the value rounded")
def _rounded(chance: random.Random, problem: Problem) -> Said | None:
    area: _Area = problem.truth
    if area.limits is None:
        return None
    tree = num(Fraction(mpmath.nstr(area.area, chance.randint(3, 12), strip_zeros=False, max_fixed=30)))
    return Said(show(tree), tree)


# Substitutions


def _substituted(chance: random.Random) -> Problem:
    a, b = some(chance), some(chance)
    tree = chance.choice(
        [
            add(mul(num(a), power(_X, 2)), mul(num(b), _X, _Y)),
            div(sub(_X, _Y), add(_X, num(20))),
            polynomial([a, b, some(chance)]),
            mul(_X, add(_X, num(b))),
            call("sqrt", add(power(_X, 2), num(abs(b)))),
            sub(num(a), power(_X, 3)),
        ]
    )
    choices = [num(some(chance)), num(Fraction(1, 2)), add(_A, num(1)), mul(num(2), _A), minus(_A), num(-3)]
    values = {"x": chance.choice(choices)}
    if "y" in names(tree) and chance.random() < 0.5:
        values["y"] = chance.choice([_X, num(2), _A])
    wanted = _put_in(tree, values)
    form = "number" if not names(wanted) and tree.op != "f" and chance.random() < 0.4 else None
    right: tuple[Node, ...] = (wanted,)
    if not names(wanted):
        found = _exactly(wanted)
        right = (
            (wanted, num(found)) if found is not None and form is None else right if found is None else (num(found),)
        )
    check = Substituted(show(tree), {name: show(each) for name, each in values.items()}, form=form)  # type: ignore[arg-type]
    return Problem((check,), _Asked(wanted, right, tree))


def _exactly(tree: Node) -> Fraction | None:
    parts = [_exactly(each) for each in tree.parts]
    if tree.op == "n":
        return tree.number
    if None in parts or tree.op in "fv":
        return None
    held = [each for each in parts if each is not None]
    match tree.op:
        case "+":
            return sum(held, Fraction(0))
        case "-":
            return -held[0]
        case "/":
            return held[0] / held[1] if held[1] else None
        case "^":
            return held[0] ** held[1].numerator
    found = Fraction(1)
    for each in held:
        found *= each
    return found


SUBSTITUTED = Family("Substituted", _substituted, lambda problem, tree: equal(problem.truth.wanted, tree), share=3)


# What all of them share


def _kinds(family: Family) -> None:
    @family.put("right", "in one of many ways")
    def right(chance: random.Random, problem: Problem) -> Said | None:
        tree = chance.choice(problem.truth.right)
        return Said(styled(tree, chance), tree)

    for name in SLIPS:

        def slipped(chance: random.Random, problem: Problem, name: str = name) -> Said | None:
            tree = slip(name, chance.choice(problem.truth.right), chance)
            return None if tree is None or _undefined(tree) else Said(styled(tree, chance), tree)

        family.put("wrong", name)(slipped)

    @family.put("wrong", "no formula, or two")
    def nothing(chance: random.Random, problem: Problem) -> Said | None:
        text = show(problem.truth.right[0])
        ways = [f"{text} or {text}", f"{text}, {text}", f"{text} {text}=", f"x = {text}", f"{text} < 1", f"{text} ="]
        ways += [
            f"the result is {text}",
            f"({text}",
            "",
            "0/0",
            "undefined",
            "...",
            "1/(x-x)",
            "sqrt(-1-x^2)",
            "nan",
            "q",
        ]
        return Said(chance.choice(ways))


def _undefined(tree: Node) -> bool:
    return all(value(tree, point) is None for point in at_points(names(tree), "any"))


for _family in (EQUIVALENT, DERIVATIVE, INTEGRAL, SUBSTITUTED):
    _kinds(_family)


def _repeated(family: Family) -> Callable[[random.Random, Problem], Said | None]:
    @family.put("wrong", "the question repeated")
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        given = problem.truth.given
        if given is None or (family is SUBSTITUTED and equal(problem.truth.wanted, given)):
            return None
        return Said(styled(given, chance))

    return kind


_repeated(EQUIVALENT)
_repeated(SUBSTITUTED)


@EQUIVALENT.put("wrong", "a root or a logarithm on the wrong branch")
def _branch(chance: random.Random, problem: Problem) -> Said | None:
    n = chance.randint(2, 9)
    log_x = call("log", _X)
    cases: list[tuple[Node, Node]] = [
        (call("sqrt", power(_X, 2)), _X),
        (call("sqrt", power(_X, 2)), minus(_X)),
        (call("sqrt", power(_shift(-n), 2)), _shift(-n)),
        (call("abs", _shift(n)), _shift(n)),
        (call("log", power(_X, 2)), mul(num(2), log_x)),
        (call("sqrt", add(power(_X, 2), num(n * n))), add(_X, num(n))),
        (call("log", add(_X, num(n))), add(log_x, call("log", num(n)))),
        (call("sqrt", mul(_X, _Y)), mul(call("sqrt", _X), call("sqrt", _Y))),
        (power(power(_X, 2), Fraction(1, 2)), _X),
        (call("abs", add(_X, _Y)), add(call("abs", _X), call("abs", _Y))),
        (call("exp", call("log", _X)), call("abs", _X)),
        (power(call("sqrt", _X), 2), call("abs", _X)),
    ]
    wanted, other = chance.choice(cases)
    held = Problem((Equivalent(show(wanted)),), _Asked(wanted, (wanted,)))
    return Said(styled(other, chance), other, held)


# Equations


@EQUIVALENT.put("right", "an equation multiplied or turned")
def _equation(chance: random.Random, problem: Problem) -> Said | None:
    a, b, c = some(chance), some(chance), some(chance)
    factor = some(chance)
    left, right = _linear(a, b), mul(num(c), _Y)
    ways = [(right, left), (mul(num(factor), left), mul(num(factor), right)), (sub(left, right), num(0))]
    one, two = chance.choice(ways)
    return _about(left, right, one, two, chance)


def _about(left: Node, right: Node, one: Node, two: Node, chance: random.Random) -> Said:
    held = Problem((Equivalent(f"{show(left)} = {show(right)}"),), _Asked(sub(left, right), ()))
    text = f"{show(one)} = {show(two)}"
    # Equations are the same where one difference of sides is a number times the other.
    (point,) = list(at_points({"x", "y"}, "equation"))[:1]
    ratio = value(sub(left, right), point) / value(sub(one, two), point)
    tree = mul(num(Fraction(mpmath.nstr(ratio, 25)).limit_denominator(1000)), sub(one, two))
    return Said(text, tree, held)


@EQUIVALENT.put("wrong", "another equation")
def _unequal(chance: random.Random, problem: Problem) -> Said | None:
    a, b, c = some(chance), some(chance), some(chance)
    left, right = _linear(a, b), mul(num(c), _Y)
    others = [
        (left, minus(right)),
        (mul(num(2), left), right),
        (_linear(a, b + 1), right),
        (_linear(a, -b), right),
        (mul(num(c), _X), _linear(a, b)),
        (power(left, 2), power(right, 2)),
        (left, mul(num(c), _X)),
        (left, add(right, num(Fraction(1, 10**9)))),
    ]
    one, two = chance.choice(others)
    return _about(left, right, one, two, chance)
