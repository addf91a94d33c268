"""Why a reply ended, in the words of the many providers that say it.

Backends and the readers of replies share these: neither knows the other.
"""

from __future__ import annotations

from typing import Final

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
        *("malformed_model_output", "user_cancel"),
    }
)
"""The server broke off: what came is no reply, and the model is not to blame."""


def plain_reason(reason: str | None) -> str:
    """A finish reason in lower case, empty where there is none; ``FinishReason.MAX_TOKENS`` loses its class."""
    return (reason or "").strip().lower().rpartition(".")[2]
