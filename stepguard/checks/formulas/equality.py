"""Checks of steps whose value is a formula or an equation, as text.

::

    Step("expanded", instruction="Expand (x + 1)^2.", checks=[Equivalent("(x + 1)^2", form="expanded")])
    Step("slope", instruction="Differentiate f.", reads=["f"], checks=[Derivative("f", "x")])

What is claimed is read by `stepguard.formulas.parsing` and compared by `stepguard.formulas.deciding`: a pass is a
proof, a failure is a refutation, everything else is undecided. Formulas are functions of real numbers, and are compared
where both are defined. How names are understood, `stepguard.checks.formulas.base` says; equations to be solved and
inequalities are in `stepguard.checks.formulas.solving`, matrices in `stepguard.checks.formulas.matrices`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal, get_args

from stepguard.checks.formulas.base import (
    FormulaQuestion,
    SymbolicCheck,
    check_symbol,
    is_variable,
    read_relation,
    read_text,
)
from stepguard.core.arguments import check_count, check_one_of
from stepguard.core.verdicts import Verdict
from stepguard.errors import ConfigError, ExpressionError
from stepguard.formulas.calculus import check_definite, differentiate
from stepguard.formulas.forms import FORMS, Form, in_form
from stepguard.formulas.numerics import Pole, Undefined, Unknown, evaluate_at
from stepguard.formulas.statements import Relation
from stepguard.formulas.trees import Formula, difference, replace_names, symbols_in
from stepguard.language.expressions import Name

_MAX_ORDER: Final = 5  # derivatives grow with every order
_NOT_THE_FORM: Final = "unfaithful_work"

IntegrationConstant = Literal["optional", "required"]


@dataclass(frozen=True, slots=True)
class Equivalent(SymbolicCheck):
    """The claim equals a formula, or is the same equation up to a factor that is a number other than zero.

    Of equations both sides count: ``m = 2`` is not ``n = 2``. Where a formula is asked for, a chain such as
    ``(x + 1)^2 = x^2 + 2x + 1`` passes if every side of it is equal, and its last side is the answer.

    Args:
        formula: the formula or equation.
        form: how the claim must be written: ``"expanded"``, ``"factored"``, ``"simplified"`` or ``"number"`` (see
            `stepguard.formulas.forms`); None where that does not matter.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work.
    """

    formula: str
    _: KW_ONLY
    form: Form | None = None

    def __post_init__(self) -> None:
        self._check_options(self.formula)
        check_one_of(self.form, FORMS, "form", optional=True)
        found = read_relation(self.formula, "formula", self._declared())
        if isinstance(found, Relation):
            if not found.equation:
                raise ConfigError(
                    "one equation or a formula is compared; for others use SolvesInequality", option="formula"
                )
            if self.form is not None:
                raise ConfigError("a form goes with a formula, not with an equation", option="form")

    def _answer(self, question: FormulaQuestion) -> Verdict:
        wanted = question.relation(self.formula)
        if isinstance(wanted, Relation):
            return self._judge_equation(question, wanted)
        found = question.claimed_relation(wanted, text=question.without_label())
        sides: tuple[Formula, ...] = (found,) if not isinstance(found, Relation) else found.sides
        if isinstance(found, Relation) and set(found.operators) != {"="}:
            raise ExpressionError("a formula was expected, not a relation", text=question.claimed, position=0)
        # Every side: a right last side does not mend a false equation on the way to it.
        for side in sides:
            # Only the last side has to be in the form; the others are the way there.
            finding = question.decider.equal(wanted, question.numbered(side))
            if not finding.yes:
                return self._verdict_of(finding)
        if self.form is None:
            return self._verdict("pass")
        return self._verdict_of(in_form(sides[-1], self.form, question.decider), kind=_NOT_THE_FORM)

    def _judge_equation(self, question: FormulaQuestion, wanted: Relation) -> Verdict:
        if not wanted.equation:
            return self._verdict("undecided", "it is compared with something that is no single equation", retry=False)
        found = question.claimed_relation(*wanted.sides)
        if not isinstance(found, Relation) or not found.equation:
            raise ExpressionError("an equation was expected", text=question.claimed, position=0)
        one = difference(*wanted.sides)
        other = difference(*(question.numbered(side) for side in found.sides))
        return self._verdict_of(question.decider.proportional(one, other))


@dataclass(frozen=True, slots=True)
class Derivative(SymbolicCheck):
    """The claim is the derivative of a formula.

    ``f'(x) =``, ``y' =`` and ``dy/dx =`` in front of it are understood.

    Args:
        formula: what is differentiated.
        variable: the symbol by which it is.
        order: how often it is, 1 to 5.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or the formula does not hold the variable.
    """

    formula: str
    variable: str
    _: KW_ONLY
    order: int = 1

    def __post_init__(self) -> None:
        check_symbol(self.variable, "variable")
        self._check_options(self.formula, bound=(self.variable,))
        check_count(self.order, "order", most=_MAX_ORDER)
        self._check_variable(self.variable, read_text(self.formula, "formula", self._declared()))

    def _bound(self) -> frozenset[str]:
        return frozenset({self.variable})

    def _answer(self, question: FormulaQuestion) -> Verdict:
        tree = question.formula(self.formula)
        claim = question.claimed_formula(tree, labels=self._labels())
        return self._verdict_of(question.decider.equal(differentiate(tree, self.variable, order=self.order), claim))

    def _labels(self) -> list[str]:
        x = self.variable
        names = {"f", "y", self.formula.strip()} if is_variable(self.formula) else {"f", "y"}
        labels: list[str] = []
        for name in names:
            primed = name + "'" * self.order
            labels += [primed, f"{primed}({x})"]
            if self.order == 1:
                labels += [f"d{name}/d{x}", f"\\frac{{d{name}}}{{d{x}}}"]
        return labels


@dataclass(frozen=True, slots=True)
class Integral(SymbolicCheck):
    """The claim is an integral of a formula.

    Without limits it is an antiderivative, checked by differentiating it: it is right up to a constant, which may be
    written as a symbol that the formula does not hold (``x^2/2 + C``). On each stretch where the formula is defined
    that constant may be another, and of ``1/x`` both ``log(x)`` and ``log(|x|)`` pass. A claim may also be undefined
    at single points where the formula is not, with another constant on each side of them: ``x^2/2 + |x - 3|/(x - 3)``
    has the derivative ``x`` wherever it has a value, and passes for it. A definite integral has no such freedom.

    With limits it is a value. Of formulas that are no polynomials it is only decided where the formula is defined on
    the whole range and smooth enough for a quadrature to agree with sympy.

    Args:
        formula: what is integrated.
        variable: the symbol by which it is.
        low, high: the limits, formulas as text; both or none.
        constant: whether a constant of integration has to be written: ``"optional"`` or ``"required"``.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or the formula does not hold the variable.
    """

    formula: str
    variable: str
    _: KW_ONLY
    low: str | None = None
    high: str | None = None
    constant: IntegrationConstant = "optional"

    def __post_init__(self) -> None:
        check_symbol(self.variable, "variable")
        limits = [limit for limit in (self.low, self.high) if limit is not None]
        self._check_options(self.formula, bound=(self.variable,))
        self._check_variable(self.variable, read_text(self.formula, "formula", self._declared()))
        if len(limits) == 1:
            raise ConfigError("an integral has two limits or none", option="low" if self.low is None else "high")
        check_one_of(self.constant, get_args(IntegrationConstant), "constant")
        if limits and self.constant == "required":
            raise ConfigError("an integral between limits has no constant", option="constant")
        for limit in limits:
            if self.variable in symbols_in(read_text(limit, "low", self._declared())):
                raise ConfigError(f"a limit cannot hold the variable {self.variable!r}", option="low")

    def _bound(self) -> frozenset[str]:
        return frozenset({self.variable})

    def _answer(self, question: FormulaQuestion) -> Verdict:
        tree = question.formula(self.formula)
        x = self.variable
        claim = question.claimed_formula(tree, labels=("F", f"F({x})"))
        if self.low is not None and self.high is not None:
            low, high = question.formula(self.low), question.formula(self.high)
            return self._verdict_of(check_definite(tree, x, low, high, claim, question.decider))
        # Of sqrt(x)^2 it is x^2/2 + C, which is defined at further points.
        finding = question.decider.equal(tree, differentiate(claim, x), right_reaches_further=True)
        if not finding.yes:
            return self._verdict_of(finding)
        if not self._defined(question, tree, claim):
            return self._verdict("undecided", "the claim was not seen to have a value anywhere")
        constants = symbols_in(claim) - symbols_in(tree) - {x}
        # "x^2/2 + Cx": read as one symbol, it would be a constant and pass; the writer may mean C*x.
        if glued := next(
            (name for name in sorted(constants) if len(name) == len(x) + 1 and x in (name[1:], name[:-1])), None
        ):
            return self._verdict("undecided", f"{glued} may be a constant or a product with {x}")
        if self.constant == "required" and not self._adds(question, claim, constants):
            return self._verdict("fail", "the constant of integration is missing", kind=_NOT_THE_FORM)
        return self._verdict("pass")

    @staticmethod
    def _adds(question: FormulaQuestion, claim: Formula, names: frozenset[str]) -> bool:
        """Whether one of the symbols makes a difference to the claim."""
        # A symbol that cancels (C - C) adds no constant.
        shifted = ((name, replace_names(claim, {name: difference(Name(name), Name("_other"))})) for name in names)
        return any(question.decider.equal(claim, other).answer == "no" for _, other in shifted)

    @staticmethod
    def _defined(question: FormulaQuestion, *trees: Formula) -> bool:
        """Whether there is a point at which all of the formulas have a value."""
        for point in question.decider.points(*trees):
            try:
                for tree in trees:
                    evaluate_at(tree, point)
            except (Undefined, Pole, Unknown):
                continue
            return True
        return False


@dataclass(frozen=True, slots=True)
class Substituted(SymbolicCheck):
    """The claim is a formula with something else in the place of symbols.

    Args:
        formula: the formula.
        values: what stands in the place of which symbol, formulas as text or whole numbers: ``{"x": "3"}``. All are
            put in at once.
        form: how the claim must be written, as of `Equivalent`; None where that does not matter.

    Further options: see `stepguard.checks.formulas.base.SymbolicCheck`.

    Raises:
        ConfigError: an option cannot work, or the formula does not hold one of the symbols.
    """

    formula: str
    values: Mapping[str, str | int] | tuple[tuple[str, str], ...]
    _: KW_ONLY
    form: Form | None = None

    def __post_init__(self) -> None:
        given = self.values.items() if isinstance(self.values, Mapping) else self.values
        pairs = tuple(sorted((name, str(value) if isinstance(value, int) else value) for name, value in given))
        if not pairs:
            raise ConfigError("there is nothing to substitute: give values such as {'x': '3'}", option="values")
        for name, _ in pairs:
            check_symbol(name, "values")
        self._set(values=pairs)
        self._check_options(self.formula, bound=(name for name, _ in pairs))
        check_one_of(self.form, FORMS, "form", optional=True)
        tree = read_text(self.formula, "formula", self._declared())
        for name, value in pairs:
            self._check_variable(name, tree)
            read_text(value, "values", self._declared())

    def _bound(self) -> frozenset[str]:
        return frozenset(name for name, _ in self._pairs())

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        assert isinstance(self.values, tuple)
        return self.values

    def _answer(self, question: FormulaQuestion) -> Verdict:
        values = {name: question.formula(value) for name, value in self._pairs()}
        tree = replace_names(question.formula(self.formula), values)
        written = question.claimed_relation(tree, text=question.without_label())
        if isinstance(written, Relation):
            raise ExpressionError("a formula was expected, not a relation", text=question.claimed, position=0)
        finding = question.decider.equal(tree, question.numbered(written))
        if not finding.yes or self.form is None:
            return self._verdict_of(finding)
        return self._verdict_of(in_form(written, self.form, question.decider), kind=_NOT_THE_FORM)
