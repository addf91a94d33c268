"""What a double says, as a completion with an estimated usage."""

from __future__ import annotations

from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage


def completion_of(
    request: Request, text: str | None, *, finish_reason: str = "stop", refusal: str | None = None
) -> Completion:
    """A completion with this text; usage is counted at four characters a token."""
    asked = sum(len(message.content) for message in request.messages)
    usage = Usage.estimate(asked, len(text or ""))
    return Completion(text, finish_reason, refusal=refusal, usage=usage, model="simulated")
