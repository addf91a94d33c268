"""Checks what callers pass, and refuses it in words that say what was given and what is wanted.

Every function returns nothing and raises `ConfigError` with `option`, the argument's name. The message calls the
argument by `name` where that is given, else by `option`. With `optional` None is taken as well.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from stepguard.core.deadlines import is_seconds
from stepguard.errors import ConfigError

_MANY: Final = 4  # from here on "or" between all of them is hard to read

_LONGEST_ID: Final = 200


def check_count(
    value: object, option: str, *, least: int = 1, most: int | None = None, name: str = "", optional: bool = False
) -> None:
    """Require a whole number, such as 5; True and 5.0 are refused.

    Raises ConfigError: it is none, below `least`, or above `most`.
    """
    if (optional and value is None) or (type(value) is int and least <= value and (most is None or value <= most)):
        return
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
    raise _refusal(f"{name or option} is a whole number {bounds}", value, option, optional=optional)


def check_number(
    value: object,
    option: str,
    *,
    high: float = math.inf,
    positive: bool = False,
    what: str = "a number",
    name: str = "",
) -> None:
    """Require a finite int or float from 0 to `high`; above 0 where it has to be `positive`.

    `what` says what it stands for, such as "a probability".

    Raises ConfigError: it is none, or out of these bounds.
    """
    # NaN fails every comparison below.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and 0 <= value <= high and value != math.inf and (value > 0 or not positive):  # type: ignore[operator]
        return
    if positive:
        bounds = "above 0" + ("" if high == math.inf else f" and at most {high:g}")
    else:
        bounds = "of 0 or more" if high == math.inf else f"from 0 to {high:g}"
    raise _refusal(f"{name or option} is {what} {bounds}", value, option)


def check_seconds(
    value: object,
    option: str,
    *,
    positive: bool = False,
    most: float = math.inf,
    name: str = "",
    optional: bool = False,
) -> None:
    """Require a finite span of 0 or more seconds, and at most `most`; above 0 where it has to be `positive`.

    Raises ConfigError: it is none.
    """
    if (optional and value is None) or (is_seconds(value) and value <= most and (value > 0 or not positive)):
        return
    bound = ("above 0" if positive else "0 or more") + ("" if most == math.inf else f" and at most {most:g}")
    none = ", or None for no limit" if optional else ""
    raise _refusal(f"{name or option} is in seconds, {bound}{none}", value, option)


def check_seed(value: object) -> None:
    """Require a seed: a whole number of any sign, or None for a new one each time.

    Raises ConfigError: it is neither.
    """
    if value is not None and type(value) is not int:
        raise _refusal("seed is a whole number, or None for a new one each time", value, "seed")


def check_flag(value: object, option: str) -> None:
    """Require True or False; other values that are true or false in Python are most likely meant otherwise.

    Raises ConfigError: it is neither.
    """
    if not isinstance(value, bool):
        raise _refusal(f"{option} is true or false", value, option)


def check_one_of(
    value: object, choices: Iterable[object], option: str, *, name: str = "", optional: bool = False
) -> None:
    """Require one of some words. Raises ConfigError: it is none of them."""
    words = list(choices)
    if (optional and value is None) or value in words:
        return
    shown = [repr(word) for word in words]
    listed = " or ".join(shown) if len(shown) < _MANY else f"one of {', '.join(shown)}"
    raise _refusal(f"{name or option} is {listed}", value, option, optional=optional)


def check_text(
    value: object,
    option: str,
    *,
    what: str = "text",
    filled: bool = False,
    most: int | None = None,
    name: str = "",
    optional: bool = False,
) -> None:
    """Require text of at most `most` characters; white space alone is refused where it has to be `filled`.

    `what` describes it, such as "text such as 'gpt-4.1-mini'".

    Raises ConfigError: it is none.
    """
    if optional and value is None:
        return
    if not isinstance(value, str) or (filled and not value.strip()):
        raise _refusal(f"{name or option} is {what}", value, option, optional=optional)
    if most is not None and len(value) > most:
        raise _refusal(f"{name or option} has at most {most} characters", value, option)


def check_names(value: object, option: str, *, what: str = "a list of names", optional: bool = False) -> None:
    """Require several texts, such as a list; one text is refused, whose letters Python would take one by one.

    An iterator is not looked into: that would use it up.

    Raises ConfigError: it is no collection of texts.
    """
    if optional and value is None:
        return
    texts = not isinstance(value, Collection) or all(isinstance(text, str) for text in value)
    if isinstance(value, str) or not isinstance(value, Iterable) or not texts:
        raise _refusal(f"{option} is {what}", value, option, optional=optional)


def check_mapping(
    value: object, option: str, *, what: str = "a mapping of names to values", optional: bool = False
) -> None:
    """Require a mapping. Anything else may hold a caller's data, so that the message gives its type alone.

    Raises ConfigError: it is none.
    """
    if not isinstance(value, Mapping) and not (optional and value is None):
        raise ConfigError(f"{option} is {what}, not {type(value).__name__}", option=option)


def check_callable(value: object, option: str, *, name: str = "", optional: bool = False) -> None:
    """Require a function, or what can be called like one. Raises ConfigError: it cannot be called."""
    if not callable(value) and not (optional and value is None):
        raise _refusal(f"{name or option} is a function", value, option, optional=optional)


def check_instance(
    value: object, kind: type | tuple[type, ...], option: str, *, what: str, name: str = "", optional: bool = False
) -> None:
    """Require an object of a class; `what` describes one, such as "a Budget such as Budget(calls=40)".

    Raises ConfigError: it is none.
    """
    if not isinstance(value, kind) and not (optional and value is None):
        raise _refusal(f"{name or option} is {what}", value, option)


def check_run_id(value: object, option: str = "run_id") -> None:
    """Require a text that can name a run. Raises ConfigError: it cannot."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > _LONGEST_ID:
        raise ConfigError(
            f"{option} is a text of 1 to {_LONGEST_ID} characters on one line, not {value!r:.60}", option=option
        )


def check_run_ids(value: object) -> None:
    """Refuse one text in the place of a list of names of runs, which would be a name for every character.

    Raises ConfigError: it is one text.
    """
    if isinstance(value, str):
        raise ConfigError(f"run_ids is a list of names, not one text ({value!r:.60})", option="run_ids")


def _refusal(wanted: str, value: object, option: str, *, optional: bool = False) -> ConfigError:
    shown = repr(value)
    if len(shown) > 60:  # the beginning of a long one seldom says what it is
        shown = f"{shown[:50]}... ({type(value).__name__})"
    return ConfigError(f"{wanted}{', or None' if optional else ''}, not {shown}", option=option)
