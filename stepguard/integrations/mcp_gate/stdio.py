"""Gate an MCP server that is a command, over stdio: an MCP client starts this in place of the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread
from typing import IO, Any, Final

from stepguard.errors import ConfigError, StepguardError
from stepguard.integrations.mcp_gate.session import GatedSession, Routed

_PATIENCE: Final = 5.0
"""How many seconds a server may take to end by itself after its input has ended."""


def stdin_lines() -> IO[bytes]:
    """The lines of stdin: a duplicate, never closed, since a thread may still wait for a line when this ends."""
    return open(os.dup(sys.stdin.fileno()), "rb", closefd=False)


def stdout_writer() -> Callable[[str], None]:
    """A function that writes messages to stdout from any thread, through a duplicate that is never closed."""
    out = open(os.dup(sys.stdout.fileno()), "wb", buffering=0, closefd=False)  # noqa: SIM115
    lock = Lock()

    def write(text: str) -> None:
        left = memoryview(_bytes(text))
        with lock:
            while left:
                # Unbuffered writes may take only a part, and None where a pipe is full.
                left = left[out.write(left) or 0 :]

    return write


def log_line(line: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def serve_command(
    session: GatedSession,
    command: Sequence[str],
    *,
    client: Iterable[bytes] | None = None,
    to_client: Callable[[str], None] | None = None,
    log: Callable[[str], None] = log_line,
) -> int:
    """Start a server and pass messages until it ends; the end of the client's input ends it.

    Args:
        session: the session.
        command: the server, as it would be started without the gate.
        client: the lines of the client; by default those of stdin.
        to_client: what writes a message to the client; by default to stdout.
        log: what is told of calls that are not let through.

    Returns:
        0 where the client has ended the session, otherwise the exit code of the server that ended it.

    Raises:
        ConfigError: the command cannot be started.
    """
    try:
        server: subprocess.Popen[bytes] = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot start {command[0]!r:.80}: {error}", option="command") from None
    return _CommandRelay(session, server, to_client or stdout_writer(), log).run(client or stdin_lines())


class _CommandRelay:
    def __init__(
        self,
        session: GatedSession,
        server: subprocess.Popen[bytes],
        to_client: Callable[[str], None],
        log: Callable[[str], None],
    ) -> None:
        self._session = session
        self._server = server
        self._to_client = to_client
        self._log = log
        self._lock = Lock()
        self._one_judgement = Lock()
        self._client_ended = False

    def run(self, client: Iterable[bytes]) -> int:
        Thread(target=self._from_client, args=(client,), daemon=True).start()
        assert self._server.stdout is not None
        try:
            for line in self._server.stdout:
                self._pass(self._session.from_server, line)
            code = self._server.wait()
        finally:
            _end(self._server)
            self._server.stdout.close()
        return 0 if self._client_ended else code or 1

    def _from_client(self, client: Iterable[bytes]) -> None:
        assert self._server.stdin is not None
        try:
            for line in client:
                self._pass(self._session.from_client, line)
            self._client_ended = True
            self._server.stdin.close()
            self._server.wait(_PATIENCE)
        except (OSError, subprocess.TimeoutExpired):  # it has gone away, or does not
            self._server.terminate()
        except StepguardError as error:  # what was decided could not be kept: nothing goes on without it
            self._log(f"error: {error}")
            self._server.terminate()

    def _judge(self, name: str) -> None:
        try:
            with self._one_judgement:  # two calls may wait for the same
                verdicts = self._session.judge(name)
            with self._lock:
                routed = self._session.judged(name, verdicts)
            self._send(routed)
        except StepguardError as error:
            self._log(f"error: {error}")
            self._server.terminate()
        except (OSError, ValueError):  # the server has gone away, or is about to
            self._server.terminate()

    def _pass(self, route: Callable[[str], list[Routed]], line: bytes) -> None:
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not text.strip():
            return
        with self._lock:
            routed = route(text)
        self._send(routed)

    def _send(self, routed: list[Routed]) -> None:
        # Outside of the lock: the one that is written to may wait until it has been read from.
        for each in routed:
            if each.to == "log":
                self._log(each.text)
            elif each.to == "client":
                self._to_client(each.text)
            elif each.to == "judge":
                Thread(target=self._judge, args=(each.text,), daemon=True).start()
            else:
                self._write(each.text)

    def _write(self, text: str) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(_bytes(text))
        self._server.stdin.flush()


def _bytes(text: str) -> bytes:
    return f"{text}\n".encode("utf-8", "surrogateescape")


def _end(server: subprocess.Popen[Any]) -> None:
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
