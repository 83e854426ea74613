from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from trueup.comparison import variance_reduction
from trueup.errors import InvalidInputError, UndefinedMetricError


def correlated(n=40, sd=0.6, random_state=0):
    rng = np.random.default_rng(random_state)
    common = rng.normal(size=n)
    return common + 0.5 * rng.normal(size=n), sd * common


def test_half_the_spread_by_hand():
    reduction = variance_reduction([0.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    assert reduction.value == pytest.approx(0.5)
    assert (reduction.n, reduction.approximate) == (3, True)


def test_interval_holds_the_value():
    reduction = variance_reduction(*correlated())
    assert reduction.low < reduction.value < reduction.high < 1.0
    assert not reduction.approximate


def test_offset_and_common_scale_change_nothing():
    vanilla, calibrated = correlated()
    plain, moved = (
        variance_reduction(vanilla, calibrated),
        variance_reduction(7 + 3 * vanilla, 3 * calibrated - 1),
    )
    assert moved.value == pytest.approx(plain.value)
    assert (moved.low, moved.high) == pytest.approx((plain.low, plain.high))


def test_wider_level_widens_the_interval():
    narrow, wide = (variance_reduction(*correlated(), confidence_level=c) for c in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_interval_is_close_to_the_normal_theory_one_on_many_runs():
    # The logarithm of a ratio of correlated standard deviations has variance (1 - r^2) / (n - 1).
    vanilla, calibrated = correlated(n=600)
    reduction = variance_reduction(vanilla, calibrated)
    r = np.corrcoef(vanilla, calibrated)[0, 1]
    half = 1.96 * np.sqrt((1 - r**2) / 599)
    ends = 1 - (1 - reduction.value) * np.exp([half, -half])
    assert (reduction.low, reduction.high) == pytest.approx(
        ends, abs=0.1 * (1 - reduction.value) * half * 2
    )


def test_interval_equals_leaving_out_one_run_at_a_time():
    vanilla, calibrated = correlated(12)
    kept = [np.arange(12) != left_out for left_out in range(12)]
    ratios = [np.log(calibrated[k].std(ddof=1) / vanilla[k].std(ddof=1)) for k in kept]
    error = np.sqrt(11 / 12 * np.sum((ratios - np.mean(ratios)) ** 2))
    reduction = variance_reduction(vanilla, calibrated)
    ends = 1 - (1 - reduction.value) * np.exp(np.array([1, -1]) * t.ppf(0.975, 11) * error)
    assert (reduction.low, reduction.high) == pytest.approx(ends)


def test_interval_is_open_where_one_run_makes_all_the_spread():
    reduction = variance_reduction([0.0, 0.0, 1.0], [1.0, 2.0, 4.0])
    assert (reduction.low, reduction.high) == (-np.inf, 1.0)


def test_few_runs_are_labelled():
    assert str(variance_reduction(*correlated(12))).endswith("] approximately")
    assert str(variance_reduction(*correlated(30))).endswith("]")


def test_constant_metric_has_no_ratio():
    with pytest.raises(UndefinedMetricError, match="vanilla must vary over runs; got 1"):
        variance_reduction([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])


def test_unequal_lengths_and_too_few_runs_are_refused():
    with pytest.raises(InvalidInputError, match="vanilla and calibrated must have equal lengths"):
        variance_reduction([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InvalidInputError, match="calibrated must be one-dimensional"):
        variance_reduction([1.0, 2.0, 3.0], [1.0, 2.0])
