"""The calibrators of the probability alone: by hand, by slow twins, and invariants."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from trueup.calibrators import (
    HistogramCalibrator,
    ILPSCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
)
from trueup.errors import InvalidInputError, NotFittedError, UndefinedMetricError
from trueup.losses import LogLoss

UNIVARIATE = [
    ShiftCalibrator(),
    PlattCalibrator(),
    TemperatureCalibrator(),
    IsotonicCalibrator(),
    HistogramCalibrator(),
    ILPSCalibrator(),
    ILPSCalibrator(knots="paper"),
]
MONOTONE = [c for c in UNIVARIATE if not isinstance(c, HistogramCalibrator)]


def name(calibrator):
    return repr(calibrator)


def miscalibrated(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    margin = rng.normal(-1.0, 1.5, n)
    y = rng.random(n) < expit(0.7 * margin + 0.4 + 0.3 * np.sin(margin))
    return expit(margin), y.astype(np.int64)


def log_loss(y, p):
    return LogLoss().values(y.astype(np.float64), logit(p)).mean()


@pytest.mark.parametrize("calibrator", UNIVARIATE, ids=name)
class TestEveryCalibrator:
    def test_gives_probabilities_that_sum_to_one(self, calibrator):
        p, y = miscalibrated()
        calibrated = calibrator.fit(p, y).predict_proba([0.0, 1e-9, 0.5, 1.0])
        assert calibrated.shape == (4, 2)
        assert ((calibrated >= 0.0) & (calibrated <= 1.0)).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1.0, atol=1e-15)

    def test_lowers_the_log_loss_on_its_own_rows(self, calibrator):
        p, y = miscalibrated()
        assert log_loss(y, calibrator.fit(p, y).predict_proba(p)[:, 1]) < log_loss(y, p)

    def test_shapes_of_x_are_equivalent(self, calibrator):
        p, y = miscalibrated(500)
        expected = calibrator.fit(p, y).predict_proba(p)
        for shape in (p[:, None], np.stack([1.0 - p, p], axis=1)):
            np.testing.assert_allclose(calibrator.fit(shape, y).predict_proba(shape), expected)

    def test_order_of_rows_does_not_matter(self, calibrator):
        p, y = miscalibrated(500)
        expected = calibrator.fit(p, y).predict_proba(p)
        np.testing.assert_allclose(
            calibrator.fit(p[::-1], y[::-1]).predict_proba(p), expected, atol=1e-9
        )

    def test_integer_weights_equal_repeated_rows(self, calibrator):
        p, y = miscalibrated(500)
        times = np.random.default_rng(1).integers(0, 3, len(p))
        repeated = calibrator.fit(np.repeat(p, times), np.repeat(y, times)).predict_proba(p)
        weighted = calibrator.fit(p, y, sample_weight=times).predict_proba(p)
        np.testing.assert_allclose(weighted, repeated, atol=1e-8)

    def test_labels_keep_their_names(self, calibrator):
        p, y = miscalibrated(500)
        labels = np.where(y == 1, "yes", "no")
        calibrator.fit(p, labels)
        assert calibrator.classes_.tolist() == ["no", "yes"]
        assert set(calibrator.predict(p)) <= {"no", "yes"}

    def test_input_stays_as_it_was(self, calibrator):
        p, y = miscalibrated(500)
        kept = p.copy()
        calibrator.fit(p, y).predict_proba(p)
        np.testing.assert_array_equal(p, kept)


@pytest.mark.parametrize("calibrator", MONOTONE, ids=name)
def test_order_of_predictions_is_kept_exactly(calibrator):
    p, y = miscalibrated()
    grid = np.unique(np.concatenate([np.linspace(0.0, 1.0, 20001), np.sort(p), [1e-15, 1e-300]]))
    assert (np.diff(calibrator.fit(p, y).predict_proba(grid)[:, 1]) >= 0.0).all()


@pytest.mark.parametrize("knots", ["quantile", "paper"])
@pytest.mark.parametrize("seed", range(5))
def test_ilps_is_exactly_monotone_where_the_data_are_not(knots, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(3000)
    y = (rng.random(3000) < 0.5 + 0.4 * np.sin(12.0 * p)).astype(int)
    calibrator = ILPSCalibrator(knots=knots).fit(p, y)
    margin = np.sort(np.concatenate([rng.normal(0.0, 4.0, 200_000), calibrator.line_plot_.knots]))
    assert (np.diff(calibrator.line_plot_.heights) >= 0.0).all()
    assert (np.diff(calibrator.line_plot_(margin)) >= 0.0).all()
    assert (np.diff(calibrator.predict_proba(expit(margin))[:, 1]) >= 0.0).all()


def test_shift_makes_the_mean_prediction_the_base_rate():
    p, y = miscalibrated()
    assert ShiftCalibrator().fit(p, y).predict_proba(p)[:, 1].mean() == pytest.approx(y.mean())


def test_platt_equals_an_unpenalised_logistic_regression():
    p, y = miscalibrated()
    twin = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(logit(p)[:, None], y)
    calibrator = PlattCalibrator().fit(p, y)
    assert calibrator.slope_ == pytest.approx(twin.coef_[0, 0], abs=1e-5)
    assert calibrator.intercept_ == pytest.approx(twin.intercept_[0], abs=1e-5)


def test_platt_uses_smoothed_targets_where_the_classes_separate():
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    target = np.where(y == 1, 3.0 / 4.0, 1.0 / 4.0)

    def loss(theta):
        eta = theta[0] * logit(p) + theta[1]
        return float((np.logaddexp(0.0, eta) - target * eta).sum())

    twin = minimize(loss, [1.0, 0.0], tol=1e-12).x
    calibrator = PlattCalibrator().fit(p, y)
    np.testing.assert_allclose([calibrator.slope_, calibrator.intercept_], twin, atol=1e-5)


def test_platt_on_constant_predictions_is_a_shift():
    p, y = np.full(8, 0.5), np.array([0, 0, 0, 0, 0, 0, 1, 1])
    assert PlattCalibrator().fit(p, y).predict_proba([0.5])[0, 1] == pytest.approx(0.25)


def test_temperature_minimises_the_log_loss():
    p, y = miscalibrated()
    twin = minimize(lambda v: log_loss(y, expit(logit(p) / v[0])), [1.0], tol=1e-12).x[0]
    assert TemperatureCalibrator().fit(p, y).temperature_ == pytest.approx(twin, rel=1e-5)


def test_temperature_is_limited_where_predictions_are_reversed():
    p, y = miscalibrated(500)
    assert TemperatureCalibrator().fit(1.0 - p, y).temperature_ == pytest.approx(1e3)


def test_isotonic_equals_scikit_learn_inside_its_limits():
    p, y = miscalibrated()
    twin = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p)
    end = 1.0 / (len(p) + 2.0)
    calibrated = IsotonicCalibrator().fit(p, y).predict_proba(p)[:, 1]
    np.testing.assert_allclose(calibrated, np.clip(twin, end, 1.0 - end), atol=1e-12)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_histogram_equals_a_loop_over_bins(strategy):
    p, y = miscalibrated(1000)
    calibrator = HistogramCalibrator(10, strategy=strategy).fit(p, y)
    calibrated = calibrator.predict_proba(p)[:, 1]
    edges = calibrator.edges_
    for low, high in pairwise(edges):
        inside = (p <= high) & ((p > low) | (low == 0.0))
        end = 1.0 / (inside.sum() + 2.0)
        rate = np.clip(y[inside].mean(), end, 1.0 - end)
        np.testing.assert_allclose(calibrated[inside], rate, atol=1e-12)


def test_histogram_keeps_the_centre_of_an_empty_bin():
    calibrator = HistogramCalibrator(4, strategy="uniform").fit([0.1, 0.2, 0.9, 0.8], [0, 1, 0, 1])
    assert calibrator.predict_proba([0.3])[0, 1] == pytest.approx(0.375)


@pytest.mark.parametrize("knots", ["quantile", "paper"])
def test_ilps_equals_a_general_optimiser(knots):
    p, y = miscalibrated(800)
    calibrator = ILPSCalibrator(knots=knots, n_knots=8).fit(p, y)
    plot, margin = calibrator.line_plot_, logit(p)
    a, width = plot.knots, np.diff(plot.knots)

    def objective(theta):
        eta = np.interp(margin, a, np.cumsum(theta))
        if plot.unit_tails:
            eta = eta + margin - np.clip(margin, a[0], a[-1])
        penalty = 3.0 * ((theta[1:] - width) ** 2 / width).sum()
        return float((np.logaddexp(0.0, eta) - y * eta).sum() + penalty)

    start = np.concatenate([a[:1], width])
    bounds = [(None, None)] + [(0.0, None)] * len(width)
    options = {"maxfun": 10**6, "maxiter": 10**4, "ftol": 1e-15, "gtol": 1e-9}
    twin = minimize(objective, start, bounds=bounds, method="L-BFGS-B", options=options)
    own = objective(np.concatenate([plot.heights[:1], np.diff(plot.heights)]))
    assert own <= twin.fun + 1e-7
    np.testing.assert_allclose(plot.heights, np.cumsum(twin.x), atol=2e-3)


def test_ilps_on_identical_predictions_is_a_shift():
    p, y = np.full(40, 0.3), np.repeat([0, 1], [30, 10])
    assert ILPSCalibrator().fit(p, y).predict_proba([0.3])[0, 1] == pytest.approx(0.25, abs=1e-6)


def test_ilps_by_sgd_comes_near_the_convex_fit():
    p, y = miscalibrated(2000)
    exact = ILPSCalibrator(knots="paper", ridge=0.1).fit(p, y).predict_proba(p)[:, 1]
    steps = {"epochs": 60, "learning_rate": 0.02, "penalty": 0.01}
    descended = ILPSCalibrator(knots="paper", solver="sgd", **steps).fit(p, y)
    gap = log_loss(y, descended.predict_proba(p)[:, 1]) - log_loss(y, exact)
    assert -2e-3 < gap < 2e-3
    assert np.diff(descended.line_plot_.heights).min() > -0.05  # the penalty is soft


def test_multiclass_shift_matches_class_shares():
    rng = np.random.default_rng(3)
    p = softmax(rng.normal(size=(600, 3)), axis=1)
    y = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
    calibrated = ShiftCalibrator().fit(p, y).predict_proba(p)
    np.testing.assert_allclose(calibrated.mean(axis=0), np.bincount(y) / 600, atol=1e-10)


def test_multiclass_temperature_minimises_the_log_loss():
    rng = np.random.default_rng(4)
    margin = 2.0 * rng.normal(size=(800, 3))
    cumulative = softmax(margin / 2.0, axis=1).cumsum(axis=1)
    y = (rng.random((800, 1)) > cumulative).sum(axis=1)

    def loss(v):
        return -np.log(softmax(margin / v[0], axis=1)[np.arange(800), y]).mean()

    calibrator = TemperatureCalibrator().fit(softmax(margin, axis=1), y)
    assert calibrator.temperature_ == pytest.approx(minimize(loss, [1.0]).x[0], rel=1e-4)
    assert 1.5 < calibrator.temperature_ < 2.6


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([0.2, 1.2], [0, 1], r"X must hold probabilities in \[0, 1\]; got \[1.2\] at index 1"),
        ([0.2, np.nan], [0, 1], r"X must hold probabilities .* got \[nan\] at index 1"),
        ([[0.2, 0.2], [0.5, 0.5]], [0, 1], r"sum 1; got \[0.2, 0.2\] at index 0"),
        ([0.2, 0.3, 0.4], [0, 1, 2], "y must hold two classes; got 3"),
        ([0.2, 0.3], None, "y must be given"),
    ],
)
def test_wrong_input_is_named(X, y, message):
    with pytest.raises(InvalidInputError, match=message):
        PlattCalibrator().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"sample_weight must have shape \(2,\); got \(1,\)"),
        ([1.0, -1.0], "sample_weight must not be negative; got -1.0 at index 1"),
        ([0.0, 0.0], "sample_weight must hold a positive weight"),
    ],
)
def test_wrong_weights_are_named(weight, message):
    with pytest.raises(InvalidInputError, match=message):
        ShiftCalibrator().fit([0.2, 0.3], [0, 1], sample_weight=weight)


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (HistogramCalibrator(0), "n_bins must be an integer of at least 1; got 0"),
        (HistogramCalibrator(strategy="width"), "strategy must be .* got 'width'"),
        (ILPSCalibrator(knots="even"), "knots must be .* got 'even'"),
        (ILPSCalibrator(n_knots=1), "n_knots must be an integer of at least 2; got 1"),
        (ILPSCalibrator(solver="newton"), "solver must be .* got 'newton'"),
    ],
)
def test_wrong_parameters_are_named(calibrator, message):
    with pytest.raises(InvalidInputError, match=message):
        calibrator.fit([0.2, 0.3], [0, 1])


def test_one_class_is_undefined():
    with pytest.raises(UndefinedMetricError, match=r"y must hold 2 classes .* got 1 class"):
        ShiftCalibrator().fit([0.2, 0.3], [1, 1])


def test_predicting_before_fitting_is_an_error():
    with pytest.raises(NotFittedError, match="ShiftCalibrator must be fitted"):
        ShiftCalibrator().predict_proba([0.2])
