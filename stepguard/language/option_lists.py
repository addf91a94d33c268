"""The options of ``one_of``: how a type lists them, and which of them a text is."""

from __future__ import annotations

import json
import re
from typing import Final

from stepguard.errors import ConfigError
from stepguard.language.values import encodable

_BARE_OPTION = re.compile(r"\w(?:[\w .+/-]*\w)?\Z")
_AROUND_OPTION: Final = " \t\r\n\"'`*."
_MAX_OPTIONS: Final = 100
_MAX_OPTION: Final = 100


def read_option(argument: str) -> str:
    """An option as it stands in a type: bare or in quotes.

    Raises:
        ConfigError: its quotes do not match.
    """
    if len(argument) > 2 and argument[0] == argument[-1] == "'":  # as Python writes texts
        return argument[1:-1]
    if not argument.startswith('"'):
        return argument
    try:
        return str(json.loads(argument))
    except ValueError as error:
        raise ConfigError(f"{argument} is not a JSON string: {error}", option="type") from None


def write_option(option: str) -> str:
    """An option as a type is written: in quotes where it needs them."""
    return option if _BARE_OPTION.match(option) else json.dumps(option)


def check_options(options: tuple[str, ...]) -> None:
    """Refuse options that cannot be told apart, or that are too many, too few or no lines of text.

    Raises:
        ConfigError: they are.
    """
    seen: set[str] = set()
    for option in options:
        known = fold_option(option) if isinstance(option, str) and encodable(option) else ""
        if not known or len(option) > _MAX_OPTION or len(option.splitlines()) != 1 or option != option.strip():
            raise ConfigError(
                f"{option!r} cannot be an option: one line of at most {_MAX_OPTION} characters is needed", option="type"
            )
        if known in seen:
            raise ConfigError(f"the option {option!r} is listed twice (case does not matter)", option="type")
        seen.add(known)
    if not 2 <= len(options) <= _MAX_OPTIONS:
        raise ConfigError(f"one_of has 2 to {_MAX_OPTIONS} options, not {len(options)}", option="type")


def fold_option(text: str) -> str:
    """What two writings of one option have in common: case, quotes, blanks and emphasis do not count."""
    return " ".join(text.strip(_AROUND_OPTION).casefold().split())
