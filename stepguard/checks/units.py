"""Checks on quantities: numbers with a unit (``pip install "stepguard[units]"``).

What counts as one, and what conversion means, `stepguard.language.quantities` says. Two things are policies, and off
unless asked for: whether another unit of the same dimension will do (`convert`), and whether a number without a unit is
taken to be in the expected one (`bare`).

Units of the same dimension may measure different things (newton metres of torque and joules of energy); a conversion
between those passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, cast, get_args

from stepguard.checks.built import BuiltCheck, NumberOption, read_number_option, unit_claimed
from stepguard.core.arguments import check_flag, check_one_of, check_text
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.errors import ConfigError, EvaluationError, ValueRefused
from stepguard.language.digits import Exact, format_exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Compare, Expression, format_expression, names_in
from stepguard.language.quantities import (
    Amount,
    Unit,
    check_pair,
    convert,
    read_amount,
    read_declared,
    read_unit,
    require_units,
    same_unit,
    show_unit,
)
from stepguard.language.tolerances import Tolerance
from stepguard.language.values import Value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

UnitlessRule = Literal["refuse", "assume"]
"""How a number without a unit is treated: refused, or taken to be in the expected unit."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Measure(BuiltCheck):
    """The base of checks of one quantity."""

    __slots__ = ()
    converts: bool
    bare: UnitlessRule
    units: tuple[str, ...]

    def _misfit(self, step: Step) -> str | None:
        if step.id in self.reads:
            return f"{self!r} reads {step.id!r} itself"
        if step.type.kind == "text" or (self.bare == "assume" and step.type.kind in ("number", "integer", "decimal")):
            return None
        return f"a number of type {step.type} has no unit: let the step be text, or a number with bare='assume'"

    def _value(self, claimed: Value, unit: Unit, claim: Claim) -> Exact | Verdict:
        """The claimed number in a unit, or why there is none."""
        if not isinstance(claimed, str):
            if (written := unit_claimed(claim)) is not None:
                return self._fail(f"a number of {show_unit(unit)} was expected, found {written}", "malformed")
            number = cast(Exact, to_exact(claimed))
            try:
                # 120/80 is a blood pressure in mmHg, and not the number 1.5.
                check_pair(claim.value, number, unit)
            except ValueRefused as error:
                return self._fail(str(error), "malformed")
            return number
        try:
            amount = read_amount(claimed, bare=unit, declared=self.units)
        except ValueRefused as error:
            return self._fail(str(error), "malformed")
        if amount.unit is None:
            if self.bare == "assume":
                return amount.value
            return self._fail(f"no unit, where {show_unit(unit)} was expected", "malformed")
        try:
            # Converted even where it will be refused: a wrong dimension is a wrong value, another unit only its
            # notation.
            value = convert(amount.value, amount.unit, unit)
        except ValueRefused as error:
            return self._fail(f"{shorten(str(amount))}: {error.reason}")
        if not same_unit(amount.unit, unit) and not self.converts:
            return self._fail(f"{shorten(str(amount))} is in another unit than {show_unit(unit)}", "malformed")
        return value


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quantity(_Measure):
    """The value is a quantity that is known. A pass is ``"proved"``.

    Args:
        expected: the quantity, as text with its unit (``"5 km"``); or the name of a variable of type text that holds
            one; or, with `unit`, an expression over numbers that the step reads.
        unit: the unit of `expected` where that is an expression: ``Quantity("speed * hours", unit="km")``.
        convert: whether another unit of the same dimension passes (``"5000 m"`` for 5 km), converted exactly.
        bare: ``"refuse"`` fails a number without a unit, ``"assume"`` takes it to be in the expected unit. A step
            with a number needs ``"assume"``.
        within: how far the value may be off, in the expected unit (``"0.01"``: below 1) or relative (``"1%"``: at
            most 10%); None: not at all. The verdict records it.
        units: further names of units, each a measure of its own: ``["IU", "mEq"]``.

    Raises:
        ConfigError: the quantity, the unit, the policy or the tolerance is none.
        ExpressionError: the expression is not in the language.
        MissingExtraError: pint is not installed.
    """

    expected: Amount | str | Expression
    unit: Unit | None
    converts: bool
    bare: UnitlessRule
    within: Tolerance | None
    units: tuple[str, ...]

    def __init__(
        self,
        expected: str,
        *,
        unit: str | None = None,
        convert: bool = False,
        bare: UnitlessRule = "refuse",
        within: NumberOption | None = None,
        units: Iterable[str] = (),
    ) -> None:
        require_units()
        declared = read_declared(units)
        check_text(expected, "expected", what="text such as '5 km'", filled=True)
        check_flag(convert, "convert")
        check_one_of(bare, get_args(UnitlessRule), "bare")
        found: Amount | str | Expression
        if unit is not None:
            found = parse_expression(expected)
            if isinstance(found, Compare):
                raise ConfigError(f"{expected!r} is a comparison and no number", option="expected")
        # Before it is read as a quantity: "km" alone would be a unit without a number.
        elif _VARIABLE.fullmatch(expected.strip()):
            found = expected.strip()
        else:
            try:
                found = read_amount(expected, declared=declared)
            except ValueRefused as error:
                raise ConfigError(f"a quantity is such as '5 km': {error}", option="expected") from None
            if found.unit is None:
                raise ConfigError(f"{expected!r} has no unit: write '5 km', or give unit='km'", option="expected")
        self._set(
            expected=found,
            unit=None if unit is None else _unit(unit, declared),
            units=declared,
            converts=convert,
            bare=bare,
            within=None if within is None else _tolerance(within),
        )

    def __repr__(self) -> str:
        tree = self.expected
        shown = str(tree) if isinstance(tree, Amount | str) else format_expression(tree)
        unit = f", unit={show_unit(self.unit)!r}" if self.unit else ""
        return f"Quantity({shown!r}{unit}{', convert=True' if self.converts else ''})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables that the expected quantity is worked out from."""
        if isinstance(self.expected, Amount):
            return ()
        return (self.expected,) if isinstance(self.expected, str) else names_in(self.expected)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        expected = self._expected(values)
        if isinstance(expected, Verdict):
            return expected
        assert expected.unit is not None
        value = self._value(values[step.id], expected.unit, claim)
        if isinstance(value, Verdict):
            return value
        if value == expected.value:
            return self._pass(strength="proved")
        if self.within is not None and self.within.accepts(value, expected.value):
            return self._pass(f"within {self.within}", strength="proved")
        shown = show_unit(expected.unit)
        return self._fail(f"{shorten(str(expected))} was expected, not {shorten(format_exact(value))} {shown}")

    def _expected(self, values: Mapping[str, Value]) -> Amount | Verdict:
        if isinstance(self.expected, Amount):
            return self.expected
        if isinstance(self.expected, str):
            held = values[self.expected]
            try:
                amount = read_amount(held if isinstance(held, str) else "", declared=self.units)
            except ValueRefused as error:
                return self._undecided(f"{self.expected} is no quantity: {error.reason}", retry=False)
            if amount.unit is None:
                return self._undecided(f"{self.expected} has no unit", retry=False)
            return amount
        try:
            number = evaluate(self.expected, values)
        except EvaluationError as error:
            return self._undecided(f"the expected quantity has no exact value: {error}", retry=False)
        if isinstance(number, bool | str):
            return self._undecided(f"{format_expression(self.expected)} is not a number", retry=False)
        return Amount(number, self.unit)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Measured(_Measure):
    """The value is some quantity in a unit, or of its dimension, that lies between bounds.

    Args:
        unit: the unit, such as ``"km"``.
        least: the smallest number of that unit that is right; None for no bound.
        most: the largest one.
        convert: whether another unit of the same dimension passes, converted exactly.
        bare: ``"refuse"`` fails a number without a unit, ``"assume"`` takes it to be in this unit.
        units: further names of units, each a measure of its own: ``["IU", "mEq"]``.

    Raises:
        ConfigError: the unit, the policy or a bound is none.
        MissingExtraError: pint is not installed.
    """

    _strongest: ClassVar[Strength] = "constrained"
    unit: Unit
    least: Exact | None
    most: Exact | None
    converts: bool
    bare: UnitlessRule
    units: tuple[str, ...]

    def __init__(
        self,
        unit: str,
        *,
        least: NumberOption | None = None,
        most: NumberOption | None = None,
        convert: bool = False,
        bare: UnitlessRule = "refuse",
        units: Iterable[str] = (),
    ) -> None:
        require_units()
        check_flag(convert, "convert")
        check_one_of(bare, get_args(UnitlessRule), "bare")
        declared = read_declared(units)
        self._set(units=declared, unit=_unit(unit, declared))
        bounds: dict[str, Exact] = {}
        for option, given in (("least", least), ("most", most)):
            if given is not None:
                bounds[option], percent = read_number_option(given, option)
                if percent:
                    raise ConfigError(f"{option} is a number of {show_unit(self.unit)}", option=option)
            self._set(**{option: bounds.get(option)})
        if len(bounds) == 2 and bounds["least"] > bounds["most"]:
            raise ConfigError("no quantity lies between these bounds", option="most")
        self._set(converts=convert, bare=bare)

    def __repr__(self) -> str:
        bounds = "".join(
            f", {option}={format_exact(bound)}"
            for option, bound in (("least", self.least), ("most", self.most))
            if bound is not None
        )
        return f"Measured({show_unit(self.unit)!r}{bounds}{', convert=True' if self.converts else ''})"

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        value = self._value(values[step.id], self.unit, claim)
        if isinstance(value, Verdict):
            return value
        shown = f"{shorten(format_exact(value))} {show_unit(self.unit)}"
        if self.least is not None and value < self.least:
            return self._fail(f"{shown} is less than {format_exact(self.least)}")
        if self.most is not None and value > self.most:
            return self._fail(f"{shown} is more than {format_exact(self.most)}")
        return self._pass()


def _unit(text: object, declared: tuple[str, ...]) -> Unit:
    try:
        return read_unit(text if isinstance(text, str) else "", declared=declared)
    except ValueRefused as error:
        raise ConfigError(f"a unit is such as 'km' or 'kg*m/s^2': {error}", option="unit") from None


def _tolerance(within: NumberOption) -> Tolerance:
    amount, relative = read_number_option(within, "within")
    return Tolerance(amount, relative=relative)
