"""How a reply is structured: one field a step.

`EquationFormat` asks for an equation as text where a step has an expression (``"t1 * 3 = -21 * 3 = -63"``), and for an
object of work and value otherwise. Working comes before the value, in natural notation, because that is what models
do best. A value that is a record is an object itself, with its fields in order, a list an array. A format of your own
implements `ReplyFormat`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from stepguard.backends.base import ReplyFormat
from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Claim, Deviation, shorten
from stepguard.errors import ValueRefused
from stepguard.language.decimal_comma import with_comma, with_point
from stepguard.language.prose.remarks import without_affirmation, without_counted, without_opening, without_rounding
from stepguard.language.prose.retraction import retractions_in
from stepguard.language.strict_json import LATEX_LOST, JsonNumber, JsonObject, decode, encode
from stepguard.language.structures import leaves_changed
from stepguard.language.typeset import plain, unwrap
from stepguard.replies.response_models import FieldKind, response_model, shape_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.procedure.steps import Step

__all__ = ["EquationFormat", "JsonNumber", "ReplyFormat"]

_EQUALS = re.compile(r"(?<![<>=!:])=(?!=)|\u2248")  # also "about equal"; not the sign of a comparison
_VERBS: Final = (
    *("is", "equals", "gives", "makes", "yields", "ist", "ergibt", "macht", "est", "fait", "donne", "vaut"),
    *("\u00e9gale", "es", "is equal to", "ist gleich", "est \u00e9gal \u00e0", "es igual a"),
)
_SAYS_EQUAL = re.compile(
    rf"(?<![<>=!:\-])(?:-{{1,2}}|={{1,2}})>(?![>=])|[\u2192\u21d2\u27f6\u27f9]|{_EQUALS.pattern}"
    r"|,? (?:which )?round(?:s|ed) to(?= \S+\Z)"
    rf"|(?<=\s)(?:{'|'.join(sorted(_VERBS, reverse=True))})(?=\s)"
)
"""Also an arrow, or a verb that says so, between a working and its result, or between a result and the rounded one."""
_TWICE_EQUAL: Final = re.compile(r"(?<![<>=!:])==(?![>=])")
_SUM = re.compile(r"[(]?-?[0-9]+[)]?(?: [-+*/] [(]?-?[0-9]+[)]?)* = -?[0-9]+")
_COMPACT_SUM = re.compile(r"(?:-?[0-9]+|[(]-?[0-9]+[)])(?:[-+*/](?:[0-9]+|[(]-?[0-9]+[)]))*=-?[0-9]+")
_COMPACT_OPERATOR = re.compile(r"(?<=[0-9)])[-+*/]")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_MAX_LINKS: Final = 100  # every link is read and checked
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# What JSON makes of LaTeX: of frac, beta and right always; line breaks and tabs only where neq or times is left behind.
_NO_TEXT = re.compile(
    "[\x00\x08\x0c\ud800-\udfff]|\r(?!\n)|\t(?:imes|heta|ext ?[{]|frac ?[{0-9])|\n(?:eq|abla)(?![a-z])"
)
_OUTER_SPACE: Final = " \t\r\n"
_EDGES: Final = " \t\r\n&\u00a0\u2009\u202f\u2007\u3000"


_INSTRUCTIONS: Final = (
    "Answer with one JSON object. Its keys are the step names, in the order given, every step once and nothing "
    "else. For a step with a formula the entry is one line of text: the formula with the numbers filled in, an "
    "equals sign, the result. For a step in words the entry is an object with "
    '"work" (your working) and "value" (the result alone).'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationFormat:
    """Equation text for steps with an expression, work and value for the others.

    Args:
        decimal: the decimal separator that the model writes. With ``","``, ``1.234,5`` is 1234.5 and arguments are
            separated by a comma and a blank, or a semicolon; with the default, ``2,34`` is refused.
    """

    decimal: Literal[".", ","] = "."

    def __post_init__(self) -> None:
        check_one_of(self.decimal, (".", ","), "decimal")

    @property
    def instructions(self) -> str:
        """What the model is told about the format."""
        return _INSTRUCTIONS if self.decimal == "." else f"{_INSTRUCTIONS} Write decimals with a comma, not a point."

    def kind(self, step: Step) -> FieldKind:
        """Which kind of field a step is answered in."""
        if step.expression is None:
            return "work_and_value"
        return "equation" if step.show_work else "value"

    def answer(self, step: Step, work: str, value: str) -> object:
        """The field of an answer."""
        kind = self.kind(step)
        if step.type.structured and kind == "work_and_value":
            data = leaves_changed(step.type, json.loads(value), with_comma if self.decimal == "," else str)
            return {"work": work, "value": data}
        if self.decimal == "," and step.type.numeric:
            work, value = with_comma(work), with_comma(value)
        if kind == "equation":
            return f"{work} = {value}" if work else value
        return value if kind == "value" else {"work": work, "value": value}

    def claim(self, step: Step, field: object) -> Claim | Deviation:
        """Read one field; see `ReplyFormat.claim`."""
        if step.expression is None:
            field = _unwrapped(field) if isinstance(field, str) else field
            if step.type.structured:
                return self._structure(step, field)
        claim = self._claim(step, field)
        if self.decimal == "." or isinstance(claim, Deviation):
            return claim
        bare = isinstance(field, JsonNumber) or (isinstance(field, dict) and isinstance(field["value"], JsonNumber))
        try:
            # A number of JSON's own has a point, whatever people write; the working of a step in words is not read.
            value = with_point(claim.value) if step.type.numeric and not bare else claim.value
            work = tuple(map(with_point, claim.work)) if step.expression is not None else claim.work
        except ValueRefused as error:
            return Deviation("malformed", step.id, f"with a decimal comma: {error}")
        return replace(claim, work=work, value=value)

    def _claim(self, step: Step, field: object) -> Claim | Deviation:
        if step.expression is None:
            return self._object(step, field)
        text = _text(step, field)
        if text is None:
            return Deviation("malformed", step.id, f"text was expected, found {_describe(field)}")
        return _copied_text(step, text) if step.type.kind in ("text", "one_of") else _equation(step, text)

    def _object(self, step: Step, field: object) -> Claim | Deviation:
        if not isinstance(field, dict):
            return Deviation(
                "malformed", step.id, f"an object with work and value was expected, found {_describe(field)}"
            )
        keys = set(field)
        if keys != {"work", "value"}:
            odd = min(keys ^ {"work", "value"})
            what = "missing" if odd in ("work", "value") else "unexpected"
            return Deviation("malformed", step.id, f"{what} key {odd[:40]!r}")
        if isinstance(field, JsonObject) and field.repeated:
            return Deviation("malformed", step.id, f"the key {min(field.repeated)!r} stands twice in its entry")
        work, value = field["work"], _text(step, field["value"])
        if not isinstance(work, str) or value is None:
            wrong = work if not isinstance(work, str) else field["value"]
            return Deviation("malformed", step.id, f"work and value are text, found {_describe(wrong)}")
        if (odd := _odd_character(step, work, value)) is not None:
            return odd
        # Further on a tab may be meant; at the beginning it is what JSON leaves of \text or \nu.
        if step.type.kind == "text" and (bad := LATEX_LOST.match(value)) is not None:
            return Deviation("malformed", step.id, f"bad escaping: the character {bad[0][0]!r} begins the value")
        if step.type.kind not in ("text", "one_of") and (back := _taken_back(step, value)) is not None:
            return back
        shown = value.strip(_OUTER_SPACE)
        shown = shown if step.type.kind in ("text", "one_of") else _value(step, shown)
        return Claim(step.id, (work,) if work else (), shown, f"{work} = {value}")

    def _structure(self, step: Step, field: object) -> Claim | Deviation:
        """The entry of a step whose value has parts: work and value, or that value alone."""
        wrapped = isinstance(field, dict) and "value" in field and set(field) <= {"work", "value"}
        # A record with a field called value is not taken for a wrapper by that key alone.
        own = step.type.record is not None and step.type.record.get("value") is not None
        work, data = "", field
        if isinstance(field, JsonObject) and wrapped and not (own and "work" not in field):
            if field.repeated:
                return Deviation("malformed", step.id, f"the key {min(field.repeated)!r} stands twice in its entry")
            given, data = field.get("work", ""), field["value"]
            if not isinstance(given, str):
                return Deviation("malformed", step.id, f"work is text, found {_describe(given)}")
            work = given
        if isinstance(data, str):  # encoded twice
            with suppress(ValueError):
                data = decode(data.strip())
        if not isinstance(data, JsonObject | list):
            form = "an object" if step.type.record is not None else "a list"
            return Deviation("malformed", step.id, f"{form} was expected as the value, found {_describe(data)}")
        if (odd := _odd_character(step, work, *_texts_in(data))) is not None:
            return odd
        try:
            value = encode(leaves_changed(step.type, data, with_point) if self.decimal == "," else data)
        except ValueRefused as error:
            return Deviation("malformed", step.id, f"with a decimal comma: {error}")
        except ValueError as error:
            return Deviation("malformed", step.id, str(error))
        return Claim(step.id, (work,) if work else (), value, f"{work} = {value}" if work else value)

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        """The model of a reply, built once for each shape; a step with listed options may only answer one of them."""
        return response_model(tuple((step.id, self.kind(step), shape_of(step)) for step in steps))


def _odd_character(step: Step, *texts: str) -> Deviation | None:
    """What is wrong where a text of an entry holds what no text has, such as a control character."""
    bad = next(filter(None, map(_NO_TEXT.search, texts)), None)
    return None if bad is None else Deviation("malformed", step.id, f"bad escaping: the character {bad[0][0]!r}")


def _text(step: Step, field: object) -> str | None:
    """A field as the text it is in the reply; None where it is none. A step of truth values may use JSON's own."""
    if type(field) is str:
        return field
    if isinstance(field, bool) and step.type.kind == "boolean":
        return "true" if field else "false"
    return str(field) if isinstance(field, JsonNumber) else None


def _unwrapped(field: str) -> object:
    """The object inside a text, where an entry was encoded twice; otherwise the text."""
    if not field.lstrip().startswith("{"):
        return field
    try:
        return decode(field.strip())
    except ValueError:
        return field


def _copied_text(step: Step, text: str) -> Claim | Deviation:
    """The entry of a step that copies a text: what stands behind ``t1 = name =`` is verbatim, whatever it says."""
    if (odd := _odd_character(step, text)) is not None:
        return odd
    value = text
    work: tuple[str, ...] = ()
    for name in (step.id, step.formula or ""):
        head, equals, rest = value.partition("=")
        if equals and head.strip() == name:
            value = rest.strip(_OUTER_SPACE)
            work = () if name == step.id else (name,)
    return Claim(step.id, work, value, text)


def _equation(step: Step, text: str) -> Claim | Deviation:
    if _SUM.fullmatch(text) is not None:  # by far the most frequent: nothing in it has to be looked at any further
        work, _, value = text.partition(" = ")
        return Claim(step.id, (work,), value, text)
    if _COMPACT_SUM.fullmatch(text) is not None:
        work, _, value = text.partition("=")
        return Claim(step.id, (_COMPACT_OPERATOR.sub(r" \g<0> ", work),), value, text)
    line = without_opening(_without_name(unwrap(text.rstrip(_OUTER_SPACE)), step.id), step.id, step.reads)
    if step.type.numeric and "==" in line and "==" not in (step.formula or ""):  # code's way to say that it is so
        line = _TWICE_EQUAL.sub("=", line)
    if (bad := _UNPRINTABLE.search(line)) is not None:
        return Deviation("malformed", step.id, f"bad escaping: the character {bad[0]!r} in an equation")
    if (back := _taken_back(step, line)) is not None:
        return back
    links, at = [], 0
    parting = _SAYS_EQUAL if {step.id, *step.reads}.isdisjoint(_VERBS) else _EQUALS  # a variable may be called "is"
    for found in islice(parting.finditer(plain(line)), _MAX_LINKS + 1):
        links.append(line[at : found.start()].strip(_EDGES))
        command = _COMMAND.match(line, found.start())
        at = found.end() if command is None else command.end()
    links.append(line[at:].strip(_EDGES))
    if len(links) > _MAX_LINKS:
        return Deviation("malformed", step.id, f"an equation of more than {_MAX_LINKS} sides: {shorten(line)!r}")
    if len(links) > 1 and _folded(plain(links[0])) == _folded(step.id):  # "t_{1} = x + y = 12 + 7 = 19"
        del links[0]
    if not all(links):
        return Deviation("malformed", step.id, f"an equation with an empty side: {shorten(line)!r}")
    return Claim(step.id, tuple(links[:-1]), _value(step, links[-1]), text)


def _taken_back(step: Step, text: str) -> Deviation | None:
    names = {step.id, *step.reads}
    for phrase in retractions_in(text):
        if phrase not in names:  # a variable may be called "correction"
            return Deviation("self_correction", step.id, f"the entry takes something back: {shorten(text)!r}")
    return None


def _without_name(text: str, step_id: str) -> str:
    """An equation without the step's own name and a colon in front."""
    name, colon, rest = text.partition(":")
    return rest if colon and name.strip() == step_id else text


def _folded(name: str) -> str:
    return name.strip().replace("_", "")


def _value(step: Step, written: str) -> str:
    """The last side of an equation without what only affirms it or says that it is rounded as the step says.

    LaTeX around it goes where it is a number, but for fractions, which are read as they are.
    """
    asked = step.instruction if step.expression is None else None
    written = without_rounding(without_affirmation(written, asked), step.type, step.expression)
    written = written if step.expression is None else without_counted(written, step.id, step.type)
    if "\\" not in written or not (step.expression is not None or step.type.numeric):
        return written
    inside = unwrap(written)
    return inside if "frac" in inside else plain(inside).strip()


def _describe(field: object) -> str:
    if field is None:
        return "null"
    if isinstance(field, bool):
        return "a truth value"
    if isinstance(field, JsonNumber):
        return f"the bare number {shorten(field)}"
    if isinstance(field, str):
        return "text"
    return "an object" if isinstance(field, dict) else "a list" if isinstance(field, list) else type(field).__name__


def _texts_in(data: object) -> Iterator[str]:
    """Every text in decoded JSON, keys and numbers among them."""
    stack = [data]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, JsonObject):
            stack += [*node, *node.values()]
        elif isinstance(node, list):
            stack += node
