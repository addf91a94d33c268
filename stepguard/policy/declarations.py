"""What a policy declares, worked out once: tools with their rules, facts with their types and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.policy.rules import CallPattern, Rule


class FactMissing(Exception):
    """A rule reads a fact that nobody has given yet."""

    def __init__(self, name: str, keys: tuple[Value, ...] = ()) -> None:
        super().__init__(name)
        self.name = name
        self.keys = keys


class FactTable(Table):
    """A fact with keys, as expressions look it up; `known` holds its known values."""

    __slots__ = ("known",)

    known: Mapping[tuple[Value, ...], Value]

    def __init__(self, name: str, keys: Mapping[str, ValueType], value: ValueType) -> None:
        # A table without rows: nothing is known by itself.
        self.name, self.keys, self.value, self.rows = name, tuple(keys.items()), value, ()
        self.known = {}

    # A policy is shared between conversations, and what is known is one's own.
    def over(self, known: Mapping[tuple[Value, ...], Value]) -> FactTable:
        """A copy of the fact with the values known in one conversation."""
        made = FactTable(self.name, dict(self.keys), self.value)
        made.known = known
        return made

    def look_up(self, keys: Sequence[Value]) -> Value:
        """Look the fact up.

        Raises:
            FactMissing: nothing is.
        """
        value = self.known.get(self.comparable(keys))
        if value is None:
            raise FactMissing(self.name, tuple(keys))
        return value

    def has_row(self, keys: Sequence[Value]) -> bool:
        """Whether something is known, which no rule may make anything of."""
        raise FactMissing(self.name, tuple(keys))

    def comparable(self, keys: Sequence[Value]) -> tuple[Value, ...]:
        """Keys as `known` has them."""
        return tuple(self._comparable(keys))


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """An argument with its type; `value` holds where it is left out."""

    name: str
    type: ValueType
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool with everything that its declaration comes to.

    Attributes:
        record: its arguments as a record, None where it has none.
        reads: whether it changes nothing.
        rules: the rules that its calls have to keep.
        roles: who may have to say yes to a call of it.
        compared: the arguments whose texts rules read.
    """

    name: str
    parameters: tuple[DeclaredParameter, ...]
    result: ValueType | None
    record: RecordType | None
    reads: bool
    changes: tuple[CallPattern, ...] | None
    more: bool
    rules: tuple[Rule, ...]
    roles: tuple[str, ...]
    compared: tuple[str, ...]
    line: int | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments, in order."""
        return tuple(each.name for each in self.parameters)


@dataclass(frozen=True, slots=True)
class DeclaredFact:
    """A fact with its types."""

    name: str
    type: ValueType
    keys: tuple[DeclaredParameter, ...]
    question: str | None
    judged: bool
    table: FactTable
    line: int | None
