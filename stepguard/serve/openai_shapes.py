"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.integrations.chat_answers import completion_chunks
from stepguard.serve.errors import Problem
from stepguard.serve.shapes import Asked, Finished, Options, error_body, refuse, sse, wants_json

__all__ = ["Chat", "read_messages", "read_model"]

_REFUSED: Final = ("n", "tools", "functions", "tool_choice", "function_call", "logprobs", "audio", "web_search_options")
_HARMLESS: Final[Mapping[str, tuple[object, ...]]] = {
    "n": (1,),
    "logprobs": (False,),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
}
_SET_ASIDE: Final = (
    *("temperature", "max_tokens", "max_completion_tokens", "stop", "prediction", "modalities", "parallel_tool_calls"),
    "top_logprobs",
)
"""The guard chooses the temperature by itself, and its replies are as long as the steps are."""
_READ: Final = frozenset({"model", "messages", "stream", "stream_options", "seed", "response_format"})


class Chat:
    """``POST /v1/chat/completions``."""

    name: Final = "chat"

    def read(self, body: Mapping[str, Any]) -> Asked:
        options = body.get("stream_options")
        return Asked(
            read_model(body),
            read_messages(body.get("messages")),
            stream=body.get("stream") is True,
            include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
            body=body,
        )

    def options(self, body: Mapping[str, Any]) -> Options:
        refuse(body, _REFUSED, _HARMLESS)
        # What is left goes with every call, also what only this upstream knows.
        taken = {*_REFUSED, *_SET_ASIDE, *_READ}
        more = {name: value for name, value in body.items() if name not in taken and value is not None}
        seed = body.get("seed")
        return Options(
            {"extra_body": more} if more else {},
            seed=seed if type(seed) is int else None,
            wants_json=wants_json(body.get("response_format"), "response_format"),
            set_aside=tuple(name for name in _SET_ASIDE if body.get(name) is not None),
        )

    def answer(self, finished: Finished) -> dict[str, Any]:
        return dict(finished.completion)

    def events(self, finished: Finished) -> Iterator[bytes]:
        for chunk in completion_chunks(self.answer(finished), include_usage=finished.include_usage):
            yield sse(chunk)
        yield sse("[DONE]")

    def error(self, problem: Problem) -> dict[str, Any]:
        return {"error": error_body(problem)}

    def error_event(self, problem: Problem) -> bytes:
        return sse(self.error(problem))

    def answers(self, body: Mapping[str, Any]) -> bool:
        return isinstance(body.get("choices"), list)

    def ends(self, event: Mapping[str, Any]) -> bool:
        choices = event.get("choices")
        return isinstance(choices, list) and any(
            isinstance(choice, Mapping) and choice.get("finish_reason") for choice in choices
        )


def read_model(body: Mapping[str, Any]) -> str:
    """The model that a request names; empty where it names none, which is for the upstream to judge."""
    model = body.get("model")
    return model if isinstance(model, str) else ""


def read_messages(given: object) -> list[Mapping[str, Any]]:
    """The messages in a request, in their order; whether they are any good is for their reader to say."""
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
