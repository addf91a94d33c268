"""Streamed chat completions: put together, and stopped where a step is wrong.

What comes of a stream is a body as the endpoint would have sent it in one piece, so that it is read in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stepguard.backends.base import Request
from stepguard.backends.openai_answers import field
from stepguard.core.finish_reasons import STOPPED_EARLY
from stepguard.core.usage import Usage
from stepguard.errors import BackendError

__all__ = ["OPTIONS", "Stream", "counted_so_far"]

OPTIONS: Final[Mapping[str, object]] = {"stream": True, "stream_options": {"include_usage": True}}
"""The parameters of a request whose reply is streamed, with the count of its tokens at the end."""

_COUNTS: Final = ("prompt_tokens", "completion_tokens")


class Stream:
    """One reply that comes in pieces.

    Args:
        request: what was asked.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._stop = request.stop or (lambda text: False)
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._tools: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._usage: object = None
        self._served: dict[str, object] = {}
        self._pieces = 0
        self.given_up = False
        self.begun = False
        """Whether the answer had begun to come: what goes wrong then lies with the connection or the server."""

    def read(self, chunks: Any) -> Mapping[str, Any]:
        """The body of a reply whose chunks are iterated; no more of them than are needed."""
        try:
            coming = iter(chunks)
            self.begun = True
            for chunk in coming:
                if self._take(chunk) or self.given_up:
                    break
        finally:
            if callable(close := getattr(chunks, "close", None)):
                close()
        return self._body()

    async def aread(self, chunks: Any) -> Mapping[str, Any]:
        """As `read`, of an async iterator."""
        try:
            coming = aiter(chunks)
            self.begun = True
            async for chunk in coming:
                if self._take(chunk):
                    break
        finally:
            if callable(close := getattr(chunks, "close", None)):
                await close()
        return self._body()

    def _take(self, chunk: object) -> bool:
        """Take a chunk in; whether the reply is to be stopped here."""
        for name in ("model", "system_fingerprint"):
            if (told := field(chunk, name)) is not None:
                self._served[name] = told
        self._usage = counted_so_far(chunk) or self._usage
        choices = field(chunk, "choices")
        # One answer was asked for; pieces of another one must not be mixed with it.
        listed = choices if isinstance(choices, list) else ()
        choice = next((each for each in listed if not field(each, "index")), None)
        self._finish = field(choice, "finish_reason") or self._finish
        delta = field(choice, "delta")
        before = self._pieces
        self._add(self._content, field(delta, "content"))
        self._add(self._reasoning, field(delta, "reasoning_content") or field(delta, "reasoning"))
        self._add(self._refusal, field(delta, "refusal"))
        for call in field(delta, "tool_calls") or ():
            index = field(call, "index")
            tool = self._tools.setdefault(index if isinstance(index, int) else 0, {"name": "", "arguments": ""})
            for name in tool:
                said = field(call, "function", name)
                if isinstance(said, str) and said:
                    tool[name] += said
                    self._pieces += 1
        if before == self._pieces or self._finish is not None or self._refusal or len(self._tools) > 1:
            return False
        if self._tools:
            stop = not self._content and self._stop(next(iter(self._tools.values()))["arguments"])
        else:
            stop = self._stop("".join(self._content))
        if stop:
            self._finish = STOPPED_EARLY
        return stop

    def _add(self, parts: list[str], said: object) -> None:
        if isinstance(said, str) and said:
            parts.append(said)
            self._pieces += 1

    def _body(self) -> Mapping[str, Any]:
        if self._finish is None:
            raise BackendError("the stream ended before the reply did")
        message = {
            "content": "".join(self._content) or None,
            "reasoning_content": "".join(self._reasoning) or None,
            "refusal": "".join(self._refusal) or None,
            "tool_calls": [{"function": self._tools[index]} for index in sorted(self._tools)],
        }
        usage = self._usage or self._estimate()
        return {**self._served, "choices": [{"finish_reason": self._finish, "message": message}], "usage": usage}

    def _estimate(self) -> Mapping[str, int]:
        """The tokens of a reply that was stopped before the server told them; no piece is less than a token."""
        asked = sum(len(message.content) for message in self._request.messages)
        said = [*self._content, *self._reasoning, *(tool["arguments"] for tool in self._tools.values())]
        usage = Usage.estimate(asked, sum(map(len, said)))
        return dict(zip(_COUNTS, (usage.input_tokens, max(usage.output_tokens, self._pieces)), strict=True))


def counted_so_far(chunk: object) -> Any:
    """The usage so far, where a chunk tells them; llama.cpp does it in its own words (``timings_per_token``)."""
    usage = field(chunk, "usage")
    if usage is not None:
        return usage
    new, cached, written = (field(chunk, "timings", name) for name in ("prompt_n", "cache_n", "predicted_n"))
    if not isinstance(new, int) or not isinstance(written, int):
        return None
    cached = cached if isinstance(cached, int) else 0
    counts = dict(zip(_COUNTS, (new + cached, written), strict=True))
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}
