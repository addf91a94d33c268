"""The kinds of steps whose checks are arithmetic, and of steps in words with a check of the user's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from certification.traces import Plan, step_kind
from certification.truth import MODES, Bin, Cmp, Fn, Lit, Neg, Spec, Tree, Truth, Var
from stepguard import Step
from stepguard.core.verdicts import Claim
from stepguard.language.values import Value

__all__: list[str] = []

State = Mapping[str, Truth]
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _numbers(state: State, *, whole: bool = False, below: int = 10**12) -> list[str]:
    return [
        name
        for name, value in state.items()
        if isinstance(value, Fraction) and abs(value) < below and not (whole and value.denominator != 1)
    ]


def _variable(chance: random.Random, state: State, *, whole: bool = False, below: int = 10**12) -> Var:
    return Var(chance.choice(_numbers(state, whole=whole, below=below)))


def _whole(chance: random.Random, low: int = 0, high: int = 99) -> Lit:
    return Lit(Fraction(chance.randint(low, high)))


def _operand(chance: random.Random, state: State, *, whole: bool = False, below: int = 10**12) -> Tree:
    return _variable(chance, state, whole=whole, below=below) if chance.random() < 0.65 else _whole(chance, 2)


def _pair(chance: random.Random, operator: str, one: Tree, two: Tree) -> Tree:
    return Bin(operator, one, two) if chance.random() < 0.5 else Bin(operator, two, one)


@step_kind("whole numbers")
def _integers(chance: random.Random, state: State) -> Plan:
    one = _variable(chance, state, whole=True, below=10**6)
    return Plan(
        _pair(chance, chance.choice("+-*"), one, _operand(chance, state, whole=True, below=10**6)), Spec(kind="integer")
    )


@step_kind("beyond 2^53")
def _large(chance: random.Random, state: State) -> Plan:
    number = Lit(Fraction(chance.randint(2**53, 2**80)))
    return Plan(
        _pair(chance, chance.choice("+-*"), number, _variable(chance, state, whole=True, below=10**6)),
        Spec(kind="integer"),
    )


@step_kind("signs")
def _signs(chance: random.Random, state: State) -> Plan:
    one, two = _variable(chance, state, whole=True, below=10**6), _whole(chance, 2, 999)
    ways: list[Tree] = [
        Bin("-", one, Neg(two)),
        Bin("-", Neg(one), two),
        Bin("-", Lit(-two.value), Neg(one)),
        Bin("+", Neg(two), one),
        Bin("*", Neg(one), Neg(two)),
        Neg(Bin("-", one, two)),
        Bin("-", Lit(Fraction(0)), Neg(one)),
    ]
    return Plan(chance.choice(ways), Spec())


@step_kind("fraction")
def _fraction(chance: random.Random, state: State) -> Plan:
    one = _variable(chance, state, below=10**6)
    quotient = Bin("/", one, _operand(chance, state, whole=True, below=10**6))
    ways: list[Tree] = [quotient, Bin("-", quotient, _whole(chance, 1)), Bin("*", quotient, _whole(chance, 2))]
    return Plan(chance.choice(ways), Spec())


@step_kind("decimal")
def _decimal(chance: random.Random, state: State) -> Plan:
    one, two = _variable(chance, state, below=10**6), _operand(chance, state, below=10**6)
    mode = chance.choice(MODES) if chance.random() < 0.6 else "half_up"
    return Plan(
        Bin("/", one, two) if chance.random() < 0.7 else _pair(chance, "*", one, two),
        Spec(kind="decimal", places=chance.randint(0, 4), mode=mode),
    )


@step_kind("tie of a rounding")
def _tie(chance: random.Random, state: State) -> Plan:
    places = chance.randint(0, 2)
    half = Fraction(2 * chance.randint(-500, 500) + 1, 2 * 10**places)
    one = _variable(chance, state, whole=True, below=10**6)
    value = state[one.name]
    assert isinstance(value, Fraction)
    return Plan(Bin("+", one, Lit(half - value)), Spec(kind="decimal", places=places, mode=chance.choice(MODES)))


@step_kind("nearly a tie")
def _nearly(chance: random.Random, state: State) -> Plan:
    places = chance.randint(0, 3)
    near = Fraction(chance.choice([45, 46, 49, 51, 54]), 100 * 10**places) + Fraction(
        chance.randint(-999, 999), 10**places
    )
    one = _variable(chance, state, whole=True, below=10**6)
    value = state[one.name]
    assert isinstance(value, Fraction)
    return Plan(Bin("+", one, Lit(near - value)), Spec(kind="decimal", places=places, mode=chance.choice(MODES[:3])))


@step_kind("round in the formula")
def _round(chance: random.Random, state: State) -> Plan:
    quotient = Bin("/", _variable(chance, state, below=10**9), _operand(chance, state, below=10**6))
    return Plan(Fn("round", (quotient,), chance.choice(MODES), chance.randint(-2, 3)), Spec())


@step_kind("percent")
def _percent(chance: random.Random, state: State) -> Plan:
    one = _variable(chance, state, below=10**5)
    places = chance.choice([None, 0, 1, 2])
    two: Tree = (
        _operand(chance, state, below=10**5) if places is not None else Lit(Fraction(chance.choice([8, 20, 25])))
    )
    return Plan(Bin("/", one, two), Spec(kind="percent", places=places, mode=chance.choice(MODES[:3])))


@step_kind("money")
def _money(chance: random.Random, state: State) -> Plan:
    currency, places = chance.choice([("USD", 2), ("EUR", 2), ("GBP", 2), ("JPY", 0), ("KWD", 3)])
    one, two = _variable(chance, state, below=10**6), _operand(chance, state, below=10**4)
    return Plan(
        _pair(chance, chance.choice("+-*/"), one, two),
        Spec(kind="money", places=places, currency=currency, mode=chance.choice(MODES[:3])),
    )


@step_kind("comparison")
def _comparison(chance: random.Random, state: State) -> Plan:
    one, two = _variable(chance, state), _operand(chance, state)
    left: Tree = Bin("*", one, _whole(chance, 2, 9)) if chance.random() < 0.4 else one
    return Plan(Cmp(chance.choice(_COMPARISONS), left, two), Spec(kind="boolean"))


@step_kind("within a tolerance")
def _within(chance: random.Random, state: State) -> Plan:
    one, two = _variable(chance, state, below=10**6), _operand(chance, state, below=10**4)
    relative = chance.random() < 0.5
    amount = Fraction(1, chance.choice([100, 50, 20])) if relative else Fraction(1, chance.choice([2, 10, 100, 1000]))
    return Plan(Bin("/", one, two), Spec(within=amount, relative=relative))


@step_kind("power")
def _power(chance: random.Random, state: State) -> Plan:
    one = _variable(chance, state, below=1000)
    ways: list[Tree] = [
        Bin("^", one, Lit(Fraction(chance.randint(2, 4)))),
        Bin("^", Lit(Fraction(2)), _whole(chance, 2, 60)),
        Neg(Bin("^", one, Lit(Fraction(2)))),
        Bin("^", Neg(one), Lit(Fraction(3))),
        Bin("*", one, Bin("^", Lit(Fraction(10)), Lit(Fraction(chance.randint(-3, 3))))),
    ]
    return Plan(chance.choice(ways), Spec())


@step_kind("floor division and remainder")
def _floors(chance: random.Random, state: State) -> Plan:
    one = _variable(chance, state, whole=True, below=10**9)
    two: Tree = Lit(Fraction(chance.choice([-1, 1, 1]) * chance.randint(2, 30)))
    return Plan(Bin(chance.choice(["//", "%"]), one, two), Spec(kind="integer"))


@step_kind("function")
def _function(chance: random.Random, state: State) -> Plan:
    one, two = _variable(chance, state, below=10**9), _operand(chance, state, below=10**9)
    ways: list[Tree] = [
        Fn("min", (one, two)),
        Fn("max", (one, two, _whole(chance))),
        Fn("max", (Bin("-", one, two), Lit(Fraction(0)))),
        Fn("abs", (Bin("-", one, two),)),
        *(Fn(name, (Bin("/", one, Lit(Fraction(7))),)) for name in ("floor", "ceil", "trunc")),
        Bin("*", Fn("sqrt", (Lit(Fraction(chance.randint(2, 99) ** 2)),)), one),
    ]
    return Plan(chance.choice(ways), Spec())


@step_kind("nested")
def _nested(chance: random.Random, state: State) -> Plan:
    def some(depth: int) -> Tree:
        if depth == 0:
            return _operand(chance, state, whole=True, below=10**4)
        one, two = some(depth - 1), some(chance.randrange(depth))
        tree: Tree = _pair(chance, chance.choice("++--*/"), one, two)
        return Neg(tree) if chance.random() < 0.1 else tree

    return Plan(
        _pair(
            chance, chance.choice("+-*"), _variable(chance, state, whole=True, below=10**4), some(chance.randint(1, 3))
        ),
        Spec(),
    )


@step_kind("long chain")
def _chain(chance: random.Random, state: State) -> Plan:
    tree: Tree = _variable(chance, state, whole=True, below=10**6)
    for _ in range(chance.randint(8, 30)):
        tree = Bin(chance.choice("+-"), tree, _operand(chance, state, whole=True, below=10**6))
    return Plan(tree, Spec(kind="integer"))


@step_kind("copy")
def _copy(chance: random.Random, state: State) -> Plan:
    if chance.random() < 0.5:
        return Plan(_variable(chance, state), Spec())
    options = ("blue", "dark red", "green")
    return Plan(Var("label"), Spec(kind="text") if chance.random() < 0.4 else Spec(kind="one_of", options=options))


@dataclass(frozen=True, slots=True)
class _Is:
    """A check of the user's: the value is the one that was worked out when the step was made."""

    truth: Truth

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        found = values[step.id]
        return (Fraction(found) if isinstance(found, int | Decimal) and not isinstance(found, bool) else found) == (
            self.truth
        )


@step_kind("choice in words")
def _choice(chance: random.Random, state: State) -> Plan:
    name = chance.choice(_numbers(state))
    value, bound = state[name], chance.randint(1, 500)
    assert isinstance(value, Fraction)
    truth = "low" if value < bound else "middle" if value < 2 * bound else "high"
    text = f"Say low where {name} is below {bound}, middle where it is below {2 * bound}, otherwise high."
    return Plan(None, Spec(kind="one_of", options=("low", "middle", "high")), text, truth, (name,), _Is(truth))


@step_kind("count in words")
def _count(chance: random.Random, state: State) -> Plan:
    name = chance.choice(_numbers(state))
    value = state[name]
    assert isinstance(value, Fraction)
    truth = Fraction(len(str(abs(value.numerator))))
    return Plan(None, Spec(kind="integer"), f"Count the digits of the numerator of {name}.", truth, (name,), _Is(truth))
