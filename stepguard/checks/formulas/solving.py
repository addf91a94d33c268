"""Checks of steps that solve: an equation, equations in several unknowns, an inequality.

::

    Step("roots", instruction="Solve x^2 - 5x + 6 = 0.", checks=[Solves("x^2 - 5*x + 6 = 0", "x")])

Solutions are real numbers, and sets of them are compared as a whole: one that is missing, one too many and one that
is written twice all fail. How solutions and ranges are written, `stepguard.formulas.statements` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Final

from stepguard.checks.formulas.base import (
    FormulaQuestion,
    SymbolicCheck,
    Unusable,
    check_symbol,
    is_variable,
    read_relation,
)
from stepguard.checks.formulas.regions import compare_region
from stepguard.checks.formulas.solution_sets import ascending, counted, distinct, holds_everywhere, rank_of
from stepguard.core.arguments import check_flag, check_names
from stepguard.core.verdicts import Verdict
from stepguard.errors import ConfigError
from stepguard.formulas.canonical import Canonical, TooBig
from stepguard.formulas.deciding import Deduction
from stepguard.formulas.ranges import parse_region
from stepguard.formulas.scanning import missed_solution
from stepguard.formulas.sign_charts import SignChart, make_chart
from stepguard.formulas.statements import Relation, Solutions, parse_solutions, parse_systems
from stepguard.formulas.trees import Formula, difference, replace_names, symbols_in, to_data
from stepguard.language.digits import Exact, exact

_MAX_UNKNOWNS: Final = 4  # the work of an elimination grows fast with them
_ORDERED: Final = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Solves(SymbolicCheck):
    """The claim is the solution of an equation in one unknown: ``2, 3``, ``x = 2 or x = 3``, ``no solution``.

    That nothing is missing is decided for polynomials, quotients and absolute values of them; where other symbols are
    in the equation, only if there are as many solutions as its degree. For other equations it takes sympy and a scan
    of the number line to agree.

    Args:
        equation: the equation.
        variable: the unknown.
        all: whether every real solution has to be there. Otherwise one is enough, and none of them may be wrong.
        ordered: whether they have to be listed in ascending order.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or the equation does not hold the unknown.
    """

    equation: str
    variable: str
    _: KW_ONLY
    all: bool = True
    ordered: bool = False

    def __post_init__(self) -> None:
        check_flag(self.all, "all")
        check_flag(self.ordered, "ordered")
        check_symbol(self.variable, "variable")
        self._check_options(self.equation, bound=(self.variable,))
        _check_relation(self, self.equation, (self.variable,), ("=",))

    def _bound(self) -> frozenset[str]:
        return frozenset({self.variable})

    def _answer(self, question: FormulaQuestion) -> Verdict:
        left, right = _sides_of_relation(question, self.equation, ("=",))
        claimed = parse_solutions(
            question.without_label(), self.variable, declared=question.declared, known=question.known(left, right)
        )
        values = tuple(question.numbered(value) for value in claimed.values)
        finding = self._all_solve(question, left, right, Solutions(values, claimed.everything))
        if finding.yes and not self.all:
            return Verdict("pass", self.name, strength="constrained")
        return self._verdict_of(finding)

    def _all_solve(self, question: FormulaQuestion, left: Formula, right: Formula, claimed: Solutions) -> Deduction:
        x = self.variable
        if any(x in symbols_in(value) for value in claimed.values):
            return Deduction("no", f"a solution holds {x} itself")
        try:
            chart = make_chart(left, right, x)
        except TooBig:
            chart = None
        if claimed.everything:
            return holds_everywhere(chart)
        for value in claimed.values:
            one, other = (replace_names(side, {x: value}) for side in (left, right))
            finding = question.decider.equal(one, other, same_domain=not symbols_in(value))
            if not finding.yes:
                return finding
        # Written twice, one solution would make up for a missing one when they are counted.
        finding = distinct(question, claimed.values)
        if not finding.yes:
            return finding
        if self.ordered:
            finding = ascending(claimed.values)
            if not finding.yes:
                return finding
        # "No solution" is a claim about all of them, so it is counted even then.
        if not self.all and claimed.values:
            return Deduction("yes")
        return self._complete(question, left, right, claimed.values, chart)

    def _complete(
        self,
        question: FormulaQuestion,
        left: Formula,
        right: Formula,
        values: tuple[Formula, ...],
        chart: SignChart | None,
    ) -> Deduction:
        if chart is not None:
            try:
                if any(chart.holds("=", exact(at)) for at in chart.between()):
                    return Deduction("no", "whole stretches of numbers are solutions")
                count = sum(chart.holds_at("=", root) for root in chart.roots)
            except TooBig:
                return Deduction("open", "the solutions take too much to count")
            return counted(count, len(values))
        # With parameters sympy's set depends on cases; a polynomial has at most as many solutions as its degree.
        if symbols_in(left, right) - {self.variable}:
            return self._as_many_as_its_degree(left, right, len(values))
        tree = difference(left, right)
        request = {"op": "solve", "tree": to_data(tree), "variable": self.variable}
        answer = question.decider.ask({**request, "claimed": [to_data(value) for value in values]}, tree, *values)
        if isinstance(answer, Deduction):
            return answer
        found = answer.get("count")
        if not isinstance(found, int):
            return Deduction("open", "the solutions could not be counted")
        # sympy's set is sometimes too small: the claim passes only where a scan finds nothing more.
        missed = missed_solution(tree, self.variable, values)
        if missed is not None:
            return Deduction("open", f"there seems to be another solution near {missed:.6g}")
        if found == len(values) == answer.get("matched"):
            return Deduction("yes")
        return Deduction("open", f"sympy finds {found} solutions")

    def _as_many_as_its_degree(self, left: Formula, right: Formula, count: int) -> Deduction:
        try:
            form = Canonical().form(difference(left, right))
        except (TooBig, ZeroDivisionError):
            return Deduction("open", "the solutions could not be counted")
        if not form.plain:
            return Deduction("open", "the solutions could not be counted")
        degree = max((dict(key).get(self.variable, 0) for key in form.over), default=0)
        # Distinct, and proved one by one: there can be no further ones.
        if count and count == degree:
            return Deduction("yes")
        return Deduction("open", f"{count} solutions of an equation of degree {degree}")


@dataclass(frozen=True, slots=True)
class SolvesSystem(SymbolicCheck):
    """The claim solves equations in several unknowns: ``x = 1, y = 2``, ``(1, 2)``, alternatives joined by ``or``.

    That nothing is missing is only decided of linear equations with one solution; others are undecided unless `all`
    is False.

    Args:
        equations: the equations.
        variables: the unknowns, at most 4; a claim without names gives them in this order.
        all: whether every real solution has to be there. Otherwise one is enough, and none of them may be wrong.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or an unknown stands in no equation.
    """

    equations: Sequence[str]
    variables: Sequence[str]
    _: KW_ONLY
    all: bool = True

    def __post_init__(self) -> None:
        check_flag(self.all, "all")
        for option in ("equations", "variables"):
            check_names(given := getattr(self, option), option, what="a list of texts")
            self._set(**{option: tuple(given)})
        if not self.equations:
            raise ConfigError("a system has at least one equation", option="equations")
        if not 0 < len(self.variables) <= _MAX_UNKNOWNS or len(set(self.variables)) != len(self.variables):
            raise ConfigError(f"there are 1 to {_MAX_UNKNOWNS} unknowns, each named once", option="variables")
        for name in self.variables:
            check_symbol(name, "variables")
        self._check_options(*self.equations, bound=self.variables)
        trees: list[Formula] = []
        for equation in self.equations:
            trees += _check_relation(self, equation, (), ("=",))
        for name in self.variables:
            self._check_variable(name, *trees)

    def _bound(self) -> frozenset[str]:
        return frozenset(self.variables)

    def _answer(self, question: FormulaQuestion) -> Verdict:
        sides = [_sides_of_relation(question, equation, ("=",)) for equation in self.equations]
        claimed = parse_systems(
            question.without_label(),
            self.variables,
            declared=question.declared,
            known=question.known(*(side for pair in sides for side in pair)),
        )
        solutions = [tuple(question.numbered(value) for value in each) for each in claimed]
        for values in solutions:
            if symbols_in(*values) & set(self.variables):
                return self._verdict("fail", "a solution holds an unknown itself")
            filled = dict(zip(self.variables, values, strict=True))
            for left, right in sides:
                one, other = replace_names(left, filled), replace_names(right, filled)
                finding = question.decider.equal(one, other, same_domain=not symbols_in(*values))
                if not finding.yes:
                    return self._verdict_of(finding)
        if solutions and not self.all:
            return Verdict("pass", self.name, strength="constrained")
        single = self._single([difference(left, right) for left, right in sides])
        if single is None:
            return self._verdict("undecided", "whether there are more solutions was not decided")
        if len(solutions) == single:
            return self._verdict("pass")
        return self._verdict("fail", f"there is {single} solution, not {len(solutions)}")

    def _single(self, trees: Sequence[Formula]) -> int | None:
        """1 or 0 where the equations are linear, without other symbols, and have so many solutions; otherwise None."""
        rows: list[list[Exact]] = []
        for tree in trees:
            try:
                form = Canonical().form(tree)
            except (TooBig, ZeroDivisionError):
                return None
            keys = [((name, 1),) for name in self.variables]
            # Divisors and holes are left out too: a solution of the numerators might not be one of the equations.
            if set(form.over) - {(), *keys} or form.under.keys() != {()} or form.holes.keys() != {()}:
                return None
            rows.append([form.over.get(key, 0) for key in [*keys, ()]])
        rank = rank_of([row[:-1] for row in rows])
        if rank_of(rows) > rank:
            return 0
        return 1 if rank == len(self.variables) else None


@dataclass(frozen=True, slots=True)
class SolvesInequality(SymbolicCheck):
    """The claim is the range in which an inequality holds: ``x < 1 or x >= 3``, ``(-∞, 1) ∪ [3, ∞)``.

    It is decided for quotients of polynomials and absolute values of them, in one unknown and with numbers besides;
    others are undecided.

    Args:
        inequality: the inequality, or two in a chain: ``1 < x^2 <= 4``.
        variable: the unknown.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or the inequality does not hold the unknown.
    """

    inequality: str
    variable: str

    def __post_init__(self) -> None:
        check_symbol(self.variable, "variable")
        self._check_options(self.inequality, bound=(self.variable,))
        _check_relation(self, self.inequality, (self.variable,), (*_ORDERED, "!="), sides=3)

    def _bound(self) -> frozenset[str]:
        return frozenset({self.variable})

    def _answer(self, question: FormulaQuestion) -> Verdict:
        wanted = question.relation(self.inequality)
        if not isinstance(wanted, Relation) or set(wanted.operators) - {*_ORDERED, "!="}:
            raise Unusable("what is solved is no inequality")
        region = parse_region(
            question.without_label(), self.variable, declared=question.declared, known=question.known(*wanted.sides)
        )
        try:
            charts: list[tuple[str, SignChart]] = []
            for operator, (left, right) in zip(wanted.operators, pairwise(wanted.sides), strict=True):
                chart = make_chart(left, right, self.variable)
                if chart is None:
                    return self._verdict("undecided", "only polynomials in one unknown and their quotients are decided")
                charts.append((operator, chart))
            return self._verdict_of(compare_region(charts, region, question))
        except TooBig:
            return self._verdict("undecided", "it takes too much to work out where the inequality holds")


def _check_relation(
    check: SymbolicCheck, text: str, variables: Sequence[str], operators: Sequence[str], *, sides: int = 2
) -> tuple[Formula, ...]:
    """Refuse a text that is no such relation, unless it names a variable that the step reads."""
    found = read_relation(text, "equation", check._declared())
    if not isinstance(found, Relation):
        if is_variable(text, check.symbols) and text.strip() in check.reads:
            return ()
        raise ConfigError(f"{text!r} is no equation or inequality: {operators[0]!r} is missing", option="equation")
    if len(found.sides) > sides or set(found.operators) - set(operators):
        wanted = "an equation" if "=" in operators else "an inequality"
        raise ConfigError(f"{wanted} was expected, not {text!r}", option="equation")
    for name in variables:
        check._check_variable(name, *found.sides)
    return found.sides


def _sides_of_relation(question: FormulaQuestion, text: str, operators: tuple[str, ...]) -> tuple[Formula, Formula]:
    wanted = question.relation(text)
    if not isinstance(wanted, Relation) or wanted.operators != operators:
        raise Unusable("what is solved is no equation")
    return wanted.sides[0], wanted.sides[1]
