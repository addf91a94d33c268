"""The check of steps with an expression: is the value right, and is the working this step's?

The value must equal the expression, computed exactly from the verified values and rounded as the step declares; only
a declared tolerance allows a difference, and the verdict records it. Where the step asks for working, the first link
must be the step's expression up to harmless rewriting (see `stepguard.language.same_working`), it may only name what
the step reads, and every link of the chain must be true. Following a procedure and being right are different things,
and this check asks for both.

Working is read as it is usually written (see `stepguard.language.typeset`), with currencies next to amounts, ``mod``,
digits that go on (``3.333...``) and percentages (``50 * 10%``, ``10% of 50``). The working of a percentage may
multiply by 100, from its first link on or in a later one that says so (``12 / 48 = 0.25 * 100 = 25``). What choices
and roundings came to may stand in their place (``(46.5 - 40) * 18.20`` of ``max(0, h - 40) * rate``). Of money, an
amount in another currency is no working, nor is a sum or the largest of several; a product may convert one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from stepguard.core.verdicts import Claim, DeviationKind, Verdict
from stepguard.errors import EvaluationError, ExpressionError, ValueRefused
from stepguard.language.currencies import compatible, with_currencies_as, without_currencies
from stepguard.language.digits import Exact, format_exact
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Call, Chain, Expression, Name, Negate, Number, format_expression, names_in
from stepguard.language.numerals import read_numeral
from stepguard.language.prose.remarks import without_rounding
from stepguard.language.same_working import normal_form, operands_of, settled_forms
from stepguard.language.typeset import as_expression, plain
from stepguard.language.values import ROUNDINGS, Rounding, Value, round_exact, show_value

if TYPE_CHECKING:
    from stepguard.language.tolerances import Tolerance
    from stepguard.procedure.steps import Step

_NAME = "arithmetic"
_PASS = Verdict("pass", _NAME, strength="proved")
# 3.333...: the digits shown are cut off, not rounded.
_DIGITS_GO_ON = re.compile(r"(?<=\.)([0-9]{1,300})(?:\.\.\.|\u2026)\s*\Z")
# A percent sign and not a remainder: nothing follows it that could be a divisor.
_PERCENT = re.compile(
    r"(?<![0-9A-Za-z_.,])([0-9][0-9.,]*)"
    r"(?: ?(?:\\?%|(?i:per ?cent)\b)(?: +(of)\b|(?=\s*(?:[*/)\]<>=!≤≥≠,]|\Z)))|\\?%(?= +[-+] ))"
)
_FOREIGN = "_in_another_currency_"
_KEEPING = frozenset({"min", "max", "abs", "round", "floor", "ceil", "trunc"})
"""Functions whose value is in the currency of their arguments."""
_DECIMALS = re.compile(r"[^.]*(?:\.([0-9]*)\s*)?\Z")  # how many places a link shows: so far it may have been rounded


def check_arithmetic(step: Step, values: Mapping[str, Value], claim: Claim, value: Value) -> Verdict:
    """Check one claim of a step that has an expression.

    Args:
        step: the step; its expression must not be None.
        value: the claimed value, already read as the step's type.
    """
    tree = step.expression
    assert tree is not None
    try:
        exact_value = evaluate(tree, values)
        expected = step.type.convert(exact_value)
    except EvaluationError as error:
        return _undefined(error)
    work = None
    # Working that is letter for letter the formula with its numbers needs no comparing of forms.
    if step.show_work and claim.work != (substitute(tree, values),):
        work = _check_work(_targets(step, values, exact_value), step, claim.work)
    within = step.type.within
    if within is not None and within.accepts(cast(Exact, value), cast(Exact, expected)):
        return (
            _fail(*work) if work is not None else Verdict("pass", _NAME, reason=f"within {within}", strength="proved")
        )
    # Types first: True == 1 in Python, but a truth value is no number.
    if type(value) is type(expected) and value == expected:
        return _fail(*work) if work is not None else _PASS
    # These name the mistake behind the wrong value; unfaithful working would hide that the value is wrong.
    if work is not None and work[0] in ("wrong_operand", "malformed"):
        return _fail(*work)
    mode = _wrong_mode(step, values, exact_value, value)
    reason = f"{format_expression(tree)} is {show_value(expected)}, not {show_value(value)}"
    if mode is not None:
        reason = f"rounding mode: {reason} ({mode} would give it)"
    return _fail("wrong_value", reason)


def check_defined(step: Step, values: Mapping[str, Value]) -> Verdict | None:
    """None where the step has an exact value, or no expression; otherwise the verdict on every claim about it."""
    if step.expression is None:
        return None
    try:
        step.type.convert(evaluate(step.expression, values))
    except EvaluationError as error:
        return _undefined(error)
    return None


def _undefined(error: EvaluationError) -> Verdict:
    # No claim can be right, so asking again cannot help.
    return Verdict("undecided", _NAME, "undecided", f"the step has no exact value: {error}", retry=False)


def _fail(kind: DeviationKind, reason: str) -> Verdict:
    return Verdict("fail", _NAME, kind, reason)


def _wrong_mode(
    step: Step, values: Mapping[str, Value], exact_value: Exact | bool | str, value: Value
) -> Rounding | None:
    """The mode under which a rounding that the step declares would give `value`, None where there is none."""
    tree, kind = step.expression, step.type
    for mode in cast("tuple[Rounding, ...]", ROUNDINGS):
        try:
            if kind.rounding is not None and replace(kind, rounding=mode).convert(exact_value) == value:
                return mode
            if type(tree) is Call and tree.mode is not None:
                other = evaluate(Call(tree.function, tree.arguments, mode), values)
                if kind.convert(other) == value:
                    return mode
        except EvaluationError:  # another mode gives a value of another kind
            continue
    return None


@dataclass(frozen=True, slots=True)
class _Target:
    """The value that the links of a working must have, and how far they may be rounded."""

    tree: Expression
    values: Mapping[str, Value]
    value: Exact | bool | str
    rounding: tuple[Exact, int, Rounding] | None
    """Where a rounding is declared: the value before it, the places and the mode."""
    within: Tolerance | None


def _targets(step: Step, values: Mapping[str, Value], value: Exact | bool | str) -> tuple[_Target, ...]:
    """The targets of a working: the expression, and of a percentage also a hundred times as much."""
    tree = step.expression
    assert tree is not None
    target = _target(step, tree, values, value)
    if step.type.kind != "percent":
        return (target,)
    hundred = Chain((tree, Number(100)), ("*",))
    try:
        return target, _target(step, hundred, values, evaluate(hundred, values), shift=2)
    except EvaluationError:  # a hundred times as much would be too large
        return (target,)


def _target(
    step: Step, tree: Expression, values: Mapping[str, Value], value: Exact | bool | str, *, shift: int = 0
) -> _Target:
    inner = _unrounded(tree)
    before = value if inner is tree else evaluate(inner, values)
    rounding: tuple[Exact, int, Rounding] | None = None
    if type(tree) is Call and tree.mode is not None:
        places = cast(Number, tree.arguments[1]).value
        rounding = cast(Exact, before), cast(int, places), tree.mode
    elif step.type.scale is not None:
        assert step.type.rounding is not None
        rounding = cast(Exact, before), step.type.scale - shift, step.type.rounding
    return _Target(tree, values, value, rounding, step.type.within)


def _check_work(targets: tuple[_Target, ...], step: Step, work: tuple[str, ...]) -> tuple[DeviationKind, str] | None:
    """Find what is wrong with the working; None if nothing is."""
    target = targets[0]
    tree, values = target.tree, target.values
    if not work:
        if type(tree) in (Name, Number):
            return None  # copying a value takes no working
        return "unfaithful_work", "no working is shown"
    for index, shown in enumerate(work):
        bare = without_rounding(shown, step.type, tree)
        # An x is a multiplication cross unless the step reads a variable of that name.
        link = as_expression(plain(bare, crosses=not {"x", "X"}.intersection(step.reads)))
        # After the typeset forms, so that \ldots counts as dots too.
        link, cut = _DIGITS_GO_ON.subn(r"\1", link)
        bare, currencies = _without_units(link)
        try:
            written = parse_expression(bare, commas_separate=True)
        except ExpressionError as error:
            return "malformed", f"the working cannot be read: {error}"
        foreign = [name for name in names_in(written) if name not in step.reads]
        if foreign:
            return "wrong_operand", f"the working reads {foreign[0]!r}, which this step does not"
        own = step.type.currency
        others = [] if own is None else sorted(unit for unit in currencies if not compatible(unit, own))
        # Only where nothing converts it: a product of an amount and a rate may name both currencies.
        if others and _keeps_foreign(link, others):
            return "wrong_operand", f"the working {shown.strip()!r} is in {others[0]}, the step in {own}"
        if index == 0:
            # The first link decides which target the working is after; from then on it must stay with that one.
            meant = next((each for each in targets if _same_work(written, each.tree, values)), None)
            if meant is None:
                kind: DeviationKind = "unfaithful_work"
                if operands_of(written, values) != operands_of(_unrounded(tree), values):
                    # Other numbers that still give the right value are another way of working, not a misread value.
                    kind = "wrong_operand" if not _equals(written, values, target.value) else kind
                return kind, f"the working {shown.strip()!r} is not {format_expression(tree)!r}"
            target = meant
        # 12 / 48 = 0.25 * 100 = 25: a later link moves from the ratio to the percentage only where it says so.
        elif target is not targets[-1] and _times_hundred(written) and _true_link(bare, written, targets[-1]):
            target = targets[-1]
        if not _true_link(bare, written, target, cut=bool(cut)):
            return "unfaithful_work", f"{shown.strip()!r} is not equal to {format_expression(target.tree)!r}"
    return None


def _without_units(link: str) -> tuple[str, frozenset[str]]:
    """Working with percentages as the numbers they are and without its currencies; and which these are."""
    link, currencies = without_currencies(link)
    return _PERCENT.sub(_hundredth, link), currencies


def _keeps_foreign(link: str, others: list[str]) -> bool:
    """Whether working has an amount in another currency that nothing converts: as a term, or among arguments."""
    marked = with_currencies_as(_FOREIGN, others, link)
    try:
        return _foreign_term(parse_expression(_PERCENT.sub(_hundredth, marked), commas_separate=True))
    except ExpressionError:
        return True


def _foreign_term(tree: Expression) -> bool:
    if type(tree) is Negate:
        return _foreign_term(tree.operand)
    if type(tree) is Call and tree.function in _KEEPING:
        return any(map(_foreign_term, tree.arguments))
    if type(tree) is not Chain:
        return False
    if tree.additive:
        return any(map(_foreign_term, tree.operands))
    factors = [operand for operand in tree.operands if not _is_mark(operand)]
    # Two factors or more: an amount times a rate, which converts. One beside marks is the bare amount.
    return len(factors) == 1 and (len(factors) < len(tree.operands) or _foreign_term(factors[0]))


def _is_mark(tree: Expression) -> bool:
    return _is_mark(tree.operand) if type(tree) is Negate else type(tree) is Name and tree.name == _FOREIGN


def _times_hundred(tree: Expression) -> bool:
    """Whether a product says that it multiplies by 100."""
    if type(tree) is not Chain or tree.additive:
        return False
    return any(
        operator == "*" and operand == Number(100)
        for operator, operand in zip(("*", *tree.operators), tree.operands, strict=True)
    )


def _hundredth(percentage: re.Match[str]) -> str:
    try:
        number = format_exact(read_numeral(f"{percentage[1]}%").value)
    except ValueRefused:
        return percentage[0]
    return f"{number} *" if percentage[2] else number


def _same_work(written: Expression, tree: Expression, values: Mapping[str, Value]) -> bool:
    found, inner = normal_form(written, values), _unrounded(tree)
    if found == normal_form(tree, values) or (inner is not tree and found == normal_form(inner, values)):
        return True
    # A percentage of 15% may be worked out as 15 / 100.
    if found == normal_form(inner, values, in_hundredths=True):
        return True
    try:
        return any(found == settled_form for settled_form in settled_forms(inner, values))
    except EvaluationError:
        return False


def _unrounded(tree: Expression) -> Expression:
    """The argument of an outermost ``round``: working may show the division and then its rounded result."""
    return tree.arguments[0] if type(tree) is Call and tree.function == "round" else tree


def _equals(tree: Expression, values: Mapping[str, Value], wanted: Exact | bool | str) -> bool:
    try:
        found = evaluate(tree, values)
    except EvaluationError:
        return False
    if isinstance(wanted, bool) or isinstance(found, bool):  # True == 1 in Python, not in a procedure
        return found is wanted
    return found == wanted


def _true_link(link: str, tree: Expression, target: _Target, *, cut: bool = False) -> bool:
    """Whether a link is what it has to be equal to; `cut`: whether dots say that its digits go on."""
    if cut and type(tree) is Number:
        before = target.value if target.rounding is None else target.rounding[0]
        places = len(link.partition(".")[2].strip())
        # An exact value has no further digits: 0.5... is not 0.5.
        return not isinstance(before, bool | str) and round_exact(before, places, "down") == tree.value != before
    if _equals(tree, target.values, target.value):
        return True
    if target.within is not None and type(tree) is Number:
        return target.within.accepts(tree.value, cast(Exact, target.value))
    if target.rounding is None:
        return False
    # Before a declared rounding a link may be the unrounded value, or its digits: cut off or rounded, but no fewer
    # than the rounding leaves.
    before, places, mode = target.rounding
    if _equals(tree, target.values, before):
        return True
    digits = _DECIMALS.match(link)
    if type(tree) is not Number or digits is None:
        return False
    written = len(digits[1] or "")
    # On the way people round as they are used to, whatever mode the step declares for its result.
    modes: tuple[Rounding, ...] = (mode, "half_up", "half_even", "down")
    return written >= places and any(round_exact(before, written, each) == tree.value for each in modes)
