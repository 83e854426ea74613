from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm

from trueup.comparison import metric_accuracy
from trueup.errors import InvalidInputError

values = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


def slow_accuracy(a, b):
    return np.mean([(x < y) + 0.5 * (x == y) for x in a for y in b])


def slow_interval(value, m, n, level):
    """Scan for all theta within z standard errors, after Hanley and McNeil."""
    theta = np.linspace(0.0, 1.0, 200_001)
    z = norm.ppf(0.5 + level / 2)
    q1, q2 = theta / (2 - theta), 2 * theta**2 / (1 + theta)
    size = (m + n) / 2
    variance = theta * (1 - theta) + (size - 1) * (q1 - theta**2) + (size - 1) * (q2 - theta**2)
    inside = theta[(value - theta) ** 2 <= z**2 * variance / (m * n) + 1e-12]
    return inside.min(), inside.max()


def test_three_runs_by_hand():
    accuracy = metric_accuracy([1.0, 2.0, 5.0], [2.0, 4.0, 6.0])
    # 1 beats 3, 2 beats 2 and ties 1, 5 beats 1: 6.5 of 9
    assert accuracy.value == pytest.approx(6.5 / 9)
    assert accuracy.n_pairs == 9


def test_interval_equals_a_published_example():
    # The nonoverlap of all pairs of these two phases and its Newcombe interval, as printed by the
    # R package SingleCaseES.
    phase_a, phase_b = [20, 20, 26, 25, 22, 23], [28, 25, 24, 27, 30, 30, 29]
    accuracy = metric_accuracy(phase_a, phase_b)
    assert accuracy.value == pytest.approx(0.9166667, abs=1e-7)
    assert (accuracy.low, accuracy.high) == pytest.approx((0.5973193600, 0.9859976894), abs=1e-9)


@given(values, values)
def test_value_equals_pair_by_pair_counting(a, b):
    assert metric_accuracy(a, b).value == pytest.approx(slow_accuracy(a, b), abs=1e-12)


@given(values, values)
def test_value_equals_scipys_mann_whitney(a, b):
    statistic = mannwhitneyu(b, a).statistic if len(set(a + b)) > 1 else len(a) * len(b) / 2
    assert metric_accuracy(a, b).value == pytest.approx(statistic / (len(a) * len(b)), abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(("m", "n"), [(5, 5), (4, 9), (30, 12)])
def test_interval_equals_a_scan(m, n, level):
    rng = np.random.default_rng(m * n)
    for shift in (-3.0, 0.0, 1.0, 9.0):
        accuracy = metric_accuracy(
            rng.normal(size=m), rng.normal(size=n) + shift, confidence_level=level
        )
        low, high = slow_interval(accuracy.value, m, n, level)
        assert (accuracy.low, accuracy.high) == pytest.approx((low, high), abs=2e-5)


@given(values, values)
def test_swapping_the_arms_mirrors_everything(a, b):
    forward, backward = metric_accuracy(a, b), metric_accuracy(b, a)
    assert forward.value == pytest.approx(1 - backward.value, abs=1e-12)
    assert forward.low == pytest.approx(1 - backward.high, abs=1e-9)
    assert forward.low <= forward.value <= forward.high


def test_interval_keeps_a_length_at_the_ends():
    accuracy = metric_accuracy(np.arange(5.0), np.arange(5.0) + 10)
    assert accuracy.value == accuracy.high == 1.0
    assert 0.4 < accuracy.low < 0.9


def test_monotone_transformations_change_nothing():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=9), rng.normal(size=7)
    assert metric_accuracy(a, b) == metric_accuracy(np.exp(a), np.exp(b))


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ([], r"a must be one-dimensional with at least 1 values; got shape \(0,\)"),
        ([[1.0]], r"a must be one-dimensional with at least 1 values; got shape \(1, 1\)"),
        ([1.0, np.nan], "a must be finite; got nan at index 1. Rerun the failed run"),
        (["low"], r"a must be an array of numbers; got \['low'\]. Pass one metric value"),
        ({0: 0.4}, "a must be an array of numbers; got {0: 0.4}"),
        ([np.inf], "a must be finite; got inf at index 0"),
    ],
)
def test_bad_values_are_refused(a, message):
    with pytest.raises(InvalidInputError, match=message):
        metric_accuracy(a, [1.0])


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_bad_level_is_refused(level):
    with pytest.raises(InvalidInputError, match=r"confidence_level must be in \(0, 1\); got"):
        metric_accuracy([1.0], [2.0], confidence_level=level)
