"""The audit: entries, answers and corrections of a transcript, judged against the procedure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stepguard.auditing.answers import Stated, find_answers, without_answers
from stepguard.auditing.corrections import taken_back
from stepguard.auditing.entries import read_entries
from stepguard.auditing.findings import FinalAnswer, Finding, StepAudit
from stepguard.auditing.footnotes import without_footnotes
from stepguard.auditing.labels import Labels
from stepguard.auditing.layouts import with_cells
from stepguard.auditing.names import Entry, Names, joined, unread_line
from stepguard.auditing.outcome import Audit
from stepguard.auditing.states import Claimed, Judge, Ruling, claims_of, says_something, telling, value_after
from stepguard.auditing.traces import Trace, read_trace
from stepguard.auditing.wide_tables import read_wide_tables
from stepguard.core.verdicts import shorten
from stepguard.language.lines import Lines
from stepguard.language.prose.struck_text import without_struck
from stepguard.language.typeset import plain
from stepguard.language.value_types import NUMBER, ValueType
from stepguard.language.values import Value, show_value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step


class Auditor:
    """The audit of one transcript of a procedure that is a list of plain steps."""

    def __init__(self, procedure: Procedure, inputs: dict[str, Value], text: str, check_timeout: float | None) -> None:
        self.procedure = procedure
        self.steps = list(procedure.steps)
        self.names = self._names(inputs)
        self.inputs = inputs
        self.lines = Lines(text)
        self.judges: dict[str, Judge] = {}
        self.timeout = check_timeout
        self.findings: list[Finding] = []
        self.unread: set[str] = set()
        self.text = text
        written = without_struck(self._written(text))  # what is struck out is no claim
        given = " ".join(map(show_value, inputs.values()))
        self.read = without_footnotes(written, self.names.understanding, given)
        self.body = plain(with_cells(self.read, self.names))
        self.trace: Trace | None = read_trace(self.read, self.names)
        if self.trace is not None:
            parts, at = [], 0
            for start, end in self.trace.spans:
                parts += [self.body[at:start], " " * (end - start)]
                at = end
            self.body = "".join((*parts, self.body[at:]))
        self.entries = self._entries()

    def _names(self, inputs: Iterable[str]) -> Names:
        return Names(self.steps, inputs, words=(*self.procedure.words, *self.procedure.names))

    def _written(self, text: str) -> str:
        """The text that is read, of the same length."""
        return text

    def _entries(self) -> list[Entry]:
        self.body, columns = read_wide_tables(self.body, self.names, self._labels())
        around = without_answers(self.read, self.body)
        entries = read_entries(self.body, self.names, around=around, read=columns)
        told = () if self.trace is None else self.trace.entries
        return sorted([*entries, *told], key=lambda entry: entry.start)

    def _labels(self) -> Labels | None:
        """The labels of rounds, None where the procedure has none."""
        return None

    # The whole

    def audit(self) -> Audit:
        step_claims, extra = self._sorted_out()
        order = self._wrong_order(step_claims)
        claimed = self._claimed(step_claims)
        steps = self._judged(step_claims, claimed)
        self._extras(extra)
        self.findings += order
        claims = [(entry.start, self.steps[index].id) for index, each in enumerate(step_claims) for entry in each]
        self.findings += taken_back(self.text, self.body, self.names, self.entries, claims, self.findings)
        kind = self._answer_type()
        stated = self._answers(kind, step_claims)
        truth = self._truth()
        self._premature(stated, step_claims)
        self._truncated(step_claims)
        answer = stated[-1] if stated else None
        right = lenient = None
        answer_asked = self._asks()
        own = self._own_answer(claimed)
        if truth is not None:
            lenient = (answer.value if answer is not None else own) == truth
            right = (answer.strict and lenient) if answer is not None else lenient and not answer_asked
            if answer is not None and answer.value is not None and answer.value != truth:
                why = f"the answer is {show_value(truth)}, not {show_value(answer.value)}"
                if own is not None and own == answer.value:
                    why += f" (it is what the transcript says {self.procedure.answer} is)"
                self._find("wrong_answer", None, (answer.start, answer.end), why)
        if answer is not None and answer.value is None:
            self._find(
                "missing_answer", None, (answer.start, answer.end), f"no value stands there: {shorten(answer.text)!r}"
            )
        if answer is None and answer_asked:
            self.findings.append(Finding("missing_answer", None, None, "no final answer is marked"))
        self.findings.sort(key=lambda each: (each.place is None, each.place.start if each.place else 0))
        final = None
        if answer is not None:
            place = self.lines.place(answer.start, answer.end)
            final = FinalAnswer(answer.text, place, answer.value, answer.strict)
        return Audit(self.procedure.name, tuple(steps), tuple(self.findings), final, truth, right, lenient)

    def _asks(self) -> bool:
        """Whether a final answer has to be marked."""
        return self.trace is None or not self.trace.asks_no_answer

    def _truth(self) -> Value | None:
        """The right answer, None where none can be computed."""
        return self.true.get(self.procedure.answer)

    def _own_answer(self, claimed: Claimed) -> Value | None:
        """What the transcript says that the variable of the answer is."""
        return claimed.before(self.procedure.answer, len(self.text) + 1)

    def _find(self, kind: str, step: str | None, span: tuple[int, int] | None, reason: str) -> None:
        place = None if span is None else self.lines.place(*span)
        self.findings.append(Finding(kind, step, place, reason))  # type: ignore[arg-type]

    def _judge(self, step: Step) -> Judge:
        judge = self.judges.get(step.id)
        if judge is None or judge.step is not step:
            judge = self.judges[step.id] = Judge(step, self.timeout)
        return judge

    # Which entry belongs to which step

    def _sorted_out(self) -> tuple[list[list[Entry]], list[Entry]]:
        """The entries of every step, in the order of the text, and those of no step."""
        indices: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            indices.setdefault(step.id, []).append(index)
        step_claims: list[list[Entry]] = [[] for _ in self.steps]
        used: dict[str, int] = {}
        extra: list[Entry] = []
        for entry in self.entries:
            if not entry.known:
                extra.append(entry)
                continue
            places = indices.get(entry.name)
            if places is None:
                continue
            if len(places) == 1:
                step_claims[places[0]].append(entry)
            elif entry.value is not None:  # a name that is set again and again, in a lazy procedure
                at = used.get(entry.name, 0)
                used[entry.name] = at + 1
                step_claims[places[min(at, len(places) - 1)]].append(entry)
        return [joined(step, each) for step, each in zip(self.steps, step_claims, strict=True)], extra

    def _claimed(self, step_claims: list[list[Entry]]) -> Claimed:
        return claims_of(zip(self.steps, map(self._judge, self.steps), step_claims, strict=True))

    # Verdicts

    def _judged(self, step_claims: list[list[Entry]], claimed: Claimed) -> list[StepAudit]:
        self.true: dict[str, Value] = dict(self.inputs)
        steps: list[StepAudit] = []
        speechless = not any(entry.known for entry in self.entries) and says_something(self.body)
        for index, (step, entries) in enumerate(zip(self.steps, step_claims, strict=True)):
            judge = self._judge(step)
            expected = judge.expected(self.true)
            verdict = self._step(step, index, entries, judge, claimed, expected, speechless=speechless)
            steps.append(verdict)
            truth = value_after(verdict, entries, judge, expected)
            if truth is not None:
                self.true[step.id] = truth
            else:
                self.true.pop(step.id, None)
        return steps

    def _step(
        self,
        step: Step,
        index: int,
        entries: list[Entry],
        judge: Judge,
        claimed: Claimed,
        expected: Value | None,
        *,
        speechless: bool,
    ) -> StepAudit:
        base = StepAudit(step.id, index, "missing", expected=None if expected is None else step.type.write(expected))
        if not entries:
            if speechless:
                return replace(base, verdict="not_judged", reason="the transcript names no step")
            if line := unread_line(self.read, step.id, self.entries):
                self.unread.add(step.id)
                return replace(base, verdict="not_judged", reason=f"no claim can be read in {shorten(line)!r}")
            reason = "the transcript does not carry it out"
            self._find("missing_step", step.id, None, reason)
            return replace(base, kind="missing_step", reason=reason)
        self._repeated(step, entries, judge)
        entry = telling(entries, judge)
        place = self.lines.place(entry.start, entry.end)
        base = replace(base, place=place, claimed=entry.value, verdict="not_judged")
        if judge.read(entry) is None:
            self.unread.add(step.id)
            shown = entry.value or entry.unread
            unread = f"no value of type {step.type} can be read from {shorten(shown)!r}"
            reason = entry.strange or (unread if shown else "no value is given")
            return replace(base, reason=reason)
        ruling = judge.judge(entry, self.true)
        if ruling.passed:
            return replace(base, verdict="right", reason=ruling.reason)
        if ruling.passed is None:
            return replace(base, reason=ruling.reason)
        # A slip is counted where it is made: what follows from it by the transcript's own values is inherited.
        own, by_own = self._by_own(step, judge, entry, claimed)
        if by_own.passed:
            # Faithful to an earlier slip that does not show in the value, such as one in a comparison.
            if ruling.kind in ("unfaithful_work", "wrong_operand") and judge.read(entry) == expected:
                return replace(base, verdict="right", reason="right, by the transcript's own earlier values")
            wrong = [name for name, value in own.items() if value != self.true.get(name)]
            rests = ", ".join(f"{name} = {show_value(own[name])}" for name in wrong) or "way"
            reason = f"it follows from the transcript's own {rests}; {base.expected} would be right"
            self._find("inherited", step.id, (entry.start, entry.end), reason)
            return replace(base, verdict="wrong", kind="inherited", reason=reason)
        if by_own.passed is None:
            by_own = ruling
        open_name = next((name for name in step.reads if name in self.unread), None)
        if open_name is not None and (ruling.kind == "wrong_operand" or not entry.work):
            return replace(
                base, reason=f"it rests on {open_name}, of which the transcript gives no value that can be read"
            )
        # Where earlier values are wrong, only the ruling by them says what is wrong in the step itself.
        worse = by_own if ruling.kind is None or own != {n: self.true.get(n) for n in step.reads} else ruling
        self._find(worse.kind or "wrong_value", step.id, (entry.start, entry.end), worse.reason)
        return replace(base, verdict="wrong", kind=worse.kind or "wrong_value", reason=worse.reason)  # type: ignore[arg-type]

    def _by_own(self, step: Step, judge: Judge, entry: Entry, claimed: Claimed) -> tuple[dict[str, Value], Ruling]:
        """The transcript's own values that a step rests on, and the ruling by them."""
        own = {name: value for name in step.reads if (value := self._own(name, entry, claimed)) is not None}
        return own, judge.judge(entry, own)

    def _own(self, name: str, entry: Entry, claimed: Claimed) -> Value | None:
        claim = claimed.before(name, entry.start)
        return claim if claim is not None else self.true.get(name)

    def _repeated(self, step: Step, entries: list[Entry], judge: Judge) -> None:
        """Findings about a step that is carried out more than once."""
        last: Value | None = None
        for number, entry in enumerate(entries):
            value = judge.read(entry)
            if value is None:
                continue
            if last is not None and number:
                span = entry.start, entry.end
                if value != last:
                    shown = f"{show_value(last)} and then {show_value(value)}"
                    self._find("self_correction", step.id, span, f"it is given two values: {shown}")
                elif entry.work:
                    self._find("duplicate_step", step.id, span, "it is carried out again, with the same value")
            last = value

    def _wrong_order(self, step_claims: list[list[Entry]]) -> list[Finding]:
        firsts = sorted((entries[0].start, index) for index, entries in enumerate(step_claims) if entries)
        # Read from the end: a step stands too early where an earlier one comes behind it.
        findings: list[Finding] = []
        highest = -1
        for start, index in firsts:
            if index < highest:
                step = self.steps[index].id
                place = self.lines.place(start, step_claims[index][0].end)
                reason = f"it stands behind {self.steps[highest].id}, which comes after it"
                findings.append(Finding("wrong_order", step, place, reason))
            highest = max(highest, index)
        return findings

    def _extras(self, extra: list[Entry]) -> None:
        seen: set[str] = set()
        for entry in extra:
            if entry.name not in seen and (entry.value is not None or entry.work):
                seen.add(entry.name)
                name = shorten(entry.name)
                self._find("extra_step", name, (entry.start, entry.end), "the procedure has no such step")

    # The answer

    def _answer_type(self) -> ValueType:
        for step in self.steps:
            if step.id == self.procedure.answer:
                return step.type
        return next((each.type for each in self.procedure.inputs if each.name == self.procedure.answer), NUMBER)

    def _answers(self, kind: ValueType, step_claims: list[list[Entry]]) -> list[Stated]:
        """The answers that can be read, and the last one even if it cannot: an earlier one is not what was meant."""
        given = {name: show_value(value) for name, value in self.inputs.items()}
        answers = find_answers(self.read, self.body, self.names, kind, self.procedure.answer, given)
        if self.trace is not None:
            answers = sorted([*answers, *self.trace.answers(kind)], key=lambda each: each.start)
        steps_end = max((entry.start for each in step_claims for entry in each), default=-1)
        answers = [each for each in answers if each.value is not None or (each is answers[-1] and each.end > steps_end)]
        previous: Value | None = None
        for each in answers:
            if previous is not None and each.value is not None and each.value != previous:
                self._find("self_correction", None, (each.start, each.end), "another final answer is given before")
            previous = each.value if each.value is not None else previous
        return answers

    def _premature(self, stated: list[Stated], step_claims: list[list[Entry]]) -> None:
        if not stated:
            return
        first = stated[0]
        done = {self.steps[index].id for index, each in enumerate(step_claims) if each and each[0].start < first.start}
        later = [self.steps[index].id for index, each in enumerate(step_claims) if each and each[0].start > first.start]
        answer = self.procedure.answer
        undone = answer not in done and answer not in self.inputs and any(step.id == answer for step in self.steps)
        speechless = not any(step_claims) and says_something(self.body[: first.start])
        if later or (undone and not speechless):
            what = later[0] if later else answer
            reason = f"a final answer is given before {what} is carried out"
            self._find("premature_answer", None, (first.start, first.end), reason)

    def _truncated(self, step_claims: list[list[Entry]]) -> None:
        if self.trace is not None and self.trace.cut:
            self._find("truncated", None, (len(self.text), len(self.text)), "the JSON is not closed")
            return
        text = self.body.rstrip()
        # A minus behind a word is a hyphen or a dash.
        if text.endswith(("=", "+", "*", "/", "(", " -")):
            last = max((entry.start for each in step_claims for entry in each), default=None)
            step = None
            if last is not None:
                step = next(
                    self.steps[index].id
                    for index, each in enumerate(step_claims)
                    for entry in each
                    if entry.start == last
                )
            self._find("truncated", step, (len(text) - 1, len(text)), "the transcript ends in the middle of a step")
