"""The conversation of a gate in a ledger, as lines of text: every call, what was decided of it and what it gave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.core.verdicts import shorten
from stepguard.ledger.reading import RunReading
from stepguard.show.text import TextLine

_LONGEST: Final = 200
"""Characters of a value, and of a call."""
_KINDS: Final = {"allow": "good", "ask": "weak", "refuse": "bad", "hand_over": "bad"}


def conversation_lines(reading: RunReading) -> Iterator[TextLine]:
    run = reading.summary
    yield TextLine(f"{_short(run.run_id)}: policy {_short(run.procedure)}, {run.status}", "head")
    for change in reading.changes:
        yield from _lines(change)


def _lines(change: Mapping[str, Any]) -> Iterator[TextLine]:
    at = f"{change['at'][:19].replace('T', ' ')}  " if "at" in change else " " * 21
    for fact in change.get("facts", ()):
        keys = f"[{', '.join(map(_text, fact['keys']))}]" if fact["keys"] else ""
        yield TextLine(f"{at}fact {fact['fact']}{keys} = {_text(fact['value'])}", "quiet")
    for decision in change.get("decisions", ()):
        given = ", ".join(f"{name}={_text(value)}" for name, value in decision["arguments"].items())
        made = _short(f"{decision['tool']}({given})")
        yield TextLine(
            f"{at}call {_short(decision['call'])}: {made}: {_decision_text(decision)}", _KINDS[decision["outcome"]]
        )
    decided = {decision["call"] for decision in change.get("decisions", ())}
    for call in change.get("calls", ()):
        if call["id"] not in decided:
            gave = f": {_text(call['result'])}" if call["status"] == "succeeded" else ""
            yield TextLine(f"{at}call {_short(call['id'])}: {call['status']}{gave}", "quiet")
    if "given" in change:
        yield TextLine(f"{at}somebody said yes", "quiet")
    if "used" in change and not change.get("calls"):
        yield TextLine(f"{at}a yes was taken back", "quiet")
    if change.get("handed_over"):
        yield TextLine(f"{at}a person takes over", "weak")


def _decision_text(decision: Mapping[str, Any]) -> str:
    if decision["outcome"] == "allow":
        return f"allow, key {decision['key']}"
    asked = f" a yes of {', '.join(decision['confirmations'])}" if decision["confirmations"] else ""
    words = " ".join(dict.fromkeys(reason["words"] for reason in decision["reasons"]))
    return f"{decision['outcome']}{asked}, {_short(words)}"


def _text(value: object) -> str:
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return shorten(text, _LONGEST)
