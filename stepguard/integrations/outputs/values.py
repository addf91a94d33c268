"""Read the output of an agent or a tool: its fields, and its claim for a step.

Values are read as those of a caller are: exactly, a float as the decimal that Python prints for it, a percentage as
text with its sign. A value may be given with its working, as an equation (``"24.90 * 3 = 74.70"``) or as an object of
``work`` and ``value``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Final

from pydantic import BaseModel, RootModel

from stepguard.core.verdicts import Claim, Deviation, shorten
from stepguard.errors import ValueRefused
from stepguard.integrations.tool_arguments import accept_json
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat

_FORMAT: Final = EquationFormat()
_ENTRY: Final = frozenset({"work", "value"})


def read_fields(output: object, known: Collection[str]) -> Mapping[str, object] | None:
    """The fields of a mapping, a dataclass, a pydantic model or JSON text; None where the output is one value.

    A field of a model that has an alias goes by whichever of its two names is `known`; computed fields are among them.
    JSON text without any known name is a text.
    """
    output = _unwrapped(output)
    if isinstance(output, Mapping):
        return output
    if isinstance(output, BaseModel):
        return _of_model(output, known)
    if has_class(output):
        return {each.name: getattr(output, each.name) for each in dataclasses.fields(output)}  # type: ignore[arg-type]
    if isinstance(output, str) and output.lstrip().startswith("{"):
        try:
            found = decode(output.strip())
        except ValueError:
            return None
        if isinstance(found, JsonObject) and any(name in found for name in known):
            return found
    return None


def has_class(output: object) -> bool:
    """Whether its field names come from a class that a developer wrote, and not from a model."""
    return isinstance(output, BaseModel) or (dataclasses.is_dataclass(output) and not isinstance(output, type))


def is_one_value(output: object) -> bool:
    """Whether an output could be the value of a step."""
    output = _unwrapped(output)
    return output is None or isinstance(output, str | bool | int | float | Decimal | Fraction | Enum | date)


def read_value(kind: ValueType, given: object) -> Value:
    """One value, without working. Raises ValueRefused: it is none of this type."""
    return accept_json(kind, _acceptable(given))


def read_claim(step: Step, given: object) -> Claim | Deviation:
    """Read the claim for a step, or the deviation of one that cannot be read."""
    try:
        given = _acceptable(given)
        if isinstance(given, Mapping):
            return _with_work(step, given)
        return _of_text(step, "", _text(step.type, given))
    except ValueRefused as error:
        return Deviation("malformed", step.id, str(error))


def _unwrapped(output: object) -> object:
    while isinstance(output, RootModel):
        output = output.root
    return output


def _of_model(output: BaseModel, known: Collection[str]) -> dict[str, object]:
    kind = type(output)
    aliases = {name: field.alias for name, field in kind.model_fields.items()}
    aliases |= {name: field.alias for name, field in kind.model_computed_fields.items()}
    found: dict[str, object] = dict(output.model_extra or {})
    for name, alias in aliases.items():
        outside = alias or name
        names: set[str] = {name, outside}.intersection(known) or {outside}
        found |= dict.fromkeys(names, getattr(output, name))
    return found


def _acceptable(given: object) -> object:
    """A value of Python as one of those that a type accepts. Raises ValueRefused: it cannot be read."""
    given = _unwrapped(given)
    while isinstance(given, Enum):
        given = given.value
    if isinstance(given, date):
        return given.isoformat()
    if not has_class(given):
        return given
    try:
        return read_fields(given, _ENTRY)
    except Exception as error:  # fields may be computed by foreign code
        raise ValueRefused(f"it cannot be read: {type(error).__name__}", text=type(given).__name__) from error


def _text(kind: ValueType, given: object) -> str:
    """A value as a reply would write it. Raises ValueRefused: it is none of this type."""
    if isinstance(given, str) and not isinstance(given, JsonNumber):
        return given
    return kind.write(accept_json(kind, given))


def _with_work(step: Step, given: Mapping[str, object]) -> Claim | Deviation:
    if isinstance(given, JsonObject) and given.repeated:
        raise ValueRefused("it stands twice in its entry", text=shorten(min(given.repeated)))
    if given.keys() != _ENTRY:
        raise ValueRefused("a value, or an object of work and value, was expected", text="another object")
    work = given["work"]
    if work is not None and (not isinstance(work, str) or isinstance(work, JsonNumber)):
        raise ValueRefused("work is text", text=type(work).__name__)
    return _of_text(step, (work or "").strip(), _text(step.type, _acceptable(given["value"])))


def _of_text(step: Step, work: str, text: str) -> Claim | Deviation:
    if step.expression is None:
        claim = _FORMAT.claim(step, {"work": work, "value": text})
    else:
        claim = _FORMAT.claim(step, f"{work} = {text}" if work else text)
    if isinstance(claim, Deviation):
        return claim
    accept_json(step.type, claim.value)  # a percentage has its sign, and nothing else has one
    return claim if work or step.expression is not None else dataclasses.replace(claim, text=text)
