"""Turn the rules of the grammar for expressions into trees."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn, cast

from lark import Token, Transformer

from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expression_parsing import MAX_DEPTH, parse_expression
from stepguard.language.expressions import (
    FUNCTIONS,
    TRUTHS,
    Call,
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Negate,
    Not,
    Number,
    Power,
    format_expression,
)
from stepguard.language.terms.literals import read_literal
from stepguard.language.terms.operands import (
    Aggregate,
    AggregateFunction,
    Choice,
    Field,
    Item,
    ListTerm,
    LiteralTerm,
    Member,
    RecordTerm,
)
from stepguard.language.typeset import OPERATORS
from stepguard.language.values import ROUNDINGS, Rounding

_SIGNS: Final = {**OPERATORS, "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "mod": "%"}
_BLANKS: Final = str.maketrans("", "", ",\u00a0\u2009\u202f")


def refuse(message: str, token: Token) -> ProcedureError:
    """The complaint about something that begins with a token."""
    return ProcedureError(message, line=token.line)


def unquote(token: Token) -> str:
    """The text that stands in quotes."""
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise refuse(f"{token[:40]!s} is not a JSON string: {error}", token) from None


class ExpressionTrees(Transformer[Token, Any]):
    """One method for each rule that makes an expression."""

    def literal(self, children: list[Any]) -> Expression:
        return _literal(children[0])

    def variable(self, children: list[Any]) -> Expression:
        if children[0] in FUNCTIONS:
            raise refuse(f"{children[0]!s} is a function and needs its arguments in parentheses", children[0])
        return Name(str(children[0]))

    def choose(self, children: list[Any]) -> Expression:
        return Choice(*children)

    def joined(self, children: list[Any]) -> Expression:
        operands = tuple(children[::2])
        for operand in operands:
            _check_truth(operand, children[1])
        return Logic(str(children[1]), operands)

    def opposite(self, children: list[Any]) -> Expression:
        _check_truth(children[1], children[0])
        # The grammar nests these without brackets, which are what Layout counts.
        inner, depth = children[1], 1
        while isinstance(inner, Not):
            inner, depth = inner.operand, depth + 1
        return Not(children[1]) if depth <= MAX_DEPTH else _too_deep(children[0])

    def compared(self, children: list[Any]) -> Expression:
        left, sign, right = children
        return Compare(_SIGNS.get(sign, str(sign)), left, right)

    def member(self, children: list[Any]) -> Expression:
        return Member(*children)

    def no_member(self, children: list[Any]) -> Expression:
        return Not(Member(children[0], children[2]))

    def chain(self, children: list[Any]) -> Expression:
        return Chain(tuple(children[::2]), tuple(_SIGNS.get(child, str(child)) for child in children[1::2]))

    def signs(self, children: list[Any]) -> Expression:
        *signs, tree = children
        return _signed(sum(_SIGNS.get(each, each) == "-" for each in signs) % 2 == 1, tree)

    def raised(self, children: list[Any]) -> Expression:
        inner, depth = children[2], 1
        while isinstance(inner, Power):
            inner, depth = inner.exponent, depth + 1
        return Power(children[0], children[2]) if depth <= MAX_DEPTH else _too_deep(children[1])

    def field(self, children: list[Any]) -> Expression:
        return Field(children[0], str(children[1]))

    def element(self, children: list[Any]) -> Expression:
        return Item(children[0], tuple(children[1:]))

    def function(self, children: list[Any]) -> Expression:
        function, *arguments = children
        return _round(function, arguments) if function == "round" else _call(function, arguments)

    def aggregate(self, children: list[Any]) -> Expression:
        return Aggregate(_aggregate(children[0]), children[1])

    def over_items(self, children: list[Any]) -> Expression:
        function, value, variable, over, where = children
        return Aggregate(_aggregate(function), value, str(variable), over, where)

    def list_value(self, children: list[Any]) -> Expression:
        return ListTerm(tuple(child for child in children if child is not None))

    def record_value(self, children: list[Any]) -> Expression:
        check_once([str(key) for key, _ in children], "field", children[0][0])
        return RecordTerm(tuple((str(key), value) for key, value in children))

    def entry(self, children: list[Any]) -> tuple[Token, Expression]:
        key, value = children
        return key, Name(str(key)) if value is None else value


def plain_arithmetic(token: Token) -> Expression:
    """Arithmetic without operands, which is one token of the grammar."""
    try:
        return parse_expression(token.rstrip())
    except ExpressionError as error:
        raise refuse(str(error), token) from error


def _aggregate(token: Token) -> AggregateFunction:
    return cast(AggregateFunction, token.split()[0])


def _literal(token: Token) -> Expression:
    match token.type:
        case "TRUE" | "FALSE":
            return LiteralTerm(token.type == "TRUE")
        case "STRING":
            return LiteralTerm(unquote(token))
        case "NUMBER" | "PERCENT":
            try:
                # Layout has refused grouped digits where a comma separates values.
                return parse_expression(token.translate(_BLANKS))
            except ExpressionError as error:
                raise refuse(error.message, token) from error
    try:
        return read_literal(str(token))
    except ExpressionError as error:
        remedy = "; write multiplication with *" if "unit" in error.message else ""
        raise refuse(f"{token!s} is {error.message}{remedy}", token) from error


def _signed(negative: bool, tree: Expression) -> Expression:
    if not negative:
        return tree
    return tree.negated if type(tree) is Number else Negate(tree)


def _too_deep(token: Token) -> NoReturn:
    raise refuse(f"nested deeper than {MAX_DEPTH} levels", token)


def _check_truth(tree: Expression, word: Token) -> None:
    if not isinstance(tree, (*TRUTHS, Name)):
        shown = format_expression(tree)[:40]
        raise refuse(f"'{word!s}' takes truth values, and {shown!r} is none: compare it", word)


def _call(function: Token, arguments: list[Expression]) -> Expression:
    most = FUNCTIONS[function]
    if most is not None and len(arguments) > most:
        raise refuse(f"{function!s} does not take {len(arguments)} arguments", function)
    return Call(str(function), tuple(arguments))


def _round(function: Token, arguments: list[Expression]) -> Expression:
    mode = "half_up"
    last = arguments[-1]
    if type(last) is Name and last.name in ROUNDINGS and len(arguments) > 1:
        mode = last.name
        arguments = arguments[:-1]
    if len(arguments) > 2:
        raise refuse(f"the third argument of round is a mode: {', '.join(ROUNDINGS)}", function)
    places = arguments[1] if len(arguments) == 2 else Number(0)
    if type(places) is not Number or type(places.value) is not int or abs(places.value) > 100:
        raise refuse("the places of round are a whole number from -100 to 100", function)
    return Call("round", (arguments[0], places), cast(Rounding, mode))


def check_once(names: list[str], role: str, token: Token) -> None:
    """Refuse a name that stands twice in a list."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise refuse(f"the {role} {twice!r} stands twice", token)
