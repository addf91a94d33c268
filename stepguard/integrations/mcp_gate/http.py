"""A gated session with a server over streamable HTTP, for a client that speaks stdio (extra ``mcp``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from stepguard.errors import ConfigError, MissingExtraError, StepguardError
from stepguard.integrations.mcp_gate.messages import INVALID_REQUEST, error_message, plain_id, read_message
from stepguard.integrations.mcp_gate.session import GatedSession, Routed
from stepguard.integrations.mcp_gate.stdio import log_line, stdin_lines, stdout_writer
from stepguard.language.strict_json import JsonObject

try:
    import anyio
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client  # type: ignore[attr-defined, unused-ignore]
    from mcp.shared.message import ClientMessageMetadata, SessionMessage
    from mcp_types.jsonrpc import jsonrpc_message_adapter
    from pydantic import ValidationError
except ImportError:
    raise MissingExtraError("a gate before an MCP server over HTTP", extra="mcp") from None


async def serve_url(
    session: GatedSession, url: str, *, headers: dict[str, str] | None = None, log: Callable[[str], None] = log_line
) -> None:
    """Pass messages between stdin and stdout and a server over HTTP, until stdin ends.

    Args:
        session: the session, made with ``handshake=True``: the version that is agreed on goes along in a header.
        url: where the server is.
        headers: what is sent along, such as ``{"Authorization": "Bearer ..."}``.
        log: what is told of calls that are not let through.

    Raises:
        ConfigError: the server cannot be reached, or not any more.
    """
    try:
        await _serve(session, url, headers, log)
    except Exception as error:
        leaf: BaseException = error
        # The task group wraps what its tasks raise; the user is told the error itself.
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if isinstance(leaf, StepguardError):
            raise leaf from None
        raise ConfigError(f"the server at {url} cannot be reached: {leaf}", option="url") from error


async def _serve(session: GatedSession, url: str, headers: dict[str, str] | None, log: Callable[[str], None]) -> None:
    write = stdout_writer()
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as (from_server, to_server),
        anyio.create_task_group() as tasks,
    ):
        relay = _UrlRelay(session, to_server, write, log, tasks)

        async def server_speaks() -> None:
            async for item in from_server:
                if isinstance(item, Exception):
                    log(f"the server could not be read: {item}")
                    continue
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                relay.notice(text)
                await relay.passed(session.from_server(text))

        tasks.start_soon(server_speaks)
        async for line in _client_lines():
            await relay.passed(session.from_client(line))
        tasks.cancel_scope.cancel()


async def _client_lines() -> AsyncIterator[str]:
    """The lines of stdin, read by a thread that nothing waits for where the server ends the session."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            for line in stdin_lines():
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        if line.strip():
            yield line.decode("utf-8", "surrogateescape").rstrip("\r\n")


class _UrlRelay:
    def __init__(
        self,
        session: GatedSession,
        to_server: Any,
        to_client: Callable[[str], None],
        log: Callable[[str], None],
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._session = session
        self._tasks = tasks
        self._one_judgement = asyncio.Lock()
        self._to_server = to_server
        self._to_client = to_client
        self._log = log
        self._version: str | None = None

    def notice(self, text: str) -> None:
        """The version of the protocol that the server has agreed on."""
        message = read_message(text)
        result = message.get("result") if isinstance(message, JsonObject) else None
        version = result.get("protocolVersion") if isinstance(result, JsonObject) else None
        if isinstance(version, str):
            self._version = version

    async def passed(self, routed: list[Routed]) -> None:
        for each in routed:
            if each.to == "log":
                self._log(each.text)
            elif each.to == "client":
                self._to_client(each.text)
            elif each.to == "judge":
                self._tasks.start_soon(self._judge, each.text)
            else:
                await self._send(each.text)

    async def _judge(self, name: str) -> None:
        async with self._one_judgement:  # two calls may wait for the same
            verdicts = await self._session.ajudge(name)
        await self.passed(self._session.judged(name, verdicts))

    async def _send(self, text: str) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(text.encode("utf-8", "surrogateescape"), by_name=False)
        except ValidationError:
            given = read_message(text)
            id = plain_id(given) if isinstance(given, JsonObject) else None
            self._to_client(error_message(id, INVALID_REQUEST, "this is no message of JSON-RPC 2.0"))
            return
        headers = None if self._version is None else {"mcp-protocol-version": self._version}
        await self._to_server.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))
