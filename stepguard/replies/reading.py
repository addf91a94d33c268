"""Reads a raw completion into claims, strictly and without guessing.

`read_reply` finds the one JSON object that answers the asked steps, in whatever a server wraps around it (fences,
prose, think blocks, a tool call, a second layer of quotes), and turns its entries into claims. Nothing is closed,
completed, renumbered or defaulted: what cannot be read as it stands becomes a deviation, and nothing inside a broken
object is used. A reply is refused as a whole when it is cut off, when it holds two different answers, or when it is
not an answer at all; one that was stopped at a step is read up to it, and one that ran away at its first step is held
against that step; otherwise each asked step yields a claim or a deviation of its own.

Keys are step ids, exactly as they were asked. What is not asked for is recorded as a deviation and never used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from stepguard.backends.base import RESPONSE_NAME, ReplyFormat
from stepguard.core.completions import CUT, FILTERED, STOPPED_EARLY, plain_reason
from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import DEVIATION_KINDS, Claim, Deviation, DeviationKind, shorten
from stepguard.errors import BackendError
from stepguard.language.prose.understanding import Understanding
from stepguard.language.strict_json import JsonObject
from stepguard.replies.partial import complete_entries, is_runaway
from stepguard.replies.surplus import ANSWER_KEYS, folded
from stepguard.replies.text import NoObject, SearchResult, WantedObject, find_object, one_of_all, words_before_call
from stepguard.replies.thinking import Unclosed, without_thinking

if TYPE_CHECKING:
    from stepguard.core.completions import Completion
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step


TOOL_NAME: Final = RESPONSE_NAME
_NAME: Final = re.escape(TOOL_NAME)
_UNREAD_CALL: Final = lazy_pattern(
    # <tool_call>, <|tool_calls_begin|>, <function=NAME>, <invoke name="NAME">, [TOOL_CALLS], ```tool_call, functools[
    rf"(?:[<\[`][^\s<>\[\]{{}}]{{0,30}}?(?i:tool|function|invoke|python_tag)|\bfunctools\[)[\s\S]{{0,160}}?\b{_NAME}\b"
    rf"|(?:<\|channel\|>[^<>]{{0,40}})?\bto\s?=\s?[\w.]{{0,40}}?\b{_NAME}\b"  # harmony: to=functions.NAME
    rf"|\"name\"\s{{0,9}}:\s{{0,9}}\"(?:functions\.)?{_NAME}\"\s{{0,9}},\s{{0,9}}\"(?:arguments|parameters|input)\"\s{{0,9}}:"
    rf"|^\s{{0,9}}\**Action:?\**\s{{0,9}}:?\s{{0,9}}{_NAME}\b|^\s{{0,9}}\[?{_NAME}\(\w",
    re.MULTILINE,
)
"""How models of many families begin to call the tool, where the server does not read it as a call."""
_EXCERPT: Final = 60
"""The name of the tool where a provider answers by a tool call."""

_MAX_EXTRAS: Final = 20

_UNREAD_BY_ENDPOINT: Final = "tool_use_failed"
"""The endpoint says itself that it could not read the tool call, and hands on what the model wrote."""
_NO_VALUES: Final[Mapping[str, Value]] = {}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a completion says about the steps that were asked.

    Attributes:
        claims: the claims that can be judged: those of the first steps, up to the first one that has none.
        deviations: everything that is wrong with the reply itself, in the order it was found.
        failed: the deviation that ended `claims` early, None where every step has a claim.
        runaway: whether the entry that it ends in ran on and on, and would do so for longer.
    """

    claims: tuple[Claim, ...]
    deviations: tuple[Deviation, ...] = ()
    failed: Deviation | None = None
    runaway: bool = False


def read_reply(
    completion: Completion,
    steps: Sequence[Step],
    reply_format: ReplyFormat,
    values: Mapping[str, Value] = _NO_VALUES,
    *,
    words: Collection[str] = (),
    answer: str | None = None,
) -> Reading:
    """Read a completion as the answer to `steps`.

    Never raises for anything a model can write, but passes on what a reply format raises, and raises for a tool call
    that the server left in the content: a fault that is not the model's.

    Surplus does not spoil what was asked: where every asked step is answered, but something else is said too (another
    step, a final answer, another order), the claims stand and are judged, `failed` is None, and the surplus is
    recorded as deviations. It is never used, so asking again could only cost. Where an asked step has no claim, the
    claims of the steps before it stand, and it is what `failed` names.

    A refusal, a content filter, a tool that was not offered, and answers that differ between two objects or between
    the content and a tool call (neither goes before the other) refuse the reply as a whole. Reasoning that came apart
    from the content is never read as the answer.

    The values that the steps read, as far as they are known, tell how long an entry may be that was cut off. Around an
    answer, the words of the steps and `words`, the names that the procedure declares, are understood. Where the
    check of the step that is the procedure's `answer` would pass other values, too, a final answer has to be its value.

    Raises:
        BackendError: the server left a tool call in the content.
    """
    stopped = completion.finish_reason == STOPPED_EARLY
    if stopped or plain_reason(completion.finish_reason) in CUT:
        reading = _unfinished(completion, steps, reply_format, values)
        if stopped or (reading.runaway and not reading.claims):  # more of it would not be more of an answer
            return reading
    proved = all(step.expression is not None for step in steps)
    wanted = WantedObject(
        {step.id: step.type for step in steps},
        lambda: Understanding.of(
            (*(text for step in steps for text in step.words), *words),
            (text for step in steps for name in step.reads if isinstance(text := values.get(name), str)),
            proved=proved,
        ),
        values,
        words,
        " ".join(step.instruction or "" for step in steps),
        answer=next((step.id for step in steps if step.id == answer and step.expression is None), None),
        proved=proved,
    )
    found = _document(completion, wanted)
    if isinstance(found, Deviation):
        return Reading((), (found,), found)
    return _claims(found, steps, reply_format)


def _unfinished(
    completion: Completion, steps: Sequence[Step], reply_format: ReplyFormat, values: Mapping[str, Value]
) -> Reading:
    """Read the complete entries of a reply that was stopped because one of them is wrong, or that was cut off."""
    texts = [call.arguments for call in completion.tool_calls] or [completion.text or ""]
    found, rest = complete_entries(texts[0])
    answered = steps[: len(found)]
    reading = _claims(found, answered, reply_format)
    if len(answered) == len(steps):
        return reading
    step = steps[len(answered)]
    runaway = is_runaway(rest, step, values)
    if reading.failed is not None:
        return replace(reading, runaway=runaway)
    if not runaway:
        # It is not told: a step before it is to blame.
        failed = Deviation("truncated", step.id, "the reply was stopped before it")
        return Reading(reading.claims, reading.deviations, failed)
    failed = Deviation("truncated", step.id, f"the entry ran on without an end, for {len(rest):,} characters")
    return Reading(reading.claims, (*reading.deviations, failed), failed, runaway=True)


def read_draft(completion: Completion) -> str | Deviation:
    """The free text of a completion that is not to be read any further, without what the model only thought."""
    finish = plain_reason(completion.finish_reason)
    if completion.refusal and completion.refusal.strip():
        return Deviation("refused", None, f"the model declined: {shorten(completion.refusal.strip(), 200)}")
    if finish in FILTERED:
        return Deviation("refused", None, "the provider's content filter stopped the working")
    text = without_thinking(completion.text or "")
    if finish in CUT or completion.finish_reason == STOPPED_EARLY or isinstance(text, Unclosed):
        return Deviation("truncated", None, "the working was cut off")
    text = text.replace("\0", "\n").strip()
    return text or Deviation("empty", None, "there is no working")


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
            claim = _claim_of(step, reply_format.claim(step, found[step.id]))
            if isinstance(claim, Claim):
                claims.append(claim)
                continue
            failed = claim
        return Reading(tuple(claims), (*deviations, failed), failed)
    return Reading(tuple(claims), tuple(deviations))


def _claim_of(step: Step, given: object) -> Claim | Deviation:
    """What a reply format made of an entry.

    Raises:
        TypeError: it made something else, or no claim of text about this step: such a format is to be mended.
    """
    if isinstance(given, Claim) and given.step == step.id and isinstance(given.work, tuple):
        if all(isinstance(part, str) for part in (given.value, given.text, *given.work)):
            return given
    elif isinstance(given, Deviation) and given.kind in DEVIATION_KINDS:
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
        is_answer = folded(key[:80]) in ANSWER_KEYS  # a key may be a whole essay
        kind: DeviationKind = "premature_answer" if is_answer else "extra_step"
        deviations.append(Deviation(kind, shorten(key), "it was not asked for"))
    if len(extra) > _MAX_EXTRAS:
        deviations.append(Deviation("extra_step", None, f"and {len(extra) - _MAX_EXTRAS} more that were not asked for"))
    if [key for key in keys if key in asked] != [step_id for step_id in ids if step_id in found]:
        deviations.append(Deviation("wrong_order", None, "the steps are not answered in the order they were asked"))
    return deviations


def _nested_repeat(field: object) -> str | None:
    stack = [] if isinstance(field, str) else [field]
    while stack:
        node = stack.pop()
        if isinstance(node, JsonObject):
            if node.repeated:
                return min(node.repeated) or "(empty)"
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return None


def _document(completion: Completion, wanted: WantedObject) -> JsonObject | Deviation:
    """The one object in a completion that answers the steps, or why there is none."""
    finish = plain_reason(completion.finish_reason)
    if completion.refusal and completion.refusal.strip():
        return Deviation("refused", None, f"the model declined: {shorten(completion.refusal.strip(), 200)}")
    if finish in FILTERED:
        return Deviation("refused", None, "the provider's content filter stopped the reply")
    for call in completion.tool_calls:
        if call.name != TOOL_NAME:
            return Deviation("malformed", None, f"it calls the tool {shorten(call.name)!r}; the tool is {TOOL_NAME!r}")
    cut = finish in CUT
    thought = len(completion.reasoning or "")
    content = find_object(completion.text or "", wanted, cut=cut, thought=thought)
    if not completion.tool_calls and not cut:
        _refuse_unread_call(completion, content, wanted.ids)
    if not completion.tool_calls:
        return content.deviation if isinstance(content, NoObject) else content
    # Words beside a tool call may hold no answer, but not another one.
    found: list[SearchResult] = [] if isinstance(content, NoObject) else [content]
    found += [find_object(call.arguments, wanted, cut=cut, thought=thought) for call in completion.tool_calls]
    answers: list[JsonObject] = []
    for result in found:
        if isinstance(result, Deviation | NoObject):
            return result.deviation if isinstance(result, NoObject) else result
        answers.append(result)
    answer = one_of_all(answers)
    if isinstance(content, NoObject) and isinstance(answer, JsonObject):
        words = words_before_call(completion.text or "", answer, wanted)
        if words:
            why = "the words beside the tool call take it back, or are not understood"
            return Deviation("self_correction", None, f"{why}: {shorten(words)!r}")
    return answer


def _refuse_unread_call(completion: Completion, content: SearchResult, ids: Sequence[str]) -> None:
    """Raise where the answer is a tool call that the server should have read, and did not.

    Raises:
        BackendError: it is. Asking again, in whatever way, would be paid for and bring the same.
    """
    text = completion.text or ""
    answers = isinstance(content, JsonObject) and not content.keys().isdisjoint(ids)
    if (answers and text.lstrip("\ufeff \t\r\n").startswith("{")) or completion.finish_reason == _UNREAD_BY_ENDPOINT:
        return
    call = _UNREAD_CALL.search(text)
    # One in an open thinking block was only thought of.
    if call is not None and isinstance(without_thinking(text[: call.start()]), str):
        excerpt = text[call.start() : call.start() + _EXCERPT]
        raise BackendError(
            f"the server left a tool call in the content instead of reading it ({shorten(excerpt)!r}): start it with "
            "the tool parser of this model, or ask for JSON (mode='json_schema' or 'json')",
            retryable=False,
        )
