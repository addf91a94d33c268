"""Where a name stands in a document: by its words, as a whole.

Case, white space, and how quotes and dashes are written do not matter, nor do characters that are not seen. Part of a
longer word is no name (``Ann`` in ``Annabel`` and ``Ann-Marie``), nor is part of an address, a unit or an id
(``example.com`` in ``ann@example.com``, ``5 km`` in ``5 km/h``). A number in a name is whole, too: ``5 mg`` does not
stand in ``0.5 mg``, ``-5 mg``, ``-(5 mg)``, ``1/5 mg``, ``2 x 5 mg``, ``5-10 mg`` or ``10^5 mg``, nor in
``5 mg per kg`` or ``5 mg/day``, nor ``$5`` in ``$5 million``, nor ``2 h`` in ``2 h 30 min``.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from stepguard.language.digits import MINUS_SIGNS
from stepguard.language.prose.neighbours import ACCOUNT, amount_stands_alone, begins_amount, quantity_stands_alone
from stepguard.language.prose.retraction import denied_before
from stepguard.language.prose.struck_text import JOINT
from stepguard.language.unseen import without_unseen

_WORD: Final = re.compile(r"\S+")
_TYPEWRITTEN: Final = str.maketrans({
    **dict.fromkeys("’‘‛ʼʻ´`′＇", "'"), **dict.fromkeys("“”„‟″＂", '"'),
    **dict.fromkeys(f"{MINUS_SIGNS}\u2014\u2015", "-"),
})  # fmt: skip
_RAISED: Final = re.compile("[⁻⁺]?[⁰¹²³⁴-⁹]+")
_NAME_BEFORE: Final = re.compile(r"\w[@.]\Z|(?<=\w)(?<![^\W\d_]{3})/\Z")
_NAME_BEHIND: Final = re.compile(r"[@.]\w|/(?![^\W\d_]{3})\w|\^[-+0-9({]")
"""Around a name, what makes it part of an address, a unit or an id; ``Total/Summe`` are two names."""
_UNIT_BEHIND: Final = re.compile(r"[@./]\w|\^[-+0-9({]")  # a number goes on in a unit, an address or a version

_ID: Final = re.compile(rf"{ACCOUNT}|(?<![\w.,-])[0-9]{{4}}(?: [0-9]{{4}}){{2,4}}(?!\w)")  # or of a card
_ANSWERED: Final = re.compile(
    r"(?:[:=|\t;,?]|[^\S\n]{2})[^\S\n]*[\"']?(?:no|not|none|non|nein)[\"'|,;.\s]{0,9}\n\W{0,9}\Z", re.IGNORECASE
)
"""Above a name, a no that answers the line it stands on."""


class Words:
    """A document to find names in: without regard to case, white space, and how quotes and dashes are written.

    Attributes:
        document: the text.
    """

    def __init__(self, document: str) -> None:
        self.document: Final = document
        pieces: list[str] = []
        self._starts: list[int] = []  # of each word, in the folded text
        self._spans: list[tuple[int, int]] = []  # and in the document
        at = 0
        for match in _WORD.finditer(document):
            word = fold(match[0])
            if not word:
                continue
            self._starts.append(at)
            self._spans.append(match.span())
            pieces.append(word)
            at += len(word) + 1
        self._text = " ".join(pieces)
        self._ids = [match.span() for match in _ID.finditer(document)]

    def find(self, name: str) -> Iterator[tuple[int, int]]:
        """The spans in the document of the words that hold a name as a whole, and not inside a longer one."""
        wanted = " ".join(filter(None, (fold(word) for word in _WORD.findall(name))))
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            end = at + len(wanted)
            if _alone(self._text, at, end):
                first, last = (bisect_right(self._starts, place) - 1 for place in (at, end - 1))
                span = self._spans[first][0], self._spans[last][1]
                if (
                    quantity_stands_alone(self.document, *span)
                    and not self._denied(at, span)
                    and not self._cuts_id(span)
                ):
                    yield span
            at = self._text.find(wanted, at + 1)

    def _denied(self, at: int, span: tuple[int, int]) -> bool:
        if not denied_before(self._text, at):
            return False
        return _ANSWERED.search(self.document, max(span[0] - 40, 0), span[0]) is None

    def _cuts_id(self, span: tuple[int, int]) -> bool:
        """Whether a place holds a part of a number in groups, such as that of an account, and not all of it."""
        near = bisect_right(self._ids, (span[0], len(self.document)))
        return any(
            start < span[1] and end > span[0] and not span[0] <= start < end <= span[1]
            for start, end in self._ids[max(near - 1, 0) : near + 1]
        )

    def find_exactly(self, name: str) -> Iterator[tuple[int, int]]:
        """The spans of the name itself in those words: ``total`` in ``"total":5``."""
        parts = r"\s+".join(map(re.escape, name.split()))
        exact = re.compile(rf"(?<!\w){parts}(?!\w)", re.IGNORECASE)
        for span in dict.fromkeys(self.find(name)):
            own = [each.span() for each in exact.finditer(self.document, *span)] or [span]
            yield from (each for each in own if not self._cuts_id(each))


def typewritten(text: str) -> str:
    """A text with the quotes and dashes of a typewriter, and without characters that are not seen."""
    return without_unseen(text.translate(_TYPEWRITTEN))


def fold(word: str) -> str:
    """A word as it is compared."""
    plain = _RAISED.sub(lambda raised: f"^{raised[0]}", typewritten(word))  # 10² is no 102
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", plain).casefold())


def _alone(text: str, start: int, end: int) -> bool:
    """Whether no longer word or number reaches over either end; a possessive ``'s`` is no part of the name."""
    # A few characters tell: the work stays linear.
    before, behind = text[max(start - 12, 0) : start], text[end : end + 3]
    number = begins_amount(text, start, end)
    if number or _part(text[start]):
        if _part(before[-1:]) or (before[-1:] in ("-", "'") and _part(before[-2:-1])):
            return False
        if not number and _NAME_BEFORE.search(before):
            return False
    if not amount_stands_alone(text, start, end):
        return False
    if _part(text[end - 1]):
        possessive = behind[:2] == "'s" and not _part(behind[2:3])
        if _part(behind[:1]) or (behind[:1] in ("-", "'") and _part(behind[1:2]) and not possessive):
            return False
        if text[end - 1].isdigit():
            return True
        if (_UNIT_BEHIND if number else _NAME_BEHIND).match(text, end):
            return False
    return True


def _part(char: str) -> bool:
    """Whether a character is part of a word: a letter, a digit, an accent, an underscore."""
    return bool(char) and (char.isalnum() or char in ("_", JOINT) or unicodedata.combining(char) != 0)
