"""The guard: when it keeps a calibrator, and the statistics that it decides by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from trueup import field_calibration
from trueup.calibrators import (
    FieldOffsetCalibrator,
    Guarded,
    HistogramCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
)
from trueup.calibrators.judging.drift import field_error_change, log_loss_change
from trueup.errors import InvalidInputError


def calibrated_rows(n=4000, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    margin = rng.normal(-1.0, 1.0, n)
    y = (rng.random(n) < expit(margin + shift)).astype(int)
    return expit(margin), y, {"site": rng.integers(0, 8, n)}


def test_a_gain_is_kept_and_refitted_on_all_rows():
    p, y, fields = calibrated_rows(shift=0.5)
    guarded = Guarded(ShiftCalibrator()).fit(p, y, fields=fields)
    assert guarded.decision_.kept
    assert guarded.decision_.refitted
    assert guarded.decision_.n_fit == guarded.decision_.n_check == 2000
    np.testing.assert_array_equal(
        guarded.predict_proba(p), ShiftCalibrator().fit(p, y).predict_proba(p)
    )


def test_without_gain_predictions_pass_unchanged():
    p, y, fields = calibrated_rows()
    guarded = Guarded(HistogramCalibrator()).fit(p, y, fields=fields)
    assert not guarded.decision_.kept
    assert guarded.calibrator_ is None
    assert guarded.decision_.reason.startswith("not kept: the upper bound of the log loss change")
    np.testing.assert_array_equal(guarded.predict_proba(p, fields=fields)[:, 1], p)


def test_times_put_earlier_rows_into_part_one():
    early, late = calibrated_rows(1000, seed=1, shift=1.0), calibrated_rows(1000, seed=2)
    p, y = np.concatenate([late[0], early[0]]), np.concatenate([late[1], early[1]])
    times = np.repeat(np.array(["2026-02", "2026-01"], dtype="datetime64[M]"), 1000)
    by_time = Guarded(ShiftCalibrator()).fit(p, y, times=times)
    assert not by_time.decision_.kept
    assert by_time.decision_.log_loss_change > 0.05
    assert by_time.decision_.n_fit == 1000


def test_rows_of_one_time_stay_together():
    p, y, _ = calibrated_rows(1000)
    times = np.repeat([1, 2, 3], [300, 300, 400])
    decision = Guarded(ShiftCalibrator()).fit(p, y, times=times).decision_
    assert (decision.n_fit, decision.n_check) == (600, 400)


def test_a_rising_field_error_is_refused_even_with_a_lower_log_loss():
    rng = np.random.default_rng(3)
    site, margin = np.repeat(np.arange(20), 1000), rng.normal(0.0, 1.0, 20000)
    y = (rng.random(20000) < expit(1.3 * margin)).astype(int)

    class Breaks(PlattCalibrator):
        """Better in the log loss through its slope, and biased at one site."""

        def _calibrate(self, p, fields):
            own = super()._calibrate(p, fields)
            return np.where(fields["site"] == 1, own + 0.1 * (own < 0.8), own)

    guarded = Guarded(Breaks()).fit(expit(margin), y, fields={"site": site})
    assert guarded.decision_.log_loss_change_high < 0.0
    assert not guarded.decision_.kept
    assert "field error rises" in guarded.decision_.reason


def test_a_part_that_lacks_a_class_means_identity():
    p, times = np.full(200, 0.5), np.arange(200)
    y = np.repeat([0, 1], 100)
    guarded = Guarded(ShiftCalibrator()).fit(p, y, times=times)
    assert not guarded.decision_.kept
    assert "part one could not be fitted" in guarded.decision_.reason
    np.testing.assert_array_equal(guarded.predict_proba(p)[:, 1], p)


def test_log_loss_change_by_hand():
    y, before, after = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.8, 0.4])
    gains = np.log(0.5 / np.array([0.8, 0.6]))
    change = log_loss_change(y, before, after, np.ones(2))
    assert change.value == pytest.approx(gains.mean())
    assert change.standard_error == pytest.approx(np.abs(np.diff(gains))[0] / 2 / np.sqrt(2))


def slow_field_error(y, p, weight, codes):
    """Mean over rows of the mean product of two residuals of their cell."""
    total = 0.0
    for code in codes:
        for cell in np.unique(code):
            rows = np.flatnonzero(code == cell)
            pairs = [(i, j) for i in rows for j in rows if i != j]
            product = sum(weight[i] * weight[j] * (y[i] - p[i]) * (y[j] - p[j]) for i, j in pairs)
            mean = product / sum(weight[i] * weight[j] for i, j in pairs)
            total += weight[rows].sum() * mean / len(codes)
    return total / weight.sum()


def test_field_error_change_equals_the_difference_of_two_errors():
    rng = np.random.default_rng(4)
    before, after, weight = rng.random(300), rng.random(300), rng.integers(1, 4, 300) * 1.0
    y = (rng.random(300) < before).astype(float)
    codes = [rng.integers(0, 5, 300), rng.integers(0, 20, 300)]
    change = field_error_change(y, before, after, weight, codes)
    expected = slow_field_error(y, after, weight, codes) - slow_field_error(
        y, before, weight, codes
    )
    assert change.value == pytest.approx(expected, rel=1e-10)


def test_field_error_change_is_that_of_the_debiased_error():
    rng = np.random.default_rng(6)
    before, after, site = rng.random(500), rng.random(500), rng.integers(0, 9, 500)
    y = (rng.random(500) < before).astype(float)
    change = field_error_change(y, before, after, np.ones(500), [site])
    measured = [field_calibration(y, p, site).debiased for p in (before, after)]
    assert change.value == pytest.approx(measured[1] - measured[0], rel=1e-10)


def test_field_error_change_has_mean_and_spread_as_stated():
    rng = np.random.default_rng(5)
    truth, code = rng.uniform(0.1, 0.5, 2000), rng.integers(0, 12, 2000)
    before, after, weight = truth, np.clip(truth + 0.03 * (code < 4), 0, 1), np.ones(2000)
    changes = [
        field_error_change((rng.random(2000) < truth).astype(float), before, after, weight, [code])
        for _ in range(2000)
    ]
    values = np.array([change.value for change in changes])
    stated = np.mean([change.standard_error for change in changes])
    expected = 0.03**2 * np.mean(code < 4)  # of a model that was right before
    assert values.mean() == pytest.approx(expected, abs=4 * stated / np.sqrt(2000))
    assert values.std() == pytest.approx(stated, rel=4 / np.sqrt(2 * 2000))


def test_two_classes_as_columns_count_each_error_twice():
    rng = np.random.default_rng(6)
    before, after = rng.random(200), rng.random(200)
    y, code = (rng.random(200) < before).astype(float), [rng.integers(0, 5, 200)]

    def columns(p):
        return np.stack([1.0 - p, p], axis=1)

    one = field_error_change(y, before, after, np.ones(200), code)
    two = field_error_change(y, columns(before), columns(after), np.ones(200), code)
    assert two.value == pytest.approx(2.0 * one.value)
    assert two.standard_error == pytest.approx(2.0 * one.standard_error)


def test_multiclass_is_guarded():
    rng = np.random.default_rng(7)
    margin = rng.normal(size=(3000, 3))
    truth = softmax(margin + np.array([1.0, 0.0, 0.0]), axis=1)
    y = (rng.random((3000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    guarded = Guarded(ShiftCalibrator()).fit(softmax(margin, axis=1), y)
    assert guarded.decision_.kept
    assert guarded.predict_proba(softmax(margin, axis=1)).shape == (3000, 3)


def test_field_offsets_are_kept_for_biased_sites():
    rng = np.random.default_rng(8)
    margin, site = rng.normal(size=8000), rng.integers(0, 20, 8000)
    y = (rng.random(8000) < expit(margin + rng.normal(0, 0.5, 20)[site])).astype(int)
    guarded = Guarded(FieldOffsetCalibrator()).fit(expit(margin), y, fields={"site": site})
    assert guarded.decision_.kept
    assert guarded.decision_.field_error_change < 0.0


@pytest.mark.parametrize(
    ("options", "times", "message"),
    [
        ({"check_fraction": 1.0}, None, r"check_fraction must be in \(0, 1\)"),
        ({"confidence_level": 0.2}, None, r"confidence_level must be in \[0.5, 1\)"),
        ({}, [1, 2], r"times must have shape \(40,\); got \(2,\)"),
        ({}, [1] * 40, "times must leave rows in both parts; got 40 of 40"),
    ],
)
def test_wrong_input_is_named(options, times, message):
    p, y = np.full(40, 0.5), np.repeat([0, 1], 20)
    with pytest.raises(InvalidInputError, match=message):
        Guarded(IsotonicCalibrator(), **options).fit(p, y, times=times)
