"""LangChain around the middleware: other middleware, streams, many calls, logs, and its client at our server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import GOOD, KEY, good_answer
from serve_harness import MODEL, VALUES, serving

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")
import langchain_harness
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, wrap_model_call
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_harness import (
    ASKED,
    CHAT,
    FIXED,
    ORDER,
    WRONG,
    GuardMiddleware,
    Invoke,
    async_http,
    blocking_http,
    chat_model,
)
from langchain_openai import ChatOpenAI
from pydantic import Field

from stepguard.integrations.langchain import GuardedCallRefused

agent = langchain_harness.agent

pytestmark = pytest.mark.once


class Thinker(BaseChatModel):  # type: ignore[misc, unused-ignore]
    """A model of no known family, that answers by a function of what it is sent."""

    answer: Callable[[list[BaseMessage]], str]
    bound: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "thinker"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        self.bound.append(kwargs)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer(messages)))])


# Around it


def test_middleware_behind_it_sees_single_requests(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """What stands in front of it sees one call."""
    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body(FIXED))])
    seen: list[str] = []

    class Log(AgentMiddleware[Any, Any]):  # type: ignore[misc, unused-ignore]
        def __init__(self, mark: str) -> None:
            self.mark = mark
            self.tools: list[Any] = []

        @property
        def name(self) -> str:
            return self.mark

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(self.mark)
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(self.mark)
            return await handler(request)

    agent(Log("front"), GuardMiddleware(), Log("behind"))(ASKED)
    assert seen == ["front", "behind", "behind"]


@pytest.mark.parametrize("awaited", [False, True])
def test_a_stream_of_messages_holds_the_answer_alone(chat_server: ChatServer, awaited: bool) -> None:
    """Replies that nobody has checked yet are not streamed; a call that is passed on is, as ever."""
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        for choice in (
            {"index": 0, "delta": {"role": "assistant", "content": "{text}"}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        )
    ]
    texts = iter([WRONG, FIXED, "Hello."])

    def script(received: Received) -> Reply:
        text = json.dumps(next(texts))[1:-1]
        return Reply(events=[*(json.dumps(chunk).replace("{text}", text) for chunk in chunks), "[DONE]"])

    chat_server.play(script)

    async def amain(made: Any, messages: Any) -> list[str]:
        return [piece.text async for piece, _ in made.astream({"messages": messages}, stream_mode="messages")]

    def main(messages: Any) -> str:
        if awaited:

            async def run() -> list[str]:
                async with async_http() as http:
                    made = create_agent(chat_model(chat_server, http_async_client=http), middleware=[GuardMiddleware()])
                    return await amain(made, messages)

            return "".join(asyncio.run(run()))
        with blocking_http() as http:
            made: Any = create_agent(chat_model(chat_server, http_client=http), middleware=[GuardMiddleware()])
            return "".join(piece.text for piece, _ in made.stream({"messages": messages}, stream_mode="messages"))

    assert main(ASKED) == "t2 = 19\nt1 = 57\nanswer: 57"
    assert main(CHAT) == "Hello."
    assert all(received.body["stream"] for received in chat_server.requests)


@pytest.mark.parametrize("awaited", [False, True])
def test_concurrent_calls_do_not_mix(chat_server: ChatServer, awaited: bool) -> None:
    """Answers that come back in another order land in their own calls."""
    firsts: list[int] = []

    def script(received: Received) -> Reply:
        firsts.append(1)
        reply = good_answer(received)
        return Reply(reply.body, delay=0.3 / len(firsts))

    chat_server.play(script)
    asked = [[{"role": "user", "content": ORDER.replace("12", str(100 * at))}] for at in range(1, 9)]

    def answers(states: Any) -> list[int]:
        return [state["stepguard"].answer for state in states]

    async def main() -> list[int]:
        async with async_http() as http:
            made: Any = create_agent(chat_model(chat_server, http_async_client=http), middleware=[GuardMiddleware()])
            return answers(await asyncio.gather(*(made.ainvoke({"messages": each}) for each in asked)))

    if awaited:
        found = asyncio.run(main())
    else:
        with blocking_http() as http, ThreadPoolExecutor(8) as pool:
            made: Any = create_agent(chat_model(chat_server, http_client=http), middleware=[GuardMiddleware()])
            found = answers(pool.map(lambda each: made.invoke({"messages": each}), asked))
    assert found == [3 * (100 * at + 7) for at in range(1, 9)]


def test_a_model_of_another_family_is_bound_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default nothing, since parameters differ; `settings` names them. Tokens nobody counts are estimated."""
    model = Thinker(answer=lambda messages: GOOD)
    made: Any = create_agent(model, middleware=[GuardMiddleware()])
    message = made.invoke({"messages": ASKED})["messages"][-1]
    assert message.text.endswith("answer: 57")
    assert message.usage_metadata["output_tokens"] == -(-len(GOOD) // 4)
    made = create_agent(model, middleware=[GuardMiddleware(settings=lambda request: {"top_k": request.attempt})])
    made.invoke({"messages": ASKED})
    assert model.bound == [{}, {"top_k": 1}]


def test_a_reply_of_several_messages_is_no_reply() -> None:
    """Middleware that makes something else of a reply ends the run, and nothing of it is read."""

    @wrap_model_call  # type: ignore[untyped-decorator, unused-ignore]
    def double(request: ModelRequest, handler: Any) -> Any:
        response = handler(request)
        response.result = [*response.result, *response.result]
        return response

    made: Any = create_agent(Thinker(answer=lambda messages: GOOD), middleware=[GuardMiddleware(), double])
    with pytest.raises(GuardedCallRefused) as caught:
        made.invoke({"messages": ASKED})
    assert "one AIMessage was expected" in str(caught.value.result.error)


def test_logs_name_what_happened_and_hold_no_content(
    agent: Callable[..., Invoke], chat_server: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The events tell guarded calls from passed ones, without prompts, values and keys."""
    chat_server.play([Reply(completion_body(GOOD)), Reply(completion_body("Hello."))])
    with caplog.at_level(logging.INFO, logger="stepguard"):
        agent(GuardMiddleware())(ASKED)
        agent(GuardMiddleware())(CHAT)
    told = "\n".join(record.getMessage() for record in caplog.records if record.name == "stepguard")
    assert "chat_guarded" in told
    assert "chat_passed" in told
    told = re.sub(r"run_id='\w+'|seconds=\S+", "", told)
    assert not any(word in told for word in ("John Doe", "57", KEY))


# LangChain's client at the server


@pytest.fixture
def client(chat_server: ChatServer) -> Iterator[ChatOpenAI]:
    """LangChain's client with its own retries, at a guarding server."""
    with serving(chat_server.url) as served, blocking_http() as http:
        yield chat_model(served, model=MODEL, max_retries=2, http_client=http)


def test_the_client_works_unchanged_at_the_server(chat_server: ChatServer, client: ChatOpenAI) -> None:
    """Invoked or streamed, it gets the verified answer."""
    chat_server.play(good_answer)
    message = client.invoke(VALUES)
    assert message.text == "t2 = 19\nt1 = 57\nanswer: 57"
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == 1017
    assert "".join(chunk.text for chunk in client.stream(VALUES)) == message.text


def test_the_client_is_awaited_at_the_server(chat_server: ChatServer) -> None:
    """The same without blocking."""
    chat_server.play(good_answer)

    async def main(served: Any) -> list[str]:
        async with async_http() as http:
            model = chat_model(served, model=MODEL, http_async_client=http)
            found = await asyncio.gather(model.ainvoke(VALUES), model.ainvoke('{"x": 1, "y": 2}'))
            return [message.text for message in found]

    with serving(chat_server.url) as served:
        assert asyncio.run(main(served)) == ["t2 = 19\nt1 = 57\nanswer: 57", "t2 = 3\nt1 = 9\nanswer: 9"]


def test_the_client_does_not_repeat_what_is_not_verified(chat_server: ChatServer) -> None:
    """Status 422 is the SDK's own error, the client's retries leave it alone, and no right value is told."""
    chat_server.play(Reply(completion_body('{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}')))
    with serving(chat_server.url, guard={"repair": 1}) as served, blocking_http() as http:
        model = chat_model(served, model=MODEL, max_retries=2, http_client=http)
        with pytest.raises(openai.UnprocessableEntityError, match="step t1") as caught:
            model.invoke(VALUES)
        asked = len(chat_server.requests)
        with pytest.raises(openai.UnprocessableEntityError):
            list(model.stream(VALUES))
    assert len(chat_server.requests) == 2 * asked == 4
    assert isinstance(caught.value.body, dict)
    assert "57" not in caught.value.body["message"].partition("(run")[0]
