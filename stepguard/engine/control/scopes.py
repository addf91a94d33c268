"""Scopes: what the names of a procedure stand for at one place of a run.

A variable of a procedure may have many values in a run: one a round of a loop, one a call. Each of them has a name of
its own in the state of the run (`paid_1`, `paid_2`), and a scope says which one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from stepguard.core.verdicts import Strength, weakest
from stepguard.engine.control.sources import State
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value


class Undecided(Exception):
    """It depends on values that are not verified yet: one of `names` is awaited."""

    def __init__(self, *names: str) -> None:
        self.names: Final = names


@dataclass(frozen=True, slots=True)
class Variable:
    """The value that a step sets, or an input, under its name in the state of the run.

    Attributes:
        name: that name.
        type: its type.
        control: what stands behind its being this value and not that of another round.
    """

    name: str
    type: ValueType
    control: Strength = "proved"


@dataclass(frozen=True, slots=True)
class Known:
    """A value that follows from others: an item of a list, an argument of a call.

    Attributes:
        value: the value.
        support: what stands behind it.
        label: a name for it in prompts.
    """

    value: Value
    support: Strength
    label: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the rounds of a loop set, as a list.

    Attributes:
        items: what each round set.
        control: what stands behind there being these rounds and no others.
        values: the list, once all of it is there, so that it is put together once.
    """

    items: tuple[NameBinding, ...]
    control: Strength
    values: list[tuple[Value, ...]] = field(default_factory=list)


NameBinding = Variable | Known | Gathered


class Scope:
    """Names of one body.

    Args:
        parent: the scope around it, whose names it sees; None for the body of a procedure.
        suffix: what is put behind the name of a variable that is set here, for its name in the state of the run.
        path: what is put in front of the id of a step, for its place.
        tables: the tables of its procedure.

    Attributes:
        given: the names that were given here to values that have none, by what they are called after.
        loops: how many loops have begun here: what a round sets has a name of its own among those of all.
        repeats: how many of them are `repeat`; it numbers their places.
    """

    __slots__ = ("_bindings", "given", "loops", "parent", "path", "repeats", "suffix", "tables")

    def __init__(self, parent: Scope | None, *, tables: Mapping[str, Table], suffix: str = "", path: str = "") -> None:
        self.parent = parent
        self.suffix = suffix
        self.path = path
        self.tables = tables
        self.given: dict[str, str] = {}
        self.loops = 0
        self.repeats = 0
        self._bindings: dict[str, NameBinding] = {}

    def bind(self, name: str, binding: NameBinding) -> NameBinding | None:
        """Let a name stand for something; gives what it stood for here before."""
        before = self._bindings.get(name)
        self._bindings[name] = binding
        return before

    def begin_loop(self) -> int:
        """The number of a loop among those that begin here, from 0."""
        self.loops += 1
        return self.loops - 1

    @property
    def own(self) -> Mapping[str, NameBinding]:
        """What is bound in this very scope."""
        return self._bindings

    def find(self, name: str) -> NameBinding | None:
        """What a name stands for, None where it stands for nothing."""
        scope: Scope | None = self
        while scope is not None:
            if (binding := scope._bindings.get(name)) is not None:
                return binding
            scope = scope.parent
        return None

    def get(self, name: str) -> NameBinding:
        """What a name stands for. Raises KeyError: it stands for nothing."""
        binding = self.find(name)
        if binding is None:
            raise KeyError(name)
        return binding


def resolve(binding: NameBinding, state: State) -> Value:
    """The value of a binding. Raises Undecided: it is not verified yet."""
    match binding:
        case Variable(name):
            if name not in state.values:
                raise Undecided(name)
            return state.values[name]
        case Known(value):
            return value
        # `values` caches the whole tuple, filled below: a list of one item, however many values there are.
        case Gathered(_, _, [values]):
            return values
        case Gathered(items):
            # The last one first: it is the last to come, so that a list is looked through once and not for each item.
            listed = tuple([resolve(item, state) for item in reversed(items)][::-1])
            binding.values.append(listed)  # no mutate: only faster
            return listed


def weakened(binding: NameBinding, control: Strength) -> NameBinding:
    """The same, where its being this value and no other rests on something weaker."""
    match binding:
        case Known():
            return replace(binding, support=weakest((binding.support, control)))
        case _:
            return replace(binding, control=weakest((binding.control, control)))


def names_of(binding: NameBinding) -> list[str]:
    """The names that the values of a binding have in the state of the run."""
    match binding:
        case Variable(name):
            return [name]
        case Known():
            return []
        case Gathered(items):
            return [name for item in items for name in names_of(item)]


def support_of(binding: NameBinding, state: State) -> Strength:
    """What stands behind a binding."""
    match binding:
        case Variable(name, _, control):
            return weakest((control, state.support((name,))))
        case Known(_, support):
            return support
        case Gathered(items, control):
            return weakest((control, *(support_of(item, state) for item in items)))


class ScopeValues:
    """The names of a scope with their values, as an expression reads them; keeps in mind which ones were read."""

    def __init__(self, scope: Scope, state: State) -> None:
        self._scope = scope
        self._state = state
        self._read: dict[str, NameBinding] = {}

    def __getitem__(self, name: str) -> Value:
        binding = self._read[name] = self._scope.get(name)
        return resolve(binding, self._state)

    @property
    def support(self) -> Strength:
        """What stands behind the weakest value that was read."""
        return weakest(support_of(binding, self._state) for binding in self._read.values())
