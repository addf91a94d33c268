"""A procedure, and a run on it, as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.core.markup import Child, Html, tag
from stepguard.core.verdicts import shorten
from stepguard.procedure.procedure import Procedure, check_procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.procedure.steps import Step
from stepguard.results import Result
from stepguard.results.view import StepView
from stepguard.show.facts import GOING_ON, RunFacts, SiteFacts, in_words, read_run, shown_value
from stepguard.show.style import CSS, sign, symbols
from stepguard.show.words import (
    branches_of,
    checks_of,
    describe_input,
    group,
    halt_text,
    heading,
    how_accepted,
    outcome,
    step_text,
    summary_of,
    taken_text,
)

_ROWS: Final = 50
"""Rows of a table that are shown."""
_BLOCK: Final = 100  # long loops are folded: nobody unfolds thousands of steps
_UNFOLDED: Final = 2_000
"""So many folded steps can be unfolded on the page."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PERFORMERS: Final = {
    "model": "a model, checked",
    "code": "code",
    "function": "a function",
    "tool": "a tool",
    "person": "a person",
}


def draw_html(
    procedure: Procedure,
    run: Result | Mapping[str, Any] | None = None,
    *,
    standing: str | None = None,
    name: str | None = None,
    above: Child = None,
    below: Child = None,
) -> str:
    """A procedure, and a run on it, as one page.

    The page holds its style and its drawings and loads nothing; it has no script.

    Args:
        procedure: what is drawn.
        run: the result of a run of it, or what `Result.to_dict` gave; None draws the procedure alone.
        standing: where the run stands, such as ``running``, if the result is only what is known of it so far.
        name: of the run; it then heads the page, and stands first in its title.
        above: what stands above it on the page; text is escaped.
        below: likewise.

    Raises:
        ConfigError: the result is none, or one of another procedure.
    """
    check_procedure(procedure)
    return _Page(procedure, None if run is None else read_run(procedure, run, standing)).whole(name, above, below)


class _Page:
    def __init__(self, procedure: Procedure, run: RunFacts | None) -> None:
        self._procedure = procedure
        self._run = run
        self._performers: dict[str, None] = {}
        self._room = _UNFOLDED

    def whole(self, name: str | None, above: Child, below: Child) -> str:
        procedure, run = self._procedure, self._run
        flow = self._flow(procedure.body, "", lazy=procedure.look_back is not None)
        title = shorten(procedure.name, 200)
        named = title if name is None else f"{shorten(name, 200)}: {title}"
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("title", named if run is None else f"{named}: {run.status}"),
            tag("style", Html(CSS)),
        )
        answer = "" if run is None or run.answer is None else f" = {run.answer}"
        body = tag(
            "body",
            symbols(),
            tag("a", "Skip to the steps", href="#steps", class_="skip"),
            tag("header", above, tag("h1", named), self._outcome()),
            tag(
                "main",
                self._declared(procedure, run),
                tag("h2", "Steps", id="steps"),
                self._legend(),
                flow,
                tag(
                    "ol",
                    tag("li", sign("answer"), tag("p", "answer: ", tag("code", procedure.answer, answer))),
                    class_="flow head",
                ),
                below,
            ),
            class_="plain" if run is None else None,
        )
        return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"

    def _outcome(self) -> Child:
        run = self._run
        if run is None:
            return None
        kind = run.kind
        mark = {"good": "proved", "weak": "weak", "bad": "stopped"}[kind]
        words = f"{run.status.upper()}: {outcome(run, self._procedure)}"
        notes = [tag("p", note, class_="weak") for note in run.notes]
        if not run.whole:
            kept = f"The result keeps the last {run.kept:,} of {run.completed:,} steps; the others are not drawn."
            notes.append(tag("p", kept, class_="weak"))
        stands = "stands" if run.status in GOING_ON else "stopped"
        place = None if run.stop is None else tag("p", tag("a", f"Go to where it {stands}", href="#stop"))
        return [
            tag("p", sign(mark), tag("span", words), class_=f"outcome {kind}"),
            tag("p", run.cost, class_="quiet"),
            notes,
            place,
        ]

    def _declared(self, procedure: Procedure, run: RunFacts | None = None) -> Child:
        entries: list[Html] = []
        for declared in procedure.inputs:
            entries += [tag("dt", "input"), tag("dd", tag("code", describe_input(declared, run)))]
        for record in procedure.records:
            fields = ", ".join(f"{name}: {kind}" for name, kind in record.fields)
            entries += [tag("dt", "record"), tag("dd", tag("code", f"{record.name}: {fields}"))]
        for table in procedure.tables.values():
            columns = [tag("th", f"{name}: {kind}", scope="col") for name, kind in table.keys]
            columns.append(tag("th", str(table.value), scope="col"))
            rows = [tag("tr", [tag("td", shorten(cell, 80)) for cell in row]) for row in table.rows[:_ROWS]]
            count = len(table.rows)
            more = tag("p", f"{count - _ROWS:,} more rows are left out", class_="note") if count > _ROWS else None
            title = f"{table.name}: {count:,} row{'' if count == 1 else 's'}"
            made = tag("table", tag("thead", tag("tr", columns)), tag("tbody", rows))
            unfolded = tag("details", tag("summary", tag("code", title)), made, more, open="" if count <= 8 else None)
            entries += [tag("dt", "table"), tag("dd", unfolded)]
        return tag("dl", entries) if entries else None

    def _legend(self) -> Child:
        entries = [tag("li", sign(name), _PERFORMERS[name]) for name in _PERFORMERS if name in self._performers]
        return tag("ul", entries, class_="legend", aria_label="Who performs a step") if entries else None

    def _flow(self, body: Body, block: str, *, lazy: bool = False) -> Html:
        parts: list[Html] = []
        for each in group(body, block, self._run, lazy=lazy):
            if each.folded:
                parts += self._folded(body, each.first, each.end, block)
            else:
                parts.append(self._statement(body[each.first], f"{block}{each.first}"))
        return tag("ol", parts, class_="flow")

    def _folded(self, body: Body, first: int, end: int, block: str) -> Iterator[Html]:
        """A row of steps in blocks that can be unfolded, as long as the page has room."""
        size = _BLOCK if self._room > 0 else end - first
        start = first
        while start < end:
            stop = min(start + size, end)
            run, total = self._run, SiteFacts()
            for at in range(start, stop):
                if run is not None and (facts := run.sites.get(f"{block}{at}")) is not None:
                    total.merge(facts)
            words = f"{stop - start:,} more steps, {body[start].id} to {body[stop - 1].id}"  # type: ignore[union-attr]
            if run is not None:
                words += f": {summary_of(total) or 'not reached'}"
            if self._room > 0:
                self._room -= stop - start
                inner = [self._statement(body[at], f"{block}{at}") for at in range(start, stop)]
                unfolded = tag("details", tag("summary", words), tag("ol", inner, class_="flow"))
            else:
                unfolded = tag("p", words, class_="quiet")
            yield tag("li", sign("fold"), unfolded)
            start = stop
            size = _BLOCK if self._room > 0 else end - start

    def _statement(self, statement: Statement, site: str) -> Html:
        match statement:
            case Step():
                return self._step(statement, site)
            case If():
                return self._choice(statement, site)
            case ForEach(_, _, body) | Repeat(_, body):
                run = self._run
                rounds = None if run is None else run.ways.get(site, 0)
                badge = None if rounds is None else f"{rounds:,} round{'' if rounds == 1 else 's'}"
                return self._inside("loop", heading(statement), badge, self._flow(body, f"{site}."), site, rounds)
            case ProcedureCall(id, called):
                carried = None if self._run is None else self._run.ways.get(site, 0)
                inner = [
                    self._declared(called),
                    self._flow(called.body, f"{site}."),
                    tag("p", tag("code", f"{id} = {called.answer}"), class_="head"),
                ]
                badge = "not reached" if carried == 0 else None
                return self._inside("call", heading(statement), badge, inner, site, carried)

    def _inside(self, icon: str, words: str, badge: str | None, inner: Child, site: str, entered: int | None) -> Html:
        head = tag("p", tag("code", words), _badge(badge), class_="head")
        untaken = " untaken" if entered == 0 else ""
        return tag(
            "li",
            sign(icon),
            head,
            self._stop(site),
            tag("div", inner, class_=f"inside{untaken}"),
            class_=untaken.strip() or None,
        )

    def _choice(self, statement: If, site: str) -> Html:
        run = self._run
        ways = [0 if run is None else run.ways.get(f"{site}.{at}", 0) for at in range(len(statement.branches) + 1)]
        passes = sum(ways)
        drawn: list[Html] = []
        for number, (words, body) in enumerate(branches_of(statement)):
            if not body and not ways[number]:  # there is no `else`
                continue
            badge = None if run is None else taken_text(ways[number], passes)
            head = tag("p", tag("code", words), _badge(badge), class_="head")
            inner = self._flow(body, f"{site}.{number}.") if body else tag("p", "nothing to do", class_="quiet")
            untaken = run is not None and not ways[number]
            drawn.append(tag("section", head, inner, class_=f"branch{' untaken' if untaken else ''}"))
        reached = run is None or passes > 0
        # Side by side there is room for plain steps only.
        flat = all(isinstance(each, Step) for _, body in branches_of(statement) for each in body)
        return tag(
            "li",
            sign("choice", "a choice"),
            tag("div", drawn, class_="branches" if flat else "branches stacked"),
            self._stop(site),
            class_=None if reached else "ahead",
        )

    def _step(self, step: Step, site: str) -> Html:
        self._performers[step.performer] = None
        run = self._run
        facts = None if run is None else run.sites.get(site)
        notes = [tag("span", check, class_="note") for check in checks_of(step)]
        parts: list[Child] = [tag("span", step_text(step), class_="says"), notes]
        if run is not None:
            if (approval := run.sites.get(f"{site}.approval")) is not None:
                parts.append(_completed(approval, step, "approval: "))
            if facts is not None:
                parts.append(_completed(facts, step))
        stopped = self._stop(site)
        ahead = run is not None and facts is None and stopped is None
        title = f"by {_PERFORMERS[step.performer]}"
        return tag(
            "li",
            sign(step.performer, title),
            tag("div", parts, class_="card"),
            stopped,
            class_="ahead" if ahead else None,
        )

    def _stop(self, site: str) -> Html | None:
        run = self._run
        if run is None or run.stop is None or run.stop.partition(".approval")[0] != site:
            return None
        head, reason = halt_text(run)
        icon = "stopped" if run.kind == "bad" else "weak"
        refused = [tag("li", text) for text in in_words(run.refused)]
        replies = tag("details", tag("summary", "The last replies"), tag("ul", refused)) if refused else None
        return tag(
            "div", sign(icon), tag("b", head), reason, replies, id="stop", class_=f"stop {run.kind}", tabindex="-1"
        )


def _badge(text: str | None) -> Html | None:
    return None if text is None else tag("span", text, class_="badge")


def _completed(facts: SiteFacts, step: Step, words: str = "") -> Html:
    """What became of a step: its value, or how many values and some of them."""
    good = facts.weakest == "proved" and not facts.retried
    kind = "good" if good else "weak"
    icon = sign(facts.weakest if facts.weakest in ("proved", "unverified") else "weak")
    if facts.count == 1:
        (done,) = facts.examples
        place = f"{done.path} = " if done.path not in (step.id, "") and not words else words or "= "
        line: Child = [
            icon,
            place,
            tag("b", tag("code", shown_value(done.value))),
            f"  {how_accepted(done, step.performer)}",
        ]
        more = _reasons(done)
        if more is None:
            return tag("div", line, class_=f"result {kind}")
        return tag("details", tag("summary", line), more, class_=f"result {kind}")
    listed = [*facts.examples, *facts.notable]
    entries = [
        tag(
            "li",
            f"{done.path} = ",
            tag("b", tag("code", shown_value(done.value))),
            f"  {how_accepted(done, step.performer)}",
            _reasons(done),
        )
        for done in listed
    ]
    if facts.count > len(listed):
        entries.append(tag("li", f"{facts.count - len(listed):,} more"))
    summary = tag("summary", icon, f"{words}{facts.count:,} times: {summary_of(facts)}")
    return tag("details", summary, tag("ul", entries), class_=f"result {kind}")


def _reasons(view: StepView) -> Html | None:
    if not view.deviations:
        return None
    return tag("ul", [tag("li", words) for words in in_words(view.deviations)])
