"""The audit of a procedure that branches, repeats, calls others or computes with more than numbers.

Two ways are taken through it: the right one, over the right values, and the one that the transcript's own values lead.
Every step of the right way gets a verdict; what the transcript carries out beyond it is an extra step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from stepguard.auditing.alignment import Alignment
from stepguard.auditing.answers import Stated
from stepguard.auditing.claim_groups import ClaimGroup, repeats
from stepguard.auditing.comparisons import false_comparisons
from stepguard.auditing.findings import Finding, StepAudit
from stepguard.auditing.judging import Auditor
from stepguard.auditing.labels import Labels
from stepguard.auditing.names import Entry, Names, joined
from stepguard.auditing.numberings import Numberings
from stepguard.auditing.occurrences import Places
from stepguard.auditing.outcome import Audit
from stepguard.auditing.states import Claimed, Judge, Ruling, claims_of, says_something, telling, value_after
from stepguard.auditing.ways import Key, Reached, Way, computed, judge_of, take
from stepguard.core.verdicts import shorten
from stepguard.errors import EvaluationError, ValueRefused
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.prose.struck_text import without_struck
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

_NO_WAY: Final = "the procedure does not come to it here"
_BESIDE: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,63})\b(?=[^\n]{0,40}[0-9])")
_HEADS: Final = re.compile(r"[,;\t]")
_CLAIMED: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,63})[\"'*`_]{0,3} {0,3}(?:[:=\u2192]|->|is\b|equals\b)")
_ALIAS: Final = re.compile(r"q[\u4e00-\u9fff]{2}")


class BranchingAuditor(Auditor):
    """The audit of one transcript of such a procedure."""

    def __init__(self, procedure: Procedure, inputs: dict[str, Value], text: str, timeout: float | None) -> None:
        self.places = Places(procedure)
        self.labels = Labels(text, self.places, procedure.names, inputs)
        super().__init__(procedure, inputs, text, timeout)
        self.own = Way({})
        self.right = Way({})
        self._own_steps: dict[Key, Reached] = {}
        self._judges_of: dict[tuple[bool, Key], tuple[Step, Judge]] = {}
        self._claims = Claimed()
        self._verdicts: list[StepAudit] = []

    def _names(self, inputs: Iterable[str]) -> Names:
        words = (*self.procedure.words, *self.procedure.names, *self.places.words, *self.labels.items)
        names = Names(self.places.steps.values(), inputs, numbered=False, words=words)
        for alias, (name, _) in self.labels.aliases.items():
            names.give(alias, name)
        return names

    def _written(self, text: str) -> str:
        del text
        return self.labels.text

    def _labels(self) -> Labels | None:
        return self.labels

    def audit(self) -> Audit:
        """The audit, with the steps under their places."""
        audit = super().audit()
        paths = {each.step.id: each.path for each in (*self.own.reached, *self.right.reached)}
        return replace(
            audit,
            steps=tuple(replace(step, step=paths.get(step.step, step.step)) for step in audit.steps),
            findings=tuple(
                replace(finding, step=paths.get(finding.step or "", finding.step)) for finding in audit.findings
            ),
        )

    # Which claim belongs to which step

    def _sorted_out(self) -> tuple[list[list[Entry]], list[Entry]]:
        entries = [replace(entry, unread=self._shown(entry.unread)) for entry in self.entries]
        extra = [entry for entry in entries if not entry.known and not entry.name.startswith("step ")]
        self._by_number = any(entry.name.startswith("step ") and entry.value is not None for entry in entries)
        opened = self.read.startswith  # what an object about a step says beside it stands inside of it
        spans = ((entry.start, entry.start if opened("{", entry.start) else entry.end) for entry in entries)
        numberings = Numberings(without_struck(self.text), spans, self.procedure.names)
        self.alignment = Alignment((entry for entry in entries if entry.known), self.labels, self.places, numberings)
        for group in self.alignment.groups:
            group.entries = joined(self.places.steps[group.name], group.entries)
        self.own = self.alignment.walk(
            lambda value: take(
                self.procedure,
                self.places,
                self.inputs,
                lambda reached, values: value(reached, computed(self._judge_at(reached, own=True), values)),
            ),
            lambda reached: self._judge_at(reached, own=True),
            lambda: self._go(self._claimed_at),
        )
        return self._along(), extra

    def _judge_at(self, reached: Reached, *, own: bool) -> Judge:
        source, judge = self._judges_of.get((own, reached.key), (None, None))
        if judge is None or source is not reached.step:
            judge = judge_of(reached.step, self.timeout)
            self._judges_of[own, reached.key] = reached.step, judge
        return judge

    def _along(self) -> list[list[Entry]]:
        """Judge the claims along the right way; gives those of every step on it."""
        self._own_steps = {each.key: each for each in self.own.reached}
        if any(group.surplus for group in self.alignment.groups):
            self.alignment.place_surplus(self._go(self._claimed_at))
        self._claims = self._all_claims()
        step_claims: list[list[Entry]] = []
        self.steps = []
        used: list[ClaimGroup] = []
        unplaced: set[str] = set()
        unread, loose = self._unread(), self.alignment.loose()
        speechless = not any(entry.known for entry in self.entries) and says_something(self.body)

        def value(reached: Reached, expected: Value | None) -> Value | None:
            entries = self.alignment.claims_at.get(reached.key, [])
            doubtful = next((name for name in reached.step.reads if name in unplaced), None)
            if reached.answers_call and not entries:
                unplaced.update({reached.step.id} if doubtful else ())
                return expected
            aside = None if entries else self.alignment.set_aside(reached)
            judge = self._judge_at(reached, own=False)
            why = ""
            if aside is not None:
                used.append(aside)
                why = aside.dropped
            elif not entries and (reached.name in unread or self._by_number or reached.name in loose):
                why = "it is named, or a line is numbered, where no claim about it can be read"
            index = len(self.steps)
            self.steps.append(reached.step)
            step_claims.append(entries)
            if why:
                unplaced.add(reached.step.id)
                self._unjudged(reached.step.id, why, expected=expected)
                return expected
            if doubtful and self._fails(entries, judge):
                self._verdicts.append(self._resting(reached.step, index, telling(entries, judge), expected))
                return expected
            self._at = reached
            verdict = self._step(reached.step, index, entries, judge, self._claims, expected, speechless=speechless)
            self._verdicts.append(self._explained(verdict, reached))
            if verdict.verdict == "not_judged" and expected is not None:
                unplaced.add(reached.step.id)
            return value_after(verdict, entries, judge, expected)

        self.right = self._go(value)
        self._beyond(used)
        for span, reason in false_comparisons(self.body):
            self._find("unfaithful_work", None, span, reason)
        return step_claims

    def _resting(self, step: Step, index: int, entry: Entry, expected: Value | None) -> StepAudit:
        """A wrong value that rests on steps whose claims are set aside: it is not said whose slip it is."""
        right = None if expected is None else step.type.write(expected)
        reason = "it may follow from earlier steps, of which it is not known what the transcript says"
        reason = reason if right is None else f"{reason}; {right} would be right"
        self._find("inherited", step.id, (entry.start, entry.end), reason)
        place = self.lines.place(entry.start, entry.end)
        return StepAudit(step.id, index, "wrong", "inherited", entry.value, right, reason, place)

    def _go(self, value: Callable[[Reached, Value | None], Value | None]) -> Way:
        """The right way."""

        def step(reached: Reached, values: dict[str, Value]) -> Value | None:
            self.true = values
            return value(reached, computed(self._judge_at(reached, own=False), values))

        return take(self.procedure, self.places, self.inputs, step)

    def _claimed_at(self, reached: Reached, expected: Value | None) -> Value | None:
        entries = self.alignment.claims_at.get(reached.key, [])
        return self._judge_at(reached, own=False).read(entries[-1]) if expected is None and entries else expected

    def _all_claims(self) -> Claimed:
        along = ((self._own_steps.get(key), entries) for key, entries in self.alignment.claims_at.items())
        return claims_of((at.step, self._judge_at(at, own=True), entries) for at, entries in along if at is not None)

    def _explained(self, verdict: StepAudit, reached: Reached) -> StepAudit:
        """A verdict with what is to be said of the way that was taken."""
        reason = verdict.reason
        if verdict.verdict == "right" and reached.step.type.numeric:
            return self._calculated(verdict, reached)
        if verdict.kind == "missing_step" and reached.key not in self._own_steps and not self.own.open:
            reason = f"{reason}: its own values lead another way"
        elif verdict.verdict == "wrong" and verdict.kind != "inherited" and verdict.place is not None:
            entry = self.alignment.claims_at[reached.key][-1]
            claimed = self._judge_at(reached, own=False).read(entry)
            for condition, value in reached.otherwise(self.places.beside(reached.name, reached.chain, reached.site)):
                if claimed is not None and value == claimed:
                    reason = f"{reason}; it is right where `{condition}` is decided the other way"
                    break
        if reason == verdict.reason:
            return verdict
        last = self.findings[-1]
        assert last.step == verdict.step
        self.findings[-1] = replace(last, reason=reason)
        return replace(verdict, reason=reason)

    def _calculated(self, verdict: StepAudit, reached: Reached) -> StepAudit:
        """A right value, unless a calculation stands in front of it that comes to another."""
        judge = self._judge_at(reached, own=False)
        entry = telling(self.alignment.claims_at[reached.key], judge)
        for side in entry.work:
            with suppress(EvaluationError, ValueRefused):
                if reached.step.type.convert(evaluate(parse_expression(side), {})) != judge.read(entry):
                    reason = f"{side} is not {entry.value}"
                    self._find("unfaithful_work", verdict.step, (entry.start, entry.end), reason)
                    return replace(verdict, verdict="wrong", kind="unfaithful_work", reason=reason)
        return verdict

    def _beyond(self, used: list[ClaimGroup]) -> None:
        """What the transcript carries out that is not on the right way."""
        ended = not self.right.open and self.right.failure is None
        if self.right.failure is not None:
            self._unjudged(self.right.place, f"the procedure ends here: {shorten(str(self.right.failure))}")
        on_the_way = {each.key for each in self.right.reached}
        for key, entries in self.alignment.claims_at.items():
            if key not in on_the_way:
                path = self._own_steps[key].path
                if ended:
                    span = entries[0].start, entries[0].end
                    self._find("extra_step", path, span, f"{_NO_WAY}; the transcript's own wrong values lead to it")
                else:
                    self._unjudged(path, "whether the procedure comes to it is not known", entries[0])
        values: dict[str, list[Value | None]] = {}
        for each in self.right.reached:
            values.setdefault(each.name, []).append(self.right.values.get(each.step.id))
        loose = self.alignment.loose()
        for group, entries in self.alignment.left(used):
            labelled = any(each is not None for numbers in group.chains.values() for each in numbers)
            right, read = values.get(group.name, []), Judge(self.places.steps[group.name], self.timeout).read
            claimed = [read(entry) for entry in entries]
            # Values that are listed again, as in a summary, are no further rounds.
            if (group.reached or not labelled) and not group.dropped and repeats(group, entries, claimed, right):
                continue
            known = set(right)
            for entry, value in zip(entries, claimed, strict=True):
                if group.dropped:
                    self._unjudged(group.name, group.dropped, entry)
                elif (group.reached or not labelled) and value in known:
                    self._unjudged(group.name, "whether it says a round again or is one more is not said", entry)
                elif right and not labelled and not group.reached:
                    self._unjudged(group.name, "which round it is about is not said", entry)
                elif ended and entry.value and group.name not in loose:
                    self._find("extra_step", group.name, (entry.start, entry.end), _NO_WAY)
                elif right or entry.value is not None or any(map(str.isdigit, entry.unread)):  # not: is not needed
                    self._unjudged(group.name, "which step of the run it is about is not known", entry)

    def _fails(self, entries: list[Entry], judge: Judge) -> bool:
        """Whether what is claimed of a step is wrong by the right values."""
        entry = telling(entries, judge) if entries else None
        return entry is not None and entry.value is not None and judge.judge(entry, self.true).passed is False

    def _unread(self) -> frozenset[str]:
        """The names that stand beside a number where no claim was read, so that something may be said of them."""
        spans = sorted((entry.start, entry.end) for entry in self.entries)
        parts, at = [], 0
        for start, end in spans:
            parts.append(self.body[at:start])
            at = max(at, end)
        parts.append(self.body[at:])
        starts = {entry.start for entry in self.entries}
        signs = [match[1] for match in _CLAIMED.finditer(self.body) if match.start(1) not in starts]
        beside = [match[1] for part in parts for match in _BESIDE.finditer(part)]
        heads = [
            field.strip(' "') for line in self.body.splitlines() if _HEADS.search(line) for field in _HEADS.split(line)
        ]
        names = map(self.names.find, (*signs, *beside, *heads))
        named = (self.labels.aliases.get(name, (name,))[0] for name in names if name is not None)
        return frozenset(named) & self.places.steps.keys()

    def _unjudged(self, step: str, reason: str, entry: Entry | None = None, expected: Value | None = None) -> None:
        place = None if entry is None else self.lines.place(entry.start, entry.end)
        claimed = None if entry is None else entry.value
        shown = None if expected is None else self.steps[-1].type.write(expected)
        index = len(self._verdicts)
        verdict = StepAudit(step, index, "not_judged", claimed=claimed, expected=shown, reason=reason, place=place)
        self._verdicts.append(verdict)

    def _shown(self, text: str) -> str:
        """What stands there, without the aliases."""
        for alias in {word for word in _ALIAS.findall(text) if word in self.labels.aliases}:
            text = text.replace(alias, self.labels.aliases[alias][0])
        return text

    # What the audit of a list of steps asks for

    def _claimed(self, step_claims: list[list[Entry]]) -> Claimed:
        del step_claims
        return self._claims

    def _judged(self, step_claims: list[list[Entry]], claimed: Claimed) -> list[StepAudit]:
        del step_claims, claimed
        return self._verdicts

    def _by_own(self, step: Step, judge: Judge, entry: Entry, claimed: Claimed) -> tuple[dict[str, Value], Ruling]:
        reached = self._own_steps.get(self._at.key)
        if reached is None:
            return super()._by_own(step, judge, entry, claimed)
        own: dict[str, Value] = {}
        for name in reached.step.reads:
            value = claimed.before(name, entry.start)
            value = self.own.values.get(name) if value is None else value
            if value is not None:
                own[name] = value
        return own, self._judge_at(reached, own=True).judge(entry, own)

    def _wrong_order(self, step_claims: list[list[Entry]]) -> list[Finding]:
        """Steps that stand in front of what they rest on; rounds may be carried out side by side."""
        starts = {step.id: entries[0].start for step, entries in zip(self.steps, step_claims, strict=True) if entries}
        findings: list[Finding] = []
        for step, entries in zip(self.steps, step_claims, strict=True):
            behind = next((name for name in step.reads if entries and starts.get(name, -1) > entries[0].start), None)
            if behind is not None:
                place = self.lines.place(entries[0].start, entries[0].end)
                findings.append(Finding("wrong_order", step.id, place, "it stands in front of a step that it rests on"))
        return findings

    def _answer_type(self) -> ValueType:
        return self.procedure.answer_type

    def _answers(self, kind: ValueType, step_claims: list[list[Entry]]) -> list[Stated]:
        return super()._answers(kind, step_claims) if kind.scalar else []

    def _asks(self) -> bool:
        """A list or a record is in no sentence that can be read for certain."""
        return super()._asks() and self.procedure.answer_type.scalar

    def _truth(self) -> Value | None:
        return self.right.answer if self.procedure.answer_type.scalar else None

    def _own_answer(self, claimed: Claimed) -> Value | None:
        del claimed
        named = any(key[0] == self.procedure.answer for key in self.alignment.claims_at)
        return self.own.answer if named else None
