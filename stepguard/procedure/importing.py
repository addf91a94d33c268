"""Import procedures as people write them, as far as they are certain, with a note on every line that is not.

Numbered lists, checklists and Markdown, words in front of a formula (``4. Take off the fee: t4 = t3 - 5``), conditions
in words (``If days is more than 3: fee = rate * 2``, ``Otherwise: fee = rate``) become a procedure of the language
(`stepguard.procedure.notation`). It is a proposal: each line that is put to the model in words, is left out, or could
not be understood has its note, and a program takes the procedure only where `ImportedProcedure.complete` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from stepguard.errors import ConfigError, ExpressionError, ProcedureError
from stepguard.language.expression_tokens import check_grouping
from stepguard.language.expressions import Expression, format_expression
from stepguard.language.prose.descriptions import governs
from stepguard.language.prose.hidden_formulas import assigns
from stepguard.language.terms.operands import variables_in
from stepguard.procedure.free_text import MAX_LINE, ListItem, label_of, read_free_step, split_lines
from stepguard.procedure.import_notes import ImportedProcedure, Note, NoteKind
from stepguard.procedure.import_words import ELSE, IF, check_figures, read_condition
from stepguard.procedure.inputs import Input, as_inputs
from stepguard.procedure.notation import parse_term, read_inputs, read_procedure
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, If, Statement, steps_in
from stepguard.procedure.steps import Step

_HEADER: Final = re.compile(r"(name|title|inputs?|answer|result)\s*(?:[:\uff1a]\s*(.*))?\Z", re.IGNORECASE)
_BOX: Final = re.compile(r"\[(?P<ticked>[ xX])\]\s+")
_DEFAULT: Final = re.compile(
    r"\w+\s*(?::[^=]*)?=\s*-?(?:[0-9][0-9.,]*(?:\s?%|\s+[^\W\d_]+)?|[0-9-]+|true|false|\"[^\"]*\")\Z"
)
_TITLE: Final = re.compile(r"\W*(?:the )?(?:steps?|procedure|instructions?|method|process)\W*\Z", re.IGNORECASE)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_BLANKS: Final = re.compile(r'(?P<quoted>"(?:[^"\\\n]|\\.)*")|\s{2,}')  # runs of them would be tried blank by blank
_RULE: Final = re.compile(r"(?:[-*_]\s*){3,}\Z")
_LEADING: Final = (":", "\uff1a", ",")
"""The ends of a line that introduces the lines below it."""
_EVERY_LEVEL: Final = 9


def import_procedure(text: str, *, unnamed: str = "procedure") -> ImportedProcedure:
    """Read a procedure as people write it.

    Args:
        text: prose in lines, a numbered list, Markdown; also the language itself.
        unnamed: the name of a procedure that declares none.
    """
    reader = _ImportReader()
    for at, line, indent in split_lines(text):
        reader.take(at, line, indent)
    imported = reader.made(unnamed)
    if imported.complete or (written := _in_language(text, unnamed)) is None:
        return imported
    steered = any(note.kind == "refused" and not note.text.startswith("#") for note in written.notes)
    return imported if steered and imported.procedure is not None else written


def _in_language(text: str, unnamed: str) -> ImportedProcedure | None:
    """A text that is one of the language already, with notes on its comments; None where it is none."""
    try:
        procedure = read_procedure(text, unnamed=unnamed)
    except ProcedureError:
        return None
    reader = _ImportReader()
    for at, line, _ in split_lines(text):
        code, _, comment = _STRING.sub("", line).partition("#")
        if not code.strip():
            reader.take(at, line, 0)
        elif (word := governs(comment)) is not None:
            reader.note(at, line, "refused", f"{word!r} in the comment may say when the line counts: nobody heeds it")
    return ImportedProcedure(procedure, tuple(reader.notes))


@dataclass
class _Branches:
    """An `if` to which further branches may be added."""

    branches: list[tuple[Expression, Body]]
    otherwise: Body = ()


def _finished(body: Iterable[Statement | _Branches]) -> Body:
    return tuple(If(each.branches, each.otherwise) if isinstance(each, _Branches) else each for each in body)


@dataclass
class _Block:
    """Steps below a line of words: those of a condition, or without one those of all other cases."""

    indent: int
    body: list[Statement | _Branches]
    condition: Expression | None
    line: int
    further: bool
    """Whether it belongs to the condition above it."""

    def empty_at(self, indent: int) -> bool:
        """Whether it stands at an indent, and nothing stands below it."""
        return self.indent == indent and not self.body


class _ImportReader:
    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.name: str | None = None
        self.titled = False  # the name is that of a heading
        self.inputs: tuple[Input, ...] = ()
        self.answer: Expression | None = None
        self.names: set[str] = set()
        self.number = -1
        self.body: list[Statement | _Branches] = []
        self.blocks: list[_Block] = []
        self.item = ListItem()
        self.hidden = False  # inside of a comment of several lines
        self.refused: int | None = None  # the indent of a line that was refused, and may have others below it
        self.broken: int | None = None  # the same, while no statement stands below it
        self.governed: int | None = None  # the level of a heading that was refused, and has lines below it
        self.numbers: dict[int, int] = {}  # the last number of a list, by its indent
        self.labelled: dict[int, str] = {}  # what the step with a number sets
        self.under: str | None = None  # the heading above, where that is what a header is called
        self.led: int | None = None  # the indent of the line above, where that says that something stands below it
        self.above: int | None = None  # the indent of a line outside of a list that may have a list below it

    def note(self, at: int, line: str, kind: NoteKind, message: str) -> None:
        self.notes.append(Note(at, line, kind, message))

    def take(self, at: int, line: str, indent: int) -> None:
        """Read the next line."""
        led = self.led
        if label_of(line) is None:
            self.above = indent if line.endswith(_LEADING) else None
        # A list right below "Otherwise:" belongs to that line, even where it is not indented.
        elif indent == self.above:
            indent += 1
        self.led = indent if line.endswith(_LEADING) else None
        # The line above announced something, was refused or stands empty: what follows cannot be placed any more.
        if indent == led and (self.refused == led or (self.blocks and self.blocks[-1].empty_at(indent))):
            self.governed = self.governed or _EVERY_LEVEL
        if self.refused is not None and indent <= self.refused:
            self.refused = None
        try:
            self._check_place(line)
            self._take(at, line, indent)
        except (ProcedureError, ExpressionError, ConfigError) as error:
            self.note(at, line, "refused", getattr(error, "message", str(error)))
            # The outermost refused line counts: everything further in hangs on it.
            if self.refused is None:
                self.refused = self.broken = indent

    def _check_place(self, line: str) -> None:
        """Refuse a line below one that was not understood, or inside a comment."""
        hidden, opened = self.hidden, line.rfind("<!--")
        self.hidden = line.rfind("-->") < opened if opened >= 0 else hidden and "-->" not in line
        if hidden:
            raise ProcedureError("it stands in a comment, which nobody sees: leave it out, or write it as it is meant")
        if self.refused is not None or (self.governed is not None and not line.startswith("#")):
            raise ProcedureError("it stands below a line that was not understood")

    def _take(self, at: int, line: str, indent: int) -> None:
        if len(line) > MAX_LINE:
            raise ProcedureError(f"the line is too long: {len(line)} characters, at most {MAX_LINE}")
        if line.startswith("#"):
            self._heading(at, line)
            return
        if _RULE.match(line):
            return
        if _TITLE.match(line) and label_of(line) is None:
            self.under = None
            self.note(at, line, "left_out", "a heading")
            return
        if line.startswith("|"):
            self.note(at, line, "refused", "a row of a table: declare it as `table name: key -> type`, its rows below")
            return
        # "answer: t3 = x" is a step and no header.
        header, label = _HEADER.match(line), label_of(line)
        if header is None and self.under is not None and not (label and any(label.groups())):
            held = line[label.end() :] if label else line
            # `- limit = 500` among inputs is one with a default; `- t1 = x + y` is the first step.
            if not assigns(line) or (self.under.startswith("input") and _DEFAULT.match(held)):
                self._header(self.under, held, at)
                return
        self.under = None
        if header is not None and header[2] is not None and not assigns(line.replace(":", " ")):
            if header[2].strip():
                self._header(header[1].lower(), header[2].strip(), at)
            else:
                self.under = header[1].lower()
            return
        body = line[label.end() :] if label else line
        if (box := _BOX.match(body)) is not None:
            body = body[box.end() :]
            if box["ticked"] != " ":
                raise ProcedureError(
                    "the box is ticked: it may be done, or be the one of several that was chosen: leave the tick, or "
                    "the line, out"
                )
        # A line that is no deeper than the condition ends its block.
        while self.blocks and indent <= self.blocks[-1].indent:
            self._close()
        self._statement(at, line, _BLANKS.sub(lambda match: match["quoted"] or " ", body), indent)

    def _heading(self, at: int, line: str) -> None:
        title = line.lstrip("#").strip()
        # A heading such as "If the order is late" may decide whether all below it is carried out.
        word, level = governs(title), len(line) - len(line.lstrip("#"))
        if self.governed is not None and level > self.governed:
            raise ProcedureError("it stands below a line that was not understood")
        self.governed = self.under = None
        if (header := _HEADER.match(title)) is not None and not header[2]:
            self.under = header[1].lower()
            return
        if _is_step(title) and (line.startswith("##") or _numbered(title)):
            self.note(
                at,
                line,
                "refused",
                "a heading or a comment that holds a step: write it as a line of its own, or leave it out",
            )
        elif word is not None and not assigns(title):
            self.note(at, line, "refused", f"{word!r} may say whether what stands below is carried out")
            self.governed = level
        # Two procedures in one text must not run as one.
        elif level == 1 and self.titled and self.body:
            self.note(at, line, "refused", "a second title: import what stands below it by itself")
            self.governed = level
        elif line.startswith("# ") and self.name is None and not self.body and not assigns(title):
            self.name, self.titled = title, True
        elif title:
            step = ", which holds a formula: it is not carried out" if assigns(title) else ""
            self.note(at, line, "left_out", f"a heading, or a comment{step}")

    def _header(self, key: str, rest: str, at: int) -> None:
        if key in ("name", "title"):
            if self.name is not None:
                raise ProcedureError(f"the procedure already has the name {self.name!r}")
            if (word := governs(rest)) is not None:
                raise ProcedureError(f"{word!r} may say whether the procedure is carried out: leave it out of the name")
            self.name = rest.strip('"') or None
        elif key in ("answer", "result"):
            if self.answer is not None:
                raise ProcedureError(f"the answer is already declared: {format_expression(self.answer)}")
            tree = parse_term(rest.strip("`. "))
            # "answer: 42" is a constant, whatever the steps compute.
            if not variables_in(tree):
                raise ProcedureError(
                    f"{rest[:60]!r} would be the answer whatever the steps come to: name what is meant"
                )
            self.answer = tree
        else:
            self.inputs = as_inputs((*self.inputs, *read_inputs(rest, at)))
            self.names.update(each.name for each in self.inputs)

    def _statement(self, at: int, line: str, body: str, indent: int) -> None:
        check_grouping(body)
        otherwise = ELSE.match(body)
        last = self._current()[-1] if self._current() else None
        between = self.broken is not None and self.broken <= indent  # what was refused may be what it belongs to
        further = otherwise is not None and isinstance(last, _Branches) and not last.otherwise and not between
        if further and otherwise is not None:
            body = otherwise["rest"]
        condition = IF.match(body)
        if condition is not None or further:
            tree = None if condition is None else read_condition(condition["condition"], self.names)
            rest = body if condition is None else condition["rest"]
            block = _Block(indent, [], tree, at, further)
            if rest:
                block.body.append(self._step(rest))
                self._branch(block)
            else:
                self.blocks.append(block)
            return
        label = label_of(line)
        own = next((group for group in label.groups() if group), None) if label else None
        number = self.number if own is None else int(own)
        self.numbers = {depth: last for depth, last in self.numbers.items() if depth <= indent}
        # Numbers that go back mean another order than the one of the lines. A list may start again at 1.
        if own is not None and 1 < number < self.numbers.get(indent, 0):
            raise ProcedureError(f"number {number} stands behind {self.numbers[indent]}: put the steps in their order")
        if own is not None:
            self.numbers[indent] = number
        step = self._step(body, default=None if own is None else f"step{number}")
        self.item.goes_on(at, line, indent, step, nested=bool(self.blocks))
        self.number = number
        if own is not None:
            self.labelled[number] = step.id
        self._add(step)
        if step.expression is None:
            self.note(at, line, "words", f"words alone: {step.id!r} is what the model answers, and nothing checks it")

    def _step(self, body: str, default: str | None = None) -> Step:
        step = read_free_step(body, default, self.names)
        unknown = [name for name in step.reads if name not in self.names]
        if unknown:
            raise ProcedureError(f"step {step.id!r} reads {unknown[0]!r}, which is no input and set by no step above")
        if step.expression is not None and step.instruction is not None and '"' not in body:
            check_figures(step, step.instruction, step.expression, self.labelled)
        return step

    def _current(self) -> list[Statement | _Branches]:
        return self.blocks[-1].body if self.blocks else self.body

    def _add(self, statement: Statement) -> None:
        self._current().append(statement)
        self._set((statement,))

    def _set(self, body: Body) -> None:
        self.broken = None
        self.names.update(step.id for step in steps_in(body))

    def _close(self) -> None:
        block = self.blocks.pop()
        if block.body:
            self._branch(block)
        else:
            self.note(block.line, "", "refused", "nothing that was understood stands below this condition")

    def _branch(self, block: _Block) -> None:
        """Add the steps of a condition, or of what stands behind it, to where they belong."""
        body, current = _finished(block.body), self._current()
        last = current[-1] if block.further else None
        if not isinstance(last, _Branches):
            current.append(last := _Branches([]))
        if block.condition is None:
            last.otherwise = body
        else:
            last.branches.append((block.condition, body))
        self._set(body)

    def made(self, unnamed: str) -> ImportedProcedure:
        """The procedure of all lines, and the notes on them."""
        while self.blocks:
            self._close()
        procedure = None
        try:
            body = _finished(self.body)
            procedure = Procedure(body, inputs=self.inputs, answer=self.answer, name=self.name or unnamed)
        except ProcedureError as error:
            self.note(0, "", "refused", f"what was understood makes no procedure: {error}")
        return ImportedProcedure(procedure, tuple(sorted(self.notes, key=lambda note: note.line)))


def _numbered(heading: str) -> bool:
    """Whether a heading is numbered as a step is, or an item of a list that holds a formula."""
    label = label_of(heading)
    return label is not None and label.end() < len(heading) and (any(label.groups()) or assigns(heading))


def _is_step(heading: str) -> bool:
    """Whether the words of a heading would be a step, or a declaration, if they stood alone."""
    header = _HEADER.match(heading)
    return _numbered(heading) or (header is not None and header[2] != "") or assigns(heading)
