"""Constraints that need no oracle: ranges, relations between values, preconditions.

`Holds` takes comparisons in the expression language over the step's own value and what it reads, and most constraints
are one line of it. For a step ``total``:

==========================================  ====================================================================
sums that balance                           ``total == subtotal + tax``
a total of rounded lines                    ``total == round(a * p, 2) + round(b * q, 2)``
at most so many places                      ``total == round(total, 2)`` (``money(USD)`` as type says it, too)
cash, in steps of 5 cents                   ``total % 0.05 == 0``
a share that may differ by a cent           ``abs(total - amount / 3) < 0.01``
the last share takes what is left           ``first + second + total == amount``
monotone                                    ``total > previous``
conserved                                   ``total + out == before + in_``
a tolerance                                 ``abs(total - estimate) <= estimate / 100``
==========================================  ====================================================================

Everything is computed exactly; a percentage counts as its ratio. Where a relation leaves one value only (the step's
own on its own, ``==``, and the rest known), a pass is ``"proved"``, otherwise ``"constrained"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, cast

from stepguard.checks.built import BuiltCheck, NumberOption, read_number_option
from stepguard.checks.relations import (
    determines,
    has_operands,
    names_in_relations,
    other_mode,
    read_relations,
    undefined_anyway,
    value_of,
)
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.names import fold
from stepguard.errors import ConfigError, EvaluationError, UndefinedError
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.expressions import Compare, format_expression
from stepguard.language.terms.operands import variables_in
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

# Quotes, Markdown and a full stop around a name let one through that was there already.
_AROUND: Final = " \t\r\n\"'`*_."


@dataclass(frozen=True, slots=True, init=False)
class Range(BuiltCheck):
    """A number lies between bounds.

    Args:
        least: the smallest number that is right; None for no bound.
        most: the largest one.
        above: instead of `least`, a number that is itself too small.
        below: instead of `most`, a number that is itself too large.

    For a step of type ``percent`` bounds are given as percentages (``"100%"``), for others as plain numbers, so that
    0.28 and 28 cannot be taken for each other.

    Raises:
        ConfigError: no bound, two for one side, or bounds that leave no number between them.
    """

    _strongest: ClassVar[Strength] = "constrained"
    least: Exact | None
    most: Exact | None
    above: Exact | None
    below: Exact | None
    percent: bool

    def __init__(
        self,
        least: NumberOption | None = None,
        most: NumberOption | None = None,
        *,
        above: NumberOption | None = None,
        below: NumberOption | None = None,
    ) -> None:
        given = {"least": least, "most": most, "above": above, "below": below}
        read = {option: read_number_option(value, option) for option, value in given.items() if value is not None}
        if not read:
            raise ConfigError("a range needs a bound: Range(least=0)", option="least")
        for one, other in (("least", "above"), ("most", "below")):
            if one in read and other in read:
                raise ConfigError(f"a range has {one} or {other}, not both", option=other)
        if len({percent for _, percent in read.values()}) > 1:
            raise ConfigError("all bounds of a range are percentages, or none is", option=next(iter(read)))
        low, high = read.get("least", read.get("above")), read.get("most", read.get("below"))
        # Equal bounds leave one number only where both of them belong to the range.
        open_end = "above" in read or "below" in read
        if low is not None and high is not None and (low[0] > high[0] or (open_end and low[0] == high[0])):
            raise ConfigError("no number lies between these bounds", option="most" if "most" in read else "below")
        self._set(**{option: read[option][0] if option in read else None for option in given})
        self._set(percent=any(percent for _, percent in read.values()))

    def _misfit(self, step: Step) -> str | None:
        if not step.type.numeric:
            return f"a range is for numbers, and the step is of type {step.type}"
        if self.percent != (step.type.kind == "percent"):
            wanted = "percentages such as '5%'" if step.type.kind == "percent" else "plain numbers"
            return f"the bounds of a range for type {step.type} are {wanted}"
        return None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        number = cast(Exact, to_exact(values[step.id]))
        for bound, wrong, words in (
            (self.least, self.least is not None and number < self.least, "less than"),
            (self.above, self.above is not None and number <= self.above, "not above"),
            (self.most, self.most is not None and number > self.most, "more than"),
            (self.below, self.below is not None and number >= self.below, "not below"),
        ):
            if wrong:
                assert bound is not None
                return self._fail(f"{_number_text(number)} is {words} {_number_text(bound)}")
        return self._pass()


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Holds(BuiltCheck):
    """Relations hold between the step's own value, under the step's id, and the values it reads.

    Args:
        relations: comparisons in the expression language; all of them must hold, and each must name the step. They may
            read lists and records: ``sum of items.amount == total``, ``bill.total == bill.cash - bill.change``.

    A claim under which a relation has no value (it divides by the claimed zero) fails. Where the relation has none
    under any claim, the verdict is undecided and asking again is pointless.

    Raises:
        ConfigError: a relation is no comparison, or none is given.
        ExpressionError: a relation is not in the language.
    """

    relations: tuple[Compare, ...]

    def __init__(self, *relations: str | Compare) -> None:
        self._set(relations=read_relations(relations, "Holds"))

    def __repr__(self) -> str:
        return f"Holds({', '.join(repr(format_expression(relation)) for relation in self.relations)})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in its relations, the step's own among them."""
        return names_in_relations(self.relations)

    def _misfit(self, step: Step) -> str | None:
        for tree in self.relations:
            if not (step.type.numeric or has_operands(tree)):
                return f"a relation is between numbers, and the step is of type {step.type}"
            if step.id not in variables_in(tree):
                return f"{format_expression(tree)!r} says nothing of {step.id!r}; a precondition goes into Requires"
        return None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        undecided: Verdict | None = None
        for tree in self.relations:
            verdict = self._one(tree, step.id, values)
            if verdict is not None and verdict.outcome == "fail":
                return verdict
            # Go on: a later relation may still refute the claim, and a failure says more than an undecided one.
            undecided = undecided or verdict
        proved = any(determines(tree, step.id) for tree in self.relations)
        return undecided or self._pass(strength="proved" if proved else "constrained")

    def _one(self, tree: Compare, own: str, values: Mapping[str, Value]) -> Verdict | None:
        """The verdict on a relation, None where it holds."""
        shown = format_expression(tree)
        try:
            if value_of(tree, values):
                return None
            sides = [shorten(show_value(value_of(side, values))) for side in (tree.left, tree.right)]
        except EvaluationError as error:
            # Asked first: where no claim gives the relation a value, asking again would only cost money.
            cause = undefined_anyway(tree, own, values)
            if cause is not None:
                return self._undecided(f"{shown}: {cause}", retry=False)
            if isinstance(error, UndefinedError):
                return self._fail(f"{shown} has no value for this claim: {error}")
            return self._undecided(f"{shown}: {error}")
        reason = f"{shown} does not hold: {sides[0]} and {sides[1]}"
        mode = other_mode(tree, values)
        return self._fail(f"rounding mode: {reason} ({mode} would make it hold)" if mode else reason)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Requires(BuiltCheck):
    """A precondition on what the step reads: where it does not hold, no claim can be right.

    The verdict is then undecided, and asking again is pointless. Where it holds, it says nothing for a claim: it is
    not applicable, and the step needs another check to be verified.

    Args:
        relations: comparisons in the expression language over variables that the step reads.

    Raises:
        ConfigError: a relation is no comparison, or none is given.
        ExpressionError: a relation is not in the language.
    """

    relations: tuple[Compare, ...]

    def __init__(self, *relations: str | Compare) -> None:
        self._set(relations=read_relations(relations, "Requires"))

    def __repr__(self) -> str:
        return f"Requires({', '.join(repr(format_expression(relation)) for relation in self.relations)})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in its relations."""
        return names_in_relations(self.relations)

    def precondition(self, values: Mapping[str, Value]) -> Verdict | None:
        """The verdict on every claim, from the values alone; None where the precondition holds."""
        for tree in self.relations:
            shown = format_expression(tree)
            try:
                holds = value_of(tree, values)
            except EvaluationError as error:
                return self._undecided(f"the precondition {shown} has no value: {error}", retry=False)
            if not holds:
                return self._undecided(f"the precondition {shown} does not hold", retry=False)
        return None

    def _misfit(self, step: Step) -> str | None:
        if step.id in self.reads:
            return f"a precondition is on what the step reads; a relation with {step.id!r} itself goes into Holds"
        return None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        return self.precondition(values) or self._no_objection()


@dataclass(frozen=True, slots=True, init=False)
class Distinct(BuiltCheck):
    """The value is none of the values of other variables. It can only object: it never passes a value by itself.

    Numbers are compared by value; texts without regard to case, white space, how quotes and dashes are written, and
    quotes, Markdown and a full stop around them.

    Args:
        others: variables that the step reads, at least one.

    Raises:
        ConfigError: none is given.
    """

    _strongest: ClassVar[Strength] = "unverified"
    others: tuple[str, ...]

    def __init__(self, *others: str) -> None:
        if not others or not all(isinstance(each, str) and each for each in others):
            raise ConfigError("Distinct needs names of other variables: Distinct('first', 'second')", option="others")
        self._set(others=others)

    @property
    def reads(self) -> tuple[str, ...]:
        """The other variables."""
        return self.others

    def _misfit(self, step: Step) -> str | None:
        return f"{step.id!r} cannot differ from itself" if step.id in self.others else None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        own = _key(values[step.id])
        for name in self.others:
            if _key(values[name]) == own:
                return self._fail(f"{shorten(show_value(values[step.id]))!r} is already the value of {name}")
        return self._no_objection()


def _key(value: Value) -> tuple[str, object]:
    plain = to_exact(value)
    if isinstance(plain, str):
        return "text", " ".join(fold(plain).strip(_AROUND).split())
    return "truth" if isinstance(plain, bool) else "number", plain


def _number_text(number: Exact) -> str:
    return shorten(format_exact(exact(number)))
