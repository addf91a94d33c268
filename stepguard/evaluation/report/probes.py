"""What the probes, the limited checkers and the floor come to.

*Self-conditioning*: how much step accuracy is lost for each unit of error share in the context. *Knowing against
doing*: how many of the slips name the right operation with the right operands, and only the result is wrong. *Limited
checkers*: the share of wrong claims that each lets pass, and how many silent errors that predicts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Final

from stepguard.evaluation.arms import Outcome, kind_of
from stepguard.evaluation.knobs import read_name
from stepguard.evaluation.statistics import clustered, middle, upper_bound, wilson

_DRAWS: Final = 2000  # as many as `stepguard.evaluation.statistics` draws


def conditioning(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Self-conditioning for each length, with and without the guard, from the outcomes of ``primed`` arms.

    ``rates`` holds, for each rate of planted errors, the share of the model's own steps that are right, with its
    interval over programs, and how many steps there were. ``slope`` is the change of that share per unit of error
    share, by least squares (below 0 where errors breed errors), with a 95 % percentile bootstrap over programs.
    """
    cells: dict[tuple[str, int, bool], dict[float, dict[int, tuple[int, int]]]] = {}
    for outcome in outcomes:
        read = read_name(outcome.arm)
        if kind_of(outcome.arm) != "probe" or read is None or outcome.error is not None:
            continue
        rate = read[1].get("rate", 0.0)
        assert isinstance(rate, int | float)
        cell = cells.setdefault((outcome.task, outcome.length, read[1].get("guarded") is True), {})
        cell.setdefault(float(rate), {})[outcome.seed] = (outcome.steps_right, outcome.judged)
    made: list[dict[str, Any]] = []
    for (task, length, guarded), cell in sorted(cells.items()):
        rates = []
        for rate, by_seed in sorted(cell.items()):
            counts = list(by_seed.values())
            if steps := sum(total for _, total in counts):
                share, interval = sum(right for right, _ in counts) / steps, list(clustered(counts))
                rates.append({"rate": rate, "step_accuracy": share, "interval": interval, "steps": steps})
        slope, bounds = _slopes(cell)
        about = {"task": task, "length": length, "guarded": guarded}
        made.append({**about, "rates": rates, "slope": slope, "slope_interval": bounds})
    return made


def _slopes(cell: dict[float, dict[int, tuple[int, int]]]) -> tuple[float | None, list[float] | None]:
    slope = _slope({rate: list(counts.values()) for rate, counts in cell.items()})
    if slope is None:
        return None, None
    seeds = sorted({seed for counts in cell.values() for seed in counts})
    chance = random.Random(len(seeds))
    drawn: list[float] = []
    for _ in range(_DRAWS):  # programs are drawn with all their rates
        chosen = chance.choices(seeds, k=len(seeds))
        resampled = _slope({rate: [counts[seed] for seed in chosen if seed in counts] for rate, counts in cell.items()})
        if resampled is not None:
            drawn.append(resampled)
    drawn.sort()
    return slope, list(middle(drawn))


def _slope(cell: dict[float, list[tuple[int, int]]]) -> float | None:
    """Least squares of step accuracy on the rate, each step one observation; None with fewer than two rates."""
    points = [(rate, right, total) for rate, counts in cell.items() for right, total in counts if total]
    weight = sum(total for *_, total in points)
    if len({rate for rate, *_ in points}) < 2:
        return None
    middle = sum(rate * total for rate, _, total in points) / weight
    mean = sum(right for _, right, _ in points) / weight
    spread = sum(total * (rate - middle) ** 2 for rate, _, total in points)
    return sum((rate - middle) * (right - mean * total) for rate, right, total in points) / spread


def knowing(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For each unguarded arm and length: slips, and the share of them that knew what to do."""
    cells: dict[tuple[str, str, int], list[int]] = {}
    for outcome in outcomes:
        if kind_of(outcome.arm) == "unguarded" and outcome.slips:
            counts = cells.setdefault((outcome.task, outcome.arm, outcome.length), [0, 0])
            counts[0] += outcome.slips
            counts[1] += outcome.misdone
    return [
        {
            "task": task,
            "arm": arm,
            "length": length,
            "slips": slips,
            "misdone": misdone,
            "share": misdone / slips,
            "interval": list(wilson(misdone, slips)),
        }
        for (task, arm, length), (slips, misdone) in cells.items()
    ]


def limited(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For each guarded arm and length: what its checker caught, and the silent errors that this predicts.

    With a share p of wrong claims, of which a share c is caught, n steps are all right with probability about
    exp(-n p (1 - c)); the prediction is what is missing to 1.
    """
    cells: dict[tuple[str, str, int], list[Outcome]] = {}
    for outcome in outcomes:
        if kind_of(outcome.arm) == "guarded" and outcome.arm.startswith("guard"):
            cells.setdefault((outcome.task, outcome.arm, outcome.length), []).append(outcome)
    rows: list[dict[str, Any]] = []
    for (task, arm, length), runs in cells.items():
        claims, wrong = sum(each.claims for each in runs), sum(each.wrong_claims for each in runs)
        accepted, silent = sum(each.wrong_accepted for each in runs), sum(each.silent_errors for each in runs)
        missed = accepted / wrong if wrong else 0.0
        rows.append(
            {
                "task": task,
                "arm": arm,
                "length": length,
                "n": len(runs),
                "claims": claims,
                "wrong_claims": wrong,
                "wrong_accepted": accepted,
                "accepted_bound": upper_bound(accepted, wrong),
                "catch": 1 - missed if wrong else None,
                "silent_errors": silent / len(runs),
                "silent_interval": list(wilson(silent, len(runs))),
                "predicted_silent_errors": 1 - math.exp(-length * wrong / claims * missed) if claims else None,
            }
        )
    return rows


def make_probes(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All of it as JSON data."""
    return {"self_conditioning": conditioning(outcomes), "knowing": knowing(outcomes), "checkers": limited(outcomes)}
