"""Claims about quantities; judged with a table of factors and offsets of the benchmark's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from certification.check_constraints import written
from certification.families import Family, Problem, Said
from certification.truth import number_text
from stepguard.checks.units import Measured, Quantity
from stepguard.language.values import Value

__all__: list[str] = []

F = Fraction
_TABLE: dict[str, dict[str, Fraction]] = {
    "length": {
        "m": F(1), "km": F(1000), "cm": F(1, 100), "mm": F(1, 1000), "mile": F(1609344, 1000), "ft": F(3048, 10000),
        "inch": F(254, 10000), "metres": F(1), "kilometers": F(1000), "µm": F(1, 10**6), "yards": F(9144, 10000),
    },
    "mass": {
        "kg": F(1), "g": F(1, 1000), "mg": F(1, 10**6), "t": F(1000), "lb": F(45359237, 10**8),
        "oz": F(45359237, 16 * 10**8), "kilograms": F(1),
    },
    "time": {"s": F(1), "min": F(60), "h": F(3600), "ms": F(1, 1000), "days": F(86400), "seconds": F(1)},
    "speed": {"m/s": F(1), "km/h": F(1000, 3600), "mph": F(1609344, 3600000), "km per hour": F(1000, 3600)},
    "area": {"m^2": F(1), "cm²": F(1, 10**4), "km**2": F(10**6), "square metres": F(1), "hectare": F(10**4)},
    "volume": {"m^3": F(1), "l": F(1, 1000), "mL": F(1, 10**6), "cm³": F(1, 10**6), "litres": F(1, 1000)},
    "power": {"W": F(1), "kW": F(1000), "mW": F(1, 1000), "MW": F(10**6)},
    "energy": {"J": F(1), "kJ": F(1000), "kWh": F(3600000), "N·m": F(1), "kg*m^2/s^2": F(1)},
}  # fmt: skip
_WORDS = ("metres", "kilometers", "yards", "kilograms", "seconds", "days", "square metres", "litres", "km per hour")


@dataclass(frozen=True, slots=True)
class _Known:
    value: Fraction
    unit: str
    dimension: str
    converts: bool
    bare: bool
    within: Fraction = Fraction()
    least: Fraction | None = None
    most: Fraction | None = None

    @property
    def amount(self) -> Fraction:
        """In the basic unit."""
        return self.value * _TABLE[self.dimension][self.unit]


@dataclass(frozen=True, slots=True)
class _Meant:
    """What a text says: a number, and the unit written with it or None."""

    value: Fraction
    unit: str | None


def _basic(known: _Known, said: _Meant) -> Fraction | None:
    """What was said in the basic unit of the dimension that is asked for, None where it measures something else."""
    if said.unit is None:
        return said.value * _TABLE[known.dimension][known.unit] if known.bare else None
    factors = _TABLE[known.dimension]
    if said.unit not in factors:
        return None
    if not known.converts and _same(said.unit) != _same(known.unit):
        return None
    return said.value * factors[said.unit]


def _same(unit: str) -> str:
    pairs = {"metres": "m", "kilometers": "km", "kilograms": "kg", "seconds": "s", "square metres": "m^2"}
    more = {"litres": "l", "km per hour": "km/h", "cm³": "mL"}
    return {**pairs, **more}.get(unit, unit)


def _is_known(problem: Problem, said: _Meant) -> bool:
    known: _Known = problem.truth
    value = _basic(known, said)
    factor = _TABLE[known.dimension][known.unit]
    return value is not None and abs(value - known.amount) <= known.within * factor


def _is_measured(problem: Problem, said: _Meant) -> bool:
    known: _Known = problem.truth
    value = _basic(known, said)
    if value is None:
        return False
    in_unit = value / _TABLE[known.dimension][known.unit]
    return (known.least is None or in_unit >= known.least) and (known.most is None or in_unit <= known.most)


def _quantity(chance: random.Random) -> Problem:
    dimension = chance.choice(list(_TABLE))
    unit = chance.choice(list(_TABLE[dimension]))
    value = F(chance.randint(1, 9999), chance.choice([1, 1, 10, 100]))
    converts, bare = chance.random() < 0.7, chance.random() < 0.2
    within = chance.choice([None, None, None, "0.01"])
    options = {"convert": converts, "bare": "assume" if bare else "refuse", "within": within}
    truth = _Known(value, unit, dimension, converts, bare, F(within or 0))
    if chance.random() < 0.5:
        return Problem((Quantity(f"{number_text(value)} {unit}", **options),), truth)  # type: ignore[arg-type]
    part = chance.randint(1, 50)
    reads: dict[str, Value] = {"a": _exact(value - part), "b": part}
    check = Quantity("a + b", unit=unit, **options)  # type: ignore[arg-type]
    return Problem((check,), truth, reads, {"a": "number", "b": "number"})


def _exact(value: Fraction) -> Value:
    return value.numerator if value.denominator == 1 else value


def _measured(chance: random.Random) -> Problem:
    dimension = chance.choice(list(_TABLE))
    unit = chance.choice(list(_TABLE[dimension]))
    least = F(chance.randint(1, 500))
    most = least + chance.randint(1, 500)
    converts, bare = chance.random() < 0.7, chance.random() < 0.2
    check = Measured(unit, least=int(least), most=int(most), convert=converts, bare="assume" if bare else "refuse")
    value = least + (most - least) * F(chance.randint(0, 20), 20)
    return Problem((check,), _Known(value, unit, dimension, converts, bare, least=least, most=most))


QUANTITY = Family("Quantity", _quantity, _is_known)
MEASURED = Family("Measured", _measured, _is_measured)


def _say(chance: random.Random, value: Fraction, unit: str | None) -> Said:
    text = written(chance, value)
    if unit is None:
        return Said(text, _Meant(value, None))
    blank = chance.choice([" ", " ", "", "\u00a0"]) if unit not in _WORDS and "/" not in text else " "
    return Said(f"{text}{blank}{unit}", _Meant(value, unit))


Change = Callable[[random.Random, _Known], "Said | None"]


def _both(where: str, name: str, change: Change) -> None:
    for family in (QUANTITY, MEASURED):

        @family.put(where, name)
        def kind(chance: random.Random, problem: Problem) -> Said | None:
            return change(chance, problem.truth)


def _converted(chance: random.Random, known: _Known) -> Said | None:
    unit = chance.choice(list(_TABLE[known.dimension]))
    value = known.amount / _TABLE[known.dimension][unit]
    if not known.converts or len(number_text(value)) > 30:
        return None
    return _say(chance, value, unit)


def _approximate(chance: random.Random, known: _Known) -> Said | None:
    """Converted with a factor that is nearly right, or rounded."""
    units = [unit for unit in _TABLE[known.dimension] if _same(unit) != _same(known.unit)]
    unit = chance.choice(units)
    exact = known.amount / _TABLE[known.dimension][unit]
    rounded = F(f"{float(exact):.3g}") if exact else exact
    return _say(chance, chance.choice([rounded, exact * F(1001, 1000)]), unit)


def _off_by_thousand(chance: random.Random, known: _Known) -> Said | None:
    value = known.value * chance.choice([F(1000), F(1, 1000), F(10), F(1, 10), F(100), F(60), F(1, 60)])
    return _say(chance, value, known.unit)


def _other_unit(chance: random.Random, known: _Known) -> Said | None:
    units = [unit for unit in _TABLE[known.dimension] if unit != known.unit]
    return _say(chance, known.value, chance.choice(units))


def _other_dimension(chance: random.Random, known: _Known) -> Said | None:
    dimension = chance.choice([each for each in _TABLE if each != known.dimension])
    return _say(chance, known.value, chance.choice(list(_TABLE[dimension])))


def _no_unit(chance: random.Random, known: _Known) -> Said | None:
    return _say(chance, known.value, None)


def _negative(chance: random.Random, known: _Known) -> Said | None:
    return _say(chance, -known.value, known.unit)


def _near(chance: random.Random, known: _Known) -> Said | None:
    beyond = known.most - known.value if known.most is not None else F(0)
    step = beyond + known.within + F(1, 10 ** chance.randint(1, 12))
    return _say(chance, known.value + step, known.unit)


def _garbled(chance: random.Random, known: _Known) -> Said | None:
    text, unit = number_text(known.value), known.unit
    ways = [
        f"{text} {unit} or {text}0 {unit}",
        f"about {text} {unit}",
        f"{unit} {text}",
        f"{text} {text} {unit}",
        unit,
        "",
        f"{text} x{unit}",
        f"{text} {unit} + 1 {unit}",
        f"{text}-{text}1 {unit}",
        f"{text} {unit} {unit}",
        f"{text} 1/{unit}",
    ]
    if known.dimension == "time":
        ways.remove(f"{text} 1/{unit}")
    return Said(chance.choice(ways))


def _power_lost(chance: random.Random, known: _Known) -> Said | None:
    units = {"length": "{}^2", "mass": "{}²", "time": "1/{}", "power": "{}/s", "energy": "{}*s"}
    pattern = units.get(known.dimension)
    if pattern is None or known.unit in _WORDS or known.unit in ("N·m", "kg*m^2/s^2"):
        return None
    return Said(f"{number_text(known.value)} {pattern.format(known.unit)}")


def _case(chance: random.Random, known: _Known) -> Said | None:
    swaps = {"mW": "MW", "MW": "mW", "km": "Km", "ms": "Ms", "mm": "Mm", "mg": "Mg", "kg": "KG", "W": "w"}
    unit = swaps.get(known.unit)
    return None if unit is None else Said(f"{number_text(known.value)} {unit}", _Meant(known.value, unit))


_both("right", "in the unit that is asked for", lambda chance, known: _say(chance, known.value, known.unit))
_both("right", "in another unit, where that passes", _converted)
_both(
    "right", "without a unit, where that passes", lambda chance, known: _no_unit(chance, known) if known.bare else None
)
_both("wrong", "converted with a factor that is nearly right", _approximate)
_both("wrong", "off by a usual factor", _off_by_thousand)
_both("wrong", "the number with another unit", _other_unit)
_both("wrong", "a unit of something else", _other_dimension)
_both("wrong", "no unit", _no_unit)
_both("wrong", "the sign", _negative)
_both("wrong", "a near number", _near)
_both("wrong", "more or less than one quantity", _garbled)
_both("wrong", "a power too many or too few", _power_lost)
_both("wrong", "upper and lower case taken for each other", _case)


def _unconverted(chance: random.Random, known: _Known) -> Said | None:
    """Right, in another unit than the one that is asked for."""
    units = [unit for unit in _TABLE[known.dimension] if _same(unit) != _same(known.unit)]
    unit = chance.choice(units)
    value = known.amount / _TABLE[known.dimension][unit]
    return None if known.converts or "/" in number_text(value) else _say(chance, value, unit)


_both("wrong", "in another unit, where that does not pass", _unconverted)


# Temperatures have an offset


@QUANTITY.put("wrong", "a temperature without its offset")
def _temperature(chance: random.Random, problem: Problem) -> Said | None:
    celsius = chance.choice([20, 25, 37, 100, -40, 0, 15])
    fahrenheit = F(celsius * 9, 5) + 32
    texts = {
        f"{number_text(fahrenheit - 32)} °F": True,
        f"{number_text(F(celsius) + 32)} °F": celsius != 0,
        f"{celsius + 273} K": True,
        f"{celsius}.15 K": True,
        f"{celsius} K": True,
        f"{celsius} °F": celsius != -40,
        f"{celsius} C": True,  # coulomb
        f"{number_text(fahrenheit)} °C": celsius != -40,
    }
    text = chance.choice([each for each, wrong in texts.items() if wrong])
    return Said(text, problem=Problem((Quantity(f"{celsius} °C", convert=True),), problem.truth))


@QUANTITY.put("right", "a temperature in another unit")
def _warm(chance: random.Random, problem: Problem) -> Said | None:
    celsius = chance.choice([20, 25, 37, 100, -40, 0, 15])
    fahrenheit = F(celsius * 9, 5) + 32
    kelvin = F(celsius) + F(27315, 100)
    text = chance.choice([f"{number_text(fahrenheit)} °F", f"{number_text(kelvin)} K", f"{celsius}℃", f"{celsius} °C"])
    truth = _Known(F(celsius), "m", "length", True, True)  # any that the claim is true of
    return Said(text, _Meant(F(celsius), None), Problem((Quantity(f"{celsius} °C", convert=True),), truth))
