"""Lets what is alike through once in a while, so that nobody can fill a log from outside."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

_SECONDS: Final = 10.0
_MOST: Final = 1000
"""Kinds that are remembered: names among them may be made up by callers."""


class LogThrottle:
    """Counts what it holds back, by its kind."""

    def __init__(self) -> None:
        self._last: Final[dict[Hashable, tuple[float, int]]] = {}

    def passed(self, kind: Hashable, now: float) -> int | None:
        """How many of a kind were held back since the last one that passed; None for one that does not pass now."""
        last, held = self._last.get(kind, (-math.inf, 0))
        if now - last < _SECONDS:
            self._last[kind] = (last, held + 1)
            return None
        if len(self._last) > _MOST:
            self._last.clear()
        self._last[kind] = (now, 0)
        return held
