"""What each decision of the guard's prompts is worth on a real model: the same steps, asked without it.

    stepguard bench --model NAME --base-url URL --lengths 20 -n 12 --seed 1000000 --out DIR --arms "chunk, ..."
    python benchmarks/wording.py --recording DIR --model NAME --base-url URL     # the retries, and the table
    python benchmarks/wording.py --recording DIR                                 # the table, from what is recorded

The first command asks programs of development seeds in segments, every claim taken as it stands, with the prompts as
they are and as ``chunk(without=DECISION)`` for every decision (`stepguard.evaluation.arms.wording`). Each step is
judged by the values that the model itself had at that point. The second asks the steps that failed with the prompts as
they are once more, by themselves, twice: in a clean context, and with the refused reply above the question. Their
replies are kept in `retries.jsonl` in the folder.

`worded` gives the slips of a simulated model that is asked without a decision: those of any model, multiplied by what
was seen here. `ablations.py --prompts` runs the guard on them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any, Final

from observed_steps import Observations, Observed, observe, read_recording
from rungs import Hard, Once, Watching

from stepguard import Guard, Step
from stepguard.backends import Completion
from stepguard.backends.base import Backend, Request, ask
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.backends.retry import RetryPolicy
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.arms.wording import DECISIONS, Reworded
from stepguard.evaluation.report.examples import RecordedTexts, make_task
from stepguard.evaluation.statistics import wilson
from stepguard.language.numerals import read_numeral
from stepguard.language.values import show_value
from stepguard.repair.rungs import Resample
from stepguard.testing import ModelSlips, Slips

__all__ = ["PLAIN", "Effect", "Retry", "effects", "read_effects", "worded"]

PLAIN: Final = "as they are"


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of asking without one decision.

    Attributes:
        decision: what was left out; `PLAIN`: nothing.
        steps, wrong: steps that were asked, and how many were wrong for the values that the model had, or not there.
        more: by how much the share of those exceeds that with the prompts as they are, over the same programs, with
            its 95 % interval.
        odds: by how much the odds of a wrong step are multiplied.
        unfaithful: the share of steps whose value is right and whose working is not shown, or another.
        malformed: the share of replies that could not be read.
        repeats: by how much the odds are multiplied that the same wrong value comes again when its step is.
        calls, input_tokens, output_tokens: on average, a program.
    """

    decision: str
    steps: int
    wrong: int
    more: tuple[float, float, float]
    odds: float
    unfaithful: float
    malformed: float
    calls: float
    input_tokens: float
    output_tokens: float
    repeats: float = 1.0


@dataclass(frozen=True, slots=True)
class Retry:
    """Failed steps that were asked once again by themselves: how many were cured, and how many failed alike."""

    context: str
    steps: int
    cured: int
    same: int


def effects(outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any]) -> list[Effect]:
    """What each decision came to; the first is that of the prompts as they are.

    Raises:
        ValueError: the recording has no arm ``chunk``.
    """
    plain = [each for each in outcomes if each.arm == "chunk"]
    if not plain:
        raise ValueError("the recording has no arm chunk to compare with")
    seen = observe(plain, meta)
    found = [_effect(PLAIN, plain, seen, seen)]
    for decision in DECISIONS:
        without = [each for each in outcomes if each.arm == f"chunk(without={decision})"]
        if without:
            found.append(_effect(decision, without, observe(without, meta), seen))
    return found


def _effect(decision: str, outcomes: Sequence[TaskOutcome], seen: Observations, plain: Observations) -> Effect:
    n = len(outcomes)
    wrong = _wrong(seen.steps) + seen.missing
    return Effect(
        decision=decision,
        steps=len(seen.steps) + seen.missing,
        wrong=wrong,
        more=_more(seen, plain),
        odds=_odds(seen) / _odds(plain),
        unfaithful=sum(each.deviations.get("unfaithful_work", 0) for each in outcomes) / max(1, len(seen.steps)),
        malformed=seen.deviations["malformed"] / max(1, seen.replies),
        calls=sum(each.calls for each in outcomes) / n,
        input_tokens=sum(each.input_tokens for each in outcomes) / n,
        output_tokens=sum(each.output_tokens for each in outcomes) / n,
    )


def _wrong(steps: Sequence[Observed]) -> int:
    return sum(each.slip is not None for each in steps)


def _odds(seen: Observations) -> float:
    wrong, steps = _wrong(seen.steps) + seen.missing, len(seen.steps) + seen.missing
    return (wrong + 0.5) / (steps - wrong + 0.5)


def _more(seen: Observations, plain: Observations) -> tuple[float, float, float]:
    """The mean difference of the programs' shares of wrong steps, with its 95 % interval."""
    shares: list[dict[object, float]] = []
    for each in (seen, plain):
        steps: dict[object, list[Observed]] = {}
        for step in each.steps:
            steps.setdefault(step.program, []).append(step)
        shares.append({program: _wrong(found) / len(found) for program, found in steps.items()})
    differences = [shares[0][program] - shares[1][program] for program in shares[0] if program in shares[1]]
    mean, n = fmean(differences), len(differences)
    half = _students_t(n - 1) * stdev(differences) / math.sqrt(n) if n > 1 else 1.0
    return mean, mean - half, mean + half


def _students_t(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def worded(slips: Slips, effect: Effect) -> ModelSlips:
    """The slips of a model that is asked without a decision: its own, their odds multiplied by what was seen."""

    def more(rate: float, times: float = effect.odds) -> float:
        return times * rate / (1 - rate + times * rate)

    own = {each.name: getattr(slips, each.name) for each in fields(slips)}
    made = ModelSlips(**own)
    flawed = made != ModelSlips.none()
    return replace(
        made,
        wrong_value=more(made.wrong_value),
        by_kind=tuple((name, more(rate)) for name, rate in made.by_kind),
        wrong_operand=more(made.wrong_operand),
        by_origin=tuple((name, more(rate)) for name, rate in made.by_origin),
        unfaithful_work=max(made.unfaithful_work, effect.unfaithful if flawed else 0.0),
        malformed=max(made.malformed, effect.malformed if flawed else 0.0),
        systematic=more(made.systematic, effect.repeats),
    )


@dataclass(slots=True)
class _AfterFailure:
    """A model whose first reply has been given already."""

    backend: Backend
    first: str | None

    async def acomplete(self, request: Request) -> Completion:
        if self.first is not None:
            text, self.first = self.first, None
            return Completion(text)
        return await ask(self.backend, request)


def failed_steps(outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any]) -> list[Hard]:
    """The steps whose claims were wrong, of the prompts as they are."""
    hard: list[Hard] = []
    for outcome in outcomes:
        task = make_task(outcome)
        if outcome.arm != "chunk" or task is None:
            continue
        watching = Watching(f"{outcome.task} {outcome.seed}")
        guard = Guard(
            RecordedTexts(outcome.texts),
            segment=meta["segment"],
            observe=True,
            prompts="full",
            seed=outcome.seed,
            observer=watching,
        )
        guard.run(task.procedure, task.inputs)
        hard += watching.hard
    return hard


def read_failed(file: Path) -> list[Hard]:
    """The steps that `rungs.py` collected.

    Raises:
        OSError: the file is not there.
    """
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Hard(
            row["program"],
            Step(row["step"], row["formula"]),
            {name: read_numeral(value).value for name, value in row["values"].items()},
            row["deviation"],
            row["claim"],
        )
        for row in rows
    ]


async def retry(backend: Backend, steps: Sequence[Hard], concurrency: int) -> list[Retry]:
    """Ask failed steps once again, in a clean context and below the refused reply."""
    gate = asyncio.Semaphore(concurrency)

    async def one(at: int, hard: Hard, shown: bool) -> tuple[bool, bool]:
        procedure = hard.procedure()
        model: Backend = _AfterFailure(backend, json.dumps({hard.step.id: hard.claim}))
        if shown:
            model = Reworded(model, "fresh_retries", procedure)
        guard = Guard(
            model, segment=1, repair=Once(Resample()), prompts="full", seed=at, retry=RetryPolicy(timeout=3600)
        )
        async with gate:
            result = await guard.arun(procedure, {name: show_value(value) for name, value in hard.values.items()})
        if result.status == "failed":
            raise SystemExit(f"{hard.name} {hard.step.id}: {result.problem}")
        said = [(attempt.text or "").rpartition("=")[2].strip(' "}') for attempt in result.attempts]
        return result.verified, len(said) > 1 and said[0] == said[-1]

    rows: list[Retry] = []
    for context, shown in (("clean", False), ("refused reply shown", True)):
        made = await asyncio.gather(*(one(at, hard, shown) for at, hard in enumerate(steps)))
        rows.append(Retry(context, len(made), sum(well for well, _ in made), sum(same for _, same in made)))
    return rows


def effect_of_retries(plain: Effect, clean: Retry, shown: Retry) -> Effect:
    """What it does to the next try that the refused reply is shown."""
    odds = [(row.same + 0.5) / (row.steps - row.same + 0.5) for row in (shown, clean)]
    return replace(plain, decision="fresh_retries", repeats=odds[0] / odds[1])


def read_effects(file: Path) -> list[Effect]:
    """The effects that `main` wrote down.

    Raises:
        OSError: the file is not there.
    """
    data = json.loads(file.read_text(encoding="utf-8"))
    found = [Effect(**each) for each in data["effects"]]
    clean, shown = (Retry(**each) for each in data["retries"])
    return [*found, effect_of_retries(found[0], clean, shown)]


def told(found: Sequence[Effect], retries: Sequence[Retry]) -> list[str]:
    """The tables, line by line."""
    lines = [
        "prompts without      steps wrong or missing     more than as they are     odds x  unfaithful  malformed "
        "calls input output tokens"
    ]
    for each in found:
        low, high = wilson(each.wrong, each.steps)
        share = f"{100 * each.wrong / each.steps:4.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        share = f"{each.wrong:>4} of {each.steps:<4} {share}"
        more = "{:+5.1f} [{:+.1f}, {:+.1f}]".format(*(100 * part for part in each.more))
        more = "" if each.decision == PLAIN else more
        lines.append(
            f"{each.decision:<16} {share:<32} {more:<24} {each.odds:>6.2f} {100 * each.unfaithful:>9.1f} % "
            f"{100 * each.malformed:>7.1f} % {each.calls:>6.1f} {each.input_tokens:>5.0f} {each.output_tokens:>6.0f}"
        )
    for row in retries:
        low, high = wilson(row.cured, row.steps)
        lines.append(
            f"asked again, {row.context:<20} cured {row.cured} of {row.steps}, {100 * row.cured / row.steps:.0f} % "
            f"[{100 * low:.0f}, {100 * high:.0f}]; the same wrong value again {row.same}"
        )
    return lines


def main() -> None:
    """Ask the retries where a model is given, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, help="the folder that the benchmark wrote")
    parser.add_argument("--model", help="ask the failed steps again: the model's name at the endpoint")
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--failed", type=Path, help="ask these steps again, which rungs.py keeps, not those found here")
    parser.add_argument("--concurrency", type=int, default=4)
    args = parser.parse_args()
    outcomes, meta = read_recording(args.recording)
    found = effects(outcomes, meta)
    print("\n".join(told(found, [])), flush=True)
    kept = args.recording / "retries.jsonl"
    if args.model is not None:
        model = OpenAIBackend(args.model, base_url=args.base_url, api_key="none")
        backend = RecordedBackend(args.recording / "retries.sqlite", model)
    elif kept.is_file():
        backend = RecordedBackend(kept)
    else:
        return
    steps = failed_steps(outcomes, meta) if args.failed is None else read_failed(args.failed)
    retries = asyncio.run(retry(backend, steps, args.concurrency))
    print("\n".join(told([], retries)[1:]))
    if args.model is not None:
        backend.export(kept)
    data = {"effects": [asdict(each) for each in found], "retries": [asdict(each) for each in retries]}
    (args.recording / "wording.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (args.recording / "wording.txt").write_text("\n".join(told(found, retries)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
