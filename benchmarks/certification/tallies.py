"""What is counted of one kind of claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from stepguard.evaluation.statistics import upper_bound, wilson

__all__ = ["Tally"]

_SHOWN: Final = 20


@dataclass(slots=True)
class Tally:
    """What was counted of one kind.

    Attributes:
        n: how many steps were judged.
        bad: how many of them went against the promise.
        examples: the first of these.
        undecided: how many of all were neither accepted nor refuted; None where that is not counted.
    """

    n: int = 0
    bad: int = 0
    examples: list[str] = field(default_factory=list)
    undecided: int | None = None

    def add(self, bad: bool, example: str, undecided: bool | None = None) -> None:
        """Count one step."""
        self.n += 1
        self.bad += bad
        if undecided is not None:
            self.undecided = (self.undecided or 0) + undecided
        if bad and len(self.examples) < _SHOWN:
            self.examples.append(example)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, with the bounds of the share."""
        found: dict[str, Any] = {"n": self.n, "bad": self.bad, "upper_bound": round(upper_bound(self.bad, self.n), 6)}
        if self.undecided is not None:
            found["undecided"] = self.undecided
        if self.bad:
            found["interval"] = [round(each, 6) for each in wilson(self.bad, self.n)]
            found["examples"] = self.examples
        return found
