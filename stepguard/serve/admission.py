"""Admission: bounds on concurrent requests and their memory, with fair turns between clients; none while stopping."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, Protocol

from stepguard.serve.errors import HttpProblem, busy, stopping
from stepguard.serve.limits import Limits


def address_of(peer: Any) -> str:
    """The client behind an address: the address itself, or the /64 network that one host of IPv6 has to itself."""
    host = str(peer[0]) if peer else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:  # none, of a socket that has a path
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))  # whoever has one address there has the whole /64
    return str(getattr(address, "ipv4_mapped", None) or address)


class Interruptible(Protocol):
    """A request that can be ended from outside."""

    @property
    def client(self) -> str:
        """The client that sent it."""

    def interrupt(self, problem: HttpProblem) -> None:
        """End it with this problem; the first one counts."""


class Gate:
    """Lets requests in, so many at a time, and none any more once the server is to stop.

    A gate belongs to one event loop. Where requests wait their clients take turns: the many of one delay no other's.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits: Final = limits
        self._inside: Final[set[Interruptible]] = set()
        self._reserved: Final[Counter[str]] = Counter()
        self._queues: Final[dict[str, deque[asyncio.Future[None]]]] = {}
        """The waiting requests by client; the client whose turn it is comes first."""
        self._slots = 0
        self._empty: Final = asyncio.Event()
        self._empty.set()
        self.waiting = 0
        self.closed = False

    @property
    def in_flight(self) -> int:
        """How many requests are worked on now."""
        return len(self._inside)

    @asynccontextmanager
    async def admit(self, request: Interruptible) -> AsyncIterator[None]:
        """Wait for the turn of a request, and hold its place.

        Raises Problem: too many are waiting, it has waited too long, or the server is to stop.
        """
        if self.closed:
            raise stopping()
        client = request.client
        await self._take_slot(client)
        try:
            # Checked again, since the wait for the turn may have been long.
            if self.closed:  # meanwhile
                raise stopping()
            self._inside.add(request)
            self._empty.clear()
            yield
        finally:
            self._inside.discard(request)
            if not self._inside:
                self._empty.set()
            self._free_slot(client)

    async def _take_slot(self, client: str) -> None:
        limits = self._limits
        # Not past a queue: a newcomer would take the slot of a client that has waited.
        if self._has_room(client) and not self._queues:
            self._hold(client)
            return
        queue = self._queues.get(client, ())
        if self.waiting >= limits.waiting or len(queue) >= limits.share(limits.waiting):
            raise busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(turn)
        self.waiting += 1
        # At once: this client may be under its share while those in front of it are not.
        self._call_next()
        try:
            async with asyncio.timeout(limits.wait_seconds):
                await turn
        except BaseException as error:
            # The turn may come in the same moment as the timeout: the slot would be lost for good.
            if turn.done() and not turn.cancelled():
                self._free_slot(client)  # its turn had come
            else:
                self._forget(client, turn)
            if isinstance(error, TimeoutError):
                raise busy() from None
            raise

    def _has_room(self, client: str) -> bool:
        limits = self._limits
        return self._slots < limits.concurrent and self._reserved[client] < limits.share(limits.concurrent)

    def _hold(self, client: str) -> None:
        self._slots += 1
        self._reserved[client] += 1

    def _free_slot(self, client: str) -> None:
        self._slots -= 1
        self._reserved[client] -= 1
        if not self._reserved[client]:
            del self._reserved[client]
        self._call_next()

    def _call_next(self) -> None:
        """Give free slots to those who wait, one each of every client that may have another."""
        while self._slots < self._limits.concurrent:
            client = next(filter(self._has_room, self._queues), None)
            if client is None:
                return
            queue = self._queues.pop(client)
            turn = queue.popleft()
            if queue:
                self._queues[client] = queue  # behind all others
            self.waiting -= 1
            self._hold(client)
            turn.set_result(None)

    def _forget(self, client: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues[client]
        queue.remove(turn)
        if not queue:
            del self._queues[client]
        self.waiting -= 1

    async def close(self) -> None:
        """Let no request in any more, and return when the last one has left.

        After the seconds of grace those that are still here are interrupted.
        """
        self.closed = True
        try:
            async with asyncio.timeout(self._limits.grace_seconds):
                await self._empty.wait()
        except TimeoutError:
            for request in tuple(self._inside):
                request.interrupt(stopping())
            await self._empty.wait()


class Memory:
    """The bytes that the requests in flight take, of all and of each client."""

    def __init__(self, limits: Limits) -> None:
        self._limits: Final = limits
        self._reserved: Final[Counter[str]] = Counter()
        self.in_use = 0

    @contextmanager
    def holding(self, client: str) -> Iterator[Charge]:
        """Hold the resources of one request until it leaves."""
        charge = Charge(self, client)
        try:
            yield charge
        finally:
            charge.resize(0)

    def take(self, client: str, size: int) -> None:
        """Take so many bytes more, or give them back where there are fewer than none.

        Raises Problem: there is no room for them.
        """
        most = self._limits.memory
        if size > 0 and (self.in_use + size > most or self._reserved[client] + size > self._limits.share(most)):
            raise busy()
        self.in_use += size
        self._reserved[client] += size
        if not self._reserved[client]:
            del self._reserved[client]


class Charge:
    """The memory that one request takes."""

    def __init__(self, memory: Memory, client: str) -> None:
        self._memory: Final = memory
        self._client: Final = client
        self._size = 0

    def resize(self, size: int) -> None:
        """Change the bytes held to a new total. Raises Problem: there is no room for them."""
        self._memory.take(self._client, size - self._size)
        self._size = size
