"""HTML and SVG from nested calls: tags balance and foreign text is escaped because nothing else can be written."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | int | Iterable["Child"] | None
"""What may stand in an element: markup, text (escaped), numbers, nothing, or several of these."""

_VOID: Final = frozenset({"meta", "br", "hr", "input"})


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """One element.

    Args:
        attributes: by name; an underscore stands for a hyphen, one at the end keeps a name from being a keyword
            (``class_``). None leaves one out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(_number(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{_content(children)}</{name}>")


def _content(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(visible(child), quote=False)
    if isinstance(child, int):
        return str(child)
    return "".join(map(_content, child))


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def visible(text: str) -> str:
    """Text in which nothing is hidden: controls, lone surrogates and marks of direction are written as escapes."""
    text = text.replace("\r\n", "\n")
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, and a note on what is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters are left out here]"
