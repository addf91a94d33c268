"""Records: values with named fields, and the types that declare them.

A `RecordType` names the fields of a record and their types, in order; a `Record` is one value of it, a mapping that
cannot be changed and can be compared and hashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepguard.language.value_types import ValueType
    from stepguard.language.values import Value

__all__ = ["Record", "RecordType"]


@dataclass(frozen=True, slots=True)
class RecordType:
    """What a record holds: a name for people, and the type of each field, in order."""

    name: str
    fields: tuple[tuple[str, ValueType], ...]


class Record(Mapping[str, "Value"]):
    """A value of a record type: its fields by name, in the order of the type."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Value]) -> None:
        self._fields = dict(fields)

    def __getitem__(self, key: str) -> Value:
        return self._fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __hash__(self) -> int:
        return hash(tuple(self._fields.items()))

    def __repr__(self) -> str:
        return f"Record({self._fields!r})"
