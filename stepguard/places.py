"""Where a value stands in a document: numbers and dates by value, names by their words.

Numbers count where they stand alone. Part of an id, a version, a time, a range or a word (``A-1234``, ``1.2.3``,
``12:30``, ``10-20``, ``Q3``) they do not; neither do numbers in words (``three``), which are not read.

=======================  =====================================================================================
written                  is
=======================  =====================================================================================
``1,234.50``  ``1234.5`` the same number
``-5``  ``−5``  ``-$5``  -5, and not 5; a dash with a blank behind it is no minus
``28 %``  ``28 percent`` 0.28 for a percentage; 0.28 or 28 for another number
``€50``  ``50 EUR``      50, but no amount in another currency
``1.5 million``          1,500,000 and not 1.5; also ``$1.5M``, ``£2bn``
``5km``  ``3rd``         5 and 3
``(1,234)``              1234, also where accountants mean a loss by it; ``$(1,234)`` is nothing
``1 234``                nothing: one number or two, unless the blank is a no-break or a thin one
``007``                  nothing: a code
``3/4``  ``1.5 × 10^6``  nothing, and not 3, 4 or 1.5 either
``5 lakh``  ``5 Mio``    nothing, and not 5 either; so are crore, dozen, mln, Mrd, bln
``5 ‰``  ``5 bps``       nothing, and not 5 either
``5.00-``  ``minus 5``   nothing: less than zero, in ways that are not read
``10–20``                with this dash 10 and 20, with a hyphen nothing
``28 November 2026``     28 and 2026; in ``2026-11-28`` no number
=======================  =====================================================================================
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.currencies import CODES, SIGNS, WORDS
from stepguard.errors import ValueRefused
from stepguard.numerals import Exact, exact, read_numeral

__all__ = ["FoundNumber", "Place", "Words", "find_numbers"]

_CURRENCY: Final = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True))
_CODE: Final = "|".join(sorted(CODES))
_SCALES: Final = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "mn": 10**6, "b": 10**9, "B": 10**9, "bn": 10**9,
}  # fmt: skip
_UNITS: Final = (
    "st|nd|rd|th|km|cm|mm|nm|kg|mg|g|t|lb|lbs|oz|ft|in|mi|yd|h|hr|hrs|min|s|sec|ms|l|L|ml|mL|kW|kWh|MW|MWh|GHz|MHz|kHz|Hz"
    "|kB|KB|MB|GB|TB|px|pt|x|°C|°F|°"
)
_BLANKS: Final = "[ \u00a0\u2009\u202f]"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[-+\u2212\u2013])?(?:(?P<currency>{_CURRENCY}){_BLANKS}?|(?P<code>\b(?:{_CODE})){_BLANKS})?"
    r"(?P<inner>[-\u2212])?"
    "(?P<digits>[0-9]{1,3}(?:[\u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]+)?(?![0-9])|[0-9][0-9.,]*|\\.[0-9]+)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,4}(?![0-9A-Za-z]))?"
)
_BEHIND: Final = re.compile(
    rf"(?P<scale>{_BLANKS}(?i:hundred|thousand|million|billion|trillion)\b|(?:mn|bn|[kKmMbB])(?!\w))?"
    rf"(?:{_BLANKS}?(?P<percent>%|(?i:per{_BLANKS}?cent)\b)|{_BLANKS}?(?P<currency>{_CURRENCY})"
    rf"|{_BLANKS}(?P<code>{_CODE})\b|{_BLANKS}(?P<word>(?i:{'|'.join(WORDS)}))\b)?"
)
_GLUED_BEFORE: Final = re.compile(
    r"[\w#@]\Z|[\w)\]][-+\u2212\u2013/._*^~%]\Z|[0-9][:,=]\Z|[/\\\u2044\u2215]\Z|\w['’\u00b4`\u02bc\u066c]\Z|[\w)]\*\*\Z"
)
_SIGN_AFTER: Final = re.compile(r"[\s(\[{=<>≤≥≠≈~:;,|\"'“‘*]\Z")
_GLUED_BEHIND: Final = re.compile(
    rf"(?!(?:{_UNITS})(?![\w]))\w|[-\u2010\u2011\u2013/:.,_@^*=+][0-9]|[-_/@][A-Z]\b|[/_@]\w|-\w?\d|[⁻⁺]"
)
_GOES_ON: Final = re.compile(
    "[ \u00a0]?(?:[¼-¾⅐-⅞]|[0-9]{1,3}/[0-9])|['’\u00b4`\u02bc\u066c][0-9]|\\*\\*[0-9]"
    "|[ \u00a0]?[\u2044\u2215][ \u00a0]?[0-9]"
    "|[ \u00a0]?(?:[×x*·]|\\\\times)[ \u00a0]?10(?:\\^|\\*\\*|[⁻⁺⁰¹²³⁴-⁹])"
    "|\\)?[ \u00a0](?:hundred|thousand|million|billion|trillion)"
    "|[ \u00a0\u2009\u202f]?(?:(?:lakhs?|crores?|dozens?|mio|mln|mrd|bln|bps?|basis[ \u00a0]points?)(?![a-z])|[‰‱])"
    r"|[-\u2212](?!\w|[-\u2212>])",
    re.IGNORECASE,
)
"""What makes a number another one: ``5 ½``, ``1'234``, ``5⁄8``, ``1.5 × 10^6``, ``(5) million``, ``5 lakh``, ``5-``."""
_NEGATED: Final = re.compile(r"\b(?:minus|negative)[ \u00a0]\Z", re.IGNORECASE)
_ACCOUNT_BEFORE: Final = re.compile(rf"(?:{_CURRENCY}) ?\(\Z")
_EACH: Final = re.compile(r"/[a-z]+(?![\w/-])")
"""Behind an amount: ``$0.75/share``."""
_RANGE: Final = "\u2013"
_CODE_NUMBER: Final = re.compile(r"0[0-9]")  # 007 is a code
_FIRST_GROUP: Final = re.compile(r"[1-9][0-9]{0,2} [0-9]{3}(?![0-9A-Za-z])")
_NEXT_GROUP: Final = re.compile(r"[0-9]{3}(?:[.,][0-9]+)?\Z")
_GROUP_BEFORE: Final = re.compile(r"(?<![0-9A-Za-z])[0-9]{1,3} \Z")
_WORD: Final = re.compile(r"\S+")
_QUOTES: Final = str.maketrans({
    "’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "\u2010": "-", "\u2011": "-", "\u2013": "-",
    "\u2014": "-", "\u2212": "-", "\u00ad": "",
})  # fmt: skip
_SNIPPET: Final = 30


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document.

    Attributes:
        offset: its first character, from 0.
        length: its length in characters.
        line: its line, from 1.
        snippet: what stands there, with something around it.
    """

    offset: int
    length: int
    line: int
    snippet: str

    @classmethod
    def of(cls, document: str, start: int, end: int) -> Place:
        """The place from offset `start` up to `end` of a document."""
        around = document[max(start - _SNIPPET, 0) : end + _SNIPPET]
        return cls(start, end - start, document.count("\n", 0, start) + 1, " ".join(around.split()))

    def __str__(self) -> str:
        return f"line {self.line}, character {self.offset}: {self.snippet!r}"


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number that stands in a document, from offset `start` up to `end`.

    Attributes:
        value: the number, with its scale (``1.5 million``), before it is divided by 100 as a percentage.
        unit: ``"%"``, a currency (a code, ``"$"`` or ``"¥"``), or None.
    """

    value: Exact
    unit: str | None
    start: int
    end: int


def find_numbers(text: str, *, decimal: Literal[".", ","] = ".") -> Iterator[FoundNumber]:
    """Every number in a text that stands alone and can be read.

    Args:
        text: the document.
        decimal: its decimal separator; the other one of ``.`` and ``,`` may group thousands.
    """
    for match in _NUMBER.finditer(text):
        found = _number_at(text, match, decimal)
        if found is not None:
            yield found


def _number_at(text: str, match: re.Match[str], decimal: Literal[".", ","]) -> FoundNumber | None:
    digits = match["digits"].rstrip(".,")
    cut = len(match["digits"]) - len(digits)
    if cut and match["exponent"]:
        return None
    end = match.end("digits") - cut if cut else match.end()
    start, negative = match.start(), False
    before = text[max(start - 3, 0) : start]
    sign = match["sign"]
    if _CODE_NUMBER.match(digits) or _in_blank_groups(text, match.start("digits"), digits):
        return None
    if _NEGATED.search(text[max(start - 10, 0) : start]):
        return None
    if sign:
        if sign == _RANGE and before[-1:].isdigit():  # 10–20: the end of a range is no negative number
            start += 1
        elif before and not _SIGN_AFTER.search(before):
            return None
        else:
            negative = sign != "+"
    elif (match["code"] and before[-1:] == "-") or _GLUED_BEFORE.search(before):
        return None
    if match["inner"]:
        if sign or not (match["currency"] or match["code"]):
            return None
        negative = True
    behind = _BEHIND.match(text, end)
    assert behind is not None
    scale, unit = 1, _unit(match["currency"], match["code"], None)
    word = (behind["scale"] or "").strip(" \u00a0\u2009\u202f")
    if word:
        if len(word) > 2:
            scale = _SCALES[word.lower()]
        elif unit is not None and word in _SCALES:  # a letter is a scale of money, and else a unit or a name
            scale = _SCALES[word]
        else:
            behind = None
    if behind is not None:
        end = behind.end()
        second = "%" if behind["percent"] else _unit(behind["currency"], behind["code"], behind["word"])
        unit = unit or second
    if text[end : end + 1] == _RANGE and text[end + 1 : end + 2].isdigit():  # 10–20: both ends stand there
        pass
    elif (
        _GOES_ON.match(text, end)
        or _ACCOUNT_BEFORE.search(before)
        or (_GLUED_BEHIND.match(text, end) and not (unit and _EACH.match(text, end)))
    ):
        return None
    try:
        value = Fraction(read_numeral(digits + (match["exponent"] or ""), decimal=decimal).value) * scale
    except ValueRefused:
        return None
    return FoundNumber(exact(-value if negative else value), unit, start, end)


def _in_blank_groups(text: str, start: int, digits: str) -> bool:
    """Whether digits are part of ``1 234`` with a common blank, which is one number or two."""
    if _FIRST_GROUP.match(text, start):
        return True
    return _NEXT_GROUP.match(digits) is not None and _GROUP_BEFORE.search(text[max(start - 5, 0) : start]) is not None


def _unit(sign: str | None, code: str | None, word: str | None) -> str | None:
    if sign:
        return SIGNS[sign]
    return WORDS[word.lower()] if word else code.upper() if code else None


class Words:
    """A document to find names in: without regard to case, white space, and how quotes and dashes are written."""

    def __init__(self, document: str) -> None:
        pieces: list[str] = []
        self._starts: list[int] = []  # of each word, in the folded text
        self._spans: list[tuple[int, int]] = []  # and in the document
        at = 0
        for match in _WORD.finditer(document):
            word = fold(match[0])
            if not word:
                continue
            self._starts.append(at)
            self._spans.append(match.span())
            pieces.append(word)
            at += len(word) + 1
        self._text = " ".join(pieces)

    def find(self, name: str) -> Iterator[tuple[int, int]]:
        """The spans in the document of the words that hold a name as a whole, and not inside a longer word."""
        wanted = " ".join(filter(None, (fold(word) for word in _WORD.findall(name))))
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            end = at + len(wanted)
            if _alone(self._text, at, end):
                first, last = (bisect_right(self._starts, place) - 1 for place in (at, end - 1))
                yield self._spans[first][0], self._spans[last][1]
            at = self._text.find(wanted, at + 1)


def fold(word: str) -> str:
    """A word as it is compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", word.translate(_QUOTES)).casefold())


def _alone(text: str, start: int, end: int) -> bool:
    """Whether no longer word reaches over either end; a possessive ``'s`` is no part of the name."""
    if _part(text[start]):
        before = text[max(start - 2, 0) : start]
        if _part(before[-1:]) or (before[-1:] in ("-", "'") and _part(before[:-1])):
            return False
    if _part(text[end - 1]):
        behind = text[end : end + 3]
        if _part(behind[:1]):
            return False
        possessive = behind[:2] == "'s" and not _part(behind[2:3])
        if behind[:1] in ("-", "'") and _part(behind[1:2]) and not possessive:
            return False
    return True


def _part(char: str) -> bool:
    """Whether a character is part of a word: a letter, a digit, an accent, an underscore."""
    return bool(char) and (char.isalnum() or char == "_" or unicodedata.combining(char) != 0)
