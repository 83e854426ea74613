import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from trueup.monitoring.panel.disagreement import calibrated_disagreement, fit_disagreement
from trueup.monitoring.panel.importance import neighbour_weights
from trueup.monitoring.panel.members import Reference, bayesian_bootstrap, rescaled, weighted


def test_neighbours_equal_scikit_learn():
    rng = np.random.default_rng(0)
    reference, operational, errors = (
        rng.normal(size=(100, 3)),
        rng.normal(size=(30, 3)),
        rng.random(100),
    )
    index = NearestNeighbors(n_neighbors=10).fit(reference).kneighbors(operational)[1]
    expected = errors[index].mean()
    assert neighbour_weights(reference, operational) @ errors == pytest.approx(expected)


def test_neighbours_of_a_reference_smaller_than_their_number_are_all_of_it():
    weights = neighbour_weights(np.zeros((3, 1)), np.ones((2, 1)))
    np.testing.assert_allclose(weights, 1 / 3)


def test_weighted_error_by_hand():
    reference = Reference(np.zeros((2, 1)), np.array([1.0, 4.0]), np.zeros(2))
    found = weighted(reference, np.array([3.0, 1.0]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    assert found.value == pytest.approx(7.0 / 4.0)
    np.testing.assert_allclose(found.replicates, [4.0])


def test_rescaled_follows_the_mean_error():
    reference = Reference(np.zeros((2, 1)), np.array([1.0, 3.0]), np.zeros(2))
    found = rescaled(10.0, reference, np.array([[1.0, 1.0], [0.0, 2.0]]))
    assert found.value == 10.0
    np.testing.assert_allclose(found.replicates, [15.0])
    perfect = Reference(np.zeros((2, 1)), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(rescaled(1.0, perfect, np.ones((3, 2))).replicates, [1.0, 1.0])


def test_bootstrap_weights_are_dirichlet():
    weights = bayesian_bootstrap(50, random_state=0)
    np.testing.assert_array_equal(weights[0], 1.0)
    np.testing.assert_allclose(weights.sum(axis=1), 50.0)
    # A Dirichlet(1, ..., 1) weight times n has variance (n - 1) / (n + 1).
    assert weights[1:].var() == pytest.approx(49 / 51, rel=0.1)


def slow_line(errors, disagreement):
    """Ridge regression on the scaled disagreement by least squares with an extra row."""
    n, unit = len(errors), disagreement.mean()
    ridge = 0.1 * np.sqrt(n) * errors.std() / errors.mean()
    design = np.column_stack([np.ones(n), disagreement / unit])
    design = np.vstack([design, [0.0, np.sqrt(ridge)]])
    slope = np.linalg.lstsq(design, np.append(errors, 0.0), rcond=None)[0][1] / unit
    slope = min(max(slope, 0.0), 1.0)
    return max(errors.mean() - slope * disagreement.mean(), 0.0), slope


def slow_doubly_robust(errors, disagreement, weights, operational):
    base, slope = slow_line(errors, disagreement)
    fold = np.arange(len(errors)) % 5
    residual = np.empty(len(errors))
    for index in range(5):
        a, b = slow_line(errors[fold != index], disagreement[fold != index])
        out = fold == index
        residual[out] = errors[out] - a - b * disagreement[out]
    return max(base + slope * operational + np.average(residual, weights=weights), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_calibrated_disagreement_equals_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    disagreement = rng.exponential(size=80)
    errors = 0.3 * disagreement * rng.chisquare(1, size=80) + 0.1
    weights = rng.random(80)
    found = calibrated_disagreement(errors, disagreement, weights, 2.0, np.ones((1, 80)))
    expected = slow_doubly_robust(errors, disagreement, weights, 2.0)
    assert found[0] == pytest.approx(expected, rel=1e-9)


def test_no_disagreement_leaves_the_weighted_error():
    errors, weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.arange(6.0)
    found = calibrated_disagreement(errors, np.zeros(6), weights, 0.0, np.ones((1, 6)))
    fold_means = np.array([errors[np.arange(6) % 5 != i % 5].mean() for i in range(6)])
    expected = errors.mean() + np.average(errors - fold_means, weights=weights)
    assert found[0] == pytest.approx(expected)


def test_disagreement_is_small_for_a_good_model_and_large_for_a_bad_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = 10 * x[:, 0]
    good, at_good = fit_disagreement(x, y, y)
    bad, at_bad = fit_disagreement(x, -y, y)
    assert at_good.mean() < 0.01 * at_bad.mean()
    assert good.squared(x, y).mean() < 0.01 * bad.squared(x, -y).mean()
    assert bad.squared(x, -y).mean() == pytest.approx(400.0, rel=0.2)
