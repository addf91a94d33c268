"""The endpoint behind the server: requests passed on, and a backend that asks it in the caller's name.

All of it goes through one HTTP client, the one that the openai SDK uses, so that connections are used again. Nothing
of one caller stays in it for the next: keys and other headers belong to a request, and cookies are not kept.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from stepguard.backends.providers import connected
from stepguard.errors import ConfigError
from stepguard.serve.errors import Problem, too_slow, unreachable, wrong_request
from stepguard.serve.exchange import Exchange, Header
from stepguard.serve.limits import Limits

__all__ = ["Upstream", "response_headers"]

_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OURS: Final = _HOP | {"host", "content-length", "expect", "accept-encoding"}
_KEYS: Final = ("authorization", "x-api-key", "api-key")
_IN_ITS_NAME: Final = (
    "openai-organization",
    "openai-project",
    "openai-beta",
    "anthropic-beta",
    "traceparent",
    "tracestate",
)
"""What of a caller's headers goes with the requests of a guarded run, beside the key."""
_READABLE: Final = "gzip, deflate"
"""The encodings that every version of the HTTP client reads."""
_PATHS: Final = ("/chat/completions", "/responses", "/messages")
"""What clients add to an address themselves."""
_UNSET: Final = "none"
"""The SDK insists on a key; a server that wants none does not look at it."""


class Upstream:
    """An OpenAI-compatible endpoint.

    Args:
        url: its address, up to and without ``/chat/completions``.
        limits: what bounds requests to it.
        key: the key that it is asked with, instead of that of the caller.
        own_keys: whether the key of a caller is for this server, and not to be handed on.

    Raises:
        ConfigError: this is no address.
    """

    def __init__(
        self,
        url: str,
        *,
        limits: Limits,
        key: str | None = None,
        own_keys: bool = False,
    ) -> None:
        parts = _parts(url)
        if parts is None:
            raise ConfigError(
                "the upstream is an address such as 'https://api.openai.com/v1', up to and without /chat/completions",
                option="upstream",
            )
        for path in _PATHS:
            if parts.path.rstrip("/").endswith(path):
                raise ConfigError(
                    f"leave {path} off the address of the upstream: each request adds its own path", option="upstream"
                )
        if parts.username is not None:
            raise ConfigError("leave the password out of the address of the upstream: give a key", option="upstream")
        self.url: Final = url.rstrip("/")
        self._limits: Final = limits
        self._key: Final = key
        self._own_keys: Final = own_keys
        self._client: Any = None
        self._library: Any = None

    def connect(self) -> None:
        """Make the client; where there is one, do nothing.

        Raises:
            ConfigError: it cannot be made with the proxies and certificates in the environment.
        """
        if self._client is not None:
            return
        import openai

        made = openai.DefaultAsyncHttpxClient
        library = next(cls.__module__ for cls in made.__mro__ if cls.__name__ == "AsyncClient").partition(".")[0]
        self._library = importlib.import_module(library)
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        pool = self._library.Limits(max_connections=None, max_keepalive_connections=self._limits.concurrent)
        self._client = connected(
            lambda: made(timeout=None, limits=pool, follow_redirects=False, cookies=cookies), "the upstream"
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Hold the client open, on the running event loop."""
        self.connect()
        try:
            async with self._client:
                yield
        finally:
            self._client = None

    # Passing on

    @asynccontextmanager
    async def passing(
        self, exchange: Exchange, body: bytes, *, path: str | None = None, read: bool
    ) -> AsyncIterator[Any]:
        """Send a request on as it is, and hold the response of the upstream open.

        Args:
            exchange: the request.
            body: what it holds.
            path: what follows ``/v1``; by default that of the request.
            read: whether the response is to be read here, so that it must not come in an encoding that cannot be.

        Raises:
            Problem: the upstream cannot be reached.
        """
        url = self._address(exchange.raw_path.removeprefix("/v1") if path is None else path, exchange.query)
        headers = self._headers(exchange)
        accepted = exchange.header("accept-encoding")
        if read:
            headers.append(("accept-encoding", _READABLE))
        elif accepted is not None:
            headers.append(("accept-encoding", accepted))
        limits = self._limits
        timeout = {
            "connect": limits.connect_seconds,
            "read": limits.upstream_seconds,
            "write": limits.upstream_seconds,
            "pool": limits.connect_seconds,
        }
        with self.failures():
            request = self._library.Request(
                exchange.method, url, headers=headers, content=body or None, extensions={"timeout": timeout}
            )
            response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    def failures(self) -> _Failures:
        """Turns what the HTTP client raises inside of a ``with`` block into problems."""
        return _Failures(self._library, self._limits)

    def _address(self, path: str, query: str) -> str:
        if any(unquote(part) in (".", "..") for part in path.split("/")):
            raise wrong_request("a path without dots is needed", status=404, code="unknown_path")
        return f"{self.url}{path}{'?' if query else ''}{query}"

    def _headers(self, exchange: Exchange) -> list[Header]:
        named = {name.strip().lower() for name in (exchange.header("connection") or "").split(",")}
        dropped = _OURS | named | (set(_KEYS) if self._own_keys else set())
        kept = [each for each in exchange.headers if each[0] not in dropped]
        if self._key is not None:
            kept = [each for each in kept if each[0] not in _KEYS]
            kept.append(("authorization", f"Bearer {self._key}"))
            if exchange.header("anthropic-version") is not None:
                kept.append(("x-api-key", self._key))
        return kept

    # Guarded runs

    def client(self, exchange: Exchange) -> Any:
        """A client of the SDK that asks this endpoint with the caller's key, over the connections of all.

        Raises:
            Problem: the caller's key cannot be sent.
        """
        import openai

        told, key = self._authorization(exchange)
        headers: dict[str, Any] = {name: exchange.header(name) for name in _IN_ITS_NAME}
        headers = {name: value for name, value in headers.items() if value is not None}
        if told is not None:
            headers["Authorization"] = told
        limits = self._limits
        timeout = self._library.Timeout(limits.upstream_seconds, connect=limits.connect_seconds)
        client = openai.AsyncOpenAI(
            api_key=key or _UNSET,
            base_url=self.url,
            http_client=self._client,
            default_headers=headers,
            max_retries=0,
            timeout=timeout,
        )
        # What the SDK finds in the environment of this process is not the caller's.
        client.organization = client.project = client.admin_api_key = None
        if hasattr(client, "_custom_headers"):
            client._custom_headers = headers
        return client

    def _authorization(self, exchange: Exchange) -> tuple[str | None, str | None]:
        """The header that a request to the upstream carries, and the key in it."""
        if self._key is not None:
            return f"Bearer {self._key}", self._key
        if self._own_keys:
            return None, None
        told = exchange.header("authorization") or None
        if told is None:
            key = exchange.header("x-api-key") or exchange.header("api-key")
            told = None if key is None else f"Bearer {key}"
        if told is None:
            return None, None
        if not (told.isascii() and told.isprintable()):
            raise wrong_request(
                "the key holds a character that no header can carry", status=401, code="invalid_api_key"
            )
        return told, told.rpartition(" ")[2]


def _parts(url: object) -> SplitResult | None:
    """The parts of an address; None where it is none."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            return None
        return None if parts.port == 0 else parts
    except ValueError:  # brackets, or a port, that are none
        return None


class _Failures:
    """A ``with`` block in which the upstream is asked."""

    def __init__(self, library: Any, limits: Limits) -> None:
        self._library: Final = library
        self._limits: Final = limits

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        library = self._library
        if isinstance(error, library.ConnectTimeout):
            raise self._said(too_slow(f"the upstream was not reached within {self._limits.connect_seconds:g} s"))
        if isinstance(error, library.TimeoutException):
            raise self._said(too_slow(f"the upstream was silent for {self._limits.upstream_seconds:g} s"))
        if isinstance(error, library.ConnectError):
            raise self._said(unreachable("the upstream cannot be reached"))
        if isinstance(error, library.HTTPError | library.InvalidURL | library.StreamError):
            # The text of such an error may hold an address with a key in it.
            raise self._said(unreachable(f"the connection to the upstream broke ({type(error).__name__})"))

    def _said(self, problem: Problem) -> Problem:
        problem.__suppress_context__ = True
        return problem


def response_headers(response: Any, *, decoded: bool) -> list[Header]:
    """What of an upstream's headers goes to the caller."""
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
    named = {each.strip().lower() for name, value in headers if name == "connection" for each in value.split(",")}
    dropped = _HOP | named | ({"content-length", "content-encoding"} if decoded else set())
    return [each for each in headers if each[0] not in dropped and not each[0].startswith("x-stepguard")]
