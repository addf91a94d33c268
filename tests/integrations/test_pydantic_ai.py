"""Agents of pydantic-ai whose requests are guarded."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, ModelRetry, TextPart, ToolCallPart, UsageLimits
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ImageUrl, ModelMessagesTypeAdapter
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness import ANSWER, GOOD, INPUTS, MENDED, PROMPT, SUMS, TRUST, WRONG, Double, Sums, agent, run, said

from stepguard import RetryPolicy
from stepguard.errors import ConfigError, InputError, RunError
from stepguard.integrations.pydantic_ai import GuardedProcedures, NotVerified, result_of

pytestmark = pytest.mark.once


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
        x = int(re.findall(r"\bt2 = ([0-9]+) \+ 7", said(messages))[-1])
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


def test_tools_of_the_agent_are_not_offered_to_a_guarded_request() -> None:
    """Steps are answered by the model alone."""

    def calculator() -> str:
        return "57"

    double = Double(GOOD)
    guarded = agent(double, GuardedProcedures(trust=TRUST))
    guarded.tool_plain(calculator)
    assert run(guarded, PROMPT).output == ANSWER
    assert not double.asked[0][1].function_tools
