"""Both metrics of the same runs, and which of them has less noise."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.comparison import compare, compare_both, variance_reduction
from trueup.errors import InvalidInputError


def metrics(seed=0, n=30, jitter=0.0, estimation=0.0, effect=0.0):
    """Pairs whose vanilla differences carry a jitter, and whose calibrated ones another."""
    rng = np.random.default_rng(seed)
    own, bias, extra = rng.normal(0.0, 0.01, (3, n))
    zero = dict.fromkeys(range(n), 0.0)
    vanilla = dict(enumerate(effect + own + jitter * bias))
    calibrated = dict(enumerate(effect + own + estimation * extra))
    return (vanilla, zero), (calibrated, zero)


def test_neither_metric_is_chosen_and_the_noise_is_that_of_the_differences():
    vanilla, calibrated = metrics(jitter=2.0)
    both = compare_both(vanilla, calibrated)
    assert both.vanilla == compare(*vanilla)
    assert both.calibrated == compare(*calibrated)
    assert both.noise == variance_reduction([*vanilla[0].values()], [*calibrated[0].values()])
    assert both.less_noise == "calibrated"
    assert "the calibrated metric has less noise here" in str(both)


def test_calibration_may_raise_the_noise():
    both = compare_both(*metrics(estimation=2.0))
    assert both.less_noise == "vanilla"
    assert "the vanilla metric has less noise here" in both.noise_sentence()


def test_equal_noise_is_not_resolved():
    both = compare_both(*metrics(jitter=0.5, estimation=0.5))
    assert both.less_noise == "not resolved"
    assert "not resolved" in both.noise_sentence()


def test_few_or_equal_pairs_have_no_ratio():
    both = compare_both(*metrics(n=2))
    assert (both.noise, both.less_noise) == (None, "not resolved")
    assert "needs 3 pairs" in both.noise_sentence()


def test_an_order_that_turns_is_told():
    (vanilla, zero), (calibrated, _) = metrics()
    turned = {seed: -value for seed, value in calibrated.items()}
    assert "disagree on the order" in str(compare_both((vanilla, zero), (turned, zero)))


def test_metrics_of_other_seeds_are_refused():
    (vanilla, zero), (calibrated, _) = metrics()
    fewer = {seed: value for seed, value in calibrated.items() if seed > 3}
    with pytest.raises(InvalidInputError, match="must be of the same runs"):
        compare_both((vanilla, zero), (fewer, zero))


@pytest.mark.slow
def test_the_interval_of_the_ratio_covers():
    covered = [
        both.noise.low <= 1.0 - 1.0 / np.sqrt(2.0) <= both.noise.high
        for both in (compare_both(*metrics(seed, jitter=1.0)) for seed in range(400))
    ]
    assert np.mean(covered) >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / 400)
