"""The types of expressions with operands, before anything is computed.

What can never have a value is refused here, with what is there and what to write: a date added to a number, amounts in
two currencies or in units that measure different things, a field that a record does not have.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Final, cast

from stepguard.errors import ProcedureError, TooLargeError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Call, Chain, Compare, Expression, Logic, Name, Negate, Not, Number, Power
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.money_products import check_products
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
    scaled_operand,
)
from stepguard.language.terms.percentages import check_beside, check_hundredths, check_value, is_percentage
from stepguard.language.terms.type_arithmetic import (
    check_offset,
    takes_off_currency,
    two_currencies,
    type_of_negative,
    type_of_operation,
    type_of_power,
)
from stepguard.language.terms.type_relations import (
    BOOLEAN,
    TEXTS,
    fits,
    joined,
    joined_numbers,
    literal_type,
    quantity_in,
)
from stepguard.language.terms.type_remedies import remedy, suggestion
from stepguard.language.value_types import NUMBER, ValueType

_INTEGER: Final = ValueType(kind="integer")
_ORDERED: Final = frozenset({"date", "time", "duration", "quantity"})
_NO_TABLES: Final[Mapping[str, Table]] = {}


def type_of(
    tree: Expression,
    types: Mapping[str, ValueType],
    tables: Mapping[str, Table] = _NO_TABLES,
    *,
    into: ValueType | None = None,
) -> ValueType:
    """Infer the type of an expression: arithmetic gives a number, and money only where it is added to money.

    Args:
        into: the type that is declared for its value. Where that names no currency, an amount that a product only makes
            larger or smaller (`scaled_operand`) is not converted by it, and is money still.

    Raises:
        ProcedureError: it can have no value, whatever its variables are.
    """
    try:
        return _TermTypes(types, tables, into=into).checked(tree)
    except RecursionError:
        raise ProcedureError("the expression is nested too deeply") from None
    except TooLargeError as error:
        raise ProcedureError(f"{shortened(tree)!r}: {error}") from None


def check_divisors(tree: Expression) -> None:
    """Refuse an expression that divides by 0, whatever its variables are. Raises ProcedureError."""
    if type(tree) is Chain and not tree.additive:
        for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
            if operator != "*" and type(operand) is Number and not operand.value:
                raise ProcedureError(f"{shortened(tree)!r} divides by 0, which has no value")


class _TermTypes:
    def __init__(self, types: Mapping[str, ValueType], tables: Mapping[str, Table], *, into: ValueType | None) -> None:
        self.types = types
        self.tables = tables
        while into is not None and into.items is not None:
            into = into.items
        self.into = into
        self.scaled = into is not None and into.numeric and into.currency is None

    def checked(self, tree: Expression) -> ValueType:
        """The type of a whole expression, after its products of money are checked as well."""
        kind = self.of(tree)
        check_products(tree, self.currency)
        return kind

    def of(self, tree: Expression) -> ValueType:
        if isinstance(tree, Operand):
            return self.operand(tree)
        match tree:
            case Number():
                return NUMBER
            case Name(name):
                return self.variable(name)
            case Negate(operand):
                return type_of_negative(self.of(operand), operand)
            case Chain(operands, operators):
                if self.scaled and (part := scaled_operand(tree, self.named, self.currency)) is not None:
                    return self.of(part)
                check_hundredths(tree, self.of)
                total, text = self.of(operands[0]), operands[0]
                for at, (operator, operand) in enumerate(zip(operators, operands[1:], strict=True), 1):
                    kind = self.of(operand)
                    if self.scaled and at > 1 and takes_off_currency(operator, operand, kind):
                        # In `amount * 3 / 1 USD` the product so far is still in dollars, as the check below needs it.
                        part = scaled_operand(Chain(operands[:at], operators[: at - 1]), self.named, self.currency)
                        total = total if part is None else self.of(part)
                    total, text = type_of_operation(operator, total, kind, text, operand, tree), operand
                return total
            case Power(base, exponent):
                return type_of_power(self.of(base), self.of(exponent), base, exponent)
            case Compare(operator, left, right):
                self.check_comparable(operator, left, right)
                return BOOLEAN
            case Logic(_, operands):
                for operand in operands:
                    self.check_truth(operand)
                return BOOLEAN
            case Not(operand):
                self.check_truth(operand)
                return BOOLEAN
        assert isinstance(tree, Call)
        return self.call(tree)

    def named(self, name: Name) -> ValueType | None:
        return self.types.get(name.name)

    def currency(self, tree: Expression) -> str | None:
        return self.of(tree).currency

    def variable(self, name: str) -> ValueType:
        found = self.types.get(name)
        if found is not None:
            return found
        if name in self.tables:
            raise ProcedureError(f"{name!r} is a table: say which row, `{name}[...]`")
        raise ProcedureError(f"{name!r} is no input, no table, and set by no step before{suggestion(name, self.types)}")

    def check_truth(self, tree: Expression) -> None:
        kind = self.of(tree)
        if kind.kind != "boolean":
            remedy = "compare it with something" if not kind.structured else "say `any of` or `all of` it"
            if kind.items == BOOLEAN:
                remedy += f", or go through it, `count of x for x in {shortened(tree)} where x`"
            raise ProcedureError(f"a truth value is needed, and {shortened(tree)!r} is {kind}: {remedy}")

    def check_comparable(self, operator: str, left: Expression, right: Expression) -> None:
        mine, theirs = self.of(left), self.of(right)
        shown = f"{shortened(left)!r}, which is {mine}, and {shortened(right)!r}, which is {theirs}"
        for option, tree in ((mine, right), (theirs, left)):
            self.check_option(option, tree)
        check_beside(left, mine, right, theirs)
        if mine.numeric and theirs.numeric and joined_numbers(mine, theirs) is None:
            raise ProcedureError(two_currencies(mine, theirs, left, right))
        # A duration may become a period where one is set, but which of the two is longer depends on the date.
        alike = joined(mine, theirs) is not None and {mine.kind, theirs.kind} != {"duration", "period"}
        if not alike or (mine.options and theirs.options and set(mine.options).isdisjoint(theirs.options)):
            raise ProcedureError(f"{shown} are never equal, and have no order{remedy(mine, theirs)}")
        if operator not in ("==", "!=") and not (mine.numeric or mine.kind in _ORDERED):
            raise ProcedureError(f"{shown} have no order: compare them with == or !=")

    def check_option(self, kind: ValueType, tree: Expression) -> None:
        """Refuse a text that is none of the options it is compared with: usually a slip in spelling."""
        option = tree.value if isinstance(tree, LiteralTerm) else None
        if kind.options and isinstance(option, str) and option not in kind.options:
            shown = ", ".join(kind.options)
            raise ProcedureError(f"{option!r} is none of the options {shown}{suggestion(option, kind.options)}")

    def call(self, tree: Call) -> ValueType:
        kinds = [self.of(each) for each in tree.arguments]
        first, function = kinds[0], tree.function
        if function in ("min", "max"):
            return self.extreme(tree.arguments, kinds, function)
        if all(kind.numeric for kind in kinds):
            return first if first.currency is not None and function != "sqrt" else NUMBER
        if first.unit is not None and function in ("abs", "round", "floor", "ceil", "trunc"):
            check_offset(first, tree.arguments[0])
            return quantity_in(first.unit)
        if function == "abs" and first.kind == "duration":
            return first
        wrong = next(each for each, kind in zip(tree.arguments, kinds, strict=True) if not kind.numeric)
        raise ProcedureError(f"{function} takes numbers, and {shortened(wrong)!r} is {self.of(wrong)}")

    def extreme(self, trees: Sequence[Expression], kinds: Sequence[ValueType], function: str) -> ValueType:
        for tree, kind in zip(trees, kinds, strict=True):
            if kind.items is not None:
                raise ProcedureError(f"{shortened(tree)!r} is a list: write `{function} of {shortened(tree)}`")
            if not (kind.numeric or kind.kind in _ORDERED):
                raise ProcedureError(f"{function} of {shortened(tree)!r}, which is {kind} and has no order")
        best = self.joint(trees, kinds)
        return best if not best.numeric or best.currency is not None else NUMBER

    def operand(self, tree: Operand) -> ValueType:
        match tree:
            case LiteralTerm():
                return tree.type or literal_type(tree.value)
            case Field(of, key):
                return self.field(self.of(of), key, of)
            case Item(of, keys):
                return self.item(of, keys)
            case Choice(then, condition, otherwise):
                self.check_truth(condition)
                return self.joint((then, otherwise), (self.checked(then), self.checked(otherwise)))
            case Member(member, of):
                self.check_member(member, of)
                return BOOLEAN
            case Aggregate():
                return self.aggregate(tree)
            case ListTerm(items):
                if not items:
                    raise ProcedureError("an empty list has no type: leave it out, or give it as an input with a type")
                return ValueType(kind="list", items=self.joint(items, [self.checked(each) for each in items]))
        assert isinstance(tree, RecordTerm)
        declared = self.into.record if self.into is not None else None
        inner = {} if declared is None else dict(declared.fields)
        fields = tuple(
            (key, _TermTypes(self.types, self.tables, into=inner.get(key, self.into)).checked(each))
            for key, each in tree.fields
        )
        return ValueType(kind="record", record=RecordType("record", fields))

    def joint(self, trees: Sequence[Expression], kinds: Sequence[ValueType]) -> ValueType:
        """The type that all of these values share."""
        first, common = trees[0], kinds[0]
        for tree, kind in zip(trees[1:], kinds[1:], strict=True):
            check_beside(first, common, tree, kind)
            both = joined(common, kind)
            if both is None:
                if common.numeric and kind.numeric:
                    raise ProcedureError(two_currencies(common, kind, first, tree))
                raise ProcedureError(
                    f"{shortened(first)!r} is {common} and {shortened(tree)!r} is {kind}: both are to be of one type"
                )
            common = both
        return common

    def field(self, kind: ValueType, key: str, of: Expression) -> ValueType:
        if kind.items is not None:
            return ValueType(kind="list", items=self.field(kind.items, key, of))
        if kind.record is None:
            years = ": compare dates, such as `born + 18 years <= today`" if kind.kind == "date" else ""
            raise ProcedureError(f"{shortened(of)!r} is {kind}, which has no field {key!r}{years}")
        found = kind.record.get(key)
        if found is None:
            names = [name for name, _ in kind.record.fields]
            raise ProcedureError(
                f"{shortened(of)!r} has no field {key!r}: it has {', '.join(names)}{suggestion(key, names)}"
            )
        return found

    def table(self, tree: Expression) -> Table | None:
        return self.tables.get(tree.name) if type(tree) is Name and tree.name not in self.types else None

    def item(self, of: Expression, keys: tuple[Expression, ...]) -> ValueType:
        table = self.table(of)
        if table is not None:
            self.check_keys(table, keys)
            return table.value
        kind = self.of(of)
        if kind.items is None:
            remedy = f": write `{shortened(of)}.field`" if kind.record is not None else ""
            raise ProcedureError(f"{shortened(of)!r} is {kind}, which has no items{remedy}")
        found = self.of(keys[0])
        percentage = is_percentage(keys[0], found)
        if len(keys) == 1 and found.kind in ("number", "integer", "decimal") and not percentage:
            return kind.items
        shown = f", and {shortened(keys[0])!r} is {'percent' if percentage else found}" if len(keys) == 1 else ""
        raise ProcedureError(
            f"an item of the list {shortened(of)!r} is told by one whole number, counted from 0{shown}"
        )

    def check_keys(self, table: Table, keys: Sequence[Expression]) -> None:
        if len(keys) != len(table.keys):
            names = ", ".join(name for name, _ in table.keys)
            raise ProcedureError(f"the table {table.name} is looked up by {names}: {len(keys)} keys are given")
        for (name, wanted), tree in zip(table.keys, keys, strict=True):
            kind = self.of(tree)
            self.check_option(wanted, tree)
            try:
                check_value(tree, wanted)
            except ProcedureError as error:
                raise ProcedureError(f"the key {name} of the table {table.name} {error.message}") from None
            percentage = is_percentage(tree, kind)
            # A percentage is no number of hundredths, and a whole number no percentage: 15% is not `over 10`.
            apart = (percentage and wanted.kind != "percent") or (kind.kind == "integer" and wanted.kind == "percent")
            if apart or not fits(kind, wanted) or kind.structured:
                given = "percent" if percentage else kind
                raise ProcedureError(
                    f"the key {name} of the table {table.name} is {wanted}, and {shortened(tree)!r} is {given}: "
                    f"declare the key with its type, such as `table {table.name}: {name}: {given} -> ...`"
                )

    def check_member(self, member: Expression, of: Expression) -> None:
        table = self.table(of)
        if table is not None:
            self.check_keys(table, (member,))
            return
        mine, group = self.of(member), self.of(of)
        if group.items is None:
            if mine.kind not in TEXTS or group.kind not in TEXTS:
                raise ProcedureError(
                    f"{shortened(member)!r} is {mine} and {shortened(of)!r} is {group}: `in` takes a list, a table, or "
                    "two texts"
                )
            return
        for each in of.items if isinstance(of, ListTerm) else ():
            self.check_option(mine, each)
            check_beside(member, mine, each, self.of(each))
        if joined(mine, group.items) is None:
            raise ProcedureError(f"{shortened(member)!r} is {mine} and can never be in {shortened(of)!r}, a {group}")

    def aggregate(self, tree: Aggregate) -> ValueType:
        source = tree.value if tree.over is None else tree.over
        kind = self.of(source)
        if kind.items is None:
            raise ProcedureError(f"`{tree.function} of` takes a list, and {shortened(source)!r} is {kind}")
        value, text = kind.items, tree.value
        if tree.variable is not None:
            # Shadowing is refused: a reader could not say which of the two is meant in the condition.
            if tree.variable in self.types or tree.variable in self.tables:
                raise ProcedureError(
                    f"{tree.variable!r} has a meaning already: name the items of {shortened(source)!r} anew"
                )
            # A view: copying all types for each of many aggregates would cost their number squared.
            types = ChainMap({tree.variable: kind.items}, cast("MutableMapping[str, ValueType]", self.types))
            inner = _TermTypes(types, self.tables, into=self.into)
            if tree.where is not None:
                inner.check_truth(tree.where)
            value = inner.checked(tree.value)
        elif tree.where is not None:
            raise ProcedureError(
                f"{shortened(tree)!r}: a condition needs a name, `for item in {shortened(source)} where ...`"
            )
        match tree.function:
            case "count":
                return _INTEGER
            case "first":
                return value
            case "all" | "any":
                if value.kind != "boolean":
                    raise ProcedureError(
                        f"`{tree.function} of` takes truth values, and {shortened(text)!r} has {value}"
                    )
                return BOOLEAN
            case "min" | "max":
                if not (value.numeric or value.kind in _ORDERED):
                    raise ProcedureError(f"`{tree.function} of {shortened(text)}`: {value} has no order")
                return value
        if value.numeric:
            return value if value.currency is not None or value.kind == "integer" else NUMBER
        if value.kind not in ("duration", "quantity"):
            raise ProcedureError(f"`sum of {shortened(text)}`: {value} is nothing to add up")
        check_offset(value, text)
        return value if value.unit is None else quantity_in(value.unit)
