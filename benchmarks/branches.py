"""The returns desk as branches and tables: what a small model makes of decisions that can be said.

    python benchmarks/branches.py --base-url http://127.0.0.1:8081/v1 --store runs.sqlite [-n 20] [--returns 2]
    python benchmarks/branches.py --store runs.sqlite            # again, from the recorded replies

The policy is that of the family ``returns_desk`` (`stepguard.evaluation.families.returns_policy`), which puts each rule
into words. Here it is a procedure with tables, choices and a loop (``examples/returns_desk.procedure``). The truth
comes from plain Python in this file. Printed are the runs by status, wrong answers among those that completed (silent
errors), calls, tokens, and what the guard had to do beyond asking. ``--thought`` asks the same problems in one call
each, unguarded: the procedure as it is written, the inputs, and the request to think step by step; every answer that is
read counts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from stepguard import Guard, Procedure, Result, Usage
from stepguard.backends import Message, Request, as_backend
from stepguard.backends.recorded import RecordedBackend
from stepguard.evaluation.statistics import wilson

PROCEDURE = Path(__file__).parent.parent / "examples" / "returns_desk.procedure"
WINDOWS = {"book": 14, "clothing": 30, "electronics": 21, "furniture": 45}
RATES = {"unopened": 100, "opened": 80, "damaged": 50}
POSTAGE = {"small": 490, "medium": 990, "large": 2490}
THOUGHT = (
    "Carry out this procedure for these inputs. Think step by step. End with a line 'Answer: N', where N is the value "
    "of the answer with two decimals."
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
ANSWER = re.compile(r"Answer\W{0,6}(-?\d[\d,]*(?:\.\d+)?)")


@dataclass(frozen=True)
class Case:
    """The inputs of one run, and the right answer."""

    inputs: dict[str, object]
    answer: Decimal


def make_case(seed: int, returns: int) -> Case:
    """Some returns, every second one on the last day of its window or one day late."""
    chance = random.Random(f"branches:{seed}:{returns}")
    paid = chance.randint(0, 50_000)
    total = Decimal(paid).scaleb(-2)
    made: list[dict[str, object]] = []
    for _ in range(returns):
        item, condition, member = chance.choice([*WINDOWS]), chance.choice([*RATES]), chance.random() < 0.4
        window = WINDOWS[item] + (10 if member else 0)
        days = window + chance.randint(0, 1) if chance.random() < 0.5 else chance.randint(1, window + 20)
        bought = date(2024, 1, 1) + timedelta(days=chance.randint(0, 700))
        weight, longest = Decimal(chance.randint(1, 300)).scaleb(-1), chance.randint(20, 160)
        price = Decimal(chance.randint(20_000, 90_000)).scaleb(-2)
        made.append({
            "item": item, "condition": condition, "member": member, "bought": bought, "price": price,
            "returned": bought + timedelta(days=days), "weight": weight, "longest": longest,
        })  # fmt: skip
        percent = 70 if (item, condition) == ("electronics", "opened") else RATES[condition]
        percent -= 0 if days <= window else 30
        size = "large" if longest > 120 or weight > 20 else "small" if weight <= 2 else "medium"
        cents = POSTAGE[size] // 2 if member else POSTAGE[size]
        fee = Decimal(cents + (1500 if item == "furniture" else 0)).scaleb(-2)
        refund = price * percent / 100 - fee
        total += refund.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
    return Case({"returns": made, "paid": Decimal(paid).scaleb(-2)}, total)


def main() -> None:
    """Run the cases and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True, help="the recording: asked for what it does not hold")
    parser.add_argument("--base-url", help="the model's endpoint; without it the recording is replayed")
    parser.add_argument("-n", type=int, default=20, help="runs")
    parser.add_argument("--returns", type=int, default=2, help="returns in a run, of nine steps each")
    parser.add_argument("--thought", action="store_true", help="by chain of thought, in one call a run, instead")
    parser.add_argument("--slots", type=int, default=4, help="runs at the same time")
    given = parser.parse_args()
    model = None
    if given.base_url:
        import openai

        client = openai.OpenAI(base_url=given.base_url, api_key="none", timeout=600)
        model = as_backend(client, model="local")
    backend = RecordedBackend(given.store, model)
    if given.thought:
        with ThreadPoolExecutor(given.slots) as pool:
            thought = list(pool.map(lambda seed: think(backend, make_case(seed, given.returns)), range(given.n)))
        report_thoughts(thought)
        return
    procedure = Procedure.load(PROCEDURE)

    def run(seed: int) -> tuple[Case, Result]:
        case = make_case(seed, given.returns)
        result = Guard(backend, seed=seed).run(procedure, case.inputs)
        print(f"{seed}: {result}", file=sys.stderr, flush=True)
        return case, result

    with ThreadPoolExecutor(given.slots) as pool:
        ended = list(pool.map(run, range(given.n)))
    report(ended)


@dataclass(frozen=True)
class Thought:
    """What one unguarded call came to: the answer that was read, None where none was."""

    case: Case
    answer: Decimal | None
    usage: Usage


def think(backend: RecordedBackend, case: Case) -> Thought:
    """Ask a case by chain of thought."""
    given = json.dumps(case.inputs, default=str, indent=1)
    question = f"{PROCEDURE.read_text(encoding='utf-8')}\nInputs:\n{given}\n\n{THOUGHT}"
    request = Request(messages=(Message("user", question),), temperature=0, max_tokens=3000)
    completion = backend.complete(request)
    text = completion.text or ""
    numbers = ANSWER.findall(text) or NUMBER.findall(text)  # whoever forgets the line is read by the last number
    answer = Decimal(numbers[-1].replace(",", "")) if numbers else None
    print(f"{answer}, right is {case.answer}", file=sys.stderr, flush=True)
    return Thought(case, answer, completion.usage)


def report_thoughts(thoughts: list[Thought]) -> None:
    """Print the figures of unguarded calls."""
    right = sum(thought.answer == thought.case.answer for thought in thoughts)
    unread = sum(thought.answer is None for thought in thoughts)
    low, high = wilson(right, len(thoughts))
    print(f"{len(thoughts)} calls by chain of thought: right {right} [{100 * low:.0f}, {100 * high:.0f}] %")
    print(f"silently wrong answers: {len(thoughts) - right - unread}; without an answer: {unread}")
    tokens = [sum(getattr(each.usage, name) for each in thoughts) for name in ("input_tokens", "output_tokens")]
    print(f"{tokens[0]} input and {tokens[1]} output tokens")


def report(ended: list[tuple[Case, Result]]) -> None:
    """Print the figures."""
    statuses = Counter(result.status for _, result in ended)
    done = [(case, result) for case, result in ended if result.status in ("verified", "checked")]
    wrong = sum(result.answer != case.answer for case, result in done)
    low, high = wilson(len(done), len(ended))
    print(f"{len(ended)} runs: {dict(statuses)}; verified or checked {len(done)} [{100 * low:.0f}, {100 * high:.0f}] %")
    print(f"silently wrong answers: {wrong}")
    steps = sum(result.completed for _, result in ended)
    calls = sum(result.usage.calls for _, result in ended)
    tokens = [sum(getattr(result.usage, name) for _, result in ended) for name in ("input_tokens", "output_tokens")]
    print(f"{steps} steps in {calls} calls, {tokens[0]} input and {tokens[1]} output tokens")
    helped: Counter[str] = Counter()
    for _, result in ended:
        helped.update(result.assisted)
    print(f"assisted: {dict(helped)}")
    for _, result in ended:
        if result.problem is not None:
            print(f"  {result.problem}"[:160])


if __name__ == "__main__":
    main()
