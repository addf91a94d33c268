"""Turn the rules of the grammar into trees.

Expressions become the trees of `stepguard.language.expressions` and `stepguard.language.terms.operands` at once.
Statements and declarations become the plain tuples of `stepguard.procedure.notation.nodes`;
`stepguard.procedure.notation.building` makes them steps and procedures.
"""

from __future__ import annotations

from typing import Any, cast

from lark import Token

from stepguard.language.expressions import Expression
from stepguard.procedure.notation.expression_trees import ExpressionTrees, check_once, plain_arithmetic, refuse, unquote
from stepguard.procedure.notation.nodes import (
    AnswerLine,
    CheckCall,
    Content,
    InputLine,
    InputsBlock,
    ProcedureBlock,
    RawForEach,
    RawIf,
    RawRepeat,
    RawStatement,
    RawStep,
    RecordBlock,
    TableBlock,
    TitleLine,
)


class Trees(ExpressionTrees):
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
        check_once([key for key, _ in present], "argument", word)
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
        check_once([key for key, _ in options], "option", name)
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


def _content(formula: Any) -> Content:
    if isinstance(formula, Content):
        return formula
    if isinstance(formula, Token):
        formula = plain_arithmetic(formula)
    return Content("formula", formula)
