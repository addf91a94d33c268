"""What the gate of a policy adds to a call, without any judgement: beside the same session without the gate.

python benchmarks/gate_times.py [--sessions 300] [--calls 20] [--agents 1000] [--ledger] [--json]

A session is one conversation at the refund desk: look an order up, pay some of it back, look up the next. Three ways
make it, in turn, each with the gate and without it: the gate by itself (`offer`, `result`), `ToolGate` before Python
functions, and the MCP gate between the lines of a client and a server in this process. Printed are microseconds that
the gate adds to a call, busy on a processor and on the clock: the median, and what 95 of 100 calls stay below; of all
calls, and of those that change something and are judged.

Then so many agents at once, each with a gate and a state of its own over one policy, from 16 threads, their calls
mixed: whether every decision is the one that the same agent gets alone, the memory of a gate, and the time of a call.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from stepguard import Policy
from stepguard.integrations.mcp_gate import GatedSession
from stepguard.integrations.tool_gate import ToolGate
from stepguard.ledger import Ledger
from stepguard.policy import PolicyGate

NOW = datetime(2026, 3, 10, tzinfo=UTC)
POLICY = """
record Order:
  customer: text
  paid: money(EUR)
  refunded: money(EUR) = 0
  placed: moment
tool get_order(id: text) -> Order reads
tool refund(order: text, amount: money(EUR)) changes get_order(order)
fact customer: text
before refund(id, amount):
  seen get_order(id) as order
  require order.customer == customer "Only orders of this customer are paid back."
  require amount > 0 and amount <= order.paid - order.refunded "No more than what was paid."
  require now.at - order.placed.at <= 30 days "After 30 days nothing is paid back."
  at most 2 times per id within 24 hours
"""
ORDER = {"customer": "C1", "paid": "150.00", "placed": "2026-03-01T10:00:00Z", "lines": ["a lamp", "a shade"]}


class Call(NamedTuple):
    """A call of a session, and what its tool gives back."""

    id: str
    tool: str
    arguments: dict[str, Any]
    result: object


def session_calls(session: int, count: int) -> Iterator[Call]:
    """A session: every other call changes something and is judged."""
    for number in range(count):
        order = f"A{session}-{number // 2}"
        if number % 2:
            yield Call(f"c{number}", "refund", {"order": order, "amount": 20.5}, "20.5 paid back")
        else:
            yield Call(f"c{number}", "get_order", {"id": order}, ORDER)


class Timing(NamedTuple):
    """Seconds that a call took: on the clock, and of this thread on a processor, whatever else the machine does."""

    wall: float
    busy: float


def time_call(act: Callable[[], object]) -> Timing:
    """What it takes."""
    started = Timing(time.perf_counter(), time.thread_time())
    act()
    return Timing(time.perf_counter() - started.wall, time.thread_time() - started.busy)


def new_gate(policy: Policy, **options: Any) -> PolicyGate:
    """The gate of a session."""
    return policy.gate(facts={"customer": "C1"}, **options)


def gate_timings(policy: Policy | None, calls: list[Call]) -> list[Timing]:
    """The calls through `offer` and `result`; without the gate there is nothing to do."""
    gate = None if policy is None else new_gate(policy)

    def through(call: Call, arguments: str, result: str) -> None:
        if gate is not None:
            assert gate.offer(call.tool, arguments, id=call.id, now=NOW).allowed
            gate.result(call.id, result)

    texts = [(call, json.dumps(call.arguments), json.dumps(call.result)) for call in calls]
    return [time_call(partial(through, *each)) for each in texts]


def tool_gate_timings(policy: Policy | None, calls: list[Call]) -> list[Timing]:
    """The calls of a loop: arguments as text, the result as text for the model."""
    functions: dict[str, Callable[..., object]] = {
        "get_order": lambda id: ORDER,
        "refund": lambda order, amount: f"{amount} paid back",
    }
    gate = None if policy is None else ToolGate(new_gate(policy), functions, clock=lambda: NOW)

    def through(call: Call, arguments: str) -> str:
        if gate is not None:
            return gate.call(call.tool, arguments, id=call.id)
        return json.dumps(functions[call.tool](**json.loads(arguments)))

    texts = [(call, json.dumps(call.arguments)) for call in calls]
    return [time_call(partial(through, *each)) for each in texts]


def mcp_gate_timings(policy: Policy | None, calls: list[Call]) -> list[Timing]:
    """The lines of a client and of a server, which without the gate pass as they are."""
    session = None if policy is None else GatedSession(new_gate(policy), clock=lambda: NOW)

    def through(request: str, answer: str) -> None:
        if session is not None:
            assert session.from_client(request)[0].to == "server"
            assert session.from_server(answer)[0].to == "client"

    texts = []
    for number, call in enumerate(calls):
        request = {"method": "tools/call", "params": {"name": call.tool, "arguments": call.arguments}}
        text = {"type": "text", "text": json.dumps(call.result, indent=2)}
        structured = call.result if isinstance(call.result, dict) else {"result": call.result}
        result = {"content": [text], "structuredContent": structured, "isError": False}
        head = {"jsonrpc": "2.0", "id": number}
        texts.append((json.dumps({**head, **request}), json.dumps({**head, "result": result})))
    return [time_call(partial(through, *each)) for each in texts]


ARMS: dict[str, Callable[[Policy | None, list[Call]], list[Timing]]] = {
    "gate": gate_timings, "ToolGate": tool_gate_timings, "MCP gate": mcp_gate_timings,
}  # fmt: skip


def added_times(sessions: int, count: int) -> dict[str, dict[str, float]]:
    """Microseconds that each way adds to a call."""
    policy = Policy.parse(POLICY)
    more: dict[str, list[Timing]] = {name: [] for name in ARMS}
    for session in range(-5, sessions):  # the first ones warm up
        planned = list(session_calls(session, count))
        for name, way in ARMS.items():
            pair = (None, policy) if session % 2 else (policy, None)
            both = {given is not None: way(given, planned) for given in pair}
            if session >= 0:
                pairs = zip(both[True], both[False], strict=True)
                more[name] += [Timing(mine.wall - own.wall, mine.busy - own.busy) for mine, own in pairs]
    return {name: {"calls": len(taken), **summary(taken)} for name, taken in more.items()}


def summary(taken: list[Timing]) -> dict[str, float]:
    """Microseconds of the median call, and what 95 of 100 stay below; of those that change something as well."""
    rows: dict[str, list[float]] = {}
    for name, some in (("", taken), ("judged ", taken[1::2])):
        rows[f"{name}busy"] = [each.busy * 1e6 for each in some]
        rows[f"{name}wall"] = [each.wall * 1e6 for each in some]
    return {
        f"{name} {part}": value
        for name, row in rows.items()
        for part, value in (("median", statistics.median(row)), ("95 %", quantile(row)))
    }


def quantile(values: list[float]) -> float:
    """What 95 of 100 stay below."""
    return statistics.quantiles(values, n=20)[-1]


# ---- many agents


class Agent:
    """An agent with a gate of its own, that asks for what it may have and for what it may not.

    Attributes:
        decisions: what its gate said, as plain data.
        seconds: what its calls took.
    """

    def __init__(self, policy: Policy, number: int, count: int, **options: Any) -> None:
        self.chance = random.Random(number)
        self.gate = new_gate(policy, conversation=f"agent {number}", **options)
        self.plan = [self.planned(number, at) for at in range(count)]
        self.decisions: list[dict[str, Any]] = []
        self.seconds: list[float] = []

    def planned(self, number: int, at: int) -> Call:
        """A call: of its own orders, of those of others, too much, or too often."""
        order = f"A{number if self.chance.random() < 0.8 else number + 1}-{self.chance.randrange(3)}"
        if self.chance.random() < 0.5:
            return Call(f"c{at}", "get_order", {"id": order}, {**ORDER, "customer": self.chance.choice(("C1", "C2"))})
        return Call(f"c{at}", "refund", {"order": order, "amount": self.chance.choice((5, 20.5, 151, -1))}, "done")

    def step(self, at: int) -> None:
        """Make the next call, if it is let through."""
        call = self.plan[at]
        started = time.perf_counter()
        decision = self.gate.offer(call.tool, json.dumps(call.arguments), id=call.id, now=NOW)
        if decision.allowed:
            self.gate.result(call.id, json.dumps(call.result))
        self.seconds.append(time.perf_counter() - started)
        self.decisions.append({**decision.to_dict(), "arguments": dict(decision.arguments)})


def agents_at_once(agents: int, count: int, *, threads: int = 16, ledger: Any = None) -> dict[str, float]:
    """So many agents at once over one policy; each decision is the one that its agent gets alone.

    Raises:
        AssertionError: one is not.
    """
    policy = Policy.parse(POLICY)
    ledgers = [{} if ledger is None else {"ledger": ledger, "run_id": f"agent {number}"} for number in range(agents)]
    crowd = [Agent(policy, number, count, refusals=count, **ledgers[number]) for number in range(agents)]
    order = list(range(agents))
    mixed = random.Random(0)
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for at in range(count):
            mixed.shuffle(order)
            list(pool.map(lambda number, at=at: crowd[number].step(at), order))
    wall = time.perf_counter() - started
    for number, agent in enumerate(crowd):
        assert agent.decisions == lone_agent(policy, number, count).decisions, (
            f"agent {number} is judged otherwise than alone"
        )
        agent.gate.close()
    outcomes = Counter(each["outcome"] for agent in crowd for each in agent.decisions)
    seconds = sorted(chain.from_iterable(agent.seconds for agent in crowd))
    return {
        "agents": agents, "threads": threads, "calls": len(seconds), **outcomes, "calls a second": len(seconds) / wall,
        "call, median": statistics.median(seconds) * 1e6, "call, 95 %": quantile(seconds) * 1e6,
        "kB a gate": gate_kilobytes(policy, count),
    }  # fmt: skip


def lone_agent(policy: Policy, number: int, count: int) -> Agent:
    """An agent that has made its calls with no other beside it."""
    agent = Agent(policy, number, count, refusals=count)
    for at in range(count):
        agent.step(at)
    return agent


def gate_kilobytes(policy: Policy, count: int, agents: int = 50) -> float:
    """The memory of a gate with so many calls behind it."""
    lone_agent(policy, 0, count)
    gc.collect()
    tracemalloc.start()
    gates = [lone_agent(policy, number, count).gate for number in range(agents)]
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(gates) / 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--calls", type=int, default=20, help="calls of a session (%(default)s)")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--ledger", action="store_true", help="the agents keep their conversations in one ledger")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = added_times(options.sessions, options.calls) if options.sessions else {}
    with ExitStack() as stack:
        ledger = None
        if options.ledger:
            folder = stack.enter_context(TemporaryDirectory())
            ledger = stack.enter_context(Ledger(Path(folder, "agents.db")))
        if options.agents:
            figures["agents at once"] = agents_at_once(options.agents, options.calls, ledger=ledger)
    if options.json:
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
        return
    for name, row in figures.items():
        sys.stdout.write(f"{name}: {', '.join(f'{key} {value:.0f}' for key, value in row.items())}\n")


if __name__ == "__main__":
    main()
