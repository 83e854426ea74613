from __future__ import annotations

import numpy as np
import pytest

from trueup_optuna.shrunken_means import Results, final_share, noise_share, shrunken_means


def bowl(rng, k=60, noise=0.2):
    points = rng.random((k, 2))
    truth = ((points - 0.5) ** 2).sum(1) * 4.0
    return points, truth, truth + noise * rng.standard_normal(k)


def once(points, values):
    """One result of each configuration, each under another of seven seeds."""
    each = np.arange(len(values))
    return Results(points, each, each % 7, values)


def twice(points, values, again):
    """The better half has a second result, which shows the noise."""
    one, better = once(points, values), np.flatnonzero(values <= np.median(values))
    seed = np.append(one.seed, (better + 1) % 7)
    config = np.append(one.config, better)
    return Results(points, config, seed, np.append(values, again[better]))


def test_the_lowest_shrunken_mean_is_better_than_the_luckiest_seed():
    lucky, shrunken = [], []
    for seed in range(60):
        points, truth, values = bowl(np.random.default_rng(seed))
        lucky.append(truth[values.argmin()])
        shrunken.append(truth[shrunken_means(once(points, values)).mean.argmin()])
    assert np.mean(shrunken) < 0.6 * np.mean(lucky)


def test_posterior_intervals_cover_the_truth():
    covered, noises = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points, truth, values = bowl(rng)
        found = shrunken_means(twice(points, values, truth + 0.2 * rng.standard_normal(60)))
        better = values <= np.median(values)
        covered.extend(np.abs(found.mean - truth)[better] < 1.96 * found.sd[better])
        noises.append(found.noise)
    assert 0.9 < np.mean(covered) < 0.995
    assert 0.02 < np.median(noises) < 0.06  # 0.04


def test_what_a_seed_does_to_all_is_taken_out():
    rng = np.random.default_rng(3)
    points, truth, _ = bowl(rng)
    results = once(points, truth)
    shifted = Results(points, results.config, results.seed, truth + 2.0 * (results.seed == 4))
    found = shrunken_means(shifted).mean
    assert truth[found.argmin()] < np.quantile(truth, 0.05)
    assert np.corrcoef(found, truth)[0, 1] > 0.95 > np.corrcoef(shifted.value, truth)[0, 1]


def test_without_noise_means_stay_where_they_are():
    points, truth, _ = bowl(np.random.default_rng(0))
    found = shrunken_means(twice(points, truth, truth))
    better = truth <= np.median(truth)
    np.testing.assert_allclose(found.mean[better], truth[better], atol=1e-3)
    assert found.mean.argmin() == truth.argmin()
    assert noise_share(found.mean, found.noise) < 0.01


def test_many_seeds_outweigh_the_neighbours():
    points, _, values = bowl(np.random.default_rng(1))
    one, results = values.argmin(), once(points, values)
    config = np.append(results.config, np.full(40, one))
    own = values[one] + 0.2 * np.random.default_rng(2).standard_normal(40)
    seed = np.append(results.seed, np.arange(40))
    many = Results(points, config, seed, np.append(values, own))
    few = shrunken_means(results).mean[one] - values[one]
    assert abs(shrunken_means(many).mean[one] - many.means[one]) < abs(few) / 3


def test_scale_and_shift_change_nothing_else():
    points, _, values = bowl(np.random.default_rng(2))
    found = shrunken_means(once(points, values))
    other = shrunken_means(once(points, 1e-4 * values - 3.0))
    np.testing.assert_allclose(other.mean, 1e-4 * found.mean - 3.0, rtol=1e-9)
    np.testing.assert_allclose(other.sd, 1e-4 * found.sd, rtol=1e-6)
    assert other.noise == pytest.approx(1e-8 * found.noise)


@pytest.mark.parametrize("k", [0, 1, 3, 6])
def test_few_configurations_keep_their_means(k):
    values = np.arange(max(0, k - 1.0))
    each = np.arange(len(values))
    found = shrunken_means(Results(np.zeros((k, 0)), each, each, values))
    np.testing.assert_array_equal(found.mean, [*values, np.inf][:k])


def test_equal_means_stay_equal():
    points = np.random.default_rng(0).random((30, 2))
    np.testing.assert_array_equal(shrunken_means(once(points, np.ones(30))).mean, 1.0)
    half = np.where(np.arange(30) < 20, 1.0, 5.0)
    np.testing.assert_array_equal(shrunken_means(once(points, half)).mean, half)


def test_shares_grow_with_the_noise():
    means = np.linspace(0.0, 1.0, 40)
    shares = [noise_share(means, noise) for noise in (0.0, 1e-4, 1e-2, 1.0, 1e4)]
    assert shares == sorted(shares)
    assert (shares[0], final_share(shares[0])) == (0.0, 0.0)
    assert final_share(shares[-1]) == pytest.approx(0.3, rel=1e-3)
