"""Which round of a loop, or which call, a transcript means: ``items[1].paid``, ``paid (item 2)``, ``Round 2:``.

A name with a round or a call gets a name of its own, an alias of no more characters, before the text is read, so that
every reader of claims reads it as one name and every offset stays. Headings hold for the lines below them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final, Literal

from stepguard.language.expressions import format_expression
from stepguard.language.records import Record
from stepguard.language.terms import is_variable
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat
from stepguard.procedure.steps import Step

_GENERIC: Final = frozenset(("round", "iteration", "pass", "cycle", "loop"))
_OF_ITEMS: Final = frozenset(("item", "entry", "element"))
_PART: Final = re.compile(r"(?P<word>[A-Za-z_]\w*)(?:\[(?P<number>[0-9]{1,9})\])?\.")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_OVER: Final = re.compile(
    r"[ \t>*_]*(?:(?P<level>#{1,6}) "
    r"|(?:finally|overall|summary|(?:the )?(?:final )?answer|after (?:the|all)\b|(?:in )?total:))",
    re.IGNORECASE,
)
_FIRST_ALIAS: Final = 0x4E00
_ALIASES: Final = 0x5000


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop or a call around a step: its site, the words that mean it, whether it has rounds, and its variable."""

    site: str
    words: frozenset[str]
    rounds: bool
    variable: str = ""


Chain = tuple[Loop, ...]
"""The loops and calls around a step, the outermost first."""


Style = Literal["word", "path", "index", "item"]


@dataclass(frozen=True, slots=True)
class Round:
    """What a label says: a word (none behind an index), the number as written, and how it is written.

    The number of an item that is named, as in ``paid for Lamp``, is its 0-based place in the list of the word.
    """

    word: str | None
    number: int | None
    style: Style = "word"


Label = tuple[Round, ...]


class Places:
    """Where the names of a procedure are set.

    Attributes:
        steps: one step for each name; calls are among them.
        chains: the loops and calls around each place where a name is set.
        lists: the names of the lists that loops are over.
    """

    def __init__(self, procedure: Procedure) -> None:
        self.lists: set[str] = set()
        self.steps: dict[str, Step] = {}
        self.chains: dict[str, dict[Chain, None]] = {}
        self._of_site: dict[str, Chain] = {}
        self._beside: dict[tuple[str, Chain], list[tuple[str, str, Step]]] = {}
        self._walk(procedure.body, "", (), "", [])

    def _walk(self, body: Body, block: str, chain: Chain, condition: str, repeats: list[bool]) -> None:
        """Note the statements of a block; `repeats`: of the ones before it in its scope, whether each surely begins."""
        for number, statement in enumerate(body):
            site = f"{block}{number}"
            match statement:
                case Step():
                    self._set(statement, site, chain)
                    self._beside.setdefault((statement.id, chain), []).append((site, condition, statement))
                case If(branches, otherwise):
                    for at, (tested, inner) in enumerate((*branches, (branches[-1][0], otherwise))):
                        self._walk(inner, f"{site}.{at}.", chain, format_expression(tested), repeats)
                case ForEach(variable, over, inner):
                    words = {variable, *_OF_ITEMS, *_GENERIC}
                    if is_variable(over):
                        self.lists.add(over.name)
                        words |= {over.name, over.name.removesuffix("s")}
                    self._walk(inner, f"{site}.", (*chain, Loop(site, _lowered(words), True, variable)), condition, [])
                case Repeat(_, inner):
                    numbers = range(1 + sum(repeats), 2 + len(repeats))  # which of them it is on the way that is taken
                    words = {"repeat" if each == 1 else f"repeat{each}" for each in numbers} | _GENERIC
                    repeats.append(not condition)
                    self._walk(inner, f"{site}.", (*chain, Loop(site, _lowered(words), True)), "", [])
                case ProcedureCall(id, called):
                    self._set(Step(id, instruction=id, type=called.answer_type), site, chain)
                    self._walk(called.body, f"{site}.", (*chain, Loop(site, _lowered({id}), False)), "", [])

    def _set(self, step: Step, site: str, chain: Chain) -> None:
        self.steps.setdefault(step.id, step)
        self.chains.setdefault(step.id, {})[chain] = None
        self._of_site[site] = chain

    def chain(self, site: str) -> Chain:
        """The loops and calls around the statement at a site."""
        return self._of_site[site]

    def beside(self, name: str, chain: Chain, site: str) -> Iterator[tuple[str, Step]]:
        """The steps of the same name in other branches, each with the condition of its branch."""
        return ((condition, step) for at, condition, step in self._beside.get((name, chain), ()) if at != site)

    @property
    def words(self) -> frozenset[str]:
        """The words that may head a round, without the names of steps."""
        loops = (loop for chains in self.chains.values() for chain in chains for loop in chain if loop.rounds)
        return frozenset(word for loop in loops for word in loop.words) - _lowered(self.steps)


def _lowered(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for word in words)


Pattern = tuple[int | None, ...]


def items_by_name(lists: Mapping[str, Value]) -> dict[str, Round]:
    """The items of lists by what names one of them and no other: a text, or a text in a record."""
    found: dict[str, set[Round]] = {}
    for word, items in lists.items():
        for number, item in enumerate(items if isinstance(items, tuple) else ()):
            for text in item.values() if isinstance(item, Record) else (item,):
                if isinstance(text, str):
                    found.setdefault(text.lower(), set()).add(Round(word.lower(), number, "item"))
    return {text: next(iter(rounds)) for text, rounds in found.items() if len(rounds) == 1}


def loops_meant(round: Round, chain: Chain) -> list[int]:
    """Which of the loops and calls around a step a word may mean; one that is over items of that name goes first."""
    found = [
        at for at, loop in enumerate(chain) if round.word in loop.words and loop.rounds == (round.number is not None)
    ]
    named = [at for at in found if chain[at].variable.lower() == round.word]
    return named if len(named) == 1 else found


def pattern(label: Label, chain: Chain) -> Pattern | None:
    """The numbers that a label gives to the loops around a step, as written; None where it cannot mean this place.

    A round that may be one of several loops is none: which of them is meant is not said.
    """
    numbers: list[int | None] = [None] * len(chain)
    bare = [each.number for each in label if each.word is None]
    rounds = [at for at, loop in enumerate(chain) if loop.rounds]
    if bare:
        if len(bare) != len(rounds) or len(bare) != len(label):
            return None
        for at, number in zip(rounds, bare, strict=True):
            numbers[at] = number
        return tuple(numbers)
    if len(label) == len(chain) and all(each.word in loop.words for each, loop in zip(label, chain, strict=True)):
        return tuple(each.number or 0 for each in label)  # the whole path
    for each in label:
        meant = loops_meant(each, chain)
        if len(meant) != 1 or numbers[meant[0]] is not None:
            return None
        numbers[meant[0]] = each.number if each.number is not None else 0
    return tuple(numbers)


def ambiguous(label: Label, chain: Chain) -> bool:
    """Whether a label that is no whole path has a word that may mean several of the loops around a step."""
    whole = len(label) == len(chain) and all(each.word in loop.words for each, loop in zip(label, chain, strict=True))
    return not whole and any(len(loops_meant(each, chain)) > 1 for each in label)


def weaker(exact: tuple[int, ...]) -> Iterator[Pattern]:
    """Every pattern that fits the rounds of an occurrence, the most exact first."""
    places = range(len(exact))
    for size in range(len(exact), -1, -1):
        for kept in combinations(places, size):
            yield tuple(exact[at] if at in kept else None for at in places)


class Labels:
    """The labels in a transcript.

    Args:
        text: the transcript.
        places: where the names of the procedure are set.
        declared: every name of the procedure.
        inputs: the inputs of the run.

    Attributes:
        text: the same text with aliases in the place of labelled names, and without the headings of rounds.
        aliases: the name and the label behind every alias.
        repeated: the names that are set in rounds.
    """

    def __init__(
        self, text: str, places: Places, declared: frozenset[str], inputs: Mapping[str, Value] = MappingProxyType({})
    ) -> None:
        self.aliases: dict[str, tuple[str, Label]] = {}
        rounds = ((name, loop.rounds) for name, chains in places.chains.items() for chain in chains for loop in chain)
        self.repeated = frozenset(name for name, repeated in rounds if repeated)
        self._places = places
        self._declared = {name.replace("_", "").lower() for name in declared}
        written = Counter(map(str.lower, places.steps))
        self._written = {name.lower(): name for name in places.steps if written[name.lower()] == 1}
        named = items_by_name({name: inputs[name] for name in places.lists & inputs.keys()})
        taken = self._declared | _lowered(places.words)
        self.items = {name: each for name, each in named.items() if name not in taken}
        self._given: dict[tuple[str, Label], str] = {}
        self._starts: list[int] = []
        self._contexts: list[Label] = []
        words = "|".join(sorted(map(re.escape, places.words), key=len, reverse=True))
        names = "|".join(sorted(map(re.escape, places.steps), key=len, reverse=True))
        used = set(text)
        self._marks = [mark for mark in map(chr, range(_FIRST_ALIAS, _FIRST_ALIAS + _ALIASES)) if mark not in used][:32]
        said = (
            rf"|(?P<said> ?\(?(?:for |of |in )?(?:the )?\b(?P<word>{words}) ?#?(?P<number>[0-9]{{1,9}})\)?"
            r"(?=[\"'*`_]{0,3} {0,3}(?:[=:|]|is\b|equals\b)))"
            rf"|(?P<about> ?[(\[]?(?:for |of |in )?(?:the )?(?:(?:{words}) )?[\"']?(?P<item>[^\W\d][\w' -]{{0,39}}?)"
            r"[\"']?[)\]]?(?=[\"'*`_]{0,3} {0,3}(?:[=:|]|is\b|equals\b)))"
        )
        self._labelled = re.compile(
            rf"(?<![\w.\]\\])(?P<path>(?:[A-Za-z_]\w*(?:\[[0-9]{{1,9}}\])?\.)*)(?P<name>{names})"
            r"(?:(?P<index>(?:\[[0-9]{1,9}\]){1,9}|_?(?:[0-9]{1,9}|[\u2080-\u2089]{1,9})(?!\w)|_\{[0-9]{1,9}\}"
            r"|\([0-9]{1,9}\))"
            rf"{said if words else ''})?(?![\w\[])",
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
            for found in heading.finditer(line):
                item = self.items.get((found["item"] or "").lower())
                word = (found["word"] or found["list"] or (item and item.word) or "").lower()
                if not word:
                    continue
                kept = list(context)
                for inner in kept[kept.index(word) :] if word in context else ():
                    del context[inner]
                context[word] = item or Round(
                    word, int(found["number"] or found["index"]), "path" if found["list"] else "word"
                )
                front, end = found.end("front"), found.end() + (line[found.end() : found.end() + 1] == ":")
                parts += [line[begin:front], " " * (end - front)]
                begin, level = end, found["front"].count("#") or level
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
            rf'"(?:(?P<generic>{"|".join(_GENERIC)})"\s*:\s*"?(?:(?P=generic) )?(?P<number>[0-9]{{1,9}})"?(?=\s*[,}}])'
            rf'|(?:{words})"\s*:\s*"(?P<item>[^"\\\n]{{1,40}})"|(?:[^"\\\n]|\\.)*")|[{{}}]',
            re.IGNORECASE,
        )
        opened: list[tuple[int, list[Round]]] = []
        spans: list[tuple[int, int, list[Round]]] = []
        for found in token.finditer(text):
            if found[0] == "{":
                opened.append((found.start(), []))
            elif found[0] == "}" and opened:
                start, rounds = opened.pop()
                spans += [(start, found.end(), rounds)] if rounds else []
            elif opened and found["generic"]:
                opened[-1][1].append(Round(found["generic"].lower(), int(found["number"])))
            elif opened and found["item"] and (item := self.items.get(found["item"].lower())) is not None:
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

    def _aliased(self, found: re.Match[str]) -> str:
        name, index = found["name"], found["index"] or ""
        if name not in self._places.steps:
            name = self._written.get(name.lower(), name)
        parts = found.groupdict()
        said, about = parts.get("said"), parts.get("about")
        item = self.items.get((parts.get("item") or "").lower())
        if about and item is None:
            return found[0].removesuffix(about) + self._labelled.sub(self._aliased, about)
        if name not in self._places.steps or not (found["path"] or index or said or item):
            return found[0]
        if index and (index[0] == "(" or index[0].isdigit()) and name[-1].isdigit():
            return found[0]  # t1 of round 2 is not t12, and t1(3) is a product
        if index and f"{name}{index}".translate(_UNMARKED).translate(_SUBSCRIPTS).lower() in self._declared:
            return found[0]
        label = tuple(
            Round(part["word"].lower(), None if part["number"] is None else int(part["number"]), "path")
            for part in _PART.finditer(found["path"])
        )
        label += tuple(Round(None, int(number), "index") for number in _INDEX.findall(index.translate(_SUBSCRIPTS)))
        if said:
            label += (Round(found["word"].lower(), int(found["number"])),)
        label += (item,) if item else ()
        alias = self.alias(name, label)
        return found[0] if alias is None else alias.rjust(len(found[0]))

    def alias(self, name: str, label: Label) -> str | None:
        """The alias of a labelled name; None where there are too many."""
        key = name, label
        if key not in self._given:
            count = len(self._given)
            mark, place = divmod(count, _ALIASES)
            if mark >= len(self._marks):
                return None
            alias = f"q{self._marks[mark]}{chr(_FIRST_ALIAS + place)}"
            self._given[key] = alias
            self.aliases[alias] = key
        return self._given[key]


_UNMARKED: Final = str.maketrans("", "", "_{}")
_SUBSCRIPTS: Final = {0x2080 + digit: str(digit) for digit in range(10)}
