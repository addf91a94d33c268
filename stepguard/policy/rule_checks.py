"""What can be known of the rules of a policy: names, types, and whether each demand can be kept and be broken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from stepguard.errors import ConfigError, EvaluationError, ExpressionError, PolicyError, ProcedureError, ValueRefused
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Chain, Compare, Expression, Logic, Name, Not, Number
from stepguard.language.lookup_tables import OTHERWISE, Table
from stepguard.language.term_evaluation import evaluate_term
from stepguard.language.term_types import type_of
from stepguard.language.terms import Aggregate, Item, ListTerm, LiteralTerm, Member, RecordTerm, variables_in
from stepguard.language.type_relations import DATE, TEXTS, fits
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.policy.condition_reading import ConditionReader, Joined, Opposite, Truth
from stepguard.policy.contradictions import RuleConditions, never
from stepguard.policy.notes import PolicyNote
from stepguard.policy.rules import (
    MOMENT,
    Binding,
    Branching,
    CallPattern,
    Confirmation,
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
from stepguard.procedure.notation.settings import constant

if TYPE_CHECKING:
    from stepguard.policy.policy import DeclaredFact, DeclaredTool

BUILT_IN: Final[Mapping[str, ValueType]] = {"now": MOMENT, "today": DATE}
"""What every rule may read: the moment of the call, and its day."""

_MOST_ROWS: Final = 1024
_NEAR: Final = 5
_ALWAYS: Final = "comes always to the same: leave it out, or write `never` or `allow`"


class _CallLimit(NamedTuple):
    """A limit, so that it can be held against others."""

    most: int
    per: frozenset[str]
    within: Fraction | str | None
    exemption: Exemption | None

    def covers(self, other: _CallLimit) -> bool:
        """Whether it is reached before another one."""
        longer = self.within is None or self.within == other.within
        if isinstance(self.within, Fraction) and isinstance(other.within, Fraction):
            longer = self.within >= other.within
        exempt = self.exemption is None or self.exemption == other.exemption
        return self.most <= other.most and self.per <= other.per and longer and exempt


@dataclass
class _Above:
    """What stands above a demand and counts where it stands."""

    conditions: RuleConditions = field(default_factory=RuleConditions)
    limits: list[_CallLimit] = field(default_factory=list)
    made: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    not_made: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def inner(self) -> _Above:
        return _Above(RuleConditions(self.conditions), self.limits[-_NEAR:], self.made[-_NEAR:], self.not_made[-_NEAR:])


@dataclass
class _Scope:
    """What the rule of one tool may read where a demand stands, and which of it is of use so far."""

    types: dict[str, ValueType]
    reader: ConditionReader
    above: _Above = field(default_factory=_Above)
    passed: set[object] = field(default_factory=set)
    bound: dict[str, int | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    nested: bool = True

    def inner(self) -> _Scope:
        types = dict(self.types)
        return _Scope(types, self.reader.inner(types), self.above.inner(), set(self.passed), {}, self.used)


class RuleChecker:
    """Checks rules one after the other.

    Args:
        tools: the tools, by name.
        facts: the facts.
        tables: the tables.
        never_called: the tools that no call of can be let through, and why.
    """

    def __init__(
        self,
        tools: Mapping[str, DeclaredTool],
        facts: Mapping[str, DeclaredFact],
        tables: Mapping[str, Table],
        never_called: Mapping[str, str],
    ) -> None:
        self.tools = tools
        self.plain = {fact.name: fact.type for fact in facts.values() if not fact.keys}
        self.tables: dict[str, Table] = {**tables, **{fact.name: fact.table for fact in facts.values() if fact.keys}}
        self.keyed = frozenset(fact.name for fact in facts.values() if fact.keys)
        self.never_called = never_called
        self.used: set[str] = set()
        self.bound: set[str] = set()
        self.looked_up: dict[str, set[tuple[Value, ...]] | None] = {}
        self.above: dict[str, _Above] = {}
        self.notes: list[PolicyNote] = []
        self.line: int | None = None
        self.own = ""

    def refusal(self, message: str, line: int | None = None) -> PolicyError:
        """An error where the checker is."""
        return PolicyError(message, line=self.line if line is None else line)

    def note(self, text: str) -> None:
        """Something that is right by itself and of no use."""
        self.notes.append(PolicyNote(self.line, text))

    # ---- expressions

    def type(self, given: ExpressionLike, scope: _Scope) -> ValueType:
        """The type of an expression, which can have a value."""
        tree = tree_of(given)
        names = variables_in(tree)
        self.used.update(names)
        scope.used.update(names)
        for node in nodes_of(tree):
            if isinstance(node, Member) and isinstance(node.of, Name) and node.of.name in self.keyed:
                raise self.refusal(f"a fact has a value and no rows: write `{node.of.name}[...]`")
        try:
            kind = type_of(tree, scope.types, self.tables)
        except (ProcedureError, ConfigError, ExpressionError) as error:
            text = error.message if isinstance(error, ProcedureError) else str(error)
            text = text.replace(
                "is no input, no table, and set by no step before", "is no argument, fact, table or name bound above"
            )
            name = next((each for each in names if each not in scope.types and each in self.bound), None)
            where = "" if name is None else f"; {name!r} is bound elsewhere, and holds in its own rule or block alone"
            raise self.refusal(f"{text}{where}") from None
        for node in nodes_of(tree):
            self.part(node, scope)
        return kind

    def part(self, node: object, scope: _Scope) -> None:
        """Refuse a part of an expression that never has a value, or always the same."""
        match node:
            case Aggregate(_, value, str() as variable, _, where):
                if variable not in (*variables_in(value), *(() if where is None else variables_in(where))):
                    raise self.refusal(f"nothing reads {variable!r} in {_short(node)!r}: leave it out")
            case Item(Name() as of, keys) if of.name in self.tables and of.name not in self.keyed:
                self.looks_up(self.tables[of.name], keys, scope)
            case Member(_, Name() as of) if of.name in self.tables:
                self.looked_up[of.name] = None
            case Compare() | Member() if not variables_in(node):
                raise self.refusal(f"{_short(node)!r} reads nothing and {_ALWAYS}")
            case Chain(operands, operators) if set(variables_in(node)) <= scope.types.keys():
                for operator, operand in zip(operators, operands[1:], strict=True):
                    if operator in ("/", "//", "%") and not any(scope.reader.sum(operand).values()):
                        raise self.refusal(f"{_short(node)!r} divides by {_short(operand)!r}, which is 0")
                parts = [each.value for each in operands if isinstance(each, LiteralTerm)]
                if scope.reader.type(node) == DATE and any(
                    isinstance(each, timedelta) and each % timedelta(days=1) for each in parts
                ):
                    raise self.refusal(f"{_short(node)!r}: a date has no time of day; count in days, or use `now.at`")
            case _ if isinstance(node, Expression) and not isinstance(
                node, Number | LiteralTerm | ListTerm | RecordTerm
            ):
                if not variables_in(node):
                    try:
                        evaluate_term(node, {}, self.tables)
                    except EvaluationError as error:
                        raise self.refusal(str(error)) from None

    def looks_up(self, table: Table, keys: tuple[Expression, ...], scope: _Scope) -> None:
        """Refuse what has no row, as far as the keys can be told."""
        kinds: list[tuple[Value, ...]] = []
        for each in keys:
            known = isinstance(each, Number | LiteralTerm) or set(variables_in(each)) <= scope.types.keys()
            kind = scope.reader.type(each) if known else None
            value = each.value if isinstance(each, Number | LiteralTerm) else None
            kinds.append((value,) if value is not None else () if kind is None else kind.options)
        if not all(kinds) or prod(map(len, kinds)) > _MOST_ROWS:
            self.looked_up[table.name] = None
            return
        for row in product(*kinds):
            try:
                table.look_up(row)
            except EvaluationError as error:
                raise self.refusal(f"{error}: add one, or `otherwise`") from None
        rows = self.looked_up.setdefault(table.name, set())
        if rows is not None:
            rows.update(product(*kinds))

    def truth(self, given: ExpressionLike, scope: _Scope) -> Truth:
        """What a condition says, which can hold and not hold."""
        kind = self.type(given, scope)
        if kind.kind != "boolean":
            raise self.refusal(f"a truth value is needed, and {_short(given)!r} is {kind}: compare it with something")
        tree = tree_of(given)
        joined = [node for node in nodes_of(tree) if isinstance(node, Logic | Not)]
        parts = [part for node in joined for part in (node.operands if isinstance(node, Logic) else (node.operand,))]
        for part in (*parts, tree):
            if not variables_in(part):
                raise self.refusal(f"{_short(part)!r} reads nothing and {_ALWAYS}")
            if set(variables_in(part)) <= scope.types.keys() | self.tables.keys():
                truth = scope.reader.truth(part)
                if never([truth]) or never([Opposite(truth)]):
                    raise self.refusal(f"{_short(part)!r} {_ALWAYS}")
        return scope.reader.truth(tree)

    # ---- calls

    def tool(self, name: str) -> DeclaredTool:
        """A tool that is declared."""
        tool = self.tools.get(name)
        if tool is None:
            raise self.refusal(f"no tool {name!r} is declared{_near(name, self.tools)}: write `tool {name}(...)`")
        self.used.add(name)
        return tool

    def pattern(self, pattern: CallPattern, scope: _Scope) -> DeclaredTool:
        """The tool of a pattern, whose arguments it has."""
        tool = self.tool(pattern.tool)
        kinds = {each.name: each.type for each in tool.parameters}
        if len(pattern.positional) > len(kinds):
            raise self.refusal(f"{tool.name} takes {len(kinds)} arguments, {len(pattern.positional)} are given")
        taken: set[str] = set()
        for name, given in pattern.arguments(kinds):
            if name not in kinds:
                hint = _near(name, kinds) or f": it has {', '.join(kinds) or 'none'}"
                raise self.refusal(f"{tool.name} has no argument {name!r}{hint}")
            if name in taken:
                raise self.refusal(f"the argument {name!r} of {tool.name} is given twice")
            taken.add(name)
            kind, tree = self.type(given, scope), tree_of(given)
            if not fits(kind, kinds[name]):
                raise self.refusal(
                    f"the argument {name!r} of {tool.name} is {kinds[name]}, and {_short(tree)!r} is {kind}"
                )
            if isinstance(tree, Number | LiteralTerm) and kinds[name].kind != "percent":
                try:
                    kinds[name].accept(constant(tree))
                except ValueRefused as error:
                    raise self.refusal(f"no call has this as its {name!r} of {tool.name}: {error}") from None
        return tool

    def callable(self, pattern: CallPattern, scope: _Scope) -> DeclaredTool:
        """As `pattern`, of a tool that is called."""
        tool = self.pattern(pattern, scope)
        if tool.name in self.never_called:
            raise self.refusal(f"{tool.name} can never be called: {self.never_called[tool.name]}")
        return tool

    def call_of(self, pattern: CallPattern, scope: _Scope) -> tuple[str, frozenset[str]]:
        """A pattern, so that it can be held against others."""
        pairs = pattern.arguments(self.tools[pattern.tool].names)
        return pattern.tool, frozenset(f"{name} {scope.reader.text(tree_of(tree))}" for name, tree in pairs)

    def changes(self, tool: DeclaredTool, facts: Mapping[str, DeclaredFact]) -> None:
        """What a tool makes stale, which follows from its arguments."""
        self.line = tool.line
        types = {each.name: each.type for each in tool.parameters}
        scope = _Scope(types, ConditionReader.of(types, self.tables, {}))
        for pattern in tool.changes or ():
            self.pattern(pattern, scope)
        known = sorted(name for name in scope.used if name in facts and name not in types)
        if known:
            raise self.refusal(
                f"what {tool.name} changes cannot hang on the fact {known[0]!r}: name what follows from its arguments"
            )

    def rows(self, table: Table) -> None:
        """Whether each row of a table of texts is looked up by some rule."""
        known = self.looked_up.get(table.name)
        if known is None or len(table.keys) != 1 or table.keys[0][1].kind not in TEXTS:
            return
        for key, _ in table.rows:
            if key == OTHERWISE:
                of_use = not all(table.has_row(each) for each in known)
            else:
                of_use = ((json.loads(key) if key.startswith('"') else key),) in known
            if not of_use:
                raise PolicyError(f"no rule looks up the row {key!r} of the table {table.name!r}: leave it out")

    # ---- demands

    def rule(self, rule: Rule) -> None:
        """Check a rule behind those above it."""
        self.line = rule.line
        tool = self.tool(rule.tool)
        names = bound_names(rule, tool.names)
        if len(rule.names) > len(tool.parameters):
            raise self.refusal(f"{tool.name} takes {len(tool.parameters)} arguments, the rule names {len(rule.names)}")
        if len(set(names)) < len(names):
            raise self.refusal(f"two arguments of {tool.name} have the same name in this rule")
        types = {**BUILT_IN, **self.plain}
        texts: dict[str, str] = {}
        read = {each.name for each in nodes_of(rule) if type(each) is Name}
        for name, parameter in zip(names, tool.parameters, strict=True):
            if name in read and (name in types or name in self.tables):
                raise self.refusal(
                    f"{name!r} is an argument of {tool.name} and something else: name it anew in the rule"
                )
            if name in read or name not in types:
                types[name] = parameter.type
                texts[name] = f"argument {parameter.name}"
        self.own = rule.tool
        above = self.above.setdefault(rule.tool, _Above())
        self.body(rule.demands, _Scope(types, ConditionReader.of(types, self.tables, texts), above, nested=False))

    def body(self, demands: Iterable[Demand], scope: _Scope) -> None:
        """Check what stands in one block."""
        for demand in demands:
            self.line = demand.line
            words = getattr(demand, "words", None)
            if words is not None and not words.strip():
                raise self.refusal("the words for the agent are empty: leave them out")
            self.demand(demand, scope)
            bare: object = demand
            if isinstance(demand, Seen):
                bare = replace(demand, words=None, name=None)
            elif isinstance(demand, Done | Requirement | Confirmation):
                bare = replace(demand, words=None)
            always = replace(bare, exemption=None) if hasattr(bare, "exemption") else bare  # type: ignore[type-var]
            if not isinstance(demand, Limit) and not scope.passed.isdisjoint({bare, always}):
                raise self.refusal("a line above it says the same: leave one of them out")
            scope.passed.add(bare)
        for name, line in scope.bound.items():
            if name not in scope.used:
                raise self.refusal(f"nothing reads {name!r}: leave it out", line)

    def demand(self, demand: Demand, scope: _Scope) -> None:
        """Check one demand, and add it to what stands above the next."""
        match demand:
            case Seen():
                self.seen(demand, self.case(demand.exemption, scope), scope)
            case Done(pattern=pattern):
                case = self.case(demand.exemption, scope)
                tool = self.callable(pattern, scope)
                self.made(demand, [pattern], case, scope, made=not demand.negated)
                names = {f"{name} argument {name}" for name in tool.names}
                _, given = call = self.call_of(pattern, scope)
                if demand.negated and call[0] == self.own and case is True and given <= names:
                    per = frozenset(each.partition(" ")[2] for each in given)
                    self.limit(_CallLimit(1, per, None, None), scope)
            case Earlier(pattern, name):
                tool = self.callable(pattern, scope)
                if tool.record is None:
                    raise self.refusal(f"{tool.name} has no arguments: count its calls with `at most`")
                kind = ValueType(kind="list", items=ValueType(kind="record", record=tool.record))
                self.bind(name, kind, scope, text=f"earlier {self.call_of(pattern, scope)}")
            case SeenAll(pattern, name):
                tool = self.callable(pattern, scope)
                if tool.result is None:
                    raise self.refusal(f"the result of {tool.name} has no type: declare it, as `-> Order`")
                kind = ValueType(kind="list", items=tool.result)
                self.bind(name, kind, scope, text=f"all {self.call_of(pattern, scope)}")
            case Requirement():
                self.requirement(demand, self.case(demand.exemption, scope), scope)
            case Limit(most, per, within):
                self.case(demand.exemption, scope)
                for each in per:
                    if not variables_in(tree_of(each)):
                        raise self.refusal(f"{_short(each)!r} is the same for every call: leave it out")
                    self.type(each, scope)
                if within is not None and self.type(within, scope).kind != "duration":
                    raise self.refusal("a limit counts within a duration, such as `within 24 hours`")
                span = None if within is None else scope.reader.sum(tree_of(within))
                period = None if span is None else span.get("", Fraction(0)) if not span.keys() - {""} else str(span)
                if isinstance(period, Fraction) and period <= 0:
                    raise self.refusal("within no time at all nothing can be counted")
                texts = frozenset(scope.reader.text(tree_of(each)) for each in per)
                self.limit(_CallLimit(most, texts, period, demand.exemption), scope)
            case Binding(name, value):
                self.bind(name, self.type(value, scope), scope, value=tree_of(value))
            case Branching():
                self.branching(demand, scope)
            case Repetition(variable, over, body):
                kind = self.type(over, scope)
                if kind.items is None:
                    raise self.refusal(f"`for each` goes through a list, and {_short(over)!r} is {kind}")
                if not body:
                    raise self.refusal("`for each` demands nothing: leave it out")
                inner = scope.inner()
                inner.above.limits, inner.passed = [], set()  # what it counts, it counts for each
                self.bind(variable, kind.items, inner)
                self.body(body, inner)
            case Prohibition():
                case = self.case(demand.exemption, scope)
                if demand.exemption is not None:
                    scope.above.conditions.add(Opposite(case))
            case Confirmation():
                self.case(demand.exemption, scope)

    def bind(
        self, name: str, kind: ValueType, scope: _Scope, *, text: str = "", value: Expression | None = None
    ) -> None:
        """Give a name its meaning: what `text` says, or what an expression comes to."""
        if name in scope.types or name in self.tables or name in self.tools:
            raise self.refusal(f"{name!r} has a meaning already: choose another name")
        scope.types[name] = kind
        scope.bound[name] = self.line
        self.bound.add(name)
        scope.reader.texts[name] = text or f"{name} {self.line} {id(scope)}"
        if value is not None:
            scope.reader.name(name, value)

    def case(self, exemption: Exemption | None, scope: _Scope) -> Truth:
        """When a demand counts: always, or where a condition says."""
        if exemption is None:
            return True
        truth = self.truth(exemption.condition, scope)
        case = truth if exemption.counts else Opposite(truth)
        if scope.above.conditions.exclude(case):
            self.note("behind what is required above it, this never counts: leave it out")
        elif scope.above.conditions.exclude(Opposite(case)):
            self.note("behind what is required above it, this counts always: leave its condition out")
        return case

    def requirement(self, demand: Requirement, case: Truth, scope: _Scope) -> None:
        """A relation, held against those above it."""
        shown = _short(demand.condition)
        truth = self.truth(demand.condition, scope)
        kept, broken = (Opposite(truth), truth) if demand.negated else (truth, Opposite(truth))
        if demand.exemption is not None:
            if never([case, broken]):
                raise self.refusal(f"{shown!r} is broken by nothing where it counts: leave it out")
            if never([case, kept]):
                raise self.refusal(f"{shown!r} is kept by nothing where it counts: require the exception by itself")
            if never([Opposite(case), broken]):
                raise self.refusal(f"{shown!r} is kept anyway where the exception is: leave the exception out")
        conditions = scope.above.conditions
        if conditions.exclude(case):
            return
        if conditions.exclude(case, kept):
            if scope.nested:
                raise self.refusal(
                    f"{shown!r} is never kept in this case, behind what stands above it: they never hold together; "
                    "write `refuse if` with the condition of the case"
                )
            where = "" if demand.exemption is None else "where it counts, "
            raise self.refusal(f"{where}this and what is required above it of {self.own} never hold together")
        if conditions.exclude(case, broken):
            self.note(f"what stands above it sees to this already: leave it out, {shown!r} changes nothing")
        conditions.add(kept if case is True else Joined(False, (Opposite(case), kept)))

    def branching(self, demand: Branching, scope: _Scope) -> None:
        """Cases, each of which comes up."""
        behind, cases = scope.above.inner(), RuleConditions()
        case: Truth = True
        for number, (condition, body) in enumerate(demand.branches):
            self.line = demand.line
            shown = _short(condition)
            if not body:
                raise self.refusal(f"the case {shown!r} demands nothing: leave it out")
            case = self.truth(condition, scope)
            if cases.exclude(case):
                raise self.refusal(f"the case {shown!r} never comes up behind those above it")
            cases.add(Opposite(case))
            inner = scope.inner()
            if behind.conditions.exclude(case):
                self.note(f"the case {shown!r} never comes up behind what is required above it: leave it out")
                inner.above = _Above()
            else:
                inner.above = behind.inner()
                if not number and behind.conditions.exclude(Opposite(case)):
                    self.note(f"the case {shown!r} comes up always behind what is required above it")
            inner.above.conditions.add(case)
            self.body(body, inner)
            behind.conditions.add(Opposite(case))
        if not demand.otherwise:
            return
        self.line = demand.otherwise[0].line
        if cases.exclude(Opposite(case)):
            raise self.refusal("`else` never comes up: the cases above it are all there are")
        if all(body == demand.otherwise for _, body in demand.branches):
            raise self.refusal("the same is demanded in every case: write it once, without `if`")
        inner = scope.inner()
        inner.above = _Above() if behind.conditions.exclude(Opposite(case)) else behind.inner()
        self.body(demand.otherwise, inner)

    def limit(self, limit: _CallLimit, scope: _Scope) -> None:
        """A limit, held against those above it."""
        for each in scope.above.limits[-_NEAR:]:
            if each.covers(limit):
                raise self.refusal("a line above it says the same, or is reached before it: leave one of them out")
            if limit.covers(each):
                raise self.refusal("a limit above it is never reached, for this one is before: leave that one out")
        scope.above.limits.append(limit)

    def made(self, demand: Demand, patterns: Iterable[CallPattern], case: Truth, scope: _Scope, *, made: bool) -> None:
        """Calls that have to have been made, or must not have been."""
        calls = [self.call_of(each, scope) for each in patterns]
        if case is not True or len(calls) != 1:
            return
        call = calls[0]
        own, others = (scope.above.made, scope.above.not_made) if made else (scope.above.not_made, scope.above.made)
        for other in others[-_NEAR:]:
            there, missing = (call, other) if made else (other, call)
            if there[0] == missing[0] and missing[1] <= there[1]:
                raise self.refusal(f"this and what is demanded of {call[0]} above it never hold together")
        own.append(call)

    def seen(self, demand: Seen, case: Truth, scope: _Scope) -> None:
        """A result that has to be there, and what it is called."""
        tools = [self.callable(each, scope) for each in demand.patterns]
        self.made(demand, demand.patterns, case, scope, made=True)
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
        calls = [self.call_of(each, scope) for each in demand.patterns]
        self.bind(demand.name, kinds[0], scope, text=f"seen {[(tool, sorted(given)) for tool, given in calls]}")


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _short(given: ExpressionLike) -> str:
    return shortened(tree_of(given))
