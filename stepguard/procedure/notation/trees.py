"""Turn the rules of the grammar into trees.

Expressions become the trees of `stepguard.language.expressions` and `stepguard.language.terms.operands` at once.
Statements and declarations become the plain tuples below with the line they stand in;
`stepguard.procedure.notation.building` makes them steps and procedures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, NoReturn, cast

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


class CheckCall(NamedTuple):
    """``grounded(claim, beside="Total")`` behind a step."""

    name: str
    values: tuple[Expression, ...]
    options: tuple[tuple[str, Expression], ...]


class RawStep(NamedTuple):
    """A step, or the call of a procedure."""

    line: int
    id: str
    type: str | None
    content: Content
    checks: tuple[CheckCall, ...]
    label: int | None = None
    options: Mapping[str, Any] = MappingProxyType({})


class Content(NamedTuple):
    """The right-hand side of a step."""

    kind: Literal["formula", "code", "words", "person", "tool", "function", "call"]
    expression: Expression | None = None
    words: str | None = None
    reads: tuple[str, ...] = ()
    operation: str | None = None
    arguments: tuple[tuple[str, Expression], ...] = ()


class RawIf(NamedTuple):
    """``if``, its branches with the lines of their conditions, and ``else``."""

    line: int
    branches: tuple[tuple[int, Expression, tuple[RawStatement, ...]], ...]
    otherwise: tuple[RawStatement, ...]
    label: int | None = None


class RawForEach(NamedTuple):
    """``for each``."""

    line: int
    variable: str
    over: Expression
    body: tuple[RawStatement, ...]
    label: int | None = None


class RawRepeat(NamedTuple):
    """``repeat at most``."""

    line: int
    most: int
    until: Expression
    body: tuple[RawStatement, ...]
    label: int | None = None


RawStatement = RawStep | RawIf | RawForEach | RawRepeat


class TitleLine(NamedTuple):
    """``name:``."""

    line: int
    text: str


class InputLine(NamedTuple):
    """One input; its type and default, where they are given."""

    line: int
    name: str
    type: str | None
    default: Expression | None


class InputsBlock(NamedTuple):
    """``inputs:``."""

    line: int
    inputs: tuple[InputLine, ...]


class RecordBlock(NamedTuple):
    """``record Item:`` with its fields."""

    line: int
    name: str
    fields: tuple[tuple[int, str, str], ...]


class TableBlock(NamedTuple):
    """``table daily: country -> money(EUR)``; rows are lines with keys and a value, or stand in a file."""

    line: int
    name: str
    columns: tuple[tuple[str, str | None], ...]
    type: str
    rows: tuple[tuple[int, tuple[str, ...]], ...] = ()
    file: str | None = None


class ProcedureBlock(NamedTuple):
    """``procedure shipping:``, which other procedures of the text may call."""

    line: int
    name: str
    items: tuple[Any, ...]


class AnswerLine(NamedTuple):
    """``answer:``."""

    line: int
    expression: Expression


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


class Trees(Transformer[Token, Any]):
    """One method for each rule of the grammar; holds nothing, so that threads may share it."""

    # ---- declarations

    def start(self, children: list[Any]) -> list[Any]:
        return children

    def lone_expression(self, children: list[Any]) -> Expression:
        return cast(Expression, children[0])

    def title(self, children: list[Any]) -> TitleLine:
        text = children[0].partition(":")[2].strip()
        if text.startswith('"'):
            text = unquote(children[0].update(value=text))
        return TitleLine(children[0].line, text)

    def inputs(self, children: list[Any]) -> InputsBlock:
        return InputsBlock(children[0].line, tuple(child for child in children[1:] if child is not None))

    def input(self, children: list[Any]) -> InputLine:
        name, kind, default = children
        return InputLine(name.line, str(name), None if kind is None else str(kind), default)

    def record(self, children: list[Any]) -> RecordBlock:
        return RecordBlock(children[0].line, str(children[1]), tuple(children[2:]))

    def record_field(self, children: list[Any]) -> tuple[int, str, str]:
        return children[0].line, str(children[0]), str(children[1])

    def table(self, children: list[Any]) -> TableBlock:
        word, name, *rest = children
        kind = next(each for each in rest if isinstance(each, Token))
        at = rest.index(kind)
        return TableBlock(word.line, str(name), tuple(rest[:at]), str(kind), tuple(rest[at + 1 :]))

    def table_file(self, children: list[Any]) -> TableBlock:
        word, name, *columns, kind, _, file = children
        return TableBlock(word.line, str(name), tuple(columns), str(kind), file=unquote(file))

    def column(self, children: list[Any]) -> tuple[str, str | None]:
        name, kind = children
        return str(name), None if kind is None else str(kind)

    def row(self, children: list[Any]) -> tuple[int, tuple[str, ...]]:
        return children[0].line, tuple(str(child).rstrip() for child in children)

    def procedure(self, children: list[Any]) -> ProcedureBlock:
        return ProcedureBlock(children[0].line, str(children[1]), tuple(children[2:]))

    def answer(self, children: list[Any]) -> AnswerLine:
        return AnswerLine(children[0].line, children[1])

    # ---- statements

    def labelled(self, children: list[Any]) -> RawStatement:
        label, statement = children
        return cast(RawStatement, statement._replace(label=int(label.rstrip(" \t.)"))))

    def step(self, children: list[Any]) -> RawStep:
        name, kind, content, checks = children
        return RawStep(name.line, str(name), None if kind is None else str(kind), content, checks or ())

    def described_step(self, children: list[Any]) -> RawStep:
        words, name, kind, formula, checks = children
        content = _content(formula)._replace(words=unquote(words))
        return RawStep(name.line, str(name), None if kind is None else str(kind), content, checks or ())

    def described(self, children: list[Any]) -> Content:
        formula, words = children
        return _content(formula)._replace(words=None if words is None else unquote(words))

    def by_code(self, children: list[Any]) -> Content:
        return _content(children[1])._replace(kind="code")

    def words(self, children: list[Any]) -> Content:
        return Content("words", words=unquote(children[0]), reads=children[1] or ())

    def question(self, children: list[Any]) -> Content:
        return Content("person", words=unquote(children[1]), reads=children[2] or ())

    def operation(self, children: list[Any]) -> Content:
        word, name, *arguments, words = children
        present = tuple(argument for argument in arguments if argument is not None)
        _check_once([key for key, _ in present], "argument", word)
        described = None if words is None else unquote(words)
        return Content(str(word), operation=str(name), arguments=present, words=described)  # type: ignore[arg-type]

    def argument(self, children: list[Any]) -> tuple[str, Expression]:
        return str(children[0]), children[1]

    def reads(self, children: list[Any]) -> tuple[str, ...]:
        return tuple(map(str, children[1:]))

    def checks(self, children: list[Any]) -> tuple[CheckCall, ...]:
        return tuple(children[1:])

    def check(self, children: list[Any]) -> CheckCall:
        name, *values = children
        options = tuple((str(each[0]), each[1]) for each in values if type(each) is tuple)
        _check_once([key for key, _ in options], "option", name)
        return CheckCall(
            str(name), tuple(each for each in values if each is not None and type(each) is not tuple), options
        )

    def check_option(self, children: list[Any]) -> tuple[Token, Expression]:
        return children[0], children[1]

    def block(self, children: list[Any]) -> tuple[RawStatement, ...]:
        return tuple(children)

    def if_(self, children: list[Any]) -> RawIf:
        word, condition, body, *rest = children
        *others, otherwise = rest
        return RawIf(word.line, ((word.line, condition, body), *others), otherwise or ())

    def else_if(self, children: list[Any]) -> tuple[int, Expression, tuple[RawStatement, ...]]:
        return children[0].line, children[1], children[2]

    def else_(self, children: list[Any]) -> tuple[RawStatement, ...]:
        return cast("tuple[RawStatement, ...]", children[1])

    def for_each(self, children: list[Any]) -> RawForEach:
        word, variable, over, body = children
        return RawForEach(word.line, str(variable), over, body)

    def repeat(self, children: list[Any]) -> RawRepeat:
        word, most, _, until, body = children
        if not most.isdecimal() or not 1 <= len(most) <= 12 or int(most) == 0:
            raise refuse(f"a loop is bounded by a whole number of rounds from 1 on, not by {most[:20]!s}", most)
        return RawRepeat(word.line, int(most), until, body)

    # ---- expressions

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
        _check_once([str(key) for key, _ in children], "field", children[0][0])
        return RecordTerm(tuple((str(key), value) for key, value in children))

    def entry(self, children: list[Any]) -> tuple[Token, Expression]:
        key, value = children
        return key, Name(str(key)) if value is None else value


def _content(formula: Any) -> Content:
    if isinstance(formula, Content):
        return formula
    if isinstance(formula, Token):
        formula = _arithmetic(formula)
    return Content("formula", formula)


def _arithmetic(token: Token) -> Expression:
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


def _check_once(names: list[str], role: str, token: Token) -> None:
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise refuse(f"the {role} {twice!r} stands twice", token)
