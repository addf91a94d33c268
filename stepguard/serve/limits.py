"""The limits of the server: the size of a request, how many at once, how long."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final

from stepguard.core.arguments import check_count, check_number, check_seconds
from stepguard.errors import ConfigError

_MAY_BE_NONE: Final = ("seconds", "upstream_seconds")
_MAY_BE_ZERO: Final = ("waiting", "grace_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server. None is no limit, where it is allowed.

    A client is an address, or a key where the server knows several.

    Args:
        body: the largest request, in bytes; a larger one gets status 413.
        messages: the most messages of a request; more get status 413.
        values: the most values in the JSON of a request, and so the most objects that are made of it; as `messages`.
        depth: how deeply the JSON of a request may be nested; deeper is status 400.
        memory: bytes that all requests in flight may take together, with what reading them takes; a request that finds
            no room gets status 429.
        answer: the largest answer of the upstream that is held whole, in bytes; beyond it the caller gets status 502.
            What the server does not read it passes on at any size.
        connections: how many connections are open at once; the command takes fewer where the system allows fewer
            files. Beyond it those that hold no whole request are closed, the oldest of the client with the most first.
        concurrent: how many requests are worked on at once.
        waiting: how many more may wait for their turn; the next one gets status 429 at once. Clients take turns.
        client_share: the part of `connections`, `concurrent`, `waiting` and `memory` that one client may take.
        head_seconds: how long the head of a request may take from the last response on, or from the connection.
        silence_seconds: how long a caller may pause within a request; then it gets status 408.
        upload_seconds: how long a caller may take to send a request; then it gets status 408.
        wait_seconds: how long a request waits for its turn before it gets status 429.
        send_seconds: how long a caller may leave a part of a response unread before it is left.
        seconds: how long a request may take from its turn on; then it gets status 504, and what runs for it is
            cancelled. None sets no limit.
        connect_seconds: how long it may take to reach the upstream.
        upstream_seconds: how long the upstream may be silent. None sets no limit.
        keep_alive_seconds: after so long without a word a streamed answer of the guard gets a comment, so that what
            stands between does not cut it. Until then nothing is sent, and an error still has a status of its own.
        grace_seconds: how long requests may go on once the server is to stop; then they get status 503, and what runs
            for them is cancelled.

    Raises:
        ConfigError: a limit is no number above 0, or no request as large as `body` could be held in `memory`.
    """

    body: int = 16 * 2**20
    messages: int = 10_000
    values: int = 500_000
    depth: int = 100
    memory: int = 512 * 2**20
    answer: int = 16 * 2**20
    connections: int = 1000
    concurrent: int = 100
    waiting: int = 500
    client_share: float = 0.5
    head_seconds: float = 10.0
    silence_seconds: float = 10.0
    upload_seconds: float = 60.0
    wait_seconds: float = 30.0
    send_seconds: float = 30.0
    seconds: float | None = 600.0
    connect_seconds: float = 10.0
    upstream_seconds: float | None = 300.0
    keep_alive_seconds: float = 10.0
    grace_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            positive, optional = name not in _MAY_BE_ZERO, name in _MAY_BE_NONE
            if name.endswith("seconds"):
                check_seconds(value, name, positive=positive, optional=optional)
            elif name != "client_share":
                check_count(value, name, least=int(positive))
        check_number(self.client_share, "client_share", high=1, what="a part", positive=True)
        if self.share(self.memory) < self.body:
            raise ConfigError(
                f"no request of {self.body:,} bytes fits into the share of one client in memory "
                f"({self.share(self.memory):,} bytes): raise memory or lower body",
                option="memory",
            )

    def share(self, number: int) -> int:
        """The share of a limit that a single client may use."""
        # Rounded up: a share of nothing would shut everybody out.
        return math.ceil(number * self.client_share)
