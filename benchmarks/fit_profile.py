"""The slips of a real model, fitted from a recorded benchmark: a table of rates, and a profile for the simulated model.

    python benchmarks/fit_profile.py [--recording DIR] [--json] [--compare 3]

Every step that was asked for the first time is judged by the values that the model itself had at that point
(`observed_steps.py`). Rates are taken where no wrong value stands before the step in the same reply; what wrong values
before it add is the slope `self_conditioning`.

- `by_kind`: a table of cells, from the operation down to signs and size. A cell with fewer than 30 steps is
  pooled into the one above it; the others are drawn towards the one above, as if 20 of its steps were theirs (an
  m-estimate; Cestnik, 1990), and the operations towards the overall rate.
- `by_origin`, and slips that were hardly ever seen: (k + 0.5) / (n + 1) (the median of Jeffreys' posterior, nearly),
  so that what was not seen once is rare and not impossible.
- `self_conditioning`: least squares through the origin of the slips in free text, less what the cell lets expect, on
  the share of wrong values before the step; its interval takes the steps of one program together.
- `systematic`: of the wrong values that were asked again by themselves (`rungs.py`), how many came again.

With ``--compare`` the fitted profile carries out the recorded programs that many times, and the shares of right answers
are put beside the recorded ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from observed_steps import Observations, Observed, observe, read_recording, read_repeats

from stepguard.engine.step_kinds import rate_in
from stepguard.evaluation.arms import ArmOptions, TaskOutcome
from stepguard.evaluation.families import family_named
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.evaluation.statistics import wilson
from stepguard.repair.ladder import Ladder
from stepguard.testing import ModelSlips

__all__ = ["Cell", "Fit", "compare", "fit"]

RECORDING: Final = Path(__file__).parent / "results" / "qwen2.5-coder-1.5b-arithmetic"
RUNGS: Final = Path(__file__).parent / "results" / "qwen2.5-coder-1.5b-rungs" / "failed.jsonl"
_LEAST: Final = 30
_DRAWN: Final = 20
_OF_REPLIES: Final = ("malformed", "extra_step", "truncated")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the table.

    Attributes:
        name: the kind or place of the operands; ``"all"`` for the whole.
        events, n: slips, of how many steps.
        rate: what the profile takes; None where it is that of the cell above.
    """

    name: str
    events: int
    n: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted profile and what it rests on.

    Attributes:
        slips: the profile.
        values, operands: the cells of wrong values and of wrong operands.
        slope: self-conditioning with its 95 % interval.
        seen: the counts behind all of it.
    """

    slips: ModelSlips
    values: tuple[Cell, ...]
    operands: tuple[Cell, ...]
    slope: tuple[float, float, float]
    seen: Observations


def fit(seen: Observations) -> Fit:
    """The profile that a recording shows.

    Raises:
        ValueError: it holds no step to judge.
    """
    clean = [each for each in seen.steps if not each.share and each.slip != "unread"]
    if not clean:
        raise ValueError("no step of the arms cot, chunk and guard could be judged: nothing can be fitted")
    values = _value_cells(clean)
    operands = [Cell("all", *_count(clean, "wrong_operand"), None)]
    for origin in ("given", "structured", "free"):
        counted = _count([each for each in clean if each.origin == origin], "wrong_operand")
        operands.append(Cell(origin, *counted, _rare(*counted)))
    by_kind = tuple((cell.name, cell.rate) for cell in values[1:] if cell.rate is not None)
    by_origin = tuple((cell.name, cell.rate) for cell in operands[1:] if cell.rate is not None)
    plain = ModelSlips(
        wrong_value=_rounded(values[0].events / values[0].n),
        wrong_operand=_rounded(operands[0].events / operands[0].n),
        by_kind=by_kind,
        by_origin=by_origin,
    )
    slope = _slope(seen.steps, plain)
    unread = sum(each.slip == "unread" for each in seen.steps)
    written = len(seen.steps)
    lines = sum(each.origin != "structured" for each in seen.steps)
    rates: dict[str, Any] = {each.name: getattr(plain, each.name) for each in fields(plain)}
    rates |= {
        "systematic": _rare(*seen.repeats),
        "self_conditioning": _rounded(max(0.0, slope[0])),
        "self_correction": _rare(unread, written),
        "missing_step": _rare(seen.missing, written + seen.missing),
        # A premature answer is drawn for each reply, and in free text for each line.
        "premature_answer": _rare(seen.deviations["premature_answer"], seen.replies + lines),
        "failing": _rare(seen.whole[1], seen.whole[0]),
        **{kind: _rare(seen.deviations[kind], seen.replies) for kind in _OF_REPLIES},
    }
    return Fit(ModelSlips(**rates), tuple(values), tuple(operands), slope, seen)


def _count(steps: Iterable[Observed], slip: str) -> tuple[int, int]:
    found = [each.slip == slip for each in steps]
    return sum(found), len(found)


def _rare(events: int, n: int) -> float:
    return _rounded((events + 0.5) / (n + 1))


def _rounded(rate: float) -> float:
    return float(f"{rate:.3g}")


def _value_cells(clean: Sequence[Observed]) -> list[Cell]:
    events, n = _count(clean, "wrong_value")
    cells = [Cell("all", events, n, events / n)]
    known = {"": events / n}
    groups: dict[str, list[Observed]] = defaultdict(list)
    for each in clean:
        words = (each.kind or "").split()
        for count in range(1, len(words) + 1):
            groups[" ".join(words[:count])].append(each)
    for name in sorted(groups):
        events, n = _count(groups[name], "wrong_value")
        above = name.rpartition(" ")[0]
        while above not in known:
            above = above.rpartition(" ")[0]
        rate = None
        if n >= _LEAST:
            known[name] = (events + _DRAWN * known[above]) / (n + _DRAWN)
            rate = _rounded(known[name])
        cells.append(Cell(name, events, n, rate))
    return cells


def _slope(steps: Sequence[Observed], plain: ModelSlips) -> tuple[float, float, float]:
    """How much likelier slips are for each unit of the share of wrong values; with a 95 % interval."""
    square = 0.0
    above: dict[tuple[str, int, int], list[tuple[float, float]]] = defaultdict(list)
    for each in steps:
        if each.share and each.origin == "free":
            value = rate_in(plain.by_kind, each.kind, plain.wrong_value)
            operand = rate_in(plain.by_origin, each.origin, plain.wrong_operand)
            above[each.program].append((each.share, each.slipped - (1 - (1 - value) * (1 - operand))))
            square += each.share**2
    if not square:
        return 0.0, 0.0, 0.0
    slope = sum(share * more for program in above.values() for share, more in program) / square
    left = [sum(share * (more - slope * share) for share, more in program) for program in above.values()]
    half = 1.96 * math.sqrt(sum(each**2 for each in left)) / square
    return slope, slope - half, slope + half


def compare(found: ModelSlips, outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any], seeds: int) -> list[list[str]]:
    """Answers right by arm and length: recorded, and as the profile carries out the same programs."""
    cells: dict[tuple[str, int, str], list[TaskOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.arm in ("cot", "chunk", "guard"):
            cells[outcome.task, outcome.length, outcome.arm].append(outcome)
    retries = meta.get("retries")
    options = ArmOptions(
        segment=meta.get("segment", 10),
        repair=Ladder() if retries is None else retries,
        prompts=meta.get("prompts", "full"),
    )
    rows = [["steps", "arm", "n", "recorded", "simulated"]]
    for (task, length, arm), recorded in cells.items():
        first = min(each.seed for each in recorded)
        plan = Plan(family=family_named(task), cells={length: len(recorded)}, arms=(arm,), seed=first, options=options)
        made: list[TaskOutcome] = []
        for seed in range(seeds):
            tasks = SimulatedTasks(seed=seed, slips=found)
            made += asyncio.run(run_plan(plan, tasks, configuration={}, concurrency=1))
        right = sum(each.right for each in recorded)
        low, high = wilson(right, len(recorded))
        simulated = sum(each.right for each in made) / len(made)
        shown = f"{right / len(recorded):.0%} [{100 * low:.0f}, {100 * high:.0f}]"
        mark = "" if low <= simulated <= high else "  outside"
        rows.append([str(length), arm, str(len(recorded)), shown, f"{simulated:.0%}{mark}"])
    return rows


def _print(found: Fit) -> None:
    seen = found.seen
    print(f"{len(seen.steps)} steps of {seen.replies} structured replies and {seen.texts} free texts")
    if seen.skipped:
        print(f"left out: {seen.skipped} outcomes that could not be made again")
    for title, cells in (("wrong values", found.values), ("wrong operands", found.operands)):
        print(f"\n{title}, where no wrong value stands before the step\n")
        print(f"{'':28}{'n':>6}{'slips':>7}   {'share, 95 % Wilson':26}taken")
        for cell in cells:
            low, high = wilson(cell.events, cell.n)
            share = f"{cell.events / cell.n:.2%}" if cell.n else "-"
            taken = "pooled" if cell.rate is None else f"{cell.rate:.4f}"
            print(f"{cell.name:28}{cell.n:>6}{cell.events:>7}   {f'{share} [{low:.2%}, {high:.2%}]':26}{taken}")
    same, again = seen.repeats
    print(f"\nthe same wrong value again: {same} of {again}")
    print("self-conditioning: {:.2f} [{:.2f}, {:.2f}]".format(*found.slope))
    free = [each for each in seen.steps if each.origin == "free"]
    for low, high in ((0.0, 0.0), (0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        part = [each for each in free if (low < each.share <= high if high else not each.share)]
        slips = sum(each.slipped for each in part)
        print(f"  wrong before it {f'{low:.0%} to {high:.0%}' if high else 'none':12} {slips:>4} of {len(part)}")
    print(f"steps left out: {seen.missing}; deviations of first replies: {dict(sorted(seen.deviations.items()))}")
    print(f"free texts that made up steps behind the last: {seen.unstopped} of {seen.texts}")
    print(f"free texts with every step right and another answer: {seen.whole[1]} of {seen.whole[0]}\n")


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, default=RECORDING, help="folder with outcomes.jsonl")
    parser.add_argument("--rungs", type=Path, default=RUNGS, help="failed.jsonl of rungs.py, with the same model")
    parser.add_argument("--json", action="store_true", help="print the profile as JSON and nothing else")
    parser.add_argument("--compare", type=int, metavar="SEEDS", default=0, help="carry out the recorded programs, too")
    args = parser.parse_args()
    outcomes, meta = read_recording(args.recording)
    found = fit(observe(outcomes, meta, repeats=read_repeats(args.rungs)))
    if args.json:
        print(json.dumps(asdict(found.slips), indent=1))
        return
    _print(found)
    print("ModelSlips(")
    for each in fields(found.slips):
        value = getattr(found.slips, each.name)
        if value or getattr(ModelSlips(), each.name):
            print(f"    {each.name}={value!r},")
    print(")")
    if args.compare:
        print("\nanswers right, the same programs")
        for row in compare(found.slips, outcomes, meta, args.compare):
            print("{:>6}  {:6}{:>4}  {:18}{}".format(*row))


if __name__ == "__main__":
    main()
