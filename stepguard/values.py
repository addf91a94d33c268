"""What a step's value may be: its type, how it is read from a reply, rounded, and shown.

A type is written as text (``integer``, ``number``, ``decimal(3)``, ``decimal(2, half_even)``, ``boolean``,
``text``) and parsed into a `ValueType`. Values are plain Python objects:

=============  ===============================================================================
type           value
=============  ===============================================================================
number         `int`, or `fractions.Fraction` where it is not whole; exact
integer        `int`
decimal(p)     `decimal.Decimal` with p places; the exact result is rounded as declared
boolean        `bool`
text           `str`
=============  ===============================================================================

Rounding modes are those of the `decimal` module, in lower case. The default, ``half_up``, rounds a tie away from
zero, as trade and school do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, cast, get_args

from stepguard.errors import ConfigError, InexactError, ValueRefused
from stepguard.numerals import MAX_DIGITS, Exact, exact, format_exact, read_numeral

__all__ = ["NUMBER", "TEXT", "Rounding", "Value", "ValueType", "round_exact", "to_decimal"]

Value = int | Fraction | Decimal | bool | str
"""A value in the state of a run."""

Kind = Literal["number", "integer", "decimal", "boolean", "text"]
Rounding = Literal["half_up", "half_down", "half_even", "up", "down", "ceiling", "floor"]

ROUNDINGS: Final[tuple[str, ...]] = get_args(Rounding)
_KINDS: Final[tuple[str, ...]] = get_args(Kind)
_TYPE = re.compile(r"([a-z]+)(?:\(\s*([0-9]{1,9})\s*(?:,\s*([a-z_]+)\s*)?\))?\Z")
_TRUTH = {"true": True, "false": False}
_MAX_PLACES = 100
_TOO_LARGE: Final = 10**MAX_DIGITS


def round_exact(value: Exact, places: int, rounding: Rounding) -> Exact:
    """`value` rounded to `places` decimal places (negative: to tens, hundreds), exactly."""
    scale = Fraction(10) ** places
    scaled = Fraction(value) * scale
    whole, rest = divmod(scaled.numerator, scaled.denominator)  # floor, and 0 <= rest < denominator
    if rest:
        twice = 2 * rest
        tie = twice == scaled.denominator
        negative = scaled < 0
        above = twice > scaled.denominator
        match rounding:
            case "half_up":
                up = above or (tie and not negative)
            case "half_down":
                up = above or (tie and negative)
            case "half_even":
                up = above or (tie and whole % 2 == 1)
            case "up":
                up = not negative
            case "down":
                up = negative
            case "ceiling":
                up = True
            case "floor":
                up = False
        whole += up
    return exact(whole / scale)


def to_decimal(value: Exact, places: int) -> Decimal:
    """A whole multiple of 10**-places as a `Decimal` with exactly that many places; never rounds."""
    scaled = Fraction(value) * 10**places
    if scaled.denominator != 1:
        raise InexactError(f"{format_exact(value)} has more than {places} decimal places")
    digits = tuple(int(digit) for digit in str(abs(scaled.numerator)))
    # Built from its parts: arithmetic on Decimal would round to the context's precision.
    return Decimal((1 if scaled.numerator < 0 else 0, digits, -places))


@dataclass(frozen=True, slots=True)
class ValueType:
    """The declared type of an input or of the value a step sets.

    `places` and `rounding` belong to ``decimal`` alone.
    """

    kind: Kind = "number"
    places: int | None = None
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ConfigError(f"unknown type {self.kind!r}: use one of {', '.join(_KINDS)}", option="type")
        if self.kind == "decimal":
            if self.places is None or not 0 <= self.places <= _MAX_PLACES:
                raise ConfigError(f"decimal needs its places, 0 to {_MAX_PLACES}: decimal(2)", option="type")
            if self.rounding is None:
                object.__setattr__(self, "rounding", "half_up")
            elif self.rounding not in ROUNDINGS:
                modes = ", ".join(ROUNDINGS)
                raise ConfigError(f"unknown rounding mode {self.rounding!r}: use one of {modes}", option="type")
        elif self.places is not None or self.rounding is not None:
            raise ConfigError(f"{self.kind} takes no places or rounding mode", option="type")

    @classmethod
    def parse(cls, text: str | ValueType) -> ValueType:
        """``integer``, ``decimal(3)``, ``decimal(3, half_even)`` ... as a type.

        Raises:
            ConfigError: the text names no type.
        """
        if isinstance(text, ValueType):
            return text
        cached = _SIMPLE.get(text)
        if cached is not None:
            return cached
        match = _TYPE.match(text.strip().lower())
        if not match:
            raise ConfigError(
                f"{text!r} is not a type: use integer, number, decimal(2), boolean or text", option="type"
            )
        kind, places, rounding = match.groups()
        return cls(cast(Kind, kind), int(places) if places else None, cast("Rounding | None", rounding))

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.places}, {self.rounding})"
        return self.kind

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.kind in ("number", "integer", "decimal")

    def convert(self, value: Exact | bool | str) -> Value:
        """The value of an evaluated expression as this type; a decimal is rounded as declared.

        Raises:
            InexactError: the value is of another kind, or not whole where an integer is declared.
        """
        if self.kind == "text":
            if type(value) is str:
                return value
        elif self.kind == "boolean":
            if type(value) is bool:
                return value
        elif type(value) is int or type(value) is Fraction:
            if self.kind == "number":
                return value
            if self.kind == "integer":
                if type(value) is int:
                    return value
                raise InexactError(f"{format_exact(value)} is not an integer")
            assert self.places is not None
            assert self.rounding is not None
            return to_decimal(round_exact(value, self.places, self.rounding), self.places)
        raise InexactError(f"a value of type {self} was expected, found {show_value(value)}")

    def read(self, text: str) -> Value:
        """A value as a model or a user wrote it, exactly.

        A decimal may be written with fewer places, or with more where they are zeros.

        Raises:
            ValueRefused: the text is no value of this type, or could be read in more than one way.
        """
        if self.kind == "text":
            return text
        if self.kind == "boolean":
            truth = _TRUTH.get(text.strip().lower())
            if truth is None:
                raise ValueRefused("true or false was expected", text=text)
            return truth
        value = read_numeral(text).value
        if self.kind == "number":
            return value
        try:
            if self.kind == "integer":
                return self.convert(value)
            assert self.places is not None
            return to_decimal(value, self.places)
        except InexactError as error:
            raise ValueRefused(str(error), text=text) from None

    def accept(self, value: object) -> Value:
        """A Python value given by the caller: int, Fraction, Decimal, float, bool or str.

        A float stands for the decimal that Python prints for it (0.1 is one tenth). Numbers may be given as text.

        Raises:
            ValueRefused: the value is of another kind, not finite, or would have to be rounded.
        """
        if isinstance(value, str):
            if self.numeric and read_numeral(value).unit == "%":
                # 10% is 0.1, and a procedure that divides by 100 itself would do it twice.
                raise ValueRefused("a percent sign: give the number that the procedure expects", text=value)
            return self.read(value)
        if isinstance(value, bool):
            if self.kind == "boolean":
                return value
            raise ValueRefused(f"a truth value is not of type {self}", text=str(value))
        if self.kind in ("text", "boolean"):
            found = type(value).__name__
            raise ValueRefused(f"a value of type {self} was expected, found {found}", text=f"a {found}")
        if isinstance(value, int):
            number: Exact = int(value)
        elif isinstance(value, Fraction):
            number = exact(Fraction(value))
        elif isinstance(value, float | Decimal):
            return self.read(repr(float(value)) if isinstance(value, float) else str(value))
        else:
            found = type(value).__name__
            raise ValueRefused(f"a number was expected, found {found}", text=f"a {found}")
        if max(abs(number.numerator), number.denominator) >= _TOO_LARGE:
            raise ValueRefused(f"number too long: at most {MAX_DIGITS} digits are read", text="a number")
        if self.kind == "decimal":
            assert self.places is not None
            try:
                return to_decimal(number, self.places)
            except InexactError as error:
                raise ValueRefused(str(error), text=format_exact(number)) from None
        try:
            return self.convert(number)
        except InexactError as error:
            raise ValueRefused(str(error), text=format_exact(number)) from None


NUMBER: Final = ValueType()
TEXT: Final = ValueType("text")
_SIMPLE: Final[Mapping[str, ValueType]] = {
    "number": NUMBER,
    "integer": ValueType("integer"),
    "boolean": ValueType("boolean"),
    "text": TEXT,
}


def to_exact(value: Value) -> Exact | bool | str:
    """A state value as expressions compute with it."""
    if type(value) is Decimal:
        return exact(Fraction(value))
    return cast("Exact | bool | str", value)


def show_value(value: Value) -> str:
    """A value as it stands in prompts, tables and JSON: exact, in the notation a reader expects."""
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is Decimal:
        return f"{value:f}"
    if type(value) is Fraction:
        return format_exact(value)
    return cast(str, value)
