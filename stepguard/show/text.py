"""A procedure, and a run on it, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rich.cells import cell_len

from stepguard.core.arguments import check_count
from stepguard.core.verdicts import shorten
from stepguard.procedure.procedure import Procedure, check_procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.procedure.steps import Step
from stepguard.results import Attempt, Result
from stepguard.results.view import StepView
from stepguard.show.facts import RunFacts, SiteFacts, in_words, read_run, shown_value
from stepguard.show.words import (
    branches_of,
    checks_of,
    describe_input,
    describe_table,
    group,
    halt_text,
    heading,
    how_accepted,
    outcome,
    step_text,
    summary_of,
    taken_text,
)

_LEAST: Final = 40
_MOST: Final = 2_000
"""Characters of one part of the picture."""
_ROWS: Final = 8
"""Rows of a table that are shown."""


class TextLine(NamedTuple):
    """A line and what it is: head, step, control, good, weak, bad, quiet, or plain."""

    text: str
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class _Glyphs:
    rail: str
    untaken: str
    step: str
    choice: str
    loop: str
    call: str
    end: str
    proved: str
    weak: str
    stopped: str
    none: str


_UNICODE: Final = _Glyphs("│ ", "┊ ", "●", "◇", "↻", "▣", "■", "✓", "~", "✗", "·")
_ASCII: Final = _Glyphs("| ", ": ", "o", "<>", "@", "#", "=", "+", "~", "X", "-")
GLYPHS: Final = "│┊●◇↻▣■✓✗·"
"""The characters beside ASCII that a picture is drawn with."""


def draw_text(
    procedure: Procedure, run: Result | Mapping[str, Any] | None = None, *, width: int = 80, ascii_only: bool = False
) -> str:
    """A procedure, and a run on it, as text.

    Args:
        procedure: what is drawn.
        run: the result of a run of it, or what `Result.to_dict` gave; None draws the procedure alone.
        width: characters of a line, 40 at least.
        ascii_only: draw with ASCII alone, and write other characters of names and values as escapes.

    Raises:
        ConfigError: the result is none, or one of another procedure; the width is too small.
    """
    lines = draw_lines(procedure, run, width=width, ascii_only=ascii_only)
    return "".join(f"{line.text}\n" for line in lines)


def draw_lines(
    procedure: Procedure,
    run: Result | Mapping[str, Any] | None = None,
    *,
    standing: str | None = None,
    width: int = 80,
    ascii_only: bool = False,
) -> Iterator[TextLine]:
    """The lines of `draw_text`, each with what it is; `standing` as for `draw_html`.

    Raises ConfigError: as for that.
    """
    check_procedure(procedure)
    check_count(width, "width", least=_LEAST)
    facts = None if run is None else read_run(procedure, run, standing)
    signs = _ASCII if ascii_only else _UNICODE
    return _Drawing(procedure, facts, width, signs, ascii_only=ascii_only).whole()


class _Drawing:
    def __init__(
        self, procedure: Procedure, run: RunFacts | None, width: int, signs: _Glyphs, *, ascii_only: bool
    ) -> None:
        self._procedure = procedure
        self._run = run
        self._width = width
        self._signs = signs
        self._ascii = ascii_only

    def whole(self) -> Iterator[TextLine]:
        """Every line."""
        procedure, run = self._procedure, self._run
        yield from self._lines("", "", shorten(procedure.name, 200), "head")
        if run is not None:
            yield from self._lines("", "  ", f"{run.status.upper()}: {outcome(run, procedure)}", run.kind)
            yield from self._lines("", "  ", run.cost, "quiet")
            for note in run.notes:
                yield from self._lines("", "  ", note, "weak")
            if not run.whole:
                kept = f"the result keeps the last {run.kept:,} of {run.completed:,} steps; the others are not drawn"
                yield from self._lines("", "  ", kept, "weak")
        yield from self._declared(procedure, "", run)
        yield TextLine(self._signs.rail.rstrip())
        yield from self._body(procedure.body, "", "", entered=True, lazy=procedure.look_back is not None)
        yield TextLine(self._signs.rail.rstrip())
        answer = "" if run is None or run.answer is None else f" = {run.answer}"
        yield from self._lines(f"{self._signs.end} ", "    ", f"answer: {procedure.answer}{answer}", "head")

    def _declared(self, procedure: Procedure, rail: str, run: RunFacts | None = None) -> Iterator[TextLine]:
        for declared in procedure.inputs:
            yield from self._lines(f"{rail}  input  ", "    ", describe_input(declared, run))
        for record in procedure.records:
            fields = ", ".join(f"{name}: {kind}" for name, kind in record.fields)
            yield from self._lines(f"{rail}  record ", "    ", f"{record.name}: {fields}")
        for table in procedure.tables.values():
            yield from self._lines(f"{rail}  table  ", "    ", describe_table(table))
            for row in table.rows[:_ROWS]:
                yield from self._lines(f"{rail}           ", "  ", f"{', '.join(row[:-1])}: {row[-1]}", "quiet")
            if len(table.rows) > _ROWS:
                yield TextLine(f"{rail}           ... {len(table.rows) - _ROWS:,} more rows", "quiet")

    def _body(self, body: Body, block: str, rail: str, *, entered: bool, lazy: bool = False) -> Iterator[TextLine]:
        for each in group(body, block, self._run, lazy=lazy):
            if each.folded:
                yield self._folded(each.first, each.end, block, rail)
                continue
            site = f"{block}{each.first}"
            yield from self._statement(body[each.first], site, rail, entered=entered)

    def _folded(self, first: int, end: int, block: str, rail: str) -> TextLine:
        text = f"{end - first:,} more steps"
        if self._run is not None:
            total = SiteFacts()
            for at in range(first, end):
                if (facts := self._run.sites.get(f"{block}{at}")) is not None:
                    total.merge(facts)
            text += f": {summary_of(total) or 'not reached'}"
        return TextLine(f"{rail}{self._signs.none} {text}", "quiet")

    def _statement(self, statement: Statement, site: str, rail: str, *, entered: bool) -> Iterator[TextLine]:
        signs, run = self._signs, self._run
        match statement:
            case Step():
                yield from self._step(statement, site, rail, entered=entered)
            case If():
                yield from self._choice(statement, site, rail)
            case ForEach(_, _, body) | Repeat(_, body):
                rounds = None if run is None else run.ways.get(site, 0)
                tail = "" if rounds is None else f"  ({rounds:,} round{'' if rounds == 1 else 's'})"
                yield from self._lines(f"{rail}{signs.loop} ", "  ", f"{heading(statement)}{tail}", "control")
                yield from self._stop(site, f"{rail}{signs.rail}")
                inner = signs.rail if rounds != 0 else signs.untaken
                yield from self._body(body, f"{site}.", f"{rail}{inner}", entered=rounds != 0)
            case ProcedureCall():
                called = statement.procedure
                carried = run is None or run.ways.get(site, 0) > 0
                yield from self._lines(f"{rail}{signs.call} ", "  ", heading(statement), "control")
                yield from self._stop(site, f"{rail}{signs.rail}")
                inner = f"{rail}{signs.rail if carried else signs.untaken}"
                yield from self._declared(called, inner)
                yield from self._body(called.body, f"{site}.", inner, entered=carried)
                yield from self._lines(f"{inner}{signs.end} ", "  ", f"{statement.id} = {called.answer}", "control")

    def _choice(self, statement: If, site: str, rail: str) -> Iterator[TextLine]:
        signs, run = self._signs, self._run
        passes = 0
        if run is not None:
            passes = sum(run.ways.get(f"{site}.{number}", 0) for number in range(len(statement.branches) + 1))
        for number, (words, body) in enumerate(branches_of(statement)):
            taken = 0 if run is None else run.ways.get(f"{site}.{number}", 0)
            if not body and (run is None or not taken):  # there is no `else`
                continue
            tail, kind = "", "control"
            if run is not None:
                tail = f"  ({taken_text(taken, passes)})"
                kind = "control" if taken else "quiet"
            sign = signs.choice if not number else signs.choice.replace("◇", "├").replace("<>", "+-")
            yield from self._lines(f"{rail}{sign} ", "  ", f"{words}{tail}", kind)
            way = run is None or taken > 0
            inner = f"{rail}{signs.rail if way else signs.untaken}"
            if not body:
                yield TextLine(f"{inner}{signs.none} nothing to do", "quiet")
            yield from self._body(body, f"{site}.{number}.", inner, entered=way)
        yield from self._stop(site, rail)

    def _step(self, step: Step, site: str, rail: str, *, entered: bool) -> Iterator[TextLine]:
        facts = None if self._run is None else self._run.sites.get(site)
        kind = "step" if self._run is None or facts is not None or self._stopped(site) else "quiet"
        yield from self._lines(f"{rail}{self._signs.step} ", "    ", step_text(step), kind)
        below = f"{rail}{self._signs.rail if entered else self._signs.untaken}  "
        for check in checks_of(step):
            yield from self._lines(below, "  ", check, "quiet")
        if self._run is None:
            return
        approval = self._run.sites.get(f"{site}.approval")
        if approval is not None:
            yield from self._completed(approval, below, step, "approval: ")
        if facts is not None:
            yield from self._completed(facts, below, step)
        yield from self._stop(site, below)

    def _stopped(self, site: str) -> bool:
        return self._run is not None and self._run.stop is not None and self._run.stop.partition(".approval")[0] == site

    def _completed(self, facts: SiteFacts, below: str, step: Step, words: str = "") -> Iterator[TextLine]:
        if facts.count == 1:
            (done,) = facts.examples
            place = "" if words or done.path == step.id else f"{done.path} = "
            yield from self._value(done, below, f"{words}{place}{shown_value(done.value)}", step)
            return
        sign = self._signs.proved if facts.weakest == "proved" else self._signs.weak
        kind = "good" if facts.weakest == "proved" and not facts.retried else "weak"
        yield from self._lines(f"{below}{sign} ", "  ", f"{words}{facts.count:,} times: {summary_of(facts)}", kind)
        shown = facts.examples[:3] + facts.unlike
        for done in shown:
            yield from self._value(done, f"{below}  ", f"{done.path} = {shown_value(done.value)}", step)
        if facts.count > len(shown):
            yield TextLine(f"{below}    ... {facts.count - len(shown):,} more", "quiet")

    def _value(self, view: StepView, below: str, text: str, step: Step) -> Iterator[TextLine]:
        proved = view.support == "proved"
        sign = self._signs.proved if proved else self._signs.weak
        kind = "good" if proved and not view.deviations else "weak"
        yield from self._lines(f"{below}{sign} ", "  ", f"{text}  ({how_accepted(view, step.performer)})", kind)

    def _stop(self, site: str, below: str) -> Iterator[TextLine]:
        run = self._run
        if run is None or not self._stopped(site):
            return
        sign = self._signs.stopped if run.kind == "bad" else self._signs.weak
        yield from self._lines(f"{below}{sign} ", "  ", "".join(halt_text(run)), run.kind)
        for words in in_words(run.refused):
            yield from self._lines(f"{below}    ", "  ", words, "bad")

    def _lines(self, head: str, indent: str, text: str, kind: str = "plain") -> Iterator[TextLine]:
        """A text behind a head, in as many lines as it takes; the rails go on below."""
        text = shorten(text, _MOST)  # nothing in it commands the terminal
        if self._ascii:
            text = text.encode("ascii", "backslashreplace").decode("ascii")
        # What is not a rail is blank in the lines below.
        rails = "".join(char if char in "│┊|:" else " " for char in head) if head.strip() else head
        room = max(self._width - cell_len(rails) - len(indent), 16)
        first = True
        for line in _wrapped(text, room):
            yield TextLine(f"{head if first else rails + indent}{line}".rstrip(), kind)
            first = False


def _wrapped(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most `width` cells, broken at blanks, or inside of words that are longer."""
    line: list[str] = []
    used = 0
    for word in text.split(" "):
        size = cell_len(word)
        if line and used + 1 + size > width:
            yield " ".join(line)
            line, used = [], 0
        while size > width:
            at = _fitting(word, width)
            yield word[:at]
            word, size = word[at:], cell_len(word[at:])
        used += size + (1 if line else 0)
        line.append(word)
    yield " ".join(line)


def _fitting(word: str, width: int) -> int:
    used = 0
    for at, char in enumerate(word):
        used += cell_len(char)
        if used > width:
            return max(at, 1)
    return len(word)


_KINDS: Final = {"accepted": "good", "partly": "weak", "draft": "quiet"}


def call_lines(attempts: Iterable[Attempt]) -> Iterator[TextLine]:
    for each in attempts:
        asked = shorten(", ".join(map(str, each.steps)), 200)
        whom = "" if each.backend is None else f" of {shorten(each.backend)}"
        head = f"call {each.number} ({each.rung}){whom}: {asked}: {each.outcome}, {each.usage.tokens:,} tokens"
        yield TextLine(head, _KINDS.get(each.outcome, "bad"))
        for deviation in each.deviations:
            yield TextLine(f"  {deviation.kind}: {shorten(deviation.reason, 300)}", "weak")
        if each.error is not None:
            yield TextLine(f"  {shorten(each.error, 300)}", "weak")
        for name, text in kept_texts(each):
            yield TextLine(f"  {name}:", "quiet")
            for line in text.splitlines():  # a text of a model's must not command the terminal
                yield TextLine(f"    {shorten(line, max(1, len(line) * 10))}")


def kept_texts(attempt: Attempt) -> Iterator[tuple[str, str]]:
    """What is kept of the messages of a call and of its reply, each with its name."""
    yield from attempt.prompt or ()
    if attempt.text is not None:
        yield "reply", attempt.text
