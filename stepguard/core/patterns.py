"""Regular expressions that are compiled when they are first used.

The readers of numbers, dates and words have some two hundred of them, of which a run needs a few: compiling all takes
longer than a third of all that importing them does.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """Stands for a pattern, and becomes as fast as one: what was asked for once is an attribute of its own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as copies ask for
            raise AttributeError(name)
        if self._compiled is None:
            self._compiled = re.compile(*self._given)
        attribute = self.__dict__[name] = getattr(self._compiled, name)
        return attribute

    def __reduce__(self) -> tuple[Any, ...]:
        return _LazyPattern, self._given


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, at the first use. What is wrong with the pattern shows then."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
