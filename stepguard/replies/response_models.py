"""The pydantic model of a reply, from which its JSON schema is made: a field a step, and nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from stepguard.backends.base import RESPONSE_NAME
from stepguard.language.value_types import ValueType

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.procedure.steps import Step

_MODULE: Final = "stepguard.replies.formats"
"""What the models say that they are from. It is part of a request where two records of one name are asked together,
which a schema tells apart by it: with another one no recorded reply to such a request would be found."""

FieldKind = Literal["equation", "value", "work_and_value"]

ValueShape = tuple[str, ...] | ValueType
"""What the schema says of a value: its options, or the type of one that has parts; of others nothing."""


def shape_of(step: Step) -> ValueShape:
    """What the schema says of the value of a step."""
    # An equation holds more than the option.
    if step.expression is not None and step.show_work:
        return ()
    return step.type if step.type.structured else step.type.options


@lru_cache(maxsize=512)
def response_model(shape: tuple[tuple[str, FieldKind, ValueShape], ...]) -> type[BaseModel]:
    """The model of a reply, by the id, the field and the value of each step in it."""
    from pydantic import ConfigDict, Field, create_model

    closed = ConfigDict(extra="forbid")

    def field_type(index: int, kind: FieldKind, of: ValueShape) -> object:
        value: Any = nested(of) if isinstance(of, ValueType) else Literal[of] if of else str
        if kind != "work_and_value":
            return value
        name = "Structure" if isinstance(of, ValueType) else "Choice"
        return work_and(f"WorkAnd{name}{index}", value) if of else words

    def nested(kind: ValueType) -> Any:
        if kind.items is not None:
            return list[nested(kind.items)]  # type: ignore[misc]
        if kind.record is None:
            return Literal[kind.options] if kind.options else bool if kind.kind == "boolean" else str
        inner: dict[str, Any] = {
            f"field{at}": (nested(of), Field(alias=key)) for at, (key, of) in enumerate(kind.record.fields)
        }
        return create_model(kind.record.name, __config__=closed, __module__=_MODULE, **inner)

    def work_and(name: str, value: Any) -> type[BaseModel]:
        # Pydantic 2.10 takes a field only as type and default.
        return create_model(name, __config__=closed, __module__=_MODULE, work=(str, ...), value=(value, ...))

    words = work_and("WorkAndValue", str)
    # Step ids are aliases: as attributes some would collide with pydantic's own names.
    fields: dict[str, Any] = {
        f"field{index}": (field_type(index, kind, of), Field(alias=step_id))
        for index, (step_id, kind, of) in enumerate(shape)
    }
    return create_model(RESPONSE_NAME, __config__=closed, __module__=_MODULE, **fields)
