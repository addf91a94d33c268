"""The section of a report on the probes, the limited checkers and the floor, where such arms were run."""

from __future__ import annotations

from collections.abc import Sequence

from stepguard.core.markup import Child, tag
from stepguard.evaluation.arms import Outcome, kind_of
from stepguard.evaluation.report.figures import percent, share, span
from stepguard.evaluation.report.html_parts import table
from stepguard.evaluation.report.probes import conditioning, knowing, limited
from stepguard.evaluation.statistics import upper_bound

Rows = list[tuple[Sequence[Child], bool]]


def probes(outcomes: Sequence[Outcome]) -> list[Child]:
    """Tables of what can be said; nothing where there is nothing."""
    return [
        *_titled("What the checker lets pass", _checkers(outcomes)),
        *_titled("Knowing and doing", _knowing(outcomes)),
        *_titled("Self-conditioning", _conditioning(outcomes)),
        *_titled("The floor", _floor(outcomes)),
    ]


def _titled(title: str, found: Child) -> list[Child]:
    return [] if found is None else [tag("h3", title), found]


def _checkers(outcomes: Sequence[Outcome]) -> Child:
    rows: Rows = []
    for each in limited(outcomes):
        bound = percent(each["accepted_bound"]) if each["wrong_claims"] else "n/a"
        rows.append(
            (
                [
                    each["arm"],
                    str(each["length"]),
                    str(each["claims"]),
                    str(each["wrong_claims"]),
                    f"{each['wrong_accepted']} (\u2264 {bound})",
                    f"{percent(each['silent_errors'])} {span(each['silent_interval'])}",
                    "n/a" if each["predicted_silent_errors"] is None else percent(each["predicted_silent_errors"]),
                ],
                each["arm"] == "guard",
            )
        )
    if not rows:
        return None
    caption = (
        "Claims that rest on right values, and how many of them were wrong by the task's own truth; of these, how many "
        "the checker let pass, with the upper 95% bound. Silent errors: the share of runs that vouched for something "
        "wrong, and what 1 - exp(-n p (1 - c)) predicts from the share p of wrong claims and the share c that was "
        "caught."
    )
    head = ["arm", "steps", "claims", "wrong", "let pass", "silent errors", "predicted"]
    return table(head, [rows], caption=caption, heads=1)


def _knowing(outcomes: Sequence[Outcome]) -> Child:
    rows: Rows = [
        ([each["arm"], str(each["length"]), str(each["slips"]), f"{each['misdone']}", share_of(each)], False)
        for each in knowing(outcomes)
    ]
    if not rows:
        return None
    caption = (
        "Steps that are wrong in themselves, not by what they rest on, and how many of them name the right operation "
        "with the right operands: the model knew what to do and did it wrong."
    )
    return table(["arm", "steps", "slips", "knew what to do", "share"], [rows], caption=caption, heads=1)


def share_of(each: dict[str, object]) -> str:
    """A share of `knowing` with its interval."""
    misdone, slips = each["misdone"], each["slips"]
    assert isinstance(misdone, int)
    assert isinstance(slips, int)
    return share(misdone, slips)


def _conditioning(outcomes: Sequence[Outcome]) -> Child:
    groups: list[Rows] = []
    for each in conditioning(outcomes):
        slope = "n/a"
        if each.slope is not None and each.interval is not None:
            slope = f"{each.slope:+.2f} [{each.interval[0]:+.2f}, {each.interval[1]:+.2f}]"
        with_guard = "yes" if each.guarded else "no"
        groups.append(
            [
                (
                    [
                        str(each.length),
                        with_guard,
                        f"{rate:g}",
                        str(steps),
                        f"{percent(right)} {span(interval)}",
                        slope if at == 0 else "",
                    ],
                    each.guarded,
                )
                for at, (rate, (right, interval, steps)) in enumerate(each.rates.items())
            ]
        )
    if not groups:
        return None
    caption = (
        "The first half of a transcript is given with wrong values in it at a rate; the model's own claims about the "
        "second half are judged by what they rest on. Slope: the change of their share right for each unit of that "
        "rate, with a bootstrap interval over programs; below 0, errors breed errors."
    )
    head = ["steps", "guard", "rate", "claims", "right", "slope"]
    return table(head, groups, caption=caption, heads=1)


def _floor(outcomes: Sequence[Outcome]) -> Child:
    cells: dict[tuple[str, str, int], list[Outcome]] = {}
    for outcome in outcomes:
        if kind_of(outcome.arm) == "floor":
            cells.setdefault((outcome.task, outcome.arm, outcome.length), []).append(outcome)
    rows: Rows = [
        (
            [
                arm,
                str(length),
                str(len(found)),
                share(sum(each.right for each in found), len(found)),
                percent(sum(each.steps_right for each in found) / max(1, sum(each.judged for each in found))),
                f"\u2264 {percent(upper_bound(sum(each.silent_errors for each in found), len(found)))}",
            ],
            False,
        )
        for (_, arm, length), found in cells.items()
    ]
    if not rows:
        return None
    caption = (
        "The guard over models that know nothing: what they get right, chance or copying gets right. A step with few "
        "possible values can be guessed, and gets no second guess. Silent errors with the upper 95% bound."
    )
    head = ["model", "steps", "n", "answer right", "steps right", "silently wrong"]
    return table(head, [rows], caption=caption, heads=1)
