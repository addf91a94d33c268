"""Reads how long an endpoint asks to wait, from a header, the body of its error or the words in it."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "m": 60.0, "s": 1.0, "h": 3600.0, "d": 86400.0}
# Every repetition is bounded: the words are a server's, and may be made to take long.
_SPAN: Final = (
    r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{1,9})(?:\.[0-9]{1,12})?\s{0,3}"
    r"(?:ms\b|milliseconds?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)"
)
_ISO = re.compile(r"P([0-9]{1,9}D)?(?:T((?:[0-9.]{1,20}[HMS]){1,3}))?", re.IGNORECASE)
_PARTS = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?)\s*([a-z]+)", re.IGNORECASE)
_SPANS = re.compile(rf"\s*(?:{_SPAN}\s{{0,3}}(?:and\s)?){{1,4}}\s*", re.IGNORECASE)
# No digit and no end of a sentence between the two: in "try again. Your limit is 60 s" nothing is asked.
_WORDS = re.compile(
    r"(?:try(?:ing)? again|retry(?:ing)?|wait|resets?|available)\b[^.\n0-9]{0,40}?"
    rf"\b((?:{_SPAN}\s{{0,3}}(?:and\s)?){{1,4}})(?![a-z0-9])",
    re.IGNORECASE,
)
# A number without a unit counts behind the name of the header alone, whose unit is the second.
_BARE_WORDS = re.compile(r"\bretry[- ]after:? ([0-9]{1,6})(?![0-9.]|\s*\w)", re.IGNORECASE)
_KEY = re.compile(
    r"(?:(?:retry|wait|cooldown)(?:after|delay|in|at|time)?|resets?(?:at|in)|estimatedtime)"
    r"(?P<unit>ms|milliseconds|s|secs?|seconds)?"
)
_LETTERS = re.compile(r"[^a-z]")  # Retry-After, retryAfter and retry_after are one name
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
# In the RateLimit header: a limit that is used up (r=0), and the seconds until it begins anew (t).
_POLICY = re.compile(r"\br=0\b[^,]*\bt=([0-9]{1,9})")
_FIRST_MOMENT: Final = 1e9
"""From here on a number of seconds is a moment since 1970, and a thousand times that one in milliseconds."""
_LONGEST_RESET: Final = 2 * 86_400.0
"""What begins anew later than that is an account, and no limit that anybody waits for."""
_DEEPEST: Final = 8  # with the next, so that a hostile body costs little
_MOST_NODES: Final = 500
_LONGEST_TEXT: Final = 20_000


def asked_delay(headers: Mapping[str, Any], body: object, words: str = "") -> float | None:
    """The seconds that an endpoint asks to wait, None where it does not say.

    Args:
        headers: those of its response, by any case of their names that the mapping finds.
        body: the body of its error, as JSON data: ``{"retryDelay": "3s"}`` at any place of it counts.
        words: the words of the error: "try again in 1.2s".
    """
    for seconds in (_in_headers(headers), _in_body(body), _in_words(words[:2000]), _until_reset(headers)):
        if seconds is not None:  # the surest comes first
            return seconds
    return None


def _in_headers(headers: Mapping[str, Any]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if not isinstance(text, str):
            continue
        parts = [part.strip() for part in text.split(",")]  # proxies add a second one
        given = parts if all(map(_NUMBER.fullmatch, parts)) else [text]
        if seconds := [wait for wait in (_seconds(part, unit) for part in given) if wait is not None]:
            return max(seconds)
    return None


def _until_reset(fields: Mapping[str, Any]) -> float | None:
    """The seconds until the limits that are used up begin anew: the longest of ``x-ratelimit-reset-tokens`` ..."""
    try:
        named = {str(name).lower(): value for name, value in fields.items()}
    except AttributeError:
        return None
    waits = [_seconds(match[1], 1.0) for match in _POLICY.finditer(str(named.get("ratelimit", ""))[:500])]
    for name, value in named.items():
        if "ratelimit" in name and "reset" in name and str(named.get(name.replace("reset", "remaining"))) == "0":
            waits.append(_seconds(value, 1.0))
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(given: object, unit: float) -> float | None:
    """The seconds that a value means: a number, a span (``3.5s``), a moment or a Duration of protocol buffers."""
    if isinstance(given, Mapping):
        parts = [given.get("seconds", 0), given.get("nanos", 0)]
        if given.keys().isdisjoint(("seconds", "nanos")) or not all(type(part) in (int, float) for part in parts):
            return None
        return _plain(lambda: parts[0] + parts[1] / 1e9)
    if isinstance(given, str):
        text = given.strip()
        if (span := _ISO.fullmatch(text)) is not None:  # PT1M30S
            text = "".join(filter(None, span.groups()))
        if _SPANS.fullmatch(text):
            return _span(text)
        if not _NUMBER.fullmatch(text):
            return _until(text)
        given = float(text)
    if type(given) not in (int, float):
        return None
    return _plain(lambda: _after_now(float(given)) if given >= _FIRST_MOMENT else float(given) * unit)  # type: ignore[arg-type, operator]


def _plain(compute: Callable[[], float]) -> float | None:
    try:
        seconds = compute()
    except OverflowError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _after_now(moment: float) -> float:
    return (moment / 1000 if moment >= 1000 * _FIRST_MOMENT else moment) - time.time()


def _until(text: str) -> float | None:
    """The seconds to a date, against this machine's clock."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            date = read(text)
            return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time())
    return None


def _in_body(body: object) -> float | None:
    waiting: list[tuple[object, int]] = [(body, 0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node, depth = waiting.pop(0)
        inside: Iterable[object] = ()
        if isinstance(node, Mapping):
            for name, value in node.items():
                seconds = _labelled_delay(str(name), value)
                if seconds is not None:
                    return seconds
            if (seconds := _until_reset(node)) is not None:  # headers that a gateway quotes
                return seconds
            inside = node.values()
        elif isinstance(node, list):
            inside = node
        elif isinstance(node, str):  # the body of another error
            with suppress(ValueError, RecursionError):
                inside = (json.loads(node),)
        if depth < _DEEPEST:
            waiting += [(item, depth + 1) for item in inside if isinstance(item, Mapping | list) or _is_object(item)]
    return None


def _is_object(given: object) -> bool:
    return isinstance(given, str) and given.startswith(("{", "[")) and len(given) < _LONGEST_TEXT


def _labelled_delay(name: str, value: object) -> float | None:
    key = _KEY.fullmatch(_LETTERS.sub("", name.lower())) if len(name) < 40 else None
    if key is None or (isinstance(value, int | float) and value < 0):
        return None
    seconds = _seconds(value, 0.001 if (key["unit"] or "").startswith("m") else 1.0)
    renewal = key[0].startswith("reset") and seconds is not None and seconds > _LONGEST_RESET
    return None if renewal else seconds


def _in_words(words: str) -> float | None:
    if (match := _WORDS.search(words)) is not None:
        return _span(match[1])
    return None if (bare := _BARE_WORDS.search(words)) is None else float(bare[1])


def _span(text: str) -> float:
    total = 0.0
    for number, unit in _PARTS.findall(text):
        name = unit.lower()
        if name == "and":
            continue
        total += float(number.replace(",", "")) * (
            _UNITS["ms"] if name == "ms" or name.startswith("mil") else _UNITS[name[0]]
        )
    return total
