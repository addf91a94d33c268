"""How types are written: the notation of `stepguard.language.value_types`, taken apart."""

from __future__ import annotations

import json
import re
from typing import Final

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.quantities import read_declared, read_unit
from stepguard.language.tolerances import Tolerance
from stepguard.language.values import encodable

_BARE_OPTION = re.compile(r"\w(?:[\w .+/-]*\w)?\Z")
_AROUND_OPTION: Final = " \t\r\n\"'`*."
_MAX_OPTIONS: Final = 100
_MAX_OPTION: Final = 100


def read_option(argument: str) -> str:
    """An option as it stands in a type: bare or in quotes. Raises ConfigError: its quotes do not match."""
    if len(argument) > 2 and argument[0] == argument[-1] == "'":  # as Python writes texts
        return argument[1:-1]
    if not argument.startswith('"'):
        return argument
    try:
        return str(json.loads(argument))
    except ValueError as error:
        raise ConfigError(f"{argument} is not a JSON string: {error}", option="type") from None


def write_option(option: str) -> str:
    """An option as a type is written: in quotes where it needs them."""
    return option if _BARE_OPTION.match(option) else json.dumps(option)


def check_options(options: tuple[str, ...]) -> None:
    """Refuse options that cannot be told apart, or that are too many, too few or no lines of text.

    Raises ConfigError: they are.
    """
    seen: set[str] = set()
    for option in options:
        known = fold_option(option) if isinstance(option, str) and encodable(option) else ""
        if not known or len(option) > _MAX_OPTION or len(option.splitlines()) != 1 or option != option.strip():
            raise ConfigError(
                f"{option!r} cannot be an option: one line of at most {_MAX_OPTION} characters is needed", option="type"
            )
        if known in seen:
            raise ConfigError(f"the option {option!r} is listed twice (case does not matter)", option="type")
        seen.add(known)
    if not 2 <= len(options) <= _MAX_OPTIONS:
        raise ConfigError(f"one_of has 2 to {_MAX_OPTIONS} options, not {len(options)}", option="type")


def fold_option(text: str) -> str:
    """What two writings of one option have in common: case, quotes, blanks and emphasis do not count."""
    return " ".join(text.strip(_AROUND_OPTION).casefold().split())


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

    Raises ConfigError: the text names no type.
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
