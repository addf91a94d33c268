"""Procedures as YAML or JSON: what the written language says, as mappings and lists; `schema.json` describes them.

::

    name: loan                                # optional
    inputs:                                   # a mapping from names to types, or a list of names
      principal: decimal(2)
      rate: {type: number, default: 5}
    records:
      Item: {what: text, amount: money(EUR)}
    tables:
      daily: {keys: {country: text}, value: money(EUR), rows: {DE: 28 EUR, otherwise: 24 EUR}}
    steps:
      - id: interest
        instruction: Work out the interest.   # optional where there is an expression
        expression: principal * rate / 100
        type: decimal(2, half_up)             # optional
      - total: decimal(2) = principal + interest      # a line of the language
      - if: total > 1000
        then:
          - fee = 0
        else:
          - fee = 5
      - for each: item in items
        do:
          - paid: money(EUR) = min(item.amount, 100 EUR)
      - repeat: 60
        until: balance <= 0
        do:
          - balance = balance - payment
      - {id: receipt, tool: pay, with: {amount: total}, type: text}
      - {id: approved, ask person: "Approve {total}?", type: boolean}
      - {id: shipping, call: fee_of, with: {weight: weight}}
    answer: total                             # optional; the last step otherwise

``procedures:`` are further ones, by name, which ``call:`` may name. A table with several keys has a list of rows, each
a list; one in a file is ``{keys: ..., value: ..., file: daily.csv}``.

Checks stand under their names (see `stepguard.procedure.check_registry`), with their options::

      - id: total
        instruction: Copy the total of the invoice.
        type: money(USD)
        reads: [subtotal, tax]
        checks:
          - holds: total == subtotal + tax        # one value: the first option
          - range: {least: 0, most: 10000}
          - in_stock                              # no options

In options a plain ``true``, ``false`` or number is one, and what stands in quotes is text.

A step may further have ``performer: code``, ``show_work: false`` and ``with_next: true`` (its text is only understood
with that of the next step). Every other scalar is taken as the text that stands there, so that a name like ``no`` or a
type of YAML's own cannot change its meaning. What is not known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.terms import LiteralTerm
from stepguard.procedure.check_registry import make_check
from stepguard.procedure.notation.building import build, finish, located
from stepguard.procedure.notation.parsing import parse_items
from stepguard.procedure.notation.trees import (
    AnswerLine,
    Content,
    InputLine,
    InputsBlock,
    ProcedureBlock,
    RawForEach,
    RawIf,
    RawRepeat,
    RawStatement,
    RawStep,
    RecordBlock,
    TableBlock,
    TitleLine,
)
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import read_expression

if TYPE_CHECKING:
    from stepguard.checks import Check

__all__ = ["compose_document", "parse_yaml"]

TOP: Final = ("name", "inputs", "records", "tables", "procedures", "steps", "answer")
INPUT: Final = ("type", "default")
TABLE: Final = ("keys", "value", "rows", "file")
IF: Final = ("if", "then", "else if", "else")
ELSE_IF: Final = ("if", "then")
FOR_EACH: Final = ("for each", "do")
REPEAT: Final = ("repeat", "until", "do")
STEP: Final = (
    *("id", "expression", "instruction", "type", "reads", "checks", "performer", "show_work", "with_next"),
    *("ask person", "tool", "function", "call", "with"),
)
_NOT_TEXT: Final = ("reads", "checks", "with", "expression")
_FOR_EACH: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s+in\s+(\S.*)\Z", re.DOTALL)
_BARE: Final = re.compile(r"[-+.0-9]|(?:true|false)\Z")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,100}(\.[0-9]{1,100})?\Z")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\t', re.DOTALL)
_TRUTH: Final = {"true": True, "false": False}
_DEEPEST: Final = 100
_MOST_NODES: Final = 10_000
"""So many nodes, and ten a character, may there be where each alias is counted as what it stands for."""


def parse_yaml(
    text: str, *, json: bool = False, unnamed: str = "procedure", folder: Path | None = None, **host: Any
) -> Procedure:
    """Read the notation above.

    Args:
        text: the document.
        json: whether it is JSON, which may hold tabs between its tokens.
        unnamed: the name of a procedure that declares none.
        folder: where the files lie that its tables are read from.
        host: what the host registers: functions and tools.

    Raises:
        ProcedureError: something in the document is wrong; `line` names where.
    """
    return _procedure(compose_document(text, json=json), unnamed, folder, host)


def compose_document(text: str, *, json: bool = False) -> Any:
    """The nodes of a document, of which aliases make nothing endless.

    Raises:
        ProcedureError: it is no YAML, or JSON; `line` names where.
    """
    import yaml

    if json:
        text = _JSON_STRING.sub(lambda match: " " if match[0] == "\t" else match[0], text)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        notation = "JSON" if json else "YAML"
        raise ProcedureError(f"not valid {notation}: {error.problem}", line=mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ProcedureError(f"the character {error.character:#x} cannot stand here", line=line) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ProcedureError(f"the document cannot be read: {error}", line=1) from None
    if root is None:
        raise ProcedureError("the document is empty", line=1)
    _check_size(root, _MOST_NODES + 10 * len(text))
    return root


def _check_size(root: Any, most: int) -> None:
    """Refuse what aliases make endless, or very large: an alias may hold itself, and others many times over."""
    stack = [(root, 1)]
    nodes = 0
    while stack:
        node, depth = stack.pop()
        nodes += 1
        if depth > _DEEPEST:
            problem = f"nested deeper than {_DEEPEST} levels: an alias may hold itself"
            raise ProcedureError(problem, line=_line(node))
        if nodes > most:
            raise ProcedureError("too large once its aliases are filled in: use fewer of them", line=_line(node))
        if node.id == "mapping":
            stack += ((child, depth + 1) for pair in node.value for child in pair)
        elif node.id == "sequence":
            stack += ((child, depth + 1) for child in node.value)


def _procedure(root: Any, unnamed: str, folder: Path | None, host: Mapping[str, Any]) -> Procedure:
    return finish(build(_items(root, "a procedure"), folder=folder), unnamed=unnamed, **host)


def _items(root: Any, role: str) -> Iterator[Any]:
    """What a document declares, as the grammar of the language would have found it."""
    top = _mapping(root, role, TOP)
    if "steps" not in top:
        raise ProcedureError("steps: is missing", line=_line(root))
    if "name" in top:
        yield TitleLine(_line(top["name"]), _text(top["name"], "name"))
    for name, node in _pairs(top.get("records"), "records"):
        fields = tuple((_line(kind), key, _text(kind, "a type")) for key, kind in _pairs(node, "a record"))
        yield RecordBlock(_line(node), name, fields)
    if "inputs" in top:
        yield InputsBlock(_line(top["inputs"]), tuple(_inputs(top["inputs"])))
    for name, node in _pairs(top.get("tables"), "tables"):
        yield _table(name, node)
    for name, node in _pairs(top.get("procedures"), "procedures"):
        yield ProcedureBlock(_line(node), name, tuple(_items(node, "a procedure")))
    steps = _sequence(top["steps"], "steps")
    if not steps:
        raise ProcedureError("steps: at least one is needed", line=_line(top["steps"]))
    yield from map(_statement, steps)
    if "answer" in top:
        yield AnswerLine(_line(top["answer"]), _expression(top["answer"], "answer"))


def _inputs(node: Any) -> Iterator[InputLine]:
    if node.id == "mapping":
        for key, value in node.value:
            yield _input(_line(key), _text(key, "an input"), value)
        return
    for entry in _sequence(node, "inputs"):
        if entry.id == "mapping" and len(entry.value) == 1:  # `- x: integer`
            key, value = entry.value[0]
            yield _input(_line(entry), _text(key, "an input"), value)
            continue
        name, _, kind = _text(entry, "an input").partition(":")
        yield InputLine(_line(entry), name.strip(), kind.strip() or None, None)


def _input(line: int, name: str, node: Any) -> InputLine:
    if node.id != "mapping":
        return InputLine(line, name, _text(node, "the type of an input"), None)
    entries = _mapping(node, "an input", INPUT)
    kind = _text(entries["type"], "type") if "type" in entries else None
    default = entries.get("default")
    if default is None:
        return InputLine(line, name, kind, None)
    text = _text(default, "default")
    quoted = default.style is not None or not (kind is None or _BARE.match(text))
    return InputLine(line, name, kind, LiteralTerm(text) if quoted else _expression(default, "default"))


def _table(name: str, node: Any) -> TableBlock:
    entries = _mapping(node, "a table", TABLE)
    for key in ("keys", "value"):
        if key not in entries:
            raise ProcedureError(f"a table has {key}: it is missing", line=_line(node))
    columns = tuple((key, _text(kind, "a type")) for key, kind in _pairs(entries["keys"], "keys"))
    kind = _text(entries["value"], "value")
    if "file" in entries:
        return TableBlock(_line(node), name, columns, kind, file=_text(entries["file"], "file"))
    if "rows" not in entries:
        raise ProcedureError("a table has rows, or a file: both are missing", line=_line(node))
    rows = entries["rows"]
    if rows.id == "mapping":
        found: list[tuple[int, tuple[str, ...]]] = [
            (_line(key), (_text(key, "a key"), _text(value, "a value"))) for key, value in rows.value
        ]
    else:
        found = [
            (_line(row), tuple(_text(cell, "a cell") for cell in _sequence(row, "a row")))
            for row in _sequence(rows, "rows")
        ]
    return TableBlock(_line(node), name, columns, kind, tuple(found))


def _statement(node: Any) -> RawStatement:
    at = _line(node)
    if node.id == "scalar":
        return _written(_text(node, "a step"), at)
    keys = [key.value for key, _ in node.value] if node.id == "mapping" else []
    if "if" in keys:
        entries = _mapping(node, "if", IF)
        others = (
            [_mapping(each, "else if", ELSE_IF) for each in _sequence(entries["else if"], "else if")]
            if ("else if" in entries)
            else []
        )
        branches = tuple(
            (_line(each["if"]), _expression(each["if"], "if"), _block(_needed(each, "then", at)))
            for each in (entries, *others)
        )
        return RawIf(at, branches, _block(entries["else"]) if "else" in entries else ())
    if "for each" in keys:
        entries = _mapping(node, "for each", FOR_EACH)
        over = _FOR_EACH.match(_text(entries["for each"], "for each"))
        if over is None:
            raise ProcedureError("for each: names an item and its list, as in `item in items`", line=at)
        return RawForEach(at, over[1], located(at, read_expression, over[2]), _block(_needed(entries, "do", at)))
    if "repeat" in keys:
        entries = _mapping(node, "repeat", REPEAT)
        most = _text(entries["repeat"], "repeat")
        if not (most.isascii() and most.isdigit() and len(most) <= 12 and int(most)):
            raise ProcedureError(f"repeat: is the most rounds, a whole number from 1 on, not {most[:20]!r}", line=at)
        until = _expression(_needed(entries, "until", at), "until")
        return RawRepeat(at, int(most), until, _block(_needed(entries, "do", at)))
    if len(keys) == 1 and keys[0] not in STEP:
        # `- total: decimal(2) = a + b` is a mapping to YAML, and a line of the language to its reader.
        key, value = node.value[0]
        return _written(f"{_text(key, 'a step')}: {_text(value, 'a step')}", at)
    return _step(node)


def _needed(entries: Mapping[str, Any], key: str, line: int) -> Any:
    if key not in entries:
        raise ProcedureError(f"{key}: is missing", line=line)
    return entries[key]


def _block(node: Any) -> tuple[RawStatement, ...]:
    return tuple(map(_statement, _sequence(node, "a block")))


def _written(text: str, line: int) -> RawStatement:
    """A statement in a line of the language."""
    try:
        items = parse_items(text)
    except ProcedureError as error:
        raise ProcedureError(error.message, line=line) from error
    if len(items) != 1 or not isinstance(items[0], RawStep | RawIf | RawForEach | RawRepeat):
        raise ProcedureError(f"{text[:60]!r} is not one step", line=line)
    return items[0]._replace(line=line)


def _expression(node: Any, role: str) -> Expression:
    return located(_line(node), read_expression, _text(node, role))


def _step(node: Any) -> RawStep:
    entries = _mapping(node, "a step", STEP)
    at = _line(node)
    if "id" not in entries:
        raise ProcedureError("id: is missing", line=at)
    texts = {key: _text(value, key) for key, value in entries.items() if key not in _NOT_TEXT}
    options: dict[str, object] = {}
    for key in ("show_work", "with_next"):
        text = texts.get(key)
        if text is not None and text.lower() not in _TRUTH:
            raise ProcedureError(f"{key} is true or false, not {text!r}", line=_line(entries[key]))
        if text is not None:
            options[key] = _TRUTH[text.lower()]
    if "reads" in entries:
        options["reads"] = [_text(entry, "a variable") for entry in _sequence(entries["reads"], "reads")]
    if "performer" in texts:
        options["performer"] = texts["performer"]
    if "checks" in entries:
        options["checks"] = [_check(entry) for entry in _sequence(entries["checks"], "checks")]
    given = tuple((key, _expression(value, "an argument")) for key, value in _pairs(entries.get("with"), "with"))
    calls = [key for key in ("tool", "function", "call") if key in texts]
    if len(calls) > 1 or (given and not calls):
        raise ProcedureError("with: are the arguments of one of tool:, function: and call:", line=at)
    words = texts.get("instruction")
    tree = _expression(entries["expression"], "expression") if "expression" in entries else None
    if "ask person" in texts:
        if words is not None or tree is not None:
            raise ProcedureError("ask person: stands alone, without instruction: and expression:", line=at)
        content = Content("person", words=texts["ask person"])
    elif calls:
        content = Content(cast(Any, calls[0]), operation=texts[calls[0]], arguments=given, words=words)
    else:
        content = Content("words" if tree is None else "formula", expression=tree, words=words)
    return RawStep(at, texts["id"], texts.get("type"), content, (), options=options)


def _pairs(node: Any, role: str) -> list[tuple[str, Any]]:
    if node is None:
        return []
    if node.id != "mapping":
        raise ProcedureError(f"{role}: a mapping is needed", line=_line(node))
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = _text(key, "a name")
        if name in found:
            raise ProcedureError(f"{name!r} stands twice", line=_line(key))
        found[name] = value
    return list(found.items())


def _check(node: Any) -> Check:
    if node.id == "scalar":
        name, setting = _text(node, "a check"), None
    elif node.id == "mapping" and len(node.value) == 1:
        key, value = node.value[0]
        name, setting = _text(key, "the name of a check"), _option(value)
    else:
        raise ProcedureError("a check is its name, or one name with its options: range: {least: 0}", line=_line(node))
    try:
        return make_check(name, setting)
    except ConfigError as error:
        raise ProcedureError(str(error), line=_line(node)) from error


def _option(node: Any) -> object:
    """What an option of a check is given."""
    if node.id == "mapping":
        options: dict[str, object] = {}
        for key, value in node.value:
            name = _text(key, "an option")
            if name in options:
                raise ProcedureError(f"{name!r} stands twice", line=_line(key))
            options[name] = _option(value)
        return options
    if node.id == "sequence":
        return [_option(item) for item in node.value]
    text = _text(node, "the value of an option")
    if node.style is not None:  # it stands in quotes
        return text
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    number = _NUMBER.match(text)
    return text if number is None else Decimal(text) if number[1] else int(text)


def _mapping(node: Any, role: str, keys: Sequence[str]) -> Mapping[str, Any]:
    if node.id != "mapping":
        raise ProcedureError(f"{role} is a mapping with {', '.join(keys)}", line=_line(node))
    entries: dict[str, Any] = {}
    for key, value in node.value:
        name = _text(key, "a key")
        if name not in keys:
            near = get_close_matches(name, keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(keys)}"
            raise ProcedureError(f"{role} has no {name[:40]!r}: {hint}", line=_line(key))
        if name in entries:
            raise ProcedureError(f"{name!r} stands twice", line=_line(key))
        entries[name] = value
    return entries


def _sequence(node: Any, role: str) -> Sequence[Any]:
    if node.id != "sequence":
        raise ProcedureError(f"{role}: a list is needed", line=_line(node))
    return cast("Sequence[Any]", node.value)


def _text(node: Any, role: str) -> str:
    if node.id != "scalar" or (node.tag.endswith(":null") and node.style is None):
        raise ProcedureError(f"{role} is text", line=_line(node))
    # JSON writes characters beyond the basic plane as two escapes.
    return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
