from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve

from trueup import expected_calibration_error
from trueup.errors import InvalidInputError
from trueup.fields.reliability import reliability_curve


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.beta(1.0, 4.0, n)
    return rng.random(n) < proba**1.2, proba, rng.integers(0, 4, n).astype(float)


def test_two_bins_by_hand():
    curve = reliability_curve([0, 1, 1, 1], [0.2, 0.4, 0.7, 0.9], n_bins=2, strategy="uniform")
    np.testing.assert_allclose(curve.mean_proba, [0.3, 0.8])
    np.testing.assert_allclose(curve.rate, [0.5, 1.0])
    np.testing.assert_array_equal(curve.count, [2, 2])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curve_equals_scikit_learn(strategy):
    y, p, _ = rows()
    curve = reliability_curve(y, p, n_bins=10, strategy=strategy)
    rate, mean_proba = calibration_curve(y, p, n_bins=10, strategy=strategy)
    np.testing.assert_allclose(curve.rate, rate, rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.mean_proba, mean_proba, rtol=0, atol=1e-12)


def test_interval_equals_scipy_wilson():
    y, p, _ = rows()
    curve = reliability_curve(y, p, n_bins=7, confidence_level=0.9)
    for rate, n, low, high in zip(curve.rate, curve.count, curve.low, curve.high, strict=True):
        interval = binomtest(round(rate * n), n).proportion_ci(0.9, method="wilson")
        assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_mean_gap_is_the_expected_calibration_error(strategy):
    y, p, w = rows()
    curve = reliability_curve(y, p, strategy=strategy, sample_weight=w)
    gap = np.average(np.abs(curve.rate - curve.mean_proba), weights=curve.weight)
    ece = expected_calibration_error(y, p, strategy=strategy, sample_weight=w)
    assert gap == pytest.approx(ece, abs=1e-12)


def test_integer_weights_equal_repeated_rows_for_the_points():
    y, p, w = rows(300)
    repeated = np.repeat(np.arange(300), w.astype(int))
    weighted = reliability_curve(y, p, strategy="uniform", sample_weight=w)
    plain = reliability_curve(y[repeated], p[repeated], strategy="uniform")
    np.testing.assert_allclose(weighted.rate, plain.rate, atol=1e-12)
    np.testing.assert_allclose(weighted.mean_proba, plain.mean_proba, atol=1e-12)


def test_tied_probabilities_leave_bins_empty_and_out():
    curve = reliability_curve([0, 1, 1], [0.5, 0.5, 0.5])
    assert len(curve.rate) == 1
    assert 0.0 <= curve.low[0] < curve.rate[0] < curve.high[0] <= 1.0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.5]), {}, r"y_proba must have as many rows as y_true \(2\); got 1"),
        (([], []), {}, "at least one row; got 0"),
        (([0, 1], [0.5, 1.5]), {}, r"must be in \[0, 1\]; got 1.5 at index 1"),
        (([0, 1], [0.5, 0.5]), {"n_bins": 0}, "n_bins must be an integer of at least 1; got 0"),
        (([0, 1], [0.5, 0.5]), {"strategy": "equal"}, 'strategy must be "uniform" or "quantile"'),
        (([0, 1], [0.5, 0.5]), {"confidence_level": 1.0}, r"confidence_level must be in \(0, 1\)"),
    ],
)
def test_bad_input_is_refused_with_its_message(arguments, options, message):
    with pytest.raises(InvalidInputError, match=message):
        reliability_curve(*arguments, **options)
