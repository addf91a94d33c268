"""Every model that instructor reaches: Anthropic, Gemini, Bedrock, Mistral, Cohere, xAI ..., through their own SDKs.

instructor makes or brings the client and writes the messages as the vendor takes them; its hooks are called as ever.
The request is sent once. What comes back leaves instructor at its response hook, as the vendor sent it, before anything
is parsed, asked again or logged there, and is handed on for `stepguard.replies.reading` to judge.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, Unpack, get_args

from stepguard.backends.base import Backend, Completion, Request
from stepguard.backends.completion_streams import CompletionStream
from stepguard.backends.credentials import digest
from stepguard.backends.instructor_calls import OF_INSTRUCTOR, caller, is_async_client, method_of, model_of
from stepguard.backends.limiter import EndpointLimiter
from stepguard.backends.request_shapes import extra_digest
from stepguard.backends.sdk_backend import SdkBackend, check_common
from stepguard.backends.sdk_errors import field
from stepguard.backends.vendor_requests import ReplyBinding, taken_by, wire_of
from stepguard.backends.vendors import VENDORS, Vendor, close_client, closer_of
from stepguard.backends.xai import xai_sender
from stepguard.core.arguments import check_one_of
from stepguard.core.deadlines import awithin
from stepguard.errors import ConfigError

__all__ = ["InstructorBackend"]

_NOT_EXTRA: Final = OF_INSTRUCTOR | {"messages", "model", "stream", "tool_choice", "tools"}


class _VendorOptions(TypedDict, total=False):
    """The options of a backend that is made from a name."""

    base_url: str | None
    api_key: str | None
    mode: ReplyBinding | None
    extra: Mapping[str, object] | None
    prompt_cache: bool
    limiter: EndpointLimiter | None


class InstructorBackend(SdkBackend):
    """Asks a model through a client of instructor; one request for each call.

    Any client that ``instructor.from_...`` gives will do, sync or async, in whatever mode of instructor's: what is
    asked for is always JSON, because tool modes hand on arguments that were read already. The client is left as it is
    and never closed, its defaults and its hooks count, its cache and its retries do not. Retries of the SDK's own are
    off where the SDK lets them be switched off for a call; a client of boto3 needs
    ``Config(retries={"total_max_attempts": 1})``, and one of xAI's SDK is repeated by gRPC.

    What a vendor does not take is left out: Anthropic and Bedrock take no seed, and Anthropic's newest SDK no
    temperature. Replies can be stopped early where the vendor is Anthropic or speaks chat completions. The streams of
    the others come by another method of each SDK: their replies are whole, and a guard that is to stop them is refused.

    Args:
        model: the model; by default the one that `client` was made for.
        client: a client of instructor's. By default clients are made when first needed, and closed by themselves.
        provider: the vendor to make clients for: a name in `stepguard.backends.vendors.VENDORS`, where there is no
            `client`.
        base_url: the address of the vendor, or of what stands before it.
        api_key: the key; by default it is read from the vendor's variable (``ANTHROPIC_API_KEY`` ...) when a client is
            made. Bedrock, Vertex AI and LiteLLM find credentials of their own.
        mode: how the reply is bound to its form: ``"json_schema"`` where the vendor binds it to a schema, ``"json"``
            for some JSON object, or nothing where a vendor has no such parameter, so that the model knows the form
            from the messages. By default the strongest that the vendor documents for all of its models.
        extra: further parameters, by their names in the vendor's SDK. They win over those of the request; a mapping
            is merged with ours, and None keeps a parameter from being sent.
        prompt_cache: whether a vendor that wants to be told (Anthropic, and Claude and Nova on Bedrock) is told which
            part of a long prompt to keep. What it keeps costs some more once, and a tenth each further time.
        limiter: as that of `stepguard.backends.openai.OpenAIBackend`.

    Raises:
        ConfigError: an argument cannot work, or the client does not say which model is to be asked.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        client: object | None = None,
        provider: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        mode: ReplyBinding | None = None,
        extra: Mapping[str, object] | None = None,
        prompt_cache: bool = True,
        limiter: EndpointLimiter | None = None,
    ) -> None:
        vendor: Vendor | None = None
        if client is None:
            vendor = _vendor(provider, api_key)
        elif provider is not None or base_url is not None or api_key is not None:
            raise ConfigError(
                "the client has its own base_url and api_key: leave them and the provider out", option="client"
            )
        else:
            model = _given_model(client) if model is None else model
        check_common(model, api_key, limiter)
        assert model is not None
        kind = vendor.provider if vendor is not None else str(field(client, "provider", "value"))
        wire = wire_of(kind)
        mode = wire.binding if mode is None else mode
        check_one_of(mode, get_args(ReplyBinding), "mode")
        extra = {} if extra is None else extra
        if taken := sorted(_NOT_EXTRA & extra.keys()):
            raise ConfigError(f"{taken[0]!r} is set by stepguard and cannot be an extra parameter", option="extra")
        account = None if vendor is None else vendor.account(base_url, api_key)
        super().__init__(
            model,
            label=model if vendor is None else f"{vendor.name}/{model}",
            client=client,
            is_async=client is not None and is_async_client(client),
            connect=_no_client if vendor is None else vendor.connector(model, base_url, api_key),
            account=account or (lambda: _account(client)),
            limiter=limiter,
            key=api_key,
        )
        # Other models on Bedrock know no marks of a cache.
        kept_there = kind != "bedrock" or any(name in model.lower() for name in ("anthropic", "claude", "nova"))
        self._wire: Final = wire
        self._kind: Final = kind
        self._mode: Final[ReplyBinding] = mode
        # A copy: a backend does not change, whatever becomes of the caller's mapping.
        self._extra: Final = copy.deepcopy(dict(extra))
        self._marked: Final = bool(prompt_cache) and kept_there
        self._blocking: Final = vendor is not None and vendor.blocking

    @classmethod
    def from_name(cls, name: str, **options: Unpack[_VendorOptions]) -> InstructorBackend:
        """The backend that ``"anthropic/claude-sonnet-4-5"`` names: a vendor, and behind the first slash a model.

        Args:
            name: vendor and model.
            options: those of the class, but for `client` and `provider`.

        Raises:
            ConfigError: it names no model or no vendor, or an option cannot work.
        """
        vendor, _, model = name.partition("/")
        return cls(model, provider=vendor, **options)

    @property
    def can_stop(self) -> bool:
        """Whether replies can be stopped early: those of Anthropic and of who speaks chat completions."""
        return self._wire.stream is not None

    @property
    def signature(self) -> Mapping[str, object]:
        """What shapes a reply beside the request; extra parameters, which may hold secrets, as a hash."""
        return {"model": self._label, "provider": self._kind, "mode": self._mode, "extra": extra_digest(self._extra)}

    def __repr__(self) -> str:
        return f"InstructorBackend({self.name!r}, provider={self._kind!r}, mode={self._mode!r})"

    def _stream(self, request: Request) -> CompletionStream:
        return (self._wire.stream or CompletionStream)(request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        parameters = self._wire.parameters(request, self._mode, marked=self._marked, extra=self._extra)
        if self._mode == "json_schema" and self._wire.schema_mode is not None:
            parameters["response_model"] = request.response_model
        return parameters

    def _sender(self, client: Any, request: Request) -> tuple[Any, Callable[..., Any]]:
        inner, wire = field(client, "client"), self._wire
        send = xai_sender(inner, is_async_client(client)) if self._kind == "xai" else method_of(client)
        ask = caller(client, send, lambda shaped: wire.schema_mode if shaped else wire.mode)
        # Clients of these are made for one model, and take no other.
        named = {} if self._kind in ("vertexai", "gemini") else {"model": self.name}
        return inner, lambda **given: ask(**taken_by(send, given), **named)

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request without blocking the event loop; see `complete`."""
        if self._blocking:  # there is no async client
            return await awithin(None, lambda: self.complete(request), name="stepguard-request")
        return await super().acomplete(request)

    def _closer(self, client: Any) -> Callable[[], object]:
        return closer_of(client)

    async def _close(self, client: Any) -> None:
        await close_client(client)


def wrapped_backend(client: object, model: str | None) -> Backend:
    """The backend for a client that instructor has wrapped; one over OpenAI's responses asks them as it did.

    Raises:
        ConfigError: the client does not say which model is to be asked.
    """
    if str(field(client, "mode", "name")).startswith("RESPONSES"):
        from stepguard.backends.openai import OpenAIBackend

        return OpenAIBackend(
            _given_model(client) if model is None else model, client=field(client, "client"), api="responses"
        )
    return InstructorBackend(model, client=client)


def is_instructor(client: object) -> bool:
    """Whether this is a client of instructor's."""
    ours = any(cls.__module__.partition(".")[0] == "instructor" for cls in type(client).__mro__)
    return ours and callable(getattr(client, "create_fn", None))


def _no_client(awaited: bool) -> Any:
    raise AssertionError("a client was given")


def _vendor(provider: str | None, api_key: str | None) -> Vendor:
    vendor = VENDORS.get(provider) if isinstance(provider, str) else None
    if vendor is None:
        raise ConfigError(
            f"the provider {provider!r:.40} is not asked through instructor: pass client=, or one of "
            f"{', '.join(sorted(VENDORS))}",
            option="provider",
        )
    if api_key is not None and not vendor.keys and vendor.name != "litellm":
        raise ConfigError(f"{vendor.name} takes no api_key: its SDK finds credentials of its own", option="api_key")
    return vendor


def _given_model(client: object) -> str:
    """The model of a client that was given. Raises ConfigError: it is no client of instructor's, or names none."""
    if not is_instructor(client):
        raise ConfigError(f"{type(client).__name__} is no client of instructor", option="client")
    if (model := model_of(client)) is None:
        raise ConfigError("the client does not say which model to ask: pass model=", option="model")
    return model


def _account(client: object) -> tuple[str, str]:
    inner = field(client, "client")
    key = field(inner, "api_key")
    place = str(field(inner, "base_url") or field(client, "provider", "value"))
    return place, digest(key if isinstance(key, str) else f"{type(inner).__name__} {id(inner)}")
