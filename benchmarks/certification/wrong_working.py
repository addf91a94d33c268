"""Wrong entries of one step whose working, or whose value with it, is that of something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from certification.cases import Case, operands
from certification.looks import Look, show
from certification.truth import (
    Bin,
    Cmp,
    Fn,
    Lit,
    Neg,
    Tree,
    Truth,
    Undefined,
    Var,
    compute,
    decimal_text,
    leaves,
    number_text,
    rounded,
)
from certification.wrong_entries import Wrong, wrong_kind, wrong_value

__all__: list[str] = []

# Other expressions: their value behind their own working, their value behind the right one, the right value behind them


def _variants(name: str, change: Callable[[Case, Tree], Iterator[Tree]]) -> None:
    def pick(case: Case) -> tuple[Tree, Truth] | None:
        tree = case.made.tree
        found = [] if tree is None or case.copies else list(change(case, tree))
        if not found:
            return None
        other = case.chance.choice(found)
        try:
            return other, compute(other, case.state)
        except Undefined:
            return None

    @wrong_kind(f"{name}, with its own working")
    def consistent(case: Case) -> Wrong | None:
        found = pick(case)
        if found is None:
            return None
        try:
            return wrong_value(case, case.spec.settle(found[1]), work=show(found[0], case.state))
        except Undefined:
            return None

    @wrong_kind(f"{name}, behind the right working")
    def result(case: Case) -> Wrong | None:
        found = pick(case)
        try:
            return None if found is None else wrong_value(case, case.spec.settle(found[1]))
        except Undefined:
            return None

    @wrong_kind(f"{name}, in front of the right value")
    def working(case: Case) -> Wrong | None:
        found = pick(case)
        return None if found is None else _wrong_work(case, found[0], found[1])


def _wrong_work(case: Case, other: Tree, worth: Truth) -> Wrong | None:
    """The right value behind other working, where that is other working for certain."""
    tree = case.made.tree
    if not case.made.work or tree is None or case.copies:
        return None
    hundredfold = case.spec.kind == "percent" and isinstance(worth, Fraction) and worth in _hundredfold(case)
    same = worth == case.made.exact or hundredfold or _before_rounding(case) == worth
    state = case.trace.states[-1]  # later steps keep what earlier ones set
    if same and set(operands(other, state)) == set(operands(tree, state)):
        return None
    return Wrong(f"{show(other, state)} = {case.plain}", "working")


def _hundredfold(case: Case) -> tuple[Fraction, ...]:
    exact = case.made.exact
    return (exact * 100,) if isinstance(exact, Fraction) else ()


def _before_rounding(case: Case) -> Truth | None:
    tree = case.made.tree
    return compute(tree.arguments[0], case.state) if isinstance(tree, Fn) and tree.name == "round" else None


def _changed(tree: Tree, change: Callable[[Tree], Iterator[Tree]]) -> Iterator[Tree]:
    """Every expression with one node of `tree` changed."""
    yield from change(tree)
    match tree:
        case Neg(operand):
            yield from (Neg(each) for each in _changed(operand, change))
        case Bin(operator, left, right):
            yield from (Bin(operator, each, right) for each in _changed(left, change))
            yield from (Bin(operator, left, each) for each in _changed(right, change))
        case Cmp(operator, left, right):
            yield from (Cmp(operator, each, right) for each in _changed(left, change))
            yield from (Cmp(operator, left, each) for each in _changed(right, change))
        case Fn(_, arguments):
            for at, argument in enumerate(arguments):
                for each in _changed(argument, change):
                    yield replace(tree, arguments=(*arguments[:at], each, *arguments[at + 1 :]))
        case _:
            return


def _other_operation(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Bin):
            yield from (Bin(each, node.left, node.right) for each in "+-*/" if each != node.operator)
        if isinstance(node, Cmp):
            ways = ("<", "<=", ">", ">=", "==", "!=")
            yield from (Cmp(each, node.left, node.right) for each in ways if each != node.operator)
        if isinstance(node, Fn) and node.name != "round":
            group = ("min", "max") if len(node.arguments) > 1 else ("floor", "ceil", "trunc", "abs")
            yield from (replace(node, name=each) for each in group if each != node.name)

    return _changed(tree, change)


def _swapped(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Bin) and node.operator not in "+*":
            yield Bin(node.operator, node.right, node.left)
        if isinstance(node, Cmp) and node.operator not in ("==", "!="):
            yield Cmp(node.operator, node.right, node.left)

    return _changed(tree, change)


def _stale(case: Case, tree: Tree) -> Iterator[Tree]:
    others = case.others()

    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Var):
            value = case.state[node.name]
            for name in others:
                other = case.state[name]
                if isinstance(other, Fraction) and other != value:
                    yield Lit(other)

    return _changed(tree, change)


def _misread(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        value = case.state[node.name] if isinstance(node, Var) else node.value if isinstance(node, Lit) else None
        if isinstance(value, Fraction):
            for other in (value + 1, value - 1, value * 10, -value, value + 100):
                if other != value:
                    yield Lit(other)

    return _changed(tree, change)


def _regrouped(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        match node:
            case Bin(outer, Bin(inner, one, two), three):
                yield Bin(inner, one, Bin(outer, two, three))
            case Bin(outer, one, Bin(inner, two, three)):
                yield Bin(inner, Bin(outer, one, two), three)
            case Bin("^", Neg(base), exponent):
                yield Neg(Bin("^", base, exponent))
            case Neg(Bin("-" | "+" as sign, one, two)):
                yield Bin(sign, Neg(one), two)

    return _changed(tree, change)


def _sign_lost(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Neg):
            yield node.operand
        value = case.state[node.name] if isinstance(node, Var) else node.value if isinstance(node, Lit) else None
        if isinstance(value, Fraction) and value < 0:
            yield Lit(-value)

    return _changed(tree, change)


def _term_lost(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Bin):
            yield from (node.left, node.right)
        if isinstance(node, Fn) and node.name != "round":
            yield node.arguments[0]

    return _changed(tree, change)


def _floored(case: Case, tree: Tree) -> Iterator[Tree]:
    def change(node: Tree) -> Iterator[Tree]:
        if isinstance(node, Bin) and node.operator in ("//", "%", "/"):
            cut = Fn("trunc", (Bin("/", node.left, node.right),))
            yield Bin("-", node.left, Bin("*", node.right, cut)) if node.operator == "%" else cut

    return _changed(tree, change)


@wrong_kind("operands swapped, by their names")
def _swapped_names(case: Case) -> Wrong | None:
    tree = case.made.tree
    found = [] if tree is None or not case.work() else list(_swapped(case, tree))
    if tree is None or not found:
        return None
    other = case.chance.choice(found)
    try:
        if compute(other, case.state) == case.made.exact:
            return None
    except Undefined:
        pass
    return Wrong(f"{show(other, case.state, Look(names=True))} = {case.work()} = {case.plain}", "working")


_variants("another operation", _other_operation)
_variants("operands swapped", _swapped)
_variants("stale operand", _stale)
_variants("misread operand", _misread)
_variants("brackets moved", _regrouped)
_variants("sign lost", _sign_lost)
_variants("operand lost", _term_lost)
_variants("cut off to zero", _floored)


# Working that is not this step's


@wrong_kind("another step's working")
def _neighbours(case: Case) -> Wrong | None:
    other = case.chance.choice(case.trace.steps)
    return None if other is case.made or other.tree is None else _wrong_work(case, other.tree, other.exact)


@wrong_kind("another step's value behind the right working")
def _neighbours_value(case: Case) -> Wrong | None:
    other = case.chance.choice(case.trace.steps)
    return wrong_value(case, other.truth) if type(other.truth) is type(case.made.truth) else None


@wrong_kind("a plausible sum of other numbers")
def _plausible(case: Case) -> Wrong | None:
    exact = case.made.exact
    if not isinstance(exact, Fraction):
        return None
    part = Fraction(case.chance.randint(1, 500))
    return _wrong_work(case, Bin("+", Lit(exact - part), Lit(part)), exact)


@wrong_kind("no working")
def _no_work(case: Case) -> Wrong | None:
    return None if case.work() is None else Wrong(case.plain, "working")


@wrong_kind("the result as its own working")
def _circular(case: Case) -> Wrong | None:
    number = case.number
    return None if number is None else _wrong_work(case, Lit(number), number)


@wrong_kind("a false link in the middle")
def _false_link(case: Case) -> Wrong | None:
    work, number = case.work(), case.number
    if work is None or number is None:
        return None
    other = number + case.chance.choice([-100, -10, -1, 1, 10, 100])
    exact, scale = case.made.exact, case.spec.scale
    if not case.spec.wrong(other, exact) or other == exact or other == number * 100:
        return None
    if scale is not None and isinstance(exact, Fraction) and abs(other - exact) * 10**scale < 1:
        return None  # the digits of the unrounded value, cut off, may stand before its rounding
    link = f"{number_text(other - 1)} + 1" if case.chance.random() < 0.5 else number_text(other)
    return Wrong(f"{work} = {link} = {case.plain}", "working")


@wrong_kind("a true chain with a false end")
def _false_end(case: Case) -> Wrong | None:
    work, exact = case.work(), case.made.exact
    if work is None or not isinstance(exact, Fraction) or case.number is None:
        return None
    link = f"{number_text(exact - 3)} + 3"
    return wrong_value(case, case.number + case.chance.choice([-1, 1, 3, -3]), work=f"{work} = {link}")


@wrong_kind("a link cut too short before the rounding")
def _short_link(case: Case) -> Wrong | None:
    work, exact, scale = case.work(), case.made.exact, case.spec.scale
    if work is None or not isinstance(exact, Fraction) or scale is None or scale < 1 or case.spec.kind == "percent":
        return None
    short = rounded(exact, scale - 1, "half_up")
    if short in (exact, case.made.truth):
        return None
    return Wrong(f"{work} = {decimal_text(short, scale - 1)} = {case.plain}", "working")


@wrong_kind("a name that the step does not read")
def _foreign(case: Case) -> Wrong | None:
    work, others = case.work(), case.others()
    if work is None or not others or case.number is None:
        return None
    name = case.chance.choice([*others, "total", "unknown"])
    return Wrong(
        f"{work} = {name} = {case.plain}" if case.chance.random() < 0.5 else f"{name} = {case.plain}", "working"
    )


@wrong_kind("words as working")
def _words(case: Case) -> Wrong | None:
    work = case.work()
    ways = ("as above", "by the formula", "the sum", f"{work};", f"{work} apples", f"perhaps {work}", "see t1", "...")
    return None if work is None else Wrong(f"{case.chance.choice(ways)} = {case.plain}", "working")


@wrong_kind("an operator too few or too many")
def _broken_operator(case: Case) -> Wrong | None:
    work, tree = case.work(), case.made.tree
    if work is None or not isinstance(tree, Bin):
        return None
    left, right = show(tree.left, case.state), f"({show(tree.right, case.state)})"
    sign = tree.operator
    ways = [f"{left} {right}", f"{left} {sign} * {right}", f"{left} {sign} {right} {sign}", f"({left} {sign} {right}"]
    return Wrong(f"{case.chance.choice(ways)} = {case.plain}", "working")


_NUMBER = re.compile(r"[0-9]{2,}")
_BETWEEN = (
    "\\left",
    "\\right",
    "\\left\\right",
    "\\times",
    "\\,",
    " ",
    "\u2009",
    "\u00a0",
    "\u200b",
    "$",
    "{}",
    "_",
    "'",
    "()",
    "\\",
)


@wrong_kind("something between the digits of an operand")
def _between_digits(case: Case) -> Wrong | None:
    work = case.work()
    numbers = [] if work is None else list(_NUMBER.finditer(work))
    if work is None or not numbers:
        return None
    found = case.chance.choice(numbers)
    at = case.chance.randrange(found.start() + 1, found.end())
    between = case.chance.choice(_BETWEEN)
    if between == "\\," and found.end() - at == 3 and at - found.start() <= 3:
        return None  # as LaTeX groups thousands
    return Wrong(f"{work[:at]}{between}{work[at:]} = {case.plain}", "working")


@wrong_kind("operands that happen to give it")
def _operands_only(case: Case) -> Wrong | None:
    tree = case.made.tree
    if tree is None or case.number is None:
        return None
    first = next(iter(leaves(tree)))
    other = Bin("+", first, Lit(case.number - _known(case, first)))
    state = case.trace.states[-1]
    taken = tree.arguments if isinstance(tree, Fn) else ()
    if any(set(operands(each, state)) == set(operands(other, state)) for each in taken):
        return None  # such as 53 - 53 of max(x - x, 0), which is what it came to
    return _wrong_work(case, other, case.number)


def _known(case: Case, leaf: Lit | Var) -> Fraction:
    value = leaf.value if isinstance(leaf, Lit) else case.state[leaf.name]
    return value if isinstance(value, Fraction) else Fraction(0)
