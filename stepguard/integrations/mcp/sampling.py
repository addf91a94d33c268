"""The model of an MCP client as a backend, which MCP calls sampling.

A client that offers sampling answers a server's requests with a model of its own, often after it has asked its user.
No key is needed then. The protocol has sampling up to the version 2025-11-25; from 2026-07-28 on it is deprecated, and
a server has no way of its own to ask a client while a call runs.
"""

from __future__ import annotations

from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage
from stepguard.errors import BackendRejected

_MAX_TOKENS: Final = 8192
"""The limit on a reply where the guard sets none: the protocol requires one."""
_FINISHED: Final = {"endTurn": "stop", "stopSequence": "stop", "maxTokens": "length"}


def can_sample(context: Any) -> bool:
    """Whether the client behind a call offers its model."""
    capabilities = context.client_capabilities
    return (
        capabilities is not None
        and capabilities.sampling is not None
        and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        and bool(context.session.can_send_request)
    )


class SamplingBackend:
    """Asks the model of the client that made a call, for the length of that call.

    Clients do not tell usage: tokens are estimated at four characters each. Replies are not bound to a form.
    """

    def __init__(self, context: Any) -> None:
        self._session: Final = context.session
        self._call: Final = context.request_id

    async def acomplete(self, request: Request) -> Completion:
        """Ask the client. Raises BackendRejected: the client, or its user, does not want to answer."""
        system = "\n\n".join(each.content for each in request.messages if each.role == "system")
        messages = [
            SamplingMessage(
                role="assistant" if each.role == "assistant" else "user",
                content=TextContent(type="text", text=each.content),
            )
            for each in request.messages
            if each.role != "system"
        ]
        asked = CreateMessageRequest(
            params=CreateMessageRequestParams(
                messages=messages,
                system_prompt=system or None,
                temperature=request.temperature,
                max_tokens=request.max_tokens or _MAX_TOKENS,
            )
        )
        try:
            answer = await self._session.send_request(
                asked, CreateMessageResult, metadata=ServerMessageMetadata(related_request_id=self._call)
            )
        except MCPError as error:
            # Without its text, which may hold the prompt.
            raise BackendRejected(f"the client did not ask its model (error {error.code})") from None
        text = answer.content.text if isinstance(answer.content, TextContent) else None
        size = sum(len(each.content) for each in request.messages)
        return Completion(
            text,
            finish_reason=_FINISHED.get(answer.stop_reason, answer.stop_reason),
            usage=Usage.estimate(size, len(text or "")),
            model=answer.model,
        )
