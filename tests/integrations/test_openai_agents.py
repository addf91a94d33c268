"""The OpenAI Agents SDK with its own runner: procedures as tools, checked outputs, and the SDK at our server."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import openai
import pytest
from conftest import ChatServer, Received, Reply, completion_body
from openai_harness import KEY

from stepguard import Budget, Guard, Input, Procedure, RetryPolicy, Step
from stepguard.backends import Completion, Request
from stepguard.core.verdicts import Claim, Verdict
from stepguard.errors import BackendError, ConfigError, MissingExtraError, StepNotVerified
from stepguard.results import Result
from stepguard.testing import ScriptedBackend, ScriptedSteps

agents: Any = pytest.importorskip("agents")
drop_in: Any = importlib.import_module("stepguard.integrations.openai_agents")

pytestmark = pytest.mark.once

SUMS = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
RIGHT = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}
STUBBORN = {"t2": "12 + 7 = 19", "t1": ["19 * 3 = 58"] * 9}
ARGUMENTS = '{"x": 12, "y": "7"}'
ORDER = Procedure.parse(
    "name: order\ninputs: price, quantity: integer, rate: percent\n"
    "subtotal = price * quantity\ntax: decimal(2) = subtotal * rate\ntotal: money(EUR) = subtotal + tax"
)
OF_ORDER = '{"price": 24.90, "quantity": 3, "rate": "10%", "note": "as agreed"}'


# The agent and its model


class Api:
    """One of the two protocols in which the SDK asks a model."""

    def __init__(self, name: str) -> None:
        self.responses = name == "responses"

    def model(self, client: openai.AsyncOpenAI) -> Any:
        kind = agents.OpenAIResponsesModel if self.responses else agents.OpenAIChatCompletionsModel
        return kind("agents-own", client)

    def says(self, text: str) -> Reply:
        if not self.responses:
            return Reply(completion_body(text))
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return _response(
            [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
        )

    def calls(self, name: str, *arguments: str) -> Reply:
        """A reply that calls a tool, once for each of the arguments."""
        if not self.responses:
            made = [
                {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": each}}
                for number, each in enumerate(arguments)
            ]
            return Reply(completion_body(None, tool_calls=made))
        return _response(
            [
                {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": each}
                for n, each in enumerate(arguments)
            ]
        )

    def outputs(self, received: Received) -> list[str]:
        """What the model is told of the calls it made."""
        if self.responses:
            return [each["output"] for each in received.body["input"] if each.get("type") == "function_call_output"]
        return [each["content"] for each in received.body["messages"] if each["role"] == "tool"]


def _response(output: list[dict[str, Any]]) -> Reply:
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": output, "status": "completed"}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return Reply({**body, **more, "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}})


@pytest.fixture(params=["responses", "chat"])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(request.param)


def _client(url: str) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)  # reading certificates takes longer than a test
    return openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0, http_client=http)


async def run(server: ChatServer, api: Api, tool: Any, **options: Any) -> Any:
    """A run of an agent with one tool."""
    async with _client(server.url) as client:
        agent = agents.Agent(name="clerk", model=api.model(client), tools=[tool], **options)
        return await agents.Runner.run(agent, "Go.", run_config=agents.RunConfig(tracing_disabled=True))


def told(server: ChatServer, api: Api, tool: Any, *arguments: str) -> list[str]:
    """What an agent is told that calls a tool, once for each of the arguments."""
    server.play([api.calls(tool.name, *arguments), api.says("done")])
    assert asyncio.run(run(server, api, tool)).final_output == "done"
    return api.outputs(server.requests[-1])


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
        ("", ["'price' is missing", "'quantity' is missing", "rate: a percentage with its sign"]),
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
        client = _client(chat_server.url)
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


# Outputs of other tools


def checked(output: object, procedure: Any = ORDER, arguments: str = OF_ORDER, **options: Any) -> Any:
    """The check of one output, by the guardrail as the SDK runs it."""
    guardrail = drop_in.verified_output(procedure, **options)
    context = agents.tool_context.ToolContext(None, tool_name="f", tool_call_id="c", tool_arguments=arguments)
    found = asyncio.run(guardrail.run(agents.ToolOutputGuardrailData(context=context, agent=None, output=output)))
    check = found.output_info
    assert (found.behavior["type"] == "allow") is check.verified
    return check


@dataclass
class Order:
    subtotal: float
    total: str


@pytest.mark.parametrize(
    "output",
    [
        *(82.17, "82.17", "82.17 EUR", {"total": 82.17}, '{"total": "82.17", "tax": 7.47, "subtotal": 74.70}'),
        *('{"total": "82.17", "price": 24.9, "rate": "10%"}', Order(74.7, "82.17")),
        *(agents.ToolOutputText(text="82.17"), {"type": "text", "text": '{"total": 82.17}'}),
        [agents.ToolOutputText(text='{"total": 82.17}')],
    ],
)
def test_an_output_that_is_right_passes(output: object) -> None:
    """One value or an object, from Python or as JSON: where all that is claimed is right the agent gets it."""
    assert checked(output).values["subtotal"] * 10 == 747


@pytest.mark.parametrize(
    ("output", "step", "kind"),
    [
        *((82.16, "total", "wrong_value"), ('{"total": 82.17, "tax": 7.46}', "tax", "wrong_value")),
        *(('{"total": 82.17, "price": 24.8}', "price", "wrong_operand"), ("82.17 USD", "total", "malformed")),
        *((True, "total", "malformed"), (float("nan"), "total", "malformed"), (None, "total", "malformed")),
        ("It is 82.17.", "total", "malformed"),
        ("An error occurred while running the tool. Please try again.", "total", "malformed"),
        *(('{"total": 82.17, "total": 82.17}', "total", "duplicate_step"), ('{"tax": 7.47}', "total", "missing_step")),
        *(('{"total": 82.17, "taxx": 7.47}', None, "extra_step"), ('{"total": 82.1', "total", "malformed")),
        *(({"total": "9" * 5000}, "total", "malformed"), ({"total": 10**5000}, "total", "malformed")),
        *(([82.17, 82.17], "total", "malformed"), (object(), "total", "malformed")),
    ],
)
def test_an_output_that_is_not_right_never_passes(output: object, step: str | None, kind: str) -> None:
    """Wrong, misspelt, ambiguous or unreadable: it is named and withheld, and nothing crashes."""
    check = checked(output)
    assert (check.verified, check.step, check.kind) == (False, step, kind)
    assert check.reason


@pytest.mark.parametrize(
    ("arguments", "step"),
    [
        ('{"price": 24.90, "quantity": 3}', "rate"),
        ('{"price": 24.90, "quantity": 3, "rate": 10}', "rate"),
        ('{"price": 24.90, "price": 24.90, "quantity": 3, "rate": "10%"}', "price"),
        ("[]", None),
    ],
)
def test_what_cannot_be_decided_never_passes(arguments: str, step: str | None) -> None:
    """Without the inputs nobody can tell whether an output is right."""
    check = checked(82.17, arguments=arguments)
    assert (check.verified, check.step, check.kind) == (False, step, "undecided")


def test_inputs_that_are_no_arguments_can_be_given() -> None:
    """Fixed inputs stand beside the arguments, and what need not be judged can be left out."""
    arguments = '{"price": 24.90, "quantity": 3}'
    output = {"total": 82.17, "id": 7}
    assert checked(output, arguments=arguments, inputs={"rate": "10%"}, ignore=["id"]).verified
    assert not checked(output, inputs={"rate": "10%"}, ignore=["id"]).verified  # it is an argument, too


def test_an_output_of_another_shape_can_be_read() -> None:
    """`read` says what is claimed; what it raises is no pass."""
    assert checked("EUR=82.17", read=lambda output: output.partition("=")[2]).verified
    check = checked("82.17", read=lambda output: output["total"])
    assert (check.verified, check.kind) == (False, "undecided")


def test_checks_of_the_users_own_decide() -> None:
    """Their verdicts count, a raising or slow one does not pass, and where none applies nothing is verified."""

    def judged(by: Callable[..., Any]) -> Any:
        step = Step("city", instruction="Name the city.", reads=["letter"], checks=[by])
        return checked("Lyon", step, '{"letter": "Lyon, 2 April"}', check_timeout=0.2, at_least="constrained")

    def right(step: Step, values: Mapping[str, object], claim: Claim) -> Verdict | bool:
        return claim.value in str(values["letter"])

    async def slow(step: Step, values: Mapping[str, object], claim: Claim) -> bool:
        await asyncio.sleep(30)
        return True

    def broken(step: Step, values: Mapping[str, object], claim: Claim) -> bool:
        raise ZeroDivisionError

    found = [judged(by) for by in (right, lambda *_: False, slow, broken, lambda *_: None)]
    assert [each.kind for each in found] == [None, "wrong_value", "undecided", "undecided", "unverified"]
    words = Step("city", instruction="Name the city.", reads=["letter"])
    allowed = checked("Lyon", words, '{"letter": "Lyon"}', at_least="unverified")
    assert (allowed.verified, allowed.weak) == (True, {"city": "unverified"})


@pytest.mark.parametrize(
    ("output", "arguments", "verified"),
    [
        ("3", '{"a": "1", "b": 2}', True),
        (3, '{"a": 1, "b": 2}', True),
        ('{"t": 3}', '{"a": 1, "b": 2}', True),
        (4, '{"a": 1, "b": 2}', False),
        (2, '{"a": true, "b": 1}', False),
        ("3", '{"a": "one", "b": 2}', False),
    ],
)
def test_a_single_step_is_checked_alike(output: object, arguments: str, verified: bool) -> None:
    """A step needs no procedure around it: what it reads are the arguments."""
    assert checked(output, Step("t", "a + b"), arguments).verified is verified


def test_a_step_between_that_only_words_describe_has_to_be_claimed() -> None:
    """What neither is claimed nor can be computed leaves the answer undecided."""
    words = Procedure(
        [Step("n", instruction="Count.", reads=["s"], type="integer", checks=[lambda *_: True]), Step("m", "n * 2")],
        inputs=[Input("s", "text")],
    )
    assert checked(6, words, '{"s": "abc"}').kind == "undecided"
    assert checked({"n": 3, "m": 6}, words, '{"s": "abc"}', at_least="constrained").verified


def order_tool(output: str, **options: Any) -> Any:
    """A tool of somebody's that claims the total of `ORDER`."""

    def order(price: float, quantity: int, rate: str) -> str:
        return output

    guardrail = drop_in.verified_output(ORDER, **options)
    return agents.function_tool(order, tool_output_guardrails=[guardrail])


ASKED = '{"price": 24.9, "quantity": 3, "rate": "10%"}'


def test_an_agent_reads_a_right_output_as_it_is(chat_server: ChatServer, api: Api) -> None:
    """The SDK's runner hands a verified output on untouched."""
    assert told(chat_server, api, order_tool('{"total": "82.17"}'), ASKED) == ['{"total": "82.17"}']


def test_an_agent_never_reads_a_wrong_output(chat_server: ChatServer, api: Api) -> None:
    """In its place stand the step and the kind; neither the wrong nor the right value reaches a model."""
    checks: list[Any] = []
    (output,) = told(chat_server, api, order_tool('{"total": "82.71"}', on_check=checks.append), ASKED)
    assert "total (wrong_value)" in output
    everything = json.dumps([each.body for each in chat_server.requests])
    assert "82.17" not in everything
    assert "82.71" not in everything
    assert checks[0].step == "total"
    assert "82.17" in checks[0].reason


def test_a_wrong_output_can_end_the_run(chat_server: ChatServer, api: Api) -> None:
    """With on_wrong="raise" the SDK's tripwire comes out, with the check."""
    chat_server.play(api.calls("order", ASKED))
    with pytest.raises(agents.ToolOutputGuardrailTripwireTriggered) as caught:
        asyncio.run(run(chat_server, api, order_tool("82.71", on_wrong="raise")))
    assert caught.value.output.output_info.kind == "wrong_value"
    assert len(chat_server.requests) == 1


def test_a_tool_that_fails_claims_nothing(chat_server: ChatServer, api: Api) -> None:
    """The SDK's text of a failure in the place of an output does not pass for one."""

    def order(price: float, quantity: int, rate: str) -> str:
        raise RuntimeError("82.17")

    tool = agents.function_tool(order, tool_output_guardrails=[drop_in.verified_output(ORDER)])
    (output,) = told(chat_server, api, tool, ASKED)
    assert "total (malformed)" in output


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
        async with _client(served.url) as client:
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
        async with _client(served.url) as client:
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guard": "openai/gpt-4.1-mini"}, "guard is a Guard"),
        ({"guard": Guard(ScriptedBackend(), observe=True)}, "observ"),
        *(({"procedure": "sums"}, "no procedure is named"), ({"on_unverified": "ignore"}, "on_unverified")),
        *(({"at_least": "sure"}, "at_least"), ({"on_result": 3}, "on_result"), ({"name": "work it out"}, "name")),
        ({"values": ["t3"]}, "t3"),
    ],
)
def test_a_tool_that_cannot_work_is_told_when_it_is_made(options: dict[str, Any], words: str) -> None:
    """A wrong option is an error at once."""
    given = {"procedure": SUMS, "guard": Guard(ScriptedBackend()), **options}
    assert not isinstance(given["guard"], Guard) or given["guard"].observing is (words == "observ")
    with pytest.raises(ConfigError, match=words):
        drop_in.procedure_tool(given.pop("procedure"), given.pop("guard"), **given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"procedure": Procedure.lazy(lambda n: Step(f"t{n}", "x + 1"), 3, look_back=1, inputs=["x"])}, "lazy"),
        ({"procedure": Procedure([Step("t", "x")], inputs=["x"], answer="x")}, "is an input"),
        *(({"inputs": {"z": 1}}, "no input 'z'"), ({"inputs": {"x": "many"}}, "'x'"), ({"ignore": ["t1"]}, "t1")),
        *(({"ignore": "id"}, "ignore"), ({"read": 3}, "read")),
        ({"procedure": Step("city", instruction="Name the city.")}, "unverified at most"),
        *(({"steps": ["t3"]}, "t3"), ({"on_wrong": "refuse"}, "on_wrong"), ({"on_check": 3}, "on_check")),
        *(({"at_least": "sure"}, "at_least"), ({"check_timeout": 0}, "check_timeout")),
    ],
)
def test_a_guardrail_that_cannot_work_is_told_when_it_is_made(options: dict[str, Any], words: str) -> None:
    """A wrong option is an error at once."""
    given = {"procedure": SUMS, **options}
    with pytest.raises(ConfigError, match=words):
        drop_in.verified_output(given.pop("procedure"), **given)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file names its extra where the SDK is not installed."""
    monkeypatch.delitem(sys.modules, "stepguard.integrations.openai_agents")
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(MissingExtraError, match=r'pip install "stepguard\[agents\]"'):
        importlib.import_module("stepguard.integrations.openai_agents")
