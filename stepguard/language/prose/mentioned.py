"""Numbers in what a writer says around an answer: its own, counts of steps, lines and decimals, and foreign ones."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.links import false_links
from stepguard.language.prose.retraction import without_zeros
from stepguard.language.prose.spelled_numbers import SMALL, TENS

_WORDED: Final = lazy_pattern(
    rf"\b(?:({'|'.join(TENS)})(?:[- ]({'|'.join(SMALL[1:10])}))?|({'|'.join(SMALL[2:])}))\b", re.IGNORECASE
)
_DIGITS: Final = lazy_pattern(r"(?<![A-Za-z0-9_.])[0-9][0-9.,]*")
_COUNTS: Final = lazy_pattern(
    r"^[\s#>*_(-]*[0-9]{1,3}[.):](?=\s)"
    r"|\b(?:steps?|lines?|parts?|rules?|items?|no\.|number) [0-9]{1,3}"
    r"(?:(?:,| and|, and| to| through|-|\u2013) ?[0-9]{1,3})*(?![.,]?[0-9])"
    r"|\b[0-9]{1,3}(?= (?:\w+ )?(?:decimals?|places|digits|steps?|lines?|parts?|rules?"
    r"|operations?|calculations?|values?|results?|entries|keys|numbers|variables)\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""What counts the writer's own steps, lines and values, or decimals."""
_WORD: Final = lazy_pattern(r"[^\W\d_]+")
_CLAUSE: Final = lazy_pattern(r"[,;]\s|\n|\band\b", re.IGNORECASE)
_STATES: Final = lazy_pattern(
    r"[:=\u2248\u2192\u21d2\u279c]+>?|->|(?<=\s)(?:is|was|equals|gives|makes|yields|becomes|ist|ergibt|betr\u00e4gt|vaut|donne"
    r"|fait|es)(?=\s)",
    re.IGNORECASE,
)
_STATED: Final = lazy_pattern(
    r"[-+$(*_`\"'\s]{0,9}([0-9][0-9.,]*)(?!\w|\s?[-+*/\u00d7\u00f7^%]|\s(?:more|less|fewer|times|plus|minus|percent|of|to)\b)"
)
_WORKED_OUT: Final = lazy_pattern(
    r"[0-9)%][^=\n]{0,30}?[-+*/x\u00d7\u00f7\u2212][^=\n]{0,30}[0-9)%](?:[^=\u2248\n]{0,60}[=\u2248]){1,9}"
    r"[$\u20ac\u00a3*_`\s]{0,6}([0-9][0-9.,]*)(?!\s?[-+*/\u00d7\u00f7^])"
)
"""A calculation and its result; of a chain the last."""
_DENIED: Final = lazy_pattern(r"\bnot -?([0-9][0-9.,]*)", re.IGNORECASE)
_NAME: Final = lazy_pattern(
    r"(?<!\w)(?<![0-9] )(?<![\w)] [-+*/\u00d7\u00f7^] )(?<![\w)][-+*/\u00d7\u00f7^])"
    r"(\w+?)(?:[ _](?:value|final|new|now|actual|correct(?:ed)?|revised|updated)){0,2}[*_`\"')\s]{0,5}\Z",
    re.IGNORECASE,
)
"""What a side of a statement is called, if it is no operand of a calculation."""
_SHORTEST_OPTION: Final = 4
"""Shorter ones, such as ``A`` and ``no``, are words of any sentence."""
_RESULTS: Final = (
    "answer", "result", "solution", "output", "total", "antwort", "ergebnis", "l\u00f6sung", "r\u00e9ponse",
    "r\u00e9sultat", "respuesta", "resultado",
)  # fmt: skip
"""What a writer calls the last value of several."""


@dataclass(frozen=True, slots=True)
class Mentions:
    """The numbers that may be mentioned beside an answer.

    Attributes:
        numbers: all of them, as `without_zeros` writes them.
        values: of names, which number each is.
        options: the words that the answer may have been and is not, as ``decline`` beside ``approve``.
        chosen: those that it is.
        answered: the numbers, without a sign, that the answers come to.
    """

    numbers: frozenset[str]
    values: Mapping[str, str]
    options: frozenset[str] = frozenset()
    chosen: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, answers: Mapping[str, str], read: Mapping[str, str], choices: Iterable[tuple[str, Iterable[str]]] = ()
    ) -> Mentions:
        """Those of an answer.

        Args:
            answers: what it says of each step, as text.
            read: the values that the steps read, as text.
            choices: of each step that chooses, what it chose and what it might have.
        """
        numbers = {name: list(_numbers(text)) for name, text in (*read.items(), *answers.items())}
        values = {name: found[-1] for name, found in numbers.items() if found}
        last = [values[name] for name in answers if name in values][-1:]
        results = dict.fromkeys(_RESULTS, *last) if last else {}
        listed = [(one.casefold(), [option.casefold() for option in each]) for one, each in choices]
        chosen = frozenset(one for one, _ in listed)
        options = frozenset(option for _, each in listed for option in each if len(option) >= _SHORTEST_OPTION)
        return cls(
            frozenset(digits for found in numbers.values() for digits in found),
            results | values,
            options - chosen,
            chosen,
            frozenset(values[name] for name in answers if name in values),
        )

    def is_another_option(self, text: str) -> bool:
        """Whether a text is a word that the answer is not."""
        return text.casefold().strip(" .!*_`\"'") in self.options

    def chooses_another(self, text: str) -> bool:
        """Whether a text has words that the answer is not, unless it names the choice as a whole."""
        if not self.options:
            return False
        words = {form for word in _WORD.findall(text.casefold()) for form in _forms(word)}
        others = {option for option in self.options if frozenset(_WORD.findall(option)) <= words}
        return others != set() and not (others == self.options and words & self.chosen)

    def contradicted(self, text: str) -> bool:
        """Whether a text mentions another number than these, in digits or words, or gives a name another value."""
        text = in_digits(text)
        return mentions_another(text, self.numbers) or self.misstated(text) or self.chooses_another(text)

    def restated(self, text: str) -> tuple[str, str] | None:
        """What stands before and behind the calculation in a text that comes to an answer; None where there is none."""
        for found in _WORKED_OUT.finditer(text):
            if without_zeros(found[1].rstrip(".,")) in self.answered:
                return text[: found.start()], text[found.end() :]
        return None

    def _miscalculated(self, text: str) -> bool:
        """Whether an equation in a text is false that has the number of an answer as one of its sides."""
        sides = ((link.left_value, link.right_value) for link in false_links(text))
        return any(side is not None and side.lstrip("-") in self.answered for pair in sides for side in pair)

    def misstated(self, text: str) -> bool:
        """Whether a text gives a name another value than it has, denies one of the numbers or works one out wrong."""
        if self._miscalculated(text):
            return True
        text = in_digits(text)
        if any(without_zeros(found[1].rstrip(".,")) in self.numbers for found in _DENIED.finditer(text)):
            return True
        for clause in _CLAUSE.split(text):
            *sides, last = _STATES.split(clause.rstrip(" :*_`\n"))
            stated = _STATED.match(last)
            for side in sides if stated is not None else ():
                end = _NAME.search(side)
                value = None if end is None else self.values.get(end[1], self.values.get(end[1].lower()))
                if value is not None and stated is not None and without_zeros(stated[1].rstrip(".,")) != value:
                    return True
        return False


def mentions_another(text: str, numbers: Container[str]) -> bool:
    """Whether a text has, in digits, a number that is none of these and counts no steps, lines or decimals."""
    return any(digits not in numbers for digits in _numbers(_COUNTS.sub(" ", text)))


def _numbers(text: str) -> Iterator[str]:
    return (without_zeros(found[0].rstrip(".,")) for found in _DIGITS.finditer(text))


def _forms(word: str) -> Iterator[str]:
    """A word, and what it may be a form of: of ``declined`` and ``declines`` it is ``decline``."""
    yield word
    for end in ("d", "s", "ed", "es", "ing", "led", "ied"):
        if word.endswith(end) and len(word) > len(end) + 2:
            yield word.removesuffix(end)
            yield word.removesuffix(end) + ("y" if end == "ied" else "e")


def in_digits(text: str) -> str:
    """A text with its number words, up to ninety-nine, as digits."""
    return _WORDED.sub(lambda found: _digits(found[1], found[2] or found[3]), text)


def _digits(tens: str | None, unit: str | None) -> str:
    ten = 0 if tens is None else 10 * (TENS.index(tens.lower()) + 2)
    return str(ten + (0 if unit is None else SMALL.index(unit.lower())))
