"""Chat messages taken apart: what the user says now, its blocks, and the texts that are meant as procedures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stepguard.errors import ProcedureError
from stepguard.procedure.text_format import HiddenFormula, parse_procedure, parse_step

__all__ = [
    "ANSWERS",
    "COMMENT",
    "DATA",
    "INPUTS",
    "NAME",
    "SYSTEM",
    "VALUE",
    "Parts",
    "ProcedureText",
    "Said",
    "may_hold_procedure",
    "read_arguments",
    "read_messages",
    "read_prompts",
    "split_message",
    "turn_of",
]

SYSTEM: Final = frozenset({"developer", "system"})
ANSWERS: Final = frozenset({"assistant", "function", "tool"})
DATA: Final = frozenset({"inputs", "json"})

# Whatever a message holds, these take time in proportion to it: hence the possessive repetitions.
INPUTS: Final = re.compile(r"inputs?\s*+:\s*+(.*)\Z", re.IGNORECASE)
NAME: Final = re.compile(r"name\s*+:\s*+\S", re.IGNORECASE)
VALUE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*+)\s*+=(?!=)\s*+(.*)\Z")
COMMENT: Final = re.compile(r"\s#(?=\s|\Z).*\Z")
_HINT: Final = re.compile(
    r"(?:\A|[\r\n])\ufeff?[ \t]*+(?:inputs?[ \t]*+:|(?:`{3,}+|~{3,}+)[ \t]*+(?:procedure|stepguard)\b)", re.IGNORECASE
)
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_FENCE: Final = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+([^`\s]*+)[^`]*+\Z")
_DECLARED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\s*+(?:[,:=#]|\Z)")
_FORMULA: Final = re.compile(
    r"(?:(?:\*\*)?(?:step\s*+)?[0-9]{1,9}+\s*+[:.)]\s*+(?:\*\*)?|[-*\u2022](?=\s))?\s*+"
    r"[A-Za-z_][A-Za-z0-9_]*+\s*+(?::[^=]*+)?=(?!=)\s*+\S",
    re.IGNORECASE,
)
_MARKED: Final = frozenset({"procedure", "stepguard"})
_UNMARKED: Final = frozenset({"", "plain", "plaintext", "text", "txt"})
_LONGEST_STEP: Final = 4000
_INSTRUCTIONS: Final = ("instructions", "additional_instructions")
_LISTS: Final = ("messages", "input", "prompt", "items", "additional_messages")


@dataclass(frozen=True, slots=True)
class Said:
    """One message: its 0-based index, its role, its text, and whether it holds more than text."""

    index: int
    role: str
    text: str
    more: bool = False


@dataclass(frozen=True, slots=True)
class ProcedureText:
    """A text that is meant as a procedure.

    Attributes:
        message: the index of its message.
        start: the line of the message that it begins in, from 1.
        lines: its lines.
        whole: whether it is the whole message, but for blocks of values.
    """

    message: int
    start: int
    lines: tuple[str, ...]
    whole: bool


@dataclass(slots=True)
class Parts:
    """A message taken apart.

    Attributes:
        said: the message.
        outside: the lines outside of blocks, numbered from 1.
        blocks: language, number of the first line, and lines of every block.
        unclosed: whether the last block has no end.
    """

    said: Said
    outside: list[tuple[int, str]] = field(default_factory=list)
    blocks: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)
    unclosed: bool = False

    def procedures(self) -> Iterator[ProcedureText]:
        """The texts in it that are meant as procedures.

        Raises:
            ProcedureError: one is, and stands where it could not be told from what is around it.
        """
        index = self.said.index
        for number, (language, start, lines) in enumerate(self.blocks, 1):
            if language not in _MARKED and (language not in _UNMARKED or not _meant(lines)):
                continue
            if self.unclosed and number == len(self.blocks):
                raise ProcedureError(f"the block of a procedure is not closed (message {index + 1})", line=start - 1)
            yield ProcedureText(index, start, lines, whole=False)
        lines = tuple(line for _, line in self.outside)
        if all(language in DATA for language, _, _ in self.blocks) and _meant(lines):
            yield ProcedureText(index, 1, lines, whole=True)
        elif (line := self._embedded()) is not None:
            raise ProcedureError(
                f"`inputs:` and steps stand among other text (message {index + 1}): put the procedure into a block "
                "that begins with ```procedure and ends with ```, or into a message of its own",
                line=line,
            )

    def _embedded(self) -> int | None:
        """The line outside of blocks at which a procedure begins; None where none does."""
        at: int | None = None
        names: frozenset[str] = frozenset()
        for number, line in self.outside:
            stripped = line.strip()
            if header := INPUTS.match(stripped):
                at = number if _DECLARED.match(header[1]) else None
                names = _names(header[1])
            elif at is not None and stripped and not _gives_value(stripped, names):
                if _is_step(stripped):
                    return at
                at = None
        return None


def may_hold_procedure(said: Said) -> bool:
    """Whether it is worth taking a message apart; most are told at a glance."""
    return _HINT.search(said.text) is not None


def read_messages(messages: object) -> Iterator[Said]:
    """The messages as far as they can be read; what cannot is the endpoint's to complain of."""
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        return
    for index, message in enumerate(messages):
        content, more = _get(message, "content"), False
        if isinstance(content, Sequence) and not isinstance(content, str | bytes):
            texts = [_get(part, "text") for part in content]
            more = not all(isinstance(text, str) for text in texts)
            content = "\n".join(text for text in texts if isinstance(text, str))
        yield Said(index, str(_get(message, "role")), content if isinstance(content, str) else "", more)


def read_prompts(prompt: object) -> list[dict[str, str]]:
    """The prompt of an older completion, or its prompts, as messages; those that are numbers of tokens say nothing."""
    given = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        return []
    return [{"role": "user", "content": each} for each in given if isinstance(each, str)]


def read_arguments(arguments: dict[str, Any]) -> list[object]:
    """What is said to a model by a call that is no chat completion, as messages; its iterators become lists."""
    for name in _LISTS:
        if callable(getattr(arguments.get(name), "__next__", None)):  # it can be read only once
            arguments[name] = list(arguments[name])
    given: dict[str, Any] = {**arguments, **(_mapping(arguments.get("extra_body")))}
    said: list[object] = [{"role": "system", "content": given[name]} for name in _INSTRUCTIONS if given.get(name)]
    if given.get("content"):
        said.append({"role": "user", "content": given["content"]})
    for name in _LISTS:
        each = given.get(name)
        if name == "prompt" or isinstance(each, str):
            said += read_prompts(each)
        elif isinstance(each, Iterable) and not isinstance(each, bytes | Mapping):
            said += each
    thread = _mapping(given.get("thread"))
    return [*said, *read_arguments(dict(thread))] if thread else said


def turn_of(said: Sequence[Said]) -> list[Said]:
    """What the user says now: behind the last answer, but for an answer that is only begun, at the very end."""
    end = len(said)
    while end and said[end - 1].role == "assistant":
        end -= 1
    start = end
    while start and said[start - 1].role not in ANSWERS:
        start -= 1
    return [each for each in said[start:end] if each.role not in SYSTEM]


def split_message(said: Said) -> Parts:
    """A message as blocks and what is outside of them."""
    parts = Parts(said)
    fence, language, start, block = "", "", 0, list[str]()
    for number, line in enumerate(_BREAK.split(said.text.removeprefix("\ufeff")), 1):
        found = _FENCE.match(line)
        if not fence and found:
            fence, language, start, block = found[1], found[2].lower(), number + 1, []
        elif fence and found and not found[2] and found[1].startswith(fence):
            parts.blocks.append((language, start, tuple(block)))
            fence = ""
        elif fence:
            block.append(line)
        else:
            parts.outside.append((number, line))
    if fence:
        parts.blocks.append((language, start, tuple(block)))
        parts.unclosed = True
    return parts


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _get(given: object, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _meant(lines: Sequence[str]) -> bool:
    """Whether a text without a mark is meant as a procedure: ``inputs:`` comes first, and steps follow."""
    told = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if told and NAME.match(told[0]):
        del told[0]
    header = INPUTS.match(told[0]) if told else None
    if header is None:
        return False
    names = _names(header[1])
    steps = [line for line in told[1:] if not _gives_value(line, names)]
    if _DECLARED.match(header[1]) and any(map(_FORMULA.match, steps)):
        return True
    try:
        parse_procedure("\n".join([told[0], *steps]))
    except ProcedureError as error:
        return isinstance(error.__cause__, HiddenFormula)  # to be told of, and not to be answered without a guard
    return True


def _names(header: str) -> frozenset[str]:
    return frozenset(name.partition(":")[0].strip() for name in COMMENT.sub("", header).split(","))


def _gives_value(line: str, names: frozenset[str]) -> bool:
    value = VALUE.match(line)
    return value is not None and value[1] in names


def _is_step(line: str) -> bool:
    try:
        parse_step(line[:_LONGEST_STEP])
    except ValueError:
        return False
    return True
