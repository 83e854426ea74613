from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from trueup.comparison import metric_accuracy, paired_win_rate
from trueup.errors import InvalidInputError

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=15)


def test_win_rate_by_hand():
    rate = paired_win_rate([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 3.0, 1.0])
    assert rate.value == 2.5 / 4
    assert rate.n_pairs == 4


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(("wins", "n"), [(0, 1), (0, 7), (3, 7), (7, 7), (12, 40)])
def test_interval_equals_scipys_exact_binomial(wins, n, level):
    a = np.where(np.arange(n) < wins, 0.0, 2.0)
    rate = paired_win_rate(a, np.ones(n), confidence_level=level)
    exact = binomtest(wins, n).proportion_ci(level, method="exact")
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high), abs=1e-12)


@given(pairs)
def test_interval_holds_both_ways_of_breaking_ties(drawn):
    a, b = np.array(drawn, dtype=float).T
    rate = paired_win_rate(a, b)
    for winning in (a < b, a <= b):
        exact = binomtest(int(winning.sum()), len(a)).proportion_ci(method="exact")
        assert rate.low <= exact.low + 1e-12
        assert rate.high >= exact.high - 1e-12


@given(pairs)
def test_swapping_the_arms_mirrors_everything(drawn):
    a, b = np.array(drawn, dtype=float).T
    forward, backward = paired_win_rate(a, b), paired_win_rate(b, a)
    assert forward.value == pytest.approx(1 - backward.value)
    assert forward.low == pytest.approx(1 - backward.high)


def test_pairs_are_another_quantity_than_all_pairs():
    common = np.arange(20.0)
    assert paired_win_rate(common, common + 0.1).value == 1.0
    assert metric_accuracy(common, common + 0.1).value == pytest.approx(0.525)


def test_unequal_lengths_are_refused():
    with pytest.raises(InvalidInputError, match="a and b must have equal lengths; got 2 and 1"):
        paired_win_rate([1.0, 2.0], [1.0])
