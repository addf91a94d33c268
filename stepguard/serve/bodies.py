"""Read the JSON of requests: estimate its cost before parsing, and note whatever another parser may read otherwise."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import inf
from typing import Any, Final

from stepguard.serve.admission import Charge
from stepguard.serve.errors import HttpProblem, wrong_request
from stepguard.serve.limits import Limits

# A text that is not closed goes to the end, or each quote in it would be tried in turn.
_TEXT: Final = re.compile(rb'"(?:[^"\\]++|\\.)*"?', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_LARGE: Final = 64 * 1024
"""Larger bodies are parsed in a thread."""
_VALUE_BYTES: Final = 100
"""About how many bytes a JSON value takes in memory, with its place in a container."""
_DIGITS: Final = 1000  # converting digits takes time with their square


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The JSON object that a body is.

    Attributes:
        data: what it holds; of a name that stands twice the last value.
        twice: the values of each name at its top that stands there twice.
        doubt: why it cannot be read exactly; empty where it can. It may be passed on, and no run is made of it.
        rounded: whether a number in `data` lost digits: who needs them reads them from the body.
    """

    data: dict[str, Any]
    twice: Mapping[str, list[Any]]
    doubt: str
    rounded: bool = False


async def read_body(body: bytes, limits: Limits, charge: Charge) -> RequestBody:
    """Read the JSON object that a body is.

    Raises Problem: it is none, or one of more than the limits allow; or there is no room for it.
    """
    work = asyncio.to_thread if len(body) > _LARGE else _at_once
    values = await work(_measure, body, limits)
    # The text of it, and the texts in it, of one to four bytes a character.
    charge.resize(len(body) * (3 if body.isascii() else 9) + values * _VALUE_BYTES)
    read = await work(_decode, body)
    if read is None:
        raise wrong_request("the body is no JSON object", code="invalid_json")
    return read


async def _at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def _measure(body: bytes, limits: Limits) -> int:
    """Estimate the number of values in a body; never too low, if it is JSON."""
    bare = _TEXT.sub(b"", body)
    values = 1 + sum(map(bare.count, (b",", b"[", b"{")))
    if values > limits.values:
        raise wrong_request(f"the body holds more than {limits.values:,} values", status=413, code="request_too_large")
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket[0] in b"[{" else -1
        # Before json.loads, which would end in a RecursionError.
        if depth > limits.depth:
            raise wrong_request(f"the body is nested deeper than {limits.depth} times", code="invalid_json")
    return values


def _decode(body: bytes) -> RequestBody | None:
    doubts: list[str] = []
    twice: dict[str, list[Any]] = {}
    rounded = False

    def constant(name: str) -> float:
        # NaN and Infinity: Python reads them, other parsers refuse the whole body.
        doubts.append(f"{name} is no JSON")
        return float(name.replace("Infinity", "inf"))

    def broken(digits: str) -> float:
        nonlocal rounded
        number = float(digits)
        try:
            rounded = rounded or abs(number) == inf or Decimal(str(number)) != Decimal(digits)
        except InvalidOperation:  # a power that nothing has
            rounded = True
        return number

    def whole(digits: str) -> int:
        if len(digits) > _DIGITS:
            doubts.append(f"a number has more than {_DIGITS:,} digits")
            return 0
        return int(digits)

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        parsed = dict(members)
        twice = {}  # of the object that is read last, which is the outermost
        if len(parsed) != len(members):
            doubts.append("a name stands twice in one object")
            for name, value in members:
                twice.setdefault(name, []).append(value)
            twice = {name: values for name, values in twice.items() if len(values) > 1}
        return parsed

    try:
        parsed = json.loads(
            body.decode("utf-8-sig"),
            parse_constant=constant,
            parse_float=broken,
            parse_int=whole,
            object_pairs_hook=pairs,
        )
    except (ValueError, RecursionError):
        return None
    return RequestBody(parsed, twice, doubts[0] if doubts else "", rounded) if isinstance(parsed, dict) else None


def read_object(body: bytes) -> dict[str, Any] | None:
    """Decode a response of the upstream as a JSON object; None where it is not one."""
    read = _decode(body)
    return None if read is None else read.data


def check_messages(data: dict[str, Any], limits: Limits) -> None:
    """See that a request does not hold more messages than it may. Raises Problem: it does."""
    for name in ("messages", "input"):
        messages = data.get(name)
        if isinstance(messages, list) and len(messages) > limits.messages:
            raise HttpProblem(
                f"the request holds {len(messages):,} messages: at most {limits.messages:,}",
                status=413,
                kind="invalid_request_error",
                code="request_too_large",
                param=name,
            )
