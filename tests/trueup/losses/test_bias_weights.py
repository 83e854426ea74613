"""The bias term under weights of every kind: balanced, tiny, huge, zero, of very unequal size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.utils.class_weight import compute_sample_weight

from trueup import InSample, evaluate
from trueup.calibrators import ShiftCalibrator
from trueup.losses import solve_logit_shift

KINDS = {
    "balanced": lambda rng, y: compute_sample_weight("balanced", y),
    "balanced in float32": lambda rng, y: compute_sample_weight("balanced", y).astype(np.float32),
    "half for each class": lambda rng, y: np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum()),
    "inverse propensities": lambda rng, y: 1.0 / rng.uniform(1e-6, 1.0, len(y)),
    "powers of ten": lambda rng, y: 10.0 ** rng.uniform(-12, 12, len(y)),
    "tiny": lambda rng, y: rng.random(len(y)) * 1e-150,
    "huge": lambda rng, y: rng.random(len(y)) * 1e150,
    "counts": lambda rng, y: rng.integers(1, 5, len(y)).astype(float),
    "mostly zero": lambda rng, y: np.maximum(rng.random(len(y)) - 0.9, 0.0) + np.eye(1, len(y))[0],
    "one row outweighs all": lambda rng, y: np.where(np.arange(len(y)) == 1, 1e15, 1.0),
    "random": lambda rng, y: rng.random(len(y)) + 1e-3,
}


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 400))
def test_predicted_and_observed_shares_agree(kind, seed, n):
    rng = np.random.default_rng(seed)
    logit = rng.normal(scale=2.0, size=n)
    y = rng.integers(0, 2, n).astype(float)
    y[:2], y[-2:] = [0.0, 1.0], [1.0, 0.0]
    weight = KINDS[kind](rng, y).astype(np.float64)
    if not (weight[y == 0].any() and weight[y == 1].any()):
        return
    share = weight / weight.max()
    found = solve_logit_shift(logit, y, weight).value
    miss = share @ (expit(logit - found) - y) / share.sum()
    assert abs(miss) < 1e-10


def test_balanced_weights_of_random_labels_end():
    """In one of six such draws both classes have more than half of the weight, by rounding."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        y = rng.integers(0, 2, rng.integers(20, 3000)).astype(float)
        weight = compute_sample_weight("balanced", y)
        shift = solve_logit_shift(rng.normal(size=len(y)), y, weight)
        assert shift.steps < 20


def test_balanced_weights_go_through_every_caller():
    rng = np.random.default_rng(1)
    for n in range(20, 60):
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        weight, p = compute_sample_weight("balanced", y), rng.uniform(0.1, 0.9, n)
        result = evaluate(y, p, sample_weight=weight, split=InSample())
        shift = ShiftCalibrator().fit(p, y, sample_weight=weight).bias_
        assert result.bias_term == pytest.approx(shift, abs=1e-12)
