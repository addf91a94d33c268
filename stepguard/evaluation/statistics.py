"""Intervals for shares, paired differences and recovered accuracy."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["Paired", "compare", "wilson"]

_BOOTSTRAP_DRAWS = 2000


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval for a share (E. B. Wilson, 1927); (0, 1) where n is 0."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


@dataclass(frozen=True, slots=True)
class Paired:
    """Two arms on the same instances.

    Attributes:
        n: how many instances.
        difference: share right in the first arm minus share right in the second.
        interval: 95 % interval of the difference, Newcombe's method 10 for paired shares (1998).
        rescued: instances that only the first arm got right.
        harmed: instances that only the second arm got right.
        p_value: two-sided exact McNemar test.
        recovered: the part of the second arm's errors that the first removes, 1 - (1 - first) / (1 - second); None
            where the second has no errors.
        recovered_interval: percentile bootstrap of that very ratio over instances, 95 %; None likewise.
    """

    n: int
    difference: float
    interval: tuple[float, float]
    rescued: int
    harmed: int
    p_value: float
    recovered: float | None
    recovered_interval: tuple[float, float] | None


def compare(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare two arms; the sequences hold whether each was right, instance by instance.

    Raises:
        ValueError: the sequences are empty or differ in length.
    """
    n = len(first)
    if n != len(second) or n == 0:
        raise ValueError(f"paired outcomes are needed for at least one instance, found {n} and {len(second)}")
    pairs = list(zip(first, second, strict=True))
    rescued = sum(one and not other for one, other in pairs)
    harmed = sum(other and not one for one, other in pairs)
    return Paired(
        n=n,
        difference=(rescued - harmed) / n,
        interval=_newcombe(pairs),
        rescued=rescued,
        harmed=harmed,
        p_value=_mcnemar(rescued, harmed),
        recovered=_recovered(pairs),
        recovered_interval=_recovered_interval(pairs),
    )


def _newcombe(pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float]:
    n = len(pairs)
    both = sum(one and other for one, other in pairs)
    only_first = sum(one and not other for one, other in pairs)
    only_second = sum(other and not one for one, other in pairs)
    neither = n - both - only_first - only_second
    first, second = (both + only_first) / n, (both + only_second) / n
    low1, high1 = wilson(both + only_first, n)
    low2, high2 = wilson(both + only_second, n)
    product = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    phi = 0.0
    if product:
        cross = both * neither - only_first * only_second
        corrected = max(cross - n / 2, 0.0) if cross > 0 else float(cross)
        phi = corrected / math.sqrt(product)
    down, up = first - low1, high1 - first
    down2, up2 = second - low2, high2 - second
    below = math.sqrt(max(0.0, down * down - 2 * phi * down * up2 + up2 * up2))
    above = math.sqrt(max(0.0, up * up - 2 * phi * up * down2 + down2 * down2))
    difference = first - second
    return max(-1.0, difference - below), min(1.0, difference + above)


def _mcnemar(rescued: int, harmed: int) -> float:
    n = rescued + harmed
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(min(rescued, harmed) + 1))
    return min(1.0, float(2 * tail / 2**n))


def _recovered(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    wrong_second = sum(not other for _, other in pairs)
    if wrong_second == 0:
        return None
    return 1 - sum(not one for one, _ in pairs) / wrong_second


def _recovered_interval(pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float] | None:
    if _recovered(pairs) is None:
        return None
    chance = random.Random(len(pairs))
    drawn = (_recovered(chance.choices(pairs, k=len(pairs))) for _ in range(_BOOTSTRAP_DRAWS))
    ratios = sorted(ratio for ratio in drawn if ratio is not None)
    return ratios[int(0.025 * len(ratios))], ratios[min(len(ratios) - 1, int(0.975 * len(ratios)))]
