"""Targets, weights and settings near the ends of float64 give the right number or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

from trueup import (
    InSample,
    bias_test,
    evaluate,
    expected_calibration_error,
    field_calibration,
    field_calibration_error,
)
from trueup.errors import InexactSummaryError, InvalidInputError, UndefinedMetricError
from trueup.fields.reliability import reliability_curve
from trueup.losses.elementary import scaled
from trueup.summaries import FieldSummary, LogLossSummary, PoissonSummary, SquaredErrorSummary

SIZES = (200, 12_000)  # scored by rows, and by a summary
FAR = (-1060, -700, 700, 1000)  # powers of two


@pytest.fixture(params=SIZES)
def rows(request):
    rng = np.random.default_rng(3)
    n = request.param
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < p).astype(float)
    return y, np.clip(p - 0.05, 0.0, 1.0), rng.integers(1, 4, n).astype(float)


def values(evaluation):
    errors = evaluation.standard_errors
    return np.array(
        [
            evaluation.vanilla,
            evaluation.calibrated,
            evaluation.bias_term,
            errors.vanilla,
            errors.calibrated,
        ]
    )


@pytest.mark.parametrize("power", FAR)
@pytest.mark.parametrize("loss", ["log_loss", "brier_score", "mean_squared_error"])
def test_scale_of_weights_does_not_matter(rows, power, loss):
    y, p, weight = rows
    far = evaluate(y, p, loss=loss, sample_weight=np.ldexp(weight, power))
    near = evaluate(y, p, loss=loss, sample_weight=weight)
    np.testing.assert_allclose(values(far), values(near), rtol=1e-9)


@pytest.mark.parametrize("power", FAR)
def test_scale_of_weights_does_not_matter_to_errors_over_fields_and_bins(rows, power):
    y, p, weight = rows
    site, far = np.arange(len(y)) % 5, np.ldexp(weight, power)
    for function in (field_calibration, field_calibration_error):
        near = function(y, p, site, sample_weight=weight)
        assert function(y, p, site, sample_weight=far) == near
    for function in (expected_calibration_error, bias_test):
        assert function(y, p, sample_weight=far) == function(y, p, sample_weight=weight)
    near, curve = (reliability_curve(y, p, sample_weight=w) for w in (weight, far))
    np.testing.assert_array_equal(curve.low, near.low)


@pytest.mark.parametrize("power", [-480, -340, -100, 260, 480])
def test_standard_errors_scale_with_the_squares_of_the_targets(rows, power):
    y, p, _ = rows
    far = evaluate(np.ldexp(y, power), np.ldexp(p, power), loss="mean_squared_error")
    near = values(evaluate(y, p, loss="mean_squared_error"))
    expected = np.ldexp(near, [2 * power, 2 * power, power, 2 * power, 2 * power])
    np.testing.assert_allclose(values(far), expected, rtol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("residual", [0.0, 1e-200])
def test_squares_of_nothing_are_zero(size, residual):
    y = np.full(size, residual)
    result = evaluate(y, np.zeros(size), loss="mean_squared_error")
    assert (result.vanilla, result.calibrated, result.standard_errors.vanilla) == (0.0, 0.0, 0.0)


def test_targets_whose_squares_overflow_are_refused(rows):
    y, p, _ = rows
    with pytest.raises(UndefinedMetricError, match="vanilla must be finite; got inf: the predict"):
        evaluate(y * 1e160, p, loss="mean_squared_error")


@pytest.mark.parametrize("power", FAR)
def test_summary_that_cannot_hold_its_weights_says_so(power):
    rng = np.random.default_rng(0)
    summary = LogLossSummary(InSample())
    y = np.arange(100) % 2
    summary.update(y, rng.uniform(0.1, 0.9, 100), sample_weight=np.full(100, 2.0**power))
    with pytest.raises(InexactSummaryError, match="sample_weight must add up to a number between"):
        summary.compute()


@pytest.mark.parametrize("power", FAR)
def test_field_summary_that_cannot_hold_its_weights_says_so(power):
    summary = FieldSummary("site")
    weight = np.full(4, 2.0**power)
    summary.update([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], list("aabb"), sample_weight=weight)
    with pytest.raises(InexactSummaryError, match="sample_weight must add up to a number between"):
        summary.compute()


@pytest.mark.parametrize("scale", [1e-100, 1e80, 1e160])
def test_summary_that_cannot_hold_its_residuals_says_so(scale):
    summary = SquaredErrorSummary(InSample())
    summary.update(scale * np.random.default_rng(0).normal(size=100), np.zeros(100))
    with pytest.raises(InexactSummaryError, match="Rescale them, or pass the rows to evaluate"):
        summary.compute()


@pytest.mark.parametrize("scale", [1e-200, 1e160, 1e300])
def test_summary_that_cannot_hold_its_counts_says_so(scale):
    summary = PoissonSummary(InSample())
    counts = np.random.default_rng(0).poisson(3.0, 100)
    summary.update(scale * counts, np.full(100, scale))
    with pytest.raises(InexactSummaryError, match="Rescale them, or pass the rows to evaluate"):
        summary.compute()


@pytest.mark.parametrize("epsilon", [1e-320, 1e-200, np.inf])
@pytest.mark.parametrize("function", [field_calibration, field_calibration_error])
def test_epsilon_that_leaves_no_finite_error_is_refused(function, epsilon):
    with pytest.raises(InvalidInputError, match=r"epsilon must be between 1e-100 and 1e\+100; go"):
        function([0, 1], [0.2, 0.4], ["a", "b"], epsilon=epsilon)


def test_smallest_epsilon_gives_a_finite_error():
    rce = field_calibration_error([0, 1], [0.2, 0.4], ["a", "b"], relative=True, epsilon=1e-100)
    assert rce == pytest.approx(0.1e100)


def test_scaling_changes_no_digit_and_nothing_within_range():
    values = np.array([3.0, 1e-99, -1e99])
    assert scaled(values) is values
    far = np.array([3e200, -1e199])
    assert (scaled(far) / far == scaled(far)[0] / far[0]).all()
    assert np.abs(scaled(far)).max() < 1.0
    for odd in ([], [0.0], [np.inf, 1e200], [np.nan]):
        np.testing.assert_array_equal(scaled(np.array(odd)), odd)
