"""OpenAI, and every server that speaks its chat completions or its responses, through the openai SDK.

A request is given its form here (`stepguard.backends.request_shapes`) and sent, exactly once, to the endpoint of a
provider that `stepguard.backends.providers` knows, or to one of your own. What comes back is handed on as it came, for
`stepguard.replies.reading` to judge.

Errors are told apart by the names of the SDK's exceptions and by their status, never by the classes of the HTTP
library, so that any release of the SDK fits, and clients of other vendors that were made with the same generator.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from stepguard.backends.base import Request
from stepguard.backends.completion_streams import OPTIONS, CompletionStream
from stepguard.backends.direct_posts import direct_sender
from stepguard.backends.limiter import EndpointLimiter
from stepguard.backends.providers import OPENAI, ReplyMode, account_of, client_maker, find_provider, split_name
from stepguard.backends.request_shapes import chat_form, extra_digest, longest_silence, responses_form
from stepguard.backends.response_streams import ResponseStream
from stepguard.backends.sdk_backend import SdkBackend, check_common
from stepguard.backends.sdk_calls import account_of_client, is_awaited, without_retries
from stepguard.backends.sdk_errors import field
from stepguard.core.arguments import check_one_of
from stepguard.errors import ConfigError

__all__ = ["OpenAIBackend"]

Api = Literal["chat_completions", "responses"]
MaxTokensParameter = Literal["max_tokens", "max_completion_tokens"]

# What decides how a reply is read, or how long it is waited for, is not to be overridden.
_NOT_EXTRA: Final = frozenset(
    {"functions", "messages", "model", "n", "response_format", "stream", "timeout", "tool_choice", "tools"}
)
_NOT_EXTRA_OF_RESPONSES: Final = frozenset(
    {"background", "conversation", "input", "instructions", "previous_response_id", "prompt"}
    | {"model", "stream", "timeout", "tool_choice", "tools"}
)


class _Options(TypedDict, total=False):
    """The options of a backend that is made from a name."""

    api: Api
    base_url: str | None
    api_key: str | None
    mode: ReplyMode | None
    strict: bool | None
    reasoning_effort: str | None
    max_tokens_parameter: MaxTokensParameter
    extra: Mapping[str, object] | None
    answer_in_reasoning: bool
    limiter: EndpointLimiter | None


class OpenAIBackend(SdkBackend):
    """Asks a model through an OpenAI-style client; one HTTP request for each call.

    Repeating requests is the work of `stepguard.RetryPolicy` alone: the retries of clients made here are off, and a
    client of yours is asked through ``client.with_options(max_retries=0)`` where it has that, which leaves the client
    itself as it is. (A client whose ``create`` was replaced, as tracing tools do, is asked directly, so that it is
    still traced: give it ``max_retries=0`` yourself.) Your client is never closed. A sync client under `Guard.arun`
    is used in a thread.

    The messages go out as they are, so in mode ``"json"`` the model knows the format from them alone; a provider may
    insist that they hold the word JSON.

    Tokens that the endpoint does not count are estimated, at four characters a token.

    Where a request may be stopped early the reply is streamed, and the connection is closed at its first wrong step.

    A backend does not change, and may be shared between threads and event loops.

    Args:
        model: the model to ask, as the provider names it.
        api: ``"chat_completions"``, or ``"responses"`` for OpenAI's newer API, which some models need. Nothing is
            stored there unless ``extra={"store": True}`` says so; it takes no seed.
        client: a client to use, sync or async: `openai.OpenAI`, `openai.AsyncOpenAI`, or anything with
            ``chat.completions.create`` (``responses.create`` for responses). By default clients are made when first
            needed, and closed by themselves.
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
        reasoning_effort: how much a reasoning model is to think, such as ``"low"``; by default what the model does by
            itself. What it thinks counts as output, as `Usage.reasoning_tokens`, and towards the longest reply.
        max_tokens_parameter: the parameter that carries the longest reply; OpenAI's reasoning models want
            ``"max_completion_tokens"``. Responses have one of their own.
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

    def __init__(
        self,
        model: str,
        *,
        api: Api = "chat_completions",
        client: object | None = None,
        provider: str = OPENAI.name,
        base_url: str | None = None,
        api_key: str | None = None,
        mode: ReplyMode | None = None,
        strict: bool | None = None,
        reasoning_effort: str | None = None,
        max_tokens_parameter: MaxTokensParameter = "max_tokens",
        extra: Mapping[str, object] | None = None,
        answer_in_reasoning: bool = False,
        limiter: EndpointLimiter | None = None,
    ) -> None:
        check_common(model, api_key, limiter)
        known = find_provider(provider)
        mode = known.mode if mode is None else mode
        check_one_of(api, get_args(Api), "api")
        check_one_of(mode, get_args(ReplyMode), "mode")
        check_one_of(max_tokens_parameter, get_args(MaxTokensParameter), "max_tokens_parameter")
        if reasoning_effort is not None and not (isinstance(reasoning_effort, str) and reasoning_effort.strip()):
            raise ConfigError(
                f"reasoning_effort is text such as 'low', not {reasoning_effort!r:.40}", option="reasoning_effort"
            )
        if client is not None:
            if base_url is not None or api_key is not None or known is not OPENAI:
                raise ConfigError(
                    "the client has its own base_url and api_key: leave them and the provider out", option="client"
                )
            _check_client(client, api)
        extra = {} if extra is None else extra
        if taken := sorted((_NOT_EXTRA if api == "chat_completions" else _NOT_EXTRA_OF_RESPONSES) & extra.keys()):
            raise ConfigError(f"{taken[0]!r} is set by stepguard and cannot be an extra parameter", option="extra")
        make = client_maker(known, base_url, api_key)
        super().__init__(
            model,
            label=model if known is OPENAI else f"{known.name}/{model}",
            client=client,
            is_async=client is not None and _is_async(client, api),
            connect=lambda awaited: make("AsyncOpenAI" if awaited else "OpenAI"),
            account=account_of(known, base_url, api_key) if client is None else lambda: account_of_client(client),
            limiter=limiter,
        )
        self._api: Final[Api] = api
        self._provider: Final = known.name
        self._mode: Final[ReplyMode] = mode
        self._strict: Final = known.strict if strict is None else strict
        self._effort: Final = reasoning_effort
        self._max_tokens_parameter: Final = max_tokens_parameter
        # A copy: a backend does not change, whatever becomes of the caller's mapping.
        self._extra: Final = copy.deepcopy(dict(extra))
        self._answer_in_reasoning = answer_in_reasoning
        # What is given for the SDK is for it to check, and to take apart.
        self._direct: Final = all(value is None for value in extra.values())

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
    def can_stop(self) -> bool:
        """Whether replies can be stopped early: every one."""
        return True

    @property
    def signature(self) -> Mapping[str, object]:
        """What shapes a reply beside the request; extra parameters, which may hold secrets, as a hash."""
        newer = {"api": None if self._api == "chat_completions" else self._api, "reasoning_effort": self._effort}
        return {
            "model": self._label,
            "mode": self._mode,
            "strict": self._strict,
            "max_tokens_parameter": self._max_tokens_parameter,
            "answer_in_reasoning": self._answer_in_reasoning,
            "extra": extra_digest(self._extra),
            **{name: value for name, value in newer.items() if value is not None},
        }

    def __repr__(self) -> str:
        provider = "" if self._provider == OPENAI.name else f", provider={self._provider!r}"
        api = "" if self._api == "chat_completions" else f", api={self._api!r}"
        return f"OpenAIBackend({self.name!r}{provider}{api}, mode={self._mode!r})"

    def _sender(self, client: Any, request: Request) -> tuple[Any, Callable[..., Any]]:
        if self._direct and (send := direct_sender(client, self._api)) is not None:
            return client, send
        resource = _resource(client, self._api)
        asked = without_retries(client, resource)
        if type(_resource(asked, self._api)) is not type(resource):  # it was replaced in that one client
            asked = client
        create: Callable[..., Any] = _resource(asked, self._api).create
        return asked, create

    def _stream(self, request: Request) -> CompletionStream:
        return CompletionStream(request) if self._api == "chat_completions" else ResponseStream(request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        chat = self._api == "chat_completions"
        parameters: dict[str, Any] = {
            "model": self.name,
            "messages" if chat else "input": request.chat(),
            "temperature": request.temperature,
            self._max_tokens_parameter if chat else "max_output_tokens": request.max_tokens,
            "timeout": longest_silence(request.timeout),
            **(self._chat_parameters(request) if chat else self._response_parameters(request)),
            **self._extra,
        }
        sent = {name: value for name, value in parameters.items() if value is not None}
        if (response_model := request.response_model) is not None:
            form = (chat_form if chat else responses_form)(response_model, self._mode, self._strict)
            if isinstance(text := sent.get("text"), Mapping):  # its verbosity, say
                form = {**form, "text": {**text, **form.get("text", {})}}
            sent |= form
        return sent

    def _chat_parameters(self, request: Request) -> dict[str, Any]:
        streamed = OPTIONS if request.stop is not None else {}
        return {"seed": request.seed, "reasoning_effort": self._effort, **streamed}

    def _response_parameters(self, request: Request) -> dict[str, Any]:
        reasoning = None if self._effort is None else {"effort": self._effort}
        return {"reasoning": reasoning, "store": False, "stream": True if request.stop is not None else None}


def _resource(client: Any, api: Api) -> Any:
    """The part of a client that sends requests to an API."""
    return client.chat.completions if api == "chat_completions" else client.responses


def _check_client(client: object, api: Api) -> None:
    if any(cls.__module__.partition(".")[0] == "instructor" for cls in type(client).__mro__):
        raise ConfigError(
            "this client is wrapped by instructor: give it to the guard itself, or to "
            "stepguard.backends.instructor.InstructorBackend",
            option="client",
        )
    path = ("chat", "completions", "create") if api == "chat_completions" else ("responses", "create")
    if not callable(field(client, *path)):
        raise ConfigError(f"{type(client).__name__} has no {'.'.join(path)}", option="client")


def _is_async(client: object, api: Api) -> bool:
    return is_awaited(_resource(client, api).create) or type(client).__name__.startswith("Async")
