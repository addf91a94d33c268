"""Outputs of agents of pydantic-ai: handed on only where every step is right."""

from __future__ import annotations

import asyncio
import logging
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import GOOD, INPUTS, SUMS, Double, Sums, agent, run, said

from stepguard import Procedure, Step
from stepguard.errors import ConfigError
from stepguard.integrations.pydantic_ai import OutputCheck, OutputNotVerified, VerifiedOutput, check_of

pytestmark = pytest.mark.once


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
        *((str, "58", "57"), (str, '{"t2": 19, "t1": 57, "t1": 57}', '{"t2": 19, "t1": 57}')),
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
    from pydantic_ai.models.function import DeltaToolCall

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


def test_an_output_that_holds_no_steps_is_a_mistake() -> None:
    """A list, or one value of a procedure whose other steps code cannot compute, is told and not asked again."""
    double = Double({"response": [19, 57]})
    with pytest.raises(ConfigError, match="list"):
        run(agent(double, VerifiedOutput(SUMS, inputs=INPUTS), output_type=list[int], retries=3), "Go.")
    words = Procedure([Step("c", instruction="Name it.", checks=[lambda *_: True]), Step("n", "1 + 1")])
    with pytest.raises(ConfigError, match="one value"):
        run(agent(Double({"response": 2}), VerifiedOutput(words), output_type=int), "Go.")
    assert len(double.asked) == 1
