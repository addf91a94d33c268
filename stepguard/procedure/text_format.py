"""Procedures as text.

::

    name: invoice                        optional
    inputs: x, y, rate: decimal(2)       a type may follow each name; a number otherwise
    t1 = x + y
    t2: integer = t1 * 3                 a declared type: see `stepguard.language.value_types`
    Step 3: t3 = t2 * 4                  a label or number in front is allowed; numbers must increase
    4. Take off the fee: t4 = t3 - 5     words in front of the formula are the instruction
    5. Name the customer's country.      words alone: a step that only the model understands, unchecked
    t6: decimal(2, half_up) = by code t4 / 3     performed by code instead of the model
    answer: t4                           optional; the last step otherwise

Markdown's ``**Step 3:**`` and backticks around a formula are allowed too. Where one word stands in front of a formula,
``t1: intger = x`` is a misspelt type and ``Total: t1 = x`` an instruction: what looks like a variable or like the name
of a type decides. Blank lines and lines starting with ``#`` are skipped, and `` # ...`` behind a formula is a comment;
a heading of two or more ``#`` that holds a step is refused, and so are words that hold a formula over known values,
since nothing would check it. A numbered step of words alone sets ``step5`` (its number). An instruction that cannot
stand as it is (several lines, say) is written as a JSON string.

A formula is carried out always, and once, so words beside it only describe it: they begin with a verb (``Work out``) or
name what is worked out. Words that may say whether, when or how often it applies (``If x > 3``, ``Repeat 3 times``,
``for members``) are refused, in front of it, behind it, in a heading or an item above it and in its comment; so are
text that is struck out, and a line that goes on with the item above it (see `stepguard.language.descriptions`). What
stands in quotes may begin as it likes. Words alone may ask what they like, but steer no other step.

A colon may be a full-width one. `str(procedure)`
prints this notation, and parsing that gives an equal procedure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, ExpressionError, ProcedureError
from stepguard.language.descriptions import begins_clause, governs, steers, struck_or_hidden, unclear
from stepguard.language.expressions import MAX_LENGTH
from stepguard.language.hidden_formulas import assigns, find_hidden
from stepguard.language.value_types import NUMBER, ValueType
from stepguard.procedure.procedure import Procedure, make_step_error
from stepguard.procedure.steps import Input, Performer, Step, UnclearWords

__all__ = [
    "HiddenFormula",
    "format_procedure",
    "load_procedure",
    "make_procedure",
    "parse_inputs",
    "parse_line",
    "parse_procedure",
    "parse_step",
]

_HEADER = re.compile(r"(name|inputs?|answer)\s*[:\uff1a]\s*(.*)\Z", re.IGNORECASE)
_BREAK = re.compile(r"\r\n|\r|\n")
_LABEL = re.compile(
    r"(?:step\s+([0-9]{1,9})\s*(?:[:)\uff1a]|\.(?![0-9]))|\*\*step\s+([0-9]{1,9})\s*(?:[:.)]\*\*|\*\*[:.)])"
    r"|([0-9]{1,9})\s*[.)](?=\s|[A-Za-z_])|[-*\u2022](?=\s))\s*",
    re.IGNORECASE,
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_ARGUMENTS = rf"\((?:{_STRING}|[^()=\"])*\)"
_TYPE = rf"(?:(?i:number|decimal|percent|money|one_of)\s+{_ARGUMENTS}|(?:[A-Za-z]+|one_of)(?:{_ARGUMENTS})?)"
_FORMULA = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_]*)\s*(?:[:\uff1a]\s*({_TYPE})\s*)?=(?!=)\s*(by code\s)?\s*(\S.*)\Z", re.DOTALL
)
_WORDS = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)\s*[:\uff1a]\s*({_TYPE})\s*=\s*({_STRING})\s*(?:\(reads ([^()]*)\))?\Z")
_COLON = re.compile(r"[:\uff1a]")
_COMMA = re.compile(rf"{_STRING}|\((?:{_STRING}|[^()\"])*\)|(?P<comma>,)")
_BACKTICKS = re.compile(r"\s*`([^`]*)`\Z")
_BLANKS = re.compile(r"\s*")
_COMMENT = re.compile(r"\s#(?=\s|\Z).*\Z")
_TYPE_WORDS = (
    *("integer", "int", "number", "num", "float", "decimal", "percent", "percentage", "money", "currency"),
    *("one_of", "oneof", "choice", "boolean", "bool", "text", "str", "string"),
)
_DANGLING = re.compile(
    r"\b(?:a|an|the|of|to|for|with|from|by|in|on|at|and|or|it|is|are|as|until|if|when|that|which|this|its|not)\Z",
    re.IGNORECASE,
)
_ENDS = (".", "!", "?", ":", ";", "`", '"', ")", "\u3002")
_TYPED = re.compile(rf"(?:(.*)[:\uff1a])?\s*([A-Za-z_][A-Za-z0-9_]*)\s*[:\uff1a]\s*({_TYPE})[.\s]*\Z", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?P<closed>")?', re.DOTALL)
_NO_TEXT = "text cannot hold it, YAML can"
_MAX_LINE = 4 * MAX_LENGTH
_FENCE = re.compile(r"```\w*\s*\Z")


class HiddenFormula(UnclearWords):
    """Words hold a formula that nothing would check."""


def parse_procedure(text: str, *, unnamed: str = "procedure") -> Procedure:
    """Read the notation above.

    Args:
        text: the text.
        unnamed: the name of a procedure that declares none.

    Raises:
        ProcedureError: something in the text is wrong; `line` names where.
    """
    name, inputs, answer = None, None, None
    names: set[str] = set()
    steps: list[Step] = []
    lines: list[int] = []
    number = -1
    answer_line = 0
    item = _Item()
    for at, line, indent in _lines(text):
        header = None if _typed_step(line) else _HEADER.match(line)
        if header:
            key, rest = header[1].lower(), header[2].strip()
            if key in ("name", "answer") and assigns(_unquoted(rest)):
                raise ProcedureError(
                    f"{line[:60]!r} could be a {key} or a step: write `Work it out: {rest[:60]}` for a step"
                    + (f', `name: "{rest[:60]}"` for a name' if key == "name" else ""),
                    line=at,
                )
            if key != "name":
                rest = _COMMENT.sub("", rest)
            if not rest and key not in ("input", "inputs"):
                raise ProcedureError(f"{key}: nothing follows", line=at)
            if key == "name":
                if name is not None:
                    raise ProcedureError(f"the procedure already has the name {name!r}", line=at)
                if steps:
                    raise ProcedureError("the name stands before the first step", line=at)
                name = _name(rest, at)
            elif key == "answer":
                if answer is not None:
                    raise ProcedureError(f"the answer is already declared in line {answer_line}", line=at)
                answer, answer_line = rest, at
            elif inputs is not None or steps:
                raise ProcedureError("inputs are declared once, before the first step", line=at)
            else:
                inputs = parse_inputs(rest, at)
                names.update(declared.name for declared in inputs)
            continue
        try:
            step, number = parse_line(line, number, names)
            item.goes_on(at, line, indent, step)
        except (ProcedureError, ExpressionError) as error:
            raise make_step_error(error, at) from error
        except ConfigError as error:
            raise ProcedureError(str(error), line=at) from error
        steps.append(step)
        names.add(step.id)
        lines.append(at)
    if not steps:
        raise ProcedureError("no step found: write one step a line, such as `t1 = x + y`", line=1)
    name = unnamed if name is None else name
    return make_procedure(steps, lines, inputs=inputs or (), answer=answer, answer_line=answer_line, name=name)


class _Item:
    """The item of a list that stands above a line, which the line may go on with instead of being a step."""

    def __init__(self) -> None:
        self._indent = -1
        self._at = self._at_open = 0
        self._open = ""

    def goes_on(self, at: int, line: str, indent: int, step: Step) -> None:
        """Look at the next step.

        Raises:
            ProcedureError: for a reader it is no step, but the rest of the item above.
        """
        label = _LABEL.match(line)
        if label is None and 0 <= self._indent < indent:
            raise ProcedureError(
                f"the line is indented under the item in line {self._at}, as if that went on here: write both in one "
                "line, or begin this one with a number of its own"
            )
        wrapped = label is None and self._open != "" and at == self._at_open + 1
        if wrapped and (
            _DANGLING.search(self._open)
            or (step.instruction is not None and step.expression is not None and line[0].islower())
        ):
            raise ProcedureError(
                f"line {self._at_open} breaks off, as if it went on here: write both in one line, or end it with a stop"
            )
        if label is not None:
            self._indent, self._at = indent, at
        elif indent <= self._indent:
            self._indent = -1
        words = step.expression is None and step.instruction is not None and not line.endswith(_ENDS)
        self._open, self._at_open = line if words else "", at


def make_procedure(
    steps: Sequence[Step],
    lines: Sequence[int],
    *,
    inputs: Iterable[Input],
    answer: str | None,
    answer_line: int,
    name: str,
) -> Procedure:
    """A procedure from steps and the lines they stand in, so that an error can name the line.

    Raises:
        ProcedureError: the steps do not make a procedure.
    """
    declared = tuple(inputs)
    try:
        return Procedure(steps, inputs=declared, answer=answer, name=name)
    except ProcedureError as error:
        own = [at for step, at in zip(steps, lines, strict=True) if step.id == error.step]
        line = own[0] if len(own) == 1 else _line_of(steps, lines, {entry.name for entry in declared}, answer_line)
        raise ProcedureError(error.message, line=line, step=error.step) from error


def load_procedure(path: Path) -> Procedure:
    """Read a procedure from a UTF-8 file: YAML or JSON by its suffix, the notation above otherwise.

    One that declares no name is called as its file, without the suffix.
    """
    suffix = path.suffix.lower()
    unnamed = " ".join(path.stem.split()) or "procedure"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProcedureError(f"{path.name} is not UTF-8 text (byte {error.start})") from error
    if suffix in (".yaml", ".yml", ".json"):
        from stepguard.procedure.yaml_format import parse_yaml

        return parse_yaml(text, json=suffix == ".json", unnamed=unnamed)
    return parse_procedure(text, unnamed=unnamed)


def format_procedure(procedure: Procedure) -> str:
    """The text of a procedure, in the notation above.

    What text cannot hold (checks, options) stands in a line of its own below its step, which says so. Reading that
    again is refused, so that nothing is lost unseen.
    """
    head: list[str] = [] if procedure.name == "procedure" else [_format_name(procedure.name)]
    if procedure.inputs:
        inputs = [each.name if each.type == NUMBER else f"{each.name}: {each.type}" for each in procedure.inputs]
        head.append(f"inputs: {', '.join(inputs)}")
    body = [_format_step(step) for step in procedure.steps]
    if procedure.answer != procedure.steps[len(procedure.steps) - 1].id:
        body.append(f"answer: {procedure.answer}")
    return "\n".join(head + body) + "\n"


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """The lines that say something: number, text, and how far each is indented."""
    # Not `str.splitlines`: editors and this count of lines break at these characters only.
    for at, raw in enumerate(_BREAK.split(text.removeprefix("\ufeff")), 1):
        line = raw.strip()
        if line.startswith("#"):
            _check_title(line, at)
            continue
        if not line or _FENCE.match(line):
            continue
        if len(line) > _MAX_LINE:
            raise ProcedureError(f"the line is too long: {len(line)} characters, at most {_MAX_LINE}", line=at)
        yield at, line, len(raw[: len(raw) - len(raw.lstrip())].expandtabs())


def _check_title(line: str, at: int) -> None:
    """Refuse a heading, or a comment, that for a reader says what is done below it."""
    heading, title = line.startswith("##"), line.lstrip("#").strip()
    if heading and _is_step(title):
        raise ProcedureError(
            f"{line[:60]!r} is a heading, and what it says would be left out: write a step without ##, and a "
            "comment with one #",
            line=at,
        )
    if assigns(title):  # a step that somebody has commented out
        return
    titled = heading or title.endswith((":", "\uff1a"))
    word = governs(title) if titled else begins_clause(title) or steers(title)
    if word is not None:
        raise UnclearWords(
            f"{word!r} in the {'heading' if heading else 'comment'} {line[:60]!r} may say whether, when or how often "
            "what stands below is carried out, and nobody would heed it: leave it out",
            line=at,
        )


def _is_step(heading: str) -> bool:
    """Whether the words of a heading would be a step, or a declaration, if they stood alone."""
    header, label = _HEADER.match(heading), _LABEL.match(heading)
    numbered = label is not None and any(label.groups()) and label.end() < len(heading)
    return numbered or (header is not None and header[2] != "") or assigns(heading)


def parse_inputs(text: str, line: int) -> tuple[Input, ...]:
    """What stands behind ``inputs:``, in a line.

    Raises:
        ProcedureError: an input cannot be declared like this.
    """
    inputs: dict[str, Input] = {}
    for piece in _split(text):
        if not piece.strip():
            raise ProcedureError("'' cannot be an input: leave out the comma that has no name beside it", line=line)
        name, _, kind = piece.partition(":")
        try:
            declared = Input(name.strip(), kind.strip() or NUMBER)
        except (ProcedureError, ConfigError) as error:
            raise ProcedureError(getattr(error, "message", str(error)), line=line) from error
        if declared.name in inputs:
            raise ProcedureError(f"duplicate input {declared.name!r}", line=line)
        inputs[declared.name] = declared
    return tuple(inputs.values())


def _split(text: str) -> Iterator[str]:
    """The pieces between commas that stand outside of brackets and quotes."""
    start = 0
    for match in _COMMA.finditer(text):
        if match["comma"]:
            yield text[start : match.start()]
            start = match.end()
    if text:
        yield text[start:]


def _typed_step(line: str) -> bool:
    """Whether a line that looks like a header is a step called `name`, `inputs` or `answer`, with its type."""
    if "=" not in line:
        return False
    formula = _WORDS.match(line) or _FORMULA.match(line)
    return formula is not None and formula[2] is not None and _is_type(formula[2])


def _name(text: str, line: int) -> str:
    try:
        if text.startswith('"'):
            return _unquote(text)
    except ProcedureError as error:
        raise ProcedureError(error.message, line=line) from error
    if (hidden := struck_or_hidden(text)) is not None:
        raise UnclearWords(f"{hidden}: put the name in quotes if it is meant", line=line)
    return text


def _format_name(name: str) -> str:
    plain = f"name: {name}"
    quoted = name.startswith('"') or assigns(name) or len(plain.splitlines()) > 1 or _typed_step(plain)
    quoted = quoted or struck_or_hidden(name) is not None
    return f"name: {json.dumps(name)}" if quoted else plain


def parse_line(line: str, number: int, names: Collection[str]) -> tuple[Step, int]:
    """One step from a line with its label, and the number that it or the last step before it bears.

    Args:
        line: the line.
        number: the number of the last step that bears one.
        names: the inputs and the steps before it.
    """
    label = _LABEL.match(line)
    own = (label[1] or label[2] or label[3]) if label else None
    if own is not None:
        if int(own) <= number:
            raise ProcedureError(f"step number {int(own)} follows {number}: numbers must increase")
        number = int(own)
    body = line[label.end() :] if label else line
    return parse_step(body, f"step{number}" if own else None, names), number


def parse_step(body: str, default_id: str | None = None, names: Collection[str] = ()) -> Step:
    """One step from a line without its number.

    Args:
        body: the line.
        default_id: names a step of words alone.
        names: the inputs and the steps before it; words that hold a formula over them are refused.

    Raises:
        UnclearWords: words say more than a description does, or cannot be read for certain.
        ProcedureError: it is no step.
    """
    if (hidden := struck_or_hidden(_unquoted(body))) is not None:
        raise UnclearWords(f"{hidden}: leave the line out, or write it as it is meant")
    quoted = _WORDS.match(body)
    if quoted:
        reads = [name.strip() for name in (quoted[4] or "").split(",") if name.strip()]
        return Step(quoted[1], instruction=_unquote(quoted[3]), type=quoted[2], reads=reads)
    instruction: str | None = None
    if body.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', body)
        if end is None:
            raise ProcedureError("the quoted instruction is not closed")
        instruction = _unquote(end[0])
        formula = _formula(body, end.end() + len(body[end.end() :]) - len(body[end.end() :].lstrip(": ")))
    else:
        formula, colons = _formula(body, 0), _COLON.finditer(body)
        # Words may hold colons of their own: try each as the end of the instruction.
        while formula is None and (colon := next(colons, None)) is not None:
            formula = _formula(body, colon.end())
            instruction = None if formula is None else body[: colon.start()]
    if formula is None:
        return _words(body, default_id, names)
    performer: Performer = "code" if formula[3] else "model"
    expression = _COMMENT.sub("", formula[4])
    step = Step(formula[1], expression, instruction=instruction, type=formula[2], performer=performer)
    assert step.expression is not None
    operands, comment = (step.id, *step.reads), formula[4][len(expression) :]
    free = None if body.startswith('"') else step.instruction
    if free is not None and (word := unclear(free, operands, step.expression, "text")) is not None:
        raise UnclearWords(
            f"the words {shorten(free, 60)!r} may say more than what is worked out ({word!r}), and the formula is "
            "carried out always, and once: begin them with a verb or with what is worked out, such as `Work out the "
            "total: ...`, and leave conditions out; words that are only a description may stand in quotes"
        )
    if comment and (word := unclear(comment, operands, step.expression, "comment")) is not None:
        raise UnclearWords(
            f"{word!r} in the comment {comment.strip()[:60]!r} may say whether, when or how often the formula applies, "
            "and nobody would heed it: leave it out"
        )
    return step


def _formula(body: str, start: int) -> re.Match[str] | None:
    """The formula that stands from `start` to the end, with or without Markdown's backticks around it."""
    quoted = _BACKTICKS.match(body, start)
    formula = _FORMULA.match(quoted[1] if quoted else body, 0 if quoted else _BLANKS.match(body, start).end())  # type: ignore[union-attr]
    if formula is None or formula[2] is None or _is_type(formula[2]):
        return formula
    # `t1: intger = x` has a wrong type; in `Total: t1 = x` the word is the instruction.
    looks_like_variable = not formula[1].isalpha()
    looks_like_type = bool(get_close_matches(formula[2].lower(), _TYPE_WORDS, cutoff=0.75))
    no_formula_behind = _FORMULA.match(formula.string, formula.start(2)) is None
    return formula if looks_like_variable or looks_like_type or no_formula_behind else None


def _is_type(text: str) -> bool:
    try:
        ValueType.parse(text)
    except ConfigError:
        return False
    return True


def _words(body: str, default_id: str | None, names: Collection[str]) -> Step:
    if body.startswith("(") and body.endswith(f"{_NO_TEXT})"):
        raise ProcedureError(f"{body[:60]!r}: checks and options stand in YAML, JSON or Python, not in text")
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*\s*:=", body):
        raise ProcedureError("write = for :=")
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*\s*==", body):
        raise ProcedureError(f"write = for ==, or give the comparison a name: `ok = {body[:60]}`")
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*\s*=", body):
        raise ProcedureError("nothing follows the equals sign")
    hidden = find_hidden(body, names)
    if hidden is not None:
        raise HiddenFormula(hidden)
    if (word := steers(body)) is not None:
        raise UnclearWords(
            f"{word!r} in {shorten(body, 60)!r} says whether or how often other steps are carried out, and nobody "
            "would heed it: each step is carried out, once. Write what is to be answered in one step, or leave it out"
        )
    typed = _TYPED.match(body)
    if typed is not None and (_is_type(typed[3]) or "(" in typed[3]):
        words = (typed[1] or "Read it").strip()
        raise ProcedureError(
            f"{body[:60]!r} looks like words for a value with a name and a type: write "
            f"`{typed[2]}: {typed[3]} = {json.dumps(words, ensure_ascii=False)} (reads ...)`"
        )
    if default_id is None:
        raise ProcedureError(
            f"{body[:60]!r} is neither a formula (`t1 = x + y`) nor a numbered instruction (`1. Read the total`)"
        )
    return Step(default_id, instruction=body)


def _unquoted(text: str) -> str:
    """A text without what stands in quotes; one that is never closed quotes nothing."""
    return _QUOTED.sub(lambda match: "" if match["closed"] else match[0], text) if '"' in text else text


def _unquote(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ProcedureError(f"the quoted instruction is not a JSON string: {error}") from error


def _format_step(step: Step) -> str:
    line = _format_line(step)
    usual = Step("usual", step.expression, instruction=None if step.expression else step.instruction)
    beside = [f"check {check!r}" for check in step.checks]
    options = [name for name in ("show_work", "with_next") if getattr(step, name) != getattr(usual, name)]
    beside += [f"{name} {str(getattr(step, name)).lower()}" for name in options]
    return "\n".join([line, *(f"    ({' '.join(check.split())}: {_NO_TEXT})" for check in beside)])


def _format_line(step: Step) -> str:
    if step.expression is None:
        assert step.instruction is not None
        reads = f" (reads {', '.join(step.reads)})" if step.reads else ""
        return f"{step.id}: {step.type} = {json.dumps(step.instruction)}{reads}"
    kind = "" if step.type == NUMBER else f": {step.type}"
    line = f"{step.id}{kind} = {'by code ' if step.performer == 'code' else ''}{step.formula}"
    if step.instruction is None:
        return line
    plain = f"{step.instruction}: {line}"
    return plain if _reads_back(plain, step) else f"{json.dumps(step.instruction)}: {line}"


def _reads_back(line: str, step: Step) -> bool:
    special = line.startswith(("#", "\ufeff"))  # a comment, or what looks like a byte order mark
    if special or "\n" in line or _HEADER.match(line) or _LABEL.match(line) or _FENCE.match(line):
        return False
    try:
        return len(line.splitlines()) == 1 and parse_step(line.strip()) == step
    except (ProcedureError, ExpressionError, ConfigError):
        return False


def _line_of(steps: Sequence[Step], lines: Sequence[int], names: set[str], answer_line: int) -> int:
    """The line of the first step that cannot stand where it does; the answer's where there is none."""
    for step, at in zip(steps, lines, strict=True):
        if step.id in names or not names.issuperset(step.reads):
            return at
        names.add(step.id)
    return answer_line or lines[-1]
