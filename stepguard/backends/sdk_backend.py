"""The base of all backends over an SDK: one request for each call, its time, its turn, and the clients."""

from __future__ import annotations

import asyncio
import re
import threading
import weakref
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from stepguard.backends.base import FORBIDDEN, Completion, Request, Stopping, about_to_send
from stepguard.backends.completion_streams import RATES, CompletionStream
from stepguard.backends.limiter import SHARED_LIMITERS, EndpointLimiter
from stepguard.backends.sdk_calls import SdkCall
from stepguard.core.arguments import check_instance, check_text
from stepguard.core.completions import STOPPED_EARLY
from stepguard.core.deadlines import Overrun, StandingThreads, awithin, within
from stepguard.errors import ConfigError

_OWN_NAMES: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
"""How names of machines end that nobody outside of a network can reach."""


def check_common(model: object, api_key: object, limiter: object) -> None:
    """Refuse what no backend over an SDK takes.

    Raises ConfigError: the model is no text, the key is none, or the limiter is another object.
    """
    check_text(model, "model", what="text such as 'gpt-4.1-mini'", filled=True)
    if api_key is not None and not (isinstance(api_key, str) and api_key):  # a key is shown nowhere
        raise ConfigError("api_key is text that is not empty; None reads the environment", option="api_key")
    check_instance(limiter, EndpointLimiter, "limiter", what="an EndpointLimiter", optional=True)


class SdkBackend:
    """Asks a model through the client of an SDK.

    Args:
        name: the model, as it is asked for.
        label: what errors call it.
        client: a client to use; None makes clients, sync and async ones, when they are needed.
        is_async: whether that client can only be awaited.
        connect: makes a client, an async one for True; called where none is given.
        account: says which endpoint is asked, and a digest of the key.
        limiter: how many requests may be on their way at once; None takes that of the endpoint and the key.
        key: a key that was given, which stays out of errors.
    """

    def __init__(
        self,
        name: str,
        *,
        label: str,
        client: object | None,
        is_async: bool,
        connect: Callable[[bool], Any],
        account: Callable[[], tuple[str, str]],
        limiter: EndpointLimiter | None,
        key: str | None = None,
    ) -> None:
        secrets = () if key is None else (key,)
        self._secrets: Final[Callable[[], tuple[str, ...]]] = lambda: secrets  # shown in no listing of attributes
        self.name: Final = name
        self.is_async: Final = is_async
        self._label: Final = label
        self._given: Final = client
        self._connect: Final = connect
        self._account: Final = account
        self._limiter = limiter
        self._answer_in_reasoning = False
        self._warm = False  # the first call imports what is heavy, in a thread
        self._rates = RATES
        self._threads: Final = StandingThreads()
        self._lock: Final = threading.Lock()
        self._own: Any = None
        self._lent: Final[dict[asyncio.AbstractEventLoop, _Lent]] = {}

    @property
    def endpoint(self) -> str:
        address = re.sub(r"//[^/@]*@", "//", self._account()[0])
        return f"{self.name} at {address.partition('?')[0].rstrip('/')}"

    # What the SDK decides

    @property
    def can_stop(self) -> bool:
        """Whether replies can be stopped early: they are streamed then."""
        return False

    @property
    def stopping(self) -> Stopping:
        """See `stepguard.backends.base.Stopping`.

        A server of one's own stops working where a connection is closed. Of others nobody knows when they notice, and
        what they bill for it.
        """
        try:
            own = _is_own(self._account()[0])
        except ConfigError:  # the first request says what is missing
            own = False
        return "slips" if own and self.can_stop else "never"

    @abstractmethod
    def _sender(self, client: Any, request: Request) -> tuple[Any, Callable[..., Any]]:
        """The client that is asked, its own retries off, and its method that sends a request."""

    @abstractmethod
    def _arguments(self, request: Request) -> dict[str, Any]:
        """The parameters of the call, as that method takes them."""

    def _stream(self, request: Request) -> CompletionStream:
        """What puts a reply together that comes in pieces."""
        return CompletionStream(request)

    def _closer(self, client: Any) -> Callable[[], object]:
        """What closes a sync client that was made here."""
        close: Callable[[], object] = client.close
        return close

    async def _close(self, client: Any) -> None:
        """Close an async client that was made here."""
        await client.close()

    # The call

    def complete(self, request: Request) -> Completion:
        """Answer one request.

        ``request.timeout`` bounds the whole call, also where a server sends its answer byte by byte; an SDK by itself
        only bounds each wait for data. The call therefore runs in a thread, see `stepguard.core.deadlines`.

        Raises:
            BackendError: the model did not answer.
            ConfigError: the client can only be awaited, or there is no API key.
        """
        about_to_send(self.name)
        if self.is_async:
            raise ConfigError("this client can only be awaited: use `await guard.arun(...)`", option="backend")
        turns = self._turns()
        tokens = turns.estimate(request)
        with turns.turn(request.timeout, tokens=tokens) as left:
            completion = self._complete(self._as_sent(request, left))
        turns.settle(tokens, completion.usage)
        return completion

    def _as_sent(self, request: Request, seconds: float | None) -> Request:
        return replace(request, timeout=seconds, stop=request.stop if self.can_stop else None)

    def _complete(self, request: Request) -> Completion:
        call = self._call(request)

        def answer() -> object:
            call.client, create = self._sender(self._sync_client() if self._given is None else self._given, request)
            return call.read(create(**self._arguments(request)))

        with call:
            try:
                call.raw = within(request.timeout, answer, name="stepguard-request", threads=self._threads)
            except Overrun:
                call.give_up()
                raise
        return self._counted(call.completion(answer_in_reasoning=self._answer_in_reasoning), request)

    def _call(self, request: Request) -> SdkCall:
        stream = self._stream(request)
        stream.rates = self._rates
        return SdkCall(self._label, request, stream, self._secrets())

    def _counted(self, completion: Completion, request: Request) -> Completion:
        """A completion, of whose counts it is remembered how many characters make a token here."""
        asked = sum(len(message.content) for message in request.messages)
        if completion.finish_reason != STOPPED_EARLY and completion.text and asked:
            usage = completion.usage
            self._rates = (usage.input_tokens, asked), (usage.output_tokens, len(completion.text))
        return completion

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request without blocking the event loop; see `complete`.

        ``request.timeout`` bounds the whole call.
        """
        about_to_send(self.name)
        if self._given is not None and not self.is_async:
            return await awithin(None, lambda: self.complete(request), name="stepguard-request")
        turns = self._turns()
        tokens = turns.estimate(request)
        async with self.session(), turns.aturn(request.timeout, tokens=tokens) as left:
            completion = await self._acomplete(self._as_sent(request, left))
        turns.settle(tokens, completion.usage)
        return completion

    async def _acomplete(self, request: Request) -> Completion:
        call = self._call(request)
        with call:
            async with asyncio.timeout(_a_little_less(request.timeout)):
                client = await self._async_client()
                (call.client, create), arguments = await self._prepared(client, request)
                call.raw = await call.aread(await create(**arguments))
        return self._counted(call.completion(answer_in_reasoning=self._answer_in_reasoning), request)

    async def _prepared(self, client: Any, request: Request) -> tuple[tuple[Any, Callable[..., Any]], dict[str, Any]]:
        """What sends, and the parameters of the call. Both import what is heavy, the first time."""
        if self._warm:
            return self._sender(client, request), self._arguments(request)
        prepared = await awithin(
            None, lambda: (self._sender(client, request), self._arguments(request)), name="stepguard-request"
        )
        self._warm = True
        return prepared

    def _turns(self) -> EndpointLimiter:
        if self._limiter is None:
            self._limiter = SHARED_LIMITERS.of(*self._account())
        return self._limiter

    # The clients

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep one client open on the running event loop, so that its connections are used again.

        Sessions on the same loop share the client; the last one to end closes it, on that loop. `Guard.arun` opens
        one for each run. Making a client takes some 60 ms (it reads certificates), and seconds the first time in a
        process: it is made in a thread, for the first request, within its time-out. A server does well to hold a
        session for as long as it lives. A client of yours is left as it is.
        """
        if self._given is not None or FORBIDDEN.get() is not None:  # no client, and no key, where none may be used
            yield
            return
        loop = asyncio.get_running_loop()
        with self._lock:
            lent = self._lent.setdefault(loop, _Lent())
            lent.users += 1
        try:
            yield
        finally:
            with self._lock:
                lent.users -= 1
                if not lent.users:
                    del self._lent[loop]
            if not lent.users and lent.client is not None:
                await self._close(lent.client)

    async def _async_client(self) -> Any:
        """The client of the session that is held on the running event loop, or the one that was given."""
        if self._given is not None:
            return self._given
        lent = self._lent[asyncio.get_running_loop()]
        async with lent.making:
            if lent.client is None:
                lent.client = await awithin(None, lambda: self._connect(True), name="stepguard-client")
            return lent.client

    def _sync_client(self) -> Any:
        with self._lock:
            if self._own is None:
                self._own = self._connect(False)
                weakref.finalize(self, self._closer(self._own))
            return self._own


@dataclass(slots=True)
class _Lent:
    """A client on one event loop, None until it is needed, and how many sessions use it."""

    client: Any = None
    users: int = 0
    making: asyncio.Lock = field(default_factory=asyncio.Lock)


def _is_own(address: str) -> bool:
    """Whether an address is on this machine or in a private network."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # the first request says what is wrong with it
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_OWN_NAMES))


def _a_little_less(seconds: float | None) -> float | None:
    """A time-out that is over before the same one of a caller, who could not say what came of the reply by then."""
    return None if seconds is None else max(0.98 * seconds, seconds - 0.05)
