"""Values that stand in an expression of a procedure: ``2026-01-31``, ``14:30``, ``30 days``, ``500 EUR``, ``5 kg``."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from stepguard.errors import ExpressionError, ValueRefused
from stepguard.language.currencies import CODES
from stepguard.language.digits import exact
from stepguard.language.numerals import read_numeral
from stepguard.language.periods import read_period, read_time, read_timedelta
from stepguard.language.quantities import read_amount
from stepguard.language.terms.operands import LiteralTerm
from stepguard.language.value_types import ValueType

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
_MONEY: Final = re.compile(r"(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?) (?P<code>[A-Z]{3})")
_THOUSANDS: Final = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3} ")
# Before durations: months and years have no fixed length.
_CALENDAR: Final = re.compile(r"\b(?:months?|years?|(?:working|business) days?)\b", re.IGNORECASE)


def read_literal(text: str) -> LiteralTerm:
    """A date, a time, a duration, a period, an amount of money or an amount with a unit, as it stands in a procedure.

    A span in days, hours, minutes or seconds is a duration; one in months, years or working days a period.

    Raises ExpressionError: it is none of them.
    """
    plain = " ".join(text.split())
    money = _MONEY.fullmatch(plain)
    try:
        if _DATE.fullmatch(plain):
            try:
                return LiteralTerm(date.fromisoformat(plain))
            except ValueError:
                raise ValueRefused("there is no such day", text=plain) from None
        if _TIME.fullmatch(plain):
            return LiteralTerm(read_time(plain), plain)
        if money is not None and money["code"] in CODES:
            kind = ValueType(kind="money", currency=money["code"])
            if (kind.places or 0) < 3 and _THOUSANDS.match(plain):
                raise ValueRefused("its point may group thousands: leave it out, or write another place", text=plain)
            # More places than the currency has are kept: 0.015 EUR a minute.
            return LiteralTerm(exact(read_numeral(money["number"]).value), plain, kind)
        if _CALENDAR.search(plain):
            return LiteralTerm(read_period(plain), plain)
        try:
            return LiteralTerm(read_timedelta(plain), plain)
        except ValueRefused:  # a length, a weight ...
            pass
        amount = read_amount(plain)
        if amount.unit is None:
            raise ValueRefused("a number with its unit was expected", text=plain)
        return LiteralTerm(amount, plain)
    except ValueRefused as error:
        raise ExpressionError(f"no value that is known: {error.reason}", text=text, position=0) from None
