"""Agents of pydantic-ai over the wire, and the server behind an agent that knows nothing of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from conftest import ChatServer, Reply, completion_body
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_harness import ANSWER, GOOD, MENDED, PROMPT, TRUST, WRONG

from stepguard.integrations.pydantic_ai import GuardedProcedures, result_of
from stepguard.testing import no_real_requests

pytestmark = pytest.mark.once


# Over the wire


@pytest.fixture
def connect() -> Callable[..., OpenAIChatModel]:
    """Makes a chat model of pydantic-ai at an address, as a user has it: the SDK repeats requests twice."""

    def make(url: str, model: str = "some-model", **options: Any) -> OpenAIChatModel:
        http = DefaultAsyncHttpxClient(verify=False)  # reading certificates takes longer than a test
        client = AsyncOpenAI(base_url=url, api_key="sk-SECRET123", http_client=http, **options)
        return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))

    return make


def run_once(model: OpenAIChatModel, *capabilities: Any, prompt: str = PROMPT) -> Any:
    async def main() -> Any:
        async with model.client:
            return await Agent(model, capabilities=list(capabilities)).run(prompt)

    return asyncio.run(main())


def test_a_guarded_request_over_the_wire(chat_server: ChatServer, connect: Callable[..., OpenAIChatModel]) -> None:
    """The SDK sends the guard's messages with a strict schema of exactly the asked steps."""
    chat_server.play([Reply(completion_body(json.dumps(WRONG))), Reply(completion_body(json.dumps(MENDED)))])
    answer = run_once(connect(chat_server.url), GuardedProcedures(trust=TRUST))
    assert answer.output == ANSWER
    first, second = (received.body for received in chat_server.requests)
    assert first["response_format"]["json_schema"]["strict"] is True
    assert list(second["response_format"]["json_schema"]["schema"]["properties"]) == ["t1"]
    assert "inputs:" not in str(chat_server.requests)
    assert "58" not in json.dumps(second["messages"])


@pytest.mark.parametrize(("status", "requests"), [(429, 3), (500, 3), (401, 1), (404, 1)])
def test_one_layer_repeats_requests(
    chat_server: ChatServer, connect: Callable[..., OpenAIChatModel], status: int, requests: int
) -> None:
    """The SDK's two retries make three requests, not nine; the error is pydantic-ai's, and the result holds no key."""
    body = {"error": {"message": "Authorization: Bearer sk-SECRET123"}}
    chat_server.play(Reply(body, status=status, headers={"retry-after-ms": "1"}))
    with pytest.raises(ModelHTTPError) as caught:
        run_once(connect(chat_server.url), GuardedProcedures(trust=TRUST))
    assert caught.value.status_code == status
    assert len(chat_server.requests) == requests
    result = result_of(caught.value)
    assert result is not None
    assert "SECRET" not in result.to_json()


def test_a_real_model_is_not_asked_where_none_may_be(
    chat_server: ChatServer, connect: Callable[..., OpenAIChatModel]
) -> None:
    """Inside `no_real_requests` a guarded request fails before it is sent."""
    with pytest.raises(AssertionError, match="some-model"), no_real_requests():
        run_once(connect(chat_server.url), GuardedProcedures(trust=TRUST))
    assert not chat_server.requests


def test_an_agent_behind_the_server_works_unchanged(
    chat_server: ChatServer, connect: Callable[..., OpenAIChatModel]
) -> None:
    """An agent that points at `stepguard serve` gets answers, whole and streamed, and the server's refusal as error."""
    pytest.importorskip("prometheus_client")
    harness = pytest.importorskip("serve_harness")
    chat_server.play(Reply(completion_body(json.dumps(GOOD))))
    with harness.serving(chat_server.url, guard={"repair": 1}) as served:
        answer = run_once(connect(served.url, harness.MODEL), prompt=harness.VALUES)
        assert answer.output == ANSWER
        assert answer.usage.input_tokens == 10

        async def stream() -> str:
            model = connect(served.url, harness.MODEL)
            async with model.client, Agent(model).run_stream(harness.VALUES) as streamed:
                return "".join([text async for text in streamed.stream_text(delta=True, debounce_by=None)])

        assert asyncio.run(stream()) == ANSWER
        chat_server.play(Reply(completion_body(json.dumps(WRONG))))
        with pytest.raises(ModelHTTPError) as caught:
            run_once(connect(served.url, harness.MODEL), prompt=harness.VALUES)
    assert caught.value.status_code == 422
    body: Any = caught.value.body
    assert "t1 (wrong_value)" in body["message"]
    assert "57" not in body["message"].partition(" (run ")[0]
