"""Replay recorded conversations against a policy: which calls it would have refused, by which rule, and where.

Every call is judged by what was known when it was made, and then counted as made, since it was.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.policy.decisions import Decision
from stepguard.policy.policy import Policy

__all__ = ["RecordedConversation", "ReplayedCall", "read_conversations", "replay_conversation", "summary_of"]

ChatMessages = Sequence[Mapping[str, Any]]

# No conversation is so long; a file of something else may be one line.
_MAX_LINE: Final = 50_000_000
# As Anthropic, the AI SDK and OpenAI's responses write calls.
_OTHER_CALLS: Final = ("tool_use", "tool_result", "tool-call", "function_call", "function_call_output", "tool_call")


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A recorded call, and what the gate would have said.

    Attributes:
        conversation: which one, from 1.
        line: the line of the file.
        message: the message that it stands in, from 1; None where it was recorded as a span.
        decision: what the gate would have said.
        reads: whether the tool changes nothing by its declaration; True of none that is not declared.
        failed: whether the recorded result says that it failed.
        answered: whether there is a recorded result.
    """

    conversation: int
    line: int
    message: int | None
    decision: Decision
    reads: bool
    failed: bool = False
    answered: bool = False


SpanPlace = tuple[datetime, int, int]
"""When something happened; what happened at one moment is in the order of the file, and within a record in its own."""

NO_MOMENT: Final = datetime.min
"""The moment of what was recorded without one."""


@dataclass(slots=True)
class RecordedCall:
    """A recorded call, with its place and its outcome."""

    line: int
    tool: str
    at: SpanPlace
    arguments: object = None
    result: object = None
    answered: SpanPlace | None = None
    failed: bool = False
    executed: bool = False
    message: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """The record of a conversation.

    Attributes:
        name: its identifier, or that of its trace.
        calls: its calls by their identifiers.
        messages: the moments, in order, each with the messages before it.
    """

    name: str
    calls: dict[str, RecordedCall] = field(default_factory=dict)
    messages: list[tuple[SpanPlace, ChatMessages]] = field(default_factory=list)


def read_conversations(lines: Iterable[str]) -> Iterator[tuple[int, ChatMessages]]:
    """The conversations of a file in JSON lines, each with the number of its line: an object with ``messages``, or a
    list of messages, as OpenAI's chats have them.

    Raises:
        ConfigError: a line holds no conversation.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line) if len(line) <= _MAX_LINE else None
        except (ValueError, RecursionError):
            data = None
        messages = data.get("messages") if isinstance(data, dict) else data
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise ConfigError(
                f"line {number} holds no conversation: an object with `messages`, or a list of messages, was expected",
                option="conversations",
            )
        yield number, messages


def replay_conversation(
    policy: Policy,
    recorded: RecordedConversation | ChatMessages,
    *,
    number: int = 1,
    now: datetime | None = None,
    zone: tzinfo = UTC,
    facts: Mapping[str, object] | None = None,
    confirmed: Callable[[str, ChatMessages], bool] = lambda role, before: False,
    failure: Callable[[str], bool] = lambda content: content.startswith("Error"),
) -> list[ReplayedCall]:
    """What a gate would have said of each call of a conversation, in their order.

    Args:
        policy: the policy.
        recorded: the messages, in order; or one of `stepguard.policy.span_replay.read_span_conversations`.
        number: the number of the conversation, for `ReplayedCall.conversation`.
        now: the moment of every call; None: that of its record, where that tells.
        zone: the time zone of moments that name none.
        facts: facts without keys that the host knew.
        confirmed: whether somebody had said yes to a call, by their role and the messages before it.
        failure: whether a recorded result says that nothing was done; a span that failed may have done something all
            the same.

    Raises:
        ConfigError: a message holds calls in another form than OpenAI's chats.
    """
    conversation = recorded if isinstance(recorded, RecordedConversation) else _of_messages(recorded, number)
    # Observing: the calls were made, so each has to count for those behind it, whatever is decided.
    gate = policy.gate(conversation=conversation.name or str(number), zone=zone, observe=True, facts=facts)
    steps = [(call.at, 0, id) for id, call in conversation.calls.items()]
    for id, call in conversation.calls.items():
        if call.answered is not None:
            # Never before the call itself, whatever the clocks of two recorders say.
            steps.append((max(call.at, call.answered), 1, id))
    moments = [at for at, _ in conversation.messages]
    replayed: dict[str, ReplayedCall] = {}
    for place, kind, id in sorted(steps):
        call = conversation.calls[id]
        if kind == 0:
            earlier = bisect_right(moments, place)
            before = conversation.messages[earlier - 1][1] if earlier else ()
            given = call.arguments if isinstance(call.arguments, str | Mapping) else json.dumps(call.arguments)
            for role in gate.policy.roles(call.tool):
                if confirmed(role, before):
                    gate.confirm_call(call.tool, given, by=role)
            moment = now if now is not None or call.at[0] is NO_MOMENT else call.at[0]
            decision = gate.offer(call.tool, given, id=id, now=moment)
            declared = policy.tools.get(call.tool)
            reads = declared is not None and declared.reads
            replayed[id] = ReplayedCall(number, call.line or number, call.message, decision, reads)
        elif replayed[id].decision.number is not None:
            text = call.result if isinstance(call.result, str) else json.dumps(call.result)
            nothing_done = not call.failed and failure(text)
            if call.failed or nothing_done:
                gate.failed(id, done=not nothing_done)
            else:
                gate.result(id, text)
            replayed[id] = replace(replayed[id], failed=call.failed or nothing_done, answered=True)
    return list(replayed.values())


def _of_messages(messages: ChatMessages, number: int) -> RecordedConversation:
    """The calls of messages, each with the first result behind it that answers it."""
    conversation = RecordedConversation(str(number))
    waiting: dict[str, RecordedCall] = {}
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            answered = waiting.pop(str(message.get("tool_call_id")), None)
            if answered is not None:
                answered.result, answered.answered = _text(message.get("content")), (NO_MOMENT, place, 0)
            continue
        calls = _calls_of(message, f"conversation {number}, message {place + 1}")
        if calls:
            conversation.messages.append(((NO_MOMENT, place, -1), messages[:place]))
        for at, call_data in enumerate(calls):
            function = call_data.get("function") or {}
            call = RecordedCall(0, str(function.get("name")), (NO_MOMENT, place, at), function.get("arguments") or "{}")
            call.message = place + 1
            # By its place: identifiers may be used again in one conversation.
            conversation.calls[f"{place}.{at}"] = waiting[str(call_data.get("id"))] = call
    return conversation


def summary_of(calls: Iterable[ReplayedCall]) -> dict[str, Any]:
    """The figures of replayed calls as plain data: how many of each outcome, and the reasons by rule."""
    listed = list(calls)
    changing = [each for each in listed if not each.reads]
    reasons: Counter[tuple[str, str, str]] = Counter()
    for each in listed:
        for reason in dict.fromkeys(each.decision.reasons):
            reasons[(each.decision.tool, reason.kind, reason.words)] += 1
    return {
        "calls": len(listed),
        "changing": len(changing),
        "outcomes": dict(Counter(each.decision.outcome for each in listed)),
        "reasons": [
            {"tool": tool, "kind": kind, "words": words, "calls": count}
            for (tool, kind, words), count in reasons.most_common()
        ],
    }


def _calls_of(message: Mapping[str, Any], where: str) -> list[Any]:
    """The calls of a message; what holds calls in another form is refused, since it would be counted as none."""
    parts = message.get("content")
    kinds = {part.get("type") for part in parts if isinstance(part, Mapping)} if isinstance(parts, list) else set()
    calls = message.get("tool_calls") or []
    if (
        message.get("function_call")
        or not kinds.isdisjoint(_OTHER_CALLS)
        or not isinstance(calls, list)
        or not all(isinstance(each, Mapping) and isinstance(each.get("function") or {}, Mapping) for each in calls)
    ):
        raise ConfigError(
            f"{where}: calls are read as OpenAI's chats have them, in `tool_calls` with a `function` each",
            option="conversations",
        )
    return calls


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else json.dumps(content)
