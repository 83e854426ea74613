from __future__ import annotations

import numpy as np
import pytest

from trueup.decide.race import seed_noise


def test_two_configurations_by_hand():
    # Differences 1, 3 around 2: the residuals are +-1/2 in each row, one degree of freedom in all.
    values = np.array([[1.0, 5.0], [0.0, 2.0]])
    noise = seed_noise(values, np.array([2, 2]))
    assert noise.pooled_dof == 1.0
    assert noise.pooled == pytest.approx(1.0)
    np.testing.assert_allclose(noise.own_dof, [0.5, 0.5])
    np.testing.assert_allclose(noise.own, [1.0, 1.0])
    np.testing.assert_allclose(noise.moderated, [1.0, 1.0])


def test_pooled_variance_equals_least_squares():
    rng = np.random.default_rng(0)
    n_seeds = np.array([4, 3, 2, 4, 3])
    values = rng.normal(size=(5, 4)) + rng.normal(size=4) + 10.0 * rng.normal(size=(5, 1))
    rows, columns = np.nonzero(np.arange(4) < n_seeds[:, None])
    design = np.zeros((len(rows), 9))
    design[np.arange(len(rows)), rows] = 1.0
    design[np.arange(len(rows)), 5 + columns] = 1.0
    fitted = design @ np.linalg.lstsq(design, values[rows, columns], rcond=None)[0]
    squares = ((values[rows, columns] - fitted) ** 2).sum()
    noise = seed_noise(values, n_seeds)
    assert noise.pooled_dof == len(rows) - 8
    # Four sweeps of alternating means come close to least squares on a ragged table, not onto it.
    assert noise.pooled == pytest.approx(squares / (len(rows) - 8), rel=0.02)


def test_an_effect_of_the_seed_is_not_noise():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(8, 5))
    moved = values + 100.0 * rng.normal(size=5)
    before = seed_noise(values, np.full(8, 5))
    after = seed_noise(moved, np.full(8, 5))
    np.testing.assert_allclose(after.own, before.own, rtol=1e-8)


def test_entries_beyond_the_finished_seeds_are_not_read():
    values = np.random.default_rng(2).normal(size=(6, 4))
    n_seeds = np.array([4, 3, 2, 1, 0, 2])
    spoiled = np.where(np.arange(4) < n_seeds[:, None], values, np.nan)
    np.testing.assert_array_equal(
        seed_noise(spoiled, n_seeds).cautious, seed_noise(values, n_seeds).cautious
    )


def test_leading_axes_are_independent():
    values = np.random.default_rng(3).normal(size=(7, 5, 4))
    n_seeds = np.random.default_rng(4).integers(0, 5, size=(7, 5))
    together = seed_noise(values, n_seeds)
    for index in range(7):
        alone = seed_noise(values[index], n_seeds[index])
        np.testing.assert_allclose(together.cautious[index], alone.cautious, rtol=1e-12)


def test_a_noisy_configuration_cannot_borrow_the_calm_of_the_others():
    values = np.random.default_rng(5).normal(size=(30, 6))
    values[0] *= 10.0
    noise = seed_noise(values, np.full(30, 6))
    assert noise.cautious[0] >= noise.own[0]
    assert noise.cautious[0] > noise.moderated[0]


def test_single_seeds_give_the_spread_between_configurations():
    values = np.array([[1.0], [2.0], [4.0]])
    noise = seed_noise(values, np.array([1, 1, 1]))
    assert noise.pooled_dof == 0.0
    assert noise.pooled == pytest.approx(np.var([1.0, 2.0, 4.0], ddof=1))
    np.testing.assert_allclose(noise.moderated, noise.pooled)
