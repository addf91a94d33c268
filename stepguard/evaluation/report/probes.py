"""What the probes, the limited checkers and the floor come to, as data and as a section of a report.

*Self-conditioning*: how much step accuracy is lost for each unit of error share in the context. *Knowing against
doing*: how many of the slips name the right operation with the right operands, and only the result is wrong. *Limited
checkers*: the share of wrong claims that each lets pass, and how many silent errors that predicts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Final

from stepguard.core.markup import Child, tag
from stepguard.evaluation.arms import TaskOutcome, kind_of
from stepguard.evaluation.knobs import read_name
from stepguard.evaluation.report.figures import GUARD, percent, share, span
from stepguard.evaluation.report.html_parts import TableRow, table
from stepguard.evaluation.statistics import clustered, middle, upper_bound, wilson

_DRAWS: Final = 2000  # as many as `stepguard.evaluation.statistics` draws


def conditioning(outcomes: Sequence[TaskOutcome]) -> list[dict[str, Any]]:
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
    chance = random.Random(len(seeds))  # the same outcomes give the same bytes
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


def knowing(outcomes: Sequence[TaskOutcome]) -> list[dict[str, Any]]:
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


def limited(outcomes: Sequence[TaskOutcome]) -> list[dict[str, Any]]:
    """For each guarded arm and length: what its checker caught, and the silent errors that this predicts.

    With a share p of wrong claims, of which a share c is caught, n steps are all right with probability about
    exp(-n p (1 - c)); the prediction is what is missing to 1.
    """
    cells: dict[tuple[str, str, int], list[TaskOutcome]] = {}
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


def make_probes(outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
    """All of it as JSON data."""
    return {"self_conditioning": conditioning(outcomes), "knowing": knowing(outcomes), "checkers": limited(outcomes)}


def probes(outcomes: Sequence[TaskOutcome]) -> list[Child]:
    """Tables of what can be said; nothing where there is nothing."""
    return [*_checkers(outcomes), *_knowing(outcomes), *_conditioning(outcomes), *_floor(outcomes)]


def _titled(title: str, head: Sequence[str], groups: Sequence[Sequence[TableRow]], caption: str) -> list[Child]:
    """A table under its title, the guard's rows marked by their first columns; nothing where it has no rows."""
    if not any(groups):
        return []
    guards = "yes" if head[1] == "guard" else GUARD
    made = table(head, groups, caption=caption, heads=1, guards=lambda row: guards in row[:2])
    return [tag("h3", title), made]


def _checkers(outcomes: Sequence[TaskOutcome]) -> list[Child]:
    rows: list[TableRow] = []
    for cell in limited(outcomes):
        bound = percent(cell["accepted_bound"]) if cell["wrong_claims"] else "n/a"
        predicted = cell["predicted_silent_errors"]
        rows.append(
            [
                cell["arm"],
                *(str(cell[count]) for count in ("length", "claims", "wrong_claims")),
                f"{cell['wrong_accepted']} (\u2264 {bound})",
                f"{percent(cell['silent_errors'])} {span(cell['silent_interval'])}",
                "n/a" if predicted is None else percent(predicted),
            ]
        )
    caption = (
        "Claims that rest on right values, and how many of them were wrong by the task's own truth; of these, how many "
        "the checker let pass, with the upper 95% bound. Silent errors: the share of runs that vouched for something "
        "wrong, and what 1 - exp(-n p (1 - c)) predicts from the share p of wrong claims and the share c that was "
        "caught."
    )
    head = ["arm", "steps", "claims", "wrong", "let pass", "silent errors", "predicted"]
    return _titled("What the checker lets pass", head, [rows], caption)


def _knowing(outcomes: Sequence[TaskOutcome]) -> list[Child]:
    rows: list[TableRow] = []
    for cell in knowing(outcomes):
        counts = (str(cell[count]) for count in ("length", "slips", "misdone"))
        rows.append([cell["arm"], *counts, share(cell["misdone"], cell["slips"])])
    caption = (
        "Steps that are wrong in themselves, not by what they rest on, and how many of them name the right operation "
        "with the right operands: the model knew what to do and did it wrong."
    )
    return _titled("Knowing and doing", ["arm", "steps", "slips", "knew what to do", "share"], [rows], caption)


def _conditioning(outcomes: Sequence[TaskOutcome]) -> list[Child]:
    groups: list[list[TableRow]] = []
    for cell in conditioning(outcomes):
        slope = "n/a"
        if cell["slope_interval"] is not None:
            low, high = cell["slope_interval"]
            slope = f"{cell['slope']:+.2f} [{low:+.2f}, {high:+.2f}]"
        groups.append(
            [
                [
                    str(cell["length"]),
                    "yes" if cell["guarded"] else "no",
                    f"{at_rate['rate']:g}",
                    str(at_rate["steps"]),
                    f"{percent(at_rate['step_accuracy'])} {span(at_rate['interval'])}",
                    slope if at_rate is cell["rates"][0] else "",
                ]
                for at_rate in cell["rates"]
            ]
        )
    caption = (
        "The first half of a transcript is given with wrong values in it at a rate; the model's own claims about the "
        "second half are judged by what they rest on. Slope: the change of their share right for each unit of that "
        "rate, with a bootstrap interval over programs; below 0, errors breed errors."
    )
    head = ["steps", "guard", "rate", "claims", "right", "slope"]
    return _titled("Self-conditioning", head, groups, caption)


def _floor(outcomes: Sequence[TaskOutcome]) -> list[Child]:
    cells: dict[tuple[str, str, int], list[TaskOutcome]] = {}
    for outcome in outcomes:
        if kind_of(outcome.arm) == "floor":
            cells.setdefault((outcome.task, outcome.arm, outcome.length), []).append(outcome)
    rows = [
        [
            arm,
            str(length),
            str(len(cell)),
            share(sum(run.right for run in cell), len(cell)),
            percent(sum(run.steps_right for run in cell) / max(1, sum(run.judged for run in cell))),
            f"\u2264 {percent(upper_bound(sum(run.silent_errors for run in cell), len(cell)))}",
        ]
        for (_, arm, length), cell in cells.items()
    ]
    caption = (
        "The guard over models that know nothing: what they get right, chance or copying gets right. A step with few "
        "possible values can be guessed, and gets no second guess. Silent errors with the upper 95% bound."
    )
    head = ["model", "steps", "n", "answer right", "steps right", "silently wrong"]
    return _titled("The floor", head, [rows], caption)
