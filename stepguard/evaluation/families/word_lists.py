"""Lists of words, rearranged step by step, with every state of the list a step of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from stepguard.core.arguments import check_count
from stepguard.evaluation.families.base import DraftedFamily, Line, RuleCheck, TaskDraft
from stepguard.evaluation.families.word_list_checks import rearranged
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_TEXT: Final = (
    "ant bag bat bed bell boat book boot box bus cake card cat coat cow cup desk dog door drum duck ear egg fan "
    "farm fig fish flag fox frog goat hat hen hill horn jam key king kite lake lamp leaf lion lock map milk moon "
    "nail nest net nut oak owl pan pea pear pen pig pin plum pot rain ring road rose salt sand seal ship shoe sky "
    "snow sock sun swan tent toad tree van wall wolf"
)
_WORDS: Final = _TEXT.split()
_SEPARATOR: Final = ", "
_SHORTEST: Final = 3
_RULES: Final = "A list is written as its items with a comma and a blank between them. Items are counted from 1.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLists(DraftedFamily):
    """Reverse it, move items, swap two, insert one, take every second, take one out, spell one backwards ...

    The checker works out each state from the one before, position by position. Every step feeds the answer and no
    step makes two lists equal that were not, so that no error is erased: what is taken out (an item, every second
    item) is a value of its own that is put back later, and letters are turned around or change their case, which
    can be undone, instead of being overwritten.

    Args:
        items: how many items the list starts with.
        most: how many it may grow to.

    Raises:
        ConfigError: a knob is out of range.
    """

    example_steps: ClassVar[int] = 6

    items: int = 6
    most: int = 8

    def __post_init__(self) -> None:
        check_count(self.items, "items", least=_SHORTEST, most=30)
        check_count(self.most, "most", least=self.items, most=30)

    def draft(self, seed: int, length: int) -> TaskDraft:
        chance = random.Random(f"word_lists:{self.items}:{self.most}:{length}:{seed}")
        left = list(_WORDS)
        items = [left.pop(chance.randint(0, len(left) - 1)) for _ in range(self.items)]
        maker = _Maker(chance, count=len(items), most=self.most, last="start")
        while len(maker.lines) < length:
            maker.go_on(length - len(maker.lines))
        return TaskDraft(
            name=f"word_lists-{length}-{seed}",
            inputs=[Input("start", "text")],
            given={"start": _SEPARATOR.join(items)},
            lines=maker.lines,
            material=_RULES,
            line_tokens=40 + 16 * self.most,
        )


_Lists = Callable[..., list[str]]


@dataclass(frozen=True, slots=True)
class _Change:
    """A change over lists, for values that are texts."""

    reads: tuple[str, ...]
    change: _Lists

    def solve(self, values: Mapping[str, Value]) -> Value:
        return _SEPARATOR.join(self.change(*(str(values[name]).split(_SEPARATOR) for name in self.reads)))

    def work(self, values: Mapping[str, Value]) -> str:
        return " and ".join(f"from {values[name]}" for name in self.reads)


class _Maker:
    """Lines in the making. `count` is how many items the list has, `last` the name of its newest state."""

    def __init__(self, chance: random.Random, *, count: int, most: int, last: str) -> None:
        self.chance = chance
        self.count = count
        self.most = most
        self.last = last
        self.kind = ""
        self.lines: list[Line] = []

    def go_on(self, room: int) -> None:
        """Add one step, or three that belong together."""
        singles = [self._reverse, self._front, self._back, self._swap, self._backwards, self._case]
        if self.count < self.most:
            singles += [self._insert, self._insert]
        triples = [self._every_second, self._take_out] if room >= 3 else []
        while True:
            chosen = self.chance.choice([*singles, *triples])
            if chosen.__name__ != self.kind:  # the same twice is often nothing
                self.kind = chosen.__name__
                chosen()
                return

    def _add(
        self, instruction: str, operation: str, reads: tuple[str, ...], change: _Lists, *numbers: int | str
    ) -> str:
        name = f"w{len(self.lines) + 1}"
        checks = [RuleCheck(operation, rearranged, (operation, reads, numbers))]
        step = Step(name, instruction=instruction, type="text", reads=reads, checks=checks)
        done = _Change(reads, change)
        self.lines.append(Line(step=step, solve=done.solve, work=done.work))
        return name

    def _next(self, instruction: str, operation: str, change: _Lists, *numbers: int | str) -> None:
        self.last = self._add(instruction.format(self.last), operation, (self.last,), change, *numbers)

    def _position(self) -> int:
        return self.chance.randint(1, self.count)

    def _reverse(self) -> None:
        self._next("Reverse the order of the items of {}.", "reverse", lambda items: items[::-1])

    def _front(self) -> None:
        n = self.chance.randint(1, min(3, self.count - 1))
        what = "first item" if n == 1 else f"first {n} items, in their order,"
        text = f"Move the {what} of {{}} to the end."
        self._next(text, "rotate", lambda items: items[n:] + items[:n], n)

    def _back(self) -> None:
        n = self.chance.randint(1, min(3, self.count - 1))
        what = "last item" if n == 1 else f"last {n} items, in their order,"
        text = f"Move the {what} of {{}} to the front."
        self._next(text, "rotate", lambda items: items[-n:] + items[:-n], -n)

    def _swap(self) -> None:
        one = self.chance.randint(1, self.count - 1)
        other = self.chance.randint(one + 1, self.count)

        def change(items: list[str]) -> list[str]:
            items[one - 1], items[other - 1] = items[other - 1], items[one - 1]
            return items

        self._next(f"Swap items {one} and {other} of {{}}.", "swap", change, one, other)

    def _insert(self) -> None:
        word, at = self.chance.choice(_WORDS), self.chance.randint(1, self.count + 1)

        def change(items: list[str]) -> list[str]:
            items.insert(at - 1, word)
            return items

        self.count += 1
        self._next(f'Insert "{word}" into {{}} so that it becomes item {at}.', "insert", change, at, word)

    def _backwards(self) -> None:
        at = self._position()

        def change(items: list[str]) -> list[str]:
            items[at - 1] = items[at - 1][::-1]
            return items

        self._next(f"Spell item {at} of {{}} backwards; leave the others as they are.", "backwards", change, at)

    def _case(self) -> None:
        at = self._position()

        def change(items: list[str]) -> list[str]:
            items[at - 1] = items[at - 1].swapcase()
            return items

        text = f"Write item {at} of {{}} in capitals, or in small letters if it is in capitals."
        self._next(text, "case", change, at)

    def _every_second(self) -> None:
        source = self.last
        odd = self._add(f"Take items 1, 3, 5 and so on of {source}.", "every", (source,), lambda items: items[::2], 1)
        even = self._add(f"Take items 2, 4, 6 and so on of {source}.", "every", (source,), lambda items: items[1::2], 2)
        self._join(even, odd)

    def _take_out(self) -> None:
        source, at = self.last, self._position()
        item = self._add(f"Take item {at} of {source}.", "item", (source,), lambda items: [items[at - 1]], at)

        def change(items: list[str]) -> list[str]:
            del items[at - 1]
            return items

        rest = self._add(f"Delete item {at} from {source}.", "without", (source,), change, at)
        self._join(*((rest, item) if self.chance.random() < 0.5 else (item, rest)))

    def _join(self, one: str, other: str) -> None:
        text = f"Write the items of {one}, then those of {other}, as one list."
        self.last = self._add(text, "join", (one, other), lambda first, second: first + second)
