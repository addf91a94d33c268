"""LangChain's agents behind the middleware, at a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Callable
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_harness import GOOD, KEY, PROCEDURE
from serve_harness import VALUES

from stepguard import Budget, RetryPolicy
from stepguard.errors import BackendTimeout, ConfigError, InputError, RunError, RunFailed, StepNotVerified
from stepguard.integrations.openai.client import ClientCall

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")
import langchain_harness
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRefusalMiddleware, ModelRetryMiddleware
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_harness import ASKED, CHAT, FIXED, ORDER, WRONG, GuardMiddleware, Invoke, async_http, chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from stepguard.integrations.langchain import GuardedCallRefused
from stepguard.integrations.langchain import GuardMiddleware as Middleware

agent = langchain_harness.agent

pytestmark = pytest.mark.once


@tool  # type: ignore[untyped-decorator, unused-ignore]
def weather(place: str) -> str:
    """The weather somewhere."""
    return "sunny"


def _ended(finish: str) -> dict[str, Any]:
    """The body of a reply that was not finished."""
    body = completion_body('{"t2": "12 +')
    body["choices"][0]["finish_reason"] = finish
    return body


# Guarded calls


def test_a_call_that_holds_a_procedure_is_guarded(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """A slip is asked again, and the answer is a message with every step, the usage of all requests and safe facts."""
    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body(FIXED))])
    state = agent(GuardMiddleware(), tools=[weather], system_prompt="Be kind.", name="clerk")(ASKED)
    message = state["messages"][-1]
    assert message.content == "t2 = 19\nt1 = 57\nanswer: 57"
    assert message.name == "clerk"
    assert message.usage_metadata["total_tokens"] == 30
    assert message.response_metadata["finish_reason"] == "stop"
    facts = message.response_metadata["stepguard"]
    assert (facts["status"], facts["calls"], facts["found"], facts["answered"]) == ("verified", 2, "prompt", True)
    assert facts["attempts"][0]["deviations"] == [{"kind": "wrong_value", "step": "t1"}]
    assert json.loads(message.model_dump_json())["response_metadata"]["stepguard"] == facts
    assert state["stepguard"].answer == 57
    for received in chat_server.requests:
        assert "tools" not in received.body
        assert received.body["response_format"]["json_schema"]["strict"] is True
        assert "John Doe" not in str(received.body)
        assert "Be kind" not in str(received.body)


def test_every_other_call_is_passed_on_untouched(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """Prompt, tools and answer are what they are without the middleware."""
    chat_server.play(Reply(completion_body("Hello.")))
    calls: list[ClientCall] = []
    options: dict[str, Any] = {"tools": [weather], "system_prompt": "Be kind."}
    plain = agent(**options)(CHAT)["messages"][-1]
    state = agent(GuardMiddleware(on_call=calls.append), **options)(CHAT)
    first, second = (received.body for received in chat_server.requests)
    assert first == second
    assert "stepguard" not in state
    assert state["messages"][-1].content == plain.content
    assert state["messages"][-1].response_metadata.keys() == plain.response_metadata.keys()
    assert [(call.guarded, call.model) for call in calls] == [(False, "gpt-x")]


@pytest.mark.parametrize(
    "options",
    [
        {"procedure": PROCEDURE},
        {"procedure": "sums", "procedures": {"sums": PROCEDURE}},
        {"procedure": lambda request: request.runtime.context["wanted"], "procedures": {"sums": PROCEDURE}},
    ],
)
def test_a_procedure_can_be_named(
    agent: Callable[..., Invoke], chat_server: ChatServer, options: dict[str, Any]
) -> None:
    """As an object, by name, or by a function of the call; its values stand in what the user says."""
    chat_server.play(Reply(completion_body(GOOD)))
    state = agent(GuardMiddleware(**options), context_schema=dict)(
        [*CHAT, AIMessage("He is well."), HumanMessage([{"type": "text", "text": VALUES}])], context={"wanted": "sums"}
    )
    assert state["stepguard"].answer == 57
    assert "John Doe" not in str(chat_server.requests)


def test_messages_are_data_unless_their_role_is_trusted(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """By default the middleware and its functions alone say what is run, and on what."""
    chat_server.play(Reply(completion_body(GOOD)))
    assert "stepguard" not in agent(Middleware())(ASKED)
    with pytest.raises(InputError, match="has no value"):
        agent(Middleware(procedure=PROCEDURE))(ASKED)
    for inputs in ({"x": 12, "y": 7}, lambda request: request.runtime.context):
        named = Middleware(procedure=PROCEDURE, inputs=inputs)
        assert agent(named, context_schema=dict)(ASKED, context={"x": 12, "y": 7})["stepguard"].answer == 57
    with pytest.raises(ConfigError, match="not trusted"):
        agent(Middleware(guarded_only=True))(ASKED)
    for wrong in ({"inputs": {"x": 1}}, {"procedure": PROCEDURE, "inputs": 3}, {"trust": "user"}):
        with pytest.raises(ConfigError, match=r"inputs|trust"):
            Middleware(**wrong)


def test_a_call_that_cannot_be_understood_is_an_error(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """No model is asked where a value is missing, or the agent wants an answer of another form."""

    class Total(BaseModel):
        total: int

    with pytest.raises(InputError, match="'x'"):
        agent(GuardMiddleware(procedure=PROCEDURE))(CHAT)
    with pytest.raises(ConfigError, match="response_format"):
        agent(GuardMiddleware(), response_format=Total)(ASKED)
    assert not chat_server.requests


def test_a_tool_call_beside_the_answer_is_not_taken(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """No tool was offered: a reply that calls one is refused as a whole, and the tool is not run."""
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"place": "here"}'}}
    chat_server.play([Reply(completion_body(GOOD, tool_calls=[call])), Reply(completion_body(GOOD))])
    state = agent(GuardMiddleware(), tools=[weather])(ASKED)
    assert [attempt.outcome for attempt in state["stepguard"].attempts] == ["rejected", "accepted"]
    assert [message.type for message in state["messages"]] == ["human", "ai"]


def test_a_reply_that_was_cut_is_asked_again(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """What the SDK raises for such a reply is misbehaviour of the model, and its usage is counted."""
    chat_server.play([Reply(_ended("length")), Reply(completion_body(GOOD))])
    result = agent(GuardMiddleware())(ASKED)["stepguard"]
    assert result.verified
    assert result.attempts[0].deviations[0].kind == "truncated"
    assert result.usage.tokens == 30


def test_a_filtered_reply_is_a_refusal_of_the_model(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """It is no failure either: the run abstains, and says why."""
    chat_server.play(Reply(_ended("content_filter")))
    message = agent(GuardMiddleware(on_unverified="return"))(ASKED)["messages"][-1]
    assert message.response_metadata["stepguard"]["status"] == "abstained"
    assert message.response_metadata["stepguard"]["problem"]["kind"] == "refused"


# No answer


def test_what_is_not_verified_is_the_frameworks_own_error(
    agent: Callable[..., Invoke], chat_server: ChatServer
) -> None:
    """It holds the result, is not repeated by LangChain's retries, survives pickling, and tells no right value."""
    chat_server.play(Reply(completion_body('{"t2": "1234567 + 7 = 1234574", "t1": "1234574 * 3 = 1"}')))
    asked = [{"role": "user", "content": ORDER.replace("12", "1234567")}]
    with pytest.raises(ModelRefusalError) as caught:
        agent(ModelRetryMiddleware(initial_delay=0), GuardMiddleware(repair=1))(asked)
    error = caught.value
    assert isinstance(error, GuardedCallRefused)
    assert isinstance(error, RunError)
    assert isinstance(error.__cause__, StepNotVerified)
    assert error.result.values["t2"] == 1234574
    assert error.result.usage.calls == len(chat_server.requests) == 2
    assert "stopped at step t1 (wrong_value)" in str(error)
    assert pickle.loads(pickle.dumps(error)).result.status == "abstained"
    assert "3703722" not in f"{error}{error.raw_message}"


def test_a_returned_refusal_is_no_answer_and_tells_no_right_value(
    agent: Callable[..., Invoke], chat_server: ChatServer
) -> None:
    """Neither the conversation that goes on nor anything in its messages holds what the checker knows."""
    chat_server.play(Reply(completion_body('{"t2": "1234567 + 7 = 1234574", "t1": "1234574 * 3 = 1"}')))
    asked = [{"role": "user", "content": ORDER.replace("12", "1234567")}]
    talk = agent(GuardMiddleware(repair=1, on_unverified="return"), checkpointer=InMemorySaver())
    thread: dict[str, Any] = {"configurable": {"thread_id": "1"}}
    state = talk(asked, config=thread)
    message = state["messages"][-1]
    assert message.text == ""
    assert message.content_blocks[0]["type"] == "refusal"
    assert message.response_metadata["finish_reason"] == "content_filter"
    assert message.response_metadata["stepguard"]["problem"] == {"step": "t1", "kind": "wrong_value"}
    assert state["stepguard"].status == "abstained"
    state = talk([{"role": "user", "content": "And now?"}], config=thread)
    assert "stepguard" not in state, "the result of an earlier invocation is not taken for that of this one"
    assert "stepguard gives no answer" in str(chat_server.requests[-1].body)
    assert "3703722" not in f"{state}{[received.body for received in chat_server.requests]}"


def test_a_returned_refusal_is_known_to_the_framework(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """LangChain's own middleware takes it for what it is."""
    chat_server.play(Reply(completion_body(WRONG)))
    with pytest.raises(ModelRefusalError, match="stopped at step t1"):
        agent(ModelRefusalMiddleware(), GuardMiddleware(repair=1, on_unverified="return"))(ASKED)


def test_a_budget_ends_a_call_with_what_was_verified(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """A budget is that of one call."""
    chat_server.play(Reply(completion_body(WRONG)))
    middleware = GuardMiddleware(budget=Budget(calls=1), on_unverified="return")
    message = agent(middleware)(ASKED)["messages"][-1]
    assert message.response_metadata["finish_reason"] == "length"


# Failures


def test_one_layer_repeats_requests(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """The model's two retries make three requests, a refusal one; the cause is kept, and no key is told."""
    chat_server.play(Reply({"error": {"message": "busy"}}, status=429, headers={"retry-after-ms": "1"}))
    with pytest.raises(GuardedCallRefused) as caught:
        agent(GuardMiddleware(), retries=2)(ASKED)
    assert len(chat_server.requests) == 3
    failed = caught.value.__cause__
    assert isinstance(failed, RunFailed)
    assert failed.__cause__ is not None
    assert isinstance(failed.__cause__.__cause__, openai.RateLimitError)
    chat_server.requests.clear()
    chat_server.play(Reply({"error": {"message": f"no such model for {KEY}"}}, status=404))
    with pytest.raises(GuardedCallRefused) as caught:
        agent(GuardMiddleware(retry=RetryPolicy(first_wait=0)), retries=2)(ASKED)
    assert len(chat_server.requests) == 1
    assert KEY not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.result.to_json()}"


def test_a_server_that_does_not_answer_is_given_up(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """The time-out of the guard bounds a request, blocking or awaited."""
    chat_server.play(Reply(completion_body(GOOD), delay=60))
    started = time.monotonic()
    with pytest.raises(GuardedCallRefused) as caught:
        agent(GuardMiddleware(retry=RetryPolicy(retries=0, timeout=0.2)))(ASKED)
    assert isinstance(caught.value.result.error, BackendTimeout)
    assert time.monotonic() - started < 30


def test_an_interrupt_of_the_graph_goes_through(agent: Callable[..., Invoke], chat_server: ChatServer) -> None:
    """Middleware behind the guard may stop the graph, and the call runs when it is resumed."""
    chat_server.play(Reply(completion_body(GOOD)))

    class Approve(AgentMiddleware[Any, Any]):  # type: ignore[misc, unused-ignore]
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            assert interrupt("may it?") == "yes"
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            assert interrupt("may it?") == "yes"
            return await handler(request)

    talk = agent(GuardMiddleware(), Approve(), checkpointer=InMemorySaver())
    thread: dict[str, Any] = {"configurable": {"thread_id": "1"}}
    assert talk(ASKED, config=thread)["__interrupt__"][0].value == "may it?"
    assert not chat_server.requests
    assert talk(Command(resume="yes"), config=thread)["stepguard"].answer == 57


def test_cancellation_leaves_nothing_behind(chat_server: ChatServer) -> None:
    """No further request is made, no task is left, and what was spent is told."""
    calls: list[ClientCall] = []

    async def main() -> int:
        async with async_http() as http:
            model = chat_model(chat_server, http_async_client=http)
            made: Any = create_agent(model, middleware=[GuardMiddleware(on_call=calls.append)])
            task = asyncio.create_task(made.ainvoke({"messages": ASKED}))
            while len(chat_server.requests) < 2:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return len(asyncio.all_tasks()) - 1

    chat_server.play([Reply(completion_body(WRONG)), Reply(completion_body(GOOD), delay=60)])
    assert asyncio.run(main()) == 0
    assert len(chat_server.requests) == 2
    (call,) = calls
    assert call.result is not None
    assert call.result.values["t2"] == 19
    assert call.result.usage.calls == 2
