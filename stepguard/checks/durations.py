"""Checks on durations. What counts as one, `stepguard.language.dates` says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from stepguard.checks.built import BuiltCheck, unit_claimed
from stepguard.core.arguments import check_one_of, check_text
from stepguard.core.verdicts import Claim, Verdict, shorten
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.dates import SECONDS, read_duration
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.expressions import RESERVED
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_MAX_EXPRESSION: Final = 1000


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DurationIs(BuiltCheck):
    """The value is the duration that an expression gives, in whatever notation. A pass is ``"proved"``.

    Args:
        expression: durations and variables of type text that hold durations, with ``+`` and ``-`` between blanks:
            ``"90 minutes"``, ``"setup + 1 h 30 min"``, ``"total - pause"``.
        unit: for a step with a number, the unit it is in: week, day, hour, minute, second or millisecond. None: the
            step is text.
        within: by how much a claim may differ, as a duration (``"1 min"``), but never by more than a tenth of the
            right one; None: not at all. The verdict records it.

    Raises:
        ConfigError: the expression or the tolerance is no duration, or the unit is unknown.
    """

    terms: tuple[tuple[int, Exact | str], ...]
    unit: str | None
    within: Exact | None
    text: str = field(compare=False)

    def __init__(self, expression: str, *, unit: str | None = None, within: str | None = None) -> None:
        check_text(expression, "expression", what="text such as 'setup + 90 minutes'", most=_MAX_EXPRESSION)
        check_one_of(unit, SECONDS, "unit", optional=True)
        pieces = re.split(r"\s+([-+])\s+", expression.strip())
        signs = [1, *(1 if sign == "+" else -1 for sign in pieces[1::2])]
        terms = tuple(zip(signs, map(_duration_term, pieces[::2]), strict=True))
        self._set(
            terms=terms, unit=unit, within=None if within is None else _tolerance(within), text=expression.strip()
        )

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"DurationIs({self.text!r}{unit})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in the expression."""
        return tuple(dict.fromkeys(term for _, term in self.terms if isinstance(term, str)))

    def _misfit(self, step: Step) -> str | None:
        if step.id in self.reads:
            return f"{self!r} reads {step.id!r} itself"
        if self.unit is None:
            wanted = "a duration is text, and with unit='minute' a number"
            return None if step.type.kind == "text" else f"{wanted}; the step is of type {step.type}"
        if not step.type.numeric or step.type.kind in ("percent", "money"):
            return f"{self!r} is for a number of {self.unit}s, and the step is of type {step.type}"
        return None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        total = Fraction(0)
        for sign, term in self.terms:
            if isinstance(term, str):
                value = values[term]
                try:
                    total += sign * read_duration(value if isinstance(value, str) else show_value(value))
                except ValueRefused as error:
                    return self._undecided(f"{term} is no duration: {error}", retry=False)
            else:
                total += sign * term
        own = values[step.id]
        if self.unit is not None and (written := unit_claimed(claim)) is not None:
            return self._fail(f"a number of {self.unit}s was expected, found {written}", "malformed")
        try:
            claimed = (
                read_duration(cast(str, own)) if self.unit is None else cast(Exact, to_exact(own)) * SECONDS[self.unit]
            )
        except ValueRefused as error:
            return self._fail(str(error), "malformed")
        if claimed == total:
            return self._pass(strength="proved")
        difference = f"{format_exact(exact(total))} s are right, not {shorten(format_exact(exact(claimed)))} s"
        # A tolerance above a tenth of the value would accept what is simply wrong.
        if self.within is not None and abs(claimed - total) <= min(self.within, abs(total) / 10):
            return self._pass(f"within {format_exact(self.within)} s: {difference}", strength="proved")
        return self._fail(difference)


def _duration_term(text: str) -> Exact | str:
    try:
        return read_duration(text)
    except ValueRefused as error:
        if re.fullmatch(_NAME, text) and text not in RESERVED:
            return text
        raise ConfigError(f"a duration or a variable was expected: {error}", option="expression") from None


def _tolerance(text: str) -> Exact:
    try:
        found = read_duration(text)
    except (ValueRefused, TypeError, AttributeError) as error:
        raise ConfigError(f"within is a duration such as '1 min': {error}", option="within") from None
    if found <= 0:
        raise ConfigError("within is a duration above zero, such as '1 min'", option="within")
    return found
