from functools import cache

import numpy as np
import pytest

from trueup.monitoring.baselines.reliable_variance import fit_reliable_variance
from trueup.monitoring.baselines.two_step import fit_ensemble, fit_m2v, fit_mvn
from trueup.monitoring.networks.training import TrainingPlan, as_tensor, seeded

PLAN = TrainingPlan(epochs=200)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 500, 1))
    return x, x[..., 0] + 0.5 * rng.normal(size=(2, 500))


@pytest.mark.parametrize("fit", [fit_m2v, fit_mvn])
def test_mean_and_variance_are_found(data, fit):
    x, y = data
    model = fit(as_tensor(x), as_tensor(y), 16, PLAN, seeded(0))
    rows = model.squared_errors(x, x[..., 0] - 1.0)
    # The estimate of (y - f)^2 for f off by one: 1 + 0.25.
    np.testing.assert_allclose(rows.mean(1), 1.25, atol=0.15)


def test_ensemble_is_the_mean_over_its_members(data):
    x, y = data
    plan = TrainingPlan(epochs=3)
    model = fit_ensemble(as_tensor(x), as_tensor(y), 4, plan, seeded(0))
    assert len(model.members) == 10
    expected = np.mean([one.squared_errors(x, y) for one in model.members], axis=0)
    np.testing.assert_allclose(model.squared_errors(x, y), expected)


@pytest.fixture(scope="module")
def reliable_variance(data):
    """A function that fits a variant, each once."""
    x, y = map(as_tensor, data)
    return cache(lambda variant: fit_reliable_variance(x, y, 16, PLAN, seeded(0), variant))


@pytest.mark.parametrize("variant", ["rvn", "rvn_ne", "m2rvn"])
def test_reliable_variance_finds_the_noise(data, reliable_variance, variant):
    x, _ = data
    rows = reliable_variance(variant).squared_errors(x, x[..., 0])
    np.testing.assert_allclose(rows.mean(1), 0.25, atol=0.12)


def test_only_the_extrapolating_variant_returns_to_the_spread_of_y_far_away(reliable_variance):
    far = np.full((2, 3, 1), 1e3)
    near_variance = reliable_variance("rvn")
    prediction = near_variance.mean.predict(far)
    np.testing.assert_allclose(near_variance.squared_errors(far, prediction), 1.0, atol=1e-3)
