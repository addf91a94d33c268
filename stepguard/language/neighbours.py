"""What stands beside a number and makes it another one: ``5 million``, ``5-10``, ``10^5``, ``5 ½``, ``minus 5``.

One reader for documents, names in them and transcripts.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.language.currencies import CODES, PARTS, SIGNS
from stepguard.language.digits import GROUPING, MINUS_SIGNS
from stepguard.language.numerals import WIDE_DIGITS
from stepguard.language.struck_text import JOINT
from stepguard.language.unseen import BLANKS

__all__ = ["RANGE", "changed_before", "joined_before", "joined_behind", "may_be_signed", "number_goes_on"]

_CURRENCY: Final = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True))
_CODE: Final = "|".join(sorted(CODES))
_UNITS: Final = (
    "st|nd|rd|th|km|cm|mm|nm|kg|mg|g|t|lb|lbs|oz|ft|in|mi|yd|h|hr|hrs|min|s|sec|ms|l|L|ml|mL|kW|kWh|MW|MWh|GHz|MHz|kHz|Hz"
    "|kB|KB|MB|GB|TB|px|pt|x|°C|°F|°"
)
RANGE: Final = "\u2013"
_BLANKS: Final = f"[{BLANKS}]"
_WIDE: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts that write words without blanks between them."""
_MINUS: Final = f"-{MINUS_SIGNS}"
_ENDS: Final = r"\s;|()\[\]{}\"“”„«»<>—、。!?"
"""What ends a number for certain, so that another may begin right behind it."""
_GLUED_BEFORE: Final = re.compile(
    rf"(?![{_WIDE}])[\w#@±]\Z|[{WIDE_DIGITS}]\Z|[\w)\]][{_MINUS}+/._*^~%]\Z|[/\\\u2044\u2215{JOINT}]\Z"
    rf"|\w['’\u00b4`\u02bc\u066c]\Z|[\w)](?:\*\*| \*\* | ?\^ ?)\Z|[0-9][^\w{_ENDS}]\Z|[0-9][{GROUPING}]\Z"
    rf"|[{_MINUS}]\({_BLANKS}?\Z|\b(?:CR|Cr|DR|Dr)\.?{_BLANKS}?\Z"
)
_SIGN_AFTER: Final = re.compile(rf"[\s(\[{{=<>≤≥≠≈~:;,|\"'“‘*{_WIDE}、。]\Z")
_GLUED_BEHIND: Final = re.compile(
    rf"(?!(?:{_UNITS})(?![^\W{_WIDE}]))(?![{_WIDE}])\w|[^\w{_ENDS}]\d|[-_/@][A-Z]\b|[/_@]\w|\*+\w|-\w?\d|[⁻⁺±{JOINT}]|\+/"
    rf"|[{GROUPING}]\d|[割分成折半倍{WIDE_DIGITS}]|[円元块塊圓원]{_BLANKS}?\d"
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
    rf"|[-{MINUS_SIGNS.replace(RANGE, '')}{RANGE}]?{_BLANKS}*[{_MINUS}]{_BLANKS}*(?=\n|\||\Z)"
    rf"|{_BLANKS}?[tkmbg][dn]?\.?{_BLANKS}?(?:(?:{_CURRENCY})(?!{_BLANKS}?[0-9])|(?-i:{_CODE})\b)"
    rf"|{_BLANKS}and{_BLANKS}(?:an?|one|two|three){_BLANKS}(?:hal|third|quarter)"
    rf"|[-{MINUS_SIGNS.replace(RANGE, '')}](?!\w|[{_MINUS}>])",
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
_EACH: Final = re.compile(r"/[a-z]+(?![\w/-])")
"""Behind an amount: ``$0.75/share``."""


def changed_before(text: str, start: int, digits: int) -> bool:
    """Whether what stands in front of an amount makes it another one: a minus in words, a root, a scale.

    Args:
        text: the text.
        start: where the amount begins.
        digits: where its digits begin.
    """
    front = text[max(start - 10, 0) : start], text[max(digits - 24, 0) : digits]
    return _NEGATED.search(front[0]) is not None or _SCALED_BEFORE.search(front[1]) is not None


def joined_before(text: str, start: int) -> bool:
    """Whether a number is part of what stands right in front of it: ``Q3``, ``1.2.3``, ``10^5``."""
    return _GLUED_BEFORE.search(text[max(start - 5, 0) : start]) is not None


def may_be_signed(before: str) -> bool:
    """Whether a minus or a plus behind a character is a sign."""
    return _SIGN_AFTER.search(before) is not None


def joined_behind(text: str, end: int, *, unit: bool) -> bool:
    """Whether a number is part of what stands right behind it; ``$0.75/share`` is an amount with its `unit`."""
    return _GLUED_BEHIND.match(text, end) is not None and not (unit and _EACH.match(text, end))


def number_goes_on(text: str, end: int, *, money: bool) -> bool:
    """Whether what stands behind a number, or behind an amount of money, makes it another one."""
    return _GOES_ON.match(text, end) is not None or (money and _MONEY_GOES_ON.match(text, end) is not None)
