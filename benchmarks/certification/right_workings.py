"""Right ways of writing that change the working: rewritings that change nothing, and chains of links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from certification.cases import Case
from certification.looks import leaf_reduced, show
from certification.right_ways import right_way
from certification.truth import Bin, Cmp, Fn, Lit, Neg, Tree, Var, decimal_text, rounded

__all__: list[str] = []


# Rewritings that change nothing


def _rewritten(name: str, change: Callable[[Tree, Case], Tree]) -> None:
    @right_way(name)
    def way(case: Case) -> object:
        tree = case.made.tree
        if tree is None or case.work() is None:
            return None
        text = show(change(tree, case), case.state)
        return None if text == case.work() else f"{text} = {case.plain}"


def _reordered(tree: Tree, case: Case) -> Tree:
    match tree:
        case Bin(("+" | "*") as operator, left, right):
            return Bin(operator, _reordered(right, case), _reordered(left, case))
        case Bin(operator, left, right):
            return Bin(operator, _reordered(left, case), _reordered(right, case))
        case Neg(operand):
            return Neg(_reordered(operand, case))
        case Fn("min" | "max", arguments):
            return replace(tree, arguments=tuple(_reordered(each, case) for each in reversed(arguments)))
        case Cmp(operator, left, right):
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return Cmp(flipped, _reordered(right, case), _reordered(left, case))
        case _:
            return tree


def _folded(tree: Tree, case: Case) -> Tree:
    """Without minus signs that stand next to another one, as most people write it."""
    match tree:
        case Bin(("+" | "-") as operator, left, right):
            value = (
                case.state[right.name] if isinstance(right, Var) else right.value if isinstance(right, Lit) else None
            )
            other = "-" if operator == "+" else "+"
            if isinstance(right, Neg):
                return Bin(other, _folded(left, case), _folded(right.operand, case))
            if isinstance(value, Fraction) and value < 0:
                return Bin(other, _folded(left, case), Lit(-value))
            return Bin(operator, _folded(left, case), _folded(right, case))
        case _:
            return tree


def _outer_sign(tree: Tree, case: Case) -> Tree:
    match tree:
        case Bin(("*" | "/") as operator, left, right):
            value = case.state[left.name] if isinstance(left, Var) else left.value if isinstance(left, Lit) else None
            if isinstance(value, Fraction) and value < 0:
                return Neg(Bin(operator, Lit(-value), right))
            if isinstance(left, Neg):
                return Neg(Bin(operator, left.operand, right))
        case Bin("-", left, right):
            return Bin("+", Neg(right), left)
    return tree


def _factors(tree: Tree, case: Case) -> Tree:
    if isinstance(tree, Bin) and tree.operator == "^" and isinstance(tree.right, Lit) and 2 <= tree.right.value <= 8:
        product = tree.left
        for _ in range(int(tree.right.value) - 1):
            product = Bin("*", product, tree.left)
        return product
    return tree


_rewritten("operands reordered", _reordered)
_rewritten("signs folded", _folded)
_rewritten("the sign in front", _outer_sign)
_rewritten("a power written out", _factors)


# Chains


@right_way("one operation at a time")
def _stepwise(case: Case) -> object:
    tree = case.made.tree
    if tree is None or case.work() is None:
        return None
    shown = [show(tree, case.state)]
    step = leaf_reduced(tree, case.state)
    while step is not None and not isinstance(step, Lit):
        shown.append(show(step, case.state))
        step = leaf_reduced(step, case.state)
    return " = ".join([*shown[:60], case.plain]) if len(shown) > 1 else None


@right_way("unrounded digits before the rounding")
def _unrounded(case: Case) -> object:
    exact, scale, work = case.made.exact, case.spec.scale, case.work()
    if work is None or scale is None or not isinstance(exact, Fraction) or exact == case.made.truth:
        return None
    places = scale + case.chance.randint(2, 8)
    mode = case.chance.choice(["half_up", "half_even", "down"])
    return f"{work} = {decimal_text(rounded(exact, places, mode), places)} = {case.plain}"


@right_way("about equal before the rounding")
def _about(case: Case) -> object:
    exact, work = case.made.exact, case.work()
    changed = isinstance(exact, Fraction) and exact != case.made.truth
    return f"{work} \u2248 {case.plain}" if work is not None and changed else None


@right_way("the exact fraction before the rounding")
def _exact_fraction(case: Case) -> object:
    exact, work = case.made.exact, case.work()
    if work is None or not isinstance(exact, Fraction) or exact.denominator == 1 or case.spec.places is None:
        return None
    return f"{work} = {exact.numerator}/{exact.denominator} = {case.plain}"


@right_way("the division without its round")
def _inner(case: Case) -> object:
    tree = case.made.tree
    if not isinstance(tree, Fn) or tree.name != "round" or case.work() is None:
        return None
    return f"{show(tree.arguments[0], case.state)} = {case.plain}"


@right_way("within the tolerance")
def _near(case: Case) -> object:
    exact, within, work = case.made.exact, case.spec.within, case.work()
    if within is None or not isinstance(exact, Fraction) or case.at < len(case.trace.steps) - 1:
        return None  # later steps would read what was claimed
    allowed = abs(exact) * within if case.spec.relative else within
    places = 0
    while Fraction(1, 10**places) > allowed:
        places += 1
        if places > 30:
            return None
    return case.with_work(work, decimal_text(rounded(exact, places, "half_up"), places))
