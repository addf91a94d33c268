"""Terms: what an expression of a procedure computes with beside numbers and variables.

An expression of the arithmetic core (`stepguard.language.expressions`) has numbers and variables at its leaves. In a
procedure a leaf may also be a field of a record, an item of a list, a row of a table, an aggregate of a list, a date, a
choice::

    min(item.amount, daily[country])        sum of paid        due + 30 days
    "gold" if points > 1000 else "plain"    country in ["DE", "FR"]
    sum of item.amount for item in items where item.late

Each of these is an `Operand`: a `Name` whose text is the notation, so that whatever prints an expression prints it.
Before a step is asked, every operand in its expression is resolved (`stepguard.engine.control.unfolding`): what reaches
prompts, checkers and models is arithmetic over plain variables, or the value itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeGuard

from stepguard.language.expressions import Chain, Expression, Name, format_value, parts_of, walk
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value

AggregateFunction = Literal["sum", "count", "min", "max", "all", "any", "first"]

TERM_SIGNS: Final = re.compile(
    r"[\[\]{}\"]|\w\.[A-Za-z_]|\b(?:if|else|in|of|true|false)\b|[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]\s+[A-Za-z\u00b5\u03bc\u03a9\u00b0\u2103\u2109]|[0-9]:[0-9]{2}"
)
"""A quick test: every expression with operands matches somewhere, and plain arithmetic hardly ever does."""


@dataclass(frozen=True, slots=True)
class Operand(Name):
    """A leaf that is more than a number or a variable. `name` is its text in the notation."""

    name: str = field(init=False)


def _set_name(operand: Operand, text: str) -> None:
    object.__setattr__(operand, "name", text)


@dataclass(frozen=True, slots=True)
class LiteralTerm(Operand):
    """A value that stands in the text: a text, a truth value, a date, a time, a duration, an amount with its unit.

    `text` is how it is written, where that is not how the value is shown (``30 days``, ``500 EUR``, ``5 kg``), and
    `type` what the value alone does not say: the currency of an amount of money.
    """

    value: Value
    text: str | None = None
    type: ValueType | None = None

    def __post_init__(self) -> None:
        shown = json.dumps(self.value, ensure_ascii=False) if isinstance(self.value, str) else show_value(self.value)
        _set_name(self, shown if self.text is None else self.text)


@dataclass(frozen=True, slots=True)
class Field(Operand):
    """``item.amount``: a field of a record; of a list of records the list of that field's values."""

    of: Expression
    key: str

    def __post_init__(self) -> None:
        _set_name(self, f"{_tight(self.of)}.{self.key}")


@dataclass(frozen=True, slots=True)
class Item(Operand):
    """``items[0]``, ``daily[country]``, ``fees[country, weight]``: an item of a list, counted from 0, or the row of a
    table that its keys select."""

    of: Expression
    keys: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _set_name(self, f"{_tight(self.of)}[{', '.join(map(format_value, self.keys))}]")


@dataclass(frozen=True, slots=True)
class Aggregate(Operand):
    """``sum of paid``, ``count of item for item in items where item.late``.

    Attributes:
        function: what is made of the values: ``first`` is the first of them, an error of the data where there is none.
        value: what is aggregated: a list, or where there is a `variable`, what is taken from each of its values.
        variable: stands for one item of `over` after the other in `value` and `where`; None without ``for``.
        over: the list that `variable` goes through.
        where: a condition on each item.
    """

    function: AggregateFunction
    value: Expression
    variable: str | None = None
    over: Expression | None = None
    where: Expression | None = None

    def __post_init__(self) -> None:
        text = f"{self.function} of {_tight(self.value)}"
        if self.variable is not None and self.over is not None:
            text += f" for {self.variable} in {_tight(self.over)}"
        if self.where is not None:
            text += f" where {format_value(self.where)}"
        _set_name(self, f"({text})" if self.variable is not None else text)


@dataclass(frozen=True, slots=True)
class Choice(Operand):
    """``(a if c else b)``: one value or the other; the other one is never looked at."""

    then: Expression
    condition: Expression
    otherwise: Expression

    def __post_init__(self) -> None:
        then, otherwise = format_value(self.then), format_value(self.otherwise)
        _set_name(self, f"({then} if {format_value(self.condition)} else {otherwise})")


@dataclass(frozen=True, slots=True)
class Member(Operand):
    """``(country in ["DE", "FR"])``: whether a value is in a list, an option among others, a key in a table, a text in
    another one."""

    member: Expression
    of: Expression

    def __post_init__(self) -> None:
        _set_name(self, f"({_tight(self.member)} in {_tight(self.of)})")


@dataclass(frozen=True, slots=True)
class ListTerm(Operand):
    """``[1, 2, x]``: a list of values."""

    items: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _set_name(self, f"[{', '.join(map(format_value, self.items))}]")


@dataclass(frozen=True, slots=True)
class RecordTerm(Operand):
    """``{applicant, total: net + tax}``: a record; a name alone is its own field."""

    fields: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        shown = (
            key if isinstance(value, Name) and value.name == key else f"{key}: {format_value(value)}"
            for key, value in self.fields
        )
        _set_name(self, f"{{{', '.join(shown)}}}")


def _tight(tree: Expression) -> str:
    """An expression as it stands in front of a field or a key: in brackets unless it is a name of some kind."""
    text = format_value(tree)
    # `sum of paid` prints without brackets, and `sum of paid.x` would be the sum of another list.
    plain = isinstance(tree, Name) and not (isinstance(tree, Aggregate) and tree.variable is None)
    return text if plain else f"({text})"


def inner(operand: Operand) -> tuple[Expression, ...]:
    """The direct children of an operand, in the order they are computed."""
    match operand:
        case Field(of, _):
            return (of,)
        case Item(of, keys):
            return (of, *keys)
        case Aggregate(_, value, _, over, where):
            return tuple(each for each in (over, where, value) if each is not None)
        case Choice(then, condition, otherwise):
            return (condition, then, otherwise)
        case Member(member, of):
            return (member, of)
        case ListTerm(items):
            return items
        case RecordTerm(fields):
            return tuple(value for _, value in fields)
    return ()


def is_variable(tree: Expression | None) -> TypeGuard[Name]:
    """Whether an expression is a variable and nothing else."""
    return isinstance(tree, Name) and not isinstance(tree, Operand)


def operands_in(tree: Expression) -> Iterator[Operand]:
    """Yield the outermost operands of an expression."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Operand):
            yield node
        else:
            stack.extend(reversed(parts_of(node)))


def texts_in(tree: Expression) -> Iterator[str]:
    """Yield the texts that stand in an expression, also inside operands."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, LiteralTerm) and isinstance(node.value, str):
            yield node.value
        stack.extend(inner(node) if isinstance(node, Operand) else parts_of(node))


def variables_in(tree: Expression) -> tuple[str, ...]:
    """The variables that an expression reads, also inside operands, each once; a table counts as one."""
    found: dict[str, None] = {}
    stack: list[tuple[Expression, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Aggregate) and node.variable is not None:
            within = bound | {node.variable}
            stack += [(each, within) for each in (node.where, node.value) if each is not None]
            if node.over is not None:
                # The list is computed before its variable is bound, so that the same name in it is another variable.
                stack.append((node.over, bound))
        elif isinstance(node, Operand):
            stack += [(each, bound) for each in reversed(inner(node))]
        elif isinstance(node, Name):
            if node.name not in bound:
                found[node.name] = None
        else:
            stack += [(each, bound) for each in reversed(parts_of(node))]
    return tuple(found)


def scaled_operand(
    tree: Chain, type_of_name: Callable[[Name], ValueType | None], currency_of: Callable[[Expression], str | None]
) -> Expression | None:
    """The amount of money that a product or a quotient only makes larger or smaller, so that it is in its currency.

    Written numbers, percentages and whole numbers scale an amount; another factor may be a rate of exchange, which
    converts it, and an amount divided by one is none.

    Args:
        tree: the product, the quotient or the remainder.
        type_of_name: the type of a variable, None where it has none.
        currency_of: the currency of an operand, None where it is in none.
    """
    if tree.additive:
        return None
    scaled: Expression | None = None
    for operator, operand in zip(("*", *tree.operators), tree.operands, strict=True):
        if _scales(operand, type_of_name):
            continue
        # A second such factor may be a rate, and an amount below the line takes its currency off.
        if scaled is not None or operator != "*" or currency_of(operand) is None:
            return None
        scaled = operand
    return scaled


def _scales(tree: Expression, type_of_name: Callable[[Name], ValueType | None]) -> bool:
    for node in walk(tree):
        if isinstance(node, Name):
            kind = None if isinstance(node, Operand) else type_of_name(node)
            if kind is None or kind.kind not in ("percent", "integer"):
                return False
    return True
