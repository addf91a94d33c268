"""Turn the rules of the policy grammar into nodes."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from lark import Token

from stepguard.language.expressions import Expression
from stepguard.policy import rules
from stepguard.procedure.notation.expression_trees import refuse, unquote
from stepguard.procedure.notation.settings import constant
from stepguard.procedure.notation.trees import Trees


class ViewBlock(NamedTuple):
    """``record Order:`` with the fields that rules read of it, each with its line."""

    line: int
    name: str
    fields: tuple[tuple[int, rules.Parameter], ...]


class PolicyTrees(Trees):
    """One method for each rule of the grammar; holds nothing, so that threads may share it."""

    def policy(self, children: list[Any]) -> list[Any]:
        return [item for each in children for item in (each if isinstance(each, list) else [each])]

    def lone_demand(self, children: list[Any]) -> rules.Demand:
        return cast(rules.Demand, children[0])

    lone_declaration = lone_rule = lone_target = lone_pattern = lone_demand

    # ---- declarations

    def view(self, children: list[Any]) -> ViewBlock:
        return ViewBlock(children[0].line, str(children[1]), tuple(children[2:]))

    def view_field(self, children: list[Any]) -> tuple[int, rules.Parameter]:
        return children[0].line, self.parameter(children)

    def parameter(self, children: list[Any]) -> Any:
        name, *rest = children
        if name.type == "REST":
            return name
        kind, default = rest
        try:
            return rules.Parameter(str(name), str(kind), None if default is None else constant(default))
        except ValueError as error:
            raise refuse(str(error), name) from None

    def tool(self, children: list[Any]) -> rules.ToolSignature:
        word, name, *given, result, effect = children
        parameters = [each for each in given if each is not None]
        more = bool(parameters) and isinstance(parameters[-1], Token)
        if any(isinstance(each, Token) for each in parameters[:-1]):
            raise refuse("`...` stands once, behind the arguments that rules read", word)
        reads = effect == "reads"
        return rules.ToolSignature(
            str(name),
            tuple(parameters[:-1] if more else parameters),
            _text(result),
            "reads" if reads else "changes",
            None if reads else effect,
            more=more,
            line=word.line,
        )

    def reads_only(self, _: list[Any]) -> str:
        return "reads"

    def changes_nothing(self, _: list[Any]) -> tuple[rules.CallPattern, ...]:
        return ()

    def changes(self, children: list[Any]) -> tuple[rules.CallPattern, ...]:
        return tuple(children[1:])

    def fact(self, children: list[Any]) -> rules.Fact:
        word, name, *given, kind, judged, question = children
        keys = tuple(each for each in given if each is not None)
        if any(isinstance(each, Token) for each in keys):
            raise refuse("a fact has keys with names", word)
        return rules.Fact(str(name), str(kind), keys, _words(question), judged is not None, line=word.line)

    # ---- rules

    def allow(self, children: list[Any]) -> list[rules.Rule]:
        word, *names = children
        return [rules.Rule(str(name), line=word.line) for name in names]

    def never(self, children: list[Any]) -> list[rules.Rule]:
        demand = rules.Prohibition(**_worded(children))
        return [rules.Rule(str(name), (demand,), line=demand.line) for name in children[1:-2]]

    def before(self, children: list[Any]) -> list[rules.Rule]:
        word, *targets, body = children
        return [rules.Rule(tool, body, names, line=word.line) for tool, names in targets]

    def target(self, children: list[Any]) -> tuple[str, tuple[str, ...]]:
        name, *names = children
        return str(name), tuple(str(each) for each in names if each is not None)

    def rule_block(self, children: list[Any]) -> tuple[rules.Demand, ...]:
        return tuple(children)

    def seen(self, children: list[Any]) -> rules.Seen:
        patterns = tuple(each for each in children if isinstance(each, rules.CallPattern))
        return rules.Seen(patterns, _text(children[-3]), **_worded(children))

    def seen_all(self, children: list[Any]) -> rules.SeenAll:
        word, pattern, _, name = children
        return rules.SeenAll(pattern, str(name), line=word.line)

    def done(self, children: list[Any]) -> rules.Done:
        return rules.Done(children[1], children[0].type == "NOT_DONE", **_worded(children))

    not_done = done

    def earlier(self, children: list[Any]) -> rules.Earlier:
        word, pattern, _, name = children
        return rules.Earlier(pattern, str(name), line=word.line)

    def require(self, children: list[Any]) -> rules.Requirement:
        return rules.Requirement(children[1], children[0].type == "REFUSE_IF", **_worded(children))

    refuse_if = require

    def confirmed(self, children: list[Any]) -> rules.Confirmation:
        return rules.Confirmation(str(children[1]), **_worded(children))

    def at_most(self, children: list[Any]) -> rules.Limit:
        word, number, unit, *behind, _, _ = children
        if (number is None) != (unit.type == "ONCE"):
            raise refuse("write `at most once` or `at most 3 times`", word)
        # Cut before int(): a number of thousands of digits would take long to convert.
        if number is not None and not (number.isdecimal() and 0 < int(number[:12]) < 10**9):
            raise refuse(f"a limit is a whole number from 1 on, not {number[:20]!s}: `never` forbids a tool", number)
        per: list[Expression] = []
        within = None
        # `per` and `within` stand between the expressions, as tokens: each names what follows it.
        kind = ""
        for each in behind:
            if isinstance(each, Token):
                kind = each.type
            elif each is not None and kind == "WITHIN":
                within = each
            elif each is not None:
                per.append(each)
        most = 1 if number is None else int(number)
        return rules.Limit(most, tuple(per), within, **_worded(children))

    def bind(self, children: list[Any]) -> rules.Binding:
        name, value = children
        return rules.Binding(str(name), value, line=name.line)

    def when(self, children: list[Any]) -> rules.Branching:
        word, condition, body, *rest = children
        others = [(each.condition, each.body) for each in rest if isinstance(each, _OtherBranch)]
        otherwise = () if rest[-1] is None else rest[-1]
        return rules.Branching(((condition, body), *others), otherwise, line=word.line)

    def other_when(self, children: list[Any]) -> _OtherBranch:
        return _OtherBranch(children[1], children[2])

    def every(self, children: list[Any]) -> rules.Repetition:
        word, variable, over, body = children
        return rules.Repetition(str(variable), over, body, line=word.line)

    def unless(self, children: list[Any]) -> rules.Exemption:
        return rules.Exemption(children[1])

    def only_if(self, children: list[Any]) -> rules.Exemption:
        return rules.Exemption(children[1], counts=True)

    def pattern(self, children: list[Any]) -> rules.CallPattern:
        name, *arguments = children
        positional: list[Expression] = []
        named: dict[str, Expression] = {}
        for each in arguments:
            if isinstance(each, _NamedArgument):
                if each.name in named:
                    raise refuse(f"the argument {each.name!r} stands twice", name)
                named[each.name] = each.value
            elif each is not None and not isinstance(each, Token):
                if named:
                    raise refuse("arguments by position stand before those with names", name)
                positional.append(each)
        return rules.CallPattern(str(name), tuple(positional), tuple(named.items()))

    def named_argument(self, children: list[Any]) -> _NamedArgument:
        return _NamedArgument(str(children[0]), children[1])


class _NamedArgument(NamedTuple):
    name: str
    value: Expression


class _OtherBranch(NamedTuple):
    condition: Expression
    body: tuple[rules.Demand, ...]


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)


def _words(token: Token | None) -> str | None:
    return None if token is None else unquote(token)


def _worded(children: list[Any]) -> dict[str, Any]:
    """What every demand ends with, its exemption and its words for the agent, and the line where it begins."""
    return {"exemption": children[-2], "words": _words(children[-1]), "line": children[0].line}
