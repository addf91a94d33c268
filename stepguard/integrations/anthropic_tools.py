"""Anthropic's messages: tool uses behind the gate of a policy, in a plain loop. It needs no package of its own.

::

    gate = ToolGate(policy, {"get_order": get_order, "refund": refund}, facts={"customer": "C1"}, confirm=ask_the_user)
    while True:
        message = client.messages.create(model=..., max_tokens=1024, messages=messages, tools=schemas)
        messages.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use" or gate.handed_over:
            break
        messages.append(answer_tool_uses(gate, message))

Tools that Anthropic calls itself (its server tools, its connector of MCP servers) do not come by here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.integrations.tool_gate import AskedCall, CallAnswer, ToolGate, part_of

__all__ = ["aanswer_tool_uses", "answer_tool_uses"]

_CUT_OFF: Final = ("max_tokens", "model_context_window_exceeded")


def answer_tool_uses(gate: ToolGate, message: Any) -> dict[str, Any]:
    """The message that answers the tool uses of an assistant's message, a `Message` of the library or a mapping.

    Where the message was cut off, its arguments may be, too: nothing of it is called then, and the model is told so.

    Raises:
        ConfigError: the message has no tool uses, or one without an identifier, a name or arguments.
    """
    uses = _tool_uses(message)
    return _message(uses, gate.answers(uses))


async def aanswer_tool_uses(gate: ToolGate, message: Any) -> dict[str, Any]:
    """The twin of `answer_tool_uses` for async tools."""
    uses = _tool_uses(message)
    return _message(uses, await gate.aanswers(uses))


def _tool_uses(message: Any) -> list[AskedCall]:
    # The content may be a plain text, which has no tool uses.
    content = part_of(message, "content")
    blocks = [each for each in content if part_of(each, "type") == "tool_use"] if isinstance(content, list) else []
    if not blocks:
        raise ConfigError("the message has no tool uses: answer one whose stop_reason is tool_use", option="message")
    complete = part_of(message, "stop_reason") not in _CUT_OFF
    uses: list[AskedCall] = []
    for block in blocks:
        id, name, given = part_of(block, "id"), part_of(block, "name"), part_of(block, "input")
        if not (isinstance(id, str) and id and isinstance(name, str) and isinstance(given, Mapping)):
            raise ConfigError("a tool use has an id, a name and an input", option="message")
        uses.append(AskedCall(id, name, given, complete))
    return uses


def _message(uses: Sequence[AskedCall], answers: Sequence[CallAnswer]) -> dict[str, Any]:
    """One message with all results: Anthropic refuses a history in which a tool use has none in the next message."""
    return {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": use.id, "content": answer.text, "is_error": answer.error}
            for use, answer in zip(uses, answers, strict=True)
        ],
    }
