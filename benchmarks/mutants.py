"""The mutants of a module: the module with one small change, as a change to its syntax tree.

A comparison, an arithmetic or a boolean operator is swapped, a bound shifted, a `not` or a sign removed, a number one
more or less, a string changed, a truth value or None swapped, what is returned replaced by None, a statement deleted,
a condition always true or always false, the bound of a slice left out.

Left out is what is no behaviour: docstrings, annotations, assertions (`zip(strict=True)` is one), decorators, `__all__`
and `__slots__`, aliases of types, deleted statements of a module or class body, and the wording of messages (strings
of more than one word, strings in the arguments of an error, Deviation or Verdict, and in names and functions that
only hold or make wording). The kind of a deviation and the outcome of a check are behaviour, and become
another. False is not replaced by None, since True is in its place already.

A line that ends in ``# no mutate: <why>`` has no mutants. The comment is for what cannot be told from outside: a
shortcut that is only faster, the slack of an estimate, a limit whose exact value is no promise.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_VERDICTS = Path(__file__).resolve().parent.parent / "stepguard/core/verdicts.py"
KINDS = re.findall(r'^    "(\w+)",$', _VERDICTS.read_text(), re.MULTILINE)
MESSAGE_CALLS = {"Deviation", "Verdict", "_fail", "_error", "_unexpected", "_cut_off"}
MESSAGE_NAMES = {"reason", "why", "what", "where", "hint", "ignored", "said", "signed", "broken"}
MESSAGE_FUNCTIONS = {"_why_not", "_why", "_describe", "_thoughts", "_short"}
SENTENCE = re.compile(r"[A-Za-z`'>]{2,},? [A-Za-z`'{]")
NO_MUTATE = re.compile(r"# no mutate: \w")

SWAPPED: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.And: [ast.Or], ast.Or: [ast.And], ast.Add: [ast.Sub], ast.Sub: [ast.Add],
    ast.Mult: [ast.Add, ast.FloorDiv], ast.Div: [ast.Mult], ast.FloorDiv: [ast.Mult, ast.Div], ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult], ast.BitOr: [ast.BitAnd], ast.BitAnd: [ast.BitOr], ast.BitXor: [ast.BitOr, ast.BitAnd],
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: `new` in place of what stands in a field of a node, or at a place in a field that is a list."""

    line: int
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST
    local: bool = True  # inside a function

    @contextmanager
    def applied(self) -> Iterator[str]:
        """The tree changed for a while; given is a text that shows how."""
        held = getattr(self.parent, self.field)
        shown = _shown(self.parent if self.index is None else held[self.index], self.parent)
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            setattr(self.parent, self.field, [*held[: self.index], self.new, *held[self.index + 1 :]])
        after = _shown(self.parent if self.index is None else self.new, self.parent)
        yield f"{shown}   ->   {after}"
        setattr(self.parent, self.field, held)


def _shown(node: ast.AST, parent: ast.AST) -> str:
    shown = node if isinstance(node, ast.stmt | ast.expr) and not isinstance(parent, ast.JoinedStr) else parent
    lines = ast.unparse(shown).splitlines() or [""]
    return lines[0] if len(lines[0]) < 150 else f"{lines[0][:147]}..."


def excused(source: str) -> frozenset[int]:
    """The lines of a module that have no mutants, because a comment at their end says why."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return frozenset(each.start[0] for each in tokens if each.type == tokenize.COMMENT and NO_MUTATE.match(each.string))


def mutants_of(node: ast.AST, line: int = 0, *, wording: bool = False, local: bool = False) -> Iterator[Mutant]:
    """Every mutant of a module; `wording` and `local`: whether the node is in a message, in a function."""
    line = getattr(node, "lineno", line)
    wording = wording or _is_wording(node)
    local = (local or isinstance(node, ast.FunctionDef)) and not isinstance(node, ast.ClassDef)
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) not in ("None", "False"):
        yield Mutant(line, node, "value", None, ast.Constant(None))
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.match_case):
        field = "guard" if isinstance(node, ast.match_case) else "test"
        test = getattr(node, field)
        for forced in (True, False) if test is not None and not isinstance(test, ast.Constant) else ():
            yield Mutant(line, node, field, None, ast.Constant(forced))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "cause", "ctx", "conversion", "format_spec"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_left_out(node, field, child):
                continue
            if isinstance(child, ast.JoinedStr) and wording:
                continue
            for new in _replacements(node, child, wording=wording, local=local):
                yield Mutant(getattr(child, "lineno", line), node, field, index, new, local)
            yield from mutants_of(child, line, wording=wording, local=local)


def _replacements(parent: ast.AST, child: ast.AST, *, wording: bool, local: bool) -> Iterator[ast.AST]:
    yield from (swapped() for swapped in SWAPPED.get(type(child), []))
    match child:
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(str(value)):
            if value in ("pass", "fail"):
                yield ast.Constant("fail" if value == "pass" else "pass")
            elif value in KINDS:
                yield ast.Constant("extra_step" if value != "extra_step" else "malformed")
            elif not wording and (not SENTENCE.search(value) or "\\" in value):
                letters = any(char.isalnum() for char in value)
                yield ast.Constant(f"XX{value}" if letters or not value else value[:-1])
        case ast.Constant(None) if not isinstance(parent, ast.Return):
            yield ast.Constant(True)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Slice(lower, upper, step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Raise() | ast.Continue() | ast.Break():
            if local:
                yield ast.Pass()
    if isinstance(parent, ast.comprehension) and isinstance(child, ast.expr) and child in parent.ifs:
        yield ast.Constant(True)
        yield ast.Constant(False)


def _is_wording(node: ast.AST) -> bool:
    match node:
        case ast.Raise():
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(_, name)) | ast.Assign([ast.Name(name)]):
            return name in MESSAGE_CALLS | MESSAGE_NAMES
        case ast.FunctionDef(name):
            return name in MESSAGE_FUNCTIONS
    return False


def _is_left_out(parent: ast.AST, field: str, child: ast.AST) -> bool:
    match child:
        case (
            ast.Expr(ast.Constant())
            | ast.Assert()
            | ast.Import()
            | ast.ImportFrom()
            | ast.If(ast.Name("TYPE_CHECKING"))
            | ast.AnnAssign(value=None)
        ):
            return True
        case ast.Assign([ast.Name("__all__" | "__slots__")]) | ast.keyword("strict"):
            return True
        case ast.Assign(
            [ast.Name()], ast.BinOp(_, ast.BitOr()) | ast.Subscript(ast.Name("Literal" | "dict" | "tuple"))
        ):
            return isinstance(parent, ast.Module)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and field == "args":  # types
        place = {"cast": 0, "isinstance": 1}.get(parent.func.id)
        return place is not None and child is parent.args[place]
    return False
