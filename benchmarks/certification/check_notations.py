"""Claims of formulas whose notation is easily taken for another number: mixed numbers, and what is no number."""

from __future__ import annotations

import random
from fractions import Fraction

from certification.families import Family, Problem, Said
from stepguard.checks import Check
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral
from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves

__all__: list[str] = []

_FRACTIONS = ("frac", "dfrac", "tfrac", "nicefrac", "cfrac")
_BETWEEN = ("", " ", "\\,", "~", "\\ ", "\\;")
_NO_NUMBERS = (
    "oo", "zoo", "nan", "NaN", "inf", "Infinity", "infinity", "\\infty", "∞", "1/0", "0/0", "log(0)", "0^0", "0^(-1)",
    "sqrt(-1)", "log(-2)", "1/(x - x)", "\\mathrm{inf}", "\\operatorname{nan}", "(2 - 2)^(-2)", "-oo", "undefined",
)  # fmt: skip


def _mixed(chance: random.Random) -> tuple[str, Fraction, Fraction]:
    """A mixed number, what it is, and what it is as a product."""
    whole, under = chance.randint(1, 40), chance.randint(2, 16)
    over = chance.randint(1, under - 1)
    part = Fraction(over, under)
    command = chance.choice(_FRACTIONS)
    inside = f"{over}{under}" if over < 10 and under < 10 and chance.random() < 0.2 else f"{{{over}}}{{{under}}}"
    text = f"{whole}{chance.choice(_BETWEEN)}\\{command}{inside}"
    vulgar = {Fraction(1, 2): "½", Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(2, 3): "⅔"}.get(part)
    if vulgar is not None and chance.random() < 0.5:
        text = f"{whole}{chance.choice(('', ' '))}{vulgar}"
    sign = chance.choice(("", "", "-"))
    factor = -1 if sign else 1
    return f"{sign}{text}", factor * (whole + part), factor * whole * part


def _problem(chance: random.Random) -> Problem:
    return Problem((Equivalent("x + 1"),), None)


NOTATIONS = Family("Notations of formulas", _problem, lambda problem, value: value == problem.truth, share=12)


def _about(wanted: Fraction, text: str, value: Fraction, chance: random.Random) -> Said:
    """A claim that a number is `text`, as a formula, as a solution, or as the factor of a symbol."""
    checks: tuple[tuple[Check, str], ...] = (
        (Equivalent(str(wanted)), text),
        (Solves(f"y = {wanted}", "y"), chance.choice((text, f"y = {text}"))),
        (Equivalent(f"({wanted}) * x"), f"{text} x"),
        (Equivalent(f"x + ({wanted})"), f"x {text}" if text[0] == "-" else f"x + {text}"),
    )
    check, claim = chance.choice(checks)
    return Said(claim, value, Problem((check,), wanted))


@NOTATIONS.put("right", "a mixed number in LaTeX")
def _right_mixed(chance: random.Random, problem: Problem) -> Said | None:
    text, total, _ = _mixed(chance)
    return _about(total, text, total, chance)


@NOTATIONS.put("wrong", "a mixed number in LaTeX for the product")
def _product(chance: random.Random, problem: Problem) -> Said | None:
    text, total, product = _mixed(chance)
    return _about(product, text, total, chance)


@NOTATIONS.put("wrong", "what is no number, and cancels")
def _cancelled(chance: random.Random, problem: Problem) -> Said | None:
    formula = chance.choice(("x + 1", "2*x - 3", "x^2", "(x + 1)*(x - 2)", "7", "x*y"))
    nothing = chance.choice(_NO_NUMBERS)
    ways = (
        f"{formula} + {nothing} - ({nothing})", f"({formula}) * ({nothing}) / ({nothing})",
        f"{formula} + 0 * ({nothing})", f"({formula}) * ({nothing})^0", f"{formula} + 1/({nothing})",
    )  # fmt: skip
    return Said(chance.choice(ways), problem=Problem((Equivalent(formula, reads=()),), None))


@NOTATIONS.put("wrong", "what is no number as a constant, a solution or an entry")
def _constant(chance: random.Random, problem: Problem) -> Said | None:
    n, nothing = chance.randint(1, 6), chance.choice(_NO_NUMBERS)
    checks: tuple[tuple[Check, str], ...] = (
        (Integral(f"{n + 1} * x^{n}", "x"), f"x^{n + 1} + {nothing}"),
        (Derivative(f"{n} * x", "x"), f"{n} + 0 * ({nothing})"),
        (Solves(f"y = y + {n}", "y"), f"y = {nothing}"),
        (SameMatrix(f"[[{n}, 0]]"), f"[[{n}, 0 * ({nothing})]]"),
    )
    check, claim = chance.choice(checks)
    return Said(claim, problem=Problem((check,), None))


def _matrix(name: str, where: str, *, sums: bool) -> None:
    @NOTATIONS.put(where, name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        size = chance.choice((1, 2, 3))
        cells = [[_mixed(chance) for _ in range(size)] for _ in range(size)]
        said = tuple(tuple(total for _, total, _ in row) for row in cells)
        wanted = said if sums else tuple(tuple(product for _, _, product in row) for row in cells)
        shown = "], [".join(", ".join(str(each) for each in row) for row in wanted)
        claim = "], [".join(", ".join(text for text, _, _ in row) for row in cells)
        return Said(f"[[{claim}]]", said, Problem((SameMatrix(f"[[{shown}]]"),), wanted))


_matrix("mixed numbers in LaTeX", "right", sums=True)
_matrix("mixed numbers in LaTeX for the products", "wrong", sums=False)
