"""Secrets in foreign text: what looks like a key, and every key that is known, is taken out.

The texts of errors quote what servers and clients said, and those quote requests, headers and addresses. They end in
results, reports and traces, so they are redacted where they come in.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["HIDDEN", "error_text", "error_words", "redact"]

HIDDEN: Final = "[redacted]"
"""What stands in the place of a secret."""

_SECRETS: Final = re.compile(
    r"(?P<named>\b[\w-]*(?:key|token|secret|password|signature|sig)=\\?[\"']?)[^\s&\"'<>\\]+"
    r"|(?P<header>\b(?:authorization|api[-_]?key|password|(?:access|auth|client|id|refresh|session)[-_]?(?:token|secret))"
    r"\\?[\"']?\s*:\s*\\?[\"']?)(?:[a-z]+\s+)?[^\s\"',}\\]+"
    r"|(?P<cookie>\bcookie\\?[\"']?\s*:\s*\\?[\"']?)[^\r\n\"'\\]+"
    r"|(?P<address>://)[^\s/@]+(?=@)"
    r"|(?P<bearer>\bbearer\s+)[\w.~+/=*-]{6,}"
    r"|\b(?:sk|gsk|xai|hf)[-_][\w*-]{3,}"
    r"|\bAIza[\w-]{6,}",
    re.IGNORECASE,
)
_LONGEST: Final = 2_000


def redact(text: str, secret: str | None = None) -> str:
    """A text without a secret that is known, and without what looks like one."""
    if secret is not None:
        text = text.replace(secret, HIDDEN)
    return _SECRETS.sub(lambda found: f"{found[found.lastgroup] if found.lastgroup else ''}{HIDDEN}", text)


def error_words(error: BaseException) -> str:
    """The words of an exception that anybody may have raised, redacted and of at most 2,000 characters."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - its text is foreign code
        words = "its text cannot be shown"
    # Cut before redacting, or a page of megabytes is searched; and after, or half a key could stay.
    said = redact(words[: 20 * _LONGEST])
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 3]}..."


def error_text(error: BaseException) -> str:
    """`error_words` behind the name of the class."""
    return f"{type(error).__name__}: {error_words(error)}"
