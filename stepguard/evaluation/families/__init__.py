"""Task families: procedures with inputs and a truth that no checker had a hand in.

A family makes the same instance for the same seed and length, on every machine and Python version.

`family_named` finds them by name, with knobs (``arithmetic(look_back=7)``), and those of other packages
(`stepguard.evaluation.families.registry`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepguard.evaluation.families.base import Demonstration, Family, PublishedTask, Task
from stepguard.evaluation.families.registry import FAMILIES, family_named, family_names

if TYPE_CHECKING:
    from stepguard.evaluation.families.arithmetic import Arithmetic
    from stepguard.evaluation.families.returns_desk import ReturnsDesk
    from stepguard.evaluation.families.roots import Roots
    from stepguard.evaluation.families.running_sum import RunningSum
    from stepguard.evaluation.families.word_lists import WordLists

__all__ = [
    "Arithmetic",
    "Demonstration",
    "Family",
    "PublishedTask",
    "ReturnsDesk",
    "Roots",
    "RunningSum",
    "Task",
    "WordLists",
    "family_named",
    "family_names",
]

if not TYPE_CHECKING:  # each family is loaded when it is first asked for

    def __getattr__(name: str) -> object:
        return FAMILIES.called(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
