"""Read one line as people write a step, a label, words and a formula, as far as that is certain, or refuse it.

::

    t1 = x + y
    t2: integer = t1 * 3                 a declared type: see `stepguard.language.value_types`
    Step 3: t3 = t2 * 4                  a label or number in front
    4. Take off the fee: t4 = t3 - 5     words in front of the formula describe it
    5. Name the customer's country.      words alone: a step that only the model understands, unchecked
    t6: decimal(2, half_up) = by code t4 / 3     performed by code instead of the model

Markdown's ``**Step 3:**`` and backticks around a formula are allowed too. Where one word stands in front of a formula,
``t1: intger = x`` is a misspelt type and ``Total: t1 = x`` an instruction: what looks like a variable or like the name
of a type decides. A formula is carried out always, and once, so words beside it only describe it; words that may say
whether, when or how often it applies are refused (see `stepguard.language.prose.descriptions`), and so are words that
hold a formula over known values, since nothing would check it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expression_parsing import MAX_LENGTH
from stepguard.language.prose.descriptions import steers, struck_or_hidden, unclear
from stepguard.language.prose.hidden_formulas import find_hidden
from stepguard.language.value_types import ValueType
from stepguard.procedure.descriptions import UnclearWords
from stepguard.procedure.steps import Performer, Step

_BREAK = re.compile(r"\r\n|\r|\n")  # not `splitlines`: lines of a procedure are counted as editors do
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
_BACKTICKS = re.compile(r"\s*`([^`]*)`\Z")
_BLANKS = re.compile(r"\s*")
_COMMENT = re.compile(r"\s#(?=\s|\Z).*\Z")
_TYPE_WORDS = (
    *("integer", "int", "number", "num", "float", "decimal", "percent", "percentage", "money", "currency"),
    *("one_of", "oneof", "choice", "boolean", "bool", "text", "str", "string"),
)
# Nobody ends a sentence so: the step goes on in the next line.
# A wrapped line would otherwise become two steps, each of which means something else.
_DANGLING = re.compile(
    r"\b(?:a|an|the|of|to|for|with|from|by|in|on|at|and|or|it|is|are|as|until|if|when|that|which|this|its|not)\Z",
    re.IGNORECASE,
)
_ENDS = (".", "!", "?", ":", ";", "`", '"', ")", "\u3002")
_TYPED = re.compile(rf"(?:(.*)[:\uff1a])?\s*([A-Za-z_][A-Za-z0-9_]*)\s*[:\uff1a]\s*({_TYPE})[.\s]*\Z", re.DOTALL)
# One that is never closed quotes nothing, and hides nothing.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?P<closed>")?', re.DOTALL)
_NO_TEXT = "text cannot hold it, YAML can"
MAX_LINE = 4 * MAX_LENGTH
_FENCE = re.compile(r"```\w*\s*\Z")


class HiddenFormula(UnclearWords):
    """Words hold a formula that nothing would check."""


class ListItem:
    """The item of a list that stands above a line, which the line may go on with instead of being a step."""

    def __init__(self) -> None:
        self._indent = -1
        self._at = self._at_open = 0
        self._open = ""

    def goes_on(self, at: int, line: str, indent: int, step: Step, *, nested: bool = False) -> None:
        """Look at the next step. Raises ProcedureError: for a reader it is no step, but the rest of the item above."""
        label = _LABEL.match(line)
        if label is None and not nested and 0 <= self._indent < indent:
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


def split_lines(text: str) -> Iterator[tuple[int, str, int]]:
    """The lines that say something: number, text, and how far each is indented."""
    # Not `str.splitlines`: editors and this count of lines break at these characters only.
    for at, raw in enumerate(_BREAK.split(text.removeprefix("\ufeff")), 1):
        line = raw.strip()
        if line and not _FENCE.match(line):
            yield at, line, len(raw[: len(raw) - len(raw.lstrip())].expandtabs())


def label_of(line: str) -> re.Match[str] | None:
    """The number or the sign of a list in front of a line; its groups are the number."""
    return _LABEL.match(line)


def read_free_step(body: str, default_id: str | None = None, names: Collection[str] = ()) -> Step:
    """One step from a line without its number.

    Args:
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
        # Words may hold colons of their own: the first one with a whole formula behind it ends the instruction.
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
    # Words in quotes are a deliberate description; Step itself has checked them.
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
    # The printer writes what text cannot hold in such lines, so that it is not lost unseen when read back.
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
    # "total: money(EUR)": a declared value without its words, not an instruction of that text.
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
