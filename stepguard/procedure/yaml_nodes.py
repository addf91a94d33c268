"""Documents in YAML or JSON as nodes, each of which knows its line: what is of the wrong shape is refused there.

Every scalar is the text that stands there, so that no type of YAML's own can change its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from stepguard.errors import ProcedureError

# Tabs between tokens are JSON, and an error in YAML; inside strings they stay.
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\t', re.DOTALL)
_DEEPEST: Final = 100  # an alias may hold itself
_MOST_NODES: Final = 10_000
"""The most nodes with every alias expanded, besides ten for each character of the text."""


def compose_document(text: str, *, json: bool = False) -> Any:
    """Compose the nodes of a document; aliases cannot make it endless.

    Raises ProcedureError: it is no YAML, or JSON; `line` names where.
    """
    import yaml

    if json:
        text = _JSON_STRING.sub(lambda match: " " if match[0] == "\t" else match[0], text)
    try:
        # Composed, not loaded: no tag makes an object, and every scalar keeps its text and its line.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        notation = "JSON" if json else "YAML"
        raise ProcedureError(f"not valid {notation}: {error.problem}", line=mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ProcedureError(f"the character {error.character:#x} cannot stand here", line=line) from None
    # The parser recurses: deep nesting ends here.
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
            raise ProcedureError(problem, line=line_of(node))
        if nodes > most:
            raise ProcedureError("too large once its aliases are filled in: use fewer of them", line=line_of(node))
        if node.id == "mapping":
            stack += ((child, depth + 1) for pair in node.value for child in pair)
        elif node.id == "sequence":
            stack += ((child, depth + 1) for child in node.value)


def mapping_of(node: Any, role: str, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of a mapping by their names; none where there is no node.

    Args:
        keys: the names that it may have; by default any.

    Raises:
        ProcedureError: it is no mapping, or has a name twice or one that it may not have.
    """
    if node is None:
        return {}
    if node.id != "mapping":
        raise ProcedureError(f"{role} is a mapping with {', '.join(keys) or 'names'}", line=line_of(node))
    entries: dict[str, Any] = {}
    for key, value in node.value:
        # A repeated key is refused below; PyYAML would silently keep the last.
        name = text_of(key, "a name")
        if keys and name not in keys:
            near = get_close_matches(name, keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(keys)}"
            raise ProcedureError(f"{role} has no {name[:40]!r}: {hint}", line=line_of(key))
        if name in entries:
            raise ProcedureError(f"{name!r} stands twice", line=line_of(key))
        entries[name] = value
    return entries


def sequence_of(node: Any, role: str) -> list[Any]:
    """The nodes of a list; none where there is no node. Raises ProcedureError: it is no list."""
    if node is None:
        return []
    if node.id != "sequence":
        raise ProcedureError(f"{role}: a list is needed", line=line_of(node))
    return list(node.value)


def text_of(node: Any, role: str) -> str:
    """The text of a scalar. Raises ProcedureError: it is none, or an empty place."""
    if node.id != "scalar" or (node.tag.endswith(":null") and node.style is None):
        raise ProcedureError(
            f"{role} is text: put it in quotes, which brackets, braces and colons need in YAML", line=line_of(node)
        )
    # JSON writes characters beyond the basic plane as two escapes.
    return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def line_of(node: Any) -> int:
    """The line on which a node begins, from 1."""
    return int(node.start_mark.line) + 1
