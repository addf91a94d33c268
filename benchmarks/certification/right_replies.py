"""The many ways in which models and servers wrap a right reply."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from certification.cases import pairs_text
from stepguard.backends import Completion, ToolCall

__all__ = ["RIGHT_REPLIES"]

Pairs = list[tuple[str, object]]
Way = Callable[[Pairs, random.Random], Completion]
RIGHT_REPLIES: dict[str, Way] = {}
"""Ways of wrapping entries that must pass."""


def _text(name: str, wrap: Callable[[str], str]) -> None:
    def way(pairs: Pairs, chance: random.Random) -> Completion:
        return Completion(wrap(pairs_text(pairs)))

    RIGHT_REPLIES[name] = way


_text("bare", lambda text: text)
_text("blanks around", lambda text: f"\n  {text}\n\n")
_text("a byte order mark", lambda text: f"\ufeff{text}")
_text("fenced", lambda text: f"```json\n{text}\n```")
_text("fenced without a language", lambda text: f"```\n{text}\n```")
_text("fenced with tildes", lambda text: f"~~~json\n{text}\n~~~")
_text("prose before", lambda text: f"Sure! Here are the steps:\n\n{text}")
_text("prose behind", lambda text: f"{text}\n\nLet me know if you need anything else.")
_text("steps counted behind it", lambda text: f"{text}\n\nAll 4 steps are done.")
_text("prose and a fence", lambda text: f"Here is the result:\n```json\n{text}\n```\nAll steps are done.")
_text("thinking in front", lambda text: f"<think>First I add, {{then}} I multiply.</think>\n{text}")
_text("thinking without its opening tag", lambda text: f"I add, then I multiply.</think>{text}")
_text("a draft in the thinking", lambda text: f'<think>{{"t1": "1 + 1 = 3"}} no.</think>{text}')
_text("said twice alike", lambda text: f"{text}\n\n{text}")
_text("JSON in a JSON string", json.dumps)
_text("one in a list", lambda text: f"[{text}]")


def _pretty(pairs: Pairs, chance: random.Random) -> Completion:
    return Completion(json.dumps(dict(pairs), indent=chance.choice([1, 2, 4])))


def _unescaped(pairs: Pairs, chance: random.Random) -> Completion:
    return Completion(pairs_text(pairs, ensure_ascii=False))


def _tool(pairs: Pairs, chance: random.Random) -> Completion:
    return Completion(None, "tool_calls", tool_calls=(ToolCall("Steps", pairs_text(pairs)),))


def _tool_and_words(pairs: Pairs, chance: random.Random) -> Completion:
    return Completion("I call the tool.", "tool_calls", tool_calls=(ToolCall("Steps", pairs_text(pairs)),))


def _reasoned(pairs: Pairs, chance: random.Random) -> Completion:
    return Completion(pairs_text(pairs), reasoning="First 1 + 1 = 3, no, 2.")


RIGHT_REPLIES |= {
    "indented": _pretty,
    "no escapes": _unescaped,
    "a tool call": _tool,
    "a tool call beside words": _tool_and_words,
    "reasoning apart": _reasoned,
}
