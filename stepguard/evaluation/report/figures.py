"""The figures of a report: cells, paired contrasts, and the sentences that say what they come to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from stepguard.evaluation.arms import TaskOutcome, kind_of
from stepguard.evaluation.statistics import Paired, compare, holm, upper_bound, wilson
from stepguard.results import ASSISTANCE

GUARD: Final = "guard"

_HELPED: Final[Mapping[str, str]] = {
    "rephrased": "rephrased",
    "rewritten": "rewritten",
    "split": "split",
    "model": "answered by another model",
    "person": "answered by a person",
    "code": "performed by code",
}

End = Literal["right", "abstained", "no answer", "wrong", "error"]
ENDS: Final[tuple[End, ...]] = ("right", "abstained", "no answer", "wrong", "error")
"""How a run can end, each run in one way."""


def end_of(outcome: TaskOutcome) -> End:
    """How a run ended, by its answer."""
    if outcome.error is not None:
        return "error"
    if outcome.right:
        return "right"
    if outcome.abstained:
        return "abstained"
    return "no answer" if outcome.status in ("no_answer", "truncated") else "wrong"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one arm did at one length."""

    arm: str
    length: int
    outcomes: tuple[TaskOutcome, ...]

    @property
    def n(self) -> int:
        """How many programs were run."""
        return len(self.outcomes)

    def count(self, holds: Callable[[TaskOutcome], bool]) -> int:
        """How many outcomes are so."""
        return sum(map(holds, self.outcomes))

    @property
    def traced(self) -> bool:
        """Whether every step was judged, so that it can be said of a run that every step is right."""
        return all(each.judged == each.length for each in self.outcomes)

    @property
    def ends(self) -> Mapping[End, int]:
        """How many runs ended in each way."""
        return Counter(map(end_of, self.outcomes))

    @property
    def deviations(self) -> Mapping[str, int]:
        """How often each kind was met."""
        counts: Counter[str] = Counter()
        for outcome in self.outcomes:
            counts.update(outcome.deviations)
        return counts


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two arms on the same programs of one length.

    Attributes:
        first_right, second_right: how many of the programs each got right, read leniently.
        adjusted: the p value, adjusted for all contrasts of the study by Holm's method.
    """

    first: str
    second: str
    length: int
    paired: Paired
    first_right: int
    second_right: int
    adjusted: float = 1.0


@dataclass(frozen=True, slots=True)
class Study:
    """All outcomes of one task family.

    Attributes:
        arms: in the order in which they were run, the guard last.
        lengths: ascending.
        unguarded: the arms that ask a model and vouch for nothing.
    """

    task: str
    arms: tuple[str, ...]
    lengths: tuple[int, ...]
    cells: Mapping[tuple[str, int], Cell]
    unguarded: tuple[str, ...]
    contrasts: tuple[Contrast, ...]

    @property
    def whole(self) -> bool:
        """Whether the right value of every step is known, so that it can be said of a run that every step is right."""
        outcomes = [each for cell in self.cells.values() for each in cell.outcomes]
        return all(outcome.judged in (0, outcome.length) for outcome in outcomes)  # an arm may ask for no steps at all

    def of(self, arm: str) -> list[Cell]:
        """The cells of an arm, by length."""
        return [self.cells[arm, length] for length in self.lengths if (arm, length) in self.cells]

    def by_length(self) -> list[Cell]:
        """All cells, length by length."""
        keys = [(arm, length) for length in self.lengths for arm in self.arms]
        return [self.cells[key] for key in keys if key in self.cells]


def make_studies(outcomes: Iterable[TaskOutcome]) -> list[Study]:
    """The outcomes by task family, arm and length; probes and the floor are no part of it."""
    tasks: dict[str, dict[tuple[str, int], list[TaskOutcome]]] = {}
    for outcome in outcomes:
        if kind_of(outcome.arm) in ("probe", "floor"):
            continue
        tasks.setdefault(outcome.task, {}).setdefault((outcome.arm, outcome.length), []).append(outcome)
    return [_study(task, by_cell) for task, by_cell in tasks.items()]


def _study(task: str, by_cell: Mapping[tuple[str, int], Sequence[TaskOutcome]]) -> Study:
    cells = {key: Cell(*key, tuple(outcomes)) for key, outcomes in by_cell.items()}
    arms = sorted(dict.fromkeys(arm for arm, _ in by_cell), key=lambda arm: arm == GUARD)
    lengths = tuple(sorted({length for _, length in by_cell}))

    free = tuple(arm for arm in arms if kind_of(arm) == "unguarded")
    rivals = [arm for arm in reversed(arms) if arm != GUARD and kind_of(arm) != "by code"]
    pairs = [(GUARD, arm) for arm in rivals] if GUARD in arms else []
    # What each part adds: the unguarded arms are run from the barest to the one that is most like the guard.
    pairs += [(later, earlier) for earlier, later in pairwise(free)]
    contrasts = [
        contrast
        for first, second in pairs
        for length in lengths
        if (contrast := _contrast(first, second, length, cells)) is not None
    ]
    adjusted = holm([each.paired.p_value for each in contrasts])
    done = tuple(replace(each, adjusted=p) for each, p in zip(contrasts, adjusted, strict=True))
    return Study(task, tuple(arms), lengths, cells, free, done)


def _contrast(first: str, second: str, length: int, cells: Mapping[tuple[str, int], Cell]) -> Contrast | None:
    if (first, length) not in cells or (second, length) not in cells:
        return None
    by_seed = {each.seed: each for each in cells[second, length].outcomes}
    pairs = [(each, by_seed[each.seed]) for each in cells[first, length].outcomes if each.seed in by_seed]
    if not pairs:
        return None
    ones, others = [one.right_lenient for one, _ in pairs], [other.right_lenient for _, other in pairs]
    return Contrast(first, second, length, compare(ones, others), sum(ones), sum(others))


@dataclass(frozen=True, slots=True)
class Headline:
    """What a study comes to: one sentence, what else belongs to it, and whether something is wrong in silence."""

    main: str
    rest: tuple[str, ...] = ()
    alarm: bool = False


def make_headline(study: Study) -> Headline:
    """What the guard recovers against the best unguarded arm, at the longest length that both were run at."""
    if GUARD not in study.arms:
        return _without_guard(study)
    naming, alarm = _silent(study)
    rivals = [
        contrast for contrast in study.contrasts if contrast.first == GUARD and contrast.second in study.unguarded
    ]
    if not rivals:
        cell = study.of(GUARD)[-1]
        right = share(cell.count(lambda each: each.right_lenient), cell.n)
        missing = "No unguarded arm was run" if not study.unguarded else "No unguarded arm ran the same programs"
        main = f"At {_steps(cell.length)} the guard ends {right} of the programs right (n = {cell.n})."
        rest = (f"{missing}, so there is nothing to compare it with.", _named_failures(study, cell.length), naming)
        return Headline(main, rest, alarm)
    length = max(rival.length for rival in rivals)
    at_length = [rival for rival in rivals if rival.length == length]
    # Of arms that are equally good the one against which the guard looks least good.
    best = min(at_length, key=lambda each: (-each.second_right / each.paired.n, each.paired.interval[0]))
    alike = [
        each.second
        for each in at_length
        if each.second_right * best.paired.n == best.second_right * each.paired.n and each.paired.n == best.paired.n
    ]
    names = _listed([name for name in study.arms if name in alike])
    arm = f"the best unguarded arm, {names}," if len(alike) == 1 else f"the best unguarded arms, {names} alike,"
    paired = best.paired
    main = (
        f"At {_steps(length)} the guard ends {share(best.first_right, paired.n)} of the programs right where {arm} "
        f"{'ends' if len(alike) == 1 else 'end'} {share(best.second_right, paired.n)}: "
        f"{points(paired.difference)} points {points_span(paired.interval)} (n = {paired.n})."
    )
    return Headline(main, (_recovered(best), _named_failures(study, length), _assisted(study, length), naming), alarm)


def _without_guard(study: Study) -> Headline:
    rest = ("No guarded arm was run, so nothing is said of the guard here.",)
    length = study.lengths[-1]
    cells = [study.cells[arm, length] for arm in study.arms if (arm, length) in study.cells]
    best = max(cells, key=lambda each: each.count(lambda one: one.right_lenient) / each.n)
    right = share(best.count(lambda one: one.right_lenient), best.n)
    return Headline(f"At {_steps(length)} {best.arm} ends {right} of the programs right (n = {best.n}).", rest)


def _recovered(best: Contrast) -> str:
    if best.paired.recovered is None or best.paired.recovered_interval is None:
        return f"{best.second} got every program right, so there was nothing to recover: recovered accuracy n/a."
    low, high = best.paired.recovered_interval
    part = f"{percent(best.paired.recovered)} {span((low, high))}"
    if low == high:
        part += " (an interval without width, which tells nothing: every resample gave the same ratio)"
    return f"Recovered accuracy, the part of the wrong answers of {best.second} that the guard removes: {part}."


def _named_failures(study: Study, length: int) -> str:
    cell = study.cells[GUARD, length]
    ends = cell.ends
    parts = [f"{percent(ends['abstained'] / cell.n)} abstained"] if ends.get("abstained") else []
    if ends.get("error"):
        parts.append(f"{percent(ends['error'] / cell.n)} ended in an error")
    unnamed = ends.get("wrong", 0) + ends.get("no answer", 0)
    if unnamed:
        parts.append(f"{percent(unnamed / cell.n)} ended wrong")
    if not parts:
        return "It got every program right at that length: there was nothing to abstain from."
    lead = "What it did not get right" if unnamed else "What it did not get right it named"
    return f"{lead}: {_listed(parts)}."


def _assisted(study: Study, length: int) -> str:
    """In which of its steps the guard did more than ask plainly, once or again."""
    cell = study.cells[GUARD, length]
    counts: Counter[str] = Counter()
    for each in cell.outcomes:
        counts.update(each.assisted)
    steps = sum(each.steps_right for each in cell.outcomes)
    if not counts:
        return "Every step that it completed there was asked plainly, once or again."
    kinds = _listed([f"{counts[each]} {_HELPED[each]}" for each in ASSISTANCE if counts[each]])
    return f"Of the {steps} steps that are right there it had {kinds}; all others were asked plainly, once or again."


def _silent(study: Study) -> tuple[str, bool]:
    outcomes = [each for cell in study.of(GUARD) for each in cell.outcomes]
    silent, n = sum(outcome.silent_errors > 0 for outcome in outcomes), len(outcomes)
    runs = "guarded run" if n == 1 else "guarded runs"
    lengths = "" if len(study.lengths) == 1 else ", all lengths together,"
    verb = "was" if silent == 1 or n == 1 else "were"
    sentence = (
        f"{silent} of {n} {runs}{lengths} {verb} silently wrong (at most {bound(silent, n)}, one-sided 95% bound)."
    )
    return (f"It vouched for wrong values: {sentence}" if silent else sentence), silent > 0


def _steps(length: int) -> str:
    return "1 step" if length == 1 else f"{length} steps"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(value: float) -> str:
    """A share without decimals; never 0% or 100% for what is only near."""
    text = f"{value:.0%}"
    if (text in ("0%", "-0%") and value != 0) or (text == "100%" and value != 1):
        text = f"{value:.1%}"
        if text in ("0.0%", "-0.0%"):
            return "<0.1%" if value > 0 else ">-0.1%"
        if text == "100.0%":
            return ">99.9%" if value < 1 else text
    return text


def span(interval: tuple[float, float]) -> str:
    """An interval of shares, in percent."""
    return f"[{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def share(successes: int, n: int) -> str:
    """A share with its Wilson interval."""
    return f"{percent(successes / n)} {span(wilson(successes, n))}"


def bound(events: int, n: int) -> str:
    """The upper 95% bound of a share, rounded up."""
    return f"{math.ceil(1000 * upper_bound(events, n) - 1e-9) / 10:g}%"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    text = f"{100 * difference:+.0f}"
    return "0" if text in ("+0", "-0") else text


def points_span(interval: tuple[float, float]) -> str:
    """An interval of differences."""
    return f"[{points(interval[0])}, {points(interval[1])}]"
