"""Notes on a policy that is valid but may not mean what it says: sums that a negative amount would lower.

``sum of refunds.amount`` over earlier calls, or over a list among the arguments, adds up what an agent has written. A
limit on such a sum holds only where a rule keeps each amount from being negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from stepguard.language.evaluation import shortened
from stepguard.language.expressions import MIRRORED, Compare, Expression, Logic, Name, Not, Number
from stepguard.language.terms.operands import Aggregate, Field, LiteralTerm
from stepguard.language.values import show_value
from stepguard.policy.declarations import DeclaredTool
from stepguard.policy.rules import (
    Binding,
    Branching,
    Demand,
    Earlier,
    ExpressionLike,
    Repetition,
    Requirement,
    Rule,
    bound_names,
    nodes_of,
    tree_of,
)

_FLIPPED: Final = {">": "<=", "<=": ">", ">=": "<", "<": ">="}


class PolicyNote(NamedTuple):
    """Something that its author should look at.

    Attributes:
        line: where it stands in the text, None where it came from none.
        text: what is so, and the remedy.
    """

    line: int | None
    text: str


class _Argument(NamedTuple):
    """An argument of a tool, or a field in it; lists on the way to it count as what they hold."""

    tool: str
    path: tuple[str, ...]


class _Sum(NamedTuple):
    line: int | None
    term: Aggregate
    source: _Argument


_Sources = Mapping[str, _Argument]
"""Name -> the source of its value, as far as an agent has written it."""


def notes_on(rules: Iterable[Rule], tools: Mapping[str, DeclaredTool]) -> tuple[PolicyNote, ...]:
    """The notes on the rules of a policy, in their order."""
    listed = list(rules)
    kept = {argument for rule in listed for argument in _arguments_of(rule.demands, _arguments(rule, tools))}
    notes: dict[PolicyNote, None] = {}
    for rule in listed:
        for line, term, source in _sums(rule.demands, dict(_arguments(rule, tools))):
            if source in kept:
                continue
            name = ".".join(source.path)
            text = (
                f"`{shortened(term)}` adds up what the agent writes, and no rule of {source.tool} keeps {name} from "
                "being negative, which would lower the sum: demand that it is more than 0"
            )
            notes[PolicyNote(line, text)] = None
    return tuple(notes)


def _arguments(rule: Rule, tools: Mapping[str, DeclaredTool]) -> dict[str, _Argument]:
    own = tools[rule.tool].names
    return {bound: _Argument(rule.tool, (name,)) for bound, name in zip(bound_names(rule, own), own, strict=True)}


def _source(given: ExpressionLike, sources: _Sources) -> _Argument | None:
    tree, path = tree_of(given), []
    while isinstance(tree, Field):
        path.append(tree.key)
        tree = tree.of
    root = sources.get(tree.name) if type(tree) is Name else None
    return None if root is None else _Argument(root.tool, (*root.path, *reversed(path)))


def _with(sources: _Sources, variable: str, over: ExpressionLike | None) -> _Sources:
    """The sources where a variable stands for an item of a list."""
    source = None if over is None else _source(over, sources)
    others = {name: each for name, each in sources.items() if name != variable}
    return others if source is None else {**others, variable: source}


# ---- what is added up


def _sums(demands: Iterable[Demand], sources: _Sources) -> Iterator[_Sum]:
    known = dict(sources)
    for demand in demands:
        match demand:
            case Earlier(pattern, name):
                known[name] = _Argument(pattern.tool, ())
            case Branching(branches, otherwise):
                for condition, _ in branches:
                    yield from _sums_in(tree_of(condition), known, demand.line)
                for body in (*(body for _, body in branches), otherwise):
                    yield from _sums(body, known)
            case Repetition(variable, over, body):
                yield from _sums_in(tree_of(over), known, demand.line)
                yield from _sums(body, _with(known, variable, over))
            case _:
                for tree in _expressions(demand):
                    yield from _sums_in(tree, known, demand.line)
                if isinstance(demand, Binding) and (source := _source(demand.value, known)) is not None:
                    known[demand.name] = source


def _expressions(demand: Demand) -> Iterator[Expression]:
    """The expressions of a demand, each as a whole."""
    stack: list[object] = [demand]
    while stack:
        node = stack.pop()
        if isinstance(node, Expression):
            yield node
        elif hasattr(node, "__dataclass_fields__"):
            stack += [getattr(node, name) for name in node.__dataclass_fields__]
        elif isinstance(node, tuple):
            stack += node


def _sums_in(tree: Expression, sources: _Sources, line: int | None) -> Iterator[_Sum]:
    if not isinstance(tree, Aggregate):
        for node in _outermost_aggregates(tree):
            yield from _sums_in(node, sources, line)
        return
    inner = sources if tree.variable is None else _with(sources, tree.variable, tree.over)
    if tree.function == "sum" and (source := _source(tree.value, inner)) is not None:
        yield _Sum(line, tree, source)
    for part in (tree.value, tree.where):
        if part is not None:
            yield from _sums_in(part, inner, line)
    if tree.over is not None:
        yield from _sums_in(tree.over, sources, line)


def _outermost_aggregates(tree: Expression) -> Iterator[Aggregate]:
    within: set[int] = set()
    for node in nodes_of(tree):
        if isinstance(node, Aggregate) and id(node) not in within:
            yield node
            within.update(id(each) for each in nodes_of((node.value, node.where, node.over)))


# ---- what a rule keeps from being negative


def _arguments_of(demands: Iterable[Demand], sources: _Sources) -> Iterator[_Argument]:
    for demand in demands:
        # Not in an `if`, and without an exemption: such a demand does not keep every amount from being negative.
        if isinstance(demand, Requirement) and demand.exemption is None:
            yield from _not_negative(tree_of(demand.condition), sources, holds=not demand.negated)
        elif isinstance(demand, Repetition):
            yield from _arguments_of(demand.body, _with(sources, demand.variable, demand.over))


def _not_negative(tree: Expression, sources: _Sources, *, holds: bool) -> Iterator[_Argument]:
    """The arguments that cannot be negative where a condition holds, or where it does not."""
    match tree:
        case Not(operand):
            yield from _not_negative(operand, sources, holds=not holds)
        # All parts of an `and` hold; where an `or` does not hold, none of its parts does.
        case Logic(operator, operands) if (operator == "and") is holds:
            for operand in operands:
                yield from _not_negative(operand, sources, holds=holds)
        case Aggregate(function=function, value=value, where=None) if function == ("all" if holds else "any"):
            inner = sources if tree.variable is None else _with(sources, tree.variable, tree.over)
            yield from _not_negative(value, inner, holds=holds)
        case Compare(operator, left, right) if operator in _FLIPPED:
            operator = operator if holds else _FLIPPED[operator]
            for side, other, sign in ((left, right, operator), (right, left, MIRRORED[operator])):
                source = _source(side, sources)
                if source is not None and sign in (">", ">=") and _is_not_negative(other):
                    yield source


def _is_not_negative(tree: Expression) -> bool:
    value = tree.value if isinstance(tree, Number | LiteralTerm) else None
    return value is not None and not show_value(value).startswith("-")
