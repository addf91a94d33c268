"""What can be known of a policy when it is made: whether its parts fit, and whether everything in it is of use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from stepguard.errors import PolicyError
from stepguard.language.lookup_tables import Table
from stepguard.language.records import RecordType
from stepguard.language.value_types import ValueType
from stepguard.policy.notes import PolicyNote
from stepguard.policy.rule_checks import RuleChecker
from stepguard.policy.rules import Done, Prohibition, Rule, Seen

if TYPE_CHECKING:
    from stepguard.policy.policy import DeclaredFact, DeclaredTool


def check_rules(
    rules: Sequence[Rule],
    tools: Mapping[str, DeclaredTool],
    facts: Mapping[str, DeclaredFact],
    tables: Mapping[str, Table],
    records: Mapping[str, RecordType],
) -> list[PolicyNote]:
    """Refuse a policy that cannot be right, or holds what is of no use; what is only said twice is noted.

    Raises:
        PolicyError: with the line.
    """
    checker = RuleChecker(tools, facts, tables, _never_called(tools))
    ruled: dict[str, bool] = {}
    for rule in rules:
        checker.check(rule)
        own = [each for each in tools[rule.tool].rules if each is not rule and each.line != rule.line]
        if _forbids(rule) and own and not any(each.line == own[0].line for each in rules if each.tool != rule.tool):
            raise PolicyError(f"{rule.tool} is never called: line {own[0].line} demands nothing more", line=rule.line)
        free = not rule.demands
        if (
            (free and rule.tool in ruled)
            or ruled.setdefault(rule.tool, free) != free
            or (free and tools[rule.tool].reads)
        ):
            reason = "it only reads" if tools[rule.tool].reads else "a rule speaks of it"
            raise PolicyError(f"`allow {rule.tool}` is of no use: {reason}; leave one of them out", line=rule.line)
    for tool in tools.values():
        checker.check_changes(tool, facts)
        if not tool.reads and tool.name not in ruled:
            raise PolicyError(
                f"no rule speaks of {tool.name}, which may change something: write `before {tool.name}: ...`, "
                f"`allow {tool.name}`, or `reads` behind its declaration",
                line=tool.line,
            )
    for fact in facts.values():
        if fact.name not in checker.expressions.used:
            raise PolicyError(f"no rule reads the fact {fact.name!r}: leave it out", line=fact.line)
    for table in tables.values():
        if table.name not in checker.expressions.used:
            raise PolicyError(f"no rule looks anything up in the table {table.name!r}: leave it out")
        checker.expressions.check_rows(table)
    used = _used_records(tools.values(), facts.values())
    for record in records:
        if record not in used:
            raise PolicyError(f"nothing is a record {record!r}: leave it out")
    return checker.notes


def _forbids(rule: Rule) -> bool:
    return any(isinstance(each, Prohibition) and each.exemption is None for each in rule.demands)


def _never_called(tools: Mapping[str, DeclaredTool]) -> dict[str, str]:
    """The tools that no call of can be let through, and why: they are forbidden, or wait for such ones."""
    shows: dict[str, list[str]] = {name: [name] for name in tools}
    for tool in tools.values():
        for pattern in tool.changes or ():  # what a change gives back may be the new state of what it changes
            if tool.result is not None and pattern.tool in tools and tool.result == tools[pattern.tool].result:
                shows[pattern.tool].append(tool.name)
    waiting: dict[str, list[tuple[str, int]]] = {}
    left: dict[str, int] = {}
    forbidden: dict[str, str] = {}
    for tool in tools.values():
        demands = [each for rule in tool.rules for each in rule.demands if getattr(each, "exemption", None) is None]
        before = [[each.pattern.tool] for each in demands if isinstance(each, Done) and not each.negated]
        seen = [[each.tool for each in demand.patterns] for demand in demands if isinstance(demand, Seen)]
        before += [[source for name in names for source in shows.get(name, ())] for names in seen]
        left[tool.name] = len(before)
        for number, names in enumerate(before):
            for name in names:
                waiting.setdefault(name, []).append((tool.name, number))
        line = next((each.line for each in tool.rules if _forbids(each)), 0)
        if line != 0:
            forbidden[tool.name] = "it is forbidden" if line is None else f"line {line} forbids it"
    ready = [name for name, count in left.items() if not count and name not in forbidden]
    called: set[str] = set()
    come: set[tuple[str, int]] = set()
    while ready:
        called.add(name := ready.pop())
        for demand in waiting.get(name, ()):
            if demand not in come:
                come.add(demand)
                left[demand[0]] -= 1
                if not left[demand[0]] and demand[0] not in forbidden:
                    ready.append(demand[0])
    return {
        name: forbidden.get(name, "it has to wait for a call that waits for it, or is never made")
        for name in tools
        if name not in called
    }


def _used_records(tools: Iterable[DeclaredTool], facts: Iterable[DeclaredFact]) -> set[str]:
    stack: list[ValueType] = []
    for tool in tools:
        stack += [each.type for each in tool.parameters]
        stack += [tool.result] if tool.result is not None else []
    stack += [fact.type for fact in facts]
    names: set[str] = set()
    while stack:
        kind = stack.pop()
        if kind.items is not None:
            stack.append(kind.items)
        if kind.record is not None and kind.record.name not in names:
            names.add(kind.record.name)
            stack += [each for _, each in kind.record.fields]
    return names
