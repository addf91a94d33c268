"""A person as a backend: a callback that is asked for the value of one step."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from stepguard.backends.base import Backend, Completion, Request
from stepguard.backends.function import is_async_function
from stepguard.core.arguments import check_callable
from stepguard.core.deadlines import Overrun, within
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, BackendTimeout, ValueRefused
from stepguard.language.evaluation import substitute
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

AskPerson = Callable[["Step", Mapping[str, Value]], Any | Awaitable[Any]]
"""Called with a step and the values it reads; gives the value of the step, None where the person does not know.

Where the step is no record, a mapping of ``value`` and ``work`` gives the working as well, such as what is cited.
"""


def as_person(ask: AskPerson) -> Backend:
    """A backend that puts each step to a person. Raises ConfigError: `ask` cannot be called."""
    check_callable(ask, "repair", name="what asks a person")
    return _AsyncPerson(ask) if is_async_function(ask) else _Person(ask)


@dataclass(frozen=True, slots=True)
class _Person:
    ask: AskPerson
    endpoint: ClassVar = ""

    def complete(self, request: Request) -> Completion:

        def call() -> object:
            return self.ask(request.steps[0], request.values)

        try:
            given = within(request.timeout, call, name="stepguard-person")
        except Overrun:
            late = BackendTimeout(f"no answer within {request.timeout:.6g} s")
            late.usage = Usage(calls=1)
            raise late from None
        if inspect.isawaitable(given):
            if inspect.iscoroutine(given):
                given.close()  # unawaited, it would be warned of
            raise BackendError(
                "the person's callback gave an awaitable: make it an async function, and use `await guard.arun(...)`",
                retryable=False,
            )
        return _completion(request, given)


@dataclass(frozen=True, slots=True)
class _AsyncPerson:
    ask: AskPerson
    endpoint: ClassVar = ""

    async def acomplete(self, request: Request) -> Completion:
        return _completion(request, await self.ask(request.steps[0], request.values))


def _completion(request: Request, given: object) -> Completion:
    step = request.steps[0]
    if given is None:
        return Completion(None, refusal="the person who was asked does not know", usage=Usage(calls=1), model="person")
    work = "as a person says" if step.expression is None else substitute(step.expression, request.values)
    # A record may have fields of these names: of that a mapping is the value itself.
    if isinstance(given, Mapping) and set(given) == {"value", "work"} and step.type.record is None:
        work, given = str(given["work"]), given["value"]
    try:
        value = given if isinstance(given, str) else step.type.write(step.type.accept(given))
    except ValueRefused as error:
        return Completion(None, refusal=f"the person's answer cannot be taken: {error}", model="person")
    assert request.reply_format is not None
    field = request.reply_format.answer(step, work, value)
    return Completion(json.dumps({step.id: field}), usage=Usage(calls=1), model="person")
