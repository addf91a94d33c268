"""Procedures and a hand-driven run that several test modules share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from stepguard import Guard, Procedure, Result, Run, Usage
from stepguard.backends import Completion
from stepguard.engine.actions import Act, Action, Ask, CheckClaims, Commit, Replied, Wait

P2 = Procedure.parse("a = 2 * 3\nb = a + 4")
"""Two steps: 6 and 10."""

P6 = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2\nt3 = t2 - 3\nt4 = t3 + t1\nt5 = t4 * 2\nt6 = t5 - t1")
"""Six steps; the last reads the first."""

GOOD = {"a": "2 * 3 = 6", "b": "6 + 4 = 10"}

PAIR = Procedure.parse("inputs: x, y\nt1 = x + 1\nt2 = y + 2\nt3 = t1 * t2")
"""Two steps that do not depend on each other, and one that reads both."""

DRIVERS = pytest.mark.parametrize("driver", ["run", "arun"])


def driven(
    guard: Guard, procedure: Procedure, driver: str, inputs: Mapping[str, object] | None = None, /, **given: object
) -> Result:
    """A run by one of the drivers; inputs as a mapping, or by name."""
    values = {**(inputs or {}), **given}
    return guard.run(procedure, values) if driver == "run" else asyncio.run(guard.arun(procedure, values))


def reply(entries: Mapping[str, object] | str | None, *, finish_reason: str = "stop") -> Completion:
    """A completion that costs 10 and 5 tokens."""
    text = json.dumps(entries) if isinstance(entries, Mapping) else entries
    return Completion(text, finish_reason, usage=Usage(calls=1, input_tokens=10, output_tokens=5))


class Hand:
    """Drives a run by hand: asks are handed to the test, everything else is performed without waiting."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.asks: list[Ask] = []
        self.waits: list[Wait] = []
        self.seen: list[Action] = []
        self.go()

    def go(self) -> None:
        """Perform what needs no model; asks and waits are left to the test."""
        while actions := self.run.actions():
            for action in actions:
                self.seen.append(action)
                match action:
                    case Ask():
                        self.asks.append(action)
                    case Wait():
                        self.waits.append(action)
                    case CheckClaims() | Act() | Commit():
                        self.run.send(self.run.perform(action))

    def answer(self, entries: Mapping[str, object] | str | None, *, at: int = 0, finish_reason: str = "stop") -> Ask:
        """Answer one of the outstanding asks, the oldest by default, and go on."""
        ask = self.asks.pop(at)
        self.run.send(Replied(ask.id, reply(entries, finish_reason=finish_reason)))
        self.go()
        return ask


def without_time(result: Result) -> Result:
    """A result without what differs between two equal runs."""
    attempts = tuple(replace(attempt, seconds=0.0) for attempt in result.attempts)
    first, again = (replace(calls, seconds=0.0) for calls in (result.profile.first, result.profile.again))
    profile = replace(result.profile, first=first, again=again)
    return replace(result, seconds=0.0, run_id="", attempts=attempts, profile=profile)


def ids(ask: Ask) -> list[str]:
    """The steps that are asked."""
    return [step.id for step in ask.request.steps]


def no_model(_: object) -> str:
    """A backend for guards whose runs are driven by hand."""
    raise NotImplementedError


def start(procedure: Procedure = P2, inputs: Mapping[str, object] | None = None, **options: Any) -> Hand:
    """A run of a guard with these options, driven by hand."""
    return Hand(Guard(no_model, **options).start(procedure, inputs))
