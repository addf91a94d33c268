"""Check the names and types in rules: expressions, tables, and patterns of calls.

A `PolicyError` that is raised here has no line: whoever checks a demand adds where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from math import prod
from typing import Final

from stepguard.errors import ConfigError, EvaluationError, ExpressionError, PolicyError, ProcedureError, ValueRefused
from stepguard.language.expressions import Chain, Compare, Expression, Logic, Name, Not, Number
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.lookup_tables import OTHERWISE, Table
from stepguard.language.terms.operands import Aggregate, Item, ListTerm, LiteralTerm, Member, RecordTerm, variables_in
from stepguard.language.terms.type_relations import DATE, TEXTS, fits
from stepguard.language.terms.type_remedies import suggestion
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.policy.condition_reading import ConditionReader, Opposite, Truth
from stepguard.policy.contradictions import never
from stepguard.policy.declarations import DeclaredFact, DeclaredTool
from stepguard.policy.demand_scope import DemandedCall, DemandScope
from stepguard.policy.rules import (
    CallPattern,
    Exemption,
    ExpressionLike,
    Prohibition,
    Requirement,
    Rule,
    bound_names,
    nodes_of,
    short_text,
    tree_of,
)
from stepguard.procedure.notation.settings import constant

# More combinations of keys than these are not looked up one by one.
_MOST_ROWS: Final = 1024
_ALWAYS: Final = "comes always to the same: leave it out, or write `never` or `allow`"


class ExpressionChecker:
    """Checks expressions one after the other."""

    def __init__(self, facts: Iterable[DeclaredFact], tables: Mapping[str, Table]) -> None:
        keyed = {fact.name: fact.table for fact in facts if fact.keys}
        self.tables: dict[str, Table] = {**tables, **keyed}
        self.keyed = frozenset(keyed)
        self.used: set[str] = set()
        self.bound: set[str] = set()
        self.looked_up: dict[str, set[tuple[Value, ...]] | None] = {}

    def type(self, given: ExpressionLike, scope: DemandScope) -> ValueType:
        """The type of an expression, which can have a value."""
        tree = tree_of(given)
        names = variables_in(tree)
        self.used.update(names)
        scope.used.update(names)
        nodes = list(nodes_of(tree))
        for node in nodes:
            if isinstance(node, Member) and isinstance(node.of, Name) and node.of.name in self.keyed:
                raise PolicyError(f"a fact has a value and no rows: write `{node.of.name}[...]`")
        try:
            kind = scope.reader.type(tree)
        except (ProcedureError, ConfigError, ExpressionError) as error:
            text = error.message if isinstance(error, ProcedureError) else str(error)
            text = text.replace(
                "is no input, no table, and set by no step before", "is no argument, fact, table or name bound above"
            )
            name = next((each for each in names if each not in scope.reader.types and each in self.bound), None)
            where = "" if name is None else f"; {name!r} is bound elsewhere, and holds in its own rule or block alone"
            raise PolicyError(f"{text}{where}") from None
        for node in nodes:
            self._check_part(node, scope)
        return kind

    def truth(self, given: ExpressionLike, scope: DemandScope) -> Truth:
        """Read a condition, and refuse one that always or never holds."""
        kind = self.type(given, scope)
        if kind.kind != "boolean":
            raise PolicyError(
                f"a truth value is needed, and {short_text(given)!r} is {kind}: compare it with something"
            )
        tree = tree_of(given)
        joined = [node for node in nodes_of(tree) if isinstance(node, Logic | Not)]
        parts = [part for node in joined for part in (node.operands if isinstance(node, Logic) else (node.operand,))]
        # The parts as well: one that always holds says nothing, even where the whole may fail.
        for part in (*parts, tree):
            names = set(variables_in(part))
            if not names:
                raise PolicyError(f"{short_text(part)!r} reads nothing and {_ALWAYS}")
            if names <= scope.reader.types.keys() | self.tables.keys():
                truth = scope.reader.truth(part)
                if never([truth]) or never([Opposite(truth)]):
                    raise PolicyError(f"{short_text(part)!r} {_ALWAYS}")
        return scope.reader.truth(tree)

    def check_rows(self, table: Table) -> None:
        """Refuse a row of a table of texts that no rule looks up."""
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

    def _check_part(self, node: object, scope: DemandScope) -> None:
        """Refuse a part of an expression that never has a value, or always the same."""
        match node:
            case Aggregate(_, value, str() as variable, _, where):
                if variable not in (*variables_in(value), *(() if where is None else variables_in(where))):
                    raise PolicyError(f"nothing reads {variable!r} in {short_text(node)!r}: leave it out")
            case Item(Name() as of, keys) if of.name in self.tables and of.name not in self.keyed:
                self._look_up(self.tables[of.name], keys, scope)
            case Member(_, Name() as of) if of.name in self.tables:
                # Membership reads all keys: which rows are of use cannot be told any more.
                self.looked_up[of.name] = None
            case Compare() | Member() if not variables_in(node):
                raise PolicyError(f"{short_text(node)!r} reads nothing and {_ALWAYS}")
            case Chain() if _is_known(node, scope):
                _check_arithmetic(node, scope)
            case Number() | LiteralTerm() | ListTerm() | RecordTerm():
                pass
            case _ if isinstance(node, Expression) and not variables_in(node):
                try:
                    evaluate_term(node, {}, self.tables)
                except EvaluationError as error:
                    raise PolicyError(str(error)) from None

    def _look_up(self, table: Table, keys: tuple[Expression, ...], scope: DemandScope) -> None:
        """Refuse what has no row, as far as the keys can be told."""
        values = [_possible_values(each, scope) for each in keys]
        if not all(values) or prod(map(len, values)) > _MOST_ROWS:
            self.looked_up[table.name] = None
            return
        rows = list(product(*values))
        for row in rows:
            try:
                table.look_up(row)
            except EvaluationError as error:
                raise PolicyError(f"{error}: add one, or `otherwise`") from None
        known = self.looked_up.setdefault(table.name, set())
        if known is not None:
            known.update(rows)


@dataclass(frozen=True, slots=True)
class CallChecker:
    """Checks patterns of calls one after the other.

    Attributes:
        tools: the tools, by name.
        never_called: the tools that no call of can be let through, and why.
        expressions: checks the arguments.
    """

    tools: Mapping[str, DeclaredTool]
    never_called: Mapping[str, str]
    expressions: ExpressionChecker

    def tool(self, name: str) -> DeclaredTool:
        if name not in self.tools:
            raise PolicyError(f"no tool {name!r} is declared{suggestion(name, self.tools)}: write `tool {name}(...)`")
        return self.tools[name]

    def pattern(self, pattern: CallPattern, scope: DemandScope) -> DemandedCall:
        """A pattern of calls of a tool, whose arguments it has, so that it can be held against others."""
        tool = self.tool(pattern.tool)
        kinds = {each.name: each.type for each in tool.parameters}
        if len(pattern.positional) > len(kinds):
            raise PolicyError(f"{tool.name} takes {len(kinds)} arguments, {len(pattern.positional)} are given")
        taken: set[str] = set()
        for name, given in pattern.arguments(kinds):
            if name not in kinds:
                hint = suggestion(name, kinds) or f": it has {', '.join(kinds) or 'none'}"
                raise PolicyError(f"{tool.name} has no argument {name!r}{hint}")
            if name in taken:
                raise PolicyError(f"the argument {name!r} of {tool.name} is given twice")
            taken.add(name)
            self._check_argument(f"{name!r} of {tool.name}", kinds[name], given, scope)
        pairs = pattern.arguments(kinds)
        return DemandedCall(tool.name, frozenset((name, scope.reader.text(tree_of(tree))) for name, tree in pairs))

    def _check_argument(self, name: str, declared: ValueType, given: ExpressionLike, scope: DemandScope) -> None:
        kind, tree = self.expressions.type(given, scope), tree_of(given)
        if not fits(kind, declared):
            raise PolicyError(f"the argument {name} is {declared}, and {short_text(tree)!r} is {kind}")
        if isinstance(tree, Number | LiteralTerm) and declared.kind != "percent":
            try:
                declared.accept(constant(tree))
            except ValueRefused as error:
                raise PolicyError(f"no call has this as its {name}: {error}") from None

    def call(self, pattern: CallPattern, scope: DemandScope) -> DemandedCall:
        """A pattern of calls of which one can be let through."""
        call = self.pattern(pattern, scope)
        if call.tool in self.never_called:
            raise PolicyError(f"{call.tool} can never be called: {self.never_called[call.tool]}")
        tool = self.tools[call.tool]
        given = {name: tree_of(each) for name, each in pattern.arguments(tool.names) if not variables_in(tree_of(each))}
        for rule in tool.rules if given else ():
            self._check_own_rule(rule, tool, given)
        return call

    def _check_own_rule(self, rule: Rule, tool: DeclaredTool, given: Mapping[str, Expression]) -> None:
        """Refuse constant arguments with which no call keeps its own rule, as far as that reads nothing else."""
        names = dict(zip(bound_names(rule, tool.names), tool.names, strict=False))
        kinds = {parameter.name: parameter.type for parameter in tool.parameters}
        reader = ConditionReader({bound: kinds[name] for bound, name in names.items()}, self.expressions.tables)
        wanted = [reader.compared("==", Name(bound), given[name]) for bound, name in names.items() if name in given]
        for demand in rule.demands:
            match demand:
                case Requirement(condition=condition, negated=negated, exemption=None):
                    pass
                case Prohibition(exemption=Exemption(condition=condition, counts=negated)):
                    pass
                case _:
                    continue
            if set(variables_in(tree_of(condition))) <= names.keys():
                truth = reader.truth(tree_of(condition))
                if never(wanted, [Opposite(truth) if negated else truth]):
                    line = "" if demand.line is None else f" (policy line {demand.line})"
                    raise PolicyError(f"no call of {tool.name} with these arguments keeps its own rule{line}")

    def result(self, name: str) -> ValueType:
        """The type of what a tool gives back."""
        kind = self.tools[name].result
        if kind is None:
            raise PolicyError(f"the result of {name} has no type: declare it, as `-> Order`")
        return kind

    def arguments(self, name: str) -> ValueType:
        """The type of all arguments of a tool, a record."""
        record = self.tools[name].record
        if record is None:
            raise PolicyError(f"{name} has no arguments: count its calls with `at most`")
        return ValueType(kind="record", record=record)


def _is_known(tree: Expression, scope: DemandScope) -> bool:
    """Whether everything that an expression reads has a type of its own there."""
    return set(variables_in(tree)) <= scope.reader.types.keys()


def _possible_values(key: Expression, scope: DemandScope) -> tuple[Value, ...]:
    """The values that a key may have; none where that cannot be told."""
    if isinstance(key, Number | LiteralTerm):
        return (key.value,)
    return scope.reader.type(key).options if _is_known(key, scope) else ()


def _check_arithmetic(chain: Chain, scope: DemandScope) -> None:
    for operator, operand in zip(chain.operators, chain.operands[1:], strict=True):
        # As a sum, since 2*x - x - x is zero as well.
        if operator in ("/", "//", "%") and not any(scope.reader.sum(operand).values()):
            raise PolicyError(f"{short_text(chain)!r} divides by {short_text(operand)!r}, which is 0")
    parts = [each.value for each in chain.operands if isinstance(each, LiteralTerm)]
    clock = any(isinstance(each, timedelta) and each % timedelta(days=1) for each in parts)
    if clock and scope.reader.type(chain) == DATE:
        raise PolicyError(f"{short_text(chain)!r}: a date has no time of day; count in days, or use `now.at`")
