"""A step that failed, asked again by itself or at the head of what is left: what costs less for the same cure?

    python benchmarks/together.py --recorded DIR [--model NAME --base-url URL] [--replay FILE] [-n 45] [--out DIR]

`DIR` records guarded runs, which asked each refused step by itself, then the next segment. Of those that were refused
for the first time with more of their segment behind them `-n` are drawn, and asked at the head of a segment, once, with
the values of that moment and the same randomness. Compared are how often the step is right then, and what every step
that is accepted costs: with the step by itself and the segment behind it as recorded, and with the one call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rungs import Once

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion
from stepguard.backends.base import ask
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.engine.actions import Ask, Replied
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.statistics import wilson
from stepguard.language.values import Value, show_value
from stepguard.procedure.inputs import Input
from stepguard.repair.rungs import Resample

SEGMENT = 10


@dataclass(frozen=True, slots=True)
class Way:
    """What came of one way: whether the step was right, how many steps were accepted, and what it cost."""

    cured: bool
    accepted: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Refused:
    """A step that was refused for the first time, at the head of what was left: those steps, and how it went on."""

    steps: tuple[Step, ...]
    values: Mapping[str, Value]
    alone: Way


async def refused_in(backend: RecordedBackend, seed: int, length: int) -> list[Refused]:
    """The refused steps of one recorded run."""
    task = Arithmetic().make(seed, length)
    result = await Guard(backend, segment=SEGMENT, prompts="full", seed=seed).arun(task.procedure, task.inputs)
    assert result.verified, result.problem
    values = {**task.procedure.accept_inputs(task.inputs)}
    values |= {str(each.occurrence): each.value for each in result.steps}
    found: list[Refused] = []
    for first, again, *behind in zip(result.attempts, result.attempts[1:], [*result.attempts[2:], None], strict=False):
        left = first.steps[first.committed :]
        if first.rung != "ask" or len(left) < 2 or again.rung != "resample" or len(again.steps) != 1:
            continue
        if again.steps[0] != left[0]:
            continue
        cured, usage, accepted = again.committed == 1, again.usage, again.committed
        following = behind[0]
        if cured and following is not None and following.rung == "ask":
            usage, accepted = usage + following.usage, accepted + following.committed
        at = left[0].index
        steps = tuple(task.procedure.steps[at : at + SEGMENT])
        inside = {step.id for step in steps}
        read = dict.fromkeys(name for step in steps for name in step.reads if name not in inside)
        found.append(Refused(steps, {name: values[name] for name in read}, Way(cured, accepted, usage)))
    return found


async def ask_together(backend: RecordedBackend, case: Refused, seed: int) -> Way:
    """The step at the head of the steps behind it, asked once."""
    procedure = Procedure(case.steps, inputs=[Input(name) for name in case.values])
    policy = Once(Resample(alone=False))
    guard = Guard(backend, segment=SEGMENT, repair=policy, prompts="full", seed=seed, retry=RetryPolicy(timeout=3600))
    run = guard.start(procedure, {name: show_value(value) for name, value in case.values.items()})
    asked = 0
    while (action := run.next_action()) is not None:
        if not isinstance(action, Ask):
            run.send(run.perform(action))
            continue
        asked += 1
        if asked > 2:
            run.cancel()
            break
        # What failed before costs nothing here.
        completion = Completion("") if asked == 1 else await ask(backend, action.request)
        run.send(Replied(action.id, completion))
    result = run.result()
    return Way(result.completed > 0, result.completed, result.attempts[1].usage)


def row(name: str, ways: Sequence[Way]) -> str:
    """One line of the table."""
    cured, accepted = sum(way.cured for way in ways), sum(way.accepted for way in ways)
    low, high = wilson(cured, len(ways))
    usage = sum((way.usage for way in ways), Usage())
    costs = (usage.calls, usage.input_tokens, usage.output_tokens)
    per_step = " | ".join(f"{cost / accepted:.{digits}f}" for cost, digits in zip(costs, (2, 0, 1), strict=True))
    share = f"{100 * cured / len(ways):.0f}% [{100 * low:.0f}, {100 * high:.0f}]"
    return f"| {name} | {len(ways)} | {share} | {accepted / len(ways):.1f} | {per_step} |"


async def main() -> None:
    """Draw, ask, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", type=Path, required=True, help="the folder of recorded guarded runs")
    parser.add_argument("--model", default="recorded", help="the model's name at the endpoint")
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--replay", type=Path, help="a recording of what was asked here, to do without a model")
    parser.add_argument("--out", type=Path, help="the folder for the recording")
    parser.add_argument("-n", type=int, default=45)
    parser.add_argument("--concurrency", type=int, default=1)
    args = parser.parse_args()
    rows = json.loads((args.recorded / "results.json").read_text(encoding="utf-8"))["rows"]
    length, programs = next((int(each["length"]), int(each["n"])) for each in rows if each["arm"] == "guard")
    recorded = RecordedBackend(args.recorded / "replies.jsonl")
    cases = [case for seed in range(programs) for case in await refused_in(recorded, seed, length)]
    print(f"{len(cases)} steps of {programs} programs were refused with others behind them, {args.n} are asked again")
    chosen = random.Random(1).sample(cases, min(args.n, len(cases)))
    if args.replay is not None:
        backend = RecordedBackend(args.replay)
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        backend = RecordedBackend(
            args.out / "replies.sqlite", OpenAIBackend(args.model, base_url=args.base_url, api_key="none")
        )
    gate = asyncio.Semaphore(args.concurrency)

    async def one(at: int) -> Way:
        async with gate:
            return await ask_together(backend, chosen[at], at)

    together = await asyncio.gather(*map(one, range(len(chosen))))
    print("| asked | n | right | steps accepted | calls a step | input a step | output a step |")
    print("|---|---|---|---|---|---|---|")
    print(row("by itself, then the next segment", [case.alone for case in chosen]))
    print(row("at the head of the segment", together))
    print(row("by itself, all", [case.alone for case in cases]))
    both = [(case.alone.cured, way.cured) for case, way in zip(chosen, together, strict=True)]
    print(f"right only by itself: {both.count((True, False))}; only at the head: {both.count((False, True))}")
    if args.replay is None:
        backend.export(args.out / "replies.jsonl")


if __name__ == "__main__":
    asyncio.run(main())
