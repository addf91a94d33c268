"""The caller's own classes as types: pydantic models and dataclasses in, their instances out.

::

    class Item(BaseModel):
        what: str
        amount: Annotated[Decimal, "money(EUR)"]
        spent: date

    ValueType.parse(list[Item])             list of Item
    to_python(kind, value)                  [Item(...), ...]

Each field becomes a field of a record: ``str`` is text, ``int`` an integer, ``float``, ``Decimal`` and ``Fraction`` are
numbers (``Field(decimal_places=2)`` makes a ``decimal(2)``), ``bool``, ``date``, ``time`` and ``timedelta`` what they
say, a ``Literal`` or an ``Enum`` of texts one of these, ``list[T]`` and ``tuple[T, ...]`` lists, a class with fields a
record. ``Annotated[Decimal, "money(EUR)"]`` says a type of the notation. Everything else is refused by name, also what
may be missing (``T | None``): a step's value has all its parts.

A model's own validators judge every value that is read, accepted or computed; what they change, only the instance has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.digits import exact
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value

_NO_NAME: Final = re.compile(r"\W+")  # a generic class is called Box[int], which no record may be
_SCALARS: Final[Mapping[object, str]] = {
    str: "text", int: "integer", float: "number", Decimal: "number", Fraction: "number", bool: "boolean",
    date: "date", time: "time", timedelta: "duration",
}  # fmt: skip


def value_type_of(annotation: Any) -> ValueType:
    """Derive a value type from a class or an annotation.

    Raises ConfigError: it, or a field of it, stands for none; the message names it.
    """
    return _type_of(annotation, (), ())


def to_python(kind: ValueType, value: Value) -> object:
    """Convert a value to Python's own: instances of the records' classes, lists, dicts, numbers and texts."""
    if kind.items is not None and isinstance(value, tuple):
        return [to_python(kind.items, each) for each in value]
    if kind.record is None or not isinstance(value, Record):
        return value
    if kind.record.model is not None:
        return instance_of(kind.record, value)
    return {key: to_python(each, value[key]) for key, each in kind.record.fields}


def instance_of(record: RecordType, value: Record) -> object:
    """Build the instance of the class that a record type was made from.

    Raises ValueRefused: the class does not take these values; its own words say why.
    """
    model = record.model
    assert model is not None
    hints = _hints(model)
    arguments = {key: _argument(hints[key], each, value[key]) for key, each in record.fields}
    validate = getattr(model, "model_validate", None)
    try:
        if validate is None:
            return model(**arguments)
        described = cast(Any, model).model_fields
        return validate({_given_as(described[key], key): argument for key, argument in arguments.items()})
    except Exception as error:  # whatever a validator of the user's raises
        raise ValueRefused(f"{record.name} does not take it: {_why(error)}", text=show_value(value)) from error


def _given_as(field: Any, key: str) -> str:
    """The key under which a model accepts a field: its alias, the first choice that is a plain name."""
    alias = field.validation_alias
    for each in getattr(alias, "choices", [alias]):
        if isinstance(each, str):
            return each
    return key


def _why(error: Exception) -> str:
    """The message of a validator's error, on one line."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return f"{type(error).__name__}: {error}"
    first = details(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


def _argument(annotation: object, kind: ValueType, value: Value) -> object:
    """Convert a value to what the annotation of its field asks for."""
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if type(value) in (int, Fraction, Decimal) and kind.numeric:
        number = exact(Fraction(cast("int | Fraction | Decimal", value)))
        # The only place where an exact number becomes a float, and only because the class asks for it.
        if bare is float:
            return float(number)
        if bare is Decimal and not isinstance(value, Decimal):
            return _decimal(number)
        return Fraction(number) if bare is Fraction else value
    if kind.items is not None and isinstance(value, tuple):
        inner = get_args(bare)[0] if get_args(bare) else Any
        listed = [_argument(inner, kind.items, each) for each in value]
        return tuple(listed) if get_origin(bare) is tuple else listed
    return bare(value) if isinstance(bare, type) and issubclass(bare, Enum) else to_python(kind, value)


def _decimal(number: int | Fraction) -> Decimal:
    shown = show_value(number)
    if "/" in shown:
        raise ValueRefused("it has no exact decimal: declare its places", text=shown)
    return Decimal(shown)


def _type_of(annotation: Any, extras: Sequence[object], outer: tuple[type, ...]) -> ValueType:
    """The type of an annotation; `extras` is the field's metadata, `outer` the classes it is nested in."""
    if get_origin(annotation) is Annotated:
        annotation, *further = get_args(annotation)
        extras = (*further, *extras)
    for extra in extras:
        if isinstance(extra, str | ValueType):
            return ValueType.parse(extra)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        places = next((found for each in extras if (found := getattr(each, "decimal_places", None)) is not None), None)
        named = f"decimal({places})" if annotation is Decimal and places is not None else _SCALARS[annotation]
        return ValueType.parse(named)
    if origin is Literal and all(isinstance(each, str) for each in arguments):
        return ValueType(kind="one_of", options=cast("tuple[str, ...]", arguments))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = tuple(each.value for each in annotation)
        if all(isinstance(each, str) for each in values):
            return ValueType(kind="one_of", options=values)
    if origin in (list, Sequence) or (origin is tuple and len(arguments) == 2 and arguments[1] is ...):
        return ValueType(kind="list", items=_type_of(arguments[0], (), outer))
    if isinstance(annotation, type) and (is_dataclass(annotation) or hasattr(annotation, "model_fields")):
        return ValueType(kind="record", record=_record_of(annotation, outer))
    raise ConfigError(_unsupported(annotation, origin), option="type")


def _unsupported(annotation: Any, origin: object) -> str:
    shown = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
    shown = shown if shown is not None and origin is None else str(annotation).replace("typing.", "")
    if origin in (Union, UnionType):
        return f"{shown} may be one thing or another: a value has one type, and no part of it is missing"
    if annotation is datetime:
        return "a datetime is a date and a time: use a field for each"
    known = "str, int, float, Decimal, bool, date, time, timedelta, Literal, Enum, list[...] or a class with fields"
    return f"no value has the type {shown}: use {known}"


def _record_of(model: type, outer: tuple[type, ...]) -> RecordType:
    # A class that contains itself would be unfolded without end.
    if model in outer:
        raise ConfigError(f"{model.__name__} contains itself, and a value ends somewhere", option="type")
    # It has one field called `root`, but its JSON is the value itself, not an object.
    if getattr(model, "__pydantic_root_model__", False):
        raise ConfigError(f"{model.__name__} has no fields: use what is inside it, such as list[int]", option="type")
    described: Mapping[str, Any] = getattr(model, "model_fields", {})
    found: list[tuple[str, ValueType]] = []
    for name, annotation in _hints(model).items():
        extras = getattr(described.get(name), "metadata", ())
        try:
            found.append((name, _type_of(annotation, extras, (*outer, model))))
        except ConfigError as error:
            raise ConfigError(f"{model.__name__}.{name}: {error}", option="type") from None
    return RecordType(_NO_NAME.sub("_", model.__name__).strip("_"), tuple(found), model)


def _hints(model: type) -> dict[str, Any]:
    """The annotations of the fields of a class, in order."""
    described = getattr(model, "model_fields", None)
    if described is not None:
        return {name: field.annotation for name, field in described.items()}
    if not is_dataclass(model):
        raise ConfigError(f"{model.__name__} has no fields: use a pydantic model or a dataclass", option="type")
    hints = get_type_hints(model, include_extras=True)
    return {each.name: hints[each.name] for each in fields(model) if each.init}  # others are set by the class itself
