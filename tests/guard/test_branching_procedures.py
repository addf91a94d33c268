"""What was made for a list of steps works with branches, loops and calls, too, or refuses them by name."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from stepguard import Guard, Input, Procedure, Step
from stepguard.cli import main, report
from stepguard.engine.forecast import Forecast
from stepguard.errors import ConfigError
from stepguard.evaluation.cases.cases import load_cases
from stepguard.integrations.outputs.checker import OutputChecker
from stepguard.language.expressions import Name, Number
from stepguard.language.terms.operands import Aggregate, ListTerm
from stepguard.procedure.statements import ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.results import Result
from stepguard.testing import SimulatedModel, Slips

RIGHT = Slips.none()
TAKEN: dict[str, object] = {"x": 4, "left": 25}


def loops() -> Procedure:
    """A branch in a loop, a loop with a bound, a call, a tool."""
    fee = Procedure([Step("double", "weight * 2")], inputs=["weight"], name="shipping")
    listed = ListTerm((Number(3), Name("x"), Number(50)))
    body: list[Statement] = [
        ForEach("n", listed, [If([("n > 10", [Step("paid", "n * 2")])], [Step("paid", "n * 3")])]),
        Step("total", Aggregate("sum", Name("paid"))),
        ProcedureCall("cost", fee, {"weight": "x"}),
        Step("receipt", operation="pay", arguments={"amount": "total"}, performer="tool", type="text"),
        Repeat(4, [Step("left", "left - 10")], until="left <= 0"),
    ]
    return Procedure(
        body, inputs=["x", "left"], answer="paid", name="claim", tools={"pay": lambda amount: f"paid {amount}"}
    )


def finish(procedure: Procedure, inputs: dict[str, object], **options: Any) -> Result:
    return Guard(SimulatedModel(slips=RIGHT), **options).run(procedure, inputs)


class TestReport:
    """The table and the sentence of `stepguard run`."""

    def test_the_steps_of_the_way_that_was_taken(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Each by its place, with what it says and its value; the answer of a loop is a list."""
        procedure = loops()
        report.print_result(finish(procedure, TAKEN), procedure, model="m")
        out = " ".join(capsys.readouterr().out.split())
        assert "n[2].paid n * 2 100 verified" in out
        assert "cost.double weight * 2 8 verified" in out
        assert "receipt tool pay(amount=total) paid 121" in out
        assert "VERIFIED: all 9 steps of claim; paid = [9, 12, 100]" in out

    def test_where_it_stopped(self, capsys: pytest.CaptureFixture[str]) -> None:
        """By the place in the loop, and without a total that nobody knows."""
        procedure = loops()
        report.print_result(finish(procedure, {"x": 4, "left": 99}), procedure, model="m")
        out = " ".join(capsys.readouterr().out.split())
        assert "EXHAUSTED: stopped before step repeat[3]: `repeat at most 4 times` is at its bound" in out

    def test_many_rounds_are_folded(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The table is readable, whatever the length of the run."""
        body = [Step("left", "left - 1", performer="code")]
        procedure = Procedure([Repeat(2000, body, until="left <= 0")], inputs=["left"], name="down")
        report.print_result(finish(procedure, {"left": 1000}), procedure, model="m")
        out = capsys.readouterr().out
        assert "800 more steps" in out
        assert len(out.split("\n")) < 230


def test_a_run_in_the_terminal_counts_what_it_has_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no total to count towards, and inputs with a default may be left out."""
    procedure = Procedure(
        [Repeat(9, [Step("left", "left - 10")], until="left <= 0"), Step("end", "left + y")],
        inputs=["left", Input("y", default=1)],
        name="down",
    )
    monkeypatch.setattr("stepguard.cli.run.load_file", lambda path: procedure)
    assert main(["run", "down.txt", "--input", "left=35"]) == 0
    printed = capsys.readouterr()
    assert "down on SIMULATED MODEL: steps\n" in printed.err
    assert "1 steps" in printed.err
    assert "VERIFIED: all 5 steps of down; end = -4" in printed.out


class TestForecast:
    """The longest way is forecast, and that it is no more than that is said."""

    def told(self, procedure: Procedure) -> Forecast:
        rest = (Step(f"s{at}", f"s{at - 1} + 1") for at in range(1, 20))
        straight = Procedure([Step("s0", "x + 1"), *rest], inputs=["x"])
        model = SimulatedModel(slips=RIGHT)
        profile = Guard(model).run(straight, {"x": 1}).profile
        return Guard(model, profile=profile, segment=1).forecast(procedure)

    def test_the_longest_way(self) -> None:
        """The longer branch, and every round that the bound allows."""
        body: list[Statement] = [
            If([("x > 1", [Step("a", "x + 1"), Step("b", "a + 1"), Step("c", "b + 1")])], [Step("c", "x + 2")]),
            Repeat(5, [Step("c", "c + 1")], until="c > 100"),
        ]
        told = self.told(Procedure(body, inputs=["x"], answer="c"))
        plain = self.told(Procedure([Step("s", "x + 1")], inputs=["x"]))
        assert told.bound
        assert not plain.bound
        assert told.calls == pytest.approx(8 * plain.calls, rel=0.1)

    def test_a_bound_of_any_size_takes_no_time(self) -> None:
        """The first steps stand for all of them."""
        told = self.told(Procedure([Repeat(10**9, [Step("c", "c + 1")], until="c > 100")], inputs=["c"]))
        assert told.bound
        assert told.calls > 50
        assert told.success < 0.01

    def test_a_list_that_is_not_known_is_refused(self) -> None:
        """With what can be forecast instead."""
        procedure = Procedure(
            [ForEach("n", "items", [Step("d", "n + 1")])], inputs=[Input("items", "list of number")], name="many"
        )
        with pytest.raises(ConfigError, match="many cannot be forecast: how long items is"):
            self.told(procedure)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ([If([("x > 1", [Step("t", "x + 1")])], [Step("t", "x")])], "branches"),
        ([Repeat(3, [Step("x", "x + 1")], until="x > 9")], "a loop"),
        ([Step("t", "x + 1"), ForEach("n", ListTerm((Name("t"),)), [Step("u", "n + 1")])], "a loop"),
        (
            [Step("t", instruction="Approve?", type="boolean", performer="person")],
            "the step 't', which a person performs",
        ),
        ([Step("t", Aggregate("sum", ListTerm((Name("x"),))))], "the step 't', which computes with more than numbers"),
    ],
    ids=["branch", "repeat", "for-each", "person", "terms"],
)
def test_what_needs_every_step_beforehand_refuses_the_procedure(
    body: list[Statement], named: str, tmp_path: Path
) -> None:
    """Benchmarks of one's own procedure and checks of outputs name what it is, and what to do."""
    procedure = Procedure(body, inputs=["x"], name="order")
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"inputs": {"x": 1}, "expected": 2}\n', encoding="utf-8")
    for refused, remedy in (
        (lambda: load_cases(procedure, cases), "as a procedure of their own"),
        (lambda: OutputChecker(procedure), "check it against one step"),
    ):
        with pytest.raises(ConfigError, match=f"a list of plain steps, and order has {named}: .*{remedy}"):
            refused()


def test_an_answer_that_is_an_expression_is_named() -> None:
    """A procedure whose steps are plain may still give more than one of their values."""
    procedure = Procedure([Step("t", "x + 1")], inputs=["x"], answer=ListTerm((Name("t"), Name("x"))), name="order")
    with pytest.raises(ConfigError, match="order has an answer that is an expression"):
        OutputChecker(procedure)


def test_logs_name_steps_by_their_place(caplog: pytest.LogCaptureFixture) -> None:
    """A step of a round is found again in the procedure."""
    caplog.set_level(logging.DEBUG, logger="stepguard")
    finish(loops(), TAKEN)
    assert "n[2].paid" in caplog.text
    assert "cost.double" in caplog.text


def test_traces_name_steps_by_their_place() -> None:
    """And tell no total beforehand."""
    pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from stepguard.telemetry.opentelemetry import OpenTelemetry

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    finish(loops(), TAKEN, observer=OpenTelemetry(tracer_provider=provider))
    ids = {
        event.attributes["stepguard.step.id"]
        for span in kept.get_finished_spans()
        for event in span.events
        if event.attributes and "stepguard.step.id" in event.attributes
    }
    assert {"n[0].paid", "n[2].paid", "cost.double", "receipt", "repeat[2].left"} <= ids
    (whole,) = (span for span in kept.get_finished_spans() if span.name.startswith("invoke_workflow"))
    assert whole.attributes is not None
    assert "stepguard.steps.total" not in whole.attributes
    assert whole.attributes["stepguard.steps.completed"] == 9


def test_an_agent_runs_one_and_is_told_its_values_by_their_places() -> None:
    """Lists and records come out as JSON; a single step of it cannot be verified alone, which is said."""
    pytest.importorskip("mcp.server.mcpserver")
    from mcp_harness import call, text

    from stepguard.integrations.mcp.server import create_server

    server = create_server({"m": SimulatedModel(slips=RIGHT)}, procedures={"claim": loops()})
    ran = call(server, "run_procedure", {"procedure": "claim", "inputs": TAKEN})
    assert not ran.is_error, text(ran)
    assert ran.structured_content["answer"] == [9, 12, 100]
    assert ran.structured_content["values"]["n[2].paid"] == 100
    assert ran.structured_content["values"]["receipt"] == "paid 121"
    listed = call(server, "list_procedures", {})
    assert "tool pay(amount=total)" in [step["text"] for step in listed.structured_content["procedures"][0]["steps"]]
    arguments = {"procedure": "claim", "step": "total", "values": {}, "value": "121"}
    refused = call(server, "verify_step", arguments)
    assert refused.is_error
    assert "verify_step needs a procedure that is a list of plain steps, and claim has a loop" in text(refused)


def test_a_tool_of_an_agent_gives_lists_with_their_units() -> None:
    """What a loop has set is a list of values, each as it is told alone; an input with a default may be left out."""
    agents = pytest.importorskip("agents")
    from agents.tool_context import ToolContext

    from stepguard.integrations.openai_agents import procedure_tool

    listed = ListTerm((Name("x"), Number(50)))
    procedure = Procedure(
        [ForEach("n", listed, [Step("paid", "n * y", type="money(EUR)")])],
        inputs=["x", Input("y", default=2)],
        answer="paid",
        name="claim",
    )
    tool = procedure_tool(procedure, Guard(SimulatedModel(slips=RIGHT)))
    context = ToolContext(None, usage=agents.Usage(), tool_name="claim", tool_call_id="1", tool_arguments='{"x": 4}')

    async def called() -> Any:
        return json.loads(await tool.on_invoke_tool(context, '{"x": 4}'))

    said = asyncio.run(called())
    assert said["answer"] == ["8.00 EUR", "100.00 EUR"]
    assert said["values"] == {"paid": ["8.00 EUR", "100.00 EUR"]}
    assert "1 steps with branches or loops" in tool.description
