"""Wrong entries of one step: wrong values, wrong working, and what is no plain statement of a value.

Every mutant is made with what it is worth, and counts only where that is wrong by `truth`: a value that the declared
type, rounding or tolerance does not allow; working that comes to something else than the step or is made of other
numbers; text that says something else than one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from certification.cases import Case, operands
from certification.looks import Look, show
from certification.truth import (
    MODES,
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

__all__ = ["WRONG_ENTRIES", "Wrong", "wrong_kind", "wrong_value"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong entry.

    Attributes:
        entry: what stands in the reply.
        fault: ``value``, ``working`` or ``statement``.
    """

    entry: object
    fault: str


Maker = Callable[[Case], Wrong | None]
WRONG_ENTRIES: dict[str, Maker] = {}
"""How the right entry of a step is made wrong; None where this step does not allow it."""


def wrong_kind(name: str) -> Callable[[Maker], Maker]:
    """Register a kind of wrong entries."""

    def register(maker: Maker) -> Maker:
        assert name not in WRONG_ENTRIES
        WRONG_ENTRIES[name] = maker
        return maker

    return register


def wrong_value(case: Case, value: Truth | None, *, work: str | None = None, text: str | None = None) -> Wrong | None:
    """A wrong value behind right working, or other working; None where the value is right after all."""
    if value is None or not case.spec.wrong(value, case.made.exact):
        return None
    shown = case.spec.write(value) if text is None else text
    return Wrong(case.with_work(work or case.work(), shown), "value")


def _values(name: str) -> Callable[[Callable[[Case, Fraction], Fraction | None]], None]:
    """Register a change of the number that a step has come to."""

    def register(change: Callable[[Case, Fraction], Fraction | None]) -> None:
        @wrong_kind(name)
        def made(case: Case) -> Wrong | None:
            number = case.number
            return None if number is None else wrong_value(case, change(case, number))

    return register


def _shown(case: Case, number: Fraction) -> Fraction:
    return number * 100 if case.spec.kind == "percent" else number


def _unshown(case: Case, number: Fraction) -> Fraction:
    return number / 100 if case.spec.kind == "percent" else number


def _unit(case: Case) -> Fraction:
    return Fraction(1, 10 ** (case.spec.scale or 0))


@_values("off by one")
def _off_by_one(case: Case, number: Fraction) -> Fraction:
    return number + case.chance.choice([-1, 1])


@_values("off by one in the last place")
def _last_place(case: Case, number: Fraction) -> Fraction:
    return number + case.chance.choice([-1, 1]) * _unit(case)


@_values("carry lost")
def _carry(case: Case, number: Fraction) -> Fraction:
    places = case.chance.randint(1, max(1, len(str(int(abs(number)))) - 1))
    return number + Fraction(case.chance.choice([-1, 1]) * int("1" + "0" * places))


@_values("sign")
def _sign(case: Case, number: Fraction) -> Fraction:
    return -number


@_values("decimal point moved")
def _shifted(case: Case, number: Fraction) -> Fraction | None:
    moved = number * Fraction(case.chance.choice([1_000, 10_000, 100_000, 10, 1]), 100)
    return moved if case.spec.kind != "integer" or moved.denominator == 1 else None


@_values("inverted")
def _inverted(case: Case, number: Fraction) -> Fraction | None:
    return 1 / number if number and case.spec.kind == "number" else None


@_values("near equal")
def _near(case: Case, number: Fraction) -> Fraction | None:
    if case.spec.kind not in ("number", "percent") or case.spec.places is not None:
        return None
    return number + Fraction(case.chance.choice([-1, 1]) * case.chance.randint(1, 9), 10 ** case.chance.randint(3, 25))


@_values("double precision")
def _double(case: Case, number: Fraction) -> Fraction | None:
    if case.spec.kind not in ("number", "integer"):
        return None
    return Fraction(int(float(number))) if number.denominator == 1 else Fraction(repr(float(number)))


@_values("rounded without a declaration")
def _undeclared(case: Case, number: Fraction) -> Fraction | None:
    return rounded(number, case.chance.randint(0, 6), "half_up") if case.spec.places is None else None


@_values("a power of ten more places")
def _finer(case: Case, number: Fraction) -> Fraction | None:
    exact, scale = case.made.exact, case.spec.scale
    return rounded(exact, scale + 1, "half_up") if scale is not None and isinstance(exact, Fraction) else None


def _in_mode(case: Case, mode: str) -> Wrong | None:
    exact, scale, tree = case.made.exact, case.spec.scale, case.made.tree
    if scale is not None and isinstance(exact, Fraction):
        return wrong_value(case, rounded(exact, scale, mode))
    if isinstance(tree, Fn) and tree.name == "round":
        return wrong_value(case, compute(replace(tree, mode=mode), case.state))
    return None


@wrong_kind("truncated instead of rounded")
def _truncated(case: Case) -> Wrong | None:
    return _in_mode(case, "down")


@wrong_kind("half even for half up, or the reverse")
def _ties(case: Case) -> Wrong | None:
    return _in_mode(case, case.chance.choice(["half_even", "half_up", "half_down"]))


@wrong_kind("another rounding mode")
def _other_mode(case: Case) -> Wrong | None:
    return _in_mode(case, case.chance.choice(MODES))


@wrong_kind("rounded twice")
def _twice(case: Case) -> Wrong | None:
    exact, scale = case.made.exact, case.spec.scale
    if scale is None or not isinstance(exact, Fraction):
        return None
    return wrong_value(case, rounded(rounded(exact, scale + 1, case.spec.mode), scale, case.spec.mode))


@wrong_kind("just beyond the tolerance")
def _beyond(case: Case) -> Wrong | None:
    exact, spec = case.made.exact, case.spec
    if spec.within is None or not isinstance(exact, Fraction):
        return None
    allowed = abs(exact) * spec.within if spec.relative else spec.within
    places = case.chance.randint(3, 12)
    outward = case.chance.choice([-1, 1])
    edge = rounded(exact + outward * allowed, places, "ceiling" if outward > 0 else "floor")
    return wrong_value(case, edge + outward * Fraction(1, 10**places), text=None)


def _digits_changed(change: Callable[[Case, str], Iterator[str]], name: str) -> None:
    @wrong_kind(name)
    def made(case: Case) -> Wrong | None:
        number = case.number
        if number is None:
            return None
        text = case.plain.removesuffix("%")
        found = list(change(case, text))
        if not found:
            return None
        changed = case.chance.choice(found)
        value = _unshown(case, Fraction(changed))
        return wrong_value(case, value, text=changed + "%" * case.plain.endswith("%"))


def _transposed(case: Case, text: str) -> Iterator[str]:
    for at in range(len(text) - 1):
        one, two = text[at], text[at + 1]
        if one.isdigit() and two.isdigit() and one != two:
            yield text[:at] + two + one + text[at + 2 :]


def _dropped(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and sum(each.isdigit() for each in text) > 1 and "/" not in text:
            shorter = text[:at] + text[at + 1 :]
            if shorter.strip("-.") and shorter[-1] != "." and shorter.lstrip("-")[0] != ".":
                yield shorter


def _doubled(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and "/" not in text:
            yield text[:at] + char + text[at:]


def _replaced(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and "/" not in text:
            yield text[:at] + case.chance.choice("0123456789") + text[at + 1 :]


_digits_changed(_transposed, "digits transposed")
_digits_changed(_dropped, "digit dropped")
_digits_changed(_doubled, "digit doubled")
_digits_changed(_replaced, "digit replaced")


@wrong_kind("the other truth value")
def _negated(case: Case) -> Wrong | None:
    truth = case.made.truth
    return wrong_value(case, not truth) if isinstance(truth, bool) else None


@wrong_kind("another option")
def _other_option(case: Case) -> Wrong | None:
    return wrong_value(case, case.chance.choice(case.spec.options)) if case.spec.options else None


@wrong_kind("another text")
def _other_text(case: Case) -> Wrong | None:
    if case.spec.kind != "text":
        return None
    text = case.plain
    ways = (
        f"{text}s",
        text.upper(),
        text[:-1],
        f"{text}.",
        f'"{text}"',
        f"the {text}",
        "",
        f"{text} {text}",
        f"{text} or so",
    )
    return wrong_value(case, case.chance.choice(ways))


@wrong_kind("value of another variable")
def _stale_result(case: Case) -> Wrong | None:
    names = [name for name, value in case.state.items() if isinstance(value, Fraction)]
    value = case.state[case.chance.choice(names)]
    whole = isinstance(value, Fraction) and (case.spec.kind != "integer" or value.denominator == 1)
    return wrong_value(case, value) if case.number is not None and whole else None


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
    if not case.spec.wrong(other, case.made.exact) or other == case.made.exact or other == number * 100:
        return None
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
    ways = ("as above", "by the formula", "the sum", f"{work};", f"{work} apples", f"so {work}", "see t1", "...")
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


@wrong_kind("operands that happen to give it")
def _operands_only(case: Case) -> Wrong | None:
    tree = case.made.tree
    if tree is None or case.number is None:
        return None
    first = next(iter(leaves(tree)))
    return _wrong_work(case, Bin("+", first, Lit(case.number - _known(case, first))), case.number)


def _known(case: Case, leaf: Lit | Var) -> Fraction:
    value = leaf.value if isinstance(leaf, Lit) else case.state[leaf.name]
    return value if isinstance(value, Fraction) else Fraction(0)
