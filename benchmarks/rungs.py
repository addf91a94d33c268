"""Which rung cures what, at which price: steps that a real model failed on, each asked again in every way.

    python benchmarks/rungs.py --model qwen2.5-coder-1.5b --base-url http://127.0.0.1:8081/v1 --out rungs

First programs of development seeds are asked in segments of 10, every claim taken as it stands. Each step whose claim
is wrong for the values that it reads is kept, until there are enough. Then every step is asked again by itself in
every way, each in a clean context, and the guard says whether the claim is accepted. Plain re-asking is the control.

Every reply is kept in `replies.sqlite` in the folder, so that the command goes on where it stopped; the folder's
`replies.jsonl` holds them in a form to ship, and `--replay` makes the table from it without a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion
from stepguard.backends.base import ask
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.backends.retry import RetryPolicy
from stepguard.engine.actions import Ask, CheckClaims, Checked, Failed, Replied, deviation_of
from stepguard.engine.step_kinds import step_kind
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.statistics import wilson
from stepguard.language.values import Value, show_value
from stepguard.procedure.inputs import Input
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import Draft, Isolate, Question, Resample, Rewrite, Rung, Split
from stepguard.results import Result

DEVELOPMENT = 1_000_000
FAMILIES = (Arithmetic(), Arithmetic(limit=3000, input_high=300))
LENGTH = 40
SEGMENT = 10
RUNGS: Sequence[tuple[str, Rung]] = (
    ("resample (control)", Resample()),
    ("isolate", Isolate()),
    ("question", Question()),
    ("rewrite", Rewrite()),
    ("split", Split()),
    ("draft", Draft()),
)
SECOND: Sequence[tuple[str, Rung]] = (
    ("rewrite, turned", Rewrite(turned=True)),
    ("split by round numbers", Split(way="round_numbers")),
    ("split by compensation", Split(way="compensation")),
)


@dataclass(frozen=True, slots=True)
class Hard:
    """A step that the model failed on."""

    name: str
    step: Step
    values: Mapping[str, Value]
    deviation: str
    claim: str

    @property
    def kind(self) -> str:
        """See `stepguard.engine.step_kinds.step_kind`."""
        return step_kind(self.step, self.values)

    def procedure(self) -> Procedure:
        """The step by itself."""
        return Procedure([self.step], inputs=[Input(name) for name in self.step.reads])


@dataclass(slots=True)
class Watching:
    """Keeps the claims of a run that were not accepted, each with the values that it was to be made from."""

    name: str
    hard: list[Hard] = field(default_factory=list)

    def __call__(self, action: object, event: object) -> None:
        if not isinstance(action, CheckClaims) or not isinstance(event, Checked):
            return
        known = dict(action.values)
        for step, judgement in zip(action.steps, event.judgements, strict=False):
            deviation = deviation_of(judgement)
            if deviation is not None and all(name in known for name in step.reads):
                read = {name: known[name] for name in step.reads}
                self.hard.append(Hard(self.name, step, read, deviation.kind, judgement.claim.text))
            if judgement.value is None:
                return
            known[step.id] = judgement.value


@dataclass(frozen=True, slots=True)
class Once:
    """A policy that asks once again, in one way."""

    rung: Rung

    def next(self, failures: Failures) -> Rung | None:
        """See `stepguard.repair.policy.Repair.next`."""
        return self.rung if len(failures.kinds) == 1 and self.rung.applies(failures.step, failures.values) else None


async def collect(backend: RecordedBackend, wanted: int, concurrency: int) -> tuple[list[Hard], int]:
    """Steps that were not accepted, and how many were asked in all."""
    hard: list[Hard] = []
    asked = seed = 0
    while len(hard) < wanted:
        watching: list[Watching] = []
        results: list[Any] = []
        for at in range(concurrency):
            family = FAMILIES[at % len(FAMILIES)]
            task = family.make(DEVELOPMENT + seed + at // len(FAMILIES), LENGTH)
            watching.append(Watching(f"{family.name} {task.seed}"))
            guard = Guard(
                backend,
                segment=SEGMENT,
                observe=True,
                prompts="full",
                seed=task.seed,
                observer=watching[-1],
                retry=RetryPolicy(timeout=3600),
            )
            results.append(guard.arun(task.procedure, task.inputs))
        for each in await asyncio.gather(*results):
            asked += each.completed
        seed += concurrency // len(FAMILIES)
        hard += [step for each in watching for step in each.hard]
        print(f"{len(hard)} failed of {asked}", flush=True)
    return hard, asked


async def cured(backend: RecordedBackend, hard: Hard, rung: Rung, seed: int) -> Result | None:
    """The step asked once in the way of a rung; None where the rung does not apply."""
    if not rung.applies(hard.step, hard.values):
        return None
    guard = Guard(backend, segment=1, repair=Once(rung), prompts="full", seed=seed, retry=RetryPolicy(timeout=3600))
    run = guard.start(hard.procedure(), {name: show_value(value) for name, value in hard.values.items()})
    first = True
    while (action := run.next_action()) is not None:
        if isinstance(action, Ask) and first:  # what failed before costs nothing here
            run.send(Replied(action.id, Completion("")))
            first = False
        elif isinstance(action, Ask):
            try:
                run.send(Replied(action.id, await ask(backend, action.request)))
            except Exception as error:  # noqa: BLE001 - the result says it
                run.send(Failed(action.id, error))
        else:
            run.send(run.perform(action))
    result = run.result()
    if result.status == "failed":
        raise SystemExit(f"{hard.name} {hard.step.id}: {result.problem}")
    return result


async def compare(
    backend: RecordedBackend, steps: Sequence[Hard], concurrency: int, drafts: int, rungs: Sequence[tuple[str, Rung]]
) -> dict[str, list[Result | None]]:
    """By rung: the results, in the order of the steps; only so many of the first ones are worked freely."""
    gate = asyncio.Semaphore(concurrency)

    async def one(hard: Hard, rung: Rung, at: int) -> Result | None:
        if rung.draft and at >= drafts:
            return None
        async with gate:
            return await cured(backend, hard, rung, at)

    table: dict[str, list[Result | None]] = {}
    for name, rung in rungs:  # rung by rung, so that the server keeps what its prompts begin with
        table[name] = await asyncio.gather(*(one(hard, rung, at) for at, hard in enumerate(steps)))
        print(row(name, table[name]), flush=True)
    return table


def said_again(result: Result | None, step: str) -> str | None:
    """What the control said of a step, None where that cannot be read."""
    text = None if result is None or not result.attempts else result.attempts[-1].text
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    said = found.get(step) if isinstance(found, dict) else None
    return said if isinstance(said, str) else None


def row(name: str, results: Sequence[Result | None]) -> str:
    """One line of the table."""
    asked = [each for each in results if each is not None]
    well = sum(each.status == "verified" for each in asked)
    low, high = wilson(well, len(asked)) if asked else (0.0, 1.0)
    calls = sum(each.usage.calls - 1 for each in asked)
    output = sum(each.usage.output_tokens for each in asked)
    tokens = f"{output / len(asked):.0f}" if asked else "-"
    share = f"{100 * well / len(asked):.0f} % [{100 * low:.0f}, {100 * high:.0f}]" if asked else "-"
    return (
        f"{name:<20} {well:>3} of {len(asked):<3} {share:<16} {calls / max(1, len(asked)):.1f} calls {tokens:>4} tokens"
    )


def greedy(table: Mapping[str, Sequence[Result | None]]) -> list[str]:
    """The order in which each rung cures most of what those before it left; of equal ones the cheaper comes first."""
    left = set(range(len(next(iter(table.values())))))
    rest = dict(table)
    lines = ["most cured first:"]
    while left and rest:
        scores: dict[str, tuple[int, float]] = {}
        for name, results in rest.items():
            asked = [each for at in left if (each := results[at]) is not None]
            tokens = sum(each.usage.output_tokens for each in asked) / max(1, len(asked))
            scores[name] = sum(each.status == "verified" for each in asked), -tokens
        best = max(scores, key=lambda name: scores[name])
        well, tokens = scores[best]
        if not well:
            break
        lines.append(f"  {best:<20} {well:>3} of {len(left):<3} left {-tokens:>4.0f} tokens")
        results = rest.pop(best)
        left = {at for at in left if (each := results[at]) is None or each.status != "verified"}
    return lines


def left_over(table: Mapping[str, Sequence[Result | None]], steps: Sequence[Hard]) -> list[str]:
    """Of the steps that the control did not cure: how many each rung did."""
    control = table[RUNGS[0][0]]
    hard = [at for at, each in enumerate(control) if each is not None and each.status != "verified"]
    lines = [f"of {len(hard)} that the control left:"]
    for name, results in table.items():
        lines.append("  " + row(name, [results[at] for at in hard]))
    never = [
        steps[at]
        for at in hard
        if not any((each := results[at]) is not None and each.status == "verified" for results in table.values())
    ]
    lines.append(f"cured by none: {len(never)}")
    lines += [f"  {each.kind}: {each.claim}" for each in never]
    return lines


def told(table: Mapping[str, Sequence[Result | None]], steps: Sequence[Hard], asked: int) -> list[str]:
    """The whole table, by rung and by what was wrong, line by line."""
    lines = [f"{len(steps)} failed steps of {asked} asked"]
    lines += [row(name, results) for name, results in table.items()]
    for kind in sorted({each.deviation for each in steps}):
        chosen = [at for at, each in enumerate(steps) if each.deviation == kind]
        lines.append(f"{kind}: {len(chosen)}")
        lines += ["  " + row(name, [results[at] for at in chosen]) for name, results in table.items()]
    return [*lines, *greedy(table), *left_over(table, steps)]


def failed(table: Mapping[str, Sequence[Result | None]], steps: Sequence[Hard]) -> list[dict[str, object]]:
    """Every step with what was claimed and what cured it, as JSON data."""
    return [
        {
            "program": each.name,
            "step": each.step.id,
            "formula": each.step.formula,
            "values": {name: show_value(value) for name, value in each.values.items()},
            "deviation": each.deviation,
            "claim": each.claim,
            "again": said_again(table[RUNGS[0][0]][at], each.step.id),
            "cured": [
                name
                for name, results in table.items()
                if (found := results[at]) is not None and found.status == "verified"
            ],
        }
        for at, each in enumerate(steps)
    ]


async def main() -> None:
    """Collect, compare, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="recorded", help="the model's name at the endpoint")
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--out", type=Path, help="the folder to write to: the recording, the table, the failed steps")
    parser.add_argument("--replay", type=Path, help="a recording to make the table from, without a model")
    parser.add_argument("--failures", type=int, default=100, help="how many failed steps are wanted")
    parser.add_argument("--drafts", type=int, default=45, help="how many of them are worked freely, at two calls each")
    parser.add_argument("--second", action="store_true", help="also the ways of the ladder's second round")
    parser.add_argument("--concurrency", type=int, default=4)
    args = parser.parse_args()
    if args.replay is not None:
        backend = RecordedBackend(args.replay)
    else:
        if args.out is None:
            parser.error("--out is needed for the recording")
        args.out.mkdir(parents=True, exist_ok=True)
        model = OpenAIBackend(args.model, base_url=args.base_url, api_key="none")
        backend = RecordedBackend(args.out / "replies.sqlite", model)
    steps, asked = await collect(backend, args.failures, args.concurrency)
    rungs = (*RUNGS, *SECOND) if args.second else RUNGS
    table = await compare(backend, steps, args.concurrency, args.drafts, rungs)
    lines = told(table, steps, asked)
    print("\n".join(lines))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = "".join(json.dumps(each) + "\n" for each in failed(table, steps))
        (args.out / "failed.jsonl").write_text(text, encoding="utf-8")
        if args.replay is None:
            backend.export(args.out / "replies.jsonl")


if __name__ == "__main__":
    asyncio.run(main())
