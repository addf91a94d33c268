"""Other spellings of what is known: an identifier that an agent writes is written as it is known, or refused.

Rules compare texts exactly, and the tool behind may not: where ``a1`` would be taken for ``A1``, a rule about ``A1``
would be passed by. So an argument that rules read may not differ from a text of the rules, of results or of the host in
its case, its blanks, its width or in characters that cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from stepguard.language.expressions import Name
from stepguard.language.records import Record
from stepguard.language.terms import LiteralTerm
from stepguard.language.values import Value
from stepguard.policy.reading import folded
from stepguard.policy.rules import bound_names, nodes_of

if TYPE_CHECKING:
    from stepguard.policy.policy import DeclaredTool, Policy

__all__ = ["KnownTexts", "read_parameters", "texts_in"]

_LONGEST: Final = 200
"""A longer text is no identifier."""


class KnownTexts:
    """The texts of a policy and of one conversation, by how a reader takes them."""

    def __init__(self, policy: Policy) -> None:
        self._spellings: dict[Value, set[str]] = {}
        for rule in policy.rules:
            self.add(
                each.value for each in nodes_of(rule) if isinstance(each, LiteralTerm) and isinstance(each.value, str)
            )
        for table in policy.tables.values():
            self.add(cell.strip('"') for row in table.rows for cell in row)

    def add(self, texts: Iterable[object]) -> None:
        """Texts that are known."""
        for text in texts:
            if isinstance(text, str) and 0 < len(text) <= _LONGEST:
                self._spellings.setdefault(folded(text), set()).add(text)

    def misspelt(self, value: Value) -> bool:
        """Whether a text in a value is another spelling of what is known, and not itself known."""
        for text in texts_in(value):
            if len(text) <= _LONGEST and (known := self._spellings.get(folded(text))) is not None and text not in known:
                return True
        return False


def texts_in(value: Value | None) -> Iterator[str]:
    """The texts in a value."""
    stack: list[object] = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple):
            stack.extend(each)
        elif isinstance(each, Record):
            stack.extend(each.values())


def read_parameters(tool: DeclaredTool) -> tuple[str, ...]:
    """The arguments of a tool that its rules read."""
    own = [each.name for each in tool.parameters]
    read: set[str] = set()
    for rule in tool.rules:
        named = dict(zip(bound_names(rule, own), own, strict=True))
        read |= {named[each.name] for each in nodes_of(rule) if type(each) is Name and each.name in named}
    return tuple(name for name in own if name in read)
