"""Currencies: their ISO 4217 codes, how many decimal places their amounts have, and the signs written for them."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern

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
    "A$": "AUD", "C$": "CAD", "S$": "SGD", "NT$": "TWD",
    "€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₫": "VND", "₪": "ILS",
}  # fmt: skip
"""Sign -> code; ``"$"`` and ``"¥"`` stand for themselves, since several currencies are written so."""

WORDS: Final = {"dollars": "$", "dollar": "$", "euros": "EUR", "euro": "EUR", "pounds": "GBP"}
"""Name written behind an amount -> code or sign."""

WORD_CODES: Final = frozenset({
    "all", "bam", "bob", "cop", "cup", "gel", "lak", "mad", "mop", "pen", "rub", "sos", "top", "try",
})  # fmt: skip
"""Codes that are words where they are not capitals."""
CODE: Final = "|".join(sorted(CODES))
"""The codes, as a regular expression."""
SURE_CODE: Final = "|".join(sorted(CODES - {code.upper() for code in WORD_CODES}))
"""Those that are no words in capitals, such as ``TOP``."""
SIGN: Final = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True))
"""The signs, as a regular expression."""
_MARK: Final = lazy_pattern(
    rf"(?<![0-9A-Za-z_.,$])(?:({SIGN}) ?|([A-Z]{{3}}) )(?=[0-9.])"
    rf"|(?<=[0-9.]) ?(?:({SIGN})|([A-Z]{{3}})(?!\w)|(?<= )({'|'.join(WORDS)})(?!\w))(?! ?[0-9])"
)
_FRANCS: Final = "CHF BIF CDF DJF GNF KMF RWF XAF XOF XPF"
_RUPEES: Final = "INR PKR LKR NPR MUR SCR"
_RIALS: Final = "IRR OMR QAR SAR YER"
_NAMES: Final = {
    "$ ＄ ﹩ dollar dollars dólares dollari buck bucks": _DOLLARS, "¥ ￥": "JPY CNY",
    "euro euros 欧元 歐元 ユーロ 유로": "EUR", "美元 美金": "USD", "港元 港币 港幣": "HKD", "ドル 달러 弗": _DOLLARS,
    "￡ sterling quid": "GBP", "pound pounds pfund": "GBP EGP FKP LBP SDG SHP SSP SYP", "yen 円 日元 エン 엔": "JPY",
    "yuan renminbi rmb 元 块 块钱 人民币 人民幣": "CNY", "fr sfr franc francs franken": _FRANCS,
    "kr krona kronor krone kroner kronen": "SEK NOK DKK ISK", "kč koruna koruny korun crowns": "CZK",
    "zł zloty zlotys złoty złote złotych": "PLN", "₨ rs rupee rupees": _RUPEES, "rp rupiah": "IDR",
    "₱ peso pesos": "ARS CLP COP CUP DOP MXN PHP UYU", "руб рубль рубля рублей rouble roubles ruble rubles rubel":
    "RUB BYN", "₴ грн hryvnia hryvnias гривень гривна": "UAH",
    "лв лева лев": "BGN", "р": "RUB BYN", "евро євро ευρώ": "EUR", "доллар доллара долларов": _DOLLARS, "ريال": _RIALS,
    "درهم": "AED MAD", "دينار": "BHD DZD IQD JOD KWD LYD TND", "جنيه": "EGP SDG", "ksh kshs": "KES",
    "฿ baht บาท": "THB", "tl lira liras lire": "TRY", "shekel shekels": "ILS",
    "dirham dirhams dh dhs": "AED MAD", "﷼ rial rials riyal riyals": _RIALS,
    "dinar dinars": "BHD DZD IQD JOD KWD LYD MKD RSD TND",
    "ft forint": "HUF", "rand": "ZAR", "real reais": "BRL", "￦ won 원": "KRW KPW", "₦ naira": "NGN",
    "shilling shillings": "KES SOS TZS UGX", "leu lei": "RON MDL", "lev leva": "BGN", "rm ringgit": "MYR",
    "dong đồng đ": "VND", "৳ taka": "BDT", "₵ cedi cedis": "GHS", "₸ tenge": "KZT", "₡": "CRC", "₲": "PYG", "₼": "AZN",
    "₾": "GEL", "₮": "MNT", "₭": "LAK", "៛": "KHR", "؋": "AFN",
    "c ct cts cent cents eurocent eurocents centavos centimes céntimos p pence pennies penny rappen ore öre øre grosz "
    "groszy gr haléř haléře haléřů gbx usc коп kopeck kopecks kopeks paisa "
    "paise sen fils agorot kuruş btc bitcoin bitcoins eth ether usdc "
    "usdt": "",
}  # fmt: skip
"""Signs and names -> the currencies they can mean; parts of an amount, and what is no currency, mean none."""

PARTS: Final = (
    "cents?", "cts?", "c", "p", "pence", "penn(?:y|ies)", "centimes?", "centavos?", "rappen", "gro(?:sz|szy|schen)",
    "ko[bp]eck?s?", "paisa", "paise", "[öø]re", "fils", "piast(?:re|er)s?", "sen", "haléř[eů]?",
)  # fmt: skip
"""Parts of an amount as a small number stands in front of them: ``5 dollars 20 cents``."""

_OF: Final = {
    "us": "USD", "u.s.": "USD", "american": "USD", "canadian": "CAD", "australian": "AUD", "new zealand": "NZD",
    "nz": "NZD", "hong kong": "HKD", "hk": "HKD", "singapore": "SGD", "taiwan": "TWD", "swiss": "CHF",
    "schweizer": "CHF", "british": "GBP",
    "egyptian": "EGP", "lebanese": "LBP", "japanese": "JPY", "chinese": "CNY", "indian": "INR", "pakistani": "PKR",
    "mexican": "MXN", "argentine": "ARS", "chilean": "CLP", "colombian": "COP", "philippine": "PHP", "danish": "DKK",
    "norwegian": "NOK", "swedish": "SEK", "icelandic": "ISK", "czech": "CZK", "turkish": "TRY", "russian": "RUB",
    "brazilian": "BRL", "south african": "ZAR", "french": "", "belgian": "",
}  # fmt: skip
_COUNTRY: Final = re.compile(rf"\b({'|'.join(map(re.escape, _OF))}) \Z", re.IGNORECASE)
_SMALL_CODES: Final = frozenset(code.lower() for code in CODES) - WORD_CODES
# Category Sc by its ranges: to walk through all characters would make every import slow.
_ANY_SIGN: Final = "[$¢-¥֏؋߾߿৲৳৻૱௹฿៛\u20a0-\u20cf\ua838\ufdfc﹩＄￠￡￥￦]"
_GAP: Final = "[ \u00a0\u2009\u202f]?"
_WIDE: Final = "[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SHARED: Final = {name: frozenset(codes.split()) for names, codes in _NAMES.items() for name in names.split()}
_WIDE_NAMES: Final = "|".join(sorted((name for name in _SHARED if re.match(_WIDE, name)), key=len, reverse=True))
_FRONT: Final = lazy_pattern(
    rf"(?:(?P<wide>{_WIDE_NAMES})|(?<!\w)(?P<name>[^\W\d_]{{2,12}})\.?|(?P<sign>{_ANY_SIGN})){_GAP}\Z"
)
_IN_FRONT: Final = (
    frozenset({"rs", "kr", "fr", "sfr", "rm", "rp", "zł", "kč", "tl", "btc", "eth"})
    | frozenset(name for name in _SHARED if len(name) > 2 and name.isalpha())
    | _SMALL_CODES
) - {"won", "real", "rand", "sen", "lev", "ore", "cts", "crowns", "quid", "bucks", "buck", "dong"}
_BACK: Final = lazy_pattern(
    rf"{_GAP}(?:(?P<wide>{_WIDE_NAMES})|(?P<name>(?:(?!{_WIDE})[^\W\d_])+)(?![^\W{_WIDE[1:-1]}])"
    rf"|(?P<sign>{_ANY_SIGN})(?!{_GAP}[0-9]))"
)
_BACK_OF: Final = lazy_pattern(
    rf"{_GAP}(?P<of>{'|'.join(map(re.escape, _OF))})[ \u00a0-](?P<name>[^\W\d_]+)(?!\w)", re.IGNORECASE
)
_COUNTRY_BEHIND: Final = lazy_pattern(
    rf"[ (]{{1,2}}({'|'.join(map(re.escape, _OF))})(?:\)|(?=\s*(?:[.,;|\n]|\Z)))", re.IGNORECASE
)
_GLUED: Final = lazy_pattern(rf"(?<![\w-])(?:Rs\.?|RMB?|Rp\.?|Kr|{'|'.join(sorted(CODES))})\Z")
_FIRST_WORDS: Final = frozenset(re.split(r"\W", country)[0] for country in _OF)
_CAPITALIZED: Final = ("RM", "Rs", "Rp", "TL", "Kr", "kr")
_ALSO_WORDS: Final = frozenset({
    "buck", "bucks", "quid", "pfund", "fr", "kr", "krone", "kronen", "crowns", "rs", "rp", "peso", "tl", "ft", "rand",
    "real", "reais", "won", "lev", "leva", "lei", "leu", "rm", "dong", "pound", "sterling", "lire", "franc",
})  # fmt: skip
"""Names of currencies that are other words, too, where no amount stands beside them."""
_SPELLED: Final = sorted(
    (name for name, codes in _SHARED.items() if codes and name.isalpha() and not re.search(_WIDE, name)
     and name not in _ALSO_WORDS),
    key=len, reverse=True,
)  # fmt: skip
_RARE_SIGNS: Final = "".join(
    name for name, codes in _SHARED.items() if codes and len(name) == 1 and not name.isalnum() and name not in SIGNS
)
MARK: Final = (
    rf"(?:(?<![A-Za-z])|(?<=(?<![A-Za-z])[Tkm]))(?P<code>{SURE_CODE})(?!(?!(?:[kKmM]|mn|bn)(?!\w))[A-Za-z])|(?P<sign>{SIGN}|[{_RARE_SIGNS}])"
    rf"|(?<!\w)(?P<name>{'|'.join(_CAPITALIZED)}|(?i:{'|'.join(_SPELLED)}))(?!\w)"
    rf"|(?<!{_WIDE})(?P<wide>{_WIDE_NAMES})(?!{_WIDE})"
)
"""What says a currency apart from its amounts, in a head or in the next cell, as a regular expression; see `marked`."""


def minor_places(code: str) -> int:
    """How many decimal places amounts of a currency have. Raises KeyError: the code is not known."""
    return _PLACES[code]


def compatible(written: str, code: str) -> bool:
    """Whether what was written with an amount, a code or a sign of several currencies, can mean this currency."""
    return written == code or code in _SHARED.get(written, ())


def marked(match: re.Match[str]) -> str:
    """The currency, as `compatible` knows it, that a match of `MARK` says."""
    if sign := match["sign"]:
        return SIGNS.get(sign, sign)
    name = (match["name"] or match["wide"] or "").casefold()
    country = _COUNTRY.search(match.string, max(match.start() - 16, 0), match.start()) if match["name"] else None
    return match["code"] or (_OF[country[1].casefold()] if country is not None else "") or WORDS.get(name, name)


def without_currencies(text: str) -> tuple[str, frozenset[str]]:
    """Working without the currencies next to its amounts, and which they are; ``5 EUR`` cannot mean anything else."""
    found: set[str] = set()

    def taken(mark: re.Match[str]) -> str:
        unit = _unit_of(mark)
        if unit is None:
            return mark[0]
        found.add(unit)
        return " "  # so that nothing grows together

    return _MARK.sub(taken, text), frozenset(found)


def with_currencies_as(name: str, units: Container[str], text: str) -> str:
    """Working in which every amount in one of some currencies is multiplied by a name, and others lose theirs."""

    def taken(mark: re.Match[str]) -> str:
        unit = _unit_of(mark)
        if unit is None or unit not in units:
            return mark[0] if unit is None else " "
        return f" {name} * " if mark[1] or mark[2] else f" * {name} "

    return _MARK.sub(taken, text)


def _unit_of(mark: re.Match[str]) -> str | None:
    before, code, behind, code_behind, word = mark.groups()
    sign = before or behind
    unit = SIGNS[sign] if sign else WORDS[word] if word else code or code_behind
    return unit if unit in CODES or unit in ("$", "¥") else None


@dataclass(frozen=True, slots=True)
class NamedCurrency:
    """What says in which currency an amount is: `compatible` knows what `unit` can mean.

    `start` and `end` are those of the amount with its name.
    """

    unit: str
    start: int
    end: int


def other_currency(text: str, start: int, end: int) -> NamedCurrency | None:
    """What else than its codes and usual signs says in which currency an amount in a text is; None where nothing does.

    Names (``yen``), parts (``cents``), small letters (``eur``) and rare signs.
    """
    front = _FRONT.search(text, max(start - 15, 0), start)
    if front is not None and (not front["name"] or front["name"].casefold() in _IN_FRONT):
        return NamedCurrency(country_beside(text, front.start(), end) or _code_of_mark(front), front.start(), end)
    back = _BACK.match(text, end)
    if back is None:
        return None
    name = (back["name"] or "").casefold()
    if not name or name in _SHARED or name in _SMALL_CODES:
        return NamedCurrency(country_beside(text, start, back.end()) or _code_of_mark(back), start, back.end())
    longer = _BACK_OF.match(text, end) if name in _FIRST_WORDS else None
    if longer is None or longer["name"].casefold() not in _SHARED:
        return None
    country, name = longer["of"].casefold(), longer["name"].casefold()
    return NamedCurrency((_OF[country] if _SHARED[name] else "") or f"{country} {name}", start, longer.end())


def country_beside(text: str, start: int, end: int) -> str | None:
    """The currency of the country named beside an amount with its currency: ``Canadian $5``, ``$5 (Canadian)``."""
    country = _COUNTRY.search(text, max(start - 16, 0), start) or _COUNTRY_BEHIND.match(text, end)
    return None if country is None else _OF[country[1].casefold()] or None


def stands_glued(text: str, start: int) -> bool:
    """Whether right in front of an amount its currency stands in capitals: ``EUR5``, ``RM60.30``."""
    front = _GLUED.search(text, max(start - 6, 0), start)
    return front is not None and front[0].rstrip(".").lower() not in WORD_CODES


def part_behind(text: str, end: int) -> str | None:
    """The name of a part of a currency that stands behind the currency of an amount: ``99 euro cents``."""
    back = _BACK.match(text, end + (text[end : end + 1] == "-"))
    name = "" if back is None or not back["name"] else back["name"].casefold()
    return name if len(name) > 1 and _SHARED.get(name) == frozenset() else None


def _code_of_mark(mark: re.Match[str]) -> str:
    if sign := mark["sign"]:
        return SIGNS.get(sign, sign)
    if mark["wide"]:
        return mark["wide"]
    name = "gbx" if mark["name"] == "GBp" else mark["name"].casefold()
    return name if name in _SHARED else name.upper()
