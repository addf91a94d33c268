"""How far a claim may be from an exact result, where a step declares ``within``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.numerals import read_numeral


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a claim may be from the exact result.

    Attributes:
        amount: the largest difference that is accepted: above 0 and below 1; where `relative`, at most one tenth.
        relative: whether `amount` is a share of the exact result instead of an absolute difference.

    Raises:
        ConfigError: the amount is not in that range. A wider one would let wrong values pass.
    """

    amount: Exact
    relative: bool = False

    def __post_init__(self) -> None:
        exact_type = type(self.amount) in (int, Fraction)
        if not exact_type or not 0 < self.amount <= (Fraction(1, 10) if self.relative else 1) or self.amount == 1:
            raise ConfigError(
                f"{self.amount!r} is no tolerance: it is above 0 and below 1, or at most 10%, such as within 0.01 or "
                f"within 1%",
                option="within",
            )

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """``0.01`` or ``1%`` as a tolerance."""
        try:
            read = read_numeral(text)
        except ValueRefused as error:
            raise ConfigError(f"a tolerance is a number such as 0.01 or 1%: {error}", option="within") from None
        if read.unit not in (None, "%"):
            raise ConfigError(f"a tolerance has no currency, {text.strip()!r} has", option="within")
        return cls(read.value, relative=read.unit == "%")

    def __str__(self) -> str:
        return f"{format_exact(exact(Fraction(self.amount) * 100))}%" if self.relative else format_exact(self.amount)

    def accepts(self, value: Exact, result: Exact) -> bool:
        """Whether `value` is near enough to the exact `result`."""
        allowed = abs(Fraction(self.amount) * result) if self.relative else self.amount
        return abs(Fraction(value) - result) <= allowed
