"""Size and power of the test of no bias; coverage of the interval of the bias cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from tests.theory.monte_carlo import three_errors

from trueup import bias_cost_interval, bias_test

N = 300


def draw(rng, shift):
    logit = rng.normal(-1.0, 1.0, N)
    return {"y_true": (rng.random(N) < expit(logit - shift)).astype(int), "y_logit": logit}


def population_cost(shift):
    """Mean Kullback-Leibler divergence of the shifted from the predicted Bernoulli."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    predicted, true = expit(nodes - 1.0), expit(nodes - 1.0 - shift)
    divergence = true * np.log(true / predicted) + (1 - true) * np.log((1 - true) / (1 - predicted))
    return weights @ divergence / weights.sum()


def rejection_rate(shift, n_runs=2000):
    rng = np.random.default_rng(23)
    return np.mean([bias_test(**draw(rng, shift)).p_value < 0.05 for _ in range(n_runs)])


def test_size_of_the_bias_test_is_nominal():
    assert abs(rejection_rate(0.0) - 0.05) < three_errors(0.05, 2000)


def test_power_of_the_bias_test_is_that_of_the_normal_theory():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    shift = 0.35
    true, predicted = expit(nodes - 1.0 - shift), expit(nodes - 1.0)
    mean = weights @ (true - predicted) / weights.sum()
    variance = weights @ (true - 2 * true * predicted + predicted**2) / weights.sum() - mean**2
    power = norm.cdf(-1.96 + abs(mean) / np.sqrt(variance / N))
    assert abs(rejection_rate(shift) - power) < 0.05
    assert power > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.6])
def test_interval_of_the_bias_cost_covers_it(shift):
    rng, n_runs = np.random.default_rng(29), 300
    cost = population_cost(shift)
    covered = 0
    for seed in range(n_runs):
        interval = bias_cost_interval(**draw(rng, shift), n_resamples=100, random_state=seed)
        covered += interval.low <= cost <= interval.high
    assert covered / n_runs >= 0.95 - three_errors(0.95, n_runs)
