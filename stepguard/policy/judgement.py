"""What the rules say of one call, gathered demand by demand: refused, waiting for somebody, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from stepguard.language.values import Value
from stepguard.policy.decisions import Reason, ReasonKind
from stepguard.policy.declarations import DeclaredFact, FactMissing
from stepguard.policy.rules import Demand

UNCHANGED: Final = "Do not repeat it unchanged."


class JudgingStopped(Exception):
    """The demands behind this one cannot be judged."""


@dataclass(slots=True)
class CallJudgement:
    """The judgement of the rules on a call.

    Attributes:
        tool: the tool that is called.
        reasons: why it is refused.
        open: the facts that are not known, in order.
        yeses: who has to say yes.
        spent: the limits that it counts against.
        pending: what is still to be asked, with its words.
    """

    tool: str
    reasons: list[Reason] = field(default_factory=list)
    open: dict[tuple[str, tuple[Value, ...]], None] = field(default_factory=dict)
    yeses: dict[str, None] = field(default_factory=dict)
    spent: list[tuple[str, str]] = field(default_factory=list)
    pending: list[Reason] = field(default_factory=list)

    def add(self, other: CallJudgement) -> None:
        """Add what another judgement of the same call says beside."""
        self.reasons += [each for each in other.reasons if each not in self.reasons]
        self.open |= other.open
        self.yeses |= other.yeses
        self.spent += [each for each in other.spent if each not in self.spent]
        self.pending += [each for each in other.pending if each not in self.pending]

    def refuse(self, kind: ReasonKind, demand: Demand, words: str, *, first: str = "", detail: str = "") -> None:
        """Refuse the call, in the words of the demand where it has some."""
        line = "" if demand.line is None else f" (policy line {demand.line})"
        words = getattr(demand, "words", None) or f"{words}{line}"
        self.reasons.append(Reason(kind, self.tool, words, first, detail, demand.line))

    def undecided(self, demand: Demand, detail: str) -> NoReturn:
        """Refuse a call of which a demand cannot be decided; raises JudgingStopped."""
        words = f"{self.tool} cannot be checked: a value that its rule needs is missing or of another type"
        self.refuse("undecided", demand, words, first=UNCHANGED, detail=detail)
        raise JudgingStopped

    def wait(self, kind: ReasonKind, demand: Demand, words: str, *, detail: str = "") -> None:
        """Have the call wait for somebody."""
        self.pending.append(Reason(kind, self.tool, words, detail=detail, line=demand.line))

    def ask(self, missing: Iterable[FactMissing], facts: Mapping[str, DeclaredFact], demand: Demand) -> None:
        """Have the call wait for facts that nobody has given yet."""
        for fact in missing:
            self.open[(fact.name, fact.keys)] = None
            words = facts[fact.name].question or f"{fact.name} is not known yet"
            self.wait("unknown_fact", demand, words, detail=f"{fact.name} of {', '.join(map(str, fact.keys))}")
