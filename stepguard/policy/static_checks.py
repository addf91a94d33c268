"""Check a policy when it is made: its parts fit together, and everything in it is of use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stepguard.errors import PolicyError
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import ValueType
from stepguard.policy.declarations import DeclaredFact, DeclaredTool
from stepguard.policy.notes import PolicyNote
from stepguard.policy.rule_checks import RuleChecker
from stepguard.policy.rules import Branching, Demand, Done, Prohibition, Rule, Seen


def check_rules(
    rules: Sequence[Rule],
    tools: Mapping[str, DeclaredTool],
    facts: Mapping[str, DeclaredFact],
    tables: Mapping[str, Table],
    records: Mapping[str, RecordType],
) -> list[PolicyNote]:
    """Refuse a policy that cannot be right, or holds what is of no use; what is only said twice is noted.

    Raises PolicyError: with the line.
    """
    if not tools:
        raise PolicyError("it declares no tool, and would refuse every call: write `tool refund(order: text)`")
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
    # "Manager" and "manager" would be two people, and a yes of one no yes of the other.
    roles = {by.casefold(): by for tool in tools.values() for by in tool.roles}
    for tool in tools.values():
        checker.check_changes(tool, facts)
        for by in tool.roles:
            if roles[by.casefold()] != by:
                raise PolicyError(
                    f"{by!r} and {roles[by.casefold()]!r} approve calls: write one of them", line=tool.line
                )
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
    forbidden: dict[str, str] = {}
    for tool in tools.values():
        # 0 for no such rule: one that was written in Python has the line None.
        line = next((each.line for each in tool.rules if _forbids(each)), 0)
        if line != 0:
            forbidden[tool.name] = "it is forbidden" if line is None else f"line {line} forbids it"
    called: set[str] = set()
    grows = True
    # A fixed point: a tool can be called once all that it waits for can be.
    while grows:
        more = [
            name
            for name, tool in tools.items()
            if name not in called | forbidden.keys()
            and all(_can_come(rule.demands, called, shows) for rule in tool.rules)
        ]
        called.update(more)
        grows = bool(more)
    return {
        name: forbidden.get(name, "it has to wait for a call that waits for it, or is never made")
        for name in tools
        if name not in called
    }


def _can_come(demands: Iterable[Demand], called: set[str], shows: Mapping[str, list[str]]) -> bool:
    """Whether what demands wait for can come: by calls of these tools, which may show the results of others."""
    for demand in demands:
        match demand:
            case Done(pattern, negated=False, exemption=None):
                comes = pattern.tool in called
            case Seen(patterns, exemption=None):
                comes = any(not called.isdisjoint(shows.get(each.tool, ())) for each in patterns)
            case Branching(branches, otherwise):
                comes = any(_can_come(body, called, shows) for body in (*(body for _, body in branches), otherwise))
            case _:
                continue
        if not comes:
            return False
    return True


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
