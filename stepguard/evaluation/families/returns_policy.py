"""The policy of `ReturnsDesk` in words, and the checks of the steps that only words describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from stepguard.language.values import Value, to_exact

POLICY: Final[Mapping[str, str]] = {
    "days": (
        "The days of a return are counted from the day of purchase, which is day 0: what is bought on 3 May and "
        "returned on 10 May has 7 days."
    ),
    "window": (
        "The return window is 14 days for a book, 30 for clothing, 21 for electronics and 45 for furniture; members "
        "have 10 days more."
    ),
    "in_time": "A return is in time if its days are not more than its window.",
    "rate": (
        "The refund rate is 100% for what is unopened, 80% for what is opened and 50% for what is damaged, except "
        "that opened electronics get 70%. For a return that is not in time, take 30 percentage points off."
    ),
    "size": (
        "A parcel of up to 2 kg is small, one of more than 20 kg is large, any other is medium, except that a parcel "
        "with a longest side of more than 120 cm is large whatever it weighs."
    ),
    "fee": (
        "The postage is 4.90 for a small parcel, 9.90 for a medium and 24.90 for a large one. Members pay half of "
        "it. For furniture 15.00 is added after that, for members, too."
    ),
    "refund": "The refund is the price times the refund rate, less the postage, rounded to the cent.",
    "total": "What is paid out so far is the total before this return and its refund.",
}
"""By step: the rule that it follows. All amounts are in USD."""


def follows_rule(claimed: Value, values: Mapping[str, Value], stage: str, reads: tuple[str, ...]) -> bool:
    """Whether a claimed value is what the policy's rule of a stage says about the values that it reads."""
    return _RULES[stage](claimed, *(values[name] for name in reads))


def _days(claimed: Value, bought: Value, returned: Value) -> bool:
    day = date.fromisoformat(str(bought)).toordinal() + int(to_exact(claimed))
    return day == date.fromisoformat(str(returned)).toordinal()


def _window(claimed: Value, item: Value, member: Value) -> bool:
    table = {("book", 14), ("clothing", 30), ("electronics", 21), ("furniture", 45)}
    return (item, int(to_exact(claimed)) - 10 * (member is True)) in table


def _rate(claimed: Value, item: Value, condition: Value, in_time: Value) -> bool:
    points = Fraction(to_exact(claimed)) * 100 + (0 if in_time is True else 30)
    match condition:
        case "unopened":
            return points == 100
        case "opened":
            return points == (70 if item == "electronics" else 80)
        case _:
            return points == 50


def _size(claimed: Value, weight: Value, longest: Value) -> bool:
    tenths = int(Fraction(to_exact(weight)) * 10)
    large = int(to_exact(longest)) > 120 or tenths > 200
    return claimed == ("large" if large else "medium" if tenths > 20 else "small")


def _fee(claimed: Value, size: Value, item: Value, member: Value) -> bool:
    paid = Decimal(str(claimed)) - (Decimal("15.00") if item == "furniture" else 0)
    whole = paid * 2 if member is True else paid
    return whole == {"small": Decimal("4.90"), "medium": Decimal("9.90"), "large": Decimal("24.90")}[str(size)]


_RULES: Final[Mapping[str, Callable[..., bool]]] = {
    "days": _days,
    "window": _window,
    "rate": _rate,
    "size": _size,
    "fee": _fee,
}
