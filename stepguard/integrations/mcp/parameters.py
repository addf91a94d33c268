"""The parameters of the tools of the MCP server: their schemas, and values as they came in JSON, without a float."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

_FLOAT_DIGITS: Final = 15
"""Decimals of up to this many digits survive the way through a float."""
_SCALAR: Final = WithJsonSchema({"type": ["string", "number", "boolean"]})


def _exact(given: object) -> object:
    """A value as it came in JSON, without a float."""
    if isinstance(given, bool | int | str | Decimal):
        return given
    if not isinstance(given, float):
        raise ValueError("a value is text, a number or a truth value")
    if not math.isfinite(given):
        raise ValueError("NaN and infinity are no values")
    # repr: the shortest decimal of the float, which is what was written where that had at most 15 digits.
    number = Decimal(repr(given))
    if len(number.normalize().as_tuple().digits) > _FLOAT_DIGITS:
        raise ValueError('a number of so many digits is rounded on its way: give it as text, such as "0.1"')
    return number


def _as_text(given: object) -> str:
    exact = _exact(given)
    if isinstance(exact, bool):
        return "true" if exact else "false"
    return f"{exact:f}" if isinstance(exact, Decimal) else str(exact)


ProcedureText = Annotated[
    str, Field(description="a procedure as text (`inputs: x, y`, then `t1 = x + y` ...), or the name of one")
]
ValuesGiven = Annotated[
    dict[str, Annotated[Any, BeforeValidator(_exact), _SCALAR]],
    Field(description='values by name; decimals as text, such as {"price": "24.90"}'),
]
ValueClaimed = Annotated[
    str, BeforeValidator(_as_text), _SCALAR, Field(description='the value of the step, such as "74.70"')
]
ModelAsked = Annotated[str | None, Field(description="one of the server's models; its first by default")]
RunName = Annotated[
    str | None,
    Field(description="a name for this run, such as an order's: the same call with the same name goes on with it"),
]
WorkingShown = Annotated[
    str | None, Field(description='how it was worked out, such as "24.90 * 3"; without it the value alone is checked')
]
