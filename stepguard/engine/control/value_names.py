"""Value names: what the values of a run that no variable of the procedure holds are called in its state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from stepguard.core.verdicts import Strength
from stepguard.engine.control.scopes import NameBinding, Scope
from stepguard.engine.control.sources import State
from stepguard.language.terms.operands import Operand
from stepguard.language.values import Value

_ODD: Final = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST: Final = 40


class Aggregated(NamedTuple):
    """The value of an aggregate, and the bindings that its names had then."""

    tree: Operand
    read: tuple[NameBinding | None, ...]
    value: Value
    support: Strength


class ValueNames:
    """The names that values get in the state of a run, beside those of the variables.

    Args:
        declared: the names of the procedure, and of those that it calls: none of them is given again.
        calls: those of them that are calls of another procedure.
        set_by_steps: those of them that steps set, which have other names in the rounds of a loop.
    """

    def __init__(self, declared: frozenset[str], calls: frozenset[str], set_by_steps: frozenset[str]) -> None:
        self._shared: dict[str, str] = {}  # the newest name, by label
        self._labels: dict[str, str] = {}  # the reverse of `_shared`
        self._uses: Counter[str] = Counter()  # in how many scopes a name is in use
        self.aggregates: dict[int, Aggregated] = {}  # by id(tree): worked out once, not in every round
        self._declared = declared
        self._set = set_by_steps
        # A declared `paid_1` would clash with `paid` of round 1: the separator grows until no declared name ends that
        # way.
        separator = "_"
        behind = "|".join(("[a-z]*[0-9]+", *map(re.escape, sorted(calls))))
        while any(re.search(rf"{separator}(?:{behind})\Z", name) for name in declared):
            separator += "_"
        self.separator: Final = separator
        self._round: Final = re.compile(rf"(.+?)(?:{separator}(?:{behind}))+")

    def define(self, label: str, value: Value, support: Strength, scope: Scope, state: State) -> str:
        """A name for a value, as long as the scope lasts; the same one where it has been given already.

        Rounds of a loop share it, whenever they come up: what a step is does not hang on what is over by then.
        """
        for given in (scope.given.get(label, ""), self._shared.get(label, "")):
            known = given in state.values and _same(state.values[given], value)
            if known and state.support((given,)) == support:
                break
        else:
            given = self._new(label, state)
            state.define(given, value, support)
            self._shared[label], self._labels[given] = given, label
        if scope.given.get(label) != given:
            self._uses[given] += 1
            scope.given[label] = given
        return given

    def release(self, names: Iterable[str]) -> list[str]:
        """A scope is over, or a value that has a name of its own: those of the names that nothing uses any more."""
        free = []
        for name in names:
            self._uses[name] -= 1
            if self._uses[name] <= 0:
                del self._uses[name]
                free.append(name)
                label = self._labels.pop(name, None)
                if label is not None and self._shared.get(label) == name:
                    del self._shared[label]
        return free

    def _new(self, label: str, state: State) -> str:
        name = label
        if not label.isidentifier() or len(label) > _LONGEST:
            name = _ODD.sub("_", label).strip("_")[:_LONGEST] or "value"
            if name[0].isdigit():
                name = f"v{name}"
        return self.free(name, state)

    def free(self, name: str, state: State) -> str:
        """A name that nothing has, and no variable will have."""
        while name in state.values or self._taken(name):
            name += "_"
        return name

    def _taken(self, name: str) -> bool:
        """Whether a variable has this name, or will have it in a round of a loop or in a call."""
        if name in self._declared:
            return True
        inside = self._round.fullmatch(name)
        return inside is not None and inside[1] in self._set


def _same(one: Value, other: Value) -> bool:
    """Whether two values are the same, also in their type; the same list is not looked through."""
    return one is other or (type(one) is type(other) and one == other)
