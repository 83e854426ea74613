"""What the consensus promises, by seeded simulation; a file of its own, since it takes longest."""

import numpy as np
import pytest

from trueup.monitoring import ConsensusEstimator


@pytest.mark.slow
def test_intervals_of_the_consensus_cover_on_the_same_distribution():
    trials, covered, ratios = 120, 0, []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        x = rng.normal(size=(600, 4))
        f = x[:, 0]
        y = f + 0.3 * x[:, 1] ** 2 + 0.5 * rng.normal(size=600)
        estimate = ConsensusEstimator(random_state=trial).fit(x[:300], f[:300], y[:300])
        found = estimate.estimate(x[300:], f[300:])
        covered += found.low <= ((y - f)[300:] ** 2).mean() <= found.high
        ratios.append(found.high / found.low)
    coverage = covered / trials
    assert coverage >= 0.85 - 2.0 * np.sqrt(0.85 * 0.15 / trials)
    assert np.median(ratios) <= 2.0


@pytest.mark.slow
def test_the_brier_score_is_estimated_without_bias_under_shift():
    estimates, truths = [], []
    for trial in range(5):
        rng = np.random.default_rng(trial)
        x, x_op = rng.normal(size=(20_000, 4)), rng.normal(0.7, 0.8, size=(5_000, 4))
        p = 1.0 / (1.0 + np.exp(-2.0 * x[:, 0]))
        y = (rng.random(20_000) < p).astype(float)
        f, f_op = 0.9 * p + 0.05, 0.9 / (1.0 + np.exp(-2.0 * x_op[:, 0])) + 0.05
        p_op = (f_op - 0.05) / 0.9
        estimates.append(ConsensusEstimator().fit(x, f, y).estimate(x_op, f_op).mse)
        truths.append((p_op * (1.0 - p_op) + (p_op - f_op) ** 2).mean())
    assert np.mean(estimates) / np.mean(truths) == pytest.approx(1.0, abs=0.10)
