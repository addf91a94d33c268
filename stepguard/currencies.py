"""Currencies: their ISO 4217 codes, how many decimal places their amounts have, and the signs written for them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CODES", "SIGNS", "WORDS", "compatible", "minor_places", "without_currencies"]

_TWO_PLACES: Final = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC
    CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES
    KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR
    NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT
    TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW
"""
_NO_PLACES: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE_PLACES: Final = "BHD IQD JOD KWD LYD OMR TND"
_DOLLARS: Final = """
    USD ARS AUD BBD BMD BND BSD BZD CAD CLP COP DOP FJD GYD HKD JMD KYD LRD MXN NAD NZD SBD SGD SRD TTD TWD UYU XCD
"""
_PLACES: Final = {
    code: places for places, codes in ((2, _TWO_PLACES), (0, _NO_PLACES), (3, _THREE_PLACES)) for code in codes.split()
}

CODES: Final = frozenset(_PLACES)
"""The codes that are known."""

SIGNS: Final = {
    "$": "$", "\\$": "$", "US$": "USD", "CA$": "CAD", "AU$": "AUD", "NZ$": "NZD", "HK$": "HKD", "R$": "BRL",
    "€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₫": "VND", "₪": "ILS",
}  # fmt: skip
"""Sign -> code; ``"$"`` and ``"¥"`` stand for themselves, since several currencies are written so."""

WORDS: Final = {"dollars": "$", "dollar": "$", "euros": "EUR", "euro": "EUR", "pounds": "GBP"}
"""Name written behind an amount -> code or sign."""

_SIGN: Final = "|".join(map(re.escape, SIGNS))  # none begins with another
_MARK: Final = re.compile(
    rf"(?<![0-9A-Za-z_.,$])(?:({_SIGN}) ?|([A-Z]{{3}}) )(?=[0-9.])"
    rf"|(?<=[0-9.]) ?(?:({_SIGN})|([A-Z]{{3}})(?!\w)|(?<= )({'|'.join(WORDS)})(?!\w))(?! ?[0-9])"
)
_SHARED: Final = {"$": frozenset(_DOLLARS.split()), "¥": frozenset({"JPY", "CNY"})}


def minor_places(code: str) -> int:
    """How many decimal places amounts of a currency have.

    Raises:
        KeyError: the code is not known.
    """
    return _PLACES[code]


def compatible(written: str, code: str) -> bool:
    """Whether what was written with an amount, a code or a sign of several currencies, can mean this currency."""
    return written == code or code in _SHARED.get(written, ())


def without_currencies(text: str) -> tuple[str, frozenset[str]]:
    """Working without the currencies next to its amounts, and which they are; ``5 EUR`` cannot mean anything else."""
    found: set[str] = set()

    def taken(mark: re.Match[str]) -> str:
        before, code, behind, code_behind, word = mark.groups()
        sign = before or behind
        unit = SIGNS[sign] if sign else WORDS[word] if word else code or code_behind
        if unit not in CODES and unit not in _SHARED:
            return mark[0]
        found.add(unit)
        return " "  # so that nothing grows together

    return _MARK.sub(taken, text), frozenset(found)
