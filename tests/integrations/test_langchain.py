"""LangChain agents with the middleware, and LangChain's client at `stepguard serve`, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import GOOD, KEY, PROCEDURE
from serve_harness import MODEL, VALUES, good_answer, serving

from stepguard import Budget, RetryPolicy
from stepguard.errors import (
    BackendTimeout,
    ConfigError,
    InputError,
    MissingExtraError,
    RunError,
    RunFailed,
    StepNotVerified,
)
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.calls import ClientCall

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")
from langchain.agents import create_agent  # type: ignore[import-not-found, unused-ignore]
from langchain.agents.middleware import (  # type: ignore[import-not-found, unused-ignore]
    AgentMiddleware,
    ModelRefusalMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    wrap_model_call,
)
from langchain_core.exceptions import ModelRefusalError  # type: ignore[import-not-found, unused-ignore]
from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found, unused-ignore]
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage  # type: ignore[import-not-found, unused-ignore]
from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found, unused-ignore]
from langchain_core.tools import tool  # type: ignore[import-not-found, unused-ignore]
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found, unused-ignore]
from langgraph.checkpoint.memory import InMemorySaver  # type: ignore[import-not-found, unused-ignore]
from langgraph.types import Command, interrupt  # type: ignore[import-not-found, unused-ignore]
from pydantic import BaseModel, Field

from stepguard.integrations.langchain import GuardedCallRefused
from stepguard.integrations.langchain import GuardMiddleware as Middleware

pytestmark = pytest.mark.once

WRONG = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}'
FIXED = '{"t1": "19 * 3 = 57"}'
ORDER = "# John Doe\ninputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3"
ASKED: list[Any] = [{"role": "user", "content": ORDER}]
CHAT: list[Any] = [{"role": "user", "content": "Tell me of John Doe."}]


TRUST = Trust(procedures=("user",), inputs=("user",))


def GuardMiddleware(**options: Any) -> Middleware:  # noqa: N802
    """The middleware of a host that trusts its users, where nothing else is said."""
    return Middleware(**{"trust": TRUST, **options})


@tool  # type: ignore[untyped-decorator, unused-ignore]
def weather(place: str) -> str:
    """The weather somewhere."""
    return "sunny"


@pytest.fixture(autouse=True)
def untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent to LangSmith, whatever the environment says."""
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")


Invoke = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def agent(request: pytest.FixtureRequest, chat_server: ChatServer) -> Callable[..., Invoke]:
    """Makes an agent at the server, and gives what invokes it, blocking or awaited."""

    def make(*middleware: AgentMiddleware[Any, Any], retries: int = 0, **options: Any) -> Invoke:
        def made(**http: Any) -> Any:
            model: Any = _chat(chat_server, max_retries=retries, **http)
            return create_agent(model, middleware=middleware, **options)

        def invoke(messages: Any, **more: Any) -> dict[str, Any]:
            state = messages if isinstance(messages, Command) else {"messages": messages}
            if request.param == "sync":
                with _http() as http:
                    return dict(made(http_client=http).invoke(state, **more))

            async def main() -> dict[str, Any]:
                async with _async_http() as http:
                    return dict(await made(http_async_client=http).ainvoke(state, **more))

            return asyncio.run(main())

        return invoke

    return make


def _http() -> Any:
    return openai.DefaultHttpxClient(verify=False)  # reading certificates takes longer than a test


def _async_http() -> Any:
    return openai.DefaultAsyncHttpxClient(verify=False)


def _chat(server: Any, **options: Any) -> ChatOpenAI:
    """LangChain's client at a server; clients that are not given are never used, and not made either."""
    given: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "model": "gpt-x", "max_retries": 0}
    unused = {"http_client": _http(), "http_async_client": _async_http()}
    return ChatOpenAI(**{**given, **unused, **options})


def _ended(finish: str) -> dict[str, Any]:
    """The body of a reply that was not finished."""
    body = completion_body('{"t2": "12 +')
    body["choices"][0]["finish_reason"] = finish
    return body


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
        async with _async_http() as http:
            model = _chat(chat_server, http_async_client=http)
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
                async with _async_http() as http:
                    made = create_agent(_chat(chat_server, http_async_client=http), middleware=[GuardMiddleware()])
                    return await amain(made, messages)

            return "".join(asyncio.run(run()))
        with _http() as http:
            made: Any = create_agent(_chat(chat_server, http_client=http), middleware=[GuardMiddleware()])
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
        async with _async_http() as http:
            made: Any = create_agent(_chat(chat_server, http_async_client=http), middleware=[GuardMiddleware()])
            return answers(await asyncio.gather(*(made.ainvoke({"messages": each}) for each in asked)))

    if awaited:
        found = asyncio.run(main())
    else:
        with _http() as http, ThreadPoolExecutor(8) as pool:
            made: Any = create_agent(_chat(chat_server, http_client=http), middleware=[GuardMiddleware()])
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


@pytest.mark.parametrize(
    "options",
    [
        *({"on_unverified": "ignore"}, {"at_least": "sure"}, {"on_call": 3}, {"settings": {}}, {"procedure": "sums"}),
        *({"procedures": {"sums": "t = 1"}}, {"stop_early": True}, {"observe": True}, {"parallel": 0}),
    ],
)
def test_options_that_cannot_work_are_told_at_once(options: dict[str, Any]) -> None:
    """A wrong option is an error when the middleware is made."""
    with pytest.raises(ConfigError):
        GuardMiddleware(**options)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without LangChain the module says what to install."""
    for name in [each for each in sys.modules if each.startswith("stepguard.integrations.langchain")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(MissingExtraError, match=r"stepguard\[langchain\]"):
        importlib.import_module("stepguard.integrations.langchain")


# LangChain's client at the server


@pytest.fixture
def client(chat_server: ChatServer) -> Iterator[ChatOpenAI]:
    """LangChain's client with its own retries, at a guarding server."""
    with serving(chat_server.url) as served, _http() as http:
        yield _chat(served, model=MODEL, max_retries=2, http_client=http)


def test_the_client_works_unchanged_at_the_server(chat_server: ChatServer, client: ChatOpenAI) -> None:
    """Invoked or streamed, it gets the verified answer."""
    chat_server.play(good_answer)
    message = client.invoke(VALUES)
    assert message.text == "t2 = 19\nt1 = 57\nanswer: 57"
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == 15
    assert "".join(chunk.text for chunk in client.stream(VALUES)) == message.text


def test_the_client_is_awaited_at_the_server(chat_server: ChatServer) -> None:
    """The same without blocking."""
    chat_server.play(good_answer)

    async def main(served: Any) -> list[str]:
        async with _async_http() as http:
            model = _chat(served, model=MODEL, http_async_client=http)
            found = await asyncio.gather(model.ainvoke(VALUES), model.ainvoke('{"x": 1, "y": 2}'))
            return [message.text for message in found]

    with serving(chat_server.url) as served:
        assert asyncio.run(main(served)) == ["t2 = 19\nt1 = 57\nanswer: 57", "t2 = 3\nt1 = 9\nanswer: 9"]


def test_the_client_does_not_repeat_what_is_not_verified(chat_server: ChatServer) -> None:
    """Status 422 is the SDK's own error, the client's retries leave it alone, and no right value is told."""
    chat_server.play(Reply(completion_body('{"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}')))
    with serving(chat_server.url, guard={"repair": 1}) as served, _http() as http:
        model = _chat(served, model=MODEL, max_retries=2, http_client=http)
        with pytest.raises(openai.UnprocessableEntityError, match="step t1") as caught:
            model.invoke(VALUES)
        asked = len(chat_server.requests)
        with pytest.raises(openai.UnprocessableEntityError):
            list(model.stream(VALUES))
    assert len(chat_server.requests) == 2 * asked == 4
    assert isinstance(caught.value.body, dict)
    assert "57" not in caught.value.body["message"].partition("(run")[0]
