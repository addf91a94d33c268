"""Policies as YAML or JSON: what the written language says, with its lines as text; `schema.json` describes them.

::

    name: refund desk
    records:
      Order:
        customer: text
        refunded: {type: money(EUR), default: 0}
        kind: text
      Item:
        amount: money(EUR)
    tables:
      most: {key: kind, value: money(EUR), rows: {gold: 500, otherwise: 100}}
    tools:
      - "get_order(id: text) -> Order reads"
      - "refund(order: text, amount: money(EUR), items: list of Item) changes get_order(order)"
      - "close_account(customer_id: text)"
      - "think(text: text)"
    facts:
      - "customer: text"
      - 'damaged[order: text]: boolean "Does the picture show damage?"'
    rules:
      - never: close_account "Accounts are closed by the office."
      - allow: [think]
      - before: refund(id, amount)
        demand:
          - seen get_order(id) as order
          - require: order.customer == customer
            words: Only orders of this customer are paid back.
          - require amount <= most[order.kind]
          - require: amount <= 50
            unless: damaged[id]
          - if: amount > 100
            then: [confirmed by manager]
            else: [at most once per id]
          - for each: item in items
            do: [require item.amount > 0]

A demand is a line of the language; one with ``require:`` may have ``words:`` and ``unless:`` or ``only if:`` beside it.
"""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from stepguard.errors import PolicyError
from stepguard.policy.building import assemble
from stepguard.policy.parsing import parse_rule_part
from stepguard.policy.policy import Policy
from stepguard.policy.rules import Branching, Demand, Parameter, Repetition, Rule
from stepguard.policy.trees import ViewBlock
from stepguard.procedure.notation import parse_term
from stepguard.procedure.notation.nodes import TableBlock, TitleLine
from stepguard.procedure.notation.settings import constant
from stepguard.procedure.yaml_nodes import compose_document, line_of, mapping_of, sequence_of, text_of

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
TOP: Final = ("name", "records", "tables", "tools", "facts", "rules")
FIELD: Final = ("type", "default")
TABLE: Final = ("key", "value", "rows")
RULE: Final = ("never", "allow", "before", "demand")
DEMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "require": ("require", "words", "unless", "only if"),
    "if": ("if", "then", "else"),
    "for each": ("for each", "do"),
}


def parse_policy_yaml(text: str, *, json: bool = False, name: str = "policy", folder: Path | None = None) -> Policy:
    """The policy in a document.

    Args:
        text: the document.
        json: whether it is JSON.
        name: what the policy is called where it has no ``name:``.
        folder: where the files lie that its tables are read from.

    Raises:
        PolicyError: something in it is wrong; `line` names where.
    """
    return assemble(_items(text, json=json), name=name, folder=folder)


def _items(text: str, *, json: bool) -> Iterator[Any]:
    top = mapping_of(compose_document(text, json=json), "a policy", TOP)
    if "name" in top:
        yield TitleLine(line_of(top["name"]), _text(top["name"], "name"))
    for name, node in mapping_of(top.get("records"), "records").items():
        yield ViewBlock(
            line_of(node), name, tuple(_field(key, each) for key, each in mapping_of(node, "a record").items())
        )
    for name, node in mapping_of(top.get("tables"), "tables").items():
        entries = mapping_of(node, "a table", TABLE)
        if len(entries) < 3:
            raise PolicyError("a table has key:, value: and rows:", line=line_of(node))
        rows = tuple(
            (line_of(each), (key, _text(each, "a cell"))) for key, each in mapping_of(entries["rows"], "rows").items()
        )
        key, _, kind = _text(entries["key"], "key").partition(":")
        yield TableBlock(
            line_of(node), name, ((key.strip(), kind.strip() or None),), _text(entries["value"], "value"), rows
        )
    for role in ("tool", "fact"):
        for node in sequence_of(top.get(f"{role}s"), f"{role}s"):
            made = parse_rule_part(f"{role} {_text(node, f'a {role}')}", "declaration", line_of(node))
            yield replace(made, line=line_of(node))
    for node in sequence_of(top.get("rules"), "rules"):
        yield from _rule(node)


def _field(name: str, node: Any) -> tuple[int, Parameter]:
    if node.id != "mapping":
        return line_of(node), Parameter(name, _text(node, "a type"))
    entries = mapping_of(node, "a field", FIELD)
    if len(entries) < 2:
        raise PolicyError("a field is a type, or has type: and default:", line=line_of(node))
    default, kind = entries["default"], _text(entries["type"], "type")
    text = _text(default, "default")
    # A bare word for a text is that text; parsed, it would be a variable.
    if default.style is not None or kind.startswith(("text", "one_of")):
        return line_of(node), Parameter(name, kind, text)
    try:
        return line_of(node), Parameter(name, kind, constant(parse_term(text)))
    except ValueError as error:
        raise PolicyError(str(error), line=line_of(node)) from None


def _rule(node: Any) -> Iterator[Any]:
    entries = mapping_of(node, "a rule", RULE)
    line = line_of(node)
    if "allow" in entries and len(entries) == 1:
        yield from (Rule(_text(each, "a tool"), line=line) for each in sequence_of(entries["allow"], "allow"))
    elif "never" in entries and len(entries) == 1:
        yield from parse_rule_part(f"never {_text(entries['never'], 'never')}", "rule", line)
    elif entries.keys() == {"before", "demand"}:
        tool, names = parse_rule_part(_text(entries["before"], "before"), "target", line)
        demands = _body(entries["demand"], "demand", line)
        yield Rule(tool, demands, names, line=line)
    else:
        raise PolicyError("a rule has before: and demand:, or never:, or allow:", line=line)


def _demand(node: Any) -> Demand:
    line = line_of(node)
    if node.id == "scalar":
        return _placed(parse_rule_part(_code(node, "a demand"), "demand", line), line)
    kind = next(
        (each for each in DEMANDS if node.id == "mapping" and each in {key.value for key, _ in node.value}), None
    )
    if kind is None:
        raise PolicyError("a demand is a line of text, or has require:, if: or for each:", line=line)
    entries = mapping_of(node, "a demand", DEMANDS[kind])
    if kind == "require":
        text = f"require {_code(entries['require'], 'require')}"
        for word in ("unless", "only if"):
            text += f" {word} {_code(entries[word], word)}" if word in entries else ""
        text += f" {json_module.dumps(_text(entries['words'], 'words'))}" if "words" in entries else ""
        return _placed(parse_rule_part(text, "demand", line), line)
    if kind == "if":
        body = _body(entries.get("then"), "then", line)
        other = _body(entries["else"], "else", line) if "else" in entries else ()
        return Branching(((_checked(_code(entries["if"], "a condition"), line), body),), other, line=line)
    variable, _, over = _code(entries["for each"], "for each").partition(" in ")
    return Repetition(variable.strip(), _checked(over, line), _body(entries.get("do"), "do", line), line=line)


def _body(node: Any, role: str, line: int) -> tuple[Demand, ...]:
    if node is None:
        raise PolicyError(f"{role}: is missing", line=line)
    demands = tuple(map(_demand, sequence_of(node, role)))
    if not demands:
        raise PolicyError(f"{role} is empty and would allow everything: write `allow: [tool]` for that", line=line)
    return demands


def _code(node: Any, role: str) -> str:
    """A part of a demand; what would be a comment in it, and swallow the parts behind, is refused."""
    text = _text(node, role)
    if "#" in _QUOTED.sub("", text):
        raise PolicyError(
            f"{role} holds a `#` outside of quotes: comments stand behind YAML's values", line=line_of(node)
        )
    return text


def _checked(text: str, line: int) -> Any:
    try:
        return parse_term(text)
    except ValueError as error:
        raise PolicyError(str(error), line=line) from None


def _placed(demand: Any, line: int) -> Demand:
    """A demand at the line of the document."""
    # The grammar has counted within the one text, and the class is frozen.
    object.__setattr__(demand, "line", line)
    return demand  # type: ignore[no-any-return]


def _text(node: Any, role: str) -> str:
    text = text_of(node, role)
    if not text.strip():
        raise PolicyError(f"{role} is text", line=line_of(node))
    return text
