"""The values of inputs, as the messages of a chat or a call give them; `stepguard.integrations.chat.requests` says how.

Nothing is guessed: what could be read in two ways, or is given twice, is an error that names the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

from stepguard.errors import InputError
from stepguard.integrations.chat.messages import COMMENT, VALUE, ChatMessage, split_lines
from stepguard.language.strict_json import JsonNumber, JsonObject, decode, decode_at
from stepguard.procedure.inputs import Input
from stepguard.procedure.procedure import Procedure


def take_values(given: dict[str, object], procedure: Procedure, message: ChatMessage) -> int:
    """Put the values that a message gives into `given`; how many characters it is, 0 where it gives none."""
    text = message.text
    if not text.strip():
        return 0
    inputs = {each.name: each for each in procedure.inputs}
    # Word for word, even where the text looks like values: it is the document.
    if message.role == "user" and [each.type.kind for each in procedure.inputs] == ["text"]:
        put_value(given, procedure.inputs[0].name, text)
        return len(text)
    if message.single and (values := _object(text, inputs)) is not None:
        for name, value in exact_values(values, procedure):
            put_value(given, name, value)
        return len(text)
    taken: dict[str, object] = {}
    other = None if message.single else 1
    for at, line in enumerate(map(str.strip, split_lines(text)), 1):
        value = VALUE.match(line)
        if value is not None and value[1] in inputs:
            put_value(taken, value[1], line_value(value[2], inputs[value[1]]))
        elif line and not line.startswith("#"):
            other = other or at
    if not taken:
        return 0
    if other is not None:
        raise InputError(
            f"message {message.index + 1} gives values of inputs among other text (line {other}), where they may be "
            "quoted: a message that gives values holds nothing else"
        )
    for name, value in taken.items():
        put_value(given, name, value)
    return len(text)


def _object(text: str, inputs: Mapping[str, Input]) -> JsonObject | None:
    """The JSON object of values that a text is; None where it is something else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = decode(text.strip())
    except ValueError:
        return None
    # {"inputs": {...}}: as the field of a request is written.
    if isinstance(found, JsonObject) and list(found) == ["inputs"] and "inputs" not in inputs:
        found = found["inputs"]
    return found if isinstance(found, JsonObject) and not inputs.keys().isdisjoint(found) else None


def exact_values(inputs: Mapping[str, object], procedure: Procedure) -> Iterator[tuple[str, object]]:
    """Inputs by name, the same one twice where JSON holds it twice; numbers of JSON have their digits as written."""
    types = {each.name: each.type for each in procedure.inputs}
    # By pairs: a mapping would silently keep the last of two values for one name.
    for name, value in inputs.pairs if isinstance(inputs, JsonObject) else inputs.items():
        if name not in types:
            known = ", ".join(types) or "none"
            raise InputError(f"{procedure.name} has no input {name!r:.60}: it declares {known}", name=str(name))
        if isinstance(value, JsonNumber):
            yield name, str(value) if types[name].numeric else _number(value)
        else:
            yield name, value


def _number(text: str) -> object:
    try:
        return Decimal(text)  # which an input of text refuses
    except InvalidOperation:
        return None


def put_value(given: dict[str, object], name: str, value: object) -> None:
    if name in given:
        raise InputError(f"input {name!r} is given twice: keep one", name=name)
    given[name] = value


def line_value(text: str, declared: Input) -> str:
    name = declared.name
    if text.startswith('"'):
        try:
            value, end = decode_at(text, 0)
        except ValueError:
            raise InputError(f"input {name!r}: the quoted text is not a JSON string", name=name) from None
        if isinstance(value, str) and not COMMENT.sub("", text[end:]).strip():
            return value
        raise InputError(f"input {name!r}: something follows the quoted text", name=name)
    value = COMMENT.sub("", text).strip()
    if not value:
        raise InputError(f"input {name!r}: nothing follows the equals sign", name=name)
    # "No. # 5": whether a comment begins at the sign cannot be told.
    if declared.type.kind == "text" and value != text.strip():
        raise InputError(f'input {name!r}: a text with # in it is a JSON string, such as "No. # 5"', name=name)
    return value
