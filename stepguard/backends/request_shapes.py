"""The parameters that bind a reply to its form, of chat completions and of responses; and what all backends share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from stepguard.backends.providers import ReplyMode

if TYPE_CHECKING:
    from pydantic import BaseModel

_TOOL: Final = "Gives the answer to every step that was asked."
_LONGEST_SILENCE: Final = 1_000_000.0


def longest_silence(seconds: float | None) -> float | None:
    """The time-out of a socket: none takes more than some weeks. What is longer bounds the call as a whole alone."""
    return None if seconds is None else min(seconds, _LONGEST_SILENCE)


def extra_digest(extra: Mapping[str, object]) -> str | None:
    """Extra parameters, which may hold secrets, as a hash; None where there are none."""
    return hashlib.sha256(repr(sorted(extra.items())).encode()).hexdigest()[:16] if extra else None


@lru_cache(maxsize=512)
def chat_form(response_model: type[BaseModel], mode: ReplyMode, strict: bool) -> Mapping[str, Any]:
    """The parameters of a chat completion; not to be changed."""
    if mode == "json":
        return {"response_format": {"type": "json_object"}}
    name, schema = response_model.__name__, response_model.model_json_schema()
    demanded = {"strict": True} if strict else {}
    if mode == "json_schema":
        return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **demanded}}}
    function = {"name": name, "description": _TOOL, "parameters": schema, **demanded}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": name}},
    }


@lru_cache(maxsize=512)
def responses_form(response_model: type[BaseModel], mode: ReplyMode, strict: bool) -> Mapping[str, Any]:
    """The parameters of a response; not to be changed."""
    if mode == "json":
        return {"text": {"format": {"type": "json_object"}}}
    name, schema = response_model.__name__, response_model.model_json_schema()
    if mode == "json_schema":
        return {"text": {"format": {"type": "json_schema", "name": name, "schema": schema, "strict": strict}}}
    function = {"name": name, "description": _TOOL, "parameters": schema, "strict": strict}
    return {"tools": [{"type": "function", **function}], "tool_choice": {"type": "function", "name": name}}
