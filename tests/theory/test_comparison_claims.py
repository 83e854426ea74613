"""What the comparison promises, by the simulations of the benchmarks at a smaller size."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scripts import script
from tests.theory.monte_carlo import three_errors

from trueup.comparison import compare
from trueup.decide.seeds_needed import seeds_to_verdict


@pytest.fixture(scope="module")
def simulations():
    with script("benchmarks/comparison_simulations.py") as module:
        yield module


@pytest.mark.parametrize("n", [5, 10, 30, 60])
@pytest.mark.parametrize("accuracy", [0.5, 0.77, 0.95])
def test_accuracy_interval_covers_with_normal_noise(simulations, accuracy, n):
    coverage = simulations.accuracy_coverage("normal", accuracy, n, runs=2000)
    # At full size coverage is .944 to .976, three standard errors of 2,000 runs inside the band.
    assert 0.93 <= coverage <= 0.99


@pytest.mark.parametrize("noise", ["normal", "t5", "exponential"])
def test_equal_pipelines_rarely_get_a_verdict_however_often_one_looks(simulations, noise):
    assert simulations.equal_pipelines(noise, runs=2000, seeds=50) <= 122


def test_looking_is_free_for_compare_itself():
    rng = np.random.default_rng(4)
    runs, seeds, wrong = 150, 20, 0
    for _ in range(runs):
        first, second = rng.normal(size=(2, seeds))
        looks = (
            compare(dict(enumerate(first[:n])), dict(enumerate(second[:n])))
            for n in range(1, seeds + 1)
        )
        wrong += any(look.verdict != "inconclusive" for look in looks)
    assert wrong / runs <= 0.05 + three_errors(0.05, runs)


def test_fixed_size_test_would_break_under_looking(simulations):
    """The false verdicts of a t test repeated after each seed, so that the bound can fail."""
    differences = np.random.default_rng(0).standard_normal((2000, 50))
    moments = simulations.prefix_moments(differences)
    n = moments.count[4:]
    error = np.sqrt(moments.sum_of_squares[:, 4:] / (n - 1) / n)
    assert (np.abs(moments.mean[:, 4:]) > 2.6 * error).any(axis=1).sum() > 122


def test_skewed_differences_do_break_the_level(simulations):
    """A stated limit: mean-zero differences with one long tail."""
    sequences = np.random.default_rng(0).standard_exponential((2000, 50)) - 1.0
    assert simulations.false_verdicts(sequences) > 122


def test_difference_of_one_sd_is_found_within_twenty_seeds(simulations):
    within, wrong, _ = simulations.power(1.0, 20, runs=2000)
    assert within >= 0.80
    assert wrong <= 0.01


@pytest.mark.parametrize("effect", [2.0, 1.0, 0.5])
def test_required_seeds_equals_the_simulated_number(simulations, effect):
    simulated = simulations.simulated_seeds(effect, runs=4000, seed=1)
    assert abs(seeds_to_verdict(effect) - simulated) <= max(1.0, 0.1 * simulated)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 0.5])
def test_pilot_interval_holds_the_true_number(simulations, effect):
    truth, pilots = seeds_to_verdict(effect), 150
    covered = simulations.pilot_coverage(effect, truth, pilots)
    assert covered >= 0.80 - three_errors(0.80, pilots)


@pytest.mark.parametrize("heavy", [False, True])
def test_reduction_interval_covers(simulations, heavy):
    coverage = simulations.reduction_coverage(30, heavy, runs=400)
    assert coverage >= 0.93 - three_errors(0.93, 400)
