"""Groups of rows are resampled as the rows themselves would be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from trueup import bias_cost_interval
from trueup.evaluation import resampled_costs
from trueup.evaluation.resampled_costs import signed_roots
from trueup.read.rows import read_rows

N, N_RESAMPLES = 21_000, 300
RNG = np.random.default_rng(0)
LOGIT = RNG.normal(-1.6, 1.2, N)
LABEL = (RNG.random(N) < expit(LOGIT - 0.05)).astype(float)
TARGET = LOGIT + 0.03 + RNG.standard_t(4, N)
COUNT = RNG.poisson(1.02 * np.exp(LOGIT))
WEIGHT = RNG.uniform(0.0, 3.0, N) * (RNG.random(N) < 0.9)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"y_true": LABEL, "y_logit": LOGIT, "loss": "log_loss"},
        {"y_true": TARGET, "y_pred": LOGIT, "loss": "mean_squared_error"},
        {"y_true": COUNT, "y_pred": np.exp(LOGIT), "loss": "poisson_deviance"},
    ],
    ids=["log loss", "squared error", "counts"],
)
def test_roots_of_groups_spread_like_those_of_rows(arguments, weight, monkeypatch):
    rows = read_rows(**arguments, sample_weight=weight)
    grouped = signed_roots(rows, 4 * N_RESAMPLES, np.random.default_rng(1))
    monkeypatch.setattr(resampled_costs, "_FEW_ROWS", N)
    exact = signed_roots(rows, N_RESAMPLES, np.random.default_rng(2))
    error = exact.std() / np.sqrt(N_RESAMPLES)
    assert abs(grouped.mean() - exact.mean()) < 4.0 * error
    assert abs(grouped.std() - exact.std()) < 4.0 * error / np.sqrt(2.0)


def test_a_loss_without_residuals_is_resampled_row_by_row(monkeypatch):
    monkeypatch.setattr(resampled_costs, "_FEW_ROWS", 100)
    monkeypatch.setattr(resampled_costs, "_GROUPED", ())
    few = {"y_true": LABEL[:400], "y_logit": LOGIT[:400], "n_resamples": 100}
    found = bias_cost_interval(**few)
    monkeypatch.setattr(resampled_costs, "_FEW_ROWS", 1_000)
    assert found == bias_cost_interval(**few)
