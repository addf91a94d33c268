"""Numbers with units as people and models write them, and exact conversion between units.

The number is read by `stepguard.language.numerals`, the unit by a small grammar of its own with a list of names
(`stepguard.language.unit_names`); only conversion is left to pint (``pip install "stepguard[units]"``), whose own
parser would compute whatever stands there and guess prefixes::

    5 km    5km    1,234.5 kg*m/s^2    1.2e3 m²    3/4 mile    20 °C    5 N·m

A unit is a product of names, each with a whole exponent from -9 to 9; behind a ``/`` stands one name, or several in
brackets. Names are case-sensitive, as units are (``mW`` and ``MW``), and stand for what pint says: a ``gallon`` is that
of the United States, a ``ton`` is short and a ``t`` metric, ``C`` is coulomb and ``°C`` a temperature.

Conversion is exact, in fractions: an inch is 2.54 cm, 77 °F is 25 °C. What has no exact or no linear conversion is
refused: units on a logarithmic scale (dB), months and years, whose length is a convention. An angle in radians is as
exact as pint's pi, which has 50 digits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, Final

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ConfigError, MissingExtraError, ValueRefused
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.numerals import read_numeral
from stepguard.language.unit_names import PHRASES, factors_of, symbol_of

_MAX_TEXT: Final = 200
_MAX_NUMBER: Final = 10**60  # factors between units are exact fractions, and grow with it
MAX_FACTORS: Final = 8
MAX_EXPONENT: Final = 9
"""How many factors a unit may have, and the power of one: what is read is what may be computed."""
_OF_BLOOD: Final = (("millimeter_Hg", 1),)
"""A unit in which two numbers with a slash are a pair: 120/80 mmHg."""
_PAIR: Final = lazy_pattern(r"[-+]? ?[0-9.,]+ ?/ ?[0-9.,]+")  # of blood pressure, 120/80 is no fraction
_NAME: Final = r"[A-Za-zµμΩ°℃℉Åℓ][A-Za-zµμΩ]{0,39}"
_FACTOR: Final = lazy_pattern(
    rf"(?P<name>{_NAME})(?:(?:\^|\*\*)\(?(?P<exponent>[-+]?[0-9])\)?|(?P<raised>[⁻⁺]?[¹²³⁴-⁹])|(?P<digit>[23]))?(?![0-9⁰¹²³⁴-⁹])"
)
# A blank or a hyphen is a product as well: `N m`, `foot-pound`.
_OPERATOR: Final = lazy_pattern(r" ?[*·⋅×] ?| ?/ ?|[ \u00a0]|-(?=[A-Za-z])")
_UNIT_START: Final = lazy_pattern(r"[A-Za-zµμΩ°º˚℃℉Åℓ]")
_SUPERSCRIPT: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_CALENDAR: Final = lazy_pattern(r"(?<!light_)year|month|decade|century|millenn")  # a light-year is a length
_SIGNS: Final = {"℃": "degC", "℉": "degF", "°": "degree", "ℓ": "l", "Ohm": "ohm"}
_POWER_WORD: Final = lazy_pattern(rf"\b(square|sq|cubic|cu)\.? ({_NAME})", re.IGNORECASE)
# Before names: C, F and K alone are other units.
_DEGREES: Final = lazy_pattern(
    r"(?:[°º˚]|\bdeg(?:rees?|\.)?) ?(C|F|K)(?:elsius|ahrenheit|elvin)?(?![A-Za-z])", re.IGNORECASE
)
_TORQUE: Final = lazy_pattern(r"(?<![A-Za-z])([kMm]?N)m(?![A-Za-z])")
"""Newton metres, where pint sees a number of threads."""
_AROUND: Final = " \t\r\n`*"

Unit = tuple[tuple[str, int], ...]
"""A unit: the names of its factors as pint has them, sorted, each with its exponent."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and the unit written with it, None where there is none."""

    value: Exact
    unit: Unit | None

    def __str__(self) -> str:
        return format_exact(self.value) if self.unit is None else f"{format_exact(self.value)} {show_unit(self.unit)}"


def show_unit(unit: Unit) -> str:
    """A unit as text."""
    names = ((name.strip("'"), exponent) for name, exponent in unit)
    return " ".join(name if exponent == 1 else f"{name}^{exponent}" for name, exponent in names)


def write_unit(unit: Unit, *, quote: str = "") -> str:
    """A unit as `read_unit` reads it: ``kg``, ``mol/l``, ``kg*m/s^2``; a declared name stands between `quote`."""
    sides: tuple[list[str], list[str]] = ([], [])
    for name, exponent in unit:
        symbol = name.replace("'", quote) if name.startswith("'") else symbol_of(name)
        sides[exponent < 0].append(symbol if abs(exponent) == 1 else f"{symbol}^{abs(exponent)}")
    above, below = ("*".join(side) for side in sides)
    if not above:  # a unit begins with a name
        return "*".join(f"{part}^-1" if "^" not in part else part.replace("^", "^-") for part in sides[1])
    if not below:
        return above
    return f"{above}/({below})" if len(sides[1]) > 1 else f"{above}/{below}"


def write_amount(amount: Amount) -> str:
    """An amount as `read_amount` reads it."""
    number = format_exact(amount.value)
    return number if amount.unit is None else f"{number} {write_unit(amount.unit)}".rstrip()


def same_unit(unit: Unit, other: Unit) -> bool:
    """Whether two units are one under two names: a cubic centimetre and a millilitre are."""
    return _comparable(unit) == _comparable(other)


def _comparable(unit: Unit) -> Unit:
    return (("milliliter", 1),) if unit == (("centimeter", 3),) else unit


@cache
def _registry() -> Any:
    try:
        pint = import_module("pint")
    except ImportError as error:
        raise MissingExtraError("reading units", extra="units") from error
    # Fractions keep every conversion exact; with floats a kilometre has 999.9999999999999 m in places.
    registry = pint.UnitRegistry(non_int_type=Fraction, on_redefinition="ignore")
    # To pint they are of the survey foot, which was given up in 2022: 8 furlongs would be no mile.
    for definition in ("acre = 4840 * yard ** 2", "fathom = 2 * yard", "furlong = 220 * yard"):
        registry.define(definition)
    return registry


def require_units() -> None:
    """Raise `MissingExtraError` unless units can be read."""
    _registry()


def read_amount(text: str, *, bare: Unit | None = None, declared: Collection[str] = ()) -> Amount:
    """Read one number and its unit, if it has one.

    Args:
        bare: the unit that a number without one is meant in.
        declared: further names of units (see `read_unit`).

    Raises:
        ValueRefused: there is no such number or unit, or there is more than one of them.
        MissingExtraError: pint is not installed.
    """
    if len(text) > _MAX_TEXT:
        raise ValueRefused(f"too long for an amount ({len(text)} characters)", text=text)
    body = text.strip(_AROUND)
    if len(body) > 2 and body[0] == body[-1] and body[0] in "\"'":  # a single one at the end is inches or feet
        body = body[1:-1].strip(_AROUND)
    body = body.removesuffix(".")
    # The number is as long as can be: in `5e3 m` it is 5e3, although `e` is a unit, too.
    for match in reversed([None, *_UNIT_START.finditer(body)]):
        head, tail = (body, None) if match is None else (body[: match.start()], body[match.start() :])
        try:
            amount = Amount(_number(head.rstrip(), text), None if tail is None else read_unit(tail, declared=declared))
        except ValueRefused:
            continue
        # 120/80 is a fraction to the reader of numbers; only with the unit is it known to be a blood pressure.
        check_pair(head, amount.value, amount.unit or bare)
        return amount
    # Nothing fits: reading with the usual cut, at the first letter, raises the most helpful reason.
    first = _UNIT_START.search(body)
    _number(body if first is None else body[: first.start()].rstrip(), text)
    assert first is not None
    read_unit(body[first.start() :], declared=declared)
    raise ValueRefused("one number and its unit were expected, such as 5 km", text=text)


def check_pair(text: str, value: Exact, unit: Unit | None) -> None:
    """Refuse a pair of blood pressures, 120/80, that would be read as a fraction in mmHg.

    Raises ValueRefused: it may be two pressures.
    """
    if unit == _OF_BLOOD and abs(Fraction(value)) >= 1 and _PAIR.fullmatch(text.strip(_AROUND)):
        raise ValueRefused("two pressures, or an improper fraction: write 1.5 mmHg for 3/2 mmHg", text=text.strip())


def _number(text: str, whole: str) -> Exact:
    numeral = read_numeral(text)
    if numeral.unit is not None:
        raise ValueRefused(f"an amount with a unit was expected, found {numeral.unit}", text=whole)
    value = Fraction(numeral.value)
    if max(abs(value.numerator), value.denominator) > _MAX_NUMBER:
        raise ValueRefused("the number is too large, or has too many digits", text=whole)
    return exact(value)


def read_unit(text: str, *, declared: Collection[str] = ()) -> Unit:
    """Read one unit.

    Args:
        declared: further names of units, each a measure of its own.

    Raises:
        ValueRefused: it is none.
        MissingExtraError: pint is not installed.
    """
    if len(text) > _MAX_TEXT:
        raise ValueRefused(f"too long for a unit ({len(text)} characters)", text=text)
    body = " ".join(text.split())
    # Before single names, of which they consist.
    for phrase, name in PHRASES:
        body = phrase.sub(name, body)
    body = _POWER_WORD.sub(lambda each: f"{each[2]}^{3 if each[1].lower().startswith('cu') else 2}", body)
    body = _TORQUE.sub(r"\1 m", body.replace(" per ", "/"))
    body = _DEGREES.sub(lambda each: {"C": "degC", "F": "degF", "K": "kelvin"}[each[1].upper()], body)
    found: dict[str, int] = {}
    at, sign, bracket, factors = 0, 1, False, 0
    while True:
        match = _FACTOR.match(body, at)
        factors += 1
        if match is None or factors > MAX_FACTORS:
            raise ValueRefused("no unit that is known", text=text)
        exponent = int((match["exponent"] or match["raised"] or match["digit"] or "1").translate(_SUPERSCRIPT))
        for name, power in _factors(match["name"], declared, text):
            found[name] = found.get(name, 0) + sign * exponent * power
        at = match.end()
        if bracket and body[at : at + 1] == ")":
            bracket, at = False, at + 1
        if at == len(body):
            break
        operator = _OPERATOR.match(body, at)
        if operator is None:
            raise ValueRefused("no unit that is known", text=text)
        at = operator.end()
        # `J/kg K` may mean J/(kg K) or (J/kg) K.
        if sign < 0 and not bracket and "/" not in operator[0]:
            raise ValueRefused("what stands behind the / could be meant above or below it: use brackets", text=text)
        if "/" in operator[0]:
            if bracket:
                raise ValueRefused("a unit with two fractions could be read in more than one way", text=text)
            sign = -1
            if body[at : at + 1] == "(":
                bracket, at = True, at + 1
    if bracket or any(abs(exponent) > MAX_EXPONENT for exponent in found.values()):
        raise ValueRefused("no unit that is known", text=text)
    return tuple(sorted((name, exponent) for name, exponent in found.items() if exponent))


def read_declared(names: object) -> tuple[str, ...]:
    """Names of units that a configuration declares, sorted.

    Raises ConfigError: one is no name, or that of a unit that is known.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ConfigError("units are a list of names: ['IU', 'mEq']", option="units")
    found = tuple(names)
    for each in found:
        if not isinstance(each, str) or not re.fullmatch(_NAME, each):
            raise ConfigError(f"a unit is declared by its name in letters, such as 'IU', not {each!r}", option="units")
        # A declared unit would hide the real one and no longer convert.
        if factors_of(each) is not None:
            raise ConfigError(f"{each!r} is a unit already", option="units")
    return tuple(sorted(set(found)))


def _factors(name: str, declared: Collection[str], text: str) -> Unit:
    """Resolve the name of a unit: ``kilometer`` for ``km``, mile and hour for ``mph``."""
    if name in declared:
        return ((f"'{name}'", 1),)
    found = factors_of(_SIGNS.get(name, name))
    if found is None:
        raise ValueRefused(f"{name!r} is no unit that is known (a check can declare it: units=[{name!r}])", text=text)
    _registry()  # a unit that nothing converts is of no use
    return found


def convert(value: Exact, unit: Unit, other: Unit) -> Exact:
    """An amount in another unit, exactly.

    Raises:
        ValueRefused: the two are of different dimensions, or there is no exact conversion.
        MissingExtraError: pint is not installed.
    """
    if _comparable(unit) == _comparable(other):
        return value
    # pint does not know declared units: they have to be the same on both sides, and are then left out.
    declared = [tuple(each for each in one if each[0].startswith("'")) for one in (unit, other)]
    if declared[0] != declared[1]:
        shown = f"{show_unit(unit)} and {show_unit(other)} do not measure the same"
        raise ValueRefused(shown, text=show_unit(unit))
    unit, other = (tuple(each for each in one if each not in declared[0]) for one in (unit, other))
    for name, _ in (*unit, *other):
        if _CALENDAR.search(name) and not _same_calendar(unit, other):
            raise ValueRefused("months and years have no fixed length", text=name)
    registry = _registry()
    containers = [registry.UnitsContainer(_steps_of_scales(each)) for each in (unit, other)]
    try:
        # Angles, counts and bits have no dimension to pint, and a hertz would be 9.5 turns a minute.
        roots = [dict(registry.get_root_units(each, check_nonmult=False)[1]._units) for each in containers]
        if roots[0] != roots[1]:
            shown = f"{show_unit(unit)} and {show_unit(other)} do not measure the same"
            raise ValueRefused(shown, text=show_unit(unit))
        found: object = registry.convert(Fraction(value), *containers)
    except ValueRefused:
        raise
    except Exception as error:  # pint raises several kinds where a conversion is not linear
        raise ValueRefused(f"no exact conversion to {show_unit(other)}", text=show_unit(unit)) from error
    if not isinstance(found, int | Fraction):
        raise ValueRefused(f"no exact conversion to {show_unit(other)}", text=show_unit(unit))
    return exact(Fraction(found))


def _steps_of_scales(unit: Unit) -> dict[str, int]:
    """The factors of a unit as pint has them: beside others a degree is a difference, as in W/(m^2*°C)."""
    beside = len(unit) > 1 or any(power < 0 for _, power in unit)
    return {
        f"delta_{name}" if beside and abs(power) == 1 and name.startswith("degree_") else name: power
        for name, power in unit
    }


def _same_calendar(unit: Unit, other: Unit) -> bool:
    """Whether years and months appear in both units alike, so that their length cancels out."""
    mine, theirs = ([each for each in one if _CALENDAR.search(each[0])] for one in (unit, other))
    return mine == theirs
