"""Redacts foreign text: takes out every key that is known, and whatever looks like one.

The texts of errors quote what servers and clients said, and those quote requests, headers and addresses. They end in
results, reports and traces, so they are redacted where they come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

from stepguard.core.patterns import lazy_pattern

HIDDEN: Final = "[redacted]"
"""What stands in the place of a secret."""

_PAIR: Final = r"\(\s*b?[\"'][\w-]*(?:authorization|key|token|secret|password|cookie)[\"'],\s*b?[\"']"
_SECRETS: Final = lazy_pattern(
    # NAME=VALUE, also URL-encoded, or quoted within JSON.
    r"(?P<named>(?<![\w-])[\w-]*(?:key|token|secret|password|passwd|pwd|signature|sig)(?:=>?"
    r"|%3D)\\?[\"']?)[^\s&\"'<>\\]+"
    # Words that name a secret only in the query of an address.
    r"|(?P<query>(?:[?&]|%3F|%26)(?:auth|authorization|code|credentials?|jwt|session)(?:=|%3D))[^\s&\"'<>\\]+"
    # A header, or a member of JSON.
    r"|(?P<header>(?<![\w-])(?:[\w-]*[-_])?(?:authorization|api[-_]?key|password|passwd|pwd|subscription[-_]?key"
    r"|(?:access|api|auth|client|id|refresh|session)[-_]?(?:token"
    r"|secret))\\?[\"']?\s*:\s*\\?[\"']?)(?:[a-z]+\s+)?[^\s\"',}\\]+"
    # Such words stand before other things, too: what follows has to look like a secret.
    r"|(?P<likely>(?<![\w-])[\w-]*(?:key|token|secret)\\?[\"']?\s*:\s*\\?[\"']?)(?=[\w.~+/=*-]*[0-9])[\w.~+/=*-]{16,}"
    # Short ones need a digit and a letter, so that a count of tokens is left alone.
    r"|(?P<short>(?<![\w-])[\w-]*(?:token|secret)\\?[\"']?\s*:\s*\\?[\"']?)(?=[\w.~+/=*-]*[0-9])(?=[\w.~+/=*-]*[a-z])"
    r"[\w.~+/=*-]{6,}"
    # Headers as Python shows a list of pairs.
    rf"|(?P<pair>{_PAIR})[^\"']+"
    r"|(?P<cookie>\bcookie\\?[\"']?\s*:\s*\\?[\"']?)[^\r\n\"'\\]+"
    # The user and password of an address.
    r"|(?P<address>://)[^\s/@]+(?=@)|(?P<bearer>\bbearer\s+)[\w.~+/=*-]{6,}"
    # Keys that vendors begin in their own way, and JSON web tokens.
    r"|\b(?:sk|gsk|xai|hf)[-_][\w*-]{3,}|\b(?:csk|gh[oprsu]|github_pat|nvapi|pplx|r8|tgp)[-_][\w*-]{12,}"
    r"|\bAIza[\w-]{6,}|\b(?:AKIA|dapi)[\w-]{12,}|\beyJ[\w.=-]{16,}",
    re.IGNORECASE,
)
_PAIRS: Final = lazy_pattern(_PAIR, re.IGNORECASE)
_LINES: Final = lazy_pattern(r"[^\n]*\n\s*|[^\n]+")
_HINTS: Final = (
    *("key", "token", "secret", "passw", "pwd", "sig", "auth", "code", "credential", "jwt", "session", "cookie", "://"),
    *("bearer", "sk-", "sk_", "gsk", "xai", "hf-", "hf_", "gh", "github", "nvapi", "pplx", "r8", "tgp", "aiza", "akia"),
    *("dapi", "eyj"),
)
"""What is part of every secret that `_SECRETS` finds, in small letters."""
_LONGEST: Final = 2_000


def redact(text: str, *secrets: str | None) -> str:
    """A text without the secrets that are known, and without what looks like one."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):  # one may be a part of another
        text = text.replace(secret, HIDDEN)
    return "".join(_SECRETS.sub(_hidden, part) if hinted else part for hinted, part in _parts(text))


def _hidden(match: re.Match[str]) -> str:
    return f"{match[match.lastgroup] if match.lastgroup else ''}{HIDDEN}"


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """A text in pieces, each with whether a secret may stand in it: the pattern takes far longer than looking for that.

    A secret stands in a line with a hint, or in one of the three behind it; one of a pair may have any number of them.
    """
    if _PAIRS.search(text):
        yield True, text
        return
    lines = _LINES.findall(text)
    hints = [any(map(line.casefold().__contains__, _HINTS)) for line in lines]
    near = [any(hints[max(0, at - 3) : at + 2]) for at in range(len(lines))]
    for hinted, group in groupby(zip(near, lines, strict=True), key=itemgetter(0)):
        yield hinted, "".join(line for _, line in group)


def error_words(error: BaseException) -> str:
    """The words of an exception that anybody may have raised, redacted and of at most 2,000 characters."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - its text is foreign code
        words = "its text cannot be shown"
    return redacted_start(words, _LONGEST)


def redacted_start(text: str, most: int, *secrets: str | None) -> str:
    """A text without secrets, of at most so many characters."""
    # Cut before redacting, or a page of megabytes is searched; and after, or half a key could stay.
    start = redact(text[: 20 * most], *secrets)
    return start if len(start) <= most else f"{start[: most - 3]}..."


def error_text(error: BaseException) -> str:
    """`error_words` behind the name of the class."""
    return f"{type(error).__name__}: {error_words(error)}"
