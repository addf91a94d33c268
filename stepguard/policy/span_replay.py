"""Replay conversations that were recorded as OpenTelemetry spans, by the conventions for generative AI.

A call is a span ``execute_tool`` with its name, its arguments and its result; or it stands in the messages of spans and
events of inferences (``gen_ai.input.messages``, ``gen_ai.output.messages``). Where both are recorded they are one call
by its identifier. Spans belong together by ``gen_ai.conversation.id``, otherwise by their trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.language.strict_json import JsonObject
from stepguard.policy.replay import RecordedCall, RecordedConversation, SpanPlace
from stepguard.policy.span_records import SpanRecord, read_records, refused_record

__all__ = ["read_span_conversations"]

_INPUT: Final = "gen_ai.input.messages"
_OUTPUT: Final = "gen_ai.output.messages"
_NAME: Final = "gen_ai.tool.name"
_ID: Final = "gen_ai.tool.call.id"
_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
_RESULT: Final = "gen_ai.tool.call.result"
_CONTENT: Final = "turn the recording of their content on, and record the conventions of 1.37 or later"
# Of the conventions before 1.37, in which each message was an event of its own.
_OLD_EVENTS: Final = ("gen_ai.choice", "gen_ai.assistant.message", "gen_ai.tool.message")


def read_span_conversations(lines: Iterable[str]) -> list[RecordedConversation]:
    """The conversations of a file of spans, in the order in which they begin in it.

    Raises ConfigError: a line holds no record, or a call cannot be read from what was recorded.
    """
    # The server's span of a call that its client has recorded would count the call twice.
    everything = [each for each in read_records(lines) if not each.remote]
    records = [each for each in everything if each.attributes]
    known: dict[str, dict[str, None]] = {}
    for record in records:
        if isinstance(id := record.attributes.get("gen_ai.conversation.id"), str):
            known.setdefault(record.trace, {})[id] = None
    nesting = _Nesting(everything)
    conversations: dict[str, RecordedConversation] = {}
    for number, record in enumerate(records):
        # Refused, not skipped: a replay that missed calls would find everything in order.
        if record.name in _OLD_EVENTS:
            raise refused_record(record.line, f"messages are recorded one by one: {_CONTENT}")
        own = record.attributes.get("gen_ai.conversation.id")
        of_trace = list(known.get(record.trace, ()))
        name = own if isinstance(own, str) else of_trace[0] if len(of_trace) == 1 else record.trace
        conversation = conversations.setdefault(name, RecordedConversation(name))
        if nesting.executes(record):
            _execution(conversation, record, number)
        for key in (_INPUT, _OUTPUT):
            if key in record.attributes:
                _messages(conversation, record, number, key)
    calling = [each for each in conversations.values() if each.calls]
    if everything and not calling:
        raise ConfigError(f"no call of a tool is recorded in these spans: {_CONTENT}", option="conversations")
    for conversation in calling:
        for call in conversation.calls.values():
            if call.arguments is None:
                raise refused_record(call.line, f"the arguments of {call.tool[:60]} were not recorded: {_CONTENT}")
        conversation.messages.sort(key=lambda each: each[0])
    return calling


class _Nesting:
    """Pick the spans of executed tools, each once: an inner layer may have recorded the same call again.

    Raises ConfigError: two executions have the same span and are not the same call.
    """

    def __init__(self, records: Iterable[SpanRecord]) -> None:
        self._parents: dict[tuple[str, str], str] = {}
        self._tools: dict[tuple[str, str], SpanRecord] = {}
        self._above: dict[tuple[str, str], SpanRecord | None] = {}
        for record in (each for each in records if not each.event):
            place = (record.trace, record.span)
            self._parents.setdefault(place, record.parent)
            if record.attributes.get("gen_ai.operation.name") == "execute_tool":
                first = self._tools.setdefault(place, record)
                if first is not record and not _one_call(first, record):
                    raise refused_record(record.line, f"the span {record.span[:60]!r} stands for two calls of tools")

    def executes(self, record: SpanRecord) -> bool:
        """Whether a record is the outermost span of the execution of a tool."""
        if self._tools.get((record.trace, record.span)) is not record:
            return False
        above = self._nearest(record.trace, record.parent)
        return above is None or above is record or not _one_call(above, record)

    def _nearest(self, trace: str, span: str) -> SpanRecord | None:
        """The execution that a span is or stands below; each span is passed once."""
        passed: dict[str, None] = {}
        nearest: SpanRecord | None = None
        while span and span not in passed:
            place = (trace, span)
            nearest = self._tools.get(place)
            if nearest is not None or place in self._above:
                nearest = nearest or self._above[place]
                break
            passed[span] = None
            span = self._parents.get(place, "")
        self._above.update(((trace, each), nearest) for each in passed)
        return nearest


def _one_call(one: SpanRecord, other: SpanRecord) -> bool:
    """Whether two executions may be the same call: nothing that both record of it differs.

    Of the arguments that are those of both; a layer below may have filled in others.
    """
    for key in (_NAME, _ID):
        if None not in (pair := (one.attributes.get(key), other.attributes.get(key))) and pair[0] != pair[1]:
            return False
    own, others = (_as_data(each.attributes.get(_ARGUMENTS)) for each in (one, other))
    if isinstance(own, dict) and isinstance(others, dict):
        return all(own[key] == others[key] for key in own.keys() & others.keys())
    return None in (own, others) or own == others


def _as_data(given: object) -> Any:
    """An attribute as data, which a layer may have recorded as text in JSON."""
    try:
        return json.loads(given, object_pairs_hook=JsonObject) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _execution(conversation: RecordedConversation, record: SpanRecord, number: int) -> None:
    tool = record.attributes.get(_NAME)
    if not isinstance(tool, str) or not tool:
        raise refused_record(record.line, "a tool was executed, and its name was not recorded")
    id = record.attributes.get(_ID)
    key = id if isinstance(id, str) and id else f"{record.trace}.{record.span}"
    known = conversation.calls.get(key)
    if known is not None and known.executed:
        # Kept apart by the span, or two calls would be counted as one.
        key = f"{key}.{record.span}"  # an identifier that is used again
        known = None
    call = RecordedCall(record.line, tool, (record.start, number, 0), answered=(record.end, number, 1), executed=True)
    call.arguments, call.result = record.attributes.get(_ARGUMENTS), record.attributes.get(_RESULT)
    call.failed = record.failed
    if known is not None:
        # Two layers may each have recorded a part of the same call.
        call.arguments = known.arguments if call.arguments is None else call.arguments
        call.result = known.result if call.result is None else call.result
    conversation.calls[key] = call


def _messages(conversation: RecordedConversation, record: SpanRecord, number: int, key: str) -> None:
    given = _as_data(record.attributes[key])
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise refused_record(record.line, f"{key} holds no messages: {_CONTENT}")
    at = record.end if key == _OUTPUT else record.start
    messages: list[Mapping[str, Any]] = []
    position = 0
    for message in given:
        parts = message.get("parts")
        parts = [each for each in parts if isinstance(each, Mapping)] if isinstance(parts, list) else []
        messages.append({"role": message.get("role"), "content": "".join(_words(each) for each in parts)})
        for part in parts:
            position += 1
            _part(conversation, record, part, (at, number, position))
    if key == _INPUT:
        conversation.messages.append(((at, number, 0), messages))


def _words(part: Mapping[str, Any]) -> str:
    return str(part.get("content", "")) if part.get("type") == "text" else ""


def _part(conversation: RecordedConversation, record: SpanRecord, part: Mapping[str, Any], at: SpanPlace) -> None:
    """A call in a message, or its result, each taken where it is seen first."""
    kind, id = part.get("type"), part.get("id")
    if kind not in ("tool_call", "tool_call_response"):
        return
    if not isinstance(id, str) or not id:
        raise refused_record(record.line, "a call of a tool has no identifier")
    if isinstance(part, JsonObject) and part.repeated:
        raise refused_record(record.line, f"{min(part.repeated)[:60]!r} stands twice in a call of a tool")
    call = conversation.calls.get(id)
    if kind == "tool_call_response":
        if call is not None:
            answer = part.get("response", part.get("result"))
            call.result = answer if call.result is None else call.result
            call.answered = at if call.answered is None else call.answered
        return
    tool, arguments = str(part.get("name")), part.get("arguments")
    if arguments is None and "arguments" in part:
        arguments = {}
    if call is None:
        conversation.calls[id] = RecordedCall(record.line, tool, at, arguments)
    elif not call.executed and (call.tool, call.arguments) != (tool, arguments):
        raise refused_record(
            record.line, f"{id[:60]!r} stands for two calls, so that it is not known which was answered"
        )
    elif call.arguments is None and call.tool == tool:
        call.arguments = arguments
