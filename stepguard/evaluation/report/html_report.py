"""``report.html``: what a benchmark found, in one file that needs nothing else to be read.

No script is needed to read it, nothing outside is referenced, and everything that a model or a user wrote is escaped.
The same outcomes and facts give the same bytes, all of them ASCII.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from stepguard.core.markup import Child, Html, tag
from stepguard.evaluation.arms import TaskOutcome, kind_of
from stepguard.evaluation.families import Family
from stepguard.evaluation.report import charts
from stepguard.evaluation.report.figures import (
    ENDS,
    GUARD,
    Cell,
    Contrast,
    Study,
    bound,
    make_headline,
    make_studies,
    percent,
    points,
    points_span,
    share,
    span,
)
from stepguard.evaluation.report.html_examples import failed_section, guarded_section
from stepguard.evaluation.report.html_failures import failures
from stepguard.evaluation.report.html_parts import TableRow, about_section, legend, section, table
from stepguard.evaluation.report.probes import probes
from stepguard.evaluation.report.style import CHART_CSS, CSS, SCRIPT
from stepguard.evaluation.statistics import clustered, fit_decay, wilson

_SECTIONS: Final = {
    "accuracy": "Accuracy by length",
    "parts": "What each part adds",
    "ends": "How the runs ended",
    "failures": "What went wrong in the replies",
    "probes": "Probes and checkers",
    "cost": "What it cost",
    "guarded": "One guarded run, attempt by attempt",
    "failed": "One unguarded run that failed",
    "about": "How this was made",
}
_NOTE_ON_INTERVALS: Final = (
    "Intervals are 95%: Wilson for shares, Newcombe's method 10 for paired differences, a bootstrap over programs "
    "for recovered accuracy and for shares of steps. Runs that ended in an error count as not right."
)
_SIMULATED: Final = (
    "SIMULATED MODEL: the answers come from a program that errs on purpose. This tests the guard and says nothing "
    "about any real model."
)


def write_reports(
    folder: Path, outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any], *, family: Family | None = None
) -> None:
    """Write ``report.html`` into a folder, and the chart of each task as an SVG file, for papers and slides."""
    (folder / "report.html").write_text(make_report(outcomes, meta, family=family), encoding="ascii", newline="\n")
    studies = make_studies(outcomes)
    model = "SIMULATED MODEL" if meta.get("simulated") else str(meta.get("model", "unknown model"))
    for number, study in enumerate(studies, 1):
        name = "accuracy.svg" if len(studies) == 1 else f"accuracy-{number}.svg"
        title = f"{study.task} on {model}: answers right"
        drawn = charts.picture(title, _series(study, study.arms, _RIGHT), style=CHART_CSS)
        (folder / name).write_bytes(f"{drawn}\n".encode("ascii", "xmlcharrefreplace"))


def make_report(outcomes: Sequence[TaskOutcome], meta: Mapping[str, Any], *, family: Family | None = None) -> str:
    """The report as one HTML document.

    Args:
        meta: what made them, as in ``results.json``. The guard's options in it (``segment``, ``retries``) are needed
            to run the guard again on the recorded replies.
        family: where the tasks are from, if that has no name of its own (`stepguard.evaluation.cases.cases`): single
            runs are made again by it.
    """
    studies = make_studies(outcomes)
    model = str(meta.get("model", "unknown model"))
    tasks = ", ".join(study.task for study in studies) or "no task"
    title = f"stepguard bench: {tasks} on {model}"
    bodies: dict[str, list[Child]] = {
        "accuracy": [_of(studies, study, _accuracy(study)) for study in studies],
        "parts": [_of(studies, study, _parts(study)) for study in studies],
        "ends": [_of(studies, study, _ends(study)) for study in studies],
        "failures": [_of(studies, study, failures(study, family)) for study in studies],
        "probes": probes(outcomes),
        "cost": [_of(studies, study, _cost(study)) for study in studies],
        "guarded": [guarded_section(outcomes, meta, family)],
        "failed": [failed_section(outcomes, family)],
        "about": [about_section(outcomes, studies, meta)],
    }
    sections = {name: text for name, text in _SECTIONS.items() if bodies[name]}
    links = [tag("li", tag("a", text, href=f"#{name}")) for name, text in sections.items()]
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", title),
            tag("p", _SIMULATED, class_="banner", role="note") if meta.get("simulated") else None,
            tag("p", str(meta["warning"]), class_="banner", role="note") if meta.get("warning") else None,
            [_headline(study, several=len(studies) > 1) for study in studies],
            None if studies else tag("p", "There are no outcomes.", class_="headline"),
            tag("nav", tag("ul", links), aria_label="Sections"),
        ),
        tag("main", [section(name, text, bodies[name]) for name, text in sections.items()]),
        tag("footer", tag("p", "Made by stepguard bench. ", _NOTE_ON_INTERVALS)),
        tag("script", Html(SCRIPT)),
    )
    document = tag("html", _head(title), body, lang="en")
    return f"<!DOCTYPE html>\n{document}\n".encode("ascii", "xmlcharrefreplace").decode("ascii")


def _head(title: str) -> Html:
    hashed = base64.b64encode(hashlib.sha256(SCRIPT.encode("ascii")).digest()).decode("ascii")
    # Should foreign text ever slip through, it can neither run nor fetch anything.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'; base-uri 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(CSS)),
    )


def _of(studies: Sequence[Study], study: Study, content: Sequence[Child]) -> list[Child]:
    """The content, under the name of its task where there are several."""
    return [tag("h3", study.task) if len(studies) > 1 else None, *content]


def _headline(study: Study, *, several: bool) -> Child:
    headline = make_headline(study)
    *rest, last = headline.rest
    return [
        tag("p", f"{study.task}: " if several else None, headline.main, class_="headline"),
        tag("p", " ".join(rest), " " if rest else None, tag("span", last, class_="alarm" if headline.alarm else None)),
    ]


def _styles(study: Study) -> dict[str, int]:
    """The number of each arm among colours, markers and dashes; the guard's is always the first."""
    others = [arm for arm in study.arms if arm != GUARD]
    return {GUARD: 0} | {arm: at for at, arm in enumerate(others, 1)}


def _by_length(head: Sequence[str], cells: Iterable[tuple[Cell, TableRow]], caption: str) -> Html:
    groups: dict[int, list[TableRow]] = {}
    for cell, columns in cells:
        groups.setdefault(cell.length, []).append([str(cell.length), cell.arm, *columns])
    return table(["steps", "arm", *head], groups.values(), caption=caption, heads=2)


_RIGHT: Final[Callable[[TaskOutcome], bool]] = attrgetter("right")
_TRACED: Final[Callable[[TaskOutcome], bool]] = attrgetter("trace_right")


def _series(study: Study, arms: Iterable[str], what: Callable[[TaskOutcome], bool]) -> list[charts.Series]:
    styles = _styles(study)
    drawn = []
    for arm in arms:
        counts = [(cell, cell.count(what)) for cell in study.of(arm)]
        points = tuple(charts.Point(cell.length, hits / cell.n, wilson(hits, cell.n)) for cell, hits in counts)
        drawn.append(charts.Series(arm, styles[arm], points))
    return drawn


def _accuracy(study: Study) -> list[Child]:
    drawn = []
    traced = [arm for arm in study.arms if study.whole and all(cell.traced for cell in study.of(arm))]
    for title, arms, hit in (("Answer right", study.arms, _RIGHT), ("Every step right", traced, _TRACED)):
        label = f"{title}, share of programs by number of steps and arm, with 95% intervals; the table has every number"
        if arms:
            chart = charts.lines(label, _series(study, arms, hit))
            drawn.append(tag("figure", tag("figcaption", title), chart))
    # One more column only where it tells something.
    lenient = any(cell.count(lambda each: each.right_lenient != each.right) for cell in study.by_length())
    rows: list[tuple[Cell, TableRow]] = []
    for cell in study.by_length():
        leniently = [percent(cell.count(lambda each: each.right_lenient) / cell.n)] if lenient else []
        trace = share(cell.count(_TRACED), cell.n) if cell.traced else "n/a"
        rows.append((cell, [str(cell.n), share(cell.count(_RIGHT), cell.n), *leniently, trace]))
    caption = (
        "Share of programs, with 95% intervals. Arms are compared by a lenient reading, in which the last step's value "
        "is taken for the answer where the answer line is missing, so that none loses by a missing line"
        + (": the column lenient." if lenient else "; here it changes nothing.")
        + ("" if study.whole else " Of some steps no right value is known, so that of no run every step is right.")
    )
    head = ["n", "answer right", *(["lenient"] if lenient else []), "every step right"]
    return [legend(study.arms, _styles(study)), tag("div", drawn, class_="pair"), _by_length(head, rows, caption)]


def _parts(study: Study) -> list[Child]:
    parts: list[Child] = []
    if study.contrasts:
        groups: dict[str, list[TableRow]] = {}
        for contrast in study.contrasts:
            groups.setdefault(_name(contrast), []).append(_contrast_row(contrast))
        flat = any(_flat(contrast) for contrast in study.contrasts)
        caption = (
            "The same programs in both arms, answers read leniently. Rescued: right only in the first arm; harmed: "
            "right only in the second. Recovered: the part of the second arm's wrong answers that the first removes; "
            "n/a where it had none. p: exact McNemar test; Holm: adjusted for all tests of this table."
        ) + (" *: every resample gave the same ratio, so that its interval tells nothing." if flat else "")
        head = ["contrast", "steps", "n", "difference", "rescued", "harmed", "recovered", "p", "Holm"]
        parts.append(table(head, groups.values(), caption=caption, heads=2))
    else:
        parts.append(tag("p", "No two arms ran the same programs, so there is nothing to compare."))
    return [*parts, _decays(study)]


def _name(contrast: Contrast) -> str:
    return f"{contrast.first} - {contrast.second}"


def _flat(contrast: Contrast) -> bool:
    interval = contrast.paired.recovered_interval
    return interval is not None and interval[0] == interval[1]


def _contrast_row(each: Contrast) -> list[Child]:
    paired, recovered = each.paired, "n/a"
    if paired.recovered is not None and paired.recovered_interval is not None:
        recovered = f"{percent(paired.recovered)} {span(paired.recovered_interval)}{'*' if _flat(each) else ''}"
    return [
        _name(each),
        str(each.length),
        str(paired.n),
        f"{points(paired.difference)} {points_span(paired.interval)}",
        str(paired.rescued),
        str(paired.harmed),
        recovered,
        _p(paired.p_value),
        _p(each.adjusted),
    ]


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def _decays(study: Study) -> Child:
    rows: list[TableRow] = []
    for arm in study.arms:
        cells = study.of(arm)
        counts = [(each.steps_right, each.judged) for cell in cells for each in cell.outcomes]
        right, total = sum(one for one, _ in counts), sum(all_ for _, all_ in counts)
        steps = f"{percent(right / total)} {span(clustered(counts))}" if total else "n/a"
        decay = fit_decay([(cell.length, cell.count(_RIGHT), cell.n) for cell in cells])
        fitted = ["-", "-", "-"]
        if decay is not None:
            fitted = [f"{decay.step:.4f}", _horizon(decay.horizon(0.8)), _horizon(decay.horizon(0.5))]
        rows.append([arm, steps, *fitted])
    caption = (
        f"Steps right: of all {'' if study.whole else 'judged '}steps of all programs, what comes after the first "
        "error included; a step that was not reached counts as not right. q and the lengths at which 80% and 50% of "
        "the answers are right: from the likeliest fit of accuracy = A * q^steps, extrapolated where they are beyond "
        "the longest length; - where there is nothing to fit."
    )
    head = ["arm", "steps right", "q", "80% at steps", "50% at steps"]
    return [tag("h3", "Steps and decay"), table(head, [rows], caption=caption, heads=1)]


def _horizon(length: float | None) -> str:
    return "never" if length is None else f"{length:.0f}" if length < 1e6 else "over 10^6"


def _ends(study: Study) -> list[Child]:
    cells: list[tuple[Cell, TableRow]] = []
    for cell in study.by_length():
        silent = cell.count(lambda each: each.silent_errors > 0)
        vouches = kind_of(cell.arm) == "guarded"
        silently = f"{silent} (\u2264 {bound(silent, cell.n)})" if vouches else "-"
        shares = (f"{count} ({percent(count / cell.n)})" if (count := cell.ends.get(end, 0)) else "0" for end in ENDS)
        cells.append((cell, [str(cell.n), silently, *shares]))
    caption = (
        "Programs. Silently wrong: the arm vouched for a wrong answer or a wrong step, with the upper 95% bound; "
        "unguarded arms vouch for nothing. Abstained: it says that it has no answer. No answer: cut off, or no answer "
        "line."
    )
    return [_by_length(["n", "silently wrong", *ENDS], cells, caption)]


def _cost(study: Study) -> list[Child]:
    runs, steps = [], []
    for cell in study.by_length():
        sums = [
            float(sum(getattr(each, what) for each in cell.outcomes))
            for what in ("calls", "input_tokens", "cached_tokens", "output_tokens", "seconds")
        ]
        right = sum(each.steps_right for each in cell.outcomes)
        runs.append((cell, [f"{total / cell.n:,.{1 if at in (0, 4) else 0}f}" for at, total in enumerate(sums)]))
        parts = [f"{total / right:,.{2 if at in (0, 4) else 0}f}" if right else "n/a" for at, total in enumerate(sums)]
        steps.append((cell, parts))
    head = ["calls", "input tokens", "of it cached", "output tokens", "seconds"]
    about_steps = (
        "For one verified step of the guard; for other arms one right step, which nothing tells from wrong ones."
    )
    return [
        _by_length(head, runs, "For one run of one program, on average."),
        # Where not all steps are judged, the others would count as cost of these.
        _by_length(head, steps, about_steps) if study.whole else None,
        tag("p", "Seconds are wall-clock time, with whatever ran beside it.", class_="note"),
    ]
