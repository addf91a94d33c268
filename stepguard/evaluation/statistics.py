"""Intervals for shares, paired differences and recovered accuracy, bounds on rare events, decay with length.

Every formula names its source, and every function is defined at the boundaries: 0 of n, n of n, n = 1, no pair that
differs, a baseline without errors.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

_BOOTSTRAP_DRAWS = 2000  # the ends of a 95 % interval then rest on 50 draws each
_HALVINGS = 60  # more than a float has bits
_SECTIONS = 36  # each leaves 62 %: the place is then known to seven digits
_NEARLY = 1 - 1e-12  # the logarithm of 1 - 1 would be minus infinity
_FLOATS = 1000
"""Of so many, the number of ways to choose any is still a float."""
_WORTH_IT = 10
"""How many clusters of a kind there are on average before counting kinds is quicker than drawing clusters."""


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval for a share (E. B. Wilson, 1927); (0, 1) where n is 0."""
    return _wilson(successes / n, n) if n else (0.0, 1.0)


def _wilson(share: float, n: int) -> tuple[float, float]:
    z = NormalDist().inv_cdf(0.975)
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return low, high


def upper_bound(events: int, n: int) -> float:
    """The exact one-sided 95 % upper bound of a share (Clopper and Pearson, 1934); 1 where n is 0.

    0 events in 60 bound the share at 4.9 %, in 299 at 1 %.
    """
    if n == 0 or events >= n:
        return 1.0
    low, high = events / n, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        # Above the bound so few events would be rarer than one in twenty; recorded bounds hold every digit of this.
        if _at_most(events, n, share) > 1 - 0.95:
            low = share
        else:
            high = share
    return high


def _at_most(events: int, n: int, share: float) -> float:
    """The probability of at most so many events in n, where the share is no smaller than events / n."""
    if n <= _FLOATS:
        return math.fsum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(events + 1))
    # The last term is the largest, and the others follow from it, so that nothing overflows or is lost to rounding.
    ways = math.lgamma(n + 1) - math.lgamma(events + 1) - math.lgamma(n - events + 1)
    largest = ways + events * math.log(share) + (n - events) * math.log1p(-share)
    term, terms = 1.0, 1.0
    for k in range(events, 0, -1):
        term *= k * (1 - share) / ((n - k + 1) * share)
        terms += term
        if term < 1e-18 * terms:
            break
    return math.exp(largest + math.log(terms))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, adjusted for their number (S. Holm, 1979), in the order given."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted


def clustered(counts: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """A 95 % interval for a share of parts, when parts come in clusters, as steps do in programs.

    A percentile bootstrap over clusters: steps of one program are alike, so that counting each as an observation of
    its own would make the interval too narrow. Where all clusters have the same share, resampling them shows no spread:
    it is then the Wilson interval of that share over as many observations as there are clusters with parts.

    Args:
        counts: for every cluster how many parts were right, and how many there were.

    Raises:
        ValueError: there is no part.
    """
    if sum(total for _, total in counts) == 0:
        raise ValueError("an interval needs at least one part")
    filled = [cluster for cluster in counts if cluster[1]]
    first, parts = filled[0]
    if all(right * parts == first * total for right, total in filled):
        return _wilson(first / parts, len(filled))
    kinds = sorted(Counter(counts).items())
    times = [count for _, count in kinds]
    chance = random.Random(0)  # the same outcomes give the same bytes
    shares: list[float] = []
    for _ in range(_BOOTSTRAP_DRAWS):
        if _WORTH_IT * len(kinds) < len(counts):
            drawn = list(zip((kind for kind, _ in kinds), _multinomial(times, chance), strict=True))
        else:
            drawn = [(cluster, 1) for cluster in chance.choices(counts, k=len(counts))]
        total = sum(parts * count for (_, parts), count in drawn)
        if total:
            shares.append(sum(right * count for (right, _), count in drawn) / total)
    shares.sort()
    return middle(shares)


def middle(drawn: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of what a bootstrap gave, in ascending order."""
    return drawn[int(0.025 * len(drawn))], drawn[min(len(drawn) - 1, int(0.975 * len(drawn)))]


def _multinomial(counts: Sequence[int], chance: random.Random) -> list[int]:
    """How often each kind comes when as many as there are are drawn with replacement.

    The same distribution as that of drawing them one by one, from one binomial number a kind: given the earlier ones,
    each is binomial in what is left.
    """
    left = weight = sum(counts)
    drawn: list[int] = []
    for count in counts:
        number = left if count == weight else _binomial(left, count / weight, chance)
        drawn.append(number)
        left -= number
        weight -= count
    return drawn


def _binomial(n: int, share: float, chance: random.Random) -> int:
    """A binomial number by inversion, counted outwards from the most likely one (A. W. Kemp, 1986).

    Exact, but for rounding; it takes about as many rounds as the standard deviation. `random.binomialvariate` came
    with Python 3.12.
    """
    if n == 0 or share <= 0:
        return 0
    if share >= 1:
        return n
    odds = share / (1 - share)
    middle = min(n, int((n + 1) * share))
    log_ways = math.lgamma(n + 1) - math.lgamma(middle + 1) - math.lgamma(n - middle + 1)
    below = above = math.exp(log_ways + middle * math.log(share) + (n - middle) * math.log1p(-share))
    low = high = middle
    left = chance.random() - below
    while left > 0:
        if low > 0:
            below *= low / ((n - low + 1) * odds)
            low -= 1
            left -= below
            if left <= 0:
                return low
        if high < n:
            above *= (n - high) * odds / (high + 1)
            high += 1
            left -= above
            if left <= 0:
                return high
        if (low == 0 and high == n) or not (below or above):
            break  # rounding has left a rest of some 1e-16
    return middle


@dataclass(frozen=True, slots=True)
class Decay:
    """How accuracy falls with length: accuracy = start * step ** length.

    Attributes:
        start: the accuracy that length has no part in, from 0 to 1.
        step: the share of steps that are right, from 0 to 1.
    """

    start: float
    step: float

    def accuracy(self, length: float) -> float:
        return self.start * math.pow(self.step, length)

    def horizon(self, share: float) -> float | None:
        """The length at which accuracy falls to `share`: ln(share / start) / ln(step).

        0 where it is below it from the start, None where it never falls so low.
        """
        if self.start <= share:
            return 0.0
        if self.step >= 1:
            return None
        return 0.0 if self.step <= 0 else math.log(share / self.start) / math.log(self.step)


def fit_decay(cells: Sequence[tuple[int, int, int]]) -> Decay | None:
    """The decay under which the outcomes are most likely (binomial maximum likelihood).

    Args:
        cells: length, successes and n of every cell.

    Returns:
        None where fewer than two lengths were measured, or nothing was ever right.
    """
    used = [cell for cell in cells if cell[2] > 0]
    if len({length for length, *_ in used}) < 2 or not any(successes for _, successes, _ in used):
        return None

    right = sum(successes for _, successes, _ in used)
    steps = sum(length * successes for length, successes, _ in used)
    wrong = [(length, n - successes) for length, successes, n in used if successes < n]

    def likelihood(start: float, rate: float) -> float:
        missed = (count * math.log1p(-min(start * math.exp(-rate * length), _NEARLY)) for length, count in wrong)
        return right * math.log(start) - rate * steps + sum(missed)

    def likeliest_start(rate: float) -> float:
        return _summit(lambda start: likelihood(start, rate), 1 - _NEARLY, 1.0)

    # The logarithm of the likelihood is concave in those of A and q; at faster decays even the shortest has none right.
    fastest = (1 + math.log(sum(n for *_, n in used))) / min(length for length, *_ in used)
    rate = _summit(lambda rate: likelihood(likeliest_start(rate), rate), 0.0, fastest)
    return Decay(start=likeliest_start(rate), step=math.exp(-rate))


def _summit(height: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one summit is highest, ends included (golden section search; Kiefer, 1953)."""
    ends = (high, low)
    part = (math.sqrt(5) - 1) / 2
    left, right = high - part * (high - low), low + part * (high - low)
    at_left, at_right = height(left), height(right)
    for _ in range(_SECTIONS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + part * (high - low)
            at_right = height(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - part * (high - low)
            at_left = height(left)
    return max(*ends, (low + high) / 2, key=height)


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

    Raises ValueError: the sequences are empty or differ in length.
    """
    n = len(first)
    if n != len(second) or n == 0:
        raise ValueError(f"paired outcomes are needed for at least one instance, found {n} and {len(second)}")
    counted = Counter(zip(map(bool, first), map(bool, second), strict=True))
    table = _Table(counted[True, True], counted[True, False], counted[False, True], counted[False, False])
    return Paired(
        n=n,
        difference=(table.only_first - table.only_second) / n,
        interval=_newcombe(table),
        rescued=table.only_first,
        harmed=table.only_second,
        p_value=_mcnemar(table.only_first, table.only_second),
        recovered=_recovered(table),
        recovered_interval=_recovered_interval(table),
    )


class _Table(NamedTuple):
    """How many pairs there are of each kind, by which of the two was right."""

    both: int
    only_first: int
    only_second: int
    neither: int


def _newcombe(table: _Table) -> tuple[float, float]:
    both, only_first, only_second, neither = table
    n = sum(table)
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


def _recovered(table: _Table) -> float | None:
    wrong_second = table.only_first + table.neither
    if wrong_second == 0:
        return None
    return 1 - (table.only_second + table.neither) / wrong_second


def _recovered_interval(table: _Table) -> tuple[float, float] | None:
    if _recovered(table) is None:
        return None
    chance = random.Random(sum(table))
    drawn = (_recovered(_Table(*_multinomial(table, chance))) for _ in range(_BOOTSTRAP_DRAWS))
    return middle(sorted(ratio for ratio in drawn if ratio is not None))
