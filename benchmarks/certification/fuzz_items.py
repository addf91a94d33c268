"""What is fuzzed: a text, what is done with it, what is known of the result; and how texts are changed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from certification.truth import Truth
from stepguard.language.values import Value

__all__ = ["Found", "Item", "Passed", "as_truth", "mutated"]

_ALPHABET = (
    "0123456789"
    * 3
    + "..,,  ()()+-*/%^=<>!xyzE_e[]{}\\\"'$€&|~@#:;?\u2212\u00d7\u00f7\u00b7\u2248\u2264\u00bd\u00b2\uff11"
    "\u0661\u200b\u00a0\u2009\n\t\r\0\x1b\ud800abfrac"
)
_SPANS = (
    "**",
    "//",
    "==",
    "<=",
    "max(",
    "min(",
    "sqrt(",
    "round(",
    "mod",
    "1e9",
    "\\frac{",
    "\\times",
    "10^",
    "half_up",
    "%",
)


@dataclass(slots=True)
class Found:
    """What came of the items of one target."""

    n: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    escapes: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    compared: int = 0
    slow: list[str] = field(default_factory=list)
    slowest: float = 0.0
    slowest_item: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "n": self.n,
            "outcomes": dict(sorted(self.outcomes.items())),
            "compared_with_an_independent_value": self.compared,
            "escapes": self.escapes,
            "disagreements": self.disagreements,
            "too_slow": self.slow,
            "slowest_ms": round(self.slowest * 1000, 2),
            "slowest_item": self.slowest_item,
        }


@dataclass(slots=True)
class Item:
    """One fuzzed text, what is done with it, and what is known of the result."""

    text: str
    run: Callable[[str], object]
    judge: Callable[[object, Found], str | None]
    """What is wrong with the result, None where nothing is known to be."""


@dataclass(frozen=True, slots=True)
class Passed:
    value: Value | None


def as_truth(value: object) -> Truth | None:
    """A value of the package as the certification has it."""
    if isinstance(value, bool | str):
        return value
    return Fraction(value) if isinstance(value, int | Decimal | Fraction) else None


def mutated(chance: random.Random, text: str, pool: Sequence[str]) -> str:
    for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 5])):
        at = chance.randrange(len(text) + 1)
        roll = chance.random()
        if roll < 0.35:
            text = text[:at] + chance.choice(_ALPHABET) + text[at:]
        elif roll < 0.55:
            text = text[:at] + chance.choice(_ALPHABET) + text[at + 1 :]
        elif roll < 0.75:
            text = text[:at] + text[at + chance.choice([1, 1, 2, 4]) :]
        elif roll < 0.85:
            text = text[:at] + chance.choice(_SPANS) + text[at:]
        elif roll < 0.93:
            end = min(len(text), at + chance.randint(1, 8))
            text = text[:end] + text[at:end] * chance.randint(1, 3) + text[end:]
        else:
            other = chance.choice(pool)
            text = text[:at] + other[chance.randrange(len(other) + 1) :]
    return text[:20_000]
