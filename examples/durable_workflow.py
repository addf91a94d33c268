"""A procedure inside a durable workflow, without a ledger: the workflow engine remembers, and the guard only decides.

python examples/durable_workflow.py

Temporal, Restate, Inngest and their like carry a workflow out again from its start after a crash, and give back what
each named step of it gave before. `Workflow` is that in thirty lines. The engine of stepguard does no I/O, so that it
runs inside: calls of the model and of tools are steps, everything else is worked out anew and comes out the same.
Here the process "dies" after every single step; the model is asked once for each segment, and the tool is called once.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from stepguard import Guard, Procedure, Result, Usage
from stepguard.backends import Completion, Request
from stepguard.engine.actions import Act, Ask, Failed, Performed, Replied
from stepguard.engine.run import Run
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel, Slips

PROCEDURE = """\
name: order
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 19%
total: decimal(2) = subtotal + tax
receipt: text = tool pay(amount=total)
points = quantity * 3
"""
paid: list[str] = []


class Died(Exception):
    """The process is gone."""


class Workflow:
    """A toy of a workflow engine: what a step gave is in a file by its name, and is not done again."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._known: dict[str, Any] = json.loads(journal.read_text(encoding="utf-8")) if journal.exists() else {}

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """What the step of this name gave, done now where it was not; then the process dies."""
        if name not in self._known:
            self._known[name] = work()
            self._journal.write_text(json.dumps(self._known), encoding="utf-8")
            raise Died(name)
        return self._known[name]


class Model:
    """A simulated model that makes slips, and counts what it is asked."""

    def __init__(self) -> None:
        self.calls = 0
        self._model = SimulatedModel(seed=3, slips=Slips(wrong_value=0.2, systematic=0.0))

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        self.calls += 1
        return self._model.complete(request)


def pay(amount: float) -> str:
    """Pay."""
    paid.append(f"{float(amount):.2f}")
    return f"R-{len(paid)}"


def carry_out(workflow: Workflow, guard: Guard, model: Model) -> Result:
    """The workflow: the same guard with the same seed takes the same way wherever the same was answered."""
    run = guard.start(Procedure.parse(PROCEDURE, tools={"pay": Tool(pay)}), {"price": "12.50", "quantity": 4})
    number = 0
    while not run.done:
        action = run.next_action()
        assert action is not None
        number += 1
        if isinstance(action, Ask):
            kept = workflow.step(f"{number} ask", partial(ask, model, action.request))
            run.send(Replied(action.id, Completion(text=kept["text"], usage=Usage(**kept["usage"]))))
        elif isinstance(action, Act) and action.operation is not None:
            run.send(Performed(action.id, workflow.step(f"{number} {action.step.id}", partial(call, run, action))))
        else:
            run.send(run.perform(action))
    return run.result()


def ask(model: Model, request: Request) -> dict[str, Any]:
    """What a model says, as JSON data."""
    return asdict(model.complete(request))


def call(run: Run, action: Act) -> Any:
    """What a tool gives; here that is text. One that fails ends the workflow."""
    event = run.perform(action)
    if isinstance(event, Failed):
        raise event.error
    assert isinstance(event, Performed)
    return event.value


def main() -> None:
    """Carry the workflow out until it lives through."""
    model = Model()
    guard = Guard(model, segment=2, seed=7)
    with tempfile.TemporaryDirectory() as folder:
        for life in range(1, 100):
            try:
                result = carry_out(Workflow(Path(folder, "journal.json")), guard, model)
            except Died as death:
                print(f"life {life} ended behind step {death}")
            else:
                break
    print(f"life {life}: {result.status}: total {result.values['total']}, {result.values['receipt']}")
    print(f"{model.calls} model calls, {result.usage.calls} of them counted; paid {', '.join(paid)}")


if __name__ == "__main__":
    main()
