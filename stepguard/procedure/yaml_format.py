"""Procedures as YAML or JSON.

::

    name: loan                                # optional
    inputs:                                   # a mapping from names to types, or a list of names
      principal: decimal(2)
      rate: number
    steps:
      - id: interest
        instruction: Work out the interest.   # optional where there is an expression
        expression: principal * rate / 100
        type: decimal(2, half_up)             # optional
      - total: decimal(2) = principal + interest      # a line of the text notation, with or without its number
      - id: country
        instruction: Name the country of the customer.
        reads: [customer]
    answer: total                             # optional; the last step otherwise

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

Beside an expression the instruction only describes it, as in text: what may say whether, when or how often the
expression applies is refused.

A step may further have ``performer: code``, ``show_work: false`` and ``with_next: true`` (its text is only understood
with that of the next step). Every other scalar is taken as the text that stands there, so that a name like ``no`` or a
type of YAML's own cannot change its meaning. What is not known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from stepguard.errors import ConfigError, ExpressionError, ProcedureError
from stepguard.language.value_types import NUMBER
from stepguard.procedure.check_registry import make_check
from stepguard.procedure.procedure import Procedure, make_step_error
from stepguard.procedure.steps import Input, Performer, Step
from stepguard.procedure.text_format import make_procedure, parse_line

if TYPE_CHECKING:
    from stepguard.checks import Check

__all__ = ["parse_yaml"]

_TOP: Final = ("name", "inputs", "steps", "answer")
_STEP: Final = ("id", "expression", "instruction", "type", "reads", "checks", "performer", "show_work", "with_next")
_NOT_TEXT: Final = ("reads", "checks")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,100}(\.[0-9]{1,100})?\Z")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\t', re.DOTALL)
_TRUTH: Final = {"true": True, "false": False}
_DEEPEST: Final = 100
_MOST_NODES: Final = 10_000
"""So many nodes, and ten a character, may there be where each alias is counted as what it stands for."""


def parse_yaml(text: str, *, json: bool = False, unnamed: str = "procedure") -> Procedure:
    """Read the notation above.

    Args:
        text: the document.
        json: whether it is JSON, which may hold tabs between its tokens.
        unnamed: the name of a procedure that declares none.

    Raises:
        ProcedureError: something in the document is wrong; `line` names where.
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
    return _procedure(root, unnamed)


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


def _procedure(root: Any, unnamed: str) -> Procedure:
    top = _mapping(root, "a procedure", _TOP)
    if "steps" not in top:
        raise ProcedureError("steps: is missing", line=_line(root))
    inputs = _inputs(top["inputs"]) if "inputs" in top else []
    steps: list[Step] = []
    lines: list[int] = []
    names, number = {declared.name for declared in inputs}, -1
    for node in _sequence(top["steps"], "steps"):
        at = _line(node)
        try:
            step, number = _step(node, number, names)
        except (ProcedureError, ExpressionError) as error:
            raise error if isinstance(error, ProcedureError) and error.line else make_step_error(error, at) from error
        except ConfigError as error:
            raise ProcedureError(str(error), line=at) from error
        steps.append(step)
        names.add(step.id)
        lines.append(at)
    if not steps:
        raise ProcedureError("steps: at least one is needed", line=_line(top["steps"]))
    return make_procedure(
        steps,
        lines,
        inputs=inputs,
        answer=_text(top["answer"], "answer") if "answer" in top else None,
        answer_line=_line(top["answer"]) if "answer" in top else 0,
        name=_text(top["name"], "name") if "name" in top else unnamed,
    )


def _inputs(node: Any) -> list[Input]:
    pairs: list[tuple[str, str, int]] = []
    if node.id == "mapping":
        for key, value in node.value:
            pairs.append((_text(key, "an input"), _text(value, "the type of an input"), _line(key)))
    else:
        for entry in _sequence(node, "inputs"):
            if entry.id == "mapping" and len(entry.value) == 1:  # `- x: integer`
                key, value = entry.value[0]
                pairs.append((_text(key, "an input"), _text(value, "the type of an input"), _line(entry)))
                continue
            name, _, kind = _text(entry, "an input").partition(":")
            pairs.append((name.strip(), kind.strip(), _line(entry)))
    inputs: dict[str, Input] = {}
    for name, kind, at in pairs:
        try:
            declared = Input(name, kind or NUMBER)
        except (ProcedureError, ConfigError) as error:
            raise ProcedureError(getattr(error, "message", str(error)), line=at) from error
        if name in inputs:
            raise ProcedureError(f"duplicate input {name!r}", line=at)
        inputs[name] = declared
    return list(inputs.values())


def _step(node: Any, number: int, names: Collection[str]) -> tuple[Step, int]:
    """A step, and the number that it or the last step before it bears."""
    if node.id == "scalar":
        return parse_line(_text(node, "a step"), number, names)
    if node.id == "mapping" and len(node.value) == 1 and node.value[0][0].value not in _STEP:
        # `- total: decimal(2) = a + b` is a mapping to YAML, and a line of the text notation to its reader.
        key, value = node.value[0]
        return parse_line(f"{_text(key, 'a step')}: {_text(value, 'a step')}", number, names)
    entries = _mapping(node, "a step", _STEP)
    if "id" not in entries:
        raise ProcedureError("id: is missing", line=_line(node))
    texts = {key: _text(value, key) for key, value in entries.items() if key not in _NOT_TEXT}
    truths: dict[str, bool | None] = {}
    for key in ("show_work", "with_next"):
        text = texts.get(key)
        if text is not None and text.lower() not in _TRUTH:
            raise ProcedureError(f"{key} is true or false, not {text!r}", line=_line(entries[key]))
        truths[key] = None if text is None else _TRUTH[text.lower()]
    reads = None
    if "reads" in entries:
        reads = [_text(entry, "a variable") for entry in _sequence(entries["reads"], "reads")]
    step = Step(
        texts["id"],
        texts.get("expression"),
        instruction=texts.get("instruction"),
        type=texts.get("type"),
        reads=reads,
        checks=[_check(entry) for entry in _sequence(entries["checks"], "checks")] if "checks" in entries else (),
        performer=cast(Performer, texts.get("performer", "model")),
        show_work=truths["show_work"],
        with_next=truths["with_next"],
    )
    return step, number


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
