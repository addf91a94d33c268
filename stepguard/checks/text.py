r"""Checks on text: its shape, a list of what it may be, JSON by a schema, what must not be in it.

A text is accepted by accident more easily than a number is: a failure that arrives as text (``Error: tool not
available``) has a length, too, and holds no forbidden word. So

- `Forbidden` and `Length` can only object: they say fail or not applicable, and a step with nothing else stays
  unverified;
- `Pattern` and `Schema` are tried on texts of failures when they are made, and refused if these pass. A pattern as wide
  as ``.*`` may be given with ``veto=True``: then it can only object, too.

Patterns are those of Rust's regex crate, which comes with pydantic: matching takes linear time whatever the pattern
and the text, so nothing here can hang. Look-around and back-references do not exist there; `\d` and `\w` know all
scripts (write ``[0-9]`` for digits of ours).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

from stepguard.checks.built import BuiltCheck
from stepguard.core.arguments import check_count, check_flag, check_names, check_text
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.names import fold, typewritten
from stepguard.errors import ConfigError
from stepguard.language.unseen import without_unseen
from stepguard.language.values import Value, encodable, show_value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

MAX_TEXT: Final = 100_000
"""The longest text, in characters, that these checks look at; a longer one fails."""

FAILURES: Final = ("Error: tool not available", "I'm sorry, but I can't help with that.", "N/A")
"""Texts of failures; a check that they would pass supports no claim."""

_MAX_PATTERN: Final = 10_000  # compiling takes time with the length, before any text is seen
_MARKUP: Final = re.compile(
    r"(?<![^\W_])(?<![*_~])[*_~]+|(?<![*_~])[*_~]+(?![*_~]|[^\W_])|(?<=[^\W\d_])\*+(?=[^\W\d_])"
)
"""Signs that mark words in Markdown, where they stand around words, or around letters in one."""


def compile_pattern(pattern: str, *, whole: bool = False) -> Callable[[str], bool]:
    """A function that says whether a pattern matches a text: all of it where `whole`, anywhere otherwise.

    Raises:
        ConfigError: the pattern is none of the engine's, or too large.
    """
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN or not encodable(pattern):
        raise ConfigError(
            f"a pattern is text of at most {_MAX_PATTERN} characters, not {pattern!r:.60}", option="pattern"
        )
    return _compiled(pattern, whole)


@lru_cache(maxsize=256)
def _compiled(pattern: str, whole: bool) -> Callable[[str], bool]:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    validator: SchemaValidator | None = None
    # First alone, so that brackets cannot reach out of it: `a)|(b`.
    for text in (pattern, rf"\A(?:{pattern})\z") if whole else (pattern,):
        try:
            validator = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
        except SchemaError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise ConfigError(
                f"the pattern {pattern!r:.100} is refused ({lines[-1]}): look-around and back-references do not exist, "
                r"and the end of the text is \z",
                option="pattern",
            ) from None
    assert validator is not None
    return validator.isinstance_python


def unless_text(step: Step) -> str | None:
    """Why a step is not for checks on text, None where it is."""
    return None if step.type.kind in ("text", "one_of") else f"this is for text, and the step is of type {step.type}"


class _TextCheck(BuiltCheck):
    """The base of checks of one text."""

    __slots__ = ()

    def _misfit(self, step: Step) -> str | None:
        return unless_text(step)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        text = show_value(values[step.id])
        if len(text) > MAX_TEXT:
            return self._fail(f"{len(text)} characters, at most {MAX_TEXT} are looked at", "malformed")
        return self._text(text)

    def _text(self, text: str) -> Verdict:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, init=False)
class Pattern(_TextCheck):
    """The whole text matches a pattern.

    Args:
        pattern: a regular expression of Rust's regex crate; it must match from the first to the last character.
        veto: whether a match supports nothing, for patterns that the text of a failure matches as well.

    Raises:
        ConfigError: the pattern is none, or the text of a failure matches it and `veto` is not set.
    """

    pattern: str
    veto: bool

    def __init__(self, pattern: str, *, veto: bool = False) -> None:
        check_flag(veto, "veto")
        matches = compile_pattern(pattern, whole=True)
        failure = next((text for text in FAILURES if matches(text)), None)
        if failure is not None and not veto:
            raise ConfigError(
                f"the pattern {pattern!r:.100} also matches {failure!r}, so a match would say nothing: make it "
                "narrower, or give veto=True, with which it can only object",
                option="pattern",
            )
        self._set(pattern=pattern, veto=veto)

    @property
    def strongest(self) -> Strength:
        return "unverified" if self.veto else "constrained"

    def _text(self, text: str) -> Verdict:
        if not compile_pattern(self.pattern, whole=True)(text):
            return self._fail(f"{shorten(text)!r} does not match {shorten(self.pattern)!r}", "malformed")
        return self._no_objection() if self.veto else self._pass()


@dataclass(frozen=True, slots=True, init=False)
class OneOf(_TextCheck):
    """The text is one of a list, which may be longer than a ``one_of`` type has, and hold longer texts.

    White space around the text does not matter, nor does how quotes and dashes are written.

    Args:
        options: the texts.
        ignore_case: whether upper and lower case are the same. Later steps read the text as it was written.

    Raises:
        ConfigError: no options, or one is no text, is empty, or stands twice.
    """

    _strongest: ClassVar[Strength] = "constrained"
    options: tuple[str, ...]
    ignore_case: bool

    def __init__(self, *options: str, ignore_case: bool = False) -> None:
        if not options:
            raise ConfigError("OneOf needs its options: OneOf('yes', 'no')", option="options")
        for each in options:
            check_text(each, "options", what="a text that is not empty", filled=True, most=MAX_TEXT, name="an option")
        check_flag(ignore_case, "ignore_case")
        self._set(options=options, ignore_case=ignore_case)
        if len({self._plain(each) for each in options}) < len(options):
            raise ConfigError("an option is listed twice", option="options")

    def _plain(self, text: str) -> str:
        plain = unicodedata.normalize("NFC", typewritten(text).strip())
        return plain.casefold() if self.ignore_case else plain

    def _text(self, text: str) -> Verdict:
        found = self._plain(text)
        if any(self._plain(each) == found for each in self.options):
            return self._pass()
        return self._fail(f"{shorten(text)!r} is none of the {len(self.options)} options")


@dataclass(frozen=True, slots=True, init=False)
class Forbidden(_TextCheck):
    """None of these words and patterns is in the text. It can only object: it never passes a text by itself.

    Args:
        words: words or phrases, found whole and without regard to case, white space, Markdown, the kind of quotes and
            dashes, and characters that are not seen: ``"sorry"`` is not in ``"sorrily"``.
        patterns: regular expressions of Rust's regex crate, found anywhere, also in the text as it is seen.

    Raises:
        ConfigError: nothing is forbidden, a word holds no letter or digit, or a pattern is none.
    """

    _strongest: ClassVar[Strength] = "unverified"
    words: tuple[str, ...]
    patterns: tuple[str, ...]

    def __init__(self, *words: str, patterns: Iterable[str] = ()) -> None:
        check_names(patterns, "patterns", what="a list such as ['[0-9]{16}']")
        held = tuple(patterns)
        if not words and not held:
            raise ConfigError("Forbidden needs words or patterns: Forbidden('sorry')", option="words")
        for each in words:
            if not isinstance(each, str) or not any(char.isalnum() for char in each) or len(each) > _MAX_PATTERN // 4:
                raise ConfigError(f"{each!r:.60} is no word: give other characters as a pattern", option="words")
        for each in held:
            # A pattern that matches nothing at all matches everywhere, so every text would fail.
            if compile_pattern(each)(""):
                raise ConfigError(f"the pattern {each!r:.60} matches every text", option="patterns")
        self._set(words=words, patterns=held)

    def _text(self, text: str) -> Verdict:
        for word in self.words:
            # A word may hold what is markup elsewhere: `__init__`, `2*3`.
            if any(_holds_word(read(text), read(word)) for read in (_folded, _unmarked)):
                return self._fail(f"the forbidden {shorten(word)!r} is in it")
        for pattern in self.patterns:
            # The engine refuses half characters, and what it cannot read is not free of anything.
            # Zero-width characters between letters hide a word from a pattern, not from a reader.
            seen = without_unseen(text)
            if any(map(compile_pattern(pattern), (text, seen))) or not compile_pattern("")(text):
                return self._fail(f"the forbidden pattern {shorten(pattern)!r} matches")
        return self._no_objection()


@dataclass(frozen=True, slots=True, init=False)
class Length(_TextCheck):
    """The text has so many characters, white space around it not counted. It can only object.

    Args:
        least: the fewest characters, 1 by default.
        most: the most; None for no bound of its own.

    Raises:
        ConfigError: the bounds are no whole numbers, negative, or leave no length.
    """

    _strongest: ClassVar[Strength] = "unverified"
    least: int
    most: int | None

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        check_count(least, "least", least=0)
        check_count(most, "most", least=0, optional=True)
        if most is not None and most < max(least, 1):
            raise ConfigError(f"no text has {least} to {most} characters", option="most")
        self._set(least=least, most=most)

    def _text(self, text: str) -> Verdict:
        length = len(text.strip())
        if length < self.least:
            return self._fail(f"{length} characters, at least {self.least} are needed", "malformed")
        if self.most is not None and length > self.most:
            return self._fail(f"{length} characters, at most {self.most} are allowed", "malformed")
        return self._no_objection()


def _folded(text: str) -> str:
    return " ".join(fold(text).split())


def _unmarked(text: str) -> str:
    return _folded(_MARKUP.sub("", typewritten(text)))


def _holds_word(text: str, word: str) -> bool:
    at = text.find(word) if word else -1
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (_joins(before, word[0]) or _joins(word[-1], behind)):
            return True
        at = text.find(word, at + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """Whether two characters belong to one word."""
    return bool(re.fullmatch(r"\w\w", left + right)) if left and right else False
