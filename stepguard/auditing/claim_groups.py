"""The claims of a transcript with one name and one label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepguard.auditing.names import Entry
from stepguard.auditing.occurrences import LoopChain, RoundPattern
from stepguard.auditing.ways import Key
from stepguard.language.values import Value


@dataclass(slots=True)
class ClaimGroup:
    """The claims with one name and one label.

    Attributes:
        name: the name of their step.
        entries: the claims, in the order of the text.
        chains: the places where they may belong, with the rounds that their label names there.
        dropped: why they are set aside, empty where they are not.
        sure: how many of them are not, the first ones.
        reached: the steps that they may belong to, on the last way.
        right: of each of these, the value that the way gives it where nothing is claimed.
    """

    name: str
    entries: list[Entry]
    chains: dict[LoopChain, RoundPattern]
    dropped: str = ""
    sure: int = 0
    single: bool = False
    reached: list[Key] = field(default_factory=list)
    right: list[Value | None] = field(default_factory=list)

    def of(self, number: int) -> list[Entry]:
        """The claims of the step with this number among those reached."""
        return self.entries if self.single else self.entries[number : number + 1]

    @property
    def set_aside(self) -> bool:
        """Whether the claim about the next step that is reached is set aside."""
        return bool(self.dropped) and len(self.reached) >= self.sure

    @property
    def surplus(self) -> list[Entry]:
        """The claims behind those of the steps that are reached."""
        return [] if (self.single and self.reached) or self.dropped else self.entries[len(self.reached) :]


def repeats(
    group: ClaimGroup, entries: Sequence[Entry], claimed: Sequence[Value | None], right: Sequence[Value | None]
) -> bool:
    """Whether claims behind those of the rounds only say again what these came to.

    They do where they say all of it, or what a name has behind a loop that changes it. Others may be a round too many.

    Args:
        right: the right values of the name, in the order of the rounds.
    """
    innermost = (next((loop for loop in reversed(chain) if loop.rounds), None) for chain in group.chains)
    carried = any(loop is not None and not loop.variable for loop in innermost)
    behind = carried and list(claimed) == right[-1:] != right[-2:-1]
    return not any(entry.work for entry in entries) and (behind or list(claimed) == right)
