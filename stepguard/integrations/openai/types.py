"""Guarded answers as the openai package's own types; imported when the first one is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Final, Self

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import PrivateAttr

from stepguard.integrations.chat.answers import completion_chunks
from stepguard.results import Result


class GuardedCompletion(ChatCompletion):
    """A chat completion that a guarded run has given; dumped, it holds the field ``stepguard`` as data."""

    _result: Result = PrivateAttr()

    @property
    def stepguard(self) -> Result:
        """The result of the run: status, values, every step and every attempt."""
        return self._result


def make_completion(body: dict[str, Any], result: Result) -> GuardedCompletion:
    """A completion from a body of `stepguard.integrations.chat.answers.completion_body`."""
    completion = GuardedCompletion.model_validate(body)
    completion._result = result
    return completion


class _Finished:
    """The chunks of an answer that is complete before its first one is given."""

    def __init__(self, body: dict[str, Any], result: Result, *, include_usage: bool) -> None:
        self.stepguard: Final = result
        """The result of the run."""
        chunks = completion_chunks(body, include_usage=include_usage)
        self._chunks: Iterator[ChatCompletionChunk] = map(ChatCompletionChunk.model_validate, chunks)


class GuardedStream(_Finished):
    """A guarded answer as a stream of chunks."""

    def __iter__(self) -> Iterator[ChatCompletionChunk]:
        return self

    def __next__(self) -> ChatCompletionChunk:
        return next(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give no more chunks."""
        self._chunks = iter(())


class AsyncGuardedStream(_Finished):
    """A guarded answer as an asynchronous stream of chunks."""

    def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        return self

    async def __anext__(self) -> ChatCompletionChunk:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give no more chunks."""
        self._chunks = iter(())
