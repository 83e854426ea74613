from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from trueup import InSample, evaluate
from trueup.losses import SoftmaxBrierScore, SoftmaxLogLoss

LOSS = SoftmaxBrierScore()


def rows(n=500, k=4):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, k))
    y = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    p = np.exp(logits + np.linspace(-0.4, 0.4, k))
    return y, p / p.sum(axis=1, keepdims=True)


def test_one_row_by_hand():
    value = LOSS.values(np.array([1.0]), np.log([[0.2, 0.5, 0.3]]))
    assert value == pytest.approx([0.2**2 + 0.5**2 + 0.3**2])


def test_mean_equals_that_of_scikit_learn():
    y, p = rows()
    vanilla = evaluate(y, p, loss=LOSS).vanilla
    assert vanilla == pytest.approx(brier_score_loss(y, p), rel=1e-12)


def test_values_equal_the_distance_to_the_one_hot_label():
    y, p = rows()
    slow = [sum((p[i, j] - (y[i] == j)) ** 2 for j in range(4)) for i in range(len(y))]
    assert LOSS.values(y.astype(float), np.log(p)) == pytest.approx(slow, rel=1e-12)


def test_bias_is_that_of_the_softmax_log_loss_and_makes_class_means_right():
    y, p = rows()
    result = evaluate(y, p, loss=LOSS, split=InSample())
    assert result.bias_term == evaluate(y, p, loss=SoftmaxLogLoss(), split=InSample()).bias_term
    corrected = np.exp(np.log(p) - np.array(result.bias_term))
    corrected /= corrected.sum(axis=1, keepdims=True)
    assert corrected.mean(axis=0) == pytest.approx(np.bincount(y) / len(y), abs=1e-10)
