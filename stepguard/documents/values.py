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
``(1,234)``  ``($5)``    nothing in a sentence: a loss to accountants, an aside to others; -1234 alone in a cell
``(18)``  ``(8.25%)``    18 and 8.25 % in a sentence, and below zero alone in a cell
``5.00 CR``  ``5 Dr.``   nothing: who owes it decides its sign
``1 234``                nothing: one number or two, unless the blank is one that groups digits
``007``                  nothing: a code
``3/4``  ``1.5 × 10^6``  nothing, and not 3, 4 or 1.5 either
``5 lakh``  ``5 Mio``    nothing, and not 5 either; so are crore, dozen, Mrd, Milliarden, ``£5 bn``, ``$5 (thousand)``
``5 ‰``  ``5 bps``       nothing, and not 5 either
``5 cents``  ``5 yen``   5, and as money only in a currency that this can mean
``5 dollars 20 cents``   20, and no 5: the amount goes on
``12,800円``  ``3個``    12,800 yen and 3; ``5万`` is 50,000, and what has other such signs nothing
``5.00-``  ``minus 5``   nothing: less than zero, in ways that are not read
``10–20``                with this dash 10 and 20, with a hyphen nothing
``28 November 2026``     28 and 2026; in ``2026-11-28`` no number
=======================  =====================================================================================
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.core.deadlines import stop_if_given_up
from stepguard.errors import ValueRefused
from stepguard.language.currencies import (
    CODES,
    PARTS,
    SIGNS,
    WORDS,
    compatible,
    other_currency,
    part_behind,
    stands_glued,
)
from stepguard.language.numerals import MINUS_SIGNS, SCALES, Exact, exact, format_exact, read_numeral
from stepguard.language.struck_text import JOINT
from stepguard.language.unseen import BLANKS

__all__ = ["FoundNumber", "Place", "find_numbers", "number_goes_on"]

_CURRENCY: Final = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True))
_CODE: Final = "|".join(sorted(CODES))
_UNITS: Final = (
    "st|nd|rd|th|km|cm|mm|nm|kg|mg|g|t|lb|lbs|oz|ft|in|mi|yd|h|hr|hrs|min|s|sec|ms|l|L|ml|mL|kW|kWh|MW|MWh|GHz|MHz|kHz|Hz"
    "|kB|KB|MB|GB|TB|px|pt|x|°C|°F|°"
)
_WIDE_SCALES: Final = {"万": 10**4, "萬": 10**4, "만": 10**4, "億": 10**8, "亿": 10**8, "억": 10**8}
_RANGE: Final = "\u2013"
_BLANKS: Final = f"[{BLANKS}]"
_GROUPING: Final = "\u00a0\u2000-\u200a\u202f\u205f"
"""Blanks that may group digits."""
_WIDE: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts that write words without blanks between them."""
_WIDE_DIGITS: Final = "〇零一二三四五六七八九十百千万萬億亿兆壱弐参两兩壹贰叁肆伍陆柒捌玖拾佰仟半数數만억조천백십"
_MINUS: Final = f"-{MINUS_SIGNS}"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[{_MINUS}+])?(?:(?P<currency>{_CURRENCY}){_BLANKS}?|(?P<code>\b(?:{_CODE})){_BLANKS})?"
    rf"(?P<inner>[{_MINUS}])?"
    rf"(?P<digits>[0-9]{{1,3}}(?:[{_GROUPING}][0-9]{{3}})+(?:[.,][0-9]+)?(?![0-9])|[0-9][0-9.,]*|(?<!\.)\.[0-9]+)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,4}(?![0-9A-Za-z]))?"
)
_POINTS: Final = rf"{_BLANKS}?-?(?i:points?|pts?)\b(?!{_BLANKS}(?:to|at|out|towards?)\b)"
"""Behind a percent sign: a difference of percentages is none itself."""
_BEHIND: Final = re.compile(
    rf"(?P<scale>{_BLANKS}(?i:hundred|thousand|million|billion|trillion)\b|(?:mn|bn|[kKmMbB])(?!\w)"
    rf"|{_BLANKS}?[万萬億亿만억](?![0-9{_WIDE_DIGITS}]))?"
    rf"(?:{_BLANKS}?(?P<percent>(?:%|(?i:per{_BLANKS}?cent)\b)(?!{_POINTS}))|{_BLANKS}?(?P<currency>{_CURRENCY})(?!{_BLANKS}?[0-9])"
    rf"|{_BLANKS}?(?P<code>{_CODE})\b|{_BLANKS}(?P<word>(?i:{'|'.join(WORDS)}))\b)?"
)
_ENDS: Final = r"\s;|()\[\]{}\"“”„«»<>—、。!?"
"""What ends a number for certain, so that another may begin right behind it."""
_GLUED_BEFORE: Final = re.compile(
    rf"(?![{_WIDE}])[\w#@±]\Z|[{_WIDE_DIGITS}]\Z|[\w)\]][{_MINUS}+/._*^~%]\Z|[/\\\u2044\u2215{JOINT}]\Z"
    rf"|\w['’\u00b4`\u02bc\u066c]\Z|[\w)](?:\*\*| \*\* | ?\^ ?)\Z|[0-9][^\w{_ENDS}]\Z|[0-9][{_GROUPING}]\Z"
    rf"|[{_MINUS}]\({_BLANKS}?\Z|\b(?:CR|Cr|DR|Dr)\.?{_BLANKS}?\Z"
)
_SIGN_AFTER: Final = re.compile(rf"[\s(\[{{=<>≤≥≠≈~:;,|\"'“‘*{_WIDE}、。]\Z")
_GLUED_BEHIND: Final = re.compile(
    rf"(?!(?:{_UNITS})(?![^\W{_WIDE}]))(?![{_WIDE}])\w|[^\w{_ENDS}]\d|[-_/@][A-Z]\b|[/_@]\w|\*+\w|-\w?\d|[⁻⁺±{JOINT}]|\+/"
    rf"|[{_GROUPING}]\d|[割分成折半倍{_WIDE_DIGITS}]|[円元块塊圓원]{_BLANKS}?\d"
)
_LARGER: Final = (  # stems, in languages that write our digits
    "hundred|thousand|[mb]ill?ion|trill?ion|quadrill?ion|mill?iard|mil[jy]|miliar|milio|millon|millón|milh[ãõo]|bil[jy]"
    "|bilh[ãõo]|tril[jy]|trilh[ãõo]|billiard|hundert|tausend|duizend|tusen|tusind|tisíc|tysi|tuhat|tuhan|ezer|lakh|crore"
    "|juta|ribu|тысяч|тисяч|хиляд|миллион|миллиард|милион|милиард|мільйон|мільярд|триллион|[万萬億亿兆千百만억조천백]"
    "|000(?![0-9])"
)
_LARGER_WORDS: Final = (
    "mille|milliers?|mil|mila|mill|mii|mie|bin|crs?|lacs?|dozens?|th?sd|tds|tys|tis|mio|mia|mln|ml?rd|mld|mds?|bio|brd"
    "|bln|[mbt]n|trn|(?-i:MM)|m?[mt]kr|mdkr|тыс|тис|млн|млрд|трлн"
)
_SMALLER_WORDS: Final = (
    "bps?|basis[ \u00a0]points?|per[ \u00a0-]?(?:mil(?:le?)?|thousand)|pro[ \u00a0]?mill?e?"
    "|(?:ten|hundred|thousand|million)ths?|halves|thirds|quarters"
)
_APART: Final = (
    rf"(?:{_BLANKS}|\s)?[)\]]?(?:[\s{BLANKS}\-{MINUS_SIGNS}]{{0,3}}|\s?[(\[\"'“‘„«*_]{{1,3}}(?:in{_BLANKS})?)"
)
"""What may stand between a number and the word for thousands or millions that belongs to it."""
_GOES_ON: Final = re.compile(
    r"[ \u00a0]?\\[dtc]?frac(?![a-z])|"
    "[ \u00a0]?(?:[¼-¾⅐-⅞]|[0-9]{1,3}/[0-9])|['’\u00b4`\u02bc\u066c][0-9]"
    r"|\*\*[0-9]| \*\* ?[-+0-9(]| \^ ?[-+0-9({]"
    "|[ \u00a0]?[\u2044\u2215][ \u00a0]?[0-9]"
    "|[ \u00a0]?(?:[×x*·\u22c5\u2217]|\\\\times|\\\\cdot)[ \u00a0]?10[ \u00a0]?(?:\\^|\\*\\*|[⁻⁺⁰¹²³⁴-⁹])"
    rf"|{_APART}(?:{_LARGER})"
    rf"|{_APART}(?:(?:{_LARGER_WORDS}|{_SMALLER_WORDS})(?![^\W\d_])|[‰‱])|{_BLANKS}?[(\[][%‰]"
    rf"|(?:{_BLANKS}(?:{_CURRENCY}){_BLANKS}|(?:{_CURRENCY}){_BLANKS}?)[0-9]{{2}}(?![0-9.,])"
    rf"|{_BLANKS}?[(\[]?(?:credit|debit|haben|soll|cr|dr)(?![\w-])"
    rf"|[-{MINUS_SIGNS.replace(_RANGE, '')}{_RANGE}]?{_BLANKS}*[{_MINUS}]{_BLANKS}*(?=\n|\||\Z)"
    rf"|{_BLANKS}?[tkmbg][dn]?\.?{_BLANKS}?(?:(?:{_CURRENCY})(?!{_BLANKS}?[0-9])|(?-i:{_CODE})\b)"
    rf"|{_BLANKS}and{_BLANKS}(?:an?|one|two|three){_BLANKS}(?:hal|third|quarter)"
    rf"|[-{MINUS_SIGNS.replace(_RANGE, '')}](?!\w|[{_MINUS}>])",
    re.IGNORECASE,
)
"""What makes a number another one: ``5 ½``, ``1'234``, ``5⁄8``, ``1.5 × 10^6``, ``(5) million``, ``5 lakh``, ``5-``."""
_MONEY_GOES_ON: Final = re.compile(
    rf"{_BLANKS}?[(\[\"'“‘*_]*(?:[kKmMbBtT]|[mM][mM]|[bBtT]r?[nN])(?![\w-])"
    rf"|,?{_BLANKS}?(?:(?i:and|und|et|y|e){_BLANKS})?[0-9]{{1,2}}{_BLANKS}?(?:¢|(?i:{'|'.join(PARTS)})\b)"
    rf"|{_BLANKS}(?i:con|com){_BLANKS}[0-9]{{2}}(?![0-9.,])"
)
"""Behind an amount of money, what may be the unit of another number, or the rest of it: ``$3 M``, ``$3 20 cents``."""
_SCALED_BEFORE: Final = re.compile(
    rf"\b(?:[tTkKmM]|[mMbB][nN])(?:{_CURRENCY}|{_CODE}){_BLANKS}?\Z"
    rf"|\b(?i:mio|mrd|tsd|thousands?|millions?|billions?)\.?{_BLANKS}(?:{_CURRENCY}|{_CODE}){_BLANKS}?\Z"
    rf"|(?:{_CURRENCY}|\b(?:{_CODE})){_BLANKS}?(?:[kKmMbB]|[mMbB][nN]|(?i:thousands?|millions?|billions?)){_BLANKS}\Z"
)
"""In front of a number, its scale with a currency: ``TEUR 5``, ``Mio. EUR 5``, ``€m 5``, ``USD million 5``."""
_NEGATED: Final = re.compile(
    r"\b(?:minus|negative)[\s:)]{1,3}\Z|(?:マイナス|마이너스|[負负減▲△▼])\s?\Z"
    r"|(?:[√∛∜]|\\(?:[dtc]?frac|sqrt(?:\[[0-9]\])?))[\s({]{0,2}\Z|\}\s?\{\s?\Z"
    r"|[*\u2022\u25cf\u2217]{3,}[ -]?\Z",
    re.IGNORECASE,
)
"""In front of a number, what makes it another one: below zero, a root, part of a fraction."""
_CODE_BEFORE: Final = re.compile(rf"\b({_CODE}){_BLANKS}?\Z")
_ACCOUNT_BEFORE: Final = re.compile(rf"(?:{_CURRENCY}|\b(?:{_CODE})) ?\(\Z")
_OPENED: Final = re.compile(rf"(?P<before>\A|[^{BLANKS}]?{_BLANKS}*)\({_BLANKS}*\Z")
_CLOSED: Final = re.compile(rf"{_BLANKS}*\)(?P<behind>{_BLANKS}*(?:[^{BLANKS}]|\Z))")
_LIKE_MONEY: Final = re.compile(r",[0-9]{3}|[.,][0-9]{2}\Z")
_EACH: Final = re.compile(r"/[a-z]+(?![\w/-])")
"""Behind an amount: ``$0.75/share``."""
_CODE_NUMBER: Final = re.compile(r"0[0-9]")  # 007 is a code
_FIRST_GROUP: Final = re.compile(r"[1-9][0-9]{0,2} [0-9]{3}(?![0-9A-Za-z])")
_NEXT_GROUP: Final = re.compile(r"[0-9]{3}(?:[.,][0-9]+)?\Z")
_GROUP_BEFORE: Final = re.compile(r"(?<![0-9A-Za-z.,])[0-9]{1,3} \Z")
_NO_DIGIT: Final = re.compile("[^0-9]+")
_STRIDE: Final = 1000
"""After how many numbers it is asked whether anybody still waits."""
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
    def all_of(cls, document: str, spans: Iterable[tuple[int, int]]) -> tuple[Place, ...]:
        """The places of spans of a document, in their order."""
        lines = [at for at, char in enumerate(document) if char == "\n"]
        found: list[Place] = []
        for start, end in spans:
            around = document[max(start - _SNIPPET, 0) : min(end, start + 10 * _SNIPPET) + _SNIPPET]
            found.append(cls(start, end - start, bisect_left(lines, start) + 1, " ".join(around.split())))
        return tuple(found)

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


def find_numbers(
    text: str,
    *,
    decimal: Literal[".", ","] = ".",
    like: Exact | None = None,
    wanted: Callable[[int], bool] | None = None,
) -> Iterator[FoundNumber]:
    """Every number in a text that stands alone and can be read.

    Args:
        text: the document, as it is seen (`stepguard.documents.view`).
        decimal: its decimal separator; the other one of ``.`` and ``,`` may group thousands.
        wanted: only numbers for whose offset this is true; None: all.
        like: only numbers with the digits of this one, whatever power of ten they are multiplied by; None: all.

    Raises:
        Overrun: nobody waits for it any more.
    """
    digits = None if like is None else _NO_DIGIT.sub("", format_exact(exact(abs(Fraction(like))))).strip("0")
    for at, match in enumerate(_NUMBER.finditer(text)):
        if at % _STRIDE == 0:
            stop_if_given_up()
        if digits is not None and _NO_DIGIT.sub("", match["digits"]).strip("0") != digits:
            continue
        if wanted is not None and not wanted(match.start("digits")):
            continue
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
    elif (match["code"] and before[-1:] == "-") or (
        _GLUED_BEFORE.search(before) and (match["currency"] or not stands_glued(text, start))
    ):
        return None
    if match["inner"]:
        if sign or not (match["currency"] or match["code"]):
            return None
        negative = True
    behind = _BEHIND.match(text, end)
    assert behind is not None
    scale, unit = 1, _unit(match["currency"], match["code"], None)
    word = (behind["scale"] or "").strip()
    if word:
        if word in _WIDE_SCALES:
            scale = _WIDE_SCALES[word]
        elif len(word) > 2:
            scale = SCALES[word.lower()]
        elif unit is not None and word in SCALES:  # a letter is a scale of money, and else a unit or a name
            scale = SCALES[word]
        else:
            behind = None
    if behind is not None:
        end = behind.end()
        second = "%" if behind["percent"] else _unit(behind["currency"], behind["code"], behind["word"])
        if unit is None or (second is not None and compatible(unit, second)):  # $5 CAD
            unit = second
    if unit not in (None, "%") and (part := part_behind(text, end)):  # 99 US$ cents
        unit = part
    if unit in ("$", "¥") and (written := _CODE_BEFORE.search(further)) and compatible(unit, written[1]):  # CAD $5
        unit = written[1]
    outer = start, end
    if unit is None and (name := other_currency(text, start, end)):
        unit, outer = name.unit, (name.start, name.end)
    if text[end : end + 1] == _RANGE and text[end + 1 : end + 2].isdigit():  # 10–20: both ends stand there
        pass
    elif (
        number_goes_on(text, end, money=unit not in (None, "%"))
        or _ACCOUNT_BEFORE.search(before)
        or (_GLUED_BEHIND.match(text, end) and not (unit and _EACH.match(text, end)))
    ):
        return None
    money = unit != "%" and (unit is not None or _LIKE_MONEY.search(digits) is not None)
    accounted = _accountants_sign(text, *outer, money=money)
    if accounted is None:
        return None
    if accounted < 0 and not (sign or match["inner"]):
        negative = True
    try:
        value = Fraction(read_numeral(digits + (match["exponent"] or ""), decimal=decimal).value) * scale
    except ValueRefused:
        return None
    return FoundNumber(exact(-value if negative else value), unit, start, end)


def number_goes_on(text: str, end: int, *, money: bool) -> bool:
    """Whether what stands behind a number, or behind an amount of money, makes it another one."""
    return _GOES_ON.match(text, end) is not None or (money and _MONEY_GOES_ON.match(text, end) is not None)


def _accountants_sign(text: str, start: int, end: int, *, money: bool) -> int | None:
    """Whether brackets around an amount and nothing else mean a loss: -1, 1, or None where nobody can say.

    Alone in a cell or on a line they do; in a sentence the aside ``(EUR 46.00)`` and the loss ``($1,204)`` look alike.
    """
    opened = _OPENED.search(text, max(start - 8, 0), start)
    closed = None if opened is None else _CLOSED.match(text, end, end + 8)
    if opened is None or closed is None:
        return 1
    left, right = opened["before"], closed["behind"]
    gap = left.lstrip("".join(left.split())) if left else ""
    begins = "\t" in left or len(gap) > 1 or left[:1] in ("\n", "|") or (not left.strip() and opened.start() == 0)
    ends = "\t" in right or len(right) > 2 or right.strip() in ("", "|")
    if begins and ends:
        return -1
    return None if money else 1


def _in_blank_groups(text: str, start: int, digits: str) -> bool:
    """Whether digits are part of ``1 234`` with a common blank, which is one number or two."""
    if _FIRST_GROUP.match(text, start):
        return True
    return _NEXT_GROUP.match(digits) is not None and _GROUP_BEFORE.search(text[max(start - 5, 0) : start]) is not None


def _unit(sign: str | None, code: str | None, word: str | None) -> str | None:
    if sign:
        return SIGNS[sign]
    return WORDS[word.lower()] if word else code.upper() if code else None
