"""The section of a report on the probes, the limited checkers and the floor, where such arms were run."""

from __future__ import annotations

from collections.abc import Sequence

from stepguard.core.markup import Child, tag
from stepguard.evaluation.arms import Outcome, kind_of
from stepguard.evaluation.report.figures import GUARD, percent, share, span
from stepguard.evaluation.report.html_parts import Row, table
from stepguard.evaluation.report.probes import conditioning, knowing, limited
from stepguard.evaluation.statistics import upper_bound


def probes(outcomes: Sequence[Outcome]) -> list[Child]:
    """Tables of what can be said; nothing where there is nothing."""
    return [*_checkers(outcomes), *_knowing(outcomes), *_conditioning(outcomes), *_floor(outcomes)]


def _titled(title: str, head: Sequence[str], groups: Sequence[Sequence[Row]], caption: str) -> list[Child]:
    """A table under its title, the guard's rows marked by their first columns; nothing where it has no rows."""
    if not any(groups):
        return []
    guards = "yes" if head[1] == "guard" else GUARD
    made = table(head, groups, caption=caption, heads=1, guards=lambda row: guards in row[:2])
    return [tag("h3", title), made]


def _checkers(outcomes: Sequence[Outcome]) -> list[Child]:
    rows: list[Row] = []
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


def _knowing(outcomes: Sequence[Outcome]) -> list[Child]:
    rows: list[Row] = []
    for cell in knowing(outcomes):
        counts = (str(cell[count]) for count in ("length", "slips", "misdone"))
        rows.append([cell["arm"], *counts, share(cell["misdone"], cell["slips"])])
    caption = (
        "Steps that are wrong in themselves, not by what they rest on, and how many of them name the right operation "
        "with the right operands: the model knew what to do and did it wrong."
    )
    return _titled("Knowing and doing", ["arm", "steps", "slips", "knew what to do", "share"], [rows], caption)


def _conditioning(outcomes: Sequence[Outcome]) -> list[Child]:
    groups: list[list[Row]] = []
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


def _floor(outcomes: Sequence[Outcome]) -> list[Child]:
    cells: dict[tuple[str, str, int], list[Outcome]] = {}
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
