"""From a raw completion to claims: strict, and never guessing.

`read_reply` finds the one JSON object that answers the asked steps, in whatever a server wraps around it (fences,
prose, think blocks, a tool call, a second layer of quotes), and turns its entries into claims. Nothing is closed,
completed, renumbered or defaulted: what cannot be read as it stands becomes a deviation, and nothing inside a broken
object is used. A reply is refused as a whole when it is cut off, when it holds two different answers, or when it is
not an answer at all; otherwise each asked step yields a claim or a deviation of its own.

Keys are step ids, exactly as they were asked. What is not asked for is recorded as a deviation and never used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stepguard.partial_replies import STOPPED, complete_entries
from stepguard.reply_formats import RESPONSE_NAME, ReplyFormat
from stepguard.strict_json import JsonObject, decode, decode_at, same
from stepguard.verdicts import DEVIATION_KINDS, Claim, Deviation, DeviationKind, shorten

if TYPE_CHECKING:
    from stepguard.backends.base import Completion
    from stepguard.steps import Step

__all__ = ["TOOL_NAME", "Reading", "read_draft", "read_reply", "without_thinking"]

TOOL_NAME: Final = RESPONSE_NAME
"""The name of the tool where a provider answers by a tool call."""

MAX_REPLY: Final = 2_000_000
_MAX_GROUPS: Final = 1000
_MAX_EXTRAS: Final = 20

# As providers call them, behind whatever translates their answers.
_CUT_REASONS: Final = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
        *("incomplete", "limit", "token_limit", "token_limit_reached", "truncated"),
    }
)
_FILTER_REASONS: Final = frozenset(
    {
        *("content_filter", "content-filter", "content_filtered", "guardrail_intervened", "refusal", "safety"),
        *("blocklist", "prohibited_content", "recitation", "sensitive", "spii"),
    }
)
_ANSWER_KEYS: Final = frozenset({"answer", "finalanswer", "theanswer", "result", "finalresult", "final", "solution"})
_NO_LETTER = re.compile(r"[\W_]+")

# How models and servers mark what is not meant for the reader. Every repetition is bounded, so the scan is linear.
_THOUGHT = r"(?:[a-z]{1,20}:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
_TAG_PATTERN: Final = (
    r"(?P<final><\|channel\|>\s{0,9}final\b(?:[^<>]|<\|constrain\|>){0,99}<\|message\|>)"
    rf"|(?P<close></{_THOUGHT}\s{{0,9}}>|<\|/{_THOUGHT}\|>|\[/think(?:ing)?\]|\u25c1/think\u25b7"
    r"|<\|end_(?:of_)?(?:thinking|thought|reasoning)\|>)"
    rf"|(?P<open><{_THOUGHT}(?:\s[^<>]{{0,200}})?(?<!/)>|<\|{_THOUGHT}\|>|\[think(?:ing)?\]|\u25c1think\u25b7"
    r"|<\|(?:start|begin)_(?:of_)?(?:thinking|thought|reasoning)\|>"
    r"|<\|channel\|>\s{0,9}(?:analysis|commentary)\b(?:[^<>]|<\|constrain\|>){0,99}<\|message\|>)"
)
_TAG = re.compile(_TAG_PATTERN, re.IGNORECASE)
_TAG_OR_OBJECT = re.compile(rf"{_TAG_PATTERN}|(?P<object>\{{(?=\s*\"))", re.IGNORECASE)

# Where JSON, or something that was meant as JSON, begins; other braces belong to prose.
_GROUP = re.compile(r"""\{(?=[{\[]|\s*(?:\\?["'}/]|[\w-]{1,99}\s{0,9}:))|\[(?=\s*[\[{"])""")
_INTERESTING = re.compile(r"[\"{}\[\]]")
_STRING_END = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_KEY = re.compile(r"""(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]{0,99})(?![A-Za-z0-9_])\\?["']?\s{0,9}:""")
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`]{0,100}\n")


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


def read_reply(completion: Completion, steps: Sequence[Step], reply_format: ReplyFormat) -> Reading:
    """Read a completion as the answer to `steps`.

    Never raises for anything a model can write, but passes on what a reply format raises.

    Surplus does not spoil what was asked: where every asked step is answered, but something else is said too (another
    step, a final answer, another order), the claims stand and are judged, `failed` is None, and the surplus is
    recorded as deviations. It is never used, so asking again could only cost. Where an asked step has no claim, the
    claims of the steps before it stand, and it is what `failed` names.

    A refusal, a content filter, a tool that was not offered, and answers that differ between two objects or between
    the content and a tool call (neither goes before the other) refuse the reply as a whole. Reasoning that came apart
    from the content is never read as the answer.
    """
    if completion.finish_reason == STOPPED:
        return _stopped(completion, steps, reply_format)
    found = _document(completion, [step.id for step in steps])
    if isinstance(found, Deviation):
        return Reading((), (found,), found)
    return _claims(found, steps, reply_format)


def _stopped(completion: Completion, steps: Sequence[Step], reply_format: ReplyFormat) -> Reading:
    """Read the complete entries of a reply that was stopped because one of them is wrong."""
    texts = [call.arguments for call in completion.tool_calls] or [completion.text or ""]
    found = complete_entries(texts[0])
    answered = steps[: len(found)]
    reading = _claims(found, answered, reply_format)
    if reading.failed is not None or len(answered) == len(steps):
        return reading
    # It is not told: a step before it is to blame.
    rest = Deviation("truncated", steps[len(answered)].id, "the reply was stopped before it")
    return Reading(reading.claims, reading.deviations, rest)


def read_draft(completion: Completion) -> str | Deviation:
    """The free text of a completion that is not to be read any further, without what the model only thought."""
    finish = _finish(completion)
    if completion.refusal and completion.refusal.strip():
        return Deviation("refused", None, f"the model declined: {shorten(completion.refusal.strip(), 200)}")
    if finish in _FILTER_REASONS:
        return Deviation("refused", None, "the provider's content filter stopped the working")
    text = without_thinking(completion.text or "")
    if finish in _CUT_REASONS or text is None:
        return Deviation("truncated", None, "the working was cut off")
    text = text.replace("\0", "\n").strip()
    return text or Deviation("empty", None, "there is no working")


def _finish(completion: Completion) -> str:
    """Why a reply ended, in lower case; ``FinishReason.MAX_TOKENS`` is the same without its class."""
    return (completion.finish_reason or "").lower().rpartition(".")[2]


def _claims(found: JsonObject, steps: Sequence[Step], reply_format: ReplyFormat) -> Reading:
    deviations = _protocol(found, steps)
    claims: list[Claim] = []
    for step in steps:
        if step.id not in found:
            failed = Deviation("missing_step", step.id, "the reply has no entry for it")
        elif step.id in found.repeated:
            failed = Deviation("duplicate_step", step.id, "the reply answers it twice")
        elif repeated := _nested_repeat(found[step.id]):
            failed = Deviation("malformed", step.id, f"the key {shorten(repeated)!r} stands twice in its entry")
        else:
            claim = _made(step, reply_format.claim(step, found[step.id]))
            if isinstance(claim, Claim):
                claims.append(claim)
                continue
            failed = claim
        return Reading(tuple(claims), (*deviations, failed), failed)
    return Reading(tuple(claims), tuple(deviations))


def _made(step: Step, given: object) -> Claim | Deviation:
    """What a reply format made of an entry.

    Raises:
        TypeError: it made something else, or no claim of text about this step: such a format is to be mended.
    """
    if isinstance(given, Deviation) and given.kind in DEVIATION_KINDS:
        return given
    if isinstance(given, Claim) and given.step == step.id and isinstance(given.work, tuple):
        parts: tuple[object, ...] = (given.value, given.text, *given.work)
        if all(isinstance(part, str) for part in parts):
            return given
    raise TypeError(f"the reply format made no Claim of text about {step.id!r} and no Deviation, but {given!r:.100}")


def _protocol(found: JsonObject, steps: Sequence[Step]) -> list[Deviation]:
    """What is wrong with the keys: not asked for, or out of order."""
    ids = [step.id for step in steps]
    keys = list(found)
    asked = frozenset(ids)
    extra = [key for key in keys if key not in asked]
    deviations: list[Deviation] = []
    for key in extra[:_MAX_EXTRAS]:
        is_answer = _NO_LETTER.sub("", key[:80]).lower() in _ANSWER_KEYS
        kind: DeviationKind = "premature_answer" if is_answer else "extra_step"
        deviations.append(Deviation(kind, shorten(key), "it was not asked for"))
    if len(extra) > _MAX_EXTRAS:
        deviations.append(Deviation("extra_step", None, f"and {len(extra) - _MAX_EXTRAS} more that were not asked for"))
    if [key for key in keys if key in asked] != [step_id for step_id in ids if step_id in found]:
        deviations.append(Deviation("wrong_order", None, "the steps are not answered in the order they were asked"))
    return deviations


def _nested_repeat(field: object) -> str | None:
    stack = [field]
    while stack:
        node = stack.pop()
        if isinstance(node, JsonObject):
            if node.repeated:
                return min(node.repeated) or "(empty)"
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return None


# Finding the object


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A text that holds no answer, and none that is broken: why it cannot stand alone."""

    deviation: Deviation


_Found = JsonObject | Deviation | _Nothing


def _document(completion: Completion, ids: list[str]) -> JsonObject | Deviation:
    """The one object in a completion that answers the steps, or why there is none."""
    finish = _finish(completion)
    if completion.refusal and completion.refusal.strip():
        return Deviation("refused", None, f"the model declined: {shorten(completion.refusal.strip(), 200)}")
    if finish in _FILTER_REASONS:
        return Deviation("refused", None, "the provider's content filter stopped the reply")
    for call in completion.tool_calls:
        if call.name != TOOL_NAME:
            return Deviation("malformed", None, f"it calls the tool {shorten(call.name)!r}; the tool is {TOOL_NAME!r}")
    cut = finish in _CUT_REASONS
    thought = len(completion.reasoning or "")
    content = _find_object(completion.text or "", ids, cut=cut, thought=thought)
    if not completion.tool_calls:
        return content.deviation if isinstance(content, _Nothing) else content
    # Words beside a tool call may hold no answer, but not another one.
    found: list[_Found] = [] if isinstance(content, _Nothing) else [content]
    found += [_find_object(call.arguments, ids, cut=cut, thought=thought) for call in completion.tool_calls]
    answers: list[JsonObject] = []
    for each in found:
        if isinstance(each, Deviation | _Nothing):
            return each.deviation if isinstance(each, _Nothing) else each
        answers.append(each)
    return _agreed(answers)


def _agreed(answers: list[JsonObject]) -> JsonObject | Deviation:
    if all(same(each, answers[0]) for each in answers[1:]):
        return answers[0]
    return Deviation("malformed", None, "the reply holds several answers that differ")


def _find_object(text: str, ids: list[str], *, cut: bool, thought: int) -> _Found:
    body = text.strip().lstrip("\ufeff").strip()
    if len(body) > MAX_REPLY:
        kind: DeviationKind = "truncated" if cut else "malformed"
        return Deviation(kind, None, f"the reply is too long to be read ({len(body)} characters)")
    whole = _decoded(_inside_fence(body) or body)
    if isinstance(whole, str):  # JSON inside a JSON string, once (a number is itself again)
        body = whole.strip()
        whole = _decoded(body)
    if isinstance(whole, JsonObject):
        return whole
    spoken = without_thinking(body)
    if cut:
        where = f"after {len(body)} characters" if body else "before it began"
        where = "inside its own thinking" if spoken is None else where
        return _cut_off(body, f"the reply was cut off {where}{_thoughts(thought)}")
    if spoken is None:
        return Deviation("malformed", None, "the reply ends inside its own thinking")
    if not spoken.strip("\0 \t\r\n"):
        return _Nothing(Deviation("empty", None, f"the content is empty{_thoughts(thought + len(body))}"))
    return _search(spoken, ids)


def _cut_off(body: str, reason: str) -> _Found:
    deviation = Deviation("truncated", None, reason)
    return deviation if body else _Nothing(deviation)


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
    if opening is None or not body.endswith(opening[1]):
        return None
    return body[opening.end() : -len(opening[1])].strip()


def without_thinking(body: str) -> str | None:
    """The text outside think blocks, its parts joined by NUL; None where a block is never closed.

    A tag inside a string of a complete object is text. What stands before a closing tag without an opening one was
    thinking too: some servers swallow the opening tag.
    """
    if _TAG.search(body) is None:
        return body
    parts: list[str] = []
    depth = start = at = opened = 0
    scanner = _TAG_OR_OBJECT
    while (found := scanner.search(body, at)) is not None:
        kind, at = found.lastgroup, found.end()
        if kind == "object":
            if depth == 0:
                try:
                    at = decode_at(body, found.start())[1]
                except ValueError:
                    scanner = _TAG  # its strings cannot be told from the rest
        elif kind == "open":
            if depth == 0:
                parts.append(body[start : found.start()])
                depth = 1
            elif body[opened : found.start()].strip():  # a second tag right behind the first is a stutter
                depth += 1
            opened = at
        elif kind == "final" or depth == 0:
            parts.clear()
            depth, start = 0, at
        else:
            depth -= 1
            start = at
    if depth:
        return None
    # NUL is valid nowhere in JSON: no object can grow together across a block.
    return "\0".join([*parts, body[start:]])


def _search(spoken: str, ids: list[str]) -> _Found:
    asked = frozenset(ids)
    full: list[JsonObject] = []
    partial: list[JsonObject] = []
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
            if _names_a_step(spoken[start.start() : end], asked):
                # What stands inside a broken object is not taken out of it, and it may be another draft.
                return Deviation("malformed", None, why)
            broken = broken or why
            if end is None:
                break
            at = end
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, JsonObject) and not asked.isdisjoint(each):
                if asked <= each.keys():
                    full.append(each)
                elif full and any(not same(each[key], full[-1].get(key)) for key in asked & each.keys()):
                    return Deviation("self_correction", None, "a part of the answer is given again, and differs")
                else:
                    partial.append(each)
    if full or partial:
        return _agreed(full or partial)
    ignored = "the endpoint may ignore the response format"
    if groups == 0:
        return _Nothing(Deviation("malformed", None, f"the reply holds no JSON object; {ignored}"))
    reason = f"no object in the reply answers a step that was asked; {ignored}"
    return _Nothing(Deviation("malformed", None, f"{broken}; {reason}" if broken else reason))


def _why(error: ValueError) -> str:
    said = str(getattr(error, "msg", error)).split(":")[0]
    if "escape" in said or "control character" in said:
        said = f"bad escaping, {said}"
    return f" ({shorten(said)})"


def _names_a_step(text: str, asked: frozenset[str]) -> bool:
    return any(found[1] in asked for found in _KEY.finditer(text))


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
