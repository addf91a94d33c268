"""How long an endpoint asks to wait: in a header, in the body of its error, or in the words of it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "m": 60.0, "s": 1.0, "h": 3600.0, "d": 86400.0}
_SPAN: Final = (
    r"[0-9]{1,9}(?:\.[0-9]{1,12})?\s{0,3}"
    r"(?:ms\b|milliseconds?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)"
)
_PARTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", re.IGNORECASE)
_SPANS = re.compile(rf"\s*(?:{_SPAN}\s{{0,3}}(?:and\s)?){{1,4}}\s*", re.IGNORECASE)
_WORDS = re.compile(
    r"(?:try(?:ing)? again|retry(?:ing)?|wait|resets?|available)\b[^.\n0-9]{0,40}?"
    rf"\b((?:{_SPAN}\s{{0,3}}(?:and\s)?){{1,4}})(?![a-z0-9])",
    re.IGNORECASE,
)
_KEY = re.compile(r"(?:retry|wait)(?:after|delay|in)?(?P<unit>ms|milliseconds|s|secs?|seconds)?")
_LETTERS = re.compile(r"[^a-z]")  # Retry-After, retryAfter and retry_after are one name
_DEEPEST: Final = 6  # with the next, so that a hostile body costs little
_MOST_NODES: Final = 500


def asked_delay(headers: Mapping[str, Any], body: object, words: str = "") -> float | None:
    """The seconds that an endpoint asks to wait, None where it does not say.

    Args:
        headers: those of its response, by any case of their names that the mapping finds.
        body: the body of its error, as JSON data: ``{"retryDelay": "3s"}`` at any place of it counts.
        words: the words of the error: "try again in 1.2s".
    """
    for found in (_in_headers(headers), _in_body(body), _in_words(words[:2000])):  # the surest first
        if found is not None:
            return found
    return None


def _in_headers(headers: Mapping[str, Any]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if not isinstance(text, str):
            continue
        try:
            seconds: float | None = max(float(part) for part in text.split(",")) * unit  # proxies add a second one
        except ValueError:
            seconds = _span(text) if _SPANS.fullmatch(text) else _until(text)
        if seconds is not None and math.isfinite(seconds):
            return max(seconds, 0.0)
    return None


def _until(text: str) -> float | None:
    """The seconds to a date, against this machine's clock."""
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()


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
            inside = node.values()
        elif isinstance(node, list):
            inside = node
        if depth < _DEEPEST:
            waiting += [(each, depth + 1) for each in inside if isinstance(each, Mapping | list)]
    return None


def _labelled_delay(name: str, value: object) -> float | None:
    key = _KEY.fullmatch(_LETTERS.sub("", name.lower())) if len(name) < 40 else None
    if key is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and _SPANS.fullmatch(value):
        return _span(value)
    try:
        if isinstance(value, Mapping):  # a Duration of protocol buffers
            parts = [value.get("seconds", 0), value.get("nanos", 0)]
            if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in parts):
                return None
            value = parts[0] + parts[1] / 1e9  # nanoseconds
        seconds = float(value) * (0.001 if (key["unit"] or "").startswith("m") else 1.0)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _in_words(words: str) -> float | None:
    found = _WORDS.search(words)
    return None if found is None else _span(found[1])


def _span(text: str) -> float:
    total = 0.0
    for number, unit in _PARTS.findall(text):
        name = unit.lower()
        if name == "and":
            continue
        total += float(number) * (_UNITS["ms"] if name == "ms" or name.startswith("mil") else _UNITS[name[0]])
    return total
