"""What a profile foretells of the guarded runs of a benchmark, beside what they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepguard.engine.forecast import forecast
from stepguard.evaluation.arms import Outcome
from stepguard.evaluation.report.figures import GUARD
from stepguard.evaluation.runner import Plan

_MEASURES = ("calls", "input_tokens", "output_tokens", "seconds")


def make_forecasts(plan: Plan, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """For each length: ``forecast`` and ``spent`` calls, tokens, seconds and share of verified runs, by run.

    The forecast is of the first program of a length, with the profile and the segments of the plan's options; there
    is none without a profile, and none of a guard with other knobs.
    """
    profile = plan.options.profile
    if profile is None:
        return []
    forecasts: list[dict[str, Any]] = []
    for length in plan.cells:
        runs = [
            outcome
            for outcome in outcomes
            if (outcome.arm, outcome.length) == (GUARD, length) and outcome.error is None
        ]
        if not runs:
            continue
        procedure = plan.family.make(runs[0].seed, length).procedure
        expected = forecast(procedure, profile, segments=plan.options.settings().segments)
        spent = {name: sum(getattr(run, name) for run in runs) / len(runs) for name in _MEASURES}
        forecasts.append(
            {
                "length": length,
                "n": len(runs),
                "forecast": {**{name: getattr(expected, name) for name in _MEASURES}, "success": expected.success},
                "spent": {**spent, "success": sum(run.verified for run in runs) / len(runs)},
            }
        )
    return forecasts


def tell(row: Mapping[str, Any]) -> str:
    """One line of it."""
    parts = [
        f"{row[what]['calls']:.1f} calls, {row[what]['output_tokens']:.0f} output and {row[what]['input_tokens']:.0f} "
        f"input tokens, {row[what]['seconds']:.1f} s, {row[what]['success']:.0%} verified"
        for what in ("forecast", "spent")
    ]
    return f"guard at {row['length']} steps: forecast {parts[0]}; spent {parts[1]} (n = {row['n']})"
