"""What the consensus promises, by seeded simulation; a file of its own, since it takes longest."""

import numpy as np
import pytest

from trueup.monitoring import ConsensusEstimator


def draw(rng):
    x = rng.normal(size=(300, 4))
    f = x[:, 0]
    return x, f, f + 0.3 * x[:, 1] ** 2 + 0.5 * rng.normal(size=300)


@pytest.mark.slow
def test_intervals_of_the_consensus_cover_on_the_same_distribution():
    # A fit takes ten times as long as an estimate. Verdicts on batches of one fit correlate by 0.1,
    # so that eight batches of 26 fits say as much as one batch of 120; the error is that over fits.
    fits, batches, shares, ratios = 26, 8, [], []
    for trial in range(fits):
        rng = np.random.default_rng(trial)
        consensus, covered = ConsensusEstimator(random_state=trial).fit(*draw(rng)), 0
        for _ in range(batches):
            x, f, y = draw(rng)
            found = consensus.estimate(x, f)
            covered += found.low <= ((y - f) ** 2).mean() <= found.high
            ratios.append(found.high / found.low)
        shares.append(covered / batches)
    error = min(np.std(shares, ddof=1) / np.sqrt(fits), np.sqrt(0.85 * 0.15 / 120))
    assert np.mean(shares) >= 0.85 - 2.0 * error
    assert np.median(ratios) <= 2.0


@pytest.mark.slow
def test_the_brier_score_is_estimated_without_bias_under_shift():
    estimates, truths = [], []
    for trial in range(3):  # whose ratio varies by .03
        rng = np.random.default_rng(trial)
        x, x_op = rng.normal(size=(5_000, 4)), rng.normal(0.7, 0.8, size=(5_000, 4))
        p = 1.0 / (1.0 + np.exp(-2.0 * x[:, 0]))
        y = (rng.random(5_000) < p).astype(float)
        f, f_op = 0.9 * p + 0.05, 0.9 / (1.0 + np.exp(-2.0 * x_op[:, 0])) + 0.05
        p_op = (f_op - 0.05) / 0.9
        estimates.append(ConsensusEstimator().fit(x, f, y).estimate(x_op, f_op).mse)
        truths.append((p_op * (1.0 - p_op) + (p_op - f_op) ** 2).mean())
    assert np.mean(estimates) / np.mean(truths) == pytest.approx(1.0, abs=0.10)
