"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.integrations.chat.answers import completion_chunks
from stepguard.integrations.chat.messages import read_arguments
from stepguard.serve.errors import HttpProblem
from stepguard.serve.shapes import ChatRequest, Finished, Parameters, error_body, sse, unknown_parameters

_KNOWN_PARAMETERS: Final = frozenset(
    {"max_completion_tokens", "max_tokens", "modalities", "n", "response_format", "seed", "stream", "stream_options"}
    | {"audio", "function_call", "functions", "logprobs", "parallel_tool_calls", "prediction", "stop", "tool_choice"}
    | {"tools", "top_logprobs", "web_search_options"}
)
"""Parameters that a guarded call honours or refuses by name."""


class Chat:
    """``POST /v1/chat/completions``."""

    name: Final = "chat"

    def read(self, body: Mapping[str, Any]) -> ChatRequest:
        options = body.get("stream_options")
        return ChatRequest(
            read_model(body),
            read_messages(body.get("messages")),
            stream=body.get("stream") is True,
            include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
            body=body,
        )

    def parameters(self, body: Mapping[str, Any]) -> Parameters:
        known = {name: value for name, value in body.items() if name in _KNOWN_PARAMETERS and value is not None}
        # All others go with every call, also those that only this upstream knows.
        more = {name: body[name] for name in unknown_parameters(body, _KNOWN_PARAMETERS, ("model", "messages"))}
        return Parameters({**known, "extra_body": more} if more else known)

    def answer(self, finished: Finished) -> dict[str, Any]:
        return dict(finished.completion)

    def events(self, finished: Finished) -> Iterator[bytes]:
        for chunk in completion_chunks(self.answer(finished), include_usage=finished.include_usage):
            yield sse(chunk)
        yield sse("[DONE]")

    def error(self, problem: HttpProblem) -> dict[str, Any]:
        return {"error": error_body(problem)}

    def error_event(self, problem: HttpProblem) -> bytes:
        return sse(self.error(problem))

    def ends(self, event: Mapping[str, Any]) -> bool:
        choices = event.get("choices")
        return isinstance(choices, list) and any(
            isinstance(choice, Mapping) and choice.get("finish_reason") for choice in choices
        )


def read_completion(body: Mapping[str, Any]) -> ChatRequest:
    """Read the messages of a request at any path: messages, a prompt, instructions or the items of a conversation."""
    return ChatRequest(
        read_model(body), read_messages(read_arguments(dict(body))), stream=False, include_usage=False, body=body
    )


def read_model(body: Mapping[str, Any]) -> str:
    """The model that a request names; empty where it names none, which is for the upstream to judge."""
    model = body.get("model")
    return model if isinstance(model, str) else ""


def read_messages(given: object) -> list[Mapping[str, Any]]:
    """The messages in a request, in their order; whether they are any good is for their reader to say."""
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
