"""The interval of the bias cost and the test of no bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ttest_1samp

from trueup import bias_cost_interval, bias_test, evaluate
from trueup.errors import InvalidInputError, UndefinedMetricError

RNG = np.random.default_rng(0)
LOGIT = RNG.normal(-1.0, 1.0, 400)
LABEL = (RNG.random(400) < expit(LOGIT - 0.5)).astype(int)
TARGET = RNG.normal(0.3, 1.0, 400)
RATE = RNG.gamma(2.0, size=400)
COUNT = RNG.poisson(RATE)


@pytest.mark.parametrize(
    ("arguments", "residual"),
    [
        ({"y_true": LABEL, "y_logit": LOGIT}, LABEL - expit(LOGIT)),
        ({"y_true": LABEL, "y_logit": LOGIT, "loss": "brier_score"}, LABEL - expit(LOGIT)),
        (
            {"y_true": TARGET, "y_pred": np.zeros(400), "loss": "mean_squared_error"},
            TARGET,
        ),
        ({"y_true": COUNT, "y_pred": RATE, "loss": "poisson_deviance"}, COUNT - RATE),
    ],
    ids=["log loss", "brier", "regression", "counts"],
)
def test_bias_test_is_the_t_test_of_the_residuals(arguments, residual):
    found, expected = bias_test(**arguments), ttest_1samp(residual, 0.0)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert found.n == 400


def test_sign_of_the_statistic_says_which_way_predictions_are_off():
    assert bias_test(LABEL, y_logit=LOGIT).statistic < 0.0
    assert bias_test(LABEL, y_logit=LOGIT - 3.0).statistic > 0.0


def test_rows_without_weight_are_not_there():
    weight = (np.arange(400) < 150).astype(float)
    found = bias_test(LABEL, y_logit=LOGIT, sample_weight=weight)
    expected = bias_test(LABEL[:150], y_logit=LOGIT[:150])
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.n == expected.n == 150


def test_constant_residuals_are_certain():
    arguments = {"loss": "mean_squared_error"}
    assert bias_test([1.0, 2.0], [1.0, 2.0], **arguments).p_value == 1.0
    certain = bias_test([1.0, 2.0], [0.0, 1.0], **arguments)
    assert (certain.statistic, certain.p_value) == (np.inf, 0.0)


def test_interval_of_squared_error_is_the_square_of_the_means_interval():
    interval = bias_cost_interval(TARGET, np.zeros(400), loss="mean_squared_error")
    half = 1.96 * TARGET.std(ddof=1) / np.sqrt(400)
    expected = (TARGET.mean() - half) ** 2, (TARGET.mean() + half) ** 2
    assert (interval.low, interval.high) == pytest.approx(expected, rel=0.1)
    assert interval.value == evaluate(TARGET, np.zeros(400), loss="mean_squared_error").bias_cost


def test_interval_reaches_zero_where_the_test_does_not_reject():
    calm = expit(LOGIT - 0.5)
    assert bias_test(LABEL, calm).p_value > 0.1
    assert bias_cost_interval(LABEL, calm, n_resamples=200).low == 0.0
    assert bias_test(LABEL, y_logit=LOGIT + 1.0).p_value < 1e-3
    assert bias_cost_interval(LABEL, y_logit=LOGIT + 1.0, n_resamples=200).low > 0.0


def test_interval_is_reproducible_and_widens_with_confidence():
    arguments = {"y_true": LABEL, "y_logit": LOGIT, "n_resamples": 200}
    first = bias_cost_interval(**arguments)
    assert first == bias_cost_interval(**arguments)
    wide = bias_cost_interval(**arguments, confidence_level=0.99)
    assert wide.low <= first.low < first.high < wide.high


def test_interval_covers_the_cost_of_counts():
    interval = bias_cost_interval(
        COUNT, 2.0 * RATE, loss="poisson_deviance", n_resamples=200, sample_weight=RATE
    )
    assert 0.0 < interval.low < interval.value < interval.high


THREE = np.full((6, 3), 1.0 / 3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bias_test([0, 1, 2] * 2, THREE), "one bias term; got 3 columns"),
        (lambda: bias_cost_interval([0, 1, 2] * 2, THREE), "one bias term; got 3 columns"),
        (
            lambda: bias_cost_interval(LABEL, expit(LOGIT), loss="brier_score"),
            "loss must be minimised by its bias term; got 'brier_score'",
        ),
        (
            lambda: bias_cost_interval(LABEL, y_logit=LOGIT, confidence_level=1.0),
            r"confidence_level must be in \(0, 1\); got 1.0",
        ),
        (
            lambda: bias_cost_interval(LABEL, y_logit=LOGIT, n_resamples=99),
            "n_resamples must be an integer of at least 100; got 99",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_one_row_cannot_be_tested():
    with pytest.raises(UndefinedMetricError, match="at least two rows for a test; got 1"):
        bias_test([1], [0.5])
