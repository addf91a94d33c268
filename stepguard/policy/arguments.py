"""Read the arguments of a call, as values for the rules and as data for the tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from fractions import Fraction
from math import inf
from typing import Any, Final

from stepguard.errors import ValueRefused
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.values import Value, show_value
from stepguard.policy.declarations import DeclaredTool
from stepguard.policy.reading import Reader, folded, json_value

_MAX_ARGUMENTS: Final = 1_000_000
_MAX_DIGITS: Final = 400
_MAX_DEPTH: Final = 100


def read_arguments_of(tool: DeclaredTool, given: object, reader: Reader) -> tuple[dict[str, Value], dict[str, Any]]:
    """Read the arguments of a call: as values by name, and as the data that the tool is given.

    Raises ValueRefused: they are not those of the tool.
    """
    if isinstance(given, str):
        if len(given) > _MAX_ARGUMENTS:
            raise ValueRefused("they are too long", text="")
        try:
            given = decode(given.strip() or "{}")
        except ValueError:
            raise ValueRefused("they are no JSON object", text="") from None
    if not isinstance(given, Mapping):
        raise ValueRefused("they are no JSON object", text="")
    # Of a key that stands twice, the rules could read one value and the tool the other.
    if isinstance(given, JsonObject) and given.repeated:
        raise ValueRefused(f"{min(given.repeated)[:40]!r} is given twice", text="")
    names = {each.name for each in tool.parameters}
    values: dict[str, Value] = {}
    data: dict[str, Any] = {}
    for name in given:
        if name in names:
            continue
        # A further argument may not be another spelling of a declared one: the tool could take it for that.
        plain = folded(name) if isinstance(name, str) else name
        if not tool.more or not isinstance(name, str) or any(folded(each) == plain for each in names):
            raise ValueRefused(f"there is no argument {str(name)[:40]!r}", text="")
        try:
            data[name] = plain_data(given[name])
        except ValueRefused as error:
            raise ValueRefused(f"{str(name)[:40]}: {error.reason}", text="") from None
    # A default is passed on explicitly, so that the tool runs with the value that the rules have read.
    for each in tool.parameters:
        if each.name in given:
            try:
                values[each.name], data[each.name] = reader.argument(each.type, given[each.name])
            except ValueRefused as error:
                raise ValueRefused(f"{each.name}: {error.reason}", text="") from None
        elif each.value is not None:
            values[each.name] = each.value
            if not each.type.structured:
                data[each.name] = json_value(each.type, each.value)
        else:
            raise ValueRefused(f"{each.name!r} is missing", text="")
    return values, data


def given_data(arguments: object) -> dict[str, Any]:
    """Arguments that no rule reads, as they came."""
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments.strip() or "{}")
        except ValueError:
            return {}
    try:
        plain = plain_data(arguments)
    except ValueRefused:
        return {}
    return plain if isinstance(plain, dict) else {}


def plain_data(value: Any, depth: int = 0) -> Any:
    """Data as it can be saved: JSON's numbers as Python's, everything that JSON does not know as text.

    Raises ValueRefused: it is nested too deeply, or a number is too long or too large.
    """
    if depth > _MAX_DEPTH:
        raise ValueRefused("nested too deeply", text="")
    if isinstance(value, JsonNumber):
        # The length first: Python refuses to parse very long integers, and 1e999 becomes infinite.
        number = json.loads(str(value)) if len(value) <= _MAX_DIGITS else inf
        if number in (inf, -inf):
            raise ValueRefused("a number is too long or too large", text="")
        return number
    # Enums before texts: a member that is a text too shows its name, not its value, to `str`.
    if isinstance(value, Enum):
        return plain_data(value.value, depth + 1)
    if isinstance(value, str):
        # Not str(): a subclass of text could show itself otherwise than it compares.
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(plain_data(key, depth + 1)): plain_data(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(each, depth + 1) for each in value]
    if isinstance(value, timedelta | Period | Amount | Fraction):
        return show_value(value)
    if hasattr(value, "model_dump"):
        return plain_data(value.model_dump(mode="json"), depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain_data(getattr(value, each.name), depth + 1) for each in fields(value)}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
