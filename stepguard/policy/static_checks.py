"""What can be known of a policy when it is made: names, types, and whether everything in it is of use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from stepguard.errors import ConfigError, ExpressionError, PolicyError, ProcedureError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Expression, Logic, Name, Not
from stepguard.language.lookup_tables import Table
from stepguard.language.records import RecordType
from stepguard.language.term_types import type_of
from stepguard.language.terms import LiteralTerm, Member, variables_in
from stepguard.language.type_relations import DATE, fits
from stepguard.language.value_types import ValueType
from stepguard.policy.contradictions import RuleCondition, RuleConditions, always
from stepguard.policy.rules import (
    MOMENT,
    Binding,
    Branching,
    CallPattern,
    Demand,
    Done,
    Earlier,
    Exemption,
    ExpressionLike,
    Limit,
    Prohibition,
    Repetition,
    Requirement,
    Rule,
    Seen,
    SeenAll,
    bound_names,
    nodes_of,
    tree_of,
)

if TYPE_CHECKING:
    from stepguard.policy.policy import DeclaredFact, DeclaredTool

BUILT_IN: Final[Mapping[str, ValueType]] = {"now": MOMENT, "today": DATE}
"""What every rule may read: the moment of the call, and its day."""


@dataclass
class _Scope:
    """What the rule of one tool may read where a demand stands, and which of it is of use so far."""

    types: dict[str, ValueType]
    bound: dict[str, int | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def inner(self) -> _Scope:
        return _Scope(dict(self.types), {}, self.used)


class _RuleChecker:
    def __init__(
        self, tools: Mapping[str, DeclaredTool], facts: Mapping[str, DeclaredFact], tables: Mapping[str, Table]
    ) -> None:
        self.tools = tools
        self.facts = facts
        self.plain = {fact.name: fact.type for fact in facts.values() if not fact.keys}
        self.tables: dict[str, Table] = {**tables, **{fact.name: fact.table for fact in facts.values() if fact.keys}}
        self.keyed = frozenset(fact.name for fact in facts.values() if fact.keys)
        self.used: set[str] = set()
        self.held: dict[str, RuleConditions] = {}
        self.line: int | None = None

    def refusal(self, message: str, line: int | None = None) -> PolicyError:
        return PolicyError(message, line=self.line if line is None else line)

    def type(self, given: ExpressionLike, scope: _Scope) -> ValueType:
        tree = tree_of(given)
        names = variables_in(tree)
        self.used.update(names)
        scope.used.update(names)
        for node in nodes_of(tree):
            if isinstance(node, Member) and isinstance(node.of, Name) and node.of.name in self.keyed:
                raise self.refusal(f"a fact has a value and no rows: write `{node.of.name}[...]`")
        try:
            return type_of(tree, scope.types, self.tables)
        except (ProcedureError, ConfigError, ExpressionError) as error:
            text = error.message if isinstance(error, ProcedureError) else str(error)
            text = text.replace(
                "is no input, no table, and set by no step before", "is no argument, fact, table or name bound above"
            )
            raise self.refusal(text) from None

    def truth(self, given: ExpressionLike, scope: _Scope) -> RuleCondition:
        kind = self.type(given, scope)
        if kind.kind != "boolean":
            raise self.refusal(f"a truth value is needed, and {_short(given)!r} is {kind}: compare it with something")
        tree = tree_of(given)
        joined = [node for node in nodes_of(tree) if isinstance(node, Logic | Not)]
        parts = [part for node in joined for part in (node.operands if isinstance(node, Logic) else (node.operand,))]
        for part in (tree, *parts):
            if not variables_in(part):
                raise self.refusal(
                    f"{_short(part)!r} reads nothing and comes always to the same: leave it out, or write `never` or "
                    "`allow`"
                )
        condition = RuleCondition.read(tree, options=self.options_in(scope))
        if always([condition]) is not None:
            raise self.refusal(f"{_short(given)!r} comes always to the same: leave it out, or write `never` or `allow`")
        return condition

    def options_in(self, scope: _Scope) -> Callable[[Expression], tuple[str, ...]]:
        """What a term may be where a demand stands, as far as its type lists that."""
        return lambda term: type_of(term, scope.types, self.tables).options

    def tool(self, name: str) -> DeclaredTool:
        tool = self.tools.get(name)
        if tool is None:
            near = get_close_matches(name, self.tools, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise self.refusal(f"no tool {name!r} is declared{hint}: write `tool {name}(...)`")
        self.used.add(name)
        return tool

    def pattern(self, pattern: CallPattern, scope: _Scope) -> DeclaredTool:
        tool = self.tool(pattern.tool)
        kinds = {each.name: each.type for each in tool.parameters}
        if len(pattern.positional) > len(kinds):
            raise self.refusal(f"{tool.name} takes {len(kinds)} arguments, {len(pattern.positional)} are given")
        taken: set[str] = set()
        for name, tree in pattern.arguments(kinds):
            if name not in kinds:
                near = get_close_matches(name, kinds, 1)
                hint = f" (did you mean {near[0]!r}?)" if near else f": it has {', '.join(kinds) or 'none'}"
                raise self.refusal(f"{tool.name} has no argument {name!r}{hint}")
            if name in taken:
                raise self.refusal(f"the argument {name!r} of {tool.name} is given twice")
            taken.add(name)
            kind = self.type(tree, scope)
            if not fits(kind, kinds[name]):
                raise self.refusal(
                    f"the argument {name!r} of {tool.name} is {kinds[name]}, and {_short(tree)!r} is {kind}"
                )
        return tool

    def bind(self, name: str, kind: ValueType, scope: _Scope) -> None:
        if name in scope.types or name in self.tables or name in self.tools:
            raise self.refusal(f"{name!r} has a meaning already: choose another name")
        scope.types[name] = kind
        scope.bound[name] = self.line

    def exempt(self, exemption: Exemption | None, scope: _Scope) -> None:
        if exemption is not None:
            self.truth(exemption.condition, scope)

    def rule(self, rule: Rule) -> None:
        self.line = rule.line
        tool = self.tool(rule.tool)
        names = bound_names(rule, tool.names)
        if len(rule.names) > len(tool.parameters):
            raise self.refusal(f"{tool.name} takes {len(tool.parameters)} arguments, the rule names {len(rule.names)}")
        if len(set(names)) < len(names):
            raise self.refusal(f"two arguments of {tool.name} have the same name in this rule")
        types = {**BUILT_IN, **self.plain}
        read = {each.name for each in nodes_of(rule) if type(each) is Name}
        for name, parameter in zip(names, tool.parameters, strict=True):
            if name in read and (name in types or name in self.tables):
                raise self.refusal(
                    f"{name!r} is an argument of {tool.name} and something else: name it anew in the rule"
                )
            if name in read or name not in types:
                types[name] = parameter.type
        scope = _Scope(types)
        self.body(rule.demands, scope)
        self.together(rule, dict(zip(names, tool.names, strict=True)), scope)

    def together(self, rule: Rule, arguments: Mapping[str, str], scope: _Scope) -> None:
        """Whether what is required before a call can all hold, in this rule and those above it."""
        held = self.held.setdefault(rule.tool, RuleConditions())
        same = {*BUILT_IN, *self.plain, *self.tables}
        named = {name: arguments.get(name, name if name in same else f"{name} {id(rule)}") for name in scope.types}
        for demand in rule.demands:
            if isinstance(demand, Done) and not demand.negated and not demand.exemption:
                self.line = demand.line
                if demand.pattern.tool == rule.tool:
                    raise self.refusal(
                        f"no call of {rule.tool} can come before the first one: write `never {rule.tool}`"
                    )
            if isinstance(demand, Requirement) and not demand.exemption:
                self.line = demand.line
                tree = tree_of(demand.condition)
                condition = RuleCondition.read(tree, named=named, options=self.options_in(scope))
                if held.contradict(replace(condition, holds=not demand.negated)):
                    raise self.refusal(f"this and what is required above it of {rule.tool} never hold together")

    def body(self, demands: Iterable[Demand], scope: _Scope) -> None:
        passed: set[object] = set()
        for demand in demands:
            self.line = demand.line
            self.demand(demand, scope)
            key = ("at most", demand.per, demand.within, demand.exemption) if isinstance(demand, Limit) else demand
            if key in passed:
                raise self.refusal("a line above it says the same: leave one of them out")
            passed.add(key)
        for name, line in scope.bound.items():
            if name not in scope.used:
                raise self.refusal(f"nothing reads {name!r}: leave it out", line)

    def demand(self, demand: Demand, scope: _Scope) -> None:
        match demand:
            case Seen():
                self.exempt(demand.exemption, scope)
                self.seen(demand, scope)
            case Done(pattern=pattern):
                self.exempt(demand.exemption, scope)
                self.pattern(pattern, scope)
            case Earlier(pattern, name):
                tool = self.pattern(pattern, scope)
                if tool.record is None:
                    raise self.refusal(f"{tool.name} has no arguments: count its calls with `at most`")
                self.bind(name, ValueType(kind="list", items=ValueType(kind="record", record=tool.record)), scope)
            case SeenAll(pattern, name):
                tool = self.pattern(pattern, scope)
                if tool.result is None:
                    raise self.refusal(f"the result of {tool.name} has no type: declare it, as `-> Order`")
                self.bind(name, ValueType(kind="list", items=tool.result), scope)
            case Requirement(condition=condition):
                self.exempt(demand.exemption, scope)
                counted = self.truth(condition, scope)
                if demand.exemption is not None:
                    case = RuleCondition.read(tree_of(demand.exemption.condition), options=self.options_in(scope))
                    case, broken = replace(case, holds=demand.exemption.counts), replace(counted, holds=demand.negated)
                    if always([case, broken]) is False:
                        raise self.refusal(f"{_short(condition)!r} is broken by nothing where it counts")
            case Limit(per=per, within=within):
                self.exempt(demand.exemption, scope)
                for each in per:
                    self.type(each, scope)
                if within is not None and self.type(within, scope).kind != "duration":
                    raise self.refusal("a limit counts within a duration, such as `within 24 hours`")
                if isinstance(within, LiteralTerm) and cast(timedelta, within.value) <= timedelta():
                    raise self.refusal("within no time at all nothing can be counted")
            case Binding(name, value):
                self.bind(name, self.type(value, scope), scope)
            case Branching(branches, otherwise):
                others: list[RuleCondition] = []
                for condition, body in branches:
                    self.line = demand.line
                    if not body:
                        raise self.refusal(f"the case {_short(condition)!r} demands nothing: leave it out")
                    case = self.truth(condition, scope)
                    if others and always([*others, case]) is False:
                        raise self.refusal(f"the case {_short(condition)!r} never comes up behind those above it")
                    others.append(replace(case, holds=False))
                    self.body(body, scope.inner())
                self.body(otherwise, scope.inner())
            case Repetition(variable, over, body):
                kind = self.type(over, scope)
                if kind.items is None:
                    raise self.refusal(f"`for each` goes through a list, and {_short(over)!r} is {kind}")
                if not body:
                    raise self.refusal("`for each` demands nothing: leave it out")
                inner = scope.inner()
                self.bind(variable, kind.items, inner)
                self.body(body, inner)
            case _:
                self.exempt(demand.exemption, scope)

    def seen(self, demand: Seen, scope: _Scope) -> None:
        tools = [self.pattern(each, scope) for each in demand.patterns]
        if demand.name is None:
            return
        if demand.exemption is not None:
            raise self.refusal(f"{demand.name!r} may be unknown where the condition exempts: write it in an `if` block")
        kinds = [each.result for each in tools]
        for tool, kind in zip(tools, kinds, strict=True):
            if kind is None:
                raise self.refusal(f"the result of {tool.name} has no type: declare it, as `-> Order`")
            if kind != kinds[0]:
                raise self.refusal(
                    f"{tools[0].name} gives {kinds[0]}, and {tool.name} gives {kind}: they need one type"
                )
        assert kinds[0] is not None
        self.bind(demand.name, kinds[0], scope)


def _short(given: ExpressionLike) -> str:
    return shortened(tree_of(given))


def check_rules(
    rules: Sequence[Rule],
    tools: Mapping[str, DeclaredTool],
    facts: Mapping[str, DeclaredFact],
    tables: Mapping[str, Table],
    records: Mapping[str, RecordType],
) -> None:
    """Refuse a policy that cannot be right, or holds what is of no use.

    Raises:
        PolicyError: with the line.
    """
    checker = _RuleChecker(tools, facts, tables)
    ruled: dict[str, bool] = {}
    for rule in rules:
        checker.rule(rule)
        never = [each for each in rule.demands if isinstance(each, Prohibition) and each.exemption is None]
        own = [each for each in tools[rule.tool].rules if each is not rule and each.line != rule.line]
        if never and own and not any(each.line == own[0].line for each in rules if each.tool != rule.tool):
            raise PolicyError(f"{rule.tool} is never called: line {own[0].line} demands nothing more", line=rule.line)
        free = not rule.demands
        if ruled.setdefault(rule.tool, free) != free or (free and tools[rule.tool].reads):
            reason = "it only reads" if tools[rule.tool].reads else "a rule speaks of it"
            raise PolicyError(f"`allow {rule.tool}` is of no use: {reason}; leave one of them out", line=rule.line)
    for tool in tools.values():
        scope = _Scope({each.name: each.type for each in tool.parameters})
        checker.line = tool.line
        for pattern in tool.changes or ():
            checker.pattern(pattern, scope)
        known = sorted(name for name in scope.used if name in facts and name not in scope.types)
        if known:
            raise PolicyError(
                f"what {tool.name} changes cannot hang on the fact {known[0]!r}: name what follows from its arguments",
                line=tool.line,
            )
        if not tool.reads and tool.name not in ruled:
            raise PolicyError(
                f"no rule speaks of {tool.name}, which may change something: write `before {tool.name}: ...`, "
                f"`allow {tool.name}`, or `reads` behind its declaration",
                line=tool.line,
            )
    for fact in facts.values():
        if fact.name not in checker.used:
            raise PolicyError(f"no rule reads the fact {fact.name!r}: leave it out", line=fact.line)
    for table in tables:
        if table not in checker.used:
            raise PolicyError(f"no rule looks anything up in the table {table!r}: leave it out")
    used = _used_records(tools.values(), facts.values())
    for record in records:
        if record not in used:
            raise PolicyError(f"nothing is a record {record!r}: leave it out")


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
