"""The OpenAI Agents SDK: outputs of other tools are checked before an agent reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import openai_agents_harness
import pytest
from conftest import ChatServer
from openai_agents_harness import ORDER, Api, agents, drop_in, run, told
from tables import all_rows

from stepguard import Input, Procedure, Step
from stepguard.core.verdicts import Claim, Verdict

api = openai_agents_harness.api

pytestmark = pytest.mark.once

OF_ORDER = '{"price": 24.90, "quantity": 3, "rate": "10%", "note": "as agreed"}'


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


@all_rows(
    "output, step, kind",
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
        *(('{"price": 24.90, "quantity": 3}', "rate"), ('{"price": 24.90, "quantity": 3, "rate": 10}', "rate")),
        *(('{"price": 24.90, "price": 24.90, "quantity": 3, "rate": "10%"}', "price"), ("[]", None)),
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
        *(("3", '{"a": "1", "b": 2}', True), (3, '{"a": 1, "b": 2}', True), ('{"t": 3}', '{"a": 1, "b": 2}', True)),
        *((4, '{"a": 1, "b": 2}', False), (2, '{"a": true, "b": 1}', False), ("3", '{"a": "one", "b": 2}', False)),
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
