"""Which round of a loop, or which call, a transcript means: ``items[1].paid``, ``paid (item 2)``, ``Round 2:``.

A name with a round or a call gets a name of its own, an alias of no more characters, before the text is read, so that
every reader of claims reads it as one name and every offset stays. Headings hold for the lines below them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import Final

from stepguard.auditing.occurrences import GENERIC, Label, Places, Round, lowered
from stepguard.language.records import Record
from stepguard.language.values import Value

_PART: Final = re.compile(r"(?P<word>[A-Za-z_]\w*)(?:\[(?P<number>[0-9]{1,9})\])?\.")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_OVER: Final = re.compile(
    r"[ \t>*_]*(?:(?P<level>#{1,6}) "
    r"|(?:finally|overall|summary|(?:the )?(?:final )?answer|after (?:the|all)\b|(?:in )?total:))",
    re.IGNORECASE,
)
_FIRST_ALIAS: Final = 0x4E00
_ALIASES: Final = 0x5000


def items_by_name(lists: Mapping[str, Value]) -> dict[str, Round]:
    """The items of lists by what names one of them and no other: a text, or a text in a record."""
    items_of_text: dict[str, set[Round]] = {}
    for word, items in lists.items():
        for number, item in enumerate(items if isinstance(items, tuple) else ()):
            for text in item.values() if isinstance(item, Record) else (item,):
                if isinstance(text, str):
                    items_of_text.setdefault(text.lower(), set()).add(Round(word.lower(), number, "item"))
    return {text: next(iter(rounds)) for text, rounds in items_of_text.items() if len(rounds) == 1}


class Labels:
    """The labels in a transcript.

    Args:
        places: where the names of the procedure are set.

    Attributes:
        text: the same text with aliases in the place of labelled names, and without the headings of rounds.
        aliases: the name and the label behind every alias.
        repeated: the names that are set in rounds.
    """

    def __init__(self, text: str, places: Places, declared: frozenset[str], inputs: Mapping[str, Value]) -> None:
        self.aliases: dict[str, tuple[str, Label]] = {}
        rounds = ((name, loop.rounds) for name, chains in places.chains.items() for chain in chains for loop in chain)
        self.repeated = frozenset(name for name, repeated in rounds if repeated)
        self._places = places
        self._declared = {name.replace("_", "").lower() for name in declared}
        written = Counter(map(str.lower, places.steps))
        self._written = {name.lower(): name for name in places.steps if written[name.lower()] == 1}
        named = items_by_name({name: inputs[name] for name in places.lists & inputs.keys()})
        reserved = self._declared | lowered(places.words)
        self.items = {name: each for name, each in named.items() if name not in reserved}
        self._alias_of: dict[tuple[str, Label], str] = {}
        self._starts: list[int] = []
        self._contexts: list[Label] = []
        words = "|".join(sorted(map(re.escape, places.words), key=len, reverse=True))
        names = "|".join(sorted(map(re.escape, places.steps), key=len, reverse=True))
        used = set(text)
        self._marks = [mark for mark in map(chr, range(_FIRST_ALIAS, _FIRST_ALIAS + _ALIASES)) if mark not in used][:32]
        remarks = (
            rf"|(?P<remark> ?\(?(?:for |of |in )?(?:the )?\b(?P<word>{words}) ?#?(?P<number>[0-9]{{1,9}})\)?"
            r"(?=[\"'*`_]{0,3} {0,3}(?:[=:|]|is\b|equals\b)))"
            rf"|(?P<about> ?[(\[]?(?:for |of |in )?(?:the )?(?:(?:{words}) )?[\"']?(?P<item>[^\W\d][\w' -]{{0,39}}?)"
            r"[\"']?[)\]]?(?=[\"'*`_]{0,3} {0,3}(?:[=:|]|is\b|equals\b)))"
        )
        self._labelled = re.compile(
            rf"(?<![\w.\]\\])(?P<path>(?:[A-Za-z_]\w*(?:\[[0-9]{{1,9}}\])?\.)*)(?P<name>{names})"
            r"(?:(?P<index>(?:\[[0-9]{1,9}\]){1,9}|_?(?:[0-9]{1,9}|[\u2080-\u2089]{1,9})(?!\w)|_\{[0-9]{1,9}\}"
            r"|\([0-9]{1,9}\))"
            rf"{remarks if words else ''})?(?![\w\[])",
            re.IGNORECASE if words else 0,
        )
        if words:
            text = self._without_headings(text, words)
        if self.repeated and "{" in text:
            self._objects(text)
        self.text = self._labelled.sub(self._aliased, text)

    def at(self, start: int) -> tuple[int, Label]:
        """The round that the headings above a place say, and where the last of them stands."""
        before = bisect_right(self._starts, start)
        return (self._starts[before - 1], self._contexts[before - 1]) if before else (-1, ())

    def end(self, start: int) -> None:
        """The headings above a place hold no longer."""
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._contexts.insert(at, ())

    def _without_headings(self, text: str, words: str) -> str:
        heading = re.compile(
            r"(?P<front>^[ \t>#*_+-]{0,12}(?:[0-9]{1,3}[.)] )?[*_]{0,2}|(?<=[.;!?] ))"
            r"(?:(?:for|in|on|now|next|then),? )?(?:the )?"
            rf"(?:(?P<word>{words}) ?(?:#|no\.? ?)?(?P<number>[0-9]{{1,9}})"
            rf"|(?P<list>{words})\[(?P<index>[0-9]{{1,9}})\]"
            rf"|(?:(?:{words})(?: ?[:=])? )?[\"']?(?P<item>[^\W\d][\w' -]{{0,39}}?)[\"']?"
            r"(?=[*_]{0,2} ?(?:[:(\u2014\u2013\r\n]|- |\Z)))"
            r"(?: of [0-9]{1,9})?[*_]{0,2}(?=[ \t]*(?:[:,(\u2014\u2013]|- |[.)](?![\w])|[\r\n]|\Z))",
            re.IGNORECASE,
        )
        another = re.compile(rf"\b(?:{words}) ?#?(?P<number>[0-9]{{1,9}})\b", re.IGNORECASE)
        parts: list[str] = []
        context: dict[str, Round] = {}
        at = level = 0
        for line in text.splitlines(keepends=True):
            begin = 0
            for match in heading.finditer(line):
                item = self.items.get((match["item"] or "").lower())
                word = (match["word"] or match["list"] or (item and item.word) or "").lower()
                if not word:
                    continue
                kept = list(context)
                for inner in kept[kept.index(word) :] if word in context else ():
                    del context[inner]
                context[word] = item or Round(
                    word, int(match["number"] or match["index"]), "path" if match["list"] else "word"
                )
                front, end = match.end("front"), match.end() + (line[match.end() : match.end() + 1] == ":")
                parts += [line[begin:front], " " * (end - front)]
                begin, level = end, match["front"].count("#") or level
                self._heads(at + front, context)
            over = None if begin or not context else _OVER.match(line)
            ended = over is not None and not (over["level"] and len(over["level"]) > level > 0)
            numbers = {each.number + (each.style == "item") for each in context.values() if each.number is not None}
            if ended or (
                not begin and context and any(int(m["number"]) not in numbers for m in another.finditer(line))
            ):
                context.clear()
                self._heads(at, context)
            parts.append(line[begin:])
            at += len(line)
        return "".join(parts)

    def _heads(self, start: int, context: Mapping[str, Round]) -> None:
        self._starts.append(start)
        self._contexts.append(tuple(context.values()))

    def _objects(self, text: str) -> None:
        """Note the rounds that members of JSON objects say: ``{"round": 2, ...}``, ``{"item": "Lamp", ...}``."""
        words = "|".join(map(re.escape, self._places.words | {"name"}))
        token = re.compile(
            rf'"(?:(?P<generic>{"|".join(GENERIC)})"\s*:\s*"?(?:(?P=generic) )?(?P<number>[0-9]{{1,9}})"?(?=\s*[,}}])'
            rf'|(?:{words})"\s*:\s*"(?P<item>[^"\\\n]{{1,40}})"|(?:[^"\\\n]|\\.)*")|[{{}}]',
            re.IGNORECASE,
        )
        opened: list[tuple[int, list[Round]]] = []
        spans: list[tuple[int, int, list[Round]]] = []
        for match in token.finditer(text):
            if match[0] == "{":
                opened.append((match.start(), []))
            elif match[0] == "}" and opened:
                start, rounds = opened.pop()
                spans += [(start, match.end(), rounds)] if rounds else []
            elif opened and match["generic"]:
                opened[-1][1].append(Round(match["generic"].lower(), int(match["number"])))
            elif opened and match["item"] and (item := self.items.get(match["item"].lower())) is not None:
                opened[-1][1].append(item)
        around: list[tuple[int, Label]] = []
        noted = [(start, 1, self.at(start)[1]) for start in self._starts]
        for start, end, rounds in sorted(spans, key=lambda span: span[:2]):
            while around and around[-1][0] <= start:
                around.pop()
            outer = around[-1][1] if around else self.at(start)[1]
            around.append((end, (*outer, *rounds)))
            noted += [(start, 2, around[-1][1]), (end, 0, outer)]
        noted.sort(key=lambda each: each[:2])
        self._starts = [start for start, _, _ in noted]
        self._contexts = [context for _, _, context in noted]

    def _aliased(self, match: re.Match[str]) -> str:
        name, index = match["name"], match["index"] or ""
        if name not in self._places.steps:
            name = self._written.get(name.lower(), name)
        parts = match.groupdict()
        remark, about = parts.get("remark"), parts.get("about")
        item = self.items.get((parts.get("item") or "").lower())
        if about and item is None:
            return match[0].removesuffix(about) + self._labelled.sub(self._aliased, about)
        if name not in self._places.steps or not (match["path"] or index or remark or item):
            return match[0]
        if index and (index[0] == "(" or index[0].isdigit()) and name[-1].isdigit():
            return match[0]  # t1 of round 2 is not t12, and t1(3) is a product
        if index and f"{name}{index}".translate(_UNMARKED).translate(_SUBSCRIPTS).lower() in self._declared:
            return match[0]
        label = tuple(
            Round(part["word"].lower(), None if part["number"] is None else int(part["number"]), "path")
            for part in _PART.finditer(match["path"])
        )
        label += tuple(Round(None, int(number), "index") for number in _INDEX.findall(index.translate(_SUBSCRIPTS)))
        if remark:
            label += (Round(match["word"].lower(), int(match["number"])),)
        label += (item,) if item else ()
        alias = self.alias(name, label)
        return match[0] if alias is None else alias.rjust(len(match[0]))

    def alias(self, name: str, label: Label) -> str | None:
        """The alias of a labelled name; None where there are too many."""
        key = name, label
        if key not in self._alias_of:
            count = len(self._alias_of)
            mark, place = divmod(count, _ALIASES)
            if mark >= len(self._marks):
                return None
            alias = f"q{self._marks[mark]}{chr(_FIRST_ALIAS + place)}"
            self._alias_of[key] = alias
            self.aliases[alias] = key
        return self._alias_of[key]


_UNMARKED: Final = str.maketrans("", "", "_{}")
_SUBSCRIPTS: Final = {0x2080 + digit: str(digit) for digit in range(10)}


class Headings:
    """Which headings hold for a claim: they end where one of another loop, or of none, is made for the first time."""

    def __init__(self, labels: Labels, places: Places) -> None:
        self._labels = labels
        self._places = places
        self._claimed: set[str] = set()
        self._start = self._ended = -1
        self._loops: set[str] = set()

    def over(self, name: str, start: int) -> Label:
        """The rounds that the headings over the next claim say, of those that may be about it."""
        at, rounds = self._labels.at(start)
        fresh = name not in self._claimed
        self._claimed.add(name)
        words = {each.word for each in rounds}
        loops = {
            loop.site for chain in self._places.chains[name] for loop in chain if loop.words & words and loop.rounds
        }
        if at != self._start:
            self._start, self._loops = at, loops
        elif (loops or fresh) and self._loops.isdisjoint(loops):
            if self._loops:
                self._ended = at
            self._loops = loops
        if at <= self._ended:
            return ()
        words = {word for chain in self._places.chains[name] for loop in chain for word in loop.words}
        return tuple(each for each in rounds if each.word in words)
