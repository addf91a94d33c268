"""Which of several options a document chooses: it may name them all.

::

    [ ] approved  [x] rejected      approved: no           - approved         pending: approved or rejected
    approved ☐  rejected ☒          "approved": false      - rejected         very high, where the option is high

Where options stand one below the other, or in one sentence, they are a list to choose from: one of them is chosen that
is ticked or said yes to, or the only one that is not said no to. Each in a field of its own (``status: approved;
before: rejected``) are two questions.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal

from stepguard.core.deadlines import stop_if_given_up
from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.documents.boxes import BOX, BOX_PATTERN, mark_of, with_boxes_beside
from stepguard.documents.names import Words

_Said = Literal["yes", "no", "empty", "blank", "filled", "open", "unclear"]
_CharRange = tuple[int, int]

_BEHIND: Final = (
    r"[\"']?[^\S\n]{0,3}(?:[:?]\n?|[=|\t,;(]|->|\.{2,40}|[^\S\n]{2}|(?<=\s)[-\u2013\u2014](?=\s))(?:[^\S\n]|\|){0,3}"
    r"(?:(?:was|is|not yet) )?[\"'/]?"
)
_NO_WORDS: Final = (
    r"no|not|nope|false|none|nein|falsch|non|faux|falso|n|0|off|nil|n/a|unchecked|unticked|unselected"
    r"|not (?:ticked|checked|selected|chosen|applicable|taken|wanted|given)"
)
_YES_WORDS: Final = r"x|yes|y|ja|oui|s\u00ed|si|true|on|checked|ticked|selected|chosen|wahr|vrai|\u2713|\u2714"
_SAID: Final = lazy_pattern(
    rf"{_BEHIND}(?:(?P<no>{_NO_WORDS})|(?P<yes>{_YES_WORDS}))(?=\s{{0,3}}(?:[\"',;.|)}}\n]|\Z))", re.IGNORECASE
)
_DENIED: Final = frozenset("?(:=|\t-\u2013\u2014.\"'")
"""What a no stands behind that denies an option by itself: no comma, behind which another sentence may begin."""
_CROSSED: Final = lazy_pattern(r"(?:^|[\s|])[xXvV]\s{0,3}[|\s]\Z")
_CROSSED_BEHIND: Final = lazy_pattern(r"[^\S\n]{1,9}[xXvV][^\S\n]*(?:\n|\Z)")
_BLANK: Final = lazy_pattern(r"[^:\n|=;\t]{0,24}[:=|\t;][\s|_.,;\u2013\u2014-]*\Z|[\s._]{2,}\Z")
_FILLED: Final = lazy_pattern(r"[^:\n|=;\t]{0,24}[:=|\t;][^\n]*\w")
_CELLS: Final = lazy_pattern(r"[|\t;]|[^\S\n]{2,40}")
_ANSWER: Final = lazy_pattern(rf"\W*(?:(?P<no>{_NO_WORDS})|(?P<yes>{_YES_WORDS}))\W*", re.IGNORECASE)
_LABEL: Final = lazy_pattern(r"[\w)]\s?:(?=\s)")
"""What the options of a field stand behind."""
_BOXED_LABEL: Final = re.compile(
    rf"[^\w\n]{{0,9}}?{BOX_PATTERN}[^\S\n]{{0,3}}[^\W_]+(?:[^\S\n][^\W_]+){{0,8}}\s?:\s?\Z"
)
"""A box in front of a label is that of what the label names: ``[ ] Newsletter: ``."""
_MARKER: Final = lazy_pattern(r"[\W\d_]*(?:(?:[A-Za-z]|[ivx]{1,4})[.)=]|[oO0xXvV](?=\s))?[\W\d_]*")
"""What may stand in front of an item of a list: bullets, numbers, letters, dates and crosses."""
_NUMBERS: Final = lazy_pattern("[0-9]+")
_BETWEEN: Final = lazy_pattern(r"[\s|:+=_-]*")
"""What may stand between the items of a list: a blank line, a rule."""

_FIELD: Final = lazy_pattern(r"[\w\"')]\s?[:=]\s?[\"']?\Z")
_ENDED: Final = lazy_pattern(r"[.!?](?=\s)|\n")
_CORRECTED: Final = lazy_pattern(
    r"[.!?\s]{1,9}(?:correction|corrected|edit|update|erratum|sorry|no|actually|rather|instead|wait)\b", re.IGNORECASE
)
_UNMET: Final = lazy_pattern(
    r"\b(?:(?:yet )?to be|hardly|barely|scarcely|awaiting|(?:without|before|instead of)(?: being)?|should have been"
    r"|(?:if|unless|until|once|when(?:ever)?|whether|to get|wenn|falls|sobald)(?: [^\W\d_]+){0,3})\s\Z",
    re.IGNORECASE,
)
_GENERAL: Final = lazy_pattern(r"(?:\A|[.!?:]\s|\n)(?:only|any|every|each)\s\Z", re.IGNORECASE)
_NOUN: Final = lazy_pattern(r"[^\S\n][^\W\d_]")
"""Around an option, what speaks of all that it may be said of: ``Only approved claims``."""
_FUNCTION_WORDS: Final = frozenset({"yes", "no", "none", "other", "not", "any", "all"})
"""Options that stand in many sentences without being one."""
_REACH: Final = 400
"""Characters to either side: what stands farther off says nothing of an option, and the work stays linear."""


@dataclass(frozen=True, slots=True)
class _Item:
    """An option that begins a line, as the item of a list does."""

    span: _CharRange
    name: str
    said: _Said


class Options:
    """The options of a type in a text.

    Args:
        text: the document, as it is seen.
        words: the same, to find names in.
        names: the options.
    """

    def __init__(self, text: str, words: Words, names: Iterable[str]) -> None:
        folded = {name.casefold(): name for name in names}
        self._text = with_boxes_beside(text, frozenset(folded))
        self._starts = [0, *(at + 1 for at, char in enumerate(self._text) if char == "\n")]
        self._spans = sorted((span, name) for name in folded.values() for span in words.find_exactly(name))
        self._lists: dict[int, tuple[_Item, frozenset[tuple[str, _Said]]]] | None = None

    def against(self, start: int, end: int, *, question: str = "", several: bool = False) -> str:
        """Why an option that is named at a place is not chosen there, empty where it is.

        Args:
            question: what is asked for: an item whose number it names is no other one's rival.
            several: whether others may be chosen in the same sentence, for lists.
        """
        stop_if_given_up()
        unmet = _UNMET.search(self._text, max(start - 40, 0), start)
        unmet = unmet or (_NOUN.match(self._text, end) and _GENERAL.search(self._text, max(start - 9, 0), start))
        if unmet is not None:
            return f"behind {unmet[0].strip()!r}"
        own, items = self._listed().get(start, (None, frozenset()))
        if own is not None and own.span == (start, end) and not self._asked(own, question):
            return _against_item(own, items, several=several)
        said = self._said(start, end)
        if said in ("no", "empty", "unclear"):
            return _SHOWN[said]
        first, last = self._sentence(start, end)
        for (begin, finish), name in self._between(first, last):
            if (begin, finish) == (start, end):
                continue
            if begin <= start and end <= finish:
                return f"as part of {shorten(name, 40)!r}"
            within = start <= begin and finish <= end
            if not several and not within and self._rivals(start, begin, finish, name):
                return f"beside {shorten(name, 40)!r}, which is another option"
        return ""

    def _between(self, first: int, last: int) -> Iterator[tuple[_CharRange, str]]:
        at = bisect_left(self._spans, ((first, 0), ""))
        return takewhile(lambda each: each[0][0] < last, self._spans[at : at + _REACH])

    def _rivals(self, start: int, begin: int, finish: int, name: str) -> bool:
        """Whether another option stands there as one that may be chosen, and not in a field of its own."""
        fields = all(_FIELD.search(self._text, max(at - 9, 0), at) for at in (start, begin))
        word = name.casefold() in _FUNCTION_WORDS
        return not (fields or word) and self._said(begin, finish) not in ("no", "empty")

    def _sentence(self, start: int, end: int) -> _CharRange:
        """The sentence or line around a place, with a next one that corrects it."""
        first = max((each.end() for each in _ENDED.finditer(self._text, max(start - _REACH, 0), start)), default=0)
        last = end
        while (closed := _ENDED.search(self._text, last, end + _REACH)) is not None:
            last = closed.end()
            if _CORRECTED.match(self._text, closed.start()) is None:
                return max(first, start - _REACH), closed.start()
        return max(first, start - _REACH), min(end + _REACH, len(self._text))

    def _said(self, start: int, end: int) -> _Said:
        """What the line of an option says of it."""
        behind = _SAID.match(self._text, end, end + _REACH)
        if behind is not None and behind["no"] and behind[0].lstrip()[:1] in _DENIED:
            return "no"
        first = self._text.rfind("\n", max(start - _REACH, 0), start) + 1
        cut = first == 0 and start > _REACH
        first = start - _REACH if cut else first
        last = self._text.find("\n", end, end + _REACH)
        last = min(end + _REACH, len(self._text)) if last < 0 else last
        labels = [label.end() for label in _LABEL.finditer(self._text, first, start)]
        begin = labels[-1] if labels else first
        line = self._text[begin:last]
        if cut and not labels:  # where the boxes of a line stand, its beginning says
            return "unclear" if BOX.search(line) else "open"
        options = [(at - begin, to - begin) for (at, to), _ in self._between(begin, last)]
        mark = mark_of(line, (start - begin, end - begin), options)
        if mark is None and labels and (label := _BOXED_LABEL.match(self._text, first, begin)) is not None:
            mark = "ticked" if label["ticked"] else "empty"
        if mark is not None:
            return "yes" if mark == "ticked" else mark
        return "yes" if behind is not None and behind["yes"] else "open"

    def _listed(self) -> dict[int, tuple[_Item, frozenset[tuple[str, _Said]]]]:
        """The items of lists with more than one option, by where they begin, each with what is said in its list."""
        if self._lists is None:
            self._lists = {}
            run: list[tuple[int, _Item]] = []
            for line, item in self._items():
                if run and not self._adjoin(run[-1][0], line):
                    self._close(run)
                    run = []
                run.append((line, item))
            self._close(run)
        return self._lists

    def _close(self, run: list[tuple[int, _Item]]) -> None:
        assert self._lists is not None
        if len({item.name for _, item in run}) > 1:
            said = frozenset((item.name, item.said) for _, item in run)
            self._lists |= {item.span[0]: (item, said) for _, item in run}

    def _adjoin(self, one: int, other: int) -> bool:
        """Whether between two lines stands no more than a blank one or a rule."""
        if other - one > 3:
            return False
        between = self._text[self._end_of(one) : self._starts[other]]
        return _BETWEEN.fullmatch(between) is not None and between.count("\n\n") < 2

    def _end_of(self, line: int) -> int:
        return self._starts[line + 1] - 1 if line + 1 < len(self._starts) else len(self._text)

    def _items(self) -> Iterator[tuple[int, _Item]]:
        seen = -1
        for at, (span, name) in enumerate(self._spans):
            line = bisect_right(self._starts, span[0]) - 1
            if line == seen:
                continue
            seen = line
            end = self._end_of(line)
            same = [each for each in self._spans[at : at + 9] if each[0][0] == span[0]]
            span, name = same[-1]  # the longest one that begins there
            others = [each for each, _ in self._spans[at + len(same) : at + len(same) + 9] if span[1] <= each[0] < end]
            front = self._text[self._starts[line] : span[0]]
            word = name.casefold() in _FUNCTION_WORDS and _NOUN.match(self._text, span[1]) is not None
            if not (others or word) and len(front) <= _REACH and _MARKER.fullmatch(BOX.sub(" ", front)):
                yield line, _Item(span, name, self._said_of_item(span, front, end))

    def _said_of_item(self, span: _CharRange, front: str, end: int) -> _Said:
        said = self._said(*span)
        if said != "open":
            return said
        if _CROSSED.search(front) or _CROSSED_BEHIND.match(self._text, span[1]):
            return "yes"
        found = _SAID.match(self._text, span[1], end)
        if found is not None and found["no"]:
            return "no"
        cells = _CELLS.split(self._text[span[1] : min(end, span[1] + _REACH)])
        answers = {"no" if each["no"] else "yes" for each in map(_ANSWER.fullmatch, cells) if each is not None}
        if len(answers) == 1:
            return "no" if "no" in answers else "yes"
        if _BLANK.match(self._text, span[1], min(end, span[1] + _REACH)):
            return "blank"
        return "filled" if _FILLED.match(self._text, span[1], min(end, span[1] + _REACH)) else "open"

    def _asked(self, item: _Item, question: str) -> bool:
        """Whether the question names the number of an item."""
        front = self._text[self._starts[bisect_right(self._starts, item.span[0]) - 1] : item.span[0]]
        return not set(_NUMBERS.findall(front)).isdisjoint(_NUMBERS.findall(question))


_SHOWN: Final = {
    "no": "with a no behind it",
    "empty": "beside an empty box",
    "unclear": "between boxes that may be those of other options",
    "blank": "with nothing behind it, in a list of options",
    "open": "in a list of options, and nothing says that it is chosen",
    "filled": "in a list of options, and nothing says that it is chosen",
}


def _against_item(own: _Item, items: frozenset[tuple[str, _Said]], *, several: bool) -> str:
    """Why an item of a list of options is not the one that is chosen, empty where it is."""
    others = [each for each in items if each[0] != own.name]
    if own.said == "yes":
        both = next((name for name, said in others if said == "yes"), None)
        return "" if both is None or several else f"beside {shorten(both, 40)!r}, which is chosen as well"
    if own.said in ("filled", "open"):
        said = {said for _, said in others}
        plain = several and said <= {"open", "filled"}
        if plain or said == {"no"} or (own.said == "filled" and said <= {"no", "blank"}):
            return ""
    return _SHOWN[own.said]
