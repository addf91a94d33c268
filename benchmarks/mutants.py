"""The mutants of a module: each changes one place of it.

An operator, a comparison (turned around, or moved by its boundary), a condition (always true, always false), a number
by one, a truth value, None, a text, a piece of a regular expression, the end of a slice, an operand of `and` and `or`,
an alternative of a `case`; or a function returns None, or a statement is left out.

Not changed are type annotations, decorators, `__all__`, `__slots__`, assertions (`zip(strict=True)` is one), and what
is only the wording of a message: texts in a `raise` or as the reason of a `Deviation` or `Verdict`, sentences, the
fixed pieces of f-strings.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "mutants_of", "mutated"]

_Path = tuple[tuple[str, int | None], ...]  # from the module down: (field, place in its list)

_COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
}  # fmt: skip
_REGEX = [
    (r"\\Z", ""), (r"\\b", ""), (r"\(\?<!", "(?<="), (r"\(\?!", "(?="), (r"\(\?=", "(?!"), (r"\[\^", "["),
    (r"(?<=[\])])\*", "+"), (r"(?<=[\])])\+", "*"), (r"(?<=[\])}*+])\?", ""), (r"(?<=[*+])\+", ""), (r"\\s", r"\\S"),
]  # fmt: skip
"""What is changed in a regular expression, and into what."""

_SENTENCE = re.compile(r"[A-Za-z]+[,;]? [a-z]+[,;]? [a-z]+")
_REASON_AT = {"Deviation": 2, "Verdict": 3}


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    path: _Path
    node: ast.AST
    line: int


def mutants_of(tree: ast.Module) -> list[Mutant]:
    """All mutants, in the order of the source."""
    return _Walk(tree).found


class _Walk:
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Mutant] = []
        self._walk(tree, (), wording=False, regex=False)

    def _walk(self, node: ast.AST, path: _Path, *, wording: bool, regex: bool) -> None:
        if isinstance(node, ast.expr | ast.stmt | ast.comprehension | ast.match_case | ast.pattern):
            line = getattr(node, "lineno", self.found[-1].line if self.found else 1)
            for changed in _changes(node, wording=wording, regex=regex, top=len(path) == 1):
                self.found.append(Mutant(path, changed, line))
        for field, value in ast.iter_fields(node):
            if _skipped(node, field):
                continue
            children = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, child in children:
                if isinstance(child, ast.AST):
                    says = wording or isinstance(node, ast.Raise) or _is_reason(node, field, index)
                    if says and isinstance(child, ast.JoinedStr):
                        continue
                    if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant) and not regex:
                        continue
                    self._walk(child, (*path, (field, index)), wording=says, regex=regex or _is_regex(node))


def _skipped(node: ast.AST, field: str) -> bool:
    """Whether a part of a node has no behaviour of its own: types, decorators, docstrings, names."""
    match node:
        case (
            ast.Expr(ast.Constant())
            | ast.Assert()
            | ast.Import()
            | ast.ImportFrom()
            | ast.If(ast.Name("TYPE_CHECKING"))
        ):
            return True
        case ast.keyword("strict"):
            return True
        case (
            ast.Assign([ast.Name("__all__" | "__slots__")])
            | ast.Assign(value=ast.Subscript() | ast.BinOp(op=ast.BitOr()))
        ):
            return True  # the second is a type alias
        case ast.Call(ast.Name("cast"), [kind, *_]) if field == "args":
            return isinstance(kind, ast.Constant | ast.Subscript)
    return field in ("annotation", "returns", "decorator_list", "bases", "ctx", "type_comment", "func", "cls")


def _is_reason(node: ast.AST, field: str, index: int | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and field == "args"
        and index == _REASON_AT.get(node.func.id)
    )


def _is_regex(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name("re"), "compile")):
            return True
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name.endswith("_PATTERN") or name == "_THOUGHT"
    return False


def _changes(node: ast.AST, *, wording: bool, regex: bool, top: bool) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [operator], [right]):
            for kind in _COMPARISONS[type(operator)]:
                yield ast.Compare(left, [kind()], [right])
        case ast.Compare(left, operators, rights):
            for at, operator in enumerate(operators):
                for kind in _COMPARISONS[type(operator)]:
                    yield ast.Compare(left, [*operators[:at], kind(), *operators[at + 1 :]], rights)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.AugAssign(target, operator, value) if type(operator) in _OPERATORS:
            yield ast.AugAssign(target, _OPERATORS[type(operator)](), value)
            yield ast.Pass()
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for at in range(len(values)):
                rest = values[:at] + values[at + 1 :]
                yield ast.BoolOp(operator, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(value):
            yield from (ast.Constant(each) for each in _constants(value, wording=wording, regex=regex))
        case ast.Return(value) if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.If(ast.Name("TYPE_CHECKING")):
            return
        case ast.If(test, body, orelse):
            yield from (ast.If(ast.Constant(each), body, orelse) for each in (True, False))
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.While(test, body, orelse) if not isinstance(test, ast.Constant):
            yield ast.While(ast.Constant(False), body, orelse)
        case ast.comprehension(target, iter, [_, *_], is_async):
            yield ast.comprehension(target, iter, [], is_async)
        case ast.match_case(pattern, guard, body) if guard is not None:
            yield ast.match_case(pattern, None, body)
        case ast.MatchOr(patterns):
            for at in range(len(patterns)):
                rest_of = patterns[:at] + patterns[at + 1 :]
                yield ast.MatchOr(rest_of) if len(rest_of) > 1 else rest_of[0]
        case ast.Slice(lower, upper, step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
        case ast.Expr(ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign([ast.Name("__slots__")]):
            return
        case ast.Assign() | ast.AnnAssign(ast.Name() | ast.Attribute(), _, ast.expr()) if not top:
            yield ast.Pass()


def _constants(value: object, *, wording: bool, regex: bool) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value - 1)
        case None:
            yield True
        case str() if regex:
            for pattern, into in _REGEX:
                for found in re.finditer(pattern, value):
                    yield value[: found.start()] + found.expand(into) + value[found.end() :]
        case str() if len(value) > 1 and not any(each.isalnum() for each in value):  # often a set of signs
            yield from (value[1:], value[:-1])
        case str() if not wording and not _SENTENCE.search(value):
            yield f"XX{value}XX" if value else "XX"


def mutated(tree: ast.Module, mutant: Mutant) -> ast.Module:
    """The module with this one change."""
    changed = copy.deepcopy(tree)
    at: Any = changed
    for field, index in mutant.path[:-1]:
        at = getattr(at, field) if index is None else getattr(at, field)[index]
    field, index = mutant.path[-1]
    if index is None:
        setattr(at, field, mutant.node)
    else:
        getattr(at, field)[index] = mutant.node
    return ast.fix_missing_locations(changed)
