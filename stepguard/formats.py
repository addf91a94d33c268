"""Procedures as text.

::

    name: invoice                        optional
    inputs: x, y, rate: decimal(2)       a type may follow each name; a number otherwise
    t1 = x + y
    t2: integer = t1 * 3                 a declared type
    Step 3: t3 = t2 * 4                  a label or number in front is allowed; numbers must increase
    4. Take off the fee: t4 = t3 - 5     words in front of the formula are the instruction
    5. Name the customer's country.      words alone: a step that only the model understands, unchecked
    t6: decimal(2, half_up) = by code t4 / 3     performed by code instead of the model
    answer: t4                           optional; the last step otherwise

Blank lines and lines starting with ``#`` are skipped, and `` # ...`` behind a formula is a comment. A numbered step
of words alone sets ``step5`` (its number). An instruction that cannot stand as it is (several lines, say) is written
as a JSON string. `str(procedure)` prints this notation, and parsing that gives an equal procedure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from stepguard.errors import ConfigError, ExpressionError, ProcedureError
from stepguard.expressions import MAX_LENGTH
from stepguard.procedure import Input, Performer, Procedure, Step, make_step_error
from stepguard.values import NUMBER, ValueType

__all__ = ["format_procedure", "load_procedure", "parse_procedure"]

_HEADER = re.compile(r"(name|inputs?|answer)\s*:\s*(.*)\Z", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:step\s+([0-9]{1,9})\s*[:.)]|([0-9]{1,9})\s*[.)](?=\s|[A-Za-z_])|[-*\u2022](?=\s))\s*", re.IGNORECASE
)
_FORMULA = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)\s*(?::\s*([a-z]+(?:\([^()=]*\))?)\s*)?=(?!=)\s*(by code\s)?\s*(\S.*)\Z", re.DOTALL
)
_WORDS = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)\s*:\s*([a-z]+(?:\([^()=]*\))?)\s*=\s*(\"(?:[^\"\\]|\\.)*\")\s*(?:\(reads ([^()]*)\))?\Z"
)
_COMMENT = re.compile(r"\s#(?=\s|\Z).*\Z")
_FENCE = re.compile(r"```\w*\s*\Z")


def parse_procedure(text: str) -> Procedure:
    """Read the notation above.

    Raises:
        ProcedureError: something in the text is wrong; `line` names where.
    """
    name, inputs, answer = "procedure", None, None
    steps: list[Step] = []
    lines: list[int] = []
    number = 0
    answer_line = 0
    for at, line in _lines(text):
        header = _HEADER.match(line)
        if header and not (header[1].lower() == "name" and "=" in line):
            key, rest = header[1].lower(), header[2].strip()
            if not rest and key != "inputs":
                raise ProcedureError(f"{key}: nothing follows", line=at)
            if key == "name":
                name = rest
            elif key == "answer":
                answer, answer_line = rest, at
            elif inputs is not None or steps:
                raise ProcedureError("inputs are declared once, before the first step", line=at)
            else:
                inputs = _inputs(rest, at)
            continue
        label = _LABEL.match(line)
        body = line[label.end() :] if label else line
        own = (label[1] or label[2]) if label else None
        if own is not None:
            if int(own) <= number:
                raise ProcedureError(f"step number {own} follows {number}: numbers must increase", line=at)
            number = int(own)
        try:
            steps.append(_step(body, f"step{number}" if own else None))
        except (ProcedureError, ExpressionError) as error:
            raise make_step_error(error, at) from error
        except ConfigError as error:
            raise ProcedureError(str(error), line=at) from error
        lines.append(at)
    if not steps:
        raise ProcedureError("no step found: write one step a line, such as `t1 = x + y`", line=1)
    try:
        return Procedure(steps, inputs=inputs or (), answer=answer, name=name)
    except ProcedureError as error:
        raise ProcedureError(error.message, line=_line_of(error, steps, lines, answer_line), step=error.step) from error


def load_procedure(path: Path) -> Procedure:
    """Read a procedure from a text file; what its last line cannot tell, the error names by line."""
    if path.suffix.lower() in (".yaml", ".yml", ".json", ".toml"):
        raise ProcedureError(f"{path.name}: only the text notation is read, not {path.suffix} files")
    try:
        return parse_procedure(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProcedureError(f"{path.name} is not UTF-8 text (byte {error.start})") from error


def format_procedure(procedure: Procedure) -> str:
    """The text of a procedure, in the notation above.

    Raises:
        ProcedureError: a step has something text cannot hold: user checks, or working that is not asked for.
    """
    head: list[str] = [] if procedure.name == "procedure" else [f"name: {procedure.name}"]
    if procedure.inputs:
        shown = [each.name if each.type == NUMBER else f"{each.name}: {each.type}" for each in procedure.inputs]
        head.append(f"inputs: {', '.join(shown)}")
    body = [_format_step(step) for step in procedure.steps]
    if procedure.answer != procedure.steps[len(procedure.steps) - 1].id:
        body.append(f"answer: {procedure.answer}")
    return "\n".join(head + body) + "\n"


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for at, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().lstrip("\ufeff")
        if not line or line.startswith("#") or _FENCE.match(line):
            continue
        if len(line) > MAX_LENGTH:
            raise ProcedureError(f"the line is too long: {len(line)} characters, at most {MAX_LENGTH}", line=at)
        yield at, line


def _inputs(text: str, line: int) -> tuple[Input, ...]:
    found: list[Input] = []
    for piece in re.split(r",(?![^()]*\))", text) if text else []:
        name, _, kind = piece.partition(":")
        try:
            found.append(Input(name.strip(), kind.strip() or NUMBER))
        except (ProcedureError, ConfigError) as error:
            raise ProcedureError(getattr(error, "message", str(error)), line=line) from error
    return tuple(found)


def _step(body: str, default_id: str | None) -> Step:
    quoted = _WORDS.match(body)
    if quoted:
        reads = [name.strip() for name in (quoted[4] or "").split(",") if name.strip()]
        return Step(quoted[1], instruction=_unquote(quoted[3]), type=quoted[2], reads=reads)
    instruction: str | None = None
    rest = body
    if body.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', body)
        if end is None:
            raise ProcedureError("the quoted instruction is not closed")
        instruction, rest = _unquote(end[0]), body[end.end() :].lstrip(": ")
    formula = _FORMULA.match(rest)
    while instruction is None and not _is_typed(formula):
        # Words may hold colons of their own: try each as the end of the instruction.
        words, colon, tail = rest.partition(":")
        if not colon:
            break
        start = body.index(tail, len(body) - len(tail)) if tail else len(body)
        rest = tail.lstrip()
        formula = _FORMULA.match(rest)
        if _is_typed(formula):
            instruction = body[: start - 1].strip()
    if formula is None or not _is_typed(formula):
        return _words(body, default_id)
    performer: Performer = "code" if formula[3] else "model"
    expression = _COMMENT.sub("", formula[4])
    return Step(formula[1], expression, instruction=instruction, type=formula[2], performer=performer)


def _is_typed(formula: re.Match[str] | None) -> bool:
    """Whether a match is a formula, and what stands before its colon not words that look like a type."""
    if formula is None:
        return False
    if formula[2] is None:
        return True
    try:
        ValueType.parse(formula[2])
    except ConfigError:
        # `total: foo = x` is a step with a wrong type unless what follows the colon is a formula itself.
        return _FORMULA.match(formula[0].partition(":")[2].lstrip()) is None
    return True


def _words(body: str, default_id: str | None) -> Step:
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*\s*=", body):
        raise ProcedureError("nothing follows the equals sign")
    if default_id is None:
        raise ProcedureError(
            f"{body[:60]!r} is neither a formula (`t1 = x + y`) nor a numbered instruction (`1. Read the total`)"
        )
    return Step(default_id, instruction=body)


def _unquote(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ProcedureError(f"the quoted instruction is not a JSON string: {error}") from error


def _format_step(step: Step) -> str:
    if step.checks or step.show_work != (step.expression is not None):
        raise ProcedureError(f"step {step.id!r} has checks or options that text cannot hold", step=step.id)
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
    if "\n" in line or line.startswith("#") or _HEADER.match(line) or _LABEL.match(line) or _FENCE.match(line):
        return False
    try:
        return len(line.splitlines()) == 1 and _step(line.strip(), None) == step
    except (ProcedureError, ExpressionError, ConfigError):
        return False


def _line_of(error: ProcedureError, steps: list[Step], lines: list[int], answer_line: int) -> int | None:
    if error.step is None:
        return answer_line or lines[-1]
    # A duplicate is complained about where it stands the second time.
    last = [at for step, at in zip(steps, lines, strict=True) if step.id == error.step]
    return last[1] if len(last) > 1 and "duplicate" in error.message else last[0]
