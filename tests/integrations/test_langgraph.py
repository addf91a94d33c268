"""A procedure as a node of a graph: what it reads, what it writes, and that it keeps to its own thread."""

from __future__ import annotations

import asyncio
import json
import operator
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypedDict

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.errors import ConfigError, InputError, StepNotVerified
from stepguard.testing import ScriptedBackend, SimulatedModel

pytest.importorskip("langgraph")
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from stepguard.integrations.langgraph import procedure_node

pytestmark = pytest.mark.once

INVOICE = Procedure.parse(
    "name: invoice\ninputs: price, quantity\nnet = price * quantity\ntotal: decimal(2) = net * 1.19"
)
WRONG = '{"net": "24.90 * 3 = 74.7", "total": "74.7 * 1.19 = 88.98"}'
WORDS = Procedure.parse('inputs: place: text\ncountry: text = "Name the country of the place." (reads place)')
FRANCE = '{"country": {"work": "it is there", "value": "France"}}'


class State(TypedDict, total=False):
    """What the graphs of these tests keep."""

    price: Any
    quantity: Any
    answer: Any
    values: dict[str, Any]
    status: str
    refusal: str | None
    result: dict[str, Any]


Invoke = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    """Both faces of a graph."""
    if request.param == "sync":
        return lambda graph, *given, **more: dict(graph.invoke(*given, **more))
    return lambda graph, *given, **more: dict(asyncio.run(graph.ainvoke(*given, **more)))


def compiled(node: Any, schema: Any = State, **options: Any) -> Any:
    """A graph of this node alone."""
    graph = StateGraph(schema)
    graph.add_node("step", node)
    graph.add_edge(START, "step")
    return graph.compile(**options)


def test_a_node_reads_the_state_and_writes_the_answer(invoke: Invoke) -> None:
    """Inputs come from the keys of their names; what is written is JSON data, exact, and kept by a checkpointer."""
    graph = compiled(procedure_node(Guard(SimulatedModel()), INVOICE), checkpointer=InMemorySaver())
    thread: dict[str, Any] = {"configurable": {"thread_id": "1"}}
    state = invoke(graph, {"price": "24.90", "quantity": 3}, thread)
    assert (state["answer"], state["status"], state["refusal"]) == ("88.89", "verified", None)
    assert state["values"] == {"price": "24.9", "quantity": 3, "net": "74.7", "total": "88.89"}
    assert state["result"]["usage"]["calls"] == len(state["result"]["attempts"]) == 1
    assert json.loads(json.dumps(state)) == state
    assert graph.get_state(thread).values == state


@all_rows(
    "given, value",
    [(2**70, str(2**70 * 3)), (Fraction(1, 7), "3/7"), (Decimal("0.10"), "0.3"), (0.1, "0.3"), ("1/7", "3/7"), (0, 0)],
)
def test_numbers_stay_exact_on_the_way_in_and_out(given: object, value: object) -> None:
    """Through a node and a checkpointer, and through another node that reads what the first has written."""
    thrice = Procedure.parse("name: thrice\ninputs: price\nt = price * 3")
    back = Procedure.parse("name: back\ninputs: answer\nu = answer / 3")
    guard = Guard(SimulatedModel())
    graph = StateGraph(State)
    graph.add_node(procedure_node(guard, thrice))
    graph.add_node(procedure_node(guard, back, answer="price", values=None, status=None, refusal=None, result=None))
    graph.add_edge(START, "thrice")
    graph.add_edge("thrice", "back")
    kept: Any = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["back"])
    thread: dict[str, Any] = {"configurable": {"thread_id": "1"}}
    start: dict[str, Any] = {"price": given if not isinstance(given, int | Fraction) else f"{given}"}
    assert kept.invoke(start, thread)["answer"] == value
    found = kept.invoke(None, thread)["price"]
    assert Fraction(str(found)) == Fraction(str(given))


@dataclass
class Kept:
    """A state with attributes."""

    cost: str = "24.90"
    pieces: int = 3
    answer: Any = None


class Checked(BaseModel):
    """A state that pydantic checks."""

    cost: str = "24.90"
    pieces: int = 3
    answer: Any = None


@pytest.mark.parametrize("schema", [Kept, Checked])
@pytest.mark.parametrize(
    "inputs", [{"price": "cost", "quantity": "pieces"}, lambda state: {"price": state.cost, "quantity": state.pieces}]
)
def test_inputs_are_read_from_where_they_are(invoke: Invoke, schema: Any, inputs: Any) -> None:
    """Other keys are named, or a function reads the state, whatever its kind."""
    graph = compiled(procedure_node(Guard(SimulatedModel()), INVOICE, inputs=inputs), schema)
    assert invoke(graph, schema())["answer"] == "88.89"


def test_an_input_that_is_missing_is_an_error(invoke: Invoke) -> None:
    """No model is asked, and the key is named."""
    graph = compiled(procedure_node(Guard(ScriptedBackend()), INVOICE, on_unverified="return"))
    with pytest.raises(InputError, match="no 'quantity'"):
        invoke(graph, {"price": "24.90"})


def test_what_is_not_verified_raises_with_the_result(invoke: Invoke) -> None:
    """By default the graph ends with the error that holds what was verified."""
    graph = compiled(procedure_node(Guard(ScriptedBackend(WRONG, WRONG), repair=1), INVOICE))
    with pytest.raises(StepNotVerified) as caught:
        invoke(graph, {"price": "24.90", "quantity": 3})
    assert caught.value.result.values["net"] == Fraction("74.7")


def test_what_is_not_verified_can_be_routed(invoke: Invoke) -> None:
    """Returned, it has no answer and no values, its line tells no right value, and the graph goes on by the status."""
    graph = StateGraph(State)
    node = procedure_node(Guard(ScriptedBackend(WRONG, WRONG), repair=1), INVOICE, on_unverified="return")
    graph.add_node("invoice", node)
    graph.add_node("ask", lambda state: {"price": f"sorry: {state['refusal']}"})
    graph.add_edge(START, "invoice")
    graph.add_conditional_edges(
        "invoice", lambda state: "done" if state["status"] == "verified" else "ask", {"done": END, "ask": "ask"}
    )
    state = invoke(graph.compile(), {"price": "24.90", "quantity": 3, "answer": "stale", "values": {"stale": 1}})
    assert (state["answer"], state["values"], state["status"]) == (None, {}, "abstained")
    assert "stopped at step total (wrong_value)" in state["price"]
    assert "88.89" not in state["price"]
    assert state["result"]["values"]["net"] == "74.7"


def test_what_nothing_vouches_for_is_an_answer_only_where_that_is_allowed(invoke: Invoke) -> None:
    """By default the node is not made; allowed, an answer is handed on, and the status says what it is."""
    options: dict[str, Any] = {"inputs": {"place": "price"}}

    def node(**more: Any) -> Any:
        return compiled(procedure_node(Guard(ScriptedBackend(FRANCE)), WORDS, **options, **more))

    given = {"price": "Lyon, France"}
    with pytest.raises(ConfigError, match="at_least='unverified'"):
        node(on_unverified="return")
    state = invoke(node(at_least="unverified"), given)
    assert (state["answer"], state["status"]) == ("France", "unverified")


def test_what_is_weaker_than_asked_is_not_routed_as_verified(invoke: Invoke) -> None:
    """A run whose checks passed has no answer where they do not reach `at_least`; its status says `checked`."""
    words = Procedure([Step("city", instruction="Name a city.", checks=[lambda *_: True])])

    def node(**more: Any) -> Any:
        said = {"city": {"work": "as it is", "value": "Lyon"}}
        return compiled(procedure_node(Guard(ScriptedBackend(said)), words, on_unverified="return", **more))

    state = invoke(node(at_least="constrained"), {"price": 1})
    assert (state["answer"], state["status"]) == ("Lyon", "checked")
    state = invoke(node(at_least="proved"), {"price": 1})
    assert (state["answer"], state["status"]) == (None, "checked")


def test_a_reply_that_cannot_be_encoded_does_not_stop_a_checkpointer(invoke: Invoke) -> None:
    """Half of a character in a rejected reply is kept as its escape."""
    bad = '{"net": "\ud800", "total": "74.7 * 1.19 = 88.89"}'
    backend = ScriptedBackend(bad, {"net": "24.90 * 3 = 74.7"}, {"total": "74.7 * 1.19 = 88.89"})
    graph = compiled(procedure_node(Guard(backend), INVOICE), checkpointer=InMemorySaver())
    state = invoke(graph, {"price": "24.90", "quantity": 3}, {"configurable": {"thread_id": "1"}})
    assert state["answer"] == "88.89"
    assert "\\ud800" in state["result"]["attempts"][0]["text"]


class Slow:
    """Answers `INVOICE` from the values of the request, the first to ask last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._model = SimulatedModel()

    def _delay(self) -> float:
        with self._lock:
            self._asked += 1
            return 0.3 / self._asked

    def complete(self, request: Request) -> Completion:
        time.sleep(self._delay())
        return self._model.complete(request)

    async def acomplete(self, request: Request) -> Completion:
        await asyncio.sleep(self._delay())
        return self._model.complete(request)


class Many(TypedDict, total=False):
    """A state with answers that are put together."""

    price: str
    quantity: int
    a: Any
    b: Any
    c: Any
    found: Annotated[list[Any], operator.add]


def test_nodes_side_by_side_do_not_mix(invoke: Invoke) -> None:
    """Each writes its own answer into its own key, whoever ends first."""
    graph = StateGraph(Many)
    guard = Guard(Slow())
    quiet: dict[str, Any] = {"values": None, "status": None, "refusal": None, "result": None}
    for at, key in enumerate("abc", 1):
        factor = Procedure.parse(f"name: times_{at}\ninputs: price, quantity\nnet = price * quantity * {at}")
        graph.add_node(procedure_node(guard, factor, answer=key, **quiet))
        graph.add_edge(START, f"times_{at}")
    state = invoke(graph.compile(), {"price": "2.5", "quantity": 4})
    assert [state[key] for key in "abc"] == [10, 20, 30]


def test_items_that_are_sent_to_one_node_do_not_mix(invoke: Invoke) -> None:
    """Every item of a fan-out gets the answer to itself."""
    node = procedure_node(Guard(Slow()), INVOICE, values=None, status=None, refusal=None, result="one")

    def gather(state: Any) -> dict[str, Any]:
        return state  # type: ignore[no-any-return]

    graph = StateGraph(Many)
    graph.add_node("fan", gather)
    graph.add_node("item", node | (lambda found: {"found": [(found["one"]["values"]["price"], found["answer"])]}))
    graph.add_edge(START, "fan")
    graph.add_conditional_edges(
        "fan", lambda state: [Send("item", {"price": str(each), "quantity": 1}) for each in range(100, 108)], ["item"]
    )
    found = invoke(graph.compile(), {"price": "1", "quantity": 1})["found"]
    assert sorted(found) == sorted((each, str(Decimal(each) * Decimal("1.19"))) for each in range(100, 108))


@pytest.mark.parametrize("awaited", [False, True])
def test_threads_of_a_checkpointer_do_not_mix(awaited: bool) -> None:
    """Conversations at the same time, over one graph and one guard, each keep their own."""
    graph = compiled(procedure_node(Guard(Slow()), INVOICE), checkpointer=InMemorySaver())
    given: list[Any] = [{"price": str(each), "quantity": 1} for each in range(100, 108)]
    threads: list[Any] = [{"configurable": {"thread_id": str(each)}} for each in range(100, 108)]
    wanted = [str(Decimal(each) * Decimal("1.19")) for each in range(100, 108)]
    states = asyncio.run(graph.abatch(given, threads)) if awaited else graph.batch(given, threads)
    assert [state["answer"] for state in states] == wanted
    assert [graph.get_state(thread).values["answer"] for thread in threads] == wanted


def test_an_interrupt_inside_a_run_goes_through() -> None:
    """A backend that asks a person by an interrupt stops the graph, and answers when it is resumed."""

    def person(messages: Any) -> str:
        return str(interrupt("please work it out"))

    graph = compiled(procedure_node(Guard(person), INVOICE), checkpointer=InMemorySaver())
    thread: dict[str, Any] = {"configurable": {"thread_id": "1"}}
    state = graph.invoke({"price": "24.90", "quantity": 3}, thread)
    assert state["__interrupt__"][0].value == "please work it out"
    good = '{"net": "24.90 * 3 = 74.7", "total": "74.7 * 1.19 = 88.89"}'
    assert graph.invoke(Command(resume=good), thread)["answer"] == "88.89"


def test_cancellation_leaves_nothing_behind() -> None:
    """The graph is cancelled, and no task is left."""

    async def never(messages: Any) -> str:
        await asyncio.sleep(3600)
        return ""

    async def main() -> int:
        graph = compiled(procedure_node(Guard(never), INVOICE))
        task = asyncio.create_task(graph.ainvoke({"price": "24.90", "quantity": 3}))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks()) - 1

    assert asyncio.run(main()) == 0
