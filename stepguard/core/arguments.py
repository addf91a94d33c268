"""Arguments: what callers give is checked here, and refused in words that say what was given and what is wanted.

Every function returns nothing and raises `ConfigError` with `option`, the argument's name. The message calls the
argument by `name` where that is given, else by `option`. With `optional` None is taken as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from stepguard.core.deadlines import is_seconds
from stepguard.errors import ConfigError

_MANY: Final = 4

__all__ = [
    "check_callable",
    "check_count",
    "check_flag",
    "check_instance",
    "check_number",
    "check_one_of",
    "check_seconds",
    "check_text",
]


def check_count(
    value: object, option: str, *, least: int = 1, most: int | None = None, name: str = "", optional: bool = False
) -> None:
    """A whole number, such as 5; True and 5.0 are none.

    Raises:
        ConfigError: it is none, below `least`, or above `most`.
    """
    if (optional and value is None) or (type(value) is int and least <= value and (most is None or value <= most)):
        return
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
    raise _refusal(f"{name or option} is a whole number {bounds}", value, option, optional=optional)


def check_number(
    value: object,
    option: str,
    *,
    low: float = 0.0,
    high: float = math.inf,
    what: str = "a number",
    name: str = "",
    optional: bool = False,
) -> None:
    """A finite int or float from `low` to `high`; `what` says what it stands for, such as "a probability".

    Raises:
        ConfigError: it is none, or out of these bounds.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (optional and value is None) or (number and low <= value <= high and value != math.inf):  # type: ignore[operator]
        return
    bounds = f"of {low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
    raise _refusal(f"{name or option} is {what} {bounds}", value, option, optional=optional)


def check_seconds(
    value: object, option: str, *, positive: bool = False, name: str = "", optional: bool = False
) -> None:
    """A finite span of time of 0 or more seconds; above 0 where it has to be `positive`.

    Raises:
        ConfigError: it is none.
    """
    if (optional and value is None) or (is_seconds(value) and (value > 0 or not positive)):
        return
    bound = "above 0" if positive else "0 or more"
    none = ", or None for no limit" if optional else ""
    raise _refusal(f"{name or option} is in seconds, {bound}{none}", value, option)


def check_flag(value: object, option: str, *, name: str = "") -> None:
    """True or False; other values that are true or false in Python are most likely meant otherwise.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, bool):
        raise _refusal(f"{name or option} is true or false", value, option)


def check_one_of(
    value: object, choices: Iterable[object], option: str, *, name: str = "", optional: bool = False
) -> None:
    """One of some words.

    Raises:
        ConfigError: it is none of them.
    """
    words = list(choices)
    if (optional and value is None) or value in words:
        return
    shown = [repr(word) for word in words]
    listed = " or ".join(shown) if len(shown) < _MANY else f"one of {', '.join(shown)}"
    raise _refusal(f"{name or option} is {listed}", value, option, optional=optional)


def check_text(value: object, option: str, *, name: str = "", optional: bool = False) -> None:
    """Text, such as a name; it may be empty.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(value, str) and not (optional and value is None):
        raise _refusal(f"{name or option} is text", value, option, optional=optional)


def check_callable(value: object, option: str, *, name: str = "", optional: bool = False) -> None:
    """A function, or what can be called like one.

    Raises:
        ConfigError: it cannot be called.
    """
    if not callable(value) and not (optional and value is None):
        raise _refusal(f"{name or option} is a function", value, option, optional=optional)


def check_instance(
    value: object,
    kind: type | tuple[type, ...],
    option: str,
    *,
    what: str,
    name: str = "",
    optional: bool = False,
) -> None:
    """An object of a class; `what` describes one, such as "a Budget such as Budget(calls=40)".

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(value, kind) and not (optional and value is None):
        raise _refusal(f"{name or option} is {what}", value, option)


def _refusal(wanted: str, value: object, option: str, *, optional: bool = False) -> ConfigError:
    shown = repr(value)
    if len(shown) > 60:  # what is long is seldom told by its beginning
        shown = f"{shown[:50]}... ({type(value).__name__})"
    return ConfigError(f"{wanted}{', or None' if optional else ''}, not {shown}", option=option)
