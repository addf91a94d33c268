"""The body of a response to a request that asked for a stream: events as the server sends them, or one document.

Servers answer such a request in more ways than one: with events, with comments and empty ones between them that keep
the connection alive, or with the whole reply as JSON. Which of these it is shows in its beginning, not in its headers.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")  # a \r at the end may be the first half of \r\n
# No line of an event begins so: it is JSON in one piece, or a page of HTML.
_NO_EVENTS: Final = ("{", "[", "<")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its kind, empty where it has none, and its data."""

    kind: str
    data: str


class BodyParts:
    """Takes the bytes of a body as they come, and gives the events in it.

    Attributes:
        document: what has come of a body that holds no events.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[str] = []
        self._kind = ""
        self._data: list[str] = []
        self._document: list[str] | None = None
        self._begun = False

    @property
    def document(self) -> str | None:
        """The whole text of a body that holds no events; None where it holds some."""
        return None if self._document is None else "".join(self._document)

    def feed(self, part: bytes, *, last: bool = False) -> Iterator[ServerEvent]:
        """The events that are complete with these bytes; empty ones and comments are none."""
        text = self._decoder.decode(part, last)
        if self._document is not None:
            self._document.append(text)
            return
        self._rest.append(text)
        if not (last or "\n" in text or "\r" in text or not self._begun):
            return  # a line that grows is looked at when it ends
        text = "".join(self._rest)
        if not self._begun:
            text = text.removeprefix("\ufeff").lstrip()
            self._begun = bool(text)
            if text.startswith(_NO_EVENTS):
                self._document = [text]
                return
        *lines, rest = _LINE_END.split(text)
        if last:
            lines, rest = [*lines, rest.removesuffix("\r"), ""], ""
        self._rest = [rest]
        for line in lines:
            if line:
                self._take(line)
            else:
                kind, data = self._kind, "\n".join(self._data)
                self._kind, self._data = "", []
                if data:
                    yield ServerEvent(kind, data)

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and value.strip():
            self._data.append(value)
        elif name == "event":
            self._kind = value
