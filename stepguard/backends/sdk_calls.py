"""One call of an SDK: its reply or its failure, as stepguard's own completion or error, without any secret."""

from __future__ import annotations

import inspect
from types import TracebackType
from typing import Any, Final

from stepguard.backends.base import Completion, Request
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.completion_streams import CompletionStream, whole_body
from stepguard.backends.credentials import digest
from stepguard.backends.function import is_async_function
from stepguard.backends.openai_errors import (
    as_backend_error,
    environment_secrets,
    refused_reply,
    secrets_of,
    texts_of,
    was_sent,
)
from stepguard.backends.reply_forms import chat_body
from stepguard.backends.sdk_errors import field
from stepguard.core.redaction import redact, redacted_start
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, StepguardError

_LONGEST_MESSAGE: Final = 500  # error pages of proxies run to megabytes


class SdkCall:
    """The outcome of one call of an SDK, made in a ``with`` block.

    An exception is kept and turned into ours; `completion` raises that outside of any ``except`` block, where the
    original, which may hold secrets, does not become its context.

    Args:
        name: what errors call the model.
        request: what is asked.
        stream: puts the reply together that comes in pieces.
        secrets: what stays out of errors beside what the client holds, which does not show every key.

    Attributes:
        raw: the body of the reply.
        client: the client that is asked, whose secrets stay out of errors.
    """

    def __init__(self, name: str, request: Request, stream: CompletionStream, secrets: tuple[str, ...] = ()) -> None:
        self.raw: object = None
        self.client: Any = None
        self._name = name
        self._request = request
        self._stream = stream
        self._own = secrets
        self._secrets: tuple[str, ...] | None = None
        self._failure: BackendError | None = None

    def read(self, raw: object) -> object:
        """The body of what the client gave."""
        return whole_body(raw, self._stream) if self._request.stop is None else self._stream.read(raw)

    async def aread(self, raw: object) -> object:
        """As `read`."""
        return whole_body(raw, self._stream) if self._request.stop is None else await self._stream.aread(raw)

    def give_up(self) -> None:
        """Stop reading: nobody waits for the reply any more."""
        self._stream.given_up = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, StepguardError):
            return False
        secrets = self._secrets = self._all(error)
        self.raw = refused_reply(error, secrets)
        if self.raw is not None:
            return True
        begun = self._stream.begun
        self._failure = as_backend_error(error, self._say, begun=begun)
        if self._failure.status is None or begun:  # an endpoint that refuses a request does not charge for it
            self._failure.usage = self._spent(error)
        # A traceback shows the cause: it is kept only where it holds no secret.
        if all(redact(text, *secrets) == text for text in texts_of(error)):
            self._failure.__cause__ = error
        return True

    def _all(self, error: Exception | None = None) -> tuple[str, ...]:
        return (*self._own, *secrets_of(self.client, error), *environment_secrets())

    def _spent(self, error: Exception) -> Usage | None:
        """What a call cost that has failed without a refusal, None where nothing was sent."""
        if self._stream.begun:
            return self._stream.usage()
        return self._request.estimate() if was_sent(error) else None

    def completion(self, *, answer_in_reasoning: bool = False) -> Completion:
        """The answer to the request. Raises BackendError: there is none."""
        if self._failure is not None:
            raise self._failure
        asked = sum(len(message.content) for message in self._request.messages)
        return read_completion(chat_body(self.raw), self._say, asked=asked, answer_in_reasoning=answer_in_reasoning)

    def _say(self, words: str) -> str:
        return redacted_start(f"{self._name}: {words}", _LONGEST_MESSAGE, *(self._secrets or self._all()))


def without_retries(client: Any, create: object) -> Any:
    """The client, or a copy over the same connections whose own retries are off.

    Args:
        client: a client.
        create: what holds its method; where that was replaced, as tracing tools do, the client stays as it is.
    """
    traced = "create" in getattr(create, "__dict__", {})
    if traced or not hasattr(type(client), "with_options") or getattr(client, "max_retries", 0) == 0:
        return client
    return client.with_options(max_retries=0)


def account_of_client(client: object) -> tuple[str, str]:
    """The endpoint of a client and a digest of its key."""
    key = field(client, "api_key")
    return str(field(client, "base_url")), digest(key if isinstance(key, str) else type(client).__name__)


def is_awaited(create: object) -> bool:
    """Whether a method gives an awaitable, also one that a tracing tool has wrapped."""
    return is_async_function(inspect.unwrap(create) if callable(create) else create) or is_async_function(create)
