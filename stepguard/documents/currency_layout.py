"""Currencies that layout sets apart from their amounts: on another line, in the next cell, in brackets, behind a colon.

::

    EUR            Total (EUR): 50.00       | 50.00 | EUR |       EUR    50.00       $50.00 (CAD)
    50.00

What stands right beside an amount, `stepguard.language.prose.amounts` reads itself.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from stepguard.language.currencies import CODES, MARK, compatible, marked, other_currency
from stepguard.language.prose.amounts import FoundNumber, find_numbers

_GAP: Final = r"[\s|()\[\]*_\"'>{}]"
_KEY: Final = r"[\"']?,\s{0,20}[\"'][^\"'\n:]{1,20}[\"']\s?:[\s\"']{0,4}"
"""Between the values of two keys, as in JSON."""
# `20.00 | EUR` in front belongs to the 20.00, and USD/EUR is a rate.
_IN_FRONT: Final = re.compile(rf"(?<![\w/.])(?:{MARK})(?:(?:{_GAP}|[:=]){{1,12}}|{_KEY})\Z")
_PAIR_BEFORE: Final = re.compile(r"[0-9][^\S\n]?(?:[|(\[*_][^\S\n]?){0,3}\Z")
_PAIRED: Final = re.compile(rf"(?:{MARK})\s?(?:[/,&]|or|and)\s?\Z")  # of two amounts that follow
_CURRENCY_BEHIND: Final = re.compile(
    rf"(?:(?:{_GAP}|[,;]){{1,12}}(?:in )?|(?P<key>{_KEY}|\n[ \t]{{1,20}}(?:currency|ccy|curr|unit)\s?:\s?[\"']?))"
    rf"(?:{MARK})[^\S\n]*(?:[|)\].,;*_\n}}]|[\"'](?!\s?:)|\Z)"
)
_REACH: Final = 48

_MARK: Final = re.compile(MARK)
_TITLES: Final = (
    "currency|prices?|amounts?|values?|figures?|totals?|sum|due|paid|payable|invoice|bill|receipt|account|balance|fees?"
    "|betrag|betr\u00e4ge|preise?|w\u00e4hrung|rechnung|konto|montants?|prix|devise|importes?|precios|moneda|valuta"
)
_UNIT_BEFORE: Final = re.compile(
    rf"(?:\b(?:in|en|em|w|v|i|als|{_TITLES})[\s:=(\[\"']{{1,5}}|[(\[=:|!]\s?)\Z", re.IGNORECASE
)
_UNIT_BEHIND: Final = re.compile(rf"[)\]]| (?:{_TITLES})\b", re.IGNORECASE)
_NUMBER_BEFORE: Final = re.compile(r"[0-9][^\S\n]{0,3}\|?[^\S\n]{0,3}\n?[^\S\n]{0,3}\Z")
_NUMBER_BEHIND: Final = re.compile(r"(?:[^\S\n]|\||(?P<line>\n)){0,4}[-+(]?[0-9][0-9.,]*(?![\w-])")
_WEIGHT: Final = re.compile("pounds?", re.IGNORECASE)
_NUMBERS: Final = "-+0123456789.,\u00a0\u2009\u202f "
_DOUBTFUL: Final = re.compile(r"ft|c|cts?|p|(?i:real|rand|sen|lev|ore|crowns|pounds?)")
_COINS: Final = frozenset({"btc", "bitcoin", "bitcoins", "eth", "ether", "usdc", "usdt"})
_LINE_BEGINS: Final = re.compile(r"(?:\n|\A)[^\w\n]{0,6}\Z")
_LINE_ENDS: Final = re.compile(r"[^\w\n]{0,6}(?:\n|\Z)")
_POSSIBLE: Final = re.compile(
    r"\b(?:may|might|can|could|also|accepts?|convert\w*|exchange|if|not"
    r"|unless(?! (?:otherwise|stated|noted|indicated|specified)))\b",
    re.IGNORECASE,
)


def currencies_apart(text: str, start: int, end: int, *, across: bool = True) -> frozenset[str]:
    """What may say in which currency an amount in a text is: codes or signs before and behind it, with layout between.

    Two where it could be either: the amount stands between them.

    Args:
        across: whether other lines count.
    """
    found: set[str] = set()
    offset = max(start - _REACH, 0 if across else text.rfind("\n", max(start - _REACH, 0), start) + 1)
    front = _IN_FRONT.search(text[offset:start])
    earlier = "" if front is None else text[max(offset + front.start() - _REACH, 0) : offset + front.start()]
    if front is not None and not (_PAIR_BEFORE.search(earlier) or _PAIRED.search(earlier)):
        found.add(marked(front))
    behind = _CURRENCY_BEHIND.match(text[end : end + _REACH])
    if behind is not None and (across or behind["key"] or "\n" not in behind[0][:-1]) and "\n\n" not in behind[0]:
        found.add(marked(behind))
    return frozenset(found)


class DocumentCurrencies(NamedTuple):
    """The currencies that a text speaks of.

    Attributes:
        headings: those that it says its amounts are in, in a heading or in words: ``prices in EUR``, ``Total (EUR)``.
        amounts: those that stand at one of its amounts: ``Shipping EUR 5.00``.
    """

    headings: frozenset[str]
    amounts: frozenset[str]

    @property
    def of_bare_amounts(self) -> tuple[frozenset[str], ...]:
        """What an amount without a currency has to be in, all of it: nothing where the text is silent.

        A heading counts more than the currencies of other amounts.
        """
        return tuple(frozenset({heading}) for heading in sorted(self.headings or self.amounts)) or (frozenset(),)

    @classmethod
    def read(cls, text: str) -> DocumentCurrencies:
        """The currencies of a text.

        A code among other words may be a name (``SDN BHD``), ``pounds`` are a weight, too, and what may be paid in
        another currency is not.
        """
        headings: set[str] = set()
        amounts = {unit for number in find_numbers(text) if (unit := _currency_at(text, number)) is not None}
        for mark in _MARK.finditer(text):
            currency, (start, end) = marked(mark), mark.span()
            if _WEIGHT.match(mark[0]) or (currency in headings and currency in amounts):
                continue
            front, behind = text[max(start - 16, 0) : start], text[end : end + 16]
            if _beside_number(front, behind):
                amounts.add(currency)
            elif currency not in headings and _says_unit(mark, front, behind) and not _only_possible(text, start, end):
                headings.add(currency)
        return cls(frozenset(headings), frozenset(amounts))


def _currency_at(text: str, found: FoundNumber) -> str | None:
    """The currency of an amount, None where it has none, or a name that may be another unit: ``5 ft``, ``5 pounds``."""
    if found.unit in (None, "%"):
        return None
    name = other_currency(text, found.start, found.end)
    written = "" if name is None else text[name.start : found.start] or text[found.end : name.end]
    if _WEIGHT.match(text[found.start : found.end].lstrip(_NUMBERS)) or _DOUBTFUL.fullmatch(written.strip()):
        return None
    known = name is None or name.unit in _COINS or any(compatible(name.unit, code) for code in CODES)
    return found.unit if known else None


def _beside_number(front: str, behind: str) -> bool:
    number = _NUMBER_BEFORE.search(front)
    if number is not None and ("\n" not in number[0] or _LINE_ENDS.match(behind)):
        return True
    number = _NUMBER_BEHIND.match(behind)
    return number is not None and (number["line"] is None or _LINE_BEGINS.search(front) is not None)


def _only_possible(text: str, start: int, end: int) -> bool:
    near = max(start - _REACH, 0)
    begin = text.rfind("\n", near, start) + 1 or near
    return _POSSIBLE.search(text[begin : end + _REACH].partition("\n")[0]) is not None


def _says_unit(mark: re.Match[str], front: str, behind: str) -> bool:
    if mark["name"] and (mark[0].islower() or marked(mark) in CODES - {"EUR"}):
        return True  # names in small letters, and those with their country, are no other words
    if mark["sign"] and marked(mark) not in ("$", "\u00a5"):
        return True
    if _UNIT_BEFORE.search(front) or _UNIT_BEHIND.match(behind):
        return True
    return _LINE_BEGINS.search(front) is not None and _LINE_ENDS.match(behind) is not None
