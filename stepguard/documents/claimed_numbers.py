"""Whether a number of a document is the one that is claimed: what its layout says of its currency and its scale."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from stepguard.documents.currency_layout import DocumentCurrencies, currencies_apart
from stepguard.documents.tables import Head, Heads
from stepguard.language.currencies import compatible
from stepguard.language.digits import Exact
from stepguard.language.prose.amounts import FoundNumber


class NumberLayout:
    """What the layout of a text says of its numbers."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._heads = Heads(text)
        self._bare: tuple[frozenset[str], ...] | None = None

    def heads_of(self, found: FoundNumber, *, money: bool) -> tuple[Head, ...]:
        """What is said of a number: the nearest says it, on its line, in a head, on the next lines, or anywhere."""
        above = self._heads.of(found.start, found.end)
        said = currencies_apart(self._text, found.start, found.end, across=False)
        if not said and any(head.currencies for head in above):
            return above
        said = said or currencies_apart(self._text, found.start, found.end)
        if money and found.unit is None and not said and not any(head.percent for head in above):
            if self._bare is None:
                self._bare = DocumentCurrencies.read(self._text).of_bare_amounts
            powers = above or (Head(),)
            return tuple(replace(head, currencies=named) for head in powers for named in self._bare)
        return tuple(replace(head, currencies=said or head.currencies) for head in above or (Head(),))


def is_claimed(found: FoundNumber, number: Exact, unit: str | None, heads: tuple[Head, ...]) -> bool:
    """Whether a number of the document is the claimed one, with the unit that the claim or its type has.

    `heads` are those that may be meant for it; where they contradict each other, every one has to allow it.
    """
    return all(_is_number(found, number, unit, head) for head in heads)


def _is_number(found: FoundNumber, number: Exact, unit: str | None, head: Head) -> bool:
    own = found.unit is not None  # what stands at the number itself counts more
    value = found.value
    if unit == "%":
        if found.unit == "%" or (head.percent and not own):
            return Fraction(value, 100) == number
        return not own and not head.currencies and value == number
    if unit is not None:
        if not own and (head.percent or not _may_be(head.currencies, unit)):
            return False
        narrowed = [
            currency for currency in head.currencies if found.unit in ("$", "¥") and compatible(found.unit, currency)
        ]
        same = not own or compatible(found.unit or "", unit) or compatible(unit, found.unit or "")
        return same and _may_be(frozenset(narrowed), unit) and value * 10**head.power == number
    scaled = value * 10**head.power == number and found.unit != "%"
    return value == number or scaled or (found.unit == "%" and Fraction(value, 100) == number)


def _may_be(currencies: frozenset[str], unit: str) -> bool:
    return not currencies or any(compatible(currency, unit) or compatible(unit, currency) for currency in currencies)
