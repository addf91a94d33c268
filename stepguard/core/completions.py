"""Completions: what a model answered, as it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stepguard.core.usage import Usage

_ONE_CALL: Final = Usage(calls=1)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in a reply: its name and its arguments as the text that was sent."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One raw answer of a model; nothing in it is parsed or mended.

    Attributes:
        text: the content, None where there was none.
        finish_reason: ``"stop"``, ``"length"``, ``"content_filter"``, ``"tool_calls"`` ..., as the provider says.
        refusal: the provider's words where it declined.
        reasoning: reasoning text that came apart from the content.
        tool_calls: tool calls, in order.
        usage: what the call cost.
        model: the model that answered, as the provider names it.
        fingerprint: the provider's fingerprint of the serving system.
    """

    text: str | None
    finish_reason: str | None = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = _ONE_CALL
    model: str | None = None
    fingerprint: str | None = None
