"""Where a value stands in a document: numbers by value. Names are found by `stepguard.documents.names`.

Numbers count where they stand alone. Part of an id, a version, a time, a range or a word (``A-1234``, ``1.2.3``,
``12:30``, ``10-20``, ``Q3``) they do not; neither do numbers in words (``three``), which are not read.

=======================  =====================================================================================
written                  is
=======================  =====================================================================================
``1,234.50``  ``1234.5`` the same number
``-5``  ``−5``  ``-$5``  -5, and not 5, with every kind of minus; a dash with a blank behind it is no minus
``28 %``  ``28 percent`` 0.28 for a percentage; 0.28 or 28 for another number
``€50``  ``50 EUR``      50, but no amount in another currency
``1.5 million``          1,500,000 and not 1.5; also ``$1.5M``, ``£2bn``
``5km``  ``3rd``         5 and 3
``(1,234)``              1234, also where accountants mean a loss by it; ``$(1,234)`` is nothing
``1 234``                nothing: one number or two, unless the blank is a no-break or a thin one
``007``                  nothing: a code
``3/4``  ``1.5 × 10^6``  nothing, and not 3, 4 or 1.5 either
``5 lakh``  ``5 Mio``    nothing, and not 5 either; so are crore, dozen, Mrd, Milliarden, ``£5 bn``, ``5 万``
``5 ‰``  ``5 bps``       nothing, and not 5 either
``5 cents``  ``5 yen``   5, and as money only in a currency that this can mean
``5.00-``  ``minus 5``   nothing: less than zero, in ways that are not read
``10–20``                with this dash 10 and 20, with a hyphen nothing
``28 November 2026``     28 and 2026; in ``2026-11-28`` no number
=======================  =====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.errors import ValueRefused
from stepguard.language.currencies import CODES, SIGNS, WORDS, compatible, other_currency
from stepguard.language.numerals import MINUS_SIGNS, Exact, exact, read_numeral

__all__ = ["FoundNumber", "Place", "find_numbers", "number_goes_on"]

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
_RANGE: Final = "\u2013"
_BLANKS: Final = "[ \u00a0\u2009\u202f]"
_UNSEEN: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_MINUS: Final = f"-{MINUS_SIGNS}"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[{_MINUS}+])?(?:(?P<currency>{_CURRENCY}){_BLANKS}?|(?P<code>\b(?:{_CODE})){_BLANKS})?"
    rf"(?P<inner>[{_MINUS}])?"
    "(?P<digits>[0-9]{1,3}(?:[\u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]+)?(?![0-9])|[0-9][0-9.,]*|\\.[0-9]+)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,4}(?![0-9A-Za-z]))?"
)
_POINTS: Final = rf"{_BLANKS}?-?(?i:points?|pts?)\b(?!{_BLANKS}(?:to|at|out|towards?)\b)"
"""Behind a percent sign: a difference of percentages is none itself."""
_BEHIND: Final = re.compile(
    rf"(?P<scale>{_BLANKS}(?i:hundred|thousand|million|billion|trillion)\b|(?:mn|bn|[kKmMbB])(?!\w))?"
    rf"(?:{_BLANKS}?(?P<percent>(?:%|(?i:per{_BLANKS}?cent)\b)(?!{_POINTS}))|{_BLANKS}?(?P<currency>{_CURRENCY})"
    rf"|{_BLANKS}(?P<code>{_CODE})\b|{_BLANKS}(?P<word>(?i:{'|'.join(WORDS)}))\b)?"
)
_GLUED_BEFORE: Final = re.compile(
    rf"[\w#@±]\Z|[\w)\]][{_MINUS}+/._*^~%]\Z|[0-9][:,=]\Z|[/\\\u2044\u2215]\Z|\w['’\u00b4`\u02bc\u066c]\Z"
    rf"|[\w)](?:\*\*| \*\* | ?\^ ?)\Z|\w[.,]?[{_UNSEEN}]+\Z"
)
_SIGN_AFTER: Final = re.compile(r"[\s(\[{=<>≤≥≠≈~:;,|\"'“‘*]\Z")
_GLUED_BEHIND: Final = re.compile(
    rf"(?!(?:{_UNITS})(?![\w]))\w|[{_MINUS}/:.,_@^*=+][0-9]|[-_/@][A-Z]\b|[/_@]\w|-\w?\d|[⁻⁺±]|\+/"
    rf"|[{_UNSEEN}]+[.,]?\w"
)
_LARGER: Final = (  # stems, in languages that write our digits
    "hundred|thousand|[mb]ill?ion|trill?ion|quadrill?ion|mill?iard|mil[jy]|miliar|milio|millon|millón|milh[ãõo]|bil[jy]"
    "|bilh[ãõo]|tril[jy]|trilh[ãõo]|billiard|hundert|tausend|duizend|tusen|tusind|tisíc|tysi|tuhat|tuhan|ezer|lakh|crore"
    "|juta|ribu|тысяч|тисяч|хиляд|миллион|миллиард|милион|милиард|мільйон|мільярд|триллион|[万萬億亿兆千百만억조천백]"
)
_LARGER_WORDS: Final = (
    "mille|milliers?|mil|mila|mill|mii|mie|bin|crs?|lacs?|dozens?|th?sd|tds|tys|tis|mio|mia|mln|ml?rd|mld|mds?|bio|brd"
    "|bln|[mbt]n|trn|(?-i:MM)|m?[mt]kr|mdkr|тыс|тис|млн|млрд|трлн"
)
_SMALLER_WORDS: Final = "bps?|basis[ \u00a0]points?|per[ \u00a0-]?(?:mil(?:le?)?|thousand)|pro[ \u00a0]?mill?e?"
_GOES_ON: Final = re.compile(
    "[ \u00a0]?(?:[¼-¾⅐-⅞]|[0-9]{1,3}/[0-9])|['’\u00b4`\u02bc\u066c][0-9]"
    r"|\*\*[0-9]| \*\* ?[-+0-9(]| \^ ?[-+0-9({]"
    "|[ \u00a0]?[\u2044\u2215][ \u00a0]?[0-9]"
    "|[ \u00a0]?(?:[×x*·\u22c5\u2217]|\\\\times|\\\\cdot)[ \u00a0]?10[ \u00a0]?(?:\\^|\\*\\*|[⁻⁺⁰¹²³⁴-⁹])"
    rf"|\)?(?:[ \u00a0\u2009\u202f-]{{0,2}}|\s)(?:{_LARGER})"
    rf"|[\s-]?(?:(?:{_LARGER_WORDS}|{_SMALLER_WORDS})(?![^\W\d_])|[‰‱])"
    rf"|{_BLANKS}?[tkmbg][dn]?\.?{_BLANKS}?(?:(?:{_CURRENCY})(?!{_BLANKS}?[0-9])|(?-i:{_CODE})\b)"
    rf"|{_BLANKS}and{_BLANKS}(?:an?|one|two|three){_BLANKS}(?:hal|third|quarter)"
    rf"|[-{MINUS_SIGNS.replace(_RANGE, '')}](?!\w|[{_MINUS}>])",
    re.IGNORECASE,
)
"""What makes a number another one: ``5 ½``, ``1'234``, ``5⁄8``, ``1.5 × 10^6``, ``(5) million``, ``5 lakh``, ``5-``."""
_MONEY_GOES_ON: Final = re.compile(rf"{_BLANKS}?(?:[kKmMbBtT]|[mM][mM]|[bBtT]r?[nN])(?![\w-])")
"""Behind an amount of money, what may be the unit of another number: ``$3 M``, ``$3mm``."""
_SCALED_BEFORE: Final = re.compile(
    rf"\b(?:[tTkKmM]|[mMbB][nN])(?:{_CURRENCY}|{_CODE}){_BLANKS}?\Z"
    rf"|\b(?i:mio|mrd|tsd|thousands?|millions?|billions?)\.?{_BLANKS}(?:{_CURRENCY}|{_CODE}){_BLANKS}?\Z"
    rf"|(?:{_CURRENCY}|\b(?:{_CODE})){_BLANKS}?(?:[kKmMbB]|[mMbB][nN]|(?i:thousands?|millions?|billions?)){_BLANKS}\Z"
)
"""In front of a number, its scale with a currency: ``TEUR 5``, ``Mio. EUR 5``, ``€m 5``, ``USD million 5``."""
_NEGATED: Final = re.compile(r"\b(?:minus|negative)\s\Z", re.IGNORECASE)
_CODE_BEFORE: Final = re.compile(rf"\b({_CODE}){_BLANKS}?\Z")
_ACCOUNT_BEFORE: Final = re.compile(rf"(?:{_CURRENCY}) ?\(\Z")
_EACH: Final = re.compile(r"/[a-z]+(?![\w/-])")
"""Behind an amount: ``$0.75/share``."""
_CODE_NUMBER: Final = re.compile(r"0[0-9]")  # 007 is a code
_FIRST_GROUP: Final = re.compile(r"[1-9][0-9]{0,2} [0-9]{3}(?![0-9A-Za-z])")
_NEXT_GROUP: Final = re.compile(r"[0-9]{3}(?:[.,][0-9]+)?\Z")
_GROUP_BEFORE: Final = re.compile(r"(?<![0-9A-Za-z])[0-9]{1,3} \Z")
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
        unit: ``"%"``, a currency (a code, or what `stepguard.language.currencies.compatible` knows), or None.
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
    before, further = text[max(start - 5, 0) : start], text[max(start - 10, 0) : start]
    sign, at = match["sign"], match.start("digits")
    if _CODE_NUMBER.match(digits) or _in_blank_groups(text, at, digits):
        return None
    if _NEGATED.search(further) or _SCALED_BEFORE.search(text[max(at - 24, 0) : at]):
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
        if unit is None or (second is not None and compatible(unit, second)):  # $5 CAD
            unit = second
    if unit in ("$", "¥") and (written := _CODE_BEFORE.search(further)) and compatible(unit, written[1]):  # CAD $5
        unit = written[1]
    unit = unit or other_currency(text, start, end)
    if text[end : end + 1] == _RANGE and text[end + 1 : end + 2].isdigit():  # 10–20: both ends stand there
        pass
    elif (
        number_goes_on(text, end, money=unit not in (None, "%"))
        or _ACCOUNT_BEFORE.search(before)
        or (_GLUED_BEHIND.match(text, end) and not (unit and _EACH.match(text, end)))
    ):
        return None
    try:
        value = Fraction(read_numeral(digits + (match["exponent"] or ""), decimal=decimal).value) * scale
    except ValueRefused:
        return None
    return FoundNumber(exact(-value if negative else value), unit, start, end)


def number_goes_on(text: str, end: int, *, money: bool) -> bool:
    """Whether what stands behind a number, or behind an amount of money, makes it another one."""
    return _GOES_ON.match(text, end) is not None or (money and _MONEY_GOES_ON.match(text, end) is not None)


def _in_blank_groups(text: str, start: int, digits: str) -> bool:
    """Whether digits are part of ``1 234`` with a common blank, which is one number or two."""
    if _FIRST_GROUP.match(text, start):
        return True
    return _NEXT_GROUP.match(digits) is not None and _GROUP_BEFORE.search(text[max(start - 5, 0) : start]) is not None


def _unit(sign: str | None, code: str | None, word: str | None) -> str | None:
    if sign:
        return SIGNS[sign]
    return WORDS[word.lower()] if word else code.upper() if code else None
