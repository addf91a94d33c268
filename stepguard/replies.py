"""From a raw completion to claims: strict, and never guessing.

`read_reply` finds the one JSON object that answers the asked steps, in whatever a server wraps around it, and turns
its entries into claims. Nothing is closed, completed, renumbered or defaulted: what cannot be read as it stands
becomes a deviation. A reply is refused as a whole when it is cut off, when it holds two different answers, or when
it is not an answer at all; otherwise each asked step yields a claim or a deviation of its own.

Keys are step ids, exactly as they were asked. What is not asked for is recorded as a deviation and never used.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from stepguard.reply_formats import JsonNumber, ReplyFormat
from stepguard.verdicts import Claim, Deviation, DeviationKind

if TYPE_CHECKING:
    from stepguard.backends.base import Completion
    from stepguard.procedure import Step

__all__ = ["TOOL_NAME", "Reading", "read_reply"]

TOOL_NAME: Final = "Steps"
"""The name of the response model, and so of the tool where a provider answers by a tool call."""

MAX_REPLY: Final = 2_000_000
_MAX_CANDIDATES: Final = 100
_THINK = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINK_OPEN = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_OBJECT_START = re.compile(r"\{\s*[\"}]")
_INTERESTING = re.compile(r"[\"{}\[\]]")
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_ANSWER_KEYS: Final = frozenset({"answer", "final_answer", "final answer", "result", "final", "final_result"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a completion says about the steps that were asked.

    Attributes:
        claims: the claims that can be judged: those of the first steps, up to the first one that has none.
        deviations: everything that is wrong with the reply itself, in the order it was found.
        failed: the deviation that ended `claims` early, None where every step has a claim.
    """

    claims: tuple[Claim, ...]
    deviations: tuple[Deviation, ...] = ()
    failed: Deviation | None = None


class _Duplicates(dict[str, object]):
    """A decoded object that remembers which keys stood in it twice."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.repeated: frozenset[str] = frozenset()
        if len(self) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.repeated = frozenset(key for key, count in counts.items() if count > 1)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Duplicates, parse_int=JsonNumber, parse_float=JsonNumber, parse_constant=_refuse_constant
)


def read_reply(completion: Completion, steps: Sequence[Step], reply_format: ReplyFormat) -> Reading:
    """Read a completion as the answer to `steps`."""
    found = _document(completion, [step.id for step in steps])
    if isinstance(found, Deviation):
        return Reading((), (found,), found)
    return _claims(found, steps, reply_format)


def _claims(found: _Duplicates, steps: Sequence[Step], reply_format: ReplyFormat) -> Reading:
    deviations = _protocol(found, steps)
    claims: list[Claim] = []
    for step in steps:
        if step.id not in found:
            failed = Deviation("missing_step", step.id, "the reply has no entry for it")
        elif step.id in found.repeated:
            failed = Deviation("duplicate_step", step.id, "the reply answers it twice")
        elif repeated := _nested_repeat(found[step.id]):
            failed = Deviation("malformed", step.id, f"the key {repeated[:40]!r} stands twice in its entry")
        else:
            claim = reply_format.claim(step, found[step.id])
            if isinstance(claim, Claim):
                claims.append(claim)
                continue
            failed = claim
        return Reading(tuple(claims), (*deviations, failed), failed)
    return Reading(tuple(claims), tuple(deviations))


def _protocol(found: _Duplicates, steps: Sequence[Step]) -> list[Deviation]:
    """What is wrong with the keys: not asked for, or out of order."""
    ids = [step.id for step in steps]
    keys = list(found)
    if keys == ids:
        return []
    deviations: list[Deviation] = []
    asked = frozenset(ids)
    for key in keys:
        if key not in asked:
            kind: DeviationKind = "premature_answer" if key.strip().lower() in _ANSWER_KEYS else "extra_step"
            deviations.append(Deviation(kind, key[:80], "it was not asked for"))
    if [key for key in keys if key in asked] != [step_id for step_id in ids if step_id in found]:
        deviations.append(Deviation("wrong_order", None, "the steps are not answered in the order they were asked"))
    return deviations


def _nested_repeat(field: object) -> str | None:
    stack = [field]
    while stack:
        node = stack.pop()
        if isinstance(node, _Duplicates):
            if node.repeated:
                return min(node.repeated)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return None


def _document(completion: Completion, ids: list[str]) -> _Duplicates | Deviation:
    """The one object in a completion that answers the steps, or why there is none."""
    if completion.refusal:
        return Deviation("refused", None, f"the model declined: {completion.refusal[:200]}")
    if completion.finish_reason == "content_filter":
        return Deviation("refused", None, "the provider's content filter stopped the reply")
    texts: list[str] = []
    for call in completion.tool_calls:
        if call.name != TOOL_NAME:
            return Deviation("malformed", None, f"it calls the tool {call.name[:80]!r}; the tool is {TOOL_NAME!r}")
        texts.append(call.arguments)
    content = completion.text or ""
    if content.strip():
        texts.insert(0, content)
    if not texts:
        if completion.finish_reason == "length":
            return Deviation("truncated", None, "the reply was cut off before it began")
        thought = f"; {len(completion.reasoning)} characters of reasoning are present" if completion.reasoning else ""
        return Deviation("empty", None, f"the content is empty{thought}")
    found: list[_Duplicates] = []
    for text in texts:
        one = _find_object(text, ids, cut=completion.finish_reason == "length")
        if isinstance(one, Deviation):
            # Words beside a tool call are allowed to hold no answer, but not a broken one.
            if text is content and completion.tool_calls and one.kind == "malformed" and "{" not in text:
                continue
            return one
        found.append(one)
    if any(_differ(one, found[0]) for one in found[1:]):
        return Deviation("malformed", None, "the reply holds several answers that differ")
    return found[0]


def _differ(one: _Duplicates, other: _Duplicates) -> bool:
    return list(one.items()) != list(other.items()) or one.repeated != other.repeated


def _find_object(text: str, ids: list[str], *, cut: bool) -> _Duplicates | Deviation:
    if len(text) > MAX_REPLY:
        return Deviation("malformed", None, f"the reply is too long to be read ({len(text)} characters)")
    body = text.strip().lstrip("\ufeff").strip()
    whole = _decode(body)
    if isinstance(whole, str) and not isinstance(whole, JsonNumber):  # JSON inside a JSON string, once
        body = whole.strip()
        whole = _decode(body)
    if isinstance(whole, _Duplicates):
        return whole
    spoken = _without_thinking(body)
    if spoken is None:
        kind: DeviationKind = "truncated" if cut else "malformed"
        return Deviation(kind, None, "the reply ends inside its own thinking")
    if cut:
        return Deviation("truncated", None, f"the reply was cut off after {len(text)} characters")
    return _search(spoken, ids)


def _decode(body: str) -> object:
    try:
        return cast(object, _DECODER.decode(body))
    except (ValueError, RecursionError):
        return None


def _without_thinking(body: str) -> str | None:
    """The text outside think blocks; None where one is never closed."""
    spoken = _THINK.sub(" ", body)
    if _THINK_OPEN.search(spoken):
        return None
    # Some servers swallow the opening tag: everything before the closing one was thinking.
    *_, spoken = _THINK_CLOSE.split(spoken)
    return spoken


def _search(spoken: str, ids: list[str]) -> _Duplicates | Deviation:
    asked = frozenset(ids)
    full: list[_Duplicates] = []
    partial: list[_Duplicates] = []
    broken = rival = ""  # a rival is a broken object that names a step: it may be another draft of the answer
    at = tried = 0
    while (start := _OBJECT_START.search(spoken, at)) is not None:
        tried += 1
        if tried > _MAX_CANDIDATES:
            return Deviation("malformed", None, f"more than {_MAX_CANDIDATES} objects in one reply")
        end = _matching_brace(spoken, start.start())
        if end is None:
            # What stands inside a broken object is not taken out of it.
            broken = "an object is not closed"
            rival = rival or _names_a_step(spoken[start.start() :], ids)
            break
        found = _decode(spoken[start.start() : end])
        if isinstance(found, _Duplicates):
            if asked <= found.keys():
                full.append(found)
            elif asked & found.keys():
                partial.append(found)
        else:
            broken = "an object is not valid JSON"
            rival = rival or _names_a_step(spoken[start.start() : end], ids)
        at = end
    candidates = full or partial
    if any(_differ(one, candidates[0]) for one in candidates[1:]):
        return Deviation("malformed", None, "the reply holds several answers that differ")
    if candidates and not rival:
        return candidates[0]
    if broken:
        return Deviation("malformed", None, broken)
    if "{" in spoken:
        return Deviation("malformed", None, "no object in the reply answers a step that was asked")
    return Deviation("malformed", None, "the reply is not JSON; the endpoint may ignore the response format")


def _names_a_step(text: str, ids: list[str]) -> str:
    return next((step_id for step_id in ids if f'"{step_id}"' in text), "")


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
