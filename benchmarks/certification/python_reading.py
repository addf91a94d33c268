"""Another reading of arithmetic: the parser of Python, with values worked out by `truth`; nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from fractions import Fraction

from certification.truth import Bin, Lit, Neg, Tree, Truth, Undefined, Var, compute

__all__ = ["tree_of", "value_of"]

# A percentage, which Python does not have: nothing stands behind its sign that could be divided by.
_PERCENTAGE = re.compile(r"((?<![\w.])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)%(?!\s*[\w.(\[%])")
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "^",
}


def tree_of(text: str) -> Tree:
    """The expression that Python reads in a text of numbers, names, operators and brackets.

    Raises:
        SyntaxError: Python reads none.
        ValueError: the text cannot be parsed at all, or holds something else.
    """
    plain = _PERCENTAGE.sub(r"(\1 / 100)", text.strip())
    return _tree(ast.parse(plain, mode="eval").body, plain.encode())


def value_of(text: str, state: Mapping[str, Truth] | None = None) -> Fraction | None:
    """Its exact value, None where Python reads no expression in it or where it has no value."""
    try:
        found = compute(tree_of(text), state or {})
    except (SyntaxError, ValueError, Undefined, KeyError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, Fraction) else None


def _tree(node: ast.expr, text: bytes) -> Tree:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return Lit(Fraction(text[node.col_offset : node.end_col_offset].decode()))
        case ast.Name(id=name):
            return Var(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Neg(_tree(operand, text))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _tree(operand, text)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            return Bin(_OPERATORS[type(operation)], _tree(left, text), _tree(right, text))
    raise ValueError("something else than arithmetic")
