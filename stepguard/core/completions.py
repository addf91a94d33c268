"""Completions: what a model answered, as it came, and why it ended, in the words of each provider."""

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


STOPPED_EARLY: Final = "stopped_early"
"""The reply was stopped by us, at a step that is wrong."""

CUT: Final = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"),
        *("error_limit", "incomplete", "limit", "token_limit", "token_limit_reached", "truncated"),
    }
)
"""The reply ran into a limit on its length."""

FILTERED: Final = frozenset(
    {
        *("content_filter", "content-filter", "content_filtered", "guardrail_intervened", "refusal", "safety"),
        *("blocklist", "error_toxic", "image_safety", "prohibited_content", "recitation", "sensitive", "spii"),
    }
)
"""The provider would not hand the reply out."""

FAILED: Final = frozenset(
    {
        *("abort", "aborted", "cancelled", "canceled", "engine_error", "error", "failed", "failure"),
        *("insufficient_system_resource", "internal_error", "network_error", "overloaded", "server_error", "timeout"),
        *("malformed_model_output", "time_limit", "user_cancel"),
    }
)
"""The server broke off: what came is no reply, and the model is not to blame."""


def plain_reason(reason: str | None) -> str:
    """A finish reason in lower case, empty where there is none; ``FinishReason.MAX_TOKENS`` loses its class."""
    return (reason or "").strip().lower().rpartition(".")[2]
