"""Prob-ECE over bins against slow twins and other packages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from trueup import expected_calibration_error

RNG = np.random.default_rng(0)
N = 3000
PROBA = RNG.beta(2.0, 5.0, N)
LABEL = (RNG.random(N) < PROBA).astype(float)


def slow_prob_error(y_true, y_proba, n_bins):
    sums = [[] for _ in range(n_bins)]
    for y, p in zip(y_true, y_proba, strict=True):
        sums[max(0, math.ceil(p * n_bins) - 1)].append(y - p)
    return sum(abs(math.fsum(gaps)) for gaps in sums) / len(y_true)


@pytest.mark.parametrize("n_bins", [1, 10, 15, 100])
def test_prob_error_of_equal_width_equals_a_slow_twin(n_bins):
    found = expected_calibration_error(LABEL, PROBA, n_bins=n_bins)
    assert found == pytest.approx(slow_prob_error(LABEL, PROBA, n_bins), rel=1e-10)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_prob_error_equals_scikit_learns_reliability_curve(strategy):
    rate, mean = calibration_curve(LABEL, PROBA, n_bins=12, strategy=strategy)
    edges = np.linspace(0.0, 1.0, 13)
    edges = np.quantile(PROBA, edges) if strategy == "quantile" else edges
    counts = np.bincount(np.searchsorted(edges[1:-1], PROBA), minlength=12)
    expected = (counts[counts > 0] * np.abs(rate - mean)).sum() / N
    found = expected_calibration_error(LABEL, PROBA, n_bins=12, strategy=strategy)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 49, 100])
def test_uniform_bins_are_open_below_and_closed_above_to_the_last_bit(n_bins):
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    proba = np.r_[edges, np.nextafter(edges[:-1], 1.0), np.nextafter(edges[1:], 0.0)]
    proba = np.r_[proba, np.random.default_rng(0).random(2_000)]
    y_true = (np.arange(len(proba)) % 3 == 0).astype(float)
    bins = np.searchsorted(edges[1:-1], proba, side="left")
    gaps = np.bincount(bins, y_true - proba, n_bins)
    expected = np.abs(gaps).sum() / len(proba)
    got = expected_calibration_error(y_true, proba, n_bins=n_bins)
    assert got == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("n_bins", [1, 10, 15, 100])
def test_prob_ece_equals_netcal(n_bins):
    metrics = pytest.importorskip("netcal.metrics")
    rng = np.random.default_rng(1)
    proba = rng.beta(1.0, 3.0, 5_000)
    label = (rng.random(5_000) < proba**1.2).astype(int)
    found = expected_calibration_error(label, proba, n_bins=n_bins)
    assert found == pytest.approx(metrics.ECE(n_bins).measure(proba, label), abs=1e-12)


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_prob_ece_equals_torchmetrics(n_bins):
    torch = pytest.importorskip("torch")
    calibration = pytest.importorskip("torchmetrics.functional.classification")
    rng = np.random.default_rng(0)
    proba = rng.beta(1.0, 3.0, 5_000)
    label = (rng.random(5_000) < proba**1.2).astype(int)
    expected = calibration.binary_calibration_error(
        torch.from_numpy(proba), torch.from_numpy(label), n_bins=n_bins, norm="l1"
    )
    found = expected_calibration_error(label, proba, n_bins=n_bins)
    assert found == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("n_bins", [1, 2, 7, 15])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_integer_weights_equal_repeated_rows(strategy, n_bins):
    weight = np.random.default_rng(3).integers(0, 5, N)
    options = {"n_bins": n_bins, "strategy": strategy}
    found = expected_calibration_error(LABEL, PROBA, sample_weight=weight, **options)
    repeated = np.repeat(LABEL, weight), np.repeat(PROBA, weight)
    assert found == pytest.approx(expected_calibration_error(*repeated, **options), rel=1e-10)
    ones = expected_calibration_error(LABEL, PROBA, sample_weight=np.ones(N), **options)
    assert ones == pytest.approx(expected_calibration_error(LABEL, PROBA, **options), rel=1e-12)


def test_the_scale_of_fractional_weights_does_not_move_the_quantile_bins():
    weight = np.random.default_rng(4).uniform(0.1, 3.0, N)
    small, large = (
        expected_calibration_error(LABEL, PROBA, strategy="quantile", sample_weight=scale * weight)
        for scale in (1e-3, 1e3)
    )
    assert small == pytest.approx(large, rel=1e-9)
