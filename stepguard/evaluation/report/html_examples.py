"""The sections of a report in which single runs are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stepguard.backends.base import Request
from stepguard.core.markup import Child, Html, cut, tag
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.arms.reading import read_entries
from stepguard.evaluation.families import Family
from stepguard.evaluation.report.examples import (
    Replay,
    TranscriptLine,
    choose_failed,
    choose_guarded,
    counts_of_judgements,
    make_task,
    mark,
    replay,
)
from stepguard.evaluation.report.figures import end_of
from stepguard.procedure.steps import Step
from stepguard.results import Attempt

_ATTEMPTS: Final = 60  # a run that went wrong hundreds of times would fill the page
_REPLY: Final = 4000
_LINES: Final = 400
_LINE: Final = 500
_YES, _NO = "\u2713", "\u2717"


def guarded_section(outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any], family: Family | None = None) -> Child:
    """One guarded run, attempt by attempt."""
    outcome = choose_guarded(outcomes)
    if outcome is None:
        return tag("p", "No guarded run is recorded with its replies.")
    again = replay(outcome, meta, family)
    count = sum(outcome.deviations.values())
    met = "no deviation" if count == 0 else f"{count} deviation{'s' if count > 1 else ''}"
    about = (
        f"{_program(outcome)}: {met} in {len(outcome.texts)} call{'s' if len(outcome.texts) != 1 else ''}, ended "
        f"{outcome.status}. Of all guarded runs that ended so it met the most deviations. What a reply says "
        "behind a step that was not accepted is not used."
    )
    stopped = tag("p", "It stopped at ", tag("b", cut(outcome.stopped_at, _LINE)), ".") if outcome.stopped_at else None
    if again is None:
        return [
            tag("p", about),
            stopped,
            tag("p", "The guard did not go the same way on these replies again, so that they stand as they came."),
            [
                tag("details", tag("summary", f"Reply {number}"), _raw(text), class_="attempt")
                for number, text in enumerate(outcome.texts[:_ATTEMPTS], 1)
            ],
            _left_out(len(outcome.texts)),
        ]
    return [
        tag("p", about),
        stopped,
        [_attempt(attempt, again) for attempt in again.result.attempts[:_ATTEMPTS]],
        _left_out(len(again.result.attempts)),
    ]


def _program(outcome: TaskOutcome) -> str:
    return f"{outcome.task}, {outcome.length} {'step' if outcome.length == 1 else 'steps'}, seed {outcome.seed}"


def _left_out(count: int) -> Child:
    return tag("p", f"{count - _ATTEMPTS:,} more attempts are left out here.") if count > _ATTEMPTS else None


def _attempt(attempt: Attempt, again: Replay) -> Html:
    asked = [each.step for each in attempt.steps]
    names = asked[0] if len(asked) == 1 else f"{asked[0]} to {asked[-1]}"
    way = "" if attempt.rung == "ask" else f", again ({attempt.rung})"
    accepted = attempt.outcome == "accepted"
    ends = f"all {len(asked)}" if accepted and len(asked) > 1 else f"{attempt.committed} of {len(asked)}"
    summary = tag(
        "summary",
        tag("b", f"{attempt.number}. "),
        f"asked {names}{way}: ",
        tag("span", f"{_YES if accepted else _NO} {ends} accepted", class_="ok" if accepted else "bad-text"),
        [f", {deviation.kind}" for deviation in attempt.deviations],
    )
    entries = read_entries(attempt.text or "") or {}
    steps = {step.id: step for step in again.task.procedure.steps}
    committed = _committed(attempt, [steps[name] for name in asked])
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row", class_="mono", role="rowheader"),
            tag("td", _step_text(steps[name]), class_="mono asked", role="cell"),
            tag("td", cut(entries.get(name, ""), _LINE), class_="mono", role="cell"),
            tag("td", _judged(attempt, name, accepted=name in committed), role="cell"),
            role="row",
        )
        for name in asked
    ]
    heads = [tag("th", text, scope="col", role="columnheader") for text in ("step", "asked", "reply", "judged")]
    elsewhere = [each for each in attempt.deviations if each.step not in asked]
    request = again.requests[attempt.number - 1] if attempt.number <= len(again.requests) else None
    return tag(
        "details",
        summary,
        # On a narrow screen the rows are no longer laid out as those of a table: the roles keep them such.
        tag(
            "table",
            tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
            tag("tbody", rows, role="rowgroup"),
            role="table",
        ),
        [tag("p", f"{_NO} {other.kind}: {cut(other.reason, _LINE)}", class_="bad-text") for other in elsewhere],
        tag("p", cut(attempt.error, _LINE), class_="bad-text") if attempt.error else None,
        tag("details", tag("summary", "request and reply as they were"), _messages(request), _raw(attempt.text or "")),
        class_="attempt" if accepted else "attempt bad",
        open=None if accepted else "open",
    )


def _step_text(step: Step) -> str:
    return cut(step.formula or step.instruction or "", _LINE)


def _committed(attempt: Attempt, steps: Sequence[Step]) -> set[str]:
    """Which of the asked steps were committed: of those that do not rest on a refused one so many as were."""
    refused = {where.step for where in attempt.refused}
    candidates: list[str] = []
    for step in steps:
        if step.id in refused or not refused.isdisjoint(step.reads):
            refused.add(step.id)
        else:
            candidates.append(step.id)
    return set(candidates[: attempt.committed])


def _judged(attempt: Attempt, name: str, *, accepted: bool) -> Child:
    deviations = [deviation for deviation in attempt.deviations if deviation.step == name]
    why = [
        tag("span", f"{_NO} {each.kind}", f": {cut(each.reason, _LINE)}" if each.reason else None, class_="bad-text")
        for each in deviations
    ]
    if accepted:
        return [tag("span", f"{_YES} accepted", class_="ok"), " " if why else None, why]
    return why or tag("span", "not used", class_="note")


def _messages(request: Request | None) -> Child:
    if request is None:
        return None
    last = request.messages[-1].content
    return [tag("p", "The last message of the request; what stands before it is the same every time:"), _raw(last)]


def _raw(text: str) -> Html:
    return tag("pre", cut(text, _REPLY) if text else "(nothing came)")


def failed_section(outcomes: Sequence[TaskOutcome], family: Family | None = None) -> Child:
    """One unguarded run that failed, its wrong steps marked."""
    beside = choose_guarded(outcomes)
    outcome = choose_failed(outcomes, beside)
    if outcome is None:
        return tag("p", "No unguarded run failed with a reply that could be shown.")
    same = beside is not None and (beside.task, beside.length, beside.seed) == (
        outcome.task,
        outcome.length,
        outcome.seed,
    )
    about = f"{_program(outcome)}, {'the program of the guarded run above, ' if same else ''}by {outcome.arm}: "
    task = make_task(outcome, family)
    marked = mark(outcome, task) if task is not None else None
    if task is None or marked is None:
        return [
            tag("p", about, f"{_steps_right(outcome)}. They could not be marked in it."),
            [_raw(text) for text in outcome.texts[:_ATTEMPTS]],
        ]
    lines, missing = marked
    counts = counts_of_judgements(lines)
    ended = {"wrong": "the answer wrong", "no answer": "no answer"}.get(end_of(outcome), end_of(outcome))
    summary = f"{_steps_right(outcome)}, {ended} (right is {task.answer})."
    key = (
        f"{_NO} marks a step that goes wrong by itself ({counts.get('slip', 0) + counts.get('unread', 0)}), \u21b3 one "
        f"that is done right with wrong values from above ({counts.get('carried', 0)})."
    )
    return [
        tag("p", about, summary),
        tag("p", key, class_="note"),
        tag("ol", [_line(line) for line in lines[:_LINES]], class_="lines mono"),
        tag("p", f"{len(lines) - _LINES:,} more lines are left out here.") if len(lines) > _LINES else None,
        tag("p", _missing(missing), class_="bad-text") if missing else None,
    ]


def _steps_right(outcome: TaskOutcome) -> str:
    steps = "steps" if outcome.judged == outcome.length else "judged steps"
    return f"{outcome.steps_right} of {outcome.judged} {steps} right"


def _missing(missing: Sequence[str]) -> str:
    names = ", ".join(missing[:20]) + (" ..." if len(missing) > 20 else "")
    return f"{_NO} never written down ({len(missing)}): {names}"


def _line(line: TranscriptLine) -> Html:
    sign = {"right": _YES, "slip": _NO, "unread": _NO, "carried": "\u21b3"}.get(line.judged or "", Html("&#160;"))
    why = tag("span", line.note, class_="why") if line.note else None
    return tag(
        "li", tag("span", sign, class_="sign"), tag("q", cut(line.text, _LINE)), why, class_=line.judged or "other"
    )
