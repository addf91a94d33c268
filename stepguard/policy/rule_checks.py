"""Check the rules of a policy: each demand can be kept, can be broken, and changes something."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Final

from stepguard.errors import PolicyError
from stepguard.language.expressions import Expression, Name
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import variables_in
from stepguard.language.terms.type_relations import DATE
from stepguard.language.value_types import ValueType
from stepguard.policy.condition_reading import ConditionReader, Joined, Opposite, Truth, constant_of
from stepguard.policy.contradictions import RuleConditions, never
from stepguard.policy.declarations import DeclaredFact, DeclaredTool
from stepguard.policy.demand_scope import CallLimit, DemandedCall, DemandScope, EarlierDemands
from stepguard.policy.moments import MOMENT
from stepguard.policy.name_checks import CallChecker, ExpressionChecker
from stepguard.policy.notes import PolicyNote
from stepguard.policy.rules import (
    Binding,
    Branching,
    Confirmation,
    Demand,
    Done,
    Earlier,
    Limit,
    Prohibition,
    Repetition,
    Requirement,
    Rule,
    Seen,
    SeenAll,
    WordedDemand,
    bound_names,
    nodes_of,
    short_text,
    tree_of,
)

_TODAY: Final = tree_of("now.date")
_NEVER_AGAIN: Final = tree_of("now"), tree_of("now.at")


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
        self.expressions = ExpressionChecker(facts.values(), tables)
        self.notes: list[PolicyNote] = []
        self._calls = CallChecker(tools, never_called, self.expressions)
        self._facts = {fact.name: fact.type for fact in facts.values() if not fact.keys}
        self._above: defaultdict[str, EarlierDemands] = defaultdict(EarlierDemands)
        self._numbers = count(1)

    def check_changes(self, tool: DeclaredTool, facts: Mapping[str, DeclaredFact]) -> None:
        """Check the calls that a tool makes stale; they may hang on its arguments alone."""
        types = {each.name: each.type for each in tool.parameters}
        scope = DemandScope(tool.name, ConditionReader(types, self.expressions.tables))
        with _located(tool.line):
            changed: list[DemandedCall] = []
            for pattern in tool.changes or ():
                call = self._calls.pattern(pattern, scope)
                if any(call.covers(each) or each.covers(call) for each in changed):
                    raise PolicyError(f"{tool.name} changes results of {call.tool} twice: leave one of them out")
                changed.append(call)
            if known := sorted(name for name in scope.used if name in facts and name not in types):
                raise PolicyError(
                    f"what {tool.name} changes cannot hang on the fact {known[0]!r}: "
                    "name what follows from its arguments"
                )

    def check(self, rule: Rule) -> None:
        """Check a rule behind those above it."""
        with _located(rule.line):
            tool = self._calls.tool(rule.tool)
            self._body(rule.demands, DemandScope(rule.tool, self._reader(rule, tool), self._above[rule.tool]))

    def _reader(self, rule: Rule, tool: DeclaredTool) -> ConditionReader:
        """The reader of a rule, which knows its arguments."""
        names, tables = bound_names(rule, tool.names), self.expressions.tables
        if len(rule.names) > len(tool.parameters):
            raise PolicyError(f"{tool.name} takes {len(tool.parameters)} arguments, the rule names {len(rule.names)}")
        for name, own in zip(rule.names, tool.names, strict=False):
            # `before refund(amount, order)` with the arguments in another order would silently swap their values.
            if name != own and name in tool.names:
                raise PolicyError(
                    f"{name!r} names the argument {own!r} of {tool.name} in this rule, which has another one of that "
                    f"name: the order is {', '.join(tool.names)}"
                )
        if len(set(names)) < len(names):
            raise PolicyError(f"two arguments of {tool.name} have the same name in this rule")
        reader = ConditionReader({"now": MOMENT, **self._facts}, tables)
        reader.name("today", DATE, _TODAY)
        read = {each.name for each in nodes_of(rule) if type(each) is Name}
        for name, parameter in zip(names, tool.parameters, strict=True):
            # Only where the rule reads it: otherwise the fact keeps its meaning and nothing is ambiguous.
            if name in read and (name in reader.types or name in tables):
                raise PolicyError(
                    f"{name!r} is an argument of {tool.name} and something else: name it anew in the rule"
                )
            if name in read or name not in reader.types:
                reader.name(name, parameter.type, f"argument {parameter.name}")
        return reader

    def _body(self, demands: Iterable[Demand], scope: DemandScope) -> None:
        """Check what stands in one block."""
        for demand in demands:
            with _located(demand.line):
                if isinstance(demand, WordedDemand) and demand.words is not None and not demand.words.strip():
                    raise PolicyError("the words for the agent are empty: leave them out")
                self._demand(demand, scope)
                bare = _without_words(demand)
                always = replace(bare, exemption=None) if isinstance(bare, WordedDemand) else bare
                # Limits are compared by what they count, in add_limit.
                if not isinstance(demand, Limit) and not scope.passed.isdisjoint({bare, always}):
                    raise PolicyError("a line above it says the same: leave one of them out")
                scope.passed.add(bare)
        for name, line in scope.bound.items():
            if name not in scope.used:
                raise PolicyError(f"nothing reads {name!r}: leave it out", line=line)

    def _demand(self, demand: Demand, scope: DemandScope) -> None:
        """Check one demand, and add it to what stands above the next."""
        case = self._case(demand, scope) if isinstance(demand, WordedDemand) else True
        match demand:
            case Seen():
                self._seen(demand, case, scope)
            case Done():
                self._done(demand, case, scope)
            case Earlier() | SeenAll():
                self._list(demand, scope)
            case Requirement():
                self._requirement(demand, case, scope)
            case Limit():
                self._limit(demand, scope)
            case Binding(name, value):
                self._bind(name, self.expressions.type(value, scope), tree_of(value), demand, scope)
            case Branching():
                self._branching(demand, scope)
            case Repetition():
                self._repetition(demand, scope)
            case Prohibition() if demand.exemption is not None:
                scope.above.conditions.add(Opposite(case))

    def _note(self, demand: WordedDemand | Branching, text: str) -> None:
        """Something that is right by itself and of no use."""
        self.notes.append(PolicyNote(demand.line, text))

    def _bind(self, name: str, kind: ValueType, value: Expression | str, demand: Demand, scope: DemandScope) -> None:
        """Bind a name to the value of an expression, or to an unknown identified by a text."""
        if name in scope.reader.types or name in self.expressions.tables or name in self._calls.tools:
            raise PolicyError(f"{name!r} has a meaning already: choose another name")
        scope.bound[name] = demand.line
        self.expressions.bound.add(name)
        scope.reader.name(name, kind, value)

    def _case(self, demand: WordedDemand, scope: DemandScope) -> Truth:
        """When a demand counts: always, or where a condition says."""
        if demand.exemption is None:
            return True
        truth = self.expressions.truth(demand.exemption.condition, scope)
        case = truth if demand.exemption.counts else Opposite(truth)
        if scope.above.conditions.exclude(case):
            self._note(demand, "behind what is required above it, this never counts: leave it out")
        elif scope.above.conditions.exclude(Opposite(case)):
            self._note(demand, "behind what is required above it, this counts always: leave its condition out")
        return case

    def _seen(self, demand: Seen, case: Truth, scope: DemandScope) -> None:
        """A result that has to be there, and what it is called."""
        calls = [self._calls.call(each, scope) for each in demand.patterns]
        # With a condition, or with alternatives, this call need not have been made.
        if case is True and len(calls) == 1:
            scope.above.add_call(calls[0], made=True)
        if demand.name is None:
            return
        if demand.exemption is not None:
            raise PolicyError(f"{demand.name!r} may be unknown where the condition exempts: write it in an `if` block")
        kind = self._calls.result(calls[0].tool)
        for call in calls[1:]:
            other = self._calls.result(call.tool)
            if other != kind:
                raise PolicyError(f"{calls[0].tool} gives {kind}, and {call.tool} gives {other}: they need one type")
        self._bind(demand.name, kind, f"seen {' or '.join(map(str, calls))}", demand, scope)

    def _done(self, demand: Done, case: Truth, scope: DemandScope) -> None:
        """A call that has to have been made, or must not have been; ``not done`` of its own tool is a limit."""
        call = self._calls.call(demand.pattern, scope)
        if case is not True:
            return
        scope.above.add_call(call, made=not demand.negated)
        if demand.negated and call.tool == scope.tool and call.arguments <= self._own_arguments(scope):
            scope.above.add_limit(CallLimit(1, frozenset(text for _, text in call.arguments)))

    def _list(self, demand: Earlier | SeenAll, scope: DemandScope) -> None:
        """Calls, or what they gave back, as a list."""
        call = self._calls.call(demand.pattern, scope)
        scope.above.add_list(call)
        if isinstance(demand, Earlier):
            kind, text = self._calls.arguments(call.tool), f"earlier {call}"
        else:
            kind, text = self._calls.result(call.tool), f"all {call}"
        self._bind(demand.name, ValueType(kind="list", items=kind), text, demand, scope)

    def _requirement(self, demand: Requirement, case: Truth, scope: DemandScope) -> None:
        """A relation, held against those above it."""
        shown = short_text(demand.condition)
        truth = self.expressions.truth(demand.condition, scope)
        kept, broken = (Opposite(truth), truth) if demand.negated else (truth, Opposite(truth))
        if demand.exemption is not None:
            _check_exception(shown, case, kept, broken)
        conditions = scope.above.conditions
        # Where it never counts nothing more can be said; _case has noted that.
        if conditions.exclude(case):
            return
        if conditions.exclude(case, kept):
            if scope.nested:
                raise PolicyError(
                    f"{shown!r} is never kept in this case, behind what stands above it: they never hold together; "
                    "write `refuse if` with the condition of the case"
                )
            where = "" if demand.exemption is None else "where it counts, "
            raise PolicyError(f"{where}this and what is required above it of {scope.tool} never hold together")
        if conditions.exclude(case, broken):
            self._note(demand, f"what stands above it sees to this already: leave it out, {shown!r} changes nothing")
        conditions.add(kept if case is True else Joined(False, (Opposite(case), kept)))

    def _limit(self, demand: Limit, scope: DemandScope) -> None:
        """A limit, held against those above it."""
        for each in demand.per:
            if not variables_in(tree_of(each)):
                raise PolicyError(f"{short_text(each)!r} is the same for every call: leave it out")
            if scope.reader.text(tree_of(each)) in map(scope.reader.text, _NEVER_AGAIN):
                raise PolicyError(f"{short_text(each)!r} is another one for every call, so that nothing is counted")
            self.expressions.type(each, scope)
        period: Fraction | str | None = None
        if demand.within is not None:
            if self.expressions.type(demand.within, scope).kind != "duration":
                raise PolicyError("a limit counts within a duration, such as `within 24 hours`")
            span = scope.reader.sum(tree_of(demand.within))
            constant = constant_of(span)
            if constant is not None and constant <= 0:
                raise PolicyError("within no time at all nothing can be counted")
            period = str(span) if constant is None else constant
        texts = frozenset(scope.reader.text(tree_of(each)) for each in demand.per)
        if len(texts) < len(demand.per):
            raise PolicyError("the limit counts by the same twice: leave one of them out")
        scope.above.add_limit(CallLimit(demand.most, texts, period, demand.exemption))
        own = frozenset(each for each in self._own_arguments(scope) if each[1] in texts)
        if (demand.most, period, demand.exemption) == (1, None, None) and len(own) == len(texts):
            scope.above.add_call(DemandedCall(scope.tool, own), made=False)

    def _own_arguments(self, scope: DemandScope) -> set[tuple[str, str]]:
        """The arguments of the call that is judged, as a pattern of calls like it has them."""
        return {(name, f"argument {name}") for name in self._calls.tools[scope.tool].names}

    def _repetition(self, demand: Repetition, scope: DemandScope) -> None:
        """Demands on every item of a list."""
        kind = self.expressions.type(demand.over, scope)
        if kind.items is None:
            raise PolicyError(f"`for each` goes through a list, and {short_text(demand.over)!r} is {kind}")
        if not demand.body:
            raise PolicyError("`for each` demands nothing: leave it out")
        inner = scope.inner()
        inner.above.limits, inner.passed = [], set()  # what it counts, it counts for each
        self._bind(demand.variable, kind.items, f"item {next(self._numbers)}", demand, inner)
        self._body(demand.body, inner)

    def _branching(self, demand: Branching, scope: DemandScope) -> None:
        """Cases, each of which comes up."""
        behind, cases = scope.above.inner(), RuleConditions()
        case: Truth = True
        for number, (condition, body) in enumerate(demand.branches):
            shown = short_text(condition)
            if not body:
                raise PolicyError(f"the case {shown!r} demands nothing: leave it out")
            case = self.expressions.truth(condition, scope)
            if cases.exclude(case):
                raise PolicyError(f"the case {shown!r} never comes up behind those above it")
            cases.add(Opposite(case))
            above = behind.inner()
            if behind.conditions.exclude(case):
                self._note(demand, f"the case {shown!r} never comes up behind what is required above it: leave it out")
                # Checked by itself: everything in a case that never comes up would contradict what is above it.
                above = EarlierDemands()
            elif not number and behind.conditions.exclude(Opposite(case)):
                self._note(demand, f"the case {shown!r} comes up always behind what is required above it")
            above.conditions.add(case)
            self._body(body, replace(scope.inner(), above=above))
            behind.conditions.add(Opposite(case))
        if demand.otherwise:
            above = EarlierDemands() if behind.conditions.exclude(Opposite(case)) else behind.inner()
            with _located(demand.otherwise[0].line):
                if cases.exclude(Opposite(case)):
                    raise PolicyError("`else` never comes up: the cases above it are all there are")
                if all(body == demand.otherwise for _, body in demand.branches):
                    raise PolicyError("the same is demanded in every case: write it once, without `if`")
                self._body(demand.otherwise, replace(scope.inner(), above=above))


@contextmanager
def _located(line: int | None) -> Iterator[None]:
    """Add where a demand stands to a refusal that does not tell."""
    try:
        yield
    except PolicyError as error:
        if error.line is not None or line is None:
            raise
        raise PolicyError(error.message, line=line) from None


def _without_words(demand: Demand) -> Demand:
    """A demand alike whatever is said of it, and whatever its result is called."""
    match demand:
        case Seen():
            return replace(demand, words=None, name=None)
        case Done() | Requirement() | Confirmation():
            return replace(demand, words=None)
    return demand


def _check_exception(shown: str, case: Truth, kept: Truth, broken: Truth) -> None:
    """Refuse a relation to which its own exception leaves nothing to demand."""
    if never([case, broken]):
        raise PolicyError(f"{shown!r} is broken by nothing where it counts: leave it out")
    if never([case, kept]):
        raise PolicyError(f"{shown!r} is kept by nothing where it counts: require the exception by itself")
    if never([Opposite(case), broken]):
        raise PolicyError(f"{shown!r} is kept anyway where the exception is: leave the exception out")
