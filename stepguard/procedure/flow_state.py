"""What is known of the variables at one statement of a procedure, whatever the inputs are."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field

from stepguard.language.value_types import ValueType


@dataclass
class FlowState:
    """What is known at a statement, in layers: each nested block adds its own, and copies nothing.

    Attributes:
        types: the variables that have a value, with their types.
        money: the type of those that are in a currency which their own type does not name, ``net * 2``.
        partial: those that have one on some ways only, with the way on which it is missing.
        fresh: those that were set in this round of a loop.
        carried: from which layer of `types` up to which one variables may be set again, since a loop carries them over.
        outside: how many layers stand outside of the `for each` around, whose rounds do not see each other.
    """

    types: ChainMap[str, ValueType]
    money: ChainMap[str, ValueType] = field(default_factory=ChainMap)
    partial: ChainMap[str, str] = field(default_factory=ChainMap)
    fresh: ChainMap[str, None] = field(default_factory=ChainMap)
    carried: range = range(0)
    outside: int = 0

    def branch(self) -> FlowState:
        """The state at the beginning of a branch."""
        layers = self.types.new_child(), self.money.new_child(), self.partial.new_child(), self.fresh.new_child()
        return FlowState(*layers, self.carried, self.outside)

    def rounds(self, variable: str, kind: ValueType) -> FlowState:
        """The state at the beginning of a round of `for each`."""
        types = self.types.new_child({variable: kind})
        inner = types.new_child(), self.money.new_child(), self.partial.new_child()
        # `fresh` and `carried` start anew: rounds do not see each other, so nothing is carried over into one.
        return FlowState(*inner, outside=len(types.maps))

    def repeated(self) -> FlowState:
        """The state at the beginning of a round of `repeat`."""
        inner = self.types.new_child(), self.money.new_child(), self.partial.new_child()
        return FlowState(*inner, carried=range(self.outside, len(self.types.maps)), outside=self.outside)

    def carries(self, name: str) -> bool:
        """Whether a loop around carries a variable over."""
        layers = self.types.maps
        return any(name in layers[-1 - at] for at in self.carried)

    @property
    def known(self) -> Mapping[str, ValueType]:
        """The types of the variables that have a value, with their currencies."""
        return ChainMap(*self.money.maps, *self.types.maps) if self.money else self.types
