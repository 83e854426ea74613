"""Fields of counts, targets and several classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from trueup import actual_over_expected, class_calibration, field_calibration, mean_residuals
from trueup.errors import InvalidInputError

RNG = np.random.default_rng(0)
N = 4000
SITE = RNG.integers(0, 6, N)
RATE = RNG.gamma(2.0, 0.3, N) + 0.05
YEARS = RNG.uniform(0.2, 2.0, N)
COUNT = RNG.poisson(RATE * YEARS * np.where(SITE == 2, 1.5, 1.0))
TARGET = RNG.normal(RATE + 0.4 * (SITE == 3), 1.0)


def by_level(found, name):
    return dict(zip(found.level.tolist(), getattr(found, name).tolist(), strict=True))


def test_actual_over_expected_by_hand():
    found = actual_over_expected([3, 1, 0, 2], [1.0, 1.0, 2.0, 2.0], list("aabb"))
    assert by_level(found, "value") == {"a": 2.0, "b": 0.5}
    assert by_level(found, "actual") == {"a": 4.0, "b": 2.0}
    assert found.error == pytest.approx((2.0 + 2.0) / 6.0)


def test_interval_and_p_value_are_the_exact_ones_of_poisson():
    found = actual_over_expected([6], [2.5], ["a"])
    assert found.low[0] == pytest.approx(stats.chi2.ppf(0.025, 12) / 2 / 2.5)
    assert found.high[0] == pytest.approx(stats.chi2.ppf(0.975, 14) / 2 / 2.5)
    assert found.p_value[0] == pytest.approx(2.0 * stats.poisson.sf(5, 2.5))
    none = actual_over_expected([0], [2.5], ["a"])
    assert none.low[0] == 0.0
    mean = sum(abs(k - 2.5) * stats.poisson.pmf(k, 2.5) for k in range(60))
    assert none.floor == pytest.approx(mean / 2.5)


def test_exposure_multiplies_the_rate_and_the_worst_level_is_first():
    found = actual_over_expected(COUNT, RATE, SITE, exposure=YEARS)
    same = actual_over_expected(COUNT, RATE * YEARS, SITE)
    np.testing.assert_array_equal(found.value, same.value)
    assert found.level[0] == "2"
    assert found.low[0] > 1.2
    assert found.n_discoveries == 1
    assert found.error > 2.0 * found.floor


def test_clusters_of_counts_widen_the_intervals():
    lumps = 5 * np.random.default_rng(1).poisson(RATE / 5.0)
    found = actual_over_expected(lumps, RATE, SITE)
    assert found.dispersion == pytest.approx(5.0, rel=0.25)
    assert found.n_discoveries == 0


def test_mean_residuals_are_those_of_a_t_test():
    found = mean_residuals(TARGET, RATE, SITE)
    assert found.level[0] == "3"
    for name, low, p_value in zip(found.level, found.low, found.p_value, strict=True):
        residual = (TARGET - RATE)[int(name) == SITE]
        test = stats.ttest_1samp(residual, 0.0)
        assert p_value == pytest.approx(test.pvalue, rel=1e-9)
        assert low == pytest.approx(test.confidence_interval().low, rel=1e-9)


def test_a_level_of_one_row_takes_the_spread_of_all():
    found = mean_residuals(np.r_[TARGET, 3.0], np.r_[RATE, 0.0], np.r_[SITE, 99])
    assert np.isfinite([*found.low, *found.high]).all()
    assert by_level(found, "n")["99"] == 1


@pytest.mark.parametrize("measure", [actual_over_expected, mean_residuals])
def test_weights_of_zero_are_rows_that_are_not_there(measure):
    weight = (SITE != 4) * 1.0
    found = measure(COUNT, RATE, SITE, sample_weight=weight)
    kept = SITE != 4
    alone = measure(COUNT[kept], RATE[kept], SITE[kept])
    for name in ("value", "low", "high", "p_value"):
        np.testing.assert_allclose(getattr(found, name), getattr(alone, name), rtol=1e-12)
    assert found.floor == pytest.approx(alone.floor)


def test_integer_weights_give_the_values_of_repeated_rows():
    weight = RNG.integers(1, 4, N)
    repeated = [np.repeat(column, weight) for column in (COUNT, RATE, SITE)]
    for measure in (actual_over_expected, mean_residuals):
        first = by_level(measure(COUNT, RATE, SITE, sample_weight=weight), "value")
        assert first == pytest.approx(by_level(measure(*repeated), "value"), rel=1e-12)


@pytest.mark.slow
def test_intervals_cover_and_floors_are_met_by_a_right_model():
    covered, ratio = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        site, rate = rng.integers(0, 8, 800), rng.gamma(2.0, 0.3, 800) + 0.05
        counts = actual_over_expected(rng.poisson(rate), rate, site)
        means = mean_residuals(rng.normal(rate, 1.0), rate, site)
        covered.append([(counts.low <= 1.0) & (counts.high >= 1.0), means.low * means.high <= 0.0])
        ratio.append([counts.error / counts.floor, means.error / means.floor])
    np.testing.assert_allclose(np.mean(ratio, axis=0), 1.0, atol=0.06)
    assert (np.mean(covered, axis=(0, 2)) >= 0.95 - 2.5 * np.sqrt(0.05 * 0.95 / 1600)).all()


def test_classes_are_measured_one_against_the_others_and_by_the_most_probable():
    proba = softmax(RNG.normal(size=(N, 3)), axis=1)
    label = (RNG.random((N, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    found = class_calibration(label, proba, SITE)
    assert list(found.by_class) == ["0", "1", "2"]
    one = field_calibration((label == 1).astype(int), proba[:, 1], SITE)
    assert found.by_class["1"].ece == one.ece
    best = proba.argmax(axis=1)
    top = field_calibration((label == best).astype(int), proba.max(axis=1), SITE)
    assert found.top_label.ece == top.ece
    assert found.classwise_ece == pytest.approx(np.mean([c.ece for c in found.by_class.values()]))
    named = class_calibration(np.array(["x", "y", "z"])[label], proba, SITE, labels=["x", "y", "z"])
    assert named.by_class["y"].ece == one.ece


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: actual_over_expected([-1], [1.0], ["a"]), "y_true must not be negative"),
        (lambda: actual_over_expected([1], [0.0], ["a"]), "y_pred must be positive"),
        (lambda: actual_over_expected([1], [1.0], ["a"], exposure=[0.0]), "exposure must be pos"),
        (lambda: actual_over_expected([1], [1.0], ["a"], exposure=[1, 2]), "exposure must have"),
        (lambda: actual_over_expected([1], [1.0], ["a"], confidence_level=1.0), "confidence_level"),
        (lambda: mean_residuals([1.0, 2.0], [1.0], ["a", "b"]), "y_pred must have as many rows"),
        (lambda: mean_residuals([1.0], [1.0], ["a", "b"]), "field"),
        (lambda: class_calibration([0, 1], [[0.5, 0.5]] * 2, ["a", "b"]), "y_proba must have a"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
