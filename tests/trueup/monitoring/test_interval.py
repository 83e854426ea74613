import numpy as np
import pytest

from trueup.monitoring.trust.interval import (
    batch_sampling_variance,
    log_interval,
    log_spread,
    log_variance,
    weighted_sampling_variance,
)


def test_interval_by_hand():
    low, high = log_interval(2.0, 0.04)
    assert low == pytest.approx(2.0 * np.exp(-1.6448536 * 0.2))
    assert high == pytest.approx(2.0 * np.exp(1.6448536 * 0.2))
    assert log_interval(0.0, 1.0) == (0.0, 0.0)


def test_a_batch_of_equal_rows_has_the_chi_square_variance():
    assert batch_sampling_variance(np.full(50, 3.0)) == pytest.approx(2 / 50)
    assert batch_sampling_variance(np.zeros(5)) == 0.0
    rng = np.random.default_rng(0)
    realized = np.log((rng.normal(size=(4_000, 50)) ** 2).mean(1))
    assert realized.var() == pytest.approx(2 / 50, rel=0.1)


def test_weighted_variance_by_hand():
    errors, weights = np.array([1.0, 3.0]), np.array([1.0, 1.0])
    assert weighted_sampling_variance(errors, weights, 10) == pytest.approx(1.0 / (10 * 4.0))
    assert weighted_sampling_variance(errors, np.zeros(2), 10) == 0.0
    repeated = weighted_sampling_variance(np.repeat(errors, [1, 2]), np.ones(3), 10)
    assert weighted_sampling_variance(errors, np.array([1.0, 2.0]), 10) == pytest.approx(repeated)


def test_log_variance_is_that_of_numpy_and_takes_zeros():
    values = np.array([1.0, 2.0, 4.0])
    assert log_variance(values) == pytest.approx(np.log(values).var(ddof=1))
    floored = np.log([1e-3, 1.0, 1.0])
    assert log_variance(np.array([0.0, 1.0, 1.0])) == pytest.approx(floored.var(ddof=1))
    assert log_variance(np.array([1.0])) == 0.0


def test_spread_is_the_variance_of_a_normal_and_resists_one_outlier():
    rng = np.random.default_rng(0)
    assert log_spread(np.exp(0.3 * rng.normal(size=20_000))) == pytest.approx(0.09, rel=0.05)
    close = np.array([1.0, 1.1, 1.2, 1.3, 1.4])
    far = np.array([1.0, 1.1, 1.2, 1.3, 50.0])
    assert log_spread(far) == log_spread(close)
    assert log_spread(np.zeros(4)) == 0.0
