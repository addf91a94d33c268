"""Grounding of lists and records: each value in them at a place, and no place for two items.

The items of a list stand in a document one after the other. So each field's values must stand there in one order, that
of the list or that in which the items themselves stand there, and every amount at a place of its own: an item that is
listed twice, or has the amount of another one, needs a place that there is not. What an amount is not (a name, a date,
a rate) may stand once for several items, unless two items are the same in everything. And where beside one part of an
item stands a number or a date, but another one than was claimed, that one is the item's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.core.verdicts import shorten
from stepguard.language.records import Record
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value

MOST_PARTS: Final = 2000
"""The most values of one claim that are looked for."""

_SHARED: Final = frozenset({"text", "one_of", "date", "time", "percent", "boolean"})
"""Kinds of values that may stand once for several items."""

CharRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A value inside a list or a record.

    Attributes:
        place: where, such as ``[2].amount``.
        field: the same without the number of the item.
        item: the number of the item of the outermost list, None where there is none.
        kind: its type.
        value: the value.
    """

    place: str
    field: str
    item: int | None
    kind: ValueType
    value: Value


def parts_in(kind: ValueType, value: Value, place: str = "", item: int | None = None) -> Iterator[Part]:
    """The values without parts of their own in a list or a record."""
    if kind.items is not None and isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from parts_in(kind.items, each, f"{place}[{index}]", index if item is None else item)
    elif kind.record is not None and isinstance(value, Record):
        for key, inner in kind.record.fields:
            yield from parts_in(inner, value[key], f"{place}.{key}".removeprefix("."), item)
    else:
        field = place if item is None else place.removeprefix(f"[{item}]").removeprefix(".")
        yield Part(place, field, item, kind, value)


def crossing(
    parts: Sequence[Part], spans: Callable[[Part], Sequence[CharRange]], rival: Callable[[Part, CharRange], str | None]
) -> str | None:
    """Why a document cannot hold all items of a list side by side; None where it can.

    Args:
        parts: the values of all items, in order.
        spans: where each of them stands, in order, at least once.
        rival: another value of the same kind on the line of a span that does not hold the part itself.
    """
    rows: dict[int, dict[str, Part]] = {}
    for part in parts:
        if part.item is not None:
            rows.setdefault(part.item, {})[part.field] = part
    listed = list(rows.values())
    for row in listed:
        for part in row.values():
            beside = [spans(other)[0] for other in row.values() if other is not part and len(spans(other)) == 1]
            found = [other for span in beside if (other := rival(part, span)) is not None]
            if beside and len(found) == len(beside):
                return (
                    f"{part.place}: beside that item stands {found[0]!r}, not {shorten(show_value(part.value), 60)!r}"
                )
    if len(listed) < 2:
        return None
    complaint = _in_order(listed, spans)
    if complaint is None:
        return None
    stands = sorted(listed, key=lambda row: _certain(row, spans))
    return complaint if _in_order(stands, spans) is not None else None


def _certain(row: dict[str, Part], spans: Callable[[Part], Sequence[CharRange]]) -> int:
    """Where an item stands: the first of its values that stand at one place only, or of all."""
    held = [spans(part) for part in row.values()]
    return min(each[0][0] for each in [each for each in held if len(each) == 1] or held)


def _in_order(rows: Sequence[dict[str, Part]], spans: Callable[[Part], Sequence[CharRange]]) -> str | None:
    whole: set[tuple[str, ...]] = set()
    ends: dict[str, int] = {}
    used: dict[str, set[str]] = {}
    for row in rows:
        shown = tuple(f"{field}={show_value(part.value)}" for field, part in row.items())
        repeated = shown in whole
        whole.add(shown)
        for field, part in row.items():
            text = show_value(part.value)
            free = next((span for span in spans(part) if span[0] >= ends.get(field, 0)), None)
            if free is not None:
                ends[field] = free[1]
            elif repeated or part.kind.kind not in _SHARED or text not in used.get(field, ()):
                return (
                    f"{part.place}: {shorten(text, 60)!r} has no place of its own behind those of the items before it"
                )
            used.setdefault(field, set()).add(text)
    return None
