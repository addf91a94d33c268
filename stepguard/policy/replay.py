"""Recorded conversations against a policy: which calls would have been refused, by which rule, and where.

Every call is judged by what was known when it was made, and then counted as made, since it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.policy.decisions import Decision
from stepguard.policy.gate import PolicyGate
from stepguard.policy.policy import Policy

__all__ = ["ReplayedCall", "read_conversations", "replay_conversation", "replayed_call", "summary_of"]

Messages = Sequence[Mapping[str, Any]]

_MAX_LINE: Final = 50_000_000
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


def read_conversations(lines: Iterable[str]) -> Iterator[tuple[int, Messages]]:
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
    messages: Messages,
    *,
    number: int = 1,
    now: datetime | None = None,
    zone: tzinfo = UTC,
    facts: Mapping[str, object] | None = None,
    confirmed: Callable[[str, Messages], bool] = lambda role, before: False,
    failure: Callable[[str], bool] = lambda content: content.startswith("Error"),
) -> list[ReplayedCall]:
    """What a gate would have said of each call of a conversation.

    Args:
        policy: the policy.
        messages: the messages, in order.
        number: the number of the conversation, for `ReplayedCall.conversation`.
        now: the moment of every call.
        zone: the time zone of moments that name none.
        facts: facts without keys that the host knew.
        confirmed: whether somebody had said yes to a call, by their role and the messages before it.
        failure: whether a recorded result says that nothing was done.

    Raises:
        ConfigError: a message holds calls in another form than OpenAI's chats.
    """
    gate = policy.gate(conversation=str(number), zone=zone, observe=True, facts=facts)
    replayed: dict[str, ReplayedCall] = {}
    waiting: dict[str, str] = {}
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            id = waiting.pop(str(message.get("tool_call_id")), None)
            if id is None:
                continue
            content = _text(message.get("content"))
            failed = failure(content)
            if failed:
                gate.failed(id, done=False)
            else:
                gate.result(id, content)
            replayed[id] = replace(replayed[id], failed=failed, answered=True)
            continue
        for at, call_data in enumerate(_calls_of(message, f"conversation {number}, message {place + 1}")):
            function = call_data.get("function") or {}
            name, arguments = str(function.get("name")), function.get("arguments") or "{}"
            id = f"{place}.{at}"
            call = replayed_call(gate, name, arguments, id=id, now=now, confirmed=confirmed, before=messages[:place])
            replayed[id] = replace(call, conversation=number, line=number, message=place + 1)
            if call.decision.number is not None:
                waiting[str(call_data.get("id"))] = id
    return list(replayed.values())


def replayed_call(
    gate: PolicyGate,
    tool: str,
    arguments: object,
    *,
    id: str,
    now: datetime | None,
    confirmed: Callable[[str, Messages], bool],
    before: Messages,
) -> ReplayedCall:
    """A recorded call as a gate that observes judges it, at no place yet; see `replay_conversation`."""
    given = arguments if isinstance(arguments, str | Mapping) else json.dumps(arguments)
    for role in gate.policy.roles(tool):
        if confirmed(role, before):
            gate.confirm_call(tool, given, by=role)
    decision = gate.offer(tool, given, id=id, now=now)
    declared = gate.policy.tools.get(tool)
    return ReplayedCall(0, 0, None, decision, declared is not None and declared.reads)


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
