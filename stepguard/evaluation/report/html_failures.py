"""The section of a report on what went wrong in the replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from stepguard.core.markup import Child, tag
from stepguard.evaluation.families import Family
from stepguard.evaluation.report.examples import is_transcript, make_task, mark
from stepguard.evaluation.report.figures import Cell, Study
from stepguard.evaluation.report.html_parts import TableRow, table

_MOST_TRANSCRIPTS: Final = 20
"""So many transcripts of a cell are read step by step."""

_KINDS: Final = {
    "missing_step": "a step that was asked is not answered",
    "premature_answer": "a final answer although only a segment was asked",
    "self_correction": "the reply takes back what it wrote",
    "extra_step": "something is answered that was not asked",
    "duplicate_step": "a step is answered twice",
    "wrong_order": "the steps are not in their order",
    "wrong_operand": "the working uses another value than the step names",
    "wrong_value": "the working is this step's, the result is not",
    "unfaithful_work": "right, but by other working than this step's",
    "malformed": "nothing can be read",
    "truncated": "the reply was cut off",
    "empty": "the reply holds nothing",
    "refused": "the model or the provider declined",
    "undecided": "a check could not decide",
}


def failures(study: Study, family: Family | None = None) -> list[Child]:
    """Which kinds of deviation were met, and what became of the steps in free transcripts."""
    return [*_deviations(study), *_transcripts(study, family)]


def _deviations(study: Study) -> list[Child]:
    totals: Counter[str] = Counter()
    for cell in study.by_length():
        totals.update(cell.deviations)
    if not totals:
        return [tag("p", "No deviation was recorded.")]
    arms = [arm for arm in study.arms if any(cell.deviations for cell in study.of(arm))]
    most = max(count / cell.n for cell in study.by_length() for count in cell.deviations.values())
    kinds = sorted(totals, key=lambda kind: (-totals[kind], kind))
    titles = [[tag("code", kind), tag("span", f" {_KINDS.get(kind, '')}", class_="note")] for kind in kinds]
    groups = [[[arm, *_counts(study, arm, kind, most)] for arm in arms] for kind in kinds]
    silent = [arm for arm in study.arms if arm not in arms]
    caption = "How often each kind of deviation was met, and in brackets how often in one run." + (
        f" None is recorded for {', '.join(silent)}." if silent else ""
    )
    head = ["arm", *(f"{length} steps" if length > 1 else "1 step" for length in study.lengths)]
    return [table(head, groups, caption=caption, heads=1, titles=titles)]


def _counts(study: Study, arm: str, kind: str, most: float) -> Iterable[Child]:
    for length in study.lengths:
        cell = study.cells.get((arm, length))
        if cell is None:
            yield "-"
            continue
        count = cell.deviations.get(kind, 0)
        bar = tag("span", class_="meter", style=f"width:{100 * count / cell.n / most:.0f}%")
        yield [f"{count} ({count / cell.n:.2g})" if count else "0", bar if count else None]


_JUDGED: Final = {
    "right": "right",
    "slip": "wrong by itself",
    "carried": "wrong from above",
    "unread": "unreadable",
    "missing": "never written",
}


def _transcripts(study: Study, family: Family | None) -> list[Child]:
    groups: dict[int, list[TableRow]] = {}
    for cell in study.by_length():
        read, counts = _judged(cell, family) if cell.arm in study.unguarded else (0, {})
        if read:
            total = sum(counts.values())
            shares = [f"{counts[judgement] / total:.0%}" for judgement in _JUDGED]
            groups.setdefault(cell.length, []).append([str(cell.length), cell.arm, str(read), *shares])
    if not groups:
        return []
    caption = (
        f"Shares of all {'' if study.whole else 'judged '}steps. Wrong by itself: it does not follow from the values "
        "that the transcript has for what the step reads. Wrong from above: it does, and these are wrong. Never "
        "written: skipped, or behind the point where the transcript stops. At most "
        f"{_MOST_TRANSCRIPTS} transcripts a row were read."
    )
    head = ["steps", "arm", "transcripts", *_JUDGED.values()]
    return [tag("h3", "Steps in free transcripts"), table(head, groups.values(), caption=caption, heads=2)]


def _judged(cell: Cell, family: Family | None) -> tuple[int, dict[str, int]]:
    """How many transcripts were read, and how many of their steps are judged in each way."""
    counts = dict.fromkeys(_JUDGED, 0)
    read = 0
    for outcome in cell.outcomes[:_MOST_TRANSCRIPTS]:
        if not is_transcript(outcome):
            continue
        task = make_task(outcome, family)
        if task is None:  # nor will the others be made
            break
        marked = mark(outcome, task)
        if marked is None:
            continue
        lines, missing = marked
        read += 1
        counts["missing"] += len(missing)
        # A step that is written down more than once counts as it is read: by its last line.
        last = {line.step: line.judged for line in lines if line.step is not None}
        for judged in last.values():
            counts[judged or "unread"] += 1
    return read, counts
