"""``Rolling`` over periods that no bias can be fitted on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

from trueup import Rolling, evaluate
from trueup.errors import TrueupWarning, UndefinedMetricError

RNG = np.random.default_rng(0)
MONTH = np.repeat(np.arange(6), 200)
TIMES = np.datetime64("2020-01") + MONTH
MARGIN = RNG.normal(size=1200)
LABEL = (RNG.random(1200) < expit(MARGIN - 0.3)).astype(int)


def rolling(label, times=TIMES, **options):
    return evaluate(label, expit(MARGIN), split=Rolling("month"), times=times, **options)


def test_a_month_without_positives_is_joined_with_the_next_and_named():
    label = np.where(MONTH == 2, 0, LABEL)
    with pytest.warns(TrueupWarning, match="1 of 6 periods lack rows of every class") as said:
        result = rolling(label)
    assert "that of 2020-03" in str(said[0].message)
    merged = np.where(MONTH > 2, MONTH - 1, MONTH)
    by_hand = evaluate(label, expit(MARGIN), split=Rolling(1), times=merged)
    assert result.calibrated == by_hand.calibrated
    assert result.fold_bias_terms == by_hand.fold_bias_terms
    assert result.n_scored == 1000


def test_the_last_month_is_scored_as_it_is():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrueupWarning)
        assert rolling(np.where(MONTH == 5, 0, LABEL)).n_scored == 1000


def test_first_months_without_positives_are_not_scored():
    with pytest.warns(TrueupWarning, match="2 of 6 periods"):
        assert rolling(np.where(MONTH < 2, 0, LABEL)).n_scored == 600


def test_many_are_counted():
    times = np.arange(1200)
    with pytest.warns(TrueupWarning, match="that of 4 and 597 more"):
        evaluate(np.arange(1200) % 2, expit(MARGIN), split=Rolling(1), times=times)


def test_no_month_to_fit_on_is_undefined_and_named():
    with pytest.raises(
        UndefinedMetricError, match="periods before the last; got none from that of"
    ):
        rolling(np.where(MONTH < 5, 0, LABEL))


def test_rows_of_weight_zero_are_no_positives():
    weight = np.where((MONTH == 2) & (LABEL == 1), 0.0, 1.0)
    with pytest.warns(TrueupWarning, match="2020-03"):
        rolling(LABEL, sample_weight=weight)


def test_months_without_counts_are_joined():
    count = np.where(MONTH == 1, 0, RNG.poisson(2.0, 1200))
    with pytest.warns(TrueupWarning, match="lack a positive count"):
        result = evaluate(
            count, np.full(1200, 2.0), loss="poisson_deviance", split=Rolling("month"), times=TIMES
        )
    assert len(result.fold_bias_terms) == 4
