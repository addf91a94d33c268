"""Guarded responses as the openai package's own types; imported when the first one is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any, Final, Self

from openai.types.responses import ParsedResponse, Response, ResponseStreamEvent
from pydantic import PrivateAttr, TypeAdapter

from stepguard.integrations.chat.response_shapes import response_events
from stepguard.results import Result


class GuardedResponse(Response):
    """A response that a guarded run has given; dumped, it holds the field ``stepguard`` as data."""

    _result: Result = PrivateAttr()

    @property
    def stepguard(self) -> Result:
        """The result of the run: status, values, every step and every attempt."""
        return self._result


class GuardedParsedResponse(ParsedResponse[None]):
    """The same, as ``parse`` gives it; nothing is parsed, since no schema was given."""

    _result: Result = PrivateAttr()

    @property
    def stepguard(self) -> Result:
        """The result of the run."""
        return self._result


def make_response(body: dict[str, Any], result: Result, *, parsed: bool = False) -> Response:
    """A response from a body of `stepguard.integrations.chat.response_shapes.response_body`."""
    kind: Any = GuardedParsedResponse if parsed else GuardedResponse
    made: Any = kind.model_validate(body)
    made._result = result
    return made  # type: ignore[no-any-return]


@cache
def _event_reader() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseStreamEvent)


class _Events:
    """The events of an answer that is complete before its first one is given."""

    def __init__(self, body: dict[str, Any], result: Result) -> None:
        self.stepguard: Final = result
        """The result of the run."""
        self._body: Final = body
        self._events: Iterator[Any] = map(_event_reader().validate_python, response_events(body))

    def _final(self) -> Response:
        self._events = iter(())
        return make_response(self._body, self.stepguard)


class ResponseEvents(_Events):
    """A guarded answer as a stream of events."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def close(self) -> None:
        """Give no more events."""
        self._events = iter(())

    def until_done(self) -> Self:
        """Go to the end."""
        self.close()
        return self

    def get_final_response(self) -> Response:
        """The whole response."""
        return self._final()


class AsyncResponseEvents(_Events):
    """A guarded answer as an asynchronous stream of events."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        for event in self._events:
            return event
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give no more events."""
        self._events = iter(())

    async def until_done(self) -> Self:
        """Go to the end."""
        await self.close()
        return self

    async def get_final_response(self) -> Response:
        """The whole response."""
        return self._final()
