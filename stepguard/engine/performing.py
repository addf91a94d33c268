"""Performs a step by code, a function or a tool, from the verified values that it reads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import cast

from stepguard.core.deadlines import Overrun, awaited, awithin, gave_up, within
from stepguard.engine.actions import Act, Failed, Performed
from stepguard.errors import EvaluationError, ValueRefused
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.procedure.operations import KEY, WrongResult


def perform_step(action: Act) -> Performed | Failed:
    """Perform a step, blocking; an async function runs in an event loop of its own."""
    if action.operation is None:
        return _by_code(action)
    called = action.operation.function

    def call() -> object:
        given = called(**_arguments(action))
        if not inspect.isawaitable(given):
            return given
        import asyncio  # importing it takes longer than the rest of this package

        # `asyncio.run` takes coroutines only, and a function may return any awaitable.
        return asyncio.run(_settled(cast("Awaitable[object]", given)))

    try:
        return _performed(action, within(action.remaining, call, name=f"stepguard-{action.operation.name}"))
    except BaseException as error:  # noqa: BLE001 - the host's code
        return _failed(action, error)


async def aperform_step(action: Act) -> Performed | Failed:
    """Perform a step without blocking the event loop: an async function is awaited in it, another runs in a thread."""
    if action.operation is None:
        return _by_code(action)
    called, arguments = action.operation.function, None
    try:
        arguments = _arguments(action)
        if inspect.iscoroutinefunction(called):
            given = await awaited(action.remaining, called(**arguments))
        else:
            name = f"stepguard-{action.operation.name}"
            given = await awithin(action.remaining, lambda: called(**arguments), name=name)
            if inspect.isawaitable(given):
                # A plain function may still return an awaitable, such as a lambda around a coroutine function.
                given = await awaited(action.remaining, given)
        return _performed(action, given)
    except BaseException as error:  # noqa: BLE001 - the host's code
        return _failed(action, error)


def _by_code(action: Act) -> Performed | Failed:
    step = action.step
    assert step.expression is not None
    try:
        return Performed(action.id, step.type.convert(evaluate_term(step.expression, action.values, {})))
    except EvaluationError as error:
        return Failed(action.id, error)


def _arguments(action: Act) -> dict[str, object]:
    """The values of the arguments, as Python's own objects."""
    assert action.operation is not None
    arguments: dict[str, object] = {
        name: evaluate_term(value, action.values, {}) for name, value in action.step.arguments
    }
    if action.operation.keyed:
        arguments[KEY] = action.key
    return arguments


def _performed(action: Act, given: object) -> Performed | Failed:
    step, operation = action.step, action.operation
    assert operation is not None
    try:
        return Performed(action.id, step.type.accept(given))
    except ValueRefused as error:
        message = f"{operation.name} gave no {step.type} for {step.id!r}: {error}"
        return Failed(action.id, WrongResult(message, option=operation.name))


def _failed(action: Act, error: BaseException) -> Failed:
    assert action.operation is not None
    if isinstance(error, Overrun):
        late = TimeoutError(f"{action.operation.name} has not returned in the time that was left")
        return Failed(action.id, late)
    if gave_up(error):
        # A `CancelledError` raised in the host's code is no cancellation of this run.
        return Failed(action.id, RuntimeError(f"{action.operation.name} cancelled itself"))
    if not isinstance(error, Exception):
        raise error
    return Failed(action.id, error)


async def _settled(given: Awaitable[object]) -> object:
    return await given
