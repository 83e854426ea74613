"""Theorem 4.1 and Corollary 4.2: the calibrated quadratic loss of linear regression.

Features and label are jointly Gaussian, so the risk of each fitted model is known exactly and no
validation rows are drawn. What is left random are the training samples.
"""

from __future__ import annotations

import numpy as np
import pytest

from trueup.comparison import variance_reduction

N_TRAIN, N_MODELS, N_FEATURES = 30, 6000, 6
MEAN, SPREAD, NOISE = 0.5, 0.8, 1.5
COEFFICIENTS = np.linspace(0.5, 1.5, N_FEATURES)


def exact_risks(n_used, random_state):
    """Return R_e and R_e1 of models fitted on the first ``n_used`` features, shape (N_MODELS,)."""
    rng = np.random.default_rng(random_state)
    X = MEAN + SPREAD * rng.standard_normal((N_MODELS, N_TRAIN, N_FEATURES))
    y = 2.0 + X @ COEFFICIENTS + NOISE * rng.standard_normal((N_MODELS, N_TRAIN))
    design = np.concatenate([np.ones((N_MODELS, N_TRAIN, 1)), X[..., :n_used]], axis=2)
    normal = np.swapaxes(design, 1, 2)
    fitted = np.linalg.solve(normal @ design, normal @ y[..., None])[..., 0]
    error = COEFFICIENTS - np.pad(fitted[:, 1:], ((0, 0), (0, N_FEATURES - n_used)))
    bias = 2.0 - fitted[:, 0] + MEAN * error.sum(axis=1)
    calibrated = NOISE**2 + SPREAD**2 * (error**2).sum(axis=1)
    return calibrated + bias**2, calibrated


@pytest.fixture(scope="module", params=[N_FEATURES, N_FEATURES - 2], ids=["all", "two left out"])
def risks(request):
    return exact_risks(request.param, random_state=request.param)


def test_scaled_calibrated_risk_has_the_mean_of_the_vanilla_risk(risks):
    """Theorem 4.1: (1 + 1/n) E[R_e1] = E[R_e]."""
    vanilla, calibrated = risks
    excess = vanilla - (1 + 1 / N_TRAIN) * calibrated
    error = excess.std(ddof=1) / np.sqrt(N_MODELS)
    assert abs(excess.mean()) <= 3 * error
    # The test can fail: without the factor the means are many errors apart.
    assert (vanilla - calibrated).mean() > 20 * error


def test_scaled_calibrated_risk_has_less_variance(risks):
    """Corollary 4.2: var((1 + 1/n) R_e1) < var(R_e)."""
    vanilla, calibrated = risks
    reduction = variance_reduction(vanilla, (1 + 1 / N_TRAIN) * calibrated)
    assert reduction.low > 0.0


def test_calibration_keeps_the_order_of_two_feature_sets():
    """Corollary 4.2, Eq. 7: the ratio of mean risks does not depend on the features."""
    (first, first_calibrated), (second, second_calibrated) = (
        exact_risks(used, random_state=10 + used) for used in (N_FEATURES, N_FEATURES - 2)
    )
    assert first.mean() < second.mean()
    assert first_calibrated.mean() < second_calibrated.mean()
    ratios = first.mean() / first_calibrated.mean(), second.mean() / second_calibrated.mean()
    assert ratios == pytest.approx((1 + 1 / N_TRAIN,) * 2, abs=0.003)


def test_intercept_is_independent_of_the_slopes_given_the_centre():
    """Lemma A.1: the squared bias is unrelated to the calibrated risk beyond its scale."""
    vanilla, calibrated = exact_risks(N_FEATURES, random_state=3)
    standardised = (vanilla - calibrated) / calibrated
    correlation = np.corrcoef(standardised, calibrated)[0, 1]
    assert abs(correlation) <= 3 / np.sqrt(N_MODELS)
