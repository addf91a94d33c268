"""Foreign text by the million: nothing but values and errors of ours comes out, quickly, and nothing else happens.

Four kinds of items. ``grammar``: expressions made from a tree whose value is worked out independently; both must agree.
``mutant``: expressions with characters changed, and hostile ones; where the parser of Python reads the same text, the
value must be the one that it has there. ``entry``: right entries of steps with characters changed, judged; what passes
must be true. ``numeral`` and ``reply``: numbers and whole replies with characters changed. Of these, the first three
count as expressions.

While it runs, an audit hook watches for anything that executes code, opens files, starts processes or connects.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from certification.cases import Case, answer, pairs_text
from certification.hostile import HOSTILE, extreme
from certification.looks import Look, show
from certification.right_ways import RIGHT_WAYS
from certification.traces import Trace, make_trace
from certification.truth import Bin, Cmp, Fn, Lit, Neg, Tree, Truth, Undefined, Unknown, Var, compute

from stepguard.backends import Completion
from stepguard.checks import judge_claims
from stepguard.errors import EvaluationError, ExpressionError, TooLargeError, ValueRefused
from stepguard.exact import evaluate
from stepguard.expressions import format_expression, parse_expression
from stepguard.numerals import Numeral, read_numeral
from stepguard.replies import Reading, read_reply
from stepguard.reply_formats import EquationFormat
from stepguard.value_types import ValueType
from stepguard.values import Value
from stepguard.verdicts import Claim, Deviation

__all__ = ["EXPRESSIONS", "LIMIT", "TARGETS", "Found", "fuzz"]

LIMIT = 0.05
"""Seconds of processor time that one item may take."""
EXPRESSIONS = ("grammar", "mutant", "entry")
TARGETS = {"grammar": 0.45, "mutant": 0.45, "entry": 0.1, "numeral": 0.2, "reply": 0.02}
"""The targets, and how many items of each there are for every fuzzed expression."""

_STATE: dict[str, Truth] = {
    "x": Fraction(12), "y": Fraction(-7), "z": Fraction(5, 3), "w": Fraction(250, 100), "zero": Fraction(0),
}  # fmt: skip
_ALPHABET = (
    "0123456789" * 3 + "..,,  ()()+-*/%^=<>!xyzE_e[]{}\\\"'$€&|~@#:;?\u2212\u00d7\u00f7\u00b7\u2248\u2264\u00bd\u00b2\uff11"
    "\u0661\u200b\u00a0\u2009\n\t\r\0\x1b\ud800abfrac"
)
_SPANS = ("**", "//", "==", "<=", "max(", "min(", "sqrt(", "round(", "mod", "1e9", "\\frac{", "\\times", "10^", "half_up", "%")
_PYTHON = re.compile(r"[0-9.xyzw+\-*/%() ]{1,300}\Z")
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,200}(?:\.[0-9]{1,200})?\Z")
_OURS = (ExpressionError, EvaluationError, ValueRefused)
_SHOWN = 50


class _AnyName(dict[str, Value]):
    def __missing__(self, name: str) -> Value:
        return 7


_VALUES = _AnyName({"x": 12, "y": -7, "z": Fraction(5, 3), "w": Decimal("2.50"), "zero": 0})


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
            "over_50_ms": self.slow,
            "slowest_ms": round(self.slowest * 1000, 2),
            "slowest_item": self.slowest_item,
        }


class _Watch:
    """What happens in this process besides computing, while it is on."""

    EVENTS = ("exec", "compile", "open", "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "import", "pty.", "code.")

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and event.startswith(self.EVENTS):
            self.seen.append(f"{event} {arguments!r:.100}")


@dataclass(slots=True)
class _Item:
    """One fuzzed text, what is done with it, and what is known of the result."""

    text: str
    run: Callable[[str], object]
    judge: Callable[[object, Found], str | None]
    """What is wrong with the result, None where nothing is known to be."""


def fuzz(seed: int, expressions: int) -> dict[str, Found]:
    """Fuzz so many expressions, and other text in proportion."""
    watch = _Watch()
    found: dict[str, Found] = {}
    for target, share in TARGETS.items():
        chance = random.Random(f"fuzz:{seed}:{target}")
        makers = {"grammar": _grammar, "mutant": _Mutants(chance).item, "numeral": _Numerals(chance).item}
        maker = makers.get(target) or (_Entries(chance).item if target == "entry" else _Replies(chance).item)
        found[target] = each = Found()
        for _ in range(round(expressions * share)):
            item = maker(chance)
            each.n += 1
            _one(item, each, watch)
    return found


def _one(item: _Item, found: Found, watch: _Watch) -> None:
    result: object = None
    watch.on = True
    start = time.thread_time()
    try:
        result = item.run(item.text)
    except _OURS as error:
        result = error
    except RecursionError as error:
        result = error
        found.escapes.append(f"RecursionError: {item.text[:200]!a}")
    except Exception as error:  # noqa: BLE001 - what is looked for
        result = error
        found.escapes.append(f"{type(error).__name__}: {str(error)[:100]!a}: {item.text[:200]!a}")
    took = time.thread_time() - start
    watch.on = False
    if watch.seen:
        found.escapes.append(f"{watch.seen[0]}: {item.text[:200]!a}")
        watch.seen.clear()
    if took > LIMIT:
        took = min(took, *(_timed(item) for _ in range(2)))
        if took > LIMIT:
            found.slow.append(f"{took * 1000:.0f} ms, {len(item.text)} characters: {item.text[:100]!a}")
    if took > found.slowest:
        found.slowest, found.slowest_item = took, f"{len(item.text)} characters: {item.text[:100]!a}"
    found.outcomes[_outcome(result)] += 1
    wrong = item.judge(result, found)
    if wrong is not None and len(found.disagreements) < _SHOWN:
        found.disagreements.append(f"{wrong}: {item.text[:300]!a}")


def _timed(item: _Item) -> float:
    start = time.thread_time()
    try:
        item.run(item.text)
    except Exception:  # noqa: BLE001 - it was counted
        pass
    return time.thread_time() - start


def _outcome(result: object) -> str:
    if isinstance(result, Exception):
        return type(result).__name__
    if isinstance(result, Reading):
        return "read" if result.failed is None else result.failed.kind
    return result if isinstance(result, str) and result.startswith("judged ") else f"a value ({type(result).__name__})"


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
            return Lit(Fraction(chance.choice([chance.randint(0, 9), chance.randint(0, 999), chance.randint(0, 10**20)])))
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
    return Bin(chance.choice(("+", "-", "*", "/", "+", "-", "*", "/", "//", "%")), _tree(chance, left), _tree(chance, size - left))


_LOOKS = (
    Look(names=True), Look(names=True), Look(), Look(names=True, blank=""), Look(bare=True), Look(boxed=True),
    Look(names=True, bare=True), Look(names=True, signs={"^": "**", "*": "\u00d7", "-": "\u2212"}),
)  # fmt: skip


def _grammar(chance: random.Random) -> _Item:
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
        if isinstance(result, TooLargeError):
            return None
        found.compared += 1
        same = result is wanted if isinstance(wanted, bool) else not isinstance(result, bool) and result == wanted
        if not same or found.n % 4:
            return None if same else f"{result!r:.80} should be {wanted!r:.80}"
        again = parse_expression(text)
        return None if parse_expression(format_expression(again)) == again else "printed and parsed it is another one"

    return _Item(text, _evaluated, judge)


# Texts with characters changed


def _mutated(chance: random.Random, text: str, pool: Sequence[str]) -> str:
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


class _Mutants:
    def __init__(self, chance: random.Random) -> None:
        looks = [show(_tree(chance, chance.randint(2, 9)), _STATE, chance.choice(_LOOKS)) for _ in range(2000)]
        self.pool = [*looks, *HOSTILE * 3]

    def item(self, chance: random.Random) -> _Item:
        if chance.random() < 0.0005:
            text = extreme(chance)
        else:
            text = _mutated(chance, chance.choice(self.pool), self.pool)
        return _Item(text, _evaluated, lambda result, found: _as_python(text, result, found) or _not_ours(result))


def _as_python(text: str, result: object, found: Found) -> str | None:
    """Whether the parser of Python reads another value in the same text."""
    if isinstance(result, Exception) or not _PYTHON.match(text):
        return None
    found.compared += 1
    try:
        wanted = _walk(ast.parse(text.strip(), mode="eval").body, text.strip())
    except (SyntaxError, ValueError):
        # Python has no numbers such as 007.
        return None if re.search(r"(?<![0-9.])0[0-9]", text) else "Python does not read it"
    except Undefined:
        return "it has no value"
    except Unknown:
        found.compared -= 1
        return None
    return None if wanted == result else f"{result!r:.80} should be {wanted!r:.80}"


_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "^",
}  # fmt: skip


def _walk(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant():
            return Fraction(text.encode()[node.col_offset : node.end_col_offset].decode())
        case ast.Name(id=name):
            value = _STATE.get(name, Fraction(7))
            assert isinstance(value, Fraction)
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _walk(operand, text)
        case ast.BinOp(left=left, op=operation, right=right):
            one, two = Lit(_walk(left, text)), Lit(_walk(right, text))
            value = compute(Bin(_OPERATORS[type(operation)], one, two), {})
            assert isinstance(value, Fraction)
            return value
    raise Undefined("other syntax")


_TYPES = tuple(
    map(
        ValueType.parse,
        ("number", "integer", "decimal(2)", "percent", "percent(1)", "money(USD)", "money(JPY)", "boolean", "one_of(low, high)"),
    )
)
_NUMBERS = (
    "12", "-7", "3.50", "1,234", "1,234,567.89", "28%", "$18", "18 USD", "3/4", "1 3/4", "\u00be", "1e3", "1.5e-3", "10^3",
    "2 x 10^4", "\\frac{3}{4}", "**18**", "$18 USD", "\u20ac5", "1\u2009234", "true", "low", "0.1", "007", "-0", "+5", ".5", "5.",
    "10\u2076", "3 \u00bd", "1\\%", "5 percent", "NaN", "1e1000", "9" * 40, "1/3", "-\\dfrac{1}{2}", "12 dollars", "\\(5\\)", "0,123",
)  # fmt: skip


class _Numerals:
    def __init__(self, chance: random.Random) -> None:
        self.pool = [*_NUMBERS, *HOSTILE]

    def item(self, chance: random.Random) -> _Item:
        text = _mutated(chance, chance.choice(_NUMBERS if chance.random() < 0.9 else self.pool), self.pool)
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
            return None if Fraction(result) == wanted else f"{result!r:.80} should be {wanted!r:.80}"  # type: ignore[arg-type]

        return _Item(text, run, judge)


# Entries and replies with characters changed: what passes must be true


def _values_of(trace: Trace, at: int) -> dict[str, Value]:
    kinds = {made.id: made.step.type for made in trace.steps}
    found: dict[str, Value] = {}
    for name, value in trace.states[at].items():
        if not isinstance(value, Fraction):
            found[name] = value
            continue
        exact = value.numerator if value.denominator == 1 else value
        found[name] = kinds[name].convert(exact) if name in kinds else exact
    return found


class _Entries:
    def __init__(self, chance: random.Random) -> None:
        self.format = EquationFormat()
        self.cases: list[tuple[Case, str, dict[str, Value]]] = []
        ways = list(RIGHT_WAYS.values())
        while len(self.cases) < 3000:
            trace = make_trace(chance)
            at = chance.randrange(len(trace.steps))
            case = Case(chance, trace, at)
            entry = chance.choice(ways)(case)
            if isinstance(entry, str) and case.made.tree is not None:
                self.cases.append((case, entry, _values_of(trace, at)))
        self.pool = [*(entry for _, entry, _ in self.cases), *HOSTILE]

    def item(self, chance: random.Random) -> _Item:
        case, entry, values = chance.choice(self.cases)
        step = case.made.step

        def run(text: str) -> object:
            claim = self.format.claim(step, text)
            if isinstance(claim, Deviation):
                return f"judged {claim.kind}"
            (judged,) = judge_claims((step,), (claim,), values)
            verdict = judged.verdict
            assert verdict is not None
            if verdict.outcome != "pass":
                return f"judged {verdict.kind}"
            return _Passed(judged.value)

        def judge(result: object, found: Found) -> str | None:
            if not isinstance(result, _Passed):
                return None if isinstance(result, str) and result.startswith("judged ") else f"{result!r:.80} came out"
            found.compared += 1
            value = result.value
            given: Truth | None = Fraction(value) if isinstance(value, int | Decimal) and type(value) is not bool else value  # type: ignore[arg-type, assignment]
            wrong = given is None or case.spec.wrong(given, case.made.exact)
            return f"{value!r:.80} passed for {case.made.truth!r:.80}" if wrong else None

        return _Item(_mutated(chance, entry, self.pool), run, judge)


@dataclass(frozen=True, slots=True)
class _Passed:
    value: Value | None


class _Replies:
    def __init__(self, chance: random.Random) -> None:
        self.format = EquationFormat()
        self.traces = [make_trace(chance) for _ in range(200)]
        self.pool = [*(pairs_text(answer(trace, chance)) for trace in self.traces), "```json\n", "<think>", "</think>", *HOSTILE]

    def item(self, chance: random.Random) -> _Item:
        trace = chance.choice(self.traces)
        text = _mutated(chance, pairs_text(answer(trace, chance)), self.pool)
        steps = [made.step for made in trace.steps]
        values = _values_of(trace, 0)

        def run(text: str) -> object:
            return read_reply(Completion(text), steps, self.format)

        def judge(result: object, found: Found) -> str | None:
            if not isinstance(result, Reading):
                return f"{result!r:.80} came out"
            claims: Sequence[Claim] = result.claims
            for at, judged in enumerate(judge_claims(steps[: len(claims)], claims, values)):
                case = Case(chance, trace, at)
                if judged.verdict is None or judged.verdict.outcome != "pass":
                    break
                found.compared += 1
                value = judged.value
                exact = isinstance(value, int | Decimal) and type(value) is not bool
                given: Any = Fraction(value) if exact else value  # type: ignore[arg-type]
                if given != case.made.truth:
                    if case.spec.wrong(given, case.made.exact):
                        return f"{value!r:.80} passed for {case.made.id}"
                    break  # within a tolerance: what follows rests on it
            return None

        return _Item(text, run, judge)
