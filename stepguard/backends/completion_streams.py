"""Puts streamed chat completions together, and stops them where a step is wrong.

What comes of a stream is a body as the endpoint would have sent it in one piece, so that it is read in the same way by
`stepguard.backends.chat_completions`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from stepguard.backends.base import Request
from stepguard.backends.chat_completions import counted_tokens, first_choice, text_of_content, usage_of
from stepguard.backends.sdk_errors import field
from stepguard.backends.server_sent_events import BodyParts, ServerEvent
from stepguard.core.completions import CUT, FAILED, FILTERED, STOPPED_EARLY, plain_reason
from stepguard.core.usage import Usage
from stepguard.errors import BackendError

OPTIONS: Final[Mapping[str, object]] = {"stream": True, "stream_options": {"include_usage": True}}
"""The parameters of a request whose reply is streamed, with the count of its tokens at the end."""

RATES: Final = ((1, 4), (1, 4))
"""Tokens and how many characters they are, of prompts and of replies, where an endpoint has not counted any yet."""

_COUNTS: Final = ("prompt_tokens", "completion_tokens")
_STAYS: Final = CUT | FILTERED | FAILED
"""A reason that no later piece, such as that of the counts, makes a good one."""
_END_MARK: Final = "[DONE]"
_LONG_TOKEN: Final = 12
"""Characters of a token on an average that no reply has."""
_LONGEST_WATCHED: Final = 100_000
"""A longer reply, in characters, is no longer offered to `stop`: all of it is joined each time, which takes quadratic
time."""


class CompletionStream:
    """One reply that comes in pieces.

    Attributes:
        begun: whether the answer had begun to come: what goes wrong then lies with the connection or the server.
        given_up: to be set when nobody waits for the reply any more.
        rates: the tokens and the characters of the last prompt and of its reply that were counted.
    """

    def __init__(self, request: Request) -> None:
        self.given_up = False
        self.rates = RATES
        self.begun = False
        self._request = request
        self._stop = request.stop
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._tools: dict[int, dict[str, Any]] = {}
        self._older_call: dict[str, Any] = {"name": "", "arguments": []}
        self._finish: str | None = None
        self._usage: object = None
        self._error: object = None
        self._fault: str | None = None
        self._whole: Mapping[str, Any] | None = None
        self._served: dict[str, object] = {}
        self._pieces = self._length = self._said = 0
        self._done = self._framed = self._spoken = False

    # From where the pieces come

    def read(self, raw: Any) -> object:
        """The body of a reply whose pieces are iterated; no more of them than are needed."""
        if _is_body(raw):
            return raw
        try:
            pieces, take, end = self._reading(raw, "iter_bytes")
            for piece in pieces:
                if take(piece):
                    return self.body()
            return end()
        finally:
            # Closing ends the connection, and with it what the server would still write.
            if callable(close := getattr(raw, "close", None)):
                close()

    async def aread(self, raw: Any) -> object:
        """As `read`, of an async iterator."""
        if _is_body(raw):
            return raw
        try:
            pieces, take, end = self._reading(raw, "aiter_bytes")
            async for piece in pieces:
                if take(piece):
                    return self.body()
            return end()
        finally:
            if callable(close := getattr(raw, "close", None)):
                await close()

    def _reading(self, raw: Any, bytes_of: str) -> tuple[Any, Callable[[Any], bool], Callable[[], object]]:
        """The pieces of a reply; what takes one in, and says whether no more are needed; what is there at their end."""
        self.begun = True
        response = _http_response(raw)
        if response is None:
            return raw, self.take, self.body
        parts = BodyParts()
        return getattr(response, bytes_of)(), partial(self._feed, parts), partial(self._end, parts, response)

    def _feed(self, parts: BodyParts, part: bytes, *, last: bool = False) -> bool:
        """Take bytes in; whether no more are needed."""
        return any(self._take_event(event) for event in parts.feed(part, last=last)) or self.given_up

    def _end(self, parts: BodyParts, response: Any) -> object:
        """Take in the end of the body, and whether its framing vouches for that end."""
        headers = response.headers
        self._framed = "chunked" in headers.get("transfer-encoding", "").lower() or "content-length" in headers
        self._feed(parts, b"", last=True)
        return self.body() if parts.document is None else body_of_text(parts.document)

    def _take_event(self, event: ServerEvent) -> bool:
        if self._done:
            return True
        if event.data.lstrip().startswith(_END_MARK):
            self._done = True
            return True
        try:
            chunk = json.loads(event.data)
        except (ValueError, RecursionError):
            self._error = self._error or f"an event of the stream is no JSON: {event.data[:100]!r}"
            return True
        # Some servers say that it is an error in the kind of the event alone.
        if event.kind == "error" and isinstance(chunk, Mapping) and not chunk.get("error"):
            chunk = {"error": chunk}
        return self.take(chunk)

    # The pieces themselves

    def take(self, chunk: object) -> bool:
        """Take a piece in; whether no more are needed."""
        for name in ("model", "system_fingerprint"):
            if (given := field(chunk, name)) is not None:
                self._served[name] = given
        choice = first_choice(chunk)
        self._usage = _usage_so_far(chunk, choice) or self._usage
        self._error = field(chunk, "error") or field(choice, "error") or self._error
        if self._finish is None or plain_reason(str(self._finish)) not in _STAYS:
            self._finish = field(choice, "finish_reason") or self._finish
        before = self._pieces
        if (whole := field(choice, "message")) is not None:
            self._take_whole(chunk, whole)
        self._spoken = self._spoken or field(choice, "delta") is not None
        self._take_delta(field(choice, "delta"))
        if self._error is not None or self._fault is not None or self.given_up:
            return True
        # Ask only when something new has come, and the reply is not over.
        if before == self._pieces or self._finish is not None:
            return False
        if self._passes_limit():
            self._finish = "length"
        elif self._may_stop():
            self._finish = STOPPED_EARLY
        return self._finish is not None

    def _passes_limit(self) -> bool:
        """Whether the server goes on far beyond the longest reply that was asked for: some do not know the limit."""
        most = self._request.max_tokens
        return self._stop is not None and most is not None and self._said > _LONG_TOKEN * most

    def _take_delta(self, delta: object) -> None:
        for name, parts in self._texts.items():
            given = field(delta, name)
            if name == "reasoning_content":
                given = given or field(delta, "reasoning") or field(delta, "thinking")
            self._add(parts, text := self._content(given))
            self._said += len(text or "") if name == "content" else 0
        calls = field(delta, "tool_calls") or ()
        for place, call in enumerate((calls,) if isinstance(calls, Mapping) else calls):
            index = field(call, "index")
            # Some servers do not number their calls.
            tool = self._tools.setdefault(index if isinstance(index, int) else place, {"name": "", "arguments": []})
            self._take_call(tool, field(call, "function") or field(call, "custom") or call)
        self._take_call(self._older_call, field(delta, "function_call"))

    def _take_call(self, tool: dict[str, Any], piece: object) -> None:
        name, known = field(piece, "name"), tool["name"]
        if isinstance(name, str) and name and name != known:
            # Some servers send the whole name again with each piece, or all of it so far.
            tool["name"] = name if name.startswith(known) else known + name
            self._pieces += 1
        arguments = field(piece, "arguments")
        self._add(tool["arguments"], field(piece, "input") if arguments is None else arguments)

    def _take_whole(self, chunk: object, message: object) -> None:
        """A message in one piece, as a last one behind the others or in the place of all."""
        come, given = "".join(self._texts["content"]), self._content(field(message, "content"))
        if come and given and not given.startswith(come):
            self._fault = "the pieces of the stream are not what its last one says in full"
            return
        self._whole = {"message": message}
        self._pieces += 1
        self._length = max(self._length, len(given or ""))

    def _content(self, given: object) -> str | None:
        try:
            return text_of_content(given)
        except ValueError as error:
            self._fault = self._fault or str(error)
            return None

    def _add(self, parts: list[Any], given: object) -> None:
        if given:
            parts.append(given)
            self._pieces += 1
            self._length += len(str(given))

    def _may_stop(self) -> bool:
        if self._stop is None or self._length > _LONGEST_WATCHED or self._texts["refusal"]:
            return False
        calls = [*self._tools.values(), *([self._older_call] if self._older_call["arguments"] else [])]
        if calls:
            arguments = _joined(calls[0])["arguments"]
            # Of several calls, or of text beside one, nobody can say yet which is the answer.
            alone = len(calls) == 1 and not self._texts["content"]
            return alone and isinstance(arguments, str) and self._stop(arguments)
        return self._stop("".join(self._texts["content"]))

    # What has come of them

    def body(self) -> Mapping[str, Any]:
        """The body that the pieces make. Raises BackendError: the stream ended before the reply did."""
        if self._fault is not None:
            fault = BackendError(self._fault, retryable=False)
            fault.usage = self.usage()
            raise fault
        if self._finish is None and self._error is None and self._whole is None:
            raise self._broken_off()
        message = {name: "".join(parts) or None for name, parts in self._texts.items()}
        calls = [{"function": _joined(self._tools[index])} for index in sorted(self._tools)]
        whole = {**message, "tool_calls": calls, "function_call": _joined(self._older_call)}
        reply = whole if self._spoken else None  # of a server that speaks another protocol nothing is known
        choice = {"finish_reason": self._finish, "message": reply, **(self._whole or {})}
        return {**self._served, "choices": [choice], "usage": self._usage or self._estimate(), "error": self._error}

    def usage(self) -> Usage:
        """What has been spent by now, counted or estimated."""
        return counted_tokens({"usage": self._usage or self._estimate()}, None, Usage(calls=1))

    @property
    def finished(self) -> bool:
        """Whether the reply has ended, well or not."""
        return self._finish is not None or self._error is not None

    @property
    def begun_to_say(self) -> bool:
        """Whether any piece of a reply, or of an error, has come."""
        return bool(self._pieces or self._finish or self._error)

    def _broken_off(self) -> BackendError:
        # Nothing was lost on the way: sent again, the stream would end in the same way.
        if self._pieces and (self._done or self._framed):
            how = "with [DONE]" if self._done else "as a whole"
            error = BackendError(
                f"the server ended its stream {how} but never sent a finish_reason, so that nobody can tell whether "
                "the reply is complete: mend the server, or do not stream (leave stop_early out)",
                retryable=False,
            )
        else:
            error = BackendError("the stream ended before the reply did")
        error.usage = self.usage()
        return error

    def _estimate(self) -> Mapping[str, Any]:
        """The tokens of a reply that ended before the server told them, rather too many; no piece is less than one."""
        asked = sum(len(message.content) for message in self._request.messages)
        usage, ((tokens, characters), (written, size)) = self._request.estimate(self._length), self.rates
        came = min(-(-self._length * written // size), self._request.max_tokens or sys.maxsize)
        counts = max(usage.input_tokens, -(-asked * tokens // characters)), max(usage.output_tokens, self._pieces, came)
        return dict(zip(_COUNTS, counts, strict=True))


def body_of_text(text: str) -> object:
    """The body that a text stands for; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def whole_body(raw: object, stream: CompletionStream) -> object:
    """The body of a reply that was to come in one piece: some servers send it as events, or as text.

    Raises UnicodeDecodeError: its bytes are no UTF-8.
    """
    if isinstance(raw, bytes):
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raw = raw.decode()  # or it fails: what is not legible is no answer
    if not isinstance(raw, str):
        return raw
    parts = BodyParts()
    stream._feed(parts, raw.encode("utf-8", "replace"), last=True)
    if parts.document is not None:
        return body_of_text(parts.document)
    return stream.body() if stream.begun_to_say else raw


def _joined(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call of its pieces; arguments that came as data stay such."""
    parts = call["arguments"]
    data = len(parts) == 1 and not isinstance(parts[0], str)
    return {"name": call["name"], "arguments": parts[0] if data else "".join(map(str, parts))}


def _is_body(raw: object) -> bool:
    """Whether a client gave the whole reply at once, though a stream was asked for."""
    known = isinstance(raw, str | bytes | Mapping)
    return known or any(field(raw, name) is not None for name in ("choices", "output"))


def _http_response(raw: object) -> Any:
    """The response behind a stream of the SDK, whose own reader stumbles over what servers send; None for others."""
    response: Any = getattr(raw, "response", None)
    known = type(raw).__name__ in ("Stream", "AsyncStream") and callable(getattr(response, "iter_bytes", None))
    return response if known else None


def _usage_so_far(chunk: object, choice: object) -> Any:
    """The usage so far, where a piece tells it; llama.cpp does it in its own words (``timings_per_token``)."""
    if (usage := usage_of(chunk, choice)) is not None:
        return usage
    new, cached, written = (field(chunk, "timings", name) for name in ("prompt_n", "cache_n", "predicted_n"))
    if not isinstance(new, int) or not isinstance(written, int):
        return None
    cached = cached if isinstance(cached, int) else 0
    counts = dict(zip(_COUNTS, (new + cached, written), strict=True))
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}
