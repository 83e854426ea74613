"""Standard errors against the spread of the metrics over 800 redrawn validation sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from trueup import CrossFit, InSample, evaluate

N_SETS, N = 800, 400


def overconfident(rng):
    logit = rng.normal(-0.5, 1.5, N)
    return {"y_true": rng.random(N) < expit(0.6 * logit - 0.4), "y_logit": logit}


def regression(rng):
    y_pred = rng.normal(size=N)
    return {"y_true": y_pred + 0.4 + rng.standard_t(8, size=N), "y_pred": y_pred}


def counts(rng):
    rate = rng.gamma(3.0, size=N)
    return {"y_true": rng.poisson(1.3 * rate), "y_pred": rate}


def classes(rng):
    logit = rng.normal(size=(N, 3))
    noise = rng.gumbel(size=(N, 3)) + np.array([0.4, 0.0, -0.4])
    return {"y_true": (logit + noise).argmax(axis=1), "y_pred": softmax(logit, axis=1)}


def weighted(rng):
    return {**regression(rng), "sample_weight": rng.gamma(2.0, size=N)}


SETUPS = {
    "log loss": ("log_loss", overconfident, CrossFit()),
    "log loss in sample": ("log_loss", overconfident, InSample()),
    "brier": ("brier_score", overconfident, CrossFit()),
    "regression": ("mean_squared_error", regression, CrossFit()),
    "weighted": ("mean_squared_error", weighted, CrossFit()),
    "counts": ("poisson_deviance", counts, CrossFit()),
    "classes": ("log_loss", classes, InSample()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETUPS)
def test_standard_errors_equal_the_spread_over_validation_sets(name):
    loss, draw, split = SETUPS[name]
    rng = np.random.default_rng(17)
    results = [evaluate(**draw(rng), loss=loss, split=split) for _ in range(N_SETS)]
    claimed = np.mean([result.standard_errors for result in results], axis=0)
    spread = np.std([(result.vanilla, result.calibrated) for result in results], axis=0, ddof=1)
    ratio = claimed / spread
    # The ratio has a Monte-Carlo error of 1 / sqrt(2 * 800) = 2.5%.
    assert ratio == pytest.approx([1.0, 1.0], abs=0.1)
