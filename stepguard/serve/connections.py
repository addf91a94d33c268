"""The connections of the server: bounded altogether and for each client, and closed where no request comes on them.

uvicorn closes what is idle between two requests. Here are the rest: a connection on which no request, or half of one,
comes; more of them than there are to be; and more than the system has files for, of which asyncio would write without
end.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from stepguard.serve.admission import address_of
from stepguard.serve.limits import Limits

ACCEPTED_AT_ONCE: Final = 64
"""How many connections asyncio may accept before the first of them is looked at."""
_RESERVED: Final = 64
"""Files that the process has open anyway, and some more."""
_LAST_WORDS_SECONDS: Final = 5.0
"""How long the application may take to end a response after it has given its caller up."""
_BUSY_BODY: Final = (
    b'{"error": {"message": "this server has as many connections as it takes on: come again later", '
    b'"type": "rate_limit_error", "param": null, "code": "server_busy"}}'
)
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_BUSY_BODY), _BUSY_BODY)
)


def files_allowed() -> int | None:
    """How many files this process may open, once it may open as many as it can; None where that is not bounded."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unbounded = resource.RLIM_INFINITY
    wanted = 2**16 if hard == unbounded else min(hard, 2**16)
    if soft != unbounded and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            pass
    return None if soft == unbounded else soft


class Connections:
    """The open connections of one server.

    Args:
        files: how many files the process may open; None sets no bound.
        trusted: addresses that speak for many clients: that of a proxy.
    """

    def __init__(self, limits: Limits, *, files: int | None = None, trusted: frozenset[str] = frozenset()) -> None:
        # Each request that is worked on has a connection to the upstream, too.
        spare = None if files is None else max(8, files - _RESERVED - ACCEPTED_AT_ONCE)
        most = limits.connections if spare is None else min(limits.connections, spare * 2 // 3)
        self.most: Final = most
        """How many are open at once."""
        self.most_upstream: Final = None if spare is None else max(1, spare - most)
        """How many may be open to the upstream."""
        self.head_seconds: Final = limits.head_seconds
        self.send_seconds: Final = limits.send_seconds + _LAST_WORDS_SECONDS
        self._share: Final = limits.share(most)
        self._trusted: Final = trusted
        self._open: Final[dict[str, dict[Connection, None]]] = {}
        """By client, those first that have waited longest for a request."""
        self._count = 0

    def fitted(self, limits: Limits) -> Limits:
        """The same limits, with no more requests at once than there are files for connections to the upstream."""
        most = self.most_upstream
        return limits if most is None or most >= limits.concurrent else replace(limits, concurrent=most)

    def protocol(self, *arguments: Any, **options: Any) -> Connection:
        """The protocol factory that uvicorn calls for each connection."""
        return Connection(self, *arguments, **options)

    def enter(self, connection: Connection, client: str) -> bool:
        """Take a connection in, for which another may have to go; False where there is no room."""
        mine = self._open.setdefault(client, {})
        full = len(mine) >= self._share and client not in self._trusted
        if full or self._count >= self.most:
            # The client with the most loses one, so that a flood from one address cannot close another's.
            crowds = [mine] if full else sorted(self._open.values(), key=len, reverse=True)
            idle = next((each for crowd in crowds for each in crowd if not each.working), None)
            if idle is None:
                if not mine:
                    del self._open[client]
                return False
            idle.refuse()
        self._open.setdefault(client, {})[connection] = None
        self._count += 1
        return True

    def wait(self, connection: Connection, client: str) -> None:
        """A connection waits for its next request: it is the last of those to go."""
        mine = self._open.get(client, {})
        if connection in mine:
            del mine[connection]
            mine[connection] = None

    def leave(self, connection: Connection, client: str) -> None:
        """A connection has gone."""
        mine = self._open.get(client, {})
        if connection in mine:
            del mine[connection]
            self._count -= 1
            if not mine:
                del self._open[client]


class Connection(H11Protocol):
    """One connection: closed where in time no whole head of a request comes on it, or nobody reads what was sent."""

    def __init__(self, book: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._book: Final = book
        self._owner = ""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def working(self) -> bool:
        """Whether a whole request has come that is not answered yet."""
        return self._in_request and not self.cycle.more_body

    @property
    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._owner = address_of(transport.get_extra_info("peername"))
        # From the connection on: one that sends nothing, or a head byte by byte, is closed in time.
        self._watch(self._book.head_seconds)
        if not self._book.enter(self, self._owner):
            self.refuse()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_request:
            self._watch(None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_request:
            self._book.wait(self, self._owner)
            self._watch(self._book.head_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(self._book.send_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch(None if self._in_request else self._book.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._book.leave(self, self._owner)
        self._watch(None)

    def _watch(self, seconds: float | None) -> None:
        """Close it after so long, if nothing better happens; None: whatever happens."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.drop)

    def refuse(self) -> None:
        """Close it in favour of others, and say so where nothing was said yet."""
        self._book.leave(self, self._owner)
        self._watch(self._book.head_seconds)
        if not (self._in_request and self.cycle.response_started):
            self.transport.write(_FULL)
        self.transport.close()

    def drop(self) -> None:
        """Close it, whatever is still to be sent on it."""
        self._book.leave(self, self._owner)
        self.transport.abort()
