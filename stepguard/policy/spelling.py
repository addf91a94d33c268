"""Refuse other spellings of known texts: an agent writes an identifier as it is known, or the call is refused.

Rules compare texts exactly, and the tool behind may not: where ``a1`` would be taken for ``A1``, a rule about ``A1``
would be passed by. So an argument that rules read may not differ from a text of the rules, of results or of the host in
its case, its blanks, its width or in characters that cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stepguard.language.expressions import Name
from stepguard.language.records import Record
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import Aggregate, LiteralTerm
from stepguard.language.values import Value
from stepguard.policy.reading import folded
from stepguard.policy.rules import Rule, bound_names, nodes_of

_LONGEST: Final = 200
"""A longer text is no identifier."""


class KnownTexts:
    """The texts that are known, by how a reader takes them.

    Args:
        base: others that are known besides, and are never added to.
    """

    def __init__(self, base: KnownTexts | None = None) -> None:
        self._base = base
        self._spellings: dict[Value, set[str]] = {}

    @classmethod
    def of_policy(cls, rules: Iterable[Rule], tables: Mapping[str, Table]) -> KnownTexts:
        """The texts that stand in rules and tables."""
        made = cls()
        for node in (node for rule in rules for node in nodes_of(rule)):
            if isinstance(node, LiteralTerm):
                made.add([node.value])
        for table in tables.values():
            made.add(cell.strip('"') for row in table.rows for cell in row)
        return made

    def add(self, texts: Iterable[object]) -> None:
        for text in texts:
            if isinstance(text, str) and len(text) <= _LONGEST:
                self._spellings.setdefault(folded(text), set()).add(text)

    def misspelt(self, value: Value) -> bool:
        """Whether a text in a value is another spelling of what is known, and not itself known."""
        for text in texts_in(value):
            known = self._known(folded(text))  # however long it is: blanks in it are dropped
            if known and text not in known:
                return True
        return False

    def _known(self, key: Value) -> set[str]:
        own = self._spellings.get(key, set())
        return own if self._base is None else own | self._base._known(key)


def texts_in(value: Value | None) -> Iterator[str]:
    stack: list[object] = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple):
            stack.extend(each)
        elif isinstance(each, Record):
            stack.extend(each.values())


def compared_names(rules: Iterable[Rule], parameters: Iterable[str]) -> tuple[str, ...]:
    """The arguments of a tool whose texts its rules read; those that are only counted are not among them."""
    own = tuple(parameters)
    read: set[str] = set()
    for rule in rules:
        named = dict(zip(bound_names(rule, own), own, strict=False))
        nodes = list(nodes_of(rule))
        counted = [node.value for node in nodes if isinstance(node, Aggregate) and _counts(node)]
        for node in nodes:
            if type(node) is Name and node.name in named and not any(node is each for each in counted):
                read.add(named[node.name])
    return tuple(name for name in own if name in read)


def _counts(node: Aggregate) -> bool:
    return node.function == "count" and node.variable is None
