"""Guarded answers as the openai package's own types; imported when the first one is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any, Final, Generic, Self, TypeVar

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import ParsedResponse, Response, ResponseStreamEvent
from pydantic import BaseModel, PrivateAttr, TypeAdapter

from stepguard.integrations.chat.answers import completion_chunks
from stepguard.integrations.chat.response_shapes import response_events
from stepguard.results import Result

_ContentPart = TypeVar("_ContentPart")


class _OfRun(BaseModel):
    """What a guarded run has given; dumped, it holds the field ``stepguard`` as data."""

    _result: Result = PrivateAttr()

    @property
    def stepguard(self) -> Result:
        """The result of the run: status, values, every step and every attempt."""
        return self._result


class GuardedCompletion(_OfRun, ChatCompletion):
    """A chat completion that a guarded run has given."""


class GuardedResponse(_OfRun, Response):
    """A response that a guarded run has given."""


class GuardedParsedResponse(_OfRun, ParsedResponse[None]):
    """The same, as ``parse`` gives it; nothing is parsed, since no schema was given."""


def make_completion(body: dict[str, Any], result: Result) -> GuardedCompletion:
    """A completion from a body of `stepguard.integrations.chat.answers.completion_body`."""
    completion = GuardedCompletion.model_validate(body)
    completion._result = result
    return completion


def make_response(body: dict[str, Any], result: Result, *, parsed: bool = False) -> Response:
    """A response from a body of `stepguard.integrations.chat.response_shapes.response_body`."""
    made = (GuardedParsedResponse if parsed else GuardedResponse).model_validate(body)
    made._result = result
    return made


class _Finished(Generic[_ContentPart]):
    """The parts of an answer that is complete before the first one is given; a stream to whoever reads it."""

    def __init__(self, parts: Iterator[_ContentPart], result: Result) -> None:
        self.stepguard: Final = result
        """The result of the run."""
        self._parts = parts

    def _end(self) -> None:
        self._parts = iter(())


class _Stream(_Finished[_ContentPart]):
    """For a client that blocks."""

    def __iter__(self) -> Iterator[_ContentPart]:
        return self

    def __next__(self) -> _ContentPart:
        return next(self._parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def close(self) -> None:
        self._end()


class _AsyncStream(_Finished[_ContentPart]):
    """For a client that is awaited."""

    def __aiter__(self) -> AsyncIterator[_ContentPart]:
        return self

    async def __anext__(self) -> _ContentPart:
        for part in self._parts:
            return part
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._end()


class _Chunks(_Finished[ChatCompletionChunk]):
    def __init__(self, body: dict[str, Any], result: Result, *, include_usage: bool) -> None:
        chunks = completion_chunks(body, include_usage=include_usage)
        super().__init__(map(ChatCompletionChunk.model_validate, chunks), result)


class GuardedStream(_Chunks, _Stream[ChatCompletionChunk]):
    """A guarded answer as a stream of chunks."""


class AsyncGuardedStream(_Chunks, _AsyncStream[ChatCompletionChunk]):
    """A guarded answer as an asynchronous stream of chunks."""


# Once: making a reader of so many kinds of events takes pydantic a while.
@cache
def _event_reader() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseStreamEvent)


class _Events(_Finished[Any]):
    def __init__(self, body: dict[str, Any], result: Result) -> None:
        super().__init__(map(_event_reader().validate_python, response_events(body)), result)
        self._body: Final = body

    def _final(self) -> Response:
        self._end()
        return make_response(self._body, self.stepguard)


class ResponseEvents(_Events, _Stream[Any]):
    """A guarded answer as a stream of events."""

    def until_done(self) -> Self:
        self.close()
        return self

    def get_final_response(self) -> Response:
        return self._final()


class AsyncResponseEvents(_Events, _AsyncStream[Any]):
    """A guarded answer as an asynchronous stream of events."""

    async def until_done(self) -> Self:
        await self.close()
        return self

    async def get_final_response(self) -> Response:
        return self._final()
