"""Inputs of a procedure, and how the names and lists that a procedure is made of are taken in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from stepguard.errors import InputError, ProcedureError, ValueRefused
from stepguard.language.expressions import RESERVED
from stepguard.language.value_types import NUMBER, TypeLike, ValueType
from stepguard.language.values import Value

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class Input:
    """A value the caller gives to every run.

    Args:
        name: the variable.
        type: its type, as a `ValueType` or as text (``"decimal(2)"``); a number by default.
        default: its value where the caller gives none; None: the caller has to.

    Raises:
        ProcedureError: the name cannot be one, or the default is not of the type.
    """

    name: str
    type: ValueType = NUMBER
    default: Value | None = None

    def __init__(self, name: str, type: TypeLike = NUMBER, *, default: object = None) -> None:
        check_name(name, "an input")
        put = object.__setattr__
        put(self, "name", name)
        put(self, "type", ValueType.parse(type))
        try:
            put(self, "default", None if default is None else self.type.accept(default))
        except ValueRefused as error:
            raise ProcedureError(f"the default of input {name!r} is not of its type, {self.type}: {error}") from error

    def __repr__(self) -> str:
        shown = [repr(self.name)] + ([] if self.type == NUMBER else [repr(str(self.type))])
        shown += [] if self.default is None else [f"default={self.type.write(self.default)!r}"]
        return f"Input({', '.join(shown)})"


def as_inputs(inputs: Iterable[str | Input]) -> tuple[Input, ...]:
    """Inputs from names and `Input`; a name that stands twice is refused."""
    entries = listed(inputs, "inputs", "['x', Input('rate', 'decimal(2)')]")
    declared = tuple(entry if isinstance(entry, Input) else Input(entry) for entry in entries)
    names: set[str] = set()
    for entry in declared:
        if entry.name in names:
            raise ProcedureError(f"duplicate input {entry.name!r}")
        names.add(entry.name)
    return declared


def accept_inputs(inputs: Iterable[Input], values: Mapping[str, object], *, of: str) -> dict[str, Value]:
    """The inputs of a run as exact values; `of` is the name of the procedure.

    Raises:
        InputError: one is missing, unknown or not of its type.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"the inputs of {of} are a mapping from name to value, not a {type(values).__name__}")
    declared = {each.name: each for each in inputs}
    for name in values:
        if name not in declared:
            listing = f"it declares {', '.join(declared)}" if declared else "it declares none"
            raise InputError(f"{of} has no input {name!r}: {listing}", name=str(name))
    accepted: dict[str, Value] = {}
    for name, each in declared.items():
        if name not in values:
            if each.default is None:
                raise InputError(f"input {name!r} of {of} is missing", name=name)
            accepted[name] = each.default
            continue
        try:
            accepted[name] = each.type.accept(values[name])
        except ValueRefused as error:
            hint = f"; its type is {each.type}" if each.type.numeric and each.type.kind != "percent" else ""
            raise InputError(f"input {name!r} of {of}: {error}{hint}", name=name) from error
    return accepted


def check_name(name: object, role: str) -> None:
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > _MAX_NAME:
        raise ProcedureError(
            f"{name!r} cannot be {role}: use letters, digits and underscores, not starting with a digit, "
            f"at most {_MAX_NAME} characters"
        )
    if name in RESERVED:
        raise ProcedureError(f"{name!r} cannot be {role}: it is a word of the expression language")


def listed(items: Iterable[_T], role: str, example: str) -> tuple[_T, ...]:
    """The items as a tuple; a text would count as its letters and a mapping lose its values, so both are refused."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise ProcedureError(f"{role} is a list such as {example}, not {type(items).__name__}")
    return tuple(items)


def instances(items: Iterable[_T], kind: type[_T], role: str, example: str) -> tuple[_T, ...]:
    """What was given as a list of objects of a class; see `listed`."""
    held = listed(items, role, example)
    for entry in held:
        if not isinstance(entry, kind):
            raise ProcedureError(f"{role} is a list such as {example}, and {entry!r:.60} is no {kind.__name__}")
    return held
