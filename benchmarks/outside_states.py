"""States that follow from one another, judged by a guard: each in words, with a check that knows the move."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stepguard import Guard, Input, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim
from stepguard.language.values import Value

__all__ = ["Follows", "accepted_states"]

State = str


@dataclass(frozen=True, slots=True)
class Follows:
    """A check: the state is the one that a move leads to from the one before."""

    before: str
    move: Callable[[State], State | None]

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return values[step.id] == self.move(str(values[self.before]))


@dataclass(frozen=True, slots=True)
class _Told:
    """Answers what a transcript says."""

    states: Mapping[str, State]

    def complete(self, request: Request) -> Completion:
        return Completion(json.dumps({step.id: {"work": "", "value": self.states[step.id]} for step in request.steps}))


def accepted_states(
    first: State, states: Sequence[State], moves: Sequence[Callable[[State], State | None]]
) -> list[bool]:
    """Which states of a transcript a guard accepts, each from the one before it; the list ends with a wrong one.

    Args:
        first: the state that is given.
        states: the states behind it, as they are told.
        moves: what leads to each of them; None where a state does not allow the move.
    """
    names = ["s0", *(f"s{number}" for number in range(1, len(states) + 1))]
    steps = [
        Step(name, instruction="Give the next state.", type="text", reads=[before], checks=[Follows(before, move)])
        for before, name, move in zip(names, names[1:], moves, strict=False)
    ]
    procedure = Procedure(steps, inputs=[Input("s0", "text")])
    backend = _Told(dict(zip(names[1:], states, strict=True)))
    result = Guard(backend, segment=10, repair=0, seed=0).run(procedure, {"s0": first})
    found = [record.support != "unverified" for record in result.steps]
    return found if len(found) == len(states) else [*found, False]
