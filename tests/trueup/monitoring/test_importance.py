import numpy as np
import pytest
from scipy.stats import norm

from trueup.monitoring.panel.importance import (
    effective_sample_size,
    pooled_scale,
    rulsif_weights,
)


def slow_weights(reference, operational, width, ridge, seed):
    """RuLSIF written out with loops, for a given width and ridge."""
    rng = np.random.default_rng(seed)
    ref, op = pooled_scale(reference, operational)
    centers = op[rng.choice(len(op), min(100, len(op)), replace=False)]
    distances = [((a - c) ** 2).sum() for a in op for c in centers]
    unit = np.median([d for d in distances if d > 0]) / 2

    def phi(a):
        return np.array([np.exp(-((a - c) ** 2).sum() / (2 * width**2 * unit)) for c in centers])

    h, target = np.zeros((len(centers), len(centers))), np.zeros(len(centers))
    for a in op:
        h += 0.1 * np.outer(phi(a), phi(a)) / len(op)
        target += phi(a) / len(op)
    for a in ref:
        h += 0.9 * np.outer(phi(a), phi(a)) / len(ref)
    theta = np.linalg.solve(h + ridge * np.eye(len(centers)), target)
    return np.array([max(phi(a) @ theta, 0.0) for a in ref])


def test_weights_equal_the_slow_twin_for_one_width_and_ridge(monkeypatch):
    rng = np.random.default_rng(0)
    reference, operational = rng.normal(size=(60, 2)), rng.normal(0.5, 1, size=(40, 2))
    expected = slow_weights(reference, operational, 0.6, 0.1, seed=3)
    monkeypatch.setattr("trueup.monitoring.panel.importance._WIDTHS", (0.6,))
    monkeypatch.setattr("trueup.monitoring.panel.importance._RIDGES", (0.1,))
    np.testing.assert_allclose(rulsif_weights(reference, operational, 3), expected, rtol=1e-9)


def test_weights_follow_the_true_relative_ratio():
    rng = np.random.default_rng(1)
    reference, operational = rng.normal(size=(2_000, 1)), rng.normal(1.0, 0.5, size=(1_000, 1))
    p_ref, p_op = norm.pdf(reference[:, 0]), norm.pdf(reference[:, 0], 1.0, 0.5)
    truth = p_op / (0.1 * p_op + 0.9 * p_ref)
    weights = rulsif_weights(reference, operational)
    assert np.corrcoef(weights, truth)[0, 1] > 0.95
    assert np.abs(weights - truth).mean() < 0.2


def test_the_same_distribution_gives_weights_near_one():
    rng = np.random.default_rng(2)
    weights = rulsif_weights(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)))
    assert weights.mean() == pytest.approx(1.0, abs=0.1)
    assert effective_sample_size(weights) > 0.9


def test_identical_rows_do_not_divide_by_zero():
    assert np.isfinite(rulsif_weights(np.zeros((40, 2)), np.zeros((10, 2)))).all()


@pytest.mark.parametrize("m", [1, 2, 3])
def test_few_operational_rows_give_weights_without_a_warning(m):
    rng = np.random.default_rng(0)
    weights = rulsif_weights(rng.normal(size=(50, 2)), rng.normal(size=(m, 2)))
    assert np.isfinite(weights).all()
    assert weights.any()
    assert m > 1 or (weights == 1.0).all()


def test_effective_sample_size_by_hand():
    assert effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0])) == 0.5
    assert effective_sample_size(np.ones(7)) == 1.0
    assert effective_sample_size(np.zeros(3)) == 0.0


def test_weights_equal_those_of_densratio_for_one_width_and_ridge(monkeypatch):
    """The ridge is so large that no coefficient is negative: densratio would set those to 0."""
    densratio = pytest.importorskip("densratio")
    rng = np.random.default_rng(1)
    reference, operational = rng.normal(size=(70, 2)), rng.normal(0.7, 0.8, size=(50, 2))
    monkeypatch.setattr("trueup.monitoring.panel.importance._WIDTHS", (1.0,))
    monkeypatch.setattr("trueup.monitoring.panel.importance._RIDGES", (10.0,))
    ref, op = pooled_scale(reference, operational)
    distances = ((op[:, None] - op[None]) ** 2).sum(-1)
    sigma = (np.median(distances[distances > 0.0]) / 2.0) ** 0.5
    other = densratio.densratio(
        op, ref, method="RuLSIF", alpha=0.1, sigma_range=[sigma], lambda_range=[10.0], verbose=False
    )
    np.testing.assert_allclose(
        rulsif_weights(reference, operational), other.compute_density_ratio(ref), rtol=1e-6
    )
