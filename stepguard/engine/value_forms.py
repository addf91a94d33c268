"""What a value is to look like, in the words in which a prompt asks for it."""

from __future__ import annotations

from typing import Final

from stepguard.engine.demonstrations import divides
from stepguard.engine.shown_values import quoted
from stepguard.language.quantities import write_unit
from stepguard.language.value_types import ValueType
from stepguard.procedure.steps import Step

_FORMS: Final = {
    "integer": "a whole number",
    "boolean": "true or false",
    "date": "a date, as YYYY-MM-DD",
    "time": "a time, as HH:MM",
    "duration": "a number of days, hours or minutes",
    "period": "a number of years, months, weeks, days or working days",
}


def value_form(step: Step) -> str:
    """What the value is to look like, in words; empty where the step says it all."""
    asked = [form] if (form := _own_form(step)) else []
    asked += [request for check in step.checks if isinstance(request := getattr(check, "request", None), str)]
    return "; ".join(asked)


def _own_form(step: Step) -> str:
    """The form of the value; without an example, which a weak model gives as its answer."""
    kind = step.type
    if kind.kind == "number" and kind.within is None:
        divided = step.expression is not None and divides(step.expression)
        return "exact (as a fraction where it does not come out)" if divided else ""
    if kind.kind in ("integer", "boolean") and step.expression is not None:
        return ""
    return _type_form(kind)


def _type_form(kind: ValueType) -> str:
    form = ""
    match kind.kind:
        case "percent":
            form = "as a percentage"
        case "money":
            form = f"in {kind.currency}"
        case "one_of":
            form = f"one of: {', '.join(map(quoted, kind.options))}"
        case "number" if kind.within is not None:
            form = f"at most {kind.within} from the exact value"
        case "quantity" if kind.unit is not None:
            form = f"an amount with its unit, in {write_unit(kind.unit)}"
        case "list" if kind.items is not None:
            inner = _type_form(kind.items)
            form = f"a JSON array, each {inner}" if inner else "a JSON array"
        case "record" if kind.record is not None:
            form = f"a JSON object with {', '.join(_field_form(*field) for field in kind.record.fields)}"
        case _:
            form = _FORMS.get(kind.kind, "")
    if kind.places is not None:
        form += f"{', ' if form else ''}rounded to {kind.places} decimal place{'' if kind.places == 1 else 's'}"
        form += f" ({kind.rounding.replace('_', ' ')})" if kind.rounding not in (None, "half_up") else ""
    return form


def _field_form(key: str, kind: ValueType) -> str:
    form = f"in {kind.currency}" if kind.kind == "money" else _type_form(kind)
    return f"{key} ({form})" if form else key
