"""Exact evaluation of expressions with operands: records, lists, tables, dates, amounts, choices.

Numbers are computed as `stepguard.language.evaluation` does, everything else as
`stepguard.language.terms.measure_arithmetic` says. ``and``, ``or`` and a choice look only at what they need, so that
``n > 0 and total / n > 5`` has a value for 0. What a step may cost is limited: the size of every number, how much is
computed, and how long a list becomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Final, Protocol, cast

from stepguard.errors import EvaluationError, InexactError, TooLargeError, UndefinedError
from stepguard.language.digits import Exact
from stepguard.language.evaluation import Evaluation, shortened
from stepguard.language.expressions import Call, Chain, Compare, Expression, Logic, Name, Negate, Not, Number, Power
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.measure_arithmetic import MeasureArithmetic, compare, named_kind, negated
from stepguard.language.terms.operands import (
    Aggregate,
    Choice,
    Field,
    Item,
    ListTerm,
    LiteralTerm,
    Member,
    Operand,
    RecordTerm,
)
from stepguard.language.values import Value, to_exact

MAX_TERM_DEPTH: Final = 200
"""How deep an expression may be nested."""

_MAX_WORK: Final = 1_000_000  # no mutate: a limit
"""The most operations, items and fields that one expression may use."""
_NO_TABLES: Final[Mapping[str, Table]] = {}


class NamedValues(Protocol):
    """The values of variables: a mapping, or what looks a name up when it is read."""

    def __getitem__(self, name: str, /) -> Value: ...


def evaluate_term(tree: Expression, values: NamedValues, tables: Mapping[str, Table] = _NO_TABLES) -> Value:
    """The exact value of an expression; a number as `int` or `Fraction`, whatever places its parts were declared with.

    Raises:
        UndefinedError: it has no value for these data: division by zero, no such item, no row of a table.
        InexactError: a value is irrational, or an operand is of the wrong kind.
        TooLargeError: a result, the work or the nesting would pass the limits.
        KeyError: a variable has no value.
    """
    try:
        return _TermEvaluation(values, tables).value(tree)
    except RecursionError:  # the caller's own stack was nearly full
        raise TooLargeError("the expression is nested too deeply") from None


class _TermEvaluation:
    def __init__(self, values: NamedValues, tables: Mapping[str, Table]) -> None:
        self.values = values
        self.tables = tables
        self.bound: dict[str, Value] = {}
        self.core = Evaluation({})
        self.depth = 0
        self.work = 0

    def value(self, tree: Expression) -> Value:
        return cast(Value, to_exact(self.stored(tree)))

    def stored(self, tree: Expression) -> Value:
        """The value as stored, for what is only passed on: an amount keeps its places (`1.50`, not 3/2)."""
        self.depth += 1
        self.charge(1)
        if self.depth > MAX_TERM_DEPTH:
            raise TooLargeError(f"the expression is nested deeper than {MAX_TERM_DEPTH} levels")
        try:
            found = self.operand(tree) if isinstance(tree, Operand) else self.core_value(tree)
        except EvaluationError as error:
            raise self.located(error, tree) from None
        self.depth -= 1
        return found

    def located(self, error: EvaluationError, tree: Expression) -> EvaluationError:
        """Add the innermost expression that an error happened in to its message."""
        # It passes every level on its way up, and only the innermost one is of use to a reader.
        if getattr(error, "located", False):
            return error
        # Printing recurses too, and a tree that is nested too deeply would overflow there.
        text, shown = str(error), shortened(tree) if self.depth <= MAX_TERM_DEPTH else ""
        located = type(error)(text if not shown or shown in text else f"{text}: {shown}")
        located.located = True  # type: ignore[attr-defined]
        return located

    def charge(self, cost: int) -> None:
        self.work += cost
        if self.work > _MAX_WORK:
            raise TooLargeError(f"more than {_MAX_WORK} operations")

    def core_value(self, tree: Expression) -> Value:
        match tree:
            case Number(value):
                return value
            case Name(name):
                return self.variable(name)
            case Negate(operand):
                return negated(self.value(operand))
            case Chain(operands, operators):
                total = self.value(operands[0])
                for operator, operand in zip(operators, operands[1:], strict=True):
                    total = self.apply(operator, total, self.value(operand), tree)
                return total
            case Power(base, exponent):
                return self.power(self.value(base), self.value(exponent), tree)
            case Compare(operator, left, right):
                return compare(operator, self.value(left), self.value(right))
            case Logic(operator, operands):
                return self.logic(operator, operands)
            case Not(operand):
                return not self.truth(operand)
        assert isinstance(tree, Call)
        return self.call(tree)

    def variable(self, name: str) -> Value:
        # The variable of an aggregate goes first, as it does for types.
        return self.bound[name] if name in self.bound else self.values[name]

    def truth(self, tree: Expression) -> bool:
        value = self.value(tree)
        if type(value) is not bool:
            raise InexactError(f"{shortened(tree)} is {named_kind(value)} and no truth value")
        return value

    def logic(self, operator: str, operands: tuple[Expression, ...]) -> bool:
        for operand in operands:
            # The first operand that decides ends it, so that `n > 0 and total / n > 5` never divides by 0.
            if self.truth(operand) == (operator == "or"):
                return operator == "or"
        return operator == "and"

    def apply(self, operator: str, left: Value, right: Value, tree: Expression) -> Value:
        if type(left) in (int, Fraction) and type(right) in (int, Fraction):
            return self.core.apply(operator, cast(Exact, left), cast(Exact, right), tree)
        return self.measures(tree).apply(operator, left, right)

    def measures(self, tree: Expression) -> MeasureArithmetic:
        return MeasureArithmetic(partial(self.core.apply, tree=tree))

    def power(self, base: Value, exponent: Value, tree: Expression) -> Value:
        if type(exponent) not in (int, Fraction):
            raise InexactError(f"an exponent is a number, and this one is {named_kind(exponent)}")
        if type(base) in (int, Fraction):
            return self.core.power(cast(Exact, base), cast(Exact, exponent), tree)
        if not isinstance(base, Amount):
            raise InexactError(f"{named_kind(base)} has no powers")
        return self.measures(tree).power(base, cast(Exact, exponent))

    def call(self, tree: Call) -> Value:
        arguments = [self.value(each) for each in tree.arguments]
        first = arguments[0]
        # By `type`: isinstance would let truth values through as numbers.
        if all(type(each) in (int, Fraction) for each in arguments):
            return self.core.call(tree.function, cast("list[Exact]", arguments), tree)
        if tree.function in ("min", "max"):
            return self.extreme(tree.function, arguments)
        if tree.function == "abs":
            return self.extreme("max", [first, negated(first)])
        if isinstance(first, Amount) and tree.function in ("round", "floor", "ceil", "trunc"):
            numbers = [first.value, *cast("list[Exact]", arguments[1:])]
            return Amount(self.core.call(tree.function, numbers, tree), first.unit)
        wrong = next(each for each in arguments if type(each) not in (int, Fraction))
        raise InexactError(f"{tree.function} takes numbers, not {named_kind(wrong)}")

    def extreme(self, function: str, values: list[Value]) -> Value:
        """The smallest or the largest; of equal ones the first."""
        best = values[0]
        operator = "<" if function == "min" else ">"
        for value in values:
            if compare(operator, value, best):
                best = value
        return best

    def operand(self, tree: Operand) -> Value:
        match tree:
            case LiteralTerm():
                return tree.value
            case Field(of, key):
                return self.field(self.value(of), key, of)
            case Item(of, keys):
                return self.item(of, keys)
            case Choice(then, condition, otherwise):
                return self.stored(then if self.truth(condition) else otherwise)
            case Member(member, of):
                return self.member(member, of)
            case Aggregate():
                return self.aggregate(tree)
            case ListTerm(items):
                return tuple(self.stored(each) for each in items)
        assert isinstance(tree, RecordTerm)
        return Record({key: self.stored(each) for key, each in tree.fields})

    def field(self, value: Value, key: str, of: Expression) -> Value:
        if isinstance(value, tuple):
            # A field of a list reads every record, at one level of nesting.
            self.charge(len(value))
            return tuple(self.field(each, key, of) for each in value)
        if not isinstance(value, Record):
            raise InexactError(f"{shortened(of)} is {named_kind(value)} and has no field {key!r}")
        if key not in value:
            raise UndefinedError(f"{shortened(of)} has no field {key!r}: it has {', '.join(value)}")
        return value[key]

    def table(self, tree: Expression) -> Table | None:
        return self.tables.get(tree.name) if type(tree) is Name else None

    def item(self, of: Expression, keys: tuple[Expression, ...]) -> Value:
        if (table := self.table(of)) is not None:
            return table.look_up(tuple(self.value(each) for each in keys))
        value = self.value(of)
        if not isinstance(value, tuple):
            raise InexactError(f"{shortened(of)} is {named_kind(value)} and has no items")
        if len(keys) != 1:
            raise InexactError(f"an item of the list {shortened(of)} has one number, not {len(keys)}")
        index = self.value(keys[0])
        if type(index) is not int:
            raise InexactError(
                f"items of {shortened(of)} are counted in whole numbers, and this is {named_kind(index)}"
            )
        # A negative index that was computed is a mistake in the data, and must not quietly read from the end.
        if not 0 <= index < len(value):
            last = f"; the last one is `{shortened(of)}[count of {shortened(of)} - 1]`" if index < 0 else ""
            counted = f"it has {len(value)}, counted from 0{last}" if value else "it is empty"
            raise UndefinedError(f"the list {shortened(of)} has no item {index}: {counted}")
        return value[index]

    def member(self, member: Expression, of: Expression) -> bool:
        value = self.value(member)
        if (table := self.table(of)) is not None:
            return table.has_row((value,))
        group = self.value(of)
        if isinstance(group, tuple):
            self.charge(len(group))
            return any(compare("==", value, cast(Value, to_exact(each))) for each in group)
        if isinstance(group, str) and isinstance(value, str):
            return value in group
        raise InexactError(f"{named_kind(value)} cannot be in {named_kind(group)}")

    def aggregate(self, tree: Aggregate) -> Value:
        values = self.aggregated(tree)
        match tree.function:
            case "count":
                return len(values)
            case "sum":
                total: Value = 0  # the sum of nothing; the first value gives a sum its kind and its unit
                for value in values:
                    total = self.apply("+", total, value, tree)
                return total
            case "all" | "any":
                wrong = next((each for each in values if type(each) is not bool), None)
                if wrong is not None:
                    raise InexactError(f"{tree.function} of truth values only, not of {named_kind(wrong)}")
                return all(values) if tree.function == "all" else any(values)
        if not values:
            raise UndefinedError(f"there is no value to take the {tree.function} of")
        return values[0] if tree.function == "first" else self.extreme(tree.function, values)

    def aggregated(self, tree: Aggregate) -> list[Value]:
        """The values that are aggregated, those that the condition leaves."""
        source = self.value(tree.value if tree.over is None else tree.over)
        if not isinstance(source, tuple):
            listed = shortened(tree.value if tree.over is None else tree.over)
            raise InexactError(f"{listed} is {named_kind(source)} and no list")
        self.charge(len(source))
        if tree.variable is None:
            return [cast(Value, to_exact(each)) for each in source]
        found: list[Value] = []
        for each in source:
            self.bound[tree.variable] = each
            if tree.where is None or self.truth(tree.where):
                found.append(self.value(tree.value))
                if tree.function == "first":
                    break
        # What stands behind the aggregate does not see its variable.
        self.bound.pop(tree.variable, None)
        return found
