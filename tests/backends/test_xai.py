"""xAI's own SDK through instructor, against a server on loopback that speaks its gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent import futures
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from openai_harness import GOOD, INPUTS, PROCEDURE, REQUEST, failure

from stepguard import Guard
from stepguard.backends.instructor import InstructorBackend
from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.errors import RateLimited

xai: Any = pytest.importorskip("xai_sdk", reason="xai_sdk is not installed")


class Played:
    """Answers every request from a list, the last one again and again: a text, or one and the name of the reason for
    its end, or how many bytes of a right reply arrive, or a status of gRPC."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.script: list[Any] = [GOOD]
        self.port = 0

    def answer(self, request: Any, context: Any) -> bytes:
        """The bytes of a reply."""
        chat, usage = import_module("xai_sdk.proto").chat_pb2, import_module("xai_sdk.proto").usage_pb2
        self.requests.append(request)
        given = self.script[min(len(self.requests), len(self.script)) - 1]
        if not isinstance(given, str | tuple | int):
            context.abort(given, "slow down")
        text, reason = given if isinstance(given, tuple) else (GOOD if isinstance(given, int) else given, "REASON_STOP")
        reply = chat.GetChatCompletionResponse(id="x", model="served-model")
        ends = import_module("xai_sdk.proto").sample_pb2.FinishReason
        output = reply.outputs.add(index=0, finish_reason=ends.Value(reason))
        output.message.role, output.message.content = chat.ROLE_ASSISTANT, text
        output.message.reasoning_content = "add, then multiply"
        counts = {"prompt_tokens": 40, "completion_tokens": 16, "reasoning_tokens": 9, "total_tokens": 65}
        reply.usage.CopyFrom(usage.SamplingUsage(**counts, cached_prompt_text_tokens=30))
        whole: bytes = reply.SerializeToString()
        return whole[:given] if isinstance(given, int) else whole


@pytest.fixture
def played() -> Iterator[Played]:
    """A running server."""
    grpc, chat = import_module("grpc"), import_module("xai_sdk.proto").chat_pb2
    made = Played()
    handler = grpc.unary_unary_rpc_method_handler(
        made.answer, request_deserializer=chat.GetCompletionsRequest.FromString
    )
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("xai_api.Chat", {"GetCompletion": handler}),))
    made.port = server.add_insecure_port("localhost:0")
    server.start()
    yield made
    server.stop(0)


def test_run(played: Played) -> None:
    """A slip is asked again; a schema binds the reply, and every token counts, those of reasoning among the output."""
    instructor = import_module("instructor")
    played.script = [GOOD.replace("= 19", "= 18"), GOOD]
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    result = Guard(instructor.from_xai(client, model="grok-x")).run(PROCEDURE, INPUTS)
    client.close()
    assert (result.status, result.answer) == ("verified", 57)
    assert result.usage == Usage(calls=3, input_tokens=120, output_tokens=75, cached_tokens=90, reasoning_tokens=27)
    asked = played.requests[0]
    assert (asked.model, asked.temperature) == ("grok-x", 0.0)
    assert '"t2"' in asked.response_format.schema
    assert [message.role for message in asked.messages] == [5, 1, 2, 1] or len(asked.messages) == 4


def test_async_client(played: Played) -> None:
    """An async client is awaited; a limit is one of its kind."""
    grpc, instructor = import_module("grpc"), import_module("instructor")

    async def main() -> None:
        client = xai.AsyncClient(api_key="k", api_host=f"localhost:{played.port}")
        backend = InstructorBackend("grok-x", client=instructor.from_xai(client))
        completion = await backend.acomplete(replace(REQUEST, max_tokens=99))
        assert (completion.text, completion.finish_reason, completion.model) == (GOOD, "stop", "served-model")
        assert completion.reasoning == "add, then multiply"
        played.script = [grpc.StatusCode.RESOURCE_EXHAUSTED]
        with pytest.raises(RateLimited, match="slow down"):
            await backend.acomplete(REQUEST)
        await client.close()

    asyncio.run(main())
    assert len(played.requests) == 2


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (('{"t2": ', "REASON_MAX_LEN"), "truncated"),
        (('{"t2": ', "REASON_MAX_CONTEXT"), "truncated"),
        ("", "empty"),
        ("no JSON", "malformed"),
        (f"```json\n{GOOD.replace('t1', 't2')}\n```", "duplicate_step"),
    ],
)
def test_replies_that_are_no_answer(played: Played, given: Any, kind: str) -> None:
    """A reply that is cut, empty or no JSON is a deviation; a key that stands twice is never taken once."""
    played.script = [given, GOOD]
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    backend = InstructorBackend("grok-x", client=import_module("instructor").from_xai(client))
    result = Guard(backend).run(PROCEDURE, INPUTS)
    client.close()
    assert result.attempts[0].deviations[0].kind == kind
    assert result.status == "verified"
    assert result.usage == sum([Usage(1, 40, 25, 30, 9)] * len(played.requests), Usage())  # whatever came of a reply


def test_a_reply_that_the_server_breaks_off_is_none(played: Played) -> None:
    """What came until the server's time was up is not the model's fault: it may be asked again, and is not read."""
    played.script = [(GOOD.replace("= 19", "= 18"), "REASON_TIME_LIMIT"), GOOD]
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    backend = InstructorBackend("grok-x", client=import_module("instructor").from_xai(client))
    result = Guard(backend, retry=RetryPolicy(first_wait=0.0)).run(PROCEDURE, INPUTS)
    client.close()
    assert (result.status, [attempt.outcome for attempt in result.attempts]) == ("verified", ["error", "accepted"])
    assert not result.attempts[0].deviations


def test_a_run_goes_on_behind_failures(played: Played) -> None:
    """A limit, a reply that is cut off and one that is none are asked for again, and held against no step."""
    played.script = [import_module("grpc").StatusCode.RESOURCE_EXHAUSTED, 60, 1, GOOD]
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    backend = InstructorBackend("grok-x", client=import_module("instructor").from_xai(client))
    result = Guard(backend, retry=RetryPolicy(retries=3, first_wait=0.0)).run(PROCEDURE, INPUTS)
    client.close()
    assert [attempt.outcome for attempt in result.attempts] == ["error", "error", "error", "accepted"]
    assert (result.status, result.usage.calls, len(played.requests)) == ("verified", 4, 4)


def test_a_refusal_ends_the_run_or_asks_a_fallback(played: Played) -> None:
    """What xAI's rules forbid it refuses by a status, in no reply: it is not asked again, and another model may be."""
    played.script = [import_module("grpc").StatusCode.PERMISSION_DENIED]
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    backend = InstructorBackend("grok-x", client=import_module("instructor").from_xai(client))
    alone = Guard(backend).run(PROCEDURE, INPUTS)
    helped = Guard(backend, fallback=lambda messages: GOOD).run(PROCEDURE, INPUTS)
    client.close()
    assert (alone.status, helped.status, len(played.requests)) == ("failed", "verified", 2)
    assert "slow down" in str(alone.problem)
    assert alone.usage == Usage(calls=1)  # a refused request is not charged for


def test_failures(played: Played) -> None:
    """What passes may be asked again, what does not may not."""
    grpc, instructor = import_module("grpc"), import_module("instructor")
    client = xai.Client(api_key="k", api_host=f"localhost:{played.port}")
    backend = InstructorBackend("grok-x", client=instructor.from_xai(client))
    expected = {
        **{"INTERNAL": (500, True), "UNAVAILABLE": (503, True)},
        # xAI refuses what its rules forbid by this status, and has no other refusal.
        **{"INVALID_ARGUMENT": (400, False), "UNAUTHENTICATED": (401, False), "PERMISSION_DENIED": (403, False)},
    }
    for name, (status, retryable) in expected.items():
        played.script = [getattr(grpc.StatusCode, name)]
        error = failure(lambda backend, asked: backend.complete(asked), backend)
        assert (error.status, error.retryable) == (status, retryable)
    client.close()
