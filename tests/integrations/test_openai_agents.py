"""The OpenAI Agents SDK with its own runner: procedures as tools, and the SDK at our server."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import openai
import openai_agents_harness
import pytest
from conftest import ChatServer, Reply, completion_body
from openai_agents_harness import ORDER, Api, agents, client_at, drop_in, run, told
from openai_harness import KEY

from stepguard import Budget, Guard, Procedure, RetryPolicy
from stepguard.backends import Completion, Request
from stepguard.errors import BackendError, ConfigError, StepNotVerified
from stepguard.results import Result
from stepguard.testing import ScriptedBackend, ScriptedSteps

api = openai_agents_harness.api

pytestmark = pytest.mark.once

SUMS = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
RIGHT = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}
STUBBORN = {"t2": "12 + 7 = 19", "t1": ["19 * 3 = 58"] * 9}
ARGUMENTS = '{"x": 12, "y": "7"}'


@pytest.fixture
def results() -> list[Result]:
    return []


def sums(results: list[Result], script: Mapping[str, Any] = RIGHT, **options: Any) -> Any:
    """`SUMS` as a tool, on a model of its own."""
    return drop_in.procedure_tool(
        SUMS, Guard(ScriptedSteps(script), repair=1), **{"on_result": results.append, **options}
    )


# A procedure as a tool


def test_an_agent_gets_the_verified_answer(chat_server: ChatServer, api: Api, results: list[Result]) -> None:
    """The tool runs the procedure on the guard's model, slips and all, and the agent reads answer and values."""
    tool = sums(results, {"t2": ["12 + 7 = 18", "12 + 7 = 19"], "t1": "19 * 3 = 57"})
    chat_server.play([api.calls("sums", ARGUMENTS), api.says("57")])
    done = asyncio.run(run(chat_server, api, tool))
    (output,) = api.outputs(chat_server.requests[1])
    assert json.loads(output) == {"answer": 57, "values": {"t2": 19, "t1": 57}, "status": "verified"}
    (result,) = results
    assert result.verified
    assert result.usage.calls > 1
    usage = done.context_wrapper.usage
    assert usage.requests == 2 + result.usage.calls
    assert usage.total_tokens == 30 + result.usage.tokens
    assert sum(each.total_tokens for each in usage.request_usage_entries) == usage.total_tokens
    (data,) = [each.custom_data for each in done.new_items if each.type == "tool_call_output_item"]
    assert data == {"stepguard": {"run_id": result.run_id}}


def test_an_agent_never_reads_what_is_not_verified(chat_server: ChatServer, api: Api, results: list[Result]) -> None:
    """A step that fails is told by its name and kind: neither the claimed nor the right value reaches the agent."""
    (output,) = told(chat_server, api, sums(results, STUBBORN), ARGUMENTS)
    assert "stopped at step t1 (wrong_value)" in output
    everything = json.dumps([each.body for each in chat_server.requests])
    assert not {"57", "58", "19"} & set(everything.replace('"', " ").replace("\\", " ").split())
    (result,) = results
    assert result.status == "abstained"
    assert result.values["t2"] == 19


def test_an_unverified_run_can_end_that_of_the_agent(chat_server: ChatServer, api: Api, results: list[Result]) -> None:
    """With on_unverified="raise" the SDK's own kind of error comes out, with the result and its cause."""
    chat_server.play(api.calls("sums", ARGUMENTS))
    with pytest.raises(drop_in.ProcedureNotVerified) as caught:
        asyncio.run(run(chat_server, api, sums(results, STUBBORN, on_unverified="raise")))
    assert isinstance(caught.value, agents.AgentsException)
    assert caught.value.result is results[0]
    assert isinstance(caught.value.__cause__, StepNotVerified)
    assert "57" not in str(caught.value).partition(" (run ")[0]
    assert caught.value.run_data is not None
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", ["'price' is missing", "'quantity' is missing", "rate: a percentage with the sign %"]),
        ("{", ["no JSON object"]),
        ("[3]", ["no JSON object"]),
        ('{"price": 1, "price": 2, "quantity": 3, "rate": "5%"}', ["'price' is given twice"]),
        ('{"price": 1, "quantitty": 3, "rate": "5%"}', ["did you mean 'quantity'", "'quantity' is missing"]),
        ('{"price": true, "quantity": 3.5, "rate": 5}', ["'price'", "'quantity'", "'rate'", "5%"]),
        ('{"price": NaN, "quantity": 3, "rate": "5%"}', ["no JSON object"]),
        ('{"price": null, "quantity": [3], "rate": {}}', ["'price'", "'quantity'", "'rate'"]),
        (f'{{"price": {"9" * 5000}, "quantity": 3, "rate": "5%"}}', ["'price'", "too long"]),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_agent(
    chat_server: ChatServer, results: list[Result], arguments: str, words: list[str]
) -> None:
    """The agent learns all that is wrong with its call and what is expected, and no model is asked."""
    with ScriptedBackend() as backend:
        tool = drop_in.procedure_tool(ORDER, Guard(backend), on_result=results.append)
        (output,) = told(chat_server, Api("chat"), tool, arguments)
    assert all(word in output for word in ["Not run", *words])
    assert len(output) < 900
    assert not results


def test_numbers_are_taken_as_they_are_written(chat_server: ChatServer) -> None:
    """Digits beyond a float survive from the call to the answer, as a number or as text."""
    copied = Procedure.parse("inputs: account: integer, share\nt1: integer = account\nt2 = share * 1")
    guard = Guard(ScriptedSteps({"t1": "9007199254740993", "t2": "0.1000000000000000055 * 1 = 0.1000000000000000055"}))
    arguments = '{"account": 9007199254740993, "share": "0.1000000000000000055"}'
    (output,) = told(chat_server, Api("chat"), drop_in.procedure_tool(copied, guard), arguments)
    assert json.loads(output)["values"] == {"t1": "9007199254740993", "t2": "0.1000000000000000055"}


@pytest.mark.parametrize("rate", ["10%", "10.0 %"])
def test_inputs_of_every_type_arrive(chat_server: ChatServer, rate: str) -> None:
    """Percentages, amounts, options and texts from a call are the values that the run reads."""
    typed = Procedure.parse(
        "inputs: rate: percent, fee: money(EUR), size: one_of(low, high), paid: boolean, who: text\n"
        "t1: money(EUR) = fee * rate\nt2: one_of(low, high) = size\nt3: boolean = paid\nt4: text = who"
    )
    script = {"t1": "12.50 * 10% = 1.25", "t2": "high", "t3": "true", "t4": "Jo = x"}
    tool = drop_in.procedure_tool(typed, Guard(ScriptedSteps(script)))
    arguments = {"rate": rate, "fee": 12.5, "size": "high", "paid": True, "who": "Jo = x"}
    (output,) = told(chat_server, Api("chat"), tool, json.dumps(arguments))
    assert json.loads(output)["values"] == {"t1": "1.25 EUR", "t2": "high", "t3": True, "t4": "Jo = x"}


def test_the_agents_model_gets_a_strict_schema(chat_server: ChatServer) -> None:
    """Every input is required, nothing else is allowed, and types and units are said."""
    typed = Procedure.parse(
        "name: fees (2026)\ninputs: a, b: integer, c: decimal(2), d: percent(1), e: money(EUR), f: boolean, "
        "g: one_of(low, high), h: text\nt = a + b"
    )
    tool = drop_in.procedure_tool(typed, Guard(ScriptedBackend()))
    chat_server.play(Api("chat").says("done"))
    asyncio.run(run(chat_server, Api("chat"), tool))
    (sent,) = chat_server.requests[0].body["tools"]
    assert sent["function"]["strict"] is True
    assert sent["function"]["name"] == tool.name == "fees_2026"
    schema = sent["function"]["parameters"]
    assert schema["required"] == list("abcdefgh") == list(schema["properties"])
    assert schema["additionalProperties"] is False
    of = schema["properties"]
    assert of["b"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "2 decimal places" in of["c"]["description"]
    assert of["d"]["type"] == "string"
    assert "EUR" in of["e"]["description"]
    assert (of["f"]["type"], of["g"]["enum"], of["h"]["type"]) == ("boolean", ["low", "high"], "string")


def test_values_are_told_with_their_units(chat_server: ChatServer) -> None:
    """A percentage has its sign and an amount its currency, and only the steps that are wanted are told."""
    share = Procedure.parse("inputs: x\nrate: percent = x / 8\nfee: money(EUR) = rate * 200")
    script = {"rate": "1 / 8 = 12.5%", "fee": "12.5% * 200 = 25.00"}
    tool = drop_in.procedure_tool(share, Guard(ScriptedSteps(script)), values=["rate"], name="fee", description="Fees.")
    (output,) = told(chat_server, Api("chat"), tool, '{"x": 1}')
    assert json.loads(output) == {"answer": "25.00 EUR", "values": {"rate": "12.5%"}, "status": "verified"}


def test_steps_without_a_check_are_marked_where_they_are_allowed(
    chat_server: ChatServer, results: list[Result]
) -> None:
    """By default the tool is not made; with a weaker `at_least` they are named, and the description says so."""
    words = Procedure.parse('inputs: c: text\nt1: text = "Name the country in c." (reads c)')
    guard = Guard(ScriptedSteps({"t1": "France"}))
    with pytest.raises(ConfigError, match="t1 can be unverified at most"):
        drop_in.procedure_tool(words, guard)
    tool = drop_in.procedure_tool(words, guard, at_least="unverified")
    (output,) = told(chat_server, Api("chat"), tool, '{"c": "Lyon"}')
    assert json.loads(output)["weak"] == {"t1": "unverified"}
    assert "names those that are less than proved" in tool.description


def test_parallel_calls_keep_their_answers_apart(chat_server: ChatServer, api: Api, results: list[Result]) -> None:
    """Ten calls in one turn, answered in another order, each get their own answer."""

    async def answer(request: Request) -> Completion:
        x = request.values["x"]
        assert isinstance(x, int)
        await asyncio.sleep(0.02 if x % 2 else 0)
        return Completion(json.dumps({"t2": f"{x} + 7 = {x + 7}", "t1": f"{x + 7} * 3 = {3 * (x + 7)}"}))

    class Backend:
        async def acomplete(self, request: Request) -> Completion:
            return await answer(request)

    tool = drop_in.procedure_tool(SUMS, Guard(Backend()), on_result=results.append)
    outputs = told(chat_server, api, tool, *(f'{{"x": {x}, "y": 7}}' for x in range(10)))
    assert [json.loads(each)["answer"] for each in outputs] == [3 * (x + 7) for x in range(10)]
    assert len({each.run_id for each in results}) == 10


def test_one_layer_repeats_requests(chat_server: ChatServer, results: list[Result]) -> None:
    """A model that fails is asked as often as the retry policy says, and the agent is told the kind of error."""
    backend = ScriptedBackend(*[BackendError(f"no {KEY}")] * 9)
    guard = Guard(backend, retry=RetryPolicy(retries=2, first_wait=0))
    (output,) = told(chat_server, Api("chat"), drop_in.procedure_tool(SUMS, guard, on_result=results.append), ARGUMENTS)
    assert len(backend.requests) == results[0].usage.calls == 3
    assert len(chat_server.requests) == 2
    assert "failed" in output
    assert KEY not in output


def test_a_cancelled_agent_leaves_its_result(chat_server: ChatServer, api: Api, results: list[Result]) -> None:
    """Cancelling the agent's run cancels the guard's; what was verified and paid for is told."""
    begun = asyncio.Event()

    class Backend:
        async def acomplete(self, request: Request) -> Completion:
            if request.steps[0].id == "t2":
                return Completion('{"t2": "12 + 7 = 19"}')
            begun.set()
            await asyncio.sleep(60)
            raise AssertionError

    tool = drop_in.procedure_tool(SUMS, Guard(Backend(), segment=1), on_result=results.append)
    chat_server.play(api.calls("sums", ARGUMENTS))

    async def main() -> None:
        task = asyncio.create_task(run(chat_server, api, tool))
        await asyncio.wait_for(begun.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (result,) = results
    assert (result.status, result.values["t2"], result.usage.calls) == ("failed", 19, 2)


def test_a_time_out_of_the_sdk_is_paid_for_and_gives_no_value(chat_server: ChatServer, results: list[Result]) -> None:
    """The SDK's own time-out of a tool ends the run; its calls stand in the usage."""

    class Backend:
        async def acomplete(self, request: Request) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError

    tool = drop_in.procedure_tool(SUMS, Guard(Backend()), on_result=results.append)
    (output,) = told(chat_server, Api("chat"), replace(tool, timeout_seconds=0.1), ARGUMENTS)
    assert "timed out" in output
    assert results[0].usage.calls == 1


def test_a_callback_that_fails_changes_nothing(chat_server: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    """What `on_result` raises is logged, and the agent gets its answer; the log holds no value."""

    def fails(result: Result) -> None:
        raise RuntimeError("full disk")

    with caplog.at_level(logging.INFO, logger="stepguard"):
        (output,) = told(chat_server, Api("chat"), sums([], on_result=fails), ARGUMENTS)
    assert json.loads(output)["answer"] == 57
    lines = [each.getMessage() for each in caplog.records if each.name == "stepguard"]
    assert any(line.startswith("event='chat_guarded'") for line in lines)
    assert not any("57" in line.replace(results_id(line), "") for line in lines)


def results_id(line: str) -> str:
    """The id of the run in a line, which may hold any digits."""
    return line.partition("run_id='")[2].partition("'")[0] or line.partition("on run ")[2]


def test_a_budget_is_that_of_one_call(chat_server: ChatServer, results: list[Result]) -> None:
    """What one call may spend is the guard's budget, and the agent is told that it was spent."""
    guard = Guard(ScriptedSteps(STUBBORN), budget=Budget(calls=1))
    outputs = told(
        chat_server, Api("chat"), drop_in.procedure_tool(SUMS, guard, on_result=results.append), *[ARGUMENTS] * 2
    )
    assert all("exhausted" in output for output in outputs)
    assert [each.usage.calls for each in results] == [1, 1]


def test_the_blocking_runner_works(chat_server: ChatServer, results: list[Result]) -> None:
    """Runner.run_sync runs the tool."""
    chat_server.play([Api("responses").calls("sums", ARGUMENTS), Api("responses").says("57")])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # the SDK takes that of the thread, and does not close it
    try:
        client = client_at(chat_server.url)
        agent = agents.Agent(name="clerk", model=agents.OpenAIResponsesModel("m", client), tools=[sums(results)])
        done = agents.Runner.run_sync(agent, "Go.", run_config=agents.RunConfig(tracing_disabled=True))
        loop.run_until_complete(client.close())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert done.final_output == "57"
    assert results[0].verified


def test_a_tool_serves_one_event_loop_after_another(chat_server: ChatServer, results: list[Result]) -> None:
    """Nothing of a tool hangs on the loop that used it first."""
    tool = sums(results, {"t2": ["12 + 7 = 19"] * 2, "t1": ["19 * 3 = 57"] * 2})
    for _ in range(2):
        chat_server.requests.clear()
        told(chat_server, Api("chat"), tool, ARGUMENTS)
    assert [each.status for each in results] == ["verified"] * 2


# The server under an unchanged SDK


@pytest.fixture(scope="module")
def served() -> Iterator[Any]:
    """Our server, before a model that only ever gives the right answer."""
    harness = importlib.import_module("serve_harness")
    behind = ChatServer()
    behind.play(Reply(completion_body(harness.GOOD)))
    with harness.serving(behind.url, guard={"repair": 1}) as running:
        running.behind = behind
        yield running
    behind.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_agent_on_our_server_works_unchanged(served: Any, api: Api, streamed: bool) -> None:
    """Only the address is another: the agent's answer is that of the guarded procedure, with the usage of its run."""

    async def main() -> Any:
        async with client_at(served.url) as client:
            kind = agents.OpenAIResponsesModel if api.responses else agents.OpenAIChatCompletionsModel
            agent = agents.Agent(name="clerk", model=kind("sums@some-model", client))
            # Of any address but OpenAI's the SDK wants no usage of a streamed chat completion by itself.
            settings = agents.ModelSettings(include_usage=True)
            config = agents.RunConfig(tracing_disabled=True, model_settings=settings)
            if not streamed:
                return await agents.Runner.run(agent, '{"x": 12, "y": 7}', run_config=config)
            running = agents.Runner.run_streamed(agent, '{"x": 12, "y": 7}', run_config=config)
            deltas = [
                each.data.delta
                async for each in running.stream_events()
                if each.type == "raw_response_event" and each.data.type == "response.output_text.delta"
            ]
            assert "".join(deltas) == running.final_output
            return running

    done = asyncio.run(main())
    assert done.final_output == "t2 = 19\nt1 = 57\nanswer: 57"
    assert done.context_wrapper.usage.total_tokens == 15


def test_an_agent_on_our_server_gets_an_error_and_no_wrong_answer(served: Any, api: Api) -> None:
    """What is not verified is the SDK's own error, without the value."""
    harness = importlib.import_module("serve_harness")
    served.behind.play(Reply(completion_body(harness.WRONG)))

    async def main() -> Any:
        async with client_at(served.url) as client:
            kind = agents.OpenAIResponsesModel if api.responses else agents.OpenAIChatCompletionsModel
            agent = agents.Agent(name="clerk", model=kind("sums@some-model", client))
            return await agents.Runner.run(
                agent, '{"x": 12, "y": 7}', run_config=agents.RunConfig(tracing_disabled=True)
            )

    try:
        with pytest.raises(openai.APIStatusError) as caught:
            asyncio.run(main())
    finally:
        served.behind.play(Reply(completion_body(harness.GOOD)))
    assert "t2" in str(caught.value)


# Mistakes
