"""Fuzzed expressions and numbers: from a grammar, with their value; and texts with characters changed."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

from certification.fuzz_items import Found, Item, as_truth, mutated
from certification.hostile import HOSTILE, extreme
from certification.looks import Look, show
from certification.python_reading import tree_of
from certification.truth import Bin, Cmp, Fn, Lit, Neg, Tree, Truth, Undefined, Unknown, Var, compute
from stepguard.errors import EvaluationError, TooLargeError
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import format_expression
from stepguard.language.numerals import Numeral, read_numeral
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

__all__ = ["Mutants", "Numerals", "grammar"]

_STATE: dict[str, Truth] = {
    "x": Fraction(12), "y": Fraction(-7), "z": Fraction(5, 3), "w": Fraction(250, 100), "zero": Fraction(0),
}  # fmt: skip
_PYTHON = re.compile(r"[0-9.xyzw+\-*/%() ]{1,300}\Z")
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,200}(?:\.[0-9]{1,200})?\Z")


_NAMED: dict[str, Truth] = defaultdict(lambda: Fraction(7), _STATE)


class _AnyName(dict[str, Value]):
    def __missing__(self, name: str) -> Value:
        return 7


_VALUES = _AnyName({"x": 12, "y": -7, "z": Fraction(5, 3), "w": Decimal("2.50"), "zero": 0})


def _evaluated(text: str) -> object:
    return evaluate(parse_expression(text), _VALUES)


def _not_ours(result: object) -> str | None:
    kinds = (int, Fraction, bool, str, Decimal, Exception)
    return None if isinstance(result, kinds) else f"a {type(result).__name__} came out"


# Expressions from a grammar


def _tree(chance: random.Random, size: int) -> Tree:
    if size <= 1:
        roll = chance.random()
        if roll < 0.4:
            return Var(chance.choice(list(_STATE)))
        if roll < 0.9:
            return Lit(
                Fraction(chance.choice([chance.randint(0, 9), chance.randint(0, 999), chance.randint(0, 10**20)]))
            )
        return Lit(Fraction(chance.randint(1, 10**6), 10 ** chance.randint(1, 6)))
    roll = chance.random()
    if roll < 0.1:
        return Neg(_tree(chance, size - 1))
    if roll < 0.18:
        return Fn(chance.choice(["abs", "floor", "ceil", "trunc"]), (_tree(chance, size - 1),))
    if roll < 0.24:
        return Fn(chance.choice(["min", "max"]), (_tree(chance, size // 2), _tree(chance, size // 2)))
    if roll < 0.28:
        mode = chance.choice(["half_up", "half_down", "half_even", "up", "down", "ceiling", "floor"])
        return Fn("round", (_tree(chance, size - 1),), mode, chance.randint(-3, 6))
    if roll < 0.32:
        return Bin("^", _tree(chance, min(size - 1, 2)), Lit(Fraction(chance.randint(-3, 5))))
    left = chance.randint(1, size - 1)
    return Bin(
        chance.choice(("+", "-", "*", "/", "+", "-", "*", "/", "//", "%")),
        _tree(chance, left),
        _tree(chance, size - left),
    )


_LOOKS = (
    Look(names=True), Look(names=True), Look(), Look(names=True, blank=""), Look(bare=True), Look(boxed=True),
    Look(names=True, bare=True), Look(names=True, signs={"^": "**", "*": "\u00d7", "-": "\u2212"}),
)  # fmt: skip


def grammar(chance: random.Random) -> Item:
    tree = _tree(chance, chance.choice([2, 2, 2, 3, 3, 3, 4, 5, 6, 8, 12]))
    if chance.random() < 0.1:
        tree = Cmp(chance.choice(["<", "<=", ">", ">=", "==", "!="]), tree, _tree(chance, 3))
    text = show(tree, _STATE, chance.choice(_LOOKS))

    def judge(result: object, found: Found) -> str | None:
        try:
            wanted: object = compute(tree, _STATE)
        except Undefined:
            found.compared += 1
            return None if isinstance(result, EvaluationError) else f"{result!r:.80} has no value"
        except Unknown:
            return None
        if isinstance(result, TooLargeError):
            return None
        found.compared += 1
        same = result is wanted if isinstance(wanted, bool) else not isinstance(result, bool) and result == wanted
        if not same or found.n % 4:
            return None if same else f"{result!r:.80} should be {wanted!r:.80}"
        again = parse_expression(text)
        return None if parse_expression(format_expression(again)) == again else "printed and parsed it is another one"

    return Item(text, _evaluated, judge)


class Mutants:
    def __init__(self, chance: random.Random) -> None:
        looks = [show(_tree(chance, chance.randint(2, 9)), _STATE, chance.choice(_LOOKS)) for _ in range(2000)]
        self.pool = [*looks, *HOSTILE * 3]

    def item(self, chance: random.Random) -> Item:
        text = mutated(chance, chance.choice(self.pool), self.pool)
        if chance.random() < 0.0005:
            text = extreme(chance)
        return Item(text, _evaluated, lambda result, found: _as_python(text, result, found) or _not_ours(result))


def _as_python(text: str, result: object, found: Found) -> str | None:
    """Whether the parser of Python reads another value in the same text."""
    if isinstance(result, Exception) or not _PYTHON.match(text):
        return None
    found.compared += 1
    try:
        wanted = compute(tree_of(text), _NAMED)
    except (SyntaxError, ValueError):
        # Python has no numbers such as 007.
        return None if re.search(r"(?<![0-9.])0[0-9]", text) else "Python does not read it"
    except Undefined:
        return "it has no value"
    except Unknown:
        found.compared -= 1
        return None
    return None if wanted == result else f"{result!r:.80} should be {wanted!r:.80}"


_TYPES = tuple(
    map(
        ValueType.parse,
        (
            "number",
            "integer",
            "decimal(2)",
            "percent",
            "percent(1)",
            "money(USD)",
            "money(JPY)",
            "boolean",
            "one_of(low, high)",
        ),
    )
)
_NUMBERS = (
    "12",
    "-7",
    "3.50",
    "1,234",
    "1,234,567.89",
    "28%",
    "$18",
    "18 USD",
    "3/4",
    "1 3/4",
    "\u00be",
    "1e3",
    "1.5e-3",
    "10^3",
    "2 x 10^4",
    "\\frac{3}{4}",
    "**18**",
    "$18 USD",
    "\u20ac5",
    "1\u2009234",
    "true",
    "low",
    "0.1",
    "007",
    "-0",
    "+5",
    ".5",
    "5.",
    "10\u2076",
    "3 \u00bd",
    "1\\%",
    "5 percent",
    "NaN",
    "1e1000",
    "9" * 40,
    "1/3",
    "-\\dfrac{1}{2}",
    "12 dollars",
    "\\(5\\)",
    "0,123",
)


class Numerals:
    def __init__(self, chance: random.Random) -> None:
        self.pool = [*_NUMBERS, *HOSTILE]

    def item(self, chance: random.Random) -> Item:
        text = mutated(chance, chance.choice(_NUMBERS if chance.random() < 0.9 else self.pool), self.pool)
        if chance.random() < 0.0005:
            text = extreme(chance)
        kind = chance.choice((None, *_TYPES))

        def run(text: str) -> object:
            return read_numeral(text) if kind is None else kind.read(text)

        def judge(result: object, found: Found) -> str | None:
            if isinstance(result, Numeral):
                result = result.value
            elif kind is not None and not isinstance(result, Exception) and not kind.holds(result):
                return f"{result!r:.80} is no {kind}"
            if isinstance(result, Exception) or not _PLAIN_NUMBER.match(text):
                return _not_ours(result)
            found.compared += 1
            wanted = Fraction(text) / (100 if kind is not None and kind.kind == "percent" else 1)
            return None if as_truth(result) == wanted else f"{result!r:.80} should be {wanted!r:.80}"

        return Item(text, run, judge)
