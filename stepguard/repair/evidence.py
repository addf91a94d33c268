"""Steps in words asked by what decides them: a passage first, each option, field or part by itself.

What such a step may be asked for follows from the step alone: which document it is read from, which options it has,
which fields its record. No request holds what was answered before, or what a check has said of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, cast

from stepguard.core.verdicts import DeviationKind
from stepguard.documents.sentences import begun_before
from stepguard.errors import InexactError
from stepguard.language.prose.struck_text import struck_spans
from stepguard.language.records import Record
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn, part_names

if TYPE_CHECKING:
    from stepguard.checks import Check

_FEWEST_OPTIONS: Final = 3
"""Of two options, the one that does not apply would give the other away."""
_WHETHER: Final = 'Is "{}" the right answer to this?'
_MOST_PARTS: Final = 12
"""The most options, fields or parts that are asked one by one: each is a call."""
_LEAST_PART: Final = 1000
"""Characters of a part of a document; a document of three times as many is long."""
_VISIBLE: Final = re.compile(r"\S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited(StandIn):
    """The passage that decides a step, copied and checked, and the step in view of that alone.

    Attributes:
        passage: the name of the step that copies it; empty where none does.
    """

    passage: str = ""

    def quotations(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """See `StandIn.quotations`."""
        return (str(values[self.passage]),) if self.passage else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eliminated(Cited):
    """Whether each option applies, each in a call of its own; the value is the one that does.

    Attributes:
        options: the options, in the order of the last steps.
    """

    without_value: ClassVar[DeviationKind] = "malformed"
    options: tuple[str, ...]

    @property
    def outcomes(self) -> int | None:
        """See `StandIn.outcomes`: each option may be said to apply or not, and one of these patterns is right."""
        return 1 << len(self.options)

    def restore(self, values: Mapping[str, Value]) -> Value:
        """See `StandIn.restore`."""
        questions = self.steps[-len(self.options) :]
        applying = [option for option, step in zip(self.options, questions, strict=True) if values[step.id]]
        if len(applying) != 1:
            raise InexactError(f"asked one by one, {len(applying)} of {len(self.options)} options apply")
        return applying.pop()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldByField(StandIn):
    """The fields of a record, each a step.

    Attributes:
        keys: the names of the fields, in the order of the steps.
    """

    keys: tuple[str, ...]

    def restore(self, values: Mapping[str, Value]) -> Value:
        """See `StandIn.restore`."""
        return Record({key: values[step.id] for key, step in zip(self.keys, self.steps, strict=True)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartByPart(StandIn):
    """A list from each part of a document, one behind the other."""

    def restore(self, values: Mapping[str, Value]) -> Value:
        """See `StandIn.restore`."""
        return tuple(item for step in self.steps for item in cast("tuple[Value, ...]", values[step.id]))


def passage_first(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """The passage of the document that decides a step, and then the step from the passage alone.

    None where no check of the step names the document that it rests on, and for lists and records.
    """
    source = _passage(step, values) if _in_words(step) and not step.type.structured else None
    if source is None:
        return None
    passage, others = source
    text = f"{step.instruction} Answer from {passage.id} alone."
    decision = Step(step.id, instruction=text, type=step.type, reads=(passage.id, *others))
    return Cited(steps=(passage, decision), one_by_one=True, passage=passage.id)


def by_options(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """Whether each option applies, from the passage that decides it where a check names a document.

    None where there are fewer than three options: of two, one that does not apply would name the other.
    """
    options = step.type.options
    if not _in_words(step) or not _FEWEST_OPTIONS <= len(options) <= _MOST_PARTS:
        return None
    names = part_names(step.id, *step.reads)
    before: tuple[Step, ...] = ()
    reads = step.reads
    if (source := _passage(step, values)) is not None:
        passage, others = source
        before, reads = (passage,), (passage.id, *others)
    questions = tuple(
        Step(
            next(names), instruction=f"{_WHETHER.format(option)} {step.instruction}", type="boolean", reads=reads
        ).in_place_of(step)
        for option in options
    )
    steps, cited = (*before, *questions), "".join(each.id for each in before)
    return Eliminated(steps=steps, one_by_one=True, options=options, passage=cited)


def asked_option(step: Step) -> str | None:
    """The option about which a step asks whether it applies; None of any other step."""
    options = () if step.origin is None else step.origin.step.type.options
    return next((option for option in options if str(step.instruction).startswith(_WHETHER.format(option))), None)


def other_order(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """The same step with its options in the other order; None where it has fewer than three."""
    options = step.type.options
    if not _in_words(step) or len(options) < _FEWEST_OPTIONS:
        return None
    requests = [text for check in step.checks if isinstance(text := getattr(check, "request", None), str)]
    text = " ".join([str(step.instruction), *(f"({request})" for request in requests)])
    turned = replace(step.type, options=options[::-1])
    return Cited(steps=(Step(step.id, instruction=text, type=turned, reads=step.reads),))


def by_fields(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """A step for each field of a record, checked where it is to stand as in the whole; None for anything else."""
    record = step.type.record
    if not _in_words(step) or record is None or not 2 <= len(record.fields) <= _MOST_PARTS:
        return None
    names = part_names(step.id, *step.reads)
    steps = tuple(
        Step(
            next(names),
            instruction=f"Only {key} of this: {step.instruction}",
            type=kind,
            reads=step.reads,
            checks=_of_field(step, key),
        )
        for key, kind in record.fields
    )
    return FieldByField(steps=steps, keys=tuple(key for key, _ in record.fields))


def by_parts(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """A list from a long document, part by part; None for anything else, and where several documents are long."""
    long = [name for name in step.reads if isinstance(text := values.get(name), str) and len(text) > 3 * _LEAST_PART]
    if not _in_words(step) or step.type.items is None or len(long) != 1:
        return None
    (document,) = long
    parts = list(_parts(str(values[document])))
    if len(parts) == 1:
        return None
    others = tuple(name for name in step.reads if name != document)
    names = part_names(step.id, *step.reads)
    given = tuple((next(names), part) for part in parts)
    steps = tuple(
        Step(
            next(names),
            instruction=f"{step.instruction} Only what stands in {name}, a part of {document}; [] where nothing does.",
            type=step.type,
            reads=(name, *others),
        )
        for name, _ in given
    )
    return PartByPart(steps=steps, one_by_one=True, given=given)


def _parts(text: str) -> Iterator[str]:
    """A text in parts that end with a line, where there is one with a page or a paragraph; together they are it.

    None ends within what is struck out, which its rest would not show, nor within a sentence that is not too long.
    """
    least = max(_LEAST_PART, -(-len(text) // _MOST_PARTS))
    struck = iter(struck_spans(text))
    span = next(struck, None)
    start = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        while span is not None and span.end <= at:
            span = next(struck, None)
        length = at - start
        ends = not line.strip() or line.endswith("\f")
        if length < least or (2 * length < 3 * least and not ends) or (span is not None and span.start < at):
            continue
        following = _VISIBLE.search(text, at)
        if ends or length >= 3 * least or following is None or not begun_before(text, following.start()):
            yield text[start:at]
            start = at
    if start < len(text):
        yield text[start:]


def _in_words(step: Step) -> bool:
    return step.performer == "model" and step.expression is None and step.exact is None


def _of_field(step: Step, key: str) -> list[Check]:
    """The checks of a step that judge a field of its record by itself."""
    names = {} if step.origin is None else dict(step.origin.names)
    makers = ((check, getattr(check, "for_field", None)) for check in step.checks)
    return [
        maker(key, names.get(document := str(getattr(check, "document", "")), document))
        for check, maker in makers
        if callable(maker)
    ]


def _passage(step: Step, values: Mapping[str, Value]) -> tuple[Step, tuple[str, ...]] | None:
    """The step that copies the passage, and what else the step reads; None where no check names a document."""
    names = {} if step.origin is None else dict(step.origin.names)
    for check in step.checks:
        maker, written = getattr(check, "for_passage", None), getattr(check, "document", None)
        document = names.get(str(written), str(written))
        if not callable(maker) or not isinstance(values.get(document), str):
            continue
        name = "passage"
        while name in (step.id, *step.reads):
            name += "_"
        text = f"Copy from {document}, word for word, the sentence or line that decides this: {step.instruction}"
        copied = Step(name, instruction=text, type="text", reads=step.reads, checks=[maker(document)])
        return copied, tuple(other for other in step.reads if other != document)
    return None
