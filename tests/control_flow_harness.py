"""Random procedures with branches, loops and calls, and an interpreter of them that shares nothing with the engine.

A program is made of plain tuples, which are turned into a `Procedure` by one function and carried out by another.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from stepguard import Guard, Procedure, Step
from stepguard.language.expressions import Chain, Compare, Expression, Logic, Name, Negate, Number, format_expression
from stepguard.language.terms.operands import Aggregate, Choice, Item, ListTerm
from stepguard.procedure.statements import ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.results import Result
from stepguard.testing import SimulatedModel, Slips

RIGHT = Slips.none()
Tree = tuple[Any, ...]


def guard(**options: Any) -> Guard:
    """A guard whose model makes no slip."""
    return Guard(SimulatedModel(slips=RIGHT), **options)


def run_watched(
    text: str, inputs: Mapping[str, object], **options: Any
) -> tuple[Result, list[list[str]], dict[str, object]]:
    """A run without slips, with what each request asks, and the values of all."""
    requests: list[list[str]] = []
    values: dict[str, object] = {}
    model = SimulatedModel(slips=RIGHT, answers=options.pop("answers", {}))

    class Watched:
        def complete(self, request: Any) -> Any:
            requests.append([_shown(step) for step in request.steps])
            values.update(request.values)
            return model.complete(request)

    options = {"segment": 50, **options}
    return Guard(Watched(), **options).run(Procedure.parse(text), inputs), requests, values


def _shown(step: Step) -> str:
    return (
        f"{step.id}: {step.instruction}"
        if step.expression is None
        else f"{step.id} = {format_expression(step.expression)}"
    )


def places(result: Result) -> list[tuple[str, str, str]]:
    """Of every step its place, its name in the run, and its statement."""
    return [(str(record.occurrence), record.occurrence.step, record.occurrence.site) for record in result.steps]


class BoundReached(Exception):
    """A `repeat` needs more rounds than it may have."""


@dataclass(frozen=True)
class Program:
    """A procedure and its inputs, with what an independent interpreter makes of them.

    Attributes:
        truth: the value of every step that is carried out, by its place.
        answer: the answer; None where a bound is reached.
        statements: what it is made of.
    """

    procedure: Procedure
    inputs: Mapping[str, int]
    truth: Mapping[str, object]
    answer: object
    statements: list[Tree]

    def slipped(self, slips: Mapping[str, Any]) -> tuple[dict[str, object], object]:
        """The values and the answer of a run with slips; the answer is None where it ends at a bound."""
        values: dict[str, Any] = dict(self.inputs)
        truth: dict[str, object] = {}
        try:
            carry_out(self.statements, values, "", truth, None, slips)
        except BoundReached:
            return truth, None
        return truth, values[self.procedure.answer]


def node_of(tree: Tree) -> Expression:
    """The expression of a tree."""
    match tree:
        case ("num", value):
            return Number(value) if value >= 0 else Negate(Number(-value))
        case ("var", name):
            return Name(name)
        case ("op", operator, left, right):
            return Chain((node_of(left), node_of(right)), (operator,))
        case ("cmp", operator, left, right):
            return Compare(operator, node_of(left), node_of(right))
        case ("and" | "or" as word, left, right):
            return Logic(word, (node_of(left), node_of(right)))
        case ("choice", then, condition, otherwise):
            return Choice(node_of(then), node_of(condition), node_of(otherwise))
        case ("agg", function, name):
            return Aggregate(function, Name(name))
        case ("item", name, index):
            return Item(Name(name), (Number(index),))
        case ("list", items):
            return ListTerm(tuple(map(node_of, items)))
    raise AssertionError(tree)


def value_of(tree: Tree, values: Mapping[str, Any]) -> Any:
    """What a tree comes to, in Python's own arithmetic."""
    match tree:
        case ("num", value):
            return value
        case ("var", name):
            return values[name]
        case ("op", operator, left, right):
            one, other = value_of(left, values), value_of(right, values)
            return {"+": one + other, "-": one - other, "*": one * other}[operator]
        case ("cmp", operator, left, right):
            one, other = value_of(left, values), value_of(right, values)
            return {"<": one < other, ">=": one >= other, "==": one == other}[operator]
        case ("and", left, right):
            return value_of(left, values) and value_of(right, values)
        case ("or", left, right):
            return value_of(left, values) or value_of(right, values)
        case ("choice", then, condition, otherwise):
            return value_of(then if value_of(condition, values) else otherwise, values)
        case ("agg", function, name):
            called: Any = {"sum": sum, "count": len, "max": max, "min": min}[function]
            return called(values[name])
        case ("item", name, index):
            return values[name][index]
        case ("list", items):
            return [value_of(item, values) for item in items]
    raise AssertionError(tree)


def body_of(statements: list[Tree]) -> list[Statement]:
    """The statements of a program as those of a procedure."""
    made: list[Statement] = []
    for statement in statements:
        match statement:
            case ("set", name, tree):
                made.append(Step(name, node_of(tree)))
            case ("if", condition, then, otherwise):
                made.append(If([(node_of(condition), body_of(then))], body_of(otherwise)))
            case ("each", variable, over, inner):
                made.append(ForEach(variable, node_of(over), body_of(inner)))
            case ("repeat", most, inner, until):
                made.append(Repeat(most, body_of(inner), until=node_of(until)))
            case ("call", id, arguments, inner, answer):
                called = Procedure(body_of(inner), inputs=list(arguments), answer=answer, name=f"called by {id}")
                passed = {name: node_of(tree) for name, tree in arguments.items()}
                made.append(ProcedureCall(id, called, passed))
    return made


def carry_out(
    statements: list[Tree],
    values: dict[str, Any],
    path: str,
    truth: dict[str, object],
    repeats: list[int] | None = None,
    slips: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """Carry statements out: enters what they set into `values` and `truth`, and gives the names.

    `repeats` counts the loops of that kind at one place: the second one is `repeat2`. `slips` are wrong values of steps
    by their places, with which it goes on.
    """
    names: list[str] = []
    repeats = [0] if repeats is None else repeats
    for statement in statements:
        match statement:
            case ("set", name, tree):
                place = f"{path}{name}"
                values[name] = truth[place] = slips[place] if place in slips else value_of(tree, values)
                names.append(name)
            case ("if", condition, then, otherwise):
                names += carry_out(
                    then if value_of(condition, values) else otherwise, values, path, truth, repeats, slips
                )
            case ("each", variable, over, inner):
                gathered: dict[str, list[Any]] = {name: [] for name in _assigned(inner)}
                of = over[1] if over[0] == "var" else variable
                stopped = False
                for number, item in enumerate(value_of(over, values)):
                    own = {**values, variable: item}
                    try:
                        carry_out(inner, own, f"{path}{of}[{number}].", truth, None, slips)
                    except BoundReached:  # the rounds beside it may have been carried out by then
                        stopped = True
                        continue
                    for name, found in gathered.items():
                        found.append(own[name])
                if stopped:
                    raise BoundReached
                values.update(gathered)
                names += gathered
            case ("repeat", most, inner, until):
                repeats[0] += 1
                here = "repeat" if repeats[0] == 1 else f"repeat{repeats[0]}"
                for number in range(most):
                    names += carry_out(inner, values, f"{path}{here}[{number}].", truth, None, slips)
                    if value_of(until, values):
                        break
                else:
                    raise BoundReached
            case ("call", id, arguments, inner, answer):
                own = {name: value_of(tree, values) for name, tree in arguments.items()}
                carry_out(inner, own, f"{path}{id}.", truth, None, slips)
                values[id] = own[answer]
                names.append(id)
    return names


def _assigned(statements: list[Tree]) -> list[str]:
    names: dict[str, None] = {}
    for statement in statements:
        match statement:
            case ("set", name, _) | ("call", name, _, _, _):
                names[name] = None
            case ("if", _, _, otherwise):  # which sets what is set on every way
                names.update(dict.fromkeys(_assigned(otherwise)))
            case ("each", _, _, inner) | ("repeat", _, inner, _):
                names.update(dict.fromkeys(_assigned(inner)))
    return list(names)


@dataclass
class _Maker:
    chance: random.Random
    most: int
    count: int = 0
    lists: dict[str, int] = field(default_factory=dict)

    def name(self, what: str = "t") -> str:
        self.count += 1
        return f"{what}{self.count}"

    def operand(self, known: list[str]) -> Tree:
        if known and self.chance.random() < 0.7:
            return ("var", self.chance.choice(known[-6:]))
        return ("num", self.chance.randint(-9, 30))

    def tree(self, known: list[str], lists: list[str]) -> Tree:
        kind = self.chance.random()
        if lists and kind < 0.25:
            name = self.chance.choice(lists)
            if self.chance.random() < 0.3:
                return ("item", name, self.chance.randrange(self.lists[name]))
            aggregate = ("agg", self.chance.choice(["sum", "count", "max", "min"]), name)
            return aggregate if self.chance.random() < 0.5 else ("op", "+", aggregate, self.operand(known))
        if kind < 0.35:
            return ("choice", self.operand(known), self.condition(known), self.operand(known))
        return ("op", self.chance.choice("+-+-*"), self.operand(known), self.operand(known))

    def condition(self, known: list[str]) -> Tree:
        one: Tree = ("cmp", self.chance.choice(["<", ">=", "=="]), self.operand(known), self.operand(known))
        if self.chance.random() < 0.2:
            return (self.chance.choice(["and", "or"]), one, self.condition(known))
        return one

    def body(self, known: list[str], lists: list[str], depth: int, size: int) -> list[Tree]:
        made: list[Tree] = []
        for _ in range(size):
            if self.count > self.most:
                break
            made.append(self.statement(known, lists, depth))
        return made or [self.step(known, lists)]

    def step(self, known: list[str], lists: list[str]) -> Tree:
        name, tree = self.name(), self.tree(known, lists)
        known.append(name)
        return ("set", name, tree)

    def statement(self, known: list[str], lists: list[str], depth: int) -> Tree:
        kind = self.chance.random() if depth else 1.0
        size = self.chance.randint(1, 3)
        if kind < 0.15:
            then = self.body([*known], [*lists], depth - 1, size)
            set_names = [statement[1] for statement in then if statement[0] == "set"]
            condition = self.condition(known)
            if not set_names:
                then = [*then, self.step([*known], lists)]
                set_names = [then[-1][1]]
            otherwise: list[Tree] = [("set", name, self.tree(known, lists)) for name in set_names]
            known += set_names
            return ("if", condition, then, otherwise)
        if kind < 0.32:
            variable, rounds = self.name("item"), self.chance.randint(1, 4)
            if lists and self.chance.random() < 0.4:
                over: Tree = ("var", self.chance.choice(lists))
                rounds = self.lists[over[1]]
            else:
                over = ("list", [self.operand(known) for _ in range(rounds)])
            inner = self.body([*known, variable], [*lists], depth - 1, size)
            gathered = [statement[1] for statement in inner if statement[0] in ("set", "call")]
            self.lists |= dict.fromkeys(gathered, rounds)
            lists += gathered
            return ("each", variable, over, inner)
        if kind < 0.45:
            start = self.chance.choice(known) if known else None
            name, rounds = self.name(), self.chance.randint(1, 4)
            first: Tree = ("set", name, ("op", "+", ("var", start) if start else ("num", 1), ("num", rounds)))
            inside = self.body([*known, name], [*lists], 0, size)
            inner = [*inside, ("set", name, ("op", "-", ("var", name), ("num", 1)))]
            until: Tree = ("cmp", "<", ("var", name), ("var", start) if start else ("num", 1))
            known.append(name)
            known += [statement[1] for statement in inside]
            bound = self.chance.choice([rounds + 1, rounds + 1, rounds + 5, 1])
            loop: Tree = ("repeat", bound, inner, until)
            if self.chance.random() < 0.4:  # another one goes on with what the first has left
                lower: Tree = ("cmp", "<", ("var", name), ("op", "-", until[3], ("num", rounds)))
                return ("seq", first, loop, ("repeat", rounds + 5, inner, lower))
            return ("seq", first, loop)
        if kind < 0.55:
            arguments = {self.name("in"): self.operand(known) for _ in range(2)}
            inner = self.body(list(arguments), [], 0, size)
            id = self.name("call")
            known.append(id)
            return ("call", id, arguments, inner, inner[-1][1])
        return self.step(known, lists)


def make_program(seed: int, *, most: int = 20) -> Program:
    """A random program of about so many names, and the truth about it."""
    maker = _Maker(random.Random(seed), most)
    inputs = {"x": maker.chance.randint(-20, 60), "y": maker.chance.randint(1, 40)}
    made = maker.body(list(inputs), [], 3, 7)
    statements = _flat(made)
    last = maker.name()
    known = [statement[1] for statement in statements if statement[0] == "set"]
    statements.append(("set", last, ("op", "+", ("var", known[-1]) if known else ("num", 1), ("num", 1))))
    values: dict[str, Any] = dict(inputs)
    truth: dict[str, object] = {}
    try:
        carry_out(statements, values, "", truth)
        answer = values[last]
    except BoundReached:
        answer = None
    procedure = Procedure(body_of(statements), inputs=list(inputs), answer=last)
    return Program(procedure, inputs, truth, answer, statements)


def _flat(statements: list[Tree]) -> list[Tree]:
    """Without the pairs that stand for one statement."""
    made: list[Tree] = []
    for statement in statements:
        match statement:
            case ("seq", *parts):
                made += _flat(list(parts))
            case ("if", condition, then, otherwise):
                made.append(("if", condition, _flat(then), _flat(otherwise)))
            case ("each", variable, over, inner):
                made.append(("each", variable, over, _flat(inner)))
            case ("repeat", most, inner, until):
                made.append(("repeat", most, _flat(inner), until))
            case ("call", id, arguments, inner, answer):
                made.append(("call", id, arguments, _flat(inner), answer))
            case _:
                made.append(statement)
    return made
