"""`named_run`: the runs that drop-ins start are kept under a name, and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Reply, completion_body

from stepguard import Guard, Procedure
from stepguard.errors import BackendError, ConfigError, RunConflict
from stepguard.integrations.decorator import guarded
from stepguard.ledger import Ledger, named_run
from stepguard.testing import SimulatedModel, Slips

TEXT = "name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3"
INPUTS = {"x": 12, "y": 7}
GOOD = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """A ledger of its own."""
    with Ledger(tmp_path / "runs.db") as made:
        yield made


def names(ledger: Ledger) -> list[str]:
    return sorted(run.run_id for run in ledger.runs())


def steady() -> SimulatedModel:
    return SimulatedModel(seed=1, slips=Slips.none())


def test_a_decorated_function_goes_on_where_its_run_was_cut_off(ledger: Ledger) -> None:
    """What was verified before the model went down is not asked again, and an ended run asks nothing."""
    replies: list[Any] = ['{"t2": "12 + 7 = 19"}', BackendError("down", retryable=False), '{"t1": "19 * 3 = 57"}']

    @guarded(TEXT, segment=1, ledger=ledger)
    def sums(messages: list[dict[str, str]]) -> str:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return str(reply)

    results = []
    for _ in range(3):
        with named_run("monday"):
            results.append(sums(**INPUTS))
    assert [result.status for result in results] == ["failed", "verified", "verified"]
    assert (results[-1].answer, names(ledger), replies) == (57, ["monday"], [])


def test_an_awaited_function_has_the_name_of_its_own_task(tmp_path: Path) -> None:
    """Tasks side by side keep their names apart."""

    @guarded(TEXT, ledger=tmp_path / "runs.db")
    async def sums(messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return GOOD

    async def one(name: str) -> str:
        with named_run(name):
            return str((await sums(**INPUTS)).run_id)

    async def main() -> list[str]:
        return [*await asyncio.gather(one("a"), one("b"))]

    assert asyncio.run(main()) == ["a", "b"]


def test_a_name_is_of_one_procedure_with_its_inputs(ledger: Ledger) -> None:
    """Other inputs inside are refused; what is given by name, is asked outside, or is not kept has no part in it."""
    guard, procedure = Guard(steady(), ledger=ledger), Procedure.parse(TEXT)
    with named_run("monday"):
        guard.run(procedure, INPUTS)
        with pytest.raises(RunConflict):
            guard.run(procedure, {"x": 1, "y": 1})
        guard.run(procedure, {"x": 1, "y": 1}, run_id="tuesday")
        assert Guard(steady()).run(procedure, {"x": 1, "y": 1}).run_id != "monday"
    assert names(ledger) == ["monday", "tuesday"]
    assert guard.run(procedure, {"x": 1, "y": 1}).run_id not in ("monday", "tuesday")


def test_rows_of_a_batch_are_named_apart(ledger: Ledger) -> None:
    """Each row is a run under the name and its key."""
    guard, procedure = Guard(steady(), ledger=ledger), Procedure.parse(TEXT)
    with named_run("night"):
        rows = list(guard.map(procedure, [{"x": 1, "y": 2}, {"x": 3, "y": 4}]))
    assert all(row.result is not None and row.result.verified for row in rows)
    assert names(ledger) == ["night/0", "night/1"]


@pytest.mark.parametrize("name", ["", "two\nlines", 7])
def test_what_cannot_name_a_run_is_refused(name: Any) -> None:
    """Before anything is run."""
    with pytest.raises(ConfigError, match="run_id"), named_run(name):
        raise AssertionError


def twice(call: Callable[[], Any]) -> None:
    for _ in range(2):
        with named_run("monday"):
            call()


def test_a_node_of_a_graph_goes_on(ledger: Ledger) -> None:
    """A graph that is invoked again under the name asks nothing again."""
    graphs = pytest.importorskip("langgraph.graph")
    from stepguard.integrations.langgraph import procedure_node

    node = procedure_node(Guard(steady(), ledger=ledger), TEXT)
    graph = graphs.StateGraph(dict).add_node("sums", node).add_edge(graphs.START, "sums").compile()
    twice(lambda: graph.invoke(INPUTS))
    twice(lambda: asyncio.run(graph.ainvoke(INPUTS)))
    (run,) = ledger.runs()
    assert (run.run_id, run.calls) == ("monday", 1)


def test_an_agent_of_pydantic_ai_goes_on(ledger: Ledger) -> None:
    """The request that is guarded is the run."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai_harness import Double, run

    from stepguard.integrations.pydantic_ai import GuardedProcedures

    double = Double(GOOD)
    guarding: Any = GuardedProcedures(procedure=TEXT, inputs=INPUTS, ledger=ledger)
    agent: Agent[None, str] = Agent(double.model, capabilities=[guarding])
    twice(lambda: run(agent, "go"))
    assert (names(ledger), len(double.asked)) == (["monday"], 1)


def test_an_agent_of_langchain_goes_on(ledger: Ledger, chat_server: ChatServer) -> None:
    """Likewise, and the run is the only request that its server sees."""
    pytest.importorskip("langchain_openai")
    from langchain.agents import create_agent
    from langchain_harness import GuardMiddleware, blocking_http, chat_model

    chat_server.play([Reply(completion_body(GOOD))])
    with blocking_http() as http:
        middleware = [GuardMiddleware(procedure=TEXT, inputs=INPUTS, ledger=ledger)]
        agent: Any = create_agent(chat_model(chat_server, max_retries=0, http_client=http), middleware=middleware)
        twice(lambda: agent.invoke({"messages": [{"role": "user", "content": "go"}]}))
    assert (names(ledger), len(chat_server.requests)) == (["monday"], 1)
