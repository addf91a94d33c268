"""One guarded call: from the parameters of ``chat.completions.create`` to a guard, and from its result to an answer.

=====================================  =======================================================================
parameter                              in a guarded call
=====================================  =======================================================================
model                                  the model that is asked
procedure, inputs                      what is run: a `Procedure`, its text or its name; the values of its inputs
messages                               read as far as the host trusts their roles; the guard writes its own
stream, stream_options                 honoured: the finished answer in chunks
response_format                        ``text``, or ``json_object`` for the answer as JSON; no schema
max_tokens, max_completion_tokens      the most that one request of the run may bring; never more than the guard asks
seed                                   the guard's own: every request has another seed that follows from it
timeout                                of one request; what bounds the run is ``Budget(seconds=...)``
n                                      1
tools, functions, stop, logprobs ...   refused: a guarded answer cannot have them
extra_headers                          ``Idempotency-Key`` names the run in the ledger of `wrap`, and is not sent
all others                             sent as they are with every request of the run
=====================================  =======================================================================

``temperature`` is among those that are sent as they are: it then holds for every request. Left out, the guard asks
greedily first and with some randomness again, which mends more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from stepguard.backends.base import Completion, Request
from stepguard.backends.retry import RetryPolicy
from stepguard.core.arguments import check_count, check_mapping, check_run_id, check_seed
from stepguard.engine.run import Run
from stepguard.errors import ConfigError
from stepguard.guard import Guard
from stepguard.integrations.chat.answers import completion_body, shortfall
from stepguard.integrations.chat.calls import CallRules
from stepguard.integrations.chat.requests import Job
from stepguard.integrations.support import check_support
from stepguard.results import Result

if TYPE_CHECKING:
    from stepguard.backends.openai import OpenAIBackend
    from stepguard.ledger import Ledger

_REFUSED: Final[Mapping[str, str]] = {
    "tools": "steps are answered by the model alone",
    "tool_choice": "steps are answered by the model alone",
    "parallel_tool_calls": "steps are answered by the model alone",
    "functions": "steps are answered by the model alone",
    "function_call": "steps are answered by the model alone",
    "web_search_options": "steps are answered by the model alone",
    "stop": "it would cut replies off; use Budget(tokens=...) to bound a run",
    "logprobs": "the answer is put together from several replies",
    "top_logprobs": "the answer is put together from several replies",
    "prediction": "the answer is put together from several replies",
    "audio": "the answer is text",
}
_OWN_PARAMETERS: Final = frozenset(
    {"max_completion_tokens", "max_tokens", "messages", "modalities", "model", "n", "response_format", "seed"}
    | {"stream", "stream_options", "timeout"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapSettings(CallRules):
    """The settings that all calls of a wrapped client share; see `stepguard.integrations.openai.client.wrap`."""

    client: Any
    on_unverified: Literal["raise", "return"]
    backend: Mapping[str, Any]
    guard: Mapping[str, Any]
    ledger: Ledger | None

    def job(self, arguments: dict[str, Any], *, said: Callable[[dict[str, Any]], Any] | None = None) -> Job | None:
        """The job of a call, as `find` says; ``procedure`` and ``inputs`` leave its arguments.

        `said` gives the messages of a call; by default they are its argument of that name.
        """
        body = arguments.get("extra_body")
        for name in ("procedure", "inputs"):
            if isinstance(body, Mapping) and name in body:  # it would be passed on, and nothing would be guarded
                raise ConfigError(
                    f"a wrapped client takes {name} as a parameter, not in extra_body", option="extra_body"
                )
        named, inputs = arguments.pop("procedure", None), arguments.pop("inputs", None)
        messages: Any = _messages(arguments) if said is None else said(arguments)
        return self.find(messages, model=_model(arguments), named=named, inputs=inputs)

    def make_guard(self, model: str, **changed: Any) -> Guard:
        """A guard over the client. Raises ConfigError: the options, or the client, cannot work."""
        cap = changed.pop("cap", None)
        seed = changed.pop("seed", None)
        timeout = changed.pop("timeout", None)
        ledger = changed.pop("ledger", None)
        backend: Any = self.make_backend(model, **changed)
        options = dict(self.guard) if ledger is None else {**self.guard, "ledger": ledger}
        retry = options.get("retry") or retry_of(self.client)
        options["retry"] = retry if timeout is None else replace(retry, timeout=_seconds(timeout))
        if seed is not None:
            options["seed"] = seed
        return Guard(backend if cap is None else _Capped(backend, cap), **options)

    def make_backend(self, model: str, **changed: Any) -> OpenAIBackend:
        """The client as a backend."""
        from stepguard.backends.openai import OpenAIBackend

        return OpenAIBackend(model, client=self.client, **{**self.backend, **changed})


class GuardedCall:
    """One call that asks for a procedure.

    Raises ConfigError: a parameter cannot be honoured.
    """

    def __init__(
        self, settings: WrapSettings, job: Job, arguments: Mapping[str, Any], *, api: str = "chat_completions"
    ) -> None:
        given = given_parameters(arguments)
        model = given.get("model")
        if not isinstance(model, str):
            raise ConfigError("a guarded call needs model=, the model to ask", option="model")
        check_support([job.procedure], settings.at_least)
        for name, why in _REFUSED.items():
            if name in given and given[name] not in ([], False):
                raise ConfigError(f"a guarded call takes no {name}: {why}", option=name)
        # The SDK merges it into the request, over the parameters: a `tools` in it would get past the refusals above.
        body = given.get("extra_body")
        for name in sorted(_OWN_PARAMETERS.union(_REFUSED).intersection(body if isinstance(body, Mapping) else ())):
            raise ConfigError(f"a guarded call takes {name} as a parameter, not in extra_body", option="extra_body")
        if given.get("n", 1) != 1:
            raise ConfigError(f"a guarded call has one answer: n is 1, not {given['n']!r:.20}", option="n")
        if given.get("modalities", ["text"]) != ["text"]:
            raise ConfigError("a guarded call takes no modalities: the answer is text", option="modalities")
        stream = given.get("stream", False)
        if "stream_options" in given and not stream:
            raise ConfigError("stream_options go with stream=True", option="stream_options")
        stream_options = given.get("stream_options", {})
        check_mapping(stream_options, "stream_options", what="a mapping such as {'include_usage': True}")
        changed: dict[str, Any] = {} if api == "chat_completions" else {"api": api}
        caps = {name: given[name] for name in ("max_tokens", "max_completion_tokens") if name in given}
        for name, cap in caps.items():
            check_count(cap, name)
        if caps:
            changed["cap"] = min(caps.values())
        # Newer models refuse `max_tokens`; the caller knows which name its model takes.
        if "max_completion_tokens" in given:
            changed["max_tokens_parameter"] = "max_completion_tokens"
        check_seed(seed := given.get("seed"))
        self._run_id: Final = _take_key(given, settings.ledger)
        self.settings: Final = settings
        self.job: Final = job
        self.model: Final[str] = model
        self.stream = bool(stream)
        self._include_usage: Final = bool(stream_options.get("include_usage"))
        self._as_json: Final = _wants_json(given.get("response_format"))
        self.guard: Final = settings.make_guard(
            model,
            seed=seed,
            timeout=given.get("timeout"),
            ledger=None if self._run_id is None else settings.ledger,
            extra={
                name: value for name, value in given.items() if name not in _OWN_PARAMETERS and name not in _REFUSED
            },
            **changed,
        )

    def start(self) -> Run:
        """The run that was asked for, not begun."""
        return self.guard.start(self.job.procedure, self.job.inputs, label=self.job.label, run_id=self._run_id)

    def run(self) -> Result:
        """Run it, and report the result however it ends."""
        run = self.start()
        with self.settings.telling(self.model, self.job, run):
            return self.guard.drive(run)

    async def arun(self) -> Result:
        """As `run`, without blocking."""
        run = self.start()
        with self.settings.telling(self.model, self.job, run):
            return await self.guard.adrive(run)

    def body(self, result: Result) -> dict[str, Any]:
        """The body of a chat completion for a result.

        Raises RunError: the result is not to be handed on, and the client raises then.
        """
        allowed: dict[str, Any] = {"at_least": self.settings.at_least}
        if self.settings.on_unverified == "raise" and (why := shortfall(result, **allowed)) is not None:
            raise why
        return completion_body(result, model=self.model, job=self.job, as_json=self._as_json, **allowed)

    def answer(self, result: Result, *, awaited: bool) -> Any:
        """The return value of ``create`` for a result.

        Args:
            awaited: whether a stream is to be an asynchronous one.

        Raises:
            RunError: the result is not to be handed on, and the client raises then.
        """
        from stepguard.integrations.openai.types import AsyncGuardedStream, GuardedStream, make_completion

        body = self.body(result)
        if not self.stream:
            return make_completion(body, result)
        return (AsyncGuardedStream if awaited else GuardedStream)(body, result, include_usage=self._include_usage)


class _Capped:
    """A backend whose replies are held shorter than the guard would have them."""

    def __init__(self, backend: OpenAIBackend, cap: int) -> None:
        self._backend: Final = backend
        self._cap: Final = cap
        self.name: Final = backend.name
        self.is_async: Final = backend.is_async
        self.can_stop: Final = backend.can_stop
        self.stopping: Final = backend.stopping

    def complete(self, request: Request) -> Completion:
        """Answer one request."""
        return self._backend.complete(self._shorter(request))

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request without blocking the event loop."""
        return await self._backend.acomplete(self._shorter(request))

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        """That of the backend."""
        async with self._backend.session() as client:
            yield client

    def _shorter(self, request: Request) -> Request:
        return replace(request, max_tokens=min(self._cap, request.max_tokens or self._cap))


def _take_key(given: dict[str, Any], ledger: Ledger | None) -> str | None:
    """The name of the run, out of the headers of a call: sent with every request of a run it would make them one."""
    headers: Any = given.get("extra_headers")
    keys = [name for name in headers if str(name).lower() == "idempotency-key"] if isinstance(headers, Mapping) else []
    if not keys:
        return None
    if ledger is None:
        what = "Idempotency-Key names a run in a ledger: stepguard.wrap(client, ledger='runs.db')"
        raise ConfigError(what, option="extra_headers")
    given["extra_headers"] = {name: value for name, value in headers.items() if name not in keys}
    check_run_id(headers[keys[0]], "Idempotency-Key")
    return str(headers[keys[0]])


def given_parameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a call that say something; the SDK has objects of its own for what is left out."""
    return {
        name: value
        for name, value in arguments.items()
        if value is not None and type(value).__name__ not in ("NotGiven", "Omit")
    }


def read_twice(arguments: dict[str, Any], name: str) -> Any:
    """An argument that is read here and by the client, too: an iterator becomes a list in its place."""
    given: Any = arguments.get(name)
    if callable(getattr(given, "__next__", None)):
        given = arguments[name] = list(given)
    return given


def _messages(arguments: dict[str, Any]) -> Any:
    messages = read_twice(arguments, "messages")
    if isinstance(body := arguments.get("extra_body"), Mapping):
        messages = body.get("messages", messages)  # the SDK sends these instead
    return messages


def retry_of(client: object) -> RetryPolicy:
    """The retries and the time-out that a client has, as the guard's own: one layer repeats requests, not two."""
    usual = RetryPolicy()
    retries = getattr(client, "max_retries", None)
    timeout = getattr(client, "timeout", usual.timeout)
    try:
        return RetryPolicy(retries=usual.retries if retries is None else retries, timeout=_seconds(timeout))
    except ConfigError:  # a client of another kind, with something else under these names
        return usual


def _seconds(timeout: Any) -> Any:
    """The seconds of a timeout: a number, or the longest wait for data in an object of the HTTP library."""
    return getattr(timeout, "read", timeout)


def _wants_json(response_format: object) -> bool:
    kind = response_format.get("type") if isinstance(response_format, Mapping) else response_format
    if kind in (None, "text"):
        return False
    if kind == "json_object":
        return True
    raise ConfigError(
        "a guarded call cannot fill a schema of yours: use response_format={'type': 'json_object'}, or the values of "
        "`response.stepguard`",
        option="response_format",
    )


def _model(arguments: Mapping[str, Any]) -> str | None:
    model = arguments.get("model")
    return model if isinstance(model, str) else None
