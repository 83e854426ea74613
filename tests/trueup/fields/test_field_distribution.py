"""Distribution of the positives of a cell: deviations and tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom, poisson_binom
from tests.trueup.field_cells import cells_of

from trueup.fields.distribution import mean_absolute_deviation, two_sided_p_values


@pytest.mark.parametrize("rate", [0.001, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("size", [1, 2, 10, 20, 21, 200, 5000])
def test_deviation_of_equal_probabilities_is_de_moivres(rate, size):
    cells = cells_of(np.zeros(size, dtype=int), np.zeros(size), np.full(size, rate))
    exact = binom.expect(lambda k: np.abs(k - size * rate), (size, rate), lb=0, ub=size)
    assert mean_absolute_deviation(cells)[0] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("size", [1, 3, 20, 21, 60, 300])
def test_distribution_of_unequal_probabilities_is_poisson_binomial(size):
    p = np.random.default_rng(size).beta(1.0, 4.0, size)
    place = np.arange(size + 1)
    mass = poisson_binom.pmf(place, p)
    deviation = mean_absolute_deviation(cells_of(np.zeros(size, dtype=int), np.zeros(size), p))[0]
    exact = size <= 20
    assert deviation == pytest.approx(mass @ np.abs(place - p.sum()), rel=1e-10 if exact else 5e-3)
    for hits in {0, 1, size // 3, size // 2}:
        y_true = np.arange(size) < hits
        found = two_sided_p_values(cells_of(np.zeros(size, dtype=int), y_true, p))[0]
        tail = mass[hits:] if hits > p.sum() else mass[: hits + 1]
        expected = min(1.0, 2.0 * tail.sum())
        assert found == pytest.approx(expected, rel=1e-8 if exact else 0.1, abs=1e-300)


def every_weighted_tail(y_true, p, weight):
    """Return twice the tail by going through all outcomes."""
    outcomes = np.array(list(itertools.product([0.0, 1.0], repeat=len(p))))
    mass, sums = np.where(outcomes, p, 1.0 - p).prod(axis=1), outcomes @ weight
    own = weight @ y_true
    tail = mass[sums >= own - 1e-9] if own > weight @ p else mass[sums <= own + 1e-9]
    return min(1.0, 2.0 * tail.sum())


@pytest.mark.parametrize("seed", range(20))
def test_tail_of_weighted_positives_is_near_that_of_all_outcomes(seed):
    rng = np.random.default_rng(seed)
    p, weight = rng.beta(1.0, 3.0, 14), rng.uniform(0.2, 3.0, 14)
    y_true = (rng.random(14) < 0.5).astype(float)
    found = two_sided_p_values(cells_of(np.zeros(14, dtype=int), y_true, p, weight))[0]
    expected = every_weighted_tail(y_true, p, weight)
    assert 0.9 * expected < found < (1.6 if expected > 1e-4 else 3.0) * expected


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_tail_of_few_weighted_positives_is_exact(size):
    rng = np.random.default_rng(size)
    p, weight = rng.beta(1.0, 3.0, 5 * size), rng.uniform(0.2, 3.0, 5 * size)
    y_true, code = (rng.random(5 * size) < 0.5).astype(float), np.arange(5 * size) % 5
    found = two_sided_p_values(cells_of(code, y_true, p, weight))
    for cell in range(5):
        own = code == cell
        expected = every_weighted_tail(y_true[own], p[own], weight[own])
        assert found[cell] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("hits", [0, 1, 2, 5, 40])
def test_tail_of_rare_events_is_right_to_five_percent(hits):
    p = np.random.default_rng(hits).beta(0.05, 20.0, 1000)
    mass = poisson_binom.pmf(np.arange(1001), p)
    tail = mass[hits:] if hits > p.sum() else mass[: hits + 1]
    found = two_sided_p_values(cells_of(np.zeros(1000, dtype=int), np.arange(1000) < hits, p))[0]
    if tail.sum() > 1e-13:  # below it the reference is rounding
        assert found == pytest.approx(min(1.0, 2.0 * tail.sum()), rel=0.05)
    else:
        assert found < 1e-12
