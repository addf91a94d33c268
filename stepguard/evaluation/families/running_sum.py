"""A running total over the words of a dictionary, after arXiv 2509.09677.

There a model gets a dictionary of words with values, then some words a turn, and says the total after each turn.
Nothing in it is hard: what is measured is how long a model goes on doing the same simple thing right.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.core.arguments import check_count
from stepguard.evaluation.families.base import (
    DEMONSTRATION_SEED,
    FORMULA_SYSTEM,
    Demonstration,
    DraftedFamily,
    Line,
    TaskDraft,
)
from stepguard.language.values import Value, to_exact
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_TEXT: Final = (
    "apple beach bread brick brush cabin candy chair chalk cheek chess chest clock cloud coach coral couch crane "
    "cream crown dance dress drill eagle earth fence field flame flask flour flute frost fruit ghost glass globe "
    "grape grass green habit heart honey horse hotel house jewel juice knife ladle lemon light linen maple medal "
    "metal mouse mouth music night north ocean olive onion opera organ paint paper peach pearl phone piano pilot "
    "plant plate queen radio razor river robin salad scale shark sheep shell shirt skirt snake spoon stone storm "
    "sugar table tiger tower train uncle wagon water whale wheat"
)
_WORDS: Final = _TEXT.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSum(DraftedFamily):
    """Step k adds the values of some words to the total before: ``total_3 = total_2 + apple + river``.

    The dictionary is the inputs of the procedure, one input a word. That is how a user of the guard would hold such
    values, and it treats the arms alike: an arm that gets the whole problem at once reads the dictionary in front of
    the steps, as in the study; one that gets segments reads the values of the words that its steps name, because
    that is what a segment is. What looking up in a long dictionary costs is thus the difference between ``cot`` and
    ``chunk``, and what carrying a total along costs the one between ``chunk`` and ``guard``.

    Every step feeds the answer, and errors are added up, so that a later step cannot erase one. No word is worth 0
    and no turn adds 0, so that a turn that is left out is noticed.

    Args:
        words: words a turn.
        size: words in the dictionary.
        largest: values are from minus this to this.

    Raises:
        ConfigError: a knob is out of range.
    """

    words: int = 2
    size: int = 100
    largest: int = 99

    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=len(_WORDS))
        check_count(self.words, "words", most=min(self.size, 20))
        check_count(self.largest, "largest", least=5, most=10**6)

    def demonstration(self) -> Demonstration:
        """A worked example over a small dictionary."""
        small = RunningSum(words=self.words, size=min(self.size, max(8, self.words)), largest=self.largest)
        return small.draft(DEMONSTRATION_SEED, self.example_steps).demonstration(FORMULA_SYSTEM)

    def draft(self, seed: int, length: int) -> TaskDraft:
        chance = random.Random(f"running_sum:{self.words}:{self.size}:{self.largest}:{length}:{seed}")
        left = list(_WORDS)
        names = [left.pop(chance.randint(0, len(left) - 1)) for _ in range(self.size)]
        # Halves of both signs, so that every turn can add something else than 0.
        values: dict[str, Value] = {
            word: chance.randint(1, self.largest) * (1 if at % 2 else -1) for at, word in enumerate(names)
        }
        lines: list[Line] = []
        for number in range(1, length + 1):
            before = [f"total_{number - 1}"] if number > 1 else []
            turn = _Turn((*before, *self._turn(chance, values)))
            step = Step(f"total_{number}", " + ".join(turn.names), type="integer")
            lines.append(Line(step=step, solve=turn.solve, work=turn.work))
        return TaskDraft(
            name=f"running_sum-{length}-{seed}",
            inputs=[Input(word, "integer") for word in names],
            given=values,
            lines=lines,
            line_tokens=60 + 12 * self.words,
        )

    def _turn(self, chance: random.Random, values: Mapping[str, Value]) -> list[str]:
        while True:
            left = list(values)
            words = [left.pop(chance.randint(0, len(left) - 1)) for _ in range(self.words)]
            if sum(int(to_exact(values[word])) for word in words) or len(words) == len(values):
                return words


@dataclass(frozen=True, slots=True)
class _Turn:
    """A sum of values by name."""

    names: tuple[str, ...]

    def solve(self, values: Mapping[str, Value]) -> Value:
        return sum(int(to_exact(values[name])) for name in self.names)

    def work(self, values: Mapping[str, Value]) -> str:
        shown = [f"({values[name]})" if str(values[name]).startswith("-") else str(values[name]) for name in self.names]
        return " + ".join([str(values[self.names[0]]), *shown[1:]])
