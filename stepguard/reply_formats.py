"""How a reply is structured: one field a step.

`EquationFormat` asks for an equation as text where a step has an expression (``"t1 * 3 = -21 * 3 = -63"``), and for an
object of work and value otherwise. Working comes before the value, in natural notation, because that is what models
do best. A format of your own implements `ReplyFormat`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol

from stepguard.verdicts import Claim, Deviation

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.procedure import Step

__all__ = ["EquationFormat", "JsonNumber", "ReplyFormat"]

FieldKind = Literal["equation", "value", "work_and_value"]

_EQUALS = re.compile(r"(?<![<>=!:])=(?!=)|\u2248")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correct(?:ion|ed|ing)|sorry|oops|mistake|let me (?:re|fix|try)|i meant|no,|scratch that)\b",
    re.IGNORECASE,
)


class JsonNumber(str):
    """The digits of a JSON number, unread: no float stands between a reply and its check."""

    __slots__ = ()


class ReplyFormat(Protocol):
    """How steps are asked to be answered, and how the answer is read."""

    @property
    def instructions(self) -> str:
        """What the model is told about the format; part of the stable prefix of every prompt."""
        ...

    def answer(self, step: Step, work: str, value: str) -> object:
        """The field of a right answer, as JSON data: for demonstrations and test doubles."""
        ...

    def claim(self, step: Step, field: object) -> Claim | Deviation:
        """Read one field of a reply."""
        ...

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        """A pydantic model with exactly these steps as required fields, in order."""
        ...


class EquationFormat:
    """Equation text for steps with an expression, work and value for the others."""

    instructions = (
        "Answer with one JSON object. Its keys are the step names, in the order given, every step once and nothing "
        "else. For a step with a formula the entry is one line of text: the formula with the numbers filled in, an "
        "equals sign, the result. For a step in words the entry is an object with "
        '"work" (your working) and "value" (the result alone).'
    )

    def kind(self, step: Step) -> FieldKind:
        """Which kind of field a step is answered in."""
        if step.expression is None:
            return "work_and_value"
        return "equation" if step.show_work else "value"

    def answer(self, step: Step, work: str, value: str) -> object:
        """The field of an answer."""
        kind = self.kind(step)
        if kind == "equation":
            return f"{work} = {value}" if work else value
        return value if kind == "value" else {"work": work, "value": value}

    def claim(self, step: Step, field: object) -> Claim | Deviation:
        """Read one field; see `ReplyFormat.claim`."""
        if self.kind(step) == "work_and_value":
            return self._object(step, field)
        if not isinstance(field, str):
            return Deviation("malformed", step.id, f"text was expected, found {_describe(field)}")
        if isinstance(field, JsonNumber):
            return Claim(step.id, (), str(field), str(field))
        return _equation(step, field)

    def _object(self, step: Step, field: object) -> Claim | Deviation:
        if not isinstance(field, dict):
            return Deviation(
                "malformed", step.id, f"an object with work and value was expected, found {_describe(field)}"
            )
        keys = set(field)
        if keys != {"work", "value"}:
            odd = sorted(keys ^ {"work", "value"})[0]
            what = "missing" if odd in ("work", "value") else "unexpected"
            return Deviation("malformed", step.id, f"{what} key {odd[:40]!r}")
        work, value = field["work"], field["value"]
        if isinstance(value, bool) and step.type.kind == "boolean":
            value = "true" if value else "false"
        if not isinstance(work, str) or not isinstance(value, str):
            wrong = work if not isinstance(work, str) else value
            return Deviation("malformed", step.id, f"work and value are text, found {_describe(wrong)}")
        if (bad := _NO_TEXT.search(work + value)) is not None:
            return Deviation("malformed", step.id, f"bad escaping: the character {bad[0]!r}")
        return Claim(step.id, (work,) if work else (), str(value).strip(), f"{work} = {value}")

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        """The model of a reply, built once for each shape."""
        return _response_model(tuple((step.id, self.kind(step)) for step in steps))


def _equation(step: Step, text: str) -> Claim | Deviation:
    if (bad := _UNPRINTABLE.search(text)) is not None:
        return Deviation("malformed", step.id, f"bad escaping: the character {bad[0]!r} in an equation")
    if _TAKEN_BACK.search(text):
        return Deviation("self_correction", step.id, f"the entry takes something back: {_cut(text)!r}")
    links = [link.strip() for link in _EQUALS.split(text)]
    if len(links) > 1 and links[0] == step.id:  # "t1 = x + y = 12 + 7 = 19"
        del links[0]
    if not links[-1] or (len(links) > 1 and not all(links)):
        return Deviation("malformed", step.id, f"an equation with an empty side: {_cut(text)!r}")
    return Claim(step.id, tuple(links[:-1]), links[-1], text)


def _describe(field: object) -> str:
    if field is None:
        return "null"
    if isinstance(field, bool):
        return "a truth value"
    if isinstance(field, JsonNumber):
        return f"the bare number {_cut(field)}"
    return {str: "text", dict: "an object", list: "a list"}.get(type(field), type(field).__name__)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


@lru_cache(maxsize=512)
def _response_model(shape: tuple[tuple[str, FieldKind], ...]) -> type[BaseModel]:
    from pydantic import BaseModel, ConfigDict, Field, create_model

    class WorkAndValue(BaseModel):
        model_config = ConfigDict(extra="forbid")
        work: str
        value: str

    # Step ids are aliases: as attributes some would collide with pydantic's own names.
    fields: dict[str, object] = {
        f"field{index}": (WorkAndValue if kind == "work_and_value" else str, Field(alias=step_id))
        for index, (step_id, kind) in enumerate(shape)
    }
    return create_model("Steps", __config__=ConfigDict(extra="forbid"), **fields)  # type: ignore[call-overload, no-any-return]
