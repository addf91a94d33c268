"""How types are written: the notation of `stepguard.language.value_types`, taken apart."""

from __future__ import annotations

import re
from typing import Final

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.option_lists import read_option
from stepguard.language.quantities import read_declared, read_unit
from stepguard.language.tolerances import Tolerance

EXAMPLES: Final = (
    "number, integer, decimal(2), percent(1), money(USD), one_of(yes, no), boolean, text, date, time, duration, "
    "period, quantity(kg) or list of text"
)

LIST_OF: Final = re.compile(r"\s*list\s+of\s+", re.IGNORECASE)
_TYPE = re.compile(r"\s*([A-Za-z_]+)\s*(?:\((.*)\)\s*)?\Z", re.DOTALL)
_ARGUMENT = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,"()=]*[^,"()=\s])\s*(?:,|\Z)')
_DECLARED = re.compile(r'"([^"]*)"')


def type_parts(text: str, kinds: tuple[str, ...]) -> tuple[str, dict[str, object]]:
    """The kind of a type that is no list, and what stands in its brackets, as attributes of a `ValueType`.

    Raises:
        ConfigError: the text names no type.
    """
    match = _TYPE.match(text)
    kind = match[1].lower() if match else ""
    if match and kind not in kinds and match[1] != kind:  # a record that nobody declared, as it is spelt
        raise ConfigError(f"unknown type {match[1]!r}: use {EXAMPLES}, or the name of a declared record", option="type")
    if match and kind == "quantity" and match[2] is not None:
        return kind, _quantity(text, match[2])
    arguments = _arguments(match[2]) if match and match[2] is not None else []
    if not match or kind not in kinds or arguments is None:
        found = f"unknown type {kind!r}" if kind and kind not in kinds else f"{text!r} is not a type"
        raise ConfigError(f"{found}: use {EXAMPLES}", option="type")
    given: dict[str, object] = {}
    match kind, arguments:
        case "one_of", [*options]:
            given["options"] = tuple(read_option(each) for each in options)
        case "number", [one] if one.startswith("within "):
            given["within"] = Tolerance.parse(one.removeprefix("within "))
        case "money", [currency, *rest]:
            given |= {"currency": currency.upper(), **_rounded(text, rest)}
        case "decimal" | "percent", rest:
            given |= _rounded(text, rest)
        case _, []:
            pass
        case _:
            raise ConfigError(f"{text!r} is not a type: {kind} takes nothing of that in brackets", option="type")
    return kind, given


def _quantity(text: str, inside: str) -> dict[str, object]:
    """A unit, in which names that the type declares stand in quotes; places and mode."""
    name, comma, behind = inside.partition(",")
    rest = _arguments(behind) if comma else []
    if rest is None:
        raise ConfigError(f"{text!r} is not a type: write quantity(kg), quantity(mol/l, 2)", option="type")
    try:
        declared = read_declared(_DECLARED.findall(name))
        unit = read_unit(_DECLARED.sub(r"\1", name.strip()), declared=declared)
    except ValueRefused as error:
        hint = "" if "known" not in error.reason else '; one of your own stands in quotes, quantity("IU")'
        raise ConfigError(f"{text!r} is not a type: {error}{hint}", option="type") from None
    return {"unit": unit, **_rounded(text, rest)}


def _arguments(inside: str) -> list[str] | None:
    """What stands in brackets, split at its commas; None where it is not a list."""
    found: list[str] = []
    at = 0
    while at < len(inside):
        match = _ARGUMENT.match(inside, at)
        if match is None:
            return None
        found.append(match[1])
        at = match.end()
    return None if not found or inside.rstrip().endswith(",") else found


def _rounded(text: str, arguments: list[str]) -> dict[str, object]:
    """Places and rounding mode from the arguments of a type."""
    if not arguments:
        return {}
    places, *mode = arguments
    if not (places.isascii() and places.isdigit() and len(places) < 10) or len(mode) > 1:
        raise ConfigError(
            f"{text!r} is not a type: places and a mode are written as in decimal(2, half_up)", option="type"
        )
    return {"places": int(places), "rounding": mode[0].lower() if mode else None}
