"""The base of symbolic checks: their options, and how they read what they compare.

In the text of a check, and in what a reply claims, a name among the variables that the step reads stands for that
variable's value: a number, or text that holds a formula. Every other name is a symbol.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, cast

from stepguard.checks.built import BuiltCheck
from stepguard.core.arguments import check_names, check_one_of, check_seconds, check_text
from stepguard.core.verdicts import Claim, DeviationKind, Verdict, shorten
from stepguard.errors import ConfigError, EvaluationError, ExpressionError
from stepguard.formulas.deciding import ASSUMPTIONS, Assumption, Decider, Deduction
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.statements import Relation, parse_relation
from stepguard.formulas.tokens import FUNCTIONS, MATRIX_FUNCTIONS, unwrap
from stepguard.formulas.trees import Formula, replace_names, symbols_in
from stepguard.language.digits import format_exact
from stepguard.language.expressions import Number
from stepguard.language.strict_json import LATEX_LOST
from stepguard.language.values import Value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_MAX_SECONDS: Final = 600


class Unusable(Exception):
    """The expected formula cannot be used; the claim is not to blame."""


@dataclass(frozen=True, slots=True)
class FormulaQuestion:
    """One call of a check: the values that the step reads, and the text that is claimed."""

    step: str
    values: Mapping[str, Value]
    claimed: str
    declared: frozenset[str]
    """Names that are symbols or variables, even where they would be constants."""
    bound: frozenset[str]
    """Names that stay symbols although the step reads a variable of that name."""
    decider: Decider

    def relation(self, text: str) -> Relation | Formula:
        """A text of the check as a relation or a formula, with what the step reads filled in.

        Raises Unusable: it cannot be read, or something in it has no value that can be used.
        """
        name = text.strip()
        # A text that is just a variable may hold a whole relation; inside a formula only a formula will do.
        if name in self.values and name not in self.bound:
            return self._number_filled(self.value(name))
        try:
            found = parse_relation(text, declared=self.declared)
        except ExpressionError as error:
            raise Unusable(str(error)) from None
        return self.filled(found)

    def formula(self, text: str) -> Formula:
        """A text of the check as a formula. Raises Unusable: it is none."""
        found = self.relation(text)
        if isinstance(found, Relation):
            raise Unusable(f"{shorten(text, 60)} holds a relation where a formula was expected")
        return found

    def value(self, name: str) -> Relation | Formula:
        """The formula or number that a variable of the step stands for.

        Raises Unusable: its value is no number and holds no formula.
        """
        found = to_exact(self.values[name])
        if isinstance(found, bool):
            raise Unusable(f"{name} is a truth value")
        if not isinstance(found, str):
            return Number(found)
        try:
            return parse_relation(found, declared=self.declared)
        except ExpressionError as error:
            raise Unusable(f"the value of {name} is no formula: {error}") from None

    def filled(self, found: Relation | Formula) -> Relation | Formula:
        """A relation or formula with the values of the variables in the place of their names.

        Raises Unusable: one of them has no value that can be used.
        """
        if isinstance(found, Relation):
            return Relation(found.operators, tuple(self._filled(side) for side in found.sides))
        return self._filled(found)

    def _filled(self, tree: Formula) -> Formula:
        values: dict[str, Formula] = {}
        for name in symbols_in(tree):
            if name in self.values and name not in self.bound:
                value = self._number_filled(self.value(name))
                if isinstance(value, Relation):
                    raise Unusable(f"{name} is a relation and cannot stand inside a formula")
                values[name] = value
        return replace_names(tree, values) if values else tree

    def _numbers(self) -> dict[str, Formula]:
        held = {name: to_exact(value) for name, value in self.values.items() if name not in self.bound}
        return {name: Number(value) for name, value in held.items() if not isinstance(value, bool | str)}

    def _number_filled(self, found: Relation | Formula) -> Relation | Formula:
        """The text of a variable with other variables that are numbers filled in."""
        if isinstance(found, Relation):
            return Relation(found.operators, tuple(self.numbered(side) for side in found.sides))
        return self.numbered(found)

    def known(self, *trees: Formula) -> frozenset[str]:
        """The names that a claim about these formulas may use."""
        return symbols_in(*trees) | self.declared

    def claimed_relation(self, *trees: Formula, text: str | None = None) -> Relation | Formula:
        """What is claimed, as it is written, as a relation or a formula. Raises ExpressionError: it is neither."""
        return parse_relation(self.claimed if text is None else text, declared=self.declared, known=self.known(*trees))

    def claimed_formula(self, *trees: Formula, labels: Iterable[str] = ()) -> Formula:
        """What is claimed, as a formula with numbers filled in; a label such as ``f'(x) =`` in front is taken off.

        Raises ExpressionError: it is none.
        """
        found = self.claimed_relation(*trees, text=self.without_label(labels))
        if isinstance(found, Relation):
            raise ExpressionError("a formula was expected, not a relation", text=self.claimed, position=0)
        return self.numbered(found)

    def numbered(self, tree: Formula) -> Formula:
        """A formula with the variables that are numbers filled in; what is claimed may use them, but not texts."""
        return replace_names(tree, self._numbers())

    def without_label(self, labels: Iterable[str] = ()) -> str:
        """What is claimed, without the step's own name or one of these labels and an equals sign in front.

        A label that is an unknown of the check stays: ``x = 2`` says something of x.
        """
        body = unwrap(self.claimed)
        left, sign, right = body.partition("=")
        # An unknown of the check is no label: "x = 2" claims something of x.
        known = {"".join(label.split()) for label in (self.step, *labels)} - self.bound
        return right if sign and "".join(left.split()) in known else body


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicCheck(BuiltCheck):
    """The options of every symbolic check.

    Args:
        reads: the variables that the text of the check stands on. A text that is nothing but a name is one of them
            without being listed.
        symbols: names that are symbols although they would be constants (``e``, ``pi``), or names of several letters.
        assume: what symbols stand for: ``{"x": "positive", "n": "integer"}``; real numbers where nothing is said.
        seconds: how long sympy may take for one claim, at most 600. A check that takes longer is undecided.

    Raises:
        ConfigError: an option cannot work.
    """

    reads: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    assume: Mapping[str, Assumption] | tuple[tuple[str, Assumption], ...] = ()
    seconds: float = 5.0

    def _check_options(self, *texts: str, bound: Iterable[str] = ()) -> None:
        """Check the options, and add texts that are nothing but a name to `reads`."""
        for option in ("reads", "symbols"):
            check_names(names := getattr(self, option), option)
            for name in names:
                check_symbol(name, option)
            self._set(**{option: tuple(names)})
        given = self.assume.items() if isinstance(self.assume, Mapping) else self.assume
        pairs = tuple(sorted((name, kind) for name, kind in given))
        for name, kind in pairs:
            check_symbol(name, "assume")
            check_one_of(kind, ASSUMPTIONS, "assume", name=f"the assumption on {name}")
        self._set(assume=pairs)
        seconds = float(self.seconds) if isinstance(self.seconds, Decimal) else self.seconds
        self._set(seconds=seconds)
        check_seconds(seconds, "seconds", positive=True, most=_MAX_SECONDS)
        bare = [text.strip() for text in texts if is_variable(text, self.symbols)]
        reads = dict.fromkeys([*self.reads, *(name for name in bare if name not in set(bound))])
        self._set(reads=tuple(reads))

    def _check_variable(self, variable: str, *trees: Formula) -> None:
        """Check that a variable stands in formulas, unless they are made of variables that the step reads."""
        check_symbol(variable, "variable")
        if trees and not self.reads and variable not in symbols_in(*trees):
            raise ConfigError(
                f"{variable!r} does not stand in the formula; where the formula is made of variables that the step "
                f"reads, list them in reads",
                option="variable",
            )

    def _declared(self) -> frozenset[str]:
        return frozenset({*self.symbols, *self.reads, *self._bound()})

    def _bound(self) -> frozenset[str]:
        """The names that stay symbols even where the step reads such a variable."""
        return frozenset()

    def _misfit(self, step: Step) -> str | None:
        return "a truth value is no formula" if step.type.kind == "boolean" else None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        read = {name: value for name, value in values.items() if name != step.id}
        claimed = to_exact(values[step.id])
        assert not isinstance(claimed, bool)
        text = claimed if isinstance(claimed, str) else format_exact(claimed)
        # "\frac" in JSON without its second backslash is a form feed and "rac": such a rest must not be read as a name.
        if (lost := LATEX_LOST.search(text)) is not None:
            return self._verdict("fail", f"bad escaping: {lost[0]!r} may be left of a LaTeX command", kind="malformed")
        decider = Decider(dict(cast("tuple[tuple[str, Assumption], ...]", self.assume)), self.seconds)
        # A variable called `e` or `pi` is the variable; one called `sin` stays the function.
        declared = self._declared() | (frozenset(read) - FUNCTIONS - MATRIX_FUNCTIONS)
        question = FormulaQuestion(step.id, read, text, declared, self._bound(), decider)
        try:
            return self._answer(question)
        except ExpressionError as error:
            return self._verdict("fail", str(error), kind="malformed")
        except Unusable as error:
            return self._verdict("undecided", str(error), retry=False)
        # Other than an unusable expectation, this may be up to the claim: it is asked again.
        except EvaluationError as error:
            return self._verdict("undecided", str(error))
        except RecursionError:
            return self._verdict("undecided", "nested too deeply")

    @abstractmethod
    def _answer(self, question: FormulaQuestion) -> Verdict: ...

    def _verdict(
        self, outcome: str, reason: str = "", *, kind: DeviationKind | None = None, retry: bool = True
    ) -> Verdict:
        name = type(self).name
        if outcome == "pass":
            return Verdict("pass", name, reason=reason, strength="proved")
        if outcome == "fail":
            return Verdict("fail", name, kind or "wrong_value", shorten(reason, 400))
        return Verdict("undecided", name, "undecided", shorten(reason, 400), retry=retry)

    def _verdict_of(self, finding: Deduction, *, kind: DeviationKind = "wrong_value") -> Verdict:
        if finding.yes:
            return self._verdict("pass")
        return self._verdict("fail" if finding.answer == "no" else "undecided", finding.reason, kind=kind)


def check_symbol(name: object, option: str) -> None:
    """Refuse what cannot be the name of a symbol."""
    if not isinstance(name, str) or not _SYMBOL.match(name) or name in FUNCTIONS | MATRIX_FUNCTIONS:
        raise ConfigError(
            f"{name!r} cannot be a symbol: letters, digits and underscores, and no function", option=option
        )


def is_variable(text: object, symbols: Iterable[str] = ()) -> bool:
    """Whether a text is nothing but a name, and so the name of a variable that the step reads."""
    if not isinstance(text, str) or not _SYMBOL.match(text.strip()):
        return False
    return text.strip() not in {"e", "pi", *FUNCTIONS, *symbols}


def read_text(text: str, option: str, declared: Iterable[str]) -> Formula:
    """A formula that a check is made with. Raises ConfigError: it is no formula."""
    check_text(text, option, what="a formula as text")
    try:
        return parse_formula(text, declared=declared)
    except ExpressionError as error:
        raise ConfigError(f"{option}: {error}", option=option) from None


def read_relation(text: str, option: str, declared: Iterable[str]) -> Relation | Formula:
    """A relation or a formula that a check is made with. Raises ConfigError: it is neither."""
    check_text(text, option, what="a formula as text")
    try:
        return parse_relation(text, declared=declared)
    except ExpressionError as error:
        raise ConfigError(f"{option}: {error}", option=option) from None
