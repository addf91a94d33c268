"""Bounds, adjusted tests, clustered intervals and decay: right inside and at the boundaries."""

from __future__ import annotations

import math
import random
import time
from decimal import Decimal, localcontext

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from stepguard.evaluation.statistics import Decay, clustered, compare, fit_decay, holm, upper_bound, wilson

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("events", "n", "bound"),
    [
        *((0, 60, 0.0487), (0, 299, 0.00997), (0, 1, 0.95), (1, 1, 1.0), (5, 5, 1.0), (0, 0, 1.0), (1, 60, 0.0766)),
        *((0, 16_500, 0.000182), (200, 16_500, 0.01362), (500, 1100, 0.47976), (1000, 1001, 0.99995)),
    ],
)
def test_an_upper_bound_is_exact(events: int, n: int, bound: float) -> None:
    """The one-sided bound of Clopper and Pearson, as printed in tables."""
    assert upper_bound(events, n) == pytest.approx(bound, abs=5e-4)


@pytest.mark.parametrize(("events", "n"), [(200, 16_500), (500, 1100), (1099, 1100), (900, 1001)])
def test_the_bound_of_many_events_is_exact(events: int, n: int) -> None:
    """Where binomial coefficients are too large for floats, the tail at the bound is five percent all the same."""
    with localcontext(prec=60):
        share = Decimal(upper_bound(events, n))
        tail = sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(events + 1))
    assert float(tail) == pytest.approx(0.05, rel=1e-8)


@given(st.integers(0, 40), st.integers(1, 40))
def test_so_few_events_are_rare_above_the_bound(events: int, n: int) -> None:
    """At the bound, at most so many events have a probability of five percent."""
    if events < n:
        bound = upper_bound(events, n)
        tail = sum(math.comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(events + 1))
        assert tail == pytest.approx(0.05, abs=1e-6)
        assert bound > events / n


def test_holm_adjusts_for_the_number_of_tests() -> None:
    """The smallest p value is multiplied by their number, the next by one less, and none falls below an earlier one."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_steps_of_one_program_are_not_counted_as_independent() -> None:
    """Ten programs that are right or wrong as a whole give a wider interval than their hundred steps would."""
    low, high = clustered([(10, 10)] * 5 + [(0, 10)] * 5)
    assert high - low > 1.5 * (wilson(50, 100)[1] - wilson(50, 100)[0])
    assert low < 0.5 < high


@pytest.mark.parametrize("counts", [[(10, 10)] * 4, [(0, 3)] * 4, [(5, 5), (2, 2), (0, 0), (1, 1), (9, 9)]])
def test_clusters_that_are_all_right_or_all_wrong_count_as_one_observation_each(counts: list[tuple[int, int]]) -> None:
    """Four programs alike are four observations, however many steps they have, and not a certainty."""
    assert clustered(counts) == wilson(4 if counts[0][0] else 0, 4)


def test_clusters_alike_have_an_interval_with_a_width() -> None:
    """Also where their share is no whole number of clusters, and narrower the more there are."""
    spans = [clustered([(4, 5), (8, 10)] * count) for count in (1, 2, 5, 50)]
    assert all(low < 0.8 < high for low, high in spans)
    assert spans[2] == pytest.approx(wilson(8, 10))
    widths = [high - low for low, high in spans]
    assert widths == sorted(widths, reverse=True)


def test_many_clusters_of_few_kinds_are_drawn_by_kind() -> None:
    """The interval of 9,000 alike clusters is the one of their share, and does not depend on their order."""
    counts = [(5, 5)] * 4000 + [(2, 5)] * 3000 + [(0, 5)] * 2000
    low, high = clustered(counts)
    # The standard error of a mean of clusters with values 1, 0.4 and 0.
    error = math.sqrt((4 / 9 * 1 + 3 / 9 * 0.16 - (5.2 / 9) ** 2) / 9000)
    assert low == pytest.approx(5.2 / 9 - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(5.2 / 9 + 1.96 * error, abs=0.15 * error)
    assert clustered(counts[::-1]) == (low, high)


def test_recovered_accuracy_has_the_interval_of_its_resamples() -> None:
    """Drawing how many pairs of each kind come gives the interval that drawing pair by pair gives."""
    pairs = [(True, True)] * 30 + [(True, False)] * 45 + [(False, True)] * 5 + [(False, False)] * 20
    found = compare([one for one, _ in pairs], [other for _, other in pairs]).recovered_interval
    chance = random.Random(3)
    ratios = []
    for _ in range(4000):
        drawn = chance.choices(pairs, k=len(pairs))
        ratios.append(1 - sum(not one for one, _ in drawn) / sum(not other for _, other in drawn))
    ratios.sort()
    assert found == pytest.approx((ratios[100], ratios[3900]), abs=0.03)


@pytest.mark.parametrize(("kind", "ratio"), [((True, False), 1.0), ((False, False), 0.0)])
def test_pairs_of_one_kind_have_an_interval_without_width(kind: tuple[bool, bool], ratio: float) -> None:
    """Where every resample is the same, both ends of the interval are the ratio."""
    found = compare([kind[0]] * 7, [kind[1]] * 7)
    assert (found.recovered, found.recovered_interval) == (ratio, (ratio, ratio))


@pytest.mark.slow
def test_ten_thousand_pairs_take_no_time() -> None:
    """The bootstrap does not draw pair by pair: processor time, so that a busy machine changes nothing."""
    started = time.process_time()
    found = compare([True, False] * 5000, [False, False, True, True] * 2500)
    assert time.process_time() - started < 2.0
    assert found.recovered_interval == pytest.approx((-0.03, 0.03), abs=0.02)


def test_an_interval_needs_something_to_measure() -> None:
    """Without any part there is no share."""
    with pytest.raises(ValueError, match="at least one"):
        clustered([(0, 0)])
    assert clustered([(0, 0), (1, 1)]) == clustered([(1, 1)]) == wilson(1, 1)


@pytest.mark.parametrize(("start", "step"), [(1.0, 0.99), (0.67, 0.9873), (0.9, 0.95), (1.0, 1.0)])
def test_a_decay_is_found_again(start: float, step: float) -> None:
    """From many outcomes of a known decay the fit gives it back."""
    cells = [(length, round(100_000 * start * step**length), 100_000) for length in (5, 20, 50, 95)]
    found = fit_decay(cells)
    assert found is not None
    assert found.start == pytest.approx(start, abs=0.01)
    assert found.step == pytest.approx(step, abs=0.001)


def test_a_decay_is_fitted_to_few_and_noisy_outcomes() -> None:
    """With twenty programs a length the fit is near the truth, and predicts within what chance allows."""
    chance = random.Random(1)
    cells = [(length, sum(chance.random() < 0.99**length for _ in range(20)), 20) for length in (5, 20, 50, 95)]
    found = fit_decay(cells)
    assert found is not None
    assert 0.975 < found.step < 1.0


@pytest.mark.slow
@examples(300)
@given(
    st.lists(
        st.tuples(st.sampled_from((1, 2, 5, 20, 95, 1000)), st.integers(0, 60), st.integers(0, 3000)),
        min_size=2,
        max_size=5,
        unique_by=lambda cell: cell[0],
    ),
    st.floats(0.001, 0.999),
    st.floats(0.001, 0.999),
)
def test_no_decay_is_likelier_than_the_fitted_one(
    counts: list[tuple[int, int, int]], start: float, step: float
) -> None:
    """Whatever was measured, no other start and step make the outcomes likelier."""
    cells = [(length, right, right + wrong) for length, right, wrong in counts]
    found = fit_decay(cells)
    assume(found is not None)
    assert found is not None

    def likelihood(decay: Decay) -> float:
        shares = [(min(max(decay.accuracy(length), 1e-300), 1 - 1e-12), right, n) for length, right, n in cells]
        return sum(right * math.log(share) + (n - right) * math.log1p(-share) for share, right, n in shares)

    near = Decay(start=min(1.0, found.start * (1.5 - start)), step=min(1.0, found.step * (1.0005 - step / 1000)))
    assert likelihood(found) >= max(likelihood(Decay(start, step)), likelihood(near)) - 1e-6


def test_a_decay_needs_two_lengths_and_a_success() -> None:
    """Nothing is fitted to one length, to nothing right, or to nothing at all."""
    assert fit_decay([(5, 3, 10)]) is None
    assert fit_decay([(5, 0, 10), (20, 0, 10)]) is None
    assert fit_decay([(5, 1, 1), (20, 0, 0)]) is None
    assert fit_decay([]) is None
    assert fit_decay([(5, 10, 10), (20, 10, 10)]) == Decay(1.0, 1.0)


def test_a_horizon_is_where_accuracy_falls_to_a_share() -> None:
    """The study's fit reaches a half at 23 steps; what never falls has no horizon, what starts lower has one of 0."""
    decay = Decay(0.67, 0.9873)
    horizon = decay.horizon(0.5)
    assert horizon == pytest.approx(22.9, abs=0.1)
    assert horizon is not None
    assert decay.accuracy(horizon) == pytest.approx(0.5)
    assert decay.horizon(0.8) == 0.0
    assert Decay(1.0, 1.0).horizon(0.5) is None
    assert Decay(1.0, 0.0).horizon(0.5) == 0.0
