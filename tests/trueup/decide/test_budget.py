from __future__ import annotations

import numpy as np
import pytest

from trueup.decide.noise import final_share, noise_share, shrunken_means


def bowl(rng, k=60, noise=0.2):
    points = rng.random((k, 2))
    truth = ((points - 0.5) ** 2).sum(1) * 4.0
    return points, truth, truth + noise * rng.standard_normal(k)


def test_the_lowest_shrunken_mean_is_better_than_the_luckiest_seed():
    lucky, shrunken = [], []
    for seed in range(60):
        points, truth, means = bowl(np.random.default_rng(seed))
        found = shrunken_means(points, means, np.full(60, 0.04))
        lucky.append(truth[means.argmin()])
        shrunken.append(truth[found.mean.argmin()])
    assert np.mean(shrunken) < 0.6 * np.mean(lucky)


def test_posterior_intervals_cover_the_truth():
    covered = []
    for seed in range(60):
        points, truth, means = bowl(np.random.default_rng(seed))
        found = shrunken_means(points, means, np.full(60, 0.04))
        better = means <= np.median(means)
        covered.extend(np.abs(found.mean - truth)[better] < 1.96 * found.sd[better])
    assert 0.93 < np.mean(covered) < 0.995


def test_without_noise_means_stay_where_they_are():
    points, truth, _ = bowl(np.random.default_rng(0))
    found = shrunken_means(points, truth, np.zeros(60))
    better = truth <= np.median(truth)
    np.testing.assert_allclose(found.mean[better], truth[better], atol=1e-6)
    assert found.mean.argmin() == truth.argmin()


def test_many_seeds_outweigh_the_neighbours():
    points, _, means = bowl(np.random.default_rng(1))
    one, many = means.argmin(), 0.04 / np.where(np.arange(60) == means.argmin(), 400, 1)
    few = shrunken_means(points, means, np.full(60, 0.04)).mean[one]
    assert (
        abs(shrunken_means(points, means, many).mean[one] - means[one]) < abs(few - means[one]) / 5
    )


def test_scale_and_shift_change_nothing_else():
    points, _, means = bowl(np.random.default_rng(2))
    found = shrunken_means(points, means, np.full(60, 0.04))
    other = shrunken_means(points, 1e-4 * means - 3.0, np.full(60, 0.04e-8))
    np.testing.assert_allclose(other.mean, 1e-4 * found.mean - 3.0, rtol=1e-9)
    np.testing.assert_allclose(other.sd, 1e-4 * found.sd, rtol=1e-6)


@pytest.mark.parametrize("k", [0, 1, 3, 6])
def test_few_configurations_keep_their_means(k):
    means = np.array([np.inf, *np.arange(k - 1.0)]) if k else np.zeros(0)
    found = shrunken_means(np.zeros((k, 0)), means, np.ones(k))
    np.testing.assert_array_equal(found.mean, means)


def test_equal_means_stay_equal():
    found = shrunken_means(np.random.default_rng(0).random((30, 2)), np.ones(30), np.ones(30))
    np.testing.assert_array_equal(found.mean, 1.0)
    half = np.where(np.arange(30) < 20, 1.0, 5.0)
    found = shrunken_means(np.random.default_rng(0).random((30, 2)), half, np.ones(30))
    np.testing.assert_array_equal(found.mean, half)


def test_shares_grow_with_the_noise():
    means = np.linspace(0.0, 1.0, 40)
    shares = [noise_share(means, noise) for noise in (0.0, 1e-4, 1e-2, 1.0, 1e4)]
    assert shares == sorted(shares)
    assert (shares[0], final_share(shares[0])) == (0.0, 0.0)
    assert final_share(shares[-1]) == 0.5
