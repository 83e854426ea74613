from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit


@pytest.fixture(autouse=True)
def evaluate_by_rows(monkeypatch):
    """Let ``evaluate`` go over all rows, also where points are its default: it is the yardstick."""
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 10**9)


@pytest.fixture
def evaluate_by_points(evaluate_by_rows, monkeypatch):
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 1_000)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def draw(rng):
    """Return labels, logits and weights of a model that is off in level and slope."""

    def drawn(n, sd=1.2):
        logit = rng.normal(-1.6, sd, n)
        y_true = (rng.random(n) < expit(0.7 * logit + 0.2)).astype(float)
        return y_true, logit, rng.uniform(0.0, 3.0, n)

    return drawn
