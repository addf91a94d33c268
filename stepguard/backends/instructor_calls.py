"""What instructor is used for in a call: its client's method, its hooks, and the messages as a vendor takes them.

The method of the SDK is wrapped anew for every request, so that instructor is left with the reply as soon as it has
come, or with the error: its parsers accept what must not be accepted, its retries would be calls that no budget sees,
and its loop logs the texts of errors, keys in them included.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from stepguard.backends.sdk_errors import field
from stepguard.errors import ConfigError

OF_INSTRUCTOR: Final = frozenset(
    {"cache", "cache_namespace", "cache_ttl", "context", "hooks", "max_retries", "response_model", "strict"}
    | {"token_budget", "validation_context"}
)
"""What instructor's clients may carry for its own work, which is not used."""
# What instructor's hooks for errors are told of attempts: there is one.
_ONLY: Final[Mapping[str, Any]] = {"attempt_number": 1, "max_attempts": 1, "is_last_attempt": True}


class _Shortcut(BaseException):
    """Leaves instructor with a reply or an error, past its retries and its logs, which look at every `Exception`."""

    def __init__(self, reply: object, error: Exception | None = None) -> None:
        super().__init__()
        self.reply: Final = reply
        self.error: Final = error


def caller(client: Any, send: Callable[..., Any], mode: Callable[[bool], str | None]) -> Callable[..., Any]:
    """A method that takes the parameters of a request and gives the reply of the SDK, or raises its error.

    Args:
        client: a client of instructor's, whose defaults and hooks count.
        send: the method of the SDK.
        mode: the mode of instructor's that writes the messages: of a request with a response model, and without.
    """
    import instructor

    hooks = client.hooks

    def patched(method: Callable[..., Any], given: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
        response_model = given.pop("response_model", None)
        name = str(mode(response_model is not None))
        patch: Any = instructor.patch
        create: Callable[..., Any] = patch(create=method, mode=instructor.Mode[name], provider=client.provider)
        full = client.handle_kwargs(given)
        sent = {name: value for name, value in full.items() if name not in OF_INSTRUCTOR}
        return create, {**sent, "response_model": response_model, "max_retries": 0}

    def send_once(**prepared: Any) -> object:
        hooks.emit_completion_arguments(**prepared)
        try:
            reply = send(**prepared)
        except Exception as error:  # noqa: BLE001 - it is raised again outside of instructor
            raise _failed(hooks, error) from None
        raise _answered(hooks, reply)

    async def asend_once(**prepared: Any) -> object:
        hooks.emit_completion_arguments(**prepared)
        try:
            reply = await send(**prepared)
        except Exception as error:  # noqa: BLE001 - it is raised again outside of instructor
            raise _failed(hooks, error) from None
        raise _answered(hooks, reply)

    def ask(**given: Any) -> object:
        create, arguments = patched(send_once, given)
        try:
            create(**arguments)
        except _Shortcut as left:
            shortcut = left
        # Outside of the block, where instructor's own frames do not become the context of an error.
        return _reply(shortcut)

    async def aask(**given: Any) -> object:
        create, arguments = patched(asend_once, given)
        try:
            await create(**arguments)
        except _Shortcut as left:
            shortcut = left
        return _reply(shortcut)

    return aask if is_async_client(client) else ask


def _answered(hooks: Any, reply: object) -> _Shortcut:
    hooks.emit_completion_response(reply)
    return _Shortcut(reply)


def _failed(hooks: Any, error: Exception) -> _Shortcut:
    hooks.emit_completion_error(error, **_ONLY)
    return _Shortcut(None, error)


def _reply(left: _Shortcut) -> object:
    if left.error is not None:
        raise left.error
    return left.reply


def is_async_client(client: object) -> bool:
    """Whether a client of instructor's can only be awaited; boto3 blocks, also where it is awaited."""
    awaited = any(cls.__name__ == "AsyncInstructor" for cls in type(client).__mro__)
    return awaited and field(client, "provider", "value") != "bedrock"


def model_of(client: object) -> str | None:
    """The model that a client of instructor's was made for: a default of its own, or of the method it has patched."""
    create = field(client, "create_fn")
    # instructor keeps a default model in the closure of the method that it has patched.
    known = inspect.getclosurevars(create).nonlocals if inspect.isfunction(create) else {}
    candidates = (
        field(client, "kwargs", "model"),
        known.get("default_model"),
        field(client, "client", "_model_name"),
        field(client, "client", "model_name"),
    )
    return next((model for model in candidates if isinstance(model, str) and model), None)


def method_of(client: Any) -> Callable[..., Any]:
    """The method of the SDK that a client of instructor's has patched, without retries of its own where it can be.

    Raises ConfigError: it has patched none.
    """
    if client.provider.value == "bedrock":
        method: Any = client.client.converse
    else:
        method = getattr(client.create_fn, "__wrapped__", None)
    if not callable(method):
        raise ConfigError(
            f"{type(client).__name__} holds no method of an SDK: make it by one of instructor.from_...", option="client"
        )
    if str(getattr(method, "__module__", "")).partition(".")[0] == "litellm":
        return partial(method, max_retries=0, num_retries=0, drop_params=True)
    return _without_retries(method)


def _without_retries(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method without retries, where it is one of an SDK that can do without for a call."""
    owner: Any = getattr(method, "__self__", None)
    inner: Any = getattr(owner, "_client", None)
    if not hasattr(type(inner), "with_options") or getattr(inner, "max_retries", 0) == 0:
        return method
    quiet: Callable[..., Any] = getattr(type(owner)(inner.with_options(max_retries=0)), method.__name__)
    return quiet
