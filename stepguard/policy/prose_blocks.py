"""Split a written text into blocks and sentences, each with its line and the headings and items above it.

Headings, items, a line that leads to a list: what is below them may be meant for them alone. Code, tables, quotations
and comments are no sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

TOOL: Final = r"(?:`(?P<{0}q>[A-Za-z_]\w*)(?:\(\))?`|(?P<{0}u>[A-Za-z]\w*_\w+)(?:\(\))?|(?P<{0}c>[A-Za-z_]\w*)\(\))"
"""A tool that is named as such, with a name of its group in place of ``{0}``."""
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+]|[0-9]{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
# Below a paragraph it makes that a heading; one dash alone may be an empty item.
_UNDERLINE: Final = re.compile(r"\s*(?:=+|-{2,})\s*")
# Many who write no headings put a line in bold above what it is about.
_BOLD: Final = re.compile(r"\*\*[^*]+\*\*:?|__[^_]+__:?")
_TOOL_ALONE: Final = re.compile(TOOL.format("tool"))
# A point with no blank behind it, as in 12.50 or the name of a file, ends no sentence.
_SENTENCE: Final = re.compile(r"[^.!?]*(?:[.!?](?!\s|$)[^.!?]*)*(?:[.!?]+(?=\s|$)|$)")
_MAX_LINE: Final = 20_000
_NOT_PROSE: Final = "it is code, a table, a quotation or a comment, and no sentence"
A_HEADING: Final = "it is a heading"


class ProseBlock(NamedTuple):
    """A paragraph, an item or something else, with the line that each of its parts stands in.

    `below` is why it is only proposed, and `other` why it is no sentence at all; an `inner` one is part of an item.
    """

    parts: tuple[tuple[int, str], ...]
    below: str | None = None
    other: str | None = None
    item: bool = False
    inner: bool = False


def _is_other(line: str, *, inside: bool) -> bool:
    """Whether a line is a row of a table, a quotation, a comment, code by its indentation, or too long."""
    code = not inside and line.expandtabs(4).startswith("    ")
    return code or len(line) > _MAX_LINE or line.lstrip().startswith(("|", ">", "<"))


class _ProseOutline:
    """The headings, items and leading line above the next block."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._items: list[tuple[int, str]] = []
        self._lead: str | None = None
        self._titled = False

    def heading(self, level: int, text: str) -> None:
        """A heading; the first one at the top is a title, and one that is a tool's name narrows nothing."""
        self._items, self._lead = [], None
        self._headings = [each for each in self._headings if each[0] < level]
        # A title covers the whole text, so it narrows none of it.
        if (level > 1 or self._titled) and not _TOOL_ALONE.fullmatch(text):
            self._headings.append((level, text))
        self._titled = True

    def item(self, indent: int, text: str) -> None:
        """An item of a list."""
        self._items = [*(each for each in self._items if each[0] < indent), (indent, text)]

    def paragraph(self, *, indented: bool) -> None:
        """A paragraph begins."""
        if not indented:
            self._lead = None if self._items else self._lead
            self._items = []

    def inner(self, *, item: bool) -> bool:
        """Whether the block that ends here is part of an item."""
        return bool(self._items[:-1] if item else self._items)

    def below(self, *, item: bool) -> str | None:
        """Why the block that ends here is only proposed."""
        items = self._items[:-1] if item else self._items
        above = [*(text for _, text in (*self._headings, *items)), *([self._lead] if self._lead else [])]
        return (
            f"it stands below {json.dumps(above[-1][:80], ensure_ascii=False)}, which may narrow it" if above else None
        )

    def ended(self, text: str, *, item: bool) -> None:
        """A block has ended; one that ends in a colon leads to the next."""
        if not item:
            self._lead = text if text.endswith(":") else None


def prose_blocks(text: str) -> Iterator[ProseBlock]:
    """The blocks of a text, in its order."""
    outline = _ProseOutline()
    parts: list[tuple[int, str]] = []
    item = commented = False
    fence = ""  # the signs that have opened code

    def closed() -> Iterator[ProseBlock]:
        if parts:
            yield ProseBlock(tuple(parts), outline.below(item=item), None, item, outline.inner(item=item))
            outline.ended(parts[-1][1].strip(), item=item)
            parts.clear()

    for number, given in enumerate(text.split("\n"), 1):
        line = given.rstrip()
        heading, listed = _HEADING.fullmatch(line.strip()), _ITEM.fullmatch(line)
        was_commented = commented
        # The last mark of a line decides what the next line is in.
        commented = line.rfind("<!--") > line.rfind("-->") if "<!--" in line or "-->" in line else commented
        if (behind := _fence_behind(line, fence)) != fence:
            yield from closed()
            fence = behind
        elif not line.strip():
            yield from closed()
        elif fence or commented or was_commented or _is_other(line, inside=bool(parts) or item):
            yield from closed()
            yield ProseBlock(((number, line.strip()[:_MAX_LINE]),), other=_NOT_PROSE)
        elif parts and not item and _UNDERLINE.fullmatch(line):
            outline.heading(1 if "=" in line else 2, " ".join(part for _, part in parts))
            yield ProseBlock(tuple(parts), other=A_HEADING)
            parts.clear()
        elif heading is not None or (not parts and _BOLD.fullmatch(line.strip())):
            yield from closed()
            # A bold line counts as below all of Markdown's six levels.
            level, title = (len(heading[1]), heading[2]) if heading is not None else (7, line.strip())
            outline.heading(level, title)
            yield ProseBlock(((number, title),), other=A_HEADING)
            item = False
        elif listed is not None:
            yield from closed()
            item = True
            outline.item(len(listed[1].expandtabs(4)), listed[2])
            parts.append((number, listed[2]))
        else:
            if not parts:
                outline.paragraph(indented=line.startswith((" ", "\t")))
                item = False
            parts.append((number, line.strip()))
    yield from closed()


def _fence_behind(line: str, fence: str) -> str:
    """The signs that have opened code, behind a line: it is closed by as many of the same, and by nothing else."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    signs, words = match.groups()
    if fence:
        return "" if signs.startswith(fence) and not words.strip() else fence
    return "" if "`" in words and signs[0] == "`" else signs  # code within a line


def sentences_of(block: ProseBlock) -> Iterator[tuple[int, str]]:
    """The sentences of a block, each with the line in which it begins."""
    starts: list[tuple[int, int]] = []
    joined = ""
    for line, part in block.parts:
        joined += " " if joined else ""
        starts.append((len(joined), line))
        joined += part
    at = 0
    for match in _SENTENCE.finditer(joined):
        sentence = match[0].strip()
        if not sentence:
            continue
        begin = match.start() + len(match[0]) - len(match[0].lstrip())
        while at + 1 < len(starts) and starts[at + 1][0] <= begin:
            at += 1
        yield starts[at][1], sentence
