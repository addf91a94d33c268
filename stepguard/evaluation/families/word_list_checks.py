"""The check of `WordLists`: which item of which list stands at each position of the claimed one.

It shares no code with the family's own computation, which cuts and joins lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stepguard.language.values import Value

_Places = list[int]


def rearranged(
    claimed: Value,
    values: Mapping[str, Value],
    operation: str,
    reads: tuple[str, ...],
    arguments: tuple[int | str, ...],
) -> bool:
    """Whether a claimed list is what an operation makes of the lists that the step reads.

    The text must be exactly right: a comma and a blank between items, nothing around them.

    Args:
        values: those of the lists that are read, by name.
        operation: reverse, rotate, swap, insert, backwards, case, every, item, without or join.
        reads: the names of the lists.
        arguments: positions counted from 1, counts, and the word to insert.
    """
    words = str(claimed).split(", ")
    items = [item for name in reads for item in str(values[name]).split(", ")]
    numbers = [argument for argument in arguments if isinstance(argument, int)]
    if operation == "insert":
        items.append(str(arguments[1]))
    places = _PLACES[operation](len(items), numbers)
    changed = numbers[0] - 1 if operation in ("backwards", "case") else -1
    same = _turned if operation == "backwards" else _other_case
    return len(words) == len(places) and all(
        same(items[place], word) if at == changed else items[place] == word
        for at, (place, word) in enumerate(zip(places, words, strict=True))
    )


def _other_case(item: str, word: str) -> bool:
    return len(item) == len(word) and all(
        a.lower() == b.lower() and a.isupper() != b.isupper() for a, b in zip(item, word, strict=True)
    )


def _turned(item: str, word: str) -> bool:
    return len(item) == len(word) and all(item[len(item) - 1 - at] == letter for at, letter in enumerate(word))


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
