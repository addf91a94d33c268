"""Agents of pydantic-ai: guarded requests, checked outputs, and the server behind an agent that knows nothing of it."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from conftest import ChatServer, Reply, completion_body
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, ModelRetry, TextPart, ToolCallPart, UsageLimits  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.messages import ImageUrl, ModelMessagesTypeAdapter, ModelRequest  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.models.fallback import FallbackModel  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.models.function import AgentInfo, FunctionModel  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.profiles import ModelProfile  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found, unused-ignore]
from pydantic_ai.usage import RequestUsage, RunUsage  # type: ignore[import-not-found, unused-ignore]

from stepguard import Procedure, RetryPolicy, Step
from stepguard.errors import ConfigError, InputError, RunError
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.pydantic_ai import (
    GuardedProcedures,
    NotVerified,
    OutputCheck,
    OutputNotVerified,
    VerifiedOutput,
    check_of,
    result_of,
)
from stepguard.testing import no_real_requests

pytestmark = pytest.mark.once

SUMS = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
INPUTS = {"x": 12, "y": 7}
PROMPT = "inputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3\n"
TRUST = Trust(procedures=("system", "user"), inputs=("user",))
GOOD = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}
WRONG = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}
MENDED = {"t1": "19 * 3 = 57"}
ANSWER = "t2 = 19\nt1 = 57\nanswer: 57"


class Sums(BaseModel):
    t2: int
    t1: int


def said(messages: list[ModelMessage]) -> str:
    """What stands in messages: texts, arguments and requests to try again."""
    return " ".join(
        str(getattr(part, "content", None) or getattr(part, "args", "")) for each in messages for part in each.parts
    )


def run(agent: Agent[Any, Any], prompt: Any, **options: Any) -> Any:
    """One run on a loop of its own (the framework's `run_sync` leaves the loop that it makes open)."""
    return asyncio.run(agent.run(prompt, **options))


class Double:
    """A model by a script, the last reply again and again; it keeps all that it was given."""

    def __init__(self, *replies: Any, profile: ModelProfile | None = None, name: str | None = None) -> None:
        self.left = list(replies)
        self.asked: list[tuple[list[ModelMessage], AgentInfo]] = []
        self.model = FunctionModel(self.answer, profile=profile, model_name=name)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append((list(messages), info))
        reply = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ModelResponse):
            return reply
        usage = RequestUsage(input_tokens=10, output_tokens=5)
        if isinstance(reply, dict) and info.output_tools:
            names = list(info.output_tools[0].parameters_json_schema["properties"])
            reply = {"response": reply} if names == ["response"] and names != list(reply) else reply
            return ModelResponse([ToolCallPart(info.output_tools[0].name, json.dumps(reply))], usage=usage)
        return ModelResponse([TextPart(reply if isinstance(reply, str) else json.dumps(reply))], usage=usage)

    @property
    def told(self) -> str:
        """Everything the model was given, but for ids and times."""
        return " ".join(said(messages) for messages, _ in self.asked)


def agent(double: Double, *capabilities: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(double.model, capabilities=list(capabilities), **options)


# Guarded requests


@pytest.mark.parametrize("way", ["prompt", "instructions", "construction", "named", "deps"])
def test_a_request_that_asks_for_a_procedure_is_guarded(way: str) -> None:
    """In the prompt, in the instructions, at construction, by name or by the run's deps: it is run and mended."""
    double = Double(WRONG, MENDED)
    text = "inputs: x, y\nt2 = x + y\nt1 = t2 * 3"
    ways: dict[str, tuple[Any, dict[str, Any], str, Any]] = {
        "prompt": (GuardedProcedures(trust=TRUST), {}, PROMPT, None),
        "instructions": (GuardedProcedures(trust=TRUST), {"instructions": text}, "x = 12\ny = 7", None),
        "construction": (GuardedProcedures(procedure=str(SUMS), inputs=INPUTS), {}, "John Doe", None),
        "named": (GuardedProcedures({"sums": SUMS}, procedure="sums", trust=TRUST), {}, '{"x": 12, "y": 7}', None),
        "deps": (
            GuardedProcedures({"sums": SUMS}, procedure=lambda ctx: ctx.deps["run"], inputs=lambda ctx: ctx.deps["on"]),
            {"deps_type": dict},
            "John Doe",
            {"run": "sums", "on": INPUTS},
        ),
    }
    capability, options, prompt, deps = ways[way]
    answer = run(agent(double, capability, **options), prompt, deps=deps)
    assert answer.output == ANSWER
    result = result_of(answer)
    assert result is not None
    assert (result.status, result.answer, result.usage.calls) == ("verified", 57, 2)
    assert (answer.usage.requests, answer.usage.input_tokens, answer.usage.output_tokens) == (2, 20, 10)
    assert answer.response.usage.input_tokens == 20
    assert "John Doe" not in double.told
    assert "58" not in double.told


@pytest.mark.parametrize("options", [{}, {"trust": None}, {"procedure": lambda ctx: None}])
def test_every_other_request_goes_on_as_it_came(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """A request without a procedure reaches the model untouched, and the log says so without what was said."""
    double = Double("Hello!")
    calls: list[Any] = []
    with caplog.at_level(logging.INFO, "stepguard"):
        answer = run(
            agent(
                double,
                GuardedProcedures(**{"trust": TRUST, "on_call": calls.append, **options}),
                instructions="Be kind.",
            ),
            PROMPT if "trust" in options else "I am John Doe.",
        )
    assert answer.output == "Hello!"
    assert result_of(answer) is None
    ((messages, info),) = double.asked
    assert len(messages) == 1
    assert info.instructions == "Be kind."
    reason = "not_trusted" if "trust" in options else "no_procedure"
    assert [(call.guarded, call.result, call.reason) for call in calls] == [(False, None, reason)]
    assert "chat_passed" in caplog.text
    assert "John Doe" not in caplog.text


def test_what_is_not_verified_is_an_error_of_both_families() -> None:
    """It is pydantic-ai's and stepguard's, holds the result, tells a model nothing, and what was spent is booked."""
    double = Double(WRONG)
    spent = RunUsage()
    calls: list[Any] = []
    with pytest.raises(UnexpectedModelBehavior) as caught:
        run(agent(double, GuardedProcedures(trust=TRUST, repair=2, on_call=calls.append)), PROMPT, usage=spent)
    error = caught.value
    assert isinstance(error, NotVerified)
    assert isinstance(error, RunError)
    assert error.result.values["t2"] == 19
    assert result_of(error) is calls[0].result
    assert (spent.requests, spent.input_tokens) == (len(double.asked), 10 * len(double.asked))
    assert "t1 (wrong_value)" in str(error)
    for text in (str(error).partition(" (run ")[0], double.told):
        assert "57" not in text
        assert "58" not in text
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.result.status) == (str(error), "abstained")


def test_the_history_of_a_guarded_run_can_be_stored_and_gone_on_with() -> None:
    """The messages go to JSON and back with the facts of the run, and the next question goes on as it came."""
    double = Double(GOOD, "You are welcome.")
    guarded = agent(double, GuardedProcedures(trust=TRUST))
    answer = run(guarded, PROMPT)
    stored = ModelMessagesTypeAdapter.validate_json(answer.all_messages_json())
    facts = (stored[-1].metadata or {})["stepguard"]
    assert (facts["status"], facts["answer"], facts["found"]) == ("verified", 57, "prompt")
    assert pickle.loads(pickle.dumps(answer.response)).metadata["stepguard"].result.answer == 57
    assert run(guarded, "Thanks!", message_history=stored).output == "You are welcome."


@pytest.mark.parametrize(
    ("output_type", "wanted"),
    [
        (Sums, Sums(t2=19, t1=57)),
        (int, 57),
        (Decimal, Decimal(57)),
        (dict[str, int], {"t2": 19, "t1": 57}),
        (str | Sums, ANSWER),
    ],
    ids=["model", "int", "decimal", "dict", "or-text"],
)
@pytest.mark.parametrize("mode", ["tool", "native", "prompted"])
def test_an_output_type_is_filled_with_what_was_verified(output_type: Any, wanted: object, mode: str) -> None:
    """Fields that are called like steps, or one value, take the verified values, however the model would be asked."""
    chosen: Any = mode
    profile = ModelProfile(default_structured_output_mode=chosen, supports_json_schema_output=True)
    double = Double(WRONG, MENDED, profile=profile)
    answer = run(agent(double, GuardedProcedures(trust=TRUST), output_type=output_type), PROMPT)
    assert answer.output == wanted
    assert len(double.asked) == 2


def test_an_output_type_that_cannot_be_filled_is_refused_before_anything_is_spent() -> None:
    """A field that no step sets is a mistake of the caller's, told without a call."""

    class Other(BaseModel):
        t1: int
        reason: str

    double = Double(GOOD)
    with pytest.raises(ConfigError, match="output type"):
        run(agent(double, GuardedProcedures(trust=TRUST), output_type=Other), PROMPT)
    assert not double.asked


def test_a_verified_answer_that_is_refused_is_not_worked_out_again() -> None:
    """A validator that says no ends the run: the layers of retries do not multiply."""
    double = Double(GOOD)
    guarded = agent(double, GuardedProcedures(trust=TRUST), retries=5)

    @guarded.output_validator  # type: ignore[untyped-decorator, unused-ignore]
    def never(output: str) -> str:
        raise ModelRetry("Write a poem instead.")

    with pytest.raises(UnexpectedModelBehavior, match="would give the same") as caught:
        run(guarded, PROMPT)
    assert len(double.asked) == 1
    assert result_of(caught.value).verified  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (ModelProfile(supports_json_schema_output=True), "native"),
        (ModelProfile(supports_json_schema_output=False, supports_tools=True), "tool"),
        (ModelProfile(supports_json_schema_output=False, supports_tools=False), "text"),
    ],
    ids=["native", "tool", "text"],
)
def test_replies_are_bound_to_their_form_as_the_model_can(profile: ModelProfile, kind: str) -> None:
    """By a schema, by one tool or by words: whichever it is, exactly the asked steps are in it, and they are read."""
    double = Double(GOOD, profile=profile)
    assert run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT).output == ANSWER
    parameters = double.asked[0][1].model_request_parameters
    assert parameters.output_mode == kind
    shape = parameters.output_object.json_schema if parameters.output_object else None
    shape = parameters.output_tools[0].parameters_json_schema if parameters.output_tools else shape
    assert (shape is None) == (kind == "text")
    assert shape is None or list(shape["properties"]) == ["t2", "t1"]
    assert not parameters.function_tools


def test_two_answers_in_one_response_that_differ_are_refused() -> None:
    """Neither text nor a tool call goes before the other: the reply is asked again."""
    both = ModelResponse([TextPart(json.dumps(GOOD)), ToolCallPart("Steps", json.dumps(WRONG))])
    double = Double(both, GOOD)
    result = result_of(run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT))
    assert result is not None
    assert [attempt.outcome for attempt in result.attempts] == ["rejected", "accepted"]


def test_settings_of_the_agent_hold_for_every_call() -> None:
    """Its temperature and other settings are sent, the smaller limit of tokens wins, None keeps one from being sent."""
    double = Double(GOOD)
    settings: Any = {"temperature": 0.7, "max_tokens": 7, "top_p": 0.5, "seed": 3, "parallel_tool_calls": True}
    run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT, model_settings=settings)
    sent: Any = double.asked[0][1].model_settings
    assert (sent["temperature"], sent["max_tokens"], sent["top_p"]) == (0.7, 7, 0.5)
    assert "parallel_tool_calls" not in sent
    double = Double(GOOD)
    run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT, model_settings={"temperature": None})
    assert "temperature" not in (double.asked[0][1].model_settings or {})
    with pytest.raises(ConfigError, match="stop_sequences"):
        run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT, model_settings={"stop_sequences": ["x"]})


def test_limits_of_the_run_hold_for_the_calls_of_the_guard() -> None:
    """`UsageLimits` count every call, and the error is the framework's own, with the result and the usage kept."""
    double = Double(WRONG)
    spent = RunUsage()
    with pytest.raises(UsageLimitExceeded) as caught:
        run(
            agent(double, GuardedProcedures(trust=TRUST)),
            PROMPT,
            usage=spent,
            usage_limits=UsageLimits(request_limit=2),
        )
    assert len(double.asked) == spent.requests == 2
    assert result_of(caught.value).values["t2"] == 19  # type: ignore[union-attr]


def test_a_limit_of_money_is_looked_at_before_every_call() -> None:
    """Calls of a model whose price is known are priced one by one."""
    double = Double(WRONG, name="gpt-4.1-mini")
    limits = UsageLimits(cost_limit=Decimal("0.000001"))
    with pytest.raises(UsageLimitExceeded, match="cost_limit"):
        run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT, usage_limits=limits)
    assert len(double.asked) == 1


def test_a_limit_for_one_request_is_not_one_for_their_sum() -> None:
    """Calls that are each below the limit of one request do not pass it together, and all of them are counted."""
    limits = UsageLimits(per_request_input_tokens_limit=15)
    answer = run(agent(Double(WRONG, MENDED), GuardedProcedures(trust=TRUST)), PROMPT, usage_limits=limits)
    assert answer.output == ANSWER
    assert (answer.usage.input_tokens, answer.usage.requests) == (20, 2)


@pytest.mark.parametrize(
    "error", [ModelHTTPError(500, "m"), ModelAPIError("m", "no connection"), UnexpectedModelBehavior("odd")]
)
def test_an_error_of_the_model_is_raised_as_it_came(error: Exception) -> None:
    """One request, because repeating is the model's own business, and what was verified before it is kept."""
    double = Double(WRONG, error)
    with pytest.raises(type(error)) as caught:
        run(agent(double, GuardedProcedures(trust=TRUST)), PROMPT)
    assert caught.value is error
    assert len(double.asked) == 2
    result = result_of(error)
    assert result is not None
    assert (result.status, dict(result.values)) == ("failed", {"x": 12, "y": 7, "t2": 19})


def test_retries_can_be_given_to_the_guard() -> None:
    """With a retry policy of its own the guard repeats what may succeed later, and nothing else."""
    retry = RetryPolicy(retries=2, first_wait=0)
    double = Double(ModelHTTPError(503, "m"), GOOD)
    assert run(agent(double, GuardedProcedures(trust=TRUST, retry=retry)), PROMPT).output == ANSWER
    double = Double(ModelHTTPError(404, "m"), GOOD)
    with pytest.raises(ModelHTTPError):
        run(agent(double, GuardedProcedures(trust=TRUST, retry=retry)), PROMPT)
    assert len(double.asked) == 1


def test_a_model_with_a_fallback_answers_by_whichever_works() -> None:
    """A fallback model, which has no profile of its own, is asked in a form that each of its models can take."""
    broken, double = Double(ModelHTTPError(500, "m")), Double(GOOD)
    guarded = Agent(FallbackModel(broken.model, double.model), capabilities=[GuardedProcedures(trust=TRUST)])
    assert run(guarded, PROMPT).output == ANSWER
    assert len(broken.asked) == len(double.asked) == 1


def test_a_streamed_request_streams_the_finished_answer() -> None:
    """Nothing that is not verified is streamed; the usage of all calls is told."""

    async def main() -> tuple[str, RunUsage, Any]:
        async with agent(Double(WRONG, MENDED), GuardedProcedures(trust=TRUST)).run_stream(PROMPT) as stream:
            seen = [text async for text in stream.stream_text(delta=True, debounce_by=None)]
            return "".join(seen), stream.usage, result_of(stream)

    text, usage, result = asyncio.run(main())
    assert text == ANSWER
    assert (usage.requests, usage.input_tokens) == (2, 20)
    assert result.verified


def test_a_streamed_request_that_is_not_verified_streams_nothing() -> None:
    """The error arises before anything is streamed."""

    async def main() -> None:
        async with agent(Double(WRONG), GuardedProcedures(trust=TRUST, repair=1)).run_stream(PROMPT):
            pytest.fail("it streams")

    with pytest.raises(NotVerified):
        asyncio.run(main())


def test_cancelling_an_agent_cancels_its_call_and_keeps_what_was_verified() -> None:
    """The cancellation propagates, no further call is made, and what was verified and spent is told."""
    calls: list[Any] = []
    spent = RunUsage()

    async def main() -> int:
        asked = 0
        waiting = asyncio.Event()

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            nonlocal asked
            asked += 1
            if asked > 1:
                waiting.set()
                await asyncio.sleep(60)
            return ModelResponse([TextPart(json.dumps(WRONG))], usage=RequestUsage(input_tokens=10))

        guarded = Agent(FunctionModel(answer), capabilities=[GuardedProcedures(trust=TRUST, on_call=calls.append)])
        task = asyncio.create_task(guarded.run(PROMPT, usage=spent))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return asked

    assert asyncio.run(main()) == 2
    assert calls[0].result.values["t2"] == 19
    assert (spent.requests, spent.input_tokens) == (2, 10)


def test_concurrent_runs_never_mix() -> None:
    """Twenty runs of one agent at a time, answered in any order, each end on their own values and usage."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        x = int(re.findall(r"\bx = ([0-9]+)", said(messages))[-1])
        await asyncio.sleep((20 - x) / 1000)
        return ModelResponse([TextPart(json.dumps({"t2": f"{x} + 7 = {x + 7}", "t1": f"{x + 7} * 3 = {3 * (x + 7)}"}))])

    guarded = Agent(FunctionModel(answer), capabilities=[GuardedProcedures(procedure=SUMS, trust=TRUST)])

    async def main() -> list[Any]:
        return await asyncio.gather(*(guarded.run(f"x = {x}\ny = 7") for x in range(20)))

    answers = asyncio.run(main())
    assert [result_of(each).answer for each in answers] == [3 * (x + 7) for x in range(20)]  # type: ignore[union-attr]
    assert {each.usage.requests for each in answers} == {1}


def test_what_cannot_be_understood_is_refused_before_anything_is_spent() -> None:
    """Values that are missing and images beside a procedure are the caller's to mend."""
    double = Double(GOOD)
    with pytest.raises(InputError, match="'y'"):
        run(agent(double, GuardedProcedures(procedure=SUMS, trust=TRUST)), "x = 12")
    with pytest.raises(ConfigError, match="images"):
        run(agent(double, GuardedProcedures(trust=TRUST)), [PROMPT, ImageUrl("http://127.0.0.1/x.png")])
    assert not double.asked


@pytest.mark.parametrize(
    "options",
    [
        *({"procedure": "sum"}, {"procedures": {"sums": "t = 1"}}, {"inputs": INPUTS}, {"inputs": lambda ctx: INPUTS}),
        *({"procedure": SUMS, "inputs": {"x": 1}}, {"at_least": "sure"}, {"mode": "json"}, {"on_call": 3}),
        *({"observe": True}, {"parallel": 0}, {"stop_early": True}),
    ],
    ids=lambda options: "-".join(options),
)
def test_an_option_that_cannot_work_is_told_at_once(options: dict[str, Any]) -> None:
    """Nothing is asked to find out."""
    with pytest.raises((ConfigError, InputError)):
        GuardedProcedures(**options)


def test_tools_of_the_agent_are_not_offered_to_a_guarded_request() -> None:
    """Steps are answered by the model alone."""

    def calculator() -> str:
        return "57"

    double = Double(GOOD)
    guarded = agent(double, GuardedProcedures(trust=TRUST))
    guarded.tool_plain(calculator)
    assert run(guarded, PROMPT).output == ANSWER
    assert not double.asked[0][1].function_tools


def test_a_missing_library_is_named() -> None:
    """Without pydantic-ai the import says which extra brings it, and the package itself needs none of it."""
    code = "import sys; sys.modules['pydantic_ai'] = None; import stepguard, stepguard.integrations.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert 'MissingExtraError: guarding an agent of pydantic-ai needs the "pydantic-ai" extra' in done.stderr


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


# Checked outputs


@dataclass
class Made:
    t2: int
    t1: int


@pytest.mark.parametrize(
    ("output_type", "wrong", "right"),
    [
        (Sums, {"t2": 19, "t1": 58}, {"t2": 19, "t1": 57}),
        (Made, {"t2": 19, "t1": 58}, {"t2": 19, "t1": 57}),
        (dict[str, str], GOOD | {"t1": "57 + 0 = 57"}, GOOD),
        (dict[str, int], {"t2": 19, "t1": 57, "t9": 5}, {"t2": 19, "t1": 57}),
        (dict[str, int], {"t2": 19}, {"t2": 19, "t1": 57}),
        (dict[str, int], {"x": 13, "t2": 19, "t1": 57}, {"x": 12, "t2": 19, "t1": 57, "answer": 57}),
        (dict[str, int], {"t2": 19, "t1": 57, "answer": 58}, {"t2": 19, "answer": 57}),
        (dict[str, float], {"t2": 19.5, "t1": 58.5}, {"t2": 19.0, "t1": 57.0}),
        (int, {"response": 58}, {"response": 57}),
        (str, "58", "57"),
        (str, '{"t2": 19, "t1": 57, "t1": 57}', '{"t2": 19, "t1": 57}'),
        (str, "It is 57.", "57"),
    ],
    ids=["model", "dataclass", "work", "extra", "missing", "input", "answer", "float", "one", "text", "json", "prose"],
)
def test_an_output_is_handed_on_only_where_every_step_is_right(output_type: Any, wrong: Any, right: Any) -> None:
    """Whatever it is made of, a wrong step asks again with steps and kinds alone, and the right output comes out."""
    double = Double(wrong, right)
    checks: list[OutputCheck] = []
    checked = agent(double, VerifiedOutput(SUMS, inputs=INPUTS, on_check=checks.append), output_type=output_type)
    run(checked, "Work it out.")
    assert [check.verified for check in checks] == [False, True]
    assert checks[-1].values["t1"] == 57
    assert checks[-1].strength == "proved"
    retry = double.asked[1][0][-1]
    assert isinstance(retry, ModelRequest)
    assert "is not accepted" in said([retry])
    assert "57" not in said([retry])


def test_a_right_value_of_a_failed_step_reaches_no_model() -> None:
    """All that the model is given, over all retries, holds neither the right value nor the reason."""
    double = Double({"t2": 19, "t1": 58})
    with pytest.raises(UnexpectedModelBehavior, match="retries") as caught:
        run(agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=Sums, retries=3), "Work it out.")
    assert len(double.asked) == 4
    assert "57" not in double.told
    check = check_of(caught.value)
    assert check is not None
    assert (check.verified, check.kind, check.step) == (False, "wrong_value", "t1")
    assert "57" in check.reason


@pytest.mark.parametrize(
    "parts",
    [
        [TextPart('Here: {"t2": 19, "t1": 58}'), ToolCallPart("final_result", '{"t2": 19, "t1": 57}')],
        [ToolCallPart("final_result", '{"t2": 19, "t1": 57}'), ToolCallPart("final_result", '{"t2": 19, "t1": 58}')],
        [ToolCallPart("final_result", '{"t2": 18, "t2": 19, "t1": 57}')],
    ],
    ids=["text-and-call", "two-calls", "twice"],
)
def test_several_outputs_in_one_response_that_differ_are_refused(parts: list[Any]) -> None:
    """Although the one that pydantic-ai would hand on is right, a response that contradicts itself is asked again."""
    double = Double(ModelResponse(parts), {"t2": 19, "t1": 57})
    answer = run(agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=Sums), "Work it out.")
    assert answer.output == Sums(t2=19, t1=57)
    assert len(double.asked) == 2


def test_several_outputs_that_agree_are_one() -> None:
    """The same said twice is no contradiction."""
    call = ToolCallPart("final_result", '{"t2": 19, "t1": 57}')
    double = Double(ModelResponse([TextPart('{"t2": 19, "t1": 57}'), call]))
    run(agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=Sums), "Work it out.")
    assert len(double.asked) == 1


def test_inputs_of_a_check_come_from_the_run() -> None:
    """A function of the run's context gives them, so one agent serves many orders, at the same time."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(0)
        return ModelResponse([ToolCallPart("final_result", '{"t2": 19, "t1": 57}')])

    async def order(ctx: Any) -> dict[str, object]:
        return dict(ctx.deps)

    checked = Agent(
        FunctionModel(answer), deps_type=dict, output_type=Sums, capabilities=[VerifiedOutput(SUMS, inputs=order)]
    )

    async def main() -> list[Any]:
        runs = [checked.run("Work it out.", deps={"x": 12, "y": y}) for y in (7, 8, 7)]
        return await asyncio.gather(*runs, return_exceptions=True)

    one, other, third = asyncio.run(main())
    assert one.output == third.output == Sums(t2=19, t1=57)
    assert isinstance(other, UnexpectedModelBehavior)


def test_fields_that_are_no_steps_are_named() -> None:
    """A field of a model that is no step is refused as a mistake, and handed on where it is named."""

    class Told(BaseModel):
        t2: int
        t1: int
        explanation: str

    said = {"t2": 19, "t1": 57, "explanation": "I added them."}
    with pytest.raises(ConfigError, match="ignore"):
        run(agent(Double(said), VerifiedOutput(SUMS, inputs=INPUTS), output_type=Told), "Work it out.")
    told = VerifiedOutput(SUMS, inputs=INPUTS, ignore=["explanation"])
    assert run(agent(Double(said), told, output_type=Told), "Work it out.").output.explanation == "I added them."


def test_a_single_step_can_be_held_against_an_output() -> None:
    """A step needs no procedure around it: what it reads are the inputs."""
    double = Double({"response": 4}, {"response": 3})
    checked = VerifiedOutput(Step("t", "a + b"), inputs={"a": 1, "b": 2})
    assert run(agent(double, checked, output_type=int), "Add them.").output == 3
    assert len(double.asked) == 2


def test_steps_that_nothing_vouches_for_are_refused_when_made() -> None:
    """A step without a check is told at construction; with leave it is handed on, and the check names it."""
    words = Procedure([Step("c", instruction="Name the country.")])
    with pytest.raises(ConfigError, match="unverified at most"):
        VerifiedOutput(words)
    checks: list[OutputCheck] = []
    allowed = VerifiedOutput(words, at_least="unverified", on_check=checks.append)
    assert run(agent(Double("France"), allowed), "Where is Lyon?").output == "France"
    assert checks[0].weak == {"c": "unverified"}


def test_an_output_that_no_retry_could_mend_is_not_asked_again() -> None:
    """A step without an exact value, or a check that does not apply, ends the run with an error that says so."""
    halves = Procedure.parse("inputs: x\nt = 1 / x")
    double, mute = Double({"t": 0}), Double({"c": 0})
    with pytest.raises(OutputNotVerified, match="undecided") as caught:
        run(agent(double, VerifiedOutput(halves, inputs={"x": 0}), output_type=dict[str, int], retries=3), "Go.")
    assert pickle.loads(pickle.dumps(caught.value)).check.kind == "undecided"
    silent = Procedure([Step("c", instruction="Count them.", type="integer", checks=[lambda *_: None])])
    with pytest.raises(OutputNotVerified, match="vouches for c"):
        run(agent(mute, VerifiedOutput(silent), output_type=dict[str, int], retries=3), "Go.")
    assert len(double.asked) == len(mute.asked) == 1


def test_a_streamed_output_is_given_when_it_is_verified() -> None:
    """Of a stream nothing partial is given, and a wrong output is pydantic-ai's error."""

    def model(t1: int) -> FunctionModel:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
            for piece in ('{"t2": 1', '9, "t1"', f": {t1}", "}"):
                yield {0: _call(info, piece)}

        return FunctionModel(stream_function=stream)

    async def outputs(t1: int) -> list[Any]:
        checked = Agent(model(t1), output_type=Sums, capabilities=[VerifiedOutput(SUMS, inputs=INPUTS)])
        async with checked.run_stream("Work it out.") as stream:
            return [output async for output in stream.stream_output(debounce_by=None)]

    assert asyncio.run(outputs(57)) == [Sums(t2=19, t1=57)]
    with pytest.raises(UnexpectedModelBehavior) as caught:
        asyncio.run(outputs(58))
    assert check_of(caught.value) is not None


def _call(info: AgentInfo, piece: str) -> Any:
    from pydantic_ai.models.function import DeltaToolCall  # type: ignore[import-not-found, unused-ignore]

    return DeltaToolCall(info.output_tools[0].name if piece.startswith("{") else None, piece)


def test_text_that_would_be_streamed_unchecked_is_refused() -> None:
    """Nothing is asked: what pydantic-ai gives out as it comes cannot be checked before."""
    double = Double("57")

    async def main() -> None:
        async with agent(double, VerifiedOutput(SUMS, inputs=INPUTS)).run_stream("Work it out."):
            pytest.fail("it streams")

    with pytest.raises(ConfigError, match="streamed"):
        asyncio.run(main())
    assert not double.asked


def test_what_was_checked_is_logged_without_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    """The event has the step and the kind, and no value and no name that the model made up."""
    double = Double({"t2": 19, "t1": 58}, {"t2": 19, "John Doe": 5}, {"t2": 19, "t1": 57})
    checked = agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=dict[str, int], retries=2)
    with caplog.at_level(logging.INFO, "stepguard"):
        run(checked, "Work it out.")
    kinds = [record.getMessage() for record in caplog.records if "output_judged" in record.getMessage()]
    assert len(kinds) == 3
    assert "step='t1' kind='wrong_value'" in kinds[0]
    assert "kind='extra_step'" in kinds[1]
    assert "John Doe" not in caplog.text
    assert not any("58" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": {"x": 1}},
        {"steps": ["t9"]},
        {"steps": "t1"},
        {"ignore": ["t1"]},
        {"at_least": "sure"},
        {"on_check": 3},
        {"check_timeout": 0},
    ],
    ids=lambda options: "-".join(options),
)
def test_an_option_of_a_check_that_cannot_work_is_told_at_once(options: dict[str, Any]) -> None:
    """Nothing is asked to find out."""
    with pytest.raises((ConfigError, InputError)):
        VerifiedOutput(SUMS, **{"inputs": INPUTS, **options})


def test_an_output_that_holds_no_steps_is_a_mistake() -> None:
    """A list, or one value of a procedure whose other steps code cannot compute, is told and not asked again."""
    double = Double({"response": [19, 57]})
    with pytest.raises(ConfigError, match="list"):
        run(agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=list[int], retries=3), "Go.")
    words = Procedure([Step("c", instruction="Name it.", checks=[lambda *_: True]), Step("n", "1 + 1")])
    with pytest.raises(ConfigError, match="one value"):
        run(agent(Double({"response": 2}), VerifiedOutput(words), output_type=int), "Go.")
    assert len(double.asked) == 1
