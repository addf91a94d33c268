"""The form of a formula: a right value that is not written as it was asked for is not what the step is about.

============  =====================================================================================================
expanded      a sum of terms; no product or power of sums is left, like terms are collected
factored      a product; every factor is irreducible over the rational numbers and no number can be taken out of it
simplified    no more operations than sympy's simplified form has; numbers are put together, fractions in lowest terms,
              and roots of whole numbers as small as they can be: ``6/4``, ``6x/4`` and ``sqrt(8)`` are not
number        one number: ``3/4``, ``-0.75``
============  =====================================================================================================
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import gcd, prod
from typing import Final, Literal, get_args

from stepguard.formulas.canonical import Canonical, Monomial, TooBig
from stepguard.formulas.deciding import Decider, Deduction, shown
from stepguard.formulas.trees import CallOf, Constant, Formula, PowerOf, Product, Sum, symbols_in, to_data, walk
from stepguard.language.digits import Exact
from stepguard.language.expressions import Name, Number

Form = Literal["expanded", "factored", "simplified", "number"]

FORMS: Final[tuple[str, ...]] = get_args(Form)

_MAX_ROOT: Final = 1000
"""The largest factor that is tried for being taken out of a root."""


def in_form(tree: Formula, form: str, decider: Decider) -> Deduction:
    """Whether a formula is written in a form."""
    match form:
        case "expanded":
            return _yes_unless(_not_expanded(tree))
        case "factored":
            return _factored(tree, decider)
        case "simplified":
            return _simplified(tree, decider)
        case _:
            return _yes_unless(None if is_number(tree) else f"{shown(tree)} is no plain number")


def _yes_unless(reason: str | None) -> Deduction:
    return Deduction("yes") if reason is None else Deduction("no", reason)


def is_number(tree: Formula) -> bool:
    """Whether a formula is written as one number."""
    match tree:
        case Number():
            return True
        case Product((Number(), PowerOf(Number(), Number(-1)))):
            return True
    return False


def _not_expanded(tree: Formula) -> str | None:
    terms = tree.terms if isinstance(tree, Sum) else (tree,)
    seen: Counter[Monomial] = Counter()
    for term in terms:
        factors = term.factors if isinstance(term, Product) else (term,)
        for factor in factors:
            if symbols_in(factor) and not _simple(factor):
                return f"{shown(factor)} is not multiplied out"
        numbers = [each for each in factors if isinstance(each, Number) and abs(each.value) != 1]
        # By base, so that x*x^2 counts as two factors of one base.
        names = Counter(each.base if isinstance(each, PowerOf) else each for each in factors if symbols_in(each))
        if len(numbers) > 1 or any(count > 1 for count in names.values()):
            return f"the factors of {shown(term)} are not put together"
        try:
            form = Canonical().form(term)
        except (TooBig, ZeroDivisionError):
            continue
        if not form.over and len(terms) > 1:
            return f"the term {shown(term)} is zero"
        if len(form.over) == 1 and len(form.under) == 1:
            ((over, _),) = form.over.items()
            ((under, _),) = form.under.items()
            # No symbol is called "/": it keeps the numerator apart from the denominator.
            key = (*over, ("/", 0), *under)
            seen[key] += 1
            if seen[key] > 1:
                return f"like terms are not collected: {shown(term)}"
    return None


def _simple(factor: Formula) -> bool:
    if isinstance(factor, PowerOf):
        number = factor.exponent.value if isinstance(factor.exponent, Number) else None
        if type(number) is int and number > 0:
            return isinstance(factor.base, Name | Constant | CallOf)
        return True  # a divisor or a root is left as it is
    return isinstance(factor, Name | Constant | CallOf)


def _factored(tree: Formula, decider: Decider) -> Deduction:
    factors = tree.factors if isinstance(tree, Product) else (tree,)
    bases: list[Formula] = []
    for factor in factors:
        whole = (
            isinstance(factor, PowerOf) and isinstance(factor.exponent, Number) and type(factor.exponent.value) is int
        )
        base = factor.base if whole and isinstance(factor, PowerOf) else factor
        if isinstance(base, Product):
            bases += base.factors
        else:
            bases.append(base)
    bases = [base for base in bases if symbols_in(base) and not isinstance(base, Name)]
    if not bases:
        return Deduction("yes")
    answer = decider.ask({"op": "factors", "factors": [to_data(base) for base in bases]}, *bases)
    if isinstance(answer, Deduction):
        return answer
    if answer.get("proved") is True:
        return Deduction("yes")
    return Deduction("no", f"{answer.get('factor', 'a factor')} can be factored")


def _simplified(tree: Formula, decider: Decider) -> Deduction:
    unreduced = next((reason for node in walk(tree) if (reason := _unreduced(node)) is not None), None)
    if unreduced is not None:
        return Deduction("no", unreduced)
    answer = decider.ask({"op": "simplest", "tree": to_data(tree)}, tree)
    if isinstance(answer, Deduction):
        return answer
    # Counted by our own rules, since the tree as written is what is judged; sympy would tidy it while building it.
    fewest, found = answer.get("operations"), _operations(tree)
    if not isinstance(fewest, int):
        return Deduction("open", "no simplified form was found")
    return Deduction("yes") if found <= fewest else Deduction("no", f"{found} operations where {fewest} are enough")


def _unreduced(node: Formula) -> str | None:
    """What is left to do with the numbers alone, which sympy does unasked: it counts 6/4 as it does 3/2."""
    match node:
        case Sum(terms) if sum(map(is_number, terms)) > 1:
            return f"the numbers in {shown(node)} are not added up"
        case Product(factors):
            over = [factor for factor in factors if not _divides(factor)]
            under = [factor.base for factor in factors if isinstance(factor, PowerOf) and _divides(factor)]
            above, below = (
                [each.value for each in part if isinstance(each, Number) and each.value not in (1, -1)]
                for part in (over, under)
            )
            # A decimal over a number, 0.5/3, is a fraction within a fraction.
            broken = below and any(type(each) is Fraction for each in above)
            if len(above) > 1 or len(below) > 1 or broken or Number(1) in under:
                return f"the numbers in {shown(node)} are not put together"
            if gcd(prod(map(_content, over)), prod(map(_content, under))) > 1:
                return f"{shown(node)} is not in lowest terms"
        case PowerOf(Number(base), Number(Fraction(numerator=1) as exponent)):
            return _root_unreduced(node, base, exponent.denominator)
        # The exponent as it is read from 8^(1/2), before anything puts it together.
        case PowerOf(Number(base), Product((Number(1), PowerOf(Number(int() as degree), Number(-1))))) if degree > 1:
            return _root_unreduced(node, base, degree)
        case CallOf("cbrt", Number(base)):
            return _root_unreduced(node, base, 3)
    return None


def _divides(factor: Formula) -> bool:
    return isinstance(factor, PowerOf) and factor.exponent == Number(-1)


def _content(tree: Formula) -> int:
    """The whole number that all of a formula without divisors can be divided by."""
    match tree:
        case Number(value):
            return abs(value) if type(value) is int else 1
        case Product(factors):
            return 1 if any(map(_divides, factors)) else prod(map(_content, factors))
        case Sum(terms):
            return gcd(*map(_content, terms))
    return 1


def _root_unreduced(root: Formula, base: Exact, degree: int) -> str | None:
    if type(base) is not int:
        return None
    taken = next((each for each in range(2, _MAX_ROOT) if abs(base) % each**degree == 0), None)
    return None if taken is None else f"{taken} can be taken out of {shown(root)}"


def _operations(tree: Formula) -> int:
    match tree:
        case Sum(terms):
            return len(terms) - 1 + sum(_operations(_unsigned(term)) for term in terms)
        case Product(factors):
            if is_number(tree):
                return 0
            divisors = [factor for factor in factors if isinstance(factor, PowerOf) and factor.exponent == Number(-1)]
            one = factors[0] == Number(1) and bool(divisors)
            inner = sum(
                _operations(factor.base if factor in divisors and isinstance(factor, PowerOf) else factor)
                for factor in factors
            )
            return len(factors) - 1 - one + inner + (one and len(factors) > 1)
        case PowerOf(base, exponent):
            return 1 + _operations(base) + (0 if isinstance(exponent, Number) else _operations(exponent))
        case CallOf(_, argument):
            return 1 + _operations(argument)
        case _:
            return 0


def _unsigned(term: Formula) -> Formula:
    if isinstance(term, Product) and isinstance(term.factors[0], Number) and term.factors[0].value == -1:
        rest = term.factors[1:]
        return rest[0] if len(rest) == 1 else Product(rest)
    return term
