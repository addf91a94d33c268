"""The names of a procedure, as transcripts write them, and what a transcript says about one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from stepguard.errors import ExpressionError
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import RESERVED, Name, Number
from stepguard.language.prose.understanding import Understanding
from stepguard.language.typeset import as_expression
from stepguard.procedure.steps import Step

_JUXTAPOSED: Final = re.compile(r"(?<=[0-9])\)\s?\((?=[-$0-9])")
"""Two bracketed numbers side by side, which working multiplies: ``(19)(3)``."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_LABEL: Final = 100
_ASIDE: Final = re.compile(
    r"(?:(?<=[\s*_])[(\[]|[(\[](?=[^()\[\]\n]*%))(?=[^()\[\]\n]*(?:[%$\u20ac\u00a3]|\b[A-Z]{3}\b))[^()\[\]\n]{1,60}[)\]]"
    r"|,? ?(?:@|-|\bat\b)? ?(?<![\w.])[0-9][0-9.,]* ?(?:%|per ?cent\b)"
)
"""An amount, a currency or a percentage in a label: in brackets, or beside its words."""
_ENDS_ON_NUMBER: Final = re.compile(r"[0-9][)\]*_`$.!| \t]*\Z")
_FILLING: Final = re.compile(r"^\W*(?:(?:so|then|thus|and),? )?(?:the|our|my)\b|\b(?:of|rate)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one place of a transcript says about a step.

    Attributes:
        name: the id of the step, or what an unknown step is called.
        known: whether the procedure has it.
        start: the offset of its first character.
        end: the offset behind its last one.
        work: the links of the working that can be read, in the notation of the expression language.
        value: the value as it was written, None where none can be read.
        unread: what stands there where no value can be read.
        doubt: whether it is denied, or only supposed, or a number that cannot be read; it has no value then.
        doubted: the value of a supposition, or of a sentence that says more of it.
        numbered: whether a number stands for the name of the step.
        strange: what around it keeps it from being read, as a reason.
    """

    name: str
    known: bool
    start: int
    end: int
    work: tuple[str, ...] = ()
    value: str | None = None
    unread: str = ""
    doubt: bool = False
    doubted: str | None = None
    numbered: bool = False
    strange: str = ""

    def without_value(self, reason: str, *, supposed: bool = False) -> Entry:
        """The claim as one that is not read for a reason; unchanged where it has no value."""
        if self.value is None:
            return self
        doubted = self.value if supposed else None
        return replace(self, value=None, work=(), unread=self.value, doubt=True, doubted=doubted, strange=reason)


class Names:
    """The names of a procedure, as transcripts write them.

    Args:
        numbered: whether a number may stand for a step.
        words: further texts of the procedure, whose words are understood in front of a claim.

    Attributes:
        understanding: what is understood around claims.
    """

    def __init__(
        self, steps: Iterable[Step], inputs: Iterable[str], *, numbered: bool = True, words: Iterable[str] = ()
    ) -> None:
        self.steps: dict[str, Step] = {}
        order: list[str] = []
        for step in steps:
            if step.id not in self.steps:
                order.append(step.id)
            self.steps[step.id] = step
        self.inputs = frozenset(inputs)
        described = (text for step in self.steps.values() for text in step.words)
        self.understanding = Understanding.of((*described, *self.inputs, *words))
        self._exact = {*self.steps, *self.inputs}
        folded: dict[str, str | None] = {}
        for name in self._exact:
            key = _folded(name)
            folded[key] = None if key in folded else name
        self._folded = folded
        numbers = [re.search(r"[0-9]+\Z", name) for name in order]
        by_number = {int(found[0]): name for found, name in zip(numbers, order, strict=True) if found}
        complete = len(by_number) == len(order)
        self._numbered = {} if not numbered else by_number if complete else dict(enumerate(order, 1))
        shapes = {re.sub(r"[0-9]+\Z", "", name) for name, found in zip(order, numbers, strict=True) if found}
        self._shapes = shapes if complete else set()

    def give(self, alias: str, name: str) -> None:
        """Let an alias stand for a step, as if it were one."""
        self.steps[alias] = self.steps[name]
        self._exact.add(alias)
        self._folded[_folded(alias)] = alias

    def find(self, written: str) -> str | None:
        """The name that is meant by one that is written, None where there is none, or more than one."""
        if written in self._exact:
            return written
        return self._folded.get(_folded(written))

    def label(self, written: str) -> str | None:
        """The name that a label means, such as ``Tax (8.25%)`` or ``8.25% sales tax``.

        None where there is none, or where a remark in it doubts what it labels.
        """
        if (name := self.find(written)) is not None or len(written) > _MAX_LABEL:
            return name
        words, asides = _ASIDE.subn(" ", written)
        if not asides:
            return None
        if any(self.understanding.unread(match[0]) for match in _ASIDE.finditer(written)):
            return None
        return self.find("_".join(_FILLING.sub("", words).strip(" *_-,").split()))

    def numbered(self, number: int) -> str | None:
        """The step that a number means."""
        return self._numbered.get(number)

    def unknown(self, written: str) -> str:
        """A name that the procedure does not have, without the underscore of an index: ``t_21`` is ``t21``."""
        plain = written.replace("_", "")
        return plain if self.like_a_step(plain) else written

    def like_a_step(self, written: str) -> bool:
        """Whether a name that the procedure does not have is built like those of its steps."""
        match = re.search(r"[0-9]+\Z", written)
        return match is not None and written[: match.start()] in self._shapes

    def expression(self, side: str) -> str | None:
        """A side in the names of the procedure, None where it is no expression."""
        if not side or side.isdecimal():
            return side or None
        side = _JUXTAPOSED.sub(") * (", as_expression(side))
        renamed = _NAME.sub(lambda word: self.find(word[0]) or word[0], side)
        try:
            parse_expression(renamed)
        except ExpressionError:
            return None
        foreign = [word for word in _NAME.findall(renamed) if word not in self._exact and word not in RESERVED]
        return None if any(not self.like_a_step(word) for word in foreign) else renamed


def _folded(name: str) -> str:
    return name.replace("_", "").replace(" ", "").lower()


def is_copy(step: Step) -> bool:
    """Whether a step only copies a value."""
    return type(step.expression) in (Name, Number)


def joined(step: Step, entries: list[Entry]) -> list[Entry]:
    """One entry for a derivation over several lines: those without a value belong to the next one that has one.

    The formula alone says what is to be done, and does not do it. What denies or changes the value before it in a way
    that cannot be read stays: the last word on a step counts.
    """
    if all(entry.value is None for entry in entries):
        return [entry for entry in entries if entry.unread or entry.work != (step.formula,) or is_copy(step)][:1]
    claims: list[Entry] = []
    work: tuple[str, ...] = ()
    for entry in entries:
        if entry.value is not None:
            claims.append(entry if not work or entry.work else replace(entry, work=work))
            work = ()
        elif not entry.doubt:
            work += entry.work
        elif claims and (entry.doubted is None or entry.doubted != claims[-1].value):
            claims.append(entry)
    return claims


def unread_line(text: str, name: str, entries: Iterable[Entry]) -> str:
    """A line that speaks of a step and ends on a number, though no claim was read there; empty where there is none."""
    if len(name) < 2:
        return ""  # ``a`` is a word
    spoken = re.compile(rf"(?<![^\W_]){re.escape(name).replace('_', '[ _]')}(?![^\W_])", re.IGNORECASE)
    read = [(entry.start, entry.end) for entry in entries]
    at = 0
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        if (
            spoken.search(line)
            and _ENDS_ON_NUMBER.search(spoken.sub("", line).rstrip())
            and not any(first < at and last > start for first, last in read)
        ):
            return line.strip()
    return ""
