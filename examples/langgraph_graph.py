"""A LangGraph graph with a procedure as a node: paid where it is verified, looked at by a person where it is not.

python examples/langgraph_graph.py            (needs ``pip install "stepguard[langgraph]"``)

No key is needed: the model is a double. Put ``Guard("openai/gpt-4.1-mini")`` in its place to ask a real one.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from stepguard import Guard, Procedure
from stepguard.integrations.langgraph import procedure_node
from stepguard.testing import ScriptedBackend

INVOICE = Procedure.parse("""
    name: invoice
    inputs: price, quantity
    net = price * quantity
    total: decimal(2) = net * 1.19
""")
RIGHT = {"net": "24.90 * 3 = 74.70", "total": "74.70 * 1.19 = 88.89"}
WRONG = {"net": "24.90 * 3 = 74.70", "total": "74.70 * 1.19 = 88.98"}


class State(TypedDict, total=False):
    """What the graph keeps."""

    price: str
    quantity: int
    answer: str | None
    status: str
    refusal: str | None
    done: str


def graph_on(guard: Guard) -> Any:
    """The graph, with its state kept by a checkpointer."""
    graph = StateGraph(State)
    graph.add_node(procedure_node(guard, INVOICE, on_unverified="return"))
    graph.add_node("pay", lambda state: {"done": f"paid {state['answer']}"})
    graph.add_node("look", lambda state: {"done": f"to be looked at: {state['refusal'].partition(';')[0]}"})
    graph.add_edge(START, "invoice")
    graph.add_conditional_edges("invoice", lambda state: "pay" if state["status"] == "verified" else "look")
    graph.add_edge("pay", END)
    graph.add_edge("look", END)
    return graph.compile(checkpointer=InMemorySaver())


def main() -> None:
    """One order with a model that slips once, one with a model that insists on a wrong step."""
    for thread, replies in {"slips": (WRONG, {"total": RIGHT["total"]}), "insists": (WRONG,) * 3}.items():
        graph = graph_on(Guard(ScriptedBackend(*replies), repair=2))
        state = graph.invoke({"price": "24.90", "quantity": 3}, {"configurable": {"thread_id": thread}})
        print(f"{thread}: {state['done']}")


if __name__ == "__main__":
    main()
