"""Labels drawn for each level are those drawn for each row, in the errors that they make."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from tests.trueup.field_cells import cells_of

from trueup.fields.distribution import binomial_p_values, two_sided_p_values
from trueup.fields.noise import Plan, draw_levels, draw_rows

N_DRAWS = 500


def cells(size, rate, *, weighted, n=3_000):
    rng = np.random.default_rng(5)
    p = rng.beta(2.0 * rate, 2.0 * (1.0 - rate), n)
    weight = rng.uniform(0.3, 2.0, n) if weighted else None
    return cells_of(np.arange(n) // size, rng.random(n) < p, p, weight)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rate", [0.02, 0.4])
@pytest.mark.parametrize("size", [50, 100])
def test_errors_have_the_distribution_of_drawn_rows(size, rate, weighted):
    rows = cells(size, rate, weighted=weighted)
    plan = Plan(np.full(len(rows.count), 0.05), rows.sums.pair_share, 0.01)
    found = draw_levels(rows.sums, plan, N_DRAWS, np.random.default_rng(1))
    expected = draw_rows(rows, plan, N_DRAWS, np.random.default_rng(2))
    near = {"gap": 0.02, "relative_gap": 0.05, "pairs": 0.0}
    for name, tolerance in near.items():
        ours, theirs = getattr(found, name), getattr(expected, name)
        miss = ours.mean() - theirs.mean()
        miss -= (found.truth - expected.truth) / 3_000 if name == "pairs" else 0.0
        noise = 4.0 * theirs.std() / np.sqrt(N_DRAWS / 2.0)
        assert abs(miss) <= noise + tolerance * theirs.mean(), name
        assert ours.std() == pytest.approx(theirs.std(), rel=0.25), name
    assert found.truth == pytest.approx(expected.truth, rel=0.05)


def test_certain_levels_are_drawn_without_noise():
    rows = cells_of([0, 0, 1, 1], [0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    plan = Plan(np.zeros(2), rows.sums.pair_share, 0.01)
    draws = draw_levels(rows.sums, plan, 50, np.random.default_rng(0))
    assert draws.gap.max() == draws.relative_gap.max() == abs(draws.pairs).max() == 0.0


@pytest.mark.parametrize("hits", [0, 1, 7, 30])
def test_p_value_of_equal_probabilities_is_the_binomial_tail(hits):
    y = np.arange(40) < hits
    found = binomial_p_values(cells_of(np.zeros(40, int), y, np.full(40, 0.2)).sums)[0]
    tail = binom.sf(hits - 1, 40, 0.2) if hits > 8 else binom.cdf(hits, 40, 0.2)
    assert found == pytest.approx(min(1.0, 2.0 * tail), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_p_values_from_sums_are_near_those_of_the_rows(weighted):
    rows = cells(100, 0.3, weighted=weighted)
    ratio = np.log(binomial_p_values(rows.sums) / two_sided_p_values(rows))
    assert np.quantile(abs(ratio), 0.9) < 0.7
