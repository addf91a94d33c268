"""From outcomes to ``results.json`` and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final

from stepguard.core.usage import Price, Usage
from stepguard.engine.forecast import forecast
from stepguard.evaluation.arms import TaskOutcome, kind_of
from stepguard.evaluation.report.figures import GUARD, end_of
from stepguard.evaluation.report.probes import make_probes
from stepguard.evaluation.runner import Plan
from stepguard.evaluation.statistics import clustered, compare, upper_bound, wilson

_PARTS: Final = 10**6  # scores are fractions, and the bootstrap counts whole parts
_ASIDE: Final = ("(lenient)", "assisted", "errors")
"""Columns that a narrow table does without."""


def make_results(
    outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any], *, price: Price | None = None, fixed: bool = False
) -> dict[str, Any]:
    """The content of ``results.json``.

    ``rows`` has one entry for each arm and length: shares of right answers and of right traces with 95 % Wilson
    intervals, errors in the denominator (the traces are None where not all right values are known, and then the share
    of steps is of those that are judged); ``paired`` compares the guard with each other arm on the same instances;
    ``assisted`` counts the steps that the guard did not ask plainly; ``cached_share`` is the part of the prompts that
    came from a cache; ``probes`` is what `stepguard.evaluation.report.probes` finds; ``authors`` holds the means of
    what the authors of published items measure, by name, with intervals. Such items are of many lengths: with `fixed`,
    ``whole`` has rows and pairs over all of them, whose ``length`` is a span (``1-15``).
    With a price a row has its ``cost``, exact, as text: what its runs would cost alone, so that a reply that arms share
    counts in each of them.
    """
    whole = {}
    if fixed and outcomes:
        lengths = [outcome.length for outcome in outcomes]
        span = f"{min(lengths)}-{max(lengths)}"
        rows, paired = _compared([(outcome, span) for outcome in outcomes], price)
        whole = {"whole": {"rows": rows, "paired": paired}}
    rows, paired = _compared([(outcome, outcome.length) for outcome in outcomes], price)
    return {"meta": dict(meta), "rows": rows, "paired": paired, **whole, "probes": make_probes(outcomes)}


def _compared(
    outcomes: Iterable[tuple[TaskOutcome, int | str]], price: Price | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and pairs of outcomes, each with the length that it is counted under."""
    cells: dict[tuple[str, int | str], dict[str, list[TaskOutcome]]] = {}
    for outcome, length in outcomes:
        cells.setdefault((outcome.task, length), {}).setdefault(outcome.arm, []).append(outcome)
    rows: list[dict[str, Any]] = []
    paired: list[dict[str, Any]] = []
    for (task, length), arms in cells.items():
        rows += [_row(arm, task, length, runs, price) for arm, runs in arms.items()]
        if GUARD in arms:
            compared = [arm for arm in arms if arm != GUARD and kind_of(arm) in ("unguarded", "guarded")]
            pairs = [_paired(arm, task, length, arms) for arm in compared]
            paired += [each for each in pairs if each is not None]
    return rows, paired


def _row(
    arm: str, task: str, length: int | str, outcomes: Sequence[TaskOutcome], price: Price | None
) -> dict[str, Any]:
    def total(name: str) -> Any:
        return sum(getattr(outcome, name) for outcome in outcomes)

    n, right, silent = len(outcomes), total("right"), total("silent_errors")
    judged, steps = total("judged"), total("length")
    traces = total("trace_right") if judged == steps else None
    errors = sum(outcome.error is not None for outcome in outcomes)
    deviations: Counter[str] = Counter()
    assisted: Counter[str] = Counter()
    for outcome in outcomes:
        deviations.update(outcome.deviations)
        assisted.update(outcome.assisted)
    prompts, cached = total("input_tokens"), total("cached_tokens")
    step_counts = [(outcome.steps_right, outcome.judged) for outcome in outcomes]
    return {
        "arm": arm,
        "task": task,
        "length": length,
        "n": n,
        **({} if isinstance(length, int) else {"steps": steps}),
        "accuracy": right / n,
        "interval": list(wilson(right, n)),
        "accuracy_lenient": total("right_lenient") / n,
        "accuracy_without_errors": right / (n - errors) if n > errors else None,
        "trace_accuracy": None if traces is None else traces / n,
        "trace_interval": None if traces is None else list(wilson(traces, n)),
        "step_accuracy": total("steps_right") / judged if judged else None,
        "step_interval": list(clustered(step_counts)) if judged else None,
        "prefix": total("prefix") / n,
        "scores": {f"lambda_{weight}": _score(outcomes, weight) for weight in (0, 1, 4)},
        "verified": total("verified") / n,
        "checked": sum(outcome.status == "checked" for outcome in outcomes) / n,
        "abstained": total("abstained") / n,
        "silent_errors": silent,
        "silent_errors_interval": list(wilson(silent, n)),
        "silent_errors_bound": upper_bound(silent, n),
        "errors": errors,
        "no_answer": sum(outcome.status in ("no_answer", "truncated") for outcome in outcomes),
        "calls": total("calls"),
        "input_tokens": prompts,
        "output_tokens": total("output_tokens"),
        "cached_tokens": cached,
        "cached_share": cached / prompts if prompts else None,
        "assisted": dict(sorted(assisted.items())),
        "seconds": round(total("seconds"), 3),
        "deviations": dict(sorted(deviations.items())),
        **({"authors": _authors(outcomes)} if any(outcome.authors for outcome in outcomes) else {}),
        "served_by": sorted({name for outcome in outcomes for name in outcome.served_by}),
        **({} if price is None else {"cost": f"{_cost(outcomes, price):f}"}),
    }


def _authors(outcomes: Sequence[TaskOutcome]) -> dict[str, dict[str, Any]]:
    """The authors' measures: means with intervals, Wilson's where every value is 0 or 1."""
    measures: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for outcome in outcomes for name in outcome.authors):
        values = [outcome.authors.get(name, 0.0) for outcome in outcomes]
        if all(value in (0.0, 1.0) for value in values):
            interval = wilson(int(sum(values)), len(values))
        else:
            interval = clustered([(round(value * _PARTS), _PARTS) for value in values])
        measures[name] = {"mean": sum(values) / len(values), "interval": list(interval)}
    return measures


def _score(outcomes: Sequence[TaskOutcome], weight: int) -> float:
    """The share right minus `weight` times the share wrong: no answer costs nothing, a wrong one does."""
    right = sum(outcome.right_lenient for outcome in outcomes)
    wrong = sum(not outcome.right_lenient and end_of(outcome) == "wrong" for outcome in outcomes)
    return (right - weight * wrong) / len(outcomes)


def _cost(outcomes: Sequence[TaskOutcome], price: Price) -> Decimal:
    names = ("calls", "input_tokens", "output_tokens", "cached_tokens")
    return price.of(Usage(**{name: sum(getattr(outcome, name) for outcome in outcomes) for name in names}))


def _paired(
    baseline: str, task: str, length: int | str, arms: Mapping[str, Sequence[TaskOutcome]]
) -> dict[str, Any] | None:
    by_seed = {each.seed: each for each in arms[baseline]}
    pairs = [(each, by_seed[each.seed]) for each in arms[GUARD] if each.seed in by_seed]
    if not pairs:  # stopped before both had run the same program
        return None
    # Lenient reading on both sides: the baseline is not to lose by a missing answer line.
    comparison = compare([one.right_lenient for one, _ in pairs], [other.right_lenient for _, other in pairs])
    intervals = {name: list(value) for name, value in asdict(comparison).items() if isinstance(value, tuple)}
    about = {"arm": GUARD, "baseline": baseline, "task": task, "length": length}
    return {**about, **asdict(comparison), **intervals, "no_width": comparison.interval[0] == comparison.interval[1]}


def make_table(results: Mapping[str, Any], *, narrow: bool = False) -> list[list[str]]:
    """The rows as text, the first one holding the column heads; those of probes are left out.

    Args:
        narrow: leave out what is least asked for, and write intervals below their shares: 80 columns are enough.
    """
    priced = any("cost" in row for row in results["rows"])
    table: list[dict[str, str]] = []
    for row in results["rows"]:
        if kind_of(row["arm"]) == "probe":  # no answer to the task: see `probes`
            continue
        n = row["n"]
        cells = {
            "arm": row["arm"],
            "steps": str(row["length"]),
            "n": str(n),
            **{
                f"authors: {name}": _share(each["mean"], each["interval"], narrow=narrow)
                for name, each in row.get("authors", {}).items()
            },
            "answer right": _share(row["accuracy"], row["interval"], narrow=narrow),
            "(lenient)": f"{row['accuracy_lenient']:.0%}",
            "every step right": _share(row["trace_accuracy"], row["trace_interval"], narrow=narrow),
            "assisted": _assisted(row),
            "abstained": f"{row['abstained']:.0%}",
            "silently wrong": str(row["silent_errors"]) if kind_of(row["arm"]) == "guarded" else "-",
            "errors": str(row["errors"]),
            "calls": f"{row['calls'] / n:.1f}",
            "input tokens": f"{row['input_tokens'] / n:.0f}",
            "output tokens": f"{row['output_tokens'] / n:.0f}",
        }
        if priced:
            cells["cost"] = f"{Decimal(row['cost']) / n:.4g}"
        if narrow:
            cells["gave up"] = cells.pop("abstained")
            cells["tokens in, out"] = f"{cells.pop('input tokens')}\n{cells.pop('output tokens')}"
            cells = {name: cell for name, cell in cells.items() if name not in _ASIDE}
        table.append(cells)
    return [list(table[0]) if table else [], *(list(cells.values()) for cells in table)]


def _assisted(row: Mapping[str, Any]) -> str:
    """How many steps a program were had with assistance."""
    return f"{sum(row['assisted'].values()) / row['n']:.1f}" if kind_of(row["arm"]) == "guarded" else "-"


def assistance_texts(results: Mapping[str, Any]) -> list[str]:
    """A line for each cell in which the guard did more for some steps than ask them plainly."""
    lines: list[str] = []
    for row in results["rows"]:
        if row["assisted"]:
            steps = row["steps"] if "steps" in row else row["n"] * row["length"]
            kinds = ", ".join(f"{kind} {count}" for kind, count in row["assisted"].items())
            lines.append(f"{row['arm']} at {row['length']} steps: of {steps} steps {kinds}")
    return lines


def _share(share: float | None, interval: Sequence[float] | None, *, narrow: bool) -> str:
    if share is None or interval is None:
        return "n/a"
    gap = "\n" if narrow else " "
    return f"{share:.0%}{gap}[{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


_MEASURES = ("calls", "input_tokens", "output_tokens", "seconds")


def make_forecasts(plan: Plan, outcomes: Sequence[TaskOutcome]) -> list[dict[str, Any]]:
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


def forecast_text(row: Mapping[str, Any]) -> str:
    """One line of it."""
    parts = [
        f"{row[what]['calls']:.1f} calls, {row[what]['output_tokens']:.0f} output and {row[what]['input_tokens']:.0f} "
        f"input tokens, {row[what]['seconds']:.1f} s, {row[what]['success']:.0%} verified"
        for what in ("forecast", "spent")
    ]
    return f"guard at {row['length']} steps: forecast {parts[0]}; spent {parts[1]} (n = {row['n']})"
