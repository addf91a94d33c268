"""The tree that rows of a table are looked up in, key by key: exact keys, ranges of them, and all others.

The branches that a key fits are tried in order: the exact one, those of ranges, the one of ``otherwise``. Two rows that
some keys fit alike are refused when the table is made; how many ranges are compared for that is limited.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from stepguard.errors import ProcedureError
from stepguard.language.values import Value, show_value

_COMPARISONS: Final = 100_000  # no mutate: a limit
"""How many comparisons of ranges a small table may take; a larger one gets more, but not the square of its rows."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range; with None for `value` it is open."""

    value: Any
    inside: bool = True


@dataclass(frozen=True, slots=True)
class KeyRange:
    low: Bound
    high: Bound
    text: str = field(default="", compare=False)

    def meets(self, other: KeyRange) -> bool:
        return begins_before_end(self.low, other.high) and begins_before_end(other.low, self.high)


def begins_before_end(low: Bound, high: Bound) -> bool:
    if low.value is None or high.value is None:
        return True
    return bool(low.value < high.value) or (low.value == high.value and low.inside and high.inside)


TableKey = tuple[Any] | KeyRange | None
"""An exact key, a range, or None for every other one."""


class Branch:
    """A node of the look-up tree: what the keys from one position on select."""

    __slots__ = ("exact", "ordered", "otherwise", "ranges", "value")

    def __init__(self) -> None:
        self.exact: dict[Any, Branch] = {}
        self.ranges: dict[KeyRange, Branch] = {}
        self.otherwise: Branch | None = None
        self.value: Value | None = None
        self.ordered: list[KeyRange] | None = None  # ranges that do not meet each other, by where they begin

    @property
    def below(self) -> Iterator[Branch]:
        """The branches of all keys."""
        yield from self.exact.values()
        yield from self.ranges.values()
        if self.otherwise is not None:
            yield self.otherwise

    def under(self, key: TableKey) -> Branch:
        """The branch of a key, created where it is missing."""
        if key is None:
            self.otherwise = self.otherwise or Branch()
            return self.otherwise
        if isinstance(key, KeyRange):
            return self.ranges.setdefault(key, Branch())
        return self.exact.setdefault(key[0], Branch())

    def around(self, key: Any) -> Iterator[Branch]:
        """The branches of the ranges that a key is in."""
        point = Bound(key)
        return self.meeting(KeyRange(point, point))

    def meeting(self, key: KeyRange) -> Iterator[Branch]:
        """The branches of the ranges that another one meets."""
        near: Iterable[KeyRange] = filter(key.meets, self.ranges)
        if (ordered := self.ordered) is not None:
            # They end in the order in which they begin: those that meet the key stand side by side.
            first = bisect_left(ordered, True, key=lambda each: begins_before_end(key.low, each.high))
            near = takewhile(key.meets, map(ordered.__getitem__, range(first, len(ordered))))
        return map(self.ranges.__getitem__, near)

    def look_up(self, keys: Sequence[Any], *, own: bool = False) -> Value | None:
        """The value of some keys, None where no row has them; `own`: no row with ``otherwise`` counts."""
        if not keys:
            return self.value
        # Last, so that a row with the key itself goes before one with `otherwise`.
        others = [self.otherwise] if self.otherwise is not None and not own else []
        itself = [self.exact[keys[0]]] if keys[0] in self.exact else []
        for branch in (*itself, *self.around(keys[0]), *others):
            # The first key may fit where a later one does not: then the next branch is tried.
            found = branch.look_up(keys[1:], own=own)
            if found is not None:
                return found
        return None


def _start(key: KeyRange) -> tuple[Any, ...]:
    """Where a range begins, for ordering: one that begins nowhere first, and `from 5` before `over 5`."""
    return () if key.low.value is None else (key.low.value, not key.low.inside)


class RangeCheck:
    """Refuses rows that fit the same keys: ranges that meet, and exact keys inside a range."""

    def __init__(self, name: str, rows: int) -> None:
        self.name = name
        self.left = _COMPARISONS + 20 * rows  # no mutate: a limit

    def check(self, branch: Branch) -> None:
        """Check a branch; ranges that do not meet are put in order, so that a look-up need not go through them."""
        for behind in branch.below:
            self.check(behind)
        ordered = sorted(branch.ranges, key=_start)
        disjoint = True
        for place, one in enumerate(ordered):
            for other in map(ordered.__getitem__, range(place + 1, len(ordered))):
                # Sorted by where they begin: no later one can meet it either.
                if not one.meets(other):
                    break
                disjoint = False
                if self.common(branch.ranges[one], branch.ranges[other]):
                    raise ProcedureError(f"table {self.name!r}: {one.text!r} and {other.text!r} have keys in common")
        branch.ordered = ordered if disjoint else None  # no mutate: without an order it is only slower
        for exact, below in branch.exact.items():
            self.left -= 0 if disjoint else len(branch.ranges) // 8  # no mutate: an estimate
            for within in branch.around(exact):
                if self.common(below, within):
                    shown = show_value(exact)
                    raise ProcedureError(f"table {self.name!r}: the key {shown} has a row and is in a range, too")

    def common(self, one: Branch, other: Branch) -> bool:
        """Whether some keys fit a row of both branches."""
        self.left -= 1
        if self.left < 0:
            raise ProcedureError(
                f"table {self.name!r}: too many of its ranges overlap to compare them all: let ranges of one key be "
                "the same or apart, or make a table of each"
            )
        # The branch of a whole row has its value.
        return one.value is not None or any(self.common(mine, theirs) for mine, theirs in self.shared(one, other))

    def shared(self, one: Branch, other: Branch) -> Iterator[tuple[Branch, Branch]]:
        """What is below both where the first key is the same."""
        yield from ((one.exact[key], other.exact[key]) for key in one.exact if key in other.exact)
        for mine, theirs in ((one, other), (other, one)):
            for exact, below in mine.exact.items() if theirs.ranges else ():  # no mutate: only faster
                yield from ((below, each) for each in theirs.around(exact))
            if mine.otherwise is not None:
                yield from ((mine.otherwise, each) for each in theirs.below)
        few, many = sorted((one, other), key=lambda each: len(each.ranges))
        pairs = 0 if many.ordered else len(few.ranges) * len(many.ranges)  # no mutate: an estimate
        self.left -= pairs  # no mutate: an estimate
        yield from ((few.ranges[key], each) for key in few.ranges for each in many.meeting(key))
