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
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.terms.operands import LiteralTerm
from stepguard.procedure.check_registry import make_check
from stepguard.procedure.expressions import read_expression
from stepguard.procedure.notation.building import build, finish
from stepguard.procedure.notation.nodes import (
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
from stepguard.procedure.notation.parsing import parse_items
from stepguard.procedure.notation.statement_building import located
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.yaml_nodes import compose_document, line_of, mapping_of, sequence_of, text_of

if TYPE_CHECKING:
    from stepguard.checks import Check

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
_UNQUOTED: Final = re.compile(r"[-+.0-9]|(?:true|false)\Z")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,100}(\.[0-9]{1,100})?\Z")
_TRUTH: Final = {"true": True, "false": False}


def parse_yaml(
    text: str, *, json: bool = False, unnamed: str = "procedure", folder: Path | None = None, **host: Any
) -> Procedure:
    """Read the notation above.

    Args:
        json: whether it is JSON, which may hold tabs between its tokens.
        unnamed: the name of a procedure that declares none.
        folder: where the files lie that its tables are read from.

    Raises:
        ProcedureError: something in the document is wrong; `line` names where.
    """
    return finish(
        build(_items(compose_document(text, json=json), "a procedure"), folder=folder), unnamed=unnamed, **host
    )


def _items(root: Any, role: str) -> Iterator[Any]:
    """Collect the declarations of a document, in the form that the grammar of the language gives them."""
    top = mapping_of(root, role, TOP)
    if "steps" not in top:
        raise ProcedureError("steps: is missing", line=line_of(root))
    if "name" in top:
        yield TitleLine(line_of(top["name"]), text_of(top["name"], "name"))
    for name, node in mapping_of(top.get("records"), "records").items():
        fields = tuple(
            (line_of(kind), key, text_of(kind, "a type")) for key, kind in mapping_of(node, "a record").items()
        )
        yield RecordBlock(line_of(node), name, fields)
    if "inputs" in top:
        yield InputsBlock(line_of(top["inputs"]), tuple(_inputs(top["inputs"])))
    for name, node in mapping_of(top.get("tables"), "tables").items():
        yield _table(name, node)
    for name, node in mapping_of(top.get("procedures"), "procedures").items():
        yield ProcedureBlock(line_of(node), name, tuple(_items(node, "a procedure")))
    steps = sequence_of(top["steps"], "steps")
    if not steps:
        raise ProcedureError("steps: at least one is needed", line=line_of(top["steps"]))
    yield from map(_statement, steps)
    if "answer" in top:
        yield AnswerLine(line_of(top["answer"]), _expression(top["answer"], "answer"))


def _inputs(node: Any) -> Iterator[InputLine]:
    if node.id == "mapping":
        for key, value in node.value:
            yield _input(line_of(key), text_of(key, "an input"), value)
        return
    for entry in sequence_of(node, "inputs"):
        if entry.id == "mapping" and len(entry.value) == 1:  # `- x: integer`
            key, value = entry.value[0]
            yield _input(line_of(entry), text_of(key, "an input"), value)
            continue
        name, _, kind = text_of(entry, "an input").partition(":")
        yield InputLine(line_of(entry), name.strip(), kind.strip() or None, None)


def _input(line: int, name: str, node: Any) -> InputLine:
    if node.id != "mapping":
        return InputLine(line, name, text_of(node, "the type of an input"), None)
    entries = mapping_of(node, "an input", INPUT)
    kind = text_of(entries["type"], "type") if "type" in entries else None
    default = entries.get("default")
    if default is None:
        return InputLine(line, name, kind, None)
    text = text_of(default, "default")
    # In quotes, or, where a type is declared, beginning like no number: text, and no expression over names.
    quoted = default.style is not None or not (kind is None or _UNQUOTED.match(text))
    return InputLine(line, name, kind, LiteralTerm(text) if quoted else _expression(default, "default"))


def _table(name: str, node: Any) -> TableBlock:
    entries = mapping_of(node, "a table", TABLE)
    for key in ("keys", "value"):
        if key not in entries:
            raise ProcedureError(f"a table has {key}: it is missing", line=line_of(node))
    columns = tuple((key, text_of(kind, "a type")) for key, kind in mapping_of(entries["keys"], "keys").items())
    kind = text_of(entries["value"], "value")
    if "file" in entries:
        return TableBlock(line_of(node), name, columns, kind, file=text_of(entries["file"], "file"))
    if "rows" not in entries:
        raise ProcedureError("a table has rows, or a file: both are missing", line=line_of(node))
    rows = entries["rows"]
    if rows.id == "mapping":
        entries_of_rows: list[tuple[int, tuple[str, ...]]] = [
            (line_of(key), (text_of(key, "a key"), text_of(value, "a value"))) for key, value in rows.value
        ]
    else:
        entries_of_rows = [
            (line_of(row), tuple(text_of(cell, "a cell") for cell in sequence_of(row, "a row")))
            for row in sequence_of(rows, "rows")
        ]
    return TableBlock(line_of(node), name, columns, kind, tuple(entries_of_rows))


def _statement(node: Any) -> RawStatement:
    at = line_of(node)
    if node.id == "scalar":
        return _statement_line(text_of(node, "a step"), at)
    keys = [key.value for key, _ in node.value] if node.id == "mapping" else []
    if "if" in keys:
        entries = mapping_of(node, "if", IF)
        others = (
            [mapping_of(each, "else if", ELSE_IF) for each in sequence_of(entries["else if"], "else if")]
            if ("else if" in entries)
            else []
        )
        branches = tuple(
            (line_of(each["if"]), _expression(each["if"], "if"), _block(_needed(each, "then", at)))
            for each in (entries, *others)
        )
        return RawIf(at, branches, _block(entries["else"]) if "else" in entries else ())
    if "for each" in keys:
        entries = mapping_of(node, "for each", FOR_EACH)
        over = _FOR_EACH.match(text_of(entries["for each"], "for each"))
        if over is None:
            raise ProcedureError("for each: names an item and its list, as in `item in items`", line=at)
        return RawForEach(at, over[1], located(at, read_expression, over[2]), _block(_needed(entries, "do", at)))
    if "repeat" in keys:
        entries = mapping_of(node, "repeat", REPEAT)
        most = text_of(entries["repeat"], "repeat")
        if not (most.isascii() and most.isdigit() and len(most) <= 12 and int(most)):
            raise ProcedureError(f"repeat: is the most rounds, a whole number from 1 on, not {most[:20]!r}", line=at)
        until = _expression(_needed(entries, "until", at), "until")
        return RawRepeat(at, int(most), until, _block(_needed(entries, "do", at)))
    if len(keys) == 1 and keys[0] not in STEP:
        # `- total: decimal(2) = a + b` is a mapping to YAML, and a line of the language to its reader.
        key, value = node.value[0]
        return _statement_line(f"{text_of(key, 'a step')}: {text_of(value, 'a step')}", at)
    return _step(node)


def _needed(entries: Mapping[str, Any], key: str, line: int) -> Any:
    if key not in entries:
        raise ProcedureError(f"{key}: is missing", line=line)
    return entries[key]


def _block(node: Any) -> tuple[RawStatement, ...]:
    return tuple(map(_statement, sequence_of(node, "a block")))


def _statement_line(text: str, line: int) -> RawStatement:
    """A statement in a line of the language."""
    try:
        items = parse_items(text)
    except ProcedureError as error:
        raise ProcedureError(error.message, line=line) from error
    if len(items) != 1 or not isinstance(items[0], RawStep | RawIf | RawForEach | RawRepeat):
        raise ProcedureError(f"{text[:60]!r} is not one step", line=line)
    return items[0]._replace(line=line)


def _expression(node: Any, role: str) -> Expression:
    return located(line_of(node), read_expression, text_of(node, role))


def _step(node: Any) -> RawStep:
    entries = mapping_of(node, "a step", STEP)
    at = line_of(node)
    if "id" not in entries:
        raise ProcedureError("id: is missing", line=at)
    texts = {key: text_of(value, key) for key, value in entries.items() if key not in _NOT_TEXT}
    options: dict[str, object] = {}
    for key in ("show_work", "with_next"):
        text = texts.get(key)
        if text is not None and text.lower() not in _TRUTH:
            raise ProcedureError(f"{key} is true or false, not {text!r}", line=line_of(entries[key]))
        if text is not None:
            options[key] = _TRUTH[text.lower()]
    if "reads" in entries:
        options["reads"] = [text_of(entry, "a variable") for entry in sequence_of(entries["reads"], "reads")]
    if "performer" in texts:
        options["performer"] = texts["performer"]
    if "checks" in entries:
        options["checks"] = [_check(entry) for entry in sequence_of(entries["checks"], "checks")]
    given = tuple(
        (key, _expression(value, "an argument")) for key, value in mapping_of(entries.get("with"), "with").items()
    )
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


def _check(node: Any) -> Check:
    if node.id == "scalar":
        name, setting = text_of(node, "a check"), None
    elif node.id == "mapping" and len(node.value) == 1:
        key, value = node.value[0]
        name, setting = text_of(key, "the name of a check"), _option(value)
    else:
        raise ProcedureError("a check is its name, or one name with its options: range: {least: 0}", line=line_of(node))
    try:
        return make_check(name, setting)
    except ConfigError as error:
        raise ProcedureError(str(error), line=line_of(node)) from error


def _option(node: Any) -> object:
    """The value of a check's option."""
    if node.id == "mapping":
        return {name: _option(value) for name, value in mapping_of(node, "a check").items()}
    if node.id == "sequence":
        return [_option(item) for item in node.value]
    text = text_of(node, "the value of an option")
    if node.style is not None:  # in quotes it is text, even "3" or "true"
        return text
    # YAML's other words for it, `no` and `off`, stay text and are refused by the option: as text they would count as
    # true.
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    number = _NUMBER.match(text)
    return text if number is None else Decimal(text) if number[1] else int(text)
