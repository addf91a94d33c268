"""OpenAI, and every server that speaks its chat completions, through instructor and the openai SDK.

instructor gives a request the shape of its response model (`response_format`, or a tool); the SDK sends it, exactly
once, to the endpoint of a provider that `stepguard.backends.providers` knows, or to one of your own. What comes back
is handed on as it came, for `stepguard.replies.reading` to judge. The rest of instructor is not used: its parsers
accept what must not be accepted, its retries would be calls that no budget sees, and its loop logs replies and error
texts, keys in them included.

Errors are told apart by the names of the SDK's exceptions and by their status, never by the classes of the HTTP
library, so that any release of the SDK fits, and clients of other vendors that were made with the same generator.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack, cast, get_args

from stepguard.backends.base import FORBIDDEN, Completion, Request, about_to_send
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.completion_streams import OPTIONS, CompletionStream, whole_body
from stepguard.backends.limiter import SHARED_LIMITERS, EndpointLimiter
from stepguard.backends.openai_errors import as_backend_error, field, refused_reply, secrets_of, texts_of, was_sent
from stepguard.backends.providers import OPENAI, ReplyMode, account_of, client_maker, digest, find_provider, split_name
from stepguard.core.arguments import check_one_of
from stepguard.core.deadlines import Overrun, awithin, within
from stepguard.core.redaction import redact
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, ConfigError, StepguardError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["OpenAIBackend"]

MaxTokensParameter = Literal["max_tokens", "max_completion_tokens"]

_NOT_EXTRA: Final = frozenset(
    {"functions", "messages", "model", "n", "response_format", "stream", "timeout", "tool_choice", "tools"}
)
_LONGEST_MESSAGE: Final = 500
_LONGEST_SILENCE: Final = 1_000_000.0
"""Sockets take no time-out of more than some weeks; longer ones bound the call as a whole alone."""


class _Options(TypedDict, total=False):
    """The options of a backend that is made from a name."""

    base_url: str | None
    api_key: str | None
    mode: ReplyMode | None
    strict: bool | None
    max_tokens_parameter: MaxTokensParameter
    extra: Mapping[str, object] | None
    answer_in_reasoning: bool
    limiter: EndpointLimiter | None


class OpenAIBackend:
    """Asks a model through an OpenAI-style client; one HTTP request for each call.

    Repeating requests is the work of `stepguard.RetryPolicy` alone: the retries of clients made here are off, and a
    client of yours is asked through ``client.with_options(max_retries=0)`` where it has that, which leaves the client
    itself as it is. (A client whose ``create`` was replaced, as tracing tools do, is asked directly, so that it is
    still traced: give it ``max_retries=0`` yourself.) Your client is never closed. A sync client under `Guard.arun`
    is used in a thread.

    The messages go out as they are. Nothing of instructor's own prompts is added, so in mode ``"json"`` the model
    knows the format from the messages alone; a provider may insist that they hold the word JSON.

    Tokens that the endpoint does not count are estimated, at four characters a token.

    Where a request may be stopped early the reply is streamed, and the connection is closed at its first wrong step.

    A backend does not change, and may be shared between threads and event loops.

    Args:
        model: the model to ask, as the provider names it.
        client: a client to use, sync or async: `openai.OpenAI`, `openai.AsyncOpenAI`, or anything with
            ``chat.completions.create``. By default clients are made when first needed, and closed by themselves.
        provider: whose endpoint, key variable, mode and strictness are the defaults: a name in
            `stepguard.backends.providers.PROVIDERS`.
        base_url: the endpoint, up to and without ``/chat/completions``; by default the provider's, which for OpenAI
            is ``OPENAI_BASE_URL`` where that is set.
        api_key: the key; by default it is read from the provider's variable (``OPENAI_API_KEY``, ``GROQ_API_KEY``
            ...) when a client is made. An endpoint given by `base_url` needs none.
        mode: how the reply is bound to its form: ``"json_schema"`` sends a schema as ``response_format``, ``"tools"``
            asks for a call of one tool, ``"json"`` asks for some JSON object. By default the provider's, for OpenAI
            ``"json_schema"``.
        strict: ask for decoding that is held to the schema, which OpenAI does only when it is asked. Switch it off
            for a server that does not know the word, or a reply format whose schema the provider does not accept. By
            default the provider's, for OpenAI True.
        max_tokens_parameter: the parameter that carries the longest reply; OpenAI's reasoning models want
            ``"max_completion_tokens"``.
        extra: further request parameters, such as ``{"top_p": 0.9}``, or ``{"extra_body": {...}}`` for what the SDK
            does not know. They win over those of the request; None keeps a parameter from being sent
            (``{"temperature": None}`` for a model that takes none, ``{"seed": None}`` for a server that rejects it).
        limiter: how many requests may be on their way at once, for all backends that are given the same one. By default
            all backends of a process that ask the same endpoint with the same key share one
            (`stepguard.backends.limiter.SHARED_LIMITERS`), which follows the rate limits of the endpoint.
        answer_in_reasoning: some servers put the whole answer into the field of the reasoning and leave the content
            empty. With True a reasoning that is one JSON document from end to end is handed on as the text (and stays
            the reasoning, too), where the content is empty and no tool is called. By default such a reply is empty,
            and its deviation says how many characters of reasoning there are.

    Raises:
        ConfigError: an argument cannot work.
    """

    can_stop: Final = True
    """Whether replies can be stopped early."""

    def __init__(
        self,
        model: str,
        *,
        client: object | None = None,
        provider: str = OPENAI.name,
        base_url: str | None = None,
        api_key: str | None = None,
        mode: ReplyMode | None = None,
        strict: bool | None = None,
        max_tokens_parameter: MaxTokensParameter = "max_tokens",
        extra: Mapping[str, object] | None = None,
        answer_in_reasoning: bool = False,
        limiter: EndpointLimiter | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigError(f"a model is named by text such as 'gpt-4.1-mini', not {model!r}", option="model")
        known = find_provider(provider)
        mode = known.mode if mode is None else mode
        check_one_of(mode, get_args(ReplyMode), "mode")
        check_one_of(max_tokens_parameter, get_args(MaxTokensParameter), "max_tokens_parameter")
        if client is not None:
            if base_url is not None or api_key is not None or known is not OPENAI:
                raise ConfigError(
                    "the client has its own base_url and api_key: leave them and the provider out", option="client"
                )
            if any(cls.__module__.partition(".")[0] == "instructor" for cls in type(client).__mro__):
                raise ConfigError("this client is wrapped by instructor: pass the one inside it", option="client")
            if not callable(field(client, "chat", "completions", "create")):
                raise ConfigError(f"{type(client).__name__} has no chat.completions.create", option="client")
        if api_key is not None and not (isinstance(api_key, str) and api_key):
            raise ConfigError("api_key is text that is not empty; None reads the environment", option="api_key")
        extra = {} if extra is None else extra
        if taken := sorted(_NOT_EXTRA & extra.keys()):
            raise ConfigError(f"{taken[0]!r} is set by stepguard and cannot be an extra parameter", option="extra")
        self.name: Final = model
        self.is_async: Final = client is not None and _is_async(client)
        if limiter is not None and not isinstance(limiter, EndpointLimiter):
            raise ConfigError(f"limiter is an EndpointLimiter, not {limiter!r:.60}", option="limiter")
        self._limiter = limiter
        self._account: Final = account_of(known, base_url, api_key) if client is None else lambda: _account(client)
        self._given: Final = client
        self._connect: Final = client_maker(known, base_url, api_key)
        self._provider: Final = known.name
        self._label: Final = model if known is OPENAI else f"{known.name}/{model}"
        self._mode: Final[ReplyMode] = mode
        self._strict: Final = known.strict if strict is None else strict
        self._max_tokens_parameter: Final = max_tokens_parameter
        self._extra: Final = copy.deepcopy(dict(extra))
        self._answer_in_reasoning: Final = answer_in_reasoning
        self._lock: Final = threading.Lock()
        self._own: Any = None
        self._lent: Final[dict[asyncio.AbstractEventLoop, _Lent]] = {}

    @classmethod
    def from_name(cls, name: str, **options: Unpack[_Options]) -> OpenAIBackend:
        """The backend that ``"openai/gpt-4.1-mini"`` or ``"groq/llama-3.3-70b-versatile"`` names.

        What stands before the first slash is a provider in `stepguard.backends.providers.PROVIDERS`; all that stands
        behind it is the model. Its key is read from the provider's variable when a client is made.

        Args:
            name: provider and model.
            options: those of the class, but for `client` and `provider`; what is given wins over the provider's
                defaults.

        Raises:
            ConfigError: it names no model, or a provider that is not known or whose answers are not chat completions;
                or an option cannot work.
        """
        provider, model = split_name(name)
        return cls(model, provider=provider.name, **options)

    @property
    def signature(self) -> Mapping[str, object]:
        """What shapes a reply beside the request; extra parameters, which may hold secrets, as a hash."""
        extra = hashlib.sha256(repr(sorted(self._extra.items())).encode()).hexdigest()[:16] if self._extra else None
        return {
            "model": self._label,
            "mode": self._mode,
            "strict": self._strict,
            "max_tokens_parameter": self._max_tokens_parameter,
            "answer_in_reasoning": self._answer_in_reasoning,
            "extra": extra,
        }

    def __repr__(self) -> str:
        provider = "" if self._provider == OPENAI.name else f", provider={self._provider!r}"
        return f"OpenAIBackend({self.name!r}{provider}, mode={self._mode!r})"

    def complete(self, request: Request) -> Completion:
        """Answer one request.

        ``request.timeout`` bounds the whole call, also where a server sends its answer byte by byte; the SDK by itself
        only bounds each wait for data. The call therefore runs in a thread, see `stepguard.core.deadlines`.

        Raises:
            BackendError: the model did not answer.
            ConfigError: the client can only be awaited, or there is no API key.
        """
        about_to_send(self.name)
        if self.is_async:
            raise ConfigError("this client can only be awaited: use `await guard.arun(...)`", option="backend")
        with self._turns().turn(request.timeout) as left:
            return self._complete(replace(request, timeout=left))

    def _complete(self, request: Request) -> Completion:
        call = _Call(self._label, request)

        def answer() -> object:
            create = call.through(self._sync_client() if self._given is None else self._given)
            return call.read(create(**self._arguments(request)))

        with call:
            try:
                call.raw = within(request.timeout, answer, name="stepguard-request")
            except Overrun:
                call.give_up()
                raise
        return call.completion(answer_in_reasoning=self._answer_in_reasoning)

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request without blocking the event loop; see `complete`.

        ``request.timeout`` bounds the whole call.
        """
        about_to_send(self.name)
        if self._given is not None and not self.is_async:
            return await awithin(None, lambda: self.complete(request), name="stepguard-request")
        async with self.session(), self._turns().aturn(request.timeout) as left:
            return await self._acomplete(replace(request, timeout=left))

    async def _acomplete(self, request: Request) -> Completion:
        call = _Call(self._label, request)
        async with self.session():
            with call:
                async with asyncio.timeout(_a_little_less(request.timeout)):
                    create = call.through(await self._async_client())
                    # Making the form of a reply imports what is heavy, the first time.
                    arguments = await awithin(None, lambda: self._arguments(request), name="stepguard-request")
                    call.raw = await call.aread(await create(**arguments))
        return call.completion(answer_in_reasoning=self._answer_in_reasoning)

    def _turns(self) -> EndpointLimiter:
        if self._limiter is None:
            self._limiter = SHARED_LIMITERS.of(*self._account())
        return self._limiter

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
                await lent.client.close()

    async def _async_client(self) -> Any:
        """The client of the session that is held on the running event loop, or the one that was given."""
        if self._given is not None:
            return self._given
        lent = self._lent[asyncio.get_running_loop()]
        async with lent.making:
            if lent.client is None:
                lent.client = await awithin(None, lambda: self._connect("AsyncOpenAI"), name="stepguard-client")
            return lent.client

    def _sync_client(self) -> Any:
        with self._lock:
            if self._own is None:
                self._own = self._connect("OpenAI")
                weakref.finalize(self, self._own.close)
            return self._own

    def _arguments(self, request: Request) -> dict[str, Any]:
        """The parameters of the call, as ``create`` takes them."""
        parameters: dict[str, Any] = {
            "model": self.name,
            "messages": request.chat(),
            "temperature": request.temperature,
            self._max_tokens_parameter: request.max_tokens,
            "seed": request.seed,
            "timeout": None if request.timeout is None else min(request.timeout, _LONGEST_SILENCE),
            **(OPTIONS if request.stop is not None else {}),
            **self._extra,
        }
        sent = {name: value for name, value in parameters.items() if value is not None}
        if (response_model := request.response_model) is not None:
            sent |= _shape(response_model, self._mode, self._strict)
        return sent


@dataclass(slots=True)
class _Lent:
    """A client on one event loop, None until it is needed, and how many sessions use it."""

    client: Any = None
    users: int = 0
    making: asyncio.Lock = dataclass_field(default_factory=asyncio.Lock)


class _Call:
    """What came of one call of the SDK, made in a ``with`` block.

    An exception is kept and turned into ours; `completion` raises that outside of any ``except`` block, where the
    original, which may hold secrets, does not become its context.
    """

    raw: object = None

    def __init__(self, name: str, request: Request) -> None:
        self._name = name
        self._request = request
        self._stream = None if request.stop is None else CompletionStream(request)
        self._client: Any = None
        self._secrets: tuple[str, ...] | None = None
        self._failure: BackendError | None = None

    def through(self, client: Any) -> Callable[..., Any]:
        """What sends the request, once."""
        self._client = _without_retries(client)
        create: Callable[..., Any] = self._client.chat.completions.create
        return create

    def read(self, raw: object) -> object:
        """The body of what the client gave."""
        return whole_body(raw, self._request) if self._stream is None else self._stream.read(raw)

    async def aread(self, raw: object) -> object:
        """As `read`."""
        return whole_body(raw, self._request) if self._stream is None else await self._stream.aread(raw)

    def give_up(self) -> None:
        """Nobody waits for the reply any more."""
        if self._stream is not None:
            self._stream.given_up = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, StepguardError):
            return False
        secrets = self._secrets = secrets_of(self._client, error)
        self.raw = refused_reply(error, secrets)
        if self.raw is not None:
            return True
        begun = self._stream is not None and self._stream.begun
        self._failure = as_backend_error(error, self._say, begun=begun)
        if self._failure.status is None or begun:  # an endpoint that refuses a request does not charge for it
            self._failure.usage = self._spent(error)
        if all(redact(text, *secrets) == text for text in texts_of(error)):
            self._failure.__cause__ = error
        return True

    def _spent(self, error: Exception) -> Usage | None:
        """What a call cost that has failed without a refusal, None where nothing was sent."""
        if self._stream is not None and self._stream.begun:
            return self._stream.usage()
        return self._request.estimate() if was_sent(error) else None

    def completion(self, *, answer_in_reasoning: bool) -> Completion:
        """The answer to the request.

        Raises:
            BackendError: there is none.
        """
        if self._failure is not None:
            raise self._failure
        asked = sum(len(message.content) for message in self._request.messages)
        return read_completion(self.raw, self._say, asked=asked, answer_in_reasoning=answer_in_reasoning)

    def _say(self, words: str) -> str:
        # Cut before redacting, or a page of megabytes is searched; and after, or half a key could stay.
        secrets = secrets_of(self._client) if self._secrets is None else self._secrets
        said = redact(f"{self._name}: {words[: 20 * _LONGEST_MESSAGE]}", *secrets)
        return said if len(said) <= _LONGEST_MESSAGE else f"{said[: _LONGEST_MESSAGE - 3]}..."


# Shaping a request


class _Prepared(BaseException):
    """Leaves instructor when the request is ready, past its retries and its logs, which look at every `Exception`."""


@lru_cache(maxsize=512)
def _shape(response_model: type[BaseModel], mode: ReplyMode, strict: bool) -> Mapping[str, Any]:
    """What instructor adds to a request whose reply is to follow a model; not to be changed."""
    import instructor

    found: dict[str, Any] = {}

    def keep(**arguments: Any) -> None:
        found.update(arguments)
        raise _Prepared

    create = cast(Any, instructor.patch)(create=keep, mode=instructor.Mode[mode.upper()])
    with suppress(_Prepared):
        create(response_model=response_model, messages=[{"role": "user", "content": ""}], max_retries=0)
    del found["messages"]
    if strict and mode == "json_schema":
        schema = {**found["response_format"]["json_schema"], "strict": True}
        found["response_format"] = {**found["response_format"], "json_schema": schema}
    elif strict and mode == "tools":
        found["tools"] = [{**tool, "function": {**tool["function"], "strict": True}} for tool in found["tools"]]
    return found


# Clients


def _without_retries(client: Any) -> Any:
    """The client, or a copy over the same connections whose own retries are off."""
    traced = "create" in getattr(client.chat.completions, "__dict__", {})
    if traced or not hasattr(type(client), "with_options") or getattr(client, "max_retries", 0) == 0:
        return client
    return client.with_options(max_retries=0)


def _account(client: object) -> tuple[str, str]:
    """The endpoint of a client and a digest of its key."""
    key = field(client, "api_key")
    return str(field(client, "base_url")), digest(key if isinstance(key, str) else type(client).__name__)


def _a_little_less(seconds: float | None) -> float | None:
    """A time-out that is over before the same one of a caller, who could not say what came of the reply by then."""
    return None if seconds is None else max(0.98 * seconds, seconds - 0.05)


def _is_async(client: object) -> bool:
    create = field(client, "chat", "completions", "create")
    called = getattr(create, "__call__", None)  # noqa: B004 - to see whether it is async
    return (
        inspect.iscoroutinefunction(inspect.unwrap(create))
        or inspect.iscoroutinefunction(called)
        or type(client).__name__.startswith("Async")
    )
