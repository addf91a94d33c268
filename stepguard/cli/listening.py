"""What commands that serve share: a socket to listen on, signals that end them, a log on stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator

from stepguard.errors import ConfigError

__all__ = ["listening", "log_to_stderr", "signals_end_it"]


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes a free one.

    Raises:
        ConfigError: the address cannot be taken.
    """
    with contextlib.ExitStack() as stack:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            # With the protocol named: without it asyncio leaves Nagle's algorithm on, which costs 40 ms a response.
            found = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            if os.name == "posix":
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, port))
            found.listen(2048)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error}; choose another --host or --port") from None
        yield found


@contextlib.contextmanager
def signals_end_it() -> Iterator[None]:
    """uvicorn raises the signal that ended it once more when it is done; that one is to do nothing."""
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def log_to_stderr(level: str) -> None:
    """Write the events of stepguard and of the server to stderr, from this level on."""
    # Not the root logger: HTTP libraries log addresses, and with them the keys that some callers put there.
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name in ("stepguard", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False
