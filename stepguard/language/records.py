"""Records: values with named fields, and the types that declare them.

A `RecordType` names the fields of a record and their types, in order; a `Record` is one value of it, a mapping that
cannot be changed and can be compared and hashed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from stepguard.language.value_types import ValueType
    from stepguard.language.values import Value

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MAX_FIELDS: Final = 100


@dataclass(frozen=True, slots=True)
class RecordType:
    """What a record holds: a name for people, and the type of each field, in order.

    Attributes:
        name: the name that other types refer to it by.
        fields: each name with its type.
        model: the class of the user's that it was made from (`stepguard.language.models`); its validators judge every
            value.

    Raises:
        ConfigError: there is no field, a name cannot be one or stands twice.
    """

    name: str
    fields: tuple[tuple[str, ValueType], ...]
    model: type | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(f"{self.name!r} cannot be the name of a record: use letters and digits", option="record")
        names = [name for name, _ in self.fields]
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ConfigError(f"{name!r} cannot be a field of {self.name}: use letters and digits", option="record")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"the record {self.name} has two fields {twice!r}", option="record")
        if not 1 <= len(names) <= _MAX_FIELDS:
            raise ConfigError(f"the record {self.name} has {len(names)} fields: 1 to {_MAX_FIELDS}", option="record")

    def get(self, key: str) -> ValueType | None:
        """The type of a field, None where there is no such field."""
        return next((kind for name, kind in self.fields if name == key), None)


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
        return hash(frozenset(self._fields.items()))  # the order does not count when two are compared

    def __repr__(self) -> str:
        return f"Record({self._fields!r})"
