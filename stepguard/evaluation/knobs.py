"""Names with knobs behind them, as tasks and arms are called: ``arithmetic(look_back=7, form=sentence)``."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from stepguard.core.plugins import name_of_class
from stepguard.errors import ConfigError

_NAME: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*(?:\((.*)\)\s*)?\Z", re.DOTALL)
_KNOB: Final = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*"|[^,"()=]*[^,"()=\s])\s*(?:,|\Z)')
_ITEM: Final = re.compile(r'(?:[^,"()]|"(?:[^"\\]|\\.)*"|\((?:[^"()]|"(?:[^"\\]|\\.)*")*\))+')
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None, "none": None}
_UNQUOTED: Final = re.compile(r"[\w+*/.-]+\Z")  # what needs no quotes to be read back


def read_name(text: str) -> tuple[str, dict[str, object]] | None:
    """A name and its knobs; None where the text is no such thing, or a knob stands twice."""
    match = _NAME.match(text)
    knobs = None if match is None else _knobs(match[2] or "")
    return None if match is None or knobs is None else (match[1], knobs)


def check_knobs(what: str, knobs: Iterable[str], allowed: Sequence[str], option: str) -> None:
    """Refuse knobs that there are none of.

    Raises ConfigError: one is not among the allowed ones; what has none of that name, such as ``arm 'cot'``, is named.
    """
    unknown = [knob for knob in knobs if knob not in allowed]
    if unknown:
        takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
        raise ConfigError(f"{what} has no knob {unknown[0]!r}: {takes}", option=option)


def split_names(text: str) -> list[str]:
    """The names of a list that commas separate; commas inside of brackets and quotes separate none.

    Where brackets or quotes do not match, the whole text is one name, which nothing is called.
    """
    pieces: list[str] = _ITEM.findall(text)
    if ",".join(pieces) != text:
        pieces = [text]
    return [piece.strip() for piece in pieces if piece.strip()]


class Named:
    """A dataclass that is called by a word, and by those of its knobs that are not at their defaults.

    The word is the name of its class in small letters, unless the class says another. A field with ``repr=False`` is no
    knob.
    """

    __slots__ = ()
    word: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "word" not in vars(cls):
            cls.word = name_of_class(cls.__name__)

    @property
    def name(self) -> str:
        """What tables call it; `read_name` reads it back."""
        values: Any = self
        knobs = [
            f"{each.name}={_knob_text(value)}"
            for each in dataclasses.fields(values)
            if each.repr and (value := getattr(self, each.name)) != each.default
        ]
        return f"{self.word}({', '.join(knobs)})" if knobs else self.word


def _knob_text(value: object) -> str:
    if isinstance(value, str) and _UNQUOTED.match(value) and not value[:1].isdigit():
        return value
    return json.dumps(value)


def _knobs(inside: str) -> dict[str, object] | None:
    """The knobs that stand in brackets; None where they cannot be read, or one stands twice."""
    knobs: dict[str, object] = {}
    at = 0
    while at < len(inside.rstrip()):
        match = _KNOB.match(inside, at)
        if match is None or match[1] in knobs:
            return None
        knobs[match[1]] = _value(match[2])
        at = match.end()
    return None if inside.rstrip().endswith(",") else knobs


def _value(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value: object = json.loads(text)  # a number or quoted text
    except ValueError:
        return text
    return value if type(value) in (int, float, str) else text
