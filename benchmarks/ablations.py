"""What each rung is worth on simulated models, and whether the guard ever does harm.

    python benchmarks/ablations.py --n 2400               # each rung, the order and the segments switched off in turn
    python benchmarks/ablations.py --prompts FILE         # each decision of the prompts switched off in turn
    python benchmarks/ablations.py --harm --n 2000        # 5 steps: the guard beside the best unguarded arm

The models slip on purpose (`stepguard.testing`): they read what a request asks and not how it is worded, but that a
systematic slip belongs to the notation and to the way of asking. So rungs can be compared; what the words of a prompt
are worth only a real model shows. What one showed, `wording.py` writes down, and `--prompts` takes it from there: each
model slips without a decision as much more or less often as that one did, whatever its own rates, and the guard makes
the best of it. All variants run the same programs; intervals are 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from wording import PLAIN, Effect, read_effects, worded

from stepguard import Guard, Ladder, Segments
from stepguard.evaluation.arms import ArmOptions
from stepguard.evaluation.arms.guarded import Guarded
from stepguard.evaluation.arms.wording import PromptDecision
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.evaluation.statistics import wilson
from stepguard.repair.ladder import DEFAULT_RUNGS
from stepguard.repair.policy import Failures, Repair
from stepguard.repair.rungs import Resample, Rung
from stepguard.testing import SimulatedModel, Slips
from stepguard.testing.profiles import PROFILES

MODELS: Final[Mapping[str, Slips]] = {
    **PROFILES,
    "stubborn": Slips(wrong_value=0.06, systematic=0.7),
    "careless": Slips(wrong_value=0.12, systematic=0.1),
    "formless": Slips(wrong_value=0.02, malformed=0.15, unfaithful_work=0.05),
    "flawless": Slips.none(),
}
ARMS: Final = ("cot", "trace", "chunk", "guard")


@dataclass(frozen=True, slots=True)
class Forgetful:
    """A ladder to which nothing that a run has learned is told."""

    ladder: Ladder

    def next(self, failures: Failures) -> Rung | None:
        """See `stepguard.repair.policy.Repair.next`."""
        return self.ladder.next(replace(failures, useless=frozenset()))


def variants() -> dict[str, dict[str, Any]]:
    """The guard as it is, and without one part of it."""
    names = list(dict.fromkeys(rung.name for rung in DEFAULT_RUNGS))
    without = {f"without {name}": {"repair": Ladder(r for r in DEFAULT_RUNGS if r.name != name)} for name in names}
    together = Ladder([Resample(alone=False), *DEFAULT_RUNGS[1:]])
    again: Repair = Ladder(rung for rung in DEFAULT_RUNGS if rung.name == "resample" or not rung.temperature)
    return {
        "as it is": {},
        **without,
        "each way once": {"repair": again},
        "4 plain retries": {"repair": 4},
        "no repair": {"repair": 0},
        "without learning": {"repair": Forgetful(Ladder())},
        "segments of 5": {"segment": Segments(5)},
        "segments of 10": {"segment": Segments(10)},
        "segments of 20": {"segment": Segments(20)},
        "asked together": {"repair": together},
        "in full": {"prompts": "full"},
    }


def ablate(name: str, slips: Slips, n: int, length: int) -> None:
    """Run every variant on the same programs and print what came of it."""
    tasks = [Arithmetic().make(seed, length) for seed in range(n)]
    print(
        f"\n{name}, {length} steps, n = {n}\nvariant             verified             calls  tokens  helped steps",
        flush=True,
    )
    for title, options in variants().items():
        well = calls = tokens = helped = 0
        for seed, task in enumerate(tasks):
            guard = Guard(SimulatedModel(seed, slips=slips), seed=seed, **options)
            result = guard.run(task.procedure, task.inputs)
            well += result.verified
            calls += result.usage.calls
            tokens += result.usage.tokens
            helped += sum(result.assisted.values())
        low, high = wilson(well, n)
        share = f"{100 * well / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        print(f"{title:<19} {share:<20} {calls / n:<6.2f} {tokens / n:<7.0f} {helped / n:.3f}", flush=True)


def ablate_prompts(name: str, slips: Slips, effects: Sequence[Effect], n: int, length: int) -> None:
    """Run the guard without each decision of its prompts, on a model that slips as it was seen to without it."""
    family = Arithmetic()
    tasks = [family.make(seed, length) for seed in range(n)]
    print(f"\n{name}, {length} steps, n = {n}")
    print("prompts without     verified             calls  input   output  helped steps", flush=True)
    for effect in effects:
        without = None if effect.decision == PLAIN else cast(PromptDecision, effect.decision)
        arm = Guarded(adaptive=True, without=without)
        model = slips if without is None else worded(slips, effect)
        runs = [
            asyncio.run(arm.run(task, SimulatedModel(seed, slips=model), ArmOptions(), lambda: tasks[0]))
            for seed, task in enumerate(tasks)
        ]
        well = sum(each.verified for each in runs)
        low, high = wilson(well, n)
        share = f"{100 * well / n:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        calls, given, said = (
            sum(getattr(each, what) for each in runs) / n for what in ("calls", "input_tokens", "output_tokens")
        )
        helped = sum(sum(each.assisted.values()) for each in runs) / n
        print(f"{effect.decision:<19} {share:<20} {calls:<6.2f} {given:<7.0f} {said:<7.0f} {helped:.3f}", flush=True)
        if silent := sum(each.silent_errors for each in runs):
            raise SystemExit(f"{silent} silent errors")


def harm(name: str, slips: Slips, n: int) -> None:
    """Five steps in every arm: the guard is to be no more than a point below the best of the others."""
    plan = Plan(family=Arithmetic(), cells={5: n}, arms=ARMS, seed=0, options=ArmOptions())
    outcomes = asyncio.run(run_plan(plan, SimulatedTasks(slips=slips), configuration={}, concurrency=1))
    shares = {arm: sum(each.right_lenient for each in outcomes if each.arm == arm) / n for arm in ARMS}
    best = max(share for arm, share in shares.items() if arm != "guard")
    told = "  ".join(f"{arm} {100 * share:5.1f} %" for arm, share in shares.items())
    print(f"{name:<20} {told}  guard - best: {100 * (shares['guard'] - best):+.1f} points", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2400)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--model", choices=[*MODELS], action="append", help="by default all of them")
    parser.add_argument("--harm", action="store_true")
    parser.add_argument("--prompts", type=Path, help="wording.json, as wording.py writes it")
    args = parser.parse_args()
    for name in args.model or MODELS:
        if args.prompts is not None:
            ablate_prompts(name, MODELS[name], read_effects(args.prompts), args.n, args.length)
        elif args.harm:
            harm(name, MODELS[name], args.n)
        else:
            ablate(name, MODELS[name], args.n, args.length)


if __name__ == "__main__":
    main()
