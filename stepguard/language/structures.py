"""Reading, accepting, converting and writing values of lists and records.

JSON is read strictly (`stepguard.language.strict_json`): a key that stands twice, is missing or unknown, and ``null``
are refused, never repaired; each value inside is read by its own type. An error says where: ``[2].amount``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from stepguard.errors import InexactError, ValueRefused
from stepguard.language.records import Record, RecordType
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.values import Value, encodable, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.language.dates import DateOrder
    from stepguard.language.value_types import ValueType

MAX_ITEMS: Final = 100_000
"""The longest list that is read or accepted."""


def read_structure(kind: ValueType, text: str, *, order: DateOrder | None = None) -> Value:
    """Read a list or a record from JSON; `order` says how dates in it are meant, see `read_date`.

    Raises ValueRefused: it is none of this type; the reason says where.
    """
    try:
        data = decode(text.strip())
    except ValueError as error:
        form = "array" if kind.items is not None else "object"
        raise ValueRefused(f"a JSON {form} was expected ({error})", text=text) from None
    return _read_node(kind, data, "", order)


def _read_node(kind: ValueType, data: object, place: str, order: DateOrder | None) -> Value:
    if kind.items is not None:
        if not isinstance(data, list):
            raise _refused(f"a list was expected, found {_kind_of_data(data)}", place, data)
        _check_length(len(data), place)
        return tuple(_read_node(kind.items, each, f"{place}[{index}]", order) for index, each in enumerate(data))
    if kind.record is not None:
        if not isinstance(data, JsonObject):
            raise _refused(f"an object with the fields of {kind.record.name} was expected", place, data)
        # JSON parsers differ in which of two equal keys they take.
        if data.repeated:
            raise _refused(f"the key {min(data.repeated)!r} stands twice", place, data)
        _check_keys(kind.record, data, place)
        read = {key: _read_node(inner, data[key], f"{place}.{key}", order) for key, inner in kind.record.fields}
        return _validated(kind.record, Record(read), place)
    if isinstance(data, bool) and kind.kind == "boolean":
        return data
    if not isinstance(data, str):
        raise _refused(f"a value of type {kind} was expected, found {_kind_of_data(data)}", place, data)
    # A JSON number is a str here, so that its digits reach the exact reader without a float between.
    if isinstance(data, JsonNumber) and not (kind.numeric or kind.kind == "text"):
        raise _refused(f"a value of type {kind} was expected, found a number", place, data)
    if not encodable(data):
        raise _refused("half of a character (a lone surrogate) cannot be sent", place, ascii(data))
    try:
        return kind.read(str(data), order=order)
    except ValueRefused as error:
        raise _refused(error.reason, place, data) from None


def accept_structure(kind: ValueType, value: object, place: str = "") -> Value:
    """Accept the caller's list or record: a list or tuple, a mapping, an instance of a class with fields, or JSON text.

    Raises ValueRefused: it is none of this type; the reason says where.
    """
    if isinstance(value, str) and kind.structured:
        return read_structure(kind, value)
    if kind.items is not None:
        if not isinstance(value, list | tuple):
            raise _refused(f"a list was expected, found {type(value).__name__}", place, value)
        _check_length(len(value), place)
        return tuple(accept_structure(kind.items, each, f"{place}[{index}]") for index, each in enumerate(value))
    if kind.record is not None:
        if isinstance(value, JsonObject) and value.repeated:
            raise _refused(f"the key {min(value.repeated)!r} stands twice", place, value)
        held = _fields_of(value)
        if held is None:
            what = f"the fields of {kind.record.name} were expected, found {type(value).__name__}"
            raise _refused(what, place, value)
        _check_keys(kind.record, held, place)
        inner = {key: accept_structure(each, held[key], f"{place}.{key}") for key, each in kind.record.fields}
        return _validated(kind.record, Record(inner), place)
    try:
        return kind.accept(value.value if isinstance(value, Enum) else value)
    except ValueRefused as error:
        raise _refused(error.reason, place, value) from None


def _fields_of(value: object) -> Mapping[str, object] | None:
    """The fields of a mapping or of an instance; None for anything else."""
    if isinstance(value, Mapping):
        return value
    names: Iterable[str] | None = getattr(type(value), "model_fields", None)  # of pydantic
    if names is None and is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
    return None if names is None else {name: getattr(value, name) for name in names}


def convert_structure(kind: ValueType, value: Value) -> Value:
    """Convert the value of an expression part by part; a record may come from another type with the same fields.

    Raises InexactError: it is of another kind; the message says where.
    """
    if kind.items is not None and isinstance(value, tuple):
        return tuple(_converted(kind.items, each, f"[{index}]") for index, each in enumerate(value))
    if kind.record is not None and isinstance(value, Record):
        lacking = [key for key, _ in kind.record.fields if key not in value]
        foreign = [key for key in value if kind.record.get(key) is None]
        if not lacking and not foreign:
            parts = {key: _converted(each, value[key], f".{key}") for key, each in kind.record.fields}
            try:
                return _validated(kind.record, Record(parts), "")
            except ValueRefused as error:
                raise InexactError(error.reason) from None
        odd = f"the field {lacking[0]!r} is missing" if lacking else f"it has no field {foreign[0]!r}"
        raise InexactError(f"a value of type {kind} was expected: {odd}")
    raise InexactError(f"a value of type {kind} was expected, found {show_value(value):.80}")


def _converted(kind: ValueType, value: Value, place: str) -> Value:
    try:
        return kind.convert(to_exact(value))
    except InexactError as error:
        raise InexactError(f"{place}: {error}") from None


def holds_structure(kind: ValueType, value: object) -> bool:
    """Whether a Python object is a value of this type, with all its parts."""
    if kind.items is not None:
        return type(value) is tuple and all(map(kind.items.holds, value))
    if kind.record is None or not isinstance(value, Record):
        return False
    return list(value) == [key for key, _ in kind.record.fields] and all(
        each.holds(value[key]) for key, each in kind.record.fields
    )


def write_structure(kind: ValueType, value: Value) -> str:
    """A value as JSON on one line, as a reply writes it; `read_structure` gives it back."""
    return json.dumps(json_data(kind, value), ensure_ascii=False)


def json_data(kind: ValueType, value: Value) -> object:
    """Convert a value to JSON data: lists, objects and truth values as such, everything else as text."""
    if kind.items is not None and isinstance(value, tuple):
        return [json_data(kind.items, each) for each in value]
    if kind.record is not None and isinstance(value, Record):
        return {key: json_data(each, value[key]) for key, each in kind.record.fields}
    return value if isinstance(value, bool) else show_value(value) if kind.structured else kind.write(value)


def leaves_changed(kind: ValueType, data: object, change: Callable[[str], str]) -> object:
    """Apply `change` to the text of every number in JSON data; what does not fit the type stays as it is."""
    if kind.items is not None and isinstance(data, list):
        return [leaves_changed(kind.items, each, change) for each in data]
    if kind.record is not None and isinstance(data, dict):
        kinds = dict(kind.record.fields)
        pairs = data.pairs if isinstance(data, JsonObject) else list(data.items())
        changed = [(key, leaves_changed(kinds[key], each, change) if key in kinds else each) for key, each in pairs]
        return JsonObject(changed)
    number = isinstance(data, str) and not isinstance(data, JsonNumber) and kind.numeric
    return change(str(data)) if number else data


def _validated(record: RecordType, value: Record, place: str) -> Record:
    """Return the value if the class that its record type was made from accepts it."""
    if record.model is not None:
        from stepguard.language.models import instance_of

        try:
            instance_of(record, value)
        except ValueRefused as error:
            raise _refused(error.reason, place, value) from None
    return value


def _check_keys(record: RecordType, held: Mapping[str, object], place: str) -> None:
    for key, _ in record.fields:
        if key not in held:
            raise _refused(f"the field {key!r} of {record.name} is missing", place, held)
    # All declared keys are there, so that one too many is unknown.
    if len(held) > len(record.fields):
        odd = next(key for key in held if not isinstance(key, str) or record.get(key) is None)
        raise _refused(f"{record.name} has no field {str(odd)[:40]!r}", place, held)


def _check_length(length: int, place: str) -> None:
    if length > MAX_ITEMS:
        raise _refused(f"a list of {length} values, at most {MAX_ITEMS} are read", place, [])


def _kind_of_data(data: object) -> str:
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "a truth value"
    if isinstance(data, JsonNumber):
        return f"the number {data:.20}"
    if isinstance(data, str):
        return "text"
    return "a list" if isinstance(data, list) else "an object"


def _refused(reason: str, place: str, data: object) -> ValueRefused:
    where = place.removeprefix(".")
    # An inner error has its own place already; this one only says which value it is about.
    return ValueRefused(f"{where}: {reason}" if where else reason, text=_data_text(data))


def _data_text(data: object) -> str:
    if isinstance(data, str):
        return str(data)
    return "a list" if isinstance(data, list | tuple) else "an object" if isinstance(data, Mapping) else repr(data)[:60]
