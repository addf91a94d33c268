"""The scope of a demand: the names it may read, and the demands above it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from stepguard.errors import PolicyError
from stepguard.policy.condition_reading import ConditionReader
from stepguard.policy.contradictions import RuleConditions
from stepguard.policy.rules import Exemption

# Held against all of them, a rule of thousands of lines would take quadratic time.
_NEAR: Final = 5
"""How many of the latest limits and calls a further one is held against."""


class CallLimit(NamedTuple):
    """How often calls are let through, so that it can be held against other limits."""

    most: int
    per: frozenset[str]
    within: Fraction | str | None = None
    exemption: Exemption | None = None

    def covers(self, other: CallLimit) -> bool:
        """Whether it is reached before another one."""
        # A limit without a period counts for ever, so it is reached before any with one.
        longer = self.within is None or self.within == other.within
        if isinstance(self.within, Fraction) and isinstance(other.within, Fraction):
            longer = self.within >= other.within
        exempt = self.exemption is None or self.exemption == other.exemption
        return self.most <= other.most and self.per <= other.per and longer and exempt


class DemandedCall(NamedTuple):
    """A pattern of calls, alike however its arguments are written."""

    tool: str
    arguments: frozenset[tuple[str, str]]

    def covers(self, other: DemandedCall) -> bool:
        """Whether each call that fits another pattern fits this one."""
        return self.tool == other.tool and self.arguments <= other.arguments

    def __str__(self) -> str:
        return f"{self.tool} {sorted(self.arguments)}"


@dataclass
class EarlierDemands:
    """The demands above a demand that count where it stands."""

    conditions: RuleConditions = field(default_factory=RuleConditions)
    limits: list[CallLimit] = field(default_factory=list)
    made: list[DemandedCall] = field(default_factory=list)
    not_made: list[DemandedCall] = field(default_factory=list)
    listed: list[DemandedCall] = field(default_factory=list)

    def inner(self) -> EarlierDemands:
        """The same for a block, which adds its own."""
        calls = (each[-_NEAR:] for each in (self.made, self.not_made, self.listed))
        return EarlierDemands(RuleConditions(self.conditions), self.limits[-_NEAR:], *calls)

    def add_limit(self, limit: CallLimit) -> None:
        """A limit, held against those above it."""
        for each in self.limits[-_NEAR:]:
            if each.covers(limit):
                raise PolicyError("a line above it says the same, or is reached before it: leave one of them out")
            if limit.covers(each):
                raise PolicyError("a limit above it is never reached, for this one is before: leave that one out")
        self.limits.append(limit)

    def add_call(self, call: DemandedCall, *, made: bool) -> None:
        """A call that has to have been made, or must not have been, held against those above it."""
        own, others = (self.made, self.not_made) if made else (self.not_made, self.made)
        for other in others[-_NEAR:]:
            if other.covers(call) if made else call.covers(other):
                raise PolicyError(f"this and what is demanded of {call.tool} above it never hold together")
        own.append(call)
        if not made and any(map(call.covers, self.listed[-_NEAR:])):
            raise PolicyError(f"the list of calls of {call.tool} above it is always empty behind this: leave it out")

    def add_list(self, call: DemandedCall) -> None:
        """Calls, or their results, as a list, which may not always be empty behind what is demanded above it."""
        if any(each.covers(call) for each in self.not_made[-_NEAR:]):
            raise PolicyError(f"behind what is demanded of {call.tool} above it this is always empty: leave it out")
        self.listed.append(call)


@dataclass
class DemandScope:
    """What the rule of one tool may read where a demand stands, and which of it is of use so far.

    Attributes:
        tool: the tool whose rule it is.
        reader: reads its conditions, and has the types of the names.
        above: what stands above the demand.
        passed: the demands of this block and those around it so far.
        bound: the names that this block binds, with their lines.
        used: the names that the rule reads.
        nested: whether it is a block in a rule.
    """

    tool: str
    reader: ConditionReader
    above: EarlierDemands = field(default_factory=EarlierDemands)
    passed: set[object] = field(default_factory=set)
    bound: dict[str, int | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    nested: bool = False

    def inner(self) -> DemandScope:
        """The scope of a block: what it binds is not known outside."""
        return DemandScope(
            self.tool, self.reader.inner(), self.above.inner(), set(self.passed), used=self.used, nested=True
        )
