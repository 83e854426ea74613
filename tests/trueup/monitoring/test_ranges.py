"""Numbers of absurd size are refused in a reference and cut in a batch, which is not trusted."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from trueup.errors import InvalidInputError
from trueup.monitoring import ConsensusEstimator, MSEEstimate, OneStepCheckModel


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0].copy(), x[:, 0] + rng.normal(scale=0.5, size=n)


@pytest.fixture(scope="module")
def fitted():
    return ConsensusEstimator().fit(*draw(300)), OneStepCheckModel(epochs=20).fit(*draw(300))


@pytest.mark.parametrize("which", [0, 1], ids=["consensus", "one step"])
@pytest.mark.parametrize("cell", [1e7, -1e30, 1e100, -1e160, 1.7e308])
def test_a_cell_far_away_leaves_a_finite_estimate_that_is_not_trusted(cell, which, fitted):
    x, f, _ = draw(200, seed=1)
    x[17, 1] = cell
    found = fitted[which].estimate(x, f)
    assert math.isfinite(found.mse + found.low + found.high)
    assert not found.trusted
    assert "column 'x1' has numbers more than 1,000,000 standard deviations" in found.reasons[0]
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("which", [0, 1], ids=["consensus", "one step"])
def test_a_prediction_far_away_is_not_trusted_and_one_beyond_the_range_refused(which, fitted):
    x, f, _ = draw(200, seed=1)
    f = np.where(np.arange(200) == 3, 1e50, f)
    found = fitted[which].estimate(x, f)
    assert math.isfinite(found.mse + found.low + found.high)
    assert not found.trusted
    assert "the prediction has numbers" in found.reasons[0]
    with pytest.raises(InvalidInputError, match="y_pred must be finite, and between"):
        fitted[which].estimate(x, f * 1e50)


def test_ordinary_rows_stay_trusted(fitted):
    x, f, _ = draw(200, seed=1)
    assert all(estimator.estimate(x, f).trusted for estimator in fitted)


@pytest.mark.parametrize("place", ["X", "y_pred", "y_true"])
@pytest.mark.parametrize("value", [1e100, -1e308])
def test_a_reference_is_refused_with_the_place(place, value):
    arrays = dict(zip(("X", "y_pred", "y_true"), draw(100), strict=True))
    arrays[place][5] = value
    with pytest.raises(InvalidInputError, match=rf"{place} must .* at index 5"):
        ConsensusEstimator().fit(**arrays)


@pytest.mark.parametrize("name", ["mse", "low", "high"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_never_trusted_and_is_none_in_json(name, value):
    good = MSEEstimate(0.2, 0.1, 0.3, {"a": 0.2}, True, (), 10)
    assert good.checked() is good
    found = replace(good, **{name: value}).checked()
    assert not found.trusted
    assert "not finite" in found.reasons[0]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))[name] is None
