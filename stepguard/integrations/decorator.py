"""`guarded`: a function that asks a model becomes a function that carries out a procedure.

::

    @stepguard.guarded('''
        inputs: price, quantity
        subtotal = price * quantity
        total: decimal(2) = subtotal * 1.0825
    ''')
    def invoice(messages):
        return client.chat.completions.create(model="gpt-4.1-mini", messages=messages).choices[0].message.content

    result = invoice(price="24.90", quantity=3)    # a `Result`

The function stays as it was: how a model is asked, with messages or a prompt in and text out. It is called once for
every request that the guard makes, and never with what a caller gave: the caller gives the inputs of the procedure.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, Unpack, cast, get_args, overload

from stepguard.backends.function import FunctionBackend, is_async_function
from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Strength, check_strength
from stepguard.errors import ConfigError
from stepguard.guard import Guard
from stepguard.guard.options import KeptKeywords, check_options
from stepguard.integrations.chat.requests import named_procedure
from stepguard.integrations.support import check_support
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

Takes = Literal["messages", "prompt"]
"""The argument of the function: a list of ``{"role": ..., "content": ...}``, or all of it as one text."""

Returns = Literal["result", "answer"]
"""The return value of the decorated function: the `Result`, whatever its status, or only a verified answer."""

_PARTS: Final[Mapping[str, str]] = {"system": "", "user": "User: ", "assistant": "Assistant: "}
_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _ForResult(Protocol):
    """Decorates a function so that it returns a `Result`."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[..., Awaitable[object]], /
    ) -> Callable[..., Coroutine[Any, Any, Result]]: ...
    @overload
    def __call__(self, function: Callable[..., object], /) -> Callable[..., Result]: ...


class _ForAnswer(Protocol):
    """Decorates a function so that it returns an answer."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[..., Awaitable[object]], /
    ) -> Callable[..., Coroutine[Any, Any, Value]]: ...
    @overload
    def __call__(self, function: Callable[..., object], /) -> Callable[..., Value]: ...


@overload
def guarded(
    procedure: Procedure | str,
    /,
    *,
    takes: Takes = ...,
    returns: Literal["result"] = ...,
    **options: Unpack[KeptKeywords],
) -> _ForResult: ...
@overload
def guarded(
    procedure: Procedure | str,
    /,
    *,
    takes: Takes = ...,
    returns: Literal["answer"],
    at_least: Strength = ...,
    **options: Unpack[KeptKeywords],
) -> _ForAnswer: ...
def guarded(
    procedure: Procedure | str,
    /,
    *,
    takes: Takes = "messages",
    returns: Returns = "result",
    at_least: Strength = "proved",
    **options: Unpack[KeptKeywords],
) -> Any:
    """Decorate a function that asks a model; called with the inputs of a procedure, it carries that out, guarded.

    The decorated function takes the inputs as keyword arguments. It is async where the function is. What else the
    function needs, such as the ``self`` of a method, is given by position and handed on in front of the messages; the
    function itself stays reachable as ``__wrapped__``.

    Args:
        procedure: what to carry out: a `Procedure`, or its text.
        takes: what the function takes; see `Takes`.
        returns: what the decorated function returns; see `Returns`. With ``"answer"`` it raises the `RunError` of
            `Result.raise_for_status` where the result is not verified.
        at_least: with ``returns="answer"``; see there.
        options: those of `stepguard.Guard`.

    The function returns text, or a `stepguard.backends.Completion`, which also tells usage; tokens are estimated
    otherwise. What it raises ends the run as ``failed``, and is the cause of `Result.error`: the function knows its
    transport, so retries and, where it blocks, time-outs are its own.

    Raises:
        ProcedureError: the text is no procedure.
        ConfigError: an option cannot work, or what is decorated is no function that takes messages.
    """
    if callable(procedure) and not isinstance(procedure, Procedure):
        raise ConfigError(
            "write @guarded(procedure): it is not the function that stands in the brackets", option="procedure"
        )
    wanted = named_procedure(procedure)
    check_one_of(takes, get_args(Takes), "takes")
    check_one_of(returns, get_args(Returns), "returns")
    check_strength(at_least)
    if returns == "result" and at_least != "proved":
        raise ConfigError('at_least goes with returns="answer"', option="returns")
    if returns == "answer":
        check_support([wanted], at_least)
    check_options(options, of="guarded", allowed=KeptKeywords)

    def finish(result: Result) -> object:
        if returns == "result":
            return result
        return result.raise_for_status(at_least=at_least).answer

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        before = _parameters_before(function, takes)
        probe = Guard(_backend(function, (), takes), **options)  # what cannot work is told now
        kept: KeptKeywords = {**options, "ledger": probe.ledger}

        def guard(given: tuple[object, ...]) -> Guard:
            if len(given) != before:
                raise TypeError(
                    f"{_name(function)}() takes the inputs of its procedure as keyword arguments"
                    + (f", behind {before} by position" if before else "")
                    + f"; {len(given)} were given by position"
                )
            return Guard(_backend(function, given, takes), **kept)

        if is_async_function(function):

            @functools.wraps(function)
            async def acall(*given: object, **inputs: object) -> object:
                return finish(await guard(given).arun(wanted, inputs))

            return _signed(acall, function, before, wanted.inputs)

        @functools.wraps(function)
        def call(*given: object, **inputs: object) -> object:
            return finish(guard(given).run(wanted, inputs))

        return _signed(call, function, before, wanted.inputs)

    return cast(Any, decorate)


def _parameters_before(function: object, takes: Takes) -> int:
    """How many arguments stand in front of the messages.

    Raises ConfigError: it is no function that can be called with messages.
    """
    if not callable(function) or isinstance(function, type | classmethod | staticmethod):
        raise ConfigError(
            f"guarded decorates a function that asks a model, not {type(function).__name__}", option="function"
        )
    parameters = list(inspect.signature(function).parameters.values())
    wanted = [each for each in parameters if each.kind in _BY_POSITION and each.default is each.empty]
    lacking = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if not wanted or lacking:
        problem = f"it also needs {lacking[0]}" if lacking else "it takes none"
        raise ConfigError(
            f"{_name(function)}() is to be called with {takes}, and {problem}: write def {_name(function)}({takes})",
            option="function",
        )
    # "str" too: under `from __future__ import annotations` an annotation is its text.
    if takes == "messages" and wanted[-1].annotation in (str, "str"):
        raise ConfigError(
            f'{_name(function)}({wanted[-1].name}: str) takes text: write @guarded(..., takes="prompt")', option="takes"
        )
    return len(wanted) - 1


def _signed(
    made: Callable[..., Any], function: Callable[..., Any], before: int, inputs: Sequence[Input]
) -> Callable[..., Any]:
    """The decorated function with the signature that callers see."""
    first = list(inspect.signature(function).parameters.values())[:before]
    taken = {each.name for each in first}
    own = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is None else each.default,
        )
        for each in inputs
        if each.name not in taken
    ]
    made.__signature__ = inspect.Signature([*first, *own])  # type: ignore[attr-defined]
    # Those of the wrapped function describe messages, not the inputs; tools that read them would be misled.
    made.__annotations__ = {}
    return made


def _backend(function: Callable[..., Any], given: tuple[object, ...], takes: Takes) -> FunctionBackend:
    def wanted(messages: list[dict[str, str]]) -> object:
        return _as_prompt(messages) if takes == "prompt" else messages

    def ask(messages: list[dict[str, str]]) -> object:
        return function(*given, wanted(messages))

    async def aask(messages: list[dict[str, str]]) -> object:
        return await function(*given, wanted(messages))

    return FunctionBackend(aask if is_async_function(function) else ask, name=_name(function))


def _as_prompt(messages: Sequence[Mapping[str, str]]) -> str:
    parts = [f"{_PARTS[message['role']]}{message['content']}" for message in messages]
    return "\n\n".join([*parts, "Assistant:"])


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
