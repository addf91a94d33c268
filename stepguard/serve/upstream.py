"""The endpoint behind the server: requests passed on, and a backend that asks it in the caller's name.

All of it goes through one HTTP client, the one that the openai SDK uses, so that connections are used again. Nothing
of one caller stays in it for the next: keys and other headers belong to a request, and cookies are not kept.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from starlette.requests import Request

from stepguard.backends.credentials import connected
from stepguard.errors import ConfigError
from stepguard.serve.blackout import Mask, keys_of
from stepguard.serve.call import HttpCall
from stepguard.serve.errors import too_slow, unreachable, unreadable, wrong_request
from stepguard.serve.limits import Limits
from stepguard.serve.paths import encode

Header = tuple[str, str]

_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OWN_HEADERS: Final = _HOP | {"host", "content-length", "expect", "accept-encoding"}
_HARMLESS: Final = frozenset(
    {
        *("accept", "accept-language", "anthropic-beta", "anthropic-version", "content-encoding", "content-type"),
        *("idempotency-key", "openai-beta", "traceparent", "tracestate", "user-agent", "x-request-id"),
    }
)
"""The caller's headers that may go with the operator's key: none that chooses an account."""
_IN_ITS_NAME: Final = (
    "openai-organization",
    "openai-project",
    "openai-beta",
    "anthropic-beta",
    "traceparent",
    "tracestate",
)
"""The caller's headers that go with the requests of a guarded run, beside the key."""
_READABLE: Final = ("", "identity", "gzip", "deflate")
"""The encodings that every version of the HTTP client reads; none is asked for."""
_PATHS: Final = ("/chat/completions", "/responses", "/messages")
"""Paths that clients add to an address themselves."""
_UNSET: Final = "none"
"""The SDK insists on a key; a server that wants none does not look at it."""


class Upstream:
    """An OpenAI-compatible endpoint.

    Args:
        url: its address, up to and without ``/chat/completions``.
        key: the key that it is asked with, instead of that of the caller.
        own_keys: whether the key of a caller is for this server, and not to be handed on.

    Raises:
        ConfigError: this is no address.
    """

    def __init__(self, url: str, *, limits: Limits, key: str | None = None, own_keys: bool = False) -> None:
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
        self._mask: Final = Mask([] if key is None else [key], parts=True)
        self._client: Any = None
        self._library: Any = None

    def connect(self) -> None:
        """Make the client; where there is one, do nothing.

        Raises ConfigError: it cannot be made with the proxies and certificates in the environment.
        """
        if self._client is not None:
            return
        import openai

        made = openai.DefaultAsyncHttpxClient
        # Whichever HTTP library this version of the SDK builds on: its exceptions are caught below.
        library = next(cls.__module__ for cls in made.__mro__ if cls.__name__ == "AsyncClient").partition(".")[0]
        self._library = importlib.import_module(library)
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        pool = self._library.Limits(max_connections=None, max_keepalive_connections=self._limits.concurrent)
        # No redirects: one would carry the key to wherever it points. No cookies: they would go to the next caller.
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
    async def passing(self, call: HttpCall, *, path: str | None = None) -> AsyncIterator[Any]:
        """Send a request on as it is, and hold the response of the upstream open.

        Args:
            path: what follows ``/v1``; by default that of the request.

        Raises:
            HttpProblem: the upstream cannot be reached.
        """
        request, limits = call.request, self._limits
        query = request.scope["query_string"].decode("latin-1")
        below = encode(request.scope["path"].removeprefix("/v1")) if path is None else path
        timeout = {
            "connect": limits.connect_seconds,
            "read": limits.upstream_seconds,
            "write": limits.upstream_seconds,
            "pool": limits.connect_seconds,
        }
        with self.failures():
            asked = self._library.Request(
                request.method,
                f"{self.url}{below}{'?' if query else ''}{query}",
                headers=self._headers(request),
                content=call.body or None,
                extensions={"timeout": timeout},
            )
            response = await self._client.send(asked, stream=True)
        try:
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in _READABLE:
                raise unreadable(f"the upstream answered in the encoding {encoding!r}, which was not asked for")
            yield response
        finally:
            await response.aclose()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turns what the HTTP client raises inside of a ``with`` block into problems."""
        library, limits = self._library, self._limits
        try:
            yield
        except library.ConnectTimeout:
            raise too_slow(f"the upstream was not reached within {limits.connect_seconds:g} s") from None
        except library.TimeoutException:
            raise too_slow(f"the upstream was silent for {limits.upstream_seconds:g} s") from None
        except library.ConnectError:
            raise unreachable("the upstream cannot be reached") from None
        except library.InvalidURL:
            what = "what stands behind the ? in its address is too long, or cannot stand in one"
            raise wrong_request(f"this request cannot be sent on: {what}", status=414, code="query_too_long") from None
        except (library.HTTPError, library.StreamError) as error:
            # The text of such an error may hold an address with a key in it.
            raise unreachable(f"the connection to the upstream broke ({type(error).__name__})") from None

    def cover(self, words: str, call: HttpCall) -> str:
        """The text of an error without the keys that it may quote."""
        return Mask(keys_of(call.request.scope), spelled=False).text(self._mask.text(words))

    def _headers(self, request: Request) -> list[Header]:
        # Headers named by Connection are for this hop alone (RFC 9110, section 7.6.1).
        named = {name.strip().lower() for name in request.headers.get("connection", "").split(",")}
        passed = [each for each in request.headers.items() if each[0] not in _OWN_HEADERS | named]
        if self._own_keys:
            passed = [each for each in passed if each[0] in _HARMLESS or each[0].startswith("x-stainless-")]
        if self._key is not None:
            passed.append(("authorization", f"Bearer {self._key}"))
            if "anthropic-version" in request.headers:
                # Anthropic's SDK and servers read the key here.
                passed.append(("x-api-key", self._key))
        # Where a key might be quoted nothing is packed.
        return [*passed, ("accept-encoding", "identity")]

    # Guarded runs

    def client(self, call: HttpCall) -> Any:
        """A client of the SDK that asks this endpoint with the caller's key, over the connections of all.

        Raises HttpProblem: the caller's key cannot be sent.
        """
        import openai

        authorization, key = self._authorization(call.request)
        caller_headers = call.request.headers
        names = _IN_ITS_NAME if not self._own_keys else [name for name in _IN_ITS_NAME if name in _HARMLESS]
        headers: dict[str, Any] = {name: caller_headers[name] for name in names if name in caller_headers}
        if authorization is not None:
            headers["Authorization"] = authorization
        limits = self._limits
        timeout = self._library.Timeout(limits.upstream_seconds, connect=limits.connect_seconds)
        client = openai.AsyncOpenAI(
            api_key=key or _UNSET,
            base_url=self.url,
            http_client=self._client,
            default_headers=headers,
            # The guard repeats calls itself, and counts them; the SDK would repeat them uncounted.
            max_retries=0,
            timeout=timeout,
        )
        # What the SDK finds in the environment of this process is not the caller's.
        client.organization = client.project = client.admin_api_key = None
        if hasattr(client, "_custom_headers"):
            client._custom_headers = headers
        return client

    def _authorization(self, request: Request) -> tuple[str | None, str | None]:
        """The header that a request to the upstream carries, and the key in it."""
        if self._key is not None:
            return f"Bearer {self._key}", self._key
        if self._own_keys:
            return None, None
        header = request.headers.get("authorization") or None
        if header is None:
            key = request.headers.get("x-api-key") or request.headers.get("api-key")
            header = None if key is None else f"Bearer {key}"
        if header is None:
            return None, None
        if not (header.isascii() and header.isprintable()):
            raise wrong_request(
                "the key holds a character that no header can carry", status=401, code="invalid_api_key"
            )
        return header, header.rpartition(" ")[2]


def _parts(url: object) -> SplitResult | None:
    """Split an address into its parts; None where it is malformed."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            return None
        return None if parts.port == 0 else parts
    except ValueError:  # brackets, or a port, that are none
        return None


def response_headers(response: Any, *, as_it_is: bool) -> list[Header]:
    """The upstream's headers that go to the caller; `as_it_is`: with the body that belongs to them."""
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
    named = {each.strip().lower() for name, value in headers if name == "connection" for each in value.split(",")}
    # The HTTP client has unpacked the body, so its length has changed.
    unpacked = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
    dropped = _HOP | named | {"content-encoding"} | ({"content-length"} if unpacked or not as_it_is else set())
    # An upstream must not be able to claim that an answer was guarded.
    return [header for header in headers if header[0] not in dropped and not header[0].startswith("x-stepguard")]
