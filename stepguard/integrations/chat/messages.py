"""Read chat messages: the current turn, messages that are a procedure, and those that only look like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from stepguard.errors import ProcedureError
from stepguard.integrations.chat.trust import ROLES

SYSTEM: Final = frozenset({"developer", "system"})

PassReason = Literal["no_procedure", "not_trusted", "steps_in_words"]
"""Why a call is not guarded.

==============  ================================================================================================
no_procedure    it names none, and no message looks like one
not_trusted     a message holds what looks like one, and the host does not trust its role (see `Trust`)
steps_in_words  a system message numbers steps in words: a procedure is never made out of prose by guessing. Write
                it as a `Procedure`, and name it in the call
==============  ================================================================================================
"""

# Whatever a message holds, these take time in proportion to it: hence the possessive repetitions.
INPUTS: Final = re.compile(r"inputs?\s*+:\s*+(.*)\Z", re.IGNORECASE)
NAME: Final = re.compile(r"name\s*+:\s*+\S", re.IGNORECASE)
VALUE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*+)\s*+=(?!=)\s*+(.*)\Z")
COMMENT: Final = re.compile(r"\s#(?=\s|\Z).*\Z")
_HINT: Final = re.compile(
    r"(?:\A|[\r\n])\ufeff?[ \t]*+(?:inputs?[ \t]*+:|(?:`{3,}+|~{3,}+)[ \t]*+(?:procedure|stepguard)\b)", re.IGNORECASE
)
_BREAK: Final = re.compile(r"\r\n|\r|\n")  # as procedures are split: not at other characters that `splitlines` knows
# Possessive: an unclosed fence must not be tried at every length.
_FENCE: Final = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+([^`\s]*+)[^`]*+\Z")
# What may stand behind the name of an input: "Inputs: please check them" is a sentence, and no header.
_DECLARED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\s*+(?:[,:=#]|\Z)")
# `t1 = x + y`, with the labels and bullets that people put in front of steps.
_FORMULA: Final = re.compile(
    r"(?:(?:\*\*)?(?:step\s*+)?[0-9]{1,9}+\s*+[:.)]\s*+(?:\*\*)?|[-*\u2022](?=\s))?\s*+"
    r"[A-Za-z_][A-Za-z0-9_]*+\s*+(?::[^=]*+)?=(?!=)\s*+\S",
    re.IGNORECASE,
)
# `Step 3: ...`, a step in words.
_LABEL: Final = re.compile(r"\s*+(?:step\s*+)?[0-9]{1,9}+[:.)]\s{1,20}+\S", re.IGNORECASE)
# As prose numbers its steps, parts of parts among them (2.1.3).
_NUMBERED: Final = re.compile(
    r"^[ \t>#*_]*+(?:\(?[0-9]{1,3}+(?:\.[0-9]{1,3}){0,20}[.):](?=[\s*_])|step[ \t]++[0-9]{1,3}+\b|\(?[a-z][.)](?=\s))",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED: Final = frozenset({"procedure", "stepguard"})
# What people name the language of a block that is in none.
_UNMARKED: Final = frozenset({"", "plain", "plaintext", "text", "txt"})
_TEXTS: Final = (None, "text", "input_text", "output_text")
"""The parts of a message that are what its role says; results of tools and files are not."""
_LONGEST_STEP: Final = 4000  # no step is longer, and each try parses it
_MOST_TRIES: Final = 100
"""How many ``inputs:`` lines of a text are followed up by parsing the line behind them."""
_INSTRUCTIONS: Final = ("instructions", "additional_instructions")
_LISTS: Final = ("messages", "input", "prompt", "items", "additional_messages")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message.

    Attributes:
        index: its place, from 0.
        role: who says it.
        text: what is said, its parts line by line.
        more: whether it holds more than text.
        single: whether the text is one; what comes in several parts is often an instruction and a document.
    """

    index: int
    role: str
    text: str
    more: bool = False
    single: bool = True


def is_procedure(message: ChatMessage) -> bool:
    """Whether a message is a procedure: ``inputs:`` comes first, steps follow, and there is nothing else.

    Raises ProcedureError: one stands in it, among other text or in a block.
    """
    if _HINT.search(message.text) is None:  # most are told at a glance
        return False
    lines = split_lines(message.text)
    meant = _means_procedure(lines)
    if meant and message.single:
        return True
    if (line := 1 if meant else _begins(lines)) is not None:
        raise ProcedureError(
            f"a procedure stands among other text (message {message.index + 1}): make it a message of its own, which "
            "begins with `inputs:`, or name it in the call",
            line=line,
        )
    return False


def pass_reason(messages: Sequence[ChatMessage]) -> PassReason:
    """Why a call with these messages, in which no trusted one is a procedure, is not guarded."""
    for message in messages:
        if message.role in ROLES and _HINT.search(message.text) is not None:
            lines = split_lines(message.text)
            if _means_procedure(lines) or _begins(lines) is not None:
                return "not_trusted"
    for message in messages:
        if message.role in SYSTEM and len(_NUMBERED.findall(message.text)) > 1:
            return "steps_in_words"
    return "no_procedure"


def read_messages(messages: object) -> Iterator[ChatMessage]:
    """The messages as far as they can be read; what cannot is the endpoint's to complain of."""
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        return
    for index, message in enumerate(messages):
        content, more, single = _get(message, "content"), False, True
        if isinstance(content, Sequence) and not isinstance(content, str | bytes):
            texts = [_get(part, "text") if _get(part, "type") in _TEXTS else None for part in content]
            more = not all(isinstance(text, str) for text in texts)
            readable = [text for text in texts if isinstance(text, str)]
            content, single = "\n".join(readable), len(readable) < 2
        yield ChatMessage(index, str(_get(message, "role")), content if isinstance(content, str) else "", more, single)


def read_arguments(arguments: Mapping[str, Any]) -> list[object]:
    """The messages of a request that is no chat completion."""
    messages: list[object] = [
        {"role": "system", "content": arguments[name]} for name in _INSTRUCTIONS if name in arguments
    ]
    if arguments.get("content"):
        messages.append({"role": "user", "content": arguments["content"]})
    for name in _LISTS:
        given = arguments.get(name)
        given = [given] if isinstance(given, str) else given
        if isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
            messages += [{"role": "user", "content": each} if isinstance(each, str) else each for each in given]
    thread = arguments.get("thread")
    return [*messages, *read_arguments(thread)] if isinstance(thread, Mapping) else messages


def current_turn(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages behind the last answer; an assistant message at the very end is a prefill, not an answer."""
    end = len(messages)
    while end and messages[end - 1].role == "assistant":
        # Clients may end with the beginning of the answer that they want.
        end -= 1
    start = end
    while start and messages[start - 1].role in ROLES:
        start -= 1
    return [each for each in messages[start:end] if each.role not in SYSTEM]


def split_lines(text: str) -> list[str]:
    """The lines of a message, without the mark that some editors put in front."""
    return _BREAK.split(text.removeprefix("\ufeff"))


def _get(given: object, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _means_procedure(lines: Sequence[str]) -> bool:
    """Whether a text is meant to be a procedure: ``inputs:`` comes first, and steps follow."""
    rest = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    if rest and NAME.match(rest[0].strip()):
        del rest[0]
    header = INPUTS.match(rest[0].strip()) if rest else None
    if header is None:
        return False
    names = _names(header[1])
    steps = [line for line in rest[1:] if not _gives_value(line.strip(), names)]
    if _DECLARED.match(header[1]) and any(_FORMULA.match(line.strip()) or _LABEL.match(line) for line in steps):
        return True  # what is wrong with it is to be complained of, and not to be answered unguarded
    try:
        from stepguard.procedure.notation import read_procedure  # with a parser that most calls do not need

        read_procedure("\n".join([rest[0], *steps]))
    except ProcedureError:
        return False
    return True


def _begins(lines: Sequence[str]) -> int | None:
    """The line at which a procedure begins inside of a text or in a block; None where none does."""
    fence, code = "", False
    at: int | None = None
    tries = 0
    names: frozenset[str] = frozenset()
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if (mark := _FENCE.match(line)) is not None:
            if not fence and mark[2].lower() in _MARKED:
                return number
            if not fence:
                # A block of another language is code, whatever it looks like; one without a language may hold a
                # procedure.
                fence, code = mark[1], mark[2].lower() not in _UNMARKED
            elif not mark[2] and mark[1].startswith(fence):
                fence, code = "", False
        elif code:
            continue  # of another language
        elif header := INPUTS.match(stripped):
            at = number if _DECLARED.match(header[1]) else None
            names = _names(header[1])
        elif at is not None and stripped and not _gives_value(stripped, names):
            tries += 1
            # Too many tries count as a procedure: refused by name rather than passed on unguarded.
            if tries > _MOST_TRIES or _is_step(stripped):
                return at
            at = None
    return None


def _names(header: str) -> frozenset[str]:
    return frozenset(name.partition(":")[0].strip() for name in COMMENT.sub("", header).split(","))


def _gives_value(line: str, names: frozenset[str]) -> bool:
    value = VALUE.match(line)
    return value is not None and value[1] in names


def _is_step(line: str) -> bool:
    from stepguard.procedure.notation import is_written

    return is_written(line[:_LONGEST_STEP])
