"""Names of units and the prefixes that each may have: a list, so that no prefix is ever guessed off a word.

``Min`` is a minute and no mega-inch, ``Mb`` a megabit, ``kilos`` are kilograms, and ``units`` are no unit. What can be
read in more than one way (``kb``, ``pc``, ``bbl``, ``Cal``, ``U``) is none; a check can declare units of its own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

Factors = tuple[tuple[str, int], ...]
"""The names that a library of units has for a unit's factors, each with its exponent."""

_PREFIXES: Final = {
    "Y": "yotta", "Z": "zetta", "E": "exa", "P": "peta", "T": "tera", "G": "giga", "M": "mega", "k": "kilo",
    "h": "hecto", "da": "deca", "d": "deci", "c": "centi", "m": "milli", "µ": "micro", "μ": "micro", "u": "micro",
    "n": "nano", "p": "pico", "f": "femto", "a": "atto", "Ki": "kibi", "Mi": "mebi", "Gi": "gibi", "Ti": "tebi",
}  # fmt: skip
_SMALL: Final = "m µ μ u n p f"
_LARGE: Final = "k M G T"
_SYMBOLS: Final = {  # symbol -> name, and the prefixes that it is usually written with
    "m": ("meter", f"G M k h da d c {_SMALL}"), "g": ("gram", f"G M k h da d c {_SMALL}"),
    "s": ("second", f"{_SMALL} a"),
    "A": ("ampere", f"M k {_SMALL}"), "K": ("kelvin", f"k {_SMALL}"), "mol": ("mole", f"k {_SMALL}"),
    "cd": ("candela", "k m"), "Hz": ("hertz", f"{_LARGE} m µ μ"), "N": ("newton", f"M k {_SMALL}"),
    "Pa": ("pascal", f"G M k h {_SMALL}"), "J": ("joule", f"E P {_LARGE} {_SMALL}"),
    "W": ("watt", f"P {_LARGE} {_SMALL}"),
    "C": ("coulomb", f"M k {_SMALL}"), "V": ("volt", f"G M k {_SMALL}"), "F": ("farad", f"{_SMALL} a"),
    "Ω": ("ohm", f"G M k {_SMALL}"), "ohm": ("ohm", "G M k m"), "S": ("siemens", f"k {_SMALL}"),
    "Wb": ("weber", _SMALL), "T": ("tesla", _SMALL), "H": ("henry", _SMALL), "lm": ("lumen", "k m"),
    "lx": ("lux", "k m"), "Bq": ("becquerel", f"P {_LARGE} {_SMALL}"), "Gy": ("gray", f"k c {_SMALL}"),
    "Sv": ("sievert", _SMALL), "kat": ("katal", _SMALL), "L": ("liter", f"G M k h da d c {_SMALL}"),
    "l": ("liter", f"G M k h da d c {_SMALL}"), "t": ("metric_ton", "k M G"),
    "eV": ("electron_volt", f"P {_LARGE} m µ μ"),
    "bar": ("bar", "k M m"), "cal": ("calorie", "k M"), "bit": ("bit", f"P {_LARGE} Ki Mi Gi Ti"),
    "B": ("byte", f"E P {_LARGE} Ki Mi Gi Ti"), "Da": ("dalton", "k M G"),
    "pc": ("parsec", "k M G"), "Ci": ("curie", f"k M {_SMALL}"), "dyn": ("dyne", ""), "erg": ("erg", ""),
    "P": ("poise", "c m"), "St": ("stokes", "c"), "VA": ("volt_ampere", "k M G m"), "dB": ("decibel", ""),
    "dBm": ("decibelmilliwatt", ""), "rad": ("radian", "m µ μ"), "sr": ("steradian", "m"), "deg": ("degree", ""),
    "degree": ("degree", ""), "arcmin": ("arcminute", ""), "arcsec": ("arcsecond", "m µ μ"),
    "degC": ("degree_Celsius", ""),
    "degF": ("degree_Fahrenheit", ""), "kelvin": ("kelvin", ""), "rev": ("turn", ""), "Å": ("angstrom", ""),
    "au": ("astronomical_unit", ""), "AU": ("astronomical_unit", ""), "ly": ("light_year", ""), "h": ("hour", ""),
    "hr": ("hour", ""), "hrs": ("hour", ""), "Hr": ("hour", ""), "Hrs": ("hour", ""), "min": ("minute", ""),
    "mins": ("minute", ""), "Min": ("minute", ""), "Mins": ("minute", ""), "sec": ("second", ""),
    "secs": ("second", ""),
    "Sec": ("second", ""), "Secs": ("second", ""), "d": ("day", ""), "wk": ("week", ""), "wks": ("week", ""),
    "yr": ("year", "k M G"), "yrs": ("year", ""), "in": ("inch", ""), "ft": ("foot", ""), "yd": ("yard", ""),
    "yds": ("yard", ""), "mi": ("mile", ""), "nmi": ("nautical_mile", ""), "ha": ("hectare", ""),
    "gal": ("gallon", ""), "qt": ("quart", ""), "floz": ("fluid_ounce", ""),
    "tbsp": ("tablespoon", ""),
    "tsp": ("teaspoon", ""), "lb": ("pound", ""), "lbs": ("pound", ""), "oz": ("ounce", ""),
    "cwt": ("hundredweight", ""),
    "lbf": ("force_pound", ""), "kgf": ("force_kilogram", ""), "psi": ("pound_force_per_square_inch", "k"),
    "atm": ("standard_atmosphere", ""), "mmHg": ("millimeter_Hg", ""), "inHg": ("inch_Hg", ""), "Torr": ("torr", "m"),
    "torr": ("torr", "m"), "BTU": ("british_thermal_unit", ""), "Btu": ("british_thermal_unit", ""),
    "hp": ("horsepower", ""), "kn": ("knot", ""), "ppm": ("ppm", ""), "px": ("pixel", ""),
    "Bd": ("baud", ""), "Oe": ("oersted", ""), "Mx": ("maxwell", ""), "acre": ("acre", ""),
}  # fmt: skip
_PREFIXED_WORDS: Final = {  # words that may have a prefix in full
    "meter": "meter metre", "gram": "gram gramme", "second": "second", "ampere": "ampere amp", "kelvin": "kelvin",
    "mole": "mole", "candela": "candela", "hertz": "hertz", "newton": "newton", "pascal": "pascal", "joule": "joule",
    "watt": "watt", "coulomb": "coulomb", "volt": "volt", "farad": "farad", "ohm": "ohm", "siemens": "siemens",
    "weber": "weber", "tesla": "tesla", "henry": "henry", "lumen": "lumen", "lux": "lux", "becquerel": "becquerel",
    "gray": "gray", "sievert": "sievert", "katal": "katal", "liter": "liter litre", "bit": "bit", "byte": "byte",
    "calorie": "calorie", "bar": "bar", "electron_volt": "electronvolt", "metric_ton": "tonne", "parsec": "parsec",
    "poise": "poise", "stokes": "stokes", "curie": "curie", "dalton": "dalton", "molar": "molar", "radian": "radian",
}  # fmt: skip
_WORDS: Final = {
    "hour": "hour", "minute": "minute", "day": "day", "week": "week", "fortnight": "fortnight", "month": "month",
    "year": "year", "decade": "decade", "century": "century", "inch": "inch", "foot": "foot", "yard": "yard",
    "mile": "mile", "fathom": "fathom", "furlong": "furlong", "angstrom": "angstrom", "micron": "micron",
    "hectare": "hectare", "acre": "acre", "barn": "barn", "gallon": "gallon", "quart": "quart", "pint": "pint",
    "cup": "cup", "tablespoon": "tablespoon", "teaspoon": "teaspoon", "gill": "gill", "pound": "pound",
    "ounce": "ounce",
    "stone": "stone", "grain": "grain", "carat": "carat", "ton": "ton", "hundredweight": "hundredweight",
    "slug": "slug", "atmosphere": "standard_atmosphere", "horsepower": "horsepower", "knot": "knot", "dyne": "dyne",
    "degree": "degree", "turn": "turn", "revolution": "turn", "arcminute": "arcminute", "arcsecond": "arcsecond",
    "steradian": "steradian", "celsius": "degree_Celsius", "fahrenheit": "degree_Fahrenheit", "pixel": "pixel",
    "kilo": "kilogram", "therm": "therm", "gauss": "gauss", "oersted": "oersted", "decibel": "decibel",
    "baud": "baud",
    "count": "count", "fluidounce": "fluid_ounce", "metricton": "metric_ton", "longton": "long_ton",
    "parsec": "parsec",
    "nauticalmile": "nautical_mile", "lightyear": "light_year", "troyounce": "troy_ounce",
    "imperialgallon": "imperial_gallon", "poundpersquareinch": "pound_force_per_square_inch",
}  # fmt: skip
_PLURALS: Final = {"foot": "feet", "inch": "inches", "century": "centuries", "henry": "henries"}
_PRODUCTS: Final[dict[str, Factors]] = {
    **dict.fromkeys(("mph", "MPH"), (("hour", -1), ("mile", 1))),
    **dict.fromkeys(("kph", "kmh", "kmph"), (("hour", -1), ("kilometer", 1))),
    "cc": (("centimeter", 3),),
    "sqft": (("foot", 2),),
    "ccm": (("centimeter", 3),),
    **dict.fromkeys(("rpm", "RPM"), (("minute", -1), ("turn", 1))),
    **{f"{prefix}Wh": (("hour", 1), (f"{name}watt", 1)) for prefix, name in _PREFIXES.items() if prefix in "kMGTm"},
    "Wh": (("hour", 1), ("watt", 1)),
    "Ah": (("ampere", 1), ("hour", 1)),
    "mAh": (("hour", 1), ("milliampere", 1)),
    **{f"{prefix}M": (("liter", -1), (f"{name}mole", 1)) for prefix, name in _PREFIXES.items() if prefix in "mµμunp"},
    "M": (("liter", -1), ("mole", 1)),
    **{f"{prefix}bps": ((f"{name}bit", 1), ("second", -1)) for prefix, name in _PREFIXES.items() if prefix in "kMGT"},
}
"""Names of products: a `kWh` is the same unit as a `kW*h`."""
_AMBIGUOUS: Final = ("pH", "kt", "pc", "P", "fl", "Gm")
"""What the lists above give and what usually means something else: acidity, knots, pieces, fluid, grams."""
_SHORT_PLURALS: Final = {
    "microgram": "mcg", "kilobyte": "KB", "kilogram": "kgs", "gram": "gm gms", "milligram": "mgs", "milliliter": "mls",
    "kilometer": "kms", "ounce": "ozs", "teaspoon": "tsps", "tablespoon": "tbsps",
    "pound_force_per_square_inch": "PSI",
}  # fmt: skip
_BITS: Final = {f"{prefix}b": f"{_PREFIXES[prefix]}bit" for prefix in "MGT"}

PHRASES: Final = tuple(
    (re.compile(rf"(?<![A-Za-z]){pattern}(?![A-Za-z])", re.IGNORECASE), name)
    for pattern, name in (
        (r"fl(?:uid|\.)?[ -]?(?:oz\.?|ounces?)", "fluidounce"),
        (r"metric[ -](?:tons?|tonnes?)", "metricton"),
        (r"short[ -]tons?", "ton"),
        (r"long[ -]tons?", "longton"),
        (r"nautical[ -]miles?", "nauticalmile"),
        (r"light[ -]years?", "lightyear"),
        (r"mm[ -]Hg", "mmHg"),
        (r"in(?:ch(?:es)?)?[ -]Hg", "inHg"),
        # A torque or an energy, of a pound as a force.
        (r"(?:foot|feet|ft)[ ·-](?:pounds?|lbs?)", "ft*lbf"),
        (r"(?:inch|in)[ ·-](?:pounds?|lbs?)", "in*lbf"),
        (r"troy[ -](?:ounces?|oz)", "troyounce"),
        (r"imp(?:erial|\.)?[ -]gal(?:lons?)?", "imperialgallon"),
        (r"u\.?s\.?[ -]gal(?:lons?)?", "gallon"),
        (r"(?:pounds?|lbs?)[ -]per[ -](?:square[ -]inch|sq\.?[ -]in(?:ch)?)", "poundpersquareinch"),
    )
)
"""Names of several words, each with the one word that stands for it in the list."""


@cache
def _table() -> dict[str, Factors]:
    table: dict[str, Factors] = {}
    for symbol, (name, prefixes) in _SYMBOLS.items():
        table[symbol] = ((name, 1),)
        for prefix in prefixes.split():
            table[prefix + symbol] = ((_PREFIXES[prefix] + name, 1),)
    words = {**_WORDS, **{word: name for name, words in _PREFIXED_WORDS.items() for word in words.split()}}
    for name, spellings in _PREFIXED_WORDS.items():
        for word in spellings.split():
            words |= {prefix + word: prefix + name for prefix in set(_PREFIXES.values())}
    for word, name in words.items():
        table.setdefault(word, ((name, 1),))
        table.setdefault(_PLURALS.get(word, f"{word}s"), ((name, 1),))
    table |= {spelling: ((name, 1),) for name, spellings in _SHORT_PLURALS.items() for spelling in spellings.split()}
    table |= {spelling: ((name, 1),) for spelling, name in _BITS.items()}
    for name in _AMBIGUOUS:
        del table[name]
    return table | _PRODUCTS


def factors_of(name: str) -> Factors | None:
    """The factors that a name stands for, None where it is no unit.

    A longer word may begin with a capital, but for a prefix that another one is told from by it: ``Mmol``.
    """
    table = _table()
    found = table.get(name)
    if found is None and len(name) > 3 and name[1:].islower():
        found = table.get(name.lower())
        prefix = _PREFIXES.get(name[0].lower(), name) if name[0] in _PREFIXES else name
        if found is not None and found[0][0].startswith(prefix) and not name.lower().startswith(prefix):
            return None
    return found


def symbol_of(factor: str) -> str:
    """The shortest way to write a factor that `factors_of` gives: ``kg`` for ``kilogram``."""
    return _symbols().get(factor, factor)


@cache
def _symbols() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, factors in _table().items():
        if len(factors) == 1 and factors[0][1] == 1 and len(name) < len(found.get(factors[0][0], f"{name} ")):
            found[factors[0][0]] = name
    return found | {"degree_Celsius": "°C", "degree_Fahrenheit": "°F"}
