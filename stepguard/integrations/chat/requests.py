"""A procedure and the values of its inputs, as they stand in chat messages.

A prompt holds a procedure, in the notation of `stepguard.procedure.text_format`, as a whole message or as a fenced
block in one::
    Work out this order.

    ```procedure
    inputs: price, quantity
    price = 24.90
    quantity = 3
    subtotal = price * quantity
    total: decimal(2) = subtotal * 1.0825
    ```

The ``inputs:`` line marks it, with nothing behind it where there are none. A block that is called ``procedure`` or
``stepguard`` needs no such mark; blocks in other languages are left alone.

The values of inputs are given, each once, by

* lines ``name = value``, directly below ``inputs:`` or outside of blocks, each a line of its own. No step is called
  like an input, so no such line is a step. The value is all that stands behind the equals sign, as the type of the
  input reads it; text may be a JSON string;
* a JSON object, ``{"price": "24.90", "quantity": 3}``, as a whole message or in a ``json`` or ``inputs`` block.

A procedure stands in what the user says now (the messages behind the last answer), or in a system message, with the
values in what the user says. Nothing is guessed: what only resembles a procedure (a line ``a = b``, a numbered list)
is none, and what was clearly meant as one but cannot be run is an error. What else stands in the messages is neither
read nor sent to the model; `Job.left_out` says how much it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Final, Literal

from stepguard.errors import ConfigError, InputError, ProcedureError
from stepguard.integrations.chat.messages import (
    ANSWERS,
    COMMENT,
    DATA,
    INPUTS,
    NAME,
    SYSTEM,
    VALUE,
    Parts,
    ProcedureText,
    Said,
    may_hold_procedure,
    read_messages,
    split_message,
    turn_of,
)
from stepguard.language.strict_json import JsonNumber, JsonObject, decode, decode_at
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Input
from stepguard.procedure.text_format import parse_inputs

__all__ = ["IN_PROMPT", "Found", "Job", "find_job", "named_procedure"]

IN_PROMPT: Final = "(prompt)"
"""What logs, traces and metrics call a procedure that stood in a prompt: its name is content."""

Found = Literal["named", "prompt"]
"""How a call came to its procedure: it was named, or it stood in the messages."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a chat call asks the guard to do.

    Attributes:
        procedure: what to run.
        inputs: the values of its inputs, as they were given; they fit the procedure.
        found: how the call came to its procedure.
        left_out: about how many characters of the messages are neither read nor sent to the model.
    """

    procedure: Procedure
    inputs: Mapping[str, object]
    found: Found
    left_out: int = 0

    @property
    def label(self) -> str:
        """What logs, traces and metrics call the procedure."""
        return self.procedure.name if self.found == "named" else IN_PROMPT


def find_job(
    messages: object,
    *,
    procedures: Mapping[str, Procedure] | None = None,
    named: Procedure | str | None = None,
    inputs: Mapping[str, object] | None = None,
) -> Job | None:
    """What a chat call asks the guard to do; None for a call that asks for no procedure.

    Args:
        messages: the messages of the call: dictionaries, or objects with ``role`` and ``content``.
        procedures: procedures that can be named.
        named: a procedure, the name of one of `procedures`, or one as text. Procedures in the messages are not looked
            for then, and values only where `inputs` is None. None: one that stands in the messages, if any.
        inputs: values of inputs; beside those in the messages, where the procedure stands there.

    Raises:
        ProcedureError: what was meant as a procedure is none; `line` is the line of its message.
        InputError: the values do not fit the procedure.
        ConfigError: the call cannot be understood without guessing.
    """
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ConfigError(f"inputs is a mapping of names to values, not {type(inputs).__name__}", option="inputs")
    said = list(read_messages(messages))
    turn = turn_of(said)
    given = dict(inputs or {})
    if named is not None:
        procedure = named_procedure(named, procedures)
        used = _take_values(given, procedure.inputs, map(split_message, turn)) if inputs is None else 0
        return _job(procedure, given, "named", said, used)
    now = {each.index for each in turn}
    searched = [each for each in said if (each.role in SYSTEM or each.index in now) and may_hold_procedure(each)]
    texts = [text for each in searched for text in split_message(each).procedures()]
    if not texts:
        if inputs is not None:
            raise ConfigError("inputs are given, and no procedure: name one, or write it in a message", option="inputs")
        return None
    if len(texts) > 1:
        places = ", ".join(f"message {text.message + 1} line {text.start}" for text in texts)
        raise ConfigError(f"the messages hold {len(texts)} procedures ({places}): one call runs one", option="messages")
    return _prompted(texts[0], said, turn, given)


def named_procedure(named: object, procedures: Mapping[str, Procedure] | None = None) -> Procedure:
    """The procedure that is meant by a `Procedure`, by the name of one, or by its text.

    Raises:
        ConfigError: no procedure has this name.
        ProcedureError: the text is no procedure.
    """
    if isinstance(named, Procedure):
        return named
    if not isinstance(named, str):
        raise ConfigError(
            f"a procedure is a Procedure, its text or a name, not {type(named).__name__}", option="procedure"
        )
    known = procedures or {}
    if named in known:
        return known[named]
    if "\n" in named or "=" in named:
        return Procedure.parse(named)
    near = get_close_matches(named, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known)[:10]) or 'none'}"
    raise ConfigError(f"no procedure is named {named[:60]!r}: {hint}", option="procedure")


def _prompted(text: ProcedureText, said: Sequence[Said], turn: Sequence[Said], given: dict[str, object]) -> Job:
    asked = bool(given)
    source = said[text.message]
    procedure, used = _parse(text, given)
    if said[-1].role in ANSWERS:
        raise ConfigError(
            f"message {source.index + 1} holds a procedure, and the last one is {said[-1].role!r}: a guarded call "
            "answers the user, whose message has to be the last",
            option="messages",
        )
    parts = [split_message(each) for each in (turn if source in turn else [source, *turn])]
    for part in parts:
        if text.whole and part.said is source:
            part.outside.clear()  # they are the procedure
    told = _take_values(given, procedure.inputs, [part for part in parts if part.said in turn])
    if source not in turn:
        if not (told or asked) and any(each.text.strip() for each in turn):
            raise ConfigError(
                f"a {source.role} message holds a procedure, and what the user says gives no value of its inputs: give "
                "some, move the procedure into the user's message, or ask the client that is not wrapped",
                option="messages",
            )
        told += _take_values(given, procedure.inputs, parts[:1])
    return _job(procedure, given, "prompt", said, used + told)


def _parse(text: ProcedureText, given: dict[str, object]) -> tuple[Procedure, int]:
    """The procedure, with the values that stand in it put into `given`, and how many characters it takes."""
    lines = list(text.lines)
    declared: dict[str, Input] | None = None
    try:
        for offset, line in enumerate(map(str.strip, text.lines)):
            if not line or line.startswith("#") or (declared is None and NAME.match(line)):
                continue
            if declared is None and (header := INPUTS.match(line)):
                declared = _declared(header[1], offset + 1)
                continue
            value = VALUE.match(line)
            if declared is None or value is None or value[1] not in declared:
                break  # the first step
            _put(given, declared[value[1]], _line_value(value[2], value[1]))
            lines[offset] = ""
        return Procedure.parse("\n".join(lines)), sum(len(line) + 1 for line in text.lines)
    except ProcedureError as error:
        at = None if error.line is None else error.line + text.start - 1
        raise ProcedureError(
            f"{error.message} (the procedure in message {text.message + 1})", line=at, step=error.step
        ) from error


def _declared(header: str, line: int) -> dict[str, Input]:
    header = COMMENT.sub("", header)
    if (inline := VALUE.match(header)) is not None:
        raise ProcedureError(
            f"values stand in lines of their own below: `inputs: {inline[1]}`, then `{header.partition(',')[0]}`",
            line=line,
        )
    return {each.name: each for each in parse_inputs(header, line)}


def _job(procedure: Procedure, given: Mapping[str, object], found: Found, said: Sequence[Said], used: int) -> Job:
    if any(each.more and each.role not in ANSWERS for each in said):
        raise ConfigError("a guarded call reads text alone: leave images, sound and files out", option="messages")
    for each in procedure.inputs:
        if each.name not in given:
            raise InputError(
                f"input {each.name!r} of {procedure.name} has no value: give it in a line of its own, such as "
                f'`{each.name} = 12`, in a JSON object, such as {{"{each.name}": 12}}, or as inputs=',
                name=each.name,
            )
    procedure.accept_inputs(given)
    return Job(procedure, given, found, max(0, sum(len(each.text) for each in said) - used))


def _take_values(given: dict[str, object], declared: Sequence[Input], parts: Iterable[Parts]) -> int:
    """Put the values that stand outside of the procedure into `given`; how many characters they took."""
    inputs = {each.name: each for each in declared}
    used = 0
    for part in parts:
        if (values := _object(part.said.text, inputs)) is not None:
            used += _put_all(given, inputs, values, len(part.said.text))
            continue
        for language, _, lines in part.blocks:
            if language in DATA and (values := _object("\n".join(lines), inputs)) is not None:
                used += _put_all(given, inputs, values, sum(len(line) + 1 for line in lines))
        for _, line in part.outside:
            value = VALUE.match(line.strip())
            if value is not None and value[1] in inputs:
                _put(given, inputs[value[1]], _line_value(value[2], value[1]))
                used += len(line) + 1
    return used


def _object(text: str, inputs: Mapping[str, Input]) -> JsonObject | None:
    """The JSON object of values that a text is; None where it is something else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = decode(text.strip())
    except ValueError:
        return None
    if isinstance(found, JsonObject) and list(found) == ["inputs"] and "inputs" not in inputs:
        found = found["inputs"]
    return found if isinstance(found, JsonObject) and not inputs.keys().isdisjoint(found) else None


def _put_all(given: dict[str, object], inputs: Mapping[str, Input], values: JsonObject, size: int) -> int:
    for name, value in values.pairs:
        if name not in inputs:
            raise InputError(f"there is no input {name!r}: there are {', '.join(inputs)}", name=name)
        if isinstance(value, JsonNumber):
            value = str(value) if inputs[name].type.numeric else _number(value)
        _put(given, inputs[name], value)
    return size


def _number(text: str) -> object:
    try:
        return Decimal(text)  # which an input of text refuses
    except InvalidOperation:
        return None


def _put(given: dict[str, object], declared: Input, value: object) -> None:
    if declared.name in given:
        raise InputError(f"input {declared.name!r} is given twice: keep one", name=declared.name)
    given[declared.name] = value


def _line_value(text: str, name: str) -> str:
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
    return value
