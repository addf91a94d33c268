"""The calls of the model in a run, as lines of text, with what was sent and what came where that was kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from stepguard.core.verdicts import shorten
from stepguard.results import Attempt
from stepguard.show.text import TextLine

_KINDS: Final = {"accepted": "good", "partly": "weak", "draft": "quiet"}


def call_lines(attempts: Iterable[Attempt]) -> Iterator[TextLine]:
    """The lines, each with what it is."""
    for each in attempts:
        asked = shorten(", ".join(map(str, each.steps)), 200)
        whom = "" if each.backend is None else f" of {shorten(each.backend)}"
        head = f"call {each.number} ({each.rung}){whom}: {asked}: {each.outcome}, {each.usage.tokens:,} tokens"
        yield TextLine(head, _KINDS.get(each.outcome, "bad"))
        for deviation in each.deviations:
            yield TextLine(f"  {deviation.kind}: {shorten(deviation.reason, 300)}", "weak")
        if each.error is not None:
            yield TextLine(f"  {shorten(each.error, 300)}", "weak")
        for name, text in kept_texts(each):
            yield TextLine(f"  {name}:", "quiet")
            for line in text.splitlines():  # a text of a model's must not command the terminal
                yield TextLine(f"    {shorten(line, max(1, len(line) * 10))}")


def kept_texts(attempt: Attempt) -> Iterator[tuple[str, str]]:
    """What is kept of the messages of a call and of its reply, each with its name."""
    yield from attempt.prompt or ()
    if attempt.text is not None:
        yield "reply", attempt.text
