"""Which claims are the writer's own: what stands around, above and behind them neither denies nor supposes them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from stepguard.auditing.claims import disowned, words_behind
from stepguard.auditing.names import Entry, Names
from stepguard.auditing.tables import another_unit
from stepguard.documents.tables import read_caption
from stepguard.language.lines import Lines
from stepguard.language.prose.retraction import doubted_before

_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}")
_STEP: Final = re.compile(r"\b(?:step|line) ?\#?([0-9]{1,9})\b", re.IGNORECASE)
_ALL: Final = re.compile(
    r"\b(?:all|none|everything|nothing|above|these|those|steps|values|results|numbers|answers|lines)\b", re.IGNORECASE
)
"""What speaks of more than the claim before it."""
_BLOCK: Final = re.compile(r"/\*.*?(?:\*/|\Z)|(?P<quote>\"{3}|'{3}).*?(?:(?P=quote)|\Z)", re.DOTALL)
"""A comment or a quotation, which may go over several lines."""


def understood(entry: Entry, names: Names, words: str, where: str = "the words in front") -> Entry:
    """A claim without its value where there are words in front that are not understood as the writer's own."""
    if not words:
        return entry
    return entry.without_value(
        f"{where}, {names.understanding.shown(words)}, are not understood", supposed=doubted_before(words) == "supposed"
    )


def asserted(entries: list[Entry], row_ends: dict[int, int], body: str, around: str, names: Names) -> list[Entry]:
    """The claims, without the value where a heading above or what follows is not understood as the writer's own.

    What follows a row of a table stands below it: what stands beside it is read with it.
    """
    entries = list(_headed(entries, body, names))
    starts = [*(entry.start for entry in entries[1:]), len(body)]
    found: list[Entry] = []
    meant: dict[str | None, tuple[str, int]] = {}
    for entry, start in zip(entries, starts, strict=False):
        begin = row_ends.get(entry.start, entry.end)
        line = body.rfind("\n", begin, start) + 1  # what leads to the next claim on its line is read with it
        end = line if line and start < len(body) else start
        behind, followed = around[begin:end], start < len(body)
        words = words_behind(entry, behind, names, followed=followed)
        if words:
            steps = set(_meant(words, names))
            below = not followed and "\n" in behind[: behind.find(words)]
            meant |= dict.fromkeys(steps or ({None} if below else ()), (words, len(found)))
        found.append(disowned(entry, words, names))
    if not meant:
        return found
    # The last denial counts, and for what stands in front of it alone: behind "t1 is wrong" it may be given anew.
    nothing = "", -1
    denials = [
        max(meant.get(entry.name, nothing), meant.get(None, nothing), key=lambda each: each[1]) for entry in found
    ]
    return [
        disowned(entry, words if at >= number else "", names)
        for number, (entry, (words, at)) in enumerate(zip(found, denials, strict=True))
    ]


def _meant(words: str, names: Names) -> Iterator[str | None]:
    """The steps that words behind a claim name, None for all before them."""
    if _ALL.search(words):
        yield None
    for word in _NAME.finditer(words):
        if (name := names.find(word[0])) is not None:
            yield name
    for number in _STEP.finditer(words):
        if (name := names.numbered(int(number[1]))) is not None:
            yield name


def _headed(entries: list[Entry], body: str, names: Names) -> Iterator[Entry]:
    """The claims, without the value where they are not understood by what stands above, up to the next heading.

    A caption, which says in what scale or currency numbers are, holds for those below it, and for all behind the last.
    """
    above, at = "", 0
    caption = stated = None
    for block in _BLOCK.finditer(body):
        inside = slice(*(bisect_left(entries, place, key=lambda entry: entry.start) for place in block.span()))
        entries[inside] = [understood(entry, names, block[0][:2], "the marks around it") for entry in entries[inside]]
    last = max((entry.start for entry in entries), default=0)
    for start, end in Lines(body).spans():
        line = body[start:end]
        if "|" in line and len(cells := [cell for cell in line.split("|") if cell.strip()]) == 1:
            line = cells[0]  # a title within a table
        if (heading := names.understanding.unread_heading(line)) is not None:
            above, caption = heading, None
        if (read := read_caption(line)) is not None:
            caption, stated = read, read if start > last else stated
        while at < len(entries) and entries[at].start < end:
            entry = understood(entries[at], names, above, "the words of the heading above")
            if another_unit(caption, names.steps.get(entry.name)):
                entry = entry.without_value("a line above says in what unit it is")
            entries[at] = entry
            at += 1
    for entry in entries:
        unit = another_unit(stated, names.steps.get(entry.name))
        yield entry.without_value("a line below says in what unit it is") if unit else entry
