"""Numbers and amounts of money in running text: `stepguard.language.numerals`, with what stands beside them.

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
``$(1,204)``             -1204: a sign of a currency outside of the brackets
``1, 234.00``            nothing: an amount that a scanner split
``(18)``  ``(8.25%)``    18 and 8.25 % in a sentence, and below zero alone in a cell
``5.00 CR``  ``5 Dr.``   nothing: who owes it decides its sign
``1 234``                nothing: one number or two, unless the blank is one that groups digits
``Total: 1 448,60 EUR``  1448.60: a label or a currency in front leaves no room for a number of pieces
``007``                  nothing: a code
``3/4``  ``1.5 × 10^6``  nothing, and not 3, 4 or 1.5 either
``5 lakh``  ``5 Mio``    nothing, and not 5 either; so are crore, dozen, Mrd, Milliarden, ``£5 bn``, ``$5 (thousand)``
``5 ‰``  ``5 bps``       nothing, and not 5 either
``5 cents``  ``5 yen``   5, and as money only in a currency that this can mean
``5 dollars 20 cents``   20, and no 5: the amount goes on
``12,800円``  ``3個``    12,800 yen and 3; ``5万`` is 50,000, and what has other such signs nothing
``5.00-``  ``minus 5``   nothing: less than zero, in ways that are not read
``not 5``                nothing; in ``up to 5 EUR`` and ``5 EUR each`` there are 5 EUR, in ``half of 5 EUR`` not
``10–20``                with this dash 10 and 20, with a hyphen nothing
``28 November 2026``     28 and 2026; in ``2026-11-28`` no number
=======================  =====================================================================================
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.core.deadlines import stop_if_given_up
from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ValueRefused
from stepguard.language.currencies import (
    CODE,
    SIGN,
    SIGNS,
    compatible,
    country_beside,
    other_currency,
    part_behind,
    stands_glued,
)
from stepguard.language.digits import GROUPING, Exact, exact, format_exact, read_signed
from stepguard.language.numerals import amount_back, amount_front, one_unit, scale_of, units_behind, units_in_front
from stepguard.language.prose.neighbours import (
    ACCOUNT,
    RANGE,
    changed_before,
    joined_before,
    joined_behind,
    may_be_signed,
    number_goes_on,
    shared_before,
)
from stepguard.language.unseen import BLANKS

_BLANKS: Final = f"[{BLANKS}]"
_NUMBER: Final = lazy_pattern(
    amount_front(strict=False) + r"(?P<digits>[1-9][0-9]{0,2}(?: [0-9]{3})+[.,][0-9]{2}(?![0-9.,])"
    rf"|[0-9]{{1,3}}(?:[{GROUPING}][0-9]{{3}})+(?:[.,][0-9]+)?(?![0-9])|[0-9][0-9.,]*|(?<!\.)\.[0-9]+)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,4}(?![0-9A-Za-z]))?"
)
_AMOUNT_BACK: Final = lazy_pattern(amount_back(strict=False))
_NO_CENTS: Final = lazy_pattern("[.,][-\u2013\u2014]{1,2}(?=[^-\\w])")  # 5.- CHF
_NEXT: Final = lazy_pattern(rf"{_BLANKS}?[0-9]")
_CODE_BEFORE: Final = lazy_pattern(rf"\b({CODE}){_BLANKS}?\Z")
_ACCOUNT_BEFORE: Final = lazy_pattern(rf"(?<![0-9])(?<![0-9] )(?:(?P<sign>{SIGN})|\b(?:{CODE})) ?\( ?\Z")
_OPENED: Final = lazy_pattern(rf"(?P<before>\A|[^{BLANKS}]?{_BLANKS}*)\({_BLANKS}*\Z")
_CLOSED: Final = lazy_pattern(rf"{_BLANKS}*\)(?P<behind>{_BLANKS}*(?:[^{BLANKS}]|\Z))")
_LIKE_MONEY: Final = lazy_pattern(r",[0-9]{3}|[.,][0-9]{2}\Z")
_CODE_NUMBER: Final = lazy_pattern(r"0[0-9]")  # 007 is a code
_FIRST_GROUP: Final = lazy_pattern(r"[1-9][0-9]{0,2} [0-9]{3}(?![0-9A-Za-z])")
_NEXT_GROUP: Final = lazy_pattern(r"[0-9]{3}(?:[.,][0-9]+)?\Z")
_GROUP_BEFORE: Final = lazy_pattern(r"(?<![0-9A-Za-z.,])[0-9]{1,3} \Z")
_SPLIT_BEFORE: Final = lazy_pattern(r"(?<![0-9.,])[0-9]{1,3},\s{1,2}\Z")
_POINT_BEFORE: Final = lazy_pattern(r"[0-9] [.,] ?\Z")
_ALONE_BEFORE: Final = lazy_pattern(
    r"(?:[:=\uff1a|\t(]|\b(?:total|subtotal|sum|amount|balance|price|cost|net|gross|tax|vat|due|paid|montant|prix|solde"
    r"|t\.?t\.?c\.?|tva|summe|betrag|gesamt|netto|brutto|preis|importe|totale|importo|razem|kwota|suma|celkem|cena))\s{0,9}\Z",
    re.IGNORECASE,
)
"""What in front of ``1 448.60 EUR``, grouped by a common blank, rules out "1 piece at 448.60 EUR"."""
_NO_DIGIT: Final = lazy_pattern("[^0-9]+")
_ACCOUNT: Final = lazy_pattern(ACCOUNT)
_STRIDE: Final = 1000
"""How many numbers to read between two looks at whether the caller has given up."""


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number in a document, from offset `start` up to `end`.

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
    """Yield every number in a text that stands alone and can be read.

    Args:
        text: the document, as it is seen (`stepguard.documents.view`).
        decimal: its decimal separator; the other one of ``.`` and ``,`` may group thousands.
        wanted: only numbers for whose offset this is true; None: all.
        like: only numbers with the digits of this one, whatever power of ten they are multiplied by; None: all.

    Raises:
        Overrun: nobody waits for it any more.
    """
    # Comparing digits skips nearly every number of a long document before the costly look at its neighbours.
    digits = None if like is None else _NO_DIGIT.sub("", format_exact(exact(abs(Fraction(like))))).strip("0")
    accounts = [match.span() for match in _ACCOUNT.finditer(text)]
    for at, match in enumerate(_NUMBER.finditer(text)):
        if at % _STRIDE == 0:
            stop_if_given_up()
        if digits is not None and _NO_DIGIT.sub("", match["digits"]).strip("0") != digits:
            continue
        if wanted is not None and not wanted(match.start("digits")):
            continue
        near = bisect_right(accounts, (match.start("digits"), len(text))) - 1
        if near >= 0 and match.start("digits") < accounts[near][1]:
            continue
        found = _number_at(text, match, decimal)
        if found is not None:
            yield found


def _number_at(text: str, match: re.Match[str], decimal: Literal[".", ","]) -> FoundNumber | None:
    digits = match["digits"].rstrip(".,")
    cut = len(match["digits"]) - len(digits)
    front = _front(text, match)
    # `5.` ends a sentence, and the point is cut off; in front of an exponent it cannot be.
    if front is None or (cut and match["exponent"]) or _CODE_NUMBER.match(digits):
        return None
    grouped = " " in digits
    if not grouped and _in_blank_groups(text, match.start("digits"), digits):
        return None
    (start, negative), end = front, match.end("digits") - cut if cut else match.end()
    if cut and (no_cents := _NO_CENTS.match(text, end)) is not None:
        end = no_cents.end()
    back = _back(text, match, end)
    if back is None:
        return None
    scale, unit, end = back
    # Searched in a small window: from the start of the text each number would cost the whole document.
    if grouped and not (units_in_front(match) or (unit and _ALONE_BEFORE.search(text, max(start - 24, 0), start))):
        return None
    outer = start, end
    account = _ACCOUNT_BEFORE.search(text, max(start - 6, 0), start)
    if account is not None:  # $(1,204)
        if unit is not None or not account["sign"] or text[end : end + 2].lstrip()[:1] != ")" or match["sign"]:
            return None
        unit, negative = SIGNS[account["sign"]], True
    elif unit is None and (name := other_currency(text, start, end)):
        unit, outer = name.unit, (name.start, name.end)
    if not (
        text[end : end + 1] == RANGE and text[end + 1 : end + 2].isdigit()
    ) and (  # of 10\u201320 both ends stand there
        number_goes_on(text, end, money=unit not in (None, "%")) or joined_behind(text, end, unit=unit is not None)
    ):
        return None
    # `half of 10 EUR` names an amount that is not the one that is meant.
    if unit not in (None, "%") and shared_before(text, start):
        return None
    money = unit != "%" and (unit is not None or _LIKE_MONEY.search(digits) is not None)
    if money and _ends_split(text, match.start("digits"), digits):
        return None
    accounted = -1 if account else _accountants_sign(text, *outer, money=money)
    if accounted is None:
        return None
    # (-5) in brackets is -5 already, and not 5.
    if accounted < 0 and not (match["sign"] or match["inner"]):
        negative = True
    try:
        value = (
            Fraction(read_signed(digits.replace(" ", "\u00a0") + (match["exponent"] or ""), decimal, digits)) * scale
        )
    except ValueRefused:
        return None
    return FoundNumber(exact(-value if negative else value), unit, start, end)


def _front(text: str, match: re.Match[str]) -> tuple[int, bool] | None:
    """Where an amount begins and whether it is negative; None where what precedes it changes its meaning."""
    start, sign, marked = match.start(), match["sign"], bool(match["currency"] or match["code"])
    before = text[max(start - 1, 0) : start]
    if changed_before(text, start, match.start("digits")) or (match["inner"] and (sign or not marked)):
        return None
    if sign == RANGE and before.isdigit():  # 10\u201320: the end of a range is no negative number
        return start + 1, bool(match["inner"])
    if sign:
        return (start, sign != "+") if not before or may_be_signed(before) else None
    if (match["code"] and before == "-") or (
        joined_before(text, start) and (match["currency"] or not stands_glued(text, start))
    ):
        return None
    return start, bool(match["inner"])


def _back(text: str, match: re.Match[str], end: int) -> tuple[int, str | None, int] | None:
    """The scale and the unit of an amount, and where it ends; None where its units contradict each other."""
    behind = _AMOUNT_BACK.match(text, end)
    assert behind is not None
    # Between two numbers a unit may belong to either: it is the next one's where this one has its own in front.
    units = units_in_front(match)
    marked, followed = bool(units), _NEXT.match(text, behind.end()) is not None
    try:
        unit = one_unit(units + units_behind(behind), text)
    except ValueRefused:
        if not followed:
            return None
        unit = one_unit(units, text)  # what stands behind belongs to the next amount
    scale = scale_of(behind["scale"], money=unit not in (None, "%") and (marked or not followed))
    if scale is None:  # a letter is a scale of money, and else a unit or a name
        scale, unit = 1, one_unit(units, text)
    else:
        end = behind.end()
    if unit not in (None, "%") and (part := part_behind(text, end)):  # 99 US$ cents
        unit = part
    if unit in ("$", "\u00a5"):  # CAD $5
        written = _CODE_BEFORE.search(text, max(match.start() - 10, 0), match.start())
        unit = (
            written[1] if written and compatible(unit, written[1]) else country_beside(text, match.start(), end) or unit
        )
    return scale, unit, end


def _accountants_sign(text: str, start: int, end: int, *, money: bool) -> int | None:
    """The sign that brackets around an amount give it: -1 for a loss, 1 for none, None where nobody can say.

    Alone in a cell or on a line they do; in a sentence the aside ``(EUR 46.00)`` and the loss ``($1,204)`` look alike.
    """
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return None
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


def _ends_split(text: str, start: int, digits: str) -> bool:
    """Whether digits end an amount that a scanner split at its comma or point: ``1, 234.00``, ``5 . 25``."""
    window = text, max(start - 6, 0), start
    return bool((_NEXT_GROUP.match(digits) and _SPLIT_BEFORE.search(*window)) or _POINT_BEFORE.search(*window))


def _in_blank_groups(text: str, start: int, digits: str) -> bool:
    """Whether digits are part of ``1 234`` with a common blank, which is one number or two."""
    if _FIRST_GROUP.match(text, start):
        return True
    return _NEXT_GROUP.match(digits) is not None and _GROUP_BEFORE.search(text, max(start - 5, 0), start) is not None
