"""Vendors as the scripted server plays them: their replies, their errors, and the clients that ask them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import ChatServer, Reply

from stepguard.backends.instructor import InstructorBackend
from stepguard.core.usage import Usage

KEY = "k0-SECRET-0123456789"


def give_aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amazon's SDK finds a key and a region in the environment, and looks for none on the network."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True, kw_only=True)
class Played:
    """One vendor.

    Attributes:
        name: what stands before the slash.
        module: its SDK.
        path: where a request goes to.
        body: a reply with this text, ended for this reason.
        ends: the reasons of a usual end, of a limit and of a refusal.
        counts: what a reply costs.
        error: the body of an error with these words.
        prompt: the texts of a request, in order.
        model: what is asked for.
        takes: its names of temperature and seed, where it takes them.
    """

    name: str
    module: str
    path: str
    body: Callable[[str | None, str | None], Any]
    ends: tuple[str, str, str]
    counts: Usage
    error: Callable[[str], Any]
    prompt: Callable[[Mapping[str, Any]], list[str]]
    model: str = "some-model"
    takes: tuple[str, ...] = ()

    @property
    def here(self) -> bool:
        return installed(self.module)

    def backend(self, server: ChatServer, **options: Any) -> InstructorBackend:
        """A backend that asks this vendor, who is at the scripted server."""
        root = server.url.removesuffix("/v1")
        key = None if self.name == "bedrock" else KEY
        return InstructorBackend(self.model, provider=self.name, base_url=root, api_key=key, **options)

    def reply(self, text: str | None, finish: str | None = None) -> Reply:
        return Reply(self.body(text, finish or self.ends[0]))


def _anthropic(text: str | None, finish: str | None) -> Any:
    thought = {"type": "thinking", "thinking": "add, then multiply", "signature": "s"}
    content = [thought] if text is None else [thought, {"type": "text", "text": text}]
    usage = {"input_tokens": 8, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 25}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "served-model", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": finish, "usage": usage}


def _google(text: str | None, finish: str | None) -> Any:
    parts: list[Any] = [{"text": "add, then multiply", "thought": True}]
    parts += [] if text is None else [{"text": text}]
    usage = {"promptTokenCount": 40, "cachedContentTokenCount": 30, "candidatesTokenCount": 16, "thoughtsTokenCount": 9}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served-model"}


def _bedrock(text: str | None, finish: str | None) -> Any:
    thought = {"reasoningContent": {"reasoningText": {"text": "add, then multiply", "signature": "s"}}}
    content = [thought] if text is None else [thought, {"text": text}]
    usage = {"inputTokens": 8, "outputTokens": 25, "totalTokens": 65}
    usage |= {"cacheReadInputTokens": 30, "cacheWriteInputTokens": 2}
    output = {"message": {"role": "assistant", "content": content}}
    return {"output": output, "stopReason": finish, "usage": usage, "metrics": {"latencyMs": 1}}


def _cohere(text: str | None, finish: str | None) -> Any:
    content = [] if text is None else [{"type": "text", "text": text}]
    usage = {
        "billed_units": {"input_tokens": 30, "output_tokens": 20},
        "tokens": {"input_tokens": 40, "output_tokens": 25},
        "cached_tokens": 30,
    }
    return {"id": "c", "finish_reason": finish, "message": {"role": "assistant", "content": content}, "usage": usage}


def _chat(text: str | None, finish: str | None) -> Any:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 40, "completion_tokens": 25, "total_tokens": 65}
    usage |= {"prompt_tokens_details": {"cached_tokens": 30}}  # type: ignore[dict-item]
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "served-model"}
    return {**head, "choices": [choice], "usage": usage}


def _texts(messages: list[Any], *path: str) -> list[str]:
    texts = []
    for message in messages:
        parts = message
        for name in path:
            parts = parts[name]
        texts.append(parts if isinstance(parts, str) else "".join(part.get("text", "") for part in parts))
    return texts


def _of_anthropic(body: Mapping[str, Any]) -> list[str]:
    return [*(block["text"] for block in body["system"]), *_texts(body["messages"], "content")]


def _of_google(body: Mapping[str, Any]) -> list[str]:
    return [*_texts([body["systemInstruction"]], "parts"), *_texts(body["contents"], "parts")]


def _of_bedrock(body: Mapping[str, Any]) -> list[str]:
    return [*(block["text"] for block in body["system"]), *_texts(body["messages"], "content")]


def _of_chat(body: Mapping[str, Any]) -> list[str]:
    return _texts(body["messages"], "content")


def _named(words: str) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}


PLAYED = (
    Played(
        name="anthropic",
        module="anthropic",
        path="/v1/messages",
        body=_anthropic,
        ends=("end_turn", "max_tokens", "refusal"),
        counts=Usage(1, 40, 25, 30, 0),
        error=_named,
        prompt=_of_anthropic,
    ),
    Played(
        name="google",
        module="google.genai",
        path="/v1beta/models/some-model:generateContent",
        body=_google,
        ends=("STOP", "MAX_TOKENS", "SAFETY"),
        counts=Usage(1, 40, 25, 30, 9),
        error=lambda words: {"error": {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED"}},
        prompt=_of_google,
        takes=("temperature", "seed"),
    ),
    Played(
        name="bedrock",
        module="boto3",
        path="/model/anthropic.claude-x/converse",
        body=_bedrock,
        ends=("end_turn", "max_tokens", "guardrail_intervened"),
        counts=Usage(1, 40, 25, 30, 0),
        error=lambda words: {"message": words},
        prompt=_of_bedrock,
        model="anthropic.claude-x",
        takes=("temperature",),
    ),
    Played(
        name="cohere",
        module="cohere",
        path="/v2/chat",
        body=_cohere,
        ends=("COMPLETE", "MAX_TOKENS", "ERROR_TOXIC"),
        counts=Usage(1, 40, 25, 30, 0),
        error=lambda words: {"message": words},
        prompt=_of_chat,
        takes=("temperature", "seed"),
    ),
    Played(
        name="mistral",
        module="mistralai",
        path="/v1/chat/completions",
        body=_chat,
        ends=("stop", "length", "content_filter"),
        counts=Usage(1, 40, 25, 30, 0),
        error=lambda words: {"object": "error", "message": words},
        prompt=_of_chat,
        takes=("temperature", "random_seed"),
    ),
    Played(
        name="writer",
        module="writerai",
        path="/v1/chat",
        body=_chat,
        ends=("stop", "length", "content_filter"),
        counts=Usage(1, 40, 25, 30, 0),
        error=_named,
        prompt=_of_chat,
        takes=("temperature",),
    ),
)


def parameters_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a request, wherever a vendor wants them."""
    inner = [body.get(name, {}) for name in ("generationConfig", "inferenceConfig")]
    return {**body, **inner[0], **inner[1]}


def needs(played: Played) -> Any:
    """A vendor as a parameter of tests, which are skipped where its SDK is missing."""
    reason = f"{played.module} is not installed"
    return pytest.param(played, id=played.name, marks=pytest.mark.skipif(not played.here, reason=reason))
