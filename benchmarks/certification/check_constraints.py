"""Claims about ranges, relations, preconditions and distinct values; judged with fractions."""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certification.families import Family, Problem, Said
from certification.truth import decimal_text, number_text, rounded
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.text import OneOf
from stepguard.language.values import Value, to_exact

__all__: list[str] = []


def written(chance: random.Random, value: Fraction) -> str:
    """A number in one of the usual ways."""
    text = number_text(value)
    if "/" in text:
        return text
    head, point, tail = text.partition(".")
    ways = [text, text]
    if len(head.lstrip("-")) > 3:
        ways.append(f"{int(head):,}{point}{tail}")
    if text.startswith("-"):
        ways.append("\u2212" + text[1:])
    else:
        ways.append(f"+{text}" if chance.random() < 0.2 else text)
    return chance.choice(ways)


# Ranges


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: Fraction
    high: Fraction
    low_open: bool
    high_open: bool
    unit: Fraction
    percent: bool

    def holds(self, value: Fraction) -> bool:
        """Whether a number lies between the bounds."""
        low = value - self.low
        high = self.high - value
        return (low > 0 or (low == 0 and not self.low_open)) and (high > 0 or (high == 0 and not self.high_open))

    def said(self, chance: random.Random, value: Fraction) -> Said:
        """A claim of a number of the type; a percentage is written as such."""
        text = written(chance, value * 100 if self.percent else value)
        return Said(f"{text}%" if self.percent and chance.random() < 0.6 else text, value)


_UNITS = {
    "integer": Fraction(1),
    "decimal(2)": Fraction(1, 100),
    "money(USD)": Fraction(1, 100),
    "percent(1)": Fraction(1, 1000),
    "number": Fraction(1, 7),
}


def _range(chance: random.Random) -> Problem:
    type = chance.choice(list(_UNITS))
    unit = _UNITS[type]
    low = unit * chance.randint(-5000, 3000)
    high = low + unit * chance.randint(4, 4000)
    bounds = _Bounds(low, high, chance.random() < 0.5, chance.random() < 0.5, unit, type.startswith("percent"))
    shown = [number_text(each * 100) + "%" if bounds.percent else each for each in (low, high)]
    options: dict[str, Any] = {"above" if bounds.low_open else "least": shown[0]}
    options["below" if bounds.high_open else "most"] = shown[1]
    return Problem((Range(**options),), bounds, type=type)


RANGE = Family("Range", _range, lambda problem, value: problem.truth.holds(value))


def _range_kind(where: str, name: str, value: Callable[[random.Random, _Bounds], Fraction]) -> None:
    @RANGE.put(where, name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        found = value(chance, problem.truth)
        true = problem.truth.holds(found)
        return None if where == "right" and not true else problem.truth.said(chance, found)


def _inside(chance: random.Random, bounds: _Bounds) -> Fraction:
    return bounds.low + bounds.unit * chance.randint(1, int((bounds.high - bounds.low) / bounds.unit) - 1)


_range_kind("right", "inside", _inside)
_range_kind("right", "at the lower bound", lambda chance, bounds: bounds.low)
_range_kind("right", "at the upper bound", lambda chance, bounds: bounds.high)
_range_kind("wrong", "just below", lambda chance, bounds: bounds.low - bounds.unit)
_range_kind("wrong", "just above", lambda chance, bounds: bounds.high + bounds.unit)
_range_kind("wrong", "at an open lower bound", lambda chance, bounds: bounds.low)
_range_kind("wrong", "at an open upper bound", lambda chance, bounds: bounds.high)
_range_kind("wrong", "the sign lost", lambda chance, bounds: -_inside(chance, bounds))
_range_kind("wrong", "ten times as much", lambda chance, bounds: _inside(chance, bounds) * 10)
_range_kind("wrong", "a hundred times as much", lambda chance, bounds: _inside(chance, bounds) * 100)


@RANGE.put("wrong", "the ratio in the place of the percentage")
def _ratio(chance: random.Random, problem: Problem) -> Said | None:
    bounds: _Bounds = problem.truth
    value = rounded(_inside(chance, bounds), 1, "half_up")  # read as a percentage it is a hundredth of that
    return Said(number_text(value), value / 100) if bounds.percent else None


# Relations

Truth = Callable[[Fraction], bool]


@dataclass(frozen=True, slots=True)
class _Relation:
    holds: Truth
    value: Fraction
    unit: Fraction
    near: tuple[Fraction, ...]
    """Values that slips would lead to."""


def _relation(chance: random.Random) -> tuple[str, _Relation, dict[str, Value]]:
    a, b = Fraction(chance.randint(-300, 900)), Fraction(chance.randint(2, 99))
    third = rounded(a / 3, 2, "half_up")
    product = rounded(a * b / 7, 2, "half_up")
    even = rounded(a / 8, 2, "half_even")
    cent, one = Fraction(1, 100), Fraction(1)
    other = rounded(a / 8, 2, "half_down"), rounded(a / 8, 2, "up"), rounded(a / 8, 2, "down")
    cash = rounded(a / Fraction(3), 1, "down")
    found = chance.choice(
        [
            ("t == a + b", _Relation(lambda t: t == a + b, a + b, one, (a - b, a * b, b - a, -a - b, a))),
            ("t + b == a", _Relation(lambda t: t + b == a, a - b, one, (a + b, b - a, b, a))),
            ("-t == b - a", _Relation(lambda t: -t == b - a, a - b, one, (b - a, a + b))),
            (
                "t == round(a * b / 7, 2)",
                _Relation(lambda t: t == product, product, cent, (rounded(a * b / 7, 1, "half_up"), a * b / 7)),
            ),
            ("t == round(a / 8, 2, half_even)", _Relation(lambda t: t == even, even, cent, other)),
            (
                "abs(t - a / 3) < 0.01",
                _Relation(lambda t: abs(t - a / 3) < cent, third, cent, (third + 2 * cent, a / 3 + cent, a / 3 - cent)),
            ),
            (
                "t % 0.05 == 0",
                _Relation(lambda t: (t * 20).denominator == 1, cash, cent, (cash + cent, cash + 2 * cent, cash / 7)),
            ),
            ("t > a", _Relation(lambda t: t > a, a + b, one, (a, a - 1, -abs(a) - 1))),
            ("t <= a * 2", _Relation(lambda t: t <= 2 * a, 2 * a, one, (2 * a + cent, 2 * a + b))),
            ("t != a", _Relation(lambda t: t != a, a + b, one, (a,))),
            ("t // b == 3", _Relation(lambda t: math.floor(t / b) == 3, 3 * b, one, (4 * b, 3 * b - 1, 3 * b - cent))),
            ("12 / t == b", _Relation(lambda t: t != 0 and 12 / t == b, 12 / b, cent, (Fraction(0), b / 12, 12 * b))),
        ]
    )
    return found[0], found[1], {"a": int(a), "b": int(b)}


def _holds(chance: random.Random) -> Problem:
    text, truth, reads = _relation(chance)
    return Problem((Holds(text),), truth, reads, {"a": "integer", "b": "integer"}, type="number")


def _is_true(problem: Problem, value: Fraction) -> bool:
    return bool(problem.truth.holds(value))


HOLDS = Family("Holds", _holds, _is_true)


def _value_kinds(family: Family) -> None:
    @family.put("right", "the value")
    def value(chance: random.Random, problem: Problem) -> Said | None:
        return Said(written(chance, problem.truth.value), problem.truth.value)

    @family.put("wrong", "one unit off")
    def near(chance: random.Random, problem: Problem) -> Said | None:
        found = problem.truth.value + chance.choice([-1, 1]) * problem.truth.unit
        return Said(written(chance, found), found)

    @family.put("wrong", "what a slip leads to")
    def slip(chance: random.Random, problem: Problem) -> Said | None:
        found = chance.choice(problem.truth.near)
        return Said(written(chance, found), found)

    @family.put("wrong", "the sign lost or added")
    def sign(chance: random.Random, problem: Problem) -> Said | None:
        found = -problem.truth.value
        return Said(written(chance, found), found)

    @family.put("wrong", "digits changed")
    def digit(chance: random.Random, problem: Problem) -> Said | None:
        text = list(number_text(problem.truth.value))
        places = [at for at, char in enumerate(text) if char.isdigit()]
        at = chance.choice(places)
        text[at] = chance.choice("0123456789")
        try:
            return Said("".join(text), Fraction("".join(text)))
        except ZeroDivisionError:
            return None

    @family.put("wrong", "a near decimal")
    def decimal(chance: random.Random, problem: Problem) -> Said | None:
        found = problem.truth.value + chance.choice([-1, 1]) * Fraction(1, 10 ** chance.randint(3, 20))
        return Said(written(chance, found), found)

    @family.put("wrong", "no number")
    def nothing(chance: random.Random, problem: Problem) -> Said | None:
        return Said(chance.choice(["", "t", "a + b", "unknown", "NaN", "Infinity", "see above", "0/0", "-", "1..2"]))


_value_kinds(HOLDS)


@HOLDS.put("right", "as a decimal with zeros behind it")
def _zeros(chance: random.Random, problem: Problem) -> Said | None:
    value = problem.truth.value
    if (value * 100).denominator != 1:
        return None
    return Said(decimal_text(value, 2) + "0" * chance.randint(0, 2), value)


# Preconditions: the claim is right by its relation, and the precondition holds or does not


def _requires(chance: random.Random) -> Problem:
    text, truth, reads = _relation(chance)
    a, b = Fraction(int(to_exact(reads["a"]))), Fraction(int(to_exact(reads["b"])))
    conditions = {
        "a > 0": a > 0,
        "a >= b": a >= b,
        "b != 7": b != 7,
        "a % b == 0": (a / b).denominator == 1,
        "a + b < 500": a + b < 500,
        "1 / (a - b) > 0": a > b,
    }
    condition = chance.choice(list(conditions))
    held = _Relation(lambda t: conditions[condition] and truth.holds(t), truth.value, truth.unit, truth.near)
    return Problem((Requires(condition), Holds(text)), held, reads, {"a": "integer", "b": "integer"}, type="number")


REQUIRES = Family("Requires", _requires, _is_true)


@REQUIRES.put("right", "the precondition holds")
def _granted(chance: random.Random, problem: Problem) -> Said | None:
    value = problem.truth.value
    return Said(written(chance, value), value) if problem.truth.holds(value) else None


@REQUIRES.put("wrong", "the precondition does not hold")
def _not_granted(chance: random.Random, problem: Problem) -> Said | None:
    return Said(written(chance, problem.truth.value), problem.truth.value)


@REQUIRES.put("wrong", "another value, or none")
def _other(chance: random.Random, problem: Problem) -> Said | None:
    found = chance.choice((*problem.truth.near, problem.truth.value + 1))
    return Said(written(chance, found), found)


# Distinct values: a second check says that the value is one of some

_CITIES = ("north", "Südstadt", "west end", "east", "Café", "New  York", "harbour", "old town")


def _distinct(chance: random.Random) -> Problem:
    if chance.random() < 0.5:
        numbers = [Fraction(each, chance.choice([1, 2, 5])) for each in chance.sample(range(1, 400), 3)]
        checks = (Distinct("a", "b"), Range(0, 1000))
        reads: dict[str, Value] = {"a": _exact(numbers[0]), "b": _exact(numbers[1])}
        return Problem(checks, (numbers[:2], numbers[2]), reads, {"a": "number", "b": "number"}, type="number")
    words = chance.sample(_CITIES, 3)
    options = OneOf(*_CITIES, ignore_case=True)
    return Problem((Distinct("a", "b"), options), (words[:2], words[2]), {"a": words[0], "b": words[1]})


def _exact(value: Fraction) -> Value:
    return value.numerator if value.denominator == 1 else value


def _plain(value: object) -> object:
    if not isinstance(value, str):
        return value
    return " ".join(unicodedata.normalize("NFC", value).lower().split())


DISTINCT = Family(
    "Distinct", _distinct, lambda problem, value: _plain(value) not in [_plain(each) for each in problem.truth[0]]
)


@DISTINCT.put("right", "another one")
def _another(chance: random.Random, problem: Problem) -> Said | None:
    value = problem.truth[1]
    if value in problem.truth[0]:
        return None
    return Said(value if isinstance(value, str) else written(chance, value), value)


def _taken(name: str, way: Callable[[random.Random, str | Fraction], str | None]) -> None:
    @DISTINCT.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        value = chance.choice(problem.truth[0])
        text = way(chance, value)
        return None if text is None else Said(text, value)


def _text_only(change: Callable[[str], str]) -> Callable[[random.Random, str | Fraction], str | None]:
    return lambda chance, value: change(value) if isinstance(value, str) else None


_taken("one of the others", lambda chance, value: value if isinstance(value, str) else number_text(value))
_taken("in capitals", _text_only(str.upper))
_taken("with other blanks", _text_only(lambda text: f" {text.replace(' ', '   ')}"))
_taken("with accents apart", _text_only(lambda text: unicodedata.normalize("NFD", text)))
_taken(
    "as a fraction",
    lambda _, value: None if isinstance(value, str) else f"{value.numerator * 3}/{value.denominator * 3}",
)
_taken("with zeros behind it", lambda _, value: None if isinstance(value, str) else decimal_text(value, 3))
