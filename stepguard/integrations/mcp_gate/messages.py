"""The messages of MCP (JSON-RPC 2.0) as far as a gate reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from stepguard.errors import ValueRefused
from stepguard.language.strict_json import JsonNumber, JsonObject, decode, encode
from stepguard.language.value_types import ValueType
from stepguard.policy.arguments import plain_data
from stepguard.policy.reading import folded

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
MESSAGE_KEYS: Final = ("jsonrpc", "id", "method", "params", "result", "error")
CALL_KEYS: Final = ("name", "arguments", "_meta", "task", "inputResponses", "requestState")


_LINE_BREAKS: Final = {ord("\r"): " ", **{code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}}
"""Characters that end a line for some readers. The first may stand between JSON tokens, the others only in texts."""


def one_line(line: str) -> str:
    """The same JSON in which nobody finds the end of a line, behind which another message would begin."""
    return line.translate(_LINE_BREAKS)


def read_message(line: str) -> object:
    """A message, its numbers as text; None where it is no JSON in UTF-8."""
    try:
        line.encode()  # bytes that are no character one reader replaces, and another leaves out
        return decode(line)
    except ValueError:
        return None


def ambiguous_key(given: JsonObject, known: tuple[str, ...]) -> str | None:
    """A key that another reader might take otherwise: one that stands twice, or another spelling of a known one."""
    if given.repeated:
        return min(given.repeated)
    return next((key for key in given if key not in known and folded(key) in _folded(known)), None)


@cache
def _folded(known: tuple[str, ...]) -> frozenset[object]:
    return frozenset(map(folded, known))


def plain_id(message: Mapping[str, object]) -> str | int | None:
    """The identifier of a request or of what answers it; None where it has none that counts."""
    given = message.get("id")
    if isinstance(given, JsonNumber):
        # 1.0 and 1e0 are refused as identifiers: the server may answer under another spelling.
        return int(given) if given.lstrip("-").isdecimal() and len(given) < 40 else None
    return given if isinstance(given, str) else None


def error_message(id: str | int | None, code: int, text: str) -> str:
    """The answer to an invalid request."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})


def text_result(id: str | int, text: str) -> str:
    """The answer to a call that was not made: an error that a model reads."""
    content = [{"type": "text", "text": text}]
    result = {"content": content, "isError": True, "resultType": "complete"}
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result})


def result_text(result: Mapping[str, object], declared: ValueType | None) -> str:
    """The result of a call, as JSON text or plain text: its structured content, or its one text.

    Servers wrap a result that is no object as ``{"result": ...}``; that is taken off where the policy declares none.
    """
    structured = result.get("structuredContent")
    if structured is not None:
        wrapped = isinstance(structured, JsonObject) and list(structured) == ["result"] and not structured.repeated
        own = declared is not None and declared.record is not None and declared.record.get("result") is not None
        return encode(structured["result"] if wrapped and not own else structured)  # type: ignore[index]
    content = result.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        text = content[0].get("text")
        if content[0].get("type") == "text" and isinstance(text, str):
            return text
    return encode(content)


def plain_params(given: Mapping[str, object]) -> dict[str, Any]:
    """The parameters of a request as they are written again.

    Raises ValueRefused: they are nested too deeply, or a number is too large.
    """
    data = plain_data(given)
    if not isinstance(data, dict):
        raise ValueRefused("an object was expected", text="")
    return data
