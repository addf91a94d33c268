"""What model calls cost."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Usage"]


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
