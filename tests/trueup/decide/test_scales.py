"""A comparison doesn't depend on the unit of the metric, as far as float64 holds the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.comparison import compare, required_seeds, variance_reduction
from trueup.errors import InvalidInputError

RNG = np.random.default_rng(0)
A, B = RNG.normal(0.50, 0.01, 12), RNG.normal(0.52, 0.01, 12)
SCALES = [2.0**k for k in (-1060, -900, -560, -540, -345, 345, 520, 560, 900, 1000)]


def arms(scale):
    return dict(enumerate(A * scale)), dict(enumerate(B * scale))


@pytest.mark.parametrize("scale", SCALES)
def test_verdict_and_interval_scale(scale):
    unit, found = compare(*arms(1.0)), compare(*arms(scale))
    assert found.verdict == unit.verdict == "candidate"
    for name in ("difference", "low", "high"):
        expected = getattr(unit, name)
        tolerance = 1e-12 if scale > 2.0**-1000 else 1e-2  # numbers below 1e-308 lack digits
        assert getattr(found, name) / scale == pytest.approx(expected, rel=tolerance)
    assert found.low < found.difference < found.high


@pytest.mark.parametrize("scale", [1e-165, 1e160])
@pytest.mark.parametrize("share", [0.1, 5.0])
def test_the_least_effect_scales_too(scale, share):
    verdicts = {compare(*arms(s), min_effect=share * 0.02 * s).verdict for s in (1.0, scale)}
    assert verdicts == {"candidate" if share < 1.0 else "inconclusive"}


@pytest.mark.parametrize("scale", SCALES[1:])
def test_seeds_and_reduction_scale(scale):
    unit, found = required_seeds(A, B), required_seeds(A * scale, B * scale)
    assert (found.n, found.low, found.high) == (unit.n, unit.low, unit.high)
    first, second = variance_reduction(A, A / 2 + B), variance_reduction(A * scale, A / 2 + B)
    assert second.value == pytest.approx(1.0 - (1.0 - first.value) / scale, rel=1e-9)
    same = variance_reduction(A * scale, (A / 2 + B) * scale)
    assert (same.value, same.low, same.high) == pytest.approx((first.value, first.low, first.high))


def test_a_difference_that_float64_does_not_hold_is_refused():
    with pytest.raises(InvalidInputError, match="float64 holds their differences"):
        compare({0: 1.7e308, 1: 0.0}, {0: -1.7e308, 1: 0.0}, paired=True)
