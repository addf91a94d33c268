"""Reading, accepting, converting and writing values without parts and units: numbers, truth values, texts, options."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, SupportsInt, cast

from stepguard.errors import InexactError, ValueRefused
from stepguard.language.currencies import compatible
from stepguard.language.digits import MAX_DIGITS, Exact, exact, format_exact
from stepguard.language.numerals import read_numeral
from stepguard.language.type_notation import fold_option
from stepguard.language.values import Value, encodable, round_exact, show_value, to_decimal, to_exact

if TYPE_CHECKING:
    from stepguard.language.value_types import ValueType

_TRUTH: Final = {"true": True, "false": False}
_TOO_LARGE: Final = 10**MAX_DIGITS
_CLASSES: Final[Mapping[str, tuple[type, ...]]] = {
    "number": (int, Fraction), "percent": (int, Fraction), "integer": (int,), "boolean": (bool,), "text": (str,),
}  # fmt: skip
"""The classes of values that have no declared places."""


def read_scalar(kind: ValueType, text: str) -> Value:
    """A value as it is written.

    Raises ValueRefused: it is none of this type, or could be read in more than one way.
    """
    if kind.kind == "boolean":
        truth = _TRUTH.get(fold_option(text))
        if truth is None:
            raise ValueRefused("true or false was expected", text=text)
        return truth
    if kind.kind == "one_of":
        found = fold_option(text)
        for option in kind.options:
            if fold_option(option) == found:
                return option
        raise ValueRefused(f"one of {', '.join(kind.options)} was expected", text=text)
    # Only money is read by the name of a currency: `5 yen` is no plain number.
    numeral = read_numeral(text, named=kind.kind == "money")
    value = numeral.value
    if kind.currency is not None:
        if numeral.unit is not None and not compatible(numeral.unit, kind.currency):
            raise ValueRefused(f"an amount in {kind.currency} was expected, found {numeral.unit}", text=text)
    elif kind.kind == "percent" and numeral.unit != "%":
        if numeral.unit is not None:
            raise ValueRefused(f"a percentage was expected, found {numeral.unit}", text=text)
        value = exact(Fraction(value, 100))
    return _exactly(kind, value, text)


def accept_scalar(kind: ValueType, value: object) -> Value:
    """Accept the caller's value, an object or text. Raises ValueRefused: it is none of this type."""
    if isinstance(value, str):
        # It would fail later, inside the client that encodes the request.
        if not encodable(value):
            raise ValueRefused("half of a character (a lone surrogate) cannot be sent", text=ascii(value)[1:-1])
        if kind.numeric and (read_numeral(value).unit == "%") != (kind.kind == "percent"):
            # 10% is 0.1, and a procedure that divides by 100 itself would do it twice.
            signed = "a percentage without its sign" if kind.kind == "percent" else "a percent sign"
            wanted = "it with the sign, as in 5%" if kind.kind == "percent" else "a plain number"
            raise ValueRefused(f"{signed}: give {wanted}", text=value)
        return kind.read(value)
    # Before the numbers, since a bool is an int in Python.
    if isinstance(value, bool):
        if kind.kind == "boolean":
            return value
        raise ValueRefused(f"a truth value is not of type {kind}", text=str(value))
    found = type(value).__name__
    if not kind.numeric:
        raise ValueRefused(f"a value of type {kind} was expected, found {found}", text=f"a {found}")
    if kind.kind == "percent":
        raise ValueRefused("it could be meant as a ratio: give a percentage as text such as '5%'", text=str(value))
    if isinstance(value, float | Decimal):
        # repr gives the shortest decimal that is this float; Fraction(0.1) would be its binary value.
        written = str(value) if isinstance(value, Decimal) else repr(float(value))
        return _exactly(kind, read_numeral(written).value, written)
    if not isinstance(value, int | Fraction):
        raise ValueRefused(f"a number was expected, found {found}", text=f"a {found}")
    number = exact(Fraction(value))
    # Before it is formatted: Python refuses to print integers of more than 4300 digits.
    if max(abs(number.numerator), number.denominator) >= _TOO_LARGE:
        raise ValueRefused(f"number too long: at most {MAX_DIGITS} digits are read", text="a number")
    return _exactly(kind, number, format_exact(number))


def convert_scalar(kind: ValueType, value: Value) -> Value:
    """Convert the value of an expression. Raises InexactError: it is of another kind, or no integer."""
    # By `type`: a bool is an int to isinstance, and True must not become the number 1.
    if type(value) is int or type(value) is Fraction:
        if kind.scale is not None:
            assert kind.rounding is not None
            return to_decimal(round_exact(value, kind.scale, kind.rounding), kind.scale)
        if kind.kind in ("number", "percent") or (kind.kind == "integer" and type(value) is int):
            return value
        if kind.kind == "integer":
            raise InexactError(f"{format_exact(value)} is not an integer")
    elif type(value) in (bool, str) and holds_scalar(kind, value):
        return value
    raise InexactError(f"a value of type {kind} was expected, found {show_value(value)}")


def holds_scalar(kind: ValueType, value: object) -> bool:
    """Whether a Python object is a value of this type."""
    if kind.scale is not None:
        return type(value) is Decimal
    return value in kind.options if kind.kind == "one_of" else type(value) in _CLASSES[kind.kind]


def write_scalar(kind: ValueType, value: Value) -> str:
    """A value as a reply writes it: a percentage with its sign."""
    if kind.kind != "percent":
        return show_value(value)
    percentage = exact(Fraction(cast(Exact, to_exact(value))) * 100)
    return f"{format_exact(percentage) if kind.places is None else show_value(to_decimal(percentage, kind.places))}%"


def _exactly(kind: ValueType, value: Exact, text: str) -> Value:
    """A number as this type without any rounding."""
    try:
        return convert_scalar(kind, value) if kind.scale is None else to_decimal(value, kind.scale)
    except InexactError as error:
        reason = f"more than {kind.places} decimal places" if kind.kind == "percent" else str(error)
        raise ValueRefused(reason, text=text) from None


def python_scalar(value: object) -> object:
    """Convert a scalar of numpy to Python's own, without importing numpy."""
    if isinstance(value, str):
        return str.__str__(value)  # a plain str of any subclass, whatever its own __str__ does
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        match getattr(getattr(value, "dtype", None), "kind", None):
            case "b":
                return bool(value)
            case "i" | "u":
                return int(cast("SupportsInt", value))
            case "f":
                return Decimal(str(value))  # the digits that it prints: those of a float32 are fewer
            case "U":
                return str(value)
    return value
