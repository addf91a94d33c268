"""Numbers written with a decimal comma, rewritten with a decimal point, and back.

Only what can be read in one way is rewritten: in ``1.234,5`` the point groups thousands, ``1.23`` and ``1,234.5`` are
refused.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.numerals import read_numeral

_NUMBER: Final = lazy_pattern(r"[0-9](?:[0-9.,]*[0-9])?")
_POINT: Final = lazy_pattern(r"(?<=[0-9])\.(?=[0-9])")


def with_point(text: str) -> str:
    """Working or a value with decimal commas, as it would be written with points; ``;`` separates arguments.

    Raises ValueRefused: a number in it has no reading with a decimal comma.
    """
    # With its blank the comma cannot group digits: `1;234` is no number.
    return _NUMBER.sub(_rewritten, text).replace(";", ", ")


def with_comma(text: str) -> str:
    """Working or a value with decimal points and no grouping, as it would be written with commas."""
    return _POINT.sub(",", text)


def _rewritten(found: re.Match[str]) -> str:
    digits = found[0]
    if digits.isdecimal():
        return digits
    read_numeral(digits, decimal=",")  # refuses what is grouped wrongly
    return digits.replace(".", "").replace(",", ".")
