"""Finds the one JSON object in a text, in whatever a server or a model wraps around it.

Fences, prose, think blocks and a second layer of quotes are looked through. Nothing is closed or completed, nothing
inside a broken object is used, and of two answers that differ none is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import Deviation, DeviationKind, shorten
from stepguard.language.prose.following import MARKUP, unread_behind
from stepguard.language.prose.idioms import points_below
from stepguard.language.prose.mentioned import Mentions, in_digits
from stepguard.language.prose.struck_text import struck_spans
from stepguard.language.prose.understanding import Understanding
from stepguard.language.strict_json import JsonObject, decode, decode_at, same
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value
from stepguard.replies.surplus import Surplus, folded
from stepguard.replies.thinking import Unclosed, hides, without_thinking

MAX_REPLY: Final = 2_000_000
_MAX_GROUPS: Final = 1000  # each may be parsed to the end of the reply

# Where JSON, or something that was meant as JSON, begins; other braces belong to prose.
_GROUP = lazy_pattern(r"""\{(?=[{\[]|\s*(?:\\?["'}/]|[\w-]{1,99}\s{0,9}:))|\[(?=\s*[\[{"])""")
_STRUCTURE = lazy_pattern(r"[\"'{}\[\]\\_]")
_INTERESTING = lazy_pattern(r"[\"{}\[\]]")
# Possessive, or a string without an end is tried at every length.
_STRING_END = lazy_pattern(r'[^"\\]*+(?:\\.[^"\\]*+)*"', re.DOTALL)
_KEY = lazy_pattern(r"""(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]{0,99})(?![A-Za-z0-9_])\\?["']?\s{0,9}:""")
_FENCE_LINE = lazy_pattern(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*", re.MULTILINE)
_CLOSED_FENCE: Final = lazy_pattern(r"^[ \t]*(```|~~~)[^\n]*\n(?:(?!^[ \t]*\1).*\n)*^[ \t]*\1[^\n]*", re.MULTILINE)
_ROUNDED: Final = lazy_pattern(r"\brounded (?:off )?to (\w+) decimals?\b(?: places?\b)?", re.IGNORECASE)
_FENCE = lazy_pattern(r"(`{3,}|~{3,})([^\n`]{0,100})\n")


@dataclass(frozen=True, slots=True)
class NoObject:
    """A text that holds no answer, and none that is broken: why it cannot stand alone."""

    deviation: Deviation


@dataclass(frozen=True, slots=True)
class WantedObject:
    """What a text is to answer.

    Attributes:
        types: the type of each step, by its name.
        understood: what is understood around an answer; called where something stands there.
        read: the values that the steps read.
        names: the names that the procedure declares, as far as they are known.
        said: the words of the steps.
        answer: which step is the procedure's answer, unless it is proved.
        proved: whether the checks of the steps pass one value only.
    """

    types: Mapping[str, ValueType]
    understood: Callable[[], Understanding]
    read: Mapping[str, Value]
    names: Collection[str] = ()
    said: str = ""
    answer: str | None = None
    proved: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the steps."""
        return tuple(self.types)


SearchResult = JsonObject | Deviation | NoObject


def one_of_all(answers: list[JsonObject]) -> JsonObject | Deviation:
    """The answer that several alike are; a deviation where they differ."""
    if all(same(other, answers[0]) for other in answers[1:]):
        return answers[0]
    return Deviation("malformed", None, "the reply holds several answers that differ")


def find_object(text: str, wanted: WantedObject, *, cut: bool, thought: int) -> SearchResult:
    """The one object in a text that answers the steps, or why there is none.

    Args:
        text: what was said.
        wanted: what was asked.
        cut: whether it was cut off.
        thought: how many characters of reasoning came apart from it.
    """
    body = text.strip().lstrip("\ufeff").strip()
    if len(body) > MAX_REPLY:
        kind: DeviationKind = "truncated" if cut else "malformed"
        return Deviation(kind, None, f"the reply is too long to be read ({len(body)} characters)")
    whole = _decoded(_inside_fence(body) or body)
    if isinstance(whole, str):  # JSON inside a JSON string, once (a number is itself again)
        body = whole.strip()
        whole = _decoded(body)
    if isinstance(whole, JsonObject):
        return _not_taken_back_inside(whole, wanted)
    spoken = without_thinking(body, framed=True)
    if cut:
        where = f"after {len(body)} characters" if body else "before it began"
        where = "inside its own thinking" if isinstance(spoken, Unclosed) else where
        return _cut_off(body, f"the reply was cut off {where}{_thoughts(thought)}")
    if isinstance(spoken, Unclosed):
        why = f"the reply ends inside its own thinking: {shorten(spoken.mark)!r} is not closed"
        return Deviation("malformed", None, why)
    if not spoken.strip("\0 \t\r\n"):
        return NoObject(Deviation("empty", None, f"the content is empty{_thoughts(thought + len(body))}"))
    return _search(spoken, wanted)


def _without_declared(said: re.Match[str], types: Mapping[str, ValueType]) -> str:
    """Words by which a writer rounds, but blanks where every step that rounds is declared so."""
    places = {str(kind.places) for kind in types.values() if kind.places is not None}
    return "given".ljust(len(said[0])) if {in_digits(said[1])} == places else said[0]


def _cut_off(body: str, reason: str) -> SearchResult:
    deviation = Deviation("truncated", None, reason)
    return deviation if body else NoObject(deviation)


def _thoughts(characters: int) -> str:
    return f"; {characters} characters of reasoning are present" if characters else ""


def _decoded(body: str) -> object:
    try:
        return decode(body)
    except ValueError:
        return None


def _inside_fence(body: str) -> str | None:
    """What one fence around the whole text holds, None where there is no such fence."""
    opening = _FENCE.match(body)
    if opening is None or not body.endswith(opening[1]) or hides(opening[2].strip()):
        return None
    return body[opening.end() : -len(opening[1])].strip()


def _search(spoken: str, wanted: WantedObject) -> SearchResult:
    asked = frozenset(wanted.ids)
    full: list[JsonObject] = []
    partial: list[JsonObject] = []
    spans: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    broken = ""
    at = groups = 0
    while (start := _GROUP.search(spoken, at)) is not None:
        groups += 1
        if groups > _MAX_GROUPS:
            return Deviation("malformed", None, f"more than {_MAX_GROUPS} objects in one reply")
        try:
            value, at = decode_at(spoken, start.start())
        except ValueError as error:
            end = _matching_brace(spoken, start.start())
            why = "an object is not closed" if end is None else f"an object is not valid JSON{_why(error)}"
            if any(found[1] in asked for found in _KEY.finditer(spoken[start.start() : end])):
                # What stands inside a broken object is not taken out of it, and it may be another draft.
                return Deviation("malformed", None, why)
            broken = broken or why
            if end is None:
                break
            others.append((start.start(), end))
            at = end
            continue
        others.append((start.start(), at))
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, JsonObject) and not asked.isdisjoint(each):
                spans.append((start.start(), at))
                others = others[:-1] if others[-1:] == spans[-1:] else others
                (full if asked <= each.keys() else partial).append(each)
    if full or partial:
        # An object with every step outweighs parts of it, which may not contradict it.
        answer = one_of_all(full or partial)
        if isinstance(answer, JsonObject) and any(_contradicts(part, answer, asked) for part in partial):
            return Deviation("self_correction", None, "a part of the answer is given again, and differs")
        if isinstance(answer, Deviation):
            return answer
        mentions = _mentions(answer, wanted)
        understanding = wanted.understood()
        strange = (spoken[a:b] for a, b in others if _is_strange(spoken[a:b], understanding, mentions))
        said = _ROUNDED.sub(lambda found: _without_declared(found, wanted.types), _blanked(spoken, others))
        taken_back = next(strange, None) or _taken_back(said, spans, understanding, mentions)
        if taken_back is not None:
            why = "the words around the answer take it back, or are not understood"
            return Deviation("self_correction", None, f"{why}: {shorten(taken_back)!r}")
        return _not_taken_back_inside(answer, wanted)
    ignored = "the endpoint may ignore the response format"
    if groups == 0:
        return NoObject(Deviation("malformed", None, f"the reply holds no JSON object; {ignored}"))
    reason = f"no object in the reply answers a step that was asked; {ignored}"
    return NoObject(Deviation("malformed", None, f"{broken}; {reason}" if broken else reason))


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """A text of the same length without what stands at some places."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], " " * (end - start))
        at = end
    return "".join((*pieces, text[at:]))


def _is_strange(other: str, understanding: Understanding, mentions: Mentions) -> bool:
    """Whether the words of another object are not understood, or it gives a value that is not the answer's."""
    words = _STRUCTURE.sub(" ", MARKUP.sub(" ", other))
    return bool(understanding.unread(words, behind=True)) or mentions.misstated(words)


def _taken_back(
    spoken: str, spans: list[tuple[int, int]], understanding: Understanding, mentions: Mentions
) -> str | None:
    """The words around the answers that strike one out, take it back or are not understood; None if there are none."""
    pieces: list[str] = []
    end = 0
    for start, behind in spans:
        if start < end:
            continue  # of the same list
        front = spoken[end:start]
        for line in _leading(MARKUP.sub(" ", _FENCE_LINE.sub("", _CLOSED_FENCE.sub("", front)))):
            if (
                line[-1:] in ("#", ";", "%")
                or line.strip() == "--"
                or mentions.misstated(line)
                or mentions.chooses_another(line)
            ):
                return line
            told = mentions.restated(line) if understanding.proved and not mentions.contradicted(line) else None
            if told is not None:
                if understanding.disowns(*told):
                    return line
            elif (said := understanding.unread_before(line)) and not understanding.leads_in(line):
                return said
        pieces += (front, "x" * (behind - start))
        end = behind
    rest = _FENCE_LINE.sub(lambda line: " " * len(line[0]), "".join(pieces) + spoken[end:])
    struck = [(each.start, each.end) for each in struck_spans(rest)]
    starts = [start for start, _ in spans]
    for opened, stop in struck:
        first = bisect_left(starts, opened)
        if first < len(starts) and starts[first] < stop:
            return rest[opened : min(stop, opened + 9)]
    given = " ".join(spoken[start:behind] for start, behind in spans)
    return unread_behind(understanding, rest[end:], given, mentions=mentions, whole=True) or None


def words_before_call(text: str, answer: JsonObject, wanted: WantedObject) -> str:
    """The words beside a tool call that take it back, or are not understood; empty where there are none."""
    spoken = without_thinking(text, framed=True)
    if isinstance(spoken, Unclosed) or not spoken.strip("\0 \t\r\n"):
        return ""
    mentions, understanding = _mentions(answer, wanted), wanted.understood()
    return next(
        (line for line in _leading(spoken) if mentions.misstated(line) or understanding.unread_before(line)), ""
    )


def _leading(front: str) -> list[str]:
    """The lines in front of an answer that lead to it: those that speak of what is below them, and the last one."""
    *lines, last = front.strip("\0 \t\r\n").split("\n")
    return [*(line for line in lines if points_below(line)), last]


def _mentions(answer: JsonObject, wanted: WantedObject) -> Mentions:
    read = {name: show_value(value) for name, value in wanted.read.items()} | {"": wanted.said}
    answers = {key: answer[key] for key in wanted.ids if key in answer}
    choices = [
        (str(given.get("value") if isinstance(given, dict) else given), wanted.types[key].options)
        for key, given in answers.items()
        if wanted.types[key].options
    ]
    return Mentions.of({key: str(given) for key, given in answers.items()}, read, choices)


def _not_taken_back_inside(answer: JsonObject, wanted: WantedObject) -> JsonObject | Deviation:
    """An answer of which no entry of its own beside those that were asked says something else, or takes it back."""
    asked = {key: answer[key] for key in wanted.ids if key in answer}
    if not asked or len(asked) == len(answer):
        return answer
    given = {name: show_value(value) for name, value in wanted.read.items()}
    given |= {key: str(each.get("value", each) if isinstance(each, dict) else each) for key, each in asked.items()}
    spellings = {folded(name): name for name in given}
    mentions = _mentions(answer, wanted)
    surplus = Surplus(
        given,
        wanted.types,
        wanted.understood(),
        mentions,
        spellings,
        names=wanted.names,
        answer=wanted.answer,
        proved=wanted.proved,
    )
    said = surplus.otherwise({key: entry for key, entry in answer.items() if key not in asked})
    if said is not None:
        why = "an entry beside the answer takes it back, or is not understood"
        return Deviation("self_correction", None, f"{why}: {shorten(said)!r}")
    return answer


def _contradicts(part: JsonObject, answer: JsonObject, asked: frozenset[str]) -> bool:
    """Whether a part of the answer that is given apart from it, before or behind, says something else."""
    return any(not same(part[key], answer[key]) for key in asked & part.keys())


def _why(error: ValueError) -> str:
    reason = str(getattr(error, "msg", error)).split(":")[0]
    if "escape" in reason or "control character" in reason:
        reason = f"bad escaping, {reason}"
    return f" ({shorten(reason)})"


def _matching_brace(text: str, start: int) -> int | None:
    """The offset behind the brace that closes the one at `start`; strings are passed over."""
    depth = 0
    at = start
    while (found := _INTERESTING.search(text, at)) is not None:
        at = found.end()
        char = found[0]
        if char == '"':
            closing = _STRING_END.match(text, at)
            if closing is None:
                return None
            at = closing.end()
        elif char in "{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return at
    return None
