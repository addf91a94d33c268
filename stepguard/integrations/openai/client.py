"""`wrap`: an OpenAI-style client whose chat completions and responses run guarded where they ask for a procedure.

::

    client = stepguard.wrap(OpenAI())
    response = client.chat.completions.create(
        model="gpt-4.1-mini", procedure=procedure, inputs={"price": "24.90", "quantity": 3}
    )
    response.choices[0].message.content     # every step and the answer, as text
    response.stepguard                      # the `Result`

A call is guarded where it names a procedure (``procedure=``: a `Procedure`, its text, or a name in `procedures`), or
where a message is one and the host trusts its role (`stepguard.integrations.chat.trust.Trust`). What its parameters
mean then is in `stepguard.integrations.openai.calls`. Every other call is passed on as it came, and what it returns is
untouched: `result_of` tells the two apart, and so do the log events ``chat_guarded`` and ``chat_passed`` and `on_call`.

``client.responses`` is guarded in the same way: ``create``, ``parse`` and ``stream``
(`stepguard.integrations.openai.responses`).

All else is the client's own. Nothing else can be guarded: the SDK refuses ``procedure=`` there, and so does
``chat.completions`` where it is asked by another way than ``create``. Where messages are trusted with
procedures, or only guarded calls are wanted, what else leads to a model is refused as a whole, because what is said
there is not read: ask `unguarded` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, Unpack, get_args

from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError
from stepguard.guard.options import DropInKeywords, GuardOptions, check_options
from stepguard.integrations.chat.calls import ClientCall
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.calls import GuardedCall, WrapSettings
from stepguard.integrations.openai.responses import ResponseManager, ResponsesCall, input_messages
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

if TYPE_CHECKING:
    from stepguard.ledger import Ledger

__all__ = ["ClientCall", "OnUnverified", "result_of", "wrap"]

OnUnverified = Literal["raise", "return"]
"""What a guarded call does with a result that is no answer.

======  ===================================================================================================
raise   raises the `RunError` of `Result.raise_for_status`; its ``result`` holds what was verified
return  returns a completion without content, whose ``refusal`` names the step and whose ``finish_reason`` is no stop
======  ===================================================================================================
"""

_UNREAD: Final = frozenset(
    {"beta", "compact", "completions", "connect", "conversations", "realtime"}
    | {"with_raw_response", "with_streaming_response"}
)
"""Other attributes of a client that lead to a model."""


def wrap(
    client: Any,
    *,
    procedures: Mapping[str, Procedure] | None = None,
    trust: Trust | None = None,
    guarded_only: bool = False,
    on_unverified: OnUnverified = "raise",
    at_least: Strength = "proved",
    on_call: Callable[[ClientCall], object] | None = None,
    mode: Literal["json_schema", "tools", "json"] | None = None,
    strict: bool | None = None,
    ledger: str | Path | Ledger | None = None,
    **options: Unpack[DropInKeywords],
) -> Any:
    """A client that is used like the given one, and whose chat completions and responses can run guarded.

    The client itself stays as it is, and serves unguarded calls: it is ``wrapped.unguarded``. The wrapped client may
    be shared between threads and event loops as far as the client may.

    Args:
        client: `openai.OpenAI`, `openai.AsyncOpenAI`, one of their kin, or anything with ``chat.completions.create``.
        procedures: procedures that a call can name.
        trust: the roles of messages that may be a procedure, or give values of inputs; by default none.
        guarded_only: refuse a call that would be passed on, and say why.
        on_unverified: see `OnUnverified`.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        on_call: called with every `ClientCall` when it is passed on, or when its run has ended, however it has; what it
            raises is logged and changes nothing.
        mode: how replies are bound to their form; see `stepguard.backends.openai.OpenAIBackend`.
        strict: see there; False for a server that does not know the word.
        ledger: where the runs of calls are kept that name one: ``extra_headers={"Idempotency-Key": "refund 17"}``. The
            same call again gives its result without asking a model, or goes on; see `stepguard.Guard.run`.
        options: those of `stepguard.Guard`, for each call: a budget is that of one call. By default a request has the
            time-out and the retries of the client; `retry` sets them otherwise.

    Raises:
        ConfigError: the client cannot be wrapped, or an option cannot work.
        LedgerError: the ledger cannot be opened.
    """
    # Not isinstance: a wrapped client says that it is of the class of the client behind it.
    if issubclass(type(client), _Client):
        raise ConfigError("the client is wrapped already: wrap its .unguarded", option="client")
    check_one_of(on_unverified, get_args(OnUnverified), "on_unverified")
    check_options(options, of="wrap")
    if not callable(getattr(getattr(getattr(client, "chat", None), "completions", None), "create", None)):
        raise ConfigError(f"{type(client).__name__} has no chat.completions.create: pass a client", option="client")
    settings = WrapSettings.checked(
        client=client,
        procedures=procedures,
        trust=trust,
        guarded_only=guarded_only,
        on_unverified=on_unverified,
        at_least=at_least,
        on_call=on_call,
        backend={name: value for name, value in (("mode", mode), ("strict", strict)) if value is not None},
        guard=options,
        ledger=GuardOptions(ledger=ledger).open_ledger(),
    )
    return _wrapped(settings)


def result_of(response: object) -> Result | None:
    """The result behind what ``create`` returned, a stream included; None where the call was passed on."""
    found = getattr(response, "stepguard", None)
    return found if isinstance(found, Result) else None


def _wrapped(settings: WrapSettings) -> _Client:
    settings.make_guard("model")  # what cannot work is told now
    kind = _AsyncCompletions if settings.make_backend("model").is_async else _Completions
    return _Client(settings, _Chat(settings, kind(settings)))


class _Proxy:
    """A part of the client: looked up anew each time, because a tracing tool may replace it."""

    def __init__(self, settings: WrapSettings) -> None:
        self._settings: Final = settings

    @property
    def _inner(self) -> Any:
        return self._settings.client.chat

    def __getattr__(self, name: str) -> Any:
        if name in ("_settings", "_inner"):  # it is being copied
            raise AttributeError(name)
        return _attribute(self._settings, self._inner, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._inner), *object.__dir__(self)})


class _Chat(_Proxy):
    """``client.chat``: the client's own, but for ``completions``."""

    def __init__(self, settings: WrapSettings, completions: _Unguarded) -> None:
        super().__init__(settings)
        self.completions: Final = completions


class _Unguarded(_Proxy):
    """``chat.completions``: the client's own, but for ``create`` and what takes the same arguments."""

    @property
    def _inner(self) -> Any:
        return self._settings.client.chat.completions

    def parse(self, **arguments: Any) -> Any:
        """That of the client; a call that asks for a procedure is refused."""
        return self._other("parse", arguments)

    def stream(self, **arguments: Any) -> Any:
        """That of the client; a call that asks for a procedure is refused."""
        return self._other("stream", arguments)

    def _other(self, name: str, arguments: dict[str, Any]) -> Any:
        if self._settings.job(arguments) is not None:
            raise ConfigError(f"chat.completions.{name} cannot run guarded: use create", option="procedure")
        return getattr(self._inner, name)(**arguments)


class _Completions(_Unguarded):
    """``chat.completions`` of a client that blocks."""

    def create(self, **arguments: Any) -> Any:
        job = self._settings.job(arguments)
        if job is None:
            return self._inner.create(**arguments)
        call = GuardedCall(self._settings, job, arguments)
        return call.answer(call.run(), awaited=False)


class _AsyncCompletions(_Unguarded):
    """``chat.completions`` of a client that is awaited."""

    async def create(self, **arguments: Any) -> Any:
        job = self._settings.job(arguments)
        if job is None:
            return await self._inner.create(**arguments)
        call = GuardedCall(self._settings, job, arguments)
        return call.answer(await call.arun(), awaited=True)


class _AnyResponses(_Proxy):
    """``client.responses``: the client's own, but for what asks a model."""

    @property
    def _inner(self) -> Any:
        return self._settings.client.responses

    def _call(self, arguments: dict[str, Any]) -> ResponsesCall | None:
        """The guarded call for these arguments, None for one to pass on."""
        job = self._settings.job(arguments, said=input_messages)
        return None if job is None else ResponsesCall(self._settings, job, arguments)

    def stream(self, **arguments: Any) -> Any:
        call = self._call(arguments)
        return self._inner.stream(**arguments) if call is None else ResponseManager(call)


class _Responses(_AnyResponses):
    """``responses`` of a client that blocks."""

    def create(self, **arguments: Any) -> Any:
        call = self._call(arguments)
        return self._inner.create(**arguments) if call is None else call.answer(call.run(), awaited=False)

    def parse(self, **arguments: Any) -> Any:
        call = self._call(arguments)
        return self._inner.parse(**arguments) if call is None else call.answer(call.run(), awaited=False, parsed=True)


class _AsyncResponses(_AnyResponses):
    """``responses`` of a client that is awaited."""

    async def create(self, **arguments: Any) -> Any:
        call = self._call(arguments)
        return await self._inner.create(**arguments) if call is None else call.answer(await call.arun(), awaited=True)

    async def parse(self, **arguments: Any) -> Any:
        call = self._call(arguments)
        if call is None:
            return await self._inner.parse(**arguments)
        return call.answer(await call.arun(), awaited=True, parsed=True)


def _attribute(settings: WrapSettings, holder: Any, name: str) -> Any:
    """Look up an attribute of a client.

    Raises ConfigError: it leads to a model, and what is said to it would have to be read.
    """
    found = getattr(holder, name)
    if name in _UNREAD and (settings.trust.procedures or settings.guarded_only):
        raise ConfigError(
            f"{name} cannot run guarded: use chat.completions or responses, or .unguarded of the wrapped client",
            option="procedure",
        )
    return found


class _Client:
    """A wrapped client: all but ``chat`` is the client's own, and copies of it are wrapped, too."""

    __slots__ = ("_settings", "chat")

    _settings: WrapSettings
    chat: _Chat

    def __init__(self, settings: WrapSettings, chat: _Chat) -> None:
        # Past its own __setattr__, which hands attributes on to the client.
        object.__setattr__(self, "_settings", settings)
        object.__setattr__(self, "chat", chat)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type[Any]:
            # Libraries ask whether it is an OpenAI client.
            return type(self._settings.client)

    @property
    def unguarded(self) -> Any:
        """The client that was wrapped."""
        return self._settings.client

    def with_options(self, **options: Any) -> _Client:
        """A wrapped copy of the client with other options of its own, such as ``timeout``."""
        from dataclasses import replace

        return _wrapped(replace(self._settings, client=self._settings.client.with_options(**options)))

    copy = with_options

    def __getattr__(self, name: str) -> Any:
        if name in _Client.__slots__:  # it is being copied or pickled
            raise AttributeError(name)
        found = _attribute(self._settings, self._settings.client, name)
        if name != "responses":
            return found
        return (_AsyncResponses if isinstance(self.chat.completions, _AsyncCompletions) else _Responses)(self._settings)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._settings.client, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._settings.client), "unguarded"})

    def __reduce__(self) -> tuple[Any, ...]:
        # Left to itself, a copy would begin with its `__setattr__`, which needs the client that it does not have yet.
        return _wrapped, (self._settings,)

    def __repr__(self) -> str:
        return f"stepguard.wrap({self._settings.client!r})"

    def __enter__(self) -> Self:
        self._settings.client.__enter__()
        return self

    def __exit__(self, *how: Any) -> Any:
        return self._settings.client.__exit__(*how)

    async def __aenter__(self) -> Self:
        await self._settings.client.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> Any:
        return await self._settings.client.__aexit__(*how)
