"""What commands that serve share: a socket to listen on, a server that holds, signals that end it, a log on stderr."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from stepguard.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn

    from stepguard.serve.connections import Connections

_LAST_SECONDS: Final = 5
_QUEUE: Final = 2048
"""Connections that the system may hold until they are accepted."""


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes a free one. Raises ConfigError: the address cannot be taken."""
    with contextlib.ExitStack() as stack:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            # With the protocol named: without it asyncio leaves Nagle's algorithm on, which costs 40 ms a response.
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(_QUEUE)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error}; choose another --host or --port") from None
        yield listener


def url_of(listener: socket.socket) -> str:
    """The URL of a socket that listens, without a path."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def signals_end_it() -> Iterator[None]:
    """uvicorn raises the signal that ended it once more when it is done; that one is to do nothing."""
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def bounded_server(
    app: Any, connections: Connections, *, last_seconds: float, proxies: Iterable[str] = ()
) -> uvicorn.Server:
    """A server of an application, ready to serve.

    Args:
        last_seconds: how long requests may go on once it is to stop.
        proxies: the addresses whose word is taken for whom they speak for (``X-Forwarded-For``).
    """
    import uvicorn

    from stepguard.serve.connections import ACCEPTED_AT_ONCE

    config = uvicorn.Config(
        app,
        http=connections.protocol,  # type: ignore[arg-type]
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,  # it would hold whole addresses, with the keys that some callers put there
        server_header=False,
        date_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=int(last_seconds),
    )
    return uvicorn.Server(config)


async def serve_on(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serve on a socket until a signal."""
    serving = asyncio.create_task(server.serve([listener]), name="uvicorn")
    # uvicorn tells nobody when it has begun.
    while not (server.started or serving.done()):
        await asyncio.sleep(0.01)
    if not serving.done():
        listener.listen(_QUEUE)  # asyncio has set it to as many as it may accept at once
    await serving


def serve_until_signal(app: Any, host: str, port: int, words: str) -> None:
    """Serve an application within the usual limits until a signal, and print where it is to be had.

    Args:
        host, port: where to listen; port 0 takes a free one.
        words: what is printed, with ``{}`` where the address goes.

    Raises:
        ConfigError: the address cannot be taken.
    """
    from stepguard.serve.connections import Connections, files_allowed
    from stepguard.serve.limits import Limits

    with listening(host, port) as listener:
        sys.stdout.write(f"{words.format(url_of(listener))}\n")
        sys.stdout.flush()
        connections = Connections(Limits(), files=files_allowed())
        with signals_end_it():
            asyncio.run(serve_on(bounded_server(app, connections, last_seconds=_LAST_SECONDS), listener))


def log_to_stderr(level: str, secrets: Iterable[str] = ()) -> None:
    """Write the events of stepguard and of the server to stderr, from this level on, and none of these secrets."""
    # Not the root logger: HTTP libraries log addresses, and with them the keys that some callers put there.
    handler = logging.StreamHandler()
    handler.setFormatter(_Masked(secrets))
    handler.addFilter(_Sparse())
    for name in ("stepguard", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False


class _Masked(logging.Formatter):
    """Lines that hold none of these secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._mask: Callable[[str], str] | None = None
        if known := tuple(secrets):
            from stepguard.serve.blackout import Mask

            self._mask = Mask(known).text

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return line if self._mask is None else self._mask(line)


class _Sparse(logging.Filter):
    """A filter that lets the same message through once in a while."""

    def __init__(self) -> None:
        from stepguard.serve.log_throttle import LogThrottle

        super().__init__()
        self._throttle: Final = LogThrottle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written; it then tells how many were left out before it."""
        left_out = self._throttle.passed((record.name, record.levelno, record.msg), time.monotonic())
        if left_out:
            record.msg = f"{record.msg} ({left_out} more since)"
        return left_out is not None
