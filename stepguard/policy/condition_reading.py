"""Read conditions as comparisons of sums with bounds, so that equal ones are alike however they are written.

``amount + fee > 2 * paid`` is ``amount + fee - 2 * paid`` above 0, and so is ``2 * (paid - fee / 2) < amount``: what is
counted or measured is a sum of terms, each with a factor, and a term is whatever cannot be taken apart. Names
that a rule gives to values stand for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import date, time, timedelta
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any, Final, NamedTuple

from stepguard.language.expressions import (
    COMPARISONS,
    MIRRORED,
    Call,
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Negate,
    Not,
    Number,
)
from stepguard.language.quantities import Amount, Unit, convert
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.measure_arithmetic import has_offset
from stepguard.language.terms.operands import Aggregate, Field, Item, ListTerm, LiteralTerm, Member, Operand
from stepguard.language.terms.type_inference import type_of
from stepguard.language.value_types import ValueType
from stepguard.language.values import to_exact

_COUNTED: Final = frozenset({"date", "duration", "quantity"})
_MOST_PARTS: Final = 32
"""A longer part counts as one term: names may stand for names that stand for names."""

# A longer table is taken to hold anything: every row would have to be read.
_MOST_ROWS: Final = 1024

LinearSum = Mapping[str, Fraction]
"""Terms with their factors; what is added to them stands under an empty text. Days are 1, times are in seconds."""


class ValueRange(NamedTuple):
    """The possible values of a term: multiples of `step`, from `least` to `most`, or one of some `options`."""

    step: Fraction | None = None
    least: Fraction | None = None
    most: Fraction | None = None
    options: tuple[Fraction, ...] = ()


class Comparison(NamedTuple):
    """A term, or a sum of them, and one of its bounds; True is the bound of a truth value."""

    term: str
    operator: str
    bound: Any
    range: ValueRange = ValueRange()
    parts: tuple[tuple[str, Fraction], ...] = ()


class Joined(NamedTuple):
    """Conditions joined by ``and``, or by ``or``."""

    every: bool
    parts: tuple[Truth, ...]


class Opposite(NamedTuple):
    """The negation of a condition."""

    part: Truth


Truth = bool | Comparison | Joined | Opposite


def comparisons_in(truth: Truth) -> Iterator[Comparison]:
    """The comparisons that a condition is made of."""
    stack = [truth]
    while stack:
        match stack.pop():
            case Joined(_, parts):
                stack.extend(parts)
            case Opposite(part):
                stack.append(part)
            case Comparison() as comparison:
                yield comparison


@dataclass(frozen=True, slots=True)
class ConditionReader:
    """Reads the conditions of one rule.

    Attributes:
        types: the types of the names that can be read.
        tables: the tables, by name.
        texts: what names stand for, where that is not themselves.
        sums: the names of numbers that are worked out from others.
        truths: the names of truth values that are.
        ranges: of terms that were read, where they have one.
    """

    types: dict[str, ValueType]
    tables: Mapping[str, Table]
    texts: dict[str, str] = field(default_factory=dict)
    sums: dict[str, LinearSum] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)
    ranges: dict[str, ValueRange] = field(default_factory=dict)

    def inner(self) -> ConditionReader:
        """The reader of a block: what it names is not known outside."""
        return replace(
            self, types=dict(self.types), texts=dict(self.texts), sums=dict(self.sums), truths=dict(self.truths)
        )

    def name(self, name: str, kind: ValueType, value: Expression | str) -> None:
        """Bind a name to the value of an expression, or to an unknown identified by a text."""
        self.types[name] = kind
        if isinstance(value, str):
            self.texts[name] = value
            return
        text = self.text(value)
        # Names of names double in length each time; a long one is replaced by a short name that no other has.
        self.texts[name] = text if len(text) <= 40 * _MOST_PARTS else f"{name} {len(self.texts)}"
        if kind.kind == "boolean":
            truth = self.truth(value)
            if sum(1 for _ in comparisons_in(truth)) <= _MOST_PARTS:
                self.truths[name] = truth
        elif kind.numeric or kind.kind in ("date", "duration"):
            found = self.sum(value)
            if len(found) <= _MOST_PARTS:
                self.sums[name] = found

    def type(self, tree: Expression) -> ValueType:
        return type_of(tree, self.types, self.tables)

    def truth(self, tree: Expression) -> Truth:
        match tree:
            case Logic(operator, operands):
                return Joined(operator == "and", tuple(map(self.truth, operands)))
            case Not(operand):
                return Opposite(self.truth(operand))
            case Compare(operator, left, right):
                return self.compared(operator, left, right)
            case Member(member, ListTerm(items)) if len(items) <= _MOST_PARTS:
                return Joined(False, tuple(self.compared("==", member, each) for each in items))
            case LiteralTerm(bool() as value):
                return value
            case Name(name) if type(tree) is Name and name in self.truths:
                return self.truths[name]
        return Comparison(self.text(tree), "==", True)

    def compared(self, operator: str, left: Expression, right: Expression) -> Truth:
        kind = self.type(left)
        for one, other in ((left, right), (right, left)):
            if isinstance(other, LiteralTerm) and isinstance(other.value, bool):
                truth = self.truth(one)
                return truth if other.value is (operator == "==") else Opposite(truth)
        if kind.numeric or kind.kind in _COUNTED or kind.kind == "time":
            unit = kind.unit
            # Degrees Celsius are no sums: their zero is not that of kelvins.
            if unit is None or not has_offset(unit) or unit == self.type(right).unit:
                return _against_bound(operator, added(self.sum(left, unit), self.sum(right, unit), -1), self.ranges)
        return _against_bound(operator, added(self.named(left), self.named(right), -1), self.ranges)

    def named(self, tree: Expression) -> LinearSum:
        """What can only be equal to others as a sum, of which equal values have equal numbers."""
        if isinstance(tree, LiteralTerm) and isinstance(tree.value, str):
            return {"": _number_of(tree.value)}
        text = self.text(tree)
        self.ranges.setdefault(text, ValueRange(options=tuple(map(_number_of, self.type(tree).options))))
        return {text: Fraction(1)}

    def sum(self, tree: Expression, unit: Unit | None = None) -> LinearSum:
        """A number, a date, a span or a time as a sum; a quantity in `unit`."""
        match tree:
            case Number(value):
                return {"": Fraction(value)}
            case LiteralTerm(value) if (number := _constant(value, unit)) is not None:
                return {"": number}
            case Negate(operand):
                return added({}, self.sum(operand, unit), -1)
            case Chain(operands, operators):
                kinds = {self.type(each).kind for each in operands}
                # A month has no fixed length, and clock times wrap around at midnight.
                if tree.additive and not kinds & {"period", "time"}:
                    signs = (-1 if each == "-" else 1 for each in operators)
                    parts = zip(operands[1:], signs, strict=True)
                    return reduce(
                        lambda total, each: added(total, self.sum(each[0], unit), each[1]),
                        parts,
                        self.sum(operands[0], unit),
                    )
                if not kinds & {"period", "quantity"} and (product := self.product(operands, operators)) is not None:
                    return product
            case Name(name) if type(tree) is Name and name in self.sums:
                return self.sums[name]
        kind = self.type(tree)
        text = self.text(tree)
        self.ranges.setdefault(text, self.range(tree, kind))
        factor = Fraction(1) if unit is None or kind.unit is None else Fraction(convert(1, kind.unit, unit))
        return {text: factor}

    def product(self, operands: Iterable[Expression], operators: Iterable[str]) -> LinearSum | None:
        """A product with at most one factor that is no constant; None of every other one."""
        total: LinearSum = {"": Fraction(1)}
        for operator, operand in zip(("*", *operators), operands, strict=True):
            other = self.sum(operand)
            factor = constant_of(other)
            if operator not in "*/" or (operator == "/" and not factor):
                return None
            if factor is None:
                total, factor = other, constant_of(total)
            if factor is None:
                return None
            total = {text: each / factor if operator == "/" else each * factor for text, each in total.items()}
        return total

    def range(self, tree: Expression, kind: ValueType) -> ValueRange:
        """The range of a term's values, as far as its form tells."""
        match tree:
            case Aggregate("count"):
                return ValueRange(Fraction(1), Fraction(0))
            case Call("abs"):
                return ValueRange(least=Fraction(0))
            case Call("min" | "max" as function, arguments):
                constants = (constant_of(self.sum(each, kind.unit)) for each in arguments)
                ends = [each for each in constants if each is not None]
                if ends:
                    return ValueRange(least=max(ends)) if function == "max" else ValueRange(most=min(ends))
            case Item(Name(name)) if (
                0 < len(rows := self.tables[name].rows if name in self.tables else ()) <= _MOST_ROWS
            ):
                values = (_constant(to_exact(self.tables[name].value.accept(row[-1])), kind.unit) for row in rows)
                numbers = [each for each in values if each is not None]
                if len(numbers) == len(rows):
                    return ValueRange(least=min(numbers), most=max(numbers))
            # Only what is read as it is declared: the places of a type say nothing of what is computed from it.
            case Name() | Field() | Item() if not isinstance(tree, Operand) or isinstance(tree, Field | Item):
                if kind.kind in ("integer", "date"):
                    return ValueRange(Fraction(1))
                if kind.places is not None:
                    return ValueRange(Fraction(1, 10**kind.places))
        return ValueRange()

    def text(self, tree: object) -> str:
        """An expression as text, alike in all rules of a tool."""
        if type(tree) is Name:
            return self.texts.get(tree.name, tree.name)
        if isinstance(tree, tuple):
            return f"({','.join(map(self.text, tree))})"
        if is_dataclass(tree):
            parts = (getattr(tree, each.name) for each in fields(tree) if each.compare and each.init)
            return f"{type(tree).__name__}{self.text(tuple(parts))}"
        return repr(tree)


def _number_of(text: str) -> Fraction:
    """The number that represents a text, and no other text."""
    # The x in front keeps leading zero bytes apart.
    return Fraction(int.from_bytes(f"x{text}".encode("utf-8", "surrogatepass")))


def _constant(value: object, unit: Unit | None) -> Fraction | None:
    match value:
        case bool():
            return None
        case int() | Fraction():
            return Fraction(value)
        case date():
            return Fraction(value.toordinal())
        case timedelta():
            return Fraction(value // timedelta(microseconds=1), 86_400_000_000)
        case time():
            return Fraction(value.hour * 3600 + value.minute * 60 + value.second)
        case Amount(number, own) if own is not None and unit is not None:
            return Fraction(convert(number, own, unit))
    return None


def constant_of(total: LinearSum) -> Fraction | None:
    """The value of a sum without terms; None of any other."""
    return None if total.keys() - {""} else total.get("", Fraction(0))


def added(one: LinearSum, other: LinearSum, factor: int | Fraction) -> dict[str, Fraction]:
    """A sum, and `factor` times another one."""
    total = dict(one)
    for text, each in other.items():
        total[text] = total.get(text, Fraction(0)) + factor * each
    return total


def _against_bound(operator: str, difference: LinearSum, ranges: Mapping[str, ValueRange]) -> Truth:
    """Compare a difference with zero."""
    parts = [(text, each) for text, each in sorted(difference.items()) if text and each]
    bound = -difference.get("", Fraction(0))
    if not parts:
        return COMPARISONS[operator](0, bound)
    first = parts[0][1]
    # Divided by the first factor: 2*a > 4 and a > 2 are one comparison.
    scaled = tuple((text, each / first) for text, each in parts)
    # Division by a negative number turns the comparison around.
    sign = operator if first > 0 else MIRRORED[operator]
    return Comparison(
        " + ".join(f"{factor} {text}" for text, factor in scaled),
        sign,
        bound / first,
        _range_of(scaled, ranges),
        scaled,
    )


def _range_of(parts: tuple[tuple[str, Fraction], ...], ranges: Mapping[str, ValueRange]) -> ValueRange:
    """The range of a sum, from the ranges of its terms."""
    if len(parts) == 1 and (options := ranges.get(parts[0][0], ValueRange()).options):
        return ValueRange(options=options)
    step: Fraction | None = Fraction(0)
    ends: list[Fraction | None] = [Fraction(0), Fraction(0)]
    for text, factor in parts:
        own = ranges.get(text, ValueRange())
        step = None if step is None or own.step is None else _common_step(step, abs(factor) * own.step)
        for at, end in enumerate((own.least, own.most) if factor > 0 else (own.most, own.least)):
            total = ends[at]
            ends[at] = None if total is None or end is None else total + factor * end
    return ValueRange(step, ends[0], ends[1])


def _common_step(one: Fraction, other: Fraction) -> Fraction:
    below = one.denominator * other.denominator
    return Fraction(gcd(one.numerator * other.denominator, other.numerator * one.denominator), below)
