"""What guarded runs on development seeds show of a model: a profile to forecast other runs from.

    python benchmarks/learn_profile.py --model qwen2.5-coder-1.5b --base-url http://127.0.0.1:8081/v1 --out learned

The folder gets the profile, `profile.json`, and every reply, `replies.jsonl`; `--replay FILE` makes the profile again
from the replies. The seeds are none of those that `stepguard bench` takes. With ``--recording FOLDER`` what the profile
foretells is put beside what the recorded guarded runs took, which had no profile and are of programs that it has not
seen. The seconds of recordings depend on what else ran on the machine, and tell little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from stepguard import Guard, Profile, Result
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.backends.retry import RetryPolicy
from stepguard.evaluation.arms import ArmOptions, TaskOutcome
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.report.results_file import forecast_text, make_forecasts
from stepguard.evaluation.runner import Plan

DEVELOPMENT = 1_000_000
SEGMENT = 10


async def learn(backend: RecordedBackend, programs: int, length: int, concurrency: int) -> list[Result]:
    """The guarded runs, in the order of their seeds."""
    gate = asyncio.Semaphore(concurrency)
    family = Arithmetic()

    async def one(seed: int) -> Result:
        task = family.make(seed, length)
        async with gate:
            guard = Guard(backend, segment=SEGMENT, prompts="full", seed=seed, retry=RetryPolicy(timeout=3600))
            return await guard.arun(task.procedure, task.inputs)

    return await asyncio.gather(*(one(DEVELOPMENT + at) for at in range(programs)))


async def main() -> None:
    """Run, write down and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="recorded", help="the model's name at the endpoint")
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--replay", type=Path, help="a recording to learn from, without a model")
    parser.add_argument("--recording", type=Path, help="a folder of stepguard bench, to hold the forecast against")
    parser.add_argument("-n", type=int, default=12, help="how many programs")
    parser.add_argument("--length", type=int, default=20, help="how many steps each has")
    parser.add_argument("--concurrency", type=int, default=4)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.replay is not None:
        backend = RecordedBackend(args.replay)
    else:
        model = OpenAIBackend(args.model, base_url=args.base_url, api_key="none")
        backend = RecordedBackend(args.out / "replies.sqlite", model)
    results = await learn(backend, args.n, args.length, args.concurrency)
    profile = sum((result.profile for result in results), Profile())
    profile.save(args.out / "profile.json")
    if args.replay is None:
        backend.export(args.out / "replies.jsonl")
    verified = sum(result.verified for result in results)
    calls = sum(result.usage.calls for result in results)
    print(f"{verified} of {len(results)} runs verified, {calls} calls; {args.out / 'profile.json'}")
    if args.recording is not None:
        _, *lines = (args.recording / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
        outcomes = [TaskOutcome.from_dict(json.loads(line)) for line in lines]
        cells = {each.length: 1 for each in outcomes}
        plan = Plan(family=Arithmetic(), cells=cells, arms=("guard",), seed=0, options=ArmOptions(profile=profile))
        for row in make_forecasts(plan, outcomes):
            print(forecast_text(row))


if __name__ == "__main__":
    asyncio.run(main())
