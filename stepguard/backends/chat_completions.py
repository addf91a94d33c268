"""The one reader of chat completions: a body in OpenAI's shape becomes a completion, or says why there is none.

Whatever way it came: as the object of an SDK, as JSON, or put together from the pieces of a stream. What one of these
may hold the others may hold, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stepguard.backends.base import Completion, ToolCall
from stepguard.backends.openai_errors import body_error
from stepguard.backends.sdk_errors import field
from stepguard.core.completions import FAILED, plain_reason
from stepguard.core.usage import Usage
from stepguard.errors import BackendError
from stepguard.language.strict_json import decode

# By the names of chat completions and of responses: servers send either, or both.
_TOKEN_COUNTS: Final = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("total_tokens",))
# Some servers write counts as text, with commas between thousands.
_COUNT: Final = re.compile(r"[0-9]{1,15}|[0-9]{1,3}(?:,[0-9]{3}){1,4}", re.ASCII)
_IMPOSSIBLE: Final = 10**12
"""No reply takes so many tokens: a server that counts more does not know."""


def read_completion(
    raw: object, say: Callable[[str], str], *, asked: int, answer_in_reasoning: bool = False
) -> Completion:
    """The answer in the body of a response.

    Args:
        raw: the body.
        say: makes the text of an error of these words.
        asked: how many characters were sent, for where nobody counts tokens.
        answer_in_reasoning: see `OpenAIBackend`.

    Raises:
        BackendError: there is no answer in it. `usage` says what it cost all the same.
    """
    choice = first_choice(raw)
    message = field(choice, "message")
    finish = field(choice, "finish_reason")
    calls = [field(call, "function", "arguments") for call in _listed(field(message, "tool_calls"))]
    written = [field(message, name) for name in _TEXT_FIELDS] + [*calls, field(message, "function_call", "arguments")]
    usage = counted_tokens(raw, choice, Usage.estimate(asked, sum(len(str(part or "")) for part in written)))
    try:
        error = next(
            filter(_says_something, (field(raw, "error"), field(choice, "error"), field(message, "error"))), None
        )
        failed = plain_reason(_text(finish)) in FAILED
        if error is not None or failed or message is None or isinstance(message, str | list):
            # An error in the place of an answer costs no tokens, unless some are counted or a part of a reply came with
            # it.
            paid = any(written) or error is None or _says_something(field(raw, "usage"))
            usage = usage if paid else Usage(calls=1)
            raise body_error(error, raw, say, finish=_text(finish) if failed else None)
        text = text_of_content(field(message, "content"))
        thoughts = (text_of_content(field(message, name)) for name in _REASONING)
        reasoning = next(filter(None, thoughts), None)
        tool_calls = _tool_calls(message)
    except ValueError as error:
        failure = BackendError(say(str(error)), retryable=False)
        failure.usage = usage
        raise failure from None
    except BackendError as error:
        error.usage = usage
        raise
    if answer_in_reasoning and not tool_calls and not (text or "").strip() and _is_json(reasoning):
        text = reasoning
    return Completion(
        text=text,
        finish_reason=_text(finish),
        refusal=_refusal(field(message, "refusal")) or _refusal_part(field(message, "content")),
        reasoning=reasoning,
        tool_calls=tool_calls,
        usage=usage,
        model=_text(field(raw, "model")),
        fingerprint=_text(field(raw, "system_fingerprint")),
    )


_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
_TEXT_FIELDS: Final = ("content", *_REASONING)


def first_choice(raw: object) -> object:
    """The answer among those of a body or of a piece of one; None where there is none. One was asked for."""
    choices = field(raw, "choices")
    listed = choices if isinstance(choices, Sequence) and not isinstance(choices, str) else ()
    first = next((choice for choice in listed if field(choice, "index") in (None, 0, "0", "")), None)
    # An only choice that is numbered in another way is still the answer, where it is a whole message.
    return first if first is not None or len(listed) != 1 or field(listed[0], "message") is None else listed[0]


def text_of_content(content: object) -> str | None:
    """The text of a content: text itself, parts of it, or data that a server has read already.

    Raises ValueError: it is something else.
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):  # those of another kind (thinking, say) are not the answer
        parts = [part if isinstance(part, str) else _text(field(part, "text")) for part in content if _is_text(part)]
        return "".join(part for part in parts if part is not None) or None
    if isinstance(content, Mapping):
        return text_of_content([content]) if "type" in content else text_of_data(content)
    raise ValueError(f"the content is {type(content).__name__}, not text")


def _is_text(part: object) -> bool:
    return isinstance(part, str) or field(part, "type") in ("text", "output_text", None)


def _refusal(given: object) -> str | None:
    """The words of a refusal, in whatever form they are sent."""
    return _text(given) or (str(given)[:200] if _says_something(given) else None)


def _refusal_part(content: object) -> str | None:
    parts = content if isinstance(content, list) else ()
    return next((text for part in parts if (text := _text(field(part, "refusal")))), None)


def text_of_data(given: Mapping[str, Any] | list[Any]) -> str:
    """The text of data that a server has read already, instead of handing on what the model wrote.

    Raises ValueError: it holds a number whose digits are lost, or what JSON cannot hold.
    """
    waiting: list[object] = [given]
    while waiting:
        node = waiting.pop()
        if isinstance(node, float):
            raise ValueError(f"the server has read the number {node!r} itself, so that its digits are not the model's")
        waiting += node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    try:
        return json.dumps(given, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the server sent data that is no JSON: {error}") from error


def _tool_calls(message: object) -> tuple[ToolCall, ...]:
    calls = [
        _tool_call(field(call, "function") or field(call, "custom") or call)
        for call in _listed(field(message, "tool_calls"))
    ]
    # The older form of a call, which some servers send empty beside the present one.
    older = field(message, "function_call")
    if older is not None and (field(older, "name") or field(older, "arguments")):
        calls.append(_tool_call(older))
    return tuple(calls)


def _tool_call(function: object) -> ToolCall:
    arguments = field(function, "arguments")
    arguments = field(function, "input") if arguments is None else arguments
    if isinstance(arguments, Mapping | list):
        arguments = text_of_data(arguments)
    if not isinstance(arguments, str | None):
        raise ValueError(f"the arguments of a tool call are {type(arguments).__name__}, not text")
    return ToolCall(_text(field(function, "name")) or "", arguments or "")


def _listed(given: object) -> Sequence[object]:
    if isinstance(given, Mapping):
        return (given,)
    return given if isinstance(given, Sequence) and not isinstance(given, str) else ()


def _is_json(text: str | None) -> bool:
    """Whether a text is one JSON document from end to end."""
    try:
        decode((text or "").strip())
    except ValueError:
        return False
    return True


def _says_something(given: object) -> bool:
    """Whether a part that servers send empty, too (``"error": {"message": ""}``), is there."""
    if isinstance(given, Mapping):
        return any(_says_something(value) for value in given.values())
    return bool(given)


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def usage_of(raw: object, choice: object) -> object:
    """What an endpoint counts, in the first place that counts anything; None where none does."""
    # Groq has a name of its own for the counts of a stream.
    for place in (field(raw, "usage"), field(choice, "usage"), field(raw, "x_groq", "usage")):
        usage = place[-1] if isinstance(place, list) and place else place
        if any(token_count(field(usage, name)) for names in _TOKEN_COUNTS for name in names):
            return usage
    return None


def counted_tokens(raw: object, choice: object, estimate: Usage) -> Usage:
    """The tokens that an endpoint counts; what it leaves out is estimated, or a limit on them would hold nothing."""
    usage = usage_of(raw, choice)
    read, written, total = (
        next((count for name in names if (count := token_count(field(usage, name)))), 0) for names in _TOKEN_COUNTS
    )
    read = read or (max(0, total - written) if written else min(total, estimate.input_tokens)) or estimate.input_tokens
    written = written or max(0, total - read) or estimate.output_tokens
    hidden = _detail(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    if hidden and total == read + written + hidden:  # some count what was thought apart
        written += hidden
    return Usage(
        # Of SDKs that repeat requests by themselves; see `reply_forms`.
        calls=max(1, token_count(field(raw, "attempts"))),
        input_tokens=read,
        output_tokens=written,
        cached_tokens=_detail(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=hidden,
    )


def _detail(usage: object, places: Sequence[str], name: str) -> int:
    return next((count for place in places if (count := token_count(field(usage, place, name)))), 0)


def token_count(given: object) -> int:
    """A count of tokens; some servers send it as text, or with decimals. 0 where it is none that could be true."""
    if isinstance(given, str) and _COUNT.fullmatch(given.strip()):
        given = int(given.replace(",", ""))
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return given if type(given) is int and 0 < given < _IMPOSSIBLE else 0
