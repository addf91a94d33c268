"""One step of a trace, with what is needed to answer it rightly or wrongly."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from certification.looks import Look, show
from certification.traces import Made, Trace
from certification.truth import Spec, Tree, Truth, Var, leaves
from stepguard.language.values import Value

__all__ = ["Case", "answer", "operands", "pairs_text", "values_of"]


@dataclass(frozen=True, slots=True)
class Case:
    """The step at an index of a trace."""

    chance: random.Random
    trace: Trace
    at: int

    @property
    def made(self) -> Made:
        """The step and the truth about it."""
        return self.trace.steps[self.at]

    @property
    def spec(self) -> Spec:
        """Its type."""
        return self.made.spec

    @property
    def state(self) -> Mapping[str, Truth]:
        """The values before it."""
        return self.trace.states[self.at]

    @property
    def copies(self) -> bool:
        """Whether it copies a value, so that it needs no working."""
        return isinstance(self.made.tree, Var)

    @property
    def number(self) -> Fraction | None:
        """Its value, None where that is no number."""
        return self.made.truth if isinstance(self.made.truth, Fraction) else None

    @property
    def plain(self) -> str:
        """Its value in the plainest way."""
        return self.spec.write(self.made.truth)

    def work(self, look: Look | None = None) -> str | None:
        """Its working, None where none is asked for."""
        if self.made.tree is None or not self.made.work or self.copies:
            return None
        return show(self.made.tree, self.state, look)

    def with_work(self, work: str | None, value: object) -> object:
        """An entry of a reply."""
        if self.made.tree is None:
            return {"work": work or "as asked", "value": value}
        return f"{work} = {value}" if work and self.made.work else value

    def right(self) -> object:
        """The plainest right entry."""
        return self.with_work(self.work(), self.plain)

    def others(self) -> list[str]:
        """Variables of numbers that hold here and that the step does not read."""
        read = {each.name for each in leaves(self.made.tree) if isinstance(each, Var)} if self.made.tree else set()
        return [name for name, value in self.state.items() if isinstance(value, Fraction) and name not in read]


def answer(trace: Trace, chance: random.Random) -> list[tuple[str, object]]:
    """The plainest right entries of all steps."""
    return [(made.id, Case(chance, trace, at).right()) for at, made in enumerate(trace.steps)]


def pairs_text(pairs: Sequence[tuple[str, object]], **options: bool) -> str:
    """A JSON object in which a key may stand twice."""
    inside = ", ".join(f"{json.dumps(key)}: {json.dumps(field, **options)}" for key, field in pairs)  # type: ignore[arg-type]
    return f"{{{inside}}}"


def operands(tree: Tree, state: Mapping[str, Truth]) -> list[int]:
    """The magnitudes of all numbers of an expression, sorted; a fraction counts as the two that it is written with."""
    found: list[int] = []
    for each in leaves(tree):
        value = state[each.name] if isinstance(each, Var) else each.value
        if isinstance(value, Fraction):
            found += [abs(value.numerator)] + [value.denominator] * (value.denominator != 1)
    return sorted(found)


def values_of(trace: Trace, at: int) -> dict[str, Value]:
    """The values before the step at an index, as the package has them."""
    kinds = {made.id: made.step.type for made in trace.steps}
    found: dict[str, Value] = {}
    for name, value in trace.states[at].items():
        if not isinstance(value, Fraction):
            found[name] = value
            continue
        exact = value.numerator if value.denominator == 1 else value
        found[name] = kinds[name].convert(exact) if name in kinds else exact
    return found
