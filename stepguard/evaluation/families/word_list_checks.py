"""The check of `WordLists`: which item of which list stands at each position of the claimed one.

It shares no code with the family's own computation, which cuts and joins lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stepguard.core.verdicts import Claim
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_Places = list[int]


@dataclass(frozen=True, slots=True)
class ListCheck:
    """Whether a claimed list is what an operation makes of the lists that the step reads.

    The text must be exactly right: a comma and a blank between items, nothing around them.

    Args:
        operation: reverse, rotate, swap, insert, backwards, case, every, item, without or join.
        reads: the lists, by name.
        numbers: positions counted from 1, counts, and the word to insert.
    """

    operation: str
    reads: tuple[str, ...]
    numbers: tuple[int | str, ...]

    @property
    def __name__(self) -> str:
        return self.operation

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether every position holds what it should."""
        claimed = str(values[step.id]).split(", ")
        items = [item for name in self.reads for item in str(values[name]).split(", ")]
        numbers = [each for each in self.numbers if isinstance(each, int)]
        if self.operation == "insert":
            items.append(str(self.numbers[1]))
        places = _PLACES[self.operation](len(items), numbers)
        if len(claimed) != len(places):
            return False
        changed = numbers[0] - 1 if self.operation in ("backwards", "case") else -1
        same = _turned if self.operation == "backwards" else _other_case
        return all(
            same(items[place], found) if at == changed else items[place] == found
            for at, (place, found) in enumerate(zip(places, claimed, strict=True))
        )


def _other_case(word: str, found: str) -> bool:
    return len(word) == len(found) and all(
        a.lower() == b.lower() and a.isupper() != b.isupper() for a, b in zip(word, found, strict=True)
    )


def _turned(word: str, found: str) -> bool:
    return len(word) == len(found) and all(word[len(word) - 1 - at] == letter for at, letter in enumerate(found))


def _swapped(count: int, numbers: Sequence[int]) -> _Places:
    one, other = numbers[0] - 1, numbers[1] - 1
    return [other if at == one else one if at == other else at for at in range(count)]


def _inserted(count: int, numbers: Sequence[int]) -> _Places:
    new = count - 1  # the word to insert stands behind the list
    return [new if at == numbers[0] - 1 else at - (at > numbers[0] - 1) for at in range(count)]


_PLACES: Final[Mapping[str, Callable[[int, Sequence[int]], _Places]]] = {
    "reverse": lambda count, _: [count - 1 - at for at in range(count)],
    "rotate": lambda count, numbers: [(at + numbers[0]) % count for at in range(count)],
    "swap": _swapped,
    "insert": _inserted,
    "backwards": lambda count, _: list(range(count)),
    "case": lambda count, _: list(range(count)),
    "every": lambda count, numbers: [at for at in range(count) if at % 2 == numbers[0] - 1],
    "item": lambda _, numbers: [numbers[0] - 1],
    "without": lambda count, numbers: [at for at in range(count) if at != numbers[0] - 1],
    "join": lambda count, _: list(range(count)),
}
"""Which item each position of the result holds, from how many items there are; both counted from 0."""
