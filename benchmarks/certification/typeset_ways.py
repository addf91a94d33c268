"""Working in the notations of print, LaTeX and Markdown: right ways, and wrong entries in the same ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from certification.cases import Case
from certification.looks import Look, show
from certification.right_ways import right_way
from certification.truth import Bin, Fn, Tree, compute, decimal_text, number_text, rounded
from certification.wrong_entries import Wrong, wrong_kind

__all__: list[str] = []

_FULL_WIDTH = {"*": "＊", "+": "＋", "-": "－", "/": "／"}
_WORDS = {"*": "times", "+": "plus", "/": "divided by"}
_EQUALS = (" ＝ ", " = ", " &= ")


def _boxed(text: str) -> str:
    return f"\\boxed{{{text}}}"


def _mixed_leaf(value: Fraction, inside: bool) -> str:
    """A fraction as a mixed number in brackets."""
    whole, over = divmod(abs(value.numerator), value.denominator)
    if not whole or not over:
        return number_text(value)
    text = f"{whole}\\frac{{{over}}}{{{value.denominator}}}"
    return f"({'-' if value < 0 else ''}{text})"


def _typeset(name: str, change: Callable[[Case, str], str | None], look: Look | None = None) -> None:
    @right_way(name)
    def way(case: Case) -> object:
        plain = case.work()
        shown = case.work(look) if look is not None else plain
        if plain is None or shown is None or (look is not None and shown == plain):
            return None
        return change(case, shown)


_typeset("full-width signs", lambda case, work: f"{work} ＝ {case.plain}", Look(signs=_FULL_WIDTH))
_typeset("operations in words", lambda case, work: f"{work} = {case.plain}", Look(signs=_WORDS))
_typeset("a boxed value", lambda case, work: f"{work} = {_boxed(case.plain)}" if case.spec.numeric else None)
_typeset("the whole in a box", lambda case, work: _boxed(f"{work} = {case.plain}"))
_typeset("bold and code", lambda case, work: f"`{work}` = **{case.plain}**" if case.spec.numeric else None)
_typeset("other signs of equality", lambda case, work: work + case.chance.choice(_EQUALS) + case.plain)
_typeset("aligned LaTeX", lambda case, work: f"\\begin{{align*}}{work} &= {case.plain}\\end{{align*}}")
_typeset("mixed numbers", lambda case, work: f"{work} = {case.plain}", Look(leaf=_mixed_leaf))
_typeset(
    "powers in braces of LaTeX",
    lambda case, work: f"{found} = {case.plain}" if (found := re.sub(r"\^([0-9]+)", r"^{\1}", work)) != work else None,
)


@right_way("a factor of one")
def _one(case: Case) -> object:
    work = case.work()
    if work is None or not isinstance(case.made.tree, Bin) or case.made.tree.operator not in "*/":
        return None
    return f"{work} {case.chance.choice(('* 1', '× 100%', '/ 1', '* 100 %'))} = {case.plain}"


@right_way("digits that go on")
def _going_on(case: Case) -> object:
    exact, scale, work = case.made.exact, case.spec.scale, case.work()
    if work is None or scale is None or not isinstance(exact, Fraction) or exact.denominator == 1:
        return None
    places = scale + case.chance.randint(1, 6)
    cut = rounded(exact, places, "down")
    if cut == exact:
        return None
    return f"{work} = {decimal_text(cut, places)}{case.chance.choice(('...', '…'))} = {case.plain}"


def _settled(tree: Tree | None, case: Case) -> Tree | None:
    """What a choice came to: the argument that the least or the greatest is; None where there is no choice."""
    if not isinstance(tree, Fn) or tree.name not in ("min", "max") or case.work() is None:
        return None
    worth = compute(tree, case.state)
    taken = (each for each in tree.arguments if compute(each, case.state) == worth)
    return next((each for each in taken if isinstance(each, Bin)), None)


@right_way("a choice as what it came to")
def _choice(case: Case) -> object:
    found = _settled(case.made.tree, case)
    return None if found is None else f"{show(found, case.state)} = {case.plain}"


def _beside(name: str, change: Callable[[Case, str], str]) -> None:
    """The right value in a box, with something beside it that makes it another."""

    @wrong_kind(f"{name} beside a box")
    def kind(case: Case) -> Wrong | None:
        if not case.spec.numeric or case.number in (None, 0, 1) or case.made.tree is None:
            return None
        return Wrong(case.with_work(case.work(), change(case, _boxed(case.plain))), "statement")


_beside("a sign", lambda case, box: case.chance.choice(("-", "−", "- ", "+-")) + box)
_beside(
    "a factor",
    lambda case, box: case.chance.choice((f"{box} \\times 10^{{3}}", f"2{box}", f"{box}\\cdot 2", f"{box}/2")),
)
_beside("digits", lambda case, box: case.chance.choice((f"{box}5", f"1{box}", f"{box}\\boxed{{0}}", f"{box}{{,}}000")))
_beside("words", lambda case, box: f"{box} {case.chance.choice(('is wrong', 'thousand', 'not', 'or so', '?'))}")


@wrong_kind("a factor that is not one")
def _factor(case: Case) -> Wrong | None:
    work = case.work()
    if work is None or not isinstance(case.made.tree, Bin) or case.made.tree.operator not in "*/" or not case.number:
        return None
    factor = case.chance.choice(("* 10%", "× 1000%", "* 1%", "/ 2", "* 1.0001", "* -1"))
    return Wrong(f"{work} {factor} = {case.plain}", "working")


@wrong_kind("digits that go on otherwise")
def _otherwise(case: Case) -> Wrong | None:
    exact, scale, work = case.made.exact, case.spec.scale, case.work()
    if work is None or scale is None or not isinstance(exact, Fraction) or case.spec.within is not None:
        return None
    places = scale + case.chance.randint(1, 6)
    other = rounded(exact, places, "down") + Fraction(case.chance.choice((-2, 2, 3, 7)), 10**places)
    if case.spec.kind == "percent":
        return None
    return Wrong(f"{work} = {decimal_text(other, places)}... = {case.plain}", "working")


@wrong_kind("a choice as what it did not come to")
def _unsettled(case: Case) -> Wrong | None:
    tree = case.made.tree
    if not isinstance(tree, Fn) or tree.name not in ("min", "max") or case.work() is None:
        return None
    worth = compute(tree, case.state)
    others = [each for each in tree.arguments if compute(each, case.state) != worth]
    return Wrong(f"{show(case.chance.choice(others), case.state)} = {case.plain}", "working") if others else None
