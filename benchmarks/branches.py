"""Procedures with decisions, and what a small model makes of them: branches, tables, dates, units, a text to read.

    python benchmarks/branches.py --base-url http://127.0.0.1:8081/v1 --store runs.sqlite [--desks returns,doses]
        [--arms cot,trace,chunk,guard] [--sizes 1,2] [-n 20]
    python benchmarks/branches.py --store runs.sqlite            # again, from the recorded replies

A size is how many things are on the list: returns, items, patients, letters (`branch_cases`). The arms see the same
cases:

cot    the procedure as it is written, the inputs, and the request to think step by step, in one call
trace  the same as one structured reply: every step with its working and value, then the answer
chunk  the guard's own segments and prompts with its checker off
guard  the guard

Printed are right answers, wrong ones that were given as right (those of unguarded arms all are), abstentions, calls and
tokens; for the guard also how many of its steps rest on a check that other values would pass, and what it had to do
beyond asking. Unguarded replies are read kindly: by the line that was asked for, else by their last number.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from branch_cases import DESKS, Case, Desk
from pydantic import BaseModel

from stepguard import Guard, Result, Usage
from stepguard.backends import Message, Request, as_backend
from stepguard.backends.recorded import RecordedBackend
from stepguard.errors import BackendError
from stepguard.evaluation.statistics import wilson
from stepguard.language.values import show_value
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat

ARMS: Final = ("cot", "trace", "chunk", "guard")
LONGEST: Final = 6000
_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_ANSWER: Final = re.compile(r"Answer\W{0,6}(-?\d[\d,]*(?:\.\d+)?)")
_THOUGHT: Final = (
    "Carry out this procedure for these inputs. Think step by step. End with a line 'Answer: N', where N is the "
    "{asked}."
)
_TRACED: Final = (
    "Carry out this procedure for these inputs, step by step, in order, every step of every round. Reply with one JSON "
    "object: steps, a list with an object for each step (step: its name, work: its working, value: its value), and "
    "then answer: the {asked}, as a number."
)


class TracedStep(BaseModel):
    """A step of a trace."""

    step: str
    work: str
    value: str


class Trace(BaseModel):
    """A whole run as one reply."""

    steps: list[TracedStep]
    answer: str


class TraceFormat(EquationFormat):
    """Replies are traces."""

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        """See `ReplyFormat.response_model`."""
        return Trace


@dataclass(frozen=True)
class Run:
    """How one case ended: the status of the guard, ``answered`` or ``unread`` of the others."""

    case: Case
    status: str
    answer: Decimal | None
    usage: Usage
    result: Result | None = None

    @property
    def given(self) -> bool:
        """Whether an answer was given as right."""
        return self.status in ("verified", "checked", "answered", "unverified")

    @property
    def right(self) -> bool:
        """Whether a right answer was."""
        return self.given and self.answer == self.case.answer


def ask(backend: RecordedBackend, desk: Desk, case: Case, arm: str) -> Run:
    """One case in one unguarded call."""
    inputs = json.dumps(case.inputs, default=str, indent=1)
    words = (_TRACED if arm == "trace" else _THOUGHT).format(asked=desk.asked)
    request = Request(
        messages=(Message("user", f"{desk.text}\nInputs:\n{inputs}\n\n{words}"),), temperature=0, max_tokens=LONGEST,
        reply_format=TraceFormat() if arm == "trace" else None,
    )  # fmt: skip
    try:
        completion = backend.complete(request)
    except BackendError as error:
        print(f"no reply: {error}", file=sys.stderr)
        return Run(case, "failed", None, Usage())
    answer = read_answer(completion.text or "", structured=arm == "trace")
    return Run(case, "unread" if answer is None else "answered", answer, completion.usage)


def read_answer(text: str, *, structured: bool) -> Decimal | None:
    """The answer of an unguarded reply, None where it gives none."""
    if structured:
        try:
            text = f"Answer: {json.loads(text)['answer']}"
        except (ValueError, KeyError, TypeError):
            return None
    numbers = _ANSWER.findall(text) or _NUMBER.findall(text)
    return Decimal(numbers[-1].replace(",", "")) if numbers else None


def guarded(backend: RecordedBackend, desk: Desk, case: Case, seed: int, *, observe: bool) -> Run:
    """One case through the guard, or through its segments alone."""
    guard = Guard(backend, seed=seed, observe=observe)
    result = guard.run(desk.procedure, case.inputs)
    answer = result.answer
    if isinstance(answer, dict):
        answer = answer["total"]
    number = None if answer is None else _NUMBER.search(show_value(answer))
    return Run(case, result.status, None if number is None else Decimal(number[0]), result.usage, result)


def main() -> None:
    """Run the cases and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="the recording: asked for what it does not hold")
    parser.add_argument("--base-url", help="the model's endpoint; without it the recording is replayed")
    parser.add_argument("--desks", default=",".join(DESKS), help="what is to be decided")
    parser.add_argument("--arms", default=",".join(ARMS), help="what is compared")
    parser.add_argument("--sizes", default="1,2", help="how many things are on the list")
    parser.add_argument("-n", type=int, default=20, help="cases of each size")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--slots", type=int, default=4, help="runs at the same time")
    parser.add_argument("--details", action="store_true", help="a line for each run, and why it ended")
    given = parser.parse_args()
    model = None
    if given.base_url:
        import openai

        client = openai.OpenAI(base_url=given.base_url, api_key="none", timeout=600)
        model = as_backend(client, model="local")
    backend = RecordedBackend(given.store, model)
    print(f"{'desk':<10}{'size':>4} {'arm':<6}{'n':>4}{'right':>7}  {'interval':<11}{'wrong':>6}{'none':>6}"
          f"{'steps':>7}{'judged':>7}{'calls':>7}{'input':>8}{'output':>8}")  # fmt: skip
    with ThreadPoolExecutor(given.slots) as pool:
        for name, size, arm in itertools.product(
            given.desks.split(","), map(int, given.sizes.split(",")), given.arms.split(",")
        ):
            desk = DESKS[name]

            def run(seed: int, desk: Desk = desk, size: int = size, arm: str = arm) -> Run:
                case = desk.case(seed, size)
                if arm in ("guard", "chunk"):
                    return guarded(backend, desk, case, seed, observe=arm == "chunk")
                return ask(backend, desk, case, arm)

            runs = list(pool.map(run, range(given.seed, given.seed + given.n)))
            print("\n".join(report(name, size, arm, runs, details=given.details)), flush=True)


def report(desk: str, size: int, arm: str, runs: list[Run], *, details: bool) -> Iterator[str]:
    """The figures of one arm, per run where they are costs."""
    right = sum(run.right for run in runs)
    wrong = sum(run.given and not run.right for run in runs)
    low, high = wilson(right, len(runs))
    usage = [
        sum(getattr(run.usage, name) for run in runs) / len(runs) for name in ("calls", "input_tokens", "output_tokens")
    ]
    steps = [record for run in runs if run.result is not None for record in run.result.steps]
    judged = sum(record.strength != "proved" for record in steps) if arm == "guard" else 0
    yield (
        f"{desk:<10}{size:>4} {arm:<6}{len(runs):>4}{right:>7}  [{100 * low:3.0f}, {100 * high:3.0f}] {wrong:>6}"
        f"{len(runs) - right - wrong:>6}{len(steps) / len(runs):>7.1f}{judged / len(runs):>7.1f}"
        f"{usage[0]:>7.1f}{usage[1]:>8.0f}{usage[2]:>8.0f}"
    )
    if arm == "guard":
        helped = Counter[str]()
        for run in runs:
            helped.update(run.result.assisted if run.result is not None else {})
        yield f"           statuses {dict(Counter(run.status for run in runs))}, assisted steps {dict(helped)}"
    if details:
        for run in runs:
            problem = run.result.problem if run.result is not None else None
            yield f"           {run.status}: {run.answer}, right is {run.case.answer}" + (
                f"; {problem}"[:200] if problem else ""
            )


if __name__ == "__main__":
    main()
