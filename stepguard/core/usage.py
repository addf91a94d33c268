"""What model calls cost: calls, tokens and money."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from typing import Final

from stepguard.errors import ConfigError

MoneyAmount = Decimal | float | str
"""An amount of money as a caller may give it; a float stands for the decimal that Python prints for it."""

_MILLION: Final = 1_000_000
_DIGITS: Final = 60  # exact for any count of tokens at any price
_LARGEST: Final = 15
"""The decimal exponent of an amount that is still money."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens, of one call or summed over many.

    Attributes:
        calls: requests that were sent, answered or not.
        input_tokens: prompt tokens, cached ones included.
        output_tokens: completion tokens, reasoning included.
        cached_tokens: the part of the prompt that the provider served from its cache.
        reasoning_tokens: the part of the output that was hidden reasoning.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def cached_share(self) -> float:
        """The part of the prompts that came from a cache, 0 where nothing is known of one."""
        # Some providers do not count cached tokens among those of the prompt.
        return self.cached_tokens / max(self.input_tokens, self.cached_tokens, 1)

    @classmethod
    def estimate(cls, asked: int, answered: int) -> Usage:
        """One call whose tokens nobody counted, from the characters of its messages and of its reply: four a token."""
        return cls(calls=1, input_tokens=-(-asked // 4), output_tokens=-(-answered // 4))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What tokens cost, in whatever money the caller counts in.

    Args:
        input: of a million prompt tokens.
        output: of a million completion tokens.
        cached: of a million prompt tokens that the provider served from its cache; by default as `input`.

    Raises:
        ConfigError: an amount is no number, negative or not finite.
    """

    input: MoneyAmount
    output: MoneyAmount
    cached: MoneyAmount | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output"):
            to_amount(getattr(self, name), f"the price of {name} tokens", option="price")
        if self.cached is not None:
            to_amount(self.cached, "the price of cached tokens", option="price")

    def of(self, usage: Usage) -> Decimal:
        """What calls cost, exactly."""
        whole, output = Decimal(str(self.input)), Decimal(str(self.output))
        cached = whole if self.cached is None else Decimal(str(self.cached))
        # Some providers do not count cached tokens among those of the prompt.
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        with localcontext(prec=_DIGITS):  # whatever the caller's precision is
            return (fresh * whole + usage.cached_tokens * cached + usage.output_tokens * output) / _MILLION


def to_amount(given: object, what: str, *, option: str) -> Decimal:
    """An amount of money as an exact number. Raises ConfigError: it is no number, negative or not finite."""
    try:
        amount = Decimal(str(given)) if not isinstance(given, bool) else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or amount < 0 or (amount and abs(amount.adjusted()) > _LARGEST):
        raise ConfigError(f"{what} is an amount of 0 or more, not {given!r:.60}", option=option)
    return amount
