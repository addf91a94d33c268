"""The types of values: how a value is read from a reply, rounded and written.

A type is written as text and parsed into a `ValueType`:

=========================  ====================================================================  ==================
type                       values                                                                as Python objects
=========================  ====================================================================  ==================
number                     any exact number                                                      int or Fraction
number(within 0.01)        as number; a claim may differ from the exact result by so much        int or Fraction
integer                    whole numbers                                                         int
decimal(2)                 numbers with 2 decimal places; the exact result is rounded            Decimal
decimal(2, half_even)      the same, rounded in another mode than ``half_up``                    Decimal
percent                    a ratio, written as a percentage: 28% is 7/25                         int or Fraction
percent(1)                 a ratio, written as a percentage with 1 decimal place: 28.5%          Decimal
money(USD)                 an amount in a currency, rounded to its smallest unit                 Decimal
money(EUR, 4, half_even)   the same with other places and another mode                           Decimal
one_of(low, "very high")   one of the listed texts                                               str
boolean                    true or false                                                         bool
text                       any text                                                              str
date                       a day: ``2026-01-31``, ``31 January 2026``                            datetime.date
time                       a time of day: ``14:30``                                              datetime.time
duration                   a span of fixed length: ``30 days``, ``1 h 30 min``                   datetime.timedelta
period                     a span of the calendar: ``3 months``, ``5 working days``              Period
quantity(kg)               a number with a unit, converted to this one; also ``quantity(kg, 2)`` Amount
list of money(USD)         several values of one type, written as a JSON array                   tuple
Item                       a record, by the name it is declared under; written as a JSON object  Record
=========================  ====================================================================  ==================

Percentages. The value of a ``percent`` is the ratio, so that ``price * rate`` is what it says. A reply writes the
percentage, ``28%`` or ``28``; 0.28 would be read as 0.28%. An input is given as text with its sign, ``"28%"``,
because a bare number could be meant either way.

Money. An amount may be written with its currency or without any; another currency is refused, never converted.
Where the type has fewer than three places, ``1.000`` is refused: it may be one or a thousand.
``$`` stands for every dollar and peso, ``¥`` for yen and yuan.

Quantities. The unit is written with the number, or another one that converts to it. A unit of one's own stands in
quotes and is a measure of itself: ``quantity("IU")``, ``quantity("IU"/ml)``.

Records and lists. A reply writes them as JSON, their values as they are written alone, or as JSON's own numbers.

Tolerance. Values are exact unless a step declares ``within``: an amount below 1, or a percentage of the exact result
of at most 10%. The value that was claimed is what later steps read, and the verdict records the tolerance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final, Literal, cast, get_args, get_origin

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.currencies import CODES, minor_places
from stepguard.language.dates import DateOrder
from stepguard.language.measures import (
    MEASURES,
    accept_measure,
    convert_measure,
    holds_measure,
    read_measure,
    write_measure,
)
from stepguard.language.quantities import Unit, write_unit
from stepguard.language.records import RecordType
from stepguard.language.scalars import (
    accept_scalar,
    convert_scalar,
    holds_scalar,
    python_scalar,
    read_scalar,
    write_scalar,
)
from stepguard.language.structures import (
    accept_structure,
    convert_structure,
    holds_structure,
    read_structure,
    write_structure,
)
from stepguard.language.tolerances import Tolerance
from stepguard.language.type_notation import EXAMPLES, LIST_OF, check_options, type_parts, write_option
from stepguard.language.values import ROUNDINGS, Rounding, Value, to_exact

Kind = Literal[
    "number", "integer", "decimal", "percent", "money", "one_of", "boolean", "text", "date", "time", "duration",
    "period", "quantity", "list", "record",
]  # fmt: skip

_KINDS: Final[tuple[str, ...]] = get_args(Kind)
_SCALAR_KINDS: Final = tuple(kind for kind in _KINDS if kind not in ("list", "record"))
NUMERIC: Final = frozenset({"number", "integer", "decimal", "percent", "money"})
"""The kinds whose values are numbers."""

_MAX_PLACES: Final = 100  # rounding works on integers of so many digits
_MAX_DEPTH: Final = 8
"""How deep lists and records may be nested in each other."""
# Digits with a power of ten behind them (7.030e3) have one in front of their point, which groups nothing.
_THOUSANDS: Final = re.compile(
    r"(?<![0-9.,])(?![1-9]\.[0-9]{3}(?:[eE][-+]?[0-9]| ?[x\u00d7] ?10\^))[1-9][0-9]{0,2}\.[0-9]{2}0(?![0-9])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """The declared type of an input or of the value a step sets; see the table of this module.

    Attributes:
        kind: the word in front of the brackets.
        places: decimal places of a ``decimal``, of the percentage of a ``percent``, of the amounts of ``money``.
        rounding: how the exact result is brought to these places.
        currency: the ISO 4217 code of ``money``.
        options: the texts of ``one_of``.
        within: the tolerance of a ``number``.
        unit: the unit of a ``quantity``, as `stepguard.language.quantities` has it.
        items: the type of each value of a ``list``.
        record: the fields of a ``record``.

    Raises:
        ConfigError: the parts do not make a type.
    """

    kind: Kind = "number"
    places: int | None = None
    rounding: Rounding | None = None
    currency: str | None = None
    options: tuple[str, ...] = ()
    within: Tolerance | None = None
    unit: Unit | None = None
    items: ValueType | None = None
    record: RecordType | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ConfigError(f"unknown type {self.kind!r}: use {EXAMPLES}", option="type")
        if (self.currency is not None) != (self.kind == "money"):
            raise ConfigError("money needs its currency, and nothing else has one: money(USD)", option="type")
        if self.currency is not None:
            if self.currency not in CODES:
                raise ConfigError(f"{self.currency!r} is no ISO 4217 code of a currency, such as USD", option="type")
            if self.places is None:
                object.__setattr__(self, "places", minor_places(self.currency))
        self._check_places()
        if (self.options != ()) != (self.kind == "one_of"):
            raise ConfigError("one_of needs its options, and nothing else has any: one_of(yes, no)", option="type")
        if self.options:
            check_options(self.options)
        if self.within is not None and self.kind != "number":
            raise ConfigError(f"a tolerance goes with number, not with {self.kind}", option="type")
        parts = {"quantity": self.unit, "list": self.items, "record": self.record}
        if any((part is not None) != (self.kind == kind) for kind, part in parts.items()):
            raise ConfigError(f"{self.kind} is not a type: use {EXAMPLES}", option="type")
        if self.depth > _MAX_DEPTH:
            raise ConfigError(f"lists and records are nested at most {_MAX_DEPTH} deep", option="type")

    def _check_places(self) -> None:
        if self.kind == "decimal" and self.places is None:
            raise ConfigError(f"decimal needs its places, 0 to {_MAX_PLACES}: decimal(2)", option="type")
        if self.places is None:
            if self.rounding is not None:
                raise ConfigError(f"a rounding mode goes with places, {self.kind} has none here", option="type")
            return
        if self.kind not in ("decimal", "percent", "money", "quantity"):
            raise ConfigError(f"{self.kind} takes no places or rounding mode", option="type")
        if type(self.places) is not int or not 0 <= self.places <= _MAX_PLACES:
            raise ConfigError(f"places are a number from 0 to {_MAX_PLACES}, not {self.places!r}", option="type")
        if self.rounding is None:
            object.__setattr__(self, "rounding", "half_up")
        elif self.rounding not in ROUNDINGS:
            modes = ", ".join(ROUNDINGS)
            raise ConfigError(f"unknown rounding mode {self.rounding!r}: use one of {modes}", option="type")

    @classmethod
    def parse(cls, text: TypeLike, *, records: Mapping[str, RecordType] | None = None) -> ValueType:
        """A type as it is written: ``integer``, ``decimal(3, half_even)``, ``one_of(yes, no)``, ``list of Item`` ...

        Args:
            text: the type; or a class of records, such as a pydantic model (see `stepguard.language.models`).
            records: the record types that it may name.

        Raises:
            ConfigError: the text names no type.
        """
        if isinstance(text, ValueType):
            return text
        if not isinstance(text, str) and (isinstance(text, type) or get_origin(text) is not None):
            # Imported here, since that module imports this one.
            from stepguard.language.models import value_type_of

            return value_type_of(text)
        if not isinstance(text, str):
            raise ConfigError(f"a type is written as text, not {text!r:.60}: use {EXAMPLES}", option="type")
        cached = _SIMPLE.get(text)
        if cached is not None:
            return cached
        if (behind := LIST_OF.match(text)) is not None:
            # Counted before parsing, which recurses once for each `list of`.
            if len(LIST_OF.findall(text)) > _MAX_DEPTH:
                raise ConfigError(f"lists and records are nested at most {_MAX_DEPTH} deep", option="type")
            return cls(kind="list", items=cls.parse(text[behind.end() :], records=records))
        if records is not None and (record := records.get(text.strip())) is not None:
            return cls(kind="record", record=record)
        kind, given = type_parts(text, _SCALAR_KINDS)
        return cls(kind=cast(Kind, kind), **given)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"ValueType.parse({str(self)!r})"

    def __str__(self) -> str:
        if self.options:
            return f"one_of({', '.join(write_option(each) for each in self.options)})"
        if self.within is not None:
            return f"number(within {self.within})"
        if self.items is not None:
            return f"list of {self.items}"
        if self.record is not None:
            return self.record.name
        unit = None if self.unit is None else write_unit(self.unit, quote='"')
        inside = [str(each) for each in (self.currency, unit, self.places, self.rounding) if each is not None]
        return f"{self.kind}({', '.join(inside)})" if inside else self.kind

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.kind in NUMERIC

    @property
    def structured(self) -> bool:
        """Whether values have parts: lists and records."""
        return self.kind in ("list", "record")

    @property
    def depth(self) -> int:
        """How deep lists and records are nested in this type; 0 for a scalar."""
        inner = [self.items] if self.items is not None else []
        inner += [kind for _, kind in self.record.fields] if self.record is not None else []
        return 1 + max(kind.depth for kind in inner) if inner else 0

    @property
    def scalar(self) -> bool:
        """Whether an expression of the arithmetic core can have such a value: a number, a truth value or a text."""
        return not self.structured and self.kind not in MEASURES

    @property
    def scale(self) -> int | None:
        """Decimal places of the values themselves; a percentage with 1 place is a ratio with 3."""
        return self.places + 2 if self.kind == "percent" and self.places is not None else self.places

    @property
    def choices(self) -> int | None:
        """The number of possible values; None where it is unlimited, as for a record with an unlimited field."""
        if self.record is not None:
            parts = [kind.choices for _, kind in self.record.fields]
            return None if None in parts else prod(filter(None, parts))
        return 2 if self.kind == "boolean" else len(self.options) or None

    def may_group(self, text: str) -> bool:
        """Whether a point in a text could group thousands: three digits follow, and this type has fewer places.

        Only where the last of them is 0; any other is a place too many already.
        """
        fewer = self.kind == "integer" or (self.places is not None and self.places < 3)
        return fewer and _THOUSANDS.search(text) is not None

    def convert(self, value: Value) -> Value:
        """Convert the value of an expression to this type, rounding where the type declares it.

        Raises:
            InexactError: the value is of another kind, or not whole where an integer is declared.
        """
        value = cast(Value, to_exact(value))
        if self.structured:
            return convert_structure(self, value)
        if self.kind in MEASURES:
            return convert_measure(self, value)
        return convert_scalar(self, value)

    def read(self, text: str, *, order: DateOrder | None = None) -> Value:
        """Read a value as a model wrote it, exactly.

        Fewer places than declared may be written, or more where they are zeros. Of ``one_of`` and ``boolean``, case,
        quotes and a full stop around the value do not matter.

        Args:
            text: what was written.
            order: how dates such as ``03/04/2026`` are meant; None refuses them.

        Raises:
            ValueRefused: the text is no value of this type, or could be read in more than one way.
        """
        if self.kind == "text":
            return text
        if self.structured:
            return read_structure(self, text, order=order)
        # Before any reading: `1.000` is a thousand in German notation, and would quietly be one.
        if self.may_group(text):
            raise ValueRefused("a decimal point, or one that groups thousands? leave it out, or the last 0", text=text)
        if self.kind in MEASURES:
            return read_measure(self, text, order=order)
        return read_scalar(self, text)

    def accept(self, value: object) -> Value:
        """Accept a Python value from the caller: int, Fraction, Decimal, float, bool, str, or a scalar of numpy.

        Of the other types: ``date``, ``time``, ``timedelta``, `Period` and `Amount` or their text; for a list a list or
        a tuple, for a record a mapping, an instance of the class that it was made from, or JSON.

        A float stands for the decimal that Python prints for it (0.1 is one tenth). Numbers may be given as text, a
        percentage has to be.

        Raises:
            ValueRefused: the value is of another kind, not finite, or would have to be rounded.
        """
        if self.structured:
            return accept_structure(self, value)
        value = python_scalar(value)
        return accept_measure(self, value) if self.kind in MEASURES else accept_scalar(self, value)

    def write(self, value: Value) -> str:
        """A value of this type as a reply writes it; `read` gives it back."""
        if self.structured:
            return write_structure(self, value)
        return write_measure(self, value) if self.kind == "quantity" else write_scalar(self, value)

    def holds(self, value: object) -> bool:
        """Whether a Python object is a value of this type."""
        if self.structured:
            return holds_structure(self, value)
        if self.kind in MEASURES:
            return holds_measure(self, value)
        return holds_scalar(self, value)


TypeLike = ValueType | str | type
"""Whatever names a type: a `ValueType`, its notation, or a class of the caller's."""

NUMBER: Final = ValueType()
TEXT: Final = ValueType(kind="text")
_SIMPLE: Final[Mapping[str, ValueType]] = {
    str(each): each for each in (NUMBER, TEXT, ValueType(kind="integer"), ValueType(kind="boolean"))
}
