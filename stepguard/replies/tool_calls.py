"""A tool call that a server left in the content, as the model wrote it, instead of reading it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from stepguard.replies.thinking import without_thinking

_MARK: Final = (
    # <tool_call>, <|tool_calls_begin|>, <function=NAME>, <invoke name="NAME">, [TOOL_CALLS], ```tool_call, functools[
    r"(?:[<\[`][^\s<>\[\]{{}}]{{0,30}}?(?i:tool|function|invoke|python_tag)|\bfunctools\[)[\s\S]{{0,160}}?\b{name}\b"
    r"|(?:<\|channel\|>[^<>]{{0,40}})?\bto\s?=\s?[\w.]{{0,40}}?\b{name}\b"  # harmony: to=functions.NAME
    r"|\"name\"\s{{0,9}}:\s{{0,9}}\"(?:functions\.)?{name}\"\s{{0,9}},\s{{0,9}}\"(?:arguments|parameters|input)\"\s{{0,9}}:"
    r"|^\s{{0,9}}\**Action:?\**\s{{0,9}}:?\s{{0,9}}{name}\b|^\s{{0,9}}\[?{name}\(\w"
)
_SHOWN: Final = 60


def find_unread_call(text: str, tool: str) -> str | None:
    """Where a text begins to call a tool, outside of what was only thought; None where it does not.

    Args:
        text: the content of a reply.
        tool: the name of the tool.
    """
    call = _pattern(tool).search(text)
    if call is None or not isinstance(without_thinking(text[: call.start()]), str):
        return None
    return text[call.start() : call.start() + _SHOWN]


@lru_cache(maxsize=16)
def _pattern(tool: str) -> re.Pattern[str]:
    return re.compile(_MARK.format(name=re.escape(tool)), re.MULTILINE)
