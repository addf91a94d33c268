"""A person as a backend: a callback that is asked for the value of one step."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepguard.backends.base import Backend, Completion, Request
from stepguard.errors import ValueRefused
from stepguard.exact import substitute
from stepguard.usage import Usage
from stepguard.values import Value

if TYPE_CHECKING:
    from stepguard.procedure import Step

__all__ = ["AskPerson", "as_person"]

AskPerson = Callable[["Step", Mapping[str, Value]], Any | Awaitable[Any]]
"""Called with a step and the values it reads; gives the value of the step, None where the person does not know."""


def as_person(ask: AskPerson) -> Backend:
    """A backend that puts each step to a person."""
    call = ask if inspect.isroutine(ask) else getattr(ask, "__call__", None)  # noqa: B004 - whether it is async
    return _AsyncPerson(ask) if inspect.iscoroutinefunction(call) else _Person(ask)


@dataclass(frozen=True, slots=True)
class _Person:
    ask: AskPerson

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        return _completion(request, self.ask(request.steps[0], request.values))


@dataclass(frozen=True, slots=True)
class _AsyncPerson:
    ask: AskPerson

    async def acomplete(self, request: Request) -> Completion:
        """See `AsyncBackend.acomplete`."""
        return _completion(request, await self.ask(request.steps[0], request.values))


def _completion(request: Request, given: object) -> Completion:
    step = request.steps[0]
    if given is None:
        return Completion(None, refusal="the person who was asked does not know", usage=Usage(calls=1), model="person")
    try:
        value = given if isinstance(given, str) else step.type.write(step.type.accept(given))
    except ValueRefused:  # it is read, and refused, like anything that a model writes
        value = str(given)
    assert request.reply_format is not None
    work = "as a person says" if step.expression is None else substitute(step.expression, request.values)
    field = request.reply_format.answer(step, work, value)
    return Completion(json.dumps({step.id: field}), usage=Usage(calls=1), model="person")
