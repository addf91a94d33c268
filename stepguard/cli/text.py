"""Text from models and files, made safe for a terminal."""

from __future__ import annotations

__all__ = ["printable", "shortened"]


def printable(text: str) -> str:
    """The text on one line, with control characters written as escapes: a reply must not command the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 5) // 2
    return f"{text[:head]} ... {text[len(text) - (limit - 5 - head) :]}"
