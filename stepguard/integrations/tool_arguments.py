"""The inputs of a procedure as the arguments of a tool that a model calls.

A tool is described by a JSON Schema of the strict kind: every input is required, and nothing else is allowed. Numbers
may be written as numbers or as text; either way their digits are taken as they stand, and no float comes between. A
percentage is text with its sign, as everywhere (see `stepguard.language.value_types`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stepguard.core.verdicts import shorten
from stepguard.errors import InputError, ValueRefused
from stepguard.language.records import Record
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.terms.type_remedies import suggestion
from stepguard.language.value_json import INEXACT_IN_JSON
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value, show_value
from stepguard.procedure.inputs import Input
from stepguard.procedure.procedure import Procedure

_MOST: Final = 5
"""How many problems of one call are named."""


def arguments_schema(inputs: Sequence[Input]) -> dict[str, Any]:
    """The JSON Schema of an object with these inputs, of which none may be left out."""
    return {
        "type": "object",
        "properties": {each.name: _schema(each.type) for each in inputs},
        # All of them, also those with defaults: the strict mode of OpenAI requires it.
        "required": [each.name for each in inputs],
        "additionalProperties": False,
    }


def read_arguments(procedure: Procedure, text: str) -> dict[str, object]:
    """The inputs of a run, as a `Guard` takes them, from the arguments of a tool call, as the JSON text that came.

    Raises InputError: they do not fit. The message names every problem and what is expected, for whoever made the call.
    """
    try:
        given = decode(text.strip() or "{}")
    except ValueError:
        given = None
    if not isinstance(given, JsonObject):
        raise InputError(_problems_text(["the arguments are no JSON object"], procedure.inputs))
    declared = {each.name: each for each in procedure.inputs}
    problems = [f"{_quoted(name)} is given twice" for name in sorted(given.repeated)]
    unknown = [name for name in given if name not in declared]
    problems += [f"there is no {_quoted(name)}{suggestion(name, declared)}" for name in unknown]
    fitting: dict[str, object] = {}
    for name, each in declared.items():
        if name not in given:
            if each.default is None:
                problems.append(f"{name!r} is missing")
            continue
        try:
            accept_json(each.type, given[name])
        except ValueRefused as error:
            problems.append(f"{name!r}: {error}")
        else:  # as it was written: of a percentage the value says less
            fitting[name] = str(given[name]) if isinstance(given[name], JsonNumber) else given[name]
    if problems:
        raise InputError(_problems_text(problems, procedure.inputs))
    return fitting


def accept_json(kind: ValueType, given: object) -> Value:
    """A value of JSON, as `stepguard.language.strict_json` decodes it, or of Python, as a value of a type.

    Raises ValueRefused: it is none, or would have to be rounded.
    """
    if isinstance(given, JsonNumber):
        if kind.numeric:
            return kind.accept(str(given))
        raise ValueRefused(f"a value of type {kind} was expected, found a bare number", text=str(given))
    if given is None or (isinstance(given, Mapping | list) and not kind.structured):
        found = "null" if given is None else "a list" if isinstance(given, list) else "an object"
        raise ValueRefused(f"a value of type {kind} was expected", text=found)
    return kind.accept(given)


def shown_value(kind: ValueType, value: Value) -> object:
    """A value as a model reads it beside its name, as JSON: with its unit, and exactly.

    What a step sets in a loop is a list of values of its type.
    """
    if isinstance(value, tuple):
        return [shown_value(kind.items or kind, each) for each in value]
    if isinstance(value, Record):
        return {key: shown_value(_field(kind, key), each) for key, each in value.items()}
    if isinstance(value, bool) or (type(value) is int and kind.kind != "percent" and abs(value) < INEXACT_IN_JSON):
        return value
    if kind.kind == "percent":
        return kind.write(value)
    return f"{show_value(value)} {kind.currency}" if kind.kind == "money" else show_value(value)


def _field(kind: ValueType, key: str) -> ValueType:
    return (None if kind.record is None else kind.record.get(key)) or TEXT


def _schema(kind: ValueType) -> dict[str, Any]:
    match kind.kind:
        case "boolean":
            return {"type": "boolean"}
        case "one_of":
            return {"type": "string", "enum": list(kind.options)}
        case "list" if kind.items is not None:
            return {"type": "array", "items": _schema(kind.items)}
        case "record" if kind.record is not None:
            return {
                "type": "object",
                "properties": {key: _schema(each) for key, each in kind.record.fields},
                "required": [key for key, _ in kind.record.fields],
                "additionalProperties": False,
            }
        case "date" | "time" | "duration" | "period" | "quantity":
            return {"type": "string", "description": _described(kind)}
        case "text" | "percent":
            described = {"description": _described(kind)} if kind.kind == "percent" else {}
            return {"type": "string", **described}
        case whole:
            # Text as well: a number with more digits than a float holds arrives whole only so.
            number = "integer" if whole == "integer" else "number"
            return {"anyOf": [{"type": number}, {"type": "string"}], "description": _described(kind)}


def _described(kind: ValueType) -> str:
    places = "" if kind.places is None else f", at most {kind.places} decimal places"
    match kind.kind:
        case "integer":
            return "a whole number"
        case "number" | "decimal":
            return f"an exact number{places}"
        case "percent":
            return f"a percentage with the sign %{places}"
        case "money":
            return f"an amount in {kind.currency}{places}"
        case "one_of":
            return f"one of {', '.join(kind.options)}"
        case "boolean":
            return "true or false"
        case "list":
            return f"a list, each {_described(kind.items)}" if kind.items is not None else "a list"
        case "record":
            return f"an object with {', '.join(key for key, _ in kind.record.fields)}" if kind.record else "an object"
        case "quantity":
            return f"an amount with its unit, in {kind}"
        case _:
            return _MEASURES[kind.kind]


_MEASURES: Final = {
    "text": "text",
    "date": "a date, as YYYY-MM-DD",
    "time": "a time, as HH:MM",
    "duration": "a number of days, hours or minutes",
    "period": "a number of years, months, weeks, days or working days",
}


def _problems_text(problems: Sequence[str], inputs: Sequence[Input]) -> str:
    more = len(problems) - _MOST
    listed = "; ".join(problems[:_MOST]) + (f"; {more} more" if more > 0 else "")
    wanted = "; ".join(f"{each.name}: {_described(each.type)}" for each in inputs) or "no arguments"
    return f"{listed}. Expected: {wanted}"


def _quoted(name: str) -> str:
    return repr(shorten(name, 40))
