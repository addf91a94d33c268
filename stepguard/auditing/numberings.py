"""What stands beside claims and is no label that is understood: whether it contradicts that they stand in order.

``Step 1:``, ``(3)``, ``Item B:``, ``i = 2``, ``2021``, ``Bob:`` or another cell of the row may mean any round. Claims
that are given to the rounds by their order are none of theirs where such marks stand in another order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from stepguard.language.records import Record
from stepguard.language.values import Value, show_value

_PIECE: Final = re.compile(r"[^\n.;!?]+(?:\.[0-9]+[^\n.;!?]*)*|\.[0-9]+")
_LONGEST: Final = 80
_COMPARED: Final = re.compile(
    r"[<>\u2264\u2265+*\u00d7\u00f7]|\b(?:than|exceeds?|below|above|under|over|mod|at (?:least|most)|reach(?:es)?)\b",
    re.IGNORECASE,
)
"""What says that the numbers beside it are no numbering."""
_TOKEN: Final = re.compile(
    r"(?P<number>(?<![\w.])[0-9][0-9,]{0,30}(?:\.[0-9]{1,30})?)(?:st|nd|rd|th)?(?![\w%])"
    r"|(?<=[_a-z])(?P<attached>[0-9]{1,9})(?!\w)"
    r"|(?<![\w'])(?P<letter>[A-Z])(?=[\"*_ ]{0,3}[:).,|\]]|\s*\Z)"
    r"|(?P<word>[^\W\d_]{2,40})"
)
_WORDS: Final = (
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
)
_COUNTED: Final = {word: Fraction(number) for words in _WORDS for number, word in enumerate(words, 1)}

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_OF_A_STEP: Final = re.compile(
    r'"(?:value|result|output|res|val|work|working|calculation|computation|expression|equation'
    r'|formula|substitution|expr)"\s{0,9}:\s{0,9}(?:"(?:[^"\\\n]|\\.){0,200}"|[-+0-9.eE]{1,40})',
    re.IGNORECASE,
)
"""What an object of JSON about one step says of it itself."""

Numbering = tuple[Fraction, ...]


def _tokens(text: str) -> tuple[Numbering, frozenset[str]]:
    """The numbers in a text, those in words and letters among them, and its other words."""
    numbers: list[Fraction] = []
    words: set[str] = set()
    for match in _TOKEN.finditer(text):
        if digits := match["number"] or match["attached"]:
            numbers.append(Fraction(digits.replace(",", "")))
        elif match["letter"]:
            numbers.append(Fraction(ord(match["letter"]) - ord("A") + 1))
        elif (word := match["word"].lower()) in _COUNTED:
            numbers.append(_COUNTED[word])
        else:
            words.add(word)
    return tuple(numbers), frozenset(words)


def _identity(item: Value | None) -> tuple[Numbering, frozenset[str]]:
    """The numbers and the words that tell an item from others; a text of many words is none that stands in labels."""
    match item:
        case None | bool():
            return (), frozenset()
        case tuple() | Record():
            identities = [_identity(each) for each in (item.values() if isinstance(item, Record) else item)]
            return tuple(number for numbers, _ in identities for number in numbers), frozenset().union(
                *(words for _, words in identities)
            )
    return _tokens(text) if len(text := show_value(item)) <= _LONGEST // 2 else ((), frozenset())


class Numberings:
    """The marks beside the claims of a transcript.

    Args:
        names: the names of the procedure, of which no digit is a number.
    """

    def __init__(self, text: str, claims: Iterable[tuple[int, int]], names: frozenset[str]) -> None:
        text = _NAME.sub(lambda found: " " * len(found[0]) if found[0] in names else found[0], text)
        text = _OF_A_STEP.sub(lambda found: " " * len(found[0]), text)
        self._places: list[int] = []
        self._marks: list[tuple[Numbering, frozenset[str]]] = []
        at = 0
        for start, end in (*sorted(claims), (len(text), len(text))):
            for piece in _PIECE.finditer(text, at, max(at, start)):
                if piece.end() - piece.start() <= _LONGEST and not _COMPARED.search(piece[0]):
                    marks = _tokens(piece[0])
                    if any(marks):
                        self._places.append(piece.start())
                        self._marks.append(marks)
            at = max(at, end)
        self._text = text

    def _between(self, start: int, end: int) -> list[tuple[Numbering, frozenset[str]]]:
        return self._marks[bisect_left(self._places, start) : bisect_left(self._places, end)]

    def contradiction(
        self, claims: Sequence[tuple[int, int]], rounds: Sequence[tuple[int, ...]], items: Sequence[Value | None]
    ) -> str:
        """What contradicts that claims stand in the order of their rounds, empty where nothing does.

        Args:
            items: what each of the rounds is about, None where it is about nothing.
        """
        own = [_identity(item) for item in items]
        rounds_of: dict[str, set[int]] = {}
        for number, (_, words) in enumerate(own):
            for word in words:
                rounds_of.setdefault(word, set()).add(number)
        edge = self._text.find("\n", claims[-1][1])
        stops = [*(start for start, _ in claims), len(self._text) if edge < 0 else edge]
        marks: list[Numbering] = []
        at = self._text.rfind("\n", 0, max(self._text.rfind("\n", 0, stops[0]), 0)) + 1  # its line and the one above
        for number, stop in enumerate(stops):
            numbering = marks[-1] if marks else ()
            for numbers, words in self._between(at if number < len(claims) else claims[-1][0], stop):
                numbering = numbers or numbering
                named = [rounds_of[word] for word in words if word in rounds_of]
                if number < len(claims) and named and not any(number in each for each in named):
                    return "the names beside them"
            marks.append(numbering)
            at = stop
        return "" if _in_order(marks, rounds, [set(numbers) for numbers, _ in own]) else _shown(marks[: len(claims)])


def _in_order(marks: list[Numbering], rounds: Sequence[tuple[int, ...]], own: list[set[Fraction]]) -> bool:
    """Whether numberings count the rounds, inside the loops around them or all together, or are what these are about.

    The last of the numberings stands behind the claims.
    """
    if len({mark for mark in marks if mark}) < 2:
        return True
    marked = [(number, each) for number, each in enumerate(marks[:-1]) if each] or [(0, ())]
    for depth in range(min(len(rounds[number]) for number, _ in marked)):
        for column in range(min(len(each) for _, each in marked)):
            if len({each[column] - rounds[number][depth] for number, each in marked}) == 1:
                return True
    if all(own[number].intersection(each) for number, each in marked):
        return True
    known = set[Fraction]().union(*own)
    if all(known.intersection(each) for _, each in marked):
        return False  # what other rounds are about
    present = [mark for mark in marks if mark]
    return all(left <= right for left, right in pairwise(present))


def _shown(marks: list[Numbering]) -> str:
    shown = [" ".join(map(str, mark)) for mark in marks[:4] if mark]
    return f"the numbers {', '.join(shown)}{', ...' if len(marks) > 4 else ''} beside them"
