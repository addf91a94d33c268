"""What the head of a column or a row, or the caption above, says of the numbers below: currency, scale, percentages.

::

    | Item | USD    | EUR    |      Item       USD     EUR      (in EUR thousands)    Item;USD;EUR
    | Net  | 108.00 | 100.00 |      Net     108.00  100.00      Net sales   1,234     Net;108.00;100.00

Where a row does not fit its heads, all of them may be meant.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, NamedTuple

from stepguard.language.currencies import MARK, marked

_CURRENCY: Final = (
    rf"(?:(?<!\w)(?P<prefix>[TtkKmM])\s?(?=[A-Z]{{3}}(?![A-Za-z])|[$\u20ac\u00a3\u00a5]))?(?:{MARK})"
    r"(?:(?P<suffix>k|K|m|M|mn|bn|B)(?!\w)|\s?\(?(?P<apart>[kKmM])(?![\w.]))?"
)
_FACTOR: Final = r"(?:[x×*]\s?|in (?:[A-Z€$£]{1,3} ?)?)1[,.\s]?000s?"
_SCALE: Final = (
    r"(?P<thousands>(?i:thousands?|tausend|tsd\.?|milliers|'000s?|’000s?|(?<![\w.,])000s?|"
    rf"(?<!\w){_FACTOR})(?!\w))"
    r"|(?P<hundreds>(?i:hundreds?)(?!\w))"
    r"|(?P<millions>(?i:millions?|millionen|mio\.?|mn|mln|mm)(?!\w))"
    r"|(?P<billions>(?i:billions?|mrd\.?|milliarden|bn)(?!\w))"
    r"|(?P<lakhs>(?i:lakhs?|lacs?)(?!\w))|(?P<crores>(?i:crores?)(?!\w))"
)
_MARK: Final = re.compile(rf"{_CURRENCY}|{_SCALE}|(?P<percent>%|(?<!\w)(?i:per ?cent|percentage|pct|prozent)(?!\w))")
_POWERS: Final = {"hundreds": 2, "thousands": 3, "millions": 6, "billions": 9, "lakhs": 5, "crores": 7}
_LETTERS: Final = {"T": 3, "t": 3, "k": 3, "K": 3, "m": 6, "M": 6, "mn": 6, "bn": 9, "B": 9}
_YEARS: Final = re.compile(
    rf"(?<![\w.,])(?:{_FACTOR}|(?:19|20)[0-9]{{2}}|['’]?000['’]?s?|Q[1-4]|[0-9]{{1,2}}/[0-9]{{2,4}})(?![\w.,])"
)
_DIGIT: Final = re.compile(r"\d")
_CAPTION: Final = re.compile(
    r"\(\s*(?:['’]?000['’]?s?|thousands|millions|billions)(?!\w)[^)\n]*\)"
    r"|\(\s*(?:all )?(?:[\w ]{0,30}\b)?in\b[^)\n]*\)|\(\s*[^\w\s()]{1,4}\s*(?:in )?[^)\n]*\)"
    r"|^\W*(?:all[ae]? |the )*(?:amounts?|prices?|figures?|values?|currency|angaben|beträge|montants)\b.*"
    r"|\b(?:in|en)\s+(?:[^\W\d]+\s+){0,3}?(?:thousands?|millions?|billions?|tsd|tausend|milliers|mio|mrd|lakhs|crores)\b.*"
    r"|(?<!\w)(?:in\s+)?(?:TEUR|TUSD|T€|k€|€k|\$k|€m|\$m|[€$£]\s?['’]?000|[A-Z]{3}\s?['’]?000(?!\w)"
    r"|(?:[A-Z]{3}|[€$£])\s(?:thousands?|millions?|billions?|mio|mrd|tsd)\.?)(?!\w)",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(rf"\s*(?:#{{1,6}} ?|\*\*)[^\w\n]{{0,3}}(?:{MARK})\W*\Z")
_LABELLED: Final = re.compile(r"[:=\uff1a)\]][^\w:=]{0,6}(?:[A-Z]{3}\s?)?[^\w:=]{0,3}\Z")
_LABEL_REACH: Final = 80
_NUMBER_BEFORE: Final = re.compile(r"[1-9][0-9.,]*")
_IN_BRACKETS: Final = re.compile(r"\([^()\n]{0,30}\)|\[[^\[\]\n]{0,30}\]")
_RATED: Final = re.compile(r"\b(?:per|je|pro|par)\b", re.IGNORECASE)
_ZEROS: Final = re.compile(r"['\u2019]000s?\b")
_GAP: Final = re.compile(r"\s{2,}")
_TOKEN: Final = re.compile(r"\S+")
_RULE: Final = re.compile(r"[\s|:+=_-]*\Z")
_NUMBERS: Final = re.compile(r"[-+(]?[$€£¥]?\s?[0-9][0-9.,]*%?\)?(?!\S)")
_WORDS_OF_PROSE: Final = re.compile(r"[^\W\d_]{2,}")
_PROSE: Final = 8
"""So many words make a line one of prose."""
_LONGEST: Final = 2000
"""A longer line heads nothing, in characters."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a head says.

    Attributes:
        currencies: codes, signs or names of the currencies in it.
        power: the power of ten that numbers below are multiplied by.
        percent: whether they are percentages.
    """

    currencies: frozenset[str] = frozenset()
    power: int = 0
    percent: bool = False

    @classmethod
    def read(cls, text: str) -> Head | None:
        """The head that a text is; None where it says nothing of numbers."""
        currencies: set[str] = set()
        power, percent = 0, False
        for mark in _MARK.finditer(text):
            kind = mark.lastgroup or ""
            if mark["code"] or mark["sign"] or mark["name"] or mark["wide"]:
                currencies.add(marked(mark))
                power = _LETTERS.get(mark["prefix"] or mark["suffix"] or mark["apart"] or "", power)
            elif kind == "percent":
                percent = True
            else:
                power = _POWERS[kind]
        return cls(frozenset(currencies), power, percent) if currencies or power or percent else None


class _Cell(NamedTuple):
    start: int
    end: int
    text: str


class _Row(NamedTuple):
    delimiter: str
    cells: tuple[_Cell, ...]


class Heads:
    """The heads of the tables in a text, as it is seen.

    Args:
        text: the text; it is read once, and each number is then looked up in it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self._groups: dict[int, tuple[_Row, ...]] = {}  # the heads above a line
        self._captions: dict[int, Head] = {}
        self._read()
        self._last: tuple[int, _Row | None] = (-1, None)

    def _line(self, number: int) -> str:
        end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else len(self._text)
        return self._text[self._starts[number] : end]

    def _read(self) -> None:
        heads: list[_Row] = []
        caption: Head | None = None
        in_data = False
        for number in range(len(self._starts)):
            line = self._line(number)
            if not line.strip():
                if in_data or not heads or heads[-1].delimiter != "|":  # AsciiDoc has a blank line below its heads
                    heads, in_data = [], False
            elif _has_no_values(line):
                caption = read_caption(line) or caption
                row = _row(line)
                if row is not None:
                    if in_data and sum(bool(cell.text.strip()) for cell in row.cells) > 1:
                        heads, in_data = [], False
                    if not in_data:
                        heads = [*heads[-2:], row]
            else:
                in_data = in_data or bool(heads)
            if heads and in_data:
                self._groups[number] = tuple(heads)
            if caption is not None:
                self._captions[number] = caption

    def of(self, start: int, end: int) -> tuple[Head, ...]:
        """The heads that may be meant for the number from offset `start` up to `end`, none where nothing is said."""
        number = bisect_right(self._starts, start) - 1
        found = self._columns(number, start - self._starts[number], end - self._starts[number])
        caption = self._captions.get(number)
        if caption is not None and len(_WORDS_OF_PROSE.findall(self._line(number)[:_LONGEST])) < _PROSE:
            found = [_under(caption, each) for each in found] or [caption]
        label = _label(self._text[max(self._starts[number], start - _LABEL_REACH) : start])
        if label is not None and not any(each.power for each in found):
            found = [Head(each.currencies or label.currencies, label.power) for each in found] or [label]
        return tuple(dict.fromkeys(found))

    def over(self, start: int, end: int) -> list[str]:
        """The heads of the column of the number from offset `start` up to `end`, as they are written."""
        number = bisect_right(self._starts, start) - 1
        row, at = self._row_of(number), (start - self._starts[number], end - self._starts[number])
        return [] if row is None else [text for head in self._groups.get(number, ()) for text in _over(head, row, *at)]

    def _columns(self, number: int, start: int, end: int) -> list[Head]:
        row = self._row_of(number)
        found: list[Head] = []
        for head in self._groups.get(number, ()):
            found += _above(head, row, start, end)
        if row is not None and row.delimiter and row.cells and row.cells[0].end <= start:
            first = row.cells[0].text
            label = None if _DIGIT.search(_YEARS.sub("", first)) else Head.read(first)
            if label is not None and not found:
                found = [label]
        return found

    def _row_of(self, number: int) -> _Row | None:
        if self._last[0] != number:
            self._last = (number, _row(self._line(number)))
        return self._last[1]


def _has_no_values(line: str) -> bool:
    return len(line) <= _LONGEST and not _DIGIT.search(_YEARS.sub("", line))


def read_caption(line: str) -> Head | None:
    """What a caption such as ``(all amounts in EUR)`` says of the numbers around it; None where a line is none."""
    match = (_CAPTION.search(line) or _HEADING.match(line)) if _has_no_values(line) else None
    return None if match is None else Head.read(match[0])


def _label(front: str) -> Head | None:
    """The scale that the label in front of a number says, ``Sum (in thousands): 5``; None where it says none."""
    if _LABELLED.search(front) is None:
        return None
    label = _NUMBER_BEFORE.split(front)[-1]
    parts = [match[0] for pattern in (_IN_BRACKETS, _CAPTION, _ZEROS) for match in pattern.finditer(label)]
    heads = _heads([part for part in parts if not _RATED.search(part)])
    return next((head for head in heads if head.power), None)


def _row(line: str) -> _Row | None:
    """The cells of a line, None where it has none or is a rule."""
    if _RULE.match(line):
        return None
    for delimiter in ("|", "\t", ";", '","'):
        if delimiter in line:
            return _Row(delimiter, _delimited(line, delimiter))
    cells: list[_Cell] = []
    at = 0
    for gap in _GAP.finditer(line):
        if gap.start() > at:
            cells.append(_Cell(at, gap.start(), line[at : gap.start()]))
        at = gap.end()
    cells.append(_Cell(at, len(line), line[at:]))
    return _Row("", tuple(cells))


def _delimited(line: str, delimiter: str) -> tuple[_Cell, ...]:
    if delimiter == "|" and "||" in line and "|" not in line.replace("||", ""):  # the heads of some wikis
        delimiter = "||"
    cells: list[_Cell] = []
    at = 0
    for piece in line.split(delimiter):
        cells.append(_Cell(at, at + len(piece), piece))
        at += len(piece) + len(delimiter)
    if delimiter[0] == "|" and len(cells) > 1 and not cells[0].text.strip():
        del cells[0]
    if len(cells) > 1 and not cells[-1].text.strip():
        del cells[-1]
    return tuple(cells)


def _over(head: _Row, row: _Row, start: int, end: int) -> list[str]:
    """The cell of a row of heads over a number in a row below it, none where it cannot be told."""
    if head.delimiter != row.delimiter or (len(head.cells) < 2 and not head.delimiter):
        return []
    if head.delimiter:
        at = bisect_right(row.cells, start, key=lambda cell: cell.start) - 1
        return [head.cells[max(at, 0)].text] if len(head.cells) == len(row.cells) else []
    over = [cell.text for cell in head.cells if cell.start < end and cell.end > start]
    return over if len(over) == 1 else []


def _above(head: _Row, row: _Row | None, start: int, end: int) -> list[Head]:
    """What a row of heads says of a number in a row below it."""
    if row is None:
        return []
    over = _over(head, row, start, end)
    if over:
        return _heads(over)
    if head.delimiter or row.delimiter:
        return _heads([cell.text for cell in head.cells]) if head.delimiter == row.delimiter else []
    marked = [text for cell in head.cells for text in _statements(cell.text)]
    if len(head.cells) == 1 and len(marked) < 2:
        return []  # a line of words, such as a name
    tokens = [
        cell.start + token.start()
        for cell in row.cells
        for token in _TOKEN.finditer(cell.text)
        if _NUMBERS.match(token[0])
    ]
    if len(tokens) == len(marked) > 1:
        return _heads([marked[max(bisect_right(tokens, start) - 1, 0)]])
    return [found for found in _heads(marked) if not found.percent]


def _statements(text: str) -> list[str]:
    """The parts of a head that say something, `EUR thousands` in one."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        head, last = Head.read(token), Head.read(found[-1]) if found else None
        if head is None:
            continue
        if last is not None and bool(last.currencies) != bool(head.currencies) and not (last.percent or head.percent):
            found[-1] += f" {token}"
        else:
            found.append(token)
    return found


def _heads(texts: list[str]) -> list[Head]:
    return [head for text in texts if (head := Head.read(text)) is not None]


def _under(caption: Head, head: Head) -> Head:
    """A head with what the caption says where it is silent; percentages are neither scaled nor money."""
    if head.percent:
        return head
    return Head(head.currencies or caption.currencies, head.power or caption.power)
