"""Find the procedure and the input values that a chat call asks the guard to run.

Both come from the call. A host may trust messages of some roles, too (`stepguard.integrations.chat.trust.Trust`); by
default none are read.

A message of a role that is trusted with procedures is one where it holds nothing else, in the notation of
`stepguard.procedure.notation`::

    inputs: price, quantity
    price = 24.90
    quantity = 3
    subtotal = price * quantity
    total: decimal(2) = subtotal * 1.0825

The ``inputs:`` line marks it, with nothing behind it where there are none; values may stand directly below it. It is
read where it stands in a system message, or in what the user says now (behind the last answer). One among other text,
in a block, or in one of several parts, is an error: what is quoted is not meant.

A message of a role that is trusted with inputs gives them where it holds nothing else: as lines ``name = value``, each
once; as a JSON object, ``{"price": "24.90", "quantity": 3}``; or, for a procedure whose only input is a text, as that
text, word for word, whatever it looks like. What stands behind an equals sign is read as the type of the input says;
text may be a JSON string. Lines of values among other text are an error.

Nothing is guessed. What else stands in the messages is neither read nor sent to the model; `Job.left_out` says how much
it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from stepguard.core.arguments import check_mapping
from stepguard.errors import ConfigError, InputError, ProcedureError
from stepguard.integrations.chat.input_values import exact_values, line_value, put_value, take_values
from stepguard.integrations.chat.messages import (
    COMMENT,
    INPUTS,
    NAME,
    SYSTEM,
    VALUE,
    ChatMessage,
    PassReason,
    current_turn,
    is_procedure,
    pass_reason,
    read_messages,
    split_lines,
)
from stepguard.integrations.chat.trust import ROLES, Trust
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation import read_inputs
from stepguard.procedure.procedure import Procedure

IN_PROMPT: Final = "(prompt)"
"""The label in logs, traces and metrics of a procedure from a prompt, whose own name is content."""

JobSource = Literal["named", "prompt"]
"""Where a call's procedure came from: it was named, or it stood in the messages."""


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
    found: JobSource
    left_out: int = 0

    @property
    def label(self) -> str:
        """The label of the procedure in logs, traces and metrics."""
        return self.procedure.name if self.found == "named" else IN_PROMPT


_REASONS: Final[Mapping[PassReason, str]] = {
    "no_procedure": "it names no procedure",
    "not_trusted": "a message looks like a procedure, and its role is not trusted (Trust(procedures=...))",
    "steps_in_words": "a system message numbers steps in words, and no procedure is made of prose: write it as one",
}


def find_job(
    messages: object,
    *,
    procedures: Mapping[str, Procedure] | None = None,
    named: Procedure | str | None = None,
    inputs: Mapping[str, object] | None = None,
    trust: Trust = Trust(),  # noqa: B008 - it does not change
) -> Job | None:
    """What a chat call asks the guard to do; None for a call that asks for no procedure.

    Args:
        messages: the messages of the call: dictionaries, or objects with ``role`` and ``content``.
        procedures: procedures that can be named.
        named: a procedure, the name of one of `procedures`, or one as text. None: a message that is one, if any.
        inputs: the values of inputs, beside those that stand in a procedure of the messages. None: those in messages.
        trust: which messages are read at all.

    Raises:
        ProcedureError: what was meant as a procedure is none; `line` is the line of its message.
        InputError: the values do not fit the procedure.
        ConfigError: the call cannot be understood without guessing.
    """
    check_mapping(inputs, "inputs", optional=True)
    read = list(read_messages(messages))
    now = {each.index for each in current_turn(read)}
    # Older turns were answered already: a procedure or values in them must not run again.
    current = [each for each in read if each.role in SYSTEM or each.index in now]
    given: dict[str, object] = {}
    source: ChatMessage | None = None
    if named is not None:
        procedure = named_procedure(named, procedures)
    else:
        found = [each for each in current if each.role in trust.procedures and is_procedure(each)]
        if not found:
            if inputs is not None:
                raise ConfigError("inputs are given, and no procedure: name one", option="inputs")
            return None
        if len(found) > 1:
            places = ", ".join(str(each.index + 1) for each in found)
            raise ConfigError(f"{len(found)} messages are procedures ({places}): one call runs one", option="messages")
        source = found[0]
        procedure, given = _parse(source)
    # The guard sends text alone: an image would be left out without a word.
    if any(each.more and each.role in ROLES for each in read):
        raise ConfigError("a guarded call reads text alone: leave images, sound and files out", option="messages")
    used = 0 if source is None else len(source.text)
    if inputs is not None:
        for name, value in exact_values(inputs, procedure):
            put_value(given, name, value)
    else:
        tellers = [each for each in current if each is not source and each.role in trust.inputs]
        used += sum(take_values(given, procedure, each) for each in tellers)
    if source is not None:
        _answers_the_user(source, read, now, told=inputs is not None or used > len(source.text))
    return _job(procedure, given, trust, "named" if source is None else "prompt", read, used)


def why_passed(messages: object, *, guarded_only: bool = False) -> PassReason:
    """Why a call is not guarded, of which `find_job` says that it asks for no procedure.

    Raises ConfigError: the host wants none.
    """
    reason = pass_reason(list(read_messages(messages)))
    if guarded_only:
        raise ConfigError(
            f"the call would not be guarded, and guarded_only is set: {_REASONS[reason]}", option="procedure"
        )
    return reason


def named_procedure(named: object, procedures: Mapping[str, Procedure] | None = None) -> Procedure:
    """Resolve a procedure given as a `Procedure`, by name, or as text.

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
    # No name of a procedure holds these; what else is unknown is a name that was misspelt.
    if "\n" in named or "=" in named:
        return Procedure.parse(named)
    near = get_close_matches(named, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known)[:10]) or 'none'}"
    raise ConfigError(f"no procedure is named {named[:60]!r}: {hint}", option="procedure")


def _answers_the_user(source: ChatMessage, read: Sequence[ChatMessage], now: Collection[int], *, told: bool) -> None:
    """Check that the conversation waits for a run of the procedure in a message.

    Args:
        source: the message that is the procedure.
        now: the indices of what the user says now.
        told: whether the call, or a message, gives values.

    Raises:
        ConfigError: it waits for something else.
    """
    if read[-1].role not in ROLES:
        raise ConfigError(
            f"message {source.index + 1} is a procedure, and the last one is {read[-1].role!r}: a guarded call "
            "answers the user, whose message has to be the last",
            option="messages",
        )
    if source.index not in now and not told and any(read[index].text.strip() for index in now):
        raise ConfigError(
            f"a {source.role} message is a procedure, and what the user says gives no value of its inputs: give some "
            "(`inputs=`, or messages of a trusted role), or ask the client that is not wrapped",
            option="messages",
        )


def _parse(message: ChatMessage) -> tuple[Procedure, dict[str, object]]:
    """The procedure that a message is, and the values that stand in it."""
    lines = split_lines(message.text)
    given: dict[str, object] = {}
    declared: dict[str, Input] | None = None
    try:
        for at, line in enumerate(map(str.strip, lines)):
            if not line or line.startswith("#") or (declared is None and NAME.match(line)):
                continue
            if declared is None and (header := INPUTS.match(line)):
                declared = _declared(header[1], at + 1)
                continue
            value = VALUE.match(line)
            if declared is None or value is None or value[1] not in declared:
                break  # the first step
            put_value(given, value[1], line_value(value[2], declared[value[1]]))
            lines[at] = ""
        return Procedure.parse("\n".join(lines)), given
    except ProcedureError as error:
        raise ProcedureError(
            f"{error.message} (the procedure in message {message.index + 1})", line=error.line, step=error.step
        ) from error


def _declared(header: str, line: int) -> dict[str, Input]:
    header = COMMENT.sub("", header)
    if (inline := VALUE.match(header)) is not None:
        raise ProcedureError(
            f"values stand in lines of their own below: `inputs: {inline[1]}`, then `{header.partition(',')[0]}`",
            line=line,
        )
    return {each.name: each for each in read_inputs(header, line)}


def _job(
    procedure: Procedure,
    given: Mapping[str, object],
    trust: Trust,
    found: JobSource,
    read: Sequence[ChatMessage],
    used: int,
) -> Job:
    for each in procedure.inputs:
        if each.name not in given and each.default is None:
            roles = ", ".join(sorted(trust.inputs))
            way = (
                f", or in a message of {roles} that holds nothing else, as a line `{each.name} = 12` or a JSON object"
                if roles
                else " (no message is read for it: Trust(inputs=...) names roles that may give it)"
            )
            raise InputError(
                f"input {each.name!r} of {procedure.name} has no value: give it in `inputs` of the call{way}",
                name=each.name,
            )
    procedure.accept_inputs(given)
    return Job(procedure, given, found, max(0, sum(len(each.text) for each in read) - used))
